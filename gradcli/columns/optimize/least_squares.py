"""Least squares from exact residuals and Jacobians, and what the minimum says of the parameters.

Levenberg and Marquardt's method comes first. Where its end is no minimum, and within bounds or with another
loss, the methods are SciPy's (MINPACK's, and two of trust regions). Standard errors are those
of the linear model at the minimum (Bates and Watts, Nonlinear Regression Analysis, 1988, chapter 2), by the
singular values of the Jacobian with columns of length 1.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradcli.columns.optimize.levenberg_marquardt import levenberg_marquardt
from gradcli.columns.optimize.starts import Search, search, starts
from gradcli.language.located_errors import LanguageError
from gradcli.operators.primitives import lapack

Array = Any
Bounds = Mapping[str, tuple[float, float]]
At = Callable[[Array], tuple[Array, Array]]  # point -> (residuals, Jacobian)

TOLERANCE = 1e-15  # of every kind, relative: SciPy's methods end where doubles do
_PASSES = 1e-10  # the same of sums over many rows: what is left is nothing beside standard errors
_EQUAL = 1e-9  # relative, of sums of squares that are one
_WEAK = 1e-4  # of the largest singular value, one whose parameters the data hardly tell apart
_STEP = 1e-3  # of a standard error: a step of Gauss and Newton that is smaller is none
_FAINT = (
    1e8  # of what a parameter's own size changes the residuals by, a deviation that is beyond it
)
_EXACT = 1e-10  # of the data: residuals that are smaller are rounding
_HUGE = 1e100  # in place of a residual that is not finite, so that no method steps there
_EPS = np.finfo(float).eps
_SCALES = 4  # robust fits, each with the scale of the one before
_TRIES = 32  # starts in place of one from where no residual depends on some parameter
_DECADES = 3.0  # powers of ten that these are from the given start
_ROUNDING = 1e-12  # of a sum of squares
_BETTER = 0.9  # of the sum of squares there, what another start has to reach
_ROUGH, _FEW = 1e-8, 200  # tolerance and evaluations of a fit from another start
_SAME = 1e-5  # of the sum of squares: ends that come to the same
_EQUALS = 4  # of them that come to the same: it is the lowest
_PROBES = (0.01, 1.0, 2.0)  # of a standard error, how far one looks for a lower sum of squares
_MAD = 1.4826  # of a normal distribution, its deviation by the median absolute one


def scipy(module: str) -> Any:
    """A module of SciPy. Raises LanguageError where it is not installed."""
    try:
        return importlib.import_module(f"scipy.{module}")
    except ImportError:
        raise LanguageError(
            "fits, minima and roots need SciPy",
            kind="import",
            hint="pip install scipy",
        ) from None


def limits(start: Mapping[str, Array], bounds: Bounds) -> tuple[Array, Array]:
    """The lower and upper bounds of all numbers. Raises LanguageError for a start outside of them."""
    found = []
    for name, array in start.items():
        low, high = bounds.get(name, (-np.inf, np.inf))
        if not low < high:
            raise LanguageError(f"--bounds {name}: {low:g} is not below {high:g}", kind="usage")
        if not ((low <= array) & (array <= high)).all():
            raise LanguageError(
                f"{name} starts at {array}, outside of its bounds {low:g}:{high:g}",
                kind="usage",
                hint=f"choose another start, as in --{name} VALUE",
            )
        found.append([np.full(array.size, end) for end in (low, high)])
    lower, upper = (np.concatenate(ends) for ends in zip(*found, strict=True))
    return lower, upper


class Fit(NamedTuple):
    """A minimum of a sum of squares.

    values: the parameters, flat. covariance: theirs; nan where the data do not tell. chi2: the sum of
    squared (weighted) residuals. undetermined: the parameters that could have other values with the same
    residuals. bounded: those that ended at a bound, which the covariance holds fixed. evaluations: how
    often the residuals were computed. still: those of the undetermined on which no residual depends at all
    there. begun: where it began, if that was another start. absolute: whether residuals come in units of
    their uncertainties. search: what other starts came to, where they were asked for. explained: the share
    of the data's variance that the residuals lack, for as many rows and parameters (the adjusted R²).
    hardly: the parameters that nearly replace each other, so that a search goes on along a valley.
    single: whether a doubtful fit has no other minimum. likelihood: "poisson" where chi2 is Cash's statistic;
    expected: its mean and standard deviation then, if the model is right. receding: whether the search was
    given up, as the sum of squares falls ever more slowly.
    wandering: (runs of one sign among the residuals, runs that chance makes, whether the model may have
    another minimum), where the runs are too few.
    """

    values: Array
    covariance: Array
    chi2: float
    dof: int
    iterations: int
    evaluations: int
    converged: bool
    undetermined: list[int]
    bounded: list[int]
    still: Sequence[int] = ()
    begun: Array | None = None
    absolute: bool = False
    search: Search | None = None
    explained: float | None = None
    hardly: Sequence[int] = ()
    wandering: tuple[int, int, bool] | None = None
    single: bool = False
    likelihood: str = ""
    expected: tuple[float, float] = (float("nan"), float("nan"))
    receding: bool = False

    @property
    def probability(self) -> float:
        """Of a chi2 as large or larger, where the uncertainties are right; nan where there are none."""
        if not self.absolute or self.dof <= 0:
            return float("nan")
        if not self.likelihood:
            return float(scipy("special").chdtrc(self.dof, self.chi2))
        # Cash's statistic is nearly a stretched chi2, with the mean and the deviation that are expected.
        mean, deviation = self.expected
        stretch = deviation**2 / (2 * mean)
        return float(scipy("special").chdtrc(mean / stretch, self.chi2 / stretch))

    @property
    def _misfit(self) -> float:
        """Twice the negative logarithm of the likelihood, up to what all models of the data share; residuals
        of unknown size have the most likely one (Burnham and Anderson, Sociol. Methods Res. 33, 2004)."""
        rows = self.dof + len(self.values) - len(self.bounded)
        if self.absolute or rows <= 0:
            return self.chi2
        return rows * float(np.log(self.chi2 / rows)) if self.chi2 > 0 else -np.inf

    @property
    def aic(self) -> float:
        """Akaike's information criterion: of models of the same data the one with the least is best."""
        return self._misfit + 2 * (len(self.values) - len(self.bounded))

    @property
    def bic(self) -> float:
        """The Bayesian one, which counts a parameter as log(rows)."""
        free = len(self.values) - len(self.bounded)
        rows = self.dof + free
        return self._misfit + free * float(np.log(rows)) if rows > 0 else float("nan")

    @property
    def errors(self) -> Array:
        """The standard errors of the parameters."""
        return np.sqrt(np.diagonal(self.covariance))

    @property
    def deviation(self) -> float:
        """The residual standard deviation; nan without degrees of freedom."""
        return float(np.sqrt(self.chi2 / self.dof)) if self.dof > 0 else float("nan")


