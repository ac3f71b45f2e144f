"""Ask lmfit for fits and their standard errors: python tests/golden/record_lmfit.py

tests/golden/lmfit.json then holds 40 problems (ten models; plain, weighted, within bounds that one parameter
ends at, and in units of 1e12 and 1e-12), each with the equation, the columns, the start, and the answers:
values, standard errors, chi-square. Within bounds, lmfit is told to hold the parameter at its bound, because
the errors of its own transformation mean nothing there.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import lmfit
import numpy as np

# name: (the equation's right side, the model, the truth, the columns' ends)
MODELS: dict[str, tuple[str, Callable[..., np.ndarray], dict[str, float], tuple[float, float]]] = {
    "line": ("a + b*x", lambda x, a, b: a + b * x, {"a": 2.0, "b": -0.7}, (0.0, 9.0)),
    "parabola": (
        "a + b*x + c*x**2",
        lambda x, a, b, c: a + b * x + c * x**2,
        {"a": 1.0, "b": 0.4, "c": 0.3},
        (-3.0, 5.0),
    ),
    "decay": ("a*exp(-x/t)", lambda x, a, t: a * np.exp(-x / t), {"a": 5.0, "t": 2.5}, (0.0, 9.0)),
    "decay to a level": (
        "a*exp(-x/t) + c",
        lambda x, a, t, c: a * np.exp(-x / t) + c,
        {"a": 5.0, "t": 2.5, "c": 1.0},
        (0.0, 12.0),
    ),
    "saturation": (
        "a*x/(k + x)",
        lambda x, a, k: a * x / (k + x),
        {"a": 4.0, "k": 1.5},
        (0.1, 9.0),
    ),
    "logistic": (
        "a/(1 + exp(-b*(x - c)))",
        lambda x, a, b, c: a / (1 + np.exp(-b * (x - c))),
        {"a": 3.0, "b": 1.8, "c": 4.0},
        (0.0, 9.0),
    ),
    "bell": (
        "a*exp(-(x - m)**2/(2*s**2))",
        lambda x, a, m, s: a * np.exp(-((x - m) ** 2) / (2 * s**2)),
        {"a": 6.0, "m": 4.0, "s": 1.2},
        (0.0, 9.0),
    ),
    "resonance": (
        "a/(1 + ((x - m)/w)**2) + c",
        lambda x, a, m, w, c: a / (1 + ((x - m) / w) ** 2) + c,
        {"a": 6.0, "m": 5.0, "w": 0.8, "c": 0.5},
        (0.0, 10.0),
    ),
    "power": ("a*x**p", lambda x, a, p: a * x**p, {"a": 2.0, "p": 1.4}, (0.2, 9.0)),
    "oscillation": (
        "a*sin(w*x + f)",
        lambda x, a, w, f: a * np.sin(w * x + f),
        {"a": 2.0, "w": 1.3, "f": 0.4},
        (0.0, 12.0),
    ),
}
ROWS = 30
# What a unit of y is; parameters that are in it.
UNITS = {"line": "ab", "parabola": "abc", "decay": "a", "decay to a level": "ac", "saturation": "a",
         "logistic": "a", "bell": "a", "resonance": "ac", "power": "a", "oscillation": "a"}  # fmt: skip


def noise(k: int) -> float:
    """Numbers between -1 and 1 without a pattern, the same everywhere."""
    return math.modf(math.sin(12.9898 * (k + 1)) * 43758.5453)[0]


def problem(name: str, kind: str, turn: int) -> dict:
    text, model, truth, (low, high) = MODELS[name]
    unit = {"1e12": 1e12, "1e-12": 1e-12}.get(kind, 1.0)
    truth = {n: v * (unit if n in UNITS[name] else 1.0) for n, v in truth.items()}
    x = np.linspace(low, high, ROWS)
    sigma = unit * (0.05 + 0.01 * np.arange(ROWS) / ROWS)
    y = model(x, **truth) + sigma * np.array([1.7 * noise(k + 31 * turn) for k in range(ROWS)])
    start = {n: v * (1.1 if k % 2 else 0.9) for k, (n, v) in enumerate(truth.items())}
    bounds, held = {}, {}
    if kind == "bounds":  # the last parameter is kept from its best value
        last = list(truth)[-1]
        held[last] = truth[last] + 0.2 * abs(truth[last])
        bounds[last] = [held[last], None]
        start[last] = held[last] + 0.1 * abs(truth[last])
    parameters = lmfit.Parameters()
    for n, v in start.items():
        parameters.add(n, value=held.get(n, v), vary=n not in held)
    weighted = kind != "plain"
    weight = sigma if weighted else np.full(ROWS, unit)

    def residual(p: lmfit.Parameters) -> np.ndarray:
        return (y - model(x, **p.valuesdict())) / weight

    found = lmfit.minimize(
        residual,
        parameters,
        method="leastsq",
        scale_covar=not weighted,
        xtol=1e-14,
        ftol=1e-14,
        gtol=0.0,
    )
    assert found.success and all(found.params[n].stderr for n in truth if n not in held), (
        name,
        kind,
    )
    return {
        "name": f"{name}, {kind}",
        "equation": f"y == {text}",
        "x": x.tolist(),
        "y": y.tolist(),
        "sigma": sigma.tolist() if weighted else None,
        "start": start,
        "bounds": bounds,
        "values": {n: float(found.params[n].value) for n in truth},
        "errors": {n: None if n in held else float(found.params[n].stderr) for n in truth},
        "chi2": float(found.chisqr) * (1.0 if weighted else unit**2),
    }


if __name__ == "__main__":
    kinds = ["plain", "weighted", "bounds", "1e12"]
    made = [
        problem(name, "1e-12" if kind == "1e12" and turn % 2 else kind, turn)
        for turn, name in enumerate(MODELS)
        for kind in kinds
    ]
    path = Path(__file__).with_name("lmfit.json")
    path.write_text(json.dumps({"lmfit": lmfit.__version__, "problems": made}, indent=0) + "\n")
    print(len(made), "problems")
