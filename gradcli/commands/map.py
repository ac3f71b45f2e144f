"""`gradcli map EXPR TABLE`: the value of EXPR and its gradients for every row of a table."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from gradcli.commands import output
from gradcli.commands.command_errors import reading_table, usage, without_name
from gradcli.commands.declarations import (
    CLUSTER,
    EXPRESSION,
    NATIVE,
    UNCERTAINTY,
    Argument,
    Option,
    Options,
    declare,
)
from gradcli.commands.item_lists import named, single
from gradcli.commands.progress import Bar
from gradcli.commands.request import Request, where_read
from gradcli.commands.request_evaluation import cannot_require_grad, files_of, read_variable, set_up
from gradcli.language.located_errors import LanguageError, did_you_mean, suggest

if TYPE_CHECKING:
    from gradcli.columns.streaming.conditions import Condition
    from gradcli.columns.streaming.row_job import RowJob, Tally
    from gradcli.commands.correlations import Relation
    from gradcli.engine.system.process import AnyContext
    from gradcli.tables.columns import Selection
    from gradcli.tables.frames import FrameStream
    from gradcli.tables.parts import Part
    from gradcli.tables.record_batches import Stream
    from gradcli.tables.writing import Sink


COLUMNS = Option(
    "--columns 'x=x1,x2'",
    "Columns to use for a variable; several columns make a vector.",
    many=True,
)
KEEP_COLUMNS = Option(
    "--keep-columns all|none|NAMES",
    "Columns of the table to copy to the output, in this order (default all).",
    many=True,
)
TABLE_FORMAT = Option(
    "--format FORMAT",
    "csv (default in a pipe), tsv, jsonl, parquet, feather, npy; latex or siunitx for a paper.",
    choices=("csv", "tsv", "jsonl", "parquet", "feather", "npy", "latex", "siunitx"),
)
TABLE_FILE = Option(
    "-o FILE", "Write the table to a file; its ending says the format.", name="path"
)
AS = Option(
    "--as NAME=COLUMN",
    "Rename a column, as in delta=S.grad, or add one: 'theta=-T.grad/365'.",
    name="called",
    many=True,
)
HEAD = Option("--head N", "Compute only the first N rows.", least=0)
ROWS_WHERE = Option("--where EXPR", "Compute only rows where EXPR, of columns, is true.")


@declare(
    "map",
    *EXPRESSION,
    Argument("TABLE"),
    COLUMNS,
    KEEP_COLUMNS,
    Option(
        "--bad-rows stop|skip|nan",
        "A row that cannot be read or computed: stop (default), leave it out, or nan.",
        choices=("stop", "skip", "nan"),
        default="stop",
    ),
    TABLE_FORMAT,
    TABLE_FILE,
    Option("--detect-anomaly", "Treat a row that gives NaN or infinity as a bad row."),
    Option("--order N", "Add derivatives up to the N-th by each variable.", least=1, default=1),
    Option("--second x,y", "Add the second derivative by x and y, as column value.x.y.", many=True),
    AS,
    HEAD,
    ROWS_WHERE,
    Option(
        "--jvp x=COLUMNS",
        "The derivative along a direction: columns, a value, or ones.",
        many=True,
    ),
    *(*UNCERTAINTY, NATIVE, *CLUSTER),
    examples=(
        'gradcli map "4*pi**2*L/T**2" pendulum.csv',
        'gradcli map "4*pi**2*L/T**2" pendulum.csv --uncertainty L=0.002 --uncertainty T=sT '
        "--no-grad all",
        "gradcli map \"dot(w,x)**2\" rows.parquet --columns 'x=x*' --w 1,2,3 --wrt w -o out.parquet",
        'gradcli map -f call.txt options.csv --second S,v --as delta=S.grad --where "T > 0" --head 9',
        'zcat log.csv.gz | gradcli map "(a - b)/b" - --keep-columns time --no-grad all '
        "--bad-rows skip",
    ),
    operands=2,
    open_variables=True,
    propagates=True,
)
def command(ctx: AnyContext, request: Request, options: Options) -> None:
    """Print EXPR and its gradients for each row of TABLE (- for standard input).

    EXPR is the expression for one row. A variable with the name of a column takes that row's number. The
    other variables are options and have the same value in all rows.
    """
    from gradcli.tables.parts import Parts
    from gradcli.tables.record_batches import Stream

    table, bad_rows, path = options.table, options.bad_rows, options.path
    if table is None:
        raise usage("no table", hint="write gradcli map EXPR FILE, or - for standard input")
    if table.startswith("@") and not os.path.exists(table):
        table = table[1:]  # as files are written behind a variable
    set_up(ctx, request)
    form = form_of(request, options.format, path)
    with reading_table(table):
        parts = (
            None
            if options.workers is None and options.cluster is None
            else Parts(table, request.tables)
        )
        stream = Stream(table, sys.stdin, request.tables, as_lines=form in ("csv", "tsv"))
        job = job_of(request, stream, options)
        if parts is not None:
            job.settle(next(iter(stream)), form)
            stream.close()
            say(by_workers(job, parts.parts, form, options), bad_rows, request.source)
            return
        write_rows(stream, job, form, path, request, options.head)
    say(job.tally(), bad_rows, request.source)


def job_of(request: Request, stream: Stream | FrameStream, options: Options) -> RowJob:
    """What is computed for the rows of a table, and written."""
    asked = RowQuestion(request, stream, options)
    asked.propagate(options)
    asked.differentiate(options.order, options.jvp)
    asked.differentiate_twice(options.second)
    asked.take_items()
    asked.choose(options)
    return asked.job


def write_rows(
    stream: Stream, job: RowJob, form: str, path: str | None, request: Request, head: int | None
) -> None:
    """Write what a job makes of the rows of a table. head: how many of them at most."""
    if stream.can_select:
        stream.select(job.narrow())
    elif stream.as_lines:
        stream.numbers = tuple(job.names_read())
    with opened_sink(form, path, request, len(job.keep)) as sink:
        left = sys.maxsize if head is None else head
        with Bar(stream.size) as progress:
            for batch in stream:
                job.most = None if head is None else left
                made = job.run(batch, form)
                sink.paths = job.paths
                few = made and left < len(made[0][1])
                sink.write([(n, a[:left]) for n, a in made] if few else made)
                progress.advance(batch.rows, stream.done)
                left -= len(made[0][1]) if made else 0
                if left <= 0:
                    stream.close()
                    break
        sink.close()


def form_of(request: Request, form: str | None, path: str | None) -> str:
    """The format that is asked for; "table" on a terminal."""
    from gradcli.tables.writing import FORMATS, format_of

    if form is not None:
        return form
    if path is not None and path not in output.STANDARD_OUTPUT:
        found = format_of(path)
        if not path:
            raise without_name()
        if found is None:
            raise usage(
                f"-o: the ending of {path} names no format",
                hint=f"there are {', '.join('.' + f for f in FORMATS)}; or say --format FORMAT",
            )
        return found
    if request.style.form != "text":
        return {"json": "jsonl", "plain": "tsv"}[request.style.form]
    return "table" if request.style.summarise and path is None else "csv"


class RowQuestion:
    """What the command line asks for a row: `job` is what is computed, and written."""

    def __init__(self, request: Request, stream: Stream | FrameStream, options: Options) -> None:
        from gradcli.columns.streaming.row_job import RowJob
        from gradcli.commands.uncertainty import take_from_cells
        from gradcli.engine.registry.table import CONSTANTS
        from gradcli.language.index_names import index_names
        from gradcli.language.scope_checks import free_names

        self.request, self.names = request, stream.names
        self.table_name = stream.name
        from gradcli.commands.data_rows import bound_columns

        typed, texts = request.source, self._take_texts(request)
        bound = bound_columns(self.table_name, self.names, options.columns)
        refuse_headings(request, self.table_name, self.names)
        self.columns = {name: found.columns for name, found in bound.items()}
        self.bound = list(bound)
        vectors = {name for name, found in bound.items() if found.is_matrix}
        free = list(request.open_variables)
        for name in bound:
            if name not in free:
                known = ", ".join(free) or "none"
                raise usage(
                    f"--columns: {name!r} is not an open variable (there are: {known})", kind="name"
                )
        for name in free:
            if name in bound or name in request.loaded:
                continue
            if (column := self._column(name)) is not None:
                self.columns[name] = [column]
        take_from_cells(request)
        files = files_of(request)
        tensors = {name: read_variable(request, name, files) for name in request.names}
        self.shared = {name: tensor.detach().array for name, tensor in tensors.items()}
        for name in free_names(request.program):
            if name in request.texts or name in request.loaded:
                self._say(name, "the value that is given, and not")
            elif name in CONSTANTS and name not in free:
                self._say(name, "the constant, and not")
        self._note_functions(vectors, options.where)
        indices = [n for n in index_names(request.program) if n in self.columns]
        row_names = [n for n in free if n in self.columns and n not in indices]
        wanted = row_names if request.wrt is None else request.wrt
        wrt = [name for name in wanted if name not in request.no_grad]
        self.tensors = tensors
        for name in wrt:
            if name in tensors:
                self._differentiable(name)
        self.job = RowJob(
            request.source,
            request.loaded,
            self.names,
            self.columns,
            vectors,
            self.shared,
            wrt,
            self._kept(options.keep_columns),
            missing=request.missing,
            bad_rows=options.bad_rows,
            detect_anomaly=options.detect_anomaly,
            native=request.native,
        )
        self.job.indices = indices
        self.job.flags |= {
            name: self._condition(text, "the expression") for name, text in texts.items()
        }
        self.job.typed = typed if texts else None
        if stream.first is not None:
            self.job.look(stream.first)

    def _take_texts(self, request: Request) -> dict[str, str]:
        """Put variables in place of comparisons of a column with a text, and say which."""
        from gradcli.columns.streaming.text_flags import without_texts
        from gradcli.language.parser import parse
        from gradcli.language.scope_checks import free_names

        source, found = without_texts(request.source, self.names.__contains__)
        if found:
            request.program = parse(source)
            left = set(free_names(request.program))
            request.open_variables = [n for n in request.open_variables if n in left]
        return found

    def _note_functions(self, vectors: set[str], where: str | None) -> None:
        """Say that a function of all rows is called with the number of one: `max(x)`."""
        from gradcli.commands.heading_words import columns_by_word, note_functions

        own = columns_by_word(self.names)
        own = {n: c for n, c in own.items() if n not in vectors and n not in self.shared}
        own |= {n: [self.names[i] for i in c] for n, c in self.columns.items() if n not in vectors}
        others = [*vectors, *(n for n, array in self.shared.items() if array.shape)]
        texts = [self.request.source, *([] if where is None else [where])]
        note_functions(texts, self.table_name, own, others)

    def _differentiable(self, name: str) -> None:
        """LanguageError for a shared variable of integers."""
        if self.shared[name].dtype.kind not in "fc":
            raise cannot_require_grad(self.request, name, self.tensors[name])

    def _column(self, name: str) -> int | None:
        """The column that a name without a value is; None for a name of the language's own."""
        from gradcli.language.names import is_plain_function, meaning
        from gradcli.tables import TableError
        from gradcli.tables.columns import column, places
        from gradcli.tables.table_errors import listed

        try:
            return column(self.table_name, self.names, name, output.note)
        except TableError as error:
            message, hint, absent = error.message, error.hint, error.wrong is not None
        if absent:
            is_function = is_plain_function(name)
            if meaning(name) is not None and not is_function:
                return None
            message = f"{name} is not a column of {self.table_name}, and has no value"
            if is_function:
                message = f"{name} is a function, and no column of {self.table_name}"
            close = did_you_mean(suggest(name, self.names))
            give = f"give --{name} VALUE, or --columns {name}=COLUMN"
            hint = f"{close or give} (its columns are: {listed(self.names)})"
            hint = self._translation(name) or hint
            if self.names == places(len(self.names)):
                hint = (
                    f"its columns have no names: --names gives them, --columns {name}=1 takes one"
                )
        program = self.request.program
        span = where_read(program, name)
        raise usage(message, hint=hint, source=program.source, span=span, kind="name")

    def _translation(self, name: str) -> str | None:
        """How `norm.cdf(x)` and `math.ceil(x)` are written here."""
        from gradcli.language import foreign_names, translations
        from gradcli.language.parser import parses

        source = self.request.source
        if re.search(rf"(?<![\w.]){re.escape(name)}\s*[.(]", source) is None:
            return None
        known = foreign_names.distribution_hint(name, source)
        return known or translations.hint(source, parses, dict.fromkeys(self.names, False))

    def _say(self, word: str, reading: str) -> None:
        """Note the meaning of a word that is also the name of a column."""
        if word in self.names:
            output.note(f"{word} is {reading} the column of that name")

    def _kept(self, keep: Sequence[str]) -> list[int]:
        from gradcli.tables.columns import own

        if not keep or "all" in keep:
            if keep:
                self._say("all", "every column, and not")
            return own(self.names, len(self.names))
        if "none" in keep:
            self._say("none", "no column, and not")
            return []
        return list(dict.fromkeys(i for words in keep for i in self._select(words).columns))

    def _select(self, wanted: str) -> Selection:
        """The columns of the table that a text means."""
        from gradcli.tables.columns import select

        return select(self.table_name, self.names, wanted, output.note)

    def propagate(self, options: Options) -> None:
        """Take in the uncertainties: a number, or a column, for an input."""
        from gradcli.commands.correlations import relations, without_error
        from gradcli.commands.uncertainty import all_uncertainties

        known, job = [*self.columns, *self.shared], self.job
        cells = list(job.errors)
        for name, text in all_uncertainties(
            self.request, options.uncertainty, known, cells
        ).items():
            if name in self.shared:
                self._differentiable(name)
            job.errors[name] = self._error(text, name, f"--uncertainty {name}")
        for pair, array in self.request.covariances.items():
            job.covariances[pair] = array[None]
        for one in relations(options, known):
            for name in one.names:
                if name not in job.errors:
                    raise without_error(one, name)
            self._relate(one)
        if options.budget and not job.errors:
            raise usage(
                "--budget: no variable has an uncertainty", hint="say --uncertainty x=VALUE"
            )
        job.budget = options.budget
        job.hidden = [name for name in job.errors if name not in job.wrt]

    def _relate(self, one: Relation) -> None:
        """Take in a covariance or correlation: a column or a number of two inputs, or a matrix."""
        from gradcli.commands.correlations import as_correlations, check_range

        job = self.job
        shapes = {n: job.shape(n) for n in one.names}
        if len(one.names) == 2:
            place = self._column_of(one.text, one.option)
            array = None if place is not None else self._read(one.text, one.option)
            if array is None or array.shape in ((), shapes[one.names[0]]):
                if len(set(shapes.values())) > 1:
                    a, b = one.names
                    raise usage(
                        f"{one.option}: {a} and {b} have shapes {shapes[a]} and {shapes[b]}"
                    )
                pair = (min(one.names), max(one.names))
                self._free(one, pair)
                if one.kind == "correlation":
                    job.correlated.add(pair)
                    if array is not None:
                        check_range(one.option, array)
                job.covariances[pair] = (
                    self._fitted(array, one.names[0], one.option, signed=True)
                    if place is None
                    else place
                )
                return
        else:
            array = self._read(one.text, one.option)
        if one.kind == "covariance":
            raise usage(
                f"{one.option}: in a table a matrix is one of correlations",
                hint=f"--correlation {','.join(one.names)}=MATRIX takes each row's uncertainties",
            )
        for pair, block in as_correlations(one, array, shapes).items():
            self._free(one, pair)
            job.correlated.add(pair)
            job.covariances[pair] = block

    def _free(self, one: Relation, pair: tuple[str, str]) -> None:
        if pair in self.job.covariances:
            raise usage(f"{one.option}: {','.join(pair)} has one already, of --params")

    def differentiate(self, order: int, directions: Sequence[str]) -> None:
        """Take in what is asked for besides gradients: derivatives of higher order, and along a direction."""
        known = [*self.columns, *self.shared]
        for name, text in named(directions, "--jvp", 1, known).items():
            if name in self.shared:
                self._differentiable(name)
            self.job.directions[name] = self._direction(name, text)
        if order > 1:
            self._refuse_order()
        self.job.order = order

    def differentiate_twice(self, pairs: Sequence[str]) -> None:
        """Take in the second derivatives by two numbers."""
        job = self.job
        for text in pairs:
            one, comma, other = (word.strip() for word in text.partition(","))
            if not comma or "," in other:
                raise usage(f"--second wants x,y, not {text!r}", hint="as in --second S,v")
            for name in (one, other):
                if name not in self.columns and name not in self.shared:
                    known = ", ".join([*self.columns, *self.shared])
                    hint = f"there are {known}"
                    raise usage(f"--second: {name!r} is not a variable", hint=hint, kind="name")
                if job.shape(name):
                    raise usage(f"--second: {name} is not a number but has shape {job.shape(name)}")
                if name in self.shared:
                    self._differentiable(name)
            if (one, other) not in job.second:
                job.second.append((one, other))

    def take_items(self) -> None:
        """Take in that the value is a tuple, each of whose items has gradients: a Jacobian of named rows."""
        from gradcli.columns.streaming.item_rows import item_names

        job = self.job
        items = item_names(self.request.source) if job.wrt or job.hidden else []
        if not items:
            return
        for option, asked in (
            ("uncertainty", job.errors), ("order", job.order > 1), ("second", job.second),
            ("jvp", job.directions),
        ):  # fmt: skip
            if asked:
                raise usage(
                    f"--{option} is of one number, and the value has {len(items)}",
                    hint="end the expression with one of them",
                )
        job.items = items

    def choose(self, options: Options) -> None:
        """Take in which rows are wanted, and what columns are called."""
        from gradcli.columns.streaming.text_flags import without_texts

        for text in single(options.called):
            name, equals, old = (word.strip() for word in text.partition("="))
            if not (name and equals and old):
                raise usage(
                    f"--as wants NAME=COLUMN, not {text!r}",
                    hint="as in --as delta=S.grad, or --as 'theta=-T.grad/365'",
                )
            old, texts = without_texts(old, self.names.__contains__)
            self.job.flags |= {n: self._condition(t, "--as") for n, t in texts.items()}
            self.job.rename(name, f"({old})" if texts else old)
        if options.where is not None:
            self.job.where = self._condition(options.where)
        if options.head is not None and (options.workers or options.cluster):
            raise usage("--head cannot be used with --workers and --cluster", hint="leave out one")

    def _condition(self, text: str, option: str = "--where") -> Condition:
        """The condition of the rows that are computed, or that the expression asks.

        A name means what it does in EXPR, or a column.
        """
        from gradcli.columns.streaming.conditions import Condition

        return Condition(
            text,
            self.table_name,
            self.names,
            lambda name: heading(self.table_name, self.names, name),
            bound={n: [self.names[i] for i in self.columns[n]] for n in self.bound},
            vectors=frozenset(self.job.vectors),
            given=self.request.loaded | self.shared,
            order=self.request.tables.how.date_order,
            option=option,
        )

    def _refuse_order(self) -> None:
        for name in self.job.wrt:
            if self.job.shape(name):
                numbers = ",".join(n for n in self.job.wrt if not self.job.shape(n))
                raise usage(
                    f"--order: {name} is not a number but has shape {self.job.shape(name)}",
                    hint=f"choose numbers, as in --wrt {numbers or 'x'}; or give --jvp a direction",
                )
        if not self.job.wrt:
            raise usage("--order: no variable requires grad", hint="choose one with --wrt")

    def _direction(self, name: str, text: str) -> list[int] | Any:
        """The columns of a direction, or an array that is the same for all rows."""
        import numpy as np

        from gradcli.tables import TableError

        shape, option = self.job.shape(name), f"--jvp {name}"
        try:
            columns = self._select(text).columns
        except TableError:
            columns = []
        if columns:
            self._say_column(text, option)
            if len(shape) > 1 or len(columns) != (shape[0] if shape else 1):
                raise usage(
                    f"{option}: {name} has shape {shape}, and its direction {len(columns)} columns",
                    kind="shape",
                )
            return columns
        if text.strip() == "ones":
            return np.ones(shape, self._dtype(name))
        found = self._read(text, option)
        if found.dtype.kind == "c" and np.dtype(self._dtype(name)).kind != "c":
            raise usage(f"{option}: {name} is real, and its direction complex")
        if found.shape != shape:
            raise usage(
                f"{option}: {name} has shape {shape}, and its direction {found.shape}", kind="shape"
            )
        return found.astype(self._dtype(name))[()]

    def _dtype(self, name: str) -> Any:
        """The dtype of a variable; a column has the default one."""
        import numpy as np

        from gradcli.language.option_values import as_tensor

        return (
            self.shared[name].dtype if name in self.shared else as_tensor(np.zeros(1)).array.dtype
        )

    def _error(self, text: Any, name: str, option: str) -> Any:
        """An uncertainty: 5% of the value, a column, a number, or a formula of columns."""
        import numpy as np

        from gradcli.columns.streaming.row_formulas import RowFormula, Share
        from gradcli.commands.uncertainty import share_and_more, share_of

        if not isinstance(text, str):
            return self._number_or_column(text, name, option)
        if (share := share_of(text)) is not None:
            if name not in self.shared:
                return Share(share)
            return share * np.abs(self.shared[name])[None]
        if (both := share_and_more(text)) is not None:
            text = f"{both[0]!r}*abs({name}) {both[1]}"
        places = {n: i for i, n in enumerate(self.names) if n.isidentifier()}
        places |= {n: found[0] for n, found in self.columns.items() if len(found) == 1}
        read = _read_in(text)
        if self._column_of(text, option) is None and read and {*read} <= places.keys():
            return RowFormula(text, {n: places[n] for n in read}, self.request.loaded)
        return self._number_or_column(text, name, option)

    def _number_or_column(self, text: Any, name: str, option: str) -> Any:
        """The index of a column, or an array that is the same for all rows, which has a row."""
        place = self._column_of(text, option) if isinstance(text, str) else None
        if place is not None:
            return place
        return self._fitted(self._read(text, option), name, option)

    def _fitted(self, array: Any, name: str, option: str, signed: bool = False) -> Any:
        """An array of a variable's shape with a leading 1."""
        from gradcli.commands.uncertainty import fitted

        return fitted(array, self.job.shape(name), option, signed)[None]

    def _column_of(self, text: str, option: str) -> int | None:
        """The column that an option's text names, if it does."""
        from gradcli.tables import TableError
        from gradcli.tables.columns import column

        try:
            found = column(self.table_name, self.names, text.strip(), output.note)
        except TableError as error:
            if error.wrong is None:  # not for want of such a column
                raise
            return None
        self._say_column(text, option)
        return found

    def _say_column(self, text: str, option: str) -> None:
        """Say that an option's text is a column's name, where it is a value, too."""
        try:
            self._read(text, option)
        except LanguageError:
            if text.strip() != "ones":
                return
        output.note(f"{text} of {option} is read as the column of that name, not as the value")

    def _read(self, text: Any, option: str) -> Any:
        """The array that an option gives for all rows."""
        if not isinstance(text, str):
            return text
        from gradcli.commands.request_evaluation import read_value
        from gradcli.tables.table_errors import listed

        try:
            return read_value(text, f"{option}=").detach().array
        except LanguageError as error:
            if error.kind == "name":
                close = did_you_mean(suggest(text, self.names))
                error.hint = close or f"a value, or one of the columns: {listed(self.names)}"
            raise


