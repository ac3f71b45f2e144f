"""What only exists in place: copy_, fill_, zero_, index_put_, and other shapes of the same tensor.

The in-place forms of other functions (`add_`, `clamp_`, ...) come from their own entries in the table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from gradcli.engine.core import modes
from gradcli.engine.core.batched_arrays import BatchedArray, BatchLevel, is_batched, zeros_of
from gradcli.engine.core.declaration import Array, DType, Ints, Number, Shape, Value
from gradcli.engine.core.primitive import VjpRules
from gradcli.engine.core.promotion import mismatch
from gradcli.engine.core.tensor import Tensor, edge, retain_anew, wrap
from gradcli.engine.core.views import (
    check_size,
    check_writable,
    inplace,
    raise_on_overlap,
    refuse_captured,
    will_record,
)
from gradcli.engine.registry.rule_helpers import refuse_if, zeros_like
from gradcli.engine.registry.table import function, primitive
from gradcli.engine.system import dtypes
from gradcli.engine.system.array_memory import resized
from gradcli.operators.movement import indexing, reshaping
from gradcli.operators.movement.strides import empty_as

FAMILY = "inplace"  # as `ops` calls it


# -- values written over --------------------------------------------------------------------------
def _cast(array: Array, dtype: DType) -> Any:
    if array.dtype.kind == "c" and dtype.kind != "c":
        array = array.real
    with np.errstate(all="ignore"):
        return array.astype(dtype, copy=False)


def _copy(self: Array, src: Array) -> Array:
    if src.shape != self.shape:
        error = mismatch([self.shape, src.shape])
        if error is not None:
            raise error
        check_size(self.shape, np.broadcast_shapes(self.shape, src.shape))
        src = np.broadcast_to(src, self.shape)
    return _cast(src, self.dtype)


@primitive("lossy", kernel=_copy, node="CopyBackwards", batching="copied")
class copy_p:
    self = zeros_like

    def src(g: Value, src_dtype: DType) -> Any:
        from gradcli.operators.movement.casting import cast_back

        return cast_back(g, src_dtype)


copy_p.node_type.name = lambda self: "torch::autograd::CopyBackwards"


@function(
    "copy_(Tensor input, Tensor other, bool non_blocking=False)|method",
    "copy_(Tensor input, Tensor other, bool async=False)|method|deprecated",
    samples="zeros(3).copy_(randn(3))",
)
def copy_(input: Tensor, other: Tensor, *flags: bool, **_: bool) -> Any:
    """Write the elements of `other`, broadcast and cast, over those of the tensor."""
    if isinstance(other, (bool, int, float, complex)):
        other = wrap(np.asarray(dtypes.checked(other, dtypes.number_dtype(other))))
    return inplace(copy_p, input, other)


def _filled(self: Array, value: Array) -> Array:
    made = empty_as(self, self.dtype)
    made[...] = value
    return made[()]


def _fill(self: Array, value: float) -> Array:
    return _filled(self, dtypes.checked(value, self.dtype))


def _fill_tensor(self: Array, value: Array) -> Array:
    if value.ndim:
        raise RuntimeError(
            f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions."
        )
    return _filled(self, _cast(np.asarray(value), self.dtype))


@primitive("pointwise shared", kernel=_fill, node="FillBackward0")
class fill_number:
    self = zeros_like


@primitive(kernel=_fill_tensor, node="FillBackward1", batching="apart value")
class fill_tensor:
    self = zeros_like
    value = lambda g: g.sum()


@primitive("pointwise shared", kernel=_fill, node="FillBackward2", symbolic="fill")
class fill_number_in_place:
    self = zeros_like


@primitive(
    "discrete",
    kernel=_fill_tensor,
    node="FillBackward3",
    batching="apart value",
    symbolic="fill",
    writes="read",
)
class fill_tensor_in_place:
    self = zeros_like
    value = lambda g: g.sum()


def _either(name: str, parameter: str) -> tuple[str, str]:
    """The signatures of a function that takes a tensor or a number."""
    return f"{name}(Tensor input, Tensor {parameter})", f"{name}(Tensor input, Scalar {parameter})"


@function(*_either("fill", "value"), method=False, samples="(randn(3), 2.)")
def fill(input: Tensor, value: float) -> Any:
    """A tensor like `input` with one value everywhere."""
    return (fill_tensor if isinstance(value, Tensor) else fill_number)(input, value)


@function(*_either("fill_", "value"), name="fill_", samples="zeros(3).fill_(2.)")
def fill_(input: Tensor, value: Tensor | Number) -> Any:
    """Write one value over all elements."""
    primitive = fill_tensor_in_place if isinstance(value, Tensor) else fill_number_in_place
    return inplace(primitive, input, value)


@primitive("pointwise shared", node="ZeroBackward0")
class zero_p:
    forward = lambda self: np.zeros(self.shape, self.dtype)[()]
    self = zeros_like


@function("zero_(Tensor input)", samples="randn(3).zero_()")
def zero_(input: Tensor) -> Any:
    """Write 0 over all elements."""
    return inplace(zero_p, input)


@function(
    "fill_diagonal_(Tensor input, Scalar fill_value, bool wrap=False)|method",
    primitives=[fill_number_in_place],
    samples="zeros(3, 3).fill_diagonal_(2.)",
)
def fill_diagonal_(input: Tensor, fill_value: float, wrap: bool) -> Any:
    """Write one value over the main diagonal; wrap: again below it in tall matrices."""
    refuse_if(input.ndim < 2, "dimensions must larger than 1")
    shape = tuple(input.shape)
    if input.ndim > 2 and len(set(shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    strides = input.stride()
    count, step = min(shape), sum(strides)
    input.as_strided((count,), (step,), input.storage_offset()).fill_(fill_value)
    if wrap and input.ndim == 2 and shape[0] > shape[1] + 1:
        start = strides[0] * (shape[1] + 1)
        rest = -(-(shape[0] - shape[1] - 1) * shape[1] // (shape[1] + 1))
        tail = input.as_strided((rest,), (step,), input.storage_offset() + start)
        tail.fill_(fill_value)
    return input


def put_in_place(
    input: Tensor, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False
) -> Any:
    """Write `values` at the given positions of each dim; accumulate adds them."""
    state = modes.current()
    if (
        will_record(input, (values,))
        or state.intercept is not None
        or state.recorder is not None
        or is_batched([input, list(indices), values])
    ):
        return inplace(indexing.index_put, input, list(indices), values, accumulate)
    refuse_captured(input, "index_put")
    check_writable(input, recorded=False, overlapping=True)
    given = [i for i in indices if i is not None]
    masked = len(given) == 1 and given[0].array.dtype.kind == "b" and not accumulate
    if masked and values.array.size == 1:  # which PyTorch calls masked_fill_ for
        raise_on_overlap(input, given)
    else:
        raise_on_overlap(input, (*given, values), apart=True)
    arrays = [None if i is None else i.array for i in indices]
    indexing.put_into(input.memory(), arrays, values.array, accumulate)
    input.shared_versions().bump()
    return input


function(
    "index_put_(Tensor input, Tensor[] indices, Tensor values, bool accumulate=False)",
    name="index_put_",
    primitives=[indexing.index_put],
    samples="zeros(3).index_put_((tensor([0, 2]),), randn(2))",
)(put_in_place)


@function(
    "resize_(Tensor input, int[] size, *, MemoryFormat? memory_format=None)|method",
    samples="zeros(2, 3).resize_((3,))",
)
def resize_(input: Tensor, size: Shape, memory_format: Any) -> Any:
    """Give the tensor another size; elements that are new hold no particular values."""
    refuse_captured(input, "resize")
    if input.requires_grad and not modes.current().inference:
        raise RuntimeError("cannot resize variables that require grad")
    count = math.prod(size)
    refuse_if(min(size, default=0) < 0 or count >= 2**63, "numel: integer multiplication overflow")
    too_many = count * input.array.dtype.itemsize >= 2**63
    refuse_if(too_many, "Storage size calculation overflowed with sizes={}", list(size))
    if tuple(input.shape) != size:
        array = input.memory()
        if isinstance(array, BatchedArray):  # the elements of each entry, in their order
            made = zeros_of(array, size)
            held = array.reshape(-1)[: made.size]
            made.reshape(-1)[: held.size] = held
        input.array = made if isinstance(array, BatchedArray) else resized(array, size)
        input.shared_versions().bump()
    return input


@function(
    "resize_as_(Tensor input, Tensor the_template, *, MemoryFormat? memory_format=None)",
    samples="zeros(2, 3).resize_as_(zeros(3))",
)
def resize_as_(input: Tensor, the_template: Tensor, memory_format: Any) -> Any:
    """Give the tensor the size of another one."""
    return resize_(input, tuple(the_template.shape))


@primitive(node="NotImplemented")
class set_p:
    """Another's memory, of which PyTorch has no derivative."""

    forward = lambda self, source: source
    self = lambda g: g
    source = lambda g: g


