"""A fit of an equation to rows: what is known of the data's uncertainties, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from gradcli.columns.optimize import least_squares
from gradcli.columns.optimize.counts import Counts, check_counts
from gradcli.columns.optimize.equation_rows import (
    Batch,
    ByPasses,
    EquationRows,
    InBlocks,
    InMemory,
    PassSums,
    Priors,
    Related,
    in_blocks,
)
from gradcli.columns.optimize.least_squares import Array, Bounds, Fit, limits
from gradcli.columns.optimize.starts import linear
from gradcli.columns.streaming.passes import Runner
from gradcli.language.located_errors import LanguageError
from gradcli.operators.primitives import lapack
from gradcli.tables.parts import Part

FINE = 400  # points of a curve
MANY = 50_000  # residuals: of more, the normal equations are summed in blocks
SOME = 2_000  # of that many rows, those that tell where the minimum is
FEW = 100  # evaluations of all rows, before others look
_ROUNDED = 1e-9  # of the data: residuals that are rounding
STRONG = 0.9  # a correlation that is worth a line


@np.errstate(all="ignore")
def fit_rows(
    rows: EquationRows,
    batch: Batch,
    sigma: Mapping[str, Any],
    *,
    bounds: Bounds | None = None,
    loss: str = "linear",
    limit: int = 5000,
    many: int = 0,
    told: Callable[[int], Any] = bool,
    correlations: Mapping[tuple[str, ...], Array] | None = None,
    guessed: Collection[str] = (),
    relative: bool = False,
    likelihood: str = "",
    priors: Mapping[str, tuple[Any, Any]] | None = None,
) -> tuple[Fit, dict[str, Array]]:
    """(the fit of an equation to the rows of `batch`, the share of each source in every variance).

    sigma: the standard uncertainties of columns, and of the response as "". Those of columns on the
    response's side alone make its deviation; the others are corrected too. many: starts to try besides.
    told: is called with 1 whenever residuals are computed. correlations: by two columns those of their
    uncertainties in a row, one number or one of each row; by one column the matrix of those of all rows.
    guessed: the parameters that nobody gave a start. relative: only the ratios of the uncertainties count.
    likelihood: "poisson" for counts, which need no uncertainties. priors: (value, standard uncertainty) of
    parameters of which something is known besides. Raises LanguageError.
    """
    count = len(next(iter(batch.values()), ()))
    if not count:
        raise _usage("there are no rows")
    response = rows.look({n: a[0] for n, a in batch.items()})
    deviation = sigma.get("")
    if deviation is not None:
        deviation = rows.spread_over(deviation, count)
    spreads = {n: rows.spread_over(s, count) for n, s in sigma.items() if n}
    count *= len(rows.components)
    inputs = {n: s for n, s in spreads.items() if n not in response}
    # The kinds of uncertainty are told apart by the side of the equation that reads the column. In `fit
    # "y - y0 == a*x"` those of y and y0 only widen the response: its deviation is sqrt((dy*1)² +
    # (dy0*1)²), by the slopes of the response. That of x moves the point where the model is read, so that
    # x itself has to be corrected (`InMemory`).
    own = [n for n in spreads if n in response]
    start = rows.flat()
    before: Array | None = None  # where the fit before this one began
    if count < len(start):
        raise _usage(
            f"{count} {_residuals(rows)} cannot determine {len(start)} parameters",
            "hold some fixed, as in --fix b=1",
        )
    if own and deviation is not None:
        raise _usage(f"the response has two uncertainties: --sigma, and that of {own[0]}")
    related = None
    if correlations:
        if len(rows.components) > 1 or loss != "linear":
            raise _usage(
                "correlated uncertainties go with an equation of one number a row, and without --robust"
            )
        if deviation is not None and len(response) == 1:
            spreads[next(iter(response))] = deviation  # the response is that column: see `sided`
            _check_is_column(rows, start, batch, next(iter(response)))
        related, square = sided(rows, start, batch, spreads, response, correlations)
        if own:
            deviation = np.sqrt(square)
    if own:
        _, _, slopes = rows.residuals(start, batch, own)
        check_apart(rows, slopes)
        if not related:
            deviation = np.sqrt(sum(np.square(slopes[n] * spreads[n]) for n in own))
    if inputs and deviation is None:
        raise _usage(
            f"{', '.join(inputs)} has an uncertainty, but the response has none",
            "give that too, as in --sigma dy",
        )
    if inputs and len(rows.components) > 1:
        raise _usage(
            f"{', '.join(inputs)} has an uncertainty, and a row has {len(rows.components)} residuals",
            "uncertainties of both sides go with an equation of one number a row",
        )
    if inputs and loss != "linear":
        raise _usage(
            "--robust cannot be used with uncertainties of both sides", "leave out one of them"
        )
    for name, spread in [
        *inputs.items(),
        *([] if deviation is None else [("the response", deviation)]),
    ]:
        wrong = np.asarray(spread)[~(np.asarray(spread) > 0)]
        if wrong.size:  # NaN, too
            why = "a weight would be infinite" if wrong[0] == 0 else "it is a number above 0"
            raise _usage(
                f"an uncertainty of {name} is {wrong[0]:.6g}", f"{why}: leave out such rows"
            )
    known = _priors(rows, priors or {})
    if known is not None and (relative or not (likelihood or deviation is not None)):
        raise _usage(
            f"{next(iter(priors or {}))} has an uncertainty, and the scale of the residuals is not known",
            "give that of the data, as in --sigma dy",
        )
    if likelihood:
        if sigma or loss != "linear" or related:
            raise _usage(
                "--likelihood poisson goes without --sigma, --robust and correlations",
                "counts have their own uncertainty: leave those out",
            )
        counts = check_counts(rows, batch)
        data: InMemory = Counts(rows, batch, known)
        start, before = _by_squares(rows, batch, data, counts, bounds, told, guessed)
    else:
        data = InMemory(rows, batch, deviation, inputs, related, known)
    count += 0 if known is None else len(known.places)
    blocks = begun = None
    # Many rows: only the sums J.T @ J and J.T @ r are kept, so that memory is that of a block. These sums
    # lose half of the digits (their condition is the square of the Jacobian's), and corrections of
    # inputs, robust weights and bounds need each row. So blocks are tried where none of these is asked
    # for, and only from a start that is finite in all rows.
    alone = not (inputs or many or bounds or related or likelihood or known is not None)
    if count > MANY and alone and loss == "linear":
        blocks = InBlocks(rows, batch, data.deviation)
    if blocks is None or not np.isfinite(blocks.at(start)[0]).all():
        blocks = None
        whole = least_squares.by_differences(lambda x: rows.residuals(x, batch)[:2], start)
        finite = all(np.isfinite(part).all() for part in whole)
        tries = bool(guessed) and np.isfinite(start).all()
        if not finite and tries and (begin := _guessed(rows, data, bounds or {}, guessed)):
            start, begun = begin[1], begin[1]
            whole = least_squares.by_differences(lambda x: rows.residuals(x, batch)[:2], start)
        check_start(*whole, rows, batch)
    # An uncertainty of an input weighs a row by the slope of the model, so that even a straight line has
    # several minima: the way begins where the fit without those of inputs ends.
    if inputs and not many and (guessed or _is_linear(rows, data, start)):
        others = {n: s for n, s in sigma.items() if n not in inputs}
        first, _ = fit_rows(
            rows, batch, others, bounds=bounds, limit=limit, told=told, guessed=guessed
        )
        if first.converged and not first.undetermined:
            start = first.values
            before = first.begun
    lower, upper = limits(rows.start, bounds or {})
    options: dict[str, Any] = {
        "lower": lower,
        "upper": upper,
        "absolute": bool(likelihood) or (deviation is not None and not relative),
        "loss": loss,
        "size": partial(_size, rows, start, batch, data.deviation),
        "limit": limit,
    }

    def counted(at: least_squares.At) -> least_squares.At:
        def one(x: Array) -> tuple[Array, Array]:
            told(1)
            return at(x)

        return one

    found = None
    if blocks is not None:
        few = {**options, "near": True, "limit": min(limit, FEW)}
        found = least_squares.fit(counted(blocks.at), start, count, sums=True, **few)
        # Where the sums say that a parameter is not determined, it may be the digits that they lost. The
        # Jacobian of all rows has the last word; where to ask for it, some of the rows tell.
        if not found.converged or found.undetermined:
            found = _by_some(rows, data, start, options, counted)
    if found is None:  # every row is looked at
        try:
            found = least_squares.fit(counted(data.at), start, count, many=many, **options)
        except ValueError as error:  # of SciPy's, about what is not finite
            raise _failed(str(error)) from error
    found = judged(rows, data, found, response)
    if begun is not None:
        found = found._replace(begun=begun)
    elif guessed and not many and loss == "linear" and _is_doubtful(found):
        begin = _guessed(rows, data, bounds or {}, guessed)
        found = _best(found, begin, lambda x: least_squares.fit(
            counted(data.at), x, data.count, **options
        ))  # fmt: skip
        if inputs and count <= SOME and _is_doubtful(found):
            found = least_squares.fit(
                counted(data.at), found.values, count, many=_SEARCHED, **options
            )
        found = judged(rows, data, found, response)
    if found.begun is None and not many:
        found = found._replace(begun=before)
    if guessed:
        found = _positive(found, data, guessed, (lower, upper))
    if isinstance(data, Counts) and found.converged:
        found = found._replace(covariance=data.covariance(found))
    little = found.explained is not None and found.explained < _ENOUGH
    if little or (found.absolute and found.probability < _PROBABLE):
        found = found._replace(single=not inputs and _is_linear(rows, data, found.values))
    return found, {} if related else _shares(rows, data, found, own, spreads)


def _priors(rows: EquationRows, priors: Mapping[str, tuple[Any, Any]]) -> Priors | None:
    """What is known of parameters, by the places of their numbers."""
    if not priors:
        return None
    places: list[int] = []
    values: list[float] = []
    spreads: list[float] = []
    begin = 0
    for name, array in rows.start.items():
        if name in priors:
            value, spread = (np.broadcast_to(one, array.shape).ravel() for one in priors[name])
            if not (spread > 0).all():
                raise _usage(
                    f"{name}: its uncertainty is not above 0", f"--fix {name}=VALUE holds it"
                )
            places += range(begin, begin + array.size)
            values += value.tolist()
            spreads += spread.tolist()
        begin += array.size
    return Priors(np.array(places, int), np.array(values), np.array(spreads))


def _by_squares(
    rows: EquationRows,
    batch: Batch,
    data: InMemory,
    counts: Array,
    bounds: Bounds | None,
    told: Callable[[int], Any],
    guessed: Collection[str],
) -> tuple[Array, Array | None]:
    """(where a fit of counts may start: at the least squares with sqrt(n) for the uncertainty, 1 for none;
    where these began, if that was another start)."""
    spread = np.sqrt(np.maximum(counts, 1)).reshape(len(next(iter(batch.values()))), -1)
    first, _ = fit_rows(rows, batch, {"": spread}, bounds=bounds, told=told, guessed=guessed)
    is_start = first.converged and np.isfinite(data.at(first.values)[0]).all()
    return (first.values, first.begun) if is_start else (rows.flat(), None)


def _check_is_column(rows: EquationRows, start: Array, batch: Batch, name: str) -> None:
    """Refuse an uncertainty of log(y), where a correlation is that of y."""
    slope = rows.residuals(start, batch, [name])[2][name]
    if not np.allclose(np.abs(slope), 1.0):
        raise _usage(
            f"the response is not {name} itself, and a correlation is one of {name}",
            f"give the uncertainty of {name}, as in --sigma {name}=VALUE",
        )


def sided(
    rows: EquationRows,
    start: Array,
    batch: Batch,
    spreads: Mapping[str, Array],
    response: set[str],
    correlations: Mapping[tuple[str, ...], Array],
) -> tuple[Related, Array]:
    """(correlations as the residuals need them, the variance of the response).

    spreads: the uncertainties of columns. response: the columns on its side. Raises LanguageError.
    """
    own = [n for n in spreads if n in response]
    slopes = rows.residuals(start, batch, own)[2] if own else {}
    square = np.zeros(len(next(iter(batch.values())))) + sum(
        np.square(slopes[n] * spreads[n]) for n in own
    )
    inputs: dict[tuple[str, str], Array] = {}
    towards: dict[str, Array] = {}
    factor = None
    for names, found in correlations.items():
        for name in names:
            if name not in spreads:
                raise _usage(
                    f"--correlation {','.join(names)}: {name} has no uncertainty",
                    f"give it, as in --sigma {name}=VALUE",
                )
        if len(names) == 1:
            (name,) = names
            if own != [name] or len(spreads) > 1:
                raise _usage(
                    f"--correlation {name}: rows are correlated in the measured side alone",
                    "it is one column, and no other has an uncertainty",
                )
            factor = _whitening(name, found, np.sign(slopes[name]))
            continue
        one, other = names
        covariance = found * spreads[one] * spreads[other]
        if one in slopes and other in slopes:
            square = square + 2 * slopes[one] * slopes[other] * covariance
        elif one in slopes or other in slopes:
            data, name = (one, other) if one in slopes else (other, one)
            towards[name] = towards.get(name, 0.0) + covariance * slopes[data]
        else:
            inputs[one, other] = covariance
    return Related(inputs, towards, factor), square


def _whitening(name: str, correlation: Array, signs: Array) -> Array:
    """inv(L) of the correlations of residuals, L @ L.T, which have the signs of their slopes."""
    lower, info = lapack.cholesky(correlation * np.outer(signs, signs), False)
    if info:
        raise _usage(
            f"--correlation {name}: the matrix is singular, so that a weight would be infinite",
            "rows that repeat each other count once: leave out some by --where",
        )
    return lapack.inverse(lower)[0]


def _by_some(
    rows: EquationRows,
    data: InMemory,
    start: Array,
    options: Mapping[str, Any],
    counted: Callable[[least_squares.At], least_squares.At],
) -> Fit | None:
    """The fit of all rows from where that of some of them ends; None where that is not near its minimum."""
    many = len(rows.components)
    whole = data.count // many
    chosen = np.sort(np.random.default_rng(0).choice(whole, min(whole, SOME), replace=False))
    places = (chosen[:, None] * many + np.arange(many)).ravel()
    deviation: Any = data.deviation
    deviation = deviation[places] if np.ndim(deviation) else deviation
    batch = {n: a[chosen] for n, a in data.batch.items()}
    thin = InMemory(rows, batch, deviation, {})
    some = {**options, "size": partial(_size, rows, start, batch, deviation)}
    try:
        first = least_squares.fit(counted(thin.at), start, thin.count, **some)
    except ValueError:
        return None
    few = {**options, "near": True, "limit": min(options["limit"], FEW)}
    found = least_squares.fit(counted(data.at), first.values, data.count, **few)
    if first.receding and not found.converged:
        # All rows would be looked at hundreds of times in vain.
        return found._replace(receding=True)
    if not (found.converged or found.undetermined):
        return None
    return found._replace(begun=first.begun)


def judged(rows: EquationRows, data: InMemory, found: Fit, measured: set[str]) -> Fit:
    """The fit with what tells whether it is a good one. measured: the columns of the response."""
    if isinstance(data, Counts):
        found = found._replace(likelihood="poisson", expected=data.expected(found))
    found = found._replace(explained=explained(rows, data, found))
    return found._replace(wandering=wandering(rows, data, found, measured))


def explained(rows: EquationRows, data: InMemory, found: Fit) -> float | None:
    """The share of the data's variance about their means that the residuals lack; None where the model is
    the same in all rows, or no side is the data's alone. As many parameters lessen it (the adjusted R²)."""
    count = len(next(iter(data.batch.values())))
    many = len(rows.components)
    if not rows.split or found.dof <= 0 or count < 2 or found.likelihood:
        return None
    blocks = (rows.written(found.values, part)["fitted"] for _, part in in_blocks(data.batch))
    fitted = (rows.residual_parts(block).reshape(-1, many) for block in blocks)
    # A model that is the same in every row, as `y == a`, explains nothing by definition. Its R² would be
    # a quotient of roundings, 1e-16 or -1e-16.
    first = next(fitted)
    if (first == first[0]).all() and all((block == first[0]).all() for block in fitted):
        return None
    weights = np.broadcast_to(1 / np.square(data.deviation), (count * many,)).reshape(count, many)
    y = rows.residual_parts(rows.response(data.batch)).reshape(count, many)
    # The total sum of squares is about the weighted mean, since the weighted mean is the fit of a
    # constant: so 0 means "no better than a constant".
    y = y - (weights * y).sum(0) / weights.sum(0)
    whole = float((weights * y * y).sum()) / (many * (count - 1))
    if not (np.isfinite(whole) and whole > 0):
        return None
    return 1 - found.chi2 / found.dof / whole


