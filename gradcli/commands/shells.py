"""What click's completion needs in bash, which splits words at `=`, `:` and `@`, in fish and PowerShell."""

from __future__ import annotations

import os

from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    add_completion_class,
)

_JOINTS = ("=", ":", "@", "=@")


class Bash(BashComplete):
    """click's completion of bash, for words that bash has split at `=`, `:` and `@`."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the cursor's, and the beginning of the cursor's."""
        args, incomplete = super().get_completion_args()
        args = rejoined(args)
        if args and args[-1] in _JOINTS:
            # Bash replaces what follows `=`, and `@` with what follows.
            incomplete = args.pop().lstrip("=:") + incomplete
        return args, incomplete


class Fish(FishComplete):
    """click's, for values and descriptions that have commas in them."""

    source_template = FishComplete.source_template.replace(
        'string split ","', 'string split --max 1 ","'
    )


class PowerShell(ShellComplete):
    """Completion by PowerShell's Register-ArgumentCompleter: words and answers in lines."""

    name = "powershell"
    source_template = """\
Register-ArgumentCompleter -Native -CommandName %(prog_name)s -ScriptBlock {
    param($word, $line, $cursor)
    $before = $line.CommandElements | Where-Object { $_.Extent.EndOffset -lt $cursor } |
        ForEach-Object { if ($_.Value -is [string]) { $_.Value } else { $_.Extent.Text } }
    $env:COMP_WORDS = $before -join "`n"
    $env:COMP_CWORD = $word
    $env:%(complete_var)s = "powershell_complete"
    try {
        & %(prog_name)s | Where-Object { $_ } | ForEach-Object {
            $value, $help = $_ -split "`t", 2
            $said = if ($help) { $help } else { $value }
            [System.Management.Automation.CompletionResult]::new($value, $value, "ParameterValue", $said)
        }
    } finally {
        Remove-Item Env:%(complete_var)s, Env:COMP_WORDS, Env:COMP_CWORD -ErrorAction SilentlyContinue
    }
}
"""

    def get_completion_args(self) -> tuple[list[str], str]:
        """The words before the cursor's, and the beginning of the cursor's."""
        return os.environ["COMP_WORDS"].splitlines()[1:], os.environ.get("COMP_CWORD", "")

    def format_completion(self, item: CompletionItem[str]) -> str:
        """The value and what it is; nothing for files, which PowerShell completes where we are silent."""
        if item.type != "plain":
            return ""
        help = " ".join((item.help or "").split())
        return f"{item.value}\t{help}"


def rejoined(words: list[str]) -> list[str]:
    """`--x`, `=`, `1` as `--x=1`, `0`, `:`, `4` as `0:4`; a joint that ends the line stays apart."""
    found: list[str] = []
    glued = False  # whether the next word belongs to the last one
    for i, word in enumerate(words):
        joint = word in _JOINTS and i < len(words) - 1
        if found and (glued or (joint and word != "@")):
            found[-1] += word
        else:
            found.append(word)
        glued = joint
    return found


def register() -> None:
    """Make click use these classes."""
    add_completion_class(Bash)
    add_completion_class(Fish)
    add_completion_class(PowerShell)
