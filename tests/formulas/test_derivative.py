"""Derivatives as text: what is printed for everyday formulas, and that it evaluates to the gradient."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradcli
from gradcli import language
from gradcli.formulas.algebra import algebra
from gradcli.formulas.algebra.expression_text import to_text
from gradcli.formulas.algebra.generic_points import sample
from gradcli.formulas.derive.differentiate import differentiate
from gradcli.formulas.derive.shape_inference import infer
from gradcli.formulas.lift.lifting import NoExpression
from gradcli.formulas.print.latex_elements import to_latex
from tests.engine.registry import samples
from tests.formulas.test_formulas import ROWS, derivative, values
from tests.sweep import sweep

SYMPY = json.loads((Path(__file__).parent / "sympy.json").read_text())


def derivatives(source: str, order: int = 1, **shapes: tuple[int, ...]) -> dict[str, str]:
    """The derivatives of an expression of variables of these shapes."""
    arrays = {n: sample(s, k) for k, (n, s) in enumerate(shapes.items())}
    found = differentiate(language.parse(source), arrays, order=order)
    return {n: to_text(e) for n, e in found.by.items()}


S: tuple[int, ...] = ()
PRINTED: list[tuple[str, dict[str, tuple[int, ...]], dict[str, str]]] = [
    ("c*d", {"c": S, "d": S}, {"c": "d", "d": "c"}),
    ("5*(a+b)", {"a": S, "b": S}, {"a": "5", "b": "5"}),
    ("2*dot(x,x)", {"x": (4,)}, {"x": "4*x"}),
    ("sin(x)*y", {"x": S, "y": S}, {"x": "cos(x)*y", "y": "sin(x)"}),
    (
        "sum((X@w-y)**2)",
        {"X": (4, 3), "w": (3,), "y": (4,)},
        {"X": "2*outer(X@w - y, w)", "w": "2*X.T@(X@w - y)", "y": "2*(y - X@w)"},
    ),
    ("x/3", {"x": S}, {"x": "1/3"}),
    ("x**2/3", {"x": S}, {"x": "2*x/3"}),
    ("0.1*x**2", {"x": S}, {"x": "0.2*x"}),
    ("x**3+2*x**2+x+1", {"x": S}, {"x": "(3*x + 1)*(x + 1)"}),
    ("a*x**2+b*x+c", {"a": S, "x": S, "b": S, "c": S},
     {"a": "x**2", "x": "2*a*x + b", "b": "x", "c": "1"}),
    ("x**y", {"x": S, "y": S}, {"x": "y*x**(y - 1)", "y": "log(x)*x**y"}),
    ("x**x", {"x": S}, {"x": "x**x*(log(x) + 1)"}),
    ("x*exp(-x)", {"x": S}, {"x": "(1 - x)*exp(-x)"}),
    ("sqrt(x)", {"x": S}, {"x": "1/(2*sqrt(x))"}),
    ("log(x**2+1)", {"x": S}, {"x": "2*x/(x**2 + 1)"}),
    ("sigmoid(x)", {"x": S}, {"x": "sigmoid(x)*sigmoid(-x)"}),
    ("tanh(x)", {"x": S}, {"x": "1 - tanh(x)**2"}),
    ("relu(x)", {"x": S}, {"x": "where(x > 0, 1, 0)"}),
    ("maximum(x, 0)**2", {"x": S}, {"x": "2*maximum(x, 0)"}),
    ("minimum(0, x)**3", {"x": S}, {"x": "3*minimum(0, x)**2"}),
    ("maximum(1 - y*x, 0)**2", {"x": S, "y": S},
     {"x": "-2*y*maximum(1 - y*x, 0)", "y": "-2*x*maximum(1 - y*x, 0)"}),
    ("maximum(x, 2)**2", {"x": S},
     {"x": "where(x < 2, 0, where(x == 2, maximum(x, 2), 2*maximum(x, 2)))"}),
    ("maximum(x, 0)*sqrt(x)", {"x": S},
     {"x": "where(x < 0, 0, sqrt(x)) + maximum(x, 0)/(2*sqrt(x))"}),
    ("abs(x)", {"x": S}, {"x": "sign(x)"}),
    ("erf(x)", {"x": S}, {"x": "2*exp(-x**2)/sqrt(pi)"}),
    ("where(x > 0, x**2, -x)", {"x": S}, {"x": "where(x > 0, 2*x, -1)"}),
    ("sum(x)", {"x": (3,)}, {"x": "ones_like(x)"}),
    ("mean(x**2)", {"x": (3,)}, {"x": "2*x/3"}),
    ("norm(x)", {"x": (3,)}, {"x": "x/norm(x)"}),
    ("logsumexp(x, 0)", {"x": (3,)}, {"x": "softmax(x, 0)"}),
    ("prod(x)", {"x": (3,)}, {"x": "prod(x)/x"}),
    ("x[0]*x[1]", {"x": (2,)}, {"x": "stack([x[1], x[0]])"}),
    ("x@A@x", {"x": (3,), "A": (3, 3)}, {"x": "(A + A.T)@x", "A": "outer(x, x)"}),
    ("trace(A@B)", {"A": (3, 3), "B": (3, 3)}, {"A": "B.T", "B": "A.T"}),
    ("log(det(A))", {"A": (3, 3)}, {"A": "linalg.inv(A).T"}),
    ("sum(A**2)", {"A": (3, 2)}, {"A": "2*A"}),
    # over one denominator
    ("(x+1)/(x-1)", {"x": S}, {"x": "-2/(x - 1)**2"}),
    ("x/(x**2+1)", {"x": S}, {"x": "(1 - x**2)/(x**2 + 1)**2"}),
    ("x/sqrt(x**2+1)", {"x": S}, {"x": "1/(x**2 + 1)**(3/2)"}),
    ("x*sqrt(1-x**2)", {"x": S}, {"x": "(1 - 2*x**2)/sqrt(1 - x**2)"}),
    ("(x**2-1)/(x**2+1)", {"x": S}, {"x": "4*x/(x**2 + 1)**2"}),
    ("acos(x/2)", {"x": S}, {"x": "-1/sqrt(4 - x**2)"}),
    ("x/(1+abs(x))", {"x": S}, {"x": "1/(abs(x) + 1)**2"}),
    ("exp(x)/(1+exp(x))", {"x": S}, {"x": "sigmoid(x)*sigmoid(-x)"}),
    ("log(1+exp(x))", {"x": S}, {"x": "sigmoid(x)"}),
    ("(1-exp(-x))/(1+exp(-x))", {"x": S}, {"x": "2*sigmoid(x)*sigmoid(-x)"}),
    # exact constants, the user's order
    ("atan(sqrt(3)*x)", {"x": S}, {"x": "sqrt(3)/(3*x**2 + 1)"}),
    ("x**(3/2)", {"x": S}, {"x": "3*sqrt(x)/2"}),
    ("1.5*x**2", {"x": S}, {"x": "3*x"}),
    ("x**1.5", {"x": S}, {"x": "1.5*sqrt(x)"}),
    ("log(5)*x/3", {"x": S}, {"x": "log(5)/3"}),
    ("exp(1)*x", {"x": S}, {"x": "exp(1)"}),
    ("sin(c*x)", {"c": S, "x": S}, {"c": "x*cos(c*x)", "x": "c*cos(c*x)"}),
    ("x*sin(c*x)*c", {"c": S, "x": S}, {"c": "x*(sin(c*x) + c*x*cos(c*x))",
                                       "x": "c*(sin(c*x) + c*x*cos(c*x))"}),
    ("det(X)", {"X": (3, 3)}, {"X": "det(X)*linalg.inv(X).T"}),
    # losses
    ("x/2 - sin(2*x)/4", {"x": S}, {"x": "sin(x)**2"}),
    ("2*atan(exp(x))", {"x": S}, {"x": "1/cosh(x)"}),
    ("log10(x) + 0.3**x", {"x": S}, {"x": "1/(log(10)*x) + log(0.3)*0.3**x"}),
    ("deg2rad(x)", {"x": S}, {"x": "pi/180"}),
    ("-(t*log(sigmoid(z)) + (1-t)*log(1-sigmoid(z)))", {"t": S, "z": S},
     {"t": "log(sigmoid(-z)) - log(sigmoid(z))", "z": "sigmoid(z) - t"}),
]  # fmt: skip


@sweep(("source", "shapes", "expected"), PRINTED, parts=1)
def test_prints(source: str, shapes: Any, expected: dict[str, str]) -> None:
    assert derivatives(source, **shapes) == expected


@sweep(
    ("source", "order", "expected"),
    [
        ("sin(x)", 2, "-sin(x)"),
        ("sin(x)", 4, "sin(x)"),
        ("log(x)", 4, "-6/x**4"),
        ("exp(-x**2)", 3, "4*x*(3 - 2*x**2)*exp(-x**2)"),
        ("x**5", 6, "0"),
        ("exp(2*x)", 10, "1024*exp(2*x)"),
    ],
    parts=1,
)
def test_orders(source: str, order: int, expected: str) -> None:
    assert derivatives(source, order, x=()) == {"x": expected}


@sweep("name", SYMPY, often=1, parts=8)
def test_numbers_of_sympy(name: str) -> None:
    formula, given_ = next((f, g) for n, f, g in ROWS if n == name)
    arrays = values(given_)
    tensors = {n: gradcli.tensor(a) for n, a in arrays.items()}
    found = derivative(formula, given_)
    for variable, (expected, _) in SYMPY[name].items():
        value = language.run(language.parse(to_text(found.by[variable])), tensors).value
        np.testing.assert_allclose(float(value), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.long
def test_no_longer_than_sympy() -> None:
    mine = theirs = 0
    for name, formula, given_ in ROWS:
        if name in SYMPY:
            found = derivative(formula, given_)
            mine += sum(len(to_text(found.by[v])) for v in SYMPY[name])
            theirs += sum(length for _, length in SYMPY[name].values())
    assert mine <= theirs


# -- it evaluates to the gradient -----------------------------------------------------------------
def agree(source: str, tensors: dict[str, Any], rtol: float = 1e-9) -> None:
    """What is printed evaluates to the gradient, and keeps the variable's shape."""
    leaves = {n: t.clone().requires_grad_() for n, t in samples.floating(tensors).items()}
    program = language.parse(source)
    value = language.run(program, {**tensors, **leaves}).value
    grads = gradcli.autograd.grad(value.sum(), list(leaves.values()), allow_unused=True)
    arrays = {n: t.detach().numpy() for n, t in tensors.items()}
    found = differentiate(program, arrays, list(leaves))
    for (name, leaf), g in zip(leaves.items(), grads, strict=True):
        text = to_text(found.by[name])
        again = language.run(language.parse(text), tensors).value
        again = np.asarray(again.array if hasattr(again, "array") else again)
        expected = np.zeros(leaf.shape) if g is None else g.numpy()
        assert again.shape == expected.shape, text
        np.testing.assert_allclose(again, expected, rtol=rtol, atol=1e-11, err_msg=text)
        assert to_latex(found.by[name])


