"""`gradcli batch FILE|-`: lines of command lines, each as in a process of its own, answers in order.

A line runs in a fork of this process. What one line has to import, this process then imports as well, so
that the lines after it find it there. Nothing else passes from a line to another, and nothing stays running.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import select
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import IO, TYPE_CHECKING, Any, NamedTuple, NoReturn

from gradcli.commands import COMMANDS, output
from gradcli.commands.command_errors import programs_of_python, python_program, quoted, usage
from gradcli.commands.declarations import Argument, Option, Options, declaration, declare
from gradcli.commands.terminal import echo
from gradcli.engine.system import interrupts, process
from gradcli.engine.system.visible import visible

if TYPE_CHECKING:
    import click

# Packages that are safe to have imported before a fork: they start no threads by that.
_KEPT = frozenset({"gradcli", "numpy", "scipy", "lark", "rich", "click"})
_ALONE = ("batch", "repl")  # commands that are no line of a batch
_LONGEST = 1 << 20  # bytes of a line
_FORMS = ("--json", "--plain", "--bare", "--format")


Files = tuple[IO[bytes], IO[bytes], IO[bytes]]  # standard output and error, what was imported


class Line(NamedTuple):
    """A command line of the file. wrong: what is wrong with it as a line of words."""

    number: int
    text: str
    words: list[str]
    wrong: str = ""


class Started(NamedTuple):
    """A line that runs. code: that of one that could not start; files: its streams and its imports."""

    line: Line
    pid: int
    files: Files
    code: int | None = None


class Answer(NamedTuple):
    """What a line printed."""

    line: Line
    code: int
    out: str
    err: str


@declare(
    "batch",
    Argument("FILE", name="path", required=True, complete="files"),
    Option("--jobs N", "Run up to N lines at a time; the answers keep their order.", least=1),
    Option("--stop", "Stop after the first line that fails."),
    Option("--quiet", "Print the lines that fail only."),
    Option(
        "--junit FILE",
        "Write a report of the lines, as JUnit's, for a CI server.",
        complete="files",
    ),
    Option("--json", "Print an object a line, with the line's answer in it."),
    examples=(
        "gradcli batch lines.txt",
        "gradcli batch lines.txt --jobs 4 --json",
        "gradcli batch checks.txt --quiet --junit report.xml",
        "seq 3 | sed 's/.*/grad \"x**2\" --x &/' | gradcli batch -",
    ),
)
def command(ctx: click.Context, options: Options) -> None:
    """Run the command lines in FILE (- for standard input), one a line.

    Words are quoted as in a shell, but nothing is expanded; `gradcli` in front may be left out. A
    line runs as soon as it is there. Empty lines and lines that start with # are skipped. Where a
    line fails, its number is printed, and the others go on. The exit code is the highest of all
    lines. Lines that use each other's files go without --jobs.
    """
    from gradcli.commands import junit

    lines = Lines(options.path, options.json)
    worst = count = failed = 0
    formula: Line | None = None  # the first that failed
    reported: list[Answer] = []
    jobs = 1 if options.stop else options.jobs or 1
    for answer in _answers(ctx.find_root().command, lines, jobs):
        worst = max(worst, answer.code)
        if answer.code or not options.quiet:
            (_as_json if options.json else _as_text)(answer)
        count += 1
        failed += answer.code > 0
        if options.junit is not None:
            reported.append(answer)
        if answer.code and not answer.line.wrong and answer.line.words[0] not in COMMANDS:
            formula = formula or answer.line
        if answer.code and options.stop:
            break
    if formula is not None:
        file = quoted(options.path)
        output.note(
            f"line {formula.number} has no command; for formulas, one a line: "
            f"gradcli diff -f {file}, or --math as well"
        )
    if options.junit is not None:
        junit.write(options.junit, options.path, [(a.line.text, *a[1:]) for a in reported])
    if options.quiet and failed:
        output.note(f"{failed} of {count} lines failed")
    ctx.exit(worst)


class Lines:
    """The lines that are to run, one by one: a pipe may have no end.

    Raises LanguageError for a file that cannot be read.
    """

    def __init__(self, path: str, as_json: bool) -> None:
        if python_program(path):
            hint = programs_of_python([path])
            raise usage(f"{path} is a program, not command lines", hint=hint, kind="file")
        self.path, self.as_json, self.number = path, as_json, 0
        self.file: IO[bytes] = sys.stdin.buffer if path == "-" else self._opened()
        self.held, self.ended = b"", False

    def _opened(self) -> IO[bytes]:
        try:
            return open(self.path, "rb")
        except OSError as error:
            raise self._unreadable(error.strerror) from None

    def _unreadable(self, said: str | None) -> Exception:
        return usage(f"cannot read {self.path}: {said}", kind="file")

    def is_there(self) -> bool:
        """Whether the next line can be read without waiting for who writes it."""
        while b"\n" not in self.held and not self.ended:
            try:
                waits = not select.select([self.file], [], [], 0)[0]
            except (OSError, ValueError):  # no pipe: it never waits
                waits = False
            if waits:
                return False
            self._read()
        return True

    def next(self) -> Line | None:
        """The next line that is to run; None behind the last one."""
        while self.held or not self.ended:
            while b"\n" not in self.held and not self.ended and len(self.held) < _LONGEST:
                self._read()
            raw, _, self.held = self.held.partition(b"\n")
            self.number += 1
            try:
                if len(raw) >= _LONGEST:
                    raise self._unreadable(f"line {self.number} is longer than 1 MiB")
                found = _line(self.number, raw.decode(), self.as_json)
            except UnicodeDecodeError:
                raise self._unreadable("it is no text in UTF-8") from None
            if found is not None:
                return found
        return None

    def _read(self) -> None:
        try:
            part: bytes = self.file.read1(1 << 16)  # type: ignore[attr-defined]
        except OSError as error:
            raise self._unreadable(error.strerror) from None
        self.held += part
        self.ended = not part


def _line(number: int, text: str, as_json: bool) -> Line | None:
    text = text.strip()
    if not text or text.startswith("#"):
        return None
    try:
        words = shlex.split(text)
    except ValueError as error:
        return Line(number, text, [], f"{error}".lower())
    if words[:1] == ["gradcli"]:
        words = words[1:]
    if not words:
        return Line(number, text, [], "there is no command after gradcli")
    if words[0] in _ALONE:
        return Line(number, text, words, f"{words[0]} cannot be a line of a batch")
    if as_json:
        words = _with_json(words)
    return Line(number, text, words)


def _with_json(words: list[str]) -> list[str]:
    """The words with --json, where the command has it and no other form is asked for."""
    if any(word.partition("=")[0] in _FORMS for word in words):
        return words
    name, rest = (words[0], words[1:]) if words[0] in COMMANDS else ("grad", words)
    if words[0].startswith("-") or "--json" not in declaration(name).declared():
        return words
    return [name, "--json", *rest]


def _answers(program: Any, lines: Lines, jobs: int) -> Iterator[Answer]:
    """Of each line, in order; up to `jobs` of them run while the first is waited for."""
    running: list[Started] = []
    begin = _forked if hasattr(os, "fork") else _spawned
    while True:
        while len(running) < jobs and (not running or lines.is_there()):
            line = lines.next()
            if line is None:
                break
            running.append(begin(program, line))
        if not running:
            return
        yield _ended(running.pop(0))


def _files() -> Files:
    with ExitStack() as stack:
        first, second, third = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(3))
        stack.pop_all()  # `_ended` closes them
    return first, second, third


def _forked(program: Any, line: Line) -> Started:
    """The line in a process of its own, which begins as this one is now."""
    files = _files()
    if line.wrong:
        files[1].write(f"gradcli: error: {line.wrong}\n".encode())
        return Started(line, 0, files, 2)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    pid = os.fork()
    if pid == 0:
        _run(program, line.words, files)
    return Started(line, pid, files)


def _run(program: Any, words: list[str], files: Files) -> NoReturn:
    """Run words as the console script does, in this process, and end it."""
    from click import get_current_context
    from click.globals import pop_context

    code = 1
    try:
        interrupts.forked()
        while get_current_context(silent=True) is not None:
            pop_context()
        atexit._clear()  # what this process was to do at its end, its parent does
        known = set(sys.modules)
        sys.argv = ["gradcli", *words]
        null = os.open(os.devnull, os.O_RDONLY)
        for descriptor, there in enumerate((null, files[0].fileno(), files[1].fileno())):
            os.dup2(there, descriptor)
        sys.stdin, sys.stdout, sys.stderr = _stream(0, "r"), _stream(1, "w"), _stream(2, "w")
        code = _code(program, words)
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        fresh = [name for name in sys.modules if name not in known and _is_kept(name)]
        files[2].write("\n".join(fresh).encode())
        files[2].flush()
    finally:
        os._exit(code)


def _stream(descriptor: int, mode: str) -> IO[str]:
    """The text of a descriptor, which stays open."""
    return os.fdopen(descriptor, mode, encoding="utf-8", errors="backslashreplace", closefd=False)


def _code(program: Any, words: list[str]) -> int:
    """The exit code of a command line: the short way where it is plain, else click's."""
    from gradcli.commands import SHORT, argv
    from gradcli.commands.command_errors import show

    code = None
    if words[0] in SHORT:
        code = process.guarded(lambda: argv.run(words), lambda error: show(error, words, {}))
    if code is None:
        try:
            program.main(words, "gradcli")
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else int(bool(leaving.code))
    return code or 0


