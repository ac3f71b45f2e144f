"""The matrix of a linear map, read off an expression that is linear in a vector.

An expression that is linear in `u` consists of few kinds of nodes: sums, products with constants, matrix
products, reductions, selections and the like. The matrix of each follows from those of its operands: if
`f(u)` has the matrix F, `w*f(u)` has `diag(w)@F`. The number 1 stands for a vector of ones of any size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from gradcli.symbolic import algebra as alg
from gradcli.symbolic.array_algebra import (
    MOST_STACKED,
    axes_of,
    inverse,
    matrix_product,
    reshaped,
    stacked,
    total,
    transposed,
)
from gradcli.symbolic.contractions import Contractions, NoTerms
from gradcli.symbolic.exact_numbers import ONE, ZERO, Number
from gradcli.symbolic.expressions import Expression, call, is_call, is_number, number, order
from gradcli.symbolic.spelling import NoExpression


# -- matrices -------------------------------------------------------------------------------------
def eye(n: int) -> Expression:
    """The identity."""
    return call("eye", [], (n, n))


def diag(vector: Expression, n: int) -> Expression:
    """The n x n diagonal matrix of a vector, or of a number that all n elements equal."""
    if not vector.shape:
        return alg.multiply(vector, eye(n))
    outer, own = alg.scalars_out(vector)
    own = alg.full(own, (n,))
    made = eye(n) if is_call(own, "ones") else call("diag", [own], (n, n))
    return alg.product([*outer, (made, ONE)])


def _band(vector: Expression, n: int, rows: int, columns: int) -> Expression:
    """The n x n matrix with a vector on one diagonal that starts at this row and column."""
    offset, length = columns - rows, n - abs(columns - rows)
    outside, own = alg.scalars_out(vector)
    own = alg.full(own, (vector.shape or own.shape)[:1])
    start, size = min(rows, columns), own.shape[0]
    if size < length:
        places = [("dim", 0), ("start", start), ("end", start + size - length)]
        zeros = call("zeros", [], (length,), [("", (length,))])
        own = call(
            "slice_scatter", [zeros, own], (length,), [p for p in places if p[1] or p[0] == "dim"]
        )
    made = call("diag", [own], (n, n), [("", offset)] if offset else [])
    return alg.product([*outside, (made, ONE)])


def outer(a: Expression, b: Expression, shape: tuple[int, int]) -> Expression:
    """The outer product of two vectors; a number stands for a vector of equal elements."""
    if is_number(a, 0) or is_number(b, 0):
        return alg.zero
    outside, left = alg.scalars_out(a)
    more, right = alg.scalars_out(b)
    outside += [(v, ONE) for v in (left, right) if not v.shape]
    left, right = (
        alg.full(v if v.shape else alg.one, (n,)) for v, n in zip((left, right), shape, strict=True)
    )
    if is_call(left, "ones") and is_call(right, "ones"):
        made = call("ones", [], shape, [("", shape)])
    else:
        made = call("outer", [left, right], shape)
    return alg.product([*outside, *more, (made, ONE)])


def _is_diag(matrix: Expression) -> bool:
    """Whether it is `diag(v)` on the main diagonal."""
    return is_call(matrix, "diag") and not matrix.data[1]


def _rows_of_eye(matrix: Expression) -> tuple[int, int] | None:
    """(first row, number of rows) if the matrix is a slice of the identity, else None."""
    if is_call(matrix, "slice") and is_call(matrix.args[0], "eye"):
        (_, dim), (_, start), (_, end), (_, step) = matrix.data[1]
        if (dim, step) == (0, 1):
            return range(matrix.args[0].shape[0])[slice(start, end)].start, matrix.shape[0]
    return None


def _factors(matrix: Expression) -> list[Expression]:
    """The factors of a matrix product."""
    if is_call(matrix, "matmul") and all(len(a.shape) == 2 for a in matrix.args):
        return [f for a in matrix.args for f in _factors(a)]
    return [matrix]


def times(a: Expression, b: Expression) -> Expression:
    """The product of two matrices; neighbouring factors are merged where that is shorter."""
    if is_number(a, 0) or is_number(b, 0):
        return alg.zero
    outside, a = alg.scalars_out(a)
    more, b = alg.scalars_out(b)
    made = [f for f in _factors(a) if not is_call(f, "eye")]
    shape = (a.shape[0], b.shape[1])
    for factor in _factors(b):
        while made and (found := _merged(made, factor)) is not None:
            scalars, factor = alg.scalars_out(found)
            outside += scalars
        if not is_call(factor, "eye"):
            made.append(factor)
    if any(f.op == "number" for f in made):
        return alg.product([*outside, *more, *((f, ONE) for f in made if f.op == "number")])
    result = made[0] if made else eye(shape[0])
    for factor in made[1:]:
        result = call("matmul", [result, factor], (shape[0], factor.shape[1]))
    return alg.product([*outside, *more, (result, ONE)])


def _merged(made: list[Expression], b: Expression) -> Expression | None:
    """Merge `b` with the last factors in `made`, which it removes; None if they have no short product."""
    a, shape = made[-1], (made[-1].shape[0], b.shape[1])
    found: Expression | None = None
    used = 1
    if is_call(b, "eye"):
        found = a
    elif _is_diag(a) and _is_diag(b):
        found = diag(alg.multiply(a.args[0], b.args[0]), shape[0])
    elif _is_reversal(b) and _is_reversal(a):
        found = eye(shape[0])
    elif _is_reversal(b) and len(made) > 1 and _is_reversal(made[-2]) and _is_triangle(a):
        found, used = turned(a), 2
    elif is_call(b, "outer"):
        found = outer(applied(a, b.args[0]), b.args[1], shape)
    elif is_call(a, "outer"):
        found = outer(a.args[0], applied(turned(b), a.args[1]), shape)
    elif (right := _rows_of_eye(b)) is not None:
        middle = a.args[0] if _is_diag(a) else None
        first = made[-2] if middle is not None and len(made) > 1 else a
        square = first.shape[0] == shape[1]
        left = _rows_of_eye(first.args[0]) if square and is_call(first, "T") else None
        if left is not None:
            own = call("ones", [], left[1:], [("", left[1:])]) if middle is None else middle
            found, used = _band(own, shape[1], left[0], right[0]), 1 if middle is None else 2
    if found is None:
        for own, terms, first_ in ((a, b, True), (b, a, False)):
            if _is_sum(terms) and _goes_in(own, terms):
                pairs = zip(terms.args, terms.data[0], strict=True)
                found = collected((times(own, t) if first_ else times(t, own), c) for t, c in pairs)
                break
    if found is not None:
        del made[-used:]
    return found


def collected(terms: Iterable[tuple[Expression, Number]]) -> Expression:
    """The sum of matrices, with `diag(a)@F + diag(b)@F` and outer products of one vector merged."""
    total_ = alg.combine(terms)
    if not _is_sum(total_) or len(total_.shape) != 2:
        return total_
    for split in (_by_diagonal, _by_right, _by_left):
        total_ = _grouped(total_, split)
        if not _is_sum(total_):
            break
    return total_


Split = Callable[[Expression], tuple[Any, Expression, Callable[[Expression], Expression]] | None]


def _grouped(total_: Expression, split: Split) -> Expression:
    """The sum with terms of equal key merged; split gives a term's key, its part, and the inverse."""
    groups: dict[Any, list[tuple[Expression, Number]]] = {}
    back: dict[Any, Callable[[Expression], Expression]] = {}
    members: dict[Any, list[tuple[Expression, Number]]] = {}
    for term, c in zip(total_.args, total_.data[0], strict=True):
        outside, core = alg.scalars_out(term)
        found = split(core)
        key, part, made = (term, alg.one, None) if found is None else found
        if made is not None:
            back[key] = made
            groups.setdefault(key, []).append((alg.product([*outside, (part, ONE)]), c))
        members.setdefault(key, []).append((term, c))
    if all(len(m) == 1 for m in members.values()):
        return total_
    return alg.combine(
        one
        for key, given in members.items()
        for one in (given if len(given) == 1 else [(back[key](alg.combine(groups[key])), ONE)])
    )


