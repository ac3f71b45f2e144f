"""What a node saved for its backward, field by field."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradcli.engine.core.node import FREED, Written
from gradcli.engine.core.saved_tensors import Packed
from gradcli.engine.core.tensor import Tensor
from gradcli.engine.system import dtypes
from gradcli.graphs import value_text
from gradcli.graphs.of_torch import packed_tensors
from gradcli.graphs.of_torch.torch_tensors import dense_parts

MOST_IN_JSON = 64  # elements of a tensor of PyTorch's that are written out


@dataclass(slots=True)
class SavedTensor:
    """A tensor kept for the backward pass, and the name that the program knows it by."""

    tensor: Any
    variable: str | None
    shape: tuple[int, ...]
    dtype: str | None
    nbytes: int


@dataclass(slots=True)
class SavedScalar:
    """A number, an option or None kept for the backward pass."""

    value: Any


@dataclass(slots=True)
class Freed:
    """Stands for a saved value that was released after the backward pass."""


Single = SavedTensor | SavedScalar | Freed
Entry = Single | list[Single]


def fields(node: Any) -> Iterator[tuple[str, Any]]:
    """Yield the (field, value) pairs that a node saved."""
    items = getattr(node, "saved_items", None)
    return iter(()) if items is None else iter(items())


def name_of(tensor: Any, names: Mapping[int, str]) -> str | None:
    """Return what the program calls a tensor: its own label, or its node's, or a binding's."""
    label = getattr(tensor, "label", None) or names.get(id(tensor))
    if label is None:
        label = getattr(getattr(tensor, "grad_fn", None), "label", None)
    return label


Namer = Callable[[Any, Mapping[int, str]], str | None]


def entry(value: Any, name_of: Namer, names: Mapping[int, str]) -> Entry:
    """Describe one saved value, or a list of saved tensors."""
    if isinstance(value, tuple | list) and any(
        value_text.is_tensor(v) or v is FREED or isinstance(v, Written) for v in value
    ):
        return [_single(v, name_of, names) for v in value]
    return _single(value, name_of, names)


def _single(value: Any, name_of: Namer, names: Mapping[int, str]) -> Single:
    if value is FREED:
        return Freed()
    if not value_text.is_tensor(value):
        return SavedScalar(value)
    whole = (
        value_text.as_array(value) if hasattr(value, "array") else value
    )  # of a batch, all entries
    shape = tuple(int(n) for n in whole.shape)
    dtype = value_text.dtype_name(value.dtype)
    foreign = hasattr(value, "layout") and not hasattr(value, "array")  # ours has both
    held = dense_parts(value) if foreign else [value_text.as_array(value)]
    return SavedTensor(value, name_of(value, names), shape, dtype, sum(p.nbytes for p in held))


def tensors(node: Any) -> Iterator[Any]:
    """Return the tensors that a node keeps alive."""
    return tensors_among(value for _, value in fields(node))


def tensors_among(found: Iterable[Any]) -> Iterator[Any]:
    """Yield the tensors among saved values, and those in lists of them."""
    for value in found:
        if value_text.is_tensor(value):
            yield value
        elif isinstance(value, tuple | list):
            yield from (v for v in value if value_text.is_tensor(v))


_PLAIN = frozenset([Tensor, np.ndarray, *(d.dtype.type for d in dtypes.ALL)])


def written(node: Any) -> Iterator[tuple[str, int, Any]]:
    """Yield what was written in place since the node saved it: field, version then, tensor."""
    for name, value in fields(node):
        if isinstance(value, Written) and isinstance(value.held, Tensor):
            yield name, value.version, value.held


def _held(found: Iterable[Any]) -> Iterator[Any]:
    """Yield the tensors among saved values, those that were written since among them."""
    for value in found:
        if isinstance(value, tuple | list):
            yield from _held(value)
        elif isinstance(value, Written):
            yield from _held([value.held])
        elif value_text.is_tensor(value):
            yield value


def kept(node: Any) -> tuple[list[Any], bool]:
    """Return the arrays that a node keeps alive, and whether any have been freed.

    What nodes mostly hold, tensors and arrays, is read as it is held: making every saved value ready
    to be shown, as `fields` does, takes several times as long.
    """
    held = getattr(node, "_saved", None)
    if held is not None and _PLAIN.issuperset(map(type, held)):
        return [v.array if type(v) is Tensor else v for v in held], False
    packed = [value for value in _flat(held) if type(value) is Packed]
    if packed:
        found = [value for value in _flat(held) if type(value) is not Packed]
        found += [t for one in packed for t in packed_tensors.held(one.content, one.unpack_hook)]
    else:
        found = [value for _, value in fields(node)]
    arrays = [value_text.as_array(tensor) for tensor in _held(found)]
    return arrays, any(value is FREED for value in found)


def _flat(values: Any) -> Iterator[Any]:
    for value in values or ():
        yield from _flat(value) if isinstance(value, tuple | list) else (value,)


def to_json(saved: Entry) -> Any:
    """Turn an entry into the `saved` value of the JSON schema."""
    if isinstance(saved, list):
        return [to_json(one) for one in saved]
    if isinstance(saved, SavedTensor):
        large = hasattr(saved.tensor, "untyped_storage") and math.prod(saved.shape) > MOST_IN_JSON
        return {
            "value": None if large else value_text.to_json(saved.tensor),
            **(
                {"stats": value_text.stats_to_json(saved.tensor), "bytes": saved.nbytes}
                if large
                else {}
            ),
            "shape": list(saved.shape),
            "dtype": saved.dtype,
            "variable": saved.variable,
        }
    if isinstance(saved, SavedScalar):
        return value_text.scalar_to_json(saved.value)
    return {"freed": True}
