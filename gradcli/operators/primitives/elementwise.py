"""Functions of one or two numbers, element by element."""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import Any

import numpy as np

from gradcli.engine.core.batched_arrays import BatchedArray, anywhere, is_batched
from gradcli.engine.core.declaration import Array, Number, Value, itself
from gradcli.engine.core.primitive import VjpRules
from gradcli.engine.core.promotion import mismatch
from gradcli.engine.core.switch import SMOOTH, Corner, Point, Several, edge, jump
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.engine.core.views import inplace
from gradcli.engine.registry.rule_helpers import (
    above,
    below,
    conj,
    constant,
    data,
    dtype_of,
    implemented,
    in_single,
    is_complex,
    is_python_number,
    masked_fill,
    minus,
    refuse_if,
    where,
    zeros_like,
)
from gradcli.engine.registry.table import Primitive, function, operator, overloads, primitive
from gradcli.engine.system import dtypes
from gradcli.engine.system.array_memory import ARRAYS, donated, in_parts
from gradcli.engine.system.dtypes import c_type, scalar_name
from gradcli.operators.movement.casting import cast
from gradcli.operators.movement.strides import empty_as
from gradcli.operators.primitives import accurate_slopes
from gradcli.operators.primitives.arithmetic import check_divisor, div, pow_base

ANY = "(randn(2,3)); (randn(())); (randn(1)); (randn(0))"
_POSITIVE = "(rand(2,3) + 0.5); (rand(()) + 0.5); (rand(1) + 0.5); (rand(0))"
_UNIT = "(rand(2,3) - 0.5); (rand(()) - 0.5); (rand(1) - 0.5); (rand(0))"
_PAIRS = (
    "(randn(3), randn(3)); (randn(3,1), randn(4)); (randn(()), randn(2,3)); "
    "(randn(0), randn(0)); (randn(1), randn(2,3))"
)


def unary(facts: str = "", *, samples: str = ANY, **more: Any) -> Callable[[type], Primitive]:
    """A decorator: the elementwise operator of one argument with these VJP rules."""
    return operator(f"elementwise float inplace {facts}", samples=samples, **more)


def binary(facts: str = "", **more: Any) -> Callable[[type], Primitive]:
    """A decorator: the operator of two arguments with these VJP rules, element by element."""
    return operator(f"common {facts}", samples=_PAIRS, **more)


def _no_complex(name: str) -> dict[str, Any]:
    return {"c": (RuntimeError, f"{name} not implemented for complex tensors.")}


# -- exponentials and logarithms ------------------------------------------------------------------
@unary(
    "analytic",
    kernel=np.exp,
    node="ExpBackward0",
    real={"self": "g * result"},
    jet=lambda s, self: s.exp(self),
)
class exp:
    """e to the power of the elements."""

    self = lambda g, result: g * conj(result)


@unary("analytic", kernel=np.exp2, node="Exp2Backward0", aliases="special.exp2")
class exp2:
    """2 to the power of the elements."""

    self = lambda g, result: g * conj(result) * _LN2


@unary(
    "analytic",
    kernel=np.expm1,
    node="Expm1Backward0",
    aliases="special.expm1",
    jet=lambda s, self: s.expm1(self),
    critical=lambda self: self < -6,
)
class expm1:
    """exp(input) - 1, exact near 0."""

    self = lambda g, result: g * (conj(result) + 1)


_LN2 = 0.6931471805599453
_LN10 = 2.3025850929940456


@unary(
    "analytic",
    kernel=np.log,
    node="LogBackward0",
    samples=_POSITIVE,
    real={"self": "g / self"},
    jet=lambda s, self: s.log(self),
)
class log:
    """The natural logarithm."""

    self = lambda g, self: g / conj(self)


@unary(
    "analytic",
    kernel=np.log2,
    node="Log2Backward0",
    samples=_POSITIVE,
    jet=lambda s, self: s.log(self) / 0.6931471805599453,
)
class log2:
    """The logarithm to the base 2."""

    self = lambda g, self: g / (conj(self) * _LN2)


