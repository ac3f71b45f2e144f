"""The methods that lessons show: gradient descent, momentum, Adam and others, and Newton's steps.

They take the steps that are asked for, with one rate, and nothing is rejected: what goes wrong is to be seen.
The steps are those of the optimizers of `gradcli.optim`, which are PyTorch's; Newton's is -H⁻¹g.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gradcli.columns.optimize.evidence import GRADIENT
from gradcli.columns.optimize.least_squares import Array
from gradcli.engine.core.tensor import wrap
from gradcli.language.located_errors import LanguageError
from gradcli.operators.primitives import lapack

# By name: the optimizer and what it is told besides the rate.
_OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "gradient-descent": ("SGD", {}),
    "momentum": ("SGD", {"momentum": 0.9}),
    "nesterov": ("SGD", {"momentum": 0.9, "nesterov": True}),
    "adagrad": ("Adagrad", {}),
    "rmsprop": ("RMSprop", {}),
    "adam": ("Adam", {}),
}
NEWTON = "newton"
DESCENTS = (*_OPTIMIZERS, NEWTON)
BY_CURVATURE = ("gradient-descent", "momentum", "nesterov")  # whose steps grow with the gradient
STEPS = 100
_RATE = 0.1  # of methods whose steps do not grow with the gradient
_AWAY = 1e150
_TRIES, _HALVINGS = 60, 10  # smaller rates that are tried; of these halves, and then tenths

Slopes = Callable[[Array], tuple[float, Array]]
Told = Callable[[int, Array, float, float], None]


class Descent(NamedTuple):
    """The steps of a descent: the points, with the start, their values and the norms of their gradients.

    away: whether it ended because the numbers became too large, or were none.
    """

    points: list[Array]
    values: list[float]
    norms: list[float]
    away: bool

    def ended(self, rate: float) -> str:
        """After what it ended: `after 20 steps of rate 0.1`."""
        count = len(self.points) - 1
        return f"after {count} step{'s' * (count != 1)} of rate {rate:g}"

    @property
    def rises(self) -> bool:
        """Whether it ends above where it began."""
        return self.away or not self.values[-1] <= self.values[0]


def descend(
    method: str,
    slopes: Slopes,
    start: Array,
    rate: float,
    steps: int,
    *,
    hessian: Callable[[Array], Array] | None = None,
    told: Told | None = None,
    momentum: float | None = None,
) -> Descent:
    """So many steps of a method, fewer where the gradient is 0 before, or the numbers leave all bounds.

    slopes: the value and the gradient at a point. hessian: for Newton's steps. told: called with each step's
    number, point, value and gradient norm. momentum: instead of 0.9. Raises LanguageError where Newton's
    step does not exist.
    """
    x = np.array(start, np.float64)
    value, gradient = slopes(x)
    found = Descent([x], [value], [float(np.linalg.norm(gradient))], False)
    step = _stepper(method, x, rate, hessian, momentum)
    for number in range(1, steps + 1):
        if not np.isfinite(value) or found.norms[-1] <= GRADIENT:
            break
        x = step(gradient)
        if not np.isfinite(x).all() or np.abs(x).max() > _AWAY:
            return found._replace(away=True)
        with np.errstate(all="ignore"):
            value, gradient = slopes(x)
            norm = float(np.linalg.norm(gradient))
        for all_of, one in zip(found[:3], (x, value, norm), strict=True):
            all_of.append(one)
        if told is not None:
            told(number, x, value, norm)
    return found._replace(away=not np.isfinite(value))


def _stepper(
    method: str,
    start: Array,
    rate: float,
    hessian: Callable[[Array], Array] | None,
    momentum: float | None,
) -> Callable[[Array], Array]:
    """A function of the gradient at the last point that gives the next one."""
    if method == NEWTON:
        here = start

        def newton(gradient: Array) -> Array:
            nonlocal here
            assert hessian is not None
            curvature = np.atleast_2d(hessian(here))
            try:
                step = lapack.solve(curvature, gradient[:, None])[:, 0]
            except (RuntimeError, np.linalg.LinAlgError):
                raise _without_step() from None
            if not np.isfinite(step).all():
                raise _without_step()
            here = here - rate * step
            return here

        return newton
    from gradcli.torch import optim

    name, facts = _OPTIMIZERS[method]
    facts = {**facts, **({} if momentum is None else {"momentum": momentum})}
    moved = wrap(np.array(start), requires_grad=True)
    optimizer = getattr(optim, name)([moved], lr=rate, **facts)

    def step(gradient: Array) -> Array:
        moved.grad = wrap(np.array(gradient))
        optimizer.step()
        return np.array(moved.detach().array)

    return step


def _without_step() -> LanguageError:
    return LanguageError(
        "Newton's method has no step here: the Hessian is singular",
        kind="value",
        usage=False,
        hint="start elsewhere, or take --method gradient-descent",
    )


def usual_rate(
    method: str, slopes: Slopes, start: Array, hessian: Callable[[Array], Array] | None
) -> float:
    """A rate for who gives none: 1 for Newton's, 1/L where steps grow with the gradient, else 0.1.

    L is the largest curvature where it starts; gradient descent on a bowl diverges from 2/L on.
    """
    if method == NEWTON:
        return 1.0
    if method not in BY_CURVATURE or hessian is None:
        return _RATE
    curvatures = np.abs(lapack.eigh(np.atleast_2d(hessian(start)))[0])
    largest = float(curvatures.max(initial=0.0))
    if not np.isfinite(largest) or largest <= 0:
        return _RATE
    share = 1.0 if method == "gradient-descent" else 0.1  # momentum of 0.9 adds ten steps up
    return _round(share / largest)


def falling_rate(
    method: str,
    slopes: Slopes,
    start: Array,
    rate: float,
    steps: int,
    momentum: float | None = None,
) -> float | None:
    """A smaller rate with which the same descent falls, tried out; None if there is none."""
    for count in range(_TRIES):
        rate = _round(rate / (2 if count < _HALVINGS else 10))
        made = descend(method, slopes, start, rate, steps, momentum=momentum)
        if not made.rises:
            return rate
    return None


def _round(rate: float) -> float:
    """A rate with one digit, not above it: 0.001 of 0.00125."""
    power = 10.0 ** np.floor(np.log10(rate))
    return float(f"{np.floor(rate / power + 1e-9) * power:.1g}")


__all__ = [
    "BY_CURVATURE",
    "DESCENTS",
    "NEWTON",
    "STEPS",
    "Descent",
    "descend",
    "falling_rate",
    "usual_rate",
]
