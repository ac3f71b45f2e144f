"""What `--help` looks like: the examples first, then the options by what they are for, a line each.

`--help` fits a screen: what the command does, two examples, its own options; `--help-all` has the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gradcli.commands import COMMANDS
from gradcli.commands.command_errors import usage
from gradcli.commands.common_options import clause, common, shorter
from gradcli.commands.declarations import (
    HELPS,
    INPUTS,
    OUTPUTS,
    TEXTS,
    Argument,
    Command,
    Option,
    Options,
    declare,
)

if TYPE_CHECKING:
    from gradcli.commands.output import Style

LINES = 24  # of a screen
EXAMPLES = 2  # that the short help shows
FEW = 4  # variables
COLUMN = 30  # of the names of options
WHOLE = "gradcli.whole"  # what a context remembers of --help-all


class HelpfulCommand(click.Command):
    """A command whose help shows how it is used before it lists what it takes."""

    def __init__(self, declaration: Command, **attributes: Any) -> None:
        super().__init__(declaration.name, **attributes)
        self.declaration = declaration

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does, once the command has looked at the words."""
        if self.declaration.arguments is not None:
            args = self.declaration.arguments(self, ctx, args)
        return self.read(ctx, args)

    def read(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read options and words."""
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """As click does, and --help-all."""
        return [*super().get_params(ctx), HELP_ALL]

    def get_help_option(self, ctx: click.Context) -> click.Option:
        """--help."""
        return HELP

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Usage, what it does, examples, options: all of it if it fits a screen or if all is wanted."""
        if not ctx.meta.get(WHOLE):
            whole = ctx.make_formatter()
            self.format_whole(ctx, whole)
            if whole.getvalue().count("\n") > LINES:
                self.format_short(ctx, formatter)
                return
        self.format_whole(ctx, formatter)

    def format_whole(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """All that there is to say."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        self.format_epilog(ctx, formatter)
        self.format_options(ctx, formatter)

    def format_short(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """What fits a screen; the last line says where the rest is."""
        self.format_usage(ctx, formatter)
        with formatter.indentation():
            formatter.write_paragraph()
            first = " ".join((self.help or "").partition("\n\n")[0].split())
            of_expr = self.declaration.operand == "EXPR"
            formatter.write_text(clause(first, formatter.width - 2) if of_expr else first)
            if of_expr:
                formatter.write_text(
                    "Every variable of EXPR is an option: --x 3, --x 1,2, --x @data.csv."
                )
        examples = [line for line in (self.epilog or "").splitlines() if line.startswith("  ")]
        formatter.write_paragraph()
        formatter.write("  Examples:\n")
        formatter.write("".join(f"  {line}\n" for line in examples[:EXAMPLES]))
        held = ctx.meta.get("gradcli.variables", ())
        variables = [r for option in held if (r := option.get_help_record(ctx)) is not None]
        if variables:
            with formatter.section(f"Variables of {self.declaration.operand}"):
                formatter.write_dl(variables[:FEW], col_max=min(30, formatter.width // 2))
        shown = self.common(ctx, formatter.width)
        for title, records in shown.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records, col_max=COLUMN)
        every = [r for records in self.records(ctx).values() for r in records if r not in variables]
        others = sum("--help" not in r[0] for r in every) - sum(map(len, shown.values()))
        formatter.write_paragraph()
        formatter.write_text(f"{ctx.command_path} --help-all lists all options ({others} more).")

    def common(self, ctx: click.Context, width: int) -> dict[str, list[tuple[str, str]]]:
        """The options that most people need, a line each, by what they are for."""
        by_name = {name: option for option in self.get_params(ctx) for name in option.opts}
        groups = [
            [(n, _written(n, by_name[n])) for n in group] for group in common(self.name or "")
        ]
        left = max((len(written) for group in groups for _, written in group), default=0)
        room = width - min(left, COLUMN) - 4
        return {
            title: [(w, shorter(n, getattr(by_name[n], "help", "") or "", room)) for n, w in group]
            for title, group in zip(("Options", "Input and output"), groups, strict=True)
        }

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The command's own options first, then those that all commands have."""
        for title, records in self.records(ctx).items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records, col_max=min(30, formatter.width // 2))

    def records(self, ctx: click.Context) -> dict[str, list[tuple[str, str]]]:
        """(how it is written, what it does) of every option, by what it is for."""
        titles = ("Options", INPUTS, TEXTS, OUTPUTS)
        sections: dict[str, list[tuple[str, str]]] = {title: [] for title in titles}
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx)
            if record is not None and isinstance(option, click.Option):
                # The record's own text has more than a line: ranges, defaults, variables.
                section = getattr(option, "section", "Options")
                sections[section].append((record[0], option.help or ""))
        return sections


def _written(name: str, option: click.Parameter) -> str:
    """An option as the short help writes it: by one name."""
    if getattr(option, "is_flag", False):
        return name
    return f"{name} {option.metavar or '|'.join(getattr(option.type, 'choices', ()))}"


def _show_help(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        ctx.meta[WHOLE] = param is HELP_ALL
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


def _help_option(option: Option, shows: str) -> click.Option:
    """An option that shows help and ends. Click's own asks for translations, and imports `locale`."""
    how: dict[str, Any] = {"is_flag": True, "is_eager": True, "expose_value": False}
    names = [*option.names, option.name]
    return click.Option(names, callback=_show_help, help=f"Show {shows} and exit.", **how)


HELP, HELP_ALL = map(_help_option, HELPS, ("this message", "all options"))


@declare(
    "help",
    Argument("[COMMAND|TERM]", name="words", many=True, complete="topics"),
    examples=("gradcli help", "gradcli help grad", "gradcli help leaf", "gradcli help terms"),
)
def command(ctx: click.Context, options: Options) -> None:
    """Show the help of gradcli or of one of its commands, or explain a term of automatic differentiation.

    `gradcli help terms` lists the terms: leaf, retained gradient, seed gradient, detach, VJP, …. The name
    of a function shows what gradcli ops says of it, the name of an option what it does: gradcli help math.
    """
    topic = " ".join(options.words)
    root = ctx.find_root()
    group: Any = root.command
    if not topic or topic in COMMANDS:
        words = [topic, "--help"] if topic else ["--help"]
        group.main(words, root.info_name, standalone_mode=False)
        return
    explain(topic)


LISTS = ("terms", "term", "glossary")


def explain(topic: str, style: Style | None = None) -> None:
    """Write what a term means, all terms, or a function; both where a function is a term as well.

    The name of an option says what it does in each command. Raises LanguageError where it is none of these.
    """
    from gradcli.commands import glossary, ops, output
    from gradcli.commands.terminal import width

    columns = width(output.standard_output())
    style = style or output.Style.of("text", None, "auto")
    term, function = glossary.find(topic), ops.is_function(topic)
    if topic.lower() in LISTS:
        output.write("\n".join(glossary.listed(columns)), styled=True)
    elif term is not None:
        lines = glossary.explained(term, columns)
        output.write("\n".join([*lines, *[""] * function]), styled=True)
    if function:
        ops.show(topic, style)
    if term is not None or function or topic.lower() in LISTS:
        return
    if lines := _options_called(topic, columns):
        output.write("\n".join(lines), styled=True)
        return
    from gradcli.language.located_errors import did_you_mean, suggest

    meant = suggest(topic, [*COMMANDS]) or glossary.close(topic)
    raise usage(
        f"no command, term or function is called {topic!r}",
        hint=did_you_mean(meant) or "gradcli help terms lists the terms, gradcli help the commands",
    )


def _options_called(name: str, columns: int) -> list[str]:
    """What the option of a name, with its dashes or without, does, and in which commands."""
    from gradcli.commands.declarations import declaration
    from gradcli.commands.terminal import wrapped

    wanted = {f"--{name.lstrip('-')}", f"-{name.lstrip('-')}"}
    found: dict[tuple[str, str], list[str]] = {}
    for command in COMMANDS:
        for option in declaration(command).options:
            if wanted & {*option.names} and option.help:
                written = " ".join([", ".join(option.names), option.metavar or ""]).rstrip()
                found.setdefault((written, option.help), []).append(command)
    lines = []
    for (written, text), commands in found.items():
        lines += [wrapped(written, columns, rest="    ")]
        lines += [wrapped(" ".join(text.split()), columns, first="  ", rest="  ")]
        lines += [wrapped(f"of: {', '.join(commands)}", columns, first="  ", rest="    ")]
    return lines
