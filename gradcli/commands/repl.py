"""`gradcli repl`: a session in which names and graphs stay alive between lines."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping
from typing import Any

import click

from gradcli.commands import output
from gradcli.commands.command_errors import as_report, quoted, to_text, usage
from gradcli.commands.declarations import (
    COLOUR,
    DTYPE,
    LOAD,
    MANUAL_SEED,
    MAX_STEPS,
    Options,
    declare,
)
from gradcli.commands.output import Style
from gradcli.commands.request import read_text
from gradcli.commands.terminal import is_terminal
from gradcli.engine.system.visible import visible
from gradcli.language.located_errors import LanguageError
from gradcli.version import __version__

HELP_NAMES = {"-h", "--help", "--help-all"}
BANNER = f"gradcli {__version__} · help · ?softmax · graph y · Ctrl-D ends"


class Console:
    """What a session prints, draws and reads, as every command does it."""

    def __init__(self, colour: str, interactive: bool) -> None:
        self.colour, self.interactive = colour, interactive
        self.style = Style.of("text", None, colour)

    def write(self, text: str) -> None:
        """A result, to standard output."""
        output.write(text)

    def note(self, text: str, always: bool = False) -> None:
        """A remark, to standard error, where somebody types, or always."""
        if self.interactive or always:
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
        """What a term means, as `gradcli help` has it; of others what `gradcli ops NAME` says."""
        from gradcli.commands import glossary
        from gradcli.commands.help import LISTS, explain
        from gradcli.commands.ops import show

        if name in LISTS or glossary.find(name) is not None:
            explain(name, self.style)
        else:
            show(name, self.style)

    def command(self, verb: str, text: str, options: str, names: Mapping[str, Any]) -> None:
        """`gradcli VERB EXPR OPTIONS`, with the session's names; its tensors keep their gradients."""
        from gradcli.commands.click_commands import run_in_session
        from gradcli.engine.system.dtypes import get_default_dtype

        words = [text]
        try:
            if text[0] in "\"'":  # as it was pasted from a shell
                words = shlex.split(text)
            words += shlex.split(options)
        except ValueError as error:
            raise usage(f"{verb}: {str(error).lower()}", hint="close the quotation mark") from None
        if verb != "ops":
            words += ["--color", self.colour, "--dtype", get_default_dtype().name]
        run_in_session(verb, words, names)

    def clear(self) -> None:
        """Clear the screen, where there is one."""
        if self.interactive:
            click.clear()

    def shell(self, command: str) -> bool:
        """Run a command of the shell, where somebody types it."""
        if self.interactive:
            import subprocess

            subprocess.run(command, shell=True, check=False)
        return self.interactive

    def draw(self, graph: Any, options: Mapping[str, Any]) -> None:
        """A graph, as `gradcli graph` draws it."""
        from gradcli.commands.graph import only_of_nothing

        try:
            output.write_drawing(graph.tree(**options), self.style)
        except ValueError as error:
            if "only" not in options:
                raise
            raise only_of_nothing(graph, options["only"], error) from error

    def read_file(self, path: str) -> str:
        """A file's text."""
        return read_text(path)

    def write_file(self, path: str, text: str) -> None:
        """Write a file whole or not at all."""
        output.write_file(path, text)


def _no_words(command: Any, ctx: click.Context, args: list[str]) -> list[str]:
    """Say what to do with a file or an expression, which a session does not take."""
    ctx.allow_extra_args = True
    left = command.make_parser(ctx).parse_args(args=list(args))[1]
    if left and not ctx.resilient_parsing and not HELP_NAMES.intersection(args):
        word = left[0]
        file = word == "-" or os.path.exists(word) or re.search(r"\.[A-Za-z]+$", word)
        hint = f"gradcli {'run' if file else 'eval'} {quoted(word)}"
        raise usage(f"unexpected argument {word!r}", hint=hint)
    return args


@declare(
    "repl",
    *(DTYPE, MANUAL_SEED, MAX_STEPS, LOAD, COLOUR),
    examples=(
        "gradcli repl --dtype float32",
        "printf 'x = ones(2, requires_grad=True)\\nsum(x*x)\\n' | gradcli repl",
    ),
    arguments=_no_words,
)
def command(ctx: click.Context, options: Options) -> None:
    """Start a session: each line is run as you enter it, and variables and graphs are kept.

    Values are shown as in a notebook. `help` lists the commands of a session. In a pipe no prompts are
    printed, and the exit code is 1 or 2 if a line had an error.
    """
    from gradcli.commands import line_editor
    from gradcli.commands.request_evaluation import prepare
    from gradcli.commands.session import Leave, Session
    from gradcli.engine.system.interrupts import as_python

    prepare(ctx, options.dtype, options.manual_seed)
    loaded: dict[str, Any] = {}
    if options.load:
        from gradcli.commands.load import load_files

        loaded = load_files(ctx, options.load)
    stdin = sys.stdin if sys.stdin is not None else open(os.devnull)  # noqa: SIM115
    interactive = is_terminal(stdin) and is_terminal(sys.stdout)
    console = Console(options.color, interactive)
    session = Session(console, loaded, max_steps=options.max_steps)
    as_python()
    try:
        if interactive:
            click.echo(BANNER)
            line_editor.read_terminal(
                session, lambda: session.machine.names, console.note, colour=console.style.colour
            )
        else:
            line_editor.read_pipe(session, stdin)
    except Leave:
        pass
    if not interactive and session.failed is not None:
        ctx.exit(2 if session.failed.usage else 1)
