"""The backward pass: iterative, in PyTorch's order.

Nodes run in descending sequence number, so the ready queue is a sort; leaves may wait until last
unless somebody watches (hooks, an observer), when they run as soon as their last gradient has come,
ties broken as PyTorch's heap breaks them (engine.order). One place sums a gradient to its input's
shape and casts it to its dtype. The first gradient to arrive is borrowed, the second makes a fresh
sum, later ones are added in place.
"""

from __future__ import annotations

import operator
import threading
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from gradcli.engine import dtypes, modes, versions
from gradcli.engine.node import FREED_MESSAGE, OWNED, RARE, AccumulateGrad, Node, Port
from gradcli.engine.order import exact_order
from gradcli.engine.tensor import Scalar, Tensor, edge, wrap

Edge = Node | Port
_by_sequence = operator.attrgetter("_seq")
_accumulating = threading.RLock()

# Called with (kind, node, data) at every step of a pass, if set: see engine.observe.
observer: Callable[[tuple[str, Node, Any]], None] | None = None


_numbers = count()


class Pass:
    """One run over a graph, as hooks may ask about it."""

    __slots__ = ("captured", "nodes", "number", "only", "whole")

    def __init__(
        self, nodes: list[Node], only: frozenset[int] | None, captured: Captured | None
    ) -> None:
        self.number, self.nodes, self.only = next(_numbers), nodes, only
        self.captured = captured
        # True where neither this pass nor one around it stops at given inputs.
        outer = _running.task
        self.whole: bool = only is None and (outer is None or outer.whole)

    def reaches(self, node: Node) -> bool:
        """True where the pass runs the node, or asks what comes to it."""
        if not any(n is node for n in self.nodes):
            return False
        if self.only is None or id(node) in self.only:
            return True
        return self.captured is not None and self.captured.wants(node)


class _Running(threading.local):
    callbacks: list[Callable[[], Any]] | None = None
    task: Pass | None = None
    node: Node | None = None  # in anomaly mode, the node that runs now
    depth = 0  # how many passes run inside one another


def current_pass() -> Pass:
    """The pass that runs in this thread now; RuntimeError outside of one."""
    if _running.task is None:
        raise RuntimeError("expected the current thread to be running a backward pass")
    return _running.task


_running = _Running()


def current_node() -> Node | None:
    """In anomaly mode, the node that runs in this thread now."""
    return _running.node


class Captured:
    """What a pass brings to the inputs of `autograd.grad`."""

    def __init__(self, edges: Sequence[Edge | None]) -> None:
        self.keys = {_key(e) for e in edges if e is not None}
        self.nodes = {node for node, _ in self.keys}
        self.grads: dict[tuple[int, int], Any] = {}

    def wants(self, node: Node) -> bool:
        """True where a gradient of the node's outputs was asked for."""
        return id(node) in self.nodes

    def take(self, node: Node, parts: Sequence[Any]) -> None:
        """Keep the gradients of a node's outputs that were asked for."""
        for nr, part in enumerate(parts):
            if (id(node), nr) in self.keys and part is not None:
                self.grads[id(node), nr] = part


def _key(e: Edge) -> tuple[int, int]:
    return (id(e.node), e.nr) if type(e) is Port else (id(e), 0)


def run(
    roots: Sequence[Edge],
    seeds: Sequence[Any],
    *,
    retain: bool,
    create: bool,
    captured: Captured | None = None,
    only: frozenset[int] | None = None,
) -> None:
    """Run the graph of `roots` with `seeds`: arrays, or tensors where `create`.

    captured: collect gradients there instead of accumulating. only: the ids of the nodes to run.
    """
    state = modes.local.state
    plain = not create and captured is None and only is None and observer is None
    plain = plain and (state is None or not (state.anomaly or state.intercept))
    if plain and _run_plain(roots, seeds, retain):
        return
    if _running.depth >= _DEEP:
        again = partial(run, retain=retain, create=create, captured=captured, only=only)
        _in_thread(again, roots, seeds)
        return
    before = modes.change(enabled=create, rules=False)
    if before is not None and before.intercept is not None and not create:
        create, seeds = True, [_tensor(s) for s in seeds]  # tangents travel with tensors
    outer, waiting, node = _running.task, _running.callbacks, _running.node
    callbacks = _running.callbacks = []
    _running.depth += 1
    try:
        with np.errstate(all="ignore"):
            _run(roots, seeds, retain, create, captured, only)
        for callback in callbacks:  # the list grows while callbacks queue callbacks
            callback()
    finally:
        _running.task, _running.callbacks, _running.node = outer, waiting, node
        _running.depth -= 1
        modes.restore(before)


