"""Derivatives of 305 functions at removable points, edges and tails, against 50 digits."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import gradcli
from gradcli.engine.core.tensor import wrap
from gradcli.language import parse
from gradcli.transforms.jets.derivatives import FOUND, Traced, along
from tests.sweep import sweep

RECORDED = json.loads(
    (Path(__file__).parents[1] / "golden" / "series.json").read_text(encoding="utf-8")
)
ROWS = [(source, x, [float(w) for w in wanted]) for source, x, wanted, _ in RECORDED["rows"]]
DIGITS = 1e-8


def near(value: float, wanted: list[float], k: int) -> bool:
    """Whether a derivative has eight digits; where it is 0, beside the others."""
    size = abs(wanted[k]) or max(map(abs, wanted)) or 1.0
    return abs(value - wanted[k]) <= DIGITS * size


@sweep(("source", "x", "wanted"), ROWS, parts=4, often=1)
def test_power_series_have_eight_digits(source: str, x: float, wanted: list[float]) -> None:
    program = parse(source)
    traced = Traced(program, {"x": wrap(np.float64(x))}, ["x"], gradient=False)
    with np.errstate(all="ignore"):
        found = along(traced, np.ones((1, 1)), 4)
    for k in range(1, 5):
        assert found.status[k].item() == FOUND
        assert near(found.values[k].item(), wanted, k), (k, found.values[k], wanted[k])


@pytest.mark.long
@sweep(("source", "x", "wanted"), ROWS, parts=4)
def test_commands_have_eight_digits(source: str, x: float, wanted: list[float]) -> None:
    """Of the first order by `jacobian`: `grad` keeps PyTorch's NaN and its choice at kinks, and says so."""
    given = gradcli.tensor(x, dtype=gradcli.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = gradcli.jacobian(source, x=given)
        higher = [gradcli.grad(source, order=k, x=given) for k in range(2, 5)]
    kinked = "relu" in source or "maximum" in source
    for k, value in enumerate([first, *higher], 1):
        assert near(float(value), wanted, k) or (k == 1 and kinked), (k, value, wanted[k])


@pytest.mark.long
@pytest.mark.needs("mpmath")
def test_at_random_points_no_error_is_worse_than_that_of_nested_passes() -> None:
    """200 points of smooth functions, each with derivatives of orders 2 to 4."""
    import mpmath as mp

    mp.mp.dps = 50
    functions = [
        ("exp(-x**2)*sin(x)", lambda x: mp.exp(-(x**2)) * mp.sin(x)),
        ("log(1 + x**2)*tanh(x)", lambda x: mp.log(1 + x**2) * mp.tanh(x)),
        ("sqrt(1 + x**4)/(2 + cos(x))", lambda x: mp.sqrt(1 + x**4) / (2 + mp.cos(x))),
        ("atan(x)*sigmoid(3*x)", lambda x: mp.atan(x) / (1 + mp.exp(-3 * x))),
        ("norm(stack([x, x**2, exp(x)]))", lambda x: mp.sqrt(x**2 + x**4 + mp.exp(2 * x))),
    ]
    rng = np.random.default_rng(7)
    worse = []
    for source, function in functions:
        for x in rng.normal(size=40):
            for order in (2, 3, 4):
                right = mp.diff(function, mp.mpf(float(x)), order)
                t = gradcli.tensor(float(x), dtype=gradcli.float64, requires_grad=True)
                from gradcli.language import run

                value = run(parse(source), {"x": t}).value
                for _ in range(order):
                    (value,) = gradcli.autograd.grad(value, t, create_graph=True)
                found = gradcli.grad(source, order=order, x=t.detach())
                mine = abs(mp.mpf(float(found)) - right)
                tape = abs(mp.mpf(value.item()) - right)
                scale = max(abs(right), abs(function(mp.mpf(float(x)))))
                if mine > 4 * tape + 64 * mp.mpf(2) ** -52 * scale * 2**order:
                    worse.append((source, x, order, float(mine), float(tape)))
    assert not worse
