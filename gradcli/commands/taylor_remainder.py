"""What a Taylor polynomial leaves: Lagrange's form of the remainder, `taylor --remainder`."""

from __future__ import annotations

import re
from copy import copy
from math import factorial
from typing import Any

import numpy as np

from gradcli.commands import output
from gradcli.commands.command_errors import usage
from gradcli.commands.formula_question import FormulaQuestion
from gradcli.commands.free_points import Point
from gradcli.commands.request import Request
from gradcli.formulas.ask.composed_derivatives import AskedDerivative
from gradcli.formulas.print.latex import symbol
from gradcli.language import parse

_LETTERS = ("xi", "c", "s", "xi_1")  # for the place between the point and x


def remainder(request: Request, name: str, at: str, degree: int, form: str) -> str:
    """The remainder f^(n+1)(xi)/(n+1)!*(x - a)^(n+1), and where xi is. at: the point a, as a text.

    It is found as one derivative by xi, in which x stays a letter, and proved as such.
    """
    source = request.program.source
    if request.program.rows[-3] != 1 or not request.program.ends_in_expression:
        raise usage(
            "--remainder is of one expression, and this is a program",
            hint="write it as one expression",
        )
    letter = next(one for one in _LETTERS if not re.search(rf"(?<!\w){one}(?!\w)", source))
    inner = re.sub(rf"(?<![\w.]){re.escape(name)}(?!\w)", letter, source)
    step = name if at.strip() in ("0", "0.0") else f"({name} - ({at}))"
    asker = copy(request)
    asker.program = parse(f"({inner})*{step}**{degree + 1}/{factorial(degree + 1)}")
    arrays = {letter: np.float64(0.6), name: np.float64(0.7)}
    asked = AskedDerivative(degree + 1)
    question = FormulaQuestion(asker, Point(arrays, {}, {}), asked, [letter], format=form)
    text = question.answered().made.by[letter]
    if _has_kinks(request, arrays[name], name):
        output.note(f"the remainder holds where no kink lies between {at} and {name}")
    if text == "0":
        return f"R_{{{degree}}} = 0" if form == "latex" else text
    if form == "latex":
        x, xi = symbol(name), symbol(letter)
        where = rf"{xi} \text{{ between }} {_in_latex(at)} \text{{ and }} {x}"
        return rf"R_{{{degree}}} = {text}, \quad {where}"
    return f"{text}, with {letter} between {at} and {name}"


def _has_kinks(request: Request, value: Any, name: str) -> bool:
    """Whether the expression calls what has a kink or jump somewhere, wherever its variable is."""
    from gradcli.engine.core.switch import watching
    from gradcli.formulas.algebra.expression_evaluation import value_at
    from gradcli.transforms.kinks import NOTED

    met: list[bool] = []

    def see(primitive: Any, *_: Any) -> None:
        met.append(any(point.kind in NOTED for point in primitive.switch or ()))

    watching.append(see)
    try:
        value_at(request.program, request.loaded, {name: value})
    finally:
        watching.remove(see)
    return any(met) or "where(" in request.program.source


def _in_latex(text: str) -> str:
    from gradcli.formulas.ask.typeset_text import latex_of

    return latex_of(text) or text


__all__ = ["remainder"]
