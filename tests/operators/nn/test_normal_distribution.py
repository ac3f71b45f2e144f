"""erf and the normal distribution function of float32, against Python's own in double precision."""

from __future__ import annotations

import math
import shutil

import numpy as np
import pytest

from gradcli.operators.nn import normal_distribution
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


@pytest.mark.long
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("size", [1, 7, 31, 2047, 2049, 32769])
def test_c_has_the_bits_of_numpy(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    code = normal_distribution._loops()._code
    code.make()
    used = code._functions
    assert used is not None
    rng = np.random.default_rng(size)
    for scale in (1, 5, 30, 1e-20, 1e30):
        x = (rng.standard_normal(size) * scale).astype(np.float32)
        x[: min(size, 5)] = [np.nan, np.inf, -np.inf, 0.0, -0.0][: min(size, 5)]
        for function in (normal_distribution.gelu_values, normal_distribution.gelu_slope):
            found = []
            for functions in (used, None):
                monkeypatch.setattr(code, "_functions", functions)
                with np.errstate(all="ignore"):
                    found.append(function(x).tobytes())
            assert found[0] == found[1], (function.__name__, scale)
