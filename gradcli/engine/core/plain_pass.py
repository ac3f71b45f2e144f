"""The plain backward pass: the common case without hooks or create_graph.

It keeps marks and gradients on the nodes, so only one thread at a time may run it. Meanwhile other
threads use the watched pass, which keeps them in dictionaries.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.engine.core import modes
from gradcli.engine.core.gradients import add_to_grad, owned
from gradcli.engine.core.hooks import RARE
from gradcli.engine.core.node import OWNED, AccumulateGrad, Edge, Port
from gradcli.engine.core.version_checks import reading
from gradcli.engine.system import locks

if TYPE_CHECKING:
    from gradcli.engine.core.watched_pass import Captured

by_sequence = operator.attrgetter("_seq")

_marking = locks.lock()


def _reach(roots: Sequence[Edge]) -> list[Edge] | None:
    """The reachable nodes, in the order to run them; None if one is not for the plain pass."""
    here = object()
    nodes: list[Any] = []
    append = nodes.append
    for e in roots:
        if e._mark is RARE:
            return None
        if e._mark is not here:
            e._mark = here
            append(e)
    for node in nodes:  # written out for the first two edges: a loop would cost more
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
    nodes.sort(key=by_sequence, reverse=True)
    for node in reversed(nodes):
        if node.__class__ is not AccumulateGrad:
            break
        if node.watched():
            return None
    return nodes


def run(
    roots: Sequence[Edge],
    cotangents: Sequence[Any],
    retain: bool,
    captured: Captured | None = None,
    only: frozenset[int] | None = None,
) -> bool:
    """Run the graph; returns False, with nothing done, if it needs the watched pass.

    captured, only: as for `backward_pass.run`; what is captured are leaves.
    """
    if not _marking.acquire(blocking=False):
        return False
    try:
        nodes = _reach(roots)
        if nodes and captured is not None and only is not None:
            _collect(nodes, roots, cotangents, retain, captured, only)
        elif nodes:
            _push(nodes, roots, cotangents, retain)
        return nodes is not None
    finally:
        _marking.release()


@np.errstate(all="ignore")  # a decorator costs half of a `with` block
def _push(nodes: list[Edge], roots: Sequence[Any], cotangents: Sequence[Any], retain: bool) -> None:
    node, waiting = nodes[0], iter(nodes)
    try:
        _start(roots, cotangents)
        for node in waiting:
            g = node._grad
            if g is not None:
                node.push(g, retain)
    except BaseException:
        _finish_leaves([node, *waiting])
        raise


@np.errstate(all="ignore")
def _collect(
    nodes: list[Any],
    roots: Sequence[Any],
    cotangents: Sequence[Any],
    retain: bool,
    captured: Captured,
    only: frozenset[int],
) -> None:
    """As `_push`, of those nodes `only`; gradients of leaves go to `captured`, or nowhere."""
    before, reading.ids = reading.ids, only | captured.nodes if modes.depth() else None
    try:
        _start(roots, cotangents)
        for node in nodes:
            g = node._grad
            if g is None:
                continue
            if node.__class__ is not AccumulateGrad:
                if id(node.node if node.__class__ is Port else node) in only:
                    node.push(g, retain)
            elif id(node) in captured.nodes:
                captured.grads[id(node), 0] = g if node._mark is OWNED else owned(g)
    finally:
        reading.ids = before
        for node in nodes:
            node._grad = None


def _start(roots: Sequence[Any], cotangents: Sequence[Any]) -> None:
    for root, cotangent in zip(roots, cotangents, strict=True):
        root._grad = cotangent if root._grad is None else root._grad + cotangent


def _finish_leaves(left: list[Edge]) -> None:
    """After an error, accumulate the leaves whose gradient is complete: no remaining node feeds them."""
    fed = {e for node in left for e in node._edges}
    for node in left:
        g, node._grad = node._grad, None
        if g is not None and isinstance(node, AccumulateGrad) and node not in fed:
            add_to_grad(node.variable, g)
