"""Runs a schedule: operations on whole arrays one by one, regions block by block on a few threads."""

from __future__ import annotations

import itertools
import math
import operator
import os
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from gradcli.columns.compiler import c_forms, native_code
from gradcli.columns.compiler.block_sizes import BlockBounds, row_blocks, tree_blocks
from gradcli.columns.compiler.fusion_schedule import Region, Schedule
from gradcli.columns.compiler.region_code import RegionCode
from gradcli.columns.compiler.straight_line_code import source_of
from gradcli.engine.system import c_compiler
from gradcli.engine.system.array_memory import as_operands
from gradcli.engine.system.blocked_products import (
    CUT,
    FOLDED,
    FOLDS,
    PART,
    Fold,
    block_of,
    parts_of,
    rows_dot,
    rows_product,
    vector_dot,
)
from gradcli.engine.system.cascaded_sums import add_reduce, tree_sum
from gradcli.engine.system.page_pool import room
from gradcli.engine.system.threads import are_ours, multiplying_alone, share
from gradcli.transforms.tracing.abstract_evaluation import repeat_to, written
from gradcli.transforms.tracing.numpy_program import (
    Operation,
    call_name,
    operands,
    pieced,
    scattered,
)

# Bytes of the widest array in a block. What a block touches is to stay in the memory of one core (some
# of its operations take three times as long outside of it), but every call of NumPy's is a turn at the
# interpreter's lock, and must be long beside it.
_FEWEST, _MOST = 1 << 18, 1 << 20
_CACHE = 1 << 20  # bytes of all arrays of a block: what a core's second-level cache has
_MULTIPLIED = 1 << 16  # elements in a block of large products
# Elements in a block of C, which keeps to its chunks: enough for a call, few enough to share out. Of large
# arrays, a sixteenth, up to the second number: a call then takes a twentieth of the work.
_IN_C, _MOST_IN_C = 1 << 15, 1 << 17
_CALLS = 4  # of NumPy's that take as long as a step
_SAVED = 20_000  # elements on which C saves as much as a call takes
SMALLEST = 32768  # elements from which on an array is worth cutting
# In C there is no call of NumPy's to pay for in each block: a function of C is worth its call from here on.
SMALLEST_IN_C = 512
# Elements that NumPy copies together before it works on them. An operand that is repeated along rows is
# copied where two rows or more go into this, which takes longer than the work from so many columns on;
# but a sum of numbers that are converted first, or moved to addresses that suit them, is one of sums of
# so many.
_PIECE, _LONG = 2048, 64
_LINES = 1000  # operations on small arrays in a function at most
_THREADED = 200_000  # elements from which on a second thread pays


def cores() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def _piece(region: Region) -> int:
    """The size of NumPy's ufunc buffer for a region, in elements: fewer than two long rows."""
    columns = [o.shape[-1] for o in region.body if o.ndim > 1 and o.shape[-1] >= _LONG]
    return (2 * min(columns) - 1) // 16 * 16 if columns else _PIECE


