"""Functions of several numbers, element by element: limits, the larger one, sums; and tests of elements."""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import Any

import numpy as np

from gradcli.engine.core.batched_arrays import is_batched
from gradcli.engine.core.declaration import Array, Number, Value
from gradcli.engine.core.primitive import VjpRules
from gradcli.engine.core.promotion import mismatch
from gradcli.engine.core.switch import Corner, Point, Several, jump
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.engine.registry.rule_helpers import (
    above,
    below,
    conj,
    dtype_of,
    implemented,
    is_complex,
    is_python_number,
    masked_fill,
    minus,
    refuse_if,
    where,
    zeros_like,
)
from gradcli.engine.registry.table import function, operator, overloads, primitive
from gradcli.engine.system import dtypes
from gradcli.engine.system.dtypes import c_type, scalar_name
from gradcli.operators.movement.casting import cast
from gradcli.operators.movement.strides import empty_as
from gradcli.operators.primitives import accurate_slopes
from gradcli.operators.primitives.arithmetic import check_divisor, div, pow_base
from gradcli.operators.primitives.elementwise import (
    LN2,
    abs,
    binary,
    no_complex,
    unary,
)

FAMILY = "elementwise"


# -- limits ---------------------------------------------------------------------------------------
def _limited(self: Array, low: Array | None, high: Array | None) -> Array:
    if low is not None:
        self = above(self, low)
    return self if high is None else below(self, high)


def _inside(self: Value, low: Value | Number | None, high: Value | Number | None) -> Any:
    if low is None:
        return self <= high
    return self >= low if high is None else (self >= low) & (self <= high)


_NO_COMPLEX_CLAMP = {"c": "clamp is not supported for complex types"}
_NO_BOOL_CLAMP = {**_NO_COMPLEX_CLAMP, "b": "clamp_scalar_cpu"}


# A limit may be left out.
_AT_LEAST = Corner(lambda self, min: min is not None and self == min, 0, 1, "Q12")
_AT_MOST = Corner(lambda self, max: max is not None and self == max, 1, 0, "Q12b")
_AT_LEAST_TENSOR = Point(
    lambda self, min: min is not None and self == min,
    lambda d_self, d_min: np.maximum(d_self, d_min),
    asked="self=K2[0] min=K2[1]",
)
_AT_MOST_TENSOR = Point(
    lambda self, max: max is not None and self == max,
    lambda d_self, d_max: np.minimum(d_self, d_max),
    asked="self=K2b[0] max=K2b[1]",
)


@primitive(
    "elementwise common",
    node="ClampBackward1",
    refuses=_NO_BOOL_CLAMP,
    switch=Several(_AT_LEAST, _AT_MOST),
)
class clamp_numbers:
    def forward(self: Array, min: float | None = None, max: float | None = None) -> Array:
        low, high = (None if n is None else dtypes.checked(n, self.dtype) for n in (min, max))
        return _limited(self, low, high)

    self = lambda g, self, min, max: where(_inside(self, min, max), g, 0)


@primitive(
    "common pointwise",
    node="ClampBackward0",
    refuses=_NO_COMPLEX_CLAMP,
    switch=Several(_AT_LEAST_TENSOR, _AT_MOST_TENSOR),
)
class clamp_tensors:
    def forward(self: Array, min: Array | None = None, max: Array | None = None) -> Array:
        if self.dtype.kind == "b" and min is not None and max is not None:
            implemented("clamp_cpu", self, "")
        return _limited(self, min, max)

    self = lambda g, self, min, max: where(_inside(self, min, max), g, 0)

    def min__max(
        g: Value, self: Value, min: Value | None, max: Value | None, mask: tuple[bool, ...]
    ) -> tuple[Any, Any]:
        """The gradients of clamp's limits: where the result is a limit, that limit gets the gradient."""
        to_low = to_high = None
        if mask[0] and min is not None:
            below = self < min if max is None else (self < min) & (min < max)
            to_low = where(below, g, 0)
        if mask[1] and max is not None:
            above = self > max if min is None else (self > max) | (max < min)
            to_high = where(above, g, 0)
        return to_low, to_high


