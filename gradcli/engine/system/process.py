"""The process of a command: its set-up, and every way in which it ends (exit codes, streams, Ctrl-C,
closed pipes, no traceback).
"""

from __future__ import annotations

import atexit
import codecs
import os
import re
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import gradcli.engine.system.interrupts as interrupts
from gradcli.engine.system.budget import bound_memory

if TYPE_CHECKING:
    from typing import TypeAlias

    import click

    AnyContext: TypeAlias = "click.Context | Context"

# A command line without files or numbers of three digits has no large matrix products.
_MAYBE_LARGE = re.compile(r"\d{3}|\d[eE]|\*\*\s*[\d(]|@.*\.|^-f?$")
WHOLE = re.compile(r"[0-9]{1,6}")
Code = TypeVar("Code", int, int | None)


class Context(ExitStack):
    """Context managers and callbacks that end with a command, under click's names."""

    obj = None  # no session

    def __init__(self) -> None:
        super().__init__()
        self.meta: dict[str, Any] = {}

    def with_resource(self, manager: AbstractContextManager[Any]) -> Any:
        """Enter a context manager; it is left at the end."""
        return self.enter_context(manager)

    def call_on_close(self, function: Callable[[], Any]) -> Any:
        """Call a function at the end."""
        return self.callback(function)


def run(work: Callable[[], Any]) -> NoReturn:
    """Run a console script, from start to end of the process.

    work: the command; it ends by SystemExit.
    """
    words = sys.argv[1:]
    programs = words[:1] in (["run"], ["repl"], ["batch"]) or (" ".join(words[:1])).endswith(".py")
    if not programs and not any(map(_MAYBE_LARGE.search, words)):
        # OpenBLAS starts its threads when numpy is imported; a small problem does not need them.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for name in ("COLUMNS", "LINES"):  # isdigit() accepts `²`, int() does not
        if name in os.environ and not WHOLE.fullmatch(os.environ[name]):
            del os.environ[name]
    interrupts.watch()
    bound_memory()
    codecs.register_error("gradcli", _spelt_out)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="gradcli")
    try:
        work()
    except SystemExit as leaving:
        _leave(leaving)
    raise AssertionError("the work leaves by SystemExit")


def guarded(work: Callable[[], Code], show: Callable[[Exception], int]) -> Code | int:
    """Run a command and return its exit code, or that of its error; only SystemExit passes.

    show: prints an error and returns its exit code.
    """
    try:
        try:
            code = work()
            if sys.stdout is not None:
                sys.stdout.flush()
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else int(bool(leaving.code))
        except BrokenPipeError:
            _abandon_stdout()
            code = 0
        except Exception as error:  # the last handler: every error is shown
            code = show(error)
    except KeyboardInterrupt:
        _interrupted()
        code = interrupts.CODE
    except BrokenPipeError:  # standard error is closed too
        code = 1
    return code


def shown(
    work: Callable[[], Any],
    show: Callable[[Exception], int],
    passing: type[Exception] = BrokenPipeError,
) -> int:
    """Run a command and return its exit code; show its errors, but let those of class `passing` through."""
    try:
        work()
    except (BrokenPipeError, passing):
        raise
    except Exception as error:  # shown as the command's options say
        if isinstance(error.__cause__, BrokenPipeError):  # the program's own print()
            raise error.__cause__ from None
        return show(error)
    return 0


def _spelt_out(error: UnicodeError) -> tuple[str | bytes, int]:
    """The replacement of a character that the stream's encoding does not have."""
    if isinstance(error, UnicodeEncodeError) and error.object[error.start] == "…":
        return "...", error.start + 1
    return codecs.backslashreplace_errors(error)


def _leave(leaving: SystemExit) -> NoReturn:
    """Exit without finalising the interpreter, which takes a tenth of a short run.

    Only in the process of a console script; a notebook or `python -i` goes on.
    """
    folder, name = os.path.split(sys.argv[0])
    script = name.partition(".")[0]
    if script == "__main__":  # of `python -m`: gradcli's own, or another's, which goes on
        script = os.path.basename(folder)
    if script != "gradcli" or sys.flags.inspect or hasattr(sys, "ps1"):
        raise leaving
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            try:
                stream.flush()
            except OSError:  # a closed pipe or a full disk, which was reported
                continue
    os._exit(leaving.code if isinstance(leaving.code, int) else int(bool(leaving.code)))


def _abandon_stdout() -> None:
    """Discard buffered output, so that Python does not fail to flush it at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError, AttributeError):
        return


def _interrupted() -> None:
    """Print a newline after the ^C that the terminal shows."""
    try:
        if sys.stderr is not None and sys.stderr.isatty():
            sys.stderr.write("\n")
            sys.stderr.flush()
    except OSError:
        return