_PLACE = "int storage_offset, int[] size, int[] stride=None)|method"


@function(
    "set_(Tensor input)|method",
    "set_(Tensor input, Storage source)|method",
    f"set_(Tensor input, Storage source, {_PLACE}",
    "set_(Tensor input, Tensor source)|method",
    f"set_(Tensor input, Tensor source, {_PLACE}",
    samples="zeros(2).set_(ones(3))",
)
def set_(
    input: Tensor,
    *,
    source: Tensor | None = None,
    storage_offset: int | None = None,
    size: Any = (),
    stride: Any = None,
) -> Any:
    """Let the tensor lie over another one's memory, or no memory."""
    if source is None:
        source = wrap(np.zeros(0, input.array.dtype))
    elif storage_offset is not None:
        stride = stride or tuple(prod(size[i + 1 :]) for i in range(len(size)))
        source = source.detach().as_strided(size, stride, storage_offset)
    refuse_captured(input, "set", source)
    recorded = will_record(input, (source,))
    check_writable(input, recorded, overlapping=True)
    if recorded:
        before = wrap(input.array)
        before.node = edge(input)
        input.node = set_p(before, source).node
    input.array = source.memory()
    input.shared_versions().bump()
    if input.node is not None and input.is_leaf:
        input.accumulates = Tensor.accumulates  # a graph that has met the leaf met another one
    return input


