"""Roots of systems by Powell's hybrid method with exact Jacobians, and all of one variable in an interval."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gradcli.columns.optimize.least_squares import TOLERANCE, Array, scipy
from gradcli.columns.optimize.spaces import Compiled
from gradcli.columns.streaming.mapped_program import Rows
from gradcli.language.located_errors import LanguageError
from gradcli.operators.primitives import lapack

GRID = 20_000  # pieces of an interval: roots that are closer than two of them may be missed
_STEP = 1e-7  # of a point, a step of Newton's that is smaller is none
_OFF = 1e-10  # a difference that no step changes
_POLISH = 3  # steps of Newton's at the end


class Root(NamedTuple):
    """A point, the largest difference of two sides there, and whether it is a root."""

    x: Array
    residual: float
    evaluations: int
    converged: bool


def root(system: Compiled, start: Array) -> Root:
    """A root near the start. Raises LanguageError where equations and variables are not as many."""
    count = len(system.value(start))
    if count != len(start):
        raise LanguageError(
            f"{count} equation{'s' * (count != 1)} for {len(start)} unknown numbers",
            kind="value",
            usage=False,
            hint="as many are wanted: --no-grad NAME keeps a variable, minimize takes a sum of squares",
        )
    best: Root | None = None
    for method, options in (
        ("hybr", {"xtol": TOLERANCE}),
        ("lm", {"xtol": TOLERANCE, "ftol": TOLERANCE}),
    ):
        found = scipy("optimize").root(
            system.value, start, jac=system.jacobian, method=method, options=options
        )
        made = _polished(system, np.asarray(found.x, np.float64))
        if best is None or made.converged or made.residual < best.residual:
            best = made
        if best.converged:
            break
    assert best is not None
    return best


def _polished(system: Compiled, x: Array) -> Root:
    """The point after a few steps of Newton's that make it better, and whether one more would move it."""
    here = system.value(x)
    for _ in range(_POLISH):
        if not np.isfinite(here).all():
            break
        step, _ = _newton(system, x, here)
        there = system.value(x - step)
        if not np.abs(there).max() < np.abs(here).max():
            break
        x, here = x - step, there
    residual = float(np.abs(here).max())
    converged = False
    if np.isfinite(residual):
        step, off = _newton(system, x, here)
        converged = bool((np.abs(step) <= _STEP * (1 + np.abs(x))).all()) and off <= _OFF
    return Root(x, residual, system.evaluations, converged)


def _newton(system: Compiled, x: Array, here: Array) -> tuple[Array, float]:
    """(the least step of Newton's, what of the differences no step changes)."""
    jac = system.jacobian(x)
    if not np.isfinite(jac).all():
        return np.full(len(x), np.inf), np.inf
    u, s, vt = lapack.svd(jac)
    kept = s > s.max(initial=0) * 1e-15
    along = u.T @ here
    off = float(np.abs(along[~kept]).max(initial=0))
    return vt[kept].T @ (along[kept] / s[kept]), off


def all_roots(system: Compiled, low: float, high: float) -> tuple[list[float], float]:
    """(the roots of one equation of one number in an interval, how close two may be to be told apart).

    Where the sides' difference changes its sign, and where its derivative does beside zero: a grid finds
    them, Brent's method makes them exact. A change of sign at a pole is not a root.
    """
    x = np.linspace(low, high, GRID + 1)
    found = Rows(lambda x: system.function(x.reshape((1,))).reshape(()), {}, ["x"])(
        {"x": x}, len(x)
    )
    f, slope = found.values.get("", np.full(len(x), np.nan)), found.gradients.get("x", x * np.nan)
    brent = scipy("optimize").brentq
    roots = x[f == 0].tolist()

    def value(at: float) -> float:
        return float(system.value(np.array([at]))[0])

    def derivative(at: float) -> float:
        return float(system.jacobian(np.array([at]))[0, 0])

    def add(function: object, k: int) -> None:
        try:
            at = brent(function, x[k], x[k + 1], xtol=1e-300, rtol=4 * np.finfo(float).eps)
        except (RuntimeError, ValueError):  # at a pole
            return
        scale = max(abs(f[k]), abs(f[k + 1]))
        if abs(value(at)) <= (scale if function is value else 1e-9 * scale):
            roots.append(float(at))

    with np.errstate(all="ignore"):
        crossing = np.flatnonzero(f[:-1] * f[1:] < 0)
        turning = np.flatnonzero((slope[:-1] * slope[1:] < 0) & (f[:-1] * f[1:] > 0))
    for k in crossing:
        add(value, int(k))
    for k in turning:
        if np.sign(f[k]) * slope[k] < 0:  # towards zero, and away from it
            add(derivative, int(k))
    return sorted(set(roots)), (high - low) / GRID