@function(
    "clamp(Tensor input, Tensor? min=None, Tensor? max=None, *, Tensor? out=None)|inplace",
    "clamp(Tensor input, Scalar? min=None, Scalar? max=None, *, Tensor? out=None)|inplace",
    aliases="clip",
    numpy=np.clip,
    samples="(randn(2,3), -0.5, 0.5); (randn(3), min=0); (randn(3), max=0); "
    "(randn(3), randn(3) - 1, randn(3) + 1)",
    out=lambda input, min, max: "" if Tensor in (type(min), type(max)) else "exact: found",
)
def clamp(input: Tensor, min: Tensor | Number | None, max: Tensor | Number | None) -> Any:
    """The elements, none below `min` nor above `max` (numbers or tensors)."""
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if hasattr(min, "requires_grad") or hasattr(max, "requires_grad"):  # tensors
        return clamp_tensors(input, min, max)
    return clamp_numbers(_meeting(input, min, max), min, max)


def _meeting(input: Tensor, *numbers: Any) -> Any:
    """A tensor, cast to the dtype to which it and numbers promote."""
    own = dtype_of(input)
    if own.kind not in "biu":
        return input
    given = [(dtypes.number_dtype(n), 0) for n in numbers if n is not None]
    return cast(input, dtypes.result_type([(own, 2), *given]))


def _limiting(node: str, switch: Point, **refuses: str) -> Any:
    """A primitive of one limit."""
    return primitive("common pointwise", node=node, refuses=refuses, switch=switch)


_NO_COMPLEX = _NO_COMPLEX_CLAMP["c"]


@_limiting("ClampMinBackward0", _AT_LEAST, c=_NO_COMPLEX, b="clamp_min_scalar_cpu")
class clamp_min_number:
    forward = lambda self, min: above(self, dtypes.checked(min, self.dtype))
    self = lambda g, self, min: where(self >= min, g, 0)


@_limiting("ClampMinBackward1", _AT_LEAST_TENSOR, c="maximum_cpu")
class clamp_min_tensor:
    forward = lambda self, min: above(self, min)
    self = lambda g, self, min: where(self >= min, g, 0)
    min = lambda g, self, min: where(self < min, g, 0)


@_limiting("ClampMaxBackward0", _AT_MOST, c=_NO_COMPLEX, b="clamp_max_scalar_cpu")
class clamp_max_number:
    forward = lambda self, max: below(self, dtypes.checked(max, self.dtype))
    self = lambda g, self, max: where(self <= max, g, 0)


@_limiting("ClampMaxBackward1", _AT_MOST_TENSOR, c="minimum_cpu")
class clamp_max_tensor:
    forward = lambda self, max: below(self, max)
    self = lambda g, self, max: where(self <= max, g, 0)
    max = lambda g, self, max: where(self > max, g, 0)


def _one_limit(name: str, side: str, number: VjpRules, tensor: VjpRules, doc: str) -> Any:
    """`NAME(input, SIDE)`, of a number or a tensor."""

    def limited(input: Tensor, limit: Tensor | Number) -> Any:
        if hasattr(limit, "requires_grad"):
            return tensor(input, limit)
        refuse_if(isinstance(limit, complex), _NO_COMPLEX, error=NotImplementedError)
        return number(_meeting(input, limit), limit)

    return overloads(
        f"{name}(Tensor input, Tensor {side}, *, Tensor? out=None) -> limited",
        f"{name}(Tensor input, Scalar {side}, *, Tensor? out=None) -> limited",
        targets=[limited],
        doc=doc,
        primitives=[number, tensor],
        inplace=True,
        samples=[f"{name}(randn(3), 0.5)", f"{name}(randn(3), randn(3))"],
        out=lambda input, limit: "" if isinstance(limit, Tensor) else "exact: found",
    )


clamp_min = _one_limit(
    "clamp_min", "min", clamp_min_number, clamp_min_tensor, "The elements, none below the limit."
)
clamp_max = _one_limit(
    "clamp_max", "max", clamp_max_number, clamp_max_tensor, "The elements, none above the limit."
)


# -- the larger and the smaller -------------------------------------------------------------------
def _larger(asked: str) -> Point:
    return Point(
        lambda self, other: self == other,
        lambda d_self, d_other: np.maximum(d_self, d_other),
        asked=asked,
    )


