"""Fits of counts by their likelihood under Poisson's distribution, which also holds for few counts and none.

With n counted and the model's m the statistic is C = 2*sum(m - n + n*log(n/m)) (Cash, Astrophys. J. 228,
1979; in this form Baker and Cousins, Nucl. Instrum. Methods 221, 1984). Its mean is that of chi2 where
there are many counts, and another where there are few (Kaastra, Astron. Astrophys. 605, 2017). Each summand
is the square of a residual, the signed root of the deviance, so that the least of C is one of squares. The
covariance is the inverse of half the Hessian of C there.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from gradcli.columns.optimize.equation_rows import (
    Batch,
    EquationRows,
    InMemory,
    Priors,
    with_priors,
)
from gradcli.columns.optimize.least_squares import Fit
from gradcli.language.located_errors import LanguageError
from gradcli.operators.primitives import lapack

Array = Any
_NEAR = 1e-3  # of m, a difference up to which the series is exact to rounding


class Counts(InMemory):
    """The residuals of counts, infinite where the model is not above 0 though something was counted."""

    def __init__(self, rows: EquationRows, batch: Batch, priors: Priors | None = None) -> None:
        super().__init__(rows, batch, None, {}, None, priors)
        self.counts = rows.residual_parts(rows.response(batch)).astype(np.float64)

    def model(self, x: Array) -> tuple[Array, Array]:
        """The model at all rows, and its Jacobian."""
        r, jac, _ = self.rows.residuals(x, self.batch)
        return self.counts - r, -jac

    def at(self, x: Array) -> tuple[Array, Array]:
        """(the signed roots of the deviances, their Jacobian) at a point."""
        n, (m, slopes) = self.counts, self.model(x)
        safe = np.where(m > 0, m, 1.0)
        z = (n - m) / safe
        # 2*m*((1 + z)*log(1 + z) - z), whose series about 0 keeps the digits there
        series = np.sqrt(np.maximum(1 - z / 3 + z**2 / 6 - z**3 / 10, 0.5))
        near = np.abs(z) < _NEAR
        logs = np.where(n > 0, (1 + z) * np.log1p(np.where(n > 0, z, 0.0)), 0.0)
        whole = np.sign(z) * np.sqrt(np.maximum(2 * safe * (logs - z), 0))
        r = np.where(near, np.sqrt(safe) * z * series, whole)
        factor = np.where(near, -1 / (np.sqrt(safe) * series), -z / np.where(near, 1.0, r))
        r = np.where(m > 0, r, np.where((m == 0) & (n == 0), 0.0, np.inf))
        factor = np.where(m > 0, factor, 0.0)
        return with_priors(self.priors, x, r, factor[:, None] * slopes)

    def spreads(self, x: Array, slopes: Mapping[str, Array]) -> tuple[Array, Array]:
        """Poisson's, twice: the variance of a count is the model's value."""
        own = np.sqrt(self.model(x)[0])
        return own, own

    def expected(self, found: Fit) -> tuple[float, float]:
        """(the mean, the standard deviation) that C has if the model is right: each parameter takes as much
        as a row."""
        m = self.model(found.values)[0]
        known = 0 if self.priors is None else len(self.priors.places)
        whole = len(m) + known
        if not (m > 0).all() or found.dof <= 0:
            return float("nan"), float("nan")
        means, variances = _of_deviances(m)
        left = found.dof / whole
        mean, variance = float(means.sum()) + known, float(variances.sum()) + 2 * known
        return mean * left, float(np.sqrt(variance * left))

    def score(self, x: Array) -> Array:
        """Half the gradient of C, with what the priors add."""
        m, slopes = self.model(x)
        found = ((1 - self.counts / m)[:, None] * slopes).sum(0)
        if self.priors is not None:
            places, values, spreads = self.priors
            np.add.at(found, places, (x[places] - values) / spreads**2)
        return found

    def covariance(self, found: Fit) -> Array:
        """The inverse of half the Hessian, by central differences of the exact gradient; as it was where the
        Hessian is not positive, or a parameter is at a bound or not determined."""
        x, errors = found.values, found.errors
        if found.bounded or found.undetermined or not (np.isfinite(errors) & (errors > 0)).all():
            return found.covariance
        steps = 1e-3 * errors
        columns = []
        for k, step in enumerate(steps):
            there = [np.array(x), np.array(x)]
            there[0][k] += step
            there[1][k] -= step
            width = there[0][k] - there[1][k]
            columns.append((self.score(there[0]) - self.score(there[1])) / width)
        hessian = np.stack(columns, 1)
        scaled = hessian * np.outer(errors, errors)
        lower, info = lapack.cholesky((scaled + scaled.T) / 2, False)
        if info or not np.isfinite(lower).all():
            return found.covariance
        inverse = lapack.inverse(lower)[0]
        return inverse.T @ inverse * np.outer(errors, errors)


@cache
def _moments() -> tuple[Array, Array, Array]:
    """Means and variances of a count's part of C, by sums over Poisson's distribution, for some m."""
    grid = np.geomspace(1e-5, 1e3, 160)
    means, variances = [], []
    for m in grid.tolist():
        far = 9 * np.sqrt(m) + 20
        n = np.arange(max(0, int(m - far)), int(m + far) + 1, dtype=float)
        safe = np.maximum(n, 1)
        # Stirling's series, so that n! is no number beyond the largest one.
        factorial = safe * np.log(safe) - safe + np.log(2 * np.pi * safe) / 2
        factorial += 1 / (12 * safe) - 1 / (360 * safe**3) + 1 / (1260 * safe**5)
        share = np.exp(n * np.log(m) - m - np.where(n > 1, factorial, 0.0))
        part = 2 * (m - n + n * np.log(safe / m))
        share /= share.sum()
        mean = float(share @ part)
        means.append(mean)
        variances.append(float(share @ (part - mean) ** 2))
    return np.log(grid), np.array(means), np.array(variances)


def _of_deviances(m: Array) -> tuple[Array, Array]:
    """The mean and the variance of each count's part of C; of large counts 1 and 2, as of chi2."""
    logs, means, variances = _moments()
    at = np.log(m)
    # below the grid both are those of one count or none, nearly 2*m*log(1/m) and its like: nothing
    return (
        np.interp(at, logs, means, left=0.0, right=1.0),
        np.interp(at, logs, variances, left=0.0, right=2.0),
    )


def check_counts(rows: EquationRows, batch: Batch) -> Array:
    """The counts. Raises LanguageError where the measured side is none."""
    if not rows.split:
        raise _usage(
            "--likelihood poisson: both sides of the equation have parameters", "counts stand alone"
        )
    counts = rows.residual_parts(rows.response(batch))
    if rows.is_complex:
        raise _usage("--likelihood poisson: the measured side is complex, and counts are real")
    wrong = np.flatnonzero(~(counts >= 0) | ~np.isfinite(counts))
    if len(wrong):
        row = wrong[0] // len(rows.components) + 1
        raise _usage(f"--likelihood poisson: {counts[wrong[0]]:g} in row {row} is no count")
    return counts


def _usage(message: str, hint: str | None = None) -> LanguageError:
    return LanguageError(message, kind="usage", hint=hint)


__all__ = ["Counts", "check_counts"]
