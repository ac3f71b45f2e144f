"""What to write instead of an option's value that is no array of numbers: text, a dict, a range."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_LONG = 60  # characters of a remedy that is written out
OTHERS = {"null": "nan", "None": "nan", "NaN": "nan", "true": "True", "false": "False"}


def remedy(value: Any) -> str | None:
    """A remedy for a value that `as_tensor` refuses; None where there is none to tell."""
    if isinstance(value, str):
        return _unquoted(value) or "a value is numbers"
    if isinstance(value, Mapping):
        return _of_dict(value)
    if isinstance(value, range):
        shown = ", ".join(map(str, (value.start, value.stop, value.step)))
        return f"here it is written arange({shown})"
    if isinstance(value, (list, tuple)) and value:
        return _of_list(list(value))
    return None


def _of_dict(value: Mapping[Any, Any]) -> str:
    """A variable for each key that may be one; else rows of pairs."""
    keys, cells = list(value), [_spelt(v) for v in value.values()]
    if keys and all(isinstance(k, str) and k.isidentifier() for k in keys) and all(cells):
        return _short(
            "give each key a variable of its own:",
            " ".join(f"--{k} {c}" for k, c in zip(keys, cells, strict=True)),
            "--KEY VALUE",
        )
    if keys and all(map(_is_number, [*keys, *value.values()])):
        pairs = ", ".join(f"[{k!r}, {v!r}]" for k, v in value.items())
        return _short("write pairs as rows of a matrix:", f"[{pairs}]", "[[KEY, VALUE], …]")
    return "a value is one array of numbers: give each key a variable of its own"


def _of_list(items: list[Any]) -> str | None:
    if all(isinstance(i, Mapping) and i.keys() == items[0].keys() for i in items):
        rows = [list(i.values()) for i in items]
        if all(_is_number(c) for row in rows for c in row):
            return _short("leave out the names:", repr(rows), "[[VALUE, …], …]")
        return "leave out the names, and what is no number"
    if all(isinstance(i, str) for i in items):
        found = [_unquoted(i) for i in items]
        if all(found):
            return _short("leave out the quotes:", ",".join(items), "1,2")
    return "a value is numbers, and lists of them of one length"


def _unquoted(text: str) -> str | None:
    """The remedy for quotes about numbers."""
    try:
        list(map(float, text.split(",")))
    except ValueError:
        return None
    return f"leave out the quotes: {text}"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _spelt(value: Any) -> str:
    """A number or a list of numbers as an option takes it; empty for anything else."""
    items = value if isinstance(value, (list, tuple)) and value else [value]
    return ",".join(map(repr, items)) if all(map(_is_number, items)) else ""


def _short(words: str, written: str, else_: str) -> str:
    return f"{words} {written if len(written) <= _LONG else else_}"


__all__ = ["OTHERS", "remedy"]
