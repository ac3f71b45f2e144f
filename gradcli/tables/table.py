"""A table: named columns of equal length, some of which are numbers.

A whole file is one table; a stream is one table after another, of the same columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from gradcli.tables.delimited import Dialect, is_missing, place
from gradcli.tables.errors import MISSING_HINT, TableError

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

POLICIES = ("error", "nan", "skip")


class Table:
    """Columns by name; `names` is empty where the file has no header. One subclass a way to keep cells."""

    __slots__ = ("bad", "name", "names", "rows", "start", "width")

    def __init__(
        self, name: str, names: Sequence[str], rows: int, width: int, start: int = 0
    ) -> None:
        self.name, self.names, self.rows, self.width = name, list(names), rows, width
        self.start = start  # rows before these, in the file
        self.bad: dict[int, TableError] = {}  # rows that could not even be cut into cells

    def numbers(self, column: int) -> tuple[Array, Array | None]:
        """The numbers of a column, and where there are none (None: everywhere is one).

        Raises TableError for a cell that is no number.
        """
        raise NotImplementedError

    def readable(self, column: int) -> tuple[Array, Array | None, dict[int, TableError]]:
        """The same; and what is wrong in which rows, instead of an error about the first."""
        return (*self.numbers(column), {})

    def cells(self, column: int) -> list[Any]:
        """The column as it is written."""
        raise NotImplementedError

    def data(self, column: int) -> Any:
        """The column as an array if it holds numbers and none is missing, else as a list of its cells."""
        return self.cells(column)

    def arrow(self, column: int) -> Any:
        """The column as Arrow has it, of whatever type; None where Arrow does not have it."""
        return None

    def is_written(self, column: int) -> bool:
        """Whether the column is text for want of types, as in CSV: a number is in it as it is written."""
        return False

    def where(self, row: int, column: int) -> dict[str, Any]:
        """What shows a cell: the start of the message (`at`), `line` and `span` where there is a line."""
        return {"at": f"{self.name}, row {self.start + row + 1}{self._of(column)}"}

    def _of(self, column: int) -> str:
        return f", column {self.names[column]}" if 0 <= column < len(self.names) else ""

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
    """Cells as they were read: text, or the values of JSON."""

    __slots__ = ("columns", "dialect", "lines", "numbered", "source")

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

    def cells(self, column: int) -> list[Any]:
        """The column as it is written."""
        return list(self.columns[column])

    def is_written(self, column: int) -> bool:
        """So it is, where separators cut it."""
        return self.dialect is not None

    def numbers(self, column: int) -> tuple[Array, Array | None]:
        """The numbers of a column, and where there are none."""
        import numpy as np

        cells = self.columns[column]
        try:
            found = np.array(list(map(float, cells)))
        except (ValueError, TypeError, OverflowError):
            problems: dict[int, TableError] = {}
            array, gone = self._slowly(column, problems)
            if problems:
                raise problems[min(problems)] from None
            return array, gone
        if np.isnan(found).any():
            gone = np.fromiter((_is_gone(cell) for cell in cells), bool, len(cells))
            return found, gone if gone.any() else None
        return found, None

    def readable(self, column: int) -> tuple[Array, Array | None, dict[int, TableError]]:
        """The same; and what is wrong in which rows, instead of an error about the first."""
        try:
            return (*self.numbers(column), {})
        except TableError:
            problems: dict[int, TableError] = {}
            return (*self._slowly(column, problems), problems)

    def _slowly(self, column: int, problems: dict[int, TableError]) -> tuple[Array, Array | None]:
        """Cell by cell: complex numbers, cells without a value, and what is no number."""
        import numpy as np

        cells = self.columns[column]
        gone = np.zeros(len(cells), bool)
        found: list[Any] = []
        for row, cell in enumerate(cells):
            if _is_gone(cell):
                gone[row] = True
                found.append(float("nan"))
                continue
            try:
                found.append(_number(cell))
                continue
            except (ValueError, TypeError):
                shown = f"`{cell}`" if isinstance(cell, str) else _kind(cell)
                problem = self.wrong(row, column, f"{shown} is not a number", _advice(cell))
            except OverflowError:
                problem = self.wrong(row, column, "this integer is too large for a float")
            problems[row] = problem
            found.append(float("nan"))
        return np.array(found), gone if gone.any() else None

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


def _is_gone(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and is_missing(cell))


def _number(cell: Any) -> complex:
    if isinstance(cell, str):
        return complex(cell.replace(" ", "")) if cell[-1:] in "jJ" else float(cell)
    if isinstance(cell, (list, dict)):
        raise TypeError(cell)
    return float(cell)


def _kind(cell: Any) -> str:
    if isinstance(cell, list):
        return "a list"
    return "an object" if isinstance(cell, dict) else repr(cell)


def _advice(cell: Any) -> str | None:
    if isinstance(cell, str) and re.fullmatch(r"[-+]?\d+,\d+", cell):
        return "write decimals with a point, not a comma"
    return None


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

    def numbers(self, column: int) -> tuple[Array, Array | None]:
        """The column, if it holds numbers."""
        array = self.arrays[column]
        if array.dtype.kind not in "biufc":
            raise TableError(f"{self.name}{self._of(column)}: holds {array.dtype}, not numbers")
        return array, None


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

    def numbers(self, column: int) -> tuple[Array, Array | None]:
        """The numbers of a column, and where there are none."""
        import numpy as np

        if column < self.table.width:
            return self.table.numbers(column)
        value = self._key(column)
        if value is None:
            return np.full(self.rows, np.nan), np.ones(self.rows, bool)
        if isinstance(value, str):
            raise TableError(f"{self.name}{self._of(column)}: holds text ({value!r}), not numbers")
        return np.full(self.rows, value), None

    def readable(self, column: int) -> tuple[Array, Array | None, dict[int, TableError]]:
        """The same; and what is wrong in which rows, instead of an error about the first."""
        if column < self.table.width:
            return self.table.readable(column)
        return super().readable(column)

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
            self.cells(column) if value is None or type(value) is str else self.numbers(column)[0]
        )

    def arrow(self, column: int) -> Any:
        """The column as Arrow has it, of whatever type; None where Arrow does not have it."""
        return self.table.arrow(column) if column < self.table.width else None

    def is_written(self, column: int) -> bool:
        """Whether the column is text for want of types."""
        return column < self.table.width and self.table.is_written(column)

    def where(self, row: int, column: int) -> dict[str, Any]:
        """What shows a cell."""
        if column < self.table.width:
            return self.table.where(row, column)
        return super().where(row, column)


# -- what is chosen of it -------------------------------------------------------------------------
def chosen(
    tables: Sequence[Table],
    wanted: Sequence[Sequence[int]],
    missing: str,
    also: Sequence[Sequence[int]] = (),
) -> list[Array]:
    """Columns of tables that follow each other, as arrays of equal length.

    wanted: the columns of each table. missing: what a cell without a value does: `error` refuses it, `nan`
    stands for it, `skip` leaves its row out, and rows that lack a value in the columns `also`.
    """
    import numpy as np

    if missing not in POLICIES:
        raise TableError(f"missing is one of {', '.join(POLICIES)}, not {missing!r}")
    parts: list[list[Array]] = []
    for number, (table, columns) in enumerate(zip(tables, wanted, strict=True)):
        read = {
            c: table.numbers(c) for c in dict.fromkeys([*columns, *(also[number] if also else ())])
        }
        lost = None
        for column, (array, gone) in read.items():
            if gone is None:
                continue
            if missing == "error":
                row = int(np.argmax(gone))
                raise table.wrong(row, column, "a number is missing here", MISSING_HINT)
            if missing == "nan":
                kind = array.dtype.kind if array.dtype.kind in "fc" else "f"
                array = array.astype(array.dtype if kind == array.dtype.kind else np.float64)
                array[gone] = np.nan
                read[column] = (array, None)
            lost = gone if lost is None else lost | gone
        keep = None if lost is None or missing == "nan" else ~lost
        parts.append([read[c][0] if keep is None else read[c][0][keep] for c in columns])
    return [
        np.concatenate(pieces) if len(pieces) > 1 else pieces[0]
        for pieces in zip(*parts, strict=True)
    ]


def stacked(arrays: Iterable[Array]) -> Array:
    """Columns side by side, as a matrix."""
    import numpy as np

    return np.stack(list(arrays), axis=1)
