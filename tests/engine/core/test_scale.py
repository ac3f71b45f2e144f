"""Size: long and wide graphs are recorded, run, shown and freed without recursion, in bounded memory."""

from __future__ import annotations

import gc
import sys
from typing import Any

import pytest

import gradcli as torch
from gradcli.graphs import inspect

LONG = pytest.param(1_000_000, marks=pytest.mark.long)


@pytest.fixture(autouse=True)
def shallow_stack() -> Any:
    """Whatever recurses over a graph fails long before the end of it."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(400)
    yield
    sys.setrecursionlimit(limit)


def leaf() -> Any:
    return torch.tensor(1.0, dtype=torch.float64, requires_grad=True)


def chain(x: Any, size: int) -> Any:
    """A result `size` operations away: products, whose operands are saved, and sums."""
    y = x
    for _ in range(size // 2):
        y = y * 1.0000001
        y = y + x
    return y


@pytest.mark.parametrize("size", [5_000, LONG])
def test_a_chain_is_recorded_run_and_freed(size):
    x = leaf()
    y = chain(x, size)
    y.backward()
    factor = 1.0000001
    assert x.grad.item() == pytest.approx(
        factor ** (size // 2) + (factor ** (size // 2) - 1) / (factor - 1), rel=1e-6
    )
    del y


@pytest.mark.parametrize("size", [5_000, pytest.param(300_000, marks=pytest.mark.long)])
def test_a_chain_with_hooks_and_captured_gradients(size):
    x = leaf()
    y = chain(x, size)
    seen = []
    y.register_hook(seen.append)
    (grad,) = torch.autograd.grad(y, x, retain_graph=True)
    y.backward()
    assert len(seen) == 2
    assert x.grad.item() == grad.item()


@pytest.mark.parametrize("size", [5_000, LONG])
def test_a_chain_is_differentiated_twice(size):
    x = leaf()
    y = x
    for _ in range(size // 10):
        y = (y * x).sin()
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    assert second.isfinite()


@pytest.mark.parametrize("size", [4_000, pytest.param(200_000, marks=pytest.mark.long)])
def test_a_chain_is_shown(size):
    y = chain(leaf(), size)
    graph = inspect(y)
    assert len(graph.records) == size + 1
    assert f"{size + 1:,} nodes" in str(graph)
    assert graph.to_dot(collapse=False).count("MulBackward0") == size // 2
    assert len(graph.to_dot()) < 2000  # a chain folds
    assert "AddBackward0" in repr(y)


@pytest.mark.parametrize("size", [5_000, LONG])
def test_a_wide_node(size):
    leaves = [leaf() for _ in range(size // 10)]
    torch.stack(leaves).sum().backward()
    assert all(x.grad.item() == 1.0 for x in leaves)


def test_a_ladder_is_linear():
    """Every node used twice: paths are counted in powers of two, nodes are not."""
    x = leaf()
    y = x
    for _ in range(5_000):
        y = (y + y) * 0.5
    y.backward()
    assert x.grad.item() == 1.0


def test_views_written_many_times():
    leaf = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    base = leaf * 1
    view = base[1:]
    for k in range(3_000):
        view.mul_(-1.0 if k else 2.0)
    base.sum().backward()
    assert leaf.grad.tolist() == [1, -2, -2, -2]


@pytest.mark.parametrize("size", [1_000, LONG])
def test_memory_does_not_grow(size):
    x = leaf()

    def once() -> int:
        y = chain(x, size)
        y.backward()
        (grad,) = torch.autograd.grad(chain(x, 200), x, create_graph=True)
        del y, grad
        gc.collect()
        return sys.getallocatedblocks()

    once()
    before = once()
    assert once() - before < 500


@pytest.mark.long
def test_graphs_are_freed_without_the_collector():
    x = leaf()
    gc.collect()
    gc.disable()
    try:
        chain(x, 2_000).backward()
        before = sys.getallocatedblocks()
        chain(x, 2_000).backward()
        y = chain(x, 2_000)
        y.retain_grad()
        y.register_hook(lambda g: g)
        y.backward()
        del y
        base = x * 1
        base[...].mul_(2)
        base.backward()
        del base
        assert sys.getallocatedblocks() - before < 500
    finally:
        gc.enable()
