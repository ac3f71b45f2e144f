"""The matrix or tensor of a linear map as contractions: einsum("ki,il,kl,kj,jl->ij", B, A, W, B, A).

For maps that no product of matrices expresses: a diagonal of a product with weights in between, or more
than two dimensions, such as the Hessian by a matrix. A term is a number times factors with labelled
dimensions, as in einsum: labels that the result lacks are summed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import count
from typing import Any, NamedTuple

from gradcli.symbolic import algebra as alg
from gradcli.symbolic.array_algebra import (
    axes_of,
    inverse,
    matrix_product,
    reshaped,
    total,
    transposed,
)
from gradcli.symbolic.exact_numbers import ONE, ZERO
from gradcli.symbolic.expressions import Expression, call, is_call, is_number, number
from gradcli.symbolic.spelling import NoExpression

MOST_TERMS = 16  # terms of a node; a longer formula is of no use to a reader
LETTERS = "ijklmnopqrstuvwxyzabcdefgh"  # the first for the result's dimensions

Labels = tuple[int | None, ...]


class Term(NamedTuple):
    """number * product of factors; out: the labels of the node's dimensions.

    In `out`, None stands for a broadcast dimension; a label that occurs twice makes a diagonal.
    """

    number: Expression
    factors: tuple[tuple[Expression, tuple[int, ...]], ...]
    out: Labels

    def renamed(self, old: int | None, new: int | None) -> Term:
        """The term with a label replaced."""
        named = {old: new}
        factors = tuple((f, tuple(named.get(k, k) for k in ks)) for f, ks in self.factors)
        return Term(self.number, factors, tuple(named.get(k, k) for k in self.out))  # type: ignore[arg-type]


class NoTerms(NoExpression):
    """The expression has no terms that are known here."""


class Contractions:
    """The terms of expressions that are linear in a variable of one or more dimensions.

    columns: the labels of the variable's dimensions, 0 and below. depends: whether an expression
    depends on the variable. split: the factors of a product that do not depend on it, and the one
    that does.
    """

    def __init__(
        self,
        vector: Expression,
        depends: Callable[[Expression], bool],
        split: Callable[[Expression], tuple[Expression, Expression]],
        diagonal_of: Callable[[Expression], Expression | None],
    ) -> None:
        self.vector, self.columns = vector, tuple(range(0, -len(vector.shape), -1))
        self.depends, self.split, self.diagonal_of = depends, split, diagonal_of
        self.fresh = count(1)
        self.made: dict[Expression, list[Term]] = {vector: [Term(alg.one, (), self.columns)]}

    def matrix(
        self, node: Expression, size: tuple[int, ...] | None = None, first: bool = False
    ) -> list[tuple[Expression, Any]]:
        """The matrix or tensor of the linear map, in the node's shape + the variable's shape.

        size: the shape that the node is broadcast to. first: whether the variable's dimensions come
        first. Raises NoExpression if the node has no terms.
        """
        size = node.shape if size is None else size
        shape = self.vector.shape + size if first else size + self.vector.shape
        found: list[_Written] = []
        for term in self.widened(node, size):
            made = _written(term, self.columns, shape, first)
            both = ((k, own.joined(made)) for k, own in enumerate(found))
            at, one = next(((k, one) for k, one in both if one is not None), (0, None))
            if one is None:
                found.append(made)
            else:
                found[at] = one
        return [(own.expression(shape), ONE) for own in found]

    def terms(self, node: Expression) -> list[Term]:
        """The terms of an expression that depends on the variable; cached."""
        if node not in self.made:
            found = self.find(node)
            if len(found) > MOST_TERMS:
                raise NoTerms("the matrix of this derivative has too many terms")
            self.made[node] = found
        return self.made[node]

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
            if (vector := self.diagonal_of(node)) is not None and self.depends(vector):
                return [_twice(self.labelled(t, 0)) for t in self.terms(vector)]
            handler = _CALLS.get(node.data[0])
            if handler is not None:
                return handler(self, node)
        raise NoTerms(f"no contraction goes through {node.data[0]}")

    def widened(self, node: Expression, shape: tuple[int, ...]) -> list[Term]:
        """The terms of an expression broadcast to a shape. Raises NoTerms if it is constant."""
        if not self.depends(node):
            raise NoTerms("no linear map")
        lead = len(shape) - len(node.shape)
        same = [None] * lead
        for n, wide in zip(node.shape, shape[lead:], strict=True):
            same.append(None if n != wide else n)  # type: ignore[arg-type]
        return [
            t._replace(
                out=tuple(
                    None if n is None else k
                    for n, k in zip(same, (*[None] * lead, *t.out), strict=True)
                )
            )
            for t in self.terms(node)
        ]

    def labelled(self, term: Term, dim: int) -> Term:
        """The term with a new label for a dimension that had none (None in `out`)."""
        if term.out[dim] is not None:
            return term
        out = list(term.out)
        out[dim] = next(self.fresh)
        return term._replace(out=tuple(out))

    def weighed(self, term: Term, factor: Expression, shape: tuple[int, ...]) -> Term:
        """The term times an expression that is broadcast to this shape."""
        outer, factor = alg.scalars_out(factor)
        if not factor.shape:
            outer, factor = [*outer, (factor, ONE)], alg.one
        term = term._replace(number=alg.product([(term.number, ONE), *outer]))
        labels: list[int] = []
        for dim, n in enumerate(factor.shape, len(shape) - len(factor.shape)):
            if n != 1:
                term = self.labelled(term, dim)
                labels.append(term.out[dim])  # type: ignore[arg-type]
        flat = reshaped(factor, tuple(n for n in factor.shape if n != 1))
        if not flat.shape:
            return term._replace(number=alg.multiply(term.number, flat))
        return term._replace(factors=_with(term.factors, flat, tuple(labels)))

    def product(self, node: Expression, sides: list[Expression], dims: list[int]) -> list[Term]:
        """The terms of a product of two operands, one of which depends on the variable.

        dims: the dimension of each operand that is summed over.
        """
        bound = 0 if self.depends(sides[0]) else 1
        own, other = sides[bound], sides[1 - bound]
        if self.depends(other) or max(len(s.shape) for s in sides) > 2:
            raise NoTerms("no contraction")
        found = []
        for term in self.terms(own):
            term = self.labelled(term, dims[bound])
            label = term.out[dims[bound]]
            assert label is not None
            labels = [
                label if d == dims[1 - bound] else next(self.fresh) for d in range(len(other.shape))
            ]
            left = [k for d, k in enumerate(term.out) if d != dims[bound]]
            new = [k for d, k in enumerate(labels) if d != dims[1 - bound]]
            out = (*left, *new) if bound == 0 else (*new, *left)
            outer, plain = alg.scalars_out(other)
            made = alg.product([(term.number, ONE), *outer])
            found.append(Term(made, _with(term.factors, plain, tuple(labels)), out))
        return found

    def summed(self, node: Expression, own: Expression, axes: Iterable[int]) -> list[Term]:
        """The terms of a sum over dimensions."""
        axes = tuple(axes)
        kept = [d for d in range(len(own.shape)) if d not in axes]
        found = []
        for term in self.terms(own):
            equal = 1
            for d in axes:
                equal *= own.shape[d] if term.out[d] is None else 1
            left = [term.out[d] for d in kept]
            missing = {term.out[d] for d in axes} - {*self.columns, None, *left}
            missing -= {k for _, ks in term.factors for k in ks}
            if missing:
                raise NoTerms("a sum of ones")
            out = tuple(left) if len(left) == len(node.shape) else _kept(term.out, axes)
            found.append(Term(alg.scale(number(equal).data, term.number), term.factors, out))
        return found


def _kept(out: Labels, axes: tuple[int, ...]) -> Labels:
    return tuple(None if d in axes else k for d, k in enumerate(out))


def _twice(term: Term) -> Term:
    return term._replace(out=term.out * 2)


def _with(factors: Any, factor: Expression, labels: tuple[int, ...]) -> Any:
    """The factors with one more; a transpose becomes permuted labels, and ones are dropped."""
    if is_call(factor, "T"):
        factor, labels = factor.args[0], labels[::-1]
    if is_call(factor, "ones") and all(any(k in ks for _, ks in factors) for k in labels):
        return factors
    return (*factors, (factor, labels))


# -- calls ----------------------------------------------------------------------------------------
def _matmul(maps: Contractions, node: Expression) -> list[Term]:
    a, b = node.args
    return maps.product(node, [a, b], [len(a.shape) - 1, max(len(b.shape) - 2, 0)])


def _batched(maps: Contractions, node: Expression) -> list[Term]:
    """The product of two batches of matrices."""
    rank = len(node.shape)
    bound = 0 if maps.depends(node.args[0]) else 1
    own, other = node.args[bound], node.args[1 - bound]
    if maps.depends(other) or not len(own.shape) == len(other.shape) == rank:
        raise NoTerms("no contraction")
    found = []
    for term in maps.terms(own):
        for d in (*range(rank - 2), rank - 1 - bound):
            term = maps.labelled(term, d)
        batch, free = term.out[: rank - 2], next(maps.fresh)
        inner = (term.out[rank - 1], free) if bound == 0 else (free, term.out[rank - 2])
        out = (term.out[rank - 2], free) if bound == 0 else (free, term.out[rank - 1])
        factors = _with(term.factors, other, (*batch, *inner))  # type: ignore[arg-type]
        found.append(Term(term.number, factors, (*batch, *out)))
    return found


def _permuted(maps: Contractions, node: Expression) -> list[Term]:
    dims = node.data[1][0][1]
    return [t._replace(out=tuple(t.out[d] for d in dims)) for t in maps.terms(node.args[0])]


def _unit(n: int, place: int) -> Expression:
    """A row of the identity."""
    return call("select", [_eye(n)], (n,), [("", 0), ("", place)])


def _selected(maps: Contractions, node: Expression) -> list[Term]:
    """`x[i]` as a contraction with a row of the identity."""
    (own,), ((_, dim), (_, place)) = node.args, node.data[1]
    found = []
    for term in maps.terms(own):
        if (label := term.out[dim]) is not None:
            factors = _with(term.factors, _unit(own.shape[dim], place), (label,))
            term = term._replace(factors=factors)
        found.append(term._replace(out=_without(term.out, dim)))
    return found


def _written_at(maps: Contractions, node: Expression) -> list[Term]:
    """A value written into zeros at one index: its outer product with a row of the identity."""
    (zeros, own), ((_, dim), (_, place)) = node.args, node.data[1]
    if not is_call(zeros, "zeros"):
        raise NoTerms("no linear map")
    found = []
    for term in maps.widened(own, node.shape[:dim] + node.shape[dim + 1 :]):
        label = next(maps.fresh)
        factors = _with(term.factors, _unit(node.shape[dim], place), (label,))
        found.append(Term(term.number, factors, (*term.out[:dim], label, *term.out[dim:])))
    return found


def _without(out: Labels, dim: int) -> Labels:
    return out[:dim] + out[dim % len(out) + 1 :]


def _solve(maps: Contractions, node: Expression) -> list[Term]:
    a, b = node.args
    return maps.product(node, [inverse(a), b], [1, 0])


def _outer(maps: Contractions, node: Expression) -> list[Term]:
    a, b = node.args
    first = maps.depends(a)
    own, other = (a, b) if first else (b, a)
    if maps.depends(other):
        raise NoTerms("no linear map")
    found = []
    for term in maps.terms(own):
        out = (*term.out, None) if first else (None, *term.out)
        wide = other if first else reshaped(other, (*other.shape, 1))
        found.append(maps.weighed(term._replace(out=out), wide, node.shape))
    return found


def _sum(maps: Contractions, node: Expression) -> list[Term]:
    (own,) = node.args
    dims = node.data[1][0][1] if node.data[1] else None
    return maps.summed(node, own, axes_of(dims, len(own.shape)))


def _mean(maps: Contractions, node: Expression) -> list[Term]:
    (own,) = node.args
    size = 1
    axes = axes_of(node.data[1][0][1] if node.data[1] else None, len(own.shape))
    for d in axes:
        size *= own.shape[d]
    share = number(Fraction(1, size)).data
    return [t._replace(number=alg.scale(share, t.number)) for t in maps.summed(node, own, axes)]


def _turned(maps: Contractions, node: Expression) -> list[Term]:
    return [t._replace(out=t.out[::-1]) for t in maps.terms(node.args[0])]


def _reshaped(maps: Contractions, node: Expression) -> list[Term]:
    """A reshape that adds or removes dimensions of size 1."""
    (own,) = node.args
    kept = [d for d, n in enumerate(own.shape) if n != 1]
    if [own.shape[d] for d in kept] != [n for n in node.shape if n != 1]:
        raise NoTerms("no contraction goes through reshape")
    found = []
    for term in maps.terms(own):
        left = iter([term.out[d] for d in kept])
        found.append(term._replace(out=tuple(None if n == 1 else next(left) for n in node.shape)))
    return found


def _expanded(maps: Contractions, node: Expression) -> list[Term]:
    return maps.widened(node.args[0], node.shape)


def _diagonal(maps: Contractions, node: Expression) -> list[Term]:
    (own,) = node.args
    if len(own.shape) != 2 or node.data[1] not in ([], (), (("dim1", -2), ("dim2", -1))):
        raise NoTerms("no contraction goes through diagonal")
    found = []
    for term in maps.terms(own):
        first, last = (k for k in term.out)
        if first is None or last is None:
            label = last if first is None else first
        elif first == last:
            label = first
        elif first in maps.columns and last in maps.columns:
            label = first
            term = term._replace(factors=(*term.factors, (_eye(own.shape[0]), (first, last))))
        else:
            label = last if last in maps.columns else first
            term = term.renamed(last if label == first else first, label)
        found.append(term._replace(out=(label,)))
    return found


def _where(maps: Contractions, node: Expression) -> list[Term]:
    condition, *branches = node.args
    found: list[Term] = []
    for k, branch in enumerate(branches):
        if maps.depends(condition) or not (maps.depends(branch) or is_number(branch, 0)):
            raise NoTerms("no linear map")
        if maps.depends(branch):
            sides = (alg.one, alg.zero) if k == 0 else (alg.zero, alg.one)
            mask = alg.where(condition, *sides)
            found += [maps.weighed(t, mask, node.shape) for t in maps.widened(branch, node.shape)]
    return found


def _triangle(maps: Contractions, node: Expression) -> list[Term]:
    """tril and triu are products with triangles of ones."""
    shape = node.shape
    ones = call("ones", [], shape, [("", shape)])
    mask = call(node.data[0], [ones], shape, node.data[1])
    return [maps.weighed(t, mask, shape) for t in maps.terms(node.args[0])]


_CALLS: dict[str, Callable[[Contractions, Expression], list[Term]]] = {
    "matmul": lambda maps, node: (_matmul if len(node.shape) < 3 else _batched)(maps, node),
    "dot": _matmul,
    "bmm": _batched,
    "permute": _permuted,
    "select": _selected,
    "select_scatter": _written_at,
    "outer": _outer,
    "linalg.solve": _solve,
    "sum": _sum,
    "mean": _mean,
    "T": _turned,
    "reshape": _reshaped,
    **dict.fromkeys(("expand", "expand_as"), _expanded),
    "diagonal": _diagonal,
    "where": _where,
    **dict.fromkeys(("tril", "triu"), _triangle),
}


# -- what is printed ------------------------------------------------------------------------------
def _eye(n: int) -> Expression:
    return call("eye", [], (n, n))


def _folded(term: Term, columns: tuple[int, ...]) -> Term:
    """The term with factors merged wherever a matrix product or a sum expresses them."""
    factors = list(term.factors)
    scale: list[tuple[Expression, Any]] = [(term.number, ONE)]
    while (found := _fold(factors, {*columns, *term.out})) is not None:
        places, made, labels = found
        factors = [f for k, f in enumerate(factors) if k not in places]
        outer, made = alg.scalars_out(made)
        scale += outer if made.shape else [*outer, (made, ONE)]
        if made.shape:
            factors = list(_with(factors, made, labels))
    return Term(alg.product(scale), tuple(factors), term.out)


def _fold(
    factors: list[tuple[Expression, tuple[int, ...]]], kept: set[int | None]
) -> tuple[set[int], Expression, tuple[int, ...]] | None:
    """(indices of factors, the merged factor, its labels): a diagonal, or a sum over one label."""
    within: dict[int, list[int]] = {}
    for at, (own, labels) in enumerate(factors):
        if len(labels) == 2 and labels[0] == labels[1]:
            return {at}, call("diagonal", [own], own.shape[:1]), labels[:1]
        for k in labels:
            within.setdefault(k, []).append(at)
    if (found := _beside(factors, 0)) is not None:
        return found
    for k, places in within.items():
        if k in kept or len(places) > 2:
            continue
        own, labels = factors[places[0]]
        left = tuple(n for n in labels if n != k)
        if len(places) == 1:
            axis = labels.index(k)
            return set(places), total(own, own.shape, axis, False), left
        other, more = factors[places[1]]
        if max(len(labels), len(more)) > 2:
            continue  # no product of matrices
        right = tuple(n for n in more if n != k)
        if labels[0] == more[-1] == k and left and right:  # rather than the product of transposes
            return (
                set(places),
                matrix_product(other, own, other.shape[:-1] + own.shape[1:]),
                right + left,
            )
        a = own if labels[-1] == k else transposed(own)
        b = other if more[0] == k else transposed(other)
        return set(places), matrix_product(a, b, a.shape[:-1] + b.shape[1:]), left + right
    return _beside(factors, 1)


def _beside(
    factors: list[tuple[Expression, tuple[int, ...]]], fewer: int
) -> tuple[set[int], Expression, tuple[int, ...]] | None:
    """Two factors multiplied elementwise; the second has this many labels fewer."""
    for at, (own, labels) in enumerate(factors):
        for further, (other, more) in enumerate(factors):
            if len(labels) > 2 and more != labels:
                continue  # one operand of the equation more says it
            if at != further and len(more) == len(labels) - fewer and set(more) <= set(labels):
                return {at, further}, alg.multiply(own, _aligned(other, more, labels)), labels
    return None


def _aligned(own: Expression, given: tuple[int, ...], labels: tuple[int, ...]) -> Expression:
    """A factor permuted and reshaped so that it broadcasts against one with these labels."""
    if len(given) < len(labels):
        return own if given[0] == labels[-1] else reshaped(own, (*own.shape, 1))
    return own if given == labels else transposed(own)


class _Written(NamedTuple):
    """A term as the operands of an einsum equation; square: the vector of a diagonal matrix."""

    number: Expression
    equation: str
    operands: tuple[Expression, ...]
    square: bool

    def expression(self, shape: tuple[int, ...]) -> Expression:
        """The expression, as a matrix or vector of this shape."""
        inner = shape[-1:] if self.square else shape
        made: Expression
        inside, result = self.equation.split("->")
        if inside == result:
            (made,) = self.operands
        elif self.equation == "ji->ij":
            made = transposed(self.operands[0])
        elif self.equation in ("i,j->ij", "j,i->ij"):
            a, b = self.operands if self.equation[0] == "i" else self.operands[::-1]
            made = call("outer", [a, b], inner)
        else:
            places: list[tuple[str, Any]] = [("", self.equation)]
            places += [("@", k) for k in range(len(self.operands))]
            made = call("einsum", self.operands, inner, places)
        if self.square:
            made = call("diag", [made], shape)
        return alg.product([(self.number, ONE), (made, ONE)])

    def joined(self, other: _Written) -> _Written | None:
        """Two terms as one, if they differ in one operand only."""
        if (self.equation, self.square) != (other.equation, other.square):
            return None
        apart = [
            k
            for k, (a, b) in enumerate(zip(self.operands, other.operands, strict=True))
            if a is not b
        ]
        if len(apart) > 1:
            return None
        at = apart[0] if apart else 0
        pairs = ((self.number, self.operands[at]), (other.number, other.operands[at]))
        both = alg.add(*(alg.multiply(n, v) for n, v in pairs))
        if not both.shape:
            return None
        operands = (*self.operands[:at], both, *self.operands[at + 1 :])
        return _Written(alg.one, self.equation, operands, self.square)


def _written(term: Term, columns: tuple[int, ...], shape: tuple[int, ...], first: bool) -> _Written:
    """A term as an einsum with a result of this shape; first: whether the columns come first."""
    term = _folded(term, columns)
    square = len(shape) == 2 and term.out == columns
    wanted = columns if square else columns + term.out if first else term.out + columns
    factors = list(term.factors)
    known = [k for labels in (term.out, *(ks for _, ks in factors)) for k in labels]
    fresh = count(1 + max(k for k in (0, *known) if k is not None))
    labels: list[int] = []
    for k, n in zip(wanted, shape[-len(wanted) :], strict=True):
        label = next(fresh) if k is None or k in labels else k
        if k in labels:  # a diagonal
            factors.append((_eye(n), (k, label)))
        elif k is None or (wanted.count(k) == 1 and not any(k in ks for _, ks in factors)):
            factors.append((call("ones", [], (n,), [("", (n,))]), (label,)))
        labels.append(label)
    letters = iter(LETTERS)
    names = {columns[0]: "j"} if len(labels) == 1 else {k: next(letters) for k in labels}
    for k in (k for _, ks in factors for k in ks):
        if k not in names:
            names[k] = next((c for c in letters if c not in "ij"), "")
    if "" in names.values():
        raise NoTerms("the matrix of this derivative has too many dimensions")
    inner = ",".join("".join(names[k] for k in ks) for _, ks in factors)
    equation = f"{inner}->{''.join(names[k] for k in labels)}"
    return _Written(term.number, equation, tuple(alg.floating(f) for f, _ in factors), square)


__all__ = ["Contractions", "NoTerms"]
