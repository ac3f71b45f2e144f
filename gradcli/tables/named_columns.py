"""A table: named columns of equal length, some of which are numbers.

A whole file is one table; a stream is one table after another, of the same columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import gradcli.engine.system.spread as spread
from gradcli.tables.cell_kinds import as_python
from gradcli.tables.delimited import Dialect, is_missing, is_number, place
from gradcli.tables.table_errors import MISSING_HINT, TableError, left_out_words

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

POLICIES = ("error", "nan", "skip")


class Cells(NamedTuple):
    """A column as numbers.

    gone: where there is none (None: everywhere is one). problems: what is wrong, by row. spread: the standard
    uncertainties that the cells have (None: none has one).
    """

    numbers: Array
    gone: Array | None = None
    problems: Mapping[int, TableError] = {}
    spread: Array | None = None

    def taken(self, places: Any) -> Cells:
        """Those of some rows, none of which lacks a number."""
        return Cells(
            self.numbers[places], spread=None if self.spread is None else self.spread[places]
        )


class Table:
    """Columns by name; `names` is empty where the file has no header. One subclass a way to keep cells."""

    __slots__ = ("bad", "name", "names", "rows", "start", "width")

    @property
    def index(self) -> list[str]:
        """Columns that number the rows, which pandas writes beside those of a frame."""
        return []

    def __init__(
        self, name: str, names: Sequence[str], rows: int, width: int, start: int = 0
    ) -> None:
        self.name, self.names, self.rows, self.width = name, list(names), rows, width
        self.start = start  # rows before these, in the file
        self.bad: dict[int, TableError] = {}  # rows that could not even be cut into cells

    def readable(self, column: int) -> Cells:
        """The cells of a column as numbers. Raises TableError for a column that holds something else."""
        raise NotImplementedError

    def numbers(self, column: int) -> Cells:
        """The same of a column without a cell that is not a number, for which TableError is raised."""
        found = self.readable(column)
        if found.problems:
            row = min(found.problems)
            problem = found.problems[row]
            if not row and problem.hint is None:
                problem.hint = self._compared(column)
            raise problem
        return found

    def _compared(self, column: int) -> str | None:
        """What can be done with a column that begins with a text, of a file of rows."""
        name = self.names[column] if self.names else ""
        cell = str(self.cells(column)[0])
        if name.isidentifier() and re.fullmatch(r"[\w.-]+", cell + self.name):
            return f"text is compared row by row: gradcli map \"where({name} == '{cell}', 1, 0)\" {self.name}"
        others = [other for other in self.names if other != name and other.isidentifier()]
        return (
            f"{self.name}:{','.join(others[:2])} reads columns by their names" if others else None
        )

    def cells(self, column: int) -> list[Any]:
        """The column as it is written."""
        raise NotImplementedError

    def data(self, column: int) -> Any:
        """The column as an array if it holds numbers and none is missing, else as a list of its cells."""
        return self.cells(column)

    def arrow(self, column: int) -> Any:
        """The column as Arrow has it, of whatever type; None where Arrow does not have it."""
        return None

    def passed(self, column: int) -> Any:
        """The column as it is to be written in lines of text: its data, or cells of lines as they stand."""
        return self.data(column)

    def is_written(self, column: int) -> bool:
        """Whether the column is text for want of types, as in CSV: a number is in it as it is written."""
        return False

    def like(self, column: int, pattern: re.Pattern[str]) -> int | None:
        """The first row whose cell, which is text, is as a pattern says."""
        cells = enumerate(self.cells(column))
        return next((row for row, cell in cells if pattern.fullmatch(cell)), None)

    def where(self, row: int, column: int) -> dict[str, Any]:
        """What shows a cell: the start of the message (`at`), `line` and `span` where there is a line."""
        return {"at": f"{self.name}, row {self.start + row + 1}{self._of(column)}"}

    def _of(self, column: int) -> str:
        return (
            f", column {self.names[column] or column + 1}" if 0 <= column < len(self.names) else ""
        )

    def wrong(self, row: int, column: int, problem: str, hint: str | None = None) -> TableError:
        """The error about a cell."""
        found = self.where(row, column)
        return TableError(
            f"{found.pop('at')}: {problem}",
            line=found.get("line"),
            span=found.get("span"),
            hint=hint,
        )


class CellTable(Table):
    """Cells as they were read: text, or the values of JSON. clocks: by column, how times are numbers."""

    __slots__ = ("clocks", "columns", "dialect", "lines", "numbered", "source")

    def __init__(
        self,
        name: str,
        names: Sequence[str],
        columns: list[Sequence[Any]],
        *,
        numbered: Sequence[int] = (),
        source: Sequence[str] = (),
        first: int = 1,
        dialect: Dialect | None = None,
    ) -> None:
        super().__init__(name, names, len(columns[0]) if columns else 0, len(columns))
        self.columns, self.numbered = columns, numbered
        self.source, self.lines, self.dialect = source, first, dialect
        self.clocks: Mapping[int, Any] = {} if dialect is None else dialect.clocks

    def cells(self, column: int) -> list[Any]:
        """The column as it is written; numbers with decimal commas and the like as all others are."""
        return list(self._plain(column))

    def _plain(self, column: int) -> Sequence[Any]:
        """The column with its numbers as Python writes them."""
        found, cells = self.dialect, self.columns[column]
        if found is None or (found.decimal == "." and not found.thousands):
            return cells
        return [as_python(cell, found.decimal, found.thousands) for cell in cells]

    def is_written(self, column: int) -> bool:
        """So it is, where separators cut it."""
        return self.dialect is not None

    def readable(self, column: int) -> Cells:
        """The cells of a column as numbers."""
        import numpy as np

        cells = self._plain(column)
        try:
            found = np.array(list(map(float, cells)))
        except (ValueError, TypeError, OverflowError):
            return self._slowly(column)
        if _is_python(cells) or not (self.dialect is None or self.dialect.is_python):
            return self._slowly(column)
        if np.isnan(found).any():
            gone = np.fromiter((_is_gone(cell) for cell in cells), bool, len(cells))
            return Cells(found, gone if gone.any() else None)
        return Cells(found)

    def _slowly(self, column: int) -> Cells:
        """Cell by cell: complex numbers, uncertainties, times, empty cells, and what is no number."""
        import numpy as np

        cells, written = self._plain(column), self.columns[column]
        read = _Cell(self.dialect, self.clocks.get(column))
        gone = np.zeros(len(cells), bool)
        problems: dict[int, TableError] = {}
        found: list[Any] = []
        errors: list[float | None] = []
        exact = []  # the numbers without an uncertainty
        for row, cell in enumerate(cells):
            number: complex = float("nan")
            error = None
            if read.is_gone(cell):
                gone[row] = True
            else:
                try:
                    number, error = read.number(cell, written[row])
                    exact += [] if error is not None else [row]
                except (ValueError, TypeError):
                    shown = f"`{written[row]}`" if isinstance(cell, str) else _kind(cell)
                    words = f"{shown} is not a number"
                    problems[row] = self.wrong(row, column, words, _advice(cell, self.name))
                except OverflowError:
                    words = "this integer is too large for a float"
                    problems[row] = self.wrong(row, column, words)
                except TableError as wrong:
                    wrong.message = f"{self.name}, {wrong.message}"
                    raise
            found.append(number)
            errors.append(error)
        spreads = None
        if any(error is not None for error in errors):
            spreads = np.array([error or 0.0 for error in errors])
            for row in exact:
                words = f"`{cells[row]}` has no uncertainty, and others of its column have"
                problems[row] = self.wrong(row, column, words, EXACT)
        return Cells(np.array(found), gone if gone.any() else None, problems, spreads)

    def where(self, row: int, column: int) -> dict[str, Any]:
        """The line of the file, and the field in it."""
        if not self.numbered:
            return super().where(row, column)
        number = self.numbered[row]
        index = number - self.lines
        if not 0 <= index < len(self.source):
            return {"at": f"{self.name}, line {number}{self._of(column)}"}
        line = self.source[index]
        if self.dialect is None or column < 0:
            return {
                "at": f"{self.name}, line {number}{self._of(column)}",
                "line": line,
                "span": None,
            }
        span = place(line, self.dialect, column, str(self.columns[column][row]))
        return {"at": f"{self.name}, line {number}{self._of(column)}", "line": line, "span": span}


EXACT = "±0 for what is exact"


def _is_python(cells: Sequence[Any]) -> bool:
    """Whether there may be a number as Python alone reads it: `1_000`, or in the digits of other scripts."""
    try:
        texts = "".join(cells)
    except TypeError:  # cells of JSON
        texts = "".join([cell for cell in cells if type(cell) is str])
    return "_" in texts or not texts.isascii()


def _is_gone(cell: Any) -> bool:
    return cell is None or cell != cell or (isinstance(cell, str) and is_missing(cell))


class _Cell:
    """What the cells of a column mean, by the dialect of its text."""

    def __init__(self, dialect: Dialect | None, clock: Any) -> None:
        self.clock = clock
        self.decimal = "." if dialect is None else dialect.decimal
        self.thousands = "" if dialect is None else dialect.thousands
        self.markers = frozenset[str]() if dialect is None else dialect.markers
        self.marked = [float(m) for m in self.markers if is_number(m)]

    def is_gone(self, cell: Any) -> bool:
        """Whether there is no number."""
        if _is_gone(cell):
            return True
        if not self.markers or not isinstance(cell, str):
            return False
        if cell in self.markers:
            return True
        try:
            return float(cell) in self.marked
        except ValueError:
            return False

    def number(self, cell: Any, written: Any) -> tuple[complex, float | None]:
        """The number of a cell, and its uncertainty if it has one. Raises ValueError, TypeError."""
        if not isinstance(cell, str):
            if isinstance(cell, (list, dict)):
                raise TypeError(cell)
            return float(cell), None
        if (pair := spread.split(cell)) is not None:
            number, error = map(float, pair)
            if error < 0:
                raise ValueError(cell)
            return number, error
        if self.decimal == "," and "." in written and self.thousands != ".":
            if self.clock is not None:
                return self.clock.number(cell), None
            raise ValueError(cell)  # a point may stand between thousands
        if "_" in cell or not cell.isascii():
            cell = as_python(cell)
            if "_" in cell or not cell.isascii():
                raise ValueError(cell)
        if cell[-1:] in "jJ":
            return complex(cell.replace(" ", "")), None
        try:
            return float(cell), None
        except ValueError:
            if self.clock is not None:
                return self.clock.number(cell), None
            return float(as_python(cell)), None


def _kind(cell: Any) -> str:
    if isinstance(cell, list):
        return "a list"
    return "an object" if isinstance(cell, dict) else repr(cell)


def _advice(cell: Any, file: str) -> str | None:
    """How a cell that is no number is read. file: in which it is."""
    if isinstance(cell, str) and re.fullmatch(r"[-+]?\d+,\d+", cell):
        return "--decimal , reads a comma as the decimal sign, --thousands , as a mark between thousands"
    if isinstance(cell, str) and re.fullmatch(r"[-+]?\d{1,3}(?:[.' ]\d{3})+,\d*", cell):
        mark = next(letter for letter in cell if letter in ".' ")
        return f'--decimal , --thousands "{mark}" reads it'
    if isinstance(cell, str) and re.fullmatch(r"[-+]?\d{1,3}(?:[,' ]\d{3})+(?:\.\d*)?", cell):
        mark = next(letter for letter in cell if letter in ",' ")
        return f'--thousands "{mark}" reads it'
    if isinstance(cell, str) and re.fullmatch(
        r"\(?[-+.\deE]+(?:dB)?,[-+.\deE]+(?:\s*\xb0)?\)?", cell
    ):
        return "export real and imaginary part, or amplitude and phase, as columns of their own"
    if isinstance(cell, str) and spread.is_asymmetric(cell):
        return spread.ASYMMETRIC
    if isinstance(cell, str) and spread.unit_hint(cell):
        return "no units in cells: the column's name may have one, as in `L [m]`"
    if isinstance(cell, str) and _NO_VALUE.fullmatch(cell):
        return f"--missing-markers '{cell}' says that there is no number, --missing nan or skip what then"
    for pattern, script, words in _WRITTEN:
        if isinstance(cell, str) and pattern.fullmatch(cell):
            return f"sed '{script}' {file} | gradcli …, with - in place of the file, {words}"
    return None


_NO_VALUE = re.compile(
    r"ol|ovld|ovrflw|overload|overflow|over|err(?:or)?|[-*?]+|none|bad|invalid|[<>]=? ?[\d.,]+"
    r"|#(?:div/0|value|ref|num|null)!|#name\?|#(?:getting_data|spill!|calc!)",
    re.I,
)
# Cells that are numbers to their reader, and what `sed` does that they are to everybody.
_WRITTEN = (
    (re.compile(r"[-+]?[\d.,]+ ?%"), "s/%//g", "reads 12 for 12%"),
    (
        re.compile(r"[-+]?[$\u20ac\xa3\xa5] ?[\d.,]+|[\d.,]+ ?[$\u20ac\xa3\xa5]"),
        "s/[$\u20ac\xa3\xa5]//g",
        "takes the currency out",
    ),
    (re.compile(r"\([\d.]+\)"), r"s/(\([0-9.]*\))/-\1/g", "reads (12) as -12"),
    (re.compile(r"[\d.]+-"), r"s/\([0-9.]*\)-\([,;]\|$\)/-\1\2/g", "reads 12- as -12"),
    (re.compile(r"[-+]?[\d.]+\*+"), r"s/\*//g", "takes the asterisks out"),
    (re.compile(r"true|false", re.I), "s/true/1/gI; s/false/0/gI", "reads 1 and 0"),
)


class ArrayTable(Table):
    """Columns that are arrays already."""

    __slots__ = ("arrays",)

    def __init__(
        self, name: str, names: Sequence[str], arrays: list[Array], start: int = 0
    ) -> None:
        super().__init__(name, names, len(arrays[0]) if arrays else 0, len(arrays), start)
        self.arrays = arrays

    def cells(self, column: int) -> list[Any]:
        """The column's values."""
        found: list[Any] = self.arrays[column].tolist()
        return found

    def data(self, column: int) -> Any:
        """The column as an array if it holds numbers, else as a list of its cells."""
        array = self.arrays[column]
        return array if array.dtype.kind in "biufc" else self.cells(column)

    def readable(self, column: int) -> Cells:
        """The column, if it holds numbers."""
        array = self.arrays[column]
        if array.dtype.kind not in "biufc":
            raise TableError(f"{self.name}{self._of(column)}: holds {array.dtype}, not numbers")
        return Cells(array)


