"""A region, or what of it has a C form, as a C function of a block of rows.

Operations on elements become loops over chunks that stay in the first-level cache. A loop holds all that
can be worked out side by side; what waits for a call of the mathematical library, a reduction or another
shape comes in a later loop (`_Stage`). Arithmetic is NumPy's to the bit, sums are in its order; calls are
the C library's, by vectors where there is a library of them.
"""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.columns.compiler import native_prelude
from gradcli.columns.compiler.c_forms import (
    BYTES,
    COMBINED,
    REDUCTIONS,
    TYPES,
    VECTOR,
    Form,
    Functions,
    c_type,
    form,
    literal,
)
from gradcli.engine.system import c_compiler
from gradcli.engine.system.blocked_products import FOLDED, FOLDS, rows_dot, rows_sum
from gradcli.engine.system.cascaded_sums import add_reduce
from gradcli.transforms.tracing.abstract_evaluation import method_call, put_along, put_less
from gradcli.transforms.tracing.numpy_program import Operation, operands

_RESHAPE = method_call("reshape")
_PUTS = (put_along, put_less)
_CHUNK = 512  # elements of a chunk at most
_FIRST = (
    24 << 10
)  # bytes that the arrays of a chunk take at most: they stay in the first-level cache
_FEWEST = 128  # elements of a chunk, however many its arrays are
_NARROW = 8  # columns from which the innermost loop runs along a row
_FEW = 256  # terms that are added one after the other (as in `cascaded_sums`)
_AHEAD = "AHEAD"  # where the next chunk is fetched
_TOGETHER = 60  # values of a loop at most
_CALLS = 100  # of loops in a function at most: compilers take longer than in proportion
_PARTS = 16  # in which it is fetched, at most
_SHORT = 16  # elements of a row, up to which a reduction takes many rows at once, a vector of each column


def has_form(o: Operation, flat: bool, full: bool) -> bool:
    """Whether an operation of a region has a C form. full: whether it reduces all rows."""
    given = list(operands(o.args))
    if any(a.size == 0 or c_type(a.dtype) is None for a in (o, *given)):
        return False
    if o.function is _RESHAPE:
        return True
    if o.function in (np.take_along_axis, *_PUTS):
        return _has_along(o) and not any(map(_is_repeated, given))
    if o.function is rows_sum:
        return True
    if o.function is rows_dot:
        short = o.ndim == 1 and o.args[0].shape[1] <= _SHORT
        return short and not any(map(_is_repeated, given))
    if o.kind == "reduce":
        return not _is_repeated(given[0]) and _reduced(o, flat, full) is not None
    found = form(o) if o.kind == "elementwise" or o.function is np.broadcast_to else None
    return found is not None and found.has_types()


def _is_repeated(a: Operation) -> bool:
    return a.kind == "fill" or a.function is np.broadcast_to


def _has_along(o: Operation) -> bool:
    """Whether it takes or puts along the rows of a matrix."""
    array, indices, *values = o.args[:-1]
    plain = o.ndim == 2 == indices.ndim and indices.dtype == np.dtype(np.int64)
    same = all(type(v) is Operation and v.shape == indices.shape for v in values)
    return bool(plain and same and array.kind != "fill" and (o.function is not put_along or values))


def _reduced(o: Operation, flat: bool, full: bool) -> tuple[int, int, int] | None:
    """(outer, terms, inner) of a reduction of each row; None if it has no C form."""
    a = o.args[0]
    word = REDUCTIONS.get(o.function)
    if word is None or a.dtype != o.dtype or o.dtype.kind != "f" or o.axes is None:
        return None
    if flat:
        return (1, a.size, 1) if word == "sum" else None
    axes = o.axes[full:]
    if full and (not axes or o.axes != tuple(range(a.ndim))):
        return (1, 1, 1) if a.ndim == 1 else None
    if 0 in axes or axes != tuple(range(axes[0], axes[0] + len(axes))):
        return None
    terms, inner = (
        math.prod(a.shape[k] for k in some) for some in (axes, range(axes[-1] + 1, a.ndim))
    )
    # `cascaded_sums` adds long columns block by block; a plain loop would have other last digits.
    if inner > 1 and (terms > _FEW or word != "sum"):
        return None
    return math.prod(a.shape[1 : axes[0]]), terms, inner


def _softmax(o: Operation) -> tuple[Operation, Operation, Operation] | None:
    """(e, s, what is subtracted) of exp(a - log(s)) and exp(x - (log(s) + m)), where s sums e = exp(a).

    a is x - m, and m the largest x (0 for infinities), so that e and s do not overflow: the value is e/s.
    """
    if o.function is not np.exp or (less := o.args[0]).function is not np.subtract:
        return None
    first, like = less.args
    last = like
    while getattr(last, "function", None) is _RESHAPE:
        last = last.args[0]
    log, m = last.args if getattr(last, "function", None) is np.add else (last, None)
    try:
        s = log.args[0]
        e = s.args[0]
        x, top = e.args[0].args
        peak = top.args[2] if top.function is np.where else top
        found = (log.function, s.function, e.function, e.args[0].function, peak.function)
        same = first is e.args[0] if m is None else (first is x and m is top)
        same = same and peak.args[0] is x and s.size == like.size
    except (AttributeError, IndexError, ValueError, TypeError):
        return None
    wanted = (np.log, add_reduce, np.exp, np.subtract, np.maximum.reduce)
    return (e, s, like) if same and found == wanted else None


