"""New tensors: from data, filled, ranges, diagonals, and such as another tensor."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import gradcli.engine.system.budget as budget
from gradcli.engine.core.batched_arrays import is_batched, zeros_of
from gradcli.engine.core.declaration import Array, DType, Ints, Number, Shape
from gradcli.engine.core.device import used
from gradcli.engine.core.modes import users_level
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.engine.registry.factory_arguments import (
    OPTIONS,
    finish,
    kind_of,
    makes,
    nonnegative,
    number,
    tensor_argument,
)
from gradcli.engine.registry.rule_helpers import refuse_if
from gradcli.engine.registry.table import Function, enter, function
from gradcli.engine.system import dtypes
from gradcli.engine.system.dtypes import scalar_name
from gradcli.engine.system.fma import fma32, fma64
from gradcli.operators.movement import legacy_constructors, nested_data
from gradcli.operators.movement.strides import empty_as

_COPY = (
    "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
    "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor)."
)


# -- from data ------------------------------------------------------------------------------------
_LEAF = "bool pin_memory=False, bool requires_grad=False)"


@function(
    f"tensor(Any data, *, ScalarType dtype=None, Device? device=None, {_LEAF}|function",
    samples="([[1.5, 2], [3, 4]]); (2.5)",
)
def tensor(
    data: Any,
    dtype: dtypes.dtype | None,
    device: Any,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A new leaf tensor with a copy of the data: a number, nested sequences, or an array."""
    kind = kind_of("tensor", dtype)
    if isinstance(data, Tensor):
        warnings.warn(_COPY, UserWarning, stacklevel=users_level())
    array = nested_data.array_of(data, kind)
    return finish("tensor", array, requires_grad, device, None, pin_memory)


@function(
    "as_tensor(Any data, *, ScalarType dtype=None, Device? device=None)|function",
    samples="([1.5, 2])",
)
def as_tensor(data: Any, dtype: dtypes.dtype | None = None, device: str | None = None) -> Any:
    """The data as a tensor: itself, or over the same memory, where that is possible."""
    kind = kind_of("as_tensor", dtype)
    if device is not None:
        used(device)
    if isinstance(data, Tensor):
        if kind is None or kind == data.array.dtype:
            return data
        return data.to(dtypes.of(kind))
    if isinstance(data, np.ndarray):
        return finish(
            "as_tensor", nested_data.of_array(_forward(data), kind, copy=False), False, device
        )
    return finish("as_tensor", nested_data.array_of(data, kind), False, device)


@function(
    "asarray(Any obj, *, ScalarType? dtype=None, Device? device=None, bool? copy=None, "
    "bool? requires_grad=None)|function",
    samples="([1.5, 2])",
)
def asarray(
    obj: Any, dtype: dtypes.dtype | None, device: Any, copy: bool | None, requires_grad: bool | None
) -> Tensor:
    """The data as a tensor; `copy` says whether memory may (None) or must (False) be shared."""
    kind = kind_of("asarray", dtype)
    own = obj.array.dtype if isinstance(obj, Tensor) else getattr(obj, "dtype", None)
    if copy is False and own is not None and kind not in (None, own):
        names = scalar_name(own), scalar_name(kind)
        raise ValueError(f"can't alias tensor with dtype '{names[0]}' into dtype '{names[1]}'.")
    if isinstance(obj, Tensor):
        out: Tensor = as_tensor(obj, dtype=dtype, device=device)
        if copy and out is obj:
            out = obj.clone()
        if requires_grad is False and not out.is_leaf:
            return out.detach()
        return out if requires_grad is None else out.requires_grad_(requires_grad)
    if isinstance(obj, np.ndarray):
        array = nested_data.of_array(obj, kind, copy=bool(copy))
    elif copy is False:
        raise ValueError("can't alias arbitrary sequence into a tensor.")
    else:
        array = nested_data.array_of(obj, kind)
    return finish("asarray", array, bool(requires_grad), device)


