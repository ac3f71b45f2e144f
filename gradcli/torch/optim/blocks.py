"""The methods of tensors that rules of optimizers use, on bare arrays and in blocks that fit in the cache.

A rule is written once, with a tensor's methods. Where nothing listens to the tensors (no mode, no transform,
no recorder) it runs on these blocks: the same operations in the same order, so the same bits, but without a
new tensor for each result, and with results in memory that is used again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from gradcli.engine.core import modes
from gradcli.engine.core.views import bump, bump_all
from gradcli.engine.system import background_code
from gradcli.engine.system.array_memory import address
from gradcli.engine.system.element_loops import Recorder, loop

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

    @staticmethod
    def call(function: Any, *operands: Any) -> None:
        """A ufunc of arrays and numbers; the last of the operands takes the result."""
        *given, out = operands
        function(*given, out=out)


class Block:
    """Some elements of a parameter, of its gradient or of what is remembered of both.

    A method with a final `_` writes over the elements; others take memory from `spare`. All that a method
    does goes through `spare`, so that a `Recorder` in its place writes the rule down as C.
    """

    __slots__ = ("array", "call", "spare")

    def __init__(self, array: Any, spare: Spare | Recorder) -> None:
        self.array, self.spare = array, spare
        self.call = spare.call

    def _made(self, function: Any, *operands: Any) -> Block:
        out = Block(self.spare.like(self.array), self.spare)
        self.call(function, *operands, out.array)
        return out

    def _written(self, function: Any, *operands: Any) -> Block:
        self.call(function, *operands, self.array)
        return self

    def _scaled(self, factor: Any) -> Any:
        """The elements times a number, as an array that may be written over if the number is not 1."""
        return self.array if factor == 1 else self._made(np.multiply, self.array, factor).array

    def add(self, other: Any, *, alpha: float = 1) -> Block:
        added = other._scaled(alpha) if type(other) is Block else other
        return self._made(np.add, self.array, added)

    def add_(self, other: Any, *, alpha: float = 1) -> Block:
        added = other._scaled(alpha) if type(other) is Block else other
        return self._written(np.add, self.array, added)

    def mul_(self, other: Any) -> Block:
        factor = other.array if type(other) is Block else other
        return self._written(np.multiply, self.array, factor)

    def div_(self, other: Block) -> Block:
        return self._written(np.divide, self.array, other.array)

    def __truediv__(self, number: float) -> Block:
        return self._made(np.divide, self.array, number)

    def addcmul(self, a: Block, b: Block, *, value: float = 1) -> Block:
        product = self._made(np.multiply, a._scaled(value), b.array)
        return product._written(np.add, self.array, product.array)

    def addcmul_(self, a: Block, b: Block, *, value: float = 1) -> Block:
        product = self._made(np.multiply, a._scaled(value), b.array)
        return self._written(np.add, self.array, product.array)

    def addcdiv_(self, a: Block, b: Block, *, value: float = 1) -> Block:
        quotient = self._made(np.divide, a._scaled(value), b.array)
        return self._written(np.add, self.array, quotient.array)

    def lerp_(self, end: Block, weight: float) -> Block:
        step = self._made(np.subtract, end.array, self.array)
        if abs(weight) < 0.5:
            step._written(np.multiply, step.array, weight)
            return self._written(np.add, self.array, step.array)
        step._written(np.multiply, step.array, 1 - weight)
        return self._written(np.subtract, end.array, step.array)

    def sqrt(self) -> Block:
        return self._made(np.sqrt, self.array)

    def sqrt_(self) -> Block:
        return self._written(np.sqrt, self.array)

    def abs(self) -> Block:
        return self._made(np.absolute, self.array)

    def neg(self) -> Block:
        return self._made(np.negative, self.array)

    def maximum(self, other: Block) -> Block:
        return self._made(np.maximum, self.array, other.array)

    def copy_(self, other: Block) -> Block:
        return self._written(np.positive, other.array)


class Recorded:
    """What a rule does to the elements of a parameter, written down, until its numbers are others."""

    def __init__(self) -> None:
        self._key: tuple[Any, ...] = ()
        self._loop: Any = None
        self._numbers: tuple[float, ...] = ()

    def __reduce__(self) -> Any:
        return Recorded, ()  # a copy has nothing written down

    def move(
        self,
        key: tuple[Any, ...],
        char: str,
        update: Callable[[list[Block]], None],
        rows: list[list[Any]],
    ) -> bool:
        """Whether parameters were moved by one loop in C over what a rule does; if not, none was.

        key: the numbers that the rule reads. char: the parameters' dtype. rows: for each parameter it, its
        gradient, and what is remembered of it.
        """
        if not background_code.possible or char not in "fd":
            return False
        key = (*key, char, len(rows[0]))
        if key != self._key:
            recorder = Recorder()
            update([Block(f"a{k}", recorder) for k in range(len(rows[0]))])
            said, numbers = recorder.done()
            self._key, self._loop = key, loop(said, len(rows[0]), char)
            self._numbers = tuple(numbers)
        arrays = [t.array for row in rows for t in row if t.tangents is None and not t.inference]
        if len(arrays) != len(rows) * len(rows[0]):
            return False
        elements = sum([row[0].array.size for row in rows])
        if not self._loop.run(arrays, self._numbers, elements):
            return False
        bump_all([t for row in rows for k, t in enumerate(row) if k != GRADIENT])
        return True


_kept = threading.local()  # memory that a thread has asked for comes cheaper than new memory


def _spare(dtype: Any) -> Spare:
    kept: dict[str, Spare] = _kept.__dict__
    spare = kept.setdefault(dtype.char, Spare(dtype))
    spare.used = 0
    return spare


def numbers_of(group: dict[str, Any]) -> tuple[Any, ...] | None:
    """A group's options, if they are Python's numbers and nothing listens to what is done with tensors."""
    if not modes.nothing_listens():
        return None
    values = [value for name, value in group.items() if name != "params"]
    return tuple(values) if _NUMBERS.issuperset(map(type, values)) else None


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


def are_apart(parameters: list[Any]) -> bool:
    """Whether no two parameters, each in order, share memory."""
    spans = sorted((address(p.array), p.array.nbytes) for p in parameters)
    return all(a + size <= b for (a, size), (b, _) in pairwise(spans))


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
    for start in range(0, len(many), SIZE // SMALL):
        spare = _spare(many[0][0].array.dtype)
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