def _read_in(text: str) -> list[str]:
    """The variables that a text reads; none where it is no expression."""
    from gradcli.language.parser import parse, parses

    return parse(text).free_variables() if parses(text) else []


def heading(table: str, names: Sequence[str], name: str) -> str | None:
    """The heading of the column that a name is; None where it is none."""
    from gradcli.tables import TableError
    from gradcli.tables.columns import column

    try:
        return names[column(table, names, name, output.note)]
    except TableError as error:
        if error.wrong is None:  # not for want of such a column
            raise
        return None


def refuse_headings(request: Request, table: str, names: Sequence[str]) -> None:
    """Raise LanguageError where the expression has a column's heading with its unit: `energy/keV`."""
    if all(map(str.isidentifier, names)):
        return
    from gradcli.commands.heading_words import heading_error

    if (error := heading_error(request.source, table, names, request.names)) is not None:
        raise error


def by_workers(job: RowJob, parts: list[Part], form: str, options: Options) -> Tally:
    """Map the parts of the table by other processes, into a folder of as many files."""
    from gradcli.commands.large_columns import runner

    if options.path is None or form not in ("parquet", "feather"):
        raise usage(
            "--workers and --cluster write a folder of Parquet files, but none is named",
            hint="add -o FOLDER.parquet, or -o FOLDER --format parquet",
        )
    if job.loaded:
        raise usage(
            "--load cannot be used with --workers and --cluster", hint="leave out one of them"
        )
    rows = [part.rows for part in parts]
    total = None if None in rows else sum(n or 0 for n in rows)
    with (
        output.Folder(options.path) as folder,
        runner(options) as runs,
        Bar(total) as progress,
    ):
        return runs.map(job, form, parts, folder, progress.advance)  # type: ignore[no-any-return]


