"""Sizes for the numbers that came from them: formulas that hold for any n."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import language
from gradcli.formulas.algebra.expressions import call
from gradcli.formulas.algebra.generic_points import sample
from gradcli.formulas.ask import matrix_derivatives
from gradcli.formulas.ask.proof import proved
from gradcli.formulas.derive import symbolic_shapes
from gradcli.formulas.print.latex_elements import to_latex
from gradcli.formulas.print.python_code import NumpyPrinter
from tests.sweep import sweep

X, XY = {"x": (4,)}, {"x": (4,), "y": (4,)}
CROSS = "(softmax(z, 1) - one_hot(y, z.shape[1]))/z.shape[0]"
LEAST = {"A": (4, 3), "x": (3,), "b": (4,)}
HINGE, BOTH = "mean(relu(1 - y*(A@x)))", "x.shape[0] + y.shape[0]"
CHAIN = {"A": (3, 2), "B": (2, 4), "C": (4, 5)}
SILU = "(sigmoid(A@B@C)*(A@B@C*sigmoid(-A@B@C) + 1))"
FLIPS = "sum(flip(cumsum(flip(ones(2*x.shape[0]), (0,)), 0), (0,)).reshape(x.shape[0], 2), 1)"
C = {"c": (4,), "x": (4,)}
HEADS = {"q": (2, 2, 2), "k": (2, 2, 2), "v": (2, 2, 2)}
HEAD = "softmax(q@k.mT/sqrt(q.shape[2]), 2).mT@ones(v.shape[0], q.shape[1], v.shape[2])"

# (program, shapes, variable, derivative)
TABLE: list[tuple[str, dict[str, tuple[int, ...]], str, str]] = [
    ("mean(x)", X, "x", "full_like(x, 1/x.shape[0])"),
    ("mean(X)", {"X": (3, 2)}, "X", "full_like(X, 1/X.numel())"),
    ("mean(X, 0).sum()", {"X": (3, 2)}, "X", "full_like(X, 1/X.shape[0])"),
    ("mean((A@x-b)**2)", LEAST, "x", "2*A.T@(A@x - b)/A.shape[0]"),
    ("mse_loss(x, y)", XY, "x", "2*(x - y)/x.shape[0]"),
    ("mse_loss(x, y)", XY, "y", "2*(y - x)/y.shape[0]"),
    ("var(x)", X, "x", "2*(x - mean(x))/(x.shape[0] - 1)"),
    ("var(x, correction=0)", X, "x", "2*(x - mean(x))/x.shape[0]"),
    ("std(x)", X, "x", "(x - mean(x))/((x.shape[0] - 1)*std(x))"),
    ("mse_loss(x, y)", {"x": (2,), "y": (2,)}, "x", "2*(x - y)/x.shape[0]"),  # where 2/2 is 1
    ("mean(x**4)", X, "x", "4*x**3/x.shape[0]"),
    ("sum(a*x)*x.numel()", {"a": (), **X}, "a", "x.shape[0]*sum(x)"),
    ("F.cross_entropy(z, y)", {"z": (4, 3), "y": (4,)}, "z", CROSS),
    ("F.cross_entropy(z, y)", {"z": (3, 3), "y": (3,)}, "z", CROSS),
    # where generic values take one branch only
    (HINGE, LEAST | {"y": (4,)}, "x", "-A.T@where(y*(A@x) < 1, y/A.shape[0], 0)"),
    # products and sums of several sizes, and of one that is there more than once
    ("sum((A@B)**2)", {"A": (2, 3, 2), "B": (2, 4)}, "B", "2*einsum('kli,klj->ij', A, A@B)"),
    ("mean(cat([x, y])**2)", {"x": (3,), "y": (2,)}, "x", f"(2*cat([x, y])/({BOTH}))[:x.shape[0]]"),
    ("mean(silu(A@B@C))", CHAIN, "C", "(A@B).T@" + SILU + "/(A.shape[0]*C.shape[1])"),
    ("sum(x)/x.shape[0]**0.5", {"x": (5,)}, "x", "ones_like(x)/sqrt(x.shape[0])"),
    ("X.T.reshape(-1)@c", {"X": (3, 2), "c": (6,)}, "X", "c.reshape(X.shape[1], X.shape[0]).T"),
    ("x.repeat_interleave(2)@c", {"x": (3,), "c": (6,)}, "x", "sum(c.reshape(x.shape[0], 2), 1)"),
    ("x.repeat_interleave(2).cumsum(0).sum()", {"x": (3,)}, "x", FLIPS),
    # where nothing is left of the size in those given, as 2/2
    ("mean((A@x + s)**2)", {"A": (2, 2), "x": (2,), "s": ()}, "s", "2*mean(A@x + s)"),
    # what lies at the same place belongs together, if much is as long
    ("sum(softmax(q@k.mT/q.shape[2]**0.5, 2)@v)", HEADS, "v", HEAD),
    ("var(X)", {"X": (3, 2)}, "X", "2*(X - mean(X))/(X.numel() - 1)"),
    ("sum(c*x)/(x.shape[0]*(x.shape[0] - 1)**2)", C, "x", "c/(x.shape[0]*(x.shape[0] - 1)**2)"),
    (
        *("x[0]*x[1]/x.numel()", {"x": (2,)}, "x"),
        "(eye(x.shape[0])[0]*x[1] + eye(x.shape[0])[1]*x[0])/x.shape[0]",
    ),
    # numbers of the program stay, whatever the sizes are
    ("sum(x)/4", X, "x", "full_like(x, 1/4)"),
    ("4*dot(x, x)", X, "x", "8*x"),
    ("mean(x[:2])*2", X, "x", "slice_scatter(zeros(x.shape[0]), ones(2), dim=0, end=2)"),
    # and so do those of a program that runs in no other sizes, or is another one there
    ("mean(x.reshape(2, 2) @ x[:2])", X, "x", None),
]  # fmt: skip


def arrays_of(shapes: dict[str, tuple[int, ...]], wrt: str) -> dict[str, Any]:
    made = {n: sample(s, k)[()] for k, (n, s) in enumerate(shapes.items())}
    if "z" in shapes:  # classes
        made["y"] = np.arange(*shapes["y"]) % shapes["z"][1]
    return made


def derivative(source: str, shapes: Any, wrt: str, form: str = "text") -> Any:
    arrays = arrays_of(shapes, wrt)
    return proved(language.parse(source), arrays, [wrt], given=True, form=form)


@sweep(("source", "shapes", "wrt", "expected"), TABLE, parts=3, often=1)
def test_derivative(source: str, shapes: Any, wrt: str, expected: str | None) -> None:
    _, made, singular = derivative(source, shapes, wrt)
    assert singular is None
    if expected is None:
        assert ".shape" not in made.by[wrt]
    else:
        assert made.by[wrt] == expected


def test_a_size_is_that_of_its_own_program() -> None:
    """`eye(x.shape[0])` of three elements, which somebody keeps, is none of five."""
    made = [
        symbolic_shapes.unified(
            call("eye", [], (n, n)),
            call("eye", [], (7, 7)),
            symbolic_shapes.Terms({"x": (n,)}, {"x": (7,)}, ["x"]),
        )
        for n in (3, 5)
    ]
    assert [m.shape for m in made] == [(3, 3), (5, 5)]


def test_hessian() -> None:
    found = proved(
        language.parse("var(x)"),
        {"x": sample((5,))},
        ["x"],
        given=True,
        find=matrix_derivatives.partials,
        claim=matrix_derivatives.MatrixClaim,
    )[1]
    assert found.by["x"] == (
        "2*(eye(x.shape[0]) - ones(x.shape[0], x.shape[0])/x.shape[0])/(x.shape[0] - 1)"
    )


@pytest.mark.parametrize("form", ["python", "numpy", "torch", "jax"])
@sweep(("source", "shapes", "wrt"), [r[:3] for r in TABLE[:11]], parts=2, often=1)
def test_every_format(source: str, shapes: Any, wrt: str, form: str) -> None:
    code = derivative(source, shapes, wrt, form)[1].code
    assert ".shape[" in code or ".numel()" in code or ".size" in code


def test_labels_are_labels_in_other_sizes_too() -> None:
    arrays = {"x": sample((3,)), "y": np.array([1.0, -1.0, 1.0])}
    _, made, _ = proved(
        language.parse("mean(where(y == -1, sin(x), 0))"), arrays, ["x"], given=True
    )
    assert made.by["x"] == "where(y == -1, cos(x)/x.shape[0], 0)"


@pytest.mark.parametrize(
    ("source", "wrt", "order", "expected"),
    [
        ("mean(x**4)", "x", 3, "24*x/x.shape[0]"),
        ("mean(exp(x*s))", "s", 2, "sum(x**2*exp(x*s))/x.shape[0]"),
    ],
)
def test_higher_orders_name_sizes(source: str, wrt: str, order: int, expected: str) -> None:
    arrays = {"x": sample((4,)), **({"s": np.array(0.7)} if wrt == "s" else {})}
    _, made, _ = proved(language.parse(source), arrays, [wrt], given=True, order=order, form="text")
    assert made.by[wrt] == expected
    code = proved(language.parse(source), arrays, [wrt], given=True, order=order, form="numpy")[1]
    assert f"{source!r} and its derivative of order {order} by {wrt}." in code.code


def test_the_value_that_is_printed_beside_names_sizes_and_shares_what_they_are_in() -> None:
    source = "sum(softmax(Q@K.T/K.shape[1]**0.5, 1)**2)"
    code = derivative(source, {"Q": (3, 2), "K": (4, 2)}, "Q", "torch")[1].code
    assert code.count("torch.softmax(Q@K.T/math.sqrt(Q.shape[1]), 1)") == 1
    assert "sqrt(2)" not in code


def test_other_values_are_of_the_range_of_those_given_where_generic_ones_are_refused() -> None:
    _, made, _ = proved(
        language.parse("F.binary_cross_entropy(sigmoid(x), y)"),
        {"x": np.array([-1.0, 0.5, 2.0]), "y": np.array([0.0, 0.75, 1.0])},
        ["x"],
        given=True,
    )
    assert made.by["x"] == "(sigmoid(x) - y)/x.shape[0]"


def test_an_index_may_be_shorter_than_what_it_picks_from() -> None:
    arrays = {"X": sample((3, 2)), "i": np.array([0, 1, 0])}
    _, made, _ = proved(language.parse("gather(X, 1, i[:, None]).sum()"), arrays, ["X"], given=True)
    assert made.by["X"] == (
        "scatter_add(zeros(X.shape[0], X.shape[1]), 1, i[:, None], ones(X.shape[0], 1))"
    )


def test_latex_and_numpy_name_sizes() -> None:
    found, _, _ = derivative("mean(X, 1).sum()*X.numel()", {"X": (3, 2)}, "X")
    assert to_latex(found.by["X"]) == "n_{X}"
    found, _, _ = derivative("mean(X, 1).sum()*mean(Y)", {"X": (3, 2), "Y": (4, 5)}, "X")
    assert to_latex(found.by["X"]) == r"\frac{\overline{Y}}{n_{X, 2}}"
    found, _, _ = derivative("mean(X)", {"X": (3, 2)}, "X")
    assert to_latex(found.by["X"]) == r"\frac{1}{N_{X}}"
    assert NumpyPrinter().text(found.by["X"]) == "np.full_like(X, 1/X.size)"
    code = derivative("cumsum(X.flatten(), 0)**2", {"X": (3, 2)}, "X", "numpy")[1].code
    assert "np.cumsum(X.reshape(X.size), 0)" in code


def test_a_formula_that_is_wrong_elsewhere_keeps_its_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wrong = symbolic_shapes.Terms.number
    monkeypatch.setattr(
        symbolic_shapes.Terms,
        "number",
        lambda self, a, b: wrong(self, a, b) if a == b else symbolic_shapes.number(7),
    )
    _, made, _ = derivative("mean(x)", X, "x")
    assert made.by["x"] == "full_like(x, 1/4)"


def test_sizes_that_need_not_be_equal_are_told_apart() -> None:
    arrays = {"A": np.ones((3, 3)), "x": np.ones(3), "b": np.ones(3)}

    def runs(values: Any) -> bool:
        (n, m), shape = values["A"].shape, (values["x"].shape, values["b"].shape)
        return shape == ((m,), (n,))

    other = symbolic_shapes.at_other_shapes(arrays, runs)
    assert other is not None
    assert {n: v.shape for n, v in other.arrays.items()} == {"A": (5, 7), "x": (7,), "b": (5,)}
    assert symbolic_shapes.at_other_shapes(arrays, lambda values: False) is None


def test_a_product_with_zeros_is_zeros() -> None:
    """The sum of a softmax is 1."""
    found = gradcli.diff("softmax(W@x, 0)", wrt=["W", "x"])
    assert found == {"W": "zeros_like(W)", "x": "zeros_like(x)"}