def _by_diagonal(matrix: Expression) -> Any:
    first, *rest = _factors(matrix)
    n = matrix.shape[0]
    if _is_diag(first):
        part = _plain(first.args[0])
    elif is_call(first, "eye"):
        part = alg.one
    else:
        part, rest = alg.one, [first, *rest]

    def back(vector: Expression) -> Expression:
        made = diag(vector, n)
        for factor in rest:
            made = times(made, factor)
        return made

    return ("diagonal", *map(id, rest)), part, back


def _by_right(matrix: Expression) -> Any:
    if not is_call(matrix, "outer"):
        return None
    a, b = matrix.args
    return ("right", b), _plain(a), lambda vector: outer(vector, b, matrix.shape)  # type: ignore[arg-type]


def _by_left(matrix: Expression) -> Any:
    if not is_call(matrix, "outer"):
        return None
    a, b = matrix.args
    return ("left", a), _plain(b), lambda vector: outer(a, vector, matrix.shape)  # type: ignore[arg-type]


def _goes_in(matrix: Expression, terms: Expression) -> bool:
    """Whether a factor of a sum should be distributed over its terms."""
    if _is_diag(matrix):
        return all(is_call(t, "outer") or all(map(_is_short, _factors(t))) for t in _cores(terms))
    if all(is_call(t, "eye", "outer") for t in _cores(terms)):
        return True
    piece = matrix.args[0] if is_call(matrix, "T") else matrix
    return _rows_of_eye(piece) is not None


def _is_sum(matrix: Expression) -> bool:
    """Whether it is a sum whose terms all have its shape."""
    return (
        matrix.op == "sum"
        and matrix.data[1] == ZERO
        and all(t.shape == matrix.shape for t in matrix.args)
    )


def _cores(total: Expression) -> list[Expression]:
    """The terms of a sum without their scalar factors."""
    return [alg.scalars_out(t)[1] for t in total.args]


def _is_short(matrix: Expression) -> bool:
    return is_call(matrix, "eye") or _is_diag(matrix) or _rows_of_eye(matrix) is not None


def _plain(vector: Expression) -> Expression:
    """A vector; `ones(n)` as the number 1."""
    return alg.one if is_call(vector, "ones") else vector


