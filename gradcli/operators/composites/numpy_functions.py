"""NumPy's and SciPy's functions on tensors that are differentiated, with NumPy's arguments and meanings.

`Tensor.__array_function__` and `__array_ufunc__` ask `meaning` for them. What means the same to PyTorch
under the same name is an entry of the operator table, with `numpy=` in its declaration; here is what
differs: `axis`, `ddof`, flattening where no axis is given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from gradcli.engine.core.errors import NoNumpyError
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.engine.registry.table import resolve
from gradcli.engine.system import dtypes

Axis = int | tuple[int, ...] | None
# What NumPy's functions take for an array: tensors, arrays, numbers, and lists of these.
Operand: TypeAlias = Any
FUNCTIONS: dict[Any, Callable[..., Any]] = {}

# Functions of SciPy's, which need not be installed, by their names: those of tensors.
OF_SCIPY = {
    **{n: f"special.{n}" for n in "erf erfc erfcx erfinv xlogy xlog1py entr ndtr ndtri".split()},
    **{
        n: f"special.{n}" for n in "log_ndtr i0 i0e i1 i1e gammaln gammainc gammaincc logit".split()
    },
    **{n: f"special.{n}" for n in "zeta expit exp2 expm1 log1p digamma".split()},
    **{"psi": "special.digamma", "j0": "special.bessel_j0", "j1": "special.bessel_j1"},
    **{"y0": "special.bessel_y0", "y1": "special.bessel_y1"},
    **{"log_expit": "nn.functional.logsigmoid"},
}


def meaning(function: Any) -> Callable[..., Any] | None:
    """The function of tensors for one of NumPy's, or a ufunc of SciPy's; None if there is none."""
    found = FUNCTIONS.get(function)
    if found is None and isinstance(function, np.ufunc) and function not in _OWN_UFUNCS:
        name = OF_SCIPY.get(function.__name__)
        found = _BY_OTHERS.get(function.__name__) if name is None else _of_numbers(_call(name))
    return found


def _of_numbers(call: Callable[..., Any]) -> Callable[..., Any]:
    """The function of tensors, where one of them is a number."""

    def called(*values: Operand) -> Any:
        like = _like_of(values)
        return call(*[_tensor(v, like) for v in values])

    return called


def _gamma(x: Operand) -> Any:
    x = _tensor(x)
    sign = np.where((x.array < 0) & (np.floor(x.array) % 2 != 0), -1.0, 1.0)
    return _call("special.gammaln")(x).exp() * wrap(np.asarray(sign, x.array.dtype)[()])


def _betaln(a: Operand, b: Operand) -> Any:
    gammaln = _call("special.gammaln")
    a, b = (_tensor(v, _like_of((a, b))) for v in (a, b))
    return gammaln(a) + gammaln(b) - gammaln(a + b)


def _beta(a: Operand, b: Operand) -> Any:
    a, b = (_tensor(v, _like_of((a, b))) for v in (a, b))
    return _gamma(a) / _gamma(a + b) * _gamma(b)


# Functions of SciPy's that are made of others.
_BY_OTHERS: dict[str, Callable[..., Any]] = {
    "gamma": _gamma,
    "beta": _beta,
    "betaln": _betaln,
    "rel_entr": lambda x, y: _call("special.xlogy")(x, x / y),
    "kl_div": lambda x, y: _call("special.xlogy")(x, x / y) - x + y,
}


_OWN_UFUNCS = frozenset(f for f in vars(np).values() if isinstance(f, np.ufunc))


def _call(name: str) -> Callable[..., Any]:
    found: Any = resolve(name)
    call: Callable[..., Any] = getattr(found, "call", found)
    return call


def _of(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def enter(made: Callable[..., Any]) -> Callable[..., Any]:
        FUNCTIONS.update(dict.fromkeys(functions, made))
        return made

    return enter


def _tensor(value: Operand, like: Tensor | None = None) -> Any:
    """A value as a tensor; a number in the dtype of another tensor."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, (list, tuple)) and any(
        isinstance(v, (Tensor, list, tuple)) for v in value
    ):
        return _call("stack")([_tensor(v, like) for v in value])
    array = dtypes.native(np.asarray(value))
    number = like is not None and not hasattr(value, "dtype") and like.array.dtype.kind in "fc"
    return wrap(array.astype(like.array.dtype) if number and like is not None else array)


