"""What `--help` looks like: the examples first, then the options by what they are for, a line each."""

from __future__ import annotations

import click

INPUTS = "Variables and input"
OUTPUTS = "Output"
SECTIONS = {
    **dict.fromkeys(
        ("let", "wrt", "no_grad", "dtype", "missing", "manual_seed", "load", "file"), INPUTS
    ),
    **dict.fromkeys(("as_json", "as_plain", "precision", "color"), OUTPUTS),
}


class Command(click.Command):
    """A command whose help shows how it is used before it lists what it takes."""

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Usage, what it does, examples, options."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        self.format_epilog(ctx, formatter)
        self.format_options(ctx, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The command's own options first, then those that all commands have."""
        sections: dict[str, list[tuple[str, str]]] = {"Options": [], INPUTS: [], OUTPUTS: []}
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx)
            if record is not None and isinstance(option, click.Option):
                # The record's own text has more than a line: ranges, defaults, variables.
                title = SECTIONS.get(option.name or "", "Options")
                sections[title].append((record[0], option.help or ""))
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records, col_max=min(30, formatter.width // 2))
