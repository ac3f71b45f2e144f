"""A start for a fit whose parameters nobody gave one: by the sizes that the equation and the data tell.

Points are drawn from what `parameter_sizes` says; at each the parameters that the model is linear in are
solved for (variable projection), so that only the others are guessed. Short fits begin at the best points,
and then the parameters of the best fit are drawn anew, one after the other, which finds a second peak once
the first is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.columns.optimize.levenberg_marquardt import levenberg_marquardt
from gradcli.columns.optimize.parameter_sizes import Prior
from gradcli.columns.optimize.starts import At, linear, projected

Array = Any
_DRAWN, _FOR_EACH, _MOST = 200, 150, 1000  # points; more for each parameter that is not linear
_LOOKED = 5  # points that tell which parameters are linear
_FITTED = 12  # points at which short fits begin
_AGAIN = 16  # times that a parameter of the best fit is drawn anew
_ROUGH = 1e-6  # tolerance of a short fit
_STEPS = 40  # its iterations
_HUGE = 1e100  # in place of a residual that is not finite
_LOWER = 0.999  # of a sum of squares, what is lower


class _Search:
    def __init__(
        self, at: At, start: Array, lower: Array, upper: Array, priors: Sequence[Prior | None]
    ) -> None:
        self.at, self.start, self.lower, self.upper = at, start, lower, upper
        self.priors, self.random = priors, np.random.default_rng(0)
        self.guessed = [k for k, prior in enumerate(priors) if prior is not None]
        self.linear: list[int] = []
        self.best: tuple[float, Array] = (np.inf, start)

    def drawn(self, point: Array, among: Sequence[int]) -> Array:
        """A point with these parameters drawn anew, within the bounds."""
        made = np.array(point, float)
        for k in among:
            prior = self.priors[k]
            if prior is not None:
                made[k] = prior.draw(self.random)
        return np.clip(made, self.lower, self.upper)

    def find_linear(self) -> None:
        """Take the parameters that the model is linear in wherever it was looked at."""
        free = np.flatnonzero(np.isinf(self.lower) & np.isinf(self.upper))
        found: list[set[int]] = []
        for _ in range(20 * _LOOKED):
            point = self.drawn(self.start, self.guessed)
            r, jac = self.at(point)
            if not (np.isfinite(r).all() and np.isfinite(jac).all() and (jac != 0).any(0).all()):
                continue
            found.append({*linear(self.at, point, free)})
            if len(found) == _LOOKED:
                break
        self.linear = sorted(set.intersection(*found)) if found else []

    def cost(self, point: Array) -> tuple[float, Array]:
        """The sum of squares where the linear parameters are solved for, and that point."""
        r, jac = self.at(point)
        if not (np.isfinite(r).all() and np.isfinite(jac).all()):
            return np.inf, point
        point, r = projected(point, r, jac, self.linear)
        return float(r @ r), point

    def fit(self, point: Array) -> None:
        """A short fit from a point, which is kept if it ends lower than all before."""

        last: list[Any] = [None, None]

        def here(x: Array) -> tuple[Array, Array]:
            if last[0] is None or (x != last[0]).any():
                last[:] = np.array(x), self.at(np.clip(x, self.lower, self.upper))
            return last[1]  # type: ignore[no-any-return]

        def residuals(x: Array) -> Array:
            return np.nan_to_num(here(x)[0], nan=_HUGE, posinf=_HUGE, neginf=-_HUGE)

        def jacobian(x: Array) -> Array:
            return np.nan_to_num(here(x)[1], nan=0, posinf=0, neginf=0)

        with np.errstate(all="ignore"):
            end = levenberg_marquardt(residuals, jacobian, point, tolerance=_ROUGH, limit=_STEPS)
        there = np.clip(end.x, self.lower, self.upper)
        cost = 2 * float(end.cost)
        if np.isfinite(cost) and cost < self.best[0] * _LOWER:
            self.best = cost, there


@np.errstate(all="ignore")
def better_start(
    at: At, start: Array, lower: Array, upper: Array, priors: Sequence[Prior | None]
) -> tuple[float, Array] | None:
    """(the sum of squares, the point) of the best short fit; None where no point is finite, or where the
    model is linear in all that was guessed. priors: of each parameter, None of one that was given."""
    search = _Search(at, start, lower, upper, priors)
    search.find_linear()
    curved = [k for k in search.guessed if k not in search.linear]
    if not curved:
        return None
    count = min(_DRAWN + _FOR_EACH * len(curved), _MOST)
    points = [search.cost(search.drawn(start, search.guessed)) for _ in range(count)]
    for cost, point in sorted(points, key=lambda one: one[0])[:_FITTED]:
        if np.isfinite(cost):
            search.fit(point)
    for k in [*curved, *curved]:
        tried = [search.cost(search.drawn(search.best[1], [k])) for _ in range(_AGAIN)]
        for cost, point in sorted(tried, key=lambda one: one[0])[:2]:
            if np.isfinite(cost):
                search.fit(point)
    return search.best if np.isfinite(search.best[0]) else None


__all__ = ["better_start"]
