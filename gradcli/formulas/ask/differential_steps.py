"""The derivative step by step, as differentials: u = A@x - y, du = A@dx, d(u@u) = 2*u@du.

What a function that is not linear is applied to has a name of its own: the program's, or a letter. The
differential of an expression is the map of the tape's own gradients turned around: the gradient of
sum(u*f(x)) is linear in u, and its inner product with dx has the gradient J@dx by u.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gradcli.formulas.algebra import algebra as alg
from gradcli.formulas.algebra.array_algebra import transposed
from gradcli.formulas.algebra.exact_numbers import ONE, Number
from gradcli.formulas.algebra.expressions import Expression, call, is_call, name, order
from gradcli.formulas.algebra.rewriting import rewrite
from gradcli.formulas.ask.rule_names import (
    CHAIN,
    CHOICES,
    CONSTANT,
    EXPONENTIAL,
    LINEAR,
    POWER,
    PRODUCT,
    QUOTIENT,
    SUM,
)
from gradcli.formulas.derive.differentiate import (
    differentiate,
    own_names,
    positions,
    reading,
    released,
    slope,
)
from gradcli.formulas.derive.symbolic_shapes import (
    GENERIC,
    REPEATED,
    NoSymbolicShape,
    Terms,
    alike_sizes,
    unified,
)
from gradcli.formulas.lift.lifting import Lifter
from gradcli.formulas.print.latex import DIFFERENTIALS, symbol
from gradcli.formulas.print.printed_text import spelled_out
from gradcli.formulas.simplify.indexed_factors import is_zero
from gradcli.formulas.simplify.simplify import simplify
from gradcli.language.program import Program
from gradcli.transforms.traced_run import traced_run
from gradcli.transforms.tracing.calls import Value, calls, operands_of

SEED = "#u"  # what multiplies an expression; no valid name of the language
LETTERS = "uvwpqrstabcdefghklmnxyz"


class Step(NamedTuple):
    """An expression with its differential.

    name: what it is called in later steps, "" for the last. rules: those that its differential needs.
    """

    name: str
    expression: Expression
    differential: Expression
    rules: tuple[str, ...] = ()

    def texts(self, form: str = "text") -> tuple[str, str]:
        """(the expression, its differential), with dots for what would be too long."""
        return tuple(
            spelled_out(e, form) or {"latex": r"\dots"}.get(form, "…")
            for e in (self.expression, self.differential)
        )  # type: ignore[return-value]

    def line(self, form: str = "text") -> tuple[str, str]:
        """`u = A@x`, `du = A@dx` of what has a name; "" and `d(u@u) = 2*u@du` of others."""
        own, made = self.texts(form)
        if form == "latex":
            if not self.name:
                return "", rf"\mathrm{{d}}\left({own}\right) &= {made}"
            word = symbol(self.name)
            return f"{word} &= {own}", rf"\mathrm{{d}}{word} &= {made}"
        if not self.name:
            return "", f"d({own}) = {made}"
        return f"{self.name} = {own}", f"d{self.name} = {made}"

    def to_json(self) -> dict[str, Any]:
        """What JSON says of it."""
        expression, differential = self.texts()
        return {
            "name": self.name or None,
            "expression": expression,
            "differential": differential,
            "rules": list(self.rules),
        }


def steps(
    program: Program,
    variables: Mapping[str, Any],
    wrt: Sequence[str],
    *,
    order: int = 1,
    follow: bool = False,
    names: Mapping[str, Any] | None = None,
) -> list[Step]:
    """The differentials of a program's value and of what has a name in it, then of its lower derivatives.

    variables: their values. wrt: the variables to differentiate by. follow: whether branches may depend
    on the values. Numbers that came from sizes are written as sizes. Raises NoExpression.
    """
    at = partial(_at, program, wrt=wrt, order=order, follow=follow, names=names)
    found = one = at(variables)
    if not any(map(np.ndim, variables.values())):
        return found
    here = variables
    for _ in range(2):
        there = alike_sizes(here, REPEATED if follow else GENERIC).arrays
        try:
            two = at(there)
        except Exception:  # the program runs in no other sizes
            return found
        first, second = ({n: np.shape(v) for n, v in p.items()} for p in (here, there))
        terms = Terms(first, second, wrt)
        try:
            return [
                Step(
                    a.name,
                    unified(a.expression, b.expression, terms),
                    unified(a.differential, b.differential, terms),
                    a.rules,
                )
                for a, b in zip(one, two, strict=True)
            ]
        except (NoSymbolicShape, ValueError):  # a number is 1 by chance, or no size
            here, one = there, two
    return found


def _at(
    program: Program,
    variables: Mapping[str, Any],
    wrt: Sequence[str],
    order: int,
    follow: bool,
    names: Mapping[str, Any] | None,
) -> list[Step]:
    """The steps in the sizes of these values."""
    with reading(program, variables, wrt) as (arrays, wanted), np.errstate(all="ignore"):
        result, trace = traced_run(program, arrays, wanted, follow, names or {}, True)
        value, places = trace.value_of(result), positions(program)
        # A step is worth a name if something nonlinear is applied to it: in exp(sum((A@x - y)**2)) the
        # steps are u = A@x - y and v = sum(u**2), and then d(exp(v)) = exp(v)*dv. A linear operation on
        # top of another would only repeat it with a d in front. `bound` has the values that depend on the
        # variables.
        made = calls([value])
        given = {id(c) for c in made}
        known = [(v, name(n, v.shape, places.get(n, -1))) for n, v in trace.inputs.items()]
        bound = {id(trace.inputs[n]) for n in wanted}
        own = {id(v): n for n, v in own_names(trace, arrays, given).items()}
        inner = dict.fromkeys(own)
        for call in made:
            if any(id(v) in bound for v in operands_of(call)):
                bound.update(map(id, call.outputs))
                if call.primitive.linearity not in ("linear", "bilinear") or _is_product(
                    call, bound
                ):
                    inner.update(dict.fromkeys(id(v) for v in operands_of(call) if v.call))
        free = (n for n in LETTERS if n not in {*arrays, *own.values(), *(names or {})})
        found: list[Step] = []
        points, words = dict(arrays), list(wanted)
        outputs: list[Value] = [v for call in made for v in call.outputs]
        for output in [*(v for v in outputs if id(v) in inner and v is not value), value]:
            if id(output) not in bound:
                continue
            (expression,) = Lifter(known, given, again=True).read([output])
            whole = simplify(alg.full(expression, output.shape))
            if output is not value and id(output) not in own and alg.split(whole)[1].op == "name":
                continue
            change = differential(whole, points, words, places)
            if output is not value and is_zero(change):
                continue
            word = "" if output is value else own.get(id(output)) or next(free, "")
            found.append(Step(word, whole, change, _rules(whole, words, wanted)))
            if word:
                places[word] = whole.position
                known.append((output, name(word, output.shape, places[word])))
                points[word] = np.asarray(output.value)
                words.append(word)
        if len(found) > 1 and not any(map(np.ndim, arrays.values())):
            # with the names written out again: v*du + u*dv as one sum of dx
            inputs = [pair for pair in known if pair[0].call is None]
            (expression,) = Lifter(inputs, given, again=True).read([value])
            whole = simplify(alg.full(expression, value.shape))
            found.append(Step("", whole, differential(whole, arrays, wanted, places)))
        for k in range(1, order):
            lower = differentiate(program, arrays, wanted, order=k, follow=follow, names=names)
            found += [
                Step("", e, differential(e, arrays, wanted, places)) for e in lower.by.values()
            ]
        return [
            Step(n, rewrite(own, released), rewrite(made, released), rules)
            for n, own, made, rules in found
        ]


_BILINEAR = frozenset("matmul dot outer bmm mv einsum linalg.cross kron tensordot".split())
_SUMS = frozenset("sum mean trace cumsum nansum".split())
_MOVED = frozenset(
    "T [] () : select slice index expand expand_as reshape permute contiguous detach diagonal stack "
    "cat tensor float to flip roll tril triu transpose diag_embed".split()
)


def _rules(
    whole: Expression, variables: Collection[str], wanted: Collection[str]
) -> tuple[str, ...]:
    """The rules that the differential of an expression needs, the outermost first.

    variables: the names in it that change. wanted: those that are no steps: the variables themselves.
    """
    moving: set[Expression] = set()
    for node in order([whole]):
        if node.data in variables if node.op == "name" else any(p in moving for p in node.parts):
            moving.add(node)
    found: list[str] = []
    waiting = [whole] if whole in moving else []
    for node in waiting:  # grows as it is read
        inner = [p for p in node.parts if p in moving]
        found += _rules_of(node, inner, wanted)
        waiting += inner
    return tuple(dict.fromkeys(found))


def _rules_of(node: Expression, inner: list[Expression], wanted: Collection[str]) -> list[str]:
    """The rules of one operation. inner: its operands that depend on the variables that are wanted."""
    chain = [CHAIN] * any(p.op != "name" or p.data not in wanted for p in inner)
    if node.op == "sum":
        return [SUM] if len(inner) > 1 else []
    if node.op == "product":
        pairs = [p for p in alg.powers_of(node) if p[0] in inner or p[1] in inner]
        below = [e for _, e in pairs if isinstance(e, Number) and e.negative]
        if len(pairs) > 1:
            return [QUOTIENT if below else PRODUCT]
        (exponent,) = (e for _, e in pairs)
        if isinstance(exponent, Expression) and exponent in inner:
            return [EXPONENTIAL]
        plain = node.data[0].whole != 1 or len(node.args) > 1
        return [CONSTANT] * plain + ([] if exponent == ONE else [*chain, POWER])
    if node.op != "call" or node.data[0] in _MOVED:
        return []
    word = node.data[0]
    if word in _BILINEAR:
        return [PRODUCT if len(inner) > 1 else CONSTANT]
    if word in _SUMS:
        return [LINEAR]
    return [CHOICES[word]] if word in CHOICES else [*chain, f"derivative of {word}"]


def _is_product(call: Any, bound: set[int]) -> bool:
    """Whether a call is a product of numbers that both depend on the variables: the product rule's."""
    factors = operands_of(call)
    return (
        call.primitive.linearity == "bilinear"
        and len(factors) == 2
        and all(id(v) in bound and not v.shape for v in factors)
    )


