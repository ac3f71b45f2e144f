"""`gradcli map EXPR TABLE`: the value of EXPR and its gradients for every row of a table."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

import click

from gradcli import interrupts
from gradcli.commands import COMMANDS, completers, output
from gradcli.commands.errors import usage, without_name
from gradcli.commands.evaluation import cannot_require_grad, files_of, read_variable, set_up
from gradcli.commands.options import Request, Whole, expression_options, uncertainty_options
from gradcli.commands.points import OPEN, OpenCommand
from gradcli.language.errors import LanguageError, did_you_mean, suggest

if TYPE_CHECKING:
    from gradcli.rows.mapped import Results, Rows
    from gradcli.tables import Table
    from gradcli.tables.stream import Stream
    from gradcli.tables.writing import Column, Sink

OPERANDS = 2
INTEGER = re.compile("0|-?[1-9][0-9]{0,300}")
TYPED = ("jsonl", "parquet", "feather", "npy")  # formats in which a column of numbers is no text


class MapCommand(OpenCommand):
    """Takes a table behind the expression; the expression's variables may be columns of it."""

    operands = OPERANDS
    propagates = True


@click.command(
    "map",
    cls=MapCommand,
    short_help=COMMANDS["map"],
    epilog="""\b
Examples:
  gradcli map "4*pi**2*L/T**2" pendulum.csv
  gradcli map "4*pi**2*L/T**2" pendulum.csv --uncertainty L=0.002 --uncertainty T=sT --no-grad all
  gradcli map "dot(w,x)**2" rows.parquet --columns 'x=x*' --w 1,2,3 --wrt w -o out.parquet
  zcat log.csv.gz | gradcli map "(a - b)/b" - --keep-columns time --no-grad all --bad-rows skip""",
)
@expression_options
@click.argument("table", metavar="TABLE", required=False, shell_complete=completers.files)
@click.option(
    "--columns",
    metavar="'x=x1,x2'",
    multiple=True,
    help="A variable from columns of other names; several make a vector.",
)
@click.option(
    "--keep-columns",
    metavar="all|none|NAMES",
    multiple=True,
    help="The table's columns that are written too (all).",
)
@click.option(
    "--bad-rows",
    metavar="stop|skip|nan",
    type=click.Choice(["stop", "skip", "nan"]),
    default="stop",
    help="What a row does that cannot be read or computed.",
)
@click.option(
    "--format",
    "form",
    metavar="FORMAT",
    type=click.Choice(["csv", "tsv", "jsonl", "parquet", "feather", "npy"]),
    help="csv (in a pipe), tsv, jsonl, parquet, feather, npy.",
)
@click.option(
    "-o",
    "path",
    metavar="FILE",
    shell_complete=completers.files,
    help="Write it, whole or not at all.",
)
@click.option(
    "--detect-anomaly", is_flag=True, help="A row with NaN or infinity in it is a bad row."
)
@click.option(
    "--order",
    metavar="N",
    type=Whole(1),
    default=1,
    help="Differentiate up to N times by each number.",
)
@click.option(
    "--jvp",
    "directions",
    metavar="x=COLUMNS",
    multiple=True,
    help="The derivative along a direction: columns, a value, or ones.",
)
@uncertainty_options
@click.pass_context
def command(
    ctx: click.Context,
    request: Request,
    table: str | None,
    columns: tuple[str, ...],
    keep_columns: tuple[str, ...],
    bad_rows: str,
    form: str | None,
    path: str | None,
    detect_anomaly: bool,
    order: int,
    directions: tuple[str, ...],
    uncertainties: tuple[str, ...],
    covariances: tuple[str, ...],
    budget: bool,
) -> None:
    """Print the value of EXPR, and its gradients, for every row of TABLE (- for standard input).

    EXPR is the expression for one row. A variable that is the name of a column is that row's number; others
    are given as everywhere, and are the same for all rows.
    """
    from gradcli.language.values import table_error
    from gradcli.tables import TableError
    from gradcli.tables.stream import Stream

    if table is None:
        raise usage("no table", hint="write gradcli map EXPR FILE, or - for standard input")
    set_up(ctx, request)
    form = _format(request, form, path)
    try:
        stream = Stream(table, sys.stdin)
        job = _Job(ctx, request, stream, columns, keep_columns, bad_rows, detect_anomaly)
        job.propagate(uncertainties, covariances, budget)
        job.differentiate(order, directions)
        with _opened(form, path, request) as sink:
            with _Progress(stream) as progress:
                for batch in stream:
                    sink.write(job.run(batch, form))
                    progress.advance(batch.rows)
            sink.close()
    except TableError as error:
        raise table_error(error, table, (0, max(len(table), 1))) from None
    except OSError as error:
        if isinstance(error, BrokenPipeError) or error.filename is None:
            raise
        raise usage(f"cannot read {error.filename}: {error.strerror}", kind="file") from None
    job.say()


