"""The backward pass: iterative, in PyTorch's order.

Nodes run in descending sequence number, so the ready queue is a sort; leaves may wait until last unless
somebody watches (hooks, an observer), when they run as soon as their last gradient has come, ties broken
as PyTorch's heap breaks them (engine.order). One place sums a gradient to its input's shape and casts it
to its dtype. The first gradient to arrive is borrowed, the second makes a fresh sum, later ones are added
in place.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from gradcli.engine import dtypes, modes, versions
from gradcli.engine.node import FREED_MESSAGE, AccumulateGrad, Node, Port
from gradcli.engine.tensor import Scalar, Tensor, edge, wrap

Edge = Node | Port
_by_sequence = attrgetter("seq")
_accumulating = threading.RLock()

# Called with (kind, node, data) at every step of a pass, if set: see engine.observe.
observer: Callable[[tuple[str, Node, Any]], None] | None = None


class _Running(threading.local):
    callbacks: list[Callable[[], Any]] | None = None
    depth = 0


_running = _Running()


class Captured:
    """What a pass brings to the inputs of `autograd.grad`."""

    def __init__(self, edges: Sequence[Edge | None]) -> None:
        self.keys = {_key(e) for e in edges if e is not None}
        self.grads: dict[tuple[int, int], Any] = {}


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
    before = modes.change(enabled=create, rules=False)
    _running.depth += 1
    outermost = _running.callbacks is None
    if outermost:
        _running.callbacks = []
    try:
        with np.errstate(all="ignore"):
            _run(roots, seeds, retain, create, captured, only)
        if outermost:
            callbacks = _running.callbacks
            assert callbacks is not None
            for callback in callbacks:  # the list grows while callbacks queue callbacks
                callback()
    finally:
        _running.depth -= 1
        if outermost:
            _running.callbacks = None
        modes.restore(before)


def queue_callback(callback: Callable[[], Any]) -> None:
    """Call `callback` when the pass that runs now has finished."""
    if _running.callbacks is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    _running.callbacks.append(callback)


def discover(roots: Sequence[Edge]) -> tuple[list[Node], dict[Node, list[Port]]]:
    """Every node that can be reached from the roots, and the ports met, by node."""
    nodes: list[Node] = []
    ports: dict[Node, list[Port]] = {}
    seen: set[Any] = set()
    add, append = seen.add, nodes.append

    def meet_port(port: Port) -> None:
        ports.setdefault(port.node, []).append(port)
        if port.node not in seen:
            add(port.node)
            append(port.node)

    for e in roots:
        if e not in seen:
            add(e)
            if e.__class__ is Port:
                meet_port(e)  # type: ignore[arg-type]
            else:
                append(e)  # type: ignore[arg-type]
    for node in nodes:
        for e in node.edges:  # type: ignore[assignment]
            if e is not None and e not in seen:
                add(e)
                if e.__class__ is Port:
                    meet_port(e)  # type: ignore[arg-type]
                else:
                    append(e)  # type: ignore[arg-type]
    return nodes, ports


def _ordered(nodes: list[Node], roots: Sequence[Edge]) -> list[Node]:
    watched = observer is not None
    if not watched:
        for n in nodes:
            if n.__class__ is AccumulateGrad:
                v = n.variable  # type: ignore[attr-defined]
                if n.hooks is not None or v.hooks or v.post_hooks:
                    watched = True
                    break
    if watched:
        from gradcli.engine.order import exact_order

        return exact_order(roots)
    nodes.sort(key=_by_sequence, reverse=True)
    return nodes


def _run(
    roots: Sequence[Edge],
    seeds: Sequence[Any],
    retain: bool,
    create: bool,
    captured: Captured | None,
    only: frozenset[int] | None,
) -> None:
    nodes, ports = discover(roots)
    nodes = _ordered(nodes, roots)
    grads: dict[Any, Any] = {}
    mine: set[Any] = set()  # edges whose gradient is a fresh sum, ours to add to
    for root, seed in zip(roots, seeds, strict=True):
        grads[root] = grads[root] + seed if root in grads else seed
    if observer is not None:
        observer(("begin", nodes[0], seeds[0] if len(seeds) == 1 else tuple(seeds)))
    state = modes.current()
    unusual = create or captured is not None or state.anomaly or observer is not None
    take = grads.pop
    for node in nodes:
        if node in ports:
            g = [None] * len(node.output_meta())
            for port in ports[node]:
                part = take(port, None)
                if part is not None:
                    g[port.nr] = part if g[port.nr] is None else g[port.nr] + part
            if node in grads:  # a saved result's or an older alias's edge without a port
                part = take(node)
                g[0] = part if g[0] is None else g[0] + part
            missing = all(x is None for x in g)
        else:
            g = take(node, None)
            missing = g is None
        if missing and not node.eager:
            continue
        if only is not None and id(node) not in only:
            if node.hooks is not None or captured is not None:
                _capture(node, g, captured, create)
            continue
        hooks = node.hooks
        if node.__class__ is AccumulateGrad:
            _accumulate_leaf(node, g, node in mine, create, captured)  # type: ignore[arg-type]
            continue
        if versions.written:
            check_versions(node)
        if unusual or hooks is not None or node.eager:
            results = _run_watched(node, g, create, captured, state)
        else:
            results = node.apply(g)
        for i, (e, d) in enumerate(zip(node.edges, results, strict=True)):
            if d is None or e is None:
                continue
            if d.shape != e.shape or d.dtype is not e.dtype:
                d = fit(d, e, node, i)
            old = take(e, None)
            if old is None:
                grads[e] = d
                if e.__class__ is AccumulateGrad and d is not g and node.row is not None:
                    # A rule's own fresh array may become the leaf's gradient without a copy.
                    if type(d) is np.ndarray and d.base is None and not _is_saved(d, node):
                        mine.add(e)
                    else:
                        mine.discard(e)
            elif e in mine and type(old) is np.ndarray:
                old += d
                grads[e] = old
            else:
                grads[e] = total = old + d
                if type(total) is np.ndarray:
                    mine.add(e)
        if not retain and node.frees():
            node.free()
            if observer is not None:
                observer(("free", node, None))
    if observer is not None:
        observer(("end", nodes[0], None))


def _is_saved(array: Any, node: Node) -> bool:
    for s in node.saved or ():
        if s is array or (type(s) is Tensor and s.array is array):
            return True
    return False


# -- one gradient to its input's shape and dtype --------------------------------------------------
def fit(grad: Any, e: Edge, node: Node, index: int) -> Any:
    """A gradient summed to its input's shape and cast to its dtype.

    Raises RuntimeError where the shape cannot be summed to the input's.
    """
    shape = tuple(grad.shape)
    if shape != tuple(e.shape):
        if not _expandable(tuple(e.shape), shape):
            raise RuntimeError(
                f"Function {node.name()} returned an invalid gradient at index {index} - got "
                f"{list(shape)} but expected shape compatible with {list(e.shape)}"
            )
        grad = sum_to(grad, tuple(e.shape))
    dtype = grad.array.dtype if isinstance(grad, Tensor) else grad.dtype
    if dtype != e.dtype:
        if dtype.kind == "c" and e.dtype.kind != "c":
            grad = grad.real
        if isinstance(grad, Tensor):
            if grad.array.dtype != e.dtype:
                grad = grad.to(dtypes.of(e.dtype))
        else:
            grad = grad.astype(e.dtype)
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
        grad = grad.sum(axes, True)
        return grad.view(shape) if lead else grad
    if not shape:
        return np.add.reduce(grad, axis=None)
    return np.add.reduce(grad, axis=axes, keepdims=True).reshape(shape)


# -- leaves ---------------------------------------------------------------------------------------
def _accumulate_leaf(
    node: AccumulateGrad, grad: Any, own: bool, create: bool, captured: Captured | None
) -> None:
    variable = node.variable
    if observer is not None:
        observer(("start", node, (grad,)))
    if variable.hooks:
        grad = call_tensor_hooks(variable.hooks, grad, create, node)
        own = False
    if captured is not None and (id(node), 0) in captured.keys:
        captured.grads[id(node), 0] = _owned(grad, own)
        return
    if captured is not None:
        return
    if node.hooks is not None and node.hooks.pre:
        grad = _call_prehooks(node, grad, create)
        own = False
    with _accumulating:
        _add_to_grad(variable, grad, own, create)
        if observer is not None:
            assert variable._grad is not None
            observer(("accumulate", node, (grad, variable._grad)))
        if variable.post_hooks:
            for hook in list(variable.post_hooks.values()):
                if hook(variable) is not None:
                    raise RuntimeError("Tensor post accumulate grad hooks should return None.")
    if node.hooks is not None and node.hooks.post:
        for hook in list(node.hooks.post.values()):
            hook((), (_tensor(grad),))
    if observer is not None:
        observer(("finish", node, ()))


def _add_to_grad(variable: Tensor, grad: Any, own: bool, create: bool) -> None:
    had = variable._grad
    if isinstance(grad, Tensor):
        if had is None:
            if grad.node is None:
                grad = wrap(np.array(grad.array, copy=True))
            variable._grad = grad
        else:
            variable._grad = had + grad
        return
    if had is None:
        variable._grad = wrap(_owned(grad, own))
    elif had.node is not None:
        variable._grad = had + wrap(grad)
    elif isinstance(had.array, np.ndarray):
        if had.base is not None or had.views or had.versions is not None:
            had.shared_versions().bump()
        had.array += grad
    else:
        had.array = had.array + grad


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
        raise TypeError(f"expected Tensor, but hook returned '{type(result).__name__}'")
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
    for hook in list(node.hooks.pre.values()):
        result = hook(grads)
        if result is None:
            continue
        if not isinstance(result, tuple):
            result = (result,)
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


def _capture(node: Node, grad: Any, captured: Captured | None, create: bool) -> Any:
    """Tensor hooks and retained gradients of a node's outputs; then what `grad` asked for."""
    hooks = node.hooks
    many = isinstance(grad, list)
    parts = list(grad) if many else [grad]
    if hooks is not None:
        for nr, own in hooks.tensor.items():
            parts[nr] = call_tensor_hooks(own, parts[nr], create, node)
        for nr, keeper in hooks.retain.items():
            tensor = keeper()
            if tensor is not None and parts[nr] is not None:
                _retain(tensor, parts[nr])
                if observer is not None:
                    observer(("retain", node, parts[nr]))
    if captured is not None:
        for nr, part in enumerate(parts):
            if (id(node), nr) in captured.keys and part is not None:
                captured.grads[id(node), nr] = part
    return parts if many else parts[0]


