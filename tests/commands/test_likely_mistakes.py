"""`gradcli check --against` as a teacher: what a wrong derivative most likely got wrong."""

from __future__ import annotations

import json
from functools import partial

import pytest

from tests.commands import running
from tests.sweep import sweep

run = partial(running.run, "check")


@sweep(
    ("source", "formula", "options", "mistake"),
    [
        ("cos(x)", "sin(x)", [], "given / true = -1: the sign"),
        ("x**2", "x", [], "given / true = 1/2: a factor 2 is missing"),
        ("x**2", "6*x", [], "given / true = 3: a factor 3 too much"),
        ("sin(2*x)", "cos(2*x)", [], "= 1/2: the inner derivative of `sin(2*x)` is missing"),
        ("exp(-x**2)", "exp(-x**2)", [], "the inner derivative of `exp(-x**2)` is missing"),
        ("(3*x**2 + 1)**2", "2*(3*x**2 + 1)", [], "the inner derivative of `(3*x**2 + 1)**2`"),
        ("x*sin(x)", "x*cos(x)", [], "`x` of `x*sin(x)` is held constant"),
        ("x**2 + x**3", "3*x**2", [], "`x` of `x**2` is held constant"),
        ("log(3*x)", "1/(3*x)", [], "the inner derivative of `log(3*x)` is missing"),
        ("log(x**2 + 1)", "1/(2*x)", [], "this is f'(u') in the place of f'(u)*u', the chain rule"),
        ("sin(x**2)", "2*x*cos(x)", [], "this is f'(x)*u' in the place of f'(u)*u'"),
        ("sin(x**2)", "2*x*sin(x**2)", [], "this is f(u)*u' in the place of f'(u)*u'"),
        (
            "cos(2*x)",
            "sin(2*x)",
            [],
            "this is sin(u) in the place of -sin(u)*u', the rule of cos, with u = 2*x",
        ),
        ("exp(x**2)", "exp(2*x)", [], "with f = exp, u = x**2"),
        ("x*sin(x)", "sin(x) + cos(x)", [], "this is u'*v + v' in the place of u'*v + u*v'"),
        (
            "x**2*cos(x)",
            "2*x*cos(x) + x**2*sin(x)",
            [],
            "this is sin(u)*u' in the place of -sin(u)*u'",
        ),
        ("x**2*sin(x)", "2*x + cos(x)", [], "this is u' + v' in the place of u'*v + u*v'"),
        ("sin(x)/x", "cos(x) - 1", [], "this is u' - v' in the place of (u'*v - u*v')/v**2"),
        ("1/x**3", "1/(3*x**2)", [], "this is u/v' in the place of -u*v'/v**2, the quotient rule"),
        ("1/(x**2 + 1)", "-1/(x**2 + 1)**2", [], "this is -u/v**2 in the place of -u*v'/v**2"),
        ("x**-2", "-2*x**-1", [], "this is n*u**(n + 1)*u' in the place of n*u**(n - 1)*u'"),
        ("x**(1/3)", "x**(2/3)/3", [], "this is n*u**(1 - n)*u' in the place of n*u**(n - 1)*u'"),
        (
            "(x**2 + 1)**3",
            "3*(2*x)**2",
            [],
            "this is n*(u')**(n - 1) in the place of n*u**(n - 1)*u'",
        ),
        ("5**(x**2)", "5**(x**2)*2*x", [], "this is u**v*v' in the place of u**v*log(u)*v'"),
        ("log2(x)", "1/x", [], "this is u'/u in the place of u'/(u*log(2)), the rule of log2"),
        ("A@x", "A.T", ["--jacobian"], "it is the transpose"),
        ("A@x", "A.T", ["--jacobian", "--shape", "A=3,3"], "it is the transpose"),
        ("x@A@x", "2*A@x", [], "right for symmetric A only"),
        ("x@A@x", "2*A", ["--order", "2"], "right for symmetric A only"),
        ("x**3", "3*x", ["--order", "2"], "given / true = 1/2: a factor 2 is missing"),
    ],
)
def test_names_the_mistake(source: str, formula: str, options: list[str], mistake: str) -> None:
    result = run(source, "--against", formula, "--wrt", "x", *options)
    assert result.exit_code == 1 and mistake in result.stdout, result.output
    found = json.loads(run(source, "--against", formula, "--wrt", "x", *options, "--json").stdout)
    assert mistake in found["mistake"] and not found["ok"]


@sweep(
    ("source", "formula", "options"),
    [
        ("x**3", "6*x", ["--order", "2"]),
        ("x**5", "60*x**2", ["--order", "3"]),
        ("x@A@x", "A + A.T", ["--order", "2"]),
        ("x@A@x", "2*A@x", ["--assume", "A symmetric"]),
        ("abs(x)", "1", ["--assume", "x > 0"]),
        ("tanh(A@x)", "diag(1 - tanh(A@x)**2)@A", ["--jacobian"]),
    ],
)
def test_what_is_right_passes(source: str, formula: str, options: list[str]) -> None:
    result = run(source, "--against", formula, "--wrt", "x", *options)
    assert result.exit_code == 0 and result.stdout.startswith("ok: x"), result.output


RESIDUAL = "sum((A@x - b)**2)"


@pytest.mark.long
@sweep(
    ("source", "wrt", "formula", "said"),
    [
        (RESIDUAL, "x", "2*A@(A@x - b)", "hint: `2*A.T@(A@x - b)` would be right"),
        (RESIDUAL, "x", "2*(A@x - b)", "hint: `A.T@(2*(A@x - b))` would be right"),
        ("sum(A@x)", "x", "tanh(A@x)", "hint: `A.T@tanh(A@x)` would have that shape"),
        ("sum(A@x)", "A", "x", "has shape (2,), and the derivative (3, 2)\n    x\n    ^\n"),
    ],
    parts=1,
)
def test_says_which_matrix_makes_the_shapes_fit(
    source: str, wrt: str, formula: str, said: str
) -> None:
    result = run(source, "--against", formula, "--wrt", wrt, "--shape", "A=3,2")
    assert result.exit_code == 1 and result.stderr.endswith(said + "\n" * (said[-1] != "\n"))


def test_no_mistake_is_made_up() -> None:
    found = json.loads(run("x**2", "--against", "7*x**3 + 1", "--json").stdout)
    assert found["mistake"] is None and found["derivative"] == "2*x"


def test_an_order_is_that_of_a_formula() -> None:
    result = run("x**3", "--order", "2")
    assert result.exit_code == 2 and "--second-order" in result.stderr
