"""Tables out: columns, batch by batch, as CSV, TSV, JSON lines, Parquet, Feather or NumPy's format."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

from gradcli.engine.system.visible import visible
from gradcli.tables.line_cells import LineCells, whole_lines
from gradcli.tables.table_errors import TableError

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

FORMATS = ("csv", "tsv", "jsonl", "parquet", "feather", "npy")
_ENDINGS = {
    **{f".{name}": name for name in FORMATS},
    ".tab": "tsv",
    ".ndjson": "jsonl",
    ".pq": "parquet",
    ".arrow": "feather",
    ".ipc": "feather",
}
Column = tuple[
    str, Any
]  # a name, and an array of numbers, a list of cells, or text in Arrow's array
_FEW_ROWS = 64  # of which cells are written one by one
_GROUP, _GROUP_BYTES = 1 << 20, 1 << 26  # rows and bytes of a row group, whichever is reached first
_PLAIN = bytes(range(32, 127)) + b"\n\t"


PACKED = {".gz": "gzip", ".zst": "zstd"}  # behind the ending of a text
_TEXTS = ("csv", "tsv", "jsonl")


def format_of(path: str) -> str | None:
    """The format that a file's ending asks for; of a text that is packed, too."""
    stem, ending = os.path.splitext(path.lower())
    if ending not in PACKED:
        return _ENDINGS.get(ending)
    found = _ENDINGS.get(os.path.splitext(stem)[1])
    return found if found in _TEXTS else None


def packing(path: str, form: str, stream: BinaryIO) -> Any:
    """A stream that packs a text that is written, as the path's ending asks for it; None where it does not.

    It is to be closed before the file. Raises TableError where pyarrow is needed and not there.
    """
    kind = PACKED.get(os.path.splitext(path.lower())[1]) if form in _TEXTS else None
    if kind == "gzip":
        import gzip

        return gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0)  # the same bytes
    if kind is None:
        return None
    from gradcli.tables.table_errors import pyarrow

    arrow = pyarrow(f"{path} is packed with zstd")
    return arrow.CompressedOutputStream(arrow.PythonFile(stream, "w"), kind)


class Sink:
    """Takes columns of equal length, batch after batch; the names of the first batch are those of all.

    paths: where JSON has columns besides, in objects and lists: S.grad at ("wrt", "S", "grad").
    """

    paths: Mapping[str, tuple[str | int, ...]] = {}

    def __init__(
        self, stream: BinaryIO, numerals: Callable[[Any], list[str]], exact: bool = True
    ) -> None:
        self.stream, self.numerals = stream, numerals
        self.exact = exact  # whether `numerals` gives all digits

    def write(self, columns: Sequence[Column]) -> None:
        """Add rows."""
        raise NotImplementedError

    def close(self) -> None:
        """Write what is still to be written; the stream stays open."""
        self.stream.flush()

    def texts(self, data: Any) -> list[str]:
        """The cells of a column as text."""
        if hasattr(data, "to_pylist"):
            data = data.to_pylist()
        if isinstance(data, list):
            return list(map(_spelled, data))
        return self.spelt(data)

    def spelt(self, numbers: Any) -> list[str]:
        """The numbers of an array as text."""
        if self.exact and len(numbers) >= _FEW_ROWS:
            from gradcli.tables.digits import can_spell, texts

            if can_spell(numbers):
                return texts(numbers)
        return self.numerals(numbers)


def _spelled(cell: Any) -> str:
    """A cell that is not a column's number as text."""
    if type(cell) is str:
        return cell
    if cell is None:
        return ""
    if isinstance(cell, float):
        return repr(float(cell)).removesuffix(".0")
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "backslashreplace")
    return _in_json(cell) if isinstance(cell, (list, tuple, dict)) else str(cell)


def _in_json(cell: Any) -> str:
    """A cell in JSON: a number that JSON has no numeral for, a date and the like are strings."""
    import json
    from decimal import Decimal
    from math import isfinite

    if isinstance(cell, dict):
        items = (f"{_in_json(str(k))}: {_in_json(v)}" for k, v in cell.items())
        return "{" + ", ".join(items) + "}"
    if isinstance(cell, (list, tuple)):
        return "[" + ", ".join(map(_in_json, cell)) + "]"
    if isinstance(cell, (float, Decimal)):
        text = repr(float(cell)) if isinstance(cell, float) else str(cell)
        return text if isfinite(cell) else f'"{text.lower()}"'
    is_plain = cell is None or isinstance(cell, (str, bool, int))
    return json.dumps(cell if is_plain else _spelled(cell), ensure_ascii=False)


