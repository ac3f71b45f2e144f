"""Questions about columns that need not fit into memory: answered in passes over the rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import gradcli.engine.system.budget as budget
from gradcli.columns.optimize.spaces import Compiled, Space
from gradcli.commands import output
from gradcli.commands.command_errors import usage
from gradcli.commands.progress import Bar
from gradcli.commands.question import (
    ALONG,
    GRADIENT,
    RUN,
    VALUE,
    Answer,
    Question,
    displayed,
    gradient_keys,
    node_name,
    value_keys,
)
from gradcli.commands.request import Request
from gradcli.commands.request_evaluation import (
    cotangent_array,
    files_of,
    not_finite,
    note_not_finite,
    read_value,
    read_variable,
    set_up,
)
from gradcli.language.located_errors import LanguageError, error_at

if TYPE_CHECKING:
    from gradcli.columns.streaming.passes import Runner
    from gradcli.columns.streaming.running_sums import Column, Values, Work
    from gradcli.tables import TableError
    from gradcli.tables.parts import Parts
    from gradcli.transforms.verdicts import Verdict

_LARGE = 1 << 24  # bytes of files from which on it is asked whether memory has room
_TIMES = 4  # what a column takes in memory: itself, its gradient, and what is between
_SUMS = "possible by rows: sum, mean, dot, norm, var, logsumexp, max, X.T @ X, …"
_WHOLE = "--whole reads the table into memory"
_SHARE = 2  # of the memory that is free, what columns may take


def runner(options: Any) -> Any:
    """Who runs the passes, as a context: this process, N others, or the workers of a scheduler."""
    workers, address = options.workers, options.cluster
    if workers is not None and address is not None:
        raise usage("--workers and --cluster cannot be used together", hint="leave out one of them")
    if workers is None and address is None:
        from gradcli.columns.streaming.passes import Threads

        return Threads()
    from gradcli.columns.streaming.cluster import Cluster

    return Cluster(workers, address)


class RowsTable:
    """The table of a command line: its parts, and where the variables lie in it.

    rows: that count; parts.left_out are those that --missing skip leaves out.
    """

    __slots__ = ("columns", "parts", "rows")

    def __init__(self, parts: Parts, columns: dict[str, Column], rows: int) -> None:
        self.parts, self.columns, self.rows = parts, columns, rows

    def note_left_out(self) -> None:
        """Say that rows are left out."""
        from gradcli.tables.table_errors import left_out_words

        if self.parts.left_out:
            output.note(left_out_words(self.parts.left_out))


def large_table(request: Request, wanted: bool | None) -> RowsTable | None:
    """The table that is to be read by rows, if there is one; `wanted` where the command line says."""
    if not request.has_files:
        raise usage("--by-rows: no variable is a column of a file", hint="as in --x @big.csv:x")
    from gradcli.language.option_values import file_reference
    from gradcli.tables import TableError
    from gradcli.tables.column_reading import matching, split

    found: dict[str, dict[str, str | None]] = {}
    sizes: dict[str, int] = {}
    for name, text in request.texts.items():
        reference = file_reference(text)
        if reference is None:
            continue
        try:
            pattern, columns = split(reference)
            if pattern not in sizes:
                sizes[pattern] = sum(_size(path) for path in matching(pattern))
            found.setdefault(pattern, {})[name] = columns
        except (TableError, OSError):
            continue  # said better where the option is read
    largest = max(sizes, key=lambda pattern: sizes[pattern], default=None)
    if largest is None or not (wanted or sizes[largest] >= _LARGE):
        return None
    try:
        made = large(largest, found[largest], request, bool(wanted))
    except TableError as error:
        if not wanted:
            return None
        raise _of_option(request, next(iter(found[largest])), error) from None
    except OSError as error:
        if not wanted:
            return None
        raise usage(f"cannot read {error.filename}: {error.strerror}", kind="file") from None
    return made


def _size(path: str) -> int:
    full = os.path.expanduser(path)
    return os.path.getsize(full) if os.path.isfile(full) else 0


def large(
    pattern: str,
    wanted: Mapping[str, str | None],
    request: Request,
    forced: bool,
    counts: bool = True,
) -> RowsTable | None:
    """The table of a pattern, with the columns that each variable names (None: all of them); None where it
    need not be read in passes. counts: whether its rows are counted, and must be whole for that."""
    from gradcli.columns.streaming.running_sums import Column
    from gradcli.tables.column_reading import matching
    from gradcli.tables.columns import own, select
    from gradcli.tables.parts import Parts

    parts = Parts(pattern, request.tables)
    columns = {}
    for name, text in wanted.items():
        if text is None:
            all_of_them = own(parts.names, parts.width)
            columns[name] = Column(all_of_them, len(all_of_them) > 1)
        else:
            columns[name] = Column(*select(pattern, parts.names, text, output.note, parts.width))
    used = list(dict.fromkeys(i for column in columns.values() for i in column.columns))
    if not forced:
        size = sum(map(_size, matching(pattern)))
        if parts.rows is not None:
            size = parts.rows * len(used) * 8
        free = budget.free_memory()
        if free is None or size * _TIMES * _SHARE < free:
            return None
    rows = parts.count(used, request.missing) if counts else parts.rows or 0
    if rows == 1:  # an axis of size 1 does not say that it is that of the rows
        return None
    return RowsTable(parts, columns, rows)


def _of_option(request: Request, name: str, error: TableError) -> LanguageError:
    """An error of a table, by the option that brings it: in whichever pass a cell is read first."""
    from gradcli.language.option_values import table_error

    text = request.texts[name]
    found = table_error(error, text, (0, max(len(text), 1)))
    found.message = f"{request.options[name].rstrip('=')}: {found.message}"
    return found


class Passes:
    """The program of a question, whose variables are columns of a large table, ready to run.

    tensors: the values of the variables that are no columns. runner: who runs the passes.
    """

    def __init__(self, question: Question, table: RowsTable) -> None:
        request = question.request
        table.note_left_out()
        self.request, self.table = request, table
        self.runner: Runner = question.ctx.with_resource(runner(question))
        set_up(question.ctx, request)
        if request.loaded:
            raise usage("--by-rows cannot be used with --load", hint="leave out one of them")
        names = [n for n in request.names if n not in table.columns]
        files = files_of(request) if names else None
        self.tensors = {n: read_variable(request, n, files).detach() for n in names}
        # Integers are no variables of the recording: what indexes an array is known.
        self.known = {n: t.array for n, t in self.tensors.items() if t.array.dtype.kind not in "fc"}
        self.shared = {n: t.array for n, t in self.tensors.items() if n not in self.known}

    def wrt(self) -> list[str]:
        """The variables to differentiate by."""
        from gradcli.commands.request_evaluation import cannot_require_grad

        request = self.request
        for name in request.wrt or ():
            if name in self.known:
                raise cannot_require_grad(request, name, self.tensors[name])
        wanted = request.names if request.wrt is None else request.wrt
        return [n for n in wanted if n not in request.no_grad and n not in self.known]

    def work(
        self,
        wrt: Sequence[str] | None,
        *,
        seed: Any = None,
        backward: bool = True,
        value: bool = True,
        directions: Sequence[str] = (),
        moved: Sequence[str] = (),
        columns: Mapping[str, Column] | None = None,
        shared: Mapping[str, Any] | None = None,
    ) -> Work:
        """What there is to compute, seen to be possible. Raises LanguageError with the operator's place."""
        from gradcli.columns.streaming.running_sums import NoPasses, Work, expression

        request = self.request
        if not self.table.rows:
            raise usage(f"{self.table.parts.pattern} has no rows", kind="value")
        work = Work(
            (expression, (request.source, self.known, tuple(directions), tuple(moved))),
            self.table.parts,
            self.table.columns if columns is None else columns,
            self.shared if shared is None else shared,
            self.table.rows,
            wrt=wrt,
            cotangent=seed,
            backward=backward,
            value=value,
            missing=request.missing,
            native=request.native,
        )
        try:
            work.partition  # noqa: B018 (made here, before anything is read)
        except NoPasses as error:
            raise self._refused(error) from None
        return work

    def _refused(self, error: Any) -> LanguageError:
        from gradcli.columns.compiler.partition import SharedGradient
        from gradcli.engine.core import errors

        request, words = self.request, str(error)
        span = error.span
        if isinstance(error.cause, (errors.NotScalarError, errors.NotRealError)):
            return error_at(
                errors.NotScalarError(),
                source=request.source,
                span=request.program.value_span,
                hint="reduce the value, as in sum(…) or mean(…), or say --seed ones",
            )
        what = request.source[slice(*span)] if span else "this"
        hint = _SUMS
        if isinstance(error.cause, errors.BroadcastError):
            hint = "rows can be combined with columns of the same table, or with one number"
        if isinstance(error.cause, SharedGradient):
            hint = "take it from the same table, or say --no-grad"
        found = error_at(
            RuntimeError(f"{what} cannot be computed in passes over the rows: {words}"),
            source=request.source,
            span=span,
            hint=f"{hint}; {_WHOLE}",
        )
        return found

    def may_be_written(self, work: Work, *, value: bool = True) -> None:
        """Refuse a file of -o that rows cannot go to, before anything is read."""
        from gradcli.tables.writing import FORMATS

        style = self.request.style
        if style.path is None or not rows_of(work, value):
            return
        if hasattr(self.runner, "rows") and style.form != "parquet":
            raise usage(
                f"-o {style.path}: workers write a folder of Parquet files",
                hint="as in -o FOLDER.parquet",
            )
        if style.form not in FORMATS:
            raise usage(
                f"-o: rows cannot be written one after the other into {style.path}",
                hint="use .parquet, .feather, .npy or .csv",
            )

    def run(self, work: Work) -> tuple[Values, int | None]:
        """All passes; what is wrong with the table is said with its place."""
        from gradcli.columns.streaming.passes import passes
        from gradcli.tables import TableError

        parts = self.table.parts.parts
        total = self.table.rows * max(sum(bool(p) for p in work.partition.passes), 1)
        try:
            with Bar(total) as bar:
                return passes(work, parts, self.runner, bar.advance)
        except TableError as error:
            raise _of_option(self.request, next(iter(self.table.columns)), error) from None
        except OSError as error:
            raise usage(f"cannot read {error.filename}: {error.strerror}", kind="file") from None

    def write(
        self,
        work: Work,
        values: Values,
        number: int | None,
        *,
        value: bool = True,
        label: str = "value",
    ) -> None:
        """The rows of the outputs that have rows, to the file of -o; a remark where there is none.

        value: whether those of the value are wanted. label: what they are called.
        """
        from gradcli.language.option_values import table_error
        from gradcli.tables import TableError
        from gradcli.tables.writing import sink

        written = {label if n == "value" else n: k for n, k in rows_of(work, value).items()}
        if number is None or not written:
            return
        style = self.request.style
        names = " and ".join(written)
        parts = self.table.parts.parts
        if style.path is None:
            have = "has" if len(written) == 1 else "have"
            if label in written and style.form != "json":  # then nothing would be printed
                raise usage(
                    f"{label} has {self.table.rows:,} rows",
                    hint="-o FILE.parquet writes them; --whole reads the table at once, and prints them",
                )
            output.note(f"{names} {have} {self.table.rows:,} rows: -o FILE.parquet writes them")
            return
        if hasattr(self.runner, "rows"):
            with output.Folder(style.path) as folder, Bar(self.table.rows) as bar:
                self.runner.rows(work, number, values, written, parts, folder, bar.advance)
            return
        numerals = lambda array: output.numerals(array, style.precision)  # noqa: E731
        try:
            with output.Replacement(style.path) as stream, Bar(self.table.rows) as bar:
                out = sink(style.form, stream, numerals, style.precision is None)
                for part in parts:
                    for _, rows in work.batches(number, values, part):
                        out.write(_columns({n: rows[k] for n, k in written.items()}))
                        bar.advance(len(rows[0]))
                out.close()
        except TableError as error:
            raise table_error(error) from None


