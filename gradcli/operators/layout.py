"""New arrays laid out in memory as another one, as PyTorch's `preserve_format` has it."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.engine.memory import IN_MEMORY

Array = Any


def axes_of(array: Array) -> tuple[int, ...] | None:
    """The axes from the slowest to the fastest in memory; None where the rows lie in order."""
    if not isinstance(array, IN_MEMORY) or array.flags.c_contiguous:
        return None
    steps = array.strides
    if any(step == 0 and n > 1 for step, n in zip(steps, array.shape, strict=True)):
        return None
    return tuple(sorted(range(array.ndim), key=lambda axis: -abs(steps[axis])))


def laid_out(values: Array, axes: tuple[int, ...] | None, shape: tuple[int, ...]) -> Array:
    """Values in the order of memory as an array of the shape."""
    if axes is None:
        return values.reshape(shape)
    back = tuple(sorted(range(len(axes)), key=axes.__getitem__))
    return values.reshape([shape[axis] for axis in axes]).transpose(back)


def empty_as(array: Array, kind: np.dtype[Any]) -> Array:
    """An unfilled array of the shape and layout of another."""
    return laid_out(np.empty(array.size, kind), axes_of(array), array.shape)
