"""Version counters, and one clock of ticks for nodes and in-place writes.

Each node and each write takes a tick. A saved tensor is stale if it was written at a later tick than its
node's, so that saving a tensor stores no version.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import Any

from gradcli.engine.system import locks

clock = count(1)
tick = clock.__next__

_KEPT = 4096
_writing = locks.lock()  # keeps the ticks of writes, and `last`, in order


class Versions:
    """The version counter of a piece of memory: the ticks of its writes. All tensors over it share one."""

    __slots__ = ("forgotten", "stamps", "views")

    def __init__(self) -> None:
        self.forgotten = 0
        self.views: Any = None  # core.tensor.Views, or None
        self.stamps: list[int] = []

    def __len__(self) -> int:
        return self.forgotten + len(self.stamps)

    def bump(self) -> None:
        """Count a write."""
        bump_together((self,))

    def stale(self, tick: int) -> bool:
        """True if the memory was written after `tick`."""
        return bool(self.stamps) and self.stamps[-1] > tick

    def at(self, tick: int) -> int:
        """The version number at `tick`."""
        return self.forgotten + sum(stamp < tick for stamp in self.stamps)


def bump_together(counters: Iterable[Versions]) -> None:
    """Count a write to several pieces of memory."""
    global last
    with _writing:
        for counter in counters:
            last = tick()
            stamps = counter.stamps
            stamps.append(last)
            if len(stamps) > 2 * _KEPT:
                counter.forgotten += _KEPT
                del stamps[:_KEPT]


# The tick of the last write or detach in place: younger nodes need no check.
last = 0


def forget() -> int:
    """Count a `detach_`: no memory was written, but older nodes have to be checked."""
    global last
    with _writing:
        last = tick()
    return last