_DEEP = 30  # passes inside one another, before the next one gets a thread, and a stack, of its own


def _in_thread(call: Callable[..., None], roots: Sequence[Edge], seeds: Sequence[Any]) -> None:
    """Run a pass in another thread, in this one's state, and wait for it."""
    state, task, node = modes.local.state, _running.task, _running.node
    errors: list[BaseException] = []

    def body() -> None:
        before = modes.local.state
        modes.restore(state)
        _running.task, _running.node = task, node
        try:
            call(roots, seeds)
        except BaseException as error:  # raised again where the pass was asked for
            errors.append(error)
        finally:
            modes.restore(before)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]


def queue_callback(callback: Callable[[], Any]) -> None:
    """Call `callback` when the pass that runs now has finished."""
    if _running.callbacks is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    _running.callbacks.append(callback)


def discover(roots: Sequence[Edge]) -> tuple[list[Node], dict[Node, list[Port]]]:
    """Every node that can be reached from the roots; the ports met, by node."""
    nodes: list[Node] = []
    ports: dict[Node, list[Port]] = {}
    seen: set[Any] = set()
    waiting = list(roots)
    while waiting:
        e = waiting.pop()
        if e in seen:
            continue
        seen.add(e)
        if e.__class__ is Port:
            ports.setdefault(e.node, []).append(e)
            waiting.append(e.node)
        else:
            nodes.append(e)  # type: ignore[arg-type]
            waiting += [e for e in e._edges if e is not None]  # type: ignore[union-attr]
    return nodes, ports


def _run(
    roots: Sequence[Edge],
    seeds: Sequence[Any],
    retain: bool,
    create: bool,
    captured: Captured | None,
    only: frozenset[int] | None,
) -> None:
    nodes, ports = discover(roots)
    if not nodes:
        return
    _running.task = Pass(nodes, only, captured)
    grads: dict[Any, Any] = {}
    for root, seed in zip(roots, seeds, strict=True):
        grads[root] = grads[root] + seed if root in grads else seed
    _run_watched(exact_order(roots), ports, grads, retain, create, captured, only)


# -- the plain pass: no hooks, ports or recording ---------------------------------------------------
# It keeps marks and gradients on the nodes, so that one thread at a time may run it; others take the
# watched pass, which keeps its own.
_marking = threading.Lock()


def _reach(roots: Sequence[Edge]) -> list[Node] | None:
    """The nodes that can be reached, in the order to run them; None where one is rare."""
    here = object()
    nodes: list[Any] = []
    append = nodes.append
    for e in roots:
        if e._mark is RARE:
            return None
        if e._mark is not here:
            e._mark = here
            append(e)
    for node in nodes:
        e = node._e0
        if e is not None:
            mark = e._mark
            if mark is not here:
                if mark is RARE:
                    return None
                e._mark = here
                append(e)
        e = node._e1
        if e is not None:
            mark = e._mark
            if mark is not here:
                if mark is RARE:
                    return None
                e._mark = here
                append(e)
        rest = node._rest
        if rest:
            for e in rest:
                if e is not None and e._mark is not here:
                    if e._mark is RARE:
                        return None
                    e._mark = here
                    append(e)
    nodes.sort(key=_by_sequence, reverse=True)
    for node in reversed(nodes):
        if node.__class__ is not AccumulateGrad:
            break
        if node.watched():
            return None
    return nodes


def _run_plain(roots: Sequence[Edge], seeds: Sequence[Any], retain: bool) -> bool:
    """Run the graph; False, with nothing done, where that is not for the plain pass."""
    if not _marking.acquire(blocking=False):
        return False
    try:
        nodes = _reach(roots)
        if nodes:
            with np.errstate(all="ignore"):
                _push(nodes, roots, seeds, retain)
        return nodes is not None
    finally:
        _marking.release()


