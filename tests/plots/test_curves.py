"""Curves as numbers: where they bend there are points, where they break there is a gap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradcli.language import parse
from gradcli.plots import curves
from gradcli.transforms.verdicts import function_of


def sampled(source: str, low: float, high: float, order: int = 1) -> tuple[Any, list[Any]]:
    columns = curves.columns_of(function_of(parse(source), {}), "x", {}, order)
    return curves.sample(columns, low, high)


SMOOTH: dict[str, Callable[[Any], Any]] = {
    "x*sin(x)": lambda x: x * np.sin(x),
    "exp(-100*x**2)": lambda x: np.exp(-100 * x**2),
    "atan(1000*(x-0.3))": lambda x: np.arctan(1000 * (x - 0.3)),
    "sqrt(x+10)": lambda x: np.sqrt(x + 10),
}


@pytest.mark.parametrize("source", SMOOTH)
def test_chords_are_as_near_as_one_can_see(source: str) -> None:
    x, (y, *_) = sampled(source, -10, 10)
    fine = np.linspace(-10, 10, 20_001)
    height = y.max() - y.min()
    assert np.abs(np.interp(fine, x, y) - SMOOTH[source](fine)).max() < height / 200
    assert len(x) <= 6000


@pytest.mark.parametrize(
    ("source", "gaps"),
    [("1/x", [0.0]), ("floor(x)", [-1, 0, 1, 2]), ("tan(x)", [-np.pi / 2, np.pi / 2])],
)
def test_jumps_are_gaps(source: str, gaps: list[float]) -> None:
    x, (y, *_) = sampled(source, -1.9, 2.05)
    found = x[1:][np.isnan(y[1:])]
    assert all(np.abs(found - gap).min() < 1e-4 for gap in gaps)
    assert all(min(abs(x - gap) for gap in gaps) < 1e-3 for x in found)


def test_the_edge_of_a_domain_is_found() -> None:
    x, (y, slope) = sampled("log(x)", -1, 3)
    assert 0 < x[np.isfinite(y)].min() < 1e-4
    assert (np.isfinite(slope) == np.isfinite(y)).all()


def test_poles_do_not_flatten_the_rest() -> None:
    x, (y, *_) = sampled("1/x", -4, 4)
    low, high = curves.limits([(x, y)])
    assert -30 < low < -3 and 3 < high < 30
    assert curves.limits([(x, y)], points=[100.0])[1] > 100


@pytest.mark.long
def test_programs_with_branches_and_derivatives_of_higher_order() -> None:
    source = "y = x**3\nif x > 0:\n    y = -y\ny"
    x, (y, slope, bend) = sampled(source, -1, 2, order=2)
    assert np.allclose(y, np.where(x > 0, -(x**3), x**3))
    assert np.allclose(slope, np.where(x > 0, -3 * x**2, 3 * x**2))
    assert np.allclose(bend, np.where(x > 0, -6 * x, 6 * x))


@pytest.mark.parametrize(
    ("low", "high", "most", "wanted"),
    [(0, 10, 5, [0, 2, 4, 6, 8, 10]), (-1, 1, 4, [-1, -0.5, 0, 0.5, 1]), (3, 7, 2, [4, 6])],
)
def test_ticks_are_round(low: float, high: float, most: int, wanted: list[float]) -> None:
    assert curves.ticks(low, high, most) == wanted
