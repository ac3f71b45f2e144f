"""Products written as expressions with as few operations as are found."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from typing import Any

from gradcli.formulas.algebra import algebra as alg
from gradcli.formulas.algebra.exact_numbers import ONE, Number, is_decimal
from gradcli.formulas.algebra.expressions import Expression, broadcast, call, order, value_of
from gradcli.formulas.algebra.expressions import number as constant
from gradcli.formulas.simplify.polynomials import (
    UNIT,
    Key,
    Monomial,
    Polynomial,
    Rational,
    TooLarge,
    budget,
    by,
    generators,
    joined,
    minus,
    plus,
    raised,
    small,
    times,
)
from gradcli.formulas.simplify.products import (
    CIRCULAR,
    HALF,
    Factor,
    Frozen,
    Product,
    Reading,
    add,
    circular,
    collected,
    entry_of,
    exp,
    factored,
    generator,
    harmonics,
    positive,
    reduced,
    thawed,
    word_of,
)

GROWING = frozenset("exp sinh cosh".split())
MOST_GROUPED = 30  # terms of a sum that is searched for common factors
HIGHEST_BENT = 4  # degree in sines and cosines of such a sum
MOST_TRIED = 1_000  # of a budget, for other forms of a sum
MOST_COMPLETED = 60  # terms of a sum that is tried by g + c for a generator g
MOST_DOUBLED = 12  # terms of a sum that is tried with double angles
# Pieces in one reading, of an expression of few variables and functions, and of many; then sums are written
# as they are.
MOST_MADE = {True: 600, False: 50}
LONG = 3  # letters of a number that is short
Pairs = list[tuple[Expression, Any]]


def operations(expression: Expression) -> int:
    """How many operators and calls its text has; a function that may overflow counts twice."""
    found = expression.count
    if found is None:
        if all(map(_is_counted, expression.parts)):
            found = expression.count = _count(expression)
            return found
        for node in order([expression], _is_counted):
            if node.count is None:
                found = node.count = _count(node)
    assert found is not None  # the expression comes last
    return found


def _is_counted(node: Expression) -> bool:
    return node.count is not None


def _count(node: Expression) -> int:
    if node.op == "number":
        return _count_of(node.data)
    if node.op == "sum":
        coefficients, constant = node.data
        found = len(coefficients)
        one_sign: bool = constant.negative or constant.whole == 0
        for t, c in zip(node.args, coefficients, strict=True):
            found += _scaled(t, c)
            one_sign = one_sign and c.negative
        if constant.whole != 0:
            found += _size_of(constant)
        else:
            found -= 1
        return found + one_sign
    if node.op == "product":
        return _scaled(node, node.data[0]) + int(node.data[0].negative)
    # So that tanh(x) is preferred to a quotient of sinh and cosh, which overflows at 711.
    own = 0 if node.op != "call" else 1 + (node.data[0] in GROWING)
    return sum(_known(a) for a in node.args) + own


def _known(node: Expression) -> int:
    """The operations of a part, which was counted before."""
    assert node.count is not None
    return node.count


def abs_(n: Number) -> Number:
    """The absolute value."""
    return -n if n.negative else n


def _size_of(n: Number) -> int:
    """The operations of its absolute value."""
    return int(n.exact and n.integer is None and not _printed_decimal(n))


def _count_of(n: Number) -> int:
    return _size_of(n) + int(n.negative)


def _printed_decimal(n: Number) -> bool:
    return n.decimal and n.exact and is_decimal(n.value)


def _scaled(term: Expression, c: Number) -> int:
    """The operations of the absolute value of a number times a term's factors."""
    above, below, found = 0, 0, 0
    if (n := c.integer) is not None:
        above += n not in (1, -1)
    elif c.exact and not _printed_decimal(c):
        above += int(abs(c.value.numerator) != 1)
        below += int(c.value.denominator != 1)
    else:
        above += 1
    if term.op != "product":
        return _known(term) + above + below
    for base, e in zip(term.args, term.data[1], strict=True):
        found += _known(base)
        if isinstance(e, Expression):
            above, found = above + 1, found + _known(e) + 1
            continue
        if e.integer is not None:
            found += e.integer not in (1, -1)
        elif (size := abs_(e)).value == HALF:
            found += 1
        elif size.whole != 1:
            found += 1 + _size_of(size)
        above, below = above + (not e.negative), below + e.negative
    return found + max(above - 1, 0) + below