def say(tally: Tally, bad_rows: str, source: str) -> None:
    """What is worth a remark, once all rows are written."""
    from gradcli.tables.table_errors import counted, left_out_words

    if tally.bad:
        what = "left out" if bad_rows == "skip" else "nan"
        output.note(f"{counted(tally.bad, 'bad row')} {what}; the first: {tally.first_bad}")
    if tally.left_out:
        output.note(left_out_words(tally.left_out))
    if tally.not_finite:
        output.note(
            f"{counted(tally.not_finite, 'row')} with NaN or infinity; the first: "
            f"{tally.first_not_finite}; --detect-anomaly treats such rows as bad"
        )
    if tally.kinked:
        where = ""
        if tally.kink is not None:
            from gradcli.commands.kink_notes import place_of

            where = f", the first{place_of(tally.kink, source)}"
        lie = "row lies" if tally.kinked == 1 else "rows lie"
        output.note(f"{tally.kinked} {lie} on a kink or a jump{where}: PyTorch's slopes are taken")
    if tally.bent:
        output.note(
            f"{counted(tally.bent, 'row')} whose uncertainty is by second order: there the gradient "
            "does not tell it"
        )
    if tally.sampled:
        lost = f" (in {counted(tally.lost, 'row')} some have no value)" if tally.lost else ""
        output.note(
            f"{counted(tally.sampled, 'row')} whose uncertainty is by {tally.draws} draws of normal "
            f"distributions{lost}: there neither the gradient nor the second order tells it"
        )
    if tally.alone is not None:
        who = ", as `if`, `float(…)` and `.item()` do" * (tally.alone == "it looks at the numbers")
        output.note(f"the rows ran one by one: {tally.alone}{who}")


