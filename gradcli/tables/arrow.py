"""What pyarrow reads and writes: Parquet, Feather, and large text faster than Python does."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from gradcli.tables.delimited import Dialect
from gradcli.tables.named_columns import Cells, CellTable, Table
from gradcli.tables.reading_options import Reading
from gradcli.tables.sniffing import read_texts
from gradcli.tables.source import Opened, Stamp, stamp
from gradcli.tables.table_errors import TableError, pyarrow

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


# Pages are read as they are needed, however large the row group.
_BY_PAGES: Any = {"pre_buffer": False, "buffer_size": 1 << 20}


# pyarrow imports pandas, which takes 0.2 s, to make an array or a scalar of what is not its own, and for an
# array's to_numpy.
def to_numpy(data: Any) -> Array:
    """The numbers or truth values of what Arrow has; nan, 0 or False where it is null."""
    import numpy as np

    arrow = pyarrow("a table")
    if isinstance(data, arrow.ChunkedArray):
        data = data.chunk(0) if data.num_chunks == 1 else data.combine_chunks()
    is_truth = arrow.types.is_boolean(data.type)
    if is_truth:
        data = data.cast(arrow.uint8())
    kind = np.dtype(data.type.to_pandas_dtype())
    if not len(data):
        return np.zeros(0, bool if is_truth else kind)
    found = np.frombuffer(data.buffers()[1], kind, len(data), data.offset * kind.itemsize)
    if data.null_count:
        gone = to_numpy(data.is_null())
        found = np.where(gone, found.dtype.type(np.nan if kind.kind == "f" else 0), found)
    return found.view(bool) if is_truth else found


_EXACT = (
    2**53
)  # integers up to this are exact in double precision, as are powers of ten up to 10**22


def from_decimals(data: Any) -> Array:
    """Decimal numbers in double precision, each the nearest to it; nan where it is null.

    The quotient of two exact numbers is rounded once: 330/100 is 3.3. Arrow's own cast multiplies by 0.01,
    which is not exact. What is larger goes the long way, by Python's `float`.
    """
    import numpy as np

    arrow = pyarrow("a table")
    if isinstance(data, arrow.ChunkedArray):
        data = data.combine_chunks()
        if isinstance(data, arrow.ChunkedArray):
            data = arrow.concat_arrays(data.chunks)
    if not len(data):
        return np.zeros(0)
    width, scale = data.type.bit_width // 8, data.type.scale
    word = np.dtype("<i4" if width == 4 else "<i8")
    words = np.frombuffer(
        data.buffers()[1], word, len(data) * width // word.itemsize, data.offset * width
    )
    low, *high = words.reshape(len(data), -1).T.astype(np.int64)
    short = (low >= -_EXACT) & (low <= _EXACT)
    for more in high:  # the rest of a number that fits into the first word repeats its sign
        short &= more == low >> 63
    if not 0 <= scale <= 22:
        short[:] = False
    found: Array = low / 10.0**scale
    gone = to_numpy(data.is_null()) if data.null_count else np.zeros(len(data), bool)
    found[gone] = np.nan
    for i in np.nonzero(~short & ~gone)[0].tolist():
        found[i] = float(data[i].as_py())
    return found


def from_numpy(array: Array, gone: Array | None = None) -> Any:
    """An array of numbers or truth values as one of Arrow's, which shares its memory where it can.

    gone: where it is null.
    """
    import numpy as np

    arrow = pyarrow("a table")
    kind, data = arrow.from_numpy_dtype(array.dtype), np.ascontiguousarray(array)
    if array.dtype.kind == "b":
        data = np.packbits(data, bitorder="little")
    there = None if gone is None else arrow.py_buffer(np.packbits(~gone, bitorder="little"))
    return arrow.Array.from_buffers(kind, len(array), [there, arrow.py_buffer(data)])


def from_texts(texts: Sequence[str]) -> Any:
    """An array of text."""
    import numpy as np

    arrow, pieces = pyarrow("a table"), [text.encode() for text in texts]
    ends = from_numpy(np.cumsum([0, *map(len, pieces)], dtype=np.int32)).buffers()[1]
    whole = arrow.py_buffer(b"".join(pieces))
    return arrow.StringArray.from_buffers(len(pieces), ends, whole)


def letters(data: Any) -> bytes:
    """The bytes of all cells of an array of text, one after the other."""
    _, ends, whole = data.buffers()
    if not len(data) or whole is None:
        return b""
    at = memoryview(ends).cast("i")
    first, last = at[data.offset], at[data.offset + len(data)]
    found: bytes = whole.slice(first, last - first).to_pybytes()
    return found


class ArrowTable(Table):
    """Columns of Arrow's."""

    __slots__ = ("batch", "reading")

    def __init__(
        self, name: str, data: Any, start: int = 0, reading: Reading | None = None
    ) -> None:
        super().__init__(name, data.schema.names, data.num_rows, data.num_columns, start)
        self.batch = data
        self.reading = reading  # what times count from

    @property
    def index(self) -> list[str]:
        """The index of a data frame with names of its own, as pandas notes it in the schema."""
        noted = (self.batch.schema.metadata or {}).get(b"pandas")
        if noted is None:
            return []
        import json

        try:
            listed = json.loads(noted)["index_columns"]
        except (ValueError, LookupError, TypeError):
            return []
        return [n for n in listed if isinstance(n, str) and not n.startswith("__index_level_")]

    def cells(self, column: int) -> list[Any]:
        """The column's values."""
        found: list[Any] = self.batch.column(column).to_pylist()
        return found

    def data(self, column: int) -> Any:
        """Numbers of which none is missing as an array, text as Arrow has it, else a list of the cells."""
        arrow = pyarrow(self.name)
        kind = self.data_type(column)
        if arrow.types.is_string(kind):
            return self.batch.column(column)
        if arrow.types.is_large_string(kind) or arrow.types.is_string_view(kind):
            return self.batch.column(column).cast(arrow.string())
        if arrow.types.is_integer(kind) or arrow.types.is_floating(kind):
            found = self.numbers(column)
            if found.gone is None:
                return found.numbers
        return self.cells(column)

    def arrow(self, column: int) -> Any:
        """The column as it is."""
        return self.batch.column(column)

    def data_type(self, column: int) -> Any:
        """What Arrow says that a column holds."""
        return self.batch.schema.field(column).type

    def readable(self, column: int) -> Cells:
        """The column, if it holds numbers; where it holds null."""
        import numpy as np

        arrow = pyarrow(self.name)
        data, kinds = self.batch.column(column), arrow.types
        kind = data.type
        if kinds.is_dictionary(kind):
            data, kind = data.cast(kind.value_type), kind.value_type
        if kinds.is_decimal(kind):
            return Cells(from_decimals(data), to_numpy(data.is_null()) if data.null_count else None)
        if kinds.is_float16(kind):
            data, kind = data.cast(arrow.float64()), arrow.float64()
        if kinds.is_null(kind):
            return Cells(np.full(self.rows, np.nan), np.ones(self.rows, bool))
        if kinds.is_temporal(kind):
            return self._times(column, data, kind)
        if _is_text(kinds, kind) and self.reading is not None:
            found = read_texts(self, column, data.to_pylist(), self.reading)
            if found is not None:
                return found
        if not (kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind)):
            raise TableError(f"{self.name}{self._of(column)}: holds {kind}, not numbers")
        return Cells(to_numpy(data), to_numpy(data.is_null()) if data.null_count else None)

    def _times(self, column: int, data: Any, kind: Any) -> Cells:
        """A column of dates or times as the numbers that the same in a text would be; durations in seconds.

        Instants with a zone are those of UTC.
        """
        from gradcli.tables.times import UNITS, Instants

        arrow, name = pyarrow(self.name), self.names[column]
        kinds, gone = arrow.types, to_numpy(data.is_null()) if data.null_count else None
        if self.reading is None or kinds.is_interval(kind):
            raise TableError(f"{self.name}{self._of(column)}: holds {kind}, not numbers")
        if kinds.is_date(kind):
            data = data.cast(arrow.timestamp("s"))
        scale = UNITS[data.type.unit]
        counts = to_numpy(data.cast(arrow.int64()).fill_null(0))
        how = self.reading.how
        if kinds.is_duration(kind):
            return Cells(counts * (scale / UNITS[how.time_unit or "s"]), gone)
        sort = "date" if kinds.is_date(kind) else "time" if kinds.is_time(kind) else "instant"
        made = Instants(counts, data.type.unit, gone, sort, lambda row: _instant(data, row))
        return Cells(made.numbers(name, self.name, self.reading), gone)


