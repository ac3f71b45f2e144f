"""When values are needed no longer, and which new arrays take over their memory.

Fresh memory costs the kernel a fault for every page, and counts at the peak. Whether an array may be
written over is known for certain only when nobody else refers to it, so that is asked at run time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np

from gradcli.plan.graph import Operation

Values = dict[int, Any]


class Step(Protocol):
    """What the executor runs, one after the other."""

    reads: list[int]
    makes: list[Operation]
    arrays: list[Operation]  # of `makes`, those that are written into memory given to them
    reuse: dict[int, int]  # the indices of arrays, and of those whose memory they may take over

    def over(self, made: Operation) -> list[int]:
        """What the step reads and may write `made` over."""


def plan(steps: Sequence[Step], kept: Iterable[int]) -> list[list[int]]:
    """Set every step's `reuse`; what is to be forgotten after each step. kept: never forgotten."""
    keep = frozenset(kept)
    dying = _dying(steps, keep)
    found = [list(indices) for indices in dying]
    made: dict[int, Operation] = {o.index: o for step in steps for o in step.makes}
    spare: dict[Any, list[tuple[int, int]]] = {}  # (index, the step after which it is not needed)
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
    """After each step: what nobody reads any more."""
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


def _references(values: Values, index: int | None) -> tuple[Any, int]:
    """(a value, how many refer to it)."""
    array = values.get(index)  # type: ignore[arg-type]
    return array, sys.getrefcount(array)


_ALONE = _references({0: np.empty(1)}, 0)[1]


def array_for(o: Operation, values: Values, reuse: dict[int, int]) -> Any:
    """Memory for an operation's result: another's, if nobody refers to that any more."""
    array, count = _references(values, reuse.get(o.index))
    if (
        type(array) is np.ndarray
        and count <= _ALONE
        and array.base is None
        and array.flags.carray
        and _kind(o) == (array.shape, array.dtype)
    ):
        return array
    return np.empty(o.shape, o.dtype)


__all__ = ["Step", "Values", "array_for", "plan"]
