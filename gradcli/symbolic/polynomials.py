"""Scalar expressions as polynomials over atoms (functions and names), with like terms collected.

Derivatives of high order are polynomials in few atoms: those of sigmoid(x) in sigmoid(x), those of x**x in
log(x) + 1 and 1/x, times x**x. Without collecting, every order repeats the terms of the one before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.symbolic import algebra as alg
from gradcli.symbolic.exact_numbers import MINUS_ONE, ONE, ZERO, Number
from gradcli.symbolic.expressions import Expression, is_call, number

LIGHTEST = 40  # lighter expressions are short enough
MOST_TERMS = 400
MOST_ATOMS = 4

Monomial = tuple[int, ...]  # the exponent of every atom
Polynomial = dict[Monomial, Number]


class _Long(Exception):
    """The expression is no polynomial, or one of too many terms."""


def collected(root: Expression, length: Callable[[Expression], int]) -> Expression:
    """The expression as a product of powers and one sum of terms, if that is shorter."""
    if root.weight < LIGHTEST or root.shape or root.op not in ("sum", "product"):
        return root
    form = _Form()
    try:
        whole = form.of(root)
    except _Long:
        return root
    atoms = [a for a in form.atoms if a.op == "call"]
    forms = [form.written(whole), *(form.shifted(whole, a) for a in atoms)]
    return min((root, *(f for f in forms if f is not None)), key=length)


class _Form:
    """Converts expressions to polynomials over the atoms found so far, and back."""

    def __init__(self) -> None:
        self.atoms: dict[Expression, int] = {}
        self.made: dict[Expression, Polynomial] = {}

    def of(self, node: Expression) -> Polynomial:
        """The polynomial of an expression."""
        found = self.made.get(node)
        if found is None:
            found = self.made[node] = self._read(node)
            if len(found) > MOST_TERMS:
                raise _Long
        return found

    def _read(self, node: Expression) -> Polynomial:
        if node.op == "number":
            return {(): _exact(node.data)}
        if node.op == "sum":
            coefficients, constant = node.data
            total: Polynomial = {(): _exact(constant)}
            for term, coefficient in zip(node.args, coefficients, strict=True):
                _add(total, self.of(term), _exact(coefficient))
            return _without_zeros(total)
        if node.op == "product":
            coefficient, exponents = node.data
            result: Polynomial = {(): _exact(coefficient)}
            for base, exponent in zip(node.args, exponents, strict=True):
                result = _times(result, self._power(base, exponent))
            return result
        return {self._place(node, 1): ONE}

    def _power(self, base: Expression, exponent: Any) -> Polynomial:
        """The polynomial of a power: x**(x - 2) is x**x times x**-2."""
        if isinstance(exponent, Expression):
            if exponent.op != "sum" or exponent.data[1].integer in (None, 0):
                return {self._place(alg.power(base, exponent), 1): ONE}
            constant = exponent.data[1]
            rest = alg.add(exponent, number(-constant))
            return _times(self._power(base, rest), self._power(base, constant))
        n = exponent.integer
        if n is None:
            return {self._place(alg.product([(base, exponent)]), 1): ONE}
        if n < 0 or base.op not in ("sum", "product"):
            return {self._place(base, n): ONE}
        result: Polynomial = {(): ONE}
        for _ in range(n):
            result = _times(result, self.of(base))
            if len(result) > MOST_TERMS:
                raise _Long
        return result

    def _place(self, atom: Expression, exponent: int) -> Monomial:
        place = self.atoms.setdefault(atom, len(self.atoms))
        if place >= MOST_ATOMS:
            raise _Long
        return (*(0,) * place, exponent)

    # -- back to expressions ----------------------------------------------------------------------
    def written(self, whole: Polynomial) -> Expression:
        """The expression of a polynomial: common powers times one sum."""
        if not whole:
            return alg.zero
        atoms = list(self.atoms)
        full = {m + (0,) * (len(atoms) - len(m)): c for m, c in whole.items()}
        least = tuple(min(column) for column in zip(*full, strict=True))
        inner = {tuple(a - b for a, b in zip(m, least, strict=True)): c for m, c in full.items()}
        factors: list[tuple[Expression, Number]] = []
        for place, atom in enumerate(atoms):
            if is_call(atom, "sigmoid", "tanh"):
                inner, complements = _divided(inner, place)
                factors += [(_factor(atom, s), Number.of(n)) for s, n in complements]
        powers = [(a, Number.of(k)) for a, k in zip(atoms, least, strict=True) if k]
        terms = ((_term(atoms, m), c) for m, c in sorted(inner.items(), reverse=True))
        return alg.product([*powers, *factors, (alg.combine(terms), ONE)])

    def shifted(self, whole: Polynomial, atom: Expression) -> Expression | None:
        """The polynomial in log(x) + 1 instead of log(x); None if it has no fewer terms."""
        place = self.atoms[atom]
        for step in (ONE, MINUS_ONE):
            moved = _substituted(whole, place, step)
            if len(moved) < len(whole):
                other = _Form()
                names = [alg.add(a, number(step)) if a is atom else a for a in self.atoms]
                other.atoms = {a: i for i, a in enumerate(names)}
                return other.written(moved) if len(other.atoms) == len(names) else None
        return None


def _exact(number: Number) -> Number:
    if not number.exact:
        raise _Long
    return number


def _add(total: Polynomial, more: Polynomial, factor: Number) -> None:
    for monomial, c in more.items():
        key = _trimmed(monomial)
        total[key] = total.get(key, ZERO) + c * factor


def _times(a: Polynomial, b: Polynomial) -> Polynomial:
    if len(a) * len(b) > 20 * MOST_TERMS:
        raise _Long
    found: Polynomial = {}
    for m, c in a.items():
        for n, d in b.items():
            size = max(len(m), len(n))
            key = _trimmed(
                tuple(
                    (m[i] if i < len(m) else 0) + (n[i] if i < len(n) else 0) for i in range(size)
                )
            )
            found[key] = found.get(key, ZERO) + c * d
    return _without_zeros(found)


def _trimmed(monomial: Monomial) -> Monomial:
    while monomial and not monomial[-1]:
        monomial = monomial[:-1]
    return monomial


def _without_zeros(found: Polynomial) -> Polynomial:
    return {m: c for m, c in found.items() if c != ZERO}


def _term(atoms: list[Expression], monomial: Monomial) -> Expression:
    pairs = ((a, Number.of(k)) for a, k in zip(atoms, monomial, strict=True) if k)
    return alg.product(list(pairs))


def _factor(atom: Expression, sign: int) -> Expression:
    """1 - s, 1 + s (sign -1), or 1 - s**2 (sign 0)."""
    base = atom if sign else alg.power(atom, number(2))
    return alg.combine([(alg.one, ONE), (base, Number.of(-sign) if sign else MINUS_ONE)])


def _divided(inner: Polynomial, place: int) -> tuple[Polynomial, list[tuple[int, int]]]:
    """A polynomial without its factors 1 - s and 1 + s, and (sign, multiplicity) of each removed factor."""
    counts = {1: 0, -1: 0}
    for root in counts:
        while (quotient := _quotient(inner, place, root)) is not None:
            inner = quotient
            counts[root] += 1
    both = min(counts.values())
    found = [(0, both), (1, counts[1] - both), (-1, counts[-1] - both)]
    return inner, [(s, n) for s, n in found if n]


def _quotient(inner: Polynomial, place: int, root: int) -> Polynomial | None:
    """inner/(1 - root*s) by Horner's scheme from the lowest power; None if there is a remainder."""
    degree = max((m[place] for m in inner), default=0)
    if not degree:
        return None
    found: Polynomial = {}
    rests = {m[:place] + m[place + 1 :] for m in inner}
    for rest in rests:
        carried = ZERO
        for k in range(degree + 1):
            key = (*rest[:place], k, *rest[place:])
            carried = inner.get(key, ZERO) + carried * Number.of(root)
            if k < degree:
                found[key] = carried
        if carried != ZERO:
            return None
    return _without_zeros(found)


def _substituted(whole: Polynomial, place: int, step: Number) -> Polynomial:
    """The polynomial in s + step: s is (s + step) - step."""
    total: Polynomial = {}
    for monomial, c in whole.items():
        power = monomial[place] if place < len(monomial) else 0
        if power < 0:
            return whole
        binomial = ONE
        for k in range(power, -1, -1):  # C(power, k) (s + step)**k (-step)**(power - k)
            full = [*monomial, *(0,) * (place + 1 - len(monomial))]
            full[place] = k
            key = _trimmed(tuple(full))
            total[key] = total.get(key, ZERO) + c * binomial
            binomial = Number(binomial.value * k / (power - k + 1)) * -step
    return _without_zeros(total)


__all__ = ["collected"]
