"""The process of a command: what is set up before anything is read, and what every way out of it is (exit
codes, streams, Ctrl-C, closed pipes, no traceback).
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

import gradcli.system.interrupts as interrupts
from gradcli.system.budget import bound_memory

if TYPE_CHECKING:
    from typing import TypeAlias

    import click

    AnyContext: TypeAlias = "click.Context | Context"

# A command line without files and without numbers of three digits makes no large matrix product.
_MAYBE_LARGE = re.compile(r"\d{3}|\d[eE]|\*\*\s*[\d(]|@.*\.|^-f?$")
WHOLE = re.compile(r"[0-9]{1,6}")
Code = TypeVar("Code", int, int | None)


class Context(ExitStack):
    """What is remembered while a command runs, and undone when it ends; with click's names for it."""

    obj = None  # there is no session around it

    def __init__(self) -> None:
        super().__init__()
        self.meta: dict[str, Any] = {}

    def with_resource(self, manager: AbstractContextManager[Any]) -> Any:
        """Enter a context manager, to be left at the end."""
        return self.enter_context(manager)

    def call_on_close(self, function: Callable[[], Any]) -> Any:
        """Call a function at the end."""
        return self.callback(function)


def run(work: Callable[[], Any]) -> NoReturn:
    """What the console script calls: the process is ours from its start to its end.

    work: leaves by SystemExit.
    """
    words = sys.argv[1:]
    if words[:1] not in (["run"], ["repl"]) and not any(map(_MAYBE_LARGE.search, words)):
        # OpenBLAS starts its threads when numpy is imported; a small problem has no use for them.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for name in ("COLUMNS", "LINES"):  # `²` is a digit to Python, and no number
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
    """The exit code of a command, or of what went wrong with it; nothing but SystemExit passes.

    show: tells of an error, and gives the code that it means.
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
        except Exception as error:  # the end of the process: every error is shown
            code = show(error)
    except KeyboardInterrupt:
        _interrupted()
        code = interrupts.CODE
    except BrokenPipeError:  # standard error is closed too: nobody is left to tell
        code = 1
    return code


def shown(
    work: Callable[[], Any],
    show: Callable[[Exception], int],
    passing: type[Exception] = BrokenPipeError,
) -> int:
    """The exit code of a command's own work, whose errors are shown as it asks for; `passing` is none."""
    try:
        work()
    except (BrokenPipeError, passing):
        raise
    except Exception as error:  # every error of a command is shown with its options
        if isinstance(error.__cause__, BrokenPipeError):  # the program's own print()
            raise error.__cause__ from None
        return show(error)
    return 0


def _spelt_out(error: UnicodeError) -> tuple[str | bytes, int]:
    """What is written for a character that the stream's encoding does not have."""
    if isinstance(error, UnicodeEncodeError) and error.object[error.start] == "…":
        return "...", error.start + 1
    return codecs.backslashreplace_errors(error)


def _leave(leaving: SystemExit) -> NoReturn:
    """End the process without taking the interpreter apart, which takes a tenth of a short run.

    Only where the process is a console script's; a notebook or `python -i` goes on.
    """
    script = os.path.basename(sys.argv[0]).partition(".")[0]
    if script not in ("gradcli", "__main__") or sys.flags.inspect or hasattr(sys, "ps1"):
        raise leaving
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            try:
                stream.flush()
            except OSError:  # a closed pipe or a full disk, and that has been said
                continue
    os._exit(leaving.code if isinstance(leaving.code, int) else int(bool(leaving.code)))


def _abandon_stdout() -> None:
    """Send what is still buffered nowhere, so that Python does not complain on its way out."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError, AttributeError):
        return


def _interrupted() -> None:
    """End the terminal's line that shows ^C."""
    try:
        if sys.stderr is not None and sys.stderr.isatty():
            sys.stderr.write("\n")
            sys.stderr.flush()
    except OSError:
        return
