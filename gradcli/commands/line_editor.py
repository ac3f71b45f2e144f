"""Where a session's lines come from: a terminal with editing and history, or a pipe."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Protocol

from gradcli.commands.cursor_completion import Candidate, complete, hint
from gradcli.system.visible import visible

PROMPT, MORE = ">>> ", "... "
INDENT = "    "
HISTORY_VARIABLE = "GRADCLI_HISTORY"
HISTORY_LENGTH = 2000
_DELIMITERS = " \t\n`~!@#$%^&*()-=+[{]}\\|;'\",<>/?"
_SHOWN = 60  # candidates that are listed with their signatures


class Lines(Protocol):
    """What the editor drives."""

    pending: list[str]

    def feed(self, line: str, *, ahead: str | None = None) -> bool:
        """Take a line; whether more are needed."""

    def paste(self, text: str) -> bool:
        """Take several lines; whether more are needed."""

    def finish(self) -> None:
        """Run what is pending."""

    def cancel(self) -> None:
        """Forget what is pending."""

    def refuse(self, message: str) -> None:
        """Report what could not even be read, and forget what is pending."""


def read_pipe(session: Lines, stream: IO[str]) -> None:
    """Feed every line of a stream, without prompts. A line that is no text is refused; the rest is read."""
    for number, line in enumerate(getattr(stream, "buffer", stream), 1):
        try:
            text = line if isinstance(line, str) else line.decode()
        except UnicodeDecodeError as error:
            session.refuse(f"line {number} is not a text in UTF-8 (byte {error.start})")
            continue
        session.feed(text.rstrip("\r\n"))
        if sys.stdout is not None:
            sys.stdout.flush()
    session.finish()


def read_terminal(session: Lines, names: Any) -> None:
    """Feed lines that are typed. `names()` gives the session's names, for completion.

    Ctrl-C ends the line, Ctrl-D the session.
    """
    editor = _Editor(names)
    more = False
    entry: list[str] = []
    while True:
        try:
            line = editor.read(MORE if more else PROMPT, session.pending)
        except EOFError:
            print()
            return
        except KeyboardInterrupt:
            print()
            session.cancel()
            more, entry = False, []
            continue
        entry.append(line)
        try:
            more = session.paste(line) if "\n" in line else session.feed(line)
        except KeyboardInterrupt:
            session.cancel()
            more = False
            print("interrupted", file=sys.stderr)
        finally:
            if not more:
                editor.remember("\n".join(entry).strip())
                entry = []
        sys.stdout.flush()


class _Editor:
    """readline, where Python has it."""

    def __init__(self, names: Any) -> None:
        self.names = names
        self.found: list[Candidate] = []
        self.indent, self.prompt = "", PROMPT
        self.readline: Any = None
        try:
            import readline
        except ImportError:  # Python without readline reads lines all the same
            return
        self.readline = readline
        readline.set_completer(self._complete)
        readline.set_completer_delims(_DELIMITERS)
        if "libedit" in (readline.__doc__ or ""):
            readline.parse_and_bind("bind ^I rl_complete")
        else:
            readline.parse_and_bind("tab: complete")
            readline.parse_and_bind("set enable-bracketed-paste on")
            readline.parse_and_bind("set blink-matching-paren on")
            readline.set_completion_display_matches_hook(self._show)
        readline.set_startup_hook(self._begin)
        if hasattr(readline, "set_auto_history"):
            readline.set_auto_history(False)
        self.path = _history_path()
        for entry in _read_history(self.path):
            readline.add_history(entry)

    def read(self, prompt: str, pending: list[str]) -> str:
        """One line; a text that is pasted may hold several."""
        last = pending[-1] if pending else ""
        self.indent = last[: len(last) - len(last.lstrip())]
        if last.rstrip().endswith(":"):
            self.indent += INDENT
        self.prompt = prompt
        return input(prompt)

    def remember(self, entry: str) -> None:
        """Add an input to the history, in memory and on disk."""
        if self.readline is None or not entry.strip():
            return
        length = self.readline.get_current_history_length()
        if length and self.readline.get_history_item(length) == entry:
            return
        self.readline.add_history(entry)
        _append_history(self.path, entry)

    def _begin(self) -> None:
        # What is pasted line by line brings its own indentation.
        if self.indent and not select.select([sys.stdin], [], [], 0)[0]:
            self.readline.insert_text(self.indent)

    def _complete(self, text: str, state: int) -> str | None:
        if state == 0:
            before = self.readline.get_line_buffer()[: self.readline.get_endidx()]
            begin = self.readline.get_begidx()
            if not before.strip():
                self.readline.insert_text(INDENT)
                self.readline.redisplay()
                self.found = []
                return None
            self.found = []  # readline takes an error for no completion
            start, found = complete(before, self.names())
            # readline replaces from `begin` on, which may lie before or behind where we begin.
            head = before[begin:start] if start >= begin else ""
            cut = max(begin - start, 0)
            self.found = [Candidate(head + c.text[cut:], c.meta) for c in found]
        return self.found[state].text if state < len(self.found) else None

    def _show(self, text: str, matches: Sequence[str], longest: int) -> None:
        """List the candidates: with signatures where they are few."""
        line = self.readline.get_line_buffer()
        print()
        around = hint(line[: self.readline.get_endidx()], self.names())
        if around:
            print(around)
        print(visible(listing(self.found, _columns())))
        print(f"{self.prompt}{line}", end="", flush=True)


def listing(found: list[Candidate], columns: int) -> str:
    """Candidates for a person to choose from: a line each if that says more, in columns if they are many."""
    shown = [c.text.rpartition(".")[2] or c.text for c in found]
    if len(found) <= _SHOWN // 3 and any(c.meta for c in found):
        return "\n".join(
            _cut(_said(text, c.meta), columns) for c, text in zip(found, shown, strict=True)
        )
    if len(found) > 10 * _SHOWN:
        return f"{len(found)} names: type more of it"
    cell = max(map(len, shown), default=0) + 2
    across = max(columns // cell, 1)
    rows = [shown[i : i + across] for i in range(0, len(shown), across)]
    return "\n".join("".join(text.ljust(cell) for text in row).rstrip() for row in rows)


def _said(text: str, meta: str) -> str:
    """A candidate with what is said about it: a signature has the name in it already."""
    name, meta = text.rstrip("("), " ".join(meta.split())
    return meta if meta.startswith(f"{name}(") else f"{name}  {meta}".rstrip()


def _cut(text: str, columns: int) -> str:
    return text if len(text) < columns else text[: columns - 2] + "…"


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        return 80


# -- history --------------------------------------------------------------------------------------
def _history_path(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Where the history is kept; GRADCLI_HISTORY names another file, or none if it is empty."""
    if (chosen := environment.get(HISTORY_VARIABLE)) is not None:
        return Path(chosen).expanduser() if chosen else None
    state = environment.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "gradcli" / "history"


def _read_history(path: Path | None) -> list[str]:
    """The entries, oldest first; one line of the file each."""
    if path is None:
        return []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    if len(lines) > 2 * HISTORY_LENGTH:
        lines = lines[-HISTORY_LENGTH:]
        _write(path, "".join(f"{line}\n" for line in lines), "w")
    return [_unescaped(line) for line in lines[-HISTORY_LENGTH:]]


def _append_history(path: Path | None, entry: str) -> None:
    if path is not None:
        _write(path, entry.replace("\\", "\\\\").replace("\n", "\\n") + "\n", "a")


def _write(path: Path, text: str, mode: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with path.open(mode, encoding="utf-8") as stream:
            stream.write(text)
    except OSError:  # a home that cannot be written has no history
        return


def _unescaped(line: str) -> str:
    return "\\".join(piece.replace("\\n", "\n") for piece in line.split("\\\\"))
