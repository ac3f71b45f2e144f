"""What is drawn on a terminal (`braille`) as in a file (`figures`): curves, functions of two variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradcli.commands.plots.axes import Axis
from gradcli.commands.plots.curves import limits

GRID = 121  # points of a function of two variables along either
_LEVELS = 12


class Line(NamedTuple):
    """A curve: points joined, with gaps at NaN. dash: dots drawn and left out. label: for the legend.

    points: whether the points stand apart; bars: of these, the uncertainties of x and of y, or None.
    colour: its number among the theme's; None takes the next. band: the ends of what surrounds a curve.
    blocks: whether it is a histogram, whose x are the edges of blocks as high as y.
    """

    x: Any
    y: Any
    label: str
    dash: tuple[int, int] = (1, 0)
    points: bool = False
    bars: tuple[Any, Any] = (None, None)
    colour: int | None = None
    band: tuple[Any, Any] | None = None
    blocks: bool = False

    def ends(self) -> Any:
        """All of y that is to be seen: with bars, their ends."""
        bar = 0 if self.bars[1] is None else self.bars[1]
        return np.concatenate([self.y - bar, self.y + bar])


class Curves(NamedTuple):
    """Lines over one variable; residuals have a picture of their own below, in the colours of their data.

    remark: what the legend says besides, as how good a fit is. alike: whether a unit is as long upwards as
    across, so that a circle is round.
    """

    lines: Sequence[Line]
    x: Axis
    y: Axis
    residuals: Sequence[Line] = ()
    title: str = ""
    remark: str = ""
    alike: bool = False

    @property
    def kind(self) -> str:
        """How it is drawn."""
        return "curves"

    def relabelled(self, how: Callable[[str], str]) -> Curves:
        """The picture with other labels, but for its title and its remark."""
        lines, below = (
            [line._replace(label=how(line.label)) if line.label else line for line in part]
            for part in (self.lines, self.residuals)
        )
        across, up = (axis._replace(label=how(axis.label)) for axis in (self.x, self.y))
        return self._replace(lines=lines, residuals=below, x=across, y=up)

    def colours(self) -> list[int]:
        """The number of the colour of each line."""
        return [i if line.colour is None else line.colour for i, line in enumerate(self.lines)]


class Contours(NamedTuple):
    """A function of two variables, as contours with its gradient, or as a surface.

    values, slopes: at all points of x and y, one row a point of y. path: of a descent, or None.
    """

    x: Any
    y: Any
    values: Any
    slopes: tuple[Any, Any]
    names: tuple[str, str]
    label: str
    path: Any = None
    surface: bool = False
    title: str = ""

    @property
    def kind(self) -> str:
        """How it is drawn."""
        return "surface" if self.surface else "contours"

    def relabelled(self, how: Callable[[str], str]) -> Contours:
        """The picture with other labels, but for its title."""
        first, second = map(how, self.names)
        return self._replace(names=(first, second), label=how(self.label))

    def ends(self) -> tuple[float, float]:
        """The lowest and the highest value that are shown; where poles tower over the rest, of the rest."""
        finite = np.sort(self.values[np.isfinite(self.values)])
        low, high = limits([(np.arange(len(finite)), finite)])
        return max(low, float(finite[0])), min(high, float(finite[-1]))

    def levels(self) -> list[float]:
        """Where contours are drawn: at round numbers, evenly over what the function has there; in a deep
        valley 1, 2, 5, 10, 20, … above a round number at its ground."""
        finite = self.values[np.isfinite(self.values)]
        low, high = self.ends()
        if not high > low:
            return [low]
        if float(np.median(finite)) - low < 0.15 * (high - low):
            return _above(low, high)
        step = _round_step((high - low) / _LEVELS)
        first, last = np.ceil(low / step), np.floor(high / step)
        return [float(f"{k * step:.12g}") for k in np.arange(first, last + 1)]


def _round_step(least: float) -> float:
    """The least of 1, 2 and 5 times powers of ten that is not smaller."""
    power = 10.0 ** np.floor(np.log10(least))
    return float(power * next(n for n in (1, 2, 5, 10) if n * power >= least * (1 - 1e-9)))


def _above(low: float, high: float) -> list[float]:
    """1, 2, 5, 10, 20, … of a small step above a round number at the lower end."""
    span = high - low
    ground = np.floor(low / (step := _round_step(span / 1000))) * step
    heights: list[float] = []
    size = 10.0 ** np.floor(np.log10(span))
    while len(heights) < _LEVELS:
        heights += [n * size for n in (5, 2, 1) if n * size < high - ground]
        size /= 10
    found = sorted(float(f"{ground + height:.12g}") for height in heights[:_LEVELS])
    return [level for level in found if level > low]


def sampled(grid: Any, rows: Any, columns: Any) -> Any:
    """A grid between its points: at fractions of its rows and columns, linearly."""
    down, across = (
        np.clip(np.asarray(at) * (size - 1), 0, size - 1)
        for at, size in ((rows, grid.shape[0]), (columns, grid.shape[1]))
    )
    i = np.minimum(down.astype(int), grid.shape[0] - 2)
    j = np.minimum(across.astype(int), grid.shape[1] - 2)
    a, b = down - i, across - j
    above = grid[i, j] * (1 - b) + grid[i, j + 1] * b
    return above * (1 - a) + (grid[i + 1, j] * (1 - b) + grid[i + 1, j + 1] * b) * a
