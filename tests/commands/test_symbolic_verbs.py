"""What a symbolic user types: equations, elements, directions, fields, simplification; from the shell."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import gradcli
from gradcli.cli import main
from gradcli.language.euler_lagrange import equation_of_motion
from gradcli.language.located_errors import LanguageError
from tests.commands.running import run
from tests.sweep import sweep


def lines(*argv: str) -> list[str]:
    result = run(*argv)
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


CIRCLE = ["x**2 + y**2 == 1", "--of", "y", "--wrt", "x"]
EULER_LAGRANGE = (
    "L = lambda q, v: m*v**2/2 - k*q**2/2; p = lambda s: func.grad(L, 1)(x(s), func.grad(x)(s)); "
    "func.grad(p)(t) - func.grad(L, 0)(x(t), func.grad(x)(t))"
)
PENDULUM = "m*l**2*func.grad(q)(t)**2/2 + m*g*l*cos(q(t))"
KEPLER = "m*func.grad(r)(t)**2/2 + m*r(t)**2*func.grad(f)(t)**2/2 + k/r(t)"
BRANCHES = "if x > 1:\n    y = x**3\nelif x > -1:\n    y = x\nelse:\n    y = exp(x)\ny*a"
AREA = ["--let", "x=r*cos(t)", "--let", "y=r*sin(t)"]


@sweep(
    ("argv", "expected"),
    [
        # an equation: the implicit function theorem
        (CIRCLE, ["-x/y"]),
        ([*CIRCLE, "--format", "latex"], [r"\frac{\mathrm{d}y}{\mathrm{d}x} = -\frac{x}{y}"]),
        ([*CIRCLE, "--x", "3", "--y", "4", "--at"], ["-x/y = -0.75 at x = 3, y = 4"]),
        (["a = 2; x**a + y**a == z", "--of", "y"], ["x.grad = -x/y", "z.grad = 1/(2*y)"]),
        (["1 == (x**2 + y**2)", "--of", "y", "--wrt", "x"], ["-x/y"]),
        (["y = x^2", "--math", "--of", "y"], ["2*x"]),
        (["A@y == b", "--of", "y", "--wrt", "b"], ["linalg.inv(A)"]),
        # an element, a slice, an intermediate
        (["sum(x**2)", "--wrt", "x[0]"], ["2*x[0]"]),
        (["sin(x)", "--wrt", "x[1]"], ["cos(x[1])"]),
        (["x*y[0]*y[1]", "--wrt", "x,y[1]"], ["x.grad = y[1]*y[0]", "y[1].grad = x*y[0]"]),
        (["u = x**2; sin(u)*x", "--wrt", "u"], ["cos(u)*x"]),
        # a direction: J@v
        (["x**2*y", "--along", "a,b", "--wrt", "x,y"], ["x*(2*a*y + x*b)"]),
        (["x**2*y", "--along", "1,2"], ["2*x*(y + x)"]),
        (["sum(x**2)", "--along", "v", "--wrt", "x"], ["2*x@v"]),
        (["A@x", "--along", "v", "--wrt", "x"], ["A@v"]),
        # fields
        (["x*y", "--operator", "grad", "--format", "latex"],
         [r"\nabla f = \begin{pmatrix}y \\ x\end{pmatrix}"]),
        (["[x*y, y*z, z*x]", "--operator", "div"], ["y + z + x"]),
        (["[x*y, y*z, z*x]", "--operator", "curl"], ["stack([-y, -z, -x])"]),
        (["div(d(x), 2)"], ["func.grad(d)(x)/2"]),  # where div is a quotient, and d is not known
        (["[-y, x]", "--operator", "curl"], ["2"]),  # by x, y in this order, and not as they appear
        (["1/sqrt(x**2 + y**2 + z**2)", "--operator", "laplacian"], ["0"]),
        (["q**2*x*y", "--operator", "grad"], ["stack([q**2*y, q**2*x])"]),  # q is no direction
        (["sum(x**3)", "--operator", "laplacian"], ["6*sum(x)"]),
        (["x@x", "--operator", "laplacian"], ["2*x.shape[0]"]),  # for any size
        (["A@x", "--operator", "div", "--wrt", "x", "--shape", "A=3,3"], ["trace(A)"]),
        # a program that branches
        (["x**2 if x > 0 else -x"], ["where(x > 0, 2*x, -1)"]),
        ([BRANCHES, "--wrt", "a"], ["where(x > 1, x**3, where(x > -1, x, exp(x)))"]),
        ([BRANCHES, "--wrt", "x", "--format", "latex"],
         [r"\frac{\partial f}{\partial x} = \begin{cases}3 x^{2} a & \text{if } x > 1 \\ "
          r"a & \text{if } x > -1 \\ e^{x} a & \text{otherwise}\end{cases}"]),
        ([BRANCHES, "--wrt", "x", "--x", "2", "--a", "3", "--at"], ["3*x**2*a = 36 at x = 2, a = 3"]),
        # unknown functions
        (["f(g(x))", "--wrt", "x"], ["func.grad(g)(x)*func.grad(f)(g(x))"]),
        (["f(g(x))", "--wrt", "x", "--format", "latex"],
         [r"\frac{\mathrm{d}f}{\mathrm{d}x} = g'\left(x\right) f'\left(g\left(x\right)\right)"]),
        (["x(t)**2", "--wrt", "t"], ["2*x(t)*func.grad(x)(t)"]),
        (["f(x, 2*x)"], ["func.grad(f, 0)(x, 2*x) + 2*func.grad(f, 1)(x, 2*x)"]),
        (["f(x)", "--order", "2"], ["func.grad(func.grad(f))(x)"]),
        (
            ["z = W@x; a = sigmoid(z); L = sum((a - y)**2)"],
            [
                "z = W@x",
                "a = sigmoid(z)",
                "W.grad = 2*outer(a*(1 - a)*(a - y), x)",
                "x.grad = 2*W.T@(a*(1 - a)*(a - y))",
                "y.grad = 2*(y - a)",
            ],
        ),
        (["f(2)*x*g(-1)"], ["g(-1)*f(2)"]),  # and no number of the stand-in's
        (["f(g(2))*h(1, pi)*x**2"], ["2*f(g(2))*h(1, pi)*x"]),
        (["u(x, t) == 0", "--of", "x", "--wrt", "t"],
         ["-func.grad(u, 1)(x, t)/func.grad(u, 0)(x, t)"]),
        # the equation of motion of a Lagrangian
        ([PENDULUM, "--euler-lagrange", "q"],
         ["m*l*(l*func.grad(func.grad(q))(t) + g*sin(q(t)))"]),
        (["exp(c*t)*(m*q'(t)^2/2 - k*q(t)^2/2)", "--math", "--euler-lagrange", "q"],
         ["exp(c*t)*(c*m*func.grad(q)(t) + m*func.grad(func.grad(q))(t) + k*q(t))"]),
        (["L = ½ m l² θ̇² + m g l cos θ", "--math", "--euler-lagrange", "θ"],
         ["m*l*(l*func.grad(func.grad(θ))(t) + g*sin(θ(t)))"]),
        ([r"\frac12 m(\dot x_1^2 + \dot x_2^2) - \frac12 k (x_1 - x_2)^2", "--math",
          "--euler-lagrange", "x_1"],
         ["m*func.grad(func.grad(x_1))(t) + (x_1(t) - x_2(t))*k"]),
        ([KEPLER, "--euler-lagrange", "f", "--format", "latex"],
         [r"m r\left(t\right) \left(2 f'\left(t\right) r'\left(t\right) + "
          r"f''\left(t\right) r\left(t\right)\right)"]),
        # real numbers: their signs, and functions of inverse functions
        (["sqrt((x - 1)**2)"], ["sign(x - 1)"]),
        (["-x**2*log(abs(x))"], ["-2*x*log(abs(x)) - x"]),
        (["abs(x)**3"], ["3*x*abs(x)"]),
        (["acos(x/sqrt(x**2 + y**2))", "--wrt", "x"], ["-abs(y)/(x**2 + y**2)"]),
        (["tan(atan(x))"], ["1"]),
        (["exp(-(log(x) - mu)**2/(2*s**2))/x", "--wrt", "x"],
         ["exp(-(mu - log(x))**2/(2*s**2))*((mu - log(x))/s**2 - 1)/x**2"]),
        (["log(tan(pi/4 + p/2))"], ["1/cos(p)"]),
        # an order that is a letter
        (["exp(a*x)", "--wrt", "x", "--order", "n"], ["exp(a*x)*a**n"]),
        (["x*sin(x)", "--order", "n"], ["x*sin(x + pi*n/2) - n*cos(x + pi*n/2)"]),
        (["3/(a*x + b) + sinh(x)", "--wrt", "a", "--order", "k"],
         ["3*(-x)**k*exp(lgamma(k + 1))*(a*x + b)**(-k - 1)"]),
        (["sqrt(x) + 2**x", "--order", "n"],
         ["(-1)**(n - 1)*x**(1/2 - n)*exp(lgamma(n - 1/2) - lgamma(-1/2)) + 2**x*log(2)**n"]),
        (["log(x)", "--order", "n", "--format", "latex"],
         [r"\frac{\mathrm{d}^{n}f}{\mathrm{d}x^{n}} = "
          r"\frac{\left(-1\right)^{n - 1} \left(n - 1\right)!}{x^{n}}"]),
        # expressions put in
        (["x*y", *AREA, "--wrt", "r"], ["r*sin(2*t)"]),
        (["x - y", "--x", "y", "--y", "x"], ["y.grad = 1", "x.grad = -1"]),  # at once
    ],
)  # fmt: skip
def test_diff(argv: list[str], expected: list[str]) -> None:
    assert lines("diff", *argv) == expected


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("m*v**2/2 - k*q**2/2", "q is read otherwise than as q(t) and func.grad(q)(t)"),
        ("m*func.grad(func.grad(q))(t)**2", "q is read otherwise than as"),
        ("func.grad(q)(t)**2*q(s)", "the Lagrangian has q of s and of t"),
        ("k*q(t)**2", "the Lagrangian has no velocity"),
        ("T = func.grad(q)(t)**2; T - q(t)", "the Lagrangian must be one expression"),
        ("func.grad(q)(2*t)**2", "the time must be a variable"),
    ],
)
def test_lagrangians_that_are_refused(source: str, said: str) -> None:
    with pytest.raises(LanguageError, match=re.escape(said)):
        equation_of_motion(source, "q")


@sweep(
    ("argv", "expected"),
    [
        (["sin(x)**2 + cos(x)**2"], ["1"]),
        ([EULER_LAGRANGE], ["m*func.grad(func.grad(x))(t) + k*x(t)"]),
        (["x**2 + y**2", *AREA], ["r**2"]),
        (["sqrt(x**2)", "--assume", "x < 0"], ["-x"]),
        (["abs(x*y)", "--assume", "x < 0, y < 0"], ["x*y"]),
        (["cos(pi*n) + sin(2*pi*n)", "--assume", "n integer"], ["(-1)**n"]),
        (["log(x**3)", "--assume", "x > 0", "--format", "latex"],
         [r"3 \log\left(x\right)"]),
        (["x@A.T@y", "--assume", "A symmetric"], ["x@A@y"]),
        (["A.T + A", "--assume", "A symmetric"], ["2*A"]),  # so it is square
        (["Q.T@Q", "--assume", "Q orthogonal"], ["eye(Q.shape[0])"]),
        (["abs(x*y)/x", "--assume", "x > 0"], ["abs(y)"]),
        (["sqrt(m*g/k)*sqrt(g*k/m)", "--assume", "m > 0, g > 0, k > 0"], ["g"]),
        (["sqrt(x**2)"], ["abs(x)"]),
        (["abs(x*y)/abs(y)"], ["abs(x)"]),
        (["cos(x - 3*pi/2) + sin(5*pi/6)"], ["1/2 - sin(x)"]),
        (["y/(exp(u) + 1)"], ["y*sigmoid(-u)"]),
        (["(exp(x) - exp(-x))/(exp(x) + exp(-x))"], ["tanh(x)"]),
        (["t**2*exp(t)/(exp(t) - 1)**2"], ["t**2/(4*sinh(t/2)**2)"]),
        (["x*x*x + y", "--format", "python"],
         ["def value(x, y):", "    \"\"\"'x*x*x + y'.\"\"\"", "    return x**3 + y"]),
    ],
)  # fmt: skip
def test_simplify(argv: list[str], expected: list[str]) -> None:
    assert lines("simplify", *argv) == expected


@sweep(
    ("argv", "expected"),
    [
        (["sin(x)/x", "--x", "0"], ["1 - x**2/6 + x**4/120 - x**6/5040"]),
        (["x/(exp(x) - 1)", "--x", "0", "--order", "4"], ["1 - x/2 + x**2/12 - x**4/720"]),
        (["log(x)", "--x", "1", "--order", "2", "--format", "latex"],
         [r"x - 1 - \frac{\left(x - 1\right)^{2}}{2}"]),
        (["exp(x*y)", "--x", "0", "--y", "0", "--order", "4"], ["1 + x*y + x**2*y**2/2"]),
        (["exp(x)", "--x", "0", "--order", "1", "--format", "python"],
         ["def value(x):", "    \"\"\"'exp(x)'.\"\"\"", "    return x + 1"]),
        (["(1 + x)**n", "--x", "0", "--order", "2"], ["1 + x*n + x**2*n*(n - 1)/2"]),
        (["x**2", "--x", "1"], ["1 + 2*(x - 1) + (x - 1)**2"]),
        (["log(x - a)", "--x", "1/4", "--order", "1"],  # real only where a is less
         ["log(1/4 - a) + (4*x - 1)/(1 - 4*a)"]),
        (["2**x", "--x", "0", "--order", "2"], ["1 + log(2)*x + log(2)**2*x**2/2"]),
        (["atan2(y, x)", "--x", "1", "--y", "0", "--order", "2"], ["y - y*(x - 1)"]),
        (["hypot(x, y)", "--x", "3", "--y", "4", "--order", "2"],
         ["5 + (3*x + 4*y - 25)/5 + (4*x - 3*y)**2/250"]),
        (["hypot(x, 1)", "--x", "0", "--order", "4"], ["1 + x**2/2 - x**4/8"]),
        (["xlogy(x, 1 + x)", "--x", "0", "--order", "3"], ["x**2 - x**3/2"]),
        (["i0(x)", "--x", "0"], ["1 + x**2/4 + x**4/64 + x**6/2304"]),
        (["special.bessel_j1(2*x)", "--x", "0", "--order", "4"], ["x - x**3/2"]),
        (["i0(x)", "--x", "1", "--order", "2"],
         ["i0(1) + special.i1(1)*(x - 1) + (i0(1) - special.i1(1))*(x - 1)**2/2"]),
        (["stack([x, x]).sum()", "--x", "0"], ["2*x"]),
        (["special.zeta(2, x)", "--x", "1", "--order", "1"],
         ["special.zeta(2, 1) - 2*special.zeta(3, 1)*(x - 1)"]),
        (["where(x>0, x**2, x)", "--x", "1"], ["1 + 2*(x - 1) + (x - 1)**2"]),
        (["where(x != 0, sin(x)/x, 1)", "--x", "0", "--order", "4"], ["1 - x**2/6 + x**4/120"]),
        (["tanh(x/erfc(2))", "--x", "0", "--order", "3"], ["x/erfc(2) - x**3/(3*erfc(2)**3)"]),
        (["tanh(asinh(x)/erfc(2))", "--x", "1", "--order", "1"],  # no double has its slope
         ["tanh(asinh(1)/erfc(2)) + (x - 1)/(sqrt(2)*erfc(2)*cosh(asinh(1)/erfc(2))**2)"]),
    ],
)  # fmt: skip
def test_taylor(argv: list[str], expected: list[str]) -> None:
    assert lines("taylor", *argv) == expected


@sweep(
    ("argv", "expected"),
    [
        (["sin(x)", "--x", "0", "--order", "1:3"],
         ["order 1  x", "order 2  x", "order 3  x - x**3/6"]),
        (["sin(x)", "--x", "0", "--order", "3,1", "--plain"], ["1\tx", "3\tx - x**3/6"]),
        (["cos(x)", "--x", "0", "--order", "0,2", "--format", "latex"],
         ["T_{0} = 1", r"T_{2} = 1 - \frac{x^{2}}{2}"]),
    ],
    parts=1,
)  # fmt: skip
def test_polynomials_of_several_orders(argv: list[str], expected: list[str]) -> None:
    assert lines("taylor", *argv) == expected


@sweep(
    ("argv", "left"),
    [
        (["log(1 + x)", "--x", "0", "--order", "4"],
         "remainder = x**5/(5*(xi + 1)**5), with xi between 0 and x"),
        (["sqrt(x)", "--x", "1", "--order", "2"],
         "remainder = (x - 1)**3/(16*xi**(5/2)), with xi between 1 and x"),
        (["exp(x)", "--x", "0", "--order", "2", "--format", "latex"],
         r"R_{2} = \frac{e^{\xi} x^{3}}{6}, \quad \xi \text{ between } 0 \text{ and } x"),
        (["x**2", "--x", "1", "--order", "2"], "remainder = 0"),
        (["sin(xi)", "--xi", "0", "--order", "1"], "remainder = -sin(c)*xi**2/2, with c between 0 and xi"),
    ],
    parts=1,
)  # fmt: skip
def test_what_a_polynomial_leaves(argv: list[str], left: str) -> None:
    assert lines("taylor", *argv, "--remainder")[1] == left


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["x*y", "--x", "1", "--y", "1"], "--remainder is of functions of one variable"),
        (["sin(x)", "--x", "0", "--order", "1,3"], "hint: write --order 3"),
        (["sin(x)", "--x", "0", "--format", "python"], "--remainder is for text and LaTeX"),
        (["abs(x)", "--x", "1"], "holds where no kink lies between 1 and x"),
        (["y = x**2; y + x", "--x", "1"], "--remainder is of one expression"),
    ],
)
def test_what_is_said_of_a_remainder(argv: list[str], words: str) -> None:
    assert words in run("taylor", *argv, "--remainder").stderr


@pytest.mark.parametrize(("order", "words"), [("5:1", "is empty"), ("31", "numbers from 0 to 30")])
def test_what_is_no_order(order: str, words: str) -> None:
    result = run("taylor", "sin(x)", "--x", "0", "--order", order)
    assert result.exit_code == 2 and words in result.stderr


@sweep(
    ("argv", "words"),
    [
        (["abs(x)", "--x", "0"], "is not smooth there"),
        (["1/x", "--x", "0"], "is not smooth there"),
        (["sqrt(x)", "--x", "0"], "a root of zero has no series"),
        (["atan2(y, x)", "--x", "0", "--y", "0"], "is not smooth there"),
        (["maximum(x, y)", "--x", "1", "--y", "1"], "there is no Taylor polynomial"),
        (["where(x>0, x**2, x)", "--x", "0"], "x > 0 is true on one side of the point alone"),
        (["where(x>y, x**2, x)", "--x", "1"], "whether x > y depends on what is no number"),
        (["special.zeta(x, 2)", "--x", "3"], "the derivative for 'zeta' is not implemented."),
        (["1/x - (-1)**0.5", "--x", "2"], "expands a real number: this one is complex"),
        (["log(-x)", "--x", "1"], "no real number on both sides"),
        (["x*y"], "at which point?"),
        (["sum(x)", "--x", "1,2"], "expands in numbers: x is an array"),
        (["norm(x*ones(2))", "--x", "0"], "not smooth there (it has no derivative of order 1)"),
    ],
)
def test_what_has_no_taylor_polynomial(argv: list[str], words: str) -> None:
    result = run("taylor", *argv)
    assert result.exit_code and words in result.stderr


@pytest.mark.parametrize("form", ["python", "numpy", "torch", "jax"])
def test_formulas_are_programs_too(form: str) -> None:
    assert "x/y" in lines("diff", *CIRCLE, "--format", form)[-1]


def test_json() -> None:
    found = json.loads(run("diff", *CIRCLE, "--json").stdout)
    assert found["wrt"] == {"x": {"shape": [], "derivative": "-x/y"}} and found["general"] is True
    found = json.loads(run("simplify", "x + x", "--json").stdout)
    assert found["simplified"] == "2*x" and found["shapes"] == {"x": []}


@sweep(
    ("argv", "words"),
    [
        (["x**2 + y**2 == 1"], "say it with --of NAME"),
        (["x**2", "--of", "x"], "this is not an equation"),
        (["x**2 == 1", "--of", "y"], "'y' is not a variable (there are: x)"),
        ([*CIRCLE, "--jacobian"], "--jacobian and --of cannot be used together"),
        ([*CIRCLE, "--order", "3"], "a first derivative, and a second one"),
        (["tan(x)", "--order", "n"], "no closed form is known of tan(x): there is one of exp,"),
        (["x*log(x)", "--order", "n"], "no formula in n was found that holds for 1 to 6"),
        (["x**3", "--order", "n"], "are 0 from some order on: say a number"),
        (["exp(n*x)", "--order", "n"], "n is a variable of the expression"),
        (["sin(x)", "--order", "n", "--at"], "--order n has no value"),
        (["x*y", "--wrt", "z[0]"], "'z' is not a variable of the expression"),
        (["u = x; u = u*u; u", "--wrt", "u"], "u is assigned more than once"),
        (["f(x)*x", "--x", "2", "--at"], "f is not known, and has no value"),
        (["f(x)", "--x", "1,2"], "an unknown function takes no arrays"),
        (["f(x)", "--format", "python"], "f is not known: a program cannot call it"),
        (["y = x\nwhile y < 100:\n    y = y*2\ny"], "which way the program goes depends"),
        (["sinn(x)"], "did you mean `sin` or `sign`?"),
        (["D[Sin[x],x]"], 'gradcli diff "sin(x)" --wrt x'),
        (["curl([y, -x])"], 'gradcli diff "[y, -x]" --operator curl'),
        (["div([x**2, x*y])"], 'gradcli diff "[x**2, x*y]" --operator div'),
        (["x*y", "--along", "1,2,3"], "3 parts, and there are 2 variables"),
        (["x*y", "--operator", "div"], "needs a field of 2 components; this one has shape ()"),
    ],
)
def test_refusals(argv: list[str], words: str) -> None:
    result = run("diff", *argv)
    assert result.exit_code and words in result.stderr and "Traceback" not in result.stderr


@sweep(
    ("text", "read", "printed"),
    [
        ("x^2", "x**2", "x**2"),
        ("2x", "2*x", "2*x"),
        ("3x^2y", "3*x**2*y", "3*x**2*y"),
        ("ln x", "log(x)", "log(x)"),
        ("e^x", "exp(x)", "exp(x)"),
        ("|x|", "abs(x)", "abs(x)"),
        ("√2 x", "sqrt(2)*x", "sqrt(2)*x"),
        ("x'Ax", "x@A@x", "x@A@x"),
        ("x'*A*x", "x@A@x", "x@A@x"),
        ("X'X", "X.T@X", "X.T@X"),
        ("f''(x)", "func.grad(func.grad(f))(x)", "func.grad(func.grad(f))(x)"),
        (r"\frac{x}{2}", "x/2", "x/2"),
        ("5% of x", "5/100*x", "x/20"),
        ("if(x>0, x, 0)", "where(x > 0, x, 0)", "where(x > 0, x, 0)"),
        ("x^2 = 2y", "x**2 == 2*y", "x**2 == 2*y"),
    ],
)
def test_mathematics(text: str, read: str, printed: str) -> None:
    result = run("simplify", "--math", text)
    assert f"note: read as {read}\n" in result.stderr
    assert result.stdout == f"{printed}\n"


def test_what_is_right_is_read_as_it_stands() -> None:
    assert run("simplify", "--math", "x**2").stderr == ""


def test_a_formula_to_check_is_mathematics_too() -> None:
    given = "2x sin x + x^2 cos x"
    result = run("check", "--math", "x^2 sin x", "--against", given, "--wrt", "x")
    assert result.stdout.startswith("ok: x") and "2*x*sin(x) + x**2*cos(x)" in result.stderr


def test_columns_of_a_table_are_names(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("sinx,y\n1,2\n2,4\n3,6\n")
    assert run("map", "--math", "2 sinx", str(table), "--no-grad", "all").stdout.endswith("3,6,6\n")
    assert run("fit", "--math", "y = a sinx", str(table)).stdout.startswith("a = 2")
    assert "sinx is sin x" in run("eval", "--math", "2 sinx", "--x", "1").stderr


def test_a_session_reads_mathematics() -> None:
    lines = ":math\nx = 3\n2x^2\ndiff sin(u)^2 --wrt u\n:math\nx^2\n"
    result = CliRunner().invoke(main, ["repl"], input=lines, prog_name="gradcli")
    assert result.stdout == "18\nsin(2*u)\n" and "here it is written x**2" in result.stderr
    block = ":math\nx = 3\nfor i in range(2):\n    x = x*2\n\n2x\n"
    assert CliRunner().invoke(main, ["repl"], input=block).stdout == "24\n"


@sweep(
    ("text", "hint"),
    [
        ("x'*A*x", "here it is written x@A@x"),
        ("5% of 200", "here it is written 5/100*200"),
        ("tr(A@X)", "here it is written trace(A@X)"),
        ("=SUM(A1:A3)", 'gradcli eval "sum(A)" --A 1,2,3'),
        ("D[Sin[x],x]", 'gradcli diff "sin(x)" --wrt x'),
        ("if(x>0, x, 0)", "here it is written where(x > 0, x, 0)"),
        ("f(x)", "write f = lambda …; EXPR"),
    ],
)
def test_hints_for_what_others_write(text: str, hint: str) -> None:
    assert hint in run("eval", text).stderr


def test_a_reading_is_said() -> None:
    assert "curl by x, y, in this order" in run("diff", "[-y, x]", "--operator", "curl").stderr


def test_from_python() -> None:
    assert gradcli.diff("x**2 + y**2 == 1", of="y", wrt="x") == "-x/y"
    assert gradcli.diff("sum(x**2)", wrt="x[0]") == "2*x[0]"
    assert gradcli.diff("x*y", operator="grad") == "stack([y, x])"
    assert gradcli.diff("f(x)*x") == "f(x) + x*func.grad(f)(x)"
    assert gradcli.taylor("cos(x)", x=0, order=2) == "1 - x**2/2"
    assert gradcli.taylor("a*cos(x)", a="pi", x=0, wrt="x", order=2) == "pi - pi*x**2/2"
    assert gradcli.simplify("x**2 + y**2", x="r*cos(t)", y="r*sin(t)") == "r**2"
    assert gradcli.simplify("sqrt(x**2)", assume="x > 0") == "x"


def test_numbers_of_single_precision_are_exact() -> None:
    x = gradcli.tensor([1.0, 2.0], dtype=gradcli.float32)
    assert gradcli.diff("sum(x*tensor(1.)/3)", x=x) == "full_like(x, 1/3)"
    assert gradcli.diff("sum(x*sqrt(tensor(2.)))", x=x) == "sqrt(2)*ones_like(x)"
    assert gradcli.diff("sum(x*tensor([0.1, 0.2]))", x=x) == "tensor([0.1, 0.2])"
    assert gradcli.get_default_dtype() is gradcli.float32
    x = gradcli.tensor(0.5, dtype=gradcli.float64)  # beside sqrt(3) of single precision
    assert gradcli.diff("atan((1 - 2*x)/sqrt(3))", x=x) == "sqrt(3)/(2*(x - x**2 - 1))"


def test_a_formula_is_checked_from_python() -> None:
    assert gradcli.check("sum(x**2)", against="2*x", x=[1.0, 2.0])
    assert gradcli.check("x**3", against="6*x", order=2, x=2.0)
    assert gradcli.check("A@x", against="A", jacobian=True, wrt="x", A=[[1.0, 2.0]], x=[3.0, 4.0])
    wrong = gradcli.check("sin(2*x)", against="cos(2*x)", x=0.3)
    assert not wrong and wrong.mistake is not None and "2*cos(2*x)" in repr(wrong)
    with pytest.raises(LanguageError, match="one derivative"):
        gradcli.check("x*y", against="y", x=1.0, y=2.0)


@pytest.mark.parametrize("source", ["maximum(1e8, x)/frac(4)", "x/0", "x**2/(1 - 1)"])
def test_what_divides_by_zero_is_no_fault_of_ours(source: str) -> None:
    result = run("diff", source)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "error: division by zero: the gradient has no formula" in result.stderr


@pytest.mark.parametrize(
    ("source", "against", "right"),
    [
        ("x*(1/x)", "0", True),  # the gradient is 2e-16 where the point's digits make it so
        ("exp(log(x) + 1)/x", "0", True),
        ("x**2", "2*x*(1 + 1e-12)", True),
        ("x**2", "2.00000001*x", False),
        ("x*(1/x)", "1e-12", False),
    ],
)
def test_rounding_is_no_mistake(source: str, against: str, right: bool) -> None:
    result = run("check", source, "--against", against)
    assert result.exit_code == int(not right), result.output