@function("from_dlpack(Any ext_tensor, *, Any device=None, Any copy=None)|python|function")
def from_dlpack(ext_tensor: Any, device: Any, copy: Any) -> Tensor:
    """A tensor over the memory of another package's array (`__dlpack__`); a copy where copy is True."""
    if device is not None:
        used(device)
    if type(ext_tensor).__name__ == "PyCapsule":
        ext_tensor = _Capsule(ext_tensor)
    if not hasattr(ext_tensor, "__dlpack__"):
        raise RuntimeError(
            "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed "
            "only once, so you might have already constructed a tensor from it once."
        )
    array = np.from_dlpack(ext_tensor)
    if not array.flags.writeable and not copy:  # NumPy takes the memory of others for reading alone
        array = _writeable(array)
    found: Tensor = from_numpy(array.copy() if copy else array)
    return found


class _Capsule:
    """What gives a capsule to NumPy, which asks objects for theirs."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def _writeable(array: Array) -> Array:
    """The same memory, for writing, as PyTorch has it; the array keeps it alive."""
    from numpy.lib.stride_tricks import as_strided

    interface = {**array.__array_interface__}
    interface["data"] = (interface["data"][0], False)
    holder = type("Memory", (), {"__array_interface__": interface, "array": array})()
    return as_strided(np.asarray(holder), array.shape, array.strides)


@function("from_numpy(Any ndarray)|python|function")
def from_numpy(ndarray: Any) -> Tensor:
    """A tensor over the memory of a NumPy array."""
    if not isinstance(ndarray, np.ndarray):
        kind = type(ndarray)
        name = f"numpy.{kind.__name__}" if kind.__module__ == "numpy" else kind.__name__
        raise TypeError(f"expected np.ndarray (got {name})")
    nested_data.of_array(ndarray[:0] if ndarray.ndim else ndarray, None, copy=False)
    if any(step < 0 for step in ndarray.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative "
            "strides are not currently supported. (You can probably work around this by making a "
            "copy of your array  with array.copy().) "
        )
    return wrap(ndarray)


def _forward(array: Array) -> Array:
    return array.copy() if any(step < 0 for step in array.strides) else array


# -- filled ---------------------------------------------------------------------------------------
@makes(f"scalar_tensor(Scalar s, *, {OPTIONS})", samples="(3)")
def scalar_tensor(s: Number, kind: DType | None) -> Array:
    """A 0-d tensor of a number; of the default dtype, whatever the number."""
    return np.asarray(dtypes.checked(s, kind or dtypes.default.real))


@makes(f"zeros(int[] size, *, Tensor out=None, {OPTIONS})", samples="(2, 3)")
def zeros(size: Shape, kind: DType | None) -> Array:
    """Zeros; the size is given as ints or as one sequence."""
    return np.zeros(nonnegative("zeros", size), kind or dtypes.default.real)


@makes(f"ones(int[] size, *, Tensor out=None, {OPTIONS})", samples="(2, 3)")
def ones(size: Shape, kind: DType | None) -> Array:
    """Ones; the size is given as ints or as one sequence."""
    return np.ones(nonnegative("ones", size), kind or dtypes.default.real)


@makes(
    f"empty(int[] size, *, MemoryFormat? memory_format=None, Tensor out=None, {OPTIONS})",
    samples="(2, 3)",
)
def empty(size: Shape, memory_format: Any, kind: DType | None) -> Array:
    """A tensor to be filled; here it starts with zeros, so that runs repeat."""
    return np.zeros(nonnegative("empty", size), kind or dtypes.default.real)


@makes(f"empty_strided(int[] size, int[] stride, *, {OPTIONS})")
def empty_strided(size: Shape, stride: Ints, kind: DType | None) -> Array:
    """A tensor to be filled, with the strides given in elements."""
    return _strided(size, stride, kind or dtypes.default.real)


def _strided(size: Shape, stride: Ints, kind: DType) -> Array:
    shape = nonnegative("empty_strided", size)
    if len(shape) != len(stride):
        raise RuntimeError(
            f"dimensionality of sizes ({len(shape)}) must match dimensionality of strides ({len(stride)})"
        )
    need = 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True)) if all(shape) else 0
    # A negative stride would reach memory before the tensor's own.
    if need * kind.itemsize >= 2**63 or (need and min(stride, default=0) < 0):
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(shape)} and strides={list(stride)}"
        )
    budget.elements(shape)
    steps = tuple(s * kind.itemsize for s in stride)
    return np.lib.stride_tricks.as_strided(np.zeros(need, kind), shape, steps)


@makes(
    f"full(int[] size, Scalar fill_value, *, Tensor out=None, {OPTIONS})", samples="((2, 3), 1.5)"
)
def full(size: Shape, fill_value: Number, kind: DType | None) -> Array:
    """A tensor of one number, whose type decides the dtype unless given."""
    kind = kind or dtypes.number_dtype(fill_value)
    return np.full(nonnegative("full", size), dtypes.checked(fill_value, kind), kind)


_LIKE = f"MemoryFormat? memory_format=None, {OPTIONS})"


def _like(name: str, value: int, doc: str, numpy: Any = None) -> Any:
    def filled(input: Tensor, memory_format: Any, kind: DType | None) -> Array:
        return _filled_like(input, value, kind)

    filled.__doc__ = doc
    signature = f"{name}(Tensor input, *, {_LIKE}"
    return makes(signature, samples=[f"{name}(randn(2, 3))"], numpy=numpy)(filled)


zeros_like = _like(
    "zeros_like", 0, "Zeros of the shape, dtype and layout of `input`.", np.zeros_like
)
ones_like = _like("ones_like", 1, "Ones of the shape, dtype and layout of `input`.", np.ones_like)
empty_like = _like(
    "empty_like",
    0,
    "A tensor to be filled, of the shape, dtype and layout of `input`; it starts with zeros.",
    np.empty_like,
)


@makes(f"full_like(Tensor input, Scalar fill_value, *, {_LIKE}", samples="(randn(2, 3), 1.5)")
def full_like(input: Tensor, fill_value: Number, memory_format: Any, kind: DType | None) -> Array:
    """One number in the shape, dtype and layout of `input`."""
    return _filled_like(input, fill_value, kind)


def _filled_like(like: Tensor, value: Number, kind: DType | None) -> Array:
    source = like.array
    kind = kind or source.dtype
    array = zeros_of(source, source.shape, kind) if is_batched(source) else empty_as(source, kind)
    array[...] = dtypes.checked(value, kind)
    return array


def _zeros(like: Tensor, shape: Shape, kind: DType) -> Any:
    """Zeros of a shape; of their own for every entry, where there are entries."""
    array = getattr(like, "array", like)
    return zeros_of(array, tuple(shape), kind) if is_batched(array) else np.zeros(shape, kind)


# -- as methods -----------------------------------------------------------------------------------
@makes(f"new_zeros(Tensor input, int[] size, *, {OPTIONS})|method", method=True)
def new_zeros(input: Tensor, size: Shape, kind: DType | None) -> Array:
    """Zeros of another size, of this tensor's dtype unless given."""
    return _zeros(input, nonnegative("new_zeros", size), kind or _dtype(input))


