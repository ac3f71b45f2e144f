"""Order: nodes run by falling sequence number, each once, and sums do not depend on who watches."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import gradcli as torch
from gradcli.engine.core.observers import observing
from tests.sweep import sweep

SEEDS = range(30)


def random_graph(seed: int, track: Any = lambda t: None) -> tuple[list[Any], Any]:
    """Leaves, and a scalar made of them by random sums, products, joins and splits."""
    pick = random.Random(seed)
    leaves = [
        torch.tensor([pick.uniform(0.5, 1.5) for _ in range(4)], dtype=torch.float64)
        for _ in range(3)
    ]
    pool = [x.requires_grad_() for x in leaves]
    for _ in range(pick.randint(3, 25)):
        a, b = pick.choice(pool), pick.choice(pool[-4:])
        made = pick.choice(
            [
                lambda a, b: a + b,
                lambda a, b: a * b,
                lambda a, b: (a * 0.5).sin(),
                lambda a, b: torch.cat([a, b, a])[2:6],
                lambda a, b: a.view(2, 2).t().reshape(4) - b,
                lambda a, b: torch.stack([a, b]).unbind()[1],
                lambda a, b: a.sum() * b,
            ]
        )(a, b)
        track(made)
        pool.append(made)
    return leaves, sum(pool[3:], pool[0]).sum()


@sweep("seed", SEEDS, parts=1)
def test_nodes_run_by_falling_sequence_number(seed):
    _leaves, y = random_graph(seed)
    ran: list[Any] = []
    with observing(lambda step: ran.append(step[1]) if step[0] == "start" else None):
        y.backward()
    inner = [n for n in ran if type(n).__name__ != "AccumulateGrad"]
    numbers = [n._sequence_nr() for n in inner]
    assert numbers == sorted(numbers, reverse=True)
    assert len({id(n) for n in ran}) == len(ran)
    place = {id(n): i for i, n in enumerate(ran)}
    for node in ran:  # nobody runs before what feeds it
        for below, _ in node.next_functions:
            assert below is None or place[id(below)] > place[id(node)]


@sweep("seed", SEEDS, parts=1)
def test_a_leaf_runs_as_soon_as_its_gradient_is_whole(seed):
    _leaves, y = random_graph(seed)
    ran: list[Any] = []
    with observing(lambda step: ran.append(step[1]) if step[0] == "start" else None):
        y.backward()
    for i, node in enumerate(ran):
        if type(node).__name__ != "AccumulateGrad":
            continue
        users = [
            k for k, n in enumerate(ran) if any(below is node for below, _ in n.next_functions)
        ]
        between = ran[max(users) + 1 : i]
        assert all(type(n).__name__ == "AccumulateGrad" for n in between)


WATCHERS: dict[str, Any] = {
    "nobody": lambda t: None,
    "tensor hooks": lambda t: t.register_hook(lambda g: None),
    "retain_grad": lambda t: t.retain_grad(),
    "node hooks": lambda t: t.grad_fn.register_hook(lambda gi, go: None),
    "node prehooks": lambda t: t.grad_fn.register_prehook(lambda go: None),
}


@pytest.mark.parametrize("watcher", [w for w in WATCHERS if w != "nobody"])
@sweep("seed", SEEDS[:10], parts=1)
def test_watching_changes_no_bit(seed, watcher):
    found = []
    for track in (WATCHERS["nobody"], WATCHERS[watcher]):
        leaves, y = random_graph(seed, track)
        y.backward()
        found.append([x.grad.numpy() for x in leaves if x.grad is not None])
    assert all(np.array_equal(a, b) for a, b in zip(*found, strict=True))


@sweep("seed", SEEDS[:10], parts=1)
def test_backward_grad_and_create_graph_agree(seed):
    leaves, y = random_graph(seed)
    options = {"retain_graph": True, "allow_unused": True, "materialize_grads": True}
    plain = torch.autograd.grad(y, leaves, **options)
    recorded = torch.autograd.grad(y, leaves, create_graph=True, **options)
    y.backward()
    for x, a, b in zip(leaves, plain, recorded, strict=True):
        assert torch.allclose(a, b)
        assert x.grad is None or torch.equal(x.grad, a)


@sweep("seed", SEEDS[:10], parts=1)
def test_roots_together_are_roots_one_by_one(seed):
    leaves, y = random_graph(seed)
    z = (y * y + leaves[0].sum()) * 2
    torch.autograd.backward([y, z, y], retain_graph=True)
    together = [x.grad.clone() for x in leaves if x.grad is not None]
    for x in leaves:
        x.grad = None
    for root in (y, z, y):
        root.backward(retain_graph=True)
    alone = [x.grad for x in leaves if x.grad is not None]
    assert all(torch.allclose(a, b) for a, b in zip(together, alone, strict=True))
