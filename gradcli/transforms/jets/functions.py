"""How functions act on power series: the names that an operator's `jet` fact calls.

Numbers are constants. Shapes have the directions in front, which no operator sees: `axes` counts its dims.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.operators.primitives import lapack
from gradcli.transforms.jets.eigenvalues import eigh, svd
from gradcli.transforms.jets.series import (
    EPS,
    EXACT,
    Series,
    _dot,
    as_series,
    composed,
    divided,
    ended,
    exp,
    expanded,
    integrated,
    log,
    paired,
    power,
    raised,
    recurrent,
    reshaped,
    sincos,
    sinhcosh,
    two_product,
    two_sum,
)

Array = Any


def axes(a: Series, dim: Any) -> tuple[int, ...]:
    """An operator's dims as dimensions of a series; None or () for all of them."""
    ndim = len(a.shape) - 1
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(1, ndim + 1))
    dims = dim if isinstance(dim, (tuple, list)) else (dim,)
    return tuple(d % ndim + 1 for d in dims) if ndim else ()


def planes(a: Series, function: Any) -> Series:
    """A movement of elements, of coefficients and bounds alike."""
    made = object.__new__(Series)
    made.run, made.low, made.q, made.definite = a.run, a.low, a.q, False
    made.c = np.stack([function(p) for p in a.c])
    made.r = np.stack([function(p) for p in a.r])
    made.cut, made.wild = function(a.cut), function(a.wild)
    return made


def granule(x: Array) -> float:
    """The largest power of two that divides all of the numbers; 0 of zeros, NaN where there is a NaN."""
    some = x[x != 0]
    if not some.size:
        return 0.0
    if not np.isfinite(some).all():
        return float("nan")
    mantissa, exponent = np.frexp(some)
    whole = (np.abs(mantissa) * 2.0**53).astype(np.int64)
    return float(np.ldexp(1.0, int((exponent - 53 + np.log2(whole & -whole).astype(int)).min())))


def total(a: Series, dim: Any = None, keepdim: bool = False) -> Series:
    """The sum along dims."""
    over = axes(a, dim)
    if not over:
        return a
    size = int(np.prod([a.shape[i] for i in over]))
    c = a.c.sum(tuple(i + 1 for i in over), keepdims=keepdim)
    r = a.r.sum(tuple(i + 1 for i in over), keepdims=keepdim)
    sizes = np.abs(a.c).sum(tuple(i + 1 for i in over), keepdims=keepdim)
    for k in range(len(c)):  # exact, where all numbers are small multiples of one power of two
        step = granule(a.c[k])
        if not (step == 0 or (sizes[k] < step * 2.0**53).all()):
            r[k] = r[k] + size * EPS * sizes[k]
    cut = a.cut.min(over, keepdims=keepdim) if size else np.full(c.shape[1:], EXACT)
    low = a.cut == np.expand_dims(a.cut.min(over), over) if size else a.wild
    wild = (a.wild & low).any(over, keepdims=keepdim)
    return Series(a.run, c, r, a.low, cut, a.q, wild)


def mean(a: Series, dim: Any = None, keepdim: bool = False) -> Series:
    """The mean along dims."""
    count = int(np.prod([a.shape[i] for i in axes(a, dim)]))
    return total(a, dim, keepdim) / float(count)


def _both(a: Any, b: Any) -> tuple[Series, Series]:
    """Two operands, one of which may be a number, as series."""
    run = a.run if isinstance(a, Series) else b.run
    return as_series(run, a), as_series(run, b)


def is_same(a: Series, b: Series) -> Array:
    """Where two series are the same number of the same errors, as a maximum and its operand are."""
    if a.low != b.low or a.c.shape[0] != b.c.shape[0]:
        return np.zeros(np.broadcast_shapes(a.shape, b.shape), bool)
    same = ((a.c == b.c) & (a.r == b.r)).all(0)
    return same & (a.cut == b.cut)


