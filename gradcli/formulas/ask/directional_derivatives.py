"""The derivative of a program along directions, as an expression: J@v, summed over the variables.

No Jacobian is made. The backward pass of <u, f(x)> gives J.T@u, which is linear in u, and the gradient
of <J.T@u, v> by u is J@v: forward mode is reverse mode, transposed (J. Townsend, 2017). So shapes of any
rank need no rule of their own. The proof compares with forward mode, which shares nothing with this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.formulas.algebra import algebra as alg
from gradcli.formulas.algebra.assuming import supposing
from gradcli.formulas.algebra.expression_evaluation import value_at
from gradcli.formulas.algebra.expressions import Expression, call, is_call, name
from gradcli.formulas.algebra.generic_points import Arrays, quiet
from gradcli.formulas.algebra.rewriting import rewrite
from gradcli.formulas.ask.matrix_derivatives import LAST, SEED, Source, finished
from gradcli.formulas.ask.proof import Claim
from gradcli.formulas.derive.differentiate import (
    Derivatives,
    Run,
    composed,
    first_order,
    positions,
    reading,
    released,
)
from gradcli.formulas.print.latex import symbol
from gradcli.formulas.simplify.simplify import simplify
from gradcli.formulas.simplify.taken_elements import taken
from gradcli.language import parse
from gradcli.language.located_errors import LanguageError
from gradcli.language.program import Program
from gradcli.transforms import traced_matrices


def way(wrt: Sequence[str], directions: Sequence[str]) -> dict[str, Any]:
    """The arguments `find` and `claim` of `proof.proved`; directions: a text for each variable of `wrt`."""
    texts = dict(zip(wrt, directions, strict=True))
    return {"find": partial(_find, texts), "claim": partial(DirectionalClaim, texts)}


class Directional(Derivatives):
    """A derivative along directions, under the names of its variables. left: its name in LaTeX."""

    kind = "derivative"

    __slots__ = ("left", "ways")

    left: dict[str, str]
    ways: str

    @property
    def what(self) -> str:
        return f"{self.kind} along {self.ways}"


class DirectionalClaim(Claim):
    """The claim that the text is what `gradcli jvp` computes, in the shape of the program's value."""

    __slots__ = ("texts",)

    def __init__(self, texts: Mapping[str, str], *rest: Any, **names: Any) -> None:
        super().__init__(*rest, **names)
        self.texts = texts

    def of_value(self, value: Any, leaves: Mapping[str, Tensor]) -> dict[str, Any]:
        plain = {n: leaf.detach() for n, leaf in leaves.items()}
        space = {**self.names, **plain}
        vectors = {
            n: _tensor(value_at(parse(text), space, {})).to(plain[n].dtype).detach()
            for n, text in self.texts.items()
        }
        _, found = traced_matrices.jvp(self.found.program, plain, vectors, self.names)
        return dict.fromkeys(self.found.by, found.array)


def _find(
    texts: Mapping[str, str],
    program: Program,
    variables: Arrays,
    _wrt: Any = None,
    *,
    follow: bool = False,
    names: Arrays | None = None,
    nan_guards: bool = False,
) -> Directional:
    """The derivative as an expression. Raises NoExpression, located in the program."""
    with reading(program, variables, list(texts)) as (arrays, wanted):
        _check(texts, arrays, names or {})
        base = first_order(Run(program, arrays, wanted, follow, names or {}, nan_guards, True))
        with supposing(real=base.real):
            ways = _directions(texts, program, arrays, names or {})
            source = Source(program, arrays, nan_guards, follow)
            made = _along(base.value, base.by, base.shape, source, ways)
        value = rewrite(base.value, released)
        label = ", ".join(texts)
        found = Directional(program, arrays, value, {label: made}, base.shape, base.branched)
    found.ways = ", ".join(texts.values())
    shown = ", ".join(map(symbol, texts.values()))
    found.left = {label: rf"\nabla_{{{shown}}} f"}
    found.real, found.sized = base.real, base.sized
    return found


def _tensor(value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else wrap(np.asarray(value))


def _check(texts: Mapping[str, str], arrays: Arrays, names: Arrays) -> None:
    """Raise LanguageError unless every direction has the shape of its variable."""
    for x, text in texts.items():
        with quiet():
            found = value_at(parse(text), names, arrays)
        shape, own = tuple(getattr(found, "shape", ())), tuple(np.shape(arrays[x]))
        if shape != own:
            raise LanguageError(
                f"--along: {x} has shape {own}, and its direction {text} has shape {shape}",
                kind="shape",
                hint=f"a direction has the shape of its variable, such as ones({own})"
                if own
                else None,
            )


def _directions(
    texts: Mapping[str, str], program: Program, arrays: Arrays, names: Arrays
) -> dict[str, Expression]:
    places = positions(program)
    return {x: composed(parse(text), {}, arrays, places, names) for x, text in texts.items()}


def _along(
    value: Expression,
    slopes: Mapping[str, Expression],
    shape: tuple[int, ...],
    source: Source,
    ways: Mapping[str, Expression],
) -> Expression:
    """J@v for a value of this shape; slopes: the gradients of its sum, which a scalar's derivative is."""
    if 0 in shape:
        return call("zeros", [], shape, [("", shape)])
    if is_call(value, "cat") and value.shape == shape:
        parts = value.args[0].args
        made = [alg.full(_along(p, {}, p.shape, source, ways), p.shape) for p in parts]
        return call("cat", [call("[]", made, ())], shape, value.data[1])
    rows = shape or None
    if rows:
        # f(x) = A@x along v: <u, A@x> has the gradient A.T@u; <A.T@u, v> has, by u, the gradient A@v.
        product = alg.multiply(value, name(SEED, shape, LAST))
        slopes = {x: simplify(source.slope(product, x, rows)[0]) for x in ways}
    terms = [_inner(slopes[x], v, source.size(x), source.space(rows)) for x, v in ways.items()]
    found = alg.add(*terms)
    if rows:
        found, _ = source.slope(found, SEED, rows)
    return finished(taken(found), shape)


_INNER = parse("sum(g*v)")


def _inner(
    slope: Expression,
    way: Expression,
    shape: tuple[int, ...],
    space: tuple[Mapping[str, Any], dict[str, int]],
) -> Expression:
    """The sum of the products of the elements of two arrays of a shape."""
    parts = {"g": alg.full(slope, shape), "v": way}
    arrays, places = space
    return composed(_INNER, parts, arrays, places, {})


__all__ = ["way"]
