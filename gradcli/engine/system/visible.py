"""Control characters are escaped in all text that is written to a stream or a text file.

A control character in a table's cell, a file name or a message could move the cursor, change colours, hide
text or retitle the terminal's window, and it makes XML ill-formed. `visible` escapes it as JSON, Python
and JavaScript do (`\\u001b`), so that text in these languages keeps its meaning.
"""

from __future__ import annotations

import re
from functools import cache

# All controls but newline and tab; line separators and bidirectional controls; surrogates; characters
# that XML excludes.
_HIDDEN = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufff9-\ufffb\ufffe\uffff]"
)


def visible(text: str) -> str:
    """The text with invisible characters escaped, except newlines and tabs; the same object if it has none.

    Our own colours are added afterwards.
    """
    if text.isprintable() or text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return _hidden().sub(_spelt, text)


def visible_line(text: str) -> str:
    """As `visible`, for a name or label: newlines and tabs are escaped too."""
    if text.isprintable():
        return text
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


@cache
def _hidden() -> re.Pattern[str]:
    """The pattern of characters to escape, compiled at the first use."""
    return re.compile(_HIDDEN)


def _spelt(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


# -- the width of text -------------------------------------------------------------------------------
_NARROW = re.compile("[\x00-\xac\xae-\u02ff\u2010-\u22ff\u2500-\u259f]*")  # one column each


def columns(text: str) -> int:
    """The number of terminal columns of a text: wide (CJK) characters take two, combining ones none."""
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
    """How many characters from a text's beginning fit into `room` columns."""
    if columns(text) == len(text):
        return min(max(room, 0), len(text))
    for count, character in enumerate(text):
        room -= _columns(character)
        if room < 0:
            return count
    return len(text)
