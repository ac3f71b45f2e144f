"""erf and the normal distribution function of arrays; of float32 an eighth of SciPy's time.

Of float32, erf(z) = tanh(y(z)), where y(z)/z is smooth and even: a quotient of polynomials of z². Its
coefficients have the least relative error of erf (6e-9) on |z| <= 4.14; beyond, erf rounds to 1.

The distribution function of -t is the density of t times Mills' ratio, which is smooth and has no
cancellation: a quotient of polynomials of t, with the least relative error (6e-9) on 0 <= t <= 15.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

_ABOVE = (1.128379161, 0.3084152802, 0.04998067695, 0.002968097095, 1.475599846e-5)
_BELOW = (1.0, 0.1822458596, 0.02788194371, 0.0006451605987)
_LAST = 4.14
_MILLS_ABOVE = (1.25331415, 1.10111781, 0.4611404, 0.10247316, 0.01041051)
_MILLS_BELOW = (1.0, 1.67644991, 1.20554525, 0.47140675, 0.10247928, 0.0104104)
_MILLS_LAST = 15.0  # the density there is 0 in float32
_BLOCK = 32768  # elements: what a block needs stays in the cache
_ROOT, _SCALE = math.sqrt(0.5), 1 / math.sqrt(2 * math.pi)


def erf(z: Any) -> Any:
    """The error function of an array; of float32 to 3 units of the last place."""
    return _special("erf", z) if z.dtype != np.float32 else _in_blocks(_erf, z)


def distribution(x: Any) -> Any:
    """The normal distribution function of an array; in its tail to all digits, of float32 to 8 units."""
    if x.dtype != np.float32:
        return 0.5 * _special("erfc", x * -_ROOT)
    return _in_blocks(lambda part: _normal(part)[0], x)


def gelu_values(x: Any) -> Any:
    """x times the distribution function, as PyTorch rounds it: with no digits left below -5."""
    if x.dtype != np.float32:
        return x * 0.5 * (1 + erf(x * _ROOT))
    found = _loops().found(0, x)
    return _in_blocks(_gelu, x) if found is None else found


def gelu_slope(x: Any) -> Any:
    """The derivative of `gelu_values`: the distribution function, and x times the density."""
    if x.dtype != np.float32:
        return distribution(x) + x * (np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi))
    found = _loops().found(1, x)
    return _in_blocks(_gelu_slope, x) if found is None else found


@functools.cache
def _loops() -> Any:
    from gradcli.operators.nn.normal_loops import NormalLoops

    constants = {"ROOT": _ROOT, "LAST": _LAST, "MILLS_LAST": _MILLS_LAST, "SCALE": _SCALE}
    ratios = {"ABOVE": (_ABOVE, "square"), "BELOW": (_BELOW, "square")}
    ratios |= {"MILLS_ABOVE": (_MILLS_ABOVE, "t"), "MILLS_BELOW": (_MILLS_BELOW, "t")}
    return NormalLoops(constants | ratios)


def _in_blocks(function: Callable[[Any], Any], x: Any) -> Any:
    """A function of arrays of numbers, applied to a block after the other."""
    flat = np.ascontiguousarray(x).reshape(-1)
    out = np.empty_like(flat)
    for start in range(0, flat.size, _BLOCK):
        out[start : start + _BLOCK] = function(flat[start : start + _BLOCK])
    return out.reshape(np.shape(x))


def _erf(z: Any) -> Any:
    part = np.clip(z, -_LAST, _LAST)
    square = part * part
    y = _polynomial(_ABOVE, square)
    y /= _polynomial(_BELOW, square)
    y *= part
    np.tanh(y, y)
    far = np.abs(z) > _LAST
    if far.any():
        y[far] = np.sign(z[far])
    return y


def _gelu(x: Any) -> Any:
    y = _erf(x * np.float32(_ROOT))
    y += 1
    return np.multiply(x * np.float32(0.5), y, y)


def _gelu_slope(x: Any) -> Any:
    found, density = _normal(x)
    density *= x
    found += density
    return found


def _normal(x: Any) -> tuple[Any, Any]:
    """(the distribution function, the density) of numbers of float32."""
    t = np.abs(x)
    np.clip(t, 0, _MILLS_LAST, t)
    density = t * t
    density *= np.float32(-0.5)
    np.exp(density, density)
    density *= np.float32(_SCALE)
    found = _polynomial(_MILLS_ABOVE, t)
    found /= _polynomial(_MILLS_BELOW, t)
    found *= density
    # The other side is 1 - found: abs(found - 1), so that nothing is chosen element by element.
    found -= x > 0
    return np.abs(found, found), density


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