def applied(matrix: Expression, vector: Expression) -> Expression:
    """A matrix times a vector; a number stands for a vector of equal elements."""
    if is_number(matrix, 0):
        return alg.zero
    rows, columns = matrix.shape
    outside, own = alg.scalars_out(matrix)
    more, vector = alg.scalars_out(vector)
    vector = _plain(vector)
    if not vector.shape and vector is not alg.one:
        more, vector = [*more, (vector, ONE)], alg.one
    if outside or more:
        return alg.product([*outside, *more, (applied(own, vector), ONE)])
    if is_call(own, "eye"):
        return vector
    if _is_diag(own):
        return alg.multiply(own.args[0], vector)
    if is_call(own, "outer"):
        return alg.multiply(_plain(own.args[0]), _dot(own.args[1], vector, columns))
    if is_call(own, "matmul"):
        return applied(own.args[0], applied(own.args[1], vector))
    if _is_sum(own):
        pairs = zip(own.args, own.data[0], strict=True)
        return alg.combine((applied(t, vector), c) for t, c in pairs)
    if (index := _index_of(vector)) is not None:
        places = [("", 1), ("", index)]
        if is_call(own, "T"):
            own, places = own.args[0], _at(index)
        return call("select", [own], (rows,), places)
    if vector is alg.one:
        flat = own.args[0] if is_call(own, "T") else own
        return total(flat, flat.shape, 0 if is_call(own, "T") else 1, False)
    return matrix_product(own, alg.full(vector, (columns,)), (rows,))


def _index_of(vector: Expression) -> int | None:
    """The index of the row of the identity that a vector is, else None."""
    if is_call(vector, "select") and is_call(vector.args[0], "eye"):
        return int(vector.data[1][1][1])
    return None


def _weighed(a: Expression, b: Expression, n: int) -> Expression:
    """The elementwise product of two vectors of n elements; one may be a row of the identity."""
    for unit, own in ((a, b), (b, a)):
        if _index_of(unit) is not None:
            return alg.multiply(_dot(unit, own, n), unit)
    return alg.multiply(a, b)


def _dot(a: Expression, b: Expression, n: int) -> Expression:
    """The dot product of two vectors of n elements."""
    if _index_of(a) is None and _index_of(b) is not None:
        a, b = b, a
    if (index := _index_of(a)) is not None:
        other = _index_of(b)
        if other is not None or not _plain(b).shape:
            return _plain(b) if other is None else number(int(index == other))
        return call("select", [alg.full(b, (n,))], (), _at(index))
    if a.shape and b.shape and not is_call(a, "ones") and not is_call(b, "ones"):
        outside, a = alg.scalars_out(a)
        more, b = alg.scalars_out(b)
        made = call("dot", [alg.full(a, (n,)), alg.full(b, (n,))], ())
        return alg.product([*outside, *more, (made, ONE)])
    kept = [v for v in (a, b) if not is_call(v, "ones")]
    return total(alg.multiply(*kept) if kept else alg.one, (n,), None, False)


def turned(matrix: Expression) -> Expression:
    """The transpose, distributed over sums and products: (A@B).T is B.T@A.T."""
    if is_number(matrix, 0):
        return alg.zero
    outside, own = alg.scalars_out(matrix)
    if outside:
        return alg.product([*outside, (turned(own), ONE)])
    if _is_diag(own) or _is_reversal(own):
        return own
    if is_call(own, "diag"):
        return call("diag", own.args, own.shape, [("", -own.data[1][0][1])])
    if is_call(own, "roll") and is_call(own.args[0], "eye"):
        return _rolled_eye(tuple(-n for n in own.data[1][0][1]), own.shape[0])
    if _is_triangle(own):
        return call("triu" if own.data[0] == "tril" else "tril", own.args, own.shape)
    if _is_sum(own):
        pairs = zip(own.args, own.data[0], strict=True)
        return collected((turned(t), c) for t, c in pairs)
    if is_call(own, "matmul"):
        made = eye(own.shape[1])
        for factor in reversed(_factors(own)):
            made = times(made, turned(factor))
        return made
    if own.op == "product" and not any(isinstance(e, Expression) for e in own.data[1]):
        pairs = zip(own.args, own.data[1], strict=True)
        made = alg.product([(_turned(b), e) for b, e in pairs], own.data[0])
        return made if len(made.shape) == 2 else reshaped(made, own.shape[::-1])
    return transposed(own)


def _turned(factor: Expression) -> Expression:
    """The transpose of one factor."""
    if len(factor.shape) == 1:
        return reshaped(factor, (*factor.shape, 1))
    if len(factor.shape) == 2 and factor.shape[1] == 1:
        return reshaped(factor, factor.shape[:1])
    return turned(factor) if factor.shape else factor


# -- maps -----------------------------------------------------------------------------------------
Handler = Callable[["LinearMaps", Expression], Expression]


