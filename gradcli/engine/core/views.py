"""In-place operations: their checks, version counters, and the new nodes of bases and views.

A tensor that is written in place gets a new node. If it is a view, its base gets a CopySlices node, and
each view of the base makes a new node (AsStridedBackward0) on demand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import gradcli.engine.system.budget as budget
from gradcli.engine.core import batched_arrays, modes, versions
from gradcli.engine.core.device import contiguous_format
from gradcli.engine.core.gradients import fit, of_inputs
from gradcli.engine.core.hooks import node_hooks
from gradcli.engine.core.node import PART, Meta, Node, Port, Wide, blank, freed_error, short_name
from gradcli.engine.core.tensor import LAZY, Tensor, Views, edge, link_result, retain_anew, wrap
from gradcli.engine.system import dtypes
from gradcli.engine.system.array_memory import ARRAYS, address, buffer_of, copied, laid_out
from gradcli.engine.system.dtypes import scalar_name

if TYPE_CHECKING:
    from gradcli.engine.system.dtypes import Array, DType, Shape

_MANY = (
    " This view is the output of a function that returns multiple views. Such functions do not allow "
    "the output views to be modified inplace. You should replace the inplace operation by an "
    "out-of-place one."
)
_AMBIGUOUS = (
    " Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your "
    "code by moving both the view and the inplace either both inside the {} block (if you don't want "
    "the inplace to be tracked) or both outside (if you want the inplace to be tracked)."
)
_CUSTOM = (
    " This view was created inside a custom Function (or because an input was returned as-is) and the "
    "autograd logic to handle view+inplace would override the custom backward associated with the "
    "custom Function, leading to incorrect gradients. This behavior is forbidden. You can fix this by "
    "cloning the output of the custom Function."
)
_CAPTURED = (
    "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place "
    "operation (aten::{}) that would mutate a captured Tensor. This is not supported; please rewrite "
    "the function being transformed to explicitly accept the mutated Tensor(s) as inputs."
)
# In-place operations with overloads, which that message names: `.Tensor` always, or `.Tensor` and
# `.Scalar`.
_TENSORS = frozenset(["add", "sub", "mul", "div", "floor_divide"])
_EITHER = frozenset(["fill", "pow", "lerp", "eq", "ne", "lt", "le", "gt", "ge", "masked_fill"])
_EITHER |= {"remainder", "fmod"}
_NUMBERS = frozenset([bool, int, float, complex])
# The end of the message for a view that may not be written, by `Tensor.creation`.
_REASONS = {
    "many": _MANY,
    "custom": _CUSTOM,
    "no_grad": _AMBIGUOUS.format("no_grad"),
    "inference": _AMBIGUOUS.format("inference_mode"),
}


def _refuse_view(view: Tensor, happened: str) -> None:
    """Raise if in-place writes to a view are forbidden; `happened`: what was written, for the message."""
    why = view.creation
    if not why:
        return
    node = view.node
    made = isinstance(node, (Node, Port))
    nr, maker = (node.nr, node.node) if isinstance(node, Port) else (0, node)
    output = f"Output {nr} of {short_name(maker)} is a view" if made else "A view"
    if why == "inference" and made:
        start = (
            f"{output} of a view which was created in inference mode and {happened} in normal mode."
        )
    elif why == "inference":
        start = f"{output} was created in inference mode and {happened} in normal mode."
    elif not made:
        start = f"{output} was created in no_grad mode and {happened} with grad mode enabled."
    elif why == "no_grad":
        start = (
            f"{output} of a view which was created in no_grad mode and {happened} with grad mode "
            "enabled."
        )
    else:
        start = f"{output} and {happened}."
    raise RuntimeError(start + _REASONS[why])


def check_writable(tensor: Tensor, recorded: bool, overlapping: bool = False) -> None:
    """Raise RuntimeError, in PyTorch's words, if a tensor may not be written in place now.

    recorded: the write would be recorded (an operand requires grad, and grad mode is on).
    overlapping: elements of the tensor may share memory.
    """
    state = modes.current()
    if state.before_write is not None:
        state.before_write(tensor)
    if tensor.inference and not state.inference:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a "
            "clone to get a normal tensor before doing inplace update.See "
            "https://github.com/pytorch/rfcs/pull/17 for more details."
        )
    if recorded:
        base = tensor.base
        if base is not None:
            _refuse_view(tensor, "is being modified inplace")
            if tensor.requires_grad and base.is_variable():
                from gradcli.engine.core.errors import LeafWriteError

                raise LeafWriteError(
                    "a view of a leaf Variable that requires grad is being used in an in-place "
                    "operation."
                )
        if tensor.requires_grad and tensor.is_variable():
            from gradcli.engine.core.errors import LeafWriteError

            raise LeafWriteError(
                "a leaf Variable that requires grad is being used in an in-place operation."
            )
        if (shows := _batch_of_another(tensor)) is not None:
            check_writable(shows.tensor, recorded, overlapping=True)
    if not overlapping:
        refuse_shared(tensor)


def is_plain(tensor: Tensor) -> bool:
    """Whether a tensor is memory and nothing else: no mode, level, batch or history needs to hear of it.

    Nor do elements of it share memory.
    """
    return _is_quiet(tensor) and tensor.node is None


def _is_quiet(tensor: Tensor) -> bool:
    """As `is_plain`; where gradients are not recorded, it may have a history."""
    if type(tensor) is not Tensor or modes.differentiating:
        return False
    state = modes.local.state if modes.unusual else None
    return (
        (tensor.node is None if state is None else state.silent)
        and not tensor.inference
        and tensor.tangents is None
        and type(tensor.array) is np.ndarray
        and 0 not in tensor.array.strides
    )


def refuse_shared(tensor: Tensor) -> None:
    """Raise where several elements of a tensor that is to be written lie in one place."""
    array = laid_out(tensor.array)
    if (
        isinstance(array, ARRAYS)
        and array.size
        and any(
            stride == 0 and size > 1
            for stride, size in zip(array.strides, array.shape, strict=True)
        )
    ):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a "
            "single memory location. Please clone() the tensor before performing the operation."
        )


def refuse_captured(tensor: Tensor, name: str, operand: object | None = None) -> None:
    """Raise if the in-place operation `name` would write a tensor captured from outside the transform."""
    if any(tensor.is_captured(level.since) for level in modes.nested.get()):
        name = name.rstrip("_")
        form = "Tensor" if isinstance(operand, Tensor) or name in _TENSORS else "Scalar"
        told = f"{name}_.{form}" if name in _TENSORS | _EITHER else f"{name}_"
        raise RuntimeError(_CAPTURED.format(told))


def raise_on_overlap(tensor: Tensor, operands: Iterable[Any], apart: bool = False) -> None:
    """Raise if an operand overlaps partly with the tensor to be written; apart: or if it is the same."""
    written = laid_out(tensor.array)
    if not isinstance(written, ARRAYS) or not _dense(written):
        return
    for a in operands:
        if isinstance(a, (tuple, list)):
            raise_on_overlap(tensor, a, apart)
            continue
        other = laid_out(a.array) if isinstance(a, Tensor) else None
        if (
            isinstance(other, ARRAYS)
            and np.may_share_memory(written, other)
            and (apart or (other is not written and not same_elements(other, written)))
            and _dense(other)
        ):
            raise RuntimeError(
                "unsupported operation: some elements of the input tensor and the written-to tensor "
                "refer to a single memory location. Please clone() the tensor before performing the "
                "operation."
            )


def same_elements(a: Array, b: Array) -> bool:
    return address(a) == address(b) and (a.shape, a.strides) == (b.shape, b.strides)


def _dense(array: Array) -> bool:
    """True if the elements fill a block of memory without gaps or overlaps, in any order."""
    reach = array.dtype.itemsize
    for stride, size in sorted(zip(array.strides, array.shape, strict=True)):
        if size != 1:
            if stride != reach:
                return False
            reach *= size
    return True


def store(tensor: Tensor, values: Any) -> None:
    """Write an array of values into a tensor's memory and count the write.

    Raises RuntimeError if the shapes differ or the values' dtype cannot be cast to the tensor's.
    """
    array = tensor.array
    if (values.dtype is array.dtype and values.shape == array.shape) and (
        isinstance(values, ARRAYS) and _is_quiet(tensor)
    ):
        array[...] = values
        bump(tensor)
        return
    check_cast(values.dtype, array.dtype)
    check_size(array.shape, values.shape)
    if more := batched_arrays.batch_of(values) - batched_arrays.batch_of(array):
        lead = [level.size for level in sorted(more, key=lambda each: each.number)]
        check_size(array.shape, (*lead, *values.shape))
    if modes.current().recorder is not None:  # the recorder traces writes to memory
        array = tensor.memory()
    if isinstance(array, np.generic):
        tensor.array = array.dtype.type(values)
    elif isinstance(array, np.ndarray) and 0 in array.strides and array.size:
        same = (array == values) | ((array != array) & (values != values))
        np.copyto(array, values, where=~same)  # if elements share memory, the changed one wins
    else:
        array[...] = values
    bump(tensor)


def bump(tensor: Tensor) -> None:
    """Count a write to a tensor's memory, and mark its views as stale."""
    counter = tensor.shared_versions()
    counter.bump()
    if counter.views is not None:
        _mark(counter.views)


