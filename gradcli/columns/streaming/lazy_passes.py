"""A program that runs as it stands while its columns are on disk: passes are made when numbers are asked for.

What depends on the rows is recorded (`LazyProgram`), everything else is computed at once. A sum over the rows
becomes a number in the pass that is made when the program prints it, branches on it, or computes with the
rows anew, as a step of gradient descent does; that pass works out all sums that the program still holds.
Passes of equal calls, as those of a loop, share one plan.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from gradcli.columns.compiler.partition import Failed, Partition, Uncut
from gradcli.columns.streaming.running_sums import Column, Values, Work
from gradcli.engine.core import modes
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.engine.system import dtypes
from gradcli.tables.parts import Parts
from gradcli.transforms.tracing.abstract_arrays import AbstractArray
from gradcli.transforms.tracing.abstract_evaluation import outline
from gradcli.transforms.tracing.numpy_program import (
    NumpyProgram,
    Operation,
    key_of,
    live,
    operands,
    replaced,
)
from gradcli.transforms.tracing.numpy_tracer import Kernels

NOT_CUT = "this cannot be computed in passes over the rows"
_PLANS = 32  # that are kept

Run = Callable[[Work], Values]


class LazyProgram(NumpyProgram):
    """The calls that wait for a pass over the rows of a table.

    run: makes the passes of a `Work`.
    """

    lazy = True

    def __init__(
        self, table: Parts, columns: Mapping[str, Column], rows: int, run: Run, **options: Any
    ) -> None:
        super().__init__()
        self.table, self.columns, self.rows, self.run = table, dict(columns), rows, run
        self.options = options
        self.worded = True
        self.count = 0
        # A loop of a million steps must not keep what it has forgotten. What the program no longer holds,
        # no tensor holds either; only weak references are kept here, and a pass computes what is still
        # alive.
        self.operations: Any = weakref.WeakSet()  # those that share memory with the program
        self.alive: Any = weakref.WeakValueDictionary()
        self.pending: Any = weakref.WeakSet()  # numbers that are not known yet
        self.plans: dict[Any, _LazyWork] = {}
        real = dtypes.default.real
        wide = {n: self.input(n, outline(c.shape(rows), real)) for n, c in columns.items()}
        self.cut = Partition([], wide.values(), rows)
        for op in wide.values():
            self.cut.classify(op)
        self.tensors = {n: wrap(AbstractArray(self, op)) for n, op in wide.items()}

    @contextlib.contextmanager
    def recording(self) -> Iterator[dict[str, Tensor]]:
        """The columns as tensors of a program that runs inside."""
        with modes.changed(recorder=Kernels(), before_write=lambda t: self.written(t.array)):
            yield self.tensors

    def _append(self, operation: Operation) -> Operation:
        operation.index, self.count = self.count, self.count + 1
        self.alive[operation.index] = operation
        if operation.kind == "constant":
            self.operations.add(operation)
            self.cut.level[operation.index] = 0
        return operation

    def put(self, *args: Any, **options: Any) -> Operation:
        """The operation of a call; a constant where nothing of it waits for a pass."""
        # Three kinds of calls. If all operands are known numbers, the result is computed now. If it
        # depends on the rows, it is recorded. A sum over the rows is recorded as a number that waits
        # (`pending`); once rows are computed with such a number, as in `w = w - lr*w.grad; loss =
        # sum((x*w - y)**2)`, that needs a pass of its own, so the pass is made here, together with
        # everything else that waits.
        before = self.count
        op = super().put(*args, **options)
        if op.index < before or op.kind == "constant":
            return op
        given = list(operands((*op.args, *[v for _, v in op.options])))
        if all(a.kind == "constant" for a in given) and self.rows not in op.shape:
            self._known_now(op, _evaluated(op))
            return op
        try:
            self.cut.classify(op)
        except Uncut as error:
            raise RuntimeError(f"{NOT_CUT}: {error}") from None
        if op.index not in self.cut.wide and self.cut.candidate(op) is None:
            self.pending.add(op)
        elif any(a in self.pending for a in given):  # the numbers of a step, and rows again
            self.compute()
        return op

    def read(self, op: Operation) -> Any:
        """The numbers of an operation's result."""
        if op.index in self.cut.wide:
            raise RuntimeError(f"{NOT_CUT}: it needs the numbers of all rows at once")
        if op.kind != "constant":
            self.pending.add(op)
            self.compute()
        return op.args[0]

    def compute(self) -> None:
        """Make the passes that all numbers that wait need."""
        self._known.clear()
        self._kept.clear()  # what the program has forgotten is gone
        wanted = sorted(self.pending, key=lambda o: o.index)
        # The key of a pass: its calls, with operands by their places, without the numbers. Step 2 of a
        # loop has other numbers and the same calls, so it takes the plan of step 1 with new `given`.
        order = live(wanted)
        values, key = [], []
        places = {o.index: k for k, o in enumerate(order)}
        for o in order:
            if _is_number(o):
                values.append((places[o.index], o.args[0]))
            key.append(_signature(o, places))
        key.append(tuple(places[o.index] for o in wanted))
        work = self.plans.pop(tuple(key), None) or _LazyWork(self, order, wanted)
        self.plans[tuple(key)] = work
        if len(self.plans) > _PLANS:
            del self.plans[next(iter(self.plans))]
        work.given = dict(values)
        found = self.run(work)
        work.between(found, len(work.partition.passes))
        for o in wanted:
            self._known_now(o, found[places[o.index]])
        # The tables are by index and do not keep operations alive; entries of dead ones would grow with
        # the loop.
        for of in (self.cut.wide, self.cut.totals, self.cut.level, self.cut.picked):
            for index in [i for i in of if i not in self.alive]:
                del of[index]

    def _known_now(self, op: Operation, value: Any) -> None:
        if not isinstance(value, list | tuple):  # the results of one call, of which each is picked
            array = np.asarray(value)
            op.contiguous = bool(array.flags.c_contiguous)
            op.strides = None if op.contiguous else array.strides
            value = array[()]
        op.kind, op.function, op.args, op.options = "constant", None, (value,), ()
        self.cut.level[op.index] = 0
        self.cut.totals.pop(op.index, None)
        self.pending.discard(op)


