"""Trust regions with the Hessian's eigenvalues: every loop is counted, so that it ends for any numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gradcli.columns.optimize.least_squares import Array
from gradcli.operators.primitives import lapack

_TURNS = 50  # of the search for a length, which takes 3 to 6
_CLOSE = 0.001  # of the radius, how well a length has to meet it: more makes no better steps
_TAKEN = 0.15  # of the gain that the model promises, what a step has to bring
_POOR, _GOOD = 0.25, 0.75  # of that gain: below, the radius shrinks; above, it grows
_EPS = float(np.finfo(float).eps)


class Found(NamedTuple):
    """Where the steps ended, how many there were, and whether the gradient is small there."""

    x: Array
    nit: int
    success: bool


def trust_region(
    at: Callable[[Array], tuple[float, Array]],
    hessian: Callable[[Array], Array],
    start: Array,
    *,
    radius: float,
    largest: float,
    small: float,
    limit: int,
    told: Callable[[Array], None],
) -> Found:
    """Steps to the least value of the quadratic model within a radius (Nocedal and Wright, algorithm 4.1).

    at: value and gradient of a point. radius: the first; largest: its bound. small: the norm of a gradient
    that ends it. limit: of the steps. told: called with the point after each; may raise StopIteration.
    """
    x = start
    value, gradient = at(x)
    for number in range(limit):
        if np.linalg.norm(gradient) < small:
            return Found(x, number, True)
        bent = hessian(x)
        step, reaches = bounded_step(gradient, bent, radius)
        promised = -float(gradient @ step + step @ bent @ step / 2)
        if not value - promised < value:  # a gain that rounding hides, or none
            return Found(x, number, False)
        there = at(x + step)
        gained = (value - there[0]) / promised
        if not gained >= _POOR:
            radius = min(radius, float(np.linalg.norm(step))) / 4
        elif gained > _GOOD and reaches:
            radius = min(2 * radius, largest)
        if gained > _TAKEN:
            x, (value, gradient) = x + step, there
        try:
            told(x)
        except StopIteration:
            return Found(x, number + 1, False)
    return Found(x, limit, bool(np.linalg.norm(gradient) < small))


def bounded_step(gradient: Array, hessian: Array, radius: float) -> tuple[Array, bool]:
    """(the step p with |p| <= radius that makes g@p + p@H@p/2 least, whether it ends at the radius).

    By Moré and Sorensen (1983): p = -(H + shift)^-1 g, with the least shift >= 0 for which H + shift has no
    negative eigenvalue and |p| <= radius.
    """
    # Two cases end at once. If the Hessian is positive definite and its step is short, that is the step.
    # Else the least value lies on the sphere, and the shift is found with |p| = radius. Newton's method
    # is applied to 1/|p|, which is almost linear in the shift, where |p| itself has a pole.
    whole = _solved(gradient, hessian)
    if whole is not None and np.linalg.norm(whole[0]) <= radius:
        return whole[0], False
    values, vectors = lapack.eigh(hessian)
    along = vectors.T @ gradient
    shift = float(max((np.abs(along) / radius - values).max(), 0.0))  # not more than what is wanted
    diagonal = np.eye(len(gradient))
    for _ in range(_TURNS):  # Newton's steps towards 1/|p| = 1/radius, from below
        made = _solved(gradient, hessian + shift * diagonal)
        if made is None:
            break
        step, bent = made
        length = float(np.linalg.norm(step))
        if length <= radius * (1 + _CLOSE):
            return step * (radius / length), True
        shift += (length - radius) / radius * length**2 / bent
    return _by_eigenvalues(along, values, vectors, radius)


def _solved(gradient: Array, matrix: Array) -> tuple[Array, float] | None:
    """(p = -matrix^-1 g, p@matrix^-1@p), or None where it is not positive definite beside its rounding.

    Cholesky's factors do not depend on the variables' units, which eigenvalues do.
    """
    lower, failed = lapack.cholesky(matrix, upper=False)
    if failed or (np.diagonal(lower) ** 2 <= len(matrix) * _EPS * np.diagonal(matrix)).any():
        return None
    half = lapack.solve_triangular(lower, -gradient[:, None], upper=False)
    step = lapack.solve_triangular(lower.mT, half, upper=True)
    back = lapack.solve_triangular(lower, step, upper=False)[:, 0]
    return (step[:, 0], float(back @ back)) if np.isfinite(step).all() else None


def _by_eigenvalues(
    along: Array, values: Array, vectors: Array, radius: float
) -> tuple[Array, bool]:
    """The step where the matrix that is wanted is singular, next to its rounding errors."""
    rounding = len(values) * _EPS
    # The hard case of Moré and Sorensen: the gradient has nothing along the most negative eigenvector, as
    # for y**2 - x**2 at (0, 1). No shift makes the step long enough, so what is missing is taken along
    # that eigenvector; both ways lower the value alike.
    along = np.where(np.abs(along) <= rounding * np.linalg.norm(along), 0.0, along)
    bends = values - min(values[0], 0.0)
    bends[bends <= rounding * np.abs(values).max()] = 0.0
    shift = float(max((np.abs(along) / radius - bends).max(), 0.0))
    for _ in range(_TURNS):
        parts = np.divide(along, bends + shift, out=np.zeros_like(along), where=along != 0)
        length = float(np.linalg.norm(parts))
        if length <= radius * (1 + _CLOSE):
            break
        shift += (length - radius) / radius * length**2 / (parts**2 / (bends + shift)).sum()
    if shift == 0.0:
        falls = values[0] < -rounding * np.abs(values).max()
        if falls:  # both ways along this eigenvector
            parts[0] += np.sqrt(max(radius**2 - length**2, 0.0))
        return -(vectors @ parts), bool(falls)
    return -(vectors @ parts) * (radius / length), True
