"""Activation functions of `torch.nn.functional`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import pi, sqrt
from typing import Any

import numpy as np

from gradcli.engine.core import random
from gradcli.engine.core.declaration import Array, Value, itself
from gradcli.engine.core.primitive import VjpRules
from gradcli.engine.core.switch import Corner, Point, Several, jump
from gradcli.engine.core.tensor import Tensor, wrap, wrap_dim
from gradcli.engine.core.views import inplace as overwritten
from gradcli.engine.registry.derivative_pairs import PIECEWISE, pair, passing
from gradcli.engine.registry.rule_helpers import (
    above,
    below,
    cat,
    implemented,
    in_single,
    narrow,
    refuse_if,
    unrecorded,
    where,
    zeros_like,
)
from gradcli.engine.registry.schema import Python
from gradcli.engine.registry.table import Primitive, function, operator, primitive
from gradcli.engine.system.array_memory import afresh
from gradcli.engine.system.dtypes import scalar_name
from gradcli.operators.nn.normal_distribution import distribution, erf, gelu_slope, gelu_values
from gradcli.operators.primitives import accurate_slopes
from gradcli.operators.primitives.elementwise import relu as relu_p
from gradcli.operators.primitives.elementwise import sigmoid, threshold_backward
from gradcli.operators.primitives.elementwise import silu as silu_p

FAMILY = "nn"

_ANY = ("(randn(2,3))", "(randn(()))", "(randn(0))")


NUMBERS = "biuc"  # the kinds of dtypes that kernels of floats refuse


def activation(
    kernel: Callable[..., Any], node: str, refuses: str = "", kinds: str = NUMBERS, **facts: Any
) -> Any:
    """A primitive of one tensor and options, behind a function of `nn.functional`.

    refuses: the name of PyTorch's kernel, which is not implemented for these kinds of dtypes.
    """
    facts["refuses"] = {kinds: refuses} if refuses else None
    return operator(
        kernel=kernel, node=node, linearity="elementwise", types="own", public=False, **facts
    )


def sloped(
    name: str,
    node: str,
    kernel: Callable[..., Any],
    kernel_backward: Callable[..., Any],
    backward: dict[str, Any] = PIECEWISE,
    *,
    refuses: str | dict[str, Any],
    **facts: Any,
) -> Primitive:
    """The primitive of an activation, behind that of its derivative; refuses: as for `activation`,
    or in full."""
    refused = {NUMBERS: refuses} if isinstance(refuses, str) else refuses
    facts = {"linearity": "elementwise", "types": "own", "batching": "elementwise"} | facts
    return pair(name, node, kernel, kernel_backward, backward, refuses=refused, **facts)


def rectifier(
    signature: str,
    primitive: VjpRules,
    doc: str,
    *,
    written: VjpRules = None,
    constants: tuple[float, ...] = (),
    alone: bool = False,
    python: Python = True,
    samples: tuple[str, ...] = _ANY,
) -> None:
    """Enter `nn.functional.NAME`: a primitive behind a signature to which `inplace` is added.

    written: the primitive recorded where it overwrites its input. constants: the primitive's
    options that are not
    among the arguments. alone: there is a `torch.NAME`, of that signature. python: looks at the values
    first. samples: their arguments.
    """

    def call(input: Tensor, *options: Any) -> Any:
        if options[-1]:
            return overwritten(written or primitive, input, *options[:-1], *constants)
        return primitive(input, *options[:-1], *constants)

    public = signature.lstrip("_")
    call.__name__ = public.partition("(")[0]
    call.__doc__ = doc
    name = f"nn.functional.{call.__name__}"
    head, arrow, operator = signature.partition(" -> ")
    function(
        f"{head[:-1]}, Any inplace=False){arrow}{operator}",
        name=name,
        method=False,
        primitives=[primitive] if written is None else [primitive, written],
        samples=[name + s for s in samples],
        python=python,
    )(call)
    if alone:

        def plain(input: Tensor, *options: Any) -> Any:
            return primitive(input, *options, *constants)

        plain.__name__, plain.__doc__ = call.__name__, doc
        function(public, method=False, primitives=[primitive], samples=[name + s for s in samples])(
            plain
        )


def overwriting(
    signature: str,
    primitive: VjpRules,
    *,
    constants: tuple[float, ...] = (),
    options: str = "",
    short: bool = True,
) -> None:
    """Enter `nn.functional.NAME_`, which writes a primitive over its input; options: of its sample."""

    def call(input: Tensor, *options: Any) -> Any:
        return overwritten(primitive, input, *options, *constants)

    call.__name__ = signature.partition("(")[0]
    call.__doc__ = f"In-place form of `{call.__name__[:-1]}`."
    name = f"nn.functional.{call.__name__}"
    sample = f"mul({name}(randn(2,3){options}), 1)"
    function(signature, name=name, method=False, short=short, samples=[sample])(call)


def backward_p(facts: str = "", **more: Any) -> Callable[[type], Primitive]:
    """A decorator: the primitive of a derivative that PyTorch has as an operator of its own."""
    return primitive(f"own pointwise saves_all {facts}", **more)


# -- clipped lines --------------------------------------------------------------------------------
def _check_limits(input: Any, min_val: Any, max_val: Any, inplace: Any) -> None:
    refuse_if(min_val > max_val, "min_val cannot be greater than max_val", error=ValueError)


def _hardtanh(self: Array, min_val: float = -1.0, max_val: float = 1.0) -> Array:
    kind = self.dtype.type
    if self.dtype.kind == "u" and (int(min_val) < 0 or int(max_val) < 0):
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    return below(above(self, kind(min_val)), kind(max_val))


def _hardtanh_backward(grad_output: Array, self: Array, min_val: float, max_val: float) -> Array:
    return where((self <= min_val) | (self >= max_val), 0, grad_output)


def _asked_of_limit(which: str) -> Any:
    """What is recorded of hardtanh itself, and of relu6, which is it with other limits."""
    known = {(-1, 1): f"K4{which}", (0, 6): f"K8{which}"}
    return lambda min_val, max_val: known.get((min_val, max_val), "")


hardtanh_p = sloped(
    "hardtanh_p",
    "Hardtanh",
    _hardtanh,
    _hardtanh_backward,
    slope="where((self > min_val) & (self < max_val), grad_output, 0)",
    symbolic="nn.functional.hardtanh:",
    switch=Several(
        Corner(lambda self, min_val: self == min_val, 0, 1, _asked_of_limit("")),
        Corner(lambda self, max_val: self == max_val, 1, 0, _asked_of_limit("b")),
    ),
    refuses={
        "b": (RuntimeError, "Bool inputs not supported for hardtanh"),
        "c": "clamp is not supported for complex types",
    },
)
rectifier(
    "hardtanh(Tensor input, Scalar min_val=-1.0, Scalar max_val=1.0)",
    hardtanh_p,
    "The elements, held between two numbers.",
    python=_check_limits,
    samples=("(randn(2,3))", "(randn(3), -0.5, 0.7)"),
)
overwriting("hardtanh_(Tensor input, Scalar min_val=-1, Scalar max_val=1)", hardtanh_p)

rectifier(
    "relu6(Tensor input)",
    hardtanh_p,
    "The elements, held between 0 and 6.",
    constants=(0, 6),
    samples=("(4 * randn(2,3))",),
)


def _asked_of_leak(negative_slope: float) -> str:
    return "K5" if negative_slope == 0.01 else ""  # an answer is a slope, which is that of the leak


def _leaky_relu(self: Array, negative_slope: float = 0.01) -> Array:
    return where(self > 0, self, self * negative_slope)


def _leaky_relu_backward(grad_output: Array, self: Array, negative_slope: float) -> Array:
    return where(self > 0, grad_output, grad_output * negative_slope)


_LEAK = Corner(lambda self: self == 0, lambda negative_slope: negative_slope, 1, _asked_of_leak)
leaky_relu_p = sloped(
    "leaky_relu_p",
    "LeakyRelu",
    _leaky_relu,
    _leaky_relu_backward,
    slope="grad_output * where(self > 0, 1, negative_slope)",
    symbolic="nn.functional.leaky_relu: negative_slope",
    switch=_LEAK,
    refuses="leaky_relu_cpu",
)
leaky_relu_backward = leaky_relu_p.vjps["self"]


@activation(_leaky_relu, "LeakyReluBackward1", "leaky_relu_cpu", switch=_LEAK)
class leaky_relu_written:
    self = lambda g, result, negative_slope: leaky_relu_backward(g, result, negative_slope)


rectifier(
    "leaky_relu(Tensor input, Scalar negative_slope=0.01)",
    leaky_relu_p,
    "The elements, negative ones scaled down.",
    written=leaky_relu_written,
    samples=(*_ANY, "(randn(3), 0.2)"),
)
overwriting("leaky_relu_(Tensor input, Scalar negative_slope=0.01)", leaky_relu_written)


def _threshold(self: Array, threshold: float, value: float) -> Array:
    return where(self <= threshold, self.dtype.type(value), self)


_STEP = Several(
    Corner(lambda self, threshold, value: (self == threshold) & (threshold == value), 0, 1),
    jump(lambda self, threshold, value: (self == threshold) & (threshold != value)),
)


@activation(
    _threshold,
    "ThresholdBackward0",
    "threshold_cpu",
    "bc",
    symbolic="nn.functional.threshold: threshold value",
    switch=_STEP,
)
class threshold_p:
    self = threshold_backward


@activation(_threshold, "ThresholdBackward1", "threshold_cpu", "bc", writes="shared", switch=_STEP)
class threshold_written:
    self = threshold_backward


rectifier(
    "_threshold(Tensor input, Scalar threshold, Scalar value) -> threshold",
    threshold_p,
    "The elements above a threshold, another number elsewhere.",
    written=threshold_written,
    alone=True,
    samples=("(randn(2,3), 0.1, 20.0)",),
)
overwriting(
    "threshold_(Tensor input, Scalar threshold, Scalar value)",
    threshold_written,
    options=", 0.1, 20.0",
    short=False,
)

rectifier("relu(Tensor input)", relu_p, "The elements, negative ones replaced by 0.")
overwriting("relu_(Tensor input)", relu_p, short=False)


# -- shrinking ------------------------------------------------------------------------------------
def _hardshrink(self: Array, lambd: float = 0.5) -> Array:
    return where((self >= -lambd) & (self <= lambd), 0, self)


def _shrink_backward(grad_output: Array, self: Array, lambd: float) -> Array:
    return where((self >= -lambd) & (self <= lambd), 0, grad_output)


_NOT_SMALL = "where((self >= -lambd) & (self <= lambd), 0, grad_output)"

hardshrink = sloped(
    "hardshrink",
    "Hardshrink",
    _hardshrink,
    _shrink_backward,
    slope=_NOT_SMALL,
    refuses="hardshrink_cpu",
    switch=jump(lambda self, lambd: np.abs(self) == lambd),
    public=True,
    doc="The elements, those between -lambd and lambd replaced by 0.",
    signature="nn.functional.hardshrink(Tensor input, Scalar lambd=0.5, *, Tensor? out=None)",
    method=True,
    aliases="hardshrink",
    samples="(randn(2,3)); hardshrink(randn(3), 0.3)",
    out="exact: found",
)


def _softshrink(self: Array, lambd: float = 0.5) -> Array:
    if lambd < 0:
        kind = scalar_name(self)
        raise RuntimeError(
            f"lambda must be in range [0, {np.finfo(self.dtype).max:g}] for input dtype {kind}, but "
            f"found {float(lambd):g}"
        )
    return where(self > lambd, self - lambd, where(self < -lambd, self + lambd, self * 0))


softshrink = sloped(
    "softshrink",
    "Softshrink",
    _softshrink,
    _shrink_backward,
    slope=_NOT_SMALL,
    refuses="softshrink_check",
    switch=Several(
        Corner(lambda self, lambd: self == -lambd, 1, 0),
        Corner(lambda self, lambd: self == lambd, 0, 1),
    ),
    public=True,
    doc="The elements, moved towards 0 by lambd.",
    signature="nn.functional.softshrink(Tensor input, Scalar lambd=0.5, *, Tensor? out=None)",
    samples="(randn(2,3)); (randn(3), 0.2)",
    out="exact: found",
)


# -- exponential rectifiers -----------------------------------------------------------------------
def _elu(self: Array, alpha: float = 1.0, scale: float = 1, input_scale: float = 1) -> Array:
    low = np.expm1(np.minimum(self, 0) * input_scale) * (alpha * scale)
    return where(self < 0, low, self * scale)


@backward_p(
    node="EluBackwardBackward0",
    symbolic="grad_output * where(self_or_result > 0, scale, "
    "exp(input_scale * self_or_result) * alpha * scale * input_scale)",
)
class elu_backward:
    def forward(
        grad_output: Array, alpha: float, scale: float, input_scale: float, self_or_result: Array
    ) -> Array:
        slope = np.exp(np.minimum(self_or_result, 0) * input_scale) * (alpha * scale * input_scale)
        # nan: as above 0
        return where(self_or_result <= 0, grad_output * slope, grad_output * scale)

    grad_output = itself
    self_or_result = lambda g, grad_output, alpha, scale, input_scale, self_or_result: where(
        self_or_result < 0,
        elu_backward(g * grad_output * input_scale, alpha, scale, input_scale, self_or_result),
        0.0,
    )


# With the default alpha there is none.
_ELU = Corner(
    lambda self: self == 0,
    lambda alpha, scale, input_scale: alpha * scale * input_scale,
    lambda scale: scale,
    # An answer is a slope, which is that of its alpha.
    lambda alpha, scale, input_scale: "K9" if (alpha, scale, input_scale) == (2, 1, 1) else "",
)


@activation(_elu, "EluBackward0", "elu_cpu", symbolic="elu", switch=_ELU)
class elu_p:
    self = lambda g, self, alpha, scale, input_scale: elu_backward(
        g, alpha, scale, input_scale, self
    )


@backward_p(node="EluBackwardBackward0")
class elu_result_backward:
    def forward(
        grad_output: Array, alpha: float, scale: Any, input_scale: float, self_or_result: Array
    ) -> Array:
        slope = (self_or_result + alpha * scale) * input_scale
        return where(self_or_result <= 0, grad_output * slope, grad_output * scale)

    grad_output = itself
    self_or_result = lambda g, grad_output, input_scale, self_or_result: where(
        self_or_result < 0, g * grad_output * input_scale, 0.0
    )


@activation(_elu, "EluBackward1", "elu_cpu", switch=_ELU)
class elu_written:
    self = lambda g, result, alpha, scale, input_scale: elu_result_backward(
        g, alpha, scale, input_scale, result
    )


rectifier(
    "elu(Tensor input, Scalar alpha=1.0)",
    elu_p,
    "The elements, negative ones as alpha * (exp(x) - 1).",
    written=elu_written,
    constants=(1, 1),
    samples=("(randn(2,3))", "(randn(3), 0.5)"),
)
overwriting("elu_(Tensor input, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1)", elu_written)

_SELU = (1.6732632423543772, 1.0507009873554805, 1)
rectifier(
    "selu(Tensor input)",
    elu_p,
    "`elu` with the constants that keep mean and variance.",
    written=elu_written,
    constants=_SELU,
    alone=True,
    samples=("(randn(2,3))",),
)
overwriting("selu_(Tensor input)", elu_written, constants=_SELU, short=False)


def _celu(self: Array, alpha: float = 1.0) -> Array:
    refuse_if(alpha == 0, "ZeroDivisionError: alpha cannot be 0 for CELU")
    return _elu(self, alpha, 1, 1 / alpha)


@activation(_celu, "CeluBackward0", "elu_cpu", symbolic="nn.functional.celu: alpha")
class celu_p:
    self = lambda g, self, alpha: elu_backward(g, alpha, 1, 1.0 / alpha, self)


@activation(_celu, "CeluBackward1", "elu_cpu")
class celu_written:
    self = lambda g, result, alpha: elu_result_backward(g, alpha, 1, 1.0 / alpha, result)


rectifier(
    "celu(Tensor input, Scalar alpha=1.0)",
    celu_p,
    "The elements, negative ones as alpha * (exp(x / alpha) - 1).",
    written=celu_written,
    alone=True,
    samples=(*_ANY, "(randn(3), 0.5)"),
)
overwriting("celu_(Tensor input, Scalar alpha=1.0)", celu_written, short=False)


# -- smooth rectifiers ----------------------------------------------------------------------------
@in_single
def _gelu(self: Array, approximate: str = "none") -> Array:
    if approximate == "tanh":
        inner = sqrt(2 / pi) * (self + 0.044715 * self * self * self)
        return 0.5 * self * (1 + np.tanh(inner))
    refuse_if(approximate != "none", "approximate argument must be either none or tanh.")
    return gelu_values(self)


def _gelu_backward(grad_output: Array, self: Array, approximate: str = "none") -> Array:
    if approximate == "tanh":
        inner = sqrt(2 / pi) * (self + 0.044715 * self * self * self)
        tanh = np.tanh(inner)
        slope = sqrt(2 / pi) * (1 + 3 * 0.044715 * self * self)
        return grad_output * (0.5 * (1 + tanh) + 0.5 * self * (1 - tanh * tanh) * slope)
    if not accurate_slopes.as_stated:
        return grad_output * gelu_slope(self)
    cdf = 0.5 * (1 + erf(self * sqrt(0.5)))  # cancels in the tail, as PyTorch's
    pdf = np.exp(-0.5 * self * self) / sqrt(2 * pi)
    return grad_output * (cdf + self * pdf)


def _gelu_double_backward(g: Value, grad_output: Value, self: Value, approximate: str) -> Any:
    if approximate == "tanh":
        c, k = sqrt(2 / pi), 0.044715
        tanh = np.tanh(c * (self + k * self * self * self))
        sech = 1 - tanh * tanh
        slope = c * (1 + 3 * k * self * self)
        bend = sech * slope + 0.5 * self * (
            -2 * tanh * sech * slope * slope + sech * 6 * c * k * self
        )
        return g * grad_output * bend
    pdf = np.exp(-0.5 * self * self) / sqrt(2 * pi)
    return g * grad_output * pdf * (2 - self * self)


def _gelu_series(s: Any, self: Any, approximate: str) -> Any:
    """How power series go through gelu, with its tail."""
    if approximate == "tanh":
        inner = (self + self * self * self * 0.044715) * (2 * sqrt(2 / pi))
        return self * s.sigmoid(inner)
    density = s.exp(self * self * -0.5) / sqrt(2 * pi)
    return self * s.integral(self, distribution, density)


_CURVE = "tanh(sqrt(2 / pi) * (self + 0.044715 * self ** 3))"
_OF_CURVE = f"sqrt(2 / pi) * (1 + 0.134145 * self ** 2) * (1 - {_CURVE} ** 2)"
_NORMAL = "(1 + erf(self / sqrt(2))) / 2 + self * exp(-self ** 2 / 2) / sqrt(2 * pi)"
gelu = sloped(
    "gelu",
    "Gelu",
    _gelu,
    _gelu_backward,
    {"grad_output": itself, "self": _gelu_double_backward},
    slope=f"grad_output * ((1 + {_CURVE} + self * {_OF_CURVE}) / 2 if approximate == 'tanh' else {_NORMAL})",
    refuses="GeluKernelImpl",
    public=True,
    doc="input times the normal distribution function of input.",
    jet=_gelu_series,
    signature="nn.functional.gelu(Tensor input, *, str approximate='none', Tensor? out=None)",
    samples="(randn(2,3)); (randn(())); (randn(3), approximate='tanh')",
    out="exact: found",
)


def _mish(self: Array) -> Array:
    return self * np.tanh(np.logaddexp(self, 0))


def _mish_backward(g: Value, self: Value) -> Any:
    s = sigmoid(self)
    t = np.tanh(np.logaddexp(self, 0) if unrecorded(self) else np.log1p(np.exp(self)))
    return g * (t + self * s * (1 - t * t))


@activation(
    _mish,
    "MishBackward0",
    "mish_cpu",
    symbolic="nn.functional.mish:",
    jet=lambda s, self: self * s.tanh(s.softplus(self)),
    critical=lambda self: abs(self) > 6,
)
class mish_p:
    self = _mish_backward


rectifier("silu(Tensor input)", silu_p, "input * sigmoid(input).")
rectifier("mish(Tensor input)", mish_p, "input * tanh(softplus(input)).")


def _log_sigmoid(self: Array) -> tuple[Array, Array]:
    buffer = np.exp(-np.abs(self))
    return afresh(np.minimum(self, 0) - np.log1p(buffer), self), afresh(buffer, self)


def _log_sigmoid_backward(grad_output: Array, self: Array, buffer: Array) -> Array:
    below = self < 0
    part = buffer / (1 + buffer)
    return grad_output * (where(below, 1, 0) - where(below, part, -part))


def _log_sigmoid_bend(g: Value, grad_output: Value, self: Value, buffer: Value) -> Any:
    return -(g * grad_output) * ((1 - sigmoid(self)) * sigmoid(self))


log_sigmoid_p = sloped(
    "log_sigmoid_p",
    "LogSigmoid",
    _log_sigmoid,
    _log_sigmoid_backward,
    {"grad_output": itself, "self": _log_sigmoid_bend},
    slope="grad_output * sigmoid(-self)",
    symbolic="logsigmoid",
    refuses="log_sigmoid_cpu",
    linearity=None,
    outputs="output | buffer",
    jet=lambda s, self: (-s.softplus(-self), s.exp(-s.absolute(self))),
    critical=lambda self: abs(self) > 12,
)


@function(
    "log_sigmoid(Tensor input, *, Tensor? out=None)",
    name="nn.functional.logsigmoid",
    samples="(randn(2,3))",
    overlap="any any",
    out="exact: expected scalar type {0} but found {1}",
)
def logsigmoid(input: Tensor) -> Any:
    """log(sigmoid(input))."""
    return log_sigmoid_p(input)[0]


# -- piecewise sigmoids ---------------------------------------------------------------------------
def _hardsigmoid(self: Array) -> Array:
    return np.minimum(np.maximum(self + 3, 0), 6) / 6


def _hardsigmoid_backward(grad_output: Array, self: Array) -> Array:
    return where((self > -3) & (self < 3), grad_output * _SIXTH, 0)


_SIXTH = float(np.float32(1) / np.float32(6))  # PyTorch's constant is of single precision


hardsigmoid_p = sloped(
    "hardsigmoid_p",
    "Hardsigmoid",
    _hardsigmoid,
    _hardsigmoid_backward,
    slope="where((self > -3) & (self < 3), grad_output / 6, 0)",
    slope_node="NotImplemented",
    symbolic="nn.functional.hardsigmoid:",
    switch=Several(
        Corner(lambda self: self == -3, 0, 1 / 6, "K6"),
        Corner(lambda self: self == 3, 1 / 6, 0, "K6b"),
    ),
    refuses="hardsigmoid_cpu",
)
rectifier("hardsigmoid(Tensor input)", hardsigmoid_p, "A straight line from 0 at -3 to 1 at 3.")


@in_single
def _hardswish(self: Array) -> Array:
    return self * np.minimum(np.maximum(self + 3, 0), 6) / 6


def _hardswish_backward(grad_output: Array, self: Array) -> Array:
    inner = grad_output * (self / 3 + 0.5)
    return where(self <= -3, 0, where(self < 3, inner, grad_output))


def _hardswish_bend(g: Value, grad_output: Value, self: Value) -> Any:
    return where((self > -3.0) & (self < 3.0), g * grad_output / 3.0, 0.0)


hardswish_p = sloped(
    "hardswish_p",
    "Hardswish",
    _hardswish,
    _hardswish_backward,
    {"grad_output": itself, "self": _hardswish_bend},
    slope="grad_output * where(self <= -3, 0, where(self < 3, self / 3 + 1 / 2, 1))",
    symbolic="nn.functional.hardswish:",
    switch=Several(
        Corner(lambda self: self == -3, 0, -0.5, "K7"),
        Corner(lambda self: self == 3, 1.5, 1, "K7b"),
    ),
    refuses="hardswish_cpu",
)
rectifier("hardswish(Tensor input)", hardswish_p, "input * hardsigmoid(input).")


# -- composites -----------------------------------------------------------------------------------
@function("nn.functional.softsign(Tensor input)|python", samples="(randn(2,3))")
def softsign(input: Tensor) -> Any:
    """input / (1 + |input|)."""
    return input / (input.abs() + 1)


@function("nn.functional.tanhshrink(Tensor input)|python", samples="(randn(2,3))")
def tanhshrink(input: Tensor) -> Any:
    """input - tanh(input)."""
    return input - input.tanh()


# -- gates ----------------------------------------------------------------------------------------
def _halves(x: Value, dim: int) -> tuple[Any, Any]:
    half = x.shape[dim] // 2
    return narrow(x, dim, 0, half), narrow(x, dim, half, half)


@backward_p("along", node="GluBackwardBackward0")
class glu_backward:
    def forward(grad_output: Array, self: Array, dim: int) -> Array:
        a, b = _halves(self, dim)
        s = 1 / (1 + np.exp(-b))
        return np.concatenate([grad_output * s, grad_output * a * s * (1 - s)], dim)

    def grad_output(g: Value, self: Value, dim: int) -> Any:
        (a, b), (g_a, g_b) = _halves(self, dim), _halves(g, dim)
        s = sigmoid(b)
        return g_a * s + g_b * a * s * (1 - s)

    def self(g: Value, grad_output: Value, self: Value, dim: int) -> Any:
        (a, b), (g_a, g_b) = _halves(self, dim), _halves(g, dim)
        s = sigmoid(b)
        bend = s * (1 - s)
        second = g_a * grad_output * bend + g_b * grad_output * a * bend * (1 - 2 * s)
        return cat([g_b * grad_output * bend, second], dim)


@operator(
    node="GluBackward0",
    signature="nn.functional.glu(Tensor input, int dim=-1)|python -> glu(input, dim)",
    samples="(randn(2,4)); (randn(4,3), 0)",
)
class glu:
    """One half of the input times the sigmoid of the other."""

    def forward(self: Array, dim: int = -1) -> Array:
        refuse_if(self.ndim == 0, "glu does not support scalars because halving size must be even")
        at = wrap_dim(dim, self.ndim)
        if self.shape[at] % 2:
            raise RuntimeError(
                f"Halving dimension must be even, but dimension {at} is size {self.shape[at]}"
            )
        implemented("glu_cpu", self, "efd")
        a, b = _halves(self, at)
        return a / (1 + np.exp(-b))

    self = glu_backward


@backward_p(node="PreluKernelBackwardBackward0", outputs="grad_input grad_weight")
class prelu_backward:
    def forward(grad_output: Array, self: Array, weight: Array) -> tuple[Array, Array]:
        above = self > 0
        return where(above, grad_output, weight * grad_output), where(above, 0, self * grad_output)

    def grad_output(grads: Sequence[Value], self: Value, weight: Value) -> Any:
        total = None
        if grads[0] is not None:
            total = where(self >= 0, grads[0], weight * grads[0])
        if grads[1] is not None:
            part = where(self >= 0, 0.0, self * grads[1])
            total = part if total is None else total + part
        return total

    self = lambda grads, grad_output, self: (
        zeros_like(self) if grads[1] is None else where(self >= 0, 0.0, grad_output * grads[1])
    )
    weight = lambda grads, grad_output, self: (
        zeros_like(self) if grads[0] is None else where(self >= 0, 0.0, grad_output * grads[0])
    )


@primitive(
    "own pointwise",
    node="PreluKernelBackward0",
    refuses={NUMBERS: "prelu_cpu"},
    switch=Point(
        lambda self: self == 0,
        lambda d_self, weight: where(d_self > 0, d_self, weight * d_self),
    ),
)
class prelu_kernel:
    forward = lambda self, weight: where(self > 0, self, weight * self)
    self__weight = prelu_backward


@function(
    "nn.functional.prelu(Tensor input, Tensor weight)",
    method=True,
    aliases="prelu",
    samples="(randn(2,3), rand(1)); (randn(2,3,2), rand(3))",
)
def prelu(input: Tensor, weight: Tensor) -> Any:
    """The elements, negative ones scaled by a learnt weight."""
    if input.dtype != weight.dtype:
        raise RuntimeError(
            f"prelu: Type promoting not supported. Got {scalar_name(input)} and {scalar_name(weight)}"
        )
    ndim, count = input.ndim, weight.numel() if isinstance(weight, Tensor) else weight.size
    if count != 1:
        refuse_if(ndim == 0, "Not allow zero-dim input tensor.")
        channels = input.shape[1] if ndim >= 2 else 1
        if channels != count:
            raise RuntimeError(
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{count} and channel size = {channels}."
            )
    if weight.ndim > 1:
        raise RuntimeError(
            f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}"
        )
    if weight.ndim != ndim:
        shape = [1] * ndim
        if ndim > 1:
            shape[1] = count
        weight = weight.reshape(*shape) if shape else weight.reshape(())
    return prelu_kernel(input, weight)


def _rrelu(
    self: Array, noise: Array, lower: float = 0.125, upper: float = 1 / 3, training: bool = False
) -> Array:
    if training:
        return afresh(where(self <= 0, self * noise, self), self)
    return afresh(_leaky_relu(self, (lower + upper) / 2), self)


def _rrelu_backward(
    g: Value, self: Value, noise: Value, lower: float, upper: float, training: bool
) -> Any:
    if training and upper - lower > 1e-6:
        return g * noise
    return leaky_relu_backward(g, self, (lower + upper) / 2)


def _rrelu_p(name: str, node: str, rule: Callable[..., Any]) -> Primitive:
    facts: dict[str, Any] = {"refuses": {NUMBERS: "leaky_relu_cpu"}, "batching": "elementwise"}
    facts["own_order"] = True
    body = type(name, (), {"self": rule, "__module__": __name__})
    return operator(kernel=_rrelu, node=node, types="own", public=False, **facts)(body)


rrelu_p = _rrelu_p("rrelu_p", "RreluWithNoiseBackward0", _rrelu_backward)
rrelu_written = _rrelu_p(
    "rrelu_written",
    "RreluWithNoiseBackward1",
    passing(_rrelu_backward, "result noise lower upper training"),
)


_RRELU = "Tensor input, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False"


def _rectified(
    input: Tensor, lower: float, upper: float, training: bool, generator: Any, inplace: bool
) -> Any:
    """The elements, negative ones scaled by random slopes (in training) or their mean."""
    refuse_if(lower > upper, "Lower bound should be less than or equal to the upper bound")
    array = input.array
    noise = np.empty(array.shape, array.dtype)
    if training:
        flat, out = np.ravel(array), np.ones(array.size, array.dtype)
        below = flat <= 0
        count = int(below.sum())
        out[below] = random.uniform((count,), np.dtype(np.float64), lower, upper, generator)
        noise = out.reshape(array.shape)
    options = (wrap(noise), lower, upper, training)
    return overwritten(rrelu_written, input, *options) if inplace else rrelu_p(input, *options)


@function(
    f"nn.functional.rrelu({_RRELU}, Any inplace=False)|python",
    primitives=[rrelu_p, rrelu_written],
    samples=["nn.functional.rrelu(randn(2,3))"],
)
def rrelu(input: Tensor, lower: float, upper: float, training: bool, inplace: bool) -> Any:
    """The elements, negative ones scaled by random slopes (in training) or their mean."""
    return _rectified(input, lower, upper, training, None, inplace)


@function(
    f"rrelu({_RRELU}, Generator? generator=None)|function",
    primitives=[rrelu_p],
    samples=["nn.functional.rrelu(randn(2,3))"],
    name="rrelu",
)
def rrelu_drawn(input: Tensor, lower: float, upper: float, training: bool, generator: Any) -> Any:
    """As `nn.functional.rrelu`, with a generator of one's own."""
    return _rectified(input, lower, upper, training, generator, False)


@function(
    f"nn.functional.rrelu_({_RRELU}, Generator? generator=None)",
    short=False,
    samples="mul(nn.functional.rrelu_(randn(2,3)), 1)",
)
def rrelu_written_over(
    input: Tensor, lower: float, upper: float, training: bool, generator: Any
) -> Any:
    """In-place form of `rrelu`."""
    return _rectified(input, lower, upper, training, generator, True)
