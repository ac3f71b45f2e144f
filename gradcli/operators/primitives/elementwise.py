"""Functions of one number, element by element."""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import Any

import numpy as np

from gradcli.engine.core.batched_arrays import BatchedArray, anywhere
from gradcli.engine.core.declaration import Array, Value, itself
from gradcli.engine.core.primitive import VjpRules
from gradcli.engine.core.switch import SMOOTH, Corner, Point, edge, jump
from gradcli.engine.core.tensor import Tensor
from gradcli.engine.core.views import inplace
from gradcli.engine.registry.rule_helpers import (
    above,
    conj,
    constant,
    data,
    in_single,
    is_complex,
    masked_fill,
    where,
    zeros_like,
)
from gradcli.engine.registry.table import Primitive, function, operator, primitive
from gradcli.engine.system.array_memory import ARRAYS, donated, in_parts
from gradcli.operators.primitives import accurate_slopes

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


def no_complex(name: str) -> dict[str, Any]:
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

    self = lambda g, result: g * conj(result) * LN2


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


LN2 = 0.6931471805599453
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

    self = lambda g, self: g / (conj(self) * LN2)


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
    return sigmoid_backward(g, sigmoid(x)) * (x < threshold) * beta  # as PyTorch's: NaN stays NaN


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
