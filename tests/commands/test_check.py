"""`gradcli check`: gradients against differences and against formulas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gradcli.cli import main

WRONG = """
import gradcli as torch
class WrongSquare(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x*x
    @staticmethod
    def backward(ctx, g):
        return g*ctx.saved_tensors[0]
square = WrongSquare.apply
"""


def run(*argv: str) -> Any:
    return CliRunner().invoke(main, list(argv), prog_name="gradcli")


@pytest.fixture
def wrong(tmp_path: Path) -> str:
    path = tmp_path / "wrong.py"
    path.write_text(WRONG)
    return str(path)


def test_right() -> None:
    result = run("check", "sum(sin(x)*exp(x))", "--x", "1,2,3", "--second-order")
    assert result.exit_code == 0, result.output
    first, second = result.stdout.splitlines()
    assert first.startswith("ok: x (max error") and "complex step" in first
    assert second.startswith("ok: x second derivative")


def test_wrong_names_the_culprit(wrong: str) -> None:
    result = run("check", "sum(square(x)*2)", "--load", wrong, "--x", "1,3")
    assert result.exit_code == 1
    assert "wrong gradient: x[0]: analytical 2, numerical 4.0" in result.stdout or (
        "relative error 5.0e-01" in result.stdout
    )
    assert "to blame: WrongSquare in `square(x)`" in result.stdout
    found = json.loads(run("check", "square(x)", "--load", wrong, "--x", "3", "--json").stdout)
    assert found["ok"] is False
    assert found["inputs"]["x"]["analytical"] == 3
    assert found["inputs"]["x"]["numerical"] == pytest.approx(6)
    assert found["inputs"]["x"]["max_error"] == pytest.approx(0.5)
    assert found["blame"]["operator"] == "WrongSquare"


def test_detached() -> None:
    result = run("check", "x*detach(x)", "--x", "3")
    assert result.exit_code == 1
    assert "detach keeps gradients out" in result.stdout


def test_a_kink() -> None:
    result = run("check", "sum(abs(x))", "--x", "0,2")
    assert result.exit_code == 0, result.output
    assert "x[0] stands on a kink: slope -1 to the left, 1 to the right" in result.stdout


def test_random_points() -> None:
    result = run("check", "sum(log(x)*X@x)", "--samples", "4", "--range", "0.5,2")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("ok: 4 points")
    same = run("check", "sum(log(x)*X@x)", "--samples", "4", "--range", "0.5,2")
    assert same.stdout == result.stdout


def test_a_domain_is_found() -> None:
    assert run("check", "log(x)", "--samples", "3").exit_code == 0


def test_against_a_formula() -> None:
    good = run("check", "x**3", "--against", "3*x**2", "--wrt", "x", "--samples", "5")
    assert (good.exit_code, good.stdout.split(" (")[0]) == (0, "ok: x")
    bad = run("check", "x**3", "--against", "3*x", "--wrt", "x", "--x", "2")
    assert bad.exit_code == 1
    assert bad.stdout.splitlines()[0].startswith("wrong gradient: x: given 6, true 12")
    assert "the derivative is 3*x**2" in bad.stdout
    found = json.loads(run("check", "x**3", "--against", "3*x", "--x", "2", "--json").stdout)
    assert (found["ok"], found["derivative"]) == (False, "3*x**2")


def test_is_of_double_precision() -> None:
    assert run("check", "sum(sin(x))", "--x", "1,2", "--dtype", "float32").exit_code == 0


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["x*y", "--x", "1", "--y", "2", "--against", "y"], "by one variable"),
        (["x", "--x", "1", "--range", "2"], "--range wants A,B"),
        (["x", "--x", "1", "--range", "2,1"], "2 is not less than 1"),
    ],
)
def test_usage(argv: list[str], words: str) -> None:
    result = run("check", *argv)
    assert result.exit_code == 2
    assert words in result.stderr


def test_integers_have_no_gradient_to_check() -> None:
    result = run("check", "x*2", "--x", "tensor([1,2])")
    assert result.exit_code == 1
    assert "can require gradients" in result.stderr


def test_the_edge_of_a_domain_is_no_agreement() -> None:
    result = run("check", "sqrt(x)", "--x", "0")
    assert result.exit_code == 1
    assert "at the edge of its domain" in result.stdout and "blame" not in result.stdout


@pytest.mark.parametrize(
    ("expr", "at", "value"),
    [("log(x)", "-1", "nan"), ("1/x", "0", "inf"), ("log(x)", "0", "-inf"), ("x/x", "0", "nan")],
)
def test_outside_its_domain_the_value_is_named(expr: str, at: str, value: str) -> None:
    result = run("check", expr, "--x", at)
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"the value is {value} there: no gradient can be checked at x = {at}" in result.stderr


# What people get wrong, and a check with too easy a point, or too wide a tolerance, lets pass.
WRONG_FORMULAS = [
    ("dot(x, A@x)", "x", "2*A@x"),  # right for symmetric matrices alone
    ("x**4 - x**2", "x", "abs(4*x**3 - 2*x)*sign(x)"),  # right for |x| > 0.7
    ("abs(x)", "x", "1"),  # right for positive numbers
    ("dot(x, x)", "x", "2*x*x.shape[0]/3"),  # right for vectors of three
    ("mean(x**2)", "x", "2*x/3"),
    ("1e-9*x**2", "x", "-2e-9*x"),
    ("1e-9*x**2", "x", "2.00000001e-9*x"),
    ("exp(x)", "x", "exp(x)*(1 + 1e-8)"),
]


@pytest.mark.parametrize(("expr", "name", "formula"), WRONG_FORMULAS)
def test_wrong_formulas_are_caught(expr: str, name: str, formula: str) -> None:
    result = run("check", expr, "--wrt", name, "--against", formula)
    assert result.exit_code == 1, result.output
    assert result.stdout.startswith("wrong gradient: x")


@pytest.mark.parametrize(
    ("expr", "formula"),
    [
        ("dot(x, A@x)", "(A + A.T)@x"),
        ("logdet(A)", "inverse(A).T"),
        ("trace(A@A)", "2*A.T"),
        ("mean(x**2)", "2*x/x.numel()"),
        ("log(x)", "1/x"),
        ("sum(cholesky(A)**2)", "eye(A.shape[0])"),
    ],
)
def test_right_formulas_pass(expr: str, formula: str) -> None:
    result = run("check", expr, "--wrt", "A" if "trace" in expr or "(A)" in expr else "x",
                 "--against", formula)  # fmt: skip
    assert result.exit_code == 0, result.output


NASTY = [
    *(("lgamma(x)", "-2.0001"), ("lgamma(x)", "1e-7"), ("asin(x)", "0.9999999")),
    *(("asin(x)", "-0.9999999999"), ("tan(x)**2", "1.57")),
    *(("abs(x)", "1e-4"), ("abs(x)", "-1e-9"), ("relu(x) + relu(-x)", "1e-6"), ("x*abs(x)", "0")),
    *(("x**3 + x**4", "0"), ("norm(x)", "1e-8,0"), ("max(x)", "1,1.0000001"), ("sqrt(x)", "1e-9")),
    *(("sin(1e5*x)", "1"), ("exp(30*x)", "20"), ("tan(x)", "1.5707"), ("acosh(x)", "1.0000001")),
    *(("log(abs(x))", "1e-8"), ("atan2(x, 1e-8)", "0"), ("x**1.5", "1e-10"), ("digamma(x)", "-0.999")),
]  # fmt: skip


@pytest.mark.parametrize(("expr", "at"), NASTY)
def test_nasty_right_gradients_pass(expr: str, at: str) -> None:
    result = run("check", expr, "--x", at)
    assert result.exit_code == 0, result.output
    assert "kink" not in result.stdout


@pytest.mark.parametrize(
    ("expr", "at", "left", "right"),
    [
        ("clamp(x, 0, 1)", "1", 1, 0),
        ("1e6 + abs(x)", "0", -1, 1),
        ("relu(x - 1)*3", "1", 0, 3),
    ],
)
def test_kinks_show_both_slopes(expr: str, at: str, left: int, right: int) -> None:
    result = run("check", expr, "--x", at)
    assert result.exit_code == 0, result.output
    assert f"slope {left} to the left, {right} to the right" in result.stdout


def test_a_triangle_that_is_not_read() -> None:
    result = run("check", "cholesky(A).sum()", "--shape", "A=3,3")
    assert result.exit_code == 0, result.output


def test_a_random_expression_draws_the_same_at_every_point() -> None:
    result = run("check", "randn(3) @ exp(x)", "--x", "1,2,3")
    assert result.exit_code == 0, result.output
