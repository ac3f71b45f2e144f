"""Sums, products, quotients, powers, comparisons and logic, and Python's operators for them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.engine.core import basic_primitives, modes
from gradcli.engine.core.basic_primitives import factor, is_one, meeting
from gradcli.engine.core.declaration import Array, Number, Value
from gradcli.engine.core.primitive import VjpRules
from gradcli.engine.core.promotion import BOOL_OPERAND, mismatch
from gradcli.engine.core.switch import CHOICE, SMOOTH, Point, Several, edge, jump
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.engine.registry.rule_helpers import (
    MINUS_BOOL,
    cast,
    conj,
    dtype_of,
    is_complex,
    refuse_if,
    where,
    zeros_like,
)
from gradcli.engine.registry.table import (
    Primitive,
    binary_method,
    function,
    is_operand,
    operator,
    primitive,
    register,
)
from gradcli.engine.system import dtypes
from gradcli.engine.system.array_memory import afresh
from gradcli.engine.system.dtypes import scalar_name
from gradcli.engine.system.threads import applied

_PAIR = "(randn(3), randn(3)); (randn(3,1), randn(4)); (randn(()), randn(2,3))"
_PAIRS = f"{_PAIR}; (randn(2,3), 2); (randn(0), randn(0)); (randn(1), randn(2,3))"


# -- kernels --------------------------------------------------------------------------------------
TWO_BOOLS = (
    "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
    "`logical_xor()` operator instead."
)


def _scaled(g: Value, alpha: float) -> Any:
    return g if alpha == 1 else g * alpha


# -- primitives -----------------------------------------------------------------------------------
add = register(
    basic_primitives.add,
    __name__,
    inplace=True,
    numpy=np.add,
    samples=f"{_PAIRS}; (randn(3), randn(3), alpha=2)",
    signature=(
        "add(Tensor input, Scalar alpha, Tensor other, *, Tensor out=None)|deprecated",
        "add(Tensor input, Tensor other, *, Scalar alpha=1, Tensor out=None)",
    ),
)


@operator(
    "linear wide inplace numbers pointwise",
    node="SubBackward0",
    plain="-",
    real={"other": "-g if alpha == 1 else -g * alpha"},
    types="numbers",
    refuses={"b": (RuntimeError, TWO_BOOLS)},
    numpy=np.subtract,
    aliases="subtract",
    forms=(
        "subtract(Tensor input, Tensor other, *, Scalar alpha=1, Tensor out=None)",
        "subtract(Tensor input, Scalar other, Scalar alpha=1)",
    ),
    samples=f"{_PAIRS}; (randn(3), randn(3), alpha=2)",
    symbolic="minus",
    signature=(
        "sub(Tensor input, Scalar alpha, Tensor other, *, Tensor out=None)|deprecated",
        "sub(Tensor input, Tensor other, *, Scalar alpha=1, Tensor out=None)",
    ),
    jet=lambda s, self, other, alpha: self - s.scaled(other, alpha),
)
class sub:
    """Difference, `input - alpha * other`."""

    def forward(self: Array, other: Array, *, alpha: float = 1) -> Array:
        if is_one(alpha):
            return applied(np.subtract, self, other)
        return self - factor(alpha, self.dtype) * other

    self = lambda g: g
    other = lambda g, alpha: _scaled(-g, alpha)


# Not linear in the sense of `linearity`: the tangent does not follow by the same kernel.
_SHIFT: Any = {"linearity": "elementwise", "types": "own", "analytic": True}


@primitive(
    node="AddBackward1",
    **_SHIFT,
    scalar_of=add,
    symbolic="plus",
    jet=lambda s, self, other, alpha: self + float(other * alpha),
)
class add_scalar:
    def forward(self: Array, other: float, *, alpha: Any = 1) -> Array:
        return meeting(self, other) + other * alpha

    self = lambda g: g


@primitive(
    node="SubBackward1",
    **_SHIFT,
    scalar_of=sub,
    symbolic="minus",
    jet=lambda s, self, other, alpha: self - float(other * alpha),
)
class sub_scalar:
    def forward(self: Array, other: float, *, alpha: Any = 1) -> Array:
        return meeting(self, other) - other * alpha

    self = lambda g: g


@primitive(
    node="RsubBackward1",
    **_SHIFT,
    samples="2 - randn(3)",
    symbolic="other - alpha * self",
    jet=lambda s, self, other, alpha: float(other) - s.scaled(self, alpha),
)
class rsub_scalar:
    def forward(self: Array, other: Number, *, alpha: Any = 1) -> Array:
        bools = self.dtype.kind == "b", type(other) is bool
        if any(bools):
            raise RuntimeError(TWO_BOOLS if all(bools) else BOOL_OPERAND)
        self = meeting(self, other)
        wide = np.dtype(np.float32) if self.dtype == np.float16 else self.dtype
        other = dtypes.constant(other, wide)
        difference = other - self if is_one(alpha) else other - factor(alpha, self.dtype) * self
        return difference.astype(self.dtype, copy=False)

    self = lambda g, alpha: -_scaled(g, alpha)


@primitive(
    "linear wide pointwise",
    node="RsubBackward0",
    types="numbers",
    refuses={"b": (RuntimeError, TWO_BOOLS)},
    symbolic="other - alpha * self",
    jet=lambda s, self, other, alpha: other - s.scaled(self, alpha),
)
class rsub_tensor:
    def forward(self: Array, other: Array, *, alpha: Any = 1) -> Array:
        return other - self if is_one(alpha) else other - factor(alpha, self.dtype) * self

    self = lambda g, alpha: -_scaled(g, alpha)
    other = lambda g: g


mul = register(
    basic_primitives.mul,
    __name__,
    inplace=True,
    aliases="multiply",
    forms=(
        "multiply(Tensor input, Tensor other, *, Tensor out=None)",
        "multiply(Tensor input, Scalar other)",
    ),
    samples=_PAIRS,
)
mul_scalar = basic_primitives.mul_scalar


@primitive(
    "elementwise wide float analytic",
    kernel=np.divide,
    node="DivBackward0",
    real={"self": "g / other", "other": "-g * ((self / other) / other)"},
    symbolic="self / other",
    jet=lambda s, self, other: s.divided(self, other),
    critical=lambda self, other: (abs(other) < 1e-3) & (abs(self) < 1e-2),
    cancels=True,
)
class div_true:
    self = lambda g, other: g / conj(other)
    other = lambda g, self, other: -g * conj((self / other) / other)


@primitive(
    "linear float pointwise",
    node="DivBackward1",
    scalar_of=div_true,
    symbolic="self / other",
    jet=lambda s, self, other: self / float(other),
)
class div_scalar:
    # C++ scalars beside integers: the dtype is the one of PyTorch's promotion, not NumPy's.
    forward = lambda self, other: self / other
    self = lambda g, other: g / conj(other)


@primitive(
    "wide common pointwise",
    node="DivBackward2",
    symbolic="floor_divide(self, other) if rounding_mode == 'floor' else trunc(self / other)",
)
class div_rounded:
    def forward(self: Array, other: Array, rounding_mode: str | None = None) -> Array:
        check_divisor(self, other)
        if self.dtype.kind in "bc":
            raise dtypes.not_implemented(f"div_{rounding_mode}_cpu", self.dtype)
        if rounding_mode == "floor":
            return floor_divide.kernel(self, other)
        if self.dtype.kind == "f":
            return np.trunc(self / other)
        quotient = np.floor_divide(self, other)
        exact = quotient * other == self
        return quotient + ((quotient < 0) & ~exact)

    self = lambda g, other, rounding_mode: zeros_like(g)
    other = lambda g, other, self, rounding_mode: zeros_like(g)


@operator(
    "elementwise inplace float analytic",
    kernel=np.reciprocal,
    node="ReciprocalBackward0",
    samples="(rand(2,3) + 0.5); (rand(()) + 0.5); (randn(0))",
    jet=lambda s, self: s.reciprocal(self),
    critical=lambda self: self == 0,
)
class reciprocal:
    """1 / input."""

    self = lambda g, result: -g * conj(result * result)


@operator(
    "linear inplace pointwise",
    node="NegBackward0",
    aliases="negative",
    numpy=np.negative,
    samples="(randn(2,3)); (randn(())); (randn(0))",
    symbolic="-self",
    jet=lambda s, self: -self,
    out="exact: found",
)
class neg:
    """Minus the elements."""

    def forward(self: Array) -> Array:
        refuse_if(self.dtype.kind == "b", MINUS_BOOL)
        return -self

    self = lambda g: -g


# -- powers ---------------------------------------------------------------------------------------
def _check_integer_power(base: Array, exponent: float) -> None:
    whole = isinstance(base, int) if _is_number(base) else base.dtype.kind in "biu"
    if whole and isinstance(exponent, int) and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")


def _pow(base: Array | Number, exponent: Array) -> Any:
    """Powers of arrays. As in C, integers to negative powers truncate, and overflow wraps around."""
    try:
        return base**exponent
    except ValueError as error:
        if "negative integer" not in str(error):
            raise
        unit = abs(base) == 1  # whose powers are its own, by the parity of the exponent
        return where(
            exponent >= 0, base ** np.maximum(exponent, 0), where(unit, base ** (exponent & 1), 0)
        )


def _is_root(exponent: float) -> bool:
    return not isinstance(exponent, complex) and 0 < exponent < 1


def _smooth_power(self: Array, exponent: float) -> Any:
    """Where a power has a derivative, though 0 is raised to it: x**0, x**1, x**2."""
    whole = not isinstance(exponent, complex) and exponent in (0, 1, 2)
    return (self == 0) & whole


def _asked_of_power(exponent: Any) -> str:
    whole = isinstance(exponent, int)
    return {0: "Q6" if whole else "Q6b", 1: "Q7", 2: "" if whole else "Q7b"}.get(exponent, "")


@primitive(
    "elementwise analytic",
    node="PowBackward0",
    samples="pow(randn(2,3), 3); pow(rand(3) + 0.5, 0.5); pow(rand(()) + 0.5, -1)",
    symbolic="self ** exponent",
    switch=Several(
        Point(_smooth_power, kind=SMOOTH, asked=_asked_of_power),
        edge(lambda self, exponent: (self == 0) & _is_root(exponent), "Q28"),
    ),
    jet=lambda s, self, exponent: s.power(self, float(exponent)),
)
class pow_number:
    def forward(self: Array, exponent: float) -> Array:
        _check_integer_power(self, exponent)
        if self.dtype.kind in "fc" and not isinstance(exponent, complex):
            if exponent == 1:
                return self * 1
            if exponent == 2:
                return self * self
            if exponent == 0.5:
                return np.sqrt(self)
            if exponent == -1:
                return 1 / self
            if exponent == -0.5:
                return 1 / np.sqrt(self)
        self = meeting(self, exponent)
        if self.dtype.kind == "b":
            return self if exponent else np.ones_like(self)[()]
        return _pow(self, dtypes.checked(exponent, self.dtype))

    def self(g: Value, self: Value, exponent: float) -> Any:
        """`g * exponent * self ** (exponent - 1)`."""
        if exponent == 0:
            return zeros_like(g)
        if exponent == 0.5:  # 1/sqrt, which keeps the sign at -0
            return g * conj(exponent * pow_number(self, -0.5))
        return g * conj(exponent * self ** (exponent - 1))


@primitive(
    "elementwise",
    node="PowBackward1",
    refuses={"b": "pow"},
    samples="pow(rand(2,3) + 0.5, randn(3)); pow(rand(()) + 0.5, randn(2))",
    symbolic="self ** exponent",
    switch=Several(
        edge(lambda self, exponent: (self == 0) & (exponent == 0), "self=Q8c exponent=Q8b"),
        Point(
            lambda self, exponent: (self == 0) & (exponent > 0), kind=SMOOTH, asked="exponent=Q8"
        ),
        edge(lambda self: self < 0, "self=Q9[0] exponent=Q9[1]"),
    ),
    jet=lambda s, self, exponent: s.raised(self, exponent),
    critical=lambda self, exponent, moving: np.where(
        self == 0, 1, 2 * np.isin(exponent, [0, 1, 2, 3]) * ("exponent" in moving)
    ),
)
class pow_tensors:
    forward = lambda self, exponent: _pow(self, exponent)
    self = lambda g, self, exponent: np.where(
        exponent == 0.0, 0.0, g * conj(exponent * self ** (exponent - 1))
    )

    def exponent(g: Value, self: Value, exponent: Value, result: Value) -> Any:
        """`g * result * log(self)`."""
        if is_complex(exponent):
            still = (self == 0) & (
                (exponent.real > 0) | ((exponent.real == 0) & (exponent.imag == 0))
            )
        else:
            still = (self == 0) & (exponent >= 0)
        if is_complex(result) and not is_complex(self):
            self = self + 0j  # a negative base has a logarithm too
        elif dtype_of(self) != dtype_of(result):
            self = cast(self, dtype_of(result))
        return g * conj(np.where(still, 0.0, result * np.log(self)))


@primitive(
    "elementwise", node="PowBackward2", samples="pow(2, randn(3))", symbolic="self ** exponent"
)
class pow_base:
    def forward(self: float, exponent: Array) -> Array:
        exponent = meeting(exponent, self)
        if self == 1 and not isinstance(self, bool):
            return np.ones_like(exponent)[()]
        if exponent.dtype.kind in "biu":
            self = dtypes.constant(self, exponent.dtype)
        return afresh(_pow(self, exponent), exponent)

    def exponent(g: Value, self: float, exponent: Value, result: Value) -> Any:
        log: Any
        if self == 0:
            slope = result * float("-inf")
            still = exponent.real >= 0 if is_complex(exponent) else exponent >= 0
            return g * conj(np.where(still, 0.0, slope))
        if isinstance(self, complex) or is_complex(g):
            import cmath

            log = cmath.log(self)
        else:
            log = math.log(self) if self > 0 else float("nan")
        return g * conj(result * log)


# -- division with remainder ----------------------------------------------------------------------
def check_divisor(self: Array, other: Array) -> None:
    """Raise RuntimeError, in PyTorch's words, if integers are divided by zero."""
    if other.dtype.kind in "biu" and self.size and not other.all():
        refusal = mismatch([tuple(x.shape) for x in (self, other)])
        raise refusal or RuntimeError("ZeroDivisionError")


