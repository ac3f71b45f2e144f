"""torch.return_types: the named tuples of functions with several results."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from gradcli.engine.core.declaration import Ints
from gradcli.engine.core.tensor import Tensor
from gradcli.engine.registry.schema import said
from gradcli.engine.registry.table import VjpRules, overloads


class ReturnType(tuple[Any, ...]):
    """A named tuple, printed as PyTorch prints it."""

    __slots__ = ()
    fields: tuple[str, ...] = ()

    def __new__(cls, items: Ints | Sequence[Tensor]) -> Any:
        """Make it from a sequence with one item for each name."""
        if not hasattr(items, "__iter__"):
            raise TypeError("constructor requires a sequence")
        made = tuple.__new__(cls, items)
        if len(made) != len(cls.fields):
            raise TypeError(
                f"torch.return_types.{cls.__name__}() takes a {len(cls.fields)}-sequence "
                f"({len(made)}-sequence given)"
            )
        return made

    def __repr__(self) -> str:
        items = [f"{n}={v!r}" for n, v in zip(self.fields, self, strict=True)]
        return f"torch.return_types.{type(self).__name__}(\n" + ",\n".join(items) + ")"

    @property
    def n_fields(self) -> int:
        """The number of items."""
        return len(self.fields)

    n_sequence_fields = n_fields


def _item(position: int) -> property:
    return property(lambda self: self[position])


NAMES: dict[str, type[ReturnType]] = {}


def return_type(name: str, fields: str) -> type[ReturnType]:
    """The class `torch.return_types.NAME`, called with the tuple of its items."""
    names = tuple(fields.split())
    body: dict[str, Any] = {"__slots__": (), "fields": names, "__module__": "torch.return_types"}
    body["_fields"] = names  # as in Python's named tuples
    made = type(name, (ReturnType,), body | {n: _item(i) for i, n in enumerate(names)})
    NAMES[name] = made
    return made


def named_results(name: str, primitive: VjpRules) -> Callable[..., Any]:
    """A function that returns a primitive's results as `torch.return_types.NAME`."""
    result = return_type(name, " ".join(primitive.outputs))

    def selected(*values: Any) -> Any:
        return result(primitive.call(*values))

    return selected


def results(signature: str, primitive: VjpRules, **about: Any) -> Callable[..., Any]:
    """Enter a function that returns a primitive's results as a named tuple; about: as for `overloads`."""
    name = said(signature.partition("(")[0])
    about |= {"targets": [named_results(name, primitive)], "primitives": [primitive]}
    module = sys._getframe(1).f_globals["__name__"]
    return overloads(f"{signature} -> selected", module=module, **about)