class LinearMaps:
    """The matrices of expressions that are linear in `vector`, in node.shape + vector.shape.

    Raises NoExpression for an expression whose matrix is not known here.
    """

    def __init__(self, vector: Expression) -> None:
        self.vector, self.size = vector, vector.shape[0]
        self.made: dict[Expression, Expression] = {vector: eye(self.size)}
        self.depend: dict[Expression, bool] = {vector: True}
        self.contracted = Contractions(vector, self.depends, self.split, _on_diagonal)

    def depends(self, node: Expression) -> bool:
        """Whether an expression depends on the vector."""
        if node not in self.depend:
            for part in order([node]):
                if part not in self.depend:
                    self.depend[part] = any(self.depend[p] for p in part.parts)
        return self.depend[node]

    def matrix(self, root: Expression) -> Expression:
        """The matrix of a vector, or the row of a scalar; 0 if it does not depend on the vector."""
        if not self.depends(root):
            return alg.zero
        if root not in self.made:
            for node in order([root]):
                if node in self.made or len(node.shape) > 1 or not self.depends(node):
                    continue
                if not is_call(node, "[]"):
                    self.made[node] = self._made(node)
        return self.made[root]

    def _made(self, node: Expression) -> Expression:
        if node.op == "sum":
            if node.data[1] != ZERO:
                raise no_matrix(node)
            pairs = zip(node.args, node.data[0], strict=True)
            return collected((self.widened(t, node.shape), c) for t, c in pairs)
        if node.op == "product":
            rest, own = self.split(node)
            return self.scaled(rest, own, node.shape)
        handler = _CALLS.get(node.data[0])
        if handler is None:
            raise no_matrix(node)
        try:
            return handler(self, node)
        except NoExpression as error:
            try:
                return collected(self.contracted.matrix(node))
            except NoTerms:
                raise error from None

    def split(self, node: Expression) -> tuple[Expression, Expression]:
        """(the product of the factors that do not depend on the vector, the one factor that does)."""
        coefficient, exponents = node.data
        pairs = list(zip(node.args, exponents, strict=True))
        bound = [(b, e) for b, e in pairs if self.depends(b)]
        if len(bound) != 1 or bound[0][1] != ONE:
            raise no_matrix(node)
        return alg.product([p for p in pairs if p != bound[0]], coefficient), bound[0][0]

    def widened(self, node: Expression, shape: tuple[int, ...]) -> Expression:
        """The matrix of an expression that is broadcast to a shape."""
        found = self.matrix(node)
        if node.shape == shape or is_number(found, 0):
            return found
        if len(shape) != 1 or len(node.shape) > 1:
            raise no_matrix(node)
        if not node.shape and shape == (1,) and found.shape:
            return reshaped(found, (1, self.size))
        return outer(alg.one, _flat(found), (shape[0], self.size))

    def scaled(self, rest: Expression, own: Expression, shape: tuple[int, ...]) -> Expression:
        """The matrix of rest*own."""
        if rest.shape == (1,):
            rest = reshaped(rest, ())
        if not rest.shape:
            return alg.multiply(rest, self.widened(own, shape))
        if len(rest.shape) > 1 or rest.shape != shape:
            raise no_matrix(own)
        if not own.shape:
            return outer(rest, self.matrix(own), (shape[0], self.size))
        return times(diag(rest, shape[0]), self.widened(own, shape))

    def row(self, weights: Expression, own: Expression) -> Expression:
        """The row of sum(weights*own), where the vector `own` depends on `self.vector`."""
        return applied(turned(self.matrix(own)), weights)

    # -- matrix products -------------------------------------------------------------------
    def product(self, own: Expression, vector: Expression, flip: bool = False) -> Expression:
        """The matrix of `own@vector` (flip: `own.T@vector`), where `own` depends on `self.vector`."""
        shape = own.shape[::-1] if flip else own.shape
        n = shape[0]
        if not self.depends(own):
            return alg.zero
        if own.op == "sum" and own.data[1] == ZERO:
            pairs = zip(own.args, own.data[0], strict=True)
            return collected((self._broad(alg.one, t, shape, vector, flip), c) for t, c in pairs)
        if own.op == "product":
            rest, inner = self.split(own)
            return self._broad(rest, inner, shape, vector, flip)
        if is_call(own, "T"):
            return self.product(own.args[0], vector, not flip)
        if is_call(own, "outer"):
            a, b = own.args[::-1] if flip else own.args
            if self.depends(a):
                return alg.multiply(_dot(b, vector, shape[1]), self.matrix(a))
            return outer(a, self.row(vector, b), (n, self.size))
        if is_call(own, "matmul") and all(len(a.shape) == 2 for a in own.args):
            a, b = own.args[::-1] if flip else own.args
            if self.depends(a):
                inner = turned(b) if flip else b
                return self.product(a, applied(inner, vector), flip)
            return times(turned(a) if flip else a, self.product(b, vector, flip))
        if is_call(own, "reshape") and len(own.args[0].shape) == 1 and 1 in own.shape:
            (inner,) = own.args
            if shape[1] == 1:
                return alg.multiply(_dot(vector, alg.one, 1), self.matrix(inner))
            return outer(alg.one, self.row(vector, inner), (1, self.size))
        if is_call(own, "linalg.solve") and not flip and not self.depends(own.args[0]):
            return _solution(own, self.depends, self.product(own.args[1], vector))
        if (filled := _on_diagonal(own)) is not None:
            return times(diag(vector, n), self.matrix(filled))
        return self.product(_as_product(own), vector, flip)

    def _broad(
        self,
        rest: Expression,
        own: Expression,
        shape: tuple[int, ...],
        vector: Expression,
        flip: bool,
    ) -> Expression:
        """The matrix of `(rest*own)@vector`, by how either is broadcast to two dimensions."""
        n = shape[0]
        rest, own = (reshaped(v, ()) if math.prod(v.shape) == 1 else v for v in (rest, own))
        kinds = (_spread(rest, shape, flip), _spread(own, shape, flip))
        if kinds[0] == "row":  # scales the vector instead
            vector, rest = _weighed(vector, _flat(rest), shape[1]), alg.one
        elif kinds[0] == "column":
            inner = self._broad(alg.one, own, shape, vector, flip)
            return times(diag(_flat(rest), n), inner)
        elif kinds[0] == "number":
            return alg.multiply(rest, self._bare(own, kinds[1], shape, vector, flip))
        if not rest.shape:
            return self._bare(own, kinds[1], shape, vector, flip)
        if own.op == "sum" and own.data[1] == ZERO:
            pairs = zip(own.args, own.data[0], strict=True)
            return collected((self._broad(rest, t, shape, vector, flip), c) for t, c in pairs)
        if own.op == "product":
            more, own = self.split(own)
            return self._broad(alg.multiply(rest, more), own, shape, vector, flip)
        if is_call(own, "T"):
            return self._broad(turned(rest), own.args[0], shape, vector, not flip)
        weights = turned(rest) if flip else rest
        if kinds[1] == "number":
            return outer(applied(weights, vector), self.matrix(own), (n, self.size))
        if kinds[1] == "column":
            return times(diag(applied(weights, vector), n), self.matrix(_flat(own)))
        if kinds[1] == "row":
            scaled = times(weights, diag(vector, shape[1]))
            return times(scaled, self.matrix(_flat(own)))
        if is_call(own, "outer"):
            a, b = own.args[::-1] if flip else own.args
            if self.depends(a):
                spread = applied(weights, _weighed(b, vector, shape[1]))
                return times(diag(spread, n), self.matrix(a))
            scaled = times(times(diag(a, n), weights), diag(vector, shape[1]))
            return times(scaled, self.matrix(b))
        if is_call(own, "slice") or (
            is_call(own, "slice_scatter") and is_call(own.args[0], "zeros")
        ):
            return self.product(_inside(rest, own), vector, flip)
        return self._broad(rest, _as_product(own), shape, vector, flip)

    def _bare(
        self, own: Expression, kind: str, shape: tuple[int, ...], vector: Expression, flip: bool
    ) -> Expression:
        if kind == "full":
            return self.product(own, vector, flip)
        n = shape[0]
        if kind == "row":
            return outer(alg.one, self.row(vector, _flat(own)), (n, self.size))
        summed = _dot(vector, alg.one, shape[1])
        if kind == "column":
            return alg.multiply(summed, self.matrix(_flat(own)))
        return outer(summed, self.matrix(own), (n, self.size))


