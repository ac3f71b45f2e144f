"""How the gradient's size changes from the loss to the parameters, along one path at a time.

Sizes of gradients that lie side by side (terms of a sum, samples, heads) say nothing of depth. So every
node remembers the one user that has sent it most; following these leads from any node to the loss. Along
such a path, layers are the nodes that use a parameter; that each of them changes the gradient a little is
a chain.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

from gradcli.graphs import value_text
from gradcli.graphs.traversal import class_name
from gradcli.graphs.value_text import Stats

JUMP = 1e3  # a change of the norm by more than this is told
SUFFERS = 100.0  # times smaller or larger than what arrived: the gradient of a parameter
LARGE = 10.0  # a norm of a gradient that is clipped usually
FEWEST = 3  # layers of a chain
LEAST = 1.05  # what each of them changes the gradient by
MOST_OF_ONE = 0.6  # of the whole change
TURNS = ("TBackward0", "TransposeBackward0", "PermuteBackward0", "ToCopyBackward0")
PRODUCTS = ("Mm", "Addmm", "Bmm", "Mv", "Convolution", "MkldnnConvolution", "Linear")
TOLD = 0.1  # the least share of a change that is told


@dataclass(slots=True)
class RepeatedPart:
    """One kind of node in the layers of a chain: how often it is there, and its change in each layer."""

    name: str
    ids: list[int]
    factor: float  # in each layer
    share: float  # of the whole change


@dataclass(slots=True)
class Chain:
    """Layers one behind the other, each of which makes the gradient smaller (or larger)."""

    layers: list[int]  # the nodes that use a parameter, from the loss, as far as they do it
    before: Stats
    after: Stats
    factor: float  # what each layer divides (or multiplies) by
    parts: list[RepeatedPart] = field(default_factory=list)
    suffering: int = 0  # how many parameters it leaves with such a gradient

    @property
    def vanishes(self) -> bool:
        """Tell whether the gradient falls."""
        return self.after.norm < self.before.norm


class Flow:
    """The paths of a graph whose gradients are known."""

    def __init__(self, graph: Any) -> None:
        """graph: an inspected one, backpropagated."""
        self.graph, self.skeleton = graph, graph.skeleton
        self.probe = graph.describer.probe
        ids = self.skeleton.ids
        self.came: dict[int, Stats] = {}
        self.sent: dict[int, list[Stats | None]] = {}
        for step in () if graph.recorder is None else graph.recorder.steps:
            i = ids.get(step.node)
            known = [value_text.stats_of(g) for g in step.incoming if g is not None]
            if i is None or not known:
                continue
            self.came[i] = max(known, key=lambda one: one.norm)
            out = [None if g is None else value_text.stats_of(g) for g in step.outgoing]
            self.sent[i] = out

    # -- paths ---------------------------------------------------------------------------------
    @cached_property
    def up(self) -> dict[int, int]:
        """Node -> the user that has sent it the largest gradient."""
        most: dict[int, float] = {}
        found: dict[int, int] = {}
        for i, out in self.sent.items():
            for edge, sent in zip(self.skeleton.edges[i], out, strict=False):
                if edge is not None and sent is not None and sent.norm > most.get(edge[0], -1.0):
                    most[edge[0]], found[edge[0]] = sent.norm, i
        return found

    def is_weight(self, i: int) -> bool:
        """Tell whether a node is a leaf, or a leaf turned: its gradient says how large activations are."""
        edges = self.skeleton.edges[i]
        while len(edges) == 1 and edges[0] is not None:
            if class_name(self.skeleton.nodes[i]) not in TURNS:
                return False
            i = edges[0][0]
            edges = self.skeleton.edges[i]
        return not edges

    @cached_property
    def leaves(self) -> dict[int, Stats]:
        """The gradients of the parameters; of all leaves, if none is a parameter."""
        nodes, grads = self.skeleton.nodes, self.graph.describer.grads or {}
        found = {}
        for i, node in enumerate(nodes):
            if hasattr(node, "variable") and (grad := grads.get(node)) is not None:
                found[i] = value_text.stats_of(grad)
        chosen = {i: grad for i, grad in found.items() if is_parameter(nodes[i].variable)}
        return chosen or found

    @cached_property
    def users(self) -> dict[int, list[int]]:
        """Node -> the parameters that it uses, turned ones among them."""
        found: dict[int, list[int]] = {}
        turned = {i: i for i in self.leaves}
        for i in range(len(self.skeleton) - 1, -1, -1):
            for edge in self.skeleton.edges[i]:
                if edge is None or (leaf := turned.get(edge[0])) is None:
                    continue
                if len(self.skeleton.edges[i]) == 1 and self.is_weight(i):
                    turned[i] = leaf
                else:
                    found.setdefault(i, []).append(leaf)
        return found

    @cached_property
    def _depths(self) -> dict[int, tuple[int, int]]:
        """Node with a gradient -> how many nodes above it use a parameter, and the first of these."""
        found: dict[int, tuple[int, int]] = {}
        for start in self.came:
            path = [start]
            while path[-1] not in found and (above := self.up.get(path[-1], -1)) >= 0:
                path.append(above)
            for i in reversed(path):
                if i in found:
                    continue
                count, head = found.get(self.up.get(i, -1), (0, -1))
                if i in self.users:
                    count, head = count + 1, head if head >= 0 else i
                found[i] = count, head
        return found

    def depth(self, i: int) -> int:
        """How many nodes use a parameter, from the loss to a node."""
        return self._depths[i][0]

    def path(self, i: int) -> list[int]:
        """From the loss to a node."""
        found = [i]
        while (above := self.up.get(found[-1], -1)) >= 0:
            found.append(above)
        return found[::-1]

    # -- chains --------------------------------------------------------------------------------
    def chain(self, *, vanishes: bool) -> Chain | None:
        """The longest fall (or rise) over layers that are behind one another, if parameters suffer it."""
        deepest: dict[int, int] = {}
        for user, leaves in self.users.items():
            at = self._reached(user)
            for leaf in leaves if at in self._depths else ():
                known = deepest.get(leaf, -1)
                if known < 0 or self._depths[at][0] > self._depths[known][0]:
                    deepest[leaf] = at
        best, suffering = None, 0
        for leaf, at in deepest.items():
            count, head = self._depths[at]
            if count < FEWEST or not self._suffers(leaf, self.came[head], vanishes):
                continue
            change = log_ratio(self.came[head], self.came[at])
            if change == 0 or vanishes != (change < 0) or abs(change) < math.log10(JUMP):
                continue
            suffering += 1
            if abs(change) / (count - 1) >= math.log10(LEAST) and abs(change) > (best or (0.0,))[0]:
                best = abs(change), leaf, at, head
        return None if best is None else self._described(best[2], best[3], suffering)

    def _reached(self, i: int) -> int:
        """The node, or the nearest one above it that a gradient other than 0 reaches."""
        while i >= 0 and (i not in self.came or self.came[i].norm == 0):
            i = self.up.get(i, -1)
        return i

    def _suffers(self, leaf: int, before: Stats, vanishes: bool) -> bool:
        own = self.leaves[leaf].norm
        if not (math.isfinite(own) and math.isfinite(before.norm)):
            return False
        if vanishes:
            return own * SUFFERS <= before.norm
        return own >= max(LARGE, SUFFERS * before.norm)

    def _described(self, last: int, head: int, suffering: int) -> Chain | None:
        path = self.path(last)
        path = path[path.index(head) :]
        layers = [i for i in path if i in self.users]
        whole = log_ratio(self.came[head], self.came[last])
        logs = self._layer_logs(path, layers)
        alike = {
            i: log for i, log in logs.items() if log * whole > 0 and abs(log) > math.log10(LEAST)
        }
        if len(alike) < FEWEST or 2 * len(alike) < len(logs):
            return None
        if max(map(abs, alike.values())) > MOST_OF_ONE * abs(whole):
            return None  # one of them does most of it
        factor = 10 ** (abs(sum(alike.values())) / len(alike))
        parts = self._parts(path, len(alike))
        return Chain([*alike], self.came[head], self.came[last], factor, parts, suffering)

    def _layer_logs(self, path: list[int], layers: list[int]) -> dict[int, float]:
        """What happens between the gradient that comes to a layer and the one that leaves it."""
        ends = [*layers[1:], path[-1]]
        pairs = zip(layers, ends, strict=True)
        return {a: log_ratio(self.came[a], self.came[b]) for a, b in pairs if a != b}

    def _parts(self, path: list[int], count: int) -> list[RepeatedPart]:
        """The kinds of nodes by what they do to the gradient, largest first."""
        logs: dict[str, list[tuple[int, float]]] = {}
        for i, below in pairwise(path):
            sent = self._sent_to(i, below)
            if sent is not None:
                name = class_name(self.skeleton.nodes[i])
                logs.setdefault(name, []).append((i, log_ratio(self.came[i], sent)))
        whole = sum(change for known in logs.values() for _, change in known)
        found = []
        for name, known in logs.items():
            total = sum(change for _, change in known)
            factor = 10 ** (abs(total) / count)
            if whole and total / whole >= TOLD:
                found.append(RepeatedPart(name, [i for i, _ in known], factor, total / whole))
        return sorted(found, key=lambda part: -part.share)

    def _sent_to(self, i: int, below: int) -> Stats | None:
        edges = zip(self.skeleton.edges[i], self.sent.get(i, ()), strict=False)
        known = [sent for edge, sent in edges if edge is not None and edge[0] == below and sent]
        return max(known, key=lambda one: one.norm, default=None)

    # -- single nodes --------------------------------------------------------------------------
    def jumps(self) -> Iterator[tuple[int, Stats, Stats]]:
        """Nodes that change the gradient at once: what came, and what was sent on."""
        for i, came in self.came.items():
            edges = list(zip(self.skeleton.edges[i], self.sent.get(i, ()), strict=False))
            on = [s for e, s in edges if e is not None and s and not self.is_weight(e[0])]
            known = on or [s for _, s in edges if s is not None]
            if not on and self._is_of_data(i):
                continue  # the gradient of a weight by data, which may be 0: no gradient flows on
            if not known or not came.norm:
                continue
            sent = max(known, key=lambda one: one.norm)
            change = log_ratio(came, sent)
            if abs(change) > math.log10(JUMP):
                yield i, came, sent

    def _is_of_data(self, i: int) -> bool:
        """Tell whether a node is a product of a weight and of what needs no gradient."""
        stem = class_name(self.skeleton.nodes[i]).partition("Backward")[0]
        return stem in PRODUCTS and None in self.skeleton.edges[i]

    @cached_property
    def values(self) -> dict[int, Any]:
        """The values of nodes, as far as they are known; of leaves, as the pass found them."""
        found: dict[int, Any] = self.graph.forward
        return found

    def behind(self, i: int) -> list[int]:
        """The parameters whose largest gradient has come through a node."""
        found: set[int] = set()
        below = self._below
        stack = [i]
        while stack:
            here = stack.pop()
            found.add(here)
            stack += below.get(here, ())
        return [leaf for leaf in self.leaves if leaf in found]

    @cached_property
    def _below(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for i, above in self.up.items():
            found.setdefault(above, []).append(i)
        return found

    def matters(self, i: int, came: Stats, *, vanishes: bool) -> bool:
        """Tell whether the parameters behind a node have suffered, or another path makes up for it."""
        behind = set(self.behind(i))
        norms = [self.leaves[leaf].norm for leaf in behind]
        others = [grad.norm for leaf, grad in self.leaves.items() if leaf not in behind]
        if not norms:
            return False
        if vanishes:
            return max(norms) * SUFFERS <= max([came.norm, *others])
        usual = sorted(others)[(len(others) - 1) // 2] if others else 0.0
        return max(norms) >= max(LARGE, SUFFERS * max(came.norm, usual))


def log_ratio(before: Stats, after: Stats) -> float:
    """By how many powers of ten a gradient has changed, whatever the sizes are.

    A mean divides by the number of elements and a sum copies to all of them: what counts must show in
    the norm, in the mean square and in the sum alike. 0 where it does not.
    """
    if not (math.isfinite(before.norm) and math.isfinite(after.norm)) or before.norm == 0:
        return 0.0
    if after.norm == 0:
        return -math.inf
    change = math.log10(after.norm) - math.log10(before.norm)
    sizes = math.log10(max(1, after.size) / max(1, before.size)) / 2
    changes = (change, change + sizes, change - sizes)
    if all(one > 0 for one in changes):
        return min(changes)
    return max(changes) if all(one < 0 for one in changes) else 0.0


def is_parameter(tensor: Any) -> bool:
    """Tell whether a leaf is a Parameter of PyTorch's."""
    return any(kind.__name__ == "Parameter" for kind in type(tensor).__mro__)
