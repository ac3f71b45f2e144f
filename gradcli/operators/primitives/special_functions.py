"""Special functions: SciPy computes most of them (the `special` extra), the rules are PyTorch's."""

from __future__ import annotations

import math
from collections.abc import Callable
from math import log, pi, sqrt
from typing import Any

import numpy as np

from gradcli.engine.core.declaration import Array, Number, Value
from gradcli.engine.core.tensor import Tensor
from gradcli.engine.registry.dimensions import not_differentiable
from gradcli.engine.registry.named_results import results
from gradcli.engine.registry.rule_helpers import (
    cast,
    constant,
    dtype_of,
    implemented,
    is_python_number,
    is_traced,
    masked_fill,
    refuse_if,
    unsqueeze,
    where,
    zeros_like,
)
from gradcli.engine.registry.table import function, operator, primitive
from gradcli.engine.system.array_memory import afresh
from gradcli.operators.primitives import accurate_slopes
from gradcli.operators.primitives.arithmetic import add_scalar, mul_scalar
from gradcli.operators.primitives.elementwise import ANY, sgn, unary
from gradcli.operators.primitives.elementwise_pairs import log_rows

FAMILY = "special"  # as `ops` calls it

_POSITIVE = "(rand(2,3) + 0.5); (rand(()) + 0.5); (rand(0))"
_UNIT = "(rand(2,3) * 0.8 + 0.1); (rand(()) * 0.8 + 0.1); (rand(0))"
_SIGNED_UNIT = "(rand(2,3) - 0.5); (rand(()) - 0.5); (rand(0))"


def _log_gamma(x: float) -> float:
    """math.lgamma, which raises at its poles and where it overflows: infinity there."""
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):
        return math.inf


# Functions that Python's own mathematics has, element by element, where SciPy is not installed.
_PLAIN: dict[str, Callable[[float], float]] = {
    "erf": math.erf,
    "erfc": math.erfc,
    "gammaln": _log_gamma,
}


def scipy_function(name: str, public: str | None = None) -> Callable[..., Any]:
    """`scipy.special.NAME`, imported when first called, on arrays of any floating dtype.

    Of several results that is the first.
    Raises RuntimeError that names the extra where SciPy is not installed.
    """

    def call(*args: Any) -> Any:
        try:
            import scipy.special
        except ImportError:
            plain = _PLAIN.get(name)
            if plain is None:
                raise RuntimeError(f"{public or name}() needs SciPy: pip install scipy") from None
            kind = args[0].dtype
            with np.errstate(all="ignore"):
                return np.vectorize(plain, otypes=[kind])(args[0])[()] if args[0].size else args[0]
        kinds = [a.dtype for a in args if not is_python_number(a)]
        found = getattr(scipy.special, name)(*args)
        found = found[0] if isinstance(found, tuple) else found
        wanted = np.result_type(*kinds)
        return found.astype(wanted) if wanted.kind in "fc" and found.dtype != wanted else found

    return call


def _kernel(name: str, public: str | None = None) -> Callable[..., Any]:
    call = scipy_function(name, public)

    def kernel(self: Array) -> Array:
        return call(self)

    return kernel


def _special(
    name: str, samples: str = ANY, *, refused: str = "ec", scipy: str = "", **more: Any
) -> Any:
    """What makes `special.NAME` of its rule: SciPy's function, which it may call by another name.

    refused: NumPy's kinds that PyTorch's kernel does not take.
    """
    kernel, node = _kernel(scipy or name, f"special.{name}"), name.title().replace("_", "")
    refuses = {refused: f"{name}_cpu"}
    facts: Any = {"name": f"special.{name}", "method": False, "refuses": refuses, **more}
    return unary(kernel=kernel, node=f"Special{node}Backward0", samples=samples, **facts)


# -- the error function ---------------------------------------------------------------------------
@unary(
    kernel=_kernel("erf"), node="ErfBackward0", aliases="special.erf", refuses={"c": "erf_vml_cpu"}
)
class erf:
    """The error function."""

    self = lambda g, self: np.exp(-(self**2)) * (2.0 / sqrt(pi)) * g


@unary(
    kernel=_kernel("erfc"),
    node="ErfcBackward0",
    aliases="special.erfc",
    refuses={"c": "erfc_vml_cpu"},
)
class erfc:
    """1 - erf(input)."""

    self = lambda g, self: np.exp(-(self**2)) * (-2.0 / sqrt(pi)) * g


