"""Equations and inequalities, `left == right`, as the pairs of their sides."""

from __future__ import annotations

import re
from array import array

from gradcli.language import tree_kinds
from gradcli.language.located_errors import LanguageError
from gradcli.language.program import Program

EQUATION = ("eq",)
RELATIONS = ("eq", "le", "ge", "lt", "gt")
_EXPRESSION, _TUPLE = tree_kinds.KIND["expression"], tree_kinds.KIND["tuple"]


def _kind(program: Program, row: int) -> str:
    """The kind of the expression that the statement at a row consists of; "" of any other statement."""
    if row <= 0 or program.rows[4 * row] != _EXPRESSION:
        return ""
    return tree_kinds.KINDS[program.rows[4 * row - 4]]


def sides(program: Program, kinds: tuple[str, ...] = EQUATION) -> tuple[Program, list[str]]:
    """(the program whose value is (left, right, left, right, …) instead, what stood between them).

    The relations are the program's last statements, each of its own, or the items of a tuple; what comes
    before them is kept, and every span is what it was. Raises LanguageError where the last statement is none.
    """
    program = _apart(program)
    relations: list[int] = []  # the rows of the statements
    end = len(program) - 2  # behind the last statement stands the block
    while _kind(program, end) in kinds:
        relations.append(end)
        end = program.subtree(end) - 1
    if not relations:
        more = ", left <= right or left >= right" * (kinds != EQUATION)
        assigned = re.fullmatch(r"\s*([^=;\n]+?)\s*=\s*([^=;\n]+?)\s*", program.source)
        raise LanguageError(
            f"this is not an {'equation' if kinds == EQUATION else 'equation or inequality'}",
            source=program.source,
            span=program.value_span,
            hint=f"write {assigned[1]} == {assigned[2]}"
            if assigned
            else _behind(program.source) or f"write left == right{more}",
        )
    relations.reverse()
    return _paired(program, relations)


def _behind(source: str) -> str | None:
    """What makes an equation of a program that ends in `C = …` or in `C = … == mid`."""
    last = re.split(r"[;\n]", source.strip())[-1]
    found = re.fullmatch(r"\s*([^\W\d]\w*)\s*=(?!=)\s*([^=<>!]+?)\s*(?:==\s*([^=<>!]+?))?\s*", last)
    if found is None:
        return None
    name, right = found[1], found[3] or "VALUE"
    return f"`{name} = …` only gives a name: end with `; {name} == {right}`"


def all_sides(program: Program) -> tuple[Program, list[str]]:
    """The same, where a value is to be 0: `x - 1; y == 2` is (x - 1, y, 2) with the words "" and eq."""
    program = _apart(program)
    wanted: list[int] = []
    end = len(program) - 2
    while (kind := _kind(program, end)) and kind not in RELATIONS[1:]:
        wanted.append(end)
        end = program.subtree(end) - 1
    if not wanted:
        return sides(program)  # which refuses it
    wanted.reverse()
    return _paired(program, wanted)


def _apart(program: Program) -> Program:
    """The program with the items of its last statement as statements: `x == 1, y == 2` as `x == 1; y == 2`.

    Where none of the items is a relation, it stays what it is: a value.
    """
    last = len(program) - 2
    if _kind(program, last) not in ("tuple", "list"):
        return program
    items = program.children(last - 1)
    if not any(tree_kinds.KINDS[program.rows[4 * row]] in RELATIONS for row in items):
        return program
    # The tree is a flat list, so statements are made by copying rows: the items' subtrees one after the
    # other, behind each a row that makes it a statement, and at the end the block with its new number of
    # statements. The row of the tuple is left out. Spans are copied too, so that errors still point at
    # the right places.
    rows = array("i", program.rows[: 4 * program.subtree(items[0])])
    for row in items:
        rows.extend(program.rows[4 * program.subtree(row) : 4 * row + 4])
        rows.extend((_EXPRESSION, 0, *program.rows[4 * row + 2 : 4 * row + 4]))
    kind, count, start, stop = program.rows[-4:]  # the block
    rows.extend((kind, count + len(items) - 1, start, stop))
    return Program(program.source, rows, program.words, program.constants, [])


def _paired(program: Program, statements: list[int]) -> tuple[Program, list[str]]:
    """The program whose value is a tuple of the sides of its last statements."""
    # `a == b; c == d` becomes `(a, b, c, d)`: the rows `eq` and the statements' own are left out, so that
    # four values are left one after the other, and a row that makes a tuple of four takes the last
    # statement's place.
    words = [_kind(program, row) for row in statements]
    words = [word if word in RELATIONS else "" for word in words]
    count = sum(2 if word else 1 for word in words)
    left_out = set(statements)
    left_out |= {row - 1 for row, word in zip(statements, words, strict=True) if word}
    last, block = statements[-1], len(program) - 1
    rows = array("i")
    for row in range(len(program)):
        kind, operand, start, stop = program.rows[4 * row : 4 * row + 4]
        if row == last:
            rows.extend((_TUPLE, count, *program.rows[4 * row - 2 : 4 * row]))
        elif row in left_out:
            continue
        elif row == block:
            operand -= len(statements) - 1
        rows.extend((kind, operand, start, stop))
    return Program(program.source, rows, program.words, program.constants, []), words
