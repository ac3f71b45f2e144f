"""`gradcli diff EXPR --uncertainty`: the formula of a standard uncertainty."""

from __future__ import annotations

import math
import re

import pytest

from gradcli.commands.error_formula import _unsigned
from tests.commands.running import run
from tests.sweep import sweep


@sweep(("argv", "expected"), [
        (["x*y"], "sqrt(y**2*sigma_x**2 + x**2*sigma_y**2)"),
        (["x - y", "--correlation", "x,y"],
         "sqrt(sigma_x**2 + sigma_y**2 - 2*rho_x_y*sigma_x*sigma_y)"),
        (["x*y", "--correlation", "all"],
         "sqrt(y**2*sigma_x**2 + x**2*sigma_y**2 + 2*y*x*rho_x_y*sigma_x*sigma_y)"),
        (["x**2"], "abs(2*x)*sigma_x"),
        (["3*x"], "3*sigma_x"),
        (["m*c**2 + 0*m", "--wrt", "m"], "abs(c**2)*sigma_m"),
        # A minus is left out only where it stands before all of a derivative.
        (["y*exp(-x) - y*x", "--wrt", "x"], "abs(-y*exp(-x) - y)*sigma_x"),
        # sigma is a variable of its own.
        (["sigma*x"], "sqrt(x**2*u_sigma**2 + sigma**2*u_x**2)"),
    ], parts=1)  # fmt: skip
def test_formulas(argv: list[str], expected: str) -> None:
    result = run("diff", *argv, "--uncertainty")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == f"{expected}\n"


def test_named_variables_alone_have_one() -> None:
    result = run("diff", "m*c**2", "--uncertainty", "m")
    assert result.stdout == "abs(c**2)*sigma_m\n"
    assert "without an uncertainty: c" in result.stderr


def test_latex_has_the_name_of_the_value() -> None:
    result = run("diff", "--uncertainty", "v = s/t; v", "--latex")
    assert result.stdout == (
        r"\sigma_{v} = \sqrt{\left(\frac{1}{t}\right)^{2} \sigma_{s}^{2} + "
        r"\left(\frac{s}{t^{2}}\right)^{2} \sigma_{t}^{2}}" + "\n"
    )


@pytest.mark.long
@sweep("text", [
        "4*pi**2*x/y**2", "sin(x)*exp(-y)", "x**y", "log(x/y) - x*y", "-x - y", "-x*y + y**2 - x",
        "sqrt(x**2 + y**2)", "x/(x + y)", "atan2(y, x)", "-(x + y)*(x - y)",
    ], parts=1)  # fmt: skip
def test_the_text_has_the_number_that_grad_has(text: str) -> None:
    at = ["--x", "1.3", "--y", "0.7"]
    formula = run("diff", text, "--uncertainty", "--correlation", "x,y").stdout.strip()
    given = {"x": "1.3", "y": "0.7", "sigma_x": "0.01", "sigma_y": "0.02", "rho_x_y": "0.4"}
    known = [(f"--{n}", v) for n, v in given.items() if re.search(rf"\b{n}\b", formula)]
    by_text = float(run("eval", formula, *(word for pair in known for word in pair)).stdout)
    errors = ["--uncertainty", "x=0.01", "--uncertainty", "y=0.02", "--covariance", "x,y=8e-5"]
    found = run("grad", text, *at, *errors, "--json").stdout
    by_law = float(found.partition('"uncertainty": ')[2].partition(",")[0])
    assert math.isclose(by_text, by_law, rel_tol=1e-9)


@sweep(("text", "minus", "rest"), [
        ("-x*y", True, "x*y"),
        ("-x + y", False, "-x + y"),
        ("-(x + y)/z", True, "(x + y)/z"),
        (r"-\frac{x + y}{z}", True, r"\frac{x + y}{z}"),
        ("-e - x", False, "-e - x"),
        ("-x % y", False, "-x % y"),
        ("x - y", False, "x - y"),
    ], parts=1)  # fmt: skip
def test_a_minus_of_the_whole(text: str, minus: bool, rest: str) -> None:
    assert _unsigned(text) == (minus, rest)


@sweep(("argv", "words"), [
        (["x@y", "--uncertainty"], "gradcli grad propagates its numbers: --x 1±0.1,2±0.1"),
        (["a+b", "--uncertainty", "--format", "numpy"], "gradcli simplify TEXT --format numpy"),
        (["a+b", "--uncertainty", "--order", "2"], "--order cannot be used with --uncertainty"),
        (["a+b", "--uncertainty", "--at", "--a", "1", "--b", "2"], "leave out --at"),
        (["a+b", "--correlation", "a,b"], "add --uncertainty"),
        (["a+b", "--uncertainty", "--correlation", "a,c"], "as in --correlation a,b"),
        (["a+b", "--uncertainty", "c"], "'c' is not a variable"),
    ], parts=1)  # fmt: skip
def test_refused(argv: list[str], words: str) -> None:
    result = run("diff", *argv)
    assert result.exit_code == 2
    assert words in result.stderr


def test_its_value_and_the_contributions_follow() -> None:
    """With uncertainties as numbers the value is that of eval."""
    line = ["4*pi**2*L/T**2", "--L", "0.994±0.002", "--T", "2.003±0.005"]
    formula = run("diff", *line, "--uncertainty", "--correlation", "L,T=0.5").stdout.splitlines()
    value = run("eval", *line, "--budget", "--correlation", "L,T=0.5").stdout.splitlines()
    assert formula[1:] == [f"value = {value[0]}", *value[1:]]
    said = run("diff", "x*y", "--uncertainty", "x=0.1", "--x", "2").stderr
    assert "the uncertainty has no value, as y has none" in said
