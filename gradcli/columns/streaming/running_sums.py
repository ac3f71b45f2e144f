"""Runs a program of whole columns in passes over a table that need not fit into memory.

The program is traced once for the actual number of rows, and partitioned (`compiler.partition`). In each
pass every part of the table gives its share of the sums. These are combined in a fixed tree over the parts
in order, so the bits do not depend on the number of threads or workers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.columns.compiler.partition import Failed, Partition, Uncut
from gradcli.engine.core import errors
from gradcli.engine.core.observers import observing
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.engine.registry import table
from gradcli.engine.system import dtypes
from gradcli.engine.system.cascaded_sums import Tree
from gradcli.language.located_errors import LanguageError
from gradcli.tables import Table, TableError
from gradcli.tables.parts import Part, Parts, columns_of
from gradcli.tables.source import changed
from gradcli.transforms.tracing.abstract_evaluation import PrimitiveCall, outline, with_value_check
from gradcli.transforms.tracing.numpy_program import NoShape, Operation, live
from gradcli.transforms.tracing.numpy_tracer import NumpyTracer, Untraceable, trace_numpy

Values = dict[int, Any]


class NoPasses(Exception):
    """The program cannot be partitioned by rows.

    span: the operation at fault, if known. cause: the error of the engine or of the partition, if one
    is the reason.
    """

    def __init__(
        self, reason: str, span: tuple[int, int] | None, cause: BaseException | None = None
    ) -> None:
        super().__init__(reason)
        self.span = span
        self.cause = errors.named(cause) or cause


class Column:
    """The columns of a table that hold a variable; several columns make a matrix."""

    __slots__ = ("columns", "is_matrix")

    def __init__(self, columns: Sequence[int], is_matrix: bool) -> None:
        self.columns, self.is_matrix = list(columns), is_matrix

    def shape(self, rows: int) -> tuple[int, ...]:
        """The shape of so many rows."""
        return (rows, len(self.columns)) if self.is_matrix else (rows,)


class Work:
    """The computation: a function of tensors, some of which are columns of a table.

    source: (make, arguments); `make(*arguments)` returns the function, in other processes too. shared: the
    arrays of the other variables. wrt: variables to differentiate by; None for the value alone. cotangent:
    the gradient to start from; without `backward` there is no gradient, and without `value` none of that.
    Raises NoPasses.
    """

    def __init__(
        self,
        source: tuple[Callable[..., Any], tuple[Any, ...]],
        table: Parts,
        columns: Mapping[str, Column],
        shared: Mapping[str, Any],
        rows: int,
        *,
        wrt: Sequence[str] | None,
        cotangent: Any = None,
        backward: bool = True,
        value: bool = True,
        missing: str = "error",
        native: bool = False,
    ) -> None:
        self.source, self.names = source, table.names
        self.columns, self.shared = dict(columns), dict(shared)
        self.rows, self.missing, self.native = rows, missing, native
        self.wrt, self.cotangent, self.backward = wrt, cotangent, backward
        self.wants_value = value
        self.dtype = dtypes.get_default_dtype().name
        self._made: tuple[NumpyTracer, Partition] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_made": None}

    @property
    def trace(self) -> NumpyTracer:
        """The trace of the program."""
        return self._planned()[0]

    @property
    def partition(self) -> Partition:
        """The partition of the trace by rows."""
        return self._planned()[1]

    def _planned(self) -> tuple[NumpyTracer, Partition]:
        if self._made is None:
            self._made = self._plan()
        return self._made

    def _source(self) -> tuple[Callable[..., Any], dict[str, Any]]:
        """The function, and its variables."""
        dtypes.set_default_dtype(getattr(dtypes, self.dtype))
        make, arguments = self.source
        real = dtypes.default.real
        columns = {n: outline(c.shape(self.rows), real) for n, c in self.columns.items()}
        return make(*arguments), {**columns, **self.shared}

    def _plan(self) -> tuple[NumpyTracer, Partition]:
        function, variables = self._source()
        wrt = frozenset(self.wrt or ())
        try:
            return self._attempt(function, variables, wrt)
        except NoPasses as error:
            # Errors of the backward pass have no place in the text. If the program alone can be traced,
            # it was the backward pass, and the node that it was at has the place of its forward call.
            if wrt and error.span is None:  # perhaps of an operation that has a place
                self._attempt(function, variables, frozenset())
                error.span = self._place_in_pass(function, variables, wrt)
            raise

    def _place_in_pass(
        self, function: Callable[..., Any], variables: dict[str, Any], wrt: frozenset[str]
    ) -> tuple[int, int] | None:
        """The span of the node whose backward could not be traced."""
        nodes: list[Any] = []
        watch = observing(lambda step: nodes.append(step[1]) if step[0] == "start" else None)
        with watch, contextlib.suppress(NoPasses):
            self._attempt(function, variables, wrt)
        # A call of several rows has marked the last of them.
        return next((n.span for n in reversed(nodes) if n.span is not None), None)

    def between(self, values: Values, done: int) -> None:
        """What follows from so many passes."""
        with self._placing():
            self.partition.between(values, done)

    @contextlib.contextmanager
    def _placing(self) -> Iterator[None]:
        """An error that only numbers tell, as of a singular matrix, is said with its place."""
        try:
            yield
        except Failed as failed:
            raise self._placed(failed) from failed.error

    def _placed(self, failed: Failed) -> Exception:
        """What to raise for an operation that failed: its error, with its place in the program."""
        # Compiled operations know no source. The trace is made once more, and told to raise the error at
        # operation `index`: then the interpreter adds line and caret as for any other error.
        stop = failed.index, failed.error
        try:
            self._recorded(*self._source(), frozenset(self.wrt or ()), stop)
        except Untraceable as found:
            if isinstance(found.__cause__, LanguageError):
                return found.__cause__
        return LanguageError(str(failed.error), usage=False)

    def _recorded(
        self,
        function: Callable[..., Any],
        variables: dict[str, Any],
        wrt: frozenset[str],
        stop: tuple[int, Exception] | None = None,
    ) -> NumpyTracer:
        return trace_numpy(
            function,
            variables,
            wrt=wrt,
            cotangent=self.cotangent,
            backward=bool(wrt) and self.backward,
            worded=True,
            stop=stop,
        )

    def _attempt(
        self, function: Callable[..., Any], variables: dict[str, Any], wrt: frozenset[str]
    ) -> tuple[NumpyTracer, Partition]:
        given = function, variables, wrt
        try:
            found = self._recorded(*given)
            return found, self._cut(found)
        except Untraceable as error:
            raise _worded(error) from None
        except Uncut as error:
            reason = NoPasses(str(error), None, error)
            try:  # once more, to see where in the program that operation is made
                self._recorded(*given, (error.index, RuntimeError(str(error))))
            except Untraceable as found_at:
                reason.span = getattr(found_at.__cause__, "span", None)
            raise reason from None

    def _cut(self, found: NumpyTracer) -> Partition:
        wide = [found.inputs[n] for n in self.columns]
        outputs: list[tuple[Operation, bool | None]]
        outputs = [(g, n in self.columns) for n, g in found.gradients.items() if g is not None]
        if self.wants_value or _may_fail(found.value, [g for g, _ in outputs]):
            outputs.insert(0, (found.value, None))
        return Partition(outputs, wide, self.rows, self.native)

    # -- running it --------------------------------------------------------------------------------
    def start(self) -> Values:
        """The values that are known before the first pass."""
        found = self.trace
        return {found.inputs[n].index: np.asarray(a)[()] for n, a in self.shared.items()}

    def run_part(self, number: int, values: Values, part: Part) -> Any:
        """The sums of a part of the table; None where it has no rows."""
        total = Tree(self.combine(number))
        for sums, _ in self.batches(number, values, part):
            total.add(sums)
        return total.result()

    def batches(
        self, number: int, values: Values, part: Part
    ) -> Iterator[tuple[list[Any], list[Any]]]:
        """For each batch of a part: (its sums, the rows of the outputs that have rows)."""
        partition, inputs = self.partition, self.trace.inputs
        # Each pass reads only the columns that it needs: of `sum((y - mean(y))*x)` the first pass reads y
        # alone.
        read = {o.index for o in partition.wanted(number)}
        wanted = {n: c for n, c in self.columns.items() if inputs[n].index in read}
        # `skip` leaves out the rows that lack a number in any column, wanted in this pass or not.
        asked = self.columns if self.missing == "skip" else wanted
        columns = list(dict.fromkeys(i for c in asked.values() for i in c.columns))
        names = [self.names[i] for i in columns] if self.names else []
        start, real = part.start, dtypes.default.real
        for batch in part.batches(names or self.names[:1]):
            arrays = dict(
                zip(columns, columns_of(batch, self.names, columns, self.missing), strict=True)
            )
            m = len(arrays[columns[0]]) if columns else batch.rows
            given = {}
            for name, column in wanted.items():
                some = [self._real(batch, i, arrays[i], real) for i in column.columns]
                data = np.stack(some, axis=1) if column.is_matrix else some[0]
                given[inputs[name].index] = data
            if m:
                yield self._blocks(number, values, given, start, m)
            start += m
        if start != part.start + (part.rows or 0):  # not as many as were counted
            raise changed(part.path)

    def _real(self, batch: Table, column: int, array: Any, real: Any) -> Any:
        """A column in the traced dtype. Raises TableError if that would change its numbers."""
        if array.dtype.kind not in "iuf":
            name = self.names[column] if self.names else column
            what = "complex numbers" if array.dtype.kind == "c" else "truth values"
            raise TableError(
                f"{batch.name}, column {name}: holds {what}, and by rows columns are real",
                hint="--whole reads the table into memory",
            )
        return array.astype(real, copy=False)

    def _blocks(
        self, number: int, values: Values, given: Mapping[int, Any], start: int, m: int
    ) -> tuple[list[Any], list[Any]]:
        """The same of a batch, block by block."""
        partition = self.partition
        total = Tree(self.combine(number))
        pieces = []
        # Batches are as long as whoever wrote the file made them. A batch is computed in blocks that fit
        # into the cache.
        for at in range(0, m, partition.block):
            end = min(at + partition.block, m)
            some = {index: array[at:end] for index, array in given.items()}
            with self._placing():
                sums, rows = partition.run(number, values, some, start + at, end - at)
            total.add(sums)
            pieces.append(rows)
        rows = [
            np.concatenate(arrays, axis=axis) if len(arrays) > 1 else arrays[0]
            for arrays, (_, (axis, _)) in zip(
                zip(*pieces, strict=True), partition.written, strict=False
            )
        ]
        return total.result(), rows

    def combine(self, number: int) -> Combine:
        """How the sums of a pass are combined."""
        return Combine(
            [self.partition.totals[o.index].total for o in self.partition.passes[number]]
        )

    def take(self, number: int, values: Values, sums: Any) -> None:
        """Store the sums of a pass in `values`, for the passes that follow."""
        made = self.partition.passes[number]
        if sums is None:
            sums = [_of_nothing(self.partition, o) for o in made]
        values.update({o.index: s for o, s in zip(made, sums, strict=True)})

    def results(self, values: Values) -> tuple[Any, dict[str, Any]]:
        """(the value, the gradients by name) as tensors, once all passes are over.

        None for what has rows, and for a value that is not wanted.

        A column's gradient, which has rows, is not among them: see `written`.
        """
        self.between(values, len(self.partition.passes))
        rows = {o.index for o, _ in self.partition.written}
        found = self.trace
        wanted = self.wants_value and found.value.index not in rows
        value = _tensor(values[found.value.index]) if wanted else None
        grads = {
            n: None if g is None else _tensor(values[g.index])
            for n, g in found.gradients.items()
            if g is None or n not in self.columns
        }
        return value, grads

    def written(self) -> dict[str, int]:
        """The outputs that have rows: their names, and which of what `batches` gives they are."""
        places = {o.index: k for k, (o, _) in enumerate(self.partition.written)}
        found = {}
        if self.trace.value.index in places and self.partition.mode_of(self.trace.value):
            found["value"] = places[self.trace.value.index]
        for name in self.columns:
            g = self.trace.gradients.get(name)
            if g is not None:
                found[f"{name}.grad"] = places[g.index]
        return found


def _may_fail(value: Operation, outputs: Sequence[Operation]) -> bool:
    """Whether numbers may make the value an error that the outputs alone would not show."""
    # The gradient of `sum(a*x) + cholesky(A)[0, 0]` by x needs no Cholesky factor, but where A is not
    # positive definite the program fails, so the value has to be computed although nobody asked for it.
    shown = {o.index for o in live(outputs)}
    return any(
        o.function is with_value_check or type(o.function) is PrimitiveCall
        for o in live([value])
        if o.index not in shown
    )


def expression(
    source: str,
    known: Mapping[str, Any],
    directions: Sequence[str] = (),
    moved: Sequence[str] = (),
) -> Callable[..., Any]:
    """The function of a program of the language; known: arrays that are no variables of it.

    directions: the variables along which it is differentiated, instead of its value, by one variable more
    for each (`mapped.direction`); a number is the same for all elements. moved: the variables to all
    elements of which one variable more is added (`shift`).
    """
    from gradcli import language
    from gradcli.columns.streaming.mapped_program import direction, jvp

    table.base()  # operators of tensors are primitives of the table
    program = language.parse(source)
    fixed = {n: wrap(np.asarray(a)[()]) for n, a in known.items()}

    def function(**given: Any) -> Any:
        if not {"print", "display"}.isdisjoint(program.words):
            raise Untraceable("the program prints")
        for name in moved:
            given[name] = given[name] + given.pop(shift(name))
        result = language.run(program, {**fixed, **given})
        # A variable that the program makes (`w = zeros(3, requires_grad=True)`) would have a gradient
        # that nobody can read after a pass: the tape would have it.
        for name, value in result.names.items():
            if name in given or not isinstance(value, Tensor):
                continue
            if value.is_leaf and value.requires_grad:
                raise Untraceable("the program makes variables of its own")
        return result.value

    if not directions:
        return function
    along = jvp(function, directions)

    def pushed(**given: Any) -> Any:
        for name in directions:
            at, word = given[name], direction(name)
            # One number as a direction means the same for all rows; as an array it would be as long as
            # the table.
            if given[word].shape != at.shape:
                given[word] = given[word].expand(at.shape)
        return along(**given)

    return pushed


def shift(name: str) -> str:
    """The name of the variable that is added to all elements of another; no variable has it."""
    return f"{name} shift"


class Combine:
    """Combines the sums of two adjacent runs of rows, by a ufunc for each sum."""

    def __init__(self, functions: Sequence[Any]) -> None:
        self.functions = list(functions)

    def __call__(self, one: Any, other: Any) -> Any:
        if one is None or other is None:
            return one if other is None else other
        with np.errstate(all="ignore"):
            return [f(a, b) for f, a, b in zip(self.functions, one, other, strict=True)]


def totals(parts: Iterable[Any], combine: Callable[[Any, Any], Any]) -> Any:
    """The sums of all parts, combined in order as a tree."""
    tree = Tree(combine)
    for part in parts:
        tree.add(part)
    return tree.result()


def _tensor(array: Any) -> Tensor:
    return wrap(np.asarray(array)[()])


def _of_nothing(partition: Partition, o: Any) -> Any:
    """The sum of no rows."""
    identity = partition.totals[o.index].total.identity
    if identity is None:
        raise ValueError("there are no rows")
    return np.full(o.shape, identity, o.dtype)[()]


def _worded(error: Untraceable) -> NoPasses:
    """The NoPasses for a program that cannot be traced; an error of the program keeps its words."""
    cause = error.__cause__
    if isinstance(cause, LanguageError):
        return NoPasses(_reason(cause.message.partition("\n")[0]), cause.span, cause)
    reason = "it needs all rows at once" if isinstance(error, NoShape) else _reason(str(error))
    return NoPasses(reason, None, cause)


def _reason(words: str) -> str:
    return words.removeprefix("RuntimeError: ")


__all__ = ["Column", "Combine", "NoPasses", "Work", "expression", "shift", "totals"]
