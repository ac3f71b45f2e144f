"""Cumulative sums, products, extrema and logsumexp."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gradcli.engine.core import batched_arrays
from gradcli.engine.core.declaration import Array, DType, Value
from gradcli.engine.core.switch import Draw, Point, Theirs, WatchedCall, Zeros
from gradcli.engine.core.tensor import Tensor, wrap_dim
from gradcli.engine.registry.dimensions import integers, multiply_reduce, numpy_dtype
from gradcli.engine.registry.named_results import results
from gradcli.engine.registry.rule_helpers import (
    by_zeros,
    cast,
    cat,
    conj,
    data,
    flip,
    is_complex,
    is_traced,
    narrow,
    running_sum,
    scatter_add,
    total,
    unrecorded,
    where,
    zeros_like,
)
from gradcli.engine.registry.sample_calls import ALONG
from gradcli.engine.registry.table import operator, primitive, resolve
from gradcli.engine.system import dtypes
from gradcli.engine.system.array_memory import afresh, in_order
from gradcli.engine.system.cascaded_sums import add_reduce

FAMILY = "reductions"


# -- running sums and products --------------------------------------------------------------------
_WIDER = {**dict.fromkeys("ef", np.float64), "F": np.complex128}  # what PyTorch accumulates in


def _running(ufunc: np.ufunc, name: str) -> Any:
    def kernel(self: Array, dim: int, *, dtype: Any = None) -> Array:
        kind = numpy_dtype(dtype)
        at = wrap_dim(dim, self.ndim)
        if kind is not None:
            if kind.kind == "b" and self.ndim:
                raise dtypes.not_implemented(f"{name}_out_cpu", kind)
            self = (self.real if kind.kind != "c" else self).astype(kind, copy=False)
        elif integers(self):
            kind = np.dtype(np.int64)
        if not self.ndim:
            return self.astype(kind) if kind is not None else self.copy()[()]
        if (wide := _WIDER.get(self.dtype.char)) is not None:
            return afresh(ufunc.accumulate(self, axis=at, dtype=wide).astype(self.dtype), self)
        return afresh(ufunc.accumulate(self, axis=at, dtype=kind), self)

    return kernel


def _reversed_cumsum(value: Value, dim: int) -> Any:
    """The cumulative sum from the end: for each element, the sum from it to the last."""
    return flip(running_sum(flip(value, dim), dim), dim)


def _cumsum_backward(g: Value, dim: int, self_dtype: DType) -> Any:
    """`flip(cumsum(flip(g, [dim]), dim), [dim])`."""
    g = cast(g, self_dtype)
    if data(g).size <= 1 or g.shape[dim] == 1:
        return g
    return _reversed_cumsum(g, dim)


def _scan(ufunc: np.ufunc, name: str, more: str = "", **facts: Any) -> Any:
    """The decorator that defines a ufunc's cumulative reduction from its VJP rule."""
    return operator(
        kernel=_running(ufunc, name),
        node=f"{name.capitalize()}Backward0",
        inplace=True,
        numpy=getattr(np, name),
        symbolic=f"{name}: dim -",
        samples=ALONG + more,
        signature=f"{name}(Tensor input, int dim, *, ScalarType? dtype=None, Tensor? out=None)",
        out="computed",
        **facts,
    )


@_scan(np.add, "cumsum", linearity="linear")
class cumsum:
    """The running sum along a dimension."""

    self = _cumsum_backward


def _cumprod_backward(g: Any, self: Any, dim: int, result: Value) -> Any:
    g = cast(g, data(self).dtype)
    if data(self).size <= 1 or self.shape[dim] == 1:
        return g
    dim = dim % self.ndim

    def with_zeros() -> Any:
        if unrecorded(self):
            return _cumprod_backward_zeros(g, conj(self), dim, conj(result))
        return _cumprod_backward_slices(g, conj(self), dim)

    return by_zeros(self, lambda: _reversed_cumsum(conj(result) * g, dim) / conj(self), with_zeros)


def _cumprod_backward_zeros(g: Array, self: Array, dim: int, result: Array) -> Any:
    """cumprod's VJP with zeros, in linear time: the elements before the first zero, and the first zero."""
    zeros = np.add.accumulate(self == 0, axis=dim)
    with np.errstate(all="ignore"):
        made = _reversed_cumsum(np.where(zeros == 0, result * g, 0), dim) / self
    made = np.where(zeros == 0, made, 0)
    first = (self == 0) & (zeros == 1)
    between = (zeros == 1) & ~first
    after = np.multiply.accumulate(np.where(between, self, 1), axis=dim)
    total = add_reduce(np.where(zeros == 1, after * g, 0), axis=dim, keepdims=True)
    before = multiply_reduce(np.where(zeros == 0, self, 1), axis=dim, keepdims=True)
    return np.where(first, total * before, made)


