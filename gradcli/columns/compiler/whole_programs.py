"""A program of small arrays as one C function: numbers in local names, loops over arrays of known sizes.

Operations on elements of one shape share a loop; what has no more than one element is a statement. Moving
elements (views, indices that are known, repeats) is no work: it is found once, by moving their numbers. A
call of the mathematical library has a loop of its own, of whole vectors.
"""

from __future__ import annotations

import itertools
import math
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.columns.compiler import native_prelude
from gradcli.columns.compiler.c_forms import (
    BYTES,
    COMBINED,
    REDUCTIONS,
    VECTOR,
    Form,
    Functions,
    c_type,
    form,
    literal,
)
from gradcli.engine.system import direct_calls
from gradcli.engine.system.array_memory import arranged, as_operands
from gradcli.engine.system.blocked_products import rows_dot, rows_product, rows_sum, vector_dot
from gradcli.engine.system.direct_calls import ARRAYS, NUMBERS, DirectCalls, Kind
from gradcli.transforms.tracing.abstract_evaluation import repeat_to, written
from gradcli.transforms.tracing.numpy_program import (
    Operation,
    call_name,
    live,
    operands,
    pieced,
    replaced,
    scattered,
)

LARGEST = 1 << 15  # elements of an array at most
_WORK = 1 << 20  # elements of all arrays together: from there on a second thread pays
_NODES = 20_000  # operations at most
_MULTIPLIED = 1 << 15  # multiplications of a product of matrices at most: beyond, BLAS is faster
_ONE_BY_ONE = 256  # terms that are added one after the other at most
_WRITTEN = 64  # numbers of a constant that are written into the text at most
_ROOM = 1 << 20  # bytes of arrays between the loops: what the second-level cache has room for
_TOGETHER = 60  # statements of a loop at most
_LINES = 200  # statements of a function at most
_NAME = re.compile(r"\b[a-z]\d+\b")
_MADE = re.compile(r"^const ([\w ]+) (v\d+) =", re.MULTILINE)  # where a number gets a name
_VIEWS = ("getitem", "reshape", "transpose", "swapaxes", "squeeze", "ravel", "real")
_ALIASES = (as_operands, arranged)
_MOVES = (operator.getitem, np.take, np.take_along_axis, np.roll, np.tile, np.diagonal, np.array)


class NoForm(Exception):
    """An operation has no C form here; `words` say which, and why."""


class _Buffer:
    """An array in memory. block: where it is made (-1: before everything). kept: whether it is read there.

    place: "in", "local" or "constant"; external: the number of the output that it is.
    """

    __slots__ = (
        *("block", "external", "inside", "kept", "name", "padded", "place", "size", "type"),
        "values",
    )

    def __init__(self, name: str, kind: str, size: int, place: str, block: int = -1) -> None:
        self.name, self.type, self.size, self.place, self.block = name, kind, size, place, block
        self.kept, self.padded = place != "local", False
        self.external: int | None = None
        self.values: Any = None
        self.inside = ""  # its element in the turn of the loop that makes it


class _Scalar:
    """A number in a name, or a literal; for an array, the same number everywhere."""

    __slots__ = ("block", "text", "type")

    def __init__(self, text: str, kind: str, block: int = -1) -> None:
        self.text, self.type, self.block = text, kind, block


class _Elements:
    """An array whose element k lies at `at[k]` of a buffer."""

    __slots__ = ("at", "buffer")

    def __init__(self, buffer: _Buffer, at: Any) -> None:
        self.buffer, self.at = buffer, at

    @property
    def type(self) -> str:
        """The C type."""
        return self.buffer.type

    @property
    def block(self) -> int:
        """Where it is made."""
        return self.buffer.block

    def is_inside(self, block: int) -> bool:
        """Whether it is in a name, in the loop that makes it."""
        return self.block == block and bool(self.buffer.inside)

    def is_whole(self) -> bool:
        """Whether it is the buffer in its own order."""
        return self.at.size == self.buffer.size and _run(self.at) == (0, 1)


_Value = _Scalar | _Elements


def _run(at: Any) -> tuple[int, int] | None:
    """(first, step) of places that go in steps through memory."""
    flat = at.reshape(-1)
    first = int(flat[0])
    if flat.size == 1:
        return first, 1
    step = int(flat[1]) - first
    steady = (flat[1:] - flat[:-1] == step).all()
    return (first, step) if steady else None


