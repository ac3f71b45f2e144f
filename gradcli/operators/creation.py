"""New tensors: from data, filled, ranges, diagonals, and such as another tensor."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.engine import dtypes
from gradcli.engine.batch import is_batched, zeros_of
from gradcli.engine.fma import fma32, fma64
from gradcli.engine.tensor import Tensor, wrap
from gradcli.operators import legacy, nested, sampling
from gradcli.operators.arguments import (
    OPTIONS,
    OUT,
    finish,
    invalid,
    kind_of,
    listed,
    number,
    shape_of,
    size_error,
    sizes,
    tensor_argument,
    type_name,
)
from gradcli.operators.layout import empty_as
from gradcli.operators.table import Array, function, is_array, operator, resolve

Kind = np.dtype[Any]

_COPY = (
    "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
    "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor)."
)


# -- from data ------------------------------------------------------------------------------------
@function(method=False, samples=("tensor([[1.5, 2], [3, 4]])", "tensor(2.5)"))
def tensor(
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A new leaf tensor with a copy of the data: a number, nested sequences, or an array."""
    kind = kind_of("tensor", dtype)
    if isinstance(data, Tensor):
        warnings.warn(_COPY, UserWarning, stacklevel=2)
    array = nested.array_of(data, kind)
    return finish("tensor", array, requires_grad, device, None, pin_memory)


@function(method=False, samples=("as_tensor([1.5, 2])",))
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Any:
    """The data as a tensor: itself, or over the same memory, where that is possible."""
    kind = kind_of("as_tensor", dtype)
    if isinstance(data, Tensor):
        if kind is None or kind == data.array.dtype:
            return data
        return data.to(dtypes.of(kind))
    if isinstance(data, np.ndarray):
        return finish("as_tensor", nested.of_array(_forward(data), kind, copy=False), False, device)
    return finish("as_tensor", nested.array_of(data, kind), False, device)


