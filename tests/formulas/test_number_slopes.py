"""The chain rule over formulas of numbers, beside the trace of the same formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gradcli import language
from gradcli.formulas.algebra import algebra as alg
from gradcli.formulas.algebra.exact_check import Check
from gradcli.formulas.algebra.expression_evaluation import value_at
from gradcli.formulas.algebra.expression_text import to_text
from gradcli.formulas.algebra.expressions import Expression, call, name, number
from gradcli.formulas.derive.differentiate import Run, first_order, positions, slope
from gradcli.formulas.derive.number_slopes import NumberSlopes

POINT = {"x": np.float64(0.7), "y": np.float64(1.3)}


def expression_of(source: str) -> tuple[Expression, Expression, dict[str, int]]:
    """(a program's value, its variable x, the places of all variables)."""
    program = language.parse(source)
    places = positions(program)
    value = first_order(Run(program, {n: POINT[n] for n in program.free_variables()})).value
    return value, name("x", (), places.get("x", -1)), places


def traced(expression: Expression, by: Expression) -> Expression:
    """The slope of a function of `_u`, or of a power of `_u` and `_v`, as the tape has it."""
    point = dict.fromkeys(("_u", "_v"), np.float64(1))
    return slope(expression, point, by.data, {"_u": 0, "_v": 1})[0]


def value(expression: Expression) -> float:
    return float(value_at(language.parse(to_text(expression)), {}, POINT))


@pytest.mark.long
@pytest.mark.parametrize(
    "source",
    [
        "x",
        "y",
        "3*x**2 - y/x + 5",
        "sqrt(1 + x**2)/(x*y)**3",
        "exp(-x**2)*sin(y*x) + cos(x)*tan(x)",
        "tanh(x)*sigmoid(x) + erf(x*y)",
        "log(x) + log1p(x**2) + expm1(x)",
        "x**x + y**x + x**y",
        "asin(x/2) + acos(x/3) + atan(x) + asinh(x) + acosh(x + 2) + atanh(x/2)",
        "sinh(x)/cosh(x*y)",
    ],
)
def test_the_chain_rule_gives_what_the_trace_gives(source: str) -> None:
    whole, x, places = expression_of(source)
    slopes = NumberSlopes(x, traced)
    for _ in range(3):
        found = slopes.of(whole)
        assert found is not None
        expected, _ = slope(whole, POINT, "x", places, more=True)
        assert math.isclose(value(found), value(expected), rel_tol=1e-10, abs_tol=1e-12)
        whole = found


@pytest.mark.parametrize("source", ["abs(x)", "relu(x)*x", "sign(x) + x", "maximum(x, y)"])
def test_what_has_no_rule_is_left_to_the_trace(source: str) -> None:
    whole, x, _ = expression_of(source)
    assert NumberSlopes(x, traced).of(whole) is None


def test_forms_that_agree_on_one_side_alone_are_not_equal() -> None:
    """atan(x) + atan(1/x) is pi/2 for positive x, and -pi/2 for others."""
    x = name("x", (), 0)
    atan = [call("atan", [u], ()) for u in (x, alg.divide(alg.one, x))]
    half_turn = alg.scale(alg.HALF, name("pi", (), -1))
    assert not Check(alg.add(*atan), {}).accepts(half_turn)
    assert Check(alg.add(*atan), {"x": 1}).accepts(half_turn)
    squares = alg.add(*(alg.power(call(w, [x], ()), number(2)) for w in ("sin", "cos")))
    assert Check(squares, {}).accepts(alg.one)
