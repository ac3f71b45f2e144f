"""Sums of many numbers, as exact as PyTorch's, which adds in cascades: every sum of an array is made here.

NumPy adds pairwise along the axis that is innermost in memory, and one by one along any other: of 10**7
rows in single precision that leaves two digits. Here an axis of many rows is cut: `_RUN` of them are added
at a time, then what these give, then groups of that as a tree. Of narrow rows every 16th goes into one of
16 lanes, which are rows of 16 times the width, and are added at the end.

The order follows from how many numbers are added alone, and from whether rows are narrow; neither from
what lies before them nor from how many threads there are. So a compiled program that cuts arrays
has the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gradcli.engine.system.dtypes import Array, DType

_reduce: Any = np.add.reduce  # faster than NumPy's functions and methods

FEW = 256  # numbers up to which one after the other is as good
_RUN, _RUNS = 64, 16  # rows that are added at a time; runs whose sums are
_LANES, NARROW = (
    16,
    128,
)  # columns up to which rows are narrow: that of equal columns needs no more of them
_CAST = 4096  # elements that NumPy converts and adds together: fewer than its buffers hold
_COLUMNS = 1 << 18  # columns that are added at once, of as many as there may be


class Tree:
    """Combines neighbours two by two, then these, and so on: in an order that only their number tells."""

    def __init__(self, combine: Callable[[Any, Any], Any]) -> None:
        self.combine = combine
        self.waiting: list[tuple[int, Any]] = []

    def add(self, item: Any) -> None:
        """The next item."""
        level = 0
        while self.waiting and self.waiting[-1][0] == level:
            item = self.combine(self.waiting.pop()[1], item)
            level += 1
        self.waiting.append((level, item))

    def result(self) -> Any:
        """All items as one; None if there are none."""
        if not self.waiting:
            return None
        _, found = self.waiting[-1]
        for _, item in reversed(self.waiting[:-1]):
            found = self.combine(item, found)
        return found


def tree_sum(items: Iterable[Any]) -> Any:
    """The sum of arrays, as a tree."""
    tree = Tree(np.add)
    for item in items:
        tree.add(item)
    return tree.result()


def add_reduce(
    array: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, out: Any = None
) -> Any:
    """The sum along axes (all: None) as `np.add.reduce` gives it; half precision is added in single."""
    if type(array) is np.ndarray and (array.size > FEW or array.itemsize == 2):
        whole = axis is None and dtype is None and array.itemsize != 2
        if not (whole and array.flags.c_contiguous):  # else in order, which NumPy adds pairwise
            return _large(array, axis, dtype, keepdims, out)
    return _reduce(array, axis, dtype, out, keepdims)


def _large(array: Any, axis: Any, dtype: Any, keepdims: bool, out: Any) -> Any:
    kind = array.dtype.char
    if kind not in "efdgFDG":  # exact in any order
        return _reduce(array, axis, dtype, out, keepdims)
    shape, ndim = array.shape, array.ndim
    if dtype is not None and dtype == array.dtype:
        dtype = None
    if dtype is None and kind == "e":
        found = add_reduce(array, axis, np.float32, keepdims).astype(array.dtype)
    elif _is_plain(array, axis, dtype):
        return _reduce(array, axis, dtype, out, keepdims)
    else:
        given = range(ndim) if axis is None else axis if type(axis) is tuple else (axis,)
        added = {at % ndim for at in given}
        if len(added) == 1 and array.flags.c_contiguous and shape[-1] != 1:
            found = _along(array, min(added), dtype)
        else:
            found = _in_order(array, added, dtype)
        if keepdims:
            found = found.reshape([1 if at in added else n for at, n in enumerate(shape)])
    if out is None:
        return found
    out[...] = found
    return out


def _is_plain(array: Array, axis: Any, dtype: DType) -> bool:
    """Whether NumPy's own order will do: few numbers, or all in order in memory, which it adds pairwise."""
    shape, ndim = array.shape, array.ndim
    if axis is None:
        count, last = array.size, True
    elif type(axis) is int:
        count, last = shape[axis], axis in (ndim - 1, -1)
    elif len(axis) == 1:
        count, last = shape[axis[0]], axis[0] in (ndim - 1, -1)
    else:
        count = math.prod([shape[at] for at in axis])
        last = count > FEW and min([at % ndim for at in axis]) == ndim - len(axis)
    if count <= FEW:
        return True
    return last and array.flags.c_contiguous and (dtype is None or count <= _CAST)


def _in_order(array: Array, added: set[int], dtype: DType) -> Any:
    """The sum along axes, in the order of memory: neighbours that are both added, or both kept, are one."""
    shape = array.shape
    order = _order([0 if n == 1 else abs(s) for n, s in zip(shape, array.strides, strict=True)])
    sizes: list[int] = []
    sums: list[bool] = []
    step = 0
    for at in order:
        n, stride = shape[at], array.strides[at]
        if n == 1:
            continue
        if sizes and sums[-1] == (at in added) and step == n * stride:
            sizes[-1] *= n
        else:
            sizes.append(n)
            sums.append(at in added)
        step = stride
    alike = array.transpose(order).reshape(sizes)
    found = _along_all(alike, [d for d, s in enumerate(sums) if s], dtype)
    kept = [at for at in order if at not in added]
    found = found.reshape([shape[at] for at in kept])
    if kept != sorted(kept):
        found = found.transpose([kept.index(at) for at in sorted(kept)])
    return found


