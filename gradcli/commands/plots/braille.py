"""Drawings on a terminal, in braille: a character is two dots wide and four high."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.commands.plots.curves import limits, ticks
from gradcli.commands.plots.pictures import Contours, Curves, Line, sampled

_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
_ARROWS = "→↗↑↖←↙↓↘"
_COLOURS = (34, 33, 35, 32, 36, 31)  # blue, yellow, magenta, ... as the terminal's theme has them
DIM = 90


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
            for k, bar in enumerate(line.bars):
                for at in np.flatnonzero(there) if bar is not None else ():
                    ends = [np.repeat(line.x[at], 2), np.repeat(line.y[at], 2)]
                    ends[k] = ends[k] + np.array([-1, 1]) * bar[at]
                    self.line(Line(ends[0], ends[1], ""), colour)
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


def curves(picture: Curves, size: tuple[int, int], *, coloured: bool, plain: bool) -> str:
    """Curves over one variable, with axes and a legend, `size` characters wide and high."""
    panels = [(picture.lines, picture.y, size[1])]
    if picture.residuals is not None:
        most = limits([], np.append(picture.residuals.ends(), 0.0))
        panels.append(([picture.residuals], most, max(size[1] // 3, 5)))
    framed = _framed(size[0], picture.x, [(y, height) for _, y, height in panels])
    room = len(framed[0][0][0])
    rows: list[str] = []
    for (lines, y, _), (labels, canvas) in zip(panels, framed, strict=True):
        for zero, ends in ((picture.x, ([0, 0], y)), (y, (picture.x, [0, 0]))):
            if zero[0] < 0 < zero[1]:
                canvas.line(Line(np.array(ends[0]), np.array(ends[1]), "", (1, 3)), DIM)
        for i, line in enumerate(lines):
            canvas.line(line, _COLOURS[i % len(_COLOURS)])
        if rows:
            rows.append(f"{' ' * (room + 2)}{lines[0].label}")
        rows += _beside(canvas.lines(coloured, plain), labels, plain)
    samples = {(1, 0): "──", (3, 3): "╌╌"}
    legend = []
    for i, line in enumerate(picture.lines):
        mark = "••" if line.points else samples.get(line.dash, "··")
        mark = "--" if plain else mark
        colour = f"\033[{_COLOURS[i % len(_COLOURS)]}m"
        legend.append(f"{colour}{mark}\033[0m {line.label}" if coloured else f"{mark} {line.label}")
    below = _below(picture.x, picture.name, room, framed[0][1].dots.shape[1], plain)
    return "\n".join([*_legend(legend, room, size[0]), *rows, *below])


def contours(picture: Contours, size: tuple[int, int], *, coloured: bool, plain: bool) -> str:
    """Contour lines of a function of two variables with arrows uphill, and the path of a descent."""
    x, y = ((float(ends[0]), float(ends[-1])) for ends in (picture.x, picture.y))
    ((labels, canvas),) = _framed(size[0], x, [(y, size[1])])
    height, width = canvas.dots.shape
    down, across = np.meshgrid(
        1 - np.linspace(0, 1, 4 * height), np.linspace(0, 1, 2 * width), indexing="ij"
    )
    grid, *slopes = (sampled(part, down, across) for part in (picture.values, *picture.slopes))
    levels = picture.levels()
    level = np.searchsorted(np.asarray(levels), grid)
    edge = np.zeros(grid.shape, bool)
    edge[:, :-1] |= level[:, :-1] != level[:, 1:]
    edge[:-1] |= level[:-1] != level[1:]
    edges = np.nonzero(edge & np.isfinite(grid))
    canvas.dot(edges[1], edges[0], _COLOURS[0])
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
    if picture.path is not None:
        canvas.line(Line(picture.path[:, 0], picture.path[:, 1], ""), _COLOURS[2])
        canvas.sign(picture.path[0], "o", _COLOURS[2])
        canvas.sign(picture.path[-1], "x", _COLOURS[2])
    room, said = len(labels[0]), ", ".join(f"{level:.3g}" for level in levels)
    rows = _beside(canvas.lines(coloured, plain), labels, plain)
    below = _below(x, picture.names[0], room, width, plain)
    last = f"{picture.label}: contours at {said}"
    return "\n".join([f"{' ' * room} {picture.names[1]}", *rows, *below, last])


def surface(picture: Contours, size: tuple[int, int], *, coloured: bool, plain: bool) -> str:
    """A function of two variables as a net seen from above and the front; what lies behind is hidden."""
    low, high = picture.ends()
    height = (np.clip(picture.values, low, high) - low) / ((high - low) or 1.0)
    canvas = Canvas(size[0], max(size[1] - 1, 5), (-0.7, 0.7), (-0.66, 0.66))
    turn, tilt = np.radians(-60.0), np.radians(30.0)

    def seen(u: Any, v: Any, h: Any) -> tuple[Any, Any, Any]:
        """Where points of the unit cube are on the screen, and how far away."""
        u, v, h = u - 0.5, v - 0.5, 0.7 * (h - 0.5)
        side, away = v * np.cos(turn) - u * np.sin(turn), -u * np.cos(turn) - v * np.sin(turn)
        return side, h * np.cos(tilt) + away * np.sin(tilt), away * np.cos(tilt) - h * np.sin(tilt)

    def dots(u: Any, v: Any, h: Any) -> tuple[Any, Any, Any]:
        side, up, away = seen(u, v, h)
        there = np.isfinite(up)
        across, down = canvas.place(side[there], up[there])
        return np.rint(across).astype(int), np.rint(down).astype(int), away[there]

    for ends in (([0, 1], [0, 0]), ([0, 0], [0, 1]), ([1, 1], [0, 1]), ([0, 1], [1, 1])):
        u, v = (np.array(part, float) for part in ends)
        side, up, _ = seen(u, v, np.zeros(2))
        canvas.line(Line(side, up, "", (1, 2)), DIM)
    fine = np.linspace(0, 1, 6 * max(canvas.dots.shape))
    v, u = (part.ravel() for part in np.meshgrid(fine, fine, indexing="ij"))
    across, down, away = dots(u, v, sampled(height, v, u))
    nearest = np.full((4 * canvas.dots.shape[0], 2 * canvas.dots.shape[1]), np.inf)
    np.minimum.at(nearest, (down, across), away)
    net = np.linspace(0, 1, size[0] // 5 + 4)
    row, column = np.nonzero(nearest < np.inf)  # the surface hides what is drawn of the base there
    np.bitwise_and.at(canvas.dots, (row // 4, column // 2), ~_DOTS[row % 4, column % 2])
    for k, (one, other) in enumerate(((net, fine), (fine, net))):
        v, u = (part.ravel() for part in np.meshgrid(one, other, indexing="ij"))
        across, down, away = dots(u, v, sampled(height, v, u))
        shown = away <= nearest[down, across] + 0.02
        canvas.dot(across[shown], down[shown], _COLOURS[3 * k])
    said = [
        f"{name} from {ends[0]:g} to {ends[-1]:g}"
        for name, ends in zip(picture.names, (picture.x, picture.y), strict=True)
    ]
    last = (
        f"{picture.label}: {low:.4g} to {high:.4g}; {said[0]} to the right, {said[1]} to the back"
    )
    rows = [row for row in canvas.lines(coloured, plain) if _bare(row).strip()]
    return "\n".join([*rows, last])


def _framed(
    width: int, x: tuple[float, float], panels: Sequence[tuple[tuple[float, float], int]]
) -> list[tuple[list[str], Canvas]]:
    """For each panel, (the range of y, lines): the labels of its rows, all of one width, and the canvas
    that is left beside them."""
    panels = [(y, max(height, 5)) for y, height in panels]
    marks = [ticks(*y, max(height // 4, 2)) for y, height in panels]
    room = max(len(f"{mark:g}") for found in marks for mark in found)
    made = []
    for (y, height), found in zip(panels, marks, strict=True):
        canvas = Canvas(max(width - room - 2, 10), height, x, y)
        labels = [" " * room] * height
        for mark in found:
            row = int(canvas.place(x[0], mark)[1] // 4)
            if 0 <= row < height:
                labels[row] = f"{mark:g}".rjust(room)
        made.append((labels, canvas))
    return made


def _beside(rows: list[str], labels: list[str], plain: bool) -> list[str]:
    """The rows with the vertical axis."""
    bar, tick = "|+" if plain else "│┤"
    return [
        f"{label} {tick if label.strip() else bar}{row}"
        for label, row in zip(labels, rows, strict=True)
    ]


def _below(x: tuple[float, float], name: str, room: int, width: int, plain: bool) -> list[str]:
    """The horizontal axis and its numbers."""
    corner, flat, up = "+-+" if plain else "└─┬"
    axis, below = [flat] * width, [" "] * (width + room + 3)
    for mark in ticks(*x, max(width // 12, 2)):
        at = min(int((mark - x[0]) / (x[1] - x[0]) * (width - 1) + 0.5), width - 1)
        text = f"{mark:g}"
        start = min(room + 2 + at - len(text) // 2, room + 2 + width - len(text))
        if not "".join(below[max(start - 1, 0) : start + len(text) + 1]).strip():
            below[start : start + len(text)] = text
            axis[at] = up
    return [f"{' ' * room} {corner}{''.join(axis)}", f"{''.join(below).rstrip()}  {name}"]


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
