"""The nodes of a program that ran on gradcli, with what was learnt of them while it ran."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from gradcli.engine.core.tensor import Tensor
from gradcli.engine.system.array_memory import address
from gradcli.graphs import saved_fields
from gradcli.graphs.of_torch.module_calls import Calls
from gradcli.graphs.of_torch.torch_notes import WatchedProbe, former_leaf, note_of
from gradcli.graphs.traversal import Walk


class OwnProgramProbe(WatchedProbe):
    """Asks nodes of our own, of a program in Python. names: of its tensors."""

    of_program = True

    def __init__(self, calls: Calls, names: Mapping[str, Any]) -> None:
        self.calls = calls
        self._named = {id(t): n for n, t in names.items() if isinstance(t, Tensor) and t.is_leaf}
        self._parameters: set[int] = set()
        # Passes by the name of their root: see OwnWatch.
        self.recorded: Mapping[str, tuple[Any, Any]] = {}
        for name, tensor in calls.parameters():
            self._named[id(tensor)] = name
            self._parameters.add(address(tensor.array))

    def name_of(self, tensor: Any, names: Mapping[int, str]) -> str | None:
        """The parameter's path, or the variable's name."""
        return self._named.get(id(tensor)) or super().name_of(tensor, names)

    def is_parameter(self, held: Any) -> bool:
        """Whether it is a parameter's memory."""
        return isinstance(held, np.ndarray) and address(held) in self._parameters

    def identity(self, held: Any) -> Any:
        """The memory: views of one are kept alive together."""
        return id(_memory(held))

    def nbytes(self, held: Any) -> int:
        """The bytes of the memory."""
        return int(_memory(held).nbytes)

    def known_values(
        self, skeleton: Walk, watched: Mapping[Any, Any] | None = None
    ) -> dict[int, Any]:
        """Leaves as their pass found them, results counted up when they were made, and what nodes saved."""
        found = super().known_values(skeleton, watched)
        for i, node in enumerate(skeleton.nodes):
            if (note := note_of(node)) is not None and note.value is not None:
                found[i] = note.value
            elif hasattr(node, "variable") and (former := former_leaf(node)) is not None:
                found[i] = former
        return found

    def constants(self, node: Any, watched: Mapping[Any, Any] | None = None) -> list[Any]:
        """The operand without a gradient behind each None among a node's edges; None if not known."""
        note, edges = note_of(node), node.next_functions
        behind = [] if note is None else list(note.operands)
        if len(behind) != len(edges):
            return [None] * len(edges)
        return [None if t is None or t.wrapped else t for t in behind]

    def written(self, node: Any) -> Iterator[tuple[str, int, Any]]:
        """What was written in place since the node saved it: its field, the version saved, the tensor."""
        yield from saved_fields.written(node)

    def capture(self, tensors: Any, seeds: Any, skeleton: Walk) -> Any:
        """Backpropagate with the graph retained, or read what the program's own pass has left."""
        if seeds is None and len(tensors) == 1:
            for root, recorder in self.recorded.values():
                if root is tensors[0]:
                    return recorder
        return super().capture(tensors, seeds, skeleton)


def _memory(held: Any) -> Any:
    """The array that owns the memory of a view."""
    while isinstance(held, np.ndarray) and isinstance(held.base, np.ndarray):
        held = held.base
    return held
