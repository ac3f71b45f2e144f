"""Saved tensors seen from outside: `_raw_saved_*`, and hooks that pack and unpack them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gradcli.engine import modes
from gradcli.engine.node import FREED_MESSAGE, Node
from gradcli.engine.tensor import Scalar, Tensor, wrap

if TYPE_CHECKING:
    from gradcli.engine.operator import Row


class Packed:
    """A saved tensor in the form that a pack hook gave it."""

    __slots__ = ("content", "is_result", "unpack_hook")

    def __init__(self, content: Any, unpack_hook: Callable[[Any], Any], is_result: bool) -> None:
        self.content, self.unpack_hook, self.is_result = content, unpack_hook, is_result

    def unpack(self, node: Node, field: str) -> Tensor:
        """The tensor again; a result gets back its grad_fn."""
        value = self.unpack_hook(self.content)
        if not isinstance(value, Tensor):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                f"{type(value).__name__}"
            )
        if self.is_result and value.node is None:
            value = wrap(value.array)
            value.node = node
        return value


def pack_value(value: Any, hooks: tuple[Any, Any], is_result: bool) -> Any:
    if value is None or type(value) is Packed:
        return value
    if type(value) is tuple:
        return tuple(pack_value(v, hooks, is_result) for v in value)
    if type(value) is Scalar:
        tensor = value.tensor()
    elif isinstance(value, Tensor):
        tensor = value
    else:
        tensor = wrap(value)
    before = tensor.version_number()
    with modes.no_grad():
        content = hooks[0](tensor.detach() if is_result else tensor)
    if tensor.version_number() != before:
        raise RuntimeError(
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input "
            "to pack hook can not be modified by in-place operations as this can lead to unexpected "
            "side-effects. Please open an issue if you need to perform in-place operations on the "
            "input to a pack hook."
        )
    return Packed(content, hooks[1], is_result)


def pack(node: Node, row: Row, stack: tuple[Any, ...]) -> None:
    """Send what a node saved through the innermost pair of hooks."""
    from gradcli.engine.hooks import node_hooks

    if not node._saved or stack[-1][0] is None:
        return
    node._saved = tuple(
        pack_value(value, stack[-1], field not in row.position)
        for field, value in zip(row.saved_fields, node._saved, strict=True)
    )
    node_hooks(node).packed = True


class Saved:
    """One saved tensor of a node, before unpacking: `node._raw_saved_FIELD`."""

    def __init__(self, node: Node, field: str, index: int | None = None) -> None:
        self._node, self._field, self._index = node, field, index

    def register_hooks(
        self, pack_hook: Callable[..., Any], unpack_hook: Callable[..., Any]
    ) -> None:
        """Store the saved tensor as `pack_hook(tensor)`, read it through `unpack_hook`.

        Raises RuntimeError where the tensor has been freed or has hooks already.
        """
        from gradcli.engine.hooks import node_hooks

        node, row = self._node, self._node.row
        assert row is not None
        if node._saved is None:
            raise RuntimeError(FREED_MESSAGE)
        at = row.saved_fields.index(self._field)
        value = node._saved[at] if self._index is None else node._saved[at][self._index]
        if value is None:
            raise RuntimeError("Can't register hooks on a SavedTensor whose value is None.")
        if type(value) is Packed:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor with hooks already registered is not "
                "supported"
            )
        packed = pack_value(value, (pack_hook, unpack_hook), self._field not in row.position)
        if self._index is not None:
            items = list(node._saved[at])
            items[self._index] = packed
            packed = tuple(items)
        node._saved = (*node._saved[:at], packed, *node._saved[at + 1 :])
        node_hooks(node).packed = True

    def unpack(self) -> Any:
        """The saved tensor."""
        assert self._node.row is not None
        value = self._node.row.unpack(self._node, self._field)
        return value if self._index is None else value[self._index]
