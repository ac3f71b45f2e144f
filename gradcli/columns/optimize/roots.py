"""Roots of systems by Levenberg and Marquardt's method with exact Jacobians, and all of one variable in an
interval. Where the method ends at no root, SciPy's (Powell's hybrid method, MINPACK's) try it too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from gradcli.columns.optimize.least_squares import TOLERANCE, Array, scipy
from gradcli.columns.optimize.levenberg_marquardt import levenberg_marquardt
from gradcli.columns.optimize.root_rows import BESIDE, ROUNDING, Search, reach_beside
from gradcli.columns.optimize.spaces import Compiled, Differences
from gradcli.columns.streaming.mapped_program import Results, Rows
from gradcli.language import as_tensor
from gradcli.language.located_errors import OPERATION_ERRORS, LanguageError
from gradcli.operators.primitives import lapack
from gradcli.transforms.sparsity import Dense, pattern
from gradcli.transforms.tracing.numpy_tracer import Untraceable, trace_numpy

GRID = 20_000  # pieces of an interval: roots that are closer than two of them may be missed
_STEP = 1e-7  # of a point, a step of Newton's that is smaller is none
_HALVES = 1100  # turns, which take 5 to 10; as many halves as there are between any two doubles
_SMALL = 1e-6  # of the differences at the start, those at a root
_ROUNDED = 1e-10  # of the sides, the same
_EPS = 16 * float(np.finfo(float).eps)  # of the numbers, what rounding moves them by
_STEEP = 1e-2  # of the values around, that at a root so steep that rounding is all of it
_LIMIT = 100  # evaluations for each unknown number, and one more
_HUGE = 1e100  # in place of a value that is not finite, so that no step is taken there
_PLATEAU = 2  # pieces of an interval: where a function is 0 on as many, it is 0 between them
_MANY = 8  # equations, from which on it pays to see whether each has a number of its own
_POLISH = 3  # steps of Newton's at the end


class Root(NamedTuple):
    """A point, the largest difference of two sides there, and whether it is a root; alone: the only one
    around it."""

    x: Array
    residual: float
    evaluations: int
    converged: bool
    alone: bool = True


def root(system: Compiled, start: Array) -> Root:
    """A root near the start. Raises LanguageError where equations and variables are not as many."""
    found = _found(system, start)
    alone = not found.converged or (found.alone and _is_alone(system, found.x))
    return found._replace(evaluations=system.evaluations, alone=alone)


def _found(system: Compiled, start: Array) -> Root:
    count = len(system.value(start))
    if count != len(start):
        numbers = f"{len(start)} unknown number{'s' * (len(start) != 1)}"
        raise LanguageError(
            f"{count} equation{'s' * (count != 1)} for {numbers}",
            kind="value",
            usage=False,
            hint=_as_many(system, start, count)
            or _by_one(system, count)
            or "give as many equations: --no-grad NAME fixes a variable, minimize takes their squares",
        )
    if count >= _MANY and _is_diagonal(system, start):
        return _each_by_itself(system, start)
    # The differences at the start give their own unit: equations of currents in 1e-9 A and of angles can
    # stand side by side, and each is compared with its own size.
    scale = np.nan_to_num(np.abs(system.value(start)), nan=0.0, posinf=0.0)
    first = levenberg_marquardt(
        lambda x: np.nan_to_num(system.value(x), nan=_HUGE, posinf=_HUGE, neginf=-_HUGE),
        lambda x: np.nan_to_num(system.jacobian(x), posinf=0, neginf=0),
        start,
        tolerance=TOLERANCE,
        limit=_LIMIT * (count + 1),
    )
    best = _polished(system, first.x, scale)
    if best.converged:
        return best
    for method, options in (
        ("hybr", {"xtol": TOLERANCE}),
        ("lm", {"xtol": TOLERANCE, "ftol": TOLERANCE}),
    ):
        found = scipy("optimize").root(
            system.value, start, jac=system.jacobian, method=method, options=options
        )
        made = _polished(system, np.asarray(found.x, np.float64), scale)
        if made.converged or made.residual < best.residual:
            best = made
        if best.converged:
            return best
    around = _each_by_itself(system, start) if count == 1 else best
    return around if around.converged and around.alone else best


MANY = 200  # numbers


def _is_alone(system: Compiled, x: Array) -> bool:
    """Whether a root is the only one around it, along the direction in which the sides change least.

    Of many numbers this is not asked: the direction takes a dense matrix and its cube of time.
    """
    if len(x) > MANY:
        return True
    jac = system.jacobian(x)
    if not np.isfinite(jac).all():
        return True
    along = lapack.svd(jac)[2][-1]
    reach = float(reach_beside(x).max())
    rounding = _rounding(system, x)

    def is_zero(share: float) -> bool:
        return bool((np.abs(system.value(x + share * reach * along)) <= rounding).all())

    return not any(all(map(is_zero, shares)) for shares in BESIDE)


def _rounding(system: Compiled, x: Array) -> Array:
    """A difference of the sides that is none at a point."""
    if not isinstance(system.function, Differences):
        return np.zeros(len(x))
    size: Array = np.asarray(system.function.sizes(as_tensor(x)).array, np.float64)
    if len(size) <= MANY:
        size = np.fmax(size, system.function.moved_by_inputs(as_tensor(x)))
    return ROUNDING * size


def _by_one(system: Compiled, count: int) -> str | None:
    """The variables that have as many numbers as there are equations, one each: `--wrt beta`."""
    if not isinstance(system.function, Differences):
        return None
    sizes = {name: value.size for name, value in system.function.space.start.items()}
    names = [name for name, size in sizes.items() if size == count]
    if not names or len(sizes) < 2:
        return None
    return " or ".join(f"--wrt {name}" for name in names) + ": only it is unknown then"


def _as_many(system: Compiled, start: Array, count: int) -> str | None:
    """What gives each equation a number of its own, where one number is meant for all."""
    if not isinstance(system.function, Differences) or len(start) != 1:
        return None
    (name, value), *_ = system.function.space.start.items()
    text = f"{float(value.reshape(-1)[0]):.15g}"
    return (
        f'--{name} "{text}*ones({count})" has a number for each equation; of columns of a table: '
        f"gradcli root EQUATION TABLE --{name} {text}"
    )


def _is_diagonal(system: Compiled, start: Array) -> bool:
    """Whether each equation depends on its own number alone."""
    try:
        found = trace_numpy(lambda x: system.function(x), {"x": start}, backward=False)
        rows, columns = pattern(found.value, found.inputs["x"])
    except (Untraceable, Dense, *OPERATION_ERRORS):
        return False
    return bool((rows == columns).all())


class _Diagonal:
    """The differences of some equations and their slopes, as `Rows` gives them; "row" says which."""

    def __init__(self, system: Compiled, start: Array) -> None:
        self.system, self.x = system, start.copy()

    def __call__(self, batch: Mapping[str, Array], rows: int) -> Results:
        which = batch["row"]
        x = self.x.copy()
        x[which] = batch["x"]
        value, slope = self.system.value(x), self.system.row_sums(x)
        return Results({"": value[which]}, {"x": slope[which]}, {})


def _each_by_itself(system: Compiled, start: Array) -> Root:
    """Roots of equations that share no number: each by Newton's method, all at once."""
    rows = np.arange(len(start))
    search = Search(_Diagonal(system, start), "x", {"row": rows}, len(start))
    with np.errstate(all="ignore"):
        search.newton(start)
        search.look_around(start)
        x = search.polished()
        rounding = _rounding(system, x)
        good = search.roots(rounding / ROUNDING)
        alone = not len(search.plateaus(rounding))
    residual = float(np.abs(search.f).max())
    return Root(x, residual, system.evaluations, bool(good.all()), alone)