# -- where it goes ----------------------------------------------------------------------------------
@contextmanager
def opened_sink(form: str, path: str | None, request: Request, own: int = 0) -> Iterator[Sink]:
    """The sink of a command line; a file is there whole or not at all. own: the table's columns, how many."""
    from gradcli.tables.writing import packing, sink

    precision = request.style.precision
    numerals = partial(output.numerals, precision=precision)

    def sink_of(stream: Any) -> Sink:
        if form not in ("latex", "siunitx"):
            return sink(form, stream, numerals, precision is None)
        from gradcli.commands.typeset_rows import TypesetRows

        return TypesetRows(stream, form, precision)

    if path is not None and path not in output.STANDARD_OUTPUT:
        with output.Replacement(path) as stream:
            packed = packing(path, form, stream)
            yield sink_of(packed or stream)
            if packed is not None:
                packed.close()
        return
    if sys.stdout is None:
        raise LanguageError("standard output is closed", kind="file", usage=False)
    sys.stdout.flush()
    if form == "table":
        from gradcli.commands.array_text import DIGITS
        from gradcli.commands.terminal import width
        from gradcli.commands.terminal_table import TerminalTable

        digits = precision or DIGITS
        numerals = partial(output.numerals, precision=digits)
        wide, colour = width(sys.stdout), request.style.colour
        yield TerminalTable(sys.stdout.buffer, numerals, wide, colour, own, digits)
    else:
        yield sink_of(sys.stdout.buffer)
