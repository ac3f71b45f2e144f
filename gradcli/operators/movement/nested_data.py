"""Nested sequences of numbers as arrays: what `torch.tensor(data)` does with its data.

Regular data goes through a few C-speed passes, one a level of nesting. Anything else takes the slow walk
in the order that PyTorch takes, which finds the words to refuse it with.
"""

from __future__ import annotations

import math
import operator as op
from itertools import chain
from typing import Any

import numpy as np

from gradcli.engine.core.declaration import Array, DType
from gradcli.engine.core.tensor import Tensor
from gradcli.engine.registry.rule_helpers import refuse_if
from gradcli.engine.system import dtypes

_PYTHON = frozenset([bool, int, float, complex])
_LEVELS = 64  # as many dimensions as NumPy has


def array_of(data: Any, kind: DType | None) -> Array:
    """A new array of the data, in the dtype `linearity`, or in the one that the data says."""
    if isinstance(data, (np.ndarray, np.generic)):
        return of_array(np.asarray(data), kind, copy=True)
    if isinstance(data, Tensor):
        if not isinstance(data.array, (np.ndarray, np.generic)):  # recorded, or a batch
            return data.detach().clone().to(dtypes.of(kind or data.array.dtype)).array
        return cast(np.asarray(data.array), kind or data.array.dtype, copy=True)
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    if not _is_sequence(data):
        return _leaves([data], kind).reshape(())
    shape, leaves, kinds = _flatten(data)
    if leaves is None:
        return _walk(data, shape, kind)
    if 0 in shape:
        return np.zeros(shape, kind or _inferred(data))
    if kinds and kind is None:
        kind = _inferred(data)
    return _leaves(leaves, kind).reshape(shape)


def of_array(array: Array, kind: DType | None, *, copy: bool) -> Array:
    """An array of one of PyTorch's dtypes from any NumPy array."""
    if array.dtype.kind in "biufc" and not array.dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion "
            "between byte orders is currently not supported."
        )
    dtypes.of(array.dtype)
    return cast(array, kind or array.dtype, copy=copy)


def cast(array: Array, kind: DType, *, copy: bool = False) -> Array:
    """An array in another dtype, converted as in C."""
    with np.errstate(all="ignore"):
        if array.dtype.kind == "c" and kind.kind not in "cb":
            array = array.real
        if kind.kind == "f" and kind.itemsize == 2 and array.dtype.itemsize == 8:
            array = array.astype(np.float32)
        return array.astype(kind, order="C", copy=copy)