def _smaller(asked: str) -> Point:
    return Point(
        lambda self, other: self == other,
        lambda d_self, d_other: np.minimum(d_self, d_other),
        asked=asked,
    )


def _shared(g: Value, loses: Value, ties: Value) -> Any:
    return masked_fill(where(ties, g / 2, g), loses, 0)


@binary(
    kernel=np.maximum,
    node="MaximumBackward0",
    refuses=no_complex("maximum"),
    symbolic="maximum(self, other)",
    switch=_larger("Q3"),
    jet=lambda s, self, other: s.larger(self, other),
    bends=lambda self, other: self == other,
)
class maximum:
    """The larger of two; equal ones share the gradient."""

    self = lambda g, self, other: _shared(g, self < other, self == other)
    other = lambda g, self, other: _shared(g, self > other, self == other)


@binary(
    kernel=np.minimum,
    node="MinimumBackward0",
    refuses=no_complex("minimum"),
    switch=_smaller("K3"),
    jet=lambda s, self, other: s.larger(self, other, True),
    bends=lambda self, other: self == other,
)
class minimum:
    """The smaller of two; equal ones share the gradient."""

    self = lambda g, self, other: _shared(g, self > other, self == other)
    other = lambda g, self, other: _shared(g, self < other, self == other)


@binary(kernel=np.fmax, node="FmaxBackward0", refuses=no_complex("fmax"), switch=_larger("K1"))
class fmax:
    """The larger of two; a number wins over NaN."""

    self = lambda g, self, other: masked_fill(g, ~((self >= other) | np.isnan(other)), 0)
    other = lambda g, self, other: masked_fill(g, (self >= other) | np.isnan(other), 0)


@binary(kernel=np.fmin, node="FminBackward0", refuses=no_complex("fmin"), switch=_smaller("K1b"))
class fmin:
    """The smaller of two; a number wins over NaN."""

    self = lambda g, self, other: masked_fill(g, ~((self <= other) | np.isnan(other)), 0)
    other = lambda g, self, other: masked_fill(g, (self <= other) | np.isnan(other), 0)


# -- two arguments --------------------------------------------------------------------------------
@binary(
    "float inplace",
    kernel=np.arctan2,
    node="Atan2Backward0",
    aliases="arctan2",
    refuses={"c": "atan2_cpu"},
    switch=Several(
        jump(lambda self, other: (self == 0) & (other == 0), "Q11"),
        jump(lambda self, other: (self == 0) & (other < 0)),
    ),
)
class atan2:
    """The angle of the point (other, input)."""

    def self__other(g: Value, self: Any, other: Any, mask: tuple[bool, ...]) -> tuple[Any, Any]:
        if accurate_slopes.is_real(self) and accurate_slopes.is_real(other):
            return (
                g * accurate_slopes.over_squares(other, self) if mask[0] else None,
                g * -accurate_slopes.over_squares(self, other) if mask[1] else None,
            )
        inverse = self * self + other * other
        inverse = masked_fill(np.reciprocal(inverse), inverse == 0, 0)
        return (
            g * other * inverse if mask[0] else None,
            g * minus(self) * inverse if mask[1] else None,
        )


@binary(
    "inplace",
    kernel=np.hypot,
    node="HypotBackward0",
    refuses={"biuc": "hypot_cpu"},
    switch=Point(
        lambda self, other: (self == 0) & (other == 0),
        lambda d_self, d_other: np.hypot(d_self, d_other),
        asked="Q21",
    ),
    jet=lambda s, self, other: s.hypot(self, other),
    critical=lambda result: result == 0,
)
class hypot:
    """sqrt(input**2 + other**2), without overflow."""

    self = lambda g, self, result: g * self / result
    other = lambda g, other, result: g * other / result


@binary(
    "pointwise",
    node="LogaddexpBackward0",
    refuses={"biu": "logaddexp_cpu"},
    jet=lambda s, self, other: s.logaddexp(self, other),
    critical=lambda self, other: abs(self - other) > 12,
)
class logaddexp:
    """log(exp(input) + exp(other))."""

    def forward(self: Array, other: Array) -> Array:
        if self.dtype.kind != "c":
            return np.logaddexp(self, other)
        larger = where(self.real >= other.real, self, other)
        smaller = where(self.real >= other.real, other, self)
        return larger + np.log1p(np.exp(smaller - larger))

    self = lambda g, self, other: g / conj(1 + np.exp(other - self))
    other = lambda g, self, other: g / conj(1 + np.exp(self - other))


