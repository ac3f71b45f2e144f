"""A hundred formulas of physics: gradient, derivative as text, its value and the check agree."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import language
from gradcli.formulas.algebra.expression_text import to_text
from gradcli.formulas.derive.differentiate import differentiate
from gradcli.formulas.print.python_code import to_code
from gradcli.transforms.finite_differences import check_point
from tests.sweep import sweep

ROWS = [
    line.split("\t")
    for line in (Path(__file__).parent / "formulas.tsv").read_text().splitlines()
    if line and not line.startswith("#")
]


def values(text: str) -> dict[str, Any]:
    """The variables of a row."""
    pairs = (item.split("=") for item in text.split())
    return {name: np.array(ast.literal_eval(value), float) for name, value in pairs}


@cache
def derivative(formula: str, given: str) -> Any:
    """What is found for a row, once for all tests."""
    return differentiate(language.parse(formula), values(given))


def test_there_are_a_hundred() -> None:
    assert len(ROWS) >= 100
    assert len({name for name, _, _ in ROWS}) == len(ROWS)


@sweep(("name", "formula", "given"), ROWS, parts=8, often=2)
def test_all_ways_agree(name: str, formula: str, given: str) -> None:
    arrays = values(given)
    program = language.parse(formula)
    leaves = {n: gradcli.tensor(a, requires_grad=True) for n, a in arrays.items()}
    value = language.run(program, leaves).value
    value.backward()
    found = derivative(formula, given)
    for name, leaf in leaves.items():
        text = to_text(found.by[name])
        plain = {n: t.detach() for n, t in leaves.items()}
        again = language.run(language.parse(text), plain).value
        again = np.asarray(again.array if hasattr(again, "array") else again)
        assert again.shape == tuple(leaf.shape)
        np.testing.assert_allclose(again, leaf.grad.numpy(), rtol=1e-9, atol=1e-12, err_msg=text)
    checks = check_point(lambda **t: language.run(program, t).value, arrays, list(arrays))
    assert all(c.ok for c in checks.values()), {n: c.error for n, c in checks.items()}


@pytest.mark.parametrize("form", ["python", "numpy"])
@sweep(("name", "formula", "given"), ROWS, parts=8, often=2)
def test_code_runs_with_numpy_alone(name: str, formula: str, given: str, form: str) -> None:
    arrays = values(given)
    program = language.parse(formula)
    found = derivative(formula, given)
    space: dict[str, Any] = {}
    exec(to_code(found, form), space)
    plain = [a.item() if not a.ndim else a for a in arrays.values()]
    value, grads = space["value_and_gradient"](*plain)
    leaves = {n: gradcli.tensor(a, requires_grad=True) for n, a in arrays.items()}
    expected = language.run(program, leaves).value
    expected.backward()
    np.testing.assert_allclose(value, expected.item(), rtol=1e-9)
    grads = grads if isinstance(grads, tuple) else (grads,)
    for g, leaf in zip(grads, leaves.values(), strict=True):
        np.testing.assert_allclose(g, leaf.grad.numpy(), rtol=1e-9, atol=1e-12)
