"""Canonicalisation of matrix products: common factors of a sum taken out, few transposes, few brackets.

Products associate to the left unless that takes more multiplications.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from gradcli.symbolic import algebra as alg
from gradcli.symbolic.array_algebra import product_of, transposed
from gradcli.symbolic.common_denominators import powers_of, terms_of
from gradcli.symbolic.exact_numbers import ONE, ZERO, Number
from gradcli.symbolic.expressions import Expression, call, is_call, is_number

MOST_TERMS = 24
MOST_TRIED = 200  # factorisations of one sum
BRACKETS = 2  # extra characters accepted for one matrix product less: (A + A.T)@x for x@A + A@x
Chain = tuple[Expression, ...]
Factors = list[tuple[Expression, Any]]
Rule = Callable[[Expression], Expression]


def chain(product: Expression) -> Chain:
    """The factors of a matrix product, a vector last: v@A is read as A.T@v."""
    found: list[Expression] = []
    waiting = [product]
    while waiting:
        node = waiting.pop()
        if not is_call(node, "matmul") or not 1 <= len(node.shape) <= 2:
            found.append(node)
            continue
        a, b = node.args
        if len(a.shape) == 1:
            a, b = transposed(b), a
        waiting += [b, a]
    return tuple(found)


def multiplied(factors: Chain) -> Expression:
    """The product of a chain of factors: from the right if it ends in a vector, else from the left."""
    found, rest = factors[-1], factors[:-1]
    if len(found.shape) == 1:
        for factor in rest[::-1]:
            found = product_of(factor, found)
        return found
    found = factors[0]
    for factor in factors[1:]:
        found = product_of(found, factor)
    return found


# -- what terms share -----------------------------------------------------------------------------
def gathered(length: Callable[[Expression], int]) -> Rule:
    """The rule that rewrites A@x + B@x to (A + B)@x, if that is not longer by `length`.

    The rest of a sum is factored in turn, so all factorisations are tried: there may be as many as
    subsets of terms, and at most `MOST_TRIED` are.
    """

    def rule(node: Expression) -> Expression:
        known: dict[Expression, Expression] = {}

        def best_of(node: Expression) -> Expression:
            if node.op != "sum" or not node.shape or len(node.args) > MOST_TERMS:
                return node
            if node in known or len(known) > MOST_TRIED:
                return known.get(node, node)
            best, size = node, length(node)
            known[node] = node
            for found in _shared(node, best_of):
                found = best_of(found)
                if length(found) <= size + BRACKETS:
                    best, size = found, length(found)
            known[node] = best
            return best

        return best_of(node)

    return rule


def _shared(node: Expression, rule: Rule) -> Iterator[Expression]:
    """The sums that come of taking out one factor with which several products begin or end."""
    rows: list[tuple[Number, Factors, Chain]] = []
    for c, t in terms_of(node):
        outer, core = _core(t)
        if core is not None and core.shape != node.shape:
            core = None  # broadcast: the factor is no factor of this product
        rows.append((c, outer, chain(core) if core is not None else ()))
    for end in (0, -1):
        for word in ("matmul", "outer"):
            ends: dict[Expression, list[int]] = {}
            for k, (_, _, factors) in enumerate(rows):
                own = _factors(factors, word)
                if len(own) > 1:
                    ends.setdefault(own[end], []).append(k)
            for factor, members in ends.items():
                if len(members) > 1:
                    yield _without(node, rows, factor, members, end, word, rule)


def _factors(factors: Chain, word: str) -> Chain:
    """The factors of a chain, or the two vectors of an outer product."""
    if word == "matmul":
        return factors
    return factors[0].args if len(factors) == 1 and is_call(factors[0], "outer") else ()


def _core(term: Expression) -> tuple[Factors, Expression | None]:
    """(scalar factors, the one matrix product or outer product) of a term; None if there is no such."""
    outer: Factors = []
    core = None
    for base, e in powers_of(term):
        if not base.shape and not (isinstance(e, Expression) and e.shape):
            outer.append((base, e))
        elif core is None and e == ONE and is_call(base, "matmul", "outer"):
            core = base
        else:
            return [], None
    return outer, core


def _without(
    node: Expression,
    rows: list[tuple[Number, Factors, Chain]],
    factor: Expression,
    members: list[int],
    end: int,
    word: str,
    rule: Rule,
) -> Expression:
    parts = []
    common = [p for p in rows[members[0]][1] if all(p in rows[k][1] for k in members)]
    for k in members:
        c, outer, factors = rows[k]
        outer = [p for p in outer if p not in common]
        own = _factors(factors, word)
        rest = own[1:] if end == 0 else own[:-1]
        inner = rest[0] if word == "outer" else multiplied(rest)
        parts.append((alg.product([*outer, (inner, ONE)]), c))
    parts.sort(key=lambda p: is_call(alg.split(p[0])[1], "T"))  # A + A.T, not A.T + A
    inner = rule(alg.combine(parts))
    terms = terms_of(node)
    rest_terms = [(t, c) for k, (c, t) in enumerate(terms) if k not in members]
    shape = alg.split(terms[members[0]][1])[1].shape
    if is_number(inner, 0):
        return alg.combine(rest_terms)
    if not inner.shape:
        return node
    scalars, inner = alg.scalars_out(inner)
    pair = (factor, inner) if end == 0 else (inner, factor)
    if word == "outer":
        made = call("outer", list(pair), shape)
    else:
        made = multiplied((*chain(pair[0]), *chain(pair[1])))
    return alg.combine([*rest_terms, (alg.product([*common, *scalars, (made, ONE)]), ONE)])


# -- transposes and association -------------------------------------------------------------------
def transposes(node: Expression) -> Expression:
    """A.T@B.T as (B@A).T, and a sum of transposes as the transpose of a sum."""
    if node.op == "sum" and len(node.shape) == 2 and len(node.args) > 1:
        coefficients, constant = node.data
        if constant == ZERO and all(_turned(t) for t in node.args):
            terms = [(_flipped(t), c) for t, c in zip(node.args, coefficients, strict=True)]
            return call("T", [alg.combine(terms)], node.shape[::-1][::-1])
        return node
    if not is_call(node, "matmul") or len(node.shape) != 2:
        return node
    factors = chain(node)
    turned = sum(is_call(f, "T") for f in factors)
    straight = sum(not is_call(f, "T") and transposed(f) is not f for f in factors)
    if 1 + straight < turned and all(len(f.shape) == 2 for f in factors):
        inner = multiplied(tuple(transposed(f) for f in factors[::-1]))
        return call("T", [inner], node.shape)
    return node


def _turned(term: Expression) -> bool:
    """Whether it is a transpose, up to scalar factors."""
    return is_call(alg.scalars_out(term)[1], "T")


def _flipped(term: Expression) -> Expression:
    outer, own = alg.scalars_out(term)
    return alg.product([*outer, (own.args[0], ONE)])


def associated(node: Expression) -> Expression:
    """A@(B@C) as A@B@C, if that takes no more multiplications."""
    if not is_call(node, "matmul") or not all(len(a.shape) == 2 for a in node.args):
        return node
    a, right = node.args
    if not is_call(right, "matmul") or not all(len(f.shape) == 2 for f in right.args):
        return node
    b, c = right.args
    n, k, m, p = *a.shape, *c.shape
    if n * k * m + n * m * p > k * m * p + n * k * p:
        return node
    left = associated(call("matmul", [a, b], (n, m)))
    return call("matmul", [left, c], node.shape)


# -- signs ----------------------------------------------------------------------------------------
def without_sign(node: Expression) -> Expression:
    """-2*(x - y) as 2*(y - x), -(x - y)@A as (y - x)@A."""
    if node.op != "product" or not node.data[0].negative:
        return node
    coefficient, exponents = node.data
    pairs = list(zip(node.args, exponents, strict=True))
    for place, (base, e) in enumerate(pairs):
        if not isinstance(e, Number) or e.integer is None or e.integer % 2 == 0:
            continue
        found = _opposite(base)
        if found is not None:
            pairs[place] = (found, e)
            return alg.product(pairs, -coefficient)
    return node


def _opposite(own: Expression) -> Expression | None:
    """The negated expression if it is as short, y - x for x - y, else None."""
    if own.op == "sum":
        numbers = [*own.data[0], own.data[1]]
        positive = [n for n in numbers if not n.negative and n != ZERO]
        negative = [n for n in numbers if n.negative]
        return alg.negate(own) if len(negative) >= len(positive) > 0 else None
    if own.op == "product":
        turned = without_sign(alg.negate(own))
        return None if turned.op == "product" and turned.data[0].negative else turned
    if is_call(own, "matmul", "outer", "T", "dot"):
        for place, part in enumerate(own.args):
            found = _opposite(part)
            if found is not None:
                args = [*own.args[:place], found, *own.args[place + 1 :]]
                return call(own.data[0], args, own.shape, own.data[1])
    return None


__all__ = ["associated", "chain", "gathered", "transposes", "without_sign"]
