"""Elementwise work on many short rows, to NumPy's bits: its broadcasting begins anew with each of them.

A number for each row, or one row for all of them, is first repeated: a product of matrices with ones,
along a dimension of one, which takes half as long as NumPy's loop. Nothing is added up but what is there
and a zero, so that every number comes out as it went in, but for a zero, which loses its sign: where there
is one, the loop is NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_PART = 65536  # elements that are worked out at once: they stay in fast memory
_SHORT, _LEAST = 64, 32768  # elements of a row up to which, and of the result from which on it pays
_REPEATED = 8  # elements of a row up to which it pays to repeat what goes with it
_ROWS, _ELEMENTS = 1 << 11, 1 << 15  # rows, and at least so many elements, repeated at once

Shape = tuple[int, ...]
Way = Callable[[Any, Any, Any, Any, bool], Any]


def way(ufunc: Any, a: Shape, b: Shape, near: bool = True) -> Way | None:
    """How a ufunc of two arrays of these shapes is worked out into a third; None for NumPy's loop.

    near: whether they are in the cache: else memory is what both wait for.
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
    """`ufunc(a, b, out=out)` to the bit; `out` may be one of the operands. near: as of `way`."""
    if type(a) is np.ndarray and type(b) is np.ndarray and type(out) is np.ndarray:
        plain = a.dtype == b.dtype == out.dtype and out.dtype.char in "fd"
        if plain and out.flags.c_contiguous and (found := way(ufunc, a.shape, b.shape, near)):
            return found(ufunc, a, b, out, near)
    return ufunc(a, b, out=out)


# -- a number for each row, or a row for all -----------------------------------------------------------
def _step(columns: int) -> int:
    return max(_ROWS, _ELEMENTS // columns)


def _multiples(ufunc: Any, a: Any, b: Any, out: Any, near: bool) -> Any:
    """Rows times a number each: multiples of one row, where that is the same for all of them."""
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
    """The operand that is smaller than the result is repeated in its place, some rows at a time."""
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
    """Whether arrays of these shapes make outer products of short rows: (n, p, 1) and (n, 1, q)."""
    if len(a) != 3 or len(b) != 3 or a[0] != b[0] or a[0] * a[1] * b[2] < _LEAST:
        return False
    return a[2] == b[1] == 1 and a[1] > 1 and 1 < b[2] <= _SHORT


def _outer(ufunc: Any, a: Any, b: Any, out: Any, near: bool) -> Any:
    """`einsum` adds the products to zeros, too: it is asked only where the smallest factors make none."""
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