def numbers(node: Expression) -> list[Number]:
    """The coefficients and exponents of a sum or product, and a number itself."""
    if node.op == "number":
        return [node.data]
    if node.op == "sum":
        return [*node.data[0], node.data[1]]
    return [node.data[0], *exponents(node)] if node.op == "product" else []


def exponents(node: Expression) -> list[Number]:
    """The exponents that are numbers."""
    return [e for e in node.data[1] if isinstance(e, Number)] if node.op == "product" else []


def decimals(expression: Expression) -> frozenset[Number]:
    """The decimals that are in an expression, without their signs."""
    found = (abs_(n) for node in order([expression]) for n in numbers(node) if n.decimal)
    return frozenset(found)


def cost(expression: Expression, given: frozenset[Number]) -> int:
    """Its operations; beside given decimals, each long number that is none of these counts as one."""
    found = operations(expression)
    if given:
        own = {abs_(n) for node in order([expression]) for n in numbers(node)} - given
        # The product of two given decimals, computed, saves an operation, and is a number that nobody
        # knows.
        found += sum(len(repr(n.python())) > LONG for n in own)
    return found


def _is_short(n: Rational, known: set[Fraction]) -> bool:
    return abs(n) in known or len(repr(Number(abs(Fraction(n))).python())) <= LONG


