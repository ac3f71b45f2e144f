"""`gradcli diff`: derivatives from the shell."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

import gradcli
from gradcli.cli import main
from tests.commands.running import run
from tests.commands.terminal import in_terminal
from tests.sweep import sweep

LERP = (
    "2*einsum('j,ki,jl->ijkl', (1 - d).reshape(w.shape[1]) - (d*(1 - d)).reshape(w.shape[1]), x.T@x, "
    "eye(w.shape[1]))"
)
TENSOR = ["--shape=T=2,3,4", "--shape=x=2", "--shape=y=3", "--shape=z=4"]
SHAPES = ["--shape=x=2,3", "--shape=w=3,2", "--shape=c=2", "--shape=d=1,2"]
CROSS = ["--x=1,2;3,5;5,6", "--y=1,2;3,5;5,6"]


def lines(*argv: str) -> list[str]:
    result = run(*argv)
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


@sweep(
    ("argv", "expected"),
    [
        (["c*d", "--wrt", "c"], ["d"]),
        (["5*(a+b)"], ["a.grad = 5", "b.grad = 5"]),
        (["2*dot(x,x)"], ["4*x"]),
        (["sin(x)*y"], ["x.grad = cos(x)*y", "y.grad = sin(x)"]),
        (["sum((X@w-y)**2)", "--wrt", "w"], ["2*X.T@(X@w - y)"]),
        (["x/3"], ["1/3"]),
        (["t**2/2"], ["t"]),
        (["std**2"], ["2*std"]),
        (["T*x", "--wrt", "x"], ["T"]),
        (["sum(x)", "--shape", "x=4"], ["ones_like(x)"]),
        (["x**4", "--order", "3"], ["24*x"]),
        (["x**4", "--order", "5"], ["0"]),
        (["2*dot(x,x)", "--x", "0,1,2,3", "--at"], ["4*x = [0, 4, 8, 12]"]),
        (
            ["x*y", "--x", "3", "--y", "4", "--at"],
            ["x.grad = y = 4 at x = 3, y = 4", "y.grad = x = 3 at x = 3, y = 4"],
        ),
        (["1/(2+exp(-x))**2", "--cse"], ["v1 = exp(-x)", "2*v1/(v1 + 2)**3"]),
        (["1/(1+exp(-x))**2"], ["2*sigmoid(x)**2*sigmoid(-x)"]),
        (["sin(x)*y", "--plain"], ["x\tcos(x)*y", "y\tsin(x)"]),
        (["x if x > 0 else -x", "--x", "-2"], ["-1"]),
        (["x.detach()*x"], ["x"]),
        (["tensor(x)*x"], ["x"]),
        # exponents are not left as rounding makes them: 1.2 - 1 is 0.2, 7/6 - 1 is 1/6
        (["x**1.2"], ["1.2*x**0.2"]),
        (["x**2.2*0.1"], ["0.22*x**1.2"]),
        (["-6*x**(7/6)/7 + 3*x**(2/3)/2"], ["(1 - sqrt(x))/x**(1/3)"]),
        (["with no_grad():\n    c = x*2\nsum(c*x)", "--x", "3,4", "--at"], ["2*x = [6, 8]"]),
        (["special.bessel_j0(x)*x"], ["special.bessel_j0(x) - x*special.bessel_j1(x)"]),
        (["y = x**2; y*sin(y)"], ["2*x*(sin(x**2) + x**2*cos(x**2))"]),
        (["einsum('ijk,i,j,k->', T, x, y, z)", "--wrt=x", *TENSOR], ["T@z@y"]),
        # the program's own names stay where they make it shorter, and with --cse
        (
            [
                "r = A@x - b; q = r*r; sum(q*exp(q)*sin(r))",
                "--wrt=x",
                "--x=1,2",
                "--b=1",
                "--A=1,2;3,4",
            ],
            ["r = A@x - b", "q = r**2", "A.T@(exp(q)*(2*r*sin(r)*(q + 1) + cos(r)*q))"],
        ),
        (["y = x**2; y*sin(y)", "--cse"], ["y = x**2", "2*x*(sin(y) + y*cos(y))"]),
        (["clamp(x, a, tensor(1.0))", "--wrt", "a"], ["where((x < a) & (a < 1), 1, 0)"]),
        (
            ["dot(x, (C@y)*y)", "--wrt=x", "--x=1,2", "--y=3,4", "--C=1,2;3,4", "--at"],
            ["y*(C@y) = [33, 100]"],
        ),
        (["sum(c*(X@w)*y)", "--wrt", "w"], ["c*X.T@y"]),
        (["-(x%2)*y*(z%3)", "--wrt", "x"], ["-y*(z % 3)"]),
        (["(x % y)*x*y", "--wrt=y", "--order=2"], ["-2*x*(x//y)"]),
        (
            ["lerp(x@w, c, d)**2", "--wrt=w", "--order=2", *SHAPES],
            [LERP],
        ),
        (
            ["nn.functional.cross_entropy(x, tensor([0,1]))", "--x=1,2;3,5"],
            ["(softmax(x, 1) - tensor([[1.0, 0.0], [0.0, 1.0]]))/2"],
        ),
        (
            ["F.cross_entropy(x, y)", "--x=1,2;3,5", "--y=tensor([0,1])", "--wrt=x"],
            ["(softmax(x, 1) - one_hot(y, x.shape[1]))/x.shape[0]"],
        ),
        (
            ["F.nll_loss(x, y, reduction='sum')", "--x=1,2;3,5", "--y=tensor([0,1])", "--wrt=x"],
            ["-one_hot(y, x.shape[1])"],
        ),
        # a name that is only an index is an integer
        (["-log(softmax(x, 0)[k])"], ["softmax(x, 0) - one_hot(k, x.shape[0])"]),
        (["-log_softmax(x, 0)[1]"], ["softmax(x, 0) - eye(x.shape[0])[1]"]),
        (["x[k]**2", "--format=latex"], [r"\frac{\partial f}{\partial x} = 2 {x}_{k} e_{k}"]),
        (["x[-1]**2"], ["2*eye(x.shape[0])[-1]*x[-1]"]),
        (
            ["x[0]*x[-1]", "--order=2"],
            [
                "outer(eye(x.shape[0])[-1], eye(x.shape[0])[0]) + outer(eye(x.shape[0])[0], "
                "eye(x.shape[0])[-1])"
            ],
        ),
        # what cancels: inverses in a chain, deviations from a mean, equal traces, sums of exponentials
        (["trace(X@linalg.inv(X.T@X)@X.T)", "--shape=X=4,3"], ["zeros_like(X)"]),
        (["sum(linalg.inv(c*M))", "--wrt=c", "--shape=M=3,3"], ["-sum(linalg.inv(M))/c**2"]),
        (["sum(w*sum(X - mean(X, 0), 0))", "--wrt=w", "--shape=X=4,3"], ["zeros_like(w)"]),
        (["s*(trace(A@B) - trace(B@A))", "--wrt=s"], ["0"]),
        (["s*sum(M*eye(3))", "--wrt=s"], ["trace(M)"]),
        (["logsumexp(A@x + b, 0)", "--wrt=b"], ["softmax(A@x + b, 0)"]),
        (["split(x, [3, 0])[1]", "--shape=x=3", "--jacobian"], ["zeros(0, 3)"]),
        (["A[i, j]**2"], ["2*A[i, j]*outer(eye(A.shape[0])[i], eye(A.shape[1])[j])"]),
        (["(A@x)[i]", "--wrt=x"], ["A[i]"]),
        (["X[:, k]@x", "--wrt=X"], ["outer(x, eye(X.shape[1])[k])"]),
        (
            ["F.cross_entropy(x, k)", "--x=1,2,4", "--k=tensor(1)", "--wrt=x"],
            ["softmax(x, 0) - one_hot(k, x.shape[0])"],
        ),
        (
            ["x**2*y", "--order=2"],
            ["x.x.hessian = 2*y", "x.y.hessian = 2*x", "y.y.hessian = 0"],
        ),
        (["x**2*y", "--order=2", "--plain"], ["x.x\t2*y", "x.y\t2*x", "y.y\t0"]),
        (["sum(x**3)", "--x=1,2", "--order=2", "--at"], ["6*diag(x) = [[6, 0], [0, 12]]"]),
        (["tanh(A@x)", "--wrt=x", "--jacobian"], ["diag(1 - tanh(A@x)**2)@A"]),
        (
            ["x*y", "--shape=x=3", "--jacobian"],
            ["x.jacobian = y*eye(x.shape[0])", "y.jacobian = x"],
        ),
        (
            ["sum(X@y)", "--order=2", "--shape=X=2,3"],
            [
                "X.X.hessian = zeros(X.shape[0], X.shape[1], X.shape[0], X.shape[1])",
                "X.y.hessian = einsum('i,jk->ijk', ones(X.shape[0]), eye(X.shape[1]))",
                "y.y.hessian = zeros(y.shape[0], y.shape[0])",
            ],
        ),
        (["mean(x, 0, True)", "--x=1,2;3,5"], ["full_like(x, 1/x.shape[0])"]),
    ],
    parts=4,
    often=1,
)
def test_prints(argv: list[str], expected: list[str]) -> None:
    assert lines("diff", *argv) == expected


@sweep(
    ("argv", "part"),
    [
        (["sinc(s*(2 > 3))", "--format=torch", "--s=1"], "torch.sinc(s.new_tensor(0))"),
        (["linalg.cross(x, y, dim=0)", "--format=torch", *CROSS], "linalg.cross(x, y, dim=0)"),
        (["linalg.cond(x)", "--format=torch", "--x=1,2;3,5"], "torch.linalg.svd(x"),
        (["clamp(s, 0.9, 0.8)", "--format=python", "--s=0.95"], "min(max(s, 0.9), 0.8)"),
        (["quantile(x, 0.5, dim=1)", "--x=1,2,4;3,5,1"], "scatter_add("),
        (["nn.functional.layer_norm(x, (2,))", "--x=1,2;3,5"], "mean(x, 1, True)"),
        (["nn.functional.cross_entropy(x, tensor(1))", "--x=1,2", "--format=torch"], "nll_loss("),
        (
            ["nn.functional.cross_entropy(x, tensor([0,1]), label_smoothing=0.2)", "--shape=x=2,3"],
            "x",
        ),
        (["softmax(x, 1)", "--shape=x=0,2", "--format=numpy"], "zeros_like(x)"),
        (["tanh(combinations(x))", "--shape=x=3"], "masked_select("),
    ],
    parts=3,
    often=1,
)
def test_is_proved(argv: list[str], part: str) -> None:
    result = run("diff", *argv)
    assert result.exit_code == 0, result.output
    assert part in result.stdout


@pytest.mark.parametrize("sizes", ["--shape=X=m,n", "--shape=X=m,3", "--X=1,2;3,4;5,6"])
def test_lettered_sizes_give_full_rank(sizes: str) -> None:
    assert lines("diff", "det(X.T@X)", sizes)[-1] == "2*det(X.T@X)*X@linalg.inv(X.T@X)"


def test_at_a_singular_matrix_the_formula_of_regular_ones_is_noted() -> None:
    result = run("diff", "det(A)", "--A=1,2;2,4")
    assert result.stdout == "det(A)*linalg.inv(A).T\n"
    assert "at this point the formula is not a number: jacobian gives" in result.stderr


def test_json_of_second_derivatives() -> None:
    found = json.loads(lines("diff", "x**2*y", "--order=2", "--x=3", "--y=4", "--at", "--json")[0])
    assert found["wrt"] == {
        "x": {"shape": [], "hessian": {"x": "2*y", "y": "2*x"}, "derivative": "2*y", "value": 8.0},
        "y": {"shape": [], "hessian": {"y": "0"}, "derivative": "0", "value": 0},
    }
    assert found["values"] == {"x.x": 8.0, "x.y": 6.0, "y.y": 0}


@pytest.mark.parametrize(
    ("argv", "message", "hint"),
    [
        (
            ["cross(x, x[[1, 2, 0]])", "--shape=x=3", "--jacobian"],
            "the matrix of this derivative has no formula: it goes through linalg.cross",
            "gradcli jacobian computes its value without a formula",
        ),
        (
            ["sum(logcumsumexp(x, 0))", "--order=2", "--shape=x=2"],
            "the matrix of this derivative has no formula: it goes through gt",
            "gradcli hessian computes its value without a formula",
        ),
        (
            ["logdet(X.T@X)", "--shape=X=3,5"],
            "X.T@X is singular for every X of shape (3, 5)",
            "gradcli grad computes its value without a formula",
        ),
    ],
)
def test_matrices_without_a_formula(argv: list[str], message: str, hint: str) -> None:
    result = run("diff", *argv)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert message in result.stderr
    assert hint in result.stderr


@pytest.mark.parametrize("other", ["--order=2", "--show-steps"])
def test_a_jacobian_goes_alone(other: str) -> None:
    result = run("diff", "2*x", "--jacobian", other)
    assert (result.exit_code, "--jacobian" in result.stderr) == (2, True)


def test_json() -> None:
    found = json.loads(lines("diff", "sin(x)*y", "--json")[0])
    assert found["expression"] == "sin(x)*y"
    assert found["derivatives"] == {"x": "cos(x)*y", "y": "sin(x)"}
    at = json.loads(lines("diff", "x**2", "--x", "1,2", "--at", "--format", "json")[0])
    assert at["values"] == {"x": [2.0, 4.0]}


def test_feeds_back() -> None:
    (text,) = lines("diff", "exp(-x**2)*x")
    assert (
        lines("eval", text, "--x", "0.5")
        == lines("grad", "exp(-x**2)*x", "--x", "0.5", "--plain")[0].split("\t")[1:]
    )


def test_a_warning_is_said_once() -> None:
    """However often the program runs while its derivative is found and proved."""
    argv = ["diff", "F.huber_loss(x, y)", "--x", "0,1", "--y", "0.5"]
    assert CliRunner().invoke(main, argv).stderr.count("Using a target size") == 1


def test_notes_go_to_standard_error() -> None:
    result = run("diff", "2*dot(x,x)")
    assert result.stdout == "4*x\n"
    assert "x ∈ Rⁿ" in result.stderr


@sweep(
    ("argv", "code", "words"),
    [
        (["sinn(x)"], 2, "no function is called `sinn`"),
        (["x**2", "--at"], 2, "no value for x"),
        (["y = x\nwhile y < 9:\n    y = y*2\ny"], 1, "which way the program goes"),
        (["x.item()*x"], 1, "the program goes on with a number"),
        (["x*bincount((x > 0).long()).sum()", "--x", "1,2"], 1, "or write detach()"),
        # what grad refuses is refused in the same words
        (["nll_loss(z,t)", "--z", "1,2;3,4", "--t", "0,1"], 1, "expected target dtype to be Long"),
        (["x[i]", "--x", "1,2", "--i", "0"], 1, "tensors used as indices must be long"),
        (["x.item()*x", "--x", "2"], 1, "or write detach()"),
        (["x.item()*x", "--format", "python", "--x", "2"], 1, "the program goes on with a number"),
        (["rand(1)[0]*x"], 1, "draws random numbers"),
        (["nn.functional.dropout(x).sum()", "--x", "1,2"], 1, "draws random numbers"),
        (["x[x > 0].sum()", "--shape", "x=3"], 1, "how many elements there are"),
        (["x**2", "--wrt", "y"], 2, "'y' is not a variable"),
        (["x**2", "--shape", "x"], 2, "--shape wants NAME=SIZES"),
        (["x**2", "--shape", "y=3"], 2, "'y' is not a variable"),
        (["x@y", "--shape", "x=3", "--shape", "y=4"], 1, "size"),
        (["x*a", "--a", "tensor([1,2])", "--wrt", "a"], 1, "can require gradients"),
        (["x*2", "--x", "tensor([1,2])"], 1, "can require gradients"),
        (["x*2", "--x", "tensor([1,2])", "--no-grad", "x"], 2, "nothing to differentiate"),
        (["x*y", "--x", "tensor([1,2])", "--wrt", "y", "--no-grad", "y"], 2, "nothing to diff"),
        (["2*3"], 2, "nothing to differentiate"),
        (["nn.functional.max_pool1d(x, 2)", "--x", "[[1,2,3,4]]"], 1, "no form as an expression"),
    ],
    parts=1,
)
def test_refusals(argv: list[str], code: int, words: str) -> None:
    result = run("diff", *argv)
    assert result.exit_code == code, result.output
    assert words in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("source", "word"),
    [
        ("x.nanmedian()", "x.nanmedian"),
        ("nn.functional.grid_sample(x, y).sum()", "nn.functional.grid_sample"),
    ],
)
def test_what_has_no_form_is_called_by_the_users_name(source: str, word: str) -> None:
    shapes = ["--shape", "x=1,1,2,2", "--shape", "y=1,2,2,2"]
    result = run("diff", source, *(shapes if "y" in source else ["--shape", "x=3"]))
    assert result.exit_code == 1
    name = word.removeprefix("x.")
    assert f"the derivative of {name} has no form as an expression" in result.stderr
    assert "^" * len(word) in result.stderr


@pytest.mark.parametrize(
    ("source", "piece"),
    [
        ("x**2 + nanmedian(x)", "nanmedian"),
        ("sum(frexp(x)[0].detach()) + sum(frexp(x*2)[0])*2", "frexp"),
        ("sum(x[None]) + sum(F.fold(F.unfold(x[None], 2), (3, 3), 2))", "F.unfold(x[None], 2)"),
    ],
)
def test_what_has_no_form_is_pointed_at(source: str, piece: str) -> None:
    result = run("diff", source, "--shape", "x=1,3,3")
    assert result.exit_code == 1
    carets = next(line for line in result.stderr.splitlines() if set(line) == {" ", "^"})
    assert carets == " " * (4 + source.rindex(piece)) + "^" * len(piece)


@sweep(
    ("source", "alone"),
    [
        ("sum((X@w-y)**2)", False),
        ("mean((X@w-y)**2)", False),
        ("softmax(A@x, 0)[0]", False),
        ("x[0]*x[1]*x[2]", True),
        ("x@A@x", False),
        ("log(det(A))", False),
        ("sum(A@x + tensor([1., 2., 3.]))", False),  # the program runs in no other sizes
    ],
    parts=1,
)
def test_a_formula_is_proved_at_other_sizes(source: str, alone: bool) -> None:
    """What holds for the sizes that were worked out alone says so."""
    result = run("diff", source)
    assert result.exit_code == 0
    assert "note: shapes: " in result.stderr
    assert (" alone: for " in result.stderr) is alone


@pytest.mark.long
def test_sizes_in_letters_are_named_where_larger_ones_would_take_long() -> None:
    letters = [f"--shape={n}={s}" for n, s in (("T", "i,j,k"), ("x", "i"), ("y", "j"), ("z", "k"))]
    made = run("diff", "einsum('ijk,i,j,k->', T, x, y, z)", *letters, "--order", "2")
    assert made.stdout.count("zeros(") == 4 and not re.search(r"(zeros|eye)\(\d", made.stdout)


@sweep(
    ("argv", "said", "answer"),
    [
        (["log(sum(exp(x)))"], "x ∈ Rⁿ", "softmax(x, 0)"),
        (["trace(A@X)", "--wrt=A"], "A ∈ Rᵐˣⁿ, X ∈ Rⁿˣᵐ", "X.T"),
        (
            ["mean((y - a*x - b)**2)", "--wrt=b"],
            "y ∈ Rⁿ, a ∈ R, x ∈ Rⁿ, b ∈ R",
            "-2*mean(y - a*x - b)",
        ),
        (["x@A@x", "--shape", "A=k,k", "--wrt=A"], "x ∈ Rᵏ, A ∈ Rᵏˣᵏ", "outer(x, x)"),
        (
            ["sum(A@x)", "--shape", "A=m,n,x=n", "--wrt=x"],
            "A ∈ Rᵐˣⁿ, x ∈ Rⁿ",
            "sum(A, 0)",
        ),
        (["sum(A@x)", "--shape", "A=m,n", "--x", "1,2", "--wrt=A"], "A ∈ Rᵐˣ²", "x.expand_as(A)"),
        (["dot(linalg.cross(a, b), c)", "--wrt=c"], "a ∈ R³, b ∈ R³, c ∈ R³", "linalg.cross(a, b)"),
        (["einsum('ij,j->i', A, x)@y", "--wrt=x"], "A ∈ Rᵐˣⁿ, x ∈ Rⁿ, y ∈ Rᵐ", "A.T@y"),
        (["trace(einsum('ij,kj->ik', A, B))", "--wrt=B"], "A ∈ Rᵐˣⁿ, B ∈ Rᵐˣⁿ", "A"),
        (
            ["einsum('ijk,i,j,k->', T, x, y, z)", "--wrt=x"],
            "T ∈ Rⁿˣᵐˣᵏ, x ∈ Rⁿ, y ∈ Rᵐ, z ∈ Rᵏ",
            "T@z@y",
        ),
        (["cosine_similarity(x, y, 0)*0", "--wrt=x"], "x ∈ Rⁿ, y ∈ Rⁿ", "zeros_like(x)"),
        (["sum(kron(A, B))", "--wrt=A"], "A ∈ Rᵐˣⁿ, B ∈ Rᵖˣᵏ", "sum(B).expand_as(A)"),
        (["sum(eye(3)@X)"], "X ∈ R³ˣⁿ", "ones(3, X.shape[1])"),
        (["x[0]*x[1]*x[2]"], "x ∈ R³", "stack([x[2]*x[1], x[2]*x[0], x[0]*x[1]])"),
        (
            ["100*(x[1] - x[0]**2)**2 + (1 - x[0])**2"],
            "x ∈ R²",
            "stack([2*x[0] - 400*x[0]*(x[1] - x[0]**2) - 2, 200*(x[1] - x[0]**2)])",
        ),
        (
            ["A[0,0]*A[1,1] - A[0,1]*A[1,0]"],
            "A ∈ R²ˣ²",
            "stack([stack([A[1][1], -A[1][0]]), stack([-A[0][1], A[0][0]])])",
        ),
        (["x[0]*x[1]*(b@b)", "--wrt=b"], "x ∈ R², b ∈ Rⁿ", "2*x[0]*x[1]*b"),
        (["sum((A@x + b)**2)", "--A=1,2,3;4,5,6", "--wrt=b"], "x ∈ R³, b ∈ R²", "2*(A@x + b)"),
        (
            ["sum((X@W + b - Y)**2)", "--X=1,2,3;4,5,6", "--wrt=Y"],
            "W ∈ R³ˣⁿ, b ∈ Rⁿ, Y ∈ R²ˣⁿ",
            "2*(Y - X@W - b)",
        ),
        (
            ["sum((V@tanh(W@x) - y)**2)", "--wrt=V", "--shape", "W=3,2"],
            "V ∈ Rⁿˣ³, W ∈ R³ˣ², x ∈ R², y ∈ Rⁿ",
            "2*outer(V@tanh(W@x) - y, tanh(W@x))",
        ),
        (
            ["sum((V@tanh(W@x) - y)**2)", "--wrt=V", "--shape", "W=h,d"],
            "V ∈ Rⁿˣʰ, W ∈ Rʰˣᵈ, x ∈ Rᵈ, y ∈ Rⁿ",
            "2*outer(V@tanh(W@x) - y, tanh(W@x))",
        ),
        (["x@A@y", "--wrt=x", "--A=1,2;3,4;5,6"], "x ∈ R³, y ∈ R²", "A@y"),
    ],
    parts=1,
)
def test_shapes_are_said_in_letters(argv: list[str], said: str, answer: str) -> None:
    result = run("diff", *argv)
    assert (result.exit_code, result.stdout) == (0, answer + "\n"), result.output
    assert f"note: shapes: {said}; give others with --shape" in result.stderr


@pytest.mark.parametrize(
    ("source", "is_told"),
    [
        *[
            ("tanh(x)", False),
            ("x + x@x", True),
            ("X*tanh(Y)", False),
            ("where(x>0, x, x**2)", False),
        ],
        *[("x/norm(x)", True), ("softmax(W@x + b, 0)", True), ("outer(x, y)@z", True)],
        *[("flip(x, [0])", True), ("norm(x)", False)],
    ],
)
def test_a_value_that_is_summed_is_told_unless_elements_have_derivatives_of_their_own(
    source: str, is_told: bool
) -> None:
    result = run("diff", source)
    assert (
        "the value is not a scalar: this is the derivative of its sum" in result.stderr
    ) is is_told


def test_no_variable_of_a_formula_of_numbers_becomes_an_array() -> None:
    """NaN is a matter of the point: about 1 this is the root of a negative number."""
    result = run("diff", "sqrt(omega**2/c**2 - pi**2/d**2)", "--wrt", "omega")
    assert result.stdout == "omega/(c**2*sqrt(omega**2/c**2 - pi**2/d**2))\n"
    assert result.stderr == ""


# (program, options, the sizes for which the text is wrong; "" where it holds for any)
FOR_ONE_SIZE = [
    ("sum(x)*3 if x.shape[0]>3 else sum(x)", "--shape x=3", "x of shape (5,)"),
    ("sum(x)*3 if x.shape[0]>3 else sum(x)", "--x 1,2,3,4,5", "x of shape (3,)"),
    ("sum(x)*3 if x.shape[0]>99 else sum(x)", "--shape x=3", "x of shape (100,)"),
    ("2**len(x)*sum(x)", "--shape x=3", "x of shape (5,)"),
    ("sum(x**len(x))", "", "x of shape (5,)"),
    ("sum(x[:len(x)//2])", "--x 1,2,3,4", "x of shape (5,)"),
    ("h = 0\nfor v in x: h = tanh(w*h + v)\nh", "--shape x=3", "x of shape (5,)"),
    ("sum(x[:10])", "--shape x=5", "x of shape (7,)"),
    ("conv1d(x, w).sum()", "--shape x=1,1,5 --shape w=1,1,2", "w of shape (1, 1, 3)"),
    ("sum(x*arange(len(x)))", "--shape x=3", "x of shape (5,)"),
    ("sum(x*arange(len(x)))", "--x 3,", "x of shape (3,)"),
    ("sum(X)/X.shape[0] if X.shape[0] == X.shape[1] else sum(X)", "--shape X=3,3", "(5, 7)"),
    ("sum(x**len(x))", "--shape x=200000", "x of shape (5,)"),
    ("n = x.shape[0]; k = 2 if n//2*3 > 50 else 1; sum(x)*k", "--shape x=3", "x of shape ("),
    ("sum(x)*2 if x.shape[0] == 1 else sum(x)", "--shape x=3", "x of shape (1,)"),
    ("def f(n): return 1 if n > 99 else 2\nf(len(x))*sum(x)", "--shape x=3", "(100,)"),
    ("sum(x**3)*len(x)", "--order 2 --shape x=3", ""),
    ("sum(x) if x.ndim == 1 and len(x.shape) < 2 else 2*x.numel()", "--shape x=3", ""),
    ("assert len(x) > 0; n = len(x)\nwhile n > 1: n = n//2\nsum(x)/len(x)*n", "--shape x=3", ""),
    ("sum(x)*len(x)", "--x 1,2,3", ""),
    ("sum(x**2)", "--x 3,", ""),
    ("mean(x) if x[0] > 0 else sum(x)", "--x 1,2,3", ""),
    ("assert len(x) == 3; sum(x*tensor([1, 2, 3]))", "--shape x=3", ""),  # runs in no others
    ("-sum(log(b - A@x))", "--wrt x --shape A=5,3 --shape b=5 --shape x=3", ""),
]  # fmt: skip


@sweep(("source", "options", "wrong"), FOR_ONE_SIZE, parts=4, often=2)
def test_a_formula_for_one_size_says_so(source: str, options: str, wrong: str) -> None:
    result = run("diff", source, *options.split(), "--json")
    found = json.loads(result.stdout)
    assert found["general"] is (not wrong)
    said = " ".join(n for n in found["notes"] if "it is wrong" in n)
    assert bool(said) is bool(wrong) and wrong in said, said


@pytest.mark.parametrize(
    ("source", "options"),
    [
        ("sum(x)*3 if len(x) > 1e6 else sum(x)", "--shape x=3"),
        ("sum(x)*3 if len(x) > k else sum(x)", "--x 1,2,3 --k 5"),
        ("sum(x)*(len(x) > 10**8)", "--shape x=3"),
    ],
)
def test_what_is_not_proved_in_other_sizes_says_so(source: str, options: str) -> None:
    """A condition on sizes went one way only, or its other way is one of values too."""
    result = run("diff", source, "--wrt", "x", *options.split(), "--json")
    found = json.loads(result.stdout)
    assert found["general"] is False
    assert "this is checked for x of shape (3,) only" in found["notes"]


@pytest.mark.parametrize("form", ["python", "numpy", "torch", "jax"])
def test_a_program_for_one_size_says_so(form: str) -> None:
    """Its value too, where the gradient holds for any size."""
    for source, alone in [("sum(x**len(x))", True), ("sum(x)+2**len(x)", True), ("x@x", False)]:
        code = run("diff", source, "--shape", "x=3", "--format", form).stdout
        assert ("by x, for x of shape (3,) alone." in code) is alone


def test_a_formula_for_sizes_that_are_equal_says_so() -> None:
    result = run("diff", "trace(X)", "--shape", "X=3,3")
    assert result.stdout == "eye(X.shape[0])\n"
    like = "this is for shapes like X of shape (3, 3): for X of shape (5, 7) it is wrong"
    assert like in result.stderr
    code = run("diff", "trace(X)", "--shape", "X=3,3", "--format", "numpy").stdout
    assert "by X, for shapes like X of shape (3, 3)." in code


@sweep(
    ("argv", "expected"),
    [
        (["sum((X@w-y)**2)", "--wrt", "w"], r"2 X^{\top} \left(X w - y\right)"),
        (["dot(x, (C@y)*y)", "--wrt", "x"], r"y \odot \left(C y\right)"),
        (["sqrt(x_0)/alpha", "--wrt", "x_0"], r"\frac{1}{2 \sqrt{x_{0}} \alpha}"),
        (["x@A@y", "--wrt", "y"], r"A^{\top} x"),
        (["log(x@A@y)", "--wrt", "y"], r"\frac{A^{\top} x}{x^{\top} A y}"),
        (["log(sum(abs(x)))"], r"\frac{\operatorname{sign}\left(x\right)}{\left\| x \right\|_{1}}"),
        (["sum(B*softmax(X, 1))", "--wrt", "B"], r"\operatorname{softmax}_{j}\left(X\right)"),
        (["c@linalg.solve(A, b)", "--wrt", "b"], r"A^{-\top} c"),
        (["sum(x)*sum(x**2)"], r"\left\| x \right\|^{2} + 2 x \left(\mathbf{1}^{\top} x\right)"),
    ],
    parts=1,
)  # fmt: skip
def test_latex(argv: list[str], expected: str) -> None:
    assert lines("diff", *argv, "--format", "latex", "--plain") == [expected]


def test_latex_has_a_left_hand_side() -> None:
    assert lines("diff", "x**2*y", "--format", "latex") == [
        r"\frac{\partial f}{\partial x} = 2 x y",
        r"\frac{\partial f}{\partial y} = x^{2}",
    ]
    assert lines("diff", "x@A@x", "--format", "latex", "--order", "2")[1] == (
        r"\frac{\partial^{2} f}{\partial x\, \partial A} = "
        r"\left[{x}_{j} {I}_{ik}\right]_{ijk} + \left[{x}_{k} {I}_{ij}\right]_{ijk}"
    )
    assert lines("diff", "sin(x)", "--format", "latex", "--order", "3") == [
        r"\frac{\mathrm{d}^{3}f}{\mathrm{d}x^{3}} = -\cos\left(x\right)"
    ]


def test_the_jacobian_of_numbers_is_one_matrix_in_latex() -> None:
    assert lines("diff", "[r*cos(phi), r*sin(phi)]", "--jacobian", "--format", "latex") == [
        r"\frac{\partial f}{\partial (r, \phi)} = \begin{pmatrix}"
        r"\cos\left(\phi\right) & -r \sin\left(\phi\right) \\ "
        r"\sin\left(\phi\right) & r \cos\left(\phi\right)\end{pmatrix}"
    ]
    assert lines("diff", "u = x*y; u, 3", "--jacobian", "--format", "latex", "--wrt", "x") == [
        r"\frac{\partial f}{\partial x} = \begin{pmatrix}y \\ 0\end{pmatrix}"
    ]


@pytest.mark.parametrize("loss", ["F.mse_loss(x, y)", "F.huber_loss(x, y)", "mean(x*y)"])
def test_the_mean_of_nothing_is_no_zero(loss: str) -> None:
    code = run("diff", loss, "--x", "[]", "--y", "[]", "--format", "numpy").stdout
    assert "value = np.mean(" in code


LONG = pytest.mark.long


@pytest.mark.long
@pytest.mark.parametrize(
    "options",
    [
        ["--json"],
        pytest.param(["--format", "latex"], marks=LONG),
        pytest.param(["--show-steps"], marks=LONG),
        ["--show-steps", "--json"],
    ],
)
def test_what_is_long_is_not_spelled_out(options: list[str]) -> None:
    """Each step has the one before it three times: half a million times, after twelve."""
    result = run("diff", "for k in range(12): x = sin(x)*x*x\nx", "--x", "0.3", *options)
    assert result.exit_code == 0 and len(result.stdout) < 300_000
    if "--json" in options:
        found = json.loads(result.stdout)
        assert "v1" in found["shared"] and "v1" in found["shared"]["v2"]


def test_letters_of_shapes_are_heeded() -> None:
    """A trace is of a square matrix: where only letters say the shapes, no others are asked for."""
    result = run("diff", "trace(A.T@X@B)", "--wrt", "X")
    assert result.stdout == "A@B.T\n" and "wrong" not in result.stderr
    result = run("diff", "trace(A@B)", "--shape", "A=3,4")
    assert "B ∈ R⁴ˣ³" in result.stderr and result.stdout == "A.grad = B.T\nB.grad = A.T\n"


@sweep(
    ("argv", "expected"),
    [
        (["x**2*y", "--order", "3"], ["x.x.x.partial = 0", "x.x.y.partial = 2"]),
        (
            ["sum(X**3)", "--shape", "X=m,n"],
            ["6*einsum('ij,ik,jl->ijkl', X, eye(X.shape[0]), eye(X.shape[1]))"],
        ),
        (["logdet(X)"], ["-einsum('jk,li->ijkl', linalg.inv(X), linalg.inv(X))"]),
        (["trace(X.T@A@X)", "--wrt", "X"], ["einsum('ik,jl->ijkl', A + A.T, eye(X.shape[1]))"]),
        (
            ["X@w", "--jacobian"],
            ["X.jacobian = einsum('k,ij->ijk', w, eye(X.shape[0]))", "w.jacobian = X"],
        ),
    ],
    parts=1,
)
def test_derivatives_of_more_than_two_dimensions(argv: list[str], expected: list[str]) -> None:
    given = argv if "--jacobian" in argv or "--order" in argv else [*argv, "--order", "2"]
    result = run("diff", *given)
    assert result.stdout.splitlines()[: len(expected)] == expected


@pytest.mark.parametrize(
    "source", ["sum(logcumsumexp(X, 0))", "sum(logcumsumexp(X, 0)*logcumsumexp(Y, 0))"]
)
def test_an_order_without_a_formula_is_refused(source: str) -> None:
    """Nothing else is printed in its place, by one variable or by several."""
    result = run("diff", source, "--order", "2")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "no formula: it goes through" in result.stderr


@pytest.mark.parametrize("form", [pytest.param("python", marks=pytest.mark.long), "numpy"])
def test_code_runs_by_itself(form: str) -> None:
    source = "sum((X@w-y)**2) + a*erf(sum(w)) + softmax(w, 0)[0] + sum(relu(w))"
    shapes = ["--shape", "X=3,2", "--shape", "w=2", "--shape", "y=3"]
    code = run("diff", source, "--format", form, *shapes).stdout
    program = code + (
        "\n\nX = np.array([[1., 2], [3, 4], [5, 7]])\nw = np.array([0.5, -1])\n"
        "y = np.array([1., 0, 2])\nv, gs = value_and_gradient(X, w, y, 0.3)\n"
        "print(float(v), *gs[1].tolist())\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr + code
    gradcli.set_default_dtype(gradcli.float64)
    try:
        w = gradcli.tensor([0.5, -1.0], requires_grad=True)
        value = gradcli.evaluate(
            source,
            X=gradcli.tensor([[1.0, 2], [3, 4], [5, 7]]),
            w=w,
            y=gradcli.tensor([1.0, 0, 2]),
            a=gradcli.tensor(0.3),
        )
        value.backward()
    finally:
        gradcli.set_default_dtype(gradcli.float32)
    expected = [value.item(), *w.grad.tolist()]
    np.testing.assert_allclose([float(t) for t in done.stdout.split()], expected, rtol=1e-9)


def test_scalars_need_only_math() -> None:
    code = run("diff", "exp(-x)*sin(y)", "--format", "python").stdout
    assert "import math" in code and "numpy" not in code


def test_torch_code_names_torch() -> None:
    code = run("diff", "exp(-x)*sin(y)/sqrt(2*pi)", "--format", "torch").stdout
    assert "torch.exp(-x)" in code and "math.sqrt(2*math.pi)" in code


def test_starts_from_the_shell() -> None:
    exe = shutil.which("gradcli")
    argv = [exe] if exe else [sys.executable, "-m", "gradcli"]
    done = subprocess.run(
        [*argv, "diff", "c*d", "--wrt", "c"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "d\n", "")


REFUSED_OR_RIGHT = {
    "x.abs()**2*y": ("x.grad = 2*abs(x)*sgn(x)*y", "y.grad = abs(x)**2"),
    "s*(3 % y.detach())": ("s.grad = 3 % y",),
    "(1e200*x)**2": ("the derivative has a constant that no number holds",),
}


@pytest.mark.parametrize("source", REFUSED_OR_RIGHT)
def test_what_generators_found(source: str) -> None:
    given = ["--x", "1+2j", "--y", "2"] if "abs" in source else []
    result = run("diff", source, *given, *(["--wrt", "s"] if "s*" in source else []))
    for words in REFUSED_OR_RIGHT[source]:
        assert words.rpartition(" = ")[2] in result.stdout + result.stderr


@pytest.mark.parametrize(
    ("terms", "text"),
    [
        (2, "2*x + 1"),
        (3, "2*x + 3*x**2 + 1"),
        (4, "2*x + 3*x**2 + 4*x**3 + 1"),
        (8, "sum(tensor([1, 2, 3, 4, 5, 6, 7, 8])*x**tensor([0, 1, 2, 3, 4, 5, 6, 7]))"),
    ],
)
def test_a_number_beside_terms_that_are_written_stays_a_number(terms: int, text: str) -> None:
    """Few terms are written out."""
    result = run("diff", f"sum(x**arange(1, {terms + 1}))", "--wrt", "x")
    assert (result.exit_code, result.stderr) == (0, "")  # no note about a shape
    assert result.stdout == text + "\n"


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        (["4", "--wrt=x"], "0\n"),
        (["2*pi", "--wrt=x,y"], "x.grad = 0\ny.grad = 0\n"),
        (["4", "--wrt=x", "--order=2"], "0\n"),
    ],
)
def test_a_constant_has_the_derivative_0(argv: list[str], shown: str) -> None:
    result = run("diff", *argv)
    assert (result.exit_code, result.stdout) == (0, shown)
    assert "note: nothing in the expression depends on x" in result.stderr
    with pytest.warns(UserWarning, match="nothing in the expression depends on x"):
        assert gradcli.diff("4", wrt="x") == "0"


@pytest.mark.parametrize(
    "argv, lines",
    [
        (["x**3", "--at", "x=2"], ["3*x**2 = 12 at x = 2"]),
        (["x**3", "--x", "2", "--at"], ["3*x**2 = 12 at x = 2"]),
        (["--at", "x**3", "--x", "2"], ["3*x**2 = 12 at x = 2"]),
        (
            ["x**3*y", "--at", "x=2,y=3"],
            [f"{line} at x = 2, y = 3" for line in ("x.grad = 3*x**2*y = 36", "y.grad = x**3 = 8")],
        ),
        (["sum(x**3)", "--at=x=1,2,3"], ["3*x**2 = [3, 12, 27]"]),
    ],
)
def test_at_gives_a_point_and_prints_the_value_there(argv, lines):
    result = run("diff", *argv)
    assert (result.stderr, result.stdout.splitlines()) == ("", lines)


def test_at_binds_variables_of_every_command():
    assert run("grad", "x**2*y", "--at", "x=2,y=1").stdout == "x.grad = 4\ny.grad = 4\n"
    assert run("eval", "at*2", "--at", "3").stdout == "6\n"  # a variable of this name


def test_a_number_that_is_given_has_its_value_said_on_a_terminal():
    _, screen = in_terminal("diff", "x**3", "--x", "2", NO_COLOR="1")
    assert "note: at x = 2: 12; --at prints it beside the formula" in screen
    assert run("diff", "x**3", "--x", "2").stderr == ""