def _format(request: Request, form: str | None, path: str | None) -> str:
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
                f"-o: no format has the ending of {path}",
                hint=f"there are {', '.join('.' + f for f in FORMATS)}; or say --format FORMAT",
            )
        return found
    if request.style.form != "text":
        return {"json": "jsonl", "plain": "tsv"}[request.style.form]
    return "table" if request.style.summarise and path is None else "csv"


class _Job:
    """What is computed for a row, and what is written of it."""

    def __init__(
        self,
        ctx: click.Context,
        request: Request,
        stream: Stream,
        columns: Iterable[str],
        keep: Sequence[str],
        bad_rows: str,
        detect_anomaly: bool,
    ) -> None:
        self.request, self.bad_rows, self.detect_anomaly = request, bad_rows, detect_anomaly
        self.names = stream.names
        self.table_name = stream.name
        bound = _bound(columns, stream)
        self.columns: dict[str, list[int]] = {}
        self.vectors = {name for name, (_, is_vector) in bound.items() if is_vector}
        free = list(ctx.meta.get(OPEN, []))
        for name, (found, _) in bound.items():
            if name not in free:
                known = ", ".join(free) or "none"
                raise usage(
                    f"--columns: {name!r} is no open variable (there are: {known})", kind="name"
                )
            self.columns[name] = found
        for name in free:
            if name not in bound and name not in request.loaded:
                self.columns[name] = [self._column(name)]
        files = files_of(request)
        tensors = {name: read_variable(request, name, files) for name in request.names}
        self.shared = {name: tensor.detach().array for name, tensor in tensors.items()}
        row_names = [name for name in free if name in self.columns]
        wanted = row_names if request.wrt is None else request.wrt
        self.wrt = [name for name in wanted if name not in request.no_grad]
        self.tensors = tensors
        for name in self.wrt:
            if name in tensors:
                self._differentiable(name)
        self.keep = self._kept(keep)
        self.rows: Rows | None = None
        self.order = 1
        self.directions: dict[str, list[int] | Any] = {}
        self.further: dict[str, Rows] = {}  # the columns of further derivatives
        self.errors: dict[str, Any] = {}
        self.covariances: dict[tuple[str, str], Any] = {}
        self.budget = False
        self.hidden: list[str] = []
        self.suffixes: list[str] | None = None
        self.left_out = self.bad = 0
        self.first_bad: str | None = None
        self.texts: dict[int, bool] = {}

    def _differentiable(self, name: str) -> None:
        """LanguageError for a shared variable of integers."""
        if self.shared[name].dtype.kind not in "fc":
            raise cannot_require_grad(self.request, name, self.tensors[name])

    def _column(self, name: str) -> int:
        found = [i for i, column in enumerate(self.names) if column == name]
        if len(found) == 1:
            return found[0]
        program = self.request.program
        from gradcli.commands.options import where_read

        listed = ", ".join(n for n in self.names if n)
        close = did_you_mean(suggest(name, self.names))
        problem = f"is {len(found)} columns" if found else "is no column"
        raise usage(
            f"{name} {problem} of {self.table_name}, and has no value",
            hint=f"{close or f'add --{name} VALUE'} (its columns are: {listed})",
            source=program.source,
            span=where_read(program, name),
            kind="name",
        )

    def _kept(self, keep: Sequence[str]) -> list[int]:
        from gradcli.tables.table import ArrayTable

        if not keep or "all" in keep:
            return list(range(len(self.names)))
        if "none" in keep:
            return []
        shell = ArrayTable(self.table_name, self.names, [])
        return sorted({i for words in keep for i in shell.find(words)})

    def propagate(self, items: Sequence[str], covariances: Sequence[str], budget: bool) -> None:
        """Take in the uncertainties: a number, or a column, for an input."""
        from gradcli.commands.uncertainty import named, same_shape

        known = [*self.columns, *self.shared]
        found: dict[str, str] = dict(self.request.uncertainties)
        for name, text in named(items, "--uncertainty", 1, known).items():
            if name in found:
                raise usage(f"--uncertainty: {name} has one already, behind its value")
            found[name] = text
        for name, text in found.items():
            if name in self.shared:
                self._differentiable(name)
            self.errors[name] = self._number_or_column(text, name, f"--uncertainty {name}")
        for (one, other), text in named(covariances, "--covariance", 2, known).items():
            for name in (one, other):
                if name not in self.errors:
                    raise usage(f"--covariance: {name} has no uncertainty")
            same_shape(one, other, (self._shape(one), self._shape(other)))
            option = f"--covariance {one},{other}"
            self.covariances[one, other] = self._number_or_column(text, one, option, signed=True)
        if budget and not self.errors:
            raise usage(
                "--budget: no variable has an uncertainty", hint="say --uncertainty x=VALUE"
            )
        self.budget = budget
        self.hidden = [name for name in self.errors if name not in self.wrt]

    def differentiate(self, order: int, directions: Sequence[str]) -> None:
        """Take in what is asked for besides gradients: derivatives of higher order, and along a direction."""
        from gradcli.commands.uncertainty import named
        from gradcli.rows.mapped import Rows, direction, jvp, nth

        known = [*self.columns, *self.shared]
        for name, text in named(directions, "--jvp", 1, known).items():
            if name in self.shared:
                self._differentiable(name)
            self.directions[name] = self._direction(name, text)
        if order > 1:
            self._refuse_order()
        self.order = order
        function = self._function(quiet=True)
        if self.directions:
            given = {direction(n): d for n, d in self.directions.items() if type(d) is not list}
            along = jvp(function, list(self.directions))
            self.further["value.jvp"] = Rows(along, {**self.shared, **given}, ())
        for name in self.wrt:
            for k in range(2, order + 1):
                self.further[f"{name}.grad{k}"] = Rows(nth(function, name, k), self.shared, ())

    def _refuse_order(self) -> None:
        for name in self.wrt:
            if self._shape(name):
                numbers = ",".join(n for n in self.wrt if not self._shape(n))
                raise usage(
                    f"--order: {name} is no number but has shape {self._shape(name)}",
                    hint=f"choose numbers, as in --wrt {numbers or 'x'}; or give --jvp a direction",
                )
        if not self.wrt:
            raise usage("--order: no variable requires grad", hint="choose one with --wrt")

    def _direction(self, name: str, text: str) -> list[int] | Any:
        """The columns of a direction, or an array that is the same for all rows."""
        import numpy as np

        from gradcli.commands.evaluation import read_value
        from gradcli.tables import TableError
        from gradcli.tables.table import ArrayTable

        shape, option = self._shape(name), f"--jvp {name}"
        try:
            columns = ArrayTable(self.table_name, self.names, []).find(text)
        except TableError:
            columns = []
        if columns:
            if len(shape) > 1 or len(columns) != (shape[0] if shape else 1):
                raise usage(
                    f"{option}: {name} has shape {shape}, and its direction {len(columns)} columns",
                    kind="shape",
                )
            return columns
        if text.strip() == "ones":
            return np.ones(shape, self._dtype(name))
        try:
            found = read_value(text, f"{option}=").detach().array
        except LanguageError as error:
            if error.kind == "name":
                close = did_you_mean(suggest(text, self.names))
                error.hint = close or f"a value, or columns: {', '.join(self.names)}"
            raise
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

        from gradcli.language.values import as_tensor

        return (
            self.shared[name].dtype if name in self.shared else as_tensor(np.zeros(1)).array.dtype
        )

    def _number_or_column(self, text: str, name: str, option: str, signed: bool = False) -> Any:
        """The index of a column, or an array that is the same for all rows, which has a row."""
        from gradcli.commands.evaluation import read_value
        from gradcli.commands.uncertainty import fitted

        if text in self.names:
            return self.names.index(text)
        try:
            found = read_value(text, f"{option}=").detach().array
        except LanguageError as error:
            if error.kind == "name":
                close = did_you_mean(suggest(text, self.names))
                error.hint = close or f"a number, or one of the columns: {', '.join(self.names)}"
            raise
        return fitted(found, self._shape(name), option, signed)[None]

    # -- a batch -------------------------------------------------------------------------------------
    def run(self, table: Table, form: str) -> list[Column]:
        """The columns that are written for a batch."""
        import numpy as np

        from gradcli.engine import random
        from gradcli.rows.mapped import direction

        if table.names != self.names:
            self._follow(table)
        bad: dict[int, Exception] = dict(table.bad)
        skipped = np.zeros(table.rows, bool)  # rows that lack a number, where those are left out
        read: dict[int, Any] = {}

        def column(index: int) -> Any:
            if index not in read:
                read[index] = self._readable(table, index, bad, skipped)
            return read[index]

        batch = {
            name: _stacked([column(i) for i in found], self._shape(name))
            for name, found in self.columns.items()
        }
        for found in self.directions.values():
            if isinstance(found, list):
                for index in found:
                    column(index)
        for items, signed in ((self.errors, False), (self.covariances, True)):
            for index in items.values():
                if isinstance(index, int):
                    _check(table, index, column(index), signed, bad)
        skipped[list(bad)] = False
        self._refuse(table, bad)
        there = ~skipped
        there[list(bad)] = False
        places = np.flatnonzero(there)
        batch = {n: a[there] for n, a in batch.items()}
        along = {direction(n): _stacked([column(i)[there] for i in found], self._shape(n))
                 for n, found in self.directions.items() if isinstance(found, list)}  # fmt: skip
        before = random.snapshot()
        results = self._rows()(batch, len(places))
        further = self._further(results, batch, along, len(places), before)

        def given(name: str, of: Any) -> Any:
            if not isinstance(of, int):
                return of
            return column(of)[there].reshape(-1, *[1] * len(self._shape(name)))

        errors = {n: given(n, e) for n, e in self.errors.items()}
        covariances = {pair: given(pair[0], e) for pair, e in self.covariances.items()}
        made = self._computed(results, further, len(places), errors, covariances)
        bad.update({int(places[row]): error for row, error in results.refused.items()})
        if self.detect_anomaly:
            bad.update(_anomalies(made, places, results))
        self._refuse(table, bad)
        self._count(table, bad, int(skipped.sum()))
        keep = ~skipped
        if self.bad_rows == "skip":
            keep[list(bad)] = False
        inside = keep[places]
        wide = []
        for name, array in made:
            if len(places) == len(keep) and inside.all() and not bad:
                wide.append((name, array))
                continue
            kind = (
                array.dtype
                if array.dtype.kind in "fc" or (self.bad_rows == "skip" or not bad)
                else np.float64
            )
            filled = np.full(len(keep), np.nan if np.dtype(kind).kind in "fc" else 0, kind)
            filled[places] = array
            if self.bad_rows == "nan" and bad:
                filled[list(bad)] = np.nan
            wide.append((name, filled[keep]))
        return self._distinct([*self._passed(table, keep, form), *wide])

    def _further(
        self,
        results: Results,
        batch: dict[str, Any],
        along: dict[str, Any],
        rows: int,
        before: Any,
    ) -> dict[str, list[Column]]:
        """Derivatives along the direction and of higher order: the columns of each. What is refused there
        is added to the rows that are refused. before: where the random numbers of the value began.
        """
        import numpy as np

        from gradcli.engine import random

        made = {}
        for label, run in self.further.items():
            values: dict[str, Any] = {}
            if len(results.refused) < rows:
                random.rewind(before)
                found = run(batch | along if label == "value.jvp" else batch, rows)
                values = found.values
                for row, error in found.refused.items():
                    results.refused.setdefault(row, error)
            if not values:
                suffixes = self.suffixes or list(results.values) or [""]
                if label != "value.jvp":
                    suffixes = [""]
                values = {suffix: np.full(rows, np.nan) for suffix in suffixes}
            made[label] = [(label + suffix, array) for suffix, array in values.items()]
        return made

    def _distinct(self, columns: list[Column]) -> list[Column]:
        """The columns, if no two have one name."""
        names = [name for name, _ in columns]
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            kept = ",".join(n for n in dict.fromkeys(self.names) if n and names.count(n) == 1)
            raise usage(
                f"two columns would be called {twice!r}",
                hint=f"say which to keep of the table's: --keep-columns {kept or 'none'}",
            )
        return columns

    def _follow(self, table: Table) -> None:
        """Another file of the pattern may have its columns in another order."""
        if sorted(table.names) != sorted(self.names):
            raise usage(
                f"{table.name} has other columns than the files before it",
                hint=f"it has {', '.join(table.names)}; they have {', '.join(self.names)}",
            )
        moved = [table.names.index(name) for name in self.names]
        self.columns = {n: [moved[i] for i in found] for n, found in self.columns.items()}
        self.errors = {n: moved[e] if isinstance(e, int) else e for n, e in self.errors.items()}
        self.covariances = {
            n: moved[e] if isinstance(e, int) else e for n, e in self.covariances.items()
        }
        self.directions = {
            n: [moved[i] for i in d] if isinstance(d, list) else d
            for n, d in self.directions.items()
        }
        self.keep = [moved[i] for i in self.keep]
        self.texts = {}
        self.names = table.names

    def _readable(self, table: Table, index: int, bad: dict[int, Exception], skipped: Any) -> Any:
        """A column's numbers in the default dtype; what is wrong with it goes into `bad` and `skipped`."""
        import numpy as np

        from gradcli.language.values import as_tensor
        from gradcli.tables.errors import MISSING_HINT

        array, gone, problems = table.readable(index)
        for row, problem in problems.items():
            bad.setdefault(row, problem)
        if gone is not None:
            if self.request.missing == "skip":
                skipped |= gone
            elif self.request.missing == "error":
                for row in np.flatnonzero(gone).tolist():
                    problem = table.wrong(row, index, "a number is missing here", MISSING_HINT)
                    bad.setdefault(row, problem)
            array = array.astype(np.result_type(array.dtype, np.float64))
            array[gone] = np.nan
        return as_tensor(np.atleast_1d(array)).array

    def _rows(self) -> Rows:
        if self.rows is None:
            from gradcli.rows.mapped import Rows

            self.rows = Rows(self._function(), self.shared, [*self.wrt, *self.hidden])
        return self.rows

    def _function(self, quiet: bool = False) -> Callable[..., Any]:
        """The expression of a row. quiet: it has printed before what it prints."""
        import io

        import numpy as np

        from gradcli import language
        from gradcli.plan import Untraceable

        program, loaded = self.request.program, self.request.loaded
        prints = not {"print", "display"}.isdisjoint(program.words)

        def function(**tensors: Any) -> Any:
            if prints and not all(
                isinstance(t.array, np.ndarray | np.generic) for t in tensors.values()
            ):
                raise Untraceable("the program prints")
            with redirect_stdout(io.StringIO() if quiet else sys.stderr):
                return language.run(program, {**loaded, **tensors}).value

        return function

    def _computed(
        self,
        results: Results,
        further: dict[str, list[Column]],
        rows: int,
        errors: dict[str, Any],
        covariances: dict[Any, Any],
    ) -> list[Column]:
        """The value's columns, its uncertainty, the gradients. Impossible covariances refuse a row."""
        import numpy as np

        from gradcli.commands import uncertainty
        from gradcli.rows.mapped import elements

        values = results.values
        if not values:
            values = {suffix: np.full(rows, np.nan) for suffix in self.suffixes or [""]}
        elif self.suffixes is None:
            self.suffixes = list(values)
        elif list(values) != self.suffixes:
            raise usage(
                "the values of the rows are not alike", hint="some have more elements than others"
            )
        found: list[Column] = [(f"value{suffix}", array) for suffix, array in values.items()]
        found += further.get("value.jvp", [])
        gradients = results.gradients or {
            n: np.zeros((rows, *self._shape(n))) for n in [*self.wrt, *self.hidden]
        }
        if errors:
            squares = uncertainty.squares(gradients, errors, covariances, rows)
            for row in np.flatnonzero(uncertainty.impossible(errors, covariances, squares)):
                results.refused.setdefault(int(row), uncertainty.too_strong())
            total = uncertainty.total(squares)
            found.append(("value.uncertainty", total))
            if self.budget:
                with np.errstate(all="ignore"):
                    found += [
                        (f"{n}.share", np.where(total > 0, s / total**2, 0.0))
                        for n, s in squares.items()
                    ]
        for name in self.wrt:
            found += elements(f"{name}.grad", gradients[name]).items()
            for k in range(2, self.order + 1):
                found += further[f"{name}.grad{k}"]
        return found

    def _shape(self, name: str) -> tuple[int, ...]:
        if name in self.shared:
            return tuple(self.shared[name].shape)
        return (len(self.columns[name]),) if name in self.vectors else ()

    def _passed(self, table: Table, keep: Any, form: str) -> list[Column]:
        """The table's own columns: as they are written, or in a typed format as numbers where they are."""
        import numpy as np

        whole = bool(keep.all())
        found: list[Column] = []
        for index in self.keep:
            data = table.data(index)
            if form in TYPED and not isinstance(data, np.ndarray):
                data = self._typed(table, index, data, form)
            if not whole:
                data = _chosen(data, keep)
            found.append((table.names[index], data))
        return found

    def _typed(self, table: Table, index: int, data: Any, form: str) -> Any:
        """Text that is all numbers as numbers, for a format that knows of them; the first batch decides.

        In JSON lines, where a cell has a type of its own, integers stay what they are.
        """
        cells = table.cells(index) if hasattr(data, "to_pylist") else data
        if index not in self.texts:
            self.texts[index] = not all(isinstance(c, str) for c in cells) or bool(
                table.readable(index)[2]
            )
        if self.texts[index]:
            return cells
        if form == "jsonl" and all(map(INTEGER.fullmatch, cells)):
            return list(map(int, cells))
        return table.numbers(index)[0]

    # -- rows that are bad ---------------------------------------------------------------------------
    def _refuse(self, table: Table, bad: dict[int, Exception]) -> None:
        """Stop at the first bad row, if that is what is wanted; or at what is wrong with all rows."""
        if not bad:
            return
        row = min(bad)
        error = bad[row]
        words = str(getattr(error, "message", error))
        whole = words.startswith(
            ("grad can be implicitly created", "element 0 of tensors does not")
        ) or ("there is no gradient" in words)
        if self.bad_rows != "stop" and not whole:
            return
        raise self._worded(table, row, error, whole)

    def _worded(self, table: Table, row: int, error: Exception, whole: bool) -> LanguageError:
        from gradcli.commands.errors import refused
        from gradcli.language.values import table_error
        from gradcli.tables import TableError

        if isinstance(error, TableError):
            found = table_error(error)
            found.usage = False
            return found
        if not isinstance(error, LanguageError):
            program = self.request.program
            span = program.span(len(program) - 2) if program.ends_in_expression else None
            found = refused(error, source=program.source, span=span)
        else:
            found = error
        if whole:
            found.hint = "--no-grad all gives the values alone; or make it one number, as in sum(…)"
        else:
            found.notes = (*found.notes, str(table.where(row, -1)["at"]))
            found.hint = (
                found.hint or "--bad-rows skip leaves such rows out, --bad-rows nan keeps them"
            )
        found.usage = False
        return found

    def _count(self, table: Table, bad: dict[int, Exception], skipped: int) -> None:
        self.left_out += skipped
        if bad and self.first_bad is None:
            row = min(bad)
            found = self._worded(table, row, bad[row], False)
            at = str(table.where(row, -1)["at"])
            words = found.message.partition("\n")[0]
            self.first_bad = words if words.startswith(at) else f"{at}: {words}"
        self.bad += len(bad)

    def say(self) -> None:
        """What is worth a remark, once all rows are written."""
        from gradcli.tables.errors import counted

        if self.bad:
            what = "left out" if self.bad_rows == "skip" else "nan"
            output.note(f"{counted(self.bad, 'bad row')} {what}; the first: {self.first_bad}")
        if self.left_out:
            output.note(f"{counted(self.left_out, 'row')} left out for a number that is missing")
        ways = [self.rows, *self.further.values()]
        alone = next((w.alone for w in ways if w is not None and w.alone is not None), None)
        if alone is not None:
            output.note(f"the rows ran one by one: {alone}")