class Delimited(Sink):
    """CSV and TSV: a header, then a line a row; quotes only where a cell needs them."""

    def __init__(self, stream: BinaryIO, numerals: Any, exact: bool, separator: str) -> None:
        super().__init__(stream, numerals, exact)
        self.separator, self.begun = separator, False

    def write(self, columns: Sequence[Column]) -> None:
        """Add rows."""
        import numpy as np

        begun, self.begun = self.begun, True
        head = self._quoted([name for name, _ in columns])
        header = [] if begun else [self.separator.join(head)]
        if (blocks := self._as_lines(columns)) is not None:
            if header:
                self.stream.write((visible(header[0]) + "\n").encode())
            for block in blocks:
                self.stream.write(block)
            self.stream.flush()
            return
        columns = [(name, d.cells() if isinstance(d, LineCells) else d) for name, d in columns]
        if begun and (found := self._quickly(columns)) is not None:
            self.stream.write(found)
            self.stream.flush()
            return
        lines = header
        cells = [
            self.texts(data) if isinstance(data, np.ndarray) else self._quoted(self.texts(data))
            for _, data in columns
        ]
        lines.extend(map(self.separator.join, zip(*cells, strict=True)))
        if lines:
            self.stream.write((visible("\n".join(lines)) + "\n").encode())
            self.stream.flush()

    def _as_lines(self, columns: Sequence[Column]) -> Iterable[Any] | None:
        """The text of whole lines of the table and numbers behind them; None of what is not that."""
        if not self.exact or not columns or len(columns[0][1]) < _FEW_ROWS:
            return None
        from gradcli.tables.assembled_lines import can_assemble, lines_with_numbers

        data = [d for _, d in columns]
        own = whole_lines(data, self.separator)
        numbers = data if own is None else data[data[0].width :]
        return (
            lines_with_numbers(own, numbers, self.separator) if can_assemble(own, numbers) else None
        )

    def _quickly(self, columns: Sequence[Column]) -> bytes | None:
        """The lines of many rows through Arrow, the same to the byte; None where that is not to be had."""
        import numpy as np

        if (
            not self.exact or "pyarrow" not in sys.modules
        ):  # its import pays where it read the table
            return None
        try:
            import pyarrow as arrow
            import pyarrow.compute as compute
        except ImportError:
            return None
        from gradcli.tables.arrow import from_numpy, from_texts, letters

        separator, quote, newline, nothing = from_texts([self.separator, '"', "\n", ""])
        cells, plain = [], True
        marks = (b'"', b"\n", self.separator.encode())
        for _, data in columns:
            if isinstance(data, list):
                try:
                    data = from_texts(self.texts(data))
                except UnicodeEncodeError:
                    return None
            if not hasattr(data, "to_pylist") or not arrow.types.is_string(data.type):
                cells.append(self._numerals(arrow, data))
                continue
            data = data.combine_chunks() if isinstance(data, arrow.ChunkedArray) else data
            data = data.fill_null(nothing) if data.null_count else data
            written = letters(data)
            plain = plain and not written.translate(None, _PLAIN)
            if any(mark in written for mark in marks):
                needs = compute.match_substring_regex(data, f'["\n{self.separator}]')
                inside = compute.replace_substring(data, '"', '""')
                whole = compute.binary_join_element_wise(quote, inside, quote, nothing)
                data = compute.if_else(needs, whole, data)
            cells.append(data)
        rows = compute.binary_join_element_wise(*cells, separator)
        if not len(rows):
            return b""
        ends = from_numpy(np.array([0, len(rows)], np.int32))
        rows = arrow.ListArray.from_arrays(ends, rows)
        found = letters(compute.binary_join(rows, newline)) + b"\n"
        # Beyond printable ASCII: through the gate.
        return found if plain else visible(found.decode()).encode()

    def _numerals(self, arrow: Any, data: Any) -> Any:
        """Numbers as text: Arrow writes what is neither very large nor very small as Python does."""
        import numpy as np

        from gradcli.tables.arrow import from_numpy, from_texts, to_numpy

        if hasattr(data, "to_pylist"):
            if arrow.types.is_integer(data.type):
                return data.cast(arrow.string()).fill_null(from_texts([""])[0])
            if arrow.types.is_floating(data.type) and not data.null_count:
                data = to_numpy(data)
        if isinstance(data, np.ndarray) and data.dtype.kind in "iu":
            return from_numpy(data).cast(arrow.string())
        if not isinstance(data, np.ndarray) or data.dtype != np.float64:
            return from_texts(self.texts(data))
        size = np.abs(data)
        odd = ~(((size >= 1e-4) & (size < 1e9)) | (size == 0))
        text = from_numpy(data).cast(arrow.string())
        if odd.any():
            import pyarrow.compute as compute

            some = from_texts(self.texts(data[odd]))
            text = compute.replace_with_mask(text, from_numpy(odd), some)
        return text

    def _quoted(self, cells: list[str]) -> list[str]:
        needs = (self.separator, '"', "\n")
        if not any(mark in cell for mark in needs for cell in cells):
            return cells
        return [
            '"' + cell.replace('"', '""') + '"' if any(mark in cell for mark in needs) else cell
            for cell in cells
        ]


