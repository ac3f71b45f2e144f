"""Transforms of functions at NumPy's arrays and Python's numbers: arrays in, arrays out.

One rule: where a call has a tensor among its arguments, all is as PyTorch has it. Where it has none, but
arrays of NumPy's or numbers, the function runs on tensors of their dtypes (a number of Python's is a double,
or single beside arrays of single precision), and results are arrays. What is given is never written into.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.engine.core import modes, pytrees
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.engine.system.array_memory import ARRAYS


def takes_arrays(
    function: Callable[..., Any], numbers: Callable[[int], Sequence[int]]
) -> Callable[..., Any]:
    """The function, which is one of tensors, for arrays too.

    numbers: of how many arguments there are, the positions at which numbers of Python's are points.
    """

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if not _of_arrays((args, kwargs)):
            return function(*args, **kwargs)
        return _at_arrays(function, args, kwargs, numbers(len(args)))

    return called


def chosen(argnums: Any) -> Callable[[int], Sequence[int]]:
    """The positions that `argnums` names; none where it is wrong, which the function says."""

    def positions(count: int) -> Sequence[int]:
        wanted = argnums if isinstance(argnums, tuple) else (argnums,)
        return [i % count for i in wanted if isinstance(i, int) and -count <= i < count]

    return positions


def every(count: int) -> Sequence[int]:
    """All positions."""
    return range(count)


def none(count: int) -> Sequence[int]:
    """No position."""
    return ()


def _of_arrays(given: Any) -> bool:
    """Whether there is no tensor among the leaves, but an array or a number."""
    found = False
    for leaf in pytrees.flatten(given)[0]:
        if isinstance(leaf, Tensor):
            return False
        found = found or (isinstance(leaf, (np.ndarray, np.generic, float, int)))
    return found


def _at_arrays(function: Any, args: Any, kwargs: Any, points: Sequence[int]) -> Any:
    leaves = pytrees.flatten((args, kwargs))[0]
    kinds = {v.dtype.char for v in leaves if isinstance(v, (np.ndarray, np.generic))}
    real = np.float32 if "f" in kinds and not kinds & set("dD") else np.float64

    def tensor(value: Any, number: bool) -> Any:
        if isinstance(value, (np.ndarray, np.generic)):
            if value.dtype.kind not in "biufc":
                return value
            whole = number and value.dtype.kind in "iu"
            return wrap(np.array(value, real if whole else None)[()])
        if number and isinstance(value, (float, int)) and not isinstance(value, bool):
            return wrap(real(value))
        return value

    given = []
    for position, arg in enumerate(args):
        items, spec = pytrees.flatten(arg)
        made = [tensor(v, position in points) for v in items]
        given.append(pytrees.unflatten(made, spec))
    named_items, named_spec = pytrees.flatten(kwargs)
    named = pytrees.unflatten([tensor(v, False) for v in named_items], named_spec)
    with modes.no_number_may_leave():
        found = function(*given, **named)
    return _back(found)


def _back(value: Any) -> Any:
    """Results as arrays; a function among them (of `vjp`, `linearize`) for arrays, too."""
    leaves, spec = pytrees.flatten(value)
    return pytrees.unflatten([_array(v) for v in leaves], spec)


def _array(value: Any) -> Any:
    if isinstance(value, Tensor):
        # What another transform around this one follows stays a tensor.
        followed = value.requires_grad or value._tangents_at_work() or value.level is not None
        if followed or not isinstance(value.array, ARRAYS):
            return value
        return value.array[()] if value.array.ndim == 0 else value.array
    if callable(value) and not isinstance(value, type):
        return takes_arrays(value, every)
    return value


__all__ = ["chosen", "every", "none", "takes_arrays"]
