"""A table of any size as parts that can be read by themselves, in any order, by any process.

What a part is follows from the files alone (a row group of a Parquet file, a run of rows of a NumPy file, or
else a whole file), and so does how it is cut into batches: sums over parts are the same whoever makes them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from gradcli.tables.column_reading import folder_keys, matching
from gradcli.tables.line_counts import plain_rows
from gradcli.tables.named_columns import KeyedTable, Table, chosen, without_spread
from gradcli.tables.reading_options import Reading
from gradcli.tables.record_batches import Stream
from gradcli.tables.source import STANDARD_INPUT, Opened, Stamp, check, opened, whole_file
from gradcli.tables.table_errors import TableError, other_columns

if TYPE_CHECKING:
    import numpy as np

    from gradcli.tables.delimited import Dialect

    Array = np.ndarray[Any, Any]

ROWS = 1 << 16  # in a batch
_RUN = 1 << 20  # rows of a NumPy file in a part


class Part:
    """Some rows of a file. number: of the row group; first: the rows before them in the file.

    rows: how many; None where only reading tells. keys: the columns that its folders' names tell. stamp: of
    the file when its parts were found. reading: how its text is read. dialect: how its lines are cut.
    """

    __slots__ = (
        "dialect",
        "first",
        "keys",
        "kind",
        "number",
        "path",
        "reading",
        "rows",
        "stamp",
        "start",
    )

    def __init__(self, path: str, kind: str, number: int, first: int, rows: int | None) -> None:
        self.path, self.kind, self.number = path, kind, number
        self.first, self.rows = first, rows
        self.start = 0  # the rows before them in the table
        self.keys: dict[str, Any] = {}
        self.stamp: Stamp | None = None
        self.reading: Reading | None = None
        self.dialect: Dialect | None = None

    def batches(self, columns: Sequence[str]) -> Iterator[Table]:
        """Its rows in batches, with at least these columns (all, where there are no names).

        Raises TableError for a file that is not, or does not stay, as it was.
        """
        check(self.path, self.stamp)
        try:
            for table in self._batches([c for c in columns if c not in self.keys]):
                yield KeyedTable(table, self.keys) if self.keys else table
        except (TableError, OSError):  # perhaps of what is half written
            check(self.path, self.stamp)
            raise
        check(self.path, self.stamp)

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__} | {"dialect": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)

    def counted(self) -> int | None:
        """How many rows it has, without reading their cells; None where that cannot be told."""
        if self.dialect is None or self.reading is None:
            return self.rows
        file = opened(self.path, reading=self.reading)
        try:
            if self.dialect.clocks or file.path is None:
                return None
            return plain_rows(file, self.dialect, self.reading.how)
        finally:
            file.close()

    def folders(self, keys: Sequence[str]) -> list[str]:
        """The names of its folders that tell these keys, as they are written."""
        names = os.path.dirname(self.path).split(os.sep)
        told = {name.partition("=")[0]: name for name in names if "=" in name}
        return [name for key, name in told.items() if key in keys]

    def _batches(self, columns: Sequence[str]) -> Iterator[Table]:
        if self.kind == "parquet":
            yield from _row_group(self, columns)
        elif self.kind == "npy":
            from gradcli.tables.numpy_files import npy_rows

            yield from npy_rows(self.path, self.first, self.rows or 0, ROWS)
        else:
            yield from Stream(self.path, reading=self.reading, numbers=columns)


class Parts:
    """The parts of the files that a path or a pattern names: nothing is read but how long they are.

    names: of the columns. Raises TableError for what can be read but once, and OSError.
    """

    def __init__(self, pattern: str, reading: Reading | None = None) -> None:
        self.pattern, self.reading = pattern, reading or Reading()
        self.parts: list[Part] = []
        self.names: list[str] = []
        self.width = 0
        self.left_out = 0  # rows that `skip` left out when they were counted
        paths = matching(pattern)
        keys = folder_keys(pattern, paths)
        for path in paths:
            self._add(path, keys.get(path, {}))
        self._number()

    @property
    def rows(self) -> int | None:
        """How many rows there are; None where only reading tells."""
        counts = [part.rows for part in self.parts]
        return None if None in counts else sum(n for n in counts if n is not None)

    def _add(self, path: str, keys: dict[str, Any]) -> None:
        full = os.path.expanduser(whole_file(path))
        if path in STANDARD_INPUT or not os.path.isfile(full):
            what = "standard input" if path in STANDARD_INPUT else path
            if not os.path.exists(full) and path not in STANDARD_INPUT:
                open(full, "rb").close()  # says what is wrong
            raise TableError(
                f"{what} can be read only once, but this takes several passes",
                hint="write it into a file first",
            )
        file = opened(path, reading=self.reading)
        try:
            names, width, parts = _parts(file, path, self.reading)
            if file.kind in ("parquet", "feather"):
                from gradcli.tables.arrow import settle_times

                settle_times(file)
        finally:
            file.close()
        if keys := {key: value for key, value in keys.items() if key not in names}:
            names, width = [*names, *keys], width + len(keys)
            for part in parts:
                part.keys = keys
        for part in parts:
            part.stamp, part.reading = file.stamp, self.reading
        if self.parts and (names != self.names or width != self.width):
            raise other_columns(path, names, self.names)
        self.names, self.width = names, width
        self.parts += parts

    def count(self, columns: Sequence[int], missing: str) -> int:
        """How many rows there are, if need be by reading them; the rows that `skip` leaves out are none."""
        if self.rows is None or missing == "skip":
            names = [self.names[i] for i in columns] if self.names else []
            self.left_out = 0
            for part in self.parts:
                part.rows = part.counted() if missing != "skip" else None
                if part.rows is not None:
                    continue
                part.rows = 0
                for table in part.batches(names):
                    arrays = self.arrays(table, columns, missing)
                    part.rows += len(arrays[0]) if columns else table.rows
                    self.left_out += table.rows - len(arrays[0]) if columns else 0
            self._number()
        total = self.rows
        assert total is not None
        return total

    def _number(self) -> None:
        start = 0
        for part in self.parts:
            part.start = start
            start += part.rows or 0

    def arrays(self, table: Table, columns: Sequence[int], missing: str) -> list[Array]:
        """The numbers of columns of a batch; columns are counted as in all of the table."""
        return columns_of(table, self.names, columns, missing)


def columns_of(
    table: Table, names: Sequence[str], columns: Sequence[int], missing: str
) -> list[Array]:
    """The numbers of columns of a batch, which may have some of all columns only."""
    places = list(columns)
    if names:
        where = {name: i for i, name in enumerate(table.names)}
        places = [where[names[i]] for i in columns]
    if table.bad:
        raise table.bad[min(table.bad)]
    cells = chosen([table], [places], missing)
    return [without_spread(one, table.name) for one in cells]


def _parts(file: Opened, path: str, reading: Reading) -> tuple[list[str], int, list[Part]]:
    """The names of the columns, how many they are, and the parts of a file."""
    kind = file.kind
    if kind in ("parquet", "feather", "npy") and file.path is None and not file.is_unpacked:
        raise TableError(f"{path} is packed, and cannot be read part by part", hint="unpack it")
    if kind == "parquet":
        from gradcli.tables.arrow import row_groups

        names, counts = row_groups(file)
        found, first = [], 0
        for number, rows in enumerate(counts):
            found.append(Part(path, kind, number, first, rows))
            first += rows
        return names, len(names), found
    if kind == "feather":
        from gradcli.tables.arrow import feather_rows

        names, rows = feather_rows(file)
        return names, len(names), [Part(path, kind, 0, 0, rows)]
    if kind == "npy" and not file.is_unpacked:
        from gradcli.tables.numpy_files import field_names, npy_header

        shape, dtype, _, _ = npy_header(file.path or path)
        if len(shape) not in (1, 2) or (dtype.names and len(shape) != 1):
            raise TableError(f"{path}: an array of shape {shape} is not a table of rows")
        runs = range(0, max(shape[0], 1), _RUN)
        found = [
            Part(path, kind, k, first, min(_RUN, shape[0] - first)) for k, first in enumerate(runs)
        ]
        if dtype.names:
            names = field_names(dtype)
            return names, len(names), found
        return [], shape[1] if len(shape) > 1 else 1, found
    stream = Stream(path, reading=reading, head=True)
    stream.close()
    part = Part(path, "text", 0, 0, None)
    part.dialect = stream.dialect
    return stream.names, len(stream.names), [part]


def _row_group(part: Part, columns: Sequence[str]) -> Iterator[Table]:
    from gradcli.tables.arrow import row_group

    yield from row_group(part.path, part.number, columns, ROWS, part.first, part.reading)


__all__ = ["ROWS", "Part", "Parts", "columns_of"]
