"""Steps within a radius: they are the least of their model, and there are as many as was said."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from gradcli.columns.optimize.trust_region import bounded_step, trust_region

# Names, gradients and Hessians: inside, at the radius, no gradient along the downward direction,
# singular with and without a slope there, units far apart, nothing at all.
KINDS: dict[str, tuple[list[float], Any]] = {
    "inside": ([1, 1], np.diag([4.0, 8])),
    "at the radius": ([9, 1], np.diag([4.0, 8])),
    "saddle": ([1, 1], np.diag([-4.0, 8])),
    "saddle, no slope along it": ([0, 1], np.diag([-4.0, 8])),
    "saddle, no slope": ([0, 0], np.diag([-4.0, 8])),
    "rank 1": ([1, 2], np.array([[1.0, 2], [2, 4]])),
    "rank 1, a slope beside it": ([2, -1], np.array([[1.0, 2], [2, 4]])),
    "units far apart": ([1e-8, 1e8], np.diag([1e-16, 1e16])),
    "no Hessian": ([3, 4], np.zeros((2, 2))),
}


@pytest.mark.parametrize("name", KINDS)
def test_no_other_step_is_lower(name: str) -> None:
    gradient, hessian = np.array(KINDS[name][0], float), KINDS[name][1]

    def model(p: Any) -> Any:
        return p @ gradient + np.einsum("...i,ij,...j", p, hessian, p) / 2

    step, _ = bounded_step(gradient, hessian, 1.0)
    angle, length = np.meshgrid(np.linspace(0, 2 * np.pi, 721), np.linspace(0, 1, 101))
    others = np.stack([length * np.cos(angle), length * np.sin(angle)], -1)
    size = np.abs(model(others)).max()
    assert np.linalg.norm(step) <= 1.0 + 1e-9
    assert model(step) <= model(others).min() + 1e-4 * size


matrices = arrays.arrays(
    float, (3, 4), elements=st.floats(-1e12, 1e12) | st.sampled_from([0.0, 1.0, 1e-30, 1e100])
)


@given(matrices, st.sampled_from([1e-9, 1.0, 1e12]))
def test_every_matrix_has_a_step(numbers: Any, radius: float) -> None:
    """Where SciPy before 1.17 could go on for ever."""
    hessian = numbers[:, 1:] + numbers[:, 1:].T
    with np.errstate(all="ignore"):
        step, _ = bounded_step(numbers[:, 0], hessian, radius)
    assert not np.linalg.norm(step) > radius * 1.01


@pytest.mark.parametrize("value", [np.inf, -np.inf, 0.0, 1.0])
def test_it_ends_after_as_many_steps_as_said(value: float) -> None:
    """Also for a function whose gradient and Hessian have nothing to do with it."""
    asked: list[Any] = []

    def at(x: Any) -> tuple[float, Any]:
        asked.append(x)
        return (value if len(asked) % 2 else -value), np.ones(2)

    found = trust_region(
        at, lambda x: np.full((2, 2), np.nan_to_num(np.inf)), np.zeros(2), radius=1.0, largest=1e12,
        small=1e-10, limit=7, told=lambda x: None,
    )  # fmt: skip
    assert found.nit <= 7 and len(asked) <= 8 and not found.success
