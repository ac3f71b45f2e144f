"""The recorded pass: `create_graph` without hooks, modes or batches, as the plain pass but on tensors.

Its nodes, and what it records, are those of the watched pass, in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.engine.core import modes
from gradcli.engine.core.execution_order import exact_order
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
from gradcli.engine.core.version_checks import reading


def run(
    roots: Sequence[Edge],
    cotangents: Sequence[Any],
    retain: bool,
    captured: Captured | None = None,
    targets: Sequence[Edge | None] | None = None,
) -> bool:
    """Run the graph on tensors; returns False, with nothing done, if it needs the watched pass.

    captured, targets: as for `backward_pass.run`; either both or none.
    """
    return marking(lambda: _run(roots, cotangents, retain, captured, targets))


@np.errstate(all="ignore")
def _run(
    roots: Sequence[Any],
    cotangents: Sequence[Any],
    retain: bool,
    captured: Captured | None,
    targets: Sequence[Edge | None] | None,
) -> bool:
    nodes = reach(roots)
    if not nodes:
        return nodes is not None
    if Port in set(map(type, nodes)):
        _arrange(nodes, roots)
    running = toward(nodes, targets) if targets is not None else _in_turn(nodes, roots)
    ids, state = reading.ids, modes.record_rules()
    reading.ids = read_by(running, captured) if captured is not None and modes.depth() else None
    inner = captured is not None and not captured.of_leaves
    try:
        start(roots, cotangents)
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
        modes.restore(state)
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
