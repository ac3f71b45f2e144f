"""`torch.fft`: discrete Fourier transforms, composed as PyTorch composes them."""

from __future__ import annotations

from collections.abc import Callable
from math import prod, sqrt
from typing import Any

import numpy as np

from gradcli.engine.core.declaration import Array, DType, Ints, Shape, Value
from gradcli.engine.core.tensor import Tensor, sized_dim, wrap_dim
from gradcli.engine.registry.factory_arguments import OPTIONS, makes, nonnegative
from gradcli.engine.registry.rule_helpers import constant, data, refuse_if
from gradcli.engine.registry.table import function, primitive, resolve
from gradcli.engine.system import dtypes
from gradcli.engine.system.array_memory import IN_MEMORY
from gradcli.engine.system.dtypes import scalar_name
from gradcli.operators.movement.joining import constant_pad_nd
from gradcli.operators.movement.strides import arranged

FAMILY = "fft"  # as `ops` calls it

_NONE, _ROOT, _BY_N = 0, 1, 2  # what a transform is divided by


# -- primitives -----------------------------------------------------------------------------------
def _scale(normalization: int, count: int) -> float:
    if normalization == _NONE:
        return 1.0
    return 1 / sqrt(count) if normalization == _ROOT else 1 / count


def _complex_kind(x: Array) -> Any:
    return np.result_type(x.dtype, np.complex64)


def _sized(out: Array, kind: DType, normalization: int, count: int) -> Any:
    scale = _scale(normalization, count)
    return (out if scale == 1 else out * scale).astype(kind, copy=False)


def _in_batches(out: Array, strides: Ints, dim: Any) -> Array:
    """A result that lies as MKL's: the dims that are not transformed first, in the input's order."""
    if out.ndim < 2 or not isinstance(out, IN_MEMORY):
        return out
    others = sorted({*range(out.ndim)} - {*dim}, key=lambda d: -strides[d])
    return arranged(out, [*others, *dim][::-1])


def _by_stride(strides: Ints, dim: Ints) -> list[int]:
    return sorted(dim, key=lambda d: -strides[d])


def _r2c_backward(g: Array, dim: Ints, normalization: int, onesided: bool, size: int) -> Any:
    """The real part of the inverse transform of what was kept, the rest taken as zero."""
    if onesided:
        missing = size - g.shape[dim[-1]]
        if missing > 0:
            pad = [0] * (2 * (g.ndim - dim[-1]))
            pad[2 * (g.ndim - 1 - dim[-1]) + 1] = missing
            g = constant_pad_nd(g, tuple(pad), 0)
    return fft_c2c(g, dim, normalization, False).real


@primitive("linear", node="FftC2CBackward0")
class fft_c2c:
    def forward(self: Array, dim: Ints, normalization: int, forward: bool) -> Array:
        count = prod(self.shape[d] for d in dim)
        if not dim:
            return self.copy()
        if forward:
            out = np.fft.fftn(self, axes=dim)
        else:
            out = np.fft.ifftn(self, axes=dim, norm="forward")
        found = _sized(out, _complex_kind(self), normalization, count)
        return _in_batches(found, self.strides, _by_stride(self.strides, dim))

    self = lambda g, dim, normalization, forward: fft_c2c(g, dim, normalization, not forward)


@primitive("linear", node="FftR2CBackward0", analytic=False)
class fft_r2c:
    def forward(self: Array, dim: Ints, normalization: int, onesided: bool) -> Array:
        count = prod(self.shape[d] for d in dim)
        out = np.fft.rfftn(self, axes=dim) if onesided else np.fft.fftn(self, axes=dim)
        found = _sized(out, _complex_kind(self), normalization, count)
        return _in_batches(found, self.strides, [*_by_stride(self.strides, dim[:-1]), dim[-1]])

    self = lambda g, self, dim, normalization, onesided: _r2c_backward(
        g, dim, normalization, onesided, self.shape[dim[-1]]
    )


@primitive("linear", node="FftC2RBackward0", analytic=False)
class fft_c2r:
    def forward(self: Array, dim: Ints, normalization: int, last_dim_size: int) -> Array:
        sizes = [self.shape[d] for d in dim[:-1]] + [last_dim_size]
        out = np.fft.irfftn(self, s=sizes, axes=dim, norm="forward")
        found = _sized(out, self.real.dtype, normalization, prod(sizes))
        strides = self.strides
        if len(dim) > 1:  # the first of two transforms, which PyTorch makes of many dims
            strides = _in_batches(self, strides, _by_stride(strides, dim[:-1])).strides
        return _in_batches(found, strides, dim[-1:])

    def self(g: Value, dim: Ints, normalization: int) -> Any:
        """The transform, with what stands for two coefficients counted twice."""
        out = fft_r2c(g, dim, normalization, True)
        size, kept = g.shape[dim[-1]], out.shape[dim[-1]]
        doubled = size - kept
        if doubled <= 0:
            return out
        weights = np.ones(kept, data(out).real.dtype)
        weights[1 : 1 + doubled] = 2
        shape = [1] * out.ndim
        shape[dim[-1]] = kept
        weights = weights.reshape(shape)
        return out * constant(weights, out)


