"""Drawings on a terminal, in braille: a character is two dots wide and four high."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradcli.plots.curves import ticks

_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
_ARROWS = "→↗↑↖←↙↓↘"
_COLOURS = (34, 33, 35, 32, 36, 31)  # blue, yellow, magenta, ... as the terminal's theme has them
DIM = 90


class Line(NamedTuple):
    """A curve: points joined, with gaps at NaN. dash: dots drawn and left out. label: for the legend."""

    x: Any
    y: Any
    label: str
    dash: tuple[int, int] = (1, 0)
    points: bool = False  # apart, not joined


class Canvas:
    """A picture of `width` by `height` characters over a range of x and of y."""

    def __init__(
        self, width: int, height: int, x: tuple[float, float], y: tuple[float, float]
    ) -> None:
        self.x, self.y = x, y
        self.dots = np.zeros((height, width), int)
        self.colours = np.zeros((height, width), int)
        self.signs = np.full((height, width), " ")

    def place(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Columns and rows of dots; far outside is just outside."""
        height, width = self.dots.shape
        across = (np.asarray(x, float) - self.x[0]) / (self.x[1] - self.x[0]) * (2 * width - 1)
        down = (self.y[1] - np.asarray(y, float)) / (self.y[1] - self.y[0]) * (4 * height - 1)
        return np.clip(across, -9e4, 9e4), np.clip(down, -9e4, 9e4)

    def dot(self, across: Any, down: Any, colour: int) -> None:
        """Set dots; those outside are left out."""
        c, r = np.rint(across).astype(int), np.rint(down).astype(int)
        height, width = self.dots.shape
        inside = (c >= 0) & (c < 2 * width) & (r >= 0) & (r < 4 * height)
        c, r = c[inside], r[inside]
        np.bitwise_or.at(self.dots, (r // 4, c // 2), _DOTS[r % 4, c % 2])
        self.colours[r // 4, c // 2] = colour

    def line(self, line: Line, colour: int) -> None:
        """Draw a curve, or its points."""
        there = np.isfinite(line.x) & np.isfinite(line.y)
        across, down = self.place(np.where(there, line.x, 0), np.where(there, line.y, 0))
        if line.points:
            for shift in ((0, 0), (1, 0), (0, 1), (1, 1)):
                self.dot(across[there] + shift[0], down[there] + shift[1], colour)
            return
        drawn, left = line.dash
        walked = 0.0
        for i in np.flatnonzero(there[1:] & there[:-1]):
            steps = int(max(abs(across[i + 1] - across[i]), abs(down[i + 1] - down[i]))) + 1
            if steps > 40_000:
                continue
            t = np.linspace(0, 1, steps + 1)
            lit = (walked + t * steps) % (drawn + left) < drawn
            walked += steps
            a = across[i] + t * (across[i + 1] - across[i])
            d = down[i] + t * (down[i + 1] - down[i])
            self.dot(a[lit], d[lit], colour)

    def sign(self, point: Any, sign: str, colour: int) -> None:
        """Put a character at a place."""
        across, down = self.place(*point)
        row, column = int(down) // 4, int(across) // 2
        if 0 <= row < self.dots.shape[0] and 0 <= column < self.dots.shape[1]:
            self.signs[row, column], self.colours[row, column] = sign, colour

    def lines(self, coloured: bool, plain: bool) -> list[str]:
        """The rows as text. plain: in ASCII."""
        found = []
        for dots, colours, signs in zip(self.dots, self.colours, self.signs, strict=True):
            row, last = "", 0
            for dot, colour, sign in zip(dots, colours, signs, strict=True):
                text = (
                    sign if sign != " " else " " if not dot else "*" if plain else chr(0x2800 + dot)
                )
                colour = int(colour) if text != " " else last
                if coloured and colour != last:
                    row += f"\033[{colour}m" if colour else "\033[0m"
                    last = colour
                row += text
            found.append(row + "\033[0m" * bool(last))
        return found


def curves(
    lines: Sequence[Line],
    x: tuple[float, float],
    y: tuple[float, float],
    size: tuple[int, int],
    *,
    name: str,
    coloured: bool,
    plain: bool,
) -> str:
    """Curves over one variable, with axes and a legend, `size` characters wide and high."""
    labels, canvas = _framed(size, x, y)
    for zero, ends in ((x, ([0, 0], y)), (y, (x, [0, 0]))):
        if zero[0] < 0 < zero[1]:
            axis = Line(np.array(ends[0]), np.array(ends[1]), "", (1, 3))
            canvas.line(axis, DIM)
    for i, line in enumerate(lines):
        canvas.line(line, _COLOURS[i % len(_COLOURS)])
    samples = {(1, 0): "──", (3, 3): "╌╌"}
    legend = []
    for i, line in enumerate(lines):
        mark = "••" if line.points else samples.get(line.dash, "··")
        mark = "--" if plain else mark
        colour = f"\033[{_COLOURS[i % len(_COLOURS)]}m"
        legend.append(f"{colour}{mark}\033[0m {line.label}" if coloured else f"{mark} {line.label}")
    body = _with_axes(canvas.lines(coloured, plain), labels, x, name, coloured, plain)
    return "\n".join([*_legend(legend, len(labels[0]), size[0]), *body])


def contours(
    grid: Any,
    x: tuple[float, float],
    y: tuple[float, float],
    size: tuple[int, int],
    *,
    names: tuple[str, str],
    slopes: Any,
    path: Any,
    levels: Sequence[float],
    coloured: bool,
    plain: bool,
) -> str:
    """Contour lines of a function of two variables with arrows uphill, and the path of a descent.

    grid: its values at the middle of each dot, rows from the top; slopes: its two derivatives there.
    """
    labels, canvas = _framed(size, x, y)
    height, width = canvas.dots.shape
    level = np.searchsorted(np.asarray(levels), grid)
    edge = np.zeros(grid.shape, bool)
    edge[:, :-1] |= level[:, :-1] != level[:, 1:]
    edge[:-1] |= level[:-1] != level[1:]
    down, across = np.nonzero(edge & np.isfinite(grid))
    canvas.dot(across, down, _COLOURS[0])
    for row in range(1, height, 3):
        for column in range(3, width, 7):
            one, other = slopes[0][4 * row + 2, 2 * column], slopes[1][4 * row + 2, 2 * column]
            if np.isfinite(one) and np.isfinite(other) and (one or other):
                # As it looks: the picture's units, not the variables'.
                angle = np.arctan2(other / (y[1] - y[0]) * height * 2, one / (x[1] - x[0]) * width)
                canvas.signs[row, column] = (
                    "^" if plain else _ARROWS[int(np.rint(angle / (np.pi / 4))) % 8]
                )
                canvas.colours[row, column] = DIM
    if path is not None:
        canvas.line(Line(path[:, 0], path[:, 1], ""), _COLOURS[2])
        canvas.sign(path[0], "o", _COLOURS[2])
        canvas.sign(path[-1], "x", _COLOURS[2])
    body = _with_axes(canvas.lines(coloured, plain), labels, x, names[0], coloured, plain)
    return "\n".join([f"{' ' * len(labels[0])} {names[1]}", *body])


def dots_of(size: tuple[int, int], y: tuple[float, float]) -> tuple[int, int]:
    """How many dots `contours` has for a picture of this size: rows and columns."""
    _, canvas = _framed(size, (0.0, 1.0), y)
    return 4 * canvas.dots.shape[0], 2 * canvas.dots.shape[1]


def _framed(
    size: tuple[int, int], x: tuple[float, float], y: tuple[float, float]
) -> tuple[list[str], Canvas]:
    """The labels of the rows, all of one width, and the canvas that is left beside them."""
    height = max(size[1], 5)
    marks = ticks(*y, max(height // 4, 2))
    room = max(len(f"{mark:g}") for mark in marks)
    canvas = Canvas(max(size[0] - room - 2, 10), height, x, y)
    labels = [" " * room] * height
    for mark in marks:
        row = int(canvas.place(x[0], mark)[1] // 4)
        if 0 <= row < height:
            labels[row] = f"{mark:g}".rjust(room)
    return labels, canvas


def _with_axes(
    rows: list[str],
    labels: list[str],
    x: tuple[float, float],
    name: str,
    coloured: bool,
    plain: bool,
) -> list[str]:
    """The rows with the axes' lines and numbers."""
    room, width = len(labels[0]), len(_bare(rows[0]))
    bar, tick, corner, flat, up = "|++-+" if plain else "│┤└─┬"
    marks = ticks(*x, max(width // 12, 2))
    axis, below = [flat] * width, [" "] * (width + room + 3)
    for mark in marks:
        at = min(int((mark - x[0]) / (x[1] - x[0]) * (width - 1) + 0.5), width - 1)
        text = f"{mark:g}"
        start = min(room + 2 + at - len(text) // 2, room + 2 + width - len(text))
        if not "".join(below[max(start - 1, 0) : start + len(text) + 1]).strip():
            below[start : start + len(text)] = text
            axis[at] = up
    framed = [
        f"{label} {tick if label.strip() else bar}{row}"
        for label, row in zip(labels, rows, strict=True)
    ]
    return [*framed, f"{' ' * room} {corner}{''.join(axis)}", f"{''.join(below).rstrip()}  {name}"]


def _bare(text: str) -> str:
    import re

    return re.sub(r"\033\[\d+m", "", text)


def _legend(items: list[str], room: int, width: int) -> list[str]:
    """The legend, as many items a line as there is room for."""
    lines: list[str] = []
    for item in items:
        joined = f"{lines[-1]}   {item}" if lines else ""
        if lines and len(_bare(joined)) <= width:
            lines[-1] = joined
        else:
            lines.append(" " * (room + 2) + item)
    return lines