def _push(nodes: list[Node], roots: Sequence[Any], seeds: Sequence[Any], retain: bool) -> None:
    node, waiting = nodes[0], iter(nodes)
    try:
        for root, seed in zip(roots, seeds, strict=True):
            root._grad = seed if root._grad is None else root._grad + seed
        for node in waiting:
            g = node._grad
            if g is not None:
                node.push(g, retain)
    except BaseException:
        _finish_leaves([node, *waiting])
        raise


def _finish_leaves(left: list[Node]) -> None:
    """After an error: leaves that the nodes left over do not feed have their whole gradient."""
    fed = {e for node in left for e in node._edges}
    for node in left:
        g, node._grad = node._grad, None
        if g is not None and isinstance(node, AccumulateGrad) and node not in fed:
            _add_to_grad(node.variable, g, False)


def _run_watched(
    nodes: list[Node],
    ports: dict[Node, list[Port]],
    grads: dict[Any, Any],
    retain: bool,
    create: bool,
    captured: Captured | None,
    only: frozenset[int] | None,
) -> None:
    """The pass in full."""
    state = modes.current()
    take = grads.pop
    if observer is not None:
        first = next(iter(grads))
        observer(("begin", first.node if type(first) is Port else first, grads[first]))
    for node in nodes:
        g = take(node, None)
        if node in ports:
            parts = [None] * len(node.output_meta())
            parts[0] = g
            for port in ports[node]:
                part = take(port, None)
                if part is not None:
                    had = parts[port.nr]
                    parts[port.nr] = part if had is None else had + part
            g = parts
            missing = all(x is None for x in parts)
        else:
            missing = g is None
        if missing and not _rare(node):
            continue
        if only is not None and id(node) not in only:
            if captured is not None and captured.wants(node):
                _capture(node, g, captured, create, runs=False)
            continue
        if node.__class__ is AccumulateGrad:
            _run_leaf(node, g, create, captured)
            continue
        results = _run_node(node, g, create, captured, state)
        for i, (e, d) in enumerate(zip(node._edges, results, strict=True)):
            if d is None or e is None:
                continue
            d = fit(d, e, node, i)
            old = grads.get(e)
            grads[e] = d if old is None else old + d
        if not retain and node._saved:
            node._saved = None
            if observer is not None:
                observer(("free", node, None))
    if observer is not None:
        observer(("end", nodes[0], None))


def _rare(node: Node) -> bool:
    if node.__class__ is AccumulateGrad:
        return node.watched()
    return node._mark is RARE


def _is_fresh(array: Any, node: Node) -> bool:
    """True where a rule has made the array itself, so that nobody else holds it."""
    if type(array) is not np.ndarray or array.base is not None or node._row is None:
        return False
    held = (s.array if type(s) is Tensor else s for s in node._saved or ())
    return not any(s is array for s in held)


# -- one gradient to its input's shape and dtype --------------------------------------------------
def fit(grad: Any, e: Edge, node: Node, index: int = 0) -> Any:
    """A gradient summed to its input's shape and cast to its dtype.

    Raises RuntimeError where the shape cannot be summed to the input's.
    """
    shape = tuple(grad.shape)
    if shape != e._meta.shape:
        if not _expandable(tuple(e._meta.shape), shape):
            raise RuntimeError(
                f"Function {node.name()} returned an invalid gradient at index {index} - got "
                f"{list(shape)} but expected shape compatible with {list(e._meta.shape)}"
            )
        grad = sum_to(grad, tuple(e._meta.shape))
    dtype = grad.array.dtype if isinstance(grad, Tensor) else grad.dtype
    wanted = e.wanted_dtype() if isinstance(e, AccumulateGrad) else e._meta.dtype
    if wanted is not None and dtype != wanted:
        if dtype.kind == "c" and wanted.kind != "c":
            grad = grad.real
        if isinstance(grad, Tensor):
            if grad.array.dtype != wanted:
                grad = grad.to(dtypes.of(wanted))
        else:
            grad = grad.astype(wanted)
    return grad


def _expandable(small: tuple[int, ...], large: tuple[int, ...]) -> bool:
    if len(small) > len(large):
        return False
    tail = large[len(large) - len(small) :]
    return all(s in (1, n) for s, n in zip(small, tail, strict=True))