def rows_of(work: Work, value: bool = True) -> dict[str, int]:
    """The outputs that have rows and are wanted: see `Work.written`."""
    return {n: k for n, k in work.written().items() if value or n != "value"}


def _columns(arrays: Mapping[str, Any]) -> list[tuple[str, Any]]:
    from gradcli.columns.streaming.mapped_program import elements

    return [pair for name, array in arrays.items() for pair in elements(name, array).items()]


# -- the commands -----------------------------------------------------------------------------------
def cotangent_by_rows(text: str | None) -> Any:
    """What gives the gradient to start from, of the result."""
    if text is None:
        return None
    if text.strip() == "-":
        raise usage(
            "--seed cannot come from standard input with --by-rows",
            hint="write its value",
        )

    def seed(result: Any) -> Any:
        import numpy as np

        found, shape = cotangent_array(result, text), result.array.shape
        if found.shape not in ((), shape):
            raise ValueError(f"the seed has shape {found.shape}, and the value {shape}")
        return np.broadcast_to(found, shape)

    return seed


def answer_by_rows(question: Question, table: RowsTable) -> Answer:
    """The answer of passes over the rows of a table."""
    return _ANSWERS[question.asked](question, Passes(question, table))


def _answer(
    made: Passes,
    work: Work,
    found: tuple[Values, int | None],
    lines: Iterable[tuple[str | None, Any]],
    keys: Callable[[int | None], dict[str, Any]],
    label: str = "value",
    shown: bool = True,
) -> Answer:
    """An answer whose results have rows or not; label: what rows of the value are called, if `shown`."""
    answer = Answer(made.request, [(n, v) for n, v in lines if v is not None], keys, None)
    if rows_of(work, shown):
        answer.rows = partial(made.write, work, *found, value=shown, label=label)
    return answer


