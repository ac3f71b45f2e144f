"""Arrays that record what is done with them instead of doing it.

The engine runs on them unchanged: tensors over abstract arrays make the usual nodes, and a backward pass
over these nodes records exactly the NumPy calls that it would make, in the same order. Anything that needs
the numbers raises `Untraceable`; the program then runs on the tape.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from gradcli.engine.system.array_memory import Numberless, arranged, as_operands, order_of
from gradcli.engine.system.cascaded_sums import add_reduce
from gradcli.transforms.tracing import abstract_evaluation
from gradcli.transforms.tracing.numpy_program import (
    NoShape,
    NumpyProgram,
    Operation,
    Untraceable,
    cast,
    fill,
    operands,
    replaced,
)


def _reading(name: str) -> Any:
    """A method of the array that has the numbers, if there is one."""

    def read(self: AbstractArray, *args: Any, **options: Any) -> Any:
        return getattr(self._graph.read(self._op), name)(*args, **options)

    return read


def _described(name: str) -> Any:
    """An attribute of the array that has the numbers, if there is one."""

    def read(self: AbstractArray) -> Any:
        return getattr(self._graph.read(self._op), name)

    return property(read)


class AbstractArray(Numberless, NDArrayOperatorsMixin):
    """An array with shape, dtype and layout, but no numbers."""

    __slots__ = ("_fresh", "_graph", "_op")

    def __init__(self, graph: NumpyProgram, op: Operation, fresh: bool = False) -> None:
        self._graph, self._op = graph, op
        self._fresh = fresh  # memory that only this name refers to, so that it may be written

    shape = property(lambda a: a._op.shape)
    dtype = property(lambda a: a._op.dtype)
    ndim = property(lambda a: len(a._op.shape))
    size = property(lambda a: a._op.size)
    itemsize = property(lambda a: a._op.dtype.itemsize)
    nbytes = property(lambda a: a._op.size * a._op.dtype.itemsize)
    base = None

    @property
    def strides(self) -> tuple[int, ...]:
        """As a real array would have them."""
        return self._op.strides or _strides(self._op.shape, self._op.dtype.itemsize)

    @property
    def flags(self) -> Any:
        """The flags of an array of this layout; not contiguous if the layout is unknown."""
        self._fresh = False
        return _blank(self._op).flags if abstract_evaluation.has_layout(self._op) else _UNORDERED

    def as_operands(self, operands: Any) -> Any:
        """See `system.array_memory`: another step where operands disagree, or may do."""
        first = operands[0]
        if first.shape == self.shape and first.flags.c_contiguous:
            return self
        deep = [a for a in operands if sum(n > 1 for n in getattr(a, "shape", ())) > 1]
        if len(deep) < 2:
            return self
        if any(
            type(a) is AbstractArray and not abstract_evaluation.has_layout(a._op) for a in deep
        ):
            given = (self._op, *[_argument(self._graph, a) for a in operands])
            made = self._graph.put("whole", as_operands, given, None, self.shape, self.dtype, False)
            return self._made(made)
        order, by_row = order_of(self.shape, deep), [*range(self.ndim)][::-1]
        if order == by_row or all(order_of(self.shape, [a]) == order for a in deep):
            return self
        return self.arranged(order)

    def arranged(self, order: Any) -> Any:
        """See `system.array_memory`: the same elements, the dims in that order in memory."""
        strides, step = [0] * self.ndim, self.itemsize
        for d in order:
            strides[d], step = step, step * self.shape[d]
        place = (self._op.shape, self._op.dtype, False)
        args = (self._op, [*order])
        return self._made(
            self._graph.put("whole", arranged, args, None, *place, strides=tuple(strides))
        )

    # -- what NumPy asks ---------------------------------------------------------------------------
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        options = {k: v for k, v in options.items() if v is not None or k == "axis"}
        if self._graph.lazy and "out" in options:
            given = [np.asarray(a) if type(a) is AbstractArray else a for a in inputs]
            return getattr(ufunc, method)(*given, **options)
        if "out" in options or "where" in options:
            raise Untraceable("writes into an array that is given")
        args = tuple(_argument(self._graph, a) for a in inputs)
        new = {"fresh": self._graph.lazy}
        if method == "reduce":
            made = abstract_evaluation.reduction(self._graph, ufunc, args, options)
            return AbstractArray(self._graph, made, **new)
        if method != "__call__" or ufunc.nout != 1:
            return self._called(getattr(ufunc, method), args, options)
        if ufunc.signature is not None:
            return self._called(ufunc, args, options)
        if options:
            raise Untraceable(f"options of {ufunc.__name__}")
        return AbstractArray(
            self._graph, abstract_evaluation.elementwise(self._graph, ufunc, args), **new
        )

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        fact = abstract_evaluation.FACTS.get(function)
        if fact is not None:
            return fact(*args, **options)
        known = _PUTS.get(function)
        if known is not None:
            return known(*args, **options)
        graph = self._graph
        given = tuple(_argument(graph, a) for a in args)
        named = {k: _argument(graph, v) for k, v in options.items()}
        if function in abstract_evaluation.FRESH:
            op = abstract_evaluation.FRESH[function](graph, *given, **named)
            return AbstractArray(graph, op, fresh=True)
        special = abstract_evaluation.SPECIAL.get(function)
        if special is not None:
            return self._made(special(graph, *given, **named))
        return self._called(function, given, named)

    def _called(self, function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        made = abstract_evaluation.called(self._graph, function, args, options)
        if made is None:
            raise NoShape(f"no shape is known for {getattr(function, '__name__', function)}")
        if type(made) is list:
            return [AbstractArray(self._graph, m) for m in made]
        return self._made(made)

    def _made(self, op: Operation) -> AbstractArray:
        return AbstractArray(self._graph, op)

    def _view(self, method: str, *args: Any, **options: Any) -> Any:
        self._fresh = False
        made = abstract_evaluation.view(self._graph, self._op, method, args, options)
        return self if made is self._op else AbstractArray(self._graph, made)

    # -- methods -----------------------------------------------------------------------------------
    def _power(self, other: Any, reflected: bool = False) -> Any:
        pair = (other, self) if reflected else (self, other)
        if reflected or type(other) not in (int, float):
            return np.power(*pair)
        # Python's operator takes short cuts (a square for 2) that the ufunc does not.
        args = (self._op, other)
        return self._made(
            abstract_evaluation.elementwise(self._graph, operator.pow, args, np.power)
        )

    def __pow__(self, other: Any) -> Any:
        return self._power(other)

    def __rpow__(self, other: Any) -> Any:
        return self._power(other, True)

    def __matmul__(self, other: Any) -> Any:
        return self._called(np.matmul, (self._op, _argument(self._graph, other)), {})

    def __rmatmul__(self, other: Any) -> Any:
        return self._called(np.matmul, (_argument(self._graph, other), self._op), {})

    def dot(self, other: Any) -> Any:
        """The product of vectors or matrices."""
        return self._called(np.dot, (self._op, _argument(self._graph, other)), {})

    def sum(
        self, axis: Any = None, dtype: Any = None, out: None = None, keepdims: Any = False
    ) -> Any:
        """The sum along axes."""
        return add_reduce(self, axis, dtype, keepdims)

    def prod(
        self, axis: Any = None, dtype: Any = None, out: None = None, keepdims: Any = False
    ) -> Any:
        """The product along axes."""
        return np.multiply.reduce(self, axis=axis, dtype=dtype, keepdims=keepdims)

    def max(self, axis: Any = None, out: None = None, keepdims: Any = False) -> Any:
        """The largest elements along axes."""
        return np.maximum.reduce(self, axis=axis, keepdims=keepdims)

    def min(self, axis: Any = None, out: None = None, keepdims: Any = False) -> Any:
        """The smallest elements along axes."""
        return np.minimum.reduce(self, axis=axis, keepdims=keepdims)

    def any(self, axis: Any = None, out: None = None, keepdims: Any = False) -> Any:
        """Whether any element is true, along axes."""
        return np.logical_or.reduce(self, axis=axis, keepdims=keepdims)

    def all(self, axis: Any = None, out: None = None, keepdims: Any = False) -> Any:
        """Whether all elements are true, along axes."""
        return np.logical_and.reduce(self, axis=axis, keepdims=keepdims)

    def cumsum(self, axis: Any = None) -> Any:
        """Running sums."""
        return self._called(np.cumsum, (self._op, axis), {})

    def astype(
        self,
        dtype: Any,
        order: str = "K",
        casting: str = "unsafe",
        subok: bool = True,
        copy: bool = True,
    ) -> Any:
        """The elements in another dtype."""
        if order != "K" and not self._op.contiguous:
            return self.copy().astype(dtype)
        wanted = np.dtype(dtype)
        if wanted == self._op.dtype:
            return AbstractArray(self._graph, self._op, fresh=True) if copy else self
        o = self._op
        made = self._graph.put(
            "elementwise", cast, (o, wanted), None, o.shape, wanted, o.contiguous
        )
        return self._made(made)

    def copy(self, order: str = "C") -> Any:
        """The same elements, in memory of their own."""
        op = self._op
        if op.shape and not op.contiguous:
            op = self._graph.put("whole", np.array, (op,), {"order": order}, op.shape, op.dtype)
        return AbstractArray(self._graph, op, fresh=True)

    def __copy__(self) -> Any:
        return self.copy()

    def reshape(self, *shape: Any) -> Any:
        """The same elements in another shape."""
        wanted = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        return self._view("reshape", tuple(int(n) for n in wanted))

    def transpose(self, *axes: Any) -> Any:
        """The dimensions in another order."""
        return self._view("transpose", *axes)

    def swapaxes(self, a: int, b: int) -> Any:
        """Two dimensions exchanged."""
        return self._view("swapaxes", a, b)

    def squeeze(self, axis: Any = None) -> Any:
        """Without dimensions of size 1."""
        return self._view("squeeze", axis)

    def ravel(self) -> Any:
        """All elements in one dimension."""
        return self._view("ravel")

    def flatten(self) -> Any:
        """All elements in one dimension."""
        return self._view("ravel").copy()

    def diagonal(self, *args: Any, **options: Any) -> Any:
        """The elements on a diagonal."""
        return self._view("diagonal", *args, **options)

    def expand(self, shape: tuple[int, ...]) -> Any:
        """The elements repeated to a shape, as the engine's `expand` does it."""
        if 0 < math.prod(shape) <= 4096 and self.shape != shape:
            if not self.shape:
                return self._made(self._graph.put("fill", fill, (self._op, tuple(shape))))
            return self._made(abstract_evaluation.repeated(self._graph, self._op, tuple(shape)))
        return np.broadcast_to(self, shape)

    def new_zeros(self, shape: tuple[int, ...]) -> Any:
        """Zeros of this dtype."""
        zero = self._graph.constant(self.dtype.type(0))
        made = self._graph.put("fill", fill, (zero, tuple(shape)))
        return AbstractArray(self._graph, made, fresh=True)

    @property
    def T(self) -> Any:
        """The dimensions in reverse order."""
        return self if self.ndim < 2 else self._view("transpose")

    @property
    def mT(self) -> Any:
        """The last two dimensions exchanged."""
        return self.swapaxes(-1, -2)

    def trace(self, *args: Any, **options: Any) -> Any:
        """The sum of a diagonal."""
        return self._called(abstract_evaluation.method_call("trace"), (self._op, *args), options)

    def mean(self, *args: Any, **options: Any) -> Any:
        """The mean along axes."""
        if self._op.dtype.char in abstract_evaluation.MEANS:
            return np.mean(self, *args, **options)
        return self._called(abstract_evaluation.method_call("mean"), (self._op, *args), options)

    def var(self, *args: Any, **options: Any) -> Any:
        """The variance along axes."""
        return self._called(abstract_evaluation.method_call("var"), (self._op, *args), options)

    def argmax(self, axis: Any = None, *, keepdims: bool = False) -> Any:
        """Where the largest element along an axis is."""
        return self._called(np.argmax, (self._op,), {"axis": axis, "keepdims": keepdims})

    def argmin(self, axis: Any = None, *, keepdims: bool = False) -> Any:
        """Where the smallest element along an axis is."""
        return self._called(np.argmin, (self._op,), {"axis": axis, "keepdims": keepdims})

    def take(self, indices: Any, axis: Any = None) -> Any:
        """The elements at indices along an axis."""
        return self._called(np.take, (self._op, _argument(self._graph, indices), axis), {})

    def conj(self) -> Any:
        """The complex conjugate."""
        return np.conjugate(self)

    conjugate = conj

    @property
    def real(self) -> Any:
        """The real part."""
        return self if self._op.dtype.kind != "c" else self._view("real")

    @property
    def imag(self) -> Any:
        """The imaginary part."""
        return self._view("imag")

    def __getitem__(self, index: Any) -> Any:
        if (type(index) is tuple and not index) or index is Ellipsis:
            return self
        self._fresh = False
        made = abstract_evaluation.indexed(self._graph, self._op, _argument(self._graph, index))
        if made is None:
            raise Untraceable("an index of booleans: the shape would depend on the numbers")
        return AbstractArray(self._graph, made)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._write(
            abstract_evaluation.written,
            _argument(self._graph, index),
            _argument(self._graph, value),
        )

    def _write(self, function: Any, *args: Any) -> None:
        """Make this the result of a function that returns a changed copy."""
        if not self._fresh:
            self._graph.refuse("writes into memory that has other names")
        o = self._op
        self._op = self._graph.put(
            "whole", function, (o, *args), None, o.shape, o.dtype, o.contiguous
        )

    def fill(self, value: Any) -> None:
        """Set every element."""
        if not self._fresh:
            self._graph.refuse("writes into memory that has other names")
        o = self._op
        given = _argument(self._graph, value)
        if type(given) is not Operation:
            given = self._graph.constant(o.dtype.type(given))
        self._op = self._graph.put("fill", fill, (given, o.shape))

    def guard(self, check: Any, told: Any, *facts: Any) -> None:
        """Call `check(told, *facts)` when the program runs, with told's numbers; it may raise an error."""
        o, given = self._op, _argument(self._graph, told)
        args = (check, o, given, *facts)
        self._op = self._graph.put(
            "whole",
            abstract_evaluation.with_value_check,
            args,
            None,
            o.shape,
            o.dtype,
            o.contiguous,
        )

    def __len__(self) -> int:
        return int(self._op.shape[0])

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self))])

    def __hash__(self) -> int:
        return id(self)

    # -- what needs the numbers --------------------------------------------------------------------
    __bool__, __float__, __int__ = map(_reading, ("__bool__", "__float__", "__int__"))
    __index__, __complex__, __array__ = map(_reading, ("__index__", "__complex__", "__array__"))
    __contains__, __format__ = map(_reading, ("__contains__", "__format__"))
    __repr__, __str__ = map(_reading, ("__repr__", "__str__"))
    item, tolist, tobytes = map(_reading, ("item", "tolist", "tobytes"))
    view, nonzero, resize = map(_reading, ("view", "nonzero", "resize"))
    data, ctypes = map(_described, ("data", "ctypes"))
    __array_interface__ = _described("__array_interface__")
    __array_struct__ = _described("__array_struct__")

    def _refuse(self, *args: Any, **options: Any) -> Any:
        self._graph.refuse("writes into an array that is given")

    def __iadd__(self, other: Any) -> Any:  # gradients add up
        if not self._fresh:
            self._refuse()
        self._op = _argument(self._graph, (self + other).astype(self.dtype))
        return self

    __isub__ = __imul__ = __itruediv__ = __ipow__ = __ifloordiv__ = _refuse
    __imod__ = __imatmul__ = __iand__ = __ior__ = __ixor__ = _refuse


