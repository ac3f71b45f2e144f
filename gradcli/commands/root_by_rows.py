"""`gradcli root EQUATION TABLE`: an equation solved for one number in every row of a table."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from gradcli.commands import output
from gradcli.commands.command_errors import reading_table, usage
from gradcli.commands.item_lists import bounds_of
from gradcli.commands.map import RowQuestion, form_of, say, write_rows
from gradcli.commands.request_evaluation import set_up

if TYPE_CHECKING:
    from gradcli.columns.streaming.row_job import RowJob
    from gradcli.commands.declarations import Options
    from gradcli.commands.request import Request
    from gradcli.engine.system.process import AnyContext
    from gradcli.tables.frames import FrameStream
    from gradcli.tables.record_batches import Stream


def solve(ctx: AnyContext, request: Request, options: Options) -> None:
    """Print the table with a column more, which has the roots. Raises LanguageError."""
    from gradcli.tables.record_batches import Stream

    for name in ("all", "plot", "monte_carlo"):
        if getattr(options, name):
            option = f"--{name.replace('_', '-')}"
            raise usage(f"{option} cannot be used with a table", hint="leave out one of them")
    table = options.table
    if table.startswith("@") and not os.path.exists(table):
        table = table[1:]  # as files are written behind a variable
    set_up(ctx, request)
    form = form_of(request, options.format, options.path)
    with reading_table(table):
        stream = Stream(table, sys.stdin, request.tables, as_lines=form in ("csv", "tsv"))
        job = solving_job(request, stream, options)
        write_rows(stream, job, form, options.path, request, options.head)
    say_solved(job, request)


def solving_job(request: Request, stream: Stream | FrameStream, options: Options) -> RowJob:
    """What solves the equation in the rows of a table. Raises LanguageError."""
    import numpy as np

    from gradcli.columns.optimize.root_rows import RootRows

    measured = {*request.uncertainties, *(u.partition("=")[0].strip() for u in options.uncertainty)}
    unknown, interval = _unknown(request, measured)
    request.wrt = []
    bad_rows = options.bad_rows or "nan"
    vars(options).update(bad_rows=bad_rows, detect_anomaly=False, workers=None, cluster=None)
    if unknown not in stream.names:  # of the columns that are kept the root is one anyhow
        words = [w for text in options.keep_columns for w in text.split(",")]
        if str(unknown) in (bare := [w.strip() for w in words]):
            vars(options).update(keep_columns=[w for w in bare if w != unknown] or ["none"])
    asked = RowQuestion(request, stream, options)
    job = asked.job
    if unknown is not None:
        job.errors.pop(unknown, None)  # of a start, what its cells have
    asked.propagate(options)
    if unknown in job.errors:
        raise usage(
            f"{unknown} is looked for: its uncertainty is found, and none is given",
            hint=f"give those of the other variables, and --{unknown} NUMBER alone",
        )
    job.solved, job.renamed = unknown, {"value": str(unknown)}
    if job.errors:
        job.renamed["value.uncertainty"] = f"{unknown}.uncertainty"
    asked.choose(options)
    start = None
    if unknown in job.shared:
        array = job.shared.pop(unknown)
        if array.shape or np.asarray(array).dtype.kind == "c":
            raise usage(
                f"--{unknown}: a row has one unknown number, and this has shape {array.shape}",
                hint=f"--{unknown} NUMBER is where all rows start, a column of the table where each does",
            )
        start = float(array)
    elif unknown not in job.columns:
        raise usage(
            "no variable is unknown: all are columns of the table, or held",
            hint=f"--wrt {next(iter(job.columns), 'COLUMN')} starts in each row at the column's number",
        )
    job.rows = RootRows(
        request.program, request.loaded, job.shared, unknown, start, interval, by=job.hidden
    )
    return job


def say_solved(job: RowJob, request: Request) -> None:
    """What is worth a remark, once all rows are solved."""
    rows, unknown = job.rows, job.solved
    say(job.tally(), job.bad_rows, request.source)
    if rows.vague:
        many = "1 row has a root" if rows.vague == 1 else f"{rows.vague} rows have roots"
        output.note(f"{many} of which rounding leaves fewer than 6 digits")
    if rows.turned:
        many = "1 row has" if rows.turned == 1 else f"{rows.turned} rows have"
        output.note(
            f"{many} a root of another sign than where it starts; --{unknown} FROM:TO says where to look"
        )


def _unknown(request: Request, measured: set[str]) -> tuple[str | None, tuple[float, float] | None]:
    """The variable that is looked for, and the interval that is given in place of its start.

    measured: those with uncertainties, which stay.
    """
    wanted = request.wrt if request.wrt is not None else request.names
    names = [name for name in wanted if name not in request.no_grad]
    if request.wrt is None:
        names = [name for name in names if name not in measured] or names
        intervals = [name for name in names if ":" in request.texts.get(name, "")[1:]]
        names = intervals if len(intervals) == 1 else names
    if len(names) != 1:
        if not names:
            return None, None
        interval = next((f"--wrt {n}" for n in names if ":" in request.texts.get(n, "")), None)
        choices = [f"--wrt {name}" for name in names]
        raise usage(
            f"a row has one equation, and {', '.join(names)} have values from which to start",
            hint="say which number is unknown: "
            + (interval or f"{', '.join(choices[:-1])} or {choices[-1]}"),
        )
    name = names[0]
    text = request.texts.get(name, "")
    if text.count(":") != 1 or text.lstrip()[:1] == "@":
        return name, None
    low, high = bounds_of(name, text)
    if not -float("inf") < low < high < float("inf"):
        raise usage(f"--{name} {text} is not an interval", hint=f"as in --{name} 0:10")
    request.texts[name] = repr(low)
    return name, (low, high)


__all__: list[Any] = ["say_solved", "solve", "solving_job"]
