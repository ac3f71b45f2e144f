"""What a point is: a minimum, a saddle point …, and the values around it that bear the word out.

The conditions are those of Karush, Kuhn and Tucker (Nocedal and Wright, Numerical Optimization, 2006, chapter
12): multipliers of bounds and inequalities are not negative, and the Hessian of the Lagrangian is looked at
along what they leave free. A bound whose multiplier is 0 holds nothing: there the directions form a cone. A
Hessian alone is no warrant (x³ has a curvature of 1e-5 near 0, exp(x) one of 1e-15 far out), so that values
are asked for, too: after ten steps of Newton's, where the curvature promises a rise above rounding, and where
it promises none.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gradcli.columns.optimize.least_squares import Array, scipy
from gradcli.columns.optimize.spaces import Compiled
from gradcli.operators.primitives import lapack

SMALL = 200  # variables up to which the Hessian is a matrix
GRADIENT = 1e-10  # next to which a gradient is none
_LOOSE = 1e-5  # the same where a method gave up, of many variables
_LEFT = 1e-9  # of the value, what another step may lower a minimum by
_FLAT = 1e-10  # of variables scaled to curvatures of 1: an eigenvalue that is as small is zero
_NEAR = 1e-3  # of a point, how far one looks for lower values where the Hessian tells nothing
_ACTIVE = 1e-7  # of its scale, how close a bound or a constraint is
_HELD = 1e-9  # of the gradient, a multiplier that is smaller is 0
_GAIN = 1.2  # times what a step of Newton's would gain: a parabola falls no further
_SEEN = 8.0  # times rounding that a rise must be to be seen, where the curvature promises one
_KINK_SCALES = (1.0, 1e-2, 1e-4)  # of `_NEAR`
_SIMPLE = 6  # variables up to which a search without derivatives is a test of a minimum
_LOOKS = 30  # products with the Hessian that look for a way down, of many variables
_SEEN_BY_LOOKS = 1e-6  # of the largest eigenvalue, a negative one that is no rounding
_LAST = 3  # steps of Newton's from a minimum
_ROUNDED = 1e-15  # of the largest number of a point, what is rounding
_SAMPLES = 8  # directions of a cone for each of its dimensions

FALLS = "no minimum: it still falls in some direction"
FLAT = "flat: the Hessian is singular"
RUNS_AWAY = "no minimum: the value falls without end"
AT_KINK = "not known: at a kink, where no value around it is lower"
BY_VALUES = "minimum by values alone: none around it is lower"
Bounds = tuple[Array, Array]
Constraints = Sequence[tuple[str, Compiled]]


class Problem(NamedTuple):
    """What is minimized. constraints: (relation, left - right) of each."""

    objective: Compiled
    bounds: Bounds
    constraints: Constraints

    @property
    def costly(self) -> bool:
        """Whether a value is a pass over a table."""
        return self.objective.costly

    def value(self, x: Array) -> float:
        """The value; infinite where there is none, or where a bound or a constraint does not hold."""
        if not ((self.bounds[0] <= x) & (x <= self.bounds[1])).all():
            return np.inf
        for relation, c in self.constraints:
            here = c.value(x) * sign(relation)
            if not (here >= -1e-6).all() or (relation == "eq" and not (here <= 1e-6).all()):
                return np.inf
        value = self.objective.value_and_gradient(x)[0]
        return value if value == value else np.inf


def sign(relation: str) -> float:
    """SciPy's inequalities are `>= 0`."""
    return -1.0 if relation in ("le", "lt") else 1.0


class Stationary(NamedTuple):
    """What a point is. gradient: without what constraints and bounds hold; converged: whether it is claimed.

    lower: a point around it with a lower value, if one was seen. covariance: the inverse of the Hessian along
    what is free, at a minimum.
    """

    x: Array
    value: float
    gradient: Array
    kind: str
    eigenvalues: Array | None
    converged: bool
    lower: Array | None = None
    covariance: Array | None = None