@function(method=False, samples=("asarray([1.5, 2])",))
def asarray(
    obj: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """The data as a tensor; `copy` says whether memory may (None) or must (False) be shared."""
    kind = kind_of("asarray", dtype)
    own = obj.array.dtype if isinstance(obj, Tensor) else getattr(obj, "dtype", None)
    if copy is False and own is not None and kind not in (None, own):
        names = _word(own), _word(kind)
        raise ValueError(f"can't alias tensor with dtype '{names[0]}' into dtype '{names[1]}'.")
    if isinstance(obj, Tensor):
        out: Tensor = as_tensor(obj, dtype, device)
        if copy and out is obj:
            out = obj.clone()
        if requires_grad is False and not out.is_leaf:
            return out.detach()
        return out if requires_grad is None else out.requires_grad_(requires_grad)
    if isinstance(obj, np.ndarray):
        array = nested.of_array(obj, kind, copy=bool(copy))
    elif copy is False:
        raise ValueError("can't alias arbitrary sequence into a tensor.")
    else:
        array = nested.array_of(obj, kind)
    return finish("asarray", array, bool(requires_grad), device)


@function(method=False)
def from_numpy(ndarray: Any) -> Tensor:
    """A tensor over the memory of a NumPy array."""
    if not isinstance(ndarray, np.ndarray):
        kind = type(ndarray)
        name = (
            kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
        )
        raise TypeError(f"expected np.ndarray (got {name})")
    nested.of_array(ndarray[:0] if ndarray.ndim else ndarray, None, copy=False)
    if any(step < 0 for step in ndarray.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative "
            "strides are not currently supported. (You can probably work around this by making a "
            "copy of your array  with array.copy().) "
        )
    return wrap(ndarray)


def _word(kind: Kind) -> str:
    return dtypes.SCALAR_NAMES[dtypes.of(kind).name]


def _forward(array: Array) -> Array:
    return array.copy() if any(step < 0 for step in array.strides) else array


@function(method=False, samples=("scalar_tensor(3)",))
def scalar_tensor(
    s: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A 0-d tensor of a number; of the default dtype, whatever the number."""
    value = number("scalar_tensor", s, "s", 1)
    kind = kind_of("scalar_tensor", dtype, dtypes.default.real)
    array = np.asarray(dtypes.checked(value, kind))
    return finish("scalar_tensor", array, requires_grad, device, layout, pin_memory)


# -- filled ---------------------------------------------------------------------------------------
@function(method=False, samples=("zeros(2, 3)",))
@listed()
def zeros(
    *size: Any,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    **named: Any,
) -> Tensor:
    """Zeros; the size is given as ints or as one sequence."""
    kind = kind_of("zeros", dtype, dtypes.default.real)
    array = np.zeros(sizes("zeros", size, named), kind)
    return finish("zeros", array, requires_grad, device, layout, pin_memory)


@function(method=False, samples=("ones(2, 3)",))
@listed()
def ones(
    *size: Any,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    **named: Any,
) -> Tensor:
    """Ones; the size is given as ints or as one sequence."""
    kind = kind_of("ones", dtype, dtypes.default.real)
    array = np.ones(sizes("ones", size, named), kind)
    return finish("ones", array, requires_grad, device, layout, pin_memory)


@function(method=False, samples=("empty(2, 3)",))
@listed()
def empty(
    *size: Any,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    memory_format: Any = None,
    **named: Any,
) -> Tensor:
    """A tensor to be filled; here it starts with zeros, so that runs repeat."""
    kind = kind_of("empty", dtype, dtypes.default.real)
    array = np.zeros(sizes("empty", size, named), kind)
    return finish("empty", array, requires_grad, device, layout, pin_memory)


@function(method=False)
def empty_strided(
    size: Any,
    stride: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor to be filled, with the strides given in elements."""
    kind = kind_of("empty_strided", dtype, dtypes.default.real)
    shape, steps = shape_of("empty_strided", size), tuple(int(s) for s in stride)
    if len(shape) != len(steps):
        raise RuntimeError(
            "mismatch in length of strides and shape" if len(steps) else "strides are missing"
        )
    need = 1 + sum((n - 1) * s for n, s in zip(shape, steps, strict=True)) if all(shape) else 0
    array = np.lib.stride_tricks.as_strided(
        np.zeros(need, kind), shape, tuple(s * kind.itemsize for s in steps)
    )
    return finish("empty_strided", array, requires_grad, device, layout, pin_memory)


# The options of every function that makes a tensor, as a signature has them.
_OPTIONS = (
    "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool pin_memory=False, "
    "bool requires_grad=False"
)


@function(
    f"full(int[] size, Scalar fill_value, *, Tensor? out=None, {_OPTIONS})",
    method=False,
    samples=("full((2, 3), 1.5)",),
)
def full(
    size: Any,
    fill_value: Any,
    dtype: Any,
    layout: Any,
    device: Any,
    pin_memory: bool,
    requires_grad: bool,
) -> Tensor:
    """A tensor of one number, whose type decides the dtype unless given."""
    kind = kind_of("full", dtype, dtypes.number_dtype(fill_value))
    array = np.full(shape_of("full", size), dtypes.checked(fill_value, kind), kind)
    return finish("full", array, requires_grad, device, layout, pin_memory)


def _like(name: str, value: int, doc: str, numpy: Any = None) -> Any:
    def filled(input: Array, *options: Any) -> Tensor:
        return _filled_like(name, input, value, *options)

    filled.__doc__ = doc
    return function(
        f"{name}(Tensor input, *, {_OPTIONS}, MemoryFormat? memory_format=None)",
        method=False,
        name=name,
        samples=[f"{name}(randn(2, 3))"],
        numpy=numpy,
    )(filled)


zeros_like = _like(
    "zeros_like", 0, "Zeros of the shape, dtype and layout of `input`.", np.zeros_like
)
ones_like = _like("ones_like", 1, "Ones of the shape, dtype and layout of `input`.", np.ones_like)
empty_like = _like(
    "empty_like",
    0,
    "A tensor to be filled, of the shape, dtype and layout of `input`; it starts with zeros.",
)


@function(
    f"full_like(Tensor input, Scalar fill_value, *, {_OPTIONS}, MemoryFormat? memory_format=None)",
    method=False,
    samples=("full_like(randn(2, 3), 1.5)",),
)
def full_like(input: Array, fill_value: Any, *options: Any) -> Tensor:
    """One number in the shape, dtype and layout of `input`."""
    return _filled_like("full_like", input, fill_value, *options)


def _filled_like(
    name: str,
    like: Any,
    value: Any,
    dtype: Any,
    layout: Any,
    device: Any,
    pin_memory: Any,
    requires_grad: Any,
    memory_format: Any,
) -> Tensor:
    source = like.array
    kind = kind_of(name, dtype, source.dtype)
    array = zeros_of(source, source.shape, kind) if is_batched(source) else empty_as(source, kind)
    array[...] = dtypes.checked(value, kind)
    return finish(name, array, requires_grad, device, layout, pin_memory)


def _zeros(like: Any, shape: Any, kind: Any) -> Any:
    """Zeros of a shape; of their own for every entry, where there are entries."""
    array = getattr(like, "array", like)
    return zeros_of(array, tuple(shape), kind) if is_batched(array) else np.zeros(shape, kind)


# -- as methods -----------------------------------------------------------------------------------
@function()
@listed()
def new_zeros(
    input: Array,
    *size: Any,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    **named: Any,
) -> Tensor:
    """Zeros of another size, of this tensor's dtype unless given."""
    shape = sizes("new_zeros", size, named)
    kind = kind_of("new_zeros", dtype, _dtype(input))
    array = _zeros(input, shape, kind)
    return finish("new_zeros", array, requires_grad, device, layout, pin_memory)


@function()
@listed()
def new_ones(
    input: Array,
    *size: Any,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    **named: Any,
) -> Tensor:
    """Ones of another size, of this tensor's dtype unless given."""
    shape = sizes("new_ones", size, named)
    kind = kind_of("new_ones", dtype, _dtype(input))
    array = _zeros(input, shape, kind) + kind.type(1)
    return finish("new_ones", array, requires_grad, device, layout, pin_memory)


@function()
@listed()
def new_empty(
    input: Array,
    *size: Any,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    **named: Any,
) -> Tensor:
    """A tensor to be filled, of this tensor's dtype unless given; it starts with zeros."""
    shape = sizes("new_empty", size, named)
    kind = kind_of("new_empty", dtype, _dtype(input))
    array = _zeros(input, shape, kind)
    return finish("new_empty", array, requires_grad, device, layout, pin_memory)


@function()
def new_full(
    input: Array,
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """One number in another size, of this tensor's dtype unless given."""
    if not isinstance(size, (tuple, list)):
        raise size_error("new_full", 1, size)
    value = number("new_full", fill_value, "fill_value", 2)
    kind = kind_of("new_full", dtype, _dtype(input))
    array = np.full(shape_of("new_full", size), dtypes.checked(value, kind), kind)
    return finish("new_full", array, requires_grad, device, layout, pin_memory)


@function()
def new_tensor(
    input: Array,
    data: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """A copy of the data, of this tensor's dtype unless given."""
    if isinstance(data, Tensor):
        kind = kind_of("new_tensor", dtype, data.array.dtype)
    else:
        kind = kind_of("new_tensor", dtype, _dtype(input))
    array = nested.array_of(data, kind)
    return finish("new_tensor", array, requires_grad, device, layout, pin_memory)


@function()
def new(input: Array, *data: Any, device: Any = None) -> Tensor:
    """The legacy constructor of this tensor's dtype: sizes, or data."""
    return legacy.construct(_dtype(input), data, device)


def _dtype(value: Any) -> Kind:
    return tensor_argument("new", value, "self").array.dtype  # type: ignore[no-any-return]


# -- ranges ---------------------------------------------------------------------------------------
@function(method=False, samples=("arange(5)", "arange(0, 1, 0.25)"))
@listed("start", "end", "step")
def arange(
    *args: Any,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    **named: Any,
) -> Tensor:
    """Numbers from `start` (0) to before `end` by `step` (1): `arange([start,] end[, step])`."""
    bounds = _bounds("arange", args, named)
    start, end, step = (
        number("arange", v, n, i + 1 if len(args) > 1 else 1)
        for i, (n, v) in enumerate(zip(("start", "end", "step"), bounds, strict=True))
    )
    kind = kind_of("arange", dtype)
    if any(isinstance(n, complex) for n in (start, end, step)):
        raise RuntimeError("value cannot be converted to type double without overflow")
    if kind is None:
        whole = all(isinstance(n, int) for n in (start, end, step))
        kind = np.dtype(np.int64) if whole else dtypes.default.real
    if kind.kind in "bc":
        word = _word(kind)
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{word}'")
    array = _arange(start, end, step, kind)
    return finish("arange", array, requires_grad, device, layout, pin_memory)


def _bounds(name: str, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, Any, Any]:
    forms = (
        f"Number end, *, {OUT}, {OPTIONS}",
        f"Number start, Number end, *, {OPTIONS}",
        f"Number start, Number end, Number step = 1, *, {OUT}, {OPTIONS}",
    )
    given = dict(zip(("end",) if len(args) == 1 else ("start", "end", "step"), args, strict=False))
    if len(args) == 1 and "end" in named:
        given = {"start": args[0]}
    unknown = [key for key in named if key not in ("start", "end", "step")]
    if unknown:
        raise TypeError(f"{name}() got an unexpected keyword argument '{unknown[0]}'")
    fits = len(args) <= 3 and not given.keys() & named.keys()
    given |= named
    if not fits or "end" not in given or ("step" in given and "start" not in given):
        raise invalid(name, args, named, *forms)
    return given.get("start", 0), given["end"], given.get("step", 1)


def _check_range(start: Any, end: Any, step: Any) -> None:
    if not (step > 0 or step < 0):
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start:g} -> {end:g}")
    if (end < start) if step > 0 else (end > start):
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")


def _arange(start: Any, end: Any, step: Any, kind: Kind) -> Array:
    _check_range(start, end, step)
    if kind.kind == "f":
        count = _count(math.ceil((float(end) - float(start)) / float(step)), kind)
        return _stepped(float(start), float(step), count, kind)
    if kind.itemsize == 8:
        first, last, by = int(start), int(end), int(step)
        if not by:
            raise ValueError("step must be nonzero")
        count = max(-((first - last) // by), 0)
    else:
        first, by = int(start), int(step)
        count = math.ceil((float(end) - float(start)) / float(step))
    with np.errstate(over="ignore"):
        return (np.arange(_count(count, kind)) * by + first).astype(kind)


def _count(count: int, kind: Kind) -> int:
    if not 0 <= count <= 2**53:
        raise RuntimeError("invalid size, possible overflow?")
    if count * max(kind.itemsize, 8) > 2**42:
        raise RuntimeError(
            f"DefaultCPUAllocator: can't allocate memory: you tried to allocate "
            f"{count * kind.itemsize} bytes."
        )
    return count


def _stepped(start: float, step: float, count: int, kind: Kind) -> Array:
    """start + step * i, rounded as PyTorch's vector kernel does.

    It computes 32 bytes at a time, from a first value that is rounded to the dtype; what does not fill
    two such vectors is computed one by one.
    """
    lanes = 32 // kind.itemsize
    whole = count - count % (2 * lanes)
    index = np.arange(count, dtype=np.float64)
    first = nested.cast(fma64(index[:whole:lanes], step, start), kind).astype(np.float64)
    body = fma64(index[:lanes] if whole else index[:0], step, first[:, None])
    rest = fma64(index[whole:], step, start)
    return nested.cast(np.concatenate((body.ravel(), rest)), kind)


@function(method=False, name="range")
def range_(
    start: Any = 0,
    end: Any = None,
    step: Any = 1,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Numbers from `start` to `end`, that included; deprecated in PyTorch: use `arange`."""
    if end is None:
        raise TypeError('range() missing 1 required positional arguments: "end"')
    warnings.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is "
        "inconsistent with Python's range builtin. Instead, use torch.arange, which produces values "
        "in [start, end).",
        UserWarning,
        stacklevel=2,
    )
    values: Array
    first, last, by = (
        number("range", v, n, i + 1)
        for i, (n, v) in enumerate((("start", start), ("end", end), ("step", step)))
    )
    kind = kind_of("range", dtype, dtypes.default.real)
    _check_range(first, last, by)
    count = _count(math.floor((float(last) - float(first)) / float(by)) + 1, kind)
    if kind.kind == "f":
        values = np.arange(count, dtype=np.float64) * float(by) + float(first)
    else:
        values = np.arange(count) * int(by) + int(first)
    return finish("range", nested.cast(values, kind), requires_grad, device, layout, pin_memory)


def _spaces(name: str, more: str = "") -> list[str]:
    """The signatures of evenly spaced numbers, from and to numbers or 0-d tensors."""
    kinds = [(a, b) for b in ("Tensor", "Scalar") for a in ("Tensor", "Scalar")]
    return [
        f"{name}({a} start, {b} end, int steps, {more}*, Tensor? out=None, {_OPTIONS})"
        for a, b in kinds
    ]


@function(*_spaces("linspace"), method=False, samples=("linspace(0, 1, 5)",))
def linspace(
    start: Any,
    end: Any,
    steps: int,
    dtype: Any,
    layout: Any,
    device: Any,
    pin_memory: bool,
    requires_grad: bool,
) -> Tensor:
    """`steps` numbers from `start` to `end`, both included: `linspace(start, end, steps)`."""
    start, end = _spaced("linspace", start, end, steps)
    kind = _spaced_kind("linspace", start, end, dtype)
    array = _linear(start, end, steps, kind)
    return finish("linspace", array, requires_grad, device, layout, pin_memory)


@function(*_spaces("logspace", "float base=10.0, "), method=False, samples=("logspace(0, 2, 3)",))
def logspace(
    start: Any,
    end: Any,
    steps: int,
    base: float,
    dtype: Any,
    layout: Any,
    device: Any,
    pin_memory: bool,
    requires_grad: bool,
) -> Tensor:
    """Powers of `base` (10): `base ** linspace(start, end, steps)`."""
    start, end = _spaced("logspace", start, end, steps)
    base = float(base)
    kind = _spaced_kind("logspace", start, end, dtype)
    if kind.kind == "c":
        array = np.power(complex(base), _linear(start, end, steps, np.dtype(np.complex128)))
        return finish("logspace", array.astype(kind), requires_grad, device, layout, pin_memory)
    low, high = dtypes.checked(start, kind), dtypes.checked(end, kind)
    step = float(high - low) / (steps - 1) if steps > 1 else 0.0
    index = np.arange(steps, dtype=np.float64)
    exponents = np.where(
        index < steps // 2, float(low) + step * index, float(high) - step * (steps - 1 - index)
    )
    if steps == 1:
        exponents = np.array([float(low)])
    values = np.fromiter((_power(base, x) for x in exponents.tolist()), np.float64, steps)
    array = nested.cast(values, kind)
    return finish("logspace", array, requires_grad, device, layout, pin_memory)


def _power(base: float, exponent: float) -> float:
    try:
        return math.pow(base, exponent)
    except (OverflowError, ValueError):
        with np.errstate(all="ignore"):
            return float(np.power(base, exponent))


def _spaced(name: str, start: Any, end: Any, steps: int) -> list[Any]:
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
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    return values


def _spaced_kind(name: str, start: Any, end: Any, dtype: Any) -> Kind:
    default = dtypes.default.real
    if isinstance(start, complex) or isinstance(end, complex):
        default = dtypes.default.complex
    kind: Kind = kind_of(name, dtype, default)
    if default.kind == "c" and kind.kind != "c":
        word = {"complex64": "c10::complex<float>", "complex128": "c10::complex<double>"}
        raise RuntimeError(
            f"torch.{name}(): inferred dtype {word[default.name]} can't be safely cast to passed "
            f"dtype {_word(kind)}"
        )
    if kind.kind == "b":
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for 'Bool'")
    return kind


def _linear(start: Any, end: Any, steps: int, kind: Kind) -> Array:
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
@function(
    f"eye(int n, *, Tensor? out=None, {_OPTIONS})",
    f"eye(int n, int m, *, Tensor? out=None, {_OPTIONS})",
    method=False,
    samples=("eye(3)", "eye(2, 3)"),
)
def eye(
    n: int,
    m: int | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Ones on the diagonal of an n x m (default: n x n) matrix, zeros elsewhere."""
    rows, columns = n, n if m is None else m
    for name, value in (("n", rows), ("m", columns)):
        if value < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {value}")
    array = np.eye(rows, columns, dtype=kind_of("eye", dtype, dtypes.default.real))
    return finish("eye", array, requires_grad, device, layout, pin_memory)


def _triangle(name: str, indices: Callable[..., Any], doc: str) -> Any:
    def triangle(
        rows: int,
        columns: int,
        offset: int,
        dtype: Any,
        layout: Any,
        device: Any,
        pin_memory: bool,
        requires_grad: bool,
    ) -> Tensor:
        for what, value in (("row", rows), ("col", columns)):
            if value < 0:
                raise RuntimeError(f"{what} must be non-negative, got{value}")
        kind = kind_of(name, dtype, np.dtype(np.int64))
        if kind.kind not in "iu":
            word = _word(kind)
            raise NotImplementedError(f"\"{name}\" not implemented for '{word}'")
        found = indices(rows, offset, columns)
        made = np.array(found, kind)
        return finish(name, made, requires_grad, device, layout, pin_memory)

    triangle.__doc__ = doc
    signature = f"{name}(int row, int col, int offset=0, *, {_OPTIONS})"
    return function(signature, method=False, name=name, samples=[f"{name}(3, 3)"])(triangle)


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
def _check_parts(name: str, real: str, a: Array, b: Array) -> None:
    for i, (argument, part) in enumerate(((real, a), ("imag" if real == "real" else "angle", b))):
        if not is_array(part):
            raise TypeError(
                f"{name}(): argument '{argument}' (position {i + 1}) must be Tensor, not "
                f"{type_name(part)}"
            )
    names = [dtypes.SCALAR_NAMES[dtypes.of(x.dtype).name] for x in (a, b)]
    if a.dtype.kind != "f" or b.dtype.kind != "f":
        raise RuntimeError(
            "Expected both inputs to be Half, Float or Double tensors but got "
            f"{names[0]} and {names[1]}"
        )
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {names[0]} but got scalar type {names[1]} for second "
            "argument"
        )


def _complex(real: Array, imag: Array) -> Array:
    _check_parts("complex", "real", real, imag)
    if real.dtype.itemsize == 2:
        raise RuntimeError(dtypes.NO_COMPLEX_HALF)
    return _combined(real, imag)


def _combined(real: Array, imag: Array) -> Array:
    shape = np.broadcast_shapes(np.shape(real), np.shape(imag))
    out = np.empty(shape, np.complex128 if real.dtype.itemsize == 8 else np.complex64)
    out.real, out.imag = real, imag
    return out if out.ndim else out[()]


def _polar(abs: Array, angle: Array) -> Array:
    _check_parts("polar", "abs", abs, angle)
    if abs.dtype.itemsize == 2:
        raise NotImplementedError("\"polar_cpu\" not implemented for 'Half'")
    return _combined(abs * np.cos(angle), abs * np.sin(angle))


def _unit(value: Any) -> Any:
    return np.sign(value) if is_array(value) else resolve("sgn")(value)


_PARTS = ("{0}(rand(3), rand(3))", "{0}(rand(2, 1), rand(3))", "{0}(rand(()), rand(0))")


@operator(
    _complex,
    "ComplexBackward0",
    method=False,
    name="complex",
    samples=tuple(s.format("complex") for s in _PARTS),
    batch="elementwise",
)
class complex_:
    """Complex numbers with the given real and imaginary parts."""

    real = lambda g, real: g.real
    imag = lambda g, imag: g.imag


@operator(
    _polar,
    "PolarBackward0",
    method=False,
    samples=tuple(s.format("polar") for s in _PARTS),
    batch="elementwise",
)
class polar:
    """Complex numbers with the given absolute values and angles."""

    abs = lambda g, result: (g.conj() * _unit(result)).real
    angle = lambda g, result: (g.conj() * (result * 1j)).real


__all__ = ["legacy", "sampling"]