def _is_kept(name: str) -> bool:
    first = name.partition(".")[0]
    return first in _KEPT or first in sys.stdlib_module_names


def _spawned(program: Any, line: Line) -> Started:
    """As `_forked`, on systems without fork: in a new interpreter."""
    files = _files()
    if line.wrong:
        files[1].write(f"gradcli: error: {line.wrong}\n".encode())
        return Started(line, 0, files, 2)
    words = [sys.executable, "-m", "gradcli", *line.words]
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, stdout=files[0], stderr=files[1], check=False
    )
    return Started(line, 0, files, done.returncode)


def _ended(started: Started) -> Answer:
    """The answer of a line, once it is there. What the line imported, this process imports."""
    code = started.code
    if code is None:
        code = os.waitstatus_to_exitcode(os.waitpid(started.pid, 0)[1])
        code = 128 - code if code < 0 else code  # as a shell says the number of a signal
    texts = []
    for file in started.files:
        file.seek(0)
        texts.append(file.read().decode("utf-8", "backslashreplace"))
        file.close()
    _keep(texts[2].splitlines())
    return Answer(started.line, code, texts[0], texts[1])


def _keep(names: list[str]) -> None:
    """Import modules, for the lines to come."""
    if not names:
        return
    for name in names:
        if name not in sys.modules:
            with suppress(ImportError):
                importlib.import_module(name)
    if "gradcli.language.parser" in names:
        from gradcli.language.parser import parse

        parse("x")  # which compiles the patterns of the language
    gc.freeze()  # a collection in a child would copy all that is shared with it


