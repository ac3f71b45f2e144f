"""Partition of a trace by the rows of a table: passes over batches of rows, whose parts are combined.

Every operation is one of three kinds. It is *wide*: one of its axes runs over the rows of the table. Or it
reduces along that axis: batches give parts, which are combined in a fixed order. Or it does not depend on
the rows. An operation that needs the result of a reduction runs in the next pass. One that mixes rows
cannot be cut, and raises `Uncut`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.columns.compiler import executor
from gradcli.columns.compiler.straight_line_code import program
from gradcli.engine.system.array_memory import arranged, as_operands
from gradcli.engine.system.blocked_products import (
    FOLDS,
    rows_dot,
    rows_product,
    rows_sum,
    vector_dot,
)
from gradcli.engine.system.cascaded_sums import add_reduce
from gradcli.language.located_errors import OPERATION_ERRORS
from gradcli.transforms.tracing.abstract_evaluation import (
    PrimitiveCall,
    evaluate_abstractly,
    method_call,
    pick,
    put_along,
    put_less,
    repeat_to,
    with_value_check,
    written,
)
from gradcli.transforms.tracing.numpy_program import Operation, live, operands, replaced

_RESHAPE, _TRANSPOSE = method_call("reshape"), method_call("transpose")
_SWAPAXES, _SQUEEZE, _RAVEL = method_call("swapaxes"), method_call("squeeze"), method_call("ravel")
_PARTS = (method_call("real"), method_call("imag"))
_LAYOUTS = (as_operands, arranged)  # the same elements, in another order in memory
# The functions whose second argument is the shape of what they give.
_SHAPED = (_RESHAPE, np.broadcast_to, repeat_to)
_PRODUCTS = (np.dot, np.matmul, np.vdot, rows_dot, vector_dot)
# The reductions of which parts can be combined, and how.
_COMBINED: dict[Any, Any] = {
    add_reduce: np.add,
    **{
        u.reduce: u
        for u in (
            *(np.multiply, np.maximum, np.minimum, np.logical_and, np.logical_or),
            *(np.bitwise_and, np.bitwise_or),
        )
    },
}
# Functions along one axis: where that axis stands among the arguments.
_ALONG: dict[Any, int] = {
    **dict.fromkeys((np.take_along_axis, put_along, put_less), -1),
    **dict.fromkeys((np.cumsum, np.cumprod), 1),
}
_BLOCK = 1 << 16  # bytes of the widest array of a block: so few that memory is used again and again
_LEAST, _MOST = 256, 1 << 13  # rows of a block
_NATIVE = 1024  # elements from which on a block of rows runs as C, where that is asked for
_PIECE = 256  # rows in a product of parts: so few that no BLAS cuts them among threads

Modes = dict[int, Any]


class Uncut(Exception):
    """An operation mixes rows. index: its position in the trace."""

    def __init__(self, op: Operation, reason: str) -> None:
        super().__init__(reason)
        self.index = op.index


class SharedGradient(Uncut):
    """What is in memory would need a gradient with a row for each of the table."""


class Failed(Exception):
    """An operation raised an error when it ran. index: its position in the trace."""

    def __init__(self, index: int, error: Exception) -> None:
        super().__init__(str(error))
        self.index, self.error = index, error


class _Wide:
    """Which axis of an operation runs over the rows, and how many entries each row has there.

    modes: operand index -> None if it is taken whole, else its (axis, times). total: the ufunc by which
    it is reduced over the rows, if it is.
    """

    __slots__ = ("axis", "modes", "times", "total")

    def __init__(self, axis: int, times: int, modes: Modes, total: Any = None) -> None:
        self.axis, self.times, self.modes, self.total = axis, times, modes, total


# How a trace is cut, on an example: mean(log(1 + exp(-y*(X@w)))) with X and y in the table. X@w has a row
# for each of the table's, as w is taken whole; so have y*(X@w), exp and log. The sum reduces along the
# rows: each batch gives a part, and parts are added. The division by the count follows all batches. Its
# gradient by w is X.T @ (…), which is a sum over the rows as well, so value and gradient are one pass. What
# needs a finished sum in each row, as x - mean(x), waits for the next pass.
class Partition:
    """How outputs are computed, pass by pass, from inputs of which some have `rows` rows.

    outputs: each with whether it has the rows (None: to be found out). wide: the inputs whose first axis
    runs over the rows. Raises Uncut.

    block: how many rows are best worked out at once. passes: of each, the operations of which batches give
    parts. written: the outputs that have rows, and
    along which axis; the pass `writing` gives them.
    """

    def __init__(
        self,
        outputs: Sequence[tuple[Operation, bool | None]],
        wide: Iterable[Operation],
        rows: int,
        native: bool = False,
    ) -> None:
        self.outputs, self.rows, self.native = [o for o, _ in outputs], rows, native
        self.inputs = {o.index: o for o in wide}
        self.order = live(self.outputs)
        self.wide: dict[int, _Wide] = {}
        self.picked: dict[int, list[int]] = {}  # where several results of one call have the rows
        self.totals: dict[int, _Wide] = {}
        self.level: dict[int, int] = {}
        for o in self.order:
            self.classify(o)
        self.written: list[tuple[Operation, tuple[int, int]]] = []
        for o, has_rows in outputs:
            mode = self.mode_of(o)
            if has_rows or (has_rows is None and mode is not None):
                self.written.append((o, mode or (0, 1)))
            elif o.index in self.wide:
                raise SharedGradient(
                    o, "its gradient by what is in memory has a row for each of the table"
                )
        self.writing = max((self.level[o.index] for o, _ in self.written), default=-1)
        self._needed()
        count = max([self.writing, *[self.level[i] - 1 for i in self.needed_totals]], default=-1)
        self.passes: list[list[Operation]] = [
            [
                o
                for o in self.order
                if o.index in self.needed_totals and self.level[o.index] == k + 1
            ]
            for k in range(count + 1)
        ]
        self._programs: dict[tuple[int, int], Any] = {}
        widest = max(
            (o.size * o.dtype.itemsize for o in self.order if o.index in self.wide), default=0
        )
        self.block = min(max(_BLOCK * rows // max(widest, 1), _LEAST), _MOST)

    # -- what an operation is ----------------------------------------------------------------------
    def classify(self, o: Operation) -> None:
        """Find out what an operation is, whose operands are known. Raises Uncut."""
        given = list(operands((*o.args, *[v for _, v in o.options])))
        level = max((self.level[a.index] for a in given), default=0)
        self.level[o.index] = level
        if o.index in self.inputs:
            self.wide[o.index] = _Wide(0, 1, {})
            return
        if not any(a.index in self.wide for a in given):
            # A constant that fills an array of the table's length has no rows of its own, but its sum
            # counts the rows.
            sums = o.kind == "reduce" or o.function in _PRODUCTS or o.function in FOLDS
            if not (sums and any(self.candidate(a) is not None for a in given)):
                return
        found = self._rule(o, given)
        if found.total is not None:
            self.totals[o.index] = found
            self.level[o.index] = level + 1
        else:
            # Broadcasting a row over something else gives more rows than the table has.
            if o.index not in self.picked and o.shape[found.axis] != self.rows * found.times:
                raise Uncut(o, "it repeats the rows")
            self.wide[o.index] = found

    def _rule(self, o: Operation, given: list[Operation]) -> _Wide:
        f = o.function
        if o.kind == "elementwise" or f in _LAYOUTS or f is with_value_check:
            return self._elementwise(o, given)
        if type(f) is PrimitiveCall and f.primitive.linearity == "elementwise":
            return self._elementwise(o, given)
        if o.kind == "reduce":
            return self._reduction(o)
        if f in _PRODUCTS:
            return self._product(o)
        if f in FOLDS:
            return self._fold(o)
        if f is _RESHAPE or f is _RAVEL:
            return self._reshaped(o)
        if f is _TRANSPOSE or f is _SWAPAXES or f is _SQUEEZE or f in _PARTS:
            return self._moved(o)
        if f is np.broadcast_to or f is repeat_to:
            return self._repeated(o)
        if f is operator.getitem:
            a = o.args[0]
            if any(True for _ in operands((o.args[1],))) or a.index not in self.wide:
                raise Uncut(o, "it takes rows by their number")
            own = self._mode(a)
            return _Wide(self._kept(o, a, o.args[1], own[0]), own[1], {a.index: own})
        if f is written:
            return self._written(o)
        if f is np.concatenate:
            return self._joined(o)
        if f is np.array and len(given) == 1:
            own = self._mode(given[0])
            return _Wide(*own, {given[0].index: own})
        if f in _ALONG or f is np.argsort or getattr(f, "__name__", "") == "accumulate":
            return self._along(o, given)
        if f is np.argmax or f is np.argmin:
            return self._selected(o)
        if f is pick:
            every = o.args[0]
            return _Wide(self.picked[every.index][o.args[1]], 1, {every.index: self._mode(every)})
        if type(f) is PrimitiveCall:
            if f.primitive.batching == "expanded":
                return self._repeated(o)
            return self._viewed(o, f) if f.primitive.view else self._called(o, f.primitive, given)
        raise Uncut(o, "it needs all rows at once")

    def _mode(self, a: Operation) -> tuple[int, int]:
        found = self.wide[a.index]
        return found.axis, found.times

    def mode_of(self, o: Operation) -> tuple[int, int] | None:
        """The (axis, times) of an output: which axis runs over the rows, and the entries of a row there."""
        return self._mode(o) if o.index in self.wide else self.candidate(o)

    def candidate(self, o: Operation) -> tuple[int, int] | None:
        """The axis along which a small value that fills an array was repeated for every row."""
        # With one row any axis of size 1 might be that of the rows.
        if o.index in self.wide or self.rows < 2:
            return None
        if o.kind == "fill":
            axes = [i for i, n in enumerate(o.shape) if n == self.rows]
            return (axes[0], 1) if axes else None
        if o.function is np.broadcast_to:
            old = (1,) * (o.ndim - o.args[0].ndim) + o.args[0].shape
            axes = [i for i, n in enumerate(o.shape) if n == self.rows and old[i] == 1]
            return (axes[0], 1) if axes else None
        if o.kind == "elementwise" and not any(a.index in self.wide for a in operands(o.args)):
            found = [self.candidate(a) for a in operands(o.args) if a.shape == o.shape]
            return next((c for c in found if c is not None), None)
        return None

    def _aligned(self, o: Operation, a: Operation, axis: int, times: int) -> Any:
        """How an operand is cut beside others; axis: the axis of the rows, counted from the end."""
        at = a.ndim + axis
        if a.index in self.wide:
            own = self._mode(a)
            if own != (at, times):
                raise Uncut(o, "the rows of its operands lie along different axes")
            return own
        # It is broadcast along the rows, so each batch takes it whole.
        if at < 0 or a.shape[at] == 1:
            return None
        if a.shape[at] != self.rows * times:
            raise Uncut(o, "its operands have different numbers of rows")
        return at, times

    def _elementwise(self, o: Operation, given: list[Operation]) -> _Wide:
        first = next(a for a in given if a.index in self.wide)
        axis, times = self._mode(first)
        modes = {a.index: self._aligned(o, a, axis - first.ndim, times) for a in given}
        return _Wide(axis - first.ndim + o.ndim, times, modes)

    def _reduction(self, o: Operation) -> _Wide:
        a = o.args[0]
        own = self.mode_of(a)
        assert own is not None and o.axes is not None
        if own[0] in o.axes:
            # The parts of a variance or an argmax say too little to be put together.
            combine = _COMBINED.get(o.function)
            if combine is None:
                raise Uncut(o, "its parts cannot be combined")
            return _Wide(*own, {a.index: own}, combine)
        # Each axis that is reduced before that of the rows moves it forward.
        axis = own[0] if o.keepdims else own[0] - sum(x < own[0] for x in o.axes)
        return _Wide(axis, own[1], {a.index: own})

    def _product(self, o: Operation) -> _Wide:
        """Axes are counted from the end: -1 and -2 are those of matrices, a vector's is the inner one."""
        a, b = o.args
        if not (a.ndim and b.ndim) or (o.function is not np.matmul and max(a.ndim, b.ndim) > 2):
            raise Uncut(o, "it multiplies stacks of matrices")
        inner = {0: -1, 1: -1 if b.ndim == 1 else -2}
        axes: list[int | None] = [None, None]
        times = 1
        for k, x in enumerate((a, b)):
            if (own := self.mode_of(x)) is not None:
                axes[k], times = own[0] - x.ndim, own[1]
        # The product sums over the rows: X.T @ y, whose parts are added.
        if inner[0] == axes[0] or inner[1] == axes[1]:
            modes: Modes = {}
            for k, x in enumerate((a, b)):
                how = (x.ndim + inner[k], times)
                if x.index in self.wide and self._mode(x) != how:
                    raise Uncut(o, "it multiplies rows by rows")
                if modes.setdefault(x.index, how) != how:
                    raise Uncut(o, "it multiplies rows by rows")
            return _Wide(0, times, modes, np.add)
        wide = [k for k, x in enumerate((a, b)) if x.index in self.wide] or [
            k for k in (0, 1) if axes[k] is not None
        ]
        axis = axes[wide[0]]
        assert axis is not None
        outer = -2 if wide[0] == 0 else -1
        if axis == outer and len(wide) == 1:
            other = (b, a)[wide[0]]
            if max(a.ndim, b.ndim) > 2 and min(a.ndim, b.ndim) < 2:
                raise Uncut(o, "it multiplies stacks of matrices")
            at = o.ndim - 1 if (wide[0] == 1 or b.ndim == 1) else o.ndim - 2
            wanted = (a, b)[wide[0]]
            return _Wide(at, times, {wanted.index: (wanted.ndim + axis, times), other.index: None})
        if axis < -2 and min(a.ndim, b.ndim) >= 2:
            modes = {x.index: self._aligned(o, x, axis, times) for x in (a, b)}
            return _Wide(o.ndim + axis, times, modes)
        raise Uncut(o, "it multiplies rows by rows")

    def _fold(self, o: Operation) -> _Wide:
        """A function of all rows of one or two matrices, such as `a.T @ b`."""
        modes: Modes = {a.index: self.mode_of(a) for a in o.args}
        own = modes[o.args[0].index]
        if own is not None and own[0] == 0 and all(m == own for m in modes.values()):
            return _Wide(0, own[1], modes, np.add)
        at = [k for k, a in enumerate(o.args) if a.index in self.wide]
        if len(at) == 1 and (own := self._mode(o.args[at[0]]))[0] == 1:
            axis = 1 if o.function is rows_sum else at[0]
            found = {a.index: own if k in at else None for k, a in enumerate(o.args)}
            return _Wide(axis, own[1], found)
        raise Uncut(o, "it multiplies rows by rows")

    def _reshaped(self, o: Operation) -> _Wide:
        a = o.args[0]
        axis, times = self._mode(a)
        before, after = _size(a.shape[:axis]), _size(a.shape[axis + 1 :])
        if self.rows < 2 and o.shape.count(1) > 1:
            raise Uncut(o, "one row alone does not say which axis is that of the rows")
        # The rows must stay whole, and in order: a new axis of them has as much before it, and behind it,
        # as the old.
        for at, n in enumerate(o.shape):
            if _size(o.shape[:at]) != before or n % self.rows:
                continue
            inside = n // self.rows
            if inside * _size(o.shape[at + 1 :]) == times * after:
                return _Wide(at, inside, {a.index: (axis, times)})
        raise Uncut(o, "it puts rows together")

    def _repeated(self, o: Operation) -> _Wide:
        a = o.args[0]
        own = self._mode(a)
        return _Wide(own[0] - a.ndim + o.ndim, own[1], {a.index: own})

    def _called(self, o: Operation, primitive: Any, given: list[Operation]) -> _Wide:
        """A primitive's kernel along other axes than the rows, so that each row is independent."""
        wide = next(a for a in given if a.index in self.wide)
        axis, times = self._mode(wide)
        first = o.args[0]
        found = None
        if times == 1 and type(first) is Operation and first.ndim == wide.ndim:
            found = evaluate_abstractly(primitive, o.args, axis)
        if found is None:
            raise Uncut(o, "it needs all rows at once")
        modes = {a.index: self._aligned(o, a, axis - wide.ndim, 1) for a in given}
        if not primitive.returns_one:
            self.picked[o.index] = found.axes
            return _Wide(axis, 1, modes)
        return _Wide(found.axes[0], 1, modes)

    def _moved(self, o: Operation) -> _Wide:
        a = o.args[0]
        own = axis, times = self._mode(a)
        if o.function in _PARTS:
            return _Wide(axis, times, {a.index: own})
        if times > 1 or a.ndim > 12:
            raise Uncut(o, "it moves parts of rows")
        # An array so small that it can be tried: all sizes apart, but those that are 1.
        shape = tuple(1 if n == 1 and i != axis else i + 2 for i, n in enumerate(a.shape))
        trial = np.broadcast_to(np.empty((), bool), shape)
        found = o.function(trial, *o.args[1:], **dict(o.options)).shape
        return _Wide(found.index(axis + 2), times, {a.index: own})

    def _viewed(self, o: Operation, f: Any) -> _Wide:
        """A view within each row, if a trial on two rows shows that it is a mere reshape."""
        a = o.args[0]
        axis, times = self._mode(a)
        shape = tuple(2 * times if i == axis else n for i, n in enumerate(a.shape))
        # Numbers instead of shapes: where each element went says whether rows were mixed.
        trial = np.arange(_size(shape)).reshape(shape)
        try:
            found = f(trial, *o.args[1:], **dict(o.options))
        except OPERATION_ERRORS as error:
            raise Uncut(o, "it needs all rows at once") from error
        if (
            type(found) is list
            or found.size != trial.size
            or not np.array_equal(found.ravel(), trial.ravel())
        ):
            raise Uncut(o, "it needs all rows at once")
        return self._reshaped(o)

    def _kept(self, o: Operation, a: Operation, index: Any, axis: int) -> int:
        """Where the axis of the rows is after an index that leaves it alone."""
        parts = list(index) if type(index) is tuple else [index]
        taken = sum(part is not None and part is not Ellipsis for part in parts)
        if not any(part is Ellipsis for part in parts):
            parts.append(Ellipsis)
        at = made = 0
        for part in parts:
            if part is None:
                made += 1
                continue
            width = a.ndim - taken if part is Ellipsis else 1
            if at <= axis < at + width:
                whole = part is Ellipsis or (
                    isinstance(part, slice) and part.indices(a.shape[axis]) == (0, a.shape[axis], 1)
                )
                if not whole:
                    raise Uncut(o, "it takes rows by their number")
                return made + axis - at
            at += width
            made += width if part is Ellipsis or isinstance(part, slice) else 0
        raise Uncut(o, "it takes rows by their number")

    def _written(self, o: Operation) -> _Wide:
        array, index, value = o.args
        if any(True for _ in operands((index,))):
            raise Uncut(o, "it writes rows by their number")
        own = self.mode_of(array)
        if own is None:
            raise Uncut(o, "it writes rows into what is no row")
        modes: Modes = {array.index: own}
        axis = self._kept(o, array, index, own[0])
        if type(value) is Operation:
            ndim = np.broadcast_to(np.empty((), bool), array.shape)[index].ndim
            modes[value.index] = self._aligned(o, value, axis - ndim, own[1])
        return _Wide(*own, modes)

    def _joined(self, o: Operation) -> _Wide:
        parts, axis = o.args
        first = next(p for p in parts if p.index in self.wide)
        own = self._mode(first)
        if axis % o.ndim == own[0]:
            raise Uncut(o, "it puts tables one below the other")
        return _Wide(*own, {p.index: self._aligned(o, p, own[0] - o.ndim, own[1]) for p in parts})

    def _along(self, o: Operation, given: list[Operation]) -> _Wide:
        first = next(a for a in given if a.index in self.wide)
        own = self._mode(first)
        at = dict(o.options).get("axis")
        if at is None:
            at = o.args[_ALONG.get(o.function, -1)]
        if at % o.ndim == own[0]:
            raise Uncut(o, "it runs along the rows")
        return _Wide(*own, {a.index: self._aligned(o, a, own[0] - o.ndim, own[1]) for a in given})

    def _selected(self, o: Operation) -> _Wide:
        """An index that picks one element in each row."""
        a, options = o.args[0], dict(o.options)
        own = self._mode(a)
        axis = options.get("axis")
        if axis is None or axis % a.ndim == own[0] or len(o.args) > 1:
            raise Uncut(o, "it needs all rows at once")
        moved = axis % a.ndim < own[0] and not options.get("keepdims")
        return _Wide(own[0] - moved, own[1], {a.index: own})

    # -- what is needed ----------------------------------------------------------------------------
    def _needed(self) -> None:
        """The reductions that the outputs need; `whole`: values that are computed once, not by rows."""
        self.needed_totals: set[int] = set()
        self.whole: set[int] = set()
        seen: set[tuple[int, bool]] = set()
        rows = {o.index for o, _ in self.written}
        waiting = [(o, o.index in rows) for o in self.outputs]
        while waiting:
            o, as_rows = waiting.pop()
            if (o.index, as_rows) in seen:
                continue
            seen.add((o.index, as_rows))
            if o.index in self.totals:
                self.needed_totals.add(o.index)
            elif o.index not in self.wide:
                filled = as_rows and self._is_filled(o)
                if not filled:  # else it is never there as a whole
                    self.whole.add(o.index)
                waiting += [(a, filled and a.shape == o.shape) for a in _given(o)]
                continue
            found = self.totals.get(o.index) or self.wide[o.index]
            waiting += [(a, found.modes.get(a.index) is not None) for a in _given(o)]

    def _is_filled(self, o: Operation) -> bool:
        return o.kind == "fill" or self.candidate(o) is not None

    # -- a batch -----------------------------------------------------------------------------------
    def between(self, values: dict[int, Any], done: int) -> None:
        """Compute, after `done` passes, what does not depend on the rows; into `values`. Raises Failed."""
        for o in self.order:
            if o.index not in self.whole or o.index in values or self.level[o.index] > done:
                continue
            if o.kind == "constant" or o.function is not None:
                try:
                    values[o.index] = _result(o, values)
                except OPERATION_ERRORS as error:
                    raise Failed(o.index, error) from error

    def wanted(self, number: int) -> list[Operation]:
        """The inputs that a pass reads."""
        return [o for o in self._program(number, 2)[1] if o.index in self.inputs]

    def run(
        self, number: int, values: Mapping[int, Any], columns: Mapping[int, Any], start: int, m: int
    ) -> tuple[list[Any], list[Any]]:
        """A pass over `m` rows from `start` on: (the parts of its reductions, the rows of the outputs).

        columns: those rows of the inputs, by index; more of them may be given. Raises Failed.
        """
        run, inputs, slices = self._program(number, m)
        given = []
        # An array that is no column may run over the rows as well, as weights that were given as one
        # array: it is in memory whole, and each batch takes its slice.
        for o, mode in zip(inputs, slices, strict=True):
            if o.index in self.inputs:
                given.append(columns[o.index])
            elif mode is None:
                given.append(values[o.index])
            else:
                axis, times = mode
                at = (slice(None),) * axis + (slice(start * times, (start + m) * times),)
                given.append(values[o.index][at])
        with np.errstate(all="ignore"):
            try:
                found = run(*given)
            except OPERATION_ERRORS as error:
                raise Failed(_Batch(self, number, m).failing(given), error) from error
        count = len(self.passes[number])
        return list(found[:count]), list(found[count:])

    def combine(self, number: int, one: list[Any], other: list[Any]) -> list[Any]:
        """Combine the parts of two adjacent runs of rows."""
        with np.errstate(all="ignore"):
            return [
                self.totals[o.index].total(a, b)
                for o, a, b in zip(self.passes[number], one, other, strict=True)
            ]

    def _program(
        self, number: int, m: int
    ) -> tuple[Callable[..., Any], list[Operation], list[Any]]:
        key = (number, m)
        found = self._programs.get(key)
        if found is None:
            if len(self._programs) > 64:
                self._programs.clear()
            found = self._programs[key] = _Batch(self, number, m).made()
        return found