def _instant(data: Any, row: int) -> str:
    """A time of Arrow's as one writes it, without zeros of seconds."""
    text: str = data.slice(row, 1).cast(pyarrow("a table").string())[0].as_py()
    return re.sub(r"\.0+(?!\d)", "", text)


def _is_text(kinds: Any, kind: Any) -> bool:
    return bool(kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind))


def settle_times(file: Opened) -> None:
    """Find what the times of a file count from, and in which unit, before others read its parts.

    The first rows of a column in the first file that has one tell it, as where a table is read in one piece.
    """
    arrow = pyarrow(file.name)
    kinds, errors = arrow.types, (arrow.ArrowException, OSError, ValueError)
    is_parquet = file.kind == "parquet"
    quiet = Reading(file.reading.how)  # who reads the rows says what it reads
    quiet.origins, quiet.units = file.reading.origins, file.reading.units
    try:
        # not a dataset of Arrow's, whose module imports pandas
        reader = _parquet(file, arrow) if is_parquet else _feather(file, arrow)
        for field in reader.schema_arrow if is_parquet else reader.schema:
            kind, name = field.type, field.name
            times = kinds.is_timestamp(kind) or kinds.is_date(kind) or kinds.is_time(kind)
            if not (times or _is_text(kinds, kind)) or name in file.reading.origins:
                continue
            if is_parquet:
                batches = reader.iter_batches(columns=[name])
            else:
                every = map(reader.get_batch, range(reader.num_record_batches))
                batches = (batch.select([name]) for batch in every)
            first = next((b for b in batches if b.column(0).null_count < b.num_rows), None)
            if first is not None:
                with suppress(TableError):
                    ArrowTable(file.name, first, 0, quiet).readable(0)
    except errors as error:
        raise _worded(file.name, file.kind, error, file.path) from None


