"""The watched pass: hooks, create_graph, anomaly mode, observers and captured gradients.

Nodes run in PyTorch's exact order, ties included (core.execution_order).
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from gradcli.engine.core import modes
from gradcli.engine.core.anomaly import accuse, check, running
from gradcli.engine.core.batched_arrays import BatchedArray, is_batched
from gradcli.engine.core.execution_order import exact_order
from gradcli.engine.core.gradients import accumulating, add_to_grad, fit, of_inputs, owned
from gradcli.engine.core.hooks import RARE
from gradcli.engine.core.node import AccumulateGrad, Edge, Node, Port, Variable
from gradcli.engine.core.plain_pass import Captured, discover
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.engine.core.version_checks import reading
from gradcli.engine.system.array_memory import given_up
from gradcli.engine.system.dtypes import tensor_name
from gradcli.engine.system.page_pool import lends

_numbers = count()


class Pass:
    """A running backward pass, as hooks see it.

    nodes: all that are reachable. create: as create_graph. retain: whether the graph is kept. captured: the
    gradients that are collected, not accumulated. only: ids of the nodes to run; None: all.
    """

    __slots__ = ("captured", "create", "nodes", "number", "only", "retain", "whole")
    nodes: list[Node]

    def __init__(
        self, create: bool, retain: bool, captured: Captured | None, only: frozenset[int] | None
    ) -> None:
        self.number, self.nodes = next(_numbers), []
        self.create, self.retain, self.captured, self.only = create, retain, captured, only
        # True if neither this pass nor an outer one is limited to given inputs.
        outer = _running.task
        self.whole: bool = only is None and (outer is None or outer.whole)

    def reaches(self, node: Node) -> bool:
        """True if the pass runs the node or captures its gradient."""
        if not any(n is node for n in self.nodes):
            return False
        if self.only is None or id(node) in self.only:
            return True
        return self.wants(node)

    def wants(self, node: Node) -> bool:
        """True if the pass captures the gradient of one of the node's outputs."""
        return self.captured is not None and id(node) in self.captured.nodes


class _PassOfThread(threading.local):
    callbacks: list[Callable[[], Any]] | None = None
    task: Pass | None = None
    depth = 0  # the number of nested passes


def current_pass() -> Pass:
    """The pass that runs in this thread; RuntimeError if there is none."""
    if _running.task is None:
        raise RuntimeError("expected the current thread to be running a backward pass")
    return _running.task


_running = _PassOfThread()


_DEEP = 30  # from this many nested passes on, each runs in a new thread, with a new stack


def run(
    roots: Sequence[Edge],
    cotangents: Sequence[Any],
    *,
    retain: bool,
    create: bool,
    captured: Captured | None = None,
    only: frozenset[int] | None = None,
) -> None:
    """As `backward_pass.run`, for graphs and modes that the plain pass does not handle."""
    if _running.depth >= _DEEP:
        again = partial(run, retain=retain, create=create, captured=captured, only=only)
        _in_thread(again, roots, cotangents)
        return
    before = modes.change(enabled=create, rules=False)
    if before is not None and not create:
        recorder = before.recorder
        on_tensors = recorder is not None and recorder.tensors
        in_batch = bool(before.levels) or is_batched(cotangents)
        if before.intercept is not None or on_tensors or in_batch:
            # only tensors carry tangents and batches, and a trace records calls on tensors
            create, cotangents = True, [as_tensor(s) for s in cotangents]
    outer, waiting, node = _running.task, _running.callbacks, running.node
    callbacks = _running.callbacks = []
    read = reading.ids
    reading.ids = None
    if only is not None and captured is not None and modes.depth():
        reading.ids = only | captured.nodes
    _running.depth += 1
    try:
        with np.errstate(all="ignore"):
            _run(roots, cotangents, Pass(create, retain, captured, only))
        for callback in callbacks:  # the list grows while callbacks queue callbacks
            callback()
    finally:
        _running.task, _running.callbacks, running.node = outer, waiting, node
        _running.depth -= 1
        reading.ids = read
        modes.restore(before)