class _Node:
    """A value of a kernel: what is worked out in a loop, or by a statement of its own (`form` is None).

    base: the value whose memory a statement writes into. stage, key: what goes into a loop; those of one
    stage depend on each other only with one key. loop: the loop's number. args: literals, the
    inputs' numbers, other nodes; each with its type
    and the shape of a row of it (None: a scalar).
    """

    __slots__ = (
        *("args", "base", "form", "key", "loop", "name", "number", "op", "shape", "stage"),
        *("type", "users"),
    )

    def __init__(
        self, op: Operation, form: Form | None, args: list[Any], shape: Any, key: Any
    ) -> None:
        self.op, self.form, self.args, self.shape, self.key = op, form, args, shape, key
        self.type = c_type(op.dtype if form is None else form.kind)
        self.stage = 0
        self.base: _Node | None = None
        self.users: list[_Node] = []
        self.name, self.number, self.loop = "", 0, -1
        for a in args:
            if type(a.source) is _Node:
                a.source.users.append(self)
                self.stage = max(self.stage, a.source.stage + self.follows(a.source))

    def follows(self, other: _Node) -> bool:
        """Whether it needs a later loop than another value's: a call has one of its own."""
        return self.key != other.key or self.is_alone() or other.is_alone()

    def is_alone(self) -> bool:
        """Whether nothing shares its loop: a call would have the processor put other values aside."""
        return self.form is None or self.form.is_call

    def is_called(self) -> bool:
        """Whether its loop is a function that programs share: over elements that lie in a row."""
        if self.form is None or not self.form.is_call:
            return False
        return type(self.key) is int or self.is_exponential()

    def is_exponential(self) -> bool:
        """Whether it is exp of an array of its own shape and type."""
        if self.form is None or not self.form.is_exponential():
            return False
        a = self.args[0]
        return bool(a.is_row and a.type == self.type and a.shape == self.shape)

    def text(self, given: Iterable[str]) -> str:
        """The C of its value, of the texts of its operands."""
        assert self.form is not None
        return self.form.of(given, [a.type for a in self.args])

    def lanes(self) -> int:
        """Elements of the widest vector of its loop.

        Loops are rounded up to that, so that no element is left to a scalar loop, whose sine is another one
        in its last digit.
        """
        return VECTOR // min(BYTES[t] for t in (self.type, *[a.type for a in self.args]) if t)


class _Argument:
    """Where an operand is: source is a literal's text, an input's number or a node."""

    __slots__ = ("is_row", "shape", "source", "type")

    def __init__(
        self, source: Any, kind: str | None, shape: Any = None, is_row: bool = False
    ) -> None:
        self.source, self.type, self.shape, self.is_row = source, kind, shape, is_row


def _rounded(count: str, lanes: int) -> str:
    """A count of elements as C has it, rounded up to whole vectors."""
    return f"(({count} + {lanes - 1}) & ~{lanes - 1}L)"


