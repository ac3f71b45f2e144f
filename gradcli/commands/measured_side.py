"""The measured side of a fit's equation: which column it is, and what `--sigma` says of it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from gradcli.commands.command_errors import quoted, usage
from gradcli.commands.declarations import declaration
from gradcli.commands.item_lists import single

if TYPE_CHECKING:
    from gradcli.language.program import Program

_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?\s*%?\s*", re.I)


def side_texts(program: Program) -> tuple[str, str]:
    """How both sides of an equation are written."""
    from gradcli.language.equations import sides

    paired = sides(program)[0]
    one, other = paired.children(len(paired) - 3)[:2]
    source = program.source
    return source[slice(*paired.span(one))], source[slice(*paired.span(other))]


def measured_column(program: Program, columns: Collection[str]) -> str | None:
    """The variable that stands alone on a side and is a column; None where no side is one."""
    return next((text for text in side_texts(program) if text.strip() in columns), None)


def refuse_unread_side(
    program: Program,
    columns: Collection[str],
    opened: Collection[str],
    table: str,
    headings: Sequence[str],
    unused: Sequence[str],
) -> None:
    """Raise LanguageError where both sides are of parameters and the left reads no column, though there are
    unused ones: the N of `N == N_0*exp(-t/tau)` would be fitted, and the result be all zeros.

    columns: the variables that are columns. opened: those without a value. unused: headings.
    """
    from gradcli.language.located_errors import suggest
    from gradcli.language.parser import parse
    from gradcli.language.scope_checks import free_names

    left, right = (set(free_names(parse(text))) for text in side_texts(program))
    wanted = [name for name in free_names(program) if name in left and name in opened]
    if not unused or not wanted or left & {*columns} or not right & ({*opened} - {*columns}):
        return
    name = wanted[0]
    close = suggest(name, unused)
    taken = [*close, *unused][0]
    column = f"{name}={taken}"
    meant = f"did you mean {close[0]}, as in" if close else "did you mean"
    if len(unused) > 1 and not close:
        meant = f"which column is {name}? As in"
    raise usage(
        f"{name} is no column of {table} (its columns: {', '.join(headings)})",
        hint=f"{meant} --columns {quoted(column)}? A parameter gets a start: {start_option(name, '1')}",
        kind="name",
    )


def named_or_not(item: str) -> tuple[str | None, str]:
    """(the name, the text) of `x=dx`; None for the name of `dx` alone."""
    left, equals, text = item.partition("=")
    is_named = bool(equals) and left.strip().isidentifier() and text[:1] != "="
    return (left.strip(), text.strip()) if is_named else (None, item.strip())


def start_option(name: str, value: str = "VALUE") -> str:
    """The option that gives a parameter its start, which --let is where the command has one of that name."""
    taken = f"--{name}" in declaration("fit").declared()
    return f"--let {name}={value}" if taken else f"--{name} {value}"


def sigma_texts(
    items: Iterable[str],
    parameters: Mapping[str, object],
    given: Collection[str],
    measured: str | None,
) -> list[tuple[str | None, str]]:
    """(the column or None for the measured side, the text) of each --sigma. Raises LanguageError.

    parameters: what is fitted; given: the variables that --let gives a start. measured: the column that
    is the measured side.
    """
    found = [named_or_not(item) for item in single(items)]
    alone = [text for name, text in found if name is None]
    before = f"{measured}=" if measured else ""
    if "sigma" in parameters and "sigma" not in given and alone:
        starts = [text for text in alone if _NUMBER.fullmatch(text) and "%" not in text]
        others = [text for text in alone if text not in starts]
        start = starts[0] if len(starts) == 1 else "START"
        if others:
            hint = f"write --let sigma={start} --sigma {quoted(before + others[0])}"
        else:
            hint = (
                f"--let sigma={start} starts the parameter; the uncertainty of the data is "
                f"--sigma {quoted(before + start)}"
                + ", with --let sigma=START beside it"
                * (not before)
            )
        raise usage(
            "sigma is a parameter of the equation, and --sigma is the uncertainty of the data",
            hint=hint,
        )
    if len(alone) > 1:
        more = "that of another column is --sigma COLUMN=VALUE"
        if "sigma" in parameters:
            more = "the start of the parameter sigma is --let sigma=START"
        raise usage(
            f"--sigma is given twice: {alone[0]} and {alone[1]}", hint=f"leave out one; {more}"
        )
    names = [name for name, _ in found if name is not None]
    if twice := next((name for name in names if names.count(name) > 1), None):
        both = " and ".join(text for name, text in found if name == twice)
        raise usage(f"--sigma {twice}= is given twice: {both}", hint="leave out one of them")
    return found


__all__ = [
    "measured_column",
    "named_or_not",
    "refuse_unread_side",
    "side_texts",
    "sigma_texts",
    "start_option",
]