@makes(f"new_ones(Tensor input, int[] size, *, {OPTIONS})|method", method=True)
def new_ones(input: Tensor, size: Shape, kind: DType | None) -> Array:
    """Ones of another size, of this tensor's dtype unless given."""
    kind = kind or _dtype(input)
    return _zeros(input, nonnegative("new_ones", size), kind) + kind.type(1)


@makes(f"new_empty(Tensor input, int[] size, *, {OPTIONS})|method", method=True)
def new_empty(input: Tensor, size: Shape, kind: DType | None) -> Array:
    """A tensor to be filled, of this tensor's dtype unless given; it starts with zeros."""
    return _zeros(input, nonnegative("new_empty", size), kind or _dtype(input))


@makes(
    f"new_empty_strided(Tensor input, int[] size, int[] stride, *, {OPTIONS})|method", method=True
)
def new_empty_strided(input: Tensor, size: Shape, stride: Ints, kind: DType | None) -> Array:
    """A tensor to be filled, with the strides given in elements, of this tensor's dtype unless given."""
    found: Array = _strided(size, stride, kind or _dtype(input))
    return found


@makes(f"new_full(Tensor input, int[] size, Scalar fill_value, *, {OPTIONS})|method", method=True)
def new_full(input: Tensor, size: Shape, fill_value: float, kind: DType | None) -> Array:
    """One number in another size, of this tensor's dtype unless given."""
    kind = kind or _dtype(input)
    return np.full(nonnegative("new_full", size), dtypes.checked(fill_value, kind), kind)


