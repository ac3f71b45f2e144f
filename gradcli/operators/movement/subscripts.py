"""`x[...]` and `x[...] = v`: indices decomposed into selects, slices and one index, as PyTorch does.

Integers select, slices slice, None adds a dim; what is left (masks, lists, tensors) is collected by dim
for one `index` or `index_put_`.
"""

from __future__ import annotations

import warnings
from operator import index as to_int
from typing import Any

import numpy as np

from gradcli.engine.core import modes
from gradcli.engine.core.batched_arrays import BatchedArray
from gradcli.engine.core.declaration import Array, Number
from gradcli.engine.core.modes import users_level
from gradcli.engine.core.tensor import Tensor, track_view, wrap
from gradcli.engine.core.views import bump, is_plain, same_elements
from gradcli.engine.system import dtypes
from gradcli.engine.system.array_memory import ARRAYS
from gradcli.engine.system.dtypes import tensor_name
from gradcli.operators.movement import reshaping

_SCALAR = (
    "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to "
    "convert a 0-dim tensor to a number"
)
_SEQUENCE = (
    "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in "
    "pytorch 2.9; use x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as "
    "tensor index, x[torch.tensor(seq)], which will result either in an error or a different result"
)


def getitem(input: Tensor, key: Any) -> Any:
    """`input[key]`; IndexError and TypeError in PyTorch's words for what is no index."""
    kind = type(key)
    if kind in _SIMPLE and is_plain(input) and (part := _part(input.array, key)) is not None:
        return track_view(wrap(part), input, False, modes.local.state)
    if kind is Tensor and _picks(key, input):
        from gradcli.operators.movement.indexing import index_p

        if is_plain(input):
            return wrap(index_p.kernel(input.array, [key.array]))
        return index_p(input, [key])
    if kind is int:
        return _select(input, key, 0, 0)
    if kind is slice:
        return _slice(input, key, 0, keep=True)
    if key is None:
        return reshaping.unsqueeze(input, 0)
    if key is Ellipsis:
        return reshaping.alias(input)
    sliced, indices = _basic(input, _as_tuple(key))
    if not indices:
        return reshaping.alias(sliced) if sliced is input else sliced
    from gradcli.operators.movement.indexing import index_p

    return index_p(sliced, indices)


def setitem(input: Tensor, key: Any, value: Tensor | Number) -> None:
    """`input[key] = value`."""
    from gradcli.operators.movement import inplace_writes

    if not isinstance(value, (Tensor, *_NUMBERS, np.generic)):
        text = tensor_name(input)
        raise TypeError(f"can't assign a {type(value).__name__} to a torch.{text}")
    if key is False:
        return
    kind = type(key)
    place = _part(input.array, key) if kind in _SIMPLE and is_plain(input) else None
    if place is not None and _fits(value, place):
        place[...] = value.array if type(value) is Tensor else value
        bump(input)
        return
    if kind is Tensor and type(value) is not Tensor and _written(input, key, value):
        return
    if not isinstance(value, Tensor):
        value = _constant(value, input)
    indices: list[Any] = []
    part: Any = input
    if kind is int:
        part = _select(input, key, 0, 0)
    elif kind is slice:
        part = _slice(input, key, 0, keep=not input.ndim)
    elif key is None or key is True:
        part = reshaping.unsqueeze(input, 0)
    elif key is Ellipsis:
        pass
    elif kind is Tensor and _picks(key, input):
        indices = [key]
    else:
        part, indices = _basic(input, _as_tuple(key))
    if not indices:
        _copy_to(part, value)
        return
    if value.ndim and value.shape[0] == 1:
        value = _without_leading_ones(value)
    inplace_writes.put_in_place(part, indices, value)


_NUMBERS = (bool, int, float, complex)


def _picks(key: Tensor, input: Tensor) -> bool:
    """Whether a key is positions in memory, of a tensor that has any."""
    array = key.array
    positions = type(array) is np.ndarray and array.ndim and array.dtype.kind == "i"
    return bool(positions and type(input) is Tensor and input.array.ndim)


def _written(input: Tensor, key: Tensor, value: Any) -> bool:
    """Write a number to positions at once; False, with nothing done, where steps must be told."""
    if not (_picks(key, input) and is_plain(input) and _fits(value, input.array)):
        return False
    if np.may_share_memory(input.array, key.array):
        return False
    try:
        input.array[key.array] = value
    except IndexError:
        return False
    bump(input)
    return True