class JsonLines(Sink):
    """An object a line; numbers that JSON has no numerals for are strings, as everywhere."""

    def write(self, columns: Sequence[Column]) -> None:
        """Add rows."""
        import json

        cells = [
            list(map(_in_json, data)) if isinstance(data, list) else self._numbers(data)
            for _, data in columns
        ]
        known = dict(zip((name for name, _ in columns), cells, strict=True))
        more = {k: _nested(part, known) for k, part in _tree(self.paths).items() if k not in known}
        cells += more.values()
        names = [json.dumps(name, ensure_ascii=False) for name in (*known, *more)]
        lines = [
            "{" + ", ".join([f"{n}: {c}" for n, c in zip(names, row, strict=True)]) + "}"
            for row in zip(*cells, strict=True)
        ]
        if lines:
            self.stream.write((visible("\n".join(lines)) + "\n").encode())
            self.stream.flush()

    def _numbers(self, data: Any) -> list[str]:
        kind = data.dtype.kind
        if kind == "b":
            return ["true" if value else "false" for value in data.tolist()]
        if kind == "c":
            pairs = zip(self._numbers(data.real), self._numbers(data.imag), strict=True)
            return [f"[{a}, {b}]" for a, b in pairs]
        found = self.spelt(data)
        if kind != "f":
            return found
        whole = [t + ".0" if t.lstrip("-").isdigit() else t for t in found]
        return [f'"{t}"' if t[-1:] in "nf" else t for t in whole]


def _tree(paths: Mapping[str, tuple[str | int, ...]]) -> dict[Any, Any]:
    """The paths as objects in each other, whose leaves are the names of columns."""
    found: dict[Any, Any] = {}
    for name, path in paths.items():
        at = found
        for key in path[:-1]:
            at = at.setdefault(key, {})
        at[path[-1]] = name
    return found


def _nested(part: Any, cells: Mapping[str, list[str]]) -> list[str]:
    """The objects, lists and numbers of a part of the tree, one a row. Keys that are numbers make a list."""
    import json

    if isinstance(part, str):
        return cells[part]
    keys = [
        json.dumps(key, ensure_ascii=False) + ": " if isinstance(key, str) else "" for key in part
    ]
    begin, end = "{}" if keys[0] else "[]"
    rows = zip(*(_nested(inner, cells) for inner in part.values()), strict=True)
    return [
        begin + ", ".join([k + c for k, c in zip(keys, row, strict=True)]) + end for row in rows
    ]


class Arrow(Sink):
    """Parquet and Feather, by pyarrow. What a column holds is decided by its first batch."""

    def __init__(self, stream: BinaryIO, numerals: Any, kind: str) -> None:
        super().__init__(stream, numerals)
        from gradcli.tables.table_errors import pyarrow

        self.arrow, self.kind = pyarrow(f"to write {kind.title()}"), kind
        self.schema: Any = None
        self.writer: Any = None
        self.waiting: list[
            Any
        ] = []  # tables that make a row group, with `rows` rows and `size` bytes
        self.rows = self.size = 0

    def write(self, columns: Sequence[Column]) -> None:
        """Add rows."""
        arrow = self.arrow
        names = [name for name, _ in columns]
        try:
            if self.schema is None:
                arrays = [self._array(data) for _, data in columns]
                self.schema = arrow.schema(
                    [arrow.field(n, a.type) for n, a in zip(names, arrays, strict=True)]
                )
                self._open()
            else:
                arrays = [
                    self._array(data, self.schema.field(k).type)
                    for k, (_, data) in enumerate(columns)
                ]
            table = arrow.Table.from_arrays(arrays, schema=self.schema)
            self.waiting.append(table)
            self.rows, self.size = self.rows + table.num_rows, self.size + table.nbytes
            if self.kind != "parquet" or self.rows >= _GROUP or self.size >= _GROUP_BYTES:
                self._flush()
        except (arrow.ArrowException, OverflowError, UnicodeError) as error:
            words = " ".join(str(error).split())
            raise TableError(f"cannot be written as {self.kind.title()}: {words[:200]}") from None

    def _flush(self) -> None:
        if self.waiting:
            self.writer.write_table(self.arrow.concat_tables(self.waiting))
            self.waiting, self.rows, self.size = [], 0, 0

    def _array(self, data: Any, kind: Any = None) -> Any:
        import numpy as np

        from gradcli.tables.arrow import from_numpy, from_texts

        if hasattr(data, "to_pylist"):
            return data if kind is None or data.type == kind else data.cast(kind)
        if isinstance(data, list):
            types = set(map(type, data)) if kind is None else set()
            if types == {str}:
                return from_texts(data)
            array = np.array(data) if types in ({int}, {float}) else None
            if array is None or array.dtype not in (np.int64, np.float64):
                return self.arrow.array(data, type=kind)
            data = array
        if data.dtype.kind == "c":
            raise TableError(f"{self.kind.title()} has no complex numbers")
        made = from_numpy(data)
        return made if kind is None or made.type == kind else made.cast(kind)

    def _open(self) -> None:
        if self.kind == "parquet":
            import pyarrow.parquet as parquet

            class Writer(parquet.ParquetWriter):  # type: ignore[misc]
                def __del__(self) -> None:
                    """Nothing: a file that is given up gets no footer, and its stream is closed by then."""

            self.writer = Writer(self.stream, self.schema)
        else:
            self.writer = self.arrow.ipc.new_file(self.stream, self.schema)

    def close(self) -> None:
        """Write the footer."""
        if self.writer is not None:
            self._flush()
            self.writer.close()
        super().close()


