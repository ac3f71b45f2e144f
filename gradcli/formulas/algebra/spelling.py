"""How the language writes a call of a primitive: the function's name and the options to print."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from gradcli.engine.core.tensor import Scalar, Tensor
from gradcli.formulas.algebra.expressions import Expression
from gradcli.language.program import Program
from gradcli.transforms.tracing.calls import Call, Value


class NoExpression(NotImplementedError):
    """The derivative needs an operation that cannot be written as an expression.

    primitive: that operation, if it is in the table. span: where the program calls its function.
    """

    def __init__(
        self, message: str, primitive: Any = None, span: tuple[int, int] | None = None
    ) -> None:
        super().__init__(message)
        self.primitive, self.span = primitive, span

    def within(self, program: Program) -> NoExpression:
        """The same error, worded and located by the call in this program."""
        found = (
            None if self.primitive is None else _called(program, _stem(self.primitive), self.span)
        )
        if found is None:
            return self
        word, span = found
        message = f"the derivative of {word} has no form as an expression"
        return NoExpression(message, self.primitive, span)


def _stem(primitive: Any) -> str:
    """The common stem of the nodes of an operation and its derivatives: `Unfold` of UnfoldBackward0."""
    return re.sub(r"(Double)?(Backward\d*)+$", "", primitive.node or "")


def _called(
    program: Program, stem: str, within: tuple[int, int] | None
) -> tuple[str, tuple[int, int]] | None:
    """(name, span) of the call in a program whose primitive has this stem; within: a known span."""
    from gradcli.engine.registry import table

    for kind, word, _, span in program.walk():
        if kind not in ("name", "attribute") or not stem:
            continue
        if within is not None and not within[0] <= span[0] < within[1]:
            continue
        for name in (program.source[slice(*span)], word, f"nn.functional.{word}"):
            function = table.FUNCTIONS.get(name)
            rows = () if function is None else (*function.primitives, function.target)
            if any(
                _stem(primitive) == stem for primitive in rows if getattr(primitive, "node", None)
            ):
                return name, span
    return None


def is_tensor(value: Any) -> bool:
    return isinstance(value, (Value, Tensor, Scalar, np.ndarray))


def no_expression(made: Call) -> NoExpression:
    """The error for a call of a primitive that cannot be written as an expression."""
    return NoExpression(
        f"the derivative needs {made.primitive.public_name}, which has no form as an expression",
        made.primitive,
        made.span,
    )


def shape_of(value: Any) -> tuple[int, ...]:
    """The shape of an operand of a call: a Value, a tensor or a number."""
    return tuple(value.shape) if hasattr(value, "shape") else ()


def chosen(primitive: Any, args: list[Any], names: str | None = None) -> list[tuple[str, Any]]:
    """The options of a call that are not defaults, as keywords; `dim` and its like by position.

    names: the options of the public function, in the order of the primitive's; "-" leaves one out.
    """
    found: list[tuple[str, Any]] = []
    renamed = iter(names.split()) if names is not None else None
    leading = True
    by_position = len(primitive.names) - primitive.keyword_only
    for i, (word, kind, value) in enumerate(
        zip(primitive.names, primitive.kinds, args, strict=True)
    ):
        if kind != "option":
            continue
        shown = next(renamed, "-") if renamed is not None else word
        if shown == "-" or isinstance(value, Expression) or is_tensor(value):
            leading = False
            continue
        if value == primitive.defaults.get(word, DEFAULTS.get(shown, primitive)):
            leading = False
            continue
        if shown == "dim" and isinstance(value, (tuple, list)) and len(value) == 1:
            value = value[0]
        known = shown in ("dim", "dim0", "dim1", "diagonal", "dims", "offset")
        # An option that is left out ends those without a name: the next would be read in its place.
        positional = leading and known and i < by_position
        found.append(("" if positional else shown, value))
        leading = leading and positional
    return found


DEFAULTS: dict[str, Any] = {
    "keepdim": False,
    "dtype": None,
    "alpha": 1,
    "beta": 1,
    "descending": False,
    "accumulate": False,
}
