"""Transforms of functions at NumPy's arrays and Python's numbers: arrays in, arrays out.

One rule: where a call has a tensor among its arguments, all is as PyTorch has it. Where it has none, but
arrays of NumPy's or numbers, the function runs on tensors of their dtypes (a number of Python's is a double,
or single beside arrays of single precision), and results are arrays. What is given is never written into.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from gradcli.engine.core import modes, pytrees
from gradcli.engine.core.errors import EngineError
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.engine.system.array_memory import ARRAYS
from gradcli.engine.system.given_arrays import array_of
from gradcli.language.error_remedies import of_library
from gradcli.operators.composites.followed_arrays import (
    arguments,
    followed,
    holds_followed,
    unfollowed,
)
from gradcli.transforms import numpy_meaning


class _Call(threading.local):
    of_arrays = False  # a transform at arrays is open, and has not called its function yet


_call = _Call()


def at_arrays() -> bool:
    """Whether the transform that is called was given arrays."""
    return _call.of_arrays


_NUMBERS = (np.generic, float, int, Decimal, Fraction)


def takes_arrays(
    function: Callable[..., Any], numbers: Callable[[int], Sequence[int]]
) -> Callable[..., Any]:
    """The function, which is one of tensors, for arrays too.

    numbers: of how many arguments there are, the positions at which numbers of Python's are points.
    """

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if holds_followed((args, kwargs)):  # within a function of arrays
            before, _call.of_arrays = _call.of_arrays, True
            try:
                return followed(function(*unfollowed(args), **unfollowed(kwargs)))
            finally:
                _call.of_arrays = before
        if not _of_arrays((args, kwargs)):
            return function(*args, **kwargs)
        return _at_arrays(function, args, kwargs, numbers(len(args)))

    called.takes_arrays = True  # type: ignore[attr-defined]
    return called


def users(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that a transform is of, as the transform calls it: at arrays, as a function of arrays.

    Raises ValueError where it gives something else of tensors.
    """
    if hasattr(function, "takes_arrays"):
        return function  # a transform, whose own function is meant

    def run(*args: Any, **kwargs: Any) -> Any:
        if not _call.of_arrays:
            return function(*args, **kwargs)
        _call.of_arrays = False  # what is called within is at tensors
        try:
            leaves, spec = pytrees.flatten((args, kwargs))
            given = _plain_copies(leaves) if numpy_meaning.is_new(function, leaves) else None
            positional, named = arguments((args, kwargs))
            found = _of_constants(unfollowed(function(*positional, **named)))
            if given is not None:
                _compare(function, pytrees.unflatten(given, spec), found)
            return found
        finally:
            _call.of_arrays = True

    return run


def with_numpys_meaning(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of tensors that a function of arrays is, with NumPy's meaning of all that it does."""

    def run(**variables: Any) -> Any:
        return _of_constants(unfollowed(function(**arguments(variables))))

    return run


def _of_constants(value: Any) -> Any:
    """A result with tensors in place of arrays and numbers, which depend on no variable."""
    if modes.local.left:  # a number that was taken out of the graph does
        return value
    leaves, spec = pytrees.flatten(value)
    constant = (np.ndarray, np.generic, float, int)
    made = [
        wrap(np.asarray(v, None if hasattr(v, "dtype") else float)[()])
        if isinstance(v, constant) and not isinstance(v, Tensor | bool)
        else v
        for v in leaves
    ]
    return pytrees.unflatten(made, spec)


def _plain_copies(leaves: Sequence[Any]) -> list[Any] | None:
    """The leaves with arrays in place of tensors; None where some are batched or traced."""
    if not all(isinstance(v.array, ARRAYS) for v in leaves if isinstance(v, Tensor)):
        return None
    return [np.array(v.array)[()] if isinstance(v, Tensor) else v for v in leaves]


def _compare(function: Callable[..., Any], given: Any, found: Any) -> None:
    args, kwargs = given
    title = getattr(function, "__name__", "the function")
    try:
        numpy_meaning.refuse_other(function, args, kwargs, found, title)
    except numpy_meaning.Unsteady:  # a gradient is that of one run
        return
    except ValueError:
        numpy_meaning.forget(function)
        raise


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
        found = found or isinstance(leaf, _NUMBERS) or hasattr(type(leaf), "__array__")
    return found


def _at_arrays(function: Any, args: Any, kwargs: Any, points: Sequence[int]) -> Any:
    items, spec = pytrees.flatten((args, kwargs))
    leaves = [v if (a := array_of(v)) is None else a for v in items]
    args, kwargs = pytrees.unflatten(leaves, spec)
    kinds = {v.dtype.char for v in leaves if isinstance(v, (np.ndarray, np.generic))}
    real = np.float32 if "f" in kinds and not kinds & set("dD") else np.float64

    def tensor(value: Any, number: bool) -> Any:
        if isinstance(value, (np.ndarray, np.generic)):
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
    before, _call.of_arrays = _call.of_arrays, True
    try:
        with modes.no_number_may_leave():
            found = function(*given, **named)
    except Exception as error:  # of whatever library the function calls
        explain(error)
        raise
    finally:
        _call.of_arrays = before
    return _back(found)


def explain(error: Exception) -> None:
    """Add what to write in place of a function that takes no followed arrays, if nothing is said yet."""
    if isinstance(error, EngineError) or getattr(error, "__notes__", None):
        return
    if said := of_library(error):
        error.add_note(f"hint: {said}")


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


__all__ = [
    "at_arrays",
    "chosen",
    "every",
    "explain",
    "none",
    "takes_arrays",
    "users",
    "with_numpys_meaning",
]