@unary(
    "analytic",
    kernel=np.log10,
    node="Log10Backward0",
    samples=_POSITIVE,
    jet=lambda s, self: s.log(self) / 2.302585092994046,
)
class log10:
    """The logarithm to the base 10."""

    self = lambda g, self: g / (conj(self) * _LN10)


@unary(
    "analytic",
    kernel=np.log1p,
    node="Log1PBackward0",
    samples=_POSITIVE,
    aliases="special.log1p",
    jet=lambda s, self: s.log1p(self),
)
class log1p:
    """log(1 + input), exact near 0."""

    self = lambda g, self: g / conj(self + 1)


# -- roots ----------------------------------------------------------------------------------------
@unary(
    "analytic",
    kernel=np.sqrt,
    node="SqrtBackward0",
    samples=_POSITIVE,
    switch=edge(lambda self: self == 0, "Q2"),
    jet=lambda s, self: s.power(self, 0.5),
    critical=lambda self: self == 0,
)
class sqrt:
    """The square root."""

    self = lambda g, result: g / (2 * conj(result))


@unary(
    "analytic", node="RsqrtBackward0", samples=_POSITIVE, jet=lambda s, self: s.power(self, -0.5)
)
class rsqrt:
    """1 / sqrt(input)."""

    forward = lambda self: 1 / np.sqrt(self)
    self = lambda g, result: -0.5 * g * conj(result**3)


# -- circular and hyperbolic functions ------------------------------------------------------------
@unary(
    "analytic",
    kernel=np.sin,
    node="SinBackward0",
    real={"self": "g * np.cos(self)"},
    jet=lambda s, self: s.sin(self),
)
class sin:
    """The sine."""

    self = lambda g, self: g * conj(np.cos(self))


@unary(
    "analytic",
    kernel=np.cos,
    node="CosBackward0",
    real={"self": "g * -np.sin(self)"},
    jet=lambda s, self: s.cos(self),
)
class cos:
    """The cosine."""

    self = lambda g, self: g * -conj(np.sin(self))


@unary("analytic", kernel=np.tan, node="TanBackward0", jet=lambda s, self: s.tan(self))
class tan:
    """The tangent."""

    self = lambda g, result: g * conj(1 + result**2)


@unary(
    kernel=np.arcsin,
    node="AsinBackward0",
    samples=_UNIT,
    aliases="arcsin",
    switch=edge(lambda self: np.abs(self) == 1, "K15"),
)
class asin:
    """The inverse sine."""

    self = lambda g, self: (
        g / np.sqrt(accurate_slopes.circle(self))
        if accurate_slopes.is_real(self)
        else g * conj(rsqrt(-self * self + 1))
    )


@unary(
    kernel=np.arccos,
    node="AcosBackward0",
    samples=_UNIT,
    aliases="arccos",
    switch=edge(lambda self: np.abs(self) == 1, "Q20"),
)
class acos:
    """The inverse cosine."""

    self = lambda g, self: (
        -g / np.sqrt(accurate_slopes.circle(self))
        if accurate_slopes.is_real(self)
        else g * -conj(rsqrt(-self * self + 1))
    )


@unary(kernel=np.arctan, node="AtanBackward0", aliases="arctan")
class atan:
    """The inverse tangent."""

    self = lambda g, self: g / conj(self * self + 1)


@unary("analytic", kernel=np.sinh, node="SinhBackward0", jet=lambda s, self: s.sinh(self))
class sinh:
    """The hyperbolic sine."""

    self = lambda g, self: g * conj(np.cosh(self))


@unary("analytic", kernel=np.cosh, node="CoshBackward0", jet=lambda s, self: s.cosh(self))
class cosh:
    """The hyperbolic cosine."""

    self = lambda g, self: g * conj(np.sinh(self))


@unary(
    "donates analytic",
    kernel=np.tanh,
    node="TanhBackward0",
    aliases="nn.functional.tanh",
    jet=lambda s, self: s.tanh(self),
    critical=lambda self: abs(self) > 6,
)
class tanh:
    """The hyperbolic tangent."""

    self = lambda g, result: tanh_backward(g, result)