def _bound(items: Iterable[str], stream: Stream) -> dict[str, tuple[list[int], bool]]:
    """`x=x1,x2`: the columns of a variable, and whether they make a vector."""
    from gradcli.tables.table import ArrayTable, is_list

    shell = ArrayTable(stream.name, stream.names, [])
    found: dict[str, tuple[list[int], bool]] = {}
    for item in items:
        name, equals, wanted = item.partition("=")
        name = name.strip()
        if not equals or not name.isidentifier() or not wanted.strip():
            raise usage(
                f"--columns wants NAME=COLUMNS, not {item!r}", hint="as in --columns 'x=x1,x2'"
            )
        if name in found:
            raise usage(f"--columns: {name} is bound twice")
        found[name] = (shell.find(wanted), is_list(wanted))
    return found


def _chosen(data: Any, keep: Any) -> Any:
    """Some of the cells of a column."""
    if hasattr(data, "to_pylist"):
        return data.filter(keep)
    if isinstance(data, list):
        return [cell for cell, kept in zip(data, keep.tolist(), strict=True) if kept]
    return data[keep]


def _stacked(columns: list[Any], shape: tuple[int, ...]) -> Any:
    """A column of numbers, or the columns of a vector side by side."""
    import numpy as np

    return np.stack(columns, axis=1) if shape else columns[0]


