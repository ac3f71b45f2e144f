"""Polynomials over numbered generators, with rational coefficients and exponents, within a budget.

A polynomial is a dict {monomial: number}, a monomial a sorted tuple of (generator, exponent) pairs. What
costs time is paid from `budget`; what would grow too large raises `TooLarge`.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import product
from math import gcd, isqrt, lcm

Rational = int | Fraction
Monomial = tuple[tuple[int, Rational], ...]
Polynomial = dict[Monomial, Rational]
Key = frozenset[tuple[Monomial, Rational]]

UNIT: Monomial = ()
MOST_TERMS = 400
LARGEST_ROOT = 5000  # of the end coefficients of a polynomial whose rational roots are searched


class TooLarge(Exception):
    """The budget is spent, or what is asked for would be too long to be shorter."""


class Budget(threading.local):
    """What is left to be spent: about the number of monomials that may still be multiplied."""

    left = 0

    def pay(self, amount: int) -> None:
        """Raises TooLarge if it is more than is left."""
        self.left -= amount
        if self.left < 0:
            raise TooLarge


budget = Budget()


def small(n: Rational) -> Rational:
    """An int where a Fraction is one: it adds, hashes and compares ten times faster."""
    return n.numerator if n.denominator == 1 else n


def ratio(a: Rational, b: Rational) -> Rational:
    """a/b, an int where it is one."""
    if type(a) is int and type(b) is int:
        whole, rest = divmod(a, b)
        return whole if not rest else Fraction(a, b)
    return small(Fraction(a) / b)


def joined(a: Monomial, b: Monomial) -> Monomial:
    """The product of monomials."""
    if not a or not b:
        return a or b
    powers = dict(a)
    for g, e in b:
        total = small(powers.get(g, 0) + e)
        if total:
            powers[g] = total
        else:
            del powers[g]
    return tuple(sorted(powers.items()))


def plus(a: Polynomial, b: Polynomial, factor: Rational = 1) -> Polynomial:
    """a + factor*b."""
    found = dict(a)
    for m, c in b.items():
        total = small(found.get(m, 0) + factor * c)
        if total:
            found[m] = total
        else:
            found.pop(m, None)
    return found


def times(a: Polynomial, b: Polynomial) -> Polynomial:
    """a*b. Raises TooLarge."""
    budget.pay(len(a) * len(b))
    found: Polynomial = {}
    for m, c in a.items():
        for n, d in b.items():
            key = joined(m, n)
            found[key] = found.get(key, 0) + c * d
    if len(found) > MOST_TERMS:
        raise TooLarge
    return {m: small(c) for m, c in found.items() if c}


def raised(a: Polynomial, n: int) -> Polynomial:
    """a**n."""
    found: Polynomial = {UNIT: 1}
    for _ in range(n):
        found = times(found, a)
    return found


def minus(a: Iterable[tuple[Monomial, Rational]]) -> Key:
    """The key of -a."""
    return frozenset((m, -c) for m, c in a)


def generators(p: Iterable[Monomial]) -> set[int]:
    """The generators in a polynomial."""
    return {g for m in p for g, _ in m}


def leading(p: Iterable[Monomial]) -> Monomial:
    """The monomial whose sign is that of the polynomial."""
    # By degree, then by generators: any order will do that is the same for a polynomial and its negative.
    return max(p, key=lambda m: (sum(e for _, e in m), m))


def content(p: Polynomial) -> Rational:
    """The rational number that leaves coprime integers, and a positive leading coefficient."""
    above = gcd(*(c.numerator for c in p.values()))
    found = ratio(above, lcm(*(c.denominator for c in p.values())))
    return -found if p[leading(p)] < 0 else found


def primitive(p: Polynomial, own: Rational = 0) -> Polynomial:
    """The polynomial over its content; own: that, if it is known."""
    c = own or content(p)
    return p if c == 1 else {m: ratio(v, c) for m, v in p.items()}


def quotient(a: Polynomial, b: Polynomial) -> Polynomial | None:
    """a/b if it is exact, else None; exponents may be fractions. Raises TooLarge."""
    tops, own = _degrees(a), _degrees(b)
    # A divisor of a higher degree in any generator divides nothing: most trials end here.
    if not own.keys() <= tops.keys() or any(e < own.get(g, 0) for g, e in tops.items()):
        return None
    order = sorted(tops)
    # Exponents may be halves: x + sqrt(x) is divided as a polynomial in sqrt(x).
    scale = dict.fromkeys(order, 1)
    for term in (*a, *b):
        for g, e in term:
            if e.denominator > 1:
                scale[g] = lcm(scale[g], e.denominator)

    def dense(p: Polynomial) -> dict[tuple[int, ...], Rational]:
        made: dict[tuple[int, ...], Rational] = {}
        for m, c in p.items():
            powers = dict(m)
            made[tuple([int(powers.get(g, 0) * scale[g]) for g in order])] = c
        return made

    rest, divisor = dense(a), dense(b)
    first = max(divisor)
    found: Polynomial = {}
    while rest:
        top = max(rest)
        shift = tuple(x - y for x, y in zip(top, first, strict=True))
        if min(shift, default=0) < 0 or len(found) > MOST_TERMS:
            return None
        c = ratio(rest[top], divisor[first])
        powers = zip(order, shift, strict=True)
        found[tuple((g, ratio(e, scale[g])) for g, e in powers if e)] = c
        budget.pay(len(divisor))
        for m, d in divisor.items():
            key = tuple(x + y for x, y in zip(m, shift, strict=True))
            total = small(rest.get(key, 0) - c * d)
            if total:
                rest[key] = total
            else:
                rest.pop(key, None)
    return found


def _degrees(p: Polynomial) -> dict[int, Rational]:
    """The largest power of each generator; 0 where a term lacks it and the others divide by it."""
    found: dict[int, Rational] = {}
    count: Counter[int] = Counter()
    for m in p:
        for g, e in m:
            count[g] += 1
            found[g] = max(e, found.get(g, e))
    return {g: e if count[g] == len(p) else max(e, 0) for g, e in found.items()}


def by(p: Polynomial, g: int) -> dict[Rational, Polynomial]:
    """The coefficients by the power of a generator."""
    found: dict[Rational, Polynomial] = {}
    for m, c in p.items():
        rest = tuple(x for x in m if x[0] != g)
        found.setdefault(dict(m).get(g, 0), {})[rest] = c
    return found


def square_root(p: Polynomial) -> Polynomial | None:
    """The polynomial whose square it is, else None."""
    found: Polynomial = {}
    rest = p
    first, root = UNIT, Fraction(0)
    while rest:
        # As by hand: the root of the leading term first, then what is missing from twice the product.
        top = max(rest, key=lambda m: tuple((-g, e) for g, e in m))
        if not found:
            c = Fraction(rest[top])
            root = Fraction(isqrt(max(c.numerator, 0)), isqrt(c.denominator))
            first = tuple((g, small(Fraction(e) / 2)) for g, e in top)
            if root * root != c or any(Fraction(e).denominator > 1 for _, e in first):
                return None
            term: Polynomial = {first: small(root)}
        else:
            shift = joined(top, tuple((g, -e) for g, e in first))
            term = {shift: small(rest[top] / root / 2)}
            if any(e < 0 for _, e in shift) or len(found) > len(p):
                return None
        rest = plus(rest, times(plus(found, found), term), -1)
        rest = plus(rest, times(term, term), -1)
        found = plus(found, term)
    return found


# -- factors --------------------------------------------------------------------------------------
def factors(p: Polynomial) -> dict[Key, int]:
    """{factor: power}, whose product it is up to a number; complete in easy cases only."""
    found: dict[Key, int] = {}
    waiting = [(p, 1)]
    while waiting:
        f, n = waiting.pop()
        # (x + y)**2 has three terms; a polynomial of two is no square.
        root = square_root(f) if len(f) > 2 else None
        if root is not None:
            waiting.append((root, 2 * n))
            continue
        for d in _divisors(f):
            rest = quotient(f, d) if 1 < len(d) < len(f) + len(generators(f)) else None
            if rest is not None and (len(rest) > 1 or generators(rest)):
                waiting += [(d, n), (rest, n)]
                break
        else:
            if f.keys() != {UNIT}:
                key = frozenset(primitive(f).items())
                found[key] = found.get(key, 0) + n
    return found


def _divisors(f: Polynomial) -> Iterator[Polynomial]:
    """Polynomials that may divide it: contents in a generator, factors of quadratics, linear ones."""
    own = sorted(generators(f))
    rows = {g: by(f, g) for g in own}
    for g in own:
        if len(rows[g]) > 1:
            yield _least(rows[g].values())
    for g in own:
        if any(e.denominator > 1 or e < 0 for e in rows[g]):
            continue
        for step in {1, gcd(*(e.numerator for e in rows[g]))}:
            if max(rows[g]) != 2 * step or not rows[g].keys() <= {0, step, 2 * step}:
                continue
            a, b, c = (rows[g].get(k * step, {}) for k in (2, 1, 0))
            # A quadratic in any generator has factors if its discriminant is a square.
            root = square_root(plus(times(b, b), times(a, c), -4))
            if root is not None:
                whole = plus(plus(times({((g, step),): 2}, a), b), root)
                yield quotient(whole, _least(by(whole, g).values())) or whole
    if len(own) == 1:
        (g,) = own
        yield from _linear(primitive(f), g)


def _least(parts: Iterable[Polynomial]) -> Polynomial:
    """The shortest of the coefficients: if they have a common factor of several terms, often it."""
    return primitive(min(parts, key=len))


def _linear(f: Polynomial, g: int) -> Iterator[Polynomial]:
    """x - r and x**2 - r for the rational roots of a polynomial in one generator."""
    exponents = [dict(m).get(g, 0) for m in f]
    if any(Fraction(e).denominator > 1 or e < 0 for e in exponents):
        return
    low, high = (abs(int(f[m])) for m in (min(f, key=len), max(f, key=lambda m: dict(m).get(g, 0))))
    # A rational root u/v has a u that divides the constant and a v that divides the leading coefficient.
    if not exponents.count(0) or max(low, high) > LARGEST_ROOT or max(exponents) < 3:
        return
    for u, v, sign, k in product(_whole(low), _whole(high), (1, -1), (1, 2)):
        r = small(Fraction(sign * u, v))
        if all(e % k == 0 for e in exponents) and not sum(
            c * r ** int(e // k) for e, c in zip(exponents, f.values(), strict=True)
        ):
            yield {((g, k),): 1, UNIT: -r}


def _whole(n: int) -> list[int]:
    return [d for d in range(1, n + 1) if n % d == 0]