_RUNS = 20  # residuals from which on their signs tell something
_SELDOM = (
    4.0  # standard deviations below the expected number of runs, which chance alone hardly makes
)
_ENOUGH = 0.9  # of the variance, what a model explains that is not doubted for it
_PROBABLE = 1e-3  # of a chi2, above which a fit is not doubted
_THIN = 400  # rows that tell where a fit may start
_SEARCHED = 12  # starts besides, where uncertainties of inputs leave a fit doubtful
_SAME = 1e-9  # relative: sums of squares that are one
_GAIN = 1e-6  # relative, of a sum of squares that is lower than another


def wandering(
    rows: EquationRows, data: InMemory, found: Fit, measured: set[str]
) -> tuple[int, int, bool] | None:
    """(how many runs of one sign the residuals have in the order of the data, how many chance would make,
    whether there may be other minima: the model is not linear in all parameters), where the runs are too few
    for chance; else None (Wald and Wolfowitz, Ann. Math. Statist. 11, 1940).

    measured: the columns of the response."""
    if len(rows.components) > 1 or not _RUNS <= found.dof <= MANY:
        return None
    if not found.converged or found.undetermined:
        return None
    columns = [a for a in data.batch.values() if a.ndim == 1]
    keys = [a for n, a in data.batch.items() if n not in measured and a.ndim == 1] or columns
    keys.reverse()
    # A set's rows lie together, and within it they are in the order of the first input.
    order = np.lexsort(sorted(keys, key=lambda a: a.dtype.kind == "i"))
    written = rows.written(found.values, data.batch)
    r = rows.residual_parts(written["residual"])[order]
    y = rows.residual_parts(written["fitted"])[order] + r
    if np.linalg.norm(r) <= _ROUNDED * np.linalg.norm(y):
        return None  # rounding, which may well have a pattern
    up, down = int((r > 0).sum()), int((r < 0).sum())
    signs = np.sign(r[r != 0])
    runs, count = int((np.diff(signs) != 0).sum()) + 1, up + down
    if min(up, down) == 0:
        return None
    mean = 1 + 2 * up * down / count
    variance = (mean - 1) * (mean - 2) / (count - 1)
    if variance <= 0 or mean - runs < _SELDOM * variance**0.5:
        return None
    every = np.arange(len(found.values))
    return runs, round(mean), len(linear(data.at, found.values, every)) < len(every)


