"""Values without a derivative: truth values, whole numbers, and what is no tensor."""

from __future__ import annotations

import re
from typing import Any

from gradcli.language import tree_kinds
from gradcli.language.located_errors import LanguageError
from gradcli.language.program import Program

COMPARED = "a comparison has no gradient: compute with what is compared (a sigmoid of the difference, relu)"
WHOLE = "whole numbers have no gradient: compute in floating point (for argmax: softmax)"
SOLVED = "gradcli root finds where it holds"
_WORDS = {
    "eq": "an equation",
    "ne": "a comparison",
    **dict.fromkeys(("lt", "le", "gt", "ge"), "an inequality"),
}


def relation(program: Program) -> tuple[str, str, str] | None:
    """(what it is, left side, right side) of the comparison that a program ends in; else None.

    The sides of `y = x**2; y == 3` are `y` and `3`.
    """
    row = len(program) - 3
    if not program.ends_in_expression or row < 0:
        return None
    word = _WORDS.get(tree_kinds.KINDS[program.kinds[row]])
    if word is None:
        return None
    left, right = (program.source[slice(*program.span(r))] for r in program.children(row))
    return word, left, right


def of_equation(program: Program) -> str:
    """What to write in place of an equation whose derivative is asked for."""
    found = relation(program)
    if found is None or found[0] != "an equation":
        return COMPARED
    _, left, right = found
    right = right if re.fullmatch(r"[\w.]+", right) else f"({right})"
    return (
        f"the difference of its sides has a derivative: {left} - {right}; gradcli diff EQUATION "
        f"--of NAME differentiates the function that it gives; {SOLVED}"
    )


def without_derivative(program: Program, value: Any, purpose: str) -> LanguageError | None:
    """The refusal of a `purpose` (gradient, Jacobian) of a value that has none; None where it may have one.

    A truth value has the slope 0 wherever it has one: 0 says nothing of the equation that was written.
    """
    array = getattr(value, "array", None)
    if array is None:
        from gradcli.language.runtime_errors import no_tensor

        found = None if isinstance(value, tuple | list) else no_tensor(program, value, purpose)
        if isinstance(value, bool) and found is not None:
            found.hint = of_equation(program)
        return found
    kind = array.dtype.kind
    if kind in "fc":
        return None
    known = relation(program)
    what, hint = "the value is a whole number", WHOLE
    if kind == "b":
        what = "the value is true or false"
        hint = of_equation(program)
        if known is not None:
            what = f"this is {known[0]}, which is true or false"
    return LanguageError(
        f"{what}: there is no {purpose}",
        kind="usage" if known is not None else "type",
        source=program.source,
        span=program.value_span,
        hint=hint,
        usage=known is not None,
    )
