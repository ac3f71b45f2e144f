"""Forward mode, reverse mode and differences agree on every sample of the table."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import language
from gradcli.autograd import forward_ad
from gradcli.calculus import matrices
from tests.calculus import samples

REFUSED = (RuntimeError, NotImplementedError, language.errors.LanguageError)
SKIPPED = (
    *("dropout", "bernoulli", "random", "normal", "uniform", "exponential", "cauchy", "geometric"),
    *(
        "rrelu",
        "gumbel",
        "multinomial",
        "poisson",
        "rand_like",
        "randn_like",
        "float()",
        "half()",
        "float32",
    ),
    "empty",
)
# Not differentiable at the sample, or defined by PyTorch in another way than the limit.
NO_DIFFERENCES = (
    *("mode(", "unique", "padding_idx", "remainder(", "fmod(", "floor_divide", "heaviside"),
    *("cholesky", "eigh", "eigvalsh", "quantile(", "resize_", "soft_margin_loss", "detach"),
    *("nan", "soft_margin", "ormqr", "lstsq", "sgn(", "rounding_mode"),
)


def case(text: str) -> tuple[Any, dict[str, Any], Any]:
    """(program, variables, first output) of a sample; skips what is no function of variables."""
    if "soft_margin_loss" in text:
        pytest.skip("its target takes no gradient")
    if any(word in text for word in SKIPPED) or re.search(r"_\(|^gradient", text):
        pytest.skip("random, of single precision, in place, or a list of tensors")
    try:
        source, tensors = samples.program(text)
        outputs = samples.outputs(source, tensors)
    except Exception:
        pytest.skip("no expression of variables")
    wanted = samples.floating(tensors)
    if not wanted or not outputs:
        pytest.skip("nothing to differentiate")
    if not outputs[0].is_floating_point():
        pytest.skip("nothing real to differentiate")
    if not all(gradcli.isfinite(t).all() for t in [*tensors.values(), outputs[0]] if t.numel()):
        pytest.skip("not finite")
    program = language.parse(f"({source})[0]" if len(outputs) > 1 else source)
    return program, tensors, outputs[0]


def run(program: Any, tensors: dict[str, Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return language.run(program, tensors).value


@pytest.mark.parametrize("text", samples.texts())
def test_products_agree(text: str) -> None:
    """v·(J u) three ways: by forward mode, by reverse mode, by differences."""
    program, tensors, output = case(text)
    wanted = samples.floating(tensors)
    leaves = {n: t.detach().clone().requires_grad_() for n, t in wanted.items()}
    value = run(program, {**tensors, **leaves})
    if not value.requires_grad:
        pytest.skip("no gradient")
    seed = samples.weights(output.shape)
    try:
        grads = gradcli.autograd.grad(value, list(leaves.values()), seed, allow_unused=True)
    except REFUSED as error:
        pytest.skip(f"not differentiable: {error}")
    rng = np.random.default_rng(1)
    moved = {n: g for n, g in zip(leaves, grads, strict=True) if g is not None}
    directions = {n: gradcli.tensor(rng.standard_normal(wanted[n].shape)) for n in moved}
    reverse = sum(float((moved[n] * directions[n]).sum()) for n in moved)

    with forward_ad.dual_level():
        duals = {n: forward_ad.make_dual(wanted[n].detach(), d) for n, d in directions.items()}
        try:
            pushed = forward_ad.unpack_dual(run(program, {**tensors, **duals})).tangent
        except REFUSED as error:
            if "implemented" in str(error):
                pytest.skip(f"no second derivative: {error}")
            raise
    forward = 0.0 if pushed is None else float((pushed * seed).sum())
    size = max(abs(reverse), 1.0)
    assert abs(forward - reverse) <= 1e-8 * size

    if any(word in text for word in NO_DIFFERENCES):
        return

    def along(step: float) -> float:
        near = {n: gradcli.tensor(wanted[n].numpy() + step * directions[n].numpy()) for n in moved}
        return float((run(program, {**tensors, **near}).detach() * seed).sum())

    h = 1e-5
    numerical = (8 * (along(h) - along(-h)) - (along(2 * h) - along(-2 * h))) / (12 * h)
    assert abs(numerical - reverse) <= 1e-5 * size


@pytest.mark.parametrize("text", samples.texts())
def test_batched_jacobians(text: str) -> None:
    """All rows and all columns at once give what one row after the other gives."""
    program, tensors, output = case(text)
    wrt = list(samples.floating(tensors))
    if output.numel() > 40 or sum(tensors[n].numel() for n in wrt) > 60:
        pytest.skip("large")

    def function(*given: Any) -> Any:
        return run(program, {**tensors, **dict(zip(wrt, given, strict=True))})

    try:
        expected = gradcli.autograd.functional.jacobian(function, tuple(tensors[n] for n in wrt))
    except REFUSED as error:
        pytest.skip(str(error))
    for mode in ("reverse", "forward"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = matrices.jacobian(program, tensors, wrt, mode=mode)
        for n, e in zip(wrt, expected, strict=True):
            np.testing.assert_allclose(
                found.by[n], e.numpy(), rtol=1e-8, atol=1e-10, err_msg=f"{n}, {found.method}"
            )


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


@pytest.mark.long
@pytest.mark.parametrize("text", samples.texts())
def test_second_derivatives(text: str) -> None:
    """gradgradcheck on every smooth sample."""
    if any(word in text for word in (*NOT_SMOOTH, *NO_DIFFERENCES)):
        pytest.skip("not smooth")
    program, tensors, output = case(text)
    wrt = list(samples.floating(tensors))
    if output.numel() > 30 or sum(tensors[n].numel() for n in wrt) > 40:
        pytest.skip("large")

    def function(*given: Any) -> Any:
        return run(program, {**tensors, **dict(zip(wrt, given, strict=True))})

    leaves = tuple(tensors[n].detach().clone().requires_grad_() for n in wrt)
    value = function(*leaves)
    if not value.requires_grad:
        pytest.skip("no gradient")
    try:
        gradcli.autograd.grad(value.sum(), leaves, create_graph=True, allow_unused=True)
    except REFUSED as error:
        pytest.skip(str(error))
    try:
        gradcli.autograd.gradgradcheck(function, leaves, check_undefined_grad=False)
    except RuntimeError as error:
        if "is not implemented" in str(error):
            pytest.skip(str(error))
        raise
