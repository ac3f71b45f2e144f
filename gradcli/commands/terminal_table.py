"""A table on a terminal: aligned, a long one with its middle left out."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, BinaryIO

from gradcli.commands.output import note
from gradcli.system.visible import visible_line
from gradcli.tables.writing import Column, Sink

EDGE = 20  # rows at either end of a long table
DIGITS = range(12, 3, -1)  # of numbers, in a table that is wider than the terminal


class TerminalTable(Sink):
    """Keeps the first and the last rows, and draws them once all are known.

    width: of the terminal. What is wider is drawn with fewer digits, and says so.
    """

    def __init__(self, stream: BinaryIO, numerals: Any, width: int) -> None:
        super().__init__(stream, numerals)
        self.width = width
        self.names: list[str] = []
        self.right: list[bool] = []
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
        self.right = self.right or [all(map(_is_number, column)) for column in cells]
        for row in zip(*cells, strict=True):
            shown = [visible_line(cell) for cell in row]
            if len(self.head) < EDGE:
                self.head.append(shown)
            else:
                self.tail.append(shown)
        self.count += rows

    def close(self) -> None:
        """Draw the table."""
        rows, widths, digits = self._fitted([*self.head, *self.tail])
        lines = [self._line(row, widths) for row in [self.names, *rows]]
        if self.count > len(rows):
            lines.insert(1 + EDGE, f"… {self.count - len(rows):,} rows …")
        if self.count > len(rows):
            lines.append(f"{self.count:,} rows")
        self.stream.write(("\n".join(lines) + "\n").encode())
        super().close()
        if digits is not None:
            note(f"rounded to {digits} digits, to be no wider: a pipe and -o FILE have them all")

    def _fitted(self, rows: list[list[str]]) -> tuple[list[list[str]], list[int], int | None]:
        """The rows, how wide their columns are, and to how many digits numbers had to be rounded."""
        shown = rows
        for digits in (None, *DIGITS):
            if digits is not None:
                shown = [[_rounded(cell, digits) for cell in row] for row in rows]
            widths = [max(map(len, column)) for column in zip(self.names, *shown, strict=True)]
            if sum(widths) + 2 * (len(widths) - 1) <= self.width:
                break
        return shown, widths, digits

    def _line(self, cells: Sequence[str], widths: Sequence[int]) -> str:
        placed = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, widths, self.right, strict=True)
        ]
        return "  ".join(placed).rstrip()


def _rounded(text: str, digits: int) -> str:
    """A number that has more digits with so many of them; any other text as it is."""
    mantissa = text.lower().partition("e")[0]
    if "." not in text or sum(map(str.isdigit, mantissa)) <= digits:
        return text
    try:
        return f"{float(text):.{digits}g}"
    except ValueError:
        return text


def _is_number(text: str) -> bool:
    try:
        complex(text)
    except ValueError:
        return False
    return True