def _as_product(own: Expression) -> Expression:
    """Selecting or writing rows or columns of a matrix, as products with rows of the identity."""
    if len(own.shape) != 2 or not is_call(own, "slice", "slice_scatter", "select_scatter"):
        raise no_matrix(own)
    if is_call(own, "slice"):
        dim, *places = (v for _, v in own.data[1])
        return _moved_by(_rows(own.args[0].shape[dim], own.shape[dim], places), own.args[0], dim)
    base, inner = own.args
    if is_call(own, "select_scatter"):
        dim, index = (v for _, v in own.data[1])
        unit = chosen = _unit(index, own.shape[dim])
        made = call("outer", [inner, unit] if dim % 2 else [unit, inner], own.shape)
    else:
        dim, places = _places(own)
        rows = _rows(own.shape[dim], inner.shape[dim], places)
        chosen, made = total(rows, rows.shape, 0, False), _moved_by(turned(rows), inner, dim)
    if is_call(base, "zeros"):
        return made
    left = alg.full(alg.subtract(alg.one, chosen), chosen.shape)
    kept = alg.multiply(left if dim % 2 else reshaped(left, (*left.shape, 1)), base)
    return kept if _is_zero(inner) else alg.add(kept, made)


def _rows(n: int, count: int, places: Iterable[Any]) -> Expression:
    """Rows of the identity: places are their start, end and step."""
    return call("slice", [eye(n)], (count, n), [("", v) for v in (0, *places)])


def _places(own: Expression) -> tuple[int, list[Any]]:
    """(dimension, [start, end, step]) of a slice_scatter."""
    given: dict[str, Any] = {"dim": 0, "start": None, "end": None, "step": 1}
    given |= {k or "dim": v for k, v in own.data[1]}
    return given["dim"], [given[k] for k in ("start", "end", "step")]


def _moved_by(rows: Expression, own: Expression, dim: int) -> Expression:
    """The product of `own` with a matrix that acts on its dimension `dim`."""
    a, b = (own, turned(rows)) if dim % 2 else (rows, own)
    return call("matmul", [a, b], (a.shape[0], b.shape[1]))


def _inside(rest: Expression, own: Expression) -> Expression:
    """rest*own with `rest` moved into the operand of a slice, or of a write into zeros."""
    if is_call(own, "slice"):
        (inner,) = own.args
        names = ("dim", "start", "end", "step")
        places = [(n, v) for n, (_, v) in zip(names, own.data[1], strict=True)]
        zeros = call("zeros", [], inner.shape, [("", inner.shape)])
        wide = call("slice_scatter", [zeros, rest], inner.shape, places)
        return call("slice", [alg.multiply(wide, inner)], own.shape, own.data[1])
    zeros, inner = own.args
    dim, places = _places(own)
    piece = call("slice", [rest], inner.shape, [("", v) for v in (dim, *places)])
    return call(own.data[0], [zeros, alg.multiply(piece, inner)], own.shape, own.data[1])


def _unit(index: int, n: int) -> Expression:
    """A row of the identity; the index may be negative."""
    return call("select", [eye(n)], (n,), _at(index % n))


def _spread(own: Expression, shape: tuple[int, ...], flip: bool) -> str:
    """How an operand broadcasts to a matrix of this shape: as a number, a row, a column or in full."""
    given = (1,) * (2 - len(own.shape)) + own.shape
    seen = given[::-1] if flip else given
    if not own.shape:
        return "number"
    if len(given) > 2:
        raise no_matrix(own)
    if seen == shape and 1 not in shape:
        return "full"
    return "column" if seen[0] == shape[0] and (shape[1] == 1 or seen[0] != 1) else "row"


