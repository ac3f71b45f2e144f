"""BatchedArray: an array with a hidden batch dimension, as inside `vmap`.

A tensor's `.array` is a BatchedArray inside `vmap`, and in a backward pass with many cotangents at once.
Its shape is that of one entry of the batch; `every` holds all entries, the batch dimension first.
Batches nest: `every` may itself be a BatchedArray of a lower level. `core.batching_rules` says how
primitives are applied.
"""

from __future__ import annotations

import functools
import itertools
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from gradcli.engine.core import modes
from gradcli.engine.system.array_memory import ARRAYS, address, buffer_of, infer_shape, laid_out
from gradcli.engine.system.cascaded_sums import add_reduce
from gradcli.engine.system.threads import applied

if TYPE_CHECKING:
    from typing import TypeVar

    from gradcli.engine.system.dtypes import Array, DType, Shape

    F = TypeVar("F", bound=Callable[..., Any])
_numbers = itertools.count(1).__next__


class BatchLevel:
    """One batch: its size, and in `slow` the primitives that ran entry by entry.

    Levels are numbered as they open; of nested batches the highest number is outermost. randomness:
    "error", "same" or "different", as in `vmap`. linear: all in the batch is linear in it (gradients,
    tangents), so that sparse forms can be kept. depth: how many derivatives were open around it.
    """

    __slots__ = ("depth", "linear", "number", "randomness", "size", "slow")

    def __init__(self, size: int, randomness: str = "error", linear: bool = False) -> None:
        self.number, self.size = _numbers(), size
        self.randomness, self.linear = randomness, linear
        self.slow: dict[str, None] = {}
        self.depth = modes.depth()

    def __repr__(self) -> str:
        return f"<batch of {self.size}>"


ITEM = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling "
    ".item() on a Tensor, please try to rewrite what you're doing with other operations. If error is "
    "occurring somewhere inside PyTorch internals, please file a bug report."
)
_CONTROL_FLOW = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We "
    "don't support that yet, please file an issue at https://github.com/pytorch/pytorch/issues ."
)
NO_STORAGE = "Cannot access data pointer of Tensor that doesn't have storage"
INPLACE = (
    "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` "
    "in extra_args that has more elements than `self`. This happened due to `other` being vmapped over "
    "but `self` not being vmapped over in a vmap. Please try to use out-of-place operators instead of "
    "inplace arithmetic. If said operator is being called inside the PyTorch framework, please file a "
    "bug report instead."
)
DYNAMIC = (
    "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over "
    "aten::{}. Please file an issue at https://github.com/pytorch/pytorch/issues if you need this feature."
)


