"""Reuse of the memory of large results, because fresh pages cost as much as filling them.

The allocator returns freed blocks of more than `LARGE` bytes to the system, and the kernel clears each page
before it hands it out again. This module keeps the last large results. One of them is reused when its
reference count shows that nothing else (name, view, buffer or object) refers to it.
"""

from __future__ import annotations

import math
import sys
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.engine.system import budget

if TYPE_CHECKING:
    from gradcli.engine.system.dtypes import Array, DType

LARGE = 1 << 25  # bytes up to which the allocator keeps freed memory
_COUNT = 16  # arrays kept: in a loop, names still refer to the last iteration's
_LINE = 64  # bytes of a cache line
_SHARE = 8  # all of them take at most 1/8 of the free memory


def references(values: Mapping[Any, Any], key: object) -> tuple[Any, int]:
    """(values[key], its reference count as `is_free` expects it)."""
    array = values.get(key)
    return array, sys.getrefcount(array)


_ALONE = references({0: np.empty(1)}, 0)[1]


def is_free(array: Array, count: int, kind: tuple[Any, Any]) -> bool:
    """Whether an array with this reference count is unused elsewhere, owns its memory and has this kind.

    kind: (shape, dtype).
    """
    return (
        type(array) is np.ndarray
        and count <= _ALONE
        and array.base is None
        and array.flags.carray
        and kind == (array.shape, array.dtype)
    )


_lent: dict[int, np.ndarray] = {}
_most: list[int] = []  # the most bytes to keep, set at the first use


def taken(kept: dict[Any, Any], kind: tuple[Any, Any]) -> Any:
    """Remove from `kept`, and return, an array of this kind that nothing else refers to; or None.

    kind: (shape, dtype).
    """
    for key in list(kept):
        array, count = references(kept, key)
        if is_free(array, count, kind) and not weakref.getweakrefcount(array):
            del array
            if (found := kept.pop(key, None)) is not None:  # else another thread took it
                return found
    return None


def room(shape: tuple[int, ...], dtype: DType) -> Any:
    """An uninitialised array for a result, in the memory of an earlier large result if one is unused."""
    array = taken(_lent, (shape, np.dtype(dtype)))
    if array is None:
        array = np.empty(shape, dtype)
    if array.nbytes > LARGE:
        _remember(array)
    return array


def lends(array: Array) -> bool:
    """Whether an array is kept here, which counts as one reference to it."""
    return _lent.get(id(array)) is array


def _remember(array: np.ndarray) -> None:
    if not _most:
        _most.append((budget.free_memory() or 0) // _SHARE)
    if array.nbytes > _most[0]:
        return
    others = [(key, a.nbytes) for key, a in list(_lent.items())]
    while others and (len(others) >= _COUNT or array.nbytes + sum(n for _, n in others) > _most[0]):
        _lent.pop(others.pop(0)[0], None)
    _lent[id(array)] = array


def aligned(shape: tuple[int, ...], dtype: DType) -> Any:
    """A new array aligned to a cache line; NumPy's loops take twice as long across lines."""
    kind = np.dtype(dtype)
    memory = np.empty(math.prod(shape) * kind.itemsize + _LINE, np.uint8)
    return np.ndarray(shape, kind, memory, -memory.ctypes.data % _LINE)
