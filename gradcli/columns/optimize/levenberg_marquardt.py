"""Levenberg and Marquardt's method on NumPy alone: trust regions for sums of squares, every loop counted.

The steps are Moré's (The Levenberg-Marquardt algorithm, Lecture Notes in Mathematics 630, 1978): the
region is a ball in variables that are scaled by the lengths of the Jacobian's columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gradcli.operators.primitives import lapack

Array = Any

_BLOCK = 1 << 14  # rows that are reduced at once: the Jacobian is never in memory twice
_FIRST = 100.0  # the first radius, next to the length of the start
_NEAR = 1.1  # of the radius, how long a step may be
_TURNS = 30  # of the search for a length, which takes 2 to 4
_TAKEN = 1e-4  # of the gain that the model promises, what a step has to bring
_POOR, _GOOD = 0.25, 0.75  # of that gain: below, the radius shrinks; above, it grows
_LONG, _LITTLE = (
    400,
    1e-3,
)  # evaluations that lower the sum of squares by a smaller share: a valley without end
_EPS = float(np.finfo(float).eps)


class Ended(NamedTuple):
    """Where the steps ended, as SciPy's methods say it: cost is half the sum of squares.

    receding: they were given up, in a valley along which the sum of squares falls ever more slowly.
    """

    x: Array
    fun: Array
    cost: float
    njev: int
    nfev: int
    active_mask: Array
    success: bool
    receding: bool = False


def levenberg_marquardt(
    residuals: Callable[[Array], Array],
    jacobian: Callable[[Array], Array],
    start: Array,
    *,
    tolerance: float,
    limit: int,
) -> Ended:
    """The least sum of squares near a start.

    residuals, jacobian: finite ones of a point. tolerance: the relative gain, the relative step, and the
    cosine between residuals and the Jacobian's columns that end it. limit: of the evaluations.
    """
    x = np.array(start, np.float64)
    r = residuals(x)
    length, count, steps, done = float(np.linalg.norm(r)), 1, 0, False
    scale, radius = np.zeros(len(x)), 0.0
    lengths_before = [length]  # of the residuals, after each evaluation
    receding = False
    while not (done or receding) and count < limit and length > 0:
        # J may have a million rows, and all that the step needs of it is R of J = QR and Q.T @ r: |J@p +
        # r| and |R@p + Q.T@r| differ by what no step changes.
        small, along = _reduced(jacobian(x), r)
        steps += 1
        lengths = np.linalg.norm(small, axis=0)
        scale = np.maximum(scale, lengths)
        scale[scale == 0] = 1.0
        cosines = np.abs(small.T @ along) / np.where(lengths > 0, lengths, 1.0) / length
        if cosines.max(initial=0) <= tolerance:
            done = True
            break
        u, s, vt = lapack.svd(small / scale, full_matrices=False)
        along = u.T @ along
        first = steps == 1
        radius = radius or _FIRST * float(np.linalg.norm(scale * x)) or _FIRST
        while count < limit:
            parts, shift = _within(along, s, radius)
            far = float(np.linalg.norm(parts))
            there = x - (vt.T @ parts) / scale
            beyond = residuals(there)
            count += 1
            new = float(np.linalg.norm(beyond))
            # Both relative to the sum of squares, so that they mean the same for data of any unit: what
            # the step brought, and what the linear model promised. Their ratio says how far the model can
            # be trusted.
            gained = 1 - (new / length) ** 2 if new < 10 * length else -1.0
            promised = (float((s * parts) @ (s * parts)) + 2 * shift * far**2) / length**2
            ratio = gained / promised if promised > 0 else 0.0
            if first:
                radius = min(radius, far)
            # Shrink where the model was wrong, grow where it was right or where its full step was inside
            # anyway. In between the radius stays.
            if ratio <= _POOR:
                radius = _shrunk(gained, promised - shift * far**2 / length**2) * min(
                    radius, 10 * far
                )
            elif shift == 0 or ratio >= _GOOD:
                radius = 2 * far
            ended = abs(gained) <= tolerance and promised <= tolerance and ratio <= 2
            if ratio >= _TAKEN:
                x, r, length = there, beyond, new
            ended = ended or radius <= max(tolerance, _EPS) * float(np.linalg.norm(scale * x))
            if ended or promised <= _EPS * tolerance:
                done = True
            lengths_before.append(length)
            if done or ratio >= _TAKEN:
                break
        before = lengths_before[-_LONG - 1] if len(lengths_before) > _LONG else np.inf
        receding = not done and length**2 > (1 - _LITTLE) * before**2
    cost = length**2 / 2
    success = bool(done or length == 0)
    return Ended(x, r, cost, steps, count, np.zeros(len(x), int), success, receding)


def _shrunk(gained: float, slope: float) -> float:
    """What of a radius is left after a poor step: to the least of the parabola through what is known.

    slope: half of that of the relative sum of squares along the step, at its start.
    """
    if gained >= 0:
        return 0.5
    return min(max(0.5 * slope / (slope - gained / 2), 0.1), 0.5)


def _reduced(jac: Array, r: Array) -> tuple[Array, Array]:
    """(R, Q.T @ r) of the Jacobian's QR, by blocks of rows."""
    size = jac.shape[1]
    # QR of blocks of rows, and then of their R's one below the other: the same R as of the whole (up to
    # signs), and no copy of the Jacobian.
    blocks = [
        lapack.qr(np.column_stack([jac[k : k + _BLOCK], r[k : k + _BLOCK]]), "r")[1]
        for k in range(0, len(r), _BLOCK)
    ]
    whole = blocks[0] if len(blocks) == 1 else lapack.qr(np.concatenate(blocks), "r")[1]
    return whole[:size, :size], whole[:size, size]


def _within(along: Array, s: Array, radius: float) -> tuple[Array, float]:
    """(the least squares' step in the singular vectors, its shift): no longer than the radius."""
    kept = s > len(s) * _EPS * s.max(initial=0)
    parts = np.divide(along, s, out=np.zeros_like(along), where=kept)
    length = float(np.linalg.norm(parts))
    shift = 0.0
    for _ in range(_TURNS):  # Newton's steps towards 1/|p| = 1/radius, from below
        if length <= _NEAR * radius:
            break
        bent = float((parts**2 / np.where(kept, s**2 + shift, 1.0)).sum())
        shift += (length - radius) / radius * length**2 / bent
        parts = np.where(kept, along * s / (s**2 + shift), 0.0)
        length = float(np.linalg.norm(parts))
    return parts, shift


__all__ = ["Ended", "levenberg_marquardt"]
