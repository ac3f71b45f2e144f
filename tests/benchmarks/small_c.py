"""Programs of numbers and small arrays as one C function, beside what is made for formulas.

casadi and ddx-ad read and write buffers that belong to them; gradcli makes its results anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

TEN, CHAIN = "ten operations", "sparse hessian"
POINT = (0.3, 0.7, 1.1)
# work: sizes, the most that it may take of the peers' time, and the largest size that each can do.
WORKS: dict[str, tuple[tuple[int, ...], dict[str, float], dict[str, int]]] = {
    TEN: ((3,), {"ddx-ad": 1.0}, {"casadi": 3, "ddx-ad": 3, "jax": 3}),
    CHAIN: ((200, 3000, 10**5), {"casadi": 1.2}, {"casadi": 10**5, "ddx-ad": 200, "jax": 200}),
}


def works() -> Iterator[tuple[str, int, dict[str, float], tuple[str, ...]]]:
    """(name, size, marks, peers) of each work."""
    for name, (sizes, marks, most) in WORKS.items():
        for size in sizes:
            yield name, size, marks, tuple(p for p, n in most.items() if size <= n)


def ten(m: Any, x: Any, y: Any, z: Any) -> Any:
    """Ten operations on three numbers."""
    return m.exp(-(x * y)) * m.sin(z) + x**2 / (1 + y * y) - z


def chain(x: Any) -> Any:
    """Rosenbrock's function of many variables, an array of terms."""
    return 100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2


def point(size: int) -> Any:
    """Where a Hessian is taken."""
    return np.random.default_rng(0).standard_normal(size)


def wanted(name: str, size: int) -> Any:
    """The value and the gradient, or the Hessian's diagonal, by hand."""
    if name == TEN:
        x, y, z = POINT
        e, d = np.exp(-x * y), 1 + y * y
        value = e * np.sin(z) + x**2 / d - z
        by_y = -x * e * np.sin(z) - 2 * y * x**2 / d**2
        return np.array(
            [value, -y * e * np.sin(z) + 2 * x / d, by_y, e * np.cos(z) - 1], np.float64
        )
    x, made = point(size), np.zeros(size)
    made[:-1] += 1200 * x[:-1] ** 2 - 400 * x[1:] + 2
    made[1:] += 200
    return made


def make(peer: str, name: str, size: int) -> Callable[[], Any]:
    """`call() -> ` what `told` reads."""
    return _MAKERS[peer, name](size)


def told(peer: str, name: str, found: Any) -> Any:
    """A result as `wanted` has it."""
    if name == TEN:
        value, slopes = found
        slopes = slopes.values() if isinstance(slopes, dict) else np.ravel(slopes)
        return np.array([float(np.ravel(value)[0]), *map(float, slopes)])
    if peer in ("gradcli", "casadi"):
        rows, columns, values = found if peer == "casadi" else (*found.indices.T, found.values)
        return np.asarray(values)[np.asarray(rows) == np.asarray(columns)]
    return np.diagonal(np.asarray(found))


def _gradcli_ten(size: int) -> Callable[[], Any]:
    import gradcli as g

    compiled = g.compile(lambda x, y, z: ten(g, x, y, z), native=True)
    compiled.value_and_grad(*POINT)
    function, (x, y, z) = compiled.value_and_grad, POINT
    return lambda: function(x, y, z)


def _gradcli_chain(size: int) -> Callable[[], Any]:
    import gradcli as g

    g.set_default_dtype(g.float64)
    compiled, x = g.compile(lambda x: chain(x).sum(), native=True, threads=1), point(size)
    return lambda: compiled.sparse_hessian(x)


def _casadi(build: Callable[[Any, Any], list[Any]], x: Any) -> tuple[Callable[[], Any], list[Any]]:
    import casadi as ca

    symbols = ca.SX.sym("x", x.size)
    function = ca.Function("f", [symbols], build(ca, symbols))
    held, run = function.buffer()
    results = [np.zeros(function.nnz_out(k)) for k in range(function.n_out())]
    held.set_arg(0, memoryview(x))
    for k, result in enumerate(results):
        held.set_res(k, memoryview(result))
    sparsities = [function.sparsity_out(k) for k in range(function.n_out())]
    return run, [held, *results, *sparsities, function, x]  # memory that the call reads and writes


def _casadi_ten(size: int) -> Callable[[], Any]:
    def build(ca: Any, v: Any) -> list[Any]:
        value = ten(ca, v[0], v[1], v[2])
        return [value, ca.gradient(value, v)]

    run, held = _casadi(build, np.array(POINT))
    result = held[1:3]

    def call() -> Any:
        run()
        return result

    call.__dict__["keeps"] = held
    return call


def _casadi_chain(size: int) -> Callable[[], Any]:
    run, held = _casadi(lambda ca, v: [ca.hessian(ca.sum1(chain(v)), v)[0]], point(size))
    rows, columns = held[2].get_triplet()
    result = (rows, columns, held[1])

    def call() -> Any:
        run()
        return result

    call.__dict__["keeps"] = held
    return call


def _ddx(build: Callable[[Any], Any], x: Any, want: str) -> Any:
    import ddx

    equation = ddx.equation(lambda: build(ddx))
    call = equation.buffer(x, want=getattr(ddx.Want, want))
    return equation, call


def _ddx_ten(size: int) -> Callable[[], Any]:
    equation, run = _ddx(lambda d: ten(d, *map(d.var, "xyz")), [*POINT], "JACOBIAN")

    def call() -> Any:
        run()
        return run.value, run.jacobian

    call.__dict__["keeps"] = equation
    return call


def _ddx_chain(size: int) -> Callable[[], Any]:
    def build(d: Any) -> Any:
        v = [d.var(f"x{k:06d}") for k in range(size)]
        total = None
        for a, b in pairwise(v):
            term = 100 * (b - a**2) ** 2 + (1 - a) ** 2
            total = term if total is None else total + term
        return total

    equation, run = _ddx(build, point(size), "HESSIAN")

    def call() -> Any:
        run()
        return run.hessian

    call.__dict__["keeps"] = equation
    return call


def _jax(function: Callable[[Any], Any], *given: Any) -> Callable[[], Any]:
    import jax

    jax.config.update("jax_enable_x64", True)
    compiled = jax.jit(function(jax))
    arrays = [jax.numpy.asarray(a) for a in given]
    return lambda: jax.block_until_ready(compiled(*arrays))


def _jax_ten(size: int) -> Callable[[], Any]:
    def both(jax: Any) -> Any:
        return jax.value_and_grad(lambda x, y, z: ten(jax.numpy, x, y, z), argnums=(0, 1, 2))

    return _jax(both, *POINT)


def _jax_chain(size: int) -> Callable[[], Any]:
    return _jax(lambda jax: jax.hessian(lambda x: chain(x).sum()), point(size))


_MAKERS: dict[tuple[str, str], Callable[[int], Callable[[], Any]]] = {
    ("gradcli", TEN): _gradcli_ten,
    ("gradcli", CHAIN): _gradcli_chain,
    ("casadi", TEN): _casadi_ten,
    ("casadi", CHAIN): _casadi_chain,
    ("ddx-ad", TEN): _ddx_ten,
    ("ddx-ad", CHAIN): _ddx_chain,
    ("jax", TEN): _jax_ten,
    ("jax", CHAIN): _jax_chain,
}

__all__ = ["WORKS", "make", "point", "told", "wanted", "works"]
