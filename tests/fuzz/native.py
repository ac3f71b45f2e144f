"""Native code against the tape: random programs in both precisions, with NaN, infinities and odd sizes."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import gradcli
from gradcli.columns.compiler import whole_programs
from gradcli.columns.compiler.executor import Executor
from gradcli.transforms.tracing.numpy_tracer import Untraceable, trace_numpy
from tests import fuzz
from tests.columns.compiler import programs
from tests.columns.compiler.same import by_tape

SHAPES = [(1, 1), (7, 5), (3, 1000), (1000, 3), (129, 130), (513, 1), (1, 515), (31, 17), (97, 8)]
SHAPES += [(300, 11), (400, 16)]
EDGES = (0, 1, 7, 127, 511, 512, 513, 1000, 4099)
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-310, 700.0, -745.0, 1e300, -1e-3]
# Of these the C library's functions are rounded by themselves: the tape's differ in the last places.
FLAT = (
    *("exp", "expm1", "exp2", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "sinh", "cosh"),
    *("tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "sqrt", "rsqrt", "reciprocal"),
    *("erf", "erfc", "sigmoid", "softplus", "gelu", "silu", "relu", "abs", "sign", "floor", "ceil"),
    *("logsigmoid", "square", "neg", "isnan", "isinf", "isfinite", "trunc", "round", "elu", "mish"),
)
PAIRS = (
    *("add", "sub", "mul", "div", "maximum", "minimum", "fmax", "fmin", "pow", "atan2", "hypot"),
    *("logaddexp", "copysign", "gt", "le", "eq", "ne"),
)
EXACT = frozenset(
    [
        *("add", "sub", "mul", "div", "maximum", "minimum", "fmax", "fmin", "copysign", "sqrt"),
        *("relu", "abs", "sign", "floor", "ceil", "square", "neg", "trunc", "round", "reciprocal"),
    ]
)
Program = tuple[Any, dict[str, Any], float]


def _special(g: Any, a: Any, share: float) -> Any:
    there = g.random(a.shape) < share
    with np.errstate(all="ignore"):
        return np.where(there, g.choice(SPECIAL, a.shape), a).astype(a.dtype)


def flat(rnd: random.Random) -> Program:
    """Elementwise functions of vectors of any length, where anything may be NaN or infinite."""
    n = rnd.choice([*EDGES, rnd.randint(1, 5000)])
    dtype, g = rnd.choice(["f4", "f8"]), np.random.default_rng(rnd.randrange(10**6))
    share = rnd.choice([0, 0, 0.01, 0.3])
    exact = rnd.random() < 0.3
    names = [k for k in (*FLAT, *PAIRS * 2) if k in EXACT or not exact]
    todo = [(rnd.choice(names), rnd.random(), rnd.random()) for _ in range(rnd.randint(1, 8))]
    arrays = {k: _special(g, g.standard_normal(n).astype(dtype), share) for k in "xy"}

    def run(x: Any, y: Any) -> Any:
        pool = [x, y]
        for name, a, b in todo:
            u, v = pool[int(a * len(pool))], pool[int(b * len(pool))]
            try:
                function = getattr(gradcli, name, None) or getattr(gradcli.nn.functional, name)
                made = function(u, v) if name in PAIRS else function(u)
            except RuntimeError:
                continue
            pool.append(made if made.is_floating_point() else gradcli.where(made, u, 0.5 * v))
        return sum(pool[2:], x).sum()

    run.__doc__ = f"{n} {dtype} {share} {todo}"
    return run, arrays, 0.0 if exact else 1.0


def rows(rnd: random.Random, shapes: Any = SHAPES) -> Program:
    """Matrices: reductions, broadcasting, products (see `tests.columns.compiler.programs`)."""
    todo = programs.steps(rnd)
    seed = rnd.randrange(10**6)
    arrays = programs.arrays(rnd, seed)
    shape, g = rnd.choice(shapes), np.random.default_rng(seed)
    kinds = {"a": shape, "b": shape[1:], "c": (shape[0], 1), "d": shape, "s": ()}
    dtype = arrays["a"].dtype
    found = {n: g.standard_normal(s).astype(dtype)[()] for n, s in kinds.items()}
    share = rnd.choice([0, 0, 0, 0.002])
    found["a"] = _special(g, found["a"], share)

    def run(**tensors: Any) -> Any:
        return programs.run(todo, list(tensors.values()))

    run.__doc__ = f"{shape} {dtype} {share} {todo}"
    return run, found, 1.0


def few(rnd: random.Random) -> Program:
    """Small matrices."""
    return rows(rnd, [(1, 1), (1, 7), (7, 1), (3, 4), (9, 17), (33, 8), (64, 64), (2, 300)])


def moved(rnd: random.Random) -> Program:
    """Elements that are moved between functions of them: views, joins, writes, sums along a dimension."""
    n, m = rnd.choice([(1, 1), (1, 5), (4, 3), (9, 16), (30, 31)])
    dtype, g = rnd.choice(["f4", "f8"]), np.random.default_rng(rnd.randrange(10**6))
    arrays = {"x": g.standard_normal((n, m)), "y": g.standard_normal(m), "s": g.standard_normal(())}
    arrays = {k: a.astype(dtype)[()] for k, a in arrays.items()}
    todo = [(rnd.choice(sorted(MOVES)), rnd.random()) for _ in range(rnd.randint(1, 9))]
    order = gradcli.tensor(g.permutation(n))

    def run(x: Any, y: Any, s: Any) -> Any:
        pool = [x, x * y, x + s]
        for name, a in todo:
            u, v = pool[int(a * len(pool))], pool[-1]
            pool.append(MOVES[name](u, v, order))
        return sum(pool[2:], x * 0).sin().sum() + (x[0] * s).prod() + s

    run.__doc__ = f"{n} by {m} {dtype} {todo}"
    return run, arrays, 1.0


def _set(u: Any, v: Any, order: Any) -> Any:
    made = u.clone()
    made[: len(u) // 2] = v[len(u) - len(u) // 2 :]
    made[-1] *= 2
    return made


MOVES: dict[str, Any] = {
    "shift": lambda u, v, i: gradcli.cat([u[1:], v[:1]]),
    "reverse": lambda u, v, i: u.flip(0) + v.flip(1),
    "turn": lambda u, v, i: (u.T @ v).sum(0) * u / (1 + len(u)),
    "taken": lambda u, v, i: u[i] * v,
    "gathered": lambda u, v, i: u.gather(0, i[:, None].expand(-1, u.shape[1])) - v,
    "sums": lambda u, v, i: u.sum(0) * v.mean(1, keepdim=True),
    "largest": lambda u, v, i: u - v.amax(1, keepdim=True),
    "stacked": lambda u, v, i: gradcli.stack([u, v], 1).sum(1).exp().log1p(),
    "set": _set,
    "reshaped": lambda u, v, i: (u.reshape(-1) * v.T.reshape(-1)).reshape(u.shape),
    "where": lambda u, v, i: gradcli.where(u > v, u * v, v.tanh()),
    "softmax": lambda u, v, i: u.softmax(1) + v.logsumexp(0),
    "truths": lambda u, v, i: ((u > v) + (v > 0)) * u,
    "log_softmax": lambda u, v, i: (u * 3).log_softmax(1) * v,
    "rolled": lambda u, v, i: u.roll(1, 0) * v,
    "lower": lambda u, v, i: u.tril() + v,
    "running": lambda u, v, i: u.cumsum(1) / 8 + v,
    "diagonal": lambda u, v, i: u + v[0].diag()[: u.shape[0]].sum(0),
}


def attempt(rnd: random.Random, make: Any, whole: bool = False) -> str | None:
    """What differs; None if nothing does. whole: as one C function, if it can be one."""
    function, arrays, loose = make(rnd)
    block, threads = rnd.choice([16, 700, 10**6]), rnd.choice([1, 2])
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            wanted = by_tape(function, arrays)
            found = trace_numpy(function, arrays, wrt=frozenset(arrays))
        except (Untraceable, RuntimeError, TypeError, ValueError):
            return None
        if wanted is None:
            return None
        inputs, got = list(found.inputs.values()), []
        for many in (threads, 3 - threads):
            if whole:
                try:
                    run: Any = whole_programs.compiled(found.outputs, inputs).checked()
                except whole_programs.NoForm:
                    return None
            else:
                run = Executor(
                    *(found.outputs, inputs), block=block, threads=many, smallest=1, native=True
                )
            values = list(run(*arrays.values()))
            gaps = [None if g is None else values.pop(1) for g in found.gradients.values()]
            got.append([values[0], *gaps])
    for a, b, c in zip(wanted, *got, strict=True):
        if (a is None) != (b is None):
            return f"{function.__doc__}: a gradient that is not there"
        if a is None:
            continue
        if np.asarray(b).dtype != np.asarray(a).dtype or np.shape(a) != np.shape(b):
            return f"{function.__doc__}: another shape or dtype"
        if not np.array_equal(b, c, equal_nan=True):
            return f"{function.__doc__}: two threads give other bits"
        if not alike(np.asarray(a), np.asarray(b), loose):
            return f"{function.__doc__}: block {block}\n  tape   {a}\n  native {b}"
    return None


def alike(a: Any, b: Any, loose: float) -> bool:
    """Whether two results are as near as rounding leaves them; what is not finite must be the same."""
    there = np.isfinite(a)
    if not loose or not there.all():
        same = np.array_equal(np.where(there, 0, a), np.where(there, 0, b), equal_nan=True)
        if not same:
            return False
    a, b = a[there], b[there]
    if not loose:
        return bool((a == b).all())
    limit = 2e-3 if a.dtype == np.float32 else 1e-9
    with np.errstate(all="ignore"):
        return not a.size or bool((np.abs(a - b) <= limit * (1 + np.abs(a).max())).all())


def run(seed: int, seconds: float) -> Iterator[str]:
    """See `tests.fuzz`."""
    for rnd in fuzz.cases(seed, seconds):
        make, whole = rnd.choice([flat, rows, few, moved]), rnd.random() < 0.5
        failure = attempt(rnd, make, whole)
        if failure:
            yield failure
