"""Derivatives of formulas of numbers, by the chain rule over what a formula is made of.

A gradient is traced and lifted once; to trace it again for each order takes most of the time of a high order.
What is differentiated here is a formula already: sums, products of powers, and functions of one operand. The
slopes of functions and powers come from their VJP rules, each traced once. What was found of a part is kept,
for the next order is made of the same parts.
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
_OPERANDS = ("_u", "_v")


class NumberSlopes:
    """The derivatives of expressions by one variable, a number.

    variable: by which. traced: the derivative of a function by one of its operands, as the tape has it.
    """

    def __init__(
        self, variable: Expression, traced: Callable[[Expression, Expression], Expression]
    ) -> None:
        self.variable, self.traced = variable, traced
        self.operands = [name(word, (), k) for k, word in enumerate(_OPERANDS)]
        self._rules: dict[tuple[str, int], Expression] = {}
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
        return alg.multiply(self._rule(node.data[0], 0, own), slope)

    def _of_product(self, node: Expression) -> Expression:
        coefficient, exponents = node.data
        pairs = list(zip(node.args, exponents, strict=True))
        terms: list[tuple[Expression, Number]] = []
        for k, (base, e) in enumerate(pairs):
            others = [*pairs[:k], *pairs[k + 1 :]]
            if isinstance(e, Number):
                if (slope := self._found[base]) is not alg.zero:
                    factors = [*others, (base, e + -ONE), (slope, ONE)]
                    terms.append((alg.product(factors, coefficient), e))
                continue
            for place, part in enumerate((base, e)):
                if (slope := self._found[part]) is not alg.zero:
                    factors = [*others, (self._rule("", place, base, e), ONE), (slope, ONE)]
                    terms.append((alg.product(factors, coefficient), ONE))
        return alg.combine(terms)

    def _rule(self, word: str, place: int, *own: Expression) -> Expression:
        """The slope of a function, or of the power u**v for "", by an operand; own: its operands."""
        operands = self.operands[: len(own)]
        if (word, place) not in self._rules:
            whole = call(word, operands, ()) if word else alg.power(*operands)
            self._rules[word, place] = self.traced(whole, operands[place])
        given = dict(zip(operands, own, strict=True))
        return rewrite(self._rules[word, place], lambda node: given.get(node, node))


__all__ = ["NumberSlopes"]