@unary(
    node="ErfinvBackward0",
    samples=_SIGNED_UNIT,
    aliases="special.erfinv",
    refuses={"c": "erfinv_vml_cpu"},
)
class erfinv:
    """The inverse of the error function."""

    def forward(self: Array) -> Array:
        return where(self == 0, self, scipy_function("erfinv")(self))  # SciPy's of -0 is 0

    self = lambda g, self: np.exp(erfinv(self) ** 2) * (0.5 * sqrt(pi)) * g


@_special("erfcx")
class erfcx:
    """exp(input**2) * erfc(input)."""

    self = lambda g, self, result: (
        accurate_slopes.erfcx_slope(self, result) * g
        if accurate_slopes.is_real(self)
        else (self * 2.0 * result - 2.0 / sqrt(pi)) * g
    )


@primitive(
    "elementwise float",
    node="MulBackward1",
    symbolic="special.ndtr(input)",
    tangent=lambda own, other: own * other,
    jet=lambda s, self, input, other: self * float(other),
)
class half_of_erfc:
    """`self * 0.5`, where self is 1 + erf(input/sqrt(2)), with the digits that this sum has lost."""

    def forward(self: Array, input: Array, other: Any) -> Array:
        return erfc.kernel(input * -sqrt(0.5)) * other

    self = lambda g, other: g * other


@function("special.ndtr(Tensor input, *, Tensor out=None)", samples="(randn(3))", overlap="any any")
def ndtr(input: Tensor) -> Any:
    """The cumulative distribution function of the standard normal distribution.

    The nodes are PyTorch's, (1 + erf(x/sqrt(2)))*0.5. That is 0 from -8.3 downwards; the value is not.
    """
    sum_ = add_scalar(erf(mul_scalar(input, sqrt(0.5))), 1)
    if input.is_complex():
        return mul_scalar(sum_, 0.5)
    return half_of_erfc(sum_, input, 0.5)


@_special("log_ndtr")
class log_ndtr:
    """The logarithm of `special.ndtr`."""

    self = lambda g, self, result: (
        g * accurate_slopes.log_ndtr_slope(self, result, scipy_function("erfcx"))
        if accurate_slopes.is_real(self)
        else g / sqrt(2 * pi) * np.exp(-(result + self**2 / 2))
    )


@_special("ndtri", _UNIT)
class ndtri:
    """The inverse of `special.ndtr`."""

    self = lambda g, result: g * sqrt(2 * pi) * np.exp(result**2 / 2)


# -- the gamma function ---------------------------------------------------------------------------
def _lgamma_term(x: Array, k: int) -> Array:
    """The kth derivative of lgamma divided by k!."""
    return polygamma.kernel(k - 1, x) / math.factorial(k) if k else lgamma.kernel(x)


@unary(
    node="LgammaBackward0",
    samples=_POSITIVE,
    aliases="special.gammaln",
    refuses={"c": "lgamma_vml_cpu"},
    jet=lambda s, self: s.taylor(self, _lgamma_term),
)
class lgamma:
    """The logarithm of the absolute value of the gamma function."""

    def forward(self: Array) -> Array:
        # SciPy's value at minus infinity is minus infinity, and at the smallest numbers infinity.
        found = scipy_function("gammaln", "lgamma")(self)
        size = np.abs(self)
        with np.errstate(divide="ignore"):
            near = where(size < np.finfo(self.dtype).tiny, -np.log(size), found)
        return where(self == -np.inf, size, near)

    self = lambda g, self: (
        g * accurate_slopes.digamma_at(self, digamma)
        if accurate_slopes.is_real(self)
        else g * digamma(self)
    )


@unary(
    kernel=_kernel("psi", "digamma"),
    node="DigammaBackward0",
    samples=_POSITIVE,
    aliases="special.digamma special.psi",
    refuses={"c": "digamma"},
    jet=lambda s, self: s.taylor(self, lambda x, k: polygamma.kernel(k, x) / math.factorial(k)),
)
class digamma:
    """The derivative of lgamma."""

    self = lambda g, self: (
        g * accurate_slopes.trigamma_at(self, lambda x: polygamma(1, x))
        if accurate_slopes.is_real(self)
        else g * polygamma(1, self)
    )


