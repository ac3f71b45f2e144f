"""`fit`, `minimize` and `root` as functions: see `verbs`, whose errors and variables they share."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from gradcli.commands.verbs import Names, Values, VerbRequest, by_name, verb
from gradcli.engine.core.tensor import wrap
from gradcli.engine.system import dtypes
from gradcli.language import as_tensor, parse
from gradcli.language.located_errors import LanguageError
from gradcli.language.scope_checks import free_names

__tracebackhide__ = True


class Fitted:
    """A fit: `values`, `errors`, `covariance` as arrays in the order of `names`; see also `parameters`.

    p_value is that of chi2 where the uncertainties are given, else nan; aic and bic compare models of the
    same data. Of a likelihood chi2 is Cash's statistic, and cash_expected its mean and deviation if the model
    is right. converged is False where no minimum was found; undetermined names what the data do not tell.
    fitted and residual are those of the rows that `where` takes. sets: what the data sets of `by` are
    called, in the order of their numbers.
    """

    def __init__(
        self, rows: Any, found: Any, written: Mapping[str, Any], sets: Sequence[str] = ()
    ) -> None:
        self.sets = list(sets)
        self.names, self.values, self.errors = rows.labels, found.values, found.errors
        self.parameters = dict(
            zip(self.names, zip(self.values, self.errors, strict=True), strict=True)
        )
        self.covariance, self.chi2, self.dof = found.covariance, found.chi2, found.dof
        self.residual_deviation, self.iterations = found.deviation, found.iterations
        self.p_value, self.aic, self.bic = found.probability, found.aic, found.bic
        self.likelihood, self.cash_expected = found.likelihood, found.expected
        self.undetermined = [self.names[k] for k in found.undetermined]
        self.converged = found.converged and not self.undetermined
        self.fitted, self.residual = written["fitted"], written["residual"]

    def __repr__(self) -> str:
        from gradcli.commands.uncertainty import with_uncertainty

        lines = [
            f"{n} = {with_uncertainty(float(v), float(e))}" for n, (v, e) in self.parameters.items()
        ]
        statistic = "cash" if self.likelihood else "chi2"
        return "\n".join([*lines, f"dof = {self.dof}", f"{statistic} = {self.chi2:.6g}"])


@verb
def fit(
    source: str,
    table: Any,
    values: Mapping[str, Any] | None = None,
    /,
    *,
    sigma: Any = None,
    fix: Mapping[str, Any] | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    robust: str = "linear",
    where: Any = None,
    by: str | None = None,
    relative_sigma: bool = False,
    likelihood: str = "",
    starts: int = 0,
    **start: Any,
) -> Fitted:
    """The least squares of an equation: `fit("y == a*x + b", {"x": x, "y": y}, a=1, b=0)`.

    The equation is that of one row; a side may be a list, an array or complex. table: columns by name, as a
    dict, a frame or a table of Arrow's, or a file's path (see `read_table`); names that are no columns are
    parameters, which start where `values` and keywords say, or at 1; one that is a text with an uncertainty
    (`B="30±2"`) is known beforehand. sigma: the standard uncertainty of the response, the column that has
    it, "3%", "poisson", a formula of columns, or a dict of those of columns; relative_sigma: only their
    ratios count. likelihood: "poisson" for counts, without sigma. fix: parameters that stay. bounds: (low,
    high) by name. starts: how many more are tried. robust: "soft_l1", "huber" or "arctan". where: the rows
    that count, as a condition of columns (`"T > 0"`, `"site == 'A'"`) or truth values. by: the column whose
    values are data sets; `set` is the number of one, so that `a[set]` is a parameter for each. Raises
    LanguageError.
    """
    from gradcli.columns.optimize.data_sets import numbered, spread_over
    from gradcli.columns.optimize.equation_rows import EquationRows
    from gradcli.columns.optimize.fits import fit_rows
    from gradcli.columns.streaming.row_formulas import whole_numbers
    from gradcli.commands.data_rows import SET
    from gradcli.commands.fit_values import known_beforehand, spreads
    from gradcli.commands.measured_side import measured_column
    from gradcli.commands.table_reading import every_column
    from gradcli.language.index_names import index_names

    if isinstance(table, (str, os.PathLike)):
        table = every_column(os.fspath(table))
    program = parse(source)
    free = free_names(program)
    columns = list(getattr(table, "column_names", None) or table)
    batch = {n: _column(table[n]) for n in free if n in columns}
    sets: list[str] = []
    if by is not None:
        if by not in columns or SET in columns:
            wrong = f"by: {by!r} is no column" if by not in columns else f"{SET!r} is a column"
            raise LanguageError(f"{wrong} (there are: {', '.join(map(str, columns))})", kind="name")
        numbers, sets = numbered(list(_listed(table[by])), by, "by")
        batch |= {SET: numbers} if SET in free else {}
    there = None if where is None else _chosen(where, table, columns)
    if there is not None:
        for name, array in batch.items():
            if len(array) != len(there):
                raise LanguageError(
                    f"where has {len(there)} rows, and {name} {len(array)}", kind="value"
                )
        batch = {n: a[there] for n, a in batch.items()}
    picked = index_names(program)
    for name in picked:
        if name in batch:
            batch[name] = whole_numbers(name, batch[name])
    if not batch:
        raise LanguageError(
            f"no variable of {source!r} is a column (there are: {', '.join(map(str, columns))})",
            kind="name",
        )
    given, priors = known_beforehand(by_name(source, values, start))
    fixed = {n: np.asarray(as_tensor(v).detach().array) for n, v in (fix or {}).items()}
    for name in (*given, *fixed, *(bounds or {})):
        if name not in free or name in batch:
            raise LanguageError(f"{name} is not a parameter of {source!r}", kind="name")
    wanted = [n for n in free if n not in batch and n not in fixed]
    wanted = [n for n in wanted if n in given or n in program.free_variables()]
    begin: dict[str, Any] = {n: np.asarray(given.get(n, 1.0), np.float64) for n in wanted}
    for name in picked:
        if name in batch and len(batch[name]):
            spread_over(begin, picked, name, batch[name])
    if likelihood not in ("", "poisson"):
        raise LanguageError(f"likelihood: {likelihood!r}, and there is 'poisson'", kind="value")

    def column(name: Any) -> Any:
        found = _column(table[name])
        return found if there is None else found[there]

    with _double():
        texts = spreads(
            sigma, column, columns, measured_column(program, batch), len(next(iter(batch.values())))
        )
    if there is not None:
        of = sigma if isinstance(sigma, Mapping) else {"": sigma}
        texts |= {n: a[there] for n, s in texts.items()
                  if not isinstance(of[n], str) and np.ndim(a := np.asarray(s))}  # fmt: skip
    rows = EquationRows(source, {}, begin, fixed)
    with _double():
        guessed = [n for n in begin if n not in given]
        found, _ = fit_rows(
            rows, batch, texts, bounds=bounds, loss=robust, guessed=guessed, many=starts,
            relative=relative_sigma, likelihood=likelihood, priors=priors,
        )  # fmt: skip
        return Fitted(rows, found, rows.written(found.values, batch), sets)


def _listed(column: Any) -> Any:
    """The cells of a column: Arrow's as values of Python's."""
    return column.to_pylist() if hasattr(column, "to_pylist") else column


def _chosen(where: Any, table: Any, columns: Sequence[str]) -> Any:
    """The rows that count as truth values. where: these, or a condition of columns."""
    from gradcli.columns.streaming.conditions import Condition
    from gradcli.language.option_values import table_error
    from gradcli.tables import TableError
    from gradcli.tables.frames import ObjectTable
    from gradcli.tables.reading_options import Reading

    if not isinstance(where, str):
        there = np.asarray(where)
        if there.dtype != bool:
            raise LanguageError("where: truth values, or a condition of columns", kind="value")
    else:
        named = {str(name): name for name in columns}
        condition = Condition(
            where, "the table", list(named), lambda n: n if n in named else None, option="where"
        )
        arrays = [np.asarray(_listed(table[named[n]])) for n in condition.columns]
        cells = ObjectTable("where", condition.columns, arrays, Reading())
        there = np.zeros(cells.rows, bool)
        try:
            chosen = condition.chosen(cells, "nan")[0]
            for error in chosen.bad.values():
                raise error
        except TableError as error:
            raise table_error(error) from None
        there[getattr(chosen, "places", slice(None))] = True
    if not there.any():
        raise LanguageError(f"where: no row of {len(there)} is left", kind="value")
    return there


def _column(values: Any) -> Any:
    """A column of real or complex numbers in double precision."""
    array = np.asarray(values)
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


class Found:
    """A point: `point` by name, and what `minimize` or `root` says of it; true where it is one."""

    def __init__(self, space: Any, x: Any, converged: bool, **facts: Any) -> None:
        self.point = {n: wrap(np.array(a)) for n, a in space.shaped(x).items()}
        self.converged = converged
        vars(self).update(facts)

    def __bool__(self) -> bool:
        return self.converged

    def __repr__(self) -> str:
        return "\n".join(f"{name} = {value}" for name, value in vars(self).items())


def _space(
    source: str, values: Any, variables: Mapping[str, Any], wrt: Names, subject: Iterable[str] = ()
) -> tuple[Any, Any]:
    """(the program, the variables to move, as a space) in double precision."""
    from gradcli.columns.optimize.spaces import Space

    call = VerbRequest(source, values, variables, wrt, relations=[parse(text) for text in subject])
    call.leaves()
    for name in call.open:
        raise LanguageError(f"no value for {name}", kind="name", hint=f"pass {name}=…")
    moved = {n: np.asarray(call.tensors[n].detach().array, np.float64) for n in call.wanted}
    fixed = {n: t.double() if t.is_floating_point() else t for n, t in call.tensors.items()}
    fixed = {n: t.detach() for n, t in fixed.items() if n not in moved}
    return call.program, Space(moved, {**call.loaded, **fixed})


@verb
def minimize(
    source: str,
    values: Values = None,
    /,
    *,
    wrt: Names = None,
    subject: str | Iterable[str] = (),
    bounds: Mapping[str, tuple[float, float]] | None = None,
    method: str | None = None,
    rate: float | None = None,
    steps: int | None = None,
    momentum: float | None = None,
    **variables: Any,
) -> Found:
    """A minimum near where the variables are: `minimize("(1-x)**2 + 100*(y-x**2)**2", x=-1, y=2).point["x"]`.

    subject: constraints, "x + y == 1" or "x >= 0". bounds: (low, high) by name. The result has point,
    value, kind ("minimum", "saddle point", …), eigenvalues (of the Hessian along what is free), covariance
    (the inverse of that Hessian at a minimum: of a negative log-likelihood the errors squared), method,
    iterations, evaluations, converged. Raises LanguageError.

    method: of SciPy, or "gradient-descent", "momentum", "nesterov", "adagrad", "rmsprop", "adam", "newton",
    which take so many steps of one rate; of these the result has `path`, a row a point.
    """
    from gradcli.columns.optimize import descents, least_squares, minima

    with _double():
        subject = [subject] if isinstance(subject, str) else list(subject)
        program, space = _space(source, values, variables, wrt, subject)
        if method in descents.DESCENTS:
            if bounds or subject:
                raise LanguageError(f"{method} knows no bounds and no constraints", kind="usage")
            made, descent, _ = minima.descended(
                space.objective(program), space.flat(), method, rate, steps, momentum=momentum
            )
            facts = {n: getattr(made, n) for n in _FACTS}
            path = np.array(descent.points)
            return Found(space, made.x, made.converged, **facts, path=path)
        for name, given in {"rate": rate, "steps": steps, "momentum": momentum}.items():
            if given is not None:
                raise LanguageError(
                    f"{name} is for a method that goes step by step",
                    kind="usage",
                    hint='method="gradient-descent"',
                )
        found = minima.minimize(
            space.objective(program),
            space.flat(),
            bounds=least_squares.limits(space.start, bounds or {}),
            constraints=space.relations(subject, program),
            method=method,
        )
        facts = found._asdict()
        return Found(
            space, facts.pop("x"), **{n: facts[n] for n in _FACTS}, converged=found.converged
        )


_FACTS = ("value", "kind", "eigenvalues", "covariance", "method", "iterations", "evaluations")


@verb
def root(
    source: str,
    values: Any = None,
    /,
    *,
    wrt: Names = None,
    bad_rows: str = "nan",
    where: Any = None,
    columns: Mapping[str, Any] | None = None,
    keep_columns: str | Iterable[str] = "none",
    head: int | None = None,
    time_origin: str | None = None,
    as_: str | Iterable[str] | Mapping[str, str] = (),
    **variables: Any,
) -> Any:
    """Where equations hold, near where the variables are: `root("cos(x) == x", x=1).point["x"]`.

    The result has point, residual (the largest difference of two sides) and converged, which is false, with
    a warning, also where the sides are equal all around. Raises LanguageError.

    values: of variables by name; or a frame, a table of Arrow's or a file's path, in each row of which one
    equation is solved for the number that is given (`root("a*x**2 == b", frame, x=1)`) or that wrt names,
    from there or in an interval, x=(0, 5). The result is a dict of arrays then, with nan where there is no
    root; bad_rows, where, columns, keep_columns, head, time_origin and as_ are those of `map`.
    """
    from gradcli.commands.row_verbs import is_table, solved

    called = variables.pop("as", as_)
    if is_table(values):
        return solved(
            source,
            values,
            variables,
            wrt,
            bad_rows=bad_rows,
            where=where,
            columns=columns,
            keep_columns=keep_columns,
            head=head,
            time_origin=time_origin,
            called=called,
        )
    from gradcli.columns.optimize import roots
    from gradcli.columns.optimize.spaces import Compiled
    from gradcli.commands.root import NOT_ALONE

    with _double():
        program, space = _space(source, values, variables, wrt)
        found = roots.root(Compiled(space.differences(program), space.size), space.flat())
        if not found.alone:
            warnings.warn(NOT_ALONE, stacklevel=3)
        return Found(space, found.x, found.converged and found.alone, residual=found.residual)


@contextmanager
def _double() -> Iterator[None]:
    """Where numbers are in double precision, and what is not finite is no warning."""
    with dtypes.as_default(dtypes.float64), np.errstate(all="ignore"):
        yield


__all__ = ["Fitted", "Found", "fit", "minimize", "root"]
