"""What a stream is: a terminal or not, how wide, and whether colour is wanted on it."""

from __future__ import annotations

import os
from typing import Any

PLAIN_WIDTH = 100  # for lines of source under errors, where there is no terminal to measure


def is_terminal(stream: Any) -> bool:
    """Whether somebody is looking: a stream that is a terminal, and not a dumb one."""
    try:
        return bool(stream.isatty()) and not is_dumb()
    except (AttributeError, ValueError):
        return False


def is_dumb() -> bool:
    """Whether the terminal is said to know no escape sequences."""
    return os.environ.get("TERM", "").lower() in ("dumb", "unknown")


def how_seen(stream: Any, choice: str = "auto") -> tuple[bool, bool]:
    """Whether somebody is looking, and whether colour is wanted: see `colour_wanted`."""
    return is_terminal(stream), colour_wanted(stream, choice)


def echo(text: str, stream: Any) -> None:
    """Write a line and flush the stream."""
    stream.write(f"{text}\n")
    stream.flush()


def wrapped(text: str, columns: int, *, first: str = "", rest: str = "") -> str:
    """Prose in lines, broken between words. first, rest: what the lines begin with."""
    from textwrap import TextWrapper

    whole = TextWrapper(columns, first, rest, break_long_words=False, break_on_hyphens=False)
    return whole.fill(text)


def fitted(text: str, stream: Any) -> str:
    """Lines of prose, each broken between words where the stream is a terminal that is narrower.

    Source and caret, which are indented by four, stay as they are.
    """
    if not is_terminal(stream):
        return text
    columns = width(stream)
    return "\n".join(_fitted(line, columns) for line in text.split("\n"))


def _fitted(line: str, columns: int) -> str:
    if len(line) <= columns or line.startswith("    "):
        return line
    return wrapped(line, columns, rest="    " if line.startswith("  ") else "  ")


_COLOURS = {"red": 31, "green": 32, "yellow": 33, "cyan": 36, "grey": 90}


def painted(text: str, colour: str | None = None, *, bold: bool = False) -> str:
    """Text in a colour, in bold, or both."""
    code = f"\033[{_COLOURS[colour]}m" if colour else ""
    return code + "\033[1m" * bold + text + "\033[0m"


def colour_wanted(stream: Any, choice: str = "auto") -> bool:
    """--color, then NO_COLOR and TERM=dumb, then FORCE_COLOR, then whether it is a terminal.

    TERM=dumb is stronger than FORCE_COLOR, as for rich 15: what cannot show colours shows their codes.
    """
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR") or is_dumb():
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return is_terminal(stream)


def width(stream: Any) -> int:
    """Columns of the terminal that the stream is; PLAIN_WIDTH where it is none."""
    if not is_terminal(stream):
        return PLAIN_WIDTH
    try:
        columns = int(os.environ.get("COLUMNS", 0)) or os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        columns = 0
    return columns if columns > 0 else 80


def said_width() -> int:
    """The columns that COLUMNS says, for pictures in a pipe too; 0 where it says none."""
    said = os.environ.get("COLUMNS", "")
    return int(said) if said.isascii() and said.isdigit() else 0


def speaks_unicode(stream: Any) -> bool:
    """Whether signs beyond ASCII can be written: as the stream's encoding has it, and the locale.

    Python writes UTF-8 in the C locale too; but LC_ALL=C is how a user asks for ASCII.
    """
    encoding = (
        (getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "").replace("_", "")
    )
    if not encoding.startswith("utf"):
        return False
    chosen = os.environ.get("LC_ALL") or os.environ.get("LC_CTYPE") or os.environ.get("LANG")
    coerced = chosen == "C.UTF-8" and not os.environ.get("LC_ALL")  # by Python, as it started
    if coerced and os.environ.get("LANG") in ("C", "POSIX"):
        return False
    return chosen not in ("C", "POSIX")
