"""An expression evaluated is what its text evaluates to; higher orders are those of the tape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import language
from gradcli.formulas.algebra.expression_evaluation import evaluate
from gradcli.formulas.algebra.expression_text import to_text
from gradcli.formulas.algebra.expressions import name
from gradcli.formulas.derive.differentiate import differentiate, positions
from tests.sweep import sweep

POINTS: dict[str, Any] = {
    "x": [0.4, 1.3, 0.7],
    "y": [0.9, 0.2, 1.1],
    "A": [[1.5, 0.2, 0.3], [0.1, 2.0, 0.4], [0.7, 0.5, 1.2]],
    "s": 0.6,
}
PROGRAMS = [
    "dot(x, (A@y)*y)",
    "sum(y*(A@x)*tanh(A@x))",
    "sum(softmax(A@x, 0)*y)",
    "sum(log(1 + exp(-y*(A@x))))",
    "s**s*sqrt(3)*sum(x/(1 + x**2))",
    "sum(where(x > s, x**3, s*x**2)) + x[1]**2*y[0]",
    "sum(clamp(x, 0.5, 1)**3*y % 2)",
    "norm(A@x - y)*sum(cat([x[:2]**2, y]))",
    "x@linalg.inv(A)@x + log(det(A))",
    "sum(cumsum(x**2, 0)*flip(y, (0,)))",
    "F.gelu(s)*erf(s)/sqrt(2*pi)",
    "sum(outer(x, y).T*A)**2",
]


def tensors() -> dict[str, Any]:
    return {n: gradcli.tensor(v, requires_grad=True) for n, v in POINTS.items()}


def repeated(source: str, word: str, order: int) -> Any:
    """The derivative of the sum of the derivative, and so on, by the tape."""
    leaves = tensors()
    found = language.run(language.parse(source), leaves).value
    for _ in range(order):
        slope = None
        if found.requires_grad:
            wanted = {"create_graph": True, "allow_unused": True}
            (slope,) = gradcli.autograd.grad(found.sum(), [leaves[word]], **wanted)
        found = gradcli.zeros_like(leaves[word]) if slope is None else slope
    return found.detach().numpy()


@pytest.mark.parametrize("order", [1, 2, pytest.param(3, marks=pytest.mark.long)])
@sweep("source", PROGRAMS, parts=1)
def test_orders_are_those_of_the_tape(source: str, order: int) -> None:
    program = language.parse(source)
    leaves = {n: t.detach() for n, t in tensors().items() if n in program.free_variables()}
    arrays = {n: t.array for n, t in leaves.items()}
    places = positions(program)
    known = {name(n, t.array.shape, places.get(n, -1)): t for n, t in leaves.items()}
    known[name("pi", (), -1)] = np.pi
    for word in ("x", "s"):
        if word not in leaves:
            continue
        expected = repeated(source, word, order)
        expression = differentiate(program, arrays, [word], order=order).by[word]
        text = to_text(expression)
        printed = language.run(language.parse(text), leaves).value
        np.testing.assert_allclose(np.asarray(printed), expected, rtol=1e-8, err_msg=text)
        (value,) = evaluate([expression], known)
        np.testing.assert_allclose(np.asarray(value), expected, rtol=1e-8, err_msg=text)
