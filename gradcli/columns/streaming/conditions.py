"""Conditions of rows: `cp == 'call' and T > 0.1`, what `--where` and `fit(where=…)` take.

A condition is a tree of `and`, `or` and `not` over comparisons. Each comparison runs over whole columns: of
numbers as a formula (`RowFormula`), of texts and of dates by what is written in the cells. Comparisons that
the result does not need are not made, so an empty cell counts only where the answer depends on it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.columns.streaming.row_formulas import RowFormula
from gradcli.language.located_errors import LanguageError, did_you_mean, suggest
from gradcli.language.parser import parse
from gradcli.language.scope_checks import free_names, is_only_called
from gradcli.language.tree_kinds import KIND
from gradcli.tables import TableError
from gradcli.tables.delimited import is_missing, is_number
from gradcli.tables.named_columns import SelectedTable, side_by_side, with_nan
from gradcli.tables.table_errors import MISSING_HINT, listed
from gradcli.tables.times import clock_of, is_time, nanoseconds

if TYPE_CHECKING:
    from gradcli.language.program import Program
    from gradcli.tables.named_columns import Cells, Table

Array = np.ndarray[Any, Any]

_SIGNS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
_SWAPPED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
_IN = {"in": "eq", "not_in": "ne"}
_CHAINS = {KIND[f"chain_{name}"]: name for name in (*_SIGNS, *_IN)}
_COMPARED = {KIND[name]: name for name in (*_SIGNS, *_IN)} | _CHAINS
_JOINED = {KIND["and"]: "and", KIND["or"]: "or", KIND["bitand"]: "and", KIND["bitor"]: "or"}
_OPPOSITES = (KIND["not"], KIND["invert"])
_BITS = (KIND["bitand"], KIND["bitor"])
# Where a text would be taken for a number or a truth value, as in `site == 'A' or 'B'`.
_NO_PLACE_OF_TEXTS = frozenset(
    (*_COMPARED, *_JOINED, *_OPPOSITES, KIND["expression"], KIND["conditional"], KIND["list"])
)
_DEEPEST = (
    100  # levels of `not (…)` and the like that are taken apart; what is deeper is one formula
)
_FIRST = 100  # cells that tell whether a column is one of times
_LABEL = re.compile(r"[-+]?0[0-9]+")  # 007 is a code, not a number
_DATE = re.compile(r"(?<![\w.'\"-])[12]\d{3}-[01]\d-[0-3]\d(?![\w.'\"-])")


class _Truths(NamedTuple):
    """Of some rows: where something holds, and where an empty cell leaves that open."""

    true: Array
    unknown: Array


class _Numbers(NamedTuple):
    """A comparison of numbers, or what else is true or false. columns: by variable, their headings."""

    formula: RowFormula
    columns: Mapping[str, Sequence[str]]
    vectors: frozenset[str]

    def headings(self) -> list[str]:
        return [heading for found in self.columns.values() for heading in found]

    def truths(self, read: _Reading, rows: Array) -> _Truths:
        batch, gone = {}, np.zeros(len(rows), bool)
        for name, headings in self.columns.items():
            cells = [read.cells(heading) for heading in headings]
            for one in cells:
                gone |= False if one.gone is None else one.gone[rows]
            batch[name] = side_by_side(cells).numbers if name in self.vectors else cells[0].numbers
        there = rows[~gone]
        true = np.zeros(len(rows), bool)
        # one row is enough to find that the condition is none
        batch = {name: array[there] for name, array in batch.items()}
        true[~gone] = self.formula.truths(batch, len(there), read.option)
        return _Truths(true, gone)


class _Texts(NamedTuple):
    """A comparison of the cells of a column with texts, one of which they are, or with a date."""

    heading: str
    relation: str
    texts: tuple[str, ...]

    def headings(self) -> list[str]:
        return [self.heading]

    def truths(self, read: _Reading, rows: Array) -> _Truths:
        text = self.texts[0]
        if len(self.texts) == 1 and is_time(text):
            times = read.times(self.heading, text)
            if times is not None:
                counts, wanted = times.counts[rows], nanoseconds(text, times.order)
                found = getattr(np, _UFUNCS[self.relation])(counts, wanted).astype(bool)
                return _Truths(found & ~times.gone[rows], times.gone[rows])
        if self.relation not in ("eq", "ne"):
            raise TableError(
                f"{read.table.name}, column {self.heading}: holds no dates",
                hint=f"a text is compared by == or !=, as in {self.heading} == {text!r}",
            )
        cells = read.written(self.heading, rows)
        read.check_texts(self.heading, cells, self.texts)
        there = [isinstance(c, str) and c.strip() in self.texts for c in cells]
        true = np.array(there, bool) == (self.relation == "eq")
        return _Truths(true, np.zeros(len(rows), bool))


_UFUNCS = {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
_UFUNCS |= {"eq": "equal", "ne": "not_equal"}


class _Joined(NamedTuple):
    """Several joined by `and` or `or`, as Kleene's logic has it for what is not known."""

    word: str
    parts: tuple[_Part, ...]

    def headings(self) -> list[str]:
        return [heading for part in self.parts for heading in part.headings()]

    def truths(self, read: _Reading, rows: Array) -> _Truths:
        # `or` is `and` of the opposites: what is looked for is a part that decides. The next parts are
        # computed for the rows that are still open, as Python's `x > 0 and log(x) > 1` does.
        either = self.word == "or"
        unknown, decided = np.zeros(len(rows), bool), np.zeros(len(rows), bool)
        for part in self.parts:
            left = np.flatnonzero(~decided)
            if not len(left):
                break
            found = part.truths(read, rows[left])
            decides = (found.true if either else ~found.true) & ~found.unknown
            decided[left] = decides
            unknown[left] |= found.unknown
        unknown &= ~decided
        return _Truths((decided if either else ~decided) & ~unknown, unknown)


