"""Declared commands (`gradcli.commands.declarations`) as click's."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import click

from gradcli.commands import COMMANDS, completers
from gradcli.commands.command_errors import as_report
from gradcli.commands.declarations import Argument, Command, Option, Options, declaration
from gradcli.commands.help import HelpfulCommand
from gradcli.commands.options import ExpressionCommand
from gradcli.commands.request import SessionNames
from gradcli.engine.system.budget import TooMany


class Whole(click.IntRange):
    """A whole number; click would say "'x' is not a valid integer range"."""

    name = "integer"


class WholeOrName(Whole):
    """A whole number, or a letter for one."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """A name as it is."""
        return value if str(value).isidentifier() else super().convert(value, param, ctx)


class DeclaredOption(click.Option):
    """An option that knows its section of the help."""

    def __init__(self, option: Option, **facts: Any) -> None:
        super().__init__([*option.names, option.name], help=option.help, **facts)
        self.section = option.section


def click_command(command: Command) -> click.Command:
    """The command as click runs it."""

    @click.pass_context
    def callback(ctx: click.Context, /, **given: Any) -> None:
        request = [given.pop("request")] if command.operand else []
        command.run(ctx, *request, Options(**given))

    facts: dict[str, Any] = {
        "callback": callback,
        "params": list(map(parameter, command.options)),
        "help": inspect.cleandoc(command.help),
        "short_help": COMMANDS.get(command.name),
        "epilog": "\n".join(["\b", "Examples:", *(f"  {line}" for line in command.examples)]),
    }
    kind = ExpressionCommand if command.operand else HelpfulCommand
    return kind(command, **facts)


def parameter(option: Option) -> click.Parameter:
    """The option, or argument, as click has it."""
    facts: dict[str, Any] = {"metavar": option.metavar}
    if option.complete is not None:
        facts["shell_complete"] = getattr(completers, option.complete)
    if option.choices:
        # a method is a name, which people write with capitals: Adam, Newton, bfgs
        facts["type"] = click.Choice(option.choices, case_sensitive=option.name != "method")
    elif option.least is not None:
        kind = Whole if option.type is None else WholeOrName
        facts["type"] = kind(option.least, option.most)
    elif option.type is not None:
        facts["type"] = option.type
    if isinstance(option, Argument):
        facts |= {"nargs": -1} if option.many else {}
        return click.Argument([option.name], required=option.required, **facts)
    if option.is_flag:
        facts["is_flag"] = True
    elif option.may_be_bare:
        facts |= {"is_flag": False, "flag_value": "-"}
    if option.many:
        facts["multiple"] = True
    elif option.default is not False:
        facts["default"] = option.default
    if option.variable is not None:
        facts |= {"envvar": option.variable, "show_envvar": True}
    return DeclaredOption(option, **facts)


def run_in_session(verb: str, words: list[str], names: Mapping[str, Any]) -> None:
    """Run a command line where names have values already. Raises LanguageError."""
    try:
        loaded(verb).main(words, f"gradcli {verb}", standalone_mode=False, obj=SessionNames(names))
    except BrokenPipeError:
        raise
    except (click.ClickException, MemoryError, RecursionError, OSError, TooMany) as error:
        raise as_report(error) from error


def loaded(name: str) -> click.Command:
    """The command of that name, as click runs it."""
    return click_command(declaration(name))
