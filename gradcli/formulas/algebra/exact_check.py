"""Whether expressions are equal: their values in 40 digits at points on both sides of every branch.

Where they differ, what cancels may have lost the digits: there 80 digits decide. At points that people use
(0, 1 and -1), and where a denominator is zero, the other expression may not have lost a finite value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from decimal import Context, Decimal, DecimalException, getcontext, localcontext
from functools import cache
from itertools import product
from typing import Any

from gradcli.formulas.algebra.exact_numbers import Number
from gradcli.formulas.algebra.expressions import Expression, is_call, order
from gradcli.formulas.algebra.generic_points import Generic

DIGITS = 40
AGREE = Decimal(10) ** -20  # relative; far from what rounding makes of 40 digits
ZERO = Decimal(10) ** -10  # smaller values are compared as if they had this size
FINITE = Decimal(10) ** 15  # larger values are what rounding left of a zero below the line
FEWEST = 6  # points at which the value is real
LARGE = 400  # nodes of an expression that is compared at the fewest points alone
# (low, high, points): positive, larger, both signs; the last two if few points of the others are real.
RANGES = ((0.2, 1.9, 6), (1.1, 4.0, 3), (-3.0, 3.0, 7), (-1.2, 1.2, 20), (-12.0, 12.0, 40))
MOST = sum(n for _, _, n in RANGES[:3])
# Functions of complex numbers without branches: what is made of them by sums, products and whole powers is
# the same everywhere if it is around a point. atan(1/x) + atan(x) is not, which jumps at 0.
SINGLE_VALUED = frozenset(
    "exp expm1 sin cos tan sinh cosh tanh sigmoid erf erfc special.ndtr".split()
)
USED = (Decimal(0), Decimal(1), Decimal(-1))  # values of variables at which branches often join


def pi() -> Decimal:
    """The number, with twenty digits more than the context has."""
    return _machin(getcontext().prec + 20)


# Machin's formula: pi is 16*atan(1/5) - 4*atan(1/239), two series that converge fast.
@cache
def _machin(digits: int) -> Decimal:
    whole = 10 ** (digits + 5)  # whole numbers of this part are ten times as fast as decimals

    def atan(n: int) -> int:
        """atan(1/n)."""
        power, total, k = whole // n, 0, 1
        while power:
            total += power // k if k % 4 == 1 else -(power // k)
            power, k = power // (n * n), k + 2
        return total

    with localcontext(Context(prec=digits)):
        return Decimal(16 * atan(5) - 4 * atan(239)).scaleb(-digits - 5)


@cache
def _turns(digits: int) -> tuple[Decimal, Decimal, Decimal]:
    """A quarter of a turn, half of one and a whole one."""
    with localcontext(Context(prec=digits)):
        half = +_machin(digits + 20)
        return half / 2, half, 2 * half


# Series are summed as whole numbers of this part, as many bits as there are digits and some more: that is ten
# times as fast as decimals.
def _whole(x: Decimal) -> tuple[int, int]:
    """(the absolute value of a number, in units of 1/2**bits; bits)."""
    bits = max(64, 4 * (getcontext().prec - x.adjusted()))
    return int(abs(x) * (1 << bits)), bits


def _is_first_term(x: Decimal) -> bool:
    """Whether the first term of a series has all digits: as a whole number, exp(-1e7) takes a long time."""
    return x.adjusted() < -getcontext().prec


def _decimal_of(whole: int, bits: int, sign: Decimal) -> Decimal:
    return (Decimal(whole) / (1 << bits)).copy_sign(sign)


def _atan_series(x: Decimal) -> Decimal:
    if _is_first_term(x):
        return x
    power, bits = _whole(x)
    square, total, k = power * power >> bits, power, 1
    while power:
        power, k = power * square >> bits, k + 2
        total += power // k if k % 4 == 1 else -(power // k)
    return _decimal_of(total, bits, x)


def _sin(x: Decimal) -> Decimal:
    quarter, half, turn = _turns(getcontext().prec)
    x = x % turn
    # Of an angle below a quarter of a turn the series has a third of the terms.
    if abs(x) > quarter:
        x = half.copy_sign(x) - x if abs(x) < turn - quarter else x - turn.copy_sign(x)
    if _is_first_term(x):
        return x
    term, bits = _whole(x)
    square, total, k = term * term >> bits, term, 1
    while term:
        term, k = (term * square >> bits) // ((k + 1) * (k + 2)), k + 2
        total += term if k % 4 == 1 else -term
    return _decimal_of(total, bits, x)


def _cos(x: Decimal) -> Decimal:
    return _sin(x + _turns(getcontext().prec)[0])


def _sinh(x: Decimal) -> Decimal:
    return (x.exp() - (-x).exp()) / 2


def _cosh(x: Decimal) -> Decimal:
    return (x.exp() + (-x).exp()) / 2


def _atan(x: Decimal) -> Decimal:
    # Four halvings bring any argument below 0.1, where each term of the series brings two digits.
    for _ in range(4):  # atan(x) is 2*atan(x/(1 + sqrt(1 + x**2)))
        x = x / (1 + (1 + x * x).sqrt())
    return 16 * _atan_series(x)


def _asin(x: Decimal) -> Decimal:
    return _atan(x / (1 - x * x).sqrt())


def _erf(x: Decimal) -> Decimal:
    # 1 - erf(x) is below exp(-x**2), which has no digits left there.
    if abs(x) > getcontext().prec // 4:
        return Decimal(1).copy_sign(x)
    if _is_first_term(x):
        return 2 * x / pi().sqrt()
    term, bits = _whole(x)
    square, total, k = 2 * term * term >> bits, term, 1
    while term:
        term, k = (term * square >> bits) // (k + 2), k + 2
        total += term
    return 2 * _decimal_of(total, bits, x) * (-x * x).exp() / pi().sqrt()


def _sign(x: Decimal) -> Decimal:
    return Decimal((x > 0) - (x < 0))


FUNCTIONS: dict[str, Callable[[Decimal], Decimal]] = {
    "exp": Decimal.exp,
    "log": Decimal.ln,
    "abs": abs,
    "sign": _sign,
    "sin": _sin,
    "cos": _cos,
    "tan": lambda x: _sin(x) / _cos(x),
    "sinh": _sinh,
    "cosh": _cosh,
    "tanh": lambda x: _sinh(x) / _cosh(x),
    "asin": _asin,
    "acos": lambda x: pi() / 2 - _asin(x),
    "atan": _atan,
    "asinh": lambda x: _sign(x) * (abs(x) + (x * x + 1).sqrt()).ln(),
    "acosh": lambda x: (x + (x - 1).sqrt() * (x + 1).sqrt()).ln(),
    "atanh": lambda x: ((1 + x) / (1 - x)).ln() / 2,
    "erf": _erf,
    "erfc": lambda x: 1 - _erf(x),
    "sigmoid": lambda x: 1 / (1 + (-x).exp()),
    "special.ndtr": lambda x: (1 + _erf(x / Decimal(2).sqrt())) / 2,
    "log1p": lambda x: (1 + x).ln(),
    "expm1": lambda x: x.exp() - 1,
}


def is_leaf(node: Expression) -> bool:
    """Whether it is not looked into: neither a sum, nor a product, nor one of `FUNCTIONS`."""
    return node.op == "call" and (node.data[0] not in FUNCTIONS or bool(node.data[1]))


def _is_free(node: Expression) -> bool:
    """Whether it may have any value: variables, and calls that are not looked into."""
    return node.op == "array" or is_leaf(node) or (node.op == "name" and node.data != "pi")


def _value(node: Expression, values: dict[Expression, Decimal]) -> Decimal:
    if node.op == "number":
        return _decimal(node.data)
    if node.op == "name":
        return pi()
    if node.op == "sum":
        coefficients, constant = node.data
        terms = zip(node.args, coefficients, strict=True)
        return sum((values[t] * _decimal(c) for t, c in terms), start=_decimal(constant))
    if node.op == "product":
        found = _decimal(node.data[0])
        for base, e in zip(node.args, node.data[1], strict=True):
            found *= _power(values[base], e, values)
        return found
    return FUNCTIONS[node.data[0]](values[node.args[0]])


def _decimal(n: Number) -> Decimal:
    if type(n.value) is float:  # 20**1000.0, of an exponent with a decimal
        return Decimal(n.value)
    return Decimal(n.value.numerator) / Decimal(n.value.denominator)


def _power(base: Decimal, e: Any, values: dict[Expression, Decimal]) -> Decimal:
    if isinstance(e, Expression):
        return base ** values[e]
    if e.whole == 1:
        return base
    if e.integer is not None:
        return base ** Decimal(e.integer)
    if e.value.denominator == 2:
        return base.sqrt() ** Decimal(e.value.numerator)
    return base ** _decimal(e)


class Check:
    """The values of an expression at points where it is real, with which others are compared.

    signs: those of variables, where they are assumed.
    """

    def __init__(self, expression: Expression, signs: Mapping[str, int]) -> None:
        nodes = order([expression], is_leaf)
        self.leaves = [n for n in nodes if _is_free(n)]
        self.expression, self.signs, self.edges = expression, signs, _edges(nodes)
        letters = [e for n in nodes if n.op == "product" for e in n.parts[len(n.args) :]]
        self.exponents = {n for n in order(letters, is_leaf) if _is_free(n)}
        self.known: list[tuple[Decimal, dict[Expression, Decimal]]] = []
        self._left = self._points()
        # Of a large expression six points are enough: two different ones that agree at six would have to be
        # made so. So they are of what has no branches.
        self.smooth, self.large = _is_smooth(nodes), len(nodes) > LARGE

    def _points(self) -> Iterator[dict[Expression, Decimal]]:
        numbers = Generic(7)
        for low, high, count in RANGES:
            for _ in range(count):
                drawn = map(Decimal, numbers.uniform(low, high, (len(self.leaves),)).tolist())
                yield {n: self._signed(n, d) for n, d in zip(self.leaves, drawn, strict=True)}

    def _signed(self, leaf: Expression, drawn: Decimal) -> Decimal:
        """A number of the sign that is assumed of a variable."""
        own = self.sign(leaf)
        return own * abs(drawn) if own else drawn

    def sign(self, leaf: Expression) -> int:
        """The sign that is assumed of a variable; 0 if there is none."""
        return self.signs.get(leaf.data, 0) if leaf.op == "name" else 0

    def accepts(self, other: Expression) -> bool:
        """Whether another expression has the same values, at no fewer than six points."""
        smooth = self.large or (self.smooth and _is_smooth(order([other], is_leaf)))
        count = FEWEST if smooth else MOST
        with _digits(DIGITS):
            for values in self._left if len(self.known) < count else ():
                own = evaluated(self.expression, values)
                if own is not None:
                    self.known.append((own, values))
                if len(self.known) == count:
                    break
            return (
                len(self.known) >= FEWEST
                and all(
                    # A form may cancel more digits than the decimals have; with twice as many it is seen to
                    # be equal or not.
                    _agree(own, evaluated(other, values)) or self._agrees_finely(other, values)
                    for own, values in self.known[:count]
                )
                and self._keeps_values(other)
            )

    def _agrees_finely(self, other: Expression, values: dict[Expression, Decimal]) -> bool:
        """Whether it has the same value at a point, in twice as many digits."""
        point = {n: values[n] for n in self.leaves}
        with _digits(2 * DIGITS):
            own = evaluated(self.expression, point)
            return own is not None and _agree(own, evaluated(other, point))

    def _keeps_values(self, other: Expression) -> bool:
        """Whether it has the same value wherever the expression has one, at points of no general position.

        They are looked at if either has a jump or a power u**v, or the other one an edge of its own.
        """
        # x**2/x equals x everywhere but at 0, and points drawn at random never hit 0.
        edges = _edges(order([other], is_leaf))
        new = edges - self.edges
        jumps = any(isinstance(e, str) for e in edges | self.edges)
        if not (new or jumps or self.exponents):
            return True
        for point in self._special_points([e for e in new if isinstance(e, Expression)]):
            own = evaluated(self.expression, dict(point))
            if own is not None and abs(own) < FINITE and not _agree(own, evaluated(other, point)):
                return False
        return True

    def _special_points(self, edges: list[Expression]) -> Iterator[dict[Expression, Decimal]]:
        """One variable, or all of them, at the values of `USED`; one at the zero of an edge linear in it.

        Powers of what is negative have values where the exponent is an integer.
        """
        generic = next(self._points())
        # (-2)**x has values at integers alone; u**v rewritten as exp(v*log(u)) would lose them.
        if self.exponents:
            free = [n for n in self.leaves if n not in self.exponents and self.sign(n) < 1]
            whole = {n: self._signed(n, Decimal(k)) for k, n in enumerate(self.exponents, 2)}
            yield {**generic, **{n: -abs(generic[n]) for n in free}, **whole}
        for value in USED:
            signs = {leaf: self.sign(leaf) for leaf in self.leaves}
            free = [leaf for leaf, sign in signs.items() if not sign or value * sign > 0]
            yield from ({**generic, leaf: value} for leaf in free)
            yield {**generic, **dict.fromkeys(free, value)}
        # Where 1 - 2*x is below a line, the point x = 1/2 is found by two values: the zero of a line
        # through them.
        for leaf, edge in product(self.leaves, edges):
            first, second = (evaluated(edge, {**generic, leaf: value}) for value in USED[:2])
            if first is not None and second is not None and first != second:
                point = {**generic, leaf: first / (first - second)}
                if evaluated(edge, dict(point)) == 0:  # not what rounding made of it
                    yield point


def _is_smooth(nodes: list[Expression]) -> bool:
    """Whether it has no branches, see `SINGLE_VALUED`."""
    for node in nodes:
        if node.op == "product":
            if any(isinstance(e, Expression) or e.integer is None for e in node.data[1]):
                return False
        elif node.op == "call" and node.data[0] not in SINGLE_VALUED and not is_leaf(node):
            return False
    return True


def _edges(nodes: list[Expression]) -> set[Expression | str]:
    """What has no value, or a jump, where it is zero: denominators, arguments of log, "sign" of any."""
    found: set[Expression | str] = set()
    for node in nodes:
        if node.op == "product":
            pairs = zip(node.args, node.data[1], strict=True)
            found |= {b for b, e in pairs if isinstance(e, Expression) or e.negative}
        elif is_call(node, "log"):
            found.add(node.args[0])
        elif is_call(node, "sign"):
            found.add("sign")
    return found


def _digits(count: int) -> AbstractContextManager[Context]:
    return localcontext(Context(prec=count, Emax=10**6, Emin=-(10**6)))


def _agree(own: Decimal, found: Decimal | None) -> bool:
    return found is not None and abs(found - own) <= AGREE * max(abs(own), abs(found), ZERO)


def evaluated(expression: Expression, values: dict[Expression, Decimal]) -> Decimal | None:
    """The value of an expression, None where it is not real and finite; values: what is known, in place."""
    try:
        for node in order([expression], lambda n: n in values or is_leaf(n)):
            if node not in values:
                values[node] = _value(node, values)
    except (DecimalException, KeyError):
        return None
    found = values[expression]
    return found if found.is_finite() else None


__all__ = ["Check", "is_call", "is_leaf"]