def order(a: Any, b: Any, run: Any = None) -> Array:
    """The sign of a - b for small t > 0."""
    run = a.run if isinstance(a, Series) else b.run
    a, b = paired(as_series(run, a), b)
    shape = np.broadcast_shapes(a.shape, b.shape)
    a, b = expanded(a, shape), expanded(b, shape)
    same = is_same(a, b)
    if same.all():
        return np.zeros(shape)
    gap = a - b
    if same.any():
        gap = gap.flat().where(same, gap)
    return gap.sign()


def sign(a: Series) -> Array:
    return a.sign()


def constant(a: Series, array: Array) -> Series:
    return Series(a.run, np.asarray(array, np.float64)[None])


def absolute(a: Series) -> Series:
    made = (-a).where(a.sign() < 0, a)
    unknown = np.isnan(a.sign())
    return a.flat(np.nan).where(unknown, made) if unknown.any() else made


def larger(a: Any, b: Any, least: bool = False) -> Series:
    """The maximum of two; the minimum, if `least`."""
    way = order(a, b)
    x, y = paired(*_both(a, b))
    made = x.where(way <= 0 if least else way >= 0, y)
    unknown = np.isnan(way)
    return made.flat(np.nan).where(unknown, made) if unknown.any() else made


def extreme(a: Series, dim: Any = None, keepdim: bool = False, least: bool = False) -> Series:
    """The largest along dims; the smallest, if `least`."""
    over = axes(a, dim)
    shape = a.shape
    kept = [i for i in range(len(shape)) if i not in over]
    count = int(np.prod([shape[i] for i in over])) if over else 1
    flat = planes(
        a, lambda p: np.transpose(p, (*kept, *over)).reshape(*(shape[i] for i in kept), count)
    )
    parts = [planes(flat, lambda p, k=k: p[..., k]) for k in range(count)]
    while len(parts) > 1:
        rest = parts[-1:] if len(parts) % 2 else []
        parts = [larger(x, y, least) for x, y in zip(parts[::2], parts[1::2], strict=False)] + rest
    made = parts[0]
    if keepdim:
        made = reshaped(made, tuple(1 if i in over else n for i, n in enumerate(shape)))
    return made


def reciprocal(a: Series) -> Series:
    return divided(a.flat(1.0), a)


def sin(a: Series) -> Series:
    return sincos(a)[0]


def cos(a: Series) -> Series:
    return sincos(a)[1]


def tan(a: Series) -> Series:
    s, c = sincos(a)
    return s / c


def sinh(a: Series) -> Series:
    return sinhcosh(a)[0]


def cosh(a: Series) -> Series:
    return sinhcosh(a)[1]


def expm1(a: Series) -> Series:
    made = exp(a)
    d, dr, _ = a.dense()
    start = np.expm1(d[0])
    return _started(
        made, start, np.where(d[0] == 0, 0.0, 2 * EPS * np.abs(start)) + dr[0] * np.exp(d[0])
    )


def _started(a: Series, start: Array, bound: Array) -> Series:
    """With another coefficient of t**0."""
    c, r, _ = a.dense()
    c, r = c.copy(), r.copy()
    start = np.where(np.isnan(c[0]), np.nan, start)
    c[0], r[0] = start, bound
    return Series(a.run, c, r, 0, a.cut, a.q, a.wild)


def log1p(a: Series) -> Series:
    made = log(a + 1.0)
    d, dr, _ = a.dense()
    at = a.cut > 0
    with np.errstate(all="ignore"):
        start = np.log1p(d[0])
        bound = np.where(d[0] == 0, 0.0, 2 * EPS * np.abs(start)) + dr[0] / np.abs(1 + d[0])
    regular = at & (made.cut > 0)
    return _started(made, start, bound).where(regular, made) if regular.any() else made


def logaddexp(a: Any, b: Any) -> Series:
    """log(exp(a) + exp(b))."""
    x, y = _both(a, b)
    return y + softplus(x - y)