@binary(kernel=np.logaddexp2, node="Logaddexp2Backward0", refuses={"biuc": "logaddexp2_cpu"})
class logaddexp2:
    """log2(2**input + 2**other)."""

    self = lambda g, self, other: g / (1 + 2 ** (other - self))
    other = lambda g, self, other: g / (1 + 2 ** (self - other))


# Its sign is that of `self`, so it does not jump at 0.
_FMOD_JUMPS = jump(lambda self, result: (result == 0) & (self != 0))


@primitive(
    "pointwise",
    node="FmodBackward0",
    refuses={"bc": "fmod_cpu"},
    symbolic="fmod(self, other)",
    switch=_FMOD_JUMPS,
)
class fmod_number:
    forward = lambda self, other: np.fmod(self, dtypes.checked(other, self.dtype))
    self = lambda g: g


@primitive(
    "common pointwise",
    node="FmodBackward1",
    refuses={"bc": "fmod_cpu"},
    symbolic="fmod(self, other)",
    switch=_FMOD_JUMPS,
)
class fmod_tensors:
    def forward(self: Array, other: Array) -> Array:
        check_divisor(self, other)
        return np.fmod(self, other)

    self = lambda g: g
    other = lambda g, self, other: -g * _div_trunc(self, other)


def _div_trunc(a: Value, b: Value) -> Any:
    return np.trunc(a / b) if not isinstance(a, Tensor) else div(a, b, rounding_mode="trunc")


@function(
    "fmod(Tensor input, Tensor other, *, Tensor? out=None)|inplace|numpy",
    "fmod(Tensor input, Scalar other, *, Tensor? out=None)|inplace",
    samples="(randn(3), 2); (randn(3), rand(3) + 0.5)",
)
def fmod(input: Tensor, other: Tensor | Number) -> Any:
    """The remainder of C: has the sign of `input`."""
    if isinstance(other, (bool, int, float)) and (other or input.array.dtype.kind in "fc"):
        return fmod_number(_meeting(input, other), other)
    return fmod_tensors(input, other)


_SIGNED = Point(lambda self: self == 0, lambda d_self, other: np.copysign(np.abs(d_self), other))


def _copysign_backward(g: Value, self: Value, result: Value) -> Any:
    return g * masked_fill(result / self, self == 0, 0)


@primitive(
    "float pointwise",
    node="CopysignBackward0",
    refuses={"c": "copysign_cpu"},
    symbolic="copysign(self, other)",
    switch=_SIGNED,
)
class copysign_tensors:
    forward = lambda self, other: np.copysign(self, other)
    self = _copysign_backward
    other = lambda g, result: zeros_like(result)


@primitive(
    "float pointwise",
    node="CopysignBackward1",
    refuses={"c": "copysign_cpu"},
    symbolic="copysign(self, other)",
    switch=_SIGNED,
)
class copysign_number:
    forward = lambda self, other: np.copysign(self, self.dtype.type(other))
    self = _copysign_backward


@function(
    "copysign(Tensor input, Tensor other, *, Tensor? out=None)|inplace|numpy",
    "copysign(Tensor input, Scalar other, *, Tensor? out=None)|inplace",
    samples="(randn(3), randn(3)); (randn(3), -1)",
)
def copysign(input: Tensor, other: Tensor | Number) -> Any:
    """The size of `input` with the sign of `other`."""
    if isinstance(other, (bool, int, float)):
        return copysign_number(input, other)
    return copysign_tensors(input, other)


@operator(
    "inplace float pointwise",
    node="LdexpBackward0",
    samples="(randn(3), tensor([1., 2., 3.]))",
    out="cast: ldexp can't be cast to the desired output type {1}",
)
class ldexp:
    """input * 2**other."""

    def forward(self: Array, other: Array) -> Array:
        return self * np.exp2(other.astype(self.dtype) if other.dtype.kind in "iub" else other)

    self = lambda g, other: (
        g * conj(pow_base(2.0 if getattr(other, "wrapped", False) else 2, other))
    )
    other = lambda g, result: g * conj(result) * LN2


