"""Derivatives of formulas of one number, by the chain rule over what the formula is made of.

A gradient is traced and lifted once; to trace it again for each order takes most of the time of a high order. What
is differentiated here is a formula already: sums, products with constant powers, and functions of one operand. The
slope of each function comes from its VJP rule, traced once. What was found of a part is kept, for the next order is
made of the same parts.
"""

from __future__ import annotations

from collections.abc import Callable

from gradcli.formulas.algebra import algebra as alg
from gradcli.formulas.algebra.exact_check import is_leaf
from gradcli.formulas.algebra.exact_numbers import ONE, Number
from gradcli.formulas.algebra.expressions import Expression, call, name, order
from gradcli.formulas.algebra.rewriting import rewrite

# Their slopes jump, or have a value at single points that a rule decides: the tape says which.
_BENT = frozenset(("abs", "sign"))
_OPERAND = "_u"


class NumberSlopes:
    """The derivatives of expressions by one variable, a number.

    variable: by which. traced: the derivative of a function of one operand by it, as the tape has it.
    """

    def __init__(
        self, variable: Expression, traced: Callable[[Expression, Expression], Expression]
    ) -> None:
        self.variable, self.traced = variable, traced
        self.operand = name(_OPERAND, (), 0)
        self._rules: dict[str, Expression] = {}
        self._found: dict[Expression, Expression] = {variable: alg.one}

    def of(self, expression: Expression) -> Expression | None:
        """The derivative; None where a part has no rule here, and has to be traced."""
        found = self._found
        for node in order([expression], found.__contains__):
            if node not in found:
                made = self._made(node)
                if made is None:
                    return None
                found[node] = made
        return found[expression]

    def _made(self, node: Expression) -> Expression | None:
        found = self._found
        if node.op in ("number", "name"):
            return alg.zero
        if node.op == "sum":
            return alg.combine((found[t], c) for t, c in zip(node.args, node.data[0], strict=True))
        if node.op == "product":
            return self._of_product(node)
        if node.op != "call" or len(node.args) != 1 or is_leaf(node) or node.data[0] in _BENT:
            return None
        (own,) = node.args
        slope = found[own]
        if slope is alg.zero:
            return slope
        return alg.multiply(self._rule(node.data[0], own), slope)

    def _of_product(self, node: Expression) -> Expression | None:
        coefficient, exponents = node.data
        pairs = list(zip(node.args, exponents, strict=True))
        terms = []
        for k, (base, e) in enumerate(pairs):
            if not isinstance(e, Number):  # u**v
                return None
            if (slope := self._found[base]) is not alg.zero:
                rest = [*pairs[:k], (base, e + -ONE), *pairs[k + 1 :], (slope, ONE)]
                terms.append((alg.product(rest, coefficient), e))
        return alg.combine(terms)

    def _rule(self, word: str, own: Expression) -> Expression:
        """The slope of a function at its operand."""
        u = self.operand
        if word not in self._rules:
            self._rules[word] = self.traced(call(word, [u], ()), u)
        return rewrite(self._rules[word], lambda node: own if node is u else node)


__all__ = ["NumberSlopes"]
