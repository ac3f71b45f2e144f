"""An equation over the rows of a table: its residuals and their derivatives, in memory or in passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import sub
from typing import Any

import numpy as np

from gradcli.columns.optimize.least_squares import Array, At
from gradcli.columns.optimize.spaces import Space
from gradcli.columns.streaming.mapped_program import Rows
from gradcli.columns.streaming.passes import Runner
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.engine.registry import table
from gradcli.engine.system import dtypes
from gradcli.engine.system.cascaded_sums import Tree, add_reduce
from gradcli.language import parse, run
from gradcli.language.equations import sides
from gradcli.language.located_errors import LanguageError, error_at
from gradcli.operators.primitives import lapack
from gradcli.tables.parts import Part, columns_of

Batch = Mapping[str, Array]
_CORRECTIONS = 100  # times that the corrections of the data are improved at a point
_SETTLED = 1e-13  # of their uncertainties, a change of theirs that is none


class EquationRows(Space):
    """The residuals `response - model` of an equation, whose program is that of one row.

    start: the parameters, numbers or arrays. fixed: the arrays that are the same for all rows and are no
    parameters. The response is the side without parameters, if there is one, else the left.
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
        self._made: dict[tuple[str, ...], Rows] = {}

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

    def look(self, row: Batch) -> set[str]:
        """Tell the sides apart by a row; return the columns that are on the response's side alone."""
        left, right = (self._reached(row, k) for k in (0, 1))
        self.turned = bool(left & self.start.keys()) and not right & self.start.keys()
        one, other = (right, left) if self.turned else (left, right)
        self.split = not one & self.start.keys()
        if not (one | other) & self.start.keys():
            raise self._refused("the equation depends on no parameter", "it has nothing to fit")
        return one - other if self.split else set()

    def response_text(self) -> str:
        """How the response's side is written."""
        program = sides(parse(self.source))[0]
        pair = program.children(len(program) - 3)
        return self.source[slice(*program.span(pair[self.turned]))]

    def _reached(self, row: Batch, side: int) -> set[str]:
        """The names that a side depends on."""
        given = {**self.start, **row}
        tensors = {n: wrap(np.asarray(a, np.float64)[()], True) for n, a in given.items()}
        program, relations = sides(parse(self.source))
        if len(relations) > 1:
            raise self._refused("fit takes one equation", "put all of it into one")
        fixed = {n: wrap(np.asarray(a)[()]) for n, a in self.fixed.items()}
        value = run(program, {**self.loaded, **fixed, **tensors}, write=lambda text: None).value
        found = value[side]
        if isinstance(found, Tensor):
            if found.shape or found.is_complex():
                kind = f"shape {tuple(found.shape)}" if found.shape else "a complex number"
                raise self._refused(
                    f"a side of the equation of a row is one real number, and here {kind}",
                    "as in sum(…), dot(w, x) or abs(…)",
                )
            if found.requires_grad:
                found.backward()
        return {n for n, t in tensors.items() if t.grad is not None}

    def _refused(self, message: str, hint: str | None = None) -> LanguageError:
        program = parse(self.source)
        error = ValueError(message)
        return error_at(error, source=self.source, span=program.value_span, hint=hint)

    def _function(self, of: Callable[[Any, Any], Any]) -> Callable[..., Any]:
        program, loaded = sides(parse(self.source))[0], self.loaded

        def function(**tensors: Any) -> Any:
            left, right = run(program, {**loaded, **tensors}, write=lambda text: None).value
            return of(right, left) if self.turned else of(left, right)

        return function

    def _run(
        self, of: Callable[[Any, Any], Any], x: Array, wrt: Sequence[str], batch: Batch
    ) -> Any:
        table.base()  # operators of tensors are primitives of the table
        dtypes.set_default_dtype(dtypes.float64)
        key = (of.__name__, *wrt)
        rows = self._made.get(key)
        if rows is None:
            shared = {**self.fixed, **self.start}
            rows = Rows(self._function(of), shared, wrt, stops=True, native=self.native)
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
        """(the residuals of rows, their Jacobian by the parameters, and by the columns `also`)."""
        found = self._run(sub, x, [*self.start, *also], batch)
        rows = len(found.values[""])
        blocks = [found.gradients[n].reshape(rows, -1) for n in self.start]
        return found.values[""], np.hstack(blocks), {n: found.gradients[n] for n in also}

    def written(self, x: Array, batch: Batch) -> dict[str, Array]:
        """What a table of the fit has for rows: `fitted`, the model's side, and `residual`."""
        fitted, residual = self._run(_both, x, (), batch).values.values()
        return {"fitted": fitted, "residual": residual}

    def both(self, **tensors: Any) -> Any:
        """The same of one row, as a function of tensors."""
        return self._function(_both)(**tensors)


def _both(response: Any, model: Any) -> Any:
    return model, response - model


