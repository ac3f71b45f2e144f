"""Derivatives of programs at points where rules divide 0 by 0: by power series along lines through the point.

Two series, along d and along -d, tell a smooth point from a kink. A Hessian is taken twice, from the second
coefficients of the value and from the first ones of the gradient: what they agree on is said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.language.located_errors import LanguageError
from gradcli.language.program import Program
from gradcli.operators.primitives import lapack
from gradcli.transforms.jets.series import EPS, EXACT, Run, Series, as_series, coefficient
from gradcli.transforms.jets.traces import NoSeries, Pusher
from gradcli.transforms.traced_run import traced_run

Array = Any

# A number; none is finite; not known; lost in rounding.
FOUND, NONE, UNDECIDED, LOST = 0, 1, 2, 3
BY_VALUE = 24  # variables of a Hessian by the value's series, which takes n**2 lines
BESIDE = 200  # lines of one of higher order by the value's, beside the gradient's
MOST = 400  # variables of one by the gradient's
ENOUGH = 1e-9  # the bound of an error, relative, with which a number is said
AGREE = 1e-8  # how far two routes may differ


class Found(NamedTuple):
    """Numbers, bounds of their errors, and for each whether it is one: FOUND, NONE, UNDECIDED or LOST."""

    values: Array
    bounds: Array
    status: Array

    def at(self, index: Any) -> Found:
        """A part."""
        return Found(self.values[index], self.bounds[index], self.status[index])


class Traced:
    """A program's value and gradients at a point, as a trace that series can go through.

    wrt: the variables to differentiate by. seed: weights of the value's elements, which are summed.
    Raises RuntimeError, NotImplementedError or LanguageError where
    the program cannot be traced, and NoSeries where it branches on complex numbers.
    """

    def __init__(
        self,
        program: Program,
        tensors: Mapping[str, Tensor],
        wrt: Sequence[str],
        names: Mapping[str, Any] | None = None,
        gradient: bool = True,
        seed: Array | None = None,
    ) -> None:
        self.arrays = {n: np.array(t.array) for n, t in tensors.items()}
        self.wrt = list(wrt)
        for name in self.wrt:
            if self.arrays[name].dtype.kind != "f":
                raise NoSeries("complex numbers")
        value: Any
        value, trace = traced_run(program, self.arrays, self.wrt, True, names or {})
        self.trace = trace
        if seed is not None:
            value = trace.running(lambda: (value * wrap(seed)).sum())
        self.value = trace.value_of(value)
        self.here = np.asarray(
            self.value.value, np.float64
        )  # what the program says at the point itself
        leaves = [trace.variables[n] for n in self.wrt]
        self.slopes = trace.gradients(value, leaves) if gradient else None
        self.sizes = [self.arrays[n].size for n in self.wrt]
        self.size = sum(self.sizes)

    def push(
        self,
        outputs: Sequence[Any],
        lines: Array,
        terms: int,
        cones: bool = False,
        beyond: Array | None = None,
    ) -> tuple[Run, list[Any], list[Array]]:
        """(the run, the series of values along lines, lines that are wanted as well).

        lines: one in each row, of all variables' elements. beyond: further lines, for what divides.
        """
        if beyond is not None:
            lines = np.concatenate([lines, beyond])
        run = Run(len(lines), terms)
        judge = Cones(run, lines, 0 if beyond is None else len(beyond))
        if cones and self.size > 1:
            run.cones = judge
        known: dict[int, Any] = {}
        at = 0
        for name, size in zip(self.wrt, self.sizes, strict=True):
            array = self.arrays[name]
            slope = lines[:, at : at + size].reshape(len(lines), *array.shape)
            at += size
            start = np.broadcast_to(array.astype(np.float64), slope.shape)
            known[id(self.trace.inputs[name])] = Series(run, np.stack([start, slope]))
        pusher = Pusher(run, known)
        found = pusher.push(outputs)
        for condition, branch in self.trace.asked:
            (truth,) = pusher.push([condition])
            truth = truth if not isinstance(truth, Series) else truth.sign() != 0
            run.doubt(np.asarray(truth != branch).reshape(-1, 1))
        return run, found, judge.wanted

    def coefficients(
        self, outputs: Sequence[Any], lines: Array, order: int, cones: bool = False
    ) -> list[list[tuple[Array, ...]]]:
        """For each output, and each order up to `order`: (derivatives, bounds, none, undecided)."""
        for terms in (order + 3, 2 * order + 7, 4 * order + 17):
            run, found, wanted = self.push(outputs, lines, terms, cones)
            if run.curved and wanted:
                run, found, _ = self.push(outputs, lines, terms, cones, np.array(wanted))
            made = []
            for one in found:
                series = as_series(run, one)
                per_order = []
                for k in range(order + 1):
                    value, bound, none, doubt = coefficient(series, k)
                    shape = (run.directions, *value.shape[1:])
                    every = [np.broadcast_to(x, shape) for x in (value, bound, none, doubt)]
                    per_order.append(tuple(x[: len(lines)] for x in every))
                made.append(per_order)
            if not run.more[: len(lines)].any():
                break
        unsure = (run.undecided | run.more | ~run.outside)[: len(lines)]
        curved = run.curved
        for per_order in made:
            for k, (value, bound, none, doubt) in enumerate(per_order):
                flags = unsure.reshape(-1, *[1] * (value.ndim - 1))
                per_order[k] = (
                    value,
                    bound,
                    none,
                    doubt | (np.isnan(value) & ~none & flags) | curved,
                )
        return made


class Cones:
    """Judges what is divided by, so that what is right along lines is right along curves.

    x**4*y/(x**8 + y**2) has a series along each line through 0, and no limit. A quotient is trusted where
    divisor and dividend are series in one linear form of the variables, where the leading form of the divisor
    is a square form that is zero in no direction, or where both are zero on the plane where the divisor is.
    wanted: lines in such planes, for another run. beyond: how many of the last lines are such.
    """

    def __init__(self, run: Run, lines: Array, beyond: int = 0) -> None:
        self.run, self.lines, self.beyond = run, lines, beyond
        self.wanted: list[Array] = []

    def __call__(self, base: Series, over: Series | None) -> None:
        lines = len(self.lines)
        powers = np.broadcast_to(base.valuation(), (lines, *base.shape[1:])).reshape(lines, -1)
        cut = np.broadcast_to(base.cut, (lines, *base.shape[1:])).reshape(lines, -1)
        zero = powers >= np.minimum(cut, EXACT)
        zero[lines - self.beyond :] = True
        singular = ((powers != 0) & ~zero).any(0)
        if not singular.any():
            return
        lead = np.broadcast_to(base.leading()[0], (lines, *base.shape[1:])).reshape(lines, -1)
        for k in np.flatnonzero(singular)[:256]:
            some = ~zero[:, k]
            v = np.unique(powers[some, k])
            if len(v) > 1 or not self._sound(base, over, k, some, int(v[0]), lead[:, k]):
                self.run.curved = True
                return

    def _sound(
        self, base: Series, over: Series | None, k: int, some: Array, power: int, lead: Array
    ) -> bool:
        if over is None and power == base.q:
            return True  # a function of one smooth function
        if power == 2 * base.q and self._is_definite(lead, some):
            return True
        size = np.abs(lead[some]) ** (1.0 / power)
        own = [self._rows(part, k)[:, some] for part in (base, over) if part is not None]
        lows = [part.low for part in (base, over) if part is not None]
        if all(
            self._is_of_one_form(c, low, size, lead[some]) for c, low in zip(own, lows, strict=True)
        ):
            return True
        return (
            over is not None and power == base.q and self._is_divisible(base, over, k, some, lead)
        )

    def _rows(self, part: Series, k: int, name: str = "c") -> Array:
        """The coefficients of an element, by lines."""
        planes = getattr(part, name)
        shape = (len(planes), len(self.lines), *part.shape[1:])
        c = np.broadcast_to(planes, shape).reshape(len(planes), len(self.lines), -1)
        return c[:, :, k if c.shape[-1] > 1 else 0]

    def _is_of_one_form(self, c: Array, low: int, size: Array, lead: Array) -> bool:
        ratio = c / size ** (np.arange(low, low + len(c)) / 1.0)[:, None]
        for side in (lead > 0, lead < 0):
            own = ratio[:, side]
            if own.shape[1] > 1 and (np.ptp(own, axis=1) > 1e-6 * np.abs(own).max(1)).any():
                return False
        return True

    def _is_divisible(self, base: Series, over: Series, k: int, some: Array, lead: Array) -> bool:
        """Whether divisor and dividend are zero on the plane where the divisor's linear form is."""
        own = self.lines[: len(self.lines) - self.beyond]
        form = _fitted(own, np.where(some, lead, 0.0)[: len(own)])
        form = np.where(np.abs(form) < 1e-9 * np.abs(form).max(), 0.0, form)
        if self.beyond:
            tested = 0
            for at in range(len(own), len(self.lines)):
                z = self.lines[at]
                if abs(form @ z) > 1e-9 * np.abs(form).max() * np.abs(z).max():
                    continue
                tested += 1
                for part in (base, over):
                    c, r = self._rows(part, k)[:, at], self._rows(part, k, "r")[:, at]
                    if (np.abs(c) > 8 * r + 1e-12 * np.abs(self._rows(part, k)).max()).any():
                        return False
            if tested:
                return True
        rng = np.random.default_rng(5)
        n = len(form)
        for _ in range(2):
            z = np.zeros(n)
            for i in range(n):
                if not form[i]:
                    z[i] += rng.integers(1, 9)
                else:
                    j = int(rng.integers(n))
                    if j != i and form[j]:
                        step = float(rng.integers(1, 9))
                        ratio = form[i] / form[j]
                        z[i] += step
                        z[j] -= step * ratio
            if np.abs(z).max() > 0:
                self.wanted.append(z)
        return False

    def _is_definite(self, lead: Array, some: Array) -> bool:
        """Whether the leading form, of second order, is zero in no direction in which it moves."""
        n = self.lines.shape[1]
        i, j = np.triu_indices(n)
        if len(i) > len(self.lines) or n > 12:
            return False
        design = self.lines[:, i] * self.lines[:, j]
        values = np.where(some, lead, 0.0)
        form = _fitted(design, values)
        if np.abs(design @ form - values).max() > 1e-9 * np.abs(values).max():
            return False
        square = np.zeros((n, n))
        square[i, j] += form / 2
        square[j, i] += form / 2
        used = np.abs(square).max(0) > 0
        if not used.any():
            return False
        eigen = lapack.eigh(square[np.ix_(used, used)], "L")[0]
        return bool(
            (eigen > 1e-9 * np.abs(eigen).max()).all()
            or (eigen < -1e-9 * np.abs(eigen).max()).all()
        )


