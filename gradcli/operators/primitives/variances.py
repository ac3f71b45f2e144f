"""Variances and standard deviations."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np

from gradcli.engine.core.declaration import Array, Ints, Value
from gradcli.engine.core.modes import users_level
from gradcli.engine.core.primitive import VjpRules
from gradcli.engine.core.switch import Cone
from gradcli.engine.core.tensor import Tensor
from gradcli.engine.registry.dimensions import axes, count, describe, signed
from gradcli.engine.registry.rule_helpers import constant, data, numbers, over, unsqueeze_dims
from gradcli.engine.registry.sample_calls import TUPLES
from gradcli.engine.registry.table import function, primitive
from gradcli.engine.system.array_memory import afresh
from gradcli.engine.system.cascaded_sums import add_reduce
from gradcli.operators.primitives.reductions import divided, mean_all, mean_backward, mean_dim

FAMILY = "reductions"


# -- variances ------------------------------------------------------------------------------------
_FEW = 1 << 14  # up to this many elements float64 costs no time
_SINGLE = {"e": np.dtype(np.float32)}
_DOUBLE = {**dict.fromkeys("ef", np.dtype(np.float64)), "F": np.dtype(np.complex128)}
_REAL = {"F": np.dtype(np.float32), "D": np.dtype(np.float64)}


def _spread(
    name: str, self: Array, dim: Ints | None, correction: float | None, keepdim: bool
) -> tuple[Any, Any]:
    """(variance, mean with its dims kept); warns if there are no degrees of freedom."""
    if self.dtype.kind not in "fc":
        shown = "std and var" if "_" not in name else name
        raise RuntimeError(f"{shown} only support floating point and complex dtypes")
    axis = axes(dim, self.ndim)
    n = count(self.shape, dim)
    degrees = n - (1 if correction is None else correction)
    few = self.size <= _FEW
    wide = self.astype((_DOUBLE if few else _SINGLE).get(self.dtype.char, self.dtype), copy=False)
    middle = divided(add_reduce(wide, axis, None, True), n)
    off = wide - middle
    # Correct the sum of squares for the rounding of the mean.
    error = 0 if few else _squares(add_reduce(off, axis, None, keepdim)) / n
    total = add_reduce(_squares(off), axis, None, keepdim)
    if not few:
        total = total - error
    if degrees <= 0 or not total.size:
        for _ in range(2 if self.dtype.kind == "c" else 1):  # real and imaginary parts
            warnings.warn(
                f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than "
                "the reduction factor (input numel divided by output numel).",
                UserWarning,
                stacklevel=users_level(),
            )
    variance = divided(total, degrees if n and degrees > 0 else 0)
    found = variance.astype(_REAL.get(self.dtype.char, self.dtype), copy=False)
    return afresh(found, self), middle


def _both(variance: Array, middle: Array, self: Array) -> tuple[Any, Any]:
    """(variance, mean), the mean in the variance's shape."""
    middle = afresh(middle, self)
    if middle.shape != variance.shape:
        middle = (
            middle.reshape(variance.shape)[()] if middle.size else middle.reshape(variance.shape)
        )
    return variance, middle.astype(self.dtype, copy=False)


def _squares(values: Array) -> Any:
    """The squared absolute values, written over `values`."""
    if values.dtype.kind == "c":
        return values.real * values.real + values.imag * values.imag
    return np.multiply(values, values, out=values if type(values) is np.ndarray else None)


def _var_backward(
    g: Value, self: Value, dim: Ints | None, correction: int | None, keepdim: bool
) -> Any:
    """`2 * (self - mean(self, dim, True)) / (n - correction) * g`."""
    correction = 1 if correction is None else correction
    if not self.ndim or dim is None:
        degrees = data(self).size - correction
        middle = _middle(self, None)
        if degrees <= 0:
            return g * _degenerate(self, middle)
        return (2.0 / degrees) * g * (self - middle)
    if not keepdim and self.ndim > 1:
        g = unsqueeze_dims(g, dim, self.ndim)
    degrees = count(self.shape, dim) - correction
    return (2.0 / degrees if degrees else inf) * g * (self - _middle(self, dim))


def _middle(self: Value, dim: Ints | None) -> Any:
    """The mean of all elements, or along dimensions, which are kept with size 1."""
    return mean_all(self) if dim is None else mean_dim(self, dim, True)


def _degenerate(self: Value, middle: Value) -> Any:
    """The derivative of a variance without degrees of freedom: NaN at the mean, else infinite."""
    found = np.where(numbers(self) == numbers(middle), np.nan, inf).astype(data(self).dtype)[()]
    return constant(found, self)