def read_arrow(file: Opened, columns: Any = None) -> ArrowTable:
    """A Parquet or Feather file. columns: a function from all names to those that are wanted."""
    arrow = pyarrow(file.name)
    errors = (arrow.ArrowException, OSError, ValueError)
    try:
        if file.kind == "parquet":
            reader = _parquet(file, arrow)
            wanted = None if columns is None else columns(reader.schema_arrow.names)
            return ArrowTable(file.name, reader.read(columns=wanted), 0, file.reading)
        table = _feather(file, arrow).read_all()
        table.validate(full=True)  # offsets that lie would be read wherever they point
        return ArrowTable(file.name, table, 0, file.reading)
    except errors as error:
        raise _worded(file.name, file.kind, error, file.path) from None


def _parquet(file: Opened, arrow: Any, **how: Any) -> Any:
    """A reader of a Parquet file, also where its writer noted a type that Arrow's readers lack.

    polars writes columns of Int128, and says so in a schema of Arrow's inside the file. Then Arrow reads no
    column at all, unless it does not find that schema: the types of Parquet tell it how the others are.
    """
    import pyarrow.parquet as parquet

    try:
        reader = parquet.ParquetFile(_seekable(file, arrow), **how)
        _ = reader.schema_arrow
        return reader
    except arrow.ArrowNotImplementedError:
        from io import BytesIO

        source = open(file.path, "rb") if file.path is not None else BytesIO(file.read())  # noqa: SIM115
        return parquet.ParquetFile(arrow.PythonFile(_Unnoted(source), "r"), **how)


