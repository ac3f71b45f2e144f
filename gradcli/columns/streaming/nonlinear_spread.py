"""The spread of values where their gradients do not tell it: to the second order, or by a sample.

x² at 0 ± 10 has the gradient 0, |x| has two slopes there, and √x has none. To the second order (JCGM
100:2008, 5.1.2, note), without what third derivatives add: u² = gᵀΣg + ½ tr((HΣ)²), for inputs with the
covariance matrix Σ. Where a function is no parabola within its inputs' uncertainties, a sample of normal
distributions is the answer (JCGM 101:2008). All rows of a table are looked at together; one value is a
table of one row. A first look moves all inputs at once, and only rows that bend are looked at further.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gradcli.operators.primitives import lapack

Array = Any
# points (k, n), the row of each (n,) or all of them, in order (None) -> values (n,)
Run = Callable[[Array, Array | None], Array]
DRAWS = 100_000  # of a sample that nobody asked for
SECOND_ORDER = "second order"
_AT_ONCE = 1 << 16  # points
_ALL_DRAWS, _FEWEST = 10_000_000, 200  # of all rows that are sampled together; of each
_MOST = 200  # inputs that are moved one by one
_PAIRS = 20  # inputs of which every pair is
_SAME = 1e-4  # of a value, what two precisions may make of it
_ROUNDING = 1e-9  # of a value, a change that is none
_PARABOLA = 0.05  # of its largest bend, how far a function may be from a parabola


class Spreads(NamedTuple):
    """The uncertainties and means of rows, (rows,); NaN where a mean is the value.

    second, sampled: (rows,), whether an uncertainty is by the second order, or by draws. draws: of each row.
    lost: (rows,), the share of draws for which there is no value. squares: (rows, k), what each input adds
    to the squared uncertainty to the second order, 0 where the first order will do.
    """

    errors: Array
    means: Array
    second: Array
    sampled: Array
    draws: int
    lost: Array
    squares: Array

    def by(self, row: int) -> str | None:
        """How the uncertainty of a row was found, in words; None for the first order."""
        if self.sampled[row]:
            return f"{self.draws} draws"
        return SECOND_ORDER if self.second[row] else None


class Inputs(NamedTuple):
    """The inputs of rows: x and errors (k, rows), and the covariances besides, (rows or 1, k, k) or None."""

    x: Array
    errors: Array
    covariances: Array | None = None

    def taken(self, rows: Array) -> Inputs:
        """Those of some rows."""
        covariances = self.covariances
        if covariances is not None and len(covariances) > 1:
            covariances = covariances[rows]
        return Inputs(self.x[:, rows], self.errors[:, rows], covariances)

    def correlations(self) -> Array | None:
        """The matrix of correlations, (rows or 1, k, k), 0 where an input has no uncertainty."""
        if self.covariances is None:
            return None
        u = self.errors.T
        with np.errstate(all="ignore"):
            made = np.nan_to_num(self.covariances / (u[:, :, None] * u[:, None, :]), posinf=0.0)
        return np.asarray(made + np.eye(len(self.x)))


def spreads(
    run: Run, inputs: Inputs, first: Array, values: Array, draws: int | None = None
) -> Spreads:
    """The uncertainties of rows, beyond the first order where it does not tell them.

    first: (rows,), to the first order. values: (rows,), what the program gave. draws: how many to take of
    each row, whatever the first order says.
    """
    k, rows = inputs.x.shape
    made = Spreads(
        np.array(first, np.float64),
        np.full(rows, np.nan),
        np.zeros(rows, bool),
        np.zeros(rows, bool),
        draws or DRAWS,
        np.zeros(rows),
        np.zeros((rows, k)),
    )
    moved = (inputs.errors > 0).any(0)
    if draws is not None:
        return _sampled(run, inputs, np.flatnonzero(moved), made)
    values = np.asarray(values, np.float64)
    known = moved & np.isfinite(values)
    if known.any():
        known &= _bends(run, inputs, made.errors, values)
    look = np.flatnonzero(known)
    if not len(look):
        return made
    here = run(inputs.x[:, look], look)
    same = np.abs(here - values[look]) <= _SAME * np.abs(values[look])  # else it draws, or steps
    return _looked(run, inputs, look[same], here[same], made)


def _bends(run: Run, inputs: Inputs, first: Array, values: Array) -> Array:
    """Whether a row's value may bend about as much as it rises, as far as a few moves tell.

    All inputs are moved together, twice: by other parts of their uncertainties, so that no bends of theirs
    cancel both times. A value that is lost within the uncertainty bends.
    """
    k = len(inputs.x)
    if k > _MOST:
        return ~(first > 0) | ~np.isfinite(first)
    parts = np.ones((1, 1))
    if k > 1:
        # With equal parts the bends of x*x - y*y would cancel at equal uncertainties. 2.4 radians is near
        # the golden angle: parts of neighbours differ, in another way each time.
        parts = 0.6 + 0.4 * np.cos(np.outer([1.0, 2.0], np.arange(k) * 2.4))
    most = np.zeros(len(values))
    for part in parts:
        shift = part[:, None] * inputs.errors
        up, down = (run(inputs.x + side * shift, None) for side in (1, -1))
        with np.errstate(all="ignore"):
            most = np.maximum(most, np.abs((up + down) / 2 - values))
    # Most rows stop here, after four runs. The factor is generous: a move of all inputs by 0.2 to 1 of
    # their uncertainties shows a bend only partly, and a row that is looked at in vain costs time, not
    # truth.
    return ~(most * 4 * (k + 1) < first) | ~np.isfinite(first)


def _looked(run: Run, inputs: Inputs, look: Array, here: Array, made: Spreads) -> Spreads:
    """Take the second order for rows that bend, or draws where it does not tell the spread either."""
    k = len(inputs.x)
    first = made.errors[look]
    if k > _MOST:
        return _sampled(run, inputs, look, made)
    some = inputs.taken(look)
    bends, mixed, rest, lost = _second_derivatives(run, some, look, here)
    matrix = np.zeros((len(look), k, k))
    one, other = np.triu_indices(k, 1) if k <= _PAIRS else (np.zeros(0, int),) * 2
    matrix[:, one, other] = matrix[:, other, one] = mixed
    matrix[:, np.arange(k), np.arange(k)] = 2 * bends
    related = some.correlations()
    # In units of the uncertainties Σ becomes the matrix R of correlations and H the second derivatives
    # over one standard deviation: u² = ½ tr((HR)²), of which row i of the sum is what input i adds. The
    # mean moves by ½ tr(HR). For x² at 0 ± 10: H = 2*10², u = sqrt(2)*100, mean 100.
    product = matrix if related is None else matrix @ related
    parts = (product * product.swapaxes(1, 2)).sum(2) / 2
    second = np.sqrt(np.maximum(parts.sum(1), 0.0))
    unknown = lost | ~np.isfinite(first)
    more = unknown | ((second >= first) & (second > _ROUNDING * np.abs(here)))
    # The second order is trusted where half the step gives a quarter of the bend, as for a parabola.
    # Elsewhere (|x|, sqrt(x) at 0, exp over several deviations) there are draws.
    parabola = ~unknown & (rest <= _PARABOLA * np.abs(bends).max(1, initial=0.0)) & (k <= _PAIRS)
    by_second = more & parabola
    there = look[by_second]
    made.errors[there] = np.hypot(first, second)[by_second]
    made.means[there] = (here + np.trace(product, axis1=1, axis2=2) / 2)[by_second]
    made.second[there] = True
    made.squares[look[more]] = np.nan_to_num(parts[more])
    return _sampled(run, inputs, look[more & ~parabola], made)


def _second_derivatives(
    run: Run, inputs: Inputs, look: Array, here: Array
) -> tuple[Array, Array, Array, Array]:
    """(half the second derivatives, the mixed ones, how far from a parabola, whether values are lost).

    Derivatives are in units of the uncertainties, rows first.
    """
    k = len(inputs.x)
    one, other = np.triu_indices(k, 1) if k <= _PAIRS else (np.zeros(0, int),) * 2
    unit = np.eye(k)
    a, b = unit[one], unit[other]
    # Differences over one standard deviation on purpose, not small ones: how the value bends within the
    # uncertainty is what counts, and a kink beside the point is within it.
    shifts = np.concatenate([unit, -unit, unit / 2, -unit / 2, a + b, a - b, b - a, -a - b])
    found = np.empty((len(look), len(shifts)))
    step = max(_AT_ONCE // len(shifts), 1)
    for start in range(0, len(look), step):
        part = slice(start, start + step)
        x, errors = inputs.x[:, part, None], inputs.errors[:, part, None]
        points = x + shifts.T[:, None, :] * errors
        values = run(points.reshape(k, -1), np.repeat(look[part], len(shifts)))
        found[part] = values.reshape(-1, len(shifts))
    with np.errstate(all="ignore"):
        up, down, near_up, near_down = np.split(found[:, : 4 * k] - here[:, None], 4, axis=1)
        corners = np.split(found[:, 4 * k :], 4, axis=1)
        bends = (up + down) / 2
        mixed = (corners[0] - corners[1] - corners[2] + corners[3]) / 4
        rest = np.abs(2 * (near_up + near_down) - bends).max(1, initial=0.0)
        odd = (up - down) / 2 - (near_up - near_down)  # of a kink, and of third derivatives
        rest = np.maximum(rest, np.abs(odd).max(1, initial=0.0))
    return bends, mixed, rest, ~np.isfinite(found).all(1)


def _sampled(run: Run, inputs: Inputs, rows: Array, made: Spreads) -> Spreads:
    """Take the standard deviations and means of values at draws of normal distributions, always the same."""
    if not len(rows):
        return made
    k = len(inputs.x)
    draws = made.draws
    if draws == DRAWS:
        # A table of a million rows that bend gets fewer draws for each. The same normal numbers serve all
        # rows, so that equal rows have equal results.
        draws = max(_FEWEST, min(DRAWS, _ALL_DRAWS // len(rows)))
    normal = np.random.default_rng(0).normal(size=(draws, k)).T
    some = inputs.taken(rows)
    related = some.correlations()
    roots = None if related is None else _roots(related)
    step = max(_AT_ONCE // draws, 1)
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        own = normal[:, None, :]
        if roots is not None:
            root = roots[part] if len(roots) > 1 else roots
            own = np.moveaxis(root @ normal, 1, 0)
        points = some.x[:, part, None] + own * some.errors[:, part, None]
        count = points.shape[1]
        found = run(points.reshape(k, -1), np.repeat(rows[part], draws)).reshape(count, draws)
        for row, values in zip(rows[part], found, strict=True):
            kept = values[np.isfinite(values)]
            made.errors[row] = kept.std(ddof=1) if len(kept) > 1 else np.nan
            made.means[row] = kept.mean() if len(kept) else np.nan
            made.lost[row] = 1 - len(kept) / draws
    made.sampled[rows] = True
    return made._replace(draws=draws)


def _roots(related: Array) -> Array:
    """Matrices whose product with normal numbers has these correlations."""
    values, vectors = lapack.eigh(related)
    return vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]


__all__ = ["DRAWS", "SECOND_ORDER", "Inputs", "Run", "Spreads", "spreads"]