def _is_sequence(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return True
    if isinstance(value, (Tensor, np.generic, dict)) or (
        isinstance(value, np.ndarray) and value.ndim == 0
    ):
        return False
    kind = type(value)
    return hasattr(kind, "__getitem__") and hasattr(kind, "__len__")


def _flatten(data: Any) -> tuple[list[int], list[Any] | None, bool]:
    """The shape, the items in order (None where they do not fill the shape), whether arrays occur."""
    shape: list[int] = []
    items: list[Any] = [data]
    arrays = False
    while True:
        first = items[0]
        if not _is_sequence(first):
            plain = not any(issubclass(t, (list, tuple, str)) for t in set(map(type, items)))
            return shape, items if plain else None, arrays
        if len(shape) == _LEVELS or (isinstance(first, (str, bytes)) and shape):
            raise ValueError(f"too many dimensions '{type(first).__name__}'")
        n = len(first)
        shape.append(n)
        if n == 0:
            return shape, [], arrays
        types = set(map(type, items))
        if not types <= {list, tuple}:
            arrays = arrays or any(issubclass(t, np.ndarray) for t in types)
            if not all(_is_sequence(item) for item in items):
                return _first_shape(data), None, arrays
        if set(map(len, items)) != {n}:
            return _first_shape(data), None, arrays
        items = list(chain.from_iterable(items))


def _first_shape(data: Any) -> list[int]:
    shape: list[int] = []
    while _is_sequence(data):
        if len(shape) == _LEVELS or (isinstance(data, (str, bytes)) and shape):
            raise ValueError(f"too many dimensions '{type(data).__name__}'")
        shape.append(len(data))
        if not shape[-1]:
            break
        data = data[0]
    return shape


def _inferred(data: Any) -> np.dtype[Any]:
    """The dtype of data: the promotion of the dtypes of everything in it."""
    found: np.dtype[Any] | None = None
    stack = [data]
    while stack:
        value = stack.pop()
        if isinstance(value, (str, bytes)):
            raise TypeError(f"new(): invalid data type '{type(value).__name__}'")
        if isinstance(value, Tensor):
            own: np.dtype[Any] = value.array.dtype
        elif isinstance(value, (np.ndarray, np.generic)):
            own = dtypes.of(value.dtype).dtype
        elif type(value) in _PYTHON or isinstance(value, (bool, int, float, complex)):
            own = dtypes.number_dtype(value)
        elif _is_sequence(value):
            stack.extend(value[i] for i in range(len(value) - 1, -1, -1))
            if len(value):
                continue
            own = dtypes.default.real
        else:
            raise RuntimeError(f"Could not infer dtype of {type(value).__name__}")
        found = own if found is None else dtypes.promote_types(found, own)
    assert found is not None
    return found


def _walk(data: Any, shape: list[int], kind: DType | None) -> Array:
    """Store item by item, in order; irregular data raises where PyTorch meets it first."""
    kind = kind or _inferred(data)
    if 0 in shape:
        return np.zeros(shape, kind)
    values: list[Any] = []
    stack: list[tuple[Any, int]] = [(data, 0)]
    while stack:
        value, depth = stack.pop()
        if depth == len(shape):
            values.append(stored(value, kind))
            continue
        refuse_if(not _is_sequence(value), "not a sequence", error=TypeError)
        if len(value) != shape[depth]:
            raise ValueError(
                f"expected sequence of length {shape[depth]} at dim {depth} (got {len(value)})"
            )
        stack.extend((value[i], depth + 1) for i in range(len(value) - 1, -1, -1))
    return np.array(values, kind).reshape(shape)


def _leaves(items: list[Any], kind: DType | None) -> Array:
    """A flat array of numbers."""
    types = set(map(type, items))
    if not types <= _PYTHON:
        if kind is None:
            kind = _inferred(items)
        return np.array([stored(item, kind) for item in items], kind)
    if kind is None:
        if complex in types:
            kind = dtypes.default.complex
        elif float in types:
            kind = dtypes.default.real
        else:
            kind = np.dtype(np.int64) if int in types else np.dtype(np.bool_)
    easy = kind.kind == "c" or (kind.kind == "f" and complex not in types)
    with np.errstate(over="ignore"):
        if easy and kind.itemsize == 2:
            return np.array(items, np.float64).astype(np.float32).astype(kind)
        if easy:
            return np.array(items, kind)
        if kind.kind == "i" and kind.itemsize == 8 and types <= {bool, int}:
            try:
                return np.array(items, kind)
            except OverflowError:
                raise ValueError("Overflow when unpacking long long") from None
    return np.array([stored(item, kind) for item in items], kind)


def stored(value: Any, kind: DType) -> Any:
    """One item in the dtype `linearity`; TypeError, ValueError or RuntimeError where it does not fit."""
    if isinstance(value, Tensor):
        if value.array.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        if kind.kind in "biu":
            value = op.index(value)
        else:
            value = complex(value) if kind.kind == "c" else float(value)
    elif isinstance(value, (np.generic, np.ndarray)):
        value = value.item()
    if kind.kind == "b" and isinstance(value, (bool, int, float, complex)):
        return bool(value)
    if kind.kind in "biu":
        return _stored_integer(value, kind)
    if kind.kind == "f" and isinstance(value, complex):
        raise TypeError("must be real number, not complex")
    if not isinstance(value, (int, float, complex)) and not hasattr(value, "__float__"):
        raise TypeError(f"must be real number, not {type(value).__name__}")
    with np.errstate(over="ignore"):
        if kind.kind == "c":
            return kind.type(complex(value))
        number = float(value)
        return kind.type(np.float32(number)) if kind.itemsize == 2 else kind.type(number)


def _stored_integer(value: Any, kind: DType) -> Any:
    if isinstance(value, float):
        fits = math.isfinite(value)
        whole = int(value) if fits else 0
    elif hasattr(value, "__index__"):
        whole, fits = value.__index__(), True
        if not -(2**63) <= whole < 2**63:
            raise ValueError("Overflow when unpacking long long")
    else:
        raise TypeError(f"'{type(value).__name__}' object cannot be interpreted as an integer")
    limits = np.iinfo(kind) if kind.kind != "b" else np.iinfo(np.int64)
    # Negative numbers wrap around in unsigned dtypes.
    lowest = -int(limits.max) if kind.kind == "u" else int(limits.min)
    if not fits or not lowest <= whole <= limits.max:
        raise RuntimeError(f"value cannot be converted to type {kind.name} without overflow")
    return np.int64(whole).astype(kind)