@operator(
    "wide inplace numbers common pointwise",
    node="NotImplemented",
    refuses={"bc": "div_floor_cpu"},
    samples="(tensor([7., -7.]), 2)",
    symbolic="floor_divide(self, other)",
    signature=(
        "floor_divide(Tensor input, Tensor other, *, Tensor out=None)",
        "floor_divide(Tensor input, Scalar other)",
    ),
)
class floor_divide:
    """Quotient rounded down."""

    def forward(self: Array, other: Array) -> Array:
        check_divisor(self, other)
        quotient = self // other
        if self.dtype.kind == "f":  # NumPy gives NaN where PyTorch divides by zero
            return where(other == 0, self / other, quotient)
        return quotient

    self = lambda g: g
    other = lambda g: g


@primitive(
    "common pointwise",
    node="RemainderBackward1",
    refuses={"bc": "remainder_cpu"},
    symbolic="remainder(self, other)",
    switch=jump(lambda result: result == 0, "self=Q22 other=Q22b"),
)
class remainder_tensors:
    def forward(self: Array, other: Array) -> Array:
        check_divisor(self, other)
        if other.dtype.kind != "f":
            return self % other
        # NumPy gives a remainder of 0 the sign of the divisor, PyTorch leaves fmod's.
        rest = np.fmod(self, other)
        return where((rest != 0) & ((other < 0) != (rest < 0)), rest + other, rest)

    self = lambda g: g
    other = lambda g, self, other: -g * div_rounded(cast(self, dtype_of(g)), other, "floor")


