"""Factors that terms of a sum share, taken out of them: f*g*u + f*g*v + f*w is f*(g*(u + v) + w).

The gradient of a long formula is a sum over all paths from the value to the variable. Each term has the
slopes along its path for factors, so that terms share the factors of the piece that their paths share.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gradcli.formulas.algebra import algebra as alg
from gradcli.formulas.algebra.algebra import Exponent
from gradcli.formulas.algebra.exact_numbers import ONE, Number
from gradcli.formulas.algebra.expressions import Expression, call, is_call
from gradcli.formulas.simplify.shortest_form import operations

MOST = 3_000  # factors, of all terms together, that are looked through
SPLIT = 3  # operations that exp(u)*exp(v) has more than exp(u + v)
Powers = dict[Expression, Exponent]
Term = tuple[Number, Powers]


def outside(total: Expression) -> Expression:
    """A sum with the factors that its terms share taken out of them; other expressions as they are."""
    if total.op != "sum" or len(total.args) < 2:
        return total
    terms = [(c, _powers(t)) for c, t in alg.terms_of(total)]
    return total if sum(len(p) for _, p in terms) > MOST else _taken_out(terms)


def _powers(term: Expression) -> Powers:
    """The factors of a term with their powers; exp(u - 2*v) is exp(u)**1*exp(v)**-2."""
    powers = alg.powers_of(term)
    found: Powers = {b: e for b, e in powers if not (e is ONE and is_call(b, "exp"))}
    for base, e in powers:
        if base in found:
            continue
        split = {call("exp", [t], t.shape): c for c, t in alg.terms_of(base.args[0])}
        # Beside the power exp(u)**v the factor exp(u + w) stays whole: exp(u) has one exponent here.
        found |= {base: e} if split.keys() & found.keys() else split
    return found


def _product(powers: Powers, coefficient: Number = ONE, inner: Expression = alg.one) -> Expression:
    """The product of powers, a number and another factor, with one exponential."""
    exponent: list[tuple[Expression, Number]] = []
    pairs: list[tuple[Expression, Exponent]] = []
    for base, e in powers.items():
        if is_call(base, "exp") and isinstance(e, Number):
            exponent.append((base.args[0], e))
        else:
            pairs.append((base, e))
    if exponent:
        pairs.append((alg.function("exp", alg.combine(exponent)), ONE))
    return alg.product([*pairs, (inner, ONE)], coefficient)


# On an example: f*g*u + f*g*v + f*w. Taking f*g out of two terms saves the most operations; these become one
# term, f*g*(u + v), that shares f with the third: f*(g*(u + v) + w).
def _taken_out(terms: Sequence[Term]) -> Expression:
    """The sum of the terms, with shared factors taken out as long as that saves operations."""
    waiting = list(terms)
    while len(waiting) > 1:
        own, shared = _best(waiting)
        if not shared:
            break
        inner = _taken_out([(c, _divided(p, shared)) for c, p in own])
        coefficient, whole = alg.split(_product(shared, inner=inner))
        taken = {id(p) for _, p in own}
        place = next(k for k, (_, p) in enumerate(waiting) if id(p) in taken)
        rest = [t for t in waiting if id(t[1]) not in taken]
        waiting = [*rest[:place], (coefficient, _powers(whole)), *rest[place:]]
    return alg.combine((_product(p, c), ONE) for c, p in waiting)


def _best(terms: Sequence[Term]) -> tuple[Sequence[Term], Powers]:
    """(the terms, the factors that they share) of which taking out saves the most operations."""
    users: dict[tuple[Expression, bool], list[Term]] = {}
    for term in terms:
        for base, e in term[1].items():
            users.setdefault((base, isinstance(e, Number) and bool(e.negative)), []).append(term)
    found: tuple[Sequence[Term], Powers] = (terms, {})
    most = 0
    for own in {tuple(map(id, o)): o for o in users.values() if len(o) > 1}.values():
        shared = _shared([p for _, p in own])
        gain = _gain(shared, own, len(own) == len(terms))
        if gain > most:
            found, most = (own, shared), gain
    return found


def _shared(own: Sequence[Powers]) -> Powers:
    """The powers that all of these products have: x**2 of x**2 and x**3, 1/x of 1/x and 1/x**2."""
    first, *others = own
    found: Powers = {}
    for base, e in first.items():
        powers = [e, *(p[base] for p in others if base in p)]
        if len(powers) < len(own):
            continue
        if all(x is e or x == e for x in powers):
            found[base] = e
        elif numbers := _of_one_sign(powers):
            found[base] = (max if numbers[0].negative else min)(numbers, key=lambda n: n.value)
    return found


def _of_one_sign(powers: Iterable[Exponent]) -> list[Number]:
    """The powers, if they are exact numbers of one sign; else nothing."""
    numbers = [e for e in powers if isinstance(e, Number) and e.exact]
    same = len({bool(e.negative) for e in numbers}) == 1
    # Of sqrt(u) and u, sqrt(u) is taken; u is sqrt(u)*sqrt(u), which is longer.
    whole = len({e.value % 1 for e in numbers}) == 1
    return numbers if same and whole and len(numbers) == len([*powers]) else []


def _gain(shared: Powers, own: Sequence[Term], alone: bool) -> int:
    """How many operations are saved, about; alone: whether there are other terms.

    Variables alone are not taken out of some terms: 3*x**2 + 2*x + y reads better than x*(3*x + 2) + y.
    """
    if not alone and all(b.op == "name" for b in shared):
        return 0
    saved = sum(operations(b) + (e.whole != 1) + 1 for b, e in shared.items())
    exponential = [b for b in shared if is_call(b, "exp")]
    saved -= SPLIT * max(len(exponential) - 1, 0)
    found = (len(own) - 1) * saved
    if exponential:
        kept = sum(any(is_call(b, "exp") for b in _divided(p, shared)) for _, p in own)
        found -= SPLIT * kept
    return found


def _divided(powers: Powers, shared: Powers) -> Powers:
    """A product without what is taken out of it."""
    found = dict(powers)
    for base, e in shared.items():
        own = found.pop(base)
        if own is not e and isinstance(own, Number) and isinstance(e, Number):
            rest = own - e
            if rest.whole != 0:
                found[base] = rest
    return found


__all__ = ["outside"]