def _promoted(*values: Operand) -> list[Any]:
    """Tensors of one dtype, as NumPy's products make it of their operands."""
    tensors = [_tensor(v) for v in values]
    dtype = np.result_type(*[t.array.dtype for t in tensors])
    return [t if t.array.dtype == dtype else t.to(dtypes.of(dtype)) for t in tensors]


def _flat(a: Operand, axis: Axis) -> tuple[Any, Any]:
    """(the tensor, the axis): where none is given, a vector of all elements."""
    a = _tensor(a)
    return (a.reshape(-1), 0) if axis is None else (a, axis)


# -- products ---------------------------------------------------------------------------------------
@_of(np.dot)
def dot(a: Operand, b: Operand, out: None = None) -> Any:
    a, b = _promoted(a, b)
    if a.ndim == 0 or b.ndim == 0:
        return a * b
    if b.ndim <= 2:
        return a @ b
    return _call("tensordot")(a, b, ([a.ndim - 1], [b.ndim - 2]))


@_of(np.vdot)
def vdot(a: Operand, b: Operand) -> Any:
    a, b = _promoted(a, b)
    return a.conj().reshape(-1) @ b.reshape(-1)


@_of(np.linalg.multi_dot)
def multi_dot(arrays: Sequence[Any], *, out: None = None) -> Any:
    found, *others = _promoted(*arrays)
    for other in others:
        found = found @ other
    return found


@_of(np.cross)
def cross(a: Operand, b: Operand, axis: int = -1) -> Any:
    a, b = _promoted(a, b)
    return _call("linalg.cross")(a, b, dim=axis)


@_of(np.convolve)
def convolve(a: Operand, v: Operand, mode: str = "full") -> Any:
    a, v = _promoted(a, v)
    if v.shape[0] > a.shape[0]:
        a, v = v, a
    n = v.shape[0]
    padding = {"full": n - 1, "valid": 0, "same": n - 1}[mode]
    kernel = _call("flip")(v, (0,)).reshape(1, 1, -1)
    found = _call("nn.functional.conv1d")(a.reshape(1, 1, -1), kernel, padding=padding).reshape(-1)
    if mode == "same":
        start = (n - 1) // 2
        found = found[start : start + a.shape[0]]
    return found


# -- linear algebra ---------------------------------------------------------------------------------
@_of(np.linalg.norm)
def norm(x: Operand, ord: Any = None, axis: Axis = None, keepdims: bool = False) -> Any:
    return _call("linalg.norm")(_tensor(x), ord, dim=axis, keepdim=keepdims)


