"""Tables in memory: dicts of columns, frames of pandas and polars, and what Arrow has."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gradcli.engine.system.given_arrays import GivenArrayError, array_of
from gradcli.tables.named_columns import ArrayTable, Cells, Table
from gradcli.tables.reading_options import Reading
from gradcli.tables.sniffing import read_texts
from gradcli.tables.table_errors import TableError
from gradcli.tables.times import UNITS, Instants

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

NAME = "the table"


def column_names(data: Any) -> list[Any]:
    """What the columns of a frame, a table of Arrow's or a dict are called."""
    if isinstance(data, Mapping):
        return list(data)
    if hasattr(data, "schema") and hasattr(data, "num_rows"):  # of Arrow
        return list(data.schema.names)
    return list(getattr(data, "columns", data))


def table_of(data: Any, reading: Reading) -> Table:
    """A dict of columns, a frame of pandas or polars, or a table of Arrow's as a table. Raises TableError."""
    if hasattr(data, "schema") and hasattr(data, "num_rows"):  # of Arrow
        from gradcli.tables.arrow import ArrowTable

        return ArrowTable(NAME, data, 0, reading)
    names = column_names(data)
    arrays = [_array(str(name), data[name]) for name in names]
    rows = {len(array) for array in arrays}
    if len(rows) > 1:
        sizes = ", ".join(f"{n} {len(a)}" for n, a in zip(names, arrays, strict=True))
        raise TableError(f"the columns have different numbers of rows ({sizes})")
    return ObjectTable(NAME, [str(name) for name in names], arrays, reading)


def _array(name: str, column: Any) -> Array:
    """A column as an array of numbers, of times, or of Python's objects."""
    import numpy as np

    if isinstance(column, np.ndarray) and type(column) is not np.ndarray:
        try:
            column = array_of(column)
        except GivenArrayError as error:
            raise TableError(f"{name}: {error.message}", hint=error.remedy) from None
    kind = getattr(column, "dtype", None)
    if isinstance(kind, np.dtype):
        found = np.asarray(column)
    elif getattr(kind, "tz", None) is not None and hasattr(column, "to_numpy"):  # of pandas, in UTC
        found = column.to_numpy("M8[ns]")
    elif getattr(kind, "kind", "O") in "iufb" and hasattr(
        column, "isna"
    ):  # pandas with missing numbers
        found = column.to_numpy(np.float64, na_value=np.nan)
    elif hasattr(column, "null_count") and hasattr(column, "to_numpy"):  # of polars
        found = _of_polars(column)
    else:
        found = np.asarray(column)
    if found.dtype.kind in "US":
        found = found.astype(object)
    if found.ndim != 1:
        raise TableError(f"a column has one value in a row, and this has shape {found.shape[1:]}")
    return found


def _bare(time: Any) -> Any:
    """A time of UTC without a zone."""
    zone = getattr(time, "tzinfo", None)
    return time if zone is None else time.astimezone(datetime.UTC).replace(tzinfo=None)


def _of_polars(column: Any) -> Array:
    import numpy as np

    if getattr(column.dtype, "time_zone", None):
        column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    if not (column.dtype.is_numeric() or column.dtype.is_temporal()):
        return np.array(column.to_list(), bool if str(column.dtype) == "Boolean" else object)
    return np.asarray(column.to_numpy())


class ObjectTable(ArrayTable):
    """Columns of Python's objects: numbers, times, and texts, which may be either. reading: of times."""

    __slots__ = ("reading",)

    def __init__(
        self, name: str, names: Sequence[str], arrays: list[Array], reading: Reading
    ) -> None:
        super().__init__(name, names, arrays)
        self.reading = reading

    def cells(self, column: int) -> list[Any]:
        """The column's values; times as they are written."""
        array = self.arrays[column]
        if array.dtype.kind == "M":
            return [None if t == "NaT" else t for t in _written(array)]
        if array.dtype.kind == "O":
            return [_plain(cell) for cell in array.tolist()]
        return super().cells(column)

    def data(self, column: int) -> Any:
        """The column as it was given."""
        return self.arrays[column]

    def readable(self, column: int) -> Cells:
        """The column, if it holds numbers or times, or what is written like some."""
        import numpy as np

        array, name = self.arrays[column], self.names[column]
        kind = array.dtype.kind
        if kind in "biufc":
            return super().readable(column)
        if kind in "Mm":
            unit = np.datetime_data(array.dtype)[0]
            if unit not in ("s", "ms", "us", "ns"):
                array = array.astype(f"{kind}8[s]")
            missing = np.isnat(array)
            gone = missing if missing.any() else None
            counts = (
                array.astype(np.int64)
                if gone is None
                else np.where(missing, 0, array.astype(np.int64))
            )
            unit, step = np.datetime_data(array.dtype)
            if kind == "m":
                scale = UNITS[unit] * step / UNITS[self.reading.how.time_unit or "s"]
                return _with_nan(counts * scale, gone)
            made = Instants(counts * step, unit, gone, "instant", lambda row: _written(array[row]))
            return _with_nan(made.numbers(name, self.name, self.reading), gone)
        found = read_texts(self, column, self.cells(column), self.reading)
        if found is None:
            raise TableError(
                f"{self.name}{self._of(column)}: holds text, not numbers",
                hint=f"a text is compared, as in `{name} == {self._example(column)!r}`",
            )
        return found

    def _example(self, column: int) -> str:
        return next((c for c in self.cells(column) if isinstance(c, str)), "a")


def _with_nan(numbers: Array, gone: Array | None) -> Cells:
    if gone is not None:
        numbers[gone] = float("nan")
    return Cells(numbers, gone)


def _written(times: Any) -> Any:
    """Times as one writes them: those at midnight by their dates."""
    import numpy as np

    days = times.astype("M8[D]")
    if (np.asarray((days == times) | np.isnat(times))).all():
        times = days
    elif (np.asarray(times.astype("M8[s]") == times)).all():
        times = times.astype("M8[s]")
    found = np.datetime_as_string(times)
    return found.tolist() if np.ndim(found) else str(found)


def _plain(cell: Any) -> Any:
    """A value of a cell; None where pandas has none, and dates as they are written."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(cell, datetime.datetime):
        made = _bare(cell)
        return made.date().isoformat() if made.time() == datetime.time() else made.isoformat(" ")
    return cell.isoformat() if isinstance(cell, (datetime.date, datetime.time)) else cell


class FrameStream:
    """What `record_batches.Stream` is of files: one batch, a table in memory. names: of the columns."""

    as_lines = can_select = False
    numbers: tuple[str, ...] = ()

    def __init__(self, table: Table) -> None:
        self.first: Table | None = table
        self.name, self.names, self.size, self.done = table.name, table.names, None, 0

    def __iter__(self) -> Iterator[Table]:
        if self.first is not None:
            first, self.first = self.first, None
            yield first

    def close(self) -> None:
        """There is no file."""


__all__ = ["NAME", "FrameStream", "ObjectTable", "column_names", "table_of"]
