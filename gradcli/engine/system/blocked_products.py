"""Products and sums in blocks of fixed size, so that results are bit-identical for any number of threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.engine.system import threads
from gradcli.engine.system.array_memory import ARRAYS
from gradcli.engine.system.cascaded_sums import Tree

if TYPE_CHECKING:
    from gradcli.engine.system.dtypes import Array, DType

FOLDED = 256  # rows of a block that is summed at once
_FEWEST = 256  # the fewest rows in a block of a product, so that BLAS is efficient
_ELEMENTS = 1 << 14  # elements of a block (rows or result): BLAS does not split these
PART = 1 << 12  # elements of a part of a dot product: BLAS does not split these
CUT = 1 << 18  # multiplications from which BLAS uses several threads
_SHARED = 1 << 24  # multiplications from which a second thread pays off
_READ = 1 << 19  # elements read from which a second thread pays off
_reduce: Any = np.add.reduce
_NARROW = 8  # columns from which rows are summed in blocks
_FEW = 256  # elements of a product from which rows are summed in blocks
_WIDEST = 1 << 18  # the most elements of a block's result: each thread holds one


def block_of(columns: int, results: int) -> int:
    """How many rows of `columns` elements, with `results` results each, make a block: a power of 2."""
    wide = max(columns, results, 1)
    return max(_FEWEST, 1 << (_ELEMENTS // wide).bit_length() >> 1)


def _recorded(function: Callable[..., Any], *arrays: Array) -> Any:
    """Pass the call to an array of a trace, as NumPy would; None if all are NumPy arrays."""
    for a in arrays:
        if type(a) is not np.ndarray:
            return a.__array_function__(function, (), arrays, {})
    return None


def _in_turns(work: Callable[[int], None], count: int, multiplied: int, read: int = 0) -> None:
    """Run `work(k)` for `count` blocks, on threads if that pays. multiplied: in a block; read: elements."""
    alone = threads.multiplying_alone() if multiplied > CUT else nullcontext()
    pays = multiplied * count >= _SHARED or read >= _READ
    many = threads.products() if pays else 1
    with alone:
        if many == 1 or count == 1:
            for k in range(count):
                work(k)
            return

        def run(take: Callable[[], int]) -> None:
            while (k := take()) < count:
                work(k)

        threads.share(run, count, min(many, count))


# -- a product of every row ---------------------------------------------------------------------------
def rows_dot(rows: Array, other: Array, out: Array | None = None) -> Any:
    """`rows.dot(other)` of a matrix and a matrix or vector, in blocks of rows (see `block_of`).

    Arrays of a trace record the call as one of NumPy's.
    """
    if (found := _recorded(rows_dot, rows, other)) is not None:
        return found
    if out is None:
        out = np.empty((len(rows), *other.shape[1:]), np.result_type(rows, other))
    step = block_of(rows.shape[1], out.size // max(len(rows), 1))
    other = np.ascontiguousarray(other)  # once, not in every block

    def work(k: int) -> None:
        part = slice(k * step, (k + 1) * step)
        np.dot(rows[part], other, out=out[part])

    _in_turns(work, -(-len(rows) // step), step * other.size, rows.size)
    return out


def suits(rows: Array, other: Array) -> bool:
    """Whether a product has so many rows that `rows_dot` is to compute it."""
    arrays = isinstance(rows, ARRAYS) and isinstance(other, ARRAYS)
    if not arrays or rows.ndim != 2 or other.ndim not in (1, 2) or rows.shape[0] <= _FEWEST:
        return False
    same = rows.dtype == other.dtype and rows.shape[1] == other.shape[0]
    return same and rows.dtype.char in "fd" and 0 not in (*rows.shape, *other.shape)


def matrices_dot(a: Array, b: Array) -> Any:
    """The product of two matrices, in blocks if there are many rows."""
    return rows_dot(a, b) if suits(a, b) else a.dot(b)


# -- vectors ------------------------------------------------------------------------------------------
def vector_dot(a: Array, b: Array) -> Any:
    """`a.dot(b)` of two vectors; long floating-point ones in parts of `PART` elements, summed pairwise.

    The bits do not depend on the threads of BLAS, and pairwise summation is far more accurate than
    summing in sequence (in float32 by a factor of 1,000). Arrays of a trace record the call as one of
    NumPy's.
    """
    if a.size <= PART or a.dtype.char not in "fd":
        return a.dot(b)
    if (found := _recorded(vector_dot, a, b)) is not None:
        return found
    found = np.empty(parts_of(a.size), a.dtype)
    part_dots(a, b, found, 0)
    return np.add.reduce(found)


def parts_of(size: int) -> int:
    """The number of parts of a vector of `size` elements."""
    return -(-size // PART)


def part_dots(a: Array, b: Array, out: Array, start: int) -> None:
    """Write the dot product of each part into `out`; start: index of the first element in the whole."""
    whole, at = a.size // PART, start // PART
    stop = whole * PART
    if whole:
        rows = a[:stop].reshape(whole, PART), b[:stop].reshape(whole, PART)
        np.vecdot(*rows, out=out[at : at + whole])
    if stop < a.size:
        out[at + whole] = a[stop:].dot(b[stop:])


# -- sums over rows ----------------------------------------------------------------------
Spare = dict[Any, list[Any]]


class Fold:
    """The sum over blocks of `FOLDED` rows, added as a fixed tree in whatever order blocks arrive.

    function: a key of `FOLDS`. spare: buffers by shape and dtype, shared by the folds of one pass.
    """

    def __init__(
        self, function: Callable[..., Any], shape: Sequence[int], dtype: DType, spare: Spare
    ) -> None:
        self.function, self.shape, self.dtype = FOLDS[function], tuple(shape), dtype
        self._sums = Tree(self._sum)
        self._next, self._lock = 0, Lock()
        self._waiting: dict[int, Any] = {}
        self._spare = spare.setdefault((self.shape, dtype), [])

    def __call__(self, start: int, *rows: Array) -> None:
        """Add rows; `start` is the number of the first, a multiple of `FOLDED`."""
        for k in range(0, len(rows[0]), FOLDED):
            try:
                part = self._spare.pop()
            except IndexError:
                part = np.empty(self.shape, self.dtype)
            self.function(*[r[k : k + FOLDED] for r in rows], part)
            self._add((start + k) // FOLDED, part)

    def _add(self, number: int, part: Array) -> None:
        with self._lock:
            self._waiting[number] = part
            while (own := self._waiting.pop(self._next, None)) is not None:
                self._next += 1
                self._sums.add(own)

    def _sum(self, one: Array, other: Array) -> Any:
        np.add(one, other, out=one)
        self._spare.append(other)  # only now: another thread writes into it at once
        return one

    def total(self) -> Any:
        """The sum, after all blocks were added."""
        return self._sums.result()


def _folded(
    function: Callable[..., Any], shape: tuple[int, ...], multiplied: int, *rows: Array
) -> Any:
    fold = Fold(function, shape, rows[0].dtype, {})

    def work(k: int) -> None:
        start = k * FOLDED
        fold(start, *[r[start : start + FOLDED] for r in rows])

    _in_turns(work, -(-len(rows[0]) // FOLDED), multiplied)
    return fold.total()


def rows_product(a: Any, b: Any) -> Any:
    """`a.T.dot(b)` of matrices with many rows, summed over blocks of rows."""
    if (found := _recorded(rows_product, a, b)) is not None:
        return found
    shape = (a.shape[1], b.shape[1])
    return _folded(rows_product, shape, FOLDED * shape[0] * shape[1], a, b)


def rows_sum(a: Array) -> Any:
    """The sum of a matrix with many rows along dimension 0, of shape (1, columns), in blocks of rows."""
    if (found := _recorded(rows_sum, a)) is not None:
        return found
    return _folded(rows_sum, (1, a.shape[1]), 0, a)


def _product_of(a: Array, b: Array, out: Array) -> None:
    np.dot(a.T, b, out=out)


def _sum_of(a: Array, out: Array) -> None:
    if len(a) == FOLDED:  # first every 16th row: shorter sums lose less
        a = _reduce(a.reshape(16, FOLDED // 16, -1), 0)
    _reduce(a, 0, None, out, True)


FOLDS: dict[Any, Callable[..., None]] = {rows_product: _product_of, rows_sum: _sum_of}


def _many(a: Array) -> bool:
    plain = isinstance(a, ARRAYS) and a.ndim == 2 and a.dtype.char in "fd"
    return plain and a.shape[0] > FOLDED and a.shape[1] > 0


def suits_product(a: Any, b: Any) -> bool:
    """Whether `a.T.dot(b)` has so many rows that `rows_product` is to compute it."""
    same = _many(a) and _many(b) and a.dtype == b.dtype and a.shape[0] == b.shape[0]
    return same and _FEW <= a.shape[1] * b.shape[1] <= _WIDEST


def suits_sum(a: Array) -> bool:
    """Whether a sum along dimension 0 has so many rows that `rows_sum` is to compute it."""
    return _many(a) and a.shape[1] >= _NARROW