class _Active(NamedTuple):
    """What holds a point: normals that point inside, their multipliers, and which constraint each is of.

    held: equations, and what has a multiplier; gaps: how far the point is from each. loose: normals of
    multiplier 0.
    """

    held: Array
    gaps: Array
    loose: Array
    weights: list[tuple[float, Compiled, Array]]  # sign, constraint, multipliers of its elements


def described(problem: Problem, x: Array, succeeded: bool) -> Stationary:
    """What a point is, and what was seen around it. succeeded: whether the method thinks that it is done."""
    objective = problem.objective
    value, gradient = objective.value_and_gradient(x)
    if not np.isfinite(value) or problem.value(x) == np.inf:
        return Stationary(x, value, gradient, "no minimum", None, False)
    if not np.isfinite(gradient).all():
        return _at_kink(problem, x, value, gradient, None)
    # The order of the questions: what holds the point; what is left of the gradient; the eigenvalues of
    # the Hessian along what is free; and then values, at points where the Hessian promises that a minimum
    # is higher. For x**4 at 0 the Hessian is 0 and says "flat"; for -x**4 it is, too, and only values
    # tell.
    active, rest = _active(problem, x, gradient)
    norm = float(np.linalg.norm(rest))
    if len(x) > SMALL:
        done = norm <= _LOOSE * max(1.0, abs(value))
        kind = "not known" if done else "no minimum"
        if done and not problem.costly and not len(active.held) and not len(active.loose):
            kind = _turning_down(problem, x, value) or kind
            done = kind == "not known"
        return Stationary(x, value, rest, kind, None, done)
    hessian = objective.hessian_found(x)
    for side, c, weights in active.weights:  # what is curved of the constraints themselves
        hessian = hessian - c.weighted_hessian(x, side * weights)
    if not np.isfinite(hessian).all():
        return _at_kink(problem, x, value, rest, None)
    tangent = _null(active.held, len(x))
    free = tangent.T @ hessian @ tangent
    eigenvalues = lapack.eigh(free)[0] if free.size else np.zeros(0)
    cone = active.loose @ tangent
    look = _look(free, tangent.T @ rest, cone, _NEAR * (1 + np.abs(x).max(initial=0)), tangent)
    rounding = 1e-12 * abs(value) + 1e-15 * np.abs(hessian).max(initial=0) * (1 + x @ x)
    found, lower = look.kind, None
    # A minimum that is not yet exact may lie lower nearby by what one more step gains. So the values
    # around are compared with the value less that gain: whether it is small enough is asked separately
    # (`converged`).
    base = _lagrangian(problem, active, x) - rounding  # and what a step would gain is judged below
    base -= _GAIN * look.left if np.isfinite(look.left) else 0.0
    for move in look.moves(rounding, problem.costly):
        ahead = np.clip(x + tangent @ move, *problem.bounds)
        there = _lagrangian(problem, active, ahead)
        if not there >= base:
            found, lower = FALLS, ahead if problem.value(ahead) < value else None
    # The negative curvature has to be seen in the values, too: at a kink such as that of |x| - x**2/2 the
    # Hessian's -1 is right on both sides of 0, and yet 0 is a minimum.
    if look.kind in ("maximum", "saddle point") and not problem.costly:
        found = look.kind  # which of its falls is a step of Newton's does not matter
        for direction, curvature in look.fallen:
            move = np.sqrt(2 * _SEEN * rounding / curvature) * direction
            sides = [_lagrangian(problem, active, x + tangent @ (s * move)) for s in (1, -1)]
            if not min(sides) < value:
                return _at_kink(problem, x, value, rest, eigenvalues)
    if found == FLAT and _bent(problem, active, x, value, look, tangent, rounding):
        return _at_kink(problem, x, value, rest, eigenvalues)
    converged = look.left <= _LEFT * abs(value) or look.left <= _LEFT**2 or norm <= GRADIENT
    converged |= succeeded and norm <= _LOOSE * max(1.0, abs(value))
    if not converged:
        kink = _at_kink(problem, x, value, rest, eigenvalues)
        return kink if kink.converged else kink._replace(kind="no minimum")
    if found == "minimum" and not active.loose.size:
        x, rest = _polished(problem, x, active, rest, hessian)
        value = objective.value_and_gradient(x)[0]
    covariance = _inverse(free, tangent) if found == "minimum" and not len(cone) else None
    converged = found.startswith(("minimum", "flat"))
    return Stationary(x, value, rest, found, eigenvalues, converged, lower, covariance)


