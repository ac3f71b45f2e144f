"""What the rows compute: operators, calls and subscripts, with guards where a number could be huge."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import MethodType
from typing import Any

import gradcli.budget as budget
from gradcli.language import names, tree
from gradcli.language.tree import KIND


def _contains(item: Any, values: Any) -> bool:
    if isinstance(values, names.LAZY):
        if isinstance(values, range) and isinstance(item, (float, complex)):
            item = item.real if not item.imag else 0.5
            return item.is_integer() and int(item) in values
        if not isinstance(values, range) or not isinstance(item, int):
            names.check_lazy((values,))
    return item in values


def _lacks(item: Any, values: Any) -> bool:
    return not _contains(item, values)


_FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
    "matmul": operator.matmul,
    "bitor": operator.or_,
    "bitand": operator.and_,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
    "is": operator.is_,
    "is_not": operator.is_not,
    "in": _contains,
    "not_in": _lacks,
}
_INPLACE: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.iadd,
    "sub": operator.isub,
    "mul": operator.imul,
    "div": operator.itruediv,
    "floordiv": operator.ifloordiv,
    "mod": operator.imod,
    "pow": operator.ipow,
    "matmul": operator.imatmul,
    "bitor": operator.ior,
    "bitand": operator.iand,
}
FIRST_BINARY = KIND["add"]
LAST_BINARY = KIND["not_in"]
# Indexed by kind; the first rows are no operators.
BINARY: list[Callable[[Any, Any], Any]] = [_contains] * FIRST_BINARY + [
    _FUNCTIONS[name] for name in (*tree.BINARY, *tree.COMPARISONS)
]
INPLACE: dict[int, Callable[[Any, Any], Any]] = {
    KIND[name]: function for name, function in _INPLACE.items()
}
UNARY: dict[int, Callable[[Any], Any]] = {
    KIND["neg"]: operator.neg,
    KIND["pos"]: operator.pos,
    KIND["invert"]: operator.invert,
}
_ADD, _MUL, _POW, _MOD = KIND["add"], KIND["mul"], KIND["pow"], KIND["mod"]
_GUARDED = frozenset((_ADD, _MUL, _POW, _MOD))
_SEQUENCES = (str, list, tuple)


def plain(kind: int, a: Any, b: Any) -> Any:
    """A binary operator between values that are not tensors."""
    if kind in _GUARDED:
        guard(kind, a, b)
    elif (type(a) is list or type(a) is tuple) and a is not b:  # to be compared item by item
        budget.nested(a)
        budget.nested(b)
    return BINARY[kind](a, b)


def guard(kind: int, a: Any, b: Any) -> None:
    """Refuse what would take all memory or hours: 9**9**9, 'a'*10**10."""
    if kind == _POW:
        if isinstance(a, int) and isinstance(b, int) and b > 1 and abs(a) > 1:
            bits = a.bit_length() * b if b < budget.MAX_BITS else budget.MAX_BITS + 1
            if bits > budget.MAX_BITS:
                raise OverflowError(_too_large(f"{budget.spelt(a)}**{budget.spelt(b)}"))
    elif kind == _MUL:
        if isinstance(a, int) and isinstance(b, int):
            if a.bit_length() + b.bit_length() > budget.MAX_BITS:
                raise OverflowError(_too_large("the product"))
        elif isinstance(a, _SEQUENCES) and isinstance(b, int):
            budget.items(len(a) * max(b, 0), "a sequence")
        elif isinstance(b, _SEQUENCES) and isinstance(a, int):
            budget.items(len(b) * max(a, 0), "a sequence")
    elif kind == _ADD:
        if isinstance(a, _SEQUENCES):
            budget.items(len(a) + budget.size_of(b), "a sequence")
    elif isinstance(a, str):
        names.check_specification(a)
        values = b if isinstance(b, tuple) else (b,)
        if "*" in a and any(isinstance(v, int) and abs(v) > 10_000 for v in values):
            raise ValueError("the width in the format is too large")
        budget.nested(b)
        budget.items(len(a) + sum(len(v) for v in values if isinstance(v, str)), "a string")


def _too_large(what: str) -> str:
    return f"{what} is an integer of more than {budget.MAX_BITS} bits; write a decimal point for a float"


_wanted: dict[Any, frozenset[int | str]] = {}


def call(function: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
    """Call a value; a bare number where a function of the table wants a tensor becomes one."""
    from gradcli.operators.table import Function

    if type(function) is not Function:
        if not callable(function):
            raise TypeError(f"{type(function).__name__!r} object is not callable")
        if function is str:
            args = [names.shown(value) for value in args[:1]] + args[1:]
        elif type(function) is MethodType:  # of a tensor
            _check_arguments(args)
        return function(*args, **keywords)
    _check_arguments(args)
    wanted = _wanted.get(function)
    if wanted is None:
        wanted = _wanted[function] = function.tensor_args
    if wanted:
        args, keywords = _lifted(function, args, keywords, wanted)
    return function(*args, **keywords)


def _check_arguments(args: list[Any]) -> None:
    """What is made into tensors: no endless ranges, no lists that hold themselves or too much."""
    for value in args:
        if type(value) is list or type(value) is tuple:
            _check_nested(value)
        elif isinstance(value, names.LAZY):
            names.check_lazy((value,))


def _check_nested(value: Any) -> None:
    if budget.is_cyclic(value):
        raise ValueError("a list that holds itself is no tensor")
    budget.nested(value)


_NUMBERS = (bool, int, float, complex)


def _all_numbers(args: list[Any], keywords: dict[str, Any], wanted: frozenset[int | str]) -> bool:
    """True if every argument that should be a tensor is a number, and there is one."""
    found = False
    for position, value in enumerate(args):
        if position in wanted:
            if type(value) not in _NUMBERS:
                return False
            found = True
    for name, value in keywords.items():
        if name in wanted:
            if type(value) not in _NUMBERS:
                return False
            found = True
    return found


def _lifted(
    function: Any, args: list[Any], keywords: dict[str, Any], wanted: frozenset[int | str]
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments with what should be a tensor made one: numbers, and lists of numbers.

    Beside a tensor a number does not raise the result's dtype, unless it is of a higher kind. A row
    takes it as it is; a function gets a tensor of the dtype that both have together.
    """
    from gradcli.operators import table

    kinds: tuple[type, ...] = (*_NUMBERS, list)
    beside = None
    if not _all_numbers(args, keywords, wanted):
        if hasattr(function.target, "kind"):
            kinds = (list,)
        else:
            given = (*args, *keywords.values())
            beside = next((a.dtype for a in given if hasattr(a, "dtype")), None)

    def lifted(place: int | str, value: Any) -> Any:
        if type(value) not in kinds or place not in wanted:
            return value
        if beside is not None and type(value) is not list:
            return table.lift_beside(value, beside)
        return lift(value)

    if any(type(value) in kinds for value in args):
        args = [lifted(place, value) for place, value in enumerate(args)]
    return args, {name: lifted(name, value) for name, value in keywords.items()}