def _order(strides: Sequence[int]) -> list[int]:
    """The axes, the innermost last, as NumPy orders them: by their steps; one without goes with the next."""
    found: list[int] = []
    for at in reversed(range(len(strides))):
        place = len(found)
        for k in reversed(range(len(found))):
            if (own := strides[at]) and (other := strides[found[k]]):
                if other <= own:
                    break
                place = k
        found.insert(place, at)
    return found[::-1]


def _along_all(array: Any, axes: list[int], dtype: Any) -> Any:
    """The sum along axes of an array that lies in the order of memory: along the longest first."""
    sizes = [array.shape[d] for d in axes]
    outer = sizes[:-1] if dtype is None and axes[-1] == array.ndim - 1 else sizes
    if math.prod(outer) <= FEW:
        return _reduce(array, tuple(axes), dtype)
    first = axes[sizes.index(max(sizes))]
    found = _along(array, first, dtype)
    rest = [d - (d > first) for d in axes if d != first]
    return _along_all(found, rest, None) if rest else found


def _along(array: Array, axis: int, dtype: DType) -> Any:
    """The sum along one axis of many numbers."""
    if axis == array.ndim - 1:
        return _reduce(array, axis) if dtype is None else _converted(array, dtype)
    columns = math.prod(array.shape[axis + 1 :])
    return _of_rows(array, axis, dtype, _LANES if columns < NARROW else 1)


def _converted(array: Array, dtype: DType) -> Any:
    """The sum along the last axis in another dtype, which NumPy would make in pieces of its buffers."""
    whole, rest = divmod(array.shape[-1], _CAST)
    parts = np.empty((*array.shape[:-1], whole + (rest > 0)), dtype)
    given = _split(array, array.ndim - 1, 0, whole, _CAST)
    _reduce(given, -1, dtype, parts[..., :whole])
    if rest:
        _reduce(array[..., -rest:], -1, dtype, parts[..., whole])
    return _reduce(parts, -1)


def _of_rows(array: Array, axis: int, dtype: DType, lanes: int) -> Any:
    """The sum along an axis that is not the last: of rows."""
    n = array.shape[axis]
    if n <= FEW:
        return _reduce(array, axis, dtype)
    if array.size > n * _COLUMNS:
        return _in_pieces(array, axis, dtype, lanes)
    found = _in_lanes(array, axis, dtype, lanes)
    return _reduce(found, axis) if lanes > 1 else found.reshape(_without(found.shape, axis))


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


def _in_pieces(array: Array, axis: int, dtype: DType, lanes: int) -> Any:
    """The sum along an axis, some of its columns at a time, so that what runs give takes little memory."""
    sizes = _without(array.shape, axis)
    found = np.empty(sizes, array.dtype if dtype is None else dtype)
    at = next(d for d, n in enumerate(sizes) if n > 1)
    step = max(1, sizes[at] * _COLUMNS // found.size)
    for k in range(0, sizes[at], step):
        given = _rows(array, at + (at >= axis), k, k + step)
        _rows(found, at, k, k + step)[...] = _of_rows(given, axis, dtype, lanes)
    return found


def _in_lanes(array: Array, axis: int, dtype: DType, lanes: int) -> Any:
    """Many rows along an axis as so many: each the sum of those that follow at that distance."""
    n, run = array.shape[axis], _RUN * lanes
    if n >= 2 * _RUNS * run:
        tree, group = Tree(_onto), _RUNS * run
        for k in range(0, n - n % group, group):
            stop = k + group if k + 2 * group <= n else n
            tree.add(_in_lanes(_rows(array, axis, k, stop), axis, dtype, lanes))
        return tree.result()
    found = None
    if whole := n // run:
        found = _reduce(_split(array, axis, 0, whole, _RUN, lanes), axis + 1, dtype)
        found = _reduce(found, axis)
    rest = n - whole * run
    if few := rest // lanes:
        part = _reduce(_split(array, axis, n - rest, few, lanes), axis, dtype)
        found = part if found is None else np.add(found, part, out=found)
    if last := rest % lanes:
        some = _rows(found, axis, 0, last)
        np.add(some, _rows(array, axis, n - last, n), out=some, casting="unsafe")
    return found


def _onto(sums: Array, others: Array) -> Any:
    return np.add(sums, others, out=sums)


def _rows(array: Any, axis: int, start: int, stop: int) -> Any:
    return array[(slice(None),) * axis + (slice(start, stop),)]


def _split(array: Array, axis: int, start: int, *sizes: int) -> Any:
    """An axis, from `start` on, as several of these sizes: without a copy."""
    part = _rows(array, axis, start, start + math.prod(sizes))
    return part.reshape(array.shape[:axis] + sizes + array.shape[axis + 1 :])
