"""What click's completion needs in bash, which splits words at `=`, `:` and `@`, and in fish."""

from __future__ import annotations

from click.shell_completion import BashComplete, FishComplete, add_completion_class

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
    """Make click use these two classes."""
    add_completion_class(Bash)
    add_completion_class(Fish)
