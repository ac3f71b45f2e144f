"""The rows that `fit` and `plot` take: columns of one table or several, those rows that --where chooses, and
the data set that each row belongs to."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gradcli.commands import output
from gradcli.commands.command_errors import usage
from gradcli.commands.declarations import Argument, Option
from gradcli.commands.item_lists import parts

if TYPE_CHECKING:
    from gradcli.columns.optimize.stated_uncertainties import Stated
    from gradcli.columns.streaming.conditions import Condition
    from gradcli.columns.streaming.row_formulas import RowFormula
    from gradcli.commands.plots.axes import Dates
    from gradcli.commands.request import Request
    from gradcli.tables.columns import Selection
    from gradcli.tables.named_columns import Cells, Table
    from gradcli.tables.reading_options import Reading

    Tables = list[Table]

SET = "set"  # the variable that has the number of a row's data set
COUNTED = {"row": 1, "index": 0}  # those that count the rows of a table, and from where
_SHOWN = 6  # data sets that a note lists
_PERCENT = re.compile(r"\s*([-+.\deE]+)\s*%\s*")

_ROOTS = ("sqrt", "√", "root", "counting", "counts", "poissonian")

WHERE = Option("--where EXPR", "Take only rows where EXPR, of columns, is true.")
BY = Option("--by COLUMN", "Rows with one value of COLUMN are a data set; `set` is its number.")
MORE = Argument("[TABLE]...", name="more", complete="files", many=True)


class DataRows:
    """Columns by their places in the first table, over the rows of all tables.

    where: the condition of --where. bound: what --columns says; renamed: the variables that are one
    column. sets: the names of the data sets, if there are several; by: the column that tells them.
    """

    def __init__(
        self,
        request: Request,
        tables: Sequence[str],
        where: str | None = None,
        by: str | None = None,
        loaded: Mapping[str, Any] | None = None,
        columns: Iterable[str] = (),
    ) -> None:
        from gradcli.tables.record_batches import Stream

        self.request = request
        self.loaded = dict(
            request.loaded if loaded is None else loaded
        )  # what formulas read besides
        # as files are written behind a variable: @data.csv
        self.files = [t[1:] if t[:1] == "@" and not os.path.exists(t) else t for t in tables]
        if len(set(self.files)) < len(self.files):
            twice = next(f for f in self.files if self.files.count(f) > 1)
            raise usage(f"the table {twice} is given twice", hint="leave out one of them")
        self.streams = [Stream(file, sys.stdin, request.tables) for file in self.files]
        self.table = self.files[0]
        self.own = self.streams[0].names  # of the first table
        self.names = [*self.own]
        self.bound = bound_columns(self.table, self.own, columns)
        self.renamed = {
            n: found.columns[0] for n, found in self.bound.items() if not found.is_matrix
        }
        self.sets: list[str] = self.files if len(self.files) > 1 else []
        self.by = None
        if by is not None:
            if self.sets:
                raise usage(
                    "--by cannot be used with several tables", hint="each is a data set already"
                )
            self.by = self.column(by.strip())
            if self.by is None:
                raise usage(
                    f"--by: {by!r} is not a column of {self.table}",
                    hint=f"its columns are {', '.join(self.names)}",
                    kind="name",
                )
        if by is not None or self.sets:
            if SET in self.names:
                raise usage(
                    f"`{SET}` is a column of {self.table}, and the number of a data set",
                    hint=f"rename the column, as in --names …; or --by {SET} alone",
                )
            self.names = [*self.names, SET]
        self._read: Tables | None = None
        self.where = None if where is None else self._condition(where)
        if where is not None:
            self.note_functions([where])

    @property
    def is_one_table(self) -> bool:
        """Whether rows are those of one table as it is."""
        return not self.sets and len(self.names) == len(self.own)

    def note_functions(self, texts: Iterable[str]) -> None:
        """Say that a function of all rows is called with the number of one."""
        from gradcli.commands.heading_words import columns_by_word, note_functions

        own = columns_by_word(self.own)
        note_functions(texts, self.table, own, [n for n in self.request.names if n not in own])

    # -- names -----------------------------------------------------------------------------------
    def column(self, name: str) -> int | None:
        """The column that a name is; None where it is none."""
        from gradcli.tables import TableError
        from gradcli.tables.columns import column

        if name in self.renamed:
            return self.renamed[name]
        if name in self.names[len(self.own) :]:
            return self.names.index(name, len(self.own))
        try:
            return column(self.table, self.own, name, output.note)
        except TableError as error:
            if error.wrong is None:  # not for want of such a column
                raise
        if name not in COUNTED or name in self.request.names:
            return None
        output.note(f"{name} counts the rows of {self.table} from {COUNTED[name]}")
        self.names.append(name)
        return len(self.names) - 1

    def formula(self, text: str, option: str, named: Mapping[str, int] | None = None) -> RowFormula:
        """An expression of columns. named: the places of variables besides. Raises LanguageError."""
        from gradcli.columns.streaming.row_formulas import RowFormula
        from gradcli.language import parse
        from gradcli.language.located_errors import did_you_mean, suggest
        from gradcli.language.scope_checks import free_names

        program = parse(text)
        known = set(free_names(program)) - set(program.free_variables())
        named = named or {}
        places = {}
        for name in free_names(program):
            if (place := named.get(name, self.column(name))) is not None:
                places[name] = place
            elif name not in known and name not in self.loaded:
                before = f"{option}: " if option else ""
                raise usage(
                    f"{before}{name} is not a column of {self.table}",
                    hint=did_you_mean(suggest(name, self.names))
                    or f"its columns are {', '.join(self.names)}",
                    kind="name",
                )
        return RowFormula(text, places, self.loaded)

    def _condition(self, text: str) -> Condition:
        """Which rows count. Raises LanguageError."""
        from gradcli.columns.streaming.conditions import Condition

        def heading(name: str) -> str | None:
            place = self.column(name)
            return None if place is None else self.names[place]

        order = self.request.tables.how.date_order
        return Condition(text, self.table, self.names, heading, given=self.loaded, order=order)

    def stated(
        self,
        text: str,
        option: str = "--sigma",
        of: str | None = None,
        named: Mapping[str, int] | None = None,
        counted: str = "draw the counts themselves, as in gradcli plot COLUMN FILE --sigma poisson",
    ) -> Stated:
        """An uncertainty: a number, a column, `3%`, `poisson`, or a formula of columns.

        of: the column that it belongs to, None where it belongs to something computed. named: the places
        of variables that are no headings. counted: what to do where `poisson` is of something computed.
        """
        from gradcli.columns.optimize.stated_uncertainties import Stated

        named = named or {}
        text = text.strip()
        if (place := named.get(text, self.column(text))) is not None:
            return Stated(column=place, name=of)
        if text.lower() == "poisson" and option == "--sigma":
            if of is None:
                raise usage(
                    "--sigma poisson is the square root of counts, and what is measured is no column alone",
                    hint=counted,
                )
            return Stated(counts=True, name=of)
        from gradcli.commands.uncertainty import share_and_more

        if (both := share_and_more(text)) is not None:
            if of is None:
                raise usage(
                    f"{option}: {text}: a percentage of which value?",
                    hint=f"write it with a column, as in {option} '{both[0]:g}*COLUMN {both[1]}'",
                )
            text = f"{both[0]!r}*abs({of}) {both[1]}"
        try:
            if match := _PERCENT.fullmatch(text):
                return Stated(share=float(match[1]) / 100, name=of)
            return Stated(number=float(text), name=of)
        except ValueError:
            pass
        from gradcli.language.parser import parses
        from gradcli.language.translations import hint as translated

        own = dict.fromkeys([*self.names, *named], False)
        if self.request.math:
            text = _mathematics(text, own)
        if text.isidentifier() or not parses(text):
            column = of or next((n for n in self.names if n.isidentifier()), "y")
            hint = (
                f"its columns are {', '.join(self.names)}; a formula of them is one too, as in "
                f"{option} '0.03*{column}'"
            )
            if option == "--sigma" and text.lower() in _ROOTS:
                hint = f"write --sigma 'sqrt({column})', or for counts --sigma poisson"
            raise usage(
                f"{option}: {text!r} is neither a column of {self.table} nor a number",
                hint=translated(text, parses, own) or hint,
                kind="name",
            )
        return Stated(formula=self.formula(text, option, named), name=of)

    # -- numbers ---------------------------------------------------------------------------------
    def read(self, wanted: Iterable[int], tells: bool = True) -> dict[int, Cells]:
        """The columns of all rows that count, by their places. tells: whether it says which do not."""
        from gradcli.tables.named_columns import chosen

        needed = list(dict.fromkeys(wanted))
        tables = self.tables()
        places = [[self._place(one, i) for i in needed] for one in tables]
        tell = output.note if tells else None
        return dict(
            zip(needed, chosen(tables, places, self.request.missing, tell=tell), strict=True)
        )

    def _place(self, table: Table, column: int) -> int:
        """Where a column is in one of the tables."""
        name = self.names[column]
        if name in table.names:
            return table.names.index(name)
        own = [n for n in table.names if n != SET]
        raise usage(
            f"{table.name} has no column {name!r}, which {self.table} has",
            hint=f"its columns are {', '.join(own)}; a name with another unit is another column",
            kind="name",
        )

    def tables(self) -> Tables:
        """All tables, with the numbers of the data sets where there are some."""
        from gradcli.tables.named_columns import KeyedTable

        if self._read is None:
            self._read = []
            for number, stream in enumerate(self.streams):
                for one in stream:
                    for error in one.bad.values():
                        raise error
                    self._read.append(
                        KeyedTable(one, {SET: number}) if len(self.files) > 1 else one
                    )
            if self.by is not None:
                self._read = self._numbered(self._read, self.by)
            for name in self.names[len(self.own) :]:
                if name in COUNTED:
                    self._read = _counted(self._read, name)
            if self.where is not None:
                self._read = self._selected(self._read, self.where)
            if self.sets:
                self._tell_sets()
        return self._read

    def _selected(self, tables: Tables, where: Condition) -> Tables:
        """The rows of tables that count. Raises LanguageError where none is left, TableError."""
        from gradcli.tables.table_errors import left_out_words

        found: Tables = []
        left_out = 0
        for one in tables:
            selected, missing = where.chosen(one, self.request.missing)
            for error in selected.bad.values():
                raise error
            left_out += missing
            found.append(selected)
        count, left = sum(one.rows for one in tables), sum(one.rows for one in found)
        if not left:
            raise usage(
                f"--where {where.typed}: no row of {count} is left", hint=where.texts_hint(tables)
            )
        output.note(f"--where takes {left} of {count} rows")
        if left_out:
            output.note(left_out_words(left_out))
        return found

    @property
    def read_tables(self) -> Tables:
        """The tables, if they were read."""
        return self._read or []

    def _numbered(self, tables: Tables, by: int) -> Tables:
        """The tables with the number of each row's data set: by the numbers of a column in their order, by
        its texts in that of their rows."""
        from gradcli.columns.optimize.data_sets import numbered
        from gradcli.tables.named_columns import NumberedTable

        keys = [one.cells(one.names.index(self.own[by])) for one in tables]
        numbers, self.sets = numbered([k for part in keys for k in part], self.own[by], "--by")
        made: Tables = []
        start = 0
        for one, part in zip(tables, keys, strict=True):
            made.append(NumberedTable(one, SET, numbers[start : start + len(part)]))
            start += len(part)
        return made

    def _tell_sets(self) -> None:
        """Say which data set has which number."""
        said = [f"{k} is {name}" for k, name in enumerate(self.sets)]
        more = f", … ({len(said)} in all)" if len(said) > _SHOWN else ""
        output.note(f"{SET} {', '.join(said[:_SHOWN])}{more}")

    # -- axes ------------------------------------------------------------------------------------
    def heading(self, name: str, columns: Mapping[str, Sequence[int]]) -> str:
        """What an axis says of a variable: the heading of its column, with its unit."""
        if name not in columns or len(columns[name]) > 1:
            return name
        heading = self.heading_of(columns[name][0])
        return name if heading.isdigit() else heading  # a column without a name

    def heading_of(self, place: int) -> str:
        """The heading of a column, with its unit."""
        heading = self.names[place]
        units = self.request.tables.found.get(self.table, {}).get("units") or {}
        unit = units.get(heading)
        return f"{heading} [{unit}]" if unit and unit not in heading else heading

    def dates(
        self, name: str, columns: Mapping[str, Sequence[int]], numbers: Any = ()
    ) -> Dates | None:
        """How the numbers of a variable are times; None where they are none. numbers: that are drawn."""
        if name not in columns:
            return None
        heading = self.names[columns[name][0]]
        return dates_of(self.request.tables, heading) or self._epoch(heading, numbers)

    def _epoch(self, heading: str, numbers: Any) -> Dates | None:
        """How numbers count from 1970, if the column's name and all of its numbers say that they do."""
        from gradcli.commands.plots.axes import Dates
        from gradcli.tables.times import UNITS, epoch_unit, nanoseconds

        unit = epoch_unit(heading, numbers)
        if unit is None or self.request.tables.how.time_origin == "none":
            return None
        words = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
        output.note(
            f"{heading}: {words[unit]} since 1970, which the axis shows as dates in UTC; "
            "--time-origin none shows the numbers"
        )
        return Dates(nanoseconds("1970-01-01", "ymd"), UNITS[unit])

    def numbers(self, cells: Mapping[int, Cells]) -> dict[int, Any]:
        """The numbers of columns, real ones as float64."""
        import numpy as np

        return {
            i: c.numbers if c.numbers.dtype.kind == "c" else c.numbers.astype(np.float64)
            for i, c in cells.items()
        }


