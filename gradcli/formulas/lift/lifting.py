"""Lifting: from the calls of a trace to expressions that a person would write.

A primitive with a symbolic rule is lifted by it. One with a public name becomes a call of that function.
Any other, which only VJP rules use, is lifted from its decomposition, the trace of its kernel.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from gradcli.engine.core.tensor import Scalar, Tensor
from gradcli.engine.registry import table
from gradcli.formulas.algebra import algebra as alg
from gradcli.formulas.algebra.algebra import function
from gradcli.formulas.algebra.array_algebra import in_full
from gradcli.formulas.algebra.assuming import current, supposing
from gradcli.formulas.algebra.constants import as_exact, constant, known_number
from gradcli.formulas.algebra.exact_numbers import ONE, Number
from gradcli.formulas.algebra.expressions import Expression, broadcast, call, number
from gradcli.formulas.algebra.spelling import (
    NoExpression,
    chosen,
    is_tensor,
    no_expression,
    shape_of,
)
from gradcli.formulas.lift import formulas
from gradcli.formulas.lift.symbolic_rules import RULES, rule_for
from gradcli.language.located_errors import OPERATION_ERRORS
from gradcli.transforms.tracing.calls import Call, Value, calls, operands_of
from gradcli.transforms.tracing.tracer import decomposition


class Lifter:
    """Lifts traced values to expressions.

    variables: traced values with their names as expressions. given: ids of the calls that the program
    itself made; their conditions are all kept. nan_guards: whether to keep the `where` by which a VJP
    rule avoids a NaN at single points. again: whether the result will be differentiated again.
    """

    def __init__(
        self,
        variables: Iterable[tuple[Value, Expression]],
        given: Collection[int] = (),
        nan_guards: bool = False,
        again: bool = False,
    ) -> None:
        self.nan_guards, self.again = nan_guards, again
        self.made: dict[int, Expression] = {id(t): e for t, e in variables}
        self.kept: list[Value] = [t for t, _ in variables]  # alive, so that no id is reused
        self.given: Collection[int] = frozenset(given)
        # By id of an inner sum: its terms, until the sum that reads it takes them; so of products.
        self.parts: dict[int, list[tuple[Expression, Number]]] = {}

    def read(self, outputs: Sequence[Value]) -> list[Expression]:
        """The expressions of these values. Raises NoExpression with the span of the call."""
        # What one reading left of inner sums has another reader in the next; a call's own steps are
        # read within a reading.
        before, self.parts = self.parts, {}
        try:
            return self._read(outputs)
        finally:
            self.parts = before

    def _read(self, outputs: Sequence[Value]) -> list[Expression]:
        order = calls(outputs)
        # A sum of n terms is recorded as n - 1 additions. Lifted one by one, each would be sorted and
        # collected again, n**2 steps; as one sum it takes n.
        inner = _inner([c for c in order if not self.says_nothing(c)], outputs)
        for made in order:
            if all(id(o) in self.made or id(o) in self.parts for o in made.outputs):
                continue
            if id(made) in inner:
                parts = self.terms if _is_sum(made) else self.factors
                self.parts[id(made.outputs[0])] = parts(made)
                continue
            if self.says_nothing(made):
                self.made.update((id(o), alg.zero) for o in made.outputs)
                continue
            whole = made.outputs[0].value.dtype.kind in "iu"
            try:
                # Most calls give floats: the fact is set where it changes, and not for every call.
                if whole is current.get().whole:
                    found = self.convert(made)
                else:
                    with supposing(whole=whole):
                        found = self.convert(made)
            except NoExpression as error:
                error.span = error.span or made.span
                raise
            results = found if isinstance(found, list) else [found]
            for output, expression in zip(made.outputs, results, strict=True):
                self.made[id(output)] = _decided(expression, output)
                if output.value.dtype.kind in "iu":
                    alg.note_integers(expression)
        self.kept += outputs
        return [self.operand(o) for o in outputs]

    def says_nothing(self, made: Call) -> bool:
        """Whether it is a call of a VJP rule on empty arrays, which may compute 1/0 (an empty mean)."""
        return id(made) not in self.given and all(0 in o.value.shape for o in made.outputs)

    def terms(self, made: Call) -> list[tuple[Expression, Number]]:
        """The terms of a sum, including those of inner sums that nothing else reads."""
        a, b, alpha = made.args
        factor = Number.of(alpha) if made.primitive.symbolic == "plus" else -Number.of(alpha)
        found = self.parts.pop(id(a), None)
        if found is None:
            found = [(as_exact(self.operand(a)), ONE)]
        more = self.parts.pop(id(b), None)
        if more is None:
            more = [(as_exact(self.operand(b)), ONE)]
        found += more if factor == ONE else [(t, c * factor) for t, c in more]
        return found

    def factors(self, made: Call) -> list[tuple[Expression, Number]]:
        """The factors of a product, including those of inner products that nothing else reads."""
        found: list[tuple[Expression, Number]] = []
        inside = dict(zip(made.primitive.names, made.args, strict=True))
        args = self.arguments(made)
        for formula in (made.primitive.symbolic or "").split(" * ", 1):
            own = self.parts.pop(id(inside.get(formula)), None)
            found += own or [(formulas.read(formula, made.primitive.names, args), ONE)]
        return found

    def operand(self, value: Any) -> Any:
        """An operand as an expression; options are returned unchanged."""
        if isinstance(value, Value):
            found = self.made.get(id(value))
            return constant(value.value) if found is None else found
        if isinstance(value, (Tensor, Scalar)):
            return constant(value.array)
        if isinstance(value, np.ndarray | np.generic):
            return constant(value)
        if isinstance(value, (list, tuple)):
            return [self.operand(v) for v in value]
        return value

    def convert(self, made: Call) -> Any:
        """The expression of a call; a list if it has several outputs."""
        primitive = made.primitive
        if made.outputs[0].value.dtype.kind == "b":
            # NumPy adds booleans by `or`; as numbers True + True would be 2, and no condition.
            of_truths = _OF_TRUTHS.get(table.public_name(primitive) or "")
            if of_truths is not None:
                return function(of_truths, *map(self.operand, made.args[:2]))
        if any(id(a) in self.parts for a in made.args):
            return (
                alg.combine(self.terms(made)) if _is_sum(made) else alg.product(self.factors(made))
            )
        args = self.arguments(made)
        rule = primitive.symbolic or primitive.public_name
        if primitive.symbolic or rule in RULES:
            return rule_for(rule)(self, made, args)
        word = table.public_name(primitive)
        if word is None:
            return self.expand(made)
        if primitive.batching == "elementwise":
            if all(k == "tensor" for k in primitive.kinds):
                return function(word, *args)
            tensors = [a for a, k in zip(args, primitive.kinds, strict=True) if k == "tensor"]
            options = chosen(primitive, args)
            return call(word, tensors, broadcast(t.shape for t in tensors), options)
        return self.general(word, made, args)

    def arguments(self, made: Call) -> list[Any]:
        """The arguments of a call: operands as expressions, options as they are."""
        primitive = made.primitive
        args: list[Any] = []
        for value, kind in zip(made.args, primitive.kinds, strict=True):
            if kind == "option":
                args.append(self.operand(value) if is_tensor(value) else value)
            elif kind == "tensor" and isinstance(value, (bool, int, float, complex)):
                args.append(known_number(value))
            else:
                args.append(None if id(value) in self.parts else self.operand(value))
        # The trace has cast what this function does not take; the text has to say so as well.
        if "b" in primitive.refuses or primitive.types == "own":
            args = list(map(_of_floats, args, made.args))
        return args

    def general(self, word: str, made: Call, args: list[Any], names: str | None = None) -> Any:
        """A call of a public function: operands in full shape, and the options that are not defaults."""
        primitive = made.primitive
        operands: list[Expression] = []
        options: list[tuple[str, Any]] = []
        # Where options stand between operands, as in index_fill(x, dim, index, value), both must keep their
        # places.
        last = -1  # the last operand: parameters up to it are passed by position
        for i, (kind, given) in enumerate(zip(primitive.kinds, made.args, strict=True)):
            if given is not None and (kind != "option" or is_tensor(given)):
                last = i
        plain = primitive.kinds[: last + 1].count("option") == 0
        for i, (value, given, kind) in enumerate(
            zip(args, made.args, primitive.kinds, strict=True)
        ):
            if kind == "list":
                parts = [self.whole(v, g) for v, g in zip(value, given, strict=True)]
                operands.append(call("[]", parts, ()))
            elif given is not None and (kind != "option" or is_tensor(given)):
                operands.append(self.whole(value, given))
            elif i < last and not plain:
                options.append(("", value))
                continue
            else:
                continue
            if not plain:
                options.append(("@", len(operands) - 1))
        rest = chosen(primitive, args, names)
        if not plain:
            early = {
                n
                for n, k in zip(primitive.names[:last], primitive.kinds, strict=False)
                if k == "option"
            }
            renamed = [k for k, _ in rest]
            rest = (
                []
                if all(k == "" or k in early for k in renamed)
                else [(k, v) for k, v in rest if k and k not in early]
            )
        options += rest
        if len(made.outputs) == 1 and primitive.returns_one:
            return call(word, operands, made.outputs[0].shape, options)
        whole = call(word, operands, (), options)
        # A function with several results is one call, and each result selects its own, so that it is
        # printed once.
        return [
            call("select", [whole], o.shape, [("", 0), ("", k)]) for k, o in enumerate(made.outputs)
        ]

    def whole(self, value: Any, given: Any) -> Expression:
        """An operand in its full shape; integers and booleans keep their dtype."""
        if isinstance(given, int):  # a number of Python's where a tensor of floats is wanted
            return call("tensor", [call("float", [number(int(given))], ())], ())
        own = value if isinstance(value, Expression) else self.operand(given)
        made = in_full(own, given)
        # exp(2) is an error in the language as it is in PyTorch: the operand must be a tensor.
        if not shape_of(given) and alg.is_bare(made):  # a tensor, as functions want one
            return call("tensor", [call("float", [own], ())], ())
        return made

    def expand(self, made: Call) -> Any:
        """The expression of an internal primitive, from its decomposition."""
        try:
            results = decomposition(made)
        except (
            *OPERATION_ERRORS,
            AttributeError,
        ) as error:  # a traced array lacks most methods of NumPy's
            raise no_expression(made) from error
        # The new values must live as long as the ids under which they are known.
        self.kept += results
        read = self.read(results)
        return read if len(made.outputs) > 1 else read[0]


# Sums and products of booleans are booleans.
_OF_TRUTHS = {"add": "bitwise_or", "mul": "bitwise_and"}


def _of_floats(own: Any, given: Any) -> Any:
    """An operand for a function that takes only floats; casts such as `(x > 0).double()` come back."""
    kind = given.value.dtype.kind if isinstance(given, Value) else ""
    return alg.floating(own) if kind == "f" and isinstance(own, Expression) else own


def _decided(expression: Expression, value: Value) -> Expression:
    """The expression; a constant condition such as `pi > 0.1` becomes True or False.

    A boolean that was lifted as ones and zeros becomes a condition again.
    """
    if value.value.dtype.kind != "b" or expression.op == "number":
        return expression
    fixed = expression.op == "call" and expression.position == -1 and not expression.shape
    known = set(value.value.flat) if fixed else set()
    # Branches are decided by what was traced; a comparison of numbers says the same at every point.
    if len(known) == 1:
        return number(bool(known.pop()))
    return expression if alg.is_truth(expression) else function("ne", expression, alg.zero)


def _is_sum(made: Call) -> bool:
    """Whether it is a sum of two tensors, or their difference."""
    return (
        made.primitive.symbolic in ("plus", "minus")
        and made.outputs[0].value.dtype.kind != "b"
        and isinstance(made.args[2], int)
        and not is_tensor(made.args[2])
    )


def _factors(made: Call) -> list[Any]:
    """The factors of a product that may be products themselves."""
    first, times, rest = (made.primitive.symbolic or "").partition(" * ")
    if not (times and first.isidentifier() and made.outputs[0].value.dtype.kind == "f"):
        return []
    named = dict(zip(made.primitive.names, made.args, strict=True))
    return [named[n] for n in (first, rest) if n in named]


def _inner(order: Sequence[Call], outputs: Sequence[Value]) -> set[int]:
    """The sums that only another sum reads: n terms are lifted as one sum, not as a chain of n.

    The products that only another product reads, too.
    """
    # An output is read by whoever asked for it: it must not be dissolved in a sum.
    uses: dict[int, int] = {id(o): 2 for o in outputs}
    terms: set[int] = set()
    factors: set[int] = set()
    for made in order:
        for v in operands_of(made):
            uses[id(v)] = uses.get(id(v), 0) + 1
        if _is_sum(made):
            terms.update(map(id, made.args[:2]))
        factors.update(map(id, _factors(made)))
    once = [c for c in order if uses.get(id(c.outputs[0])) == 1]
    found = set()
    for made in once:
        own, is_sum = id(made.outputs[0]), _is_sum(made)
        if (is_sum and own in terms) or (not is_sum and own in factors and _factors(made)):
            found.add(id(made))
    return found


__all__ = ["Lifter", "NoExpression"]