def _flat(own: Expression) -> Expression:
    """A matrix of one row or one column as a vector."""
    return own if len(own.shape) < 2 else reshaped(own, (math.prod(own.shape),))


def no_matrix(node: Expression) -> NoExpression:
    """The error for an expression whose matrix is not known."""
    what = node.data[0] if node.op == "call" else f"a {node.op}"
    return NoExpression(f"the matrix of this derivative has no formula: it goes through {what}")


def _is_reversal(matrix: Expression) -> bool:
    """Whether it is the identity with its rows reversed."""
    return is_call(matrix, "flip") and is_call(matrix.args[0], "eye")


def _is_triangle(matrix: Expression) -> bool:
    """Whether it is a triangle of ones, which computes running sums from either end."""
    if not is_call(matrix, "tril", "triu") or matrix.data[1]:
        return False
    return is_call(matrix.args[0], "ones") and matrix.shape == matrix.shape[::-1]


# -- calls ----------------------------------------------------------------------------------------
def _at(index: int) -> list[tuple[str, Any]]:
    return [("", 0), ("", index)]


def _matmul(maps: LinearMaps, node: Expression) -> Expression:
    a, b = node.args
    if maps.depends(a) == maps.depends(b):
        raise no_matrix(node)
    if len(a.shape) == 2 and len(b.shape) == 1:
        return maps.product(a, b) if maps.depends(a) else times(a, maps.matrix(b))
    if len(a.shape) == 1 and len(b.shape) == 2:
        return times(turned(b), maps.matrix(a)) if maps.depends(a) else maps.product(b, a, True)
    raise no_matrix(node)


def _dotted(maps: LinearMaps, node: Expression) -> Expression:
    a, b = node.args
    if maps.depends(a) == maps.depends(b):
        raise no_matrix(node)
    return maps.row(b, a) if maps.depends(a) else maps.row(a, b)


def _summed(maps: LinearMaps, node: Expression) -> Expression:
    (own,) = node.args
    given = [v for _, v in node.data[1]]
    if len(own.shape) > 2:
        raise no_matrix(node)
    if len(own.shape) < 2:
        row = maps.row(alg.one, own)
        return reshaped(row, (1, maps.size)) if node.shape else row
    if len(given) > 1:
        raise no_matrix(node)
    axes = axes_of(given[0] if given else None, 2)
    if len(axes) == 1:
        return maps.product(own, alg.one, flip=axes[0] == 0)
    return applied(turned(maps.product(own, alg.one)), alg.one)


def _mean(maps: LinearMaps, node: Expression) -> Expression:
    (own,) = node.args
    if len(own.shape) != 1 or node.data[1]:
        raise no_matrix(node)
    return alg.multiply(number(Fraction(1, own.shape[0])), maps.row(alg.one, own))


def _rolled(maps: LinearMaps, node: Expression) -> Expression:
    """The matrix of `roll`: the identity with its rows rolled."""
    if len(node.shape) != 1 or [k for k, _ in node.data[1]][:1] != ["shifts"]:
        raise no_matrix(node)
    return times(_rolled_eye(node.data[1][0][1], node.shape[0]), maps.matrix(node.args[0]))


def _rolled_eye(shifts: Any, n: int) -> Expression:
    return call("roll", [eye(n)], (n, n), [("shifts", shifts), ("dims", (0,))])


def _of_rows(node: Expression) -> list[tuple[str, Any]]:
    """The options of a call on a vector, changed so that it acts on the first dimension of a matrix."""
    turned_: dict[Any, Any] = {-1: 0, (-1,): (0,)}
    places = "dim dims".split()
    return [
        (k, turned_.get(v, v) if k in places or (k == "" and i == 0) else v)
        for i, (k, v) in enumerate(node.data[1])
    ]


def _picked(maps: LinearMaps, node: Expression) -> Expression:
    """The matrix of a selection: the same rows, selected from the operand's matrix."""
    own = node.args[0]
    word, options = node.data[0], _of_rows(node)
    if word == "select" and len(own.shape) == 2:
        (_, dim), (_, index) = node.data[1]
        return maps.product(own, _unit(index, own.shape[dim]), flip=dim % 2 == 0)
    if len(own.shape) != 1 or any(maps.depends(a) for a in node.args[1:]):
        raise no_matrix(node)
    if word in ("gather", "index_select"):
        word, options = "index", []
    n = own.shape[0]
    rows = call(word, [eye(n), *node.args[1:]], (*node.shape, n), options)
    return times(rows, maps.matrix(own)) if node.shape else _entry(maps.matrix(own), options)


def _ones(*shape: int) -> Expression:
    return call("ones", [], shape, [("", shape)])


def _entry(matrix: Expression, options: Any) -> Expression:
    """A row of a matrix."""
    if is_number(matrix, 0):
        return alg.zero
    outside, own = alg.scalars_out(matrix)
    made = call("select", [own], own.shape[1:], options)
    return alg.product([*outside, (made, ONE)])


def _cumsum(maps: LinearMaps, node: Expression) -> Expression:
    n = node.shape[0]
    return times(call("tril", [_ones(n, n)], (n, n)), maps.matrix(node.args[0]))


