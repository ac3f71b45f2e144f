"""An expression that is linear in a variable, as a sum of products of indexed factors.

The matrix or tensor of the linear map is read off from these terms. An operator says how it contracts by an
einsum-like equation, and one that moves elements along a dimension is the matrix that it makes of the
identity; elementwise factors share the labels of what they multiply.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import count
from typing import Any, NamedTuple

from gradcli.formulas.algebra import algebra as alg
from gradcli.formulas.algebra.array_algebra import (
    axes_of,
    eye,
    inverse,
    reshaped,
    transposed,
    unit,
    unwrapped,
)
from gradcli.formulas.algebra.exact_numbers import ONE, ZERO
from gradcli.formulas.algebra.expressions import (
    Expression,
    call,
    is_call,
    is_number,
    name,
    number,
    order,
)
from gradcli.formulas.algebra.spelling import NoExpression
from gradcli.formulas.simplify.index_elimination import (
    LETTERS,
    Factor,
    Labels,
    Product,
    Shape,
    diagonal_of,
    rows_of_eye,
    written,
)

_REARRANGING = frozenset("reshape permute T matmul dot bmm".split())
MOST_WEIGHT = 200  # of an expression whose reshapes are taken apart
MOST_TERMS = 16  # terms of a node before they are written as one array

Dims = tuple[Labels, ...]


class Term(NamedTuple):
    """number * product of factors; out: the labels of each dimension of the node.

    A dimension along which all elements are equal has none, one that merges several has them all.
    """

    number: Expression
    factors: tuple[Factor, ...]
    out: Dims


# How a matrix is read off. The gradient of sum(u*f(x)) is linear in u, so each of its terms is a product of
# arrays, one of which is u. Every dimension gets a label, as in einsum, and u's labels become the rows of
# the Jacobian. For f(x) = A@x the gradient is A.T@u: one term with the factor A, labelled (u's, x's), and
# without sums; so the Jacobian is A. Dimensions of size 1, or along which all elements are equal, get no
# label: nothing has to be multiplied or summed there.
class IndexedFactors:
    """The terms of expressions that are linear in `variable`. Raises NoExpression where one is not known."""

    def __init__(self, variable: Expression) -> None:
        self.variable = variable
        self.fresh = count(len(variable.shape))
        # The labels of u come first, so that they are the same in the terms of every expression.
        self.columns: Dims = tuple((k,) if n > 1 else () for k, n in enumerate(variable.shape))
        self.sizes = {k: n for k, n in enumerate(variable.shape) if n > 1}
        self.parts: dict[int, Labels] = {}  # a label as those of its parts, after a reshape
        self.made = {variable: [Term(alg.one, (), self.columns)]}
        self.depend = {variable: True}

    def depends(self, node: Expression) -> bool:
        """Whether an expression depends on the variable."""
        if node not in self.depend:
            for part in order([node]):
                if part not in self.depend:
                    self.depend[part] = any(self.depend[p] for p in part.parts)
        return self.depend[node]

    def array(self, node: Expression, shape: Shape, first: bool = False) -> Expression:
        """The matrix or tensor of the linear map, in shape + the variable's shape.

        shape: what the node is broadcast to. first: whether the variable's dimensions come first.
        """
        if not self.depends(node):
            return alg.zero
        return self.whole(self.widened(node, shape), shape, first)

    def whole(self, terms: list[Term], shape: Shape, first: bool = False) -> Expression:
        """Terms as one array."""
        terms = [self.split_up(t) for t in terms]
        columns = self.of_parts(self.columns)
        sizes = (*self.variable.shape, *shape) if first else (*shape, *self.variable.shape)
        found: dict[Shape, list[Product]] = {}
        for term in terms:
            out = tuple(
                labels or ((self.label(n),) if n > 1 else ())
                for labels, n in zip(term.out, shape, strict=True)
            )
            wanted = [
                k for labels in ((*columns, *out) if first else (*out, *columns)) for k in labels
            ]
            flat = tuple(self.sizes[k] for k in wanted)
            # Terms that a reshape has split in unlike ways have other sizes, and are added as whole arrays.
            found.setdefault(flat, []).append(self.placed(term, wanted))
        made = [reshaped(alg.full(written(own, flat), flat), sizes) for flat, own in found.items()]
        return alg.add(*made)

    def placed(self, term: Term, wanted: Sequence[int]) -> Product:
        """The term with the result's dimensions for labels; the identity ties those of one label."""
        names: dict[int, int] = {}
        ties: list[Factor] = []
        for at, k in enumerate(wanted):
            # One label at two places of the result is a diagonal: d(x*y)/dx has x's label for its row and
            # its column.
            if names.setdefault(k, at) != at:
                ties.append((eye(self.sizes[k]), (names[k], at)))
        for k in (k for _, ks in term.factors for k in ks):
            if k not in names:
                names[k] = len(wanted) + len(names)
        factors = tuple((f, tuple(names[k] for k in ks)) for f, ks in term.factors)
        return Product(term.number, (*ties, *factors))

    def terms(self, root: Expression) -> list[Term]:
        """The terms of an expression; cached if it depends on the variable."""
        if not self.depends(root):
            return [self.constant(root)]
        if root not in self.made:
            for node in order([root]):
                if node not in self.made and self.depends(node) and not is_call(node, "[]", "()"):
                    found = self.find(node)
                    # A sum of many terms is multiplied out in everything that reads it; as one array it is
                    # one term again.
                    self.made[node] = (
                        found if len(found) <= MOST_TERMS else self.closed(node, found)
                    )
        return self.made[root]

    def closed(self, node: Expression, terms: list[Term]) -> list[Term]:
        """Many terms as one factor."""
        whole = self.whole(terms, node.shape)
        if is_number(whole, 0):
            return []
        whole = alg.full(whole, node.shape + self.variable.shape)
        out = tuple((self.label(n),) if n > 1 else () for n in node.shape)
        columns = self.of_parts(self.columns)
        return [self.with_factor(Term(alg.one, (), out), whole, (*out, *columns))]

    def find(self, node: Expression) -> list[Term]:
        """As `terms`, without the cache."""
        if node.op == "sum" and node.data[1] == ZERO:
            return [
                t._replace(number=alg.scale(c, t.number))
                for own, c in zip(node.args, node.data[0], strict=True)
                for t in self.widened(own, node.shape)
            ]
        if node.op == "product":
            rest, own = self.split(node)
            return [self.weighed(t, rest, node.shape) for t in self.widened(own, node.shape)]
        if node.op == "call":
            if (vector := diagonal_of(node)) is not None and self.depends(vector):
                return self.contracted("i->ii", [vector])
            handler = _CALLS.get(node.data[0])
            if handler is not None:
                return handler(self, node)
        raise _no_formula(node)

    def split(self, node: Expression) -> tuple[Expression, Expression]:
        """(the product of the factors that do not depend on the variable, the one factor that does)."""
        coefficient, exponents = node.data
        pairs = list(zip(node.args, exponents, strict=True))
        bound = [(b, e) for b, e in pairs if self.depends(b)]
        # u squared, or a product of two parts with u, is not linear, and no gradient is so.
        if len(bound) != 1 or bound[0][1] != ONE:
            raise _no_formula(node)
        return alg.product([p for p in pairs if p != bound[0]], coefficient), bound[0][0]

    def widened(self, node: Expression, shape: Shape) -> list[Term]:
        """The terms of an expression that is broadcast to a shape; none if it is 0."""
        if is_zero(node):
            return []
        if not self.depends(node):
            raise _no_formula(node)
        # Along a dimension that broadcasting adds, all elements are equal: it has no label.
        lead = ((),) * (len(shape) - len(node.shape))
        return [t._replace(out=(*lead, *t.out)) for t in self.terms(node)]

    # -- labels ------------------------------------------------------------------------------
    def label(self, n: int) -> int:
        """A new label."""
        k = next(self.fresh)
        self.sizes[k] = n
        return k

    def weighed(self, term: Term, factor: Expression, shape: Shape) -> Term:
        """The term times an expression that is broadcast to this shape."""
        lead = len(shape) - len(factor.shape)
        sizes = (*(1,) * lead, *factor.shape)
        out = tuple(
            (self.label(n),) if n > 1 and not labels else labels
            for labels, n in zip(term.out, sizes, strict=True)
        )
        dims = tuple(
            labels if n > 1 else () for labels, n in zip(out[lead:], factor.shape, strict=True)
        )
        return self.with_factor(term._replace(out=out), factor, dims)

    def with_factor(self, term: Term, factor: Expression, dims: Dims) -> Term:
        """The term with one more factor, whose dimensions have these labels."""
        if has_reshape(factor):
            return self.with_read(term, factor, dims)
        return self.attached(term, factor, dims)

    def attached(self, term: Term, factor: Expression, dims: Dims) -> Term:
        """As `with_factor`, with the factor as it is."""
        labels = tuple(k for labels in self.of_parts(dims) for k in labels)
        flat = reshaped(factor, tuple(self.sizes[k] for k in labels))
        if not labels:
            return term._replace(number=alg.multiply(term.number, flat))
        return term._replace(factors=(*term.factors, (flat, labels)))

    def with_read(self, term: Term, factor: Expression, dims: Dims) -> Term:
        """As `with_factor`, with the factor's own terms: what is merged in it comes apart."""
        other = self.constant(factor)
        for a, b in zip(self.of_parts(dims), self.of_parts(other.out), strict=True):
            # A merged dimension is one label on one side and several on the other: the one is taken for its
            # parts.
            if len(b) == 1:
                self.parts[b[0]] = a
            elif len(a) == 1 and b:
                self.parts[a[0]] = b
            elif [self.sizes[k] for k in a] == [self.sizes[k] for k in b]:
                self.parts.update((m, (k,)) for k, m in zip(a, b, strict=True))
            elif b:
                raise _through_reshape()
        number_ = alg.multiply(term.number, other.number)
        return self.split_up(Term(number_, (*term.factors, *other.factors), term.out))

    def constant(self, node: Expression) -> Term:
        """The term of an expression that does not depend on the variable."""
        rank = len(node.shape)
        if node.op == "product" and rank > 1:
            term = Term(number(node.data[0]), (), ((),) * rank)
            for base, e in zip(node.args, node.data[1], strict=True):
                term = self.weighed(term, alg.product([(base, e)]), node.shape)
            return term
        if is_call(node, "expand"):
            term = self.constant(node.args[0])
            return term._replace(out=((),) * (rank - len(term.out)) + term.out)
        reads = is_call(node, "outer") or has_reshape(node) or has_products(node)
        handler = _CALLS.get(node.data[0]) if reads else None
        try:
            found = handler(self, node) if handler is not None else []
        except NoExpression:
            found = []
        if len(found) == 1:
            return found[0]
        outer, own = alg.scalars_out(node)
        out = tuple((self.label(n),) if n > 1 else () for n in own.shape)
        return self.attached(Term(alg.product(outer), (), out), own, out)

    def of_parts(self, dims: Dims) -> Dims:
        """Dimensions whose labels are those of the parts."""
        while any(k in self.parts for labels in dims for k in labels):
            dims = tuple(
                tuple(p for k in labels for p in self.parts.get(k, (k,))) for labels in dims
            )
        return dims

    def split_up(self, term: Term) -> Term:
        """The term with the labels of parts in factors and dimensions."""
        if not self.parts:
            return term
        made = Term(term.number, (), self.of_parts(term.out))
        for own, labels in term.factors:
            dims = self.of_parts(tuple((k,) for k in labels))
            made = self.attached(made, own, dims)
        return made

    def tied(self, term: Term, a: Labels, b: Labels, n: int) -> tuple[Term, Labels]:
        """The term with two dimensions of one index; the labels of that dimension."""
        if not a or not b or a == b:
            return term, a or b
        if len(a) != len(b) or any(
            self.sizes[k] != self.sizes[m] for k, m in zip(a, b, strict=True)
        ):
            raise _through_reshape()
        # u's labels name the result's dimensions and must stay; the other one is renamed.
        columns = {k for labels in self.of_parts(self.columns) for k in labels}
        for k, m in zip(a, b, strict=True):
            if k in columns and m in columns:
                term = self.attached(term, eye(self.sizes[k]), ((k,), (m,)))
            else:
                old, new = (m, k) if k in columns else (k, m)
                names = {old: new}
                factors = tuple((f, tuple(names.get(i, i) for i in ks)) for f, ks in term.factors)
                out = tuple(tuple(names.get(i, i) for i in ks) for ks in term.out)
                term, a = Term(term.number, factors, out), tuple(names.get(i, i) for i in a)
        return term, a

    # -- contractions ------------------------------------------------------------------------
    def contracted(self, equation: str, operands: Sequence[Expression]) -> list[Term]:
        """The terms of an einsum of operands, one of which depends on the variable."""
        inner, _, out = equation.partition("->")
        spelled = list(zip(operands, inner.split(","), strict=True))
        bound = [pair for pair in spelled if self.depends(pair[0])]
        # The quotient of two parts with u, or their product, is not linear in u.
        if len(bound) > 1:
            raise NoExpression(
                "the matrix of this derivative has no formula: it is not a linear map"
            )
        bound = bound or spelled[:1]
        own, word = bound[0]
        rest = [pair for pair in spelled if pair is not bound[0]]
        sizes = {c: n for v, w in spelled for c, n in zip(w, v.shape, strict=True) if n > 1}
        return [self.one_contracted(t, word, rest, out, sizes) for t in self.terms(own)]

    def one_contracted(
        self,
        term: Term,
        word: str,
        rest: Sequence[tuple[Expression, str]],
        out: str,
        sizes: dict[str, int],
    ) -> Term:
        """One term of an einsum; word: the letters of its dimensions."""
        term = self.split_up(term)
        found: dict[str, Labels] = {}
        for at, c in enumerate(word):
            labels = term.out[at]  # that of before may have been renamed
            if c in found:
                term, labels = self.tied(term, found[c], labels, sizes.get(c, 1))
            found[c] = labels
        for value, letters in rest:
            for c, n in zip(letters, value.shape, strict=True):
                if n > 1 and not found.get(c):
                    found[c] = (self.label(n),)
            dims = tuple(
                found[c] if n > 1 else () for c, n in zip(letters, value.shape, strict=True)
            )
            term = self.with_factor(term, value, dims)
        named = {k for _, ks in term.factors for k in ks}
        named |= {k for labels in self.of_parts(self.columns) for k in labels}
        # A summed letter that no factor has any more has summed equal elements: their number is left.
        equal = 1
        for c in set(word) - set(out):
            left = [self.sizes[k] for k in found[c] if k not in named]
            equal *= math.prod(left) if found[c] else sizes.get(c, 1)
        scaled = alg.scale(number(equal).data, term.number)
        return Term(scaled, term.factors, tuple(found.get(c, ()) for c in out))

    def along(self, own: Expression, dim: int, rows: Expression, front: str) -> list[Term]:
        """The product of a matrix with one dimension of an expression."""
        word = LETTERS[: len(own.shape)]
        c = word[dim % len(word)]
        return self.contracted(f"{word},{front}{c}->{word.replace(c, front)}", [own, rows])