def _gradient(question: Question, made: Passes) -> Answer:
    request, wrt = made.request, made.wrt()
    if not wrt:
        raise _no_graph(request, "see --wrt and --no-grad")
    shown = question.value or request.style.form == "json"
    work = made.work(wrt, seed=cotangent_by_rows(question.seed), value=shown)
    trace = work.trace
    if trace.result.node is None:
        raise _no_graph(request, "the value does not depend on a variable that requires grad")
    made.may_be_written(work, value=question.value)
    found = made.run(work)
    value, grads = work.results(found[0])
    if wrong := not_finite(grads):
        note_not_finite(wrong)
    like = {n: trace.inputs[n] if g is None else g for n, g in trace.gradients.items()}

    def keys(precision: int | None) -> dict[str, Any]:
        every = {n: grads.get(n) for n in like}
        wrt = gradient_keys(every, like, question.seed, precision, passes=1)
        return {"grad_fn": node_name(trace.result), **wrt, "retained": {}}

    lines = [
        *[("value", value)] * question.value,
        *((f"{n}.grad", grads[n]) for n in wrt if n in grads),
    ]
    answer = _answer(made, work, found, lines, keys, shown=question.value)
    answer.value, answer.like = value, trace.value
    return answer


def _no_graph(request: Request, hint: str) -> LanguageError:
    from gradcli.engine.core.errors import NoGradientError

    return error_at(NoGradientError(), source=request.source, hint=hint)


