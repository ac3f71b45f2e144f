"""`gradcli completion SHELL`: the script that makes a shell complete gradcli's command lines."""

from __future__ import annotations

import click

from gradcli.commands import COMPLETION_VARIABLE, output, shells
from gradcli.commands.help import Command

WHERE = {
    "bash": 'eval "$(gradcli completion bash)"    in ~/.bashrc',
    "zsh": 'eval "$(gradcli completion zsh)"    in ~/.zshrc',
    "fish": "gradcli completion fish > ~/.config/fish/completions/gradcli.fish",
}


@click.command(
    "completion",
    cls=Command,
    epilog="\b\nExamples:\n" + "\n".join(f"  {line}" for line in WHERE.values()),
)
@click.argument("shell", metavar="SHELL", type=click.Choice(list(WHERE)))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script for bash, zsh or fish."""
    from click.shell_completion import get_completion_class

    shells.register()
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(ctx.find_root().command, {}, "gradcli", COMPLETION_VARIABLE)
    # The source alone: click's `source()` would first run bash to ask for its version.
    output.write((script.source_template % script.source_vars()).rstrip("\n"))
