"""The backward pass: iterative, in PyTorch's order.

Nodes run in descending order of sequence number, so sorting replaces a ready queue. Leaves run last,
unless hooks or an observer watch: then each runs when its last gradient arrives, and ties are broken
as PyTorch's heap breaks them. A node borrows the first gradient that arrives, allocates a sum for the
second, and adds later ones in place.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gradcli.engine.core import batched_arrays, modes, plain_pass
from gradcli.engine.core.batched_arrays import BatchedArray, BatchLevel, ones_like, opened
from gradcli.engine.core.modes import users_level
from gradcli.engine.core.node import AccumulateGrad, Edge, Node, Port
from gradcli.engine.core.plain_pass import Captured, by_sequence, discover
from gradcli.engine.core.tensor import Tensor, edge, wrap
from gradcli.engine.system.array_memory import Numberless


def run(
    roots: Sequence[Edge],
    cotangents: Sequence[Any],
    *,
    retain: bool,
    create: bool,
    captured: Captured | None = None,
    targets: Sequence[Edge | None] | None = None,
) -> None:
    """Run the graph of `roots` with `cotangents`: arrays, or tensors if `create` (as create_graph).

    captured: gradients are collected there, not accumulated. targets: only what leads there runs; None: all.
    """
    state = modes.local.state
    plain = not create
    if state is not None and plain:
        on_tensors = state.recorder is not None and state.recorder.tensors
        watched = state.anomaly or state.intercept or state.levels or state.observer
        plain = not (watched or on_tensors)
    if plain and plain_pass.run(roots, cotangents, retain, captured, targets):
        return
    quiet = state is None or state.ordinary or state.silent or state.mapped
    if quiet and (captured is None) is (targets is None):
        from gradcli.engine.core import recorded_pass

        if recorded_pass.run(roots, cotangents, retain, create, captured, targets):
            return
    from gradcli.engine.core import watched_pass

    only = None
    if targets is not None:
        only = _paths(roots, targets)
        if captured is None:
            only |= {id(e.node if type(e) is Port else e) for e in targets if e is not None}
    watched_pass.run(roots, cotangents, retain=retain, create=create, captured=captured, only=only)


_CYCLE = (
    "Using backward() with create_graph=True will create a reference cycle between the parameter and "
    "its gradient which can cause a memory leak. We recommend using autograd.grad when creating the "
    "graph to avoid this. If you have to use this function, make sure to reset the .grad fields of "
    "your parameters to None after use to break the cycle and avoid the leak."
)


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Accumulate the gradients of `tensors` into the leaves (`torch.autograd.backward`).

    grad_tensors: a cotangent for each tensor; None means 1 for a tensor of one element. Raises
    RuntimeError, in PyTorch's words, for a cotangent of the wrong shape or dtype, a tensor without a
    graph, and a graph that was freed.
    """
    if modes.transforms.get():
        raise RuntimeError(
            "backward() called inside a functorch transform. This is not supported, please use "
            "functorch.grad or functorch.vjp instead or call backward() outside of functorch "
            "transforms."
        )
    roots = _as_tuple(tensors)
    if grad_variables is not None:
        warnings.warn(
            "`grad_variables` is deprecated. Use `grad_tensors` instead.",
            FutureWarning,
            stacklevel=users_level(),
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
        warnings.warn(_CYCLE, UserWarning, stacklevel=users_level())
    operator.index(retain_graph or 0)
    cotangents = _cotangents(roots, _as_tuple(grad_tensors) or (None,) * len(roots))
    retain = create_graph if retain_graph is None else retain_graph
    edges = _root_edges(roots)
    targets = None
    if inputs is not None:
        targets = _input_edges(_as_tuple(inputs), retain_non_leaves=True)
    plain = cotangents if create_graph else [s.array for s in cotangents]
    run(edges, plain, retain=retain, create=create_graph, targets=targets)


def grad(
    outputs: object,
    inputs: object,
    grad_outputs: object | None = None,
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
    dimension of independent cotangents. Inside a transform of `func`, only the graph of the innermost
    transform is differentiated.
    """
    roots, wanted = _as_tuple(outputs), _as_tuple(inputs)
    if modes.transforms.get():
        roots, wanted = _of_innermost(roots, wanted)
    return gradients(
        roots,
        wanted,
        grad_outputs,
        retain_graph,
        create_graph,
        only_inputs,
        allow_unused,
        is_grads_batched,
        materialize_grads,
    )


def _of_innermost(roots: tuple[Any, ...], wanted: tuple[Any, ...]) -> tuple[Any, ...]:
    """(roots, inputs) as the innermost level has them, or the one that has made the roots.

    What it has made is a constant, unless it depends on the level's variables, or on leaves made there. What
    is older is a leaf that nothing depends on. Raises RuntimeError if a root was computed inside a `vmap`,
    where it has no graph.
    """
    depth = modes.depth()
    inner = {
        level for level in batched_arrays.levels() if not level.linear and level.depth >= depth
    }
    for i, root in enumerate(roots):
        if isinstance(root, Tensor) and inner & batched_arrays.batch_of(root):
            from gradcli.engine.core.errors import NoGradientError

            raise NoGradientError(i)
    made = min((_made(root) if isinstance(root, Tensor) else 0 for root in roots), default=0)
    above = [level for level in modes.nested.get() if level.since <= made]
    if not above:
        return roots, wanted
    level = above[-1]
    ends = {id(edge(variable)) for variable in level.variables()}

    def is_end(node: Node) -> bool:
        leaf: Any = node.variable if isinstance(node, AccumulateGrad) else None
        made_there = leaf is not None and leaf.level is None and _made(leaf) >= level.since
        return id(node) in ends or made_there

    def shown(t: object) -> Any:
        if not isinstance(t, Tensor) or t.node is None:
            return t
        if _made(t) < level.since:
            return wrap(t.array, True)
        return t if any(map(is_end, discover([edge(t)])[0])) else t.detach()

    return tuple(map(shown, roots)), tuple(map(shown, wanted))


def _made(tensor: Tensor) -> int:
    """The tick at which a tensor was created; 0 if no transform was open then."""
    node = tensor.node.node if isinstance(tensor.node, Port) else tensor.node
    return max(tensor.born, node._seq if isinstance(node, Node) else 0)


def gradients(
    outputs: object,
    inputs: object,
    grad_outputs: object | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """As `grad`, but over the whole graph, whatever transform is open."""
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To "
            "accumulate gradient for other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=users_level(),
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
    cotangents = _cotangents(roots, given)
    edges = _root_edges(roots)
    targets = _input_edges(wanted)
    captured = Captured(targets)
    travelling = (
        create_graph or modes.current().intercept is not None
    )  # only tensors carry tangents
    start = cotangents if travelling else [s.array for s in cotangents]
    run(edges, start, retain=retain, create=create_graph, captured=captured, targets=targets)
    results: list[Tensor | None] = []
    for i, (target, tensor) in enumerate(zip(targets, wanted, strict=True)):
        found = None if target is None else captured.of(target)
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
        results.append(found if found is None or isinstance(found, Tensor) else wrap(found))
    return tuple(results)


def of_recorded(
    outputs: Iterable[Any], inputs: Sequence[Any], cotangents: Iterable[Any], **how: Any
) -> tuple[Any, ...]:
    """As `grad`, of those outputs alone that are recorded; None where nothing leads to an input."""
    both = zip(outputs, cotangents, strict=True)
    pairs = [(o, s) for o, s in both if o is not None and o.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    roots, starts = zip(*pairs, strict=True)
    return grad(roots, inputs, starts, allow_unused=True, **how)


def _batched(
    roots: Any, wanted: Any, cotangents: Any, retain: bool, create: bool, allow_unused: bool
) -> tuple[Any, ...]:
    """One backward pass for all cotangents along their leading dimension."""
    from gradcli.engine.core.batch_levels import add_batch_dim, remove_batch_dim

    for i, (root, s) in enumerate(zip(roots, cotangents, strict=True)):
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
    level = BatchLevel(next(s.array.shape[0] for s in cotangents if s is not None), linear=True)
    with opened(level):
        inside = tuple(None if s is None else add_batch_dim(s, 0, level) for s in cotangents)
        found = grad(roots, wanted, inside, retain, create, allow_unused=allow_unused)
        made = tuple(None if g is None else remove_batch_dim(g, 0, level) for g in found)
    tell(level)
    return made


def tell(level: BatchLevel) -> None:
    """Warn, in PyTorch's words, of operators without a batching rule, which ran entry by entry."""
    for name in level.slow:
        warnings.warn(
            "There is a performance drop because we have not yet implemented the batching rule for "
            f"aten::{name}. Please file us an issue on GitHub so that we can prioritize its "
            "implementation.",
            UserWarning,
            stacklevel=users_level(),
        )


def _as_tuple(value: Any) -> tuple[Any, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, Tensor) or _is_edge(value) else tuple(value)


def _is_edge(value: object) -> bool:
    """True for a GradientEdge."""
    return isinstance(value, tuple) and len(value) == 3 and isinstance(value[0], Node)


def _edge_of(value: Any) -> Edge:
    """The Node or Port that a GradientEdge names."""
    node, nr = value[:2]
    return node if node._outputs is None else Port(node, nr, *node._outputs[nr])


def _root_edges(roots: tuple[Any, ...]) -> list[Edge]:
    edges = []
    for i, root in enumerate(roots):
        e = edge(root) if isinstance(root, Tensor) else _edge_of(root)
        if e is None:
            from gradcli.engine.core.errors import NoGradientError

            raise NoGradientError(i)
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
    nodes.sort(key=by_sequence)
    goals = {id(t.node if type(t) is Port else t) for t in targets if t is not None}
    needed: set[int] = set()
    for node in nodes:  # in this order a node comes after those that its gradients go to
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


def _cotangents(roots: tuple[Any, ...], cotangents: tuple[Any, ...]) -> list[Tensor]:
    """A cotangent for each root, checked and cast; a missing one is 1 for a root of one element."""
    made: list[Tensor] = []
    for i, (root, cotangent) in enumerate(zip(roots, cotangents, strict=False)):
        if not isinstance(root, Tensor):
            if not _is_edge(root):
                raise AssertionError("Expected output to be a torch.Tensor")
            root = _stand_in(root)
        if cotangent is None:
            made.append(_implicit_seed(root))
            continue
        if not isinstance(cotangent, Tensor):
            raise TypeError(
                f"gradients can be either Tensors or None, but got {type(cotangent).__name__}"
            )
        if cotangent.array.shape != root.array.shape:
            from gradcli.engine.core.errors import SeedShapeError

            raise SeedShapeError(i, cotangent.shape, root.shape)
        if (cotangent.array.dtype.kind == "c") != (root.array.dtype.kind == "c"):
            raise RuntimeError(
                "For complex Tensors, both grad_output and output are required to have the same "
                f"dtype. Mismatch in dtype: grad_output[{i}] has a dtype of {cotangent.dtype} and "
                f"output[{i}] has a dtype of {root.dtype}."
            )
        made.append(
            cotangent if cotangent.array.dtype == root.array.dtype else cotangent.to(root.dtype)
        )
    return made


def _stand_in(edge: object) -> Tensor:
    """A tensor of the shape and dtype that a GradientEdge leads to."""
    target = _edge_of(edge)
    out = wrap(np.empty(target._meta.shape, target._meta.dtype))
    out.node = target
    return out


def _implicit_seed(root: Tensor) -> Tensor:
    array = root.array
    dtype = array.dtype
    if root.node is not None:
        if array.size != 1:
            from gradcli.engine.core.errors import NotScalarError

            raise NotScalarError(array.shape)
        if dtype.kind != "f":
            from gradcli.engine.core.errors import NotRealError

            raise NotRealError(root.dtype)
    if isinstance(array, (BatchedArray, Numberless)):
        return wrap(ones_like(array))
    return wrap(np.ones(array.shape, dtype) if array.ndim else dtype.type(1))