class _Opposite(NamedTuple):
    part: _Part

    def headings(self) -> list[str]:
        return self.part.headings()

    def truths(self, read: _Reading, rows: Array) -> _Truths:
        found = self.part.truths(read, rows)
        return _Truths(~found.true & ~found.unknown, found.unknown)


class _Times(NamedTuple):
    """A column of times. counts: in nanoseconds. gone: empty cells. dated: whether they have dates."""

    counts: Array
    gone: Array
    order: str
    example: str
    dated: bool


_Part = _Numbers | _Texts | _Joined | _Opposite


class _Reading:
    """The columns of a table that a condition reads, each once. bad: what is wrong with a row."""

    def __init__(
        self, table: Table, names: Sequence[str], missing: str, order: str | None, option: str
    ) -> None:
        self.table, self.missing, self.order, self.option = table, missing, order, option
        self.names = list(table.names or names)
        self.bad: dict[int, Exception] = dict(table.bad)
        self._cells: dict[str, Cells] = {}
        self._times: dict[str, _Times | None] = {}

    def cells(self, heading: str) -> Cells:
        """A column of numbers; those that `--missing nan` stands for are nan."""
        if heading not in self._cells:
            found = self.table.readable(self.names.index(heading))
            for row, problem in found.problems.items():
                self.bad.setdefault(row, problem)
            if found.gone is not None and self.missing == "nan":
                found = found._replace(numbers=with_nan(found), gone=None)
            self._cells[heading] = found
        return self._cells[heading]

    def written(self, heading: str, rows: Array) -> list[Any]:
        """The cells of some rows as they are written."""
        cells = self.table.cells(self.names.index(heading))
        return cells if len(rows) == len(cells) else [cells[row] for row in rows.tolist()]

    def times(self, heading: str, text: str) -> _Times | None:
        """The cells of a column as times, of the kind that the text is; None where they are none."""
        if heading not in self._times:
            self._times[heading] = self._as_times(heading)
        found = self._times[heading]
        if found is not None and found.example and found.dated != is_time(text, dated=True):
            raise TableError(
                f"{self.table.name}, column {heading}: `{found.example}` is not comparable with {text!r}",
                hint="one is a date, the other a time of a day",
            )
        return found

    def _as_times(self, heading: str) -> _Times | None:
        column = self.names.index(heading)
        cells = [None if c is None else str(c) for c in self.table.cells(column)]
        gone = [cell is None or is_missing(cell) for cell in cells]
        texts = [cell for cell, lost in zip(cells, gone, strict=True) if cell and not lost]
        clock = clock_of(heading, texts[:_FIRST], self.order, None)
        if clock is None:
            return (
                None if texts else _Times(np.zeros(len(cells)), np.array(gone, bool), "", "", False)
            )
        if not clock.order:  # 1/2/2025: another row may tell which is the month
            clock = clock_of(heading, filter(is_time, texts), self.order, None) or clock
        if not clock.order:
            clock.refuse()
        known: dict[str | None, int] = {}
        for text in dict.fromkeys(texts):
            with suppress(ValueError):
                known[text] = nanoseconds(text, clock.order)
        for row, cell in enumerate(cells):
            if not gone[row] and cell not in known:
                words = f"`{cell}` is no date" if clock.is_date else f"`{cell}` is no time"
                self.bad.setdefault(row, self.table.wrong(row, column, words))
        # int64 has nanoseconds for 292 years; of dates that are further apart Python's integers are taken
        small = all(abs(count) < 1 << 62 for count in known.values())
        counts = np.array([known.get(c, 0) for c in cells], np.int64 if small else object)
        return _Times(counts, np.array(gone, bool), clock.order, texts[0], clock.is_date)

    def check_texts(self, heading: str, cells: list[Any], texts: tuple[str, ...]) -> None:
        """Raise TableError for a column of numbers, which are compared without quotes."""
        there = [c for c in cells if c is not None and not (isinstance(c, str) and is_missing(c))]
        if not there:
            return
        numbers = [text for text in texts if is_number(text) and not _LABEL.fullmatch(text)]
        written = any(isinstance(cell, str) for cell in there)
        if written and not (numbers and all(is_number(str(cell)) for cell in there)):
            return
        shown = (numbers or [str(there[0])])[0]
        raise TableError(
            f"{self.table.name}, column {heading}: holds numbers, not text",
            hint=f"a number is compared without quotes, as in {heading} == {shown}",
        )