def _thinned(rows: EquationRows, data: InMemory) -> InMemory:
    """Some of the rows, without uncertainties of inputs."""
    many, count = len(rows.components), len(next(iter(data.batch.values())))
    chosen = np.arange(count)
    if count > _THIN:
        chosen = np.sort(np.random.default_rng(0).choice(count, _THIN, replace=False))
    places = (chosen[:, None] * many + np.arange(many)).ravel()
    deviation: Any = data.deviation
    deviation = deviation[places] if np.ndim(deviation) else deviation
    batch = {n: a[chosen] for n, a in data.batch.items()}
    if isinstance(data, Counts):
        return Counts(rows, batch)
    return InMemory(rows, batch, deviation, {})


def _is_linear(rows: EquationRows, data: InMemory, x: Array) -> bool:
    """Whether the model is linear in all parameters, as far as its derivatives about a point tell."""
    return len(linear(_thinned(rows, data).at, x, np.arange(len(x)))) == len(x)


def _is_doubtful(found: Fit) -> bool:
    """Whether another minimum may be lower, as far as the residuals tell."""
    if not found.converged or found.undetermined or found.wandering:
        return True
    if found.explained is not None and found.explained < _ENOUGH:
        return True
    return found.absolute and found.dof > 0 and found.probability < _PROBABLE


