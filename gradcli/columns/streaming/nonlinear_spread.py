"""The spread of a value where its gradient does not tell it: to the second order, or by a sample.

x² at 0 ± 10 has the gradient 0, and |x| has two slopes there. To the second order (JCGM 100:2008, 5.1.2,
note), without what third derivatives add: u² = Σ (∂f/∂x · u)² + ½ ΣΣ (∂²f/∂x∂y · u(x) · u(y))². Where a
function is no parabola within its inputs' uncertainties, a sample of normal distributions is the answer
(JCGM 101:2008).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gradcli.operators.primitives import lapack

Array = Any
At = Callable[[Array], Array]  # points, rows first -> the value of each
DRAWS = 100_000  # of a sample that nobody asked for
_MOST = 200  # inputs that are moved one by one
PAIRS = 20  # inputs of which every pair is
SAME = 1e-4  # of the value, what two precisions may make of it
ROUNDING = 1e-9  # of the value, a change that is none
PARABOLA = 0.05  # of its largest bend, how far a function may be from a parabola


class Spread(NamedTuple):
    """A standard uncertainty, the mean of the value, and how they were found, in words.

    lost: the share of draws for which there is no value.
    """

    error: float
    mean: float
    by: str
    lost: float = 0.0


def beyond_first_order(
    at: At, x: Array, errors: Array, covariance: Array, first: float
) -> Spread | None:
    """The spread where the second order is at least as large as the first; None where the first will do.

    x, errors: (k,). covariance: (k, k). first: the uncertainty to the first order.
    """
    k = len(x)
    correlated = bool((covariance != np.diag(errors**2)).any())
    if k > _MOST:
        return sampled(at, x, covariance, DRAWS) if first == 0 else None
    moves = np.diag(errors)
    values = at(np.concatenate([[x], x + moves, x - moves, x + moves / 2, x - moves / 2]))
    here, (up, down, near_up, near_down) = values[0], np.split(values[1:] - values[0], 4)
    if not np.isfinite(values).all():
        return None
    bends = (up + down) / 2
    mixed = _mixed(at, x, moves) if k <= PAIRS else np.zeros(0)
    second = float(np.sqrt(2 * bends @ bends + mixed @ mixed))
    if not second >= first or second <= ROUNDING * abs(here):
        return None
    parabola = np.abs(2 * (near_up + near_down) - bends).max() <= PARABOLA * np.abs(bends).max()
    if correlated or not parabola or k > PAIRS:
        return sampled(at, x, covariance, DRAWS)
    error = float(np.hypot(first, second))
    return Spread(error, float(here + bends.sum()), "second order")


def _mixed(at: At, x: Array, moves: Array) -> Array:
    """∂²f/∂x∂y · u(x) · u(y) of every pair of inputs."""
    first, second = np.triu_indices(len(x), 1)
    if not len(first):
        return np.zeros(0)
    a, b = moves[first], moves[second]
    corners = np.split(at(np.concatenate([x + a + b, x + a - b, x - a + b, x - a - b])), 4)
    return (corners[0] - corners[1] - corners[2] + corners[3]) / 4


def sampled(at: At, x: Array, covariance: Array, draws: int) -> Spread:
    """The standard deviation and the mean of values at draws of a normal distribution, always the same."""
    values, vectors = lapack.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    normal = np.random.default_rng(0).normal(size=(draws, len(x)))
    found = at(x + normal @ root.T)
    kept = found[np.isfinite(found)]
    error = float(kept.std(ddof=1)) if len(kept) > 1 else float("nan")
    mean = float(kept.mean()) if len(kept) else float("nan")
    return Spread(error, mean, f"{draws} draws", 1 - len(kept) / draws)


__all__ = ["DRAWS", "At", "Spread", "beyond_first_order", "sampled"]