class _Unnoted:
    """A Parquet file in whose last part, the footer, nothing is called ARROW:schema."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.size = stream.seek(0, 2)
        stream.seek(max(self.size - 8, 0))
        self.footer = self.size - 8 - int.from_bytes(stream.read(4), "little")
        stream.seek(0)

    def read(self, count: int = -1) -> bytes:
        """The next bytes. What is read of the footer is read from its beginning."""
        start = self.stream.tell()
        found: bytes = self.stream.read(count)
        if start + len(found) <= self.footer:
            return found
        self.stream.seek(self.footer)
        footer = self.stream.read().replace(b"ARROW:schema", b"arrow:schema")
        end = start + len(found)
        self.stream.seek(end)
        before = found[: max(self.footer - start, 0)]
        after: bytes = footer[max(start - self.footer, 0) : end - self.footer]
        return before + after

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def _seekable(file: Opened, arrow: Any) -> Any:
    if file.path is not None:
        return file.path
    return arrow.BufferReader(file.read())


def arrow_batches(
    file: Opened, rows: int, columns: Sequence[str] | None = None
) -> Iterator[tuple[ArrowTable, float]]:
    """The batches of a file of Arrow's, one after the other, each with the share that is read by then.

    columns: of a Parquet file, the only ones that are read; None for all.
    """
    arrow = pyarrow(file.name)
    start = 0
    if file.path is not None and file.kind != "arrows" and not file.reading.origins:
        settle_times(file)  # all dates count from one day, whichever are read
    try:
        for batch, share in _batches(file, arrow, rows, columns):
            yield ArrowTable(file.name, batch, start, file.reading), share
            start += batch.num_rows
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise _worded(file.name, file.kind, error, file.path) from None


def _batches(
    file: Opened, arrow: Any, rows: int, columns: Sequence[str] | None
) -> Iterator[tuple[Any, float]]:
    if file.kind == "parquet":
        reader = _parquet(file, arrow, **_BY_PAGES)
        total = reader.metadata.num_rows
        if not total:
            yield reader.schema_arrow.empty_table(), 1.0
        read = 0
        wanted = None if columns is None else [n for n in columns if n in reader.schema_arrow.names]
        for batch in reader.iter_batches(rows, columns=wanted):
            read += batch.num_rows
            yield batch, read / total
        return
    reader = _feather(file, arrow)
    whole = file.kind == "feather"
    count = reader.num_record_batches if whole else 0
    batches = (reader.get_batch(k) for k in range(count)) if whole else reader
    some = False
    for number, batch in enumerate(batches, 1):
        some = True
        batch.validate(full=True)  # offsets that lie would be read wherever they point
        for start in range(0, max(batch.num_rows, 1), rows):
            yield batch.slice(start, rows), number / count if count else 0.0
    if not some:
        yield reader.schema.empty_table(), 1.0


def _feather(file: Opened, arrow: Any) -> Any:
    """A reader of Arrow's file format, which Feather has been since its version 2; or of its stream."""
    if file.kind == "arrows":
        return arrow.ipc.open_stream(arrow.PythonFile(file.stream, "r"))
    source = _seekable(file, arrow)
    return arrow.ipc.open_file(arrow.memory_map(source) if isinstance(source, str) else source)


_BLANKS = " \t\v\f\x1c\x1d\x1e\x1f"


