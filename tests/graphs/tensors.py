"""Graphs of real tensors, with the spans and names that the interpreter would set."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.engine.core.tensor import wrap
from gradcli.engine.registry import table
from gradcli.graphs.forward_watch import watching
from gradcli.graphs.inspection import Graph, inspect

SOURCE = "y = a*x; z = (y + b)*y; z*z - c/(a*y)"


table.load()  # gives tensors their operators


def leaf(value: Any, name: str) -> Any:
    made = wrap(np.asarray(value, dtype=np.float64)[()])
    made.requires_grad_()
    made.label = name
    return made


def spanned(tensor: Any, piece: str, name: str | None = None) -> Any:
    start = SOURCE.index(piece)
    tensor.grad_fn.span = (start, start + len(piece))
    if name:
        tensor.label = tensor.grad_fn.label = name
    return tensor


def example() -> Graph:
    """Eleven nodes: shared ones, named ones, a long edge."""
    a, x, b, c = leaf(4.0, "a"), leaf(3.0, "x"), leaf(5.0, "b"), leaf(7.0, "c")
    with watching() as results:
        y = spanned(a * x, "a*x", "y")
        z = spanned(spanned(y + b, "y + b") * y, "(y + b)*y", "z")
        quotient = spanned(c / spanned(a * y, "a*y"), "c/(a*y)")
        result = spanned(spanned(z * z, "z*z") - quotient, "z*z - c/(a*y)")
    return inspect(result, source=SOURCE, values=results)


def chain(count: int) -> Graph:
    """Sums and products of one leaf, one after another."""
    x = leaf(1.0, "x")
    y = x
    for i in range(count):
        y = y * x if i % 3 else y + x
    return inspect(y)


def tangle(count: int) -> Graph:
    """About as many nodes as asked for, each used here and there."""
    choose = np.random.RandomState(0).randint
    pool = [leaf(i + 1.0, f"x{i}") for i in range(8)]
    for i in range(count):
        a, b = pool[-1 - choose(min(12, len(pool)))], pool[-1 - choose(min(12, len(pool)))]
        pool.append(a + b if i % 2 else a - b)
    result = pool[-1]
    for one in pool[-12:-1]:
        result = result + one
    return inspect(result)


def network(batch: int = 8, hidden: int = 16) -> Graph:
    """Two layers and a loss, their values watched."""
    rng = np.random.default_rng(0)
    x = wrap(rng.standard_normal((batch, 4)))
    w, b = leaf(rng.standard_normal((4, hidden)), "W1"), leaf(rng.standard_normal(hidden), "b1")
    v = leaf(rng.standard_normal((hidden, 2)), "W2")
    with watching() as results:
        loss = ((((x @ w) + b).relu() @ v) ** 2).mean()
    return inspect(loss, values=results)


def million() -> Graph:
    """Vectors of a million elements."""
    x = leaf(np.linspace(-1, 1, 1_000_000), "x")
    with watching() as results:
        loss = (x * x).sin().sum()
    return inspect(loss, values=results)


def many(count: int = 40) -> Graph:
    """A list of leaves stacked: a step that sends a gradient to every one of them."""
    table.load()
    total = table.resolve("stack")([leaf(float(i), f"x{i}") for i in range(count)])
    return inspect((total * total).sum())


LAYOUTS = {"scalars": example, "network": network, "million": million, "many": many}
