"""Which elements of a trace depend on which, and the fewest directions that tell all of them.

The columns of a sparse matrix of derivatives that have no row in common share a direction (A. Curtis, M.
Powell, J. Reid, 1974). Of a symmetric one it is enough that each element is alone in its row or in its
column: a star colouring (A. Gebremedhin, F. Manne, A. Pothen, 2005).
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from gradcli.transforms.tracing.numpy_program import (
    Operation,
    live,
    operands,
    pieced,
    replaced,
    scattered,
)

Array = Any
Pairs = tuple[Array, Array]  # (rows, columns), sorted by them, once each
MOST_PAIRS = 20_000_000  # more are no sparse problem, and would fill the memory
# Functions that only move elements.
MOVING = frozenset(
    "written broadcast_to take concatenate array as_operands arranged repeat_to put_along getitem "
    "take_along_axis pad".split()
)


class Dense(Exception):
    """There are too many dependencies for a pattern to be worth while."""


# -- which element depends on which ---------------------------------------------------------------
def pattern(result: Operation, x: Operation) -> Pairs:
    """The elements of d result / d x that may differ from zero, by (row, column) of the flat arrays.

    A set of columns for each element of each call. Raises Dense where these are too many.
    """
    n = x.size
    most = max(64 * (n + result.size), 4096)
    none = (np.zeros(0, np.int64),) * 2
    known: dict[int, Pairs] = {x.index: (np.arange(n),) * 2}
    for o in live([result]):
        if o is x:
            continue
        args = list(operands(o.args))
        sets = [known[a.index] for a in args]
        if any(len(rows) for rows, _ in sets):
            known[o.index] = found = _of_call(o, args, sets, n)
            if len(found[0]) > min(max(most, 64 * o.size), MOST_PAIRS):
                raise Dense
        else:
            known[o.index] = none
    return known[result.index] if result is not x else (np.arange(n),) * 2


def _of_call(o: Operation, args: Sequence[Operation], sets: Sequence[Pairs], n: int) -> Pairs:
    name = getattr(o.function, "__name__", "")
    if o.kind == "elementwise":
        return _union([_spread(s, a, o) for a, s in zip(args, sets, strict=True) if len(s[0])], n)
    if o.kind == "reduce" and o.axes is not None:
        (a, *_), (pairs, *_) = args, sets
        kept = tuple(1 if d in o.axes else k for d, k in enumerate(a.shape))
        to = np.broadcast_to(np.arange(o.size).reshape(kept), a.shape).ravel()
        return _unique(to[pairs[0]], pairs[1], n)
    if o.function is scattered:
        block, places, index = args
        rows, columns = _taken(sets[0], block.size, places.args[0])
        return index.args[0][rows], columns  # which rise
    if o.function is pieced:
        return _union([_piece(o, index, v, sets[args.index(v)]) for index, v in o.args[2:]], n)
    if o.kind in ("view", "fill") or name in MOVING:
        try:
            return _moved(o, args, sets)
        except (TypeError, ValueError, IndexError):
            pass
    return _all(o, sets)


def _spread(pairs: Pairs, a: Operation, o: Operation) -> Pairs:
    """The pairs of an operand, where broadcasting reads its elements from."""
    if a.shape == o.shape:
        return pairs
    index = np.broadcast_to(np.arange(a.size).reshape(a.shape), o.shape).ravel()
    return _taken(pairs, a.size, index)


def _moved(o: Operation, args: Sequence[Operation], sets: Sequence[Pairs]) -> Pairs:
    """What only moves elements moves their numbers too, from 1 on: a zero that is put in is none."""
    ids: dict[int, Array] = {}
    at, joined = 0, []
    for a, (rows, columns) in zip(args, sets, strict=True):
        if a.index in ids:
            continue
        if a.kind == "constant" and a.dtype.kind not in "fc":  # an index stays what it is
            ids[a.index] = a.args[0]
            continue
        ids[a.index] = np.arange(at + 1, at + 1 + a.size).reshape(a.shape)[()]
        joined.append((rows + at, columns))
        at += a.size
    given = [replaced(v, lambda q: ids[q.index]) for v in o.args]
    options = {k: v for k, v in o.options if k != "constant_values"}
    moved = np.asarray(o.function(*given, **options))
    if moved.shape != o.shape:
        raise ValueError("it does not only move elements")
    whole = tuple(np.concatenate(part) for part in zip(*joined, strict=True))
    there = np.flatnonzero(moved)
    rows, columns = _taken((whole[0], whole[1]), at, moved.ravel()[there] - 1)
    return there[rows], columns


def _piece(o: Operation, index: Any, values: Operation, pairs: Pairs) -> Pairs:
    """The pairs of what is put at an index."""
    ids = np.full(o.shape, -1)
    ids[index] = np.arange(values.size).reshape(values.shape)
    at = np.flatnonzero(ids >= 0)
    rows, columns = _taken(pairs, values.size, ids.ravel()[at])
    return at[rows], columns


def _all(o: Operation, sets: Sequence[Pairs]) -> Pairs:
    """Every element depends on what any operand does: of calls about which nothing is known."""
    columns = _each_once(np.concatenate([s[1] for s in sets]))
    if o.size * len(columns) > MOST_PAIRS:
        raise Dense
    return np.repeat(np.arange(o.size), len(columns)), np.tile(columns, o.size)


def _taken(pairs: Pairs, size: int, index: Array) -> Pairs:
    """The pairs of an array whose element e is element index[e] of the old one."""
    rows, columns = pairs
    start = np.searchsorted(rows, np.arange(size + 1))
    count = start[index + 1] - start[index]
    total = int(count.sum())
    if total > MOST_PAIRS:
        raise Dense
    at = np.arange(total) + np.repeat(start[index] - (np.cumsum(count) - count), count)
    return np.repeat(np.arange(len(index)), count), columns[at]


def _union(parts: Sequence[Pairs], n: int) -> Pairs:
    first = parts[0]
    if all(p[0] is first[0] and p[1] is first[1] for p in parts):
        return first
    if all(len(p[0]) == len(first[0]) and np.array_equal(p[1], first[1]) for p in parts) and all(
        np.array_equal(p[0], first[0]) for p in parts
    ):
        return first
    rows, columns = (np.concatenate([p[k] for p in parts]) for k in (0, 1))
    return _unique(rows, columns, n)


def _unique(rows: Array, columns: Array, n: int) -> Pairs:
    found = _each_once(rows * n + columns)
    return found // n, found % n


def _each_once(numbers: Array) -> Array:
    """As np.unique, which since NumPy 2.3 takes ten times as long for so many."""
    numbers = np.sort(numbers, kind="stable")  # by its digits
    return numbers[np.r_[True, numbers[1:] != numbers[:-1]]] if numbers.size else numbers


# -- colours --------------------------------------------------------------------------------------
# Sets of colours are the bits of an int; the lowest that is clear is the next colour.
def column_colours(m: int, n: int, pairs: Pairs) -> Array:
    """The colours of n columns of m rows, different ones where two share a row."""
    rows, columns = pairs
    order = np.argsort(columns, kind="stable")
    start = np.searchsorted(columns[order], np.arange(n + 1)).tolist()
    of = rows[order].tolist()
    used, colour = [0] * m, np.zeros(n, np.int64)
    for v in np.argsort(-np.diff(start), kind="stable").tolist():
        mine = of[start[v] : start[v + 1]]
        mask = reduce(operator.or_, [used[i] for i in mine], 0)
        colour[v] = c = _lowest(mask)
        for i in mine:
            used[i] |= 1 << c
    return colour


def star_colours(n: int, pairs: Pairs) -> Array:
    """Colours of n variables, so that no path of four in the graph of a symmetric pattern has two.

    near[w][c] counts the neighbours of w of a colour c, and names one: a variable costs its degree times
    the colours around it, beside a hub of 100,000 neighbours too.
    """
    rows, columns = pairs
    off = rows != columns
    start = np.searchsorted(rows[off], np.arange(n + 1)).tolist()
    beside = columns[off].tolist()
    colour = [-1] * n
    near: list[dict[int, list[int]]] = [{} for _ in range(n)]
    for v in np.argsort(-np.diff(start), kind="stable").tolist():
        mine, own, mask = beside[start[v] : start[v + 1]], near[v], 0
        for w in mine:
            of_w = colour[w]
            if of_w < 0:
                continue
            mask |= 1 << of_w
            several = own[of_w][0] > 1  # w - v - w' of one colour: v is none of those behind w
            for c, (count, x) in near[w].items():
                if several or (count == 1 and near[x][of_w][0] > 1):  # v - w - x - y
                    mask |= 1 << c
        colour[v] = c = _lowest(mask)
        for w in mine:
            near[w].setdefault(c, [0, v])[0] += 1
    return np.array(colour)


def _lowest(mask: int) -> int:
    return (~mask & (mask + 1)).bit_length() - 1


class Plan(NamedTuple):
    """How a matrix is read out of its products with coloured directions.

    rows, columns: of its elements that may differ from zero. seeds: the directions, (colours, n). places:
    where each element stands in the block (colours, m) of products.
    """

    rows: Array
    columns: Array
    seeds: Array
    places: Array


def planned(pairs: Pairs, m: int, n: int, symmetric: bool) -> Plan:
    """The plan of an m by n matrix of a pattern; symmetric: (i, j) and (j, i) are one number."""
    rows, columns = pairs
    if not symmetric:
        colour = column_colours(m, n, pairs)
        return Plan(rows, columns, _seeds(colour), colour[columns] * m + rows)
    both = _unique(
        np.r_[rows, columns], np.r_[columns, rows], n
    )  # a zero that one side alone knows
    colour = star_colours(n, both)
    rows, columns = both
    count = int(colour.max(initial=-1)) + 1
    low = rows >= columns  # one place for both, else they may differ in the last bit
    i, j = rows[low], columns[low]
    key, often = np.unique(rows * count + colour[columns], return_counts=True)
    alone = often[np.searchsorted(key, i * count + colour[j])] == 1
    places = np.where(alone, colour[j] * n + i, colour[i] * n + j)
    mirror = np.flatnonzero(i != j)
    i, j = np.r_[i, j[mirror]], np.r_[j, i[mirror]]
    places = np.r_[places, places[mirror]]
    order = np.lexsort((j, i))
    return Plan(i[order], j[order], _seeds(colour), places[order])


def _seeds(colour: Array) -> Array:
    count = int(colour.max(initial=-1)) + 1
    return (colour == np.arange(count)[:, None]).astype(np.float64)


__all__ = ["Dense", "Plan", "column_colours", "pattern", "planned", "star_colours"]
