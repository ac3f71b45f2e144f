"""Lines of a text by NumPy: the lines of a table as they stand, and numbers behind them.

Pieces are copied as items of a fixed size, longer than most, each to where it belongs. What an item holds
behind its piece is overwritten by the next piece, because items are written in the order of the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.tables import line_loops
from gradcli.tables.digits import BLOCK, LONGEST, ROW, can_spell, spelt

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

_ITEM = 32  # bytes of an item: a number's text, or a piece of a line
_MOST = 8  # items of a line; longer lines are put together one by one
assert _ITEM >= LONGEST


class Lines(NamedTuple):
    """Lines of a text: where in it each begins, and how many bytes it has, without its newline."""

    text: bytes
    begin: Array
    size: Array

    def some(self, rows: Any) -> Lines:
        """Those of some rows: a slice, a mask, places."""
        return Lines(self.text, self.begin[rows], self.size[rows])


def can_assemble(lines: Lines | None, columns: Sequence[Any]) -> bool:
    """Whether `lines_with_numbers` takes these, and few lines are much longer than the others."""
    if not columns or not all(can_spell(c) and c.dtype == columns[0].dtype for c in columns):
        return False
    return lines is None or int(lines.size.max(initial=0)) <= _ITEM * _MOST


def lines_with_numbers(
    lines: Lines | None, numbers: Sequence[Array], separator: str
) -> Iterator[Any]:
    """The text of lines with numbers behind them, in blocks of bytes; of the numbers alone without lines.

    numbers: columns, all of 64 bits or all of 32.
    """
    rows = max(BLOCK // len(numbers), 1)
    for start in range(0, len(numbers[0]), rows):
        some = np.stack([column[start : start + rows] for column in numbers], axis=1)
        few = None if lines is None else lines.some(slice(start, start + rows))
        made = line_loops.text_of(few, some, ord(separator))
        yield _block(few, some, ord(separator)) if made is None else made


def _block(lines: Lines | None, numbers: Array, separator: int) -> Any:
    """The same of some rows. numbers: a row's beside each other."""
    rows, columns = numbers.shape
    pieces = 0
    if lines is None:
        made = spelt(numbers.reshape(-1))
        begin, size = made.begin, made.size.reshape(rows, columns)
    else:
        first, end = int(lines.begin[0]), int(lines.begin[-1] + lines.size[-1])
        made = spelt(numbers.reshape(-1), end - first + _ITEM)
        behind = ROW * (numbers.size + 1)
        text = np.frombuffer(lines.text, np.uint8, end - first, first)
        made.data[behind : behind + end - first] = text
        pieces = max(-(-int(lines.size.max()) // _ITEM), 1)
        begins = np.empty((2, rows, pieces + columns), np.int64)
        begins[0, :, pieces:] = made.begin.reshape(rows, columns)
        begins[1, :, pieces:] = made.size.reshape(rows, columns)
        for k in range(pieces):
            begins[0, :, k] = lines.begin + (behind - first)
            begins[0, :, k] += np.minimum(_ITEM * k, lines.size) if k else 0
            begins[1, :, k] = lines.size if pieces == 1 else _share(lines.size, k, pieces)
        begin, size = begins[0].reshape(-1), begins[1]
    size[:, max(pieces - 1, 0) :] += 1  # the separator behind it
    ends = np.cumsum(size)
    room = np.empty(int(ends[-1]) + _ITEM, np.uint8)
    _items(room)[ends - size.reshape(-1)] = _items(made.data)[begin]
    ends -= 1
    room[ends.reshape(size.shape)[:, max(pieces - 1, 0) : -1]] = separator
    room[ends.reshape(size.shape)[:, -1]] = 10
    return room[:-_ITEM]


def _share(size: Array, piece: int, pieces: int) -> Array:
    """How many bytes of lines are in one of their pieces."""
    last = piece == pieces - 1
    found: Array = np.clip(size - _ITEM * piece, 0, None if last else _ITEM)
    return found


def _items(data: Array) -> Array:
    """The items that begin at each of the bytes."""
    return np.ndarray((len(data) - _ITEM + 1,), f"V{_ITEM}", data.data, 0, (1,))
