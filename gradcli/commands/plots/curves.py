"""Functions as numbers to be drawn: curves sampled where they bend, cut where they break."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.columns.streaming.mapped_program import Rows, derivative

Columns = list[Any]  # arrays of one length: a value, then its derivatives
_FIRST = 257  # points of the first, even grid
_MOST = 6000  # points at most
_SAG = 1 / 800  # how far a chord may be from its curve, as a part of the picture's height


def columns_of(
    function: Callable[..., Any], name: str, shared: Mapping[str, Any], order: int
) -> Callable[[Any], Columns]:
    """A function that gives the value and the derivatives up to `order` at many points at once.

    function: of tensors by keyword, with a number for its value. Points where it is refused, complex or
    has no derivative are NaN.
    """
    rows = [Rows(function, shared, ()), *([Rows(function, shared, [name])] if order else [])]
    rows += [Rows(derivative(function, [name] * k), shared, ()) for k in range(2, order + 1)]

    def columns(points: Any) -> Columns:
        found: Columns = []
        for k, run in enumerate(rows):
            result = run({name: points}, len(points))
            part = (
                result.gradients.get(name) if k == 1 else next(iter(result.values.values()), None)
            )
            array = np.full(len(points), np.nan) if part is None else np.array(part, np.float64)
            array[list(result.refused)] = np.nan
            if found:
                array[~np.isfinite(found[0])] = np.nan  # as outside of a logarithm's domain
            found.append(array)
        return found

    return columns


def sample(columns: Callable[[Any], Columns], low: float, high: float) -> tuple[Any, Columns]:
    """Points from low to high, closer where a curve bends or ends, and the columns at them.

    An interval is halved while the chord over it is farther from the curve than one can see, as the slopes
    at its ends tell. Where a curve jumps (a pole, a step) a point of NaN cuts it.
    """
    x = np.linspace(low, high, _FIRST)
    with np.errstate(all="ignore"):
        found = columns(x)
        heights = [float(np.diff(limits([(x, y)]))[0]) for y in found]
        for _ in range(10):
            inside = np.diff(x) > (high - low) * 1e-9
            split = np.flatnonzero(inside & _bent(x, found, heights))[: _MOST - len(x)]
            if not len(split):
                break
            middle = (x[split] + x[split + 1]) / 2
            added = columns(middle)
            x = np.insert(x, split + 1, middle)
            found = [np.insert(y, split + 1, m) for y, m in zip(found, added, strict=True)]
        return x, [_cut(x, y, s, h) for (y, s), h in zip(_slopes(x, found), heights, strict=True)]


def limits(
    curves: Iterable[tuple[Any, Any]], points: Any = (), log: bool = False
) -> tuple[float, float]:
    """What of the vertical axis is shown: all, or where poles tower over the rest, the rest.

    curves: x and y of each. points: what has to be in the picture besides. log: of a logarithmic axis,
    which shows what is above 0.
    """
    even = [y[np.searchsorted(x, np.linspace(x[0], x[-1], _FIRST))] for x, y in curves]
    finite = np.concatenate([y[np.isfinite(y)] for y in even] or [np.zeros(0)])
    points = np.asarray(points, float)
    points = points[np.isfinite(points)]
    if log:
        with np.errstate(all="ignore"):
            finite, points = (np.log10(part[part > 0]) for part in (finite, points))
    if not len(finite):
        finite = points if len(points) else np.array([-1.0, 1.0])
    low, high = float(finite.min()), float(finite.max())
    bulk = np.quantile(finite, [0.05, 0.95])
    room = float(bulk[1] - bulk[0])
    if high - low > 6 * room > 0 and not log:
        low, high = max(low, float(bulk[0]) - room), min(high, float(bulk[1]) + room)
    low, high = min([low, *points]), max([high, *points])
    if low == high:
        wide = 0.5 if log else max(1, abs(low)) / 2
        low, high = low - wide, high + wide
    margin = (high - low) / 40
    low, high = low - margin, high + margin
    return (10**low, 10**high) if log else (low, high)


def ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers from low to high, about `most`, two at least: multiples of 1, 2 or 5 times a power of
    ten."""
    step = (high - low) / max(most, 1)
    power = 10.0 ** np.floor(np.log10(step))
    steps = [m * power for m in (10, 5, 2, 1, 0.5, 0.2, 0.1)]
    first = max(i for i, m in enumerate(steps) if m >= step * (1 - 1e-9))
    found: list[float] = []
    for step in steps[first:]:
        found = _multiples(step, low, high)
        if len(found) >= 2:
            break
    return found


def _multiples(step: float, low: float, high: float) -> list[float]:
    first = np.ceil(low / step - 1e-9)
    found = (first + np.arange(int((high - low) / step) + 2)) * step
    return [
        float(round(t, 12 - int(np.floor(np.log10(step))))) + 0.0
        for t in found
        if t <= high + step * 1e-9
    ]


def _slopes(x: Any, found: Columns) -> list[tuple[Any, Any]]:
    """Each column with its slope: the next column, or the smaller of the differences to both sides, which
    tells a jump from a steep curve."""
    slopes = np.diff(found[-1]) / np.diff(x)
    left, right = np.append(slopes[:1], slopes), np.append(slopes, slopes[-1:])
    smaller = np.where(np.abs(left) < np.abs(right), left, right)
    return list(zip(found, [*found[1:], smaller], strict=True))


def _bent(x: Any, found: Columns, heights: Sequence[float]) -> Any:
    """The intervals whose chord is visibly off their curve, and those that one end of a curve lies in."""
    h = np.diff(x)
    bent = np.zeros(len(h), bool)
    for (y, slope), height in zip(_slopes(x, found), heights, strict=True):
        sag = np.abs(np.diff(slope)) * h / 8
        off = np.abs(np.diff(y) - h * (slope[1:] + slope[:-1]) / 2)
        there = np.isfinite(y)
        bent |= (np.fmax(sag, off) > _SAG * height) | (there[1:] != there[:-1])
    return bent


def _cut(x: Any, y: Any, slope: Any, height: float) -> Any:
    """The column with NaN at the second point of each jump."""
    rise, expected = np.diff(y), np.diff(x) * (slope[1:] + slope[:-1]) / 2
    jumps = (np.abs(rise) > height / 50) & (np.abs(rise - expected) > np.abs(rise) / 2)
    cut = y.copy()
    cut[1:][jumps] = np.nan
    return cut
