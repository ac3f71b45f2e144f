"""Native code beside torch.compile, JAX, numexpr and our own blocks: what is measured, and the marks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.benchmarks import libraries, rows
from tests.benchmarks.problems import PROBLEMS

ALONE = " alone"  # on one thread
PEERS = ("inductor", "blocks", "torch", "jax")
FIRST = {"first inductor": 0.25, "first blocks": 0.7}
# work: sizes, dtypes, and the most that it may take of the peers' time.
WORKS: dict[str, tuple[tuple[int, ...], tuple[str, ...], dict[str, float]]] = {
    "exp_sin": (
        (10**5, 10**6, 10**7, 10**8),
        ("float64",),
        {"inductor": 0.6, "jax": 0.2, "blocks": 0.2},
    ),
    "chain30": ((10**7,), ("float64", "float32"), {"inductor": 0.6, "jax": 0.35, "blocks": 0.35}),
    "softmax_cross_entropy": (
        (10**4,),
        ("float64",),
        {"inductor": 0.9, "jax": 0.6, "blocks": 0.6},
    ),
    **dict.fromkeys(
        ("logistic", "black_scholes"),
        ((10**7,), ("float64",), {"inductor": 0.7, "jax": 0.35, "blocks": 0.35}),
    ),
    **{
        f"rows: {name}": ((10**5,), ("float64",), {"inductor": 0.9, "jax": 0.8, "blocks": 0.6})
        for name in rows.FORMULAS
    },
}


def works() -> Iterator[tuple[str, int, str, int, dict[str, float], tuple[str, ...]]]:
    """(name, size, dtype, threads, marks, peers) of each work."""
    for name, (sizes, dtypes, marks) in WORKS.items():
        more = ("numexpr",) if name in PROBLEMS and PROBLEMS[name].numexpr else ()
        for count, suffix in ((1, ALONE), (2, "")):
            for size in sizes:
                for dtype in dtypes:
                    first = FIRST if size == 10**7 else {}
                    yield name + suffix, size, dtype, count, {**marks, **first}, (*PEERS, *more)


def problem_of(name: str) -> str:
    """The problem, or the work of rows, that a name stands for."""
    return name.removesuffix(ALONE).removeprefix("rows: ")


def make(peer: str, problem: Any, arrays: Any) -> Callable[[], Any]:
    """`call() -> (value, gradients)`, as `libraries` has it."""
    if peer == "gradcli":
        return libraries.gradcli(problem, arrays, native=True)
    if peer == "blocks":
        return libraries.gradcli(problem, arrays)
    return (
        libraries.inductor(problem, arrays) if peer == "inductor" else _other(peer)(problem, arrays)
    )


def _other(peer: str) -> Any:
    return libraries.LIBRARIES[peer]


def make_rows(peer: str, name: str, given: Any) -> Callable[[], Any]:
    """`call() -> the gradients of every row`."""
    if peer == "inductor":
        return rows.make("torch", name, given, compiled=True)
    work = name + rows.COMPILED if peer in ("gradcli", "blocks") else name
    return rows.make("gradcli" if peer == "blocks" else peer, work, given, native=peer == "gradcli")


__all__ = ["ALONE", "WORKS", "make", "make_rows", "problem_of", "works"]
