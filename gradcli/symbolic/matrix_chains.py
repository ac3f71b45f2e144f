"""Canonicalisation of matrix products: few transposes, few brackets, few signs.

Products associate to the left unless that takes more multiplications.
"""

from __future__ import annotations

from gradcli.symbolic import algebra as alg
from gradcli.symbolic.array_algebra import chain, multiplied, transposed
from gradcli.symbolic.exact_numbers import ONE, ZERO, Number
from gradcli.symbolic.expressions import Expression, call, is_call


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
        inner = multiplied([transposed(f) for f in factors[::-1]])
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


__all__ = ["associated", "transposes", "without_sign"]
