"""Second derivatives two ways: forward mode through a recorded backward pass, and a second pass."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.calculus import forward_ad
from tests.calculus import samples
from tests.calculus.test_forward_reverse import REFUSED, case, run


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", samples.texts())
def test_hessian_products_agree(text: str) -> None:
    program, tensors, output = case(text)
    wanted = samples.floating(tensors)
    seed = samples.weights(output.shape)
    rng = np.random.default_rng(2)
    directions = {n: gradcli.tensor(rng.standard_normal(t.shape)) for n, t in wanted.items()}

    def slopes(leaves: dict[str, Any]) -> list[Any]:
        value = run(program, {**tensors, **leaves})
        if not value.requires_grad:
            pytest.skip("no gradient")
        made = gradcli.autograd.grad(
            value, list(leaves.values()), seed, create_graph=True, allow_unused=True
        )
        return [g for g in made if g is not None and g.requires_grad]

    try:
        leaves = {n: t.detach().clone().requires_grad_() for n, t in wanted.items()}
        first = slopes(leaves)
        if not first:
            pytest.skip("no second derivative")
        weights = [gradcli.tensor(rng.standard_normal(g.shape)) for g in first]
        second = gradcli.autograd.grad(first, list(leaves.values()), weights, allow_unused=True)
    except REFUSED as error:
        pytest.skip(f"not twice differentiable: {error}")
    reverse = sum(
        float((g * directions[n]).sum())
        for n, g in zip(leaves, second, strict=True)
        if g is not None
    )
    with forward_ad.dual_level(), warnings.catch_warnings():
        duals = {
            n: forward_ad.make_dual(t.detach(), directions[n]).requires_grad_()
            for n, t in wanted.items()
        }
        try:
            pushed = [forward_ad.unpack_dual(g).tangent for g in slopes(duals)]
        except REFUSED as error:
            if "implemented" in str(error):
                pytest.skip(f"no forward mode: {error}")
            raise
    forward = sum(
        0.0 if t is None else float((t * w).sum()) for t, w in zip(pushed, weights, strict=True)
    )
    assert abs(forward - reverse) <= 1e-8 * max(abs(reverse), 1.0)
