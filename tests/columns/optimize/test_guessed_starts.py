"""Fits whose parameters nobody gave a start: where these may be, and which minimum is found."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.columns.optimize.parameter_sizes import priors
from tests.commands.running import run
from tests.sweep import some

X = np.linspace(480.0, 540.0, 61)
# (equation, columns, parameter, whether what is drawn holds all of these numbers)
SIZES: list[tuple[str, dict[str, Any], str, tuple[float, ...]]] = [
    ("y == A*exp(-(x - mu)**2/(2*s**2))", {"x": X, "y": X}, "mu", (481.0, 539.0)),
    ("y == A*exp(-(x - mu)**2/(2*s**2))", {"x": X, "y": X}, "s", (3.0, 60.0)),
    ("y == a*exp(-t/tau)", {"t": X * 1e-6, "y": X}, "tau", (5e-5, 5e-3)),
    ("y == a*sin(w*t + p)", {"t": np.linspace(0, 1, 200), "y": X}, "w", (3.0, 600.0)),
    ("k == A*exp(-E/(8.314*T))", {"T": X, "k": X}, "E", (2e3, 4e4)),
    ("v == V*S**n/(K**n + S**n)", {"S": X, "v": X}, "K", (100.0, 2000.0)),
    ("k = 1/tau; y == a*exp(-k*t)", {"t": X, "y": X}, "tau", (50.0, 5000.0)),
]


@pytest.mark.parametrize(("equation", "columns", "name", "within"), SIZES)
def test_where_a_parameter_may_be(
    equation: str, columns: dict[str, Any], name: str, within: tuple[float, ...]
) -> None:
    names = sorted({"A", "mu", "s", "a", "tau", "w", "p", "E", "V", "K", "n"})
    found = priors(equation, columns, names)[name]
    assert found.low <= min(within) and max(within) <= found.high


def gauss(x: Any, height: float, centre: float, width: float) -> Any:
    return height * np.exp(-((x - centre) ** 2) / (2 * width**2))


def lorentz(x: Any, height: float, centre: float, width: float) -> Any:
    return height / (1 + ((x - centre) / width) ** 2)


L, PI = np.linspace, math.pi
# (equation, x, the function at the truth, deviation of the noise, truth)
MODELS: dict[str, tuple[str, Any, Any, float, dict[str, float]]] = {
    "peak": (
        "y == A*exp(-(x-mu)**2/(2*s**2)) + B + C*x",
        X, gauss(X, 120, 511, 4.5) + 30 - 0.02 * X, 4.0, {"mu": 511, "s": 4.5},
    ),
    "two peaks": (
        "y == A1*exp(-(x-m1)**2/(2*s1**2)) + A2*exp(-(x-m2)**2/(2*s2**2)) + B",
        x := L(1050, 1450, 201), gauss(x, 300, 1173, 12) + gauss(x, 240, 1332, 13) + 20, 5.0, {},
    ),
    "doublet": (
        "y == A1/(1+((x-x1)/w1)**2) + A2/(1+((x-x2)/w2)**2) + B",
        x := L(0, 12, 121), lorentz(x, 3, 5.2, 0.4) + lorentz(x, 2, 7.1, 0.6) + 0.3, 0.04, {},
    ),
    "decay": ("y == N0*exp(-x/tau)", x := L(0, 6e4, 40), 2500 * np.exp(-x / 18e3), 20.0, {"tau": 18e3}),
    "sinusoid": (
        "y == A*sin(2*pi*f*x + p) + c",
        x := L(0, 0.2, 200), 1.3 * np.sin(2 * PI * 50.2 * x + 0.4) + 0.1, 0.05, {"f": 50.2},
    ),
    "slow sinusoid": (
        "y == A*sin(w*x + p) + c",
        x := L(0, 1000, 150), 12 * np.sin(0.0172 * x + 1) + 10, 0.8, {"w": 0.0172},
    ),
    "edge": (
        "y == a*tanh((x - x0)/s) + c", x := L(150, 350, 81), 40 * np.tanh((x - 250) / 12) + 45, 0.8,
        {"x0": 250, "s": 12},
    ),
    "slits": (
        "y == I*(sin(pi*a*x)/(pi*a*x))**2*cos(pi*d*x)**2",
        x := L(-4.03, 4, 160), 100 * np.sinc(0.35 * x) ** 2 * np.cos(PI * 1.4 * x) ** 2, 1.0,
        {"a": 0.35, "d": 1.4},
    ),
    "resonance": (
        "y == F/sqrt((w0**2 - x**2)**2 + (g*x)**2)",
        x := L(30, 100, 71), 300 / np.sqrt((62.0**2 - x**2) ** 2 + (3.1 * x) ** 2), 2e-4,
        {"w0": 62, "g": 3.1},
    ),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("seed", some([0, 1], 2))
def test_the_least_minimum_is_found_without_a_start(name: str, seed: int) -> None:
    """As low as a fit from the truth's surroundings would end: at the noise; and there are the parameters."""
    equation, x, y, noise, truth = MODELS[name]
    data = {"x": x, "y": y + np.random.default_rng(seed).normal(0, noise, len(x))}
    found = gradcli.fit(equation, data)
    assert found.converged and found.residual_deviation < 1.3 * noise
    for label, value in truth.items():
        fitted, error = found.parameters[label]
        assert abs(fitted - value) < 5 * error and fitted > 0


def test_a_doubtful_minimum_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    x = np.linspace(0, 10, 40)
    np.savetxt(
        "c.csv",
        np.c_[x, x**2 + np.cos(77 * np.arange(40))],
        delimiter=",",
        header="x,y",
        comments="",
    )
    said = run("fit", "y == a*x + b", "c.csv", "--a", "1", "--b", "1")
    assert said.exit_code == 0 and "the residuals are not random" in said.stderr
    assert "--starts" not in said.stderr  # a line has one minimum
    assert "not random" not in run("fit", "y == a*x**2 + b", "c.csv", "--a", "1", "--b", "1").stderr


@pytest.mark.long
def test_the_start_that_was_found_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _, x, y, noise, _ = MODELS["peak"]
    y = y + np.random.default_rng(0).normal(0, noise, len(x))
    np.savetxt("p.csv", np.c_[x, y], delimiter=",", header="x,y", comments="")
    said = run("fit", MODELS["peak"][0], "p.csv", "--json")
    assert "starting at 1 ends at no minimum, or at a worse one" in said.stderr
    given = run("fit", MODELS["peak"][0], "p.csv", "--mu", "510", "--s", "4", "--json")
    chi2 = [json.loads(one.stdout)["chi2"] for one in (said, given)]
    assert chi2[0] == pytest.approx(chi2[1], rel=1e-9)