def by_differences(at: At, x: Array) -> tuple[Array, Array]:
    """The residuals and the Jacobian. A derivative that is not finite where the residual is, by differences.

    `1/(1 + exp(-b*x))` is flat where exp is infinite, and its derivative ∞/∞ there.
    """
    r, jac = at(x)
    if np.isfinite(jac).all():
        return r, jac
    jac = np.array(jac)
    bad = ~np.isfinite(jac) & np.isfinite(r)[:, None]
    for k in np.flatnonzero(bad.any(0)):
        # Central differences with a step of cbrt(eps) times the parameter, where their errors (of
        # truncation and of rounding) are about equal. Only columns with a hole are asked for, and only
        # their holes are filled.
        sides = []
        for side in (1, -1):
            there = np.array(x)
            there[k] += side * np.cbrt(_EPS) * (abs(x[k]) or 1.0)
            sides.append((at(there)[0], there[k]))
        slope = (sides[0][0] - sides[1][0]) / (sides[0][1] - sides[1][1])
        jac[bad[:, k], k] = slope[bad[:, k]]
    return r, jac


class _Point:
    """The residuals and Jacobian at the last point, so that SciPy's two questions are one evaluation."""

    def __init__(self, at: At) -> None:
        self.at, self.evaluations = at, 0
        self.key = b""
        self.found: tuple[Array, Array] = (None, None)

    def here(self, x: Array) -> tuple[Array, Array]:
        """Both, as they are."""
        key = np.asarray(x, np.float64).tobytes()
        if key != self.key:
            self.found = by_differences(self.at, np.array(x, np.float64))
            self.key, self.evaluations = key, self.evaluations + 1
        return self.found

    def residuals(self, x: Array) -> Array:
        """Finite ones."""
        return np.nan_to_num(self.here(x)[0], nan=_HUGE, posinf=_HUGE, neginf=-_HUGE)

    def jacobian(self, x: Array) -> Array:
        """The same."""
        return np.nan_to_num(self.here(x)[1], posinf=0, neginf=0)