# -- what holds a point ---------------------------------------------------------------------------
def _active(problem: Problem, x: Array, gradient: Array) -> tuple[_Active, Array]:
    """(what holds a point, what is left of the gradient): by the least squares of `gradient = Σ λ·normal`."""
    scale = _ACTIVE * (1 + np.abs(x))
    at_low, at_high = x - problem.bounds[0] <= scale, problem.bounds[1] - x <= scale
    places = np.flatnonzero(at_low | at_high)
    sides = np.where(at_low[places], 1.0, -1.0)
    gaps = np.where(at_low, x - problem.bounds[0], problem.bounds[1] - x)[places]
    # The multiplier of a lower bound is the gradient's element there, if that is positive (going up would
    # raise the value, so the bound is what stops it); of an upper bound minus it. Nothing has to be
    # solved.
    if not problem.constraints:  # each bound has one element of the gradient to itself
        multipliers = np.maximum(gradient[places] * sides, 0.0)
        rest = np.array(gradient, np.float64)
        rest[places] -= multipliers * sides
        held = multipliers > _HELD * np.abs(gradient).max(initial=0)
        bound = (
            np.eye(len(x))[places] * sides[:, None] if len(x) <= SMALL else np.zeros((0, len(x)))
        )
        keep = held[: len(bound)]
        return _Active(bound[keep], gaps[: len(bound)][keep], bound[~keep], []), rest
    normals, equal = [np.eye(len(x))[places] * sides[:, None]], [np.zeros(len(places), bool)]
    apart = [gaps]
    owners: list[tuple[float, Compiled, Array]] = []
    for relation, c in problem.constraints:
        here = c.value(x) * sign(relation)
        on = np.full(len(here), True) if relation == "eq" else here <= _ACTIVE
        normals.append(sign(relation) * c.jacobian(x)[on])
        equal.append(np.full(int(on.sum()), relation == "eq"))
        apart.append(here[on])
        owners.append((sign(relation), c, on))
    rows, always = np.concatenate(normals), np.concatenate(equal)
    lengths = np.linalg.norm(rows, axis=1)
    lengths[lengths == 0] = 1.0
    units = rows / lengths[:, None]
    multipliers = _multipliers(units, always, gradient)
    rest = gradient - units.T @ multipliers
    held = always | (multipliers > _HELD * np.linalg.norm(gradient))
    multipliers = multipliers / lengths
    gaps = np.concatenate(apart) / lengths
    weights, start = [], len(places)
    for side, c, on in owners:
        own = np.zeros(len(on))
        own[on] = multipliers[start : start + int(on.sum())]
        start += int(on.sum())
        weights.append((side, c, own))
    return _Active(units[held], gaps[held], units[~held], weights), rest


def multipliers(problem: Problem, x: Array) -> list[Array]:
    """Of each constraint the multipliers of its elements; those of an inequality are not negative."""
    active, _ = _active(problem, x, problem.objective.value_and_gradient(x)[1])
    return [weights for _, _, weights in active.weights]


def _multipliers(units: Array, always: Array, gradient: Array) -> Array:
    """Of normals; those of inequalities are not negative."""
    if not len(units):
        return np.zeros(0)
    # The multiplier of an equation may have any sign, that of an inequality is not negative. What no
    # choice of them explains is the gradient that is left. Bounded-variable least squares finds them
    # exactly, as an active-set method; an interior one would leave each a little above 0.
    low = np.where(always, -np.inf, 0.0)
    found = scipy("optimize").lsq_linear(units.T, gradient, (low, np.inf), method="bvls", tol=1e-15)
    return np.asarray(found.x)


