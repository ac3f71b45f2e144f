"""Where arrays are cut into blocks, so that sums have the same bits as NumPy's.

NumPy sums pairwise: an array is halved (at a multiple of 8) until at most 128 elements are left. A sum over
blocks has the same bits if every block is a node of that tree.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

_LEAF = 128


def halves(n: int) -> int:
    """The length of the first half of n elements in NumPy's pairwise sum."""
    half = n // 2
    return half - half % 8


def tree_blocks(n: int, limit: int) -> list[tuple[int, int]]:
    """The largest nodes of at most `limit` elements in the pairwise tree over n elements."""
    limit = max(limit, _LEAF)
    found: list[tuple[int, int]] = []
    # Depth first, the first half on top: the blocks come out in order. For n = 1000 and a limit of 300
    # the halves are 496 and 504, then 248, 248, 248 and 256.
    waiting = [(0, n)]
    while waiting:
        start, m = waiting.pop()
        if m <= limit:
            found.append((start, start + m))
            continue
        half = halves(m)
        waiting.append((start + half, m - half))
        waiting.append((start, half))
    return found


def row_blocks(rows: int, per_block: int, together: int = 1) -> list[tuple[int, int]]:
    """Runs of rows of about equal length, which begin at multiples of `together`."""
    # In units of `together` rows, of which a product takes that many at once. Rounding each bound, and
    # not the length of a block, leaves blocks that differ by one unit at most, so that threads end
    # together.
    whole = -(-rows // together)
    count = max(1, -(-rows // max(per_block, together)))
    bounds = [min(whole * i // count * together, rows) for i in range(count + 1)]
    return [(a, b) for a, b in pairwise(bounds) if b > a]


class BlockBounds:
    """How the pairwise sum of n elements is composed of blocks that begin at `starts`.

    inside: for each block, (from, to, slot): tree nodes that lie within it. pieces: for each block,
    (from, to, buffer, at): parts of leaves that cross block bounds. buffers: (length, slot) of those
    leaves. steps: additions in postfix order: a slot number, or -1 to add the two sums before.
    """

    __slots__ = ("buffers", "inside", "pieces", "slots", "steps")

    def __init__(self, n: int, starts: Sequence[int]) -> None:
        # For example n = 1000 in blocks that begin at 0, 400 and 800. The tree's node 0:496 crosses 400
        # and is halved, down to nodes within a block, or to a leaf of at most 128 elements that crosses:
        # its two pieces are put together in a buffer, and summed there as NumPy would. `steps` then adds
        # the slots as the tree does.
        self.inside: list[list[tuple[int, int, int]]] = [[] for _ in starts]
        self.pieces: list[list[tuple[int, int, int, int]]] = [[] for _ in starts]
        self.buffers: list[tuple[int, int]] = []
        self.steps: list[int] = []
        self.slots = 0
        ends = [*starts[1:], n]
        waiting: list[tuple[int, int]] = [(0, n)]
        while waiting:
            start, m = waiting.pop()
            if m < 0:
                self.steps.append(-1)
                continue
            k = bisect_right(starts, start) - 1
            if start + m <= ends[k]:
                self.inside[k].append((start - starts[k], start + m - starts[k], self.slots))
            elif m <= _LEAF:
                self._across(start, m, k, starts, ends)
            else:
                half = halves(m)
                waiting += [(0, -1), (start + half, m - half), (start, half)]
                continue
            self.steps.append(self.slots)
            self.slots += 1

    def _across(self, start: int, m: int, k: int, starts: Sequence[int], ends: list[int]) -> None:
        at = start
        while at < start + m:
            stop = min(ends[k], start + m)
            piece = (at - starts[k], stop - starts[k], len(self.buffers), at - start)
            self.pieces[k].append(piece)
            at, k = stop, k + 1
        self.buffers.append((m, self.slots))

    def total(self, partial: Any) -> Any:
        """The sum, from the sums of the slots."""
        values: list[Any] = []
        for step in self.steps:
            if step < 0:
                last = values.pop()
                values[-1] = values[-1] + last
            else:
                values.append(partial[step])
        return values[0]


__all__ = ["BlockBounds", "halves", "row_blocks", "tree_blocks"]
