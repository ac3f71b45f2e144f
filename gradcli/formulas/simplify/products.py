"""Numbers times factors to rational powers: the form in which scalar formulas are multiplied and added.

A product knows the `Reading` that it belongs to, which has the generators among its factors. What works on
factors or polynomials alone is given it.

A factor is a generator, which is a number of a table, or the key of a polynomial in generators. Generators
are what is not taken apart: variables, roots of primes, exp of one term, calls. Multiplying adds exponents
and expands nothing. Adding takes out what the terms share and expands only the rest; what then divides the
denominators cancels them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from math import gcd, lcm, prod
from typing import Any

from gradcli.formulas.algebra.algebra import EVEN, ODD
from gradcli.formulas.simplify.polynomials import (
    UNIT,
    Key,
    Monomial,
    Polynomial,
    Rational,
    TooLarge,
    budget,
    by,
    content,
    factors,
    generators,
    joined,
    minus,
    plus,
    primitive,
    quotient,
    raised,
    small,
    square_root,
    times,
)

Factor = int | Key
Frozen = tuple[Rational, frozenset[tuple[Factor, Rational]]]
HALF = Fraction(1, 2)
MOST_SQUARED = 60  # terms of a power that is multiplied out
LARGEST_PRIME = 2000
POSITIVE = frozenset("cosh sigmoid abs".split())
CIRCULAR = frozenset("sin cos sinh cosh".split())
# The square of a function by another: sin(u)**2 is 1 - cos(u)**2.
SQUARES = {
    **{"sin": ("cos", 1, -1), "cos": ("sin", 1, -1)},
    **{"sinh": ("cosh", -1, 1), "cosh": ("sinh", 1, 1)},
}


class Reading:
    """How formulas are read, and the generators found so far.

    squares: the functions whose squares are replaced. tangents: whether tan(u) is read as sin(u)/cos(u).
    multiples: whether sin(2*u) is read with sin(u) and cos(u). conjugates: whether roots leave the
    denominators. exponentials: whether sinh, cosh, tanh and sigmoid are read with exp. normal: whether
    erf is read by the normal distribution function. apart: whether sigmoid(-u) stays beside sigmoid(u),
    for what has both has lost digits where it is written with one. halves: whether tanh is read with sigmoid,
    in an expression that has both. tails: whether erfc is read as 1 - erf, in an expression that has both.
    sums: whether sums that occur more than once stay whole. jumps: whether sign(u) stays so, which has a
    value at 0 where u/abs(u) has none.
    units: the largest common measure of the multiples of each argument of a sine or cosine.
    beats: products of two sines or cosines as sums.
    signs: those of variables, where they are assumed.
    squared: whether a square of a function of `SQUARES` was met, replaced or not.
    """

    squares: tuple[str, ...] = ("cos", "cosh")
    tangents = multiples = True
    conjugates = exponentials = normal = sums = jumps = apart = halves = tails = False
    squared = False

    def __init__(self, signs: Mapping[str, int]) -> None:
        self.signs = signs
        self.table: list[tuple[Any, ...]] = []
        self.places: dict[tuple[Any, ...], int] = {}
        self.units: dict[Any, Rational] = {}
        self.beats: dict[tuple[int, int], Polynomial] = {}
        self.factors: dict[Key, dict[Key, int]] = {}


def generator(reading: Reading, *entry: Any) -> int:
    """The generator of this kind ("atom", "prime", "exp", "root", "base", "call") and content."""
    place = reading.places.get(entry)
    if place is None:
        place = reading.places[entry] = len(reading.table)
        reading.table.append(entry)
    return place


def entry_of(reading: Reading, factor: Factor) -> tuple[Any, ...]:
    """The kind and content of a generator; ("sum",) for a polynomial."""
    return reading.table[factor] if isinstance(factor, int) else ("sum",)


def word_of(reading: Reading, factor: Factor) -> str:
    """The function of a generator that is a call, else ""."""
    entry = entry_of(reading, factor)
    return entry[1] if entry[0] == "call" else ""


class Product:
    """A number times factors to powers. reading: which has the generators among them."""

    __slots__ = ("number", "powers", "reading")

    def __init__(self, reading: Reading, number: Rational = 1, powers: Any = ()) -> None:
        self.reading = reading
        self.number: Rational = number
        self.powers: dict[Factor, Rational] = dict(powers)

    @property
    def key(self) -> Frozen:
        """What equal products share."""
        return self.number, frozenset(self.powers.items())

    def times(self, other: Product) -> Product:
        """The product."""
        reading = self.reading
        n = self.number * other.number
        found = Product(reading, n if type(n) is int else small(n), self.powers)
        for k, e in other.powers.items():
            found.put(k, e)
        return found

    def scaled(self, factor: Rational) -> Product:
        """A number times it."""
        reading = self.reading
        return Product(reading, small(self.number * factor), self.powers)

    def put(self, k: Factor, e: Rational) -> None:
        """Multiply by a factor to a power, in place."""
        reading = self.reading
        if not isinstance(k, int) and k not in self.powers:
            other = minus(k)
            # A polynomial and its negative are one factor: (x - 1)/(1 - x) is -1. A root keeps its own
            # sign.
            if other in self.powers and e.denominator == 1:
                k, self.number = other, self.number * (-1) ** int(e % 2)
            elif other in self.powers and self.powers[other].denominator == 1:
                had = self.powers.pop(other)
                self.number *= (-1) ** int(had % 2)
                self.powers[k] = had
        e = e + self.powers.get(k, 0)
        e = e if type(e) is int else small(e)
        entry = entry_of(reading, k)
        # Whole powers of a prime join the number, so that sqrt(2)**3 is 2*sqrt(2) and equals sqrt(8).
        if entry[0] == "prime":
            self.number = small(self.number * Fraction(entry[1]) ** int(e // 1))
            e = 0 if type(e) is int else small(e % 1)
        if entry[:2] == ("call", "abs"):  # abs(u)**2 is u**2
            self.put(_inside(reading, k), e // 2 * 2)
            e = small(e % 2)
        if e:
            self.powers[k] = e
        else:
            self.powers.pop(k, None)

    def power(self, n: Rational) -> Product:
        """It to a rational power; a root is only split off what is surely positive."""
        reading = self.reading
        if not self.number:
            if n < 0:
                raise ZeroDivisionError
            return Product(reading, 0 if n else 1)
        if n.denominator == 1:
            found = Product(reading, small(Fraction(self.number) ** int(n)))
            for k, e in self.powers.items():
                found.put(k, e * n)
            return found
        # A root of a product is not the product of roots: of -x only what is surely positive may leave, and
        # the sign and the rest stay under one root together.
        found = surd(reading, abs(Fraction(self.number)), n)
        loose: dict[Factor, Rational] = {}
        for k, e in self.powers.items():
            root = None if isinstance(k, int) or len(k) < 3 else square_root(dict(k))
            if root:
                found = found.times(absolute(reading, frozenset(root.items())).power(2 * e * n))
            elif positive(reading, k):
                found.put(k, e * n)
            elif e % 2 == 0:  # sqrt(u**2) is abs(u)
                found = found.times(absolute(reading, k).power(e * n))
            else:
                loose[k] = e
        inside = Product(reading, -1 if self.number < 0 else 1, loose)
        odd = [k for k, e in loose.items() if e % 2 == 1 and not isinstance(k, int)]
        # sqrt(-(x - y)) is sqrt(y - x): the sign goes into a difference, where it costs nothing.
        if self.number < 0 and odd:
            del inside.powers[odd[0]]
            inside = Product(reading, 1, {**inside.powers, minus(odd[0]): loose[odd[0]]})
        if inside.number < 0 and not loose:
            raise TooLarge  # not real
        # A single factor to an odd power, sqrt(x**3): where it is real, x is positive, so it is x**(3/2).
        if inside.number > 0 and len(loose) == 1 and (e := next(iter(loose.values()))) % 2:
            found.put(next(iter(inside.powers)), e * n)
        elif loose:
            found.put(generator(reading, "root", inside.key), n)
        return found


def thawed(reading: Reading, key: Frozen) -> Product:
    """The product of a key."""
    return Product(reading, *key)


def positive(reading: Reading, k: Factor) -> bool:
    """Whether a factor is positive wherever it is real and not zero."""
    return sign(reading, k) > 0


def sign(reading: Reading, k: Factor) -> int:
    """1 or -1 if a factor has this sign wherever it is real and not zero; else 0."""
    if not isinstance(k, int):
        # A sum has a sign if all its terms have the same one: x**2 + y**2 + 1 is positive.
        signs = {prod(sign(reading, g) for g, e in m if e % 2) * (1 if c > 0 else -1) for m, c in k}
        return signs.pop() if len(signs) == 1 else 0
    kind, *rest = entry_of(reading, k)
    if kind == "atom" and rest[0].op == "name":
        return reading.signs.get(rest[0].data, 0)
    return int(kind in ("prime", "exp", "pi") or word_of(reading, k) in POSITIVE)


def absolute(reading: Reading, k: Factor) -> Product:
    """The absolute value of a factor."""
    if own := sign(reading, k):
        return Product(reading, own, {k: 1})
    # abs(x - y) and abs(y - x) become one factor.
    if not isinstance(k, int) and content(dict(k)) < 0:
        k = minus(k)
    return Product(
        reading, 1, {generator(reading, "call", "abs", (Product(reading, 1, {k: 1}).key,)): 1}
    )


def _inside(reading: Reading, k: Factor) -> Factor:
    """The factor of which a generator is the absolute value."""
    ((_, powers),) = entry_of(reading, k)[2]
    ((own, _),) = powers
    return own  # type: ignore[no-any-return]


def primes(n: int) -> dict[int, int]:
    """{prime: exponent} of a positive integer; a large factor is taken for a prime."""
    found: dict[int, int] = {}
    p = 2
    while p * p <= n and p < LARGEST_PRIME:
        while n % p == 0:
            n //= p
            found[p] = found.get(p, 0) + 1
        p += 1
    return found if n == 1 else {**found, n: found.get(n, 0) + 1}


def surd(reading: Reading, number: Rational, n: Rational) -> Product:
    """A positive rational number to a rational power."""
    found = Product(reading)
    for part, sign in ((number.numerator, 1), (number.denominator, -1)):
        for p, k in primes(part).items():
            found.put(generator(reading, "prime", p), sign * k * n)
    return found


# -- polynomials with relations -------------------------------------------------------------------
# Relations keep polynomials small and make equal ones equal: sqrt(2)**2 is 2, sin(u)**2 is 1 - cos(u)**2,
# abs(u)**2 is u**2. `reduced` replaces the highest power first, until none is left.
def relation(reading: Reading, g: int) -> tuple[int, Polynomial] | None:
    """(n, what the generator to the n is), if there is such a relation."""
    kind, *rest = entry_of(reading, g)
    if kind == "prime":
        return 1, {UNIT: rest[0]}
    if kind == "base":
        return 1, dict(rest[0])
    if kind == "root" and all(e > 0 and e.denominator == 1 for _, e in rest[0][1]):
        return 1, fraction(thawed(reading, rest[0]))[0]
    if kind == "call" and rest[0] == "abs":
        return 2, as_polynomial(reading, _inside(reading, g), 2)
    if kind == "call" and rest[0] in reading.squares:
        other, a, b = SQUARES[rest[0]]
        return 2, {UNIT: a, ((generator(reading, "call", other, *rest[1:]), 2),): b}
    return None


def reduced(reading: Reading, p: Polynomial) -> Polynomial:
    """The polynomial after all relations."""
    while True:
        found: Polynomial = {}
        changed = False
        for m, c in p.items():
            for g, e in m:
                rule = relation(reading, g) if e >= 1 else None
                if e >= 2 and word_of(reading, g) in SQUARES:
                    reading.squared = True
                if rule is not None and e >= rule[0]:
                    k = int(e // rule[0])
                    rest = joined(m, ((g, -k * rule[0]),))
                    found = plus(found, times({rest: c}, raised(rule[1], k)))
                    changed = True
                    break
            else:
                found[m] = found.get(m, 0) + c
        p = {m: c if type(c) is int else small(c) for m, c in found.items() if c}
        if not changed:
            return p


def as_polynomial(reading: Reading, k: Factor, e: Rational) -> Polynomial:
    """A factor to a positive power."""
    if isinstance(k, int):
        return reduced(reading, {((k, e),): 1})
    whole, part = divmod(e, 1)
    # (a + b + c)**31 has 528 terms; a formula that needs them is not made short this way.
    if whole * (len(k) - 1) > MOST_SQUARED:
        raise TooLarge
    found = reduced(reading, raised(dict(k), int(whole)))
    return times(found, {((generator(reading, "base", k), small(part)),): 1}) if part else found


def fraction(p: Product) -> tuple[Polynomial, Product]:
    """(the polynomial of what has positive powers, the product of the rest)."""
    reading = p.reading
    top: Polynomial = {UNIT: p.number}
    rest = Product(reading)
    for k, e in p.powers.items():
        if e > 0:
            top = reduced(reading, times(top, as_polynomial(reading, k, e)))
        else:
            rest.put(k, e)
    return top, rest


def collected(reading: Reading, p: Polynomial) -> Product:
    """A polynomial as its content, the powers that all terms share, and the rest."""
    if not p:
        return Product(reading, 0)
    c = content(p)
    shared: dict[int, Rational] | None = None
    for m in p:
        own = dict(m)
        shared = (
            own if shared is None else {g: min(e, own[g]) for g, e in shared.items() if g in own}
        )
    assert shared is not None
    found = Product(reading, c)
    for g, e in shared.items():
        kind, *rest = entry_of(reading, g)
        found.put(rest[0] if kind == "base" else g, e)
    inner = primitive(p, c)
    if shared:
        down = tuple((g, -e) for g, e in sorted(shared.items()))
        inner = {joined(m, down): v for m, v in inner.items()}
    if len(inner) > 1:
        found.put(frozenset(inner.items()), 1)
    return found


# Of x**2/(x + 1) + x/(x + 1) the terms share x and 1/(x + 1). What is left, x + 1, is multiplied out, and
# as it divides the denominator it cancels: the sum is x. What is shared is never expanded, so that sums of
# long products stay cheap.
def add(reading: Reading, terms: Iterable[Product]) -> Product:
    """The sum: what the terms share is taken out, the rest multiplied out, and cancelled."""
    own = [t for t in terms if t.number]
    if len(own) < 2:
        return own[0] if own else Product(reading, 0)
    shared = {k: min(t.powers.get(k, 0) for t in own) for t in own for k in t.powers}
    # Roots of one radicand differ by whole powers of it: sqrt(u)**3 is u*sqrt(u), so that both terms have
    # sqrt(u).
    roots = [k for k in shared if entry_of(reading, k)[0] == "root"]
    if roots:
        own = [_shifted(t, roots, shared) for t in own]
        shared = {k: min(t.powers.get(k, 0) for t in own) for t in own for k in t.powers}
    total: Polynomial = {}
    for t in own:
        q: Polynomial = {UNIT: t.number}
        for k, least in shared.items():
            e = small(t.powers.get(k, 0) - least)
            if e:
                q = reduced(reading, times(q, as_polynomial(reading, k, e)))
        total = plus(total, q)
    return cancelled(
        Product(reading, 1, {k: e for k, e in shared.items() if e}), reduced(reading, total)
    )


def _shifted(t: Product, roots: list[Factor], least: Mapping[Factor, Rational]) -> Product:
    """A term with the least power of each root, and whole powers of what is under it."""
    reading = t.reading
    for k in roots:
        n = int((t.powers.get(k, 0) - least[k]) // 1)
        if n:
            t = Product(reading, t.number, t.powers)
            t.put(k, -n)
            t = t.times(thawed(reading, entry_of(reading, k)[1]).power(n))
    return t


def cancelled(outer: Product, p: Polynomial) -> Product:
    """The product times the polynomial, which cancels the denominators that divide it."""
    reading = outer.reading
    if not p:
        return Product(reading, 0)
    whole = collected(reading, p)
    inner = next(
        (k for k, e in whole.powers.items() if not isinstance(k, int) and len(k) > 1), None
    )
    if inner is None or whole.powers[inner] != 1:
        return outer.times(whole)
    del whole.powers[inner]
    found, rest = outer.times(whole), dict(inner)
    # Short denominators divide more often, and each division shortens what the next ones have to divide.
    for d in sorted((d for d in found.powers if not isinstance(d, int)), key=len):
        while found.powers.get(d, 0) < 0 and len(rest) > 1:
            made = quotient(rest, dict(d))
            if made is None:
                break
            rest = made
            found.put(d, 1)
    return found.times(collected(reading, rest))


def factored(p: Product) -> Product:
    """The product with its polynomials factored."""
    reading = p.reading
    found = Product(reading, p.number)
    for k, e in p.powers.items():
        if isinstance(k, int) or e.denominator != 1:
            found.put(k, e)
            continue
        if k not in reading.factors:
            try:
                reading.factors[k] = factors(dict(k))
            # A polynomial that takes too long to factor stays as it is; the budget of the whole reading
            # goes on.
            except TooLarge:
                if budget.left < 0:
                    raise
                reading.factors[k] = {k: 1}
        parts = reading.factors[k]
        whole: Polynomial = {UNIT: 1}
        for f, n in parts.items():
            whole = times(whole, raised(dict(f), n))
        # Factors are found up to a number; one term of the product tells which number it is.
        m, c = next(iter(k))
        if m not in whole:
            found.put(k, e)
            continue
        found.number = small(found.number * (Fraction(c) / whole[m]) ** int(e))
        for f, n in parts.items():
            found = found.times(collected(reading, dict(f)).power(e * n))
    return found


# -- functions ------------------------------------------------------------------------------------
def terms_of(p: Product) -> list[Product]:
    """The product as the terms of its expanded sum."""
    reading = p.reading
    top, rest = fraction(p)
    return [collected(reading, {m: c}).times(rest) for m, c in top.items()]


def exp(p: Product) -> Product:
    """exp(p), as the product of the exponentials of its terms."""
    reading = p.reading
    found = Product(reading)
    for t in terms_of(p) if p.number else ():
        if len(t.powers) == 1:
            ((k, e),) = t.powers.items()
            # exp(3*log(u)) is u**3: what comes back from a power u**v whose exponent turned out to be a
            # number.
            if word_of(reading, k) == "log" and e == 1:
                found = found.times(thawed(reading, entry_of(reading, k)[2][0]).power(t.number))
                continue
        found.put(generator(reading, "exp", frozenset(t.powers.items())), t.number)
    return found


def log(p: Product) -> Product:
    """log(p); that of a quotient or a power of numbers by those of integers."""
    reading = p.reading
    # log(8/9) is 3*log(2) - 2*log(3): only so do logarithms of numbers cancel.
    if not p.powers and p.number > 0:
        if p.number.denominator > 1:
            parts = [
                log(Product(reading, p.number.numerator)),
                log(Product(reading, p.number.denominator)),
            ]
            return add(reading, [parts[0], parts[1].scaled(-1)])
        n = gcd(*primes(p.number.numerator).values())
        if not n:
            return Product(reading, 0)
        base = round(p.number ** Fraction(1, n)) if n > 1 else p.number
        return Product(reading, n, {generator(reading, "call", "log", ((base, frozenset()),)): 1})
    if p.number == 1 and len(p.powers) == 1:
        ((k, e),) = p.powers.items()
        entry = entry_of(reading, k)
        if entry[0] == "exp" and not _of_powers(reading, entry[1]):
            return Product(reading, e, entry[1])
        # log(u**2) is 2*log(u) for positive u alone; a root says that its radicand is positive.
        if e.denominator > 1 or positive(reading, k):
            inner = Product(reading, 1, {k: 1}).key
            return Product(reading, e, {generator(reading, "call", "log", (inner,)): 1})
    return Product(reading, 1, {generator(reading, "call", "log", (p.key,)): 1})


def _of_powers(reading: Reading, exponent: Iterable[tuple[Factor, Rational]]) -> bool:
    """Whether exp of it is a power u**v whose base may be negative, where v*log(u) is not real."""
    inside = (
        entry_of(reading, k)[2][0] for k, e in exponent if e == 1 and word_of(reading, k) == "log"
    )
    return any(not all(positive(reading, k) for k in thawed(reading, u).powers) for u in inside)


def applied(word: str, args: list[Product]) -> Product:
    """A function of the language of products, by the identities that the reading uses."""
    reading = args[0].reading
    p = args[0]
    if word in DEFINED and (known := _read_as(DEFINED[word], p)) is not None:
        return known
    if word in ODD | EVEN:
        if not p.number:
            return Product(reading, 0 if word in ODD else 1)
        if _leads_negative(p):
            found = applied(word, [p.scaled(-1)])
            return found.scaled(-1) if word in ODD else found
    if word in READ and (known := _read_as(READ[word], p)) is not None:
        return known
    known = turned(word, p) or _of_inverse(word, p)
    if known is not None:
        return known
    if reading.multiples and word in ("sin", "cos", "sinh", "cosh"):
        # Angles are measured in a common unit: of sin(2*u) and cos(3*u) the unit is u, and both are
        # polynomials in sin(u) and cos(u). So identities of multiple angles need no table.
        own = word[3:], frozenset(p.powers.items())
        unit = reading.units.get(own, p.number)
        unit = reading.units[own] = Fraction(
            gcd(unit.numerator, p.number.numerator), lcm(unit.denominator, p.number.denominator)
        )
        k = p.number / unit
        # Polynomials of higher degrees have large coefficients, and make the text longer.
        if k.denominator == 1 and 1 < k <= 8:
            key = ((small(unit), own[1]),)
            sine, cosine = (
                Product(reading, 1, {generator(reading, "call", f + word[3:], key): 1})
                for f in ("sin", "cos")
            )
            return _multiple(word, int(k), sine, cosine)
    return Product(reading, 1, {generator(reading, "call", word, tuple(a.key for a in args)): 1})


def _read_as(entries: Entries, p: Product) -> Product | None:
    """What the first entry makes of a function of p whose option the reading has."""
    reading = p.reading
    for option, wanted, form in entries:
        if not option or getattr(reading, option) is wanted:
            found = form(p)
            if found is not None:
                return found
    return None


def _turned_sigmoid(p: Product) -> Product | None:
    """1 - sigmoid(-p), if p leads with a minus."""
    reading = p.reading
    if not _leads_negative(p):
        return None
    return add(reading, [Product(reading, 1), applied("sigmoid", [p.scaled(-1)]).scaled(-1)])


def _by_normal(p: Product) -> Product:
    """erf(p) by the normal distribution function: 2*ndtr(sqrt(2)*p) - 1."""
    reading = p.reading
    root = Product(reading, 1, {generator(reading, "prime", 2): HALF})
    return add(reading, [applied("special.ndtr", [p.times(root)]).scaled(2), Product(reading, -1)])


def _quotient(tail: str) -> Callable[[Product], Product]:
    """The tangent as sine by cosine; tail: "h" of hyperbolic ones."""
    return lambda p: applied("sin" + tail, [p]).times(applied("cos" + tail, [p]).power(-1))


# What a function is by others: (the option of the reading, its value, the form), the first that applies.
Entries = tuple[tuple[str, Any, Callable[[Product], Product | None]], ...]
Meanings = dict[str, Entries]
# Before the sign of the argument is looked at …
DEFINED: Meanings = {
    "exp": (("", None, exp),),
    "log": (("", None, log),),
    "expm1": (("", None, lambda p: add(p.reading, [exp(p), Product(p.reading, -1)])),),
    "log1p": (("", None, lambda p: log(add(p.reading, [p, Product(p.reading, 1)]))),),
    "erfc": (
        (
            "tails",
            True,
            lambda p: add(p.reading, [Product(p.reading, 1), applied("erf", [p]).scaled(-1)]),
        ),
    ),
    "abs": (("", None, lambda p: _sized(p, False)),),
    "sign": (("jumps", False, lambda p: _sized(p, True)),),
}
# … and behind it.
READ: Meanings = {
    "erf": (("normal", True, _by_normal),),
    "sigmoid": (
        ("apart", False, _turned_sigmoid),
        ("exponentials", True, lambda p: _exponential("sigmoid", p)),
    ),
    "sinh": (("exponentials", True, lambda p: _exponential("sinh", p)),),
    "cosh": (("exponentials", True, lambda p: _exponential("cosh", p)),),
    "tanh": (
        ("exponentials", True, lambda p: _exponential("tanh", p)),
        # tanh(u/2) is 2*sigmoid(u) - 1
        (
            "halves",
            True,
            lambda p: add(
                p.reading, [applied("sigmoid", [p.scaled(2)]).scaled(2), Product(p.reading, -1)]
            ),
        ),
        ("tangents", True, _quotient("h")),
    ),
    "tan": (("tangents", True, _quotient("")),),
}


def _sized(p: Product, signed: bool) -> Product:
    """The absolute value of a product, or its sign, by factors: that of u is u/abs(u)."""
    reading = p.reading
    found = Product(reading, -p.number if p.number < 0 else p.number)
    if signed and p.number:
        found.number = 1 if p.number > 0 else -1
    for k, e in p.powers.items():
        if e % 2 != 1:
            found.put(k, 0 if signed else e)
        elif own := sign(reading, k):
            found = found.times(Product(reading, own, {} if signed else {k: e}))
        else:
            found = found.times(absolute(reading, k).power(-1 if signed else e))
            found.put(k, int(signed))
    return found


def turned(word: str, p: Product) -> Product | None:
    """sin(u + k*pi/2) and cos(u + k*pi/2) by those of u; None of another argument."""
    reading = p.reading
    k, e = next(iter(p.powers.items()), (0, 0))
    if word not in ("sin", "cos") or len(p.powers) != 1 or e != 1:
        return None
    terms: Polynomial = {((k, 1),): 1} if isinstance(k, int) else dict(k)
    pi = next((m for m in terms if len(m) == 1 and entry_of(reading, m[0][0])[0] == "pi"), None)
    turn = 2 * terms.pop(pi, 0) * p.number if pi is not None and pi[0][1] == 1 else 0
    if not turn or turn.denominator != 1:
        return None
    # Four quarters of a turn: sin, cos, -sin, -cos. A cosine is a sine that is a quarter ahead.
    quarters = int(turn) + (word == "cos")
    rest = applied(("sin", "cos")[quarters % 2], [collected(reading, terms).scaled(p.number)])
    return rest.scaled(1 if quarters % 4 < 2 else -1)


def _of_inverse(word: str, p: Product) -> Product | None:
    """sin(asin(u)), cos(asin(u)) and so on without these functions; None of another argument."""
    reading = p.reading
    if p.number != 1 or len(p.powers) != 1:
        return None
    ((k, e),) = p.powers.items()
    other = word_of(reading, k)[1:] if e == 1 and word_of(reading, k)[:1] == "a" else ""
    tail = word[3:]
    if word not in SQUARES or other not in (word, SQUARES[word][0], "tan" + tail):
        return None
    u = thawed(reading, entry_of(reading, k)[2][0])
    if other == word:
        return u
    if other[:3] == "tan":
        cosine = add(reading, [Product(reading, 1), u.power(2).scaled(-1 if tail else 1)]).power(
            -HALF
        )
        return cosine if word[:3] == "cos" else u.times(cosine)
    _, a, b = SQUARES[word]
    return add(reading, [Product(reading, a), u.power(2).scaled(b)]).power(HALF)


def _leads_negative(p: Product) -> bool:
    if len(p.powers) == 1:
        ((k, e),) = p.powers.items()
        if not isinstance(k, int) and e == 1:
            return (content(dict(k)) < 0) != (p.number < 0)
    return p.number < 0


def _exponential(word: str, p: Product) -> Product:
    reading = p.reading
    if word == "sigmoid":
        return add(reading, [Product(reading, 1), exp(p.scaled(-1))]).power(-1)
    up, down = exp(p), exp(p.scaled(-1))
    sine, cosine = add(reading, [up, down.scaled(-1)]), add(reading, [up, down])
    if word == "tanh":
        return sine.times(cosine.power(-1))
    return (sine if word == "sinh" else cosine).scaled(HALF)


def _multiple(word: str, k: int, sine: Product, cosine: Product) -> Product:
    """sin(k*u) or cos(k*u) from sin(u) and cos(u), by Chebyshev's recurrence."""
    reading = sine.reading
    before, found = (
        (Product(reading, 1), cosine) if word[:3] == "cos" else (Product(reading, 0), sine)
    )
    # cos(3*u) = 2*cos(u)*cos(2*u) - cos(u), and so on upwards.
    for _ in range(k - 1):
        before, found = found, add(reading, [cosine.times(found).scaled(2), before.scaled(-1)])
    return found


