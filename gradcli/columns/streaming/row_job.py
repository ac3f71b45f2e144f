"""The job of `gradcli map`: an expression of one row over the batches of a table.

It decides what is read, what is written and which rows are bad. It knows nothing of the command line, so
that other processes can do parts of it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.columns.streaming import uncertainty_law
from gradcli.columns.streaming.computed_columns import ComputedColumn, is_formula, words_of
from gradcli.columns.streaming.item_rows import ItemRows
from gradcli.columns.streaming.mapped_program import (
    Results,
    Rows,
    derivative,
    direction,
    elements,
    jvp,
)
from gradcli.columns.streaming.row_formulas import RowFormula, Share, whole_numbers
from gradcli.engine.core import errors, random
from gradcli.engine.system import dtypes
from gradcli.language import parse
from gradcli.language.located_errors import LanguageError, error_at
from gradcli.language.option_values import as_tensor, table_error
from gradcli.tables import TableError
from gradcli.tables.delimited import is_missing, is_number
from gradcli.tables.named_columns import Cells, SelectedTable, side_by_side, with_nan
from gradcli.tables.table_errors import MISSING_HINT, other_columns
from gradcli.tables.times import is_time

if TYPE_CHECKING:
    from gradcli.columns.streaming.conditions import Condition
    from gradcli.columns.streaming.nonlinear_spread import Spreads
    from gradcli.tables import Table
    from gradcli.tables.writing import Column

Path = tuple[str | int, ...]
_ELEMENT = re.compile(
    r"(?:_[0-9]+|\[[0-9, ]+\])*"
)  # what stands behind the name of an array's elements
_INTEGER = re.compile(r"\s*(?:0|-?[1-9][0-9]{0,300})\s*")
_LABEL = re.compile(r"\s*[-+]?0[0-9]+\s*")  # 007 is a code, not a number
_EXACT = 1 << 53  # the integers up to it are floats
TYPED = ("jsonl", "parquet", "feather", "npy")  # formats in which a column of numbers is no text


class Tally:
    """Counts of unusual rows, reported at the end.

    left_out: rows left out because a number is missing. bad: rows that cannot be read or computed.
    first_bad: the first of these, in words. alone: why rows ran one by one. kinked: rows that lie on a kink
    or a jump; kink: the operation that makes the first, and its place in the source. not_finite: rows of
    numbers that give NaN or infinity; first_not_finite: the first of these, in words. bent: rows whose
    uncertainty is by the second order; sampled: those by draws; draws: the fewest of a row; lost: rows of
    which some draws have no value.
    """

    __slots__ = (
        *("alone", "bad", "first_bad", "first_not_finite"),
        *("kink", "kinked", "left_out", "not_finite"),
        *("bent", "sampled", "draws", "lost"),
    )

    def __init__(self) -> None:
        self.left_out = self.bad = self.kinked = self.not_finite = 0
        self.bent = self.sampled = self.draws = self.lost = 0
        self.first_not_finite: str | None = None
        self.kink: tuple[str, tuple[int, int] | None] | None = None
        self.first_bad: str | None = None
        self.alone: str | None = None

    def drawn(self, found: Spreads | Tally) -> None:
        """Add rows whose uncertainty is not the first order's."""
        if isinstance(found, Tally):
            bent, sampled, lost = found.bent, found.sampled, found.lost
        else:
            bent, sampled = int(found.second.sum()), int(found.sampled.sum())
            lost = int((found.lost > 0).sum())
        self.bent += bent
        if sampled:
            self.draws = min(found.draws, self.draws or found.draws)
        self.sampled += sampled
        self.lost += lost

    def add(self, other: Tally) -> None:
        """Add the counts of another tally."""
        self.left_out += other.left_out
        self.bad += other.bad
        self.first_bad = self.first_bad or other.first_bad
        self.alone = self.alone or other.alone
        self.not_finite += other.not_finite
        self.first_not_finite = self.first_not_finite or other.first_not_finite
        self.kinked += other.kinked
        self.drawn(other)
        self.kink = self.kink or other.kink


class _Reading:
    """The columns of a batch that a job reads, each once.

    bad: what is wrong with a row. skipped: the rows that lack a number, where those are left out.
    """

    def __init__(self, job: RowJob, table: Table) -> None:
        self.job, self.table = job, table
        self.bad: dict[int, Exception] = dict(table.bad)
        self.skipped = np.zeros(table.rows, bool)
        self.columns: dict[int, Cells] = {}

    def cells(self, index: int) -> Cells:
        """A column."""
        if index not in self.columns:
            self.columns[index] = self.job._readable(self.table, index, self.bad, self.skipped)
        return self.columns[index]

    def numbers(self, index: int) -> Any:
        """Its numbers."""
        return self.cells(index).numbers