def _tanh_slope(grad_output: Array, output: Array, out: Array | None = None) -> Array:
    squares = conj(output * output)
    slope = donated(np.subtract, squares, 1, squares)
    return grad_output * slope if out is None else np.multiply(grad_output, slope, out=out)


@primitive(
    "pointwise saves_all",
    node="TanhBackwardBackward0",
    symbolic="grad_output * (1 - output * output)",
)
class tanh_backward:
    forward = lambda grad_output, output: in_parts(_tanh_slope, grad_output, output)
    grad_output = lambda g, output: tanh_backward(g, conj(output))
    output = lambda g, output, grad_output: conj(g) * (-2 * conj(output) * grad_output)


@unary(kernel=np.arcsinh, node="AsinhBackward0", aliases="arcsinh")
class asinh:
    """The inverse hyperbolic sine."""

    self = lambda g, self: (
        g * accurate_slopes.asinh_slope(self)
        if accurate_slopes.is_real(self)
        else g * conj(rsqrt(self**2 + 1))
    )


@unary(
    kernel=np.arccosh,
    node="AcoshBackward0",
    samples="(rand(2,3) + 1.5); (rand(()) + 1.5); (rand(0))",
    aliases="arccosh",
    switch=edge(lambda self: self == 1),
)
class acosh:
    """The inverse hyperbolic cosine."""

    self = lambda g, self: (
        g * accurate_slopes.acosh_slope(self)
        if accurate_slopes.is_real(self)
        else g * conj(rsqrt(self + 1) * rsqrt(self - 1))
        if is_complex(self)
        else g * rsqrt(self * self - 1)
    )


@unary(
    kernel=np.arctanh,
    node="AtanhBackward0",
    samples=_UNIT,
    aliases="arctanh",
    switch=edge(lambda self: np.abs(self) == 1, "Q20b"),
)
class atanh:
    """The inverse hyperbolic tangent."""

    self = lambda g, self: (
        g / accurate_slopes.circle(self)
        if accurate_slopes.is_real(self)
        else g * 1 / conj(1 - self**2)
    )


def _underivable(of: VjpRules, old: str) -> None:
    """`NAME_` of a function whose in-place form PyTorch cannot differentiate."""
    name = of.name

    def rule(g: Value) -> Any:
        raise NotImplementedError(
            f"the derivative for 'inplace version of {name}' is not implemented."
        )

    facts: dict[str, Any] = {"types": "float", "params": "self", "batching": "elementwise"}
    body = type(f"{name}_written", (), {"self": rule})
    made = primitive(kernel=of.kernel, node=f"{name.capitalize()}Backward1", **facts)(body)

    def write(input: Tensor) -> Any:
        return inplace(made, input)

    write.__doc__ = f"In-place form of `{name}`; has no derivative."
    write.__module__ = __name__
    sample = f"(rand(3) + {1 if name == 'acosh' else 0}).{name}_()"
    facts = {"aliases": f"{old}_", "primitives": [made], "samples": [sample]}
    function(f"{name}_(Tensor input)", name=f"{name}_", **facts)(write)


_underivable(acosh, "arccosh")
_underivable(asinh, "arcsinh")
_underivable(atanh, "arctanh")


def _sinc_far(g: Value, self: Value) -> Any:
    product = pi * self
    square = product * self
    slope = g * conj((product * np.cos(product) - np.sin(product)) / square)
    return where(square == 0.0, 0.0, slope)


