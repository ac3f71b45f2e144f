"""The operations of instructions: operators, calls and subscripts, with limits on huge results."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import MethodType
from typing import TYPE_CHECKING, Any, NamedTuple

import gradcli.engine.system.budget as budget
from gradcli.language import names, tree_kinds
from gradcli.language.located_errors import LanguageError, Span, kind_of
from gradcli.language.tree_kinds import KIND

if TYPE_CHECKING:
    from gradcli.engine.core.tensor import Tensor
    from gradcli.language.interpreter import Machine
    from gradcli.language.program import Program

_MAX_DIMENSIONS = 64


def _contains(item: Any, values: Any) -> bool:
    if type(values) in budget.NESTED:
        budget.key(item)  # of lists too: compared item by item, it takes as long
    elif isinstance(values, names.LAZY):
        if isinstance(values, range) and isinstance(item, (float, complex)):
            item = item.real if not item.imag else 0.5
            return item.is_integer() and int(item) in values
        if not isinstance(values, range) or not isinstance(item, int):
            names.check_lazy((values,))
    return item in values


_SPELT = {bool: "truth value", int: "number", float: "number", complex: "number", str: "text"}


def _equal(a: Any, b: Any) -> Any:
    if callable(a) is not callable(b):
        _refuse_function(a, b)
    return a == b


def _not_equal(a: Any, b: Any) -> Any:
    if callable(a) is not callable(b):
        _refuse_function(a, b)
    return a != b


def _refuse_function(a: Any, b: Any) -> None:
    """Raise TypeError for a function and a number, a text or a tensor, as `max == 2` has.

    Python says that they differ, and so it would to somebody whose variable is called max.
    """
    function, other = (a, b) if callable(a) else (b, a)
    what = _SPELT.get(type(other)) or ("tensor" if hasattr(other, "grad_fn") else None)
    if what is not None:
        name = getattr(function, "name", None) or getattr(function, "__name__", "this")
        raise TypeError(f"{name} is a function, and is compared with a {what}")


# What Python's module calls otherwise than the language's trees do.
_CALLED = {"div": "truediv", "bitor": "or_", "bitand": "and_", "is": "is_"}
_OURS = {
    "in": _contains,
    "not_in": lambda item, values: not _contains(item, values),
    "eq": _equal,
    "ne": _not_equal,
}


def _function(name: str) -> Callable[[Any, Any], Any]:
    return _OURS.get(name) or getattr(operator, _CALLED.get(name, name))


FIRST_BINARY = KIND["add"]
LAST_BINARY = KIND["not_in"]
# Indexed by kind; the first rows are no operators.
BINARY: list[Callable[[Any, Any], Any]] = [_contains] * FIRST_BINARY + [
    _function(name) for name in (*tree_kinds.BINARY, *tree_kinds.COMPARISONS)
]
INPLACE: dict[int, Callable[[Any, Any], Any]] = {
    KIND[name]: getattr(operator, f"i{_CALLED.get(name, name)}".rstrip("_"))
    for name in tree_kinds.BINARY
}
UNARY: dict[int, Callable[[Any], Any]] = {
    KIND[name]: getattr(operator, name) for name in ("neg", "pos", "invert")
}
_ADD, _MUL, _POW, _MOD = KIND["add"], KIND["mul"], KIND["pow"], KIND["mod"]
_BITOR = KIND["bitor"]
_GUARDED = frozenset((_ADD, _MUL, _POW, _MOD, _BITOR))
_SEQUENCES = (str, list, tuple)


def plain(kind: int, a: Any, b: Any) -> Any:
    """A binary operator between values that are not tensors."""
    if kind in _GUARDED:
        guard(kind, a, b)
    elif type(a) in budget.NESTED and a is not b:  # to be compared item by item
        budget.nested(a)
        budget.nested(b)
    return BINARY[kind](a, b)


def guard(kind: int, a: Any, b: Any) -> None:
    """Refuse operations that would exhaust memory or run for hours: 9**9**9, 'a'*10**10."""
    if kind == _POW:
        if isinstance(a, int) and isinstance(b, int) and b > 1 and abs(a) > 1:
            # The number of bits is known before the power is computed, which might take hours.
            bits = a.bit_length() * b if b < budget.MAX_BITS else budget.MAX_BITS + 1
            if bits > budget.MAX_BITS:
                raise OverflowError(_too_large(f"{budget.spelt(a)}**{budget.spelt(b)}"))
    elif kind == _MUL:
        if isinstance(a, int) and isinstance(b, int):
            if a.bit_length() + b.bit_length() > budget.MAX_BITS:
                raise OverflowError(_too_large("the product"))
        elif isinstance(a, _SEQUENCES) and isinstance(b, int):
            # 'a'*10**10 would be made in memory before anybody could refuse it.
            budget.items(len(a) * max(b, 0), "a sequence")
        elif isinstance(b, _SEQUENCES) and isinstance(a, int):
            budget.items(len(b) * max(a, 0), "a sequence")
    elif kind == _ADD:
        if isinstance(a, _SEQUENCES):
            budget.items(len(a) + budget.size_of(b), "a sequence")
    elif kind == _BITOR:
        if isinstance(a, dict):
            budget.items(len(a) + budget.size_of(b), "a dict")
    # `%` of a text: its widths and its arguments decide how long it gets.
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
_PAIRS: dict[Any, bool] = {}  # whether of two numbers one is to be a tensor: pow(2, 3)


def call(function: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
    """Call a value; a bare number where a function of the table wants a tensor becomes one."""
    from gradcli.engine.registry.table import Function

    if type(function) is not Function:
        if not callable(function):
            raise TypeError(f"{type(function).__name__!r} object is not callable")
        if function is str:
            args = [names.shown(value) for value in args[:1]] + args[1:]
        elif type(function) is MethodType:  # of a tensor
            _check_arguments(args)
        return function(*args, **keywords)
    _check_arguments(args)
    if args and type(args[0]) in _ITERABLES:
        python = _OF_ITEMS.get(function.name)
        # sum([a, b]) of two tensors is Python's, sum([1, 2]) is torch's of the list as a tensor.
        if python is not None and not _plain_numbers(args[0]):
            return python(*args, **keywords)
    elif len(args) == 2 and function.name == "round" and set(map(type, args)) <= _REAL:
        return round(*args)  # torch's takes no digits by place
    # Which arguments are tensors follows from the signature, and is asked at every call.
    wanted = _wanted.get(function)
    if wanted is None:
        wanted = _wanted[function] = function.tensor_args
        _PAIRS[function] = function.one_tensor
    # pow(2, 3) has no tensor: one of both becomes one, so that the operator has something to work on.
    if len(args) == 2 and _PAIRS[function] and all(type(a) in _NUMBERS for a in args):
        args = [lift(args[0]), args[1]]
    if wanted:
        args, keywords = _lifted(function, args, keywords, wanted)
    return function(*args, **keywords)


def _sum(values: Iterable[Any], /, start: Any = 0) -> Any:
    from gradcli.engine.core.tensor import Tensor

    if isinstance(start, str):
        raise TypeError("sum() can't sum strings [use ''.join(seq) instead]")
    for value in values:
        if not isinstance(value, Tensor):
            guard(_ADD, start, value)
        start = start + value
    return start


# Python's functions of what is iterated over, where torch's of that name take none but tensors.
_OF_ITEMS: dict[str, Callable[..., Any]] = {
    **{"sum": _sum, "any": any, "all": all},
    **{"max": max, "min": min},
}
_ITERABLES = frozenset((*budget.NESTED, *names.LAZY, names.Generator))


def _check_arguments(args: list[Any]) -> None:
    """Refuse arguments that cannot become tensors: endless ranges, cyclic or too long lists."""
    for value in args:
        if type(value) is list or type(value) is tuple:
            _check_nested(value)
        elif isinstance(value, names.LAZY):
            names.check_lazy((value,))


def _check_nested(value: Any) -> None:
    if budget.is_cyclic(value):
        raise ValueError("a list that holds itself is not a tensor")
    budget.nested(value)


_NUMBERS = (bool, int, float, complex)
_REAL = {bool, int, float}


def _all_numbers(args: list[Any], keywords: dict[str, Any], wanted: frozenset[int | str]) -> bool:
    """True if every argument that should be a tensor is a number, and there is one."""
    given = [*enumerate(args), *keywords.items()]
    kinds = [type(value) in _NUMBERS for place, value in given if place in wanted]
    return bool(kinds) and all(kinds)


def _lifted(
    function: Any, args: list[Any], keywords: dict[str, Any], wanted: frozenset[int | str]
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments with numbers, and lists of numbers, made tensors where a tensor is wanted.

    Beside a tensor a number does not promote the result's dtype, unless it is of a higher kind. A primitive
    takes it as a number; a function gets a tensor of the promoted dtype. A boolean becomes a 0-d bool
    tensor, except for primitives that take numbers.
    """
    from gradcli.engine.registry import table

    # Three cases, on `add(x, 2)`: if no argument is a tensor, all numbers become tensors of the default
    # dtype. If the function is a primitive, numbers stay as they are, for x of float32 plus 2 is float32.
    # A composite works with tensors alone, so the number becomes one of the dtype that the sum would
    # have.
    kinds: tuple[type, ...] = (*_NUMBERS, list)
    beside = None
    if not _all_numbers(args, keywords, wanted):
        if hasattr(function.target, "linearity"):
            # A primitive takes numbers as they are, since they do not promote its result.
            kinds = (list,) if function.target.numbers else (list, bool)
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
    from gradcli.engine.registry import table

    if type(value) in _NUMBERS:
        return table.lift(value)
    if _plain_numbers(value):
        return as_tensor(value)
    return value