def _fitted(design: Array, values: Array) -> Array:
    """The solution of least squares."""
    u, s, vh = lapack.svd(design, False)
    keep = s > 1e-12 * s.max(initial=0.0)
    return vh.T[:, keep] @ ((u.T @ values)[keep] / s[keep])


def both(plus: Any, minus: Any, parity: int) -> Found:
    """A derivative of order `parity` from its two sides; one side alone counts, at the edge of a domain."""
    (a, ra, none_a, doubt_a), (b, rb, none_b, doubt_b) = plus, minus
    b = b * (-1.0) ** parity
    out_a = np.isnan(a) & ~none_a & ~doubt_a
    out_b = np.isnan(b) & ~none_b & ~doubt_b
    apart = np.abs(a - b) > AGREE * np.maximum(np.abs(a), np.abs(b)) + 8 * (ra + rb)
    values = np.where(out_a, b, np.where(out_b, a, np.where(ra <= rb, a, b)))
    bounds = np.where(out_a, rb, np.where(out_b, ra, np.minimum(ra, rb)))
    bounds = np.where(np.isfinite(bounds), bounds, 0.0)
    none = (
        none_a | none_b | (out_a & out_b) | (~out_a & ~out_b & ~np.isnan(a) & ~np.isnan(b) & apart)
    )
    status = np.where(none, NONE, np.where(doubt_a | doubt_b, UNDECIDED, FOUND))
    status = np.where((status == FOUND) & ~np.isfinite(values), UNDECIDED, status)
    return Found(np.where(status == FOUND, values + 0.0, np.nan), bounds, status)