def _guessed(
    rows: EquationRows, data: InMemory, bounds: Bounds, guessed: Collection[str]
) -> tuple[float, Array] | None:
    """(the sum of squares, the point) where a fit may start whose parameters were not given one."""
    from gradcli.columns.optimize.guessed_starts import better_start
    from gradcli.columns.optimize.parameter_sizes import priors

    if data.related:
        return None
    thin = _thinned(rows, data)
    columns = {n: a for n, a in data.batch.items() if a.ndim == 1 and a.dtype.kind == "f"}
    known = priors(rows.source, columns, list(rows.start))
    each = [
        known[name] if name in guessed else None
        for name, array in rows.start.items()
        for _ in range(array.size)
    ]
    lower, upper = limits(rows.start, bounds)
    return better_start(thin.at, rows.flat(), lower, upper, each)


def _positive(
    found: Fit, data: InMemory, guessed: Collection[str], bounds: tuple[Array, Array]
) -> Fit:
    """The same fit with positive parameters, where their sign changes no residual: s of
    exp(-x²/s²)."""
    upper = bounds[1]
    values, signs = np.array(found.values), np.ones(len(found.values))
    labels = data.rows.labels
    turning = [
        k
        for k, label in enumerate(labels)
        if label.partition("[")[0] in guessed and values[k] < 0 <= upper[k] + values[k]
    ]
    # One by one, and two together, as in `a*tanh(x/s)`.
    for few in [*((k,) for k in turning), *combinations(turning, 2)]:
        turned = np.array(values)
        turned[[*few]] = np.abs(turned[[*few]])
        if (turned == values).all():
            continue
        r = data.at(turned)[0]
        if np.isfinite(r).all() and abs(float(r @ r) - found.chi2) <= _SAME * found.chi2:
            signs[[*few]] *= np.sign(values[[*few]])
            values = turned
    return found._replace(values=values, covariance=found.covariance * np.outer(signs, signs))


