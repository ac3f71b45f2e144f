"""Formulas over derivatives: `-F_x/F_y` of an equation, an element of a gradient, a divergence.

A formula is a text of the language over the names of what it is made of: `_g_x` is the gradient by x,
`_J_x` the Jacobian, `_H_x_y` a block of the Hessian, `_f` the value. It runs on expressions to be printed
and, in the proof, on the numbers that the tape gives for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.engine.registry.table import resolve
from gradcli.formulas.algebra import algebra as alg
from gradcli.formulas.algebra.expression_evaluation import value_at
from gradcli.formulas.algebra.expressions import Expression
from gradcli.formulas.algebra.generic_points import Arrays, quiet
from gradcli.formulas.algebra.rewriting import rewrite
from gradcli.formulas.algebra.spelling import NoExpression
from gradcli.formulas.ask.proof import Claim
from gradcli.formulas.derive.differentiate import (
    VALUE,
    Derivatives,
    Run,
    composed,
    differentiate,
    first_order,
    positions,
    reading,
    released,
)
from gradcli.formulas.print.printed_text import Printed
from gradcli.formulas.simplify.simplify import simplify
from gradcli.formulas.simplify.taken_elements import taken
from gradcli.language import parse, run
from gradcli.language.located_errors import LanguageError
from gradcli.language.program import Program
from gradcli.language.scope_checks import free_names


class FormulaKind(NamedTuple):
    """A kind of derivative that formulas are made of: what finds it, and what it claims."""

    find: Callable[..., Derivatives]
    claim: type[Claim]


def _part(letter: str) -> FormulaKind:
    """What is written with this letter; matrices are imported where there are any."""
    if letter == "g":
        return FormulaKind(differentiate, Claim)
    from gradcli.formulas.ask import matrix_derivatives

    find = matrix_derivatives.jacobian if letter == "J" else matrix_derivatives.partials
    return FormulaKind(find, matrix_derivatives.MatrixClaim)


class Forward(NamedTuple):
    """Derivatives of a program at a point, measured in forward mode: what formulas are proved against.

    The formulas are made of gradients, Jacobians and Hessians, which have proofs of their own. Whether a
    formula puts them together well, only what knows nothing of it can tell.
    """

    program: Program
    leaves: Mapping[str, Tensor]
    names: Arrays

    def columns(self, words: Sequence[str]) -> dict[str, Any]:
        """The derivative along each element of the variables, in value.shape + variable.shape."""
        from gradcli.transforms import traced_matrices

        made = traced_matrices.jacobian(self.program, self.leaves, words, self.names, "forward")
        return dict(made.by)

    def curvature(self, vectors: Mapping[str, Any]) -> Any:
        """The second derivative of a number along vectors, twice the same."""
        from gradcli.transforms import traced_matrices

        given = {n: wrap(np.asarray(v, np.float64)) for n, v in vectors.items()}
        turned = traced_matrices.hvp(self.program, self.leaves, given, self.names)
        return sum(np.sum(turned[n].array * v) for n, v in vectors.items())


Meaning = Callable[[Forward], Mapping[str, Any]]
MOST_COLUMNS = 1_000  # that are measured one by one


class Composed(Derivatives):
    """Formulas over derivatives: `by` has each under its label.

    kind: "derivative", or "value" for a program's value alone. formulas: the program of each. bases: what
    they are made of, by the letters of `_part`. left: what each is called in LaTeX. meaning: what they are
    by definition, from what `Forward` measures; None where that is the formula.
    """

    __slots__ = ("bases", "formulas", "kind", "left", "meaning")

    bases: dict[str, Derivatives]
    formulas: dict[str, Program]
    left: Mapping[str, str]
    meaning: Meaning | None

    @property
    def whole(self) -> Expression:
        """The value that is printed beside the derivatives, in its full shape."""
        return self.by[VALUE] if self.kind == "value" else super().whole


class ComposedClaim(Claim):
    """The claim that formulas over derivatives equal the same formulas of the tape's."""

    __slots__ = ()

    found: Composed

    def limits(self, arrays: Arrays) -> dict[str, Any] | None:
        return None  # series know derivatives, not what is made of them

    def of_value(self, value: Any, leaves: Mapping[str, Tensor]) -> dict[str, Any]:
        found = self.found
        if found.kind == "value":
            return {VALUE: np.asarray(value.array if isinstance(value, Tensor) else value)}
        # A proof must not rest on what it proves. Where `meaning` is given, the numbers come from forward
        # mode alone, which knows nothing of the formula: y' is measured as -(∂F/∂x)/(∂F/∂y) by pushing
        # along the axes.
        plain = {n: leaf.detach() for n, leaf in leaves.items()}
        if found.meaning is not None and _is_measured(plain.values()):
            made = found.meaning(Forward(found.program, plain, self.names))
            return {n: np.asarray(v) for n, v in made.items()}
        space = {**self.names, **plain}
        for letter, base in found.bases.items():
            words = {n for label in base.by for n in label.split(".")}
            fresh = {n: t.clone().requires_grad_(n in words) for n, t in plain.items()}
            tape = _part(letter).claim(base, Printed("text", {}), self.names)
            numbers = tape.of_value(value_at(found.program, {**self.names, **fresh}, {}), fresh)
            space |= {_named(letter, label): wrap(a) for label, a in numbers.items()}
        with np.errstate(all="ignore"):
            made = {n: run(formula, space).value for n, formula in found.formulas.items()}
        return {n: np.asarray(v.array if isinstance(v, Tensor) else v) for n, v in made.items()}


