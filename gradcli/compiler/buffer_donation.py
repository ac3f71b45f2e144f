"""Buffer donation: which results are written into the memory of values that are no longer needed.

Fresh memory costs a page fault for every page, and raises the peak. The caller may still refer to an array,
so whether it may be overwritten is checked by its reference count at run time.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np

from gradcli.system import budget
from gradcli.system.page_pool import is_free, references, taken
from gradcli.tracing.numpy_program import Operation

_LINE = 64  # bytes of a cache line
_LARGE = 1 << 24  # bytes from which on freed memory goes back to the kernel
_SHARE = 8  # results are kept if they take less than this share of free memory
_PLANS = 4  # compiled programs whose results are kept, the latest ones

Values = dict[int, Any]


class Step(Protocol):
    """One step of the executor."""

    reads: list[int]
    makes: list[Operation]
    arrays: list[Operation]  # those of `makes` that can be written into given memory
    reuse: dict[int, int]  # result index -> index of the array whose memory it may take

    def over(self, made: Operation) -> list[int]:
        """The operands over which the step may write its result `made`."""


def assign_buffers(steps: Sequence[Step], kept: Iterable[int]) -> list[list[int]]:
    """Set `reuse` of every step; return the values to drop after each step. kept: never dropped."""
    keep = frozenset(kept)
    dying = _dying(steps, keep)
    found = [list(indices) for indices in dying]
    made: dict[int, Operation] = {o.index: o for step in steps for o in step.makes}
    spare: dict[Any, list[tuple[int, int]]] = {}  # (index, the last step that reads it)
    for at, step in enumerate(steps):
        step.reuse = {}
        free = {index for index in dying[at] if index in made}
        for o in step.arrays:
            waiting = spare.get(_kind(o))
            here = [i for i in step.over(o) if i in free and _kind(made[i]) == _kind(o)]
            if here:
                step.reuse[o.index] = here[0]
                free.discard(here[0])
            elif waiting:
                old, when = waiting.pop()
                step.reuse[o.index] = old
                found[when].remove(old)
                found[at].append(old)
        for index in sorted(free):
            if made[index].kind != "view":
                spare.setdefault(_kind(made[index]), []).append((index, at))
    return found


def _dying(steps: Sequence[Step], keep: frozenset[int]) -> list[list[int]]:
    """The values that no step reads after each step."""
    last: dict[int, int] = {}
    for at, step in enumerate(steps):
        for index in step.reads:
            last[index] = at
        for o in step.makes:
            last.setdefault(o.index, at)
    found: list[list[int]] = [[] for _ in steps]
    for index, at in last.items():
        if index not in keep:
            found[at].append(index)
    return found


def _kind(o: Operation) -> Any:
    return o.shape, o.dtype


def array_for(o: Operation, values: Values, reuse: dict[int, int], results: Results) -> Any:
    """Memory for the result of an operation: a donated buffer if there is one, else a new array."""
    array, count = references(values, reuse.get(o.index))
    if is_free(array, count, _kind(o)):
        return array
    array = results.take(o)
    return np.empty(o.shape, o.dtype) if array is None else array


class Results:
    """Large results of earlier calls, whose memory is reused once the caller drops them.

    Otherwise the kernel zeroes and maps the same pages again, which is half of the time of a product and
    its gradient. Two results of a kind are kept, since the names in a loop still hold the previous ones;
    only the latest compiled programs keep any.
    """

    _recent: ClassVar[list[weakref.ref[Results]]] = []

    def __init__(self) -> None:
        self._kept: dict[int, Values] = {}
        self._most: int | None = None  # bytes of a result that is kept

    def take(self, o: Operation) -> Any:
        """The memory of an earlier result of an operation that the caller has dropped, else None."""
        return taken(self._kept.get(o.index, {}), _kind(o))

    def keep(self, o: Operation, array: Any) -> None:
        """Remember a result that goes to the caller."""
        if array.nbytes < _LARGE:
            return
        if self._most is None:
            self._most = (budget.free_memory() or 0) // _SHARE
        kept = self._kept.setdefault(o.index, {})
        held = sum(a.nbytes for arrays in list(self._kept.values()) for a in list(arrays.values()))
        if held + array.nbytes <= self._most:
            kept[id(array)] = array
        for key in list(kept)[:-2]:
            kept.pop(key, None)
        self._is_last()

    def _is_last(self) -> None:
        others = [r for r in Results._recent if r() not in (None, self)]
        Results._recent = [*others[1 - _PLANS :], weakref.ref(self)]
        for old in others[: 1 - _PLANS]:
            if (results := old()) is not None:
                results._kept.clear()


def aligned(shape: tuple[int, ...], dtype: Any) -> Any:
    """A new array aligned to a cache line; NumPy's loops take twice as long across lines."""
    kind = np.dtype(dtype)
    memory = np.empty(math.prod(shape) * kind.itemsize + _LINE, np.uint8)
    return np.ndarray(shape, kind, memory, -memory.ctypes.data % _LINE)


__all__ = ["Results", "Step", "Values", "aligned", "array_for", "assign_buffers"]