def filled(traced: Traced, limits: Found) -> Found:
    """Limits, with NONE where the program has another value at the point itself; NaN there is a hole."""
    here = np.broadcast_to(traced.here, limits.values.shape)
    least = max(AGREE, 32 * float(np.finfo(traced.value.value.dtype).eps))
    size = np.maximum(np.abs(here), np.abs(limits.values))
    most = max([1.0, *(float(np.abs(a).max(initial=0.0)) for a in traced.arrays.values())])
    gap = np.abs(here - limits.values) > least * size + 8 * limits.bounds + 1e-12 * most
    jumps = (limits.status == FOUND) & np.isfinite(here) & gap
    status = np.where(jumps, NONE, limits.status)
    return Found(np.where(jumps, np.nan, limits.values), limits.bounds, status)


def split(found: Sequence[Any], count: int) -> tuple[Any, Any]:
    """The lines, and those that go the other way, of coefficients."""
    return tuple(x[:count] for x in found), tuple(x[count : 2 * count] for x in found)


def generic(n: int, k: int = 0) -> Array:
    """A direction that no linear form with small coefficients is zero in, of small integers."""
    rng = np.random.default_rng(97 + k)
    return rng.choice([1, 3, 5, 7, 9, 11, 13], n) * rng.choice([-1.0, 1.0], n)