def fit(
    at: At,
    start: Array,
    rows: int,
    *,
    lower: Array,
    upper: Array,
    absolute: bool = False,
    loss: str = "linear",
    size: Callable[[], float] = float,
    sums: bool = False,
    limit: int = 5000,
    many: int = 0,
    near: bool = False,
) -> Fit:
    """The least squares of `at` from a start, by the best of the methods.

    absolute: whether residuals come in units of their standard uncertainty; if not, it is that of the
    residuals. loss: of `scipy.optimize.least_squares`. size: gives the length of the data, next to
    which residuals may be nothing. sums: whether `at` stands for sums over many rows, each of
    which is a pass and has rounding of its own. many: how many starts more to try. near: a minimum is near
    the start, or somebody else looks for it: only our own method runs, and its end is what there is.
    """
    point = _Point(at)
    free = bool(np.isinf(lower).all() and np.isinf(upper).all()) and loss == "linear"
    ways = ["trf"] if loss != "linear" else ["lm", "trf", "dogbox"][not free :]
    ways = ways[:1] if sums else ways
    tolerances = dict.fromkeys(("ftol", "xtol", "gtol"), _PASSES if sums else TOLERANCE)
    options: dict[str, Any] = {"bounds": (lower, upper), "max_nfev": limit, **tolerances}
    scale = 1.0
    searched = None
    if many:
        start, searched = _searched(point, ways[:1], start, many, options)
    precision = float(np.sqrt(_EPS) if sums else _EPS)

    def described(found: Any) -> Fit:
        made = _described(found, point, rows, absolute, (loss, scale), size, precision)
        return _on_bounds(made, found.active_mask, (lower, upper), point)

    own: list[Any] = []
    # Our own method first: it needs NumPy alone, and importing SciPy takes longer than most fits. Its end
    # is accepted if the point is a minimum by what can be checked; else SciPy's methods start anew, and
    # the lowest of all ends counts, ours included.
    if free:  # whose end is looked at, so that SciPy is imported only where it is no minimum
        tolerance = tolerances["ftol"]
        first = levenberg_marquardt(
            point.residuals, point.jacobian, start, tolerance=tolerance, limit=limit
        )
        made = described(first)
        known = made.converged and not made.undetermined
        if near or (known and (sums or not _lower(point, first, made, (lower, upper)))):
            return _warranted(made._replace(search=searched))
        own.append(first)
    # A robust loss bends at `scale`, from where on a residual is an outlier. If the data's uncertainty is
    # not known, it is estimated by the median of |r|, which outliers hardly move; but the first fit was
    # drawn towards them, so fit and estimate take turns.
    if loss != "linear" and not absolute:  # what an outlier is, the residuals tell, time and again
        best = _least(point, ways, start, **options)
        for _ in range(_SCALES):
            scale = _MAD * float(np.median(np.abs(best.fun))) or 1.0
            best = _least(point, ways, best.x, loss=loss, f_scale=scale, **options)
    elif own and (made.converged or first.receding) and not sums:
        # Parameters that are not determined, or run away: the methods walk along a valley for thousands of
        # steps. Only one that soon comes lower is followed to its end.
        rough = {**options, **dict.fromkeys(tolerances, _ROUGH), "max_nfev": min(limit, _FEW)}
        best = _least(point, ways, start, **rough)
        lower_there = best.cost < (1 - _ROUGH) * own[0].cost
        best = _least(point, ways, start, own, **options) if lower_there else own[0]
    else:
        best = _least(point, ways, start, own, loss=loss, **options)

    def least(begin: Array) -> Any:
        """Roughly, for only what comes much lower is looked at further."""
        rough = {**options, **dict.fromkeys(tolerances, _ROUGH), "max_nfev": min(limit, _FEW)}
        return _least(point, ways[:1], begin, **rough)

    def finished(found: Any) -> Fit:
        return described(_least(point, ways[:1], found.x, **options))

    made = described(best)
    made = made._replace(search=searched)
    if sums or loss != "linear":
        return _warranted(made)
    # A method may stop on a saddle or in a curved valley. If a look around finds a lower point, there is
    # one more fit from there; if that is no minimum either, it is reported as not converged.
    if lower_point := _lower(point, best, made, (lower, upper)):
        best = _least(point, ways, lower_point[0], **options)
        made = described(best)._replace(search=searched)
        if _lower(point, best, made, (lower, upper)):
            made = made._replace(converged=False)
    if made.undetermined or not made.converged:
        made = _from_elsewhere(made, best.cost, finished, start, (lower, upper), least)
    return _warranted(made)