# -- arguments ------------------------------------------------------------------------------------
def _normalization(name: str | None, forward: bool) -> int:
    if name in (None, "backward"):
        return _NONE if forward else _BY_N
    if name == "forward":
        return _BY_N if forward else _NONE
    if name == "ortho":
        return _ROOT
    raise RuntimeError(f'Invalid normalization mode: "{name}"')


def _kind(x: Tensor) -> Any:
    return x.array.dtype


def _is_complex(x: Tensor) -> bool:
    return bool(_kind(x).kind == "c")


def _promoted(x: Tensor, to_complex: bool) -> Any:
    """Integers as floats; real numbers as complex ones where asked."""
    kind = _kind(x)
    if kind.kind in "biu":
        kind = dtypes.default.real
    refuse_if(kind == np.float16, "Unsupported dtype Half")
    if to_complex and kind.kind != "c":
        kind = np.result_type(kind, np.complex64)
    return x if kind == _kind(x) else x.to(dtypes.of(kind))


def _resized(x: Tensor, dims: Ints, sizes: Shape) -> Any:
    """Dimensions cut or padded with zeros to sizes (-1: as they are)."""
    pad = [0] * (2 * x.ndim)
    needed = False
    for d, n in zip(dims, sizes, strict=True):
        if n == -1:
            continue
        if x.shape[d] < n:
            pad[2 * (x.ndim - 1 - d) + 1] = n - x.shape[d]
            needed = True
        if x.shape[d] > n:
            x = x.narrow(d, 0, n)
    return constant_pad_nd(x, tuple(pad), 0) if needed else x


def _one(name: str, x: Tensor, n: int | None, dim: int) -> tuple[int, int]:
    at = sized_dim(dim, x.ndim)
    size = x.shape[at] if n is None else n
    refuse_if(size < 1, "Invalid number of data points ({}) specified", size)
    return at, size


