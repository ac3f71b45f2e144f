"""Fast products over many short rows, where NumPy restarts its loop at every row.

A product of a column (a number for each row) and a single row is a matrix product with an inner dimension of
1, which takes half as long as NumPy's loop. Each sum has one term, so the results are bit-identical to
NumPy's, except that -0.0 would become 0.0: if there are zeros, NumPy computes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from gradcli.engine.system.dtypes import Array

_PART = 65536  # elements computed at once: they stay in the cache
_SHORT, _LEAST = 64, 32768  # the longest row, and the smallest result, for which this pays off
_ROWS, _ELEMENTS = 1 << 11, 1 << 15  # the fewest rows, and elements, computed at once
_AT_ONCE = (
    8  # of these runs of rows, whose column stays in the cache: it is searched for zeros first
)

Shape = tuple[int, ...]
Way = Callable[[Any, Any, Any, Any], Any]


def way(ufunc: np.ufunc, a: Shape, b: Shape) -> Way | None:
    """The function that computes a ufunc of two arrays of these shapes; None: NumPy's loop is as good."""
    if ufunc is not np.multiply:
        return None
    if len(a) == 3:
        return _outer if _is_outer(a, b) or _is_outer(b, a) else None
    if len(a) > 2 or len(b) > 2 or not (a and b):
        return None
    rows = max(a[0] if len(a) == 2 else 1, b[0] if len(b) == 2 else 1)
    columns = max(a[-1], b[-1])
    single = (1, columns), (columns,)
    fits = (a == (rows, 1) and b in single) or (b == (rows, 1) and a in single)
    return multiples if fits and rows * columns >= _LEAST and 1 < columns <= _SHORT else None


def into(ufunc: np.ufunc, a: Array, b: Array, out: Array) -> Any:
    """`ufunc(a, b, out=out)`, bit-identical; `out` may be one of the operands."""
    if type(a) is np.ndarray and type(b) is np.ndarray and type(out) is np.ndarray:
        plain = a.dtype == b.dtype == out.dtype and out.dtype.char in "fd"
        if plain and out.flags.c_contiguous and (found := way(ufunc, a.shape, b.shape)):
            return found(ufunc, a, b, out)
    return ufunc(a, b, out=out)


def multiples(ufunc: np.ufunc, a: Array, b: Array, out: Array) -> Any:
    """Multiples of a single row, one for each number of a column."""
    column, other = (a, b) if a.shape == (len(out), 1) else (b, a)
    row = other.reshape(1, -1)
    least, step = np.abs(row).min(), max(_ROWS, _ELEMENTS // out.shape[1])
    known = len(out) <= _AT_ONCE * step and np.abs(column).min() * least > 0
    for k in range(0, len(out), step):
        part = column[k : k + step]
        if known or np.abs(part).min() * least > 0:
            np.dot(part, row, out=out[k : k + step])
        else:
            np.multiply(part, row, out=out[k : k + step])
    return out


# -- outer products -----------------------------------------------------------------------------------
def _is_outer(a: Shape, b: Shape) -> bool:
    """Whether the shapes are (n, p, 1) and (n, 1, q), with short rows: n outer products."""
    if len(a) != 3 or len(b) != 3 or a[0] != b[0] or a[0] * a[1] * b[2] < _LEAST:
        return False
    return a[2] == b[1] == 1 and a[1] > 1 and 1 < b[2] <= _SHORT


def _outer(ufunc: np.ufunc, a: Array, b: Array, out: Array) -> Any:
    """Outer products by `einsum`, or by the ufunc if a product may be zero: einsum would lose a -0.0."""
    if not _is_outer(a.shape, b.shape):
        a, b = b, a
    step = max(_PART // (a.shape[1] * b.shape[2]), 1)
    for k in range(0, len(a), step):
        x, y, made = a[k : k + step], b[k : k + step], out[k : k + step]
        if np.abs(x).min() * np.abs(y).min() > 0:
            np.einsum("bi,bj->bij", x[:, :, 0], y[:, 0, :], out=made)
        else:
            ufunc(x, y, out=made)
    return out
