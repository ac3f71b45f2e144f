"""A region, or what of it has a C form, as a C function of a block of rows.

Operations on elements become loops over chunks that stay in the first-level cache. A loop holds all that
can be worked out side by side; what waits for a call of the mathematical library, a reduction or another
shape comes in a later loop (`_Stage`). Arithmetic is NumPy's to the bit, sums are in its order; calls are
the C library's, by vectors where there is a library of them.
"""

from __future__ import annotations

import ctypes
import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from gradcli.columns.compiler import native_prelude
from gradcli.engine.system import c_compiler
from gradcli.engine.system.blocked_products import FOLDED, FOLDS, rows_dot, rows_sum
from gradcli.engine.system.cascaded_sums import add_reduce
from gradcli.transforms.tracing.abstract_evaluation import method_call, put_along, put_less
from gradcli.transforms.tracing.numpy_program import Operation, cast, operands

_TYPES = {"f8": "double", "f4": "float", "b1": "unsigned char", "i8": "long long", "i4": "int"}
# C of elementwise functions by NumPy's and SciPy's names; `@` becomes the f of single precision.
_MORE = "({0} > {1} | {0} != {0}) ? {0} : {1}"
_LESS = "({0} < {1} | {0} != {0}) ? {0} : {1}"
_EXACT = {
    **{"add": "{0} + {1}", "subtract": "{0} - {1}", "multiply": "{0} * {1}", "negative": "-{0}"},
    **{"greater": "{0} > {1}", "less": "{0} < {1}", "greater_equal": "{0} >= {1}"},
    **{"less_equal": "{0} <= {1}", "equal": "{0} == {1}", "not_equal": "{0} != {1}"},
    **{"logical_and": "({0} != 0) & ({1} != 0)", "logical_or": "({0} != 0) | ({1} != 0)"},
    **{"logical_xor": "({0} != 0) != ({1} != 0)", "logical_not": "{0} == 0"},
    **{"bitwise_and": "{0} & {1}", "bitwise_or": "{0} | {1}", "bitwise_xor": "{0} ^ {1}"},
    **{"maximum": _MORE, "minimum": _LESS, "positive": "{0}", "square": "{0} * {0}"},
}
_REAL = {
    **{"divide": "{0} / {1}", "reciprocal": "1 / {0}", "sqrt": "sqrt@({0})"},
    **{n: f"{c}@({{0}})" for n, c in [("absolute", "fabs"), ("fabs", "fabs"), ("rint", "rint")]},
    **{n: f"{n}@({{0}})" for n in ("floor", "ceil", "trunc")},
    **{"copysign": "copysign@({0}, {1})", "isnan": "{0} != {0}"},
    **{"isinf": "fabs@({0}) == INFINITY", "isfinite": "fabs@({0}) < INFINITY"},
    "fmax": "({0} > {1} | {1} != {1}) ? {0} : {1}",
    "fmin": "({0} < {1} | {1} != {1}) ? {0} : {1}",
    "sign": "{0} > 0 ? 1 : {0} < 0 ? -1 : {0} == 0 ? 0 : {0}",
    "heaviside": "{0} != {0} ? {0} : {0} == 0 ? {1} : {0} > 0 ? 1 : 0",
}
_UNARY = "exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh cbrt erf erfc".split()
_ARCS = {f"arc{n}": f"a{n}" for n in ("sin", "cos", "tan", "sinh", "cosh", "tanh")}
_CALLS = {
    **{n: f"{c}@({{0}})" for n, c in [*zip(_UNARY, _UNARY, strict=True), *_ARCS.items()]},
    **{n: f"{c}@({{0}}, {{1}})" for n, c in [("arctan2", "atan2"), ("power", "pow")]},
    "tanh": "tanh_@T({0})",
    "hypot": "hypot@({0}, {1})",
    "expit": "1 / (1 + exp@(-{0}))",
    "logaddexp": "({0} == {1} ? {0} : {0} > {1} ? {0} : {1})"
    " + ({0} == {1} ? (@T)0.69314718055994530942 : log1p@(exp@(-fabs@({0} - {1}))))",
}
_POWERS = {2: "{0} * {0}", 0.5: "sqrt@({0})", -1: "1 / {0}"}  # as Python's ** does them
_RESHAPE = method_call("reshape")
_REDUCTIONS = {add_reduce: "sum", np.maximum.reduce: "max", np.minimum.reduce: "min"}
_PUTS = (put_along, put_less)
_CHUNK = 512  # elements of a chunk at most
_FIRST = (
    24 << 10
)  # bytes that the arrays of a chunk take at most: they stay in the first-level cache
_FEWEST = 128  # elements of a chunk, however many its arrays are
# Bytes of the widest vector: loops are rounded up to that, so that no element is left to a scalar loop,
# whose sine is another one in its last digit.
_LANES = 64
_NARROW = 8  # columns from which the innermost loop runs along a row
_FEW = 256  # terms that are added one after the other (as in `cascaded_sums`)
_AHEAD = "AHEAD"  # where the next chunk is fetched
_SHORT = 16  # elements of a row, up to which a reduction takes many rows at once, a vector of each column