def has_products(node: Expression) -> bool:
    """Whether it is a sum or a diagonal of products of matrices, or a product with `diag`."""
    if node.op != "call":
        return False
    if is_call(node, "matmul"):
        return any(is_call(a, "diag", "diag_embed") for a in node.args)
    if not is_call(node, "sum", "diagonal") or len(node.args[0].shape) != 2:
        return False
    # This is tried on every part of a derivative, and what it takes grows with the part.
    if node.weight > MOST_WEIGHT or len(node.data[1]) > 1:  # keepdim: a weighted mean of each row
        return False
    own = node.args[0]
    return own.op == "product" or is_call(own, "outer", "matmul", "T", "diag", "diag_embed")


def is_outer(node: Expression) -> bool:
    """Whether it is a matrix that is a product of vectors and identities."""
    return (
        node.op == "product"
        and len(node.shape) == 2
        and 1 not in node.shape
        and all(len(a.shape) < 2 or 1 in a.shape or is_call(a, "eye") for a in node.args)
    )


def has_reshape(own: Expression) -> bool:
    """Whether it moves dimensions that a reshape merges or splits, into sizes that are numbers."""
    if own.op != "call" or own.data[0] not in _REARRANGING or own.weight > MOST_WEIGHT:
        return False
    reshapes = [node for node in order([own]) if is_call(node, "reshape")]
    # A symbolic size has no divisors by which a dimension could be told to be merged.
    return bool(reshapes) and all(type(n) is int for r in reshapes for n in r.shape)