def judged(found: Found, scale: Any = None) -> Found:
    """With LOST where the bound of an error is no small part of the number, or of `scale`."""
    size = np.maximum(np.abs(found.values), 0.0 if scale is None else scale)
    lost = (found.status == FOUND) & (found.bounds > ENOUGH * size)
    status = np.where(lost, LOST, found.status)
    values = np.where(np.abs(found.values) <= found.bounds, 0.0, found.values)
    return Found(np.where(status == FOUND, values, np.nan), found.bounds, status)


def along(traced: Traced, lines: Array, order: int, cones: bool = False) -> Found:
    """The derivatives of a value of orders 0 to `order` along lines: [order, line, ...]."""
    (series,) = traced.coefficients([traced.value], np.concatenate([lines, -lines]), order, cones)
    made = [both(*split(series[k], len(lines)), k) for k in range(order + 1)]
    made[0] = filled(traced, made[0])
    for k in range(1, order + 1):  # a function that is no smooth one has no smoother derivatives
        broken = made[k - 1].status == NONE
        made[k] = Found(
            np.where(broken, np.nan, made[k].values),
            made[k].bounds,
            np.where(broken, NONE, made[k].status),
        )
    return Found(*[np.stack([getattr(m, f) for m in made]) for f in Found._fields])


def hessian(traced: Traced) -> Found:
    """The Hessian by all elements of all variables, (n, n)."""
    n = traced.size
    routes = []
    problems: list[Exception] = []
    if n <= BY_VALUE:
        try:
            routes.append(hessian_of_value(traced))
        except NoSeries as error:
            problems.append(error)
    if traced.slopes is not None and n <= MOST:
        try:
            routes.append(hessian_of_gradient(traced))
        except NoSeries as error:
            problems.append(error)
    if not routes:
        raise problems[0] if problems else NoSeries(f"more than {MOST} elements of variables")
    found = routes[0]
    for other in routes[1:]:
        found = agreed(found, other)
    return found