class TextTable(Table):
    """Text that Arrow has cut. `slowly` makes the same table cell by cell, for what is not a number.

    written: whether cells are text for want of types, as in CSV; in JSON a column may be of numbers.
    columns: None for those that were not read; of CSV those that were read as numbers.
    """

    __slots__ = ("_slow", "columns", "dialect", "slowly", "written")

    def __init__(
        self,
        name: str,
        names: Sequence[str],
        columns: list[Any],
        slowly: Callable[[], CellTable],
        written: bool,
        dialect: Dialect | None = None,
    ) -> None:
        rows = next(len(column) for column in columns if column is not None)
        super().__init__(name, names, rows, len(columns))
        self.columns, self.slowly, self.written = columns, slowly, written
        self.dialect = None if dialect is None or dialect.is_python else dialect
        self._slow: CellTable | None = None

    @property
    def slow(self) -> CellTable:
        """The same cell by cell."""
        if self._slow is None:
            self._slow = self.slowly()
        return self._slow

    def cells(self, column: int) -> list[Any]:
        """The column as it is written."""
        if self.columns[column] is None or self._are_numbers(column):
            return self.slow.cells(column)  # some of which may be integers
        data = self._plain(column)
        if data is None:
            return self.slow.cells(column)
        found: list[Any] = data.to_pylist()
        return found

    def data(self, column: int) -> Any:
        """The column as Arrow has it."""
        is_read = not self.written or not self._are_numbers(column)
        data = self._plain(column) if is_read else None
        return self.slow.cells(column) if data is None else data

    def _are_numbers(self, column: int) -> bool:
        data = self.columns[column]
        return data is not None and bool(pyarrow(self.name).types.is_floating(data.type))

    def _plain(self, column: int) -> Any:
        """The column with its numbers as Python writes them; None where that takes a look at each cell."""
        data, found = self.columns[column], self.dialect
        if data is None or found is None or (found.decimal == "." and not found.thousands):
            return data
        import pyarrow.compute as compute

        point, mark = re.escape(found.decimal), re.escape(found.thousands)
        whole = rf"(?:\d{{1,3}}(?:{mark}\d{{3}})+|\d+)" if mark else r"\d+"
        number = rf"^[-+]?(?:{whole}(?:{point}\d*)?|{point}\d+)(?:[eE][-+]?\d+)?$"
        like = to_numpy(compute.match_substring_regex(data, number))
        if not like.any():
            touched = compute.match_substring_regex(data, r"\d")
            return None if to_numpy(touched).any() else data
        if not like.all():
            return None
        if mark:
            data = compute.replace_substring(data, found.thousands, "")
        return compute.replace_substring(data, found.decimal, ".") if found.decimal != "." else data

    def arrow(self, column: int) -> Any:
        """The same, if it has a type."""
        return None if self.written else self.columns[column]

    def is_written(self, column: int) -> bool:
        """Whether it has none."""
        return self.written

    def readable(self, column: int) -> Cells:
        """The cells of a column as numbers."""
        return self._quickly(column) or self.slow.readable(column)

    def _quickly(self, column: int) -> Cells | None:
        import numpy as np

        arrow, data = pyarrow(self.name), self._plain(column)
        if data is None or (self.dialect is not None and self.dialect.markers):
            return None
        is_text = self.written or arrow.types.is_string(data.type)
        if not self._are_numbers(column):
            try:
                data = data.cast(arrow.float64(), safe=False)
            except arrow.ArrowException:
                return None
        found = to_numpy(data)
        gone = np.isnan(found)
        if not gone.any():
            return Cells(found)
        return None if is_text else Cells(found, gone)

    def like(self, column: int, pattern: re.Pattern[str]) -> int | None:
        """The first row whose cell, which is text, is as a pattern says."""
        import pyarrow.compute as compute

        data = self.columns[column]
        if data is None or self._are_numbers(column):
            return self.slow.like(column, pattern)
        found = to_numpy(compute.match_substring_regex(data, f"^(?:{pattern.pattern})$"))
        return int(found.argmax()) if found.any() else None

    def where(self, row: int, column: int) -> dict[str, Any]:
        """The line of the file, and the field in it."""
        return self.slow.where(row, column)


def _around_fields(text: bytes, separator: str) -> bool:
    """Whether every quote stands at one end of a field: neither within one, nor behind a blank."""
    import numpy as np

    found = np.frombuffer(b"\n" + text + b"\n", np.uint8)
    ends = (found == ord(separator)) | (found == ord("\n"))
    at = found[1:-1] == ord('"')
    return not (at & (ends[:-2] == ends[2:])).any()