@_of(np.linalg.svd)
def svd(
    a: Operand, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    if not compute_uv:
        return _call("linalg.svdvals")(_tensor(a))
    return _call("linalg.svd")(_tensor(a), full_matrices=full_matrices)


@_of(np.linalg.cholesky)
def cholesky(a: Operand, /, *, upper: bool = False) -> Any:
    return _call("linalg.cholesky")(_tensor(a), upper=upper)


for _name in ("slogdet", "eigh", "eigvalsh", "qr", "matrix_power"):
    FUNCTIONS[getattr(np.linalg, _name)] = lambda *args, _n=_name, **how: _call(f"linalg.{_n}")(
        *args, **how
    )


# -- order ------------------------------------------------------------------------------------------
@_of(np.sort)
def sort(
    a: Operand, axis: int | None = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Any:
    a, axis = _flat(a, axis)
    return _call("sort")(a, dim=axis)[0]


@_of(np.argsort)
def argsort(
    a: Operand, axis: int | None = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Any:
    a, axis = _flat(a, axis)
    return _call("sort")(a, dim=axis, stable=bool(stable))[1]


@_of(np.median)
def median(
    a: Operand,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Any:
    a, axis = _flat(a, axis)
    ordered = _call("sort")(a, dim=axis)[0]
    n = ordered.shape[axis]
    middle = _call("narrow")(ordered, axis, (n - 1) // 2, 2 - n % 2)
    return middle.mean(axis, keepdim=keepdims)


@_of(np.quantile)
def quantile(
    a: Operand,
    q: Operand,
    axis: Axis = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
) -> Any:
    a = _tensor(a)
    return _call("quantile")(a, _tensor(q, a), dim=axis, keepdim=keepdims, interpolation=method)


@_of(np.percentile)
def percentile(a: Operand, q: Operand, axis: Axis = None, **how: Any) -> Any:
    return quantile(a, np.asarray(q, float) / 100, axis, **how)


# -- sums and statistics ----------------------------------------------------------------------------
@_of(np.cumsum)
def cumsum(a: Operand, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
    a, axis = _flat(a, axis)
    return _call("cumsum")(a, axis)


@_of(np.cumprod)
def cumprod(a: Operand, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
    a, axis = _flat(a, axis)
    return _call("cumprod")(a, axis)


def _spread(name: str) -> Callable[..., Any]:
    def spread(
        a: Operand,
        axis: Axis = None,
        dtype: Any = None,
        out: None = None,
        ddof: float = 0,
        keepdims: bool = False,
    ) -> Any:
        dims = axis if axis is None or isinstance(axis, tuple) else (axis,)
        return _call(name)(_tensor(a), dims, correction=ddof, keepdim=keepdims)

    return spread


FUNCTIONS |= {np.var: _spread("var"), np.std: _spread("std")}


@_of(np.average)
def average(
    a: Operand,
    axis: Axis = None,
    weights: Operand = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> Any:
    a = _tensor(a)
    w = None if weights is None else _tensor(weights, a)
    if w is not None and w.ndim == 1 and a.ndim > 1 and isinstance(axis, int):
        w = w.reshape([-1 if k == axis % a.ndim else 1 for k in range(a.ndim)])
    dims = tuple(range(a.ndim)) if axis is None else axis
    if w is None:
        found, total = a.mean(dims, keepdim=keepdims), _tensor(1.0)
    else:
        total = (w + a.detach() * 0).sum(dims, keepdim=keepdims)
        found = (a * w).sum(dims, keepdim=keepdims) / total
    return (found, total) if returned else found


@_of(np.nansum)
def nansum(
    a: Operand, axis: Axis = None, dtype: Any = None, out: None = None, keepdims: bool = False
) -> Any:
    return _call("nansum")(_tensor(a), axis, keepdim=keepdims)


@_of(np.nanmean)
def nanmean(
    a: Operand, axis: Axis = None, dtype: Any = None, out: None = None, keepdims: bool = False
) -> Any:
    return _call("nanmean")(_tensor(a), axis, keepdim=keepdims)


@_of(np.ptp)
def ptp(a: Operand, axis: int | None = None, out: None = None, keepdims: bool = False) -> Any:
    a, axis = _flat(a, axis)
    return _call("amax")(a, axis, keepdim=keepdims) - _call("amin")(a, axis, keepdim=keepdims)


@_of(np.trapezoid)
def trapezoid(y: Operand, x: Operand = None, dx: float = 1.0, axis: int = -1) -> Any:
    y = _tensor(y)
    if x is None:
        return _call("trapezoid")(y, dx=dx, dim=axis)
    return _call("trapezoid")(y, _tensor(x, y), dim=axis)


@_of(np.gradient)
def gradient(f: Operand, *varargs: Any, axis: Axis = None, edge_order: int = 1) -> Any:
    f = _tensor(f)
    dims = list(range(f.ndim)) if axis is None else [axis] if isinstance(axis, int) else list(axis)
    steps = list(varargs) or [1.0]
    steps = steps * len(dims) if len(steps) == 1 else steps
    spacing: Any
    if any(np.ndim(s) for s in steps):
        sizes = [f.shape[d] for d in dims]
        spacing = [
            _tensor(s if np.ndim(s) else float(s) * np.arange(n), f)
            for s, n in zip(steps, sizes, strict=True)
        ]
    else:
        spacing = steps
    found = _call("gradient")(f, spacing=spacing, dim=dims, edge_order=edge_order)
    return found[0] if len(found) == 1 else tuple(found)


def _like_of(values: Operand) -> Any:
    """A tensor among values, nested as they like."""
    if isinstance(values, (list, tuple)):
        return next((t for v in values if (t := _like_of(v)) is not None), None)
    return values if isinstance(values, Tensor) else None


def _joins(name: str) -> Callable[..., Any]:
    """The function of that name, of tensors, arrays and numbers."""

    def join(
        arrays: Operand, axis: Any = 0, out: None = None, *, dtype: Any = None, casting: str = ""
    ) -> Any:
        parts = _promoted(*[_tensor(a, _like_of(arrays)) for a in arrays])
        if name == "cat" and axis is None:
            parts, axis = [p.reshape(-1) for p in parts], 0
        return _call(name)(parts, axis)

    return join


FUNCTIONS |= {np.stack: _joins("stack"), np.concatenate: _joins("cat")}


def _of_rows(name: str) -> Callable[..., Any]:
    return lambda tup, **_: _call(name)(_promoted(*[_tensor(a, _like_of(tup)) for a in tup]))


FUNCTIONS |= {f: _of_rows(f.__name__) for f in (np.hstack, np.vstack, np.dstack, np.column_stack)}


def _of_each(name: str) -> Callable[..., Any]:
    def each(*arrays: Operand) -> Any:
        found = tuple([_call(name)(_tensor(a)) for a in arrays])
        return found if len(found) != 1 else found[0]

    return each


FUNCTIONS |= {f: _of_each(f.__name__) for f in (np.atleast_1d, np.atleast_2d, np.atleast_3d)}


@_of(np.block)
def block(arrays: Operand) -> Any:
    like = _like_of(arrays)

    def depth(value: Operand) -> int:
        return 1 + max(map(depth, value)) if isinstance(value, list) else 0

    def joined(value: Operand, level: int) -> Any:
        if not isinstance(value, list):
            found = _tensor(value, like)
            return found.reshape((*[1] * (depth(arrays) - found.ndim), *found.shape))
        return FUNCTIONS[np.concatenate]([joined(v, level - 1) for v in value], -level)

    return joined(arrays, depth(arrays))


def _moves(function: Any) -> Any:
    """A function that only moves elements: the places of these are moved by NumPy."""

    def moved(a: Operand, *args: Operand, **how: Any) -> Any:
        a = _tensor(a)
        places = function(np.arange(a.numel()).reshape(tuple(a.shape)), *args, **how)
        return a.reshape(-1)[wrap(np.ascontiguousarray(places))].reshape(places.shape)

    return moved


FUNCTIONS |= {f: _moves(f) for f in (np.delete, np.rot90, np.resize)}


@_of(np.compress)
def compress(condition: Operand, a: Operand, axis: int | None = None, out: None = None) -> Any:
    kept = condition.array if isinstance(condition, Tensor) else condition
    return _moves(lambda places: np.compress(kept, places, axis))(a)


@_of(np.extract)
def extract(condition: Operand, arr: Operand) -> Any:
    kept = condition.array if isinstance(condition, Tensor) else condition
    return _moves(lambda places: np.extract(kept, places))(arr)


@_of(np.repeat)
def repeat(a: Operand, repeats: Operand, axis: int | None = None) -> Any:
    return _moves(lambda places: np.repeat(places, repeats, axis))(a)


@_of(np.reshape)
def reshape(
    a: Operand, shape: Operand = None, order: str = "C", *, copy: Any = None, **old: Any
) -> Any:
    a = _tensor(a)
    sizes: Any = old.get("newshape", shape)
    sizes = (sizes,) if np.ndim(sizes) == 0 else tuple(sizes)
    if any(isinstance(n, Tensor) for n in sizes):
        raise NoNumpyError("reshape")
    if order == "F":
        return transpose(transpose(a).reshape(sizes[::-1]))
    return a.reshape(tuple(map(int, sizes)))


@_of(np.ravel)
def ravel(a: Operand, order: str = "C") -> Any:
    return reshape(a, -1, order)


@_of(np.round)
def round_(a: Operand, decimals: int = 0, out: None = None) -> Any:
    return _call("round")(_tensor(a), decimals=decimals)


@_of(np.insert)
def insert(arr: Operand, obj: Operand, values: Operand, axis: int | None = None) -> Any:
    arr, at = _flat(arr, axis)
    values = _tensor(values, arr)
    shape = tuple(arr.shape)
    count = arr.numel()
    size = values.numel()
    own = np.arange(count).reshape(shape)
    given = np.arange(count, count + size).reshape(tuple(values.shape))
    places = np.insert(own, obj, given, at)
    both = FUNCTIONS[np.concatenate]([arr.reshape(-1), values.reshape(-1)])
    return both[wrap(places)]


@_of(np.pad)
def pad(array: Operand, pad_width: Any, mode: Any = "constant", **how: Any) -> Any:
    a = _tensor(array)
    own = np.arange(a.numel()).reshape(tuple(a.shape))
    if mode == "constant":
        places = np.pad(own, pad_width, constant_values=-1)
        around = np.pad(np.zeros(tuple(a.shape), a.array.dtype), pad_width, **how)
        inside = a.reshape(-1)[wrap(np.maximum(places, 0))]
        return _call("where")(wrap(places >= 0), inside, wrap(around))
    if mode not in ("edge", "reflect", "symmetric", "wrap") or how:
        raise TypeError(f"np.pad of tensors has no mode={mode!r} with these options")
    return a.reshape(-1)[wrap(np.pad(own, pad_width, mode))]


@_of(np.choose)
def choose(a: Operand, choices: Operand, out: None = None, mode: Any = "raise") -> Any:
    parts = _call("broadcast_tensors")(
        *_promoted(*[_tensor(c, _like_of(choices)) for c in choices])
    )
    places = np.arange(sum(p.numel() for p in parts)).reshape(len(parts), *parts[0].shape)
    found = np.choose(np.asarray(a), list(places), mode=mode)
    return _call("stack")(list(parts), 0).reshape(-1)[wrap(found)]


# -- shapes -----------------------------------------------------------------------------------------
@_of(np.transpose)
def transpose(a: Operand, axes: Operand = None) -> Any:
    a = _tensor(a)
    return a.permute(tuple(reversed(range(a.ndim))) if axes is None else tuple(axes))


@_of(np.flip)
def flip(m: Operand, axis: Axis = None) -> Any:
    m = _tensor(m)
    dims = tuple(range(m.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return _call("flip")(m, dims)


FUNCTIONS[np.size] = lambda a, axis=None: a.numel() if axis is None else a.shape[axis]
FUNCTIONS |= {np.flipud: lambda m: flip(m, 0), np.fliplr: lambda m: flip(m, 1)}


@_of(np.tile)
def tile(A: Operand, reps: Operand) -> Any:
    return _call("tile")(_tensor(A), (reps,) if np.ndim(reps) == 0 else tuple(reps))


@_of(np.append)
def append(arr: Operand, values: Operand, axis: int | None = None) -> Any:
    arr = _tensor(arr)
    values = _tensor(values, arr)
    if axis is None:
        arr, values, axis = arr.reshape(-1), values.reshape(-1), 0
    return _call("cat")([arr, values], axis)


@_of(np.column_stack)
def column_stack(tup: Sequence[Any]) -> Any:
    return _call("column_stack")([_tensor(v) for v in tup])


@_of(np.take)
def take(
    a: Operand, indices: Operand, axis: int | None = None, out: None = None, mode: str = "raise"
) -> Any:
    a, axis = _flat(a, axis)
    places = indices if isinstance(indices, Tensor) else np.asarray(indices)
    return a[(slice(None),) * (axis % a.ndim) + (places,)]


@_of(np.meshgrid)
def meshgrid(*xi: Operand, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    return tuple(_call("meshgrid")(*[_tensor(x).reshape(-1) for x in xi], indexing=indexing))


@_of(np.linspace)
def linspace(
    start: Operand,
    stop: Operand,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    like = start if isinstance(start, Tensor) else stop
    low, high = _tensor(start, like), _tensor(stop, like)
    step = (high - low) / ((num - 1 if endpoint else num) or 1)
    steps = wrap(np.arange(num, dtype=like.array.dtype))
    found = low + step * steps.reshape((num, *[1] * step.ndim))
    return (found, step) if retstep else found


# -- by pieces --------------------------------------------------------------------------------------
@_of(np.select)
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Any:
    like = next((v for v in choicelist if isinstance(v, Tensor)), None)
    found = _tensor(default, like)
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        found = _call("where")(_tensor(condition), _tensor(choice, like), found)
    return found


@_of(np.piecewise)
def piecewise(
    x: Operand, condlist: Operand, funclist: Sequence[Any], *args: Operand, **kw: Any
) -> Any:
    x = _tensor(x)
    if isinstance(condlist, Tensor) or not isinstance(condlist, (list, tuple)):
        condlist = [condlist]
    if len(funclist) - len(condlist) not in (0, 1):
        raise TypeError("np.piecewise wants a function for each condition, and at most one more")
    values = [f(x, *args, **kw) if callable(f) else _tensor(f, x) for f in funclist]
    default = values.pop() if len(values) > len(condlist) else _tensor(0.0, x)
    found = default + x * 0
    for condition, value in zip(condlist, values, strict=True):
        found = _call("where")(_tensor(condition), value, found)  # the last that holds
    return found


@_of(np.interp)
def interp(
    x: Operand, xp: Operand, fp: Operand, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    if period is not None:
        raise NoNumpyError("interp")
    like = next(v for v in (x, xp, fp) if isinstance(v, Tensor))
    x, xp, fp = (_tensor(v, like) for v in (x, xp, fp))
    inside = x.clamp(xp[0], xp[-1])
    at = _call("searchsorted")(xp.detach(), inside.detach(), right=True) - 1
    at = at.clamp(0, xp.shape[0] - 2)
    slope = (fp[at + 1] - fp[at]) / (xp[at + 1] - xp[at])
    found = fp[at] + slope * (inside - xp[at])
    for outside, value in ((x < xp[0], left), (x > xp[-1], right)):
        if value is not None:
            found = _call("where")(outside, _tensor(value, like), found)
    return found


@_of(np.polyval)
def polyval(p: Operand, x: Operand) -> Any:
    like = x if isinstance(x, Tensor) else p if isinstance(p, Tensor) else None
    x, p = _tensor(x, like), _tensor(p, like)
    found = x * 0
    for k in range(p.shape[0]):
        found = found * x + p[k]
    return found


def _of_pairs(name: str) -> Callable[..., Any]:
    """The function of that name, of two of which one may be a number."""

    def pair(a: Operand, b: Operand) -> Any:
        like = a if isinstance(a, Tensor) else b
        return _call(name)(_tensor(a, like), _tensor(b, like))

    return pair


for _name in ("logaddexp", "logaddexp2", "fmax", "fmin"):
    FUNCTIONS[getattr(np, _name)] = _of_pairs(_name)


@_of(np.heaviside)
def heaviside(x1: Operand, x2: Operand) -> Any:
    like = x1 if isinstance(x1, Tensor) else x2
    x, at_zero = _tensor(x1, like), _tensor(x2, like)
    where = _call("where")
    return where(x > 0, wrap(np.ones((), x.array.dtype)), where(x == 0, at_zero, x.detach() * 0))


@_of(np.cbrt)
def cbrt(x: Operand) -> Any:
    x = _tensor(x)
    return x.sign() * x.abs() ** (1 / 3)


@_of(np.full_like)
def full_like(a: Operand, fill_value: Operand, dtype: Any = None, **how: Any) -> Any:
    a = _tensor(a)
    value = (
        fill_value
        if isinstance(fill_value, Tensor)
        else wrap(np.asarray(fill_value, a.array.dtype))
    )
    return value.expand(a.shape)


def _reduction(name: str, start: float) -> Callable[..., Any]:
    """A reduction with NumPy's `where` and `initial`. start: what changes no result."""

    def reduced(
        a: Operand,
        axis: Axis = None,
        dtype: Any = None,
        out: None = None,
        keepdims: bool = False,
        initial: Operand = None,
        where: Operand = None,
    ) -> Any:
        a = _tensor(a)
        if axis is None and name == "sum" and dtype is where is initial is None and not keepdims:
            return a.sum()
        if dtype is not None:
            a = a.to(dtypes.of(np.dtype(dtype)))
        if where is not None:
            kept = _tensor(where)
            a = _call("where")(kept, a, wrap(np.asarray(start, a.array.dtype)))
        dims = (
            tuple(range(a.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        )
        dims = tuple([d % max(a.ndim, 1) for d in dims])
        found = _REDUCED[name](a, dims, bool(keepdims))
        if initial is None:
            return found
        return _REDUCED[f"{name} with"](found, _tensor(initial, a))

    return reduced


def _product(a: Operand, dims: tuple[int, ...], keep: bool) -> Any:
    for d in sorted(dims, reverse=True):
        a = _call("prod")(a, d, keepdim=keep)
    return a


_REDUCED: dict[str, Callable[..., Any]] = {
    "sum": lambda a, dims, keep: _call("sum")(a, dims, keepdim=keep) if dims else a,
    "sum with": lambda a, b: a + b,
    "prod": _product,
    "prod with": lambda a, b: a * b,
    "max": lambda a, dims, keep: _call("amax")(a, dims, keepdim=keep) if dims else a,
    "max with": lambda a, b: _call("maximum")(a, b),
    "min": lambda a, dims, keep: _call("amin")(a, dims, keepdim=keep) if dims else a,
    "min with": lambda a, b: _call("minimum")(a, b),
}
FUNCTIONS |= {np.sum: _reduction("sum", 0), np.prod: _reduction("prod", 1)}


def _extreme(name: str, start: float) -> Callable[..., Any]:
    reduced = _reduction(name, start)

    def extreme(
        a: Operand, axis: Axis = None, out: None = None, keepdims: bool = False, **how: Any
    ) -> Any:
        return reduced(a, axis, None, None, keepdims, **how)

    return extreme


FUNCTIONS |= {np.max: _extreme("max", -np.inf), np.min: _extreme("min", np.inf)}


@_of(np.mean)
def mean(
    a: Operand,
    axis: Axis = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: Operand = None,
) -> Any:
    a = _tensor(a)
    if axis is where is dtype is None and not keepdims:
        return a.mean()
    if where is None:
        dims = tuple(range(a.ndim)) if axis is None else axis
        return _call("mean")(a, dims, keepdim=bool(keepdims)) if dims != () else a
    kept = np.broadcast_to(np.asarray(where), tuple(a.shape))
    count = kept.sum(axis, keepdims=bool(keepdims))
    total = FUNCTIONS[np.sum](a, axis, dtype, None, keepdims, None, where)
    return total / wrap(np.asarray(count, a.array.dtype)[()])


def _of_degrees(x: Operand) -> Any:
    return _tensor(x) * (np.pi / 180)


def _in_degrees(x: Operand) -> Any:
    return _tensor(x) * (180 / np.pi)


FUNCTIONS |= dict.fromkeys((np.deg2rad, np.radians), _of_degrees)
FUNCTIONS |= dict.fromkeys((np.rad2deg, np.degrees), _in_degrees)
FUNCTIONS |= {
    np.float_power: lambda x, y: np.float64(1) * _tensor(x) ** y,
    np.nan_to_num: lambda x, copy=True, nan=0.0, posinf=None, neginf=None: _call("nan_to_num")(
        _tensor(x), nan, posinf, neginf
    ),
    np.ldexp: lambda x, y: _tensor(x) * 2.0 ** np.asarray(y),
    np.i0: lambda x: _call("special.i0")(_tensor(x)),
    np.correlate: lambda a, v, mode="valid": convolve(
        _tensor(a), _call("flip")(_tensor(v), (0,)), mode
    ),
}


@_of(np.cov)
def cov(
    m: Operand, y: Operand = None, rowvar: bool = True, bias: bool = False, ddof: Any = None
) -> Any:
    m = _tensor(m)
    rows = _rows(m, rowvar)
    if y is not None:
        rows = _call("cat")(_promoted(rows, _rows(_tensor(y), rowvar)), 0)
    rows = rows - rows.mean(1, keepdim=True)
    freedom = (0 if bias else 1) if ddof is None else ddof
    found = rows @ rows.T / (rows.shape[1] - freedom)
    return found.reshape(()) if m.ndim == 1 and y is None else found


def _rows(m: Any, rowvar: bool) -> Any:
    return m.reshape((1, -1)) if m.ndim == 1 else m if rowvar else m.T


@_of(np.corrcoef)
def corrcoef(x: Operand, y: Operand = None, rowvar: bool = True) -> Any:
    c = cov(x, y, rowvar)
    if c.ndim == 0:
        return c / c
    spread = c.diagonal().sqrt()
    return c / spread[:, None] / spread[None, :]


FUNCTIONS[np.sinc] = lambda x: _call("sinc")(_tensor(x))


__all__ = ["FUNCTIONS", "OF_SCIPY", "meaning"]