def _cumprod_backward_slices(g: Tensor, self: Tensor, dim: int) -> Any:
    """cumprod's VJP one position at a time, which can be differentiated again if elements are zero."""
    size = self.shape[dim]
    edge = zeros_like(narrow(self, dim, 0, 1)) + 1
    slices = []
    for k in range(size):
        before = edge if k == 0 else narrow(self, dim, 0, k).prod(dim, True)
        left = before
        if k + 1 < size:
            after = cumprod(narrow(self, dim, k + 1, size - k - 1), dim)
            left = cat([before, after if k == 0 else before * after], dim)
        slices.append(total(narrow(g, dim, k, size - k) * left, dim))
    return resolve("stack")(slices, dim)


@_scan(
    np.multiply,
    "cumprod",
    "; (tensor([2., 0., 3., 0.]), 0)",
    switch=Zeros("Q16c[1]"),
    jet=lambda s, self, dim: s.cumprod(self, dim),
)
class cumprod:
    """The running product along a dimension."""

    self = _cumprod_backward


# -- running extrema ------------------------------------------------------------------------------
def _running_extrema(name: str, ufunc: np.ufunc) -> Any:
    def kernel(self: Array, dim: int) -> tuple[Array, Any]:
        if not self.ndim and dim not in (-1, 0):
            raise IndexError(f"{name}(): Expected reduction dim -1 or 0 for scalar but got {dim}")
        axis = wrap_dim(dim, self.ndim)
        if not self.ndim:
            return self.copy(), np.int64(0)
        if not self.size:
            return self.copy(), np.zeros(self.shape, np.int64)
        if self.dtype.kind == "c":
            raise dtypes.not_implemented(f"{name}_cpu", self)
        values = ufunc.accumulate(self, axis=axis)
        new = self == values
        if self.dtype.kind == "f":
            new |= np.isnan(self)
        shape = [1] * self.ndim
        shape[axis] = -1
        places = np.arange(self.shape[axis]).reshape(shape)
        indices = np.maximum.accumulate(np.where(new, places, 0), axis=axis)
        return afresh(values, self), afresh(indices, self)

    return kernel


class Running(Point):
    """Where an element equals the extreme of those before it."""

    __slots__ = ("largest",)

    def __init__(self, largest: bool) -> None:
        super().__init__(None, asked="K18" if largest else "")
        self.largest = largest

    def _again(self, call: WatchedCall) -> Any:
        """Which elements equal the running extreme of those before them."""
        own, made = call["self"], call.results[0]
        if not own.ndim:
            return np.zeros((), bool)
        at = call["dim"] % own.ndim
        size = own.shape[at]
        return narrow(own, at, 1, size) == narrow(made, at, 0, max(size - 1, 0))

    def count(self, call: WatchedCall) -> Any:
        return np.count_nonzero(self._again(call)) if call["self"].shape else 0

    def mask(self, call: WatchedCall) -> Any:
        return np.full(np.shape(call.results[0]), bool(self.count(call)))

    def touched(self, call: WatchedCall) -> dict[str, Any]:
        return {"self": self.mask(call)}

    def towards(self, call: WatchedCall, tangents: Mapping[str, Any]) -> Any:
        own, t = np.asarray(call["self"]), np.array(tangents["self"])
        at = call["dim"] % own.ndim
        values, moved = np.moveaxis(own, at, 0), np.moveaxis(t, at, 0)
        best, sign = values[0], 1 if self.largest else -1
        for k in range(1, len(values)):
            before, here = moved[k - 1], moved[k].copy()
            follows = sign * (values[k] - best) < 0
            tied = values[k] == best
            larger = np.maximum(before, here) if self.largest else np.minimum(before, here)
            moved[k] = np.where(follows, before, np.where(tied, larger, here))
            best = np.where(follows, best, values[k])
        return t

    def spread(self, call: WatchedCall, g: Array, name: str, own: Array, draw: Draw) -> Any:
        size = np.abs(np.asarray(g)).max(initial=0.0)
        return own + size * draw(np.shape(own)) if self.count(call) else own

    def pulled(self, call: WatchedCall, g: Array, name: str, own: Array, theirs: Theirs) -> Any:
        """Shared evenly among the two that meet, as maximum shares it: the only rule but ours."""
        values, at = np.asarray(call["self"]), call["dim"] % np.ndim(call["self"])
        rows, arrived = np.moveaxis(values, at, 0), np.moveaxis(np.array(g), at, 0)
        best = np.moveaxis(np.asarray(call.results[0]), at, 0)
        found = np.zeros(np.shape(own))
        made = np.moveaxis(found, at, 0)
        passed = np.zeros(rows.shape[1:])
        for k in range(len(rows) - 1, -1, -1):
            passed = passed + arrived[k]
            beaten = (best[k - 1] != rows[k]) & (best[k] == rows[k]) if k else np.True_
            tied = (best[k - 1] == rows[k]) if k else np.False_
            share = np.where(beaten, passed, np.where(tied, passed / 2, 0.0))
            made[k], passed = share, passed - share
        return found


