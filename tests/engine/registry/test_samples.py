"""Every sample of the operator table: torch's values, gradients and graph, and finite differences."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.engine.registry import table
from tests.engine.registry.samples import is_declared
from tests.golden import by_version
from tests.golden.record_samples import answer, texts
from tests.sampling import cotangent, take_apart, tensors
from tests.sweep import sweep

GOLDEN = Path(__file__).parents[2] / "golden" / "samples.json"
RECORDED = json.loads(GOLDEN.read_text())
STEPS = (
    *(
        "dropout",
        "bernoulli",
        "poisson",
        "multinomial",
        "random",
        "normal",
        "uniform_",
        "exponential_",
        "cauchy_",
    ),
    *("log_normal_", "geometric_", "mode(", "unique", "padding_idx", "remainder(", "fmod("),
    *("floor_divide", "heaviside", "resize_", "empty", "set_", "nan_to_num"),
    # Defined for symmetric or triangular matrices only, or by a target that is not a variable.
    *("cholesky", "eigh", "eigvalsh", "quantile(", "soft_margin_loss"),
    # A gradient that takes the input for normalised, and random numbers.
    *("ctc_loss", "gumbel"),
)
# Samples whose gradient is wrong in torch: it comes from the places that were written over.
WRONG_IN_TORCH = ("as_strided_scatter(",)
# What torch holds constant without a word, and we differentiate (tests/operators/primitives/test_bessel.py).
CONSTANT_IN_TORCH = ("special.bessel_", "special.modified_bessel_")
KNOWN: dict[str, str] = {}  # samples whose graph differs from torch's, with the reason


def _array(entry: dict[str, Any]) -> Any:
    data = np.asarray(entry["data"], np.float64)
    if entry["dtype"].startswith("complex"):
        data = data.reshape(-1, 2) @ np.array([1, 1j])
    return data.reshape(entry["shape"])


def _close(mine: dict[str, Any] | None, torchs: dict[str, Any] | None, what: str) -> None:
    assert (mine is None) == (torchs is None), what
    if mine is None or torchs is None:
        return
    assert mine["shape"] == torchs["shape"], what
    assert mine["dtype"] == torchs["dtype"], what
    np.testing.assert_allclose(
        _array(mine), _array(torchs), rtol=1e-7, atol=1e-9, equal_nan=True, err_msg=what
    )


# The generator's state, and constructors from data or from another tensor's dtype.
WITHOUT_SAMPLES = {
    "operators.movement.sampling",
    "operators.movement.creation",
    "operators.composites.devices",
    "operators.composites.closeness",
}


def test_every_entry_has_samples() -> None:
    table.load()
    missing = [
        name
        for name, entry in table.FUNCTIONS.items()
        if not entry.samples and entry.module not in WITHOUT_SAMPLES
    ]
    assert missing == []


def answered() -> list[str]:
    """The samples that torch answers (`empty` leaves the memory as it was)."""
    return [t for t in texts() if "values" in RECORDED.get(t, {}) and not t.startswith("empty")]


@sweep("text", answered, often=2)
def test_as_torch(text: str) -> None:
    recorded = RECORDED[text]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine = answer(text, gradcli)
    assert len(mine["values"]) == len(recorded["values"])
    for a, b in zip(mine["values"], recorded["values"], strict=True):
        _close(a, b, "value")
    if text.startswith(WRONG_IN_TORCH):
        return
    if text.startswith(CONSTANT_IN_TORCH):
        assert "grads" in mine and "grads" not in recorded
        return
    for i, (a, b) in enumerate(zip(mine.get("grads", []), recorded.get("grads", []), strict=True)):
        _close(a, b, f"gradient {i}")
    if text not in KNOWN:
        assert mine.get("graphs") == recorded.get("graphs")


def real() -> list[str]:
    """The samples with a finite gradient of real numbers, and those that torch was not asked for."""
    return [t for t in texts() if not any(w in t for w in STEPS) and _is_real(t)]


def _is_real(text: str) -> bool:
    if (answer := RECORDED.get(text)) is None:
        return is_declared(text)
    grads = [g for g in answer.get("grads", []) if g is not None]
    return bool(grads) and all(
        x["dtype"] == "float64" and np.isfinite(x["data"]).all()
        for x in grads + [v for v in answer["values"] if v["dtype"] != "int64"]
    )


@sweep("text", real, often=2)
def test_gradient_against_differences(text: str) -> None:
    """A vector-Jacobian product along a random direction, by central differences."""
    gradcli.set_default_dtype(gradcli.float64)
    try:
        sample = take_apart(text, gradcli)
        leaves = [leaf.requires_grad_() for leaf in sample.leaves]
        everything = tensors(sample.function(*leaves), gradcli.Tensor)
        which = [i for i, o in enumerate(everything) if o.requires_grad]
        outputs = [everything[i] for i in which]
        assert outputs
        seeds = [cotangent(gradcli, o.shape, o.dtype) for o in outputs]
        gradcli.autograd.backward(outputs, seeds)
        rng = np.random.default_rng(1)
        directions = [rng.standard_normal(leaf.shape) for leaf in leaves]

        def along(step: float) -> float:
            # What has no gradient by PyTorch's rules (a target, an index) stays where it is.
            moved = [
                gradcli.tensor(leaf.detach().numpy() + (0 if leaf.grad is None else step * d))
                for leaf, d in zip(leaves, directions, strict=True)
            ]
            values = tensors(sample.function(*moved), gradcli.Tensor)
            values = [values[i] for i in which]
            return sum(
                float((v.numpy() * s.numpy()).sum()) for v, s in zip(values, seeds, strict=True)
            )

        step = 1e-6
        numerical = (along(step) - along(-step)) / (2 * step)
        analytic = sum(
            float((leaf.grad.numpy() * d).sum())
            for leaf, d in zip(leaves, directions, strict=True)
            if leaf.grad is not None
        )
        assert analytic == pytest.approx(numerical, rel=2e-5, abs=2e-6)
        for leaf in leaves:
            if leaf.grad is not None:
                assert leaf.grad.shape == leaf.shape
                assert leaf.grad.dtype == leaf.dtype
                if leaf.numel() > 1:
                    own = leaf.grad.numpy()
                    others = [x.grad for x in leaves if x is not leaf and x.grad is not None]
                    for other in [leaf.detach(), *others, *seeds]:
                        assert not np.may_share_memory(own, other.numpy())
    finally:
        gradcli.set_default_dtype(gradcli.float32)


@pytest.mark.long
@pytest.mark.needs("torch")
def test_recording_is_fresh() -> None:
    import torch

    def graphs_of(text: str) -> Any:
        try:
            return answer(text, torch).get("graphs")
        except RuntimeError:  # a version that has no longer this function
            return None

    changed = [t for t in answered()[::10] if graphs_of(t) != RECORDED[t].get("graphs")]
    by_version.settle("samples.json", changed)