_SIMPLE = frozenset([int, slice, tuple, Tensor])
_IN_MEMORY = frozenset([np.ndarray, np.int64])
_BOUNDS = frozenset([int, type(None)])


def _part(array: Array, key: Any) -> Any:
    """The view that integers and slices give of an array in one step; None where steps must be told."""
    keys = list(key) if type(key) is tuple else [key]
    for at, k in enumerate(keys):
        kind = type(k)
        if kind is Tensor and type(k.array) in _IN_MEMORY and not k.array.ndim:
            if k.array.dtype.kind != "i":
                return None
            keys[at] = int(k.array)
        elif kind is slice:
            if not {type(k.start), type(k.stop), type(k.step)} <= _BOUNDS or (k.step or 1) < 0:
                return None
        elif kind is not int:
            return None
    try:
        found = array[(*keys, ...)]
    except (IndexError, ValueError, OverflowError):
        return None
    return found if found.size else None  # PyTorch and NumPy differ in where nothing lies


def _fits(value: Any, place: Array) -> bool:
    """Whether a value can be written as it is: a number, or a tensor without history in memory of its own."""
    dtype = place.dtype
    if type(value) is Tensor:
        array = value.array
        if not isinstance(array, ARRAYS) or array.dtype is not dtype or value.node is not None:
            return False
        if value.inference or value.tangents or (array.shape and array.shape != place.shape):
            return False
        shared = place.shape and np.may_share_memory(array, place)
        return not shared or same_elements(array, place)
    least = {float: -1e38, int: -(2**53)}.get(type(value))
    kinds = "fdl" if type(value) is int else "fd"
    return least is not None and dtype.char in kinds and least < value < -least


def _constant(value: Number, like: Tensor) -> Tensor:
    """A number as PyTorch assigns it: cast to the tensor's dtype at once."""
    _check_long(value)
    kind = like.array.dtype
    if kind.itemsize == 2 and kind.kind == "f":  # beyond its largest number, infinite
        return wrap(np.asarray(dtypes.constant(dtypes.checked(value, np.dtype(np.float64)), kind)))
    return wrap(np.asarray(dtypes.checked(value, kind)))


def _check_long(value: Number) -> None:
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError("Overflow when unpacking long long")


def _without_leading_ones(value: Tensor) -> Tensor:
    """The value without its leading dims of size 1."""
    shape = tuple(value.shape)
    start = next((i for i, n in enumerate(shape) if n != 1), len(shape))
    return reshaping.view_size(value, shape[start:])


def _copy_to(part: Tensor, value: Tensor) -> None:
    from gradcli.operators.movement.inplace_writes import copy_, fill_

    shape = tuple(part.shape)
    if tuple(value.shape) == shape:
        copy_(part, value)
    elif not value.ndim:
        fill_(part, value)
    else:
        value = _without_leading_ones(value)
        copy_(part, value if tuple(value.shape) == shape else reshaping.expand_size(value, shape))


# -- the decomposition ----------------------------------------------------------------------------
def _as_tuple(key: Any) -> tuple[Any, ...]:
    if type(key) is tuple:
        return key
    if isinstance(key, (list, str)) and len(key) < 32:
        parts = (Tensor, list, tuple, slice, str)
        if any(k is None or k is Ellipsis or isinstance(k, parts) for k in key):
            warnings.warn(_SEQUENCE, UserWarning, stacklevel=users_level())
            return tuple(key)
    if isinstance(key, tuple):
        return tuple(key)
    return (key,)


def _takes(key: Any) -> int:
    """How many dims of the tensor an index uses up."""
    if key is None or key is Ellipsis or key is True or key is False:
        return 0
    if (isinstance(key, (Tensor, np.ndarray)) and _kind(key) in "b") or _is_bytes(key):
        return int(key.ndim)
    return 1


def _kind(key: Any) -> str:
    return str(key.array.dtype.kind if isinstance(key, Tensor) else key.dtype.kind)


def _is_bytes(key: Any) -> bool:
    return isinstance(key, Tensor) and key.array.dtype == np.uint8


