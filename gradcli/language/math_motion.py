r"""Dots and primes that are derivatives by time: `\dot{q}`, `q'' + q`, and the coordinates of a Lagrangian.

Tokens in, tokens out. Where a text has `\dot{x}` or `x''`, its primes are no transposes: x' is the name
x_dot. In a Lagrangian the coordinates are functions of time, so q' is `q'(t)` and q is `q(t)`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from gradcli.language.notation import Token, indexed

_DOTS = {"_dot": 1, "_ddot": 2}
_NAMES = {1: "_dot", 2: "_ddot"}


class _Moving(NamedTuple):
    """A letter with its index, and how often it is differentiated; size: of its tokens."""

    name: str
    order: int
    primes: int
    size: int


def with_names(found: list[Token], is_function: Callable[[list[Token], int], bool]) -> list[Token]:
    """The tokens with x_dot for x' and x_ddot for x'', where the text has dots or two primes.

    is_function: whether primes at a token are those of `f'(x)`.
    """

    def own(i: int) -> _Moving | None:
        one = _moving(found, i)
        if one is not None and one.primes and is_function(found, i + one.size - one.primes):
            return None
        return one

    moving = [own(i) for i in range(len(found))]
    if not any(one is not None and (one.primes == 2 or one.order > one.primes) for one in moving):
        return found
    parts: list[Token] = []
    i = 0
    while i < len(found):
        one = moving[i]
        if one is None or one.primes not in _NAMES or one.order != one.primes:
            parts.append(found[i])
            i += 1
            continue
        end = found[i + one.size - 1].end
        letter, _, index = one.name.partition("_")
        name = f"{letter}{_NAMES[one.order]}{'_' * bool(index)}{index}"
        parts.append(found[i]._replace(kind="name", text=name, end=end))
        i += one.size
    return parts


def of_coordinates(found: list[Token], names: Collection[str]) -> list[Token]:
    """The tokens of a Lagrangian with q(t), q'(t) and q''(t) for its coordinates; `L =` is left out.

    names: of coordinates; what has a dot or a prime is one, too.
    """
    if [t.text for t in found[1:2]] == ["="] and found[0].kind == "name":
        found = found[2:]
    moving = [_moving(found, i) for i in range(len(found))]
    coordinates = {*names, *(one.name for one in moving if one is not None and one.order)}
    parts: list[Token] = []
    i = 0
    while i < len(found):
        one = moving[i]
        if one is None or one.name not in coordinates:
            parts.append(found[i])
            i += 1
            continue
        first, last = found[i], found[i + one.size - 1]
        i += one.size
        parts.append(first._replace(kind="name", text=one.name, end=last.end))
        parts += [Token("sign", "'", False, last.start, last.end)] * one.order
        if i < len(found) and found[i].text == "(" and not found[i].blank:  # q(t), as it was typed
            continue
        for kind, text in (("sign", "("), ("name", "t"), ("sign", ")")):
            parts.append(Token(kind, text, False, last.end, last.end))
    return parts


def _moving(found: list[Token], i: int) -> _Moving | None:
    """The letter that begins at a token, with its index, dots and primes; None elsewhere."""
    one = indexed(found, i)
    if one is None or (i and found[i - 1].text == "_"):
        return None
    name, end, order = one.name, one.end, 0
    for dots, number in _DOTS.items():  # q_dot, and q_dot_1 of `\dot q_1`
        letter, marked, rest = name.partition(dots)
        if marked and (not rest or rest.startswith("_")):
            name, order = f"{letter}{rest}", number
    primes = end
    while primes < len(found) and found[primes].text == "'":
        primes += 1
    return _Moving(name, order + primes - end, primes - end, primes - i)
