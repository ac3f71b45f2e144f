"""Products of many rows, defined in blocks of so many: the same bits, whoever works out which blocks when."""

from __future__ import annotations

from typing import Any

import numpy as np

ROWS = 512  # rows of a product: many for the library of products, few enough that it cuts them no further
_OUTER = 32768  # elements of an outer product that stay in fast memory


def rows_dot(rows: Any, other: Any, out: Any = None) -> Any:
    """`rows.dot(other)` of a matrix and a matrix or a vector, `ROWS` rows at a time.

    A recorded array is told of the call as of one of NumPy's.
    """
    for operand in (rows, other):
        if type(operand) is not np.ndarray:
            return operand.__array_function__(rows_dot, (), (rows, other), {})
    if out is None:
        out = np.empty((len(rows), *other.shape[1:]), np.result_type(rows, other))
    for k in range(0, len(rows), ROWS):
        np.dot(rows[k : k + ROWS], other, out=out[k : k + ROWS])
    return out


def suits(rows: Any, other: Any) -> bool:
    """Whether a product is one of many rows, that `rows_dot` works out."""
    arrays = isinstance(rows, np.ndarray) and isinstance(other, np.ndarray)
    if not arrays or rows.ndim != 2 or other.ndim not in (1, 2) or len(rows) <= ROWS:
        return False
    same = rows.dtype == other.dtype and rows.shape[1] == other.shape[0]
    return same and rows.dtype.char in "fd" and 0 not in (*rows.shape, *other.shape)


__all__ = ["ROWS", "rows_dot", "suits"]
