"""Abstract evaluation: the shape, dtype and layout of the results of NumPy calls, without the numbers."""

from __future__ import annotations

import contextlib
import math
import mmap
import operator
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np

from gradcli.engine.system.blocked_products import rows_dot, rows_product, rows_sum, vector_dot
from gradcli.engine.system.cascaded_sums import NARROW, add_reduce
from gradcli.language.located_errors import OPERATION_ERRORS
from gradcli.operators.primitives import lapack
from gradcli.transforms.tracing.numpy_program import (
    NumpyProgram,
    Operation,
    Untraceable,
    cast,
    fill,
    operands,
    replaced,
    spread,
)

ABSTRACT: list[Any] = []  # the class of abstract arrays, which is made on top of this module
_MAPPED = 1 << 24  # bytes from which on an array that nobody reads has no memory
_TRIAL = 100_000  # elements up to which a function is tried on ones to see its result's shape


def unread(shape: tuple[int, ...], dtype: Any) -> Any:
    """An array whose numbers are never read; a large one is backed by no memory."""
    kind = np.dtype(dtype)
    size = math.prod(shape) * kind.itemsize
    if size < _MAPPED or not hasattr(mmap, "MAP_PRIVATE"):
        return np.empty(shape, kind)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    try:
        memory = mmap.mmap(-1, size, flags=flags, prot=mmap.PROT_READ)
    except (OSError, OverflowError):
        return np.empty(shape, kind)
    return np.ndarray(shape, kind, memory)


def outline(shape: tuple[int, ...], dtype: Any, strides: Any = None) -> Any:
    """An array of which only views may be made: a large one has no memory, nor addresses."""
    kind = np.dtype(dtype)
    if strides is None:
        if math.prod(shape) * kind.itemsize < _MAPPED:
            return np.empty(shape, kind)
        strides = tuple(math.prod(shape[i + 1 :]) * kind.itemsize for i in range(len(shape)))
    return np.lib.stride_tricks.as_strided(np.empty((), kind), shape, strides)