# -- the same tensor in another shape -------------------------------------------------------------
def _of_itself(view: VjpRules, node: str) -> Any:
    """The primitive of a view that a tensor becomes itself: not of another's memory, with a node
    of its own."""

    def as_the_view(_: VjpRules, operands: list[Any], level: BatchLevel) -> Any:
        # A view of every entry's memory, and not a copy.
        return view.batching_rule(view, operands, level)

    batch = view.batching if view.axes else as_the_view
    facts = {name: getattr(view, name) for name in ("linearity", "axes", "symbolic")}
    facts["batching"] = batch
    body = type(f"{view.name}_of_itself", (), {"__module__": __name__, **view.vjps})
    return primitive(kernel=view.kernel, node=node, **facts)(body)


t_p = _of_itself(reshaping.t, "TBackward1")
transpose_p = _of_itself(reshaping.transpose, "TransposeBackward1")
unsqueeze_p = _of_itself(reshaping.unsqueeze, "UnsqueezeBackward1")
squeeze_all_p = _of_itself(reshaping.squeeze_all, "SqueezeBackward3")
squeeze_dim_p = _of_itself(reshaping.squeeze_dim, "SqueezeBackward4")
squeeze_dims_p = _of_itself(reshaping.squeeze_dims, "SqueezeBackward5")
as_strided_p = _of_itself(reshaping.as_strided, "AsStridedBackward1")


def reshaped(name: str, primitive: VjpRules, tensor: Tensor, *options: Any) -> Tensor:
    """Give a tensor the shape that a primitive gives its memory, as the function `name`; returns
    that tensor."""
    refuse_captured(tensor, name)
    recorded = will_record(tensor, ())
    check_writable(tensor, recorded, overlapping=True)
    before = wrap(tensor.memory())
    before.node = edge(tensor) if recorded else None
    before.tangents = tensor.tangents
    out = primitive(before, *options)
    tensor.array, tensor.tangents = out.array, out.tangents
    tensor.shared_versions().bump()
    if out.node is not None:
        tensor.node = out.node
        retain_anew(tensor)
    return tensor


def _reshaping(signature: str, primitive: VjpRules, sample: str, aliases: str = "") -> None:
    """The in-place form of a view."""
    name = signature.partition("(")[0]

    def reshape(input: Tensor, *options: Any) -> Any:
        return reshaped(name, primitive, input, *options)

    reshape.__doc__, reshape.__module__ = f"In-place form of `{name[:-1]}`.", __name__
    samples = [f"randn(2,3).{name}({sample})"]
    function(signature, name=name, aliases=aliases, primitives=[primitive], samples=samples)(
        reshape
    )


_reshaping("t_(Tensor input)|method", t_p, "")
_reshaping(
    "transpose_(Tensor input, int dim0, int dim1)|method", transpose_p, "0, 1", aliases="swapdims_"
)
_reshaping("swapaxes_(Tensor input, int axis0, int axis1)|method", transpose_p, "0, 1")
_reshaping(
    "as_strided_(Tensor input, int[] size, int[] stride, int? storage_offset=None)",
    as_strided_p,
    "(2,2), (1,2)",
)
_reshaping("unsqueeze_(Tensor input, int dim)|method", unsqueeze_p, "0")


@function(
    "squeeze_(Tensor input)|method",
    "squeeze_(Tensor input, int dim)|method",
    "squeeze_(Tensor input, int[] dim)|method",
    samples="randn(1,3).squeeze_(); randn(1,3).squeeze_(0)",
)
def squeeze_(input: Tensor, dim: Ints | int | None = None) -> Any:
    """In-place form of `squeeze`."""
    if dim is None:
        return reshaped("squeeze", squeeze_all_p, input)
    primitive = squeeze_dims_p if isinstance(dim, tuple) else squeeze_dim_p
    return reshaped("squeeze", primitive, input, dim)