def lift(value: Any) -> Any:
    """A number or a list of numbers as a tensor of the default dtype; anything else unchanged."""
    from gradcli.operators import table

    if type(value) in _NUMBERS:
        return table.lift(value)
    if isinstance(value, list) and value and _plain_numbers(value):
        from gradcli.language.values import as_tensor

        return as_tensor(value)
    return value


def _plain_numbers(values: list[Any]) -> bool:
    waiting: list[Any] = [values]
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            waiting.extend(item)
        elif type(item) not in _NUMBERS:
            return False
    return True


def truth(value: Any) -> bool:
    """The truth of a value, as Python's `if` takes it."""
    return bool(value)


def subscript(value: Any, index: Any) -> Any:
    """`value[index]`, for values that programs may index."""
    _check_index(index)
    if type(index) is str:
        with _without_advice():
            return value[index]
    return value[index]


def set_subscript(value: Any, index: Any, new: Any) -> None:
    """`value[index] = new`, for tensors and lists."""
    from gradcli.engine.tensor import Tensor

    if not isinstance(value, (Tensor, list)):
        raise TypeError(f"{type(value).__name__!r} object does not support item assignment")
    _check_index(index)
    textual = type(index) is str
    if textual:
        with _without_advice():
            value[index] = new
    else:
        value[index] = new


def _check_index(index: Any) -> None:
    """Refuse indices that yield more items than there may be."""
    if type(index) is tuple:
        for part in index:
            if type(part) is not slice and type(part) is not int:
                _check_nested(part) if type(part) is tuple else _check_index(part)
    elif type(index) is list:
        _check_nested(index)
    elif isinstance(index, names.LAZY):
        names.check_lazy((index,))


@contextmanager
def _without_advice() -> Iterator[None]:
    """Without PyTorch's warning that a string is read as a sequence of indices: an error follows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def make_slice(mask: int, parts: list[Any]) -> slice:
    """A slice from the parts that the mask says are present."""
    given = iter(parts)
    start = next(given) if mask & 1 else None
    stop = next(given) if mask & 2 else None
    step = next(given) if mask & 4 else None
    return slice(start, stop, step)