def _polished(
    problem: Problem, x: Array, active: _Active, rest: Array, hessian: Array
) -> tuple[Array, Array]:
    """(a minimum after steps of Newton's that leave less of its equations; what they leave).

    The equations are those of Karush, Kuhn and Tucker: the point lies on what holds it, and the gradient is
    that of the multipliers (Nocedal and Wright, 18.1). The methods end when the value no longer changes, at
    half of the digits of the point.
    """
    slope = problem.objective.value_and_gradient
    scale = max(float(np.linalg.norm(slope(x)[1])), 1e-300)

    def left(x: Array, active: _Active, rest: Array) -> float:
        far = float(np.linalg.norm(active.gaps)) / (1e-300 + float(np.abs(x).max()))
        return float(np.linalg.norm(rest)) / scale + far

    for _ in range(1 if problem.costly else _LAST):
        tangent = _null(active.held, len(x))
        held = active.held  # independent rows
        onto = -held.T @ lapack.solve(held @ held.T, active.gaps)
        free = tangent.T @ hessian @ tangent
        along = -lapack.solve(free, tangent.T @ (rest + hessian @ onto))
        if not (np.isfinite(along).all() and np.isfinite(onto).all()):
            break
        ahead = _snapped(problem, x + onto + tangent @ along)
        value, gradient = slope(ahead)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            break
        there, less = _active(problem, ahead, gradient)
        if there.held.shape != active.held.shape or problem.value(ahead) == np.inf:
            break
        if not left(ahead, there, less) < left(x, active, rest):
            break
        x, active, rest = ahead, there, less
    return x, rest


def _inverse(free: Array, tangent: Array) -> Array | None:
    """The inverse of a Hessian along what is free, of all variables; None where it is singular."""
    # With a diagonal of ones it is as accurate where variables have other units: 1e-5 beside 0.9.
    scale = np.sqrt(np.abs(np.diagonal(free)))
    made, info = lapack.inverse(free / np.outer(scale, scale))
    if info.any() or not np.isfinite(made).all():
        return None
    made = made / np.outer(scale, scale)
    return np.asarray(tangent @ (made + made.T) @ tangent.T / 2)


def _snapped(problem: Problem, x: Array) -> Array:
    """A point whose numbers are on their bounds, or 0, where they are up to rounding."""
    most = _ROUNDED * np.abs(x).max(initial=0)
    for end in (*problem.bounds, np.zeros(len(x))):
        near = np.isfinite(end) & (np.abs(x - end) <= most)
        x = np.where(near, end, x)
    return x


def _lagrangian(problem: Problem, active: _Active, x: Array) -> float:
    """The value without what constraints hold of it; nan where there is none."""
    value = problem.objective.value_and_gradient(x)[0]
    for side, c, weights in active.weights:
        if weights.any():
            value -= float(weights @ (side * c.value(x)))
    if active.weights and value == value:  # whose other constraints are to hold
        for (relation, _), (side, c, weights) in zip(
            problem.constraints, active.weights, strict=True
        ):
            here = side * c.value(x)
            if relation != "eq" and (here[weights == 0] < 0).any():
                return np.inf
    return value if value == value else np.inf


def _null(rows: Array, size: int) -> Array:
    """An orthonormal basis of what is normal to rows, as columns."""
    if not len(rows):
        return np.eye(size)
    _, s, vt = lapack.svd(rows, full_matrices=True)
    rank = int((s > 1e-10 * s.max(initial=0)).sum())
    return vt[rank:].T


