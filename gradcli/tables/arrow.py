"""What pyarrow reads and writes: Parquet, Feather, and large text faster than Python does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gradcli.tables.errors import TableError
from gradcli.tables.source import Opened
from gradcli.tables.table import Table

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

EXTRA = 'pip install "gradcli[table]"'


def pyarrow(what: str) -> Any:
    """The library; TableError where it is not installed."""
    try:
        import pyarrow as found
    except ImportError:
        raise TableError(f"{what}: this needs pyarrow", hint=EXTRA) from None
    return found


class ArrowTable(Table):
    """Columns of Arrow's."""

    __slots__ = ("batch",)

    def __init__(self, name: str, data: Any, start: int = 0) -> None:
        super().__init__(name, data.schema.names, data.num_rows, data.num_columns, start)
        self.batch = data

    def cells(self, column: int) -> list[Any]:
        """The column's values."""
        found: list[Any] = self.batch.column(column).to_pylist()
        return found

    def data(self, column: int) -> Any:
        """The column as an array if it holds numbers and none is missing, else as a list of its cells."""
        arrow = pyarrow(self.name)
        kind = self.data_type(column)
        if arrow.types.is_integer(kind) or arrow.types.is_floating(kind):
            found, gone = self.numbers(column)
            if gone is None:
                return found
        return self.cells(column)

    def data_type(self, column: int) -> Any:
        """What Arrow says that a column holds."""
        return self.batch.schema.field(column).type

    def numbers(self, column: int) -> tuple[Array, Array | None]:
        """The column, if it holds numbers; where it holds null."""
        import numpy as np

        arrow = pyarrow(self.name)
        data, kinds = self.batch.column(column), arrow.types
        kind = data.type
        if kinds.is_dictionary(kind):
            data, kind = data.cast(kind.value_type), kind.value_type
        if kinds.is_decimal(kind) or kinds.is_float16(kind):
            data, kind = data.cast(arrow.float64()), arrow.float64()
        if kinds.is_null(kind):
            return np.full(self.rows, np.nan), np.ones(self.rows, bool)
        if not (kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind)):
            raise TableError(f"{self.name}{self._of(column)}: holds {kind}, not numbers")
        gone = None
        if data.null_count:
            gone = (
                data.is_null().to_numpy(zero_copy_only=False)
                if isinstance(data, arrow.Array)
                else data.is_null().to_numpy()
            )
            data = data.fill_null(False if kinds.is_boolean(kind) else 0)
        found: Array = (
            data.to_numpy(zero_copy_only=False)
            if isinstance(data, arrow.Array)
            else data.to_numpy()
        )
        return found, gone


def read_arrow(file: Opened, columns: Any = None) -> ArrowTable:
    """A Parquet or Feather file. columns: a function from all names to those that are wanted."""
    arrow = pyarrow(file.name)
    errors = (arrow.ArrowException, OSError, ValueError)
    try:
        if file.kind == "parquet":
            import pyarrow.parquet as parquet

            reader = parquet.ParquetFile(_seekable(file, arrow))
            wanted = None if columns is None else columns(reader.schema_arrow.names)
            return ArrowTable(file.name, reader.read(columns=wanted))
        import pyarrow.feather as feather

        return ArrowTable(file.name, feather.read_table(_seekable(file, arrow)))
    except errors as error:
        words = " ".join(str(error).split())
        raise TableError(f"{file.name}: not a {file.kind.title()} file ({words[:100]})") from None


def _seekable(file: Opened, arrow: Any) -> Any:
    if file.path is not None:
        return file.path
    return arrow.BufferReader(file.read())


def arrow_batches(file: Opened, rows: int) -> Iterator[ArrowTable]:
    """The batches of a Parquet or Feather file, one after the other."""
    arrow = pyarrow(file.name)
    start = 0
    try:
        for batch in _batches(file, arrow, rows):
            yield ArrowTable(file.name, batch, start)
            start += batch.num_rows
    except (arrow.ArrowException, OSError, ValueError) as error:
        words = " ".join(str(error).split())
        raise TableError(f"{file.name}: not a {file.kind.title()} file ({words[:100]})") from None


def _batches(file: Opened, arrow: Any, rows: int) -> Iterator[Any]:
    if file.kind == "parquet":
        import pyarrow.parquet as parquet

        reader = parquet.ParquetFile(_seekable(file, arrow))
        if not reader.metadata.num_rows:
            yield reader.schema_arrow.empty_table()
        yield from reader.iter_batches(rows)
        return
    import pyarrow.feather as feather

    table = feather.read_table(_seekable(file, arrow), memory_map=file.path is not None)
    yield from table.to_batches(rows) or [table]
