"""Derivatives as programs: they run, with what they import, and give what grad gives."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import language
from gradcli.formulas.algebra.generic_points import sample
from gradcli.formulas.ask.proof import proved
from gradcli.formulas.derive.differentiate import differentiate
from gradcli.formulas.lift.lifting import NoExpression
from gradcli.formulas.print.jax_code import to_jax
from gradcli.formulas.print.python_code import to_code
from tests.sweep import sweep

PROGRAMS: list[tuple[str, dict[str, tuple[int, ...]]]] = [
    ("sigmoid(x)*F.softplus(x)*F.silu(x)*F.logsigmoid(x)", {"x": ()}),
    ("sum(y*(A@x))", {"A": (3, 2), "x": (2,), "y": (3,)}),
    ("x[1]*sum(A[0])", {"A": (3, 2), "x": (2,)}),
    ("amax(A@x)*sum(maximum(x, 0.9))", {"A": (3, 2), "x": (2,)}),
    ("sum(sort(x)[0]*y)", {"x": (4,), "y": (4,)}),
    ("topk(x, 2)[0]*y", {"x": (4,), "y": (2,)}),
    ("sum(special.erfcx(x) + digamma(x) + special.i1(x))", {"x": (4,)}),
    ("logdet(A)*trace(A) + sum(diag(A))", {"A": (3, 3)}),
    ("index_put(x, (tensor([0, 1]),), 2)*x", {"x": (3,)}),
    ("(F.gelu(x, approximate='tanh') > 0.1)*x", {"x": (3,)}),
    (
        "F.cross_entropy(linalg.vector_norm(X, 0, dim=1), tensor(1))*x*X[0, 0]",
        {"X": (3, 2), "x": (3,)},
    ),
    ("x[2:].masked_fill(tensor([]).bool(), 0.5)*x[:0]", {"x": (2,)}),
    ("var(x)*std(x, correction=0)*median(x)", {"x": (5,)}),
    ("max(A, 1)[0] + cummax(A, 1)[0][:, 0]", {"A": (3, 2)}),
    ("F.elu(x) + F.leaky_relu(x - 1) + F.hardtanh(x) + F.mish(x)", {"x": (3,)}),
    ("linalg.vector_norm(x, 3)*logcumsumexp(x, 0)", {"x": (3,)}),
    ("sum(matrix_exp(A)*B)", {"A": (3, 3), "B": (3, 3)}),
    ("prod(x)*roll(x, 1, 0)", {"x": (3,)}),
    ("F.binary_cross_entropy_with_logits(x, y)", {"x": (3,), "y": (3,)}),
    ("sum(w*layer_norm(x, [3]))*norm(x, 3)", {"x": (2, 3), "w": (2, 3)}),
    ("F.binary_cross_entropy(sigmoid(z), sigmoid(t))", {"z": (3,), "t": (3,)}),
    ("scaled_dot_product_attention(q, q, v, is_causal=True)", {"q": (3, 2), "v": (3, 4)}),
    ("trace(A*outer(x, x))*det(A)", {"A": (3, 3), "x": (3,)}),
    ("hypot(x, 0.1)*atan2(x, 2)*log(5)*sqrt(3)", {"x": (3,)}),
    ("mvlgamma(x - 0.9, 2)*x", {"x": (3,)}),
    ("kthvalue(x, 1)[0]*x", {"x": ()}),
    ("quantile(x, 0.3)*x", {"x": ()}),
    ("hardshrink(x, 0.3)", {"x": (0,)}),
]


FORMS = ("python", "numpy", "torch", "jax")
# Each program in every form; the first part has each of them in one.
WRITTEN = [(*row, FORMS[(k + turn) % 4]) for k, row in enumerate(PROGRAMS) for turn in range(4)]


@pytest.mark.long
@sweep(("source", "shapes", "form"), WRITTEN, parts=8, often=1)
def test_programs_are_proved(source: str, shapes: dict[str, Any], form: str) -> None:
    arrays = {n: sample(s, k) for k, (n, s) in enumerate(shapes.items())}
    if form == "jax" and "erfcx" in source:
        with pytest.raises(NoExpression, match=r"JAX has no function for special\.erfcx"):
            proved(language.parse(source), arrays, shapes, given=True, form=form)
        return
    _, made, singular = proved(language.parse(source), arrays, shapes, given=True, form=form)
    assert singular is None and "def value_and_gradient(" in made.code
    if form in ("python", "numpy"):
        space: dict[str, Any] = {}
        exec(made.code, space)
        space["value_and_gradient"](*(a if a.ndim else a.item() for a in arrays.values()))


@pytest.mark.parametrize(
    ("source", "form", "imports"),
    [
        ("special.erf(s)*math_*2", "numpy", ["math", "numpy"]),
        ("special.erf(s)*2", "python", ["math"]),
        ("F.softplus(s)*torch.sin(s)", "numpy", ["numpy"]),
        ("tensor([1.0, 2.0])*s", "python", ["numpy"]),
    ],
)
def test_a_program_imports_what_it_uses(source: str, form: str, imports: list[str]) -> None:
    """Not what the program that it quotes has, which NumPy's users may lack."""
    program = language.parse(source)
    arrays = dict.fromkeys(program.free_variables(), np.asarray(0.7))
    _, made, _ = proved(program, arrays, list(arrays), given=True, form=form)
    said = [line.split()[1] for line in made.code.splitlines() if " import " in f" {line}"]
    assert [word.partition(".")[0] for word in said] == imports


