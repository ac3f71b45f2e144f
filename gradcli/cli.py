"""The click group: it knows the names of the commands, and loads the one that is asked for.

Nothing heavy is imported here: `--help`, `--version` and completion need neither numpy, lark nor rich.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

import gradcli.engine.system.process as process
from gradcli.commands import COMMANDS, COMPLETION_VARIABLE
from gradcli.commands.help import HELP
from gradcli.version import __version__

# `-x**2`, `-\log p`: a minus, and not all of it could be the name of an option.
_EXPRESSION_WITH_MINUS = re.compile(r"-(?!-)(?![\w-]*(?:=.*)?$).+", re.S)


class Program(click.Group):
    """The group. Called as `main()` it is the console's entry point and ends the process."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All commands, whether loaded or not."""
        return list(COMMANDS)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Usage, what it does, an example, commands: a screen of 24 lines has room for it."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        self.format_epilog(ctx, formatter)
        self.format_commands(ctx, formatter)
        formatter.write_paragraph()
        formatter.write_text(
            "gradcli COMMAND --help has the options; gradcli help TERM explains a word."
        )

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, loaded now."""
        if cmd_name not in COMMANDS:
            return None
        from gradcli.commands.click_commands import loaded

        return loaded(cmd_name)

    def get_help_option(self, ctx: click.Context) -> click.Option:
        """--help."""
        return HELP

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """As click does, but for narrow terminals, where click's help is never less than 50 wide."""
        columns = os.environ.get("COLUMNS", "")
        columns = columns if process.WHOLE.fullmatch(columns) else ""
        if not columns and sys.stdout is not None and sys.stdout.isatty():
            columns = str(os.get_terminal_size(sys.stdout.fileno()).columns)
        if args and _EXPRESSION_WITH_MINUS.fullmatch(args[0]) and parent is None:
            args = ["grad", *args]
        if columns and 20 <= int(columns) < 52:
            extra.setdefault("terminal_width", int(columns))
        return super().make_context(info_name, args, parent, **extra)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does; an expression in place of a command is for `grad`: `gradcli "x**2" --x 3`."""
        word = args[0]
        if word not in COMMANDS and not ctx.resilient_parsing:
            if word.endswith(".py") and os.path.isfile(word):
                from gradcli.commands.python_program import run

                sys.exit(run(word, args[1:]))
            if word.startswith("-") or re.fullmatch(r"[\w.-]+", word):  # a command, misspelt
                from gradcli.commands.command_errors import unknown_command

                raise unknown_command(word, COMMANDS)
            args = ["grad", *args]
        return super().resolve_command(ctx, args)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = False,  # click would take `2*x` for a glob pattern
        **extra: Any,
    ) -> Any:
        """Run a command line; with `standalone_mode` leave by SystemExit, as click does."""
        arguments = sys.argv[1:] if args is None else list(args)
        if not standalone_mode:
            return super().main(arguments, prog_name, complete_var, standalone_mode=False, **extra)
        sys.exit(self._run(arguments, prog_name or "gradcli", extra))

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """What the console script calls: the process is ours from its start to its end."""
        process.run(lambda: self.main(*args, **kwargs))

    def _run(self, arguments: list[str], prog_name: str, extra: dict[str, Any]) -> int:
        """Run the command line and return the exit code; nothing but SystemExit passes."""
        return process.guarded(
            lambda: self._dispatch(arguments, prog_name, extra),
            lambda error: _show(error, arguments, {}),
        )

    def _dispatch(self, arguments: list[str], prog_name: str, extra: dict[str, Any]) -> int:
        if instruction := os.environ.get(COMPLETION_VARIABLE):
            from click.shell_completion import shell_complete

            from gradcli.commands import shells

            shells.register()
            return shell_complete(self, extra, prog_name, COMPLETION_VARIABLE, instruction)
        if arguments[:1] == ["-m"]:
            return process.shown(
                lambda: _run_module(arguments[1:]), lambda error: _show(error, arguments, {})
            )
        try:
            with self.make_context(prog_name, [*arguments], **extra) as ctx:
                return process.shown(
                    lambda: self.invoke(ctx),
                    lambda error: _show(error, arguments, ctx.meta),
                    passing=click.exceptions.Exit,
                )
        except click.exceptions.Exit as leaving:
            return leaving.exit_code


def _run_module(words: list[str]) -> None:
    from gradcli.commands.command_errors import usage
    from gradcli.commands.python_program import run_module

    if not words:
        raise usage("-m wants the name of a module", hint="gradcli -m pytest runs pytest")
    sys.exit(run_module(words[0], words[1:]))


def _show(error: Exception, arguments: list[str], meta: dict[str, Any]) -> int:
    from gradcli.commands.command_errors import show

    return show(error, arguments, meta)


def _show_version(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        click.echo(f"gradcli {__version__}")
        ctx.exit()


@click.group(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog='Example: gradcli grad "2*dot(x,x)" --x 0,1,2,3\n\n'
    "gradcli FILE.py [ARGS]... runs a program written for PyTorch, without PyTorch.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
def main() -> None:
    """Compute gradients, derivatives as formulas, and graphs of expressions."""


if __name__ == "__main__":
    main()