def _in_thread(call: Callable[..., None], roots: Sequence[Edge], cotangents: Sequence[Any]) -> None:
    """Run a pass in a new thread with this thread's modes, and wait for it."""
    state, task, node = modes.local.state, _running.task, running.node
    errors: list[BaseException] = []

    def body() -> None:
        before = modes.local.state
        modes.restore(state)
        _running.task, running.node = task, node
        try:
            call(roots, cotangents)
        except BaseException as error:  # raised again in the calling thread
            errors.append(error)
        finally:
            modes.restore(before)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]


def queue_callback(callback: Callable[[], Any]) -> None:
    """Call `callback` at the end of the current pass."""
    if _running.callbacks is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    _running.callbacks.append(callback)


def _run(roots: Sequence[Edge], cotangents: Sequence[Any], now: Pass) -> None:
    now.nodes, ports = discover(roots)
    if not now.nodes:
        return
    _running.task, before = now, modes.local.state
    if any(n._primitive is not None and n._primitive.rare for n in now.nodes):
        # primitives of batches run on tensors
        now.create, cotangents = True, [as_tensor(s) for s in cotangents]
        modes.change(batched=True)  # whose levels may be closed by now
    grads: dict[Any, Any] = {}
    for root, cotangent in zip(roots, cotangents, strict=True):
        grads[root] = grads[root] + cotangent if root in grads else cotangent
    try:
        _run_nodes(exact_order(roots), ports, grads, now)
    finally:
        modes.restore(before)


def _run_nodes(
    nodes: list[Node], ports: dict[Node, list[Port]], grads: dict[Any, Any], now: Pass
) -> None:
    """Run the nodes in order, with all that the plain pass leaves out."""
    state = modes.current()
    recorder = None if state.recorder is None or not state.recorder.tensors else state.recorder
    take = grads.pop
    bare = not (state.enabled or state.intercept or state.observer or state.anomaly or recorder)
    first = next(iter(grads))
    _tell("begin", first.node if type(first) is Port else first, grads[first])
    for node in nodes:
        g = take(node, None)
        if recorder is not None:
            g = recorder.total(g)
        if node in ports:
            parts = [None] * len(node.output_meta())
            parts[0] = g
            for port in ports[node]:
                part = take(port, None)
                if recorder is not None:
                    part = recorder.total(part)
                if part is not None:
                    had = parts[port.nr]
                    parts[port.nr] = part if had is None else had + part
            g = parts
            missing = all(x is None for x in parts)
        else:
            missing = g is None
        if missing and not _rare(node):
            continue
        if now.only is not None and id(node) not in now.only:
            if now.wants(node):
                _capture(node, g, now, runs=False)
            continue
        if node.__class__ is AccumulateGrad:
            _run_leaf(node, g, now)
            continue
        results = d = old = None  # drop the previous node's gradients, one of which may be `g`
        if bare and _spends(node, now) and sys.getrefcount(g) == _ALONE:
            given_up.array = spent(g)
        try:
            results = _run_node(node, g, now, state)
        finally:
            given_up.array = None
        for i, (e, d) in enumerate(zip(node._edges, results, strict=True)):
            if d is None or e is None:
                continue
            d = fit(d, e, node, i)
            old = grads.get(e)
            if recorder is not None:
                grads[e] = recorder.arrived(old, d, node)
            else:
                grads[e] = d if old is None else old + d
        if not now.retain and node._saved:
            node._saved = None
            _tell("free", node, None)
    _tell("end", nodes[0], None)


def _alone() -> int:
    """What `sys.getrefcount` says of an object with one reference."""
    one = object()
    return sys.getrefcount(one)


_ALONE = _alone()


def _spends(node: Node, now: Pass) -> bool:
    """Whether a VJP rule may overwrite the incoming gradient: no hook or capture sees it."""
    primitive = node._primitive
    if primitive is None or not primitive.donates or node._hooks is not None:
        return False
    return not now.wants(node)


