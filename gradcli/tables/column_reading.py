"""`FILE:COLUMNS`: what a file holds, or columns of it by name; many files by a pattern as one table."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any

from gradcli.tables import delimited
from gradcli.tables.columns import Tell, is_pattern, own, places, select, words
from gradcli.tables.delimited import Dialect, Row
from gradcli.tables.named_columns import (
    ArrayTable,
    Cells,
    CellTable,
    KeyedTable,
    PartlyRead,
    Table,
    chosen,
    side_by_side,
    stacked,
    without_spread,
)
from gradcli.tables.reading_options import Reading
from gradcli.tables.sniffing import (
    LETTERS,
    Blocks,
    clocks_of,
    footer_begins,
    sniff,
    tell_footer,
    tell_total,
)
from gradcli.tables.source import ENDINGS, PACKED, STANDARD_INPUT, Opened, kind_by_ending, opened
from gradcli.tables.table_errors import TableError, other_columns

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


class Expression(str):
    """A line of standard input that is to be read as a value of the language."""

    __slots__ = ()


class Json:
    """A value of JSON that is not a table."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Text:
    """Text that is not cut into cells yet: what is a header depends on what is asked for.

    one: its only line, if that is a value of the language.
    """

    __slots__ = ("kind", "name", "one", "text")

    def __init__(self, name: str, kind: str, text: str, one: str | None) -> None:
        self.name, self.kind, self.text, self.one = name, kind, text, one