def _searched(
    point: _Point, ways: Sequence[str], start: Array, many: int, options: Mapping[str, Any]
) -> tuple[Array, Search]:
    """(the best end of fits from many starts, the given one first, how often it was found)."""
    ends: list[tuple[float, Array]] = []
    lower, upper = options["bounds"]
    for begin in [start, *starts(point.here, start, lower, upper, many)]:
        try:
            found = _least(point, ways, begin, **options)
        except ValueError:
            continue
        ends.append((2 * float(found.cost), found.x))
    costs = [cost for cost, _ in ends]
    least = min(costs, default=float("inf"))
    # cos(w*t) at evenly spaced times is as good at w + 2π/dt as at w: of equal ends the nearest one counts.
    equal = [x for cost, x in ends if cost <= least * (1 + _EQUAL)]
    best = min(equal, key=lambda x: float(np.abs(x - start).sum()), default=start)
    return best, search(costs, least)


def _warranted(made: Fit) -> Fit:
    """The fit, without errors where it ended at no minimum: there they mean nothing."""
    if made.still or not made.converged:
        return made._replace(covariance=np.full_like(made.covariance, np.nan))
    return made


def _from_elsewhere(
    made: Fit,
    cost: float,
    finished: Callable[[Any], Fit],
    start: Array,
    bounds: tuple[Array, Array],
    least: Callable[[Array], Any],
) -> Fit:
    """The best fit from other starts, if it is determined and much better; else the one that there is."""
    equals = 0
    for begin in _other_starts(start, *bounds):
        try:
            found = least(begin)
        except ValueError:
            continue
        if found.cost < _BETTER * cost:
            other = finished(found)
            if other.converged and not other.undetermined:
                cost, made = other.chi2 / 2, other._replace(begun=begin)
        equals += abs(found.cost - cost) <= _SAME * cost
        if equals > _EQUALS:  # `a*b*x` has none that is better
            break
    return made


