"""Arrays that take over the memory of others, and those that must not."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradcli
from gradcli.plan import memory
from gradcli.plan.graph import Operation
from gradcli.plan.text import peak

LAYERS = "y = tanh(x@w); y = tanh(y@v); mean((y@w)**2)"


def arrays() -> dict[str, Any]:
    g = np.random.default_rng(0)
    shapes = {"x": (4000, 64), "w": (64, 64), "v": (64, 64)}
    return {n: g.standard_normal(s) / 8 for n, s in shapes.items()}


def matrix(n: int = 100) -> Operation:
    return Operation("elementwise", np.exp, (), (), (n, n), np.dtype("d"))


def test_layers_need_their_activations_and_two_more() -> None:
    given = arrays()
    f = gradcli.compile(LAYERS)
    f.value_and_grad(**given)
    (plan,) = f.plans.values()
    rows = given["x"].nbytes
    assert peak(plan.executor) < 4.5 * rows + 2e6  # x, two activations, a gradient that arrives
    assert sum(len(step.reuse) for step in plan.executor.steps) >= 5


def test_inputs_and_results_are_left_alone() -> None:
    given = arrays()
    kept = {n: a.copy() for n, a in given.items()}
    f = gradcli.compile(LAYERS)
    _, first = f.value_and_grad(**given)
    before = {n: a.copy() for n, a in first.items()}
    f.value_and_grad(**{n: a + 1 for n, a in given.items()})
    assert all(np.array_equal(given[n], kept[n]) for n in given)
    assert all(np.array_equal(first[n], before[n]) for n in first)
    memories = [*given.values(), *first.values()]
    assert not any(np.shares_memory(a, b) for a in memories for b in memories if a is not b)


def test_only_what_nobody_refers_to_is_written_over() -> None:
    o = matrix()
    values = {7: np.zeros(o.shape)}
    address = values[7].ctypes.data
    assert memory.array_for(o, values, {o.index: 7}).ctypes.data == address
    view = values[7].T
    assert memory.array_for(o, values, {o.index: 7}).ctypes.data != address
    del view
    assert memory.array_for(o, values, {o.index: 7}).ctypes.data == address
    held = values[7]
    assert memory.array_for(o, values, {o.index: 7}) is not held
    values[8] = np.zeros((200, 100))[:100]
    assert memory.array_for(o, values, {o.index: 8}) is not values[8]
    values[9] = np.zeros((3, 3))
    assert memory.array_for(o, values, {o.index: 9}).shape == o.shape
