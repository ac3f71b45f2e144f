"""Expressions as data: names, numbers, sums, products of powers, and calls.

Expressions are hash-consed: equal ones are the same object, so a derivative is a graph without copies.
The shape of an expression may be smaller than that of its value, to which it broadcasts: `1` stands for
ones of any shape.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from gradcli.formulas.algebra.exact_numbers import Number

Shape = tuple[int, ...]


PLAIN = frozenset(("select", "slice", "index", "T"))


class Expression:
    """One node.

    op: "name", "number", "array", "sum", "product" or "call". data: the name; the Number; the array;
    the coefficients of the terms and the constant; the coefficient and the exponents of the factors;
    the function's name and its options.
    """

    __slots__ = (
        *("__weakref__", "args", "content", "count", "data", "op", "parts", "plain", "position"),
        *("shape", "weight"),
    )

    parts: tuple[Expression, ...]
    plain: bool
    weight: int
    # Kept once they are known: what `shortest_form.operations` and `algebra.content_of` say.
    count: int | None
    content: tuple[Number, Expression | None] | None
    whole = None  # as of a Number: an exponent may be either

    def __init__(
        self, op: str, args: tuple[Expression, ...], data: Any, shape: Shape, position: int
    ) -> None:
        self.op, self.args, self.data, self.shape = op, args, data, shape
        self.count = self.content = None
        # The largest rank of a variable in it (see `differentiate.positions`): the order of printed factors.
        self.position = position
        # Whether it is a polynomial or a quotient of names, without calls.
        self.plain = (op != "call" or data[0] in PLAIN) and all(a.plain for a in args)
        # Its operands: arguments, and exponents that are expressions.
        self.parts = args
        if op == "product":
            self.parts += tuple(e for e in data[1] if isinstance(e, Expression))
        self.weight = 1 + sum(a.weight for a in self.parts)


class Known:
    """The expressions that one question has made, and what was found of them.

    a + b and b + a are one expression, printed as the first that was made. So a question sees none of other
    questions: its answer would depend on what was asked before. shortest: see `scalar_forms.shortest`.
    """

    def __init__(self) -> None:
        self.made: WeakValueDictionary[Any, Expression] = WeakValueDictionary()
        self.shortest: dict[Any, Expression] = {}


class _Questions(threading.local):
    """The question that a thread answers, and the last ones: the same question again is answered faster."""

    def __init__(self) -> None:
        self.open = Known()
        self.made = self.open.made
        self.kept: dict[Any, Known] = {}


_questions = _Questions()
_constants: WeakValueDictionary[Any, Expression] = WeakValueDictionary()  # of all questions
KEPT = 32  # questions that are remembered


def begin(question: Any) -> None:
    """From now on expressions are those of this question: anything hashable that tells it from others."""
    kept = _questions.kept
    found = kept.pop(question) if question in kept else Known()
    _questions.open = kept[question] = found  # the last in order, which is forgotten last
    _questions.made = _questions.open.made
    if len(kept) > KEPT:
        del kept[next(iter(kept))]


def known() -> Known:
    """The expressions of the question that is being answered."""
    return _questions.open


def make(
    op: str, args: tuple[Expression, ...], data: Any, shape: Shape, key: Any = None
) -> Expression:
    """The unique expression with these parts; made if there is none yet."""
    if key is None:
        key = (op, tuple(map(id, args)), data, shape)
    made = _constants if op == "number" else _questions.made
    found = made.get(key)
    if found is None:
        position = max((a.position for a in args), default=-1)
        if op == "product":
            position = max([position, *(e.position for e in data[1] if isinstance(e, Expression))])
        found = made[key] = Expression(op, args, data, shape, position)
    return found


def name(word: str, shape: Shape, position: int) -> Expression:
    """A variable."""
    key = ("name", word, shape, position)
    made = _constants if position == -1 else _questions.made
    found = made.get(key)
    if found is None:
        found = made[key] = Expression("name", (), word, shape, position)
    return found


def number(value: Any) -> Expression:
    """A constant."""
    n = value if type(value) is Number else Number.of(value)
    return make("number", (), n, (), ("number", n.key, type(n.value), n.decimal))


def array(value: Any) -> Expression:
    """A constant array, which is printed with all its elements."""
    value = np.asarray(value)
    return make("array", (), value, value.shape, ("array", id(value)))


def call(
    function: str,
    args: Sequence[Expression],
    shape: Shape,
    options: Iterable[tuple[str, Any]] = (),
) -> Expression:
    """A function of the language applied to expressions."""
    given = tuple(options)
    key = ("call", function, tuple(map(id, args)), repr(given), shape)
    return make("call", tuple(args), (function, given), shape, key)


def is_call(expression: Expression, *functions: str) -> bool:
    """Whether it is a call of one of these functions."""
    return expression.op == "call" and expression.data[0] in functions


def value_of(expression: Expression) -> Number | None:
    """The number of a constant; None for any other expression."""
    return expression.data if expression.op == "number" else None


def is_number(expression: Expression, value: int) -> bool:
    """Whether it is this constant."""
    n = value_of(expression)
    return n is not None and n.value == value


def is_size(expression: Expression) -> bool:
    """Whether it is the symbolic size of a dimension: a name such as `x.shape[0]`."""
    return expression.op == "name" and "." in expression.data


def broadcast(shapes: Iterable[Shape]) -> Shape:
    """The shape of an elementwise result."""
    total: Shape = ()
    for shape in shapes:
        if shape != total and shape:
            total = np.broadcast_shapes(total, shape) if total else shape
    return total


def order(
    roots: Iterable[Expression], is_leaf: Callable[[Expression], bool] | None = None
) -> list[Expression]:
    """All subexpressions of the roots in topological order, operands first; not those of leaves."""
    found: list[Expression] = []
    seen: set[Expression] = set()
    stack: list[Expression | None] = [*reversed(list(roots))]
    waiting: list[Expression] = []  # operands are pushed after a None, which marks their end
    while stack:
        node = stack.pop()
        if node is None:
            found.append(waiting.pop())
        elif node not in seen:
            seen.add(node)
            if node.parts and (is_leaf is None or not is_leaf(node)):
                waiting.append(node)
                stack.append(None)
                stack.extend(node.parts[::-1])
            else:
                found.append(node)
    return found


def sort_key(factor: Expression, exponent: Any = None) -> tuple[int, int, int]:
    """The sort key of a factor in a product: constants, then in the order of variables in the source."""
    position = factor.position
    rank = {"number": 0, "name": 1, "call": 3}.get(factor.op, 4)
    if is_call(factor, "eye"):  # c*eye(n): a matrix follows its scalar factors
        return (sys.maxsize, rank, 0)
    if isinstance(exponent, Expression):
        position, rank = max(position, exponent.position), 3
    elif factor.plain and rank > 1:
        rank = 1 if factor.op == "call" else 2
    return (position, rank, factor.weight)


__all__ = [
    *("ONE", "Expression", "Number", "begin", "call", "is_call", "known", "make", "name", "number"),
    "order",
]