def _plain_numbers(values: Any) -> bool:
    """Whether a value is a list of numbers, or of such lists."""
    if type(values) is not list or not values:
        return False
    waiting: list[Any] = [values]
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            waiting.extend(item)
        elif type(item) not in _NUMBERS:
            return False
    return True


# -- tensors ---------------------------------------------------------------------------------------
def as_tensor(value: Any, dtype: Any = None, *, where: tuple[str, Span] | None = None) -> Tensor:
    """A value of the language as a tensor: numbers and lists of them take the default dtype.

    A tensor stays what it is. Raises LanguageError for text, functions and ragged lists.
    """
    from gradcli.engine.core.tensor import Tensor, arrays

    if isinstance(value, Tensor):
        return value
    source, span = where or ("", None)
    # A named tuple of results, as max(x, 0) gives, stands for its first, the values.
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        if _holds_tensor(value):
            return _stacked(value, dtype, where)
        return tensor_of(rectangular(value, where), dtype)
    if isinstance(value, (bool, int, float, complex)):
        return tensor_of(value, dtype)
    if arrays.holds is not None and arrays.holds([value]):  # within a function of arrays
        found: Tensor = arrays.into(value)
        return found
    if hasattr(type(value), "__array__") or type(value).__name__ in ("Decimal", "Fraction"):
        from gradcli.engine.system.given_arrays import GivenArrayError, array_of

        try:
            return tensor_of(array_of(value), dtype)
        except GivenArrayError as error:
            raise LanguageError(
                error.message, kind="type", source=source, span=span, hint=error.remedy, usage=True
            ) from None
    if hasattr(value, "_fields") and isinstance(value[0], Tensor):
        return value[0]
    what = "nothing" if value is None else kind_of(value)
    if isinstance(value, str):
        what = "text"
    elif callable(value):
        what = "a function"
    raise LanguageError(
        f"this is {what}, not a number or a tensor",
        kind="type",
        source=source,
        span=span,
        hint="end with an expression" if value is None else None,
        usage=True,
    )


