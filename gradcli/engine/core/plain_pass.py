"""The plain backward pass: the common case without hooks or create_graph.

It keeps marks and gradients on the nodes, so only one thread at a time may run it. Meanwhile other
threads use the watched pass, which keeps them in dictionaries.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from gradcli.engine.core import modes
from gradcli.engine.core.gradients import add_to_grad, owned
from gradcli.engine.core.hooks import RARE
from gradcli.engine.core.node import IDLE, OWNED, AccumulateGrad, Edge, Node, Port
from gradcli.engine.core.version_checks import reading
from gradcli.engine.system import locks

by_sequence = operator.attrgetter("_seq")

_marking = locks.lock()


class Captured:
    """The gradients that a pass collects for the inputs of `autograd.grad`."""

    def __init__(self, edges: Sequence[Edge | None]) -> None:
        self.keys = {_key(e) for e in edges if e is not None}
        self.nodes = {node for node, _ in self.keys}
        self.of_leaves = all(e is None or e.__class__ is AccumulateGrad for e in edges)
        self.grads: dict[tuple[int, int], Any] = {}

    def of(self, e: Edge) -> Any:
        """The gradient that arrived at an edge, or None."""
        return self.grads.get(_key(e))

    def pass_by(self, node: Node, grad: Any) -> None:
        """As `take`, of a node's gradient, or a list of those of its outputs."""
        if id(node) in self.nodes:
            self.take(node, grad if type(grad) is list else (grad,))

    def take(self, node: Node, parts: Sequence[Any]) -> None:
        """Keep those gradients of a node's outputs that are wanted."""
        for nr, part in enumerate(parts):
            if (id(node), nr) in self.keys and part is not None:
                self.grads[id(node), nr] = part


def _key(e: Edge) -> tuple[int, int]:
    return (id(e.node), e.nr) if type(e) is Port else (id(e), 0)


def reach(roots: Sequence[Edge], rare: list[Any] | None = None) -> list[Edge] | None:
    """The reachable nodes, in the order to run them; None if one is not for the plain pass.

    rare: collects those that enter or leave a batch, which a pass on tensors can run; they lose their mark.
    """
    here = object()
    nodes: list[Any] = []
    append = nodes.append
    for e in roots:
        if e._mark is not here:
            if e._mark is RARE and not _admitted(e, rare):
                return None
            e._mark = here
            append(e)
    for node in nodes:  # written out for the first two edges: a loop would cost more
        e = node._e0
        if e is not None:
            mark = e._mark
            if mark is not here:
                if mark is RARE and not _admitted(e, rare):
                    return None
                e._mark = here
                append(e)
        e = node._e1
        if e is not None:
            mark = e._mark
            if mark is not here:
                if mark is RARE and not _admitted(e, rare):
                    return None
                e._mark = here
                append(e)
        rest = node._rest
        if rest:
            for e in rest:
                if e is not None and e._mark is not here:
                    if e._mark is RARE and not _admitted(e, rare):
                        return None
                    e._mark = here
                    append(e)
    nodes.sort(key=by_sequence, reverse=True)
    for node in reversed(nodes):
        if node.__class__ is not AccumulateGrad:
            break
        if node.watched():
            return None
    return nodes


def _admitted(node: Any, rare: list[Any] | None) -> bool:
    primitive = node._primitive
    if rare is None or primitive is None or not primitive.rare or node._hooks is not None:
        return False
    rare.append(node)
    return True


def discover(roots: Iterable[Edge]) -> tuple[list[Node], dict[Node, list[Port]]]:
    """(all nodes reachable from the roots, {node: its ports that were met})."""
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
            waiting += [edge for edge in e._edges if edge is not None]
    return nodes, ports


def leaves(roots: Iterable[Edge | None]) -> list[Any]:
    """The leaves that are reachable from the roots."""
    nodes, _ = discover([e for e in roots if e is not None])
    return [n.variable for n in nodes if isinstance(n, AccumulateGrad)]


def toward(nodes: Sequence[Any], targets: Iterable[Edge | None]) -> list[Any]:
    """Those of the nodes, in their order, that must run for gradients to reach the targets.

    A non-leaf target itself runs only where another target lies behind it. What is not on the way is marked
    IDLE.
    """
    wanted = object()
    for target in targets:
        goal = target.node if target.__class__ is Port else target
        if goal is not None and goal._mark is not RARE:
            goal._mark = wanted
    running = []
    for node in reversed(nodes):  # in this order a node comes after those that its gradients go to
        e = node._e0
        if e is None or e._mark is not wanted:
            e = node._e1
            if (e is None or e._mark is not wanted) and not any(
                e is not None and e._mark is wanted for e in node._rest
            ):
                if node._mark is not wanted:
                    node._mark = IDLE
                continue
        node._mark = wanted
        running.append(node)
    running.reverse()
    return running


