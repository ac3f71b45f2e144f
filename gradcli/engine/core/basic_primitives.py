"""The primitives that the backward pass needs: add, mul, sum, view and expand.

It adds gradients, multiplies by them, and sums them to the shape of an input that was broadcast. The
operator table lists these primitives under their public names.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

import gradcli.engine.system.budget as budget
from gradcli.engine.core.batched_arrays import BatchLevel, full, is_diagonal
from gradcli.engine.core.declaration import Array
from gradcli.engine.core.gradients import sum_to
from gradcli.engine.core.primitive import Primitive, primitive
from gradcli.engine.core.tensor import Tensor, wrap_dim
from gradcli.engine.system import dtypes
from gradcli.engine.system.array_memory import ARRAYS, afresh, infer_shape, shares, strided_view
from gradcli.engine.system.cascaded_sums import add_reduce
from gradcli.engine.system.dtypes import tensor_name
from gradcli.engine.system.threads import applied

if TYPE_CHECKING:
    from gradcli.engine.system.dtypes import DType, Number, Shape

# Up to this many elements, computing with a filled array is faster than with a broadcast one.
_SMALL = 4096
NO_VIEW = (
    "view size is not compatible with input tensor's size and stride (at least one dimension spans "
    "across two contiguous subspaces). Use .reshape(...) instead."
)


# -- sums and products of two ---------------------------------------------------------------------
def is_complex(value: Any) -> bool:
    """True for complex arrays, tensors and numbers."""
    if value.__class__ is Tensor:
        return bool(value.array.dtype.kind == "c")
    if isinstance(value, (int, float)):
        return False
    return type(value) is complex or value.dtype.kind == "c"


def conj(value: Any) -> Any:
    """The complex conjugate; a real value itself."""
    if not is_complex(value):
        return value
    return value.conj() if isinstance(value, Tensor) else value.conjugate()


def is_one(alpha: Number) -> bool:
    """Whether `alpha` is the int 1, which changes nothing."""
    return alpha.__class__ is int and alpha == 1


def factor(alpha: Number, dtype: DType) -> Any:
    """`alpha` in the result's dtype; RuntimeError, in PyTorch's words, if the dtype cannot hold it."""
    if isinstance(alpha, bool) and dtype.kind != "b":
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, complex) and dtype.kind == "f":
        raise RuntimeError(
            "For non-complex input tensors, argument alpha must not be a complex number."
        )
    if isinstance(alpha, (float, complex)) and dtype.kind in "biu":
        raise RuntimeError(
            "For integral input tensors, argument alpha must not be a floating point number."
        )
    return dtypes.checked(alpha, dtype)


def meeting(self: Array, number: Number) -> Array:
    """An array, cast to the dtype that it and a Python number promote to."""
    if self.dtype.kind in "fc" and type(number) is not complex:
        return self
    wanted = dtypes.result_type([(self.dtype, 2), (dtypes.number_dtype(number), 0)])
    return self if self.dtype == wanted else self.astype(wanted)


def _add(self: Array, other: Array, *, alpha: Number = 1) -> Array:
    return (
        applied(np.add, self, other) if is_one(alpha) else self + factor(alpha, self.dtype) * other
    )


@primitive(
    kernel=_add,
    node="AddBackward0",
    plain="+",
    real={"other": "g if alpha == 1 else g * alpha"},
    linearity="linear",
    types="common",
    wide=True,
    numbers=True,
    batching="elementwise",
    symbolic="plus",
    jet=lambda s, self, other, alpha: self + s.scaled(other, alpha),
)
class add:
    """Sum, `input + alpha * other`."""

    self = lambda g: g
    other = lambda g, alpha: g if alpha == 1 else g * alpha


@primitive(
    kernel=np.multiply,
    node="MulBackward0",
    linearity="bilinear",
    real={"self": "g * other", "other": "g * self"},
    wide=True,
    numbers=True,
    symbolic="self * other",
    jet=lambda s, self, other: self * other,
)
class mul:
    """Product of the elements."""

    self = lambda g, other: g * conj(other)
    other = lambda g, self: g * conj(self)


# A C++ scalar with integers promotes by PyTorch's rules, not NumPy's.
def _mul_scalar(self: Array, other: Any) -> Array:
    return meeting(self, other) * other


@primitive(
    kernel=_mul_scalar,
    node="MulBackward1",
    linearity="linear",
    batching="elementwise",
    symbolic="self * other",
    jet=lambda s, self, other: self * float(other),
)
class mul_scalar:
    self = lambda g, other: g * conj(other)


mul.scalar = mul_scalar


# -- sums of elements -----------------------------------------------------------------------------
def numpy_dtype(dtype: Any) -> Any:
    """The NumPy dtype of an option `dtype`; None for None."""
    return None if dtype is None else np.dtype(getattr(dtype, "dtype", dtype))


def axes(dim: tuple[int, ...] | None, ndim: int) -> tuple[int, ...] | None:
    """NumPy's `axis` for PyTorch's dims: None where all are reduced.

    Raises IndexError for a dim out of range and RuntimeError for one named twice.
    """
    if not dim:
        return None
    found: list[int] = []
    for d in dim:
        at = wrap_dim(d, ndim)
        if at in found:
            raise RuntimeError(f"dim {at} appears multiple times in the list of dims")
        found.append(at)
    return tuple(found) if ndim else None


def total(self: Any, axis: Any, keepdim: bool = False, dtype: Any = None) -> Any:
    """The sum in the dtype that PyTorch accumulates in."""
    if dtype is None:
        if self.dtype.kind in "biu":
            dtype = np.int64
    elif dtype.kind != "c":
        self = self.real if self.dtype.kind == "c" else self
        if dtype == np.float16:
            self = self.astype(dtype, copy=False)
    return add_reduce(self, axis, dtype, keepdim)


def unsqueeze_dims(value: Any, dim: tuple[int, ...] | None, ndim: int) -> Any:
    """`value` with the dimensions that a reduction removed from `ndim` put back, of size 1."""
    if dim is not None and len(dim) == 0:
        return value
    wanted = {d % ndim for d in dim} if dim is not None else set(range(ndim))
    if not isinstance(value, ARRAYS):
        if dim is not None and len(dim) == 1:
            return value.unsqueeze(dim[0])
        for d in sorted(wanted):
            value = value.unsqueeze(d)
        return value
    sizes = iter(value.shape)
    return value.reshape([1 if d in wanted else next(sizes) for d in range(ndim)])


def expand(value: Any, shape: tuple[int, ...]) -> Any:
    """`value` repeated to `shape`."""
    if hasattr(value, "expand"):  # a tensor, or an array of a trace
        return value.expand(shape)
    if value.shape == shape:
        return value
    if not value.ndim:
        if prod(shape) > _SMALL:
            return np.ndarray(shape, value.dtype, value, 0, (0,) * len(shape))
        made = np.empty(shape, value.dtype)
        made.fill(value)
        return made
    if prod(shape) > _SMALL:
        return np.broadcast_to(value, shape)
    made = np.empty(shape, value.dtype)
    made[...] = value
    return made


def _sum(self: Array, *, dtype: DType | None = None) -> Array:
    return total(self, None, False, numpy_dtype(dtype))


def _sum_dim(self: Array, dim: Any, keepdim: bool = False, *, dtype: Any = None) -> Array:
    return afresh(total(self, axes(dim, self.ndim), keepdim, numpy_dtype(dtype)), self)


def sum_backward(g: Any, self_sym_sizes: tuple[int, ...], dim: Any, keepdim: bool) -> Any:
    """The gradient of a sum along dimensions: `g` repeated along them."""
    if not keepdim and self_sym_sizes and dim:
        g = unsqueeze_dims(g, dim, len(self_sym_sizes))
    return expand(g, self_sym_sizes)


def _summed(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
    """Batching rule of the full sum. The sums of a diagonal batch are the diagonal."""
    x, dtype = operands
    if is_diagonal(x, level) and dtype is None:
        return x.diagonal.reshape((level.size,))
    every = full(x, level)
    return sum_dim.in_batch([every.reshape((level.size, x.size)), (1,), False, dtype])


@primitive(
    kernel=_sum,
    node="SumBackward0",
    linearity="linear",
    batching=_summed,
    jet=lambda s, self: s.total(self),
)
class sum_all:
    self = lambda g, self_sym_sizes: expand(g, self_sym_sizes)


@primitive(
    kernel=_sum_dim,
    node="SumBackward1",
    linearity="linear",
    jet=lambda s, self, dim, keepdim: s.total(self, dim, keepdim),
)
class sum_dim:
    self = sum_backward


# -- views of another shape --------------------------------------------------------------
def view_of(self: Array, size: Shape) -> Array:
    """The same elements in another shape, without a copy; RuntimeError where that cannot be."""
    out = self.reshape(infer_shape(size, self.size))
    if not shares(out, self):
        raise RuntimeError(NO_VIEW)
    return out


@primitive(
    kernel=view_of,
    node="ViewBackward0",
    linearity="linear",
    view=True,
    sizes="size",
    symbolic="reshape",
    samples="view(randn(2,3), 3, 2)",
)
class view_size:
    self = lambda g, self_sym_sizes: g.reshape(self_sym_sizes)


def _expand(self: Array, size: Shape) -> Array:
    shape, lead = self.shape, len(size) - self.ndim
    if tuple(size) == shape and self.__class__ is np.ndarray:
        return self[...]
    if lead < 0:
        kind = tensor_name(self)
        raise RuntimeError(
            f"expand(torch.{kind}{{{list(shape)}}}, size={list(size)}): the number of sizes provided "
            f"({len(size)}) must be greater or equal to the number of dimensions in the tensor "
            f"({self.ndim})"
        )
    made, strides = list(size), [0] * len(size)
    step = self.dtype.itemsize
    for i in reversed(range(len(size))):
        n, own = size[i], shape[i - lead] if i >= lead else 1
        if n == -1:
            if i < lead:
                raise RuntimeError(
                    f"The expanded size of the tensor ({n}) isn't allowed in a leading, non-existing "
                    f"dimension {i}"
                )
            made[i] = n = own
        if n != own and (own != 1 or n < 0):
            raise RuntimeError(
                f"The expanded size of the tensor ({n}) must match the existing size ({own}) at "
                f"non-singleton dimension {i}.  Target sizes: {list(size)}.  Tensor sizes: "
                f"{list(shape)}"
            )
        if i >= lead:
            strides[i] = self.strides[i - lead] if n == own else 0
        elif n == 1:
            strides[i] = step
        step = strides[i] * made[i]
    budget.elements(made)
    return strided_view(self, made, strides)


@primitive(
    kernel=_expand,
    node="ExpandBackward0",
    linearity="linear",
    view=True,
    sizes="size",
    batching="expanded",
    symbolic="self",
)
class expand_size:
    self = lambda g, self_sym_sizes: sum_to(g, self_sym_sizes)


def sum_of(input: object, dims: tuple[int, ...] | None = None, keepdim: bool = False) -> Any:
    """The sum of all elements, or along dimensions."""
    return sum_all(input) if dims is None else sum_dim(input, dims, keepdim)


# The methods of Tensor until the operator table adds the others.
METHODS: dict[str, Callable[..., Any]] = {
    **{"__add__": add, "__radd__": add, "__mul__": mul, "__rmul__": mul},
    **{"sum": sum_of, "view": view_size, "reshape": view_size, "expand": expand_size},
}
