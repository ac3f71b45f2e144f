"""`--math` on the command line: what a value's shape, an index or a d/dx in the text means to a command."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from gradcli.cli import main
from tests.commands.running import run
from tests.sweep import sweep

A = ("--A", "1,2;3,4")


@sweep(
    ("text", "options", "value"),
    [
        # products, powers and functions of matrices, by the shapes of values
        ("A x", [*A, "--x", "1,1"], "[3, 7]"),
        ("A B", [*A, "--B", "1,0;1,1"], "[[3, 2], [7, 4]]"),
        ("A^2", A, "[[7, 10], [15, 22]]"),
        ("A^2", ["--A", "1,2"], "[1, 4]"),
        ("(A+B)^{-1}", [*A, "--B", "1,0;1,1"], "[[2.5, -1], [-2, 1]]"),
        ("|A|", A, "-2"),
        (r"\vec{x} \cdot \vec{y}", ["--x", "1,2,3", "--y", "4,5,6"], "32"),
        (r"a \times b", ["--a", "1,0,0", "--b", "0,1,0"], "[0, 0, 1]"),
        (r"A \odot A", A, "[[1, 4], [9, 16]]"),
        ("A x", ["--A", "eye(2)", "--x", "[1, 2]"], "[1, 2]"),
        ("x^T x", ["--x", "[1, 2]"], "5"),
        ("X w", ["--X", "ones(3, 2)", "--w", "tensor([1., 2.])"], "[3, 3, 3]"),
        ("A^2", ["--A", "ones(2, 2)*3"], "[[18, 18], [18, 18]]"),
        ("a x", ["--a", "2±0.1", "--x", "3"], "6.00 ± 0.30"),
        # indices
        (r"\sum_i \sum_j (x_i - x_j)^2", ["--x", "1,2,4"], "28"),
        (r"\sum_i\sum_j x_i y_j", ["--x", "1,2", "--y", "3,4"], "21"),
        (r"\sum_j X_{ij} w_j", ["--X", "1,2,3;4,5,6", "--w", "1,2,4"], "[17, 38]"),
        (r"\sum_{i=1}^{n-1} (x_{i+1} - x_i)^2", ["--x", "1,2,4"], "5"),
        (r"\sum_{i<j} \frac{1}{|x_i - x_j|}", ["--x", "1,2,4"], "1.8333333333333333"),
        (r"\sum_{j \ne i} \frac{1}{x_i - x_j}", ["--x", "1,2,6"], "[-1.2, 0.75, 0.45]"),
        (r"\sum_{k=1}^n k x", ["--x", "2", "--n", "3"], "12"),
        (r"\sum_{jk} \epsilon_{ijk} a_j b_k", ["--a", "1,0,0", "--b", "0,1,0"], "[0, 0, 1]"),
        (r"\frac{1}{n} \sum_{i=1}^n x_i", ["--x", "1,2,6", "--n", "3"], "3"),
        (r"\frac{1}{n} \sum_{k=0}^{n-1} a_k", ["--a", "1,2,6"], "3"),
        # an index of what is no name
        (r"\sum_{i=1}^n (A x - y)_i", [*A, "--x", "1,1", "--y", "1,1", "--n", "2"], "8"),
        (r"\frac1n \sum_{i=1}^n (A x - y)_i^2", [*A, "--x", "1,1", "--y", "1,1"], "20"),
        (r"\sum_{i=2}^n [A x - y]_i^2", [*A, "--x", "1,1", "--y", "1,1"], "36"),
        (r"\sum_i (A x)_i A_{ij}", [*A, "--x", "1,1"], "[24, 34]"),
        (r"\sum_i (A^T A)_{ii}", A, "30"),
        (r"\sum_i A^\top_{ij} x_i", [*A, "--x", "1,2"], "[5, 11]"),
        (r"\sum_i \tanh(A x)_i", [*A, "--x", "0,0"], "0"),
        (r"p_k = (A x)_k; \sum_k x_k p_k", [*A, "--x", "1,2"], "27"),
        (r"\sum_i A^{-1}_{ii}", ["--A", "2,0;0,4"], "0.75"),
        (r"\mathbf{w} - \frac12 \mathbf{1}\mathbf{1}^T\mathbf{w}", ["--w", "1,3"], "[-1, 1]"),
        (r"\sum_i (x_i - \bar{y})", ["--x", "1,2", "--y", "1,3"], "-1"),
        (r"\frac{1}{n-1} \sum_{i=1}^{n-1} (A x)_i", [*A, "--x", "1,1"], "3"),
        (r"\frac{1}{n} \sum_{i=1}^n [\sin(\pi x)]_i^2", ["--x", "0.5,1.5"], "1"),
        (r"\bar x = \frac{\sum_i p_i x_i}{\sum_i p_i}; \sum_i p_i (x_i - \bar x)^2",
         ["--x", "1,5", "--p", "3,1"], "12"),
        (r"(A x)_2 - (A^T A)_{12}", [*A, "--x", "1,1"], "-7"),
        (r"r = A x; \frac1n \sum_{i=1}^n r_i", [*A, "--x", "1,1"], "5"),
        # derivatives inside of a text
        (r"\frac{\partial}{\partial x} x^2 y", ["--x", "3", "--y", "2"], "12"),
        (r"\frac{d}{dx} x^2", ["--x", "3,4"], "[6, 8]"),
        (r"\frac{d}{dx} \int_0^{x^2} \sin t \, dt", ["--x", "0"], "0"),
    ],
)  # fmt: skip
def test_values(text: str, options: list[str], value: str) -> None:
    result = run("eval", "--math", text, *options)
    assert (result.stdout, result.exit_code) == (f"{value}\n", 0), result.stderr


@sweep(
    ("text", "options", "printed"),
    [
        (r"\mathrm{diag}(x) A x", ["--wrt", "x"], "(A + A.T)@x"),
        (r"\|A\|_F^2", ["--wrt", "A"], "2*A"),
        (r"\|x\|_p", ["--wrt", "x"], "sign(x)*abs(x)**(p - 1)*sum(abs(x)**p)**(1/p - 1)"),
        (r"\sum_i\sum_j x_i A_{ij} x_j", ["--wrt", "x"], "(A + A.T)@x"),
        (r"\sum_i (y_i - \sum_j X_{ij} w_j)^2", ["--wrt", "w"], "2*X.T@(X@w - y)"),
        (r"\sum_i (x_i - \mathrm{mean}(x))^2", [], "2*(x - mean(x))"),  # x is no number
        (r"\sum_i a_i x_i", ["--wrt", "a"], "x"),
        # d/dx says by what
        (r"\frac{d x^2}{dx}", ["--wrt", "x"], "2*x"),
        (r"\frac{d}{dx} x^2", [], "2*x"),
        ("d/dx x^2", ["--wrt", "x"], "2*x"),
        (r"\frac{d f(x)}{dx}", ["--wrt", "x"], "func.grad(f)(x)"),
        (r"\frac{\partial^2}{\partial x^2} x^3 y", [], "6*x*y"),
        (r"\frac{\partial^2}{\partial x \partial y} x^2 y^2", [], "4*x*y"),
        (r"\frac{\partial}{\partial x} x^2 y", ["--wrt", "y"], "2*x"),
        (r"\nabla (x^2 + y^2)", [], "stack([2*x, 2*y])"),
        (r"\nabla_x (x^2 y)", [], "2*x*y"),
        (r"\int_0^x \sin t dt", ["--wrt", "x"], "sin(x)"),
        (r"\int_0^x e^{-t^2} dt", ["--wrt", "x"], "exp(-x**2)"),
        (r"2 \int_x^1 e^{-t^2} dt + x^2", ["--wrt", "x"], "2*x - 2*exp(-x**2)"),
    ],
)
def test_derivatives(text: str, options: list[str], printed: str) -> None:
    result = run("diff", "--math", text, *options)
    assert (result.stdout, result.exit_code) == (f"{printed}\n", 0), result.stderr


@sweep(
    ("text", "options", "message", "hint"),
    [
        ("exp(A)", A, "exp of a matrix is a matrix function, or exp of each element?",
         "write exp.(A) for each element, e^{A} for the matrix"),
        ("A * x", [*A, "--x", "1,1"],
         "`*` of a matrix and a column is their product, or one of each element?",
         "write A @ x, or A .* x"),
        ("Wx", [], "`Wx` is one name, or the product W x?",
         "write W x; for the name say its value, --Wx VALUE"),
        (r"\nabla f", [], "∇ of a formula needs the command diff",
         'gradcli diff "x**2 + y**2" --operator grad'),
        (r"\nabla_w a^2 + b w", [], "∇ of the first term alone, or of all of it?",
         r"of all of it: \nabla_w [a^2 + b w]"),
    ],
)  # fmt: skip
def test_two_readings_are_asked(text: str, options: list[str], message: str, hint: str) -> None:
    result = run("eval", "--math", text, *options)
    assert f"error: {message}\n" in result.stderr and f"hint: {hint}" in result.stderr
    if hint.startswith("gradcli"):
        assert run(*shlex.split(hint)[1:]).exit_code == 0


@pytest.mark.parametrize("text", ["#", "\\", "()"])
def test_no_value_is_no_mathematics(text: str) -> None:
    assert "a value is missing" in run("eval", "--math", text).stderr


def test_a_column_is_a_number_of_each_row(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("A,x\n1,2\n3,4\n")
    assert run("map", "--math", "A x", str(table), "--no-grad", "all").stdout.endswith("3,4,12\n")


def test_an_index_of_a_column_is_that_of_the_row(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("y,x\n1,0\n3,1\n5,2\n")
    fitted = run("fit", "--math", "y_i = a x_i + b", str(table)).stdout
    assert float(fitted.split()[2]) == pytest.approx(2, rel=1e-12)
    refused = run("map", "--math", r"\sum_i x_i", str(table))
    assert "x is a column, of which each row has one number" in refused.stderr


def test_a_session_differentiates_by_what_the_text_says() -> None:
    lines = ":math\ndiff d/dx x^2\ndiff \\frac{d}{dx} x^3 --wrt x\ndiff \\frac{d^2}{dx^2} x^3\n"
    result = CliRunner().invoke(main, ["repl"], input=lines, prog_name="gradcli")
    assert result.stdout == "2*x\n3*x**2\n6*x\n"


def test_values_of_a_session_have_shapes() -> None:
    lines = ":math\nA = [[1., 2.], [3., 4.]]\nA = tensor(A)\nx = tensor([1., 1.])\nA x\n"
    result = CliRunner().invoke(main, ["repl"], input=lines, prog_name="gradcli")
    assert result.stdout.endswith("tensor([3., 7.])\n")


POINT = {"x": "0.7,1.2,0.4", "y": "0.3,0.9,1.1", "A": "1.2,0.3,0.5;0.4,1.5,0.2;0.1,0.6,1.9"}


@sweep(
    "text",
    [
        *("sum(lgamma(x))", "sum(sigmoid(A@x))", "sum(softplus(x))", "sum(digamma(x))"),
        *("x@A@x", "norm(A@x - y)", "log(sum(exp(x)))", "softmax(x, 0)@y", "logdet(A)"),
        *(
            "trace(linalg.inv(A))",
            "prod(x)",
            "mean(x)",
            "var(x)",
            "sum(tanh(A)*A)",
            "x[0]*x[1] + x[2]",
        ),
        *("sum(x*log(x))", "outer(x, y).sum()", "norm(A)", "cumsum(x, 0)@y", "sum((A@x - y)**2)"),
    ],
)
def test_a_printed_derivative_is_read_as_what_it_was_printed_for(text: str) -> None:
    name = "A" if "x" not in text.replace("softmax", "").replace("exp", "") else "x"
    shapes = [f"{n}={'3,3' if n == 'A' else '3'}" for n in POINT if re.search(rf"\b{n}\b", text)]
    options = ["--wrt", name, *(word for shape in shapes for word in ("--shape", shape))]
    plain = run("diff", text, *options).stdout.strip()
    latex = run("diff", text, *options, "--format", "latex").stdout.strip().partition(" = ")[2]
    results = []
    for source, flags in ((plain, []), (latex, ["--math"])):
        given = [n for n in POINT if re.search(rf"(?<![a-zA-Z]){n}(?![a-zA-Z])", source)]
        values = [word for n in given for word in (f"--{n}", POINT[n])]
        result = run("eval", *flags, source, *values)
        assert result.exit_code == 0, (source, result.stderr)
        results.append(np.array(ast.literal_eval(result.stdout)))
    assert np.allclose(*results, rtol=1e-12), (plain, latex)