class BatchedArray(NDArrayOperatorsMixin):
    """An array for each entry of a batch. `every` holds all entries; other attributes describe one."""

    __slots__ = ("every", "level")

    def __init__(self, every: Any, level: BatchLevel) -> None:
        self.every, self.level = every, level

    @property
    def inner(self) -> Any:
        """`every`: a NumPy array, or a BatchedArray if batches nest."""
        return self.every

    @property
    def base(self) -> Any:
        """The base of the memory of all entries."""
        return first(self)

    @property
    def layout(self) -> Any:
        """The first entry, whose memory layout is that of all."""
        return first(self)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one entry."""
        return tuple(self.every.shape[1:])

    @property
    def dtype(self) -> Any:
        """The NumPy dtype of all entries."""
        return self.every.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions of one entry."""
        return int(self.every.ndim) - 1

    @property
    def size(self) -> int:
        """The number of elements of one entry."""
        return prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return int(self.every.dtype.itemsize)

    @property
    def nbytes(self) -> int:
        """Bytes of one entry."""
        return self.size * self.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides of one entry, in bytes."""
        return tuple(self.every.strides[1:])

    @property
    def flags(self) -> Any:
        """Those of one entry."""
        return first(self).flags

    # -- the same for every entry ------------------------------------------------------------------
    def reshape(self, *shape: Any) -> BatchedArray:
        """Every entry in another shape."""
        wanted = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        sizes = resolved(tuple(wanted), self.size)
        return BatchedArray(self.every.reshape((self.every.shape[0], *sizes)), self.level)

    def transpose(self, *dims: Any) -> BatchedArray:
        """The dimensions of every entry in another order (reversed where none is given)."""
        given = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
        order = [d % max(self.ndim, 1) for d in given or ()] or list(reversed(range(self.ndim)))
        return BatchedArray(self.every.transpose(0, *(d + 1 for d in order)), self.level)

    def astype(self, dtype: DType, **options: Any) -> BatchedArray:
        """Every entry in another dtype."""
        return BatchedArray(self.every.astype(dtype, **options), self.level)

    def copy(self, order: str = "C") -> BatchedArray:
        """Every entry in memory of its own."""
        return BatchedArray(self.every.copy(), self.level)

    def __getitem__(self, index: object) -> BatchedArray:
        """Index every entry with integers, slices, None and `...`."""
        keys = index if type(index) is tuple else (index,)
        return BatchedArray(self.every[(slice(None), *keys)], self.level)

    def __setitem__(self, index: Any, value: Any) -> None:
        if batch_of(value) - batch_of(self):
            raise RuntimeError(INPLACE)
        if not self.size:
            return
        keys = index if type(index) is tuple else (index,)
        if isinstance(self.every, ARRAYS) and 0 in self.every.strides[:1]:
            self.every = (
                self.every.copy()
            )  # one entry's memory, shown for all: give each entry its own
        if isinstance(value, BatchedArray) and value.level is self.level:
            value = value.every
        elif np.ndim(value):
            value = broadcast_to(value, (self.level.size, *value.shape))
        self.every[(slice(None), *keys)] = value

    @property
    def real(self) -> BatchedArray:
        """The real parts."""
        return BatchedArray(self.every.real, self.level)

    @property
    def imag(self) -> BatchedArray:
        """The imaginary parts."""
        return BatchedArray(self.every.imag, self.level)

    @property
    def T(self) -> BatchedArray:
        """Every entry with its dimensions reversed."""
        return self.transpose()

    @property
    def mT(self) -> BatchedArray:
        """Every entry with its last two dimensions exchanged."""
        return BatchedArray(self.every.mT, self.level)

    def sum(self, *args: Any, **options: Any) -> Any:
        """Entry by entry."""
        return add_reduce(self, *args, **options)

    def any(self, *args: Any, **options: Any) -> Any:
        """Entry by entry."""
        return np.any(self, *args, **options)

    def all(self, *args: Any, **options: Any) -> Any:
        """Entry by entry."""
        return np.all(self, *args, **options)

    # -- NumPy's functions -------------------------------------------------------------------------
    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *args: Any, **options: Any) -> Any:
        if "out" in options:
            raise RuntimeError(INPLACE)
        call = ufunc if method == "__call__" else getattr(ufunc, method)
        if ufunc is np.add and method == "reduce":
            call = add_reduce
        if ufunc is np.add and method == "__call__" and not options:
            first_, second = args
            for a, b in ((first_, second), (second, first_)):
                if isinstance(a, BatchedArray) and (kept := a.plus(b)) is not None:
                    return kept
        if method == "__call__" and ufunc.signature is None and ufunc.nout == 1:
            level = top(args)
            if not options:
                return BatchedArray(applied(ufunc, *aligned(args, level)), level)
            return BatchedArray(call(*aligned(args, level), **options), level)
        return each(call, list(args), options)

    def __array_function__(
        self, function: Callable[..., Any], types: object, args: Any, options: Any
    ) -> Any:
        if function in _FACTS:
            return _FACTS[function](*args, **options)
        if function is np.broadcast_to:
            return broadcast_to(*args)
        return each(function, list(args), options)

    def written_over(self, ufunc: np.ufunc, operands: Sequence[Any]) -> Any:
        """A ufunc's result, written over this batch's memory if it is large and owns it (buffer donation)."""
        every = self.every
        if type(self) is BatchedArray and type(every) is np.ndarray and every.size >= 4096:
            given = aligned(operands, self.level)
            if every.base is None and not any(isinstance(a, BatchedArray) for a in given):
                return BatchedArray(applied(ufunc, *given, out=every), self.level)
        return ufunc(*operands)

    def plus(self, other: Any) -> BatchedArray | None:
        """The sum with another batch in a sparse form; None if there is none. Sparse batches override it."""
        return None

    # -- what needs the numbers of one entry -------------------------------------------------------
    def item(self) -> Any:
        """Raises RuntimeError: there is one number for each entry."""
        raise RuntimeError(ITEM)

    __float__ = __int__ = __index__ = __complex__ = item

    def __bool__(self) -> bool:
        from gradcli.engine.core.errors import BatchedBranchError

        raise BatchedBranchError(_CONTROL_FLOW)

    def tolist(self) -> Any:
        """Raises RuntimeError: there are numbers for each entry."""
        raise RuntimeError(NO_STORAGE)

    tobytes = tolist

    def __array__(self, *args: Any, **options: Any) -> Any:
        raise RuntimeError(NO_STORAGE)

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter([self[k] for k in range(len(self))])

    def __hash__(self) -> int:
        return id(self)

    def show(self, value: Callable[[Any], str]) -> str:
        """PyTorch's text of a BatchedTensor; value: prints the array of all entries."""
        text = self.every.show(value) if isinstance(self.every, BatchedArray) else value(self.every)
        open_now = [level for level in levels() if not level.linear or level is self.level]
        number = 1 + (open_now.index(self.level) if self.level in open_now else len(open_now))
        return f"BatchedTensor(lvl={number}, bdim=0, value=\n{textwrap.indent(text, '    ')}\n)"