def _check(table: Table, index: int, array: Any, signed: bool, bad: dict[int, Exception]) -> None:
    """A row is bad whose number is no uncertainty, or no covariance; one that is missing may be nan."""
    import numpy as np

    from gradcli.commands.uncertainty import flaws

    for where, words in flaws(array, signed):
        for row in np.flatnonzero(where & ~np.isnan(array)).tolist():
            bad.setdefault(row, table.wrong(row, index, words))


def _anomalies(found: list[Column], places: Any, results: Results) -> dict[int, Exception]:
    """The rows with a number that is not finite."""
    import numpy as np

    bad: dict[int, Exception] = {}
    for name, array in found:
        if array.dtype.kind not in "fc":
            continue
        for row in np.flatnonzero(~np.isfinite(array)).tolist():
            if row not in results.refused:
                bad.setdefault(int(places[row]), RuntimeError(f"{name} is {array[row]}"))
    return bad


# -- where it goes ----------------------------------------------------------------------------------
class _opened:
    """The sink of a command line; a file is there whole or not at all."""

    def __init__(self, form: str, path: str | None, request: Request) -> None:
        self.form, self.path, self.request = form, path, request
        self.file: Any = None

    def __enter__(self) -> Sink:
        from gradcli.tables.writing import sink

        precision = self.request.style.precision
        if self.path is not None and self.path not in output.STANDARD_OUTPUT:
            self.file = output.Replacement(self.path)
            stream = self.file.stream
        else:
            if sys.stdout is None:
                raise LanguageError("standard output is closed", kind="file", usage=False)
            sys.stdout.flush()
            stream = sys.stdout.buffer
        if self.form == "table":
            from gradcli.commands.table import TerminalTable

            return TerminalTable(stream, lambda array: output.numerals(array, precision))
        try:
            numerals = lambda array: output.numerals(array, precision)  # noqa: E731
            return sink(self.form, stream, numerals, precision is None)
        except BaseException:
            self.__exit__(BaseException)
            raise

    def __exit__(self, kind: Any, *rest: object) -> None:
        if self.file is not None:
            self.file.close(keep=kind is None)


