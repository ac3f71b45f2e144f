"""Fused multiply-add: a * b + c with one rounding, as PyTorch's compiled kernels compute it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]


def fma32(a: Array, b: Array, c: Array) -> Array:
    """a * b + c of float32 operands (arrays or numbers)."""
    # The product of two float32 is exact in float64.
    result = np.asarray(a).astype(np.float64)
    result *= b
    result += c
    return result.astype(np.float32)


def fma64(a: Array, b: Array | float, c: Array | float) -> Array:
    """a * b + c of float64 operands, by Dekker's exact product and Knuth's two-sum."""
    if b.__class__ is float and (b == 1 or b == 0 or abs(b) > 1e290):
        return np.asarray(a * b + c)
    if c.__class__ is float and c == 0:
        return np.asarray(a * b + c)
    product = a * b
    a_high, b_high = _split(a), _split(np.float64(b))
    a_low, b_low = a - a_high, b - b_high
    error = a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)
    total = product + c
    part = total - product
    rest = (product - (total - part)) + (c - part)
    return np.asarray(total + (rest + error))


def _split(a: Any) -> Any:
    scaled = a * 134217729.0
    return scaled - (scaled - a)