def agreed(a: Found, b: Found) -> Found:
    """What two routes say: where both have a number, the one of the smaller bound, if they agree.

    Where the first has none, there is none: a jump shows in the value alone.
    """
    apart = _differs(a.values, b.values, a.bounds + b.bounds)
    two = (a.status == FOUND) & (b.status == FOUND)
    first = (a.status == FOUND) & ((b.status != FOUND) | (a.bounds <= b.bounds))
    values, bounds = np.where(first, a.values, b.values), np.where(first, a.bounds, b.bounds)
    none = (a.status == NONE) | ((b.status == NONE) & (a.status != FOUND))
    doubt = (two & apart) | ((b.status == NONE) & (a.status == FOUND))
    known = (a.status == FOUND) | (b.status == FOUND)
    lost = ~known & ((a.status == LOST) | (b.status == LOST))
    status = np.where(none, NONE, np.where(lost, LOST, np.where(doubt | ~known, UNDECIDED, FOUND)))
    return Found(np.where(status == FOUND, values, np.nan), bounds, status)


def _differs(a: Array, b: Array, bounds: Array) -> Array:
    """Whether numbers differ by more than the bounds of their errors explain."""
    return np.abs(a - b) > AGREE * np.maximum(np.abs(a), np.abs(b)) + 8 * bounds


def hessian_of_value(traced: Traced) -> Found:
    """By the second coefficients along e_i, e_i + e_j, e_i - e_j; e_i + 2*e_j has to agree too."""
    n = traced.size
    unit = np.eye(n)
    pairs = [(i, j) for i in range(n) for j in range(i)]
    rows = [unit[i] for i in range(n)]
    for i, j in pairs:
        rows += [unit[i] + unit[j], unit[i] - unit[j], unit[i] + 2 * unit[j]]
    lines = np.array(rows)
    (series,) = traced.coefficients([traced.value], np.concatenate([lines, -lines]), 2, True)
    size = len(lines)
    zeroth, first, second = (both(*split(s, size), k) for k, s in enumerate(series))
    zeroth, first, second = (Found(*[x.reshape(size) for x in f]) for f in (zeroth, first, second))
    zeroth = filled(traced, zeroth)
    values, bounds = np.full((n, n), np.nan), np.zeros((n, n))
    status = np.full((n, n), UNDECIDED)
    index = np.arange(n)
    values[index, index], bounds[index, index] = second.values[:n], second.bounds[:n]
    status[index, index] = second.status[:n]
    jumps = (zeroth.status == NONE).any() or _apart(zeroth)
    bent = first.status[:n] == NONE
    for k, (i, j) in enumerate(pairs):
        at = n + 3 * k
        three = [at, at + 1, at + 2]
        # a sum of slopes along lines, or there is no gradient
        steps = np.array([[1, 1], [1, -1], [1, 2]])
        slopes = steps @ first.values[[i, j]]
        if (first.status[three] == NONE).any() and (first.status[[i, j]] == FOUND).all():
            bent[[i, j]] = True
        gap = np.abs(first.values[three] - slopes)
        size_of = np.abs(first.values[three]) + np.abs(slopes)
        if (
            gap
            > AGREE * size_of + 8 * (first.bounds[three] + first.bounds[i] + 2 * first.bounds[j])
        ).any():
            bent[[i, j]] = True
        plus, minus, far = second.values[three]
        noise = second.bounds[three].sum() + second.bounds[i] + 4 * second.bounds[j]
        kinds = second.status[[*three, i, j]]
        if (kinds != FOUND).any():
            status[i, j] = status[j, i] = NONE if (kinds == NONE).any() else UNDECIDED
            continue
        mixed = (plus - minus) / 4
        a, b = second.values[i], second.values[j]
        most = max(abs(plus), abs(minus), abs(far))
        if (
            max(abs(plus + minus - 2 * (a + b)), abs(a + 4 * (mixed + b) - far))
            > AGREE * most + 8 * noise
        ):
            status[i, j] = status[j, i] = NONE
            continue
        values[i, j] = values[j, i] = mixed
        bounds[i, j] = bounds[j, i] = (second.bounds[at] + second.bounds[at + 1]) / 4
        status[i, j] = status[j, i] = FOUND
    status[bent, :] = status[:, bent] = NONE
    if jumps:
        status[:] = NONE
    size = _largest(values, status) + np.abs(first.values[first.status == FOUND]).max(initial=0.0)
    return judged(Found(np.where(status == FOUND, values, np.nan), bounds, status), size)


