"""Pytrees: nested tuples, lists and dictionaries, flattened to leaves and a spec as in PyTorch.

Objects of dataclasses are nested values, too: their fields are the items, in the order of the class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any


class Fields(tuple[str, ...]):
    """The names of an object's fields, which its class takes by name."""


class Constant:
    """The kind of a leaf that stays what it is; the spec's context is its value."""


class Spec:
    """The structure of a nested value: its type, its keys, and the structures of its items."""

    __slots__ = ("children", "context", "kind")

    def __init__(self, kind: type | None, context: object, children: list[Spec]) -> None:
        self.kind, self.context, self.children = kind, context, children

    @property
    def leaves(self) -> int:
        """The number of leaves."""
        return 1 if self.kind is None else sum([c.leaves for c in self.children])

    def show(self, indent: int = 0) -> str:
        """The spec as PyTorch prints it."""
        if self.kind is None:
            return "*"
        indent += 2
        shown = [c.show(indent) for c in self.children]
        rest = ",".join("\n" + " " * indent + s for s in shown[1:])
        items = (shown[0] + ("," if len(shown) > 1 else "") + rest) if shown else ""
        return f"TreeSpec({self.kind.__name__}, {self.context}, [{items}])"

    __repr__ = __str__ = show

    def fill(self, leaves: Iterator[Any]) -> Any:
        """A value of this structure with other leaves."""
        if self.kind is None:
            return next(leaves)
        if self.kind is Constant:
            return self.context
        items = [next(leaves) if c is _LEAF else c.fill(leaves) for c in self.children]
        return made(self.kind, self.context, items)


_LEAF = Spec(None, None, [])
_NESTED = (tuple, list, dict)
_OBJECTS: dict[type, bool] = {}  # by class: looking for an attribute that is not there is slow


def made(kind: Any, context: object, items: list[Any]) -> Any:
    """A nested value of these items."""
    if kind is tuple:
        return tuple(items)
    if type(context) is list:
        return kind(zip(context, items, strict=True))
    if type(context) is Fields:
        return kind(**dict(zip(context, items, strict=True)))
    return getattr(kind, "_make", kind)(items)  # a named tuple takes them as separate arguments


def is_nested(value: object) -> bool:
    """Whether a value holds others."""
    return isinstance(value, _NESTED) or is_object(value)


def is_object(value: object) -> bool:
    """Whether a value is an object of a dataclass."""
    kind = type(value)
    found = _OBJECTS.get(kind)
    if found is None:
        found = _OBJECTS[kind] = hasattr(kind, "__dataclass_fields__")
    return found


def items_of(value: object) -> tuple[Any, list[Any]] | None:
    """(what beside the class tells the structure, the items) of a nested value; None for a leaf.

    Fields that a dataclass computes itself (`init=False`) are none of its items: they are computed anew.
    """
    if isinstance(value, dict):
        return list(value), list(value.values())
    if isinstance(value, (tuple, list)):
        return (type(value) if hasattr(value, "_make") else None), list(value)
    if is_object(value):
        from dataclasses import fields

        names = Fields([f.name for f in fields(value) if f.init])  # type: ignore[arg-type]
        return names, [getattr(value, n) for n in names]
    return None


def flatten(value: object) -> tuple[list[Any], Spec]:
    """(leaves, spec) of a nested value."""
    if not (isinstance(value, _NESTED) or is_object(value)):
        return [value], _LEAF
    context, items = items_of(value)  # type: ignore[misc]
    leaves: list[Any] = []
    children = []
    for item in items:
        if not (isinstance(item, _NESTED) or is_object(item)):
            leaves.append(item)
            children.append(_LEAF)
            continue
        more, spec = flatten(item)
        leaves += more
        children.append(spec)
    return leaves, Spec(type(value), context, children)


def unflatten(leaves: Iterable[Any], spec: Spec) -> Any:
    """The nested value of a spec and its leaves."""
    return next(iter(leaves)) if spec is _LEAF else spec.fill(iter(leaves))


def with_constants(
    leaves: list[Any], spec: Spec, varies: Callable[[Any], bool]
) -> tuple[list[Any], Spec]:
    """(the leaves that vary, a spec that holds the others)."""
    kept: list[Any] = []
    order = iter(leaves)

    def fixed(part: Spec) -> Spec:
        if part.kind is not None:
            return Spec(part.kind, part.context, [fixed(c) for c in part.children])
        leaf = next(order)
        if not varies(leaf):
            return Spec(Constant, leaf, [])
        kept.append(leaf)
        return part

    found = fixed(spec)
    return kept, found


def broadcast(value: object, spec: Spec) -> list[Any] | None:
    """Leaves of `value` for each of `spec`'s: one may stand for a whole subtree. None if it does not fit."""
    found = items_of(value)
    if found is None:
        return [value] * spec.leaves
    context, items = found
    if spec.kind is not type(value) or spec.context != context:
        return None
    if len(items) != len(spec.children):
        return None
    leaves: list[Any] = []
    for item, child in zip(items, spec.children, strict=True):
        part = broadcast(item, child)
        if part is None:
            return None
        leaves += part
    return leaves
