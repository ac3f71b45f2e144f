"""NumPy's arrays whose elements are differentiated: what a function of arrays gets for its arguments.

A function that is given NumPy's arrays is run on tensors, and must not notice: `x.std()` of an array
divides by n, `x.max(0)` is an array, `x.sort()` sorts in place. So each tensor is held by an object that
means what the array would mean. What arrays lack (`x.unsqueeze(0)`, `x.sum(dim=0)`) means what it means of
tensors, with results that are arrays again. A result that depends on no variable is an array of NumPy's.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np

from gradcli.engine.core import modes, pytrees
from gradcli.engine.core import tensor as tensors
from gradcli.engine.core.errors import ArgumentWriteError, LeafWriteError, NoNumpyError
from gradcli.engine.core.tensor import Tensor, as_operand, wrap
from gradcli.engine.system import dtypes
from gradcli.engine.system.given_arrays import array_of

# What an array is computed with, and its arguments: arrays, numbers, lists of these, indices.
Operand: TypeAlias = Any
_OBJECTS = 1000  # elements of an array of objects at most
_NUMBERS = frozenset([int, float, complex, bool])


class _Array(np.ndarray):
    """What `isinstance` sees: there are no objects of it."""


class _Double(np.float64):
    """The same of an array without dimensions, which to NumPy is a number."""


# -- into tensors and back --------------------------------------------------------------------------
def followed(value: Operand) -> Any:
    """Tensors, nested as they are, as arrays: NumPy's own where nothing is followed."""
    if type(value) is Tensor:
        return _followed(value)
    leaves, spec = pytrees.flatten(value)
    return pytrees.unflatten([_followed(v) for v in leaves], spec)


def arguments(value: Operand) -> Any:
    """Tensors, nested as they are, as arguments of a function of arrays: constants are held as well.

    So they are taken by functions of tensors, as they were.
    """
    leaves, spec = pytrees.flatten(value)
    return pytrees.unflatten([_of(v) if isinstance(v, Tensor) else v for v in leaves], spec)


def lowered(values: Operand) -> Any:
    """Arguments of a function of tensors: tensors in place of followed arrays, and of NumPy's beside them."""
    leaves, spec = pytrees.flatten(unfollowed(values))
    plain = np.ndarray, np.floating
    return pytrees.unflatten([wrap(v) if isinstance(v, plain) else v for v in leaves], spec)


def _followed(value: Operand) -> Any:
    if not isinstance(value, Tensor):
        return value
    if _is_constant(value):
        array: Any = value.array
        return array if array.ndim else array[()]
    return _of(value)


def _is_constant(tensor: Tensor) -> bool:
    """Whether a tensor depends on no variable, and has numbers."""
    if tensor.node is not None or (tensor.tangents and tensor._tangents_at_work()):
        return False
    return type(tensor.array) is np.ndarray or isinstance(tensor.array, np.generic)


def _of(tensor: Tensor) -> Any:
    return FollowedArray(tensor) if tensor.array.ndim else FollowedNumber(tensor)


def unfollowed(value: Operand) -> Any:
    """The tensors of arrays, nested as they are; an array of such numbers as a tensor."""
    kind = type(value)
    if kind is FollowedArray or kind is FollowedNumber:
        return value.tensor
    if kind is np.ndarray and value.dtype == object and holds_followed(value.ravel()):
        return _stacked(value)
    if isinstance(value, (list, tuple, dict)) or pytrees.is_object(value):
        leaves, spec = pytrees.flatten(value)
        return pytrees.unflatten([unfollowed(v) for v in leaves], spec)
    return value


def holds_followed(values: Operand) -> bool:
    """Whether a followed array is among values, nested as they like."""
    for value in values.values() if isinstance(values, dict) else values:
        kind = type(value)
        if kind is FollowedArray or kind is FollowedNumber:
            return True
        inside: Any = ()
        if kind is np.ndarray:
            inside = value.ravel() if value.dtype == object else ()
        elif kind in (list, tuple, dict):
            inside = value
        elif kind not in _NUMBERS and pytrees.is_object(value):
            inside = vars(value)
        if len(inside) and holds_followed(inside):
            return True
    return False


