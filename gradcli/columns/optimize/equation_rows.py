"""An equation over the rows of a table: its residuals and their derivatives, in memory or in passes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from operator import sub
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.columns.optimize.least_squares import Array, by_differences
from gradcli.columns.optimize.spaces import Space, tensor_of
from gradcli.columns.optimize.stated_uncertainties import Stated
from gradcli.columns.streaming.mapped_program import Rows
from gradcli.columns.streaming.passes import Runner
from gradcli.columns.streaming.row_formulas import whole_numbers
from gradcli.engine.core.tensor import wrap
from gradcli.engine.registry import table
from gradcli.engine.system import dtypes
from gradcli.engine.system.cascaded_sums import Tree, add_reduce
from gradcli.language import parse, run
from gradcli.language.equations import sides
from gradcli.language.located_errors import LanguageError, error_at
from gradcli.language.rewritten_sources import last_items
from gradcli.operators.primitives import lapack
from gradcli.tables.parts import Part, columns_of

if TYPE_CHECKING:
    from gradcli.columns.streaming.conditions import Condition
    from gradcli.tables.named_columns import Table

Batch = Mapping[str, Array]
_CORRECTIONS = 100  # times that the corrections of the data are improved at a point
_SETTLED = 1e-13  # of their uncertainties, a change of theirs that is none
_BLOCK = 1 << 14  # rows that are computed at once: what they need stays in the cache


class Component(NamedTuple):
    """One real number of an equation's residual. at: its index. part: "real", "imag", or "" of a real one."""

    at: tuple[int, ...] = ()
    part: str = ""


