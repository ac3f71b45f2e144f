"""Threads: passes at once over separate and shared graphs lose nothing, and modes are a thread's own."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

import gradcli
import gradcli as torch
from gradcli.engine.system import locks
from gradcli.torch.autograd import forward_ad

THREADS, PASSES = 8, 25


def in_threads(work: Callable[[int], Any], count: int = THREADS) -> list[Any]:
    """Start `work(i)` in `count` threads at the same moment; their results, or what they raised."""
    results: list[Any] = [None] * count
    start = threading.Barrier(count)

    def run(i: int) -> None:
        start.wait()
        try:
            results[i] = work(i)
        except Exception as error:
            results[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return results


def leaf(*values: float) -> Any:
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def test_separate_graphs():
    def work(i: int) -> Any:
        x = leaf(i + 1.0, 2.0)
        for _ in range(PASSES):
            (x.exp() * x).sum().backward()
        return x.grad

    for i, grad in enumerate(in_threads(work)):
        x = leaf(i + 1.0, 2.0)
        assert torch.allclose(grad, PASSES * ((x + 1) * x.exp()).detach())


def test_separate_graphs_of_one_leaf():
    x = leaf(1.0, 2.0)

    def work(i: int) -> None:
        for _ in range(PASSES):
            (x * (i + 1)).sum().backward()

    in_threads(work)
    assert x.grad.tolist() == [PASSES * sum(range(1, THREADS + 1))] * 2


@pytest.mark.parametrize(
    "prepare",
    [
        lambda x, y: None,
        lambda x, y: x.register_hook(lambda g: g * 1),
        lambda x, y: y.retain_grad(),
        lambda x, y: y.grad_fn.register_hook(lambda gi, go: None),
        lambda x, y: x.register_post_accumulate_grad_hook(lambda t: None),
    ],
    ids=["plain", "tensor hook", "retain_grad", "node hook", "post accumulate hook"],
)
def test_one_graph(prepare):
    x = leaf(1.0, 2.0)
    y = x * x
    prepare(x, y)
    z = (y * y).sum()
    in_threads(lambda i: [z.backward(retain_graph=True) for _ in range(PASSES)])
    assert x.grad.tolist() == [THREADS * PASSES * 4.0, THREADS * PASSES * 32.0]
    if y.retains_grad:
        assert y.grad.tolist() == [THREADS * PASSES * 2.0, THREADS * PASSES * 8.0]


def test_one_graph_that_is_freed():
    x = leaf(1.0, 2.0)
    z = (x.exp() * x).sum()
    failed = [r for r in in_threads(lambda i: z.backward()) if r is not None]
    assert all("backward through the graph a second time" in str(error) for error in failed)
    once = ((x + 1) * x.exp()).detach()
    assert torch.allclose(x.grad / once, (x.grad / once)[0].round() * torch.ones(2).double())


def test_grad_of_one_graph():
    x = leaf(1.0, 2.0)
    z = (x**3).sum()

    def work(i: int) -> list[float]:
        (first,) = torch.autograd.grad(z, x, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), x)
        return second.tolist()

    assert in_threads(work) == [[6.0, 12.0]] * THREADS
    assert x.grad is None


def test_a_pass_inside_a_pass_in_every_thread():
    x = leaf(2.0)

    square = torch.enable_grad()(lambda t: t * t)

    def nested(i: int) -> float:
        inner = leaf(2.0)
        y = x * 3
        y.register_hook(lambda g: square(inner).backward())
        y.backward()
        return inner.grad.item()

    assert in_threads(nested) == [4.0] * THREADS
    assert x.grad.item() == 3.0 * THREADS


def test_an_error_stays_in_its_thread():
    x = leaf(1.0)

    def refuse(grad: Any) -> None:
        raise ValueError("no")

    def work(i: int) -> None:
        y = x * 2
        if i % 2:
            y.register_hook(refuse)
        y.backward()

    results = in_threads(work)
    assert [type(r) for r in results] == [type(None), ValueError] * (THREADS // 2)
    assert x.grad.item() == THREADS
    (x * 2).backward()  # the engine is as it was
    assert x.grad.item() == THREADS + 2


def test_modes_belong_to_a_thread():
    x = leaf(1.0)
    modes = [torch.no_grad, torch.enable_grad, torch.inference_mode]

    def work(i: int) -> list[bool]:
        with modes[i % 3]():
            return [(x * 2).requires_grad for _ in range(50)]

    with torch.no_grad():
        assert in_threads(work) == [[i % 3 == 1] * 50 for i in range(THREADS)]
        assert not torch.is_grad_enabled()
    assert (x * 2).requires_grad


def test_saved_tensor_hooks_belong_to_a_thread():
    x = leaf(3.0)

    def work(i: int) -> int:
        packed: list[Any] = []
        hooks = torch.autograd.graph.saved_tensors_hooks(
            lambda t: packed.append(t) or t, lambda t: t
        )
        if i % 2:
            with hooks:
                (x * x).backward()
        else:
            (x * x).backward()
        return len(packed)

    assert in_threads(work) == [0, 2] * (THREADS // 2)
    assert x.grad.item() == 6.0 * THREADS


def test_writes_and_views_of_one_base():
    base = torch.zeros(THREADS, 100)
    tracked = base.clone().requires_grad_() * 1

    def work(i: int) -> None:
        for k in range(100):
            base[i, k].add_(i)
            tracked[i].view(10, 10)[0]

    assert in_threads(work) == [None] * THREADS
    assert base._version == THREADS * 100
    assert base.sum(1).tolist() == [100.0 * i for i in range(THREADS)]


def test_a_write_in_another_thread_is_noticed():
    x = leaf(1.0, 2.0)
    w = torch.ones(2, dtype=torch.float64)
    y = (x * w).sum()
    in_threads(lambda i: w.mul_(2), count=1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_finds_every_lock_free() -> None:
    """Whatever another thread holds at the time of the fork, the child draws and goes backward."""
    torch.rand(1)  # what is imported on first use has been
    generator = torch.default_generator
    held = [generator.lock, generator._source._bit_generator.lock, *locks._LOCKS]
    taken, done = threading.Event(), threading.Event()

    def hold() -> None:
        for lock in held:
            lock.acquire()
        taken.set()
        done.wait()
        for lock in reversed(held):
            lock.release()

    holder = threading.Thread(target=hold)
    holder.start()
    taken.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        x = torch.rand(3).requires_grad_()
        (x * x).sum().backward()
        os._exit(0 if x.grad is not None else 1)
    done.set()
    holder.join()
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("mode", ["forward", "reverse", None])
def test_jacobians_in_every_thread(mode: str | None):
    def work(i: int) -> list[Any]:
        return [
            gradcli.jacobian("x*y.sum()", x=[1.0, 2.0], y=[i, 1.0], wrt="x", mode=mode).tolist()
            for _ in range(PASSES)
        ]

    for i, found in enumerate(in_threads(work)):
        assert found == [[[i + 1.0, 0.0], [0.0, i + 1.0]]] * PASSES


def test_levels_of_tangents_belong_to_a_thread():
    x = leaf(3.0)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.ones(1))

        def work(i: int) -> tuple[Any, ...]:
            with forward_ad._set_fwd_grad_enabled(i % 2 == 0), forward_ad.dual_level():
                own = forward_ad.make_dual(torch.tensor(float(i)), torch.ones(()))
                made = forward_ad.unpack_dual(own * own).tangent
                return forward_ad.unpack_dual(dual).tangent, None if made is None else made.item()

        found = in_threads(work)
        assert found == [(None, 2.0 * i if i % 2 == 0 else None) for i in range(THREADS)]
        assert forward_ad.unpack_dual(dual * dual).tangent.item() == 6.0
