"""What cuts the variables off: the piece of a program whose value depends on one and has no gradient.

The program has run already; its pieces are run once more, from front to back, until one is found.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

from gradcli import language
from gradcli.language import tree_kinds
from gradcli.language.located_errors import OPERATION_ERRORS, LanguageError
from gradcli.language.no_derivative import COMPARED, WHOLE, of_equation

MOST_ROWS = 400
_KINDS = {
    *(*tree_kinds.BINARY, *tree_kinds.COMPARISONS, "name", "neg", "pos", "invert", "not"),
    *("attribute", "call", "call_keywords", "subscript", "tuple", "list"),
}
SIZES = ("len", "size", "numel", "dim", "ndim", "shape", "nelement")  # the least of suspects
HINTS: dict[str, str] = {
    "detach": "detach() ends the graph: leave it out where the gradient is to pass",
    "data": ".data ends the graph: use the tensor itself",
    "tensor": "tensor(…) copies numbers: stack(…) or cat(…) of the tensors themselves",
    **dict.fromkeys(
        ("float", "int", "item", "tolist", "complex", "numpy"),
        "it makes a number, which has no gradient: compute with the tensor itself",
    ),
    **dict.fromkeys(SIZES, "a size does not depend on the numbers: there is no gradient of it"),
    **dict.fromkeys(("lt", "le", "gt", "ge", "eq", "ne", "not", "bool"), COMPARED),
}


class Cut:
    """The piece: its span, what ends the gradient there, the variables in it."""

    def __init__(self, span: tuple[int, int], hint: str) -> None:
        self.span, self.hint = span, hint


def find_cut(program: Any, names: dict[str, Any]) -> Cut | None:
    """The first piece whose value has no gradient though a part of it has; None if there is none.

    names: of the program, as they were when it ended.
    """
    if len(program) > MOST_ROWS:
        return None
    tracked: dict[int, bool] = {}
    late: Cut | None = None
    for row in range(len(program)):
        kind = tree_kinds.KINDS[program.rows[4 * row]]
        if kind not in _KINDS:
            continue
        inner = any(tracked.get(child, False) for child in program.children(row))
        known, value = _value(program, row, names)
        if not known:
            tracked[row] = inner
            continue
        own = _tracks(value)
        if kind == "attribute" and callable(value):
            own = inner
        elif inner and not own and value is not None:
            cut = Cut(program.span(row), _hint(program, row, kind, value))
            if _word(program, row) not in SIZES:
                return cut
            late = late or cut
        tracked[row] = own
    return late


def _value(program: Any, row: int, names: dict[str, Any]) -> tuple[bool, Any]:
    """The value of a piece, if running it again changes nothing."""
    start, end = program.span(row)
    text = program.source[start:end]
    word = _word(program, row)
    if word in ("print", "backward") or (word.endswith("_") and not word.endswith("__")):
        return False, None
    try:
        with redirect_stdout(io.StringIO()):
            return True, language.run(language.parse(text), dict(names)).value
    except (LanguageError, *OPERATION_ERRORS):
        return False, None


def _word(program: Any, row: int) -> str:
    """What is called there, or which attribute it is: the last word before the brackets."""
    start, end = program.span(row)
    head = program.source[start:end].rstrip()
    if head.endswith(")"):
        depth = 0
        for at in range(len(head) - 1, -1, -1):
            depth += (head[at] == ")") - (head[at] == "(")
            if not depth:
                head = head[:at]
                break
    word = head.rpartition(".")[2].strip()
    return word if word.isidentifier() else ""


def _tracks(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return any(map(_tracks, value))
    return bool(getattr(value, "requires_grad", False))


def _hint(program: Any, row: int, kind: str, value: Any) -> str:
    if kind == "eq" and row == len(program) - 3:
        return of_equation(program)
    word = _word(program, row) or kind
    known = HINTS.get(kind) or HINTS.get(word)
    if known is not None:
        return known
    whole: Callable[[], bool] | None = getattr(value, "is_floating_point", None)
    if whole is not None and not whole():
        return f"{word}() ends the graph: {WHOLE}"
    return f"the gradient ends here: {word}() gives none"
