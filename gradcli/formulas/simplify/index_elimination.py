"""Index elimination: sums of products of indexed factors, written with `@`, `.T`, `diag` and `outer`.

A term is a number times factors with labelled dimensions, as in einsum (Ricci notation; Laue, Mitterreiter
and Giesen 2018). The labels below `rank` are the result's dimensions, all others are summed over. What no
product of matrices says is written as `einsum`. No factor has a dimension of size 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, count
from typing import Any, NamedTuple

from gradcli.formulas.algebra import algebra as alg
from gradcli.formulas.algebra.array_algebra import (
    MOST_STACKED,
    eye,
    matrix_product,
    permuted,
    place_of,
    reshaped,
    stacked,
    total,
    transposed,
)
from gradcli.formulas.algebra.exact_numbers import ONE, ZERO
from gradcli.formulas.algebra.expressions import Expression, call, is_call, is_number, number
from gradcli.formulas.algebra.spelling import NoExpression

LETTERS = "ijklmnopqrstuvwxyzabcdefgh"  # the first for the result's dimensions

MOST_TERMS = 24  # of a sum whose terms are searched for what they share
BRACKETS = 2  # extra characters accepted for one matrix product less: (A + A.T)@x for x@A + A@x

Shape = tuple[int, ...]
Labels = tuple[int, ...]
Factor = tuple[Expression, Labels]


class Product(NamedTuple):
    """number * product of factors, summed over the labels that are no dimensions of the result."""

    number: Expression
    factors: tuple[Factor, ...]


# -- special matrices -----------------------------------------------------------------------------
def rows_of_eye(n: int, size: int, start: Any = 0, end: Any = None, step: Any = 1) -> Expression:
    """Rows of the identity of n rows, as a slice."""
    return call("slice", [eye(n)], (size, n), [("", v) for v in (0, start, end, step)])


def diagonal_of(matrix: Expression) -> Expression | None:
    """The vector of a square diagonal matrix, else None."""
    written = is_call(matrix, "diagonal_scatter") and is_call(matrix.args[0], "zeros")
    if not (written or is_call(matrix, "diag", "diag_embed")) or len(matrix.shape) != 2:
        return None
    vector = matrix.args[-1]
    plain = (("", 0), ("dim1", -2), ("dim2", -1), ("offset", 0))
    same = all(option in plain for option in matrix.data[1])
    return vector if same and matrix.shape == vector.shape * 2 else None


def _index_of(own: Expression) -> int | None:
    """The index of the row of the identity that a vector is, else None."""
    place = place_of(own)
    return place % own.shape[0] if isinstance(place, int) else None


# -- one term -------------------------------------------------------------------------------------
# How labels become products. Of sum over k of A[i, k]*v[k]*w[i] the label k is in two factors and not in
# the result, so it is summed: A and v become A@v, with the label i. What is left has the label i alone, and
# is multiplied elementwise: (A@v)*w. The steps are tried in the order in which they shorten: a unit vector
# takes one element, equal labels multiply, a label of one factor is summed, then vectors, then matrices.
# What no step removes is written as einsum.
class _Elimination:
    """Factors merged wherever a product of arrays expresses the sum over a label."""

    def __init__(self, given: Product, rank: int, closed: Iterable[Expression] = ()) -> None:
        self.rank = rank
        self.scale: list[tuple[Expression, Any]] = [(given.number, ONE)]
        self.waiting, self.factors = list(given.factors[::-1]), list[Factor]()
        # Without this, A@v would be opened into A and v as soon as it was made, and made again, for ever.
        self.closed = set(closed)  # products that are not taken apart again
        self.fresh = count(1 + max((rank - 1, *(k for _, ks in given.factors for k in ks))))

    def product(self, merge: bool = True) -> Product:
        """The factors that are left; merge: whether sums over labels are written as products."""
        changed = self.merge = merge
        while changed or self.waiting:
            while self.waiting:
                self.open(*self.waiting.pop())
            changed = merge and any(
                step() for step in (self.units, self.same, self.alone, self.vectors, self.matrices)
            )
        return Product(alg.product(self.scale), tuple(self.factors))

    # -- factors as their parts --------------------------------------------------------------
    def open(self, own: Expression, labels: Labels) -> None:
        """Take a factor on: products and transposes as their parts, ones and identities as nothing."""
        outer, own = alg.scalars_out(own)
        self.scale += outer
        if not own.shape:
            self.scale.append((own, ONE))
            return
        given = own.args
        if 1 in own.shape:
            labels = tuple(k for k, n in zip(labels, own.shape, strict=True) if n != 1)
            self.waiting.append((reshaped(own, tuple(n for n in own.shape if n != 1)), labels))
        elif is_call(own, "zeros"):
            self.scale.append((alg.zero, ONE))
        elif is_call(own, "ones"):
            self.gone(labels, own.shape)
        # The identity says that two labels are equal: one of them is renamed, and no factor is left.
        elif is_call(own, "eye"):
            self.identity(own, *labels)
        elif is_call(own, "T"):
            self.waiting.append((given[0], labels[::-1]))
        elif is_call(own, "permute"):
            placed = dict(zip(own.data[1][0][1], labels, strict=True))
            self.waiting.append((given[0], tuple(placed[d] for d in range(len(labels)))))
        elif is_call(own, "outer"):
            self.waiting += [(given[1], labels[1:]), (given[0], labels[:1])]
        # diag(v) is v along a label that is the other one, too.
        elif (vector := diagonal_of(own)) is not None:
            self.waiting += [(vector, labels[:1]), (eye(own.shape[0]), labels)]
        elif len(labels) == 2 and labels[0] == labels[1]:
            diagonal = call("diagonal", [own], own.shape[:1])
            self.waiting.append((diagonal, labels[:1]))
        elif own in self.closed:
            self.factors.append((own, labels))
        elif (
            is_call(own, "matmul")
            and len(own.shape) <= 2
            and (not self.merge or len(given[0].shape) == len(given[1].shape) == 2)
        ):
            k, left = next(self.fresh), len(given[0].shape) - 1
            self.waiting += [(given[1], (k, *labels[left:])), (given[0], (*labels[:left], k))]
        # A product of matrices elementwise comes apart, for one of its factors may be a vector that is
        # broadcast.
        elif own.op == "product" and len(given) > 1 and len(own.shape) > 1:
            self.scale.append((number(own.data[0]), ONE))
            for base, e in zip(given, own.data[1], strict=True):
                self.broadcast(alg.product([(base, e)]), labels, own.shape)
        else:
            self.factors.append((own, labels))

    def broadcast(self, own: Expression, labels: Labels, shape: Shape) -> None:
        """Take on a factor that is broadcast to this shape."""
        lead = len(shape) - len(own.shape)
        labels, left = labels[lead:], [(k, n) for k, n in zip(labels, shape, strict=True)][:lead]
        left += [
            (k, wide)
            for k, n, wide in zip(labels, own.shape, shape[lead:], strict=True)
            if n != wide
        ]
        self.waiting.append((own, labels))
        # A dimension that only one of the factors had must not be lost: ones keep it until the end.
        for k, n in left:
            self.waiting.insert(0, (call("ones", [], (n,), [("", (n,))]), (k,)))

    def gone(self, labels: Iterable[int], shape: Shape) -> None:
        """Count the elements of a summed dimension that no factor has any more."""
        left = {k for _, ks in (*self.factors, *self.waiting) for k in ks}
        sizes = {k: n for k, n in zip(labels, shape, strict=False) if k >= self.rank}
        # sum over k of 1 is the number of k's, once no other factor depends on k.
        self.scale += [(number(n), ONE) for k, n in sizes.items() if k not in left]

    def identity(self, own: Expression, a: int, b: int) -> None:
        a, b = min(a, b), max(a, b)
        if b >= self.rank:
            self.renamed(b, a)
            self.gone((a,), own.shape)
        elif a != b:
            self.renamed(b, a)
            self.factors.append((own, (a, b)))

    def renamed(self, old: int, new: int) -> None:
        """Replace a label in all factors; those of the identity that it names stay."""
        if old != new:
            names = {old: new}
            # They are opened again, as a renamed factor may have become a diagonal, or a vector squared.
            touched = [f for f in self.factors if old in f[1]]
            self.factors = [f for f in self.factors if old not in f[1]]
            named = [
                (f, tuple(names.get(k, k) for k in ks)) for f, ks in self.waiting + touched[::-1]
            ]
            self.waiting = named

    # -- steps -------------------------------------------------------------------------------
    def merged(self, places: Sequence[int], own: Expression, labels: Labels) -> bool:
        """Replace factors by one."""
        self.closed.add(alg.scalars_out(own)[1])
        self.waiting = [(own, labels)]
        self.factors = [f for k, f in enumerate(self.factors) if k not in places]
        return True

    def within(self) -> Iterator[tuple[int, list[int]]]:
        """Each summed label with the places of the factors that have it; those in few factors first."""
        found: dict[int, list[int]] = {}
        for at, (_, labels) in enumerate(self.factors):
            for k in labels:
                if k >= self.rank:
                    found.setdefault(k, []).append(at)
        yield from found.items()

    def units(self) -> bool:
        """A unit vector takes one element of what else has its label; summed over, it is gone."""
        for p, (own, labels) in enumerate(self.factors):
            if not isinstance(place := place_of(own), int):
                continue
            others = [q for q, (_, ks) in enumerate(self.factors) if q != p and labels[0] in ks]
            if others or labels[0] >= self.rank:
                self.waiting += [_selected(*self.factors[q], labels[0], place) for q in others]
                gone = others if labels[0] < self.rank else [*others, p]
                self.factors = [f for q, f in enumerate(self.factors) if q not in gone]
                return True
        return False

    def same(self) -> bool:
        """Multiply two factors that have the same labels."""
        for (p, (a, ka)), (q, (b, kb)) in combinations(enumerate(self.factors), 2):
            if (
                set(ka) != set(kb)
                or (len(ka) > 2 and ka != kb)
                or any(is_call(f, "eye") for f in (a, b))
            ):
                continue
            # sum over k of a[k]*b[k], with nothing else that has k, is a dot product.
            if len(ka) == 1 and ka[0] >= self.rank and self.uses(ka[0]) == 2:
                self.factors = [f for k, f in enumerate(self.factors) if k not in (p, q)]
                self.waiting.append((call("dot", [alg.floating(a), alg.floating(b)], ()), ()))
                return True
            if len(ka) == 2 and ka != kb and ka[0] > ka[1]:
                (a, ka), (b, kb) = (b, kb), (a, ka)
            made = alg.multiply(a, b if ka == kb else transposed(b))
            return self.merged((p, q), made, ka)
        return False

    def uses(self, k: int) -> int:
        """How many factors have a label."""
        return sum(k in ks for _, ks in self.factors)

    def alone(self) -> bool:
        """Sum over a label that one factor has."""
        for _, places in self.within():
            if len(places) == 1:
                own, labels = self.factors[places[0]]
                axes = [d for d, n in enumerate(labels) if n >= self.rank and self.uses(n) == 1]
                rest = tuple(n for d, n in enumerate(labels) if d not in axes)
                return self.merged(places, total(own, own.shape, axes, False), rest)
        return False

    def vectors(self) -> bool:
        """Multiply an array by a vector, or one of more than two dimensions by a matrix."""
        for k, places in self.within():
            pair = sorted(places, key=lambda p: len(self.factors[p][1]))
            if len(pair) != 2 or len(self.factors[pair[0]][1]) > 2:
                continue
            (v, kv), (own, labels) = (self.factors[p] for p in pair)
            if len(kv) == 1 and len(labels) == 2:
                rest = labels[0] if labels[1] == k else labels[1]
                return self.merged(places, _times(own, v, labels[1] == k), (rest,))
            if len(labels) > 2 and labels[-1] == k and len({*labels, *kv}) == len(labels + kv) - 1:
                right = v if kv[0] == k else transposed(v)
                made = call("matmul", [own, right], own.shape[:-1] + right.shape[1:])
                return self.merged(places, made, (*labels[:-1], *(n for n in kv if n != k)))
        return False

    def matrices(self) -> bool:
        """Multiply two matrices."""
        ranks = [len(labels) for _, labels in self.factors]
        pairs = [(k, ps) for k, ps in self.within() if [ranks[p] for p in ps] == [2, 2]]
        if not pairs:
            return False
        k, places = min(pairs)
        (a, ka), (b, kb) = (self.factors[p] for p in places)
        left, right = (labels[labels[0] == k] for labels in (ka, kb))
        # The result's rows come first: of A.T@B and B.T@A the one is the transpose of the other, and one is
        # wanted.
        if max(left, right) < self.rank < 3:
            turned = left > right
        else:  # rather than the product of transposes
            turned = ka[0] == kb[1] == k
        if turned:
            return self.merged(places, _times(b, a, kb[1] == k, ka[0] == k), (right, left))
        return self.merged(places, _times(a, b, ka[1] == k, kb[0] == k), (left, right))


def _selected(own: Expression, labels: Labels, k: int, place: int) -> Factor:
    """A factor at one index of one dimension."""
    if (index := _index_of(own)) is not None:
        return number(int(index == place % own.shape[0])), ()
    axis = labels.index(k)
    shape = own.shape[:axis] + own.shape[axis + 1 :]
    made = call("select", [own], shape, [("", axis), ("", place)])
    return made, tuple(n for n in labels if n != k)


def _times(a: Expression, b: Expression, last: bool = True, first: bool = True) -> Expression:
    """a@b, with `a` transposed unless `last`, and `b` unless `first`."""
    a, b = a if last else transposed(a), b if first else transposed(b)
    return matrix_product(a, b, (a.shape[0], *b.shape[1:]))


# -- a sum of terms -------------------------------------------------------------------------------
def eliminated(terms: Iterable[Product], shape: Shape, merge: bool = True) -> list[Product]:
    """The terms with as few factors as it takes; terms that share what makes one of them become one.

    merge: whether sums over labels are written as products before terms are compared.
    """
    rank = len(shape)
    waiting = [_reduced(t, rank, merge) for term in terms for t in _spread(term)][::-1]
    found: list[Product] = []
    while waiting:
        made = waiting.pop()
        if is_number(made.number, 0):
            continue
        # Each new term is tried beside those that are there; joined, it may join a third one, so it waits
        # again.
        for at, other in enumerate(found):
            one = _joined(other, made, rank)
            if one is not None:
                del found[at]
                waiting.append(_reduced(one, rank, merge))
                break
        else:
            found.append(made)
    return found


def _reduced(term: Product, rank: int, merge: bool = True) -> Product:
    return _ordered(_Elimination(term, rank).product(merge), rank)


def _spread(term: Product) -> Iterator[Product]:
    """The term with sums of outer products and identities multiplied out."""
    for at, (own, labels) in enumerate(term.factors):
        if own.op == "sum" and _is_simple(own) and own.data[1] == ZERO:
            rest = (*term.factors[:at], *term.factors[at + 1 :])
            for t, c in zip(own.args, own.data[0], strict=True):
                scaled = alg.full(alg.scale(c, t), own.shape)
                yield from _spread(Product(term.number, ((scaled, labels), *rest)))
            return
    yield term


def _is_simple(own: Expression) -> bool:
    """Whether it is an outer product or an identity, or a sum with one."""
    own = alg.scalars_out(own)[1]
    if own.op == "sum":
        return any(_is_simple(t) and t.shape == own.shape for t in own.args)
    if own.op == "product":
        return len(own.shape) == 2 and all(a.shape != own.shape for a in own.args)
    return is_call(own, "eye", "outer") or (is_call(own, "T") and _is_simple(own.args[0]))


def _ordered(term: Product, rank: int) -> Product:
    """The term with its factors in order, and summed labels counted from the rank on."""

    def key(factor: Factor) -> Any:
        own, labels = factor
        named = [min(k, rank) for k in labels]
        return is_call(own, "eye"), named, own.position, own.weight

    names: dict[int, int] = {k: k for k in range(rank)}
    factors = sorted(term.factors, key=key)
    for k in (k for _, ks in factors for k in ks):
        names.setdefault(k, len(names))
    return Product(term.number, tuple((f, tuple(names[k] for k in ks)) for f, ks in factors))


def _joined(one: Product, two: Product, rank: int) -> Product | None:
    """Two terms as one, if they differ in one factor, in a vector that one of them lacks, or share a
    factor beside what has at most two dimensions.
    """
    common, mine, other = _compared(one, two)
    apart = (*mine, *other)
    # A + eye(n) is no shorter in brackets, and unit vectors are stacked by `_stacked`.
    if any(_index_of(f) is not None or (rank < 3 and is_call(f, "eye")) for f, _ in apart):
        return None
    outer, numbers = _outside(one, two)
    edges = {labels for _, labels in apart}
    alone = max(len(mine), len(other)) <= 1 >= len(edges)
    if not alone:
        open_ = {*range(rank), *(k for _, ks in common for k in ks)}
        sides = [open_.intersection(k for _, ks in own for k in ks) for own in (mine, other)]
        edges = {tuple(sorted(side)) for side in sides}
    (edge, *others) = edges or [()]
    if alone and len(mine) != len(other) and len(edge) != 1:
        return None
    if not alone and (others or not common or not 0 < len(edge) <= 2):
        return None
    # Then (A - B)@x - (A - B)@y is found to share it, and becomes (A - B)@(x - y).
    if len(edge) == 2 and alg.leads_negative(numbers[0]):  # A@x - B@x and B@y - A@y share A - B
        outer, numbers = alg.negate(outer), list(map(alg.negate, numbers))
    both_sides = zip(numbers, (mine, other), strict=True)
    if alone:
        both = _sum(alg.multiply(n, *(f for f, _ in own)) for n, own in both_sides)
    else:
        both = _sum(_inside(n, own, edge) for n, own in both_sides)
    if not both.shape:
        return Product(alg.multiply(outer, both), common)
    return Product(outer, (*common, (both, edge)))


def _inside(number_: Expression, factors: Sequence[Factor], edge: Labels) -> Expression:
    """A number times factors as an array whose dimensions have these labels."""
    sizes = {k: n for f, ks in factors for k, n in zip(ks, f.shape, strict=True)}
    names = {k: at for at, k in enumerate(dict.fromkeys((*edge, *sizes)))}
    named = tuple((f, tuple(names[k] for k in ks)) for f, ks in factors)
    shape = tuple(sizes[k] for k in edge)
    return _expression(_reduced(Product(number_, named), len(edge)), shape)


def _compared(one: Product, two: Product) -> tuple[tuple[Factor, ...], ...]:
    """The factors of both, of the first alone, and of the second alone."""
    a, b = Counter(one.factors), Counter(two.factors)
    return tuple(tuple(c.elements()) for c in (a & b, a - b, b - a))


def _outside(one: Product, two: Product) -> tuple[Expression, list[Expression]]:
    """(what multiplies both, the numbers that are left)."""
    (p, first), (q, second) = alg.split(one.number), alg.split(two.number)
    return (
        (first, [number(p), number(q)]) if first is second else (alg.one, [one.number, two.number])
    )


def gathered(length: Callable[[Expression], int]) -> Callable[[Expression], Expression]:
    """The rule that rewrites A@x + B@x to (A + B)@x, if that is not longer by `length`."""

    def rule(node: Expression) -> Expression:
        rank = len(node.shape)
        if node.op != "sum" or not 0 < rank <= 2 or 1 in node.shape:
            return node
        terms = [alg.scale(c, t) for t, c in zip(node.args, node.data[0], strict=True)]
        chains = [t for t in terms if _is_product(t) and t.shape == node.shape]
        if not 1 < len(chains) <= MOST_TERMS:
            return node
        given = [Product(alg.one, ((t, tuple(range(rank))),)) for t in chains]
        found = eliminated(given, node.shape, merge=False)
        if len(found) == len(chains):
            return node
        parts = [_expression(_reduced(p, rank), node.shape) for p in found]
        rest = [t for t in terms if t not in chains]
        other = alg.add(*parts, *rest, number(node.data[1]))
        # One product less is worth two brackets: a product is what costs time, and what a reader has to see
        # through.
        return other if length(other) <= length(node) + BRACKETS else node

    return rule


def _is_product(term: Expression) -> bool:
    """Whether it is a product of arrays, up to scalar factors."""
    return is_call(alg.scalars_out(term)[1], "matmul", "outer", "T")


def written(terms: Iterable[Product], shape: Shape, sparse: bool = True) -> Expression:
    """The sum of terms as an expression of this shape, to which it may have to be broadcast.

    sparse: whether a table of elements is written only if it has no row of zeros.
    """
    found = eliminated(terms, shape)
    table = _stacked(found, shape, sparse) if 1 <= len(shape) <= 2 else None
    if table is not None:
        return table
    return _sum(_expression(term, shape) for term in found)


def _sum(terms: Iterable[Expression]) -> Expression:
    """The sum with transposes last: A + A.T, not A.T + A."""
    return alg.add(*sorted(terms, key=lambda t: is_call(alg.split(t)[1], "T")))


def _stacked(terms: list[Product], shape: Shape, sparse: bool) -> Expression | None:
    """Terms with a row of the identity each, as the stack of rows or elements."""
    parts: list[list[Product]] = [[] for _ in range(shape[0])]
    # A table of more rows would be longer than any einsum.
    if shape[0] > MOST_STACKED or not terms:
        return None
    for term in terms:
        units = [(f, _index_of(f[0])) for f in term.factors if f[1] == (0,)]
        found = [(f, index) for f, index in units if index is not None]
        rest = tuple(f for f in term.factors if (f, *[i for _, i in found]) not in found)
        if len(found) != 1 or any(0 in ks for _, ks in rest):
            return None
        moved = tuple((f, tuple(k - 1 for k in ks)) for f, ks in rest)
        parts[found[0][1]].append(Product(term.number, moved))
    if sparse and not all(parts):
        return None
    rows = [written(p, shape[1:], False) for p in parts]
    return stacked([alg.full(row, shape[1:]) for row in rows], shape)


def _expression(term: Product, shape: Shape) -> Expression:
    rank = len(shape)
    if rank < 3:
        made = _as_matrix(_through_diagonals(list(term.factors), rank), shape)
        if made is not None:
            return alg.multiply(term.number, made)
    weighed = _beside(list(term.factors))
    term = _Elimination(
        Product(term.number, tuple(weighed)), rank, [f for f, _ in weighed]
    ).product()
    return alg.multiply(term.number, _einsum(list(_ordered(term, rank).factors), shape))


def _through_diagonals(factors: list[Factor], rank: int) -> list[Factor]:
    """Two matrices with a vector between them as one: A@diag(v)@B."""
    for k in {k for _, ks in factors for k in ks if k >= rank}:
        near = sorted((f for f in factors if k in f[1]), key=lambda f: len(f[1]))
        # A vector between two matrices, and nothing else: sum over k of A[i, k]*v[k]*B[k, j].
        if [len(ks) for _, ks in near] != [1, 2, 2]:
            continue
        (v, _), *pair = near
        places = [ks[ks[0] == k] for _, ks in pair]
        if places[0] > places[1]:
            pair, places = pair[::-1], places[::-1]
        (a, ka), (b, kb) = pair
        middle = _weighed(a, v, b, ka[1] == k, kb[0] == k)
        rest = [f for f in factors if k not in f[1]]
        return _through_diagonals([*rest, (middle, tuple(places))], rank)
    return factors


def _weighed(a: Expression, v: Expression, b: Expression, last: bool, first: bool) -> Expression:
    """a@diag(v)@b, with `a` transposed unless `last`, and `b` unless `first`."""
    n = v.shape[0]
    inner = _times(a, call("diag", [v], (n, n)), last, True)
    return _times(inner, b, True, first)


def _as_matrix(factors: list[Factor], shape: Shape) -> Expression | None:
    """Factors without sums as a vector or a matrix; None if they are none."""
    if any(k >= len(shape) for _, ks in factors for k in ks) or any(
        len(ks) > 2 for _, ks in factors
    ):
        return None
    vectors = [alg.one] * len(shape)
    for f, ks in factors:
        if len(ks) == 1:
            vectors[ks[0]] = alg.multiply(vectors[ks[0]], f)
    if not shape:
        return alg.one
    if len(shape) == 1:
        return alg.full(vectors[0], shape)
    matrices = [(f, ks) for f, ks in factors if len(ks) == 2]
    (row, column), side = vectors, shape[0]
    if not matrices:
        return _outer(row, column, shape)
    own, labels = matrices[0]
    # Weights beside the identity are a diagonal, for all other elements are multiplied by 0.
    if is_call(own, "eye"):
        weights = alg.multiply(row, column)
        return call("diag", [alg.full(weights, (side,))], shape) if weights.shape else own
    if len(matrices) > 1:
        return None
    own = own if labels == (0, 1) else transposed(own)
    if row is not alg.one and column is not alg.one:
        return alg.multiply(own, _outer(row, column, shape))
    if row is not alg.one:
        return _times(call("diag", [row], row.shape * 2), own)
    return own if column is alg.one else _times(own, call("diag", [column], column.shape * 2))


def _outer(a: Expression, b: Expression, shape: Shape) -> Expression:
    """The outer product of two vectors; a number stands for a vector of ones."""
    if a is alg.one and b is alg.one:
        return call("ones", [], shape, [("", shape)])
    return call("outer", [alg.full(v, (n,)) for v, n in zip((a, b), shape, strict=True)], shape)


def _beside(factors: list[Factor]) -> list[Factor]:
    """The factors with vectors multiplied into matrices."""
    for p, (v, label) in enumerate(factors):
        for q, (own, labels) in enumerate(factors):
            if (
                len(label) == 1
                and len(labels) == 2
                and label[0] in labels
                and not is_call(own, "eye")
            ):
                side = v if label[0] == labels[1] else reshaped(v, (*v.shape, 1))
                rest = [f for k, f in enumerate(factors) if k not in (p, q)]
                return _beside([*rest, (alg.multiply(own, side), labels)])
    return factors


def _einsum(factors: list[Factor], shape: Shape) -> Expression:
    """The factors as an einsum; vectors are multiplied into matrices."""
    named = {k for _, ks in factors for k in ks}
    sizes = {k: shape[k : k + 1] for k in range(len(shape)) if k not in named}
    factors = [*((call("ones", [], n, [("", n)]), (k,)) for k, n in sizes.items()), *factors]
    factors = [(f.args[0], ks[::-1]) if is_call(f, "T") else (f, ks) for f, ks in factors]
    if len(factors) == 1 and sorted(factors[0][1]) == list(range(len(shape))):
        own, labels = factors[0]
        return permuted(own, own.shape, [labels.index(k) for k in range(len(shape))])
    # The result's dimensions are i, j, … in order; a vector's is j, as the row of a matrix has it in
    # textbooks.
    letters = iter(LETTERS)
    names = {k: next(letters) for k in range(len(shape))}
    if len(shape) == 1:
        names = {0: "j"}
    for k in (k for _, ks in factors for k in ks):
        if k not in names:
            names[k] = next((c for c in letters if c not in "ij"), "")
    if "" in names.values():
        raise NoExpression("the matrix of this derivative has too many dimensions")
    inner = ",".join("".join(names[k] for k in ks) for _, ks in factors)
    places: list[tuple[str, Any]] = [
        ("", f"{inner}->{''.join(names[k] for k in range(len(shape)))}")
    ]
    places += [("@", k) for k in range(len(factors))]
    return call("einsum", [alg.floating(f) for f, _ in factors], shape, places)


__all__ = ["Product", "diagonal_of", "eliminated", "rows_of_eye", "written"]