def _other_starts(start: Array, lower: Array, upper: Array) -> Iterable[Array]:
    """Starts that are some powers of ten away."""
    # Fixed seed: the same data give the same answer. A start of 0 has no size of its own, so it is ±1
    # times the power of ten. What falls on a bound is moved to the middle of the bounds, since at a bound
    # a derivative may vanish or not exist (`x**a` at 0).
    random = np.random.default_rng(0)
    for _ in range(_TRIES):
        powers = 10.0 ** random.uniform(-_DECADES, _DECADES, len(start))
        begin = np.where(start == 0, random.choice([-1.0, 1.0], len(start)), start) * powers
        with np.errstate(all="ignore"):
            inside = np.clip(begin, lower, upper)
            middle = np.where(np.isfinite(lower + upper), (lower + upper) / 2, inside)
        yield np.where((inside == lower) | (inside == upper), middle, inside)


def _lower(
    point: _Point, best: Any, made: Fit, bounds: tuple[Array, Array]
) -> tuple[Array] | tuple[()]:
    """(a point with a lower sum of squares close by,) or nothing.

    A minimum has none a hundredth of a standard error away, along the axes of its ellipsoid, and errors mean
    something where there is none within it.
    """
    spread = made.covariance
    if not (made.converged and np.isfinite(spread).all() and np.isfinite(made.chi2)):
        return ()
    values, vectors = lapack.eigh(spread)
    # The ellipsoid of one standard error: the sum of squares rises by the same along each of its axes,
    # however correlated the parameters are. Steps along the axes of the parameters would leave it in
    # narrow valleys.
    axes = (vectors * np.sqrt(np.maximum(values, 0.0))).T
    random = np.random.default_rng(0).normal(size=(4 * len(axes), len(axes))) @ axes
    for move in np.concatenate([*(far * axes for far in _PROBES), random]):
        for there in (best.x + move, best.x - move):
            there = np.clip(there, *bounds)
            r = point.residuals(there)
            if r @ r < made.chi2 * (1 - 1e-10):
                return (there,)
    return ()


def _least(
    point: _Point, ways: Sequence[str], start: Array, own: Sequence[Any] = (), **options: Any
) -> Any:
    """The result of the method that came lowest; of equals, the first. own: what is known already."""
    found = [*own]
    for way in ways:
        try:
            found.append(
                scipy("optimize").least_squares(
                    point.residuals, start, point.jacobian, method=way, x_scale="jac", **options
                )
            )
        except ValueError:  # a method that lost itself
            if way == ways[-1] and not found:
                raise
    best = min(found, key=lambda one: one.cost)
    # Of ends that differ by rounding our own: in `a*x + b*x` SciPy's have a and b of 1e11.
    same = [one for one in own if one.cost <= best.cost * (1 + _ROUNDING)]
    return same[0] if same else best


