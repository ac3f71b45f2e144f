"""The exact order in which PyTorch runs nodes, leaves included.

PyTorch's ready queue is libstdc++'s binary heap over sequence numbers, in which leaves come first. The
order of equal keys follows from that heap's sift operations, which are reproduced here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradcli.engine.core.node import AccumulateGrad, Node, Port

_FIRST = float("inf")


def exact_order(roots: Sequence[Any]) -> list[Node]:
    """All nodes in the order in which PyTorch would run them."""
    start = [r.node if type(r) is Port else r for r in roots]
    waiting: dict[Node, int] = dict.fromkeys(start, 0)
    stack = list(waiting)
    while stack:
        for n in _inputs(stack.pop()):
            if n not in waiting:
                waiting[n] = 0
                stack.append(n)
            waiting[n] += 1
    heap: list[tuple[float, Node]] = []
    for n in dict.fromkeys(start):
        if not waiting[n]:
            _push(heap, (_key(n), n))
    order = []
    while heap:
        node = _pop(heap)[1]
        order.append(node)
        for n in _inputs(node):
            waiting[n] -= 1
            if not waiting[n]:
                _push(heap, (_key(n), n))
    return order


def _inputs(node: Node) -> list[Node]:
    return [e.node if type(e) is Port else e for e in node._edges if e is not None]  # type: ignore[misc]


def _key(node: Node) -> float:
    return _FIRST if type(node) is AccumulateGrad else node._seq


def _push(heap: list[tuple[float, Node]], item: tuple[float, Node]) -> None:
    heap.append(item)
    _sift_up(heap, len(heap) - 1, item)


def _sift_up(heap: list[tuple[float, Node]], i: int, item: tuple[float, Node]) -> None:
    while i and heap[(i - 1) // 2][0] < item[0]:
        heap[i] = heap[(i - 1) // 2]
        i = (i - 1) // 2
    heap[i] = item


def _pop(heap: list[tuple[float, Node]]) -> tuple[float, Node]:
    """std::pop_heap: the hole sinks to the bottom, then the last item rises from there."""
    top, item = heap[0], heap.pop()
    n = len(heap)
    if not n:
        return top
    i = child = 0
    while child < (n - 1) // 2:
        child = 2 * (child + 1)
        if heap[child][0] < heap[child - 1][0]:
            child -= 1
        heap[i] = heap[child]
        i = child
    if n % 2 == 0 and child == (n - 2) // 2:
        child = 2 * child + 1
        heap[i] = heap[child]
        i = child
    _sift_up(heap, i, item)
    return top
