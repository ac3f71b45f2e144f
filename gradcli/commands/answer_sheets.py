"""Many answers checked at once: `check @answers.csv:task --against @answers.csv:answer`.

A column of a table has the expressions, or the formulas to compare their derivatives with, or both are
columns. Each row is checked as a command line of its own; what is wrong with it is its answer. The verdict is
right, wrong, or unreadable: what is said in its place then is for the teacher to judge.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr
from typing import TYPE_CHECKING, Any, NamedTuple

from gradcli.commands import output
from gradcli.commands.argv import Split
from gradcli.commands.command_errors import usage
from gradcli.commands.formula_lists import answered
from gradcli.commands.student_words import meant
from gradcli.commands.terminal import width, wrapped
from gradcli.engine.system.visible import visible
from gradcli.language.located_errors import did_you_mean, suggest

if TYPE_CHECKING:
    import click

    from gradcli.commands.options import ExpressionCommand

_AGAINST = "--against="
_INDENT = "    "
_DELIMITERS = ",;\t|"


class Column(NamedTuple):
    """A column of a file: its cells are read as formulas."""

    file: str
    name: str


class Sheet(NamedTuple):
    """What is checked. task, answer: a formula, or a column of them."""

    task: str | Column
    answer: str | Column
    found: Split


def sheet_of(text: str, found: Split) -> Sheet | None:
    """The sheet that a command line asks for; None where it has one expression and one formula."""
    task, answer = _column(text), _column(found.given.get("against") or "")
    if isinstance(task, Column) and not answer:
        raise usage(
            "a column of expressions is compared with formulas: there is no --against",
            hint=f"as in gradcli check {text} --against @{task.file}:COLUMN",
        )
    return Sheet(task, answer, found) if Column in (type(task), type(answer)) else None


def _column(text: str) -> str | Column:
    """`@FILE:COLUMN`; other texts as they are."""
    file, colon, name = text[1:].rpartition(":")
    if text[:1] != "@" or not colon or not file.strip():
        return text
    return Column(file, name.strip("\"'"))


def check(command: ExpressionCommand, ctx: click.Context, sheet: Sheet) -> int:
    """Check each row; print a line for it. The exit code is 1 where an answer is not right."""
    given = sheet.found.given
    rows = list(_rows(sheet))
    if not rows:
        raise usage("the table has no rows")
    done = [_checked(command, ctx, sheet, row) for row in rows]
    if "json" in given:
        output.write(json.dumps(done, ensure_ascii=False))
    elif "csv" in given or "plain" in given:
        output.write(_table(done, "," if "csv" in given else "\t"))
    else:
        output.write("\n".join(map(visible, _lines(done, sheet, width(sys.stdout)))))
    right = sum(one["ok"] for one in done)
    unread = sum(one["verdict"] == "unreadable" for one in done)
    output.note(f"{right} of {len(done)} right" + (f", {unread} unreadable" if unread else ""))
    return int(right < len(done))


def _rows(sheet: Sheet) -> Iterator[dict[str, str]]:
    """The rows of the table, each by the names of its columns."""
    columns = [c for c in (sheet.task, sheet.answer) if isinstance(c, Column)]
    files = list(dict.fromkeys(c.file for c in columns))
    if len(files) > 1:
        raise usage(f"two tables: {' and '.join(files)}", hint="put both columns into one")
    try:
        with open(files[0], encoding="utf-8-sig", newline="") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise usage(f"cannot read {files[0]}: {said}", kind="file") from None
    head = text.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=head.count)
    reader = csv.DictReader(io.StringIO(text), delimiter=delimiter, skipinitialspace=True)
    names = list(reader.fieldnames or ())
    for column in columns:
        if column.name not in names:
            raise usage(
                f"{files[0]} has no column {column.name!r} (there are: {', '.join(names)})",
                hint=did_you_mean(suggest(column.name, names)),
                kind="name",
            )
    for row in reader:
        spare = row.pop(None, None)
        if spare:
            raise usage(
                f"line {reader.line_num} of {files[0]} has more cells than the first one",
                hint="a formula with commas in it stands in quotes",
            )
        yield {name: cell or "" for name, cell in row.items()}


def _checked(
    command: ExpressionCommand, ctx: click.Context, sheet: Sheet, row: Mapping[str, str]
) -> dict[str, Any]:
    """What is said of a row: its cells, whether it is right, and what is wrong."""
    task, answer = (
        row[one.name].strip() if isinstance(one, Column) else one
        for one in (sheet.task, sheet.answer)
    )
    made: dict[str, Any] = {"row": dict(row), "ok": False, "verdict": "wrong"}
    made |= {"mistake": None, "derivative": None}
    if not answer:
        return {**made, "mistake": "there is no answer"}

    def told_of(task: str, answer: str) -> Mapping[str, Any]:
        found = sheet.found
        options = [o for o in found.options if not o.startswith(_AGAINST) and o not in _FORMS]
        values = [f"--{n}={v}" for n, v in found.bindings]
        words = [*options, *values, "--json", f"{_AGAINST}{answer}", "--", task]
        with redirect_stderr(io.StringIO()):  # the notes are in the answer as well
            return answered(command, ctx, words)[1]

    told = told_of(task, answer)
    if "error" not in told:
        made |= {n: told.get(n) for n in ("ok", "mistake", "derivative")}
        if made["ok"]:
            return {**made, "verdict": "right"}
        # An answer that is right as somebody meant it needs no wrong rule that would explain it.
        return {**made, "mistake": meant(task, answer, told_of, False) or made["mistake"]}
    error = told["error"]
    if said := meant(task, answer, told_of, True):
        return {**made, "verdict": "unreadable", "mistake": said}
    said = error["message"]
    if error.get("type") == "syntax":
        said = f"it cannot be read: {said}"
    elif error.get("hint"):
        said = f"{said}; {error['hint']}"
    verdict = "wrong" if error.get("type") == "shape" else "unreadable"
    return {**made, "verdict": verdict, "mistake": said}


_FORMS = frozenset(("--json", "--csv", "--plain"))


def _why(one: Mapping[str, Any]) -> str:
    """What is wrong with an answer, and the derivative."""
    derivative = one["derivative"]
    parts = [one["mistake"], derivative and f"the derivative is {derivative}"]
    return "; ".join(part for part in parts if part)


def _lines(done: Sequence[Mapping[str, Any]], sheet: Sheet, columns: int) -> Iterator[str]:
    """A line an answer: the cells of its row, and the verdict; below it what is wrong."""
    names = list(done[0]["row"])
    longest = max(len(one["verdict"]) for one in done)
    widest = {n: max(len(one["row"][n]) for one in done) for n in names}
    for one in done:
        cells = "  ".join(f"{one['row'][n]:<{widest[n]}}" for n in names)
        yield f"{one['verdict']:<{longest}}  {cells}".rstrip()
        if not one["ok"] and (why := _why(one)):
            yield wrapped(why, columns, first=_INDENT, rest=_INDENT)


def _table(done: Sequence[Mapping[str, Any]], separator: str) -> str:
    """The table with a verdict and a reason in each row."""
    made = io.StringIO()
    writer = csv.writer(made, delimiter=separator, lineterminator="\n")
    writer.writerow([*done[0]["row"], "verdict", "why"])
    for one in done:
        writer.writerow([*one["row"].values(), one["verdict"], "" if one["ok"] else _why(one)])
    return made.getvalue().rstrip("\n")


__all__ = ["Sheet", "check", "sheet_of"]