class Reader:
    """The files of one command line, each read once.

    stdin: what `-` reads. missing: error, nan or skip (see `named_columns.chosen`). references: every
    `FILE:COLUMNS` that will be asked for, so that `skip` leaves the same rows out of all columns of a
    file. tell: takes remarks about how names of columns are read (see `columns.column`). reading: how texts
    are read.
    """

    def __init__(
        self,
        stdin: IO[Any] | None = None,
        missing: str = "error",
        references: Sequence[str] = (),
        tell: Tell | None = None,
        reading: Reading | None = None,
    ) -> None:
        self.stdin, self.missing, self.tell = stdin, missing, tell
        self.reading = reading or Reading(tell=tell)
        self.references = [split(reference) for reference in references]
        self._contents: dict[str, Any] = {}
        self._tables: dict[tuple[str, bool], Table] = {}
        self._left: set[str] = set()  # files of which it was said that rows are left out
        self._ahead: dict[str, Any] = {}  # values that were read for their uncertainties

    def value(self, reference: str) -> Any:
        """An array, a nested list (Json) or an Expression. Raises TableError and OSError.

        Cells that have uncertainties are refused unless somebody asked for these (`spread`) before.
        """
        if reference in self._ahead:
            return self._ahead.pop(reference)
        found = self._value(reference)
        return without_spread(found, reference) if isinstance(found, Cells) else found

    def spread(self, reference: str) -> Array | None:
        """The standard uncertainties that cells have; None where none has one."""
        found = self._value(reference)
        self._ahead[reference] = found.numbers if isinstance(found, Cells) else found
        return found.spread if isinstance(found, Cells) else None

    def _value(self, reference: str) -> Any:
        pattern, wanted = split(reference)
        paths = matching(pattern)
        if wanted is None:
            if len(paths) > 1:
                return self._whole([self._table(path, None) for path in paths])
            return self._everything(paths[0])
        contents = [self._content(path) for path in paths]
        if len(paths) == 1 and not _is_table(contents[0]):
            return _member(contents[0], wanted, paths[0])
        tables = self.tables(pattern, wanted)
        columns, is_matrix = self._selected(tables, wanted)
        also: list[list[int]] = []
        if self.missing == "skip":
            others = [w for p, w in self.references if p == pattern and w is not None]
            found = [self._selected(tables, other)[0] for other in others]
            also = [[i for one in found for i in one[k]] for k in range(len(tables))]
        cells = chosen(tables, columns, self.missing, also, self._left_out(pattern))
        return side_by_side(cells) if is_matrix else cells[0]

    def _left_out(self, name: str) -> Tell | None:
        """What takes the remark that rows of a file are left out, once."""
        if self.tell is None or name in self._left:
            return None
        self._left.add(name)
        return self.tell

    def _selected(self, tables: Sequence[Table], wanted: str) -> tuple[list[list[int]], bool]:
        """The columns of each table that a text means, which have the same names in all of them."""
        first = tables[0]
        found = select(first.name, first.names, wanted, self.tell, first.width)
        names = [_titles(first)[i] for i in found.columns]
        columns = [found.columns]
        for table in tables[1:]:
            columns.append(select(table.name, table.names, wanted, self.tell, table.width).columns)
            if [_titles(table)[i] for i in columns[-1]] != names:
                raise other_columns(table.name, table.names, first.names)
        return columns, found.is_matrix

    def tables(self, pattern: str, wanted: str = "*") -> list[Table]:
        """The tables that a path or a pattern names, read for their columns' names."""
        paths = matching(pattern)
        keys = folder_keys(pattern, paths)
        tables = [self._table(path, wanted) for path in paths]
        return [KeyedTable(t, keys[p]) if keys else t for p, t in zip(paths, tables, strict=True)]

    def columns(
        self, tables: Sequence[Table], names: Sequence[str], wanted: Sequence[int]
    ) -> dict[str, Array]:
        """Columns of tables that follow each other, by name."""
        tell = self._left_out(tables[0].name)
        cells = chosen(tables, [list(wanted)] * len(tables), self.missing, tell=tell)
        found = zip(wanted, cells, strict=True)
        return {names[i]: without_spread(one, names[i]) for i, one in found}

    # -- one file --------------------------------------------------------------------------------
    def _content(self, path: str) -> Any:
        if path not in self._contents:
            file = opened(path, self.stdin, self.reading)
            try:
                self._contents[path] = read_open(file)
                file.check()
            finally:
                if file.kind != "npz":  # whose members are read when they are asked for
                    file.close()
        return self._contents[path]

    def _table(self, path: str, wanted: str | None) -> Table:
        """The file as a table; TableError where it is none."""
        key = (path, wanted is not None)
        if key not in self._tables:
            content = self._content(path)
            if isinstance(content, Text):
                known = {wanted, *(word for word, _ in words(wanted))} if wanted else set()
                asked = None if wanted is None else lambda head: not known.isdisjoint(head)
                self._tables[key] = text_table(content, asked, self.reading)
            elif isinstance(content, Table):
                self._tables[key] = content
            else:
                raise TableError(f"{path}: this is not a table of rows")
        return self._tables[key]

    def _everything(self, path: str) -> Any:
        from gradcli.tables.numpy_files import Archive

        content = self._content(path)
        if isinstance(content, Text) and content.one is not None:
            return Expression(content.one)
        if isinstance(content, Archive):
            if len(content.names) == 1:
                return content.member(content.names[0])
            listed = ", ".join(content.names) or "none"
            raise TableError(
                f"{content.name}: say which array", hint=f"`{path}:NAME`, with NAME one of {listed}"
            )
        if isinstance(content, (Text, Table)):
            return self._whole([self._table(path, None)])
        return content

    def _whole(self, tables: list[Table]) -> Any:
        """All columns: a matrix; one row or one column a vector, one number a number."""
        for table in tables[1:]:
            if table.width != tables[0].width:
                raise TableError(
                    f"{table.name} has {table.width} columns, and {tables[0].name} {tables[0].width}"
                )
        columns = [own(table.names, table.width, table.index) for table in tables]
        if len(tables) == 1 and _is_labelled(tables[0]):
            columns[0].remove(0)
            if self.tell is not None:
                self.tell(
                    f"{tables[0].name}: its first column has the names of the others, as rows"
                )
        index = [n for n in tables[0].index if n in tables[0].names]
        if index and self.tell is not None and len(columns[0]) < tables[0].width:
            word, is_it = ", ".join(index), "is the index" if len(index) == 1 else "are the index"
            self.tell(
                f"{tables[0].name}: {word} {is_it} of a data frame, and left out; `:NAME` reads a column"
            )
        cells = chosen(tables, columns, self.missing, tell=self._left_out(tables[0].name))
        found = cells[0] if len(cells) == 1 else side_by_side(cells)
        return found if len(found.numbers) != 1 else found.taken(0)


def _is_labelled(table: Table) -> bool:
    """Whether the first column has the names of the others, as that of a covariance of a data frame's."""
    others = table.names[1:]
    return bool(others) and table.rows == len(others) and table.cells(0) == others