@primitive(
    "pointwise",
    node="RemainderBackward0",
    symbolic="remainder(self, other)",
    switch=jump(lambda result: result == 0, "Q22"),
)
class remainder_number:
    forward = lambda self, other: remainder_tensors.kernel(self, dtypes.constant(other, self.dtype))
    self = lambda g: g


# PyTorch has no rule here, though one for `tensor(5.) % x`.
@primitive("pointwise", node="RemainderBackward1", symbolic="remainder(self, other)")
class remainder_:
    forward = lambda self, other: remainder_tensors.kernel(
        dtypes.constant(self, other.dtype), other
    )
    other = lambda g, self, other: -g * div_rounded(zeros_like(other) + self, other, "floor")


# -- functions that choose a primitive ------------------------------------------------------------------
def _either(name: str, other: str = "other", *, out: bool = True) -> tuple[str, str, str]:
    """The signatures of a function of two tensors, or of a tensor and a number."""
    to = ", *, Tensor out=None"
    reflected = to if out else ""
    return (
        f"{name}(Tensor input, Tensor {other}{to})",
        f"{name}(Scalar self, Tensor {other}{reflected})",
        f"{name}(Tensor input, Scalar {other}{to})",
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex))


@function(
    "rsub(Tensor input, Tensor other, *, Scalar alpha=1)|function",
    "rsub(Tensor input, Scalar other, Scalar alpha=1)|function",
    primitives=[rsub_scalar, rsub_tensor],
    samples="(randn(3), 2)",
)
def rsub(input: Tensor, other: Tensor | Number, alpha: float) -> Any:
    """`other - alpha * input`."""
    if _is_number(other):
        if modes.current().rules:  # C++ subtracts from a tensor made of the number
            return sub(_like(other, input), input, alpha=alpha)
        return rsub_scalar.call(input, other, alpha)
    return rsub_tensor.call(input, other, alpha)


