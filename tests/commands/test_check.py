"""`gradcli check`: gradients against differences and against formulas."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.commands.running import run
from tests.sweep import sweep

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

NET = "h = tanh(W1@x); y = W2@h; sum((y-t)**2)"


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
    assert "to blame: WrongSquare in `square(x)`: its own gradient by x[" in result.stdout
    assert "(of a sum of its elements with random weights)" in result.stdout
    found = json.loads(run("check", "square(x)", "--load", wrong, "--x", "3", "--json").stdout)
    assert found["ok"] is False
    assert found["inputs"]["x"]["analytical"] == 3
    assert found["inputs"]["x"]["numerical"] == pytest.approx(6)
    assert found["inputs"]["x"]["max_error"] == pytest.approx(0.5)
    assert found["blame"]["operator"] == "WrongSquare"


def test_detached() -> None:
    result = run("check", "x*detach(x)", "--x", "3")
    assert result.exit_code == 1
    assert "detach stops gradients" in result.stdout


SLOPES = "g, = autograd.grad((x**3).sum(), x{}); (g**2).sum() + x.sum()"


@pytest.mark.parametrize(
    ("source", "code", "words"),
    [
        (SLOPES.format(", create_graph=True"), 0, "ok: x"),
        (SLOPES.format(""), 1, "without create_graph=True gradients are constants"),
        ("y = x**2; z = y*3; y.retain_grad(); z.sum()", 0, "ok: x"),
    ],
)
def test_a_program_that_asks_for_gradients_on_its_way(source: str, code: int, words: str) -> None:
    result = run("check", source, "--x", "1,2")
    assert (result.exit_code, words in result.stdout) == (code, True), result.output


def test_a_kink() -> None:
    result = run("check", "sum(abs(x))", "--x", "0,2")
    assert result.exit_code == 0, result.output
    assert 'x[0] is at a kink of abs in "abs(x)": slopes -1 and 1; ' in result.stdout


@pytest.mark.parametrize(
    ("text", "x", "words"),
    [
        ("floor(x)", "2", 'jump of floor in "floor(x)": slope 0 to both sides; PyTorch takes 0'),
        ("sign(x)", "0", 'jump of sign in "sign(x)": slope 0 to both sides; PyTorch takes 0'),
        ("where(x >= 2, x**2, 0)", "2", "jump: slope 0 to the left, 4 to the right"),
        ("where(x > 2, x**2, 1000*x)", "2", "jump: slope 1000 to the left, 4 to the right"),
        ("abs(x - 2)", "2", 'kink of abs in "abs(x - 2)": slopes -1 and 1; PyTorch takes 0'),
    ],
)
def test_a_jump_is_no_kink(text: str, x: str, words: str) -> None:
    result = run("check", text, "--x", x)
    assert (result.exit_code, words in result.stdout) == (0, True), result.output


def test_a_wrong_gradient_at_a_jump_is_found() -> None:
    result = run("check", "where(x >= 2, x**2 + 3*(x - x.detach()), 0)", "--x", "2")
    assert result.exit_code == 1
    assert result.stdout.startswith("x is at a jump: slope 0 to the left, 4 to the right")


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
    assert result.stdout.startswith("no slope to check: x: analytical inf")
    assert "at the edge of its domain" in result.stdout and "blame" not in result.stdout
    result = run("check", "x**1.5", "--x", "0")
    assert (result.exit_code, result.stdout) == (0, "ok: x (max error 0.0e+00, differences)\n")


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
    # a factor
    *(("x**2", "x"), ("sum((x - y)**2)", "x - y"), ("norm(x)**2", "x"), ("sum(A**2)", "A", "A")),
    *(("exp(x)", "exp(x)*(1 + 1e-8)"), ("sin(1000*x)", "1000*cos(1000*x + 1e-6)")),
    # a transpose: right for symmetric matrices
    *(("dot(x, A@x)", "2*A@x"), ("dot(x, A@x)", "2*A.T@x"), ("logdet(A)", "inverse(A)", "A")),
    *(("linalg.det(A)", "linalg.det(A)*inverse(A)", "A"), ("x@A@y", "outer(y, x)", "A")),
    *(("sum(inverse(A))", "-inverse(A)@ones_like(A)@inverse(A)", "A"), ("trace(A@B)", "B", "A")),
    *(("sum(linalg.solve(A, b))", "inverse(A)@ones_like(b)", "b"), ("sum(A@x)", "A.sum(1)")),
    # a sign, on one side of a kink or everywhere
    *(("x**4 - x**2", "abs(4*x**3 - 2*x)*sign(x)"), ("abs(x)", "1"), ("sqrt(x**2)", "1")),
    *(("relu(x)", "x"), ("abs(x)**3", "3*x**2"), ("log(abs(x))", "1/abs(x)"), ("cos(x)", "sin(x)")),
    *(("where(x > 0, x**2, -x)", "where(x > 0, 2*x, 1)"), ("1/x", "-1/x**2*sign(x)")),
    *(
        ("exp(-x**2/2)", "x*exp(-x**2/2)"),
        ("x**3", "3*x*abs(x)"),
        ("maximum(x, 0)", "(x > 0.5)*1."),
    ),
    # far out, or near 0
    *(("F.huber_loss(x, y)", "x - y"), ("clamp(x, -2, 2)", "1"), ("x + 1e-3*x**2", "1")),
    # small
    *(("1e-9*x**2", "-2e-9*x"), ("1e-9*x**2", "2.00000001e-9*x"), ("x*y + 1e-9*x*x", "y")),
    *(("exp(x)*1e-200", "exp(x)*2e-200"), ("1e6*x + sin(x)", "1e6 + cos(x)*1.01")),
    # a term, an index
    *(("dot(x, x)*sum(x)", "2*x*sum(x)"), ("sum((x/sum(x))**2)", "2*x/sum(x)**2")),
    *(("sum(x[1:]*x[:-1])", "roll(x, 1, 0) + roll(x, -1, 0)"), ("prod(x)", "prod(x)/x**2")),
    *(("sum(diff(x)**2)", "2*cat([x[:1]*0, diff(x)])"), ("cumsum(x, 0)@w", "cumsum(w, 0)")),
    *(("sum(softmax(x, 0)*y)", "softmax(x, 0)*y"), ("amax(x)", "(x == x[0])*1.")),
    # right for one number, or for three
    *(("mean((x - y)**2)", "2*(x - y)"), ("std(x)", "(x - mean(x))/std(x)/x.numel()")),
    *(("mean(x**2)", "2*x/3"), ("dot(x, x)", "2*x*x.shape[0]/3"), ("sum(x/sum(x))", "1/sum(x)")),
    # right for numbers, or among numbers, and not for arrays of one size
    *(("F.binary_cross_entropy_with_logits(x, y)", "sigmoid(x) - y"), ("mean(w*x)", "x", "w")),
    *(("sum(A + x)", "1 + x.numel()"), ("sum((x - m)**2)", "2*m - 2*sum(x)", "m")),
    *(("sum((x - m)**2)", "-2*mean(x - m)", "m"),),
    *(("mean(x**2)*sum(y)", "2*x*sum(y)"), ("sum(x.reshape(-1))", "2*ones_like(x.reshape(-1))")),
    # right on one side of what a number of the program, or of the formula, tells apart
    *(("where(x < 3, x**2, x**3)", "2*x"), ("where(x < 3, x**2, 0)", "where(x < 2.9, 2*x, 0)")),
    *(("abs(x - 5)", "-1"), ("clamp(x, -6, 6)", "1"), ("relu(x - 7)", "0"), ("maximum(x, 2)", "0")),
    *(("x**2 if x > 5 else x", "1"), ("where(exp(x) < 1000, x, 2*x)", "1"), ("sqrt(x - 5)", "0.5")),
    ("relu(x/100 - 3)", "0"),
]


@sweep("row", WRONG_FORMULAS, parts=5, often=1)
def test_wrong_formulas_are_caught(row: tuple[str, ...]) -> None:
    expr, formula, *name = row
    result = run("check", expr, "--wrt", *(name or ["x"]), "--against", formula)
    assert result.exit_code == 1, result.output
    refused = "and the gradient (" in result.stderr and "formula has shape" in result.stderr
    assert result.stdout.startswith("wrong gradient: ") or refused


RIGHT_FORMULAS = [
    *(("dot(x, A@x)", "(A + A.T)@x"), ("logdet(A)", "inverse(A).T", "A"), ("trace(A@A)", "2*A.T", "A")),
    *(("mean(x**2)", "2*x/x.numel()"), ("log(x)", "1/x"), ("sum(cholesky(A)**2)", "eye(A.shape[0])", "A")),
    *(("trace(A@B)", "B.T", "A"), ("sum((A@x - b)**2)", "2*A.T@(A@x - b)"), ("norm(x)", "x/norm(x)")),
    *(("abs(x)**3", "3*x*abs(x)"), ("var(x)", "2*(x - mean(x))/(x.numel() - 1)"), ("x*y", "y")),
    *(("a*sum(x)", "sum(x)", "a"), ("a*sum(x)", "a"), ("lgamma(x)", "digamma(x)"), ("x % 2", "1")),
    *(("sin(1e5*x)", "1e5*cos(1e5*x)"), ("1e-200*exp(x)", "1e-200*exp(x)"), ("x**y", "y*x**(y-1)")),
    *(("tanh(30*x)", "30*(1 - tanh(30*x)**2)"), ("relu(x)", "(x > 0)*1."), ("prod(x)", "prod(x)/x")),
    *(("sum(A@A)", "A.sum(0)[:, None] + A.sum(1)[None, :]", "A"), ("exp(300*x)", "300*exp(300*x)")),
    *(("cumsum(x, 0)@w", "flip(cumsum(flip(w, (0,)), 0), (0,))"), ("asin(x)", "1/sqrt(1 - x**2)")),
    ("F.cross_entropy(x, tensor(1))", "softmax(x, 0) - (arange(x.numel()) == 1)*1"),
    # by a number among arrays
    *(("sum((x - m)**2)", "-2*sum(x - m)", "m"), ("mean((x - c)**2)", "2*(c - mean(x))", "c")),
    *(("sum((y - w*x - b)**2)", "-2*sum(x*(y - w*x - b))", "w"), ("mean(w*x)", "mean(x)", "w")),
    *(("lgamma(a) + sum(x*a)", "digamma(a) + sum(x)", "a"), ("sum(x**p)", "sum(x**p*log(x))", "p")),
    *(("mean(w*x)", "x/x.numel()", "w"), ("sum(A + x)", "A.numel()/x.numel()*ones_like(x)")),
    ("F.binary_cross_entropy_with_logits(x, y)", "(sigmoid(x) - y)/x.numel()"),
    *(("sum(x**2 + y**2)", "2*y", "y"), ("logsumexp(x + c, 0)", "1", "c"), ("sum(A*x)", "A")),
    *(("sqrt(x - 5)", "1/(2*sqrt(x - 5))"), ("floor(x)", "0"), ("abs(x - 5)", "sign(x - 5)")),
    *(("sum(softmax(x, 0)*y)", "softmax(x, 0)*(y - sum(softmax(x, 0)*y))"), ("maximum(x, 2)", "x > 2")),
]  # fmt: skip


@sweep("row", RIGHT_FORMULAS, parts=3, often=1)
def test_right_formulas_pass(row: tuple[str, ...]) -> None:
    expr, formula, *name = row
    result = run("check", expr, "--wrt", *(name or ["x"]), "--against", formula)
    assert result.exit_code == 0, result.output


# Operations of a user's own: forward, backward, the shape (where it matters).
WRONG_FUNCTIONS = [
    *(("x*x", "g*x"), ("x**3", "3*g*x*x.abs()"), ("x.abs()", "g"), ("x.relu()", "g*(x > -0.5)")),
    *(("x.exp()", "g*x.exp()*1.00001"), ("1e-9*x**2", "-2e-9*g*x"), ("1e-12*x**3", "g*1e-12*x")),
    *(("torch.where(x > 0, x, 0.1*x)", "g*torch.where(x > 0, 1., 0.2)"), ("x + 1e-3*x**2", "g")),
    *(("torch.tanh(x)", "g*(1 - torch.tanh(x))"), ("x*x*1e8", "g*2e8*x*(1 + 1e-5)")),
    *(("torch.floor(x)*x", "g*(torch.floor(x) + 1e-3)"), ("torch.clamp(x, -2, 2)", "g")),
    *(("x.sum()", "g*torch.ones_like(x)*2/x.numel()"), ("x.mean()", "g*torch.ones_like(x)/3")),
    *(("(x*x).sum()", "2*g*x*(torch.arange(x.numel()).reshape(x.shape) < 3)"), ("x.T", "g.reshape(x.shape)")),
    *(("x.cumsum(0)", "g.cumsum(0)", "3"), ("x.flip(0)", "g", "3"), ("x.sort()[0]", "g", "3")),
    *(("x.softmax(0)", "g*x.softmax(0)*(1 - x.softmax(0))", "3"), ("x.amax()", "g*(x == x[0])", "3")),
    *(("(x[1:]*x[:-1]).sum()", "g*(x.roll(1) + x.roll(-1))", "4"), ("x.roll(1)", "g.roll(1)", "3")),
    *(("x @ x", "g @ x.T", "3,3"), ("x.T @ x", "2*x @ g", "3,3"), ("x.tril()", "g", "3,3")),
    *(("torch.linalg.det(x)", "g*torch.linalg.det(x)*torch.linalg.inv(x)", "3,3"),),
    *(("x.trace()", "g*torch.ones_like(x)", "3,3"), ("x.sum(0)", "g[:, None].expand(x.shape)", "3,3")),
]  # fmt: skip

OWN = """
import gradcli as torch
def function(forward, backward):
    class Made(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return forward(x)
        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return backward(g, x)
    return Made.apply
"""


@pytest.mark.filterwarnings("ignore")
@sweep("row", WRONG_FUNCTIONS, name=lambda row: row[0], parts=6, often=1)
def test_wrong_functions_are_caught(row: tuple[str, ...], tmp_path: Path) -> None:
    forward, backward, *shape = row
    path = tmp_path / "own.py"
    path.write_text(f"{OWN}own = function(lambda x: {forward}, lambda g, x: {backward})\n")
    shapes = [word for s in shape for word in ("--shape", f"x={s}")]
    result = run("check", "own(x)", "--load", str(path), *shapes)
    assert result.exit_code == 1, result.output
    assert result.stdout.startswith("wrong gradient: x") and "to blame: Made" in result.stdout


NASTY = [
    # poles, and the ends of a domain
    *(("lgamma(x)", "-2.0001"), ("lgamma(x)", "-2.9999999"), ("lgamma(x)", "1e-7")),
    *(("lgamma(x)", "1e-12"),),
    *(("digamma(x)", "-0.999"), ("tan(x)", "1.5707963"), ("tan(x)**2", "1.57"), ("1/x**3", "1e-5")),
    *(("asin(x)", "0.9999999"), ("asin(x)", "-0.9999999999"), ("acosh(x)", "1.0000001")),
    *(("atanh(x)", "0.99999999"),),
    *(("sqrt(x)", "1e-9"), ("sqrt(x)", "1e-300"), ("log(x)", "1e-300"), ("x*log(x)", "1e-300")),
    *(("xlogy(x, x)", "1e-15"),),
    *(("log(abs(x))", "1e-8"), ("logit(x)", "1e-12"), ("cholesky(X).sum()", "1,0.99999;0.99999,1")),
    *(("log1p(x)", "-0.9999999"), ("x**1.5", "1e-10"), ("x**x", "0.001"), ("erfinv(x)", "0.9999999")),
    # beside a kink
    *(("abs(x)", "1e-4"), ("abs(x)", "-1e-9"), ("abs(x)", "1e-12"), ("relu(x) + relu(-x)", "1e-6")),
    *(("x*abs(x)", "0"),),
    *(("maximum(x, 1)", "1.0000000001"), ("clamp(x, 0, 1)", "0.9999999999")),
    *(("max(x)", "1,1.000000001"),),
    *(("floor(x)*x", "2.9999999"), ("x % 1", "1000000.3"), ("fmod(x, 0.1)", "100.05")),
    *(("norm(x)", "1e-8,0"),),
    *(("where(x > 1, x**2, 2*x - 1)", "1"), ("atan2(x, 1e-8)", "0")),
    *(("sort(x)[0][0]*x[1]", "1,1.00000001"),),
    # saturated
    *(("tanh(x)", "13"), ("tanh(x)", "20"), ("sigmoid(x)", "40"), ("sigmoid(x)", "-700")),
    *(("exp(-x)", "700"),),
    *(("softmax(x, 0)[0]", "800,0,-800"), ("logsumexp(x, 0)", "1000,-1000,0"), ("erf(x)", "5")),
    *(("exp(x)", "700"),),
    # periodic
    *(("sin(1e5*x)", "1"), ("sin(x)", "1e8"), ("abs(sin(2048*pi*x) + 2)", "1")),
    *(("abs(cos(2048*pi*x)) + x", "1"),),
    # large and small
    *(("x**3 + x**4", "0"), ("x**2", "1e-160"), ("dot(x, x)", "1e-150,1e150")),
    *(("sum(x**2)", "arange(30.)*1e10"),),
    *(("exp(30*x)", "20"), ("prod(x)", "1e-100,1e100,2"), ("prod(x)", "0,2,3")),
    *(("x/norm(x)", "1e-9,1e-9"),),
    *(("(1e8 + x)**2 - 1e16", "1"), ("(1e6 + abs(x)) - 1e6", "3"), ("1e10 + sin(x)", "1")),
    *(("3 + 0*x", "1e300"),),
    *(("x*abs(x)", "1e-300"), ("x", "5e-324")),
    # a bend within a step, and values that are less exact than they are small
    *(("linalg.solve(X, ones(2))", "1,1;1,1.0000000001"), ("linalg.pinv(X).sum()", "1,2;3,4;5,6")),
    *(("linalg.inv(X)[0, 0]", "1,1;1,1.0000000001"), ("(1 + x)**(1/x)", "1e-5")),
    *(("atanh(x)", "0.999999999999"), ("inverse(X).sum()", "1,2;2,4.0000000001")),
    ("linalg.solve(X, arange(1., 3)).sum()", "1,2;2,4.0000000001"),
    # what cancels on the way
    *(("1 + erf(x)", "-7"), ("1 - tanh(x)**2", "18.5"), ("1 - sigmoid(x)", "40")),
    *(("1 - cos(abs(x))", "1e-9"), ("log(1 + exp(-abs(x)))", "38")),
]  # fmt: skip


# At a point: forward, backward, the point.
WRONG_AT = [
    *(("1e-150*x**2", "-2e-150*g*x", "3"), ("x**2", "2.001*g*x", "1e-150")),
    *(("x.exp()", "g*x.exp()*1.0001", "-300"), ("x.exp()", "g*x.exp()*1.0001", "100")),
    *(("x**2", "2.001*g*x", "1e150"), ("x.log()", "1.001*g/x", "1e-300")),
    ("(x*x).sum()", "2*g*torch.where(x < 1, 2*x, x)", "1e-2,1e5"),
    ("1/(x - 1).abs()", "-2*g/(x - 1)**2", "1.0000000001"),
]


@sweep(("forward", "backward", "at"), WRONG_AT, parts=1)
def test_wrong_functions_are_caught_at_any_scale(
    forward: str, backward: str, at: str, tmp_path: Path
) -> None:
    path = tmp_path / "own.py"
    path.write_text(f"{OWN}own = function(lambda x: {forward}, lambda g, x: {backward})\n")
    result = run("check", "own(x)", "--load", str(path), "--x", at)
    assert result.exit_code == 1, result.output
    assert result.stdout.startswith("wrong gradient: x") and "to blame: Made" in result.stdout


@pytest.mark.parametrize(
    ("forward", "slope", "at", "words"),
    [
        ("(x*x).abs()", "2*g*x", "", " of 1200 elements, and all together"),
        ("(x*x).abs()", "2*g*x*(1 + (arange(1200).view(x.shape) == 701)*0.5)", "[11, 41]", ""),
        ("(x*x).abs()", "2*g*x*(1 - (arange(1200).view(x.shape) == 11)*2.0)", "[0, 11]", ""),
        ("x**3", "3.0001*g*x*x", "", "relative error 3"),
    ],
)
def test_of_many_elements_the_wrong_one_is_found(
    forward: str, slope: str, at: str, words: str, tmp_path: Path
) -> None:
    path, data = tmp_path / "own.py", tmp_path / "x.npy"
    own = f"from gradcli import arange\nown = function(lambda x: {forward}, lambda g, x: {slope})\n"
    path.write_text(OWN + own)
    np.save(data, np.random.default_rng(3).uniform(-2, 2, (20, 60)))
    result = run("check", "own(x).sum()", "--load", str(path), "--x", f"@{data}")
    assert result.exit_code == (slope != "2*g*x")
    assert words in result.stdout and f"x{at}" in result.stdout


@sweep(("expr", "at"), NASTY, parts=4, often=1)
def test_nasty_right_gradients_pass(expr: str, at: str) -> None:
    result = run("check", expr, "--X" if "X" in expr else "--x", at)
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
    assert f"slopes {left} and {right}; " in result.stdout


def test_a_triangle_that_is_not_read() -> None:
    result = run("check", "cholesky(A).sum()", "--shape", "A=3,3", "--samples", "1")
    assert result.exit_code == 0, result.output


def test_a_random_expression_draws_the_same_at_every_point() -> None:
    result = run("check", "randn(3) @ exp(x)", "--x", "1,2,3")
    assert result.exit_code == 0, result.output


@sweep(
    "argv",
    [
        ["--x", "2"],
        [],
        ["--against", "2*x"],
        ["--x", "2", "--second-order"],
        ["--x", "2", "--json"],
        ["--samples", "2", "--json"],
    ],
    parts=1,
)
def test_what_the_program_prints_is_printed_once(argv: list[str]) -> None:
    result = run("check", "print('once'); y = x*x; y", *argv)
    assert result.exit_code == 0, result.output
    if "--json" in argv:
        json.loads(result.stdout)
    assert (result.stderr if "--json" in argv else result.stdout).count("once") == 1


def test_a_formula_for_vectors_says_for_which_shapes() -> None:
    """For matrices it is another one."""
    result = run(
        "check", "sum(y*log_softmax(x, 0))", "--wrt", "x", "--against", "y - softmax(x, 0)*sum(y)"
    )
    assert result.exit_code == 0
    assert "note: shapes: y ∈ Rⁿ, x ∈ Rⁿ" in result.stderr


def test_no_gradient_of_a_value_that_is_nan() -> None:
    result = run("check", "std(x)", "--x", "2", "--against", "x")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "the value is nan there: no gradient can be checked at x = 2" in result.stderr


def test_the_error_of_one_triangle_is_that_of_symmetric_changes() -> None:
    found = json.loads(run("check", "cholesky(A).sum()", "--A", "2,1;1,3", "--json").stdout)
    assert found["ok"] and found["wrt"]["A"]["max_error"] < 1e-9


@pytest.mark.parametrize(
    "program, formula, wrt, says",
    [
        (NET, "2*W1.T@(W2.T@(y-t)*(1-h**2))", "x", "ok: x"),
        (NET, "2*outer(W2.T@(y-t)*(1-h**2), x)", "W1", "ok: W1"),
        (NET, "2*W1.T@(W2.T@(y-t)*(1-h))", "x", "wrong gradient: x"),
        ("x = 2*x; sum(x**2)", "8*x", "x", "ok: x"),  # a variable is what it was given
    ],
)
def test_a_formula_may_use_the_names_that_the_program_assigns(program, formula, wrt, says):
    result = run("check", program, "--against", formula, "--wrt", wrt)
    assert result.stdout.startswith(says), result.output
    assert "warning" not in result.stderr


# a term of 2*X.T@(X@w - y) + 2*lam*w that is wrong, what is said of it
@pytest.mark.parametrize(
    ("formula", "says"),
    [
        ("2*X.T@(X@w - y) + lam*w", "in the term `lam*w`: a factor 2 is missing"),
        ("2*X.T@(y - X@w) + 2*lam*w", "the sign of the term `2*X.T@(y - X@w)`"),
        ("2*X.T@(X@w - y) - 2*lam*w", "the sign of the term `2*lam*w`"),
        ("2*X.T@(X@w - y) + 2*lam*w + w", "the term `w` is too much"),
        ("r = X@w - y; X.T@r + 2*lam*w", "in the term `X.T@r`: a factor 2 is missing"),
    ],
)
def test_a_wrong_term_is_named(formula: str, says: str) -> None:
    result = run("check", "sum((X@w-y)**2) + lam*sum(w**2)", "--wrt", "w", "--against", formula)
    assert result.exit_code == 1 and says in result.stdout
