"""Drawings on a terminal, in braille: a character is two dots wide and four high."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.commands.plots.axes import Axis
from gradcli.commands.plots.curves import limits
from gradcli.commands.plots.pictures import Contours, Curves, Line, sampled

_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
_ARROWS = "→↗↑↖←↙↓↘"
_COLOURS = (34, 33, 35, 32, 36, 31)  # blue, yellow, magenta, ... as the terminal's theme has them
DIM = 90


class Canvas:
    """A picture of `width` by `height` characters over an axis of x and one of y."""

    def __init__(self, width: int, height: int, x: Axis, y: Axis) -> None:
        self.x, self.y = x, y
        self.dots = np.zeros((height, width), int)
        self.colours = np.zeros((height, width), int)
        self.signs = np.full((height, width), " ")

    def place(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Columns and rows of dots; far outside is just outside, and nan what has no place."""
        height, width = self.dots.shape
        across = self.x.share(x) * (2 * width - 1)
        down = (1 - self.y.share(y)) * (4 * height - 1)
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
        if line.blocks:
            self._blocks(line, colour)
            return
        across, down = self.place(line.x, line.y)
        there = np.isfinite(across) & np.isfinite(down)
        if line.points:
            for k, bar in enumerate(line.bars):
                for at in np.flatnonzero(there) if bar is not None else ():
                    ends = [np.repeat(line.x[at], 2), np.repeat(line.y[at], 2)]
                    ends[k] = ends[k] + np.array([-1, 1]) * bar[at]
                    axis = (self.x, self.y)[k]
                    ends[k] = np.maximum(ends[k], axis.ends[0]) if axis.log else ends[k]
                    self.line(Line(ends[0], ends[1], ""), colour)
            for shift in ((0, 0), (1, 0), (0, 1), (1, 1)):
                self.dot(across[there] + shift[0], down[there] + shift[1], colour)
            return
        for end in line.band or ():
            self.line(Line(line.x, end, "", (1, 3)), colour)
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

    def _blocks(self, line: Line, colour: int) -> None:
        """Fill the blocks of a histogram from the low end up."""
        height, width = self.dots.shape
        columns = np.arange(2 * width)
        edges = self.x.share(line.x) * (2 * width - 1)
        block = np.searchsorted(edges, columns, side="right") - 1
        block = np.where(columns == np.rint(edges[-1]), len(line.y) - 1, block)
        for column in columns[(block >= 0) & (block < len(line.y))]:
            top = self.place(0, line.y[block[column]])[1]
            if np.isfinite(top) and line.y[block[column]] > 0:
                rows = np.arange(max(int(np.rint(top)), 0), 4 * height)
                self.dot(np.full(len(rows), column), rows, colour)

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
    numbers = picture.colours()
    panels = [(picture.lines, numbers, picture.y, size[1])]
    if picture.residuals:
        ends = np.concatenate([line.ends() for line in picture.residuals])
        most = limits([], np.append(ends, 0.0))
        first = next((n for n, line in zip(numbers, picture.lines, strict=True) if line.points), 0)
        own = [first if line.colour is None else line.colour for line in picture.residuals]
        panels.append((picture.residuals, own, Axis(most), max(size[1] // 3, 5)))
    framed = _framed(size[0], picture.x, [(y, height) for _, _, y, height in panels])
    room, wide = len(framed[0][0][0]), framed[0][1].dots.shape[1]
    rows: list[str] = []
    for (lines, own, y, _), (labels, canvas) in zip(panels, framed, strict=True):
        for axis, across in ((picture.x, True), (y, False)):
            if axis.ends[0] < 0 < axis.ends[1] and axis.dates is None and not axis.log:
                zero = np.zeros(2), np.array(y.ends)
                flat = np.array(picture.x.ends), np.zeros(2)
                x, up = zero if across else flat
                canvas.line(Line(x, up, "", (1, 3)), DIM)
        for number, line in zip(own, lines, strict=True):
            canvas.line(line, _COLOURS[number % len(_COLOURS)])
        if rows:
            rows.append(f"{' ' * (room + 2)}{lines[0].label}")
        rows += _beside(canvas.lines(coloured, plain), labels, plain)
    samples = {(1, 0): "──", (3, 3): "╌╌"}
    legend = []
    for number, line in zip(numbers, picture.lines, strict=True):
        if not line.label:
            continue
        mark = "••" if line.points else "▄▄" if line.blocks else samples.get(line.dash, "··")
        mark = "--" if plain else mark
        colour = f"\033[{_COLOURS[number % len(_COLOURS)]}m"
        legend.append(f"{colour}{mark}\033[0m {line.label}" if coloured else f"{mark} {line.label}")
    if picture.remark:
        legend.append(picture.remark)
    label = picture.y.label
    above = [f"{' ' * (room + 2)}{picture.title}"] if picture.title else []
    above += _legend(legend, room, size[0])
    if label and label not in [line.label for line in picture.lines]:
        above.append(f"{' ' * room} {label}")
    below = _below(picture.x, room, wide, size[0], plain)
    return "\n".join([*above, *rows, *below])


def contours(picture: Contours, size: tuple[int, int], *, coloured: bool, plain: bool) -> str:
    """Contour lines of a function of two variables with arrows uphill, and the path of a descent."""
    x, y = ((float(ends[0]), float(ends[-1])) for ends in (picture.x, picture.y))
    first = Axis(x, picture.names[0])
    ((labels, canvas),) = _framed(size[0], first, [(Axis(y), size[1])])
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
    below = _below(first, room, width, size[0], plain)
    last = f"{picture.label}: contours at {said}"
    above = [f"{' ' * (room + 2)}{picture.title}"] if picture.title else []
    return "\n".join(
        [*above, f"{' ' * room} {picture.names[1]}", *rows, *below, *_cut(last, size[0])]
    )


def surface(picture: Contours, size: tuple[int, int], *, coloured: bool, plain: bool) -> str:
    """A function of two variables as a net seen from above and the front; what lies behind is hidden."""
    low, high = picture.ends()
    height = (np.clip(picture.values, low, high) - low) / ((high - low) or 1.0)
    canvas = Canvas(size[0], max(size[1] - 1, 5), Axis((-0.7, 0.7)), Axis((-0.66, 0.66)))
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
    return "\n".join([*rows, *_cut(last, size[0])])


_SHORT = 4  # letters of a variable's name that stand beside its axis


def _framed(
    width: int, x: Axis, panels: Sequence[tuple[Axis, int]]
) -> list[tuple[list[str], Canvas]]:
    """For each panel, (its vertical axis, lines): the labels of its rows, all of one width, and the canvas
    that is left beside them."""
    panels = [(y, max(height, 5)) for y, height in panels]
    marks = [y.marks(max(height // 4, 2)) for y, height in panels]
    room = max((len(text) for found in marks for _, text in found), default=1)
    beside = len(x.label) + 2 if 0 < len(x.label) <= _SHORT else 0
    made = []
    for (y, height), found in zip(panels, marks, strict=True):
        canvas = Canvas(max(width - room - 2 - beside, 10), height, x, y)
        labels = [" " * room] * height
        for mark, text in found:
            row = int(canvas.place(x.ends[0], mark)[1] // 4)
            if 0 <= row < height:
                labels[row] = text.rjust(room)
        made.append((labels, canvas))
    return made


def _beside(rows: list[str], labels: list[str], plain: bool) -> list[str]:
    """The rows with the vertical axis."""
    bar, tick = "|+" if plain else "│┤"
    return [
        f"{label} {tick if label.strip() else bar}{row}"
        for label, row in zip(labels, rows, strict=True)
    ]


def _below(x: Axis, room: int, width: int, whole: int, plain: bool) -> list[str]:
    """The horizontal axis, its numbers, and its label: beside it if it is short, else below."""
    corner, flat, up = "+-+" if plain else "└─┬"
    axis, below = [flat] * width, [" "] * (width + room + 3)
    most = max(width // (12 if x.dates is None else 14), 2)
    for mark, text in x.marks(most):
        at = min(int(float(x.share(mark)) * (width - 1) + 0.5), width - 1)
        start = min(room + 2 + at - len(text) // 2, room + 2 + width - len(text))
        start = max(start, 0)
        if not "".join(below[max(start - 1, 0) : start + len(text) + 1]).strip():
            below[start : start + len(text)] = text
            axis[at] = up
    label = x.full_label(most)
    line = f"{' ' * room} {corner}{''.join(axis)}"
    numbers = "".join(below).rstrip()
    if len(label) <= _SHORT:
        return [line, f"{numbers}  {label}".rstrip()]
    at = room + 2 + max((width - len(label)) // 2, 0)
    return [line, numbers, " " * max(min(at, whole - len(label)), 0) + label]


def _cut(text: str, width: int) -> list[str]:
    """A sentence below a picture, in lines."""
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


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