@function(
    "div(Tensor input, Tensor other, *, Tensor out=None)|inplace",
    "div(Tensor input, Tensor other, *, str? rounding_mode, Tensor out=None)|inplace",
    "div(Tensor input, Scalar other, *, str? rounding_mode)|inplace",
    aliases="divide true_divide",
    forms=(
        "divide(Tensor input, Tensor other, *, Tensor out=None)",
        "divide(Tensor input, Tensor other, *, str? rounding_mode, Tensor out=None)",
        "divide(Tensor input, Scalar other)",
        "divide(Tensor input, Scalar other, *, str? rounding_mode)",
        "true_divide(Tensor input, Tensor other, *, Tensor out=None)",
        "true_divide(Tensor input, Scalar other)",
    ),
    numpy=np.divide,
    samples=f"{_PAIRS}; (randn(3), 2, rounding_mode='floor')",
)
def div(input: Tensor | Number, other: Tensor | Number, rounding_mode: str | None = None) -> Any:
    """Quotient; rounding_mode "trunc" or "floor" rounds it."""
    if rounding_mode is None:
        return div_true(input, other)
    if rounding_mode not in ("trunc", "floor"):
        raise RuntimeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
        )
    return div_rounded(input, other, rounding_mode)


@function(
    *_either("pow", "exponent"),
    inplace=True,
    numpy=np.power,
    samples="(randn(3), 2); (rand(3) + 0.5, randn(3)); (2, randn(3))",
)
def pow(input: Tensor | Number, exponent: Tensor | Number) -> Any:
    """`input ** exponent`."""
    if _is_number(exponent):
        if not _is_number(input):
            return pow_number(input, exponent)
    elif _is_number(input):
        if isinstance(input, bool) and dtype_of(exponent).kind == "b":
            raise pow_tensors.unsupported_error(dtype_of(exponent))
        return pow_base(input, exponent)
    return pow_tensors(input, exponent)


