"""diff --show-steps: the differentials of the steps are together that of the gradient."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import numpy as np
import pytest

from gradcli import language
from gradcli.formulas.algebra.expression_text import to_text
from gradcli.formulas.algebra.generic_points import sample
from gradcli.formulas.ask.differential_steps import steps
from gradcli.formulas.derive.differentiate import differentiate
from tests.commands import running
from tests.sweep import sweep

run = partial(running.run, "diff")
PRINTED = [
    (["sin(x**2)*y", "--wrt", "x"], ["u = x**2;  du = 2*x*dx", "d(sin(u)*y) = cos(u)*y*du"]),
    (
        ["sum(tanh(A@x)*y)", "--wrt", "x", "--shape", "A=3,2", "--shape", "x=2", "--shape", "y=3"],
        ["u = A@x;  du = A@dx", "d(sum(tanh(u)*y)) = sum((1 - tanh(u)**2)*y*du)"],
    ),
    (
        ["x@A@x", "--wrt", "x", "--order", "2", "--shape", "A=3,3", "--shape", "x=3"],
        ["d(x@A@x) = x@A@dx + A@x@dx", "d((A + A.T)@x) = (A + A.T)@dx"],
    ),
    (["x@A@y"], ["d(x@A@y) = A@y@dx + x@dA@y + x@A@dy"]),
    (["trace(X.T@A@X)"], ["d(trace(X.T@A@X)) = trace(X.T@(A + A.T)@dX) + trace(X@X.T@dA)"]),
    (["logdet(A)"], ["d(logdet(A)) = trace(linalg.inv(A)@dA)"]),
    (["var(x)"], ["d(var(x)) = 2*(x - mean(x))@dx/(x.shape[0] - 1)"]),
    (["mean((X@w-y)**2)"], ["u = X@w - y;  du = dX@w + X@dw - dy",
                            "d(mean(u**2)) = 2*u@du/X.shape[0]"]),
    (["x**3*log(x)"], ["u = log(x);  du = dx/x", "v = x**3;  dv = 3*x**2*dx", "d(v*u) = v*du + u*dv",
                       "d(x**3*log(x)) = x**2*(3*log(x) + 1)*dx"]),
    (["x*sin(x)"], ["u = sin(x);  du = cos(x)*dx", "d(x*u) = u*dx + x*du",
                    "d(x*sin(x)) = (sin(x) + x*cos(x))*dx"]),
    (["sin(x)/x"], ["u = sin(x);  du = cos(x)*dx", "d(u/x) = (du - u*dx/x)/x",
                    "d(sin(x)/x) = (cos(x) - sin(x)/x)*dx/x"]),
    (["x**2 + y**2 == 25", "--of", "y"], ["d(x**2 + y**2 - 25) = 2*(x*dx + y*dy)",
                                          "2*(x*dx + y*dy) = 0", "", "-x/y"]),
    (["a = x*w; b = sin(a); b + a"],
     ["a = x*w;  da = w*dx + x*dw", "b = sin(a);  db = cos(a)*da", "d(b + a) = da + db"]),
]  # fmt: skip


@sweep(("argv", "expected"), PRINTED, parts=1)
def test_what_is_printed(argv: list[str], expected: list[str]) -> None:
    assert run(*argv, "--show-steps").stdout.splitlines()[: len(expected)] == expected


def test_latex_and_json() -> None:
    lines = run("sin(x**2)", "--show-steps", "--format", "latex").stdout.splitlines()
    assert lines[:2] == [r"\begin{aligned}", r"  u &= x^{2}, & \mathrm{d}u &= 2 x \mathrm{d}x \\"]
    found = json.loads(run("sin(x**2)", "--show-steps", "--json").stdout)
    assert [s["differential"] for s in found["steps"]] == [
        "2*x*dx",
        "cos(u)*du",
        "2*x*cos(x**2)*dx",
    ]


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