@function(
    "new_tensor(Tensor input, Any data, *, ScalarType dtype=None, Device? device=None, "
    "bool requires_grad=False)|method"
)
def new_tensor(input: Tensor, data: Any, dtype: Any, device: Any, requires_grad: bool) -> Tensor:
    """A copy of the data, of this tensor's dtype unless given."""
    own = data.array.dtype if isinstance(data, Tensor) else _dtype(input)
    array = nested_data.array_of(data, kind_of("new_tensor", dtype, own))
    return finish("new_tensor", array, requires_grad, device)


def _new(input: Tensor, *data: Any, **named: Any) -> Tensor:
    """The legacy constructor of this tensor's dtype: sizes, or data."""
    return legacy_constructors.constructor(_dtype(input))(*data, **named)


enter(Function("new", _new, module=__name__, doc=_new.__doc__ or ""))


def _dtype(value: Tensor) -> DType:
    return tensor_argument("new", value, "self").array.dtype


# -- ranges ---------------------------------------------------------------------------------------
@makes(
    f"arange(Scalar end, *, Tensor out=None, {OPTIONS})",
    f"arange(Scalar start, Scalar end, *, {OPTIONS})",
    f"arange(Scalar start, Scalar end, Scalar step=1, *, Tensor out=None, {OPTIONS})",
    samples="(5); (0, 1, 0.25)",
)
def arange(*, end: float, kind: DType | None, start: float = 0, step: float = 1) -> Array:
    """Numbers from `start` (0) to before `end` by `step` (1): `arange([start,] end[, step])`."""
    if any(isinstance(n, complex) for n in (start, end, step)):
        raise RuntimeError("value cannot be converted to type double without overflow")
    if kind is None:
        whole = all(isinstance(n, int) for n in (start, end, step))
        kind = np.dtype(np.int64) if whole else dtypes.default.real
    if kind.kind in "bc":
        raise dtypes.not_implemented("arange_cpu", kind)
    return _arange(start, end, step, kind)


def _check_range(start: float, end: float, step: float) -> None:
    refuse_if(not (step > 0 or step < 0), "step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start:g} -> {end:g}")
    if (end < start) if step > 0 else (end > start):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")