class RowJob:
    """What is computed for each row, and what is written.

    source: the program's text, or a function of tensors; loaded: names that it may read besides. names: of
    the table's columns. columns: the variables that are columns, each with which; vectors: those of them
    that are vectors of several. shared: the arrays that are the same for all rows. wrt: what to
    differentiate by. keep: the columns that are written too. missing, bad_rows: what becomes of rows that
    lack a number, or are bad.
    """

    def __init__(
        self,
        source: str | Callable[..., Any],
        loaded: Mapping[str, Any],
        names: Sequence[str],
        columns: Mapping[str, list[int]],
        vectors: set[str],
        shared: Mapping[str, Any],
        wrt: Sequence[str],
        keep: Sequence[int],
        *,
        missing: str = "error",
        bad_rows: str = "stop",
        detect_anomaly: bool = False,
        native: bool = False,
    ) -> None:
        self.source, self.loaded, self.names = source, dict(loaded), list(names)
        self.columns, self.vectors = dict(columns), vectors
        self.shared, self.wrt, self.keep = dict(shared), list(wrt), list(keep)
        self.missing, self.bad_rows, self.detect_anomaly = missing, bad_rows, detect_anomaly
        self.native = native
        self.dtype = dtypes.get_default_dtype().name
        self.kinds: dict[int, str] = {}  # of columns that were text, by the first batch
        self.narrowed = False  # `names` are not all that a table may have
        self.keeps_dtypes = False  # columns of floats are what they are, not the default dtype
        self.order = 1
        self.directions: dict[str, list[int] | Any] = {}
        self.errors: dict[
            str, Any
        ] = {}  # a column's place, an array, a share, a formula; None: what its own cells have
        self.spread: set[int] = set()  # the columns of variables whose cells have uncertainties
        self.covariances: dict[tuple[str, str], Any] = {}
        self.correlated: set[tuple[str, str]] = set()  # pairs whose numbers above are correlations
        self.budget = False
        self.second: list[tuple[str, str]] = []  # pairs of numbers to differentiate by
        self.renamed: dict[str, str] = {}  # what columns are called where they are written
        self.formulas: list[tuple[str, str]] = []  # columns made of others: their names and texts
        self.asked: dict[str, int] = {}  # the table's columns that the formulas name
        self.where: Condition | None = None  # of the rows that are computed
        self.flags: dict[str, Condition] = {}  # variables that are true or false in a row
        self.typed: str | None = None  # the source with the texts that `flags` compare
        self.most: int | None = None  # rows of a batch that are wanted at most
        self.indices: list[str] = []  # variables that count elements: k of `b[k]`
        self.hidden: list[str] = []  # differentiated by for the uncertainty alone
        self.items: list[str] = []  # of a tuple that is differentiated, what its items are called
        self.solved: str | None = None  # the variable whose root the value is
        self._begin()

    def _begin(self) -> None:
        self.rows: Any = None  # `Rows`, or who computes what is no value of the expression
        self.paths: dict[str, Path] = {}
        self.further: dict[str, Rows] | None = None  # the columns of further derivatives
        self.moved: Any = None  # the values where the inputs are moved by their uncertainties
        self.suffixes: list[str] | None = None
        self.computed: list[ComputedColumn] | None = None
        self.counted = Tally()

    def __getstate__(self) -> dict[str, Any]:
        running = ("rows", "paths", "further", "moved", "suffixes", "computed", "counted")
        return {name: value for name, value in self.__dict__.items() if name not in running}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()

    # -- a batch -------------------------------------------------------------------------------------
    def run(self, table: Table, form: str) -> list[Column]:
        """The columns that are written for a batch."""
        if table.names != self.names:
            self._follow(table)
        left_out = 0
        if self.where is not None:
            self.settle(table, form)  # by all rows, some of which may be left out
            table, left_out = self.where.chosen(table, self.missing)
        if self.most is not None and self.most < table.rows and not self._leaves_out:
            table = SelectedTable(table, np.arange(self.most), table.bad)
        read = _Reading(self, table)
        batch = {
            name: _stacked([read.numbers(i) for i in columns], self.shape(name))
            for name, columns in self.columns.items()
        }
        along = {
            name: _stacked([read.numbers(i) for i in columns], self.shape(name))
            for name, columns in self.directions.items()
            if isinstance(columns, list)
        }
        for name, condition in self.flags.items():
            batch[name], lacking, wrong = condition.truths(table, self.missing)
            read.skipped |= lacking
            for row, error in wrong.items():
                read.bad.setdefault(row, error)
        for items, signed in ((self.errors, False), (self.covariances, True)):
            for index in items.values():
                if isinstance(index, int):
                    _check(table, index, read.numbers(index), signed, read.bad)
        own = {heading: read.numbers(index) for heading, index in self.asked.items()}
        # A row that is bad is not also "left out": it is counted and reported once, as bad.
        bad, skipped = read.bad, read.skipped
        skipped[list(bad)] = False
        self._refuse(table, bad)
        there = ~skipped
        there[list(bad)] = False
        missing = left_out + int(skipped.sum())
        places = np.flatnonzero(there)
        batch = {n: a[there] for n, a in batch.items()}
        batch |= {n: whole_numbers(n, batch[n]) for n in self.indices if n in batch}
        before = random.snapshot()
        # The value and its further derivatives are runs of their own. Each of them starts from the same
        # random numbers, so that `x.grad2` is the derivative of the value that stands beside it
        # (`dropout(x)` drops alike).
        results = self._rows()(batch, len(places))
        along = {direction(n): a[there] for n, a in along.items()}
        further = self._further(results, batch, along, len(places), before)
        errors = {n: self._spread(n, e, read, there, batch) for n, e in self.errors.items()}
        covariances = {
            pair: self._spread(pair[0], e, read, there, batch)
            for pair, e in self.covariances.items()
        }
        for pair in self.correlated:
            one, other = (self._wide(errors[n], n) for n in pair)
            a, b = uncertainty_law.facing(one, other, covariances[pair])
            covariances[pair] = covariances[pair] * a * b
        columns = self._computed(results, further, batch, errors, covariances, len(places))
        made = [name for name, _ in columns]
        if self.formulas:
            own = {heading: array[there] for heading, array in own.items()}
            columns += self._by_formulas(own | batch, columns, len(places))
        bad.update({int(places[row]): error for row, error in results.refused.items()})
        if self.detect_anomaly:
            bad.update(_anomalies(columns, places, results))
        else:
            self._count_not_finite(table, columns, batch, places, results.refused)
        self._refuse(table, bad)
        self._count(table, bad, missing)
        # Three sets of rows: all rows of the batch; `there`, which are computed; `keep`, which are
        # written. With `--bad-rows nan` a bad row is written and not computed, so results have to be put
        # at their places.
        keep = ~skipped
        if self.bad_rows == "skip":
            keep[list(bad)] = False
        if bad or len(places) < len(keep):
            columns = [(name, self._placed(a, places, keep, bad)) for name, a in columns]
        return self._distinct(self._named(self._passed(table, keep, form), columns, made))

    @property
    def _leaves_out(self) -> bool:
        """Whether rows that are computed may not be written."""
        return self.bad_rows == "skip" or self.missing == "skip"

    def _spread(
        self, name: str, of: Any, read: _Reading, there: Any, batch: Mapping[str, Any]
    ) -> Any:
        """An uncertainty or covariance of a variable's rows. of: see `errors`. batch: its columns."""
        if of is None:
            cells = side_by_side([read.cells(i) for i in self.columns[name]])
            spread = cells.taken(there).spread
            return spread if spread is None or self.shape(name) else spread[:, 0]
        if isinstance(of, Share):
            return of.part * np.abs(batch[name])
        if isinstance(of, RowFormula):
            return self._of_formula(name, of, read, there)
        if not isinstance(of, int):
            return of
        return read.numbers(of)[there].reshape(-1, *[1] * len(self.shape(name)))

    def _of_formula(self, name: str, of: RowFormula, read: _Reading, there: Any) -> Any:
        """The uncertainties that a formula of columns gives; each is a number that is not negative."""
        columns = {n: read.numbers(i)[there] for n, i in of.columns.items()}
        found = of.values(columns, int(there.sum()))
        errors = np.asarray(found.get("", next(iter(found.values()), np.zeros(0))), np.float64)
        if len(found) > 1 or (errors < 0).any():
            what = "is negative in a row" if len(found) == 1 else "is no number in a row"
            raise LanguageError(
                f"--uncertainty {name}: {of.source} {what}", kind="value", usage=False
            )
        return errors.reshape(-1, *[1] * len(self.shape(name)))

    def _wide(self, error: Any, name: str) -> Any:
        """An uncertainty with an element for each of its variable's."""
        return np.broadcast_to(error, (len(error), *self.shape(name)))

    def _placed(self, array: Any, places: Any, keep: Any, bad: Mapping[int, Exception]) -> Any:
        """The numbers of the rows that were computed, at the places of these rows among all that are kept."""
        # An integer has no NaN. A column of integers becomes one of floats only where a bad row is kept.
        typed = array.dtype.kind in "fc" or self.bad_rows == "skip" or not bad
        kind = array.dtype if typed else np.dtype(np.float64)
        placed = np.full(len(keep), np.nan if kind.kind in "fc" else 0, kind)
        placed[places] = array
        if self.bad_rows == "nan" and bad:
            placed[list(bad)] = np.nan
        return placed[keep]

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
        made = {}
        for label, run in self._further_rows().items():
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

    def rename(self, name: str, old: str) -> None:
        """Call a column otherwise, or have one more whose formula `old` is. Raises LanguageError."""
        if old == self.solved:
            old = "value"
        if old not in self.names and is_formula(old):
            found = words_of(old)
            made = {*self.items, *(() if self.items else ("value",))}
            self.asked |= {
                heading: index
                for index, heading in enumerate(self.names)
                if heading in found and heading not in made and heading not in self.columns
            }
            self.formulas.append((name, old))
        elif old in self.renamed and self.solved is None:
            raise _usage(f"--as: {old} is called {self.renamed[old]!r} already")
        else:
            self.renamed[old] = name

    def _by_formulas(self, own: dict[str, Any], made: list[Column], rows: int) -> list[Column]:
        """The columns whose formulas are given. own: the variables, and columns of the table, by name."""
        known = own | dict(made)
        known |= {new: known[old] for old, new in self.renamed.items() if old in known}
        if self.computed is None:
            names = list(known)
            self.computed = []
            for name, text in self.formulas:
                self.computed.append(ComputedColumn(name, text, names, self.shared, self.names))
                names.append(name)
        found: list[Column] = []
        for column in self.computed:
            known[column.name] = column.values(known, rows)
            found.append((column.name, known[column.name]))
        return found

    def _named(self, passed: list[Column], columns: list[Column], names: list[str]) -> list[Column]:
        """The columns as they are to be called; a name means what was computed before the table's own.

        columns: what was computed; names: of those that are no formulas' columns.
        """
        made = columns[: len(names)]
        # `--as value=y` renames what was computed. If the table has a column `value` of its own, that
        # keeps its name.
        own = {name for name, _ in made}
        known = dict.fromkeys(name for name, _ in (*passed, *made))
        for name in self.renamed:
            if name not in known:
                new = self.renamed[name]
                hint = f"there are {', '.join(known)}"
                if new in known:
                    hint = f"the new name comes first: --as {name}={new}"
                raise _usage(f"--as: there is no column {name!r}", hint=hint)
        called = self.renamed.get
        self.paths = {called(n, n): path for n, path in self._places_in_json(made).items()}
        kept = [(name if name in own else called(name, name), array) for name, array in passed]
        result = [*kept, *((called(name, name), array) for name, array in made)]
        return [*result, *columns[len(names) :]]

    def _distinct(self, columns: list[Column]) -> list[Column]:
        """The columns, if no two have one name."""
        names = [name for name, _ in columns]
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            kept = ",".join(n for n in dict.fromkeys(self.names) if n and names.count(n) == 1)
            raise _usage(
                f"two columns would be called {twice!r}",
                hint=f"say which to keep of the table's: --keep-columns {kept or 'none'}",
            )
        return columns

    def _follow(self, table: Table) -> None:
        """Find the columns again by name: another file may have them in another order."""
        others = set(table.names) - set(self.names) if self.narrowed else set()
        if sorted(n for n in table.names if n not in others) != sorted(self.names):
            raise table_error(other_columns(table.name, table.names, self.names))
        self._renumber({i: table.names.index(name) for i, name in enumerate(self.names)})
        self.names = table.names

    def narrow(self) -> list[str]:
        """Restrict the job to the columns that it needs; return the names of those that are read."""
        # A worker reads its part with these columns alone, so places are counted anew among them: of a
        # table of 100 columns that needs the third and the tenth, these become 0 and 1.
        needed = sorted({*self._read(), *(i for found in self.columns.values() for i in found)})
        self._renumber({old: new for new, old in enumerate(needed)})
        self.names = [self.names[i] for i in needed]
        self.narrowed = True
        return list(self.names)

    def _renumber(self, moved: Mapping[int, int]) -> None:
        self.columns = {n: [moved[i] for i in found] for n, found in self.columns.items()}
        self.errors = {n: _moved(e, moved) for n, e in self.errors.items()}
        self.covariances = {
            n: moved[e] if isinstance(e, int) else e for n, e in self.covariances.items()
        }
        directions = dict(self.directions)
        for n, d in directions.items():
            directions[n] = [moved[i] for i in d] if isinstance(d, list) else d
        self.directions = directions
        self.keep = [moved[i] for i in self.keep]
        self.asked = {heading: moved[i] for heading, i in self.asked.items()}
        self.kinds = {moved[i]: kind for i, kind in self.kinds.items() if i in moved}
        self.spread = {moved[i] for i in self.spread}

    def _readable(self, table: Table, index: int, bad: dict[int, Exception], skipped: Any) -> Cells:
        """A column's numbers in the default dtype; what is wrong with it goes into `bad` and `skipped`."""
        found = table.readable(index)
        array, gone = found.numbers, found.gone
        for row, problem in found.problems.items():
            if not row and problem.hint is None:
                cell = str(table.cells(index)[row])
                problem.hint = (
                    f"a column of text is compared, as in `{table.names[index]} == {cell!r}`"
                )
            bad.setdefault(row, problem)
        # `1.2±0.1` in some cells of a column and `1.2` in others: a missing uncertainty is not 0. The
        # first rows decide what the column is, and what differs from them is a bad row.
        if (found.spread is not None) is not (index in self.spread):
            words = "this number has an uncertainty, and its column has none"
            if found.spread is None:
                words = "this number has no uncertainty, and others of its column have"
                found = found._replace(spread=np.zeros(table.rows))
            for row in range(table.rows) if gone is None else np.flatnonzero(~gone).tolist():
                bad.setdefault(row, table.wrong(row, index, words))
        if gone is not None:
            if self.missing == "skip":
                skipped |= gone
            elif self.missing == "error":
                for row in np.flatnonzero(gone).tolist():
                    problem = table.wrong(row, index, "a number is missing here", MISSING_HINT)
                    bad.setdefault(row, problem)
            array = with_nan(found)
        if self.keeps_dtypes:
            array = array if array.dtype.kind in "fc" else array.astype(np.float64)
        else:
            array = as_tensor(np.atleast_1d(array)).array
        return Cells(array, spread=found.spread)

    def _rows(self) -> Any:
        if self.rows is None:
            wrt = [*self.wrt, *self.hidden]
            how = {"stops": self.bad_rows == "stop", "native": self.native}
            if self.items:
                functions = [self._function(quiet=k > 0) for k in range(len(self.items))]
                self.rows = ItemRows(functions, self.items, self.shared, wrt, **how)
            else:
                self.rows = Rows(self._function(), self.shared, wrt, **how)
        return self.rows

    def _further_rows(self) -> dict[str, Rows]:
        if self.further is None:
            function = self._function(quiet=True)
            self.further = {}
            if self.directions:
                given = {direction(n): d for n, d in self.directions.items() if type(d) is not list}
                along = jvp(function, list(self.directions))
                shared = {**self.shared, **given}
                self.further["value.jvp"] = Rows(along, shared, (), self.bad_rows == "stop")
            for name in self.wrt:
                for k in range(2, self.order + 1):
                    by = derivative(function, [name] * k)
                    run = Rows(by, self.shared, (), self.bad_rows == "stop")
                    self.further[f"{name}.grad{k}"] = run
            for pair in self.second:
                run = Rows(derivative(function, pair), self.shared, (), self.bad_rows == "stop")
                self.further[_second(pair)] = run
        return self.further

    def _function(self, quiet: bool = False) -> Callable[..., Any]:
        """The expression of a row. quiet: it has printed before what it prints."""
        import io

        from gradcli import language
        from gradcli.transforms.tracing.numpy_tracer import Untraceable

        if not isinstance(self.source, str):
            return self.source
        program, loaded = parse(self.source), self.loaded
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
        batch: dict[str, Any],
        errors: dict[str, Any],
        covariances: dict[Any, Any],
        rows: int,
    ) -> list[Column]:
        """The value's columns, its uncertainty, the gradients. Impossible covariances refuse a row."""
        values = results.values
        if not values:
            values = {suffix: np.full(rows, np.nan) for suffix in self.suffixes or [""]}
        elif self.suffixes is None:
            self.suffixes = list(values)
        elif list(values) != self.suffixes:
            raise _usage(
                "the values of the rows are not alike", hint="some have more elements than others"
            )
        first = "" if self.items else "value"
        found: list[Column] = [(f"{first}{suffix}", array) for suffix, array in values.items()]
        found += further.get("value.jvp", [])
        by = {n: n for n in (*self.wrt, *self.hidden)}
        if self.items:
            by = {f"{item}.{name}": name for item in self.items for name in self.wrt}
        gradients = results.gradients | {  # none where all rows are refused
            label: np.zeros((rows, *self.shape(name)))
            for label, name in by.items()
            if label not in results.gradients
        }
        if errors:
            squares = uncertainty_law.squares(gradients, errors, covariances, rows)
            for row in np.flatnonzero(uncertainty_law.impossible(errors, covariances, squares)):
                results.refused.setdefault(int(row), uncertainty_law.too_strong())
            total = uncertainty_law.total(squares)
            beyond = None
            # Only a single number has a second order here. Of a vector each element would need passes of
            # its own.
            if list(results.values) == [""] and rows:
                beyond = self._beyond(batch, errors, covariances, total, np.asarray(values[""]))
            found.append(("value.uncertainty", total if beyond is None else beyond.errors))
            if self.budget:
                shapes = {n: self.shape(n) for n in errors}
                parts = uncertainty_law.with_second_order(squares, shapes, beyond)
                whole = sum(parts.values())
                with np.errstate(all="ignore"):
                    found += [
                        (f"{n}.share", np.where(whole > 0, s / whole, 0.0))
                        for n, s in parts.items()
                    ]
        for label, name in by.items():
            if name not in self.wrt:
                continue
            found += elements(f"{label}.grad", gradients[label]).items()
            for k in range(2, self.order + 1):
                found += further[f"{name}.grad{k}"]
        for pair in self.second:
            found += further[_second(pair)]
        return found

    def _places_in_json(self, made: list[Column]) -> dict[str, Path]:
        """For each column that was computed, where JSON has it: S.grad at wrt, S, grad."""
        heads: dict[str, Path] = {"value.uncertainty": ("uncertainty",)}
        heads |= {_second(pair): ("wrt", pair[0], "hessian", pair[1]) for pair in self.second}
        heads |= {f"{n}.share": ("budget", n, "share") for n in self.errors}
        for name in self.wrt:
            orders = ("grad", *(f"grad{k}" for k in range(2, self.order + 1)))
            heads |= {f"{name}.{order}": ("wrt", name, order) for order in orders}
            for item in self.items:
                heads[f"{item}.{name}.grad"] = ("wrt", name, "jacobian", item)
        heads |= {item: ("value", item) for item in self.items}
        parts = {} if self.items else {"value.jvp": ("jvp",), "value": ("value",)}
        found: dict[str, Path] = {}
        for name, _ in made:
            if name in heads:
                found[name] = heads[name]
                continue
            for head, path in {**heads, **parts}.items():
                # A column is an element of a known one if only indices follow its name: `x.grad[0]` is,
                # `x.grade` is not.
                rest = name.removeprefix(head)
                if rest != name and _ELEMENT.fullmatch(rest):
                    found[name] = (*path, *map(int, re.findall("[0-9]+", rest)))
                    break
        return found

    def _beyond(
        self,
        batch: dict[str, Any],
        errors: dict[str, Any],
        covariances: dict[Any, Any],
        total: Any,
        values: Any,
    ) -> Spreads | None:
        """The uncertainties, of another order where the first one does not tell them; None where unknown."""
        from gradcli.columns.streaming.nonlinear_spread import Inputs, spreads

        rows = len(total)
        shapes = {n: self.shape(n) for n in errors}
        given = {n: batch[n] if n in batch else np.asarray(self.shared[n]) for n in errors}

        def flat(arrays: Mapping[str, Any]) -> Any:
            wide = [np.broadcast_to(arrays[n], (rows, *shapes[n])) for n in errors]
            return np.concatenate([a.reshape(rows, -1).astype(np.float64).T for a in wide])

        if self.moved is None:
            fixed = {n: t for n, t in self.shared.items() if n not in errors}
            if self.solved is not None:
                self.moved = self.rows.near(fixed)
            else:
                self.moved = Rows(self._function(quiet=True), fixed, [])
        run_moved, held = self.moved, {n: a for n, a in batch.items() if n not in errors}
        if self.solved is not None:
            held[self.solved] = values

        def run(points: Any, index: Any) -> Any:
            made, start = {n: a if index is None else a[index] for n, a in held.items()}, 0
            for name, shape in shapes.items():
                size = int(np.prod(shape))
                made[name] = points[start : start + size].T.reshape(-1, *shape)
                start += size
            count = points.shape[1]
            found = run_moved(made, count)
            answer = np.array(found.values.get("", np.full(count, np.nan)), np.float64)
            answer[list(found.refused)] = np.nan
            return answer

        before = random.snapshot()
        try:
            with np.errstate(all="ignore"):
                related = uncertainty_law.matrices(shapes, covariances)
                inputs = Inputs(flat(given), flat(errors), related)
                found = spreads(run, inputs, total, values)
        except (RuntimeError, ArithmeticError, ValueError, TypeError, LanguageError):
            return None  # it cannot be run elsewhere: what is known is the first order
        finally:
            random.rewind(before)
        self.counted.drawn(found)
        return found

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a variable in one row."""
        if name in self.shared:
            return tuple(self.shared[name].shape)
        return (len(self.columns[name]),) if name in self.vectors else ()

    def _passed(self, table: Table, keep: Any, form: str) -> list[Column]:
        """The table's own columns: as they are written, or in a typed format as numbers where they are."""
        whole = bool(keep.all())
        found: list[Column] = []
        for index in self.keep:
            data = table.arrow(index) if form in ("parquet", "feather") else None
            if data is None and form in ("csv", "tsv"):
                data = table.passed(index)
            elif data is None:
                data = table.data(index)
                if form in TYPED and not isinstance(data, np.ndarray):
                    data = self._typed(table, index, data, form)
            found.append((table.names[index], data if whole else _chosen(data, keep)))
        return found

    def _typed(self, table: Table, index: int, data: Any, form: str) -> Any:
        """A column that is no array of numbers, for a format that knows of types.

        Text that was cut by separators is numbers if all of it in the first batch is: floats, but integers
        where they are too large for those. In JSON lines each cell has a type of its own, and integers stay
        what they are. Raises TableError for what later batches have that is not of the kind.
        """
        if not table.is_written(index):
            return table.cells(index)
        # In CSV `007` and `1.50` are passed on as they are written. A typed format has to choose, and the
        # first batch chooses for all, since a column has one type. What would lose digits (an integer
        # above 2**53 in a column of floats) is refused with its row and not rounded.
        self.settle(table, form, [index])
        kind = self.kinds[index]
        if kind == "text":
            return data if form in ("parquet", "feather") else table.cells(index)
        if (row := table.like(index, _LABEL)) is not None:
            cell = table.cells(index)[row]
            raise table.wrong(row, index, f"`{cell}` begins with 0, and {_KINDS[kind]}", _LEAVE)
        if form == "jsonl" or kind == "integer":
            return self._integers(table, index, table.cells(index), kind, form)
        array, gone, *_ = table.numbers(index)
        large = np.flatnonzero(np.abs(array) >= _EXACT).tolist()
        cells = table.cells(index) if large else []
        for row in large:
            if _INTEGER.fullmatch(cells[row]) and int(cells[row]) != int(array[row]):
                words = f"this integer is too large for a float, and {_KINDS[kind]}"
                raise table.wrong(row, index, words, _LEAVE)
        if gone is None or form == "npy":
            return array
        from gradcli.tables.arrow import from_numpy

        return from_numpy(array, gone)

    def look(self, table: Table) -> None:
        """Find out from the first rows which variables have uncertainties in their cells."""
        for name, found in self.columns.items():
            own = [i for i in found if table.readable(i).spread is not None]
            self.spread.update(own)
            if own:
                self.errors[name] = None

    def settle(self, table: Table, form: str, columns: Sequence[int] | None = None) -> None:
        """Fix the types of text columns by the first rows, so that all parts of a table agree."""
        for index in self.keep if columns is None else columns:
            if index not in self.kinds and form in TYPED and table.is_written(index):
                self.kinds[index] = _kind(table, index, table.cells(index), form)

    def _integers(
        self, table: Table, index: int, cells: Sequence[str], kind: str, form: str
    ) -> Any:
        """Cells some or all of which are integers, beyond what a float holds."""
        array, gone, *_ = table.numbers(index)
        if array.dtype.kind == "c":
            return array
        found: list[Any] = array.tolist()
        there = range(len(cells)) if gone is None else np.flatnonzero(~gone).tolist()
        whole = all(_INTEGER.fullmatch(cells[row]) for row in there)
        for row in there:
            kept = whole or kind == "integer" or abs(found[row]) >= _EXACT
            if kept and _INTEGER.fullmatch(cells[row]):
                found[row] = int(cells[row])
            if kind == "integer" and not _is_64_bit(found[row]):
                raise table.wrong(
                    row, index, f"`{cells[row]}` is not one, and {_KINDS[kind]}", _LEAVE
                )
        if gone is not None:
            for row in np.flatnonzero(gone).tolist():
                found[row] = None
        if form == "npy":
            return np.array(found, np.int64)
        return found

    # -- rows that are bad ---------------------------------------------------------------------------
    def _refuse(self, table: Table, bad: dict[int, Exception]) -> None:
        """Raise for the first bad row if the job stops there, or if the error concerns all rows."""
        if not bad:
            return
        row = min(bad)
        error = bad[row]
        whole = isinstance(errors.named(error), errors.NO_BACKWARD)
        if self.bad_rows != "stop" and not whole:
            return
        raise self._worded(table, row, error, whole)

    def _worded(self, table: Table, row: int, error: Exception, whole: bool) -> LanguageError:
        if isinstance(error, TableError):
            found = table_error(error)
            found.usage = False
            return found
        if not isinstance(error, LanguageError):
            text, span = "", None
            if isinstance(self.source, str):
                program = parse(self.source)
                text, span = program.source, program.value_span
            found = error_at(error, source=text, span=span)
        else:
            found = error
        if self.typed is not None and found.source == self.source:
            found.source = self.typed
        if whole:
            found.hint = self._translation(found) or _ALONE
        else:
            found.notes = (*found.notes, str(table.where(row, -1)["at"]))
            found.hint = (
                found.hint or "--bad-rows skip leaves such rows out, --bad-rows nan keeps them"
            )
        found.usage = False
        return found

    def _translation(self, error: LanguageError) -> str | None:
        """What `max(x, 0)`, which is a tuple here, is meant to be; None where nothing is known."""
        from gradcli.language import translations
        from gradcli.language.parser import parses

        if "not a tensor" not in error.message or not isinstance(self.source, str):
            return None
        return translations.hint(
            self.source, parses, dict.fromkeys(self.columns, False), elementwise=True
        )

    def _count(self, table: Table, bad: dict[int, Exception], skipped: int) -> None:
        counted = self.counted
        counted.left_out += skipped
        if bad and counted.first_bad is None:
            row = min(bad)
            found = self._worded(table, row, bad[row], False)
            at = str(table.where(row, -1)["at"])
            words = found.message.partition("\n")[0]
            counted.first_bad = words if words.startswith(at) else f"{at}: {words}"
        counted.bad += len(bad)

    def _count_not_finite(
        self,
        table: Table,
        columns: list[Column],
        batch: Mapping[str, Any],
        places: Any,
        refused: Mapping[int, Exception],
    ) -> None:
        """Count the rows whose numbers are finite and whose results are not."""
        # Only rows whose inputs are finite: NaN from NaN is no news, 1/0 is.
        odd = [(name, array, wrong) for name, array, wrong in _not_finite(columns) if wrong.any()]
        if not odd:
            return
        known = np.ones(len(places), bool)
        for array in batch.values():
            known &= np.isfinite(array).reshape(len(places), -1).all(1)
        rows = np.any([wrong for *_, wrong in odd], axis=0) & known
        rows[list(refused)] = False  # which are said to be bad
        self.counted.not_finite += int(rows.sum())
        if self.counted.first_not_finite is None and rows.any():
            row = int(rows.argmax())
            name, value = next((name, array[row]) for name, array, wrong in odd if wrong[row])
            given = ", ".join(f"{n} = {a[row]:.6g}" for n, a in batch.items() if a.ndim == 1)
            at = table.where(int(places[row]), -1)["at"]
            self.counted.first_not_finite = f"{at}: {name} is {value}" + f" ({given})" * bool(given)

    def _read(self) -> set[int]:
        """The columns that are read besides those of variables."""
        return {*self.keep} | self._read_besides()

    def _read_besides(self) -> set[int]:
        """The same without those that are passed on."""
        found = {*self.asked.values()}
        for of in (*self.errors.values(), *self.covariances.values()):
            if isinstance(of, int):
                found.add(of)
            if isinstance(of, RowFormula):
                found.update(of.columns.values())
        for of in self.directions.values():
            if isinstance(of, list):
                found.update(of)
        for condition in (*self.flags.values(), *([] if self.where is None else [self.where])):
            found.update(self.names.index(heading) for heading in condition.columns)
        return found

    def names_read(self) -> list[str]:
        """The names of the columns that are read, for more than to be passed on."""
        found = {i for columns in self.columns.values() for i in columns} | self._read_besides()
        return [self.names[i] for i in sorted(found)]

    def tally(self) -> Tally:
        """The tally of the rows so far."""
        ways = [self.rows, *(self.further or {}).values()]
        alone = (w.alone for w in ways if w is not None and w.alone is not None)
        self.counted.alone = next(alone, None)
        if self.rows is not None:
            self.counted.kinked, self.counted.kink = self.rows.kinked, self.rows.kink
        return self.counted


