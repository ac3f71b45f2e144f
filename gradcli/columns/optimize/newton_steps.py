"""Newton's method as lessons have it: x - f(x)/f'(x), again and again, with a row for each step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gradcli.columns.optimize.least_squares import Array
from gradcli.columns.optimize.spaces import Compiled

MOST = 50  # steps
_STILL = 4 * float(np.finfo(float).eps)  # of the point, a step that is no step


class NewtonStep(NamedTuple):
    """A point of the method, the value there, and the slope."""

    number: int
    x: float
    value: float
    slope: float


def newton_steps(system: Compiled, start: Array) -> tuple[list[NewtonStep], bool]:
    """(the steps from a start, whether the last is a root) of an equation of one number.

    It ends where the next step would move nothing, where there is no step, and after as many as are allowed.
    """
    steps: list[NewtonStep] = []
    x = float(start[0])
    for number in range(MOST + 1):
        at = np.array([x])
        value, slope = float(system.value(at)[0]), float(system.jacobian(at)[0, 0])
        steps.append(NewtonStep(number, x, value, slope))
        if value == 0:
            return steps, True
        if not np.isfinite(value + slope) or slope == 0:
            return steps, False
        if abs(value / slope) <= _STILL * abs(x):
            return steps, True
        x -= value / slope
    return steps, False


__all__ = ["MOST", "NewtonStep", "newton_steps"]