class Condition:
    """Which rows count, by their columns.

    typed: the text. table, names: of the table, and its headings. find: the heading that a name means, or
    None. bound: the variables that are columns under other names, with their headings; vectors: those of
    them that are vectors of several. given: values that it may read besides. order: of dates, as --date-order
    says. option: which says it. Raises LanguageError.
    """

    def __init__(
        self,
        typed: str,
        table: str,
        names: Sequence[str],
        find: Callable[[str], str | None],
        *,
        bound: Mapping[str, Sequence[str]] | None = None,
        vectors: frozenset[str] = frozenset(),
        given: Mapping[str, Any] | None = None,
        order: str | None = None,
        option: str = "--where",
    ) -> None:
        self.typed, self.option, self.order, self.names = typed, option, order, list(names)
        source, quoted = _without_backquotes(typed, names, table, option)
        program = _parsed(source, typed)
        self._refuse_dates(source, program)
        _refuse_assignment(program, typed, option)
        known = {name: [heading] for name, heading in quoted.items()}
        known |= {name: list(found) for name, found in (bound or {}).items()}
        self._given = {}
        for name in free_names(program):
            if name in known or is_only_called(program, name):
                continue
            found = None if _is_constant(name) else find(name)
            if found is not None:
                known[name] = [found]
            elif name in (given or {}):
                self._given[name] = (given or {})[name]
            elif (words := _unknown(name, table)) is not None:
                raise LanguageError(
                    f"{option}: {words}",
                    kind="name",
                    usage=True,
                    hint=did_you_mean(suggest(name, names))
                    or _quotes_hint(name, typed, known)
                    or f"its columns are {listed(names)}",
                )
        self._vectors = vectors
        self._known = known
        root = len(program) - 2
        whole = len(program.children(len(program) - 1)) == 1
        if whole and program.kinds[root] == KIND["expression"]:
            self._part = self._part_of(program, program.children(root)[0], 0)
        else:
            self._part = self._formula(program, None, source)
        self.columns = list(dict.fromkeys(self._part.headings()))
        if not self.columns:
            example = f"{option} 'T > 0'" if option[:1] == "-" else f"{option}='T > 0'"
            raise LanguageError(
                f"{option}: the condition uses no column",
                kind="usage" if option[:1] == "-" else "name",
                usage=True,
                hint=f"as in {example}",
            )

    # -- the text --------------------------------------------------------------------------------
    def _part_of(self, program: Program, row: int, depth: int) -> _Part:
        """The part of the condition that ends at a row of the tree."""
        kind = program.kinds[row]
        children = program.children(row)
        if depth < _DEEPEST:
            if kind in _OPPOSITES and (kind == KIND["not"] or _is_truth(program, children[0])):
                return _Opposite(self._part_of(program, children[0], depth + 1))
            if kind in _JOINED and (
                kind not in _BITS or all(_is_truth(program, child) for child in children)
            ):
                parts = [self._part_of(program, child, depth + 1) for child in children]
                return _Joined(_JOINED[kind], tuple(parts))
        if kind in _COMPARED:
            pairs = _pairs(program, row)
            made = [self._compared(program, *pair) for pair in pairs]
            return made[0] if len(made) == 1 else _Joined("and", tuple(made))
        return self._formula(program, row, program.source[slice(*program.span(row))])

    def _compared(self, program: Program, relation: str, left: int, right: int) -> _Part:
        for side in (left, right):
            if program.kinds[side] in _BITS and not _stands_in_parentheses(program, side):
                start, end = program.span(side)
                sign = "&" if program.kinds[side] == KIND["bitand"] else "|"
                word = "and" if sign == "&" else "or"
                at = program.source.index(sign, start)
                text = re.sub(r"\s*\|\s*", " or ", re.sub(r"\s*&\s*", " and ", self.typed))
                raise LanguageError(
                    f"`{sign}` binds stronger than a comparison",
                    source=program.source,
                    span=(at, at + 1),
                    hint=f"write `{word}`: {text}",
                )
        sides = {left: right, right: left}
        for side, other in sides.items():
            texts = texts_of(program, other, relation in _IN)
            name = program.words[program.operands[side]] if is_name(program, side) else None
            if texts is None or name is None or len(self._known.get(name, ())) != 1:
                continue
            if relation in _IN:
                if side == left:
                    return _Texts(self._known[name][0], _IN[relation], texts)
                continue
            dated = relation in ("eq", "ne") or is_time(texts[0])
            if dated:
                turned = relation if side == left else _SWAPPED[relation]
                return _Texts(self._known[name][0], turned, texts)
        _refuse_texts(program, [left, right])
        if relation in _IN:
            start, end = program.span(left)[0], program.span(right)[1]
            return self._formula(program, None, program.source[start:end])
        written = [program.source[slice(*program.span(side))] for side in (left, right)]
        made = f"({written[0]}) {_SIGNS[relation]} ({written[1]})"
        for side in (left, right):
            self._check_texts(program, side)
        return self._formula(program, None, made)

    def _formula(self, program: Program, row: int | None, text: str) -> _Numbers:
        if row is not None:
            self._check_texts(program, row)
        read = free_names(parse(text))
        columns = {name: self._known[name] for name in read if name in self._known}
        given = {name: self._given[name] for name in read if name in self._given}
        vectors = self._vectors & set(columns)
        return _Numbers(RowFormula(text, dict.fromkeys(columns, 0), given), columns, vectors)

    def _check_texts(self, program: Program, row: int) -> None:
        """Refuse texts in places of numbers in all of a part."""
        if _text(program, row) is not None:
            _refuse_texts(program, [row])
        for one in range(program.subtree(row), row + 1):
            if program.kinds[one] in _NO_PLACE_OF_TEXTS:
                _refuse_texts(program, program.children(one))

    def _refuse_dates(self, source: str, program: Program) -> None:
        """Refuse `t >= 2024-12-31`, which is 1981 to the language."""
        for match in _DATE.finditer(source):
            strings = [
                program.span(row) for row in range(len(program)) if _text(program, row) is not None
            ]
            if not any(start <= match.start() < end for start, end in strings):
                raise LanguageError(
                    f"{match[0]} is a difference of numbers, not a date",
                    source=source,
                    span=match.span(),
                    hint=f"a date stands in quotes: '{match[0]}'",
                )

    # -- rows ------------------------------------------------------------------------------------
    def chosen(self, table: Table, missing: str) -> tuple[Table, int]:
        """The rows of a table that count, and how many are left out since what the condition asks is missing.

        A row that cannot be read stays, as one of the table's `bad`. Raises LanguageError, TableError.
        """
        wanted, left_out, bad = self.truths(table, missing)
        wanted[list(bad)] = True
        if wanted.all() and len(bad) == len(table.bad):
            return table, int(left_out.sum())
        return SelectedTable(table, np.flatnonzero(wanted), bad), int(left_out.sum())

    def truths(self, table: Table, missing: str) -> tuple[Array, Array, dict[int, Exception]]:
        """(in which rows it holds, which are left out for a missing cell, what is wrong with a row)."""
        read = _Reading(table, self.names, missing, self.order, self.option)
        for heading in self._numeric():
            read.cells(heading)
        rows = np.array([row for row in range(table.rows) if row not in table.bad], np.int64)
        if not table.bad:
            rows = np.arange(table.rows)
        wanted, unknown = np.zeros(table.rows, bool), np.zeros(table.rows, bool)
        found = self._part.truths(read, rows)
        wanted[rows], unknown[rows] = found.true, found.unknown
        if missing == "skip":
            return wanted, unknown, read.bad
        for row in np.flatnonzero(unknown).tolist():
            read.bad.setdefault(row, self._missing(read, row))
        return wanted, np.zeros(table.rows, bool), read.bad

    def _numeric(self) -> list[str]:
        waiting: list[_Part] = [self._part]
        found: list[str] = []
        while waiting:
            part = waiting.pop()
            if isinstance(part, _Joined):
                waiting += part.parts
            elif isinstance(part, _Opposite):
                waiting.append(part.part)
            elif isinstance(part, _Numbers):
                found += part.headings()
        return found

    def _missing(self, read: _Reading, row: int) -> TableError:
        """The error about the first cell that the condition lacks in a row."""
        numeric = self._numeric()
        for heading in self.columns:
            column = read.names.index(heading)
            gone = read.cells(heading).gone if heading in numeric else None
            cell = "x" if heading in numeric else read.table.cells(column)[row]
            if (gone is not None and gone[row]) or cell is None or is_missing(str(cell)):
                break
        what = "a number" if heading in numeric else "a date"
        return read.table.wrong(row, column, f"{what} is missing here", MISSING_HINT)

    def texts_hint(self, tables: Sequence[Table]) -> str | None:
        """What the columns of text have that the condition asks about, where they lack its texts."""
        waiting: list[_Part] = [self._part]
        while waiting:
            part = waiting.pop()
            if isinstance(part, _Joined):
                waiting += part.parts
            elif isinstance(part, _Opposite):
                waiting.append(part.part)
            elif isinstance(part, _Texts) and part.relation in ("eq", "ne"):
                cells = [c for t in tables for c in t.cells(t.names.index(part.heading))]
                there = list(dict.fromkeys(c.strip() for c in cells if isinstance(c, str)))
                if there and not set(part.texts) & set(there):
                    return f"{part.heading} is {listed(there)}"
        return None