def _best(found: Fit, begin: tuple[float, Array] | None, fit: Callable[[Array], Fit]) -> Fit:
    """The fit that there is, or one from another start if that ends lower, or at a minimum at all."""
    if begin is None:
        return found
    try:
        other = fit(begin[1])
    except ValueError:  # of SciPy's, about what is not finite
        return found
    if not other.converged or other.undetermined:
        return found
    is_none = not found.converged or found.undetermined
    if is_none or other.chi2 < found.chi2 * (1 - _GAIN):
        return other._replace(begun=begin[1])
    return found


def _residuals(rows: EquationRows) -> str:
    many = len(rows.components)
    return "rows" if many == 1 else f"residuals ({many} a row)"


def _size(rows: EquationRows, start: Array, batch: Batch, deviation: Array) -> float:
    """The length of the data in units of their deviations."""
    squares, many = 0.0, len(rows.components)
    for first, part in in_blocks(batch):
        made = rows.written(start, part)
        residual = rows.residual_parts(made["residual"])
        at = slice(first * many, first * many + len(residual))
        residual = residual / (deviation[at] if np.ndim(deviation) else deviation)
        squares += float(np.square(rows.residual_parts(made["fitted"]) + residual).sum())
    return float(np.sqrt(squares))


def check_apart(rows: EquationRows, slopes: Mapping[str, Array]) -> None:
    """Refuse a column whose uncertainty goes into several residuals of a row: these would be correlated."""
    many = len(rows.components)
    for name, slope in slopes.items():
        if many > 1 and (np.count_nonzero(slope.reshape(-1, many), axis=1) > 1).any():
            raise _usage(
                f"the uncertainty of {name} goes into several residuals of a row",
                "give those of the residuals instead, as in --sigma '[0.1, 0.2]'",
            )


