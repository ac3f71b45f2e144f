"""`gradcli.compile`, with functions that map over tables: whatever has columns in Arrow's format."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np

from gradcli.columns.compiler import compiled_function as plan
from gradcli.columns.compiler.compiled_function import as_array
from gradcli.columns.streaming.row_job import RowJob
from gradcli.language.located_errors import LanguageError, did_you_mean, suggest
from gradcli.language.scope_checks import free_names, may_be_variable
from gradcli.tables import POLICIES, TableError
from gradcli.tables.arrow import ArrowTable
from gradcli.tables.columns import column
from gradcli.tables.parts import ROWS
from gradcli.tables.table_errors import listed, pyarrow

_OPTION = re.compile(r"--([a-z-]+) (skip|nan|error|stop)")
_OF_ROWS = ("order", "second", "where", "head", "time_origin", "keep_columns", "as_")


class CompiledFunction(plan.CompiledFunction):
    """A compiled function that can be called for every row of a table, too."""

    def map(
        self,
        table: Any,
        *,
        columns: Mapping[str, str | Sequence[str]] | None = None,
        keep: str | Sequence[str] = "all",
        wrt: str | Iterable[str] | None = None,
        missing: str = "error",
        bad_rows: str = "stop",
        **shared: Any,
    ) -> Any:
        """The value, and the gradients, for every row: the table's columns, `value`, `NAME.grad`, …

        The function is that of one row. Its variables are columns of those names, or `shared`, the same for
        all rows; `columns={"x": ["x1", "x2"]}` makes a vector of several, `{"x": "x1"}` a number of one.
        keep: the columns that are in the result too ("all", "none", or names). wrt: what to differentiate
        by (default: the variables that are columns; `()`: nothing). missing: "error", "nan" or "skip", for
        rows that lack a number; bad_rows: "stop", "skip" or "nan", for those that are refused.

        table: a table, record batch or reader of pyarrow, a frame of pandas or polars or whatever else
        has `__arrow_c_stream__`, which give a `pyarrow.Table`; a dataset of pyarrow or a
        `RecordBatchReader`, which give a `RecordBatchReader` that reads as it is read; or a frame of Dask,
        which gives a lazy one. Raises LanguageError for rows that are refused, with PyTorch's words and
        the row, and TypeError and ValueError for what cannot be a table or is not a column of it.
        """
        arrow = pyarrow("to map over a table")
        for name, value, known in (
            ("missing", missing, POLICIES),
            ("bad_rows", bad_rows, ("stop", "skip", "nan")),
        ):
            if value not in known:
                raise ValueError(f"{name} is one of {', '.join(known)}, not {value!r}")
        make = functools.partial(
            self._job, columns or {}, keep, wrt, missing, bad_rows, dict(shared)
        )
        # Frames of Dask and pandas are told by what they can do, so that neither has to be imported. Dask
        # asks for an example of the result (`meta`): the function is run on its empty example of a
        # partition.
        if hasattr(table, "map_partitions") and hasattr(table, "_meta"):
            job = make(list(table._meta.columns))
            meta = _frame(job, table._meta)
            return table.map_partitions(functools.partial(_frame, job), meta=meta)
        # What is lazy stays lazy: a dataset of 100 GB gives a reader. Its schema has to be known before
        # the first batch is asked for, so one batch is mapped at once.
        lazy = hasattr(table, "scanner") or isinstance(table, arrow.RecordBatchReader)
        reader = _reader(arrow, table)
        job = make(reader.schema.names)
        batches = _mapped(arrow, job, reader)
        first = next(batches)
        if lazy:
            return arrow.RecordBatchReader.from_batches(first.schema, _chain(first, batches))
        return arrow.Table.from_batches([first, *batches])

    def _job(
        self,
        columns: Mapping[str, str | Sequence[str]],
        keep: str | Sequence[str],
        wrt: str | Iterable[str] | None,
        missing: str,
        bad_rows: str,
        shared: dict[str, Any],
        names: list[str],
    ) -> RowJob:
        def place(name: str) -> int:
            if name not in names:
                close = did_you_mean(suggest(name, names))
                found = f"the columns are {listed(names)}"
                raise ValueError(
                    f"{name!r} is not a column of the table, and has no value ({close or found})"
                )
            try:
                return column("the table", names, name)
            except TableError as error:
                raise ValueError(error.message) from None

        variables = list(self.names)
        if self.program is not None:  # a function's name that is never called is a variable: `T**2`
            for name in free_names(self.program):
                if name not in variables and may_be_variable(self.program, name):
                    variables.append(name)
        for name in (*shared, *columns):
            if name not in variables:
                other = f"; gradcli.map(source, table, {name}=…) has it" if name in _OF_ROWS else ""
                raise TypeError(f"{self.title} has no variable {name!r}{other}")
        found = {n: [place(c) for c in _names(wanted)] for n, wanted in columns.items()}
        for name in variables:
            if name not in shared and name not in found:
                found[name] = [place(name)]
        if wrt is None:
            every = self.wrt == frozenset(self.names)
            wrt = [n for n in variables if (n in found if every else n in self.wrt)]
        wanted = _names(wrt)
        for name in wanted:
            if name not in variables:
                raise ValueError(f"wrt: {self.title} has no variable {name!r}")
        if keep == "all":
            kept = list(range(len(names)))
        else:
            kept = [] if keep == "none" else [place(n) for n in _names(keep)]
        job = RowJob(
            self.function if self.program is None else self.title,
            {},
            names,
            found,
            {name for name, wanted in columns.items() if not isinstance(wanted, str)},
            {n: as_array(a) for n, a in shared.items()},
            wanted,
            kept,
            missing=missing,
            bad_rows=bad_rows,
        )
        job.keeps_dtypes = True
        return job


# Options of torch.compile that say how PyTorch compiles, and change no result.
_OF_TORCH = frozenset("fullgraph dynamic backend mode options disable".split())


@overload
def compile(
    program: str | Callable[..., Any],
    *,
    wrt: str | Iterable[str] | None = None,
    static: str | Iterable[str] = (),
    threads: int | None = None,
    memory: str | None = None,
    native: bool = False,
    **of_torch: Any,
) -> CompiledFunction: ...
@overload
def compile(
    program: None = None, **options: Any
) -> Callable[[Callable[..., Any]], CompiledFunction]: ...
def compile(
    program: str | Callable[..., Any] | None = None,
    *,
    wrt: str | Iterable[str] | None = None,
    static: str | Iterable[str] = (),
    threads: int | None = None,
    memory: str | None = None,
    native: bool = False,
    **of_torch: Any,
) -> Any:
    """As `compile` of `gradcli.columns.compiler.compiled_function`; the function has a method `map`, for rows
    of tables."""
    if unknown := [name for name in of_torch if name not in _OF_TORCH]:
        raise TypeError(f"compile() got an unexpected keyword argument '{unknown[0]}'")
    how: dict[str, Any] = {"wrt": wrt, "static": static, "threads": threads, "memory": memory}
    how["native"] = native
    if program is None:  # @torch.compile(mode="default")
        return functools.partial(compile, **how)
    modules = sys.modules.get("gradcli.torch.nn.modules.module")
    if modules is not None and isinstance(program, modules.Module):
        from gradcli.torch.nn.modules.compiled import OptimizedModule

        return OptimizedModule(program)
    found: CompiledFunction = plan.compile(program, kind=CompiledFunction, **how)
    return found


compile.__doc__ = (
    f"{plan.compile.__doc__}\n    `f.map(table, ...)` calls it for every row of a table."
)


def _names(wanted: str | Iterable[str]) -> list[str]:
    """A list of names; a single name may be a plain string."""
    return [wanted] if isinstance(wanted, str) else list(wanted)


def _reader(arrow: Any, table: Any) -> Any:
    """A reader of the table's batches."""
    if hasattr(table, "scanner"):
        return table.scanner(batch_size=ROWS).to_reader()
    if isinstance(table, arrow.RecordBatchReader):
        return table
    if isinstance(table, arrow.RecordBatch):
        table = arrow.Table.from_batches([table])
    if isinstance(table, arrow.Table):
        return table.to_reader(max_chunksize=ROWS)
    if hasattr(table, "__arrow_c_stream__"):
        try:
            return arrow.RecordBatchReader.from_stream(table)
        except arrow.ArrowInvalid:  # the stream of a column
            pass
    raise TypeError(
        f"a table of pyarrow, pandas, polars or Dask is wanted, not {type(table).__name__}"
    )


