"""Arrays that remember the primitives that made them, and the memory that they share.

A `TracedArray` takes the place of an ndarray in the engine. Its `layout` is an ndarray of the same shape,
dtype and memory, with the numbers of an example run. A number that depends on a variable cannot be read, so
that it never becomes a constant unnoticed. Views share a `MemoryCell`: a write through one of them is traced
as a functional update (`select_scatter` and its like), which the others then read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.engine.system import dtypes
from gradcli.transforms.tracing.calls import Value

if TYPE_CHECKING:
    from gradcli.transforms.tracing.tracer import Tracer

NUMBERS = (
    "the program goes on with a number that depends on the variables' values, and what follows from it "
    "would be held constant: keep it a tensor, or write detach() for what is to be held constant"
)


class MemoryCell:
    """Memory that views share: the array that owns it, its current value, and its version."""

    __slots__ = ("layout", "value", "version")

    def __init__(self, layout: Any, value: Value) -> None:
        self.layout, self.value, self.version = layout, value, 0


class TracedArray(NDArrayOperatorsMixin):
    """A traced array: shape, dtype and layout, and the value in the trace."""

    __slots__ = ("_value", "_version", "cell", "layout", "trace")

    def __init__(
        self,
        trace: Tracer,
        layout: Any,
        value: Value | None,
        cell: MemoryCell | None = None,
    ) -> None:
        """value: None where it is to be read from the cell's by where the array lies."""
        self.trace, self.layout = trace, layout
        if cell is None:
            assert value is not None
            cell = MemoryCell(layout, value)
        self.cell, self._value = cell, value
        self._version = cell.version if value is not None else -1

    @property
    def value(self) -> Value:
        """What the array holds now."""
        cell = self.cell
        if self._version != cell.version or self._value is None:
            self._value = self.trace.read(cell, self.layout)
            self._version = cell.version
        return self._value

    @property
    def known(self) -> bool:
        """Whether the numbers do not depend on a variable."""
        return self.value.known

    # -- where it lies -----------------------------------------------------------------------------
    shape = property(lambda a: a.layout.shape)
    dtype = property(lambda a: a.layout.dtype)
    ndim = property(lambda a: a.layout.ndim)
    size = property(lambda a: a.layout.size)
    itemsize = property(lambda a: a.layout.itemsize)
    nbytes = property(lambda a: a.layout.nbytes)
    strides = property(lambda a: a.layout.strides)
    flags = property(lambda a: a.layout.flags)
    base = property(lambda a: a.layout.base)

    def __len__(self) -> int:
        return len(self.layout)

    def __hash__(self) -> int:
        return id(self)

    # -- what rules and kernels do with arrays -----------------------------------------------------
    def __operator__(self, primitive: Any, values: Any) -> Any:
        return unwrapped(primitive.call_in_order([wrapped(v) for v in values]))

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **options: Any) -> Any:
        from gradcli.engine.registry import table

        if method == "reduce":
            name, options = _REDUCTIONS[ufunc], _renamed(options)
            return unwrapped(table.resolve(name)(*map(wrapped, args), **options))
        return self._meant(ufunc if method == "__call__" else None, args, options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        if function in _FACTS:
            return function(*map(_layout, args), **{k: _layout(v) for k, v in options.items()})
        return self._meant(function, args, options)

    def _meant(self, function: Any, args: Any, options: dict[str, Any]) -> Any:
        from gradcli.engine.registry import table

        primitive = None if function is None else table.meaning(function)
        if primitive is None:
            raise self.trace.refuse(NUMBERS)
        named = {k: wrapped(v) for k, v in options.items()}
        return unwrapped(primitive(*map(wrapped, args), **named))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = getattr(wrap(self), name, None)
        if found is None:  # an array's own, which tensors do not have
            if not hasattr(self.layout, name):
                raise AttributeError(f"arrays have no attribute {name!r}")
            return getattr(self.numbers(), name)
        if isinstance(found, Tensor):
            return found.array
        return lambda *args, **options: unwrapped(
            found(*map(wrapped, args), **{k: wrapped(v) for k, v in _renamed(options).items()})
        )

    def __getitem__(self, index: Any) -> Any:
        out: Any = wrap(self)
        return out[index].array

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self))])

    @property
    def T(self) -> Any:
        """The dimensions in reverse order."""
        return self if self.ndim < 2 else wrap(self).t().array

    def astype(self, dtype: Any, **_: Any) -> Any:
        """The elements in another dtype."""
        return wrap(self).to(dtypes.of(np.dtype(dtype))).array

    def copy(self) -> TracedArray:
        """The same elements, in memory of their own."""
        return TracedArray(self.trace, np.array(self.layout), self.value)

    # -- writing -----------------------------------------------------------------------------------
    def __setitem__(self, index: Any, given: Any) -> None:
        if index is not Ellipsis:
            raise self.trace.refuse("a write that has no form as an expression")
        self.trace.write(self, given)

    def written(self, value: Value) -> None:
        """Set the value after a write, for all views of the memory."""
        self.cell.version += 1
        self._value, self._version = value, self.cell.version

    # -- what needs the numbers --------------------------------------------------------------------
    def numbers(self) -> Any:
        """The numbers, where they do not depend on a variable."""
        if not self.known:
            raise self.trace.refuse(NUMBERS)
        return self.layout

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.numbers(), dtype)

    def __bool__(self) -> bool:
        return self.trace.decided(self)

    def __float__(self) -> float:
        return float(self.numbers())

    def __int__(self) -> int:
        return int(self.numbers())

    def __index__(self) -> int:
        return int(self.numbers().__index__())

    def __complex__(self) -> complex:
        return complex(self.numbers())

    def item(self) -> Any:
        """The one element as a number."""
        return self.numbers().item()

    def tolist(self) -> Any:
        """The elements as lists of numbers."""
        return self.numbers().tolist()

    def __repr__(self) -> str:
        return repr(self.numbers())

    def __format__(self, spec: str) -> str:
        return format(self.numbers(), spec)