_numbers = st.sampled_from(["2", "3", "0.5", "7", "1/3", "pi", "1.25"])
_names = st.sampled_from(["x", "y", "z"])


def _grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    unary = st.sampled_from(
        [
            *("sin({})", "cos({})", "exp(-({})**2)", "tanh({})", "sqrt(1 + ({})**2)", "-({})"),
            *("log(2 + ({})**2)", "({})**2", "({})**3", "1/(1 + ({})**2)", "sigmoid({})"),
            *("atan({})", "abs({})", "relu({})", "where({} > x, {}, 2)"),
        ]
    )
    binary = st.sampled_from(["({})+({})", "({})-({})", "({})*({})", "({})/(2+({})**2)"])
    return st.one_of(
        st.builds(lambda f, a: f.replace("{}", a), unary, inner),
        st.builds(lambda f, a, b: f.format(a, b), binary, inner, inner),
    )


_expressions = st.recursive(st.one_of(_names, _numbers), _grow, max_leaves=8)


@given(source=_expressions, seed=st.integers(0, 1000), shape=st.sampled_from([(), (3,), (2, 3)]))
def test_evaluates_to_the_gradient(source: str, seed: int, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(seed)
    shapes = {"x": shape, "y": shape[-1:], "z": ()}
    tensors = {n: gradcli.tensor(rng.uniform(-2, 2, s)) for n, s in shapes.items()}
    source = f"({source}) + 0*x"
    agree(source, tensors, 1e-7 if "abs" in source else 1e-9)


# Random or of single precision (hardsigmoid's sixth is PyTorch's, of single precision); no variable that is
# real; what the sweep cannot write: a starred argument, `inf` as a variable, a list of tensors.
NOT_WRITTEN = re.compile(
    r"dropout|bernoulli|random|normal|uniform|exponential|cauchy|geometric|rrelu|gumbel|multinomial"
    r"|poisson|rand_like|randn_like|float\(\)|half\(\)|float32|hardsigmoid"
    r"|dtype=complex|^fft\.i?h?r?fft[2n]?\(fft\.|^vdot\(|^complex\(|\*linalg|\*nn\.|\binf\b|^gradient\("
)
# The derivatives that have no form as an expression; every other sample must be written.
NO_FORM = re.compile(
    r"^(_upsample_bilinear2d_aa|as_strided_scatter|block_diag|frexp|pdist"
    r"|grid_sampler_[23]d|linalg\.(lstsq|lu|lu_factor|lu_factor_ex)|lu|masked_scatter|nanmedian"
    r"|triangular_solve)\(|^aminmax\(randn\(2,3\)\)$"
    r"|^nn\.functional\.(\w+_pool[123]d\w*|conv\w+|grid_sample|embedding(_bag)?|fold|unfold|affine_grid"
    r"|bilinear|binary_cross_entropy|cross_entropy|linear_cross_entropy|ctc_loss|nll_loss|\w+_margin_loss"
    r"|interpolate|upsample\w*|local_response_norm|scaled_dot_product_attention)\("
    r"|^nn\.functional\.pad\(.*mode="
)
# What no expression holds, and what is said of it.
REFUSED = {
    r"^(?!mul\().*_\(": "a leaf Variable that requires grad is being used in an in-place operation",
    r"^masked_select\(": "how many elements there are depends on the variables' values",
}


@cache
def written() -> list[str]:
    """The samples with a real output that torch differentiates."""
    return [
        t for t in samples.texts() if not NOT_WRITTEN.search(t) and samples.has_real_gradient(t)
    ]


@sweep("text", written, parts=16, often=1)
def test_every_sample_of_the_table(text: str) -> None:
    source, tensors = samples.program(text)
    words = next((w for pattern, w in REFUSED.items() if re.search(pattern, text)), None)
    if words is not None:
        with pytest.raises(language.located_errors.LanguageError, match=re.escape(words)):
            agree(f"sum(({source})*w_)", {**tensors, "w_": gradcli.ones(())})
        return
    outputs = samples.outputs(source, tensors)
    real = [k for k, output in enumerate(outputs) if output.is_floating_point()]
    assert real
    for k in real:
        item = f"[{k}]" if len(outputs) > 1 else ""
        try:
            weights = samples.weights(outputs[k].shape)
            agree(f"sum(({source}){item}*w_)", {**tensors, "w_": weights})
        except NoExpression:
            assert NO_FORM.search(text)


# -- shapes that nobody gave ----------------------------------------------------------------------
@sweep(
    ("source", "expected"),
    [
        ("sin(x)*y", {"x": (), "y": ()}),
        ("2*dot(x,x)", {"x": (3,)}),
        ("sum((X@w-y)**2)", {"X": (4, 5), "w": (5,), "y": (4,)}),
        # what is taken together, or along a dimension, is a vector, or a matrix
        ("a*sum(log(softmax(x, 0)))", {"a": (), "x": (3,)}),
        ("sum(softmax(x, 0)*y)", {"x": (3,), "y": (3,)}),
        ("sum((x - mu)**2)/sigma**2", {"x": (3,), "mu": (), "sigma": ()}),
        ("d = x - mu; norm(d)", {"x": (3,), "mu": ()}),
        ("sum(a*b)", {"a": (3,), "b": (3,)}),
        ("sum(exp(X))", {"X": (4, 5)}),
        ("std(x)", {"x": (3,)}),
        # what is added to a vector is one, beside data a number
        ("norm(A@x - b)", {"A": (4, 5), "x": (5,), "b": (4,)}),
        ("mean((X@w + b - y)**2)", {"X": (4, 5), "w": (5,), "b": (), "y": (4,)}),
        ("w@w/2 + C*sum(relu(1 - y*(X@w)))", {"w": (4,), "C": (), "y": (5,), "X": (5, 4)}),
        # equal letters of an index are equal sizes
        ("trace(X)", {"X": (3, 3)}),
        ("trace(A@X)", {"A": (4, 5), "X": (5, 4)}),
        ("trace(X.T@A@X)", {"X": (4, 5), "A": (4, 4)}),
        # a number multiplies a matrix, and is no row of it; a bias is one, and a constant matrix makes one
        ("trace(linalg.inv(A + t*B))", {"A": (3, 3), "t": (), "B": (3, 3)}),
        ("logdet(K + s**2*eye(3))", {"K": (3, 3), "s": ()}),
        ("sum((X@W + b - Y)**2)", {"X": (4, 5), "W": (5, 6), "b": (6,), "Y": (4, 6)}),
        ("(X@b + c)@(X@b + c)", {"X": (4, 5), "b": (5,), "c": (4,)}),
        ("norm(X.T@X - eye(4))", {"X": (5, 4)}),
        ("trace(kron(A, B))", {"A": (4, 4), "B": (5, 5)}),
        # dimensions of one size may be many
        ("trace(P@B@linalg.inv(R)@B.T@P)", {"P": (4, 4), "B": (4, 5), "R": (5, 5)}),
        ("norm(A@X - X@B - C)", {"A": (4, 4), "X": (4, 5), "B": (5, 5), "C": (4, 5)}),
        # what is inverted has full rank: in this order of the sizes
        ("logdet(X.T@X)", {"X": (5, 4)}),
        ("logdet(X@X.T)", {"X": (4, 5)}),
        ("trace(linalg.inv(B.T@A@B))", {"B": (5, 4), "A": (5, 5)}),
        ("det(X.T@X) + det(X@X.T)", {"X": (3, 3)}),
        ("a = sin(s); b = a[None]; b[0]", {"s": ()}),
        ("1/sqrt(x - 5) + log(y - 20)", {"x": (), "y": ()}),
        ("log(det(A))", {"A": (3, 3)}),
        ("x@A@x", {"x": (3,), "A": (3, 3)}),
        ("bmm(A, B)", {"A": (4, 5, 6), "B": (4, 6, 7)}),
        ("F.conv2d(x, w)", {"x": (3, 3, 3, 3), "w": (3, 3, 3, 3)}),
        ("F.glu(x, 0)", {"x": (4,)}),
    ],
    parts=1,
)
def test_shapes_are_worked_out(source: str, expected: dict[str, tuple[int, ...]]) -> None:
    program = language.parse(source)
    assert infer(program, {}, {}, list(expected), {}) == expected


def test_branches_are_pieces_unless_values_are_followed() -> None:
    program, at = language.parse("x if x > 0 else -x"), {"x": np.float64(2)}
    assert to_text(differentiate(program, at).by["x"]) == "where(x > 0, 1, -1)"
    assert to_text(differentiate(program, at, follow=True).by["x"]) == "1"


def test_a_loop_needs_values() -> None:
    program = language.parse("while x < 9:\n    x = x*2\nx")
    with pytest.raises(language.located_errors.LanguageError, match="which way the program goes"):
        differentiate(program, {"x": np.float64(2)})


def test_hundreds_of_terms_and_levels() -> None:
    source = "+".join(f"{k}*x**{k % 7}" for k in range(1, 200))
    assert derivatives(source, x=())["x"].count("x") == 5
    nested = "x"
    for _ in range(200):
        nested = f"sin({nested})"
    assert derivatives(nested, x=())["x"].startswith("cos(")


@pytest.mark.long
def test_a_sum_of_many_terms_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    terms = 0
    combine = algebra.combine

    def counted(given: Any) -> Any:
        nonlocal terms
        listed = list(given)
        terms += len(listed)
        return combine(listed)

    monkeypatch.setattr(algebra, "combine", counted)
    n = 150
    derivatives(" + ".join(f"sin({k}*x)*x**{k % 5}" for k in range(1, n)), x=())
    assert terms < 50 * n  # and not n**2/2


# What random programs found: every text has to run, and to be the gradient.
RUNS: list[tuple[str, dict[str, tuple[int, ...]]]] = [
    ("outer(x, x).sum()", {"x": (2,)}),
    ("outer(x, y)", {"x": (1,), "y": (3,)}),
    ("X*B", {"X": (2, 2), "B": (3, 1, 1)}),
    ("mean(hypot(X, Y))", {"X": (1, 3), "Y": (0, 3)}),
    ("mean(x)*y", {"x": (0,), "y": (2,)}),
    ("sum(A@(X*(X > 0.9)))", {"A": (2, 3), "X": (3, 2)}),
    ("1 - X*(X > 0.9)", {"X": (2, 2)}),
    ("amax(A@x)", {"A": (3, 2), "x": (2,)}),
    ("sum(relu(x - 1)@A)", {"x": (3,), "A": (3, 2)}),
    ("sqrt(2)*sum(x)", {"x": (3,)}),
    ("sinc(A@A.T)", {"A": (3, 2)}),
    ("maximum(x, x)**2", {"x": (3,)}),
    ("sort(x)[0][1]*x[0]", {"x": (3,)}),
    ("x[1]", {"x": (3,)}),
]


@pytest.mark.parametrize("order", [1, 2])
@sweep(("source", "shapes"), RUNS, parts=1)
def test_runs(source: str, shapes: dict[str, tuple[int, ...]], order: int) -> None:
    arrays = {n: sample(s, k) for k, (n, s) in enumerate(shapes.items())}
    found = differentiate(language.parse(source), arrays, order=order, follow=True)
    leaves = {n: gradcli.tensor(a, requires_grad=True) for n, a in arrays.items()}
    for name in shapes:
        value = language.run(language.parse(source), leaves).value
        for _ in range(order):
            slope = None
            if value.requires_grad:
                options = {"create_graph": True, "allow_unused": True}
                (slope,) = gradcli.autograd.grad(value.sum(), [leaves[name]], **options)
            value = gradcli.zeros_like(leaves[name]) if slope is None else slope
        text = to_text(found.by[name])
        plain = {n: t.detach() for n, t in leaves.items()}
        again = np.asarray(language.run(language.parse(text), plain).value)
        np.testing.assert_allclose(again, value.detach().numpy(), rtol=1e-9, atol=1e-12)


# Characters of SymPy 1.14's derivative of order 8; of x**x it has 379, with more operations.
EIGHTH = {
    "sigmoid(x)": 269, "log(1+exp(x))": 245, "x**x": 565, "tanh(x)": 136, "sin(x)**3": 41,
    "exp(-x**2)": 62, "exp(sin(x))": 272, "sqrt(1+x**2)": 123, "1/(1+x**2)": 119, "tan(x)": 128,
    "x*exp(-x)*sin(x)": 43, "atan(x)": 95, "log(x)**2": 26,
}  # fmt: skip


@sweep(("source", "length"), EIGHTH.items(), often=1, parts=13)
def test_high_orders_stay_short(source: str, length: int) -> None:
    found = differentiate(language.parse(source), {"x": np.float64(0.7)}, order=8)
    assert len(to_text(found.by["x"])) <= 1.1 * length
