"""Curves of an equation: where a function of two variables is 0.

The function is looked at on a grid. Along each line between two neighbours a change of sign is halved until
it is a point; a pole or a jump changes the sign, too, but is no point of the curve, for the values at its
ends do not become small. What touches 0 without a change of sign, as (x - y)**2, is a lowest point along a
line of the grid. The points of each cell are joined.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

Ends = tuple[float, float]
Function = Callable[
    [Any, Any], Any
]  # of arrays x and y, one value a point; NaN where there is none
_SMALL = 1e-3  # what is left of the values at a crossing, as a part of those at its neighbours
_TOUCH = 1e-8  # the same of a lowest point
_GOLDEN = (5**0.5 - 1) / 2
_SIZES = (10.0, 100.0, 1.0, 1e3, 0.1, 1e4, 0.01, 1e6)  # where a curve is sought that nobody placed


def curve(function: Function, x: Any, y: Any) -> tuple[Any, Any]:
    """The points where a function is 0, joined, with NaN between the pieces.

    x, y: the lines of the grid, rising.
    """
    values = function(*(part.ravel() for part in np.meshgrid(x, y))).reshape(len(y), len(x))
    crossings = _Crossings(function, x, y)
    for down in (False, True):
        crossings.changes(values, down)
        crossings.touches(values, down)
    pieces = _chains(crossings.segments(values))
    points = [crossings.points[edge] if edge else (np.nan, np.nan) for edge in pieces]
    found = np.array(points, float).reshape(-1, 2)
    return found[:, 0], found[:, 1]


Edge = tuple[bool, int, int]  # whether it goes down the rows; its first row and column


class _Crossings:
    """The points on the edges of a grid, by edge."""

    def __init__(self, function: Function, x: Any, y: Any) -> None:
        self.function, self.x, self.y = function, x, y
        self.points: dict[Edge, tuple[float, float]] = {}

    def _at(
        self, down: bool, row: Any, column: Any, share: Any, length: int = 1
    ) -> tuple[Any, Any]:
        """Points between a place of the grid and the one that is `length` steps on."""
        x, y = self.x, self.y
        if down:
            return x[column], y[row] + share * (y[row + length] - y[row])
        return x[column] + share * (x[column + length] - x[column]), y[row]

    def _keep(self, down: bool, row: Any, column: Any, points: tuple[Any, Any]) -> None:
        for i, j, across, up in zip(row.tolist(), column.tolist(), *points, strict=True):
            self.points.setdefault((down, i, j), (float(across), float(up)))

    def changes(self, values: Any, down: bool) -> None:
        """Where the sign changes, and the function goes through 0."""
        first, second = (values[:-1], values[1:]) if down else (values[:, :-1], values[:, 1:])
        with np.errstate(invalid="ignore"):
            changed = np.isfinite(first) & np.isfinite(second) & ((first >= 0) != (second >= 0))
        row, column = np.nonzero(changed)
        if not len(row):
            return
        ends = [first[row, column], second[row, column]]
        most = np.maximum(*np.abs(ends))
        low, high = np.zeros(len(row)), np.ones(len(row))
        for _ in range(45):
            middle = (low + high) / 2
            value = self.function(*self._at(down, row, column, middle))
            near = (value >= 0) == (ends[0] >= 0)
            low, high = np.where(near, middle, low), np.where(near, high, middle)
            ends = [np.where(near, value, ends[0]), np.where(near, ends[1], value)]
        with np.errstate(invalid="ignore"):
            there = np.maximum(*np.abs(ends)) <= _SMALL * most
        row, column, middle = (part[there] for part in (row, column, (low + high) / 2))
        x, y = np.broadcast_arrays(*self._at(down, row, column, middle))
        self._keep(down, row, column, (x, y))

    def touches(self, values: Any, down: bool) -> None:
        """Where the function touches 0 and keeps its sign."""
        size = np.abs(values)
        turned, signs = (a.T if not down else a for a in (size, values))
        before, here, after = turned[:-2], turned[1:-1], turned[2:]
        with np.errstate(invalid="ignore"):
            one = (signs[:-2] >= 0) == (signs[2:] >= 0)
            lowest = one & (here <= before) & (here <= after) & (np.maximum(before, after) > here)
        row, column = np.nonzero(lowest)
        if not down:
            row, column = column, row
        if not len(row):
            return
        most = np.maximum(before, after)[lowest]
        low, high = np.zeros(len(row)), np.ones(len(row))
        for _ in range(70):
            left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
            one, other = (
                np.abs(self.function(*self._at(down, row, column, at, 2))) for at in (left, right)
            )
            lower = one <= other
            low, high = np.where(lower, low, left), np.where(lower, right, high)
        middle = (low + high) / 2
        points = np.broadcast_arrays(*self._at(down, row, column, middle, 2))
        there = np.abs(self.function(*points)) <= _TOUCH * most
        node = self.y[row + 1] if down else self.x[column + 1]  # the one between them
        row, column, later = (part[there] for part in (row, column, points[int(down)] >= node))
        row, column = (row + later, column) if down else (row, column + later)
        self._keep(down, row, column, (points[0][there], points[1][there]))

    def segments(self, values: Any) -> list[tuple[Edge, Edge]]:
        """Pairs of points to be joined: of each cell, across its middle where there are four."""
        cells: dict[tuple[int, int], list[Edge]] = defaultdict(list)
        rows, columns = len(self.y) - 1, len(self.x) - 1
        for edge in self.points:
            down, i, j = edge
            for cell in ((i, j), (i, j - 1) if down else (i - 1, j)):
                if 0 <= cell[0] < rows and 0 <= cell[1] < columns:
                    cells[cell].append(edge)
        found = []
        for (i, j), edges in cells.items():
            if len(edges) == 2:
                found.append((edges[0], edges[1]))
            elif len(edges) == 4:
                found += self._saddle(values, i, j)
        return found

    def _saddle(self, values: Any, i: int, j: int) -> list[tuple[Edge, Edge]]:
        """The two pieces in a cell that a curve goes through twice, as the value in its middle says."""
        x, y = (np.array([(part[k] + part[k + 1]) / 2]) for part, k in ((self.x, j), (self.y, i)))
        bottom, top, left, right = (False, i, j), (False, i + 1, j), (True, i, j), (True, i, j + 1)
        if (self.function(x, y)[0] >= 0) == (values[i, j] >= 0):
            return [(bottom, right), (left, top)]
        return [(bottom, left), (right, top)]


def _chains(segments: list[tuple[Edge, Edge]]) -> list[Edge | None]:
    """The points in the order in which they are joined, with None between pieces."""
    beside: dict[Edge, list[Edge]] = defaultdict(list)
    for one, other in segments:
        beside[one].append(other)
        beside[other].append(one)
    found: list[Edge | None] = []
    # First the pieces with ends, from an end on; what is left are rings.
    for start in sorted(beside, key=lambda edge: (len(beside[edge]) != 1, edge)):
        at: Edge | None = start
        if not beside[start]:
            continue
        found.append(start)
        while at is not None:
            onward = beside[at].pop() if beside[at] else None
            if onward is not None:
                beside[onward].remove(at)
                found.append(onward)
            at = onward
        found.append(None)
    return found


def grid(ends: Ends, log: bool, points: int, turn: float) -> Any:
    """The lines of a grid, evenly but for a little; of a logarithmic axis evenly there.

    turn: makes the grids of both axes differ. On even ones the points of x == y and its like are corners of
    cells, which belong to no edge.
    """
    steps = np.arange(points, dtype=float)
    steps[1:-1] += 0.3 * (np.mod(steps[1:-1] * turn, 1) - 0.5)
    share = steps / (points - 1)
    if log:
        return np.exp(np.log(ends[0]) * (1 - share) + np.log(ends[1]) * share)
    return ends[0] * (1 - share) + ends[1] * share


def place(
    find: Callable[[Ends, Ends], list[tuple[Any, Any]]], x: Ends | None, y: Ends | None
) -> tuple[Ends, Ends]:
    """Where curves are, for the axes that nobody gave a range (None).

    find: the points of each curve within two ranges, as arrays of x and of y. Curves that stay within are
    shown whole and as large as round numbers let them; where all go on for ever, from -10 to 10. Where none
    is found, these too.
    """
    if x is not None and y is not None:
        return x, y
    ends = x or (-_SIZES[0], _SIZES[0]), y or (-_SIZES[0], _SIZES[0])
    for size in _SIZES:
        tried = x or (-size, size), y or (-size, size)
        if any(len(points) for points, _ in find(*tried)):
            ends = tried
            break
    narrowed = False
    for _ in range(9):
        closed = []
        for points in find(*ends):
            inner = [len(p) and _inside(p, e) for p, e in zip(points, ends, strict=True)]
            if all(within for within, said in zip(inner, (x, y), strict=True) if said is None):
                closed.append(points)
        if not closed and narrowed:  # a coarser grid lost an end, as at the edge of a domain
            ends = x or _wider(ends[0]), y or _wider(ends[1])
            continue
        if not closed:
            break
        whole = [np.concatenate(parts) for parts in zip(*closed, strict=True)]
        free = [p for p, said in zip(whole, (x, y), strict=True) if said is None]
        span = max(float(np.nanmax(p) - np.nanmin(p)) for p in free)
        if span <= 1e-6 * float(np.nanmax(np.abs(free))):  # a point
            break
        closer = [said or _around(p, span) for said, p in zip((x, y), whole, strict=True)]
        if (closer[0], closer[1]) == ends:
            break
        ends, narrowed = (closer[0], closer[1]), True
    return ends


def _wider(ends: Ends) -> Ends:
    room = (ends[1] - ends[0]) / 2
    return ends[0] - room, ends[1] + room


def _inside(points: Any, ends: Ends) -> bool:
    """Whether a curve ends before a range does."""
    room = (ends[1] - ends[0]) / 50
    return bool(np.nanmin(points) > ends[0] + room and np.nanmax(points) < ends[1] - room)


def _around(points: Any, span: float) -> Ends:
    """Round ends around points, with room; span: how long the longer of both axes is."""
    low, high = float(np.nanmin(points)), float(np.nanmax(points))
    power = 10.0 ** np.floor(np.log10(span / 8))
    step = power * next(n for n in (1, 2, 5, 10) if n * power >= span / 8 * (1 - 1e-6))
    first, last = np.floor((low - span / 8) / step), np.ceil((high + span / 8) / step)
    return float(f"{first * step:.12g}"), float(f"{last * step:.12g}")