def _mapped(arrow: Any, job: RowJob, reader: Any) -> Iterator[Any]:
    """The batches of the result; at least one."""
    schema, start, made = None, 0, False
    for big in _or_empty(arrow, reader):
        for at in range(0, max(big.num_rows, 1), ROWS):
            batch = big.slice(at, ROWS)
            columns = _run(job, ArrowTable("the table", batch, start))
            start += batch.num_rows
            arrays = [arrow.array(d) if not hasattr(d, "to_pylist") else d for _, d in columns]
            arrays = [
                a.combine_chunks() if isinstance(a, arrow.ChunkedArray) else a for a in arrays
            ]
            # The first batch fixes the types. A later batch may have a narrower one (a column without
            # missing cells), and is cast; Arrow refuses batches of different schemas in one table.
            if schema is None:
                fields = [arrow.field(n, a.type) for (n, _), a in zip(columns, arrays, strict=True)]
                schema = arrow.schema(fields)
            arrays = [
                a if a.type == f.type else a.cast(f.type)
                for a, f in zip(arrays, schema, strict=True)
            ]
            yield arrow.RecordBatch.from_arrays(arrays, schema=schema)
            made = True
    assert made


def _or_empty(arrow: Any, reader: Any) -> Iterator[Any]:
    some = False
    for batch in reader:
        if batch.num_rows:
            some = True
            yield batch
    if not some:
        # A table without rows still has columns: one empty batch gives the job its shapes and the result
        # its names.
        arrays = [arrow.array([], field.type) for field in reader.schema]
        yield arrow.RecordBatch.from_arrays(arrays, schema=reader.schema)


def _run(job: RowJob, table: ArrowTable) -> Any:
    from gradcli.language.option_values import in_python, table_error

    try:
        with np.errstate(all="ignore"):
            return job.run(table, "parquet")
    except TableError as error:
        raise in_python(table_error(error), "map") from None
    except LanguageError as error:
        if error.hint:
            hint = error.hint.replace("--no-grad all", "wrt=()")
            error.hint = _OPTION.sub(lambda m: f"{m[1].replace('-', '_')}={m[2]!r}", hint)
        raise


def _chain(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest


def _frame(job: RowJob, frame: Any) -> Any:
    """The mapped rows of one partition of a Dask frame, with the same index."""
    import copy

    arrow = pyarrow("to map over a table")
    table = arrow.Table.from_pandas(frame, preserve_index=False)
    own = copy.copy(job)  # partitions may run at the same time
    found = arrow.Table.from_batches(_mapped(arrow, own, table.to_reader(max_chunksize=ROWS)))
    made = found.to_pandas()
    if len(made) == len(frame):
        made.index = frame.index
    return made


__all__ = ["CompiledFunction", "compile"]
