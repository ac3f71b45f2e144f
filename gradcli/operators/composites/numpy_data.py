"""NumPy's functions of data on tensors that are differentiated: counts, fits, spectra, products by name.

As in `numpy_functions`, which has the others: NumPy's arguments and meanings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.engine.core.errors import NoNumpyError
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.engine.system import dtypes
from gradcli.operators.composites.numpy_functions import (
    FUNCTIONS,
    Axis,
    Operand,
    _call,
    _like_of,
    _of,
    _promoted,
    _tensor,
    meaning,
)


def _numbers(value: Operand) -> Any:
    """The numbers of what only says places: no slope goes through them."""
    return np.asarray(value.detach() if isinstance(value, Tensor) else value)


# -- counts -----------------------------------------------------------------------------------------
@_of(np.bincount)
def bincount(x: Operand, /, weights: Operand = None, minlength: int = 0) -> Any:
    places = _numbers(x)
    if not isinstance(weights, Tensor):
        return np.bincount(places, weights, minlength)
    size = max(minlength, 1 + int(places.max(initial=-1)))
    start = wrap(np.zeros(size, np.float64))
    return start.scatter_add(0, wrap(places.astype(np.int64)), weights.to(dtypes.float64))


@_of(np.unique)
def unique(ar: Operand, *given: Any, **how: Any) -> Any:
    """The elements, each once, as a function of where they stand."""
    if given or not how.keys() <= {"return_index", "return_inverse", "return_counts"}:
        raise NoNumpyError("unique")
    whole = _tensor(ar)
    own = {n: bool(v) for n, v in how.items()}
    call: Any = np.unique
    _, places, *others = call(_numbers(whole), **{**own, "return_index": True})
    rest = [places, *others] if own.get("return_index") else others
    found = whole.reshape(-1)[wrap(places)]
    return (found, *rest) if rest else found


@_of(np.histogram)
def histogram(
    a: Operand,
    bins: Any = 10,
    range: Any = None,
    density: Any = None,
    weights: Operand = None,
) -> Any:
    """Counts are numbers; weights, and bins between the extremes, have slopes."""
    numbers = _numbers(a).reshape(-1)
    if isinstance(bins, str) or (range is not None and isinstance(a, Tensor) and density):
        raise NoNumpyError("histogram")
    edges: Any = np.histogram_bin_edges(numbers, _numbers(bins), range)
    places = np.clip(np.searchsorted(edges, numbers, "right") - 1, 0, len(edges) - 2)
    kept = (numbers >= edges[0]) & (numbers <= edges[-1])
    places = np.where((numbers == edges[-1]) & kept, len(edges) - 2, places)
    found: Any = np.histogram(numbers, edges)[0]
    if weights is not None:
        given = _tensor(weights).reshape(-1)[wrap(np.flatnonzero(kept))]
        found = bincount(places[kept], given, len(edges) - 1)
    if isinstance(bins, Tensor):
        edges = bins
    elif np.ndim(bins) == 0 and range is None and isinstance(a, Tensor) and np.ptp(numbers):
        edges = FUNCTIONS[np.linspace](a.amin(), a.amax(), int(bins) + 1)
    if density:
        found = _tensor(found) / (edges[1:] - edges[:-1]) / found.sum()
    return found, edges


# -- statistics -------------------------------------------------------------------------------------
@_of(np.nanvar)
def nanvar(
    a: Operand,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    ddof: float = 0,
    keepdims: bool = False,
) -> Any:
    a = _tensor(a)
    there = ~np.isnan(_numbers(a))
    filled = _call("where")(wrap(there), a, wrap(np.zeros((), a.array.dtype)))
    count = there.sum(axis, keepdims=True)
    middle = FUNCTIONS[np.sum](filled, axis, keepdims=True) / wrap(np.asarray(count))
    apart = (filled - middle) * wrap(there.astype(a.array.dtype))
    count = there.sum(axis, keepdims=bool(keepdims)) - ddof
    return FUNCTIONS[np.sum](apart * apart, axis, keepdims=keepdims) / wrap(np.asarray(count)[()])


FUNCTIONS[np.nanstd] = lambda *args, **how: nanvar(*args, **how).sqrt()


@_of(np.diff)
def diff(a: Operand, n: int = 1, axis: int = -1, **ends: Operand) -> Any:
    """Differences, of what stands before and behind as well; `prepend` may be a number."""
    a = _tensor(a)
    given = {k: v for k, v in ends.items() if v is not np._NoValue}

    def end(name: str) -> list[Any]:
        if name not in given:
            return []
        value = _tensor(given[name], a)
        if value.ndim == 0:
            value = value.expand([1 if d == axis % a.ndim else k for d, k in enumerate(a.shape)])
        return [value]

    parts = _promoted(*end("prepend"), a, *end("append"))
    return _call("diff")(parts[0] if len(parts) == 1 else _call("cat")(parts, axis), n, axis)


@_of(np.clip)
def clip(
    a: Operand,
    a_min: Operand = None,
    a_max: Operand = None,
    out: None = None,
    *,
    min: Operand = None,
    max: Operand = None,
    **how: Any,
) -> Any:
    low, high = (
        None if v is None or v is np._NoValue else v
        for v in (a_min if min is None else min, a_max if max is None else max)
    )
    if all(v is None or (np.ndim(v) == 0 and not isinstance(v, Tensor)) for v in (low, high)):
        return _call("clamp")(_tensor(a), low, high)
    like = _like_of((a, low, high))
    given = [None if v is None else _tensor(v, like) for v in (low, high)]
    return _call("clamp")(_tensor(a, like), *given)


# -- fits -------------------------------------------------------------------------------------------
@_of(np.vander)
def vander(x: Operand, N: int | None = None, increasing: bool = False) -> Any:
    x = _tensor(x)
    powers = np.arange(x.shape[0] if N is None else N)
    found = _call("stack")([x**k for k in powers.tolist()], -1)
    return found if increasing else _call("flip")(found, (-1,))


@_of(np.linalg.lstsq)
def lstsq(a: Operand, b: Operand, rcond: Any = None) -> Any:
    """The solution of full rank; `rcond` would leave directions out."""
    a, b = _promoted(a, b)
    if rcond is not None:
        raise NoNumpyError("linalg.lstsq")
    right = b if b.ndim > 1 else b.reshape((-1, 1))
    values = _call("linalg.svdvals")(a)
    found = _call("linalg.pinv")(a) @ right
    rank = np.int64(_call("linalg.matrix_rank")(a.detach()))
    left: Any = np.zeros(0)
    if a.shape[0] > a.shape[1] == rank:
        left = ((a @ found - right) ** 2).sum(0)
    return found if b.ndim > 1 else found.reshape(-1), left, rank, values


@_of(np.polyfit)
def polyfit(x: Operand, y: Operand, deg: int, rcond: None = None, **how: Any) -> Any:
    if rcond is not None or how:
        raise NoNumpyError("polyfit")
    return lstsq(vander(_tensor(x, _like_of((x, y))), int(deg) + 1), y)[0]


@_of(np.linalg.cond)
def cond(x: Operand, p: Any = None) -> Any:
    return _call("linalg.cond")(_tensor(x), p)


# -- products by name -------------------------------------------------------------------------------
@_of(np.vecdot, np.linalg.vecdot)
def vecdot(x1: Operand, x2: Operand, axis: int = -1) -> Any:
    a, b = _promoted(x1, x2)
    return (a.conj() * b).sum(axis)


@_of(np.matvec)
def matvec(x1: Operand, x2: Operand) -> Any:
    a, b = _promoted(x1, x2)
    return (a @ b.unsqueeze(-1)).squeeze(-1)


@_of(np.vecmat)
def vecmat(x1: Operand, x2: Operand) -> Any:
    a, b = _promoted(x1, x2)
    return (a.conj().unsqueeze(-2) @ b).squeeze(-2)


@_of(np.linalg.trace)
def trace(x: Operand, /, *, offset: int = 0, dtype: Any = None) -> Any:
    return _call("diagonal")(_tensor(x), offset, -2, -1).sum(-1)


@_of(np.angle)
def angle(z: Operand, deg: bool = False) -> Any:
    found = _call("angle")(_tensor(z))
    return found * (180 / np.pi) if deg else found


# -- spectra ----------------------------------------------------------------------------------------
def _transform(name: str) -> Any:
    def one(
        a: Operand, n: int | None = None, axis: int = -1, norm: Any = None, out: Any = None
    ) -> Any:
        return _call(f"fft.{name}")(_tensor(a), n, axis, norm)

    return one


def _transforms(name: str, own: Sequence[int] | None) -> Any:
    def several(
        a: Operand, s: Any = None, axes: Any = own, norm: Any = None, out: Any = None
    ) -> Any:
        return _call(f"fft.{name}")(_tensor(a), s, axes, norm)

    return several


for _name in "fft ifft rfft irfft hfft ihfft".split():
    FUNCTIONS[getattr(np.fft, _name)] = _transform(_name)
for _name in "fft2 ifft2 rfft2 irfft2".split():
    FUNCTIONS[getattr(np.fft, _name)] = _transforms(_name, (-2, -1))
for _name in "fftn ifftn rfftn irfftn".split():
    FUNCTIONS[getattr(np.fft, _name)] = _transforms(_name, None)
FUNCTIONS |= {
    np.fft.fftshift: lambda x, axes=None: _call("fft.fftshift")(_tensor(x), axes),
    np.fft.ifftshift: lambda x, axes=None: _call("fft.ifftshift")(_tensor(x), axes),
}


__all__ = ["FUNCTIONS", "meaning"]
