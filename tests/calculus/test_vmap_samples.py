"""Every sample of the operator table under `vmap`: values and gradients as of one entry after the other."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import func, language
from tests.calculus import samples

# Random numbers, other memory than an entry's, shapes that depend on the numbers; `inf` as a variable.
LEFT_OUT = (
    *("dropout", "bernoulli", "normal", "uniform", "exponential", "cauchy", "geometric", "rrelu"),
    *("gumbel", "multinomial", "poisson", "rand_like", "randn_like", "randint", "empty", "random"),
    *("as_strided(", "argwhere", "nonzero", "inf)", "inf,", "logical_", "'fro'", "unique", "dist("),
)
# Functions of the numbers, that have no rows: refused.
REFUSED = (
    "histogram",
    "bucketize",
    "isclose",
    "matrix_rank",
    "searchsorted",
    "allclose",
    "equal(",
    "cond(",
)
# Operators that run entry by entry, and say so.
BY_ENTRY = frozenset(
    [
        *("nn.functional.conv1d", "convolution_gradients", "nn.functional.nll_loss", "backward"),
        *("nn.functional.batch_norm", "dist", "pdist", "pdist_backward", "masked_scatter", "put"),
        *("masked_scatter_backward", "addbmm", "histc", "linalg.lstsq", "renorm", "vdot"),
        *("nn.functional.group_norm", "nn.functional.embedding", "embedding_backward"),
        *("nn.functional.fold", "nn.functional.unfold", "index_fill", "_native_batch_norm_legit"),
        *("as_strided_scatter", "as_strided", "as_strided_", "as_strided_copy", "block_diag"),
        *("nn.functional.affine_grid", "nn.functional.bilinear", "nn.functional.ctc_loss"),
        *("_ctc_loss_backward", "nn.functional.embedding_bag", "_embedding_bag_backward"),
        *("nn.functional.multi_margin_loss", "multi_margin_loss_backward"),
        *("nn.functional.multilabel_margin_loss", "multilabel_margin_loss_backward"),
        "_scaled_dot_product_flash_attention_for_cpu_backward",
    ]
)


def chosen() -> list[str]:
    left = (*LEFT_OUT, *REFUSED)
    return [t for t in samples.texts() if not any(word in t for word in left)]


def functions(text: str) -> tuple[list[Any], list[Any]] | None:
    """(the sample's value and its gradient as functions, batches of three for each argument)."""
    source, tensors = samples.program(text)
    floating = samples.floating(tensors)
    if not floating or not samples.outputs(source, tensors):
        return None
    program = language.parse(source)

    def value(*given: Any) -> Any:
        found = language.run(program, {**tensors, **dict(zip(floating, given, strict=True))}).value
        found = found if isinstance(found, (tuple, list)) else (found,)
        return tuple(v for v in found if isinstance(v, gradcli.Tensor))

    def weighted(*given: Any) -> Any:
        total: Any = None
        for v in value(*given):
            if v.is_floating_point():
                part = (v * gradcli.arange(1.0, v.numel() + 1).reshape(v.shape)).sum()
                total = part if total is None else total + part
        return total

    every = tuple(range(len(floating)))
    batches = [gradcli.stack([t * (1 + 0.01 * k) for k in range(3)]) for t in floating.values()]
    return [value, func.grad(weighted, argnums=every)], batches


def check(text: str) -> None:
    try:
        made = functions(text)
    except Exception:  # no expression of variables: a matter of the sample
        return
    if made is None:
        return
    for function in made[0]:
        try:
            rows = [function(*(b[k] for b in made[1])) for k in range(3)]
        except Exception:  # not differentiable
            continue
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = func.vmap(function)(*made[1])
        words = [str(w.message) for w in caught if "batching rule" in str(w.message)]
        assert {w.split("aten::")[1].split(". ")[0] for w in words} <= BY_ENTRY, text
        for i, column in enumerate(zip(*rows, strict=True)):
            assert found[i].dtype == column[0].dtype, text
            assert found[i].shape[1:] == column[0].shape, text
            for k, row in enumerate(column):
                np.testing.assert_allclose(
                    found[i][k].numpy(), row.numpy(), rtol=1e-8, atol=1e-10, err_msg=text
                )


@pytest.mark.parametrize("part", range(4))
def test_some_samples(part: int) -> None:
    for text in chosen()[part::24]:
        check(text)


@pytest.mark.long
@pytest.mark.parametrize("part", range(24))
def test_all_samples(part: int) -> None:
    for text in chosen()[part::24]:
        check(text)
