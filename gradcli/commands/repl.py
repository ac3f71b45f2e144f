"""`gradcli repl`: a session in which names and graphs stay alive between lines."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from gradcli.commands import COMMANDS, output
from gradcli.commands.command_errors import as_report, quoted, to_text, usage
from gradcli.commands.help import Command
from gradcli.commands.options import (
    colour_option,
    dtype_option,
    load_option,
    manual_seed_option,
    max_steps_option,
    read_text,
)
from gradcli.commands.output import Style
from gradcli.commands.request import SessionNames
from gradcli.commands.terminal import is_terminal
from gradcli.language.located_errors import LanguageError
from gradcli.system.budget import TooMany
from gradcli.system.visible import visible
from gradcli.version import __version__

BANNER = f"gradcli {__version__} · help · help NAME · graph y · Ctrl-D leaves"


class Console:
    """What a session prints, draws and reads, as every command does it."""

    def __init__(self, colour: str, interactive: bool) -> None:
        self.colour, self.interactive = colour, interactive
        self.style = Style.of("text", None, colour)

    def write(self, text: str) -> None:
        """A result, to standard output."""
        output.write(text)

    def note(self, text: str) -> None:
        """What is no result: for people only."""
        if self.interactive:
            click.echo(visible(text), file=sys.stderr)

    def report(self, error: LanguageError) -> None:
        """An error, to standard error, behind what was printed before it."""
        if sys.stdout is not None:
            sys.stdout.flush()
        if sys.stderr is None:
            return
        text = to_text(as_report(error), self.colour)
        click.echo(text.replace("gradcli: ", "", 1), file=sys.stderr, color=True)

    def explain(self, name: str) -> None:
        """What `gradcli ops NAME` says."""
        from gradcli.commands.ops import show

        show(name, self.style)

    def command(self, verb: str, text: str, options: str, names: Mapping[str, Any]) -> None:
        """`gradcli VERB EXPR OPTIONS`, with the session's names; its tensors keep their gradients."""
        from gradcli.system.dtypes import get_default_dtype

        words = [text]
        try:
            if text[0] in "\"'":  # as it was pasted from a shell
                words = shlex.split(text)
            words += shlex.split(options)
        except ValueError as error:
            raise usage(f"{verb}: {str(error).lower()}", hint="close the quotation mark") from None
        if verb != "ops":
            words += ["--color", self.colour, "--dtype", get_default_dtype().name]
        run = import_module(f"gradcli.commands.{verb}").command.main
        try:
            run(words, f"gradcli {verb}", standalone_mode=False, obj=SessionNames(names))
        except BrokenPipeError:
            raise
        except (click.ClickException, MemoryError, RecursionError, OSError, TooMany) as error:
            raise as_report(error) from error

    def clear(self) -> None:
        """Clear the screen, where there is one."""
        if self.interactive:
            click.clear()

    def draw(self, graph: Any, options: Mapping[str, Any]) -> None:
        """A graph, as `gradcli graph` draws it."""
        output.write_drawing(graph.tree(**options), self.style)

    def read_file(self, path: str) -> str:
        """A file's text."""
        return read_text(path)

    def write_file(self, path: str, text: str) -> None:
        """Write a file whole or not at all."""
        output.write_file(path, text)


class _Repl(Command):
    """Takes options only, and says what to do with a file or an expression instead."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options; refuse what is left over."""
        ctx.allow_extra_args = True
        left = super().parse_args(ctx, args)
        if left and not ctx.resilient_parsing:
            word = left[0]
            file = word == "-" or os.path.exists(word) or re.search(r"\.[A-Za-z]+$", word)
            hint = f"gradcli {'run' if file else 'eval'} {quoted(word)}"
            raise usage(f"unexpected argument {word!r}", hint=hint)
        return left


@click.command(
    "repl",
    cls=_Repl,
    short_help=COMMANDS["repl"],
    epilog="\b\nExamples: gradcli repl --dtype float32\n"
    "          printf 'x = ones(2, requires_grad=True)\\nsum(x*x)\\n' | gradcli repl",
)
@dtype_option
@manual_seed_option
@max_steps_option
@load_option
@colour_option
@click.pass_context
def command(
    ctx: click.Context,
    dtype: str,
    manual_seed: int | None,
    max_steps: int | None,
    load: tuple[str, ...],
    color: str,
) -> None:
    """Start a session: what you type is run, and names and graphs stay.

    A value is shown as a notebook shows it. `help` lists what else there is. In a pipe there are no
    prompts; the exit code is 1 or 2 if a line was refused.
    """
    from gradcli.commands import line_editor
    from gradcli.commands.request_evaluation import prepare
    from gradcli.commands.session import Leave, Session
    from gradcli.system.interrupts import as_python

    prepare(ctx, dtype, manual_seed)
    loaded: dict[str, Any] = {}
    if load:
        from gradcli.commands.load import load_files

        loaded = load_files(ctx, load)
    stdin = sys.stdin if sys.stdin is not None else open(os.devnull)  # noqa: SIM115
    interactive = is_terminal(stdin) and is_terminal(sys.stdout)
    session = Session(Console(color, interactive), loaded, max_steps=max_steps)
    as_python()
    try:
        if interactive:
            click.echo(BANNER)
            line_editor.read_terminal(session, lambda: session.machine.names)
        else:
            line_editor.read_pipe(session, stdin)
    except Leave:
        pass
    if not interactive and session.failed is not None:
        ctx.exit(2 if session.failed.usage else 1)