class PartlyRead(ArrayTable):
    """Columns of numbers that were read at once; of the others `slowly` makes the whole table.

    arrays: by column, None for what is no column of numbers.
    """

    __slots__ = ("_slow", "slowly")

    def __init__(
        self, name: str, names: Sequence[str], arrays: list[Any], slowly: Callable[[], Table]
    ) -> None:
        rows = next(len(array) for array in arrays if array is not None)
        Table.__init__(self, name, names, rows, len(arrays))
        self.arrays, self.slowly = arrays, slowly
        self._slow: Table | None = None

    def of(self, column: int) -> Table | None:
        """The table that has a column which was not read; None for one that was."""
        if self.arrays[column] is not None:
            return None
        if self._slow is None:
            self._slow = self.slowly()
        return self._slow

    def cells(self, column: int) -> list[Any]:
        """The column's values."""
        slow = self.of(column)
        return super().cells(column) if slow is None else slow.cells(column)

    def data(self, column: int) -> Any:
        """The column as an array, or as a list of its cells."""
        slow = self.of(column)
        return super().data(column) if slow is None else slow.data(column)

    def readable(self, column: int) -> Cells:
        """The column as numbers."""
        slow = self.of(column)
        return super().readable(column) if slow is None else slow.readable(column)

    def is_written(self, column: int) -> bool:
        """Whether the column is text for want of types."""
        slow = self.of(column)
        return super().is_written(column) if slow is None else slow.is_written(column)

    def like(self, column: int, pattern: re.Pattern[str]) -> int | None:
        """The first row whose cell, which is text, is as a pattern says."""
        slow = self.of(column)
        return super().like(column, pattern) if slow is None else slow.like(column, pattern)