def sigmoid(a: Series) -> Series:
    return _logistic(a)[0]


def _logistic(a: Series) -> tuple[Series, Series]:
    """(sigmoid(a), its slope by a), neither of which loses its tail: s' = s*u*a', u' = -s*u*a', u = 1 - s."""
    d, dr, cut = a.dense()
    size = a.run.terms * a.q if len(d) > 1 else 1
    shape = (size, *a.shape)
    s, u, w = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    sr, ur, wr = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    with np.errstate(all="ignore"):
        small = np.exp(-np.abs(d[0]))
        one, other = 1 / (1 + small), small / (1 + small)
    s[0], u[0] = np.where(d[0] >= 0, one, other), np.where(d[0] >= 0, other, one)
    sr[0], ur[0] = s[0] * (4 * EPS + dr[0]), u[0] * (4 * EPS + dr[0])
    for k in range(size):
        if k:
            # sums of products of the same signs are accurate; the slope is s*u
            rate = np.zeros(a.shape)
            err = np.zeros(a.shape)
            for j in range(1, min(k, len(d) - 1) + 1):
                rate += j * d[j] * w[k - j]
                err += j * (
                    np.abs(d[j]) * (wr[k - j] + 2 * EPS * np.abs(w[k - j]))
                    + dr[j] * np.abs(w[k - j])
                )
            s[k], u[k] = rate / k, -rate / k
            sr[k] = ur[k] = err / k
        w[k] = sum(s[i] * u[k - i] for i in range(k + 1))
        wr[k] = sum(
            sr[i] * np.abs(u[k - i]) + np.abs(s[i]) * ur[k - i] + 2 * EPS * np.abs(s[i] * u[k - i])
            for i in range(k + 1)
        )
    return ended(a, s, sr, cut, size, len(d)), ended(a, w, wr, cut, size, len(d))


def softplus(a: Series, beta: float = 1.0) -> Series:
    """log(1 + exp(beta*a))/beta."""
    scaled = a if beta == 1 else a * beta
    rate = sigmoid(scaled)
    d, dr, _ = scaled.dense()
    with np.errstate(all="ignore"):
        start = np.maximum(d[0], 0) + np.log1p(np.exp(-np.abs(d[0])))
    made = integrated(scaled, start, 2 * EPS * np.abs(start) + dr[0], rate)
    return made if beta == 1 else made / beta


def logistic_slope(a: Series) -> Series:
    """sigmoid(a)*(1 - sigmoid(a))."""
    return _logistic(a)[1]


def tanh(a: Series) -> Series:
    """tanh(a) = 2*sigmoid(2*a) - 1, with a tail of its own at t = 0."""
    made = sigmoid(a * 2.0) * 2.0
    d, dr, _ = a.dense()
    start = np.tanh(d[0])
    slope = 1 / np.cosh(np.clip(d[0], -300, 300)) ** 2
    out = _started(made, start, np.where(d[0] == 0, 0.0, 2 * EPS * np.abs(start)) + dr[0] * slope)
    if len(made.c) == 1 and len(d) == 1:
        return Series(a.run, start[None], out.r[:1], 0, a.cut, a.q, a.wild)
    near = np.abs(d[0]) < 1
    if near.all():
        return _tanh_near(a, start)
    # by sech(a)**2, which is accurate in the tail
    rate = logistic_slope(a * 2.0) * 4.0
    far = integrated(a, start, out.r[0] if out.low == 0 and len(out.r) else 0 * start, rate)
    return _tanh_near(a, start).where(near, far) if near.any() else far