def spent(g: Any) -> Any:
    """The array of a batched gradient, for buffer donation; None if something else may refer to it."""
    batched = getattr(g, "array", None)
    if type(batched) is not BatchedArray or sys.getrefcount(batched) != _ALONE + 1:
        return None
    every = batched.every
    if type(every) is not np.ndarray or every.base is not None or not every.flags.writeable:
        return None
    return every if sys.getrefcount(every) == _ALONE + 1 + lends(every) else None


def _tell(kind: str, node: Node, data: object) -> None:
    """Pass a step to the observer, if there is one: see core.observers."""
    state = modes.local.state
    if state is not None and state.observer is not None:
        state.observer((kind, node, data))


def _rare(node: Node) -> bool:
    if node.__class__ is AccumulateGrad:
        return node.watched()
    return node._mark is RARE


def _run_leaf(node: AccumulateGrad, grad: Any, now: Pass) -> None:
    """Run a leaf: its hooks, and the accumulation of its gradient."""
    variable = node.variable
    _tell("start", node, (grad,))
    if variable.hooks:
        grad = call_tensor_hooks(variable.hooks, grad, now.create, node)
    if now.captured is not None:
        if now.wants(node):
            now.captured.grads[id(node), 0] = owned(grad)
        return
    if node._hooks is not None and node._hooks.pre:
        grad = _call_prehooks(node, grad, now.create)
    with accumulating:
        _tell("add", node, variable._grad)
        add_to_grad(variable, grad)
        _tell("accumulate", node, variable._grad)
        if variable.post_hooks:
            for hook in list(variable.post_hooks.values()):
                _check_post_hook(hook(variable), variable)
    if node._hooks is not None and node._hooks.post:
        for hook in list(node._hooks.post.values()):
            hook((), (as_tensor(grad),))
    _tell("finish", node, ())


