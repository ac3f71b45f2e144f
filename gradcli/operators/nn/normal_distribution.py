"""erf and the normal distribution function of arrays; of float32 an eighth of SciPy's time.

Of float32, erf(z) = tanh(y(z)), where y(z)/z is smooth and even: a quotient of polynomials of z². Its
coefficients have the least relative error of erf (6e-9) on |z| <= 4.14; beyond, erf rounds to 1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

_ABOVE = (1.128379161, 0.3084152802, 0.04998067695, 0.002968097095, 1.475599846e-5)
_BELOW = (1.0, 0.1822458596, 0.02788194371, 0.0006451605987)
_LAST = 4.14
_CANCELS = -1.0  # below, 1 + erf(x/sqrt(2)) loses digits
_BLOCK = 16384  # elements: what a block needs stays in the cache
_ROOT = math.sqrt(0.5)


def erf(z: Any) -> Any:
    """The error function of an array; of float32 to 3 units of the last place."""
    if z.dtype != np.float32:
        return _special("erf", z)
    flat = np.ascontiguousarray(z).reshape(-1)
    out = np.empty_like(flat)
    for start in range(0, flat.size, _BLOCK):
        part = np.clip(flat[start : start + _BLOCK], -_LAST, _LAST)
        square = part * part
        y = _polynomial(_ABOVE, square)
        y /= _polynomial(_BELOW, square)
        y *= part
        np.tanh(y, out[start : start + _BLOCK])
    far = np.abs(flat) > _LAST
    if far.any():
        out[far] = np.sign(flat[far])
    return out.reshape(np.shape(z))


def distribution(x: Any) -> Any:
    """The normal distribution function of an array, to all digits in its tail."""
    if x.dtype != np.float32:
        return 0.5 * _special("erfc", x * -_ROOT)
    found = np.asarray(0.5 * (1 + erf(x * np.float32(_ROOT))))
    tail = x < _CANCELS
    if tail.any():
        found[tail] = 0.5 * _special("erfc", x[tail] * np.float32(-_ROOT))
    return found


def _polynomial(coefficients: tuple[float, ...], x: Any) -> Any:
    value = np.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value *= x
        value += coefficient
    return value


def _special(name: str, x: Any) -> Any:
    """SciPy's function; Python's own where SciPy is not installed."""
    try:
        from scipy import special
    except ImportError:
        return np.vectorize(getattr(math, name), otypes=[x.dtype])(x)
    return getattr(special, name)(x).astype(x.dtype, copy=False)
