"""How results lie in memory: the strides that PyTorch gives them.

Strides matter because they decide what a graph looks like: a contiguous tensor is reshaped by a view, any
other one perhaps by a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.engine.core.declaration import Array, DType, Ints, Shape
from gradcli.engine.core.tensor import wrap_dim
from gradcli.engine.registry.rule_helpers import refuse_if
from gradcli.engine.system import array_memory
from gradcli.engine.system.array_memory import CHANNELS_LAST, afresh
from gradcli.engine.system.array_memory import arranged as arranged
from gradcli.engine.system.array_memory import dense_order as dense_order
from gradcli.engine.system.array_memory import follows as follows
from gradcli.engine.system.array_memory import fresh as fresh
from gradcli.engine.system.array_memory import in_order as in_order


def unique_dims(dims: Sequence[int], ndim: int) -> tuple[int, ...]:
    """The dims counted from the front; RuntimeError where one is named twice."""
    found: list[int] = []
    for d in dims:
        at = wrap_dim(d, ndim)
        refuse_if(at in found, "dim {} appears multiple times in the list of dims", at)
        found.append(at)
    return tuple(found)


# -- layouts --------------------------------------------------------------------------------------
def copied(array: Array, dtype: DType | None = None) -> Any:
    """A copy, perhaps of another dtype, that keeps the order of the dims in memory."""
    dtype = array.dtype if dtype is None else dtype
    if not array.ndim:
        return np.array(array, dtype)  # NumPy's scalars cannot be written into
    if array.ndim < 2 or array.flags.c_contiguous:
        return array.astype(dtype, order="C")
    if 0 in array.strides:
        return arranged(array, dense_order(array.shape, [array.strides])).astype(dtype, copy=False)
    return array.astype(dtype, order="K")


def formatted(array: Array, memory_format: str | None) -> Any:
    """A copy that lies in memory as the format says; None keeps the order of the dims."""
    if memory_format is None:
        return copied(array)
    order = CHANNELS_LAST.get(memory_format)
    if order is None:
        return array.copy()
    if array.ndim != len(order):
        raise RuntimeError(f"required rank {len(order)} tensor to use {memory_format} format")
    return arranged(array, order)


def of_images(found: Array, *operands: Any) -> Any:
    """A result laid out anew, as `afresh`; channels last where those of an operand are."""
    if type(found) is not np.ndarray or not any(map(_channels_last, operands)):
        return afresh(found, operands[0])
    return arranged(found, (1, *range(found.ndim - 1, 1, -1), 0))


def _channels_last(array: Array) -> bool:
    """Whether images lie so, perhaps with gaps, as PyTorch's `suggest_memory_format` tells."""
    if type(array) is not np.ndarray or array.ndim not in (4, 5) or not array.strides[1]:
        return False
    reach = 0
    for d in (1, *range(array.ndim - 1, 1, -1), 0):
        step, size = array.strides[d], array.shape[d]
        if size == 1 and not step:  # a dim that was added
            continue
        if not size or step < reach or (d == 0 and reach == array.strides[1]):
            return False
        reach = step * max(size, 1)
    return True


# -- as another array lies: `preserve_format` ------------------------------------------------------
def axes_of(array: Array) -> tuple[int, ...] | None:
    """The axes from the slowest to the fastest in memory; None where the rows lie in order."""
    if not isinstance(array, array_memory.IN_MEMORY) or array.flags.c_contiguous:
        return None
    steps = array.strides
    if any(step == 0 and n > 1 for step, n in zip(steps, array.shape, strict=True)):
        return None
    return tuple(sorted(range(array.ndim), key=lambda axis: -abs(steps[axis])))


def from_memory(values: Array, axes: Ints | None, shape: Shape) -> Any:
    """Values in the order of memory as an array of the shape."""
    if axes is None:
        return values.reshape(shape)
    back = tuple(sorted(range(len(axes)), key=axes.__getitem__))
    return values.reshape([shape[axis] for axis in axes]).transpose(back)


def empty_as(array: Array, kind: DType) -> Any:
    """An unfilled array of the shape and layout of another."""
    return from_memory(np.empty(array.size, kind), axes_of(array), array.shape)
