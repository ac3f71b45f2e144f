"""Evaluates expressions on tensors, or on anything else that the functions of the language take.

An expression means what its text means: `*` multiplies the values of its operands, and a call runs the
language's function of that name. Higher derivatives trace this evaluation, so no text is parsed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from operator import mul
from typing import Any

import numpy as np

from gradcli.core.tensor import Tensor, wrap
from gradcli.language.names import meaning, qualified
from gradcli.language.operations import call
from gradcli.symbolic.algebra import HALF
from gradcli.symbolic.exact_numbers import ONE, ZERO, Number
from gradcli.symbolic.expression_text import INFIX
from gradcli.symbolic.expressions import Expression, is_call, order
from gradcli.symbolic.unknown_functions import meaning_of

Values = dict[Expression, Any]


def evaluate(roots: Iterable[Expression], known: Mapping[Expression, Any]) -> list[Any]:
    """The values of expressions; known: values of variables and of any other subexpressions."""
    values: Values = dict(known)
    wanted = list(roots)
    for node in order(wanted):
        if node not in values:
            values[node] = _MAKE[node.op](node, values)
    return [values[r] for r in wanted]


def constants(roots: Iterable[Expression]) -> list[Expression]:
    """The largest constant subexpressions that are not plain numbers, such as sqrt(3) or log(5)."""
    fixed: set[Expression] = set()
    found: dict[Expression, None] = {}
    nodes = order(roots)
    for node in nodes:
        parts = node.parts
        if node.shape or is_call(node, "[]", "()", ":", "float"):
            continue
        if node.op == "name" and node.position != -1:
            continue
        if node.op == "name" or (parts and all(p in fixed or p.op == "number" for p in parts)):
            fixed.add(node)
    for node in nodes:
        if node not in fixed:
            found.update(dict.fromkeys(p for p in node.parts if p in fixed))
    return list(found)


def _number(n: Number) -> Any:
    return n.python()


def _scaled(value: Any, n: Number) -> Any:
    """A value times a number; a fraction multiplies and divides by integers."""
    if n == ONE:
        return value
    if n.exact and not n.decimal and n.integer is None:
        over, under = n.value.numerator, n.value.denominator
        return (value if over == 1 else value * over) / under
    return -value if n == -ONE else value * _number(n)


def _name(node: Expression, values: Values) -> Any:
    raise KeyError(f"no value for {node.data}")


def _array(node: Expression, values: Values) -> Any:
    return wrap(np.asarray(node.data))


def _sum(node: Expression, values: Values) -> Any:
    coefficients, constant = node.data
    terms = [_scaled(values[t], c) for t, c in zip(node.args, coefficients, strict=True)]
    found = reduce(lambda a, b: a + b, terms)
    return found if constant == ZERO else found + _number(constant)


def _product(node: Expression, values: Values) -> Any:
    coefficient, exponents = node.data
    above: list[Any] = []
    below: list[Any] = []
    for base, e in zip(node.args, exponents, strict=True):
        if isinstance(e, Number) and e.negative:
            below.append(_power(values[base], -e))
        else:
            above.append(_power(values[base], e if isinstance(e, Number) else values[e]))
    if not above:
        return _scaled(1 / reduce(mul, below), coefficient)
    found = reduce(mul, above)
    return _scaled(found / reduce(mul, below) if below else found, coefficient)


def _power(base: Any, exponent: Any) -> Any:
    if not isinstance(exponent, Number):
        return base**exponent
    if exponent == ONE:
        return base
    if exponent == HALF:
        return call(meaning("sqrt"), [base], {})
    return base ** _number(exponent)


def _call(node: Expression, values: Values) -> Any:
    word, options = node.data
    args = [values[a] for a in node.args]
    made = _FORMS.get(word)
    if made is not None:
        return made(node, args, options)
    positional: list[Any] = [] if any(k == "@" for k, _ in options) else list(args)
    named: dict[str, Any] = {}
    for key, value in options:
        if key == "@":
            positional.append(args[value])
        elif key:
            named[key] = _option(value)
        else:
            positional.append(_option(value))
    unknown = meaning_of(word, len(args))
    if unknown is not None:
        return unknown(*args)
    # `torch.complex`: the name alone is Python's.
    own = qualified(word.removeprefix("torch.")) if word.startswith("torch.") else meaning(word)
    return call(own, positional, named)


def _option(value: Any) -> Any:
    return _number(value) if isinstance(value, Number) else value


def _operator(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda node, args, options: function(*args)


def _sized(word: str) -> Callable[..., Any]:
    return lambda node, args, options: call(meaning(word), list(node.shape) or [()], {})


def _select(node: Expression, args: list[Any], options: Any) -> Any:
    (_, dim), (_, index) = options
    own = args[0]
    if isinstance(own, (tuple, list)):
        return own[index]
    return own[(*[slice(None)] * (dim % len(node.args[0].shape)), index)]


def _slice(node: Expression, args: list[Any], options: Any) -> Any:
    (_, dim), (_, start), (_, end), (_, step) = options
    places = [slice(None)] * (dim % len(node.args[0].shape))
    return args[0][(*places, slice(start, end, step))]


def _full_like(node: Expression, args: list[Any], options: Any) -> Any:
    return call(meaning("zeros"), list(node.shape) or [()], {}) + args[1]


def _tensor(node: Expression, args: list[Any], options: Any) -> Any:
    """A tensor of numbers; pi may be one already."""
    (own,) = args
    return own if isinstance(own, Tensor) else call(meaning("tensor"), [own], {})


_MAKE: dict[str, Callable[[Expression, Values], Any]] = {
    "name": _name,
    "number": lambda node, values: _number(node.data),
    "array": _array,
    "sum": _sum,
    "product": _product,
    "call": _call,
}
_OPERATORS: dict[str, Callable[..., Any]] = {
    "bitwise_not": lambda a: ~a,
    "matmul": lambda a, b: a @ b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "bitwise_or": lambda a, b: a | b,
    "bitwise_and": lambda a, b: a & b,
    "remainder": lambda a, b: a % b,
    "floor_divide": lambda a, b: call(meaning("div"), [a, b], {"rounding_mode": "floor"}),
}
assert not INFIX.keys() - _OPERATORS.keys()
_FORMS: dict[str, Callable[[Expression, list[Any], Any], Any]] = {
    **{word: _operator(function) for word, function in _OPERATORS.items()},
    "[]": lambda node, args, options: args,
    "()": lambda node, args, options: tuple(args),
    ":": lambda node, args, options: slice(None),
    "T": lambda node, args, options: args[0].T,
    "select": _select,
    "slice": _slice,
    "index": lambda node, args, options: args[0][tuple(args[1:])],
    "ones": _sized("ones"),
    "zeros": _sized("zeros"),
    "eye": lambda node, args, options: call(meaning("eye"), [node.shape[0]], {}),
    "expand": lambda node, args, options: args[0].expand(*node.shape),
    "expand_as": lambda node, args, options: args[0].expand_as(args[1]),
    "full_like": _full_like,
    "zeros_like": _sized("zeros"),
    "ones_like": _sized("ones"),
    "reshape": lambda node, args, options: args[0].reshape(node.shape),
    "float": lambda node, args, options: float(args[0]),
    "tensor": _tensor,
    "to": lambda node, args, options: _tensor(node, args, options).to(options[0][1]),
    "index_put": lambda node, args, options: args[0].index_put(*args[1:], *(v for _, v in options)),
}
__all__ = ["constants", "evaluate"]
