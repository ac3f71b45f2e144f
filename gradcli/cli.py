"""The click group: it knows the names of the commands, loads the one that is asked for, and sees to it
that every way out is a clean one (exit codes, streams, Ctrl-C, closed pipes, no traceback).

Nothing heavy is imported here: `--help`, `--version` and completion need neither numpy, lark nor rich.
"""

from __future__ import annotations

import atexit
import codecs
import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NoReturn

import click

import gradcli.interrupts as interrupts
from gradcli.budget import bound_memory
from gradcli.commands import COMMANDS, COMPLETION_VARIABLE
from gradcli.commands.help import HELP
from gradcli.version import __version__

# A command line without files and without numbers of three digits makes no large matrix product.
_MAYBE_LARGE = re.compile(r"\d{3}|\d[eE]|\*\*\s*[\d(]|@.*\.|^-f?$")
_WHOLE = re.compile(r"[0-9]{1,6}")


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
        formatter.write_text("gradcli COMMAND --help tells more; --version shows the version.")

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, loaded now."""
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"gradcli.commands.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

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
        columns = columns if _WHOLE.fullmatch(columns) else ""
        if not columns and sys.stdout is not None and sys.stdout.isatty():
            columns = str(os.get_terminal_size(sys.stdout.fileno()).columns)
        if columns and 20 <= int(columns) < 52:
            extra.setdefault("terminal_width", int(columns))
        return super().make_context(info_name, args, parent, **extra)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does; a word that is no command may be an expression, and then says so."""
        word = args[0]
        if word not in COMMANDS and not ctx.resilient_parsing:
            from gradcli.commands.errors import unknown_command

            raise unknown_command(word, COMMANDS)
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
        words = sys.argv[1:]
        if words[:1] not in (["run"], ["repl"]) and not any(map(_MAYBE_LARGE.search, words)):
            # OpenBLAS starts its threads when numpy is imported; a small problem has no use for them.
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        for name in ("COLUMNS", "LINES"):  # `²` is a digit to Python, and no number
            if not _WHOLE.fullmatch(os.environ.get(name, "")):
                os.environ.pop(name, None)
        interrupts.watch()
        bound_memory()
        codecs.register_error("gradcli", _spelt_out)
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="gradcli")
        try:
            self.main(*args, **kwargs)
        except SystemExit as leaving:
            _leave(leaving)
        raise AssertionError("main() leaves by SystemExit")

    def _run(self, arguments: list[str], prog_name: str, extra: dict[str, Any]) -> int:
        """Run the command line and return the exit code; nothing but SystemExit passes."""
        try:
            try:
                code = self._dispatch(arguments, prog_name, extra)
                if sys.stdout is not None:
                    sys.stdout.flush()
            except SystemExit as leaving:
                code = leaving.code if isinstance(leaving.code, int) else int(bool(leaving.code))
            except BrokenPipeError:
                _abandon_stdout()
                code = 0
            except Exception as error:  # the end of the process: every error is shown
                code = _show(error, arguments, {})
        except KeyboardInterrupt:
            _interrupted()
            code = interrupts.CODE
        except BrokenPipeError:  # standard error is closed too: nobody is left to tell
            code = 1
        return code

    def _dispatch(self, arguments: list[str], prog_name: str, extra: dict[str, Any]) -> int:
        if instruction := os.environ.get(COMPLETION_VARIABLE):
            from click.shell_completion import shell_complete

            from gradcli.commands import shells

            shells.register()
            return shell_complete(self, extra, prog_name, COMPLETION_VARIABLE, instruction)
        try:
            with self.make_context(prog_name, arguments, **extra) as ctx:
                try:
                    self.invoke(ctx)
                except (click.exceptions.Exit, BrokenPipeError):
                    raise
                except Exception as error:  # every error of a command is shown with its options
                    if isinstance(error.__cause__, BrokenPipeError):  # the program's own print()
                        raise error.__cause__ from None
                    return _show(error, arguments, ctx.meta)
        except click.exceptions.Exit as leaving:
            return leaving.exit_code
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


def _show(error: Exception, arguments: list[str], meta: dict[str, Any]) -> int:
    from gradcli.commands.errors import show

    try:
        if sys.stdout is not None:
            sys.stdout.flush()  # what was printed before the error comes before it
    except BrokenPipeError:
        raise
    except OSError:  # a full disk, which is likely what the error says
        pass
    return show(error, arguments, meta)


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
            click.echo(file=sys.stderr)
    except OSError:
        return


def _show_version(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        click.echo(f"gradcli {__version__}")
        ctx.exit()


@click.group(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog='Example: gradcli grad "2*dot(x,x)" --x 0,1,2,3',
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
    """Evaluate, differentiate, inspect tensor expressions, in PyTorch's language."""


if __name__ == "__main__":
    main()