class Sparse(BatchedArray):
    """A batch stored without its zeros; each entry has the strides of a contiguous array."""

    __slots__ = ()

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides of one contiguous entry, in bytes."""
        return np.empty(self.shape, self.dtype).strides

    @property
    def flags(self) -> Any:
        """Those of one entry."""
        return np.empty(self.shape, self.dtype).flags


class Diagonal(Sparse):
    """A batch whose entry k is zero except at element k: an identity matrix of cotangents or tangents.

    Elementwise primitives keep this form. It exists in linear levels only; what cannot keep it reads
    `every`, the dense form.
    """

    __slots__ = ("_every", "diagonal")

    def __init__(self, diagonal: Array, level: BatchLevel) -> None:
        self.diagonal, self.level = diagonal, level
        self._every: Any = None

    @property
    def every(self) -> Any:
        """All entries, dense."""
        if self._every is None:
            d, n = self.diagonal, self.level.size
            if isinstance(d, BatchedArray):
                self._every = np.eye(n, dtype=d.dtype).reshape((n, *d.shape)) * d
            else:
                made = np.zeros((n, n), d.dtype)
                made.reshape(-1)[:: n + 1] = np.ravel(d)
                self._every = made.reshape((n, *np.shape(d)))
        return self._every

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one entry."""
        return tuple(self.diagonal.shape)

    @property
    def dtype(self) -> Any:
        """The NumPy dtype of all entries."""
        return self.diagonal.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions of one entry."""
        return int(self.diagonal.ndim)

    @property
    def inner(self) -> Any:
        """The diagonal, in the shape of one entry; batched if batches nest."""
        return self.diagonal

    def plus(self, other: Any) -> BatchedArray | None:
        """The sum with another diagonal."""
        both = is_diagonal(self, self.level) and is_diagonal(other, self.level)
        if not both or other.shape != self.shape or other.dtype != self.dtype:
            return None
        return Diagonal(self.diagonal + other.diagonal, self.level)

    def astype(self, dtype: DType, **options: Any) -> BatchedArray:
        """Every entry in another dtype."""
        if self._every is not None:
            return BatchedArray(self._every.astype(dtype, **options), self.level)
        return Diagonal(self.diagonal.astype(dtype, **options), self.level)


def is_diagonal(array: Any, level: BatchLevel | None = None) -> bool:
    """Whether an array is a Diagonal whose dense form has not been made (and perhaps written)."""
    if not isinstance(array, Diagonal) or array._every is not None:
        return False
    return level is None or array.level is level


def common(value: object, level: BatchLevel) -> Any:
    """One entry of an operand that is batched but equal in all entries; any other operand unchanged."""
    if type(value) is BatchedArray and value.level is level and level.size > 1:
        every = value.every
        if isinstance(every, ARRAYS) and every.strides[0] == 0:
            return every[0]
    return value


_FACTS: dict[Any, Callable[..., Any]] = {
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a: a.size,
    np.copyto: lambda to, source: to.__setitem__(..., source),
    np.iscomplexobj: lambda a: a.dtype.kind == "c",
    np.may_share_memory: lambda a, b: False,
    np.shares_memory: lambda a, b: False,
}


_NO_LEVELS: frozenset[BatchLevel] = frozenset()


# -- batches of values --------------------------------------------------------------------------------
def batch_of(value: object) -> frozenset[BatchLevel]:
    """The levels in which a value is batched."""
    found: set[BatchLevel] = set()
    for v in _parts(value):
        if v.__class__ in _UNBATCHED:
            continue
        while isinstance(v, BatchedArray):
            found.add(v.level)
            v = v.inner
    return frozenset(found) if found else _NO_LEVELS


def _parts(value: object) -> list[Any]:
    """The arrays of a value: an array, a tensor, or a list of these."""
    if isinstance(value, (list, tuple)):
        return [p for v in value for p in _parts(v)]
    array = getattr(value, "array", value)
    return [array]


def is_batched(value: Any) -> bool:
    """Whether an array, a tensor, or an item of a list is batched."""
    kind = value.__class__
    if kind in _UNBATCHED:
        return False
    if kind is list or kind is tuple:
        for each in value:
            if each.__class__ not in _UNBATCHED:  # most others are tensors over plain memory
                plain = getattr(each, "array", each).__class__ is np.ndarray
                if not plain and is_batched(each):
                    return True
        return False
    array = getattr(value, "array", value)
    return array.__class__ is not np.ndarray and isinstance(array, BatchedArray)


# Classes of most operands that are neither batched nor tensors.
_UNBATCHED = frozenset([np.ndarray, np.float64, np.float32, type(None), bool, int, float, str])


def top(values: Sequence[Any]) -> BatchLevel:
    """The outermost level of some values."""
    found = [
        p.level
        for v in values
        if v.__class__ not in _UNBATCHED
        for p in _parts(v)
        if isinstance(p, BatchedArray)
    ]
    return found[0] if len(found) == 1 else max(found, key=lambda level: level.number)


def first(array: Any) -> Any:
    """One entry, as an array: for questions about its layout."""
    while isinstance(array, BatchedArray):
        every = array.every
        array = every[0, ...] if every.shape[0] else np.empty(every.shape[1:], every.dtype)
    return array


def resolved(sizes: Sequence[int], count: int) -> tuple[int, ...]:
    """Sizes with -1 replaced; RuntimeError if `count` elements do not fill them."""
    given = tuple(int(n) for n in sizes)
    return infer_shape(given, count) if -1 in given else given


def anywhere(mask: Array) -> bool:
    """Whether a mask is true anywhere in any entry."""
    while isinstance(mask, BatchedArray):
        mask = mask.every
    return bool(laid_out(mask).any())


def broadcast_to(array: Any, shape: Sequence[int]) -> Any:
    """`np.broadcast_to` of one entry's shape; batched arrays too."""
    if isinstance(array, BatchedArray):
        every, sizes = array.every, tuple(shape)
        lead = (1,) * (len(sizes) - array.ndim)
        grown = every.reshape((every.shape[0], *lead, *array.shape))
        return BatchedArray(broadcast_to(grown, (every.shape[0], *sizes)), array.level)
    if prod(shape) == array.size:  # may be written, too
        return array.reshape(tuple(shape))
    return np.broadcast_to(array, tuple(shape))


