"""A plan's results against the tape's, to the bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.columns.compiler.executor import Executor
from gradcli.columns.compiler.straight_line_code import program
from gradcli.engine.core.tensor import wrap
from gradcli.transforms.tracing.numpy_tracer import NumpyTracer


def by_tape(function: Callable[..., Any], arrays: dict[str, Any]) -> list[Any] | None:
    """[value, *gradients], None for a gradient that is not reached; None if nothing requires grad."""
    tensors = {n: wrap(a.copy(order="K") if a.ndim else a, True) for n, a in arrays.items()}
    value = function(**tensors)
    if not value.requires_grad:
        return None
    value.backward()
    return [value.array, *[None if t._grad is None else t._grad.array for t in tensors.values()]]


def by_plan(
    found: NumpyTracer,
    arrays: dict[str, Any],
    *,
    block: int = 0,
    threads: int = 1,
    smallest: int = 2,
) -> list[Any]:
    """The same from a recording: straight through, or in blocks."""
    inputs = list(found.inputs.values())
    run: Any = program(found.outputs, inputs)
    if block:
        run = Executor(found.outputs, inputs, block=block, threads=threads, smallest=smallest)
    with np.errstate(all="ignore"):
        got = list(run(*arrays.values()))
    return [got.pop(0), *[None if g is None else got.pop(0) for g in found.gradients.values()]]


def assert_same(found: list[Any], wanted: list[Any]) -> None:
    """Equal shapes, dtypes and bits (NaN is NaN)."""
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert (a is None) == (b is None)
        if a is None:
            continue
        a, b = np.asarray(a), np.asarray(b)
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        assert np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
