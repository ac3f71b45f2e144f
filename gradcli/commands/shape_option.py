"""--shape: variables that have a shape and no value."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable

from gradcli.commands.command_errors import usage


def shapes_of(
    texts: Iterable[str], names: list[str], given: Container[str], numbers: bool = False
) -> dict[str, tuple[int | str, ...]]:
    """The sizes of every `NAME=SIZES`, numbers or letters (`A=n,n`), or `*` for each one that is to
    be found; several may stand in one text.

    names: the variables that may have one. given: those with a value. numbers: whether there are no
    letters, since values are drawn.
    """
    found: dict[str, tuple[int | str, ...]] = {}
    if not texts:
        return found
    from string import ascii_letters

    letters, example = (
        (("",), "x=3,4") if numbers else (("", "*", *ascii_letters), "x=3,4 or A=m,n")
    )
    for text in (part for given_text in texts for part in re.split(r",(?=\s*\w+\s*=)", given_text)):
        name, equals, sizes = text.partition("=")
        name = name.strip()
        listed = re.split(r"\s*[,x×]\s*", sizes.strip("()[], "))
        if not equals or not all(size.isdigit() or size in letters for size in listed):
            hint = f"--let shape={text}" if "shape" in names else f"as in --shape {example}"
            raise usage(f"--shape wants NAME=SIZES, not {text!r}", hint=hint)
        if name in given:
            raise usage(f"--shape: {name} has a value, which has a shape", hint="leave out one")
        if name not in names:
            known = ", ".join(names) if names else "none"
            raise usage(f"--shape: {name!r} is not a variable (there are: {known})", kind="name")
        found[name] = tuple(int(n) if n.isdigit() else n for n in listed if n)
    return found