@pytest.mark.needs("torch")
@sweep(("source", "shapes"), PROGRAMS, parts=1)
def test_torch_runs_what_is_printed_for_it(source: str, shapes: dict[str, Any]) -> None:
    torch = importlib.import_module("torch")
    arrays = {n: sample(s, k) for k, (n, s) in enumerate(shapes.items())}
    space: dict[str, Any] = {}
    exec(to_code(differentiate(language.parse(source), arrays, follow=True), "torch"), space)
    leaves = [torch.tensor(a, requires_grad=True) for a in arrays.values()]
    value, grads = space["value_and_gradient"](*(t.detach() for t in leaves))
    again, _ = space["value_and_gradient"](*leaves)
    again.sum().backward()
    for g, leaf in zip(grads if len(leaves) > 1 else (grads,), leaves, strict=True):
        np.testing.assert_allclose(g.numpy(), leaf.grad.numpy(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(value.numpy(), again.detach().numpy())


# Formulas that have no variable in them, or conditions and numbers alone.
OF_ITS_DTYPE: list[tuple[str, dict[str, tuple[int, ...]]]] = [
    ("relu(x)", {"x": (3,)}),
    ("F.leaky_relu(x)", {"x": (3,)}),
    ("clamp(x, 0.2, 0.7)", {"x": (3,)}),
    ("maximum(x, y)", {"x": (3,), "y": (3,)}),
    ("amax(tensor([[1.0], [1.0], [1.0]])*x[0], 0)", {"x": (3,)}),
    ("amax(x)", {"x": (3,)}),
    ("median(x)", {"x": (3,)}),
    ("nanmean(x)", {"x": (3,)}),
    ("stack([sqrt(2), x[0]])*x[1]", {"x": (3,)}),
    ("quantile(x, 0.3)", {"x": (3,)}),
    ("nanquantile(A, 0.7, 0, True)", {"A": (2, 3)}),
]


@pytest.mark.needs("torch")
@sweep(("source", "shapes"), OF_ITS_DTYPE, parts=1)
def test_gradients_for_torch_have_the_dtype_of_the_variables(
    source: str, shapes: dict[str, Any]
) -> None:
    """In torch, where numbers alone make integers or float32; in ours the default may be float64."""
    torch = importlib.import_module("torch")
    arrays = {n: sample(s, k) for k, (n, s) in enumerate(shapes.items())}
    space: dict[str, Any] = {}
    exec(to_code(differentiate(language.parse(source), arrays, follow=True), "torch"), space)
    for dtype in (torch.float64, torch.float32):
        leaves = [torch.tensor(a, dtype=dtype, requires_grad=True) for a in arrays.values()]
        value, grads = space["value_and_gradient"](*leaves)
        value.sum().backward()
        for g, leaf in zip(grads if len(leaves) > 1 else (grads,), leaves, strict=True):
            assert g.dtype is dtype
            np.testing.assert_allclose(g.detach().numpy(), leaf.grad.numpy(), rtol=1e-6)


OF_NUMPY: list[tuple[str, dict[str, tuple[int, ...]]]] = [
    *((f"special.bessel_{w}(x)*x", {"x": (3,)}) for w in ("j0", "j1", "y0", "y1")),
    *((f"special.modified_bessel_{w}(x)*x", {"x": (3,)}) for w in ("i0", "i1", "k0", "k1")),
    ("ldexp(x, y)", {"x": (3,), "y": (3,)}),
    ("F.glu(cat([x, x*x]), 0)", {"x": (3,)}),
    ("nextafter(x, x + 1)", {"x": (3,)}),
    ("atanh(x/9)*hypot(x, atan2(x, 2))*exp2(x)", {"x": (3,)}),
    ("where(logical_not(x > 0.5), x, x**2)", {"x": (3,)}),
    ("vdot(x, y)*x", {"x": (3,), "y": (3,)}),
    ("x.kthvalue(2).values*x", {"x": (3,)}),
    ("renorm(A, 3, 0, 0.5)", {"A": (2, 3)}),
    ("x.index_select(0, tensor([0, 0, 1]))**2", {"x": (3,)}),
    ("x.index_select(0, tensor([0]))**2", {"x": ()}),
    ("F.cross_entropy(x, tensor(0))", {"x": (3,)}),
    ("F.cross_entropy(A, tensor([0, 1]), ignore_index=1)", {"A": (2, 3)}),
    ("F.cross_entropy(A, tensor([0, 1]), tensor([1.0, 2.0, 3.0]))", {"A": (2, 3)}),
    ("F.nll_loss(A, tensor([0, 1]), reduction='none')", {"A": (2, 3)}),
]
# Functions of many options, whose texts are longer: in NumPy's code.
OF_MANY_OPTIONS: list[tuple[str, dict[str, tuple[int, ...]]]] = [
    (
        "F.conv1d(x, w, dilation=2, groups=2, padding=2, stride=2)**2",
        {"x": (2, 4, 7), "w": (4, 2, 2)},
    ),
    ("F.conv2d(x, w, b, (2, 1), (1, 0))**2", {"x": (3, 5, 6), "w": (4, 3, 2, 2), "b": (4,)}),
    ("F.conv3d(x, w)**2", {"x": (2, 2, 3, 2, 4), "w": (1, 2, 2, 2, 2)}),
    ("F.conv_transpose1d(x, w, None, 3, 2, 1)**2", {"x": (2, 3, 5), "w": (3, 4, 2)}),
    (
        "F.conv_transpose2d(x, w, stride=2, groups=3, dilation=(2, 1))**2",
        {"x": (3, 2, 3), "w": (3, 2, 2, 1)},
    ),
    ("F.avg_pool1d(x, 3, 2, 1)**2", {"x": (2, 3, 7)}),
    ("F.avg_pool2d(x, (2, 3), (1, 2))**2", {"x": (3, 5, 7)}),
    ("F.lp_pool3d(x**2, 2, 2)", {"x": (1, 2, 2, 4)}),
    ("constant_pad_nd(x, (1, -1, 0, 3), 2.5)**2", {"x": (2, 3)}),
    (
        "put(x, tensor([[0, -1]]), y)**2 + put(x, tensor([1, 1]), y, True)",
        {"x": (2, 3), "y": (2, 1)},
    ),
    ("take(x, tensor([0, 5, 5]))**2", {"x": (2, 3)}),
    ("index_copy(x, 1, tensor([0, 2]), y)**2", {"x": (2, 3), "y": (2, 2)}),
    ("index_copy(x, 0, tensor([0]), y)**2", {"x": (), "y": ()}),
    *(
        (f"{f}(x, 0, tensor([0, 0, 1]), y, '{r}', include_self={own})**2", {"x": (3,), "y": (3,)})
        for f in ("index_reduce", "scatter_reduce")
        for r in ("prod", "mean", "amax")
        for own in (True, False)
    ),
    ("scatter_reduce(x, 0, tensor(0), y, 'sum')**2", {"x": (), "y": ()}),
    (
        "scatter_reduce(x, 0, tensor(1), y, 'amin')*scatter(x, 0, tensor(1), 2)",
        {"x": (3,), "y": ()},
    ),
    ("scatter_add(x, 0, tensor(1), y)*scatter(x, 0, tensor(1), y)", {"x": (3,), "y": ()}),
    ("index_copy(x, 0, tensor(1), y)*index_select(x, 0, tensor(1))", {"x": (3,), "y": ()}),
    (
        "index_add(x, 0, tensor(1), y)*index_reduce(x, 0, tensor(1), y, 'mean')",
        {"x": (3,), "y": (1,)},
    ),
    ("scatter(x, 1, tensor([[0], [2]]), y)**2", {"x": (2, 3), "y": (2, 1)}),
    ("scatter(x, -1, tensor([[0], [2]]), 9.0)**2", {"x": (2, 3)}),
    ("dist(x, y, 3)*dist(x, y)*dist(x, y, 1)", {"x": (2, 3), "y": (3,)}),
    (
        "addr(x, x, y, beta=2)**2 + addbmm(y, a, a.mT, alpha=3)",
        {"x": (3,), "y": (3,), "a": (2, 3, 3)},
    ),
    ("cholesky_solve(y, x, upper=True)**2", {"x": (2, 2), "y": (2, 1)}),
    ("cholesky_inverse(x)*cholesky(x@x.T + eye(2), upper=True)", {"x": (2, 2)}),
    ("as_strided_scatter(x, y, (2,), (2,), 1)**2*narrow_copy(x, 0, 1, 1)", {"x": (4,), "y": (2,)}),
    ("F.pixel_shuffle(F.pixel_unshuffle(x**2, 2), 2)*F.channel_shuffle(x, 2)", {"x": (1, 2, 4, 2)}),
    ("masked_select(x, tensor([True, False]))**2", {"x": (3, 2)}),
    ("quantile(x, 0.5, dim=1)**2", {"x": (2, 3)}),
    ("unfold(x, 0, 3, 2)**2", {"x": (6,)}),
    ("sum(unfold(x, -2, 2, 1)**2)*unfold(x, 1, 0, 1).sum()", {"x": (2, 4, 3)}),
    ("special.zeta(3.5, x + 1)*special.zeta(tensor([2.0, 3.0]), x)", {"x": (2,)}),
    ("sum((A@diag(x)@A)**3)", {"x": (2,), "A": (2, 2)}),
]


@sweep(("source", "shapes"), OF_NUMPY, parts=4, often=1)
def test_what_numpy_lacks_is_scipys_or_written_out(source: str, shapes: dict[str, Any]) -> None:
    for form in ("numpy", "python"):
        code = ran(source, shapes, form)
        if "bessel" in source:
            assert "from scipy import special  # for what NumPy lacks" in code


@sweep(("source", "shapes"), OF_MANY_OPTIONS, parts=12, often=1)
def test_what_takes_many_options_is_written_out(source: str, shapes: dict[str, Any]) -> None:
    ran(source, shapes, "numpy")


def ran(source: str, shapes: dict[str, Any], form: str) -> str:
    """The code of a program and its gradients, proved and then run by itself."""
    arrays = {n: sample(s, k) for k, (n, s) in enumerate(shapes.items())}
    _, made, singular = proved(language.parse(source), arrays, shapes, given=True, form=form)
    assert singular is None
    space: dict[str, Any] = {}
    exec(made.code, space)
    space["value_and_gradient"](*arrays.values())
    return str(made.code)


@pytest.mark.parametrize("name", ["bessel_j0", "bessel_y1", "modified_bessel_k0", "erfcx"])
def test_what_jax_lacks_is_said(name: str) -> None:
    program = language.parse(f"special.{name}(x)")
    with pytest.raises(NoExpression, match=rf"JAX has no function for special\.{name}"):
        to_jax(differentiate(program, {"x": np.asarray(0.7)}))


def test_helpers_for_jax_use_nothing_that_numpy_has_alone() -> None:
    arrays = {"x": np.array([0.2, 0.7]), "y": np.array([1.0, 0.0])}
    text = to_jax(differentiate(language.parse("F.binary_cross_entropy(x, y)"), arrays))
    assert "errstate" not in text and "jnp.log1p" in text


@pytest.mark.long
@pytest.mark.needs("jax")
def test_jax_runs_what_is_printed_for_it() -> None:
    jax = importlib.import_module("jax")
    for source, shapes in (*PROGRAMS, *OF_MANY_OPTIONS):
        arrays = {n: sample(s, k) for k, (n, s) in enumerate(shapes.items())}
        found = differentiate(language.parse(source), arrays, follow=True)
        space: dict[str, Any] = {}
        try:
            exec(to_jax(found), space)
        except NoExpression:
            continue
        _, grads = jax.jit(space["value_and_gradient"])(*arrays.values())
        leaves = {n: gradcli.tensor(a, requires_grad=True) for n, a in arrays.items()}
        language.run(language.parse(source), leaves).value.sum().backward()
        for g, leaf in zip(grads if len(leaves) > 1 else (grads,), leaves.values(), strict=True):
            expected = leaf.grad.numpy()
            np.testing.assert_allclose(np.asarray(g), expected, 1e-9, 1e-12, err_msg=source)


@sweep("x", [-1000.0, -30.0, 0.0, 30.0, 1000.0], parts=1)
@pytest.mark.parametrize("form", ["python", "numpy"])
def test_nothing_overflows(form: str, x: float) -> None:
    for source, slope in (("sigmoid(x)", 0.25), ("F.softplus(x)", 0.5), ("F.silu(x)", 0.5)):
        found = differentiate(language.parse(source), {"x": np.float64(0.5)})
        space: dict[str, Any] = {}
        exec(to_code(found, form), space)
        with np.errstate(over="raise"):
            value, grad = space["value_and_gradient"](x)
        assert np.isfinite(value) and np.isfinite(grad)
        if x == 0:
            assert grad == slope
