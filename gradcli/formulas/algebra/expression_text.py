"""Expressions as text of this language; the base of all other printers.

Every subexpression is printed once, as (text, precedence), and before its users. So nothing recurses, and
the user of a piece decides whether it needs parentheses.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from gradcli.formulas.algebra.algebra import HALF, is_bare, negate
from gradcli.formulas.algebra.exact_numbers import MINUS_ONE, ONE, Number
from gradcli.formulas.algebra.expressions import Expression, is_call, make, order

Piece = tuple[str, int]

# Python's precedences; a larger one binds tighter. `*`, `@`, `/`, `//` and `%` share one and associate to
# the left: only the first operand goes without parentheses. REMAINDER has the same precedence, but needs
# parentheses before a sign or a factor is added.
CONDITION, COMPARE, OR, XOR, AND, SUM, REMAINDER, PRODUCT, SIGN, POWER, ATOM = (
    *(5, 10, 12, 14, 16, 20, 29, 30, 35, 40, 50),
)

LARGEST = Fraction(sys.float_info.max)
INFIX = {
    "eq": (" == ", COMPARE),
    "ne": (" != ", COMPARE),
    "lt": (" < ", COMPARE),
    "le": (" <= ", COMPARE),
    "gt": (" > ", COMPARE),
    "ge": (" >= ", COMPARE),
    "bitwise_or": (" | ", OR),
    "bitwise_and": (" & ", AND),
    # They associate to the left as * and / do, but a sign in front would bind tighter: see REMAINDER.
    "remainder": (" % ", REMAINDER),
    "floor_divide": ("//", REMAINDER),
}


def enclosed(piece: Piece, least: int) -> str:
    """The text, in parentheses if it binds less tightly than `least`."""
    text, precedence = piece
    return text if precedence >= least else f"({text})"


class Printer:
    """Prints expressions as text of the language; subclasses print other notations."""

    def __init__(self, names: Mapping[int, str] | None = None) -> None:
        # Subexpressions that --cse assigned a name to.
        self.names = dict(names or {})
        self.pieces: dict[Expression, Piece] = {}

    def text(self, expression: Expression) -> str:
        """The expression as text."""
        return self.piece(expression)[0]

    def piece(self, expression: Expression) -> Piece:
        """(text, precedence) of an expression."""
        for node in order([expression], lambda n: id(n) in self.names or n in self.pieces):
            if id(node) not in self.names and node not in self.pieces:
                self.pieces[node] = self.make(node)
        return self.of(expression)

    def of(self, expression: Expression) -> Piece:
        """The piece of a subexpression that is already printed."""
        named = self.names.get(id(expression))
        if named is not None:
            return named, ATOM
        return self.pieces[expression] if expression in self.pieces else self.piece(expression)

    def make(self, node: Expression) -> Piece:
        """The piece of a node whose operands are already printed."""
        return getattr(self, f"make_{node.op}")(node)  # type: ignore[no-any-return]

    # -- by kind ----------------------------------------------------------------------------------
    def make_name(self, node: Expression) -> Piece:
        is_pi = node.data == "pi" and node.position == -1
        return (self.constants.get("pi", "pi") if is_pi else node.data), ATOM

    def make_number(self, node: Expression) -> Piece:
        return self.number(node.data)

    def number(self, value: Number) -> Piece:
        """A constant: a fraction as a quotient, a decimal as a decimal."""
        text, precedence = numeral(value)
        return self.constants.get(text, text), precedence

    def make_array(self, node: Expression) -> Piece:
        return f"tensor({np.asarray(node.data).tolist()})", ATOM

    def make_sum(self, node: Expression) -> Piece:
        coefficients, constant = node.data
        parts: list[tuple[bool, Piece]] = []
        for term, coefficient in zip(node.args, coefficients, strict=True):
            parts.append(self.term(coefficient, term))
        if constant.whole != 0:
            sign = constant.negative
            parts.append((sign, self.number(-constant if sign else constant)))
        # `1 - x` rather than `-x + 1`: something positive first, if there is any
        first = next((i for i, (negative, _) in enumerate(parts) if not negative), 0)
        parts.insert(0, parts.pop(first))
        negative, piece = parts[0]
        # -x % y is (-x) % y
        shown = self.wrapped(piece, PRODUCT if negative else SUM + 1)
        text = f"-{shown}" if negative else shown
        for negative, piece in parts[1:]:
            text += f" {'-' if negative else '+'} {self.wrapped(piece, SUM + 1)}"
        return text, SUM

    def term(self, coefficient: Number, term: Expression) -> tuple[bool, Piece]:
        """(whether it is subtracted, its piece): a term of a sum."""
        negative = coefficient.negative
        size = -coefficient if negative else coefficient
        if size.whole == 1:
            piece = self.of(term)
        elif term.op == "product" and id(term) not in self.names:
            piece = self.quotient(size, term.args, term.data[1])
        else:
            piece = self.quotient(size, (term,), (ONE,))
        return negative, piece

    def wrapped(self, piece: Piece, least: int) -> str:
        """The text, in this notation's parentheses if it binds less tightly than `least`."""
        return enclosed(piece, least)

    def make_product(self, node: Expression) -> Piece:
        coefficient, exponents = node.data
        negative = coefficient.negative
        if negative:
            coefficient = -coefficient
        text, precedence = self.quotient(coefficient, node.args, exponents)
        if not negative:
            return text, precedence
        if precedence < PRODUCT:
            text, precedence = self.wrapped((text, precedence), PRODUCT), ATOM
        return f"-{text}", min(SIGN if precedence > PRODUCT else PRODUCT, precedence)

    def quotient(
        self, coefficient: Number, bases: Iterable[Expression], exponents: Iterable[Any]
    ) -> Piece:
        """A product as a fraction: factors with negative exponents go into the denominator."""
        above: list[Piece] = []
        below: list[Piece] = []
        value = coefficient.value
        if coefficient.whole != 1:
            if coefficient.exact and not _decimal(coefficient):
                if value.numerator != 1:
                    above.append(self.number(Number.of(value.numerator)))
                if value.denominator != 1:
                    below.append(self.number(Number.of(value.denominator)))
            else:
                above.append(self.number(coefficient))
        # whether what stands above, and below, has dimensions
        arrays, under = [False] * len(above), [False] * len(below)
        for base, exponent in _joined(zip(bases, exponents, strict=True)):
            if isinstance(exponent, Number) and exponent.negative:
                below.append(self.power(base, -exponent))
                under.append(bool(base.shape))
            elif isinstance(exponent, Expression) and self.flips(exponent):
                below.append(self.power(base, _negated(exponent)))
                under.append(bool(base.shape or exponent.shape))
            else:
                text, precedence = self.power(base, exponent)
                if (
                    above
                    and not any(arrays)
                    and precedence == PRODUCT
                    and is_call(base, *self.linear)
                ):
                    precedence = ATOM  # c*A@x, which is (c*A)@x, is c*(A@x) for a number c
                above.append((text, precedence))
                arrays.append(bool(base.shape or getattr(exponent, "shape", ())))
        return self.fraction(above, below, arrays + under)

    def flips(self, exponent: Expression) -> bool:
        """Whether a symbolic exponent reads better negated, in the denominator."""
        return exponent.op == "product" and bool(exponent.data[0].negative)

    def fraction(self, above: list[Piece], below: list[Piece], arrays: list[bool]) -> Piece:
        """`a*b/(c*d)`; arrays: which factors have dimensions, those above before those below."""
        if not above:
            top: Piece = ("1", ATOM)
        elif len(above) == 1:
            top = above[0]
        else:
            top = ("*".join(self.factors(above)), PRODUCT)
        if not below:
            return top
        bottom = (
            enclosed(below[0], PRODUCT + 1)
            if len(below) == 1
            else f"({'*'.join(self.factors(below))})"
        )
        return f"{enclosed(top, PRODUCT)}/{bottom}", PRODUCT

    def factors(self, pieces: list[Piece]) -> list[str]:
        """The factors of a product, with parentheses around all but the first where needed."""
        return [enclosed(p, PRODUCT + 1 if i else PRODUCT) for i, p in enumerate(pieces)]

    def power(self, base: Expression, exponent: Any) -> Piece:
        """A factor with its exponent."""
        if isinstance(exponent, Number):
            if exponent.whole == 1:
                return self.of(base)
            if (exponent.value == HALF.value and not exponent.decimal) or exponent == HALF:
                return self.call("sqrt", [self.of(base)])
            shown = self.number(exponent)
        else:
            shown = self.of(exponent)
        return f"{enclosed(self.of(base), POWER + 1)}**{enclosed(shown, POWER)}", POWER

    def call(
        self, function: str, args: list[Piece], options: Iterable[tuple[str, Any]] = ()
    ) -> Piece:
        """`function(args, key=value)`."""
        return f"{function}({', '.join(self.arguments(args, options))})", ATOM

    def arguments(self, args: list[Piece], options: Iterable[tuple[str, Any]]) -> list[str]:
        """The arguments of a call in order; an option `("@", i)` stands for the i-th operand."""
        given = list(options)
        placed = any(key == "@" for key, _ in given)
        parts = [] if placed else [a[0] for a in args]
        for key, value in given:
            if key == "@":
                parts.append(args[value][0])
            else:
                parts.append(f"{key}={self.literal(value)}" if key else self.literal(value))
        return parts

    def literal(self, value: Any) -> str:
        """An option."""
        text = literal(value.python() if isinstance(value, Number) else value)
        return self.constants.get(text, text)

    def make_call(self, node: Expression) -> Piece:
        function, options = node.data
        args = [self.of(a) for a in node.args]
        handler = getattr(self, f"call_{function.replace('.', '_')}", None)
        if function in self.special:
            return self.special[function](self, args, options, node)
        if handler is not None:
            return handler(args, options, node)  # type: ignore[no-any-return]
        if function in INFIX and len(args) == 2:
            sign, precedence = INFIX[function]
            a, b = args
            least = precedence + 1 if precedence != REMAINDER else SIGN
            return f"{enclosed(a, least)}{sign}{enclosed(b, least)}", precedence
        return self.call(function, args, options)

    # -- calls with a notation of their own -------------------------------------------------------
    def call_matmul(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        a, b = args
        # A product on the left needs no parentheses, but is easier to read with them.
        chained = is_call(node.args[0], "matmul", "dot") and id(node.args[0]) not in self.names
        least = PRODUCT if chained else PRODUCT + 1
        return f"{enclosed(a, least)}@{enclosed(b, PRODUCT + 1)}", PRODUCT

    def call_dot(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        return self.call_matmul(args, options, node)

    def call_T(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        return f"{enclosed(args[0], ATOM)}.T", ATOM

    def call_permute(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        if turns_matrices(options[0][1]):
            return f"{enclosed(args[0], ATOM)}.mT", ATOM
        return self.call("permute", args, options)

    def call_bitwise_not(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        return f"~{enclosed(args[0], POWER)}", SIGN

    def call_select(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        (_, dim), (_, index) = options
        ndim = len(node.args[0].shape)
        dim = dim % ndim if ndim else dim
        return f"{enclosed(args[0], ATOM)}[{':, ' * dim}{index}]", ATOM

    def call_slice(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        (_, dim), (_, start), (_, end), (_, step) = options
        size = node.args[0].shape[dim]
        first = "" if not start else str(start)
        last = "" if end is None or end >= size else str(end)
        stride = "" if step == 1 else f":{step}"
        dim = dim % len(node.args[0].shape)
        return f"{enclosed(args[0], ATOM)}[{':, ' * dim}{first}:{last}{stride}]", ATOM

    def call_index(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        inner = ", ".join(a[0] for a in args[1:])
        return f"{enclosed(args[0], ATOM)}[{inner}]", ATOM

    def call_ones(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        return self.call(node.data[0], [(str(n), ATOM) for n in node.shape] or [("()", ATOM)])

    call_zeros = call_ones

    def call_eye(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        return self.call("eye", [(str(node.shape[0]), ATOM)])

    def call_expand(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        sizes = [(str(n), ATOM) for n in node.shape]
        return f"{enclosed(args[0], ATOM)}.expand({', '.join(s[0] for s in sizes)})", ATOM

    def call_expand_as(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        return f"{enclosed(args[0], ATOM)}.expand_as({args[1][0]})", ATOM

    def call_reshape(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        before = node.args[0].shape
        after = node.shape
        if len(after) > len(before) and tuple(n for n in after if n != 1) == before:
            marks = ", ".join("None" if n == 1 else ":" for n in after)
            return f"{enclosed(args[0], ATOM)}[{marks}]", ATOM
        sizes = ", ".join(map(str, node.shape)) if node.shape else "()"
        return f"{enclosed(args[0], ATOM)}.reshape({sizes})", ATOM

    def call_contiguous(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        return f"{enclosed(args[0], ATOM)}.contiguous()", ATOM

    def call_to(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        own = f"tensor({args[0][0]})" if is_bare(node.args[0]) else enclosed(args[0], ATOM)
        return f"{own}.to({literal(options[0][1])})", ATOM

    def call_index_put(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        more = "".join(f", {literal(v)}" for _, v in options)
        return f"{enclosed(args[0], ATOM)}.index_put({args[1][0]}, {args[2][0]}{more})", ATOM

    def call_float(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        """An integer as a literal with a decimal point."""
        text, precedence = args[0]
        return (f"{text}.0" if text.lstrip("-").isdigit() else text), precedence

    def call_clamp(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        return self.call("clamp", args, options)

    def between(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        """A clamp written with a maximum and a minimum: `min(max(x, 0), 1)`."""
        piece, given = args[0], dict(options)
        for key, function in (("min", "maximum"), ("max", "minimum")):
            if given.get(key) is not None:
                piece = self.call(function, [piece, self.number(Number.of(given[key]))])
        return piece

    constants: Mapping[str, str] = {}  # how pi, inf, -inf and nan are written elsewhere

    linear: tuple[str, ...] = ("matmul", "dot")  # infix products that may have a number in front

    special: Mapping[str, Callable[..., Piece]] = {
        "[]": lambda self, args, options, node: (f"[{', '.join(a[0] for a in args)}]", ATOM),
        "()": lambda self, args, options, node: (
            f"({', '.join(a[0] for a in args)}{',' if len(args) == 1 else ''})",
            ATOM,
        ),
        ":": lambda self, args, options, node: (":", ATOM),
    }


def _joined(pairs: Iterable[tuple[Expression, Any]]) -> list[tuple[Expression, Any]]:
    """The factors, with square roots of constants merged: sqrt(2)*sqrt(pi) is sqrt(2*pi)."""
    found = list(pairs)
    constants = [
        (b, e)
        for b, e in found
        if isinstance(e, Number) and e.integer is None and b.position == -1 and not b.shape
    ]
    joined: list[tuple[Expression, Any]] = []
    for exponent in dict.fromkeys(e for _, e in constants):
        alike = [b for b, e in constants if e == exponent]
        if len(alike) > 1:
            numbers = [b for b in alike if b.op == "number"]
            names = tuple(b for b in alike if b.op != "number")
            if len(numbers) == 1 and names:
                data = (numbers[0].data, (ONE,) * len(names))
                key = ("joined", numbers[0].data, tuple(map(id, names)))
                joined.append((make("product", names, data, (), key), exponent))
                found = [(b, e) for b, e in found if b not in alike or e != exponent]
    return [*joined, *found]


def constants_of(module: str) -> dict[str, str]:
    """The constants as a module of Python has them."""
    return {**{w: f"{module}.{w}" for w in ("pi", "inf", "nan")}, "-inf": f"-{module}.inf"}


def turns_matrices(order: Sequence[int]) -> bool:
    """Whether an order of dimensions exchanges the last two."""
    *batch, i, k = order
    return [*batch, k, i] == sorted(order)


def _negated(exponent: Expression) -> Expression | Number:
    found = negate(exponent)
    return found.data if found.op == "number" else found


def _decimal(value: Number) -> bool:
    """Whether a number is written with a decimal point."""
    fraction = value.value
    if not value.decimal or not value.exact:
        return False
    rest = fraction.denominator
    if rest == 1:
        return False
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return bool(rest == 1 or fraction.denominator > 1000)


def numeral(value: Number) -> Piece:
    """A constant as Python writes it."""
    v = value.value
    if isinstance(v, complex):
        return (repr(v)[1:-1], SUM) if v.real else (repr(v), ATOM)
    if isinstance(v, float):
        return (repr(v), SIGN if v < 0 else ATOM)
    if abs(v) > LARGEST:
        from gradcli.formulas.algebra.spelling import NoExpression

        raise NoExpression("the derivative has a constant that no number holds")
    if v.denominator == 1:
        n = v.numerator
        text = str(n)
        if (value.decimal and len(text) > 15) or len(text) > 18:
            text = repr(float(v))
        return text, SIGN if n < 0 else ATOM
    if _decimal(value) or max(abs(v.numerator), v.denominator) > 10**15:
        text = repr(float(v))
        return text, SIGN if v < 0 else ATOM
    return f"{v.numerator}/{v.denominator}", PRODUCT


def literal(value: Any) -> str:
    """An option as the language writes it."""
    if isinstance(value, (list, tuple)):
        inner = ", ".join(literal(v) for v in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if hasattr(value, "dtype") and hasattr(value, "name"):
        return str(value.name)
    if isinstance(value, np.generic):
        return literal(value.item())
    return repr(value)


def to_text(expression: Expression, names: Mapping[int, str] | None = None) -> str:
    """The expression as text of the language."""
    return Printer(names).text(expression)


Expression.__repr__ = to_text  # type: ignore[assignment, method-assign]  # for who debugs


__all__ = ["MINUS_ONE", "Printer", "enclosed", "literal", "numeral", "to_text"]
