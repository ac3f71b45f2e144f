"""Accurate derivatives on arrays, where PyTorch's formula loses digits.

Nodes, saved tensors and what `create_graph` records stay PyTorch's; only the values are computed by a
rearranged formula. docs/accuracy.md lists the gains, `test_accurate.py` the exact values.
`self` is always an array of a real dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import factorial, pi, sqrt
from typing import Any

import numpy as np

from gradcli.engine.core.declaration import Array, Value
from gradcli.engine.registry.rule_helpers import unrecorded, where

# Not empty while derivatives are to be PyTorch's, with the digits that its formulas lose.
as_stated: list[None] = []


@contextmanager
def pytorchs() -> Iterator[None]:
    """Inside, derivatives are computed by the formulas that PyTorch states, on all threads."""
    as_stated.append(None)
    try:
        yield
    finally:
        as_stated.pop()


def is_real(self: Value) -> bool:
    """Whether `self` is a real array, on which these formulas run, and PyTorch's are not asked for."""
    return not as_stated and unrecorded(self) and self.dtype.kind == "f"


def circle(self: Array) -> Array:
    """1 - self**2, without cancellation for |self| near 1."""
    return (1 - self) * (1 + self)


def asinh_slope(self: Array) -> Array:
    """1/sqrt(self**2 + 1), without overflow of the square."""
    return 1 / np.hypot(self, self.dtype.type(1))


def acosh_slope(self: Array) -> Array:
    """1/sqrt(self**2 - 1), without cancellation near 1 or overflow."""
    size = np.abs(self)
    return 1 / (np.sqrt(size - 1) * np.sqrt(size + 1))


# d/dt sin(t)/t = t * sum of (-1)**n 2n t**(2n-2)/(2n+1)!, n from 1
_SINC = tuple((-1) ** n * 2 * n / factorial(2 * n + 1) for n in range(1, 14))


def sinc_slope(self: Any) -> Array:
    """The derivative of sin(pi self)/(pi self), without cancellation near 0."""
    t = self.dtype.type(pi) * self
    with np.errstate(all="ignore"):
        far = (t * np.cos(t) - np.sin(t)) / (t * self)
    return where(np.abs(t) < 1, sinc_series(np.clip(self, -1 / pi, 1 / pi)), far)


def sinc_terms(self: Any) -> Any:
    """The same to 13 digits for |self| < 0.01, in terms that read well."""
    t = pi * self
    return -pi * t * (1 - t * t / 10 + t * t * t * t / 280) / 3


def sinc_series(self: Value) -> Any:
    """The same for |self| < 1/pi, as a series that can be differentiated again; arrays or tensors."""
    t = self * pi
    square = t * t
    series = square * _SINC[-1]
    for coefficient in reversed(_SINC[1:-1]):
        series = (series + coefficient) * square
    return (series + _SINC[0]) * t * pi


# sum of (-1)**k (2k-1)!! (2 self**2)**-k, k from 1: the asymptotic series of erfcx
_ERFCX = tuple((-1) ** k * float(np.prod(np.arange(1.0, 2 * k, 2))) for k in range(1, 17))


def erfcx_slope(self: Array, result: Array) -> Array:
    """2 self erfcx(self) - 2/sqrt(pi), without cancellation for self > 10."""
    with np.errstate(all="ignore"):
        inverse = 0.5 / np.maximum(self, 10) / np.maximum(self, 10)
    series = np.zeros_like(inverse)
    for coefficient in reversed(_ERFCX):
        series = (series + coefficient) * inverse
    return where(self < 10, self * 2.0 * result - 2.0 / sqrt(pi), 2.0 / sqrt(pi) * series)


def log_ndtr_slope(self: Array, result: Array, erfcx: Callable[..., Any]) -> Array:
    """The normal density divided by the distribution function; below -1 by erfcx, without logarithms."""
    with np.errstate(all="ignore"):
        tail = sqrt(2 / pi) / erfcx(-self * sqrt(0.5))
        return where(self < -1, tail, np.exp(-(result + self**2 / 2)) / sqrt(2 * pi))


def digamma_at(self: Array, digamma: Any) -> Array:
    """digamma by the reflection formula, with the distance to the nearest pole instead of self."""
    distance = self - np.rint(self)
    with np.errstate(all="ignore"):
        reflected = digamma(1 - self) - pi / np.tan(pi * distance)
    return where((self < 0) & (distance != 0), reflected, digamma(self))


def trigamma_at(self: Array, trigamma: Callable[..., Any]) -> Array:
    """The derivative of digamma, reflected in the same way."""
    distance = self - np.rint(self)
    with np.errstate(all="ignore"):
        reflected = (pi / np.sin(pi * distance)) ** 2 - trigamma(1 - self)
    return where((self < 0) & (distance != 0), reflected, trigamma(self))


def over_squares(part: Array, other: Array) -> Array:
    """part/(part**2 + other**2), without overflow or underflow of the squares; 0 if both are 0."""
    size = np.hypot(part, other)
    with np.errstate(all="ignore"):
        found = part / size / size
    return where(size == 0, part, found)