def _holds_tensor(values: Any) -> bool:
    waiting = [values]
    while waiting:
        item = waiting.pop()
        if isinstance(item, (list, tuple)):
            waiting.extend(item)
        elif hasattr(item, "grad_fn"):
            return True
    return False


def _stacked(values: Any, dtype: Any, where: tuple[str, Span] | None, depth: int = 1) -> Tensor:
    """A list that holds tensors: `stack`, so that gradients flow through it."""
    if depth > _MAX_DIMENSIONS:
        raise LanguageError(f"a tensor has at most {_MAX_DIMENSIONS} dimensions", kind="shape")
    items = [
        _stacked(item, dtype, where, depth + 1)
        if isinstance(item, (list, tuple))
        else as_tensor(item, dtype, where=where)
        for item in values
    ]
    found: Tensor = names.qualified("stack")(items)
    return found


def rectangular(values: Any, where: tuple[str, Span] | None) -> Any:
    """Nested lists of numbers, seen to be of one shape and kind."""
    source, span = where or ("", None)

    def refused(message: str, kind: str = "shape", hint: str | None = None) -> LanguageError:
        return LanguageError(message, kind=kind, source=source, span=span, hint=hint)

    # Level by level and not by recursion: so the first row that differs is found, and no depth is too deep.
    level = [values]
    depth = 0
    while isinstance(level[0], (list, tuple)):
        depth += 1
        if depth > _MAX_DIMENSIONS:
            raise refused(f"a tensor has at most {_MAX_DIMENSIONS} dimensions")
        size = len(level[0])
        for item in level:
            if not isinstance(item, (list, tuple)) or len(item) != size:
                hint = "give every row of a matrix the same length"
                raise refused("the rows of this list are not equally long", hint=hint)
        if not size:
            return values
        level = [part for item in level for part in item]
    for item in level:
        if isinstance(item, (list, tuple)):
            raise refused("the rows of this list are not equally deep")
        if not isinstance(item, (bool, int, float, complex)):
            raise refused(f"a tensor holds numbers, not {type(item).__name__}", "type")
    return values