def moveaxis(array: Array, source: int, target: int) -> Any:
    """As NumPy's, for batched arrays too."""
    order = [d for d in range(array.ndim) if d != source]
    order.insert(target, source)
    return array.transpose(order) if array.ndim > 1 else array


def total(array: Array, axes: tuple[int, ...]) -> Any:
    """The sum over some axes, also of batched arrays; integers are summed in int64."""
    if isinstance(array, BatchedArray):
        return BatchedArray(total(array.every, tuple(a + 1 for a in axes)), array.level)
    return add_reduce(array, axes, np.int64 if array.dtype.kind in "biu" else None)


def aligned(values: Sequence[Any], level: BatchLevel) -> list[Any]:
    """All entries of the operands, with ones behind the batch so that entries of lower rank broadcast."""
    rank = max([getattr(v, "ndim", 0) for v in values])
    found = list(values)
    for i, v in enumerate(values):
        if isinstance(v, BatchedArray) and v.level is level:
            e, ndim = v.every, v.ndim
            found[i] = (
                e if ndim == rank else e.reshape((e.shape[0], *(1,) * (rank - ndim), *v.shape))
            )
    return found


def numbers(array: Any) -> Any:
    """The NumPy array of all entries, all batch dimensions in front."""
    while isinstance(array, BatchedArray):
        array = array.every
    return array


