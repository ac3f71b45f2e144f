"""The process that is gradcli's own, from its start: the console script, and `python -m gradcli`."""

import sys

from gradcli.engine.system.interrupts import at_once

if sys.argv[0].rpartition("/")[2].partition(".")[0] in ("gradcli", "__main__"):
    at_once()  # before anything else is imported

import gc
from functools import partial
from typing import NoReturn

# A start makes many objects and next to no garbage, and so do the graphs that a command shows.
gc.set_threshold(100_000, 20, 20)

import gradcli.engine.system.process as process  # noqa: E402
from gradcli.commands import SHORT  # noqa: E402


def main() -> NoReturn:
    """The console script: a plain line the short way, every other by click."""
    process.run(_command)


def _command() -> None:
    words = sys.argv[1:]
    code = None
    if words and words[0] in SHORT:
        from gradcli.commands.argv import run
        from gradcli.commands.command_errors import show

        code = process.guarded(partial(run, words), lambda error: show(error, words, {}))
    if code is None:
        from gradcli.cli import main as program

        program.main()
    sys.exit(code)


__all__ = ["main"]

if __name__ == "__main__":
    main()
