"""Which values hang on operators whose rules lose digits of slopes; light to import.

1 - tanh(x)**2 is 0 from x = 19 on: the slope is not, to x = 370. The gradient of det is 0 by rule where the
matrix is singular: its cofactors are not.
"""

from __future__ import annotations

from typing import Any

MOST_NODES = 2000


def may_lose(value: Any) -> bool:
    """Whether an operator with critical points made a tensor, among the first nodes of its graph."""
    first = getattr(value, "grad_fn", None)
    stack, seen = [first] if first is not None else [], set[int]()
    while stack and len(seen) < MOST_NODES:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        primitive = getattr(type(node), "_primitive", None)
        if getattr(primitive, "critical", None) is not None:
            return True
        stack += [n for n, _ in node.next_functions if n is not None]
    return False


__all__ = ["may_lose"]
