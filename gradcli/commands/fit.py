"""`gradcli fit EQUATION TABLE`: the parameters that bring an equation closest to the rows of a table."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

from gradcli.commands import output
from gradcli.commands.answers import rows_wanted
from gradcli.commands.command_errors import quoted, reading_table, usage
from gradcli.commands.data_rows import BY, MORE, WHERE, DataRows, several
from gradcli.commands.declarations import (
    BY_ROWS,
    CLUSTER,
    EXPRESSION,
    NATIVE,
    RELATED,
    TYPESET,
    UNIT,
    Argument,
    Option,
    Options,
    declare,
)
from gradcli.commands.item_lists import BOUNDS, named, read_bounds
from gradcli.commands.large_columns import RowsTable, large, runner
from gradcli.commands.measured_side import (
    measured_column,
    refuse_unread_side,
    side_texts,
    sigma_texts,
    start_option,
)
from gradcli.commands.pictures import AXES, PLOT, PLOTTED, Canvas, View
from gradcli.commands.progress import Bar
from gradcli.commands.question import Answer, write
from gradcli.commands.request import Request
from gradcli.commands.request_evaluation import (
    files_of,
    held_data,
    read_value,
    read_variable,
    set_up,
)
from gradcli.commands.uncertainty import to_plain, with_uncertainty
from gradcli.commands.units import behind, check, unit_for, units_of
from gradcli.engine.system.visible import visible

if TYPE_CHECKING:
    from gradcli.columns.optimize.equation_rows import Batch, EquationRows
    from gradcli.columns.optimize.least_squares import Fit
    from gradcli.columns.optimize.stated_uncertainties import Stated
    from gradcli.commands.compared_models import Compared
    from gradcli.commands.correlations import Relation
    from gradcli.commands.plots.pictures import Curves
    from gradcli.engine.system.process import AnyContext
    from gradcli.language.program import Program


@declare(
    "fit",
    *EXPRESSION,
    Argument("TABLE"),
    MORE,
    WHERE,
    BY,
    Option("--fix b=VALUE", "Hold a parameter at this value.", many=True),
    BOUNDS,
    Option(
        "--sigma [x=]EXPR",
        "Uncertainty of the measured side, or of x: a column, 0.1, 3%, sqrt(y), poisson (of counts).",
        many=True,
    ),
    Option(
        "--relative-sigma",
        "Only ratios of --sigma count: scale errors by sqrt(chi2/dof), as without --sigma.",
    ),
    Option(
        "--likelihood poisson",
        "Fit counts, also few and none, by Poisson's likelihood, without --sigma.",
        choices=("poisson",),
    ),
    *RELATED,
    Option(
        "--robust LOSS",
        "Give outliers less weight: soft_l1, huber or arctan.",
        choices=("soft_l1", "huber", "arctan"),
    ),
    Option(
        "--columns 'x=x1,x2'",
        "Rename columns: x1 is the variable x; several make a vector. Also x=x1,y=y1.",
        many=True,
    ),
    Option("--starts N", "Fit from N starts, and take the best minimum.", least=1, most=100_000),
    Option("--budget", "Print how much each source adds to a parameter's variance."),
    Option("--aic", "Print AIC and BIC too: of models of the same data the least is best."),
    Option("--compare EQUATION", "Fit a second model to the same rows, and say which is better."),
    Option("--max-iterations N", "Stop after N iterations.", least=1, default=5000),
    *(TYPESET, UNIT),
    Option("-o FILE", "Write the table with two more columns: fitted, residual.", name="path"),
    Option(PLOT, f"Draw data, curve and residuals {PLOTTED}"),
    Option(
        "--band LEVEL", "Confidence of the band about the curve, as 0.95; 0 for none.", type=float
    ),
    *AXES,
    *(NATIVE, BY_ROWS, *CLUSTER),
    examples=(
        'gradcli fit "y == b1*(1 - exp(-b2*x))" data.csv --b1 500 --b2 0.0001',
        'gradcli fit "T == 2*pi*sqrt(L/g)" pendulum.csv --g 10 --sigma sT --plot fit.png',
        'gradcli fit "log(n) == log(a) - t/tau" decay.csv --fix a=100 --bounds tau=0:inf --json',
    ),
    operands=2,
    open_variables=True,
    priors=True,
)
def command(ctx: AnyContext, request: Request, options: Options) -> None:
    """Fit the parameters of EXPR, an equation, to the rows of TABLE (- for stdin).

    The equation is that of one row. A variable with the name of a column is data; `row` counts the rows
    from 1, `index` from 0. The others are parameters: their options give the values to start from (1 if not
    given); one with an uncertainty (--B 30±2) is known beforehand, as one more measurement. Without --sigma
    the scatter of the data about the model tells the errors of the parameters.
    """
    table, path = options.table, options.path
    if table is None:
        raise usage("no table", hint="write gradcli fit EQUATION FILE, or - for standard input")
    canvas = view = None
    if options.band is not None and not 0 <= options.band < 1:
        raise usage(f"--band: {options.band:g} is not a confidence level", hint="as in --band 0.95")
    if options.plot is not None:
        view = View(options)
        canvas = Canvas(
            options.plot, request.style, "--plot",
            theme=options.theme, wide=options.width, high=options.height, written=request,
        )  # fmt: skip
    if path in output.STANDARD_OUTPUT:
        raise usage(
            "-o: the parameters go to standard output already", hint="name a file: -o FILE.csv"
        )
    set_up(ctx, request)
    tables = several(table, options.more)
    with reading_table(table):
        data = _rows(request, tables, options)
        asked = Asked(request, data, options)
        shares: Mapping[str, Any] = {}
        other: Compared | None = None
        if (large := asked.large(rows_wanted(options))) is not None:
            for option, why in _WHOLE_ONLY.items():
                if getattr(options, option):
                    raise _at_once(f"--{option}", why, rows_wanted(options))
            with runner(options) as runs:
                found = asked.by_passes(large, runs, options.max_iterations)
        else:
            asked.read()
            found, shares = asked.fitted(options)
            if options.compare is not None:
                other = _compared(request, data, options, found)
        if path is not None:
            asked.write(found, options)
        if canvas is not None and view is not None:
            canvas.draw(_picture(asked, found, view, options.band))
    report(request, asked, found, shares if options.budget else {}, options, other)


def _compared(request: Request, data: DataRows, options: Options, found: Fit) -> Compared:
    """The fit of --compare, beside that of the equation."""
    from gradcli.commands.compared_models import compared, options_of, request_of

    request = request_of(request, options.compare)
    options = options_of(options, request)
    asked = Asked(request, data, options)
    asked.read()
    return compared(request.source, found, asked.fitted(options)[0])


_SUMS = "by rows only sums over the rows are kept, and"
_WHOLE_ONLY = {
    "likelihood": f"{_SUMS} these are of squares",
    "robust": f"{_SUMS} it weighs each row by its residual",
    "budget": f"{_SUMS} it tells what each source shares in every row",
    "plot": f"{_SUMS} it draws the rows",
    "starts": "each start would read the whole table many times",
    "compare": "the second model reads the same rows",
}


def _at_once(option: str, why: str, by_rows: bool | None) -> Exception:
    said = "with --by-rows" if by_rows else "by rows, as this large table is read"
    hint = "--whole reads the table at once"
    if option == "--starts":
        hint += "; or fit its first rows with --starts, and start there: --a VALUE"
    return usage(f"{option} cannot be used {said}: {why}", hint=hint)


_LITTLE = 0.1  # a share of the data's variance that is hardly any
_UNLIKELY = 1e-3  # of a chi2, where the uncertainties are right


def _no_column_hint(names: list[str]) -> str:
    from gradcli.tables.columns import places

    if names == places(len(names)):
        return "its columns have no names: --names x,y gives them, --columns x=1 takes one"
    return f"its columns are {', '.join(names)}"


def _not_used(columns: list[str]) -> str:
    names = ", ".join(f"`{name}`" for name in columns[:8])
    return f"the column {names} is not used" if len(columns) == 1 else f"not used: {names}"


def _rows(request: Request, tables: list[str], options: Options) -> DataRows:
    return DataRows(request, tables, options.where, options.by, columns=options.columns)


class Asked:
    """What the command line asks for: which variables are columns, which parameters, and where they start."""

    def __init__(self, request: Request, data: DataRows, options: Options) -> None:
        from gradcli.columns.optimize.equation_rows import EquationRows
        from gradcli.commands.heading_words import note_functions
        from gradcli.commands.map import refuse_headings
        from gradcli.language.equations import sides
        from gradcli.language.index_names import index_names
        from gradcli.language.scope_checks import free_names

        sides(request.program)  # refuses what is no equation, before a word about its parameters
        self.request, self.data, self.table = request, data, data.table
        self.names = data.names
        refuse_headings(request, self.table, data.own)
        free = free_names(request.program)
        opened = request.open_variables
        bound = data.bound
        if wrong := next((n for n in bound if n not in free), None):
            raise usage(
                f"--columns: {wrong!r} is not a variable of the equation",
                hint="--sigma and --where take columns by their own names, as in "
                f"--sigma {quoted(data.names[bound[wrong].columns[0]])}",
                kind="name",
            )
        self.columns = {n: found.columns for n, found in bound.items()}
        self.vectors = {n for n, found in bound.items() if found.is_matrix}
        fixed = named(options.fix, "--fix", 1, [*request.names, *opened])
        for name in opened:
            if name in bound or name in fixed:
                continue
            if (column := data.column(name)) is not None:
                self.columns[name] = [column]
        if not self.columns:
            raise usage(
                f"no variable of the equation is a column of {self.table}",
                hint=_no_column_hint(self.names),
            )
        still_open = [n for n in opened if n not in self.columns and n not in fixed]
        self._refuse_unread(request.program, still_open, options)
        parameters = [n for n in free if n in request.names or n in opened]
        parameters = [n for n in parameters if n not in self.columns and n not in request.loaded]
        files = files_of(request)
        values = {n: read_variable(request, n, files) for n in request.names}
        values |= {n: read_value(text, f"--fix {n}=") for n, text in fixed.items()}
        still = [n for n in parameters if n in fixed or n in request.no_grad]
        if request.wrt is not None:
            still += [n for n in parameters if n not in request.wrt and n not in still]
        still += held_data(request, [n for n in parameters if n not in still])
        if unknown := next((n for n in still if n not in values), None):
            raise usage(
                f"no value for {unknown}, which is held constant", hint=f"add --{unknown} VALUE"
            )
        start = {n: values[n].detach().array if n in values else 1.0 for n in parameters}
        picked = index_names(request.program)
        self.indices = [n for n in picked if n in self.columns and n not in self.vectors]
        own = {
            n: [self.names[k] for k in c] for n, c in self.columns.items() if n not in self.vectors
        }
        others = [*self.vectors, *(n for n in start if getattr(start[n], "shape", ()))]
        note_functions([request.source], self.table, own, others)
        self._spread_over_sets(start, picked)
        constant = {n: start.pop(n) for n in still}
        self.measured = measured_column(request.program, self.columns)
        sigmas = sigma_texts(options.sigma, start, request.texts, self.measured)
        self.guessed = [n for n in start if n not in values]
        self.priors = self._priors(start)
        self.bounds = read_bounds(options.bounds, start)
        moved = self._move_inside(start)
        if ones := [n for n in self.guessed if n not in moved]:
            self._note_start(ones)
        if not start:
            name = next((n for n in ("a", "b", "c") if n not in free), "a")
            raise usage(
                "there is no parameter to fit: every name is a column, or fixed",
                hint=f"write a name for what is looked for, as in {request.source.strip()} + {name}",
            )
        self._note_readings(start)
        self.rows: EquationRows = EquationRows(request.source, request.loaded, start, constant)
        self.rows.native = request.native
        self.sigma = self._sigma(sigmas)
        self.spreads: dict[str, Any] = {}
        self.uncertain_cells: set[int] = set()  # the columns whose cells have an uncertainty
        self._relate(options)

    def _spread_over_sets(self, start: dict[str, Any], picked: Mapping[str, set[str]]) -> None:
        """Give a parameter with a column as index, as b in `b[set]`, an element for each of its numbers."""
        import numpy as np

        from gradcli.columns.optimize.data_sets import spread_over

        for name in self.indices:
            if any(p in start and np.shape(start[p]) == () for p in picked[name]):
                place = self.columns[name][0]
                spread_over(
                    start, picked, name, self.data.read([place], tells=False)[place].numbers
                )

    def _priors(self, start: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
        """(value, uncertainty) of the parameters that are known beforehand, which is said."""
        found = {}
        for name, text in self.request.uncertainties.items():
            option = self.request.options[name].rstrip("=")
            if name not in start:
                raise usage(
                    f"{option}: {name} is no parameter, and its uncertainty counts for nothing",
                    hint=f"write {option} {self.request.texts[name]}",
                )
            found[name] = start[name], read_value(text, f"{option}±").detach().array
        if found:
            said = ", ".join(
                f"{n} = {self.request.texts[n]}±{self.request.uncertainties[n]}" for n in found
            )
            output.note(
                f"{said}: known beforehand, and counted in chi2 and dof like a measurement; "
                f"--{next(iter(found))} VALUE alone is a start"
            )
        return found

    def _move_inside(self, start: dict[str, Any]) -> list[str]:
        """Let parameters that nobody gave a start begin within their bounds, and say so; which these are."""
        import numpy as np

        moved = {}
        for name in self.guessed:
            low, high = self.bounds.get(name, (-np.inf, np.inf))
            if low < high and not low <= 1 <= high:
                begin = (low + high) / 2
                if not np.isfinite(begin):  # one bound
                    begin = low + max(1.0, low / 10) if low > 1 else high - max(1.0, -high / 10)
                start[name] = np.full(np.shape(start[name]), begin)
                moved[name] = begin
        if moved:
            said = ", ".join(f"{name} at {begin:.6g}" for name, begin in moved.items())
            first = next(iter(moved))
            output.note(
                f"within its bounds starts {said}; to start elsewhere, add {start_option(first)}"
            )
        return [*moved]

    def _note_start(self, names: list[str]) -> None:
        """Say that parameters start at 1, which may be misspelt columns."""
        from gradcli.language.located_errors import suggest

        said = [
            f"{n} (or is it the column {close[0]}?)"
            if (close := suggest(n, self.names)) and n.rstrip("_0123456789") != close[0]  # x0 of x
            else n
            for n in names
        ]
        start = "starts" if len(names) == 1 else "start"
        option = start_option(names[0])
        output.note(f"{', '.join(said)} {start} at 1; to start elsewhere, add {option}")

    def _note_readings(self, start: Mapping[str, Any]) -> None:
        """Say which names are parameters though a column is called so, and that only one column is used."""
        for name in start:
            if name in self.names:
                output.note(
                    f"{name} is a parameter, as it is given a start, and not the column of that name"
                )
        used = {column for several in self.columns.values() for column in several}
        unused = [column for k, column in enumerate(self.names) if k not in used]
        if len(self.columns) == 1 and unused:
            only = self.names[next(iter(used))]
            output.note(
                f"{only} is the only column in the equation, so that a constant is fitted; "
                + _not_used(unused)
            )

    def _refuse_unread(self, program: Program, opened: list[str], options: Options) -> None:
        """Refuse an equation whose left side is no column, while a column is not used."""
        used = {self.names[k] for several in self.columns.values() for k in several}
        used.update(re.findall(r"[^\W\d]\w*", " ".join(options.sigma)))
        unused = [n for n in self.data.own if n not in used]
        bounded = {*re.findall(r"[^\W\d]\w*", " ".join(options.bounds))}
        opened = [n for n in opened if n not in bounded]
        refuse_unread_side(program, self.columns, opened, self.table, self.names, unused)

    def _sigma(self, items: Iterable[tuple[str | None, str]]) -> dict[str | None, Stated]:
        """--sigma by column; None is the response."""
        found: dict[str | None, Stated] = {}
        left = side_texts(self.request.program)[0]
        inside = next((n for n in self._single if re.search(rf"\b{n}\b", left)), "COLUMN")
        counted = f"say which column has the counts: --sigma {inside}=poisson"
        for name, text in items:
            if name is not None and name not in self.columns:
                raise usage(
                    f"--sigma: {name!r} is not a column of the equation",
                    hint=f"there are {', '.join(self.columns)}",
                    kind="name",
                )
            found[name] = self.data.stated(
                text,
                of=self.measured if name is None else name,
                named=self._single,
                counted=counted,
            )
        return found

    @property
    def _single(self) -> dict[str, int]:
        """The columns of the variables that are one each, which --columns may have renamed."""
        return {n: c[0] for n, c in self.columns.items() if len(c) == 1}

    def _relate(self, options: Options) -> None:
        """Take in what is said of correlated uncertainties: of two columns, or of all rows of one."""
        from gradcli.commands.correlations import relations

        self.correlations: dict[tuple[str, ...], Any] = {}
        self.relations = relations(options, self.columns)
        if self.relations and options.budget:
            raise usage(
                f"--budget and --{self.relations[0].kind} cannot be used together",
                hint="shares of what is correlated are not told apart",
            )
        self.between = {
            one: self.data.stated(one.text, one.option, named=self._single)
            for one in self.relations
            if len(one.names) == 2
        }

    def _read_relations(self, read: Mapping[int, Any]) -> None:
        """The correlations of what is related, once the uncertainties are known. read: columns by place."""
        from gradcli.commands import correlations

        for one in self.relations:
            for name in one.names:
                if name in self.vectors:
                    raise usage(f"{one.option}: {name} is a vector of columns")
            if one in self.between:
                found = self.between[one].of(read, self.count, partial(self._value_of, None), True)
                if one.kind == "covariance":
                    found = found / prod(self._spread_of(n, one) for n in one.names)
                correlations.check_range(one.option, found)
                self.correlations[one.names] = found
                continue
            array = read_value(one.text, f"{one.option}=").detach().array
            if len(one.names) > 1:
                if one.kind == "covariance":
                    raise usage(
                        f"{one.option}: the matrix of a row is one of correlations",
                        hint=f"write --correlation {','.join(one.names)}=MATRIX",
                    )
                blocks = correlations.as_correlations(one, array, dict.fromkeys(one.names, ()))
                self.correlations |= {pair: block[0] for pair, block in blocks.items()}
                continue
            (name,) = one.names
            if array.shape != (self.count, self.count):
                raise usage(
                    f"{one.option}: it has shape {array.shape}",
                    hint=f"give a matrix of {self.count} rows and columns, one for each row of the data",
                )
            correlations.checked_matrix(one.option, array)
            if one.kind == "covariance":
                if {name, ""} & self.spreads.keys():
                    raise usage(
                        f"{one.option}: {name} has an uncertainty already",
                        hint="leave out --sigma: the matrix has its square on the diagonal",
                    )
                self.spreads[name] = array.diagonal() ** 0.5
                array = correlations.of_covariance(array)
            self.correlations[one.names] = array

    def _spread_of(self, name: str, one: Relation) -> Any:
        """The uncertainties of a column that is related to another; the response's where it has no own."""
        found = self.spreads.get(name, self.spreads.get(""))
        if found is None:
            raise usage(
                f"{one.option}: {name} has no uncertainty", hint=f"add --sigma {name}=VALUE"
            )
        return found

    # -- in memory -----------------------------------------------------------------------------------
    def read(self) -> None:
        """The columns of all rows."""
        from gradcli.columns.optimize.equation_rows import gathered

        wanted = [i for found in self.columns.values() for i in found]
        stated = [*self.sigma.values(), *self.between.values()]
        wanted += [i for one in stated for i in one.places]
        cells = self.data.read(wanted)
        read = self.data.numbers(cells)
        self.batch: Batch = gathered(read, self.columns, self.vectors, self.indices)
        for name, places_of in self.columns.items():
            spread = cells[places_of[0]].spread
            if spread is not None and name not in self.vectors:
                self.spreads[name] = spread
                self.uncertain_cells.update(places_of)
        for of, sigma in self.sigma.items():
            if of in self.spreads:
                raise usage(f"--sigma: {of} has an uncertainty in its cells already")
            self.spreads[of or ""] = sigma.of(read, self.count, partial(self._value_of, of))
        self._read_relations(read)

    def _value_of(self, name: str | None) -> Any:
        """The values that `3%` is a percentage of: a column's, or the response's."""
        if name is not None:
            return self.batch[name]
        if self.count:
            self.rows.look({n: a[0] for n, a in self.batch.items()})
        if not self.rows.split:
            raise usage(
                "--sigma: a percentage of which value? Both sides have parameters",
                hint=f"say the column, as in --sigma {next(iter(self.columns))}=3%",
            )
        return self.rows.response(self.batch)

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(next(iter(self.batch.values())))

    def fitted(self, options: Options) -> tuple[Fit, Mapping[str, Any]]:
        """The fit, and what every source of uncertainty shares in it."""
        from gradcli.columns.optimize.fits import fit_rows

        with Bar(None, "evaluations") as bar:
            return fit_rows(
                self.rows, self.batch, self.spreads,
                bounds=self.bounds, loss=options.robust or "linear", limit=options.max_iterations,
                many=options.starts or 0, told=bar.advance, correlations=self.correlations,
                guessed=self.guessed, relative=options.relative_sigma,
                likelihood=options.likelihood or "", priors=self.priors,
            )  # fmt: skip

    # -- in passes -----------------------------------------------------------------------------------
    def large(self, by_rows: bool | None) -> RowsTable | None:
        """The table that is to be read in passes, if it is one."""
        from gradcli.tables.columns import quoted as heading
        from gradcli.tables.source import STANDARD_INPUT

        if not self.data.is_one_table:
            if by_rows:
                raise usage("several data sets are read at once", hint="leave out --by-rows")
            return None
        if by_rows is False or (self.table in STANDARD_INPUT and not by_rows):
            return None
        wanted = {n: ",".join(heading(self.names[i]) for i in c) for n, c in self.columns.items()}
        counts = self.data.where is None
        return large(self.table, wanted, self.request, bool(by_rows), counts)

    def by_passes(self, table: RowsTable, runs: Any, limit: int) -> Fit:
        """The fit by the normal equations of all rows."""
        from gradcli.columns.optimize.equation_rows import PassSums
        from gradcli.columns.optimize.fits import fit_in_passes
        from gradcli.tables.table_errors import left_out_words

        for name in self.priors:
            raise _at_once(f"--{name} with an uncertainty", f"{_SUMS} it is none of these", True)
        for one in self.relations:
            raise _at_once(one.option, f"{_SUMS} rows are weighed one by one", True)
        for name in filter(None, self.sigma):
            why = "uncertainties of inputs are iterated row by row"
            raise _at_once(f"--sigma {name}=…", why, True)
        if self.request.loaded:
            raise usage("--load cannot be used with --by-rows", hint="leave out one of them")
        sums = PassSums(
            self.rows, self.names, self.columns, self.vectors, self.sigma.get(None),
            self.request.missing, self.data.where, self.indices,
        )  # fmt: skip
        if self.request.missing == "skip" and (lost := sum(map(sums.left_out, table.parts.parts))):
            output.note(left_out_words(lost))
        with Bar(None) as bar:
            return fit_in_passes(sums, table.parts.parts, runs, self.bounds, limit, bar.advance)

    # -- what is written -----------------------------------------------------------------------------
    def write(self, found: Fit, options: Options) -> None:
        """The table's columns, and `fitted` and `residual` behind them."""
        import numpy as np

        from gradcli.columns.streaming.row_job import RowJob
        from gradcli.commands.map import by_workers, form_of, opened_sink, say
        from gradcli.tables.columns import own
        from gradcli.tables.parts import Parts
        from gradcli.tables.record_batches import Stream

        rows, request = self.rows, self.request
        shared = {**rows.fixed, **rows.shaped(found.values)}
        keep = own(self.data.own, len(self.data.own))
        job = RowJob(
            rows.both, {}, self.names, self.columns, self.vectors, shared, (), keep,
            missing=request.missing,
        )  # fmt: skip
        for k, name in enumerate(("fitted", "residual")):
            for at in np.ndindex(rows.shape):
                index = f"[{','.join(map(str, at))}]" if at else ""
                job.renamed[f"value_{k}{index}"] = name + index
        job.indices = self.indices
        job.spread = self.uncertain_cells
        job.where = self.data.where
        form = form_of(request, None, options.path)
        if options.workers is not None or options.cluster is not None:
            if not self.data.is_one_table:
                raise usage(
                    "several data sets are written by one process", hint="leave out --workers"
                )
            parts = Parts(self.table, request.tables)
            say(by_workers(job, parts.parts, form, options), "stop", request.source)
            return
        if self.tables:  # whose rows were chosen
            job.where = None
        again = self.tables or Stream(self.table, sys.stdin, request.tables)
        with opened_sink(form, options.path, request) as sink:
            for batch in again:
                sink.write(job.run(batch, form))
            sink.close()

    @property
    def tables(self) -> Any:
        """The tables that were read at once; empty where there were passes."""
        return self.data.read_tables