def sum_to(grad: Any, shape: tuple[int, ...]) -> Any:
    """Sum over the dimensions that broadcasting added or stretched."""
    lead = grad.ndim - len(shape)
    axes = tuple(range(lead)) + tuple(
        lead + i for i, n in enumerate(shape) if n == 1 != grad.shape[lead + i]
    )
    if not axes:
        return grad.reshape(shape) if lead else grad
    if isinstance(grad, Tensor):
        if not shape:
            return grad.sum()
        grad = grad.sum(axes, True)
        return grad.view(shape) if lead else grad
    if not shape:
        return np.add.reduce(grad, axis=None)
    return np.add.reduce(grad, axis=axes, keepdims=True).reshape(shape)


# -- leaves ---------------------------------------------------------------------------------------
def _run_leaf(node: AccumulateGrad, grad: Any, create: bool, captured: Captured | None) -> None:
    """A leaf's end of the pass, with its hooks."""
    variable = node.variable
    if observer is not None:
        observer(("start", node, (grad,)))
    if variable.hooks:
        grad = call_tensor_hooks(variable.hooks, grad, create, node)
    if captured is not None and (id(node), 0) in captured.keys:
        captured.grads[id(node), 0] = _owned(grad, False)
    if captured is not None:
        return
    if node._hooks is not None and node._hooks.pre:
        grad = _call_prehooks(node, grad, create)
    with _accumulating:
        _add_to_grad(variable, grad, False)
        if observer is not None:
            assert variable._grad is not None
            observer(("accumulate", node, (grad, variable._grad)))
        if variable.post_hooks:
            for hook in list(variable.post_hooks.values()):
                _check_post_hook(hook(variable), variable)
    if node._hooks is not None and node._hooks.post:
        for hook in list(node._hooks.post.values()):
            hook((), (_tensor(grad),))
    if observer is not None:
        observer(("finish", node, ()))


def accumulate(node: AccumulateGrad, grad: Any, retain: bool) -> None:
    """The end of the plain pass: add to the leaf's `.grad`."""
    node._grad = None
    with _accumulating:
        _add_to_grad(node.variable, grad, node._mark is OWNED)


def first(node: Node, leaf: AccumulateGrad, d: Any) -> None:
    """Bring a leaf its first gradient of a plain pass, as `d`, which a rule of `node` has made."""
    leaf._grad = d
    if _is_fresh(d, node):
        leaf._mark = OWNED


