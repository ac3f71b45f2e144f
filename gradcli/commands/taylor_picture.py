"""A function beside its Taylor polynomials, as `taylor --plot` draws them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.commands.pictures import View
from gradcli.commands.plots import curves
from gradcli.commands.plots.pictures import Curves, Line
from gradcli.language import parse
from gradcli.transforms.verdicts import function_of

if TYPE_CHECKING:
    from gradcli.commands.declarations import Options
    from gradcli.commands.request import Request

AROUND = 5.0  # how far from the point is drawn where nobody says it
_ROOM = 0.5  # of the function's height that is shown above and below it
_DASHES = ((3, 3), (1, 3), (5, 2), (2, 2))


def picture(
    request: Request,
    options: Options,
    name: str,
    at: float,
    polynomials: Mapping[int, str],
    shared: dict[str, Any],
) -> Curves:
    """The function and its polynomials around the point, as high as the function is.

    name: the variable. at: the point. polynomials: by degree, as texts of the language. shared: what is held.
    """
    view = View(options)
    low, high = view.axis("x", (at - AROUND, at + AROUND), name).ends
    lines: list[Line] = []
    whole = function_of(request.program, request.loaded)
    first = curves.columns_of(whole, name, shared, 1)
    x, (y, *_) = curves.sample(first, low, high)
    lines.append(Line(x, y, request.source))
    for k, (degree, text) in enumerate(polynomials.items()):
        function = function_of(parse(text), request.loaded)
        across, (up, *_) = curves.sample(curves.columns_of(function, name, shared, 1), low, high)
        up = up if len(up) == len(across) else np.full(len(across), up[0])
        lines.append(Line(across, up, f"order {degree}", _DASHES[k % len(_DASHES)]))
    ends = curves.limits([(x, y)])
    room = _ROOM * (ends[1] - ends[0])
    return Curves(
        lines,
        view.axis("x", (low, high), name),
        view.axis("y", (ends[0] - room, ends[1] + room), ""),
        title=view.title,
    )


def number_of(text: str) -> Any:
    """The point as a number; None of a letter."""
    from gradcli.commands.request_evaluation import read_value

    value = read_value(text, "--plot")
    return None if value.shape or value.is_complex() else float(value.item())
