"""Rewrites that avoid cancellation, and make a text no longer.

exp(x) - 1 has no digits left where x is small, and expm1(x) has all. Texts get this form where that gains
digits.
"""

from __future__ import annotations

from collections.abc import Callable

from gradcli.formulas.algebra import algebra as alg
from gradcli.formulas.algebra.algebra import HALF
from gradcli.formulas.algebra.exact_check import is_leaf
from gradcli.formulas.algebra.exact_numbers import ONE, ZERO, Number
from gradcli.formulas.algebra.expressions import Expression, is_call, order
from gradcli.formulas.algebra.rewriting import rewrite

CANCELLING = frozenset("exp log erf tanh sigmoid".split())  # beside numbers
BOUNDED = frozenset("sinh expm1".split())  # in quotients
ACCURATE = ("expm1", "log1p", "erfc")  # what `accurate` writes


def accurate(root: Expression) -> Expression:
    """exp(u) - 1 as expm1(u), log(1 + u) as log1p(u), 1 - erf(u) as erfc(u), and so on.

    Beside other terms as well: `exp(-x) + 1 - tanh(x)**2` has no digits left at 40, as its ones cancel.
    Calls that are not looked into, as logaddexp(x, log(1 + x)), stay: a check takes each for a variable.
    """
    return rewrite(root, _accurate, is_leaf) if _may_change(root) else root


def _may_change(root: Expression) -> bool:
    """Whether it has a function and, for most of them, a number beside it in a sum."""
    nodes = order([root], is_leaf)
    words = {n.data[0] for n in nodes if n.op == "call"}
    beside = any(n.op == "sum" and n.data[1] != ZERO for n in nodes)
    # A look at the functions saves a pass over every part.
    return bool(words & BOUNDED) or (beside and bool(words & CANCELLING))


def _accurate(node: Expression) -> Expression:
    if is_call(node, "log") and node.args[0].op == "sum" and node.args[0].data[1] == ONE:
        return alg.function("log1p", alg.subtract(node.args[0], alg.one))
    if node.op == "product":
        return _bounded(node)
    if node.op != "sum" or node.data[1] == ZERO:
        return node
    coefficients, constant = node.data
    terms = list(zip(node.args, coefficients, strict=True))
    # One number can meet one term alone: the sum is made again, and what is left of the number is tried
    # again.
    for place, (term, coefficient) in enumerate(terms):
        found = _joined(term, coefficient, constant, len(terms) == 1)
        if found is not None:
            return alg.combine([*terms[:place], *terms[place + 1 :], *found])
    return node


def _bounded(node: Expression) -> Expression:
    """sinh(u)/cosh(u)**3 as tanh(u)/cosh(u)**2, exp(u)/expm1(u) as -1/expm1(-u).

    These have a value where both of the others overflow.
    """
    pairs = dict(zip(node.args, node.data[1], strict=True))
    coefficient = node.data[0]
    for base, e in list(pairs.items()):
        if is_call(base, "exp") and e == ONE:
            own = alg.function("expm1", *base.args)
            if pairs.get(own) == -ONE:
                del pairs[base], pairs[own]
                pairs[alg.function("expm1", alg.negate(base.args[0]))] = -ONE
                coefficient = -coefficient
            continue
        # Both overflow at 711, and inf/inf is not a number; tanh is 1 there.
        below = alg.function("cosh", *base.args) if is_call(base, "sinh") else base
        a, b = (x.integer if isinstance(x, Number) else None for x in (e, pairs.get(below)))
        if below is not base and a is not None and b is not None and a > 0 > b:
            shared = min(a, -b)
            pairs[base], pairs[below] = Number.of(a - shared), Number.of(b + shared)
            pairs[alg.function("tanh", *base.args)] = Number.of(shared)
    return alg.product(list(pairs.items()), coefficient)


def _joined(
    term: Expression, a: Number, constant: Number, alone: bool
) -> list[tuple[Expression, Number]] | None:
    """The terms of `a*term + constant` without the difference of two numbers; None if there is none.

    alone: whether there is no other term.
    """
    if term.op == "call":
        ratio, form = JOINED.get(term.data[0], (ONE, None))
        if form is None or constant != a * ratio:
            return None
        return form(term.args[0], a, constant)
    square = term.op == "product" and term.data == (ONE, (Number.of(2),))
    # 1 - tanh(u)**2 reads well, and stays where u has variables and there is nothing beside it
    if a == -constant and square and is_call(term.args[0], "tanh"):
        if alone and term.position != -1:
            return None
        return [
            (alg.product([(alg.function("cosh", *term.args[0].args), Number.of(-2))]), constant)
        ]
    return _grown(term, a, constant)


# a*f(u) + c for a function f, where c/a is this number: exp(u) - 1, 1 - erf(u), 2*sigmoid(u) - 1.
JOINED: dict[str, tuple[Number, Callable[..., list[tuple[Expression, Number]]]]]
JOINED = {
    "exp": (-ONE, lambda u, a, c: [(alg.function("expm1", u), a)]),
    "erf": (-ONE, lambda u, a, c: [(alg.function("erfc", u), c)]),
    "sigmoid": (-HALF, lambda u, a, c: [(alg.function("tanh", alg.scale(HALF, u)), -c)]),
}


def _grown(term: Expression, a: Number, constant: Number) -> list[tuple[Expression, Number]] | None:
    """exp(u)*(v + 1) - 1 as expm1(u) + v*exp(u)."""
    if term.op != "product" or len(term.args) != 2 or term.data[1] != (ONE, ONE):
        return None
    for whole, grown in (term.args, term.args[::-1]):
        if is_call(grown, "exp") and whole.op == "sum" and whole.data[1] * a == -constant:
            rest = alg.combine([*zip(whole.args, whole.data[0], strict=True)])
            return [(alg.function("expm1", *grown.args), -constant), (alg.multiply(rest, grown), a)]
    return None


def steady(root: Expression) -> Expression:
    """1/(1 + exp(u)) as sigmoid(-u), whose slopes overflow nowhere; exp(u)/(1 + exp(u))**2 does."""
    return rewrite(root, _steady, is_leaf)


def _steady(node: Expression) -> Expression:
    if node.op != "product":
        return node
    pairs, changed = list(zip(node.args, node.data[1], strict=True)), False
    for k, (base, e) in enumerate(pairs):
        plain = base.op == "sum" and base.data == ((ONE,), ONE) and is_call(base.args[0], "exp")
        if plain and isinstance(e, Number) and e.integer is not None and e.negative:
            turned = alg.negate(base.args[0].args[0])
            pairs[k], changed = (alg.function("sigmoid", turned), -e), True
    return alg.product(pairs, node.data[0]) if changed else node


__all__ = ["ACCURATE", "accurate", "steady"]