@unary(
    node="SincBackward0",
    aliases="special.sinc",
    switch=Point(lambda self: self == 0, kind=SMOOTH, asked="Q19"),
    jet=lambda s, self: s.sinc(self),
    critical=lambda self: abs(self) < 1e-3,
)
class sinc:
    """sin(pi x) / (pi x), 1 at 0."""

    @in_single
    def forward(self: Array) -> Array:
        # np.sinc in ufuncs, which run on whole columns where they are recorded.
        product = pi * self
        smallest = 1e-20 if is_complex(self) else float(np.finfo(product.dtype).eps)
        product = where(product == 0.0, smallest, product)
        return np.sin(product) / product

    def self(g: Value, self: Value) -> Any:
        if accurate_slopes.is_real(self):
            return where(self == 0.0, 0.0, g * accurate_slopes.sinc_slope(self))
        plain = isinstance(data(self), (BatchedArray, *ARRAYS))  # else it is to be read as a text
        if accurate_slopes.as_stated or is_complex(self):
            return _sinc_far(g, self)
        if not plain:  # a few terms, up to where the difference of sin and cos has 12 digits
            return where(
                np.abs(self) < 0.01, g * accurate_slopes.sinc_terms(self), _sinc_far(g, self)
            )
        near = np.abs(data(self)) < 1 / pi
        if not anywhere(near):
            return _sinc_far(g, self)
        # In a recorded pass these terms are differentiated again, where they cancel all the more.
        mask = constant(near, self)
        slope = accurate_slopes.sinc_series(where(mask, self, 0.0))
        return where(mask, g * slope, _sinc_far(g, where(mask, 1.0, self)))


# -- sigmoids and rectifiers ----------------------------------------------------------------------
@unary(
    "donates analytic",
    node="SigmoidBackward0",
    aliases="special.expit nn.functional.sigmoid",
    jet=lambda s, self: s.sigmoid(self),
    critical=lambda self: abs(self) > 12,
)
class sigmoid:
    """1 / (1 + exp(-input))."""

    forward = lambda self: 1 / (1 + np.exp(-self))
    self = lambda g, result: sigmoid_backward(g, result)


def _sigmoid_slope(grad_output: Array, output: Array, out: Any = None) -> Array:
    rest = 1 - output
    slope = conj(donated(np.multiply, rest, rest, output))
    return grad_output * slope if out is None else np.multiply(grad_output, slope, out=out)


@primitive(
    "pointwise saves_all",
    node="SigmoidBackwardBackward0",
    symbolic="grad_output * output * (1 - output)",
)
class sigmoid_backward:
    forward = lambda grad_output, output: in_parts(_sigmoid_slope, grad_output, output)
    grad_output = lambda g, output: sigmoid_backward(g, conj(output))
    output = lambda g, output, grad_output: conj(g) * grad_output * (-2 * conj(output) + 1)


@unary(
    "common",
    node="ReluBackward0",
    refuses={
        "b": (RuntimeError, "Boolean inputs not supported for relu"),
        "c": "clamp is not supported for complex types",
    },
    signature="relu(Tensor input)",
    switch=Corner(lambda self: self == 0, 0, 1, "Q5b"),
    jet=lambda s, self: s.larger(self, 0.0),
    bends=lambda self: self == 0,
)
class relu:
    """The elements, negative ones replaced by 0."""

    forward = lambda self: above(self, 0)
    self = lambda g, result: threshold_backward(g, result, 0)


@primitive(
    "pointwise saves_all",
    node="ThresholdBackwardBackward0",
    symbolic="where(self > threshold, grad_output, 0)",
    switch=jump(lambda self, threshold: self == threshold),
)
class threshold_backward:
    def forward(grad_output: Array, self: Array, threshold: float) -> Array:
        return where(self <= threshold, grad_output.dtype.type(0), grad_output)

    grad_output = itself
    self = zeros_like


def _softplus_double_backward(g: Value, self: Value, beta: float, threshold: float) -> Any:
    x = self * beta
    return masked_fill(sigmoid_backward(g, sigmoid(x)) * beta, x >= threshold, 0)