def _largest(values: Array, status: Array) -> float:
    return float(np.abs(values[status == FOUND]).max(initial=0.0))


def _apart(found: Found) -> bool:
    known = found.status == FOUND
    v, r = found.values[known], found.bounds[known]
    return bool(len(v) and np.ptp(v) > AGREE * np.abs(v).max() + 8 * r.max())


def hessian_of_gradient(traced: Traced) -> Found:
    """By the first coefficients of the gradient along e_j; along w, and w + e_j, they have to agree."""
    n = traced.size
    assert traced.slopes is not None
    unit, w = np.eye(n), generic(n)[None]
    lines = np.concatenate([unit, w]) if n > 1 else unit
    parts = [s for s in traced.slopes if s is not None]

    def columns(lines: Array) -> tuple[Found, Found]:
        """(the gradient, its derivative) along lines: [line, element]."""
        series = iter(
            traced.coefficients(parts, np.concatenate([lines, -lines]), 1, True) if parts else []
        )
        zeroth, first = [], []
        for slope, size in zip(traced.slopes or (), traced.sizes, strict=True):
            if slope is None:
                nothing = np.zeros((len(lines), size))
                zeroth.append(Found(nothing, nothing, nothing.astype(int)))
                first.append(zeroth[-1])
                continue
            own = next(series)
            for k, to in enumerate((zeroth, first)):
                found = both(*split(own[k], len(lines)), k)
                to.append(Found(*[x.reshape(len(lines), size) for x in found]))
        return _joined(zeroth), _joined(first)

    start, slopes = columns(lines)
    bent = np.array([_apart(start.at((slice(None), i))) for i in range(n)])
    bent |= (start.status == NONE).any(0)
    values, bounds, status = slopes.values[:n].T, slopes.bounds[:n].T, slopes.status[:n].T
    values, bounds, status = values.copy(), bounds.copy(), status.copy()
    if n > 1:
        check = slopes.at(n)
        unsure = (status == UNDECIDED).any(0)
        if (
            unsure.any() and (check.status == FOUND).any()
        ):  # a line within what is singular: aside of it
            at = np.flatnonzero(unsure)
            more = np.concatenate([w + unit[at], w - unit[at]])
            _, aside = columns(more)
            a, b = aside.at(slice(0, len(at))), aside.at(slice(len(at), None))
            ok = (a.status == FOUND) & (b.status == FOUND)
            for k, j in enumerate(at):
                take = (status[:, j] == UNDECIDED) & ok[k]
                values[take, j] = ((a.values - b.values) / 2)[k, take]
                bounds[take, j] = ((a.bounds + b.bounds) / 2)[k, take]
                status[take, j] = FOUND
        total = np.where(
            (status == FOUND).all(1), np.nansum(np.where(status == FOUND, values, 0) * w, 1), np.nan
        )
        noise = (bounds * np.abs(w)).sum(1) + check.bounds
        size = (np.abs(np.nan_to_num(values)) * np.abs(w)).sum(1)
        off = np.abs(total - check.values) > AGREE * size + 8 * noise
        bent |= off | (check.status == NONE)
    both_ways = np.abs(values - values.T) > AGREE * np.maximum(
        np.abs(values), np.abs(values.T)
    ) + 8 * (bounds + bounds.T)
    status[both_ways & (status == FOUND) & (status.T == FOUND)] = NONE
    status[bent, :] = NONE
    status[:, bent] = np.where(status[:, bent] == FOUND, NONE, status[:, bent])
    mirrored = (status != FOUND) & (status.T == FOUND) & (status == UNDECIDED)
    values, bounds = np.where(mirrored, values.T, values), np.where(mirrored, bounds.T, bounds)
    status = np.where(mirrored, FOUND, status)
    size = _largest(values, status) + np.abs(start.values[start.status == FOUND]).max(initial=0.0)
    return judged(Found(np.where(status == FOUND, values, np.nan), bounds, status), size)


