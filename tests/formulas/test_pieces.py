"""`where`s that compare one variable with numbers are one chain, right also where it is not a number."""

from __future__ import annotations

import random

import numpy as np
import pytest

import gradcli
from tests.sweep import sweep


@sweep(
    ("text", "derivative"),
    [
        ("where(x > 0 and x < 1, x, 0)", "where((x > 0) & (x < 1), 1, 0)"),
        ("where(x < 0, -x, x**2)", "2*clamp(x, min=0) - where(x < 0, 1, 0)"),
        ("where(x < -1 or x > 1, 0, 1 - x**2)", "where((x < -1) | (x > 1), 0, -2*x)"),
        (
            "where(x >= 0 and x < 1, x, where(x < 2, 2 - x, 0))",
            "where(x < 0, -1, where(x < 1, 1, where(x < 2, -1, 0)))",
        ),
        (
            "where(x < -1, x**2, where(x > 1, x**3, x))*x",
            "where(x < -1, 3*x**2, where(x > 1, 4*x**3, 2*x))",
        ),
        ("where(x > 0, x, 0) + where(x > 1, x, 0)", "where(x > 1, 2, where(x > 0, 1, 0))"),
    ],
    parts=1,
)
def test_derivatives(text: str, derivative: str) -> None:
    assert gradcli.diff(text) == derivative


def choice(draw: random.Random, depth: int) -> str:
    """A random text of `where`s that compare x with 0, 1 and 2."""
    if not depth:
        return draw.choice(("x", "x**2", "3", "0", "-x", "sin(x)"))
    sign, end = draw.choice(("<", "<=", ">", ">=", "==", "!=")), draw.choice((0, 1, 2))
    made = f"where(x {sign} {end}, {choice(draw, depth - 1)}, {choice(draw, depth - 1)})"
    if draw.random() < 0.3:
        made = f"({made} + {choice(draw, depth - 1)})"
    return made


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(k, marks=pytest.mark.long) for k in range(1, 60))]
)
def test_the_chain_has_the_same_values(seed: int) -> None:
    text = choice(random.Random(seed), 2)
    made = gradcli.simplify(text)
    places = np.array([-1.0, 0, 0.5, 1, 1.5, 2, 3, np.nan])
    for place in places:
        x = gradcli.tensor(place, dtype=gradcli.float64)
        values = [
            float(gradcli.evaluate(t, **({"x": x} if "x" in t else {}))) for t in (text, made)
        ]
        assert np.allclose(*values, equal_nan=True), (text, made, place)
