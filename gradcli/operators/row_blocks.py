"""Products of many rows and of long vectors, defined in blocks: the same bits, whoever works which out."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.engine.memory import ARRAYS

_FEWEST = 512  # rows of a product: many for the library of products
_ELEMENTS = 1 << 14  # of the wider of rows and result, so few that it cuts them no further
PART = 1 << 12  # elements of vectors that are multiplied at once, so few that it does not cut them


def block_of(columns: int, results: int) -> int:
    """How many rows a product takes at once, of rows of so many elements that give so many: a power of 2."""
    wide = max(columns, results, 1)
    return max(_FEWEST, 1 << (_ELEMENTS // wide).bit_length() - 1)


def rows_dot(rows: Any, other: Any, out: Any = None) -> Any:
    """`rows.dot(other)` of a matrix and a matrix or a vector, some rows at a time (see `block_of`).

    A recorded array is told of the call as of one of NumPy's.
    """
    for operand in (rows, other):
        if type(operand) is not np.ndarray:
            return operand.__array_function__(rows_dot, (), (rows, other), {})
    if out is None:
        out = np.empty((len(rows), *other.shape[1:]), np.result_type(rows, other))
    step = block_of(rows.shape[1], out.size // max(len(rows), 1))
    for k in range(0, len(rows), step):
        np.dot(rows[k : k + step], other, out=out[k : k + step])
    return out


def vector_dot(a: Any, b: Any) -> Any:
    """`a.dot(b)` of two vectors: long ones of floating point in parts of so many elements, which are added.

    However many threads the library of products has, the bits are the same; and the parts, added
    pairwise, are far nearer to the sum than one after the other is (in float32 by a factor of 1,000).
    A recorded array is told of the call as of one of NumPy's.
    """
    if a.size <= PART or a.dtype.char not in "fd":
        return a.dot(b)
    for operand in (a, b):
        if type(operand) is not np.ndarray:
            return operand.__array_function__(vector_dot, (), (a, b), {})
    found = np.empty(parts_of(a.size), a.dtype)
    part_dots(a, b, found, 0)
    return np.add.reduce(found)


def parts_of(size: int) -> int:
    """How many parts there are in vectors of so many elements."""
    return -(-size // PART)


def part_dots(a: Any, b: Any, out: Any, start: int) -> None:
    """The products of the parts of vectors, into their places; start: where the vectors begin."""
    whole, at = a.size // PART, start // PART
    stop = whole * PART
    if whole:
        rows = a[:stop].reshape(whole, PART), b[:stop].reshape(whole, PART)
        np.vecdot(*rows, out=out[at : at + whole])
    if stop < a.size:
        out[at + whole] = a[stop:].dot(b[stop:])


def suits(rows: Any, other: Any) -> bool:
    """Whether a product is one of many rows, that `rows_dot` works out."""
    arrays = isinstance(rows, ARRAYS) and isinstance(other, ARRAYS)
    if not arrays or rows.ndim != 2 or other.ndim not in (1, 2) or len(rows) <= _FEWEST:
        return False
    same = rows.dtype == other.dtype and rows.shape[1] == other.shape[0]
    return same and rows.dtype.char in "fd" and 0 not in (*rows.shape, *other.shape)


__all__ = ["PART", "block_of", "part_dots", "parts_of", "rows_dot", "suits", "vector_dot"]
