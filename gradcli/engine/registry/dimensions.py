"""Dims of reductions: their checks, fast reductions of few elements, and options that nodes show."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from gradcli.engine.core.basic_primitives import axes as axes
from gradcli.engine.core.basic_primitives import numpy_dtype as numpy_dtype
from gradcli.engine.core.declaration import Array, Ints
from gradcli.engine.system.cascaded_sums import add_reduce


class _Absent:
    """The default of an argument for which None has a meaning."""

    def __repr__(self) -> str:
        return "None"


ABSENT: Any = _Absent()

_SMALL = 4096  # elements that NumPy's own order is fast enough for

# The ufunc's reduce is faster than np.prod and the method.
multiply_reduce: Any = np.multiply.reduce


def are_few(array: Array, axis: Ints | int | None, small: int = _SMALL) -> bool:
    """Whether `axis` is the last one of a large array and has 2 to 16 elements."""
    return array.__class__ is np.ndarray and is_short(array.shape, axis, small)


def is_short(shape: tuple[int, ...], axis: Ints | int | None, small: int = _SMALL) -> bool:
    """The same of an array's shape."""
    last = len(shape) - 1
    if prod(shape) <= small or last < 1:
        return False
    return 1 < shape[-1] <= 16 and axis in (last, -1, (last,), (-1,))


def _over_few(ufunc: np.ufunc) -> Any:
    """A `ufunc.reduce` that transposes many short rows block by block: ten times faster on them."""
    reduce = add_reduce if ufunc is np.add else ufunc.reduce
    small = _SMALL if ufunc is np.add else _SMALL // 4  # NumPy's extrema are slower than its sums

    def own(columns: Array, out: Array) -> None:
        """Reduce over axis 0 in the order in which NumPy sums the elements of a row."""
        if ufunc is not np.add or len(columns) < 8:
            reduce(columns, axis=0, out=out)
            return
        eight = columns[:8] if len(columns) < 16 else columns[:8] + columns[8:]
        pairs = eight[::2] + eight[1::2]
        np.add(pairs[0] + pairs[1], pairs[2] + pairs[3], out=out)
        for rest in columns[8:] if len(columns) < 16 else ():
            np.add(out, rest, out=out)

    def call(array: Array, axis: Ints | int | None = None, **options: Any) -> Any:
        if array.size <= small:
            return reduce(array, axis=axis, **options)
        out = options.get("out")
        if not are_few(array, axis, small) or options.keys() - {"keepdims", "out"}:
            return reduce(array, axis=axis, **options)
        if not (out is None or out.flags.c_contiguous):
            return reduce(array, axis=axis, **options)
        if ufunc is np.add and not (array.flags.c_contiguous and array.dtype.char in "fd"):
            return reduce(array, axis=axis, **options)
        rows = array.reshape(-1, array.shape[-1])
        found = np.empty(len(rows), array.dtype) if out is None else out.reshape(-1)
        for k in range(0, len(rows), _TURNED):
            own(rows[k : k + _TURNED].T.copy(), found[k : k + _TURNED])
        found = found.reshape(array.shape[:-1])
        return found[..., None] if options.get("keepdims") else found

    call.__name__ = "reduce"
    setattr(call, "columns", own)
    return call


_TURNED = 2048  # rows that stay in the cache
maximum_reduce: Any = _over_few(np.maximum)
minimum_reduce: Any = _over_few(np.minimum)
sum_over_few: Any = _over_few(np.add)
OVER_FEW: dict[Any, Any] = {
    np.maximum.reduce: maximum_reduce,
    np.minimum.reduce: minimum_reduce,
    add_reduce: sum_over_few,
}


def as_dims(dim: Ints | int | None) -> Any:
    """A parameter `int[1] dim` as PyTorch saves it: a tuple, or None."""
    return (dim,) if isinstance(dim, int) else dim


def count(shape: tuple[int, ...], dim: tuple[int, ...] | None) -> int:
    """The number of elements that are reduced to one."""
    if not dim or not shape:
        return prod(shape)
    return prod([shape[d] for d in dim])


def integers(value: Array) -> bool:
    """True for bool and integer arrays, which are summed in int64."""
    return value.dtype.kind in "biu"


class _Signed(int):
    """An integer that PyTorch saves as a Scalar, and shows with its sign."""


def signed(number: float | None) -> Any:
    """`number` as an option that a node shows as it is."""
    return _Signed(number) if type(number) is int and number < 0 else number


def describe(function: Callable[..., Any], name: str, doc: str, module: str) -> None:
    """Set the name, docstring and module of a function that another one made."""
    function.__name__ = function.__qualname__ = name
    function.__doc__, function.__module__ = doc, module


def not_differentiable(name: str) -> Any:
    """A VJP rule that raises PyTorch's error: the derivative is not implemented."""
    from gradcli.engine.core.errors import NoRuleError

    raise NoRuleError(name)
