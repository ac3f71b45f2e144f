"""A table on a terminal: aligned, a long one with its middle left out."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, BinaryIO

from gradcli.tables.writing import Column, Sink
from gradcli.visible import visible_line

EDGE = 20  # rows at either end of a long table


class TerminalTable(Sink):
    """Keeps the first and the last rows, and draws them once all are known."""

    def __init__(self, stream: BinaryIO, numerals: Any) -> None:
        super().__init__(stream, numerals)
        self.names: list[str] = []
        self.right: list[bool] = []
        self.head: list[list[str]] = []
        self.tail: deque[list[str]] = deque(maxlen=EDGE)
        self.count = 0

    def write(self, columns: Sequence[Column]) -> None:
        """Add rows."""
        import numpy as np

        self.names = [visible_line(name) for name, _ in columns]
        rows = len(columns[0][1]) if columns else 0
        ends = list(range(rows))
        if rows > 2 * EDGE:
            ends = [*range(EDGE), *range(rows - EDGE, rows)]
        cells = [
            self.texts(data[ends] if isinstance(data, np.ndarray) else [data[i] for i in ends])
            for _, data in columns
        ]
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
        rows = [*self.head, *self.tail]
        widths = [max(map(len, column)) for column in zip(self.names, *rows, strict=True)]
        lines = [self._line(self.names, widths), *[self._line(row, widths) for row in self.head]]
        if self.count > len(rows):
            lines.append(f"… {self.count - len(rows):,} rows …")
        lines += [self._line(row, widths) for row in self.tail]
        if self.count > len(rows):
            lines.append(f"{self.count:,} rows")
        self.stream.write(("\n".join(lines) + "\n").encode())
        super().close()

    def _line(self, cells: Sequence[str], widths: Sequence[int]) -> str:
        placed = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, widths, self.right, strict=True)
        ]
        return "  ".join(placed).rstrip()


def _is_number(text: str) -> bool:
    try:
        complex(text)
    except ValueError:
        return False
    return True