@function(
    *_either("float_power", "exponent"),
    primitives=[pow_number, pow_tensors],
    samples="(rand(3) + 0.5, 2)",
    out=(
        "exact: the output given to float_power has dtype {1} but the operation's "
        "result requires dtype {0}"
    ),
)
def float_power(input: Any, exponent: Any) -> Any:
    """`input ** exponent`, in double precision."""
    if not _is_number(input):
        input = input.to(dtypes.complex128 if is_complex(input) else dtypes.float64)
    if _is_number(exponent):
        exponent = exponent if isinstance(exponent, complex) else float(exponent)
    else:
        exponent = exponent.to(dtypes.complex128 if is_complex(exponent) else dtypes.float64)
    return pow(input, exponent)


@function(
    "float_power_(Tensor input, Tensor exponent)|method",
    "float_power_(Tensor input, Scalar exponent)|method",
    primitives=[pow_number, pow_tensors],
    samples=["(rand(3, dtype=float64) + 0.5).float_power_(2)"],
)
def float_power_(input: Tensor, exponent: Tensor | Number) -> Any:
    """In-place form of `float_power`, of tensors of double precision."""
    whole = is_complex(input) or is_complex(exponent) or isinstance(exponent, complex)
    result = dtypes.complex128 if whole else dtypes.float64
    if input.dtype != result:
        given, wanted = (scalar_name(d) for d in (input.dtype, result))
        raise RuntimeError(
            f"the base given to float_power_ has dtype {given} but the operation's result requires "
            f"dtype {wanted}"
        )
    from gradcli.engine.core.views import inplace

    return inplace(float_power, input, exponent)


