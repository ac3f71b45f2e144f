"""`gradcli completion SHELL`: the script that makes a shell complete gradcli's command lines."""

from __future__ import annotations

import click

from gradcli.commands import COMPLETION_VARIABLE, output, shells
from gradcli.commands.declarations import Argument, Options, declare

WHERE = {
    "bash": 'eval "$(gradcli completion bash)"    # in ~/.bashrc',
    "zsh": 'eval "$(gradcli completion zsh)"    # in ~/.zshrc, after compinit',
    "powershell": "gradcli completion powershell | Out-String | Invoke-Expression    # in $PROFILE",
    "pwsh": "gradcli completion pwsh | Out-String | Invoke-Expression    # in $PROFILE",
    "fish": "gradcli completion fish | source    # in ~/.config/fish/config.fish",
}


@declare(
    "completion",
    Argument("SHELL", required=True, choices=tuple(WHERE)),
    examples=tuple(line for shell, line in WHERE.items() if shell != "pwsh"),
)
def command(ctx: click.Context, options: Options) -> None:
    """Print the completion script for bash, zsh, fish or PowerShell (pwsh)."""
    from click.shell_completion import get_completion_class

    shells.register()
    kind = get_completion_class("powershell" if options.shell == "pwsh" else options.shell)
    assert kind is not None
    script = kind(ctx.find_root().command, {}, "gradcli", COMPLETION_VARIABLE)
    # The source alone: click's `source()` would first run bash to ask for its version.
    output.write((script.source_template % script.source_vars()).rstrip("\n"))
