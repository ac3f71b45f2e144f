"""Jacobians and Hessians as formulas: what is printed, and that every format of it holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from gradcli import language
from gradcli.cli import main
from gradcli.formulas.algebra.generic_points import sample
from gradcli.formulas.algebra.spelling import NoExpression
from gradcli.formulas.ask import matrix_derivatives
from gradcli.formulas.ask.proof import Difference, prove, proved
from gradcli.formulas.print.printed_text import printed
from tests.sweep import sweep

X3, A43, A33 = {"x": (3,)}, {"A": (4, 3)}, {"A": (3, 3)}
AX = {**A43, **X3}
COLUMNS = r"\begin{pmatrix}2 {x}_{1} & 2 {x}_{0} \\ 2 {x}_{0} & 0\end{pmatrix}"
CIRCLE = r"\begin{pmatrix}-\sin\left(t\right) \\ \cos\left(t\right)\end{pmatrix}"
CONTRACTED = (
    r"6 \left[\sum_{k, l} {B}_{ik} {B}_{jk} {A}_{li} {A}_{lj}"
    r" {\left(\left[{A}_{ij} {x}_{j}\right]_{ij} B\right)}_{lk}\right]_{ij}"
)
SOFT = "diag(softmax(x, 0)) - outer(softmax(x, 0), softmax(x, 0))"

# (what, program, shapes, variables, blocks)
TABLE: list[tuple[str, str, dict[str, tuple[int, ...]], str, list[str]]] = [
    # scalars: every second partial derivative
    ("hessian", "x**2*y", {"x": (), "y": ()}, "x,y", ["2*y", "2*x", "0"]),
    (
        "hessian",
        "sin(x*y)",
        {"x": (), "y": ()},
        "x,y",
        ["-y**2*sin(x*y)", "cos(x*y) - x*y*sin(x*y)", "-x**2*sin(x*y)"],
    ),
    # vectors
    ("hessian", "dot(x,x)", X3, "x", ["2*eye(3)"]),
    ("hessian", "sum(exp(x))", X3, "x", ["diag(exp(x))"]),
    ("hessian", "sum(x**3)", X3, "x", ["6*diag(x)"]),
    ("hessian", "x@B@x", {**X3, "B": (3, 3)}, "x", ["B + B.T"]),
    ("hessian", "sum((A@x-b)**2)/2", {**AX, "b": (4,)}, "x", ["A.T@A"]),
    (
        "hessian",
        "sum(log(1+exp(-y*(A@x))))",
        {**AX, "y": (4,)},
        "x",
        ["A.T@diag(y**2*sigmoid(y*(A@x))*sigmoid(-y*(A@x)))@A"],
    ),
    ("hessian", "sum(tanh(A@x))", AX, "x", ["-2*A.T@diag(tanh(A@x) - tanh(A@x)**3)@A"]),
    ("hessian", "logsumexp(x, 0)", X3, "x", [SOFT]),
    ("hessian", "norm(x)", X3, "x", ["eye(3)/norm(x) - outer(x, x)/norm(x)**3"]),
    ("hessian", "prod(x)", X3, "x", ["prod(x)*(outer(1/x, 1/x) - diag(1/x**2))"]),
    ("hessian", "exp(-dot(x,x)/2)", X3, "x", ["exp(-x@x/2)*(outer(x, x) - eye(3))"]),
    ("hessian", "sum(X@w)**2", {"X": (4, 3), "w": (3,)}, "w", ["2*outer(sum(X, 0), sum(X, 0))"]),
    (
        "hessian",
        "sum((outer(x,x)-A)**2)",
        {**A33, **X3},
        "x",
        ["2*(2*x@x*eye(3) + 4*outer(x, x) - A - A.T)"],
    ),
    ("hessian", "sum(cumsum(x, 0)**2)", {"x": (4,)}, "x", ["2*triu(ones(4, 4))@tril(ones(4, 4))"]),
    ("hessian", "mean(x)", X3, "x", ["zeros(3, 3)"]),
    (
        "hessian",
        "B = A[:, None]*(A.T@ones(2, 2))[:, None]; sum(B)*sum(x)",
        {"A": (2, 2), **X3},
        "A,x",
        [
            "(einsum('i,l,jk->ijkl', ones(2), ones(2), eye(2))"
            " + einsum('j,k,il->ijkl', ones(2), ones(2), eye(2)))*sum(x)",
            "einsum('j,k,i->ijk', ones(2), ones(3), sum(A, 0))"
            " + einsum('i,k,j->ijk', ones(2), ones(3), sum(A, 1))",
            "zeros(3, 3)",
        ],
    ),
    ("hessian", "sum(sin(x))", {"x": (0,)}, "x", ["zeros(0, 0)"]),
    ("hessian", "x@x.detach()", X3, "x", ["zeros(3, 3)"]),
    # blocks
    ("hessian", "a*dot(x,x)", {"a": (), **X3}, "a,x", ["0", "2*x", "2*a*eye(3)"]),
    ("hessian", "dot(x,x)*a", {"a": (), **X3}, "x,a", ["2*a*eye(3)", "2*x", "0"]),
    (
        "hessian",
        "x@B@y",
        {**X3, "B": (3, 2), "y": (2,)},
        "x,y",
        ["zeros(3, 3)", "B", "zeros(2, 2)"],
    ),
    (
        "hessian",
        "y@B@x",
        {"y": (2,), "B": (2, 3), **X3},
        "x,y",
        ["zeros(3, 3)", "B.T", "zeros(2, 2)"],
    ),
    (
        "hessian",
        "sum((x[:,None]-y)**2)",
        {**X3, "y": (2,)},
        "x,y",
        ["4*eye(3)", "-2*ones(3, 2)", "6*eye(2)"],
    ),
    # elements, pieces, bands
    (
        "hessian",
        "x[0]*x[-1]",
        X3,
        "x",
        ["outer(eye(3)[-1], eye(3)[0]) + outer(eye(3)[0], eye(3)[-1])"],
    ),
    ("hessian", "2*x[0]*x[1]", {"x": (2,)}, "x", ["tensor([[0.0, 2.0], [2.0, 0.0]])"]),
    (
        "hessian",
        "x[0]**2*x[1]",
        {"x": (2,)},
        "x",
        ["stack([stack([2*x[1], 2*x[0]]), stack([2*x[0], tensor(0.0)])])"],
    ),
    (
        "hessian",
        "sum((x[1:]-x[:-1])**2)",
        {"x": (4,)},
        "x",
        ["2*(eye(4)[1:] - eye(4)[:-1]).T@(eye(4)[1:] - eye(4)[:-1])"],
    ),
    (
        "hessian",
        "log(det(A + diag(x)))",
        {**A33, **X3},
        "x",
        ["-linalg.inv(A + diag_embed(x))*linalg.inv(A + diag_embed(x)).T"],
    ),
    ("hessian", "sum((A@diag(x)@B)**2)", {**A33, **X3, "B": (3, 2)}, "x", ["2*A.T@A*(B@B.T)"]),
    # what no product of matrices says
    (
        "hessian",
        "sum((A@diag(x)@B)**3)",
        {**A33, **X3, "B": (3, 2)},
        "x",
        ["6*einsum('ik,jk,li,lj,lk->ij', B, B, A, A, (A*x)@B)"],
    ),
    (
        "hessian",
        "sum(sigmoid((A*x)@B))",
        {**A33, **X3, "B": (3, 2)},
        "x",
        [
            "einsum('ik,jk,li,lj,lk->ij', B, B, A, A, "
            "-sigmoid((A*x)@B)*sigmoid(-(A*x)@B)*tanh((A*x)@B/2))"
        ],
    ),
    (
        "hessian",
        "mean((A@diag(x)@B).var(0))",
        {"A": (2, 3), **X3, "B": (3, 4)},
        "x",
        ["(2*A.T@A - outer(sum(A, 0), sum(A, 0)))*(B@B.T)/4"],
    ),
    (
        "hessian",
        "dot(x, A@diag(x)@A@x)",
        {**A33, **X3},
        "x",
        [
            "(A@diag(x)@A).T + diag(A@x)@A.T + A@diag(x)@A + diag(A.T@x)@A + A.T@diag(A.T@x) + "
            "A@diag(A@x)"
        ],
    ),
    (
        "hessian",
        "sum(x.unfold(0, 2, 1)**2)",
        X3,
        "x",
        ["2*eye(3)[tensor([0, 1, 1, 2])].T@eye(3)[tensor([0, 1, 1, 2])]"],
    ),
    (
        "jacobian",
        "index_add(x**2, 0, tensor([0, 0]), y)",
        {**X3, "y": (2,)},
        "y",
        ["eye(3)[tensor([0, 0])].T"],
    ),
    # dimensions that are merged and split
    ("jacobian", "x.reshape(2, 2)@y", {"x": (4,), "y": (2,)}, "y", ["x.reshape(2, 2)"]),
    (
        "jacobian",
        "kron(x, y)",
        {"x": (2,), "y": (3,)},
        "x",
        ["einsum('j,ik->ijk', y, eye(2)).reshape(6, 2)"],
    ),
    ("jacobian", "einsum('ijk,k->ij', T, y)", {"T": (2, 3, 4), "y": (4,)}, "y", ["T"]),
    (
        "jacobian",
        "einsum('ijk,j,k->i', T, x, x)",
        {"T": (2, 3, 3), **X3},
        "x",
        ["T@x + einsum('ikj,k->ij', T, x)"],
    ),
    # of nothing
    ("hessian", "mean(x[1:1]**2)", X3, "x", ["zeros(3, 3)"]),
    ("hessian", "mean(x[1:1]**2)*sum(x)", X3, "x", ["zeros(3, 3)"]),
    ("jacobian", "mean(x[1:1]**2)", X3, "x", ["zeros_like(x)"]),
    ("jacobian", "mean(x**2, 0, keepdim=True)", {"x": (0,)}, "x", ["zeros(1, 0)"]),
    ("hessian", "sum(xlogy(x, x))", X3, "x", ["diag(1/x)"]),
    # Jacobians
    # all of it held constant
    ("jacobian", "detach(x)", X3, "x", ["zeros(3, 3)"]),
    ("jacobian", "y = x*2; y.detach()**2 + 0*c", {**X3, "c": ()}, "x", ["zeros(3, 3)"]),
    ("jacobian", "A@x", AX, "x", ["A"]),
    ("jacobian", "tanh(A@x)", AX, "x", ["diag(1 - tanh(A@x)**2)@A"]),
    ("jacobian", "x@A", {"x": (4,), **A43}, "x", ["A.T"]),
    ("jacobian", "sin(x)", X3, "x", ["diag(cos(x))"]),
    ("jacobian", "3*x", X3, "x", ["3*eye(3)"]),
    ("jacobian", "x*y", {**X3, "y": (3,)}, "x,y", ["diag(y)", "diag(x)"]),
    ("jacobian", "a*x", {"a": (), **X3}, "a,x", ["x", "a*eye(3)"]),
    ("jacobian", "softmax(x, 0)", X3, "x", [SOFT]),
    ("jacobian", "log_softmax(x, 0)", X3, "x", ["eye(3) - outer(ones(3), softmax(x, 0))"]),
    ("jacobian", "x/norm(x)", X3, "x", ["eye(3)/norm(x) - outer(x, x)/norm(x)**3"]),
    ("jacobian", "x*dot(x,x)", X3, "x", ["x@x*eye(3) + 2*outer(x, x)"]),
    ("jacobian", "outer(x,x)@y", {**X3, "y": (3,)}, "x", ["outer(x, y) + sum(x*y)*eye(3)"]),
    (
        "jacobian",
        "W@relu(V@x)",
        {"W": (2, 4), "V": (4, 3), **X3},
        "x",
        ["W@diag(where(V@x > 0, 1, 0.0))@V"],
    ),
    ("jacobian", "linalg.solve(A,b)", {**A33, "b": (3,)}, "b", ["linalg.inv(A)"]),
    ("jacobian", "cumsum(x, 0)", X3, "x", ["tril(ones(3, 3))"]),
    ("jacobian", "x.flip(0)", X3, "x", ["flip(eye(3), (0,))"]),
    ("jacobian", "sort(x)[0]", X3, "x", ["eye(3)[sort(x)[1]]"]),
    ("jacobian", "x[1:]-x[:-1]", X3, "x", ["eye(3)[1:] - eye(3)[:-1]"]),
    ("jacobian", "cat([sin(x), x**2])", X3, "x", ["cat([diag(cos(x)), 2*diag(x)])"]),
    (
        "jacobian",
        "stack([r*cos(t), r*sin(t)])",
        {"r": (), "t": ()},
        "r,t",
        ["stack([cos(t), sin(t)])", "stack([-r*sin(t), r*cos(t)])"],
    ),
    ("jacobian", "diag(A@diag(x)@B)", {**A33, **X3, "B": (3, 3)}, "x", ["A*B.T"]),
    ("jacobian", "roll(x**2, 2)", X3, "x", ["2*roll(eye(3), shifts=(2,), dims=(0,))@diag(x)"]),
    (
        "jacobian",
        "y = 2*x; y[0] = 5; y",
        X3,
        "x",
        ["2*diag(1 - eye(3)[0])"],
    ),
    ("jacobian", "t*A", {"t": (), **A33}, "t", ["A"]),
    ("jacobian", "x[[0, 0, 2]]", X3, "x", ["eye(3)[tensor([0, 0, 2])]"]),
    ("jacobian", "sum(x)", X3, "x", ["ones_like(x)"]),
    ("jacobian", "x*x.detach()", X3, "x", ["diag(x)"]),
]
FORMATS = ("text", "latex", "python", "numpy", "torch", "jax", "c")

FIND = {"jacobian": matrix_derivatives.jacobian, "hessian": matrix_derivatives.partials}


def arrays_of(shapes: dict[str, tuple[int, ...]]) -> dict[str, Any]:
    return {n: sample(s, k)[()] for k, (n, s) in enumerate(shapes.items())}


def formulas(kind: str, source: str, shapes: Any, wrt: str, form: str) -> Any:
    _, made, singular = proved(
        language.parse(source),
        arrays_of(shapes),
        wrt.split(","),
        given=False,
        form=form,
        find=FIND[kind],
        claim=matrix_derivatives.MatrixClaim,
    )
    assert singular is None
    return made


@sweep(("kind", "source", "shapes", "wrt", "expected"), TABLE, parts=3, often=1)
def test_formula(kind: str, source: str, shapes: Any, wrt: str, expected: list[str]) -> None:
    arrays = arrays_of(shapes)
    found = FIND[kind](language.parse(source), arrays, wrt.split(","))
    made = printed(found)
    assert list(made.by.values()) == expected
    assert prove(matrix_derivatives.MatrixClaim(found, made, {}), arrays, given=False) is None


@sweep(
    ("kind", "source", "shapes", "wrt"),
    [r[:4] for r in TABLE],
    name=lambda kind, source, shapes, wrt: f"{kind} {source}",
    parts=32,
    often=1,
)
def test_every_format_holds(kind: str, source: str, shapes: Any, wrt: str) -> None:
    for form in FORMATS[1:]:
        try:
            made = formulas(kind, source, shapes, wrt, form)
        except NoExpression:
            assert form == "c"
            continue
        assert made.code or made.by


@sweep(
    ("kind", "source", "shapes", "message"),
    [
        ("jacobian", "cross(x, x[[1, 2, 0]])", X3, "it goes through linalg.cross"),
        ("hessian", "sum(x**2)", {"x": (1001,)}, "a matrix of 1001 by 1001 numbers is too large"),
        ("jacobian", "matrix_exp(t*A)", {**A33, "t": ()}, "matrix of this derivative by t has no"),
    ],
    parts=1,
)
def test_refused(kind: str, source: str, shapes: Any, message: str) -> None:
    wrt = [n for n in shapes if n != "A"]
    with pytest.raises(NoExpression, match=message):
        FIND[kind](language.parse(source), arrays_of(shapes), wrt)


def test_truth_values_are_weights_as_numbers_are() -> None:
    arrays = {"c": np.array([True, False, True]), "w": np.array([-0.9, 0.7, -0.5])}
    found = matrix_derivatives.jacobian(language.parse("sum(c*w)"), arrays, ["w"])
    assert (
        prove(matrix_derivatives.MatrixClaim(found, printed(found), {}), arrays, given=True) is None
    )


def test_blocks_without_a_formula_are_named() -> None:
    found = matrix_derivatives.partials(
        language.parse("sum(logcumsumexp(X, 0)) + x@x"),
        arrays_of({"X": (2, 2), "x": (2,)}),
        ["X", "x"],
    )
    assert list(found.by) == ["X.x", "x.x"]
    assert found.skipped == ["X.X"]


def test_a_wrong_formula_is_not_proved() -> None:
    arrays = {"x": np.array([1.0, 2.0])}
    found = matrix_derivatives.partials(language.parse("sum(x**3)"), arrays, ["x"])
    made = printed(found)
    made.by["x"] = "6*outer(x, x)"
    with pytest.raises(Difference):
        prove(matrix_derivatives.MatrixClaim(found, made, {}), arrays, given=True)


@sweep(("kind", "source", "shapes", "expected"), [
        ("hessian", "x[0]**2*x[1]", {"x": (2,)}, COLUMNS),
        ("hessian", "x[0]*x[1]", {"x": (2,)}, r"\begin{pmatrix}0 & 1 \\ 1 & 0\end{pmatrix}"),
        ("hessian", "dot(x, x)", X3, r"2 I"),
        ("hessian", "x@B@x", {**X3, "B": (3, 3)}, r"B + B^{\top}"),
        ("jacobian", "stack([cos(t), sin(t)])", {"t": ()}, CIRCLE),
        ("hessian", "sum((A@diag(x)@B)**3)", {**X3, **A33, "B": (3, 2)}, CONTRACTED),
        ("hessian", "digamma(x)", {"x": ()}, r"\operatorname{polygamma}_{2}\left(x\right)"),
        ("jacobian", "exp(x)", X3, r"\operatorname{diag}\left(e^{x}\right)"),
    ], parts=1)  # fmt: skip
def test_latex(kind: str, source: str, shapes: Any, expected: str) -> None:
    wrt = next(iter(shapes))
    found = FIND[kind](language.parse(source), arrays_of(shapes), [wrt])
    assert printed(found, "latex").by[wrt] == expected


def test_a_slice_of_another_dimension_is_written() -> None:
    """The dim of a write, given by its place, is that of the array; its factor is a vector."""
    found = CliRunner().invoke(
        main,
        [
            "diff",
            "slice_scatter(B, C, 2, 0, 2)",
            "--jacobian",
            "--shape",
            "B=3,2,3",
            "--shape",
            "C=3,2,2",
        ],
    )
    assert found.exit_code == 0 and "slice_scatter(zeros(3), ones(2), 0" in found.stdout, (
        found.output
    )