def _retain(tensor: Tensor, grad: Any) -> None:
    had = tensor._grad
    if isinstance(grad, Tensor):
        tensor._grad = grad if had is None else had + grad
    elif had is None:
        tensor._grad = wrap(_owned(grad, False))
    else:
        tensor._grad = wrap(had.array + grad)


def _run_watched(
    node: Node, grad: Any, create: bool, captured: Captured | None, state: modes.State
) -> Any:
    """A node's run where something unusual holds: hooks, a recorded pass, captures, anomalies."""
    hooks = node.hooks
    grad = _capture(node, grad, captured, create)
    if hooks is not None and hooks.pre:
        grad = _call_prehooks(node, grad, create)
    many = isinstance(grad, list)
    incoming = tuple(grad) if many else (grad,)
    if observer is not None:
        observer(("start", node, incoming))
    if create:
        results = node.apply_recorded(grad)
    elif hooks is not None and hooks.packed and node.row is not None:
        results = node.row.backward_packed(node, grad)
    else:
        results = node.apply(grad)
    if state.anomaly and state.check_nan:
        from gradcli.engine.anomaly import check

        check(node, results)
    if hooks is not None and hooks.post:
        results = _call_posthooks(node, results, incoming, create)
    if observer is not None:
        fitted = tuple(
            None if d is None or e is None else fit(d, e, node, i)
            for i, (e, d) in enumerate(zip(node.edges, results, strict=True))
        )
        observer(("finish", node, fitted))
        return fitted
    return results