def _check_post_hook(result: Any, variable: Tensor) -> None:
    if result is None or result is variable:
        return
    if not isinstance(result, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'")
    raise RuntimeError("Tensor post accumulate grad hooks should return None.")


def _add_to_grad(variable: Tensor, grad: Any, own: bool) -> None:
    """Add to `.grad`; own: the array is nobody else's, and may become `.grad` as it is."""
    if variable.node is None:  # it has stopped requiring grad since the graph was made
        return
    had = variable._grad
    if isinstance(grad, Tensor):
        if had is None:
            variable._grad = _recorded_copy(grad)
        else:
            variable._grad = total(had, grad)
        return
    if had is None:
        variable._grad = wrap(_owned(grad, own))
    elif isinstance(had.array, np.ndarray):
        had.shared_versions().bump()
        had.array += grad
    else:
        had.array = had.array + grad


def total(a: Any, b: Any) -> Any:
    """The sum of two gradients, recorded where they are tensors in a recorded pass."""
    return a + b


def _recorded_copy(grad: Tensor) -> Tensor:
    """What `.grad` first holds under create_graph: a copy, recorded as CopyBackwards."""
    return wrap(np.array(grad.array)).copy_(grad)  # type: ignore[no-any-return]


def _owned(grad: Any, own: bool) -> Any:
    if own or not isinstance(grad, np.ndarray):
        return grad
    return grad.copy()


# -- hooks, anomalies, recorded passes ------------------------------------------------------------
def _tensor(grad: Any) -> Any:
    if grad is None or isinstance(grad, Tensor):
        return grad
    return wrap(grad)


def _plain(grad: Any, create: bool) -> Any:
    if create or grad is None or not isinstance(grad, Tensor):
        return grad
    return grad.array


def call_tensor_hooks(hooks: dict[int, Any], grad: Any, create: bool, node: Node) -> Any:
    """The gradient after the hooks of a tensor."""
    for hook in list(hooks.values()):
        given = _tensor(grad)
        result = hook(given)
        if result is None:
            grad = given if create else given.array if given is not None else None
            continue
        _check_hook_result(given, result, hook)
        if observer is not None:
            observer(("hook", node, ("tensor hook", given, result)))
        grad = _plain(result, create)
    return grad


def _hook_name(hook: Any) -> str:
    return getattr(hook, "__name__", type(hook).__name__)


def _check_hook_result(given: Any, result: Any, hook: Any) -> None:
    if not isinstance(result, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'")
    if given is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    if given.array.dtype != result.array.dtype:
        raise RuntimeError(
            f"hook '{_hook_name(hook)}' has changed the type of value (was "
            f"torch.{_type_name(given)} got torch.{_type_name(result)})"
        )
    if given.array.shape != result.array.shape:
        raise RuntimeError(f"hook '{_hook_name(hook)}' has changed the size of value")


def _type_name(tensor: Tensor) -> str:
    return dtypes.TYPE_NAMES[tensor.dtype.name]


def _call_prehooks(node: Node, grad: Any, create: bool) -> Any:
    many = isinstance(grad, list)
    grads = tuple(_tensor(g) for g in (grad if many else [grad]))
    for hook in list(node._hooks.pre.values()):
        result = hook(grads)
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
        if observer is not None:
            observer(("hook", node, ("prehook", grads, result)))
        grads = result
    plain = [_plain(g, create) for g in grads]
    return plain if many else plain[0]


def _capture(
    node: Node, grad: Any, captured: Captured | None, create: bool, runs: bool = True
) -> Any:
    """Tensor hooks and retained gradients of a node's outputs, and what `grad` asked for.

    As in PyTorch, what `grad` gets of a node that runs itself is the gradient before its hooks.
    """
    hooks = node._hooks
    many = isinstance(grad, list)
    parts = list(grad) if many else [grad]
    if runs and captured is not None:
        captured.take(node, parts)
    if hooks is not None:
        for nr, own in hooks.tensor.items():
            parts[nr] = call_tensor_hooks(own, parts[nr], create, node)
        for nr, keeper in hooks.retain.items():
            tensor = keeper()
            if tensor is not None and parts[nr] is not None:
                _retain(tensor, parts[nr])
                if observer is not None:
                    observer(("retain", node, parts[nr]))
    if not runs and captured is not None:
        captured.take(node, parts)
    return parts if many else parts[0]


def _retain(tensor: Tensor, grad: Any) -> None:
    with _accumulating:
        had = tensor._grad
        if isinstance(grad, Tensor):
            tensor._grad = grad.clone() if had is None else total(had, grad)
        elif had is None:
            tensor._grad = wrap(_owned(grad, False))
        else:
            tensor._grad = wrap(had.array + grad)


def _run_node(
    node: Node, grad: Any, create: bool, captured: Captured | None, state: modes.State
) -> Any:
    """A node's run where something unusual holds: hooks, a recorded pass, captures, anomalies."""
    hooks = node._hooks
    grad = _capture(node, grad, captured, create)
    if hooks is not None and hooks.pre:
        grad = _call_prehooks(node, grad, create)
    many = isinstance(grad, list)
    incoming = tuple(grad) if many else (grad,)
    if observer is not None:
        observer(("start", node, incoming))
    if all(g is None for g in incoming) and not node._eager:
        results = (None,) * len(node._edges)
    else:
        if state.anomaly:
            _running.node = node
        try:
            if node._seq < versions.last and node._row is not None:
                check_versions(node)
            results = _apply(node, grad, create)
        except BaseException:
            if state.anomaly:
                from gradcli.engine.anomaly import accuse

                accuse(node)
            raise
    if state.anomaly and state.check_nan:
        from gradcli.engine.anomaly import check

        check(node, results)
    if hooks is not None and hooks.post:
        results = _call_posthooks(node, results, incoming, create)
    if observer is not None:
        fitted = tuple(
            None if d is None or e is None else fit(d, e, node, i)
            for i, (e, d) in enumerate(zip(node._edges, results, strict=True))
        )
        observer(("finish", node, fitted))
        return fitted
    return results


def _apply(node: Node, grad: Any, create: bool) -> Any:
    if create:
        return node.apply_recorded(grad)
    if node._hooks is not None and node._hooks.packed and node._row is not None:
        return node._row.backward_packed(node, grad)
    return node.apply(grad)


def _call_posthooks(node: Node, results: Any, incoming: Any, create: bool) -> Any:
    outputs = tuple(_tensor(g) for g in incoming)
    grads = tuple(_tensor(g) for g in results)
    for hook in list(node._hooks.post.values()):
        result = hook(grads, outputs)
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
        if observer is not None:
            observer(("hook", node, ("hook", grads, result)))
        grads = result
    return tuple(_plain(g, create) for g in grads)


def call_node(node: Node, grads: tuple[Any, ...]) -> Any:
    """`node(grad)`: the gradients of the inputs, recorded, as a tuple or a single tensor."""
    if len(grads) != len(node.output_meta()):
        raise TypeError(f"expected {len(node.output_meta())} arguments, got {len(grads)} instead")
    if all(g is None for g in grads) and not node._eager:
        return (None,) * len(node._edges) if len(node._edges) != 1 else None
    given: Any = list(grads) if node._outputs is not None else grads[0]
    results = tuple(node.apply_recorded(given))
    return results[0] if len(results) == 1 else results


# -- versions -------------------------------------------------------------------------------------
def check_versions(node: Node) -> None:
    """Raise RuntimeError, in PyTorch's words, where a saved tensor has been written since."""
    if node._hooks is not None and node._hooks.packed:
        return
    for s in node._saved or ():
        if type(s) is tuple:
            for part in s:
                _check_input(part, node)
        else:
            _check_input(s, node)
    if node._written is not None:
        after = node._result_tick or node._seq
        for nr, counter in node._written.items():
            if counter.stale(after):
                shape, dtype = node.output_meta()[nr]
                raise stale_error(shape, dtype, (node, nr), counter, after)


def _check_input(saved: Any, node: Node) -> None:
    if type(saved) is Scalar or not isinstance(saved, Tensor):
        return
    refuse_detached(saved, node._seq)
    counter = saved.versions
    if counter is not None and counter.stale(node._seq):
        origin = None if saved.is_leaf else (saved.grad_fn, saved.output_nr)
        raise stale_error(saved.array.shape, saved.array.dtype, origin, counter, node._seq)


def refuse_detached(saved: Tensor, tick: int) -> None:
    """Raise where a tensor has lost its history since it was saved."""
    if saved.detached > tick and saved.is_leaf:
        raise RuntimeError(
            "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_()."
            "This is not supported, please use out-of-place `.detach()` instead"
        )


def stale_error(shape: Any, dtype: Any, origin: Any, counter: Any, tick: int) -> RuntimeError:
    from gradcli.engine.views import short_name

    which = f", which is output {origin[1]} of {short_name(origin[0])}," if origin else ""
    hint = (
        "the backtrace further above shows the operation that failed to compute its gradient. The "
        "variable in question was changed in there or anywhere later. Good luck!"
        if modes.current().anomaly
        else "enable anomaly detection to find the operation that failed to compute its gradient, "
        "with torch.autograd.set_detect_anomaly(True, check_nan=False)."
    )
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: [{_shown_type(dtype)} {list(shape)}]{which} is at "
        f"version {len(counter)}; expected version {counter.at(tick)} instead. Hint: {hint}"
    )


_CYCLE = (
    "Using backward() with create_graph=True will create a reference cycle between the parameter and "
    "its gradient which can cause a memory leak. We recommend using autograd.grad when creating the "
    "graph to avoid this. If you have to use this function, make sure to reset the .grad fields of "
    "your parameters to None after use to break the cycle and avoid the leak."
)


def _shown_type(dtype: Any) -> str:
    """What the error calls the type of a tensor."""
    name = dtypes.of(dtype).name
    if dtype.kind == "c":
        return f"CPU{dtypes.SCALAR_NAMES[name]}Type"
    return f"torch.{dtypes.TYPE_NAMES[name]}"


# -- the public functions -------------------------------------------------------------------------
def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Accumulate the gradients of `tensors` into the leaves (`torch.autograd.backward`).

    grad_tensors: a seed per tensor; may be None for tensors of one element. Raises RuntimeError, in
    PyTorch's words, for bad seeds, for tensors without a graph, and where the graph was freed.
    """
    roots = _as_tuple(tensors)
    if grad_variables is not None:
        warnings.warn(
            "`grad_variables` is deprecated. Use `grad_tensors` instead.",
            FutureWarning,
            stacklevel=2,
        )
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to "
                "`backward()`. Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    if inputs is not None and not isinstance(inputs, Tensor) and len(tuple(inputs)) == 0:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    if create_graph:
        warnings.warn(_CYCLE, UserWarning, stacklevel=3)
    operator.index(retain_graph or 0)
    seeds = _seeds(roots, _as_tuple(grad_tensors) or (None,) * len(roots))
    retain = create_graph if retain_graph is None else retain_graph
    edges = _root_edges(roots)
    only = None
    if inputs is not None:
        wanted = _input_edges(_as_tuple(inputs), retain_non_leaves=True)
        only = _paths(edges, wanted) | {
            id(e.node if type(e) is Port else e) for e in wanted if e is not None
        }
    plain = seeds if create_graph else [s.array for s in seeds]
    run(edges, plain, retain=retain, create=create_graph, only=only)


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of `outputs` with respect to `inputs` (`torch.autograd.grad`).

    Nothing is accumulated. allow_unused: an input that the outputs do not depend on gives None
    instead of an error; materialize_grads: zeros. is_grads_batched: grad_outputs have a leading
    dimension of independent seeds.
    """
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To "
            "accumulate gradient for other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
            "allow_unused=False."
        )
    if allow_unused is None:
        allow_unused = materialize_grads
    roots, wanted = _as_tuple(outputs), _as_tuple(inputs)
    if not wanted:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    retain = create_graph if retain_graph is None else retain_graph
    given = _as_tuple(grad_outputs) or (None,) * len(roots)
    if is_grads_batched:
        return _batched(roots, wanted, given, retain, create_graph, allow_unused)
    seeds = _seeds(roots, given)
    edges = _root_edges(roots)
    targets = _input_edges(wanted)
    captured = Captured(targets)
    only = _paths(edges, targets)
    plain = seeds if create_graph else [s.array for s in seeds]
    run(edges, plain, retain=retain, create=create_graph, captured=captured, only=only)
    results: list[Tensor | None] = []
    for i, (target, tensor) in enumerate(zip(targets, wanted, strict=True)):
        found = None if target is None else captured.grads.get(_key(target))
        if found is None and not allow_unused:
            raise RuntimeError(
                f"The differentiated Tensor at index {i} appears to not have been used in the graph. "
                "Set allow_unused=True if this is the desired behavior."
            )
        if found is None and materialize_grads:
            if not isinstance(tensor, Tensor):
                raise RuntimeError(
                    "materialize_grads cannot be used when the given input is a GradientEdge"
                )
            zeros = np.zeros(tensor.array.shape, tensor.array.dtype)
            found = wrap(zeros, requires_grad=create_graph)
        results.append(_tensor(found))
    return tuple(results)