class _Batch:
    """The program of one pass over a batch of m rows."""

    def __init__(self, partition: Partition, number: int, m: int) -> None:
        self.partition, self.number, self.m = partition, number, m
        self.count = 0
        self.known: dict[Any, Operation] = {}
        self.inputs: list[Operation] = []
        self.sources: list[Operation] = []
        self.slices: list[Any] = []

    def _outputs(self) -> list[Operation]:
        partition = self.partition
        outputs = [self._total(o) for o in partition.passes[self.number]]
        if partition.writing == self.number:
            outputs += [self.operation(o, mode) for o, mode in partition.written]
        return outputs

    def failing(self, given: Sequence[Any]) -> int:
        """The operation of the trace that raises an error on these inputs, by its index."""
        order = live(self._outputs())
        values = {o.index: array for o, array in zip(self.inputs, given, strict=True)}
        traced: dict[int, int] = {o.index: index for (index, _), o in self.known.items()}
        for o in order:
            if o.index not in values:
                try:
                    values[o.index] = _result(o, values)
                except OPERATION_ERRORS:
                    return traced.get(o.index, -1)
        return -1

    def made(self) -> tuple[Callable[..., Any], list[Operation], list[Any]]:
        """(the function, the operations whose values it takes, along which axis these are cut)."""
        partition, outputs = self.partition, self._outputs()
        run: Callable[..., Any] = program(outputs, self.inputs)
        if partition.native and max(o.size for o in live(outputs)) >= _NATIVE:
            run = executor.make(outputs, self.inputs, threads=1, smallest=_NATIVE, native=True)
        return run, self.sources, self.slices

    def operation(self, o: Operation, mode: Any) -> Operation:
        """An operation over the batch; mode: which axis goes with the rows, None for a whole value."""
        # Depth first by hand, since a trace may be longer than Python's stack. An operation may be needed
        # twice: with the batch's rows and as a whole value, as w in X@w and w.sum(), so the key has the
        # mode.
        stack: list[tuple[Operation, Any]] = [(o, mode)]
        while stack:
            now, how = stack[-1]
            key = (now.index, how)
            if key in self.known:
                stack.pop()
                continue
            below = self._operands(now, how)
            missing = [(a, h) for a, h in below if (a.index, h) not in self.known]
            if missing:
                stack += missing
                continue
            self.known[key] = self._made(now, how)
            stack.pop()
        return self.known[o.index, mode]

    def _operands(self, o: Operation, how: Any) -> list[tuple[Operation, Any]]:
        if how is None or o.index in self.partition.inputs:
            return []
        if o.index in self.partition.wide:
            modes = self.partition.wide[o.index].modes
            return [(a, modes.get(a.index)) for a in _given(o)]
        if self.partition.candidate(o) == how or o.kind == "fill":
            if o.kind == "elementwise":
                return [(a, how if a.shape == o.shape else None) for a in _given(o)]
            return [(a, None) for a in _given(o)]
        return []

    def _made(self, o: Operation, how: Any) -> Operation:
        partition, axis = self.partition, how and how[0]
        if how is None or o.index in partition.inputs or not self._operands(o, how):
            return self._input(o, None if how is None or o.index in partition.inputs else how)
        args = o.args
        times = how[1]
        function = o.function
        if type(function) is PrimitiveCall and function.primitive.batching == "expanded":
            function = np.broadcast_to
        if o.kind == "fill" or function in _SHAPED:
            shape = tuple(self.m * times if i == axis else n for i, n in enumerate(o.shape))
            args = (args[0], shape)
        if function in (_RAVEL, _SQUEEZE) or (
            type(function) is PrimitiveCall and function.primitive.view
        ):
            shape = tuple(self.m * times if i == axis else n for i, n in enumerate(o.shape))
            function, args = _RESHAPE, (args[0], shape)
        return self._put(o, args, dict(self._operands(o, how)), how, function)

    def _put(self, o: Operation, args: Any, modes: Any, how: Any, function: Any) -> Operation:
        by = {a.index: h for a, h in modes.items()}
        meaning = lambda a: self.known[a.index, by[a.index]]  # noqa: E731
        given = tuple(replaced(a, meaning) for a in args)
        options = tuple((k, replaced(v, meaning)) for k, v in o.options)
        shape = o.shape
        if how is not None:
            shape = tuple(self.m * how[1] if i == how[0] else n for i, n in enumerate(o.shape))
        return self._numbered(Operation(o.kind, function, given, options, shape, o.dtype))

    def _numbered(self, o: Operation) -> Operation:
        o.index, self.count = self.count, self.count + 1
        return o

    def _input(self, o: Operation, mode: Any) -> Operation:
        made = self._numbered(Operation("input", None, (), (), o.shape, o.dtype))
        self.inputs.append(made)
        self.sources.append(o)
        self.slices.append(mode)
        return made

    def _total(self, o: Operation) -> Operation:
        """A reduction over the batch."""
        found = self.partition.totals[o.index]
        for a in operands(o.args):
            self.operation(a, found.modes[a.index])
        modes = {a: found.modes[a.index] for a in operands(o.args)}
        function = o.function
        if function in _PRODUCTS:
            function = inner if function is np.vdot else product
        elif function in FOLDS:
            function = _FOLDED[function]
        return self._put(o, o.args, modes, None, function)