def _call_posthooks(node: Node, results: Any, incoming: Any, create: bool) -> Any:
    outputs = tuple(_tensor(g) for g in incoming)
    grads = tuple(_tensor(g) for g in results)
    for hook in list(node.hooks.post.values()):
        result = hook(grads, outputs)
        if result is None:
            continue
        if not isinstance(result, tuple):
            result = (result,)
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
    given: Any = list(grads) if node.outputs is not None else grads[0]
    results = tuple(node.apply_recorded(given))
    return results[0] if len(results) == 1 else results


# -- versions -------------------------------------------------------------------------------------
def check_versions(node: Node) -> None:
    """Raise RuntimeError, in PyTorch's words, where a saved tensor has been written since."""
    for s in node.saved or ():
        if type(s) is tuple:
            for part in s:
                _check_input(part, node)
        else:
            _check_input(s, node)
    if node.written is not None:
        after = node.result_tick or node.seq
        for nr, counter in node.written.items():
            if counter.stale(after):
                shape, dtype = node.output_meta()[nr]
                raise _stale(shape, dtype, (node, nr), counter, after)


def _check_input(saved: Any, node: Node) -> None:
    if type(saved) is Scalar or not isinstance(saved, Tensor):
        return
    counter = saved.versions
    if counter is not None and counter.stale(node.seq):
        origin = None if saved.is_leaf else (saved.grad_fn, saved.output_nr)
        raise _stale(saved.array.shape, saved.array.dtype, origin, counter, node.seq)


