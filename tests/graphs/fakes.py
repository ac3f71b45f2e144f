"""Small nodes that stand in for the engine's: the Node interface and nothing more."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np

from gradcli.engine.core.node import FREED

_clock = [count(1)]


class Value:
    """A tensor as far as a graph needs one."""

    def __init__(self, data: Any, label: str | None = None, grad_fn: Any = None) -> None:
        self.array = np.asarray(data)
        self.shape, self.dtype = self.array.shape, self.array.dtype
        self.label, self.grad_fn = label, grad_fn
        self.grad: Any = None


class Node:
    """A node with its edges given outright."""

    def __init__(
        self,
        name: str,
        *children: Any,
        shape: tuple[int, ...] = (),
        dtype: str = "float64",
        label: str | None = None,
        span: tuple[int, int] | None = None,
        saved: dict[str, Any] | None = None,
        outputs: int = 1,
        number: int | None = None,
    ) -> None:
        self._name = name
        self.next_functions = tuple(c if isinstance(c, tuple) else (c, 0) for c in children)
        self.shape, self.dtype, self.outputs = shape, np.dtype(dtype), outputs
        self.label, self.span, self.saved = label, span, saved or {}
        self.seq = self.number = next(_clock[0]) if number is None else number
        self._edges = tuple(child for child, _ in self.next_functions)

    def name(self) -> str:
        return self._name

    def output_meta(self) -> tuple[tuple[tuple[int, ...], Any], ...]:
        return ((self.shape, self.dtype),) * self.outputs

    def saved_items(self) -> Iterator[tuple[str, Any]]:
        return iter(self.saved.items())

    def _sequence_nr(self) -> int:
        return self.number


class Leaf(Node):
    """An AccumulateGrad."""

    def __init__(self, data: Any, label: str | None = None) -> None:
        self.variable = Value(data, label)
        array = self.variable.array
        super().__init__(
            "torch::autograd::AccumulateGrad",
            shape=array.shape,
            dtype=str(array.dtype),
            label=label,
            number=2**64 - 1,
        )


def build(name: str) -> tuple[Node, str]:
    """A graph by name, with sequence numbers from 1."""
    _clock[0] = count(1)
    return GRAPHS[name]()


def find(source: str, piece: str) -> tuple[int, int]:
    """The span of a piece of the source."""
    start = source.index(piece)
    return start, start + len(piece)


def linear() -> tuple[Node, str]:
    """y = a*x; y + b."""
    source = "y = a*x; y + b"
    a, x, b = Leaf(4.0, "a"), Leaf(3.0, "x"), Leaf(5.0, "b")
    saved = {"self": a.variable, "other": x.variable}
    y = Node("MulBackward0", a, x, label="y", span=find(source, "a*x"), saved=saved)
    root = Node("AddBackward0", y, b, span=find(source, "y + b"), saved={"alpha": 1})
    return root, source


def squarings(n: int) -> tuple[Node, str]:
    """x*x, squared again and again."""
    source = "y = x*x" + "; y = y*y" * (n - 1)
    node: Node = Leaf(1.5, "x")
    value = node.variable  # type: ignore[attr-defined]
    for i in range(n):
        start = 4 if i == 0 else 7 + 9 * (i - 1) + 6
        saved = {"self": value, "other": value}
        node = Node("MulBackward0", node, node, span=(start, start + 3), saved=saved)
        value = Value(np.asarray(1.5) ** (2 ** ((i + 1) % 6)), "y" if i == n - 1 else None, node)
    node.label = "y"
    return node, source


def chain(n: int, *, name: str = "SinBackward0") -> tuple[Node, str]:
    """sin(sin(... x))."""
    node: Node = Leaf(0.5, "x")
    for _ in range(n):
        node = Node(name, node, saved={"self": Value(0.5)})
    return node, ""


def additions(n: int) -> tuple[Node, str]:
    """x + x + x + ..., from the left."""
    source = " + ".join("x" * (n + 1))
    leaf = Leaf(1.0, "x")
    node: Node = leaf
    for i in range(n):
        node = Node("AddBackward0", node, leaf, span=(0, 4 * i + 5), saved={"alpha": 1})
    return node, source


def network() -> tuple[Node, str]:
    """A small network: a constant input, a masked branch, a reduction, a shared bias."""
    source = "h = relu(W @ x + b); p = sum(h * v, dim=0); log(p) + mean(b)"
    rng = np.arange(6.0).reshape(2, 3) / 4
    w, b, v = Leaf(rng, "W"), Leaf([0.5, -0.25], "b"), Leaf([1.0, 2.0], "v")
    x = Value([1.0, 2.0, 3.0], "x")
    mv = Node(
        "MvBackward0",
        w,
        None,
        shape=(2,),
        span=find(source, "W @ x"),
        saved={"self": None, "vec": x},
    )
    add = Node(
        "AddBackward0", mv, b, shape=(2,), span=find(source, "W @ x + b"), saved={"alpha": 1}
    )
    h = Node("ReluBackward0", add, shape=(2,), label="h", span=find(source, "relu(W @ x + b)"))
    result = Value([2.5, 6.5], None, h)
    h.saved = {"result": result}
    mul = Node("MulBackward0", h, v, shape=(2,), span=find(source, "h * v"))
    mul.saved = {"self": result, "other": v.variable}
    p = Node("SumBackward1", mul, label="p", span=find(source, "sum(h * v, dim=0)"))
    p.saved = {"dim": (0,), "keepdim": False, "self_sym_sizes": (2,)}
    log = Node("LogBackward0", p, span=find(source, "log(p)"), saved={"self": Value(15.5, None, p)})
    mean = Node("MeanBackward0", b, span=find(source, "mean(b)"), saved={"self_sym_numel": 2})
    root = Node(
        "AddBackward0", log, mean, span=find(source, "log(p) + mean(b)"), saved={"alpha": 1}
    )
    return root, source


def outputs() -> tuple[Node, str]:
    """Nodes with several outputs, a second one used; a list saved; freed and odd scalars."""
    source = "q, r = unbind(stack([a, b])); max(q, dim=0).values / r"
    a, b = Leaf([1.0, float("inf")], "a"), Leaf([2.0, float("nan")], "b")
    stack = Node("StackBackward0", a, b, shape=(2, 2), saved={"dim": 0})
    stack.saved["tensors"] = (a.variable, b.variable)
    unbind = Node("UnbindBackward0", stack, shape=(2,), outputs=2, saved={"dim": 0})
    largest = Node("MaxBackward0", (unbind, 0), saved={"indices": Value(1), "self": FREED})
    largest.saved |= {"z": 1 + 2j, "nothing": None, "text": "sum", "low": float("-inf")}
    span = find(source, "max(q, dim=0).values / r")
    root = Node("DivBackward0", largest, (unbind, 1), shape=(2,), dtype="float32", span=span)
    return root, source


def awkward() -> tuple[Node, str]:
    """Names and sources that markup languages would read."""
    source = 'einsum("ij,jk->ik", a[0], <b>) if x else `c` | {d} #1; [id A] :smile: \\n'
    leaf = Leaf(1.0, 'a"<&>[bold]')
    root = Node("MulBackward0", leaf, None, label="y|{}[/]", span=(0, len(source)))
    return root, source


GRAPHS = {
    "linear": linear,
    "network": network,
    "squarings": lambda: squarings(16),
    "chain": lambda: chain(60),
    "additions": lambda: additions(40),
    "outputs": outputs,
    "awkward": awkward,
}