def bump_all(tensors: Iterable[Tensor]) -> None:
    """Count a write to the memory of each tensor."""
    counters = [tensor.shared_versions() for tensor in tensors]
    versions.bump_together(counters)
    for counter in counters:
        if counter.views is not None:
            _mark(counter.views)


def castable(source: str, target: str) -> bool:
    order = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}
    return order[source] <= order[target]


def uncastable(found: Any, wanted: Any) -> RuntimeError:
    """PyTorch's error for numbers of one dtype that are to be written over those of another."""
    names = scalar_name(found), scalar_name(wanted)
    return RuntimeError("result type {} can't be cast to the desired output type {}".format(*names))


def check_cast(found: Any, wanted: Any) -> None:
    """RuntimeError where numbers of the first dtype may not be written over those of the second."""
    if not castable(found.kind, wanted.kind):
        raise uncastable(found, wanted)


def check_size(own: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """RuntimeError where a result of a shape does not fit in one that is written over."""
    if tuple(own) != tuple(shape):
        raise RuntimeError(
            f"output with shape {list(own)} doesn't match the broadcast shape {list(shape)}"
        )


def set_own(tensor: Tensor, level: Any, tangent: Tensor) -> None:
    """Set a tensor's tangent in a level of forward mode; tangents of other levels stay."""
    tensor.tangents = {**(tensor.tangents or {}), level: tangent}


def set_tangent(tensor: Tensor, level: Any, tangent: Tensor | None) -> None:
    """Update the tangent of a tensor that was written in place, and so of tensors that share its memory.

    In inference mode tangents stay as they are.
    """
    if modes.current().inference:
        return
    own = tensor.tangents.get(level) if tensor.tangents else None
    before = modes.nested.set(modes.nested.get()[: level.below])  # it is written by those below
    try:
        if own is None or (
            tangent is not None and batched_arrays.batch_of(tangent) - batched_arrays.batch_of(own)
        ):
            if tangent is not None:
                _first_tangent(tensor, level, tangent)
        elif tangent is None:
            own.zero_()
        elif own is not tangent:
            own.copy_(tangent)
    finally:
        modes.nested.reset(before)


def _zeros_as(tensor: Tensor, *tangents: Tensor) -> Tensor:
    """Zeros with the memory layout of a tensor, in its batches and those of tangents."""
    like = tangents[0].array
    for more in batched_arrays.batch_of((tensor, *tangents)) - batched_arrays.batch_of(like):
        like = batched_arrays.lifted(like, more)
    return wrap(MemoryLayout(tensor.memory(), tensor.memory()).arrays(tensor.array.dtype, like)[0])


def laid_as(tensor: Tensor, tangent: Tensor) -> Tensor:
    """A copy of a tangent with the memory layout of its tensor, which is not a view."""
    whole = _zeros_as(tensor, tangent)
    whole.copy_(tangent)
    return whole


def _first_tangent(tensor: Tensor, level: Any, tangent: Tensor) -> None:
    base = tensor if tensor.base is None else tensor.base
    alive = [] if base.views is None else base.views.alive()
    views = [v for v in alive if v.base is base]  # without views of tensors detached from it
    if not views:
        set_own(tensor, level, tangent.clone())
        return
    old = (base.tangents or {}).get(level)
    whole = _zeros_as(base, tangent) if old is None else _zeros_as(base, tangent, old)
    if old is not None:
        whole.copy_(old)
    part = whole if tensor is base else _part(whole, MemoryLayout(base.memory(), tensor.memory()))
    part.copy_(tangent)
    set_own(tensor, level, part)
    for other in (base, *views):
        if other.array.dtype in dtypes.DIFFERENTIABLE:
            lies = MemoryLayout(base.memory(), other.memory())
            set_own(other, level, whole if other is base else _part(whole, lies))


def will_record(tensor: Tensor, operands: Iterable[Any]) -> bool:
    """True if an in-place operation on `tensor` with these operands is recorded."""
    return modes.is_grad_enabled() and (
        tensor.requires_grad or any(isinstance(a, Tensor) and a.requires_grad for a in operands)
    )


def inplace(primitive: Callable[..., Any], tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Run an operation and write its result over its first operand; returns that tensor.

    VJP rules read the operand as it was before. Raises RuntimeError, in PyTorch's words, for a leaf that
    requires grad, a forbidden view, and a result of another shape or dtype category.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"an in-place operation needs a Tensor, not {type(tensor).__name__}")
    operands = (*args, *kwargs.values())
    numbers = not kwargs and not getattr(primitive, "writes", "")
    if numbers and _is_quiet(tensor) and all(_is_apart(a, tensor.array) for a in args):
        same = wrap(tensor.array)
        same.wrapped = tensor.wrapped
        store(tensor, primitive(same, *args).array)
        return tensor
    if modes.differentiating:
        name = getattr(primitive, "public_name", None) or primitive.__name__
        refuse_captured(tensor, name, operands[-1] if operands else None)
    recorded = will_record(tensor, operands)
    writes = getattr(primitive, "writes", "")
    check_writable(tensor, recorded, "shared" in writes)
    if not writes:
        raise_on_overlap(tensor, operands)
    before = wrap(copied(tensor.array) if recorded else tensor.array)
    before.wrapped = tensor.wrapped
    before.node = edge(tensor) if recorded else None
    before.tangents = tensor.tangents
    if recorded and tensor.tangents:  # the tensor's tangents are about to be written
        before.tangents = {level: own.clone() for level, own in tensor.tangents.items()}
    out = primitive(before, *args, **kwargs)
    if writes:
        raise_on_overlap(tensor, operands[:-1] if "read" in writes else operands, "apart" in writes)
    if modes.unusual:
        for level in modes.forward_levels():
            if recorded or not level.taped:
                set_tangent(tensor, level, (out.tangents or {}).get(level))
    node = out.node
    if isinstance(node, Port):
        node = node.node
    values = out.array
    store(tensor, values)
    if node is not None and node is not LAZY:
        if (
            node._meta.dtype is not tensor.array.dtype
        ):  # the gradient has the dtype of the written tensor
            node._meta = Meta(tensor.array.shape, tensor.array.dtype)
        if before.node is not None and any(s is before for s in node._saved or ()):
            before.node = _cloned(before).node
        if node._saved and tensor.versions is not None:
            link_result(node, tensor.versions)
            node._result_tick = versions.tick()
        rebase(tensor, node)
    return tensor


def _is_apart(operand: Any, array: Any) -> bool:
    """Whether an operand is a number, or memory that is not that of an array which is to be written."""
    if type(operand) in _NUMBERS:
        return True
    return _is_quiet(operand) and not np.may_share_memory(operand.array, array)


def _cloned(before: Tensor) -> Tensor:
    """A recorded clone of the operand, which PyTorch's in-place operation saves."""
    source = wrap(before.array)
    source.node = before.node
    return source.clone()


def rebase(tensor: Tensor, node: Node) -> None:
    """Make `node` the history of a tensor that was written in place; update its base and views too."""
    base = tensor.base
    if base is None:
        tensor.node = node
        base = tensor
    else:
        base.node = node = copy_slices(base, tensor, node)
    _move_retained(base, node)
    if (shows := _batch_of_another(base)) is None:
        if base.views is not None:
            _mark(base.views)
        return
    with modes.changed(enabled=True, rules=False, inference=False, intercept=None, pack=()):
        rebase(shows.tensor, shows.leave(base).node)  # of whose views the base is one


def _batch_of_another(tensor: Tensor) -> Any:
    """What a tensor in a batch shows, or its base, where that is an argument of the batch's `vmap`."""
    shows = (tensor if tensor.base is None else tensor.base).shows
    return shows if shows is not None and shows.leave is not None else None


def _move_retained(tensor: Tensor, node: Node) -> None:
    """Retain the gradient at the tensor's new node instead of the old one."""
    if tensor.retained:
        for keepers in (node_hooks(n).retain for n in _inputs(node) if n._hooks is not None):
            for nr in [nr for nr, keeper in keepers.items() if keeper() is tensor]:
                del keepers[nr]
        retain_anew(tensor)


def _inputs(node: Node) -> list[Node]:
    return [e.node if isinstance(e, Port) else e for e in node._edges if e is not None]


def _mark(views: Views) -> None:
    """Mark views of tensors that require grad as stale: they make a new node on demand."""
    for view in views.alive():
        base = view.shows.tensor if view.base is None else view.base
        if base.node is not None and view.array.dtype in dtypes.DIFFERENTIABLE:
            former = view.former if view.stale else view.node
            view.stale, view.former, view.node = True, former, LAZY
            view.__dict__.pop("accumulates", None)


def regenerate(view: Tensor) -> Node:
    """A new node for a stale view: as_strided of its base, or the way into its batch."""
    if view.creation:
        view.node = view.former
        try:
            _refuse_view(view, "its base or another view of its base has been modified inplace")
        finally:
            view.node = LAZY
    base = view.base
    with modes.changed(enabled=True, rules=False, inference=False, intercept=None, pack=()):
        if base is None:
            node: Node = view.shows.enter().node
        else:
            array = view.memory()
            strides = tuple(s // array.dtype.itemsize for s in array.strides)
            source = _of_kind(base, array.dtype)
            node = source.as_strided(array.shape, strides, view.storage_offset()).node
    view.stale, view.node = False, node
    retain_anew(view)
    return node


def _of_kind(tensor: Tensor, dtype: DType) -> Tensor:
    """The tensor viewed as `dtype`: view_as_real or view_as_complex if that differs."""
    own = tensor.array.dtype
    if own == dtype:
        return tensor
    pairs: Tensor = tensor.view_as_real() if own.kind == "c" else tensor.view_as_complex()
    return pairs


# -- written through a view -----------------------------------------------------------------------
class MemoryLayout:
    """The position of an array within its base's memory, in bytes."""

    __slots__ = ("base_shape", "base_strides", "dtype", "offset", "shape", "strides")

    def __init__(self, base: Any, view: Any) -> None:
        self.offset = address(view) - address(base) if view.size else 0
        self.shape, self.strides, self.dtype = view.shape, view.strides, view.dtype
        self.base_shape, self.base_strides = base.shape, base.strides

    def arrays(self, dtype: DType, like: Array | None = None) -> tuple[Any, Any]:
        """(zeros with the base's layout, the view's part of them), in the batches of `like`."""
        low = min(0, self.offset)
        size = max(
            _extent(self.base_shape, self.base_strides, dtype.itemsize),
            self.offset + _extent(self.shape, self.strides, self.dtype.itemsize),
        )
        memory = batched_arrays.zeros_of(like, (size - low,), np.uint8)
        return (
            batched_arrays.strided(memory, self.base_shape, dtype, self.base_strides, -low),
            batched_arrays.strided(memory, self.shape, self.dtype, self.strides, self.offset - low),
        )


def _extent(shape: tuple[int, ...], strides: tuple[int, ...], item: int) -> int:
    if 0 in shape:
        return 0
    return item + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))