def _parsed(source: str, typed: str) -> Program:
    try:
        return parse(source)
    except LanguageError as error:
        if (match := _DATE.search(source)) is not None and error.hint and "zero" in error.hint:
            error.hint = f"a date stands in quotes: '{match[0]}'"
        raise


def _refuse_assignment(program: Program, typed: str, option: str) -> None:
    """Refuse `type = 'call'`, which gives a name a value and asks nothing."""
    if program.ends_in_expression or KIND["assign"] not in program.kinds:
        return
    compared = re.sub(r"(?<![=!<>:])=(?!=)", "==", typed)
    raise LanguageError(
        f"{option}: `=` gives a name a value, and a condition compares",
        kind="usage",
        usage=True,
        hint=f"write {compared}",
    )


def _without_backquotes(
    typed: str, names: Sequence[str], table: str, option: str
) -> tuple[str, dict[str, str]]:
    """The text with a name for each heading in backquotes, as long as that, and which it stands for."""
    if "`" not in typed:
        return typed, {}
    found: dict[str, str] = {}

    def name(match: re.Match[str]) -> str:
        heading = match[1]
        if heading not in names:
            raise LanguageError(
                f"{option}: {heading!r} is not a column of {table}",
                kind="name",
                usage=True,
                source=typed,
                span=match.span(1),
                hint=did_you_mean(suggest(heading, names)) or f"its columns are {listed(names)}",
            )
        made = f"_{len(found)}_".ljust(len(match[0]), "_")
        while made in typed:
            made += "_"
        found[made] = heading
        return made

    return re.sub(r"`([^`]+)`", name, typed), found


