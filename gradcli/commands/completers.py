"""What a shell is offered behind an option: files, functions, names of the expression."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gradcli.commands import COMMANDS

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem


def commands(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The names of the commands."""
    return [name for name in COMMANDS if name.startswith(incomplete)]


def topics(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """What `help` takes: the names of the commands, and terms of one word."""
    from gradcli.commands.glossary import TERMS

    names = ["terms", *(name for term in TERMS for name in (term.name, *term.also))]
    words = [name for name in names if name.replace("_", "").isalpha()]
    return [name for name in [*COMMANDS, *words] if name.startswith(incomplete)]


def files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Files, as the shell completes them."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def value(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The file behind `@`; a value written out is the user's own."""
    from click.shell_completion import CompletionItem

    if not incomplete.startswith("@"):
        return []
    folder, start = os.path.split(incomplete[1:])
    try:
        entries = sorted(os.scandir(os.path.expanduser(folder) or "."), key=lambda e: e.name)
    except OSError:
        return []
    return [
        CompletionItem("@" + os.path.join(folder, entry.name) + "/" * entry.is_dir())
        for entry in entries
        if entry.name.startswith(start) and (start or not entry.name.startswith("."))
    ]


def functions(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The names of the functions."""
    from gradcli.engine.registry.table import names

    dotted = "." in incomplete
    return [n for n in names() if n.startswith(incomplete) and (dotted or "." not in n)]


def systems(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """What --like takes."""
    import json
    from pathlib import Path

    data = Path(__file__).parents[1] / "transforms" / "kinks.json"
    known = [one["id"] for one in json.loads(data.read_text(encoding="utf-8"))["systems"]]
    return [name for name in ["all", *known] if name.startswith(incomplete)]


def variables(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The variables of the expression, in a list with commas."""
    return _listed(_variables(ctx), incomplete)


def variables_or_all(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The variables of the expression, or `all`, in a list with commas."""
    return _listed([*_variables(ctx), "all"], incomplete)


def assigned(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The names that the expression assigns, or `all`."""
    from gradcli.language.scope_checks import assigned_names

    program = ctx.meta.get("gradcli.program")
    names = [] if program is None else assigned_names(program)
    return _listed([*names, "all"], incomplete)


def bindings(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """NAME= for the variables of the expression."""
    return [f"{name}=" for name in _variables(ctx) if f"{name}=".startswith(incomplete)]


def _variables(ctx: click.Context) -> list[str]:
    return [option.opts[0].lstrip("-") for option in ctx.meta.get("gradcli.variables", ())]


def _listed(names: list[str], incomplete: str) -> list[str]:
    """Names that go on a list `a,b,…`: those that it has not yet."""
    head, comma, last = incomplete.rpartition(",")
    taken = head.split(",")
    return [f"{head}{comma}{name}" for name in names if name.startswith(last) and name not in taken]