def rearranged(
    length: Callable[[Expression], int], applies: Callable[[Expression], bool]
) -> Callable[[Expression], Expression]:
    """The rule that writes products of arrays by their indices, if that is shorter."""

    def rule(node: Expression) -> Expression:
        if not applies(node) or alg.is_truth(node) or alg.is_integral(node):
            return node
        # A variable that occurs nowhere: then every expression is a constant, whose factors are read the
        # same way.
        maps = IndexedFactors(name("#none", (), 0))
        try:
            made = maps.whole([maps.constant(node)], node.shape)
        except NoExpression:
            return node
        return made if made.shape == node.shape and length(made) < length(node) else node

    return rule


def is_zero(own: Expression) -> bool:
    """Whether it is 0, as a number or an array."""
    return is_number(unwrapped(own), 0) or is_call(own, "zeros")


def _through_reshape() -> NoExpression:
    return NoExpression("the matrix of this derivative has no formula: it goes through reshape")


def _no_formula(node: Expression) -> NoExpression:
    """The error for an expression whose terms are not known."""
    what = node.data[0] if node.op == "call" else f"a {node.op}"
    return NoExpression(f"the matrix of this derivative has no formula: it goes through {what}")


# -- products and sums ----------------------------------------------------------------------------
Handler = Callable[[IndexedFactors, Expression], list[Term]]