def _described(
    best: Any,
    point: _Point,
    rows: int,
    absolute: bool,
    loss: tuple[str, float],
    size: Callable[[], float],
    precision: float,
) -> Fit:
    """What the minimum says. precision: of the Jacobian's elements, next to the largest."""
    r, jac = point.here(best.x)
    p = jac.shape[1]
    if not (np.isfinite(r).all() and np.isfinite(jac).all()):
        nothing = np.full((p, p), np.nan)
        chi2, count = float(r @ r), int(best.njev or best.nfev)
        return Fit(best.x, nothing, chi2, rows - p, count, point.evaluations, False, [], [])
    bounded = np.flatnonzero(best.active_mask[:p])
    inside = np.setdiff1d(np.arange(p), bounded)
    weight, curvature = _rho(r, *loss)
    covariance = np.zeros((p, p))
    undetermined: list[int] = []
    still_of: list[int] = []
    hardly: list[int] = []
    converged = bool(best.success)
    dof = rows - len(inside)
    chi2 = float(r @ r)
    if len(inside):
        # Columns of length 1 first: then a small singular value means that parameters can replace each
        # other, as in `a*b*x`, and not that one has a small unit. A parameter that has a share of more
        # than 0.1 in a null direction is undetermined. The rest keeps its errors: in `a*b*x + c` c is
        # known.
        inner = jac[:, inside] * np.sqrt(curvature)[:, None]
        lengths = np.sqrt((inner * inner).sum(0))
        lengths[~(lengths > 0)] = 1.0
        u, s, vt = lapack.svd(inner / lengths, full_matrices=False)
        null = s <= s[0] * max(inner.shape) * precision
        hardly = inside[(np.abs(vt[s <= s[0] * _WEAK]) > 0.1).any(0)].tolist()
        loose = (np.abs(vt[null]) > 0.1).any(0) | ~(inner != 0).any(0)
        undetermined = inside[loose].tolist()
        still_of = inside[~(inner != 0).any(0)].tolist()
        root = (vt[~null] / s[~null, None]).T / lengths[:, None]
        spread = root @ root.T
        step = root @ (u[:, ~null].T @ (weight * r / np.sqrt(curvature)))
        if loss[0] != "linear":  # Huber's covariance of an M-estimate, the "sandwich"
            meat = jac[:, inside] * (weight * r)[:, None]
            spread = spread @ (meat.T @ meat) @ spread * (rows / max(dof, 1))
        elif not absolute:
            spread = spread * (chi2 / dof if dof > 0 else np.nan)
        # Converged means that a further step of Gauss and Newton would be below a thousandth of the
        # standard error: a tolerance in units of what the data can tell. Exact data have errors of 0;
        # there a relative step counts.
        errors = np.sqrt(np.diagonal(spread))
        still = np.abs(step) <= _STEP * errors
        still |= np.abs(step) <= 1e-9 * np.abs(best.x[inside])
        converged = bool(still[~loose].all() or np.sqrt(chi2) <= _EXACT * size())
        if not converged:
            # A search that ended on a plateau: what a parameter's own size changes is next to nothing, as of
            # b in exp(b*x) at -40.
            far = np.abs(best.x[inside])
            spread_of_data = 1.0 if absolute else np.sqrt(chi2 / max(dof, 1))
            faint = (far > 0) & (spread_of_data > _FAINT * far * lengths)
            loose = loose | faint
            undetermined, still_of = inside[loose].tolist(), inside[faint].tolist() or still_of
            converged = bool(still[~loose].all())
        spread[loose], spread[:, loose] = np.nan, np.nan
        covariance[np.ix_(inside, inside)] = spread
    count = best.njev or best.nfev
    return Fit(
        best.x, covariance, chi2, dof, int(count), point.evaluations, converged, undetermined,
        bounded.tolist(), still_of, None, absolute, hardly=hardly,
        receding=getattr(best, "receding", False),
    )  # fmt: skip


def _on_bounds(made: Fit, mask: Array, bounds: tuple[Array, Array], point: _Point) -> Fit:
    """The fit with what ended at a bound on it: SciPy's method stays a rounding inside."""
    if not made.bounded:
        return made
    there = np.where(mask < 0, bounds[0], np.where(mask > 0, bounds[1], made.values))
    finite = np.isfinite(point.here(there)[0]).all()
    return made._replace(values=there) if finite else made


def _rho(r: Array, loss: str, scale: float) -> tuple[Array, Array]:
    """(ψ(r)/r, dψ/dr) of a loss, where ψ is the slope of half the loss: SciPy's, with z = (r/scale)²."""
    z = (r / scale) ** 2
    out = np.maximum(z, 1.0)
    first, second = {
        "linear": (np.ones_like(z), np.zeros_like(z)),
        "soft_l1": ((1 + z) ** -0.5, -0.5 * (1 + z) ** -1.5),
        "huber": (out**-0.5, np.where(z > 1, -0.5 * out**-1.5, 0.0)),
        "arctan": (1 / (1 + z**2), -2 * z / (1 + z**2) ** 2),
    }[loss]
    return first, np.maximum(first + 2 * z * second, _EPS)