class KeyedTable(Table):
    """A table, and behind its columns those that the names of its folders tell: the same in all rows."""

    __slots__ = ("keys", "table")

    def __init__(self, table: Table, keys: dict[str, int | float | str | None]) -> None:
        self.table = table
        self.keys = {name: value for name, value in keys.items() if name not in table.names}
        names = [*table.names, *self.keys]
        super().__init__(table.name, names, table.rows, table.width + len(self.keys), table.start)
        self.bad = table.bad

    def _key(self, column: int) -> Any:
        """The value of a column that is none of the file's."""
        return list(self.keys.values())[column - self.table.width]

    def readable(self, column: int) -> Cells:
        """The cells of a column as numbers."""
        import numpy as np

        if column < self.table.width:
            return self.table.readable(column)
        value = self._key(column)
        if value is None:
            return Cells(np.full(self.rows, np.nan), np.ones(self.rows, bool))
        if isinstance(value, str):
            raise TableError(f"{self.name}{self._of(column)}: holds text ({value!r}), not numbers")
        return Cells(np.full(self.rows, value))

    def cells(self, column: int) -> list[Any]:
        """The column as it is written."""
        if column < self.table.width:
            return self.table.cells(column)
        return [self._key(column)] * self.rows

    def data(self, column: int) -> Any:
        """The column as an array if it holds numbers and none is missing, else as a list of its cells."""
        if column < self.table.width:
            return self.table.data(column)
        value = self._key(column)
        return (
            self.cells(column)
            if value is None or type(value) is str
            else self.numbers(column).numbers
        )

    def arrow(self, column: int) -> Any:
        """The column as Arrow has it, of whatever type; None where Arrow does not have it."""
        return self.table.arrow(column) if column < self.table.width else None

    def is_written(self, column: int) -> bool:
        """Whether the column is text for want of types."""
        return column < self.table.width and self.table.is_written(column)

    def like(self, column: int, pattern: re.Pattern[str]) -> int | None:
        """The first row whose cell, which is text, is as a pattern says."""
        return self.table.like(column, pattern)

    def where(self, row: int, column: int) -> dict[str, Any]:
        """What shows a cell."""
        if column < self.table.width:
            return self.table.where(row, column)
        return super().where(row, column)