def _rows_of_a_block(kernel: RegionCode) -> int:
    """The number of rows (or elements) in a block."""
    found = _CACHE // max(kernel.row_bytes(), 1)
    widest = max(kernel.widest(), 1)
    return max(min(max(found, _FEWEST // widest), _MOST // widest), 1)


class RegionStep:
    """A region, ready to run."""

    def __init__(
        self,
        region: Region,
        schedule: Schedule,
        block: int | None,
        library: native_code.Library | None,
    ) -> None:
        self.region = region
        self.kernel = RegionCode(region, schedule, library)
        self.run_blocks = self.kernel.compiled()
        rows = region.rows
        self.piece = _piece(region)
        self.multiplies = any(_is_large(o, rows) for o in region.body)
        virtual = [o for o in region.body if o.index not in schedule.full]
        widest = max([o.size // max(rows, 1) for o in virtual] + [1])
        most = _rows_of_a_block(self.kernel) if block is None else block // widest
        if self.multiplies:  # more rows at once would only take more memory
            most = min(most, _MULTIPLIED // widest)
        if self.kernel.native == len(region.body):
            wanted = min(max(rows * widest // 16, _IN_C), _MOST_IN_C)
            most = max(min(wanted, wanted if block is None else block) // widest, 1)
        if self.kernel.tree:
            # Halves: from 0.7 to 1.4 of what is wanted, where the memory for that is next to nothing.
            self.blocks = tree_blocks(rows, min(most * 7 // 5, max(most, rows // 32)))
        elif region.flat:
            self.blocks = row_blocks(rows, most, PART)
        else:
            together = max([_together(o, rows) for o in region.body] or [1])
            self.blocks = row_blocks(rows, most, together)
        self.most = max((b - a for a, b in self.blocks), default=0)
        self.cuts: list[Any] = []
        for s in self.kernel.sums:
            if s.function is not add_reduce or s in self.kernel.parts:
                self.cuts.append(None)
                continue
            n = s.args[0].size
            if region.flat:
                self.cuts.append(BlockBounds(n, [a for a, _ in self.blocks]))
            else:
                width = n // rows
                self.cuts.append(BlockBounds(n, [a * width for a, _ in self.blocks]))
        # Filling an array is little beside working something out.
        self.elements = sum(o.size for o in region.body) + region.rows // 8
        self.converts = any(o.kind == "reduce" and o.dtype != o.args[0].dtype for o in region.body)
        self.reads = [o.index for o in (*self.kernel.rows, *self.kernel.whole)]
        self.makes = region.sinks

    def is_threaded(self) -> bool:
        """Whether there is enough work for a second thread."""
        return self.elements >= _THREADED and len(self.blocks) > 1

    def buffer_bytes(self) -> int:
        """Bytes of the block buffers of one thread, and of its parts of full sums."""
        parts = sum(o.size * o.dtype.itemsize for o in self.kernel.folds)
        return parts + sum(b.row_bytes() * self.most for b in self.kernel.buffers)

    def run(self, values: dict[int, Any], threads: int) -> None:
        """Compute the sinks of the region, into `values`."""
        kernel, region = self.kernel, self.region
        flat = region.flat
        made = [room(o.shape, o.dtype) for o in kernel.results]
        given: list[Any] = [
            values[o.index].reshape(-1) if flat else values[o.index] for o in kernel.rows
        ]
        given += [values[o.index] for o in kernel.whole]
        converts = self.converts or not all(a.flags.aligned for a in given)
        for o, array in zip(kernel.results, made, strict=True):
            values[o.index] = array
            given.append(array.reshape(-1) if flat else array)
        partials = []
        for s, cut in zip(kernel.sums, self.cuts, strict=True):
            count = len(self.blocks) if cut is None else cut.slots
            if s.function is vector_dot:
                count = parts_of(region.rows)
            if s in kernel.parts:
                count = region.rows
            partial = np.empty(count, s.args[0].dtype)
            edges = [] if cut is None else [np.empty(n, partial.dtype) for n, _ in cut.buffers]
            partials.append((partial, edges))
            given += [partial, cut and cut.inside, cut and cut.pieces, edges]
        spare: dict[Any, list[Any]] = {}
        folds = [
            np.empty((-(-region.rows // FOLDED), *s.shape), s.dtype)
            if s in kernel.parts
            else Fold(s.function, s.shape, s.dtype, spare)
            for s in kernel.folds
        ]
        self._run_blocks([*given, *folds], threads, np.getbufsize() if converts else self.piece)
        for s, fold in zip(kernel.folds, folds, strict=True):
            values[s.index] = fold.total() if isinstance(fold, Fold) else tree_sum(fold)
        for s, cut, (partial, edges) in zip(kernel.sums, self.cuts, partials, strict=True):
            if s.function is vector_dot:
                total = add_reduce(partial)
            elif cut is None:
                total = s.function(partial)
            else:
                for edge, (_, slot) in zip(edges, cut.buffers, strict=True):
                    partial[slot] = add_reduce(edge)
                total = cut.total(partial)
            values[s.index] = np.full(s.shape, total) if s.shape else total

    def _run_blocks(self, given: Sequence[Any], threads: int, piece: int) -> None:
        """Run the blocks; piece: elements of NumPy's own buffers."""

        def run(take: Callable[[], int]) -> None:
            np.setbufsize(piece)  # until this thread's share ends
            self.run_blocks(take, self.blocks, self.most, *given)

        count = min(threads, len(self.blocks)) if self.is_threaded() else 1
        if self.multiplies and not are_ours():
            count = 1  # the threads of the products are the others
        with multiplying_alone() if self.multiplies else nullcontext():
            share(run, len(self.blocks), count)


def _together(o: Operation, rows: int) -> int:
    """The number of rows that an operation takes at once."""
    if o.function is rows_dot:
        return block_of(o.args[0].shape[1], o.size // max(rows, 1))
    return FOLDED if o.function in FOLDS else 1


def _is_large(o: Operation, rows: int) -> bool:
    """Whether it has matrix products so large that BLAS would start threads."""
    if o.function is rows_dot:
        return _together(o, rows) * int(o.args[1].size) > CUT
    return bool(o.function is rows_product and FOLDED * o.size > CUT)


class WholeStep:
    """One operation on whole arrays."""

    def __init__(self, op: Operation) -> None:
        self.op = op
        self.reads = [a.index for a in operands((*op.args, *[v for _, v in op.options]))]
        self.makes = [op]

    def run(self, values: dict[int, Any], threads: int) -> None:
        """Work it out."""
        op = self.op
        args = [_value(a, values) for a in op.args]
        options = {k: _value(v, values) for k, v in op.options}
        values[op.index] = op.function(*args, **options)


class StraightStep:
    """Operations on small arrays, one after the other, as one function of Python.

    read: the values that other steps read of them, or the caller does.
    """

    def __init__(self, ops: Sequence[Operation], read: set[int]) -> None:
        inside = {o.index for o in ops}
        given = {a.index: a for o in ops for a in operands(o.args)}
        self.reads = [i for i, a in given.items() if i not in inside and a.kind != "constant"]
        self.makes = [o for o in ops if o.index in read]
        self._given = [given[i] for i in self.reads]
        source, space = source_of(ops, self.makes, self._given)
        exec(compile(source, "<gradcli plan>", "exec"), space)
        self._function: Callable[..., Any] = space["run"]

    def run(self, values: dict[int, Any], threads: int) -> None:
        """Work them out."""
        found = self._function(*[values[i] for i in self.reads])
        for o, value in zip(self.makes, found, strict=True):
            values[o.index] = value


def _is_small(step: WholeStep | RegionStep) -> bool:
    """Whether the call takes longer than the work, and no memory is kept by waiting with it."""
    if not isinstance(step, WholeStep) or any(
        True for _ in operands([v for _, v in step.op.options])
    ):
        return False
    return all(a.size < SMALLEST for a in (step.op, *operands(step.op.args)))


def _together_where_small(
    steps: Sequence[WholeStep | RegionStep], kept: set[int]
) -> list[WholeStep | RegionStep | StraightStep]:
    """Steps, of which neighbours on small arrays are one; kept: the values that are read in the end."""
    found: list[WholeStep | RegionStep | StraightStep] = []
    readers = Counter(i for step in steps for i in dict.fromkeys(step.reads))
    for small, run in itertools.groupby(steps, _is_small):
        some = list(run)
        for part in (some[k : k + _LINES] for k in range(0, len(some), _LINES)):
            if not small or len(part) < 2:
                found += part
                continue
            own = Counter(i for step in part for i in dict.fromkeys(step.reads))
            ops = [step.op for step in part if isinstance(step, WholeStep)]
            read = {o.index for o in ops if o.index in kept or own[o.index] < readers[o.index]}
            found.append(StraightStep(ops, read))
    return found


def _value(a: Any, values: dict[int, Any]) -> Any:
    if type(a) is Operation:
        return a.args[0] if a.kind == "constant" else values[a.index]
    if type(a) in (list, tuple):
        return type(a)([_value(v, values) for v in a])
    return a


class Scattered(Exception):
    """A program on small arrays would be as many calls as it has operations: see `Executor.is_scattered`."""


class Executor:
    """Computes outputs from inputs by a schedule.

    block: elements of the largest array in a block (default: from the sizes of the caches). smallest:
    the least number of elements of an array that is cut. sparing: recompute instead of keeping. native: run
    what has a C form in C. choosy: raise Scattered where that does not pay. Raises c_compiler.NoCompiler.
    """

    def __init__(
        self,
        outputs: Sequence[Operation],
        inputs: Sequence[Operation],
        *,
        block: int | None = None,
        smallest: int = SMALLEST,
        threads: int | None = None,
        sparing: bool = False,
        native: bool = False,
        choosy: bool = False,
    ) -> None:
        self.outputs, self.inputs = list(outputs), list(inputs)
        self.threads = threads or cores()
        keep = {"keep": math.inf} if sparing else {}
        self.schedule = Schedule(self.outputs, smallest, **keep)
        library = native_code.Library() if native else None
        self.steps: list[WholeStep | RegionStep] = [
            RegionStep(s, self.schedule, block, library) if isinstance(s, Region) else WholeStep(s)
            for s in self.schedule.steps
        ]
        if library is not None:
            if choosy and self.is_scattered():
                raise Scattered
            library.build()
        self.constants = {o.index: o.args[0] for o in self.schedule.order if o.kind == "constant"}
        kept = {*self.constants, *[o.index for o in self.outputs]}
        self.dying = _dying(self.steps, kept)
        # Python compiles a function in the time of a few calls, which is little beside a compiler of C.
        todo = _together_where_small(self.steps, kept) if native else self.steps
        self._todo = list(zip(todo, _dying(todo, kept), strict=True))
        self.smallest, self.native = smallest, native

    def is_scattered(self) -> bool:
        """Whether a line of NumPy for each operation is faster: of arrays that are not worth cutting.

        A step takes the time of some calls of NumPy's; programs that move elements have many. Differences of
        neighbours, say, x[1:] - x[:-1], do not go into one function with what reads them elsewhere.
        """
        order = [o for o in self.schedule.order if o.function is not None]
        if any(o.size >= SMALLEST for o in order):
            return False
        more = len(self.steps) * _CALLS - len(order)  # calls that C costs
        return more * _SAVED > sum(o.size for o in order)

    def foreign(self) -> list[str]:
        """What of a program that is to run as C has no C form: names of NumPy's calls, and why.

        Products of matrices, and what only moves elements, are as fast without; small arrays too.
        """
        found = []
        for step in self.steps if self.native else ():
            ops = [step.op] if isinstance(step, WholeStep) else step.kernel.foreign
            for o in ops:
                most = max([o.size, *[a.size for a in operands(o.args)]])
                if o.function is not None and most >= self.smallest and (why := _why_not(o)):
                    found.append(f"{call_name(o)} ({why})")
        return list(dict.fromkeys(found))

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        values: dict[int, Any] = dict(self.constants)
        for o, array in zip(self.inputs, arrays, strict=True):
            values[o.index] = array
        with np.errstate(all="ignore"):
            for step, dying in self._todo:
                step.run(values, self.threads)
                for index in dying:
                    values.pop(index, None)
        # An output may be an input as it is, a constant, a view, or the same array as another output. The
        # caller may write into each of them, so they are copied.
        taken = {id(a) for a in arrays} | {id(c) for c in self.constants.values()}
        found = []
        for o in self.outputs:
            value = values[o.index]
            if isinstance(value, np.ndarray):
                if id(value) in taken or value.base is not None:
                    value = value.copy()
                taken.add(id(value))
            found.append(value)
        return tuple(found)

    @property
    def regions(self) -> list[RegionStep]:
        """The steps that are cut into blocks."""
        return [s for s in self.steps if isinstance(s, RegionStep)]


_AS_FAST = frozenset(
    [
        *(np.matmul, np.dot, np.vdot, np.array, np.concatenate, operator.getitem, as_operands),
        *(rows_dot, rows_product, vector_dot, written, pieced, scattered, repeat_to),
    ]
)


def _why_not(o: Operation) -> str:
    """Why a call is not run as C; "" where that is no loss."""
    if o.kind in ("view", "fill") or o.function in _AS_FAST:
        return ""
    known = [a.dtype for a in (o, *operands(o.args)) if a.dtype.kind != "O"]
    for dtype in known:
        if c_forms.c_type(dtype) is None:
            return str(dtype)
    if o.kind == "elementwise":
        return "" if c_forms.form(o) else "no C form"
    return "" if native_code.has_form(o, True, True) else "no C form"


def _dying(
    steps: Sequence[WholeStep | RegionStep | StraightStep], kept: set[int]
) -> list[list[int]]:
    """The values that no step reads after each step; kept: those that are read in the end."""
    last: dict[int, int] = {}
    for at, step in enumerate(steps):
        for index in step.reads:
            last[index] = at
        for o in step.makes:
            last.setdefault(o.index, at)
    found: list[list[int]] = [[] for _ in steps]
    for index, at in last.items():
        if index not in kept:
            found[at].append(index)
    return found


def make(*args: Any, native: bool = False, smallest: int = SMALLEST, **options: Any) -> Executor:
    """An executor (see `Executor`); where there is no C compiler a warning says so, and NumPy runs."""
    try:
        return Executor(*args, native=native, smallest=smallest, **options)
    except c_compiler.NoCompiler as error:
        warn_of(error)
        return Executor(*args, smallest=max(smallest, SMALLEST), **options)


def warn_of(error: c_compiler.NoCompiler) -> None:
    """Say that there is no native code, and why."""
    warnings.warn(f"native: {error}; blocks of NumPy run instead", stacklevel=2)


__all__ = ["Executor", "RegionStep", "Scattered", "WholeStep", "cores", "make", "warn_of"]