def run(
    roots: Sequence[Edge],
    cotangents: Sequence[Any],
    retain: bool,
    captured: Captured | None = None,
    targets: Sequence[Edge | None] | None = None,
) -> bool:
    """Run the graph; returns False, with nothing done, if it needs the watched pass.

    captured, targets: as for `backward_pass.run`.
    """
    return marking(lambda: _run(roots, cotangents, retain, captured, targets))


def marking(attempt: Callable[[], bool]) -> bool:
    """What an attempt returns that uses marks and gradients on nodes; False while another thread does so."""
    if not _marking.acquire(blocking=False):
        return False
    try:
        return attempt()
    finally:
        _marking.release()


def _run(
    roots: Sequence[Edge],
    cotangents: Sequence[Any],
    retain: bool,
    captured: Captured | None,
    targets: Sequence[Edge | None] | None,
) -> bool:
    nodes = reach(roots)
    if nodes and targets is not None:
        _toward(nodes, roots, cotangents, retain, captured, targets)
    elif nodes:
        _push(nodes, roots, cotangents, retain)
    return nodes is not None


@np.errstate(all="ignore")  # a decorator costs half of a `with` block
def _push(nodes: list[Edge], roots: Sequence[Any], cotangents: Sequence[Any], retain: bool) -> None:
    node, waiting = nodes[0], iter(nodes)
    try:
        start(roots, cotangents)
        for node in waiting:
            g = node._grad
            if g is not None:
                node.push(g, retain)
    except BaseException:
        _finish_leaves([node, *waiting])
        raise


@np.errstate(all="ignore")
def _toward(
    nodes: list[Any],
    roots: Sequence[Any],
    cotangents: Sequence[Any],
    retain: bool,
    captured: Captured | None,
    targets: Sequence[Edge | None],
) -> None:
    """As `_push`, of what leads to the targets; their gradients go to `captured`, or are accumulated."""
    running = toward(nodes, targets)
    before, reading.ids = reading.ids, read_by(running, captured) if modes.depth() else None
    inner = captured is not None and not captured.of_leaves
    node, waiting = nodes[0], iter(running)
    try:
        start(roots, cotangents)
        for node in waiting:
            g = node._grad
            if g is None:
                continue
            if inner:
                captured.pass_by(node, g)  # type: ignore[union-attr]
            node.push(g, retain)
        for target in targets:
            arrive(target, captured, retain)
    except BaseException:
        if captured is None:
            _finish_leaves([node, *waiting, *[t for t in targets if t is not None]])
        raise
    finally:
        reading.ids = before
        for node in nodes:
            node._grad = None


def read_by(running: Sequence[Any], captured: Captured | None) -> frozenset[int]:
    """The ids of the nodes that a pass runs, or whose gradients it captures."""
    ids = {id(n.node if n.__class__ is Port else n) for n in running}
    return frozenset(ids if captured is None else ids | captured.nodes)


def arrive(target: Any, captured: Captured | None, retain: bool) -> None:
    """Take the gradient of a target that does not run, or that is a leaf."""
    end = target.node if target.__class__ is Port else target
    g = None if end is None else end._grad
    if g is None:
        return
    if captured is None:
        end.push(g, retain)
    elif end.__class__ is AccumulateGrad:
        captured.grads[id(end), 0] = g if end._mark is OWNED else owned(g)
    else:
        captured.pass_by(end, g)


def start(roots: Sequence[Any], cotangents: Sequence[Any]) -> None:
    for root, cotangent in zip(roots, cotangents, strict=True):
        root._grad = cotangent if root._grad is None else root._grad + cotangent


def _finish_leaves(left: list[Edge]) -> None:
    """After an error, accumulate the leaves whose gradient is complete: no remaining node feeds them."""
    fed = {e for node in left for e in node._edges}
    for node in left:
        g, node._grad = node._grad, None
        if g is not None and isinstance(node, AccumulateGrad) and node not in fed:
            add_to_grad(node.variable, g)