def _titles(table: Table) -> list[str]:
    """What the columns are called: by their places, where they have no names."""
    return table.names or places(table.width)


def _is_table(content: Any) -> bool:
    return isinstance(content, (Text, Table))


def read_open(file: Opened) -> Any:
    """What a file holds: an array, an archive, a table, text or a value of JSON."""
    if file.kind == "npy":
        from gradcli.tables.numpy_files import field_columns, field_names, read_array

        array = read_array(file)
        if array.dtype.names is None:
            return array
        columns = [column.ravel() for column in field_columns(array)]
        return ArrayTable(file.name, field_names(array.dtype), columns)
    if file.kind == "npz":
        from gradcli.tables.numpy_files import Archive

        return Archive(file)
    if file.kind in ("parquet", "feather", "arrows"):
        from gradcli.tables.arrow import read_arrow

        return read_arrow(file)
    return _read_text(file)


def _read_text(file: Opened) -> Any:
    text = file.text()
    body = text.strip()
    if not body:
        raise TableError(f"{file.name} is empty")
    kind = file.kind
    told = kind not in ("", "text")  # by its ending
    one = None if told or "\n" in body else body
    if kind in ("json", "jsonl") or (not told and body[0] in "[{"):
        from gradcli.tables.json_records import looks_like_lines

        if kind != "jsonl":
            kind = "jsonl" if body[0] == "{" and looks_like_lines(body) else "json"
        try:
            found = _read_json(text, file.name, kind)
            if isinstance(found, CellTable):
                found.clocks = clocks_of(found, file.reading)
            return found
        except TableError:
            if one is None or body[0] == "{":
                raise
    elif one is not None and file.path is not None and delimited.is_row(one, file.name):
        one = None
    return Text(file.name, file.kind, text, one)


def _read_json(text: str, name: str, kind: str) -> Any:
    from gradcli.tables.json_records import (
        from_records,
        is_records,
        json_lines,
        of_lists,
        parse_json,
    )

    if kind == "jsonl":
        found, numbered = json_lines(text.split("\n"), name)
        return from_records(found, name, numbered) if is_records(found) else Json(found)
    value = parse_json(text, name)
    if is_records(value):
        return from_records(value, name)
    return of_lists(value, name) or Json(value)


def text_table(text: Text, asked: Any, reading: Reading) -> Table:
    """The cells of a text. asked: see `delimited.plain`."""
    long = _long_numbers(text, asked, reading)
    return _cut(text, asked, reading) if long is None else long


def _cut(text: Text, asked: Any, reading: Reading) -> Table:
    """The cells, line by line."""
    lines, how = text.text.split("\n"), reading.how
    if how.block is not None:
        lines = Blocks(how.block).only(lines)
    dialect = sniff(lines, text.name, text.kind, asked, reading)
    assert dialect is not None
    end = min(footer_begins(lines, dialect, how), _stated(lines, dialect.first_row))
    left_out = 0
    if end < len(lines):
        tell_footer(lines[end:], end + 1, text.name, reading)
        left_out = next((k for k in range(len(lines), end, -1) if lines[k - 1].strip()), end) - end
        lines = lines[:end]
    tell_total(
        next((line for line in reversed(lines) if line.strip()), ""), dialect, text.name, reading
    )
    if (found := _numbers_only(lines, text.name, dialect)) is not None:
        return found
    dialect.quoted = dialect.quoted or any('"' in line for line in lines)
    rows = list(delimited.rows_of(lines, dialect, text.name))
    return cell_table(rows, dialect, text.name, lines, left_out=left_out)


def _stated(lines: Sequence[str], first: int) -> int:
    """The place of the line below the rows that says that they end there; else the count of all lines."""
    from gradcli.tables.text_layout import stated_end

    text = "\n".join(lines[first:])
    at = stated_end(text)
    return len(lines) if at is None else first + text.count("\n", 0, at)