def _is_measured(tensors: Iterable[Tensor]) -> bool:
    """Whether all columns can be measured: of real numbers, and not of too many."""
    every = [t.array for t in tensors]
    return sum(a.size for a in every) <= MOST_COLUMNS and not any(
        a.dtype.kind == "c" for a in every
    )


def _named(letter: str, label: str) -> str:
    return f"_{letter}_{label.replace('.', '_')}"


def way(
    formulas: Mapping[str, str],
    wrt: Sequence[str],
    left: Mapping[str, str] | None = None,
    meaning: Meaning | None = None,
) -> dict[str, Any]:
    """The arguments `find` and `claim` of `proof.proved` for formulas by label; see the module.

    wrt: the variables whose derivatives they are made of. left: what each formula is called in LaTeX.
    meaning: see `Composed`.
    """
    find = partial(_find, dict(formulas), tuple(wrt), left or {}, meaning)
    return {"find": find, "claim": ComposedClaim}


def _find(
    formulas: Mapping[str, str],
    wrt: tuple[str, ...],
    left: Mapping[str, str],
    meaning: Meaning | None,
    program: Program,
    variables: Arrays,
    _wrt: Any = None,
    *,
    follow: bool = False,
    names: Arrays | None = None,
    nan_guards: bool = False,
) -> Composed:
    """The formulas as expressions. Raises NoExpression, located in the program."""
    # For y' of x**2 + y**2 == 1 the formula is "-(_g_x/_g_y)". The gradients by x and y are found once,
    # as for any program; the formula is then run on their expressions, as a program over the names _g_x
    # and _g_y, and what it gives is simplified: -x/y.
    parsed = {label: parse(text) for label, text in formulas.items()}
    read = {n for formula in parsed.values() for n in free_names(formula)}
    how: dict[str, Any] = {"follow": follow, "names": names, "nan_guards": nan_guards}
    bases = {
        letter: _part(letter).find(program, variables, wrt, **how)
        for letter in "gJH"
        if any(n.startswith(f"_{letter}_") for n in read)
    }
    with reading(program, variables, wrt) as (arrays, _):
        first = first_order(Run(program, arrays, [], follow, names or {}, nan_guards))
        value = rewrite(first.value, released)
        parts = {"_f": value, **{
            _named(letter, label): e for letter, base in bases.items() for label, e in base.by.items()
        }}  # fmt: skip
        places = positions(program)
        by = {}
        for label, formula in parsed.items():
            used = {n: e for n, e in parts.items() if n in free_names(formula)}
            made = composed(formula, used, arrays, places, names or {})
            short = simplify(taken(made))
            by[label] = short if short.shape == made.shape else alg.full(short, made.shape)
        branched = first.branched
    kind = "value" if list(by) == [VALUE] else "derivative"
    found = Composed(program, arrays, value, by, first.shape, branched)
    found.kind, found.bases, found.formulas, found.left = kind, bases, parsed, left
    found.meaning = meaning
    return found


