"""Memory of arrays: layout, strides, copies, buffer donation."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from gradcli.engine.system import threads

if TYPE_CHECKING:
    from gradcli.engine.system.dtypes import Array

_LARGE, _PART = 1 << 17, 1 << 14  # elements of an array that is worked on in parts, and of a part


class Numberless:
    """An array of which shape and dtype are known, and no numbers: what a compiled program is
    recorded with."""

    __slots__ = ()

    def as_operands(self, operands: Any) -> Any:
        """The result as `as_operands` lays it out."""
        return self

    def arranged(self, order: Sequence[int]) -> Any:
        """The array as `arranged` lays it out."""
        return self


# What kernels and rules take for an array; and what has memory, as NumPy's scalars have not.
ARRAYS: tuple[Any, ...] = (np.ndarray, np.generic, Numberless)
IN_MEMORY: tuple[Any, ...] = (np.ndarray, Numberless)


def laid_out(array: Any) -> Any:
    """The array, or where it is a recorded one the array that lies in its place."""
    return array if isinstance(array, ARRAYS) else array.layout


# The dims in the order in which PyTorch's formats keep them, the last first.
CHANNELS_LAST = {"channels_last": (1, 3, 2, 0), "channels_last_3d": (1, 4, 3, 2, 0)}


def follows(array: Array, memory_format: str) -> bool:
    """True where the elements lie in memory as the format says."""
    array = laid_out(array)
    order = CHANNELS_LAST.get(memory_format)
    if order is None:
        return bool(array.flags.c_contiguous)
    if array.ndim != len(order) or not array.size:
        return False
    return bool(array.transpose(order[::-1]).flags.c_contiguous)


def address(array: Array) -> int:
    """The address of the first element."""
    return int(laid_out(array).__array_interface__["data"][0])


def copied(array: Array) -> Any:
    """A copy of the array."""
    return np.array(array) if isinstance(array, ARRAYS) else array.copy()


def donated(ufunc: np.ufunc, own: Array, *operands: Any) -> Any:
    """A ufunc of operands, written over `own` (buffer donation) if that is a large NumPy array.

    own: an array of the result's shape that nothing else refers to. New memory costs a kernel more than
    the arithmetic.
    """
    if type(own) is np.ndarray and own.size >= 4096:
        return threads.applied(ufunc, *operands, out=own)
    if (over := getattr(own, "written_over", None)) is not None:
        return over(ufunc, operands)
    return ufunc(*operands)


class _GivenUp(threading.local):
    """The gradient that this thread's backward pass donates to a VJP rule."""

    array: Any = None


given_up = _GivenUp()


def in_parts(function: Callable[..., Any], *arrays: Array) -> Any:
    """An elementwise function of several passes, on parts of large arrays that stay in fast memory.

    There the function is told where its result belongs, `out=`: the first array's, where it is `given_up`.
    """
    first = arrays[0]
    for a in arrays:
        if type(a) is not np.ndarray or a.size < _LARGE or not a.flags.c_contiguous:
            return function(*arrays)
        if a.shape != first.shape or a.dtype != first.dtype:
            return function(*arrays)
    made = first if given_up.array is first else np.empty_like(first)
    flat, given = made.reshape(-1), [a.reshape(-1) for a in arrays]

    def work(start: int, stop: int) -> None:
        for k in range(start, stop, _PART):
            part = slice(k, min(k + _PART, stop))
            function(*[a[part] for a in given], out=flat[part])

    threads.in_runs(work, first.size, first.size)
    return made


def memory_of(array: Array) -> Any:
    """The array that owns the memory that `array` is a view of."""
    while True:
        base = array.base
        if isinstance(base, np.ndarray):
            array = base
        elif isinstance(inner := getattr(base, "base", None), np.ndarray):  # made by as_strided
            array = inner
        else:
            return array


def buffer_of(array: Array) -> Any:
    """The memory behind `array`, with its dims in the order in which they lie there.

    Raises where `array` is a recorded one: what lies in its memory depends on variables.
    """
    if (numbers := getattr(array, "numbers", None)) is not None:
        array = numbers()
    root = laid_out(memory_of(array))
    if root.flags.c_contiguous:
        return root
    return root.transpose(sorted(range(root.ndim), key=lambda d: -root.strides[d]))


def strided_view(array: Array, shape: Sequence[int], strides: Sequence[int]) -> Any:
    """A writable view with the given strides in bytes, from the first element of `array`."""
    if array.size:
        root = buffer_of(array)
        start = address(array) - address(root)
        try:
            return np.ndarray(tuple(shape), array.dtype, root, start, tuple(strides))
        except (TypeError, ValueError):  # memory that NumPy does not own, with gaps
            pass
    return as_strided(array, tuple(shape), tuple(strides))


def resized(array: Array, shape: tuple[int, ...]) -> Any:
    """The memory from an array's first element on, row by row in another shape; more where that is short."""
    held = buffer_of(array)
    room = (address(held) + held.nbytes - address(array)) // array.dtype.itemsize
    if array.size and prod(shape) <= room:
        steps = np.empty(shape, array.dtype).strides
        return strided_view(array, shape, steps)
    made = np.zeros(shape, array.dtype)
    if array.size:
        made.reshape(-1)[:room] = strided_view(array, (room,), (array.dtype.itemsize,))
    return made


def in_order(array: Array) -> Any:
    """The array in C order; itself where it is."""
    return array if array.flags.c_contiguous else array.copy()  # which a recorded array has, too


def fresh(array: Array) -> Any:
    """A contiguous array whose dims of size 1 have the usual strides, too."""
    array = in_order(array)
    return array.reshape(-1).reshape(array.shape) if 1 in array.shape else array


