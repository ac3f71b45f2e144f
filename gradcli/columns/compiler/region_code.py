"""The code of a region: straight-line NumPy over one block, with buffers that are used again and again."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.columns.compiler import native_code
from gradcli.columns.compiler.fusion_schedule import Region, Schedule
from gradcli.engine.registry.dimensions import OVER_FEW
from gradcli.engine.system.blocked_products import FOLDED, FOLDS, part_dots, vector_dot
from gradcli.engine.system.cascaded_sums import add_reduce
from gradcli.engine.system.generated_builtins import NO_BUILTINS
from gradcli.engine.system.page_pool import aligned
from gradcli.transforms.tracing.abstract_evaluation import at_each, method_call, put_along, put_less
from gradcli.transforms.tracing.numpy_program import Operation, cast, operands

_RESHAPE = method_call("reshape")
_SHORTCUTS: dict[Any, Any] = {2: np.square, 0.5: np.sqrt, -1: np.reciprocal}


def _may_overwrite(o: Operation) -> bool:
    """Whether the result may be written into the memory of an operand."""
    return o.kind == "elementwise" and o.function not in (np.where, cast)


class Buffer:
    """Memory for one intermediate of a block."""

    __slots__ = ("dtype", "name", "rest")

    def __init__(self, name: str, rest: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.name, self.rest, self.dtype = name, rest, dtype

    def row_bytes(self) -> int:
        """Bytes for each row of a block."""
        total = self.dtype.itemsize
        for n in self.rest:
            total *= n
        return total


# What is generated, on an example: sum((a*x + b)**2) over a million rows becomes
#
#     def run(take, blocks, most, X0, s0, s1, p0, c0, q0, e0):
#         B0 = empty((most,), float64)         # one buffer, of the length of a block
#         while True:
#             i = take()                       # the next block that no thread has
#             if i >= len(blocks): return
#             a, b = blocks[i]; m = b - a
#             x0 = X0[a:b]; b0 = B0[:m]
#             multiply(s0, x0, out=b0); add(b0, s1, out=b0); multiply(b0, b0, out=b0)
#             p0[i] = add_reduce(b0)           # this block's part of the sum
#
# Small letters are the block's views of the arrays in capitals. A call of NumPy's writes into a buffer by
# `out=`, so nothing is allocated inside of the loop, and a buffer is taken again once its value has been
# read. Each thread runs the function with buffers of its own.
class RegionCode:
    """The generated function of a region, and its inputs and results.

    rows: arrays that are cut into blocks; whole: values that are not; results: the sinks that are arrays;
    sums: full reductions; folds: reductions over rows, combined from blocks.
    tree: whether blocks are nodes of NumPy's pairwise sum.
    """

    def __init__(
        self, region: Region, schedule: Schedule, library: native_code.Library | None = None
    ) -> None:
        self.region, self.schedule, self.library = region, schedule, library
        self.flat = region.flat
        self.rows: list[Operation] = []
        self.whole: list[Operation] = []
        self.results = [s for s in region.sinks if s.index not in schedule.full]
        full = [s for s in region.sinks if s.index in schedule.full]
        self.sums = [s for s in full if s.function not in FOLDS]
        self.folds = [s for s in full if s.function in FOLDS]
        self.tree = self.flat and all(s.function is not vector_dot for s in self.sums)
        self.native = 0  # operations that run as C
        self.foreign: list[Operation] = []  # those that have no C form, where C is asked for
        self.parts: list[
            Operation
        ] = []  # sums of which each row, or each fold of rows, gives a part
        self.buffers: list[Buffer] = []
        self.space: dict[str, Any] = {"__builtins__": NO_BUILTINS, "len": len}
        self._names: dict[int, str] = {}
        self._constants: dict[Any, str] = {}
        self._lines: list[str] = []
        self._held: list[str] = []  # arrays whose addresses C is told
        self._write()

    # -- names -------------------------------------------------------------------------------------
    def _constant(self, value: Any) -> str:
        # A constant's name stands for the object itself, since a value of any class (a dtype, an index)
        # may be one.
        key = id(value)
        if key not in self._constants:
            name = self._constants[key] = f"k{len(self._constants)}"
            self.space[name] = value
        return self._constants[key]

    def _row_name(self, o: Operation) -> str:
        name = self._names.get(o.index)
        if name is None:
            name = self._names[o.index] = f"x{len(self.rows)}"
            self.rows.append(o)
        return name

    def _whole_name(self, o: Operation) -> str:
        # The same array may be cut in one place and be read whole in another, as x in `x - x[0]`: two
        # names. The complement keeps their keys apart in one dict.
        key = ~o.index
        name = self._names.get(key)
        if name is None:
            name = self._names[key] = f"s{len(self.whole)}"
            self.whole.append(o)
        return name

    def _operand(self, user: Operation, a: Any) -> str:
        if type(a) is not Operation:
            return self._constant(a)
        if a.kind == "fill":
            return self._whole_name(a.args[0])
        if self.schedule.is_row_operand(user, a) or user.index in self.schedule.full:
            return self._names.get(a.index) or self._row_name(a)
        if a.kind == "constant" and not a.shape:
            return self._constant(self._scalar(a))
        return self._whole_name(a)

    def _scalar(self, a: Operation) -> Any:
        kept = self.space.setdefault("__scalars__", {})
        return kept.setdefault(a.index, np.asarray(a.args[0]))

    # -- the text ----------------------------------------------------------------------------------
    def _steps(self) -> list[tuple[bool, list[Operation]]]:
        """The body in the order in which it runs: what becomes one C function, or one call of NumPy."""
        body = self.region.body
        if self.library is None:
            return [(False, [o]) for o in body]
        inside = {o.index for o in body}
        done: set[int] = set()
        found: list[tuple[bool, list[Operation]]] = []
        # Alternately as much as possible that has a C form, then what must run as NumPy. Few, long C
        # functions are the aim: each boundary writes values to memory that would otherwise stay in
        # registers.
        while len(done) < len(body):
            for native in (True, False):
                before, now = set(done), []
                for o in body:
                    given = {a.index for a in operands(o.args)} & inside
                    ready = given <= (done if native else before)
                    if o.index not in done and ready and self._is_native(o) == native:
                        now.append(o)
                        done.add(o.index)
                found += [(True, now)] if native and now else [(False, [o]) for o in now]
        return found

    def _is_native(self, o: Operation) -> bool:
        full = o.index in self.schedule.full
        if full and self.flat and not (self.tree and o.function is add_reduce):
            return False
        return native_code.has_form(o, self.flat, full)

    def _write(self) -> None:
        steps = self._steps()
        self._targets = {s.index: f"o{k}" for k, s in enumerate(self.results)}
        self._last = self._last_uses([ops for _, ops in steps])
        self._free: dict[tuple[Any, Any], list[str]] = {}
        self._home: dict[str, tuple[Any, Any]] = {}
        self._owner: dict[int, str] = {}  # the buffer an operation's value lies in, views included
        for at, (native, ops) in enumerate(steps):
            if native:
                self._write_native(ops, at)
            else:
                self.foreign += ops if self.library is not None else []
                self._write_one(ops[0], at)
            self._release(at, *ops)
        for s in self.results:
            target = self._targets[s.index]
            if s.kind == "fill":
                self._lines.append(f"copyto({target}, {self._whole_name(s.args[0])})")
        self.space.update(
            **{"copyto": np.copyto, "broadcast_to": np.broadcast_to, "empty": aligned},
            **{"where": np.where, "held": native_code.held},
        )

    def _buffer_for(self, o: Operation, rest: tuple[int, ...]) -> str:
        key = (rest, o.dtype)
        spare = self._free.setdefault(key, [])
        name = spare.pop() if spare else self._new_buffer(rest, o.dtype)
        self._home[name], self._owner[o.index] = key, name
        return name

    def _write_native(self, ops: list[Operation], at: int) -> None:
        """One call of a C function; what it reads, what later steps read of it, and parts of sums."""
        assert self.library is not None
        self.native += len(ops)
        # What leaves a C function: what a later step reads, what is a result of the region, and sums. The
        # rest exists in registers only, and has no buffer.
        full = [o for o in ops if o.index in self.schedule.full]
        sums = full if self.flat else []
        leaving = [
            o
            for o in ops
            if o not in sums and (self._last[o.index] > at or o.index in self._targets or o in full)
        ]
        kernel = self.library.kernel(ops, leaving, sums, self.schedule, self.flat)
        places = [
            self._place(self._names.get(o.index) or self._row_name(o), self._row_bytes(o))
            if by_row
            else self._place(self._whole_name(o))
            for o, by_row in kernel.inputs
        ]
        for o in leaving:
            if o in full:
                self.parts.append(o)
                fold = o in self.folds
                name = f"z{self.folds.index(o)}" if fold else f"p{self.sums.index(o)}"
                first = f"a // {FOLDED}" if fold else "a"
                places.append(self._place(name, o.size * o.dtype.itemsize, first))
                continue
            rest = () if self.flat else o.shape[1:]
            name = self._targets.get(o.index) or self._buffer_for(o, rest)
            self._names[o.index] = name
            places.append(self._place(name, self._row_bytes(o)))
        places += [self._place(f"p{self.sums.index(o)}", o.dtype.itemsize, "i") for o in sums]
        call = self._constant(self.library.add(kernel))
        self._lines.append(f"{call}(m, {', '.join(places)})")

    def _place(self, name: str, step: int = 0, at: str = "a") -> str:
        """Where C finds a block of an array; step: bytes from one row, or block `at`, to the next."""
        # A view made by broadcasting may have strides of 0, which C does not know. `held` copies it if
        # so.
        if name[0] == "w":  # a view of a block
            self._lines.append(f"{name}_in, {name}_at = held({name})")
            return f"{name}_at"
        array = name.upper() if name[0] in "xob" else name
        if array not in self._held:
            self._held.append(array)
        return f"{array}_at + {at} * {step}" if step and name[0] != "b" else f"{array}_at"

    def _row_bytes(self, o: Operation) -> int:
        return int(o.size // max(self.region.rows, 1) * o.dtype.itemsize)

    def _write_one(self, o: Operation, at: int) -> None:
        if o.index in self.schedule.full:
            self._reduce(o)
            return
        target = self._targets.get(o.index)
        rest = () if self.flat else o.shape[1:]
        view = self._view(o, rest)
        if view is not None:
            source = o.args[0]
            self._names[o.index] = view
            if source.index in self._owner:
                self._owner[o.index] = self._owner[source.index]
            if target is not None:
                self._lines.append(f"copyto({target}, {view})")
            return
        given = [self._operand(o, a) for a in o.args]
        # x - y*z: the result of the product may lie where y lies, if nobody reads y again. So operands
        # are freed before the result's buffer is chosen, but only for functions that read element k
        # before they write it.
        if target is None and _may_overwrite(o):
            self._release(at, o)
        name = target or self._buffer_for(o, rest)
        self._emit(o, given, name)
        self._names[o.index] = name

    def _last_uses(self, steps: Sequence[Sequence[Operation]]) -> dict[int, int]:
        # The usual liveness: the last step that reads a value. Then backwards over views, so that memory
        # stays as long as any view of it is read, views of views included.
        last: dict[int, int] = {}
        for at, ops in enumerate(steps):
            for o in ops:
                last.setdefault(o.index, at)
                for a in operands(o.args):
                    last[a.index] = at
        for o in reversed(self.region.body):  # a view keeps what it is a view of
            if self._is_view(o):
                source = o.args[0].index
                last[source] = max(last.get(source, 0), last[o.index])
        return last

    def _release(self, at: int, *ops: Operation) -> None:
        """Free the buffers of values that are not needed after this step."""
        last, owner = self._last, self._owner
        for a in [x for o in ops for x in (*operands(o.args), o)]:
            name = owner.get(a.index)
            if name is None or last[a.index] > at:
                continue
            if a in ops and a.index not in self._names:
                continue
            if any(n == name and last[i] > at for i, n in owner.items()):
                continue
            for i in [i for i, n in owner.items() if n == name]:
                del owner[i]
            self._free.setdefault(self._home[name], []).append(name)

    def _new_buffer(self, rest: tuple[int, ...], dtype: Any) -> str:
        name = f"b{len(self.buffers)}"
        self.buffers.append(Buffer(name, rest, dtype))
        return name

    def _is_view(self, o: Operation) -> bool:
        return o.function in (_RESHAPE, np.broadcast_to)

    def _view(self, o: Operation, rest: tuple[int, ...]) -> str | None:
        if not self._is_view(o):
            return None
        source = self._operand(o, o.args[0])
        if self.flat:
            return source
        name = f"w{o.index}"
        shape = f"({self._shape('m', rest)})"
        if o.function is _RESHAPE:
            self._lines.append(f"{name} = {source}.reshape({shape})")
        else:
            self._lines.append(f"{name} = broadcast_to({source}, {shape})")
        return name

    def _emit(self, o: Operation, given: list[str], name: str) -> None:
        f = o.function
        if o.kind == "reduce":
            options = "".join([f", {k}={self._constant(v)}" for k, v in o.options])
            reduce = self._constant(OVER_FEW.get(f, f))
            self._lines.append(f"{reduce}({given[0]}{options}, out={name})")
        elif f is cast:
            self._lines.append(f"copyto({name}, {given[0]}, 'unsafe')")
        elif f is np.take_along_axis:
            index = f"{self._constant(at_each)}({', '.join(given[1:])})"
            self._lines.append(f"copyto({name}, {given[0]}[{index}])")
        elif f is put_less:
            self._lines.append(f"{self._constant(f)}({', '.join(given)}, {name})")
        elif f is put_along:
            self._lines.append(f"copyto({name}, {given[0]})")
            put = self._constant(np.put_along_axis)
            self._lines.append(f"{put}({name}, {', '.join(given[1:])})")
        # np.where has no `out=`: first everything from one side, then what the mask takes from the other.
        elif f is np.where:
            self._lines.append(f"copyto({name}, {given[2]})")
            self._lines.append(f"copyto({name}, {given[1]}, where={given[0]})")
        elif f is operator.pow:
            exponent = o.args[1]
            short = _SHORTCUTS.get(exponent) if o.dtype.kind in "fc" or exponent == 2 else None
            if short is None:
                self._lines.append(f"{self._constant(np.power)}({given[0]}, {given[1]}, {name})")
            else:
                self._lines.append(f"{self._constant(short)}({given[0]}, {name})")
        else:
            self._lines.append(f"{self._constant(f)}({', '.join(given)}, out={name})")

    def _reduce(self, o: Operation) -> None:
        if o in self.folds:
            given = ", ".join([self._operand(o, a) for a in o.args])
            self._lines.append(f"z{self.folds.index(o)}(a, {given})")
            return
        k = self.sums.index(o)
        value, *more = [self._operand(o, a) for a in o.args]
        if o.function is vector_dot:
            dots = self._constant(part_dots)
            self._lines.append(f"{dots}({value}, {more[0]}, p{k}, a)")
            return
        reduce = self._constant(o.function)
        if self.tree or o.function is not add_reduce:
            every = "" if self.flat else ", axis=None"
            self._lines.append(f"p{k}[i] = {reduce}({value}{every})")
            return
        # A full sum whose blocks are no nodes of NumPy's tree. u:v are nodes inside of the block; leaves
        # of the tree that cross its bounds are put together in small arrays e and are summed at the end
        # (`BlockBounds`).
        self._lines += [
            f"f = {value}.reshape(-1)",
            f"for u, v, j in c{k}[i]: p{k}[j] = {reduce}(f[u:v])",
            f"for u, v, j, w in q{k}[i]: e{k}[j][w:w + v - u] = f[u:v]",
        ]

    def source(self) -> str:
        """The text of the function; it has generated names only."""
        names = [f"X{i}" for i in range(len(self.rows))]
        names += [f"s{i}" for i in range(len(self.whole))]
        names += [f"O{i}" for i in range(len(self.results))]
        for k in range(len(self.sums)):
            names += [f"p{k}", f"c{k}", f"q{k}", f"e{k}"]
        names += [f"z{k}" for k in range(len(self.folds))]
        lines = [f"def run(take, blocks, most, {', '.join(names)}):"]
        for b in self.buffers:
            shape, dtype = self._shape("most", b.rest), self._constant(b.dtype)
            lines.append(f" {b.name.upper()} = empty(({shape}), {dtype})")
        lines += [f" {name}_in, {name}_at = held({name})" for name in self._held]
        lines += [" while True:", "  i = take()", "  if i >= len(blocks): return"]
        lines += ["  a, b = blocks[i]", "  m = b - a"]
        blocks = [(f"x{i}", f"X{i}[a:b]") for i in range(len(self.rows))]
        blocks += [(f"o{i}", f"O{i}[a:b]") for i in range(len(self.results))]
        blocks += [(b.name, f"{b.name.upper()}[:m]") for b in self.buffers]
        # Views of blocks take time in each turn, so only those are made that the text reads.
        words = set(re.findall(r"\w+", " ".join(self._lines)))
        lines += [f"  {name} = {block}" for name, block in blocks if name in words]
        lines += [f"  {line}" for line in self._lines]
        return "\n".join(lines)

    def _shape(self, count: str, rest: tuple[int, ...]) -> str:
        """The shape of a block of so many rows, as text."""
        return ", ".join([count, *map(str, rest)]) + ","

    def compiled(self) -> Callable[..., Any]:
        """The function."""
        source = self.source()
        exec(compile(source, "<gradcli region>", "exec"), self.space)
        return self.space["run"]  # type: ignore[no-any-return]

    def row_bytes(self) -> int:
        """Bytes that one row of a block touches: buffers, operands, results."""
        return sum(self._row_sizes())

    def widest(self) -> int:
        """Bytes of a row of the widest of these."""
        return max(self._row_sizes(), default=0)

    def _row_sizes(self) -> list[int]:
        arrays = (*self.rows, *self.results)
        return [*[b.row_bytes() for b in self.buffers], *map(self._row_bytes, arrays)]


__all__ = ["RegionCode"]
