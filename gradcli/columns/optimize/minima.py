"""Minima: trust regions and SciPy's methods, with exact gradients, Hessians and their products."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradcli.columns.optimize.least_squares import TOLERANCE, Array, scipy
from gradcli.columns.optimize.spaces import Compiled
from gradcli.columns.optimize.trust_region import trust_region
from gradcli.language.located_errors import LanguageError
from gradcli.operators.primitives import lapack

METHODS = (
    *("trust-exact", "trust-krylov", "trust-ncg", "Newton-CG", "BFGS", "L-BFGS-B", "TNC", "CG"),
    *("SLSQP", "trust-constr"),
)
_BOUNDED = ("L-BFGS-B", "TNC", "SLSQP", "trust-constr")
_SMALL = 200  # variables up to which the Hessian is a matrix
_GRADIENT = 1e-10  # next to which a gradient is none
_LOOSE = 1e-5  # the same where a method gave up, of many variables
_LEFT = 1e-9  # of the value, what another step may lower a minimum by
_FLAT = 1e-10  # of variables scaled to curvatures of 1: an eigenvalue that is as small is zero
_NEAR = 1e-3  # of a point, how far one looks for lower values where the Hessian tells nothing
_STILL = 50  # iterations in which a value that does not change will not
_ACTIVE = 1e-7  # of its scale, how close a bound or a constraint is
_LARGEST = 1e12  # radius of a step
_TRUST = {"gtol": _GRADIENT, "max_trust_radius": _LARGEST}
_TOLERANCES = {
    **dict.fromkeys(("trust-krylov", "trust-ncg"), _TRUST),
    "L-BFGS-B": {"ftol": TOLERANCE, "gtol": _GRADIENT, "maxcor": 30},
    "TNC": {"ftol": TOLERANCE, "gtol": _GRADIENT},
    "SLSQP": {"ftol": TOLERANCE},
    # With SciPy's first barrier, 0.1, it ends before the constraints are reached.
    "trust-constr": {"gtol": _GRADIENT, "xtol": 1e-14, "initial_barrier_parameter": 1e-7},
    "Newton-CG": {"xtol": 1e-12},
}


class Minimum(NamedTuple):
    """What was found. gradient: without what holds constraints and active bounds; kind: in words."""

    x: Array
    value: float
    gradient: Array
    kind: str
    eigenvalues: Array | None
    method: str
    iterations: int
    evaluations: int
    converged: bool
    path: list[tuple[Array, float, float]]


def minimize(
    objective: Compiled,
    start: Array,
    *,
    bounds: tuple[Array, Array],
    constraints: Sequence[tuple[str, Compiled]] = (),
    method: str | None = None,
    limit: int | None = None,
    told: Callable[[int, float, float], None] | None = None,
) -> Minimum:
    """A minimum near the start.

    constraints: (relation, left - right) of each. method: None for one that suits: trust regions with the
    Hessian, or its products for many variables; quasi-Newton within bounds; sequential quadratic
    programming under constraints. told: called with an iteration's number, value and gradient norm.
    """
    free = bool(np.isinf(bounds[0]).all() and np.isinf(bounds[1]).all())
    small = len(start) <= _SMALL
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
    path: list[tuple[Array, float, float]] = []

    def callback(x: Array, *rest: Any) -> None:
        value, gradient = objective.value_and_gradient(x)
        norm = float(np.linalg.norm(gradient))
        path.append((np.array(x), value, norm))
        if told is not None:
            told(len(path), value, norm)
        if len(path) > _STILL and value == path[-_STILL][1] and method not in _BOUNDED:
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
    if constraints:
        kind = _with_hessian if method == "trust-constr" and small else _constraint
        given["constraints"] = [kind(*one) for one in constraints]
    options = dict(_TOLERANCES.get(method, {"gtol": _GRADIENT}))
    radius = max(1.0, float(np.linalg.norm(start)))
    steps = limit or max(2000, 50 * len(start))
    if method == "trust-exact":
        ended = trust_region(
            finite, hessian, np.array(start), radius=radius, largest=_LARGEST, small=_GRADIENT,
            limit=steps, told=callback,
        )  # fmt: skip
        return _described(objective, ended, bounds, constraints, method, path)
    if method in ("trust-krylov", "trust-ncg"):
        options["initial_trust_radius"] = radius
    options["maxiter"] = steps
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about how the method gets on; what it found, we look at
        found = scipy("optimize").minimize(finite, start, method=method, options=options, **given)
    return _described(objective, found, bounds, constraints, method, path)


def _constraint(relation: str, c: Compiled) -> dict[str, Any]:
    sign = _sign(relation)
    return {
        "type": "eq" if relation == "eq" else "ineq",
        "fun": lambda x: sign * c.value(x),
        "jac": lambda x: sign * c.jacobian(x),
    }


def _with_hessian(relation: str, c: Compiled) -> Any:
    """A constraint as SciPy's interior-point method has it."""
    low = -np.inf if relation in ("le", "lt") else 0.0
    high = np.inf if relation in ("ge", "gt") else 0.0
    return scipy("optimize").NonlinearConstraint(
        c.value, low, high, jac=c.jacobian, hess=c.weighted_hessian
    )


