"""An expression of one row, run over many: one way in, `Rows`, whatever is the fastest way that is exact.

A row's program is recorded once. Where it is made of elementwise calls on numbers alone, those same calls
take whole columns: each element of a column meets what it met as a number. Otherwise the recorded program
runs row by row, and what cannot be recorded (its path depends on the numbers) runs on the tape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.engine.tensor import Tensor, wrap
from gradcli.plan.compiled import Plan
from gradcli.plan.graph import live
from gradcli.plan.record import Recording, Untraceable, record
from gradcli.plan.straight import program

Arrays = dict[str, Any]
REFUSALS = (RuntimeError, TypeError, ValueError, IndexError, ArithmeticError)


class Results:
    """What rows gave: `values`, the parts of their value by suffix ("", "[0]", "_1", …), and `gradients` by
    name, each with the rows in its first dimension; `refused`, the rows for which there is none, and why.
    """

    __slots__ = ("gradients", "refused", "values")

    def __init__(self, values: Arrays, gradients: Arrays, refused: dict[int, Exception]) -> None:
        self.values, self.gradients, self.refused = values, gradients, refused


class Rows:
    """A function of tensors, called for every row.

    function: takes the names of `row` and `shared` as keywords and gives a tensor, a number, or a tuple of
    them. shared: arrays that are the same for all rows. wrt: what to differentiate by; the value must then
    be one number.

    `reason` says why rows run one by one, once some have run; None where they run together. `on_the_tape`
    is the same where not even one row could be recorded.
    """

    def __init__(
        self, function: Callable[..., Any], shared: Mapping[str, Any], wrt: Sequence[str]
    ) -> None:
        self.function, self.shared, self.wrt = function, dict(shared), list(wrt)
        self.reason: str | None = None
        self.on_the_tape: str | None = None
        self._plans: dict[Any, Callable[[Arrays, int], Results]] = {}

    def __call__(self, batch: Mapping[str, Any], rows: int) -> Results:
        """The values and gradients of the rows of a batch: arrays by name, rows first."""
        if not rows:
            return Results({}, {}, {})
        key = tuple((name, a.shape[1:], a.dtype.char) for name, a in batch.items())
        run = self._plans.get(key)
        if run is None:
            run = self._plans[key] = self._planned({name: a[0] for name, a in batch.items()})
        return run(dict(batch), rows)

    # -- the ways ------------------------------------------------------------------------------------
    def _planned(self, first: Arrays) -> Callable[[Arrays, int], Results]:
        variables = {**self.shared, **first}
        try:
            found = record(
                self.function, variables, wrt=frozenset(self.wrt), backward=bool(self.wrt)
            )
            if self.wrt and found.result.node is None:
                raise Untraceable("nothing requires grad")
        except Untraceable as reason:
            self.reason = self.on_the_tape = str(reason)
            return self._on_the_tape
        if _is_elementwise(found):
            return _together(found, self.shared)
        self.reason = "not every call in it takes whole columns"
        return self._one_by_one(found, list(variables))

    def _one_by_one(self, found: Recording, names: list[str]) -> Callable[[Arrays, int], Results]:
        plan = Plan(found, threads=1)

        def run(batch: Arrays, rows: int) -> Results:
            values: list[Any] = []
            grads: list[list[Any]] = [[] for _ in plan.names]
            columns = [batch.get(name) for name in names]
            fixed = [self.shared.get(name) for name in names]
            for row in range(rows):
                given = [
                    known if column is None else column[row]
                    for column, known in zip(columns, fixed, strict=True)
                ]
                try:
                    value, *found_grads = plan.run(*given)
                except Exception:  # the tape says it in PyTorch's words, and for which row
                    return self._on_the_tape(batch, rows)
                values.append(value)
                for kept, grad in zip(grads, found_grads, strict=True):
                    kept.append(grad)
            gradients = {
                name: _stack(kept, self._like(name, batch), rows)
                for name, kept in zip(plan.names, grads, strict=True)
            }
            return Results(_parts("", np.stack([np.asarray(v) for v in values])), gradients, {})

        return run

    def _on_the_tape(self, batch: Arrays, rows: int) -> Results:
        """Row by row, as `grad` does it."""
        values: list[Any] = []
        grads: dict[str, list[Any]] = {name: [] for name in self.wrt}
        refused: dict[int, Exception] = {}
        for row in range(rows):
            given = {**self.shared, **{name: a[row] for name, a in batch.items()}}
            tensors = {n: wrap(np.asarray(a)[()], n in self.wrt) for n, a in given.items()}
            try:
                value = self.function(**tensors)
                if self.wrt:
                    if not isinstance(value, Tensor):
                        raise TypeError(
                            f"the value is {_kind(value)}, not a tensor: there is no gradient"
                        )
                    value.backward()
            except REFUSALS as error:
                refused[row] = error
                values.append(None)
                continue
            except Exception as error:
                if not hasattr(error, "render"):  # an error of the language, with its place
                    raise
                refused[row] = error
                values.append(None)
                continue
            values.append(value)
            for name, kept in grads.items():
                grad = tensors[name]._grad
                kept.append(None if grad is None else grad.array)
        shown = [value for value in values if value is not None]
        kept_rows = rows - len(refused)
        gradients = {n: _stack(kept, self._like(n, batch), kept_rows) for n, kept in grads.items()}
        found = Results(_values(shown), gradients, refused)
        return _spread(found, rows) if refused and shown else found

    def _like(self, name: str, batch: Arrays) -> Any:
        return batch[name][0] if name in batch else self.shared[name]


def _is_elementwise(found: Recording) -> bool:
    """Whether a recorded program does nothing but elementwise calls on arrays without dimensions."""
    return all(
        not o.shape and o.kind in ("input", "constant", "elementwise") for o in live(found.outputs)
    ) and all(not o.shape for o in found.inputs.values())


def _together(found: Recording, shared: Arrays) -> Callable[[Arrays, int], Results]:
    """The recorded calls on whole columns."""
    run = program(found.outputs, list(found.inputs.values()))
    names = [name for name, g in found.gradients.items() if g is not None]

    def together(batch: Arrays, rows: int) -> Results:
        value, *grads = run(*[batch[n] if n in batch else shared[n] for n in found.inputs])
        gradients = {name: np.zeros(rows, np.asarray(value).dtype) for name in found.gradients}
        for name, grad in zip(names, grads, strict=True):
            gradients[name] = np.broadcast_to(grad, (rows,))
        return Results({"": np.broadcast_to(value, (rows,))}, gradients, {})

    return together


def _stack(kept: list[Any], like: Any, rows: int) -> Any:
    """Gradients of rows, one below the other; what a row does not depend on has 0."""
    zero = np.zeros(np.shape(like), np.asarray(like).dtype)
    if not kept:
        return np.zeros((rows, *zero.shape), zero.dtype)
    return np.stack([zero if grad is None else np.asarray(grad) for grad in kept])


def _kind(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _values(values: list[Any]) -> Arrays:
    """The parts of the rows' values, which must be alike."""
    if not values:
        return {}
    first = values[0]
    if isinstance(first, tuple | list):
        found: Arrays = {}
        for k in range(len(first)):
            if any(not isinstance(v, tuple | list) or len(v) != len(first) for v in values):
                raise ValueError("the rows' values are not alike: some have more items than others")
            found.update({f"_{k}{s}": a for s, a in _values([v[k] for v in values]).items()})
        return found
    arrays: list[Any] = []
    for value in values:
        array = np.asarray(value.array if isinstance(value, Tensor) else value)
        if array.dtype.kind not in "biufc":
            raise TypeError(f"the value is {_kind(value)}, not a number or a tensor")
        if array.shape != np.shape(arrays[0] if arrays else array):
            raise ValueError(
                f"the rows' values are not alike: shapes {arrays[0].shape} and {array.shape}"
            )
        arrays.append(array)
    return _parts("", np.stack(arrays))


def _parts(suffix: str, array: Any) -> Arrays:
    """A column for every element of a row's value."""
    if array.ndim == 1:
        return {suffix: array}
    return {
        f"{suffix}[{','.join(map(str, index))}]": array[(slice(None), *index)]
        for index in np.ndindex(array.shape[1:])
    }


def elements(name: str, array: Any) -> Arrays:
    """Columns for the elements of an array whose first dimension is the rows: `w.grad[0]`, …"""
    return _parts(name, array)


def _spread(found: Results, rows: int) -> Results:
    """Results of some rows among all of them; the others are nan."""
    there = np.array([row not in found.refused for row in range(rows)])

    def wide(array: Any) -> Any:
        kind = np.result_type(array.dtype, np.float64) if array.dtype.kind in "biu" else array.dtype
        made = np.full((rows, *array.shape[1:]), np.nan, kind)
        made[there] = array
        return made

    values = {name: wide(a) for name, a in found.values.items()}
    gradients = {name: wide(a) for name, a in found.gradients.items()}
    return Results(values, gradients, found.refused)


__all__ = ["Results", "Rows", "elements"]
