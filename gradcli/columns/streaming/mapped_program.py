"""Runs an expression of one row over many rows (`Rows`), in the fastest way that is exact.

The program of a row is traced once. If it consists of elementwise calls on scalars, the same calls take
whole columns. Otherwise it is mapped over the rows (`vmap` of `grad_and_value`). A program that branches on
values runs on the tape, row by row; so does a batch in which an error occurred, to find the row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.columns.compiler.straight_line_code import program
from gradcli.engine.core import errors
from gradcli.engine.core.switch import JUMP, KINK, watching
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.language.located_errors import OPERATION_ERRORS, LanguageError, kind_of
from gradcli.transforms.tracing.numpy_program import live
from gradcli.transforms.tracing.numpy_tracer import NumpyTracer, Untraceable, trace_numpy

if TYPE_CHECKING:
    from gradcli.columns.compiler.compiled_function import CompiledFunction

Arrays = dict[str, Any]
_NO_VALUE = "end it with an expression"
_CHUNK = 1 << 14  # rows that are mapped at once


class Results:
    """The results of rows, each with the rows as its first dimension.

    values: the parts of the value by suffix ("", "[0]", "_1", …). gradients: by name. refused: the rows
    without a result, and why.
    """

    __slots__ = ("gradients", "refused", "values")

    def __init__(self, values: Arrays, gradients: Arrays, refused: dict[int, Exception]) -> None:
        self.values, self.gradients, self.refused = values, gradients, refused


class Rows:
    """A function of tensors, called for every row.

    function: takes the names of `row` and `shared` as keywords and gives a tensor, a number, or a tuple of
    them. shared: arrays that are the same for all rows. wrt: what to differentiate by; the value must then
    be one number.

    native: whether batches run as C.
    stops: whether to stop at the first row with an error; the rows after it are refused alike.

    `alone` says why rows run one by one, once some have; None if they run together.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        shared: Mapping[str, Any],
        wrt: Sequence[str],
        stops: bool = False,
        native: bool = False,
    ) -> None:
        self.stops, self.native = stops, native
        self._compiled: CompiledFunction | None = None
        self.function, self.shared, self.wrt = function, dict(shared), list(wrt)
        self.alone: str | None = None
        self.kinked = 0  # rows that lie on a kink or a jump
        self.kink: tuple[str, tuple[int, int] | None] | None = None  # of which operation, where
        self._looks = False
        self._reason: str | None = None  # why it could not be recorded
        self._plans: dict[Any, Callable[[Arrays, int], Results]] = {}

    def __call__(self, batch: Mapping[str, Any], rows: int) -> Results:
        """The values and gradients of the rows of a batch: arrays by name, rows first."""
        if not rows:
            return Results({}, {}, {})
        # A plan holds for one shape and dtype of a row. A column may become one of floats in a later
        # batch, when the first decimal point comes.
        key = tuple((name, a.shape[1:], a.dtype.char) for name, a in batch.items())
        run = self._plans.get(key)
        if run is None:
            run = self._plans[key] = self._planned({name: a[0] for name, a in batch.items()})
        found = run(dict(batch), rows)
        if self._looks:
            self._look(batch)
        return found

    def _look(self, batch: Mapping[str, Any]) -> None:
        """Count the rows of a batch that lie on a kink."""
        from gradcli.transforms.kinks import rows_at_kinks

        try:
            count, name, span = rows_at_kinks(self.function, self.shared, batch, self.wrt)
        except (*OPERATION_ERRORS, LanguageError):
            self._looks = False
            return
        self.kinked += count
        if name and self.kink is None:
            self.kink = name, span

    # -- the ways ------------------------------------------------------------------------------------
    def _planned(self, first: Arrays) -> Callable[[Arrays, int], Results]:
        variables = {**self.shared, **first}
        met: list[Any] = []
        # Looking for kinks costs a second run. Which primitives the program calls is known from the
        # trace, and most programs call none that has a kink.
        watching.append(lambda primitive, *_: met.append(primitive))
        try:
            found = trace_numpy(
                self.function, variables, wrt=frozenset(self.wrt), backward=bool(self.wrt)
            )
        except Untraceable as reason:
            self._reason = str(reason)
            return self._mapped
        finally:
            watching.pop()
        if self.wrt and found.result.node is None:  # refused there in PyTorch's words
            return self._on_the_tape
        if _is_elementwise(found) and not self.native:
            kinds = {point.kind for primitive in met for point in primitive.switch or ()}
            self._looks = bool(self.wrt) and not kinds.isdisjoint((KINK, JUMP))
            return _together(found, self.shared)
        return self._mapped

    def _mapped(self, batch: Arrays, rows: int) -> Results:
        """All rows at once, on batched arrays."""
        from gradcli.transforms.grad import grad_and_value
        from gradcli.transforms.vmap import vmap

        if self.alone is not None or not batch:
            return self._on_the_tape(batch, rows)
        names = [*self.shared, *batch]
        dims = (*[None] * len(self.shared), *[0] * len(batch))

        def function(*tensors: Any) -> Any:
            return self.function(**dict(zip(names, tensors, strict=True)))

        numbers = tuple(names.index(name) for name in self.wrt)
        one = grad_and_value(function, argnums=numbers) if numbers else function
        tensors = [wrap(np.asarray({**self.shared, **batch}[name])[()]) for name in names]
        grads: Any = ()
        try:
            if self.native:
                value = self._natively(vmap(one, in_dims=dims), names)(*tensors)
            else:
                value = vmap(one, in_dims=dims, chunk_size=_CHUNK)(*tensors)
            if numbers:
                grads, value = value
            values = _columns("", value, rows)
        except (*OPERATION_ERRORS, LanguageError, Untraceable) as error:
            return self._row_by_row(batch, rows, error)
        gradients = {n: g.detach().array for n, g in zip(self.wrt, grads, strict=True)}
        return Results(values, gradients, {})

    def _natively(self, mapped: Callable[..., Any], names: list[str]) -> CompiledFunction:
        """The mapped program as C, compiled at the first batch."""
        from gradcli.columns.compiler.compiled_function import CompiledFunction

        if self._compiled is None:

            def function(**tensors: Any) -> Any:
                return mapped(*tensors.values())

            self._compiled = CompiledFunction(function, names, "map", native=True, whole=False)
        return self._compiled

    def _row_by_row(self, batch: Arrays, rows: int, error: BaseException) -> Results:
        """Run the rows of a batch with an error on the tape; if no row fails, all later ones too."""
        # An error of a mapped batch does not say which row it is of. The tape does. If no row fails, the
        # error was the map's (it cannot do what the tape can, as branch on a value), and trying it for
        # every batch would double the time: from then on rows run alone.
        found = self._on_the_tape(batch, rows)
        if not found.refused:
            self.alone = self._reason or str(getattr(error, "message", error)).partition("\n")[0]
        return found

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
                if value is None:
                    raise LanguageError(
                        "the program has no value", kind="value", usage=False, hint=_NO_VALUE
                    )
                if self.wrt:
                    if not isinstance(value, Tensor):
                        raise errors.NoTensorError(kind_of(value))
                    value.backward()
            except (*OPERATION_ERRORS, LanguageError) as error:
                # Rows behind the first error are not computed: the command stops there anyway.
                if self.stops:
                    refused.update(dict.fromkeys(range(row, rows), error))
                    break
                refused[row] = error
                continue
            values.append(value)
            if _shape_of(value) != _shape_of(values[0]):
                break  # which is refused below
            for name, kept in grads.items():
                grad = tensors[name]._grad
                kept.append(None if grad is None else grad.array)
        if not values:
            return Results({}, {}, refused)
        gradients = {n: _stack(kept, self._like(n, batch)) for n, kept in grads.items()}
        found = Results(_values(values), gradients, refused)
        return _spread(found, rows) if refused else found

    def _like(self, name: str, batch: Arrays) -> Any:
        return batch[name][0] if name in batch else self.shared[name]


