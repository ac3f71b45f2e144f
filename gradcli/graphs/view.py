"""What of a graph is shown: the part asked for, how deep, which chains and modules are folded.

`--only`, `--depth`, `--collapse` and `--by` mean this, in the tree and in every picture. A view has
items: nodes, and folds that stand for several. Which way they are read (from the result down, or
forward from the inputs) is a matter of the renderer, which asks for `inputs` or `users`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from gradcli.graphs.traversal import Edge, Walk, class_name, matching

AUTO_COLLAPSE_DEPTH = 24
SHORTEST_FOLD = 3


@dataclass(slots=True, eq=False, repr=False)
class Fold:
    """Several nodes drawn as one: a straight chain, or what a call of a module has made.

    key: the number by which edges name it; negative, for nodes have the others. hidden: its nodes,
    from the result's side. leaves: those that only they lead to.
    """

    key: int
    hidden: list[int]
    leaves: list[int] = field(default_factory=list)
    below: int = -1  # of a chain: the node that ends it
    call: int = -1  # of a module: which call
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def is_chain(self) -> bool:
        """Tell whether it stands for a straight chain."""
        return self.call < 0


@dataclass(slots=True, eq=False, repr=False)
class Selection:
    """The part of a graph that is asked for."""

    only: str | None = None
    depth: int | None = None
    collapse: bool | None = None  # None: where the graph is deep
    forward: bool = False


class View:
    """A part of a graph, its nodes in order of first visit, depth first from its roots."""

    def __init__(
        self,
        skeleton: Walk,
        selection: Selection,
        labels: Mapping[int, str] | None = None,
        groups: Mapping[int, int] | None = None,
        members: Mapping[str, list[int]] | None = None,
    ) -> None:
        """labels: the program's names by id, where `only` may be one. groups: node -> call to fold.

        members: the nodes of modules by path, where `only` may be one too.
        """
        self.skeleton, self.selection = skeleton, selection
        self._inside = (members or {}).get(selection.only or "")
        self.depth = selection.depth
        self.roots = self._roots(labels or {})
        self.levels: dict[int, int] | None = None
        if self.depth is not None or self.roots != skeleton.roots:
            self.levels = self._levels()
        self.owner: dict[int, Fold] = {}
        self.folds: list[Fold] = []
        if groups:
            self._fold_groups(groups)
        elif self._collapses():
            self._fold_chains()

    # -- which part ------------------------------------------------------------------------------
    def _roots(self, labels: Mapping[int, str]) -> list[int]:
        wanted = self.selection.only
        if wanted is None:
            return self._sources() if self.selection.forward else self.skeleton.roots
        if self._inside is not None:
            return self._tops(set(self._inside))
        found = matching(self.skeleton, wanted, labels)
        if not found:
            known = ", ".join(dict.fromkeys(labels.values())) or "none"
            raise ValueError(f"no node is called {wanted!r} (named nodes: {known})")
        if self.depth is None and len(found) > 1:
            self.depth = 1
        return found

    def _tops(self, inside: set[int]) -> list[int]:
        """The nodes of a module that nothing in it leads to, the way that the view is read."""
        led = {edge[0] for i in inside for edge in self._beyond(i) if edge is not None}
        return sorted(inside - led)

    def _sources(self) -> list[int]:
        """Where the forward reading begins: nodes without inputs in the graph, in order of id."""
        return [i for i in range(len(self.skeleton)) if not any(self.skeleton.edges[i])]

    def _levels(self) -> dict[int, int]:
        """How many edges every shown node is from the nearest root: no further than the depth."""
        inside = None if self._inside is None else set(self._inside)
        levels = dict.fromkeys(self.roots, 0)
        queue = list(levels)
        for i in queue:
            level = levels[i] + 1
            if self.depth is not None and level > self.depth:
                break
            for edge in self._beyond(i):
                if edge is None or (inside is not None and edge[0] not in inside):
                    continue
                if edge[0] not in levels:
                    levels[edge[0]] = level
                    queue.append(edge[0])
        return levels

    def _beyond(self, i: int) -> Iterable[Edge | None]:
        """Where one goes on from a node: to its inputs, or forward to its consumers."""
        return self.users[i] if self.selection.forward else self.skeleton.edges[i]

    @cached_property
    def users(self) -> dict[int, list[Edge]]:
        """The edges read the other way: node -> its consumers, each with the number of the input."""
        found: dict[int, list[Edge]] = {i: [] for i in range(len(self.skeleton))}
        for i in range(len(self.skeleton)):
            for position, edge in enumerate(self.skeleton.edges[i]):
                if edge is not None:
                    found[edge[0]].append((i, position))
        return found

    @property
    def whole(self) -> bool:
        """Tell whether every node is in the view."""
        return self.levels is None or len(self.levels) == len(self.skeleton)

    def shown(self, i: int) -> bool:
        """Tell whether a node is in the view."""
        return self.levels is None or i in self.levels

    def ids(self) -> list[int]:
        """The nodes of the view, in order of id."""
        return list(range(len(self.skeleton))) if self.levels is None else sorted(self.levels)

    def cut(self, i: int) -> bool:
        """Tell whether the way goes on from a node, but not in this view."""
        if self.levels is None:
            return False
        return any(edge is not None and edge[0] not in self.levels for edge in self._beyond(i))

    def inputs(self, i: int) -> list[Edge | None]:
        """The edges of a node to nodes of the view, and its None."""
        return [e for e in self.skeleton.edges[i] if e is None or self.shown(e[0])]

    # -- folds -----------------------------------------------------------------------------------
    def _collapses(self) -> bool:
        if self.selection.collapse is not None:
            return self.selection.collapse
        deepest = max(self.skeleton.depths, default=0)
        if self.levels is not None:
            deepest = min(deepest, len(self.levels), max(self.levels.values(), default=0))
        return deepest > AUTO_COLLAPSE_DEPTH

    def link(self, i: int) -> int | None:
        """Return the only input of a node that itself has inputs, if nobody else consumes it."""
        edges = [edge for edge in self.inputs(i) if edge is not None]
        inner = {child for child, _ in edges if any(self.skeleton.edges[child])}
        if len(inner) != 1:
            return None
        child = inner.pop()
        mine = sum(1 for other, _ in edges if other == child)
        return child if self.skeleton.uses[child] == mine and child not in self.roots else None

    def _fold_chains(self) -> None:
        ids = self.ids()
        links = {i: self.link(i) for i in ids}
        linked = set(links.values())
        for head in ids:
            if links[head] is None or head in linked:
                continue
            chain: list[int] = []
            here = links[head]
            while here is not None and (after := links[here]) is not None:
                chain.append(here)
                here = after
            if len(chain) >= SHORTEST_FOLD:
                self._fold(chain, below=-1 if here is None else here)

    def _fold_groups(self, groups: Mapping[int, int]) -> None:
        calls: dict[int, list[int]] = {}
        for i in self.ids():
            if i in groups:
                calls.setdefault(groups[i], []).append(i)
        for call, members in calls.items():
            self._fold(members, call=call)

    def _fold(self, hidden: list[int], *, below: int = -1, call: int = -1) -> None:
        counts = Counter(class_name(self.skeleton.nodes[i]) for i in hidden)
        fold = Fold(-2 - len(self.folds), hidden, below=below, call=call, counts=counts)
        self.folds.append(fold)
        inside = set(hidden)
        uses: Counter[int] = Counter()
        for i in hidden:
            self.owner[i] = fold
            for edge in self.inputs(i):
                if edge is not None and not self.skeleton.edges[edge[0]]:
                    uses[edge[0]] += 1
        for leaf, count in uses.items():
            if leaf not in inside:
                fold.leaves.append(leaf)
                if count == self.skeleton.uses[leaf] and leaf not in self.roots:
                    self.owner[leaf] = fold

    def key(self, i: int) -> int:
        """The item that a node is drawn as: itself, or the fold that hides it."""
        fold = self.owner.get(i)
        return i if fold is None else fold.key

    def items(self) -> list[int | Fold]:
        """What is drawn: nodes by id, and folds, each once, in order of first visit."""
        found: dict[int, int | Fold] = {}
        for i in self.ids():
            fold = self.owner.get(i)
            found.setdefault(i if fold is None else fold.key, i if fold is None else fold)
        return list(found.values())

    def edges(self, item: int | Fold) -> list[tuple[int, int, int, int] | None]:
        """The edges of an item: (item it leads to, output, input, how many inputs), None for None.

        Edges of a fold are one for each item that it leads to; leaves of a chain stand in its text.
        """
        if isinstance(item, int):
            edges, levels, owner = self.skeleton.edges[item], self.levels, self.owner
            found: list[tuple[int, int, int, int] | None] = []
            folds: set[int] = set()
            for position, edge in enumerate(edges):
                if edge is None:
                    found.append(None)
                elif levels is not None and edge[0] not in levels:
                    continue
                elif (fold := owner.get(edge[0])) is None:
                    found.append((*edge, position, len(edges)))
                elif fold.key not in folds:
                    folds.add(fold.key)
                    found.append((fold.key, 0, position, len(edges)))
            return found
        if item.is_chain:
            return [(self.key(item.below), 0, 0, 1)]
        seen: dict[int, None] = {}
        for i in item.hidden:
            for edge in self.inputs(i):
                if edge is not None:
                    seen.setdefault(self.key(edge[0]))
        seen.pop(item.key, None)
        return [(key, 0, k, len(seen)) for k, key in enumerate(seen)]


Link = tuple[int, int]  # (item, output)


class ViewReading:
    """A view read line by line: which items follow an item, and how many lead to it."""

    def __init__(self, view: View) -> None:
        self.view, self.forward = view, view.selection.forward
        self.folds = {fold.key: fold for fold in view.folds}

    def item(self, key: int) -> int | Fold:
        """The item of a key."""
        return key if key >= 0 else self.folds[key]

    def follow(self, key: int) -> list[Link | None]:
        """What follows an item: its inputs, or its consumers in the forward reading."""
        if self.forward:
            return list(self._consumers(key))
        return [None if e is None else (e[0], e[1]) for e in self.view.edges(self.item(key))]

    def _consumers(self, key: int) -> list[Link]:
        item = self.item(key)
        found: dict[int, None] = {}
        for i in [item] if isinstance(item, int) else item.hidden:
            for user, _ in self.view.users[i]:
                if self.view.shown(user):
                    found.setdefault(self.view.key(user))
        found.pop(key, None)
        return [(user, 0) for user in found]

    def met(self, key: int) -> int:
        """How many edges lead to an item."""
        if key < 0:
            return 1
        if not self.forward:
            return self.view.skeleton.uses[key]
        return len({self.view.key(e[0]) for e in self.view.inputs(key) if e is not None})

    def starts(self) -> list[int]:
        """The items that the reading begins with."""
        return list(dict.fromkeys(self.view.key(i) for i in self.view.roots))


def fold_text(folded: Mapping[str, int], times: str, kinds_shown: int = 4) -> str:
    """Say what a fold holds: its nodes by name, in order of first appearance."""
    if len(folded) == 1:
        name, count = next(iter(folded.items()))
        return f"{count:,} {times} {name}"
    kinds = [f"{count:,} {times} {name}" for name, count in folded.items()]
    if len(kinds) > kinds_shown:
        kinds = [*kinds[:kinds_shown], "…"]
    return f"{sum(folded.values()):,} nodes: {', '.join(kinds)}"
