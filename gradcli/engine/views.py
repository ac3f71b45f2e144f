"""Writing in place: what may be written, version counters, and the history of bases and views.

A tensor over written memory gets a new history. For a view that is its base's history too: the base
gets a CopySlices node, and every view of it works its own node out anew (AsStridedBackward0) when
asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from gradcli.engine import dtypes, modes, versions
from gradcli.engine.node import FREED_MESSAGE, Node, Port, new
from gradcli.engine.tensor import LAZY, Tensor, edge, link_result, wrap

_SPLIT = (
    " This view is the output of a function that returns multiple views. Such functions do not allow "
    "the output views to be modified inplace. You should replace the inplace operation by an "
    "out-of-place one."
)
_NO_GRAD = (
    "A view was created in no_grad mode and {} with grad mode enabled. Given that this use case is "
    "ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view and "
    "the inplace either both inside the no_grad block (if you don't want the inplace to be tracked) or "
    "both outside (if you want the inplace to be tracked)."
)
_INFERENCE = (
    "A view was created in inference mode and {} in normal mode. Given that this use case is "
    "ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view and "
    "the inplace either both inside the inference_mode block or both outside."
)
_CUSTOM = (
    " This view was created inside a custom Function (or because an input was returned as-is) and the "
    "autograd logic to handle view+inplace would override the custom backward associated with the "
    "custom Function, leading to incorrect gradients. This behavior is forbidden. You can fix this by "
    "cloning the output of the custom Function."
)


def _refuse_view(view: Tensor, happened: str) -> None:
    """Raise for a view whose history may not be replaced; `happened` says what was written."""
    if not view.creation:
        return
    node = view.node
    output = "A view"
    if isinstance(node, (Node, Port)):
        nr, maker = (node.nr, node.node) if isinstance(node, Port) else (0, node)
        output = f"Output {nr} of {short_name(maker)} is a view and"
    if view.creation == "many":
        raise RuntimeError(f"{output} {happened}.{_SPLIT}")
    if view.creation == "custom":
        raise RuntimeError(f"{output} {happened}.{_CUSTOM}")
    text = _INFERENCE if view.creation == "inference" else _NO_GRAD
    raise RuntimeError(text.format(happened))


def short_name(node: Node) -> str:
    """A node's name in messages: without Backward and its number."""
    return re.sub(r"Backward\d*$", "", node.name())


def check_writable(tensor: Tensor, recorded: bool) -> None:
    """Raise where a tensor may not be written in place now.

    recorded: the write would be recorded (some operand requires grad, and grad mode is on).
    """
    state = modes.current()
    if tensor.inference and not state.inference:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a "
            "clone to get a normal tensor before doing inplace update.See "
            "https://github.com/pytorch/rfcs/pull/17 for more details."
        )
    if recorded:
        base = tensor.base
        if base is not None:
            if base.requires_grad and base.is_leaf:
                raise RuntimeError(
                    "a view of a leaf Variable that requires grad is being used in an in-place "
                    "operation."
                )
            _refuse_view(tensor, "is being modified inplace")
        elif tensor.requires_grad and tensor.is_leaf:
            raise RuntimeError(
                "a leaf Variable that requires grad is being used in an in-place operation."
            )
    array = tensor.array
    if isinstance(array, np.ndarray) and any(
        stride == 0 and size > 1 for stride, size in zip(array.strides, array.shape, strict=True)
    ):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a "
            "single memory location. Please clone() the tensor before performing the operation."
        )


def store(tensor: Tensor, values: Any) -> None:
    """Write values into a tensor's memory and count the write.

    Raises RuntimeError where the dtype's category or the shape does not admit the values.
    """
    array = tensor.array
    if not _castable(values.dtype.kind, array.dtype.kind):
        names = [dtypes.SCALAR_NAMES[dtypes.of(d).name] for d in (values.dtype, array.dtype)]
        raise RuntimeError(
            f"result type {names[0]} can't be cast to the desired output type {names[1]}"
        )
    if values.shape != array.shape:
        raise RuntimeError(
            f"output with shape {list(array.shape)} doesn't match the broadcast shape "
            f"{list(values.shape)}"
        )
    if isinstance(array, np.ndarray):
        array[...] = values
    else:
        tensor.array = array.dtype.type(values)
    tensor.shared_versions().bump()


def _castable(source: str, target: str) -> bool:
    order = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}
    return order[source] <= order[target]