class _Progress:
    """A bar on standard error, if somebody looks and it takes long."""

    AFTER = 2.0  # seconds

    def __init__(self, stream: Stream) -> None:
        from gradcli.commands.terminal import is_terminal

        self.stream, self.rows = stream, 0
        self.shown = sys.stderr is not None and is_terminal(sys.stderr)
        self.bar: Any = None

    def __enter__(self) -> _Progress:
        from time import monotonic

        self.begun = monotonic()
        return self

    def advance(self, rows: int) -> None:
        """So many rows more are done."""
        self.rows += rows
        if not self.shown:
            return
        from time import monotonic

        if self.bar is None:
            if monotonic() - self.begun < self.AFTER:
                return
            self._start()
        rate = self.rows / max(monotonic() - self.begun, 1e-9)
        shown = {"rows": f"{self.rows:,} rows", "rate": f"{rate:,.0f}/s"}
        self.bar.update(self.task, completed=self.stream.done, **shown)

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = [TextColumn("{task.fields[rows]}"), TextColumn("{task.fields[rate]}")]
        if self.stream.size:
            columns += [BarColumn(), TimeRemainingColumn()]  # type: ignore[list-item]
        self.bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self.task = self.bar.add_task("", total=self.stream.size, rows="", rate="")
        interrupts.drawing = "\x1b[?25h"  # the cursor, which rich hides
        self.bar.start()

    def __exit__(self, *error: object) -> None:
        if self.bar is not None:
            self.bar.stop()
            interrupts.drawing = ""
