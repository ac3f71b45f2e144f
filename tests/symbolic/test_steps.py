"""diff --show-steps: every step multiplies, and the products that reach a variable add up to its gradient."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import numpy as np
import pytest

from gradcli import language
from gradcli.symbolic.chain_rule_steps import steps
from gradcli.symbolic.differentiate import differentiate
from gradcli.symbolic.expression_text import to_text
from gradcli.symbolic.generic_points import sample
from tests.commands import running
from tests.sweep import sweep

run = partial(running.run, "diff")
SCALARS = """\
step  of           by         factor     product so far
1     sin(x**2)*y  sin(x**2)  y          y
2     sin(x**2)    x**2       cos(x**2)  cos(x**2)*y
3     x**2         x          2*x        2*x*cos(x**2)*y  → x.grad

2*x*cos(x**2)*y
"""
VECTORS = """\
step  of                by           factor             product so far
1     sum(tanh(A@x)*y)  tanh(A@x)*y  1                  1
2     tanh(A@x)*y       tanh(A@x)    y                  y
3     tanh(A@x)         A@x          1 - tanh(A@x)**2   (1 - tanh(A@x)**2)*y
4     A@x               x            mv(self.t(), grad)  A.T@((1 - tanh(A@x)**2)*y)  → x.grad
"""


def test_what_is_printed() -> None:
    assert run("sin(x**2)*y", "--wrt", "x", "--show-steps").stdout == SCALARS
    shapes = ["--shape", "A=3,2", "--shape", "x=2", "--shape", "y=3"]
    found = run("sum(tanh(A@x)*y)", "--wrt", "x", "--show-steps", *shapes).stdout
    assert [line.split() for line in found.splitlines()[:5]] == [
        line.split() for line in VECTORS.splitlines()
    ]


def test_latex_and_json() -> None:
    lines = run("sin(x**2)", "--show-steps", "--format", "latex").stdout.splitlines()
    assert (
        lines[0] == r"\begin{aligned}" and r"\frac{\partial}{\partial\,x}\,x^{2} &= 2 x" in lines[2]
    )
    found = json.loads(run("sin(x**2)", "--show-steps", "--json").stdout)
    assert [s["factor"] for s in found["steps"]] == ["cos(x**2)", "2*x"]


@pytest.mark.parametrize("option", [("--format", "c"), ("--order", "2")])
def test_what_has_no_steps(option: tuple[str, str]) -> None:
    result = run("x**2", "--show-steps", *option)
    assert result.exit_code == 2 and "--show-steps does not go with" in result.stderr


PROGRAMS: list[tuple[str, dict[str, tuple[int, ...]]]] = [
    ("y = exp(-x); log(1 + y)*y + sqrt(x)", {"x": ()}),
    ("def f(t):\n    return t*t\nf(sin(x))", {"x": ()}),
    ("x/(1 + x)**2", {"x": ()}),
    ("where(x > 0, x**3, -x)*x", {"x": ()}),
    ("sum(tanh(A@x)*y)", {"A": (3, 2), "x": (2,), "y": (3,)}),
    ("mean((A@x - y)**2)", {"A": (3, 2), "x": (2,), "y": (3,)}),
    ("logsumexp(x, 0)", {"x": (3,)}),
]


@sweep(("source", "shapes"), PROGRAMS, parts=1)
def test_products_add_up_to_the_gradient(source: str, shapes: dict[str, Any]) -> None:
    arrays = {n: np.abs(sample(s, k)) for k, (n, s) in enumerate(shapes.items())}
    program = language.parse(source)
    found = differentiate(program, arrays)

    def value(text: str) -> Any:
        return np.asarray(language.run(language.parse(text), tensors).value.array)

    tensors = {n: language.read_value(repr(a.tolist())) for n, a in arrays.items()}
    for name in arrays:
        ends = [s.product for s in steps(program, arrays, [name]) if s.is_leaf]
        total = sum((value(f"0*{name} + {to_text(e)}") for e in ends), np.zeros_like(arrays[name]))
        expected = value(f"0*{name} + {to_text(found.by[name])}")
        np.testing.assert_allclose(total, expected, rtol=1e-9, atol=1e-12)
