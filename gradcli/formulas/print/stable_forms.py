"""Rewrites for printed code that avoid cancellation.

A derivative in terms of the function's value reads well: 1 - tanh(x)**2. But if that value is close to 1,
the difference has no digits left. Code is meant to run, so it gets the stable form.
"""

from __future__ import annotations

from gradcli.formulas.algebra import algebra as alg
from gradcli.formulas.algebra.exact_numbers import ONE, ZERO, Number
from gradcli.formulas.algebra.expressions import Expression, call, is_call, order
from gradcli.formulas.algebra.rewriting import rewrite
from gradcli.formulas.lift.elementwise_rules import compare

TWO = Number.of(2)


def stable(roots: list[Expression]) -> list[Expression]:
    """1 - tanh(u)**2 and 1/cosh(u)**2 as sech2(u), the slope of relu as that of a nan, too.

    roots: the value and its derivatives, which are read together.
    """
    return unordered([rewrite(rewrite(root, _differences), _reciprocals) for root in roots])


def unordered(roots: list[Expression]) -> list[Expression]:
    """where(u > 0, v, 0) as where(u <= 0, 0, v) beside relu(u): a nan is not above 0, and has the slope v."""
    rectified = [n.args[0] for n in order(roots) if is_call(n, "relu")]
    turned = {compare("gt", u, alg.zero): compare("le", u, alg.zero) for u in rectified}

    def rule(node: Expression) -> Expression:
        if not is_call(node, "where") or node.args[0] not in turned:
            return node
        condition, own, other = node.args
        return alg.where(turned[condition], other, own)

    return [rewrite(root, rule) for root in roots] if turned else roots


def _reciprocals(node: Expression) -> Expression:
    if node.op != "product":
        return node
    pairs = list(zip(node.args, node.data[1], strict=True))
    for k, (base, e) in enumerate(pairs):
        if is_call(base, "cosh") and isinstance(e, Number) and e.negative and e.integer in (-2, -4):
            pairs[k] = call("sech2", base.args, base.shape), Number.of(-e.integer // 2)
    return alg.product(pairs, node.data[0])


def _differences(node: Expression) -> Expression:
    if node.op != "sum" or node.data[1] == ZERO:
        return node
    coefficients, constant = node.data
    terms = list(zip(node.args, coefficients, strict=True))
    for place, (term, coefficient) in enumerate(terms):
        found = _complement(term) if coefficient == -constant else None
        if found is not None:
            rest = [*terms[:place], *terms[place + 1 :]]
            return alg.combine([*rest, (found, constant)])
    return node


def _complement(term: Expression) -> Expression | None:
    """1 - term, if the term is the square of a tanh; else None."""
    if term.op == "product" and term.data == (ONE, (TWO,)) and is_call(term.args[0], "tanh"):
        u = term.args[0].args[0]
        return call("sech2", [u], u.shape)
    return None


__all__ = ["stable", "unordered"]
