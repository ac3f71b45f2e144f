"""Tables whose lines may be passed on as they stand, because that is what their cells would be written as."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gradcli.tables.named_columns import PartlyRead, Table

if TYPE_CHECKING:
    import numpy as np

    from gradcli.tables.assembled_lines import Lines
    from gradcli.tables.delimited import Dialect

    Array = np.ndarray[Any, Any]


class LineCells:
    """The cells of a column of lines, as they are written.

    lines: those that have them. separator, column, width: the place of the cells in a line.
    """

    __slots__ = ("column", "lines", "separator", "width")

    def __init__(self, lines: Lines, separator: str, column: int, width: int) -> None:
        self.lines, self.separator = lines, separator
        self.column, self.width = column, width

    def __len__(self) -> int:
        return len(self.lines.begin)

    def __getitem__(self, rows: Any) -> LineCells:
        """Those of some rows: a slice, a mask, places."""
        return LineCells(self.lines.some(rows), self.separator, self.column, self.width)

    take = __getitem__

    def cells(self) -> list[str]:
        """The cells."""
        whole, found = self.lines.text.decode("ascii"), []
        begin, size = self.lines.begin.tolist(), self.lines.size.tolist()
        for start, count in zip(begin, size, strict=True):
            found.append(whole[start : start + count].split(self.separator)[self.column])
        return found


def whole_lines(columns: Sequence[Any], separator: str) -> Lines | None:
    """The lines whose cells, one after the other, the first columns are; None where they are no whole ones.

    columns: the data of columns in order.
    """
    first = columns[0] if columns else None
    if not isinstance(first, LineCells) or first.separator != separator:
        return None
    own = columns[: first.width]
    if len(own) < first.width or any(isinstance(c, LineCells) for c in columns[first.width :]):
        return None
    for place, column in enumerate(own):
        if not isinstance(column, LineCells) or column.column != place:
            return None
        if column.lines.text is not first.lines.text:
            return None
    return first.lines


class LinesTable(PartlyRead):
    """Columns of numbers that were read at once, and lines that may be passed on."""

    __slots__ = ("lines", "separator")

    def __init__(
        self,
        name: str,
        names: Sequence[str],
        arrays: list[Any],
        slowly: Callable[[], Table],
        lines: Lines,
        separator: str,
    ) -> None:
        super().__init__(name, names, arrays, slowly)
        self.lines, self.separator = lines, separator

    def slow(self) -> Table:
        """The table cell by cell."""
        if self._slow is None:
            self._slow = self.slowly()
        return self._slow

    def cells(self, column: int) -> list[Any]:
        """The column as it is written."""
        return self.slow().cells(column)

    def data(self, column: int) -> Any:
        """The column as it is written."""
        return self.slow().data(column)

    def passed(self, column: int) -> Any:
        """The column as cells of lines."""
        return LineCells(self.lines, self.separator, column, self.width)

    def is_written(self, column: int) -> bool:
        """So it is."""
        return True

    def where(self, row: int, column: int) -> dict[str, Any]:
        """The line of the file, and the field in it."""
        return self.slow().where(row, column)


def lines_table(
    text: str, dialect: Dialect, name: str, slowly: Callable[[], Table], wanted: Sequence[int]
) -> LinesTable | None:
    """Lines that may be passed on, and the wanted columns as numbers; None where that cannot be."""
    if dialect.separator is None or len(dialect.separator) != 1 or dialect.separator == "|":
        return None
    if dialect.trailing or dialect.cuts or dialect.joined is not None or dialect.clocks:
        return None
    if not dialect.is_python or not dialect.names or not wanted or not text.isascii():
        return None
    from gradcli.tables.assembled_lines import Lines
    from gradcli.tables.decimals import columns_and_ends

    body = text.encode()
    if '"' in text or not _is_plain(body, dialect.separator):
        return None
    found = columns_and_ends(body, dialect.separator, dialect.width, wanted)
    if found is None:
        return None
    import numpy as np

    numbers, ends = found
    begin = np.empty_like(ends)
    begin[:1], begin[1:] = 0, ends[:-1] + 1
    known = dict(zip(wanted, numbers, strict=True))
    arrays = [known.get(place) for place in range(dialect.width)]
    lines = Lines(body, begin, ends - begin)
    return LinesTable(name, dialect.names, arrays, slowly, lines, dialect.separator)


def _is_plain(text: bytes, separator: str) -> bool:
    """Whether no cell has blanks around it, and nothing is a control character but newlines."""
    import numpy as np

    data = np.frombuffer(text, np.uint8)
    controls = np.count_nonzero(data < 32)
    if controls != text.count(b"\n") + (text.count(b"\t") if separator == "\t" else 0):
        return False
    if 127 in text:
        return False
    if b" " not in text:
        return True
    ends = (data == ord(separator)) | (data == 10)
    blank = data == 32
    if blank[0] or blank[-1]:
        return False
    return not ((blank[1:] & ends[:-1]).any() or (blank[:-1] & ends[1:]).any())
