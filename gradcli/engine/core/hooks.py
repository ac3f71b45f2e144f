"""Hooks on tensors and nodes, kept in the order of registration, and their removable handles."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any
from weakref import ref

RARE = "rare"  # marks a node that a plain pass cannot run (see core.plain_pass)
Hooks = dict[int, Callable[..., Any]]
_ids = count().__next__


class RemovableHandle:
    """Removes a hook: by `remove()`, or at the end of a `with` block."""

    def __init__(self, hooks: Hooks) -> None:
        self.id = _ids()
        self._hooks = hooks

    def remove(self) -> None:
        """Remove the hook; a second call does nothing."""
        self._hooks.pop(self.id, None)

    def __repr__(self) -> str:
        return f"<torch.utils.hooks.RemovableHandle object at {self.id:#x}>"

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


RemovableHandle.__module__ = "torch.utils.hooks"


def add(hooks: Hooks, hook: Callable[..., Any]) -> RemovableHandle:
    """Register a hook; returns the handle that removes it."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


class NodeHooks:
    """The hooks of one node."""

    __slots__ = ("packed", "post", "pre", "retain", "tensor")

    def __init__(self) -> None:
        self.pre: Hooks = {}
        self.post: Hooks = {}
        self.tensor: dict[int, Hooks] = {}  # by output number
        self.retain: dict[int, ref[Any]] = {}  # output number: the tensor that keeps its gradient
        self.packed = False  # saved tensors were packed by hooks


def node_hooks(node: Any) -> NodeHooks:
    """The hooks of a node, made on first use."""
    hooks = node._hooks
    if hooks is None:
        hooks = node._hooks = NodeHooks()
        node._mark = RARE
    return hooks
