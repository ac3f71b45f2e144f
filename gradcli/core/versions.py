"""One clock for nodes and in-place writes, and the version counters that views share.

A node and a write each take a tick. A saved tensor is stale when it was written after its node was
made, so nothing has to be stored when a tensor is saved.
"""

from __future__ import annotations

from itertools import count
from typing import Any

from gradcli.system import locks

clock = count(1)
tick = clock.__next__

_KEPT = 4096
_writing = locks.lock()  # ticks of writes, and `last`, only grow


class Versions:
    """The ticks at which one piece of memory was written; shared by all tensors over it."""

    __slots__ = ("forgotten", "stamps", "views")

    def __init__(self) -> None:
        self.forgotten = 0
        self.views: Any = None  # the views of the memory, where it has any
        self.stamps: list[int] = []

    def __len__(self) -> int:
        return self.forgotten + len(self.stamps)

    def bump(self) -> None:
        """Count a write that happens now."""
        global last
        with _writing:
            last = tick()
            stamps = self.stamps
            stamps.append(last)
            if len(stamps) > 2 * _KEPT:
                self.forgotten += _KEPT
                del stamps[:_KEPT]

    def stale(self, tick: int) -> bool:
        """True where the memory was written after `tick`."""
        return bool(self.stamps) and self.stamps[-1] > tick

    def at(self, tick: int) -> int:
        """The version that held at `tick`."""
        return self.forgotten + sum(stamp < tick for stamp in self.stamps)


# When this process last wrote or detached in place: younger nodes need not be checked.
last = 0


def forget() -> int:
    """Count an event after which older nodes have to be checked, though nothing was written."""
    global last
    with _writing:
        last = tick()
    return last