class NumberedTable(KeyedTable):
    """A table with one column more, which has the number of the data set that each row belongs to."""

    __slots__ = ("numbers_of_rows",)

    def __init__(self, table: Table, name: str, numbers: Array) -> None:
        super().__init__(table, {name: 0})
        self.numbers_of_rows = numbers

    def readable(self, column: int) -> Cells:
        """The cells of a column as numbers."""
        if column < self.table.width:
            return self.table.readable(column)
        return Cells(self.numbers_of_rows)

    def cells(self, column: int) -> list[Any]:
        """The column as it is written."""
        if column < self.table.width:
            return self.table.cells(column)
        found: list[Any] = self.numbers_of_rows.tolist()
        return found


class SelectedTable(Table):
    """Some rows of a table. places: which. bad: of the table, what is wrong with a row."""

    __slots__ = ("places", "table")

    def __init__(self, table: Table, places: Array, bad: Mapping[int, Any]) -> None:
        super().__init__(table.name, table.names, len(places), table.width, table.start)
        self.table, self.places = table, places
        self.bad = self._renumbered(bad)

    def _renumbered(self, of_rows: Mapping[int, Any]) -> dict[int, Any]:
        if not of_rows:
            return {}
        number = {row: k for k, row in enumerate(self.places.tolist())}
        return {number[row]: found for row, found in of_rows.items() if row in number}

    @property
    def index(self) -> list[str]:
        """Columns that number the rows, which pandas writes beside those of a frame."""
        return self.table.index

    def readable(self, column: int) -> Cells:
        """The cells of a column as numbers."""
        found = self.table.readable(column)
        gone = None if found.gone is None else found.gone[self.places]
        return Cells(
            found.numbers[self.places],
            gone if gone is not None and gone.any() else None,
            self._renumbered(found.problems),
            None if found.spread is None else found.spread[self.places],
        )

    def cells(self, column: int) -> list[Any]:
        """The column as it is written."""
        cells = self.table.cells(column)
        return [cells[row] for row in self.places.tolist()]

    def data(self, column: int) -> Any:
        """The column as an array if it holds numbers and none is missing, else as a list of its cells."""
        found = self.table.data(column)
        if isinstance(found, list):
            return [found[row] for row in self.places.tolist()]
        return found.take(self.places)

    def passed(self, column: int) -> Any:
        """The column as it is to be written in lines of text."""
        found = self.table.passed(column)
        if isinstance(found, list):
            return [found[row] for row in self.places.tolist()]
        return found.take(self.places)

    def arrow(self, column: int) -> Any:
        """The column as Arrow has it, of whatever type; None where Arrow does not have it."""
        found = self.table.arrow(column)
        return None if found is None else found.take(self.places)

    def is_written(self, column: int) -> bool:
        """Whether the column is text for want of types."""
        return self.table.is_written(column)

    def where(self, row: int, column: int) -> dict[str, Any]:
        """What shows a cell."""
        return self.table.where(int(self.places[row]) if row >= 0 else row, column)