class Writer:
    """Writes products, each once: also if several readings that replace the same squares have it.

    given: the decimals of the formula. growing: whether it has functions that may overflow. most: pieces in
    one reading. seen: what has been tried in all forms.
    """

    def __init__(
        self, reading: Reading, given: frozenset[Number], growing: bool, most: int
    ) -> None:
        self.reading, self.most = reading, most
        self.given, self.decimals, self.growing = given, bool(given), growing
        # A piece is written alike in all readings that replace the same squares, for its key says all else.
        self._by_squares: dict[Any, dict[Any, Expression]] = {}
        self._groups: dict[Any, dict[Key, tuple[int, Rational] | None]] = {}
        self._numbers: dict[Rational, Number] = {}
        self._terms_made: dict[Any, dict[Monomial, Expression]] = {}
        self.seen: set[Any] = set()
        self.begin()

    def begin(self) -> None:
        """Begin another way of reading."""
        self.made = self._by_squares.setdefault(self.reading.squares, {})
        self.grouped = self._groups.setdefault(self.reading.squares, {})
        self.monomials = self._terms_made.setdefault(self.reading.squares, {})
        self._before = len(self.made)

    @property
    def pieces(self) -> int:
        """How many have been written in this reading."""
        return len(self.made) - self._before

    def is_new(self, key: Any) -> bool:
        """Whether it was not asked before for this key."""
        known = len(self.seen)
        self.seen.add((self.reading.squares, key))
        return len(self.seen) > known

    def number(self, n: Rational) -> Number:
        """A coefficient: a decimal only beside decimals."""
        found = self._numbers.get(n)
        if found is None:
            value = Fraction(n)
            found = self._numbers[n] = Number(value, self.decimals and is_decimal(value))
        return found

    def product(self, p: Product) -> Expression:
        """The shortest expression of a product."""
        return self._shortest(p.key, lambda: self._products(p))

    def polynomial(self, p: Polynomial) -> Expression:
        """The shortest expression of a polynomial."""
        return self._shortest(frozenset(p.items()), lambda: self._polynomials(p))

    def _shortest(self, key: Any, forms: Callable[[], Iterator[Expression]]) -> Expression:
        found = self.made.get(key)
        if found is None:
            found = self.made[key] = min(forms(), key=self.cost)
        return found

    def cost(self, expression: Expression) -> int:
        """How long an expression is."""
        return cost(expression, self.given)

    # -- products -------------------------------------------------------------------------------
    def _products(self, p: Product) -> Iterator[Expression]:
        own = p.powers
        yield self._plain(p.number, own)
        number, powers = p.number, dict(own)
        for k, e in own.items():  # sqrt(2)/2 is 1/sqrt(2)
            kind, *rest = entry_of(self.reading, k)
            if kind == "prime" and number.denominator % rest[0] == 0:
                powers[k], number = e - 1, number * rest[0]
        if number != p.number:
            yield self._plain(number, powers)
        if self.growing:
            yield from self._hyperbolic(p)
        for k in own:
            if word_of(self.reading, k) in ("sin", "sinh"):
                yield from self._angles(p, k)
            elif word_of(self.reading, k) == "abs":
                yield from self._signs(p, k)
            elif not isinstance(k, int) and len(k) == 2:
                yield from self._sigmoids(p, k) if own[k] < 0 else self._halves(p, k)
            if (
                not isinstance(k, int)
                and own[k] == 1
                and (self.decimals or p.number.denominator > 1)
            ):
                inner = self.polynomial({m: c * p.number for m, c in k})
                yield self._plain(1, {f: e for f, e in own.items() if f != k}, inner)
            if not isinstance(k, int) and own[k] == 1 and _growth(self.reading, k) is not None:
                yield from self._spread(p, k)

    def _angles(self, p: Product, sine: Factor) -> Iterator[Expression]:
        """With tan(u) for sin(u)/cos(u), and sin(2*u)/2 for sin(u)*cos(u)."""
        _, word, args = entry_of(self.reading, sine)
        cosine = generator(self.reading, "call", "cos" + word[3:], args)
        a, b = p.powers[sine], p.powers.get(cosine, 0)
        tangent = generator(self.reading, "call", "tan" + word[3:], args)
        least = min(abs(Fraction(a)), abs(Fraction(b))) * (1 if a > 0 else -1)
        # sin(u)**3/cos(u) is tan(u)*sin(u)**2, or tan(u)**3*cos(u)**2: each exchange is tried.
        for m in {least, a, -b} if a * b < 0 else ():
            made = {**p.powers, sine: a - m, cosine: b + m, tangent: m}
            yield self._plain(p.number, {k: e for k, e in made.items() if e})
        if a * b > 0 and a.denominator == b.denominator == 1:
            ((number, own),) = args
            double = circular(word, thawed(self.reading, (number * 2, own)))
            made = {**p.powers, sine: a - least, cosine: b - least}
            rest = Product(self.reading, p.number, {k: e for k, e in made.items() if e})
            yield self.product(rest.times(double.scaled(HALF).power(least)))

    def _halves(self, p: Product, k: Key) -> Iterator[Expression]:
        """1 - cos(2*u) as 2*sin(u)**2, 1 + cos(2*u) as 2*cos(u)**2, 1 - sigmoid(u) as sigmoid(-u)."""
        (first, a), (second, b) = sorted(k)
        n = p.powers[k]
        if first or n.denominator > 1 or abs(a) != abs(b) or len(second) > 1:
            return
        ((g, e),) = second
        word = word_of(self.reading, g)
        if e != 1 or not (word == "cos" or (word in alg.COMPLEMENTS and a == -b)):
            return
        ((number, own),) = entry_of(self.reading, g)[2]
        if word == "cos":
            half = generator(
                self.reading, "call", "cos" if a == b else "sin", ((number * HALF, own),)
            )
            a, e = 2 * a, 2
        else:
            half = generator(self.reading, "call", word, ((-number, own),))
        found = Product(self.reading, p.number, {f: x for f, x in p.powers.items() if f != k})
        found = found.times(Product(self.reading, a).power(n))
        found.put(half, e * n)
        yield self._plain(found.number, found.powers)

    def _signs(self, p: Product, k: Factor) -> Iterator[Expression]:
        """With sign(u) for u/abs(u), and abs(u) for u*sign(u)."""
        ((_, inside),) = entry_of(self.reading, k)[2]
        ((own, _),) = inside
        sign = generator(self.reading, "call", "sign", entry_of(self.reading, k)[2])
        a = p.powers.get(own, 0)
        for n in (-2, -1, 1, a):  # u**n is (sign(u)*abs(u))**n
            if n and n.denominator == 1:
                powers = {**p.powers, own: a - n, k: p.powers[k] + n, sign: n % 2}
                yield self._plain(p.number, {f: e for f, e in powers.items() if e})

    def _hyperbolic(self, p: Product) -> Iterator[Expression]:
        """exp(u) + 1 as 2*exp(u/2)*cosh(u/2), exp(u) - 1 as 2*exp(u/2)*sinh(u/2), all of them at once."""
        found, changed = Product(self.reading, p.number), False
        for k, e in p.powers.items():
            growth = _growth(self.reading, k) if e.denominator == 1 else None
            if growth is None:
                found.put(k, e)
                continue
            a, first, sign, u = growth
            half = u.scaled(HALF if u.number > 0 else -HALF)
            made = Product(self.reading, 2 * a if sign > 0 or u.number < 0 else -2 * a, first)
            made = made.times(exp(u.scaled(HALF)))
            made.put(
                generator(self.reading, "call", "cosh" if sign > 0 else "sinh", (half.key,)), 1
            )
            found, changed = found.times(made.power(e)), True
        # Only if no exponential is left over: exp(u/2)*cosh(u/2) overflows where exp(u) + 1 does.
        if changed and not any(entry_of(self.reading, k)[0] == "exp" for k in found.powers):
            yield self.product(found)

    def _spread(self, p: Product, k: Key) -> Iterator[Expression]:
        """exp(-u)*(exp(u) + 1) as exp(-u) + 1, which cannot overflow where exp(-u) does not."""
        outer = {
            g: e
            for g, e in p.powers.items()
            if type(g) is int and entry_of(self.reading, g)[0] == "exp"
        }
        if outer:
            rest = {g: e for g, e in p.powers.items() if g not in outer and g != k}
            # What grows outside of the brackets meets what falls inside, and neither overflows.
            inner = times(dict(k), {tuple(sorted(outer.items())): 1})
            if not all(any(entry_of(self.reading, g)[0] == "exp" for g, _ in m) for m in inner):
                yield self._plain(p.number, rest, self.polynomial(inner))

    def _sigmoids(self, p: Product, k: Key) -> Iterator[Expression]:
        """exp(u)**j/(1 + exp(u))**n as sigmoid(u)**j*sigmoid(-u)**(n - j), which cannot overflow."""
        growth, n = _growth(self.reading, k), -p.powers[k]
        if growth is None or growth[2] < 0 or n.denominator > 1:
            return
        a, first, _, u = growth
        ratio = exp(u)
        found = Product(self.reading, p.number, {f: e for f, e in p.powers.items() if f != k})
        found = found.times(Product(self.reading, a, first).power(-n))
        own = [found.powers.get(g, 0) / Fraction(e) for g, e in ratio.powers.items()]
        # Powers of exp(u) above n, or below 0, cannot be shared by sigmoids of u and -u.
        j = min(max(min(own), Fraction(0)), n)
        if j.denominator > 1:
            return
        found = found.times(ratio.power(-j))
        for sign, power in ((1, j), (-1, n - j)):
            found.put(generator(self.reading, "call", "sigmoid", (u.scaled(sign).key,)), power)
        yield self._plain(found.number, found.powers)

    def _plain(
        self, number: Rational, own: dict[Factor, Rational], inner: Expression | None = None
    ) -> Expression:
        """The product as it is; inner: another factor."""
        pairs: Pairs = [] if inner is None else [(inner, ONE)]
        powers = dict(own)
        number *= self._exponentials(powers, pairs)
        self._roots(powers, pairs)
        sizes: dict[Rational, Product] = {}
        for k, e in list(powers.items()):
            if word_of(self.reading, k) == "abs":  # abs(u)*abs(v) is abs(u*v)
                inside = thawed(self.reading, entry_of(self.reading, k)[2][0])
                sizes[e] = sizes.get(e, Product(self.reading)).times(inside)
                del powers[k]
        for e, inside in sizes.items():
            own_size = self.product(inside)
            pairs.append((call("abs", [own_size], own_size.shape), Number.of(e)))
        for k, e in powers.items():
            factor = self._given_scale(k) if e.denominator == 1 else 1
            if factor != 1:
                number /= factor ** int(e)
                k = frozenset((m, c * factor) for m, c in k)  # type: ignore[union-attr]
            if not isinstance(k, int) and e.denominator == 1 and self._is_turned(k, e, number):
                k, number = minus(k), number * (-1) ** int(e % 2)
            base = self._factor(k)
            if (
                word_of(self.reading, k) in alg.ODD and number < 0 and e % 2 == 1
            ):  # -sin(a - b) is sin(b - a)
                (inside,) = entry_of(self.reading, k)[2]
                other = self._factor(
                    generator(self.reading, "call", word_of(self.reading, k), (negative(inside),))
                )
                if operations(other) <= operations(base):
                    base, number = other, -number
            pairs.append((base, Number.of(e)))
        # What was whole, and cancelled; and sigmoid(u) - 1, which is written -sigmoid(-u).
        if any(b.op in ("product", "number") and e.whole == 1 for b, e in pairs):
            return alg.product(pairs, self.number(number))
        return alg.collected(self.number(number), pairs)

    def _is_turned(self, k: Key, e: Rational, number: Rational) -> bool:
        """Whether the negative of a sum is written: -2*(x - y) is 2*(y - x), as short without a sign."""
        signs = {c < 0 for _, c in k}
        if len(signs) == 1:
            return signs == {True}
        # (x - 1)**2 is (1 - x)**2: without a reason the term that comes first in the program is positive.
        first = min(k, key=lambda x: _place(self.reading, x[0]))[1] if e % 2 == 0 else number
        return first < 0

    def _roots(self, powers: dict[Factor, Rational], pairs: Pairs) -> None:
        """Move roots from `powers` into `pairs`, joined: sqrt(2)*sqrt(u)/sqrt(v) is sqrt(2*u/v).

        One alone of what is joined may be negative.
        """
        groups: dict[Rational, list[Factor]] = {}
        for k, e in powers.items():
            if e.denominator > 1:
                groups.setdefault(max(e, -e), []).append(k)
        for e, own in groups.items():
            sure = [k for k in own if positive(self.reading, k)]
            loose = [k for k in own if k not in sure]
            loose = (
                [min(loose, key=lambda k: entry_of(self.reading, k)[0] == "sum")] if loose else []
            )
            if (
                not any(entry_of(self.reading, k)[0] == "prime" for k in sure)
                and len([*sure, *loose]) < 2
            ):
                continue
            above = max(powers[k] for k in [*sure, *loose]) > 0
            base = Product(self.reading)
            for k in [*sure, *loose]:
                up = (powers.pop(k) > 0) is above
                kind, *rest = entry_of(self.reading, k)
                if kind == "prime":
                    one = Product(self.reading, rest[0])
                else:
                    one = (
                        thawed(self.reading, rest[0])
                        if kind == "root"
                        else Product(self.reading, 1, {k: 1})
                    )
                base = base.times(one if up else one.power(-1))
            pairs.append((self.product(base), Number.of(e if above else -e)))

    def _given_scale(self, k: Factor) -> Rational:
        """The number by which a polynomial has the most of the given decimals for coefficients."""
        if isinstance(k, int) or not self.given:
            return 1
        known = {n.value for n in self.given}
        scales: list[Rational] = [1, *(n / abs(c) for n in known for _, c in k)]
        return min(scales, key=lambda s: sum(not _is_short(c * s, known) for _, c in k))

    def _exponentials(self, powers: dict[Factor, Rational], pairs: Pairs) -> int:
        """Take the factors that are exponentials out of `powers` into `pairs`; their sign.

        They become exp of one sum, and u**v for each base.
        """
        plain: list[Product] = []
        by_base: dict[Any, list[Product]] = {}
        for k, e in list(powers.items()):
            entry = entry_of(self.reading, k)
            if entry[0] != "exp":
                continue
            del powers[k]
            t = Product(self.reading, e, entry[1])
            base = next(
                (f for f, x in t.powers.items() if word_of(self.reading, f) == "log" and x == 1),
                None,
            )
            if base is None:
                plain.append(t)
            else:
                rest = {f: x for f, x in t.powers.items() if f is not base}
                by_base.setdefault(base, []).append(Product(self.reading, e, rest))
        if plain:
            self._into_exponent(plain, by_base, powers)
        sign = 1
        for base, exponents in by_base.items():
            inside = thawed(self.reading, entry_of(self.reading, base)[2][0])
            if len(inside.powers) == 1 and abs(inside.number) == 1:  # u**v*u**2 is u**(v + 2)
                ((k, x),) = inside.powers.items()
                same = inside.number == 1
                if k not in powers and not isinstance(k, int):
                    k, same = minus(k), not same
                if x == 1 and powers.get(k, HALF).denominator == 1:
                    e = powers.pop(k)
                    sign *= 1 if same else (-1) ** int(e)
                    exponents = [*exponents, Product(self.reading, e)]
            pairs.append((self.product(inside), self.exponent(self.sum(exponents))))
        if plain:
            own = self.sum(plain)
            pairs.append((call("exp", [own], own.shape), ONE))
        return sign

    def _into_exponent(
        self,
        plain: list[Product],
        by_base: dict[Any, list[Product]],
        powers: dict[Factor, Rational],
    ) -> None:
        """Move powers u**v into exp, in place, if its exponent has log(u): it may be a square."""
        every = {f for t in plain for f in t.powers}
        inside = {k for f in every for k in _parts(f) if word_of(self.reading, k) == "log"}
        for k in inside:
            more = [t.times(Product(self.reading, 1, {k: 1})) for t in by_base.get(k, [])]
            root = generator(self.reading, "root", entry_of(self.reading, k)[2][0])
            e = powers.get(root, 0)
            if e:
                more.append(Product(self.reading, e, {k: 1}))
            if more:
                whole = operations(self.sum([*plain, *more]))
                apart = sum(operations(self.sum([t])) + 2 for t in more)
                if whole < operations(self.sum(plain)) + apart:
                    plain += more
                    by_base.pop(k, None)
                    powers.pop(root, None)

    @staticmethod
    def exponent(e: Expression) -> Any:
        """An exponent as products of expressions have it: a number, or an expression."""
        return e if value_of(e) is None else value_of(e)

    def _factor(self, k: Factor) -> Expression:
        if not isinstance(k, int):
            return self.polynomial(dict(k))
        kind, *rest = entry_of(self.reading, k)
        if kind in ("atom", "pi"):
            return rest[0]  # type: ignore[no-any-return]
        if kind == "base":
            return self.polynomial(dict(rest[0]))
        if kind == "root":
            return self.product(thawed(self.reading, rest[0]))
        if kind == "prime":
            return constant(rest[0])
        args = [self.product(thawed(self.reading, a)) for a in rest[1]]
        return call(rest[0], args, broadcast(a.shape for a in args))

    # -- sums -----------------------------------------------------------------------------------
    def sum(self, terms: list[Product]) -> Expression:
        """The shortest expression of a sum of products: whole, factored, or term by term."""
        whole = add(self.reading, terms)
        forms = [self.product(whole)]
        with suppress(TooLarge):
            forms.append(self.product(factored(whole)))
        forms.append(alg.combine((self.product(t), ONE) for t in terms))
        return min(reversed(forms), key=operations)

    def _polynomials(self, p: Polynomial) -> Iterator[Expression]:
        for form in (p, *_others(self.reading, p)):
            yield alg.combine(self._terms(form))

    def _terms(self, p: Polynomial) -> list[tuple[Expression, Number]]:
        """The terms, with common factors taken out of groups of them where that is shorter."""
        ordered = sorted(p.items(), key=lambda x: _place(self.reading, x[0]))
        flat = [(self._term(m), self.number(c)) for m, c in ordered]
        # Taking factors out of groups asks for the shortest form of each group, which asks for that of its
        # own.
        if not 2 < len(p) <= MOST_GROUPED:
            return flat
        # Of a polynomial and its negative, which are both asked for, one is searched.
        key = frozenset(p.items())
        opposite = minus(key)
        if opposite in self.grouped:
            taken = self.grouped[opposite]
            return flat if taken is None else self._taken(p, *taken)
        if self.pieces > self.most:
            return flat
        self.grouped[key] = None
        exponents: dict[int, list[Rational]] = {}
        for m in p:
            for g, e in m:
                exponents.setdefault(g, []).append(e)
        often = [g for g, own in exponents.items() if 1 < len(own) < len(p)]
        best, least = flat, operations(alg.combine(flat))
        # The most frequent generators first: of x*y + x*z + w the x is in two terms of three.
        for g in sorted(often, key=lambda g: -len(exponents[g]))[: 4 if len(p) < 12 else 1]:
            for e in sorted(set(exponents[g]))[: 2 if len(p) < 8 else 1]:
                if not 1 < sum(x >= e for x in exponents[g]) < len(p):
                    continue
                found = self._taken(p, g, e)
                count = operations(alg.combine(found))
                if count + (2 if entry_of(self.reading, g)[0] == "atom" else 1) <= least:
                    best, least = found, count
                    self.grouped[key] = g, e
        return best

    def _taken(self, p: Polynomial, g: int, e: Rational) -> list[tuple[Expression, Number]]:
        """The terms that have a generator to this power or a higher one, as a product; and the others."""
        inside: Polynomial = {}
        rest: Polynomial = {}
        for m, c in p.items():
            (inside if any(k == g and x >= e for k, x in m) else rest)[m] = c
        whole = self.product(collected(self.reading, inside))
        return [(whole, ONE), (self.polynomial(rest), ONE)]

    def _term(self, m: Monomial) -> Expression:
        if m in self.monomials:
            return self.monomials[m]
        powers: dict[Factor, Rational] = {}
        for g, e in m:
            kind, *rest = entry_of(self.reading, g)
            k = rest[0] if kind == "base" else g
            powers[k] = powers.get(k, 0) + e
        found = self.monomials[m] = self.product(Product(self.reading, 1, powers))
        return found