def _joined(many: Sequence[Found]) -> Found:
    """Numbers of several variables beside each other."""
    return Found(*[np.concatenate([getattr(f, x) for f in many], 1) for x in Found._fields])


def gradient_along(traced: Traced, line: Array, order: int) -> list[Found]:
    """For each variable the derivative of order `order` along a line of its gradient."""
    assert traced.slopes is not None
    lines = line[None]
    parts = [s for s in traced.slopes if s is not None]
    series = iter(
        traced.coefficients(parts, np.concatenate([lines, -lines]), order) if parts else []
    )
    made = []
    for slope, name in zip(traced.slopes, traced.wrt, strict=True):
        shape = traced.arrays[name].shape
        if slope is None:
            made.append(Found(np.zeros(shape), np.zeros(shape), np.zeros(shape, int)))
            continue
        own = next(series)
        every = [both(*split(own[k], 1), k).at(0) for k in range(order + 1)]
        status = every[-1].status
        for lower in every[:-1]:
            status = np.where(lower.status == NONE, NONE, status)
        made.append(
            Found(np.where(status == FOUND, every[-1].values, np.nan), every[-1].bounds, status)
        )
    return made


def jacobian(traced: Traced) -> Found:
    """The Jacobian by all elements of all variables: the value's shape, then n."""
    n = traced.size
    if n > MOST:
        raise NoSeries(f"more than {MOST} elements of variables")
    lines = np.concatenate([np.eye(n), generic(n)[None]]) if n > 1 else np.eye(n)
    found = along(traced, lines, 1).at(1)
    values, bounds, status = (np.moveaxis(x, 0, -1).copy() for x in found)
    if n > 1:
        unsure = np.flatnonzero((status[..., :n] == UNDECIDED).reshape(-1, n).any(0))
        if len(unsure):  # a line within what is singular: aside of it
            more = np.concatenate([lines[n] + lines[unsure], lines[n] - lines[unsure]])
            aside = along(traced, more, 1, True).at(1)
            for k, j in enumerate(unsure):
                a, b = aside.at(k), aside.at(len(unsure) + k)
                take = (status[..., j] == UNDECIDED) & (a.status == FOUND) & (b.status == FOUND)
                values[..., j] = np.where(take, (a.values - b.values) / 2, values[..., j])
                bounds[..., j] = np.where(take, (a.bounds + b.bounds) / 2, bounds[..., j])
                status[..., j] = np.where(take, FOUND, status[..., j])
        total = (values[..., :n] * lines[n]).sum(-1)
        noise = (bounds[..., :n] * np.abs(lines[n])).sum(-1) + bounds[..., n]
        size = (np.abs(values[..., :n]) * np.abs(lines[n])).sum(-1)
        bent = (np.abs(total - values[..., n]) > AGREE * size + 8 * noise) | (
            status[..., n] == NONE
        )
        values, bounds, status = values[..., :n], bounds[..., :n], status[..., :n]
        status = np.where(bent[..., None], NONE, status)
    size = np.abs(values[status == FOUND]).max(initial=0.0)
    return judged(Found(np.where(status == FOUND, values, np.nan), bounds, status), size)


