"""Layers, rows and compiled programs beside others: `python -m tests.benchmarks.layers [NAME…]`.

PyTorch, torch.compile, JAX and gradcli take turns in one process on one core; what is printed is gradcli's
least processor time of many turns, and as a multiple of theirs. A mark is the most that a work may take of
one peer's time.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.benchmarks.everyday import Work, on_one_thread

ROUNDS, SECONDS = 15, 0.02
TORCH, INDUCTOR, JAX = "torch", "torch.compile", "jax"
Works = dict[str, Work]
SIZES = (512, 10_000, 30_000)
MARKS: dict[str, tuple[str, float]] = {
    **{f"exp·sin with gradient, {n}": (TORCH, 0.5) for n in SIZES},
    **{f"chain of 20 with gradient, {n}": (TORCH, 0.4) for n in SIZES},
    "vmap(grad(dot²)) 5000 × 8, eager": (TORCH, 1.0),
    "vmap(grad(dot²)) 5000 × 8, compiled": (TORCH, 0.5),
    "log_softmax of rows, float64": (INDUCTOR, 0.6),
    "log_softmax of rows, float32": (INDUCTOR, 0.6),
    "conv2d with gradients, float32": (TORCH, 1.2),
    "attention with gradients, float64": (JAX, 1.0),
    "attention with gradients, float32": (JAX, 1.0),
    "LSTM of 100 steps with gradients": (JAX, 1.0),
}


def _numbers(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    return (np.random.default_rng(seed).standard_normal(shape) * 0.3).astype(dtype)


def exp_sin(m: Any, x: Any) -> Any:
    """Five operations and a sum."""
    return (m.exp(-(x**2)) * m.sin(3 * x)).sum()


def chain(m: Any, x: Any) -> Any:
    """Twenty operations and a sum."""
    y = x
    for _ in range(5):
        y = m.tanh(y * 0.5 + x) * m.exp(-y)
    return y.sum()


def attention(m: Any, q: Any, k: Any, v: Any) -> Any:
    """Softmax of q·k, times v, and the sum of squares."""
    turned = k.swapaxes(1, 2)
    scores = q @ turned * 0.125
    if hasattr(m, "softmax"):
        return ((m.softmax(scores, -1) @ v) ** 2).sum()
    import jax

    return ((jax.nn.softmax(scores, -1) @ v) ** 2).sum()


def _formula(f: Callable[..., Any], *given: Any) -> Callable[[str], Work]:
    """A formula of arrays with all its gradients."""
    return lambda peer: _FORMULAS[peer](f, given)


def _in_torch(f: Callable[..., Any], given: Any, compiled: bool = False) -> Work:
    import torch

    leaves = [torch.from_numpy(a).requires_grad_() for a in given]
    function = (lambda *a: f(torch, *a)) if not compiled else torch.compile(lambda *a: f(torch, *a))
    return lambda: torch.autograd.grad(function(*leaves), leaves)


def _in_jax(f: Callable[..., Any], given: Any) -> Work:
    import jax

    jax.config.update("jax_enable_x64", True)
    arrays = [jax.numpy.asarray(a) for a in given]
    both = jax.jit(
        jax.value_and_grad(lambda *a: f(jax.numpy, *a), argnums=tuple(range(len(given))))
    )
    return lambda: jax.block_until_ready(both(*arrays))


def _in_gradcli(f: Callable[..., Any], given: Any) -> Work:
    import gradcli

    names = "abcdefgh"[: len(given)]
    scope: dict[str, Any] = {"f": f, "m": gradcli}
    source = f"lambda {', '.join(names)}: f(m, {', '.join(names)})"
    compiled = gradcli.compile(eval(source, scope), native=True, threads=1)
    return lambda: compiled.value_and_grad(*given)


_FORMULAS: dict[str, Callable[[Any, Any], Work]] = {
    "gradcli": _in_gradcli,
    TORCH: _in_torch,
    INDUCTOR: lambda f, given: _in_torch(f, given, True),
    JAX: _in_jax,
}


def _vmap(compiled: bool, by_w: bool = False) -> Callable[[str], Work]:
    rows, w = _numbers((5000, 8), "float64"), _numbers((8,), "float64", 1)

    def make(peer: str) -> Work:
        if peer == JAX:
            import jax

            jax.config.update("jax_enable_x64", True)
            one = jax.grad(lambda w, v: jax.numpy.dot(w, v) ** 2, argnums=0 if by_w else 1)
            a, b = map(jax.numpy.asarray, (w, rows))
            call = jax.jit(jax.vmap(one, in_axes=(None, 0)))
            return lambda: jax.block_until_ready(call(a, b))
        import torch

        import gradcli

        m: Any = gradcli if peer == "gradcli" else torch
        a, b = m.tensor(w), m.tensor(rows)
        one = m.func.grad(lambda w, v: m.dot(w, v) ** 2, argnums=0 if by_w else 1)
        call = m.func.vmap(one, in_dims=(None, 0))
        if compiled and peer == "gradcli":
            call = gradcli.compile(lambda w, v: m.func.vmap(one, in_dims=(None, 0))(w, v))
        if peer == INDUCTOR:
            call = torch.compile(call)
        return lambda: call(a, b)

    return make


def _rows(dtype: str) -> Callable[[str], Work]:
    x = _numbers((2000, 1000), dtype)

    def make(peer: str) -> Work:
        if peer == JAX:
            import jax

            jax.config.update("jax_enable_x64", True)
            jitted, a = jax.jit(lambda x: jax.nn.log_softmax(x, 1)), jax.numpy.asarray(x)
            return lambda: jax.block_until_ready(jitted(a))
        if peer == "gradcli":
            import gradcli

            own = gradcli.compile(
                lambda x: gradcli.nn.functional.log_softmax(x, 1), native=True, threads=1
            )
            return lambda: own(x)
        import torch

        t = torch.from_numpy(x)
        f: Any = lambda x: torch.nn.functional.log_softmax(x, 1)  # noqa: E731
        call = torch.compile(f) if peer == INDUCTOR else f
        return lambda: call(t)

    return make


def _convolutions(dtype: str, images: bool = True) -> Callable[[str], Work]:
    x = _numbers((32, 3, 32, 32), dtype)
    a, b = _numbers((16, 3, 3, 3), dtype, 1), _numbers((32, 16, 3, 3), dtype, 2)

    def make(peer: str) -> Work:
        if peer == JAX:
            import jax

            jax.config.update("jax_enable_x64", True)

            def both(x: Any, a: Any, b: Any) -> Any:
                f = lambda x, w: jax.lax.conv_general_dilated(x, w, (1, 1), "SAME")  # noqa: E731
                return (f(jax.nn.relu(f(x, a)), b) ** 2).sum()

            given = [jax.numpy.asarray(p) for p in (x, a, b)]
            jitted = jax.jit(jax.value_and_grad(both, argnums=(0, 1, 2) if images else (1, 2)))
            return lambda: jax.block_until_ready(jitted(*given))
        import torch

        import gradcli

        m: Any = gradcli if peer == "gradcli" else torch
        leaves = [m.tensor(p).requires_grad_(images or p is not x) for p in (x, a, b)]
        asked = leaves if images else leaves[1:]

        def layers(x: Any, a: Any, b: Any) -> Any:
            f = m.nn.functional
            return (f.conv2d(f.relu(f.conv2d(x, a, padding=1)), b, padding=1) ** 2).sum()

        run = torch.compile(layers) if peer == INDUCTOR else layers
        return lambda: m.autograd.grad(run(*leaves), asked)

    return make


def _lstm(peer: str) -> Work:
    shapes = ((100, 16, 32), (256, 32), (256, 64), (256,), (256,))
    x, *weights = [_numbers(s, "float32", k) for k, s in enumerate(shapes)]
    if peer == JAX:
        import jax

        def run(x: Any, wi: Any, wh: Any, bi: Any, bh: Any) -> Any:
            def step(state: Any, row: Any) -> Any:
                h, c = state
                gates = row + h @ wh.T
                i, f, g, o = jax.numpy.split(gates, 4, 1)
                c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jax.numpy.tanh(g)
                h = jax.nn.sigmoid(o) * jax.numpy.tanh(c)
                return (h, c), h

            zero = jax.numpy.zeros((16, 64), "float32")
            return (jax.lax.scan(step, (zero, zero), x @ wi.T + bi + bh)[1] ** 2).sum()

        jitted = jax.jit(jax.value_and_grad(run, argnums=(0, 1, 2, 3, 4)))
        given = [jax.numpy.asarray(p) for p in (x, *weights)]
        return lambda: jax.block_until_ready(jitted(*given))
    import torch

    import gradcli

    m: Any = gradcli if peer == "gradcli" else torch
    layer, leaf = m.nn.LSTM(32, 64), m.tensor(x).requires_grad_()
    with m.no_grad():
        for p, w in zip(layer.parameters(), weights, strict=True):
            p.copy_(m.tensor(w))
    own = [leaf, *layer.parameters()]
    return lambda: m.autograd.grad((layer(leaf)[0] ** 2).sum(), own)


def works() -> dict[str, tuple[Callable[[str], Work], tuple[str, ...]]]:
    """(makes the call of a peer, peers) of each work."""
    every = (TORCH, INDUCTOR, JAX)
    lines = {n: _numbers((n,), "float64") for n in SIZES}
    kept = {d: [_numbers((8, 64, 64), d, k) for k in range(3)] for d in ("float64", "float32")}
    return {
        **{f"exp·sin with gradient, {n}": (_formula(exp_sin, x), every) for n, x in lines.items()},
        **{
            f"chain of 20 with gradient, {n}": (_formula(chain, x), every) for n, x in lines.items()
        },
        "vmap(grad(dot²)) 5000 × 8, eager": (_vmap(False), every),
        "vmap(grad(dot²)) 5000 × 8, compiled": (_vmap(True), every),
        "vmap(grad(dot²)) by w 5000 × 8, eager": (_vmap(False, True), every),
        **{f"log_softmax of rows, {d}": (_rows(d), every) for d in kept},
        **{f"conv2d with gradients, {d}": (_convolutions(d), every) for d in kept},
        "conv2d, of the weights alone, float32": (_convolutions("float32", False), every),
        **{
            f"attention with gradients, {d}": (_formula(attention, *a), every)
            for d, a in kept.items()
        },
        "LSTM of 100 steps with gradients": (_lstm, (TORCH, JAX)),
    }


def _seconds(work: Work, count: int) -> float:
    start = time.process_time()
    for _ in range(count):
        work()
    return (time.process_time() - start) / count


def compare(makers: dict[str, Callable[[], Work]], rounds: int = ROUNDS) -> dict[str, float]:
    """The least processor time of each, in turns."""
    calls = {peer: make() for peer, make in makers.items()}
    counts = {
        peer: max(1, int(SECONDS / max(1e-7, min(_seconds(call, 1) for _ in range(4)))))
        for peer, call in calls.items()
    }
    least = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for peer, call in calls.items():
            least[peer] = min(least[peer], _seconds(call, counts[peer]))
    return least


def main(wanted: list[str]) -> None:
    """Measure the works whose names contain a wanted word, or all, and print."""
    import torch

    torch.set_num_threads(1)
    for name, (make, peers) in works().items():
        if wanted and not any(word in name for word in wanted):
            continue
        makers = {p: (lambda p=p, make=make: make(p)) for p in ("gradcli", *peers)}
        found = compare(makers)
        mine = found.pop("gradcli")
        ratios = "   ".join(f"{peer} {mine / s:5.2f}" for peer, s in found.items())
        peer, most = MARKS.get(name, ("", float("inf")))
        word = f"   mark {most} × {peer}" if peer else ""
        print(f"{name:40} {1e6 * mine:9.1f} µs   {ratios}{word}", flush=True)


if __name__ == "__main__":
    on_one_thread()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    main(sys.argv[1:])