def _counted(tables: Tables, name: str) -> Tables:
    """The tables with the number of each row in its file."""
    import numpy as np

    from gradcli.tables.named_columns import NumberedTable

    made: Tables = []
    begin = dict.fromkeys((one.name for one in tables), COUNTED[name])
    for one in tables:
        numbers = np.arange(begin[one.name], begin[one.name] + one.rows)
        begin[one.name] += one.rows
        made.append(NumberedTable(one, name, numbers))
    return made


def dates_of(reading: Reading, heading: str) -> Dates | None:
    """How the numbers of a column are times; None where they are none."""
    clock = reading.clocks.get(heading)
    if clock is None or heading not in reading.origins:
        return None
    from gradcli.commands.plots.axes import Dates
    from gradcli.tables.times import UNITS

    return Dates(reading.origins[heading][0], UNITS[clock.unit], clock.is_date)


def _mathematics(text: str, names: Mapping[str, bool]) -> str:
    """A formula under --math in the language; one that cannot be read is as it was, and refused later."""
    from gradcli.language.located_errors import LanguageError
    from gradcli.language.mathematics import read_mathematics
    from gradcli.language.parser import parses

    try:
        found = read_mathematics(text, parses, names)
    except LanguageError:
        return text
    return text if found is None else found.written


def bound_columns(table: str, names: Sequence[str], items: Iterable[str]) -> dict[str, Selection]:
    """`x=x1,x2`: the columns of a table that a variable is, a vector if they are several; `x=x1,y=y1` are
    two of these."""
    from gradcli.tables.columns import select

    found: dict[str, Selection] = {}
    for item in (one for several in items for one in _single(several, names)):
        name, equals, wanted = item.partition("=")
        name = name.strip()
        if not equals or not name.isidentifier() or not wanted.strip():
            raise usage(
                f"--columns wants NAME=COLUMNS, not {item!r}", hint="as in --columns 'x=x1,x2'"
            )
        if name in found:
            raise usage(f"--columns: {name} is bound twice")
        found[name] = select(table, names, wanted, output.note, len(names))
    return found


def _single(item: str, names: Sequence[str]) -> list[str]:
    """The items of `x=x1,y=y1`; a heading may have an equals sign in it."""
    if any("=" in name for name in names):
        return [item]
    return parts(item)


def several(table: str, more: Sequence[str]) -> list[str]:
    """The tables of a command line."""
    found = [table, *more]
    if found.count("-") > 1:
        raise usage("only one table can be read from standard input")
    return found


__all__ = ["BY", "MORE", "SET", "WHERE", "DataRows", "bound_columns", "several"]