def product(a: Any, b: Any) -> Any:
    """`a @ b` for many rows; the bits do not depend on the number of threads."""
    if a.ndim == 1 and b.ndim == 1:
        return add_reduce(a * b)
    shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if _size(shape) != 1:
        return np.matmul(a, b)
    left, right = a.reshape(-1, a.shape[-1]), b.reshape(b.shape[-2:] if b.ndim > 1 else (-1, 1))
    # x @ y for a million rows would be split by BLAS among threads, with other last digits for other
    # numbers of threads. Products of 256 rows each are too small for that, and their results are added
    # pairwise.
    whole = left.shape[1] - left.shape[1] % _PIECE
    parts = np.matmul(
        left[:, :whole].reshape(len(left), -1, _PIECE).transpose(1, 0, 2),
        right[:whole].reshape(-1, _PIECE, right.shape[1]),
    )
    found = add_reduce(parts, axis=0) + np.matmul(left[:, whole:], right[whole:])
    rows = a.shape[-2:-1] if a.ndim > 1 else ()
    return found.reshape((*shape, *rows, *(b.shape[-1:] if b.ndim > 1 else ())))


def columns_product(a: Any, b: Any) -> Any:
    """`a.T @ b` of matrices of many rows."""
    return product(a.T, b)


def columns_sum(a: Any) -> Any:
    """The sum of many rows, as a row."""
    return add_reduce(a, axis=0, keepdims=True)


_FOLDED: dict[Any, Any] = {rows_product: columns_product, rows_sum: columns_sum}


def inner(a: Any, b: Any) -> Any:
    """The product of vectors of which the first is conjugated."""
    return product(np.conjugate(a) if a.dtype.kind == "c" else a, b)


def _given(o: Operation) -> list[Operation]:
    return list(operands((*o.args, *[v for _, v in o.options])))


def _size(shape: Sequence[int]) -> int:
    found = 1
    for n in shape:
        found *= n
    return found


def _result(o: Operation, values: Mapping[int, Any]) -> Any:
    """The value of an operation whose operands are known."""
    if o.kind == "constant":
        return o.args[0]
    options = {k: _value(v, values) for k, v in o.options}
    return o.function(*[_value(a, values) for a in o.args], **options)


def _value(a: Any, values: Mapping[int, Any]) -> Any:
    return replaced(a, lambda o: values[o.index])


__all__ = ["Partition", "Uncut", "product"]
