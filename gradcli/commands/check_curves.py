"""The points at which `gradcli check --of` looks at the function that an equation gives."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.commands.check_points import add_wrt, double
from gradcli.commands.command_errors import usage
from gradcli.commands.free_points import point
from gradcli.language import parse
from gradcli.language.equations import sides
from gradcli.language.rewritten_sources import as_difference

if TYPE_CHECKING:
    from gradcli.commands.question import Question
    from gradcli.formulas.ask.implicit_check import Curve

POINTS = 6


def chosen_on_curve(question: Question) -> tuple[Curve, list[dict[str, Any]], str]:
    """(the curve, points on it, the variable to differentiate by).

    The given point must lie on the curve; where the function's value is not given, it is found.
    """
    from gradcli.engine.system import dtypes
    from gradcli.formulas.ask.implicit_check import HOLDS, Curve

    request, of = question.request, question.of
    assert of is not None
    for option in ("jacobian", "second_order", "assume", "range"):
        if getattr(question, option):
            words = f"--{option.replace('_', '-')} cannot be used with --of"
            raise usage(words, hint="leave out one of them")
    where = point(question.ctx, request)
    dtypes.set_default_dtype(dtypes.float64)
    arrays = {n: double(a) for n, a in where.arrays.items()}
    if shaped := [n for n, a in arrays.items() if np.ndim(a) or a.dtype.kind != "f"]:
        raise usage(f"--of takes equations of real numbers, and {shaped[0]} is none")
    if of not in arrays:
        known = ", ".join(arrays)
        raise usage(f"--of: {of!r} is not a variable (there are: {known})", kind="name")
    others = [n for n in request.wrt or arrays if n != of and n not in request.no_grad]
    if len(others) != 1:
        raise usage(
            "--against is a derivative by one variable, and there are several",
            hint=add_wrt(others),
        )
    program = request.program
    curve = Curve(parse(as_difference(program.source)), sides(program)[0], of, request.loaded)
    free = [n for n in arrays if n not in where.given]
    if not free:
        if curve.apart(arrays) > HOLDS:
            raise usage(
                "the equation does not hold at this point, so the function is not there",
                hint=f"leave out --{of}: its value is found",
                kind="value",
            )
        return curve, [arrays], others[0]
    if of in where.given:
        raise usage(
            f"the value of {of} follows from the others",
            hint=f"leave out --{of}, or give all values",
        )
    found = curve.points(arrays, free, request.manual_seed or 0)
    points = [dict(at) for at in islice(found, question.samples or POINTS)]
    if not points:
        raise usage(
            f"no point was found at which the equation holds for {of}",
            hint="give a point of the curve by values of all variables",
            kind="value",
        )
    return curve, points, others[0]