# -- where to look --------------------------------------------------------------------------------
class _Look(NamedTuple):
    """kind: by the Hessian. left: what a step of Newton's would gain. newton: that step.

    bent: (direction, curvature) of each in which a rise is to be seen; fallen: a fall; flat: moves without
    curvature.
    """

    kind: str
    left: float
    newton: Array
    bent: list[tuple[Array, float]]
    fallen: list[tuple[Array, float]]
    flat: list[Array]
    cone: Array

    def moves(self, rounding: float, few: bool) -> list[Array]:
        """Where a minimum is no lower."""
        made = [10 * self.newton] if self.newton.any() else []
        for direction, curvature in self.bent[: 1 if few else None]:
            move = np.sqrt(2 * _SEEN * rounding / curvature) * direction
            made += [move, -move]
        return [move for move in [*made, *self.flat] if _within(self.cone, move)]


def _within(cone: Array, move: Array) -> bool:
    return bool((cone @ move >= -1e-12 * np.linalg.norm(move)).all()) if len(cone) else True


def _look(hessian: Array, slopes: Array, cone: Array, near: float, tangent: Array) -> _Look:
    """What a Hessian says, and where to look. Variables are scaled to curvatures of 1, which changes no
    eigenvalue's sign. cone: rows whose products with a direction are not negative."""
    size = len(hessian)
    if not size:
        return _Look("minimum", 0.0, np.zeros(0), [], [], [], cone)
    # An eigenvalue is called zero beside the largest, which depends on the units of the variables: x**2 +
    # 1e-12*y**2 is a minimum as much as x**2 + y**2. With a diagonal of ones the comparison is fair.
    scale = np.sqrt(np.abs(np.diagonal(hessian)))
    scale[scale == 0] = 1.0
    values, vectors = lapack.eigh(hessian / np.outer(scale, scale))
    along = vectors.T @ (slopes / scale)
    up, down = values > _FLAT, values < -_FLAT
    curved = up | down
    left = float((along[curved] ** 2 / np.abs(values[curved])).sum() / 2)
    if np.abs(along[~curved]).max(initial=0) > _LOOSE:  # it goes on and on
        left = np.inf
    newton = -(vectors[:, curved] @ (along[curved] / np.abs(values[curved]))) / scale
    directions = vectors / scale[:, None]
    bent = [(directions[:, k], float(values[k])) for k in np.flatnonzero(up)]
    fallen = [(directions[:, k], -float(values[k])) for k in np.flatnonzero(down)]
    look = _Look(FLAT, left, newton, bent, fallen, [], cone)
    if len(cone):
        return _in_cone(hessian, cone, near, look, scale)
    if up.all() or down.all():
        return look._replace(kind="minimum" if up.all() else "maximum")
    flat = directions[:, ~curved]
    # Along single flat directions a minimum of a product may look flat: u*v at 0 is 0 along both axes,
    # and falls between them. So mixtures are looked at as well.
    several = np.random.default_rng(0).normal(size=(flat.shape[1], 2 * flat.shape[1]))
    moves = []
    for move in np.concatenate([flat, flat @ several], 1).T:
        moves += [side * near * move / np.linalg.norm(move) for side in (1, -1)]
    return look._replace(kind="saddle point" if down.any() else FLAT, flat=moves)


def _in_cone(hessian: Array, cone: Array, near: float, look: _Look, scale: Array) -> _Look:
    """The same where bounds or constraints are met that hold nothing: along what they allow."""
    size = len(hessian)
    random = np.random.default_rng(0).normal(size=(_SAMPLES * size, size))
    directions = np.concatenate([np.eye(size), -np.eye(size), random / scale])
    nnls = scipy("optimize").nnls
    allowed = []
    # A step may not leave through a bound that is met. Directions along the axes and random ones are
    # projected onto the cone of what is allowed (non-negative least squares gives how far each normal has
    # to push). In the plane with x >= 0 and y >= 0, (-1, 1) becomes (0, 1).
    for d in directions:
        d = d + cone.T @ nnls(cone.T, -d)[0]  # the nearest that is allowed
        if (length := np.linalg.norm(d)) > 1e-9:
            allowed.append(d / length)
    if not allowed:
        return look._replace(kind="minimum")
    unit = np.array(allowed)
    weights = ((unit * scale) ** 2).sum(1)
    curvatures = ((unit @ hessian) * unit).sum(1) / np.where(weights > 0, weights, 1.0)
    bent = [
        (d, float(c * w)) for d, c, w in zip(unit, curvatures, weights, strict=True) if c > _FLAT
    ]
    fallen = [
        (d, -float(c * w)) for d, c, w in zip(unit, curvatures, weights, strict=True) if c < -_FLAT
    ]
    flat = [near * d for d, c in zip(unit, curvatures, strict=True) if abs(c) <= _FLAT]
    kind = "minimum"
    if (curvatures < -_FLAT).all():
        kind = "maximum"
    elif (curvatures < -_FLAT).any():
        kind = "saddle point"
    elif any(_within(cone, -d) for d in flat):
        kind = FLAT
    return look._replace(kind=kind, bent=bent, fallen=fallen, flat=flat)


