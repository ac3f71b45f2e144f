"""`map` and `root` of Python over the rows of a table: the jobs of the commands, with arrays in and out."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.commands import output
from gradcli.commands.declarations import declaration
from gradcli.commands.request import Request
from gradcli.commands.root_by_rows import say_solved, solving_job
from gradcli.commands.verbs import Names, VerbRequest
from gradcli.engine.core.tensor import Tensor
from gradcli.engine.system import dtypes
from gradcli.language.located_errors import LanguageError
from gradcli.language.option_values import table_error
from gradcli.language.scope_checks import free_names, is_only_called
from gradcli.tables import TableError
from gradcli.tables.frames import FrameStream, column_names, table_of
from gradcli.tables.named_columns import SelectedTable, Table
from gradcli.tables.reading_options import How, Reading
from gradcli.tables.record_batches import Stream

if TYPE_CHECKING:
    from gradcli.columns.streaming.row_job import RowJob

Answers = dict[str, Any]
_IN_MEMORY = "arrays"  # the format of what is no file


def mapped(
    source: str,
    table: Any,
    given: Mapping[str, Any],
    wrt: Names,
    **how: Any,
) -> Answers:
    """What `map` computes of the rows of a table, as arrays by name. how: the options of the command."""
    from gradcli.commands.map import job_of, say

    request, names = _request(source, table, given, wrt, how)
    if names is not None and not {*request.open_variables} & {*names} and not how.get("columns"):
        shown = ", ".join(names)
        raise LanguageError(
            f"no variable of {source!r} is a column (there are: {shown})", kind="name"
        )
    with _python(request):
        stream, options = _stream(table, request, how), _options("map", how)
        job = job_of(request, stream, options)
        found = _run(stream, job, how)
        say(job.tally(), job.bad_rows, source)
    return found


def solved(source: str, table: Any, given: Mapping[str, Any], wrt: Names, **how: Any) -> Answers:
    """What `root` finds in the rows of a table, as arrays by name. how: the options of the command."""
    request, _ = _request(source, table, given, wrt, how, ranges=True)
    with _python(request):
        stream, options = _stream(table, request, how), _options("root", how)
        job = solving_job(request, stream, options)
        found = _run(stream, job, how)
        say_solved(job, request)
    return found


def is_table(data: Any) -> bool:
    """Whether it has rows: a frame, a table of Arrow's or the path of a file. A dict has values by name."""
    if isinstance(data, Mapping | Tensor) or data is None:
        return False
    return (
        isinstance(data, str | os.PathLike) or hasattr(data, "columns") or hasattr(data, "schema")
    )


def _request(
    source: str,
    table: Any,
    given: Mapping[str, Any],
    wrt: Names,
    how: Mapping[str, Any],
    ranges: bool = False,
) -> tuple[Request, list[str] | None]:
    """What a command line would ask for, and the columns of a table in memory."""
    is_file = isinstance(table, str | os.PathLike)
    names = None if is_file else list(map(str, column_names(table)))
    intervals = {
        n: v
        for n, v in given.items()
        if isinstance(v, tuple) and len(v) == 2 and not how.get("map")
    }
    call = VerbRequest(source, None, {n: v for n, v in given.items() if n not in intervals})
    texts = {n: f"{a!r}:{b!r}" for n, (a, b) in intervals.items()}
    shared = dict.fromkeys(call.tensors, "") | texts
    free = list(free_names(call.program))
    opened = [n for n in free if n not in shared and n not in call.loaded]
    opened = [n for n in opened if n in (names or ()) or not is_only_called(call.program, n)]
    wanted = None if wrt is None else [wrt] if isinstance(wrt, str) else list(wrt)
    request = Request(
        call.program,
        shared,
        options=dict.fromkeys(shared, ""),
        tensors=call.tensors,
        loaded=call.loaded,
        open_variables=opened,
        wrt=wanted,
        missing="error" if is_file else "nan",
        dtype=dtypes.get_default_dtype().name,
    )
    request._tables = Reading(How(time_origin=how.get("time_origin")))
    return request, names


def _is_range(value: Any) -> bool:
    return (
        isinstance(value, tuple)
        and len(value) == 2
        and all(isinstance(v, int | float) for v in value)
    )


def _stream(table: Any, request: Request, how: Mapping[str, Any]) -> Stream | FrameStream:
    """The rows; where: truth values that choose them."""
    if isinstance(table, str | os.PathLike):
        return Stream(os.fspath(table), None, request.tables)
    made: Table = table_of(table, request.tables)
    where = how.get("where")
    if where is not None and not isinstance(where, str):
        there = np.asarray(where)
        if there.dtype != bool or there.shape != (made.rows,):
            raise LanguageError(
                "where: a condition of columns, or a truth value a row", kind="value"
            )
        made = SelectedTable(made, np.flatnonzero(there), {})
    return FrameStream(made)


