"""Pytrees: nested tuples, lists and dictionaries, flattened to leaves and a spec as in PyTorch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any


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
        items = [next(leaves) if c is _LEAF else c.fill(leaves) for c in self.children]
        if self.kind is tuple:
            return tuple(items)
        if isinstance(self.context, list):
            return self.kind(zip(self.context, items, strict=True))
        make = getattr(
            self.kind, "_make", self.kind
        )  # a named tuple takes its items as separate arguments
        return make(items)


_LEAF = Spec(None, None, [])
_NESTED = (tuple, list, dict)


def _items(value: object) -> tuple[Any, list[Any]] | None:
    if isinstance(value, dict):
        return list(value), list(value.values())
    if isinstance(value, (tuple, list)):
        return (type(value) if hasattr(value, "_make") else None), list(value)
    return None


def flatten(value: object) -> tuple[list[Any], Spec]:
    """(leaves, spec) of nested tuples, lists and dictionaries."""
    if not isinstance(value, _NESTED):
        return [value], _LEAF
    context, items = _items(value)  # type: ignore[misc]
    leaves: list[Any] = []
    children = []
    for item in items:
        if not isinstance(item, _NESTED):
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


def broadcast(value: object, spec: Spec) -> list[Any] | None:
    """Leaves of `value` for each of `spec`'s: one may stand for a whole subtree. None if it does not fit."""
    found = _items(value) if isinstance(value, _NESTED) else None
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
