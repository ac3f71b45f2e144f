"""Every differentiable sample of the operator table under `vmap(grad(...))`, beside torch.func's answer."""

from __future__ import annotations

import importlib
import importlib.util
import re
from typing import Any

import numpy as np
import pytest

import gradcli
from tests.engine.registry import samples
from tests.sampling import Sample, cotangent, take_apart, tensors
from tests.sweep import sweep

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.needs("torch"),
]


def slopes(sample: Sample, module: Any) -> list[Any]:
    """The gradients of every row of three, by each floating argument, of a weighted sum of the results."""
    real = [v for v in sample.leaves if v.is_floating_point()]

    def total(*given: Any) -> Any:
        own = iter(given)
        leaves = [next(own) if v.is_floating_point() else v for v in sample.leaves]
        parts = [
            (t * cotangent(module, t.shape, t.dtype)).sum()
            for t in tensors(sample.function(*leaves), module.Tensor)
            if t.is_floating_point()
        ]
        return sum(parts[1:], parts[0])

    batches = [module.stack([v * (1 + 0.01 * k) for k in range(3)]) for v in real]
    found = module.func.vmap(module.func.grad(total, tuple(range(len(real)))))(*batches)
    return [f.numpy() for f in found]


# What torch 2.13 cannot map, or not differentiate when it is mapped.
TORCH_CANNOT = re.compile(
    r"as_strided_scatter|index_reduce\(.*'prod'|linalg.cond\(.*, |linalg.lstsq\(randn\(4,2\), randn\(4\)\)"
    r"|ctc_loss|gaussian_nll_loss\(.*rand\(2,3\)\)$|scatter_reduce\(.*'prod'|^sgn|^unfold\("
)


def torch_answers(text: str) -> list[Any]:
    """As `slopes`, by torch."""
    torch = importlib.import_module("torch")
    torch.set_default_dtype(torch.float64)
    try:
        return slopes(take_apart(text, torch), torch)
    finally:
        torch.set_default_dtype(torch.float32)


@sweep("text", samples.differentiable)
def test_gradients_of_rows_are_those_of_torch(text: str) -> None:
    found = slopes(take_apart(text, gradcli), gradcli)
    if TORCH_CANNOT.search(text):
        with pytest.raises((RuntimeError, IndexError)):
            torch_answers(text)
        return
    for f, w in zip(found, torch_answers(text), strict=True):
        np.testing.assert_allclose(f, w, rtol=1e-7, atol=1e-9)