_OPTIONS = {"axis": "dim", "keepdims": "keepdim"}
_REDUCTIONS: dict[Any, str] = {
    **{np.add: "sum", np.multiply: "prod", np.maximum: "amax", np.minimum: "amin"},
    **{np.logical_and: "all", np.logical_or: "any"},
}
# Functions that ask for no numbers.
_FACTS: frozenset[Any] = frozenset(
    [
        *(np.shape, np.ndim, np.size, np.zeros_like, np.ones_like, np.empty_like, np.result_type),
        *(np.can_cast, np.may_share_memory, np.shares_memory, np.iscomplexobj, np.isrealobj),
    ]
)


def _renamed(options: dict[str, Any]) -> dict[str, Any]:
    found = {_OPTIONS.get(k, k): v for k, v in options.items() if v is not None or k == "axis"}
    if "dtype" in found:
        found["dtype"] = dtypes.of(np.dtype(found["dtype"]))
    return found


def _layout(value: Any) -> Any:
    return value.layout if type(value) is TracedArray else value


def wrapped(value: Any) -> Any:
    """Traced arrays as tensors, in lists too; anything else unchanged."""
    if type(value) is TracedArray:
        return wrap(value)
    if type(value) in (list, tuple):
        return type(value)([wrapped(v) for v in value])
    return value


def unwrapped(value: Any) -> Any:
    """The arrays of tensors, in tuples and lists too."""
    if isinstance(value, Tensor):
        return value.array
    if isinstance(value, list):
        return [unwrapped(v) for v in value]
    return tuple(map(unwrapped, value)) if isinstance(value, tuple) else value


__all__ = ["NUMBERS", "MemoryCell", "TracedArray", "unwrapped", "wrapped"]
