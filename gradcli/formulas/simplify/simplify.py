"""Simplification of a lifted derivative: passes that shorten it, and the shape of its variable.

Each pass is a rule that `rewrite` applies to every subexpression; `RULES` lists them in order.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any
from weakref import WeakKeyDictionary

from gradcli.formulas.algebra import algebra as alg
from gradcli.formulas.algebra.algebra import powers_of, terms_of
from gradcli.formulas.algebra.array_algebra import (
    MOST_STACKED,
    at_unit,
    axes_of,
    chain,
    deviations,
    multiplied,
    place_of,
    stacked,
    transposed,
)
from gradcli.formulas.algebra.assuming import current
from gradcli.formulas.algebra.exact_check import is_leaf
from gradcli.formulas.algebra.exact_numbers import ONE, ZERO, Number
from gradcli.formulas.algebra.expressions import (
    Expression,
    call,
    is_call,
    is_number,
    make,
    order,
    sort_key,
    value_of,
)
from gradcli.formulas.algebra.rewriting import recalled, rewrite, rewrite_by_all
from gradcli.formulas.algebra.rules import Rules
from gradcli.formulas.lift.elementwise_rules import compare
from gradcli.formulas.simplify.index_elimination import gathered
from gradcli.formulas.simplify.indexed_factors import (
    has_products,
    has_reshape,
    is_outer,
    rearranged,
)
from gradcli.formulas.simplify.long_forms import short_form
from gradcli.formulas.simplify.pieces import in_pieces
from gradcli.formulas.simplify.scalar_forms import collected
from gradcli.formulas.simplify.taken_elements import taken

# Functions that refuse integer operands beside floating ones; functions that write into a copy of their
# first operand, at the indices that are their second.
FLOATING = frozenset(
    "matmul dot einsum mean cross linalg.cross linalg.solve linalg.solve_triangular cholesky_solve "
    "linalg.lu_solve conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d".split()
)
MOST_SUMMED = 6  # terms of a sum over constants that is written out
WRITING = frozenset("scatter scatter_add index_put index_add index_copy put masked_scatter".split())


def canonicalise(expression: Expression, variable: Expression, more: bool = False) -> Expression:
    """The derivative in canonical form, in the shape of its variable; more: see `simplify`."""
    return shaped(alg.zero if 0 in variable.shape else simplify(expression, more), variable)


def simplify(expression: Expression, more: bool = False) -> Expression:
    """The expression after all passes; it may have a smaller shape, to be broadcast.

    more: whether it is only a step to a derivative, whose like terms are collected without a search.
    """
    # Elements come after the passes, which see whole vectors, and before the search, which takes each
    # element for a variable of its own.
    expression = rewrite_by_all(expression, RULES)
    if more and not expression.shape and (made := collected(expression)) is not expression:
        return rewrite(made, _last)
    return in_pieces(rewrite(shortened(_by_elements(expression)), _last))


def shortened(expression: Expression) -> Expression:
    """The expression with every elementwise part of it in its shortest form."""
    assumed = current.get()
    # Forms are searched by identities of real functions, as log(u**2) = 2*log(abs(u)); complex ones have
    # cuts.
    if not (assumed.real and assumed.searching):
        return expression
    return _shortest(rewrite(expression, _with_short_operands))


def _with_short_operands(node: Expression) -> Expression:
    # The search takes a call such as sum(u) for a variable: its operands are searched by themselves here.
    if node.op != "call" or not is_leaf(node) or not any(a.parts for a in node.args):
        return node
    args = tuple(_shortest(a) for a in node.args)
    if all(a is b for a, b in zip(args, node.args, strict=True)):
        return node
    return recalled(node, args)


def _shortest(expression: Expression) -> Expression:
    return expression if alg.is_integral(expression) else short_form(expression)


def _last(node: Expression) -> Expression:
    """Absorb signs into matrix products, and make operands floating where a function needs it."""
    node = without_sign(node)
    if node.op != "call" or node.data[0] not in FLOATING | WRITING:
        return node
    # Indices must stay integers: floats index nothing.
    places = node.args[1:2] if node.data[0] in WRITING else ()
    given = [a if a in places else alg.floating(a) for a in node.args]
    if all(a is b for a, b in zip(given, node.args, strict=True)):
        return node
    return call(node.data[0], given, node.shape, node.data[1])


def _by_elements(own: Expression, row: bool = False) -> Expression:
    """What has a unit vector for each place of a dimension, as a stack: [x[1], x[0]] for x[0]*x[1].

    row: whether it is a row of such a stack, where one unit vector is enough.
    """
    n = own.shape[0] if own.shape else 0
    units = (place_of(node) for node in order([own]) if node.shape == (n,))
    places = {p % n for p in units if isinstance(p, int)}
    # Where some places have no unit vector, the vector is one of its size, and a stack would fix that size.
    if not 1 < n <= MOST_STACKED or len(places) < (1 if row else n):
        return own
    parts = (call("select", [own], own.shape[1:], [("", 0), ("", k)]) for k in range(n))
    return stacked([_by_elements(taken(part), True) for part in parts], own.shape)


def shaped(expression: Expression, variable: Expression) -> Expression:
    """The expression expanded to the shape of a variable, as `zeros_like(x)` or `expand_as`."""
    shape = variable.shape
    if expression.shape == shape:
        return expression
    # zeros_like says the shape and the dtype without naming a size.
    n = value_of(expression)
    if n is not None and n in (ZERO, ONE):
        return call("zeros_like" if n.whole == 0 else "ones_like", [variable], shape)
    if alg.is_bare(expression):
        return call("full_like", [variable, expression], shape)
    # pi*2 has no tensor in it, and a number of Python has no `expand_as`.
    if not any(_is_variable(node) for node in order([expression])):
        return alg.multiply(expression, call("ones_like", [variable], shape))
    return call("expand_as", [expression, variable], shape)


def _is_variable(node: Expression) -> bool:
    """Whether it is a name other than a constant such as `pi`."""
    return node.op == "name" and node.position != -1


# -- branches -------------------------------------------------------------------------------------
def _branches(node: Expression) -> Expression:
    """Move factors into the non-zero branch of a `where`; merge `where` terms of one condition."""
    if node.op == "product":
        return _into_branch(node)
    if is_call(node, "where"):
        return _rectified(node)
    if node.op != "sum":
        return node
    by: dict[Expression, list[tuple[Number, Expression]]] = {}
    rest: list[tuple[Expression, Number]] = []
    for c, t in terms_of(node):
        if is_call(t, "where"):
            by.setdefault(t.args[0], []).append((c, t))
        else:
            rest.append((t, c))
    # Only conditions that occur twice are worth it: where(c, a, b) + where(c, d, e) asks c once.
    if all(len(members) == 1 for members in by.values()):
        return node
    for condition, members in by.items():
        a, b = (alg.combine((t.args[k], c) for c, t in members) for k in (1, 2))
        rest.append((alg.where(condition, a, b), ONE))
    return alg.combine(rest)


def _rectified(node: Expression) -> Expression:
    """where(u > 0, v*relu(u), 0) is v*relu(u): what is 0 wherever the other branch, also 0, is taken.

    So is where(u == 0, v*relu(u), w*relu(u)) the branch w*relu(u).
    """
    condition, own, other = node.args
    for kept, left, words in ((own, other, ("gt", "ge")), (other, own, ("lt", "le", "eq"))):
        if is_number(left, 0) and kept.shape == node.shape and _vanishes(kept, condition, words):
            return kept
    both = other.shape == node.shape and all(_vanishes(v, condition, ("eq",)) for v in (own, other))
    return other if both else node


def _vanishes(own: Expression, condition: Expression, words: tuple[str, ...]) -> bool:
    """Whether it is 0 unless, for words of order, or if, for "eq", the condition holds.

    It has relu(u), maximum(u, 0) or minimum(-u, 0) for a factor, and the condition compares u with 0.
    """
    for base, e in powers_of(alg.split(own)[1]):
        if not _is_positive(e):
            continue
        u = base
        if is_call(base, "relu", "maximum", "minimum"):
            rest = [a for a in base.args if not is_number(a, 0)]
            if len(rest) != 1 or (len(base.args) == 1) != is_call(base, "relu"):
                continue
            u = alg.negate(rest[0]) if is_call(base, "minimum") else rest[0]
        elif words != ("eq",):
            continue
        if any(compare(word, u, alg.zero) is condition for word in words):
            return True
    return False


def _into_branch(node: Expression) -> Expression:
    pairs, coefficient = powers_of(node), node.data[0]
    found = [(b, e) for b, e in pairs if is_call(b, "where") and _is_positive(e)]
    found = [(b, e) for b, e in found if any(is_number(s, 0) for s in _sides(b))]
    if not found:
        return node
    branches, power = found[0]
    condition, sides = branches.args[0], _sides(branches)
    rest = [(b, e) for b, e in pairs if b is not branches]
    made = _branches(
        alg.where(condition, *(alg.product([(s, power), *rest], coefficient) for s in sides))
    )
    return made if branches.shape == node.shape or length(made) < length(node) else node


def _sides(branches: Expression) -> list[Expression]:
    """The two branches of `where`, without a cast around a number."""
    return [s.args[0] if is_call(s, "float") else s for s in branches.args[1:]]


def _is_positive(e: Any) -> bool:
    return isinstance(e, Number) and e.exact and not e.negative


# -- traces ---------------------------------------------------------------------------------------
def _traces(node: Expression) -> Expression:
    """A sum of traces that are equal: trace(A@B) is trace(B@A), and trace(B.T@A.T)."""
    if node.op == "sum" and any(is_call(b, "trace") for t in node.args for b, _ in powers_of(t)):
        # tr(A@B@C) has six equal forms with turns and transposes; sums of them cancel if all take the same
        # one.
        made = rewrite(node, _least_turn)
        return made if made.op != "sum" or len(made.args) < len(node.args) else node
    return node


def _turned_least(node: Expression, product: Expression) -> Expression:
    """Of the turns of a product in a trace the one whose factors come first."""
    factors = chain(product)
    turns = [factors[k:] + factors[:k] for k in range(len(factors))]
    turns += [[transposed(f) for f in turn[::-1]] for turn in turns]
    least = min(turns, key=lambda turn: [(is_call(f, "T"), sort_key(f)) for f in turn])
    return call("trace", [multiplied(least)], ())


_least_turn = Rules(("trace(A)", _turned_least))


# -- softmax --------------------------------------------------------------------------------------
def _softmaxes(node: Expression) -> Expression:
    """exp(u)/sum(exp(u)) as softmax(u); the sum cancels where the exponentials are factors, A@exp(u) too."""
    if node.op != "product":
        return node
    for below, e in powers_of(node):
        # Only a sum below the line makes a softmax: exp(u)*sum(exp(u)) is none.
        over = isinstance(e, Number) and e.integer is not None and e.negative
        if not over or not is_call(below, "sum") or not is_call(below.args[0], "exp"):
            continue
        own, options = below.args[0], [v for _, v in below.data[1]]
        # A sum that drops its dimension lines up with other elements when it is broadcast, so softmax would
        # be wrong.
        if len(own.shape) != 1 and not (options[1:] and isinstance(options[0], int)):
            continue
        soft = call("softmax", own.args, own.shape, [("", options[0] if options else 0)])
        for base, _ in powers_of(node):
            made = (
                _replaced(node, base, own, alg.multiply(soft, below)) if base is not below else node
            )
            if dict(powers_of(made)).get(below) != dict(powers_of(node)).get(below):
                node = made
    return node


def _replaced(
    node: Expression, place: Expression, own: Expression, other: Expression
) -> Expression:
    """A product with a part of one of its factors replaced."""
    changed = rewrite(place, lambda n: other if n is own else n)
    return alg.mapped(node, lambda b: changed if b is place else b)


# -- moments and constants -------------------------------------------------------------------------
def _variance(node: Expression, squares: Expression) -> Expression | None:
    """mean((x - mean(x))**2) is var(x), if both means are over the same axes."""
    if squares.op != "product" or squares.data != (ONE, (Number.of(2),)):
        return None
    found = deviations(squares.args[0])
    dim = node.data[1][0][1] if node.data[1] else None
    if found is None or found[1] != axes_of(dim, len(squares.shape)):
        return None
    options: list[tuple[str, Any]] = [("correction", 0)]
    if dim is not None:
        options = [("", dim), *options, *([("keepdim", True)] if node.data[1][1:] else [])]
    return call("var", [found[0]], node.shape, options)


_mean = Rules(("mean(a)", _variance))


def _moments(node: Expression) -> Expression:
    """Means of squares as variances; (x - mean(x))/sqrt(var(x) + eps) is layer_norm(x)."""
    if node.op != "product":
        return _mean(node)
    pairs = powers_of(node)
    for base, e in pairs:
        found = deviations(base) if e.whole == 1 else None
        if found is None:
            continue
        own, axes = found
        sizes = own.shape[-len(axes) :]
        # layer_norm normalises over the last dimensions, and over no others.
        if axes != tuple(range(len(own.shape)))[-len(axes) :]:
            continue
        for below, power in pairs:
            eps = _spread_of(below, own, axes) if power == Number.of(Fraction(-1, 2)) else None
            if eps is not None:
                options = [("", sizes), *([] if eps == 1e-5 else [("eps", eps)])]
                made = call("layer_norm", [own], own.shape, options)
                rest = [p for p in pairs if p[0] is not base and p[0] is not below]
                return alg.product([*rest, (made, ONE)], node.data[0])
    return node


def _spread_of(below: Expression, own: Expression, axes: tuple[int, ...]) -> float | None:
    """eps if the expression is `var(own, axes, correction=0) + eps`, else None."""
    if below.op != "sum" or below.data[0] != (ONE,) or not is_call(below.args[0], "var"):
        return None
    (inner,), given = below.args[0].args, dict(below.args[0].data[1])
    same = given.get("correction") == 0 and axes_of(given.get(""), len(own.shape)) == axes
    return float(below.data[1].value) if same and inner is own else None


def _averages(node: Expression) -> Expression:
    """sum(x)/n is mean(x) for n elements, if the program itself uses means."""
    if node.op != "product" or not current.get().averages or not node.data[0].exact:
        return node
    coefficient = node.data[0]
    for base, e in powers_of(node):
        if is_call(base, "sum") and not base.data[1] and e.whole == 1:
            own = base.args[0]
            size = math.prod(own.shape)
            # sum(x)/6 of three elements is mean(x)/2; sum(x)/2 is no mean of theirs.
            if size > 1 and coefficient.value.denominator % size == 0:
                rest = [p for p in powers_of(node) if p[0] is not base]
                mean = call("mean", [alg.floating(own)], ())
                return alg.product([*rest, (mean, ONE)], coefficient * Number.of(size))
    return node


def _units(node: Expression) -> Expression:
    """What a unit vector is multiplied with as its one element that counts.

    A sum is multiplied out where that is shorter.
    """
    if node.op != "product" or len(node.shape) != 1:
        return node
    if (found := at_unit(node)) is not None:
        return alg.multiply(*found)
    pairs = powers_of(node)
    for own, e in pairs:
        # (u + e)*v, with a unit vector e, is u*v + v[i]*e: one element is computed in place of a vector.
        if e.whole == 1 and own.op == "sum" and any(at_unit(t) for _, t in terms_of(own)):
            rest = alg.product([p for p in pairs if p[0] is not own], node.data[0])
            spread = [(alg.multiply(t, rest), c) for c, t in terms_of(own)]
            made = alg.combine((alg.multiply(*(at_unit(t) or (t,))), c) for t, c in spread)
            if length(made) < length(node):
                return made
    return node


# -- sums over constants --------------------------------------------------------------------------
def _few(node: Expression) -> Expression:
    """A sum over a few numbers as its terms: sum(x**tensor([1, 2, 3])) is x + x**2 + x**3."""
    if not is_call(node, "sum") or node.data[1]:
        return node
    (own,) = node.args
    if len(own.shape) != 1 or not 1 < own.shape[0] <= MOST_SUMMED:
        return node
    parts = order([own])
    # A variable of that shape may have any size; only constants fix how many terms there are.
    if any(n.shape and (n.op == "name" or n.shape != own.shape) for n in parts):
        return node
    if not any(n.op == "array" for n in parts):
        return node
    rows = [taken(call("select", [own], (), [("", 0), ("", k)])) for k in range(own.shape[0])]
    made = alg.combine((row, ONE) for row in rows)
    # Written out, a sum may be cheaper to read or a row of noise: at most twice the length is accepted.
    if any(n.shape for n in order([made])) or length(made) > 2 * length(node):
        return node
    return made


# -- transposes and association -------------------------------------------------------------------
def transposes(node: Expression) -> Expression:
    """A.T@B.T as (B@A).T, and a sum of transposes as the transpose of a sum."""
    if node.op == "sum" and len(node.shape) == 2 and len(node.args) > 1:
        turned = all(is_call(alg.scalars_out(t)[1], "T") for t in node.args)
        if turned and node.data[1].whole == 0:
            return call("T", [alg.mapped(node, transposed)], node.shape)
        return node
    return _turned(node) if len(node.shape) == 2 else node


def _fewer_turned(node: Expression, a: Expression, b: Expression) -> Expression | None:
    """(B@A).T for A.T@B.T, where more factors are turned than not."""
    factors = chain(node)
    flipped = sum(is_call(f, "T") for f in factors)
    straight = sum(not is_call(f, "T") and transposed(f) is not f for f in factors)
    if 1 + straight < flipped and all(len(f.shape) == 2 for f in factors):
        inner = multiplied([transposed(f) for f in factors[::-1]])
        return call("T", [inner], node.shape)
    return None


_turned = Rules(("a @ b", _fewer_turned))


def _leftmost(node: Expression, a: Expression, b: Expression, c: Expression) -> Expression | None:
    """(A@B)@C, if that takes no more multiplications."""
    # The multiplications of both orders: (A@B)@C takes n*k*m + n*m*p, A@(B@C) takes k*m*p + n*k*p.
    n, k, m, p = *a.shape, *c.shape
    if n * k * m + n * m * p > k * m * p + n * k * p:
        return None
    left = associated(call("matmul", [a, b], (n, m)))
    return call("matmul", [left, c], node.shape)


associated = Rules(("A @ (B @ C)", _leftmost))


# -- signs ----------------------------------------------------------------------------------------
def without_sign(node: Expression) -> Expression:
    """-2*(x - y) as 2*(y - x), -(x - y)@A as (y - x)@A."""
    if node.op != "product" or not node.data[0].negative:
        return node
    pairs, coefficient = powers_of(node), node.data[0]
    for place, (base, e) in enumerate(pairs):
        # (x - y)**2 has no sign to give, and sqrt(x - y) would turn into the root of a negative number.
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
        positive = [n for n in numbers if not n.negative and n.whole != 0]
        negative = [n for n in numbers if n.negative]
        # -(x - y) is y - x, one sign less; -(x + y) stays, for -x - y has one more.
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


# -- the passes ------------------------------------------------------------------------------------
_lengths: WeakKeyDictionary[Expression, int] = WeakKeyDictionary()


def length(expression: Expression) -> int:
    """The number of characters of the printed expression; an estimate for a large one."""
    from gradcli.formulas.algebra.expression_text import to_text

    # To print a derivative of thousands of parts takes longer than to judge by its size.
    if expression.weight >= 2000:
        return expression.weight * 4
    found = _lengths.get(expression)
    if found is None:
        found = _lengths[expression] = len(to_text(expression))
    return found


_products = gathered(length)
_indices = rearranged(length, has_reshape)
_outer = rearranged(length, is_outer)
# Passes are tried in this order: one that makes something recognisable (softmax, var, layer_norm) comes
# before one that would take it apart into einsum and sums.
_summed = rearranged(length, has_products)  # after the moments, which are shorter
RULES = (
    _few,
    _indices,
    _branches,
    _outer,
    _softmaxes,
    _moments,
    _summed,
    _products,
    _units,
    _averages,
    _traces,
    transposes,
    associated,
)


__all__ = ["canonicalise", "is_number", "make", "shaped", "simplify"]
