"""The prompt of a session in a terminal: prompt_toolkit's, with the session's completion and history."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.styles import Style
from pygments.lexers.python import PythonLexer

from gradcli.commands.cursor_completion import complete, hint
from gradcli.commands.session import MORE, PROMPT

INDENT = "    "
HISTORY_VARIABLE = "GRADCLI_HISTORY"
# The terminal's own colours, which its theme makes readable on light and on dark.
_STYLE = Style.from_dict(
    {
        "pygments.keyword": "ansimagenta",
        "pygments.operator.word": "ansimagenta",
        "pygments.literal.string": "ansigreen",
        "pygments.literal.number": "ansicyan",
        "pygments.name.function": "bold",
        "pygments.comment": "ansibrightblack",
        "pygments.error": "",  # the `?` of help, and the like
        "bottom-toolbar": "noreverse ansibrightblack",
    }
)


def prompt(
    needs_more: Callable[[str], bool], names: Callable[[], Mapping[str, Any]], colour: bool
) -> Callable[[], str]:
    """What reads an input. Raises EOFError for Ctrl-D, KeyboardInterrupt for Ctrl-C."""
    session: PromptSession[str] = PromptSession(
        PROMPT,
        multiline=True,
        prompt_continuation=MORE,
        lexer=PygmentsLexer(PythonLexer),
        completer=_SessionCompleter(names),
        history=_history(),
        key_bindings=_keys(needs_more),
        bottom_toolbar=lambda: hint(_before_cursor(), names()),
        style=_STYLE,
        include_default_pygments_style=False,
        complete_in_thread=True,  # the first time it loads the functions
        color_depth=None if colour else ColorDepth.DEPTH_1_BIT,
        reserve_space_for_menu=6,
    )
    return session.prompt


def _before_cursor() -> str:
    return get_app().current_buffer.document.text_before_cursor


class _SessionCompleter(Completer):
    """The names that may stand at the cursor, each with its signature beside it."""

    def __init__(self, names: Callable[[], Mapping[str, Any]]) -> None:
        self.names = names

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterable[Completion]:
        before = document.current_line_before_cursor
        start, found = complete(before, dict(self.names()))
        if event.text_inserted and start == len(before) and not before.endswith((".", "(", ", ")):
            return  # nobody has begun a word
        for one in found:
            shown = one.text.rpartition(".")[2] or one.text
            signature = " ".join(one.meta.split())
            yield Completion(one.text, start - len(before), display=shown, display_meta=signature)


def _keys(needs_more: Callable[[str], bool]) -> KeyBindings:
    """Enter runs what is complete, and else begins a line; Tab at the begin of a line indents."""
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion:
            buffer.complete_state = None  # it is in the text already
        elif buffer.document.text_after_cursor.strip() and "\n" in buffer.text:
            buffer.newline()
        elif needs_more(buffer.text):
            line = buffer.document.current_line_before_cursor
            buffer.newline()
            if line.rstrip().endswith(":"):
                buffer.insert_text(INDENT)
        else:
            buffer.validate_and_handle()

    @keys.add("tab", filter=Condition(lambda: not _before_cursor().rpartition("\n")[2].strip()))
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text(INDENT)

    return keys


# -- history --------------------------------------------------------------------------------------
def _history(environment: Mapping[str, str] = os.environ) -> History:
    """The inputs of earlier sessions, in a file; GRADCLI_HISTORY names another, or none if it is empty.

    A home that cannot be written has none.
    """
    chosen = environment.get(HISTORY_VARIABLE)
    state = environment.get("XDG_STATE_HOME") or "~/.local/state"
    path = Path(f"{state}/gradcli/history" if chosen is None else chosen).expanduser()
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.open("a").close()
    except OSError:
        return InMemoryHistory()
    return FileHistory(path)