def _options(verb: str, how: Mapping[str, Any]) -> Any:
    options = declaration(verb).defaults()
    columns = how.get("columns") or {}
    bound = [f"{n}={c if isinstance(c, str) else ','.join(c)}" for n, c in columns.items()]
    where, kept = how.get("where"), how.get("keep_columns") or ()
    vars(options).update(
        columns=bound,
        keep_columns=([kept] if isinstance(kept, str) else list(kept)) or ["none"],
        where=where if isinstance(where, str) else None,
        head=how.get("head"),
        bad_rows=how.get("bad_rows"),
        called=_names_given(how.get("called") or ()),
        **{n: how[n] for n in ("order", "second") if n in how},
    )
    return options


def _names_given(called: Any) -> list[str]:
    """New names as --as has them: `delta=S.grad`."""
    if isinstance(called, Mapping):
        return [f"{name}={formula}" for name, formula in called.items()]
    return [called] if isinstance(called, str) else list(called)


def _run(stream: Stream | FrameStream, job: RowJob, how: Mapping[str, Any]) -> Answers:
    """The columns that a job makes of all rows."""
    left, parts = how.get("head"), []
    for batch in stream:
        job.most = left
        columns = job.run(batch, _IN_MEMORY)
        parts.append(dict(columns) if left is None else {n: a[:left] for n, a in columns})
        left = None if left is None else left - len(columns[0][1])
        if left is not None and left <= 0:
            break
    stream.close()
    whole = {n: np.concatenate([_numbers(part[n]) for part in parts]) for n in parts[0]}
    return _with_arrays(whole)


def _with_arrays(columns: Answers) -> Answers:
    """The columns with one array of each gradient, whose elements are columns of their own: `w.grad[0]`."""
    found: Answers = {}
    for name, column in columns.items():
        match = re.fullmatch(r"(.+\.grad)\[([0-9,]+)\]", name)
        if match is None:
            found[name] = column
        else:
            found.setdefault(match[1], {})[tuple(map(int, match[2].split(",")))] = column
    for name, elements in found.items():
        if isinstance(elements, dict):
            shape = np.max(list(elements), axis=0) + 1
            wide = np.stack(list(elements.values()), axis=1)
            found[name] = wide.reshape(len(wide), *shape)
    return found


def _numbers(column: Any) -> Any:
    """A column as an array; numbers in double precision."""
    array = np.array(column.to_pylist() if hasattr(column, "to_pylist") else column)
    return array.astype(np.float64) if array.dtype.kind in "biuf" else array


@contextmanager
def _python(request: Request) -> Iterator[None]:
    """Inside, a command's job runs: its remarks are warnings, its errors speak of rows and keywords."""
    said: list[str] = []
    request.tables.tell = said.append
    try:
        with (
            output.notes_to(said.append),
            dtypes.as_default(dtypes.float64),
            np.errstate(all="ignore"),
        ):
            yield
    except TableError as error:
        raise _worded(table_error(error), request) from None
    except LanguageError as error:
        raise _worded(error, request) from None
    finally:
        for words in dict.fromkeys(said):
            warnings.warn(_keywords(words), stacklevel=6)


def _worded(error: LanguageError, request: Request) -> LanguageError:
    """The error with the row in front, and with keywords in place of options."""
    if error.notes:
        at = re.sub("^the table, ", "", error.notes[-1])
        error.message, error.notes = f"{at}: {error.message}", error.notes[:-1]
    error.message = _keywords(error.message)
    error.hint = None if error.hint is None else _keywords(error.hint)
    return error


_WORDS: list[tuple[str, str | Callable[[re.Match[str]], str]]] = [
    (r"--no-grad all", "wrt=()"),
    (r"; --detect-anomaly treats such rows as bad", ""),
    (r"give --(\w+) VALUE, or --columns (\w+)=COLUMN", r"pass \1=…"),
    (r"--time-origin DATE", "time_origin=DATE"),
    (r"--(\w+) FROM:TO", r"\1=(FROM, TO)"),
    (r"--([a-z][a-z-]*) (skip|nan|stop)", lambda m: f"{m[1].replace('-', '_')}={m[2]!r}"),
    (r"--(\w+) NUMBER", r"\1=NUMBER"),
    (r"--keep-columns (\w+)", r"keep_columns='\1'"),
    (r"--wrt (\w+)", r"wrt='\1'"),
    (r"--as (delta=.*)$", 'as_={"delta": "S.grad", "theta": "-T.grad/365"}'),
    (r"--as\b", "as_"),
    (r"--(where|order|second|head|columns|wrt)\b", r"\1"),
]


def _keywords(text: str) -> str:
    """A remark of a command as Python has it."""
    for pattern, made in _WORDS:
        text = re.sub(pattern, made, text)
    return text


__all__ = ["is_table", "mapped", "solved"]
