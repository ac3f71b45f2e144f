"""Roots of systems by Powell's hybrid method with exact Jacobians, and all of one variable in an interval."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gradcli.columns.optimize.least_squares import TOLERANCE, Array, scipy
from gradcli.columns.optimize.spaces import Compiled, Differences
from gradcli.columns.streaming.mapped_program import Rows
from gradcli.language import as_tensor
from gradcli.language.located_errors import LanguageError
from gradcli.operators.primitives import lapack

GRID = 20_000  # pieces of an interval: roots that are closer than two of them may be missed
_STEP = 1e-7  # of a point, a step of Newton's that is smaller is none
_SMALL = 1e-6  # of the differences at the start, those at a root
_ROUNDED = 1e-10  # of the sides, the same
_EPS = 16 * float(np.finfo(float).eps)  # of the numbers, what rounding moves them by
_STEEP = 1e-2  # of the values around, that at a root so steep that rounding is all of it
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
            hint="give as many equations: --no-grad NAME fixes a variable, minimize takes their squares",
        )
    scale = np.nan_to_num(np.abs(system.value(start)), nan=0.0, posinf=0.0)
    best: Root | None = None
    for method, options in (
        ("hybr", {"xtol": TOLERANCE}),
        ("lm", {"xtol": TOLERANCE, "ftol": TOLERANCE}),
    ):
        found = scipy("optimize").root(
            system.value, start, jac=system.jacobian, method=method, options=options
        )
        made = _polished(system, np.asarray(found.x, np.float64), scale)
        if best is None or made.converged or made.residual < best.residual:
            best = made
        if best.converged:
            break
    assert best is not None
    return best


def _polished(system: Compiled, x: Array, scale: Array) -> Root:
    """The point after a few steps of Newton's that make it better, and whether it is a root.

    It is one where another step would not move it and the sides are equal: next to their differences at the
    start (`scale`), to the sides themselves, or to what the rounding of the numbers makes of them. A short
    step alone says nothing: `asin(x) == 2` has short ones at 1, where the derivative is infinite.
    """
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
    converged = residual == 0
    if np.isfinite(residual) and not converged:
        step, off = _newton(system, x, here)
        rounding = _EPS * (np.nan_to_num(np.abs(system.jacobian(x)), posinf=0) @ np.abs(x))
        allowed = np.maximum(_SMALL * scale, rounding)
        if isinstance(system.function, Differences):
            allowed = np.maximum(allowed, _ROUNDED * system.function.sizes(as_tensor(x)).array)
        still = bool((np.abs(step) <= _STEP * (1 + np.abs(x))).all())
        converged = still and bool((np.abs(here) <= allowed).all()) and off <= allowed.max()
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
    them, Brent's method makes them exact. A change of sign at a pole or a jump is not a root.
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
        if function is value and not _meets(value, derivative, at, x[k + 1] - x[k]):
            return
        if function is value or abs(value(at)) <= 1e-9 * max(abs(f[k]), abs(f[k + 1])):
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


def _meets(
    value: Callable[[float], float], slope: Callable[[float], float], at: float, width: float
) -> bool:
    """Whether a function whose sign changes at a number is 0 there, and does not jump over it."""
    here = abs(value(at))
    around = [abs(value(at + side * width / 4)) for side in (-1, 1)]
    near = min([one for one in around if np.isfinite(one)], default=0.0)
    if here <= _SMALL * near:
        return True
    return here <= _STEEP * near and here <= _EPS * abs(slope(at) * at)
