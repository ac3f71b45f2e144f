"""What makes a formula fit the shape of a derivative: a matrix in front, behind, or transposed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gradcli.formulas.algebra.generic_points import Arrays
from gradcli.formulas.ask.likely_mistakes import REFUSED, same
from gradcli.language import parse

_ATOM = re.compile(r"[\w.]+|\w+\([^()]*\)")


def repaired(
    text: str,
    where: Sequence[Arrays],
    true: Sequence[Any],
    value: Callable[[str, Arrays], Any],
) -> str | None:
    """The formula with the one repair that fits, and how well it does, in words; None if none or several do.

    where: points. true: the derivative there. value: that of a formula at a point.
    """
    fitting: list[tuple[str, list[Any]]] = []
    for made in dict.fromkeys(_repairs(text, [n for n, a in where[0].items() if np.ndim(a) == 2])):
        try:
            found = [value(made, arrays) for arrays in where]
        except REFUSED:
            continue
        if all(np.shape(a) == np.shape(b) for a, b in zip(found, true, strict=True)):
            if all(map(same, found, true)):
                return f"`{made}` would be right"
            fitting.append((made, found))
    if not fitting:
        return None
    made, first = fitting[0]
    # A.T@x and x@A are one repair.
    if all(all(map(same, first, found)) for _, found in fitting):
        return f"`{made}` would have that shape"
    return None


def _repairs(text: str, matrices: Sequence[str]) -> Iterator[str]:
    whole = text if _ATOM.fullmatch(text) else f"({text})"
    for n in matrices:
        yield from (f"{n}.T@{whole}", f"{n}@{whole}", f"{whole}@{n}", f"{whole}@{n}.T")
    for kind, word, _, (start, end) in parse(text).walk():
        if kind == "name" and word in matrices:
            turned = re.match(r"\.T\b", text[end:])
            yield text[:start] + (word if turned else f"{word}.T") + text[end + 2 * bool(turned) :]


__all__ = ["repaired"]