def harmonics(reading: Reading, p: Polynomial, angle: Any = None) -> Polynomial:
    """The polynomial with products of sines and cosines as sums: sin(u)*cos(v) by sin(u + v), sin(u - v).

    angle: the only one whose products are written so, if there is one; its odd ones are left.
    """
    found: Polynomial = {}
    waiting = list(p.items())
    while waiting:
        m, c = waiting.pop()
        pair = _pair(reading, m, angle)
        if pair is None:
            found = plus(found, {m: c})
            continue
        first, second = pair
        rest = joined(m, ((first, -2),) if first == second else ((first, -1), (second, -1)))
        if pair not in reading.beats:
            reading.beats[pair] = _beats(reading, first, second)
        waiting += times(reading.beats[pair], {rest: c}).items()
    return found


def _beats(reading: Reading, first: int, second: int) -> Polynomial:
    """The product of two sines or cosines, a sine first, as a sum."""
    (_, a, (u,)), (_, b, (v,)) = entry_of(reading, first), entry_of(reading, second)
    found: Polynomial = {}
    for sign in (1, -1):
        own = circular(
            ("cos" if a == b else "sin") + a[3:],
            add(reading, [thawed(reading, u), thawed(reading, v).scaled(sign)]),
        )
        less = a[:3] == b[:3] == "sin" and (sign > 0) != (a == "sinh")
        top, below = fraction(own.scaled(-HALF if less else HALF))
        if below.powers:
            raise TooLarge
        found = plus(found, top)
    return found