def text_batch(
    text: str,
    dialect: Dialect,
    name: str,
    slowly: Callable[[], CellTable],
    numbers: Collection[str] | None = None,
) -> TextTable | None:
    """Lines without remarks, cut by Arrow; None where it is not there or reads something else.

    Quotes are for Arrow where they stand around whole fields. numbers: the only columns that are wanted, as
    numbers; None for all, as text.
    """
    if dialect.separator is None or dialect.trailing or not dialect.names:
        return None
    if dialect.cuts or dialect.joined is not None:
        return None
    quotes, body = '"' in text, text.encode()
    if quotes and (dialect.width < 2 or not _around_fields(body, dialect.separator)):
        return None
    try:
        import pyarrow as arrow
        import pyarrow.csv as csv
    except ImportError:
        return None
    names = [str(k) for k in range(dialect.width)]
    kind, wanted = arrow.string(), names
    if numbers is not None:
        kind, wanted = arrow.float64(), [names[dialect.names.index(n)] for n in numbers]
    try:
        found = csv.read_csv(
            arrow.BufferReader(body),
            read_options=csv.ReadOptions(
                column_names=names, use_threads=False, block_size=max(4 * len(text), 1 << 16)
            ),
            parse_options=csv.ParseOptions(
                delimiter=dialect.separator,
                quote_char='"' if quotes else False,
                newlines_in_values=quotes,
            ),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(wanted, kind),
                include_columns=wanted,
                null_values=[],
                strings_can_be_null=False,
            ),
        )
    except (
        arrow.ArrowException
    ):  # lines of another length: said line by line; cells that are no numbers
        return None
    if not found.num_rows:
        return None
    read = dict(zip(wanted, (column.combine_chunks() for column in found.columns), strict=True))
    columns = [read.get(one) for one in names]
    if numbers is None and (not text.isascii() or quotes or any(b in text for b in _BLANKS)):
        import pyarrow.compute as compute

        columns = [compute.utf8_trim_whitespace(column) for column in columns]
    return TextTable(name, dialect.names, columns, slowly, True, dialect)


class Records:
    """Reads lines of JSON by Arrow, as far as it reads what Python's reader does.

    names: of the objects so far, which are all that there are. texts: those of them that hold text, which
    Arrow would take for dates.
    """

    def __init__(self, name: str, names: Sequence[str]) -> None:
        self.name, self.names, self.texts = name, list(names), set[str]()

    def batch(self, text: str, slowly: Callable[[], CellTable]) -> TextTable | None:
        """The table of some lines; None where Arrow is not there, or would read something else."""
        body = text.strip(" \t\r\n")
        ends = body.count("}\n{")  # a newline anywhere else is within an object, or beside one
        if body[:1] != "{" or body[-1:] != "}" or ends != body.count("\n"):
            return None
        try:
            import pyarrow as arrow
        except ImportError:
            return None
        try:
            found = self._read(arrow, body.encode())
        except arrow.ArrowException:  # said line by line
            return None
        if found.num_rows != ends + 1 or not set(found.column_names) <= set(self.names):
            return None
        columns = []
        for name in self.names:
            there = name in found.column_names
            column = found[name].combine_chunks() if there else arrow.nulls(found.num_rows)
            if not _is_plain(arrow.types, column):
                return None
            columns.append(column)
        return TextTable(self.name, self.names, columns, slowly, False)

    def _read(self, arrow: Any, body: bytes) -> Any:
        import pyarrow.json as json

        while True:
            schema = arrow.schema([(name, arrow.string()) for name in sorted(self.texts)])
            found = json.read_json(
                arrow.BufferReader(body),
                read_options=json.ReadOptions(use_threads=False, block_size=len(body) + 1),
                parse_options=json.ParseOptions(explicit_schema=schema),
            )
            dates = {f.name for f in found.schema if arrow.types.is_timestamp(f.type)}
            if not dates:
                return found
            self.texts |= dates


