"""The gate of every stream and every file of text: what is written may be seen, and does nothing else.

A control character that came from a cell of a table, a file's name or a message would move the cursor,
change colours, hide text or retitle the terminal's window, and makes XML ill-formed. `visible` spells it
out as JSON, Python and JavaScript do (`\\u001b`), so that a text of any of these means what it meant.
"""

from __future__ import annotations

import re
from functools import cache

# All controls but newline and tab; what breaks lines or turns the direction of writing; halves of
# characters; what XML has no place for.
_HIDDEN = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufff9-\ufffb\ufffe\uffff]"
)


def visible(text: str) -> str:
    """The text with everything spelt out that would not show: the same object where there is nothing.

    Newlines and tabs stay. Colours of one's own are added behind the gate.
    """
    if text.isprintable() or text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return _hidden().sub(_spelt, text)


def visible_line(text: str) -> str:
    """The same for a name or a label, whose newlines and tabs are spelt out as well."""
    if text.isprintable():
        return text
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


@cache
def _hidden() -> re.Pattern[str]:
    """The pattern, made when it is first needed: most texts show as they are."""
    return re.compile(_HIDDEN)


def _spelt(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


# -- how wide it is -------------------------------------------------------------------------------
_NARROW = re.compile("[\x00-\xac\xae-\u02ff\u2010-\u22ff\u2500-\u259f]*")  # one column each


def columns(text: str) -> int:
    """How many columns of a terminal a text takes: Chinese characters two, combining ones none."""
    if text.isascii() or _NARROW.fullmatch(text):
        return len(text)
    return sum(map(_columns, text))


@cache
def _columns(character: str) -> int:
    import unicodedata

    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def fitting(text: str, room: int) -> int:
    """How many characters of a text, from its beginning, there are columns for."""
    if columns(text) == len(text):
        return min(max(room, 0), len(text))
    for count, character in enumerate(text):
        room -= _columns(character)
        if room < 0:
            return count
    return len(text)