class CopySlices(Wide):
    """The node of a base that was written through a view."""

    __slots__ = ()
    inner_edges: tuple[Any, ...]
    layout: MemoryLayout

    def name(self) -> str:
        return "torch::autograd::CopySlices"

    def apply(self, grad: Any) -> Any:
        whole, part = self.layout.arrays(grad.dtype)
        whole[...] = grad
        inner = self._inner_gradients(part.copy(), recorded=False)
        part[...] = 0 if inner[0] is None else inner[0]
        return (whole, *inner[1:])

    def apply_recorded(self, grad: Any) -> Any:
        layout = self.layout
        whole = wrap(layout.arrays(grad.array.dtype, grad.array)[0])
        whole.copy_(grad)
        part = _part(whole, layout)
        inner = self._inner_gradients(part.clone(memory_format=contiguous_format), recorded=True)
        if inner[0] is None:
            part.zero_()
            return (whole, *inner[1:])
        if more := batched_arrays.batch_of(inner[0]) - batched_arrays.batch_of(whole):
            like = whole.array
            for level in more:
                like = batched_arrays.lifted(like, level)
            wider = wrap(layout.arrays(grad.array.dtype, like)[0])
            wider.copy_(whole)
            whole, part = wider, _part(wider, layout)
        part.copy_(inner[0])
        return (whole, *inner[1:])

    def _inner_gradients(self, grad: Any, recorded: bool) -> tuple[Any, ...]:
        if self._saved is None:
            raise freed_error()
        (inner,) = self._saved
        # A saved result is the view after the write, which reads this node's output.
        grads = of_inputs(inner, grad, recorded, _node_of_part(self) if recorded else None)
        return tuple(
            g if g is None or e is None else fit(g, e, inner, i)
            for i, (g, e) in enumerate(zip(grads, self.inner_edges, strict=True))
        )