def _growth(reading: Reading, k: Factor) -> tuple[Rational, Monomial, Rational, Product] | None:
    """(a, m, s, u) of a factor a*m*(1 + s*exp(u)), where s is 1 or -1; None of others."""
    if isinstance(k, int) or len(k) != 2:
        return None
    (first, a), (second, b) = sorted(k, key=lambda x: (len(x[0]), x))
    ratio = dict(joined(second, tuple((g, -e) for g, e in first)))
    if abs(a) != abs(b) or any(entry_of(reading, g)[0] != "exp" for g in ratio):
        return None
    u = add(reading, [Product(reading, e, entry_of(reading, g)[1]) for g, e in ratio.items()])
    return a, first, Fraction(b) / a, u


def negative(key: Frozen) -> Frozen:
    """The key of minus a product."""
    return -key[0], key[1]


def _parts(f: Factor) -> list[int]:
    return [f] if isinstance(f, int) else [g for m, _ in f for g, _ in m]


def _place(reading: Reading, m: Monomial) -> tuple[bool, list[tuple[int, int, Rational]]]:
    """The order of terms: by the powers of the variables in source order, the constant last."""
    return not m, sorted((*_rank(reading, g), -e) for g, e in m)


def _rank(reading: Reading, g: int) -> tuple[int, int]:
    entry = entry_of(reading, g)
    return (entry[1].position if entry[0] == "atom" else sys.maxsize), g