def _argument(graph: NumpyProgram, value: Any) -> Any:
    """An operand in the form in which operations keep it."""
    kind = type(value)
    if kind is AbstractArray:
        return value._op
    if kind in (list, tuple):
        return kind([_argument(graph, v) for v in value])
    if isinstance(value, np.ndarray):
        return graph.constant(value)
    if isinstance(value, np.generic):
        return graph.constant(value)
    return value


_UNORDERED = np.empty((2, 4, 4))[:, ::2, ::2].flags


def _strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    found: list[int] = []
    for n in reversed(shape):
        found.append(itemsize)
        itemsize *= max(n, 1)
    return tuple(reversed(found))


def _blank(op: Operation) -> Any:
    return abstract_evaluation.blank(op)


def _put_along_axis(array: Any, indices: Any, values: Any, axis: int) -> None:
    if type(array) is not AbstractArray:
        raise Untraceable("writes into an array that is given")
    graph = array._graph
    array._write(
        abstract_evaluation.put_along, _argument(graph, indices), _argument(graph, values), axis
    )


def _copyto(target: Any, source: Any, **options: Any) -> None:
    raise Untraceable("writes into an array that is given")


_PUTS: dict[Any, Any] = {np.put_along_axis: _put_along_axis, np.copyto: _copyto}

abstract_evaluation.ABSTRACT.append(AbstractArray)

__all__ = ["AbstractArray", "Untraceable", "operands", "replaced"]