def check_start(
    r: Array, jac: Array, rows: EquationRows, batch: Mapping[str, Array] | None = None
) -> None:
    """Raise LanguageError where a fit cannot start. batch: the columns of these residuals' rows."""
    if not np.isfinite(r).all():
        row = int(np.flatnonzero(~np.isfinite(r))[0]) // len(rows.components)
        for name, column in (batch or {}).items():
            if not np.isfinite(column[row]).all():  # no other start would help
                raise _failed(
                    f"in row {row + 1}, {name} is {column[row]}",
                    "a fit needs finite numbers: leave out such rows",
                )
        raise _failed(
            f"at the start the residual of row {row + 1} is {r[~np.isfinite(r)][0]}",
            f"start elsewhere, as in --{next(iter(rows.start))} VALUE",
        )
    if not np.isfinite(jac).all():
        label = rows.labels[int(np.flatnonzero(~np.isfinite(jac).all(0))[0])]
        raise _failed(f"at the start the derivative by {label} is not finite", "start elsewhere")


def _shares(
    rows: EquationRows,
    data: InMemory,
    found: Fit,
    own: list[str],
    spreads: Mapping[str, Array],
) -> dict[str, Array]:
    """What each source of uncertainty adds to the variance of every parameter, as a share of it."""
    also = [*own, *data.inputs]
    if not also and data.priors is None:  # one source is all there is
        return {"response": np.where(np.diagonal(found.covariance) > 0, 1.0, 0.0)}
    _, jac, slopes = rows.residuals(found.values, data.batch, also)
    whole, response = data.spreads(found.values, slopes)
    # At a minimum the parameters answer to a small change dr of the residuals by -C @ J.T @ W @ dr, where
    # W has 1/deviation² (C is the covariance). A source s of row i changes that residual by slope*spread,
    # so the variance that it adds to parameter k is the sum over rows of (towards[k, i] * slope[i] *
    # spread[i])².
    towards = found.covariance @ (jac / whole[:, None] ** 2).T
    sources = {n: slopes[n] * spreads[n] for n in also}
    if not own:
        sources = {"response": np.broadcast_to(response, whole.shape), **sources}
    squares = {n: np.square(towards * s).sum(1) for n, s in sources.items()}
    if (known := data.priors) is not None:
        squares["prior"] = np.square(found.covariance[:, known.places] / known.spreads).sum(1)
    total = sum(squares.values())
    return {n: np.divide(s, total, where=total > 0, out=0 * s) for n, s in squares.items()}