def inplace(row: Callable[..., Any], tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Run an operation and write its result over its first operand; returns that tensor.

    The rules see the operand as it was before. Raises RuntimeError, in PyTorch's words, for leaves
    that require grad, forbidden views, and results that do not fit.
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"an in-place operation needs a Tensor, not {type(tensor).__name__}")
    recorded = modes.is_grad_enabled() and (
        tensor.requires_grad
        or any(isinstance(a, Tensor) and a.requires_grad for a in (*args, *kwargs.values()))
    )
    check_writable(tensor, recorded)
    before = wrap(np.array(tensor.array, copy=True) if recorded else tensor.array)
    before.wrapped = tensor.wrapped
    before.node = edge(tensor) if recorded else None
    before.tangent = tensor.tangent
    out = row(before, *args, **kwargs)
    tensor.tangent = out.tangent
    node = out.node
    if isinstance(node, Port):
        node = node.node
    values = out.array
    store(tensor, values)
    if node is not None and node is not LAZY:
        if node._saved and tensor.versions is not None:
            link_result(node, tensor.versions)
            node._result_tick = versions.tick()
        rebase(tensor, node)
    return tensor


def write(tensor: Tensor, values: Any, node: Node | None) -> Tensor:
    """Write values that a node (None: unrecorded) accounts for."""
    store(tensor, values)
    if node is not None:
        rebase(tensor, node)
    return tensor


def rebase(tensor: Tensor, node: Node) -> None:
    """Give a written tensor its new history, and its base and the base's views theirs."""
    base = tensor.base
    if base is None:
        tensor.node = node
        _move_retained(tensor, node)
        _mark_views(tensor)
        return
    base.node = copy_slices(base, tensor, node)
    _move_retained(base, base.node)
    _mark_views(base)


def _move_retained(tensor: Tensor, node: Node) -> None:
    if tensor.retained:
        tensor.retained = False
        tensor.retain_grad()


def _mark_views(base: Tensor) -> None:
    for view in list((base.views or {}).values()):
        if view.array.dtype in dtypes.DIFFERENTIABLE:
            view.stale, view.former, view.node = True, view.node, LAZY


def regenerate(view: Tensor) -> Node:
    """The node of a view whose base has been written since: the base, read through strides."""
    if view.creation:
        view.node = getattr(view, "former", None)
        try:
            _refuse_view(view, "its base or another view of its base has been modified inplace")
        finally:
            view.node = LAZY
    base = view.base
    assert base is not None
    node = new(AsStridedBackward0)
    node._edges = (edge(base),)
    node._saved = ()
    array, source = view.memory(), base.memory()
    node.geometry = (source, array)
    node._seq = versions.tick()
    node._shape, node._dtype = array.shape, array.dtype
    view.stale, view.node = False, node
    if view.retained:
        view.retained = False
        view.retain_grad()
    return node


