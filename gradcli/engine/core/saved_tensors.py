"""Saved tensors as users see them: `_raw_saved_*`, and hooks that pack and unpack them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gradcli.engine.core import modes
from gradcli.engine.core.hooks import node_hooks
from gradcli.engine.core.node import Node, Port, freed_error
from gradcli.engine.core.tensor import LAZY, Scalar, Tensor, edge, wrap

if TYPE_CHECKING:
    from gradcli.engine.core.declaration import Declaration

FREED = (
    "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of "
    "the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if "
    "you need to backward through the graph a second time or if you need to access saved variables "
    "after calling backward."
)
TWICE = (
    "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair "
    "of hooks is allowed at a time."
)
_WRITTEN = (
    "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook "
    "cannot be modified by in-place operations as this can lead to unexpected side-effects. Please "
    "open an issue if you need to perform in-place operations on the input to a pack hook."
)


_SIGNATURE = (
    "register_hooks(): incompatible function arguments. The following argument types are supported:\n"
    "    1. (self: torch._C._autograd.SavedTensor, arg0: collections.abc.Callable, arg1: "
    "collections.abc.Callable) -> None\n\nInvoked with: "
)


def check_hooks(saved: Any, hooks: tuple[Any, ...]) -> None:
    """Raise PyTorch's TypeError unless `hooks` are two functions."""
    if len(hooks) != 2 or not all(map(callable, hooks)):
        raise TypeError(_SIGNATURE + ", ".join(map(repr, (saved, *hooks))))


class Written(RuntimeError):
    """A pack hook wrote to its input in place; `packed` has its result nevertheless."""

    def __init__(self, packed: Packed) -> None:
        super().__init__(_WRITTEN)
        self.packed = packed


Written.__name__ = Written.__qualname__ = "RuntimeError"


class Packed:
    """The result of a pack hook, with the saved tensor's place in the graph."""

    __slots__ = ("accumulator", "content", "edge", "unpack_hook")

    def __init__(self, tensor: Tensor, content: object, unpack_hook: Callable[[Any], Any]) -> None:
        self.content, self.unpack_hook = content, unpack_hook
        leaf = tensor.requires_grad and tensor.is_leaf
        self.accumulator = edge(tensor) if leaf else None
        self.edge = None if leaf else tensor.node

    def unpack(self) -> Tensor:
        """A tensor with the values that the unpack hook returns, at the original's place in the graph."""
        value = self.unpack_hook(self.content)
        if not isinstance(value, Tensor):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                f"{type(value).__name__}"
            )
        if self.accumulator is None and self.edge is None and value.node is None:
            return value
        out = wrap(value.array)
        if self.accumulator is not None:
            node = self.accumulator
            out.node, out.accumulates = LAZY, lambda: node
        else:
            out.node = self.edge
        return out


def pack_value(value: Any, hooks: tuple[Any, Any], history: Node | Port | None) -> Any:
    """Pack a saved value; history: the node or port that computed it, if it is a result."""
    if value is None or type(value) in (Packed, Scalar):
        return value
    if type(value) is tuple:
        return tuple(pack_value(v, hooks, history) for v in value)
    tensor = value
    if not isinstance(value, Tensor):
        tensor = wrap(value)
        tensor.node = history
    before = tensor.version_number()
    with modes.no_grad():
        content = hooks[0](tensor)
    if tensor.version_number() != before:
        raise Written(Packed(tensor, content, hooks[1]))
    return Packed(tensor, content, hooks[1])


def pack(node: Node, primitive: Declaration, stack: tuple[Any, ...]) -> None:
    """Pack what a node saved with the innermost pair of hooks."""
    if not node._saved or stack[-1][0] is None:
        return
    node._saved = tuple(
        pack_value(value, stack[-1], _history(node, primitive, field))
        for field, value in zip(primitive.saved_fields, node._saved, strict=True)
    )
    node_hooks(node).packed = True


def _history(node: Node, primitive: Declaration, field: str) -> Node | Port | None:
    if field in primitive.position:
        return None
    if not primitive.returns_list and primitive.outputs.index(field) >= primitive.differentiable:
        return None
    if node._outputs is None:
        return node
    nr = primitive.outputs.index(field)
    return Port(node, nr, *node._outputs[nr])


class Saved:
    """`node._raw_saved_FIELD`: a saved tensor of a node, before unpacking."""

    def __init__(self, node: Node | None = None, field: str = "", index: int | None = None) -> None:
        if node is None:
            raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden.")
        self._node, self._field, self._index = node, field, index

    def register_hooks(self, *hooks: Callable[..., Any]) -> None:
        """Store the saved tensor as `pack_hook(tensor)`, and read it as `unpack_hook(packed)`.

        Raises RuntimeError if the tensor has been freed or has hooks already.
        """
        check_hooks(self, hooks)
        pack_hook, unpack_hook = hooks
        node, primitive = self._node, self._node._primitive
        assert primitive is not None
        if node._saved is None:
            raise freed_error(FREED)
        at = primitive.saved_fields.index(self._field)
        value = node._saved[at] if self._index is None else node._saved[at][self._index]
        if value is None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor with value None is forbidden"
            )
        if type(value) is Packed:
            raise RuntimeError(TWICE)
        if type(value) is Scalar:
            value = value.tensor()
        error = None
        try:
            packed = pack_value(
                value, (pack_hook, unpack_hook), _history(node, primitive, self._field)
            )
        except Written as written:  # the hooks are registered although this raises, as in PyTorch
            packed, error = written.packed, written
        if self._index is not None:
            items = list(node._saved[at])
            items[self._index] = packed
            packed = tuple(items)
        node._saved = (*node._saved[:at], packed, *node._saved[at + 1 :])
        node_hooks(node).packed = True
        if error is not None:
            raise RuntimeError(_WRITTEN)

    @property
    def data(self) -> Any:
        """What is stored: the pack hook's result, the operand itself, or a result without its graph."""
        value = self._value()
        if type(value) is Packed:
            return value.content
        if type(value) is Scalar:
            return value.tensor()
        return value if isinstance(value, Tensor) or value is None else wrap(value)

    @property
    def unpack_hook(self) -> Any:
        """The unpack hook; None if there is none."""
        value = self._value()
        return value.unpack_hook if type(value) is Packed else None

    def _value(self) -> Any:
        node, primitive = self._node, self._node._primitive
        assert primitive is not None
        if node._saved is None:
            raise freed_error()
        value = node._saved[primitive.saved_fields.index(self._field)]
        return value if self._index is None else value[self._index]

    def unpack(self) -> Any:
        """The saved tensor."""
        assert self._node._primitive is not None
        value = self._node._primitive.unpack(self._node, self._field)
        return value if self._index is None else value[self._index]


Saved.__name__ = Saved.__qualname__ = "SavedTensor"
Saved.__module__ = "torch._C._autograd"