def _arange(start: float, end: float, step: float, kind: DType) -> Array:
    _check_range(start, end, step)
    if kind.kind == "f":
        count = _count(math.ceil((float(end) - float(start)) / float(step)), kind)
        return _stepped(float(start), float(step), count, kind)
    if kind.itemsize == 8:
        first, last, by = int(start), int(end), int(step)
        refuse_if(not by, "step must be nonzero", error=ValueError)
        count = max(-((first - last) // by), 0)
    else:
        first, by = int(start), int(step)
        count = math.ceil((float(end) - float(start)) / float(step))
    with np.errstate(over="ignore"):
        return (np.arange(_count(count, kind)) * by + first).astype(kind)


def _count(count: int, kind: DType) -> int:
    refuse_if(not 0 <= count <= 2**53, "invalid size, possible overflow?")
    if count * max(kind.itemsize, 8) > 2**42:
        raise RuntimeError(
            f"DefaultCPUAllocator: can't allocate memory: you tried to allocate "
            f"{count * kind.itemsize} bytes."
        )
    return count


def _stepped(start: float, step: float, count: int, kind: DType) -> Array:
    """start + step * i, rounded as PyTorch's vector kernel does.

    It computes 32 bytes at a time, from a first value that is rounded to the dtype; what does not fill
    two such vectors is computed one by one.
    """
    lanes = 32 // kind.itemsize
    whole = count - count % (2 * lanes)
    index = np.arange(count, dtype=np.float64)
    first = nested_data.cast(fma64(index[:whole:lanes], step, start), kind).astype(np.float64)
    body = fma64(index[:lanes] if whole else index[:0], step, first[:, None])
    rest = fma64(index[whole:], step, start)
    return nested_data.cast(np.concatenate((body.ravel(), rest)), kind)


@makes(
    f"range(Scalar start, Scalar end, Scalar step=1, *, Tensor out=None, {OPTIONS})", name="range"
)
def range_(start: float, end: float, step: float, kind: DType | None) -> Array:
    """Numbers from `start` to `end`, that included; deprecated in PyTorch: use `arange`."""
    warnings.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is "
        "inconsistent with Python's range builtin. Instead, use torch.arange, which produces values "
        "in [start, end).",
        UserWarning,
        stacklevel=users_level(),
    )
    kind = kind or dtypes.default.real
    _check_range(start, end, step)
    count = _count(math.floor((float(end) - float(start)) / float(step)) + 1, kind)
    if kind.kind == "f":
        values: Array = np.arange(count, dtype=np.float64) * float(step) + float(start)
    else:
        values = np.arange(count) * int(step) + int(start)
    return nested_data.cast(values, kind)


def _spaces(name: str, more: str = "") -> list[str]:
    """The signatures of evenly spaced numbers, from and to numbers or 0-d tensors."""
    kinds = [(a, b) for b in ("Tensor", "Scalar") for a in ("Tensor", "Scalar")]
    return [
        f"{name}({a} start, {b} end, int steps, {more}*, Tensor out=None, {OPTIONS})"
        for a, b in kinds
    ]


@makes(*_spaces("linspace"), samples="(0, 1, 5)")
def linspace(start: Any, end: Any, steps: int, kind: DType | None) -> Array:
    """`steps` numbers from `start` to `end`, both included: `linspace(start, end, steps)`."""
    start, end = _spaced("linspace", start, end, steps)
    return _linear(start, end, steps, _spaced_kind("linspace", start, end, kind))


@makes(*_spaces("logspace", "float base=10.0, "), samples="(0, 2, 3)")
def logspace(start: Any, end: Any, steps: int, base: float, kind: DType | None) -> Array:
    """Powers of `base` (10): `base ** linspace(start, end, steps)`."""
    start, end = _spaced("logspace", start, end, steps)
    base = float(base)
    kind = _spaced_kind("logspace", start, end, kind)
    if kind.kind == "c":
        array = np.power(complex(base), _linear(start, end, steps, np.dtype(np.complex128)))
        return array.astype(kind)
    low, high = dtypes.checked(start, kind), dtypes.checked(end, kind)
    step = float(high - low) / (steps - 1) if steps > 1 else 0.0
    index = np.arange(steps, dtype=np.float64)
    exponents = np.where(
        index < steps // 2, float(low) + step * index, float(high) - step * (steps - 1 - index)
    )
    if steps == 1:
        exponents = np.array([float(low)])
    values = np.fromiter((_power(base, x) for x in exponents.tolist()), np.float64, steps)
    return nested_data.cast(values, kind)


def _power(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except (OverflowError, ValueError):
        with np.errstate(all="ignore"):
            return float(np.power(base, exponent))


def _spaced(name: str, start: Tensor | Number, end: Tensor | Number, steps: int) -> list[Any]:
    """The ends as Python's numbers."""
    ends = [start, end]
    if any(isinstance(e, Tensor) and e.array.ndim for e in ends):
        dims = [e.array.ndim if isinstance(e, Tensor) else 0 for e in ends]
        raise RuntimeError(
            f"{name} only supports 0-dimensional start and end tensors, but got start with "
            f"{dims[0]} dimension(s) and end with {dims[1]} dimension(s)."
        )
    values = [
        number(name, e.detach() if isinstance(e, Tensor) else e, n, i + 1)
        for i, (n, e) in enumerate(zip(("start", "end"), ends, strict=True))
    ]
    refuse_if(steps < 0, "number of steps must be non-negative")
    return values


def _spaced_kind(name: str, start: float, end: Number, given: DType | None) -> DType:
    default = dtypes.default.real
    if isinstance(start, complex) or isinstance(end, complex):
        default = dtypes.default.complex
    kind: DType = given or default
    if default.kind == "c" and kind.kind != "c":
        word = {"complex64": "c10::complex<float>", "complex128": "c10::complex<double>"}
        raise RuntimeError(
            f"torch.{name}(): inferred dtype {word[default.name]} can't be safely cast to passed "
            f"dtype {scalar_name(kind)}"
        )
    if kind.kind == "b":
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for 'Bool'")
    return kind


def _linear(start: float, end: Number, steps: int, kind: DType) -> Array:
    """Evenly spaced numbers; the second half is counted back from the end, as in PyTorch."""
    if kind.kind == "c":
        part = np.dtype(np.float32 if kind.itemsize == 8 else np.float64)
        array = np.empty(steps, kind)
        array.real = _linear(complex(start).real, complex(end).real, steps, part)
        array.imag = _linear(complex(start).imag, complex(end).imag, steps, part)
        return array
    low, high = dtypes.checked(start, kind), dtypes.checked(end, kind)
    if steps < 2:
        return np.full(steps, low, kind)
    up = np.arange(steps // 2)
    down = np.arange(steps - steps // 2)[::-1]
    if kind.kind == "f" and kind.itemsize == 2:
        step = (high - low) / np.float16(steps - 1)
        halves = (up.astype(kind) * step + low, high - down.astype(kind) * step)
    elif kind.kind == "f" and kind.itemsize == 4:
        step = (high - low) / np.float32(steps - 1)
        halves = (fma32(up, step, low), fma32(down, -step, high))
    else:
        step = (float(high) - float(low)) / float(steps - 1)
        halves = (
            fma64(up.astype(np.float64), step, float(low)),
            fma64(down.astype(np.float64), -step, float(high)),
        )
    return np.concatenate(halves).astype(kind)


# -- diagonals and triangles ----------------------------------------------------------------------
@makes(
    f"eye(int n, *, Tensor out=None, {OPTIONS})",
    f"eye(int n, int m, *, Tensor out=None, {OPTIONS})",
    samples="(3); (2, 3)",
)
def eye(*, n: int, kind: DType | None, m: int | None = None) -> Array:
    """Ones on the diagonal of an n x m (default: n x n) matrix, zeros elsewhere."""
    rows, columns = n, n if m is None else m
    for name, value in (("n", rows), ("m", columns)):
        refuse_if(value < 0, "{} must be greater or equal to 0, got {}", name, value)
    return np.eye(rows, columns, dtype=kind or dtypes.default.real)


def _triangle(name: str, indices: Callable[..., Any], doc: str) -> Any:
    def triangle(rows: int, columns: int, offset: int, kind: DType | None) -> Array:
        for what, value in (("row", rows), ("col", columns)):
            refuse_if(value < 0, "{} must be non-negative, got{}", what, value)
        kind = kind or np.dtype(np.int64)
        if kind.kind not in "iu":
            raise dtypes.not_implemented(name, kind)
        return np.array(indices(rows, offset, columns), kind)

    triangle.__doc__ = doc
    signature = f"{name}(int row, int col, int offset=0, *, {OPTIONS})"
    return makes(signature, samples=[f"{name}(3, 3)"])(triangle)


tril_indices = _triangle(
    "tril_indices",
    np.tril_indices,
    "The indices of a matrix's lower triangle, rows first, as a 2 x N tensor.",
)
triu_indices = _triangle(
    "triu_indices",
    np.triu_indices,
    "The indices of a matrix's upper triangle, rows first, as a 2 x N tensor.",
)


# -- complex numbers from their parts -------------------------------------------------------------