def _batched(
    roots: Any, wanted: Any, seeds: Any, retain: bool, create: bool, allow_unused: bool
) -> tuple[Any, ...]:
    """One pass for each seed of the leading dimension, stacked."""
    for i, (root, s) in enumerate(zip(roots, seeds, strict=True)):
        if _is_edge(root):
            raise RuntimeError("Batched grads are not supported with GradientEdge")
        if s is not None and s.shape[1:] != root.shape:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output "
                "as the batch dimension. The sizes of the remaining dimensions are expected to "
                "match the shape of corresponding output, but a mismatch was detected: "
                f"grad_output[{i}] has a shape of {s.shape[2:]} and output[{i}] has a shape of "
                f"{root.shape}. If you only want some tensors in `grad_output` to be considered "
                "batched, consider using vmap."
            )
    count = next(s.array.shape[0] for s in seeds if s is not None)
    rows = [
        grad(
            roots,
            wanted,
            tuple(None if s is None else s[k] for s in seeds),
            retain or k + 1 < count,
            create,
            allow_unused=allow_unused,
        )
        for k in range(count)
    ]
    stacked: list[Any] = []
    for column in zip(*rows, strict=True):
        if column[0] is None:
            stacked.append(None)
        elif create:
            stacked.append(type(column[0]).stack(list(column)))
        else:
            stacked.append(wrap(np.stack([c.array for c in column])))
    return tuple(stacked)


