"""Minima: trust regions and SciPy's methods, with exact gradients, Hessians and their products."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from gradcli.columns.optimize import descents
from gradcli.columns.optimize.evidence import (
    FALLS,
    GRADIENT,
    RUNS_AWAY,
    SMALL,
    Bounds,
    Constraints,
    Problem,
    Stationary,
    described,
    sign,
    simplex,
)
from gradcli.columns.optimize.least_squares import TOLERANCE, Array, scipy
from gradcli.columns.optimize.spaces import Compiled
from gradcli.columns.optimize.trust_region import trust_region
from gradcli.engine.system.threads import small_products
from gradcli.language.located_errors import LanguageError

WOKEN = 32  # variables from which LAPACK uses several threads
METHODS = (
    *("trust-exact", "trust-krylov", "trust-ncg", "Newton-CG", "BFGS", "L-BFGS-B", "TNC", "CG"),
    *("SLSQP", "trust-constr"),
)
_BOUNDED = ("L-BFGS-B", "TNC", "SLSQP", "trust-constr")
_STILL = 50  # iterations in which a value that does not change will not
_INSIDE = 1e-3  # of the way to a bound without a value: where the next search ends
_SHRINKS = 6  # times
_FEW = 20  # variables up to which a search without derivatives ends
_AWAY, _DEEP = 1e9, 1e12  # of the start: a point, and a fall of the value, that have no end
_LARGEST = 1e12  # radius of a step
_TRUST = {"gtol": GRADIENT, "max_trust_radius": _LARGEST}
_ALMOST = 1e-6  # the gradient from which on Newton's own steps end a search of many variables
_STEPS, _WITHIN = 8, 1e-6  # of those at most; of the gradient, what solving their equations leaves
_WIDER, _CLOSE = (
    1e3,
    1e-6,
)  # times the last step before: the first radius near a minimum, and its least
_CURVED = 200  # variables up to which the usual rate of a descent is that of the largest curvature
_TOLERANCES = {
    **dict.fromkeys(("trust-krylov", "trust-ncg"), _TRUST),
    "L-BFGS-B": {"ftol": TOLERANCE, "gtol": GRADIENT, "maxcor": 30},
    "TNC": {"ftol": TOLERANCE, "gtol": GRADIENT},
    "SLSQP": {"ftol": TOLERANCE},
    # With SciPy's first barrier, 0.1, it ends before the constraints are reached.
    "trust-constr": {"gtol": GRADIENT, "xtol": 1e-14, "initial_barrier_parameter": 1e-7},
    "Newton-CG": {"xtol": 1e-12},
}
_NEARBY = {"ftol": 1e-9, "gtol": 1e-5, "maxfun": 1_000_000}  # where L-BFGS-B hands on
Path = list[tuple[Array, float, float]]


class Minimum(NamedTuple):
    """What was found. gradient: without what holds constraints and active bounds; kind: in words.

    covariance: the inverse of the Hessian along what is free, at a minimum.
    """

    x: Array
    value: float
    gradient: Array
    kind: str
    eigenvalues: Array | None
    method: str
    iterations: int
    evaluations: int
    converged: bool
    path: Path
    covariance: Array | None = None


def minimize(
    objective: Compiled,
    start: Array,
    *,
    bounds: Bounds,
    constraints: Constraints = (),
    method: str | None = None,
    limit: int | None = None,
    told: Callable[[int, Array, float, float], None] | None = None,
) -> Minimum:
    """A minimum near the start.

    constraints: (relation, left - right) of each. method: None for one that suits: trust regions with the
    Hessian, or its products for many variables; quasi-Newton within bounds; sequential quadratic
    programming under constraints. Where such a one ends at what is no minimum (at a kink, which has no second
    derivatives; beside a bound without a value), others go on; with a method or a limit nothing does. told:
    called with an iteration's number, point, value and gradient norm.
    """
    # LAPACK wakes its threads for matrices of this size, and they wait in a busy loop: beside other work a
    # search of 100 variables took a minute instead of a second.
    with small_products() if len(start) >= WOKEN else nullcontext():
        found = _found(objective, start, bounds, constraints, method, limit, told)
    if _runs_away(objective, start, found):
        return found._replace(kind=RUNS_AWAY, converged=False)
    return found


def _runs_away(objective: Compiled, start: Array, found: Minimum) -> bool:
    """Whether what was found is only as far as the search came of a value that falls without end.

    A minimum that is far from its start is none of these: there the Hessian shows that the value rises.
    """
    if found.kind.startswith("minimum") or not found.path:
        return False
    first = objective.value_and_gradient(start)[0]
    lowest = found.value
    if lowest != lowest:
        lowest = min((v for _, v, _ in found.path if v == v), default=first)
    far = np.nanmax(np.abs(found.x)) > _AWAY * (1 + np.abs(start).max())
    return bool(lowest < first and far) or lowest < first - _DEEP * (1 + abs(first))


def _found(
    objective: Compiled,
    start: Array,
    bounds: Bounds,
    constraints: Constraints,
    method: str | None,
    limit: int | None,
    told: Callable[[int, Array, float, float], None] | None,
) -> Minimum:
    free = bool(np.isinf(bounds[0]).all() and np.isinf(bounds[1]).all())
    small = len(start) <= SMALL
    given = method
    if method is None:
        method = "trust-exact" if small else "trust-krylov"
        if constraints:
            method = "SLSQP" if small else "trust-constr"
        elif not free:
            method = "L-BFGS-B"
    if not (free or method in _BOUNDED) or (constraints and method not in _BOUNDED[2:]):
        held = "constraints" if constraints else "bounds"
        methods = ", ".join(_BOUNDED[2:] if constraints else _BOUNDED)
        raise LanguageError(
            f"--method {method} cannot use {held}", kind="usage", hint=f"there are {methods}"
        )
    problem = Problem(objective, bounds, constraints)
    path: Path = []
    limit_of_each = limit or max(2000, 50 * len(start))
    if given is None and method == "trust-krylov" and not problem.costly:
        first, method = _of_many(problem, start, limit_of_each, path, told)
    else:
        first = _run(problem, start, method, limit_of_each, path, told)
    found = _judged(problem, method, *first, path)
    if found.converged or given is not None or limit is not None or not path:
        return found
    # The gradient is zero there, so the start was exact on it (x = 0 for cos(x)). Searching on would
    # answer for another start than the one that was given; the word for the point says what to do.
    if found.kind in ("maximum", "saddle point"):
        return found
    for name, result in _others(problem, start, found, path, limit_of_each, told):
        better = _judged(problem, name, *result, path)
        if better.converged and (found.kind != FALLS or better.kind.startswith("minimum")):
            return better  # to go down to where all is flat is no answer
    return found


def _of_many(
    problem: Problem, start: Array, limit: int, path: Path, told: Any
) -> tuple[tuple[Array, int, bool], str]:
    """A minimum of many variables, and by which methods.

    The way there is shorter by gradients alone. Near it a trust region with products of the Hessian sees
    whether there is a way down from a saddle point. Its steps do not solve Newton's equations to the end, so
    that at the last digits it takes thousands of them: Rosenbrock's function of 1,000 variables, from
    x = 2, took 2,800, where one of Newton's does.
    """
    methods, count = ["L-BFGS-B", "trust-krylov"], 0
    x, count, _ = _run(problem, start, methods[0], limit, path, told, _NEARBY)
    if count < limit:
        radius = _WIDER * float(np.linalg.norm(x - path[-2][0])) if len(path) > 1 else 1.0
        near = {**_TRUST, "gtol": _ALMOST, "initial_trust_radius": min(max(radius, _CLOSE), 1.0)}
        x, more, done = _run(problem, x, methods[1], limit - count, path, told, near)
        count += more
        if done:
            x, more = _newton(problem, x, path, told)
            count += more
    norm = float(np.linalg.norm(problem.objective.value_and_gradient(x)[1]))
    done = norm <= GRADIENT
    if not done and count < limit:
        x, more, done = _run(problem, x, methods[1], limit - count, path, told)
        count += more
    return (x, count, done), ", ".join(methods)


def _newton(problem: Problem, x: Array, path: Path, told: Any) -> tuple[Array, int]:
    """Steps of Newton's that make the gradient smaller: (where they end, how many)."""
    objective = problem.objective
    for count in range(_STEPS):
        value, gradient = objective.value_and_gradient(x)
        norm = float(np.linalg.norm(gradient))
        step = None if norm <= GRADIENT else _solved(objective, x, gradient, _WITHIN * norm)
        if step is None:
            return x, count
        there, below = objective.value_and_gradient(x + step)
        left = float(np.linalg.norm(below))
        if not (left < norm and there <= value + TOLERANCE * abs(value)):
            return x, count
        x = x + step
        path.append((x, there, left))
        if told is not None:
            told(len(path), x, there, left)
    return x, _STEPS