def _shape_of(value: Any) -> Any:
    """The shape and structure that the values of all rows must share."""
    if isinstance(value, tuple | list):
        return [_shape_of(item) for item in value]
    return np.shape(value.array) if isinstance(value, Tensor) else ()


def _is_elementwise(found: NumpyTracer) -> bool:
    """Whether a trace has only elementwise calls on scalars."""
    return all(
        not o.shape and o.kind in ("input", "constant", "elementwise") for o in live(found.outputs)
    ) and all(not o.shape for o in found.inputs.values())


def _together(found: NumpyTracer, shared: Arrays) -> Callable[[Arrays, int], Results]:
    """The traced calls, run on whole columns."""
    run = program(found.outputs, list(found.inputs.values()))
    names = [name for name, g in found.gradients.items() if g is not None]

    def together(batch: Arrays, rows: int) -> Results:
        # Every call is elementwise and of scalars, so a column in place of a number gives the column of
        # results. No batching rule is needed, and the bits are those of NumPy's ufuncs on arrays.
        value, *grads = run(*[batch[n] if n in batch else shared[n] for n in found.inputs])
        gradients = {name: np.zeros(rows, np.asarray(value).dtype) for name in found.gradients}
        for name, grad in zip(names, grads, strict=True):
            gradients[name] = np.broadcast_to(grad, (rows,))
        return Results({"": np.broadcast_to(value, (rows,))}, gradients, {})

    return together