def _trigamma(self: Array) -> Array:
    """The derivative of digamma, with PyTorch's reflection: what it gives at negative integers too."""
    small = self < 0.5
    x = where(small, 1 - self, self)
    with np.errstate(all="ignore"):
        value = scipy_function("zeta", "polygamma")(self.dtype.type(2), x)
        sine = np.sin(self.dtype.type(math.pi) * self)
        reflected = self.dtype.type(math.pi) ** 2 / (sine * sine) - value
    return where(small, reflected, value)


@operator(
    "float pointwise",
    node="PolygammaBackward0",
    aliases="special.polygamma",
    samples="(1, rand(3) + 0.5); (2, rand(3) + 0.5)",
    signature="polygamma(int n, Tensor input, *, Tensor out=None)",
    jet=lambda s, n, self: s.taylor(
        self, lambda x, k: polygamma.kernel(n + k, x) / math.factorial(k)
    ),
)
class polygamma:
    """The n-th derivative of digamma; as a method `x.polygamma(n)`."""

    def forward(n: int, self: Array) -> Array:
        refuse_if(n < 0, "polygamma(n, x) does not support negative n.")
        implemented(("digamma", "trigamma", "polygamma")[min(n, 2)], self, "efd")
        sign = 1 if n % 2 else -1
        if n == 0:
            return scipy_function("psi", "polygamma")(self)
        factor = sign * (math.factorial(n) if n < 171 else math.inf)
        if n == 1:
            return _trigamma(self)
        return self.dtype.type(factor) * zeta_tensors.kernel(self.dtype.type(n + 1), self)

    self = lambda g, n, self: g * polygamma(n + 1, self)


@primitive("float pointwise", node="MvlgammaBackward0", symbolic="mvlgamma: p")
class mvlgamma_p:
    def forward(self: Array, p: int) -> Array:
        refuse_if(p < 1, "p has to be greater than or equal to 1")
        implemented("arange_cpu", self, "efd")
        i = np.arange(-p / 2 + 0.5, 0.5, 0.5).astype(self.dtype)
        total = lgamma.kernel(np.asarray(self)[..., None] + i).sum(-1)
        return afresh(total + self.dtype.type(p * (p - 1) / 4 * log(pi)), np.asarray(self))

    def self(g: Value, self: Value, p: int) -> Any:
        i = np.arange(-p / 2 + 0.5, 0.5, 0.5)
        steps = constant(i.astype(dtype_of(self)), self)
        return g * digamma(steps + unsqueeze(self, -1)).sum(-1)


@function(
    "mvlgamma(Tensor input, int p, *, Tensor out=None)|inplace",
    aliases="special.multigammaln",
    samples="(rand(3) + 2, 2)",
    # PyTorch names the result's dtype twice.
    out="cast: mvlgamma: result type {0} can't be cast to the desired output type {0}",
)
def mvlgamma(input: Tensor, p: int) -> Any:
    """The logarithm of the multivariate gamma function of dimension p."""
    refuse_if(dtype_of(input).kind == "b", "The input tensor may not be a boolean tensor.")
    return mvlgamma_p(input, p)


def _pair(name: str, public: str) -> Callable[..., Any]:
    call = scipy_function(name, public)

    def kernel(self: Array, other: Array) -> Array:
        return call(self, other)

    return kernel


def _igamma_slope(g: Value, self: Value, other: Value) -> Any:
    self = cast(self, dtype_of(g))
    return g * np.exp((self - 1) * np.log(other) - other - lgamma(self))


@operator(
    "inplace common pointwise",
    kernel=_pair("gammainc", "igamma"),
    node="IgammaBackward0",
    refuses={"biuc": "igamma_cpu"},
    aliases="special.gammainc",
    samples="(tensor([1., 2., 3.]), rand(3) + 0.5)",
)
class igamma:
    """The regularised lower incomplete gamma function."""

    self = lambda g: not_differentiable("igamma: input")
    other = _igamma_slope


