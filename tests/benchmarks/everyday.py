"""The calls of teaching programs beside PyTorch's: `python -m tests.benchmarks.everyday [NAME…]`.

Both libraries take turns in one process; what is printed is the median of the ratios, the worst first.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

Work = Callable[[], Any]
ROUNDS, SECONDS = 15, 0.004


def _repeated(call: Callable[[], Any], *leaves: Any) -> Work:
    """A forward and a backward pass."""

    def both() -> None:
        for leaf in leaves:
            leaf.grad = None
        call().backward()

    return both


def works(m: Any) -> dict[str, Work]:
    """The calls, over a namespace of torch's names."""
    g, f = np.random.default_rng(0), m.nn.functional
    x, w = m.tensor(g.standard_normal((32, 27))), m.tensor(g.standard_normal((27, 10)))
    leaf, weight = x.clone().requires_grad_(), w.clone().requires_grad_()
    t, ix, rows = m.arange(32) % 27, m.arange(96).reshape(32, 3) % 27, m.arange(32)
    counts, numbers, source = m.zeros((27, 27), dtype=m.int32), m.zeros((27, 27)), m.ones(27)
    points, batch = m.tensor(g.standard_normal((300, 3))), m.tensor(g.standard_normal((4, 8, 8)))
    logs = m.tensor(g.standard_normal((50, 16, 20))).log_softmax(2)
    labels = m.tensor(g.integers(1, 20, (16, 30)))
    steps, sizes = m.full((16,), 50, dtype=m.long), m.tensor(g.integers(10, 30, (16,)))
    data, v = m.tensor(g.standard_normal((5000, 8))), m.tensor(g.standard_normal(8))
    signs, own = m.tensor(g.choice([-1.0, 1.0], 5000)), m.Generator().manual_seed(1)
    losses = m.func.vmap(
        m.func.grad(lambda v, x, y: m.log1p(m.exp(-y * (v @ x)))), in_dims=(None, 0, 0)
    )
    hessian = m.func.hessian(lambda v: m.log1p(m.exp(-signs[:200] * (data[:200] @ v))).mean())
    many, square, side = data[:100, 0], data[:5, :5], data[:5, 5:6]
    rate, slope = m.ones(20, 20, requires_grad=True), m.ones(20, 20)

    def add(tensor: Any) -> None:
        tensor[3, 4] += 1

    def put(tensor: Any, key: Any, value: Any) -> None:
        tensor[key] = value

    def step() -> None:
        with m.no_grad():
            rate.sub_(0.01 * slope)

    return {
        "cross_entropy": lambda: f.cross_entropy(x, t),
        "cross_entropy, backward": _repeated(lambda: f.cross_entropy(leaf, t), leaf),
        "nll_loss": lambda: f.nll_loss(x, t),
        "index": lambda: w[ix],
        "index, backward": _repeated(lambda: weight[ix].sum(), weight),
        "index of two, backward": _repeated(lambda: leaf[rows, t].mean(), leaf),
        "row": lambda: x[3],
        "slice": lambda: x[1:5, 2:9],
        "element": lambda: x[3, 4].item(),
        "N[i, j] += 1, integers": lambda: add(counts),
        "N[i, j] += 1": lambda: add(numbers),
        "N[i] = row": lambda: put(numbers, 3, source),
        "N[i, j] = number": lambda: put(numbers, (3, 4), 1.5),
        "N[indices] = number": lambda: put(numbers, t, 1.5),
        "randint": lambda: m.randint(0, 100, (32,)),
        "randint of a generator": lambda: m.randint(0, 100, (32,), generator=own),
        "randn of a generator": lambda: m.randn((27, 10), generator=own),
        "randn": lambda: m.randn(27, 10),
        "topk": lambda: many.topk(5),
        "topk of rows": lambda: x.topk(3),
        "sort": lambda: many.sort(),
        "largest of rows": lambda: x.max(1),
        "comparison": lambda: x > 0,
        "solve": lambda: m.linalg.solve(square, side),
        "det": lambda: m.linalg.det(square),
        "cat": lambda: m.cat([x, x]),
        "stack": lambda: m.stack([x, x]),
        "linear": lambda: f.linear(x, w.T),
        "clamp": lambda: x.clamp(-1, 1),
        "pad": lambda: f.pad(x, (1, 1)),
        "autograd.grad": lambda: m.autograd.grad((leaf * leaf).sum(), leaf),
        "cdist": lambda: m.cdist(points, points),
        "ctc_loss": lambda: f.ctc_loss(logs, labels, steps, sizes),
        "product of batches": lambda: batch @ batch,
        "step without recording": step,
        "vmap(grad)": lambda: losses(v, data, signs),
        "hessian": lambda: hessian(v),
    }


def _seconds(work: Work, count: int) -> float:
    start = time.thread_time()  # other processes do not count
    for _ in range(count):
        work()
    return (time.thread_time() - start) / count


def beside_torch(
    works: Callable[[Any], dict[str, Work]], wanted: list[str], before: float = 0
) -> None:
    """Measure the works whose names contain a wanted word, or all, and print.

    before: seconds for which both do a work before it is measured.
    """
    import torch

    import gradcli

    torch.set_num_threads(1)
    found = []
    for name, mine in works(gradcli).items():
        if wanted and not any(word in name for word in wanted):
            continue
        other = works(torch)[name]
        for work in (mine, other):
            end = time.perf_counter() + before
            while time.perf_counter() < end:
                work()
        pair = [
            (w, max(1, int(SECONDS / min(_seconds(w, 1) for _ in range(3))))) for w in (mine, other)
        ]
        turns = [[_seconds(w, count) for w, count in pair] for _ in range(ROUNDS)]
        ratio = statistics.median(a / b for a, b in turns)
        found.append((ratio, name, *(1e6 * statistics.median(s) for s in zip(*turns, strict=True))))
    for ratio, name, a, b in sorted(found, reverse=True):
        print(f"{name:28} {ratio:6.2f} ×   gradcli {a:9.1f} µs   torch {b:9.1f} µs")


def on_one_thread() -> None:
    """Start the script once more, if need be, with one thread for products: NumPy read how many at import."""
    if "OPENBLAS_NUM_THREADS" not in os.environ:
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


if __name__ == "__main__":
    on_one_thread()
    beside_torch(works, sys.argv[1:])
