"""A trace as data: calls of primitives, and the values between them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradcli.engine.core.primitive import Primitive


class Call:
    """One application of a primitive: its operands in the order of the primitive's parameters.

    args: Values for tensors; numbers and options as they were passed. span: the part of the program that
    made the call, if known.
    """

    __slots__ = ("args", "outputs", "primitive", "span")

    def __init__(
        self, primitive: Primitive, args: tuple[Any, ...], span: tuple[int, int] | None = None
    ) -> None:
        self.primitive, self.args, self.span = primitive, args, span
        self.outputs: tuple[Any, ...] = ()


class Value:
    """A result of a call (number `index`), a variable, or a constant.

    value: an array of its shape and dtype; its numbers count only for a constant, which has no call and no
    name. known: whether it does not depend on the variables. moves: whether it depends on a variable to
    differentiate by.
    """

    __slots__ = ("call", "index", "known", "moves", "name", "value")

    def __init__(
        self,
        value: Any,
        name: str | None = None,
        call: Call | None = None,
        index: int = 0,
        known: bool = False,
        moves: bool = False,
    ) -> None:
        self.value, self.name, self.call, self.index, self.known = value, name, call, index, known
        self.moves = moves

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each dimension."""
        return self.value.shape  # type: ignore[no-any-return]

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return int(self.value.ndim)

    @property
    def constant(self) -> bool:
        """Whether it is a constant: neither a variable nor the result of a call."""
        return self.call is None and self.name is None


def calls(outputs: Iterable[Value]) -> list[Call]:
    """Every call that the outputs depend on, in topological order."""
    order: list[Call] = []
    seen: set[int] = set()
    stack: list[tuple[Call, bool]] = [(o.call, False) for o in outputs if o.call is not None]
    while stack:
        call, ready = stack.pop()
        if ready:
            order.append(call)
            continue
        if id(call) in seen:
            continue
        seen.add(id(call))
        stack.append((call, True))
        stack += [
            (v.call, False)
            for v in operands_of(call)
            if v.call is not None and id(v.call) not in seen
        ]
    return order


def operands_of(call: Call) -> list[Value]:
    """The values among the operands of a call, in order."""
    found: list[Value] = []
    for a in call.args:
        if isinstance(a, Value):
            found.append(a)
        elif isinstance(a, (list, tuple)):
            found += [v for v in a if isinstance(v, Value)]
    return found


__all__ = ["Call", "Value", "calls", "operands_of"]
