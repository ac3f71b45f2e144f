"""The methods of tensors that rules of optimizers use, on bare arrays and in blocks that fit in the cache.

A rule is written once, with a tensor's methods. Where nothing listens to the tensors (no mode, no transform,
no recorder) it runs on these blocks: the same operations in the same order, so the same bits, but without a
new tensor for each result, and with results in memory that is used again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from gradcli.engine.core import modes
from gradcli.engine.core.views import bump

SIZE = 65536  # elements: fewer make more calls, more leave the processor's second cache
SMALL = 4096  # elements of the largest parameter that is moved together with others
GRADIENT = 1  # the gradient's place in lists of a parameter's tensors: it is read only
_NUMBERS = frozenset((bool, int, float, tuple, type(None)))


class Spare:
    """Memory for results, of one dtype; all of it is free again after `used` is set to 0."""

    __slots__ = ("arrays", "dtype", "used")

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        self.arrays: list[Any] = []
        self.used = 0

    def like(self, array: Any) -> Any:
        """Memory for as many elements as an array has, in its shape."""
        return self.flat(array.size).reshape(array.shape)

    def flat(self, size: int) -> Any:
        """Memory for a number of elements, at most `SIZE`."""
        if self.used == len(self.arrays):
            self.arrays.append(np.empty(SIZE, self.dtype))
        self.used += 1
        return self.arrays[self.used - 1][:size]


class Block:
    """Some elements of a parameter, of its gradient or of what is remembered of both.

    A method with a final `_` writes over the elements; others take memory from `spare`.
    """

    __slots__ = ("array", "spare")

    def __init__(self, array: Any, spare: Spare) -> None:
        self.array, self.spare = array, spare

    def _new(self) -> Block:
        return Block(self.spare.like(self.array), self.spare)

    def _scaled(self, factor: Any) -> Any:
        """The elements times a number, as an array that may be written over if the number is not 1."""
        return (
            self.array
            if factor == 1
            else np.multiply(self.array, factor, self.spare.like(self.array))
        )

    def add(self, other: Any, *, alpha: float = 1) -> Block:
        added = other._scaled(alpha) if type(other) is Block else other
        out = self._new()
        np.add(self.array, added, out.array)
        return out

    def add_(self, other: Any, *, alpha: float = 1) -> Block:
        added = other._scaled(alpha) if type(other) is Block else other
        np.add(self.array, added, self.array)
        return self

    def mul_(self, other: Any) -> Block:
        np.multiply(self.array, other.array if type(other) is Block else other, self.array)
        return self

    def div_(self, other: Block) -> Block:
        np.divide(self.array, other.array, self.array)
        return self

    def __truediv__(self, number: float) -> Block:
        out = self._new()
        np.divide(self.array, number, out.array)
        return out

    def addcmul(self, a: Block, b: Block, *, value: float = 1) -> Block:
        out = self._new()
        product = np.multiply(a._scaled(value), b.array, out.array)
        np.add(self.array, product, out.array)
        return out

    def addcmul_(self, a: Block, b: Block, *, value: float = 1) -> Block:
        product = np.multiply(a._scaled(value), b.array, self.spare.like(self.array))
        np.add(self.array, product, self.array)
        return self

    def addcdiv_(self, a: Block, b: Block, *, value: float = 1) -> Block:
        quotient = np.divide(a._scaled(value), b.array, self.spare.like(self.array))
        np.add(self.array, quotient, self.array)
        return self

    def lerp_(self, end: Block, weight: float) -> Block:
        step = np.subtract(end.array, self.array, self.spare.like(self.array))
        if abs(weight) < 0.5:
            np.add(self.array, np.multiply(step, weight, step), self.array)
        else:
            np.subtract(end.array, np.multiply(step, 1 - weight, step), self.array)
        return self

    def sqrt(self) -> Block:
        out = self._new()
        np.sqrt(self.array, out.array)
        return out

    def sqrt_(self) -> Block:
        np.sqrt(self.array, self.array)
        return self

    def abs(self) -> Block:
        out = self._new()
        np.absolute(self.array, out.array)
        return out

    def neg(self) -> Block:
        out = self._new()
        np.negative(self.array, out.array)
        return out

    def maximum(self, other: Block) -> Block:
        out = self._new()
        np.maximum(self.array, other.array, out=out.array)
        return out

    def copy_(self, other: Block) -> Block:
        np.copyto(self.array, other.array)
        return self


_kept = threading.local()  # memory that a thread has asked for comes cheaper than new memory


def _spare(dtype: Any) -> Spare:
    kept: dict[str, Spare] = _kept.__dict__
    spare = kept.setdefault(dtype.char, Spare(dtype))
    spare.used = 0
    return spare


def are_numbers(group: dict[str, Any]) -> bool:
    """Whether nothing listens to what is done with tensors, and a group's options are Python's numbers."""
    if not modes.nothing_listens():
        return False
    return all(type(value) in _NUMBERS for name, value in group.items() if name != "params")


def are_bare(tensors: list[Any]) -> bool:
    """Whether a parameter, its gradient and what is remembered of it are whole arrays of one kind.

    That is one shape, float32 or float64, memory in order, and none of it the parameter's own.
    """
    first = tensors[0].array
    if type(first) is not np.ndarray or first.dtype.char not in "fd":
        return False
    for tensor in tensors:
        array = tensor.array
        if type(array) is not np.ndarray or tensor.inference or tensor.tangents is not None:
            return False
        if array.dtype is not first.dtype or array.shape != first.shape:
            return False
        if not (array.flags.c_contiguous and array.flags.writeable):
            return False
    return not any(np.may_share_memory(first, tensor.array) for tensor in tensors[1:])


def is_small(parameter: Any) -> bool:
    """Whether a parameter is moved beside others: a call then costs more than its elements."""
    return bool(parameter.array.size <= SMALL)


def blocks(tensors: list[Any]) -> Iterator[list[Block]]:
    """The tensors' elements in blocks, a list of one a tensor. Each may be used until the next is taken.

    tensors: a parameter, its gradient, and what is remembered; all but the gradient are written over.
    """
    spare = _spare(tensors[0].array.dtype)
    rows = [tensor.array.reshape(-1) for tensor in tensors]
    for start in range(0, rows[0].size, SIZE):
        spare.used = 0
        yield [Block(row[start : start + SIZE], spare) for row in rows]
    _written(tensors)


def gathered(many: list[list[Any]]) -> Iterator[list[Block]]:
    """As `blocks`, of several small parameters: their elements are copied side by side, and back."""
    spare = _spare(many[0][0].array.dtype)
    for start in range(0, len(many), SIZE // SMALL):
        spare.used = 0
        some = many[start : start + SIZE // SMALL]
        rows = [[tensor.array.reshape(-1) for tensor in each] for each in zip(*some, strict=True)]
        size = sum(row.size for row in rows[0])
        together = [np.concatenate(row, out=spare.flat(size)) for row in rows]
        yield [Block(array, spare) for array in together]
        for k, (array, row) in enumerate(zip(together, rows, strict=True)):
            if k != GRADIENT:
                _split(array, row)
        for tensors in some:
            _written(tensors)


def _split(array: Any, rows: list[Any]) -> None:
    """Copy the elements back that were put side by side."""
    start = 0
    for row in rows:
        row[...] = array[start : start + row.size]
        start += row.size


def _written(tensors: list[Any]) -> None:
    for k, tensor in enumerate(tensors):
        if k != GRADIENT:
            bump(tensor)