# -- kinks ----------------------------------------------------------------------------------------
def _bent(
    problem: Problem, active: _Active, x: Array, value: float, look: _Look, tangent: Array,
    rounding: float,
) -> bool:  # fmt: skip
    """Whether values rise to both sides in proportion to the distance, where the Hessian says flat."""
    for move in look.flat[:: 2 if not len(look.cone) else 1]:
        rises = []
        # At a tenth of the distance a kink's rise is a tenth, a parabola's a hundredth and x**4's 1e-4.
        # What falls by less than 30 is a kink.
        for far in (1.0, 0.1):
            sides = [_lagrangian(problem, active, x + far * tangent @ (s * move)) for s in (1, -1)]
            rises.append(sum(sides) - 2 * value)
        if rises[0] > 1e3 * rounding and 0 < rises[0] < 30 * rises[1]:
            return True
    return False


def _turning_down(problem: Problem, x: Array, value: float) -> str | None:
    """What a point of many variables is where the Hessian turns down, and so do values; else None.

    Lanczos' method (Golub and Van Loan, Matrix Computations, 10.1): the largest and smallest eigenvalues of a
    small tridiagonal matrix come near the Hessian's after a few products with it.
    """
    rng = np.random.default_rng(len(x))
    basis = np.zeros((_LOOKS, len(x)))
    basis[0] = rng.standard_normal(len(x))
    basis[0] /= np.linalg.norm(basis[0])
    diagonal, beside = [], []
    for k in range(_LOOKS):
        turned = problem.objective.hessian_product(x, basis[k])
        if not np.isfinite(turned).all():
            return None
        diagonal.append(float(turned @ basis[k]))
        for _ in range(2):  # against rounding, twice
            turned = turned - basis[: k + 1].T @ (basis[: k + 1] @ turned)
        size = float(np.linalg.norm(turned))
        if k + 1 == _LOOKS or size <= _FLAT * max(map(abs, diagonal)):
            break
        beside.append(size)
        basis[k + 1] = turned / size
    matrix = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
    values, vectors = lapack.eigh(matrix)
    most = float(np.abs(values).max())
    if not values[0] < -_SEEN_BY_LOOKS * most:
        return None
    move = _NEAR * (1 + np.abs(x).max()) * (basis[: len(diagonal)].T @ vectors[:, 0])
    lower = value - 1e-12 * abs(value)
    if not any(problem.value(x + side * move) < lower for side in (1, -1)):
        return None
    return "maximum" if values[-1] < -_SEEN_BY_LOOKS * most else "saddle point"