def _many(
    x: Tensor, s: Any, dim: Ints | None, last: int = 0
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(dims, sizes) of a transform over several dimensions."""
    if isinstance(dim, int):
        dim = (dim,)
    if isinstance(s, int):
        s = (s,)
    if dim is not None:
        dims = tuple(wrap_dim(d, x.ndim) for d in dim)
        refuse_if(len(set(dims)) != len(dims), "FFT dims must be unique")
    elif s is not None:
        if len(s) > x.ndim:
            raise RuntimeError(
                f"Got shape with {len(s)} values but input tensor only has {x.ndim} dimensions."
            )
        dims = tuple(range(x.ndim - len(s), x.ndim))
    else:
        dims = tuple(range(x.ndim))
    if s is not None:
        if len(s) != len(dims):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
        sizes = tuple(x.shape[d] if n == -1 else n for n, d in zip(s, dims, strict=True))
    else:
        sizes = tuple(x.shape[d] for d in dims)
    if any(n < 1 for n in sizes):
        bad = next(n for n in sizes if n < 1)
        raise RuntimeError(f"Invalid number of data points ({bad}) specified")
    return dims, sizes


# -- one dimension --------------------------------------------------------------------------------
def _to_complex(name: str, x: Tensor, n: int | None, dim: int, norm: str | None) -> Any:
    forward = name == "fft"
    at, size = _one("fft", x, n, dim)
    how = _normalization(norm, forward)
    x = _promoted(x, False)
    resized = _resized(x, (at,), (size,)) if n is not None else x
    if _is_complex(x):
        return fft_c2c(resized, (at,), how, forward)
    out = fft_r2c(resized, (at,), how, False)
    return out if forward else out.conj()


def _from_real(name: str, x: Tensor, n: int | None, dim: int, norm: str | None) -> Any:
    forward = name == "rfft"
    if _is_complex(x):
        raise RuntimeError(f"{name} expects a real input tensor, but got {scalar_name(x)}")
    x = _promoted(x, False)
    at, size = _one(name, x, n, dim)
    resized = _resized(x, (at,), (size,)) if n is not None else x
    out = fft_r2c(resized, (at,), _normalization(norm, forward), True)
    return out if forward else out.conj()


def _to_real(name: str, x: Tensor, n: int | None, dim: int, norm: str | None) -> Any:
    forward = name == "hfft"
    x = _promoted(x, True)
    if not x.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    at = wrap_dim(dim, x.ndim)
    size = 2 * (x.shape[at] - 1) if n is None else n
    refuse_if(size < 1, "Invalid number of data points ({}) specified", size)
    if n is not None:
        x = _resized(x, (at,), (size // 2 + 1,))
    if forward:
        x = x.conj()
    return fft_c2r(x, (at,), _normalization(norm, forward), size)


def _one_dimension(
    name: str,
    doc: str,
    call: Callable[..., Any],
    primitives: list[Any],
    *samples: str,
    **about: Any,
) -> Any:
    def body(input: Tensor, n: int | None, dim: int, norm: str | None) -> Any:
        return call(name, input, n, dim, norm)

    body.__doc__, body.__module__ = doc, __name__
    signature = (
        f"fft.{name}(Tensor input, int? n=None, int dim=-1, str? norm=None, *, Tensor? out=None)"
    )
    taken = _taken(name, name)

    def of_real(input: Tensor, *others: Any) -> str:
        return f"{taken} & exact: found" if input.array.dtype.kind == "f" else taken

    conjugates = name in ("ifft", "ihfft")  # by an operation that makes no other dtype
    about |= {"samples": [f"fft.{name}({s})" for s in samples]}
    about |= {"out": of_real if conjugates else taken}
    return function(signature, primitives=primitives, **about)(body)


def _taken(name: str, title: str) -> str:
    """The dtypes of `out` that a transform takes; title: its name in messages."""
    if name.startswith(("fft", "ifft", "rfft", "ihfft")):
        return f"only FD: {title} expects a complex output tensor, but got {{1}}"
    return f"only efd: {title} expects a floating point output tensor, but got {{1}}"


fft = _one_dimension(
    "fft",
    "The discrete Fourier transform.",
    _to_complex,
    [fft_c2c, fft_r2c],
    *("randn(4)", "randn(3,4), n=3, dim=0"),
    numpy=np.fft.fft,
)
ifft = _one_dimension("ifft", "The inverse of fft.", _to_complex, [fft_c2c, fft_r2c], "randn(4)")
rfft = _one_dimension(
    "rfft",
    "The half of fft that says all about a real signal.",
    _from_real,
    [fft_r2c],
    *("randn(5)", "randn(3,6), n=4, dim=0, norm='forward'"),
)
irfft = _one_dimension("irfft", "The inverse of rfft.", _to_real, [fft_c2r], "fft.rfft(randn(6))")
hfft = _one_dimension(
    "hfft",
    "The transform of a signal of which a conjugate-symmetric half is given.",
    _to_real,
    [fft_c2r],
    "fft.rfft(randn(6))",
)
ihfft = _one_dimension("ihfft", "The inverse of hfft.", _from_real, [fft_r2c], "randn(5)")


# -- several dimensions ---------------------------------------------------------------------------
def _complex_n(name: str, x: Tensor, s: Any, dim: Ints | None, norm: str | None) -> Any:
    forward = name.startswith("fft")
    dims, sizes = _many(x, s, dim)
    x = _resized(_promoted(x, True), dims, sizes)
    return fft_c2c(x, dims, _normalization(norm, forward), forward)


def _real_n(name: str, x: Tensor, s: Any, dim: Ints | None, norm: str | None) -> Any:
    if _is_complex(x):
        raise RuntimeError(f"rfftn expects a real-valued input tensor, but got {scalar_name(x)}")
    x = _promoted(x, False)
    dims, sizes = _many(x, s, dim)
    refuse_if(not dims, "{} must transform at least one axis", name)
    return fft_r2c(_resized(x, dims, sizes), dims, _normalization(norm, True), True)


def _half_sizes(name: str, x: Tensor, s: Any, dim: Ints | None) -> tuple[Any, Any, int]:
    """(dims, sizes of the input, size of the last dimension of the result)."""
    dims, sizes = _many(x, s, dim)
    refuse_if(not dims, "{} must transform at least one axis", name)
    given = None if s is None else (s if isinstance(s, (tuple, list)) else (s,))[-1]
    last = 2 * (x.shape[dims[-1]] - 1) if given in (None, -1) else given
    refuse_if(last < 1, "Invalid number of data points ({}) specified", last)
    return dims, (*sizes[:-1], last // 2 + 1), last


def _inverse_real_n(name: str, x: Tensor, s: Any, dim: Ints | None, norm: str | None) -> Any:
    x = _promoted(x, True)
    dims, sizes, last = _half_sizes(name, x, s, dim)
    return fft_c2r(_resized(x, dims, sizes), dims, _normalization(norm, False), last)


def _hermitian_n(name: str, x: Tensor, s: Any, dim: Ints | None, norm: str | None) -> Any:
    x = _promoted(x, True)
    dims, sizes, last = _half_sizes(name, x, s, dim)
    x = _resized(x, dims, sizes)
    how = _normalization(norm, True)
    if len(dims) > 1:
        x = fft_c2c(x, dims[:-1], how, True)
    return fft_c2r(x.conj(), dims[-1:], how, last)


def _inverse_hermitian_n(name: str, x: Tensor, s: Any, dim: Ints | None, norm: str | None) -> Any:
    if _is_complex(x):
        raise RuntimeError(f"Only supports floating-point dtypes, but found: {scalar_name(x)}")
    x = _promoted(x, False)
    dims, sizes = _many(x, s, dim)
    refuse_if(not dims, "{} must transform at least one axis", name)
    how = _normalization(norm, False)
    half = fft_r2c(_resized(x, dims, sizes), dims[-1:], how, True)
    if len(dims) == 1:
        return half.conj()
    return fft_c2c(resolve("conj_physical")(half), dims[:-1], how, False)


def _enter(
    stem: str, doc: str, call: Callable[..., Any], sample: str, primitives: list[Any]
) -> None:
    """`STEM2` and `STEMn`."""
    last = "int[1] dim=[-2, -1]", "the last two dimensions"
    for suffix, (dim, words) in (("2", last), ("n", ("int[1]? dim=None", "several dimensions"))):
        _over(f"{stem}{suffix}", dim, f"{doc} over {words}.", call, sample, primitives)


def _over(
    name: str, dim: str, doc: str, call: Callable[..., Any], sample: str, primitives: list[Any]
) -> None:
    def body(input: Tensor, s: Any, dim: Ints | None, norm: str | None) -> Any:
        return call(name, input, s, dim, norm)

    body.__doc__, body.__module__ = doc, __name__
    signature = (
        f"fft_{name}(Tensor input, int[1]? s=None, {dim}, str? norm=None, *, Tensor out=None)"
    )
    title = "fftn" if call is _complex_n else f"{name[:-1]}n"
    facts: Any = {"samples": [f"fft.{name}({sample})"], "out": _taken(name, title)}
    function(signature, name=f"fft.{name}", method=False, primitives=primitives, **facts)(body)


_enter("fft", "The discrete Fourier transform", _complex_n, "randn(3,4)", [fft_c2c])
_enter("ifft", "The inverse transform", _complex_n, "randn(3,4)", [fft_c2c])
_enter("rfft", "The transform of a real signal, one half", _real_n, "randn(3,4)", [fft_r2c])
_enter("irfft", "The inverse of rfft", _inverse_real_n, "fft.rfftn(randn(3,4))", [fft_c2r])
_enter(
    "hfft",
    "The transform of a conjugate-symmetric half",
    _hermitian_n,
    "fft.rfftn(randn(3,4))",
    [fft_c2c, fft_c2r],
)
_enter("ihfft", "The inverse of hfft", _inverse_hermitian_n, "randn(3,4)", [fft_c2c, fft_r2c])


# -- order and frequencies ------------------------------------------------------------------------
def _shift(input: Tensor, dim: Ints | None, back: bool) -> Any:
    if dim is None:
        dims = tuple(range(input.ndim))
    else:
        dims = tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
        dims = tuple(wrap_dim(d, input.ndim) for d in dims)
    halves = [(input.shape[d] + back) // 2 for d in dims]
    return input.roll(tuple(halves), dims)


@function("fft.fftshift(Tensor input, int[1]? dim=None)", samples="(randn(5))")
def fftshift(input: Tensor, dim: Ints) -> Any:
    """The zero frequency moved to the middle."""
    return _shift(input, dim, False)


@function("fft.ifftshift(Tensor input, int[1]? dim=None)", samples="(randn(5))")
def ifftshift(input: Tensor, dim: Any) -> Any:
    """The inverse of fftshift."""
    return _shift(input, dim, True)


_FREQUENCIES = f"int n, float d=1.0, *, Tensor out=None, {OPTIONS})"


def _check_frequencies(name: str, kind: DType | None) -> None:
    if kind is not None and kind.kind not in "fc":
        raise RuntimeError(f"{name} requires a floating point or complex dtype")
    if kind is not None and kind.kind == "c":
        raise dtypes.not_implemented("arange_cpu", kind)


@makes(f"fft_fftfreq({_FREQUENCIES}", name="fft.fftfreq", samples="(5)")
def fftfreq(n: int, d: float, kind: DType | None) -> Array:
    """The frequencies of fft's coefficients."""
    _check_frequencies("fftfreq", kind)
    (count,) = nonnegative("fft_fftfreq", (n,))
    values = np.fft.fftfreq(count, d) if count else np.zeros(0)
    return values.astype(kind or dtypes.default.real)


@makes(f"fft_rfftfreq({_FREQUENCIES}", name="fft.rfftfreq", samples="(5)")
def rfftfreq(n: int, d: float, kind: DType | None) -> Array:
    """The frequencies of rfft's coefficients."""
    _check_frequencies("rfftfreq", kind)
    return (np.arange(n // 2 + 1) / (n * d)).astype(kind or dtypes.default.real)