class NumPy(Sink):
    """A structured array. Its header, which says how many rows there are, is written once they are known;
    text, of which the longest is not known before, and what is no file, are held until then.
    """

    def __init__(self, stream: BinaryIO, numerals: Any) -> None:
        super().__init__(stream, numerals)
        self.names: list[str] = []
        self.pieces: list[list[Any]] = []
        self.dtype: Any = None  # of a row, where rows are written as they come
        self.rows = 0

    def write(self, columns: Sequence[Column]) -> None:
        """Add rows."""
        import numpy as np

        arrays = [
            d if isinstance(d, np.ndarray) else np.array(self.texts(d), dtype=str)
            for _, d in columns
        ]
        if not self.names:
            self.names = [name for name, _ in columns]
            if self.stream.seekable() and all(a.dtype.kind in "biufc" for a in arrays):
                fields = zip(self.names, arrays, strict=True)
                self.dtype = np.dtype([(name, a.dtype) for name, a in fields])
                self._header()
        if self.dtype is None:
            self.pieces.append(arrays)
            return
        made = np.empty(len(arrays[0]), self.dtype)
        for name, array in zip(self.names, arrays, strict=True):
            if not np.can_cast(array.dtype, self.dtype[name], "same_kind"):
                raise TableError(
                    f"cannot be written as NumPy: {name} begins as {self.dtype[name]}, "
                    f"but continues as {array.dtype}"
                )
            made[name] = array
        self.stream.write(made.tobytes())
        self.rows += len(made)

    def _header(self) -> None:
        """NumPy leaves room in it for a count of any length, so that it may be written again."""
        from numpy.lib import format as numpy_format

        described = numpy_format.dtype_to_descr(self.dtype)
        header = {"descr": described, "fortran_order": False, "shape": (self.rows,)}
        numpy_format.write_array_header_1_0(self.stream, header)

    def close(self) -> None:
        """Write what is left of the array."""
        import numpy as np

        if self.dtype is not None:
            self.stream.seek(0)
            self._header()
            self.stream.seek(0, os.SEEK_END)
            super().close()
            return
        arrays = [np.concatenate(parts) for parts in zip(*self.pieces, strict=True)]
        made = np.empty(
            len(arrays[0]) if arrays else 0,
            [(name, array.dtype) for name, array in zip(self.names, arrays, strict=True)],
        )
        for name, array in zip(self.names, arrays, strict=True):
            made[name] = array
        save(self.stream, made)
        super().close()


def save(stream: BinaryIO, array: Array) -> None:
    """Write an array in NumPy's format, by the stream: an error of NumPy's own file access says nothing."""
    from types import SimpleNamespace

    import numpy as np

    np.save(SimpleNamespace(write=stream.write), array, allow_pickle=False)


def sink(form: str, stream: BinaryIO, numerals: Callable[[Any], list[str]], exact: bool) -> Sink:
    """What writes this format. numerals: an array's numbers as text; exact: with all their digits."""
    if form in ("csv", "tsv"):
        return Delimited(stream, numerals, exact, "," if form == "csv" else "\t")
    if form == "jsonl":
        return JsonLines(stream, numerals, exact)
    if form == "npy":
        return NumPy(stream, numerals)
    return Arrow(stream, numerals, form)