# -- weighted sums --------------------------------------------------------------------------------
@primitive(
    "common pointwise",
    node="LerpBackward0",
    refuses={"biu": "lerp_kernel_scalar"},
    symbolic="self + weight * (end - self)",
)
class lerp_number:
    def forward(self: Array, end: Array, weight: float) -> Array:
        weight = dtypes.checked(weight, self.dtype)
        if np.abs(weight) < 0.5:
            return self + weight * (end - self)
        return end - (end - self) * (1 - weight)

    self = lambda g, weight: g * conj(1 - weight)
    end = lambda g, weight: g * conj(weight)


@primitive(
    "common pointwise",
    node="LerpBackward1",
    refuses={"biu": "lerp_kernel_tensor"},
    symbolic="self + weight * (end - self)",
)
class lerp_tensor:
    def forward(self: Array, end: Array, weight: Array) -> Array:
        step = end - self
        return where(np.abs(weight) < 0.5, self + weight * step, end - step * (1 - weight))

    self = lambda g, weight: g * conj(1 - weight)
    end = lambda g, weight: g * conj(weight)
    weight = lambda g, self, end: g * conj(end - self)


@function(
    "lerp(Tensor input, Tensor end, Tensor weight, *, Tensor? out=None)|inplace",
    "lerp(Tensor input, Tensor end, Scalar weight, *, Tensor? out=None)|inplace",
    samples="(randn(3), randn(3), 0.3); (randn(3), randn(3), rand(3))",
    out=lambda input, end, weight: "exact: found" if isinstance(weight, Tensor) else "",
)
def lerp(input: Tensor, end: Tensor, weight: Tensor | Number) -> Any:
    """input + weight * (end - input)."""
    if isinstance(weight, (int, float, complex)):
        _check_lerp(input, end=end)
        return lerp_number(input, end, weight)
    _check_lerp(input, end=end, **({"weight": weight} if weight.ndim else {}))
    return lerp_tensor(input, end, weight)


def _check_lerp(input: Tensor, **others: Any) -> None:
    """Raise PyTorch's RuntimeError for operands of other dtypes than the first."""
    own = dtype_of(input)
    for name, other in others.items():
        if dtype_of(other) != own:
            wanted, found = (c_type(kind) for kind in (own, dtype_of(other)))
            raise RuntimeError(f"expected dtype {wanted} for `{name}` but got dtype {found}")


@operator(
    "inplace common pointwise",
    node="AddcmulBackward0",
    refuses={"b": "addcmul_cpu_out"},
    samples="(randn(3), randn(3), randn(3), value=2)",
    symbolic="self + value * tensor1 * tensor2",
    signature=(
        (
            "addcmul(Tensor input, Scalar value, Tensor tensor1, Tensor tensor2, *, Tensor "
            "out=None)|deprecated"
        ),
        (
            "addcmul(Tensor input, Tensor tensor1, Tensor tensor2, *, Scalar value=1, Tensor out=None)"
        ),
    ),
)
class addcmul:
    """input + value * tensor1 * tensor2."""

    def forward(self: Array, tensor1: Array, tensor2: Array, *, value: float = 1) -> Array:
        return self + dtypes.checked(value, self.dtype) * tensor1 * tensor2

    self = lambda g: g
    tensor1 = lambda g, tensor2, value: g * conj(tensor2 * value)
    tensor2 = lambda g, tensor1, value: g * conj(tensor1 * value)


@primitive("common pointwise", node="AddcdivBackward0", symbolic="self + value * tensor1 / tensor2")
class addcdiv_:
    def forward(self: Array, tensor1: Array, tensor2: Array, *, value: float = 1) -> Array:
        return self + dtypes.checked(value, self.dtype) * tensor1 / tensor2

    self = lambda g: g

    def tensor1(g: Any, tensor2: Any, value: Any) -> Any:
        if dtype_of(tensor2).kind in "biu":  # a number that meets these would become one: 0.5 is 0
            return g / tensor2 * value
        return g * conj(value / tensor2)

    tensor2 = lambda g, tensor1, tensor2, value: -g * conj(value * tensor1 / (tensor2 * tensor2))