def _stacked(array: Operand) -> Tensor:
    """An array of objects, as `np.array([x[0], 1.0])` makes it."""
    items = [v.tensor if type(v) is FollowedNumber else wrap(np.asarray(v)[()]) for v in array.flat]
    found: Tensor = function_of(np.stack)(items)
    return found.reshape(array.shape)


# -- what NumPy asks for ----------------------------------------------------------------------------
@functools.cache
def function_of(function: Any) -> Any:
    """The function of tensors for one of NumPy's; None if there is none."""
    found = tensors.outside(function) if tensors.outside is not None else None
    if found is None:
        found = tensors.NUMPY.get(function)
    if found is None and tensors.meaning is not None:
        found = tensors.meaning(function)
    return found


# What gives no numbers to differentiate: NumPy answers it of the numbers there are.
_DISCRETE = frozenset(
    [
        *(np.nonzero, np.flatnonzero, np.argwhere, np.count_nonzero, np.argmax, np.argmin),
        *(np.argsort, np.argpartition, np.searchsorted, np.digitize, np.any, np.all),
        *(np.isclose, np.allclose, np.array_equal, np.lexsort, np.shape, np.ndim, np.size),
        *(
            np.floor_divide,
            np.iscomplexobj,
            np.isrealobj,
            np.result_type,
        ),
        *(np.isnan, np.isfinite, np.isinf, np.signbit, np.equal, np.not_equal, np.less),
        *(np.less_equal, np.greater, np.greater_equal, np.logical_and, np.logical_or),
        *(np.logical_not, np.logical_xor, np.may_share_memory, np.shares_memory, np.can_cast),
        *(np.nanargmax, np.nanargmin, np.isposinf, np.isneginf, np.array_equiv, np.array_repr),
        *(np.array_str, np.array2string, np.iscomplex, np.isreal, np.isin),
    ]
)


def _numbers(value: Operand) -> Any:
    """The values with NumPy's arrays in place of what is followed. Raises _NoNumbers where there are none."""
    kind = type(value)
    if kind is FollowedArray or kind is FollowedNumber:
        array = value.tensor.array
        if type(array) is np.ndarray or isinstance(array, np.generic):
            return array
        raise _NoNumbers
    if isinstance(value, (list, tuple)):
        return type(value)(map(_numbers, value))
    return {n: _numbers(v) for n, v in value.items()} if isinstance(value, dict) else value


class _NoNumbers(Exception):
    """An array of a batch or a trace."""


def _called(function: Any, args: Operand, kwargs: Operand) -> Any:
    """A function of NumPy's on followed arrays."""
    if function in _DISCRETE:
        try:
            return function(*_numbers(args), **_numbers(kwargs))
        except _NoNumbers:
            pass
    found = function_of(function)
    if found is not None:
        try:
            if len(args) == 1 and not kwargs:
                made = found(unfollowed(args[0]))
            else:
                own = unfollowed(args)
                if (
                    function in tensors.NUMPY
                ):  # of tensors alone: the matrix of np.einsum("ij,j", A, x)
                    own = map(as_operand, own)
                made = found(*own, **unfollowed(kwargs))
            for held in args:  # np.asarray(p) is p: one array, whoever writes into it
                if isinstance(held, FollowedArray) and held.tensor is made:
                    return held
            return _of(made) if function in _MADE_LIKE else followed(made)
        except TypeError:
            if not hasattr(function, "_implementation") or function in _OF_METHODS:
                raise  # else with arguments that only NumPy's own code knows
    if not hasattr(function, "_implementation") or function in _OF_METHODS:
        raise NoNumpyError(function.__name__)  # whose own code would call the method again
    try:
        return function._implementation(*args, **kwargs)
    except (NoNumpyError, TypeError) as error:
        if isinstance(error, NoNumpyError) and error.function:
            raise
        name = f"{function.__module__}.{function.__name__}".removeprefix("numpy.")
        raise NoNumpyError(name) from error


