"""Jacobians and Hessians as formulas.

The gradient of sum(u*f(x)) is linear in u: what it multiplies u by is the transposed Jacobian of f, and
that of the gradient of a scalar is the Hessian. So a matrix is read off what the engine's own backward
pass leaves, as every derivative is, and no rule of an operator is written a second time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np

from gradcli.core.tensor import Tensor
from gradcli.language import run
from gradcli.language.program import Program
from gradcli.symbolic import simplify as alg
from gradcli.symbolic.array_algebra import stacked
from gradcli.symbolic.canonicalisation import canonicalise, simplified
from gradcli.symbolic.differentiate import (
    Derivatives,
    first_order,
    positions,
    reading,
    released,
    slope,
)
from gradcli.symbolic.expressions import Expression, call, is_call, is_number, name, order
from gradcli.symbolic.generic_points import Arrays
from gradcli.symbolic.linear_maps import LinearMaps, turned, written_out
from gradcli.symbolic.proof import Claim
from gradcli.symbolic.rewriting import rewrite
from gradcli.symbolic.spelling import NoExpression
from gradcli.transforms import autograd_functional, traced_matrices

SEED = "#u"  # no name of the language: the vector that the rows are added up with
LAST = 10**6  # its place among factors
MOST = 10**6  # numbers of a matrix that is proved, by all of them


class Blocks(Derivatives):
    """Arrays of derivatives: `by` has them under "x", or "x.y" where there are several variables.

    kind: "Jacobian", "Hessian", or "partial" of a higher order. blocks: the variables of each of `by`.
    skipped: the variables whose block has more dimensions than a matrix and no formula.
    """

    __slots__ = ("blocks", "kind", "skipped")

    def __init__(
        self,
        base: Derivatives,
        kind: str,
        by: dict[str, Expression],
        blocks: Mapping[str, tuple[str, ...]],
        skipped: Sequence[str] = (),
    ) -> None:
        value = rewrite(base.value, released)
        super().__init__(base.program, base.variables, value, by, base.shape, base.branched)
        self.kind = kind
        self.blocks, self.skipped = {k: p for k, p in blocks.items() if k in by}, skipped


class Source(NamedTuple):
    """What matrices are read from: a program, its variables as arrays, and how it may be read."""

    program: Program
    arrays: Mapping[str, Any]
    nan_guards: bool
    follow: bool

    def size(self, word: str) -> tuple[int, ...]:
        """The shape of a variable."""
        return tuple(np.shape(self.arrays[word]))

    def slope(
        self, expression: Expression, word: str, rows: tuple[int, ...] | None = None
    ) -> tuple[Expression, Expression]:
        """As `derivative.slope`; rows: the shape of the vector that the expression is multiplied by."""
        arrays, places = self.arrays, positions(self.program)
        if rows is not None:
            ramp = np.linspace(0.5, 1.5, math.prod(rows)).reshape(rows)
            arrays, places = {**arrays, SEED: ramp}, {**places, SEED: LAST}
        return slope(expression, arrays, word, places, self.nan_guards, False, self.follow)


def _own(base: Derivatives) -> Derivatives:
    """The same; refused where the value's formula has slopes that the tape has not."""
    if base.beyond:
        raise NoExpression(
            "what as_strided reads outside of its operand has no matrix of derivatives as a formula"
        )
    return base


def partials(
    program: Program,
    variables: Mapping[str, Any],
    wrt: Iterable[str] | None = None,
    *,
    order: int = 2,
    follow: bool = False,
    names: Mapping[str, Any] | None = None,
    nan_guards: bool = False,
) -> Blocks:
    """Every partial derivative of an order of a program's value by its variables, each mixed one once.

    Shapes are x.shape + y.shape and so on, and a value that is no scalar is summed up first, as
    `differentiate` has it. Raises NoExpression where one has no formula; those of more than two dimensions
    are `skipped`, if there are others.
    """
    with reading(program, variables, wrt) as (arrays, wanted):
        base = _own(first_order(program, arrays, wanted, follow, names or {}, nan_guards, True))
        source = Source(program, arrays, nan_guards, follow)
        known: dict[tuple[str, ...], Expression] = {(n,): e for n, e in base.by.items()}
        skipped: list[tuple[str, ...]] = []
        for count in range(2, order + 1):
            made = {}
            for words in combinations_with_replacement(wanted, count):
                # By the others first: u then has their shape, and a matrix its columns.
                word, rest = words[0], words[1:]
                if count == 2 and not np.ndim(arrays[word]):
                    word, rest = words[1], words[:1]
                try:
                    if rest in known:
                        made[words] = matrix_of(known[rest], source, word)
                        continue
                except NoExpression:
                    if len(wanted) == 1 or sum(np.ndim(arrays[n]) for n in words) < 3:
                        raise
                if count == order:
                    skipped.append(words)
            known = made
        labels = {w: ".".join(w) if len(wanted) > 1 or order > 2 else w[0] for w in known}
        return Blocks(
            base,
            "Hessian" if order == 2 else "partial",
            {labels[w]: e for w, e in known.items()},
            {label: w for w, label in labels.items()},
            [".".join(w) for w in skipped],
        )


def jacobian(
    program: Program,
    variables: Mapping[str, Any],
    wrt: Iterable[str] | None = None,
    *,
    follow: bool = False,
    names: Mapping[str, Any] | None = None,
    nan_guards: bool = False,
) -> Blocks:
    """The Jacobian of a program's value by each of its variables, in value.shape + variable.shape.

    Raises NoExpression where it has more than two dimensions, or no formula.
    """
    with reading(program, variables, wrt) as (arrays, wanted):
        base = _own(first_order(program, arrays, wanted, follow, names or {}, nan_guards, True))
        source = Source(program, arrays, nan_guards, follow)
        by = {
            # Of a scalar it is the gradient, which has the branches of the tape's rules.
            n: _rows(base.value, base.shape, source, n) if base.shape else rewrite(g, released)
            for n, g in base.by.items()
        }
        return Blocks(base, "Jacobian", by, {n: (n, n) for n in wanted})