def cell_table(
    rows: list[Row],
    dialect: Dialect,
    name: str,
    lines: Sequence[str],
    first: int = 1,
    lenient: bool = False,
    left_out: int = 0,
) -> CellTable:
    """A table of the fields of lines. left_out: how many lines of the file are below these.

    lenient: rows of another length are in the table's `bad`, instead of an error.
    """
    bad: dict[int, TableError] = {}
    fitted: list[list[str]] = []
    for index, row in enumerate(rows):
        try:
            fitted.append(delimited.fitted(row, dialect, name))
        except TableError as error:
            if 0 <= row[0] - first < len(lines):
                error.line = lines[row[0] - first]
                if not bad:
                    more = any(len(fields) == dialect.width for _, fields in rows[index + 1 :])
                    below = None if lenient else left_out
                    _tell_below(error, lines, row[0] - first, first, below, more)
            if not lenient:
                raise
            bad[index] = error
            fitted.append([*row[1], *[""] * dialect.width][: dialect.width])
    columns: list[Sequence[Any]] = list(zip(*fitted, strict=True)) if fitted else []
    columns = columns or [[] for _ in range(dialect.width)]
    numbered = [number for number, _ in rows]
    made = CellTable(
        name,
        dialect.names or [],
        columns,
        numbered=numbered,
        source=lines,
        first=first,
        dialect=dialect,
    )
    made.bad = bad
    return made


def _tell_below(
    error: TableError, lines: Sequence[str], at: int, first: int, below: int | None, more: bool
) -> None:
    """Say of a line that is no row what leaves it out, and how another table below it is read.

    at: its place in the lines. first: the number of the first of them. below: how many lines of the file are
    below these; None where that is not known. more: whether rows are below it.
    """
    from gradcli.tables.text_layout import table_below

    there = [k for k, line in enumerate(lines) if line.strip()]
    count = "N" if below is None else there[-1] - at + 1 + below
    row = table_below(lines[at : at + _LOOKED_BELOW], "")
    if row:
        error.hint = (
            f"another table is below, with rows from line {first + at + row}: --skip-lines "
            f"{first + at - 1} reads it; --skip-footer {count} reads what is above"
        )
    elif below is not None and not more and count != 1:
        error.hint = f"no row is below it: --skip-footer {count} leaves it out, with all below"


_LOOKED_BELOW = 2000  # lines
_LONG = 1 << 20  # letters


def _long_numbers(text: Text, asked: Any, reading: Reading) -> Table | None:
    """The columns of numbers of a long text, without cutting it; None where each line has to be looked at."""
    if len(text.text) < _LONG or reading.how.block is not None or reading.how.footer:
        return None
    head = text.text[: 2 * LETTERS].split("\n")[:-1]
    dialect = sniff(head, text.name, text.kind, asked, reading) if len(head) > 1 else None
    if dialect is None or dialect.trailing or dialect.cuts or dialect.clocks:
        return None
    if not dialect.is_python or dialect.joined is not None or dialect.separator is None:
        return None
    import numpy as np

    from gradcli.tables.decimals import columns
    from gradcli.tables.text_layout import stated_end

    numeric = sorted(dialect.numeric)
    at = 0
    for _ in range(dialect.first_row - 1):
        at = text.text.index("\n", at) + 1
    end, pieces = len(text.text.rstrip("\n")), []
    while at < end and numeric:
        stop = end if end - at <= _LONG else text.text.rfind("\n", at, at + _LONG) + 1
        part = text.text[at:stop]
        # What has quotes, remarks, or a line that says that the table ends is cut line by line.
        if not part or '"' in part or any(sign in part for sign in dialect.remarks):
            return None
        found = columns(part.encode(), dialect.separator, dialect.width, numeric)
        if found is None or stated_end(part) is not None:
            return None
        pieces.append(found)
        at = stop
    if not pieces:
        return None
    arrays: list[Any] = [None] * dialect.width
    for column, parts in zip(numeric, zip(*pieces, strict=True), strict=True):
        arrays[column] = np.concatenate(parts)
    names = dialect.names or []
    if len(numeric) == dialect.width:
        return ArrayTable(text.name, names, arrays)
    return PartlyRead(text.name, names, arrays, lambda: _cut(text, asked, reading))


