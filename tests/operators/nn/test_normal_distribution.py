"""erf and the normal distribution function of float32, against Python's own in double precision."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gradcli.operators.nn.normal_distribution import distribution, erf

POINTS = np.concatenate(
    [np.linspace(-6, 6, 1201), [0.0, -0.0, 1e-40, 1e-8, 4.14, 4.15, 1e30]]
).astype(np.float32)


@pytest.mark.parametrize(
    ("function", "exact", "units"),
    [
        (erf, math.erf, 5),
        (distribution, lambda x: 0.5 * math.erfc(-x / math.sqrt(2)), 50),  # x/sqrt(2) is rounded
    ],
)
def test_single_precision(function, exact, units) -> None:
    true = np.array([exact(float(x)) for x in POINTS])
    spacing = np.spacing(np.abs(true).astype(np.float32))
    assert np.max(np.abs(function(POINTS) - true) / spacing) < units
    assert function(POINTS.reshape(8, -1)).shape == (8, 151)
    ends = function(np.float32([-np.inf, np.inf, np.nan]))
    assert ends[0] == exact(-math.inf) and ends[1] == 1 and np.isnan(ends[2])
    assert function(POINTS[:1].astype(np.float64))[0] == pytest.approx(exact(-6), rel=1e-12)