def strong_correlations(labels: list[str], found: Fit) -> list[tuple[str, str, float]]:
    """The pairs of parameters that are correlated by more than `STRONG`, and how."""
    with np.errstate(all="ignore"):
        related = found.covariance / np.outer(found.errors, found.errors)
    pairs = np.argwhere(np.abs(np.triu(related, 1)) > STRONG)
    return [(labels[i], labels[j], float(related[i, j])) for i, j in pairs]


def fit_in_passes(
    sums: PassSums,
    parts: list[Part],
    runner: Runner,
    bounds: Bounds,
    limit: int,
    told: Callable[[int], None],
) -> Fit:
    """The fit of a table that need not fit into memory: a pass over its rows for every point."""
    rows = sums.rows
    start = rows.flat()
    first, _ = next((b for part in parts for b in sums.rows_of(part)), ({}, {}))
    if not first:
        where = None if sums.where is None else f"--where {sums.where.typed}: no row is left"
        raise _usage(where or "there are no rows")
    rows.look({n: a[0] for n, a in first.items()})
    whole = least_squares.by_differences(lambda x: rows.residuals(x, first)[:2], start)
    check_start(*whole, rows, first)
    lower, upper = limits(rows.start, bounds)
    at = ByPasses(sums, parts, runner, told)
    at(start)  # which counts the rows
    return least_squares.fit(
        at, start, at.count, lower=lower, upper=upper,
        absolute=sums.deviation is not None, sums=True, limit=limit,
    )  # fmt: skip


def to_json(rows: EquationRows, found: Fit, shares: Mapping[str, Array]) -> dict[str, Any]:
    """The fit as an object, in full precision; a number that is not known is None."""

    def number(value: Any) -> float | None:
        return float(value) if np.isfinite(value) else None

    labels, errors = rows.labels, found.errors
    made: dict[str, Any] = {
        "parameters": {
            label: {"value": float(value), "error": number(error)}
            for label, value, error in zip(labels, found.values, errors, strict=True)
        },
        "covariance": {
            one: {other: number(c) for other, c in zip(labels, row, strict=True)}
            for one, row in zip(labels, found.covariance, strict=True)
        },
        "chi2": number(found.chi2),
        "dof": found.dof,
        "residual_deviation": number(found.deviation),
        "chi2_per_dof": number(found.chi2 / found.dof if found.dof > 0 else np.nan),
        "p_value": number(found.probability),
        "aic": number(found.aic),
        "bic": number(found.bic),
        "explained": None if found.explained is None else number(found.explained),
        "iterations": found.iterations,
        "evaluations": found.evaluations,
        "converged": found.converged and not found.undetermined,
        "undetermined": [labels[k] for k in found.undetermined],
        "bounded": [labels[k] for k in found.bounded],
    }
    if found.likelihood:
        made |= {"likelihood": found.likelihood, "cash": made.pop("chi2")}
        made["chi2"] = made["residual_deviation"] = made["chi2_per_dof"] = None
        made["cash_expected"], made["cash_deviation"] = map(number, found.expected)
    if found.search is not None:
        tried, here, other = found.search
        made["search"] = {"starts": tried, "ended_here": here, "next_chi2": number(other)}
    if shares:
        made["budget"] = {
            label: {source: number(share[k]) for source, share in shares.items()}
            for k, label in enumerate(labels)
        }
    return made


class Drawn(NamedTuple):
    """One number of the equation over one data set, for a picture: the data, and the curve through them.

    label: what the data are. bars: the uncertainties of x and of the response, or None. curve: x, y, and
    the standard uncertainty of y by that of the parameters, or None.
    """

    label: str
    x: Array
    observed: Array
    residual: Array
    bars: tuple[Array | None, Array | None]
    curve: tuple[Array, Array, Array | None]


