"""Jacobians and Hessians as formulas.

The gradient of sum(u*f(x)) is linear in u: what it multiplies u by is the transposed Jacobian of f, and
that of the gradient of a scalar is the Hessian. So a matrix is read off what the engine's own backward
pass leaves, as every derivative is, and no rule of an operator is written a second time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np

from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.formulas.algebra import algebra as alg
from gradcli.formulas.algebra.array_algebra import stacked
from gradcli.formulas.algebra.assuming import supposing
from gradcli.formulas.algebra.expressions import Expression, call, is_call, is_number, name, order
from gradcli.formulas.algebra.generic_points import Arrays
from gradcli.formulas.algebra.rewriting import rewrite
from gradcli.formulas.algebra.spelling import NoExpression
from gradcli.formulas.ask.proof import Claim
from gradcli.formulas.derive.differentiate import (
    Derivatives,
    Run,
    first_order,
    positions,
    reading,
    released,
    slope,
)
from gradcli.formulas.simplify.indexed_factors import IndexedFactors
from gradcli.formulas.simplify.simplify import canonicalise, simplify
from gradcli.language import run
from gradcli.language.located_errors import OPERATION_ERRORS, LanguageError
from gradcli.language.program import Program
from gradcli.transforms import autograd_functional, traced_matrices

SEED = "#u"  # the cotangent u; no valid name of the language
LAST = 10**6  # its rank among factors: printed last
MOST = 10**6  # numbers of a matrix that is proved, by all of them


class Blocks(Derivatives):
    """Matrices of derivatives: `by` has them under "x", or "x.y" if there are several variables.

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
        self.kind, self.real, self.sized = kind, base.real, base.sized
        self.blocks, self.skipped = {k: p for k, p in blocks.items() if k in by}, skipped


class Source(NamedTuple):
    """A program, its variables as arrays, and the options of `slope`."""

    program: Program
    arrays: Mapping[str, Any]
    nan_guards: bool
    follow: bool

    def size(self, word: str) -> tuple[int, ...]:
        """The shape of a variable."""
        return tuple(np.shape(self.arrays[word]))

    def space(
        self, rows: tuple[int, ...] | None = None
    ) -> tuple[Mapping[str, Any], dict[str, int]]:
        """(the variables, their ranks), with a cotangent of the shape `rows` among them."""
        places = positions(self.program)
        if rows is None:
            return self.arrays, places
        ramp = np.linspace(0.5, 1.5, math.prod(rows)).reshape(rows)
        return {**self.arrays, SEED: ramp}, {**places, SEED: LAST}

    def slope(
        self, expression: Expression, word: str, rows: tuple[int, ...] | None = None
    ) -> tuple[Expression, Expression]:
        """As `differentiate.slope`; rows: the shape of the cotangent that multiplies the expression."""
        arrays, places = self.space(rows)
        return slope(expression, arrays, word, places, self.nan_guards, False, self.follow)


@contextmanager
def _from(base: Derivatives) -> Iterator[Derivatives]:
    """The same, and whether its numbers are real is known to simplification.

    Raises NoExpression if as_strided read outside of its operand: the tape has no gradient.
    """
    if base.beyond:
        raise NoExpression(
            "what as_strided reads outside of its operand has no matrix of derivatives as a formula"
        )
    with supposing(real=base.real):
        yield base


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
    """All partial derivatives of one order of a program's value, each mixed one once.

    A value that is not a scalar is summed first; shapes are x.shape + y.shape and so on. Raises
    NoExpression if one has no formula; those of more than two dimensions are `skipped` if there are others.
    """
    with (
        reading(program, variables, wrt) as (arrays, wanted),
        _from(
            first_order(Run(program, arrays, wanted, follow, names or {}, nan_guards, True))
        ) as base,
    ):
        source = Source(program, arrays, nan_guards, follow)
        known: dict[tuple[str, ...], Expression] = {(n,): e for n, e in base.by.items()}
        skipped: list[tuple[str, ...]] = []
        refused = NoExpression("no derivative of this order has a formula")
        for count in range(2, order + 1):
            made = {}
            for words in combinations_with_replacement(wanted, count):
                # By the other variables first: u then has their shape, which gives the columns.
                word, rest = words[0], words[1:]
                if count == 2 and not np.ndim(arrays[word]):
                    word, rest = words[1], words[:1]
                try:
                    if rest in known:
                        made[words] = matrix_of(known[rest], source, word)
                        continue
                except NoExpression as error:
                    if len(wanted) == 1 or sum(np.ndim(arrays[n]) for n in words) < 3:
                        raise
                    refused = error
                if count == order:
                    skipped.append(words)
            known = made
        if not known:
            raise refused
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
    """The Jacobian of a program's value by each variable, in value.shape + variable.shape.

    Raises NoExpression if one has more than two dimensions or no formula.
    """
    with (
        reading(program, variables, wrt) as (arrays, wanted),
        _from(
            first_order(Run(program, arrays, wanted, follow, names or {}, nan_guards, True))
        ) as base,
    ):
        source = Source(program, arrays, nan_guards, follow)
        by = {
            # For a scalar it is the gradient, which keeps the branches of the VJP rules.
            n: _rows(base.value, base.shape, source, n) if base.shape else rewrite(g, released)
            for n, g in base.by.items()
        }
        return Blocks(base, "Jacobian", by, {n: (n, n) for n in wanted})