@function(
    *_either("remainder", out=False),
    inplace=True,
    primitives=[remainder_number, remainder_tensors],
    numpy=np.remainder,
    samples="(randn(3), 2); (randn(3), rand(3) + 0.5)",
)
def remainder(input: Tensor | Number, other: Tensor | Number) -> Any:
    """Python's modulus: has the sign of `other`."""
    numbers = _is_number(input), _is_number(other)
    if numbers == (False, True) and dtype_of(input).kind == "f" and not isinstance(other, complex):
        return remainder_number(input, other)
    if _is_number(input) and dtype_of(other).kind == "f" and not isinstance(input, complex):
        return remainder_(input, other)
    return remainder_tensors(input, other)


@function("square(Tensor input, *, Tensor out=None)|inplace|numpy", samples="(randn(2,3))")
def square(input: Tensor) -> Any:
    """`input ** 2`."""
    return pow_number(input, 2)


# -- comparisons and logic ------------------------------------------------------------------------
_EQUAL = Point(lambda self, other: self == other, kind=CHOICE)


def _compare(ufunc: np.ufunc, name: str, aliases: str = "", sign: str = "") -> Primitive:
    body = type(name, (), {"__doc__": f"Elementwise `{name}`.", "__module__": __name__})
    logical = name.startswith("logical")
    zero = "zeros(3)" if logical else "0"
    either = (
        f"{name}(Tensor input, Tensor other, *, Tensor out=None)",
        f"{name}(Tensor input, Scalar other, *, Tensor out=None)",
    )
    return operator(
        kernel=ufunc,
        types="common",
        params="self other",
        refuses={"c": f"{name}_cpu"} if name in ("lt", "le", "gt", "ge") else None,
        numbers=not logical,
        aliases=aliases,
        symbolic=f"self {sign} other" if sign else "",
        switch=None if logical else _EQUAL,
        samples=(f"{name}(randn(3), {zero})", f"{name}(randn(3,1), randn(4))"),
        signature=() if logical else either,
    )(body)


eq = _compare(np.equal, "eq", sign="==")
ne = _compare(np.not_equal, "ne", "not_equal", "!=")
lt = _compare(np.less, "lt", "less", "<")
le = _compare(np.less_equal, "le", "less_equal", "<=")
gt = _compare(np.greater, "gt", "greater", ">")
ge = _compare(np.greater_equal, "ge", "greater_equal", ">=")
logical_and = _compare(np.logical_and, "logical_and")
logical_or = _compare(np.logical_or, "logical_or")
logical_xor = _compare(np.logical_xor, "logical_xor")


@operator("pointwise", kernel=np.logical_not, params="self", samples="(tensor([0., 1.]))")
class logical_not:
    """True where zero."""


def _of_integers(ufunc: Any, name: str, doc: str, sample: str, **facts: Any) -> Primitive:
    """An operator of two integers, without a derivative; facts: see `operator`."""

    def kernel(self: Array, other: Array) -> Array:
        return ufunc(self, other)

    return operator(
        "common inplace pointwise", kernel=kernel, samples=(f"{name}({sample})",), **facts
    )(type(name, (), {"__doc__": doc, "__module__": __name__}))


def _bitwise(ufunc: np.ufunc, name: str, doc: str, sample: str, **facts: Any) -> Primitive:
    """Such an operator that takes numbers, too."""
    signature = _either(name, out=False)
    return _of_integers(ufunc, name, doc, sample, numbers=True, signature=signature, **facts)