def _scattered(maps: LinearMaps, node: Expression) -> Expression:
    """The matrix of a write into zeros: the transpose of the selection."""
    base, *places, own = node.args
    word, options = node.data[0], _of_rows(node)
    if len(node.shape) != 1 or any(map(maps.depends, places)):
        raise no_matrix(node)
    n = node.shape[0]
    if maps.depends(base) and word in ("select_scatter", "slice_scatter"):
        return _overwritten(maps, node)
    if not is_call(base, "zeros"):
        raise no_matrix(node)
    if word == "select_scatter":
        shape = (n, maps.size)
        zeros = call("zeros", [], shape, [("", shape)])
        row = alg.full(maps.matrix(own), shape[1:])
        return alg.zero if is_call(row, "zeros") else call(word, [zeros, row], shape, options)
    if word == "slice_scatter":
        rows = _rows(n, own.shape[0], _places(node)[1])
    elif word in _ADDING and [k for k, _ in options] != _ADDING[word]:
        raise no_matrix(node)
    else:
        (index,) = places[0].args if is_call(places[0], "()") else places
        rows = call("index", [eye(n), index], (*own.shape, n))
    return times(turned(rows), maps.widened(own, own.shape))


# The options with which a write adds up what goes to one place.
_ADDING = {"index_put": [""], "index_add": ["@", "", "@", "@"]}


def _is_zero(own: Expression) -> bool:
    while is_call(own, "tensor", "float"):
        (own,) = own.args
    return is_number(own, 0) or is_call(own, "zeros")


def _overwritten(maps: LinearMaps, node: Expression) -> Expression:
    """The matrix of a vector with pieces overwritten: its rows are overwritten in the same way."""
    base, own = node.args
    if not maps.depends(own) and not _is_zero(own):
        raise no_matrix(node)
    shape = (*node.shape, maps.size)
    parts = [alg.full(maps.matrix(v), (*v.shape, maps.size)) for v in (base, own)]
    return call(node.data[0], parts, shape, _of_rows(node))


def _solved(maps: LinearMaps, node: Expression) -> Expression:
    if len(node.args[1].shape) != 1:
        raise no_matrix(node)
    return _solution(node, maps.depends, maps.matrix(node.args[1]))


def _solution(node: Expression, depends: Callable[[Expression], bool], b: Expression) -> Expression:
    """The node, a linear solve, with the matrix `b` as its right side."""
    a = node.args[0]
    if is_number(b, 0):
        return alg.zero
    if depends(a) or node.data[1] or len(a.shape) != 2:
        raise no_matrix(node)
    if not is_call(b, "eye"):
        outside, b = alg.scalars_out_of_floats(b)
        return alg.product([*outside, (call("linalg.solve", [a, b], b.shape), ONE)])
    return turned(inverse(a.args[0])) if is_call(a, "T") else inverse(a)


def _expanded(maps: LinearMaps, node: Expression) -> Expression:
    return maps.widened(node.args[0], node.shape)


def _reshaped(maps: LinearMaps, node: Expression) -> Expression:
    (own,) = node.args
    if len(own.shape) == 2 and 1 in own.shape and len(node.shape) == 1:
        return maps.product(own, alg.one, flip=own.shape[0] == 1)
    if own.shape == (1,) and not node.shape:
        return _flat(maps.matrix(own))
    if own.shape == (1, 1) and not node.shape:
        return _flat(maps.product(own, alg.one))
    if len(own.shape) > 1 or len(node.shape) > 1:
        raise no_matrix(node)
    return maps.widened(own, node.shape)


def _diagonal(maps: LinearMaps, node: Expression) -> Expression:
    if node.data[1] not in ([], (), (("dim1", -2), ("dim2", -1))) or len(node.args[0].shape) != 2:
        raise no_matrix(node)
    return _of_diagonal(maps, node.args[0], node)


def _of_diagonal(maps: LinearMaps, own: Expression, node: Expression) -> Expression:
    """The matrix of the diagonal of a square matrix that depends on the vector."""
    n = node.shape[0]
    if not maps.depends(own):
        return alg.zero
    if own.op == "sum" and own.data[1] == ZERO:
        pairs = zip(own.args, own.data[0], strict=True)
        return collected((_of_diagonal(maps, t, node), c) for t, c in pairs)
    if is_call(own, "T"):
        return _of_diagonal(maps, own.args[0], node)
    if is_call(own, "outer"):
        a, b = own.args if maps.depends(own.args[0]) else own.args[::-1]
        return times(diag(b, n), maps.matrix(a))
    if own.op == "product":
        rest, inner = maps.split(own)
        if not rest.shape and inner.shape == own.shape:
            return alg.multiply(rest, _of_diagonal(maps, inner, node))
    factors = _factors(own)
    bound = [k for k, f in enumerate(factors) if maps.depends(f)]
    if len(bound) != 1:
        raise no_matrix(node)
    middle, after = factors[bound[0]], factors[bound[0] + 1 :]
    before = factors[: bound[0]]
    if middle.op == "product":  # W*(D@B) with a diagonal D is D@(W*B), W*(B@D) is (W*B)@D
        rest, inner = maps.split(middle)
        parts = _factors(inner)
        if rest.shape == middle.shape and len(parts) > 1:
            if maps.depends(parts[0]) and _on_diagonal(parts[0]) is not None:
                middle, *others = parts
                after = [alg.multiply(rest, _chained(others, middle.shape[1])), *after]
            elif maps.depends(parts[-1]) and _on_diagonal(parts[-1]) is not None:
                *others, middle = parts
                before = [*before, alg.multiply(rest, _chained(others, inner.shape[0]))]
    left = _chained(before, n)
    right = turned(_chained(after, middle.shape[1]))
    vector = _on_diagonal(middle)
    if vector is not None:
        return times(alg.multiply(left, right), maps.matrix(vector))
    if not is_call(middle, "outer"):
        raise no_matrix(node)
    a, b = middle.args
    if maps.depends(b):
        left, right, a, b = right, left, b, a
    return times(diag(applied(right, b), n), times(left, maps.matrix(a)))