def _stale(shape: Any, dtype: Any, origin: Any, counter: Any, tick: int) -> RuntimeError:
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
        f"operation: [torch.{dtypes.TYPE_NAMES[dtypes.of(dtype).name]} {list(shape)}]{which} is at "
        f"version {len(counter)}; expected version {counter.at(tick)} instead. Hint: {hint}"
    )


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
    if grad_variables is not None and grad_tensors is None:
        grad_tensors = grad_variables
    roots = _as_tuple(tensors)
    if inputs is not None and not isinstance(inputs, Tensor) and len(inputs) == 0:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    seeds = _seeds(roots, _as_tuple(grad_tensors) or (None,) * len(roots))
    retain = create_graph if retain_graph is None else retain_graph
    edges = _root_edges(roots)
    only = None
    if inputs is not None:
        wanted = _input_edges(_as_tuple(inputs), retain_non_leaves=True)
        only = _paths(edges, wanted)
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

    Nothing is accumulated. allow_unused: an input that the outputs do not depend on gives None instead
    of an error; materialize_grads: zeros. is_grads_batched: grad_outputs have a leading dimension of
    independent seeds.
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
            "allow_unused=False."
        )
    if allow_unused is None:
        allow_unused = materialize_grads
    roots, wanted = _as_tuple(outputs), _as_tuple(inputs)
    retain = create_graph if retain_graph is None else retain_graph
    given = _as_tuple(grad_outputs) or (None,) * len(roots)
    if is_grads_batched:
        return _batched(roots, wanted, given, retain, create_graph, allow_unused)
    seeds = _seeds(roots, given)
    targets = _input_edges(wanted)
    edges = _root_edges(roots)
    captured = Captured(targets)
    only = _paths(edges, targets)
    plain = seeds if create_graph else [s.array for s in seeds]
    run(edges, plain, retain=retain, create=create_graph, captured=captured, only=only)
    results: list[Tensor | None] = []
    for target, tensor in zip(targets, wanted, strict=True):
        found = None if target is None else captured.grads.get(_key(target))
        if found is None and not allow_unused:
            raise RuntimeError(
                "One of the differentiated Tensors appears to not have been used in the graph. Set "
                "allow_unused=True if this is the desired behavior."
            )
        if found is None and materialize_grads:
            found = np.zeros(tensor.array.shape, tensor.array.dtype)
        results.append(_tensor(found))
    return tuple(results)


def _batched(
    roots: Any, wanted: Any, seeds: Any, retain: bool, create: bool, allow_unused: bool
) -> tuple[Any, ...]:
    """One pass for each seed of the leading dimension, stacked."""
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
    return (value,) if isinstance(value, Tensor) else tuple(value)


def _root_edges(roots: tuple[Any, ...]) -> list[Edge]:
    edges = []
    for i, root in enumerate(roots):
        e = edge(root)
        if e is None:
            raise RuntimeError(
                f"element {i} of tensors does not require grad and does not have a grad_fn"
            )
        edges.append(e)
    return edges


def _input_edges(inputs: tuple[Any, ...], retain_non_leaves: bool = False) -> list[Edge | None]:
    edges: list[Edge | None] = []
    for tensor in inputs:
        if not tensor.requires_grad:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
        if retain_non_leaves and not tensor.is_leaf:
            tensor.retain_grad()
        e = edge(tensor)
        edges.append(e)
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
        for e in node.edges:
            if e is None:
                continue
            n = e.node if type(e) is Port else e
            if id(n) in goals or id(n) in needed:
                needed.add(id(node))
                break
    return frozenset(needed)


def _seeds(roots: tuple[Any, ...], seeds: tuple[Any, ...]) -> list[Tensor]:
    """A seed for each root, checked and cast; ones where none is given for one element."""
    if len(seeds) != len(roots):
        raise RuntimeError(f"got {len(roots)} tensors and {len(seeds)} gradients")
    made: list[Tensor] = []
    for i, (root, seed) in enumerate(zip(roots, seeds, strict=True)):
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