def tensor_of(data: Any, dtype: Any) -> Tensor:
    """Numbers as a tensor of the default dtype; booleans and complex numbers keep their kind."""
    import numpy as np

    from gradcli.engine.core.tensor import wrap
    from gradcli.engine.system import dtypes

    array = np.asarray(data)
    default = dtypes.default
    real, complex_ = default.real, default.complex
    if dtype is not None:
        real = dtype.dtype
        complex_ = real if real.kind == "c" else np.result_type(real, np.complex64)
    # NumPy keeps integers beyond 64 bits as objects; as floats they are the numbers that were meant.
    if array.dtype.kind == "O":
        try:
            array = array.astype(np.float64)
        except OverflowError:
            raise LanguageError("this integer is too large for a float", kind="overflow") from None
    if array.dtype.kind in "iuf":
        array = array.astype(real, copy=False)
    elif array.dtype.kind == "c":
        array = array.astype(complex_, copy=False)
    elif array.dtype.kind != "b":
        raise LanguageError(f"a tensor holds numbers, not {array.dtype}", kind="type")
    if array.ndim == 0:
        # A scalar of NumPy's computes faster than an array without dimensions.
        return wrap(array[()])
    return wrap(np.ascontiguousarray(array))


# -- what an index may be ---------------------------------------------------------------------------
def truth(value: Any) -> bool:
    """The truth of a value, as Python's `if` takes it."""
    return bool(value)


def subscript(value: Any, index: Any) -> Any:
    """`value[index]`, for values that programs may index."""
    if type(value) is dict:
        return value[budget.key(index)]
    _check_index(index)
    if type(index) is str:
        with _without_advice():
            return value[index]
    return value[index]


def set_subscript(value: Any, index: Any, new: Any) -> None:
    """`value[index] = new`, for tensors and lists."""
    from gradcli.engine.core.tensor import Tensor

    if type(value) is dict:
        if budget.key(index) not in value:
            budget.items(len(value) + 1, "a dict", budget.MAX_GROWN)
        value[index] = new
        return
    if not isinstance(value, (Tensor, list)):
        raise TypeError(f"{type(value).__name__!r} object does not support item assignment")
    _check_index(index)
    if type(index) is slice and type(value) is list:
        new = budget.collected(new)
        budget.items(len(value) + len(new))
    if type(index) is str:
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


# -- rows ------------------------------------------------------------------------------------------
_ATTRIBUTE, _SUBSCRIPT, _NOT = KIND["attribute"], KIND["subscript"], KIND["not"]
_NEG, _INVERT = KIND["neg"], KIND["invert"]
_TARGET, _KEYWORD_NAME, _KEYWORD = KIND["target"], KIND["keyword_name"], KIND["keyword"]
_WALRUS, _TUPLE, _LIST, _SLICE = KIND["walrus"], KIND["tuple"], KIND["list"], KIND["slice"]
_DICT, _PAIR, _STARRED = KIND["dict"], KIND["pair"], KIND["starred"]
_DOUBLE_STARRED = KIND["double_starred"]
_TARGET_TUPLE, _PASS, _MODULE = KIND["target_tuple"], KIND["pass"], KIND["module"]
_BLOCK = KIND["block"]
_JOINED, _FORMAT, _FORMAT_SPEC = KIND["joined"], KIND["format"], KIND["format_spec"]
_CONVERT, _CONCATENATE = KIND["convert"], KIND["concatenate"]
_IMPORT_MODULE, _IMPORT_MODULE_AS = KIND["import_module"], KIND["import_module_as"]
_IMPORT, _IMPORT_FROM = KIND["import"], KIND["import_from"]


