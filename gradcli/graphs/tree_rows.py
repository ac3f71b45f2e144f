"""Which lines a tree has: the graph unfolded, each node once, with nothing said of columns yet."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from gradcli.graphs.records import LEAF, Walk, class_name

AUTO_COLLAPSE_DEPTH = 24
SHORTEST_FOLD = 3
KINDS_IN_FOLD = 4


class Kind(Enum):
    """What a line stands for."""

    NODE = "node"
    REFERENCE = "reference"  # drawn above already
    CONTINUED = "continued"  # drawn below, at the left margin
    FOLD = "fold"  # a straight chain, folded
    NOTHING = "nothing"  # an input that needs no gradient


@dataclass(slots=True)
class Row:
    """One line of the tree, before anything is written on it."""

    kind: Kind
    id: int
    output: int
    guides: tuple[bool, ...]  # for each level above: is there a sibling to come?
    number: int | None = None  # the mark of a shared or continued node
    cut: bool = False  # its inputs are beyond the depth asked for
    open: bool = False  # lines of its inputs follow
    folded: Counter[str] = field(default_factory=Counter)
    leaves: tuple[int, ...] = ()  # leaves that a folded chain leads to
    again: bool = False  # said before that it is continued
    block: bool = False  # begins a continued block


@dataclass(slots=True)
class Shape:
    """What decides how the graph is unfolded."""

    depth: int | None = None
    collapse: bool | None = None
    nothings: bool = False
    levels: int = 20  # guides wider than this continue at the left margin


def rows(skeleton: Walk, roots: list[int], shape: Shape) -> Iterator[Row]:
    """Unfold the graph from the roots, without recursion."""
    return _Unfolding(skeleton, shape).run(roots)


@dataclass(slots=True)
class _Task:
    id: int
    output: int
    guides: tuple[bool, ...]
    depth: int
    fold: Counter[str] | None = None
    below: int = -1  # for a fold: the node that ends the chain
    leaves: dict[int, None] = field(default_factory=dict)


class _Unfolding:
    def __init__(self, skeleton: Walk, shape: Shape) -> None:
        self.skeleton, self.shape = skeleton, shape
        self.numbers: dict[int, int] = {}
        self.drawn: set[int] = set()
        self.continued: set[int] = set()
        self.pending: deque[tuple[int, int, int]] = deque()
        deepest = max(skeleton.depths, default=0)
        if shape.depth is not None:
            deepest = min(deepest, shape.depth)
        self.collapse = shape.collapse
        if self.collapse is None:
            self.collapse = deepest > AUTO_COLLAPSE_DEPTH

    def run(self, roots: list[int]) -> Iterator[Row]:
        for root in roots:
            yield from self.block(root, 0, 0, continued=False)
            while self.pending:
                i, output, depth = self.pending.popleft()
                if i not in self.drawn:
                    yield from self.block(i, output, depth, continued=True)

    def block(self, start: int, output: int, depth: int, *, continued: bool) -> Iterator[Row]:
        stack = [_Task(start, output, (), depth)]
        first = continued
        while stack:
            task = stack.pop()
            row = self.row(task)
            row.block, first = first, False
            if row.open:
                stack.extend(reversed(self.children(task)))
            yield row

    def number(self, i: int) -> int:
        return self.numbers.setdefault(i, len(self.numbers) + 1)

    def row(self, task: _Task) -> Row:
        i = task.id
        if i < 0:
            return Row(Kind.NOTHING, i, task.output, task.guides)
        if task.fold is not None:
            return Row(
                Kind.FOLD, i, 0, task.guides, None, False, True, task.fold, tuple(task.leaves)
            )
        if i in self.drawn:
            return Row(Kind.REFERENCE, i, task.output, task.guides, self.number(i))
        edges = self.skeleton.edges[i]
        grows = any(edge is not None for edge in edges)
        cut = grows and self.shape.depth is not None and task.depth >= self.shape.depth
        if grows and not cut and len(task.guides) >= self.shape.levels:
            self.pending.append((i, task.output, task.depth))
            again = i in self.continued
            self.continued.add(i)
            return Row(Kind.CONTINUED, i, task.output, task.guides, self.number(i), again=again)
        if not cut:
            self.drawn.add(i)
        numbered = self.skeleton.uses[i] > 1 or i in self.numbers
        number = self.number(i) if numbered else None
        shows = grows or (self.shape.nothings and bool(edges))
        return Row(Kind.NODE, i, task.output, task.guides, number, cut, shows and not cut)

    def children(self, task: _Task) -> list[_Task]:
        if task.fold is not None:
            last = (*task.guides, False)
            return [_Task(task.below, 0, last, task.depth + 1)]
        found: list[_Task] = []
        folded: set[int] = set()
        for edge in self.skeleton.edges[task.id]:
            if edge is None:
                if self.shape.nothings:
                    found.append(_Task(-1, 0, task.guides, task.depth + 1))
                continue
            child, output = edge
            if child in folded:
                continue
            new = _Task(child, output, task.guides, task.depth + 1)
            if self.collapse and child not in self.drawn and self.link(task.id) == child:
                self.fold(new)
                if new.fold is not None:
                    folded.add(child)
            found.append(new)
        for position, new in enumerate(found):
            new.guides = (*task.guides, position + 1 < len(found))
        return found

    def link(self, i: int) -> int | None:
        """Return the only input of a node that itself has inputs, if nobody else consumes it."""
        edges = [edge for edge in self.skeleton.edges[i] if edge is not None]
        inner = {child for child, _ in edges if self.skeleton.edges[child]}
        if len(inner) != 1:
            return None
        child = inner.pop()
        mine = sum(1 for other, _ in edges if other == child)
        return child if self.skeleton.uses[child] == mine else None

    def fold(self, task: _Task) -> None:
        """Fold the straight chain that begins at the task's node, if there is one."""
        chain: list[int] = []
        here: int = task.id
        while (after := self.link(here)) is not None:
            chain.append(here)
            here = after
        if len(chain) < SHORTEST_FOLD:
            return
        task.fold = Counter(class_name(self.skeleton.nodes[i]) for i in chain)
        task.below = here
        for i in chain:
            for edge in self.skeleton.edges[i]:
                if edge is not None and not self.skeleton.edges[edge[0]]:
                    task.leaves.setdefault(edge[0])
        self.drawn.update(chain)


def fold_text(folded: Counter[str], times: str) -> str:
    """Say what a folded chain holds: its nodes by name, in order of first appearance."""
    if len(folded) == 1:
        name, count = next(iter(folded.items()))
        return f"{count:,} {times} {name}"
    kinds = [f"{count:,} {times} {name}" for name, count in folded.items()]
    if len(kinds) > KINDS_IN_FOLD:
        kinds = [*kinds[:KINDS_IN_FOLD], "…"]
    return f"{sum(folded.values()):,} nodes: {', '.join(kinds)}"


def matching(skeleton: Walk, wanted: str, labels: dict[int, str]) -> list[int]:
    """Return the nodes that a name means: the program's, a node's, or a number ("#3" or "3")."""
    number = wanted.removeprefix("#")
    if number.isdigit():
        return [int(number)] if int(number) < len(skeleton) else []
    by_name = [i for i, label in labels.items() if label == wanted]
    if by_name:
        return by_name
    names = {wanted, f"{wanted}Backward0"} - {LEAF + "Backward0"}
    return [i for i, node in enumerate(skeleton.nodes) if class_name(node) in names]
