"""Power series through a trace: each call of a primitive, by its `jet` fact or by what else is known of it.

Without a fact a linear primitive is applied to the coefficients, a bilinear one to their convolution, a
comparison is decided for small t > 0, and an elementwise one is the integral of its VJP rule, read over
series. Any other is taken apart into the primitives that its kernel consists of.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from gradcli.engine.core import modes
from gradcli.engine.core.batch_levels import remove_batch_dim
from gradcli.engine.core.batched_arrays import BatchedArray, BatchLevel, batch_of, opened
from gradcli.engine.core.declaration import parameters_of
from gradcli.engine.core.tensor import Scalar, Tensor, wrap
from gradcli.transforms.jets import functions
from gradcli.transforms.jets.series import (
    EPS,
    EXACT,
    Run,
    Series,
    as_series,
    expanded,
    integrated,
    reshaped,
    rounded,
)
from gradcli.transforms.tracing.calls import Call, Value, calls
from gradcli.transforms.tracing.tracer import Tracer, decomposition

Array = Any

DEPTH = 6  # of primitives taken apart within each other


MOST_NUMBERS = 100_000_000  # coefficients of all series together: some seconds


class NoSeries(Exception):
    """An operator has no series: what it says near the point is not known."""


COMPARISONS: dict[Any, Any] = {
    np.equal: lambda s: s == 0,
    np.not_equal: lambda s: s != 0,
    np.greater: lambda s: s > 0,
    np.greater_equal: lambda s: s >= 0,
    np.less: lambda s: s < 0,
    np.less_equal: lambda s: s <= 0,
}


class Pusher:
    """Evaluates values of a trace over series. known: what is known already, by the ids of values."""

    def __init__(self, run: Run, known: dict[int, Any]) -> None:
        self.run, self.known = run, known
        self.depth = self.count = 0

    def push(self, outputs: Sequence[Value]) -> list[Any]:
        """The series of values; arrays, directions first, of integers and truth values."""
        for call in calls(outputs):
            if all(id(o) in self.known for o in call.outputs):
                continue
            with np.errstate(all="ignore"):
                found = self.called(call)
            results = found if isinstance(found, (tuple, list)) else (found,)
            for out, one in zip(call.outputs, results, strict=False):
                self.known[id(out)] = self._shaped(one, out)
                self.count += one.c.size if isinstance(one, Series) else 0
            if self.count > MOST_NUMBERS:
                raise NoSeries("arrays as large as these")
        return [self.read(o) for o in outputs]

    def read(self, value: Any) -> Any:
        """What a value of the trace is; numbers and options as they are."""
        if isinstance(value, (list, tuple)):
            return [self.read(v) for v in value]
        if not isinstance(value, Value):
            return value.value if isinstance(value, Scalar) else value
        found = self.known.get(id(value))
        if found is None:
            if value.call is not None:
                raise NoSeries(value.call.primitive.public_name)
            array = np.asarray(value.value)
            if array.dtype.kind == "c":
                raise NoSeries("complex numbers")
            array = array[None]
            found = self.known[id(value)] = (
                as_series_of(self.run, array) if array.dtype.kind == "f" else array
            )
        return found

    def _shaped(self, found: Any, out: Value) -> Any:
        shape = (found.shape[0], *out.shape)
        if found.shape == shape:
            return found
        if isinstance(found, Series):
            if len(found.shape) < len(shape):
                found = reshaped(
                    found,
                    (found.shape[0], *[1] * (len(shape) - len(found.shape)), *found.shape[1:]),
                )
            return (
                expanded(found, shape) if len(found.shape) == len(shape) else reshaped(found, shape)
            )
        return np.broadcast_to(found, shape)

    # -- one call ----------------------------------------------------------------------------------
    def called(self, call: Call) -> Any:
        """The results of a call."""
        primitive = call.primitive
        args = [
            self.read(a) if k != "option" else a
            for a, k in zip(call.args, primitive.kinds, strict=True)
        ]
        if not any(isinstance(v, Series) for v in flat(args)):
            return self.plain(primitive, args)
        if any(o.value.dtype.kind == "c" for o in call.outputs):
            raise NoSeries("complex numbers")
        if primitive.jet is not None:
            return self.by_fact(primitive, self.aligned(primitive, args, call))
        if primitive.numpy in COMPARISONS or primitive.kernel in COMPARISONS:
            a, b = self.aligned(primitive, args, call)[:2]
            way = functions.order(a, b, self.run)
            return COMPARISONS[primitive.numpy or primitive.kernel](way)
        if all(o.value.dtype.kind == "b" for o in call.outputs):
            return self.truth(primitive, self.aligned(primitive, args, call))
        if primitive.linearity == "linear" or self.is_affine(primitive, args):
            return self.affine(primitive, args)
        if primitive.linearity == "bilinear":
            return self.bilinear(primitive, args)
        if primitive.linearity == "elementwise":
            return self.elementwise(call, self.aligned(primitive, args, call))
        try:
            return self.apart(call)
        except NoSeries:
            if primitive.batching not in ("elementwise", "folded"):
                raise
            return self.elementwise(call, self.aligned(primitive, args, call))

    def by_fact(self, primitive: Any, args: list[Any]) -> Any:
        """By the primitive's `jet`, which gets the parameters that it names."""
        wanted = parameters_of(primitive.jet)[1:]
        try:
            found = primitive.jet(functions, *[args[primitive.position[n]] for n in wanted])
        except NotImplementedError as error:
            raise NoSeries(str(error)) from error
        return found

    def aligned(self, primitive: Any, args: list[Any], call: Call) -> list[Any]:
        """Operands that are broadcast, with dimensions of size 1 behind the directions."""
        if not (
            primitive.broadcasts
            or primitive.linearity == "elementwise"
            or primitive.batching in ("elementwise", "folded")
        ):
            return args
        ndim = call.outputs[0].ndim + 1
        made = list(args)
        for i in primitive.tensors:
            v = args[i]
            if isinstance(v, (Series, np.ndarray)) and len(v.shape) < ndim:
                shape = (v.shape[0], *[1] * (ndim - len(v.shape)), *v.shape[1:])
                made[i] = reshaped(v, shape) if isinstance(v, Series) else v.reshape(shape)
        return made

    def truth(self, primitive: Any, args: list[Any]) -> Any:
        """A predicate for small t > 0: of what numbers are (isnan), or of whether they are zero."""
        logical = primitive.numpy in (np.logical_not, np.logical_and, np.logical_or, np.logical_xor)

        def at(v: Any) -> Any:
            if not isinstance(v, Series):
                return v
            return v.sign() if logical else v.dense()[0][0]

        made = [[at(x) for x in v] if isinstance(v, list) else at(v) for v in args]
        return self.plain(primitive, made)

    def plain(self, primitive: Any, args: list[Any]) -> Any:
        """A call that no series takes part in, direction by direction."""
        size = max((v.shape[0] for v in flat(args) if isinstance(v, np.ndarray)), default=1)
        return batched(primitive, args, size)

    def is_affine(self, primitive: Any, args: list[Any]) -> bool:
        """Whether a primitive is linear (but for a constant) in what moves: its rules read nothing else."""
        if not primitive.vjps or primitive.linearity is not None:
            return False
        own = {primitive.names[i] for i in primitive.differentiated} | set(primitive.outputs)
        if any(f in own for needs in primitive.needs for f in needs):
            return False
        return not any(
            isinstance(v, Series)
            for i in primitive.tensors
            if i not in primitive.differentiated
            for v in flat([args[i]])
        )

    def affine(self, primitive: Any, args: list[Any]) -> Any:
        """A linear primitive, applied to the coefficients of each power."""
        run = self.run
        given = [v for v in flat([args[i] for i in primitive.tensors]) if isinstance(v, Series)]
        q = int(np.lcm.reduce([g.q for g in given]))
        given = [g.on(q) for g in given]
        low = min(g.low for g in given)
        size = max(g.low + len(g.c) for g in given) - low
        rows = max(v.shape[0] for v in flat(args) if isinstance(v, (Series, np.ndarray)))

        def of(part: Any, count: int) -> list[Any]:
            """The operands with a part of each series in its place, `count` times the directions."""

            def put(v: Any) -> Any:
                if isinstance(v, list):
                    return [put(x) for x in v]
                if isinstance(v, Series):
                    return part(v.on(q))
                if isinstance(v, np.ndarray):
                    full = np.broadcast_to(v, (rows, *v.shape[1:])) if v.shape[0] > 1 else v
                    return np.concatenate([full] * count) if v.shape[0] > 1 else v
                return v

            return [
                np.dtype(np.float64) if isinstance(v, np.dtype) and v.kind == "f" else put(v)
                if i in primitive.tensors else v
                for i, v in enumerate(args)
            ]  # fmt: skip

        def spread(name: str) -> Any:
            def part(v: Series) -> Array:
                made = np.zeros((size, rows, *v.shape[1:]))
                made[v.low - low : v.low - low + len(v.c)] = getattr(v, name)
                return made.reshape(size * rows, *v.shape[1:])

            return part

        def result(found: Any, count: int) -> list[Array]:
            every = found if isinstance(found, (tuple, list)) else [found]
            return [
                np.broadcast_to(f, (count * rows, *f.shape[1:])).reshape(count, rows, *f.shape[1:])
                for f in every
            ]

        planes = result(batched(primitive, of(spread("c"), size), size * rows), size)
        moves = ".movement." in primitive.__module__
        if any(g.r.any() for g in given) or not moves:
            bounds = [
                np.abs(b)
                for b in result(batched(primitive, of(spread("r"), size), size * rows), size)
            ]
        else:
            bounds = [np.zeros(p.shape) for p in planes]
        rest: list[Array] = []
        if primitive.linearity != "linear":  # a constant beside what is linear
            zero = lambda v: np.zeros((rows, *v.shape[1:]))  # noqa: E731
            rest = [f[0] for f in result(batched(primitive, of(zero, 1), rows), 1)]
            planes = [p - f for p, f in zip(planes, rest, strict=True)]
            if moves and any(g.r.any() for g in given):
                bounds = [np.abs(b - np.abs(f)) for b, f in zip(bounds, rest, strict=True)]
        if not moves:
            count = max(g.c[0, 0].size for g in given)
            sizes = result(
                batched(primitive, of(lambda v: np.abs(spread("c")(v)), size), size * rows), size
            )
            bounds = [b + count * EPS * np.abs(s) for b, s in zip(bounds, sizes, strict=True)]
        cuts = self._cuts(primitive, given, q, of, result, planes)
        made = [
            Series(run, p, b, low, cut, q, wild)
            for p, b, (cut, wild) in zip(planes, bounds, cuts, strict=True)
        ]
        if any(f.any() for f in rest):
            made = [s + Series(run, f[None]) for s, f in zip(made, rest, strict=True)]
        return made if len(made) > 1 or primitive.returns_list else made[0]

    def _cuts(
        self, primitive: Any, given: list[Series], q: int, of: Any, result: Any, planes: Any
    ) -> list[Any]:
        """For each result (cut, wild): the least of the cuts of the elements that it is made of."""
        values = np.unique(np.concatenate([np.unique(g.cut) for g in given]))
        wild = any(g.wild.any() for g in given)
        if len(values) == 1 and not wild:
            return [(int(values[0]), False)] * len(planes)
        rows = planes[0].shape[1]
        rng = np.random.default_rng(0)
        found = [(np.full(p.shape[1:], EXACT), np.zeros(p.shape[1:], bool)) for p in planes]
        zero = None
        if primitive.linearity != "linear":
            zero = result(
                batched(primitive, of(lambda v: np.zeros((rows, *v.shape[1:])), 1), rows), 1
            )
        for value in values[::-1]:
            for mark in (False, True) if wild else (False,):

                def at(v: Series, value: int = int(value), mark: bool = mark) -> Array:
                    held = (v.cut == value) & (v.wild if mark else True)
                    held = np.broadcast_to(held, (rows, *v.shape[1:]))
                    return np.where(held, rng.uniform(1, 2, held.shape), 0.0)

                reached = result(batched(primitive, of(at, 1), rows), 1)
                for k, f in enumerate(reached):
                    hit = (f[0] - (zero[k][0] if zero is not None else 0.0)) != 0
                    cut, own = found[k]
                    if mark:
                        found[k] = cut, own | (hit & (cut == value))
                    else:
                        found[k] = np.where(hit, value, cut), own & ~hit
        return found

    def bilinear(self, primitive: Any, args: list[Any]) -> Series:
        """A bilinear primitive, applied to the coefficients whose powers add up."""
        i, j = primitive.differentiated[:2]
        a, b = (as_series(self.run, args[k]) for k in (i, j))
        q = int(np.lcm(a.q, b.q))
        a, b = a.on(q), b.on(q)
        count = max(a.c[0, 0].size, b.c[0, 0].size)

        def apply(x: Array, y: Array) -> Array:
            made = list(args)
            made[i], made[j] = x, y
            return batched(primitive, made, max(x.shape[0], y.shape[0]))

        def product(x: Array, y: Array) -> tuple[Array, Array]:
            sizes = np.abs(apply(np.abs(x), np.abs(y)))
            step = functions.granule(x) * functions.granule(y)
            exact = step == 0 or (sizes < step * 2.0**53).all()
            return apply(x, y), np.zeros(sizes.shape) if exact else count * EPS * sizes

        def shifted(
            s: Series, least: bool
        ) -> Series:  # one power for all elements: what is known is the least
            flat_ = object.__new__(Series)
            for name in Series.__slots__:
                setattr(flat_, name, getattr(s, name, None))
            return flat_

        a, b = shifted(a, True), shifted(b, True)
        return multiplied_whole(a, b, product, lambda x, y: np.abs(apply(np.abs(x), np.abs(y))))

    def elementwise(self, call: Call, args: list[Any]) -> Series:
        """The integral of the VJP rule times what the operands move."""
        primitive = call.primitive
        if len(call.outputs) != 1 or self.depth > DEPTH:
            raise NoSeries(primitive.public_name)
        options = tuple(None if i in primitive.tensors else v for i, v in enumerate(call.args))
        values = [as_series(self.run, args[i]) for i in primitive.tensors if args[i] is not None]
        shape = np.broadcast_shapes(*[v.shape for v in values])
        q = int(np.lcm.reduce([v.q for v in values]))
        values = [expanded(v.on(q), shape) for v in values]
        moving = [k for k, v in enumerate(values) if len(v.c) > 1 or (v.cut < EXACT).any() or v.low]
        starts, noises = [], []
        for v in values:
            d, dr, _ = v.dense()
            starts.append(d[0])
            noises.append(dr[0])
        inner = list(args)
        for i, start in zip(
            [i for i in primitive.tensors if args[i] is not None], starts, strict=True
        ):
            inner[i] = start
        start = np.asarray(primitive.compute(inner), np.float64)
        rough = any(n.any() for n in noises)
        bound = 4 * EPS * np.abs(start)
        if not moving and not rough:
            return Series(self.run, start[None], bound[None])
        try:
            inputs, slopes, result = slope_of(primitive, options, len(values))
        except (RuntimeError, NotImplementedError, TypeError) as error:
            raise NoSeries(primitive.public_name) from error
        out: Series | None = None
        rounds = self.run.terms * q if result is not None else 1
        for k in range(rounds):
            pusher = Pusher(self.run, {id(i): v for i, v in zip(inputs, values, strict=True)})
            pusher.depth = self.depth + 1
            if result is not None:
                seen = as_series(self.run, start) if out is None else out
                pusher.known[id(result)] = Series(
                    self.run, seen.c, seen.r, seen.low, np.minimum(seen.cut, k + 1), q, seen.wild
                )
                if not k:
                    pusher.known[id(result)] = Series(self.run, start[None], bound[None], 0, 1, q)
            wanted = [s for s in (slopes[m] for m in moving or range(len(slopes))) if s is not None]
            rates = dict(zip(map(id, wanted), pusher.push(wanted), strict=True))
            total: Series | None = None
            for m in moving:
                if slopes[m] is None:
                    continue
                rate = as_series(self.run, rates[id(slopes[m])])
                part = integrated(values[m], 0 * start, 0 * start, rate)
                total = part if total is None else total + part
            if rough:
                for m, noise in enumerate(noises):
                    slope = slopes[m]
                    if noise.any() and slope is not None and id(slope) in rates:
                        first, _ = as_series(self.run, rates[id(slope)]).plane(0)
                        bound = 4 * EPS * np.abs(start) + np.abs(first) * noise
            base = Series(self.run, start[None], bound[None], 0, EXACT, q)
            out = base if total is None else total + base
            if total is None:
                break
        assert out is not None
        return out

    def apart(self, call: Call) -> Any:
        """The primitives that the kernel consists of."""
        if self.depth > DEPTH:
            raise NoSeries(call.primitive.public_name)
        try:
            values = decomposition(call)
        except Exception as error:  # what a kernel raises on stand-ins is its own affair
            raise NoSeries(call.primitive.public_name) from error
        if any(v.call is not None and v.call.primitive is call.primitive for v in values):
            raise NoSeries(call.primitive.public_name)
        if all(v.call is None for v in values):
            raise NoSeries(call.primitive.public_name)
        self.depth += 1
        try:
            return self.push(values)
        finally:
            self.depth -= 1


