"""Derivatives of derivatives beside PyTorch's: `python -m tests.benchmarks.orders [NAME…]`.

Both libraries take turns in one process; what is printed are the least processor times of many turns.
`--against FOLDER`, first: the gradcli of that folder takes turns with this one, in a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.everyday import Work, _repeated, on_one_thread

ROUNDS, SECONDS = 25, 0.004


def _orders(m: Any, f: Any, x: Any, count: int) -> Work:
    """Derivative after derivative of the sum, each of the recorded one before."""

    def run() -> Any:
        y = f(x)
        for k in range(count):
            (y,) = m.autograd.grad(y.sum(), x, create_graph=k + 1 < count)
        return y

    return run


def _nested(m: Any, f: Any, x: Any, count: int) -> Work:
    """`grad` of `grad` of … of the sum."""
    g = lambda x: f(x).sum()  # noqa: E731
    for _ in range(count):
        g = (lambda inner: m.func.grad(lambda x: inner(x).sum()))(g)
    return lambda: g(x)


def works(m: Any) -> dict[str, Work]:
    """The calls, over a namespace of torch's names."""
    g, func = np.random.default_rng(0), m.func
    number = m.tensor(0.7, dtype=m.float64, requires_grad=True)
    x = m.tensor(g.standard_normal(10), requires_grad=True)
    fixed = x.detach()
    formulas = {
        "sin(x)*exp(x)": lambda x: m.sin(x) * m.exp(x),
        "x**3*tanh(x)": lambda x: x**3 * m.tanh(x),
        "exp(-x*x)/(1+x*x)": lambda x: m.exp(-x * x) / (1 + x * x),
    }
    found: dict[str, Work] = {}
    for name, f in formulas.items():
        for count in (1, 2, 3, 4, 5, 6, 7, 8):
            if count < 7 or name == "sin(x)*exp(x)":
                found[f"{name}, order {count}"] = _orders(m, f, number, count)
        found[f"{name} of 10, order 3"] = _orders(m, f, x, 3)
        for count in (1, 2, 3, 4):
            found[f"{name}, func.grad of {count}"] = _nested(m, f, fixed, count)
    first = formulas["sin(x)*exp(x)"]
    found["forward"] = lambda: first(number)
    found["forward, backward"] = _repeated(lambda: first(number), number)
    found["autograd.grad"] = lambda: m.autograd.grad(first(number), number)

    w1, w2 = m.tensor(g.standard_normal((10, 16))), m.tensor(g.standard_normal((16, 1)))
    b1 = m.tensor(g.standard_normal(16))
    leaves = [t.clone().requires_grad_() for t in (w1, b1, w2)]
    points = m.tensor(g.standard_normal((8, 10)), requires_grad=True)

    def penalty() -> None:
        for leaf in leaves:
            leaf.grad = None
        y = m.tanh(points @ leaves[0] + leaves[1]) @ leaves[2]
        (slope,) = m.autograd.grad(y.sum(), points, create_graph=True)
        (y.mean() + ((slope.norm(dim=1) - 1) ** 2).mean()).backward(inputs=leaves)

    def rosenbrock(x: Any) -> Any:
        return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()

    v = m.tensor(g.standard_normal(10))

    def product() -> Any:
        (slope,) = m.autograd.grad(rosenbrock(x), x, create_graph=True)
        return m.autograd.grad(slope @ v, x)

    found["gradient penalty of an MLP"] = penalty
    found["Hessian-vector product"] = product
    found["hvp by func: vjp of grad"] = lambda: func.vjp(func.grad(rosenbrock), fixed)[1](v)
    found["hvp by func: jvp of grad"] = lambda: func.jvp(func.grad(rosenbrock), (fixed,), (v,))
    found["jacrev of 10"] = lambda: func.jacrev(lambda x: m.sin(x) * x.sum())(fixed)
    found["jacfwd of 10"] = lambda: func.jacfwd(lambda x: m.sin(x) * x.sum())(fixed)
    found["func.hessian of 10"] = lambda: func.hessian(rosenbrock)(fixed)
    found["jacrev(jacrev) of 10"] = lambda: func.jacrev(func.jacrev(rosenbrock))(fixed)

    rows, weights = m.tensor(g.standard_normal((5000, 8))), m.tensor(g.standard_normal(8))
    dot = func.vmap(func.grad(lambda v: m.dot(weights, v) ** 2))
    by_w = func.vmap(func.grad(lambda w, v: m.dot(w, v) ** 2), in_dims=(None, 0))
    few = rows[:3]
    found["vmap(grad(dot²)) 5000 × 8"] = lambda: dot(rows)
    found["vmap(grad(dot²)) by w 5000 × 8"] = lambda: by_w(weights, rows)
    found["vmap(grad(dot²)) 3 × 8"] = lambda: dot(few)
    found["vmap(dot²) 5000 × 8"] = lambda: func.vmap(lambda v: m.dot(weights, v) ** 2)(rows)
    found["vmap(sin) 3 × 8"] = lambda: func.vmap(m.sin)(few)
    logistic = func.vmap(func.grad(lambda v: m.log1p(m.exp(-(weights @ v)))))
    found["vmap(grad(log1p(exp(-dot)))) 5000 × 8"] = lambda: logistic(rows)
    net = func.vmap(func.grad(lambda v: m.tanh(v @ w1[:8] + b1).sum()))
    found["vmap(grad(mlp)) 5000 × 8"] = lambda: net(rows)
    return found


