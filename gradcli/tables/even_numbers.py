"""Numbers that are evenly apart, as their decimals say: -0.002 + 101·2e-05 is 2e-05, and not the
2.0000000000000052e-05 that a sum of doubles is."""

from __future__ import annotations

from fractions import Fraction
from math import isfinite, lcm

from gradcli.tables.table_errors import TableError


class Even:
    """The k-th number from `first` on, rounded once. apart: the step; over: by which it is divided."""

    def __init__(self, first: float, apart: float | Fraction, over: int = 1) -> None:
        begin, step = _exactly(first), _exactly(apart) / over
        self.below = lcm(begin.denominator, step.denominator)
        self.begin, self.step = int(begin * self.below), int(step * self.below)

    def __call__(self, k: int) -> float:
        return (self.begin + k * self.step) / self.below


def between(first: float, last: float, count: int) -> Even:
    """As many numbers from `first` to `last`."""
    return Even(first, _exactly(last) - _exactly(first), max(count - 1, 1))


def _exactly(number: float | Fraction) -> Fraction:
    if isinstance(number, Fraction):
        return number
    if not isfinite(number):
        raise TableError(f"the numbers of a column are to begin or to step by {number}")
    return Fraction(repr(float(number)))


__all__ = ["Even", "between"]
