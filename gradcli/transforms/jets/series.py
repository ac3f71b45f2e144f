"""Power series of arrays: f(x + t*d) for small t > 0, with its leading power and a bound of what is lost.

A chain rule multiplies numbers at the point, so that norm(v)**2 at v = 0 multiplies 0 by 1/0. A series keeps
its leading power of t, and t**2 is what norm(v)**2 is there. Recurrences: Griewank & Walther, Evaluating
Derivatives, chapter 13. Each coefficient has a bound of its rounding error, found by error-free sums and
products (Ogita, Rump & Oishi 2005), so that a zero that is only rounded is not taken for one: what it decides
is "undecided".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = Any

EPS = 2.0**-53
EXACT = 1 << 40  # the cut of a series that ends: all its other coefficients are zero
FINEST = 12  # of the lattices of powers t**(1/q)
SURE = 8.0  # how many times its bound a leading coefficient is, to count as one


class Run:
    """One evaluation: how many terms are kept, and what could not be decided along which directions.

    directions: how many, the first dimension of every coefficient. terms: kept for each whole power of t.
    more: where a divisor was zero as far as it was known. undecided: where a zero was within its rounding
    error. outside: which lead out of a domain. curved: whether what is right along lines may be wrong along
    curves. cones: called with every operand that is divided by, and with what is divided.
    """

    def __init__(self, directions: int, terms: int) -> None:
        self.directions, self.terms = directions, terms
        self.undecided = np.zeros(directions, bool)
        self.more = np.zeros(directions, bool)
        self.outside = np.zeros(directions, bool)
        self.curved = False
        self.cones: Callable[[Series, Series | None], None] | None = (
            None  # called with what is singular
        )

    def doubt(self, where: Array) -> None:
        """Note the directions along which an element is undecided."""
        self.undecided |= _any(where, self.directions)

    def leave(self, where: Array) -> None:
        """Note the directions that lead out of the domain of a function."""
        self.outside |= _any(where, self.directions)

    def want(self, where: Array) -> None:
        """Note the directions along which more terms are needed."""
        self.more |= _any(where, self.directions)


def _any(where: Array, directions: int) -> Array:
    return np.broadcast_to(where, (directions, *where.shape[1:])).reshape(directions, -1).any(1)


class Series:
    """The sum of c[k] * s**(low + k), s = t**(1/q); powers of s from `cut` on are not known.

    c: float64, one more dimension in front of the array's (and of the directions). r: bounds of the errors
    of c. cut: integers, one for each element. wild: elements whose remainder holds log(t) or a power that is
    on no lattice, so that more terms would not help. definite: whether the leading form is zero along no
    direction (a norm's): then a quotient by it is right along curves as well.
    """

    __slots__ = ("c", "cut", "definite", "low", "q", "r", "run", "wild")
    __array_ufunc__ = None  # NumPy leaves arithmetic to this class

    def __init__(
        self,
        run: Run,
        c: Array,
        r: Array | None = None,
        low: int = 0,
        cut: Any = EXACT,
        q: int = 1,
        wild: Any = False,
        definite: bool = False,
    ) -> None:
        shape = c.shape[1:]
        r = np.zeros(c.shape) if r is None else r
        cut = np.broadcast_to(np.asarray(cut, np.int64), shape)
        powers = np.arange(low, low + len(c)).reshape(-1, *[1] * len(shape))
        beyond = powers >= cut
        if beyond.any():
            c, r = np.where(beyond, 0.0, c), np.where(beyond, 0.0, r)
        some = (c != 0) | (r != 0)
        planes = some.reshape(len(c), -1).any(1)
        if not planes.any():
            c, r, low, some = c[:1] * 0.0, r[:1] * 0.0, 0, some[:1] & False
        else:
            first, last = int(planes.argmax()), len(planes) - int(planes[::-1].argmax())
            c, r, low, some = c[first:last], r[first:last], low + first, some[first:last]
        most = run.terms * q
        if len(c) > most:  # each element keeps so many terms from its leading one on
            start = np.where(some.any(0), low + some.argmax(0), low)
            powers = np.arange(low, low + len(c)).reshape(-1, *[1] * len(shape))
            late = (powers >= start + most) & some
            if late.any():
                cut = np.where(late.any(0), np.minimum(cut, start + most), cut)
                c, r = np.where(powers >= cut, 0.0, c), np.where(powers >= cut, 0.0, r)
                planes = ((c != 0) | (r != 0)).reshape(len(c), -1).any(1)
                last = max(len(planes) - int(planes[::-1].argmax()), 1)
                c, r = c[:last], r[:last]
        self.run, self.c, self.r, self.low, self.cut, self.q = run, c, r, low, cut, q
        self.wild = np.broadcast_to(np.asarray(wild, bool), shape)
        self.definite = definite

    # -- what it says ------------------------------------------------------------------------------
    @property
    def shape(self) -> tuple[int, ...]:
        """The array's, the directions first."""
        return self.c.shape[1:]  # type: ignore[no-any-return]

    def valuation(self) -> Array:
        """The power of s of the first coefficient that may be other than zero; the cut if none may."""
        some = (self.c != 0) | (self.r != 0)
        return np.where(some.any(0), self.low + some.argmax(0), self.cut)

    def leading(self) -> tuple[Array, Array]:
        """(the first coefficient that may be other than zero, its bound)."""
        some = (self.c != 0) | (self.r != 0)
        at = some.argmax(0)[None]
        return np.take_along_axis(self.c, at, 0)[0], np.take_along_axis(self.r, at, 0)[0]

    def known(self) -> Array:
        """The elements that are numbers."""
        return np.isfinite(self.c).all(0) & np.isfinite(self.r).all(0)

    def sign(self) -> Array:
        """1, 0 or -1 for small t > 0; NaN where it is not known."""
        lead, bound = self.leading()
        zero = (lead == 0) & (bound == 0)
        unsure = ~zero & (np.abs(lead) <= SURE * bound)
        open_ = zero & (self.cut < EXACT)
        self.run.doubt(unsure | np.isnan(bound))
        self.run.want(open_ & ~self.wild)
        return np.where(unsure | (open_ & self.wild) | ~self.known(), np.nan, np.sign(lead))

    def on(self, q: int) -> Series:
        """The same in powers of t**(1/q), on a finer lattice."""
        step = q // self.q
        if step == 1:
            return self
        c = np.zeros(((len(self.c) - 1) * step + 1, *self.shape))
        r = np.zeros_like(c)
        c[::step], r[::step] = self.c, self.r
        cut = np.where(self.cut >= EXACT, EXACT, self.cut * step)
        return Series(self.run, c, r, self.low * step, cut, q, self.wild, self.definite)

    def plane(self, power: int) -> tuple[Array, Array]:
        """The coefficient of a power of s, and its bound."""
        at = power - self.low
        if 0 <= at < len(self.c):
            return self.c[at], self.r[at]
        return np.zeros(self.shape), np.zeros(self.shape)

    def aligned(self) -> tuple[Array, Array, Array]:
        """(coefficients from each element's leading one on, their bounds, the power of that one)."""
        some = (self.c != 0) | (self.r != 0)
        first = np.where(some.any(0), some.argmax(0), 0)
        return (
            _moved(self.c, -first, len(self.c)),
            _moved(self.r, -first, len(self.r)),
            self.low + first,
        )

    def dense(self) -> tuple[Array, Array, Array]:
        """(coefficients from t**0 on, their bounds, the cut); NaN at poles and where no value is known."""
        keep = self.run.terms * self.q
        size = min(max(self.low + len(self.c), 1), keep)
        c, r = np.zeros((size, *self.shape)), np.zeros((size, *self.shape))
        start, stop = max(self.low, 0), min(self.low + len(self.c), size)
        if start < stop:
            c[start:stop] = self.c[start - self.low : stop - self.low]
            r[start:stop] = self.r[start - self.low : stop - self.low]
        bad = self.cut <= 0
        if self.low < 0:
            bad = bad | (self.valuation() < 0)
        self.run.want((self.cut <= 0) & ~self.wild)
        c = np.where(bad, np.nan, c) if bad.any() else c
        dropped = self.low + len(self.c) > keep
        return c, r, np.minimum(self.cut, keep) if dropped else self.cut

    def flat(self, fill: float = 0.0) -> Series:
        """A constant of the same shape."""
        return Series(self.run, np.full((1, *self.shape), fill))

    def where(self, mask: Array, other: Series) -> Series:
        """This where the mask holds, the other elsewhere."""
        a, b = paired(self, other)
        shape = np.broadcast_shapes(a.shape, b.shape, mask.shape)
        low = min(a.low, b.low)
        size = max(a.low + len(a.c), b.low + len(b.c)) - low
        c, r = (
            np.where(
                mask, _spread(p, a.low - low, size, shape), _spread(o, b.low - low, size, shape)
            )
            for p, o in ((a.c, b.c), (a.r, b.r))
        )
        cut = np.where(mask, a.cut, b.cut)
        return Series(a.run, c, r, low, cut, a.q, np.where(mask, a.wild, b.wild))

    # -- arithmetic --------------------------------------------------------------------------------
    def __add__(self, other: Any) -> Series:
        a, b = paired(self, other)
        shape = np.broadcast_shapes(a.shape, b.shape)
        low = min(a.low, b.low)
        size = max(a.low + len(a.c), b.low + len(b.c)) - low
        x, y = _spread(a.c, a.low - low, size, shape), _spread(b.c, b.low - low, size, shape)
        total, lost = two_sum(x, y)
        r = _spread(a.r, a.low - low, size, shape) + _spread(b.r, b.low - low, size, shape)
        cut = np.minimum(a.cut, b.cut)
        wild = (a.wild & (a.cut == cut)) | (b.wild & (b.cut == cut))
        return Series(a.run, total, r + np.abs(lost), low, cut, a.q, wild)

    def __neg__(self) -> Series:
        return Series(
            self.run, -self.c, self.r, self.low, self.cut, self.q, self.wild, self.definite
        )

    def __sub__(self, other: Any) -> Series:
        return self + -as_series(self.run, other)

    def __rsub__(self, other: Any) -> Series:
        return as_series(self.run, other) + -self

    def __mul__(self, other: Any) -> Series:
        a, b = paired(self, other)
        if len(a.c) > len(b.c):
            a, b = b, a
        return multiplied(a, b, lambda x, y: two_product(x, y), lambda x, y: x * y)

    __radd__, __rmul__ = __add__, __mul__

    def __truediv__(self, other: Any) -> Series:
        return divided(self, as_series(self.run, other))

    def __rtruediv__(self, other: Any) -> Series:
        return divided(as_series(self.run, other), self)


def as_series(run: Run, value: Any) -> Series:
    """A series; numbers and arrays (with or without directions in front) are constants."""
    if isinstance(value, Series):
        return value
    array = np.asarray(value, np.float64)
    array = array.reshape(1, *(array.shape or (1,)))
    return Series(run, array, rounded(array) if isinstance(value, float) else None)


def rounded(array: Array) -> Array:
    """The bounds of constants' errors: half an ulp for more than 15 digits, which are some result's."""
    if (array == np.round(array)).all():
        return np.zeros(array.shape)
    short = [float(f"{x:.15g}") == x for x in np.ravel(array).tolist()]
    return np.where(np.reshape(short, array.shape), 0.0, EPS * np.abs(array))


def paired(a: Series, other: Any) -> tuple[Series, Series]:
    """Two series on one lattice, with the same number of dimensions."""
    b = as_series(a.run, other)
    q = math.lcm(a.q, b.q)
    a, b = a.on(q), b.on(q)
    ndim = max(len(a.shape), len(b.shape))
    return padded(a, ndim), padded(b, ndim)


def padded(a: Series, ndim: int) -> Series:
    """With dimensions of size 1 behind the directions, up to so many."""
    missing = ndim - len(a.shape)
    if not missing:
        return a
    head, tail = a.shape[:1], a.shape[1:]
    shape = (*head, *[1] * missing, *tail)
    return reshaped(a, shape)


def reshaped(a: Series, shape: tuple[int, ...]) -> Series:
    """The same elements in another shape."""
    made = object.__new__(Series)
    made.run, made.low, made.q, made.definite = a.run, a.low, a.q, a.definite
    made.c, made.r = a.c.reshape(-1, *shape), a.r.reshape(-1, *shape)
    made.cut, made.wild = a.cut.reshape(shape), a.wild.reshape(shape)
    return made


def expanded(a: Series, shape: tuple[int, ...]) -> Series:
    """Repeated to a shape, that has as many dimensions."""
    if a.shape == shape:
        return a
    made = object.__new__(Series)
    made.run, made.low, made.q, made.definite = a.run, a.low, a.q, a.definite
    made.c = np.broadcast_to(a.c, (len(a.c), *shape))
    made.r = np.broadcast_to(a.r, (len(a.r), *shape))
    made.cut, made.wild = np.broadcast_to(a.cut, shape), np.broadcast_to(a.wild, shape)
    return made


def two_sum(x: Array, y: Array) -> tuple[Array, Array]:
    """(x + y rounded, the error of it), exactly (Knuth)."""
    s = x + y
    v = s - x
    return s, (x - (s - v)) + (y - v)


_SPLIT = 134217729.0  # 2**27 + 1


def _halves(x: Array) -> tuple[Array, Array]:
    high = _SPLIT * x
    high = high - (high - x)
    return high, x - high


def two_product(x: Array, y: Array) -> tuple[Array, Array]:
    """(x*y rounded, the error of it), exactly but near overflow and underflow (Dekker)."""
    p = x * y
    (a, b), (c, d) = _halves(x), _halves(y)
    lost = b * d - (((p - a * c) - b * c) - a * d)
    small = np.abs(p) < 1e-280
    lost = np.where(np.isfinite(lost) & ~small, lost, EPS * np.abs(p))
    return p, np.where(small & (x != 0) & (y != 0), np.abs(lost) + 5e-324, lost)


def multiplied(
    a: Series,
    b: Series,
    product: Callable[[Array, Array], Any],
    bound: Callable[[Array, Array], Any],
) -> Series:
    """The convolution of two series by a bilinear product of their coefficients.

    product: (the result, its error); bound: the same product of bounds, which are not negative.
    """
    run, q = a.run, a.q
    most = min(len(a.c) + len(b.c) - 1, 3 * run.terms * q)
    c: list[Any] = [None] * most
    r: list[Any] = [None] * most
    rough_a, rough_b = a.r.any(), b.r.any()
    for i in range(len(a.c)):
        for j in range(min(len(b.c), most - i)):
            value, lost = product(a.c[i], b.c[j])
            lost = np.abs(lost)
            if rough_b:
                lost = lost + bound(np.abs(a.c[i]), b.r[j])
            if rough_a:
                lost = lost + bound(a.r[i], np.abs(b.c[j]) + b.r[j])
            if c[i + j] is None:
                c[i + j], r[i + j] = value, lost
            else:
                c[i + j], rest = two_sum(c[i + j], value)
                r[i + j] = r[i + j] + lost + np.abs(rest)
    low, va, vb = a.low + b.low, a.valuation(), b.valuation()
    ends, other = _less(a.cut, vb), _less(b.cut, va)
    cut = np.minimum(ends, other)
    if len(a.c) + len(b.c) - 1 > most:
        cut = np.minimum(cut, low + most)
    wild = (a.wild & (ends == cut)) | (b.wild & (other == cut))
    nothing = (va >= EXACT) | (vb >= EXACT)  # zero times anything that is known
    return Series(
        run, np.stack(c), np.stack(r), low, np.where(nothing, EXACT, cut), q, wild & ~nothing,
        a.definite and b.definite,
    )  # fmt: skip


def _less(cut: Array, power: Array) -> Array:
    """cut + power, where a cut that is none stays none."""
    return np.where((cut >= EXACT) | (power >= EXACT), EXACT, cut + power)


def _moved(planes: Array, by: Array, size: int) -> Array:
    """Coefficients moved along the first dimension, each element by its own number of places."""
    if (by == by.flat[0]).all() if by.size else True:
        step = int(by.flat[0]) if by.size else 0
        made = np.zeros((size, *planes.shape[1:]))
        start, stop = max(step, 0), min(size, len(planes) + step)
        if stop > start:
            made[start:stop] = planes[start - step : stop - step]
        return made
    at = np.arange(size).reshape(-1, *[1] * by.ndim) - by
    inside = (at >= 0) & (at < len(planes))
    return np.where(inside, np.take_along_axis(planes, np.clip(at, 0, len(planes) - 1), 0), 0.0)


def _spread(planes: Array, start: int, size: int, shape: tuple[int, ...]) -> Array:
    """Coefficients from a place on, among zeros, in a shape."""
    made = np.zeros((size, *shape))
    made[start : start + len(planes)] = planes
    return made


def divided(a: Series, b: Series) -> Series:
    """The quotient: 0/0 is that of the leading terms, which is l'Hopital's rule."""
    a, b = paired(a, b)
    shape = np.broadcast_shapes(a.shape, b.shape)
    a, b = expanded(a, shape), expanded(b, shape)
    run = a.run
    singular(b, a)
    x, xr, va = a.aligned()
    y, yr, vb = b.aligned()
    lead, bound = y[0], yr[0]
    zero = (lead == 0) & (bound == 0)
    unsure = ~zero & (np.abs(lead) <= SURE * bound)
    run.doubt(unsure | (zero & (b.cut >= EXACT) & (a.valuation() >= EXACT)))
    run.want(zero & (b.cut < EXACT) & ~b.wild)
    run.leave(zero & (b.cut >= EXACT))
    ok = ~(zero | unsure)
    lead = np.where(ok, lead, np.nan)
    known_a = np.where(a.cut >= EXACT, EXACT, a.cut - va)
    known_b = np.where(b.cut >= EXACT, EXACT, b.cut - vb)
    known = np.minimum(known_a, known_b)
    endless = len(y) > 1
    size = run.terms * a.q if endless else len(x)
    c, r = np.empty((size, *shape)), np.empty((size, *shape))
    size_of = np.abs(lead)
    for k in range(size):
        top = x[k] if k < len(x) else np.zeros(shape)
        err = xr[k] if k < len(xr) else np.zeros(shape)
        for j in range(1, min(k, len(y) - 1) + 1):
            value, lost = two_product(y[j], c[k - j])
            top, rest = two_sum(top, -value)
            err = (
                err
                + np.abs(lost)
                + np.abs(rest)
                + np.abs(y[j]) * r[k - j]
                + yr[j] * np.abs(c[k - j])
            )
        c[k] = top / lead
        back, lost = two_product(c[k], lead)
        rest = (top - back) - lost
        r[k] = (err + np.abs(rest) + np.abs(c[k]) * bound) / size_of
    if endless:
        alone = ((y[1:] == 0) & (yr[1:] == 0)).all(0) & (known >= EXACT) & (len(x) <= size)
        known = np.where(alone, EXACT, np.minimum(known, size))
    power = va - vb
    nothing = ok & (a.valuation() >= EXACT)
    power = np.where(nothing | ~ok, 0, power)
    cut = np.where(nothing | (known >= EXACT), EXACT, power + known)
    wild = (a.wild & (known_a == known)) | (b.wild & (known_b == known))
    low = int(power.min()) if power.size else 0
    span = int(power.max()) - low if power.size else 0
    c, r = _moved(c, power - low, size + span), _moved(r, power - low, size + span)
    return Series(run, c, r, low, cut, a.q, wild & ~nothing)


def singular(a: Series, over: Series | None = None) -> None:
    """Tell the run of an operand that `over` is divided by, or whose root or logarithm is taken."""
    if a.run.cones is not None and not a.definite:
        a.run.cones(a, over)


def power(a: Series, p: float) -> Series:
    """a**p, p a number: (s**v u)**p is s**(v p) u**p. Half powers go to a lattice twice as fine."""
    if p == 1:
        return a
    if p == 0:
        return a.flat(1.0)
    if p == 2:
        return a * a
    if p == int(p) and 0 < p <= 16:  # products keep exact numbers exact
        made, square, left = None, a, int(p)
        while left:
            if left & 1:
                made = square if made is None else made * square
            left >>= 1
            square = square * square if left else square
        assert made is not None
        return made
    run, shape = a.run, a.shape
    if p < 0 or p != int(p):
        singular(a)
    u, ur, v = a.aligned()
    lead, bound = u[0], ur[0]
    zero = (lead == 0) & (bound == 0)
    unsure = ~zero & (np.abs(lead) <= SURE * bound)
    if p > 0:
        run.doubt(unsure)
    else:
        run.doubt(unsure)
        run.want(zero & (a.cut < EXACT) & ~a.wild)
    ok = ~zero & ~unsure
    if p != int(p):
        ok = ok & (lead > 0)
        run.leave((lead < 0) & ~unsure)
    if p < 0:
        run.leave(zero & (a.cut >= EXACT))
    base = np.where(ok, lead, 1.0)
    size = run.terms * a.q if len(u) > 1 else 1
    c, r = np.zeros((size, *shape)), np.zeros((size, *shape))
    with np.errstate(all="ignore"):
        c[0] = base**p if p != 0.5 else np.sqrt(base)
        if p == 0.5:
            back, lost = two_product(c[0], c[0])
            r[0] = np.abs((base - back) - lost) / (2 * c[0])
        else:
            r[0] = 2 * EPS * np.abs(c[0]) * (base != 1.0)
        r[0] += np.abs(p * c[0] / base) * bound
        for k in range(1, size):  # from a * (a**p)' = p * a**p * a'
            total, err = np.zeros(shape), np.zeros(shape)
            for j in range(1, min(k, len(u) - 1) + 1):
                weight = j * (p + 1) - k
                value, lost = two_product(weight * u[j], c[k - j])
                total, rest = two_sum(total, value)
                err += (
                    np.abs(lost)
                    + np.abs(rest)
                    + abs(weight) * (np.abs(u[j]) * r[k - j] + ur[j] * np.abs(c[k - j]))
                )
            c[k] = total / (k * base)
            back, lost = two_product(c[k], k * base)
            r[k] = (err + np.abs((total - back) - lost)) / np.abs(k * base) + np.abs(
                c[k]
            ) * bound / np.abs(base)
    c, r = np.where(ok, c, np.nan), np.where(ok, r, np.nan)
    flat = zero & (p > 0)
    c, r = np.where(flat, 0.0, c), np.where(flat, 0.0, r)
    known = np.where(a.cut >= EXACT, EXACT, a.cut - v)
    if size > 1:
        alone = ((u[1:] == 0) & (ur[1:] == 0)).all(0) & (known >= EXACT)
        known = np.where(alone, EXACT, np.minimum(known, size))
    powers = v[ok] if ok.any() else np.zeros(1, np.int64)
    m = _lattice(powers, p)
    fine = a.q * (m or FINEST)
    step = m or FINEST
    planes, bounds = (
        np.zeros(((size - 1) * step + 1, *shape)),
        np.zeros(((size - 1) * step + 1, *shape)),
    )
    planes[::step], bounds[::step] = c, r
    to = np.where(ok, v, 0) * p * step
    place = np.floor(to + 1e-9).astype(np.int64)
    off = ok & (np.abs(to - np.rint(to)) > 1e-9)
    cut = np.where(known >= EXACT, EXACT, place + known * step)
    # No lattice up to twelfths has this power: it is only said below which power nothing is.
    cut = np.where(off, place, cut)
    none = np.where(
        a.cut >= EXACT, EXACT, np.floor(np.minimum(a.cut, 1 << 20) * p * step).astype(np.int64)
    )
    cut = np.where(flat, none, cut)
    low = int(place.min())
    span = int(place.max()) - low
    planes, bounds = (_moved(z, place - low, len(planes) + span) for z in (planes, bounds))
    return Series(run, planes, bounds, low, cut, fine, np.where(off, True, a.wild), a.definite)


def _lattice(powers: Array, p: float) -> int | None:
    """The factor by which the lattice has to be finer, for all of these powers times p."""
    found = 1
    for v in np.unique(powers):
        m = next(
            (m for m in range(1, FINEST + 1) if abs(v * p * m - round(v * p * m)) < 1e-12), None
        )
        if m is None or math.lcm(found, m) > FINEST:
            return None
        found = math.lcm(found, m)
    return found


def exp(a: Series) -> Series:
    """exp(a); that of -1/t is flat: all its coefficients are 0."""
    lead, bound = a.leading()
    flat = (a.valuation() < 0) & (lead < -SURE * bound)
    d, dr, cut = a.dense()
    if flat.any():
        d, dr = np.where(flat, 0.0, d), np.where(flat, 0.0, dr)
    start = np.exp(d[0])
    exact = (d[0] == 0) & (dr[0] == 0)
    with np.errstate(all="ignore"):
        e = np.where(exact, 0.0, start * (EPS * (1 + np.abs(d[0])) + dr[0]))

    def step(k: int, c: Array, r: Array) -> tuple[Array, Array]:
        return _dot(k, d, dr, c, r)

    made = recurrent(a, len(d), cut, start, e, step)
    return made.flat().where(flat, made) if flat.any() else made


def _over(value: Array, err: Array, k: int) -> tuple[Array, Array]:
    """(value / k, its bound)."""
    made = value / k
    back, lost = two_product(made, np.float64(k))
    return made, (err + np.abs((value - back) - lost)) / k


def _dot(k: int, d: Array, dr: Array, c: Array, r: Array) -> tuple[Array, Array]:
    """(sum over j of j*d[j]*c[k - j], its bound)."""
    total, err = np.zeros(c.shape[1:]), np.zeros(c.shape[1:])
    for j in range(1, min(k, len(d) - 1) + 1):
        value, lost = two_product(j * d[j], c[k - j])
        total, rest = two_sum(total, value)
        err += (
            np.abs(lost)
            + np.abs(rest)
            + j * (np.abs(d[j]) * r[k - j] + dr[j] * (np.abs(c[k - j]) + r[k - j]))
        )
    return total, err


def recurrent(
    a: Series, given: int, cut: Array, start: Array, bound: Array,
    step: Callable[[int, Array, Array], tuple[Array, Array]],
) -> Series:  # fmt: skip
    """A series whose kth coefficient is step(k, those before, their bounds) / k."""
    size = a.run.terms * a.q if given > 1 else 1
    c, r = np.zeros((size, *a.shape)), np.zeros((size, *a.shape))
    c[0], r[0] = start, bound
    for k in range(1, size):
        value, err = step(k, c, r)
        c[k], r[k] = _over(value, err, k)
    return ended(a, c, r, cut, size, given)


def ended(a: Series, c: Array, r: Array, cut: Array, size: int, given: int = 2) -> Series:
    """Coefficients from t**0 on as a series that is known as far as its operand."""
    cut = np.broadcast_to(cut, a.shape)
    if given > 1:
        cut = np.where(is_still(a), cut, np.minimum(cut, size))
    c, r, cut, over = in_range(c, r, cut)
    return Series(a.run, c, r, 0, cut, a.q, (a.wild & (cut == a.cut)) | over)


def in_range(c: Array, r: Array, cut: Array) -> tuple[Array, Array, Array, Array]:
    """Coefficients from t**0 on up to where they overflow, with the cut, and where that is so."""
    bad = ~(np.isfinite(c) & np.isfinite(r))
    if not bad.any():
        return c, r, cut, np.zeros(c.shape[1:], bool)
    first = bad.argmax(0)
    over = bad.any(0) & (first > 0)
    beyond = over & (np.arange(len(c)).reshape(-1, *[1] * (c.ndim - 1)) >= first)
    return (
        np.where(beyond, 0.0, c),
        np.where(beyond, 0.0, r),
        np.where(over, np.minimum(cut, first), cut),
        over,
    )


def is_still(a: Series) -> Array:
    """The elements that are numbers, along their direction."""
    one = a.valuation() == 0
    if len(a.c) > 1 or a.low:
        at = -a.low
        rest = [k for k in range(len(a.c)) if k != at]
        one = ((a.c[rest] == 0) & (a.r[rest] == 0)).all(0)
    else:
        one = np.ones(a.shape, bool)
    return one & (a.cut >= EXACT)


def integrated(a: Series, start: Array, bound: Array, rate: Series) -> Series:
    """f(a) from f at t = 0 and the slope as a series: f(a0) + the integral of rate(a)*a'."""
    d, dr, cut = a.dense()
    if len(d) == 1:
        return Series(a.run, start[None] + 0 * d[:1], bound[None] + 0 * d[:1], 0, cut, a.q, a.wild)
    slope = derivative(a, d, dr, cut)
    made = rate * slope
    y, yr, _ = made.dense()
    size = a.run.terms * a.q
    c, r = np.zeros((size, *a.shape)), np.zeros((size, *a.shape))
    c[0], r[0] = start, bound
    keep = min(len(y), size - 1)
    k = np.arange(1, keep + 1).reshape(-1, *[1] * len(a.shape))
    c[1 : keep + 1] = y[:keep] / k
    back, lost = two_product(c[1 : keep + 1], k.astype(np.float64))
    r[1 : keep + 1] = (yr[:keep] + np.abs((y[:keep] - back) - lost)) / k
    bad = np.isnan(y).any(0)
    c = np.where(bad, np.nan, c) if bad.any() else c
    ends = np.where(made.cut >= EXACT, EXACT, made.cut + 1)
    ends = np.minimum(np.minimum(cut, ends), size)
    still = is_still(a)
    return Series(a.run, c, r, 0, np.where(still, EXACT, ends), a.q, (a.wild | made.wild) & ~still)


def derivative(a: Series, d: Array, dr: Array, cut: Array) -> Series:
    """a' by s, of coefficients from t**0 on."""
    k = np.arange(1, len(d)).reshape(-1, *[1] * len(a.shape))
    ends = np.where(cut >= EXACT, EXACT, cut - 1)
    return Series(a.run, d[1:] * k, dr[1:] * k, 0, ends, a.q, a.wild)


def log(a: Series) -> Series:
    """log(a); of t it holds log(t), which has no value, but t times it has one."""
    singular(a)
    lead, bound = a.leading()
    v = a.valuation()
    unsure = (np.abs(lead) <= SURE * bound) & (bound > 0)
    a.run.doubt(unsure)
    ok = (lead > 0) & ~unsure
    a.run.leave((lead <= 0) & ~unsure & ((lead < 0) | (a.cut >= EXACT)))
    a.run.want((lead == 0) & (a.cut < EXACT) & ~unsure & ~a.wild)
    at = (v == 0) & ok
    d, dr, cut = a.dense()
    base = np.where(at, d[0], 1.0)

    def step(k: int, c: Array, r: Array) -> tuple[Array, Array]:
        # a * y' = a': k*y[k]*a[0] = k*a[k] - sum of j*y[j]*a[k - j]
        total = k * (d[k] if k < len(d) else np.zeros(a.shape))
        err = k * (dr[k] if k < len(d) else np.zeros(a.shape))
        for j in range(max(1, k - len(d) + 1), k):
            value, lost = two_product(j * c[j], d[k - j])
            total, rest = two_sum(total, -value)
            err = (
                err
                + np.abs(lost)
                + np.abs(rest)
                + j * (np.abs(c[j]) * dr[k - j] + r[j] * np.abs(d[k - j]))
            )
        value = total / base
        back, lost = two_product(value, base)
        return value, (err + np.abs((total - back) - lost) + np.abs(value) * dr[0]) / base

    with np.errstate(all="ignore"):
        start = np.log(base)
        made = recurrent(a, len(d), cut, start, EPS * np.abs(start) + dr[0] / base, step)
    c = np.where(at, made.c, np.where(ok, 0.0, np.nan))
    r = np.where(at, made.r, 0.0)
    cut = np.where(at, made.cut, np.where(ok, 0, EXACT))
    return Series(a.run, c, r, made.low, cut, a.q, np.where(at, made.wild, ok))


def raised(a: Series, y: Series) -> Series:
    """a**y: with a = t**v u it is t**(v y0) exp(y log u) t**(v (y - y0)); the last is 1 + O(t**w log t)."""
    a, y = paired(a, y)
    shape = np.broadcast_shapes(a.shape, y.shape)
    a, y = expanded(a, shape), expanded(y, shape)
    d, dr, _ = y.dense()
    moving = len(d) > 1 or (y.cut < EXACT).any()
    exponents = np.unique(d[0])
    made: Series | None = None
    for p in exponents[:64]:
        if np.isnan(p):
            continue
        mask = d[0] == p
        part = power(a, float(p))
        made = part if made is None else part.where(mask, made)
    if made is None:
        return a.flat(np.nan)
    made = made.where(~np.isnan(d[0]), a.flat(np.nan))
    rough = dr[0].any()
    if not moving and not rough:
        return made
    dy = y - d[0]
    u, ur, v = a.aligned()
    unit = Series(a.run, u, ur, 0, np.where(a.cut >= EXACT, EXACT, a.cut - v), a.q, a.wild)
    lead, bound = a.leading()
    zero = (lead == 0) & (bound == 0)
    # 0**y is 0 where y > 0: the zero kills the logarithm
    positive = (d[0] > 0) | ((d[0] == 0) & (dy.sign() > 0)) if zero.any() else np.zeros(shape, bool)
    smooth = exp(dy * log(unit.where(~zero, a.flat(1.0))))
    out = made * smooth
    w = dy.valuation()
    loses = (v != 0) & ~zero & (w < EXACT)
    if loses.any():
        factor = Series(
            a.run,
            np.ones((1, *shape)),
            None,
            0,
            np.where(loses, np.minimum(w, EXACT), EXACT),
            dy.q,
            loses,
        )
        out = out * factor
    if zero.any():
        out = a.flat(0.0).where(zero & positive, a.flat(np.nan).where(zero, out))
    still = dy.valuation() >= EXACT  # along these directions the exponent is a number
    return made.where(still, out) if still.any() else out


def sincos(a: Series) -> tuple[Series, Series]:
    """(sin(a), cos(a))."""

    def start(d: Array, dr: Array) -> tuple[Array, Array, Array, Array]:
        s, c, exact = np.sin(d), np.cos(d), d == 0
        sr = np.where(exact, 0.0, EPS * np.abs(s)) + dr
        return s, c, sr, np.where(exact, 0.0, EPS * np.abs(c)) + dr * (np.abs(s) + dr)

    return _each_others_slopes(a, start, -1)


def sinhcosh(a: Series) -> tuple[Series, Series]:
    """(sinh(a), cosh(a))."""

    def start(d: Array, dr: Array) -> tuple[Array, Array, Array, Array]:
        s, c, exact = np.sinh(d), np.cosh(d), d == 0
        sr = np.where(exact, 0.0, 2 * EPS * np.abs(s)) + dr * c
        return s, c, sr, np.where(exact, 0.0, 2 * EPS * np.abs(c)) + dr * np.abs(s)

    return _each_others_slopes(a, start, 1)


def _each_others_slopes(
    a: Series, start: Callable[[Array, Array], tuple[Array, ...]], sign: int
) -> tuple[Series, Series]:
    """(s(a), c(a)) of functions with s' = c and c' = sign*s.

    start: (s, c) of the constant term, and their errors, from it and its error.
    """
    d, dr, cut = a.dense()
    size = a.run.terms * a.q if len(d) > 1 else 1
    s, c, sr, cr = np.zeros((4, size, *a.shape))
    s[0], c[0], sr[0], cr[0] = start(d[0], dr[0])
    for k in range(1, size):
        one, e1 = _dot(k, d, dr, c, cr)
        two, e2 = _dot(k, d, dr, s, sr)
        s[k], sr[k] = _over(one, e1, k)
        c[k], cr[k] = _over(sign * two, e2, k)
    return tuple(ended(a, x, xr, cut, size, len(d)) for x, xr in ((s, sr), (c, cr)))  # type: ignore[return-value]


def composed(
    a: Series, coefficients: Sequence[Array], bounds: Sequence[Array] | None = None
) -> Series:
    """f(a) from the Taylor coefficients of f at a's value at t = 0, by Horner's rule."""
    d, dr, cut = a.dense()
    h = Series(a.run, d, dr, 0, cut, a.q, a.wild) - d[0]
    rs = bounds if bounds is not None else [4 * EPS * np.abs(f) for f in coefficients]
    terms = [Series(a.run, f[None], r[None]) for f, r in zip(coefficients, rs, strict=True)]
    made = terms[-1]
    for k in range(len(coefficients) - 2, -1, -1):
        made = made * h + terms[k]
    size = a.run.terms * a.q
    if len(d) > 1:
        ends = np.where(is_still(a), EXACT, np.minimum(made.cut, size))
        made = Series(a.run, made.c, made.r, made.low, ends, a.q, made.wild)
    bad = np.isnan(d).any(0)
    return a.flat(np.nan).where(bad, made) if bad.any() else made


def coefficient(a: Series, k: int) -> tuple[Array, Array, Array, Array]:
    """(the kth derivative at t = 0+, its bound, where there is no finite one, where it is undecided)."""
    at, shape = k * a.q, a.shape
    powers = np.arange(a.low, a.low + len(a.c)).reshape(-1, *[1] * len(shape))
    broken = (powers < 0) | ((powers < at) & (powers % a.q != 0))
    sure = np.abs(a.c) > SURE * a.r
    none = ((a.c != 0) & broken & sure).any(0)
    doubt = (((a.c != 0) | (a.r != 0)) & broken & ~sure).any(0)
    late = at >= a.cut
    none = none | (late & a.wild)
    bad = ~a.known()
    a.run.want(late & ~a.wild & ~bad)
    c, r = a.plane(at)
    value = np.where(none | late | bad, np.nan, c * math.factorial(k))
    return value, r * math.factorial(k), none & ~bad, (doubt | (late & ~a.wild)) & ~none & ~bad


__all__ = ["Run", "Series"]