def _on_diagonal(matrix: Expression) -> Expression | None:
    """The vector of a square diagonal matrix, else None."""
    own = matrix.args[0] if is_call(matrix, "T") else matrix
    written = is_call(own, "diagonal_scatter") and is_call(own.args[0], "zeros")
    if not (written or is_call(own, "diag", "diag_embed")) or len(own.shape) != 2:
        return None
    vector = own.args[-1]
    plain = all(
        (k, v) in (("", 0), ("dim1", -2), ("dim2", -1), ("offset", 0)) for k, v in own.data[1]
    )
    return vector if plain and own.shape == vector.shape * 2 else None


def _chained(factors: Iterable[Expression], n: int) -> Expression:
    made = eye(n)
    for factor in factors:
        made = times(made, factor)
    return made


def _logarithmic(word: str) -> Handler:
    """The handler of `xlogy` and its like, which are linear in the first argument."""

    def handle(maps: LinearMaps, node: Expression) -> Expression:
        a, b = node.args
        if maps.depends(b):
            raise no_matrix(node)
        return maps.scaled(alg.function(word, b), a, node.shape)

    return handle


def _where(maps: LinearMaps, node: Expression) -> Expression:
    condition, *branches = node.args
    if maps.depends(condition):
        raise no_matrix(node)
    made = []
    for k, branch in enumerate(branches):
        if not maps.depends(branch):
            if not is_number(branch, 0):
                raise no_matrix(node)
            continue
        sides = (alg.one, alg.zero) if k == 0 else (alg.zero, alg.one)
        made.append(maps.scaled(alg.where(condition, *sides), branch, node.shape))
    return collected((m, ONE) for m in made)


def _listed(maps: LinearMaps, node: Expression) -> Expression:
    """The matrix of a `stack` of numbers or a `cat` of vectors."""
    (listed,) = node.args
    if node.data[1] or len(node.shape) != 1:
        raise no_matrix(node)
    rows = [alg.full(maps.matrix(a), (*a.shape, maps.size)) for a in listed.args]
    return call(node.data[0], [call("[]", rows, ())], (*node.shape, maps.size))


def _tensor(maps: LinearMaps, node: Expression) -> Expression:
    return maps.matrix(node.args[0])


_CALLS: dict[str, Handler] = {
    "matmul": _matmul,
    "dot": _dotted,
    "sum": _summed,
    "mean": _mean,
    "cumsum": _cumsum,
    "roll": _rolled,
    **dict.fromkeys(("select", "slice", "flip", "index", "gather", "index_select"), _picked),
    **dict.fromkeys(
        "select_scatter slice_scatter index_put index_add scatter scatter_add".split(),
        _scattered,
    ),
    "linalg.solve": _solved,
    **dict.fromkeys(("expand", "expand_as"), _expanded),
    "full_like": lambda maps, node: maps.widened(node.args[1], node.shape),
    "reshape": _reshaped,
    "diagonal": _diagonal,
    "xlogy": _logarithmic("log"),
    "special.xlog1py": _logarithmic("log1p"),
    "where": _where,
    **dict.fromkeys(("stack", "cat"), _listed),
    **dict.fromkeys(("detach", "float"), _tensor),
}


# -- entries --------------------------------------------------------------------------------------
def written_out(node: Expression) -> Expression:
    """Rows written into zeros one by one, as their stack; likewise for the entries of a row."""
    if node.op == "sum" and node.data[1] != ZERO:
        return node
    if len(node.shape) == 2 and node.shape[0] <= MOST_STACKED:
        return _pieces(node, _row_of)
    if len(node.shape) == 1 and node.shape[0] <= MOST_STACKED:
        return _pieces(node, _entry_of)
    return node


def _pieces(node: Expression, piece_of: Callable[[Expression], Any]) -> Expression:
    coefficients = node.data[0] if node.op == "sum" else [ONE]
    terms = node.args if node.op == "sum" else [node]
    parts: list[list[tuple[Expression, Number]]] = [[] for _ in range(node.shape[0])]
    for term, c in zip(terms, coefficients, strict=True):
        found = piece_of(term)
        if found is None:
            return node
        index, piece = found
        parts[index % node.shape[0]].append((piece, c))
    if not any(parts):
        return node
    rest = node.shape[1:]
    items = [alg.full(written_out(alg.combine(p)), rest) for p in parts]
    return stacked(items, node.shape)


def _row_of(term: Expression) -> tuple[int, Expression] | None:
    """(index, row) of a matrix with a single non-zero row, else None."""
    outside, own = alg.scalars_out(term)
    if not is_call(own, "select_scatter") or not is_call(own.args[0], "zeros"):
        return None
    if own.data[1][0][1] != 0:
        return None
    return own.data[1][1][1], alg.product([*outside, (own.args[1], ONE)])


def _entry_of(term: Expression) -> tuple[int, Expression] | None:
    """(index, entry) of a row with a single non-zero entry, else None."""
    outside, own = alg.scalars_out(term)
    if is_call(own, "select") and is_call(own.args[0], "eye"):
        return own.data[1][1][1], alg.product(outside) if outside else alg.one
    return None


__all__ = ["LinearMaps", "turned", "written_out"]