@operator(
    "inplace common pointwise",
    kernel=_pair("gammaincc", "igammac"),
    node="IgammacBackward0",
    refuses={"biuc": "igammac_cpu"},
    aliases="special.gammaincc",
    samples="(tensor([1., 2., 3.]), rand(3) + 0.5)",
)
class igammac:
    """The regularised upper incomplete gamma function."""

    self = lambda g: not_differentiable("igammac: input")
    other = lambda g, self, other: _igamma_slope(-g, self, other)


_NO_ZETA = {"ec": "zeta_cpu"}
_ZETA = "special.zeta(self, other)"


@primitive("float pointwise", node="SpecialZetaBackward0", symbolic=_ZETA, refuses=_NO_ZETA)
class zeta_tensors:
    def forward(self: Array, other: Array) -> Array:
        """Hurwitz's zeta; of an infinite argument NaN, as Cephes in PyTorch has it, except at 1."""
        found = scipy_function("zeta", "special.zeta")(self, other)
        return where(np.isposinf(other), found.dtype.type(np.nan), found)

    self = lambda g: not_differentiable("zeta")
    other = lambda g, self, other: g * -self * zeta(self + 1.0, other)


@primitive("float pointwise", node="SpecialZetaBackward1", symbolic=_ZETA, refuses=_NO_ZETA)
class zeta_number:
    forward = lambda self, other: zeta_tensors.kernel(other.dtype.type(self), other)
    other = lambda g, self, other: g * -self * zeta_number(float(self) + 1.0, other)


@function(
    "special.zeta(Tensor input, Tensor other, *, Tensor out=None)",
    "special.zeta(Scalar self, Tensor other, *, Tensor out=None)",
    "special.zeta(Tensor input, Scalar other, *, Tensor out=None)",
    samples="(2.5, rand(3) + 1)",
)
def zeta(input: Value | Number, other: Value) -> Any:
    """The Hurwitz zeta function."""
    return (zeta_number if isinstance(input, (int, float)) else zeta_tensors)(input, other)


# -- Bessel functions -----------------------------------------------------------------------------
def _bessel_i(x: Array) -> tuple[Array, Array]:
    half = np.exp(np.abs(x) / 2)  # exp(x) is infinite from 709.8 on, and these are not until 713.9
    return i0e.kernel(x) * half * half, i1e.kernel(x) * half * half


def _i1_in_range(x: Array) -> Array:
    """i1, also where exp(x) is infinite and i1 is not."""
    found = i1.kernel(x)
    far = np.isinf(found) & np.isfinite(x)
    if isinstance(far, np.ndarray | np.generic) and not far.any():
        return found  # a trace computes both, for other numbers may come
    return where(far, _bessel_i(x)[1], found)


def _bessel_j(x: Array) -> tuple[Array, Array]:
    return bessel_j0.kernel(x), bessel_j1.kernel(x)


def _bessel_y(x: Array) -> tuple[Array, Array]:
    return bessel_y0.kernel(x), bessel_y1.kernel(x)


def _bessel_k(x: Array) -> tuple[Array, Array]:
    return modified_bessel_k0.kernel(x), modified_bessel_k1.kernel(x)


@unary(
    kernel=_kernel("i0"),
    node="I0Backward0",
    aliases="special.i0",
    refuses={"c": "i0_vml_cpu"},
    jet=lambda s, self: s.bessel(self, 0, True, _bessel_i),
)
class i0:
    """The modified Bessel function of the first kind of order 0."""

    self = lambda g, self: g * (_i1_in_range(self) if accurate_slopes.is_real(self) else i1(self))


@_special(
    "i0e",
    refused="c",
    jet=lambda s, self: s.exp(-s.absolute(self)) * s.bessel(self, 0, True, _bessel_i),
)
class i0e:
    """exp(-|input|) * i0(input)."""

    self = lambda g, self, result: g * (i1e(self) - sgn(self) * result)


def _away_from_zero(self: Value) -> tuple[Any, Any]:
    """(mask of the elements that are not 0, the elements with 1e-300 or so in place of 0)."""
    kind = self.array.dtype if isinstance(self, Tensor) else self.dtype
    mask = np.abs(self) > np.finfo(kind).eps
    return mask, where(mask, self, np.finfo(kind).eps)


def _i1_backward(g: Value, self: Value, result: Value) -> Any:
    implemented("i1_backward", dtype_of(self), "fd")
    if is_traced(
        self
    ):  # PyTorch's limit is that of all numbers below eps, which is right for the slope alone
        return g * _of_order_1(i0(self), self, result)
    mask, safe = _away_from_zero(self)
    return g * where(mask, i0(safe) - result * np.reciprocal(safe), 0.5)


