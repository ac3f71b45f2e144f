"""The dimensions that a function is given: checked, counted from the front, restored in gradients.

Helpers whose name says what PyTorch calls them work on arrays and tensors alike.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from gradcli.core.basic_primitives import axes as axes
from gradcli.core.basic_primitives import numpy_dtype as numpy_dtype
from gradcli.system.cascaded_sums import add_reduce


class _Absent:
    """Stands for an argument that was not given, where None means something else."""

    def __repr__(self) -> str:
        return "None"


ABSENT: Any = _Absent()

# NumPy's reductions of one array: faster than its functions and methods, and typed for what we pass.
multiply_reduce: Any = np.multiply.reduce


def are_few(array: Any, axis: Any) -> bool:
    """Whether an axis is the last one of a large array, and has few elements."""
    if type(array) is not np.ndarray or array.size <= 4096 or array.ndim < 2:
        return False
    last = array.ndim - 1
    return 1 < array.shape[-1] <= 16 and axis in (last, -1, (last,), (-1,))


def _over_few(ufunc: Any) -> Any:
    """A reduction of few elements at the end of many rows, turned block by block: ten times faster."""
    reduce = add_reduce if ufunc is np.add else ufunc.reduce

    def own(columns: Any, out: Any) -> None:
        """The reduction of columns, in the order in which NumPy takes the elements of a row."""
        if ufunc is not np.add or len(columns) < 8:
            reduce(columns, axis=0, out=out)
            return
        eight = columns[:8] if len(columns) < 16 else columns[:8] + columns[8:]
        pairs = eight[::2] + eight[1::2]
        np.add(pairs[0] + pairs[1], pairs[2] + pairs[3], out=out)
        for rest in columns[8:] if len(columns) < 16 else ():
            np.add(out, rest, out=out)

    def call(array: Any, axis: Any = None, **options: Any) -> Any:
        out = options.get("out")
        if not are_few(array, axis) or options.keys() - {"keepdims", "out"}:
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


_TURNED = 2048  # rows that stay in the fastest memory
maximum_reduce: Any = _over_few(np.maximum)
minimum_reduce: Any = _over_few(np.minimum)
sum_over_few: Any = _over_few(np.add)


def as_dims(dim: Any) -> Any:
    """A parameter `int[1] dim` as PyTorch saves it: a tuple, or None."""
    return (dim,) if isinstance(dim, int) else dim


def count(shape: tuple[int, ...], dim: tuple[int, ...] | None) -> int:
    """How many elements are reduced to one."""
    if not dim or not shape:
        return prod(shape)
    return prod([shape[d] for d in dim])


def integers(value: Any) -> bool:
    """True for arrays of booleans and integers, which sums widen to int64."""
    return value.dtype.kind in "biu"


class _Signed(int):
    """An integer that PyTorch saves as a Scalar, and shows with its sign."""


def signed(number: Any) -> Any:
    """`number` as an option that a node shows as it is."""
    return _Signed(number) if type(number) is int and number < 0 else number


def describe(function: Any, name: str, doc: str, module: str) -> None:
    """Name a function that was made inside another."""
    function.__name__ = function.__qualname__ = name
    function.__doc__, function.__module__ = doc, module


def not_differentiable(name: str) -> Any:
    """Refuse to run backward, in PyTorch's words."""
    raise NotImplementedError(f"the derivative for '{name}' is not implemented.")