def _logic_of_bits(ufunc: np.ufunc, sign: str) -> Primitive:
    name, sample = f"bitwise_{sign}", "tensor([True, False]), tensor([True, True])"
    refuses = {"fc": f"{name}_cpu"}
    return _bitwise(ufunc, name, f"Bitwise {sign}.", sample, refuses=refuses, numpy=ufunc)


def _divisor(ufunc: Any, name: str, doc: str) -> Primitive:
    signature = f"{name}(Tensor input, Tensor other, *, Tensor out=None)"
    sample, refuses = "tensor([12, 18]), tensor([8, 12])", {"bfc": f"{name}_cpu"}
    return _of_integers(ufunc, name, doc, sample, refuses=refuses, numpy=ufunc, signature=signature)


def _shift(ufunc: np.ufunc, to: str) -> Primitive:
    name, refuses = f"bitwise_{to}_shift", {"bfc": f"{to[0]}shift_cpu"}
    return _bitwise(ufunc, name, f"Bits moved to the {to}.", "tensor([4, 8]), 1", refuses=refuses)


bitwise_and = _logic_of_bits(np.bitwise_and, "and")
bitwise_or = _logic_of_bits(np.bitwise_or, "or")
bitwise_xor = _logic_of_bits(np.bitwise_xor, "xor")
gcd = _divisor(np.gcd, "gcd", "The greatest common divisor.")
lcm = _divisor(np.lcm, "lcm", "The least common multiple.")
bitwise_left_shift = _shift(np.left_shift, "left")
bitwise_right_shift = _shift(np.right_shift, "right")


@operator(
    "inplace pointwise",
    refuses={"fc": "bitwise_not_cpu"},
    numpy=np.invert,
    samples="(tensor([True, False]))",
    out="exact: found",
)
class bitwise_not:
    """Bitwise not."""

    def forward(self: Array) -> Array:
        return ~self


def _inverted(x: Tensor) -> Tensor:
    """`~x`, whose errors in PyTorch differ from bitwise_not's."""
    if x.array.dtype.kind in "fc":
        raise TypeError(
            "~ (operator.invert) is only implemented on integer and Boolean-type tensors"
        )
    return bitwise_not.call(x)


# -- dtypes of results ----------------------------------------------------------------------------
@function(
    "result_type(Tensor tensor, Tensor other)|function",
    "result_type(Scalar scalar, Tensor tensor)|function",
    "result_type(Tensor tensor, Scalar other)|function",
    "result_type(Scalar scalar1, Scalar scalar2)|function",
    samples="(tensor([1, 2]), 1.0)",
)
def result_type(**operands: Any) -> dtypes.dtype:
    """The dtype that an operation on the two computes in."""
    ranks = [
        (o.array.dtype, 2 if o.array.ndim else 1)
        if isinstance(o, Tensor)
        else (dtypes.number_dtype(o), 0)
        for o in operands.values()
    ]
    return dtypes.of(dtypes.result_type(ranks))


@function("promote_types(ScalarType type1, ScalarType type2)|function", samples="(int32, float32)")
def promote_types(type1: dtypes.dtype, type2: dtypes.dtype) -> dtypes.dtype:
    """The smallest dtype that holds both."""
    one, two = (dtypes.given(t) for t in (type1, type2))
    assert one is not None and two is not None  # the binder saw to it
    return dtypes.of(dtypes.promote_types(one.dtype, two.dtype))


@function("can_cast(ScalarType from_, ScalarType to)|function", samples="(int32, float32)")
def can_cast(from_: dtypes.dtype, to: dtypes.dtype) -> bool:
    """True where a result may be cast: not to a lower category."""
    order = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
    from_, to = (dtypes.given(t) or t for t in (from_, to))
    if from_.kind != "b" and to.kind == "b":
        return False
    if from_.kind == "i" and to.kind == "u":
        return False
    return order[from_.kind] <= order[to.kind]


# -- Python's operators ---------------------------------------------------------------------------
def _reflected(method: Callable[..., Any]) -> Callable[..., Any]:
    def call(a: Tensor, b: float) -> Any:
        return method(b, a)

    return call