def multiplied_whole(a: Series, b: Series, product: Any, bound: Any) -> Series:
    """As `multiplied`, where each element of the result is made of many: what is known is the least."""
    va, vb = a.valuation().min(initial=EXACT), b.valuation().min(initial=EXACT)
    cut = min(
        EXACT if a.cut.min() >= EXACT or vb >= EXACT else int(a.cut.min()) + int(vb),
        EXACT if b.cut.min() >= EXACT or va >= EXACT else int(b.cut.min()) + int(va),
    )
    run, q = a.run, a.q
    most = min(len(a.c) + len(b.c) - 1, 3 * run.terms * q)
    c: list[Any] = [None] * most
    r: list[Any] = [None] * most
    rough_a, rough_b = a.r.any(), b.r.any()
    for i in range(len(a.c)):
        for j in range(min(len(b.c), most - i)):
            value, lost = product(a.c[i], b.c[j])
            if rough_b:
                lost = lost + bound(a.c[i], b.r[j])
            if rough_a:
                lost = lost + bound(a.r[i], np.abs(b.c[j]) + b.r[j])
            if c[i + j] is None:
                c[i + j], r[i + j] = value, lost
            else:
                c[i + j] = c[i + j] + value
                r[i + j] = r[i + j] + lost + EPS * np.abs(c[i + j]) * bool(np.any(lost))
    low = a.low + b.low
    if len(a.c) + len(b.c) - 1 > most:
        cut = min(cut, low + most)
    wild = bool(a.wild.any() or b.wild.any())
    return Series(run, np.stack(c), np.stack(r), low, cut, q, wild)