def _solved(objective: Compiled, x: Array, gradient: Array, least: float) -> Array | None:
    """The step to where the gradient is 0, by conjugate gradients; None where a curvature is not positive.

    Nocedal and Wright, Numerical Optimization (2006), algorithm 5.2.
    """
    step, rest = np.zeros_like(x), -gradient
    way, size = rest, float(rest @ rest)
    for _ in range(2 * len(x)):
        turned = objective.hessian_product(x, way)
        curvature = float(way @ turned)
        if not curvature > 0:
            return None
        step = step + size / curvature * way
        rest = rest - size / curvature * turned
        before, size = size, float(rest @ rest)
        if size <= least**2:
            break
        way = rest + size / before * way
    return step


def _others(
    problem: Problem,
    start: Array,
    found: Minimum,
    path: Path,
    limit: int,
    told: Callable[[int, Array, float, float], None] | None,
) -> Iterable[tuple[str, tuple[Array, int, bool]]]:
    """(method, (point, iterations, whether it thinks that it is done)) of searches that go on."""
    if problem.costly:
        return
    if problem.constraints:
        yield "trust-constr", _run(problem, start, "trust-constr", limit, path, told)
    else:
        # Trust regions need second derivatives, and a kink such as |x - 1| has none. L-BFGS-B often gets
        # across one with gradients alone; where it sticks, a simplex needs values only, for a few
        # variables.
        yield "L-BFGS-B", _inside(problem, start, limit, path, told)
    lowest = min(path, key=lambda step: step[1] if step[1] == step[1] else np.inf)[0]
    if not problem.constraints:
        yield "L-BFGS-B", _inside(problem, lowest, limit, path, told)
        lowest = min(path, key=lambda step: step[1] if step[1] == step[1] else np.inf)[0]
    if len(lowest) <= _FEW and not any(relation == "eq" for relation, _ in problem.constraints):
        yield "Nelder-Mead", _without_derivatives(problem, lowest, limit, path, told)