_METHODS = (
    "all any argmax argmin argpartition argsort choose clip cumprod cumsum diagonal dot max mean "
    "min nonzero prod repeat round searchsorted squeeze std sum swapaxes take trace var"
).split()
_OF_METHODS = frozenset(
    [np.reshape, np.ravel, np.compress, np.transpose, *(getattr(np, n) for n in _METHODS)]
)
_MADE_LIKE = frozenset([np.zeros_like, np.ones_like, np.empty_like, np.full_like])

_OPERATORS: dict[Any, Callable[..., Any]] = {
    **{np.add: operator.add, np.subtract: operator.sub, np.multiply: operator.mul},
    **{np.divide: operator.truediv, np.power: operator.pow, np.matmul: operator.matmul},
    **{np.floor_divide: operator.floordiv, np.remainder: operator.mod},
    **{np.negative: operator.neg, np.absolute: operator.abs, np.positive: operator.pos},
}
_REDUCTIONS = {np.add: np.sum, np.multiply: np.prod, np.maximum: np.max, np.minimum: np.min}
_SCANS = {np.add: np.cumsum, np.multiply: np.cumprod}


def _operand(value: Operand) -> Any:
    kind = type(value)
    if kind is FollowedArray or kind is FollowedNumber:
        return value.tensor
    if kind in _NUMBERS or isinstance(value, Tensor):
        return value
    if kind is np.ndarray and value.dtype == object:
        return _stacked(value)
    if isinstance(value, (list, tuple)):
        return _operand(np.array(value))
    array = array_of(value)
    return NotImplemented if array is None else wrap(array if array.ndim else array[()])


def _operands(ufunc: Any, values: Operand) -> list[Any]:
    """The operands as tensors of the dtype in which NumPy computes, and as numbers of Python's."""
    found = [_operand(v) for v in values]
    own = [v.array.dtype for v in found if isinstance(v, Tensor)]
    dtype = own[0] if len(own) == 1 else np.result_type(*own)
    rest = [v for v in found if not isinstance(v, Tensor) and v is not NotImplemented]
    if dtype.kind in "biu" and (
        ufunc is np.divide or any(type(v) in (float, complex) for v in rest)
    ):
        dtype = np.dtype(np.float64)
    if all(d == dtype for d in own):
        return found
    return [
        v.to(dtypes.of(dtype)) if isinstance(v, Tensor) and v.array.dtype != dtype else v
        for v in found
    ]


def _of_ufunc(ufunc: Any, *values: Operand) -> Any:
    """A ufunc of followed arrays and of what NumPy takes beside them."""
    if ufunc in _DISCRETE:
        try:
            return ufunc(*_numbers(values))
        except _NoNumbers:
            pass
    if ufunc is np.divmod:
        return tuple([_of_ufunc(part, *values) for part in (np.floor_divide, np.remainder)])
    operands = _operands(ufunc, values)
    if any(v is NotImplemented for v in operands):
        return NotImplemented
    call = _OPERATORS.get(ufunc) or function_of(ufunc)
    if call is None:
        raise NoNumpyError(_name_of(ufunc))
    return followed(call(*operands))


def _name_of(ufunc: Any) -> str:
    name = ufunc.__name__
    if name.endswith("(vectorized)"):
        return "frompyfunc"
    module = getattr(ufunc, "__module__", None) or "scipy.special"
    return f"{module}.{name}".removeprefix("numpy.")


def _refuse(words: Mapping[str, Any], what: str) -> None:
    for name, value in words.items():
        if value is not None:
            raise TypeError(f"{what} of what is differentiated takes no {name}=")


