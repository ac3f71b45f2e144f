"""A table on a terminal as DuckDB shows one: types below names, the middle of a long or wide one left out."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, BinaryIO

from gradcli.commands.array_text import aligned, coloured
from gradcli.commands.terminal import painted
from gradcli.engine.system import spread
from gradcli.engine.system.visible import visible_line
from gradcli.tables.writing import Column, Sink

EDGE = 20  # rows at either end of a long table
_WIDEST = 40  # characters of a cell of text, or a third of the terminal if that is more


class TerminalTable(Sink):
    """Keeps the first and the last rows, and draws them once all are known.

    width: of the terminal. own: how many columns are the table's, which are rounded as the computed ones.
    """

    def __init__(
        self, stream: BinaryIO, numerals: Any, width: int, colour: bool, own: int, digits: int
    ) -> None:
        super().__init__(stream, numerals, exact=False)
        self.width, self.colour, self.own, self.digits = width, colour, own, digits
        self.names: list[str] = []
        self.kinds: list[str] = []
        self.head: list[list[str]] = []
        self.tail: deque[list[str]] = deque(maxlen=EDGE)
        self.count = 0

    def write(self, columns: Sequence[Column]) -> None:
        """Add rows."""
        self.names = [visible_line(name) for name, _ in columns]
        rows = len(columns[0][1]) if columns else 0
        ends = list(range(rows))
        if rows > 2 * EDGE:
            ends = [*range(EDGE), *range(rows - EDGE, rows)]
        cells = []
        for _, data in columns:
            if hasattr(data, "take"):  # an array of NumPy's or Arrow's
                cells.append(self.texts(data.take(ends)))
            else:
                cells.append(self.texts([data[i] for i in ends]))
        self.kinds = self.kinds or [
            _kind(data, texts) for (_, data), texts in zip(columns, cells, strict=True)
        ]
        for row in zip(*cells, strict=True):
            shown = [visible_line(cell) for cell in row]
            if len(self.head) < EDGE:
                self.head.append(shown)
            else:
                self.tail.append(shown)
        self.count += rows

    def close(self) -> None:
        """Draw the table."""
        rows = [*self.head, *self.tail]
        columns = [self._column(k, [row[k] for row in rows]) for k in range(len(self.names))]
        places = self._places([len(column[0]) for column in columns])
        shown = [["…"] * (len(rows) + 2) if k is None else columns[k] for k in places]
        lines = ["  ".join(cells).rstrip() for cells in zip(*shown, strict=True)]
        if self.colour:
            body = [coloured(line, True) for line in lines[2:]]
            lines = [painted(lines[0], "cyan"), painted(lines[1], "grey"), *body]
        said = []
        if self.count > len(rows):
            lines.insert(2 + EDGE, f"… {self.count - len(rows):,} rows …")
            said.append(f"{self.count:,} rows ({len(rows)} shown)")
        if None in places:
            there = len(places) - places.count(None)
            said.append(f"{len(columns)} columns ({there} shown)")
        lines += [", ".join(said)] * bool(said)
        self.stream.write(("\n".join(lines) + "\n").encode())
        super().close()

    def _places(self, widths: list[int]) -> list[int | None]:
        """The columns that are shown, with None where some are left out: the first, what is computed, and
        as many others as there is room for."""
        if sum(widths) + 2 * (len(widths) - 1) <= self.width:
            return list(range(len(widths)))
        kept: set[int] = set()
        room = self.width - 4
        for k in dict.fromkeys([0, *range(self.own, len(widths)), *range(self.own)]):
            room -= widths[k] + 2
            if kept and room < 0:
                break
            kept.add(k)
        found: list[int | None] = []
        for k in range(len(widths)):
            if k in kept:
                found.append(k)
            elif found[-1:] != [None]:
                found.append(None)
        return found

    def _column(self, place: int, cells: list[str]) -> list[str]:
        """A column's lines, all of one width: its name, its type, its cells."""
        kind, most = self.kinds[place], max(_WIDEST, self.width // 3)
        if kind == "text":
            body = [cell if len(cell) <= most else cell[: most - 1] + "…" for cell in cells]
        else:
            body = aligned([_rounded(cell, self.digits) for cell in cells]) if cells else []
        lines = [self.names[place], kind, *body]
        wide = max(map(len, lines))
        return [line.ljust(wide) if kind == "text" else line.rjust(wide) for line in lines]


def _kind(data: Any, texts: list[str]) -> str:
    """What a column holds: an array's dtype, or what its cells look like."""
    if hasattr(data, "dtype"):
        return str(data.dtype)
    if not any(texts) or not all(map(_is_number, filter(None, texts))):
        return "text"
    return "int64" if all(text.lstrip("-+").isdigit() for text in texts) else "float64"


def _rounded(text: str, digits: int) -> str:
    """A number that has more digits than are shown with so many; any other text as it is."""
    mantissa = text.lower().partition("e")[0]
    if "." not in text or sum(map(str.isdigit, mantissa)) <= digits:
        return text
    try:
        return f"{number:.{digits}g}" if abs(number := float(text)) < 10**digits else text
    except ValueError:
        return text


def _is_number(text: str) -> bool:
    try:
        complex(text)
    except ValueError:
        return spread.split(text) is not None
    return True
