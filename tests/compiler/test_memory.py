"""Arrays that take over the memory of others, and those that must not."""

from __future__ import annotations

import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.compiler import buffer_donation
from gradcli.compiler.program_listing import peak
from gradcli.tracing.numpy_program import Operation
from tests.sweep import sweep

LAYERS = "y = tanh(x@w); y = tanh(y@v); mean((y@w)**2)"
KEPT = "y = tanh(x@w); y = tanh(y@v); sqrt(mean((y@w)**2))"  # its slope needs the value


def arrays() -> dict[str, Any]:
    g = np.random.default_rng(0)
    shapes = {"x": (16000, 64), "w": (64, 64), "v": (64, 64)}
    return {n: g.standard_normal(s) / 8 for n, s in shapes.items()}


def matrix(n: int = 100) -> Operation:
    return Operation("elementwise", np.exp, (), (), (n, n), np.dtype("d"))


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


def test_only_what_nobody_refers_to_is_written_over() -> None:
    o = matrix()
    values = {7: np.zeros(o.shape)}
    none = buffer_donation.Results()
    address = values[7].ctypes.data
    assert buffer_donation.array_for(o, values, {o.index: 7}, none).ctypes.data == address
    view = values[7].T
    assert buffer_donation.array_for(o, values, {o.index: 7}, none).ctypes.data != address
    del view
    assert buffer_donation.array_for(o, values, {o.index: 7}, none).ctypes.data == address
    held = values[7]
    assert buffer_donation.array_for(o, values, {o.index: 7}, none) is not held
    values[8] = np.zeros((200, 100))[:100]
    assert buffer_donation.array_for(o, values, {o.index: 8}, none) is not values[8]
    values[9] = np.zeros((3, 3))
    assert buffer_donation.array_for(o, values, {o.index: 9}, none).shape == o.shape


def address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


LARGE = 1 << 21  # elements of a result whose memory is used again


def large() -> tuple[Any, dict[str, Any]]:
    return gradcli.compile("sum(x*x)/2"), {"x": np.arange(float(LARGE))}


def test_a_loop_takes_turns_with_the_memory_of_two_results() -> None:
    f, given = large()
    found = set()
    for _ in range(6):
        _, grads = f.value_and_grad(**given)
        found.add(address(grads["x"]))
        np.testing.assert_array_equal(grads["x"], given["x"])
    assert len(found) <= 3


HOLDERS: dict[str, Any] = {
    "the array": lambda a: a,
    "a view": lambda a: a[5:9],
    "a view of a view": lambda a: a.reshape(2, -1).T[3:],
    "a tensor": gradcli.from_numpy,
    "a buffer": memoryview,
    "an export": lambda a: np.from_dlpack(a),
    "a closure": lambda a: lambda: a,
}


@sweep("name", HOLDERS, parts=1)
def test_a_result_that_somebody_holds_is_left_alone(name: str) -> None:
    f, given = large()
    _, grads = f.value_and_grad(**given)
    place = address(grads["x"])
    held = HOLDERS[name](grads.pop("x"))
    for shift in (1.0, 2.0, 3.0):
        _, more = f.value_and_grad(x=given["x"] + shift)
        assert address(more["x"]) != place
    del held


def test_threads_share_a_plan() -> None:
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


def test_a_result_that_is_watched_is_left_alone() -> None:
    f, given = large()
    _, grads = f.value_and_grad(**given)
    watched = weakref.ref(grads["x"])
    place = address(grads["x"])
    del grads
    for _ in range(3):
        _, more = f.value_and_grad(**given)
        assert watched() is None or address(more["x"]) != place


def test_a_result_that_was_changed_is_not_taken() -> None:
    f, given = large()
    for change in ("writeable", "shape"):
        _, grads = f.value_and_grad(**given)
        if change == "writeable":
            grads["x"].flags.writeable = False
        else:
            grads["x"].shape = (2, -1)
        del grads
        _, grads = f.value_and_grad(**given)
        np.testing.assert_array_equal(grads["x"], given["x"])


def test_small_results_and_those_beyond_what_is_free_are_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    f = gradcli.compile("sum(x*x)/2")
    f.value_and_grad(x=np.ones(100_000))
    monkeypatch.setattr(buffer_donation.budget, "free_memory", lambda: 1 << 26)
    g, given = large()
    g.value_and_grad(**given)
    for compiled in (f, g):
        (plan,) = compiled.plans.values()
        assert not any(plan.executor.results._kept.values())


def test_results_of_the_last_plans_are_kept() -> None:
    f = gradcli.compile("sum(x*x)/2")
    sizes = range(LARGE, LARGE + 8 * buffer_donation._PLANS, 8)
    for n in (*sizes, LARGE + 8):
        f.value_and_grad(x=np.ones(n))
    kept = [
        plan.executor.inputs[0].size
        for plan in f.plans.values()
        if any(plan.executor.results._kept.values())
    ]
    assert kept == list(sizes)
    for n in range(LARGE - 8, LARGE - 8 * buffer_donation._PLANS, -8):
        f.value_and_grad(x=np.ones(n))
    kept = [p for p in f.plans.values() if any(p.executor.results._kept.values())]
    assert len(kept) == buffer_donation._PLANS
    assert LARGE + 8 in [p.executor.inputs[0].size for p in kept]


def test_blocks_begin_with_a_line_of_the_cache() -> None:
    for shape in ((1,), (1000,), (7, 33)):
        for _ in range(8):
            found = buffer_donation.aligned(shape, np.dtype("f"))
            assert found.shape == shape and address(found) % 64 == 0 and found.flags.carray
