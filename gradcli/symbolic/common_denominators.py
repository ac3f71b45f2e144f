"""Canonicalisation of sums: over a common denominator, multiplied out or factored, if that is shorter."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from gradcli.symbolic import algebra as alg
from gradcli.symbolic.exact_numbers import MINUS_ONE, ONE, ZERO, Number
from gradcli.symbolic.expressions import Expression, is_number, number

MOST_TERMS = 24  # of a sum that is multiplied out
MOST_SHARED = 64  # of a sum that is searched for a factor that some terms share
LEAST_WON = 3  # characters that taking out such a factor has to save
HEAVIEST = 400  # heavier expressions are left alone: they have no short form

Term = tuple[Number, Expression]


def together(length: Callable[[Expression], int]) -> Callable[[Expression], Expression]:
    """The rule that puts sums over a common denominator or multiplies them out, if shorter by `length`."""

    def rule(node: Expression) -> Expression:
        if node.weight > HEAVIEST:
            return node
        if node.op == "sum":
            return min((node, *_sums(node)), key=length)
        if node.op == "product":
            return min((node, *_products(node, length)), key=length)
        return node

    return rule


def terms_of(node: Expression) -> list[Term]:
    """The (coefficient, term) pairs of a sum, the constant last."""
    if node.op != "sum":
        return [alg.split(node)]
    coefficients, constant = node.data
    found = list(zip(coefficients, node.args, strict=True))
    return [*found, (constant, alg.one)] if constant != ZERO else found


def powers_of(term: Expression) -> list[tuple[Expression, Any]]:
    """The (factor, exponent) pairs of a term."""
    if term is alg.one:
        return []
    if term.op == "product":
        return list(zip(term.args, term.data[1], strict=True))
    return [(term, ONE)]


def _sums(node: Expression) -> Iterable[Expression]:
    """The sum over its common denominator, and with only some terms over it."""
    under: dict[Expression, Number] = {}
    for _, term in terms_of(node):
        for base, e in powers_of(term):
            if isinstance(e, Number) and e.exact and e.negative and base.op != "number":
                had = under.get(base, ZERO)
                under[base] = -e if (-e).value > had.value else had
    yield from _over(terms_of(node), list(under.items()), node)
    if len(under) > 1 and len(node.args) > 2:  # only the terms with this denominator
        for base, e in under.items():
            with_it = [(c, t) for c, t in terms_of(node) if base in dict(powers_of(t))]
            rest = [(t, c) for c, t in terms_of(node) if (c, t) not in with_it]
            if rest and len(with_it) > 1:
                part = alg.combine([(t, c) for c, t in with_it])
                for made in _over(with_it, [(base, e)], part):
                    found = alg.combine([(made, ONE), *rest])
                    if keeps_shape(found, node):
                        yield found


def _over(terms: list[Term], scale: list[Any], node: Expression) -> Iterable[Expression]:
    """The terms over one denominator, with the numerator as it is and multiplied out."""
    over = [(c, alg.product([(t, ONE), *scale])) for c, t in terms]
    inverse = [(b, -e) for b, e in scale]
    for made in (over if scale else None, multiplied_out(over)):
        if made is None:
            continue
        top = alg.combine([(t, c) for c, t in made])
        found = alg.product([(top, ONE), *inverse])
        if keeps_shape(found, node):
            yield found


def keeps_shape(found: Expression, node: Expression) -> bool:
    """Whether an expression can replace another: it is 0 or has its shape."""
    return found.shape == node.shape or is_number(found, 0)


def multiplied_out(terms: Iterable[Term]) -> list[Term] | None:
    """The terms with products of sums multiplied out; None if there are none, or too many terms."""
    waiting = list(terms)
    found: list[Term] = []
    changed = False
    while waiting:
        coefficient, term = waiting.pop()
        own, rest = alg.split(term)
        pairs = powers_of(rest)
        at = next(
            (
                i
                for i, (b, e) in enumerate(pairs)
                if b.op == "sum" and isinstance(e, Number) and e.integer in (1, 2, 3)
            ),
            None,
        )
        if at is None:
            found.append((coefficient * own, rest))
        else:
            changed = True
            base, e = pairs[at]
            others = [*pairs[:at], *pairs[at + 1 :], (base, e + MINUS_ONE)]
            for c, t in terms_of(base):
                waiting.append((coefficient * own * c, alg.product([(t, ONE), *others])))
        if len(found) + len(waiting) > MOST_TERMS:
            return None
    return found[::-1] if changed else None


def _products(node: Expression, length: Callable[[Expression], int]) -> Iterable[Expression]:
    """The product with the denominators of its sums taken out."""
    coefficient, exponents = node.data
    pairs = list(zip(node.args, exponents, strict=True))
    changed: list[tuple[Expression, Any]] = []
    for base, e in pairs:
        if base.op == "sum" and isinstance(e, Number) and e.exact:
            made = [f for f in _sums(base) if f.op == "product"]
            if made and e.integer is not None:
                changed.append((min(made, key=length), e))
                continue
            content, rest = alg.content_of(base)
            if e.integer is None and not content.negative and content.power(e) is not None:
                changed += [(number(content), e), (rest, e)]
                continue
        changed.append((base, e))
    if changed != pairs:
        found = alg.product(changed, coefficient)
        if found.shape == node.shape:
            yield found


def partly(length: Callable[[Expression], int]) -> Callable[[Expression], Expression]:
    """The rule that takes a function or a sum out of those terms that share it, if shorter."""

    def rule(node: Expression) -> Expression:
        if node.op != "sum" or not 2 < len(node.args) + (node.data[1] != ZERO) <= MOST_SHARED:
            return node
        members: dict[tuple[Expression, bool], list[tuple[Number, Expression]]] = {}
        for c, t in terms_of(node):
            for base, e in powers_of(t):
                if base.op in ("sum", "call") and isinstance(e, Number) and e.integer:
                    members.setdefault((base, e.negative), []).append((c, t))
        often = max(members.items(), key=lambda m: len(m[1]), default=None)
        if often is None or len(often[1]) < 2:
            return node
        found = _apart(node, often[0][0], often[1], rule)
        return found if length(found) + LEAST_WON <= length(node) else node

    return rule


def _apart(
    node: Expression,
    base: Expression,
    with_it: list[Term],
    rule: Callable[[Expression], Expression],
) -> Expression:
    """The sum with a power of the base taken out of these terms."""
    powers = [dict(powers_of(t))[base] for _, t in with_it]
    least = min(powers, key=lambda e: abs(e.value))
    inner = alg.combine((alg.product([(t, ONE), (base, -least)]), c) for c, t in with_it)
    rest = [(t, c) for c, t in terms_of(node) if (c, t) not in with_it]
    found = alg.combine([(alg.product([(rule(inner), ONE), (base, least)]), ONE), *rest])
    return found if found.shape == node.shape else node


__all__ = ["keeps_shape", "multiplied_out", "partly", "powers_of", "terms_of", "together"]