class Keyword(NamedTuple):
    """A keyword argument on its way to a call."""

    name: str
    value: Any


class Starred:
    """The operand of `*` or `**` in a call or a display."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class DoubleStarred(Starred):
    """The operand of `**`."""

    __slots__ = ()


class Field(NamedTuple):
    """A value in an f-string with its conversion."""

    value: Any
    conversion: str


def bind(machine: Machine, scope: dict[str, Any], target: Any, value: Any) -> None:
    """Assign to a name (a string) or to a tuple of targets."""
    waiting = [(target, value)]
    while waiting:
        target, value = waiting.pop()
        if type(target) is str:
            scope[target] = value
            if isinstance(value, machine.tensor):
                machine.name_value(value, target)
        else:
            values = unpack(value, len(target))
            # Reversed on a stack: the targets are bound from left to right, so that the last of equal names
            # wins.
            waiting.extend(zip(reversed(target), reversed(values), strict=True))


def unpack(value: Any, count: int) -> list[Any]:
    """The `count` items of a value that is assigned to several targets."""
    try:
        items = iter(value)
    except TypeError:
        raise TypeError(f"cannot unpack non-iterable {type(value).__name__} object") from None
    found = []
    for item in items:
        found.append(item)
        if len(found) > count:
            raise ValueError(f"too many values to unpack (expected {count})")
    if len(found) < count:
        raise ValueError(f"not enough values to unpack (expected {count}, got {len(found)})")
    return found


def pop_many(stack: list[Any], count: int) -> list[Any]:
    """The last `count` values, taken off the stack."""
    if not count:
        return []
    found = stack[-count:]
    del stack[-count:]
    return found


def split_arguments(items: list[Any]) -> tuple[list[Any], dict[str, Any]]:
    """Positional and keyword arguments of a call."""
    args: list[Any] = []
    keywords: dict[str, Any] = {}
    for item in items:
        kind = type(item)
        if kind is Starred:
            args += budget.collected(item.value, "a tuple")
            budget.items(len(args), "a tuple")
        elif kind is not Keyword and kind is not DoubleStarred:
            args.append(item)
        else:
            given = {item.name: item.value} if kind is Keyword else _keywords(item.value)
            if repeated := keywords.keys() & given.keys():
                raise TypeError(f"keyword argument repeated: {min(repeated)}")
            keywords |= given
    return args, keywords


def _keywords(value: Any) -> dict[str, Any]:
    """The (name, value) pairs of `**mapping` in a call; names must be valid in the language."""
    if type(value) is not dict:
        raise TypeError(f"argument after ** must be a mapping, not {type(value).__name__}")
    for name in value:
        if type(name) is not str:
            raise TypeError("keywords must be strings")
        if name.startswith("__"):
            raise TypeError(f"`{name}` is not part of this language")
    return value


def make_dict(items: list[Any]) -> dict[Any, Any]:
    """A dict of pairs, and of dicts behind two stars."""
    found: dict[Any, Any] = {}
    for item in items:
        if type(item) is not DoubleStarred:
            collect(found, item)
        elif type(item.value) is dict:
            budget.items(len(found) + len(item.value), "a dict")
            found |= item.value
        else:
            raise TypeError(f"{type(item.value).__name__!r} object is not a mapping")
    return found


def collect(collection: Any, item: Any) -> None:
    """One more item of a list, or pair of a dict."""
    if type(collection) is list:
        budget.items(len(collection) + 1)
        collection.append(item)
    else:
        budget.items(len(collection) + 1, "a dict")
        collection[budget.key(item[0])] = item[1]


def _formatted(value: Any, specification: str) -> str:
    """The text of a field of an f-string."""
    conversion = None
    if type(value) is Field:
        value, conversion = value.value, value.conversion
    return names.formatted(value, conversion, specification)


def _joined(pieces: list[str]) -> str:
    budget.items(sum(map(len, pieces)), "a string")
    return "".join(pieces)


def _modules(items: list[tuple[Any, str | None]]) -> Iterator[tuple[str, Any]]:
    """(name, what it means) of `import PATH as NAME`, and of `import PATH`: the first of a path's names."""
    for path, name in items:
        found = names.imported(path)
        root = path.partition(".")[0]
        yield (name, found) if name else (root, names.imported(root))


