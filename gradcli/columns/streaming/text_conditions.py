"""Conditions on columns of text: `site == 'A'` becomes a column of 1 and 0, and its test `(NAME == 1)`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.language.located_errors import LanguageError
from gradcli.language.parser import parse
from gradcli.language.tree_kinds import KIND

if TYPE_CHECKING:
    from gradcli.language.program import Program
    from gradcli.tables.named_columns import Table

# Where a text would be taken for a number or a truth value, as in `site == 'A' or 'B'`.
_NO_PLACE_OF_TEXTS = frozenset(
    KIND[name]
    for name in (
        *("eq", "ne", "lt", "le", "gt", "ge", "in", "not_in", "bitand", "bitor"),
        *("and", "or", "not", "list", "tuple", "expression", "conditional"),
        *("chain_eq", "chain_ne", "chain_lt", "chain_le", "chain_gt", "chain_ge", "chain_in"),
        "chain_not_in",
    )
)


class Test(NamedTuple):
    """Whether a cell is a text. column: the name of its column."""

    column: str
    text: str

    @property
    def heading(self) -> str:
        """What the column of its answers is called."""
        return f"{self.column} is {self.text!r}"


def without_texts(source: str) -> tuple[str, dict[str, Test]]:
    """A condition in which no text is compared, and the tests whose answers it reads, by variable.

    A test and its opposite (`!=`) read the same answers. Raises LanguageError for what is no expression, and
    for a text that is compared in another way.
    """
    if "'" not in source and '"' not in source:
        return source, {}
    program = parse(source)
    tests: dict[Test, str] = {}
    pieces: list[tuple[int, int, str]] = []
    # Numbers are all that programs of columns know. `site == 'A' | site != 'B'` becomes `(text_0_ == 1) |
    # (text_1_ == 0)`, where text_0_ is a column of answers. Pieces are put in from the end of the text,
    # so that places before them stay right.
    for row, kind in enumerate(program.kinds):
        if kind not in _NO_PLACE_OF_TEXTS:
            continue
        sides = program.children(row)
        test = _test(program, sides) if kind in (KIND["eq"], KIND["ne"]) else None
        if test is None:
            _refuse_texts(program, sides)
        else:
            name = tests.setdefault(test, f"text_{len(tests)}_")
            start, end = program.span(row)
            pieces.append((start, end, f"({name} == {int(kind == KIND['eq'])})"))
    made = source
    for start, end, text in sorted(pieces, reverse=True):
        made = made[:start] + text + made[end:]
    return made, {name: test for test, name in tests.items()}


def _refuse_texts(program: Program, sides: list[int]) -> None:
    """Raise LanguageError where one of these parts is a text."""
    for side in sides:
        text = program.constants[program.operands[side]] if _is_constant(program, side) else None
        if isinstance(text, str):
            raise LanguageError(
                "a text is compared with a column by == or !=, and with nothing else",
                source=program.source,
                span=program.span(side),
                hint=f"each comparison stands in parentheses: (COLUMN == {text!r}) | (COLUMN == 'other')",
            )


def _is_constant(program: Program, row: int) -> bool:
    return program.kinds[row] == KIND["constant"]


def _test(program: Program, sides: list[int]) -> Test | None:
    found: dict[int, Any] = {}
    for side in sides:
        operand = program.operands[side]
        if program.kinds[side] == KIND["name"]:
            found[0] = program.words[operand]
        elif _is_constant(program, side) and isinstance(program.constants[operand], str):
            found[1] = program.constants[operand]
    return Test(found[0], found[1]) if len(found) == 2 else None


def with_answers(table: Table, tests: Mapping[str, Test]) -> Table:
    """A table, and behind its columns the answers of tests: 1 where a cell is the text, else 0.

    Raises TableError where a column has no texts.
    """
    import numpy as np

    from gradcli.tables import TableError
    from gradcli.tables.named_columns import NumberedTable

    for test in tests.values():
        if test.heading in table.names:
            continue
        cells = table.cells(table.names.index(test.column))
        if cells and not any(cell is None or isinstance(cell, str) for cell in cells):
            raise TableError(
                f"{table.name}, column {test.column}: holds numbers, not text",
                hint=f"a number is compared without quotes, as in {test.column} == {cells[0]}",
            )
        answers = [isinstance(c, str) and c.strip() == test.text for c in cells]
        table = NumberedTable(table, test.heading, np.array(answers, np.float64))
    return table


__all__ = ["Test", "with_answers", "without_texts"]