def _is_plain(types: Any, column: Any) -> bool:
    """Whether a column is what Python reads: nothing nested, and if floats, none that Python keeps as it is
    written in an integer: those beyond 2**53, and -0."""
    import numpy as np

    if not types.is_floating(column.type):
        return not types.is_nested(column.type)
    found = to_numpy(column)
    return not (np.abs(found) >= 1 << 53).any() and not ((found == 0) & np.signbit(found)).any()


# -- parts of files -------------------------------------------------------------------------------
def _worded(
    name: str, kind: str, error: Exception, path: str | None = None, group: int | None = None
) -> Exception:
    """What is wrong with a file. path: of a Parquet file, of which the row group at fault is looked for."""
    words = " ".join(str(error).split())[:100]
    if isinstance(error, MemoryError):
        return MemoryError(words)
    if isinstance(error, FileNotFoundError):
        return TableError(f"{name}: the file no longer exists")
    if type(error).__name__ == "ArrowNotImplementedError" and group is None:
        return TableError(
            f"{name}: has a column that pyarrow cannot read ({words})",
            hint="write the file without it, or as Parquet, of which the other columns can be read",
        )
    if kind == "arrows":
        return TableError(f"{name}: not a stream of Arrow's ({words})")
    if path is not None and group is None:
        group = _broken_group(path)
    if group is not None:
        return TableError(
            f"{name}: row group {group + 1} cannot be read ({words})", hint="the file is damaged"
        )
    return TableError(f"{name}: not a {kind.title()} file ({words})")


def _broken_group(path: str) -> int | None:
    """The first row group of a Parquet file that cannot be read, by its number."""
    import pyarrow.parquet as parquet

    arrow, group = pyarrow(path), None
    try:
        with parquet.ParquetFile(path) as reader:
            for group in range(reader.metadata.num_row_groups):
                for _ in reader.iter_batches(row_groups=[group], use_threads=False):
                    pass
    except (arrow.ArrowException, OSError, ValueError):
        return group
    return None


def row_groups(file: Opened) -> tuple[list[str], list[int]]:
    """The names of a Parquet file's columns, and the rows of its row groups."""
    arrow = pyarrow(file.name)
    import pyarrow.parquet as parquet

    try:
        with parquet.ParquetFile(file.path) as reader:
            metadata = reader.metadata
            counts = [metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)]
            return list(reader.schema_arrow.names), counts
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise _worded(file.name, "parquet", error) from None


@lru_cache(16)
def _footer(path: str, stamp: Stamp | None) -> Any:
    """The metadata of a Parquet file, read once for all of its row groups, as long as it stays as it is."""
    import pyarrow.parquet as parquet

    return parquet.read_metadata(path)


def row_group(
    path: str,
    number: int,
    columns: Sequence[str],
    rows: int,
    start: int,
    reading: Reading | None = None,
) -> Iterator[ArrowTable]:
    """The batches of a row group, of which no more is in memory than a batch takes."""
    import os

    arrow = pyarrow(path)
    import pyarrow.parquet as parquet

    full = os.path.expanduser(path)
    try:
        reader = parquet.ParquetFile(full, metadata=_footer(full, stamp(full)), **_BY_PAGES)
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise _worded(path, "parquet", error) from None
    try:
        with reader:
            for batch in reader.iter_batches(
                rows, row_groups=[number], columns=list(columns) or None, use_threads=False
            ):
                yield ArrowTable(path, batch, start, reading)
                start += batch.num_rows
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise _worded(path, "parquet", error, full, number) from None


def feather_rows(file: Opened) -> tuple[list[str], int]:
    """The names of a Feather file's columns, and how many rows it has."""
    arrow = pyarrow(file.name)
    import pyarrow.dataset as dataset

    try:
        found = dataset.dataset(file.path, format="ipc")
        return list(found.schema.names), found.count_rows()
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise _worded(file.name, "feather", error) from None
