"""What a Taylor polynomial leaves, in Lagrange's form: f^(n+1)(xi)/(n+1)!*(x - a)^(n+1)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import factorial
from typing import Any

from gradcli.engine.core.switch import watching
from gradcli.formulas.algebra.expression_evaluation import value_at
from gradcli.formulas.ask.typeset_text import latex_of
from gradcli.formulas.print.latex import symbol
from gradcli.language.program import Program
from gradcli.transforms.kinks import NOTED

_LETTERS = ("xi", "c", "s", "xi_1")  # for the place between the point and x


def antiderivative(source: str, name: str, at: str, degree: int) -> tuple[str, str]:
    """(an expression, a letter) whose derivative by the letter, of order `degree + 1`, is the remainder.

    source: the expression that is expanded, in `name`. at: the point, as a text. The step `x - a` is a
    constant to the letter, so that the whole remainder is one derivative, and proved as such.
    """
    letter = next(one for one in _LETTERS if not re.search(rf"(?<!\w){one}(?!\w)", source))
    inner = re.sub(rf"(?<![\w.]){re.escape(name)}(?!\w)", letter, source)
    step = name if at.strip() in ("0", "0.0") else f"({name} - ({at}))"
    return f"({inner})*{step}**{degree + 1}/{factorial(degree + 1)}", letter


def written(found: str, letter: str, name: str, at: str, degree: int, latex: bool) -> str:
    """A remainder with where its letter is."""
    where = f", with {letter} between {at} and {name}"
    if latex:
        point = latex_of(at) or at
        where = (
            rf", \quad {symbol(letter)} \text{{ between }} {point} \text{{ and }} {symbol(name)}"
        )
    return (f"R_{{{degree}}} = " if latex else "") + found + where * (found != "0")


def has_kinks(program: Program, names: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    """Whether an expression calls what has a kink or a jump somewhere, wherever its variables are."""
    met: list[bool] = []

    def see(primitive: Any, *_: Any) -> None:
        met.append(any(point.kind in NOTED for point in primitive.switch or ()))

    watching.append(see)
    try:
        value_at(program, names, values)
    finally:
        watching.remove(see)
    return any(met) or "where(" in program.source


__all__ = ["antiderivative", "has_kinks", "written"]