def _basic(input: Tensor, keys: tuple[Any, ...]) -> tuple[Any, list[Any]]:
    """The view that the simple indices give, and the other indices by dim (None where there is none)."""
    ndim = input.ndim
    specified = sum(map(_takes, keys))  # counted before a list is read: its errors come second
    if specified > ndim:
        raise IndexError(f"too many indices for tensor of dimension {ndim}")
    keys = tuple(map(_tensor_key, keys))
    indices: list[Any] = []
    out, dim = input, 0
    inside = 0  # dims that masks span beyond their first: they take one place among the indices
    for at, key in enumerate(keys):
        if key is None:
            out, dim = reshaping.unsqueeze(out, dim), dim + 1
        elif key is Ellipsis:
            dim += ndim - specified
        elif type(key) is slice:
            out, dim = _slice(out, key, dim, keep=False), dim + 1
        elif key is True or key is False:
            out = reshaping.unsqueeze(out, dim)
            dim = _put(indices, dim - inside, _flag(key)) + inside
        elif isinstance(key, Tensor):
            array = key.array
            known = getattr(array, "known", True) and not isinstance(array, BatchedArray)
            if array.ndim == 0 and array.dtype.kind in "iub" and known:
                if array.dtype.kind == "b" or array.dtype == np.uint8:
                    out = reshaping.unsqueeze(out, dim)
                    dim = _put(indices, dim - inside, _flag(bool(array))) + inside
                else:
                    out = _select(out, int(array), dim, at)
            else:
                _put(indices, dim - inside, key)
                dim += _takes(key)
                inside += _takes(key) - 1
        else:
            out = _select(out, _integer(key), dim, at)
    return out, indices


def _put(indices: list[Any], dim: int, key: Tensor) -> int:
    indices += [None] * (dim + 1 - len(indices))
    indices[dim] = key
    return dim + 1


def _flag(value: bool) -> Tensor:
    """True and False as indices into a dim of size 1."""
    return wrap(np.zeros(1 if value else 0, np.int64))


def _tensor_key(key: Any) -> Any:
    if isinstance(key, np.ndarray):
        return wrap(key)
    if isinstance(key, (list, tuple, range, str, bytes)):
        return wrap(_sequence(key))
    return key


def _sequence(key: Any) -> Any:
    """A list as an index: int64, or a mask where it holds booleans; other numbers are truncated."""
    if isinstance(key, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(key).__name__}'")
    array = np.asarray([k.array if isinstance(k, Tensor) else k for k in key])
    if array.size == 0:
        return array.astype(np.int64)
    if array.dtype.kind in "Ou":
        for number in np.asarray(key, object).flat:
            _check_long(number)
    if array.dtype.kind == "c":
        raise TypeError("'complex' object cannot be interpreted as an integer")
    if array.dtype.kind not in "iubf":
        raise TypeError(f"new(): invalid data type '{type(key[0]).__name__}'")
    return array if array.dtype.kind == "b" else array.astype(np.int64)


def _integer(key: Any) -> int:
    try:
        return to_int(key)
    except TypeError:
        kind = type(key)
        name = f"numpy.{kind.__name__}" if isinstance(key, np.generic) else kind.__name__
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are "
            f"valid indices (got {name})"
        ) from None


def _select(input: Tensor, position: int, dim: int, shown: int) -> Any:
    _check_long(position)
    shape = input.array.shape if type(input) is Tensor else input.shape
    if not len(shape):
        if position == 0:
            raise IndexError(_SCALAR)
        shape = (0,)
    n = shape[dim] if dim < len(shape) else 0  # a list of lists of booleans took its place
    if not -n <= position < n:
        raise IndexError(f"index {position} is out of bounds for dimension {shown} with size {n}")
    return reshaping.select(input, dim, position)


def _slice(input: Tensor, key: slice, dim: int, *, keep: bool) -> Any:
    """A slice of a dim; unless `keep`, one that takes all of it gives the input itself."""
    start, stop, step = _bounds(key)
    if not keep and start == 0 and step == 1 and (dim >= input.ndim or stop >= input.shape[dim]):
        return input
    return reshaping.slice_p(input, dim, start, stop, step)


def _bounds(key: slice) -> tuple[int, int, int]:
    try:
        step = 1 if key.step is None else to_int(key.step)
        start = 0 if key.start is None else to_int(key.start)
        stop = reshaping.END if key.stop is None else to_int(key.stop)
    except TypeError:
        words = "slice indices must be integers or None or have an __index__ method"
        raise TypeError(words) from None
    if step == 0:
        raise ValueError("slice step cannot be zero")
    if step < 0:
        from gradcli.engine.core.errors import NegativeStepError

        raise NegativeStepError
    return start, stop, step