def _tanh_near(a: Series, start: Array) -> Series:
    """tanh(a) by y' = (1 - y**2)*a', which keeps the exact numbers at 0."""
    d, dr, cut = a.dense()
    size = a.run.terms * a.q if len(d) > 1 else 1
    rate = np.zeros((size, *a.shape))
    noise = np.zeros_like(rate)

    def step(k: int, c: Array, r: Array) -> tuple[Array, Array]:
        # rate[k - 1] is the coefficient of 1 - y**2
        m = k - 1
        total, err = np.where(m == 0, 1.0, 0.0) + np.zeros(a.shape), np.zeros(a.shape)
        for i in range(m + 1):
            value, lost = two_product(c[i], c[m - i])
            total, rest = two_sum(total, -value)
            err += np.abs(lost) + np.abs(rest) + r[i] * np.abs(c[m - i]) + np.abs(c[i]) * r[m - i]
        rate[m], noise[m] = total, err
        return _dot(k, d, dr, rate, noise)

    bound = np.where(d[0] == 0, 0.0, 2 * EPS * np.abs(start)) + dr[0]
    return recurrent(a, len(d), cut, start, bound, step)


def scaled(a: Any, factor: Any) -> Any:
    """a*factor, a number; a itself for 1."""
    return a if factor == 1 else a * float(factor)


def norm(a: Series, dim: Any = None, keepdim: bool = False) -> Series:
    """The root of the sum of squares; its leading form is zero in no direction in which it moves."""
    most = np.abs(a.c[np.isfinite(a.c)])
    most = most[most > 0]
    if most.size and not 1e-100 < most.min() <= most.max() < 1e100:  # the squares would be lost
        scale = float(2.0 ** np.floor(np.log2(most.max())))
        part = a / scale
        return root_of_squares(total(part * part, dim, keepdim)) * scale
    return root_of_squares(total(a * a, dim, keepdim))


def root_of_squares(squares: Series) -> Series:
    """The root of a sum of squares."""
    squares.definite = True
    made = power(squares, 0.5)
    made.definite = True
    return made


def vector_norm(a: Series, ord: Any = 2, dim: Any = None, keepdim: bool = False) -> Series:
    """A vector norm of any order."""
    ord = float(ord)
    if ord == 2:
        return norm(a, dim, keepdim)
    size = absolute(a)
    if ord in (np.inf, -np.inf):
        return extreme(size, dim, keepdim, ord < 0)
    if ord == 1:
        return total(size, dim, keepdim)
    if ord == 0:
        raise NotImplementedError("a count has no series")
    return power(total(power(size, ord), dim, keepdim), 1 / ord)


def hypot(a: Any, b: Any) -> Series:
    x, y = _both(a, b)
    return root_of_squares(x * x + y * y)


def variance(a: Series, dim: Any = None, correction: Any = None, keepdim: bool = False) -> Series:
    gap = a - mean(a, dim, True)
    count = int(np.prod([a.shape[i] for i in axes(a, dim)]))
    return total(gap * gap, dim, keepdim) / float(count - (1 if correction is None else correction))


def deviation(a: Series, dim: Any = None, correction: Any = None, keepdim: bool = False) -> Series:
    return root_of_squares(variance(a, dim, correction, keepdim))


def product(a: Series, dim: Any = None, keepdim: bool = False) -> Series:
    """The product along dims, in pairs."""
    over, shape = axes(a, dim), a.shape
    kept = [i for i in range(len(shape)) if i not in over]
    count = int(np.prod([shape[i] for i in over])) if over else 1
    if not count:
        return Series(a.run, np.ones((1, *(shape[i] for i in kept))))
    flat = planes(
        a, lambda p: np.transpose(p, (*kept, *over)).reshape(*(shape[i] for i in kept), count)
    )
    parts = [planes(flat, lambda p, k=k: p[..., k]) for k in range(count)]
    while len(parts) > 1:
        rest = parts[-1:] if len(parts) % 2 else []
        parts = [x * y for x, y in zip(parts[::2], parts[1::2], strict=False)] + rest
    if keepdim:
        return reshaped(parts[0], tuple(1 if i in over else n for i, n in enumerate(shape)))
    return parts[0]