def _guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(a: Tensor, b: Value | Number) -> Any:
        return function(a, b) if is_operand(b) else NotImplemented

    return call


def _rdiv(a: Tensor, b: float) -> Any:
    if not is_operand(b):
        return NotImplemented
    if isinstance(b, (np.ndarray, np.generic, Tensor)):
        return div_true(b, a)
    if modes.current().rules:
        return div_true(_like(b, a), a)
    return mul(reciprocal(a), b)


def _like(number: Any, tensor: Tensor) -> Any:
    """A 0-d tensor of a number in the other operand's dtype, as C++ makes it."""
    return wrap(tensor.array.dtype.type(number)) if isinstance(tensor, Tensor) else number


def _in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(a: Tensor, b: Tensor | Number) -> Any:
        from gradcli.engine.core.views import inplace

        return inplace(function, a, b) if is_operand(b) else NotImplemented

    return call


def _matmul(a: Tensor, b: Tensor) -> Any:
    arrays = (Tensor, np.ndarray)
    both = a.__class__ is Tensor is b.__class__
    if not both and not all(isinstance(x, arrays) or hasattr(x, "__operator__") for x in (a, b)):
        return NotImplemented
    from gradcli.operators.primitives.matrix_products import by_rank, matmul

    if both:
        return by_rank(a, b)
    return matmul(*(wrap(x) if isinstance(x, np.ndarray) else x for x in (a, b)))


def _on_first_use(name: str, primitive: VjpRules, method: Callable[[Primitive], Any]) -> None:
    """Set an operator's method that generates its code at the second call: one call is cheaper without."""

    def first(*args: Any) -> Any:
        setattr(Tensor, name, again)
        return primitive.call_any(args, {}) if all(map(is_operand, args)) else NotImplemented

    def again(*args: Any) -> Any:
        compiled = method(primitive)
        setattr(Tensor, name, compiled)
        return compiled(*args)

    setattr(Tensor, name, first)


def _install() -> None:
    """Set Python's operators on Tensor."""
    rows = {"add": add, "radd": add, "mul": mul, "rmul": mul, "sub": sub, "truediv": div_true}
    for name, own in rows.items():
        _on_first_use(f"__{name}__", own, binary_method)
    _on_first_use("__neg__", neg, lambda own: own.call)
    setattr(Tensor, "__invert__", _inverted)
    setattr(Tensor, "__rsub__", _guarded(rsub))
    setattr(Tensor, "__rtruediv__", _rdiv)
    for name, target in {"pow": pow, "mod": remainder, "floordiv": floor_divide}.items():
        setattr(Tensor, f"__{name}__", _guarded(target))
        setattr(Tensor, f"__r{name}__", _guarded(_reflected(target)))
    bits = {
        **{"and": bitwise_and, "or": bitwise_or, "xor": bitwise_xor},
        **{"lshift": bitwise_left_shift, "rshift": bitwise_right_shift},
    }
    for name, own in bits.items():
        setattr(Tensor, f"__{name}__", _guarded(own))
        setattr(Tensor, f"__r{name}__", _guarded(_reflected(own)))
    for own in (lt, le, gt, ge):
        setattr(Tensor, f"__{own.name}__", _guarded(own))
    setattr(Tensor, "__eq__", _guarded(eq))
    setattr(Tensor, "__ne__", _guarded(ne))
    setattr(Tensor, "__pos__", lambda t: t)
    setattr(Tensor, "__abs__", lambda t: t.abs())
    setattr(Tensor, "__matmul__", _matmul)
    setattr(Tensor, "__rmatmul__", _reflected(_matmul))
    augmented: dict[str, Any] = {
        **{"iadd": add, "isub": sub, "imul": mul, "itruediv": div, "ipow": pow, "imod": remainder},
        **{"ifloordiv": floor_divide, "iand": bitwise_and, "ior": bitwise_or, "ixor": bitwise_xor},
        **{"ilshift": bitwise_left_shift, "irshift": bitwise_right_shift},
    }
    for name, target in augmented.items():
        setattr(Tensor, f"__{name}__", _in_place(target))


_install()