def _value(question: Question, made: Passes) -> Answer:
    work = made.work(made.wrt(), backward=False)
    made.may_be_written(work)
    found = made.run(work)
    value, _ = work.results(found[0])
    keys = lambda precision: value_keys(work.trace.result, precision)  # noqa: E731
    answer = _answer(made, work, found, [(None, value)], keys)
    answer.value, answer.like = value, work.trace.value
    return answer


def _along(question: Question, made: Passes) -> Answer:
    import numpy as np

    from gradcli.columns.streaming.mapped_program import direction
    from gradcli.commands import vector_option

    request, wrt = made.request, made.wrt()
    if not wrt:
        raise vector_option.nothing_to_differentiate_by()
    if not question.vector:
        raise vector_option.no_direction(wrt)
    columns, shared = dict(made.table.columns), dict(made.shared)
    names = vector_option.vector_texts(question.vector, wrt)
    for name, text in names.items():
        if name not in wrt:
            raise vector_option.no_variable(name, wrt)
        way = _direction(made, name, text)
        if hasattr(way, "columns"):
            columns[direction(name)] = way
        else:
            shared[direction(name)] = way
    work = made.work(None, directions=list(names), columns=columns, shared=shared)
    made.may_be_written(work)
    whole = made.work(None) if question.value or request.style.form == "json" else None
    at = None if whole is None else whole.results(made.run(whole)[0])[0]
    found = made.run(work)
    product, _ = work.results(found[0])

    def keys(precision: int | None) -> dict[str, Any]:
        given = {n: shared.get(direction(n)) for n in names}
        vectors = {
            n: None if v is None else output.to_json(np.asarray(v)[()], precision)
            for n, v in given.items()
        }
        wrt = {n: {"vector": v} for n, v in vectors.items()}
        # vector: the name of 0.1.0
        return {"jvp": output.to_json(product, precision), "wrt": wrt, "vector": vectors}

    lines = [("value", at), ("jvp", product)]
    answer = _answer(made, work, found, lines, keys, label="jvp")
    answer.value, answer.like = at, None if whole is None else whole.trace.value
    return answer