def _polished(system: Compiled, x: Array, scale: Array) -> Root:
    """The point after a few steps of Newton's that make it better, and whether it is a root.

    It is one where another step would not move it and the sides are equal: next to their differences at the
    start (`scale`), to the sides themselves, or to what the rounding of the numbers makes of them. A short
    step alone says nothing: `asin(x) == 2` has short ones at 1, where the derivative is infinite.
    """
    here = system.value(x)
    for _ in range(_POLISH):
        if not np.isfinite(here).all():
            break
        step, _ = _newton(system, x, here)
        there = system.value(x - step)
        if not np.abs(there).max() < np.abs(here).max():
            break
        x, here = x - step, there
    residual = float(np.abs(here).max())
    converged = residual == 0
    if np.isfinite(residual) and not converged:
        step, off = _newton(system, x, here)
        rounding = _EPS * (np.nan_to_num(np.abs(system.jacobian(x)), posinf=0) @ np.abs(x))
        allowed = np.maximum(_SMALL * scale, rounding)
        if isinstance(system.function, Differences):
            allowed = np.maximum(allowed, _ROUNDED * system.function.sizes(as_tensor(x)).array)
        still = bool((np.abs(step) <= _STEP * (1 + np.abs(x))).all())
        converged = still and bool((np.abs(here) <= allowed).all()) and off <= allowed.max()
    return Root(x, residual, system.evaluations, converged)


