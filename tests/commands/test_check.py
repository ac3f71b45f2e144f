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


@pytest.mark.parametrize(("expr", "at"), [("sqrt(x)", "0"), ("1/x", "0"), ("log(x)", "-1")])
def test_the_edge_of_a_domain_is_no_agreement(expr: str, at: str) -> None:
    result = run("check", expr, "--x", at)
    assert result.exit_code == 1
    assert "at the edge of its domain" in result.stdout and "blame" not in result.stdout


def test_a_random_expression_draws_the_same_at_every_point() -> None:
    result = run("check", "randn(3) @ exp(x)", "--x", "1,2,3")
    assert result.exit_code == 0, result.output