def _check_post_hook(result: object, variable: Variable) -> None:
    if result is None or result is variable:
        return
    if not isinstance(result, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'")
    raise RuntimeError("Tensor post accumulate grad hooks should return None.")


def as_tensor(grad: Any) -> Any:
    if grad is None or isinstance(grad, Tensor):
        return grad
    return wrap(grad)


def _plain(grad: Any, create: bool) -> Any:
    if create or grad is None or not isinstance(grad, Tensor):
        return grad
    return grad.array


def call_tensor_hooks(hooks: dict[int, Any], grad: Any, create: bool, node: Node) -> Any:
    """Call a tensor's hooks in order; returns the gradient, which they may replace."""
    for hook in list(hooks.values()):
        given = as_tensor(grad)
        result = hook(given)
        if result is None:
            grad = given if create else given.array if given is not None else None
            continue
        _check_hook_result(given, result, hook)
        _tell("hook", node, ("tensor hook", given, result))
        grad = _plain(result, create)
    return grad


def _hook_name(hook: Callable[..., Any]) -> str:
    return getattr(hook, "__name__", type(hook).__name__)


def _check_hook_result(given: Any, result: object, hook: Callable[..., Any]) -> None:
    if not isinstance(result, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'")
    if given is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    if given.array.dtype != result.array.dtype:
        raise RuntimeError(
            f"hook '{_hook_name(hook)}' has changed the type of value (was "
            f"torch.{tensor_name(given)} got torch.{tensor_name(result)})"
        )
    if given.array.shape != result.array.shape:
        raise RuntimeError(f"hook '{_hook_name(hook)}' has changed the size of value")


def _replaced(
    hooks: dict[int, Any], grads: tuple[Any, ...], node: Node, kind: str, *more: Any
) -> tuple[Any, ...]:
    """Call a node's hooks with `(grads, *more)`; returns the gradients, which they may replace."""
    for hook in list(hooks.values()):
        result = hook(grads, *more)
        if result is None:
            continue
        if not isinstance(result, tuple):
            raise TypeError(f"expected tuple, but hook returned '{type(result).__name__}'")
        if len(result) != len(grads):
            raise RuntimeError(
                f"hook '{_hook_name(hook)}' has returned an incorrect number of values (got "
                f"{len(result)}, but expected {len(grads)})"
            )
        for old, new_value in zip(grads, result, strict=True):
            if new_value is not None:
                _check_hook_result(old, new_value, hook)
        _tell("hook", node, (kind, grads, result))
        grads = result
    return grads


def _call_prehooks(node: Node, grad: Any, create: bool) -> Any:
    many = isinstance(grad, list)
    grads = tuple(as_tensor(g) for g in (grad if many else [grad]))
    grads = _replaced(node._hooks.pre, grads, node, "prehook")
    plain = [_plain(g, create) for g in grads]
    return plain if many else plain[0]


def _capture(node: Node, grad: Any, now: Pass, runs: bool = True) -> Any:
    """Call the tensor hooks of a node's outputs, retain and capture gradients; returns the gradient.

    As in PyTorch, the gradient of a node that runs is captured before its hooks.
    """
    hooks = node._hooks
    many = isinstance(grad, list)
    parts = list(grad) if many else [grad]
    if runs and now.captured is not None:
        now.captured.take(node, parts)
    if hooks is not None:
        for nr, own in hooks.tensor.items():
            parts[nr] = call_tensor_hooks(own, parts[nr], now.create, node)
        for nr, keeper in hooks.retain.items():
            tensor = keeper()
            if tensor is not None and parts[nr] is not None:
                _retain(tensor, parts[nr])
                _tell("retain", node, parts[nr])
    if not runs and now.captured is not None:
        now.captured.take(node, parts)
    return parts if many else parts[0]


def _retain(tensor: Tensor, grad: Any) -> None:
    with accumulating:
        had = tensor._grad
        if isinstance(grad, Tensor):
            tensor._grad = grad.clone() if had is None else had + grad
        elif had is None:
            tensor._grad = wrap(owned(grad))
        else:
            tensor._grad = wrap(had.array + grad)


def _run_node(node: Node, grad: Any, now: Pass, state: modes.State) -> Any:
    """Run a node with its hooks, capturing and checks for anomalies; returns its inputs' gradients."""
    hooks = node._hooks
    grad = _capture(node, grad, now)
    if hooks is not None and hooks.pre:
        grad = _call_prehooks(node, grad, now.create)
    many = isinstance(grad, list)
    incoming = tuple(grad) if many else (grad,)
    _tell("start", node, incoming)
    results: Sequence[Any] = (None,) * len(node._edges)
    if node._eager or any(g is not None for g in incoming):
        if state.anomaly or state.recorder is not None:
            running.node = node
        try:
            results = of_inputs(node, grad, now.create)
        except BaseException:
            if state.anomaly:
                accuse(node)
            raise
    if state.anomaly and state.check_nan:
        check(node, results)
    if hooks is not None and hooks.post:
        results = _call_posthooks(node, results, incoming, now.create)
    if state.observer is not None:
        fitted = tuple(
            None if d is None or e is None else fit(d, e, node, i)
            for i, (e, d) in enumerate(zip(node._edges, results, strict=True))
        )
        _tell("finish", node, fitted)
        return fitted
    return results


def _call_posthooks(node: Node, results: Any, incoming: Any, create: bool) -> Any:
    outputs = tuple(as_tensor(g) for g in incoming)
    grads = tuple(as_tensor(g) for g in results)
    grads = _replaced(node._hooks.post, grads, node, "hook", outputs)
    return tuple(_plain(g, create) for g in grads)


def call_node(node: Node, grads: tuple[Any, ...]) -> Any:
    """`node(grad)`: the gradients of the inputs, recorded; a tuple, or a tensor if there is one input."""
    if len(grads) != len(node.output_meta()):
        raise TypeError(f"expected {len(node.output_meta())} arguments, got {len(grads)} instead")
    if all(g is None for g in grads) and not node._eager:
        return (None,) * len(node._edges) if len(node._edges) != 1 else None
    given: Any = list(grads) if node._outputs is not None else grads[0]
    results = tuple(node.apply_recorded(given))
    return results[0] if len(results) == 1 else results
