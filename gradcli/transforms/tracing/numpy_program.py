"""A straight-line program of NumPy calls, as data.

Operations are hash-consed (equal calls are one operation), and only rewrites that keep every bit are
made: `x*1` is `x`, a sum, product or quotient of constants that fill their arrays is computed once.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

import numpy as np

Shape = tuple[int, ...]

# NumPy's ufuncs of which Python's operators are the faster form on scalars.
INFIX: dict[Any, str] = {
    np.add: "+",
    np.subtract: "-",
    np.multiply: "*",
    np.divide: "/",
}
_COMMUTATIVE = frozenset([np.add, np.multiply])
_UNIFORM = frozenset([np.add, np.subtract, np.multiply, np.divide, np.negative])


def cast(array: Any, dtype: Any) -> Any:
    """`array` in another dtype."""
    return array.astype(dtype)


def fill(value: Any, shape: Shape) -> Any:
    """A 0-d value repeated to a shape, in memory of its own."""
    if not shape:
        return value
    made = np.empty(shape, value.dtype)
    made.fill(value)
    return made


def spread(value: Any, shape: Shape) -> Any:
    """A 0-d value repeated to a shape, without memory of its own."""
    return np.broadcast_to(value, shape) if shape else value


def apart(number: int) -> Any:
    """A place without numbers, unlike any other of another number: what depends on it can be told."""
    raise RuntimeError("this was recorded to be looked at, not to be run")


def scattered(block: Any, places: Any, index: Any, shape: Shape) -> Any:
    """Zeros with what is at `places` of a flat block at `index` of the flat result, none twice."""
    made = np.zeros(shape, block.dtype)
    made.reshape(-1)[index] = block.reshape(-1).take(places)
    return made


def pieced(shape: Shape, dtype: Any, *pieces: Any) -> Any:
    """Zeros, to which pieces are added, each of them (slices, values)."""
    made = np.zeros(shape, dtype)
    index, values = pieces[0]
    made[index] = values
    for index, values in pieces[1:]:
        part = made[index]
        part += values
    return made


class Untraceable(BaseException):
    """The program cannot be traced. Not an Exception, so that no handler catches it on the way."""


class NoShape(Untraceable):
    """The shape of a call's result depends on numbers."""


class Operation:
    """One call: `function(*args, **dict(options))`; an input or a constant where function is None.

    kind: "input", "constant", "elementwise", "fill", "reduce" (a ufunc's, see `axes`), "view" or
    "whole" (anything else). args may hold operations, plain values, and lists and tuples of both.
    contiguous: whether the result's elements lie in order in memory.
    """

    __slots__ = (
        *("args", "axes", "contiguous", "dtype", "function", "index", "keepdims"),
        *("kind", "name", "options", "shape", "size", "strides", "__weakref__"),
    )

    def __init__(
        self,
        kind: str,
        function: Any,
        args: tuple[Any, ...],
        options: tuple[tuple[str, Any], ...],
        shape: Shape,
        dtype: np.dtype[Any],
        contiguous: bool = True,
    ) -> None:
        self.kind, self.function, self.args, self.options = kind, function, args, options
        self.shape, self.dtype, self.contiguous = shape, dtype, contiguous
        self.size = 1
        for n in shape:
            self.size *= n
        self.index = -1
        self.name = ""
        self.axes: tuple[int, ...] | None = None
        self.keepdims = False
        self.strides: Shape | None = None  # in bytes, where not contiguous

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def ordered(self) -> bool:
        """Whether what NumPy computes from it lies in order in memory."""
        found = self
        while found.function is np.broadcast_to:
            found = found.args[0]
        return found.contiguous or found.kind == "fill"

    def __repr__(self) -> str:
        name = self.name or getattr(self.function, "__name__", str(self.function))
        return f"<{self.index}: {self.kind} {name} {self.shape} {self.dtype}>"


def operands(args: Iterable[Any]) -> Iterator[Operation]:
    """The operations among arguments, lists and tuples opened."""
    waiting = list(args)[::-1]
    while waiting:
        a = waiting.pop()
        if type(a) is Operation:
            yield a
        elif type(a) in (list, tuple):
            waiting.extend(reversed(a))


