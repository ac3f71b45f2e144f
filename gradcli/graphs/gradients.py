"""The gradients that reach the nodes of a graph, without touching any leaf's `.grad`."""

from __future__ import annotations

from typing import Any

from gradcli.graphs.records import Walk


def capture(
    tensors: tuple[Any, ...],
    seeds: tuple[Any, ...] | None,
    skeleton: Walk,
) -> Any:
    """Backpropagate with the graph retained; return the events, as the trace reads them.

    Hooks run as in any backward pass. What would be added to a leaf's `.grad` is not added.
    """
    from gradcli.engine import backward
    from gradcli.engine.observe import observing
    from gradcli.graphs.recorder import Recorder

    leaves = [node.variable for node in skeleton.nodes if hasattr(node, "variable")]
    recorder = Recorder(check=True)
    with observing(recorder):
        backward.grad(tensors, leaves, seeds, retain_graph=True, allow_unused=True)
    return recorder