def as_series_of(run: Run, array: Array) -> Series:
    """A constant of the trace."""
    return Series(run, np.asarray(array, np.float64)[None], rounded(array)[None])


def flat(values: Any) -> list[Any]:
    """The items of lists in a list."""
    found: list[Any] = []
    for v in values:
        found += flat(v) if isinstance(v, list) else [v]
    return found


def batched(primitive: Any, args: list[Any], size: int) -> Any:
    """A primitive on arrays with the directions in front; those with one are the same along all."""
    level = BatchLevel(size)

    def put(v: Any) -> Any:
        if isinstance(v, list):
            return [put(x) for x in v]
        if isinstance(v, np.ndarray):
            if v.shape[0] == 1 and size != 1:
                return wrap(v[0])
            return wrap(BatchedArray(v, level))
        return v

    values = [put(v) if i in primitive.tensors else v for i, v in enumerate(args)]
    with modes.changed(enabled=False, recorder=None, intercept=None, rules=False), opened(level):
        found = primitive.call_in_order(values)

    def take(t: Tensor) -> Array:
        if level in batch_of(t):
            with modes.changed(enabled=False, recorder=None, intercept=None):
                return np.asarray(remove_batch_dim(t, 0, level).array)
        return np.asarray(t.array)[None]

    if isinstance(found, (tuple, list)):
        return [take(t) for t in found]
    return take(found)


@cache
def slope_of(
    primitive: Any, options: tuple[Any, ...], count: int
) -> tuple[list[Value], list[Value | None], Value | None]:
    """(operands, the slopes by each, the result if slopes read it) of an elementwise primitive."""
    tracer = Tracer(True)
    tensors = [tracer.variable(f"a{k}", np.float64(0.5), True) for k in range(count)]
    at = iter(tensors)
    args = [next(at) if i in primitive.tensors else v for i, v in enumerate(options)]
    out = tracer.running(lambda: primitive.call_in_order(args))
    slopes = tracer.gradients(out, tensors)
    inputs = [tracer.inputs[f"a{k}"] for k in range(count)]
    made = tracer.value_of(out)
    used = any(
        made is v
        for c in calls([s for s in slopes if s is not None])
        for v in c.args
        if isinstance(v, Value)
    )
    used = used or any(s is made for s in slopes)
    return inputs, slopes, made if used else None


__all__ = ["NoSeries", "Pusher"]