def _columns(suffix: str, value: Any, rows: int) -> Arrays:
    """The parts of the value of mapped rows."""
    if isinstance(value, tuple | list):
        found: Arrays = {}
        if not value:
            raise _not_columns("the value of a row has no elements")
        for k, item in enumerate(value):
            found.update(_columns(f"{suffix}_{k}", item, rows))
        return found
    array = value.detach().array
    return _some_parts(suffix, np.broadcast_to(array, (rows, *array.shape[1:])))


def _stack(kept: list[Any], like: Any) -> Any:
    """The stacked gradients of rows; 0 where a row does not depend on the variable."""
    zero = np.zeros(np.shape(like), np.asarray(like).dtype)
    return np.stack([zero if grad is None else np.asarray(grad) for grad in kept])


def _not_columns(message: str) -> LanguageError:
    """The error about values that make no columns."""
    return LanguageError(message, kind="value", usage=False)


def _values(values: list[Any]) -> Arrays:
    """The parts of the rows' values, which must be alike."""
    first = values[0]
    if isinstance(first, tuple | list):
        found: Arrays = {}
        if not first:
            raise _not_columns("the value of a row has no elements")
        for k in range(len(first)):
            if any(not isinstance(v, tuple | list) or len(v) != len(first) for v in values):
                raise _not_columns(
                    "the values of the rows are not alike: some have more items than others"
                )
            found.update({f"_{k}{s}": a for s, a in _values([v[k] for v in values]).items()})
        return found
    arrays: list[Any] = []
    for value in values:
        array = np.asarray(value.array if isinstance(value, Tensor) else value)
        if array.dtype.kind not in "biufc":
            raise _not_columns(f"the value is {kind_of(value)}, not a number or a tensor")
        if array.shape != np.shape(arrays[0] if arrays else array):
            raise _not_columns(
                "the values of the rows are not alike: "
                f"they have shapes {arrays[0].shape} and {array.shape}"
            )
        arrays.append(array)
    return _some_parts("", np.stack(arrays))


def _some_parts(suffix: str, array: Any) -> Arrays:
    """A column for every element of a row's value, which has some."""
    if 0 in array.shape[1:]:
        raise _not_columns(f"the value of a row has no elements: its shape is {array.shape[1:]}")
    return _parts(suffix, array)


def _parts(suffix: str, array: Any) -> Arrays:
    """A column for every element."""
    if array.ndim == 1:
        return {suffix: array}
    return {
        f"{suffix}[{','.join(map(str, index))}]": array[(slice(None), *index)]
        for index in np.ndindex(array.shape[1:])
    }


def jvp(function: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    """The function's derivative along directions: what it takes, and `direction(name)` for each name."""
    from gradcli.torch import func

    def pushed(**tensors: Any) -> Any:
        directions = tuple(tensors.pop(direction(name)) for name in names)

        def at(*points: Any) -> Any:
            return function(**tensors | dict(zip(names, points, strict=True)))

        return func.jvp(at, tuple(tensors[name] for name in names), directions)[1]

    return pushed


def direction(name: str) -> str:
    """The name of the direction of a variable, which no variable has."""
    return f"{name} direction"


def derivative(function: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    """The function's derivative by one number after the other; a name may stand there several times."""
    from gradcli.torch import func

    for name in names:
        function = partial(_slope, func.grad, function, name)
    return function


def _slope(grad: Any, function: Callable[..., Any], by: str, /, **tensors: Any) -> Any:
    return grad(lambda point: function(**tensors | {by: point}))(tensors[by])


def elements(name: str, array: Any) -> Arrays:
    """Columns for the elements of an array whose first dimension is the rows: `w.grad[0]`, …"""
    return _parts(name, array)


def _spread(found: Results, rows: int) -> Results:
    """The results of some rows spread over all rows; the others are nan."""
    there = np.array([row not in found.refused for row in range(rows)])

    def wide(array: Any) -> Any:
        kind = np.result_type(array.dtype, np.float64) if array.dtype.kind in "biu" else array.dtype
        made = np.full((rows, *array.shape[1:]), np.nan, kind)
        made[there] = array
        return made

    values = {name: wide(a) for name, a in found.values.items()}
    gradients = {name: wide(a) for name, a in found.gradients.items()}
    return Results(values, gradients, found.refused)


__all__ = ["Results", "Rows", "derivative", "direction", "elements", "jvp"]