def _as_tuple(value: Any) -> tuple[Any, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, Tensor) or _is_edge(value) else tuple(value)


def _is_edge(value: Any) -> bool:
    """True for a GradientEdge."""
    return isinstance(value, tuple) and len(value) == 3 and isinstance(value[0], Node)


def _edge_of(value: Any) -> Edge:
    """The engine's edge of a GradientEdge."""
    node, nr = value[:2]
    return node if node._outputs is None else Port(node, nr, *node._outputs[nr])


def _root_edges(roots: tuple[Any, ...]) -> list[Edge]:
    edges = []
    for i, root in enumerate(roots):
        e = _edge_of(root) if _is_edge(root) else edge(root)
        if e is None:
            raise RuntimeError(
                f"element {i} of tensors does not require grad and does not have a grad_fn"
            )
        edges.append(e)
    return edges


def _input_edges(inputs: tuple[Any, ...], retain_non_leaves: bool = False) -> list[Edge | None]:
    edges: list[Edge | None] = []
    for tensor in inputs:
        if _is_edge(tensor):
            edges.append(_edge_of(tensor))
            continue
        if not isinstance(tensor, Tensor):
            raise RuntimeError(
                f"all inputs have to be Tensors or GradientEdges, but got {type(tensor).__name__}"
            )
        if retain_non_leaves:
            tensor.retain_grad()
        if not tensor.requires_grad:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
        edges.append(edge(tensor))
    return edges


