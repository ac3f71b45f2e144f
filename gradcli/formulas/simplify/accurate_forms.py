"""Rewrites that avoid cancellation, and make a text no longer.

exp(x) - 1 has no digits left where x is small, and expm1(x) has all. Texts get this form where that gains
digits.
"""

from __future__ import annotations

from gradcli.formulas.algebra import algebra as alg
from gradcli.formulas.algebra.exact_check import is_leaf
from gradcli.formulas.algebra.exact_numbers import ONE, Number
from gradcli.formulas.algebra.expressions import Expression, is_call
from gradcli.formulas.algebra.rewriting import rewrite

ACCURATE = ("expm1", "log1p", "erfc")  # what `accurate` writes


def accurate(root: Expression) -> Expression:
    """exp(u) - 1 as expm1(u), log(1 + u) as log1p(u), 1 - erf(u) as erfc(u), and so on.

    Calls that are not looked into, as logaddexp(x, log(1 + x)), stay: a check takes each for a variable.
    """
    return rewrite(root, _accurate, is_leaf)


def _accurate(node: Expression) -> Expression:
    if is_call(node, "log") and node.args[0].op == "sum" and node.args[0].data[1] == ONE:
        return alg.function("log1p", alg.subtract(node.args[0], alg.one))
    if node.op != "sum" or len(node.args) > 1:
        return node
    (term,), ((coefficient,), constant) = node.args, node.data
    if coefficient == -constant and is_call(term, "exp"):
        return alg.scale(coefficient, alg.function("expm1", *term.args))
    if coefficient == -constant and is_call(term, "erf"):
        return alg.scale(constant, alg.function("erfc", *term.args))
    square = term.op == "product" and term.data == (ONE, (Number.of(2),))
    # 1 - tanh(u)**2 reads well, and stays where u has variables
    fixed = square and term.position == -1 and is_call(term.args[0], "tanh")
    if coefficient == -constant and fixed:
        below = alg.function("cosh", *term.args[0].args)
        return alg.product([(below, Number.of(-2))], constant)
    # 2*sigmoid(u) - 1 is tanh(u/2)
    if coefficient == constant * Number.of(-2) and is_call(term, "sigmoid"):
        half = alg.function("tanh", alg.scale(alg.HALF, term.args[0]))
        return alg.scale(-constant, half)
    return node


__all__ = ["ACCURATE", "accurate"]
