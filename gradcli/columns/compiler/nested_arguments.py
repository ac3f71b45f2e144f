"""Arguments of a compiled function that are no arrays: those that hold several, and those that are constants.

A call is taken apart into arrays, the leaves, and into its form: how they are nested, and what stays as it
is. A function is compiled for each form as one of its leaves, which are named by their places (`params.w`).
"""

from __future__ import annotations

import enum
import inspect
import keyword
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from gradcli.engine.core import pytrees
from gradcli.engine.core.tensor import Tensor

_ARRAY = "array"  # the form of a leaf
# What is no number, and never changes: a function is compiled for each of its values.
_CONSTANTS = (str, bytes, bool, type(None), type, enum.Enum, np.dtype, range)


class Constant(NamedTuple):
    """The form of a value that stays what it is. kind: its class, for 1 is equal to True."""

    kind: type
    value: Any


class Nested(NamedTuple):
    """The form of a value that holds others. context: keys, or the names of fields."""

    kind: type
    context: Any
    items: tuple[Any, ...]

    @property
    def names(self) -> Sequence[Any]:
        """What the items are called: by a key, a field, or a number."""
        return _names(self.kind, self.context, len(self.items))


def is_variable(value: Any) -> bool:
    """Whether a value is one variable: an array, a number, or a list of numbers."""
    if isinstance(value, (Tensor, np.ndarray, np.generic, float, int, complex)):
        return not isinstance(value, enum.Enum)
    if isinstance(value, (list, tuple)):
        return not hasattr(value, "_make") and all(
            is_variable(v) and not getattr(v, "ndim", 0) for v in value
        )
    if isinstance(value, (Decimal, Fraction)):
        return True  # which is refused as an array
    return hasattr(value, "__array__") and not isinstance(value, type)


def is_plain(value: Any) -> bool:
    """Whether a value is an array as the quick way of a call takes it, or almost."""
    return is_variable(value) and value.__class__ is not bool


def form_of(name: str, value: Any, leaves: dict[str, Any]) -> Hashable:
    """The form of a value, whose leaves are added by name. Raises TypeError for what has none."""
    if is_plain(value):
        while name in leaves:  # of the keys 1 and "1"
            name += "'"
        leaves[name] = value
        return _ARRAY
    if isinstance(value, _CONSTANTS) or (callable(value) and not _has_parameters(value)):
        return constant(name, value)
    found = pytrees.items_of(value)
    if found is None and isinstance(value, Mapping):
        found = [*value], [*value.values()]
    if found is None:
        kind = type(value).__name__
        remedy = (
            f"name it a constant, static=[{name.split('.')[0]!r}], or pass the arrays that it has"
        )
        if _has_parameters(value):
            remedy = "gradcli.func.functional_call(model, params, x) takes its parameters as a dict"
        raise TypeError(f"{name} is a {kind}, which is neither an array nor holds arrays: {remedy}")
    context, items = found
    names = _names(type(value), context, len(items))
    forms = [form_of(f"{name}.{n}", v, leaves) for n, v in zip(names, items, strict=True)]
    own = isinstance(value, (dict, list, tuple)) or pytrees.is_object(value)
    return Nested(
        type(value) if own else dict,
        tuple(context) if type(context) is list else context,
        tuple(forms),
    )


def _names(kind: Any, context: Any, count: int) -> Sequence[Any]:
    names: Sequence[Any] | None = getattr(kind, "_fields", context)  # of a named tuple
    return range(count) if names is None else names


def constant(name: str, value: Any) -> Constant:
    """The form of a value that the function is compiled for."""
    try:
        hash(value)
    except TypeError:
        kind = type(value).__name__
        raise TypeError(
            f"{name} is a {kind}, which can change: a constant has to be hashable, a tuple in place of a "
            "list"
        ) from None
    return Constant(type(value), value)


def _has_parameters(value: Any) -> bool:
    return hasattr(value, "named_parameters")