def _picture(asked: Asked, found: Fit, view: View, level: float | None) -> Curves:
    import numpy as np

    from gradcli.columns.optimize.fits import FINE, drawn
    from gradcli.commands.plots.curves import limits
    from gradcli.commands.plots.pictures import Curves, Line

    factor = _factor(level, found)
    low, high = view.limits["x"]

    def fine(x: Any) -> Any:
        begin, end = (float(e) if said is None else said
                      for e, said in zip((x.min(), x.max()), (low, high), strict=True))  # fmt: skip
        if view.log("x"):
            begin = begin if begin > 0 else float(x[x > 0].min(initial=np.inf))
            return np.geomspace(begin, end, FINE) if 0 < begin < end else np.linspace(begin, end, 2)
        return np.linspace(begin, end, FINE)

    name, made = drawn(asked.rows, found, asked.batch, asked.spreads, fine, asked.data.sets)
    response = asked.rows.response_text()
    headings = [asked.data.heading(one.label, asked.columns) for one in made]
    single = len(made) == 1
    lines, residuals = [], []
    for k, one in enumerate(made):
        colour = 0 if single else k
        x, y, spread = one.curve
        band = None
        if spread is not None and factor and (spread > 0).any():
            band = y - factor * spread, y + factor * spread
        said = ("fit" if band is None else f"fit, {_level(level)} band") if single else ""
        lines.append(
            Line(one.x, one.observed, headings[k], points=True, bars=one.bars, colour=colour)
        )
        lines.append(Line(x, y, said, colour=1 if single else k, band=band))
        residuals.append(
            Line(one.x, one.residual, "residual", points=True, bars=one.bars, colour=colour)
        )
    curves = [(line.x, line.y) for line in lines if not line.points]
    points = np.concatenate([line.ends() for line in lines if line.points])
    x = np.concatenate([one.x for one in made])
    view.note_hidden("x", x)
    view.note_hidden("y", np.concatenate([one.observed for one in made]))
    across = view.axis(
        "x", limits([], x, view.log("x")), asked.data.heading(name, asked.columns),
        asked.data.dates(name, asked.columns, x),
    )  # fmt: skip
    up = view.axis("y", limits(curves, points, view.log("y")), headings[0] if single else response)
    return Curves(lines, across, up, residuals, view.title, _remark(found))


