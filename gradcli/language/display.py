"""How a notebook displays a value: its representation, long sequences an item a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gradcli.engine.system.budget as budget
from gradcli.language.located_errors import LanguageError

if TYPE_CHECKING:
    from gradcli.language.program import Program

WIDTH = 79


def is_displayed(program: Program) -> bool:
    """Whether a notebook displays the program's value: its last line is an expression without a `;`."""
    if not program.ends_in_expression:
        return False
    # The span of x in `(x);` ends before the bracket.
    _, end = program.span(len(program) - 2)
    return not program.source[end:].lstrip(" \t)").startswith(";")


def pretty(value: Any) -> str:
    """The text that a notebook shows for a value.

    Raises LanguageError if the text would be too long.
    """
    try:
        if budget.is_cyclic(value):
            return repr(value)
        budget.nested(value)
        return _indented(value, 0)
    except budget.TooMany as error:
        words, kind = str(error), "value"
    except MemoryError as error:
        words, kind = budget.out_of_memory(error), "memory"
    except RecursionError:
        words, kind = "the value is nested too deeply to be written", "value"
    raise LanguageError(words, kind=kind, usage=False)


def _indented(value: Any, indent: int) -> str:
    """The text of a value whose first line begins at column `indent`."""
    kind = type(value)
    if kind is tuple or kind is list:
        shown = [_indented(item, indent + 1) for item in value]
        return _sequence("[]" if kind is list else "()", shown, indent)
    if kind is dict:
        keys = [f"{_indented(key, indent + 1)}: " for key in value]
        pairs = zip(keys, value.values(), strict=True)
        shown = [key + _indented(item, indent + 1 + len(key)) for key, item in pairs]
        return _sequence("{}", shown, indent)
    if kind is str:
        return repr(value)
    return _shown(value).replace("\n", "\n" + " " * indent)


def _shown(value: Any) -> str:
    from gradcli.engine.core.node import Node

    text = repr(value)
    return (
        text.replace(" object at ", " at ") if isinstance(value, Node) else text
    )  # as notebooks do


def _sequence(brackets: str, shown: list[str], indent: int) -> str:
    opening, closing = brackets[0], brackets[1]
    tail = "," if closing == ")" and len(shown) == 1 else ""
    line = f"{opening}{', '.join(shown)}{tail}{closing}"
    if "\n" not in line and indent + len(line) <= WIDTH:
        return line
    separator = ",\n" + " " * (indent + 1)
    return f"{opening}{separator.join(shown)}{tail}{closing}"