def _matmul(maps: IndexedFactors, node: Expression) -> list[Term]:
    a, b = node.args
    left, right = ("i", "j")[: len(a.shape) > 1], ("k",)[: len(b.shape) > 1]
    batch = LETTERS[3 : 1 + max(len(a.shape), len(b.shape), 2)]
    first = batch[len(batch) - max(len(a.shape) - 2, 0) :] if len(a.shape) > 2 else ""
    second = batch[len(batch) - max(len(b.shape) - 2, 0) :] if len(b.shape) > 2 else ""
    i, k = "i" if left else "", "k" if right else ""
    both = max(first, second, key=len)
    return maps.contracted(f"{first}{i}j,{second}j{k}->{both}{i}{k}", [a, b])


def _spelled(equation: str) -> Handler:
    return lambda maps, node: maps.contracted(equation, node.args)


def _einsum(maps: IndexedFactors, node: Expression) -> list[Term]:
    return maps.contracted(node.data[1][0][1].replace(" ", ""), node.args)


def _solve(maps: IndexedFactors, node: Expression) -> list[Term]:
    a, b = node.args
    if node.data[1] or len(a.shape) != 2:
        raise _no_formula(node)
    # inv(A).T rather than inv(A.T): the gradients of a solve have both, and as one text they are collected.
    found = transposed(inverse(a.args[0])) if is_call(a, "T") else inverse(a)
    return maps.contracted("ij,jk->ik"[: 9 if len(b.shape) > 1 else 0] or "ij,j->i", [found, b])