@function(
    "addcdiv(Tensor input, Scalar value, Tensor tensor1, Tensor tensor2, *, Tensor out=None)|deprecated",
    "addcdiv(Tensor input, Tensor tensor1, Tensor tensor2, *, Scalar value=1, Tensor out=None)",
    inplace=True,
    samples="(randn(3), randn(3), rand(3) + 0.5, value=2)",
)
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, value: float) -> Any:
    """input + value * tensor1 / tensor2."""
    if dtype_of(tensor1).kind in "biu" and dtype_of(tensor2).kind in "biu":
        raise RuntimeError(_INTEGER_DIVISION)
    return addcdiv_(input, tensor1, tensor2, value=value)


_INTEGER_DIVISION = (
    "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will "
    "perform a true division of tensor1 and tensor2. The historic addcdiv behavior can be implemented "
    "as (input + value * torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as "
    "(input + value * tensor1 / tensor2) for float inputs. The future addcdiv behavior is just the "
    "latter implementation: (input + value * tensor1 / tensor2), for all dtypes."
)


@operator(
    "float pointwise", node="AngleBackward0", samples="(randn(3)); (randn(3, dtype=complex128))"
)
class angle:
    """The angle of complex numbers; 0 or pi by the sign of real ones."""

    def forward(self: Array) -> Array:
        if self.dtype.kind == "c":
            return np.angle(self)
        turned = where(self < 0, self.dtype.type(pi), self.dtype.type(0))
        return where(np.isnan(self), self, turned)

    def self(g: Value, self: Value) -> Any:
        if not is_complex(self):
            return zeros_like(g)
        size = self.real**2 + self.imag**2
        return masked_fill(g * (1j * self / size), size == 0.0, 0)


@function("isreal(Tensor input)", samples="(randn(3))")
def isreal(input: Tensor) -> Any:
    """True where the imaginary part is 0."""
    if is_complex(input):
        return input.imag == 0
    made = empty_as(input.array, np.dtype(np.bool_))
    made[...] = True
    return wrap(made)


# -- angles, NaN, tests ---------------------------------------------------------------------------
@unary(
    node="Deg2RadBackward0",
    refuses={"c": (RuntimeError, "deg2rad is not supported for complex tensors.")},
)
class deg2rad:
    """Degrees to radians."""

    forward = lambda self: self * (pi / 180)
    self = lambda g: g * (pi / 180)


@unary(
    node="Rad2DegBackward0",
    refuses={"c": (RuntimeError, "rad2deg is not supported for complex tensors.")},
)
class rad2deg:
    """Radians to degrees."""

    forward = lambda self: self * (180 / pi)
    self = lambda g: g * (180 / pi)


@operator(
    "elementwise inplace",
    node="NanToNumBackward0",
    refuses={"C": "nan_to_num"},
    samples="(tensor([1.0, nan, inf]))",
    signature="nan_to_num(Tensor input, float? nan=None, float? posinf=None, float? "
    "neginf=None, *, Tensor out=None)",
    out="exact: nan_to_num: dtype of out: {1} should be same as input: {0}",
)
class nan_to_num:
    """NaN and infinities replaced by numbers."""

    def forward(
        self: Array,
        nan: float | None = None,
        posinf: float | None = None,
        neginf: float | None = None,
    ) -> Array:
        return np.nan_to_num(self, nan=nan or 0.0, posinf=posinf, neginf=neginf)

    self = lambda g, self: g * np.isfinite(self)


def _test(ufunc: np.ufunc, name: str, doc: str, *signature: str) -> Any:
    body = type(name, (), {"__doc__": doc, "__module__": __name__})
    sample = f"{name}(tensor([1.0, nan, inf]))"
    words = {"c": "signbit is not implemented for complex tensors."} if name == "signbit" else None
    facts: Any = {"params": "self", "refuses": words, "signature": signature}
    facts["out"] = "only ?: {name} does not support non-boolean outputs."
    return operator(kernel=ufunc, samples=(sample,), **facts)(body)


isnan = _test(np.isnan, "isnan", "True where NaN.", "isnan(Tensor input)")
isinf = _test(np.isinf, "isinf", "True where infinite.", "isinf(Tensor input)")
isfinite = _test(
    np.isfinite, "isfinite", "True where neither infinite nor NaN.", "isfinite(Tensor input)"
)
signbit = _test(np.signbit, "signbit", "True where the sign bit is set.")


