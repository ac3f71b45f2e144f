"""`torch.autograd.graph`: gradient edges, hooks over several tensors, hooks on saved tensors."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np

from gradcli.engine.core import modes, watched_pass
from gradcli.engine.core.custom_function import BackwardCFunction
from gradcli.engine.core.node import Node, edge_of
from gradcli.engine.core.tensor import Tensor, edge, wrap
from gradcli.engine.system.array_memory import address, copied, memory_of


class GradientEdge(NamedTuple):
    """A node, and the number of the node's output whose gradient is meant."""

    node: Node
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The GradientEdge of a tensor; RuntimeError if it does not require grad."""
    if not tensor.requires_grad:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not "
            "require gradients"
        )
    node, nr = edge_of(edge(tensor))
    assert node is not None
    # The node of a custom Function lives as long as its output, so the edge keeps the output.
    return GradientEdge(node, nr, tensor if isinstance(node, BackwardCFunction) else None)


def increment_version(tensor: Tensor) -> None:
    """Count an in-place write that autograd did not see, for one tensor or several."""
    tensors = (tensor,) if isinstance(tensor, Tensor) else tensor
    if not isinstance(tensors, Iterable) or not all(isinstance(t, Tensor) for t in tensors):
        raise RuntimeError("increment_version expect a Iterable[Tensor] as input")
    for t in tensors:
        t.shared_versions().bump()


class saved_tensors_hooks(modes.Mode):
    """A context in which saved tensors are stored as `pack_hook(tensor)`, read as `unpack_hook(it)`."""

    def __init__(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        super().__init__(pack_hook, unpack_hook)
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def values(self) -> dict[str, Any]:
        return {"pack": (*modes.current().pack, (self.pack_hook, self.unpack_hook))}

    def __enter__(self) -> None:
        stack = modes.current().pack
        if stack and stack[-1][0] is None:
            raise RuntimeError(stack[-1][1])
        modes.change(**self.values())

    def __exit__(self, *error: object) -> None:
        # Pop instead of restoring a state: contexts may be left out of order, or once too often.
        modes.change(pack=modes.current().pack[:-1])


class save_on_cpu(saved_tensors_hooks):
    """A context in which saved tensors are copies: there is no other device to move them to."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda t: t.clone(), lambda t: t)
        self.pin_memory, self._made_of = pin_memory, (pin_memory,)


class disable_saved_tensors_hooks(modes.Mode):
    """A context in which `saved_tensors_hooks` raise RuntimeError with the given message."""

    def __init__(self, error_message: str) -> None:
        super().__init__(error_message)
        self.error_message = error_message

    def values(self) -> dict[str, Any]:
        stack = modes.current().pack
        if stack and stack[-1][0] is not None:
            raise RuntimeError(self.error_message)
        return {"pack": (*stack, (None, self.error_message))}


class _Kept:
    """Stands for a saved tensor under `allow_mutation_on_saved_tensors`."""


class AllowMutation:
    """The state of `allow_mutation_on_saved_tensors`: saved tensors, and copies of those written since."""

    def __init__(self) -> None:
        self.open = True
        self.cloned: WeakKeyDictionary[_Kept, Tensor] = WeakKeyDictionary()
        self.original: WeakKeyDictionary[_Kept, Tensor] = WeakKeyDictionary()
        self.tid_to_weakhandle: WeakValueDictionary[Any, _Kept] = WeakValueDictionary()
        self.sid_to_tid: defaultdict[Any, set[Any]] = defaultdict(set)

    def pack(self, tensor: Tensor) -> _Kept:
        """The pack hook: a stand-in for the tensor, one for each of its versions."""
        memory = _memory_key(tensor)
        key = (id(tensor), memory, tensor.version_number())
        self.sid_to_tid[memory].add(key)
        kept = self.tid_to_weakhandle.get(key)
        if kept is None:
            kept = self.tid_to_weakhandle[key] = _Kept()
            self.original[kept] = tensor
        return kept

    def unpack(self, kept: _Kept) -> Tensor:
        """The unpack hook: the tensor with the values that it had when it was saved."""
        found = None
        if self.open:
            found = self.cloned.get(kept, self.original.get(kept))
        if found is None:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' contextin "
                "which the graph was originally recorded."
            )
        return found

    def keep(self, tensor: Tensor) -> None:
        """Copy the saved tensors whose memory is about to be written through `tensor`."""
        for key in self.sid_to_tid.get(_memory_key(tensor), ()):
            kept = self.tid_to_weakhandle.get(key)
            if kept is not None and kept not in self.cloned:
                self.cloned[kept] = wrap(copied(self.original.pop(kept).array))

    def clear(self) -> None:
        """Drop all tensors; `unpack` fails from now on."""
        self.open = False
        for held in (self.cloned, self.original, self.tid_to_weakhandle, self.sid_to_tid):
            held.clear()


AllowMutation.__name__ = AllowMutation.__qualname__ = "_AllowMutationOnSavedContext"


def _memory_key(tensor: Tensor) -> Any:
    """A key that is equal for tensors that share memory."""
    array = tensor.array
    if isinstance(array, np.generic):
        return "number", id(tensor)
    return address(memory_of(array))


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[AllowMutation]:
    """A context in which saved tensors may be written in place: they are copied first."""
    if isinstance(getattr(modes.current().before_write, "__self__", None), AllowMutation):
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    context = AllowMutation()
    before = modes.change(before_write=context.keep)
    try:
        with saved_tensors_hooks(context.pack, context.unpack):
            yield context
    finally:
        modes.restore(before)
        context.clear()


def register_multi_grad_hook(
    tensors: Sequence[Tensor], fn: Callable[..., Any], *, mode: str = "all"
) -> Any:
    """Call `fn` once in each pass: with all gradients of the tensors ("all"), or the first ("any").

    The gradient of a tensor that the pass does not reach is None. Returns a handle with `remove()`.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    lock = threading.Lock()
    if mode == "any":
        ran: set[int] = set()

        def first(grad: Any) -> None:
            number = watched_pass.current_pass().number
            with lock:
                if number in ran:
                    return
                ran.add(number)
            fn(grad)

        return _Handles([t.register_hook(first) for t in tensors])
    state: dict[int, dict[str, Any]] = {}
    edges = [get_gradient_edge(t) for t in tensors]

    def inner(grad: Any, index: int) -> None:
        task = watched_pass.current_pass()
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
    """A handle that removes several hooks at once."""

    def __init__(self, handles: list[Any]) -> None:
        self.handles = tuple(handles)

    def remove(self) -> None:
        """Remove all hooks."""
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> _Handles:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()
