"""Where fits begin that look for the least of several minima.

Many points are drawn, over bounds where there are some, else over powers of ten about the start. At each of
them the parameters that the model is linear in are solved for, so that what is compared are the others
(variable projection: Golub and Pereyra, SIAM J. Numer. Anal. 10, 1973). Those with the least sum of squares
are the starts, and as many that only chance chose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from gradcli.operators.primitives import lapack

Array = Any
At = Callable[[Array], tuple[Array, Array]]
_DRAWN = 40  # points for each start
_DECADES = 1.5  # of a parameter without bounds, to each side
_SAME = 1e-9  # relative: a Jacobian that does not change


class Search(NamedTuple):
    """What came of it. starts: how many there were; here: how many of them ended at the least sum of squares;
    next: the sum of squares of the next minimum, nan if there is none."""

    starts: int
    here: int
    next: float


def starts(at: At, start: Array, lower: Array, upper: Array, count: int) -> list[Array]:
    """As many starts, the likely ones first; the same every time."""
    random = np.random.default_rng(0)
    free = np.isinf(lower) & np.isinf(upper)
    among = linear(at, start, np.flatnonzero(free))
    drawn: list[tuple[float, Array]] = []
    for point in _points(random, start, lower, upper, _DRAWN * count):
        r, jac = at(point)
        if not (np.isfinite(r).all() and np.isfinite(jac).all()):
            continue
        # In a*exp(-b*x) + c only b is hard to guess. For each drawn b the best a and c follow by linear
        # least squares, so a draw is judged by b alone. Without it, a good b with a bad a would be thrown
        # away.
        point, r = projected(point, r, jac, among)
        drawn.append((float(r @ r), point))
    # Half of the starts are the best draws, which often lie in one valley. The other half are any draws,
    # so that a narrow valley that no draw hit well has its chance.
    likely = sorted(range(len(drawn)), key=lambda k: drawn[k][0])[: count - count // 2]
    chance = [k for k in range(len(drawn)) if k not in likely][: count // 2]
    return [drawn[k][1] for k in (*likely, *chance)]


def projected(point: Array, r: Array, jac: Array, among: list[int]) -> tuple[Array, Array]:
    """(the point with the parameters solved for that the model is linear in, the residuals there)."""
    if not among:
        return point, r
    inner = jac[:, among]
    step = _least_squares(inner, -r)
    point = np.array(point)
    point[among] += step
    return point, r + inner @ step


def _least_squares(a: Array, b: Array) -> Array:
    """The shortest x for which a@x is nearest to b."""
    u, s, vt = lapack.svd(a, full_matrices=False)
    there = s > s[0] * max(a.shape) * np.finfo(float).eps
    return vt[there].T @ ((u[:, there].T @ b) / s[there])


def search(ends: list[float], least: float) -> Search:
    """What the sums of squares say at which fits ended; least: the least of them."""
    near = [abs(end - least) <= 1e-6 * max(least, 1e-300) for end in ends]
    other = [end for end, same in zip(ends, near, strict=True) if not same and np.isfinite(end)]
    return Search(len(ends), sum(near), min(other, default=float("nan")))


def _points(random: Any, start: Array, lower: Array, upper: Array, count: int) -> Iterator[Array]:
    """Points between the bounds: evenly, or on a scale of logarithms where these are of one sign and far
    apart. Without bounds some powers of ten from the start, one in four of the other sign."""
    size = len(start)
    both = np.isfinite(lower) & np.isfinite(upper)
    with np.errstate(all="ignore"):
        ratio = np.where(lower > 0, upper / lower, np.where(upper < 0, lower / upper, 1.0))
    scaled = both & (ratio > 100)
    scale = np.where(start == 0, 1.0, start)
    for _ in range(count):
        share = random.uniform(size=size)
        with np.errstate(all="ignore"):
            even = lower + share * (upper - lower)
            logs = np.sign(lower) * np.abs(lower) ** (1 - share) * np.abs(upper) ** share
        power = scale * 10.0 ** random.uniform(-_DECADES, _DECADES, size)
        power *= np.where(random.uniform(size=size) < 0.25, -1.0, 1.0)
        point = np.where(scaled, logs, np.where(both, even, power))
        outside = (point < lower) | (point > upper)
        point = np.where(outside, -point, point)  # of one bound, at 0 for the most part
        yield np.clip(point, lower, upper)


def linear(at: At, start: Array, among: Array) -> list[int]:
    """The parameters that the model is linear in, all at once: those whose derivatives do not change with
    any of them."""
    _, first = at(start)
    found: list[int] = []
    # Tried one by one, together with those found so far: in a*x + b*x a and b are linear together, in
    # a*b*x each is alone, but not both at once. The Jacobian's columns of the tried ones must not change
    # when all of them move by an odd amount (0.7, so that no symmetry hides a change).
    for k in among.tolist():
        tried = [*found, k]
        moved = start.copy()
        moved[tried] += 0.7 * np.where(start[tried] == 0, 1.0, np.abs(start[tried]))
        _, jac = at(moved)
        size = np.abs(first[:, tried]).max(initial=0.0)
        if (
            np.isfinite(jac).all()
            and np.abs(jac - first)[:, tried].max(initial=0.0) <= _SAME * size
        ):
            found = tried
    return found


__all__ = ["Search", "linear", "projected", "search", "starts"]