def stacked(parts: Sequence[Series], axis: int) -> Series:
    """Series of one shape along a new dimension."""
    run = parts[0].run
    q = int(np.lcm.reduce([p.q for p in parts]))
    parts = [p.on(q) for p in parts]
    shape = np.broadcast_shapes(*[p.shape for p in parts])
    parts = [expanded(p, shape) for p in parts]
    low = min(p.low for p in parts)
    size = max(p.low + len(p.c) for p in parts) - low

    def rows(name: str) -> Array:
        made = np.zeros((size, len(parts), *shape))
        for i, p in enumerate(parts):
            made[p.low - low : p.low - low + len(p.c), i] = getattr(p, name)
        return np.moveaxis(made, 1, axis + 1)

    cut = np.stack([np.broadcast_to(p.cut, shape) for p in parts], axis)
    wild = np.stack([np.broadcast_to(p.wild, shape) for p in parts], axis)
    return Series(run, rows("c"), rows("r"), low, cut, q, wild)


def running(a: Series, dim: int, step: Any) -> Series:
    """The results of step(the last one, the next element) along a dim."""
    (axis,) = axes(a, dim) or (0,)
    if not axis:
        return a
    parts = [planes(a, lambda p, k=k: p.take(k, axis)) for k in range(a.shape[axis])]
    made = parts[:1]
    for part in parts[1:]:
        made.append(step(made[-1], part))
    return stacked(made, axis) if made else a


def cumprod(a: Series, dim: int) -> Series:
    return running(a, dim, lambda x, y: x * y)


def logcumsumexp(a: Series, dim: int) -> Series:
    return running(a, dim, logaddexp)


def _shares(a: Series, dim: Any) -> tuple[Series, Series, Series]:
    """(softmax, log_softmax, logsumexp with its dims), none of which loses its tail.

    p' = p*u', u' = x'[k] - sum of p[j]*x'[j] = sum over j of p[j]*(x'[k] - x'[j]): its own term is exactly 0.
    """
    over = axes(a, dim)
    shape = a.shape
    if not over:
        return a.flat(1.0), a.flat(0.0), a
    kept = [i for i in range(len(shape)) if i not in over]
    count = int(np.prod([shape[i] for i in over]))
    way = (*kept, *over)

    def put(p: Array) -> Array:
        return np.transpose(p, way).reshape(*(shape[i] for i in kept), count)

    back_shape = tuple(shape[i] for i in way)
    inverse = np.argsort(way)

    def back(p: Array) -> Array:
        return np.transpose(p.reshape(back_shape), inverse)

    flat = planes(a, put)
    d, dr, cut = flat.dense()
    cut = np.broadcast_to(cut.min(-1, keepdims=True), cut.shape)
    size = a.run.terms * a.q if len(d) > 1 else 1
    p, u = np.zeros((size, *flat.shape)), np.zeros((size, *flat.shape))
    top = d[0].max(-1, keepdims=True)
    e = np.exp(d[0] - top)
    sums = e.sum(-1, keepdims=True)
    p[0] = e / sums
    first = e.argmax(-1)[..., None]
    rest = np.where(np.arange(count) == first, 0.0, e).sum(-1, keepdims=True)
    lse = top + np.log1p(rest)
    u[0] = np.where(np.arange(count) == first, -np.log1p(rest), d[0] - lse)
    y = np.zeros((size, *lse.shape))
    y[0] = lse
    shift = [d[k][..., :, None] - d[k][..., None, :] for k in range(len(d))]
    for m in range(1, size):
        u_m = np.zeros(flat.shape)
        y_m = np.zeros(lse.shape)
        for i in range(1, min(m, len(d) - 1) + 1):
            u_m += i * (shift[i] * p[m - i][..., None, :]).sum(-1)
            y_m += i * (d[i] * p[m - i]).sum(-1, keepdims=True)
        u[m], y[m] = u_m / m, y_m / m
        p[m] = sum(j * u[j] * p[m - j] for j in range(1, m + 1)) / m
    bad = np.isnan(d).any((0, -1))[..., None]
    made = []
    for z in (p, u, y):
        z = np.where(bad, np.nan, z)
        ends = cut[..., : z.shape[-1]]
        wild = np.broadcast_to(flat.wild.any(-1, keepdims=True), ends.shape)
        r = 8 * EPS * np.abs(z) + np.abs(z) * dr.sum(0).max(-1, keepdims=True)
        one = Series(a.run, z, r, 0, np.minimum(ends, size) if len(d) > 1 else ends, a.q, wild)
        made.append(one)
    p_, u_, y_ = made
    shape_y = tuple(1 if i in over else n for i, n in enumerate(shape))
    return planes(p_, back), planes(u_, back), reshaped(y_, shape_y)


