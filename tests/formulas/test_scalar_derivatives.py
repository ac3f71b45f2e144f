"""Derivatives of everyday formulas: no more operations than in the better of SymPy's two forms."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import gradcli
from gradcli import language
from gradcli.formulas.algebra.expression_text import to_text
from gradcli.formulas.derive.differentiate import differentiate
from tests.formulas.measure import operations
from tests.sweep import sweep

SCALARS = Path(__file__).parent / "scalar_derivatives.tsv"
HIGH = Path(__file__).parent / "high_orders.tsv"
INTEGRALS = Path(__file__).parents[1] / "golden" / "simplify.tsv"
ORDER = 8


def rows(file: Path) -> list[list[str]]:
    """The rows of a table."""
    lines = file.read_text().splitlines()
    return [line.split("\t") for line in lines if not line.startswith("#")]


def variables(formula: str) -> list[str]:
    """The variables of a formula."""
    found = re.findall(r"[A-Za-z_]\w*(?![\w(.])", formula)
    return list(dict.fromkeys(n for n in found if n != "pi"))


@cache
def printed(formula: str, by: str, order: int = 1) -> str:
    """The derivative as gradcli prints it."""
    values = {n: np.float64(0.5 + 0.1 * k) for k, n in enumerate(variables(formula))}
    found = differentiate(language.parse(formula), values, [by], order=order)
    return to_text(found.by[by])


@sweep(
    ("formula", "by", "plain", "simplified", "expected"), lambda: rows(SCALARS), parts=8, often=1
)
def test_prints(formula: str, by: str, plain: str, simplified: str, expected: str) -> None:
    assert printed(formula, by) == expected
    point = {n: gradcli.tensor(0.45 + 0.07 * k) for k, n in enumerate(variables(formula))}
    leaf = point[by].clone().requires_grad_()
    language.run(language.parse(formula), {**point, by: leaf}).value.backward()
    found = language.run(language.parse(expected), point).value
    found = found.item() if hasattr(found, "item") else found
    np.testing.assert_allclose(found, leaf.grad.item(), rtol=1e-3, atol=1e-5)


@pytest.mark.long
def test_as_short_as_the_better_of_sympy() -> None:
    own = sum(operations(printed(formula, by)) for formula, by, *_ in rows(SCALARS))
    assert own <= sum(min(int(a), int(b)) for _, _, a, b, _ in rows(SCALARS))


@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.long), 25], ids=["all", "some"])
def test_as_short_as_sympys_simplify_and_exact(step: int) -> None:
    """Derivatives of 500 integrals: shorter in the mean, hardly ever longer, without folded decimals."""
    ratios = []
    for formula, by, simplified in rows(INTEGRALS)[::step]:
        text = printed(formula, by)
        assert not re.search(r"\d\.\d|\de[+-]?\d", text), f"{formula}: {text}"
        ratios.append(operations(text) / max(int(simplified), 1))
    assert sum(ratios) / len(ratios) <= 0.9
    assert sorted(ratios)[int(0.95 * len(ratios))] <= 1.05


@sweep(("formula", "size"), lambda: rows(HIGH), often=0, parts=8)
def test_high_orders_are_no_longer_than_sympys(formula: str, size: str) -> None:
    assert len(printed(formula, "x", ORDER)) <= int(size)


def test_continued_fractions_stay_nested() -> None:
    formula = "x"
    for _ in range(20):
        formula = f"x + 1/({formula})"
    assert len(printed(formula, "x")) <= 1759  # SymPy's


@pytest.mark.parametrize(
    ("formula", "by", "expected"),
    [
        ("sin(a - b)/sin(a + b)", "a", "sin(2*b)/sin(a + b)**2"),
        ("sin(x)**2*cos(x)**2", "x", "sin(4*x)/2"),
        ("2*atan(tanh(x/2))", "x", "1/cosh(x)"),
        ("asin(2*x/(1 + x**2))", "x", "2*abs(x**2 - 1)/(1 - x**4)"),
        ("sqrt((1 - x)/(1 + x))", "x", "sqrt((1 - x)/(x + 1))/(x**2 - 1)"),
        ("0.0821*x/(4.5 - 0.0318*x)", "x", "0.36945/(0.0318*x - 4.5)**2"),  # the given decimals
    ],
)
def test_identities_are_found(formula: str, by: str, expected: str) -> None:
    assert printed(formula, by) == expected


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("abs(x**3 - x)", "(3*x**2 - 1)*sign(x*(x**2 - 1))"),
        ("abs(x)**1.5", "1.5*sqrt(abs(x))*sign(x)"),
        ("tanh(x)*abs(x)", "sign(x)*(x - x*tanh(x)**2 + tanh(x))"),
        ("c*x**n", "c*n*x**(n - 1)"),
        ("abs(x - y)**3", "3*(x - y)*abs(y - x)"),
        ("sqrt(x**2)", "sign(x)"),  # of which the given form has no value at 0
        ("(x**2 - 1)/(x - 1)", "1"),
    ],
)
def test_a_value_at_a_single_point_is_kept(formula: str, expected: str) -> None:
    assert printed(formula, "x") == expected


@pytest.mark.parametrize("lengths", [{"K": 19, "s": 21}, {"r": 20, "T": 44}])
@pytest.mark.long
def test_the_greeks_of_an_option(lengths: dict[str, int]) -> None:
    d = "(log(S/K) + (r {} s**2/2)*T)/(s*sqrt(T))"
    price = f"S*special.ndtr({d.format('+')}) - K*exp(-r*T)*special.ndtr({d.format('-')})"
    assert printed(price, "S") == "special.ndtr((2*r*T + s**2*T + 2*log(S/K))/(2*s*sqrt(T)))"
    assert {by: operations(printed(price, by)) for by in lengths} == lengths


@pytest.mark.parametrize(
    ("order", "most"), [(2, 200), pytest.param(3, 300, marks=pytest.mark.long)]
)
def test_a_form_that_is_too_long_ends_no_other(order: int, most: int) -> None:
    formula = "(x**5 + 3*x**4 - 2*x + 1)/(x**6 - x**3 + 2*x - 7)"
    assert len(printed(formula, "x", order)) < most
