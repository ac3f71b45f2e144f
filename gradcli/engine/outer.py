"""Outer products of many short vectors: NumPy's broadcasting begins anew with each row of each of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.engine.threads import in_runs

_PART = 65536  # elements that are worked out at once: they stay in fast memory
_SHORT, _LEAST = 64, 32768  # elements of a row up to which, and of the result from which on it pays


def is_outer(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether arrays of these shapes make outer products of short rows: (n, p, 1) and (n, 1, q)."""
    if len(a) != 3 or len(b) != 3 or a[0] != b[0] or a[0] * a[1] * b[2] < _LEAST:
        return False
    return a[2] == b[1] == 1 and a[1] > 1 and 1 < b[2] <= _SHORT


def multiply(a: Any, b: Any, out: Any = None) -> Any:
    """`a * b` to the bit, of shapes that are outer products.

    `einsum` adds the products to zeros, which leaves them as they are unless one is a zero with a sign:
    so it is asked only where the smallest factors make none.
    """
    if out is None:
        made = np.empty((len(a), a.shape[1], b.shape[2]), np.result_type(a, b))
        in_runs(lambda i, j: multiply(a[i:j], b[i:j], made[i:j]), len(a), made.size)
        return made
    step = max(_PART // (a.shape[1] * b.shape[2]), 1)
    for k in range(0, len(a), step):
        x, y, made = a[k : k + step], b[k : k + step], out[k : k + step]
        if np.abs(x).min() * np.abs(y).min() > 0:
            np.einsum("bi,bj->bij", x[:, :, 0], y[:, 0, :], out=made)
        else:
            np.multiply(x, y, out=made)
    return out


def products(a: Any, b: Any) -> Any:
    """`a * b`, where these are plain arrays that make outer products of short rows; else None."""
    if type(a) is not np.ndarray or type(b) is not np.ndarray or a.dtype != b.dtype:
        return None
    if a.dtype.char not in "fd":
        return None
    if is_outer(b.shape, a.shape):
        a, b = b, a
    return multiply(a, b) if is_outer(a.shape, b.shape) else None


__all__ = ["is_outer", "multiply", "products"]