# -- in memory ------------------------------------------------------------------------------------
class InMemory:
    """The weighted residuals of all rows.

    deviation: standard uncertainties of the response; None where nothing is known of it. inputs: those of
    columns on the model's side. Each of their numbers is corrected such that its own distance and that of
    the response are least together (orthogonal distances: Boggs, Byrd and Schnabel, SIAM J. Sci. Stat.
    Comput. 8, 1987). The corrections of a row are no concern of any other, so that they are found for given
    parameters, and what is left is a problem of the parameters alone, with the same minimum and gradient.
    """

    def __init__(
        self, rows: EquationRows, batch: Batch, deviation: Any, inputs: Mapping[str, Array]
    ) -> None:
        self.rows, self.batch, self.inputs = rows, dict(batch), dict(inputs)
        self.deviation = 1.0 if deviation is None else deviation
        self.count = len(next(iter(batch.values())))
        self.corrections = {n: np.zeros(self.count) for n in inputs}

    def at(self, x: Array) -> tuple[Array, Array]:
        """(residuals, Jacobian) at a point."""
        for _ in range(_CORRECTIONS):
            moved = {n: self.batch[n] + c for n, c in self.corrections.items()}
            r, jac, slopes = self.rows.residuals(x, {**self.batch, **moved}, [*self.inputs])
            whole = self.effective(slopes)
            r = r - sum(slopes[n] * c for n, c in self.corrections.items())
            found = {n: -u * u * slopes[n] * r / whole**2 for n, u in self.inputs.items()}
            moves = [np.abs(found[n] - self.corrections[n]) / u for n, u in self.inputs.items()]
            self.corrections = {n: np.nan_to_num(c, posinf=0, neginf=0) for n, c in found.items()}
            if not any((move > _SETTLED).any() for move in moves):
                break
        return r / whole, jac / whole[:, None]

    def effective(self, slopes: Mapping[str, Array]) -> Array:
        """The standard uncertainties of the residuals, those of the inputs by their slopes included."""
        squares = [np.square(slopes[n] * u) for n, u in self.inputs.items()]
        found = np.sqrt(np.square(self.deviation) + sum(squares))
        return np.broadcast_to(found, (self.count,))


# -- in passes ------------------------------------------------------------------------------------
class PassSums:
    """The normal equations at a point as sums over the rows of a table, whoever computes its parts.

    It stands where `streaming` has a `Work`: the sums of parts are combined in a fixed tree, and those of
    a batch are made by `cascaded_sums`, so that their bits are the same for any number of workers. The
    last parameter's place is the residuals', and behind it stands the response's square.
    """

    def __init__(
        self,
        rows: EquationRows,
        names: Sequence[str],
        columns: Mapping[str, Sequence[int]],
        vectors: set[str],
        deviation: int | float | None,
        missing: str,
    ) -> None:
        self.rows, self.names, self.columns = rows, list(names), dict(columns)
        self.vectors, self.deviation, self.missing = vectors, deviation, missing  # None: 1
        self.dtype = "float64"

    def combine(self, number: int) -> Callable[[Any, Any], Any]:
        """How the sums of two runs of rows are combined."""
        return _added

    def run_part(self, number: int, values: Any, part: Part) -> Any:
        """The sums of a part at the point `values[0]`; None where it has no rows."""
        total = Tree(_added)
        for batch, deviation in self.batches(part):
            r, jac, _ = self.rows.residuals(values[0], batch)
            wide = np.hstack([jac, r[:, None]]) / np.reshape(deviation, (-1, 1))
            columns = np.ascontiguousarray(wide.T)
            sums = [[add_reduce(a * b) for b in columns] for a in columns]
            total.add(np.array(sums))
        return total.result()

    def batches(self, part: Part) -> Iterator[tuple[dict[str, Array], Any]]:
        """The rows of a part as arrays by name, and their deviations."""
        wanted = list(dict.fromkeys(i for found in self.columns.values() for i in found))
        if isinstance(self.deviation, int):
            wanted = [*dict.fromkeys([*wanted, self.deviation])]
        for table_rows in part.batches([self.names[i] for i in wanted]):
            arrays = columns_of(table_rows, self.names, wanted, self.missing)
            if not len(arrays[0]):
                continue
            read = {i: a.astype(np.float64) for i, a in zip(wanted, arrays, strict=True)}
            deviation = self.deviation
            rows = gathered(read, self.columns, self.vectors)
            yield rows, read[deviation] if isinstance(deviation, int) else deviation or 1.0


def gathered(
    read: Mapping[int, Array], columns: Mapping[str, Sequence[int]], vectors: set[str]
) -> dict[str, Array]:
    """Columns by the variables that they are; those of a vector side by side."""
    return {
        n: np.stack([read[i] for i in found], 1) if n in vectors else read[found[0]]
        for n, found in columns.items()
    }


def _added(one: Any, other: Any) -> Any:
    if one is None or other is None:
        return one if other is None else other
    return one + other


def by_passes(sums: PassSums, parts: list[Part], runner: Runner, told: Callable[[int], None]) -> At:
    """Residuals and Jacobian of as many rows as there are parameters and one more, with the same normal
    equations as the whole table: SciPy's methods know nothing else of them."""

    def at(x: Array) -> tuple[Array, Array]:
        total = runner.sums(sums, 0, {0: x}, parts, told)  # type: ignore[arg-type]
        if not np.isfinite(total).all():
            return np.full(len(total), np.inf), np.zeros((len(total), len(x)))
        lengths = np.sqrt(np.diagonal(total))
        lengths = np.where(lengths > 0, lengths, 1.0)
        values, vectors = lapack.eigh(total / np.outer(lengths, lengths))
        root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T * lengths
        return root[:, -1], root[:, :-1]

    return at