def batched_as(array: Array, like: Array) -> Any:
    """An array of all entries, wrapped in the same batches as `like`: the inverse of `numbers`."""
    return (
        BatchedArray(batched_as(array, like.every), like.level)
        if isinstance(like, BatchedArray)
        else array
    )


def full(value: Any, level: BatchLevel) -> Any:
    """All entries, the batch dimension in front; an array without that batch is broadcast."""
    if isinstance(value, BatchedArray) and value.level is level:
        return value.every
    return broadcast_to(value, (level.size, *value.shape))


def entry(value: object, k: int, level: BatchLevel) -> Any:
    """Entry `k` of an array, or of the arrays in a list; an array without that batch unchanged."""
    if isinstance(value, (list, tuple)):
        return type(value)(entry(v, k, level) for v in value)
    return value.every[k] if isinstance(value, BatchedArray) and value.level is level else value


def stacked(values: Sequence[Any]) -> Any:
    """`np.stack` along a new first dimension; the arrays may be batched."""
    levels = batch_of(list(values))
    if not levels:
        return np.stack([np.asarray(v) for v in values])
    level = max(levels, key=lambda each: each.number)
    parts = [full(v, level) for v in values]
    return BatchedArray(moveaxis(stacked(parts), 0, 1), level)


def each(function: Callable[..., Any], args: list[Any], options: dict[str, Any]) -> Any:
    """Call a function of arrays once for each entry of the outermost batch, and stack the results."""
    level = top(args)
    rows = [function(*(entry(a, k, level) for a in args), **options) for k in range(level.size)]
    if not rows:
        rows = [function(*(zero(a, level) for a in args), **options)]
        return _wrapped(
            rows[0], lambda r: BatchedArray(np.empty((0, *np.shape(r)), r.dtype), level)
        )
    if isinstance(rows[0], (list, tuple)):
        return tuple(BatchedArray(stacked(column), level) for column in zip(*rows, strict=True))
    return BatchedArray(stacked(rows), level)


def zero(value: object, level: BatchLevel) -> Any:
    """Zeros of one entry's shape: they stand in for an entry of an empty batch."""
    if isinstance(value, (list, tuple)):
        return type(value)(zero(v, level) for v in value)
    if isinstance(value, BatchedArray) and value.level is level:
        return np.zeros(value.shape, value.dtype)
    return value


def _wrapped(found: Any, wrap: Callable[[Any], Any]) -> Any:
    return tuple(map(wrap, found)) if isinstance(found, (list, tuple)) else wrap(found)


# -- into a batch and out of it -----------------------------------------------------------------------
def added(array: Array, dim: int, level: BatchLevel) -> Any:
    """Dimension `dim` becomes the level's batch; the kernel of add_batch_dim."""
    if isinstance(array, BatchedArray) and array.level.number > level.number:
        return BatchedArray(added(array.every, dim + 1, level), array.level)
    return BatchedArray(moveaxis(array, dim, 0), level)


def removed(array: Array, dim: int, level: BatchLevel) -> Any:
    """The level's batch becomes dimension `dim`; the kernel of remove_batch_dim."""
    if isinstance(array, BatchedArray) and array.level.number > level.number:
        return BatchedArray(removed(array.every, dim + 1, level), array.level)
    return moveaxis(full(array, level), 0, dim)


def lifted(array: Array, level: BatchLevel) -> Any:
    """An array broadcast to the level's batch, without a copy; the kernel of lift_to_batch."""
    if isinstance(array, BatchedArray) and array.level.number > level.number:
        return BatchedArray(lifted(array.every, level), array.level)
    if isinstance(array, BatchedArray) and array.level is level:
        return array
    return BatchedArray(broadcast_to(array, (level.size, *array.shape)), level)


def summed(array: Array, level: BatchLevel) -> Any:
    """The sum over the level's batch; the kernel of sum_over_batch."""
    if isinstance(array, BatchedArray) and array.level.number > level.number:
        return BatchedArray(summed(array.every, level), array.level)
    if isinstance(array, BatchedArray) and array.level is level:
        return total(array.every, (0,))
    return array * level.size


