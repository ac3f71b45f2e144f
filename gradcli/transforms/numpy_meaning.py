"""Whether a function means the same of tensors as of NumPy's arrays.

`x.std()` divides by n of an array and by n - 1 of a tensor. So a function that is given arrays, and runs on
tensors, is called once more with the arrays, for each set of shapes, and both values are compared.
"""

from __future__ import annotations

import dis
import random
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from gradcli.engine.core import pytrees
from gradcli.engine.core.tensor import Tensor

_WRITE = dis.opmap["STORE_SUBSCR"]
_OTHER_METHODS = frozenset(("flatten", "partition", "repeat", "sort", "std", "var"))
_OF_TENSORS = frozenset(("gradcli", "torch"))
_LIBRARIES = _OF_TENSORS | {"numpy", "scipy"}
MOST = 100_000  # elements of arguments, on which a function is called once more
_seen: WeakKeyDictionary[Any, set[Any]] = WeakKeyDictionary()  # by function, what was compared


def is_new(function: Any, leaves: list[Any]) -> bool:
    """Whether a function has not been compared for arguments of these kinds; from now on it has been.

    A function that is defined anew in a loop counts as the same, if it calls the same functions.
    """
    if sum([v.array.size for v in leaves if isinstance(v, Tensor)]) > MOST:
        return False
    within = [c for c in map(_content, getattr(function, "__closure__", None) or ()) if callable(c)]
    key = tuple([_kind(v) for v in leaves] + [getattr(c, "__code__", c) for c in within])
    try:
        code = getattr(function, "__code__", function)
        known = _seen.get(code)
        if known is None:
            known = _seen[code] = set()
        elif key in known:
            return False
        known.add(key)
    except TypeError:  # what cannot be a key is compared each time
        return True
    return True


def has_other_methods(function: Any) -> bool:
    """Whether a function calls a method that means something else of arrays than of tensors, so that both
    may have one value by chance: `y.flatten()` is a copy of an array, and `y.sort()` sorts it in place. So it
    is with writes: of `z[[0, 0]] = y` the last counts. A function that calls torch's means tensors."""
    waiting, seen, found = [function], set[int](), False
    while waiting:
        one = waiting.pop()
        module = getattr(one, "__module__", None) or getattr(one, "__name__", None) or ""
        if id(one) in seen or module.partition(".")[0] in _LIBRARIES:
            if isinstance(one, types.ModuleType) and module in _OF_TENSORS:
                return False
            continue
        seen.add(id(one))
        code = getattr(one, "__code__", one)
        if isinstance(one, types.FunctionType):  # and what it calls
            waiting += map(_content, one.__closure__ or ())
            waiting += [one.__globals__.get(name) for name in one.__code__.co_names]
        if isinstance(code, types.CodeType):
            found |= not _OTHER_METHODS.isdisjoint(code.co_names) or _WRITE in code.co_code[::2]
            waiting += code.co_consts
    return found


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # the name is not bound yet
        return None


def forget(function: Any) -> None:
    """Compare the function anew: it was refused."""
    _seen.pop(getattr(function, "__code__", function), None)


def _kind(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.array.shape, value.array.dtype.char
    return value if isinstance(value, (str, bool, int, type(None))) else type(value)


def refuse_other(
    function: Callable[..., Any], args: Any, kwargs: Any, value: Any, title: str
) -> None:
    """Raise ValueError where a function has another value of NumPy's arrays than `value`, of tensors.

    args, kwargs: arrays, which the function may write into. A function that takes no arrays, or that gives
    other values each time, has none to compare.
    """

    leaves, spec = pytrees.flatten((args, kwargs))

    def of_arrays() -> list[Any]:
        copies = [np.array(a) if isinstance(a, np.ndarray) else a for a in leaves]
        positional, named = pytrees.unflatten(copies, spec)
        return pytrees.flatten(function(*positional, **named))[0]

    with warnings.catch_warnings(), np.errstate(all="ignore"), kept_random(function):
        warnings.simplefilter("ignore")
        try:
            other = of_arrays()
        except Exception:  # what is no function of arrays may refuse them in any way
            return
        own = [v.array if isinstance(v, Tensor) else v for v in pytrees.flatten(value)[0]]
        differing = [(a, b) for a, b in zip(own, other, strict=False) if differ(a, b)]
        if len(own) == len(other) and not differing:
            return
        if any(differ(a, b) for a, b in zip(other, of_arrays(), strict=False)):
            raise Unsteady(title)
    raise ValueError(_unlike(title, *(differing[0] if differing else (None, None))))


class Unsteady(ValueError):
    """A function that gives other values at each call."""

    def __init__(self, title: str) -> None:
        super().__init__(
            f"{title} gives other values at each call: a compiled function runs once, so it would always "
            "give the random numbers of its first run (pass them as an argument)"
        )


def differ(a: Any, b: Any) -> bool:
    """Whether two results are arrays, or numbers, of other values or shapes."""
    if isinstance(b, Tensor) or isinstance(a, Tensor):
        return False
    a, b = np.asarray(a), np.asarray(b)
    kinds = {a.dtype.kind, b.dtype.kind}
    if not kinds <= set("biufc") or not kinds & set("fc"):
        return False
    if a.shape != b.shape:
        return True
    digits = max([np.finfo(v.dtype).eps for v in (a, b) if v.dtype.kind in "fc"]) ** 0.5
    largest = np.max(np.abs(b), initial=0.0, where=np.isfinite(b))
    return not np.allclose(a, b, rtol=digits, atol=digits * largest, equal_nan=True)


def _unlike(title: str, a: Any = None, b: Any = None) -> str:
    if a is None or np.shape(a) != np.shape(b):
        said = "results of other shapes of NumPy's arrays and"
    else:
        a, b = np.asarray(a), np.asarray(b)
        at = int(np.argmax(~np.isclose(a, b, equal_nan=True))) if a.size else 0
        said = f"{b.flat[at]:.6g} of NumPy's arrays and {a.flat[at]:.6g}"
    return (
        f"{title} gives {said} of tensors, on which it is differentiated: a method means something else "
        "there. x.std() and x.var() divide by n of an array and by n - 1 of a tensor (np.std(x) is the same "
        "of both), x.repeat() repeats the whole of a tensor (np.repeat each element), x.max(0) of a tensor "
        "has the places too (np.max), x.sort() sorts no tensor (np.sort)"
    )


@contextmanager
def kept_random(function: Any) -> Iterator[None]:
    """Random numbers afterwards as if nothing had been drawn."""
    with ExitStack() as stack:
        state = random.getstate()
        stack.callback(lambda: random.setstate(state))
        if "numpy.random" in sys.modules:
            old = np.random.get_state()
            stack.callback(lambda: np.random.set_state(old))
            for generator in _generators(function):
                bits = generator.bit_generator
                stack.callback(setattr, bits, "state", bits.state)
        own = sys.modules.get("gradcli.engine.core.random")
        if own is not None:
            stack.callback(own.rewind, own.snapshot())
        yield


def _generators(function: Any) -> list[Any]:
    """The generators of NumPy's that a function's code names."""
    if not isinstance(function, types.FunctionType):
        return []
    names = function.__code__.co_names
    found = [function.__globals__[n] for n in names if n in function.__globals__]
    found += map(_content, function.__closure__ or ())
    return [v for v in found if isinstance(v, np.random.Generator)]