def nth(
    program: Program,
    tensors: Mapping[str, Tensor],
    wrt: Sequence[str],
    order: int,
    seed: Array | None = None,
    names: Mapping[str, Any] | None = None,
) -> list[Found]:
    """For each variable the derivative of an order, where each is that of the sum of the one before.

    Of a variable that is a scalar by the value's series, of others by the gradient's along ones.
    """
    made = []
    traced = Traced(program, tensors, wrt, names, seed=seed)
    at = 0
    for k, (name, size) in enumerate(zip(traced.wrt, traced.sizes, strict=True)):
        line = np.zeros(traced.size)
        line[at : at + size] = 1.0
        at += size
        found = _nth_along(traced, line, k, order)
        if found is None:
            raise NoSeries(name)
        made.append(found)
    return made


def _nth_along(traced: Traced, line: Array, k: int, order: int) -> Found | None:
    """The derivative of the kth variable's sum: by the value's series of a scalar, else by the gradient's."""
    shape = traced.arrays[traced.wrt[k]].shape
    found = None
    if traced.sizes[k] == 1:
        try:
            every = along(traced, line[None], order)
            scale = float(np.abs(np.nan_to_num(every.values)).max(initial=0.0))
            one = every.at((order, 0))
            found = judged(Found(*[np.reshape(x, shape) for x in one]), scale)
        except NoSeries:
            pass
    if found is None or not (found.status == FOUND).all():
        try:
            other = judged(gradient_along(traced, line, order - 1)[k])
            found = other if found is None else agreed(found, other)
        except NoSeries:
            pass
    if found is None or not (found.status == FOUND).all():
        size = traced.sizes[k]
        if size > 1 and size * (order + 1) <= BESIDE:
            aside = _nth_beside(traced, line, k, order)
            if found is not None:  # the digits of what is known are better
                known = found.status == FOUND
                aside = Found(*[np.where(known, a, b) for a, b in zip(found, aside, strict=True)])
            found = aside
    return found


def _nth_beside(traced: Traced, line: Array, k: int, order: int) -> Found:
    """The same for each element by the value's series along line + s*e, for order + 1 numbers s.

    The derivative of order n along it is a polynomial in s, and n times the wanted one its factor of s.
    """
    at, size = int(np.flatnonzero(line)[0]), traced.sizes[k]
    most = order // 2 + 2  # all within 1, so that no element of the line becomes 0
    steps = np.array([(-1.0) ** m * (m // 2 + 1) / most for m in range(order + 1)])
    unit = np.eye(traced.size)[at : at + size]
    lines = (line + steps[None, :, None] * unit[:, None, :]).reshape(-1, traced.size)
    every = along(traced, lines, order, True).at(order)
    values, bounds, status = (x.reshape(size, order + 1) for x in every)
    weights = lapack.inverse(np.vander(steps, increasing=True))[0][1] / order
    none = (status == NONE).any(1)
    known = (status == FOUND).all(1)
    made = Found(
        np.nan_to_num(values) @ weights,
        bounds @ np.abs(weights) + 8 * EPS * (np.abs(np.nan_to_num(values)) @ np.abs(weights)),
        np.where(none, NONE, np.where(known, FOUND, UNDECIDED)),
    )
    shape = traced.arrays[traced.wrt[k]].shape
    made = judged(made, float(np.abs(made.values[known]).max(initial=0.0)))
    return Found(*[x.reshape(shape) for x in made])


PROBLEMS = (NoSeries, RuntimeError, NotImplementedError, LanguageError, ValueError)

__all__ = [
    "FOUND",
    "NONE",
    "PROBLEMS",
    "UNDECIDED",
    "Found",
    "Traced",
    "along",
    "gradient_along",
    "hessian",
]