def _others(reading: Reading, p: Polynomial) -> list[Polynomial]:
    """Other forms of a polynomial, which take nothing from the budget of its reading."""
    # Trying other forms is worth little time; if it ran out here, the reading itself would end.
    left, budget.left = budget.left, MOST_TRIED
    try:
        return [*_doubled(reading, p), *_completed(reading, p)]
    except TooLarge:
        return []
    finally:
        budget.left = left


def _completed(reading: Reading, p: Polynomial) -> Iterator[Polynomial]:
    """The polynomial by g + c, where that has fewer terms: x**2 + 2*x + 1 + y is (x + 1)**2 + y."""
    if not 3 < len(p) <= MOST_COMPLETED:
        return
    for g in sorted(generators(p)):
        rows = by(p, g)
        n = max(rows)
        if n < 2 or n not in rows or any(e.denominator > 1 or e < 0 for e in rows):
            continue
        m, a = next(iter(rows[n].items()))
        c = small(Fraction(rows.get(n - 1, {}).get(m, 0)) / (n * a))
        # The two highest rows tell c: of (g + c)**n they are 1 and n*c. If they do not fit, no c does.
        if not c or plus(rows.get(n - 1, {}), rows[n], -n * c):
            continue
        whole = generator(reading, "base", frozenset({((g, 1),): 1, UNIT: c}.items()))
        found: Polynomial = {}
        for e, row in rows.items():
            found = plus(found, times(row, raised({((whole, 1),): 1, UNIT: -c}, int(e))))
        if len(found) < len(p):
            yield found


def _doubled(reading: Reading, p: Polynomial) -> Iterator[Polynomial]:
    """The polynomial with the products of sines and cosines of an angle, or of all, as sums."""
    if len(p) > MOST_DOUBLED:
        return
    bent = [[(g, e) for g, e in m if word_of(reading, g) in CIRCULAR] for m in p]
    if max(sum(e for _, e in own) for own in bent) > HIGHEST_BENT:
        return
    found = {g for own in bent for g, _ in own}
    for angle in dict.fromkeys(
        [*(entry_of(reading, g)[2] for g in sorted(found)), None] if found else ()
    ):
        made = harmonics(reading, p, angle)
        if made and len(made) <= len(p) and made != p:
            yield reduced(reading, made)


__all__ = ["Key", "Writer", "cost", "decimals", "joined", "operations"]
