"""Arrays as a terminal shows them: columns aligned by the decimal point, six digits, long ones shortened."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from gradcli.commands.terminal import painted

DIGITS = 6  # significant, unless --precision says others
_MOST_ROWS = 40  # of a matrix; of a longer one the first and the last are shown
_EDGE = 10
_MOST_SLICES = 8  # of an array of three dimensions or more
Spell = Callable[[Any], list[str]]  # the elements of an array as text, in order
_NUMERAL = re.compile(r"(-?(?:\d+|inf|nan))(.*)", re.S)


def lines_of(name: str | None, array: Any, spell: Spell, width: int, colour: bool) -> list[str]:
    """A result as lines: `name = [1, 2]` where that fits, else a matrix below `name (rows, columns)`.

    array: of one dimension or more. spell: writes its elements. Vectors that are too long for a line are
    wrapped into columns.
    """
    title = painted(name, "cyan") if colour and name else name
    if array.ndim == 1:
        text = f"[{', '.join(spell(array))}]" if array.size <= 1000 else ""
        if text and len(text) + len(name or "") + 3 <= width:
            return [f"{title} = {coloured(text, colour)}" if title else coloured(text, colour)]
        return [_heading(title, array.shape), *_vector(array, spell, width, colour)]
    if array.ndim == 2:
        found = _matrix(array, spell, width, colour)
        small = array.shape[0] <= 20 and not any("…" in line for line in found)
        return [f"{title} =" if small else _heading(title, array.shape)] * bool(
            title or not small
        ) + found
    lines = [_heading(title, array.shape)]
    places = list(_places(array.shape[:-2]))
    shown = places if len(places) <= _MOST_SLICES else [*places[:3], None, *places[-3:]]
    for place in shown:
        if place is None:
            lines.append(f"… {len(places) - 6:,} slices …")
            continue
        index = ", ".join([*map(str, place), ":", ":"])
        lines += [f"[{index}]", *_matrix(array[place], spell, width, colour)]
    return lines


def _heading(title: str | None, shape: Sequence[int]) -> str:
    said = "(" + ", ".join(f"{size:,}" for size in shape) + ("," if len(shape) == 1 else "") + ")"
    return f"{title} = {said}" if title else said


def _places(shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    from itertools import product

    return product(*map(range, shape))


def _vector(array: Any, spell: Spell, width: int, colour: bool) -> list[str]:
    """A vector in columns, as many as fit, each line beginning with the index of its first element."""
    import numpy as np

    size, room = array.size, len(str(array.size))
    index = np.arange(size)
    if size > 500:
        index = np.concatenate([index[:50], index[-50:]])
    texts = aligned(spell(array[index]))
    columns = max(1, (width - room - 4) // (len(texts[0]) + 2))
    columns = columns // 5 * 5 or columns  # so that places are easily counted
    lines, cut = [], 50 if size > 500 else size
    for part in (range(cut), range(cut, len(index))):
        for i in range(part.start, part.stop, columns):
            cells = texts[i : min(i + columns, part.stop)]
            lines.append(f"  {index[i]:>{room}}  " + coloured("  ".join(cells).rstrip(), colour))
        if part.start == 0 and len(index) < size:
            lines.append(f"  … {size - len(index):,} elements …")
    return lines


def _matrix(array: Any, spell: Spell, width: int, colour: bool) -> list[str]:
    """The rows of a matrix in brackets, the middle left out of what is too long or too wide."""
    import numpy as np

    rows, columns = array.shape
    if not array.size:
        return ["  [" + "]\n  [".join([""] * rows) + "]"] if rows else ["  []"]
    cut = rows > _MOST_ROWS
    kept = np.concatenate([array[:_EDGE], array[-_EDGE:]]) if cut else array
    most = max(2, width // 2)
    sides = (
        [*range(columns)] if columns <= most else [*range(most), *range(columns - most, columns)]
    )
    texts = {j: aligned(spell(kept[:, j])) for j in sides}
    shown = _fitting({j: len(texts[j][0]) for j in sides}, columns, width - 4)
    lines = []
    for i in range(len(kept)):
        cells = [("…" if j is None else texts[j][i]) for j in shown]
        lines.append("  [" + coloured("  ".join(cells), colour) + "]")
    if cut:
        lines.insert(_EDGE, f"  … {rows - 2 * _EDGE:,} rows …")
    return lines


def _fitting(widths: dict[int, int], columns: int, room: int) -> list[int | None]:
    """The columns that fit into a line: all, or as many from both ends with None between them."""
    if len(widths) == columns and sum(widths.values()) + 2 * (columns - 1) <= room:
        return list(range(columns))
    left: list[int | None] = []
    right: list[int | None] = []
    used = 1
    for i in range(columns):
        for side, j in ((left, i), (right, columns - 1 - i)):
            if j not in widths or used + widths[j] + 2 > room:
                return [*left, None, *right[::-1]] if left else [0, None]
            used += widths[j] + 2
            side.append(j)
    return [*left, None, *right[::-1]]


def aligned(texts: list[str]) -> list[str]:
    """Numbers padded to one width with their points below each other."""
    pieces = [match.groups() if (match := _NUMERAL.match(text)) else (text, "") for text in texts]
    left = max(len(head) for head, _ in pieces)
    right = max(len(tail) for _, tail in pieces)
    return [head.rjust(left) + tail.ljust(right) for head, tail in pieces]


def coloured(text: str, colour: bool) -> str:
    """The text with what is not finite in red."""
    if not colour:
        return text
    return re.sub(r"-?\b(?:nan|inf)\b", lambda found: painted(found[0], "red"), text)