def _infinite(sign: int) -> Any:
    def kernel(self: Array) -> Array:
        return np.isinf(self) & ((self > 0) if sign > 0 else (self < 0))

    return kernel


@operator(
    "pointwise",
    kernel=_infinite(1),
    refuses={"c": (RuntimeError, "isposinf does not support complex inputs.")},
    samples="(tensor([1.0, inf]))",
    out="only ?: {name} does not support non-boolean outputs.",
)
class isposinf:
    """True where +infinity."""


@operator(
    "pointwise",
    kernel=_infinite(-1),
    refuses={"c": (RuntimeError, "isneginf does not support complex inputs.")},
    samples="(tensor([1.0, -inf]))",
    out="only ?: {name} does not support non-boolean outputs.",
)
class isneginf:
    """True where -infinity."""


@function("is_tensor(Any obj)|python|function", samples="(randn(3))")
def is_tensor(obj: Any) -> bool:
    """True for tensors."""
    return isinstance(obj, Tensor)


@function("is_inference(Tensor input)", samples="(randn(3))")
def is_inference(input: Tensor) -> bool:
    """True for tensors that were made in inference mode."""
    return bool(input.inference)


@function("numel(Tensor input)|function", samples="(randn(2,3))")
def numel(input: Tensor) -> int:
    """The number of elements."""
    return int(input.array.size)


@function("is_complex(Tensor input)|function", samples="(randn(3))")
def is_complex_tensor(input: Tensor) -> bool:
    """True for the complex dtypes."""
    return bool(input.array.dtype.kind == "c")


@function("is_floating_point(Tensor input)|function", samples="(randn(3))")
def is_floating_point(input: Tensor) -> bool:
    """True for the real floating dtypes."""
    return bool(input.array.dtype.kind == "f")


@function("is_nonzero(Tensor input)", samples="(tensor([2.0]))")
def is_nonzero(input: Tensor) -> bool:
    """True where the one element is not zero."""
    return bool(input)


@function(
    "isclose(Tensor input, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False)",
    samples="(tensor([1.0, 2.0]), tensor([1.0, 2.1]))",
)
def isclose(input: Tensor, other: Tensor, rtol: float, atol: float, equal_nan: bool) -> Any:
    """True where equal within atol + rtol * |other|."""
    return wrap(_close(input, other, rtol, atol, equal_nan))


@function(
    "allclose(Tensor input, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False)",
    samples="(tensor([1.0]), tensor([1.0]))",
)
def allclose(input: Tensor, other: Tensor, rtol: float, atol: float, equal_nan: bool) -> bool:
    """True where all elements are close: see `isclose`."""
    return bool(_close(input, other, rtol, atol, equal_nan).all())


def _close(input: Tensor, other: Tensor, rtol: float, atol: float, equal_nan: bool) -> Any:
    """Which elements are close; the bound is computed in the dtype of the elements, as PyTorch's."""
    a, b, rtol, atol = input.array, other.array, float(rtol), float(atol)
    if a.dtype != b.dtype:
        raise RuntimeError(f"{scalar_name(a)} did not match {scalar_name(b)}")
    for bound, value in (("rtol", rtol), ("atol", atol)):
        if not value >= 0:
            raise RuntimeError(f"{bound} must be greater than or equal to zero, but got {value:g}")
    if (error := mismatch([a.shape, b.shape])) is not None:
        raise error
    close = a == b if is_batched([a, b]) else np.asarray(a == b)
    if equal_nan and a.dtype.kind in "fc":
        close = close | (np.isnan(a) & np.isnan(b))
    if rtol == 0 and atol == 0:
        return close
    if a.dtype.kind in "biu":
        default = dtypes.get_default_dtype().dtype
        a, b = a.astype(default), b.astype(default)
    with np.errstate(invalid="ignore", over="ignore"):
        allowed, actual = atol + np.abs(rtol * b), np.abs(a - b)
        return close | (np.isfinite(actual) & (actual <= allowed))


