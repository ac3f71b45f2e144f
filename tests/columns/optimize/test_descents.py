"""The methods that lessons show take the steps of their recursions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from gradcli.columns.optimize import descents
from gradcli.columns.optimize.descents import descend, falling_rate, usual_rate
from gradcli.language.located_errors import LanguageError

CURVATURES = np.array([2.0, 10.0])
START, RATE = np.array([3.0, 1.0]), 0.05


def bowl(x: Any) -> tuple[float, Any]:
    """x**2 + 5*y**2 and its gradient."""
    return float(CURVATURES @ x**2) / 2, CURVATURES * x


def plain(x: Any) -> Iterator[Any]:
    while True:
        x = x - RATE * CURVATURES * x
        yield x


def heavy_ball(x: Any, nesterov: bool = False) -> Iterator[Any]:
    speed = 0 * x
    while True:
        gradient = CURVATURES * x
        speed = 0.9 * speed + gradient
        x = x - RATE * (gradient + 0.9 * speed if nesterov else speed)
        yield x


def adam(x: Any) -> Iterator[Any]:
    """Kingma and Ba (2015), algorithm 1."""
    first = second = 0 * x
    for k in range(1, 1000):
        gradient = CURVATURES * x
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        x = x - RATE * first / (1 - 0.9**k) / (np.sqrt(second / (1 - 0.999**k)) + 1e-8)
        yield x


@pytest.mark.parametrize(
    ("method", "recursion"),
    [
        ("gradient-descent", plain),
        ("momentum", heavy_ball),
        ("nesterov", lambda x: heavy_ball(x, nesterov=True)),
        ("adam", adam),
    ],
)
def test_steps_are_those_of_the_recursion(
    method: str, recursion: Callable[[Any], Iterator[Any]]
) -> None:
    made = descend(method, bowl, START, RATE, 7)
    expected = [START, *(x for x, _ in zip(recursion(START), range(7), strict=False))]
    np.testing.assert_allclose(made.points, expected, rtol=1e-12)
    np.testing.assert_allclose(made.values, [bowl(x)[0] for x in expected], rtol=1e-12)
    assert not made.rises


def test_newtons_step_leads_to_the_bottom_of_a_bowl_where_it_ends() -> None:
    made = descend("newton", bowl, START, 1.0, 9, hessian=lambda x: np.diag(CURVATURES))
    assert [x.tolist() for x in made.points] == [[3, 1], [0, 0]]
    with pytest.raises(LanguageError, match="the Hessian is singular"):
        descend("newton", bowl, START, 1.0, 9, hessian=lambda x: np.zeros((2, 2)))


@pytest.mark.parametrize(("rate", "rises"), [(0.19, False), (0.21, True), (1e30, True)])
def test_a_rate_above_two_over_the_curvature_rises(rate: float, rises: bool) -> None:
    assert descend("gradient-descent", bowl, START, rate, 100).rises is rises
    if rises:
        lower = falling_rate("gradient-descent", bowl, START, rate, 100)
        assert lower is not None and lower < 0.2
        assert not descend("gradient-descent", bowl, START, lower, 100).rises


@pytest.mark.long
@pytest.mark.parametrize("method", descents.DESCENTS)
def test_the_usual_rate_falls(method: str) -> None:
    hessian = lambda x: np.diag(CURVATURES)  # noqa: E731
    rate = usual_rate(method, bowl, START, hessian)
    assert not descend(method, bowl, START, rate, 50, hessian=hessian).rises
