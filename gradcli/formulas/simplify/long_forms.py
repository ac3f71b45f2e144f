"""Short forms of expressions of any length: shared factors leave their terms, then pieces are searched.

A search takes a time that grows faster than the expression, and ends without a result where that is long.
"""

from __future__ import annotations

from itertools import combinations

from gradcli.formulas.algebra import algebra as alg
from gradcli.formulas.algebra.assuming import current
from gradcli.formulas.algebra.exact_check import Check
from gradcli.formulas.algebra.exact_numbers import ONE, Number
from gradcli.formulas.algebra.expressions import Expression, is_call, order
from gradcli.formulas.algebra.rewriting import rewrite
from gradcli.formulas.simplify.scalar_forms import is_of_few, keeps_digits, shortest
from gradcli.formulas.simplify.shared_factors import outside
from gradcli.formulas.simplify.shortest_form import operations

LONG = 34  # operations of what is searched as a whole
WORTH = 2  # operations to be saved, for a form that nothing was heard of by the search for digits
MOST_PAIRS = 28  # of arguments of one function that are compared
MOST_PIECES = 8  # that are searched; the others stay


def short_form(expression: Expression) -> Expression:
    """The expression in the shortest form found."""
    taken = _outside(expression)
    if operations(taken) <= LONG or is_of_few(expression):
        best = shortest(expression)
        shorter = min(taken, _outside(best), key=operations)
        return shorter if operations(shorter) < operations(best) - WORTH else best
    best = _Pieces().shortened(taken)
    best = min(best, _outside(best), key=operations)
    if _are_related(best):
        best = min(best, shortest(expression), key=operations)
    # exp(u + v)/w**2 has lost its value where exp(u) and w overflow; a search of the whole may find another.
    return best if keeps_digits(best, expression) else shortest(expression)


def _are_related(expression: Expression) -> bool:
    """Whether functions in different pieces may be one, which only a search of the whole sees.

    exp(a*(b + c)) of one piece is exp(a*b + a*c) of another. In the derivatives of an option's price
    K*exp(-(log(S/K) - u)**2/v) is S*exp(-(log(S/K) + u)**2/v): powers of a logarithm's argument leave exp.
    """
    arguments: dict[str, list[Expression]] = {}
    for node in order([expression]):
        if node.op == "call" and len(node.args) == 1 and node.args[0].op in ("sum", "product"):
            arguments.setdefault(node.data[0], []).append(node.args[0])
    powers = arguments.get("exp", [])
    if len(powers) > 1 and any(is_call(n, "log") for power in powers for n in order([power])):
        return True
    signs = dict(current.get().signs)
    pairs = [pair for several in arguments.values() for pair in combinations(several, 2)]
    return any(
        a.shape == b.shape and a.weight > 3 < b.weight and Check(a, signs).accepts(b)
        for a, b in pairs[:MOST_PAIRS]
    )


def _outside(expression: Expression) -> Expression:
    """The expression with shared factors taken out of each of its sums, but in arguments of functions."""
    return rewrite(expression, outside, _is_call)


def _is_call(node: Expression) -> bool:
    return node.op == "call"


class _Pieces:
    """The pieces of one expression: sums inside of its products, and groups of terms of its sums."""

    def __init__(self) -> None:
        self.left = MOST_PIECES

    def shortened(self, expression: Expression) -> Expression:
        """The expression with its pieces in their shortest forms."""
        if operations(expression) <= LONG:
            return self._searched(expression)
        if expression.op == "product":
            pairs = alg.powers_of(expression)
            # What is below a line, or under a root, stands in the program as it is.
            made = [(self.shortened(b) if b.op == "sum" and e is ONE else b, e) for b, e in pairs]
            return alg.product(made, expression.data[0])
        return self._by_terms(expression) if expression.op == "sum" else expression

    def _searched(self, piece: Expression) -> Expression:
        self.left -= 1
        return shortest(piece) if self.left >= 0 else piece

    def _by_terms(self, total: Expression) -> Expression:
        """A sum whose short terms are searched together, as many as make no long sum."""
        made: list[tuple[Expression, Number]] = []
        group: list[tuple[Expression, Number]] = []
        for c, t in alg.terms_of(total):
            if operations(t) > LONG:
                made.append((self.shortened(t), c))
                continue
            if operations(alg.combine([*group, (t, c)])) > LONG:
                made.append((self._searched(alg.combine(group)), ONE))
                group = []
            group.append((t, c))
        if group:
            made.append((self._searched(alg.combine(group)), ONE))
        return alg.combine(made)


__all__ = ["short_form"]