def _seconds(work: Work, count: int) -> float:
    start = time.process_time()
    for _ in range(count):
        work()
    return (time.process_time() - start) / count


def _counted(work: Work) -> int:
    return max(1, int(SECONDS / max(1e-7, min(_seconds(work, 1) for _ in range(3)))))


def serve() -> None:
    """Answer names on standard input with the seconds of a call."""
    import gradcli

    mine = works(gradcli)
    counts: dict[str, int] = {}
    for line in sys.stdin:
        name = json.loads(line)
        if name not in counts:
            counts[name] = _counted(mine[name])
        print(_seconds(mine[name], counts[name]), flush=True)


class _Other:
    """A process with the gradcli of a folder."""

    def __init__(self, folder: str) -> None:
        here = Path(__file__).parents[2]
        code = (
            f"import sys; sys.path.insert(0, {folder!r}); import gradcli; "
            f"assert gradcli.__file__.startswith({folder!r}); sys.path[0] = {str(here)!r}; "
            "from tests.benchmarks import orders; orders.serve()"
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd="/",
        )

    def seconds(self, name: str) -> float:
        assert self.process.stdin is not None and self.process.stdout is not None
        print(json.dumps(name), file=self.process.stdin, flush=True)
        return float(self.process.stdout.readline())


def main(wanted: list[str]) -> None:
    """Measure the works whose names contain a wanted word, or all, and print."""
    import torch

    import gradcli

    other = None
    if wanted[:1] == ["--against"]:
        other, wanted = _Other(str(Path(wanted[1]).resolve())), wanted[2:]
    torch.set_num_threads(1)
    mine, theirs = works(gradcli), works(torch)
    for name, work in mine.items():
        if wanted and not any(word in name for word in wanted):
            continue
        a, b = _counted(work), _counted(theirs[name])
        least = [float("inf")] * 3
        for _ in range(ROUNDS):
            turn = (
                _seconds(work, a),
                _seconds(theirs[name], b),
                other.seconds(name) if other is not None else float("nan"),
            )
            least = [min(p) for p in zip(least, turn, strict=True)]
        ours, torchs, before = least
        against = f"   {ours / before:5.2f} × before" if other is not None else ""
        print(
            f"{name:38} {ours / torchs:6.2f} × torch   gradcli {1e6 * ours:9.1f} µs   "
            f"torch {1e6 * torchs:9.1f} µs{against}",
            flush=True,
        )


if __name__ == "__main__":
    on_one_thread()
    main(sys.argv[1:])
