"""A table of any length, batch by batch: the first rows are there before the last are read."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import IO, Any

from gradcli.engine.system.freed_memory import keep_freed_blocks
from gradcli.tables import delimited
from gradcli.tables.column_reading import cell_table, folder_keys, matching, read_open
from gradcli.tables.delimited import Dialect
from gradcli.tables.json_records import looks_like_lines
from gradcli.tables.line_counts import newlines
from gradcli.tables.named_columns import ArrayTable, CellTable, KeyedTable, PartlyRead, Table
from gradcli.tables.reading_options import Reading
from gradcli.tables.sniffing import (
    FOOTER,
    LETTERS,
    Blocks,
    clocks_of,
    footer_begins,
    sniff,
    tell_footer,
    tell_remark,
    tell_total,
)
from gradcli.tables.source import Opened, kind_of, opened
from gradcli.tables.table_errors import TableError
from gradcli.tables.text_layout import stated_end

BLOCK = 1 << 20  # bytes of text in a batch
ROWS = 1 << 16  # rows of the other formats in one
_FEW = 1 << 14  # letters, of which cells are looked at one by one
_SHORT = 13  # letters of a cell and its separator, up to which numbers have at most 15 digits or so


class Stream:
    """The batches of one or more files of the same columns. names: of the columns.

    done, size: bytes read and bytes in all, as far as they are known. Rows of another length than the others
    are in the tables' `bad`. numbers: of texts, the columns that will be asked for, as numbers; () for all.
    head: only what is above the rows is asked for: of lines, the one batch has none. dialect: of the lines.
    as_lines: lines are to be passed on as they stand, where that may be; `numbers` are those that are read
    as such, and until they are known, all columns that begin with numbers.
    """

    def __init__(
        self,
        pattern: str,
        stdin: IO[Any] | None = None,
        reading: Reading | None = None,
        numbers: Sequence[str] = (),
        head: bool = False,
        as_lines: bool = False,
    ) -> None:
        self.as_lines = as_lines
        self.reading = reading or Reading()
        self.paths = matching(pattern)
        self.keys = folder_keys(pattern, self.paths)
        self.stdin, self.done = stdin, 0
        self.columns: list[str] | None = None  # of Parquet files, those that are read
        self.numbers, self.head = tuple(numbers), head
        self.dialect: Dialect | None = None
        self._told: int | None = (
            None  # the lines of the text that `_lines` gave, if they were counted
        )
        self.size = sum(map(_size, self.paths)) if all(map(_size, self.paths)) else None
        if (self.size or 0) > 2 * BLOCK:
            keep_freed_blocks()
        self._batches = self._all()
        self._first = next(self._batches, None)
        if self._first is None or not self._first.width:
            raise TableError(
                f"{pattern} has no names of columns",
                hint="write the names of its columns into its first line, as in x,y",
            )
        self.name, self.names = self._first.name, self._first.names
        self.nameless = not self.names
        if self.nameless:
            self.names = [str(k) for k in range(1, self._first.width + 1)]
            self._first.names = self.names

    @property
    def first(self) -> Table | None:
        """The first batch, until it was given."""
        return self._first

    def __iter__(self) -> Iterator[Table]:
        if self._first is not None:
            first, self._first = self._first, None
            yield first
        yield from self._batches

    @property
    def can_select(self) -> bool:
        """Whether columns that nobody asks for need not be read."""
        return all(kind_of(path)[0] == "parquet" for path in self.paths)

    def select(self, columns: list[str]) -> None:
        """Read these columns only, from the start. It must not have been iterated over."""
        self._batches.close()
        self.columns, self.done = columns, 0
        self._batches = self._all()
        self._first = next(self._batches, None)

    def close(self) -> None:
        """Close the file that is being read."""
        self._batches.close()

    def _all(self) -> Generator[Table, None, None]:
        for path in self.paths:
            file = opened(path, self.stdin, self.reading)
            before = self.done
            try:
                for table in self._of(file):
                    yield KeyedTable(table, self.keys[path]) if self.keys else table
                file.check()
            finally:
                file.close()
            self.done = max(self.done, before + (file.size or 0))

    def _of(self, file: Opened) -> Iterator[Table]:
        if file.kind in ("parquet", "feather", "arrows"):
            from gradcli.tables.arrow import arrow_batches

            before = self.done
            for table, share in arrow_batches(file, ROWS, self.columns):
                self.done = before + int(share * (file.size or 0))
                yield table
            return
        if file.kind == "npy" and file.path is not None:
            from gradcli.tables.numpy_files import npy_header, npy_rows

            shape, dtype, _, _ = npy_header(file.path)
            if dtype.names and len(shape) == 1:
                before = self.done
                for rows in npy_rows(file.path, 0, shape[0], ROWS):
                    share = (rows.start + rows.rows) / max(shape[0], 1)
                    self.done = before + int(share * (file.size or 0))
                    yield rows
                return
        if file.kind in ("npy", "npz"):
            yield from _sliced(_array_table(file), ROWS)
            return
        head = _first_letter(file)
        if file.kind == "json" and looks_like_lines(_beginning(file)):
            yield from self._records(file)
        elif file.kind == "json" or (file.kind not in ("csv", "tsv", "jsonl") and head == "["):
            yield from self._list(file, head)
        elif file.kind == "jsonl" or (not file.kind and head == "{"):
            yield from self._records(file)
        else:
            yield from self._delimited(file)

    def _lines(self, file: Opened, quotes: bool = True) -> Iterator[tuple[int, str]]:
        """Whole lines, each block with the number of its first; fields in quotes may have newlines."""
        rest, number = "", 1
        for text in file.texts(self._blocks(file)):
            text = rest + text
            if text.endswith("\r"):  # the newline of which may be in the next block
                rest = text
                continue
            text = text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
            end = text.rfind("\n") + 1
            while quotes and '"' in text and end and text.count('"', 0, end) % 2:
                end = text.rfind("\n", 0, end - 1) + 1
            text, rest = text[:end], text[end:]
            if len(rest) > 64 * BLOCK:
                raise TableError(f"{file.name}, line {number}: this line does not end")
            if text:
                self._told = None
                yield number, text
                number += newlines(text) if self._told is None else self._told
        if rest := rest.rstrip("\r"):
            yield number, rest.replace("\r\n", "\n").replace("\r", "\n")

    def _blocks(self, file: Opened) -> Iterator[bytes]:
        read = getattr(
            file.stream, "read1", file.stream.read
        )  # what is there, without waiting for more
        while block := read(BLOCK):
            self.done += len(block)
            yield block

    def _list(self, file: Opened, head: str) -> Iterator[Table]:
        from gradcli.tables.json_records import from_records, is_records, json_list

        if head != "[":
            table = read_open(file)
            if not isinstance(table, Table):
                raise TableError(f"{file.name}: this is not a table of rows", hint=_RECORDS)
            yield from _sliced(table, ROWS)
            return
        names: list[str] | None = None
        clocks: dict[int, Any] = {}
        start = 0
        for records in json_list(file.texts(self._blocks(file)), file.name):
            if names is None and not is_records(records):
                raise TableError(f"{file.name}: this is not a table of rows", hint=_RECORDS)
            table = from_records(records, file.name, known=names, start=start)
            clocks = clocks_of(table, self.reading) if names is None else clocks
            table.clocks = clocks
            names, start = table.names, start + len(records)
            yield table
        if names is None:
            raise TableError(f"{file.name}: this is not a table of rows", hint=_RECORDS)

    def _records(self, file: Opened) -> Iterator[Table]:
        from gradcli.tables.arrow import Records
        from gradcli.tables.json_records import from_records, json_lines

        names: list[str] | None = None
        clocks: dict[int, Any] = {}
        records: Records | None = None
        for number, text in self._lines(file, quotes=False):
            if not text.strip():
                continue

            def slowly(number: int = number, text: str = text, known: Any = names) -> CellTable:
                found, numbered = json_lines(text.split("\n"), file.name, number)
                made = from_records(found, file.name, numbered, known)
                if known is None:
                    clocks.update(clocks_of(made, self.reading))
                made.clocks = clocks
                return made

            table: Table | None = None
            if names is not None and self.done > BLOCK:  # from there on Arrow's import pays
                records = records or Records(file.name, names)
                table = records.batch(text, slowly)
            table = table or slowly()
            names = names or table.names
            yield table

    def _delimited(self, file: Opened) -> Iterator[Table]:
        dialect: Dialect | None = None
        waiting, start = (
            "",
            1,
        )  # text of which it is not told yet whether it holds rows, and its first line
        blocks = None if self.reading.how.block is None else Blocks(self.reading.how.block)
        texts = self._lines(file)
        last = ""
        for number, text in texts:
            if blocks is not None:
                text = "\n".join(blocks.only(text.split("\n")[:-1])) + "\n"
            if not waiting:
                start = number
            waiting += text
            if dialect is None:
                dialect = self.dialect = self._sniffed(file, waiting, whole=False)
                if dialect is None:
                    continue
                if self.head:
                    yield Table(file.name, dialect.names or [], 0, dialect.width)
                    return
            if (ended := self._ended(waiting, texts, dialect, file.name, start)) is not None:
                yield self._cut(ended, dialect, file.name, start)
                return
            body, waiting = self._without_end(waiting, dialect)
            if body:
                last = body
                made = self._cut(body, dialect, file.name, start)
                if isinstance(made, PartlyRead) and body is text and start >= dialect.first_row:
                    self._told = made.rows  # where each line is a row
                yield made
                if waiting:  # else the next text says its first line
                    start += newlines(body)
        if dialect is None:
            if not waiting.strip():
                raise TableError(f"{file.name} is empty")
            dialect = self.dialect = self._sniffed(file, waiting, whole=True)
            assert dialect is not None
            if (ended := self._ended(waiting, (), dialect, file.name, start)) is not None:
                yield self._cut(ended, dialect, file.name, start)
                return
            body, waiting = self._without_end(waiting, dialect)
            last = body
            yield self._cut(body, dialect, file.name, start)
            start += body.count("\n")
        last = last.rstrip().rpartition("\n")[2]
        tell_total(last, dialect, file.name, self.reading)
        if waiting.strip():
            tell_footer(waiting.split("\n"), start, file.name, self.reading)

    def _ended(
        self,
        text: str,
        below: Iterable[tuple[int, str]],
        dialect: Dialect,
        name: str,
        first: int,
    ) -> str | None:
        """The text above a line that says that the table ends there; None where none does.

        below: the texts that follow, whose lines are told as left out. first: the number of its first line.
        """
        end = stated_end(text, _above(text, dialect.first_row - first))
        if end is None:
            return None
        body, rest = text[:end], text[end:]
        count = sum(more.count("\n") for _, more in below)
        tell_footer(rest.split("\n"), first + body.count("\n"), name, self.reading, count)
        return body

    def _sniffed(self, file: Opened, text: str, *, whole: bool) -> Dialect | None:
        lines = text[: 4 * LETTERS].split("\n") if len(text) > 4 * LETTERS else text.split("\n")
        if not whole and sum(1 for line in lines[: delimited.SAMPLE] if line.strip()) < 2:
            return None
        return sniff(lines, file.name, file.kind, lambda head: False, self.reading, whole)

    def _without_end(self, text: str, dialect: Dialect) -> tuple[str, str]:
        """A text without the lines at its end that may be no rows, and these."""
        how = self.reading.how
        at = len(text) - 1
        for _ in range(how.footer + FOOTER):  # as many lines as may be none
            at = text.rfind("\n", 0, at)
            if at < 0:
                break
        at += 1
        lines = text[at:].split("\n")
        end = footer_begins(lines, dialect, how)
        if end >= len(lines):
            return text, ""
        at += sum(len(line) + 1 for line in lines[:end])
        return text[:at], text[at:]

    def _cut(self, text: str, dialect: Dialect, name: str, first: int) -> Table:
        if "#" in text:
            tell_remark(text.removesuffix("\n").split("\n"), first, dialect, name, self.reading)

        def slowly() -> CellTable:
            lines = text.removesuffix("\n").split("\n")
            dialect.quoted = '"' in text
            rows = list(delimited.rows_of(lines, dialect, name, first))
            return self._named(cell_table(rows, dialect, name, lines, first, lenient=True))

        # Arrow's import pays from a megabyte on; what it does not read as `slowly` does is not for it.
        early = bool(self.numbers) and not self.as_lines and (self.size or 0) > 2 * BLOCK
        pays = self.done > BLOCK or early
        if pays and self.numbers and first < dialect.first_row:  # the header is known by now
            text, first = text[_above(text, dialect.first_row - first) :], dialect.first_row
        found: Table | None
        if self.as_lines and len(text) > _FEW:
            found = self._lines_table(text, dialect, name, first, slowly, pays)
            if found is not None:
                return found
        if first >= dialect.first_row and dialect.names and pays and not _is_marked(text, dialect):
            from gradcli.tables.arrow import text_batch

            if self.numbers and not self.as_lines and _can_be_numbers(dialect, self.numbers):
                # To the same bits: NumPy reads short numbers faster than Arrow does, and it long ones.
                ways: list[Callable[..., Table | None]] = [_by_numpy, text_batch]
                row = text.find("\n", len(text) // 2), text.rfind("\n", 0, len(text) // 2)
                if row[0] - row[1] > _SHORT * dialect.width:
                    ways.reverse()
                for way in ways:
                    found = way(text, dialect, name, slowly, self.numbers)
                    if found is not None:
                        return found
                self.numbers = ()  # some cell is none: as text from here on
            found = text_batch(text, dialect, name, slowly)
            if found is not None:
                return found
        return slowly()

    def _lines_table(
        self,
        text: str,
        dialect: Dialect,
        name: str,
        first: int,
        slowly: Callable[[], CellTable],
        pays: bool,
    ) -> Table | None:
        """Lines that may be passed on as they stand; None where they may not."""
        from gradcli.tables.line_cells import lines_table

        names = dialect.names or []
        wanted = sorted(dialect.numeric)
        if self.numbers:
            wanted = [place for place in wanted if names[place] in self.numbers]
        body = text[_above(text, max(dialect.first_row - first, 0)) :]
        if not body or _is_marked(body, dialect):
            return None

        def cells() -> Table:
            found: Table | None = None
            if pays:
                from gradcli.tables.arrow import text_batch

                found = text_batch(body, dialect, name, slowly)
            return found or slowly()

        return lines_table(body, dialect, name, cells, wanted)

    def _named(self, table: CellTable) -> CellTable:
        """A table whose columns are called by their places where they have no names."""
        if not table.names:
            table.names = [str(k) for k in range(1, table.width + 1)]
        return table


def _is_marked(text: str, dialect: Dialect) -> bool:
    """Whether a text may have remarks."""
    return any(
        sign in text if sign == "#" else f"\n{sign}" in text or text[0] == sign
        for sign in dialect.remarks
    )


def _can_be_numbers(dialect: Dialect, wanted: Sequence[str]) -> bool:
    """Whether columns are found by their names, and numbers are written as Python writes them."""
    names = dialect.names or []
    return dialect.is_python and len(set(names)) == len(names) and set(wanted) <= set(names)


def _by_numpy(
    text: str,
    dialect: Dialect,
    name: str,
    slowly: Callable[[], CellTable],
    wanted: Sequence[str] | None,
) -> Table | None:
    """The numbers of the wanted columns without Arrow; None where a line is no row of such."""
    if dialect.separator is None or dialect.trailing or dialect.cuts or '"' in text:
        return None
    if dialect.joined is not None or dialect.clocks or not dialect.names or wanted is None:
        return None
    from gradcli.tables.decimals import columns

    places = [dialect.names.index(one) for one in wanted]
    found = columns(text.encode(), dialect.separator, dialect.width, places)
    if found is None:
        return None
    known = dict(zip(places, found, strict=True))
    arrays = [known.get(place) for place in range(dialect.width)]
    return PartlyRead(name, dialect.names, arrays, slowly)


def _above(text: str, count: int) -> int:
    """The place behind the first lines of a text."""
    at = 0
    for _ in range(count):
        at = text.find("\n", at) + 1
    return at


def _size(path: str) -> int:
    full = os.path.expanduser(path)
    return os.path.getsize(full) if os.path.isfile(full) else 0


_RECORDS = "a list of objects is one, an object a line, or an object of lists of equal length"


def _beginning(file: Opened) -> str:
    """What the first bytes are as text."""
    peek: bytes = file.stream.peek(1 << 13)  # type: ignore[attr-defined]
    return peek.decode("utf-8", "ignore").lstrip("\ufeff \t\r\n")


def _first_letter(file: Opened) -> str:
    return _beginning(file)[:1]


def _array_table(file: Opened) -> Table:
    from gradcli.tables.numpy_files import Archive

    found = read_open(file)
    if isinstance(found, Archive):
        members = {name: found.member(name) for name in found.names}
        # A number among columns, as np.savez(x=x, y=y, g=9.81) writes it, is none of them.
        members = {n: a for n, a in members.items() if a.ndim} or members
        arrays = [*members.values()]
        if any(a.ndim != 1 or len(a) != len(arrays[0]) for a in arrays):
            raise TableError(f"{file.name}: its arrays are not columns of equal length")
        return ArrayTable(file.name, [*members], arrays)
    if not isinstance(found, Table):
        raise TableError(
            f"{file.name} has no names of columns",
            hint="a structured array has them, or an archive; an image is a table of three columns, x, y and "
            "the number of each pixel: np.indices(image.shape) has the first two",
        )
    return found


def _sliced(table: Table, rows: int) -> Iterator[Table]:
    """A table that is in memory already, in batches."""
    if isinstance(table, CellTable) or table.rows <= rows:
        yield table
        return
    assert isinstance(table, ArrayTable)
    for start in range(0, table.rows, rows):
        yield ArrayTable(
            table.name, table.names, [a[start : start + rows] for a in table.arrays], start
        )