def drawn(
    rows: EquationRows,
    found: Fit,
    batch: Batch,
    spreads: Mapping[str, Array],
    fine: Callable[[Array], Array],
    sets: Sequence[str] = (),
) -> tuple[str, list[Drawn]]:
    """(the variable that is drawn over, what is drawn): over the first column of the model's side, or over
    the rows where that has vectors alone.

    fine: the points of a curve over data at x. sets: the names of the data sets, whose number is `set`.
    """
    response = rows.look({n: a[0] for n, a in batch.items()})
    inputs = [
        n for n, a in batch.items() if n not in response and a.ndim == 1 and a.dtype.kind == "f"
    ]
    indices = [n for n, a in batch.items() if a.dtype.kind == "i" and a.ndim == 1]
    count = len(next(iter(batch.values())))
    name = [*inputs, "row"][0]
    x = batch[name] if inputs else np.arange(1.0, count + 1)
    written = rows.written(found.values, batch)
    fitted, residual = (
        rows.residual_parts(written[n]).reshape(count, -1) for n in ("fitted", "residual")
    )
    bar = _bars(rows, found, batch, spreads, response)
    own = spreads.get(name)
    keys = np.stack([batch[n] for n in indices], 1) if indices else np.zeros((count, 0), int)
    # Integer columns say which data set a row is of (`b[set]*x`): each has a curve and a label of its
    # own. Over x alone the model can be drawn between the data, at `fine` points. If it reads more
    # columns, their values between two rows are unknown, so the curve joins the data's own points.
    groups = np.unique(keys, axis=0)
    alone = len(inputs) == 1 and not any(a.ndim > 1 for a in batch.values())
    made = []
    for key in groups:
        there = (keys == key).all(1)
        at = np.flatnonzero(there)
        curve: tuple[Array, Array, Array | None]
        if alone:
            points = fine(x[at])
            others = {n: np.resize(a[at], len(points)) for n, a in batch.items()}
            curves = _curves(rows, found, {**others, name: points})
        else:
            at = at[np.argsort(x[at], kind="stable")]
            points, curves = x[at], [(column, None) for column in fitted[at].T]
        of = [
            sets[k] if n == "set" and len(sets) > k else f"{n} = {k}"
            for n, k in zip(indices, key, strict=True)
        ]
        for k, text in enumerate(rows.component_texts()):
            label = ", ".join([*([text] if not of or len(rows.components) > 1 else []), *of])
            curve = (points, *curves[k])
            bars = (None if own is None else own[at], None if bar is None else bar[at, k])
            y = (fitted + residual)[at, k]
            made.append(Drawn(label, x[at], y, residual[at, k], bars, curve))
    return name, made


def _bars(
    rows: EquationRows, found: Fit, batch: Batch, spreads: Mapping[str, Array], response: set[str]
) -> Array | None:
    """The standard uncertainties of the response's numbers, a row each; None where none is known."""
    count = len(next(iter(batch.values())))
    bar = spreads.get("")
    if found.likelihood:  # of counts, as many draw them; of none that of one
        counts = rows.residual_parts(rows.response(batch)).reshape(count, -1)
        return np.sqrt(np.maximum(counts, 1))
    if own := [n for n in spreads if n in response]:
        _, _, slopes = rows.residuals(found.values, batch, own)
        wide = {n: rows.spread_over(spreads[n], count) for n in own}
        bar = np.sqrt(sum(np.square(slopes[n] * wide[n]) for n in own))
        return bar.reshape(count, -1)
    return None if bar is None else rows.spread_over(bar, count).reshape(count, -1)


def _curves(rows: EquationRows, found: Fit, batch: Batch) -> list[tuple[Array, Array | None]]:
    """The model's numbers at points, each with its standard uncertainty by that of the parameters."""
    count = len(next(iter(batch.values())))
    fitted = rows.residual_parts(rows.written(found.values, batch)["fitted"]).reshape(count, -1)
    spread = None
    if rows.split and np.isfinite(found.covariance).all():
        _, jac, _ = rows.residuals(found.values, batch)
        # The diagonal of J @ C @ J.T, without the square matrix of all points. Rounding can make it
        # -1e-20 where the model does not depend on the parameters.
        squares = ((jac @ found.covariance) * jac).sum(1)
        spread = np.sqrt(np.maximum(squares, 0)).reshape(count, -1)
    return [
        (fitted[:, k], None if spread is None else spread[:, k]) for k in range(fitted.shape[1])
    ]


def _usage(message: str, hint: str | None = None) -> LanguageError:
    return LanguageError(message, kind="usage", hint=hint)


def _failed(message: str, hint: str | None = None) -> LanguageError:
    return LanguageError(message, kind="value", usage=False, hint=hint)