def _std_backward(
    g: Value, self: Value, result: Value, dim: Ints | None, correction: int | None, keepdim: bool
) -> Any:
    return _var_backward(over(g, result * 2, result), self, dim, correction, keepdim)


def _with_mean(
    slope: Value | None, g: Value | None, self: Value, dim: Ints | None, keepdim: bool
) -> Any:
    """The gradient of a variance, if any, and that of the mean, if any."""
    if g is None:
        return slope
    sizes = tuple(self.shape)
    middle = mean_backward(g, sizes, dim or (), data(self).size, keepdim)
    return middle if slope is None else slope + middle


@primitive(
    node="VarBackward0",
    axes="dim*",
    jet=lambda s, self, dim, correction, keepdim: s.variance(self, dim, correction, keepdim),
)
class var_correction:
    def forward(
        self: Array,
        dim: Ints | None = None,
        *,
        correction: float | None = None,
        keepdim: bool = False,
    ) -> Array:
        return _spread("var", self, dim, correction, keepdim)[0]

    self = _var_backward


@primitive(
    node="StdBackward0",
    axes="dim*",
    switch=Cone("Q24[0]"),
    jet=lambda s, self, dim, correction, keepdim: s.deviation(self, dim, correction, keepdim),
    critical=lambda result: result == 0,
)
class std_correction:
    def forward(
        self: Array, dim: Ints | None = None, *, correction: Any = None, keepdim: bool = False
    ) -> Array:
        return np.sqrt(_spread("std", self, dim, correction, keepdim)[0])

    self = _std_backward


@primitive(node="VarMeanBackward0", outputs="result0 result1", axes="dim*")
class var_mean_correction:
    def forward(
        self: Array, dim: Ints | None = None, *, correction: Any = None, keepdim: bool = False
    ) -> tuple[Array, Array]:
        return _both(*_spread("var_mean", self, dim, correction, keepdim), self)

    def self(
        g: Sequence[Value | None],
        self: Value,
        dim: Ints | None,
        correction: int | None,
        keepdim: bool,
    ) -> Any:
        slope = None if g[0] is None else _var_backward(g[0], self, dim, correction, keepdim)
        return _with_mean(slope, g[1], self, dim, keepdim)


@primitive(node="StdMeanBackward0", outputs="result0 result1", axes="dim*", switch=Cone("Q24[0]"))
class std_mean_correction:
    def forward(
        self: Array, dim: Ints | None = None, *, correction: Any = None, keepdim: bool = False
    ) -> tuple[Array, Array]:
        variance, middle = _both(*_spread("std_mean", self, dim, correction, keepdim), self)
        return np.sqrt(variance), middle

    def self(
        g: Any, self: Value, result0: Value, dim: Ints | None, correction: int, keepdim: bool
    ) -> Any:
        slope = None
        if g[0] is not None:
            slope = _std_backward(g[0], self, result0, dim, correction, keepdim)
        return _with_mean(slope, g[1], self, dim, keepdim)


def _variance_out(input: Tensor, dim: Any = None, *others: Any) -> str:
    whole = dim is None or input.array.dtype.kind == "c"  # a kernel of its own, which takes all
    return "" if whole else "only efd?bBhilq: kernel std_cpu"


def _variance(name: str, primitive: VjpRules, doc: str, numpy: Any = None) -> Any:
    def call(
        input: Tensor,
        dim: Ints | None = None,
        unbiased: bool | None = None,
        keepdim: bool = False,
        correction: int | None = None,
    ) -> Any:
        correction = correction if unbiased is None else int(unbiased)
        return primitive.call(input, dim, signed(correction), keepdim)

    describe(call, name, doc, __name__)
    out = ", Tensor? out=None" if "_" not in name else ""
    more = "(randn(2,3), correction=0); (randn(4), unbiased=False); (randn(2,3))"
    return function(
        f"{name}(Tensor input, int[1]? dim, bool unbiased=True, bool keepdim=False{out and ', *' + out})",
        f"{name}(Tensor input, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False{out})",
        f"{name}(Tensor input, bool unbiased=True)",
        primitives=[primitive],
        method="_" not in name,
        numpy=numpy,
        out=_variance_out if out else "",
        samples=f"{more}; (randn(2,3), 1); (randn(2,3), dim=-1, keepdim=True); {TUPLES}",
    )(call)


var = _variance(
    "var", var_correction, "The variance; `correction` degrees of freedom are lost (1)."
)
std = _variance("std", std_correction, "The standard deviation: see `var`.")
var_mean = _variance("var_mean", var_mean_correction, "The variance and the mean.")
std_mean = _variance("std_mean", std_mean_correction, "The standard deviation and the mean.")