def _rows(value: Expression, shape: tuple[int, ...], source: Source, word: str) -> Expression:
    """The Jacobian of an expression: that of `cat` and `stack` has that of each of their parts."""
    size = source.size(word)
    if is_call(value, "cat", "stack") and len(shape) == 1 and not value.data[1] and size:
        parts = value.args[0].args
        rows = [_rows(p, p.shape, source, word) for p in parts]
        whole = [alg.full(r, p.shape + size) for r, p in zip(rows, parts, strict=True)]
        if is_call(value, "stack"):
            return stacked(whole, shape + size)
        return call("cat", [call("[]", whole, ())], shape + size)
    found = matrix_of(value, source, word, shape)
    if len(shape) == len(size) == 1:
        return _finished(turned(found), shape + size)
    return found  # by a scalar, or of one, in the other's shape


def matrix_of(
    expression: Expression, source: Source, word: str, shape: tuple[int, ...] | None = None
) -> Expression:
    """The transposed Jacobian of an expression by a variable, in variable.shape + the expression's.

    shape: that of the value whose Jacobian it is; that itself, not transposed, has more than two
    dimensions.
    """
    first = shape is not None
    shape = expression.shape if shape is None else shape
    size = source.size(word)
    if math.prod(shape + size) > MOST:
        raise NoExpression(
            f"a matrix of {' by '.join(map(str, shape + size))} numbers is too large to be proved: a "
            "smaller --shape has the same formula"
        )
    if 0 in shape:
        return call("zeros", [], size + shape, [("", size + shape)])
    if not shape:
        found, symbol = source.slope(expression, word)
        return canonicalise(found, symbol)
    if np.asarray(source.arrays[word]).dtype.kind == "c":
        raise NoExpression("the matrix of derivatives by complex numbers has no formula here")
    vector = name(SEED, shape, LAST)
    found, symbol = source.slope(alg.multiply(expression, vector), word, shape)
    if not size:  # linear in u, whose own gradient is what u is multiplied by
        found, _ = source.slope(found, SEED, shape)
        if any(node is vector for node in order([found])):
            raise NoExpression(f"the matrix of this derivative by {word} has no formula")
        return _finished(found, shape)
    maps = LinearMaps(vector)
    if len(shape + size) > 2:
        terms = maps.contracted.matrix(found, size, first) if maps.depends(found) else []
        return _finished(alg.combine(terms), shape + size if first else size + shape)
    return _finished(maps.widened(found, size), size + shape)


def _term_by_term(node: Expression) -> Expression:
    """The transpose of a sum as that of its terms, some of which are symmetric."""
    return turned(node.args[0]) if is_call(node, "T") and node.args[0].op == "sum" else node


def _finished(found: Expression, shape: tuple[int, ...]) -> Expression:
    """A matrix as it is printed."""
    found = rewrite(found, _term_by_term)
    made = simplified(rewrite(written_out(found), written_out))
    if is_number(made, 0) and shape:
        return call("zeros", [], shape, [("", shape)])
    return alg.full(made, shape)


def way(arrays: Mapping[str, Any], wanted: Sequence[str], order: int, rows: bool) -> dict[str, Any]:
    """What `proved` finds the derivatives with that were asked for, and proves them by.

    rows: whether the Jacobian was asked for. The second order of several variables, or of arrays, is the
    Hessian; higher ones are all partial derivatives.
    """
    if rows:
        return {"find": jacobian, "claim": MatrixClaim}
    if order > 1 and (len(wanted) > 1 or any(np.ndim(arrays[n]) for n in wanted)):
        return {"find": partial(partials, order=order), "claim": MatrixClaim}
    return {}


class MatrixClaim(Claim):
    """What is to be proved of matrices: that they are what `gradcli jacobian` and `hessian` compute."""

    __slots__ = ()

    found: Blocks

    def size(self, arrays: Arrays) -> int:
        """About how many numbers a matrix of all variables by all of them has."""
        return super().size(arrays) ** 2

    def of_value(self, value: Any, leaves: Mapping[str, Tensor]) -> dict[str, Any]:
        program, blocks = self.found.program, self.found.blocks
        words = list(dict.fromkeys(n for pair in blocks.values() for n in pair))
        if self.found.kind == "Jacobian":
            return dict(traced_matrices.jacobian(program, leaves, words, self.names).by)
        if self.found.kind == "partial":
            return {n: self._nested(leaves, words) for n, words in blocks.items()}
        rows = traced_matrices.hessian(program, leaves, words, self.names)
        return {label: rows[a].by[b] for label, (a, b) in blocks.items()}

    def _nested(self, leaves: Mapping[str, Tensor], words: Sequence[str]) -> Any:
        """A derivative of a higher order: the Jacobian by one variable of that by those before it."""

        def function(**given: Tensor) -> Any:
            names = {**self.names, **leaves, **given}
            return run(self.found.program, names, write=_nothing).value.sum()

        def slope(function: Callable[..., Any], word: str) -> Callable[..., Any]:
            def of(**given: Tensor) -> Any:
                own = given.get(word, leaves[word].detach())
                return autograd_functional.jacobian(
                    lambda x: function(**{**given, word: x}), own, create_graph=True
                )

            return of

        for word in words:
            function = slope(function, word)
        return function().detach().array


def _nothing(text: str) -> None:
    """What a program prints while it is proved is not said."""


__all__ = ["Blocks", "MatrixClaim", "jacobian", "partials", "way"]
