"""Memory that large results lend: fresh pages cost as much as filling them.

The allocator gives back to the system what is freed of more than `LARGE` bytes, and the kernel clears every
page before it hands it out again. Whether an array is nobody's is known for certain only by who refers to
it, so that is asked when memory is wanted: names, views, buffers and other objects all count.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np

from gradcli.system import budget

LARGE = 1 << 25  # bytes, up to which the allocator keeps what is freed
_COUNT = 2  # arrays, as many as there are while a loop's names still hold that of the last turn
_SHARE = 8  # they take less than such a part of what is free


def references(values: Mapping[Any, Any], key: Any) -> tuple[Any, int]:
    """(an array, how many refer to it)."""
    array = values.get(key)
    return array, sys.getrefcount(array)


_ALONE = references({0: np.empty(1)}, 0)[1]


def is_free(array: Any, count: int, kind: tuple[Any, Any]) -> bool:
    """Whether an array that so many refer to is nobody's, and is of a kind: (shape, dtype)."""
    return (
        type(array) is np.ndarray
        and count <= _ALONE
        and array.base is None
        and array.flags.carray
        and kind == (array.shape, array.dtype)
    )


_lent: dict[int, np.ndarray] = {}
_most: list[int] = []  # bytes of all of them; found out when the first is wanted


def taken(kept: dict[Any, Any], kind: tuple[Any, Any]) -> Any:
    """An array of a kind that nobody else refers to any more, out of those that are kept; None of none."""
    for key in list(kept):
        array, count = references(kept, key)
        if is_free(array, count, kind) and not weakref.getweakrefcount(array):
            del array
            if (found := kept.pop(key, None)) is not None:  # else another thread was quicker
                return found
    return None


def room(shape: tuple[int, ...], dtype: Any) -> Any:
    """Memory for a result: that of a large one of before which has been let go, or fresh."""
    array = taken(_lent, (shape, np.dtype(dtype)))
    if array is None:
        array = np.empty(shape, dtype)
    if array.nbytes > LARGE:
        _remember(array)
    return array


def lends(array: Any) -> bool:
    """Whether an array is remembered here, which is one reference to it."""
    return _lent.get(id(array)) is array


def _remember(array: np.ndarray) -> None:
    if not _most:
        _most.append((budget.free_memory() or 0) // _SHARE)
    others = list(_lent.items())
    for key, _ in others[: max(len(others) - _COUNT + 1, 0)]:
        _lent.pop(key, None)
    if array.nbytes + sum(a.nbytes for _, a in others[1 - _COUNT :]) <= _most[0]:
        _lent[id(array)] = array


__all__ = ["is_free", "lends", "references", "room", "taken"]