def _newton(system: Compiled, x: Array, here: Array) -> tuple[Array, float]:
    """(the least step of Newton's, what of the differences no step changes)."""
    jac = system.jacobian(x)
    if not np.isfinite(jac).all():
        return np.full(len(x), np.inf), np.inf
    # The pseudo-inverse's step. Where the Jacobian is singular, as for (x - y, 2*x - 2*y), the shortest
    # of all steps is taken; what stands across (`off`) shows equations that contradict each other.
    u, s, vt = lapack.svd(jac)
    kept = s > s.max(initial=0) * 1e-15
    along = u.T @ here
    off = float(np.abs(along[~kept]).max(initial=0))
    return vt[kept].T @ (along[kept] / s[kept]), off


class Roots(NamedTuple):
    """The roots of an interval, in order; plateaus: where the sides are equal all along, (from, to), whose
    ends are among the roots; width: how close two may be to be told apart.
    """

    roots: list[float]
    plateaus: list[tuple[float, float]]
    width: float


def all_roots(system: Compiled, low: float, high: float) -> Roots:
    """The roots of one equation of one number in an interval.

    Where the sides' difference changes its sign, and where its derivative does beside zero: a grid finds
    them, inverse interpolation makes them exact. A change of sign at a pole or a jump is not a root.
    """
    _ask(system, low, high)
    x = np.linspace(low, high, GRID + 1)
    found = Rows(lambda x: system.function(x.reshape((1,))).reshape(()), {}, ["x"])(
        {"x": x}, len(x)
    )
    f, slope = found.values.get("", np.full(len(x), np.nan)), found.gradients.get("x", x * np.nan)

    def value(at: float) -> float:
        return float(system.value(np.array([at]))[0])

    def derivative(at: float) -> float:
        return float(system.jacobian(np.array([at]))[0, 0])

    def add(function: Callable[[float], float], k: int) -> None:
        at = _between(function, float(x[k]), float(x[k + 1]))
        if at is None:
            return
        if function is value and not _meets(value, derivative, at, x[k + 1] - x[k]):
            return
        if function is value or abs(value(at)) <= 1e-9 * max(abs(f[k]), abs(f[k + 1])):
            roots.append(float(at))

    # Runs of exact zeros on the grid: a single one is a root, as 0 for x; a run is a plateau if the
    # middle of its first piece is 0 as well (relu(x) is 0 for all x < 0). Its ends are found by halves.
    zero = np.concatenate([[False], f == 0, [False]])
    begins, ends = np.flatnonzero(zero[1:] & ~zero[:-1]), np.flatnonzero(zero[:-1] & ~zero[1:]) - 1
    roots, plateaus = [], []
    for i, j in zip(begins.tolist(), ends.tolist(), strict=True):
        if j - i < _PLATEAU or value(float(x[i] + x[i + 1]) / 2) != 0:
            roots += x[i : j + 1].tolist()
            continue
        first = float(x[i]) if not i else _zero_from(value, float(x[i - 1]), float(x[i]))
        last = float(x[j]) if j == GRID else _zero_from(value, float(x[j + 1]), float(x[j]))
        plateaus.append((first, last))
        roots += [first, last]
    with np.errstate(all="ignore"):
        # Two kinds of roots. Where f changes its sign there is one, or a pole (tan) or a jump (sign),
        # which `_meets` tells apart. A double root as that of (x - 1)**2 has no change of sign; its slope
        # has, from towards zero to away from it, and the extremum that is found counts if the value there
        # is nothing.
        crossing = np.flatnonzero(f[:-1] * f[1:] < 0)
        turning = np.flatnonzero((slope[:-1] * slope[1:] < 0) & (f[:-1] * f[1:] > 0))
    for k in crossing:
        add(value, int(k))
    for k in turning:
        if np.sign(f[k]) * slope[k] < 0:  # towards zero, and away from it
            add(derivative, int(k))
    return Roots(sorted(set(roots)), plateaus, (high - low) / GRID)


