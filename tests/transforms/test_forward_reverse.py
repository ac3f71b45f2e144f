"""Forward mode, reverse mode and differences agree on every sample of the table."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import language
from gradcli.torch.autograd import forward_ad
from gradcli.transforms import traced_matrices
from tests.engine.registry import samples
from tests.sweep import sweep

# Rows whose gradient has no derivative, in torch neither; forward mode goes through that derivative.
NO_SECOND_DERIVATIVE = re.compile(
    r"cdist\(|pdist\(|ctc_loss\(|multi_margin_loss\(|multilabel_margin_loss\(|embedding_bag\("
    r"|grid_sample|scaled_dot_product_attention\(|hardsigmoid\("
)
REFUSED = (RuntimeError, NotImplementedError, language.located_errors.LanguageError)
# Not differentiable at the sample, or defined by PyTorch in another way than the limit.
NO_DIFFERENCES = (
    *("mode(", "unique", "padding_idx", "remainder(", "fmod(", "floor_divide", "heaviside"),
    *("cholesky", "eigh", "eigvalsh", "quantile(", "resize_", "soft_margin_loss", "detach"),
    *("nan", "ctc_loss", "ormqr", "lstsq", "sgn(", "rounding_mode"),
)


def case(text: str) -> tuple[Any, dict[str, Any], Any]:
    """(program, variables, first output) of a sample."""
    source, tensors = samples.program(text)
    outputs = samples.outputs(source, tensors)
    program = language.parse(f"({source})[0]" if len(outputs) > 1 else source)
    return program, tensors, outputs[0]


def run(program: Any, tensors: dict[str, Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return language.run(program, tensors).value


@sweep("text", samples.differentiable, parts=8, often=2)
def test_products_agree(text: str) -> None:
    """v·(J u) three ways: by forward mode, by reverse mode, by differences."""
    program, tensors, output = case(text)
    wanted = samples.floating(tensors)
    leaves = {n: t.detach().clone().requires_grad_() for n, t in wanted.items()}
    value = run(program, {**tensors, **leaves})
    seed = samples.weights(output.shape)
    grads = gradcli.autograd.grad(value, list(leaves.values()), seed, allow_unused=True)
    rng = np.random.default_rng(1)
    moved = {n: g for n, g in zip(leaves, grads, strict=True) if g is not None}
    assert moved
    directions = {n: gradcli.tensor(rng.standard_normal(wanted[n].shape)) for n in moved}
    reverse = sum(float((moved[n] * directions[n]).sum()) for n in moved)

    def forward() -> float:
        with forward_ad.dual_level():
            duals = {n: forward_ad.make_dual(wanted[n].detach(), d) for n, d in directions.items()}
            pushed = forward_ad.unpack_dual(run(program, {**tensors, **duals})).tangent
        return 0.0 if pushed is None else float((pushed * seed).sum().detach())

    size = max(abs(reverse), 1.0)
    try:
        assert abs(forward() - reverse) <= 1e-8 * size
    except REFUSED as error:
        assert "implemented" in str(error) and NO_SECOND_DERIVATIVE.search(text)
    if any(word in text for word in NO_DIFFERENCES):
        return

    def along(step: float) -> float:
        near = {n: gradcli.tensor(wanted[n].numpy() + step * directions[n].numpy()) for n in moved}
        return float((run(program, {**tensors, **near}).detach() * seed).sum())

    h = 1e-5
    numerical = (8 * (along(h) - along(-h)) - (along(2 * h) - along(-2 * h))) / (12 * h)
    assert abs(numerical - reverse) <= 1e-5 * size


# Operators that do not know how to take many seeds at once: each runs once for each seed.
BY_ENTRY = frozenset(
    [
        *("nn.functional.nll_loss", "pdist_backward", "masked_scatter", "masked_scatter_backward"),
        *(
            "grid_sampler_double",
            "convolution_gradients",
            "put",
            "as_strided_scatter",
            "nn.functional.conv1d",
        ),
        *("embedding_backward", "_embedding_bag_backward", "backward"),
        *("as_strided_copy", "block_diag", "nn.functional.affine_grid"),
    ]
)
# Functions whose gradient has no derivative: no columns at once.
ONCE = ("cdist", "pdist", "grid_sample", "hardsigmoid", "ctc_loss", "embedding_bag", "margin_loss(")


@sweep("text", samples.differentiable, parts=8, often=1)
def test_batched_jacobians(text: str) -> None:
    """All rows and all columns at once give what one row after the other gives."""
    program, tensors, output = case(text)
    wrt = list(samples.floating(tensors))
    if output.numel() > 40 or sum(tensors[n].numel() for n in wrt) > 60:
        return  # one row after the other takes long
    expected = row_by_row(program, tensors, wrt)
    for mode in ("reverse", "forward"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = traced_matrices.jacobian(program, tensors, wrt, mode=mode)
        assert set(found.slow) <= BY_ENTRY
        if mode == "reverse" or not any(word in text for word in ONCE):
            assert found.method == mode
        for n, e in zip(wrt, expected, strict=True):
            np.testing.assert_allclose(
                found.by[n], e, rtol=1e-8, atol=1e-10, err_msg=f"{n}, {found.method}"
            )


def row_by_row(program: Any, tensors: dict[str, Any], wrt: list[str]) -> list[Any]:
    """The Jacobians, by one backward pass for each element of the value."""
    leaves = [tensors[n].detach().clone().requires_grad_() for n in wrt]
    value = run(program, {**tensors, **dict(zip(wrt, leaves, strict=True))})
    rows: list[list[Any]] = [[] for _ in wrt]
    for k in range(value.numel()):
        unit = np.zeros(value.numel())
        unit[k] = 1
        found: Any = [None] * len(wrt)
        if value.requires_grad:
            seed = gradcli.tensor(unit.reshape(value.shape))
            found = gradcli.autograd.grad(value, leaves, seed, retain_graph=True, allow_unused=True)
        for row, g, leaf in zip(rows, found, leaves, strict=True):
            row.append(np.zeros(leaf.shape) if g is None else g.numpy())
    return [
        np.reshape(row, (*value.shape, *leaf.shape)) for row, leaf in zip(rows, leaves, strict=True)
    ]


NOT_SMOOTH = (
    *("relu", "abs", "max", "min", "clamp", "shrink", "hardtanh", "hardsigmoid", "hardswish"),
    *("threshold", "sign", "sgn", "norm(", "cdist", "dist(", "sort", "topk", "median", "kthvalue"),
    *(
        "quantile",
        "loss",
        "pool",
        "mode(",
        "frac",
        "round",
        "floor",
        "ceil",
        "trunc",
        "celu",
        "elu",
    ),
)


def smooth() -> list[str]:
    """The samples that have a second derivative at the point."""
    words = (*NOT_SMOOTH, *NO_DIFFERENCES)
    return [
        t
        for t in samples.differentiable()
        if not any(w in t for w in words) and not NO_SECOND_DERIVATIVE.search(t)
    ]


@pytest.mark.long
@sweep("text", smooth, parts=16)
def test_second_derivatives(text: str) -> None:
    """gradgradcheck on every smooth sample."""
    program, tensors, output = case(text)
    wrt = list(samples.floating(tensors))
    if output.numel() > 30 or sum(tensors[n].numel() for n in wrt) > 40:
        return  # all pairs of elements take long

    def function(*given: Any) -> Any:
        return run(program, {**tensors, **dict(zip(wrt, given, strict=True))})

    leaves = tuple(tensors[n].detach().clone().requires_grad_() for n in wrt)
    gradcli.autograd.gradgradcheck(function, leaves, check_undefined_grad=False)


# What is written in place, or read by its place in memory, after tangents have reached it: of x of
# shape (2, 2), b of shape (2,). A tangent has memory of its own, that lies as its tensor's does.
WRITTEN = [
    "y = x*1; v = y[...]; d = y.detach(); d[1] *= b; v + b",
    "h = frac(x); h.mul_(2); h + x",
    "h = remainder(x, 0.7); h.mul_(2); h + x",
    "h = addmm(x, eye(2), eye(2)); h.mul_(2); h + x",
    "h = addcmul(b, x, x); h[0].mul_(x[0]); h",
    "h = addcmul(b, x, x); h.view(-1).mul_(2.); h",
    "h = addcmul(b, x, x); h.mul_(x); h",
    "h = addcmul(b, x, x); h.t_(); h[0] *= 3; h",
    "h = F.linear(x, x, b); h[0].copy_(b*2); h",
    "h = F.linear(x, x, b); h[:, 0] = b[0]*b[1]; h",
    "F.linear(x, x, b).as_strided((3,), (1,))",
    "addmm(b, x, x.T).view(-1)",
    "(x.T + b).T.view(-1)*b[0]",
    "addcmul(b, x, x).as_strided((2, 2), (1, 2), 0)",
    "mm(x, x.T).view(-1)*b[0]",
    "mm(x, x.T).as_strided((3,), (1,), 1)*b[0]",
    "h = x*1; h.sin_(); h",
]


def test_a_gradient_that_is_expanded_has_tangents() -> None:
    at = (gradcli.tensor([0.33]), gradcli.tensor([-0.26, 1.22]))

    def value(a: Any, b: Any) -> Any:
        return (a * b.sum()).sum()

    found = gradcli.func.jacfwd(gradcli.func.jacrev(value, (0, 1)), (0, 1))(*at)
    assert found[0][1].tolist() == [[1, 1]] and found[1][0].tolist() == [[1], [1]]


@sweep("source", WRITTEN, parts=1)
def test_tangents_of_what_is_written(source: str) -> None:
    free = set(language.parse(source).free_variables())
    for wrt in ("x", "b", "xb"):
        if set(wrt) <= free:
            check_written(source, wrt)


def check_written(source: str, wrt: str) -> None:
    program = language.parse(source)
    names = list(wrt)
    own = {"x": gradcli.tensor([[0.3, 0.9], [1.2, -0.4]]), "b": gradcli.tensor([0.6, -1.1])}
    along = [gradcli.tensor([[1.0, -2.0], [0.5, 3.0]]), gradcli.tensor([0.7, -0.3])]
    at = tuple(own[n] for n in names)
    directions = tuple(along["xb".index(n)].clone() for n in names)

    def value(*given: Any) -> Any:
        return run(program, {**own, **dict(zip(names, given, strict=True))})

    every = tuple(range(len(names)))
    by_rows = gradcli.func.jacrev(value, every)(*at)
    wanted = sum(
        np.tensordot(j.numpy(), v.numpy(), axes=v.ndim)
        for j, v in zip(by_rows, directions, strict=True)
    )
    _, found = gradcli.func.jvp(value, at, directions)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12)
    for j, k in zip(gradcli.func.jacfwd(value, every)(*at), by_rows, strict=True):
        np.testing.assert_allclose(j.numpy(), k.numpy(), rtol=1e-12)
    for n, v in zip(names, directions, strict=True):  # the caller's are untouched
        assert (v == along["xb".index(n)]).all()


_ZEROS = gradcli.tensor([[1.0, 1, 1], [0, 0, 0], [1, 2, 3]], dtype=gradcli.float64)
# Slopes that are masked where they divide by 0: of norms and deviations that are 0.
MASKED: dict[str, Any] = {
    "norm of order 3": lambda x: gradcli.linalg.vector_norm(x, 3.0, 1),
    "norm of order 1.5": lambda x: gradcli.linalg.vector_norm(x, 1.5, 1),
    "norm": lambda x: x.norm(dim=1),
    "norm of all": lambda x: (x * 0).norm(3),
    "std": lambda x: x.std(1),
    "std of all": lambda x: (x * 0).std(),
    "std_mean": lambda x: gradcli.stack(gradcli.std_mean(x, 1)),
}


@sweep("name", MASKED, parts=1)
def test_slopes_that_are_masked(name: str) -> None:
    """Forward mode, alone, in a batch and in a batch of batches, where reverse mode is 0."""
    of, vmap = MASKED[name], gradcli.func.vmap
    x, v = _ZEROS, gradcli.arange(9.0, dtype=gradcli.float64).reshape(3, 3) - 4

    def pushed(x: Any, v: Any) -> Any:
        return gradcli.func.jvp(of, (x,), (v,))[1]

    rows = gradcli.func.jacrev(of)(x).numpy()
    wanted = np.tensordot(rows, v.numpy(), axes=2)
    assert np.isfinite(wanted).all()
    two = (gradcli.stack([x, x * 2]), gradcli.stack([v, v]))
    four = tuple(gradcli.stack([t, t * 3]) for t in two)
    found = [pushed(x, v), vmap(pushed)(*two)[0], vmap(vmap(pushed))(*four)[0, 0]]
    for one in found:
        np.testing.assert_allclose(one.numpy(), wanted, rtol=1e-12)
    np.testing.assert_allclose(gradcli.func.jacfwd(of)(x).numpy(), rows, rtol=1e-12)


def test_a_slope_of_nothing_in_a_batch() -> None:
    """Statistics of no elements are nan in every entry, whatever differs between the entries."""
    none, weights = gradcli.zeros(2, 4, 0), gradcli.rand(3, 4)

    def pushed(w: Any) -> Any:
        def value(x: Any, w: Any) -> Any:
            return gradcli.native_group_norm(x, w, w, 2, 4, 0, 2, 1e-5)[1]

        return gradcli.func.jvp(value, (none, w), (none, w))[1]

    assert gradcli.func.vmap(pushed)(weights).shape == (3, 2, 2)


@pytest.mark.parametrize(
    ("text", "n"), [*((f"norm(x, {p})", n) for p in (1.7, 2, 3) for n in (0, 2)), ("std(x)", 2)]
)
def test_what_has_no_slope_at_zero_has_that_of_its_factor(text: str, n: int) -> None:
    x, w = gradcli.zeros(n, dtype=gradcli.float64), gradcli.tensor(0.43, dtype=gradcli.float64)
    slopes = gradcli.func.grad(lambda x, w: language.evaluate(text, x=x) * w, (0, 1))
    _, (_, by_w) = gradcli.func.jvp(slopes, (x, w), (x.clone(), gradcli.ones_like(w)))
    assert by_w.item() == 0  # as in PyTorch


@pytest.mark.parametrize("options", ["", ", reduction='sum'", ", reduction='none', weight=w"])
def test_a_probability_beside_0_and_1_has_its_slope(options: str) -> None:
    """Forward mode is PyTorch's there: without the 1e-12 that its double backward adds."""
    p = gradcli.tensor([1e-9, 0.3, 1 - 1e-6], dtype=gradcli.float64)

    def loss(p: Any) -> Any:
        text = f"F.binary_cross_entropy(p, t{options})"
        weight = {"w": p.detach() + 1} if "weight" in options else {}
        return language.evaluate(text, weight, p=p, t=p.flip(0).detach())

    _, found = gradcli.func.jvp(loss, (p,), (gradcli.ones_like(p),))
    wanted = gradcli.func.jacrev(loss)(p).sum(-1)
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-14)


@pytest.mark.parametrize("text", ["linalg.eigvals(x*0)", "linalg.eigvals(x**0)", "sinc(x*1e-200)"])
def test_forward_mode_where_terms_are_lost(text: str) -> None:
    """What divides 0 by 0 is masked, or is left to what does not need it."""
    x = gradcli.eye(2, dtype=gradcli.float64) + 1
    _, found = gradcli.func.jvp(lambda x: language.evaluate(text, x=x), (x,), (x,))
    assert not found.isnan().any()


def test_forward_mode_of_what_reverse_mode_refuses() -> None:
    """PyTorch records no `bilinear` of complex numbers; its tangents are those of a product."""
    x, y = (gradcli.tensor(n) for n in ([[1 + 2j, 3j]], [[2 - 1j, 1 + 1j]]))
    weight = gradcli.tensor([[[1j, 2.0], [1 - 1j, 0.5j]]])
    _, found = gradcli.func.jvp(
        lambda w: gradcli.nn.functional.bilinear(x, y, w), (weight,), (weight,)
    )
    np.testing.assert_allclose(
        found.numpy(), gradcli.nn.functional.bilinear(x, y, weight).numpy(), rtol=1e-6
    )