# -- the arrays -------------------------------------------------------------------------------------
class _Followed:
    """What arrays and numbers share."""

    __slots__ = ("tensor",)
    __array_priority__ = 2000
    tensor: Tensor
    # Operators are set below, by the ufuncs that they are.
    __floordiv__: Callable[..., Any]
    __mod__: Callable[..., Any]
    __getitem__: Callable[..., Any]

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    def __array_ufunc__(self, ufunc: Any, method: str, *values: Operand, **words: Any) -> Any:
        if method == "__call__":
            dtype = words.pop("dtype", None)
            _refuse(words, f"np.{ufunc.__name__}")
            found = _of_ufunc(ufunc, *values)
            return found if dtype is None else found.astype(dtype)
        if method == "reduce" and ufunc in _REDUCTIONS:
            return _called(_REDUCTIONS[ufunc], values[:1], {"axis": 0} | _named(values[1:]) | words)
        if method == "accumulate" and ufunc in _SCANS:
            return _called(_SCANS[ufunc], values[:1], {"axis": 0} | _named(values[1:]) | words)
        if method == "outer":
            a, b = values
            return _of_ufunc(ufunc, np.reshape(a, np.shape(a) + (1,) * np.ndim(b)), b)
        raise NoNumpyError(f"{ufunc.__name__}.{method}")

    def __array_function__(self, function: Any, types: Any, args: Operand, kwargs: Operand) -> Any:
        return _called(function, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        """What arrays have not, as it is of tensors."""
        if name.startswith("__") or hasattr(np.ndarray, name):
            raise AttributeError(
                f"an array that is differentiated has no attribute {name!r}", name=name, obj=self
            )
        return self._as_of_tensors(name)

    def _as_of_tensors(self, name: str) -> Any:
        found = getattr(self.tensor, name)
        if not callable(found):
            return followed(found)

        def method(*args: Operand, **words: Any) -> Any:
            return followed(found(*unfollowed(args), **unfollowed(words)))

        return method

    # -- attributes
    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.shape)

    @property
    def ndim(self) -> int:
        return self.tensor.ndim

    @property
    def size(self) -> int:
        return self.tensor.numel()

    @property
    def dtype(self) -> Any:
        return self.tensor.array.dtype

    @property
    def itemsize(self) -> int:
        return self.tensor.itemsize

    @property
    def nbytes(self) -> int:
        return self.tensor.nbytes

    @property
    def T(self) -> Any:
        return self.transpose()

    @property
    def mT(self) -> Any:
        return self.swapaxes(-1, -2)

    @property
    def flat(self) -> Any:
        return self.ravel()

    @property
    def real(self) -> Any:
        return followed(self.tensor.real) if self.tensor.is_complex() else self

    @property
    def imag(self) -> Any:
        if self.tensor.is_complex():
            return followed(self.tensor.imag)
        return np.zeros(self.shape, self.dtype)[()]

    # -- methods that are no function of the same name
    def copy(self, order: str = "C") -> Any:
        return _of(self.tensor.clone())

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()

    def astype(self, dtype: Any, *args: Operand, copy: bool = True, **words: Any) -> Any:
        wanted = np.dtype(dtype).newbyteorder("=")
        if wanted == self.dtype:
            return self.copy() if copy else self
        if wanted.kind not in "fc" and isinstance(self.tensor.array, (np.ndarray, np.generic)):
            return np.asarray(self.tensor.array).astype(wanted)[()]
        return followed(self.tensor.to(dtypes.of(wanted)))

    def reshape(self, *shape: Operand, order: str = "C", copy: Any = None) -> Any:
        sizes = (
            tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        )
        return _called(np.reshape, (self, sizes), {"order": order})

    def ravel(self, order: str = "C") -> Any:
        return self.reshape(-1, order=order)

    def flatten(self, order: str = "C") -> Any:
        return self.ravel(order).copy()

    def transpose(self, *axes: Operand) -> Any:
        one = len(axes) == 1 and not isinstance(axes[0], int)
        return _called(np.transpose, (self, (axes[0] if one else axes) or None), {})

    def conj(self) -> Any:
        return followed(self.tensor.conj())

    conjugate = conj

    def compress(self, condition: Operand, axis: int | None = None) -> Any:
        return _called(np.compress, (condition, self, axis), {})

    def __divmod__(self, other: Operand) -> Any:
        return self // other, self % other

    def item(self, *place: Operand) -> Any:
        if place:
            found = (self if len(place) > 1 else self.ravel())[place]
        else:
            found = self
        self._leaves("item")
        one = unfollowed(found)
        return getattr(one, "array", one).item()

    def tolist(self) -> Any:
        self._leaves("tolist")
        return self.tensor.tolist()

    # -- Python's numbers
    def _leaves(self, how: str) -> None:
        """Note that numbers are taken, by a method that is called from two frames above."""
        if self.tensor.node is not None or self.tensor._tangents_at_work():
            modes.note_left(how, 2)

    def _number(self) -> Any:
        if self.tensor.numel() != 1:
            raise TypeError("only 0-dimensional arrays can be converted to Python scalars")
        if self.tensor.node is not None or self.tensor._tangents_at_work():
            modes.note_left("float", 2)
        return self.tensor.array.item()

    def __float__(self) -> float:
        return float(self._number())

    def __int__(self) -> int:
        return int(self._number())

    def __complex__(self) -> complex:
        return complex(self._number())

    def __index__(self) -> int:
        return self.tensor.__index__()

    def __bool__(self) -> bool:
        if self.tensor.numel() != 1:
            raise ValueError(
                "The truth value of an array with more than one element is ambiguous. "
                "Use a.any() or a.all()"
            )
        return bool(self.tensor)

    def __repr__(self) -> str:
        return repr(np.asarray(self.tensor.array)) if _is_plain(self) else repr(self.tensor)

    def __str__(self) -> str:
        return str(self.tensor.array) if _is_plain(self) else str(self.tensor)

    def __format__(self, spec: str) -> str:
        return format(self.tensor.array if _is_plain(self) else self.tensor, spec)


