"""Sparse batches of cotangents or tangents: each entry has few nonzero elements.

A Jacobian starts as an identity matrix. Slices, shifts, differences of neighbours and the like leave a
few nonzeros in each of its rows (a band, a permutation, blocks). They are stored as values at places, so
that time and memory depend on the nonzeros only. Where a primitive moves elements to is found by running
it once on distinct numbers and looking for these in the result.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.engine.core.batched_arrays import (
    BatchedArray,
    BatchLevel,
    Sparse,
    is_batched,
    is_diagonal,
)

if TYPE_CHECKING:
    from gradcli.engine.core.declaration import Declaration, Value
    from gradcli.engine.system.dtypes import DType

SMALL = 1 << 14  # up to this many elements, dense is faster
MOST = 64  # nonzero elements of an entry


class Scattered(Sparse):
    """A batch whose entry k has `values[k]` at the flat indices `places[k]`, and zeros elsewhere.

    A place of -1 is unused (its value is 0); values at the same place add up. It exists in linear levels
    only; what cannot keep this form reads `every`, the dense form.
    """

    __slots__ = ("_every", "_shape", "places", "values")

    def __init__(self, places: Any, values: Any, shape: tuple[int, ...], level: BatchLevel) -> None:
        self.places, self.values, self._shape, self.level = places, values, shape, level
        self._every: Any = None

    @property
    def every(self) -> Any:
        """All entries, dense."""
        if self._every is None:
            count = self.level.size
            made = np.zeros((count, self.size), self.values.dtype)
            for places, values in zip(self.places.T, self.values.T, strict=True):
                (rows,) = np.nonzero(places >= 0)
                made[rows, places[rows]] += values[rows]
            self._every = made.reshape((count, *self._shape))
        return self._every

    @property
    def inner(self) -> Any:
        """The values: an array of shape (batch, places)."""
        return self.values

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one entry."""
        return self._shape

    @property
    def dtype(self) -> Any:
        """The NumPy dtype of all entries."""
        return self.values.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions of one entry."""
        return len(self._shape)

    def astype(self, dtype: DType, **options: Any) -> BatchedArray:
        """Every entry in another dtype."""
        if self._every is not None:
            return BatchedArray(self._every.astype(dtype, **options), self.level)
        values = self.values.astype(dtype, **options)
        return Scattered(self.places, values, self._shape, self.level)

    def plus(self, other: Value) -> BatchedArray | None:
        """The sum with a Scattered or Diagonal, as Scattered; None if it has too many nonzeros."""
        return _sum(self, other)


def scattered(array: Any, level: BatchLevel) -> Scattered | None:
    """A Scattered or Diagonal array as Scattered; None for any other."""
    if isinstance(array, Scattered):
        return array if array.level is level and array._every is None else None
    if not is_diagonal(array, level) or not isinstance(array.diagonal, np.ndarray):
        return None
    places = np.arange(level.size).reshape(-1, 1)
    return Scattered(places, array.diagonal.reshape(-1, 1), array.shape, level)


def _sum(a: Scattered, other: Any) -> Scattered | None:
    """`a + other`: values at equal places are added, others are put side by side."""
    b, own = scattered(other, a.level), scattered(a, a.level)
    if b is None or own is None or b.shape != a.shape or b.dtype != a.dtype:
        return None
    if np.array_equal(a.places, b.places):
        return Scattered(a.places, a.values + b.values, a.shape, a.level)
    places, values = np.hstack([a.places, b.places]), np.hstack([a.values, b.values])
    if places.shape[1] > 4:
        places, values = merged(places, values)
    if places.shape[1] > MOST:
        return None
    return Scattered(places, values, a.shape, a.level)


def merged(places: Any, values: Any) -> tuple[Any, Any]:
    """(sorted places without duplicates, summed values); unused places (-1) come first."""
    order = np.argsort(places, axis=1, kind="stable")
    places = np.take_along_axis(places, order, 1)
    values = np.take_along_axis(values, order, 1)
    fresh = np.ones(places.shape, bool)
    fresh[:, 1:] = places[:, 1:] != places[:, :-1]
    at = np.cumsum(fresh, 1) - 1
    width = int(at.max(initial=-1)) + 1
    rows = np.broadcast_to(np.arange(len(places))[:, None], places.shape)
    made = np.full((len(places), width), -1)
    made[rows, at] = places
    sums = np.zeros((len(places), width), values.dtype)
    np.add.at(sums, (rows, at), values)
    return made, sums


def run(primitive: Declaration, operands: list[Any], level: BatchLevel) -> Any:
    """Apply a linear primitive to sparse operands; None if the result is not sparse."""
    found: Scattered | None = None
    inside = [i for i, v in enumerate(operands) if is_batched(v)]
    alone = len(inside) == 1
    if not primitive.returns_one or not (alone or primitive.batching == "elementwise"):
        return None
    for i in inside:  # linear in several operands: the sum over each alone
        x = scattered(operands[i], level)
        if x is None or x.dtype.kind != "f" or not x.size:  # an empty entry has no places
            return None
        if x is not operands[i] and level.size * x.size <= SMALL:
            return None
        own = [
            x if k == i else np.zeros(v.shape, v.dtype) if k in inside else v
            for k, v in enumerate(operands)
        ]
        made = (
            _elementwise(primitive, own, x)
            if primitive.batching == "elementwise"
            else _picked(primitive, own, x)
        )
        found = made if found is None else None if made is None else _sum(found, made)
        if found is None:
            return None
    return found


def _with(operands: list[Any], x: Scattered, own: Value) -> list[Any]:
    return [own if v is x else v for v in operands]


def _elementwise(primitive: Declaration, operands: list[Any], x: Scattered) -> Scattered | None:
    """Apply an elementwise primitive to the values alone, with the other operands taken at the places."""
    tensors = [v for i, v in enumerate(operands) if i in primitive.tensors and v is not None]
    if np.broadcast_shapes(*map(np.shape, tensors)) != x.shape:
        return None
    if (primitive.run(_with(operands, x, np.zeros(x.shape, x.dtype))) != 0).any():
        return None  # zeros must stay zero; an infinite factor makes NaN of them
    ready = list(operands)
    for i in primitive.tensors:
        v = operands[i]
        if v is x:
            ready[i] = x.values
        elif np.ndim(v):
            ready[i] = np.broadcast_to(v, x.shape).reshape(-1)[x.places]
    return Scattered(x.places, primitive.run(ready), x.shape, x.level)


def _picked(primitive: Declaration, operands: list[Any], x: Scattered) -> Scattered | None:
    """Apply a primitive that only selects, repeats or pads elements, by finding where each element goes."""
    names, order, known = _names(x.size)
    operands = [  # all in the names' dtype, as kernels want them
        v.astype(names.dtype) if isinstance(v, np.ndarray) and v.dtype == x.dtype else v
        for v in operands
    ]
    found = primitive.run(_with(operands, x, names.reshape(x.shape)))
    if not isinstance(found, np.ndarray) or found.dtype != names.dtype:
        return None
    flat = found.reshape(-1)
    place = np.minimum(np.searchsorted(known, flat), x.size - 1)
    hit = known[place] == flat
    if not (hit | (flat == 0)).all():
        return None
    (targets,) = np.nonzero(hit)
    if len(targets) > MOST * x.size:
        return None
    goes = _table(order[place[targets]], targets, x.size)
    width = goes.shape[1] * x.places.shape[1]
    if width > MOST:
        return None
    places = goes[x.places].reshape(len(x.places), width)
    values = np.where(places < 0, x.values.dtype.type(0), x.values.repeat(goes.shape[1], 1))
    used = (places >= 0).any(0)
    if used.any() and not used.all():
        places, values = places[:, used], values[:, used]
    return Scattered(places, values, found.shape, x.level)


def _table(sources: Any, targets: Any, count: int) -> Any:
    """Row k: the targets of source k, padded with -1. There are `count` rows, and one for source -1."""
    order = np.argsort(sources, kind="stable")
    sources, targets = sources[order], targets[order]
    counts = np.bincount(sources, minlength=count)
    starts = np.cumsum(counts) - counts
    table = np.full((count + 1, max(int(counts.max(initial=1)), 1)), -1)
    table[sources, np.arange(len(sources)) - starts[sources]] = targets
    return table


@lru_cache(maxsize=8)
def _names(count: int) -> tuple[Any, Any, Any]:
    """(`count` distinct random numbers, none the sum of others; their argsort; the numbers sorted)."""
    names = np.random.default_rng(count).random(count) + 1
    order = np.argsort(names)
    return names, order, names[order]