def _numbers_only(all_lines: Sequence[str], name: str, dialect: Dialect) -> Table | None:
    """A long table of nothing but numbers, through NumPy's reader; None where that stops half-way."""
    import numpy as np

    if dialect.quoted or len(all_lines) < 200 or dialect.trailing or dialect.cuts:
        return None
    if not dialect.is_python or dialect.clocks or dialect.joined is not None:
        return None
    below = all_lines[max(dialect.first_row - 1, 0) :]
    if dialect.remarks and any(line.lstrip()[:1] in dialect.remarks for line in below if line):
        return None
    lines = [line for line in below if line and not line.isspace()]
    separator, width = dialect.separator, dialect.width
    if separator is None:
        lines = [",".join(line.split()) for line in lines]
    elif separator != ",":
        if any("," in line for line in lines):
            return None
        lines = [line.replace(separator, ",") for line in lines]
    if not lines or any(line.count(",") != width - 1 for line in lines):
        return None
    found = numpy_numbers(",".join(lines))
    if found is None or found.size != width * len(lines) or np.isnan(found).any():
        return None
    matrix = found.reshape(len(lines), width)
    return ArrayTable(name, dialect.names or [], list(matrix.T))


_BLANK_CELL = re.compile(r"(?:^|,)\s*(?:,|$)")


def numpy_numbers(text: str) -> Any:
    """A long list of numbers through NumPy's own reader, or None where that stops half-way."""
    import warnings

    import numpy as np

    body = text.rstrip()
    body = body.removesuffix(",")
    # Of a cell of blanks NumPy's reader makes -1.
    if any(blank in body for blank in " \t\n\r\f\v") and _BLANK_CELL.search(body):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        try:
            found = np.fromstring(body, dtype=np.float64, sep=",")
        except (DeprecationWarning, ValueError):
            return None
    return found if found.size == body.count(",") + 1 else None


def _member(content: Any, wanted: str, path: str) -> Any:
    """A member of an archive or of a JSON text, or several of them side by side."""
    from gradcli.tables.numpy_files import Archive

    if isinstance(content, Archive):
        names = content.names
        if wanted in names:
            return content.member(wanted)
        if len(words(wanted)) > 1 or is_pattern(wanted):
            some = [names[i] for i in select(content.name, names, wanted).columns]
            return _side_by_side([(name, content.member(name)) for name in some])
        listed = ", ".join(names) or "none"
        raise TableError(
            f"{content.name}: there is no array {wanted!r}",
            hint=f"`{path}:NAME`, with NAME one of {listed}",
            wrong=wanted,
            known=tuple(names),
        )
    if isinstance(content, Json):
        value = content.value
        if isinstance(value, dict) and wanted in value:
            return Json(value[wanted])
        several = [word for word, _ in words(wanted)]
        if len(several) > 1:
            return _side_by_side([(word, _key(value, word, path)) for word in several])
        return Json(_key(value, several[0], path))
    raise TableError(f"{path} has no names of columns", hint=f"`{path}` alone reads all of it")


def _key(value: Any, wanted: str, name: str) -> Any:
    for part in wanted.split("."):
        if not isinstance(value, dict) or part not in value:
            listed = ", ".join(value) if isinstance(value, dict) else "none"
            raise TableError(f"{name}: there is no key {part!r}", hint=f"its keys are: {listed}")
        value = value[part]
    return value


def _side_by_side(found: list[tuple[str, Any]]) -> Any:
    import numpy as np

    arrays = []
    for name, value in found:
        try:
            array = np.asarray(value)
        except (ValueError, OverflowError):
            array = np.empty((0, 0), object)
        if array.ndim != 1 or array.dtype.kind not in "biufc":
            raise TableError(f"{name} is not a column of numbers")
        arrays.append(array)
        if len(array) != len(arrays[0]):
            raise TableError(
                f"{name} has {len(array)} values, and {found[0][0]} has {len(arrays[0])}"
            )
    return stacked(arrays)


# -- FILE:COLUMNS ---------------------------------------------------------------------------------
def split(reference: str) -> tuple[str, str | None]:
    """The file's name, and what stands behind its colon: columns, a key, a member."""
    if not reference:
        raise TableError("a file's name is missing after `@`")
    if ":" not in reference or _is_there(reference):
        return reference, None
    drive = reference[1:3] in (":\\", ":/") and not _is_there(reference[0])  # as in C:\data.csv
    cuts = [i for i, letter in enumerate(reference) if letter == ":" and not (drive and i == 1)]
    for cut in cuts:
        if cut and (_is_there(reference[:cut]) or _ends_like_a_file(reference[:cut])):
            path, rest = reference[:cut], reference[cut + 1 :]
            return _of_several(path, rest) if _may_have_several(path) and rest else (path, rest)
    return (reference[: cuts[0]], reference[cuts[0] + 1 :]) if cuts else (reference, None)