def _sum(maps: IndexedFactors, node: Expression) -> list[Term]:
    (own,) = node.args
    word = LETTERS[: len(own.shape)]
    axes = axes_of(node.data[1][0][1] if node.data[1] else None, len(word))
    kept = "".join(c for d, c in enumerate(word) if d not in axes)
    found = maps.contracted(f"{word}->{kept}", [own])
    if len(kept) == len(node.shape):
        return found
    places = [word.index(c) for c in kept]
    wide = [dict(zip(places, t.out, strict=True)) for t in found]
    return [
        t._replace(out=tuple(own.get(d, ()) for d in range(len(word))))
        for t, own in zip(found, wide, strict=True)
    ]


def _mean(maps: IndexedFactors, node: Expression) -> list[Term]:
    share = Fraction(max(math.prod(node.shape), 1), math.prod(node.args[0].shape))
    return [t._replace(number=alg.scale(number(share).data, t.number)) for t in _sum(maps, node)]


def _expanded(maps: IndexedFactors, node: Expression) -> list[Term]:
    return maps.widened(node.args[-1 if is_call(node, "full_like") else 0], node.shape)


def _where(maps: IndexedFactors, node: Expression) -> list[Term]:
    condition, *branches = node.args
    if maps.depends(condition):
        raise _no_formula(node)
    found: list[Term] = []
    for branch, sides in zip(branches, ((alg.one, alg.zero), (alg.zero, alg.one)), strict=True):
        mask = alg.where(condition, *sides)
        found += [maps.weighed(t, mask, node.shape) for t in maps.widened(branch, node.shape)]
    return found


def _triangle(maps: IndexedFactors, node: Expression) -> list[Term]:
    """tril and triu are products with triangles of ones."""
    mask = call(node.data[0], [_ones(*node.shape)], node.shape, node.data[1])
    return [maps.weighed(t, mask, node.shape) for t in maps.terms(node.args[0])]


def _logarithmic(maps: IndexedFactors, node: Expression) -> list[Term]:
    """`xlogy` and its like, which are linear in the first argument."""
    a, b = node.args
    if maps.depends(b):
        raise _no_formula(node)
    weight = alg.function(node.data[0], alg.one, b)
    return [maps.weighed(t, weight, node.shape) for t in maps.widened(a, node.shape)]


