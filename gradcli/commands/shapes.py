"""--shape: variables that have a shape and no value."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable
from typing import TYPE_CHECKING, Any

import click

from gradcli.commands.errors import usage

if TYPE_CHECKING:
    from typing import TypeVar

    F = TypeVar("F", bound=Callable[..., Any])


def shape_option(help: str) -> Callable[[F], F]:
    """--shape, which `shapes_of` reads."""
    return click.option("--shape", "shapes", metavar="x=3,4", multiple=True, help=help)


def shapes_of(
    texts: Iterable[str], names: list[str], given: Container[str]
) -> dict[str, tuple[int, ...]]:
    """The sizes of every `NAME=SIZES`; names: the variables that may have one. given: those with a value."""
    found: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, equals, sizes = text.partition("=")
        name = name.strip()
        if not equals or not re.fullmatch(r"[\s()\[\]\d,x]*", sizes):
            hint = f"--let shape={text}" if "shape" in names else "as in --shape x=3,4"
            raise usage(f"--shape wants NAME=SIZES, not {text!r}", hint=hint)
        if name in given:
            raise usage(f"--shape: {name} has a value, which has a shape", hint="leave out one")
        if name not in names:
            known = ", ".join(names) if names else "none"
            raise usage(f"--shape: {name!r} is no variable (there are: {known})", kind="name")
        found[name] = tuple(int(n) for n in re.findall(r"\d+", sizes))
    return found