def blank(op: Operation, copied: bool = False) -> Any:
    """An array of the operation's shape, dtype and layout.

    copied: it may be read, as where another shape needs a copy; else no more than views may be made of it.
    """
    if op.contiguous or op.strides is None:
        return (unread if copied else outline)(op.shape, op.dtype)
    if not copied:
        return outline(op.shape, op.dtype, op.strides)
    span = sum(s * (n - 1) for s, n in zip(op.strides, op.shape, strict=True) if n > 1)
    if min(op.strides, default=0) < 0:
        return np.empty(op.shape, op.dtype)[tuple(slice(None, None, -1) for _ in op.shape)]
    memory = np.empty(span // op.dtype.itemsize + 1, op.dtype)
    return np.ndarray(op.shape, op.dtype, memory, 0, op.strides)


def _kind_of(argument: Any) -> Any:
    if type(argument) is Operation:
        return argument.dtype
    if type(argument) in (int, float, complex):
        return type(argument)
    return np.asarray(argument).dtype


def elementwise(
    graph: NumpyProgram, function: Any, args: tuple[Any, ...], ufunc: Any = None
) -> Operation:
    """Record an elementwise function of the operands."""
    ufunc = ufunc or function
    kinds = tuple(_kind_of(a) for a in args)
    dtype = ufunc.resolve_dtypes((*kinds, None))[-1]
    given = tuple(a if type(a) is Operation or _is_number(a) else graph.constant(a) for a in args)
    shapes = [a.shape for a in given if type(a) is Operation]
    shape = shapes[0]
    for s in shapes[1:]:
        if s != shape:
            shape = np.broadcast_shapes(*shapes)
            break
    if function is np.conjugate and dtype.kind != "c":
        return given[0]
    if function is np.subtract and _alone(given[0]):
        put, array = given
        if type(array) is Operation and (array.shape, array.dtype) == (put.shape, put.dtype):
            args = (array, *put.args[1:])
            return graph.put("whole", put_less, args, None, shape, dtype, _in_order((array,)))
    given = _unfilled(given, shape)
    return graph.put("elementwise", function, given, None, shape, dtype, _in_order(given))


def _unfilled(args: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[Any, ...]:
    """The operands, with filled arrays replaced by their value if the result is the same."""
    others = [a for a in operands(args) if a.shape and a.kind != "fill"]
    if not any(a.shape == shape for a in others):
        return args
    in_order = all(a.ordered for a in others)
    return tuple(
        a.args[0]
        if type(a) is Operation and a.kind == "fill" and (in_order or a.function is spread)
        else a
        for a in args
    )


def _is_number(value: Any) -> bool:
    return type(value) in (int, float, complex, bool)


def _in_order(args: tuple[Any, ...]) -> bool:
    """Whether the result is contiguous: NumPy follows the layout of the operands."""
    return all(a.ordered for a in operands(args) if a.shape)


def reduction(
    graph: NumpyProgram, ufunc: Any, args: tuple[Any, ...], options: dict[str, Any]
) -> Operation:
    """A ufunc's reduction along axes."""
    a = args[0]
    options = dict(options)
    for name, value in zip(("axis", "dtype"), args[1:], strict=False):
        options[name] = value
    axis = options.get("axis", 0)
    dtype = options.get("dtype")
    keepdims = bool(options.get("keepdims", False))
    if "initial" in options:
        raise Untraceable("a reduction with an initial value")
    if axis is None:
        axes: tuple[int, ...] = tuple(range(a.ndim))
    else:
        axes = tuple(
            sorted(int(x) % a.ndim for x in (axis if isinstance(axis, tuple) else (axis,)))
        )
    found = ufunc.reduce(np.ones((1,) * a.ndim, a.dtype), axis=None, dtype=dtype)
    if keepdims:
        shape = tuple(1 if i in axes else n for i, n in enumerate(a.shape))
    else:
        shape = tuple(n for i, n in enumerate(a.shape) if i not in axes)
    if not a.size and ufunc.identity is None:
        raise Untraceable("a reduction of nothing")
    if a.function is fill and a.ndim > 1 and a.ndim - 1 not in axes and a.shape[-1] > NARROW:
        return _narrow(graph, ufunc, a, axis, dtype, keepdims, shape)
    if ufunc is np.add and _alone(a) and axes == (a.args[3] % a.ndim,) and a.shape[axes[0]] > 1:
        return _sum_of_one(graph, a.args[2], shape, found.dtype)
    named = {"axis": axis if axis is None or isinstance(axis, tuple) else int(axis)}
    if dtype is not None:
        named["dtype"] = np.dtype(dtype)
    if keepdims:
        named["keepdims"] = True
    contiguous = a.contiguous or a.kind == "fill" or len(shape) < 2
    function = add_reduce if ufunc is np.add else ufunc.reduce
    return graph.put(
        "reduce", function, (a,), named, shape, found.dtype, contiguous, axes, keepdims
    )


def _sum_of_one(
    graph: NumpyProgram, value: Operation, shape: tuple[int, ...], dtype: Any
) -> Operation:
    """The sum of one number: -0 becomes 0."""
    made = elementwise(graph, np.add, (value, graph.constant(value.dtype.type(0))))
    if dtype != made.dtype:
        made = graph.put("elementwise", cast, (made, dtype), None, made.shape, dtype)
    return view(graph, made, "reshape", (shape,), {})


def _narrow(
    graph: NumpyProgram,
    ufunc: Any,
    a: Operation,
    axis: Any,
    dtype: Any,
    keepdims: bool,
    shape: tuple[int, ...],
) -> Operation:
    """The reduction of an array with equal columns: computed for a few of them, then repeated."""
    options = {"axis": axis, "dtype": dtype, "keepdims": keepdims}
    given = {k: v for k, v in options.items() if v is not None}
    few = _few(graph, a, NARROW)
    return _alike(graph, reduction(graph, ufunc, (few,), given), shape)


def _few(graph: NumpyProgram, a: Operation, columns: int) -> Operation:
    return graph.put("fill", spread, (a.args[0], (*a.shape[:-1], columns)))


def _alike(graph: NumpyProgram, some: Operation, shape: tuple[int, ...]) -> Operation:
    """The first column repeated to this shape."""
    one = indexed(graph, some, (..., slice(0, 1)))
    assert one is not None
    return _broadcast_to(graph, one, shape)


_FEWEST = 16  # columns of sums in whose order it does not matter how many there are


def _rows_summed(graph: NumpyProgram, a: Operation) -> Operation:
    shape = (1, a.shape[1])
    if a.function is fill and a.shape[1] > _FEWEST:
        return _alike(graph, _rows_summed(graph, _few(graph, a, _FEWEST)), shape)
    return graph.put("whole", rows_sum, (a,), None, shape, a.dtype)


# -- views ----------------------------------------------------------------------------------------
def _method(array: Any, name: str, *args: Any, **options: Any) -> Any:
    found = getattr(array, name)
    return found(*args, **options) if callable(found) else found


class MethodCall:
    """A function that calls a method of its first argument; the same one for a name, in every process."""

    __slots__ = ("__name__",)
    _known: ClassVar[dict[str, MethodCall]] = {}

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, array: Any, *args: Any, **options: Any) -> Any:
        return _method(np.asarray(array), self.__name__, *args, **options)

    def __reduce__(self) -> Any:
        return method_call, (self.__name__,)


def method_call(name: str) -> MethodCall:
    """The one function that calls this method."""
    return MethodCall._known.setdefault(name, MethodCall(name))


def view(graph: NumpyProgram, op: Operation, name: str, args: Any, options: Any) -> Operation:
    """The result of a method that gives a view (or a copy, where there is none)."""
    copied = not op.contiguous and name in ("reshape", "ravel")
    trial = _method(blank(op, copied), name, *args, **options)
    shape = tuple(trial.shape)
    if shape == op.shape and (
        name in ("reshape", "squeeze", "ravel")
        or (name in ("transpose", "swapaxes") and op.contiguous and trial.flags.c_contiguous)
    ):
        return op
    if op.kind == "fill" and name != "real":
        return graph.put("fill", op.function, (op.args[0], shape))
    contiguous = bool(trial.flags.c_contiguous) and has_layout(op)
    if op.contiguous and name in ("squeeze", "ravel"):
        name, args, options = "reshape", (shape,), {}
    return graph.put(
        "view",
        method_call(name),
        (op, *args),
        options,
        shape,
        trial.dtype,
        contiguous,
        strides=None if contiguous or not has_layout(op) else trial.strides,
    )


def has_layout(op: Operation) -> bool:
    return op.contiguous or op.strides is not None


def indexed(graph: NumpyProgram, op: Operation, index: Any) -> Operation | None:
    """`array[index]`; None where the shape would depend on numbers that are not known."""
    advanced = False
    for part in index if type(index) is tuple else (index,):
        if type(part) is Operation:
            if part.kind != "constant" and part.dtype.kind == "b":
                return None
            advanced = True
        elif isinstance(part, list):
            advanced = True
    if not advanced:
        inside = index if type(index) is tuple else (index,)
        whole = any(part is Ellipsis for part in inside)
        trial = blank(op)[inside if whole else (*inside, ...)]  # a view, never a number
        if not trial.ndim:
            return graph.put("view", operator.getitem, (op, index), None, (), op.dtype)
        if trial.shape == op.shape and trial.strides == blank(op).strides and has_layout(op):
            return op
        if op.kind == "fill":
            return graph.put("fill", op.function, (op.args[0], tuple(trial.shape)))
        contiguous = bool(trial.flags.c_contiguous) and has_layout(op)
        return graph.put(
            "view",
            operator.getitem,
            (op, index),
            None,
            tuple(trial.shape),
            op.dtype,
            contiguous,
            strides=None if contiguous or not has_layout(op) else trial.strides,
        )
    known = replaced(index, _stand_in)
    trial = np.broadcast_to(np.empty((), op.dtype), op.shape)[known]
    return graph.put(
        "whole",
        operator.getitem,
        (op, index),
        None,
        tuple(trial.shape),
        op.dtype,
        False,
        strides=trial.strides,
    )


def _stand_in(op: Operation) -> Any:
    return op.args[0] if op.kind == "constant" else np.zeros(op.shape, op.dtype)


def written(array: Any, index: Any, value: Any) -> Any:
    """A copy of the array, with `value` at `index`."""
    array = np.array(array)
    array[index] = value
    return array


def put_along(array: Any, indices: Any, values: Any, axis: int) -> Any:
    """A copy of the array, with values put along an axis."""
    array = np.array(array)
    np.put_along_axis(array, indices, values, axis)
    return array


def put_less(array: Any, indices: Any, values: Any, axis: int, out: Any = None) -> Any:
    """Zeros with values put along an axis, one in each slice, minus an array."""
    there = at_each(indices, axis)
    put = values - array[there]
    made = np.subtract(0, array, out=out)
    made[there] = put
    return made


def at_each(indices: Any, axis: int) -> tuple[Any, ...]:
    """The index with which `np.take_along_axis` reads."""
    if axis == 1 and indices.ndim == 2:  # what the rest comes to, for rows
        return np.arange(len(indices))[:, None], indices
    grid = list(np.indices(indices.shape, sparse=True))
    grid[axis] = indices
    return tuple(grid)


def _alone(o: Any) -> bool:
    """Whether an array is zeros with one number put into each slice along an axis."""
    if type(o) is not Operation or o.function is not put_along or o.dtype.char not in "fd":
        return False
    array, indices, values, axis = o.args
    if array.kind != "fill" or array.args[0].kind != "constant" or type(values) is not Operation:
        return False
    zero = array.args[0].args[0]
    alike = values.dtype == o.dtype and values.shape == indices.shape
    return bool(alike and indices.shape[axis] == 1 and zero == 0 and not np.signbit(zero))


# -- functions whose result is known without running them ---------------------------------------
def _dtype_or(value: Any) -> Any:
    return value.dtype if type(value) in ABSTRACT else value


FACTS: dict[Any, Any] = {
    np.ndim: lambda a: len(a.shape),
    np.shape: lambda a: a.shape,
    np.size: lambda a, axis=None: a.size if axis is None else a.shape[axis],
    np.result_type: lambda *args: np.result_type(*map(_dtype_or, args)),
    np.can_cast: lambda a, to, casting="safe": np.can_cast(_dtype_or(a), to, casting),
    np.iscomplexobj: lambda a: a.dtype.kind == "c",
    np.isrealobj: lambda a: a.dtype.kind != "c",
    np.may_share_memory: lambda *args, **options: False,
    np.shares_memory: lambda *args, **options: False,
}


def _uniform(value: int) -> Any:
    def make(
        graph: NumpyProgram, a: Any, dtype: Any = None, order: str = "K", **options: Any
    ) -> Operation:
        if options:
            raise Untraceable("options of a filled array")
        kind = np.dtype(dtype if dtype is not None else a.dtype)
        return graph.put("fill", fill, (graph.constant(kind.type(value)), a.shape))

    return make


def _copied(graph: NumpyProgram, a: Any, order: str = "K", **options: Any) -> Operation:
    if a.shape and not a.contiguous:
        raise Untraceable("a copy of an array that does not lie in order")
    return a  # type: ignore[no-any-return]


def _full_like(
    graph: NumpyProgram, a: Any, value: Any, dtype: Any = None, **options: Any
) -> Operation:
    kind = np.dtype(dtype if dtype is not None else a.dtype)
    if type(value) is Operation:
        raise Untraceable("a filled array of a value that is not known")
    return graph.put("fill", fill, (graph.constant(kind.type(value)), a.shape))


FRESH: dict[Any, Any] = {
    np.zeros_like: _uniform(0),
    np.ones_like: _uniform(1),
    np.full_like: _full_like,
    np.copy: _copied,
}


def _where(graph: NumpyProgram, condition: Any, *given: Any) -> Operation:
    if len(given) != 2:
        raise Untraceable("the shape depends on the numbers")
    kinds = [g.dtype if type(g) is Operation else g for g in given]
    dtype = np.result_type(*kinds)
    args = tuple(
        a if type(a) is Operation or _is_number(a) else graph.constant(a)
        for a in (condition, *given)
    )
    shape = np.broadcast_shapes(*[a.shape for a in args if type(a) is Operation])
    args = _unfilled(args, shape)
    return graph.put("elementwise", np.where, args, None, shape, dtype, _in_order(args))


def _broadcast_to(graph: NumpyProgram, a: Any, shape: Any, subok: bool = False) -> Operation:
    shape = tuple(shape) if not isinstance(shape, int) else (shape,)
    if a.shape == shape:
        return a  # type: ignore[no-any-return]
    if not a.shape or a.kind == "fill":
        return graph.put("fill", spread, (a if not a.shape else a.args[0], shape))
    trial = np.broadcast_to(blank(a), shape)
    return graph.put(
        "view", np.broadcast_to, (a, shape), None, shape, a.dtype, False, strides=trial.strides
    )


def repeat_to(array: Any, shape: tuple[int, ...]) -> Any:
    """The elements repeated to a shape, in memory of their own."""
    made = np.empty(shape, array.dtype)
    made[...] = array
    return made


def repeated(graph: NumpyProgram, a: Operation, shape: tuple[int, ...]) -> Operation:
    """The elements repeated to a shape, in memory of their own."""
    np.broadcast_shapes(a.shape, shape)
    return graph.put("whole", repeat_to, (a, shape), None, shape, a.dtype)


def _viewer(name: str) -> Any:
    def make(graph: NumpyProgram, a: Any, *args: Any, **options: Any) -> Operation:
        return view(graph, a, name, args, options)

    return make


def _expand_dims(graph: NumpyProgram, a: Any, axis: Any) -> Operation:
    return view(graph, a, "reshape", (np.expand_dims(blank(a), axis).shape,), {})


def _moveaxis(graph: NumpyProgram, a: Any, source: Any, destination: Any) -> Operation:
    order = np.moveaxis(np.empty(range(2, 2 + a.ndim)), source, destination).shape
    return view(graph, a, "transpose", (tuple(n - 2 for n in order),), {})


def _flip(graph: NumpyProgram, a: Any, axis: Any = None) -> Operation:
    chosen = range(a.ndim) if axis is None else (axis if isinstance(axis, tuple) else (axis,))
    at = {x % a.ndim for x in chosen}
    index = tuple(slice(None, None, -1 if i in at else None) for i in range(a.ndim))
    found = indexed(graph, a, index)
    assert found is not None
    return found


def _concatenate(graph: NumpyProgram, arrays: Any, axis: Any = 0, **options: Any) -> Operation:
    if options or axis is None:
        raise Untraceable("options of concatenate")
    parts = [p if type(p) is Operation else graph.constant(p) for p in arrays]
    at = axis % parts[0].ndim
    shape = list(parts[0].shape)
    shape[at] = sum(p.shape[at] for p in parts)
    dtype = np.result_type(*[p.dtype for p in parts])
    ordered = all(p.ordered for p in parts)
    return graph.put("whole", np.concatenate, (parts, axis), None, tuple(shape), dtype, ordered)


def _stack(graph: NumpyProgram, arrays: Any, axis: Any = 0) -> Operation:
    parts = [p if type(p) is Operation else graph.constant(p) for p in arrays]
    at = axis % (parts[0].ndim + 1)
    shape = (*parts[0].shape[:at], 1, *parts[0].shape[at:])
    made = _concatenate(graph, [view(graph, p, "reshape", (shape,), {}) for p in parts], at)
    if made.contiguous:
        return made
    return graph.put("whole", np.array, (made,), {"order": "C"}, made.shape, made.dtype)


MEANS = "fdFD"  # of which a mean is the sum divided by the count


def _mean(graph: NumpyProgram, a: Any, axis: Any = None, **options: Any) -> Operation:
    if a.dtype.char not in MEANS or "dtype" in options:
        raise Untraceable("a mean of these")
    total = reduction(graph, np.add, (a,), {"axis": axis, **options})
    return elementwise(graph, np.divide, (total, a.size // max(total.size, 1)))


def _count_nonzero(graph: NumpyProgram, a: Any, axis: Any = None, **options: Any) -> Operation:
    there = a if a.dtype.kind == "b" else elementwise(graph, np.not_equal, (a, 0))
    named = {"axis": axis, "dtype": np.dtype(np.intp), **options}
    return reduction(graph, np.add, (there,), named)


def _sum(graph: NumpyProgram, a: Any, axis: Any = None, **options: Any) -> Operation:
    return reduction(graph, np.add, (a,), {"axis": axis, **options})


_clip_ufunc: Any = np._core.umath.clip  # type: ignore[attr-defined]


def _clip(
    graph: NumpyProgram, a: Any, low: Any = None, high: Any = None, **options: Any
) -> Operation:
    if options or low is None or high is None:
        raise Untraceable("options of clip")
    return elementwise(graph, _clip_ufunc, (a, low, high))


SPECIAL: dict[Any, Any] = {
    np.where: _where,
    np.broadcast_to: _broadcast_to,
    np.reshape: _viewer("reshape"),
    np.transpose: _viewer("transpose"),
    np.swapaxes: _viewer("swapaxes"),
    np.squeeze: _viewer("squeeze"),
    np.ravel: _viewer("ravel"),
    np.expand_dims: _expand_dims,
    np.moveaxis: _moveaxis,
    np.flip: _flip,
    np.concatenate: _concatenate,
    np.stack: _stack,
    np.count_nonzero: _count_nonzero,
    np.mean: _mean,
    np.sum: _sum,
    np.clip: _clip,
}

# Functions whose result shape follows from the operand shapes alone.
_STEADY = frozenset(
    [
        *(np.cumsum, np.cumprod, np.sort, np.argsort, np.take_along_axis, np.stack, np.outer),
        *(np.einsum, np.tensordot, np.tril, np.triu, np.trace, np.diagonal, np.diag, np.roll),
        *(np.tile, np.kron, np.inner, np.vdot, np.cross, np.diff, np.argmax, np.argmin, np.mean),
        *(np.var, np.std, np.max, np.min, np.prod, np.nan_to_num, np.real, np.imag, np.isclose),
        *(np.linalg.inv, np.linalg.det, np.linalg.solve, np.linalg.cholesky, np.linalg.norm),
        *(np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft, np.angle, np.rot90, np.sinc),
        *(np.maximum.accumulate, np.minimum.accumulate, np.add.accumulate),
        *(np.logaddexp.reduce, np.partition, np.median, np.searchsorted, np.round, np.i0),
        *(np.vecdot, np.take, np.pad, np.fft.fftn, np.fft.ifftn, np.fft.rfftn, np.fft.irfftn),
        *(np.add.accumulate, np.multiply.accumulate, np.argpartition, np.linalg.matrix_rank),
        *(np.logical_or.accumulate, np.logaddexp.accumulate, np.count_nonzero, np.fft.fftshift),
        *(method_call("trace"), method_call("mean"), method_call("var"), np.fft.ifftshift),
        *(lapack.solve_lu, lapack.solve_adjoint),
    ]
)


def called(
    graph: NumpyProgram, function: Any, args: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """Record a call on whole arrays; None if the shape of its result is not known."""
    rule = _PRODUCTS.get(function)
    shape: Any
    if rule is not None and not options:
        a, b = (v if type(v) is Operation else graph.constant(v) for v in args)
        shape, dtype = rule(a.shape, b.shape), np.result_type(a.dtype, b.dtype)
        contiguous = len(shape) < 3 or (a.contiguous and b.contiguous)
        return graph.put("whole", function, (a, b), None, shape, dtype, contiguous)
    if function is rows_sum:
        return _rows_summed(graph, args[0])
    if function not in _STEADY:
        return None
    total = sum(o.size for o in operands((*args, *options.values())))
    if total > _TRIAL:
        return _large(graph, function, args, options)
    given = replaced(args, _ones)
    named = {k: replaced(v, _ones) for k, v in options.items()}
    try:
        with np.errstate(all="ignore"):
            trial = function(*given, **named)
    except OPERATION_ERRORS as error:
        raise Untraceable(str(error)) from error
    if not isinstance(trial, (np.ndarray, np.generic)):
        return None
    return _put_trial(graph, function, args, options, trial)


def _put_trial(
    graph: NumpyProgram, function: Any, args: Any, options: Any, trial: Any
) -> Operation:
    # A result may follow the layout of its operands: only of ordered ones is it known.
    ordered = all(o.ordered for o in operands(args) if o.shape)
    contiguous = not trial.ndim or (ordered and bool(trial.flags.c_contiguous))
    strides = None if contiguous or not ordered else trial.strides
    shape = tuple(trial.shape)
    return graph.put(
        "whole", function, args, options, shape, trial.dtype, contiguous, strides=strides
    )


def _large(
    graph: NumpyProgram, function: Any, args: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    """Record a call on large operands, for functions whose result shapes are certain."""
    if function is np.take_along_axis:
        a, indices = args[0], args[1]
        axis = args[2] if len(args) > 2 else options.get("axis", -1)
        if axis is None:
            return None
        at = axis % a.ndim
        shape = tuple(indices.shape[i] if i == at else n for i, n in enumerate(a.shape))
        ordered = bool(a.ordered and indices.ordered)
        return graph.put("whole", function, args, options, shape, a.dtype, ordered)
    a = args[0]
    if function is np.argsort and options.get("axis") is not None:
        return graph.put("whole", function, args, options, a.shape, np.dtype(np.int64), a.ordered)
    if function in (np.argmax, np.argmin):
        axis, kept = options.get("axis"), (1,) * bool(options.get("keepdims"))
        if axis is None or axis < 0 or len(args) > 1:
            return None
        shape = (*a.shape[:axis], *kept, *a.shape[axis + 1 :])
        return graph.put("whole", function, args, options, shape, np.dtype(np.int64), True)
    if getattr(function, "__name__", "") == "accumulate" and options.get("axis") is not None:
        found = function(np.ones((1,) * a.ndim, a.dtype), **options).dtype
        return graph.put("whole", function, args, options, a.shape, found, bool(a.ordered))
    if function not in (np.cumsum, np.cumprod) or a.dtype.kind not in "fc" or options:
        return None
    if len(args) < 2 or args[1] is None:
        return None
    return graph.put("whole", function, args, None, a.shape, a.dtype, bool(a.ordered))


def _ones(op: Operation) -> Any:
    if op.kind == "constant":
        return op.args[0]
    if not op.shape:
        return op.dtype.type(1)
    if op.dtype.kind in "iub":
        return np.zeros(op.shape, op.dtype)
    # No two elements equal, and square matrices invertible.
    made = np.ones(op.shape, op.dtype)
    if op.ndim > 1 and op.shape[-1] == op.shape[-2]:
        made[...] = np.eye(op.shape[-1])
    return made


def _matmul_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    if len(a) == 1:
        return (*_matmul_shape((1, *a), b)[:-2], b[-1]) if len(b) > 1 else ()
    if len(b) == 1:
        return a[:-1]
    if a[-1] != b[-2]:
        raise Untraceable("shapes that do not match")
    return (*np.broadcast_shapes(a[:-2], b[:-2]), a[-2], b[-1])


def _dot_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    if not a or not b:
        return a or b
    if a[-1] != (b[-2] if len(b) > 1 else b[0]):
        raise Untraceable("shapes that do not match")
    return a[:-1] + b[:-2] + (b[-1:] if len(b) > 1 else ())


_PRODUCTS: dict[Any, Any] = {
    np.matmul: _matmul_shape,
    np.dot: _dot_shape,
    rows_dot: _dot_shape,
    vector_dot: _dot_shape,
    np.vdot: lambda a, b: (),
    rows_product: lambda a, b: (a[1], b[1]),
}


# -- kernels of primitives that cannot be recorded from within ------------------------------------------
class PrimitiveCall:
    """A primitive's kernel as one function, for operations on whole arrays."""

    __slots__ = ("__name__", "primitive")
    _known: ClassVar[dict[Any, PrimitiveCall]] = {}

    def __init__(self, primitive: Any) -> None:
        self.primitive, self.__name__ = primitive, primitive.name

    def __call__(self, *operands: Any) -> Any:
        given = list(operands)
        if self.primitive.view:  # as the engine does it
            given[0] = np.asarray(given[0])
        return self.primitive.compute(given)

    @classmethod
    def of(cls, primitive: Any) -> PrimitiveCall:
        """The one function of a primitive."""
        return cls._known.setdefault(id(primitive), cls(primitive))


def with_value_check(check: Callable[..., None], array: Any, told: Any, *facts: Any) -> Any:
    """The array, after the check of some numbers has raised no error."""
    check(told, *facts)
    return array


def pick(values: Any, index: int) -> Any:
    """One of several results."""
    return values[index]


class AbstractEvaluation:
    """The result of evaluating a primitive abstractly along a batch dimension.

    axes: where its results have that dimension. results: its results for four entries.
    """

    __slots__ = ("axes", "results")

    def __init__(self, axes: list[int], results: list[Any]) -> None:
        self.axes, self.results = axes, results


def evaluate_abstractly(
    primitive: Any, args: tuple[Any, ...], axis: int
) -> AbstractEvaluation | None:
    """How a primitive treats an axis of its first operand as a batch dimension; None if it mixes entries.

    A primitive whose `axes` name the dimensions along which it works treats all others as a batch. So does
    one of the last dimensions (`leading`) with the first. A probe with four entries of random numbers shows
    where the dimension is in the results.
    """
    first = args[0]
    if primitive.sizes or primitive.view or primitive.kinds[0] == "list":
        return None
    if not (primitive.axes or (primitive.batching == "leading" and axis == 0)):
        return None
    for word in primitive.axes.split():
        dims = args[primitive.position[word.strip("+*")]]
        every = dims if isinstance(dims, (tuple, list)) else (dims,)
        if word.startswith("+") or not every or not all(type(d) is int for d in every):
            return None
        if any(d % first.ndim == axis for d in every):
            return None
    numbers = np.random.default_rng(0)

    def entries(a: Operation) -> Any:
        if not a.shape or a.ndim != first.ndim or a.shape[axis] == 1:
            return _ones(a)
        shape = tuple(4 if i == axis else n for i, n in enumerate(a.shape))
        if a.shape[axis] != first.shape[axis] or math.prod(shape) > _TRIAL:
            raise ValueError("its operands have different numbers of rows")
        if a.dtype.kind not in "fc":
            return np.zeros(shape, a.dtype)
        made = numbers.standard_normal(shape)
        if len(shape) > 2 and shape[-1] == shape[-2]:  # matrices that are invertible, even positive
            made = made / (9 * shape[-1]) + np.eye(shape[-1])
        return made.astype(a.dtype)

    def some(a: Any, which: slice) -> Any:
        if not isinstance(a, np.ndarray) or a.ndim != first.ndim or a.shape[axis] != 4:
            return a
        return a[(slice(None),) * axis + (which,)]

    try:
        stand_ins = [replaced(a, entries) for a in args]
        whole, one, other = (
            _several(PrimitiveCall.of(primitive)(*[some(a, which) for a in stand_ins]))
            for which in (slice(None), slice(0, 2), slice(2, 4))
        )
    except OPERATION_ERRORS:
        return None
    axes = []
    for all_of_them, *halves in zip(whole, one, other, strict=True):
        shape, half = np.shape(all_of_them), np.shape(halves[0])
        places = [i for i, (n, m) in enumerate(zip(shape, half, strict=True)) if n != m]
        if len(places) != 1 or shape[places[0]] != 4:
            return None
        if not np.allclose(np.concatenate(halves, places[0]), all_of_them, equal_nan=True):
            return None
        axes.append(places[0])
    return AbstractEvaluation(axes, whole)


def _several(found: Any) -> list[Any]:
    return list(found) if isinstance(found, (tuple, list)) else [found]


def _probe(primitive: Any, args: tuple[Any, ...], given: list[Operation]) -> Any:
    """What a primitive gives for stand-ins of its operands, or for as many entries as there may
    be; else None."""
    size = 0
    if not primitive.view:
        size = sum(o.size for o in given)
        with contextlib.suppress(ValueError):  # shapes that do not broadcast
            size = max(size, math.prod(np.broadcast_shapes(*[o.shape for o in given])))
    if not primitive.view and any(o.dtype.kind == "b" and o.kind != "constant" for o in given):
        return None
    if size <= _TRIAL:
        with np.errstate(all="ignore"):
            return PrimitiveCall.of(primitive)(
                *[
                    replaced(a, partial(blank, copied=True) if primitive.view else _ones)
                    for a in args
                ]
            )
    first = args[0]
    if type(first) is not Operation or not first.ndim:
        return None
    axis = max(range(first.ndim), key=lambda i: first.shape[i])
    found = evaluate_abstractly(primitive, args, axis)
    if found is None:
        return None
    rows, wide = first.shape[axis], []
    for at, part in zip(found.axes, found.results, strict=True):
        shape = tuple(rows if i == at else n for i, n in enumerate(part.shape))
        wide.append(unread(shape, part.dtype))
    return wide[0] if primitive.returns_one else wide


def row_called(graph: NumpyProgram, primitive: Any, operands_: list[Any]) -> Any:
    """Record a primitive's kernel as one call on whole arrays; None if result shapes are not known."""
    args = tuple(operands_)
    given = list(operands(args))
    if primitive.dynamic == "always":
        return None
    try:
        trial = _probe(primitive, args, given)
    except OPERATION_ERRORS:
        return None
    kind = "view" if primitive.view else "whole"
    function = PrimitiveCall.of(primitive)
    if isinstance(trial, (np.ndarray, np.generic)):
        shape = tuple(trial.shape)
        told = all(o.ordered for o in given) or (primitive.view and all(map(has_layout, given)))
        known = not trial.ndim or (bool(trial.flags.c_contiguous) and told)
        strides = trial.strides if primitive.view and told and not known else None
        return graph.put(kind, function, args, None, shape, trial.dtype, known, strides=strides)
    if not isinstance(trial, (tuple, list)) or not all(
        isinstance(t, (np.ndarray, np.generic)) for t in trial
    ):
        return None
    every = graph.put("whole", function, args, None, (len(trial),), np.dtype(object), False)
    return [
        graph.put("view", pick, (every, i), None, tuple(t.shape), t.dtype, not t.ndim)
        for i, t in enumerate(trial)
    ]


__all__ = [
    "called",
    "elementwise",
    "evaluate_abstractly",
    "indexed",
    "math",
    "reduction",
    "row_called",
    "view",
]
