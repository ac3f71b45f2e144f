"""Many operations on few elements: the tape, and a recorded program run again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.benchmarks.libraries import threads


def chain(m: Any, x: Any, w: Any, n: int) -> Any:
    """n operations, each on the last: products, sums and sines."""
    y = x
    sin = m.sin
    for _ in range(n // 3):
        y = sin(y * w + x)
    return y


def dag(m: Any, x: Any, w: Any, n: int) -> Any:
    """n operations, each on the last two."""
    a, b = x, w
    sin = m.sin
    for _ in range(n // 3):
        a, b = b, sin(a * b + a)
    return a + b


SHAPES = {"chain": chain, "dag": dag}


def _arrays(elements: int) -> tuple[np.ndarray, np.ndarray]:
    g = np.random.default_rng(3)
    return g.random(elements) + 0.5, g.random(elements) * 0.5 + 0.25


def make(peer: str, work: str, n: int, elements: int = 4) -> Callable[[], Any]:
    """`call() -> (value, grad of x)`: forward and backward."""
    kind, graph = work.split(".")
    build = SHAPES[graph]
    x0, w0 = _arrays(elements)
    if peer == "gradcli" and kind == "replay":
        import gradcli as g

        compiled = g.compile(lambda x, w: build(g, x, w, n).sum())

        def replay() -> Any:
            value, grads = compiled.value_and_grad(x=x0, w=w0)
            return value, grads["x"]

        return replay
    if peer in ("gradcli", "torch"):
        if peer == "torch":
            import torch as m

            m.set_num_threads(threads())
        else:
            import gradcli as m
        x, w = m.tensor(x0, requires_grad=True), m.tensor(w0, requires_grad=True)

        def eager() -> Any:
            x.grad = w.grad = None
            y = build(m, x, w, n).sum()
            y.backward()
            return y.item(), x.grad.numpy()

        return eager
    if peer == "autograd":
        import autograd.numpy as anp
        from autograd import value_and_grad

        both = value_and_grad(lambda x: anp.sum(build(anp, x, w0, n)))
        return lambda: both(x0)
    if peer == "mygrad":
        import mygrad as mg

        def traced() -> Any:
            x = mg.tensor(x0)
            y = build(mg, x, mg.tensor(w0), n).sum()
            y.backward()
            return y.item(), x.grad

        return traced
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    jitted = jax.jit(jax.value_and_grad(lambda x, w: jnp.sum(build(jnp, x, w, n)), argnums=(0, 1)))

    def run() -> Any:
        value, grads = jax.block_until_ready(jitted(x0, w0))
        return value, grads[0]

    return run


def reference(work: str, n: int, elements: int = 4) -> Any:
    """The value, by NumPy."""
    x, w = _arrays(elements)
    return SHAPES[work.split(".")[1]](np, x, w, n).sum()
