"""Rewrites for printed code that avoid cancellation.

A derivative in terms of the function's value reads well: 1 - tanh(x)**2. But if that value is close to 1,
the difference has no digits left. Code is meant to run, so it gets the stable form.
"""

from __future__ import annotations

from gradcli.formulas.algebra import algebra as alg
from gradcli.formulas.algebra.exact_numbers import ONE, ZERO, Number
from gradcli.formulas.algebra.expressions import Expression, call, is_call
from gradcli.formulas.algebra.rewriting import rewrite

TWO = Number.of(2)


def stable(root: Expression) -> Expression:
    """1 - tanh(u)**2 and 1/cosh(u)**2 as sech2(u)."""
    return rewrite(rewrite(root, _differences), _reciprocals)


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


__all__ = ["stable"]