# -- dimensions -----------------------------------------------------------------------------------
def _permuted(maps: IndexedFactors, node: Expression) -> list[Term]:
    dims = node.data[1][0][1] if is_call(node, "permute") else (1, 0)
    return [t._replace(out=tuple(t.out[d] for d in dims)) for t in maps.terms(node.args[0])]


def _reshaped(maps: IndexedFactors, node: Expression) -> list[Term]:
    """Dimensions are merged, or a merged one is split into its parts again."""
    (own,) = node.args
    return [_regrouped(maps, maps.split_up(t), own.shape, node.shape) for t in maps.terms(own)]


def _regrouped(maps: IndexedFactors, term: Term, old: Shape, new: Shape) -> Term:
    plain = [n for n in old if n != 1] == [n for n in new if n != 1]
    if plain:  # equal elements need no label
        left = iter([labels for labels, n in zip(term.out, old, strict=True) if n != 1])
        return term._replace(out=tuple(() if n == 1 else next(left) for n in new))
    waiting = [
        k
        for labels, n in zip(term.out, old, strict=True)
        for k in (labels or ((maps.label(n),) if n > 1 else ()))
    ][::-1]
    out: list[Labels] = []
    for n in new:
        labels: list[int] = []
        size = 1
        # Merging goes from the last dimension: a new one of size 6 takes labels until their sizes multiply
        # to 6.
        while size < n:
            k = waiting.pop()
            # x.reshape(2, 3) of six elements: the label of size 6 becomes two labels, wherever it occurs.
            if (n // size) % maps.sizes[k]:  # only a part of it
                part = math.gcd(n // size, maps.sizes[k])
                if part == 1 or n % size:
                    raise _through_reshape()
                maps.parts[k] = (maps.label(part), maps.label(maps.sizes[k] // part))
                waiting += maps.parts[k][::-1]
                continue
            labels.append(k)
            size *= maps.sizes[k]
        out.append(tuple(labels))
    return maps.split_up(term._replace(out=tuple(out)))


def _diagonal(maps: IndexedFactors, node: Expression) -> list[Term]:
    if len(node.args[0].shape) != 2 or node.data[1] not in ([], (), (("dim1", -2), ("dim2", -1))):
        raise _no_formula(node)
    return maps.contracted("ii->i", node.args)


# -- elements of one dimension ----------------------------------------------------------------------
def _ones(*shape: int) -> Expression:
    return call("ones", [], shape, [("", shape)])


def _moved(maps: IndexedFactors, node: Expression) -> list[Term]:
    """What takes or moves elements along one dimension: what it makes of the rows of the identity."""
    own, *given = node.args
    word, options = node.data
    if word == "index":
        dims = tuple(k for k, v in enumerate(given) if not is_call(v, ":"))
        given = [given[k] for k in dims]
    else:
        named = [v for k, v in options if k in ("", "dim", "dims")]
        dims = axes_of(named[0] if named else None, len(own.shape))
    # Where the index depends on other dimensions, as in gather of a matrix, no matrix of rows says it.
    if len(dims) != 1 or any(map(maps.depends, given)) or (word == "gather" and own.shape[1:]):
        raise _no_formula(node)
    n, count_ = own.shape[dims[0]], len(node.shape) - len(own.shape) + 1
    shape = (*node.shape[dims[0] : dims[0] + count_], n)
    # A sum from the end is a triangle of ones; by two permutations and a triangle it would be three
    # matrices.
    if word == "flip" and is_call(own, "cumsum") and is_call(own.args[0], "flip"):  # cumsum's slope
        rows, own = call("triu", [_ones(n, n)], shape), own.args[0].args[0]
    elif word == "cumsum":
        rows = call("tril", [_ones(n, n)], shape)
    elif word == "roll":
        rows = call("roll", [eye(n)], shape, [options[0], ("dims", (0,))])
    elif given:
        rows = call("index", [eye(n), *given], shape)
    else:
        first = ("", (0,) if word == "flip" else 0)
        rows = call(word, [eye(n)], shape, [first, *options[1:]]) if n > 1 else _ones(*shape)
    return maps.along(own, dims[0], rows, LETTERS[len(LETTERS) - count_ :])


def _written(maps: IndexedFactors, node: Expression) -> list[Term]:
    """Elements written into an array: those that stay, and those that are new."""
    base, *places, own = node.args
    word = node.data[0]
    given: dict[str, Any] = {k or "dim": v for k, v in reversed(node.data[1]) if k != "@"}
    dim = given.get("dim", 0) if word in ("select_scatter", "slice_scatter", "index_add") else 0
    dim = int(dim) % len(node.shape)
    n = node.shape[dim]
    if any(map(maps.depends, places)):
        raise _no_formula(node)
    if word == "select_scatter":
        rows = unit(node.data[1][1][1], n)
        chosen, front = rows, ""
    elif word == "slice_scatter":
        at = {k: given[k] for k in ("start", "end", "step") if k in given}
        rows, front = rows_of_eye(n, own.shape[dim], **at), "y"
        chosen = call(word, [_zeros(n), _ones(own.shape[dim])], (n,), _in_front(node))
    else:
        if (
            not is_zero(base)
            or len(node.shape) != 1
            or [k for k, _ in node.data[1]] != _ADDING.get(word, [k for k, _ in node.data[1]])
        ):
            raise _no_formula(node)
        (index,) = places[0].args if is_call(places[0], "()") else places
        rows, front = call("index", [eye(n), index], (*own.shape, n)), LETTERS[-len(own.shape) :]
        chosen = alg.one
    found: list[Term] = []
    if not is_zero(own):
        letters = LETTERS[1 : 1 + len(node.shape)]
        inner = letters.replace(letters[dim], front)
        found += maps.contracted(f"{inner},{front}{letters[dim]}->{letters}", [own, rows])
    # What stays is multiplied by zeros where something new was written, and by ones elsewhere.
    if not is_zero(base):
        mask = alg.full(alg.subtract(alg.one, chosen), (n,))
        wide = reshaped(mask, (n, *(1 for _ in node.shape[dim + 1 :])))
        found += [maps.weighed(t, wide, node.shape) for t in maps.terms(base)]
    return found


# The options with which a write adds up what goes to one place.
_ADDING = {"index_put": [""], "index_add": ["@", "", "@", "@"]}


def _zeros(*shape: int) -> Expression:
    return call("zeros", [], shape, [("", shape)])


def _in_front(node: Expression) -> list[tuple[str, Any]]:
    """The options of a slice_scatter, for a vector."""
    return [(k, 0 if k in ("", "dim") else v) for k, v in node.data[1]]


def _listed(maps: IndexedFactors, node: Expression) -> list[Term]:
    """The terms of a `stack` or a `cat`: each part at its place."""
    (listed,) = node.args
    dim = (dict(node.data[1]).get("dim") or dict(node.data[1]).get("") or 0) % len(node.shape)
    n, start = node.shape[dim], 0
    letters = LETTERS[1 : 1 + len(node.shape)]
    found: list[Term] = []
    for part in listed.args:
        if is_call(node, "stack"):
            rows, front, size = unit(start, n), "", 1
        else:
            size = part.shape[dim]
            rows, front = rows_of_eye(n, size, start, start + size), "y"
        start += size
        if maps.depends(part):
            inner = letters.replace(letters[dim], front)
            found += maps.contracted(f"{inner},{front}{letters[dim]}->{letters}", [part, rows])
        elif not is_zero(part):
            raise _no_formula(node)
    return found


_CALLS: dict[str, Handler] = {
    **dict.fromkeys(("matmul", "dot", "bmm", "mv", "mm"), _matmul),
    "outer": _spelled("i,j->ij"),
    "trace": _spelled("ii->"),
    "einsum": _einsum,
    "linalg.solve": _solve,
    "sum": _sum,
    "mean": _mean,
    **dict.fromkeys(("expand", "expand_as", "full_like", "detach", "float"), _expanded),
    "where": _where,
    **dict.fromkeys(("tril", "triu"), _triangle),
    **dict.fromkeys(("xlogy", "special.xlog1py"), _logarithmic),
    **dict.fromkeys(("T", "permute"), _permuted),
    "reshape": _reshaped,
    "diagonal": _diagonal,
    **dict.fromkeys("select slice cumsum roll flip index gather index_select".split(), _moved),
    **dict.fromkeys(
        "select_scatter slice_scatter index_put index_add scatter scatter_add".split(), _written
    ),
    **dict.fromkeys(("stack", "cat"), _listed),
}


__all__ = ["IndexedFactors", "has_products", "has_reshape", "is_outer", "rearranged"]