def _ask(system: Compiled, low: float, high: float) -> None:
    """Raise the error that a function has everywhere; one of a few points is a value that is missing."""
    errors: list[Exception] = []
    for share in (0.5, 0.3, 0.8):
        try:
            system.value(np.array([low + share * (high - low)]))
            return
        except (LanguageError, *OPERATION_ERRORS) as error:
            errors.append(error)
    if len({(type(error), str(error)) for error in errors}) == 1:
        raise errors[0]


def _zero_from(value: Callable[[float], float], outside: float, inside: float) -> float:
    """The number next to one where a function is not 0, from where on it is, by halves."""
    while True:
        at = (outside + inside) / 2
        if at in (outside, inside):
            return inside
        if value(at) == 0:
            inside = at
        else:
            outside = at


def _between(function: Callable[[float], float], low: float, high: float) -> float | None:
    """Where a function changes its sign between two numbers; None where it has no value on the way.

    By inverse quadratic interpolation where that is safe, else by halves (Chandrupatla, Advances in
    Engineering Software 28, 1997). Each turn keeps numbers with values of both signs.
    """
    one, other = high, low
    f1, f2 = function(one), function(other)
    if f1 == 0 or f2 == 0:
        return one if f1 == 0 else other
    if not f1 * f2 < 0:  # rounding hid the change of sign
        return None
    share = 0.5
    for _ in range(_HALVES):
        at = one + share * (other - one)
        f = function(at)
        if f != f:
            return None
        if f == 0:
            return at
        if (f < 0) == (f1 < 0):
            third, f3 = one, f1
        else:
            third, f3, other, f2 = other, f2, one, f1
        one, f1 = at, f
        nearest = one if abs(f1) < abs(f2) else other
        least = 2 * np.finfo(float).eps * abs(nearest) / abs(other - one)
        if not least <= 0.5:
            return nearest
        xi, phi = (one - other) / (third - other), (f1 - f2) / (f3 - f2)
        share = 0.5
        if phi**2 < xi and (1 - phi) ** 2 < 1 - xi:
            share = f1 / (f2 - f1) * f3 / (f2 - f3)
            share += (third - one) / (other - one) * f1 / (f3 - f1) * f2 / (f3 - f2)
        share = min(max(share, least), 1 - least)
    return nearest


def _meets(
    value: Callable[[float], float], slope: Callable[[float], float], at: float, width: float
) -> bool:
    """Whether a function whose sign changes at a number is 0 there, and does not jump over it."""
    here = abs(value(at))
    around = [abs(value(at + side * width / 4)) for side in (-1, 1)]
    near = min([one for one in around if np.isfinite(one)], default=0.0)
    if here <= _SMALL * near:
        return True
    return here <= _STEEP * near and here <= _EPS * abs(slope(at) * at)
