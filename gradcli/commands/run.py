"""`gradcli run FILE|-`: a program; it prints what the notebook printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gradcli.commands import COMMANDS, completers, output
from gradcli.commands.command_errors import usage
from gradcli.commands.options import (
    ExpressionCommand,
    Split,
    max_steps_option,
    program_options,
    read_text,
)
from gradcli.commands.request import Request
from gradcli.commands.request_evaluation import machine
from gradcli.language.display import is_displayed, pretty
from gradcli.language.located_errors import LanguageError

if TYPE_CHECKING:
    from gradcli.language.program import Program


class RunCommand(ExpressionCommand):
    """Takes its program from a file, and options that grow out of the program."""

    operand = "FILE"
    may_be_empty = True

    def source_text(self, found: Split, lenient: bool) -> str | None:
        """The text of FILE."""
        if not found.positionals:
            if lenient:
                return None
            raise usage("no program", hint="write gradcli run FILE, or - for standard input")
        path = found.positionals[0]
        if not lenient:
            return read_text(path)
        try:
            return None if path == "-" else read_text(path)
        except (
            LanguageError
        ):  # a file that cannot be read has no variables to complete or to help with
            return None

    def may_stay_open(self, ctx: click.Context, program: Program, name: str) -> bool:
        """A name without a value is an error where the program reads it, as in Python."""
        return True


@click.command(
    "run",
    cls=RunCommand,
    short_help=COMMANDS["run"],
    epilog="\b\nExamples: gradcli run notebook.py --dtype float32\n"
    "          gradcli run fit.py --x 0,1,2 --y 1,3,5\n"
    "          echo 'print(arange(3.0))' | gradcli run -",
)
@click.argument("path", metavar="FILE", shell_complete=completers.files)
@program_options
@max_steps_option
@click.pass_context
def command(ctx: click.Context, request: Request, path: str, max_steps: int | None) -> None:
    """Run the program in FILE (- for standard input).

    It prints what it prints; an expression on its last line is displayed as a notebook displays it. Names
    that the program reads and does not assign are options: --x 1,2,3.
    """
    program = request.program
    found = machine(ctx, request, max_steps=max_steps)
    found.run(program)
    if found.value is not None and is_displayed(program):
        output.write(pretty(found.value))
