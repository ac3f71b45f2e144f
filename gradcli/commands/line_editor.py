"""Where a session's lines come from: a terminal, with prompt_toolkit where that is installed, or a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import IO, TYPE_CHECKING, Any

from gradcli.commands.session import MORE, PROMPT

if TYPE_CHECKING:
    from gradcli.commands.session import Session

MISSING = "colours, completion and a history need prompt_toolkit: pip install prompt_toolkit"


def read_pipe(session: Session, stream: IO[str]) -> None:
    """Feed every line of a stream, without prompts. A line that is no text is refused; the rest is read."""
    for number, line in enumerate(getattr(stream, "buffer", stream), 1):
        try:
            text = line if isinstance(line, str) else line.decode()
        except UnicodeDecodeError as error:
            session.refuse(f"line {number} is not UTF-8 text (byte {error.start})")
            continue
        session.feed(text.rstrip("\r\n"))
        if sys.stdout is not None:
            sys.stdout.flush()
    session.finish()


def read_terminal(
    session: Session, names: Any, note: Callable[[str], None], *, colour: bool = True
) -> None:
    """Feed what is typed. names() gives the session's names, for completion.

    Ctrl-C ends an input or a computation, Ctrl-D the session.
    """
    read: Callable[[], str] = partial(_plain, session.needs_more)
    try:
        from gradcli.commands.prompt import prompt

        read = prompt(session.needs_more, names, colour)
    except ImportError:
        note(f"note: {MISSING}")
    while True:
        try:
            text = read()
        except EOFError:
            print()
            return
        except KeyboardInterrupt:
            print()
            continue
        try:
            if session.paste(text):
                session.finish()
        except KeyboardInterrupt:
            session.cancel()
            print("interrupted", file=sys.stderr)
        sys.stdout.flush()


def _plain(needs_more: Callable[[str], bool]) -> str:
    with suppress(ImportError):
        import readline  # noqa: F401  # the arrow keys
    text = input(PROMPT)
    while needs_more(text):
        text += "\n" + input(MORE)
    return text
