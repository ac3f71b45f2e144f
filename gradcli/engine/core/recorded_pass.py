"""The recorded pass, as the plain pass on tensors: `create_graph` without hooks or modes, and in batches.

Its nodes, and what it records, are those of the watched pass, in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.engine.core import modes
from gradcli.engine.core.execution_order import exact_order
from gradcli.engine.core.hooks import RARE
from gradcli.engine.core.node import Edge, Port
from gradcli.engine.core.plain_pass import (
    Captured,
    arrive,
    discover,
    marking,
    reach,
    read_by,
    start,
    toward,
)
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.engine.core.version_checks import reading


def run(
    roots: Sequence[Edge],
    cotangents: Sequence[Any],
    retain: bool,
    create: bool,
    captured: Captured | None = None,
    targets: Sequence[Edge | None] | None = None,
) -> bool:
    """Run the graph on tensors; returns False, with nothing done, if it needs the watched pass.

    create: record the pass. captured, targets: as for `backward_pass.run`; either both or none.
    """
    return marking(lambda: _marked(roots, cotangents, retain, create, captured, targets))


def _marked(roots: Sequence[Any], *how: Any) -> bool:
    rare: list[Any] = []
    try:
        return _run(roots, rare, *how)
    finally:
        for node in rare:
            node._mark = RARE


@np.errstate(all="ignore")
def _run(
    roots: Sequence[Any],
    rare: list[Any],
    cotangents: Sequence[Any],
    retain: bool,
    create: bool,
    captured: Captured | None,
    targets: Sequence[Edge | None] | None,
) -> bool:
    nodes = reach(roots, rare)
    if not nodes:
        return nodes is not None
    state = modes.current()
    if not (create or rare or state.mapped):  # the plain pass gave way to another thread's
        return False
    if Port in set(map(type, nodes)):
        _arrange(nodes, roots)
    running = toward(nodes, targets) if targets is not None else _in_turn(nodes, roots)
    ids, before = reading.ids, modes.run_rules(create, state.batched or bool(rare))
    reading.ids = read_by(running, captured) if captured is not None and modes.depth() else None
    inner = captured is not None and not captured.of_leaves
    try:
        start(roots, [c if isinstance(c, Tensor) else wrap(c) for c in cotangents])
        for node in running:
            g = node._grad
            if g is None:
                continue
            if inner:
                captured.pass_by(node, g)  # type: ignore[union-attr]
            node.push_recorded(g, retain)
        for target in targets or ():
            arrive(target, captured, retain)
    finally:
        modes.restore(before)
        reading.ids = ids
        for node in nodes:
            node._grad = None
    return True


def _arrange(nodes: list[Any], roots: Sequence[Edge]) -> None:
    """Sort the ports of each node as the watched pass adds their gradients."""
    _, ports = discover(roots)
    place = {id(port): k for own in ports.values() for k, port in enumerate(own)}
    nodes.sort(key=lambda node: (-node._seq, place.get(id(node), 0)))


def _in_turn(nodes: Sequence[Any], roots: Sequence[Edge]) -> list[Any]:
    """All nodes, each leaf when its last gradient has arrived, because accumulating is recorded, too."""
    ports: dict[Any, list[Any]] = {}
    for node in nodes:
        if node.__class__ is Port:
            ports.setdefault(node.node, []).append(node)
    return [one for node in exact_order(roots) for one in (*ports.get(node, ()), node)]
