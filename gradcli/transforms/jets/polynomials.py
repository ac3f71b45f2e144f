"""Taylor polynomials of programs that have no formula: their coefficients as numbers, by power series."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from gradcli.engine.core.tensor import wrap
from gradcli.language.program import Program
from gradcli.transforms.jets.derivatives import FOUND, NONE, PROBLEMS, Traced, along, judged


class NotSmooth(ArithmeticError):
    """There is no Taylor polynomial. order: of the first derivative that is not there; 0 for a jump."""

    def __init__(self, order: int) -> None:
        what = f"it has no derivative of order {order}" if order else "it jumps"
        super().__init__(
            f"the value is not smooth there ({what}): no Taylor polynomial approximates it"
        )


def polynomial(
    program: Program, name: str, at: float, degree: int, names: Mapping[str, Any] | None = None
) -> str | None:
    """The Taylor polynomial of a program of one variable, as text; None where series have none.

    Raises NotSmooth where they tell that there is none.
    """
    try:
        with np.errstate(all="ignore"):
            traced = Traced(program, {name: wrap(np.float64(at))}, [name], names, gradient=False)
            found = along(traced, np.ones((1, 1)), degree)
    except PROBLEMS:
        return None
    if found.values.shape != (degree + 1, 1):
        return None
    known = judged(found.at((slice(None), 0)), np.abs(np.nan_to_num(found.values)).max())
    if (known.status == NONE).any():
        order = int(np.argmax(known.status == NONE))
        raise NotSmooth(order)
    if not (known.status == FOUND).all():
        return None
    step = (
        name if at == 0 else f"({name} - {_shown(at)})" if at > 0 else f"({name} + {_shown(-at)})"
    )
    terms = []
    for k, value in enumerate(known.values):
        coefficient = float(value) / math.factorial(k)
        if coefficient:
            power = "" if not k else f"*{step}" if k == 1 else f"*{step}**{k}"
            terms.append((coefficient, power))
    text = ""
    for coefficient, power in terms:
        size = _shown(abs(coefficient))
        part = power[1:] if size == "1" and power else size + power
        sign = "-" if coefficient < 0 else "+"
        text += f" {sign} {part}" if text else part if sign == "+" else f"-{part}"
    return text or "0"


def _shown(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


__all__ = ["NotSmooth", "polynomial"]