CopySlices.__module__ = "builtins"


def copy_slices(base: Tensor, view: Tensor, inner: Node) -> CopySlices:
    """The node of `base` after `inner` has written the part of it that `view` shows."""
    node = blank(CopySlices)
    array = view.memory()
    first = edge(base) if base.requires_grad else None
    # The inner node's first gradient has the view's shape; the base's gradient is computed from it.
    wanted = first is not None or inner._edges[0] is not None
    target = Port(PART, 0, array.shape, array.dtype) if wanted else None
    node._saved = (inner,)  # the node that wrote the view
    node.inner_edges = (target, *inner._edges[1:])
    inner._edges = node.inner_edges
    node._edges = (first, *node.inner_edges[1:])
    node.layout = MemoryLayout(base.memory(), array)
    node._seq = versions.tick()
    node._meta = Meta(base.array.shape, base.array.dtype)
    return node


def _node_of_part(history: CopySlices) -> Any:
    """The node of the view after the write: as_strided of the written base."""
    whole = wrap(history.layout.arrays(history._meta.dtype)[0])
    whole.node = history
    return _part(whole, history.layout).node


def _part(whole: Tensor, layout: MemoryLayout) -> Tensor:
    """The view of `whole` that lies as `layout` says."""
    item = layout.dtype.itemsize
    start = whole.storage_offset() * whole.itemsize + layout.offset
    strides = tuple(s // item for s in layout.strides)
    part = _of_kind(whole, layout.dtype).as_strided(layout.shape, strides, start // item)
    return part


def as_strided_array(array: Array, size: Shape, stride: Sequence[int], offset: int | None) -> Any:
    """`torch.as_strided` of an array's memory, with its errors; stride and offset in elements."""
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(s < 0 for s in stride):
        raise RuntimeError(
            "as_strided: Negative strides are not supported at the moment, got strides: "
            f"{list(map(int, stride))}"
        )
    if any(n < 0 for n in size):
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(size)} and strides={list(stride)}"
        )
    item = array.dtype.itemsize
    root = buffer_of(array)
    own = address(array) - address(root)
    start = own // item if offset is None else offset
    if start < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {start}")
    need = start + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) + 1
    if all(size) and need * item > root.nbytes:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {start}, and "
            f"itemsize {item} requiring a storage size of {need * item} are out of bounds for "
            f"storage of size {root.nbytes}"
        )
    budget.elements(size)
    begin = start * item if all(size) else 0
    return batched_arrays.strided(array, size, array.dtype, [s * item for s in stride], begin)
