"""Conditions of a program on the sizes of its variables, and which branches were taken so far.

A derivative is only proved for all sizes if both outcomes of every such condition were seen. The syntax
tree tells which conditions may depend on a size: a size comes from a word such as `shape`, from a name that
is assigned from one, or through a call. The program then runs with a probe call around each condition.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.formulas.algebra.generic_points import quiet
from gradcli.language import parse, run
from gradcli.language.located_errors import LanguageError
from gradcli.language.program import Program
from gradcli.language.tree_kinds import COMPARISONS, CONSTANT, KIND, NAME

READS = frozenset("shape size len numel nelement".split())  # words that give sizes
RANKS = frozenset("ndim dim ndimension".split())  # words that give the number of dimensions
SEEN = "seen_condition"  # the probe; programs do not use this name

_COMPARED = frozenset(KIND[f"{p}{word}"] for word in COMPARISONS for p in ("", "chain_"))
_CALLS = frozenset((KIND["call"], KIND["call_keywords"]))
_CHAINS = frozenset(KIND[f"chain_{word}"] for word in COMPARISONS)
_TESTS = {KIND[word]: 0 for word in "if if_else while".split()} | {KIND["conditional"]: 1}
_ASSERTS = frozenset((KIND["assert"], KIND["assert_message"]))
_FUNCTIONS = frozenset((KIND["function"], KIND["function_annotated"]))
_GIVES = frozenset(KIND[word] for word in "assign walrus for".split())
_TARGETS = frozenset((KIND["target"], KIND["parameter"]))
_TAKES = _CALLS | {KIND["subscript"]}
_PARTS = frozenset(KIND[k] for k in "slice tuple list neg keyword".split())
_ATTRIBUTE = KIND["attribute"]
_WORDS = frozenset((NAME, _ATTRIBUTE))


class Conditions:
    """The conditions of a program on sizes, and their outcomes in the runs so far.

    names: what the program may read besides its variables.
    """

    def __init__(self, program: Program, names: Mapping[str, Any]) -> None:
        self.names = names
        self.ways: dict[int, set[bool]] = defaultdict(set)
        self.program: Program | None = None
        if not READS.isdisjoint(program.words) and (rows := _conditions(program)):
            self.program = parse(_looked_at(program, rows))

    def is_new(self, arrays: Mapping[str, Any]) -> bool:
        """Run the program at a point; whether a condition had an outcome that is new."""
        if self.program is None:
            return False
        before = sum(map(len, self.ways.values()))
        space = {**self.names, **{n: wrap(v) for n, v in arrays.items()}, SEEN: self._see}
        try:
            with quiet():
                run(self.program, space, write=lambda text: None)
        except (LanguageError, RuntimeError):
            pass  # it may fail on this branch, or later
        return sum(map(len, self.ways.values())) > before

    def _see(self, number: int, value: Any) -> Any:
        if not isinstance(value, Tensor):  # whose truth is not one of sizes
            self.ways[number].add(bool(value))
        return value

    @property
    def open(self) -> bool:
        """Whether a condition has had only one outcome."""
        return any(len(ways) == 1 for ways in self.ways.values())


def given_integers(program: Program) -> set[int]:
    """The integers that stand in calls and slices, as the 2 of `eye(2)`."""
    kinds, found = program.kinds, set[int]()
    waiting = [c for row, k in enumerate(kinds) if k in _TAKES for c in program.children(row)]
    while waiting:
        row = waiting.pop()
        if kinds[row] == CONSTANT and type(c := program.constants[program.operands[row]]) is int:
            found.add(c)
        elif kinds[row] in _PARTS:
            waiting += program.children(row)
    return found


def _conditions(program: Program) -> list[int]:
    """The tree positions of comparisons and tests that may depend on a size, except in `assert`."""
    sized = _sized(program)
    found: set[int] = set()
    left_out: set[int] = set()
    for row, kind in enumerate(program.kinds):
        if kind in _ASSERTS:
            first = program.children(row)[0]
            left_out.update(range(program.subtree(first), first + 1))
        elif kind in _TESTS:
            found.add(program.children(row)[_TESTS[kind]])
        elif kind in _COMPARED:
            found.add(row)
        if kind in _CHAINS:
            left_out.add(program.children(row)[0])  # a part of the whole chain
    return sorted(row for row in found - left_out if sized[row])


def _sized(program: Program) -> bytearray:
    """For each node of the tree, whether its value may depend on a size."""
    kinds, flags, words = program.kinds, bytearray(len(program)), set[str]()
    functions = [row for row, kind in enumerate(kinds) if kind in _FUNCTIONS]
    # To a fixed point, since a size may reach a name late: in a loop `n = m; m = x.shape[0]` the first
    # pass marks m, the second n. What a call with a size gives to which function is not followed: all
    # parameters of all functions are marked, which runs a few conditions too many and misses none.
    before = -1
    while before < len(words):
        before = len(words)
        for row, kind in enumerate(kinds):
            children = program.children(row)
            word = _word(program, row)
            own = word in READS or (kind == NAME and word in words)
            is_rank = word in RANKS or (kind in _CALLS and _is_rank(program, children))
            flags[row] = not is_rank and (own or any(flags[c] for c in children))
            if kind in _GIVES and flags[children[1 if kind == KIND["for"] else -1]]:
                words.update(_targets(program, children))
            elif kind in _CALLS and any(flags[c] for c in children):
                for function in functions:
                    words.update(_targets(program, program.children(function)[1:-1]))
    return flags


def _word(program: Program, row: int) -> str:
    """The word of a node that is a name or an attribute, else ""."""
    return program.words[program.rows[4 * row + 1]] if program.kinds[row] in _WORDS else ""


def _is_rank(program: Program, children: list[int]) -> bool:
    """len(x.shape), len(x.size())"""
    if len(children) != 2 or _word(program, children[0]) != "len":
        return False
    given = children[1]
    if program.kinds[given] in _CALLS:
        given = program.children(given)[0]
    return program.kinds[given] == _ATTRIBUTE and _word(program, given) in ("shape", "size")


def _targets(program: Program, rows: Iterable[int]) -> set[str]:
    """The names that are assigned in these subtrees."""
    places = (at for row in rows for at in range(program.subtree(row), row + 1))
    return {
        program.words[program.rows[4 * at + 1]] for at in places if program.kinds[at] in _TARGETS
    }


def _looked_at(program: Program, rows: list[int]) -> str:
    """The program's text with a probe call around each of these nodes."""
    marks = []
    for number, row in enumerate(rows):
        start, end = program.span(row)
        # Sorted from the end of the text, so that earlier places stay right. At one place closing marks
        # come before opening ones, and of two conditions that begin together the longer one opens first.
        marks += [(start, 1, -end, f"{SEEN}({number}, ("), (end, 0, -start, "))")]
    text = program.source
    for place, _, _, mark in sorted(marks, reverse=True):
        text = text[:place] + mark + text[place:]
    return text


__all__ = ["READS", "Conditions", "given_integers"]