@function("equal(Tensor input, Tensor other)", samples="(tensor([1.0]), tensor([1.0]))")
def equal(input: Tensor, other: Tensor) -> bool:
    """True where shape and all elements are equal."""
    return bool(np.array_equal(input.array, other.array))


@function("positive(Tensor input)", samples="(randn(3))")
def positive(input: Tensor) -> Any:
    """The tensor itself."""
    refuse_if(input.array.dtype.kind == "b", "The `+` operator, on a bool tensor is not supported.")
    return input


@primitive("pointwise", node="NotImplemented")
class heaviside_:
    def forward(self: Array, values: Array) -> Array:
        # NumPy's heaviside of NaN is NaN, PyTorch's 0.
        one = self.dtype.type(1)
        return where(self == 0, values, where(self > 0, one, self.dtype.type(0)))

    self = lambda g: g
    values = lambda g: g


@function(
    "heaviside(Tensor input, Tensor values, *, Tensor? out=None)|inplace",
    samples="(randn(3), zeros(3))",
    out=(
        "only efdg?bBhHiIlLqQ: heaviside is not yet implemented for complex tensors."
        " & exact: heaviside is not yet implemented for tensors with different dtypes."
    ),
)
def heaviside(input: Tensor, values: Tensor) -> Any:
    """0 where negative, 1 where positive, `values` at 0."""
    if "c" in (dtype_of(input).kind, dtype_of(values).kind):
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if dtype_of(input) != dtype_of(values):
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    return heaviside_(input, values)


# -- products with logarithms ---------------------------------------------------------------------
def log_rows(log: np.ufunc, name: str, node: str, refused: str) -> list[Any]:
    """What makes primitives of `self * log(other)`, 0 where self is 0: of tensors, of a number, by
    a number."""

    def product(self: Any, other: Any) -> Any:
        # Numbers take the dtype of the operand that is a tensor.
        if is_python_number(self):
            self = dtypes.checked(self, other.dtype)
        if is_python_number(other):
            other = dtypes.checked(other, self.dtype)
        elif other.dtype != self.dtype:  # in the rule, of an operand of another dtype
            other = other.astype(self.dtype)
        with np.errstate(all="ignore"):
            made = self * log(other)
        zero = (self == 0) & np.logical_not(np.isnan(other))
        return where(zero, made.dtype.type(0), made)

    def of_tensors(self: Array, other: Array) -> Array:
        return product(self, other)

    def of_number(self: float, other: Array) -> Array:
        return product(self, other)

    def by_number(self: Array, other: Any) -> Array:
        return product(self, other)

    kernels: tuple[Callable[..., Any], ...] = (of_tensors, of_number, by_number)
    return [
        primitive(
            kernel=kernel,
            node=f"{node}Backward{i}",
            types="float",
            refuses={"c": refused},
            batching="elementwise",
            symbolic=f"{name}(self, other)",
        )
        for i, kernel in enumerate(kernels)
    ]


_xlogy, _xlogy_of, _xlogy_by = log_rows(np.log, "xlogy", "Xlogy", "xlogy_cpu")


@_xlogy
class xlogy_tensors:
    self = lambda g, self, other: masked_fill(
        xlogy_tensors(g, other), (self == 0.0) & (other <= 0.0), 0.0
    )
    other = lambda g, self, other: g * self / other


@_xlogy_of
class xlogy_of:
    other = lambda g, self, other: g * self / other


@_xlogy_by
class xlogy_by:
    self = lambda g, self, other: (
        xlogy_by(g, other) if other > 0.0 else masked_fill(xlogy_by(g, other), self == 0.0, 0.0)
    )


@function(
    "xlogy(Tensor input, Tensor other, *, Tensor out=None)|inplace",
    "xlogy(Scalar self, Tensor other, *, Tensor out=None)|inplace",
    "xlogy(Tensor input, Scalar other, *, Tensor out=None)|inplace",
    aliases="special.xlogy",
    samples="(rand(3), rand(3) + 0.5); (2, rand(3) + 0.5); (rand(3), 2)",
)
def xlogy(input: Tensor | Number, other: Tensor | Number) -> Any:
    """input * log(other), 0 where input is 0."""
    if isinstance(input, (int, float)):
        return xlogy_of(input, other)
    return (xlogy_by if isinstance(other, (int, float)) else xlogy_tensors)(input, other)
