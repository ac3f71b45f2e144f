"""The shortest form of an elementwise expression among several readings of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from gradcli.formulas.algebra import algebra as alg
from gradcli.formulas.algebra.assuming import current
from gradcli.formulas.algebra.exact_check import Check, is_leaf
from gradcli.formulas.algebra.exact_numbers import ONE, Number
from gradcli.formulas.algebra.expression_text import to_text
from gradcli.formulas.algebra.expressions import Expression, is_call, known, order
from gradcli.formulas.algebra.kept_digits import Digits, free
from gradcli.formulas.simplify.accurate_forms import ACCURATE, accurate
from gradcli.formulas.simplify.polynomials import (
    Monomial,
    Rational,
    TooLarge,
    budget,
    by,
    generators,
    small,
    times,
)
from gradcli.formulas.simplify.products import (
    Factor,
    Product,
    Reading,
    add,
    applied,
    cancelled,
    conjugated,
    exp,
    factored,
    fraction,
    generator,
    harmonic,
    log,
    multiplied,
    one_denominator,
    raised_roots,
    shifted_roots,
    terms_of,
    word_of,
)
from gradcli.formulas.simplify.shortest_form import (
    GROWING,
    MOST_MADE,
    Writer,
    cost,
    decimals,
    exponents,
    numbers,
    operations,
)

BUDGET = 8_000
FEW = 4  # variables, and what functions are of, between which identities are likely
MOST_WRITTEN = {True: 1_300, False: 300}  # pieces, over all readings; of few of these, and of many
NEARLY = 1  # more operations than the shortest form has, for one that keeps more digits
NEARBY = 4  # the same, for one that is first rewritten by `accurate`, which shortens
MOST_NEAR = 6  # such forms
MOST_GAINED = 3  # times that a form is exchanged for one that keeps more digits
SHORT = 1  # operations of an expression that is short enough
HEAVIEST = 5_000  # heavier sums are only taken out of, which is linear
MOST_TRIED = 3  # generators by whose powers a numerator is taken apart
MOST_NESTED = 60  # terms of which one factor after another is taken out
MOST_TERMS = 8  # of a numerator that is written term by term
LARGE = (TooLarge, ZeroDivisionError, OverflowError)  # what ends a reading
# How many times as long as the best a first form may be, of a reading that may lengthen.
LONGER = {"exponentials": 1.3, "sums": 1.7}
SINES = frozenset("sin cos tan".split())
CIRCULAR = SINES | {"sinh", "cosh", "tanh"}
EXPONENTIAL = frozenset("sinh cosh tanh sigmoid".split())
Read = dict[Expression, Product]
# (what differs from the plain reading, the functions without which it would be the plain one).
READINGS: tuple[tuple[dict[str, Any], frozenset[str]], ...] = (
    ({}, frozenset()),
    ({"normal": True}, frozenset(["erf"])),
    ({"apart": True}, frozenset(["sigmoid"])),
    ({"squares": ("sin", "cosh")}, SINES),
    ({"tangents": False, "multiples": False}, CIRCULAR),
    ({"conjugates": True}, SINES | {"sqrt"}),
    ({"exponentials": True}, EXPONENTIAL),
    ({"sums": True}, frozenset(["sum"])),
    ({"jumps": True}, frozenset(["sign"])),
)
PLAIN = {
    "squares": ("cos", "cosh"),
    "tangents": True,
    "multiples": True,
    "conjugates": False,
    "exponentials": False,
    "normal": False,
    "sums": False,
    "jumps": False,
    "apart": False,
}
# How arguments are read: as they are, for a derivative seldom takes an argument apart.
INSIDE: dict[str, Any] = {**PLAIN, "squares": (), "tangents": False, "multiples": False}
OPENED = frozenset(
    "exp log abs sign expm1 log1p".split()
)  # the functions whose arguments are factors as well


# How the shortest form is found. One normal form is not always the shortest: sin(x)**2 may read better as 1
# - cos(x)**2, tanh(x) as a quotient of exponentials. So the expression is read in several ways
# (`READINGS`), each a choice of identities under which it becomes a product of factors to powers. Each
# reading is written in several ways (factored, term by term, over one denominator, …). Whatever is shorter
# is compared with the expression at many points, in exact arithmetic where that is possible, and for the
# digits it keeps. For example 2*x*exp(-x) - x**2*exp(-x): the plain reading shares x*exp(-x), what is left
# is 2 - x, and x*(2 - x)*exp(-x) is printed.
def shortest(expression: Expression) -> Expression:
    """The shortest form found that has the same values; the expression itself if there is none."""
    found, signs = known().shortest, current.get().signs
    if (expression, signs) not in found:
        found[expression, signs] = _shortest(expression, signs)
    return found[expression, signs]


def _shortest(expression: Expression, assumed: frozenset[tuple[str, int]]) -> Expression:
    least = operations(expression)
    if least <= SHORT:
        return expression
    given, signs = decimals(expression), dict(assumed)
    forms = candidates(Reading(signs), expression, given)
    # What has been written with expm1 and its like must not lose them: they were there for their digits.
    if any(n.op == "call" and is_call(n, *ACCURATE) for n in order([expression], is_leaf)):
        forms = map(accurate, forms)
    found = {c: cost(c, given) for c in forms if c.shape == expression.shape}
    shorter = [c for c, n in found.items() if n < least]
    # exp(u)/(1 + exp(u)) is as short as other forms, and is inf/inf at 1000, where the expression was
    # finite.
    if not _may_overflow(expression):
        shorter = [c for c in shorter if not _may_overflow(c)]
    shorter.sort(key=lambda c: (found[c], len(to_text(c))))
    check = Check(expression, signs)
    leaves = free(check.leaves)
    digits = Digits(expression, leaves, list(map(check.sign, leaves)))
    best = next((c for c in shorter if digits.keeps(c) and check.accepts(c)), expression)
    if best is expression:
        found[best] = cost(best, given)
    best = _most_accurate(best, shorter, found, partial(cost, given=given), check, digits)
    # What has become half as long allows readings that were too long before.
    return shortest(best) if 2 * operations(best) < least else best  # then more readings are tried


def _most_accurate(
    best: Expression,
    shorter: list[Expression],
    found: dict[Expression, int],
    length: Callable[[Expression], int],
    check: Check,
    digits: Digits,
) -> Expression:
    """A form about as short as `best` that keeps digits which that loses; `best` if there is none.

    found: the lengths of forms.
    """
    most = found[best] + NEARBY
    near = [best, *(c for c in shorter if c is not best and found[c] <= most)][: MOST_NEAR + 1]
    first = accurate(best)
    for made in (first, *map(accurate, near[1:])):
        if made not in near:
            near.append(made)
            found.setdefault(made, length(made))
    near.sort(key=found.__getitem__)
    for _ in range(MOST_GAINED if len(near) > 1 else 0):
        most = found[best] + NEARLY
        forms = [c for c in near if c is not best and (c is first or found[c] <= most)]
        gained = next(filter(check.accepts, digits.better(best, forms[:MOST_NEAR])), best)
        if gained is best:
            break
        best = gained
    return best


def keeps_digits(expression: Expression, given: Expression) -> bool:
    """Whether a form of `given` loses no digits that this has; True where it cannot be told."""
    check = Check(given, dict(current.get().signs))
    leaves = free(check.leaves)
    # A variable that cancelled in the given expression has no value in its points.
    if not {*free([expression])} <= {*leaves}:
        return True
    return Digits(given, leaves, list(map(check.sign, leaves))).keeps(expression)


def _may_overflow(expression: Expression) -> bool:
    """Whether it has a function that grows without bound, but for 1/cosh(u), which vanishes."""
    nodes = order([expression], is_leaf)
    powers = (power for n in nodes if n.op == "product" for power in alg.powers_of(n))
    below = {
        b
        for b, e in powers
        if b.op == "call" and is_call(b, "cosh") and isinstance(e, Number) and e.negative
    }
    return any(n.op == "call" and n.data[0] in GROWING and n not in below for n in nodes)


def expanded(expression: Expression) -> Expression:
    """The expression as a sum of products, by exact arithmetic; as it is where that is too much."""
    nodes, within = _parts(expression)
    if all(n.exact for node in {*nodes, *within} for n in numbers(node)):
        reading = Reading(dict(current.get().signs))
        writer = Writer(reading, decimals(expression), True, MOST_MADE[True])
        with suppress(*LARGE):
            _set(reading, INSIDE)
            inside = read(reading, within, set(), {})
            _set(reading, INSIDE)
            whole = read(reading, nodes, set(), inside)[expression]
            return alg.combine((writer.product(t), ONE) for t in terms_of(whole))
    return expression


def collected(expression: Expression) -> Expression:
    """The expression as one product, with like terms collected; as it is where that is no shorter way.

    It is read once and not searched. What has tanh and its like stays, for sinh(u)**6/cosh(u)**8 overflows.
    """
    nodes, within = _parts(expression)
    words = {n.data[0] for n in nodes if n.op == "call"}
    exact = all(n.exact for node in {*nodes, *within} for n in numbers(node))
    if words & EXPONENTIAL or not exact:
        return expression
    reading = Reading(dict(current.get().signs))
    writer = Writer(reading, decimals(expression), False, 0)
    with suppress(*LARGE):
        _set(reading, INSIDE)
        inside = read(reading, within, set(), {})
        _set(reading, PLAIN)
        if CIRCULAR & words:
            read(
                reading, nodes, set(), inside
            )  # the first reading collects the multiples of angles
        return writer.product(read(reading, nodes, set(), inside)[expression])
    return expression


def is_of_few(expression: Expression) -> bool:
    """Whether it has so few variables, and functions of so few, that identities are worth a long search."""
    nodes = order([expression], is_leaf)
    leaves = {n for n in nodes if n.op == "name" or (n.op == "call" and is_leaf(n))}
    calls = (n for n in nodes if n.op == "call" and not is_leaf(n))
    # sin(x) and cos(2*x) are functions of the same, sin(x) and sin(x*y) are not.
    return len(leaves) + len({frozenset(map(_read_by, n.args)) for n in calls}) <= FEW


def _read_by(argument: Expression) -> frozenset[Expression]:
    """The variables and calls that an expression is made of."""
    closed = order([argument], lambda n: n.op == "call")
    return frozenset(n for n in closed if n.op in ("name", "call"))


def _parts(expression: Expression) -> tuple[list[Expression], list[Expression]]:
    """(the parts of an expression that are read as factors, the arguments of functions in it)."""
    nodes = order([alg.one, expression], _is_closed)
    closed = [n for n in nodes if _is_closed(n) and not is_leaf(n)]
    return nodes, order([alg.one, *(a for n in closed for a in n.args)], is_leaf)


def candidates(
    reading: Reading, expression: Expression, given: frozenset[Number]
) -> Iterator[Expression]:
    """Forms of the expression, of which the check has yet to say whether they are equal.

    reading: a new one. given: the decimals of the expression.
    """
    nodes, within = _parts(expression)
    words = {n.data[0] for n in nodes if n.op == "call"}
    if not all(n.exact for node in {*nodes, *within} for n in numbers(node)):
        return
    # A reading is tried only where its functions occur; roots are written as powers.
    if any(e.integer is None for node in nodes for e in exponents(node)):
        words.add("sqrt")
    sums = (s for n in nodes for s in _powers(n) if s.op == "sum" and s.plain)
    whole = {_one_sign(s) for s in sums if not any(n.op == "sum" for n in order(s.args))}
    if whole:
        words.add("sum")
    few = is_of_few(expression)
    writer = Writer(reading, given, _may_overflow(expression), MOST_MADE[few])
    reading.halves, reading.tails = {"sigmoid", "tanh"} <= words, {"erf", "erfc"} <= words
    try:
        _set(reading, INSIDE)
        inside = read(reading, within, set(), {})
    except LARGE:
        return
    written, best = 0, operations(expression)
    for changes, needed in READINGS:
        # Without squares it makes no difference which of them are replaced.
        if (needed and not needed & words) or ("squares" in changes and not reading.squared):
            continue
        written += writer.pieces
        if written > MOST_WRITTEN[few]:
            return
        _set(reading, {**PLAIN, **changes})
        writer.begin()
        # Such a reading lengthens first: if its first form is far too long, the others will be, too.
        long = best * max((LONGER.get(c, 0.0) for c in changes), default=0.0)
        with suppress(*LARGE):
            # sin(2*u) may come before sin(u) is seen, and the unit of the angle is known only after all.
            if CIRCULAR & words:
                read(
                    reading, nodes, whole, inside
                )  # the first reading collects the multiples of angles
            made = read(reading, nodes[:-1], whole, inside)
            for form in _forms(expression, made, inside, writer):
                yield form
                best = min(best, operations(form))
                if 0 < long < operations(form):
                    break
                long = 0.0
        if expression.weight > HEAVIEST:
            return


def _forms(
    expression: Expression, made: Read, inside: Read, writer: Writer
) -> Iterator[Expression]:
    """The forms of the expression in one reading; made: of its parts."""
    terms = _summands(writer.reading, expression, made)
    new = writer.is_new(tuple(t.key for t in terms))
    # A sum of two terms is written by `_written` anyway.
    if new and len(terms) > 2:
        yield _outside(terms, writer, _usual)
        if len(terms) <= MOST_NESTED and any(type(k) is not int for t in terms for k in t.powers):
            yield _nested(terms, writer)
    if expression.weight > HEAVIEST:
        return
    if new and terms:
        yield _outside(terms, writer, _common)
        # By the denominators alone, a/u + b/u + c/v is (a + b)/u + c/v; by all sums, only what shares every
        # sum.
        for below in (True, False):
            with suppress(TooLarge):
                groups = _grouped(terms, below)
                if 1 < len(groups) < len(terms):
                    yield _outside(groups, writer, _common)
                yield alg.combine((writer.product(g), ONE) for g in groups)
            budget.left = BUDGET
    yield from _written(_read(writer.reading, expression, made, inside), writer)


def _summands(reading: Reading, expression: Expression, made: Read) -> list[Product]:
    """The terms of a sum, or of a product that has one for a factor; none of another expression."""
    if expression.op != "product":
        return [made[t].scaled(c.value) for t, c in _terms(expression)]
    outer = Product(reading, small(expression.data[0].value))
    terms: list[Product] = []
    for base, e in alg.powers_of(expression):
        if e.whole == 1 and base.op == "sum" and not terms:
            terms = [made[t].scaled(c.value) for t, c in _terms(base)]
        else:
            outer = outer.times(_power(made[base], e, made))
    return [outer.times(t) for t in terms]


def _is_closed(node: Expression) -> bool:
    """Whether it is a leaf, or a function whose argument is read as it is."""
    return node.op == "call" and (node.data[0] not in OPENED or is_leaf(node))


def _set(reading: Reading, options: dict[str, Any]) -> None:
    """Begin another way of reading."""
    for option, value in options.items():
        setattr(reading, option, value)
    budget.left = BUDGET
    reading.units, reading.beats = {}, {}


def _powers(node: Expression) -> list[Expression]:
    """The bases of powers in a product, and of denominators."""
    if node.op != "product":
        return []
    return [b for b, e in zip(node.args, node.data[1], strict=True) if e.whole != 1]


def _terms(total: Expression) -> list[tuple[Expression, Number]]:
    """The (term, coefficient) pairs of a sum, the constant last; none of another expression."""
    if total.op != "sum":
        return []
    coefficients, constant = total.data
    found = [*zip(total.args, coefficients, strict=True), (alg.one, constant)]
    return [(term, c) for term, c in found if c.whole != 0]


def _one_sign(total: Expression) -> Expression:
    """A sum or its negative, the same one for both."""
    _, coefficient = min(_terms(total), key=lambda x: (x[0] is alg.one, x[0].position))
    return alg.negate(total) if coefficient.negative else total


def read(reading: Reading, nodes: list[Expression], whole: set[Expression], inside: Read) -> Read:
    """The nodes, which are in topological order, as products.

    whole: sums that may stay so. inside: the arguments of functions.
    """
    made: Read = {}
    for node in nodes:
        own = _one_sign(node) if reading.sums and node.op == "sum" else node
        if own in whole and reading.sums:
            made[node] = Product(
                reading, 1 if own is node else -1, {generator(reading, "atom", own): 1}
            )
        else:
            made[node] = _read(reading, node, made, inside)
    return made


def _grouped(terms: list[Product], below: bool) -> list[Product]:
    """The terms, those with the same sums below the line, or above and below it, as one."""
    groups: dict[Any, list[Product]] = {}
    for t in terms:
        sums = [
            (k, e) for k, e in t.powers.items() if not isinstance(k, int) and (e < 0 or not below)
        ]
        own = min((k for k, _ in sums), default=0, key=hash) if below else frozenset(sums)
        groups.setdefault(own, []).append(t)
    return [add(g[0].reading, g) for g in groups.values()]


# What most terms share may be taken out of all: the slopes of u*v*w add up to u*v + u*w + v*w, and that is
# u*v*w*(1/u + 1/v + 1/w). Whether this or the sum is shorter, its length tells.
def _outside(
    terms: list[Product], writer: Writer, power: Callable[[list[Rational]], Rational]
) -> Expression:
    """The terms over their shared factors, (u - v/w)/w; power: that of a factor from all its powers.

    Of a cosine nothing is taken that would make a tangent of a sine.
    """
    keys = dict.fromkeys(k for t in terms for k in t.powers)
    shared = {
        k: (_common if word_of(writer.reading, k) in CIRCULAR else power)(
            [t.powers.get(k, 0) for t in terms]
        )
        for k in keys
    }
    outer = Product(writer.reading, 1, {k: e for k, e in shared.items() if e})
    inner = alg.combine((writer.product(t.times(outer.power(-1))), ONE) for t in terms)
    return alg.multiply(writer.product(outer), inner)


def _nested(terms: list[Product], writer: Writer) -> Expression:
    """The terms with the factor that most of them share taken out, again and again: (1 - (1 - 1/w)/v)/u."""
    powers: dict[Factor, list[Rational]] = {}
    for t in terms:
        for k, e in t.powers.items():
            powers.setdefault(k, []).append(e)
    often = max(powers, key=lambda k: len(powers[k]), default=None)
    if often is None or len(powers[often]) < 2 or not _common(powers[often]):
        return alg.combine((writer.product(t), ONE) for t in terms)
    outer = Product(writer.reading, 1, {often: _common(powers[often])})
    inside = [t.times(outer.power(-1)) for t in terms if often in t.powers]
    rest = [t for t in terms if often not in t.powers]
    whole = alg.multiply(writer.product(outer), _nested(inside, writer))
    return alg.add(whole, _nested(rest, writer)) if rest else whole


def _common(powers: list[Rational]) -> Rational:
    """What all numerators and all denominators share."""
    # Of x**2 and x**3 that is x**2; of 1/x and 1/x**2 it is 1/x, for 1/x**2 would put an x into one term.
    return min(powers) if min(powers) > 0 else min(max(powers), 0)


def _usual(powers: list[Rational]) -> Rational:
    """The power in most terms: that of u*v*w is u*v*w*(1/u + 1/v + 1/w) for unit slopes."""
    ((power, count),) = Counter(powers).most_common(1)
    return power if 2 * count > len(powers) else 0


def _read(reading: Reading, node: Expression, made: Read, inside: Read) -> Product:
    if node.op == "number":
        return Product(reading, small(node.data.value))
    if node.op == "sum":
        return add(reading, (made[t].scaled(c.value) for t, c in _terms(node)))
    if node.op == "product":
        found = Product(reading, small(node.data[0].value))
        for base, e in zip(node.args, node.data[1], strict=True):
            found = found.times(_power(made[base], e, made))
        return found
    if node.op == "call" and not is_leaf(node):
        args = inside if inside and _is_closed(node) else made
        return applied(node.data[0], [args[a] for a in node.args])
    kind = "pi" if node.op == "name" and node.data == "pi" and node.position == -1 else "atom"
    return Product(reading, 1, {generator(reading, kind, node): 1})


def _power(base: Product, e: Any, made: Read) -> Product:
    if isinstance(e, Number):
        found = base if e.whole == 1 else base.power(small(e.value))
        return conjugated(found) if base.reading.conjugates and e.value < 0 else found
    return exp(made[e].times(log(base)))


def _written(p: Product, writer: Writer) -> Iterator[Expression]:
    """A product, and what becomes of it factored and multiplied out."""
    if p.reading.conjugates:
        p = conjugated(p)
    if not writer.is_new(p.key):
        return
    yield writer.product(p)
    for form in (
        factored,
        lambda p: shifted_roots(factored(p)),
        lambda p: multiplied(raised_roots(factored(p)), True),
        lambda p: multiplied(factored(p), False),
        one_denominator,
        harmonic,
    ):
        try:
            made = form(p)
            if writer.is_new(("form", made.key)):
                budget.left = max(budget.left, BUDGET // 4)
                yield writer.product(made)
        except (TooLarge, ZeroDivisionError):
            budget.left = max(budget.left, BUDGET // 4)
    top, rest = fraction(p)
    if 1 < len(top) <= MOST_TERMS:
        yield alg.combine((writer.product(t), ONE) for t in terms_of(p))
        for g in sorted(generators(top))[:MOST_TRIED] if rest.powers else ():
            parts = [cancelled(rest, times(q, {_power_of(g, e): 1})) for e, q in by(top, g).items()]
            yield alg.combine((writer.product(t), ONE) for t in parts)


def _power_of(g: int, e: Rational) -> Monomial:
    return ((g, e),) if e else ()


__all__ = ["collected", "expanded", "is_of_few", "keeps_digits", "shortest"]