def _factor(level: float | None, found: Fit) -> float:
    """How many standard uncertainties a band of that confidence goes to each side."""
    if level is None:
        return 1.0
    from gradcli.columns.optimize.least_squares import scipy

    if found.absolute or found.dof <= 0:
        return float(scipy("special").ndtri((1 + level) / 2))
    return float(scipy("special").stdtrit(found.dof, (1 + level) / 2))


def _level(level: float | None) -> str:
    return "±1σ" if level is None else f"{100 * level:g}%"


def _remark(found: Fit) -> str:
    """How good the fit is, for the legend of a picture."""
    if found.probability != found.probability:
        return ""
    symbol = "C" if found.likelihood else "χ²"
    chi2 = f"{found.chi2:.0f}" if 1000 <= found.chi2 < 1e6 else f"{found.chi2:.3g}"
    return f"{symbol}/dof = {chi2}/{found.dof}, p = {found.probability:.2g}"


def report(
    request: Request,
    asked: Asked,
    found: Fit,
    shares: Mapping[str, Any],
    options: Options,
    other: Compared | None = None,
) -> None:
    """Print the fit. Raises LanguageError where it is none."""
    rows = asked.rows
    from gradcli.columns.optimize.fits import to_json
    from gradcli.commands import compared_models, correlations
    from gradcli.language.located_errors import LanguageError

    labels, typeset = rows.labels, request.style.typeset
    units = units_of(options.unit)
    check(units, labels)
    units = {n: unit for n in labels if (unit := unit_for(n, units, len(labels) > 1))}
    related = correlations.of_covariance(found.covariance)
    wanted = {
        kind: found.covariance if kind == "covariance" else related
        for kind in correlations.asked_alone(options)
    }
    answer = Answer(
        request,
        []
        if typeset
        else _lines(
            request,
            labels,
            found,
            shares,
            wanted,
            _is_judged(found, options),
            options.aic or other is not None,
            units,
        ),
        lambda _: {
            **to_json(rows, found, shares),
            "correlation": correlations.to_json(labels, related),
            **({} if other is None else {"compared": compared_models.to_json(other)}),
        },
    )
    if other is not None and typeset is None:
        answer.results += compared_models.lines(other, found, request.style.form == "plain")
    if typeset is not None:
        from gradcli.commands.typeset_results import lines, number, value_text

        named = list(zip(labels, map(float, found.values), map(float, found.errors), strict=True))
        symbol = "C" if found.likelihood else r"\chi^2"
        more = rf"{symbol}/\mathrm{{dof}} &= {found.chi2:.4g}/{found.dof}"
        if _is_judged(found, options):
            more += rf",\quad p = {number(found.probability, 0.0, typeset, 2)}"
        rows_of = [more]
        if options.aic:
            rows_of.append(
                rf"\mathrm{{AIC}} &= {found.aic:.6g},\quad \mathrm{{BIC}} = {found.bic:.6g}"
            )
        for kind, matrix in wanted.items():
            digits = request.style.precision or 4
            rows_of.append(rf"\mathrm{{{kind}}} &= {value_text(matrix, typeset, digits)}")
        for source, share in shares.items():
            percents = ", ".join(rf"{100 * one:.1f}\,\%" for one in share)
            rows_of.append(rf"\text{{share of {source}}} &: {percents}")
        answer.lines = [visible(lines(named, rows_of, typeset, request.style.precision, units))]
    write(answer)
    if found.bounded:
        names = ", ".join(labels[k] for k in found.bounded)
        output.note(f"at a bound, and treated as fixed in the errors of the others: {names}")
    if found.begun is not None:
        lost = "starting at 1 ends at no minimum, or at a worse one"
        if not asked.guessed:
            lost = "no minimum was found from the given start"
        output.note(f"{lost}; this one was found from {_start_options(rows, found.begun)}")
    if found.search is not None:
        tried, here, following = found.search
        statistic = "cash" if found.likelihood else "chi2"
        more = (
            f"; the next minimum has {statistic} = {following:.6g}"
            if following == following
            else ""
        )
        output.note(f"{here} of {tried} starts end at this minimum{more}")
    if (share := found.explained) is not None and share < _LITTLE and found.converged:
        output.note(
            "the residuals are hardly smaller than the spread of the data: the model explains "
            f"{max(share, 0):.0%} of its variance"
            + "; --starts 50 looks for another minimum"
            * (found.search is None and not found.single)
        )
    if found.wandering is not None and not (share is not None and share < _LITTLE):
        runs, mean, curved = found.wandering
        output.note(
            f"the residuals are not random: their sign changes {runs - 1} times along the data, and by "
            f"chance about {mean - 1} times; the model lacks something"
            + ", or another minimum is lower: --starts 50 looks for it"
            * (curved and found.search is None)
        )
    if _is_judged(found, options) and found.probability < _UNLIKELY:
        output.note(
            f"p = {found.probability:.1g}: the residuals are larger than the uncertainties allow, or the "
            "model is wrong; the errors of the parameters come from the "
            + ("counts alone" if found.likelihood else "given uncertainties")
            + "; --starts 50 looks for another minimum"
            * (found.search is None and not found.single)
        )
    if found.dof == 0:
        output.note("as many parameters as rows: their errors are unknown")
    message = hint = None
    if found.undetermined:
        names = ", ".join(labels[k] for k in found.undetermined)
        message = f"the data do not determine {names}: other values fit equally well"
        hint = f"hold one fixed, as in --fix {labels[found.undetermined[0]]}=VALUE"
        if found.still:
            names = ", ".join(labels[k] for k in found.still)
            message = (
                f"at these values no residual depends on {names}: this is a plateau, not a fit"
            )
            hint = (
                f"start elsewhere, as in {start_option(labels[found.still[0]].partition('[')[0])}"
            )
    elif not found.converged:
        message = f"no minimum after {found.iterations} iterations: these are the last values"
        if found.receding:
            message += ", of parameters that run away while the residuals hardly fall"
        start = start_option(next(iter(rows.start)))
        hint = f"start elsewhere, as in {start}; see --max-iterations"
        if len(found.hardly) > 1:
            names = ", ".join(labels[k] for k in found.hardly)
            hint = (
                f"the data hardly tell {names} apart: hold one fixed, as in "
                f"--fix {labels[found.hardly[-1]]}={found.values[found.hardly[-1]]:.3g}"
            )
    if message is not None:
        raise LanguageError(message, kind="value", usage=False, hint=hint)