def _second(pair: tuple[str, str]) -> str:
    """The column of a second derivative."""
    return "value." + ".".join(pair)


def _usage(message: str, *, hint: str | None = None) -> LanguageError:
    return LanguageError(message, kind="usage", hint=hint)


_ALONE = "--no-grad all gives the values alone; or make it one number, as in sum(…)"
_KINDS = {
    "number": "the rows before have numbers",
    "integer": "the rows before have integers",
}
_LEAVE = "leave the column out by --keep-columns, or write CSV, which takes it as it is"


def _kind(table: Table, index: int, cells: Sequence[str], form: str) -> str:
    """The type of a text column by its first rows: number, integer or text."""
    # Codes such as 007 and cells with uncertainties stay text, since a number would lose what they say.
    # Integers beyond 2**53 are no floats; if all cells are integers of 64 bits, the column is one of
    # integers.
    there = [cell for cell in cells if not is_missing(cell)]
    # A date is carried along as it is written. As a number it would count from the first row.
    if there and not is_number(there[0]) and is_time(there[0]):
        return "text"
    found = table.readable(index)
    if not there or any(map(_LABEL.fullmatch, there)) or found.problems or found.spread is not None:
        return "text"
    if found.numbers.dtype.kind == "c" or form == "jsonl":
        return "number"
    whole = [int(cell) for cell in there if _INTEGER.fullmatch(cell)]
    if not whole or max(map(abs, whole)) <= _EXACT:
        return "number"
    fits = len(whole) == len(there) and all(map(_is_64_bit, whole))
    return "integer" if fits and (form != "npy" or len(there) == len(cells)) else "text"