# -- strided memory -------------------------------------------------------------------------------
class Strided:
    """The layout of an array within the memory of another: what a gradient needs to follow it."""

    __slots__ = ("offset", "shape", "size", "source_shape", "source_strides", "strides")

    def __init__(self, source: np.ndarray[Any, Any], view: np.ndarray[Any, Any]) -> None:
        item = source.dtype.itemsize
        start = source.__array_interface__["data"][0]
        self.offset = (view.__array_interface__["data"][0] - start) // item
        self.shape, self.strides = view.shape, tuple(s // item for s in view.strides)
        self.source_shape = source.shape
        self.source_strides = tuple(s // item for s in source.strides)
        self.size = 1 + sum(
            (n - 1) * s for n, s in zip(self.source_shape, self.source_strides, strict=True) if n
        )

    def indices(self) -> Any:
        """The position in memory of each element of the view."""
        return _indices(self.shape, self.strides) + self.offset

    def source_indices(self) -> Any:
        """The position in memory of each element of the source."""
        return _indices(self.source_shape, self.source_strides)


def _indices(shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    total = np.zeros(shape, np.int64)
    for axis, (n, stride) in enumerate(zip(shape, strides, strict=True)):
        line = np.arange(n) * stride
        total += line.reshape((-1,) + (1,) * (len(shape) - axis - 1))
    return total


class AsStridedBackward0(Node):
    """A view read through its base's memory."""

    __slots__ = ()
    geometry: tuple[Any, Any]

    def name(self) -> str:
        return "AsStridedBackward0"

    def layout(self) -> Strided:
        """Where the view lies in its base."""
        return Strided(*self.geometry)

    def apply(self, grad: Any) -> Any:
        layout = self.layout()
        memory = np.zeros(layout.size, grad.dtype)
        np.add.at(memory, layout.indices(), grad)
        return (memory[layout.source_indices()],)

    def apply_recorded(self, grad: Any) -> Any:
        layout = self.layout()
        memory = grad.new_zeros(layout.size)
        where = wrap(layout.indices().reshape(-1))
        memory = memory.index_add(0, where, grad.reshape(-1))
        return (memory[wrap(layout.source_indices())],)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_saved_") and "geometry" in self.__dict__:
            layout = self.layout()
            fields = {
                "_saved_size": layout.shape,
                "_saved_stride": layout.strides,
                "_saved_storage_offset": layout.offset,
            }
            if name in fields:
                return fields[name]
        return super().__getattr__(name)


AsStridedBackward0.__module__ = "builtins"


class CopySlices(Node):
    """The history of a base that was written through a view of it."""

    __slots__ = ()
    _rare = True
    inner_edges: tuple[Any, ...]
    geometry: tuple[Any, Any]

    def name(self) -> str:
        return "torch::autograd::CopySlices"

    def apply(self, grad: Any) -> Any:
        layout = Strided(*self.geometry)
        memory = np.zeros(layout.size, grad.dtype)
        memory[layout.source_indices()] = grad
        where = layout.indices()
        inner = self._inner_gradients(memory[where], recorded=False)
        memory[where] = 0 if inner[0] is None else inner[0]
        return (memory[layout.source_indices()], *inner[1:])

    def apply_recorded(self, grad: Any) -> Any:
        layout = Strided(*self.geometry)
        whole, where = wrap(layout.source_indices().reshape(-1)), wrap(layout.indices().reshape(-1))
        memory = grad.new_zeros(layout.size).index_copy(0, whole, grad.reshape(-1))
        inner = self._inner_gradients(memory[where].reshape(layout.shape), recorded=True)
        new_values = inner[0]
        if new_values is None:
            new_values = grad.new_zeros(layout.shape)
        memory = memory.index_copy(0, where, new_values.reshape(-1))
        return (memory[whole].reshape(layout.source_shape), *inner[1:])

    def _inner_gradients(self, grad: Any, recorded: bool) -> tuple[Any, ...]:
        from gradcli.engine.backward import check_versions, fit

        if self._saved is None:
            raise RuntimeError(FREED_MESSAGE)
        inner = self._saved[0]
        if inner._seq < versions.last and inner._row is not None:
            check_versions(inner)
        grads = inner.apply_recorded(grad) if recorded else inner.apply(grad)
        return tuple(
            g if g is None or e is None else fit(g, e, inner, i)
            for i, (g, e) in enumerate(zip(grads, self.inner_edges, strict=True))
        )


CopySlices.__module__ = "builtins"


def copy_slices(base: Tensor, view: Tensor, inner: Node) -> CopySlices:
    """The node of `base` after `inner` has written the part of it that `view` shows."""
    node = new(CopySlices)
    array = view.memory()
    first = edge(base) if base.requires_grad else None
    # Inside, the first gradient has the view's shape and always has to be there.
    target = Port(node, 0, array.shape, array.dtype)
    node.inner_edges = (target, *inner._edges[1:])
    inner._edges = node.inner_edges
    node._edges = (first, *node.inner_edges[1:])
    node._saved = (inner,)
    node.geometry = (base.memory(), array)
    node._seq = versions.tick()
    node._shape, node._dtype = base.array.shape, base.array.dtype
    return node


def as_strided_array(array: Any, size: Any, stride: Any, offset: int | None) -> Any:
    """A view of an array's memory, in elements, as `torch.as_strided`."""
    item = array.dtype.itemsize
    root = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    flat = as_strided(root, (root.nbytes // item if root.size else 0,), (item,))
    own = array.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    start = own // item if offset is None else offset
    need = start + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) + 1
    if all(size) and need > flat.size:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {start}, and "
            f"itemsize {item} requiring a storage size of {need * item} are out of bounds for "
            f"storage of size {flat.size * item}"
        )
    return as_strided(flat[start:], tuple(size), tuple(s * item for s in stride))


__all__ = ["check_writable", "inplace", "rebase", "regenerate", "store", "write"]