def afresh(found: Array, operand: Array) -> Any:
    """A result as PyTorch lays out a new tensor, whatever order the operand's dims have in memory.

    NumPy keeps that order. PyTorch does where it computes element by element; sums along dims, running
    sums, softmax, padding and the like write to a new tensor.
    """
    return found if found.ndim < 2 or operand.flags.c_contiguous else fresh(found)


def in_its_order(found: Array, operand: Array) -> Any:
    """A result of the operand's shape with its dims in the order in memory that the operand's have."""
    if type(found) is not np.ndarray or operand.flags.c_contiguous or 0 in operand.strides:
        return found
    made = np.empty_like(operand, dtype=found.dtype)
    made[...] = found
    return made


def dense_order(shape: Sequence[int], operands: Sequence[Sequence[int]]) -> list[int]:
    """The dims from the innermost to the outermost of a result that follows its operands' strides.

    As TensorIterator: dims are sorted by stride, one operand after the other; a stride of 0 decides
    nothing.
    """
    order = list(reversed(range(len(shape))))
    for i in range(1, len(order)):
        at = i
        for before in reversed(range(i)):
            outcome = _compare(shape, operands, order[before], order[at])
            if outcome > 0:
                order[before], order[at] = order[at], order[before]
                at = before
            elif outcome < 0:
                break
    return order


def _compare(shape: Sequence[int], operands: Sequence[Sequence[int]], a: int, b: int) -> int:
    for strides in operands:
        x, y = strides[a], strides[b]
        if x == 0 or y == 0:
            continue
        if x != y:
            return -1 if x < y else 1
        if shape[a] > shape[b]:
            return 1
    return 0


def arranged(array: Array, order: Sequence[int]) -> Any:
    """A fresh array of the same values whose dims lie in memory in `order`, innermost first."""
    if isinstance(array, Numberless):
        return array.arranged(order)
    outermost_first = list(reversed(order))
    made = np.empty([array.shape[d] for d in outermost_first], array.dtype)
    made = made.transpose(np.argsort(outermost_first))
    made[...] = array
    return made


def as_operands(found: Array, *operands: Any) -> Any:
    """A result of operands that do not lie in order, its dims in the order in memory that PyTorch gives them.

    The first operand decides, and the next where it is the same along a dim; NumPy goes by row where two
    disagree.
    """
    first = operands[0]
    if isinstance(found, Numberless):
        return found.as_operands(operands)
    if type(found) is not np.ndarray or found.ndim < 2:
        return found
    if first.flags.c_contiguous and first.shape == found.shape:
        return found
    if (
        found.flags.c_contiguous and 1 not in found.shape
    ):  # dims of one element have strides of their own
        for a in operands:
            if isinstance(a, np.ndarray) and not a.flags.c_contiguous:
                break
        else:
            return found
    order = order_of(found.shape, [a for a in operands if isinstance(a, np.ndarray)])
    step = found.dtype.itemsize
    for d in order:
        if found.strides[d] != step:
            return arranged(found, order)
        step *= found.shape[d]
    return found


def order_of(shape: tuple[int, ...], arrays: Sequence[Any]) -> list[int]:
    """The dims from the innermost to the outermost of a result of arrays that are broadcast to a shape."""
    return dense_order(shape, [_broadcast(a, shape) for a in arrays])


def _broadcast(array: Array, shape: tuple[int, ...]) -> tuple[int, ...]:
    """An operand's strides along the dims of the result; 0 where it is the same along one."""
    lead = len(shape) - array.ndim
    own = zip(array.shape, map(abs, array.strides), shape[lead:], strict=True)
    return (*[0] * lead, *[0 if n == 1 != wide else step for n, step, wide in own])


def element_strides(array: Array) -> tuple[int, ...]:
    """Elements to step for the next index of each dim; of an empty array that NumPy made, a fresh one's."""
    if array.size or any(array.strides):
        size = array.dtype.itemsize
        return tuple([s // size for s in array.strides])
    strides, step = [], 1
    for n in reversed(array.shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def geometry(array: Array) -> tuple[Any, ...]:
    """Shape, strides and offset of an array in its memory, in elements."""
    array = np.asarray(array) if isinstance(array, np.generic) else array
    start = address(array) - address(memory_of(array))
    return array.shape, element_strides(array), start // array.dtype.itemsize


def infer_shape(size: tuple[int, ...], count: int) -> tuple[int, ...]:
    """`size` with its -1 worked out; RuntimeError where `count` elements do not fill it."""
    if -1 not in size and (not size or min(size) >= 0):
        if prod(size) == count:
            return size
        raise RuntimeError(f"shape '{list(size)}' is invalid for input of size {count}")
    hole = None
    known = 1
    for i, n in enumerate(size):
        if n == -1:
            if hole is not None:
                raise RuntimeError("only one dimension can be inferred")
            hole = i
        elif n < 0:
            raise RuntimeError(f"invalid shape dimension {n} at index {i} of shape {list(size)}")
        else:
            known *= n
    assert hole is not None
    if known == 0 and count == 0:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(size)} because the unspecified "
            "dimension size -1 can be any value and is ambiguous"
        )
    if known == 0 or count % known:
        raise RuntimeError(f"shape '{list(size)}' is invalid for input of size {count}")
    return (*size[:hole], count // known, *size[hole + 1 :])


def shares(view: Array, array: Array) -> bool:
    """True where `view`, made of `array` without copying if that was possible, is not a copy."""
    return array.flags.c_contiguous or not array.size or np.may_share_memory(view, array)
