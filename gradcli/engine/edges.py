"""Edges as values, hooks over several tensors, hooks on what is saved."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gradcli.engine import backward, modes
from gradcli.engine.node import Node, edge_of
from gradcli.engine.tensor import Tensor, edge


class GradientEdge(NamedTuple):
    """Where a gradient goes: a node and the number of its input."""

    node: Node
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge of a tensor; raises RuntimeError where it requires no grad."""
    if not tensor.requires_grad:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not "
            "require gradients"
        )
    node, nr = edge_of(edge(tensor))
    assert node is not None
    return GradientEdge(node, nr)


def increment_version(tensor: Any) -> None:
    """Count a write that autograd has not seen."""
    for t in (tensor,) if isinstance(tensor, Tensor) else tensor:
        t.shared_versions().bump()


class saved_tensors_hooks(modes.Mode):
    """Inside, saved tensors are stored as `pack_hook(tensor)` and read through `unpack_hook`."""

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        super().__init__()
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def clone(self) -> modes.Mode:
        return type(self)(self.pack_hook, self.unpack_hook)

    def values(self) -> dict[str, Any]:
        return {"pack": (*modes.current().pack, (self.pack_hook, self.unpack_hook))}

    def __enter__(self) -> None:
        stack = modes.current().pack
        if stack and stack[-1][0] is None:
            raise RuntimeError(stack[-1][1])
        super().__enter__()


class save_on_cpu(saved_tensors_hooks):
    """Inside, saved tensors are copies (there is no other device to move them to)."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda t: t.clone(), lambda t: t)
        self.pin_memory = pin_memory

    def clone(self) -> modes.Mode:
        return type(self)(self.pin_memory)


class disable_saved_tensors_hooks(modes.Mode):
    """Inside, `saved_tensors_hooks` are refused with a message."""

    def __init__(self, error_message: str) -> None:
        super().__init__()
        self.error_message = error_message

    def clone(self) -> modes.Mode:
        return type(self)(self.error_message)

    def values(self) -> dict[str, Any]:
        stack = modes.current().pack
        if stack and stack[-1][0] is not None:
            raise RuntimeError(self.error_message)
        return {"pack": (*stack, (None, self.error_message))}


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., Any], *, mode: str = "all"
) -> Any:
    """Call `fn` once a pass: with all gradients of the tensors ("all"), or the first ("any").

    Tensors that the pass does not reach give None. Returns a handle with `remove()`.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    lock = threading.Lock()
    if mode == "any":
        ran: set[int] = set()

        def first(grad: Any) -> None:
            number = backward.current_pass().number
            with lock:
                if number in ran:
                    return
                ran.add(number)
            fn(grad)

        return _Handles([t.register_hook(first) for t in tensors])
    state: dict[int, dict[str, Any]] = {}
    edges = [get_gradient_edge(t) for t in tensors]

    def inner(grad: Any, index: int) -> None:
        task = backward.current_pass()
        with lock:
            mine = state.get(task.number)
            if mine is None:
                reached = [task.reaches(e.node) for e in edges]
                mine = state[task.number] = {"left": sum(reached), "grads": [None] * len(edges)}
            mine["grads"][index] = grad
            mine["left"] -= 1
            done = not mine["left"]
            if done:
                del state[task.number]
        if done:
            fn(mine["grads"])

    handles = [t.register_hook(functools.partial(inner, index=i)) for i, t in enumerate(tensors)]
    return _Handles(handles)


class _Handles:
    """Removes several hooks at once."""

    def __init__(self, handles: list[Any]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        """Remove them all."""
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> _Handles:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()