def _may_have_several(path: str) -> bool:
    """Whether a file's ending is that of one that may have several tables."""
    stem, ending = os.path.splitext(path.lower())
    ending = os.path.splitext(stem)[1] if ending in PACKED else ending
    if ending in _MARKED:
        try:
            with open(os.path.expanduser(path), "rb") as stream:
                return stream.read(8).startswith((b"#F ", b"#S ", b"##TITLE"))
        except OSError:
            return False
    return ending in _SEVERAL or bool(kind_by_ending(path))


def _of_several(path: str, rest: str) -> tuple[str, str | None]:
    from gradcli.tables.foreign_files import divide

    return divide(path, rest, kind_by_ending)


# The endings of `foreign_files`, which nobody else needs to import.
_SEVERAL = frozenset(
    (
        *(".xlsx", ".xlsm", ".xlsb", ".xls", ".ods", ".db", ".sqlite", ".sqlite3", ".h5", ".hdf5"),
        *(".hdf", ".mat", ".tdms", ".raw", ".fits", ".nc", ".zip", ".lvm"),
    )
)
# Those of texts that are files of scans or of spectra by their first bytes.
_MARKED = frozenset(("", ".dat", ".spec", ".spc", ".scan", ".jdx", ".dx", ".jcm"))


def _is_there(path: str) -> bool:
    try:
        return path in STANDARD_INPUT or os.path.exists(os.path.expanduser(path))
    except ValueError:
        return False


def _ends_like_a_file(path: str) -> bool:
    ending = os.path.splitext(path.lower())[1]
    return ending in PACKED or ending in ENDINGS or _may_have_several(path)


def matching(pattern: str) -> list[str]:
    """The files that a pattern or a folder means, in order; the path itself where it is neither."""
    full = os.path.expanduser(pattern)
    if os.path.isdir(full):
        return _in_folder(full)
    if not any(mark in pattern for mark in "*?[") or _is_there(pattern):
        return [pattern]
    import glob

    found = sorted(glob.glob(os.path.expanduser(pattern), recursive=True))
    if not found:
        raise TableError(f"{pattern}: there is no such file")
    return found


def folder_keys(pattern: str, paths: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What the names of folders called `KEY=VALUE` tell of the files in them, as Hive partitions a table.

    Empty where they do not tell it of all files. For a folder those below it count; for a pattern all
    that it names. A key's values are numbers where all of them are written as such.
    """
    full = os.path.expanduser(pattern)
    inside = os.path.isdir(full)
    if not inside and paths == [pattern]:
        return {}
    from urllib.parse import unquote

    found: dict[str, dict[str, Any]] = {}
    for path in paths:
        folders = os.path.dirname(os.path.relpath(path, full) if inside else path).split(os.sep)
        pairs = [name.partition("=") for name in folders if "=" in name]
        found[path] = {
            key: None if value == _NO_VALUE else unquote(value) for key, _, value in pairs if key
        }
    known = set.intersection(*(set(keys) for keys in found.values()))
    for key in next(iter(found.values())):
        if key in known:
            values = {keys[key] for keys in found.values()} - {None}
            read: Any = next((r for p, r in _KEY_TYPES if all(map(p.fullmatch, values))), str)
            for keys in found.values():
                keys[key] = None if keys[key] is None else read(keys[key])
    for path, keys in found.items():
        found[path] = {key: value for key, value in keys.items() if key in known}
    return found if known else {}


_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_KEY_TYPES = (
    (re.compile(r"-?\d{1,18}"), int),
    (re.compile(r"-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?"), float),
)


def _in_folder(folder: str) -> list[str]:
    """The tables in a folder and in its partitions, folders called `KEY=VALUE`; no other is looked into.

    What begins with . or _ is somebody's remark.
    """
    found, waiting = [], [folder]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.name[:1] in "._":
                    continue
                if entry.is_dir():
                    waiting += [entry.path] if "=" in entry.name else []
                elif _ends_like_a_file(entry.name):
                    found.append(entry.path)
    if not found:
        below = os.path.join(folder, "**", "*.parquet")
        raise TableError(
            f"{folder}: there is no table in this folder",
            hint=f"a pattern names those in folders below it: '@{below}'",
        )
    return sorted(found)