def _i1e_backward(g: Value, self: Value, result: Value) -> Any:
    implemented("i1e_backward", dtype_of(self), "fd")
    if is_traced(self):
        return g * (_of_order_1(i0e(self), self, result) - sgn(self) * result)
    mask, safe = _away_from_zero(self)
    slope = i0e(safe) - result * (sgn(safe) + np.reciprocal(safe))
    return g * where(mask, slope, 0.5)


@_special(
    "i1",
    refused="c",
    jet=lambda s, self: s.bessel(self, 1, True, _bessel_i),
    critical=lambda self: abs(self) < 1e-3,
)
class i1:
    """The modified Bessel function of the first kind of order 1."""

    self = _i1_backward


@_special(
    "i1e",
    refused="c",
    jet=lambda s, self: s.exp(-s.absolute(self)) * s.bessel(self, 1, True, _bessel_i),
    critical=lambda self: abs(self) < 1e-3,
)
class i1e:
    """exp(-|input|) * i1(input)."""

    self = _i1e_backward


# PyTorch has these without derivatives, as constants; a derivative that is known is given here.
_SHIFTED = "(rand(3) + 0.5)"


def _of_order_1(order_0: Value, self: Value, result: Value) -> Any:
    """The slope of a function of order 1 of the first kind: that of order 0 less result / input."""
    at_zero = self == 0
    return where(at_zero, 0.5, order_0 - result / where(at_zero, 1.0, self))


@_special(
    "bessel_j0", _SHIFTED, scipy="j0", jet=lambda s, self: s.bessel(self, 0, False, _bessel_j)
)
class bessel_j0:
    """The Bessel function of the first kind, order 0; PyTorch has no derivative of it."""

    self = lambda g, self: g * -bessel_j1(self)


@_special(
    "bessel_j1",
    _SHIFTED,
    scipy="j1",
    jet=lambda s, self: s.bessel(self, 1, False, _bessel_j),
    critical=lambda self: abs(self) < 1e-3,
)
class bessel_j1:
    """The Bessel function of the first kind, order 1; PyTorch has no derivative of it."""

    self = lambda g, self, result: g * _of_order_1(bessel_j0(self), self, result)


@_special(
    "bessel_y0",
    _SHIFTED,
    scipy="y0",
    jet=lambda s, self: s.bessel(self, 0, False, _bessel_y, False),
)
class bessel_y0:
    """The Bessel function of the second kind, order 0; PyTorch has no derivative of it."""

    self = lambda g, self: g * -bessel_y1(self)


@_special(
    "bessel_y1",
    _SHIFTED,
    scipy="y1",
    jet=lambda s, self: s.bessel(self, 1, False, _bessel_y, False),
)
class bessel_y1:
    """The Bessel function of the second kind, order 1; PyTorch has no derivative of it."""

    self = lambda g, self, result: g * (bessel_y0(self) - result / self)


@_special(
    "modified_bessel_i0",
    _SHIFTED,
    scipy="i0",
    jet=lambda s, self: s.bessel(self, 0, True, _bessel_i),
)
class modified_bessel_i0:
    """The modified Bessel function of the first kind, order 0; PyTorch has no derivative of it."""

    self = lambda g, self: g * modified_bessel_i1(self)


@_special(
    "modified_bessel_i1",
    _SHIFTED,
    scipy="i1",
    jet=lambda s, self: s.bessel(self, 1, True, _bessel_i),
    critical=lambda self: abs(self) < 1e-3,
)
class modified_bessel_i1:
    """The modified Bessel function of the first kind, order 1; PyTorch has no derivative of it."""

    self = lambda g, self, result: g * _of_order_1(modified_bessel_i0(self), self, result)


@_special(
    "modified_bessel_k0",
    _SHIFTED,
    scipy="k0",
    jet=lambda s, self: s.bessel(self, 0, True, _bessel_k, False),
)
class modified_bessel_k0:
    """The modified Bessel function of the second kind, order 0; PyTorch has no derivative of it."""

    self = lambda g, self: g * -modified_bessel_k1(self)