def c_type(dtype: Any) -> str | None:
    """The C type of a dtype; None if there is none."""
    return _TYPES.get(f"{dtype.kind}{dtype.itemsize}") if dtype.isnative else None


class Form:
    """An elementwise operation in C: `text` of operands of the types `kinds`, its result of type `kind`."""

    __slots__ = ("is_call", "kind", "kinds", "text")

    def __init__(self, text: str, kinds: Sequence[Any], kind: Any, is_call: bool = False) -> None:
        self.text, self.kinds, self.kind, self.is_call = text, kinds, kind, is_call


def form(o: Operation) -> Form | None:
    """The C form of an operation on elements; None if it has none."""
    f, given = o.function, o.args
    name = getattr(f, "__name__", "")
    if f is cast or f is np.broadcast_to:
        kind = given[0].dtype
        if o.dtype.kind != "f" and kind != o.dtype:
            return Form("{0} != 0", [kind], o.dtype) if o.dtype.kind == "b" else None
        return Form("{0}", [kind], o.dtype)
    if f is np.where:
        first = given[0].dtype if type(given[0]) is Operation else np.dtype(bool)
        return Form("({0} != 0) ? {1} : {2}", [first, o.dtype, o.dtype], o.dtype)
    # The language's ** takes squares and roots by other functions than pow, and the last digit shall be the
    # same.
    if f is operator.pow:
        if o.dtype.kind != "f":
            return None
        text = _POWERS.get(given[1]) if type(given[1]) in (int, float) else None
        return Form(text or _CALLS["power"], [o.dtype] * 2, o.dtype, text is None)
    if f is np._core.umath.clip:  # type: ignore[attr-defined]
        lower = _LESS.replace("{1}", "{2}").replace("{0}", f"({_MORE})")
        return Form(lower, [o.dtype] * 3, o.dtype) if o.dtype.kind == "f" else None
    if not isinstance(f, np.ufunc) or f.nout != 1:
        return None
    try:
        *kinds, kind = f.resolve_dtypes((*map(_kind, given), None))
    except TypeError:
        return None
    text = _EXACT.get(name) or (_REAL.get(name) if kinds[0].kind == "f" else None)
    if name == "invert" and kind.kind == "b":
        text = "!{0}"
    if name in _CALLS and kind.kind == "f":
        return Form(_CALLS[name], kinds, kind, True)
    return None if text is None else Form(text, kinds, kind)


def _kind(a: Any) -> Any:
    return a.dtype if type(a) in (Operation, np.ndarray) else type(a)


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
    return found is not None and None not in map(c_type, (*found.kinds, found.kind))


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
    word = _REDUCTIONS.get(o.function)
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