# -- what is chosen of it -------------------------------------------------------------------------
def chosen(
    tables: Sequence[Table],
    wanted: Sequence[Sequence[int]],
    missing: str,
    also: Sequence[Sequence[int]] = (),
    tell: Callable[[str], object] | None = None,
) -> list[Cells]:
    """Columns of tables that follow each other, each without a number that is missing.

    wanted: the columns of each table. missing: what a cell without a value does: `error` refuses it, `nan`
    stands for it, `skip` leaves its row out, and rows that lack a value in the columns `also`. tell: takes
    the remark that rows are left out.
    """
    import numpy as np

    if missing not in POLICIES:
        raise TableError(f"missing is one of {', '.join(POLICIES)}, not {missing!r}")
    parts: list[list[Cells]] = []
    left_out = 0
    for number, (table, columns) in enumerate(zip(tables, wanted, strict=True)):
        read = {
            c: table.numbers(c) for c in dict.fromkeys([*columns, *(also[number] if also else ())])
        }
        lost = None
        for column, cells in read.items():
            if cells.gone is None:
                continue
            if missing == "error":
                row = int(np.argmax(cells.gone))
                raise table.wrong(row, column, "a number is missing here", MISSING_HINT)
            if missing == "nan":
                read[column] = cells._replace(numbers=with_nan(cells))
            lost = cells.gone if lost is None else lost | cells.gone
        keep = slice(None) if lost is None or missing == "nan" else ~lost
        left_out += 0 if lost is None or missing == "nan" else int(lost.sum())
        parts.append([read[c].taken(keep) for c in columns])
    if left_out and tell is not None:
        tell(left_out_words(left_out))
    return [_joined(tables, pieces) for pieces in zip(*parts, strict=True)]