def replaced(value: Any, meaning: Any) -> Any:
    """An argument with every operation in it replaced by `meaning(operation)`."""
    if type(value) is Operation:
        return meaning(value)
    if type(value) in (list, tuple):
        return type(value)([replaced(v, meaning) for v in value])
    return value


def key_of(value: Any) -> Any:
    """What tells a plain argument from others: a number by its bits, an array or an operation by itself."""
    kind = type(value)
    if kind is Operation or kind is np.ndarray:
        return id(value)
    if kind in (list, tuple):
        return (kind, *[key_of(v) for v in value])
    if kind is slice:
        return (kind, value.start, value.stop, value.step)
    if kind is float or isinstance(value, np.inexact):  # 0.0 and -0.0, and NaN, apart
        return (kind, repr(value))
    try:
        hash(value)
    except TypeError:
        return (kind, id(value))
    return (kind, value)


class NumpyProgram:
    """Operations in the order in which they were recorded, equal ones once."""

    lazy = False  # whether numbers are there when they are asked for

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.inputs: list[Operation] = []
        self._known: dict[Any, Operation] = {}
        self._kept: list[Any] = []  # what keys name by id
        self.stop: tuple[int, Exception] | None = None  # what an operation of this number raises
        self.worded = False  # what cannot be recorded is an Exception where it is asked for
        self.refused: str | None = None  # that it was, lest a program should have caught it

    def input(self, name: str, array: Any) -> Operation:
        """A variable of this array's shape, dtype and layout."""
        made = Operation("input", None, (), (), tuple(array.shape), array.dtype)
        made.name = name
        if array.ndim and not array.flags.c_contiguous:
            made.contiguous, made.strides = False, array.strides
        self._append(made)
        self.inputs.append(made)
        return made

    def place(self, shape: Shape, dtype: Any) -> Operation:
        """An array that is no other: see `apart`."""
        return self.put("whole", apart, (len(self.operations),), None, shape, dtype)

    def constant(self, value: Any) -> Operation:
        """A value that is known."""
        if not isinstance(value, (np.ndarray, np.generic)):
            value = np.asarray(value)[()]
        if value.ndim and value.size and not any(value.strides):
            return self.put("fill", spread, (self.constant(value.flat[0]), value.shape))
        key: Any = ("constant", key_of(value))
        if value.ndim == 0:
            key = ("constant", value.dtype.str, value.tobytes())
        found = self._known.get(key)
        if found is None:
            found = Operation("constant", None, (value,), (), tuple(value.shape), value.dtype)
            if value.ndim and not value.flags.c_contiguous:
                found.contiguous, found.strides = False, value.strides
            self._kept.append(value)
            self._known[key] = self._append(found)
        return found

    def read(self, operation: Operation) -> Any:
        """The numbers of a result, which are not there. Raises Untraceable."""
        self.refuse("it looks at the numbers")

    def refuse(self, words: str) -> NoReturn:
        """Raise Untraceable, or as an Exception."""
        if self.worded:
            self.refused = words
            raise RuntimeError(words)
        raise Untraceable(words)

    def written(self, array: Any) -> None:
        """Copy the constants that share memory about to be written, so that earlier reads stay valid."""
        if type(array) is not np.ndarray:
            return
        for o in self.operations:
            if o.kind == "constant" and np.may_share_memory(o.args[0], array):
                self._known.pop(("constant", key_of(o.args[0])), None)
                o.args = (np.array(o.args[0])[()],)

    def put(
        self,
        kind: str,
        function: Any,
        args: tuple[Any, ...],
        options: dict[str, Any] | None = None,
        shape: Shape | None = None,
        dtype: Any = None,
        contiguous: bool = True,
        axes: tuple[int, ...] | None = None,
        keepdims: bool = False,
        strides: Shape | None = None,
    ) -> Operation:
        """The operation of this call."""
        if kind == "fill":
            value, shape = args
            if not shape:
                return value  # type: ignore[no-any-return]
            args, dtype = (value, shape), value.dtype
        assert shape is not None
        given = tuple(sorted((options or {}).items()))
        if kind == "elementwise":
            simple = self._simplified(function, args, shape, dtype)
            if simple is not None:
                return simple  # type: ignore[no-any-return]
        key = (function, *[key_of(a) for a in args], *[(k, key_of(v)) for k, v in given])
        if function in _COMMUTATIVE and all(type(a) is Operation for a in args):
            key = (function, *sorted(key[1:3]), *key[3:])
        try:
            found = self._known.get(key)
        except TypeError:  # something that has no hash
            found = None
            key = (object(),)
        if found is None:
            found = Operation(kind, function, args, given, shape, dtype, contiguous)
            found.axes, found.keepdims, found.strides = axes, keepdims, strides
            self._kept.append(args)
            self._known[key] = self._append(found)
        return found

    def _append(self, operation: Operation) -> Operation:
        operation.index = len(self.operations)
        if self.stop is not None and self.stop[0] == operation.index:
            raise self.stop[1]
        self.operations.append(operation)
        return operation

    def _simplified(self, function: Any, args: Any, shape: Shape, dtype: Any) -> Any:
        same = None
        if function is np.multiply:
            a, b = args
            same = b if is_one(a) else a if is_one(b) else None
        elif function is np.add and (found := _doubled(*args)):
            times = self.constant(found[0]), found[1]
            return self.put(
                "elementwise", np.multiply, times, None, shape, dtype, args[0].contiguous
            )
        elif (function is np.divide and is_one(args[1])) or (
            function is operator.pow and args[1] == 1
        ):
            same = args[0]
        # Only what lies in order: another layout might be summed in another order later on.
        if (
            type(same) is Operation
            and (same.shape, same.dtype) == (shape, dtype)
            and (same.contiguous or same.kind == "fill")
        ):
            return same
        if shape and function in _UNIFORM and all(map(_is_uniform, args)):
            inner = tuple(
                a.args[0] if type(a) is Operation and a.kind == "fill" else a for a in args
            )
            value = self.put("elementwise", function, inner, None, (), dtype)
            return self.put("fill", fill, (value, shape))
        return None