# -- the formulas ---------------------------------------------------------------------------------
class AskedDerivative(NamedTuple):
    """Which derivative is asked for: of some order (a letter: in closed form), as a matrix (`rows`), of an
    equation's variable, along a direction (texts by variable), by elements, or an operator of fields."""

    order: int | str = 1
    rows: bool = False
    of: str | None = None
    along: Mapping[str, str] = MappingProxyType({})
    elements: Sequence[str] = ()
    operator: str | None = None

    @property
    def name(self) -> str:
        """The option that asks for something else than the gradient; "" for that."""
        options = (
            *(("--order", self.order != 1 and not self.of), ("--jacobian", self.rows)),
            *(("--of", self.of), ("--along", self.along), ("--operator", self.operator)),
            ("--wrt with an index", self.elements),
        )
        return " and ".join(option for option, given in options if given)

    @property
    def command(self) -> str:
        """The command that has its value."""
        if self.rows:
            return "jacobian"
        return "hessian" if self.order == 2 else "grad"

    @property
    def composed(self) -> bool:
        """Whether it is a formula over derivatives."""
        formula = isinstance(self.order, str) or self.of or self.along or self.elements
        return bool(formula or self.operator)

    def way(
        self, program: Program, arrays: Arrays, wanted: Sequence[str], names: Arrays
    ) -> dict[str, Any]:
        """The arguments `find` and `claim` of `proof.proved`. Raises NoExpression, or LanguageError for
        what excludes each other."""
        if " and " in self.name:
            raise LanguageError(
                f"{self.name} cannot be used together", hint="leave one of them out"
            )
        if isinstance(self.order, str):
            from gradcli.formulas.ask import nth_derivatives

            return {"find": partial(nth_derivatives.find, self.order), "verify": False}
        if not self.composed:
            plain = {"find": partial(differentiate, order=self.order)}
            if not self.rows and self.order == 1:
                return plain
            from gradcli.formulas.ask.matrix_derivatives import way as matrices

            return matrices(arrays, wanted, self.order, self.rows) or plain
        if self.elements:
            return elements(self.elements)
        if self.along:
            from gradcli.formulas.ask import directional_derivatives

            return directional_derivatives.way([*self.along], [*self.along.values()])
        shape = shape_of_value(program, arrays, names)
        if self.of:
            if self.of not in arrays:
                known = ", ".join(arrays)
                raise LanguageError(f"--of: {self.of!r} is not a variable (there are: {known})")
            return implicit(arrays, self.of, [n for n in wanted if n != self.of], self.order, shape)
        return operator(str(self.operator), arrays, wanted, shape)


def simplification() -> dict[str, Any]:
    """The way to a program's value as an expression."""
    return way({VALUE: "_f"}, ())


def shape_of_value(program: Program, arrays: Arrays, names: Arrays) -> tuple[int, ...]:
    """The shape of a program's value."""
    with quiet():
        return tuple(getattr(value_at(program, names, arrays), "shape", ()))


def implicit(
    arrays: Arrays, of: str, wrt: Sequence[str], order: int, shape: tuple[int, ...]
) -> dict[str, Any]:
    """The way to the derivatives of `of`, where a program whose value has this shape stays zero.

    The implicit function theorem: y' = -F_x/F_y, and y'' = -(F_xx + 2 F_xy y' + F_yy y'^2)/F_y. Raises
    NoExpression for higher orders, and where there are not as many equations as elements of `of`.
    """
    size = np.shape(arrays[of])
    if shape != size or len(size) > 1:
        raise NoExpression(
            f"{of} has shape {size} and the equation {shape}: one equation for each element is needed"
        )
    if not wrt or any(np.ndim(arrays[x]) > len(size) for x in wrt):
        raise NoExpression(f"{of} is differentiated by other numbers or vectors: choose with --wrt")
    from gradcli.formulas.print.latex import derivative_of, symbol

    if order == 1:
        # F(x, y(x)) stays 0, so F_x + F_y*y' is 0.
        solved = "-(_g_{x}/_g_{y})" if not size else "-linalg.solve(_J_{y}, _J_{x})"
    elif order == 2 and not size and not any(np.ndim(arrays[x]) for x in wrt):
        slope = "(-_g_{x}/_g_{y})"
        solved = (
            f"-(_H_{{x}}_{{x}} + 2*_H_{{x}}_{{y}}*{slope} + _H_{{y}}_{{y}}*{slope}**2)/_g_{{y}}"
        )
    else:
        raise NoExpression("an equation has a first derivative, and a second one by numbers")
    alone = len(arrays) == 2 and not any(map(np.ndim, arrays.values()))
    left = {x: derivative_of([x] * order, symbol(of), alone) for x in wrt}
    formulas = {x: solved.format(x=x, y=of) for x in wrt}
    return way(formulas, [*wrt, of], left, partial(implied, of, list(wrt), order))


def implied(of: str, wrt: Sequence[str], order: int, forward: Forward) -> dict[str, Any]:
    """How `of` moves with each variable, so that the program's value stays zero: what `implicit` means."""
    by = forward.columns([*wrt, of])
    if not np.ndim(by[of]):
        slopes = {x: -by[x] / by[of] for x in wrt}
        if order == 1:
            return slopes
        return {x: -forward.curvature({x: 1.0, of: slopes[x]}) / by[of] for x in wrt}
    return {x: -resolve("linalg.solve")(wrap(by[of]), wrap(by[x])).array for x in wrt}