def filled(form: Any, leaves: Iterator[Any]) -> Any:
    """The value of a form, with these leaves in their order."""
    if form is _ARRAY:
        return next(leaves)
    if type(form) is Constant:
        return form.value
    items = [filled(item, leaves) for item in form.items]
    named = form.context is not None and issubclass(form.kind, dict)
    return pytrees.made(form.kind, list(form.context) if named else form.context, items)


def part_of(form: Any, name: str, path: str) -> Any:
    """The form of the part of a value that `path` names, and how many leaves come before it."""
    before = 0
    while name != path:
        for n, item in zip(form.names, form.items, strict=True):
            under = f"{name}.{n}"
            if path == under or path.startswith(f"{under}."):
                form, name = item, under
                break
            before += count(item)
        else:
            raise KeyError(path)
    return form, before


def count(form: Any) -> int:
    """The number of leaves of a form."""
    if form is _ARRAY:
        return 1
    return 0 if type(form) is Constant else sum(map(count, form.items))


class Parameters:
    """A function's parameters: how a call binds them, and how the function is called with their values."""

    def __init__(self, function: Callable[..., Any], title: str, static: Sequence[str]) -> None:
        self.function, self.signature = function, inspect.signature(function)
        self.title, self.static = title, frozenset(static)
        every = self.signature.parameters
        self.names = list(every)
        if unknown := self.static - set(self.names):
            raise ValueError(f"static: {title} has no parameter {min(unknown)!r}")
        kinds = inspect.Parameter
        self.gathers = any(
            p.kind in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD) for p in every.values()
        )
        self.defaults = {n: p.default for n, p in every.items() if p.default is not kinds.empty}
        # Whether variables by name may be passed by position, as `func.grad(f)` wants them.
        in_order = (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
        self.in_order = all(p.kind in in_order for p in every.values())

    @property
    def required(self) -> list[str]:
        """The variables to differentiate by, where none are named: what a call has to give."""
        found = [n for n in self.names if n not in self.defaults and n not in self.static]
        return found or [n for n in self.names if n not in self.static]

    def bound(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
        """The values by parameter, with defaults. Raises TypeError."""
        try:
            found = self.signature.bind(*args, **named)
        except TypeError as error:
            raise TypeError(f"{self.title}: {error}") from None  # Python's words
        found.apply_defaults()
        return dict(found.arguments)

    def form(self, values: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[Any, ...]]:
        """(the leaves by name, the forms of the parameters)."""
        leaves: dict[str, Any] = {}
        forms = [
            constant(n, v) if n in self.static else form_of(n, v, leaves) for n, v in values.items()
        ]
        return leaves, tuple(forms)

    def of_leaves(self, forms: tuple[Any, ...]) -> Callable[..., Any]:
        """The function of the leaves by name, in their order."""

        def flat(**leaves: Any) -> Any:
            order = iter(leaves.values())
            values = {n: filled(f, order) for n, f in zip(self.names, forms, strict=True)}
            found = inspect.BoundArguments(self.signature, OrderedDict(values))
            return self.function(*found.args, **found.kwargs)

        return flat


def signature_of(names: Sequence[str]) -> inspect.Signature:
    """The signature of a function of variables, by position or by name."""
    kinds = inspect.Parameter
    if all(n.isidentifier() and not keyword.iskeyword(n) for n in names):
        return inspect.Signature([kinds(n, kinds.POSITIONAL_OR_KEYWORD) for n in names])
    several = [kinds("args", kinds.VAR_POSITIONAL), kinds("arrays", kinds.VAR_KEYWORD)]
    return inspect.Signature(several)  # of parts of arguments: params.w


def constants_text(names: Sequence[str], forms: Sequence[Any]) -> str:
    """The constants of a form: `mode='sum', n=3`."""
    found: list[str] = []

    def add(name: str, form: Any) -> None:
        if type(form) is Constant:
            found.append(f"{name}={form.value!r}")
        elif type(form) is Nested:
            for n, item in zip(form.names, form.items, strict=True):
                add(f"{name}.{n}", item)

    for name, form in zip(names, forms, strict=True):
        add(name, form)
    return ", ".join(found)


__all__ = ["Constant", "Nested", "Parameters", "constants_text", "filled", "form_of", "part_of"]