def differential(
    expression: Expression, arrays: Mapping[str, Any], wrt: Sequence[str], places: Mapping[str, int]
) -> Expression:
    """The differential of an expression, over names such as `dx`."""
    shape = expression.shape
    read = {node.data for node in order([expression]) if node.op == "name"}
    terms = []
    for rank, word in enumerate(w for w in wrt if w in read):
        size = np.shape(arrays[word])
        if not shape and len(size) == 2:
            gradient, _ = slope(expression, arrays, word, places)
            terms += _along(simplify(gradient), name(f"d{word}", size, DIFFERENTIALS + rank))
            continue
        # J@dx without a Jacobian: the gradient of <u, f(x)> by x is J.T@u; its inner product with dx is
        # linear in u, and the gradient of that by u is J@dx.
        points = {**arrays, SEED: _ramp(shape), f"d{word}": _ramp(size)}
        ranks = {**places, SEED: len(arrays), f"d{word}": DIFFERENTIALS + rank}
        product = alg.multiply(expression, name(SEED, shape, len(arrays)))
        turned = rewrite(slope(product, points, word, ranks, more=True)[0], released)
        along = alg.multiply(turned, name(f"d{word}", size, DIFFERENTIALS + rank))
        terms.append(slope(along, points, SEED, ranks)[0])
    return simplify(alg.add(*terms))


def _along(gradient: Expression, change: Expression) -> list[Expression]:
    """The terms of a number's differential by a matrix: x@dA@y of outer(x, y), trace(M.T@dA) of others."""
    found: list[Expression] = []
    if is_zero(gradient):
        return found
    for factor, term in alg.terms_of(alg.full(gradient, change.shape)):
        numbers, core = alg.scalars_out(alg.full(term, change.shape))
        if is_call(core, "outer"):
            one, two = core.args
            left = call("matmul", [one, change], change.shape[1:])
            made = call("matmul", [left, two], ())
        else:
            own = transposed(alg.full(core, change.shape))
            n = change.shape[1]
            whole = change if is_call(own, "eye") else call("matmul", [own, change], (n, n))
            made = call("trace", [whole], ())
        found.append(alg.scale(factor, alg.product([*numbers, (made, ONE)])))
    return found


def _ramp(shape: tuple[int, ...]) -> Any:
    return np.linspace(0.5, 1.5, math.prod(shape)).reshape(shape)


__all__ = ["Step", "steps"]