def _pair(reading: Reading, m: Monomial, angle: Any) -> tuple[int, int] | None:
    """Two sines or cosines in a monomial, a sine first; None if there are none."""
    found = [
        g
        for g, e in m
        if word_of(reading, g) in CIRCULAR
        and e.denominator == 1
        and angle in (None, entry_of(reading, g)[2])
        for _ in range(int(e))
    ]
    if len(found) < 2 or (angle is not None and len(found) % 2):
        return None
    found = [g for g in found if word_of(reading, g)[3:] == word_of(reading, found[0])[3:]]
    found.sort(key=lambda g: word_of(reading, g)[:3] == "cos")
    return (found[0], found[-1]) if len(found) > 1 else None


def circular(word: str, p: Product) -> Product:
    """A sine or cosine of an argument as it is, but for its sign and quarters of a turn."""
    reading = p.reading
    if not p.number:
        return Product(reading, 0 if word in ODD else 1)
    if _leads_negative(p):
        return circular(word, p.scaled(-1)).scaled(-1 if word in ODD else 1)
    return turned(word, p) or Product(reading, 1, {generator(reading, "call", word, (p.key,)): 1})


# -- other forms ----------------------------------------------------------------------------------
def conjugated(p: Product) -> Product:
    """The product with denominators multiplied by their conjugates, which makes them no longer."""
    reading = p.reading
    for _ in range(6):
        for k, e in p.powers.items():
            if isinstance(k, int) or e >= 0 or e.denominator != 1:
                continue
            g = _irrational(reading, k)
            if g is None:
                continue
            step = 2 if word_of(reading, g) else 1
            odd = {m: c for m, c in k if dict(m).get(g, 0) % step}
            # 1/(1 + sqrt(2)) times (1 - sqrt(2)): the terms with an odd power of the root change their
            # sign, so the product has only even ones, which are free of the root.
            conjugate = plus(dict(k), odd, -2)
            norm = reduced(reading, times(dict(k), conjugate))
            # The denominator must not grow: that of three roots would have eight terms before it loses one.
            if not 0 < len(norm) <= len(k):
                continue
            p = Product(reading, p.number, {f: x for f, x in p.powers.items() if f != k})
            p = p.times(collected(reading, norm).power(e))
            for _ in range(int(-e)):
                p = cancelled(p, conjugate)
            break
        else:
            return p
    return p