def _direction(made: Passes, name: str, value: str) -> Any:
    """The direction of a variable: a column of the same table, or an array."""
    import numpy as np

    from gradcli.columns.streaming.running_sums import Column
    from gradcli.engine.system import dtypes
    from gradcli.language.option_values import file_reference, table_error
    from gradcli.tables import TableError
    from gradcli.tables.column_reading import split
    from gradcli.tables.columns import select

    table = made.table
    column = table.columns.get(name)
    reference = file_reference(value)
    if column is not None and reference is not None:
        try:
            pattern, wanted = split(reference)
            if pattern == table.parts.pattern and wanted is not None:
                found = Column(*select(pattern, table.parts.names, wanted, output.note))
                if found.shape(1) == column.shape(1):
                    return found
        except TableError as error:
            raise table_error(error, value, (0, len(value))) from None
    shape = column.shape(table.rows) if column is not None else made.shared[name].shape
    dtype = dtypes.default.real if column is not None else made.shared[name].dtype
    if value.strip() == "ones":
        return np.ones((), dtype)
    array = read_value(value, "--vector").detach().array.astype(dtype)
    if array.shape != shape:
        raise usage(
            f"--vector: {name} has shape {shape}, and its vector {array.shape}",
            hint="a column of the same table, or ones" if column is not None else None,
            kind="shape",
        )
    return array


def verdict_by_rows(question: Question, table: RowsTable) -> Verdict:
    """The gradients by numbers against differences; columns are moved as a whole."""
    import numpy as np

    from gradcli.columns.streaming.running_sums import shift
    from gradcli.engine.system import dtypes
    from gradcli.transforms.finite_differences import RTOL, Checked, costly_slopes
    from gradcli.transforms.verdicts import Verdict

    made = Passes(question, table)
    wrt = made.wrt()
    moved = [n for n in wrt if n in table.columns]
    zero = np.zeros((), dtypes.default.real)[()]
    shared = {**made.shared, **{shift(n): zero for n in moved}}
    asked = {n: shift(n) if n in moved else n for n in wrt}
    work = made.work(list(asked.values()), moved=moved, shared=shared)
    values, _ = made.run(work)
    _, slopes = work.results(values)
    alone = made.work(None, moved=moved, shared=shared)

    def value(word: str, array: Any) -> Any:
        alone.shared = {**shared, word: array[()]}
        found, _ = alone.results(made.run(alone)[0])
        assert found is not None
        return found.array

    by = {}
    for name, word in asked.items():
        slope = slopes[word]
        numerical, uncertain = costly_slopes(partial(value, word), np.asarray(shared[word]))
        method = "differences" + ", all rows moved at once" * (name in moved)
        analytical = np.zeros_like(numerical) if slope is None else np.asarray(slope.array)
        given = RTOL if question.rtol is None else question.rtol
        by[name] = Checked(analytical, numerical, uncertain, [], method, given, None)
    return Verdict(dict(made.shared), by, False, None)


