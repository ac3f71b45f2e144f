"""Copies, layouts and dtypes: clone, contiguous, detach, to, float, int and their like."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.engine.core.declaration import Array, DType, Value
from gradcli.engine.core.device import used
from gradcli.engine.core.tensor import Tensor
from gradcli.engine.registry.rule_helpers import cast as in_dtype
from gradcli.engine.registry.rule_helpers import is_complex, refuse_if
from gradcli.engine.registry.table import function, primitive
from gradcli.engine.system import dtypes
from gradcli.engine.system.array_memory import IN_MEMORY
from gradcli.engine.system.dtypes import tensor_name
from gradcli.operators.movement.strides import copied, follows, formatted

FAMILY = "shapes"


# -- copies ---------------------------------------------------------------------------------------
@primitive("linear copies pointwise", node="CloneBackward0", symbolic="self")
class clone_as:
    def forward(self: Array, memory_format: str | None = None) -> Array:
        return formatted(self, memory_format) if isinstance(self, IN_MEMORY) else self

    self = lambda g: g


def format_name(memory_format: Any) -> str | None:
    """A memory format's name; None for the one that keeps the layout."""
    name = None if memory_format is None else str(memory_format).rpartition(".")[2]
    return None if name == "preserve_format" else name


@function(
    "clone(Tensor input, *, MemoryFormat? memory_format=None)",
    numpy=np.copy,
    samples="(randn(2,3))",
)
def clone(input: Tensor, memory_format: Any = None) -> Any:
    """A copy that gradients flow through."""
    name = format_name(memory_format)
    return clone_as(input) if name is None else clone_as(input, name)


@function(
    "contiguous(Tensor input, *, MemoryFormat? memory_format=None)|method",
    numpy=np.ascontiguousarray,
    samples="(randn(2,3))",
)
def contiguous(input: Tensor, memory_format: Any) -> Any:
    """Itself where its elements lie in order in memory, else a copy that does."""
    name = format_name(memory_format) or "contiguous_format"
    if not isinstance(input, Tensor) or follows(input.memory(), name):
        return input
    return clone_as(input, name)


@primitive(kernel=lambda self: self, symbolic="held")
class stop_gradient:
    """What the tape holds constant, in a recording that is differentiated again."""


@function("detach(Tensor input)", samples="(randn(3))")
def detach(input: Tensor) -> Any:
    """The same values and memory as a constant: no gradient goes through it."""
    return input.detach()


# -- dtypes ---------------------------------------------------------------------------------------
def _to_copy(self: Array, dtype: DType, memory_format: str | None = None) -> Array:
    if self.dtype.kind == "c" and dtype.kind not in "cb":
        self = self.real
    with np.errstate(all="ignore"):
        if not isinstance(self, IN_MEMORY):
            return self.astype(dtype)
        if memory_format is None:
            return copied(self, dtype)
        return formatted(self, memory_format).astype(dtype, copy=False)


def cast_back(g: Value, self_dtype: DType) -> Any:
    """A gradient in the dtype of its input: real where that is."""
    if is_complex(g) and self_dtype.kind != "c":
        g = g.real
    return in_dtype(g, self_dtype)


@primitive(
    "linear copies pointwise",
    kernel=_to_copy,
    node="ToCopyBackward0",
    analytic=False,
    jet=lambda s, self: self,
)
class to_copy:
    self = cast_back


@primitive("pointwise", kernel=_to_copy, symbolic="to")
class to_discrete:
    """Integers and booleans: not differentiable."""


def cast(input: Tensor, dtype: DType, copy: bool = False, memory_format: Any = None) -> Any:
    """`input` in a NumPy dtype and memory format; itself where it has them already."""
    name = format_name(memory_format)
    laid_out = name is None or (isinstance(input, Tensor) and follows(input.memory(), name))
    if laid_out and input.dtype.dtype == dtype and not copy:
        return input
    primitive = to_copy if dtype.kind in "fc" else to_discrete
    return primitive(input, dtype) if name is None else primitive(input, dtype, name)


_TO = "bool non_blocking=False, bool copy=False, *, MemoryFormat? memory_format=None)|method"


@function(
    f"to(Tensor input, Device device=None, ScalarType dtype=None, {_TO}",
    f"to(Tensor input, ScalarType dtype, {_TO}",
    f"to(Tensor input, Tensor tensor, {_TO}",
    "to(Tensor input, Scalar tensor)|method|unlisted",
    primitives=[to_copy],
    samples="(randn(3), float32)",
)
def to(
    input: Tensor,
    *,
    device: Any = None,
    dtype: Any = None,
    tensor: Any = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Any:
    """`input` in another dtype (or that of another tensor); itself where nothing changes."""
    if device is not None:
        used(device)
    if tensor is not None:  # PyTorch takes a number for its type
        dtype = tensor.dtype if hasattr(tensor, "dtype") else type(tensor)
    wanted = input.dtype.dtype if dtype is None else _numpy_dtype(dtype)
    return cast(input, wanted, copy, memory_format)


def _numpy_dtype(dtype: dtypes.dtype) -> Any:
    if isinstance(dtype, type) and dtype.__module__ == "torch":  # a legacy constructor
        dtype = getattr(dtype, "dtype", dtype)
    return dtypes.given(dtype).dtype  # type: ignore[union-attr]


@function(
    "type_as(Tensor input, Tensor other)|method",
    primitives=[to_copy],
    samples="(randn(3), ones(1, dtype=float32))",
)
def type_as(input: Tensor, other: Tensor) -> Any:
    """`input` in the dtype of `other`."""
    return cast(input, other.dtype.dtype)


_TYPES = {f"torch.{text}": dtypes.NAMES[name] for name, text in dtypes.TYPE_NAMES.items()}


@function(
    "type(Tensor input, Any dtype=None, bool non_blocking=False, *, MemoryFormat? memory_format=None)|method",
    primitives=[to_copy],
    samples="randn(3).type(float32)",
)
def type_(input: Tensor, dtype: Any, non_blocking: bool, memory_format: Any) -> Any:
    """The name of the tensor's type, or the tensor in another dtype."""
    if dtype is None:
        return f"torch.{tensor_name(input)}"
    name = dtype.__name__ if dtype in (float, int, bool, complex) else dtype
    if isinstance(name, str):
        refuse_if(name not in _TYPES, "invalid type: '{}'", name, error=ValueError)
        dtype = _TYPES[name]
    elif not isinstance(dtype, (type, dtypes.dtype)):
        raise TypeError("dtype must be a type, str, or dtype object")
    return cast(input, _numpy_dtype(dtype), memory_format=memory_format)


def _conversion(name: str, dtype: dtypes.dtype) -> None:
    def convert(input: Tensor, memory_format: Any) -> Any:
        return cast(input, dtype.dtype, memory_format=memory_format)

    convert.__doc__ = f"`input` as {dtype.name}."
    convert.__module__ = __name__
    signature = f"{name}(Tensor input, *, MemoryFormat? memory_format=None)|method"
    function(signature, name=name, primitives=[to_copy], samples=[f"randn(3).{name}()"])(convert)


for _name in ("half", "float", "double", "cfloat", "cdouble", "short", "int", "long"):
    _conversion(_name, dtypes.NAMES[_name])
_conversion("bool", dtypes.boolean)
_conversion("byte", dtypes.uint8)
_conversion("char", dtypes.int8)