def _doubled(a: Any, b: Any) -> tuple[Any, Operation] | None:
    """(2c, x) for c*x + c*x if c is a power of 2 and at least 1: neither form rounds."""
    if a is not b or type(a) is not Operation or a.function is not np.multiply:
        return None
    for c, x in (a.args, a.args[::-1]):
        if type(c) is not Operation or type(x) is not Operation or c.kind != "constant":
            continue
        if c.shape or x.shape != a.shape or c.dtype != a.dtype or c.dtype.char not in "fd":
            continue
        part, power = np.frexp(c.args[0])
        if abs(part) == 0.5 and 1 <= power < np.finfo(c.dtype).maxexp:
            return c.args[0] + c.args[0], x
    return None


def _is_uniform(value: Any) -> bool:
    return type(value) is not Operation or value.kind == "fill" or not value.shape


def is_one(value: Any) -> bool:
    """Whether a value is 1 everywhere."""
    if type(value) is not Operation:
        return type(value) in (int, float) and value == 1
    if value.kind == "fill":
        value = value.args[0]
    return bool(value.kind == "constant" and not value.shape and value.args[0] == 1)


def call_name(o: Operation) -> str:
    """The name of the call, as people know it: `sort`, `add.accumulate`."""
    name = getattr(o.function, "__name__", "") or str(o.function)
    of = getattr(o.function, "__self__", None)
    if isinstance(of, np.ufunc):
        return f"{of.__name__}.{name}"
    return name.removesuffix("_p")


def live(roots: Iterable[Operation]) -> list[Operation]:
    """The operations that the roots depend on, in the order of the trace."""
    seen: set[int] = set()
    found: list[Operation] = []
    waiting = list(roots)
    while waiting:
        o = waiting.pop()
        if o.index not in seen:
            seen.add(o.index)
            found.append(o)
            waiting.extend(operands(o.args))
    found.sort(key=operator.attrgetter("index"))
    return found


__all__ = [
    "INFIX",
    "NumpyProgram",
    "Operation",
    "call_name",
    "cast",
    "fill",
    "key_of",
    "live",
    "operands",
    "replaced",
    "spread",
]