class PassObjective(Compiled):
    """The value of a program over a table and its derivatives: a pass over the rows each.

    space: the variables that move, none of which is a column.
    """

    costly = True

    def __init__(self, made: Passes, space: Space) -> None:
        super().__init__(_never, space.size)
        self.passes, self.space = made, space
        self.work = made.work([*space.start])
        self.along: Work | None = None

    def _grads(self, work: Work, given: Mapping[str, Any]) -> tuple[Any, Any]:
        """The value and the gradient, where variables have these values."""
        import numpy as np

        like = self.passes.shared
        work.shared = {
            **work.shared,
            **{n: a.astype(work.shared[n].dtype)[()] for n, a in given.items()},
        }
        value, grads = work.results(self.passes.run(work)[0])
        found = [
            np.zeros(like[n].shape) if grads[n] is None else grads[n].array
            for n in self.space.start
        ]
        return value, np.concatenate([np.ravel(a) for a in found]).astype(np.float64)

    def _computed(self, x: Any) -> tuple[float, Any]:
        value, gradient = self._grads(self.work, self.space.shaped(x))
        return float(value.array), gradient

    def hessian_product(self, x: Any, v: Any) -> Any:
        """The Hessian times a vector."""
        from gradcli.columns.streaming.mapped_program import direction

        names = [*self.space.start]
        if self.along is None:
            shared = {**self.passes.shared, **{direction(n): self.passes.shared[n] for n in names}}
            self.along = self.passes.work(names, directions=names, shared=shared)
        ways = {direction(n): a for n, a in self.space.shaped(v).items()}
        return self._grads(self.along, {**self.space.shaped(x), **ways})[1]

    def hessian(self, x: Any) -> Any:
        """The Hessian, a row after the other."""
        import numpy as np

        return np.stack([self.hessian_product(x, row) for row in np.eye(self.size)])


def _never(x: Any) -> Any:
    raise NotImplementedError


def objective_by_rows(question: Question, table: RowsTable) -> tuple[Space, Compiled]:
    """What `gradcli minimize` moves, and the value of a table that is read by rows."""
    request = question.request
    if request.wrt is None:
        request.no_grad = [*request.no_grad, *table.columns]
    made = Passes(question, table)
    wrt = made.wrt()
    if column := next((n for n in wrt if n in table.columns), None):
        raise usage(f"{column} is a column of the table: data is not varied", hint="see --wrt")
    if not wrt:
        raise usage("there is no variable to vary", hint="see --wrt and --no-grad")
    space = Space(
        {n: made.shared[n] for n in wrt}, {n: t for n, t in made.tensors.items() if n not in wrt}
    )
    return space, PassObjective(made, space)


def _displayed(question: Question, made: Passes) -> Answer:
    """What a program displays, which is run once; its columns are read when a value is wanted."""
    from gradcli.columns.streaming.lazy_passes import NOT_CUT, LazyProgram
    from gradcli.commands.request_evaluation import require_grad
    from gradcli.language import Machine

    request, table = made.request, made.table
    program, variables = request.program, made.tensors
    for name, tensor in variables.items():
        require_grad(request, name, tensor)
    passes = lambda work: made.run(work)[0]  # noqa: E731
    lazy = LazyProgram(table.parts, table.columns, table.rows, passes, missing=request.missing)
    try:
        with lazy.recording() as columns:
            found = Machine({**variables, **columns}, max_steps=question.max_steps)
            found.run(program)
            return displayed(request, found.value)
    except RuntimeError as error:  # of the value that is displayed
        raise error_at(error, source=request.source, span=program.value_span, hint=_WHOLE) from None
    except LanguageError as error:
        if NOT_CUT in error.message:
            error.hint = f"{_SUMS}; {_WHOLE}"
        raise


_ANSWERS = {VALUE: _value, GRADIENT: _gradient, ALONG: _along, RUN: _displayed}
