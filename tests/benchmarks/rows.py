"""Gradients of every row by itself: `vmap(grad(f))`, as it is and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.benchmarks.libraries import threads

COLUMNS, HIDDEN, SMALL = 8, 32, 1003
COMPILED = " compiled"
Arrays = list[np.ndarray]


def dot(m: Any, w: Any, x: Any) -> Any:
    return m.dot(w, x) ** 2


def mlp(m: Any, w: Any, b: Any, v: Any, x: Any) -> Any:
    return m.dot(v, m.tanh(w @ x + b)) ** 2


def logsumexp(m: Any, x: Any) -> Any:
    return m.logsumexp(x, 0)


# The formula, and the arguments that it is differentiated by; the last one is mapped over.
FORMULAS: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "dot": (dot, (0,)),
    "mlp": (mlp, (0, 1, 2)),
    "mlp by x": (mlp, (3,)),
    "logsumexp": (logsumexp, (0,)),
}


def inputs(name: str, n: int) -> Arrays:
    g = np.random.default_rng(15)
    x = g.standard_normal((n, COLUMNS))
    if name == "logsumexp":
        return [x]
    if name == "dot":
        return [g.standard_normal(COLUMNS), x]
    w = g.standard_normal((HIDDEN, COLUMNS)) / 3
    return [w, g.standard_normal(HIDDEN) / 8, g.standard_normal(HIDDEN) / 6, x]


def by_hand(name: str, *given: Any) -> Arrays:
    """The gradients, in NumPy."""
    x = given[-1]
    if name == "logsumexp":
        e = np.exp(x - x.max(1, keepdims=True))
        return [e / e.sum(1, keepdims=True)]
    if name == "dot":
        return [2 * (x @ given[0])[:, None] * x]
    w, b, v, _ = given
    t = np.tanh(x @ w.T + b)
    s = 2 * (t @ v)[:, None]
    inner = s * v * (1 - t * t)
    if name == "mlp by x":
        return [inner @ w]
    return [inner[:, :, None] * x[:, None, :], inner, s * t]


def make(
    peer: str, work: str, given: Arrays, *, native: bool = False, compiled: bool = False
) -> Callable[[], Any]:
    """`call() -> the gradients of every row`. native: gradcli's C; compiled: torch.compile."""
    name = work.removesuffix(COMPILED)
    formula, wrt = FORMULAS[name]
    dims = (*(None,) * (len(given) - 1), 0)
    if peer == "jax":
        import jax
        import jax.numpy as m
        from jax.scipy.special import logsumexp as entropy

        jax.config.update("jax_enable_x64", True)

        def one(*a: Any) -> Any:
            return entropy(*a) if name == "logsumexp" else formula(m, *a)

        jitted = jax.jit(jax.vmap(jax.grad(one, wrt), in_axes=dims))
        held = jax.block_until_ready([m.asarray(a) for a in given])
        return lambda: jax.block_until_ready(jitted(*held))
    if peer == "torch":
        import torch as m

        m.set_num_threads(threads())
    else:
        import gradcli as m
    func = m.func
    mapped = func.vmap(func.grad(lambda *a: formula(m, *a), wrt), in_dims=dims)
    if peer == "gradcli" and work.endswith(COMPILED):
        texts = [f"a{k}" for k in range(len(given))]
        program = m.compile(
            eval(f"lambda {', '.join(texts)}: mapped({', '.join(texts)})", {"mapped": mapped}),
            threads=threads(),
            native=native,
        )
        named = dict(zip(texts, given, strict=True))
        return lambda: program(**named)
    if compiled:
        mapped = m.compile(mapped, dynamic=False)
    tensors = [m.tensor(a) for a in given]
    return lambda: [g.numpy() for g in mapped(*tensors)]