@primitive(
    "pointwise saves_all",
    node="SoftplusBackwardBackward0",
    symbolic="slope of softplus",
    jet=lambda s, grad_output, self, beta: grad_output * s.sigmoid(self * float(beta)),
)
class softplus_backward:
    """`grad_output * sigmoid(beta * self)`."""

    def forward(grad_output: Array, self: Array, beta: float, threshold: float) -> Array:
        scaled = self * beta
        z = np.exp(np.minimum(scaled, threshold))
        return where(scaled > threshold, grad_output, grad_output * z / (z + 1))

    grad_output = itself
    self = lambda g, grad_output, self, beta, threshold: _softplus_double_backward(
        g * grad_output, self, beta, threshold
    )


@unary(
    "own function",
    node="SoftplusBackward0",
    name="nn.functional.softplus",
    aliases="softplus",
    refuses={"biuc": "softplus_cpu"},
    signature="softplus(Tensor input, Scalar beta=1, Scalar threshold=20, *, Tensor out=None)",
    jet=lambda s, self, beta: s.softplus(self, float(beta)),
    critical=lambda self, beta: abs(self * beta) > 12,
    out="exact: found",
)
class softplus:
    """log(1 + exp(beta * input)) / beta; linear above the threshold."""

    def forward(self: Array, beta: float = 1, threshold: float = 20) -> Array:
        scaled = self * beta
        return where(
            scaled > threshold, self, np.log1p(np.exp(np.minimum(scaled, threshold))) / beta
        )

    self = softplus_backward


@unary(
    "own function",
    node="SiluBackward0",
    name="silu",
    refuses={"biu": "silu_cpu", "C": "silu"},
    jet=lambda s, self: self * s.sigmoid(self),
    critical=lambda self: abs(self) > 12,
)
class silu:
    """input * sigmoid(input)."""

    forward = lambda self: self / (1 + np.exp(-self))

    def self(g: Value, self: Value) -> Any:
        """`g * sigmoid(self) * (1 + self * (1 - sigmoid(self)))`."""
        s = sigmoid(self)
        return g * s * (1 + self * (1 - s))


# -- signs and rounding ---------------------------------------------------------------------------
@unary(
    "common",
    kernel=np.abs,
    node="AbsBackward0",
    aliases="absolute",
    refuses={"b": "abs_cpu"},
    switch=Corner(lambda self: self == 0, -1, 1, "Q1"),
    jet=lambda s, self: s.absolute(self),
    bends=lambda self: self == 0,
    out="exact: found",
)
class abs:
    """The absolute value; its slope at 0 is 0."""

    self = lambda g, self: g * sgn(self)


def _sign(self: Array) -> Array:
    if self.dtype.kind == "b":
        return self.copy()
    signs = np.sign(self)
    # PyTorch's sign of NaN is 0.
    return where(np.isnan(self), signs.dtype.type(0), signs) if self.dtype.kind == "f" else signs


@unary(
    "common",
    node="SgnBackward0",
    switch=jump(lambda self: self == 0),
    jet=lambda s, self: s.constant(self, s.sign(self)),
    out="exact: found",
)
class sgn:
    """The sign; for complex numbers the unit number of the same angle."""

    def forward(self: Array) -> Array:
        if self.dtype.kind != "c":
            return _sign(self)
        size = np.abs(self)
        return where(size == 0, 0, self / where(size == 0, 1, size))

    def self(g: Value, self: Value, result: Value) -> Any:
        if not is_complex(self):
            return zeros_like(g)
        size = np.abs(self)
        return masked_fill((g / size - (g * conj(result)).real * result / size), size == 0.0, 0)


def _still(
    kernel: Callable[..., Any],
    node: str,
    name: str,
    doc: str,
    numpy: np.ufunc,
    switch: Point,
    aliases: str = "",
) -> Any:
    """A step function: its derivative is zero. switch: where its steps are."""
    body = type(name, (), {"__doc__": doc, "__module__": __name__, "self": zeros_like})
    refuses = {"b": f"{name}_vml_cpu", "c": f"{name} is not supported for complex inputs"}
    if name == "sign":
        refuses = {"c": _SIGN_REFUSAL}
    facts: dict[str, Any] = {"types": "common", "numpy": numpy, "aliases": aliases}
    jet = lambda s, self: s.whole(self, numpy)
    facts |= {"refuses": refuses, "switch": switch, "jet": jet}
    return unary(kernel=kernel, node=node, out="exact: found", **facts)(body)