def _rows(value: Expression, shape: tuple[int, ...], source: Source, word: str) -> Expression:
    """The Jacobian of an expression; that of `cat` or `stack` consists of those of its parts."""
    size = source.size(word)
    # As one linear map the parts would become slices of u, each with rows of the identity.
    if is_call(value, "cat", "stack") and len(shape) == 1 and not value.data[1] and size:
        parts = value.args[0].args
        rows = [_rows(p, p.shape, source, word) for p in parts]
        whole = [alg.full(r, p.shape + size) for r, p in zip(rows, parts, strict=True)]
        if is_call(value, "stack"):
            return stacked(whole, shape + size)
        return call("cat", [call("[]", whole, ())], shape + size)
    return matrix_of(value, source, word, shape)


def matrix_of(
    expression: Expression, source: Source, word: str, shape: tuple[int, ...] | None = None
) -> Expression:
    """The transposed Jacobian of an expression by a variable, in variable.shape + expression.shape.

    shape: the shape of the value; with it the result is the Jacobian itself, not transposed, also if
    that has more than two dimensions.
    """
    first = shape is not None
    shape = expression.shape if shape is None else shape
    size = source.size(word)
    if math.prod(shape + size) > MOST:
        raise NoExpression(
            f"a matrix of {' by '.join(map(str, shape + size))} numbers is too large to be proved: a "
            "smaller --shape has the same formula"
        )
    # A matrix without elements has no factors to read off.
    if 0 in shape:
        whole = shape + size if first else size + shape
        return call("zeros", [], whole, [("", whole)])
    if not shape:
        found, symbol = source.slope(expression, word)
        return canonicalise(found, symbol)
    if np.asarray(source.arrays[word]).dtype.kind == "c":
        raise NoExpression("the matrix of derivatives by complex numbers has no formula here")
    # The gradient of sum(u*f(x)) by x is J.T@u, for any u: a formula linear in u, and its factor is J.T. If
    # x is a number, deriving once more by u gives that factor at once.
    vector = name(SEED, shape, LAST)
    found, symbol = source.slope(alg.multiply(expression, vector), word, shape)
    if not size:  # linear in u: its gradient by u is the factor of u
        found, _ = source.slope(found, SEED, shape)
        if any(node is vector for node in order([found])):
            raise NoExpression(f"the matrix of this derivative by {word} has no formula")
        return finished(found, shape)
    maps = IndexedFactors(vector)
    made = maps.array(found, size, first)
    return finished(made, shape + size if first else size + shape)


def finished(found: Expression, shape: tuple[int, ...]) -> Expression:
    """A matrix in canonical form, in full shape."""
    made = simplify(found)
    if is_number(made, 0) and shape:
        return call("zeros", [], shape, [("", shape)])
    return alg.full(made, shape)


def way(arrays: Mapping[str, Any], wanted: Sequence[str], order: int, rows: bool) -> dict[str, Any]:
    """The arguments `find` and `claim` of `proof.proved` for the requested derivatives.

    rows: whether the Jacobian was requested. The second order of arrays, or of several variables, is the
    Hessian; higher orders are all partial derivatives.
    """
    if rows:
        return {"find": jacobian, "claim": MatrixClaim}
    if order > 1 and (len(wanted) > 1 or any(np.ndim(arrays[n]) for n in wanted)):
        return {"find": partial(partials, order=order), "claim": MatrixClaim}
    return {}


class MatrixClaim(Claim):
    """The claim that matrices equal what `gradcli jacobian` and `gradcli hessian` compute."""

    __slots__ = ()

    found: Blocks

    def size(self, arrays: Arrays) -> int:
        """About how many entries the matrix of all variables by all variables has."""
        # The Hessian has an element for each pair of numbers, and it is what is compared.
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

    @property
    def is_gradient(self) -> bool:
        return False

    def limits(self, arrays: Arrays) -> dict[str, Any] | None:
        from gradcli.transforms import removable

        program, blocks = self.found.program, self.found.blocks
        words = list(dict.fromkeys(n for pair in blocks.values() for n in pair))
        tensors = {n: wrap(np.array(v)) for n, v in arrays.items()}
        if self.found.kind == "Jacobian":
            return removable.limits_of_jacobian(program, tensors, words, self.names)
        if self.found.kind == "partial":
            return None
        if self.found.shape and self._is_finite(arrays):
            return None
        of = removable.limits_of_summed_hessian if self.found.shape else removable.limits_of_hessian
        rows = of(program, tensors, words, self.names)
        if rows is None:
            return None
        return {label: rows[a, b] for label, (a, b) in blocks.items()}

    def _is_finite(self, arrays: Arrays) -> bool:
        """Whether the text's numbers are; False where it does not run."""
        with np.errstate(all="ignore"), suppress(LanguageError, *OPERATION_ERRORS):
            return all(np.isfinite(v).all() for v in self.run(arrays).values())
        return False

    def _nested(self, leaves: Mapping[str, Tensor], words: Sequence[str]) -> Any:
        """A derivative of higher order: Jacobians nested, one variable after the other."""

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
    """Swallow what a program prints while it is proved."""


__all__ = ["Blocks", "MatrixClaim", "jacobian", "partials", "way"]