class _LazyWork(Work):
    """The passes that give some operations. Their inputs are the columns, and numbers: `given`."""

    def __init__(self, of: LazyProgram, order: Sequence[Operation], wanted: Sequence[Operation]):
        columns = {o.name: of.columns[o.name] for o in order if o.name}
        super().__init__((_LazyWork, ()), of.table, columns, {}, of.rows, wrt=None, **of.options)
        self.given: Values = {}
        # The plan outlives the operations that it was made from (they turn into constants, `_known_now`),
        # so it has copies, numbered by their places in the key.
        copies: dict[int, Operation] = {}
        meaning = lambda o: copies[o.index]  # noqa: E731
        for place, o in enumerate(order):
            function, args = o.function, tuple(replaced(a, meaning) for a in o.args)
            options = tuple((k, replaced(v, meaning)) for k, v in o.options)
            kind = "input" if _is_number(o) else o.kind
            made = Operation(
                kind,
                function,
                args if kind != "input" else (),
                options,
                o.shape,
                o.dtype,
                o.contiguous,
            )
            made.axes, made.keepdims, made.strides, made.name = (
                o.axes,
                o.keepdims,
                o.strides,
                o.name,
            )
            made.index = place
            copies[o.index] = made
        self.outputs = [copies[o.index] for o in wanted]
        self.inputs = {o.name: o for o in copies.values() if o.name}

    def _plan(self) -> tuple[Any, Partition]:
        outputs = [(o, None) for o in self.outputs]
        cut = Partition(outputs, self.inputs.values(), self.rows, self.native)
        return SimpleNamespace(inputs=self.inputs), cut

    def start(self) -> Values:
        """The numbers that are known before the first pass."""
        return dict(self.given)

    def written(self) -> dict[str, int]:
        """No rows are written."""
        return {}

    def _placed(self, failed: Failed) -> Exception:
        """The error itself: the program is at the place when it happens."""
        return failed.error


def _is_number(o: Operation) -> bool:
    """Whether an operation is a number that may be another one in the next step of a loop."""
    return o.kind == "constant" and o.dtype.kind in "fc"


def _evaluated(o: Operation) -> Any:
    def value(a: Any) -> Any:
        return replaced(a, lambda c: c.args[0])

    with np.errstate(all="ignore"):
        return o.function(*map(value, o.args), **{k: value(v) for k, v in o.options})


def _signature(o: Operation, places: Mapping[int, int]) -> Any:
    """What makes two operations the same call; its operands by their places."""
    place = (o.kind, o.shape, o.dtype.str, o.contiguous, o.strides)
    if o.kind == "constant":
        return place if _is_number(o) else (*place, np.asarray(o.args[0]).tobytes())
    given = replaced((*o.args, *o.options), lambda a: ("operand", places[a.index]))
    return (*place, o.name, o.function, key_of(given))


__all__ = ["NOT_CUT", "LazyProgram"]