_SIGN_REFUSAL = (
    "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn "
    "instead."
)


def _keeping_integers(ufunc: np.ufunc) -> Any:
    def kernel(self: Array) -> Array:
        return ufunc(self) if self.dtype.kind in "fc" else self

    return kernel


def _rounding(ufunc: np.ufunc, node: str, doc: str, switch: Point, aliases: str = "") -> Any:
    kernel = _keeping_integers(ufunc)
    return _still(kernel, node, ufunc.__name__, doc, ufunc, switch, aliases)


sign = _still(
    _sign, "SignBackward0", "sign", "-1, 0 or 1 by the sign.", np.sign,
    jump(lambda self: self == 0, "Q13"),
)  # fmt: skip
floor = _rounding(
    np.floor, "FloorBackward0", "Rounded down.", jump(lambda self, result: self == result, "Q13b")
)
ceil = _rounding(
    np.ceil, "CeilBackward0", "Rounded up.", jump(lambda self, result: self == result, "K14b")
)
trunc = _rounding(
    np.trunc,
    "TruncBackward0",
    "Rounded to 0.",
    jump(lambda self, result: (self == result) & (self != 0), "K14"),
    "fix",
)


@primitive(
    "common pointwise",
    kernel=_keeping_integers(np.rint),
    node="RoundBackward0",
    numpy=np.rint,
    refuses={"bc": "round_vml_cpu"},
    symbolic="round(self)",
    switch=jump(lambda self, result: np.abs(self - result) == 0.5, "Q13c"),
)
class round_whole:
    self = zeros_like


@primitive("pointwise", node="RoundBackward1", refuses={"biuc": "round_cpu"})
class round_to:
    def forward(self: Array, decimals: int) -> Array:
        scale = 10.0 ** (decimals if decimals > 0 else -decimals)
        if decimals > 0:
            return np.rint(self * scale) / scale
        return np.rint(self / scale) * scale

    self = zeros_like


@function(
    "round(Tensor input, *, Tensor? out=None)|inplace",
    "round(Tensor input, *, int decimals, Tensor? out=None)|inplace",
    aliases="special.round",
    forms=("special.round(Tensor input, *, int decimals=0, Tensor? out=None)",),
    samples="(randn(2,3)); (randn(3), decimals=1)",
    out="exact: found",
)
def round(input: Tensor, decimals: int = 0) -> Any:
    """Rounded to the nearest; halves to the even number."""
    return round_to(input, decimals) if decimals else round_whole(input)


@unary(
    "common",
    node="FracBackward0",
    refuses={"biuc": "frac_cpu"},
    switch=jump(lambda self, result: (result == 0) & (self != 0)),
    out="exact: found",
)
class frac:
    """What is behind the decimal point, with the sign."""

    forward = lambda self: self - np.trunc(self)
    self = lambda g: g


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
    refuses=_no_complex("maximum"),
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
    refuses=_no_complex("minimum"),
    switch=_smaller("K3"),
    jet=lambda s, self, other: s.larger(self, other, True),
    bends=lambda self, other: self == other,
)
class minimum:
    """The smaller of two; equal ones share the gradient."""

    self = lambda g, self, other: _shared(g, self > other, self == other)
    other = lambda g, self, other: _shared(g, self < other, self == other)


@binary(kernel=np.fmax, node="FmaxBackward0", refuses=_no_complex("fmax"), switch=_larger("K1"))
class fmax:
    """The larger of two; a number wins over NaN."""

    self = lambda g, self, other: masked_fill(g, ~((self >= other) | np.isnan(other)), 0)
    other = lambda g, self, other: masked_fill(g, (self >= other) | np.isnan(other), 0)


@binary(kernel=np.fmin, node="FminBackward0", refuses=_no_complex("fmin"), switch=_smaller("K1b"))
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
    other = lambda g, result: g * conj(result) * _LN2


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