def _is_constant(name: str) -> bool:
    from gradcli.engine.registry.table import CONSTANTS

    return name in CONSTANTS and name not in ("e", "t", "i", "j")


def _unknown(name: str, table: str) -> str | None:
    """What is wrong with a name that is no column; None of what the language knows."""
    from gradcli.language.names import is_known, is_plain_function

    if is_plain_function(name):
        return f"{name} is a function, and no column of {table}"
    return None if is_known(name) else f"{name} is not a column of {table}"


def _quotes_hint(name: str, text: str, known: Mapping[str, Any]) -> str | None:
    """What is to be typed where a name is compared with a column as if it were a text."""
    found = re.search(rf"(\w+)\s*([!=]=)\s*{re.escape(name)}\b", text)
    if found is None or found[1] not in known:
        return None
    return f"a text stands in quotes, as in {found[1]} {found[2]} '{name}'"


def relation_of(program: Program, row: int) -> str | None:
    """The relation of a comparison of two, "eq", "in" and the like; None of what is none, and of a chain."""
    kind = program.kinds[row]
    return _COMPARED[kind] if kind in _COMPARED and kind not in _CHAINS else None


def texts_of(program: Program, row: int, several: bool) -> tuple[str, ...] | None:
    """The text that a constant is, or those of a list."""
    rows = [row]
    if several and program.kinds[row] in (KIND["tuple"], KIND["list"]):
        rows = program.children(row)
    found = [_text(program, one) for one in rows]
    texts = tuple(text for text in found if text is not None)
    return texts if texts and len(texts) == len(rows) else None