def _is_plain(value: _Followed) -> bool:
    array = value.tensor.array
    return type(array) is np.ndarray or isinstance(array, np.generic)


def _named(values: tuple[Any, ...]) -> dict[str, Any]:
    """The arguments of `ufunc.reduce` behind the array, by name."""
    return dict(zip(("axis", "dtype", "out", "keepdims"), values, strict=False))


class FollowedNumber(_Followed):
    """An array without dimensions, which to NumPy is a number without elements."""

    __slots__ = ()
    __class__ = property(lambda self: _Double)

    def __hash__(self) -> int:
        return hash(self.tensor.array.item())

    def __round__(self, ndigits: int | None = None) -> Any:
        return np.round(self, ndigits) if ndigits is not None else round(self._number())

    __iter__ = None

    def __getitem__(self, key: Operand) -> Any:
        return self if key == () else followed(self.tensor[key])

    def is_integer(self) -> bool:
        return bool(np.float64(self.tensor.array).is_integer())


class FollowedArray(_Followed):
    """An array of one dimension or more."""

    __slots__ = ()
    __class__ = property(lambda self: _Array)
    __hash__ = None  # type: ignore[assignment]

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        """An array of objects, as `np.asarray(x)` asks for it. Raises NoNumpyError for numbers, and many."""
        if _is_constant(self.tensor):
            return np.array(self.tensor.array, dtype)
        if dtype not in (None, np.dtype(object)) or self.size > _OBJECTS:
            raise NoNumpyError
        made = np.empty(self.size, object)
        made[:] = [_of(t) for t in self.tensor.reshape(-1)]
        return made.reshape(self.shape)

    def __len__(self) -> int:
        return len(self.tensor)

    def __iter__(self) -> Iterator[Any]:
        return iter([_of(t) for t in self.tensor])

    def __contains__(self, value: Operand) -> bool:
        return bool(np.any(self == value))

    def __getitem__(self, key: Operand) -> Any:
        if (forwards := _turned(key, self.shape)) is not None:
            parts, turned = forwards
            return followed(function_of(np.flip)(self.tensor[parts], turned))
        at = _key(key, self.shape)
        return followed(self.tensor[at])

    def __setitem__(self, key: Operand, value: Operand) -> None:
        if (last := _last_writes(key, self.shape)) is not None:
            key, kept, shape = last
            value = np.broadcast_to(value, shape).reshape(-1)[kept]
        with _written():
            self.tensor[_key(key, self.shape)] = _operand(value)

    def sort(
        self, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None
    ) -> None:
        """Sort in place, as arrays do."""
        with _written():
            self.tensor.copy_(function_of(np.sort)(self.tensor, axis))

    def fill(self, value: Operand) -> None:
        """Write a value everywhere, in place."""
        with _written():
            self.tensor.copy_(function_of(np.full_like)(self.tensor, _operand(value)))