def _as_text(answer: Answer) -> None:
    if answer.out:
        output.write(answer.out.removesuffix("\n"), styled=True)
        sys.stdout.flush()
    if answer.code:
        failed = f"gradcli: line {answer.line.number} failed, exit code {answer.code}"
        _say(visible(f"{failed}: {answer.line.text}"))
    if answer.err:
        _say(answer.err.removesuffix("\n"))


def _say(text: str) -> None:
    if sys.stderr is not None:
        echo(text, sys.stderr)


def _as_json(answer: Answer) -> None:
    """One object: a text that is JSON stands in it as JSON."""
    found: dict[str, Any] = {"line": answer.line.number, "command": answer.line.text}
    found |= {"code": answer.code, "answer": _read(answer.out)}
    if answer.code:
        found["error"] = _error(answer.err)
    output.write_json(found)
    sys.stdout.flush()


def _error(text: str) -> dict[str, Any]:
    """The error of a line as the object that `--json` prints, also where the command printed words."""
    said = _read(text)
    for part in said if isinstance(said, list) else [said]:
        if isinstance(part, dict) and "error" in part:
            return dict(part["error"])
    words = text.strip().removeprefix("gradcli: ").removeprefix("error: ")
    message, _, hint = words.partition("\nhint: ")
    found: dict[str, Any] = {"type": "usage", "message": message, "span": None}
    return {**found, "hint": hint or None, "source": None, "notes": []}


def _read(text: str) -> Any:
    """A text as JSON, if it is; several lines of JSON as a list."""
    if not text:
        return None
    try:
        read = [json.loads(line) for line in text.splitlines()]
    except ValueError:
        return text.removesuffix("\n")
    return read[0] if len(read) == 1 else read
