"""Fast broadcasting over many short rows, where NumPy restarts its loop at every row.

A column (a number for each row) or a single row is first repeated by a matrix product with ones, with an
inner dimension of 1, which takes half as long as NumPy's loop. Each sum has one term, so the results are
bit-identical to NumPy's, except that -0.0 would become 0.0: if there are zeros, NumPy computes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_PART = 65536  # elements computed at once: they stay in the cache
_SHORT, _LEAST = 64, 32768  # the longest row, and the smallest result, for which this pays off
_REPEATED = 8  # the longest row for which repeating an operand pays off
_ROWS, _ELEMENTS = 1 << 11, 1 << 15  # the fewest rows, and elements, repeated at once

Shape = tuple[int, ...]
Way = Callable[[Any, Any, Any, Any, bool], Any]


def way(ufunc: Any, a: Shape, b: Shape, near: bool = True) -> Way | None:
    """The function that computes a ufunc of two arrays of these shapes; None: NumPy's loop is as good.

    near: the operands are in the cache; if not, memory limits both ways.
    """
    if len(a) == 3:
        outer = ufunc is np.multiply and (_is_outer(a, b) or _is_outer(b, a))
        return _outer if outer else None
    if len(a) > 2 or len(b) > 2 or not (a and b):
        return None
    rows = max(a[0] if len(a) == 2 else 1, b[0] if len(b) == 2 else 1)
    columns = max(a[-1], b[-1])
    shapes = (rows, columns), (rows, 1), (1, columns), (columns,)
    if rows * columns < _LEAST or columns < 2 or a == b or a not in shapes or b not in shapes:
        return None
    if ufunc is np.multiply and columns <= _SHORT and (rows, 1) in (a, b):
        return _multiples
    return _repeating if near and columns <= _REPEATED else None


def into(ufunc: Any, a: Any, b: Any, out: Any, near: bool = True) -> Any:
    """`ufunc(a, b, out=out)`, bit-identical; `out` may be one of the operands. near: see `way`."""
    if type(a) is np.ndarray and type(b) is np.ndarray and type(out) is np.ndarray:
        plain = a.dtype == b.dtype == out.dtype and out.dtype.char in "fd"
        if plain and out.flags.c_contiguous and (found := way(ufunc, a.shape, b.shape, near)):
            return found(ufunc, a, b, out, near)
    return ufunc(a, b, out=out)


# -- a column or a single row as an operand -----------------------------------------------------------
def _step(columns: int) -> int:
    return max(_ROWS, _ELEMENTS // columns)


def _multiples(ufunc: Any, a: Any, b: Any, out: Any, near: bool) -> Any:
    """Multiply by a column. If the other operand is a single row, that is an outer product, by `np.dot`."""
    column, other = (a, b) if a.shape == (len(out), 1) else (b, a)
    if other.ndim == 2 and len(other) > 1 and other.strides[0]:
        few = near and out.shape[1] <= _REPEATED
        return _repeating(ufunc, a, b, out, near) if few else ufunc(a, b, out=out)
    row = other[:1] if other.ndim == 2 else other[None]
    least, step = np.abs(row).min(), _step(out.shape[1])
    for k in range(0, len(out), step):
        part = column[k : k + step]
        if np.abs(part).min() * least > 0:
            np.dot(part, row, out=out[k : k + step])
        else:
            np.multiply(part, row, out=out[k : k + step])
    return out


def _repeating(ufunc: Any, a: Any, b: Any, out: Any, near: bool) -> Any:
    """Repeat the smaller operand into `out`, then apply the ufunc there, in blocks of rows."""
    small, large = (a, b) if b.shape == out.shape else (b, a)
    fits = large.shape == out.shape and not np.may_share_memory(large, out)
    if not fits or not small.all():
        return ufunc(a, b, out=out)
    step, columns = _step(out.shape[1]), out.shape[1]
    by_row = small.shape == (len(out), 1)
    ones = np.ones((1, columns) if by_row else (min(step, len(out)), 1), out.dtype)
    for k in range(0, len(out), step):
        part, own = out[k : k + step], large[k : k + step]
        if by_row:
            np.dot(small[k : k + step], ones, out=part)
        else:
            np.dot(ones[: len(part)], small.reshape(1, columns), out=part)
        ufunc(*((part, own) if small is a else (own, part)), out=part)
    return out


# -- outer products -----------------------------------------------------------------------------------
def _is_outer(a: Shape, b: Shape) -> bool:
    """Whether the shapes are (n, p, 1) and (n, 1, q), with short rows: n outer products."""
    if len(a) != 3 or len(b) != 3 or a[0] != b[0] or a[0] * a[1] * b[2] < _LEAST:
        return False
    return a[2] == b[1] == 1 and a[1] > 1 and 1 < b[2] <= _SHORT


def _outer(ufunc: Any, a: Any, b: Any, out: Any, near: bool) -> Any:
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


__all__ = ["into", "way"]
