"""A graph grouped by PyTorch modules: their nodes, the memory they keep, their gradients."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from gradcli.graphs import value_text
from gradcli.graphs.labels import plural
from gradcli.graphs.module_calls import Calls
from gradcli.graphs.traversal import Describer
from gradcli.graphs.view import Fold

FEWEST_BOXES, MOST_BOXES = 10, 40  # of a picture by modules, as far as the modules let it be


@dataclass(slots=True)
class Part:
    """A module: its nodes and leaves (those of its parts among them), and the calls it has had."""

    path: str
    kind: str
    parent: str | None
    depth: int
    calls: set[int] = field(default_factory=set)
    nodes: list[int] = field(default_factory=list)
    leaves: dict[int, None] = field(default_factory=dict)


class Modules:
    """The modules of a graph, by path, in order of the forward pass."""

    def __init__(self, calls: Calls, describer: Describer) -> None:
        self.calls, self.describer = calls, describer
        self.skeleton = describer.skeleton
        self.of: dict[int, int] = {}  # node -> call
        probe: Any = describer.probe
        for i, node in enumerate(self.skeleton.nodes):
            call = -1 if hasattr(node, "variable") else probe.call(node)
            if call >= 0:
                self.of[i] = call
        self.parts = self._parts()

    def _parts(self) -> dict[str, Part]:
        found: dict[str, Part] = {}
        for i, call in sorted(self.of.items(), key=lambda item: (item[1], item[0])):
            above: str | None = None
            for depth, one in enumerate(self.calls.above(call)):
                path = self.calls.path(one)
                part = found.get(path)
                if part is None:
                    part = found[path] = Part(path, self.calls.kinds[one], above, depth)
                part.calls.add(one)
                part.nodes.append(i)
                for edge in self.skeleton.edges[i]:
                    if edge is not None and not self.skeleton.edges[edge[0]]:
                        part.leaves.setdefault(edge[0])
                above = path
        return found

    @property
    def members(self) -> dict[str, list[int]]:
        """The nodes of every module, with the leaves that they lead to, by path."""
        return {path: sorted({*part.nodes, *part.leaves}) for path, part in self.parts.items()}

    def folded(self, depth: int | None) -> dict[int, int]:
        """Node -> the call that it is folded into, `depth` modules deep (1: the outermost).

        By default wrappers are opened, level by level, until there are ten boxes, and no more than forty;
        what a module does besides calling others is then shown node by node.
        """
        chains = {i: self.calls.above(call) for i, call in self.of.items()}
        if depth == 0:
            return {}
        if depth is not None:
            return {i: above[min(depth, len(above)) - 1] for i, above in chains.items()}
        callers = set(self.calls.parents)
        levels = range(1, 1 + max(map(len, chains.values()), default=0))
        chosen: dict[int, int] = {}
        for level in levels:
            found = {
                i: above[min(level, len(above)) - 1]
                for i, above in chains.items()
                if len(above) >= level or above[-1] not in callers
            }
            boxes = len(set(found.values())) + len(chains) - len(found)
            if level > 1 and boxes > MOST_BOXES:
                break
            chosen = found
            if boxes >= FEWEST_BOXES:
                break
        return chosen

    def chains(self) -> dict[int, list[int]]:
        """Node -> the calls that it was made in, outermost first; a leaf's are those of all its users."""
        found = {i: self.calls.above(call) for i, call in self.of.items()}
        users: dict[int, list[list[int]]] = {}
        for i in range(len(self.skeleton)):
            for edge in self.skeleton.edges[i]:
                if edge is not None and not self.skeleton.edges[edge[0]]:
                    users.setdefault(edge[0], []).append(found.get(i, []))
        for leaf, chains in users.items():
            common = []
            for level in zip(*chains, strict=False):
                if len(set(level)) > 1:
                    break
                common.append(level[0])
            found[leaf] = common
        return found

    def title(self, call: int) -> tuple[str, str]:
        """The class and the path of the module that was called."""
        return self.calls.kinds[call], self.calls.path(call)

    def lines(self, fold: Fold, grads: bool) -> list[str]:
        """What a fold's box says below its title."""
        found = [plural(len(fold.hidden), "node")]
        size = self.parameters(fold.leaves)
        if size:
            found[0] += f", {size:,} parameters"
        kept = self.kept(fold.hidden)
        if kept:
            found.append(f"keeps {value_text.bytes_text(kept)}")
        if grads and self.describer.grads is not None:
            came = self.describer.grads.get(self.skeleton.nodes[fold.hidden[0]])
            if came is not None:
                found.append(f"grad {value_text.range_text(came)}")
        return found

    def parameters(self, leaves: Iterable[int]) -> int:
        """The number of elements of the leaves."""
        nodes = self.skeleton.nodes
        return sum(math.prod(nodes[i].variable.shape) for i in leaves)

    def kept(self, nodes: Iterable[int]) -> int:
        """The bytes that nodes keep alive, without parameters."""
        probe = self.describer.probe
        held: dict[Any, int] = {}
        for i in nodes:
            for one in probe.kept(self.skeleton.nodes[i])[0]:
                if not probe.is_parameter(one):
                    held[probe.identity(one)] = probe.nbytes(one)
        return sum(held.values())

    def reached(self, part: Part) -> Any:
        """The gradient that reaches a module: that of its node nearest to the result."""
        grads = self.describer.grads or {}
        nodes = self.skeleton.nodes
        return next((g for i in sorted(part.nodes) if (g := grads.get(nodes[i])) is not None), None)

    def leaf_norm(self, part: Part) -> float | None:
        """The norm of the gradients of a module's parameters together."""
        grads = self.describer.grads or {}
        found = [grads.get(self.skeleton.nodes[i]) for i in part.leaves]
        norms = [value_text.stats_of(g).norm for g in found if g is not None]
        return math.hypot(*norms) if norms else None
