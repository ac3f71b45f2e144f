"""The algebra of expressions: sums, products and powers in a normal form, by exact rules only.

Constants are folded exactly, neutral elements vanish, like terms and like factors are collected, powers
are merged and signs move out. The few rules of functions are in tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import reduce
from math import gcd
from typing import Any

from gradcli.engine.system.dtypes import boolean
from gradcli.formulas.algebra.assuming import current
from gradcli.formulas.algebra.exact_numbers import MINUS_ONE, ONE, ZERO, Number
from gradcli.formulas.algebra.expressions import (
    Expression,
    Shape,
    array,
    broadcast,
    call,
    is_call,
    is_number,
    is_size,
    make,
    number,
    order,
    sort_key,
    value_of,
)
from gradcli.formulas.algebra.rules import Rules

HALF = Number(Fraction(1, 2))
Exponent = Number | Expression

zero, one, minus_one = number(0), number(1), number(-1)


# -- sums -----------------------------------------------------------------------------------------
def split(expression: Expression) -> tuple[Number, Expression]:
    """(coefficient, rest) of a term; like terms have the same rest."""
    if expression.op == "number":
        return expression.data, one
    if expression.op == "product" and expression.data[0].whole != 1:
        coefficient, exponents = expression.data
        return coefficient, collected(ONE, list(zip(expression.args, exponents, strict=True)))
    return ONE, expression


def terms_of(node: Expression) -> list[tuple[Number, Expression]]:
    """The (coefficient, term) pairs of a sum, the constant last."""
    if node.op != "sum":
        return [split(node)]
    coefficients, constant = node.data
    found = list(zip(coefficients, node.args, strict=True))
    return [*found, (constant, one)] if constant.whole != 0 else found


def powers_of(term: Expression) -> list[tuple[Expression, Any]]:
    """The (factor, exponent) pairs of a term."""
    if term is one:
        return []
    if term.op == "product":
        return list(zip(term.args, term.data[1], strict=True))
    return [(term, ONE)]


def mapped(own: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """A sum or a product with each operand changed."""
    if own.op == "sum":
        coefficients, constant = own.data
        return combine([*zip(map(change, own.args), coefficients, strict=True), (one, constant)])
    pairs = powers_of(own)
    return product(
        ((change(b), _exponent(change(e)) if isinstance(e, Expression) else e) for b, e in pairs),
        own.data[0],
    )


def add(*terms: Expression) -> Expression:
    """The sum."""
    return combine((t, ONE) for t in terms)


def subtract(a: Expression, b: Expression) -> Expression:
    """The difference."""
    return combine([(a, ONE), (b, MINUS_ONE)])


def combine(terms: Iterable[tuple[Expression, Number]]) -> Expression:
    """The sum of terms with coefficients."""
    constant = ZERO
    found: dict[Expression, Number] = {}
    for given, factor in terms:
        # A condition is added as 1 or 0: (x > 0) + 1 is where(x > 0, 1, 0) + 1, for booleans have no sum.
        term = counted(given)
        for rest, coefficient in _flat(term, factor):
            if rest is one:
                constant = constant + coefficient
            else:
                had = found.get(rest)
                found[rest] = coefficient if had is None else had + coefficient
    return _sum({t: c for t, c in found.items() if c.whole != 0}, constant)


def _flat(term: Expression, factor: Number) -> Iterable[tuple[Expression, Number]]:
    """The (coefficient, term) pairs of a term, with a sum opened if it may be multiplied out."""
    coefficient, rest = split(term)
    coefficient = coefficient if factor is ONE else coefficient * factor
    if rest.op == "sum":
        coefficients, constant = rest.data
        for t, c in zip(rest.args, coefficients, strict=True):
            yield t, c * coefficient
        yield one, constant * coefficient
    else:
        yield rest, coefficient


def _sum(terms: dict[Expression, Number], constant: Number) -> Expression:
    if not terms:
        return number(constant)
    if len(terms) == 1:
        ((term, coefficient),) = terms.items()
        if constant.whole == 0:
            return scale(coefficient, term)
        # 1 - sigmoid(u) has lost its digits where sigmoid(u) is near 1, and sigmoid(-u) has all of them.
        if coefficient == -constant and is_call(term, *COMPLEMENTS):
            return scale(constant, call(term.data[0], [negate(term.args[0])], term.shape))
        if coefficient == constant and is_call(term, "expm1"):
            return scale(constant, function("exp", *term.args))
    args, coefficients = tuple(terms), tuple(terms.values())
    shape = _shape(args)
    # The key has no order, so that a + b and b + a are one expression; the first that is made decides how
    # it is printed.
    own = frozenset((id(t), c.key, c.decimal) for t, c in terms.items())
    key = ("sum", own, constant.key, shape)
    return make("sum", args, (coefficients, constant), shape, key)


def _shape(operands: Sequence[Expression]) -> Shape:
    """The shape of an elementwise result; most expressions are of numbers."""
    return broadcast([a.shape for a in operands]) if any(a.shape for a in operands) else ()


def negate(expression: Expression) -> Expression:
    """Minus the expression."""
    return scale(MINUS_ONE, expression)


def scale(coefficient: Number, expression: Expression) -> Expression:
    """A number times the expression; -(a - b) becomes b - a."""
    if coefficient.whole == 1:
        return expression
    return product([(expression, ONE)], coefficient)


# -- products and powers --------------------------------------------------------------------------
def multiply(*factors: Expression) -> Expression:
    """The product."""
    return product((f, ONE) for f in factors)


def divide(a: Expression, b: Expression) -> Expression:
    """The quotient."""
    return product([(a, ONE), (b, MINUS_ONE)])


def power(base: Expression, exponent: Expression) -> Expression:
    """`base ** exponent`."""
    n = value_of(exponent)
    return product([(base, exponent if n is None else n.unrounded())])


def root(base: Expression) -> Expression:
    """The square root."""
    return product([(base, HALF)])


def product(
    factors: Iterable[tuple[Expression, Exponent]], coefficient: Number = ONE
) -> Expression:
    """The product of (base, exponent) pairs and a coefficient, with like factors collected."""
    found: dict[Expression, Exponent] = {}
    exponential: list[tuple[Expression, Number]] = []
    # A stack: what a factor is opened into comes next, so that factors stay in the order in which they are
    # written.
    waiting = list(factors)[::-1]
    while waiting:
        base, exponent = waiting.pop()
        if exponent.whole == 0:
            continue
        base = counted(base)
        folded = _number_of(base, exponent)
        if folded is not None:
            coefficient = folded if coefficient is ONE else coefficient * folded
            continue
        exact = isinstance(exponent, Number) and exponent.integer is not None
        if base.op == "product":
            opened = _opened(base, exponent)
            if opened is not None:
                coefficient = coefficient if opened[0] is ONE else coefficient * opened[0]
                waiting += opened[1]
                continue
        # (2*x + 2)**3 is 8*(x + 1)**3, so that it meets (x + 1) of other factors as a like factor.
        elif base.op == "sum" and exact and exponent.whole != 1:
            content, base = content_of(base)
            folded = content.power(exponent)  # type: ignore[arg-type]
            coefficient = coefficient * (folded or ONE)
            if folded is None:
                waiting.append((number(content), exponent))
        word = base.data[0] if base.op == "call" else None
        # Exponentials are gathered and become one: exp(u)*exp(v)**2 is exp(u + 2*v), where terms may
        # cancel.
        if word == "exp" and exact:
            exponential.append((base.args[0], exponent))  # type: ignore[arg-type]
            continue
        if word == "abs" and current.get().real and exact and exponent.integer % 2 == 0:  # type: ignore
            base = base.args[0]
        _gather(found, base, exponent)
    if coefficient.whole == 0:
        return zero
    if exponential:
        total = combine(exponential)
        if not is_number(total, 0):
            _gather(found, call("exp", [total], total.shape), ONE)
    # x**2*x**(-2) leaves x**0, which is 1 also at 0, as limits have it; the proof tells where a text
    # differs.
    pairs = [(b, e) for b, e in found.items() if e.whole != 0]
    again = any(  # sqrt(2)*sqrt(2)
        b.op == "number" and isinstance(e, Number) and b.data.power(e) for b, e in pairs
    )
    # What has become new factors (abs(u) of sign(u)*u) may be like others, so the product is made again.
    pairs, signed = _signs(pairs)
    return product(pairs, coefficient) if again or signed else collected(coefficient, pairs)


def _gather(found: dict[Expression, Exponent], base: Expression, exponent: Exponent) -> None:
    had = found.get(base)
    found[base] = exponent if had is None else _plus(had, exponent)


def _number_of(base: Expression, exponent: Exponent) -> Number | None:
    """The value of a power if it is exact: that of 4**(1/2), but not of 2**(1/2)."""
    if base.op != "number" or not isinstance(exponent, Number):
        return None
    n: Number = base.data
    value = n.power(exponent)
    # A number that is no fraction, as inf, is still a factor as it is.
    if value is None and not n.exact and exponent.whole == 1:
        return n
    return value


def _opened(
    base: Expression, exponent: Exponent
) -> tuple[Number, list[tuple[Expression, Exponent]]] | None:
    """(number, powers): the power of a product distributed over its factors, as far as that is valid.

    A root only goes to factors that are surely positive. None if the power stays as it is.
    """
    if not isinstance(exponent, Number):
        return None
    inner, exponents = base.data
    factors = list(zip(base.args, exponents, strict=True))
    # An integer power goes to every factor, whatever their signs are: (x*y)**2 is x**2*y**2.
    if exponent.integer is not None:
        powers = [(b, _times(e, exponent)) for b, e in factors]
        folded = ONE if inner is ONE else inner.power(exponent)
        if folded is None and inner.whole != 1:
            powers = [(number(inner), exponent), *powers]
        return folded or ONE, powers
    # sqrt(x*y) is not sqrt(x)*sqrt(y) where both are negative; of 4*pi*x the 4 and the pi may leave the
    # root.
    sure = [(b, _times(e, exponent)) for b, e in factors if _is_pi(b)]
    if not inner.exact or inner.negative or (inner.whole == 1 and not sure):
        return None
    rest = collected(ONE, [(b, e) for b, e in factors if not _is_pi(b)])
    return ONE, [(number(inner), exponent), *sure, (rest, exponent)]


def _is_pi(base: Expression) -> bool:
    return base.op == "name" and base.data == "pi" and base.position == -1


def _signs(
    pairs: list[tuple[Expression, Exponent]],
) -> tuple[list[tuple[Expression, Exponent]], bool]:
    """For real u, sign(u)*abs(u) is u and sign(u)*u is abs(u)."""
    if not current.get().real:
        return pairs, False
    bases = {b for b, e in pairs if e.whole == 1}
    for base in bases:
        if base.op == "call" and is_call(base, "sign", "sgn"):
            for other in bases:
                if is_call(other, "abs") and other.args[0] is base.args[0]:
                    kept = [(b, e) for b, e in pairs if b is not base and b is not other]
                    return [*kept, (base.args[0], ONE)], True
                if other is base.args[0]:
                    kept = [(b, e) for b, e in pairs if b is not base and b is not other]
                    return [*kept, (call("abs", [other], other.shape), ONE)], True
    return pairs, False


def content_of(total: Expression) -> tuple[Number, Expression]:
    """(factor, rest) of a sum: the common rational factor of all coefficients, with a common sign."""
    # It is asked for at every product with the sum.
    known = total.content
    if known is None:
        factor, rest = _content_of(total)
        known = total.content = factor, None if rest is total else rest
    return known[0], known[1] or total


def _content_of(total: Expression) -> tuple[Number, Expression]:
    coefficients, constant = total.data
    numbers = [c for c in (*coefficients, constant) if c.whole != 0]
    # Of decimals nothing is taken out: 0.1*x + 0.3 would become 0.1*(x + 3) by a division that rounds.
    if all(c.exact and not c.decimal for c in numbers):
        common = Fraction(
            reduce(gcd, (c.value.numerator for c in numbers)),
            reduce(_lcm, (c.value.denominator for c in numbers)),
        )
    else:
        common = Fraction(1)
    # -x - y is -(x + y): so a sum and its negative share one form, and cancel.
    if all(c.negative for c in numbers):
        common = -common
    if common == 1:
        return ONE, total
    inverse = Number(1 / common)
    terms = {t: c * inverse for t, c in zip(total.args, coefficients, strict=True)}
    return Number(common), _sum(terms, constant * inverse)


def _lcm(a: int, b: int) -> int:
    return a * b // gcd(a, b)


def _times(a: Exponent, b: Exponent) -> Exponent:
    if isinstance(a, Number) and isinstance(b, Number):
        return b if a is ONE else a * b
    return _exponent(multiply(_expression(a), _expression(b)))


def _plus(a: Exponent, b: Exponent) -> Exponent:
    if isinstance(a, Number) and isinstance(b, Number):
        return a + b
    return _exponent(add(_expression(a), _expression(b)))


def _expression(e: Exponent) -> Expression:
    return number(e) if isinstance(e, Number) else e


def _exponent(e: Expression) -> Exponent:
    n = value_of(e)
    return e if n is None else n


def collected(coefficient: Number, pairs: list[tuple[Expression, Exponent]]) -> Expression:
    """The product in normal form, from factors that are already collected."""
    if not pairs:
        return number(coefficient)
    if len(pairs) == 1 and pairs[0][1].whole == 1:
        base = pairs[0][0]
        if coefficient.whole == 1:
            return base
        if base.op == "sum":
            own, base = content_of(base)
            coefficient = coefficient * own
            if coefficient.whole == 1:
                return base
            if coefficient.whole == -1:
                coefficients, constant = base.data
                terms = {t: -c for t, c in zip(base.args, coefficients, strict=True)}
                return _sum(terms, -constant)
            pairs = [(base, ONE)]
    # Every sum in a product gives its content to the coefficient: 2*x*(3*y + 3) is 6*x*(y + 1).
    elif any(b.op == "sum" and e.whole == 1 for b, e in pairs):
        made: dict[Expression, Exponent] = {}
        for base, exponent in pairs:
            if base.op == "sum" and exponent.whole == 1:
                own, base = content_of(base)
                coefficient = coefficient * own
            had = made.get(base)
            made[base] = exponent if had is None else _plus(had, exponent)
        if len(made) < len(pairs):  # (2 - 2*x)*(1 - x) is 2*(1 - x)**2
            return product(made.items(), coefficient)
        pairs = list(made.items())
    if len(pairs) > 1:
        pairs.sort(key=lambda p: sort_key(*p))
    args = tuple(b for b, _ in pairs)
    exponents = tuple(e for _, e in pairs)
    shape = _shape([*args, *(e for e in exponents if isinstance(e, Expression))])
    factors = frozenset((id(b), e.key if isinstance(e, Number) else id(e)) for b, e in pairs)
    key = ("product", coefficient.key, coefficient.decimal, factors, shape)
    return make("product", args, (coefficient, exponents), shape, key)


# -- functions ------------------------------------------------------------------------------------
def function(word: str, *args: Expression) -> Expression:
    """An elementwise function of expressions, simplified by its rules if it has any."""
    bits = word in _BITS
    if word not in TRUTHS and not bits:
        args = tuple(map(counted, args))
    rule = FUNCTIONS.get(word)
    found = rule(*args) if rule is not None else None
    if found is not None:
        return found
    odd = word in ODD
    if (odd or word in EVEN) and len(args) == 1 and leads_negative(args[0]):
        made = call(word, [negate(args[0])], args[0].shape)
        return negate(made) if odd else made
    if (
        len(args) > 1
        and not bits
        and all(
            is_bare(a) or (is_integral(a) and word not in TRUTHS and not current.get().whole)
            for a in args
        )
    ):  # many functions are not defined on integers
        first = args[0]
        args = (call("float", [first], ()) if is_bare(first) else floating(first), *args[1:])
    return call(word, args, _shape(args))


ODD = frozenset("sin tan sinh tanh asin atan asinh atanh erf erfinv sign sgn".split())
EVEN = frozenset("cos cosh abs sinc".split())
COMPLEMENTS = (
    "sigmoid",
    "special.ndtr",
)  # 1 - f(u) is f(-u), which keeps its digits where f(u) is near 1


def leads_negative(expression: Expression) -> bool:
    if expression.op == "product":
        return bool(expression.data[0].negative)
    if expression.op == "number":
        return bool(expression.data.negative)
    return expression.op == "sum" and all(
        c.negative for c in (*expression.data[0], expression.data[1]) if c.whole != 0
    )


def _at_zero(value: int) -> Callable[[Expression], Expression | None]:
    return lambda u: number(value) if is_number(u, 0) else None


# sin(q*pi)**2 is k/4 for these q; every other rational turn has a sine that needs more than one root.
_SQUARED_SINES = {
    Fraction(0): 0,
    Fraction(1, 6): 1,
    Fraction(1, 4): 2,
    Fraction(1, 3): 3,
    HALF.value: 4,
}


def _sine(u: Expression, turn: Number = ZERO) -> Expression | None:
    """sin(u + turn*pi) for u = 0, pi/6, pi/4 and so on; None for others."""
    multiple, rest = split(u)
    if not ((_is_pi(rest) and multiple.exact) or is_number(u, 0)):
        return None
    q = multiple.value + turn.value
    square = _SQUARED_SINES.get(min(q % 1, 1 - q % 1))
    if square is None:
        return None
    value = scale(HALF, root(number(square)))
    return negate(value) if q % 2 > 1 else value


def _cosine(u: Expression) -> Expression | None:
    return _sine(u, HALF)


def _tangent(u: Expression) -> Expression | None:
    above, below = _sine(u), _cosine(u)
    if above is None or below is None or is_number(below, 0):
        return None
    return divide(above, below)


def _hypotenuse(a: Expression, b: Expression) -> Expression | None:
    x, y = value_of(a), value_of(b)
    return None if x is None or y is None else root(number(x * x + y * y))


def _is_above(u: Expression) -> bool:
    n = value_of(u)
    return n is not None and n.whole != 0 and not n.negative


def _exp(u: Expression) -> Expression | None:
    if is_number(u, 0):
        return one
    if u.op == "call":
        found: Expression | None = EXPONENTIALS.find(u.data[0], u.args, u)
        return found
    if u.op == "sum" and u.data[1].value == -math.inf:  # 1/gamma(0)
        return zero
    return _softmax(u)


# exp of a call.
EXPONENTIALS = Rules(
    ("log(a)", lambda own, a: a),
    ("log1p(a)", lambda own, a: add(a, one)),
    ("log_softmax(a)", lambda own, a: call("softmax", own.args, own.shape, own.data[1])),
)


def _softmax(u: Expression) -> Expression | None:
    """exp(v - logsumexp(v)) is softmax(v)."""
    for total, c in zip(u.args, u.data[0], strict=True) if u.op == "sum" else ():
        # A sum over dimensions that are kept is lifted as a reshape of the one that drops them.
        own = total.args[0] if is_call(total, "reshape") else total
        if c.whole == -1 and is_call(own, "logsumexp") and add(u, total) is own.args[0]:
            v, dim = own.args[0], own.data[1][0][1]
            kept = tuple(1 if dim in (k, k - len(v.shape)) else n for k, n in enumerate(v.shape))
            lead = (1,) * (len(kept) - len(total.shape))
            # Only if the total is broadcast back over the dimension that was summed: else rows would be
            # mixed.
            if isinstance(dim, int) and lead + total.shape == kept:
                return call("softmax", [v], v.shape, [("", dim)])
    return None


def _log(u: Expression) -> Expression | None:
    if is_number(u, 1):
        return zero
    return u.args[0] if is_call(u, "exp") else None


def _abs(u: Expression) -> Expression | None:
    n = value_of(u)
    if n is not None and n.exact:
        return number(-n if n.negative else n)
    if is_call(u, "abs") or (current.get().real and is_call(u, "exp", "sigmoid", "cosh")):
        return u
    return None


def _sign(u: Expression) -> Expression | None:
    n = value_of(u)
    if n is not None and n.exact:
        if n.whole == 0:
            return zero
        return minus_one if n.negative else one
    return None


def _reciprocal_square_root(u: Expression) -> Expression:
    return product([(u, -HALF)])


def _both(a: Expression, b: Expression) -> Expression | None:
    """`a & b` of conditions, simplified if one is constant; integers are left as bits."""
    for n, other in ((value_of(a), b), (value_of(b), a)):
        if n in (ZERO, ONE) and (n.whole == 0 or _chooses(other)):
            return zero if n.whole == 0 else other
    return None


def _either(a: Expression, b: Expression) -> Expression | None:
    """`a | b` of conditions, simplified if one is constant."""
    for n, other in ((value_of(a), b), (value_of(b), a)):
        if n in (ZERO, ONE) and _chooses(other):
            return other if n.whole == 0 else one
    return None


def _chooses(expression: Expression) -> bool:
    """Whether it is a condition, or a constant True or False."""
    return is_truth(expression) or value_of(expression) in (ZERO, ONE)


def _xlogy(a: Expression, b: Expression) -> Expression | None:
    if is_number(b, 1) or (is_number(a, 0) and value_of(b) is not None):
        return zero
    return function("log", b) if is_number(a, 1) else None


FUNCTIONS: dict[str, Callable[..., Expression | None]] = {
    "add": add,
    "sub": subtract,
    "mul": multiply,
    "div": divide,
    "neg": negate,
    "pow": power,
    "sqrt": root,
    "rsqrt": _reciprocal_square_root,
    "square": lambda u: product([(u, Number.of(2))]),
    "reciprocal": lambda u: product([(u, MINUS_ONE)]),
    "exp": _exp,
    "log": _log,
    "abs": _abs,
    "sign": _sign,
    "sgn": _sign,
    "sin": _sine,
    "tan": _tangent,
    "tanh": _at_zero(0),
    **dict.fromkeys(
        ("sigmoid", "special.ndtr"), lambda u: number(HALF) if is_number(u, 0) else None
    ),
    "sinh": _at_zero(0),
    "cos": _cosine,
    "cosh": _at_zero(1),
    "bitwise_and": _both,
    "logical_and": _both,
    "bitwise_or": _either,
    "logical_or": _either,
    "hypot": _hypotenuse,
    "atan2": lambda y, x: zero if is_number(y, 0) and _is_above(x) else None,
    "xlogy": _xlogy,
    "special.xlog1py": lambda a, b: function("log1p", b) if is_number(a, 1) else None,
}


def where(condition: Expression, a: Expression, b: Expression) -> Expression:
    """`where(condition, a, b)`, with equal branches merged and common factors moved out."""
    if a is b:
        return a
    n = value_of(condition)
    if n is not None:
        return a if n.whole != 0 else b
    # where(x < 0, 0, x) is a clamp: a reader sees at once that it has a lower end.
    if is_call(condition, "lt") and condition.args == (b, a) and value_of(a) is not None:
        return call("clamp", [b], b.shape, [("min", a.data)])
    return call("where", [condition, a, b], broadcast([condition.shape, a.shape, b.shape]))


# -- booleans and integers ----------------------------------------------------------------------
TRUTHS = frozenset(
    "eq ne lt le gt ge logical_and logical_or logical_not logical_xor isnan isinf isfinite signbit "
    "isposinf isneginf isclose isin any all".split()
)
_BITS = frozenset("bitwise_and bitwise_or bitwise_not bitwise_xor".split())
# The elements of the first operand, some of them, in another order.
_MOVED = frozenset(
    "detach expand expand_as reshape T permute select slice index flip roll rot90 diag diagonal tril "
    "triu diag_embed tile unfold as_strided narrow_copy gather take take_along_dim index_select "
    "masked_select amax amin max min nan_to_num sign channel_shuffle".split()
)
# The elements of all operands; and what gives them, and where they were, as two results.
_JOINED = frozenset("[] stack cat maximum minimum fmax fmin".split())
_ORDERED = ("sort", "topk", "kthvalue", "cummax", "cummin", "max", "min", "median", "mode")
# What writes into a copy of its operand, whose dtype the result has.
_WRITTEN = frozenset(
    "index_fill index_put index_copy select_scatter slice_scatter diagonal_scatter scatter "
    "masked_scatter nn.functional.pad constant_pad_nd".split()
)
_COUNTS = frozenset("sum cumsum prod trace".split())
_INTEGRAL = _COUNTS | frozenset("tensor [] stack cat trunc floor ceil".split())


def is_truth(expression: Expression) -> bool:
    """Whether it is a boolean expression."""
    if expression.op == "name":
        return _kind(expression) == "b"
    if expression.op == "array":
        return bool(expression.data.dtype.kind == "b")
    rule = _TRUE_IF.get(expression.data[0]) if expression.op == "call" else None
    return rule is not None and rule(expression.args, expression.data[1])


def _of_bits(args: Sequence[Expression], options: Any) -> bool:
    return any(map(is_truth, args)) and all(is_truth(a) or a in (zero, one) for a in args)


def _selected(args: Sequence[Expression], options: Any) -> bool:
    """An element; or the first of two results, `sort(mask)[0]`, of which the second are places."""
    own = args[0]
    if is_call(own, *_ORDERED):
        return options[1][1] == 0 and is_truth(own.args[0])
    return is_truth(own)


# By function, when its result is boolean; a function that is not here gives numbers.
_TRUE_IF: dict[str, Callable[[Sequence[Expression], Any], bool]] = {
    **dict.fromkeys(_MOVED | _WRITTEN, lambda args, options: is_truth(args[0])),
    **dict.fromkeys(TRUTHS, lambda args, options: True),
    **dict.fromkeys(_JOINED, lambda args, options: all(map(is_truth, args))),
    **dict.fromkeys(_BITS, _of_bits),
    "where": lambda args, options: is_truth(args[1]) and is_truth(args[2]),
    "to": lambda args, options: bool(options[0][1] is boolean),
    "select": _selected,
}


def counted(expression: Expression) -> Expression:
    """The expression as numbers: booleans, which cannot be added or negated, become 1 and 0."""
    return where(expression, one, zero) if is_truth(expression) else expression


def is_integral(expression: Expression) -> bool:
    """Whether its text has integer values, such as `where(x > 0, 1, 0)`."""
    if expression.op == "number":
        return expression.data.integer is not None
    if expression.op == "name":
        return _kind(expression) in ("i", "u")
    if expression.op == "array":
        return bool(expression.data.dtype.kind in "iu")
    if expression.op == "sum":
        numbers = (*expression.data[0], expression.data[1])
        return all(n.integer is not None for n in numbers) and all(
            map(is_integral, expression.args)
        )
    if expression.op == "product":
        coefficient, exponents = expression.data
        return (
            coefficient.integer is not None
            and all(isinstance(e, Number) and (e.integer or -1) > 0 for e in exponents)
            and all(map(is_integral, expression.args))
        )
    if expression.op != "call":
        return False
    if expression.data[0] == "where":
        return is_integral(expression.args[1]) and is_integral(expression.args[2])
    if expression.data[0] == "one_hot":
        return True
    if expression.data[0] == "to":
        return not expression.data[1][0][1].is_floating_point
    # A name such as `sort` does not tell; what was traced does, as the call was lifted (`note_integers`).
    if expression in (current.get().integers or ()):
        return True
    if expression.data[0] in _MOVED:
        return is_integral(expression.args[0])
    if expression.data[0] in _COUNTS and is_truth(expression.args[0]):
        return True
    return expression.data[0] in _INTEGRAL and all(map(is_integral, expression.args))


def _kind(variable: Expression) -> str:
    """The `dtype.kind` of a variable; "" for other names."""
    return current.get().kinds.get(variable.data, "")


def note_integers(expression: Expression) -> None:
    """Remember that a call has an integer result, if its function does not tell."""
    known = current.get().integers
    if known is not None and expression.op == "call" and not is_integral(expression):
        known.add(expression)


def floating(expression: Expression) -> Expression:
    """The expression with a floating dtype: integers and booleans are converted."""
    expression = counted(expression)
    if not is_integral(expression) or value_of(expression) is not None:
        return expression
    if expression.op == "array":
        return array(expression.data.astype(float))
    if expression.op == "call":
        (word, options), args = expression.data, expression.args
        if (found := FLOATS.find(word, args, expression)) is not None:
            return found  # type: ignore[no-any-return]
        if word in _INTEGRAL or word in _MOVED:
            count = 1 if word in _MOVED else len(args)  # what follows are the places
            given = (*map(floating, args[:count]), *args[count:])
            if given != args:
                return call(word, given, expression.shape, options)
    return call("mul", [call("float", [one], ()), expression], expression.shape)


def _other_as_float(own: Expression, condition: Expression, a: Expression, b: Expression) -> Any:
    """`where(c, 1, float(0))`: one operand with a floating dtype gives it to the result."""
    made = floating(b) if value_of(b) is None else call("float", [b], ())
    return call("where", [condition, a, made], own.shape)


# Calls with integer results, with a floating one instead.
FLOATS = Rules(
    ("where(c, a, b)", _other_as_float),
    ("tensor(a)", lambda own, a: call("tensor", [_as_float(a)], own.shape)),
    # `one_hot` gives integers; rows of `eye` are the same numbers as floats.
    (
        "one_hot(k)",
        lambda own, k: call("index", [call("eye", [], own.shape[-1:] * 2), k], own.shape),
    ),
)


def _as_float(own: Expression) -> Expression:
    """A number, or each number of a list, wrapped in `float`."""
    if is_call(own, "[]"):
        return call("[]", list(map(_as_float, own.args)), ())
    return call("float", [own], ())


# -- shapes ---------------------------------------------------------------------------------------
def full(expression: Expression, shape: Shape, discrete: bool = False) -> Expression:
    """The expression expanded to a shape; floating unless `discrete`."""
    if not discrete:
        expression = floating(expression)
    if expression.shape == shape:
        return expression
    if is_number(expression, 0):
        return call("zeros", [], shape, [("", shape)])
    constant = not discrete and expression.position == -1 and not expression.shape
    # A Python number has no method `expand`, and sqrt(2) is of no shape: both are multiplied by ones.
    if is_bare(expression) or constant:
        return multiply(expression, call("ones", [], shape, [("", shape)]))
    return call("expand", [expression], shape, [("", shape)])


def is_bare(expression: Expression) -> bool:
    """Whether its text is a Python number; functions such as sqrt(2) return tensors."""
    for node in order([expression]):
        if node.op == "product":
            if any(not isinstance(e, Number) or abs(e.value) == HALF.value for e in node.data[1]):
                return False
        elif node.op not in ("number", "sum") and not _is_pi(node) and not is_size(node):
            return False
    return True


def scalars_out_of_floats(
    expression: Expression,
) -> tuple[list[tuple[Expression, Exponent]], Expression]:
    """As `scalars_out`, for a function that takes no integers: without its factors a gradient may be
    ones and zeros."""
    outer, rest = scalars_out(expression)
    return outer, floating(rest) if outer else rest


def scalars_out(expression: Expression) -> tuple[list[tuple[Expression, Exponent]], Expression]:
    """(scalar factors, rest): the factors that may move out of a sum or a matrix product."""
    if expression.op == "sum" and expression.shape:
        content, rest = content_of(expression)
        return ([], expression) if content.whole == 1 else ([(number(content), ONE)], rest)
    if expression.op != "product" or not expression.shape:
        return [], expression
    coefficient, exponents = expression.data
    # What has no dimensions is the same for all elements that a sum or a product adds up, so it may stand
    # outside.
    outer: list[tuple[Expression, Exponent]] = []
    inner: list[tuple[Expression, Exponent]] = []
    for base, e in zip(expression.args, exponents, strict=True):
        flat = not base.shape and not (isinstance(e, Expression) and e.shape)
        (outer if flat else inner).append((base, e))
    if not outer and coefficient.whole == 1:
        return [], expression
    return [(number(coefficient), ONE), *outer], collected(ONE, inner)