def is_name(program: Program, row: int) -> bool:
    """Whether a part is a name."""
    return program.kinds[row] == KIND["name"]


def _text(program: Program, row: int) -> str | None:
    if program.kinds[row] != KIND["constant"]:
        return None
    found = program.constants[program.operands[row]]
    return found if isinstance(found, str) else None


def _is_truth(program: Program, row: int) -> bool:
    """Whether a part is true or false by its form: a comparison, or several that are joined."""
    waiting = [row]
    while waiting:
        one = waiting.pop()
        kind = program.kinds[one]
        if kind in _COMPARED or kind == KIND["not"]:
            continue
        if kind not in _JOINED and kind not in _OPPOSITES:
            return False
        waiting += program.children(one)
    return True


def _pairs(program: Program, row: int) -> list[tuple[str, int, int]]:
    """The comparisons of a chain, `0 < T <= 2` is (<, 0, T), (<=, T, 2)."""
    found: list[tuple[str, int, int]] = []
    while True:
        left, right = program.children(row)
        relation = _COMPARED[program.kinds[row]]
        if program.kinds[row] not in _CHAINS:
            found.append((relation, left, right))
            return found[::-1]
        found.append((relation, program.children(left)[1], right))
        row = left


def _stands_in_parentheses(program: Program, row: int) -> bool:
    start, end = program.span(row)
    before, behind = program.source[:start].rstrip(), program.source[end:].lstrip()
    return before[-1:] == "(" and behind[:1] == ")"


def _refuse_texts(program: Program, sides: Sequence[int]) -> None:
    """Raise LanguageError where one of these parts is a text."""
    for side in sides:
        text = _text(program, side)
        if text is not None:
            raise LanguageError(
                "a text is compared with a column by == or !=, a date also by <, <=, > and >=",
                source=program.source,
                span=program.span(side),
                hint=f"as in COLUMN == {text!r} or COLUMN == 'other'",
            )


__all__ = ["Condition", "is_name", "relation_of", "texts_of"]
