# ruff: noqa: E501 (a table)
"""Curves as numbers: where they bend there are points, where they break there is a gap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gradcli.commands.plots import curves, figures
from gradcli.language import parse
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


# How those see who lack one of the three kinds of cones: Machado, Oliveira and Fernandes, IEEE Trans. Vis.
# Comput. Graph. 15, 1291 (2009), table 1 (severity 1), of linear sRGB.
SEEN = {
    "all cones": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}  # fmt: skip


def lab(colour: str, seen: Any) -> Any:
    """A colour in CIE L*a*b*, where distances are as large as they look."""
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    white = [0.95047, 1, 1.08883]
    xyz = np.array(to_xyz) @ np.clip(np.array(seen) @ linear, 0, 1) / white
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("who", SEEN)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_are_told_apart_by_the_colour_blind(theme: str, who: str) -> None:
    """Two of them are 15 apart at least, where one sees 2; and they stand out from the paper."""
    paper, *_ = figures.INK[theme]
    colours = [lab(c, SEEN[who]) for c in (*figures.COLOURS[theme], paper)]
    apart = [np.linalg.norm(a - b) for i, a in enumerate(colours) for b in colours[:i]]
    assert min(apart) >= 15