def _at_kink(
    problem: Problem, x: Array, value: float, gradient: Array, eigenvalues: Array | None
) -> Stationary:
    """What a point is by the values around it alone, at three distances."""
    near = _NEAR * (1 + np.abs(x).max(initial=0))
    size = len(x)
    if (
        any(relation == "eq" for relation, _ in problem.constraints)
        or size > SMALL
        or problem.costly
    ):
        return Stationary(x, value, gradient, "no minimum", eigenvalues, False)
    random = np.random.default_rng(0).normal(size=(min(_SAMPLES * size, 200), size))
    slope = np.nan_to_num(gradient, posinf=0, neginf=0)
    # With no derivative to trust, values along the axes, against the slope, and along random directions
    # decide; at three distances, because |x| + 1e6*x**2 looks smooth from afar.
    units = np.concatenate([np.eye(size), [-slope], random])
    lengths = np.linalg.norm(units, axis=1)
    units = units[lengths > 0] / lengths[lengths > 0][:, None]
    rounding = 1e-14 * abs(value)
    least, rises, lower, slopes = np.inf, [], None, []
    for far in _KINK_SCALES:
        for d in np.concatenate([units, -units]):
            there = problem.value(ahead := x + near * far * d)
            if there < least:
                least, lower = there, ahead
            rises.append(there - value)
            if np.isfinite(there) and far == _KINK_SCALES[1]:
                slopes.append(problem.objective.value_and_gradient(ahead)[1])
    if not least >= value - rounding:
        known, kind = least < value, FALLS if least < value else "no minimum"
        return Stationary(x, value, gradient, kind, eigenvalues, False, lower if known else None)
    most = max([r for r in rises if np.isfinite(r)], default=0.0)
    if _least_of_hull(problem, x, slope, slopes) * near > 1e-9 * most:
        return Stationary(x, value, gradient, AT_KINK, eigenvalues, False)
    for size in (
        (near, 10 * near) if len(x) <= _SIMPLE else ()
    ):  # along a ridge a search still gains
        if value - simplex(problem, x, size)[1] > 1e-13 * max(abs(value), most):
            return Stationary(x, value, gradient, AT_KINK, eigenvalues, False)
    # Where the last digits of a point decide its value, values tell nothing: log(s) + r**2/s**2 at s = 1e-16.
    last = _ROUNDED * (1 + np.abs(x).max(initial=0))
    if np.linalg.norm(gradient) * last > 1e-5 * max(1.0, abs(value)):
        return Stationary(x, value, gradient, "no minimum", eigenvalues, False)
    kind = BY_VALUES if min(rises) > rounding else "flat: no value around it is lower"
    return Stationary(x, value, gradient, kind, eigenvalues, True)


def simplex(problem: Problem, x: Array, size: float) -> tuple[Array, float, int]:
    """(where Nelder and Mead's search from a simplex of a size ends, its value, its iterations)."""
    options = {
        "xatol": 0.0,
        "fatol": 0.0,
        "maxfev": 400 * len(x),
        "adaptive": len(x) > 2,
        "initial_simplex": np.concatenate([[x], x + size * np.eye(len(x))]),
    }
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # that it used all its evaluations
        found = scipy("optimize").minimize(problem.value, x, method="Nelder-Mead", options=options)
    return np.asarray(found.x, np.float64), float(found.fun), int(found.nit)


def _least_of_hull(problem: Problem, x: Array, slope: Array, slopes: list[Array]) -> float:
    """The length of the shortest mean of the gradients around a point, without what bounds hold of it.

    It is 0 at a minimum at a kink, and along a ridge that falls it is the slope along it (Burke, Lewis and
    Overton, A robust gradient sampling algorithm, SIAM J. Optim. 15, 2005).
    """
    found = [g for g in slopes if np.isfinite(g).all()]
    if not found:
        return np.inf
    active, _ = _active(problem, x, slope)
    normals = np.concatenate([active.held, active.loose])
    size = max(float(np.linalg.norm(g)) for g in found) or 1.0
    columns = np.concatenate([np.array(found) / size, -normals])
    ones = np.concatenate([np.ones(len(found)), np.zeros(len(normals))])
    shares = scipy("optimize").nnls(np.vstack([columns.T, ones]), np.append(np.zeros(len(x)), 1.0))[
        0
    ]
    total = shares[: len(found)].sum()
    return float(np.linalg.norm(columns.T @ shares)) * size / total if total else np.inf


__all__ = [
    "BY_VALUES",
    "FALLS",
    "GRADIENT",
    "RUNS_AWAY",
    "SMALL",
    "Problem",
    "Stationary",
    "described",
    "sign",
    "simplex",
]
