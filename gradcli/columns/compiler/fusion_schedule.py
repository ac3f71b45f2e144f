"""Fusion: which operations run together, block by block, which on whole arrays, and in which order.

Operations on large arrays that work row by row (or element by element) are virtual: they exist only inside
blocks, and are recomputed in every region that needs them. The results of a region are its sinks: full
sums, and arrays that are needed whole elsewhere. A region of level n needs a sink of level n - 1.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gradcli.engine.system.blocked_products import FOLDS, block_of, rows_dot, vector_dot
from gradcli.engine.system.cascaded_sums import add_reduce
from gradcli.transforms.tracing.abstract_evaluation import method_call, put_along, put_less
from gradcli.transforms.tracing.numpy_program import Operation, cast, live, operands

_EXACT = frozenset([np.maximum.reduce, np.minimum.reduce])  # in any order of the elements
_RESHAPE = method_call("reshape")
# Functions along an axis (their last argument); if that is not the first, each row is independent.
ALONG = frozenset([np.take_along_axis, put_along, put_less])

# Approximate cost in nanoseconds an element: cheaper operations are recomputed rather than kept.
_COSTS: dict[Any, float] = {
    **dict.fromkeys([np.sin, np.cos, np.tan, np.power, operator.pow], 12.0),
    rows_dot: 24.0,
    **dict.fromkeys([np.exp, np.log, np.tanh, np.arctan, np.log1p, np.expm1], 5.0),
}
_WIDEST = 1 << 17  # elements of a product's rows and result in a block
_KEEP = 24.0


class Region:
    """Operations that run together, block by block, and their sinks."""

    __slots__ = ("body", "flat", "level", "rows", "sinks")

    def __init__(self, level: int, sinks: list[Operation]) -> None:
        self.level, self.sinks = level, sinks
        self.body: list[Operation] = []
        self.flat = False
        self.rows = 0


class Schedule:
    """The steps, operations on whole arrays and regions, in topological order.

    keep: the cost from which on an intermediate is kept rather than recomputed.
    """

    def __init__(self, outputs: Sequence[Operation], smallest: int, keep: float = _KEEP) -> None:
        self.outputs, self.smallest, self.keep = outputs, smallest, keep
        self.order = live(outputs)
        self.demoted: set[int] = set()
        # Which operations are virtual depends on which others are: demoting one may leave its neighbours
        # with nothing to share a block with. So all are classified anew, until no further one is demoted;
        # `demoted` only grows, so this ends.
        while True:
            self._classify()
            if not self._demote_views() and not self._demote():
                break
        self._level()
        self._form_regions()
        self.steps: list[Operation | Region] = list(self._steps())

    # -- what can be virtual -----------------------------------------------------------------------
    def _classify(self) -> None:
        # In topological order, so that operands are known. `parent` joins what has to be cut in the same
        # way (a union-find): x, y and x*y share their blocks. A component is flat if it can be cut
        # between any two elements, and cut by rows otherwise.
        self.virtual: set[int] = set()
        self.full: set[int] = set()
        self.parent: dict[int, int] = {}
        for o in self.order:
            if o.index in self.demoted or not o.args or not operands(o.args):
                continue
            if self._is_full_reduction(o) or self._is_fold(o):
                self.full.add(o.index)
                self.parent[o.index] = o.index
                for a in operands(o.args):
                    if a.index in self.virtual:
                        self._join(o, a)
            elif o.shape and o.shape[0] > 0 and self._is_virtual(o):
                self.virtual.add(o.index)
                self.parent[o.index] = o.index
                for a in self.row_operands(o):
                    if a.index in self.virtual:
                        self._join(o, a)

    def _is_full_reduction(self, o: Operation) -> bool:
        if o.function is vector_dot:
            inside = any(a.index in self.virtual for a in o.args)
            plain = all(a.kind != "fill" and a.contiguous for a in o.args)
            return plain and (inside or o.args[0].size >= self.smallest)
        if o.kind != "reduce":
            return False
        a = o.args[0]
        if o.axes != tuple(range(a.ndim)) or a.index not in self.virtual or not a.contiguous:
            return False
        if o.function in _EXACT:
            return bool(a.dtype.kind == "f")
        plain = all(name != "dtype" for name, _ in o.options)
        return bool(o.function is add_reduce and plain and a.dtype.char in "fd")

    def _is_fold(self, o: Operation) -> bool:
        """Whether it reduces over the rows, so that blocks give parts of the result."""
        if o.function not in FOLDS:
            return False
        # A fold as X.T @ r reduces over the rows, and its result is a small matrix. Blocks give parts
        # that are added in the order of `blocked_products`, whoever computes them.
        given = list(operands(o.args))
        inside = any(a.index in self.virtual or a.size >= self.smallest for a in given)
        return inside and all(a.contiguous and a.kind != "fill" for a in given)

    def _is_virtual(self, o: Operation) -> bool:
        rows = self.row_operands(o)
        inside = any(a.index in self.virtual for a in rows)
        if o.kind == "elementwise":
            filled = o.size >= self.smallest and any(
                a.kind == "fill" and a.shape == o.shape for a in operands(o.args)
            )
            return (
                bool(rows or filled)
                and o.contiguous
                and not o.options
                and (inside or o.size >= self.smallest)
            )
        if o.kind == "reduce":
            a = o.args[0]
            inside = inside or (a.size >= self.smallest and a.kind != "fill")
            return inside and o.axes is not None and 0 not in o.axes and bool(a.ordered)
        if o.function in ALONG:
            given = [a for a in operands(o.args) if a.shape and a.kind != "fill"]
            plain = not o.options and o.args[-1] in range(1, o.ndim)
            inside = inside or o.size >= self.smallest
            return inside and plain and o.contiguous and len(rows) == len(given)
        if o.function is _RESHAPE:
            return inside and o.contiguous
        if o.function is np.broadcast_to:
            return inside
        return o.function is rows_dot and self._is_product(o)

    def _is_product(self, o: Operation) -> bool:
        """Whether a matrix product can be computed by blocks of rows."""
        rows, other = o.args
        columns, results = rows.shape[1], o.size // o.shape[0]
        # BLAS gives other last digits for other numbers of rows, so rows_dot works on a fixed number of
        # them. A block holds at least as many; where that would be too much memory, the product is
        # computed whole.
        wide = max(columns, results) * block_of(columns, results)
        plain = rows.contiguous and rows is not other and "fill" not in (rows.kind, other.kind)
        large = max(o.size, rows.size) >= self.smallest
        return bool(plain and wide <= _WIDEST and (large or rows.index in self.virtual))

    def row_operands(self, o: Operation) -> list[Operation]:
        """The operands that are cut by rows together with the result."""
        if not o.shape:
            return []
        if o.function is _RESHAPE:
            return [o.args[0]]
        return [a for a in operands(o.args) if self.is_row_operand(o, a)]

    def is_row_operand(self, o: Operation, a: Operation) -> bool:
        """Whether a block of the result needs only the same block of the operand."""
        if a.kind == "fill":
            return False
        if o.index in self.full:
            return True
        if o.kind == "reduce":
            return o.axes is not None and 0 not in o.axes
        if o.function is _RESHAPE:
            return True
        if o.function is rows_dot:
            return a is o.args[0]
        return a.ndim == o.ndim and a.shape[:1] == o.shape[:1]

    def _join(self, a: Operation, b: Operation) -> None:
        self.parent[self.find(a.index)] = self.find(b.index)

    def find(self, index: int) -> int:
        """The component (of the union-find) that an operation belongs to."""
        parent = self.parent
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    def _demote(self) -> bool:
        """Make operations whole that keep their component from being cut; whether there were any."""
        # A reshape from (6, 2) to (4, 3) keeps blocks of elements, and none of rows. So where a component
        # is not flat, a reshape that changes the number of rows cannot be in it.
        parts: dict[int, list[Operation]] = {}
        for o in self.order:
            if o.index in self.parent:
                parts.setdefault(self.find(o.index), []).append(o)
        self.flat: dict[int, bool] = {}
        changed = False
        for root, members in parts.items():
            self.flat[root] = self._is_flat(members)
            if self.flat[root]:
                continue
            for o in members:
                moves = o.function is _RESHAPE and o.shape[0] != o.args[0].shape[:1][0]
                if moves or o.function is vector_dot:
                    self.demoted.add(o.index)
                    changed = True
        return changed

    def _demote_views(self) -> bool:
        """Make repeated rows whole that an operation on whole arrays reads; whether there were any.

        The bits of NumPy's results depend on the layout of operands, which a filled array would change.
        """
        inside = self.virtual | self.full
        found = {
            a.index
            for o in self.order
            for a in operands((*o.args, *[v for _, v in o.options]))
            if a.function is np.broadcast_to
            and a.index in self.virtual
            and not (o.index in inside and self.is_row_operand(o, a))
        }
        self.demoted |= found
        return bool(found)

    def _is_flat(self, members: list[Operation]) -> bool:
        size = members[0].args[0].size if members[0].index in self.full else members[0].size
        for o in members:
            if o.function in FOLDS:
                return False
            if o.index in self.full:
                continue
            if o.size != size or not (o.kind == "elementwise" or o.function is _RESHAPE):
                return False
            for a in operands(o.args):
                if a.kind == "fill" or a.shape in ((), (1,)):
                    continue
                # one of fewer dimensions, as (n, 2) beside (1, n, 2), is handed in whole
                if a.size != size or not a.contiguous or not self.is_row_operand(o, a):
                    return False
        return True

    # -- levels ------------------------------------------------------------------------------------
    def _level(self) -> None:
        self.level: dict[int, int] = {}
        self.sinks: dict[int, Operation] = {}
        for o in self.order:
            # Level n + 1 needs something that is only complete when all blocks of level n are done: x -
            # mean(x) needs the mean. Reading the same block of an array is no reason to wait.
            level = 0
            for a in operands(o.args):
                level = max(level, self._needed(o, a))
            self.level[o.index] = level
            if o.index in self.full:
                self.sinks[o.index] = o
        for o in self.outputs:
            # An output filled with one number (the gradient of sum(x)) is written block by block beside
            # other work, while its memory is being touched anyway.
            large = o.kind == "fill" and o.size >= self.smallest
            if o.index in self.virtual or (large and not self._is_used_whole(o)):
                self.sinks[o.index] = o

    def _needed(self, o: Operation, a: Operation) -> int:
        """The lowest level at which `o` may use `a`."""
        level = self.level[a.index]
        if a.index in self.full:
            return level + 1
        if a.index not in self.virtual:
            return level
        inside = o.index in self.virtual or o.index in self.full
        if inside and self.is_row_operand(o, a):
            return level
        self.sinks[a.index] = a
        return level + 1

    # -- regions -----------------------------------------------------------------------------------
    def _form_regions(self) -> None:
        groups: dict[Any, Region] = {}
        for o in sorted(self.sinks.values(), key=lambda o: o.kind == "fill"):
            self._group(groups, o)
        self.regions = sorted(groups.values(), key=operator.attrgetter("level"))
        # Every region computes all virtual operations that it needs, again if need be: exp(x) in both
        # sum(exp(x)) and exp(x)/total is computed in two regions. If that costs more than writing and
        # reading an array, it becomes a sink of the first. One at a time, since each changes what the
        # others cost.
        for _ in range(8):
            for region in self.regions:
                region.body = self._body(region)
            if not self._keep_costly():
                break

    def _group(self, groups: dict[Any, Region], o: Operation) -> None:
        """Add a sink to the region of its level that is cut in the same way."""
        shaped = o.args[0] if o.index in self.full else o
        flat = o.kind == "fill" or self.flat[self.find(o.index)]
        key = (self.level[o.index], flat, shaped.size if flat else shaped.shape[0])
        if o.kind == "fill" and key not in groups:  # rows of something else will do
            key = next((k for k in groups if k == (key[0], False, o.shape[0])), key)
        region = groups.get(key)
        if region is None:
            region = groups[key] = Region(self.level[o.index], [])
            region.flat, region.rows = flat, key[2]
        if o not in region.sinks:
            region.sinks.append(o)

    def _body(self, region: Region) -> list[Operation]:
        found: dict[int, Operation] = {}
        waiting = [s for s in region.sinks if s.kind != "fill"]
        while waiting:
            o = waiting.pop()
            if o.index in found:
                continue
            found[o.index] = o
            for a in operands(o.args):
                if a.index in self.virtual and self.is_row_operand(o, a):
                    if a.index in self.sinks and self.level[a.index] < region.level:
                        continue  # there already
                    waiting.append(a)
        return sorted(found.values(), key=operator.attrgetter("index"))

    def _keep_costly(self) -> bool:
        """Make sinks of costly operations that two regions would both compute."""
        home: dict[int, Region] = {}
        for region in self.regions:
            again = {o.index for o in region.body if o.index in home}
            for o in region.body:
                if o.index in again:
                    continue
                for a in operands(o.args):
                    if a.index not in again or a.index in self.sinks:
                        continue
                    if self._cost(a, again) >= self.keep:
                        self.sinks[a.index] = a
                        home[a.index].sinks.append(a)
                        return True
            for o in region.body:
                home.setdefault(o.index, region)
        return False

    def _cost(self, o: Operation, inside: set[int]) -> float:
        total, seen, waiting = 0.0, set(), [o]
        while waiting:
            x = waiting.pop()
            if x.index in seen or x.index not in inside:
                continue
            seen.add(x.index)
            total += _COSTS.get(x.function, 0.7)
            waiting.extend(operands(x.args))
        return total

    def _steps(self) -> Iterator[Operation | Region]:
        by_level: dict[int, list[Operation]] = {}
        for o in self.order:
            if o.function is None or o.index in self.virtual or o.index in self.full:
                continue
            if o.kind == "fill" and o.index in self.sinks:
                continue
            if o.kind == "fill" and o not in self.outputs and not self._is_used_whole(o):
                continue
            by_level.setdefault(self.level[o.index], []).append(o)
        last = max([*by_level, *[r.level for r in self.regions]], default=-1)
        for level in range(last + 1):
            yield from by_level.get(level, ())
            yield from [r for r in self.regions if r.level == level]

    def _is_used_whole(self, fill: Operation) -> bool:
        """Whether an operation on whole arrays needs the filled array, not only its one value."""
        inside = self.virtual | self.full
        return any(
            o.index not in inside or o.kind == "reduce"
            for o in self.order
            if any(a is fill for a in operands(o.args))
        )


__all__ = ["Region", "Schedule", "cast"]