# How a region becomes C. Elementwise work on rows of one width shares a loop, whose values stay in
# registers: `a*x + b` writes a single array. A call of the library (exp, log) has a loop of its own over a
# chunk, for then the compiler takes its vector version. What crosses from one loop to another lies in
# scratch memory of a chunk, so small that the first-level cache keeps it. A reduction ends a loop, and what
# needs its result comes in a later one (`stage`).
class Kernel:
    """The C function of some operations of a region.

    inputs: the values it reads. leaving: the operations whose values are written. sums: full sums, in the
    order of NumPy's tree (of flat regions). functions: those of the library, where its loops go. The
    function takes the number of rows and a pointer to each of inputs, leaving and sums; it returns
    whether an index was out of bounds.
    """

    def __init__(
        self,
        name: str,
        functions: Functions,
        body: Sequence[Operation],
        leaving: Sequence[Operation],
        sums: Sequence[Operation],
        schedule: Any,
        flat: bool,
    ) -> None:
        self.name, self.schedule, self.flat = name, schedule, flat
        self.functions = functions
        self.leaving, self.sums = list(leaving), list(sums)
        self._sums = {o.index for o in body if o.index in schedule.full}
        self.inputs: list[tuple[Operation, bool]] = []  # with whether it is cut into blocks
        self._nodes: dict[int, _Argument] = {}
        self._made: list[_Node] = []
        self._padded: set[int] = set()
        self._tiles: dict[Any, str] = {}
        # Of scratch memory: name, type, elements for each row of a chunk, and for all of them.
        self._slots: list[tuple[str, str, int, int]] = []
        self._setup: list[str] = []
        self._most = FOLDED if any(o.function in FOLDS for o in body) else _CHUNK
        for o in body:
            if o not in self.sums:
                self._add(o)
        self._ends = [self._argument(o, o.args[0], o.dtype) for o in self.sums]

    # -- values ------------------------------------------------------------------------------------
    def _shape(self, o: Operation) -> tuple[int, ...]:
        """The shape of what a row of a block gives."""
        if o.index in self._sums:
            return o.shape if o.function in FOLDS else ()
        return () if self.flat else o.shape[1:]

    def _is_row(self, o: Operation, a: Operation) -> bool:
        return a.kind != "fill" and bool(self.schedule.is_row_operand(o, a))

    def _argument(self, o: Operation, a: Any, kind: Any) -> _Argument:
        """An operand of an operation; a number is written in the type that it is used in."""
        if type(a) is not Operation:
            return _Argument(literal(a, kind), c_type(kind))
        # What is repeated costs nothing as an operand: the loop reads its one element at every turn.
        while a.kind == "fill" or (
            a.function is np.broadcast_to and a.index not in self.schedule.virtual
        ):
            a = a.args[0]
        if a.index in self._nodes:
            return self._nodes[a.index]
        if a.kind == "constant" and not a.shape:
            return _Argument(literal(a.args[0], a.dtype), c_type(a.dtype))
        by_row = self._is_row(o, a)
        if (a, by_row) not in self.inputs:
            self.inputs.append((a, by_row))
        number = self.inputs.index((a, by_row))
        shape = a.shape if a.size > 1 else None
        if by_row:
            shape = self._shape(a)
        return _Argument(number, c_type(a.dtype), shape, by_row)

    def _add(self, o: Operation) -> None:
        shape = self._shape(o)
        # Memory is the same, so only the shape under which it is read changes.
        if o.function is _RESHAPE and o not in self.leaving:
            found = self._argument(o, o.args[0], o.dtype)
            self._nodes[o.index] = _Argument(found.source, found.type, shape, found.is_row)
            return
        if o.function is _RESHAPE:
            found = self._argument(o, o.args[0], o.dtype)
            args = [_Argument(found.source, found.type, shape, found.is_row)]
            node = self._loop(o, Form("{0}", [o.dtype], o.dtype), args, shape)
        # The exponentials of a softmax are there already: dividing them by their sum saves the second exp.
        elif (parts := _softmax(o)) is not None and {x.index for x in parts[:2]} <= set(
            self._nodes
        ):
            e, s, like = parts
            over = self._nodes[s.index]
            divided = self._loop(o, Form("1 / {0}", [o.dtype], o.dtype), [over], over.shape)
            args = [self._nodes[e.index], _Argument(divided, over.type, self._shape(like), True)]
            node = self._loop(o, Form("{0} * {1}", [o.dtype] * 2, o.dtype), args, shape)
        elif o.kind == "elementwise" or o.function is np.broadcast_to:
            made = form(o)
            assert made is not None
            pairs = zip(o.args, made.kinds, strict=False)
            node = self._loop(o, made, [self._argument(o, a, k) for a, k in pairs], shape)
        else:
            args = [self._argument(o, a, None) for a in operands(o.args)]
            if o.function is np.take_along_axis:
                node = self._taken(o, args[0], args[1], shape)
            elif o.function in _PUTS:
                text = "0 - {0}" if o.function is put_less else "{0}"
                base = self._loop(o, Form(text, [o.dtype], o.dtype), [args[0]], shape)
                args[0] = _Argument(base, base.type, shape, True)
                node = self._statement_of(o, args, shape)
                node.base = base
            else:
                node = self._statement_of(o, args, shape)
        self._nodes[o.index] = _Argument(node, node.type, shape, True)

    def _statement_of(self, o: Operation, args: list[_Argument], shape: Any) -> _Node:
        node = _Node(o, None, args, shape, ("alone", len(self._made)))
        self._made.append(node)
        return node

    def _taken(self, o: Operation, a: _Argument, indices: _Argument, shape: Any) -> _Node:
        """What is taken of cheap elementwise work is taken of its operands: few elements are worked out."""
        n = a.source
        apart = type(n) is not _Node or n.is_alone() or n.shape != a.shape
        if apart or any(x.shape not in (n.shape, (1,), None) for x in n.args):
            return self._statement_of(o, [a, indices], shape)
        args = [
            _Argument(self._taken(o, x, indices, shape), x.type, shape, True)
            if x.shape == n.shape
            else x
            for x in n.args
        ]
        return self._loop(o, n.form, args, shape)

    def _loop(self, o: Operation, made: Form, args: list[_Argument], shape: Any) -> _Node:
        nested = bool(shape) and shape[-1] >= _NARROW
        key = ("rows", shape) if nested else _size(shape)
        if not nested:
            args = [self._spread(o, a, shape) for a in args]
            self._padded |= {a.source for a in args if a.is_row and type(a.source) is int}
        node = _Node(o, made, args, shape, key)
        self._made.append(node)
        return node

    def _spread(self, o: Operation, a: _Argument, shape: Any) -> _Argument:
        """An operand of short rows, repeated to their shape."""
        if a.shape is None or (a.is_row and _size(a.shape) == _size(shape)):
            return a
        kind = o.dtype if type(a.source) is str else _dtype_of(a.type)
        if a.is_row:
            node = _Node(o, Form("{0}", [kind], kind), [a], shape, ("rows", shape))
            self._made.append(node)
            return _Argument(node, a.type, shape, True)
        name = self._tiles.get((a.source, shape))
        if name is None:
            name = self._tiles[a.source, shape] = f"t{len(self._tiles)}"
            self._slots.append((name, a.type or "", _size(shape), VECTOR))
            at = _index(shape, shape, True)
            text = f"{name}{at} = x{a.source}{_index(a.shape, shape, False)};"
            self._setup.append(_nest(shape, "CHUNK", [text]))
        return _Argument(name, a.type, shape, True)

    # -- the text ----------------------------------------------------------------------------------
    def source(self) -> str:
        """The text of the function."""
        loops = self._place()
        texts = [self._text(nodes) for nodes in loops]
        types = self._types()  # the texts have asked for scratch memory
        lines: list[str] = []
        for nodes, text in zip(loops, texts, strict=True):
            called = nodes[0].is_called()
            lines += [_AHEAD, text if called else self.functions.outlined(text, types)]
        return self._around(lines)

    def _types(self) -> dict[str, str]:
        """The C types of the names that loops read from outside."""
        types = dict.fromkeys(("a", "m", "end"), "long")
        types |= {f"x{k}": f"const {c_type(o.dtype)} *" for k, (o, _) in enumerate(self.inputs)}
        types |= {f"s{k}": f"{c_type(o.dtype)}" for k, (o, _) in enumerate(self.inputs)}
        types |= {f"o{k}": f"{c_type(o.dtype)} *" for k, o in enumerate(self.leaving)}
        return types | {slot: f"{kind} *" for slot, kind, *_ in self._slots}

    def _place(self) -> list[list[_Node]]:
        """The loops, in order.

        What only later ones read is moved there; what crosses from one to another has memory.
        """
        ends = {id(a.source) for a in self._ends}
        kept = {id(self._nodes[o.index].source) for o in self.leaving} | ends
        for n in reversed(self._made):
            if not n.users and id(n) not in kept:
                for a in n.args:
                    if type(a.source) is _Node:
                        a.source.users.remove(n)
        self._made = [n for n in self._made if n.users or id(n) in kept]
        for n in self._made:
            self._fuse(n, kept)
        self._made = [n for n in self._made if n.users or id(n) in kept]
        for k, n in enumerate(self._made):
            n.number = k
        for n in reversed(self._made):
            if n.is_alone() or n.op in self.leaving or not n.users:
                continue
            # Worked out where it is read, a value needs no memory between loops; with two operands it would
            # need more.
            wanted = min(u.stage - u.follows(n) for u in n.users)
            few = len({id(a.source) for a in n.args if type(a.source) is _Node}) < 2
            if wanted > n.stage and few and id(n) not in ends:
                n.stage = wanted
        loops = self._loops()
        for k, nodes in enumerate(loops):
            for n in nodes:
                n.loop = k
        free: dict[Any, list[tuple[int, str]]] = {}
        over = {id(n.base): n for n in self._made if n.base is not None}
        for n in (n for nodes in loops for n in nodes):
            if n.base is not None:
                n.name = n.base.name
                continue
            own = self._nodes.get(n.op.index)
            last = over.get(id(n), n)
            if own is not None and own.source is last and n.op in self.leaving:
                n.name = f"o{self.leaving.index(n.op)}"
                continue
            summed = id(last) in ends
            if not summed and all(u.loop == n.loop for u in n.users):
                continue
            kind = n.type or "", _size(n.shape), VECTOR
            waiting = free.setdefault(kind, [])
            # Memory whose readers are all done is taken again: fewer bytes of the cache.
            done = [k for k, (until, _) in enumerate(waiting) if until < n.loop]
            if done:
                _, n.name = waiting.pop(done[0])
            else:
                n.name = f"q{len(self._slots)}"
                self._slots.append((n.name, *kind))
            until = max((u.loop for u in last.users), default=0)
            waiting.append((len(self._made) if summed else until, n.name))
        return loops

    def _fuse(self, total: _Node, kept: set[int]) -> None:
        """Have a sum of exp(x - m) along rows, as in a logsumexp, work out what nobody else reads."""
        o = total.op
        if total.form is not None or o.function is not add_reduce or o.index in self.schedule.full:
            return
        power = total.args[0].source
        if type(power) is not _Node or power.users != [total] or id(power) in kept:
            return
        less = power.args[0].source if power.is_exponential() else None
        found = None if self.flat else _reduced(o, False, False)
        if type(less) is not _Node or less.op.function is not np.subtract or found is None:
            return
        x, top = less.args
        outer, terms, inner = found
        rows = x.is_row and top.is_row and type(x.source) is not str and type(top.source) is not str
        if not rows or inner != 1 or terms <= _SHORT or less.form is None:
            return
        if x.shape != less.shape or top.shape != (*less.shape[:-1], 1) or outer != _size(top.shape):
            return
        less.users.remove(power)
        power.users.clear()
        total.args = [x, top]
        for a in total.args:
            if type(a.source) is _Node:
                a.source.users.append(total)
        if not less.users and id(less) not in kept:
            for a in less.args:
                if type(a.source) is _Node:
                    a.source.users.remove(less)

    def _loops(self) -> list[list[_Node]]:
        """The nodes of each loop, a long one in several."""
        found: dict[Any, list[_Node]] = {}
        for n in sorted(self._made, key=lambda n: n.stage):
            found.setdefault((n.stage, n.key, n if n.is_alone() else None), []).append(n)
        return [
            nodes[k : k + _TOGETHER]
            for nodes in found.values()
            for k in range(0, len(nodes), _TOGETHER)
        ]

    def _value(self, n: _Node, a: _Argument) -> str:
        source = a.source
        if type(source) is str and a.shape is None:
            return source
        if a.shape is None:
            return f"s{source}"
        at = "[i]" if type(n.key) is int else _index(a.shape, n.shape, a.is_row)
        if type(source) is not _Node:
            return f"{source if type(source) is str else f'x{source}'}{at}"
        if source.loop == n.loop:
            return f"v{source.number}"
        return f"{source.name}{at}"

    def _text(self, nodes: list[_Node]) -> str:
        """A loop, or a statement that is none of elements."""
        if nodes[0].form is None:
            return self._statement(nodes[0])
        if nodes[0].is_called():
            return self._called(nodes[0])
        key = nodes[0].key
        count = _rounded(f"m * {key}", max(n.lanes() for n in nodes))
        lines = []
        for n in nodes:
            name = f"v{n.number}"
            lines.append(f"const {n.type} {name} = {n.text(self._value(n, a) for a in n.args)};")
            if n.name:
                at = "[i]" if type(key) is int else _index(n.shape, n.shape, True)
                lines.append(f"{n.name}{at} = {name};")
        if type(key) is int:
            return f"for (long i = 0; i < {count}; i++) {{ {' '.join(lines)} }}"
        return _nest(nodes[0].shape, "m", lines)

    def _called(self, n: _Node) -> str:
        """A loop over calls, which is a function of its own."""
        assert n.form is not None
        if type(n.key) is not int:
            name = self.functions.calls(n.form, [n.type], [False])
            return f"{name}(m * {_size(n.shape)}, {n.name}, {_place(n.args[0])});"
        count = _rounded(f"m * {n.key}", n.lanes())
        values = [self._value(n, a) for a in n.args]
        single = [not v.endswith("[i]") for v in values]
        name = self.functions.calls(n.form, [a.type for a in n.args], single)
        given = ", ".join(v.removesuffix("[i]") for v in values)
        return f"{name}({count}, {n.name}, {given});"

    def _statement(self, n: _Node) -> str:
        """A reduction of rows, or what takes and puts along them."""
        o = n.op
        first, *more = map(_place, n.args)
        if o.kind == "reduce":
            found = _reduced(o, self.flat, o.index in self.schedule.full)
            assert found is not None
            outer, terms, inner = found
            if more:
                row = f"r * {terms}"
                alike = [o for o in self.leaving if self._is_alike(o, n, outer * terms)]
                made = f"o{self.leaving.index(alike[0])} + {row}" if alike else "0"
                given = f"{terms}, {more[0]}[r], {first} + {row} + m * {outer * terms}, {made}"
                call = f"exponential_sum_{n.type}({first} + {row}, {given})"
                return f"for (long r = 0; r < m * {outer}; r++) {n.name}[r] = {call};"
            if inner == 1 and terms <= _SHORT:
                parts = [f"{first}[r * {terms} + {k}]" for k in range(terms)]
                return _short(n, f"m * {outer}", REDUCTIONS[o.function], parts)
            if inner == 1:
                call = f"{REDUCTIONS[o.function]}_{n.type}({first} + r * {terms}, {terms})"
                return f"for (long r = 0; r < m * {outer}; r++) {n.name}[r] = {call};"
            at = f"[r * {inner} + j]"
            add = f"{n.name}{at} += {first}[(r * {terms} + k) * {inner} + j];"
            loop = f"for (long j = 0; j < {inner}; j++)"
            return (
                f"for (long r = 0; r < m * {outer}; r++) {{ "
                f"{loop} {n.name}{at} = {first}[r * {terms * inner} + j]; "
                f"for (long k = 1; k < {terms}; k++) {loop} {add} }}"
            )
        if o.function is rows_sum:
            return self._fold(n, first)
        if o.function is rows_dot:
            terms = o.args[0].shape[1]
            parts = [f"{first}[r * {terms} + {k}] * {more[0]}[{k}]" for k in range(terms)]
            return _short(n, "m", "sum", parts)
        wide, few = n.args[0].shape[0], n.args[1].shape[0]
        put = {put_along: f"{n.name}[at] = {more[-1]}[r * {few} + j];"}
        put[put_less] = f"{n.name}[at] = {more[-1]}[r * {few} + j] - (0 - {n.name}[at]);"
        text = put.get(o.function, f"{n.name}[r * {few} + j] = {first}[at];")
        return (
            f"for (long r = 0; r < m; r++) for (long j = 0; j < {few}; j++) {{ "
            f"long at = {more[0]}[r * {few} + j]; if (at < 0) at += {wide}; "
            f"if (at < 0 || at >= {wide}) return 1; at += r * {wide}; {text} }}"
        )

    def _is_alike(self, o: Operation, n: _Node, size: int) -> bool:
        """Whether a result has rows of so many elements of a value's type."""
        rows = o.index not in self._sums and _size(self._shape(o)) == size
        return rows and c_type(o.dtype) == n.type

    def _fold(self, n: _Node, first: str) -> str:
        """The sum of every `FOLDED` rows, in the order of `blocked_products`: every 16th row first."""
        wide = _size(n.shape)
        sums = f"t{len(self._slots)}"
        self._slots.append((sums, n.type or "", 0, 16 * wide))
        every = f"for (long j = 0; j < {wide}; j++)"
        return " ".join(
            [
                "for (long r = 0; r < m; r++) {",
                f"long at = a + r, fold = at / {FOLDED}, left = at % {FOLDED}, lanes = 16;",
                f"if ((fold + 1) * {FOLDED} > end) lanes = 1;",
                f"{n.type} *to = {sums} + left % lanes * {wide}; const {n.type} *of = {first} + r * {wide};",
                f"if (left < lanes) {every} to[j] = of[j]; else {every} to[j] += of[j];",
                f"if (left < {FOLDED - 1} && at < end - 1) continue;",
                f"for (long k = 1; k < lanes; k++) {every} {sums}[j] += {sums}[k * {wide} + j];",
                f"memcpy({n.name} + fold * {wide}, {sums}, {wide} * sizeof({n.type})); }}",
            ]
        )

    def _pads(self, k: int) -> bool:
        """Whether a result is written in whole vectors."""
        node = self._nodes[self.leaving[k].index].source
        return any(type(n.key) is int for n in (node, *node.users))

    def _prologue(self) -> list[str]:
        """Where a chunk's arrays are; the ends of blocks are worked out in memory of whole vectors."""
        lines, lanes = [], max([n.lanes() for n in self._made], default=VECTOR)
        for k, (o, by_row) in enumerate(self.inputs):
            kind, size = c_type(o.dtype), _size(self._shape(o))
            if not by_row:
                continue
            lines.append(f"const {kind} *x{k} = ({kind} *)p[{k}] + a * {size};")
            if k in self._padded:
                self._slots.append((f"y{k}", kind or "", size, VECTOR))
                lines.append(
                    f"if ({_rounded(f'm * {size}', lanes)} > (end - a) * {size}) "
                    f"x{k} = memcpy(y{k}, x{k}, m * {size} * sizeof({kind}));"
                )
        for k, o in enumerate(self.leaving):
            kind, size = c_type(o.dtype), _size(self._shape(o))
            there = f"({kind} *)p[{len(self.inputs) + k}] + a * {size}"
            if o.function in FOLDS:
                there = f"({kind} *)p[{len(self.inputs) + k}]"
            if self._pads(k):
                self._slots.append((f"z{k}", kind or "", size, VECTOR))
                there = f"m * {size} % {lanes} ? z{k} : {there}"
            lines.append(f"{kind} *o{k} = {there};")
        return lines

    def _epilogue(self) -> list[str]:
        lines = []
        for k, o in enumerate(self.leaving):
            kind, size = c_type(o.dtype), _size(self._shape(o))
            if self._pads(k):
                there = f"({kind} *)p[{len(self.inputs) + k}] + a * {size}"
                copy = f"memcpy({there}, o{k}, m * {size} * sizeof({kind}))"
                lines.append(f"if (o{k} == z{k}) {copy};")
        for k, a in enumerate(self._ends):
            name = a.source.name if type(a.source) is _Node else f"x{a.source}"
            lines.append(f"s->s{k} = sum_{a.type}({name}, m);")
        return lines

    def _fetched(self, lines: list[str]) -> list[str]:
        """The loops, and before each its share of having the next chunk's arrays fetched meanwhile.

        That pays where calls take longer than memory, and of arrays that are no blocks of a region.
        """
        inside = self.schedule.virtual - set(self.schedule.sinks)
        rows = [(f"x{k}", o) for k, (o, by_row) in enumerate(self.inputs) if by_row]
        rows += [(f"o{k}", o) for k, o in enumerate(self.leaving) if o.function not in FOLDS]
        slow = any(n.form is not None and n.form.is_call for n in self._made)
        fused = any(n.op.function is add_reduce and len(n.args) > 1 for n in self._made)
        if slow and not fused:  # a fused sum fetches what comes next itself
            rows = [(name, o) for name, o in rows if o.index not in inside]
        else:
            rows = []
        places = [k for k, line in enumerate(lines) if line == _AHEAD]
        for k in places:
            lines[k] = ""
        places = places[:: -(-len(places) // _PARTS)]
        for part, k in enumerate(places):
            calls = []
            for name, o in rows:
                size = f"m * {_size(self._shape(o)) * o.dtype.itemsize}"
                calls.append(f"fetch((char *){name} + {size}, {size}, {part}, {len(places)});")
            lines[k] = " ".join(calls)
        return lines

    def _chunk(self) -> int:
        """The rows of a chunk: a power of two where folds of rows are to begin with one."""
        arrays = [(c_type(o.dtype), _size(self._shape(o))) for o, by_row in self.inputs if by_row]
        arrays += [(c_type(o.dtype), _size(self._shape(o))) for o in self.leaving]
        arrays += [(kind, each) for slot, kind, each, _ in self._slots if slot[0] == "q"]
        row = sum(BYTES[kind or ""] * size for kind, size in arrays)
        widest = max([size for _, size in arrays], default=1)
        elements = min(max(_FIRST // max(row, 1), _FEWEST // widest), _CHUNK // widest)
        if self._most == FOLDED:
            return min(1 << max(elements.bit_length() - 1, 0), FOLDED)
        return max(elements, 1)

    def _cut(self, lines: list[str], places: Mapping[str, str]) -> list[str]:
        """The calls of loops, of a long program in functions of some calls each.

        places: where scratch memory is, for such a function has no names for it.
        """
        lines = [line for line in self._fetched(lines) if line]
        if len(lines) <= _CALLS:
            return lines
        types = self._types() | {"scratch": "char *"}
        placed = [re.sub(r"\bq\d+\b", lambda found: places[found[0]], line) for line in lines]
        parts = [placed[k : k + _CALLS] for k in range(0, len(placed), _CALLS)]
        return [self.functions.outlined("\n  ".join(part), types) for part in parts]

    def _around(self, lines: list[str]) -> str:
        name, sums = self.name, self.sums
        base, at = len(self.inputs) + len(self.leaving), 0
        before = self._prologue()
        memory, wholes, scalars = [], [], []
        chunk, places = self._chunk(), {}
        for slot, kind, each, more in self._slots:
            places[slot] = f"({kind} *)(scratch + {at})"
            memory.append(f"{kind} *{slot} = {places[slot]};")
            at += -(-(chunk * each + more) * BYTES[kind] // 64) * 64
        for k, (o, by_row) in enumerate(self.inputs):
            kind = c_type(o.dtype) or ""
            if not by_row:
                wholes.append(f"const {kind} *x{k} = ({kind} *)p[{k}];")
            if o.size == 1:
                scalars.append(f"const {kind} s{k} = *x{k};")
        struct = "".join(f"{c_type(o.dtype)} s{k}; " for k, o in enumerate(sums))
        given = "char **p, char *scratch, long a, long m, long end"
        passed = "p, scratch, {}, {}, end"
        if sums:
            struct = f"typedef struct {{ {struct}}} {name}_sums;\n"
            given, passed = f"{given}, {name}_sums *s", f"{passed}, {{}}"
        inner = "\n  ".join(
            [*memory, *wholes, *before, *scalars, *self._cut(lines, places), *self._epilogue()]
        )
        text = f"{struct}static int {name}_part({given}) {{\n  {inner}\n  return 0;\n}}\n"
        if sums:
            added = " ".join(f"s->s{k} += t.s{k};" for k in range(len(sums)))
            text += (
                f"static int {name}_node({given}) {{\n"
                f"  if (m <= {chunk}) return {name}_part({passed.format('a', 'm', 's')});\n"
                f"  long h = m / 2; h -= h % 8; {name}_sums t;\n"
                f"  if ({name}_node({passed.format('a', 'h', 's')})) return 1;\n"
                f"  if ({name}_node({passed.format('a + h', 'm - h', '&t')})) return 1;\n"
                f"  {added} return 0;\n}}\n"
            )
            run = f"{name}_sums t; bad = {name}_node({passed.format('0', 'end', '&t')}); "
            run += " ".join(
                f"*({c_type(o.dtype)} *)p[{base + k}] = t.s{k};" for k, o in enumerate(sums)
            )
        else:
            rows = f"end - a < {chunk} ? end - a : {chunk}"
            run = f"for (long a = 0; a < end && !bad; a += {chunk}) "
            run += f"bad = {name}_part({passed.format('a', rows)});"
        setup = "\n  ".join([*memory, *wholes, *self._setup]) if self._setup else ""
        setup = setup.replace("CHUNK", str(chunk))
        return text + (
            f"int {name}(long end, char **p) {{\n"
            f"  int bad = 0; char *memory = malloc({at + 64}); if (!memory) return 2;\n"
            f"  char *scratch = memory + (64 - (size_t)memory % 64);\n  {setup}\n"
            f"  {run}\n  free(memory); return bad;\n}}\n"
        )


def _place(a: _Argument) -> str:
    """Where the rows of an operand lie in a chunk."""
    return a.source.name if type(a.source) is _Node else f"x{a.source}"


def _dtype_of(kind: Any) -> Any:
    return np.dtype(next(k for k, t in TYPES.items() if t == kind).replace("b1", "?"))


def _size(shape: Any) -> int:
    return math.prod(shape)


def _index(own: Any, shape: Any, is_row: bool) -> str:
    """Where the element of an array of rows of shape `own` is, in a loop over r and j0, j1 … of `shape`."""
    if not is_row:  # a whole array, that has the rows' dimension of size 1 or none
        own = own[len(own) - len(shape) :] if len(own) > len(shape) else own
    terms, step = [], 1
    for d in range(1, len(own) + 1):
        if own[-d] > 1:
            at = len(shape) - d
            terms.append(f"j{at} * {step}" if step > 1 else f"j{at}")
        step *= own[-d]
    if is_row:
        terms.append(f"r * {step}")
    return f"[{' + '.join(reversed(terms)) or '0'}]"


def _short(n: _Node, rows: str, word: str, parts: list[str]) -> str:
    """A loop over rows that reduces few elements of each, in NumPy's order."""
    first, *more = parts
    if word == "sum":
        if whole := len(parts) // 8 * 8:
            a, b, c, d, e, f, g, h = (f"({' + '.join(parts[j:whole:8])})" for j in range(8))
            first, more = (
                f"((({a} + {b}) + ({c} + {d})) + (({e} + {f}) + ({g} + {h})))",
                parts[whole:],
            )
        lines = [f"{n.type} s = {' + '.join([first, *more])};"]
    else:
        text = COMBINED[word]
        lines = [f"{n.type} s = {first};", *[f"s = {text.format('s', part)};" for part in more]]
    return f"for (long r = 0; r < {rows}; r++) {{ {' '.join(lines)} {n.name}[r] = s; }}"


def _nest(shape: Any, rows: str, lines: Iterable[str]) -> str:
    loops = [f"for (long r = 0; r < {rows}; r++)"]
    loops += [f"for (long j{d} = 0; j{d} < {n}; j{d}++)" for d, n in enumerate(shape)]
    return f"{' '.join(loops)} {{ {' '.join(lines)} }}"


class Library:
    """The kernels of a program, compiled together; each is called as `kernel(arrays, rows)`."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._calls: list[NativeCall] = []
        self._functions = Functions()

    def kernel(self, *args: Any) -> Kernel:
        """A kernel (see `Kernel`), named for this library."""
        return Kernel(f"k{len(self._calls)}", self._functions, *args)

    def add(self, kernel: Kernel) -> NativeCall:
        """What calls the kernel, once the library is built."""
        self._texts.append(kernel.source())
        self._calls.append(NativeCall(kernel.name))
        return self._calls[-1]

    def build(self) -> None:
        """Compile. Raises c_compiler.NoCompiler."""
        if self._calls:
            text = "".join([self._functions.source(), *self._texts])
            found = c_compiler.load(native_prelude.before(text) + text)
            for call in self._calls:
                call.function = getattr(found, call.name)


class NativeCall:
    """Calls a C function on rows of arrays, given by the addresses where these begin."""

    def __init__(self, name: str) -> None:
        self.name, self.__name__ = name, name
        self.function: Any = None

    def __call__(self, rows: int, *places: int) -> None:
        failed = self.function(ctypes.c_long(rows), (ctypes.c_void_p * len(places))(*places))
        if failed == 1:
            raise IndexError("an index is out of bounds")
        if failed:
            raise MemoryError("no memory for the blocks of a compiled program")


def held(a: Any) -> tuple[Any, int]:
    """(an array of the same values as C reads them, its address)."""
    if not (type(a) is np.ndarray and a.flags.c_contiguous and a.flags.aligned):
        a = np.array(a, order="C", ndmin=1)
    return a, a.__array_interface__["data"][0]


__all__ = ["Kernel", "Library", "NativeCall", "has_form", "held"]
