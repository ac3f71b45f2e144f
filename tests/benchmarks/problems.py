"""What is computed: inputs, a float64 reference, and each library's way of saying it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]
CHAIN = 6  # times five operations


def _rng() -> Any:
    return np.random.default_rng(20)


def one_vector(n: int, dtype: str) -> Arrays:
    return {"x": _rng().standard_normal(n).astype(dtype)}


def logits(n: int, dtype: str) -> Arrays:
    g = _rng()
    return {"x": g.standard_normal((n, 1000)).astype(dtype)}


def targets(n: int) -> np.ndarray:
    return (np.arange(n) * 7919) % 1000


def matrix_and_row(n: int, dtype: str) -> Arrays:
    g = _rng()
    return {"x": g.standard_normal((n, 1000)).astype(dtype), "b": g.random(1000).astype(dtype)}


def points(n: int, dtype: str) -> Arrays:
    g = _rng()
    found = {"x": g.standard_normal(n), "y": g.choice([-1.0, 1.0], n)}
    found |= {"w": np.array([0.7]), "b": np.array([-0.2])}
    return {name: a.astype(dtype) for name, a in found.items()}


def options(n: int, dtype: str) -> Arrays:
    g = _rng()
    ranges = {"s": (80, 120), "k": (80, 120), "t": (0.2, 2), "r": (0.01, 0.05), "v": (0.1, 0.5)}
    return {name: g.uniform(*ends, n).astype(dtype) for name, ends in ranges.items()}


def layers(n: int, dtype: str) -> Arrays:
    g = _rng()
    sizes = [(256, 256), (256, 256), (256, 10)]
    found = {"x": g.standard_normal((n, 256)).astype(dtype)}
    for k, (rows, columns) in enumerate(sizes):
        found[f"w{k}"] = (g.standard_normal((rows, columns)) / 16).astype(dtype)
        found[f"b{k}"] = g.standard_normal(columns).astype(dtype) / 8
    return found


# -- the formulas, over a namespace of NumPy's names (`m`) -----------------------------------------
def exp_sin(m: Any, x: Any) -> Any:
    return m.sum(m.exp(-(x**2)) * m.sin(3 * x))


def chain(m: Any, x: Any) -> Any:
    y = x
    for _ in range(CHAIN):
        y = m.tanh(y * 0.9 + 0.1) * x - 0.2
    return m.sum(y)


def logistic(m: Any, x: Any, y: Any, w: Any, b: Any) -> Any:
    return m.mean(m.log1p(m.exp(-y * (w * x + b))))


def normal(m: Any, z: Any) -> Any:
    """The normal distribution function."""
    erf = m.erf if hasattr(m, "erf") else importlib.import_module("jax.scipy.special").erf
    return 0.5 * (1 + erf(z * 0.5**0.5))


def black_scholes(m: Any, s: Any, k: Any, t: Any, r: Any, v: Any) -> Any:
    """The sum of the prices of calls: its gradients are all their greeks."""
    d = (m.log(s / k) + (r + v * v / 2) * t) / (v * m.sqrt(t))
    return m.sum(s * normal(m, d) - k * m.exp(-r * t) * normal(m, d - v * m.sqrt(t)))


def dot(m: Any, x: Any) -> Any:
    return 2 * m.dot(x, x)


def broadcast(m: Any, x: Any, b: Any) -> Any:
    return m.mean(x + b)


def network(m: Any, x: Any, **p: Any) -> Any:
    y = m.tanh(x @ p["w0"] + p["b0"])
    y = m.tanh(y @ p["w1"] + p["b1"])
    y = y @ p["w2"] + p["b2"]
    return m.mean(y * y)


# -- references: the gradients by hand --------------------------------------------------------------
def exp_sin_by_hand(x: Any) -> tuple[Any, Arrays]:
    e, s = np.exp(-(x**2)), np.sin(3 * x)
    return (e * s).sum(), {"x": e * (3 * np.cos(3 * x) - 2 * x * s)}


def chain_by_hand(x: Any) -> tuple[Any, Arrays]:
    y, slope = x, np.ones_like(x)
    for _ in range(CHAIN):
        t = np.tanh(y * 0.9 + 0.1)
        y, slope = t * x - 0.2, t + x * (1 - t * t) * 0.9 * slope
    return y.sum(), {"x": slope}


def logistic_by_hand(x: Any, y: Any, w: Any, b: Any) -> tuple[Any, Arrays]:
    z = -y * (w * x + b)
    e = np.exp(z)
    g = e / (1 + e) / x.size
    own = -g * y
    return np.log1p(e).mean(), {
        **{"x": own * w, "y": -g * (w * x + b)},
        **{"w": (own * x).sum(0, keepdims=True), "b": own.sum(0, keepdims=True)},
    }


def black_scholes_by_hand(s: Any, k: Any, t: Any, r: Any, v: Any) -> tuple[Any, Arrays]:
    from scipy.special import ndtr

    root, less = np.sqrt(t), k * np.exp(-r * t)
    d = (np.log(s / k) + (r + v * v / 2) * t) / (v * root)
    n, m = ndtr(d), ndtr(d - v * root)
    slope = s * np.exp(-d * d / 2) / np.sqrt(2 * np.pi)
    return (s * n - less * m).sum(), {
        **{"s": n, "k": -less * m / k, "t": slope * v / (2 * root) + r * less * m},
        **{"r": t * less * m, "v": slope * root},
    }


def dot_by_hand(x: Any) -> tuple[Any, Arrays]:
    return 2 * x @ x, {"x": 4 * x}


def broadcast_by_hand(x: Any, b: Any) -> tuple[Any, Arrays]:
    every = np.full_like(x, 1 / x.size)
    return (x + b).mean(), {"x": every, "b": every.sum(0)}


def entropy_by_hand(x: Any) -> tuple[Any, Arrays]:
    rows, t = np.arange(len(x)), targets(len(x))
    z = x - x.max(1, keepdims=True)
    e = np.exp(z)
    total = e.sum(1, keepdims=True)
    g = e / (total * len(x))
    g[rows, t] -= 1 / len(x)
    return (np.log(total[:, 0]) - z[rows, t]).mean(), {"x": g}


def network_by_hand(x: Any, **p: Any) -> tuple[Any, Arrays]:
    a = np.tanh(x @ p["w0"] + p["b0"])
    c = np.tanh(a @ p["w1"] + p["b1"])
    y = c @ p["w2"] + p["b2"]
    g = 2 * y / y.size
    h = (g @ p["w2"].T) * (1 - c * c)
    i = (h @ p["w1"].T) * (1 - a * a)
    return (y * y).mean(), {
        **{"x": i @ p["w0"].T, "w0": x.T @ i, "b0": i.sum(0)},
        **{"w1": a.T @ h, "b1": h.sum(0), "w2": c.T @ g, "b2": g.sum(0)},
    }


@dataclass
class Problem:
    """One row of the table of large arrays."""

    name: str
    inputs: Callable[[int, str], Arrays]
    formula: Callable[..., Any] | None
    by_hand: Callable[..., tuple[Any, Arrays]]
    source: str  # in gradcli's language
    small: int = 1003  # where results are compared with `by_hand`
    middle: int = 300_001  # where blocks are compared with the tape
    peers: tuple[str, ...] = ("torch", "jax", "autograd", "mygrad")
    numexpr: tuple[str, str] | None = None  # value and gradient by hand: it does not differentiate
    marks: dict[tuple[int, str], dict[str, float]] = field(default_factory=dict)


def _chain_in_numexpr() -> tuple[str, str]:
    y, slope = "x", "1"
    for _ in range(CHAIN):
        t = f"tanh({y}*0.9 + 0.1)"
        y, slope = f"({t}*x - 0.2)", f"({t} + x*(1 - {t}*{t})*0.9*{slope})"
    return f"sum({y})", slope


_CHAIN_SOURCE = "y = x; " + "y = tanh(y*0.9 + 0.1)*x - 0.2; " * CHAIN + "sum(y)"
_NETWORK_SOURCE = "y = tanh(x@w0 + b0); y = tanh(y@w1 + b1); y = y@w2 + b2; mean(y*y)"

PROBLEMS = {
    p.name: p
    for p in [
        Problem(
            "exp_sin",
            one_vector,
            exp_sin,
            exp_sin_by_hand,
            "sum(exp(-x**2)*sin(3*x))",
            peers=(*Problem.peers, "numexpr", "sympy"),
            numexpr=(
                "sum(exp(-x**2)*sin(3*x))",
                "exp(-x**2)*(3*cos(3*x) - 2*x*sin(3*x))",
            ),
            marks={
                (100_000, "float64"): {"torch": 2.0},
                (1_000_000, "float64"): {"torch": 0.9},
                (10_000_000, "float64"): {"torch": 0.6, "jax": 1.0},
                (10_000_000, "float32"): {"torch": 0.25, "jax": 0.4},
                (100_000_000, "float64"): {"torch": 0.35, "jax": 1.0},
            },
        ),
        Problem(
            "chain30",
            one_vector,
            chain,
            chain_by_hand,
            _CHAIN_SOURCE,
            peers=(*Problem.peers, "numexpr", "sympy"),
            numexpr=_chain_in_numexpr(),
            marks={
                (10_000_000, "float64"): {"torch": 0.15, "jax": 0.7},
                (10_000_000, "float32"): {"torch": 0.15, "jax": 0.7},
            },
        ),
        Problem(
            "softmax_cross_entropy",
            logits,
            None,
            entropy_by_hand,
            "nn.functional.cross_entropy(x, t)",
            middle=301,
            marks={(10_000, "float64"): {"torch": 0.35, "jax": 1.1}},
        ),
        Problem(
            "logistic",
            points,
            logistic,
            logistic_by_hand,
            "mean(log1p(exp(-y*(w*x + b))))",
        ),
        Problem(
            "black_scholes",
            options,
            black_scholes,
            black_scholes_by_hand,
            "d = (log(s/k) + (r + v*v/2)*t)/(v*sqrt(t)); "
            "n = 0.5*(1 + erf(d*0.5**0.5)); m = 0.5*(1 + erf((d - v*sqrt(t))*0.5**0.5)); "
            "sum(s*n - k*exp(-r*t)*m)",
        ),
        Problem(
            "2*dot",
            one_vector,
            dot,
            dot_by_hand,
            "2*dot(x,x)",
            peers=("torch", "jax", "autograd", "numexpr", "sympy"),
            numexpr=("sum(2*x*x)", "4*x"),
            marks={(10_000_000, "float64"): {"torch": 0.45, "jax": 1.0}},
        ),
        Problem(
            "broadcast_mean",
            matrix_and_row,
            broadcast,
            broadcast_by_hand,
            "mean(x + b)",
            middle=301,
            marks={(1_000, "float64"): {"torch": 1.0}},
        ),
        Problem(
            "mlp",
            layers,
            network,
            network_by_hand,
            _NETWORK_SOURCE,
            small=64,
            middle=301,
            marks={(10_000, "float64"): {"torch": 1.15}, (10_000, "float32"): {"torch": 1.15}},
        ),
    ]
}
