"""A printed formula keeps the digits that its program has, near 0, at 40, at 700 and at 1e8."""

from __future__ import annotations

import random

import numpy as np
import pytest

from gradcli import language, tensor
from gradcli.engine.system import dtypes
from gradcli.formulas.algebra.algebra import (
    HALF,
    add,
    divide,
    function,
    multiply,
    negate,
    power,
    scale,
    subtract,
)
from gradcli.formulas.algebra.exact_numbers import Number
from gradcli.formulas.algebra.expression_text import to_text
from gradcli.formulas.algebra.expressions import name, number
from gradcli.formulas.algebra.kept_digits import Digits
from gradcli.formulas.derive.differentiate import differentiate
from tests.fuzz import rounding

X = name("x", (), 0)
ONE = number(1)


@pytest.mark.long
@pytest.mark.parametrize(
    ("formula", "order", "point", "value"),  # the values by mpmath, in fifty digits
    [
        ("x*log(1+exp(-x))", 1, 40.0, -1.6568581595637197e-16),
        ("x*log(1+exp(-x))", 1, 720.0, 0.0),
        ("logaddexp(2*x,3*x)**2", 1, 800.0, 14400.0),
        ("erf(x)**2", 2, 30.0, 0.0),
        ("F.silu(exp(x))", 2, 37.0, 1.1719142372802612e16),
        ("1/(1+exp(-x))**2", 2, 40.0, -8.496708510583178e-18),
        ("exp(x)/(1+exp(x))**2", 2, 40.0, 4.248354255291589e-18),
        ("x**3/(exp(x)-1)", 2, 1e-10, 1.9999999997),
        ("x**3/(exp(x)-1)", 1, 1e-8, 1.99999998500000008e-08),
        ("x**3/(exp(x)-1)", 1, 720.0, 0.0),
        ("sinc(x)", 1, 1e-8, -3.2898681336964526e-08),
        ("sinc(x)", 1, 0.0, 0.0),
        ("sinc(x)", 1, 0.0099, -0.032566544100980748),
        ("sinc(x)", 2, 0.0, -3.289868133696453),
        ("sinc(x)**2", 1, 1e-5, -6.5797362656611891e-05),
        ("tanh(x) - (1 + exp(-x))", 1, 38.0, 3.13913279204803e-17),
        ("1/(2*tanh(x) - exp(x))", 1, -38.0, 7.847831980120072e-18),
        ("tanh(x**2)/x", 1, 665.0, -2.2612923285657753e-06),
        ("expm1(expm1(x*(exp(F.silu(x)) - 1)))", 1, -665.0, 6.89453067267167e-284),
        ("cos(1/x + tanh(x))", 2, 715.0, -4.61035946932008488e-09),
        ("expm1(logaddexp(x, log(2*log(1 + x))))", 2, 665.0, 6.3948515269879956e288),
    ],
)
def test_digits_are_those_of_the_program(
    formula: str, order: int, point: float, value: float
) -> None:
    with dtypes.as_default(dtypes.float64):
        program = language.parse(formula)
        text = to_text(differentiate(program, {"x": np.float64(0.7)}, order=order).by["x"])
        found = language.run(language.parse(text), {"x": tensor(point)}).value
        np.testing.assert_allclose(found.item(), value, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize(
    ("formula", "by", "text"),
    [
        ("log(log(x**z))", "x", "z/(x*log(x**z))"),  # which is real for a negative x and an even z
        ("log(cos(x)**z)**2", "x", "-2*tan(x)*z*log(cos(x)**z)"),
        ("log(log(x**z))", "z", "log(x)/log(x**z)"),
        ("x*log(1+exp(-x))", "x", "log1p(exp(-x)) - x*sigmoid(-x)"),
        ("x/(1 + exp(-x))", "x", "sigmoid(x)*(x*sigmoid(-x) + 1)"),
    ],
)
def test_prints(formula: str, by: str, text: str) -> None:
    point = {n: np.float64(0.7) for n in ("x", "z") if n in formula}
    assert to_text(differentiate(language.parse(formula), point, [by]).by[by]) == text


def test_a_number_and_its_function_are_taken_from_the_other_end() -> None:
    u = scale(Number.of(3), X)
    assert to_text(subtract(ONE, function("sigmoid", u))) == "sigmoid(-3*x)"
    assert to_text(subtract(function("sigmoid", u), ONE)) == "-sigmoid(-3*x)"


def test_forms_are_judged_by_exact_values() -> None:
    small = function("expm1", X)
    rounded = subtract(function("exp", X), ONE)
    digits = Digits(small, [X], [0])
    assert not digits.keeps(rounded)  # it has no digits left at 1e-8
    assert digits.keeps(scale(HALF, scale(Number.of(2), small)))
    assert Digits(rounded, [X], [0]).keeps(rounded)
    assert [*digits.better(rounded, [small])] == [small]


def test_what_overflows_is_no_form_of_what_does_not() -> None:
    tail = function("exp", negate(X))
    up = function("exp", X)
    over = multiply(up, power(add(function("exp", scale(Number.of(2), X))), number(-1)))
    assert over is tail  # exponentials are joined
    whole = divide(up, power(add(up, ONE), number(2)))
    both = multiply(function("sigmoid", X), function("sigmoid", negate(X)))
    assert not Digits(both, [X], [0]).keeps(whole)  # at 700 it is inf/inf
    assert Digits(whole, [X], [0]).keeps(both)


@pytest.mark.long
@pytest.mark.parametrize(
    "count", [pytest.param(2000, marks=pytest.mark.exhaustive), 300], ids=["all", "some"]
)
def test_random_formulas_keep_their_digits(count: int) -> None:
    failures = []
    with dtypes.as_default(dtypes.float64):
        for k in range(count):
            rng = random.Random(k)
            formula = rounding.drawn(rng, rng.randint(1, 5))
            failures.append(rounding.lost(formula, 1 if rng.random() < 0.7 else 2))
    assert [f for f in failures if f] == []