def _is_64_bit(value: Any) -> bool:
    return type(value) is int and -(1 << 63) <= value < 1 << 63


def _chosen(data: Any, keep: Any) -> Any:
    """Some of the cells of a column."""
    if hasattr(data, "to_pylist"):
        return data.filter(keep)
    if isinstance(data, list):
        return [cell for cell, kept in zip(data, keep.tolist(), strict=True) if kept]
    return data[keep]


def _stacked(columns: list[Any], shape: tuple[int, ...]) -> Any:
    """A column of numbers, or the columns of a vector side by side."""
    return np.stack(columns, axis=1) if shape else columns[0]


def _check(table: Table, index: int, array: Any, signed: bool, bad: dict[int, Exception]) -> None:
    """Mark rows as bad whose uncertainty is negative or covariance invalid; missing ones may be nan."""
    for where, words in uncertainty_law.flaws(array, signed):
        for row in np.flatnonzero(where & ~np.isnan(array)).tolist():
            bad.setdefault(row, table.wrong(row, index, words))


def _not_finite(found: list[Column]) -> Iterator[tuple[str, Any, Any]]:
    """The columns of numbers with a fraction, and in which of their rows they are not finite."""
    for name, array in found:
        if array.dtype.kind in "fc":
            yield name, array, ~np.isfinite(array)


def _moved(error: Any, places: Mapping[int, int]) -> Any:
    """An uncertainty where the columns have other places."""
    if isinstance(error, RowFormula):
        return error.moved(places)
    return places[error] if isinstance(error, int) else error


def _anomalies(found: list[Column], places: Any, results: Results) -> dict[int, Exception]:
    """The rows with a number that is not finite."""
    bad: dict[int, Exception] = {}
    for name, array, wrong in _not_finite(found):
        for row in np.flatnonzero(wrong).tolist():
            if row not in results.refused:
                bad.setdefault(int(places[row]), RuntimeError(f"{name} is {array[row]}"))
    return bad


__all__ = ["RowJob", "Tally"]