def _steps(at: Any) -> tuple[int, list[int]] | None:
    """(first, step along each dimension), where there are such."""
    first, steps = int(at.flat[0]), []
    made = np.full((), first)
    for d, n in enumerate(at.shape):
        step = int(at[(0,) * d + (1,) + (0,) * (at.ndim - d - 1)]) - first if n > 1 else 0
        steps.append(step)
        made = made[..., None] + step * np.arange(n)
    return (first, steps) if np.array_equal(made, at) else None


class _Loop:
    """Statements for each element of a shape; () is a sequence of statements. assigned: what it writes."""

    __slots__ = ("call", "shape", "statements")

    def __init__(self, shape: tuple[int, ...], call: Form | None = None) -> None:
        self.shape, self.call = shape, call
        self.statements: list[Any] = []


class _Statement:
    """`target = text` of operands; target: a name (with its type) or places in a buffer."""

    __slots__ = ("args", "buffer", "how", "name", "places", "text", "type")

    def __init__(self, text: Callable[[list[str]], str], args: list[_Value], kind: str) -> None:
        self.text, self.args, self.type = text, args, kind
        self.name = ""
        self.buffer: _Buffer | None = None
        self.places: Any = None
        self.how = "="


class WholeProgram:
    """The C of a program.

    Raises NoForm.
    """

    def __init__(self, outputs: Sequence[Operation], inputs: Sequence[Operation]) -> None:
        self.outputs, self.inputs = list(outputs), list(inputs)
        self._values: dict[int, _Value] = {}
        self._blocks: list[_Loop | str] = []
        self._of_shape: dict[tuple[int, ...], list[int]] = {}
        self._buffers: list[_Buffer] = []
        self._tables: dict[bytes, str] = {}
        self._functions = Functions()
        self.known: list[Any] = []  # arrays that the C is given with each call
        self._count = 0
        order = live(outputs)
        self._check(order)
        for k, o in enumerate(inputs):
            self._input(k, o)
        for o in order:
            if o.kind != "input":
                self._values[o.index] = self._made(o)
        self.count = sum(o.function is not None for o in order)
        copied = [(k, o, self._leaves(k, o)) for k, o in enumerate(self.outputs)]
        self._copies = [(k, o) for k, o, done in copied if not done]
        self.text = self._source()

    def _check(self, order: Sequence[Operation]) -> None:
        moved = 0
        for o in (*self.inputs, *order):
            kind = c_type(o.dtype)
            if kind is None:
                raise NoForm(f"{call_name(o)} ({o.dtype})")
            if not o.size:
                raise NoForm("an array without elements")
            if o.kind not in ("view", "fill", "constant", "input"):
                moved += o.size
            if o.size > LARGEST or moved > _WORK or len(order) > _NODES:
                raise NoForm("larger arrays")
        for o in (*self.inputs, *self.outputs):
            if not o.shape and _code(o.dtype) not in NUMBERS:
                raise NoForm(f"a number of dtype {o.dtype}")
            if o.shape and _code(o.dtype) not in ARRAYS:
                raise NoForm(f"an array of dtype {o.dtype}")

    def calls(self) -> DirectCalls:
        """Compile. Raises c_compiler.NoCompiler."""
        if not direct_calls.readable():
            raise NoForm("another Python than CPython")
        inputs, outputs = (
            [Kind(_code(o.dtype), o.shape) for o in some] for some in (self.inputs, self.outputs)
        )
        return DirectCalls(self.text, inputs, outputs, self.known)

    # -- values ------------------------------------------------------------------------------------
    def _name(self, letter: str) -> str:
        self._count += 1
        return f"{letter}{self._count}"

    def _input(self, k: int, o: Operation) -> None:
        kind = c_type(o.dtype)
        assert kind is not None
        buffer = _Buffer(f"x{k}", kind, o.size, "in")
        if not o.shape:
            self._values[o.index] = _Scalar(f"x{k}[0]", kind)
        else:
            self._values[o.index] = _Elements(buffer, np.arange(o.size).reshape(o.shape))

    def _local(self, kind: str, size: int, block: int) -> _Buffer:
        made = _Buffer(self._name("b"), kind, size, "local", block)
        self._buffers.append(made)
        return made

    def _constant(self, array: Any) -> _Value:
        kind = c_type(array.dtype)
        assert kind is not None
        if not array.ndim or array.tobytes() == array.reshape(-1)[:1].tobytes() * array.size:
            return _Scalar(literal(array.flat[0], array.dtype), kind)
        buffer = _Buffer(self._name("c"), kind, array.size, "constant")
        buffer.values = np.array(array, order="C")
        self._buffers.append(buffer)
        return _Elements(buffer, np.arange(array.size).reshape(array.shape))

    def _operand(self, a: Any, dtype: Any) -> _Value:
        if type(a) is Operation:
            return self._values[a.index]
        if isinstance(a, np.ndarray) and a.ndim:
            return self._constant(a)
        kind = c_type(dtype)
        if kind is None:
            raise NoForm(f"a number as {dtype}")
        return _Scalar(literal(a, dtype), kind)

    # -- operations --------------------------------------------------------------------------------
    def _made(self, o: Operation) -> _Value:
        if o.kind == "constant":
            return self._constant(np.asarray(o.args[0]))
        f = o.function
        if o.kind == "fill":
            return self._operand(o.args[0], o.dtype)
        if f in _ALIASES:
            return self._values[o.args[0].index]
        if f in (np.broadcast_to, repeat_to):
            return self._moved(o, lambda a: np.broadcast_to(a, o.shape))
        if o.kind == "view" or f in _MOVES:
            if f is np.array and type(o.args[0]) is not Operation:
                return self._put_together(o)
            return self._moved(o, self._move(o))
        if f is rows_sum:
            return self._reduced(o, "sum", (0,))
        if o.kind == "reduce":
            word = REDUCTIONS.get(f)
            if word is None or o.args[0].dtype != o.dtype or o.dtype.kind != "f" or o.axes is None:
                raise NoForm(call_name(o))
            return self._reduced(o, word, o.axes)
        if f is np.concatenate:
            return self._joined(o)
        if f is written:
            return self._written(o)
        if f is pieced:
            return self._pieced(o)
        if f is scattered:
            return self._scattered(o)
        if f in (np.matmul, np.dot, np.vdot, rows_dot, vector_dot, rows_product):
            return self._product(o)
        if o.kind == "elementwise" and (made := form(o)) is not None:
            return self._elementwise(o, made)
        raise NoForm(call_name(o))

    def _elementwise(self, o: Operation, made: Form) -> _Value:
        kind = c_type(made.kind)
        if kind is None or not made.has_types():
            raise NoForm(call_name(o))
        args = [self._operand(a, k) for a, k in zip(o.args, made.kinds, strict=False)]
        types, alone = [a.type for a in args], not o.shape

        def text(given: list[str]) -> str:
            return made.of(given, types, alone)

        if made.is_call and o.shape and not all(type(a) is _Scalar for a in args):
            args = [self._padded(a, o.shape) for a in args]
        return self._statement(text, args, kind, o.shape, made if made.is_call else None)

    def _statement(
        self,
        text: Callable[[list[str]], str],
        args: list[_Value],
        kind: str,
        shape: tuple[int, ...],
        call: Form | None = None,
    ) -> _Value:
        """The value of a statement for each element, in the first loop that it can be in."""
        if shape and all(type(a) is _Scalar for a in args):
            shape = ()
        call = call if shape else None
        made = _Statement(text, args, kind)
        made.name = self._name("v")
        at = self._first(args, shape, call)
        loop = self._blocks[at]
        assert isinstance(loop, _Loop)
        for a in args:
            _read(a, at)
        loop.statements.append(made)
        if not shape:
            return _Scalar(made.name, kind, at)
        made.buffer = self._local(kind, math.prod(shape), at)
        made.buffer.inside = made.name
        if call:
            made.buffer.kept = made.buffer.padded = True
        return _Elements(made.buffer, np.arange(math.prod(shape)).reshape(shape))

    def _first(self, args: Sequence[_Value], shape: tuple[int, ...], call: Form | None) -> int:
        """The block for a statement of these operands."""
        least = max([a.block for a in args], default=-1)
        if not call:
            beside = all(a.block < least or _is_beside(a, shape) for a in args)
            for at in reversed(self._of_shape.get(shape, ())):
                if at < least or (at == least and not beside):
                    break
                loop = self._blocks[at]
                if type(loop) is _Loop and len(loop.statements) < _TOGETHER:
                    return at
        self._blocks.append(_Loop(shape, call))
        if not call:
            self._of_shape.setdefault(shape, []).append(len(self._blocks) - 1)
        return len(self._blocks) - 1

    def _padded(self, a: _Value, shape: tuple[int, ...]) -> _Value:
        """The elements in memory that goes on to the end of a vector."""
        if type(a) is _Scalar:
            return a
        assert isinstance(a, _Elements)
        if a.buffer.place != "local" or a.at.shape != shape or not a.is_whole():
            copied = self._statement(lambda given: given[0], [a], a.type, shape)
            assert isinstance(copied, _Elements)
            a = copied
        a.buffer.kept = a.buffer.padded = True
        return a

    def _assign(
        self,
        buffer: _Buffer,
        places: Any,
        args: Sequence[_Value],
        text: Callable[[list[str]], str] | None = None,
        how: str = "=",
    ) -> None:
        """Write into places of a buffer, one after the other, by row."""
        made = _Statement(text or (lambda given: given[0]), list(args), buffer.type)
        made.buffer, made.places, made.how = buffer, places, how
        loop = _Loop(places.shape)
        loop.statements.append(made)
        self._blocks.append(loop)
        at = len(self._blocks) - 1
        for a in args:
            _read(a, at)
        buffer.kept, buffer.block = True, at

    # -- what moves elements -----------------------------------------------------------------------
    def _moved(self, o: Operation, move: Callable[[Any], Any]) -> _Value:
        a = self._values[o.args[0].index]
        if type(a) is _Scalar:
            return a
        assert isinstance(a, _Elements)
        try:
            at = np.asarray(move(a.at))
        except (IndexError, ValueError, TypeError) as error:
            raise NoForm(f"{call_name(o)} ({error})") from None
        if at.shape != o.shape:
            raise NoForm(call_name(o))
        if not o.shape:
            a.buffer.kept = True
            return _Scalar(f"{a.buffer.name}[{int(at)}]", a.type, a.block)
        return _Elements(a.buffer, at)

    def _move(self, o: Operation) -> Callable[[Any], Any]:
        name = getattr(o.function, "__name__", "")
        first, rest = o.args[0], (o.args[1:], tuple(v for _, v in o.options))
        known = all(q.kind == "constant" for q in operands(rest))
        if type(first) is not Operation or first.dtype != o.dtype:
            raise NoForm(call_name(o))
        if not known:
            raise NoForm(f"{call_name(o)} (by an index that is computed)")
        if o.function not in _MOVES and name not in _VIEWS:
            raise NoForm(call_name(o))
        more = replaced(o.args[1:], lambda q: q.args[0])
        options = {k: replaced(v, lambda q: q.args[0]) for k, v in o.options}
        return lambda at: o.function(at, *more, **options)

    def _target(self, o: Operation) -> tuple[_Buffer, Any]:
        kind = c_type(o.dtype)
        assert kind is not None
        buffer = self._local(kind, o.size, -1)
        return buffer, np.arange(o.size).reshape(o.shape)

    def _part(self, o: Operation, a: Any, shape: tuple[int, ...]) -> _Value:
        """An operand that is written into an array, as that shape."""
        if type(a) is Operation and a.dtype != o.dtype and {a.dtype.kind, o.dtype.kind} != {"f"}:
            raise NoForm(f"{call_name(o)} (of {a.dtype} into {o.dtype})")
        value = self._operand(a, o.dtype)
        if type(value) is _Scalar:
            return value
        assert isinstance(value, _Elements)
        at = value.at
        while at.ndim > len(shape):
            at = at[0]
        return _Elements(value.buffer, np.broadcast_to(at, shape))

    def _joined(self, o: Operation) -> _Value:
        buffer, at = self._target(o)
        parts, axis = o.args
        start, axis = 0, axis % o.ndim
        for p in parts:
            count = p.shape[axis]
            places = at.take(range(start, start + count), axis)
            self._assign(buffer, places, [self._part(o, p, places.shape)])
            start += count
        return _Elements(buffer, at)

    def _put_together(self, o: Operation) -> _Value:
        buffer, at = self._target(o)
        leaves = list(_leaves(o.args[0]))
        if len(leaves) != o.size or any(getattr(v, "shape", ()) for v in leaves):
            raise NoForm(call_name(o))
        for k, v in enumerate(leaves):
            self._assign(buffer, np.array(k), [self._part(o, v, ())])
        return _Elements(buffer, at)

    def _written(self, o: Operation) -> _Value:
        buffer, at = self._target(o)
        array, index, value = o.args
        if not all(q.kind == "constant" for q in operands([index])):
            raise NoForm("a write by an index that is computed")
        self._assign(buffer, at, [self._part(o, array, at.shape)])
        places = at[replaced(index, lambda q: q.args[0])]
        if places.size:
            self._assign(buffer, places, [self._part(o, value, places.shape)])
        return _Elements(buffer, at)

    def _pieced(self, o: Operation) -> _Value:
        buffer, at = self._target(o)
        self._assign(buffer, at, [_Scalar("0", buffer.type)])
        for k, (index, value) in enumerate(o.args[2:]):
            places = at[index]
            if places.size:
                made = self._part(o, value, places.shape)
                self._assign(buffer, places, [made], how="+=" if k else "=")
        return _Elements(buffer, at)

    def _scattered(self, o: Operation) -> _Value:
        buffer, at = self._target(o)
        block, places, index = o.args[:3]
        self._assign(buffer, at, [_Scalar("0", buffer.type)])
        value = self._values[block.index]
        if isinstance(value, _Elements):
            value = _Elements(value.buffer, value.at.reshape(-1)[places.args[0]])
        self._assign(buffer, at.reshape(-1)[index.args[0]], [value])
        return _Elements(buffer, at)

    # -- sums and products -------------------------------------------------------------------------
    def _reduced(self, o: Operation, word: str, axes: Sequence[int]) -> _Value:
        a = o.args[0]
        value = self._values[a.index]
        if type(value) is _Scalar:
            buffer, at = self._target(a)
            self._assign(buffer, at, [value])
            value = _Elements(buffer, at)
        assert isinstance(value, _Elements)
        kept = [d for d in range(value.at.ndim) if d not in axes]
        at = value.at.transpose([*kept, *axes]).reshape(o.size, -1)
        return self._reduced_of(o, _Elements(value.buffer, at), word)

    def _reduced_of(self, o: Operation, value: _Elements, word: str) -> _Value:
        """What the rows of a matrix come to."""
        at, terms = value.at, value.at.shape[1]
        kind = value.type
        buffer, where = self._target(o)
        if terms == 1 or not (at == at[:, :1] + np.arange(terms)).all():
            if terms > _ONE_BY_ONE:
                copied = self._local(kind, at.size, -1)
                places = np.arange(at.size).reshape(at.shape)
                self._assign(copied, places, [value])
                return self._reduced_of(o, _Elements(copied, places), word)
            flat = where.reshape(-1)
            self._assign(buffer, flat, [_Elements(value.buffer, at[:, 0])])
            if terms > 1:
                rest = np.ascontiguousarray(at.T[1:])
                pattern = COMBINED[word]
                into = np.broadcast_to(flat, rest.shape)
                both: list[_Value] = [_Elements(buffer, into), _Elements(value.buffer, rest)]
                self._assign(buffer, into, both, lambda given: pattern.format(*given))
            return self._number_of(o, buffer, where)
        value.buffer.kept = True
        first, call = at[:, 0], f"{word}_{kind}"
        steps = _run(first)
        begin = f"{steps[0]} + {steps[1]} * r" if steps else f"{self._table(first)}[r]"
        self._blocks.append(
            f"for (long r = 0; r < {o.size}; r++) "
            f"{buffer.name}[r] = {call}({value.buffer.name} + ({begin}), {terms});"
        )
        buffer.kept, buffer.block = True, len(self._blocks) - 1
        return self._number_of(o, buffer, where)

    def _number_of(self, o: Operation, buffer: _Buffer, at: Any) -> _Value:
        if o.shape:
            return _Elements(buffer, at)
        return _Scalar(f"{buffer.name}[0]", buffer.type, buffer.block)

    def _product(self, o: Operation) -> _Value:
        a, b = (self._operand(v, o.dtype) for v in o.args)
        given = [v for v in o.args if type(v) is Operation]
        same = len(given) == 2 and all(v.dtype == o.dtype for v in given) and o.dtype.kind == "f"
        ranks = [v.ndim for v in given]
        if not same or max(ranks) > 2 or not min(ranks):
            raise NoForm(f"{call_name(o)} of these shapes")
        left, right = (self._in_memory(v, q) for v, q in zip((a, b), given, strict=True))
        x, y = left.at, right.at
        if o.function is rows_product:
            x = x.T
        if o.function is np.vdot:
            x, y = x.reshape(-1), y.reshape(-1)
        x = x.reshape(-1, x.shape[-1])
        terms, columns = x.shape[1], y.size // x.shape[1]
        if len(x) * terms * columns > _MULTIPLIED:
            raise NoForm(f"{call_name(o)}: a large product of matrices")
        if columns == 1 or y.ndim == 1:
            y = y.reshape(1, terms)
            args: list[_Value] = [
                _Elements(left.buffer, x),
                _Elements(right.buffer, np.broadcast_to(y, x.shape)),
            ]
            made = self._statement(lambda t: f"{t[0]} * {t[1]}", args, left.type, x.shape)
            assert isinstance(made, _Elements)
            return self._reduced_of(o, made, "sum")
        whole = (len(x), terms, columns)
        buffer, at = self._target(o)
        self._assign(buffer, at, [_Scalar("0", buffer.type)])
        into = np.broadcast_to(at.reshape(len(x), 1, columns), whole)
        args = [
            _Elements(left.buffer, np.broadcast_to(x[:, :, None], whole)),
            _Elements(right.buffer, np.broadcast_to(y[None], whole)),
        ]
        self._assign(buffer, into, args, lambda t: f"{t[0]} * {t[1]}", "+=")
        return _Elements(buffer, at)

    def _in_memory(self, value: _Value, a: Operation) -> _Elements:
        if isinstance(value, _Elements):
            return value
        buffer, at = self._target(a)
        self._assign(buffer, at, [value])
        return _Elements(buffer, at)

    # -- text --------------------------------------------------------------------------------------
    def _leaves(self, k: int, o: Operation) -> bool:
        """Whether an output is worked out where it is to be."""
        value = self._values[o.index]
        if type(value) is _Scalar:
            return False
        assert isinstance(value, _Elements)
        buffer = value.buffer
        if buffer.place != "local" or buffer.padded or buffer.external is not None:
            buffer.kept = True
            return False
        if not value.is_whole():
            buffer.kept = True
            return False
        buffer.kept, buffer.external = True, k
        return True

    def _table(self, at: Any) -> str:
        """The name of a table of places."""
        flat = np.ascontiguousarray(at, np.int32).reshape(-1)
        key = flat.tobytes()
        if key not in self._tables:
            self._tables[key] = self._name("t")
        return self._tables[key]

    def _source(self) -> str:
        heads = {
            f"x{k}": f"const {c_type(o.dtype)} *restrict x{k} = in[{k}];"
            for k, o in enumerate(self.inputs)
        }
        copies = []
        for k, o in self._copies:
            kind = c_type(o.dtype)
            assert kind is not None
            target = _Buffer(f"y{k}", kind, o.size, "out")
            made = _Statement(lambda given: given[0], [self._values[o.index]], kind)
            made.buffer, made.places = target, np.arange(o.size).reshape(o.shape)
            loop = _Loop(o.shape)
            loop.statements.append(made)
            heads[f"y{k}"] = f"{kind} *restrict y{k} = out[{k}];"
            copies.append(self._loop_text(loop, len(self._blocks)))
        body = [
            self._loop_text(b, k) if isinstance(b, _Loop) else b for k, b in enumerate(self._blocks)
        ]
        outside: list[str] = []
        body, copies, room = self._placed(body, copies)
        for b in self._buffers:
            if b.place == "constant":
                if b.size > _WRITTEN:
                    heads[b.name] = f"const {b.type} *restrict {b.name} = known[{len(self.known)}];"
                    self.known.append(b.values)
                    continue
                values = ", ".join(literal(v, b.values.dtype) for v in b.values.reshape(-1))
                outside.append(f"static const {b.type} {b.name}[] = {{{values}}};")
            elif b.external is not None:
                heads[b.name] = f"{b.type} *restrict {b.name} = out[{b.external}];"
        for name, (kind, count) in room.items():
            outside.append(f"static {kind} {name}[{count}] __attribute__((aligned(64)));")
        if sum(BYTES[kind] * count for kind, count in room.values()) > _ROOM:
            raise NoForm("larger arrays")
        for key, name in self._tables.items():
            heads[name] = f"const int *restrict {name} = known[{len(self.known)}];"
            self.known.append(np.frombuffer(key, np.int32))
        outside.append(self._functions.source())
        text = "\n".join([*outside, *_functions([*body, *copies], heads)])
        return native_prelude.before(text) + text

    def _placed(
        self, body: list[str], copies: list[str]
    ) -> tuple[list[str], list[str], dict[str, tuple[str, int]]]:
        """The texts, and (type, elements) of the arrays between their loops, by name.

        An array takes the memory of one of its type that no later text names.
        """
        texts = [*body, *copies]
        begins: dict[str, int] = {}
        ends: dict[str, int] = {}
        for at, text in enumerate(texts):
            for name in _NAME.findall(text):
                begins.setdefault(name, at)
                ends[name] = at
        local = [b for b in self._buffers if b.place == "local" and b.kept and b.external is None]
        room: dict[str, tuple[str, int]] = {}
        taken: dict[str, str] = {}  # the name of the memory of an array
        free_from: dict[str, int] = {}  # the text from which on memory is free
        for b in sorted(local, key=lambda b: begins.get(b.name, -1)):
            lanes = VECTOR // BYTES[b.type] if b.padded else 1
            count = -(-b.size // lanes) * lanes
            begin = begins.get(b.name, -1)
            spare = [n for n, (kind, _) in room.items() if kind == b.type and free_from[n] <= begin]
            # As long as this one, or else the longest.
            name = max(spare, key=lambda n: (room[n][1] == count, room[n][1]), default=b.name)
            taken[b.name] = name
            room[name] = b.type, max(count, room.get(name, ("", 0))[1])
            free_from[name] = ends.get(b.name, len(texts)) + 1

        def moved(some: list[str]) -> list[str]:
            return [_NAME.sub(lambda found: taken.get(found[0], found[0]), text) for text in some]

        return moved(body), moved(copies), room

    def _loop_text(self, loop: _Loop, at: int) -> str:
        shape = loop.shape
        if loop.call:
            return self._call_text(loop)
        maps: list[Any] = []
        for s in loop.statements:
            maps += [
                np.broadcast_to(a.at, shape)
                for a in s.args
                if type(a) is _Elements and not a.is_inside(at)
            ]
            if s.places is not None:
                maps.append(s.places)
        nested = len(shape) > 1 and any(_run(m) is None and _steps(m) is not None for m in maps)
        flat = "i"
        if nested:
            flat = "0"
            for d, n in enumerate(shape):
                flat = f"({flat}) * {n} + j{d}" if d else f"j{d}"
            heads = [f"for (long j{d} = 0; j{d} < {n}; j{d}++)" for d, n in enumerate(shape)]
        else:
            heads = [f"for (long i = 0; i < {math.prod(shape)}; i++)"]
        lines = []
        for s in loop.statements:
            given = [self._read_text(a, at, shape, nested, flat) for a in s.args]
            text = s.text(given)
            if s.places is not None:
                place = self._place_text(s.places, nested, flat)
                lines.append(f"{s.buffer.name}[{place}] {s.how} {text};")
                continue
            lines.append(f"const {s.type} {s.name} = {text};")
            if s.buffer is not None and s.buffer.kept:
                lines.append(f"{s.buffer.name}[{flat}] = {s.name};")
        if not shape:
            return "\n".join(lines)
        return f"{' '.join(heads)} {{\n{chr(10).join(lines)}\n}}"

    def _call_text(self, loop: _Loop) -> str:
        """A loop over calls, which is a function of its own."""
        (s,) = loop.statements
        assert loop.call is not None
        lanes = VECTOR // BYTES[s.type]
        count = -(-s.buffer.size // lanes) * lanes
        given, lines = [], []
        for a in s.args:
            given.append(a.text if type(a) is _Scalar else a.buffer.name)
            if type(a) is not _Scalar and (size := a.buffer.size) < count:
                name = given[-1]
                lines.append(f"for (long i = {size}; i < {count}; i++) {name}[i] = {name}[0];")
        single = [type(a) is _Scalar for a in s.args]
        function = self._functions.calls(loop.call, [a.type for a in s.args], single)
        return "\n".join([*lines, f"{function}({count}, {s.buffer.name}, {', '.join(given)});"])

    def _read_text(
        self, a: _Value, at: int, shape: tuple[int, ...], nested: bool, flat: str
    ) -> str:
        if type(a) is _Scalar:
            return a.text
        assert isinstance(a, _Elements)
        if a.is_inside(at):
            return a.buffer.inside
        place = self._place_text(np.broadcast_to(a.at, shape), nested, flat)
        return f"{a.buffer.name}[{place}]"

    def _place_text(self, at: Any, nested: bool, flat: str) -> str:
        if not nested:
            run = _run(at)
            if run is None:
                return f"{self._table(at)}[i]"
            return _sum_text(run[0], [(run[1], "i")] if at.size > 1 else [])
        steps = _steps(at)
        if steps is None:
            return f"{self._table(at)}[{flat}]"
        return _sum_text(steps[0], [(n, f"j{d}") for d, n in enumerate(steps[1])])


def _functions(body: Sequence[str], heads: Mapping[str, str]) -> list[str]:
    """The text of `program`; a long one calls functions of some statements each.

    heads: what declares a name. A compiler takes longer than in proportion over a long function.
    """
    given = "(const void *const *in, void *const *out, const void *const *known) {"
    parts, lines = [""], 0
    for text in body:
        count = text.count(";") + 1
        if lines and lines + count > _LINES:
            parts, lines = [*parts, ""], 0
        parts[-1] += f"{text}\n"
        lines += count
    names = [set(_NAME.findall(part)) for part in parts]
    declared = [
        "".join(f"{line}\n" for name, line in heads.items() if name in some) for some in names
    ]
    if len(parts) == 1:
        return [f"static void program{given}\n(void)in; (void)known;\n{declared[0]}{parts[0]}}}\n"]
    several = {name for name, n in Counter(itertools.chain(*names)).items() if n > 1}
    numbers: dict[str, str] = {}

    def in_memory(found: re.Match[str]) -> str:
        kind, name = found.groups()
        if name not in several:
            return found[0]
        numbers[name] = f"static {kind} {name};"
        return f"{name} ="

    parts = [_MADE.sub(in_memory, part) for part in parts]
    functions = [
        f"static __attribute__((noinline)) void part{k}{given}\n{head}{part}}}\n"
        for k, (head, part) in enumerate(zip(declared, parts, strict=True))
    ]
    calls = "".join(f"part{k}(in, out, known);\n" for k in range(len(parts)))
    return [*numbers.values(), *functions, f"static void program{given}\n{calls}}}\n"]


def _sum_text(first: int, steps: Iterable[tuple[int, str]]) -> str:
    parts = [name if n == 1 else f"{n} * {name}" for n, name in steps if n]
    return " + ".join([*parts, *([str(first)] if first or not parts else [])])


def _is_beside(a: _Value, shape: tuple[int, ...]) -> bool:
    """Whether it is there in the same turn of the loop that makes it."""
    return type(a) is _Scalar or (isinstance(a, _Elements) and a.at.shape == shape and a.is_whole())


def _read(a: _Value, at: int) -> None:
    """Note that a block reads it."""
    if isinstance(a, _Elements) and a.block != at:
        a.buffer.kept = True


def _leaves(value: Any) -> Iterable[Any]:
    if type(value) in (list, tuple):
        for v in value:
            yield from _leaves(v)
    else:
        yield value


def _code(dtype: Any) -> str:
    return f"{dtype.kind}{dtype.itemsize}"


def compiled(outputs: Sequence[Operation], inputs: Sequence[Operation]) -> DirectCalls:
    """A program as one C function. Raises NoForm, and c_compiler.NoCompiler."""
    return WholeProgram(outputs, inputs).calls()


__all__ = ["LARGEST", "NoForm", "WholeProgram", "compiled"]
