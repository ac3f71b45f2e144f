"""Equations that are typed with one `=`, where `root` and `fit` take `==`: `cos(x) = a*x`."""

from __future__ import annotations

import re
from collections.abc import Iterator

# What may stand before `=` in an assignment: names, items and attributes of them, several with commas.
_TARGET = re.compile(
    r"\s*\(?[^\W\d][\w.]*(\[[^=]*\])?\s*(:[^=]*)?(,\s*\*?[^\W\d][\w.]*\s*)*,?\)?\s*"
)
_SIGN = re.compile(r"(?<![=<>!:+\-*/%@&|^])=(?!=)")


def with_double_signs(text: str) -> str:
    """The text with `==` for each `=` between two expressions; assignments and arguments stay as they are."""
    found = "".join(_with_double_sign(piece) for piece in _pieces(text))
    return found if found != text else text


def _pieces(text: str) -> Iterator[str]:
    """The statements of a text with what separates them; commas outside of brackets separate equations."""
    depth, begin = 0, 0
    for at, sign in enumerate(text):
        depth += (sign in "([{") - (sign in ")]}")
        if sign in ";\n" and depth <= 0:
            yield text[begin:at]
            yield sign
            begin = at + 1
    yield text[begin:]


def _with_double_sign(piece: str) -> str:
    """A statement with `==` where a single `=` stands outside of all brackets behind an expression."""
    if '"' in piece or "'" in piece or "lambda" in piece:
        return piece
    places = [m.start() for m in _SIGN.finditer(piece) if _is_outside(piece, m.start())]
    if len(places) != 1 or _TARGET.fullmatch(piece[: places[0]]):
        return piece
    left, right = piece[: places[0]], piece[places[0] + 1 :]
    return f"{left}=={right}" if left.strip() and right.strip() else piece


def _is_outside(piece: str, at: int) -> bool:
    before = piece[:at]
    return all(before.count(a) == before.count(b) for a, b in ("()", "[]", "{}"))


__all__ = ["with_double_signs"]