def _irrational(reading: Reading, k: Key) -> int | None:
    """A generator whose square roots, or whose first powers for a cosine, are in the polynomial."""
    for g in sorted(generators(m for m, _ in k), reverse=True):
        exponents = {dict(m).get(g, 0) for m, _ in k}
        if word_of(reading, g) == "cos" and exponents <= {0, 1}:
            return g
        if (
            word_of(reading, g) == ""
            and any(e % 1 for e in exponents)
            and all(e % 1 in (0, HALF) for e in exponents)
        ):
            return g
    return None


def multiplied(p: Product, below: bool) -> Product:
    """Polynomials of equal power multiplied out, those below the line alone or all of them.

    They stay apart where that makes more terms than they have.
    """
    reading = p.reading
    groups: dict[Rational, list[Key]] = {}
    for k, e in p.powers.items():
        if not isinstance(k, int) and (e < 0 or not below):
            groups.setdefault(e, []).append(k)
    found = Product(reading, p.number, p.powers)
    for e, keys in groups.items():
        n = abs(int(e)) if e.denominator == 1 else 1
        if len(keys) < 2 and n == abs(Fraction(e)) == 1:
            continue
        total: Polynomial = {UNIT: 1}
        for k in keys:
            total = reduced(reading, times(total, raised(dict(k), n)))
        # (x - 1)*(x + 1) is x**2 - 1, two terms for four; (x + 1)*(y + 2) would be four for four, and says
        # less.
        if len(total) > sum(map(len, keys)):
            continue
        for k in keys:
            del found.powers[k]
        found = found.times(collected(reading, total).power(e / Fraction(n)))
    return found


