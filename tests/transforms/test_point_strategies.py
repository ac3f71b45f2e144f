"""Points of hypothesis that lie away from kinks, jumps and the ends of domains."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import gradcli
from gradcli.transforms.assertions import assert_gradients
from gradcli.transforms.point_strategies import is_smooth, points

KINKED = [
    ("relu(x)", 0.0, False),
    ("relu(x)", 5e-4, False),
    ("relu(x)", 5e-3, True),
    ("relu(x)**2", 0.0, False),  # has a derivative, and no second one
    ("abs(x)*1e-4 + x", 0.0, False),
    ("floor(x)", 1.0, False),
    ("log(x)", 5e-4, False),
    ("log(x)", 0.1, True),
    ("sin(x)*exp(x)", 0.0, True),
    ("max(x, 2 - x)", 1.0, False),
    ("x", 1e6, True),
    ("3 + 0*x", 1.0, True),
]


@pytest.mark.parametrize(("source", "x", "smooth"), KINKED)
def test_what_is_smooth(source: str, x: float, smooth: bool) -> None:
    assert is_smooth(source, {"x": x}, ["x"], 1e-3) is smooth


SOURCE = "sum(relu(x))*y + x.max()"


@given(point=points(SOURCE, x=3, y=()))
@settings(max_examples=8)
def test_points_of_an_expression(point: dict[str, Any]) -> None:
    x = np.sort(point["x"])
    assert x.dtype == np.float64 and x.shape == (3,) and point["y"].shape == ()
    assert np.abs(x).min() > 9e-4 and np.diff(x)[-1] > 9e-4 and np.abs(x).max() <= 2
    assert_gradients(SOURCE, **point)


def hinge(w: Any, data: Any) -> Any:
    return np.maximum(0, 1 - data @ w).sum()


DATA = np.array([[1.0, 2.0], [-1.0, 0.5]])


@given(point=points(hinge, {"data": DATA}, low=-1, high=1, w=2))
@settings(max_examples=8)
def test_points_of_a_function_of_numpy_s(point: dict[str, Any]) -> None:
    slopes = -(DATA * (DATA @ point["w"] < 1)[:, None]).sum(0)
    assert_gradients(hinge, expected={"w": slopes}, data=DATA, **point)


def test_it_is_found_where_the_assertions_are() -> None:
    assert gradcli.testing.points is points
    with pytest.raises(ValueError, match="low must be less than high"):
        points("x", low=1, high=0, x=())