def literal(value: Any, dtype: Any) -> str:
    """A number in C."""
    if dtype.kind != "f":
        return f"(({_TYPES[f'{dtype.kind}{dtype.itemsize}']}){int(value)}LL)"
    with np.errstate(all="ignore"):
        number = float(dtype.type(value))
    if not math.isfinite(number):
        if number != number:
            return "NAN"
        return "INFINITY" if number > 0 else "(-INFINITY)"
    # Hexadecimal: no digit is rounded on the way to the compiler.
    return f"({number.hex()}{'f' if dtype.itemsize == 4 else ''})"


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

    base: the value whose memory a statement writes into. stage, key: the loop; those of one stage depend
    on each other only within one loop. args: literals, the inputs' numbers, other nodes; each with its type
    and the shape of a row of it (None: a scalar).
    """

    __slots__ = ("args", "base", "form", "key", "name", "op", "shape", "stage", "type", "users")

    def __init__(
        self, op: Operation, form: Form | None, args: list[Any], shape: Any, key: Any
    ) -> None:
        self.op, self.form, self.args, self.shape, self.key = op, form, args, shape, key
        self.type = c_type(op.dtype if form is None else form.kind)
        self.stage = 0
        self.base: _Node | None = None
        self.users: list[_Node] = []
        self.name = ""
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

    def text(self, given: Iterable[str]) -> str:
        """The C of its value, of the texts of its operands."""
        assert self.form is not None
        casts = [
            text if a.type == c_type(kind) else f"(({c_type(kind)}){text})"
            for a, kind, text in zip(self.args, self.form.kinds, given, strict=False)
        ]
        suffix = "f" if self.form.kinds[-1] == np.float32 else ""
        return self.form.text.replace("@T", self.type or "").replace("@", suffix).format(*casts)

    def lanes(self) -> int:
        """Elements of the widest vector of its loop."""
        return _LANES // min(_BYTES[t] for t in (self.type, *[a.type for a in self.args]) if t)


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
    order of NumPy's tree (of flat regions). loops: the library's functions that are a loop over calls, by
    their text without the name. The function takes the number of rows and a pointer to each of inputs,
    leaving and sums; it returns whether an index was out of bounds.
    """

    def __init__(
        self,
        name: str,
        loops: dict[str, str],
        body: Sequence[Operation],
        leaving: Sequence[Operation],
        sums: Sequence[Operation],
        schedule: Any,
        flat: bool,
    ) -> None:
        self.name, self.schedule, self.flat = name, schedule, flat
        self.loops = loops
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
            self._slots.append((name, a.type or "", _size(shape), _LANES))
            at = _index(shape, shape, True)
            text = f"{name}{at} = x{a.source}{_index(a.shape, shape, False)};"
            self._setup.append(_nest(shape, "CHUNK", [text]))
        return _Argument(name, a.type, shape, True)

    # -- the text ----------------------------------------------------------------------------------
    def source(self) -> str:
        """The text of the function."""
        self._place()
        lines: list[str] = []
        stages = sorted({n.stage for n in self._made})
        for stage in stages:
            here = [n for n in self._made if n.stage == stage]
            for key in dict.fromkeys((n.key, n if n.is_alone() else None) for n in here):
                nodes = [n for n in here if (n.key, n if n.is_alone() else None) == key]
                lines.append(_AHEAD)
                lines += self._statement(nodes[0]) if nodes[0].form is None else [self._text(nodes)]
        return self._around(lines)

    def _place(self) -> None:
        """Move what only later loops read there; give memory to what crosses from loop to loop."""
        ends = {id(a.source) for a in self._ends}
        kept = {id(self._nodes[o.index].source) for o in self.leaving} | ends
        for n in reversed(self._made):
            if not n.users and id(n) not in kept:
                for a in n.args:
                    if type(a.source) is _Node:
                        a.source.users.remove(n)
        self._made = [n for n in self._made if n.users or id(n) in kept]
        for n in reversed(self._made):
            if n.is_alone() or n.op in self.leaving or not n.users:
                continue
            # Worked out where it is read, a value needs no memory between loops; with two operands it would
            # need more.
            wanted = min(u.stage - u.follows(n) for u in n.users)
            few = len({id(a.source) for a in n.args if type(a.source) is _Node}) < 2
            if wanted > n.stage and few and id(n) not in ends:
                n.stage = wanted
        free: dict[Any, list[tuple[int, str]]] = {}
        over = {id(n.base): n for n in self._made if n.base is not None}
        for n in sorted(self._made, key=lambda n: n.stage):
            if n.base is not None:
                n.name = n.base.name
                continue
            own = self._nodes.get(n.op.index)
            last = over.get(id(n), n)
            if own is not None and own.source is last and n.op in self.leaving:
                n.name = f"o{self.leaving.index(n.op)}"
                continue
            summed = id(last) in ends
            if not summed and all((u.stage, u.key) == (n.stage, n.key) for u in n.users):
                continue
            kind = n.type or "", _size(n.shape), _LANES
            waiting = free.setdefault(kind, [])
            # Memory whose readers are all done is taken again: fewer bytes of the cache.
            done = [k for k, (until, _) in enumerate(waiting) if until < n.stage]
            if done:
                _, n.name = waiting.pop(done[0])
            else:
                n.name = f"q{len(self._slots)}"
                self._slots.append((n.name, *kind))
            until = max((u.stage for u in last.users), default=0)
            waiting.append((len(self._made) if summed else until, n.name))

    def _value(self, n: _Node, a: _Argument) -> str:
        source = a.source
        if type(source) is str and a.shape is None:
            return source
        if a.shape is None:
            return f"s{source}"
        at = "[i]" if type(n.key) is int else _index(a.shape, n.shape, a.is_row)
        if type(source) is not _Node:
            return f"{source if type(source) is str else f'x{source}'}{at}"
        if (source.stage, source.key) == (n.stage, n.key):
            return f"v{self._made.index(source)}"
        return f"{source.name}{at}"

    def _text(self, nodes: list[_Node]) -> str:
        """A loop."""
        key = nodes[0].key
        count = _rounded(f"m * {key}", max(n.lanes() for n in nodes))
        if type(key) is int and nodes[0].is_alone():
            return self._called(nodes[0], count)
        lines = []
        for n in nodes:
            name = f"v{self._made.index(n)}"
            lines.append(f"const {n.type} {name} = {n.text(self._value(n, a) for a in n.args)};")
            if n.name:
                at = "[i]" if type(key) is int else _index(n.shape, n.shape, True)
                lines.append(f"{n.name}{at} = {name};")
        if type(key) is int:
            return f"for (long i = 0; i < {count}; i++) {{ {' '.join(lines)} }}"
        return _nest(nodes[0].shape, "m", lines)

    def _called(self, n: _Node, count: str) -> str:
        """A loop over calls as a function of its own: the compiler takes longest over calls."""
        values = [self._value(n, a) for a in n.args]
        single = [not v.endswith("[i]") for v in values]
        takes = [
            f"{a.type} {'' if one else '*restrict '}a{k}"
            for k, (a, one) in enumerate(zip(n.args, single, strict=True))
        ]
        text = n.text(f"a{k}{'' if one else '[i]'}" for k, one in enumerate(single))
        text = (
            f"(long n, {n.type} *restrict o, const {', const '.join(takes)}) "
            f"{{ for (long i = 0; i < n; i++) o[i] = {text}; }}\n"
        )
        name = self.loops.setdefault(text, f"f{len(self.loops)}")
        given = ", ".join(v.removesuffix("[i]") for v in values)
        return f"{name}({count}, {n.name}, {given});"

    def _statement(self, n: _Node) -> list[str]:
        """A reduction of rows, or what takes and puts along them."""
        o = n.op
        first, *more = [
            a.source.name if type(a.source) is _Node else f"x{a.source}" for a in n.args
        ]
        if o.kind == "reduce":
            found = _reduced(o, self.flat, o.index in self.schedule.full)
            assert found is not None
            outer, terms, inner = found
            if inner == 1 and terms <= _SHORT:
                parts = [f"{first}[r * {terms} + {k}]" for k in range(terms)]
                return [_short(n, f"m * {outer}", _REDUCTIONS[o.function], parts)]
            if inner == 1:
                call = f"{_REDUCTIONS[o.function]}_{n.type}({first} + r * {terms}, {terms})"
                return [f"for (long r = 0; r < m * {outer}; r++) {n.name}[r] = {call};"]
            at = f"[r * {inner} + j]"
            add = f"{n.name}{at} += {first}[(r * {terms} + k) * {inner} + j];"
            loop = f"for (long j = 0; j < {inner}; j++)"
            return [
                f"for (long r = 0; r < m * {outer}; r++) {{",
                f"{loop} {n.name}{at} = {first}[r * {terms * inner} + j];",
                f"for (long k = 1; k < {terms}; k++) {loop} {add} }}",
            ]
        if o.function is rows_sum:
            return self._fold(n, first)
        if o.function is rows_dot:
            terms = o.args[0].shape[1]
            parts = [f"{first}[r * {terms} + {k}] * {more[0]}[{k}]" for k in range(terms)]
            return [_short(n, "m", "sum", parts)]
        wide, few = n.args[0].shape[0], n.args[1].shape[0]
        put = {put_along: f"{n.name}[at] = {more[-1]}[r * {few} + j];"}
        put[put_less] = f"{n.name}[at] = {more[-1]}[r * {few} + j] - (0 - {n.name}[at]);"
        text = put.get(o.function, f"{n.name}[r * {few} + j] = {first}[at];")
        return [
            f"for (long r = 0; r < m; r++) for (long j = 0; j < {few}; j++) {{",
            f"long at = {more[0]}[r * {few} + j]; if (at < 0) at += {wide};",
            f"if (at < 0 || at >= {wide}) return 1; at += r * {wide}; {text} }}",
        ]

    def _fold(self, n: _Node, first: str) -> list[str]:
        """The sum of every `FOLDED` rows, in the order of `blocked_products`: every 16th row first."""
        wide = _size(n.shape)
        sums = f"t{len(self._slots)}"
        self._slots.append((sums, n.type or "", 0, 16 * wide))
        every = f"for (long j = 0; j < {wide}; j++)"
        return [
            "for (long r = 0; r < m; r++) {",
            f"long at = a + r, fold = at / {FOLDED}, left = at % {FOLDED}, lanes = 16;",
            f"if ((fold + 1) * {FOLDED} > end) lanes = 1;",
            f"{n.type} *to = {sums} + left % lanes * {wide}; const {n.type} *of = {first} + r * {wide};",
            f"if (left < lanes) {every} to[j] = of[j]; else {every} to[j] += of[j];",
            f"if (left < {FOLDED - 1} && at < end - 1) continue;",
            f"for (long k = 1; k < lanes; k++) {every} {sums}[j] += {sums}[k * {wide} + j];",
            f"memcpy({n.name} + fold * {wide}, {sums}, {wide} * sizeof({n.type})); }}",
        ]

    def _pads(self, k: int) -> bool:
        """Whether a result is written in whole vectors."""
        node = self._nodes[self.leaving[k].index].source
        return any(type(n.key) is int for n in (node, *node.users))

    def _prologue(self) -> list[str]:
        """Where a chunk's arrays are; the ends of blocks are worked out in memory of whole vectors."""
        lines, lanes = [], max([n.lanes() for n in self._made], default=_LANES)
        for k, (o, by_row) in enumerate(self.inputs):
            kind, size = c_type(o.dtype), _size(self._shape(o))
            if not by_row:
                continue
            lines.append(f"const {kind} *x{k} = ({kind} *)p[{k}] + a * {size};")
            if k in self._padded:
                self._slots.append((f"y{k}", kind or "", size, _LANES))
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
                self._slots.append((f"z{k}", kind or "", size, _LANES))
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
        if any(n.form is not None and n.form.is_call for n in self._made):
            rows = [(name, o) for name, o in rows if o.index not in inside]
        else:
            rows = []
        places = [k for k, line in enumerate(lines) if line == _AHEAD]
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
        row = sum(_BYTES[kind or ""] * size for kind, size in arrays)
        widest = max([size for _, size in arrays], default=1)
        elements = min(max(_FIRST // max(row, 1), _FEWEST // widest), _CHUNK // widest)
        if self._most == FOLDED:
            return min(1 << max(elements.bit_length() - 1, 0), FOLDED)
        return max(elements, 1)

    def _around(self, lines: list[str]) -> str:
        name, sums = self.name, self.sums
        base, at = len(self.inputs) + len(self.leaving), 0
        before = self._prologue()
        arrays = [
            *[(f"const {c_type(o.dtype)}", f"x{k}") for k, (o, _) in enumerate(self.inputs)],
            *[(c_type(o.dtype), f"o{k}") for k, o in enumerate(self.leaving)],
            *[(kind, slot) for slot, kind, *_ in self._slots if slot[0] in "qt"],
        ]
        memory, wholes, scalars = [], [], []
        chunk = self._chunk()
        for slot, kind, each, more in self._slots:
            memory.append(f"{kind} *{slot} = ({kind} *)(scratch + {at});")
            at += -(-(chunk * each + more) * _BYTES[kind] // 64) * 64
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
        takes = ", ".join(f"{kind} *restrict {x}" for kind, x in arrays)
        gives = ", ".join(x for _, x in arrays)
        inner = "\n  ".join([*scalars, *self._fetched(lines)])
        # A function of its own: only of parameters does gcc believe that they are apart.
        text = f"{struct}static __attribute__((noinline)) int {name}_loops("
        text += f"long a, long m, long end, {takes}) {{\n  {inner}\n  return 0;\n}}\n"
        inner = "\n  ".join([*memory, *wholes, *before])
        text += f"static int {name}_part({given}) {{\n  {inner}\n"
        text += f"  if ({name}_loops(a, m, end, {gives})) return 1;\n"
        inner = "\n  ".join(self._epilogue())
        text += f"  {inner}\n  return 0;\n}}\n"
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


_BYTES = {t: int(k[1:]) for k, t in _TYPES.items()}


def _dtype_of(kind: Any) -> Any:
    return np.dtype(next(k for k, t in _TYPES.items() if t == kind).replace("b1", "?"))


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
        text = _MORE if word == "max" else _LESS
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
        self._loops: dict[str, str] = {}

    def kernel(self, *args: Any) -> Kernel:
        """A kernel (see `Kernel`), named for this library."""
        return Kernel(f"k{len(self._calls)}", self._loops, *args)

    def add(self, kernel: Kernel) -> NativeCall:
        """What calls the kernel, once the library is built."""
        self._texts.append(kernel.source())
        self._calls.append(NativeCall(kernel.name))
        return self._calls[-1]

    def build(self) -> None:
        """Compile. Raises c_compiler.NoCompiler."""
        if self._calls:
            loops = (
                f"static __attribute__((noinline)) void {name}{text}"
                for text, name in self._loops.items()
            )
            text = "".join([*loops, *self._texts])
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