def softmax(a: Series, dim: Any) -> Series:
    return _shares(a, dim)[0]


def log_softmax(a: Series, dim: Any) -> Series:
    return _shares(a, dim)[1]


def logsumexp(a: Series, dim: Any, keepdim: bool = False) -> Series:
    found = _shares(a, dim)[2]
    if keepdim:
        return found
    over = axes(a, dim)
    return reshaped(found, tuple(n for i, n in enumerate(found.shape) if i not in over))


def sinc(a: Series) -> Series:
    """sin(pi*a)/(pi*a), by its power series near 0."""
    d, _, _ = a.dense()
    near = np.abs(d[0]) < 1
    far = a * np.pi
    out = None
    if not near.all():
        shifted = far.flat(1.0).where(near, far)
        out = sin(shifted) / shifted
    if near.any():
        terms = 40
        c = np.zeros(terms)
        value = 1.0
        for m in range(terms // 2):
            c[2 * m] = value
            value *= -(np.pi**2) / ((2 * m + 2) * (2 * m + 3))
        local = power_series(a, c, near)
        out = local if out is None else local.where(near, out)
    assert out is not None
    return out


def power_series(a: Series, c: Array, mask: Array | None = None) -> Series:
    """f(a) from the coefficients of f at 0, expanded anew at a's value."""
    d, dr, _ = a.dense()
    x = d[0] if mask is None else np.where(mask, d[0], 0.0)
    size = a.run.terms * a.q if len(d) > 1 else 1
    found, bounds = [], []
    n = np.arange(len(c), dtype=float)
    weights = c.copy()
    for k in range(size):
        value, most = np.zeros(x.shape), np.zeros(x.shape)
        for m in range(len(c) - 1, k - 1, -1):
            value = value * x + weights[m]
            most = most * np.abs(x) + abs(weights[m])
        found.append(value)
        exact = (x == 0) & (weights[k] == np.round(weights[k] * 2**20) / 2**20)
        bounds.append(np.where(exact, 0.0, 4 * EPS * most))
        weights = np.where(n > k, weights * (n - k) / (k + 1), 0.0)
    bounds[0] = bounds[0] + (np.abs(found[1]) * dr[0] if size > 1 else dr[0])
    return composed(a, found, bounds)


def bessel(a: Series, order: int, modified: bool, pair: Any, regular: bool = True) -> Series:
    """A Bessel function of order 0 or 1, by its equation x**2*y'' + x*y' = (s*x**2 + order**2)*y.

    modified: whether s is 1, and not -1. pair: (those of order 0 and 1) on arrays. regular: whether it is one
    of the first kind, with a power series at 0.
    """
    d, dr, _ = a.dense()
    sign_ = 1.0 if modified else -1.0
    close = np.abs(d[0]) <= (2.0 if regular else -1.0)
    size = max(a.run.terms * a.q if len(d) > 1 else 1, 2)
    local = None
    if close.any():  # the sum of s**m * (x/2)**(2m + order) / (m! * (m + order)!)
        c = np.zeros(max(40, size + 20))
        value = 0.5**order
        for m in range(order, len(c), 2):
            c[m] = value
            k = (m - order) // 2 + 1
            value *= sign_ / (4.0 * k * (k + order))
        local = power_series(a, c, close)
        if close.all():
            return local
    x = np.where(close, 3.0, d[0])
    zero, one = pair(x)
    scale = np.where(np.abs(zero) > 1e200, 1e200, 1.0)  # so that x*x times them is a number
    zero, one = zero / scale, one / scale
    falls = -1.0 if not modified or not regular else 1.0
    rises = -1.0 if modified and not regular else 1.0
    found = [zero, falls * one] if order == 0 else [one, rises * zero - one / x]
    for k in range(size - 2):
        before = found[k - 1] if k else 0.0
        earlier = found[k - 2] if k > 1 else 0.0
        total_ = x * (k + 1) * (2 * k + 1) * found[k + 1] - 2 * sign_ * x * before - sign_ * earlier
        total_ = total_ + (k * k - order * order - sign_ * x * x) * found[k]
        found.append(-total_ / x / x / ((k + 2) * (k + 1)))
    found = [f * scale for f in found]
    bounds = [16 * EPS * np.abs(f) for f in found]
    bounds[0] = bounds[0] + np.abs(found[1]) * dr[0]
    far = composed(a, found, bounds)
    return far if local is None else local.where(close, far)


def integral(a: Series, value: Any, slope: Series) -> Series:
    """f(a) from f on arrays, and its slope by a as a series."""
    d, dr, _ = a.dense()
    start = np.asarray(value(d[0]))
    first, _ = slope.plane(0)
    return integrated(a, start, 4 * EPS * np.abs(start) + np.abs(first) * dr[0], slope)


def taylor(a: Series, coefficient: Any) -> Series:
    """f(a) from coefficient(x, k), f's kth derivative divided by k!, on arrays."""
    d, dr, _ = a.dense()
    found = [
        np.asarray(coefficient(d[0], k)) for k in range(a.run.terms * a.q if len(d) > 1 else 2)
    ]
    bounds = [16 * EPS * np.abs(f) for f in found]
    bounds[0] = bounds[0] + np.abs(found[1]) * dr[0]
    return composed(a, found, bounds)


def whole(a: Series, function: Any) -> Series:
    """A function that is constant between jumps (floor, sign and their like), for small t > 0."""
    c, r, _ = a.dense()
    moved = (a - c[0]).sign()
    value = function(c[0])
    step = np.where(moved == 0, 0.0, moved) * np.maximum(np.abs(c[0]), 1.0) * 1e-9
    beside = function(c[0] + step)
    unsure = function(c[0] + 4 * r[0]) != function(c[0] - 4 * r[0])
    a.run.doubt(unsure)
    jump = function(c[0] + 1e-12 * np.maximum(np.abs(c[0]), 1)) != function(
        c[0] - 1e-12 * np.maximum(np.abs(c[0]), 1)
    )
    out = np.where(jump, beside, value)
    return constant(a, np.where(unsure | np.isnan(moved), np.nan, out))


def determinant(a: Series) -> Series:
    """det(a), by Laplace over sets of columns: n * 2**n products, and no division by a rounded zero."""
    n = a.shape[-1]
    if n > 10:
        raise NotImplementedError("a determinant of more than ten rows has too many minors")
    entry = [[planes(a, lambda p, i=i, j=j: p[..., i, j]) for j in range(n)] for i in range(n)]
    minors: dict[int, Series] = {0: as_series(a.run, np.ones(entry[0][0].shape)) if n else a}
    for i in range(n):
        found: dict[int, Series] = {}
        for mask, minor in minors.items():
            for j in range(n):
                if mask >> j & 1:
                    continue
                part = minor * entry[i][j]
                part = -part if (mask >> j).bit_count() % 2 else part
                to = mask | 1 << j
                found[to] = found[to] + part if to in found else part
        minors = found
    return minors[2**n - 1]


def solved(a: Series, b: Series, left: bool = True) -> Series:
    """x with a @ x = b, by elimination with pivots of the least valuation."""
    n = a.shape[-1]
    if not left or len(b.shape) != len(a.shape):
        raise NotImplementedError("only columns are solved for")
    if n > 12:
        raise NotImplementedError("too many rows")
    rows = [[planes(a, lambda p, i=i, j=j: p[..., i, j]) for j in range(n)] for i in range(n)]
    right = [
        [planes(b, lambda p, i=i, j=j: p[..., i, j]) for j in range(b.shape[-1])] for i in range(n)
    ]
    for k in range(n):
        if k < n - 1:  # the pivot, direction by direction, is swapped in
            valuations = np.stack([rows[i][k].valuation() for i in range(k, n)])
            sizes = np.stack([np.abs(rows[i][k].leading()[0]) for i in range(k, n)])
            q = [rows[i][k].q for i in range(k, n)]
            valuations = valuations / np.array(q).reshape(-1, *[1] * (valuations.ndim - 1))
            best = np.lexsort((-sizes.reshape(n - k, -1), valuations.reshape(n - k, -1)), 0)[0]
            best = best.reshape(valuations.shape[1:]) + k
            for i in range(k + 1, n):
                mask = best == i
                if mask.any():
                    for row in (rows, right):
                        for j in range(len(row[k])):
                            x, y = row[k][j], row[i][j]
                            row[k][j], row[i][j] = y.where(mask, x), x.where(mask, y)
        for i in range(k + 1, n):
            factor = rows[i][k] / rows[k][k]
            rows[i] = [
                x if j <= k else x - factor * y
                for j, (x, y) in enumerate(zip(rows[i], rows[k], strict=True))
            ]
            right[i] = [x - factor * y for x, y in zip(right[i], right[k], strict=True)]
    for k in range(n - 1, -1, -1):
        for i in range(k + 1, n):
            right[k] = [x - rows[k][i] * y for x, y in zip(right[k], right[i], strict=True)]
        right[k] = [x / rows[k][k] for x in right[k]]
    return stacked([stacked(row, len(row[0].shape)) for row in right], len(right[0][0].shape))


def inverse(a: Series) -> Series:
    """The inverse of a matrix."""
    n = a.shape[-1]
    return solved(a, as_series(a.run, np.broadcast_to(np.eye(n), (1, *a.shape[1:]))))


def matrix_exp(a: Series) -> Series:
    """exp(A), by that of the block matrix whose upper blocks are the coefficients of A."""
    d, dr, cut = a.dense()
    n = a.shape[-1]
    size = a.run.terms * a.q if len(d) > 1 else 1
    if n * size > 200:
        raise NotImplementedError("a matrix of so many rows")
    whole = np.zeros((*a.shape[:-2], n * size, n * size))
    for i in range(size):
        for j in range(i, min(size, i + len(d))):
            whole[..., i * n : (i + 1) * n, j * n : (j + 1) * n] = d[j - i]
    found = lapack.expm(whole)[..., :n, :]
    c = np.stack([found[..., k * n : (k + 1) * n] for k in range(size)])
    most = np.abs(c).max((0, -1, -2))[..., None, None]
    r = 64 * EPS * n * most + dr.sum(0).max((-1, -2))[..., None, None] * most + 0 * c
    least = np.broadcast_to(cut.min((-1, -2))[..., None, None], a.shape)
    return Series(a.run, c, r, 0, np.minimum(least, size) if len(d) > 1 else least, a.q)


__all__ = [
    "EXACT", "absolute", "axes", "bessel", "composed", "constant", "cos", "cosh", "cumprod",
    "determinant", "deviation", "divided", "eigh", "exp", "expm1", "extreme", "hypot", "inverse",
    "larger", "log", "log1p", "logaddexp", "logcumsumexp", "logsumexp", "matrix_exp", "mean",
    "norm", "order", "planes", "power", "power_series", "product", "raised", "reciprocal", "scaled",
    "sigmoid", "sign", "sin", "sinc", "sinh", "softmax", "softplus", "solved", "svd", "tan", "tanh",
    "taylor", "total", "two_sum", "variance", "vector_norm", "whole",
]  # fmt: skip