def with_nan(cells: Cells) -> Array:
    """The numbers, and nan where there is none."""
    import numpy as np

    array = cells.numbers
    array = array.astype(array.dtype if array.dtype.kind in "fc" else np.float64)
    array[cells.gone] = np.nan
    return array


def _joined(tables: Sequence[Table], pieces: Sequence[Cells]) -> Cells:
    """A column of all tables, one below the other."""
    import numpy as np

    if len(pieces) == 1:
        return pieces[0]
    spreads = [cells.spread for cells in pieces if cells.spread is not None]
    if spreads and len(spreads) < len(pieces):
        plain = next(t for t, cells in zip(tables, pieces, strict=True) if cells.spread is None)
        raise TableError(
            f"{plain.name}: its numbers have no uncertainty, and those of other files have",
            hint=EXACT,
        )
    return Cells(
        np.concatenate([cells.numbers for cells in pieces]),
        spread=np.concatenate(spreads) if spreads else None,
    )


def without_spread(cells: Cells, name: str) -> Array:
    """The numbers. Raises TableError where they have uncertainties, which would be lost."""
    if cells.spread is not None:
        raise TableError(
            f"{name}: its numbers have uncertainties",
            hint="gradcli grad, eval, map and fit take them into account",
        )
    return cells.numbers


def side_by_side(columns: Sequence[Cells]) -> Cells:
    """Columns as a matrix."""
    import numpy as np

    spreads = None
    if any(cells.spread is not None for cells in columns):
        exact = np.zeros(len(columns[0].numbers))
        spreads = stacked([exact if c.spread is None else c.spread for c in columns])
    return Cells(stacked([cells.numbers for cells in columns]), spread=spreads)


def stacked(arrays: Iterable[Array]) -> Array:
    """Columns side by side, as a matrix."""
    import numpy as np

    return np.stack(list(arrays), axis=1)