def raised_roots(p: Product) -> Product:
    """The product with its roots above the line: 1/(u*sqrt(v)) is sqrt(v)/(u*v)."""
    reading = p.reading
    for k, e in list(p.powers.items()):
        if entry_of(reading, k)[0] == "root" and e < 0:
            p = p.times(thawed(reading, entry_of(reading, k)[1]).power(e // 1))
            p.put(k, -(e // 1))
    return p


def harmonic(p: Product) -> Product:
    """The product with what is above the line as a sum of sines and cosines."""
    reading = p.reading
    top, rest = fraction(p)
    return collected(reading, reduced(reading, harmonics(reading, top))).times(rest)


def one_denominator(p: Product) -> Product:
    """The product over a single polynomial: 1/(x*(x**4 + 1)) is 1/(x**5 + x)."""
    reading = p.reading
    above = Product(reading, p.number, {k: e for k, e in p.powers.items() if e > 0})
    below: Polynomial = {UNIT: 1}
    most = 0
    for k, e in p.powers.items():
        if e < 0:
            below = reduced(reading, times(below, as_polynomial(reading, k, -e)))
            most += 1 if isinstance(k, int) else len(k)
    if not 1 < len(below) <= most:
        raise TooLarge
    above.powers[frozenset(below.items())] = -1
    return above


def shifted_roots(p: Product) -> Product:
    """The product with whole powers of what is under a root joined to it: u/sqrt(u) is sqrt(u)."""
    reading = p.reading
    for k in list(p.powers):
        if entry_of(reading, k)[0] == "root":
            for sign in (1, -1):
                made = p.times(thawed(reading, entry_of(reading, k)[1]).power(-sign))
                made.put(k, sign)
                if len(made.powers) < len(p.powers):
                    p = made
    return p


__all__ = ["Frozen", "Monomial", "Product", "by"]