@_special(
    "modified_bessel_k1",
    _SHIFTED,
    scipy="k1",
    jet=lambda s, self: s.bessel(self, 1, True, _bessel_k, False),
)
class modified_bessel_k1:
    """The modified Bessel function of the second kind, order 1; PyTorch has no derivative of it."""

    self = lambda g, self, result: g * -(modified_bessel_k0(self) + result / self)


# -- entropy and logits ---------------------------------------------------------------------------
@_special("entr", _POSITIVE, refused="c")
class entr:
    """-input * log(input)."""

    self = lambda g, self: g * -(1 + np.log(self))


@unary(
    node="LogitBackward0",
    samples=_UNIT,
    aliases="special.logit",
    refuses={"c": "logit_cpu"},
    signature="logit(Tensor input, float? eps=None, *, Tensor out=None)",
)
class logit:
    """log(input / (1 - input)), the inverse of sigmoid."""

    def forward(self: Array, eps: float | None = None) -> Array:
        if eps is not None:
            self = where(self < eps, eps, where(self > 1 - eps, 1 - eps, self))
        return np.log(self / (1 - self))

    def self(g: Value, self: Value, eps: float | None) -> Any:
        # -0 is 0 here: the slope is positive infinity on both sides.
        slope = g / ((self + 0.0) * (1.0 - self))
        if eps is None or eps < 0:
            return where((self >= 0) & (self <= 1), slope, np.nan)
        return where((self < eps) | (self > 1.0 - eps), 0.0, slope)


# -- products with logarithms ---------------------------------------------------------------------
_xlog1py, _xlog1py_of, _xlog1py_by = log_rows(
    np.log1p, "special.xlog1py", "SpecialXlog1Py", "xlog1py_cpu"
)


@_xlog1py
class xlog1py_tensors:
    self = lambda g, self, other: masked_fill(
        xlog1py_tensors(g, other), (self == 0.0) & (other <= -1.0), 0.0
    )
    other = lambda g, self, other: g * self / (other + 1)


@_xlog1py_of
class xlog1py_of:
    other = lambda g, self, other: g * self / (other + 1)


@_xlog1py_by
class xlog1py_by:
    self = lambda g, self, other: (
        xlog1py_by(g, other)
        if other > -1.0
        else masked_fill(xlog1py_by(g, other), self == 0.0, 0.0)
    )


@function(
    "special.xlog1py(Tensor input, Tensor other, *, Tensor out=None)",
    "special.xlog1py(Scalar self, Tensor other, *, Tensor out=None)",
    "special.xlog1py(Tensor input, Scalar other, *, Tensor out=None)",
    samples="(rand(3), rand(3)); (2.0, rand(3))",
)
def xlog1py(input: Tensor | Number, other: Tensor) -> Any:
    """input * log1p(other), 0 where input is 0."""
    if isinstance(input, (int, float)):
        return xlog1py_of(input, other)
    return (xlog1py_by if isinstance(other, (int, float)) else xlog1py_tensors)(input, other)


# -- parts of floating-point numbers --------------------------------------------------------------
@primitive("pointwise", node="FrexpBackward0", outputs="mantissa | exponent")
class frexp_p:
    def forward(self: Array) -> Any:
        refuse_if(self.dtype.kind != "f", "torch.frexp() only supports floating-point dtypes")
        mantissa, exponent = np.frexp(self)
        return mantissa, np.asarray(exponent, np.int32)[()]

    self = lambda g, exponent: g / np.exp2(exponent)


frexp = results(
    "frexp(Tensor input, *, Tensor[]? out=None)",
    frexp_p,
    doc="(mantissa, exponent): input = mantissa * 2**exponent.",
    samples="(rand(3) + 0.5)",
    out=(
        "exact: torch.frexp() expects mantissa to have dtype {0.c} but got {1.c} | "
        "exact: torch.frexp() expects exponent to have int dtype but got {1.c}"
    ),
)


@operator(
    "inplace common",
    kernel=np.nextafter,
    node="NextafterBackward0",
    refuses={"biuc": "nextafter_cpu"},
    samples="(randn(3), randn(3))",
)
class nextafter:
    """The next number after `input` towards `other`."""

    self = lambda g, self, other: where(self != other, g, 0)
    other = lambda g, other: zeros_like(other)