def _import_from(module: Any, items: list[tuple[Any, str | None]], scope: dict[str, Any]) -> None:
    """Bind `NAME as OTHER` of a module in a scope."""
    for path, name in items:
        try:
            scope[name or path] = names.attribute(module, str(path))
        except AttributeError as error:
            refused = f"cannot import name {str(path)!r} from {module!r}"
            ours = isinstance(module, names.Constants)
            raise ImportError(str(error) if ours else refused) from None


# Rows whose result may carry a new node.
MARKED = frozenset((_ATTRIBUTE, _SUBSCRIPT, _NEG, _INVERT, KIND["pos"]))


def simple(
    machine: Machine,
    program: Program,
    kind: int,
    operand: int,
    stack: list[Any],
    scope: dict[str, Any],
) -> Any:
    """Do one row that neither jumps nor is hot; returns what it left on the stack."""
    words = program.words
    value: Any
    if kind == _ATTRIBUTE:
        value = stack[-1] = names.attribute(stack[-1], words[operand])
        return value
    if kind in UNARY:
        value = stack[-1] = UNARY[kind](stack[-1])
        return value
    if kind == _SUBSCRIPT:
        value = subscript(stack[-2], stack[-1])
        stack.pop()
        stack[-1] = value
        return value
    if kind in (_TARGET, _KEYWORD_NAME):
        stack.append(words[operand])
    elif kind == _WALRUS:
        value = stack.pop()
        bind(machine, scope, stack[-1], value)
        stack[-1] = value
    elif kind == _KEYWORD:
        value = stack.pop()
        stack[-1] = Keyword(stack[-1], value)
    elif kind in (_TUPLE, _TARGET_TUPLE):
        stack.append(tuple(pop_many(stack, operand)))
    elif kind == _LIST:
        stack.append(pop_many(stack, operand))
    elif kind == _DICT:
        stack.append(make_dict(pop_many(stack, operand)))
    elif kind == _PAIR:
        value = stack.pop()
        stack[-1] = (stack[-1], value)
    elif kind == _STARRED:
        stack[-1] = Starred(stack[-1])
    elif kind == _DOUBLE_STARRED:
        stack[-1] = DoubleStarred(stack[-1])
    elif kind == _SLICE:
        stack.append(make_slice(operand, pop_many(stack, operand.bit_count())))
    elif kind == _NOT:
        stack[-1] = not truth(stack[-1])
    elif kind == _CONCATENATE:
        value = stack.pop()
        stack[-1] += value
    elif kind == _CONVERT:
        stack[-1] = Field(stack[-1], program.constants[operand])
    elif kind in (_FORMAT, _FORMAT_SPEC):
        specification = stack.pop() if kind == _FORMAT_SPEC else ""
        stack[-1] = _formatted(stack[-1], specification)
    elif kind == _JOINED:
        stack.append(_joined(pop_many(stack, operand)))
    elif kind == _MODULE:
        stack.append(names.ModulePath(words[operand]))
    elif kind == _IMPORT_MODULE_AS:
        name = stack.pop()
        stack[-1] = (stack[-1], name)
    elif kind == _IMPORT_MODULE:
        stack[-1] = (stack[-1], None)
    elif kind == _IMPORT:
        scope.update(_modules(pop_many(stack, operand)))
    elif kind == _IMPORT_FROM:
        items = pop_many(stack, operand)
        _import_from(names.imported(stack.pop()), items, scope)
    elif kind not in (_PASS, _BLOCK):
        raise AssertionError(f"a row of kind {tree_kinds.KINDS[kind]} is not simple")
    return None
