"""Identities of functions: sines and cosines of one angle, quotients that have a name, sigmoids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.symbolic import algebra as alg
from gradcli.symbolic.common_denominators import MOST_SHARED, keeps_shape, powers_of, terms_of
from gradcli.symbolic.exact_numbers import ONE, ZERO, Number
from gradcli.symbolic.expressions import Expression, call, is_call, number, order
from gradcli.symbolic.rewriting import rewrite

TWO = Number.of(2)


def named_quotients(node: Expression) -> Expression:
    """exp(u)/sum(exp(u)) as softmax(u), sinh(u)/cosh(u) as tanh(u), sin(u)/cos(u) as tan(u)."""
    if node.op != "product":
        return node
    coefficient, exponents = node.data
    pairs = dict(zip(node.args, exponents, strict=True))
    changed = False
    for below, e in list(pairs.items()):
        if not isinstance(e, Number) or e.integer is None or not e.negative:
            continue
        if is_call(below, "cosh", "cos"):
            above, word = ("sinh", "tanh") if below.data[0] == "cosh" else ("sin", "tan")
            over = call(above, below.args, below.shape)
            n = pairs.get(over)
            if isinstance(n, Number) and n == -e:
                del pairs[below], pairs[over]
                quotient = alg.function(word, *below.args)
                pairs[quotient] = pairs.get(quotient, ZERO) + n
                changed = True
        elif is_call(below, "sum") and is_call(below.args[0], "exp"):
            changed |= _softmax(pairs, below)
    return alg.product(pairs.items(), coefficient) if changed else node


def _softmax(pairs: dict[Expression, Any], total: Expression) -> bool:
    """Replace each exp(u)/total by softmax(u), in place; whether there was one."""
    over = total.args[0]
    u = over.args[0]
    options = [v for _, v in total.data[1]]
    if len(u.shape) == 1 and not options:
        dim = 0
    elif len(options) == 2 and isinstance(options[0], int) and options[1]:
        dim = options[0]
    else:
        return False
    made = call("softmax", [u], u.shape, [("", dim)])
    changed = False
    for base, e in list(pairs.items()):
        if e != ONE:
            continue
        found = made if base is over else _linear(base, over, made) if not options else None
        if found is None:
            continue
        changed = True
        del pairs[base]
        pairs[found] = pairs.get(found, ZERO) + ONE
        pairs[total] = pairs[total] + ONE
        if pairs[total] == ZERO:
            del pairs[total]
            break
    return changed


def _linear(own: Expression, part: Expression, other: Expression) -> Expression | None:
    """The expression, linear in `part`, with `other` in its place; None if `part` is no factor."""
    if own is part:
        return other
    if own.op == "product":
        for k, (base, e) in enumerate(zip(own.args, own.data[1], strict=True)):
            found = _linear(base, part, other) if e == ONE else None
            if found is not None:
                rest = zip(own.args, own.data[1], strict=True)
                pairs = [(found if i == k else b, x) for i, (b, x) in enumerate(rest)]
                return alg.product(pairs, own.data[0])
        return None
    if is_call(own, "matmul", "outer", "T", "dot", "sum"):
        for k, arg in enumerate(own.args):
            found = _linear(arg, part, other)
            if found is not None:
                args = [*own.args[:k], found, *own.args[k + 1 :]]
                return call(own.data[0], args, own.shape, own.data[1])
    return None


def angles(node: Expression) -> Expression:
    """2*sin(u)*cos(u) is sin(2*u); cos(u)**2 + sin(u)**2 is 1, cos(u)**2 - sin(u)**2 is cos(2*u)."""
    if node.op == "product":
        coefficient, exponents = node.data
        pairs = dict(zip(node.args, exponents, strict=True))
        for base in node.args:
            other = alg.function("cos", *base.args) if is_call(base, "sin") else None
            if other is None or pairs[base] != ONE or pairs.get(other) != ONE:
                continue
            half = Number(coefficient.value / 2) if coefficient.exact else None
            if half is not None and half.integer is not None:
                del pairs[base], pairs[other]
                twice = alg.function("sin", alg.scale(Number.of(2), base.args[0]))
                return alg.product([*pairs.items(), (twice, ONE)], half)
        return node
    return _squares(node) if node.op == "sum" and len(node.args) <= MOST_SHARED else node


def _squares(node: Expression) -> Expression:
    terms = terms_of(node)
    for k, (c, t) in enumerate(terms):
        for base, e in powers_of(t):
            if not is_call(base, "cos") or e != TWO:
                continue
            rest = alg.product([(t, ONE), (base, -TWO)])
            square = alg.product([(rest, ONE), (alg.function("sin", *base.args), TWO)])
            for i, (d, other) in enumerate(terms):
                if other is square and d in (c, -c):
                    left = [(x, n) for j, (n, x) in enumerate(terms) if j not in (i, k)]
                    made = rest
                    if d == -c:
                        twice = alg.scale(TWO, base.args[0])
                        made = alg.multiply(rest, alg.function("cos", twice))
                    found = alg.combine([(made, c), *left])
                    return angles(found) if keeps_shape(found, node) else node
    return node


def sigmoids(node: Expression) -> Expression:
    """Quotients of exponentials as `sigmoid`."""
    if node.op != "product":
        return node
    coefficient, exponents = node.data
    found = _logistic(list(zip(node.args, exponents, strict=True)))
    return node if found is None else alg.product(found, coefficient)


def _logistic(pairs: list[tuple[Expression, Any]]) -> list[tuple[Expression, Any]] | None:
    """exp(u)**a/(1 + exp(u))**k as sigmoid(u)**a*sigmoid(-u)**(k - a), which cannot overflow."""
    for base, e in pairs:
        if not isinstance(e, Number) or e.integer is None or e.integer >= 0 or base.op != "sum":
            continue
        if base.data != ((ONE,), ONE) or not is_call(base.args[0], "exp"):
            continue
        u = base.args[0].args[0]
        a, k = 0, -e.integer
        rest = []
        for b, exponent in pairs:
            if b is base:
                continue
            times = _multiple(b.args[0], u) if is_call(b, "exp") and exponent == ONE else None
            if times is None:
                rest.append((b, exponent))
            else:
                a = times
        if not 0 <= a <= k:
            continue
        up, down = alg.function("sigmoid", u), alg.function("sigmoid", alg.negate(u))
        return [(up, Number.of(a)), (down, Number.of(k - a)), *rest]
    return None


def one_sigmoid(root: Expression, rules: Callable[[Expression], Expression]) -> Expression | None:
    """The expression with sigmoid(-u) and exp(u) written in sigmoid(u); None if there are none."""
    nodes = order([root])
    inner = {_upright(n.args[0]) for n in nodes if is_call(n, "sigmoid")}
    known: dict[Expression, Expression] = {}
    for u in inner:
        s, down = alg.function("sigmoid", u), alg.negate(u)
        rest = alg.subtract(alg.one, s)
        known[alg.function("sigmoid", down)] = rest
        for n in nodes:
            times = _multiple(n.args[0], u) if is_call(n, "exp") else None
            if times is not None:
                known[n] = alg.power(alg.divide(s, rest), number(times))
    if not any(n in known for n in nodes):
        return None
    return rules(rewrite(root, lambda node: known.get(node, node)))


def _upright(u: Expression) -> Expression:
    """u or -u, whichever has no leading minus sign."""
    return alg.negate(u) if alg.leads_negative(u) else u


def _multiple(v: Expression, u: Expression) -> int | None:
    """The integer n with v = n*u, else None."""
    c, rest = alg.split(v)
    d, other = alg.split(u)
    if rest is not other or not c.exact or not d.exact:
        return None
    return Number(c.value / d.value).integer


__all__ = ["angles", "named_quotients", "one_sigmoid", "sigmoids"]
