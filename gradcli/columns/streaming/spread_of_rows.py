"""The spread of many rows' values where their gradients do not tell it: x² at 0 ± 0.1 in a column.

What `nonlinear_spread` does for one value, for all rows at once. A first look moves each input by its
uncertainty, and all together; only rows that bend are looked at further.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gradcli.columns.streaming.nonlinear_spread import DRAWS, PAIRS, PARABOLA, ROUNDING, SAME

Array = Any
Run = Callable[[Array, Array], Array]  # points (n, k), the row of each (n,) -> values (n,)
_AT_ONCE = 1 << 17  # points
_DRAWS, _FEWEST = 10_000_000, 200  # of all rows that are sampled together; of each


class RowSpreads(NamedTuple):
    """The uncertainties, and how many of them are by the second order, and by draws; draws: of each row."""

    errors: Array
    seconds: int
    sampled: int
    draws: int


def spreads(run: Run, x: Array, errors: Array, first: Array, values: Array) -> RowSpreads:
    """The uncertainties of rows of inputs that are not correlated.

    x, errors: (rows, k). first: (rows,), to the first order. values: (rows,), what the program gave.
    """
    k = x.shape[1]
    made = np.array(first, np.float64)
    bent = np.flatnonzero(_bends(run, x, errors, made, values))
    unit = np.eye(k)
    one, other = np.triu_indices(k, 1) if k <= PAIRS else (np.zeros(0, int),) * 2
    a, b = unit[one], unit[other]
    shifts = [np.zeros((1, k)), unit, -unit, unit / 2, -unit / 2, a + b, a - b, b - a, -a - b]
    found = _moved(run, x, errors, bent, np.concatenate(shifts))
    here = found[:, :1]
    up, down, near_up, near_down = np.split(found[:, 1 : 4 * k + 1] - here, 4, axis=1)
    corners = np.split(found[:, 4 * k + 1 :], 4, axis=1)
    bends = (up + down) / 2
    mixed = (corners[0] - corners[1] - corners[2] + corners[3]) / 4
    second = np.sqrt(2 * np.square(bends).sum(1) + np.square(mixed).sum(1))
    more = np.isfinite(found).all(1) & (second >= made[bent])
    more &= second > ROUNDING * np.abs(here[:, 0])
    rest = np.abs(2 * (near_up + near_down) - bends).max(1, initial=0.0)
    parabola = rest <= PARABOLA * np.abs(bends).max(1, initial=0.0)
    parabola &= k <= PAIRS
    made[bent[more & parabola]] = np.hypot(made[bent], second)[more & parabola]
    sampled = bent[more & ~parabola]
    draws = max(_FEWEST, min(DRAWS, _DRAWS // max(len(sampled), 1)))
    if len(sampled):
        normal = np.random.default_rng(0).normal(size=(draws, k))
        made[sampled] = _deviations(run, x, errors, sampled, normal)
    return RowSpreads(made, int((more & parabola).sum()), len(sampled), draws)


def _moved(run: Run, x: Array, errors: Array, rows: Array, shifts: Array) -> Array:
    """(m, p): values of rows (m,) with inputs moved by shifts (p, k) times their uncertainties."""
    found = np.empty((len(rows), len(shifts)))
    step = max(_AT_ONCE // len(shifts), 1)
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        points = x[part, None, :] + shifts[None] * errors[part, None, :]
        made = run(points.reshape(-1, x.shape[1]), np.repeat(part, len(shifts)))
        found[start : start + step] = made.reshape(-1, len(shifts))
    return found


def _deviations(run: Run, x: Array, errors: Array, rows: Array, normal: Array) -> Array:
    """The standard deviations of the values of rows at these draws; draws without a value are left out."""
    found = np.empty(len(rows))
    step = max(_AT_ONCE // len(normal), 1)
    for start in range(0, len(rows), step):
        values = _moved(run, x, errors, rows[start : start + step], normal)
        values[~np.isfinite(values)] = np.nan
        found[start : start + step] = [np.std(v[~np.isnan(v)], ddof=1) for v in values]
    return found


def _bends(run: Run, x: Array, errors: Array, first: Array, values: Array) -> Array:
    """Whether a row's value bends about as much as it rises, as far as a few moves tell."""
    rows, k = x.shape
    moves = np.concatenate([np.eye(k), np.ones((int(k > 1), k))])
    found = _moved(run, x, errors, np.arange(rows), np.concatenate([0 * moves[:1], moves, -moves]))
    here = found[:, :1]
    up, down = np.split(found[:, 1:], 2, axis=1)
    bend = np.abs((up + down) / 2 - here).max(1)
    same = np.abs(here[:, 0] - values) <= SAME * np.abs(values)  # else it is a draw
    known = same & np.isfinite(first) & np.isfinite(bend) & (errors > 0).any(1)
    return known & ((first == 0) | (bend * (k + 1) >= first))


__all__ = ["RowSpreads", "Run", "spreads"]
