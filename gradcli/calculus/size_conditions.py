"""Conditions of a program on the sizes of its variables: both of their ways are to be seen.

Which conditions may depend on a size is read off the tree: a size is what a word like `shape` gives, and
what is assigned from one, or given to a function. Which way each goes is seen in a run of the program in
which it is the argument of a function that looks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from gradcli.calculus.generic import quiet
from gradcli.engine.tensor import Tensor, wrap
from gradcli.language import parse, run
from gradcli.language.errors import LanguageError
from gradcli.language.program import Program
from gradcli.language.tree import COMPARISONS, KIND, NAME

READS = frozenset("shape size len numel nelement".split())  # words that make a number of a size
RANKS = frozenset("ndim dim ndimension".split())  # and those that say how many there are
SEEN = "seen_condition"  # no name of a program's

_COMPARED = frozenset(KIND[f"{p}{word}"] for word in COMPARISONS for p in ("", "chain_"))
CALLS = frozenset((KIND["call"], KIND["call_keywords"]))
_CHAINS = frozenset(KIND[f"chain_{word}"] for word in COMPARISONS)
_TESTS = {KIND[word]: 0 for word in "if if_else while".split()} | {KIND["conditional"]: 1}
_ASSERTS = frozenset((KIND["assert"], KIND["assert_message"]))
_FUNCTIONS = frozenset((KIND["function"], KIND["function_annotated"]))
_GIVES = frozenset(KIND[word] for word in "assign walrus for".split())


class Conditions:
    """The conditions of a program on sizes, and which ways they went in the runs so far.

    names: what the program may read besides its variables.
    """

    def __init__(self, program: Program, names: Mapping[str, Any]) -> None:
        self.names = names
        self.ways: dict[int, set[bool]] = defaultdict(set)
        self.program: Program | None = None
        if not READS.isdisjoint(program.words) and (rows := _conditions(program)):
            self.program = parse(_looked_at(program, rows))

    def is_new(self, arrays: Mapping[str, Any]) -> bool:
        """Whether a condition goes a way at a point that it never went before."""
        if self.program is None:
            return False
        before = sum(map(len, self.ways.values()))
        space = {**self.names, **{n: wrap(v) for n, v in arrays.items()}, SEEN: self._see}
        try:
            with quiet():
                run(self.program, space, write=lambda text: None)
        except (LanguageError, RuntimeError):
            pass  # refused one way, or further on
        return sum(map(len, self.ways.values())) > before

    def _see(self, number: int, value: Any) -> Any:
        if not isinstance(value, Tensor):  # whose truth is not one of sizes
            self.ways[number].add(bool(value))
        return value

    @property
    def open(self) -> bool:
        """Whether a condition went one way only."""
        return any(len(ways) == 1 for ways in self.ways.values())


def _conditions(program: Program) -> list[int]:
    """The rows of comparisons and tests that may depend on a size, but those of `assert`."""
    kinds, sized = program.kinds, _Sized(program)
    asserted: set[int] = set()
    found: set[int] = set()
    for row in reversed(range(len(kinds))):
        kind = kinds[row]
        if kind in _ASSERTS:
            first = program.children(row)[0]
            asserted.update(range(program.subtree(first), first + 1))
        elif kind in _TESTS:
            found.add(program.children(row)[_TESTS[kind]])
        elif kind in _COMPARED:
            found.add(row)
        if kind in _CHAINS:
            asserted.add(program.children(row)[0])  # a part of the whole chain
    return sorted(row for row in found - asserted if sized(row))


class _Sized:
    """Whether the value of a row may depend on a size."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.words: set[str] = set()
        while len(self.words) < len(words := self.words | set(self._given())):
            self.words = words

    def __call__(self, row: int) -> bool:
        program = self.program
        left = [row]
        while left:
            at = left.pop()
            kind, children = program.kinds[at], program.children(at)
            word = program.words[program.rows[4 * at + 1]] if kind in _WORDS else ""
            if word in RANKS or (kind in CALLS and self._is_rank(children)):
                continue
            if word in READS or (kind == NAME and word in self.words):
                return True
            left += children
        return False

    def _is_rank(self, children: list[int]) -> bool:
        """len(x.shape)"""
        texts = [self.program.source[slice(*self.program.span(c))] for c in children[:2]]
        return "len" in texts and any(t.endswith((".shape", ".size()")) for t in texts)

    def _given(self) -> Iterable[str]:
        """The names that are given what depends on a size."""
        program = self.program
        functions = [r for r, k in enumerate(program.kinds) if k in _FUNCTIONS]
        for row, kind in enumerate(program.kinds):
            children = program.children(row) if kind in _GIVES or kind in CALLS else []
            if kind in _GIVES:
                source = children[1] if kind == KIND["for"] else children[-1]
                if self(source):
                    yield from self._targets(children)
            elif kind in CALLS and any(map(self, children)):
                for function in functions:
                    yield from self._targets(program.children(function)[1:-1])

    def _targets(self, rows: list[int]) -> Iterable[str]:
        program = self.program
        for row in rows:
            for at in range(program.subtree(row), row + 1):
                if program.kinds[at] in _TARGETS:
                    yield program.words[program.rows[4 * at + 1]]


_TARGETS = frozenset((KIND["target"], KIND["parameter"]))
_WORDS = frozenset((NAME, KIND["attribute"]))


def _looked_at(program: Program, rows: list[int]) -> str:
    """The program's text with a call around each of these rows."""
    marks = []
    for number, row in enumerate(rows):
        start, end = program.span(row)
        marks += [(start, 1, -end, f"{SEEN}({number}, ("), (end, 0, -start, "))")]
    text = program.source
    for place, _, _, mark in sorted(marks, reverse=True):
        text = text[:place] + mark + text[place:]
    return text


__all__ = ["READS", "Conditions"]