class _written:
    """A write, which an argument of the function's refuses."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, LeafWriteError):
            raise ArgumentWriteError(str(error)) from error


def _last_writes(key: Operand, shape: tuple[int, ...]) -> tuple[Any, Any, tuple[int, ...]] | None:
    """(the key of the last write into each element, which of the values these are, the shape of all) where a
    key names elements twice, `z[[0, 0, 1]] = y`; None elsewhere. An array keeps what is written last."""
    parts = key if type(key) is tuple else (key,)
    if not any(type(p) is list or (type(p) is np.ndarray and p.dtype.kind in "iu") for p in parts):
        return None
    if holds_followed(parts):
        return None
    places = _numbers_of(key, shape)
    flat = places.reshape(-1)
    own, kept = np.unique(flat[::-1], return_index=True)
    if own.size == flat.size:
        return None
    return np.unravel_index(own, shape), flat.size - 1 - kept, places.shape


_BASIC = frozenset([int, slice, type(None), type(Ellipsis)])


def _turned(key: Operand, shape: tuple[int, ...]) -> tuple[Any, tuple[int, ...]] | None:
    """Slices that go backwards as (the same forwards, the axes to flip); None where there is none."""
    parts = key if type(key) is tuple else (key,)
    if not any(type(p) is slice and type(p.step) is int and p.step < 0 for p in parts):
        return None
    if not {type(p) for p in parts} <= _BASIC:
        return None
    given = sum(p is not None and p is not Ellipsis for p in parts)
    found: list[Any] = []
    flipped: list[int] = []
    axis = out = 0  # of the array, and of the result
    for part in parts:
        if part is Ellipsis:
            axis, out = axis + len(shape) - given, out + len(shape) - given
        elif type(part) is slice and part.step is not None and part.step < 0:
            places = range(*part.indices(shape[axis]))
            last = places[0] + 1 if places else 0
            part = slice(places[-1] if places else 0, last, -part.step)
            flipped.append(out)
        found.append(part)
        axis += part is not None and part is not Ellipsis
        out += type(part) is slice or part is None
    return tuple(found), tuple(flipped)


def _key(key: Operand, shape: tuple[int, ...]) -> Any:
    """An index as tensors take it: with NumPy's meaning where it differs."""
    if type(key) is int or (type(key) is slice and key.step is None):
        return key
    parts = key if type(key) is tuple else (key,)
    parts = tuple([operator.index(p) if isinstance(p, np.integer) else p for p in parts])
    kinds = {type(p) for p in parts}
    backwards = any(type(p) is slice and p.step is not None and p.step < 0 for p in parts)
    if kinds <= _BASIC and not backwards:
        return parts if type(key) is tuple else parts[0]
    if holds_followed(parts):
        try:
            parts = tuple([_numbers(p) for p in parts])
        except _NoNumbers:
            found = unfollowed(parts)
            return found if type(key) is tuple else found[0]
    parts = tuple([np.asarray(p.array) if isinstance(p, Tensor) else p for p in parts])
    alike = all(type(p) not in _BASIC for p in parts) or (int not in kinds and not backwards)
    if alike and sum(type(p) not in _BASIC for p in parts) <= 1:
        found = tuple([p if type(p) in _BASIC else _places(p) for p in parts])
        return found if type(key) is tuple else found[0]
    places = _numbers_of(parts, shape)
    return tuple([wrap(np.asarray(k)) for k in np.unravel_index(places, shape)])


def _numbers_of(key: Operand, shape: tuple[int, ...]) -> Any:
    """The numbers of the elements that a key names, as NumPy finds them."""
    return np.arange(math.prod(shape)).reshape(shape)[key]


