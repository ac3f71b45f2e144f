"""Arrays that take over the memory of others, and those that must not."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.columns.compiler.program_listing import peak
from gradcli.engine.system import page_pool

LAYERS = "y = tanh(x@w); y = tanh(y@v); mean((y@w)**2)"
KEPT = "y = tanh(x@w); y = tanh(y@v); sqrt(mean((y@w)**2))"  # its slope needs the value


def arrays() -> dict[str, Any]:
    g = np.random.default_rng(0)
    shapes = {"x": (16000, 64), "w": (64, 64), "v": (64, 64)}
    return {n: g.standard_normal(s) / 8 for n, s in shapes.items()}


@pytest.mark.parametrize(
    ("program", "memory", "most"), [(LAYERS, None, 2), (KEPT, None, 5), (KEPT, "low", 2)]
)
def test_layers_need_no_activations_but_those_that_wait_for_the_value(
    program: str, memory: str | None, most: float
) -> None:
    given = arrays()
    f = gradcli.compile(program, threads=2, memory=memory)
    found, slopes = f.value_and_grad(**given)
    wanted, others = gradcli.compile(program).value_and_grad(**given)
    assert found == wanted
    assert all(np.array_equal(slopes[n], others[n]) for n in given)
    (plan,) = f.plans.values()
    if memory is None and program is KEPT:
        assert peak(plan.executor) > 4 * given["x"].nbytes
    assert peak(plan.executor) < most * given["x"].nbytes + 5e6


def test_memory_is_low_or_not_spoken_of() -> None:
    with pytest.raises(ValueError, match="memory must be None or 'low', got 'high'"):
        gradcli.compile(LAYERS, memory="high")


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


def address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Results of 2 MB are large ones; what holds one is in tests/engine/system/test_page_pool.py."""
    monkeypatch.setattr(page_pool, "LARGE", 1 << 20)
    page_pool._lent.clear()
    yield
    page_pool._lent.clear()


LARGE = 1 << 18  # elements of a result whose memory is used again


def large() -> tuple[Any, dict[str, Any]]:
    return gradcli.compile("sum(x*x)/2"), {"x": np.arange(float(LARGE))}


def test_a_loop_takes_turns_with_the_memory_of_two_results(small: None) -> None:
    f, given = large()
    found = set()
    for _ in range(6):
        _, grads = f.value_and_grad(**given)
        found.add(address(grads["x"]))
        np.testing.assert_array_equal(grads["x"], given["x"])
    assert len(found) <= 3


def test_threads_share_a_plan(small: None) -> None:
    f, given = large()
    f.value_and_grad(**given)

    def work(k: int) -> Any:
        return k, f.value_and_grad(x=given["x"] + k)[1]["x"]

    with ThreadPoolExecutor(4) as pool:
        for _ in range(2):
            found = list(pool.map(work, range(5)))
            for k, grad in found:
                np.testing.assert_array_equal(grad, given["x"] + k)
            assert len({address(grad) for _, grad in found}) == len(found)
            del found, grad


def test_blocks_begin_with_a_line_of_the_cache() -> None:
    for shape in ((1,), (1000,), (7, 33)):
        for _ in range(8):
            found = page_pool.aligned(shape, np.dtype("f"))
            assert found.shape == shape and address(found) % 64 == 0 and found.flags.carray