def _paths(roots: Sequence[Edge], targets: Sequence[Edge | None]) -> frozenset[int]:
    """The ids of the nodes that must run for gradients to reach the targets.

    A non-leaf target itself runs only where another target lies behind it.
    """
    nodes, _ = discover(roots)
    nodes.sort(key=_by_sequence)
    goals = {id(t.node if type(t) is Port else t) for t in targets if t is not None}
    needed: set[int] = set()
    for node in nodes:  # inputs come before what uses them
        if node.__class__ is AccumulateGrad:
            if id(node) in goals:
                needed.add(id(node))
            continue
        for e in node._edges:
            if e is None:
                continue
            n = e.node if type(e) is Port else e
            if id(n) in goals or id(n) in needed:
                needed.add(id(node))
                break
    return frozenset(needed)


def _seeds(roots: tuple[Any, ...], seeds: tuple[Any, ...]) -> list[Tensor]:
    """A seed for each root, checked and cast; ones where none is given for one element."""
    made: list[Tensor] = []
    for i, (root, seed) in enumerate(zip(roots, seeds, strict=False)):
        if _is_edge(root):
            root = _stand_in(root)
        if not isinstance(root, Tensor):
            raise AssertionError("Expected output to be a torch.Tensor")
        if seed is None:
            made.append(_implicit_seed(root))
            continue
        if not isinstance(seed, Tensor):
            raise TypeError(
                f"gradients can be either Tensors or None, but got {type(seed).__name__}"
            )
        if seed.array.shape != root.array.shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{i}] has a shape of {seed.shape} and output[{i}] "
                f"has a shape of {root.shape}."
            )
        if (seed.array.dtype.kind == "c") != (root.array.dtype.kind == "c"):
            raise RuntimeError(
                "For complex Tensors, both grad_output and output are required to have the same "
                f"dtype. Mismatch in dtype: grad_output[{i}] has a dtype of {seed.dtype} and "
                f"output[{i}] has a dtype of {root.dtype}."
            )
        made.append(seed if seed.array.dtype == root.array.dtype else seed.to(root.dtype))
    return made


def _stand_in(edge: Any) -> Tensor:
    """A tensor of the shape and dtype that a GradientEdge leads to."""
    target = _edge_of(edge)
    out = wrap(np.empty(target._meta.shape, target._meta.dtype))
    out.node = target
    return out


def _implicit_seed(root: Tensor) -> Tensor:
    if root.requires_grad:
        if root.array.size != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        if root.array.dtype.kind not in "f":
            raise RuntimeError(
                f"grad can be implicitly created only for real scalar outputs but got {root.dtype}"
            )
    if root.array.ndim == 0:
        return wrap(root.array.dtype.type(1))
    return wrap(np.ones(root.array.shape, root.array.dtype))


__all__ = ["FREED_MESSAGE", "backward", "call_node", "grad", "queue_callback", "run"]