def _sign(relation: str) -> float:
    """SciPy's inequalities are `>= 0`."""
    return -1.0 if relation in ("le", "lt") else 1.0


def _described(
    objective: Compiled,
    found: Any,
    bounds: tuple[Array, Array],
    constraints: Sequence[tuple[str, Compiled]],
    method: str,
    path: list[tuple[Array, float, float]],
) -> Minimum:
    x = np.asarray(found.x, np.float64)
    evaluations = objective.evaluations
    value, gradient = objective.value_and_gradient(x)
    scale = _ACTIVE * (1 + np.abs(x))
    normals = [np.eye(len(x))[(x - bounds[0] <= scale) | (bounds[1] - x <= scale)]]
    feasible, bent = True, []
    for relation, c in constraints:
        here = c.value(x) * _sign(relation)
        active = np.abs(here) <= _ACTIVE if relation != "eq" else np.full(len(here), True)
        feasible &= bool((here > -1e-6).all() and (relation != "eq" or (here < 1e-6).all()))
        normals.append(c.jacobian(x)[active])
        bent.append((c, active))
    rows = np.concatenate(normals)
    tangent, rest, multipliers = np.eye(len(x)), gradient, np.zeros(0)
    if len(rows):
        u, s, vt = lapack.svd(rows, full_matrices=True)
        rank = int((s > 1e-10 * s.max(initial=0)).sum())
        tangent = vt[rank:].T
        multipliers = u[:, :rank] @ ((vt[:rank] @ gradient) / s[:rank])
        rest = tangent @ (tangent.T @ gradient)
    norm = float(np.linalg.norm(rest))
    converged = bool(np.isfinite(value) and np.isfinite(gradient).all()) and feasible
    kind, eigenvalues = "not known", None
    if converged and len(x) <= _SMALL:
        hessian = objective.hessian_found(x)
        at = len(normals[0])
        for c, active in bent:  # what is curved of the constraints themselves
            weights = np.zeros(len(active))
            weights[active] = multipliers[at : at + int(active.sum())]
            at += int(active.sum())
            hessian = hessian - c.weighted_hessian(x, weights)
        free = tangent.T @ hessian @ tangent
        eigenvalues = lapack.eigh(free)[0] if free.size else np.zeros(0)
        kind, left, moves = _kind(free, tangent.T @ gradient, _NEAR * (1 + np.abs(x).max()))
        rounding = 1e-12 * abs(value) + 1e-15 * np.abs(hessian).max() * (1 + x @ x)
        for move in moves if len(normals) == 1 else ():
            ahead = np.clip(x + tangent @ move, *bounds)  # where a minimum is higher again
            if not objective.value_and_gradient(ahead)[0] >= value - rounding:
                kind = "no minimum: it still falls in some direction"
        if kind == "minimum" and not len(rows):  # a last step of Newton's, where it leads lower
            value, x, rest = min(
                (value, x, rest), _there(objective, x + moves[0] / 10), key=lambda one: one[0]
            )
        converged = left <= _LEFT * abs(value) or left <= _LEFT**2 or norm <= _GRADIENT
        converged |= bool(found.success) and norm <= _LOOSE * max(1.0, abs(value))
    elif converged:
        converged = norm <= _LOOSE * max(1.0, abs(value))
    kind = kind if converged else "no minimum"
    converged = converged and kind.startswith(("minimum", "flat", "not known"))
    return Minimum(
        x, value, rest, kind, eigenvalues, method, int(found.nit), evaluations, converged, path
    )


def _there(objective: Compiled, x: Array) -> tuple[float, Array, Array]:
    value, gradient = objective.value_and_gradient(x)
    return value if value == value else np.inf, x, gradient


def _kind(hessian: Array, gradient: Array, near: float) -> tuple[str, float, list[Array]]:
    """(what a stationary point is by its Hessian, what a step of Newton's would gain, moves to look along).

    The moves are ten steps of Newton's, and as far as `near` in directions without curvature: a minimum is
    no higher than where they lead. Variables are scaled to curvatures of 1, which changes no eigenvalue's
    sign.
    """
    if not hessian.size:
        return "minimum", 0.0, []
    scale = np.sqrt(np.abs(np.diagonal(hessian)))
    scale[scale == 0] = 1.0
    values, vectors = lapack.eigh(hessian / np.outer(scale, scale))
    slopes = vectors.T @ (gradient / scale)
    up, down = values > _FLAT, values < -_FLAT
    bent = up | down
    left = float((slopes[bent] ** 2 / np.abs(values[bent])).sum() / 2)
    if np.abs(slopes[~bent]).max(initial=0) > _LOOSE:  # it goes on and on
        left = np.inf
    moves = [-10 * (vectors[:, bent] @ (slopes[bent] / np.abs(values[bent]))) / scale]
    if up.all() or down.all():
        return "minimum" if up.all() else "maximum", left, moves
    flat = vectors[:, ~bent] / scale[:, None]
    several = np.random.default_rng(0).normal(size=(flat.shape[1], 2 * flat.shape[1]))
    for move in np.concatenate([flat, flat @ several], 1).T:
        moves += [sign * near * move / np.linalg.norm(move) for sign in (1, -1)]
    return "saddle point" if down.any() else "flat: the Hessian is singular", left, moves