class EquationRows(Space):
    """The residuals `response - model` of an equation, whose program is that of one row.

    start: the parameters, numbers or arrays. fixed: the arrays that are the same for all rows and are no
    parameters. The response is the side without parameters, if there is one, else the left. A side may be
    a vector (a list is one), an array or complex: each real number of it is a residual of its own, and
    those of a row lie side by side. shape, components: of a row's residual, known once `look` was called.
    """

    def __init__(
        self,
        source: str,
        loaded: Mapping[str, Any],
        start: Mapping[str, Array],
        fixed: Mapping[str, Array],
    ) -> None:
        super().__init__(start, fixed)
        self.source, self.loaded = source, dict(loaded)
        self.turned = False  # whether the right side is the response
        self.split = False  # whether a side has no parameters
        self.native = False  # whether batches run as C
        self.shape: tuple[int, ...] = ()
        self.components = [Component()]
        self._made: dict[tuple[Any, ...], Rows] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_made": {}}

    @property
    def labels(self) -> list[str]:
        """A name for each number of the parameters: `b`, `w[0]`, `w[1]`."""
        return [
            name + (f"[{','.join(map(str, at))}]" if at else "")
            for name, array in self.start.items()
            for at in np.ndindex(array.shape)
        ]

    @property
    def is_complex(self) -> bool:
        """Whether the residual of a row is complex."""
        return bool(self.components[0].part)

    def look(self, row: Batch) -> set[str]:
        """Tell the sides apart by a row; return the columns that are on the response's side alone."""
        (left, at_left), (right, at_right) = (self._reached(row, k) for k in (0, 1))
        # In `a*x + b == y` the parameters stand on the left, so the right side is the data. If both sides
        # have parameters, as in `a*y == b*x`, no side is the data alone: the left is called the response,
        # and no uncertainty or R² can be split off.
        self.turned = bool(left & self.start.keys()) and not right & self.start.keys()
        one, other = (right, left) if self.turned else (left, right)
        self.split = not one & self.start.keys()
        if not (one | other) & self.start.keys():
            raise self._refused("the equation depends on no parameter", "it has nothing to fit")
        # Shapes are compared before anything is broadcast. `[y1, y2] == a*x` would repeat the model for
        # both, which is more often a forgotten item than meant.
        data, model = (at_right, at_left) if self.turned else (at_left, at_right)
        if data.shape != model.shape:
            raise self._refused(
                f"one side of the equation of a row has shape {data.shape}, the other {model.shape}",
                "as many numbers on both sides, as in [u, v] == [a*x, b*x]",
            )
        if model.dtype.kind == "c" and data.dtype.kind != "c":
            raise self._refused(
                "the measured side is real, and the other a complex number",
                "as in abs(…) or real(…)",
            )
        self.shape = data.shape
        if 0 in self.shape:
            raise self._refused("the equation of a row has no elements")
        parts = (
            ("real", "imag") if at_left.dtype.kind == "c" or at_right.dtype.kind == "c" else ("",)
        )
        self.components = [Component(at, part) for at in np.ndindex(self.shape) for part in parts]
        self._made = {}
        return one - other if self.split else set()

    def response_text(self) -> str:
        """How the response's side is written."""
        program = sides(parse(self.source))[0]
        pair = program.children(len(program) - 3)
        return self.source[slice(*program.span(pair[self.turned]))]

    def component_texts(self) -> list[str]:
        """The names of what `components` are: the items of a list as they are written, or `re(Z)`, `y[0]`."""
        text = self.response_text()
        items = last_items(text) if len(self.shape) == 1 else None
        found = []
        for index, part in self.components:
            name = items[index[0]] if items is not None and len(items) == self.shape[0] else text
            if index and name is text:
                name += f"[{','.join(map(str, index))}]"
            found.append(f"{part[:2]}({name})" if part else name)
        return found

    def _reached(self, row: Batch, side: int) -> tuple[set[str], Array]:
        """The names that a side depends on, and its value."""
        tensors = {n: wrap(np.asarray(a, np.float64)[()], True) for n, a in self.start.items()}
        for name, a in row.items():
            array = np.asarray(a)
            tensors[name] = wrap(array[()], array.dtype.kind in "fc")
        program, relations = sides(parse(self.source))
        if len(relations) > 1:
            raise self._refused(
                "fit takes one equation", "several are one of lists, as in [a, b] == [c, d]"
            )
        fixed = {n: wrap(np.asarray(a)[()]) for n, a in self.fixed.items()}
        value = run(program, {**self.loaded, **fixed, **tensors}, write=lambda text: None).value
        # What a side depends on is asked of the tape, not of the text: in `k = x; y == a*k` the name x
        # stands in neither side. The sum's gradient reaches exactly the variables that matter.
        found = tensor_of(value[side])
        if found.requires_grad:
            real = found if not found.is_complex() else found.real + found.imag
            real.sum().backward()
        reached = {n for n, t in tensors.items() if t.grad is not None}
        return reached, found.detach().array

    def _refused(self, message: str, hint: str | None = None) -> LanguageError:
        program = parse(self.source)
        error = ValueError(message)
        return error_at(error, source=self.source, span=program.value_span, hint=hint)

    def _function(
        self, of: Callable[[Any, Any], Any], component: Component | None
    ) -> Callable[..., Any]:
        """`of(response, model)` of one row; of a component, its number."""
        program, loaded = sides(parse(self.source))[0], self.loaded

        def function(**tensors: Any) -> Any:
            found = run(program, {**loaded, **tensors}, write=lambda text: None).value
            left, right = (tensor_of(v) if isinstance(v, tuple | list) else v for v in found)
            value = of(right, left) if self.turned else of(left, right)
            if component is None:
                return value
            value = value[component.at] if component.at else value
            return getattr(value, component.part) if component.part else value

        return function

    def _run(
        self,
        of: Callable[[Any, Any], Any],
        x: Array,
        wrt: Sequence[str],
        batch: Batch,
        component: Component | None = None,
    ) -> Any:
        # Programs are compiled once per kind of question (`residual`, `fitted` …) and component. Between
        # two points only the parameters' values change; they are what all rows share.
        table.base()  # operators of tensors are primitives of the table
        dtypes.set_default_dtype(dtypes.float64)
        key = (of.__name__, component, *wrt)
        rows = self._made.get(key)
        if rows is None:
            shared = {**self.fixed, **self.start}
            function = self._function(of, component)
            rows = Rows(function, shared, wrt, stops=True, native=self.native)
            self._made[key] = rows
        rows.shared.update(self.shaped(x))
        count = len(next(iter(batch.values())))
        found = rows(batch, count)
        if found.refused:
            error = found.refused[min(found.refused)]
            raise error if isinstance(error, LanguageError) else self._refused(str(error))
        return found

    def residuals(
        self, x: Array, batch: Batch, also: Sequence[str] = ()
    ) -> tuple[Array, Array, dict[str, Array]]:
        """(the residuals, their Jacobian by the parameters, and by the columns `also`): the components of
        the first row, those of the second, …"""
        values, jacobians = [], []
        slopes: dict[str, list[Array]] = {n: [] for n in also}
        for component in self.components:
            found = self._run(sub, x, [*self.start, *also], batch, component)
            rows = len(found.values[""])
            values.append(found.values[""])
            blocks = [found.gradients[n].reshape(rows, -1) for n in self.start]
            jacobians.append(np.hstack(blocks))
            for name in also:
                slopes[name].append(found.gradients[name])
        # Components are computed one after the other, because a compiled program has one number a row.
        # Their results are interleaved afterwards, row by row: (row 0, re), (row 0, im), (row 1, re), …
        # so that a row's residuals lie side by side, as its weights do.
        if len(values) == 1:
            return values[0], jacobians[0], {n: s[0] for n, s in slopes.items()}
        jac = np.stack(jacobians, 1).reshape(-1, jacobians[0].shape[1])
        return _interleaved(values), jac, {n: _interleaved(s) for n, s in slopes.items()}

    def written(self, x: Array, batch: Batch) -> dict[str, Array]:
        """What a table of the fit has for rows: `fitted`, the model's side, and `residual`."""
        found = self._run(_both, x, (), batch).values
        return {"fitted": self._whole(found, "_0"), "residual": self._whole(found, "_1")}

    def response(self, batch: Batch) -> Array:
        """The side without parameters, for rows."""
        found = self._run(_response, self.flat(), (), batch).values
        whole = self._whole(found, "")
        count = len(next(iter(batch.values())))
        return np.broadcast_to(whole, (count, *self.shape))

    def _whole(self, found: Mapping[str, Array], prefix: str) -> Array:
        """The parts of a value that begin so, as an array with the rows first."""
        parts = [array for name, array in found.items() if name.startswith(prefix)]
        if not self.shape or len(parts) == 1:
            return parts[0].reshape(-1, *[1] * len(self.shape))
        return np.stack(parts, 1).reshape(-1, *self.shape)

    def spread_over(self, array: Any, rows: int) -> Array:
        """Numbers of rows, or of rows and their components, as those of residuals."""
        array = np.asarray(array, np.float64)
        many = len(self.components)
        if array.shape in ((), (rows,)):
            return np.repeat(np.broadcast_to(array, (rows,)), many)
        if len(array) != rows:
            raise self._refused(
                f"an uncertainty has {len(array)} rows, and the equation {rows}",
                "give one number, or one for each row",
            )
        array = array.reshape(rows, -1)
        if array.shape[1] * (2 if self.is_complex else 1) != many:
            raise self._refused(
                f"an uncertainty of {array.shape[1]} numbers a row, and the equation has {many}",
                "give one number, or one for each",
            )
        return np.repeat(array, many // array.shape[1], axis=1).ravel()

    def residual_parts(self, array: Array) -> Array:
        """An array of rows of the residual's shape as the numbers that residuals are."""
        if self.is_complex:
            array = np.stack([np.real(array), np.imag(array)], -1)
        return array.reshape(-1)

    def both(self, **tensors: Any) -> Any:
        """The same of one row, as a function of tensors."""
        return self._function(_both, None)(**tensors)


def _both(response: Any, model: Any) -> Any:
    return model, response - model


def _response(response: Any, model: Any) -> Any:
    return response


def _interleaved(columns: Sequence[Array]) -> Array:
    return np.stack(columns, 1).ravel()


# -- in memory ------------------------------------------------------------------------------------
class Related(NamedTuple):
    """How uncertainties depend on each other: covariances of two inputs, row by row; of an input and the
    residual through its response; and a factor W of the residuals of all rows, inv(cholesky(R)) for their
    correlations R, or None."""

    inputs: Mapping[tuple[str, str], Array]
    response: Mapping[str, Array]
    factor: Array | None

    def __bool__(self) -> bool:
        return bool(self.inputs or self.response or self.factor is not None)


class Priors(NamedTuple):
    """What is known of parameters besides the data: the places of their numbers, values, uncertainties."""

    places: Array
    values: Array
    spreads: Array


def with_priors(priors: Priors | None, x: Array, r: Array, jac: Array) -> tuple[Array, Array]:
    """Residuals and Jacobian with those of the priors behind them: (x - value)/uncertainty."""
    if priors is None:
        return r, jac
    more = (x[priors.places] - priors.values) / priors.spreads
    below = np.zeros((len(more), len(x)))
    below[np.arange(len(more)), priors.places] = 1 / priors.spreads
    return np.concatenate([r, more]), np.vstack([jac, below])


class InMemory:
    """The weighted residuals of all rows.

    deviation: standard uncertainties of the response; None where nothing is known of it. inputs: those of
    columns on the model's side. Each of their numbers is corrected such that its own distance and that of
    the response are least together (orthogonal distances: Boggs, Byrd and Schnabel, SIAM J. Sci. Stat.
    Comput. 8, 1987). The corrections of a row are no concern of any other, so that they are found for given
    parameters, and what is left is a problem of the parameters alone, with the same minimum and gradient.
    related: how the uncertainties of a row, or of different rows, depend on each other. priors: what is known
    of parameters besides, as residuals behind those of the rows.
    """

    def __init__(
        self,
        rows: EquationRows,
        batch: Batch,
        deviation: Any,
        inputs: Mapping[str, Array],
        related: Related | None = None,
        priors: Priors | None = None,
    ) -> None:
        self.priors = priors
        self.related = related or Related({}, {}, None)
        self.rows, self.batch, self.inputs = rows, dict(batch), dict(inputs)
        self.deviation = 1.0 if deviation is None else deviation
        self.count = len(next(iter(batch.values()))) * len(rows.components)
        self.corrections = {n: np.zeros(self.count) for n in inputs}

    def at(self, x: Array) -> tuple[Array, Array]:
        """(residuals, Jacobian) at a point."""
        # The best correction d of each input, for given parameters. With r the residual at the moved
        # data, s its slope there and c the correction so far, the residual at the data as given is r -
        # s*c to first order, and
        #
        #     ((r - s*c + s*d) / deviation)**2 + (d/u)**2
        #
        # is least at d = -u**2 * s * (r - s*c) / (deviation**2 + (s*u)**2). For `y == a*x` one turn is
        # exact, since s is the same everywhere. For `y == exp(a*x)` s is taken anew at the moved data,
        # until the corrections stay. Then (r - s*c) / sqrt(deviation**2 + (s*u)**2) is both distances in
        # one number.
        for _ in range(_CORRECTIONS):
            moved = {n: self.batch[n] + c for n, c in self.corrections.items()}
            r, jac, slopes = self.rows.residuals(x, {**self.batch, **moved}, [*self.inputs])
            moves_by = self._towards(slopes)
            whole = self.effective(slopes)
            r = r - sum(slopes[n] * c for n, c in self.corrections.items())
            found = {n: -moves_by[n] * r / whole**2 for n in self.inputs}
            moves = [np.abs(found[n] - self.corrections[n]) / u for n, u in self.inputs.items()]
            self.corrections = {n: np.nan_to_num(c, posinf=0, neginf=0) for n, c in found.items()}
            if not any((move > _SETTLED).any() for move in moves):
                break
        r, jac = r / whole, jac / whole[:, None]
        if (factor := self.related.factor) is not None:
            r, jac = factor @ r, factor @ jac
        return with_priors(self.priors, x, r, jac)

    def _towards(self, slopes: Mapping[str, Array]) -> dict[str, Array]:
        """For each input its row of V @ s, with the covariances V and the slopes s of the residual.

        Independent inputs have u**2 * s. In general the corrections d that are least in their own distances
        d.T @ inv(V) @ d, where the residual becomes 0, are -V @ s * r / (s.T @ V @ s), and the response is
        one of the numbers, with a slope of its own.
        """
        found = {n: u * u * slopes[n] for n, u in self.inputs.items()}
        for (one, other), covariance in self.related.inputs.items():
            found[one] = found[one] + covariance * slopes[other]
            found[other] = found[other] + covariance * slopes[one]
        return {n: f + self.related.response.get(n, 0.0) for n, f in found.items()}

    def effective(self, slopes: Mapping[str, Array]) -> Array:
        """The standard uncertainties of the residuals, those of the inputs by their slopes included."""
        related = self.related
        squares = [np.square(slopes[n] * u) for n, u in self.inputs.items()]
        squares += [2 * slopes[a] * slopes[b] * c for (a, b), c in related.inputs.items()]
        squares += [2 * slopes[n] * c for n, c in related.response.items()]
        square = np.square(self.deviation) + sum(squares)
        if self.related and not (square > 0).all():
            raise LanguageError(
                "the correlations leave a residual without an uncertainty: its weight would be infinite",
                kind="value",
                usage=False,
                hint="make a correlation smaller than 1",
            )
        return np.broadcast_to(np.sqrt(square), (self.count,))

    def spreads(self, x: Array, slopes: Mapping[str, Array]) -> tuple[Array, Array]:
        """(the standard uncertainties of the residuals, those of the response alone) at parameters x."""
        return self.effective(slopes), self.deviation


def in_blocks(batch: Batch, size: int = 1 << 17) -> Iterator[tuple[int, Batch]]:
    """(the first row, the rows) of each block of a batch."""
    for start in range(0, len(next(iter(batch.values()))), size):
        yield start, {n: a[start : start + size] for n, a in batch.items()}


class InBlocks:
    """The weighted residuals of many rows, as `ByPasses` has those of a table: their normal equations alone,
    summed over blocks of rows that fit into the cache. No Jacobian of all rows is made."""

    def __init__(self, rows: EquationRows, batch: Batch, deviation: Any) -> None:
        self.rows, many = rows, len(rows.components)
        weights = 1 / np.asarray(deviation)
        self.parts = [
            (part, weights[start * many : (start + _BLOCK) * many] if weights.ndim else weights)
            for start, part in in_blocks(batch, _BLOCK)
        ]

    def at(self, x: Array) -> tuple[Array, Array]:
        """(residuals, Jacobian) of one row more than there are parameters."""
        total = np.zeros((len(x) + 1, len(x) + 1))
        for part, weights in self.parts:
            r, jac, _ = self.rows.residuals(x, part)
            # One product has all that is needed: with columns [J, r] the sums are J.T @ J, J.T @ r and r
            # @ r. They lie transposed, so that BLAS reads along memory.
            wide = np.empty((len(x) + 1, len(r)))
            wide[:-1], wide[-1] = jac.T, r
            wide *= weights
            total += wide @ wide.T
        return compressed(total)


def compressed(total: Array) -> tuple[Array, Array]:
    """Residuals and a Jacobian of few rows, whose normal equations `total` holds, the residuals last."""
    # SciPy's methods ask for residuals and a Jacobian, not for sums. Any matrix [J, r] with the same
    # product [J, r].T @ [J, r] has the same minimum, gradient and covariance; a square root of the sums
    # is the smallest. It is taken by eigenvalues, since Cholesky's fails where rounding made one
    # negative, and in variables of length 1, so that parameters of very different size (1e-9 and 1e6)
    # keep their digits.
    if not np.isfinite(total).all():
        return np.full(len(total), np.inf), np.zeros((len(total), len(total) - 1))
    lengths = np.sqrt(np.diagonal(total))
    lengths = np.where(lengths > 0, lengths, 1.0)
    values, vectors = lapack.eigh(total / np.outer(lengths, lengths))
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T * lengths
    return root[:, -1], root[:, :-1]


# -- in passes ------------------------------------------------------------------------------------
class PassSums:
    """The normal equations at a point as sums over the rows of a table, whoever computes its parts.

    It stands where `streaming` has a `Work`: the sums of parts are combined in a fixed tree, and those of
    a batch are made by `cascaded_sums`, so that their bits are the same for any number of workers. The
    last parameter's place is the residuals', and behind it stands the response's square. The last row
    begins with the number of residuals.

    deviation: of the response. where: the condition of the rows that count. indices: see `gathered`.
    """

    def __init__(
        self,
        rows: EquationRows,
        names: Sequence[str],
        columns: Mapping[str, Sequence[int]],
        vectors: set[str],
        deviation: Stated | None,
        missing: str,
        where: Condition | None = None,
        indices: Collection[str] = (),
    ) -> None:
        self.rows, self.names, self.columns = rows, list(names), dict(columns)
        self.vectors, self.deviation, self.missing = vectors, deviation, missing
        self.where, self.indices = where, list(indices)
        self.dtype = "float64"

    def combine(self, number: int) -> Callable[[Any, Any], Any]:
        """How the sums of two runs of rows are combined."""
        return _added

    def run_part(self, number: int, values: Any, part: Part) -> Any:
        """The sums of a part at the point `values[0]`; None where it has no rows."""
        total = Tree(_added)
        for batch, deviation in self.batches(part):
            r, jac = by_differences(partial(self._residuals, batch), values[0])
            wide = np.hstack([jac, r[:, None]]) / np.reshape(deviation, (-1, 1))
            columns = np.ascontiguousarray(wide.T)
            # Not `columns @ columns.T`: BLAS adds in an order that depends on the machine and its
            # threads, and the result is to have the same bits with any number of workers.
            sums = [[add_reduce(a * b) for b in columns] for a in columns]
            count = np.zeros(len(columns))
            count[0] = len(r)
            total.add(np.array([*sums, count]))
        return total.result()

    def _residuals(self, batch: dict[str, Array], x: Array) -> tuple[Array, Array]:
        r, jac, _ = self.rows.residuals(x, batch)
        return r, jac

    def batches(self, part: Part) -> Iterator[tuple[dict[str, Array], Any]]:
        """The rows of a part as arrays by name, and their deviations."""
        for batch, read in self.rows_of(part):
            if self.deviation is None:
                yield batch, 1.0
                continue
            count = len(next(iter(batch.values())))
            found = self.deviation.of(read, count, partial(self.rows.response, batch))
            yield batch, self.rows.spread_over(found, count)

    def left_out(self, part: Part) -> int:
        """How many rows that count are left out since a number is missing."""
        lost = 0
        for rows, lacking, wanted in self._selected(part):
            arrays = columns_of(rows, self.names, wanted, self.missing)
            lost += lacking + rows.rows - len(arrays[0])
        return lost

    def rows_of(self, part: Part) -> Iterator[tuple[dict[str, Array], dict[int, Array]]]:
        """The rows of a part that count, as arrays by name, and the columns by their places."""
        for rows, _, wanted in self._selected(part):
            arrays = columns_of(rows, self.names, wanted, self.missing)
            read = {i: a.astype(np.float64) for i, a in zip(wanted, arrays, strict=True)}
            if len(read[wanted[0]]):
                yield gathered(read, self.columns, self.vectors, self.indices), read

    def _selected(self, part: Part) -> Iterator[tuple[Table, int, list[int]]]:
        """Its batches: the rows that count, how many are left out for the condition, the columns to read."""
        wanted = [i for found in self.columns.values() for i in found]
        wanted += [] if self.deviation is None else self.deviation.places
        wanted = list(dict.fromkeys(wanted))
        asked = [] if self.where is None else self.where.columns
        for batch in part.batches([*(self.names[i] for i in wanted), *asked]):
            if self.where is None:
                yield batch, 0, wanted
                continue
            rows, lacking = self.where.chosen(batch, self.missing)
            for error in rows.bad.values():
                raise error
            yield rows, lacking, wanted


def gathered(
    read: Mapping[int, Array],
    columns: Mapping[str, Sequence[int]],
    vectors: set[str],
    indices: Collection[str] = (),
) -> dict[str, Array]:
    """Columns by the variables that they are; those of a vector side by side.

    indices: the variables that count elements, whose numbers are whole. Raises LanguageError.
    """
    made = {n: read[found[0]] for n, found in columns.items()}
    for n in vectors.intersection(columns):
        made[n] = np.stack([read[i] for i in columns[n]], 1)
    for name in indices:
        if name in made:
            made[name] = whole_numbers(name, made[name])
    return made


def _added(one: Any, other: Any) -> Any:
    if one is None or other is None:
        return one if other is None else other
    return one + other


class ByPasses:
    """Residuals and Jacobian of as many rows as there are parameters and one more, with the same normal
    equations as the whole table: SciPy's methods know nothing else of them.

    count: the residuals of the table, once it was read. A question that is asked again is no pass.
    """

    def __init__(
        self, sums: PassSums, parts: list[Part], runner: Runner, told: Callable[[int], None]
    ) -> None:
        self.sums, self.parts, self.runner, self.told = sums, parts, runner, told
        self.count = 0
        self._last: tuple[bytes, Any] = (b"", None)

    def __call__(self, x: Array) -> tuple[Array, Array]:
        """At a point."""
        if self._last[0] != x.tobytes():
            self._last = x.tobytes(), self._at(x)
        found: tuple[Array, Array] = self._last[1]
        return found

    def _at(self, x: Array) -> tuple[Array, Array]:
        found = self.runner.sums(self.sums, 0, {0: x}, self.parts, self.told)  # type: ignore[arg-type]
        total, self.count = found[:-1], int(found[-1, 0])
        return compressed(total)