def _inside(
    problem: Problem, start: Array, limit: int, path: Path, told: Any
) -> tuple[Array, int, bool]:
    """L-BFGS-B with bounds drawn in where there is no value at them, as at 0 for `x - log(x)`."""
    x, bounds = start, problem.bounds
    made = (start, 0, False)
    for _ in range(_SHRINKS):
        bounds = _drawn_in(problem, x, bounds)
        made = _run(problem._replace(bounds=bounds), x, "L-BFGS-B", limit, path, told)
        x = made[0]
        # If the search ended at a bound that was drawn in, the minimum lies beyond it: the next turn
        # draws it in from there, a thousandth as far away. For x - log(x) from 5 the first bound is
        # 0.005, and nothing is met.
        drawn = (bounds[0] != problem.bounds[0]) | (bounds[1] != problem.bounds[1])
        if not (drawn & ((x <= bounds[0]) | (x >= bounds[1]))).any():
            break
        bounds = problem.bounds
    return made


def _drawn_in(problem: Problem, x: Array, bounds: Bounds) -> Bounds:
    drawn = []
    for end in bounds:
        end = np.array(end, np.float64)
        for k in np.flatnonzero(np.isfinite(end)):
            there = np.array(x)
            there[k] = end[k]
            if not np.isfinite(problem.objective.value_and_gradient(there)[0]):
                end[k] += _INSIDE * (x[k] - end[k])
        drawn.append(end)
    return drawn[0], drawn[1]


def _without_derivatives(
    problem: Problem, start: Array, limit: int, path: Path, told: Any
) -> tuple[Array, int, bool]:
    """Nelder and Mead's simplex, begun anew around the best point until that gains nothing."""
    x, value, count = start, problem.value(start), 0
    size = 0.05 * (1 + np.abs(x).max())
    for _ in range(_SHRINKS):
        there, lower, iterations = simplex(problem, x, size)
        count += iterations
        if not lower < value:
            break
        x, value, size = there, lower, size / 30
    gradient = problem.objective.value_and_gradient(x)[1]
    path.append((x, value, float(np.linalg.norm(gradient))))
    if told is not None:
        told(len(path), *path[-1][1:])
    return x, count, True