def zeros_of(array: Any, shape: tuple[int, ...], dtype: Any = None) -> Any:
    """Writable zeros whose entries have this shape, with the batches of `array`."""
    if isinstance(array, BatchedArray):
        return BatchedArray(
            zeros_of(array.every, (array.every.shape[0], *shape), dtype), array.level
        )
    made: Any = np.zeros(shape, array.dtype if dtype is None else dtype)
    return made


def ones_like(a: Any) -> Any:
    """Ones of `a`'s shape and batches. np.ones_like lets an abstract array know that it is constant."""
    if isinstance(a, BatchedArray):
        return BatchedArray(ones_like(a.every), a.level)
    return np.ones(a.shape, a.dtype) if type(a) is np.ndarray else np.ones_like(a)


_FACTS[np.zeros_like] = lambda a, dtype=None: zeros_of(a, a.shape, dtype)
_FACTS[np.ones_like] = ones_like
_FACTS[np.empty_like] = _FACTS[np.zeros_like]


# -- the open levels of this thread -------------------------------------------------------------------
def levels() -> tuple[BatchLevel, ...]:
    """The levels that are open in this thread, the outermost first."""
    return modes.current().levels


@contextmanager
def opened(level: BatchLevel) -> Iterator[BatchLevel]:
    """A context in which a level is open: operators look for batched operands."""
    with modes.changed(levels=(*levels(), level)):
        yield level


# -- random numbers -----------------------------------------------------------------------------------
RANDOM = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
    "'different' randomness flags on vmap or perform the randomness operation out of vmap"
)


def drawing(draw: F) -> F:
    """Decorate a sampler of random numbers (its first argument a shape) to follow `vmap`'s randomness."""

    @functools.wraps(draw)
    def call(shape: Shape, *args: Any, **named: Any) -> Any:
        inside = [level for level in levels() if not level.linear] if modes.unusual else []
        if not inside:
            return draw(shape, *args, **named)
        if any(level.randomness == "error" for level in inside):
            raise RuntimeError(RANDOM)
        own = [level for level in inside if level.randomness == "different"]
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        with modes.changed(levels=()):  # samplers call one another: only the outermost adds batches
            made = draw((*(level.size for level in own), *sizes), *args, **named)
        for level in own:
            made = BatchedArray(made, level)
        return made

    return call  # type: ignore[return-value]


# -- memory -------------------------------------------------------------------------------------------
def strided(array: Array, shape: Shape, dtype: DType, strides: Sequence[int], start: int) -> Any:
    """A view with these strides from byte `start` of an array's memory; one for each entry of a batch."""
    batches: list[BatchedArray] = []
    inner = array
    while isinstance(inner, BatchedArray):
        batches.append(inner)
        inner = inner.every
    lead = inner.ndim - array.ndim
    if batches and all(shape) and inner.size:
        _check_inside(inner, lead, shape, dtype, strides, start)
    sizes = (*inner.shape[:lead], *shape)
    steps = (*inner.strides[:lead], *strides)
    if all(inner.shape[:lead]):
        made: Any = np.ndarray(sizes, dtype, buffer_of(inner), start, steps)
    else:  # without elements there is no memory to view
        made = np.ndarray(sizes, dtype)
    for b in reversed(batches):
        made = BatchedArray(made, b.level)
    return made


def _check_inside(
    inner: Any, lead: int, shape: Shape, dtype: DType, strides: Sequence[int], start: int
) -> None:
    """RuntimeError, in PyTorch's words, if a view of one entry would reach another entry's memory."""
    item = dtype.itemsize
    begin = address(inner) - address(buffer_of(inner))
    entry = list(zip(inner.shape[lead:], inner.strides[lead:], strict=True))
    end = begin + sum((n - 1) * s for n, s in entry) + inner.dtype.itemsize
    last = start + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + item
    if not begin <= start <= last <= end and all(s >= 0 for _, s in entry):
        steps, first, needs = [s // item for s in strides], start // item, last // item
        raise RuntimeError(
            f"result = tensor.as_strided({list(shape)}, {steps}, {first}) can access memory outside of "
            f"`tensor`. `result` can access some memory in range [{first}, {needs}], but `tensor` can "
            f"only access some memory in range [{begin // item}, {end // item}]. This is not supported "
            "inside of vmap, please try to rewrite the `as_strided` call as a sequence of PyTorch view "
            "operations"
        )
