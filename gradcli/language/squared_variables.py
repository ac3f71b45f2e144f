r"""Derivatives by a square, `\partial/\partial\sigma^2`: a letter stands for it in a text of the language."""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from typing import NamedTuple

_ROOTS = frozenset(("sigma", "σ", "s"))  # letters of standard deviations, which are positive
_LETTERS = ("v", "q", "u", "v2", "v3", "v4")
SQUARED = re.compile(r"\s*(.+?)\s*(?:\^\{?2\}?|\*\*2|²)\s*")  # `\sigma^2`, `sigma**2`


class Squared(NamedTuple):
    """A text in which a letter stands for a square. rooted: whether its root stands there as well."""

    text: str
    rooted: bool


class NoSquare(Exception):
    """What keeps a text from being one of a square."""


def letter_for(used: Container[str]) -> str:
    """A letter that stands for a square, where these names are used."""
    return next((letter for letter in _LETTERS if letter not in used), "v_2")


def with_letter(text: str, name: str, letter: str) -> Squared:
    """A text with v for each `sigma**2`, v**2 for `sigma**4`, and sqrt(v) for sigma, which is positive.

    `sigma = sqrt(E)` becomes `v = E`. Raises NoSquare where the name may be negative and stands alone.
    """
    word = rf"(?<![\w.]){re.escape(name)}(?!\w)"
    if re.search(rf"\blambda\b[^:]*{word}", text):
        raise NoSquare(f"{name} is the parameter of a function")
    text = re.sub(rf"((?:^|[;\n])\s*){word}\s*=(?!=)\s*([^;\n]*)", _given(name, letter), text)
    stem = name.partition("_")[0]
    rooted = False

    def put(match: re.Match[str]) -> str:
        nonlocal rooted
        power = int(match[1] or match[2] or 1)
        if power % 2 == 0:
            return letter if power == 2 else f"{letter}**{_exponent(power // 2)}"
        if stem not in _ROOTS:
            raise NoSquare(f"{name} stands there without its square, and may be negative")
        rooted = True
        return f"sqrt({letter})" if power == 1 else f"{letter}**({power}/2)"

    return Squared(re.sub(rf"{word}(?:\*\*(-?\d+)(?![\w.])|\*\*\((-?\d+)\))?", put, text), rooted)


def _exponent(power: int) -> str:
    return str(power) if power > 0 else f"({power})"


def _given(name: str, letter: str) -> Callable[[re.Match[str]], str]:
    """What replaces `sigma = …`."""

    def put(match: re.Match[str]) -> str:
        root = re.fullmatch(r"sqrt\((.*)\)\s*", match[2])
        if root is None or not _is_closed(root[1]):
            raise NoSquare(f"{name} is given a value that is no square root")
        return f"{match[1]}{letter} = {root[1]}"

    return put


def _is_closed(text: str) -> bool:
    """Whether no bracket ends in a text that does not begin there."""
    depth = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return False
    return True


def remedy(name: str) -> str:
    """What to do where a text is none of a square."""
    return (
        f"write v for {name}^2 everywhere, and differentiate by v: log(v) for log({name}^2), "
        f"\\sqrt{{v}} for {name}"
    )