def _run(
    problem: Problem,
    start: Array,
    method: str,
    limit: int,
    path: Path,
    told: Callable[[int, Array, float, float], None] | None,
    options: Mapping[str, Any] | None = None,
) -> tuple[Array, int, bool]:
    """(where a method of SciPy's ends, its iterations, whether it thinks that it is done).

    options: of the method, instead of those with which it ends at the last digits.
    """
    objective, bounds, begun = problem.objective, problem.bounds, len(path)
    free = bool(np.isinf(bounds[0]).all() and np.isinf(bounds[1]).all())
    small = len(start) <= SMALL

    def callback(x: Array, *rest: Any) -> None:
        value, gradient = objective.value_and_gradient(x)
        norm = float(np.linalg.norm(gradient))
        path.append((np.array(x), value, norm))
        if told is not None:
            told(len(path), x, value, norm)
        # At the last digit a trust region shrinks and shrinks without an end of its own. SciPy takes
        # StopIteration from the callback for the end.
        if len(path) - begun > _STILL and value == path[-_STILL][1] and method not in _BOUNDED:
            raise StopIteration

    def finite(x: Array) -> tuple[float, Array]:
        """Where there is no value, an infinite one: no method steps there."""
        value, gradient = objective.value_and_gradient(x)
        return value if value == value else np.inf, np.nan_to_num(gradient, posinf=0, neginf=0)

    def hessian(x: Array) -> Array:
        return np.nan_to_num(objective.hessian(x), posinf=0, neginf=0)

    given: dict[str, Any] = {"jac": True, "callback": callback}
    if method == "trust-constr" and small:
        given["hess"] = hessian
    elif method in ("trust-krylov", "trust-ncg", "Newton-CG", "trust-constr"):
        given["hessp"] = objective.hessian_product
    if not free:
        given["bounds"] = list(zip(*bounds, strict=True))
    if problem.constraints:
        kind = _with_hessian if method == "trust-constr" and small else _constraint
        given["constraints"] = [kind(*one) for one in problem.constraints]
    options = dict(options or _TOLERANCES.get(method, {"gtol": GRADIENT}))
    radius = max(1.0, float(np.linalg.norm(start)))
    if method in ("trust-krylov", "trust-ncg"):
        options.setdefault("initial_trust_radius", radius)
    options["maxiter"] = limit
    try:
        if method == "trust-exact":
            return trust_region(
                finite, hessian, np.array(start), radius=radius, largest=_LARGEST, small=GRADIENT,
                limit=limit, told=callback,
            )  # fmt: skip
        optimize = scipy("optimize")
        with warnings.catch_warnings(), small_products():
            warnings.simplefilter("ignore")  # about how it gets on; what it found, we look at
            found = optimize.minimize(finite, start, method=method, options=options, **given)
    except (ValueError, ArithmeticError, np.linalg.LinAlgError):
        # A method that met infinities, at a kink or beside what has no value: it got as far as its path.
        return (path[-1][0] if len(path) > begun else start), len(path) - begun, False
    return np.asarray(found.x, np.float64), int(found.nit), bool(found.success)


def _judged(
    problem: Problem, method: str, x: Array, iterations: int, succeeded: bool, path: Path
) -> Minimum:
    evaluations = problem.objective.evaluations
    found: Stationary = described(problem, x, succeeded)
    return Minimum(
        found.x, found.value, found.gradient, found.kind, found.eigenvalues, method, iterations,
        evaluations, found.converged, path, found.covariance,
    )  # fmt: skip


def descended(
    objective: Compiled,
    start: Array,
    method: str,
    rate: float | None = None,
    steps: int | None = None,
    *,
    momentum: float | None = None,
    told: descents.Told | None = None,
) -> tuple[Minimum, descents.Descent, float]:
    """(where a descent ends, its steps, its rate): the last point, as it is, whatever it is.

    method: one of `descents.DESCENTS`. rate: `descents.usual_rate` if None. Raises LanguageError where it
    rises, with a rate that falls.
    """
    slopes, newton = objective.value_and_gradient, method == descents.NEWTON
    curved = newton or (len(start) <= _CURVED and not objective.costly)
    hessian = objective.hessian if curved else None
    if rate is None:
        rate = descents.usual_rate(method, slopes, start, hessian)
    steps = steps or descents.STEPS
    made = descents.descend(
        method, slopes, start, rate, steps, hessian=hessian, told=told, momentum=momentum
    )
    evaluations = objective.evaluations
    if made.away or (made.rises and not newton):
        words = "the numbers leave all bounds" if made.away else "the value is above where it began"
        lower = (
            None if newton else descents.falling_rate(method, slopes, start, rate, steps, momentum)
        )
        hint = "start elsewhere" if lower is None else f"a smaller rate falls: --rate {lower:g}"
        raise LanguageError(f"{made.ended(rate)} {words}", kind="value", usage=False, hint=hint)
    free, x = np.full(len(start), np.inf), made.points[-1]
    found = described(Problem(objective, (-free, free), ()), x, False)
    path = list(zip(made.points[1:], made.values[1:], made.norms[1:], strict=True))
    minimum = Minimum(
        x, *slopes(x), found.kind, found.eigenvalues, method, len(path), evaluations,
        found.converged, path,
    )  # fmt: skip
    return minimum, made, rate


def _constraint(relation: str, c: Compiled) -> dict[str, Any]:
    side = sign(relation)
    return {
        "type": "eq" if relation == "eq" else "ineq",
        "fun": lambda x: side * c.value(x),
        "jac": lambda x: side * c.jacobian(x),
    }


def _with_hessian(relation: str, c: Compiled) -> Any:
    """A constraint as SciPy's interior-point method has it."""
    low = -np.inf if relation in ("le", "lt") else 0.0
    high = np.inf if relation in ("ge", "gt") else 0.0
    return scipy("optimize").NonlinearConstraint(
        c.value, low, high, jac=c.jacobian, hess=c.weighted_hessian
    )


__all__ = ["METHODS", "Minimum", "descended", "minimize"]