def _start_options(rows: EquationRows, begun: Any) -> str:
    """A start as it is typed."""

    def text(array: Any) -> str:
        if array.ndim > 1:
            return f"[{','.join(map(text, array))}]"
        return ",".join(f"{v:.6g}" for v in array.ravel().tolist())

    return " ".join(start_option(name, text(array)) for name, array in rows.shaped(begun).items())


def _is_judged(found: Fit, options: Options) -> bool:
    """Whether chi2 tells how good the fit is: not with outliers, which a robust one leaves out."""
    return found.probability == found.probability and not options.robust


# Of a p-value, up to which it says what of the residuals beside their uncertainties.
_JUDGED = (
    (_UNLIKELY, "a bad fit: the residuals are larger than their uncertainties allow"),
    (0.05, "a doubtful fit: the residuals are rather large for their uncertainties"),
    (0.95, "a good fit: the residuals are as large as their uncertainties say"),
    (0.999, "a good fit: the residuals are rather small for their uncertainties"),
    (1.0, "the residuals are smaller than their uncertainties say, which may be too large"),
)


def _judged(probability: float) -> str:
    return next((text for most, text in _JUDGED if probability <= most), "unknown")


def _lines(
    request: Request,
    labels: list[str],
    found: Fit,
    shares: Mapping[str, Any],
    matrices: Mapping[str, Any],
    judged: bool,
    criteria: bool,
    units: Mapping[str | None, str],
) -> list[tuple[str | None, Any]]:
    from gradcli.columns.optimize.fits import strong_correlations
    from gradcli.commands.correlations import matrix_lines

    style = request.style
    plain, precision = style.form == "plain", style.precision
    made: list[tuple[str | None, Any]] = []

    def say(name: str, number: float, digits: int = 6, more: str = "") -> None:
        """A number that --precision does not shorten: that is of errors."""
        text = repr(number) if plain else f"{number:.{max(digits, precision or 0)}g}{more}"
        made.append((name, text))

    for k, label in enumerate(labels):
        value, error = float(found.values[k]), float(found.errors[k])
        if error > 0:
            text = to_plain(value, error) if plain else with_uncertainty(value, error, precision)
            made.append(
                (label, text if plain or label not in units else behind(text, units[label]))
            )
        elif k in found.bounded and not plain:
            made.append((label, f"{value:.10g} (at its bound)"))
        else:
            made.append((label, value))
        for source, share in shares.items():
            made.append((f"{label}.share.{source}", share[k] if plain else f"{share[k]:.1%}"))
    made.append(("dof", found.dof))
    if found.likelihood:
        say("cash", found.chi2)
        if judged:
            say("cash_expected", found.expected[0], 3, f" ± {found.expected[1]:.2g}")
    else:
        say("chi2", found.chi2)
        if found.dof > 0:
            say("residual_deviation", found.deviation)
        if judged:
            say("chi2_per_dof", found.chi2 / found.dof, 4)
    if judged:
        say("p_value", found.probability, 4, f" ({_judged(found.probability)})")
    if "correlation" not in matrices:
        for one, other, related in strong_correlations(labels, found):
            say(f"correlation.{one}.{other}", related, 4)
    if criteria:
        say("aic", found.aic)
        say("bic", found.bic)
    made.append(("iterations", found.iterations))
    for kind, matrix in matrices.items():
        made += matrix_lines(kind, labels, matrix, style)
    return made