def elements(texts: Sequence[str]) -> dict[str, Any]:
    """The way to derivatives by elements and slices such as `x[0]` or `X[:, 1]`."""
    from gradcli.formulas.print.latex import derivative_of

    words = {text: text.partition("[")[0] for text in texts}
    formulas = {text: f"_g_{word}{text[len(word) :]}" for text, word in words.items()}
    return way(
        formulas,
        list(dict.fromkeys(words.values())),
        {text: derivative_of([text]) for text in texts},
    )


def coordinates(names: Sequence[str]) -> list[str]:
    """The variables that an operator of fields is by where nobody says: x, y, z beside others, or all.

    The charge q of a potential q/sqrt(x**2 + y**2 + z**2) is no direction.
    """
    spatial = [name for name in "xyz" if name in names]
    return spatial if {"x", "y"} <= {*spatial} else sorted(names)


def operator(
    word: str, arrays: Arrays, wrt: Sequence[str], shape: tuple[int, ...]
) -> dict[str, Any]:
    """The way to grad, div, curl or laplacian of a field over numbers x, y, z, or over one vector.

    Raises NoExpression if the field has not the shape that the operator needs.
    """
    vector = len(wrt) == 1 and np.ndim(arrays[wrt[0]]) == 1
    count = np.size(arrays[wrt[0]]) if vector else len(wrt)
    if not vector and any(np.ndim(arrays[x]) for x in wrt):
        raise NoExpression(f"{word} is by numbers, or by one vector: choose with --wrt")
    wanted = (count,) if word in ("div", "curl") else ()
    # A curl is a vector in three dimensions, and a number in two; in others there is none.
    if shape != wanted or (word == "curl" and count not in (2, 3)):
        needs = {"div": f"{count} components", "curl": "2 or 3 components, one a variable"}
        raise NoExpression(
            f"{word} by {', '.join(wrt)} needs a field of {needs.get(word, 'one number')}; this one has "
            f"shape {shape}"
        )

    def slope(i: int, k: int) -> str:
        """The derivative of component i by the k-th variable."""
        return f"_J_{wrt[0]}[{i}, {k}]" if vector else f"_J_{wrt[k]}[{i}]"

    def turn(i: int, k: int) -> str:
        return f"{slope(k, i)} - {slope(i, k)}"

    if word == "curl":
        text = turn(0, 1) if count == 2 else f"stack([{turn(1, 2)}, {turn(2, 0)}, {turn(0, 1)}])"
    elif vector:
        texts = {"grad": "_g_{0}", "div": "trace(_J_{0})", "laplacian": "trace(_H_{0})"}
        text = texts[word].format(wrt[0])
    elif word == "grad":
        text = f"stack([{', '.join(f'_g_{x}' for x in wrt)}])"
    else:
        second = "_H_{0}_{0}" if count > 1 else "_H_{0}"
        text = " + ".join(
            slope(k, k) if word == "div" else second.format(x) for k, x in enumerate(wrt)
        )
    signs = {"grad": "", "div": r"\cdot ", "curl": r"\times ", "laplacian": "^{2} "}
    left = {word: rf"\nabla {signs[word]}f".replace(" ^", "^")}
    return way({word: text}, wrt, left, partial(_of_field, word, list(wrt), vector))


def _of_field(word: str, wrt: Sequence[str], vector: bool, forward: Forward) -> dict[str, Any]:
    """What `operator` means, by the derivatives along the axes."""
    if word == "laplacian":
        if not vector:
            return {word: sum(forward.curvature({x: 1.0}) for x in wrt)}
        axes = np.eye(forward.leaves[wrt[0]].numel())
        return {word: sum(forward.curvature({wrt[0]: axis}) for axis in axes)}
    by = forward.columns(wrt)
    matrix = by[wrt[0]] if vector else np.stack([by[x] for x in wrt], -1)
    if word == "grad":
        return {word: matrix}
    if word == "div":
        return {word: np.trace(matrix)}
    turned = matrix.T - matrix  # [i, k]: the derivative of component k by i, less that of i by k
    if len(turned) == 2:
        return {word: turned[0, 1]}
    return {word: np.stack([turned[1, 2], turned[2, 0], turned[0, 1]])}


__all__ = [
    "AskedDerivative",
    "Composed",
    "shape_of_value",
    "simplification",
]
