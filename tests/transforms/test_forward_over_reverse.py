"""Second derivatives two ways: forward mode through a recorded backward pass, and a second pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.transforms import forward_mode
from tests.engine.registry import samples
from tests.sweep import sweep
from tests.transforms.test_forward_reverse import NO_SECOND_DERIVATIVE, REFUSED, case, run


@pytest.mark.filterwarnings("ignore")
@sweep("text", samples.differentiable, parts=8, often=1)
def test_hessian_products_agree(text: str) -> None:
    try:
        reverse, forward = _both_ways(text)
    except REFUSED as error:
        assert "implemented" in str(error) and NO_SECOND_DERIVATIVE.search(text)
        return
    assert abs(forward - reverse) <= 1e-8 * max(abs(reverse), 1.0)


def _both_ways(text: str) -> tuple[float, float]:
    """w·(H u): by a second backward pass, by forward mode over the first."""
    program, tensors, output = case(text)
    wanted = samples.floating(tensors)
    seed = samples.weights(output.shape)
    rng = np.random.default_rng(2)
    directions = {n: gradcli.tensor(rng.standard_normal(t.shape)) for n, t in wanted.items()}

    def slopes(leaves: dict[str, Any]) -> list[Any]:
        value = run(program, {**tensors, **leaves})
        made = gradcli.autograd.grad(
            value, list(leaves.values()), seed, create_graph=True, allow_unused=True
        )
        return [g for g in made if g is not None]

    leaves = {n: t.detach().clone().requires_grad_() for n, t in wanted.items()}
    first = slopes(leaves)
    assert first
    weights = [gradcli.tensor(rng.standard_normal(g.shape)) for g in first]
    curved = [(g, w) for g, w in zip(first, weights, strict=True) if g.requires_grad]
    reverse = 0.0
    if curved:
        outputs, seeds = ([pair[k] for pair in curved] for k in (0, 1))
        second = gradcli.autograd.grad(outputs, list(leaves.values()), seeds, allow_unused=True)
        pairs = zip(directions.values(), second, strict=True)
        reverse = sum(float((g * d).sum()) for d, g in pairs if g is not None)
    with forward_mode.dual_level():
        duals = {
            n: forward_mode.make_dual(t.detach(), directions[n]).requires_grad_()
            for n, t in wanted.items()
        }
        pushed = [forward_mode.unpack_dual(g).tangent for g in slopes(duals)]
    pairs = zip(weights, pushed, strict=True)
    return reverse, sum(float((t * w).sum()) for w, t in pairs if t is not None)
