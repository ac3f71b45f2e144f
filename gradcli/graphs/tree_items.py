"""Which lines a tree has: a view unfolded, each item once, with nothing said of columns yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from gradcli.graphs.view import Fold, Link, View, ViewReading

NOWHERE = -1  # the key of an input that needs no gradient


class Kind(Enum):
    """What a line stands for."""

    NODE = "node"
    REFERENCE = "reference"  # drawn above already
    CONTINUED = "continued"  # drawn below, at the left margin
    FOLD = "fold"  # several nodes in one line
    NOTHING = "nothing"  # an input that needs no gradient


@dataclass(slots=True, eq=False, repr=False)
class TreeItem:
    """One line of the tree, before anything is written on it."""

    kind: Kind
    key: int  # of the item: a node's id, or a fold's key
    output: int
    guides: tuple[bool, ...]  # for each level above: is there a sibling to come?
    number: int | None = None  # the mark of a shared or continued item
    cut: bool = False  # what follows it is beyond the depth asked for
    open: bool = False  # lines of what follows it follow
    fold: Fold | None = None
    again: bool = False  # said before that it is continued
    block: bool = False  # begins a continued block


def rows(view: View, *, nothings: bool = False, levels: int = 20) -> Iterator[TreeItem]:
    """Unfold the view from its roots, without recursion.

    nothings: lines for inputs that need no gradient. levels: guides wider than this continue at
    the left margin.
    """
    return _Unfolding(view, nothings, levels).run()


@dataclass(slots=True, eq=False, repr=False)
class _Task:
    key: int
    output: int
    guides: tuple[bool, ...]
    follow: Sequence[Link | None] = ()  # known once it is drawn


class _Unfolding:
    def __init__(self, view: View, nothings: bool, levels: int) -> None:
        self.view, self.nothings, self.levels = view, nothings, levels
        self.reading = ViewReading(view)
        self.numbers: dict[int, int] = {}
        self.drawn: set[int] = set()
        self.continued: set[int] = set()
        self.pending: deque[tuple[int, int]] = deque()

    def run(self) -> Iterator[TreeItem]:
        for root in self.reading.starts():
            yield from self.block(root, 0, continued=False)
            while self.pending:
                key, output = self.pending.popleft()
                if key not in self.drawn:
                    yield from self.block(key, output, continued=True)

    def block(self, start: int, output: int, *, continued: bool) -> Iterator[TreeItem]:
        stack = [_Task(start, output, ())]
        first = continued
        while stack:
            task = stack.pop()
            row = self.row(task)
            row.block, first = first, False
            if row.open:
                stack.extend(reversed(self.children(task)))
            yield row

    def number(self, key: int) -> int:
        return self.numbers.setdefault(key, len(self.numbers) + 1)

    def row(self, task: _Task) -> TreeItem:
        key = task.key
        if key == NOWHERE:
            return TreeItem(Kind.NOTHING, key, task.output, task.guides)
        if key in self.drawn:
            return TreeItem(Kind.REFERENCE, key, task.output, task.guides, self.number(key))
        follow = task.follow = self.reading.follow(key)
        grows = any(link is not None for link in follow)
        if grows and len(task.guides) >= self.levels:
            self.pending.append((key, task.output))
            again = key in self.continued
            self.continued.add(key)
            return TreeItem(
                Kind.CONTINUED, key, task.output, task.guides, self.number(key), again=again
            )
        self.drawn.add(key)
        numbered = self.reading.met(key) > 1 or key in self.numbers
        number = self.number(key) if numbered else None
        if key < 0:
            fold = self.reading.folds[key]
            return TreeItem(Kind.FOLD, key, 0, task.guides, number, False, grows, fold)
        cut = self.view.cut(key)
        shows = grows or (self.nothings and bool(follow) and not cut)
        return TreeItem(Kind.NODE, key, task.output, task.guides, number, cut, shows)

    def children(self, task: _Task) -> list[_Task]:
        found = []
        for link in task.follow:
            if link is not None:
                found.append(_Task(*link, task.guides))
            elif self.nothings:
                found.append(_Task(NOWHERE, 0, task.guides))
        for position, new in enumerate(found):
            new.guides = (*task.guides, position + 1 < len(found))
        return found
