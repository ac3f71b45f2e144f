"""Random programs of elementwise operations, reductions and products, for tests of plans."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

import gradcli
from gradcli.engine.registry import table

table.base()
UNARY = ("sin", "cos", "exp", "tanh", "neg", "square", "sigmoid", "relu", "abs")
OTHER = (
    "root",
    "log1p",
    "cube",
    "power",
    "soft",
    "log_soft",
    "cumsum",
    "T",
    "reshape",
    "product",
    "dots",
)
BINARY = ("add", "sub", "mul", "div", "maximum", "where", "scaled")
REDUCED = ("sum0", "sum1", "mean1", "max1", "sum", "mean", "logsumexp", "kept")
SHAPES = ((7, 5), (40, 40), (300, 17), (3, 1000), (1000, 3), (129, 130))
Steps = list[tuple[str, float, float, float]]


def steps(rnd: random.Random) -> Steps:
    """What to do, with which operands (fractions of what there is)."""
    kinds = (*UNARY, *OTHER, *BINARY * 3, *REDUCED)
    count = rnd.randint(3, 14)
    return [(rnd.choice(kinds), rnd.random(), rnd.random(), rnd.random()) for _ in range(count)]


def arrays(rnd: random.Random, seed: int) -> dict[str, Any]:
    """The variables: matrices, a row, a column and a number."""
    shape, dtype = rnd.choice(SHAPES), rnd.choice(["f8", "f4"])
    g = np.random.default_rng(seed)
    found: dict[str, Any] = {
        "a": g.standard_normal(shape).astype(dtype),
        "b": g.standard_normal(shape[1]).astype(dtype),
        "c": g.standard_normal((shape[0], 1)).astype(dtype),
        "d": g.standard_normal(shape).astype(dtype),
        "s": np.dtype(dtype).type(0.7),
    }
    if rnd.random() < 0.2:
        found["a"] = np.asfortranarray(found["a"])
    return found


def apply(kind: str, x: Any, y: Any, choice: float, shape: tuple[int, int]) -> Any:
    """One step; None where it does not fit its operands."""
    r, c = shape
    if kind in UNARY or kind in ("add", "sub", "mul", "maximum"):
        function = getattr(gradcli, kind)
        return function(x) if kind in UNARY else function(x, y)
    matrix = x.ndim == 2
    if kind in ("soft", "log_soft"):
        return getattr(gradcli, f"{kind}max")(x, 1 if choice < 0.7 else 0) if matrix else None
    if kind == "T":
        return x.T if matrix and r == c else None
    if kind == "reshape":
        if tuple(x.shape) != shape:
            return None
        return (
            x.reshape(c, r).reshape(r, c) * 2 if choice < 0.5 else (x.reshape(-1) * 1.5).view(r, c)
        )
    if kind == "product" and not (matrix and y.dim() == 2 and tuple(y.shape) == shape):
        return None
    if kind == "dots" and not (matrix and y.dim() == 1):
        return None
    if kind in ("cumsum", "sum1") and not matrix:
        return None
    simple = {
        "root": lambda: (x.abs() + 0.5).sqrt(),
        "log1p": lambda: gradcli.log1p(x.abs()),
        "cube": lambda: x**3,
        "power": lambda: (x * x + 1) ** 0.5,
        "cumsum": lambda: gradcli.cumsum(x, 1) * 0.01,
        "product": lambda: (x @ y.T) @ y * 1e-3,
        "dots": lambda: (x @ y).unsqueeze(1),
        "div": lambda: x / (y * y + 1),
        "where": lambda: gradcli.where(x > y, x, y * 2),
        "scaled": lambda: x * (y.sum() * 1e-3),
        "sum0": lambda: x.sum(0),
        "sum1": lambda: x.sum(1).unsqueeze(1),
        "mean1": lambda: x.mean(-1, True),
        "max1": lambda: x.amax(-1, True),
        "sum": lambda: x.sum(),
        "mean": lambda: x.mean(),
        "logsumexp": lambda: gradcli.logsumexp(x, -1, True),
        "kept": lambda: x.sum(-1, True),
    }
    return simple[kind]()


def run(todo: Steps, tensors: list[Any]) -> Any:
    """The program's value, a number."""
    shape = tuple(tensors[0].shape)
    r, c = shape
    pool = list(tensors)
    for kind, a, b, choice in todo:
        x, y = pool[int(a * len(pool))], pool[int(b * len(pool))]
        try:
            made = apply(kind, x, y, choice, shape)
        except (RuntimeError, IndexError):  # shapes that do not fit
            continue
        if made is None or made.dim() > 2:
            continue
        if made.dim() < 2 or tuple(made.shape) in (shape, (r, 1), (1, c), (1, 1)):
            pool.append(made)
    out = pool[-1]
    for p in pool[len(tensors) + 1 :: 3]:
        out = out + p
    return out.sum() if out.dim() else out