def _places(part: Any) -> Tensor:
    array = np.asarray(part)
    return wrap(array if array.size else array.astype(int))


# -- methods that are functions of NumPy's ----------------------------------------------------------
@functools.cache
def _words(function: Any) -> frozenset[str]:
    try:
        return frozenset(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # of a builtin
        return frozenset()


def _method(name: str) -> Callable[..., Any]:
    function = getattr(np, name)

    def method(self: _Followed, *args: Operand, **words: Any) -> Any:
        if words and not _words(function).issuperset(words):
            return self._as_of_tensors(name)(*args, **words)  # x.sum(dim=0)
        return _called(function, (self, *args), words)

    method.__name__ = name
    return method


for _name in _METHODS:
    setattr(_Followed, _name, _method(_name))


def _operator(ufunc: Any, name: str) -> None:
    call = _OPERATORS.get(ufunc) if ufunc not in _DISCRETE else None

    def forwards(self: Operand, other: Operand) -> Any:
        if call is not None and self.tensor.array.dtype.kind in "fc":
            kind = type(other)
            if kind is int or kind is float:
                return _followed(call(self.tensor, other))
            held = kind is FollowedArray or kind is FollowedNumber
            if held and self.tensor.array.dtype == other.tensor.array.dtype:
                return _followed(call(self.tensor, other.tensor))
        return _of_ufunc(ufunc, self, other)

    def backwards(self: Operand, other: Operand) -> Any:
        number = type(other) is int or type(other) is float
        if number and call is not None and self.tensor.array.dtype.kind in "fc":
            return _followed(call(other, self.tensor))
        return _of_ufunc(ufunc, other, self)

    def inplace(self: Operand, other: Operand) -> Any:
        alone = _stands_alone(self.tensor)
        own = self if alone else _of(self.tensor.clone())  # what the rule keeps is not written
        value = unfollowed(_of_ufunc(ufunc, own, other))
        if alone and isinstance(value, Tensor) and _is_like(value, self.tensor):
            self.tensor = value
            return self
        with _written():
            self.tensor.copy_(value)
        return self

    setattr(_Followed, f"__{name}__", forwards)
    if ufunc in _REFLECTED:
        setattr(_Followed, f"__r{name}__", backwards)
        setattr(FollowedArray, f"__i{name}__", inplace)


def _stands_alone(tensor: Tensor) -> bool:
    """Whether an array may hold another tensor after `p /= p.sum()`: it is no argument, and no view shows it.

    A write over the numbers of `p = exp(z)` would take what the gradient of exp needs, which a function of
    arrays cannot know.
    """
    shown = tensor.base is not None or (tensor.views is not None and bool(tensor.views.alive()))
    return tensor.node is not None and not shown


def _is_like(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and a.dtype is b.dtype


_REFLECTED: dict[Any, str] = {
    **{np.add: "add", np.subtract: "sub", np.multiply: "mul", np.divide: "truediv"},
    **{np.floor_divide: "floordiv", np.remainder: "mod", np.power: "pow", np.matmul: "matmul"},
    **{np.bitwise_and: "and", np.bitwise_or: "or", np.bitwise_xor: "xor"},
}
for _ufunc, _name in {
    **_REFLECTED,
    **{np.less: "lt", np.less_equal: "le", np.greater: "gt", np.greater_equal: "ge"},
    **{np.equal: "eq", np.not_equal: "ne"},
}.items():
    _operator(_ufunc, _name)
for _ufunc, _name in {
    np.negative: "neg",
    np.absolute: "abs",
    np.invert: "invert",
    np.positive: "pos",
}.items():
    setattr(_Followed, f"__{_name}__", lambda self, _u=_ufunc: _of_ufunc(_u, self))


tensors.arrays.holds = holds_followed
tensors.arrays.into, tensors.arrays.back = lowered, followed

__all__ = [
    "FollowedArray",
    "FollowedNumber",
    "arguments",
    "followed",
    "function_of",
    "holds_followed",
    "unfollowed",
]