def _running_backward(g: Value, self: Value, indices: Value, dim: int) -> Any:
    """Add each gradient at the index of its running extremum."""
    if not data(self).size:
        return self
    return scatter_add(g, tuple(self.shape), dim, indices)


def _running_extremum(name: str, ufunc: np.ufunc, doc: str) -> Any:
    made = primitive(
        kernel=_running_extrema(name, ufunc),
        node=f"{name.capitalize()}Backward0",
        refuses={"C": name},
        outputs="values | indices",
        switch=Running(ufunc is np.maximum),
    )(type(name, (), {"__module__": __name__, "self": _running_backward}))
    signature = f"{name}(Tensor input, int dim, *, Tensor[]? out=None)"
    return results(signature, made, doc=doc, samples=ALONG, out="exact: scalar_type")


cummax = _running_extremum("cummax", np.maximum, "The largest element so far, and its index.")
cummin = _running_extremum("cummin", np.minimum, "The smallest element so far, and its index.")


# -- logcumsumexp ---------------------------------------------------------------------------------
def _log_add(a: Array, b: Array) -> Any:
    """log(exp(a) + exp(b)) of complex numbers, scaled by the larger."""
    larger = np.where(a.real >= b.real, a, b)
    smaller = np.where(a.real >= b.real, b, a)
    return np.where(np.isneginf(larger.real), larger, larger + np.log(1 + np.exp(smaller - larger)))


def _reversed_logcumsumexp(value: Value, dim: int) -> Any:
    return flip(logcumsumexp(flip(value, dim), dim), dim)


WIDEST = 600.0  # between elements whose exponentials have one scale


def _along_scales(tangent: Tensor, self: Tensor, result: Tensor, dim: int) -> Any:
    """The derivative along a tangent, a weighted mean so far, in one scale; None where they need several.

    PyTorch's rule takes logarithms of the gradient, whose own derivatives are NaN from the third on.
    """
    numbers = batched_arrays.numbers(data(self))
    if not self.ndim or not self.numel() or self.is_complex() or is_traced(self):
        return None
    with np.errstate(all="ignore"):
        if not np.ptp(numbers) <= WIDEST:
            return None
    scale = numbers.max()
    return cumsum((self - scale).exp() * tangent, dim) / (result - scale).exp()


@operator(
    node="LogcumsumexpBackward0",
    samples=f"{ALONG}; (randn(0), 0)",
    signature="logcumsumexp(Tensor input, int dim, *, Tensor out=None)",
    jet=lambda s, self, dim: s.logcumsumexp(self, dim),
    tangent=_along_scales,
    critical=lambda self: np.ptp(self) > 12 if np.size(self) else False,
    out="exact: scalar_type",
)
class logcumsumexp:
    """The logarithm of the running sum of exponentials."""

    def forward(self: Array, dim: int) -> Array:
        axis = wrap_dim(dim, self.ndim)
        if self.dtype.kind not in "fc":
            raise dtypes.not_implemented("logcumsumexp_out_cpu", self)
        if not self.ndim or not self.size:
            return self.copy()[()]
        with np.errstate(all="ignore"):
            if self.dtype.kind == "f":
                wide = self.astype(np.float32) if self.dtype.itemsize == 2 else self
                found = np.logaddexp.accumulate(wide, axis=axis) + 0  # -0 comes out as 0
                return afresh(found.astype(self.dtype, copy=False), self)
            found = np.moveaxis(self.copy(), axis, 0)
            for k in range(1, len(found)):
                found[k] = _log_add(found[k - 1], found[k])
            return in_order(np.moveaxis(found, 0, axis))

    def self(g: Value, self: Value, result: Value, dim: int) -> Any:
        if not g.ndim or not data(g).size:
            return g
        if is_complex(g):
            found = _reversed_logcumsumexp(np.log(conj(g)) - result, dim) + self
            return conj(np.exp(found))
        lowest = np.finfo(data(g).dtype).min
        logs = np.log(np.abs(where(g == 0, 1, g)))  # finite slopes where neither part takes it
        parts = [
            np.exp(_reversed_logcumsumexp(where(sign, logs, lowest) - result, dim) + self)
            for sign in (g > 0, g < 0)
        ]
        return parts[0] - parts[1]
