"""A file of formulas, one a line, as a sheet of exercises: each line is answered by itself.

A file in which a line reads what another assigns is a program instead, whose answer is that of its last line.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from gradcli.commands import output
from gradcli.commands.argv import Split
from gradcli.commands.command_errors import as_report, show, to_json, usage
from gradcli.commands.terminal import echo
from gradcli.engine.system import process
from gradcli.engine.system.visible import visible
from gradcli.language import tree_kinds
from gradcli.language.located_errors import LanguageError
from gradcli.language.no_derivative import relation
from gradcli.language.parser import parse, parses
from gradcli.language.scope_checks import assigned_names
from gradcli.language.unused_statements import is_pure

if TYPE_CHECKING:
    from gradcli.commands.options import ExpressionCommand

_LONE = frozenset(tree_kinds.KIND[name] for name in ("expression", "assign"))


class Line(NamedTuple):
    """A line of the file. names: the variables that it reads; None where it cannot be read. equation: whether
    it is one, and no formula."""

    number: int
    text: str
    names: frozenset[str] | None
    equation: bool = False


def lines_of(text: str, found: Split) -> list[Line]:
    """The formulas of a text of several lines; none where the lines are one program.

    They are formulas where each is an expression, or gives a name to one that no other line reads.
    """
    rows = [(k, row.strip()) for k, row in enumerate(text.splitlines(), 1)]
    rows = [(k, row) for k, row in rows if row and not row.startswith("#")]
    if len(rows) < 2:
        return []
    lines, own = [], set()
    for number, row in rows:
        program = _program(row, found)
        if program is None:
            if (
                "math" not in found.given
            ):  # the text is read as a whole, and what is wrong is told there
                return []
            lines.append(Line(number, row, None))
            continue
        statement = len(program) - 2
        if program.rows[-3] != 1 or program.kinds[statement] not in _LONE:
            return []
        if not is_pure(program, statement):
            return []  # `print(x)` is done, not answered
        names = frozenset(program.free_variables())
        if program.kinds[statement] != tree_kinds.KIND["expression"] and not names:
            return []  # `h = 0.1` is a step of a program
        own |= set(assigned_names(program))
        lines.append(Line(number, row, names, relation(program) is not None))
    reads = {n for line in lines for n in line.names or ()}
    return [] if own & reads else lines


def _program(row: str, found: Split) -> Any:
    """A line as a program; None of one that cannot be read."""
    if "math" in found.given:
        from gradcli.language.mathematics import read_mathematics

        try:
            read = read_mathematics(row, parses, dict.fromkeys(found.bound(), False), by="")
        except LanguageError:
            return None
        row = row if read is None else read.written
    try:
        return parse(row)
    except LanguageError:
        return None


def answer(command: ExpressionCommand, ctx: click.Context, lines: list[Line], found: Split) -> int:
    """Answer each line; the exit code is the highest of all."""
    if "array_path" in found.given:
        raise usage("-o takes one result, and the file has several formulas", hint="use --json")
    as_json = "json" in found.given or found.given.get("format") == "json"
    titled = found.given.keys().isdisjoint(("plain", "bare", "format", "lines", "csv"))
    sign = "#"
    if found.given.get("format") == "latex" and "show_steps" in found.given:
        titled, sign = True, "%"  # blocks of lines, which a document wants told apart
    every = {n for line in lines for n in line.names or ()}
    unread = any(line.names is None for line in lines)
    if not unread and any(n not in every and n != "at" for n, _ in found.bindings):
        lines = lines[:1]  # which says what is wrong with the command line, once
    worst, objects = 0, []
    for line in lines:
        for key in [key for key in ctx.meta if key.startswith("gradcli.")]:
            del ctx.meta[key]
        if as_json:
            code, one = answered(command, ctx, _words(line, lines, found))
            objects.append({"line": line.number, "formula": line.text, **one})
        else:
            if titled:
                output.write(f"{sign} {line.text}")
            code = _as_text(command, ctx, _words(line, lines, found), line)
        worst = max(worst, code)
    if as_json:
        output.write(json.dumps(objects, ensure_ascii=False))
    return worst


def _words(line: Line, lines: list[Line], found: Split) -> list[str]:
    """The command line of one formula: with the values of its own variables, of those that the lines have."""
    words, options = [], iter(found.options)
    for word in options:
        if word == "-f":
            next(options)
        elif not word.startswith("--of=") or _is_of(line, word.removeprefix("--of=")):
            words.append(word)
            words += [found.point] if word == "--at" and found.point is not None else []
    others = {n for one in lines for n in one.names or ()} - set(line.names or ())
    values = [f"--{n}={v}" for n, v in found.bindings if line.names is None or n not in others]
    return [*words, *values, "--", line.text]


def _is_of(line: Line, name: str) -> bool:
    """Whether --of speaks of a line: an equation with that name. Formulas among equations have none."""
    return line.names is None or (line.equation and name in line.names)


def _run(
    command: ExpressionCommand,
    ctx: click.Context,
    words: list[str],
    tell: Callable[[Exception], int],
) -> int:
    """Run the command line of one formula; the exit code. tell: shows an error, and gives its exit code."""

    def work() -> None:
        with command.make_context(ctx.info_name, [*words], parent=ctx.parent) as own:
            own.command.invoke(own)

    try:
        return process.shown(work, tell, passing=click.exceptions.Exit)
    except click.exceptions.Exit as leaving:
        return leaving.exit_code


def _as_text(command: ExpressionCommand, ctx: click.Context, words: list[str], line: Line) -> int:
    def tell(error: Exception) -> int:
        if sys.stderr is not None:
            echo(visible(f"gradcli: line {line.number}: {line.text}"), sys.stderr)
        return show(error, words, ctx.meta)

    return _run(command, ctx, words, tell)


def answered(
    command: ExpressionCommand, ctx: click.Context, words: list[str]
) -> tuple[int, Mapping[str, Any]]:
    """(exit code, what JSON says of a command line: its object, or that of its error)."""
    for key in [key for key in ctx.meta if key.startswith("gradcli.")]:
        del ctx.meta[key]
    made = io.StringIO()
    told: dict[str, Any] = {}

    def tell(error: Exception) -> int:
        report = as_report(error)
        told.update(json.loads(to_json(report)))
        return 2 if report.usage else 1

    with redirect_stdout(made):
        code = _run(command, ctx, words, tell)
    return code, {**json.loads(made.getvalue() or "{}"), **told}
