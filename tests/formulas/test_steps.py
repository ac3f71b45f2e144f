"""diff --show-steps: the differentials of the steps are together that of the gradient."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import numpy as np
import pytest

from gradcli import language
from gradcli.engine.core.tensor import wrap
from gradcli.formulas.algebra.expression_evaluation import evaluate
from gradcli.formulas.algebra.expression_text import to_text
from gradcli.formulas.algebra.expressions import Expression, order
from gradcli.formulas.algebra.generic_points import sample
from gradcli.formulas.ask.board_steps import Node, board
from gradcli.formulas.ask.differential_steps import steps
from gradcli.formulas.derive.differentiate import differentiate
from tests.commands import running
from tests.sweep import sweep

run = partial(running.run, "diff")
PRINTED = [
    (["sin(x**2)*y", "--wrt", "x"], [
        "f = sin(u)*y   f' = cos(u)*u'*y   constant factor, chain rule, derivative of sin",
        "  u = x**2     u' = 2*x           power rule",
        "f' = cos(x**2)*(2*x)*y",
        "   = 2*x*cos(x**2)*y",
    ]),
    (["x**3*log(2*x)"], [
        "f = u*v        f' = u'*v + u*v'   product rule",
        "  u = x**3     u' = 3*x**2        power rule",
        "  v = log(w)   v' = w'/w          chain rule, derivative of log",
        "    w = 2*x    w' = 2             constant factor",
        "  v' = 2/(2*x) = 1/x",
        "f' = 3*x**2*log(2*x) + x**3*(1/x)",
        "   = x**2*(3*log(2*x) + 1)",
        "",
        "x**2*(3*log(2*x) + 1)",
    ]),
    (["sin(x)/x"], [
        "f = u/v        f' = (u'*v - u*v')/v**2   quotient rule",
        "  u = sin(x)   u' = cos(x)               derivative of sin",
        "  v = x        v' = 1",
        "f' = (cos(x)*x - sin(x)*1)/x**2",
        "   = (cos(x) - sin(x)/x)/x",
    ]),
    (["3*x**2 - exp(-x)"], [
        "f = 3*x**2 - u   f' = (3*x**2)' - u'   sum rule",
        "  (3*x**2)' = 6*x                      constant factor, power rule",
        "  u = exp(v)     u' = exp(v)*v'        chain rule, derivative of exp",
        "    v = -x       v' = -1               constant factor",
        "  u' = exp(-x)*(-1) = -exp(-x)",
        "f' = 6*x - (-exp(-x))",
        "   = 6*x + exp(-x)",
    ]),
    (["sqrt(1 - x**2)"], [
        "f = sqrt(u)      f' = u'/(2*sqrt(u))   chain rule, derivative of sqrt",
        "  u = 1 - x**2   u' = -2*x             sum rule, power rule",
        "f' = (-2*x)/(2*sqrt(1 - x**2))",
        "   = -x/sqrt(1 - x**2)",
    ]),
    (["x**2 + y**2 == 25", "--of", "y", "--wrt", "x"], [
        "f = x**2 + y**2 - 25   f' = (x**2)' + (y**2)'   sum rule",
        "  (x**2)' = 2*x                                 power rule",
        "  (y**2)' = 2*y*y'                              chain rule, power rule",
        "f' = 2*x + 2*y*y'",
        "   = 2*(x + y*y')",
        "2*(x + y*y') = 0",
        "",
        "-x/y",
    ]),
    (["x*exp(x)", "--order", "2"], [
        "f = u*v        f' = u'*v + u*v'    product rule",
        "  u = x        u' = 1",
        "  v = exp(x)   v' = exp(x)         derivative of exp",
        "f' = 1*exp(x) + x*exp(x)",
        "   = (x + 1)*exp(x)",
        "f' = u*v       f'' = u'*v + u*v'   product rule",
    ]),
    (["a = x*w; b = sin(a); b + a"], [
        "f = b + a      df = db + da       sum rule",
        "  b = sin(a)   db = cos(a)*da     chain rule, derivative of sin",
        "    a = x*w    da = w*dx + x*dw   product rule",
    ]),
    (
        ["sum(tanh(A@x)*y)", "--wrt", "x", "--shape", "A=3,2", "--shape", "x=2", "--shape", "y=3"],
        ["u = A@x   du = A@dx   constant factor",
         "d(sum(tanh(u)*y)) = sum((1 - tanh(u)**2)*y*du)",
         "    (linearity, constant factor, chain rule, derivative of tanh)"],
    ),
    (
        ["x@A@x", "--wrt", "x", "--order", "2", "--shape", "A=3,3", "--shape", "x=3"],
        ["d(x@A@x) = x@A@dx + A@x@dx   product rule, constant factor", "d((A + A.T)@x) = (A + A.T)@dx"],
    ),
    (["x@A@y"], ["d(x@A@y) = A@y@dx + x@dA@y + x@A@dy   product rule"]),
    (["trace(X.T@A@X)"], [
        "d(trace(X.T@A@X)) = trace(X.T@(A + A.T)@dX) + trace(X@X.T@dA)   linearity, product rule",
    ]),
    (["logdet(A)"], ["d(logdet(A)) = trace(linalg.inv(A)@dA)   derivative of logdet"]),
    (["mean((X@w-y)**2)"], ["u = X@w - y   du = dX@w + X@dw - dy   sum rule, product rule",
                            "d(mean(u**2)) = 2*u@du/X.shape[0]     linearity, chain rule, power rule"]),
]  # fmt: skip


@sweep(("argv", "expected"), PRINTED, parts=3, often=1)
def test_what_is_printed(argv: list[str], expected: list[str]) -> None:
    assert run(*argv, "--show-steps").stdout.splitlines()[: len(expected)] == expected


def test_latex_and_json() -> None:
    lines = run("sin(x**2)", "--show-steps", "--format", "latex").stdout.splitlines()
    assert lines == [
        r"\begin{align*}",
        r"  f &= \sin\left(x^{2}\right) = \sin\left(u\right) & f' &= \cos\left(u\right) u' "
        r"\tag*{chain rule, derivative of sin} \\",
        r"  u &= x^{2} & u' &= 2 x \tag*{power rule}",
        r"\end{align*}",
        r"\begin{align*}",
        r"  f' &= \cos\left(x^{2}\right) \left(2 x\right) \\",
        r"  &= 2 x \cos\left(x^{2}\right)",
        r"\end{align*}",
    ]
    found = json.loads(run("sin(x**2)", "--show-steps", "--json").stdout)
    assert [s["differential"] for s in found["steps"]] == [
        "2*x*dx",
        "cos(u)*du",
        "2*x*cos(x**2)*dx",
    ]


def test_latex_of_arrays_has_the_steps_over_indices() -> None:
    found = run("sum((A@x - y)**2)", "--wrt", "x", "--show-steps", "--format", "latex").stdout
    rows = [line.strip().removesuffix(r" \\") for line in found.splitlines()]
    assert r"{u}_{i} &= \sum_{j} {A}_{ij} {x}_{j} - {y}_{i}" in rows
    assert r"f &= \sum_{i} {u}_{i}^{2}" in rows
    assert any(
        row.startswith(r"\frac{\partial f}{\partial {x}_{i}} &= 2 \left(\sum_{j} {A}_{ji}")
        for row in rows
    )


@pytest.mark.parametrize("option", [("--format", "c"), ("--operator", "grad")])
def test_what_has_no_steps(option: tuple[str, str]) -> None:
    result = run("x**2", "--show-steps", *option)
    assert result.exit_code == 2 and "--show-steps cannot be used with" in result.stderr


PROGRAMS: list[tuple[str, dict[str, tuple[int, ...]]]] = [
    ("y = exp(-x); log(1 + y)*y + sqrt(x)", {"x": ()}),
    ("def f(t):\n    return t*t\nf(sin(x))", {"x": ()}),
    ("x/(1 + x)**2", {"x": ()}),
    ("where(x > 0, x**3, -x)*x", {"x": ()}),
    ("sum(tanh(A@x)*y)", {"A": (3, 2), "x": (2,), "y": (3,)}),
    ("mean((A@x - y)**2)", {"A": (3, 2), "x": (2,), "y": (3,)}),
    ("logsumexp(x, 0)", {"x": (3,)}),
    ("where(x > 0, x**2, -x)*y", {"x": (), "y": ()}),
    ("sum(abs(x)) + max(x)*y", {"x": (3,), "y": ()}),
    ("sum(relu(A@x - 1)*y)", {"A": (3, 2), "x": (2,), "y": (3,)}),
    ("sum(sort(x)[0]*y) + amax(x)*sum(clamp(y, 0, 0.5)**2)", {"x": (3,), "y": (3,)}),
    ("maximum(x, y)*minimum(x, 0.5)", {"x": (), "y": ()}),
    ("sum(softmax(A, 1)*B) + norm(A@B.T)", {"A": (2, 3), "B": (2, 3)}),
    ("trace(linalg.inv(A)@B) + logdet(A)", {"A": (2, 2), "B": (2, 2)}),
    ("sum(cumsum(x, 0)**2) + prod(x) + var(x)*mean(x)", {"x": (3,)}),
    ("sum(bmm(A, B)**2)", {"A": (2, 2, 3), "B": (2, 3, 2)}),
    ("x[0]*x[1] + x[-1]**2", {"x": (4,)}),
]


@pytest.mark.long
@sweep(("source", "shapes"), PROGRAMS, parts=1)
def test_the_last_differential_is_that_of_the_gradient(source: str, shapes: dict[str, Any]) -> None:
    arrays = {n: np.abs(sample(s, k)) for k, (n, s) in enumerate(shapes.items())}
    apart = {f"d{n}": sample(a.shape, 7) for n, a in arrays.items()}
    names = {n: language.read_value(repr(a.tolist())) for n, a in {**arrays, **apart}.items()}
    program = language.parse(source)
    found = steps(program, arrays, list(arrays))
    lines = [f"{s.name} = {s.texts()[0]}\nd{s.name} = {s.texts()[1]}" for s in found if s.name]
    by = differentiate(program, arrays).by
    text = " + ".join(f"sum(({to_text(e)})*d{n})" for n, e in by.items())
    expected = language.run(language.parse(text), names).value
    for last in (s for s in found if not s.name):  # over names, and with the names written out
        made = language.run(language.parse("\n".join([*lines, last.texts()[1]])), names).value
        np.testing.assert_allclose(
            np.sum(made.array), np.sum(expected.array), rtol=1e-9, atol=1e-12
        )


NUMBERS = [
    "x**2*sin(3*x)/(1 + x)",
    "exp(-x**2/2)*log(1 + x)",
    "x**x + 2**x - x**-3 + 4/x",
    "(x**2 + 1)**5/sqrt(x)",
    "5*sin(2*x) + x*exp(x) - x/3 + 2",
    "1/(1 + exp(-x))",
    "where(x > 0, x**2, -x)*maximum(x, x**3)",
    "y = exp(-x); log(1 + y)*y - y",
    "def g(t):\n    return t*sin(t)\ng(x) + g(2*x)",
    "s = sin(x); s*s*x*cos(s)",
    "atan2(x, 1 + x**2)*abs(x - 1)",
    "-(x - 1)*(x + 2)*(-x)/(3 - x)",
    "pi*x*exp(2)/log(x)**2 + 0*x",
    "x**2*y + sin(x*y)/y",
    "x*y*exp(x*y) - x/(x + y)**3",
]


def values_of(nodes: list[Node], point: dict[str, float], changes: dict[str, float]) -> None:
    """Each step's change, over the names of its parts, is that over the variables."""
    at = dict(point)
    for node in (n for whole in nodes for n in whole.inner_first()):
        at[node.name] = number(node.whole, point)
        over = {**at, **changes}
        parts = {n: number(e, {**point, **changes}) for n, e in node.put_in.items()}
        expected = number(node.derivative, {**point, **changes})
        np.testing.assert_allclose(number(node.own, over), at[node.name], rtol=1e-9)
        np.testing.assert_allclose(
            number(node.change, {**over, **parts}), expected, rtol=1e-9, atol=1e-12
        )


def number(expression: Expression, at: dict[str, float]) -> float:
    """The value of an expression of numbers; names such as u' are no names of the language."""
    names = [n for n in order([expression]) if n.op == "name" and n.data in at]
    (found,) = evaluate([expression], {n: wrap(np.float64(at[n.data])) for n in names})
    return float(getattr(found, "array", found))


@pytest.mark.long
@sweep(("source", "differentials"), [(s, d) for s in NUMBERS for d in (False, True)])
def test_the_steps_of_a_board_are_true(source: str, differentials: bool) -> None:
    program = language.parse(source)
    wanted = [n for n in ("x", "y") if n in program.free_variables()]
    point = {n: 1.3 + k / 7 for k, n in enumerate(wanted)}
    nodes = board(program, point, wanted, differentials=differentials)
    changes = {f"d{n}": 0.3 + k for k, n in enumerate(wanted)}
    values_of(nodes, point, changes)
    by = differentiate(program, point).by
    made = number(nodes[0].derivative, {**point, **changes})
    single = len(wanted) == 1 and not differentials
    expected = sum(number(e, point) * (1 if single else changes[f"d{n}"]) for n, e in by.items())
    np.testing.assert_allclose(made, expected, rtol=1e-9)
