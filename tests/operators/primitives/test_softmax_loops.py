"""softmax and log_softmax of short rows have the same bits in C as in NumPy, and so have their slopes."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

from gradcli.operators.primitives import softmax, softmax_loops

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler"),
]
SHAPES: list[tuple[int, ...]] = [(), (1,), (7,), (64,), (3, 5), (300,), (2, 1, 9)]


def answers(x: Any, slope: Any) -> list[Any]:
    """softmax and log_softmax of the last dimension, and both slopes."""
    with np.errstate(all="ignore"):
        shares, logs = softmax._softmax(x, -1), softmax._log_softmax(x, -1)
        backward: list[Any] = [softmax.softmax_backward_data, softmax.log_softmax_backward_data]
        slopes = [b.kernel(slope, y, -1) for b, y in zip(backward, (shares, logs), strict=True)]
    return [shares, logs, *slopes]


@pytest.mark.parametrize("char", ["f", "d"])
@pytest.mark.parametrize("special", [False, True])
def test_c_has_the_bits_of_numpy(char: str, special: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    code = softmax_loops._code(char)
    code.make()
    assert code._functions is not None
    used, rng = code._functions, np.random.default_rng(0)
    for length in range(2, softmax_loops.LONGEST + 2):
        for rows in SHAPES:
            x = (30 * rng.standard_normal((*rows, length))).astype(char)
            slope = rng.standard_normal(x.shape).astype(char)
            if special:
                x.flat[rng.integers(x.size)] = rng.choice([-np.inf, np.inf, np.nan])
                slope *= 0
            found = []
            for functions in (used, None):
                monkeypatch.setattr(code, "_functions", functions)
                monkeypatch.setattr(code, "_is_asked", True)
                found.append(answers(x, slope))
            for a, b in zip(*found, strict=True):
                same = np.where(
                    np.isnan(b), np.isnan(a), a.view(f"i{a.itemsize}") == b.view(f"i{a.itemsize}")
                )
                assert same.all() and a.strides == b.strides, (rows, length)


def test_what_c_does_not_take_goes_to_numpy() -> None:
    code = softmax_loops._code("f")
    code.make()
    x = np.ones((4, 3), np.float32)
    assert softmax_loops.found(softmax_loops.VALUES, 1, x) is not None
    assert softmax_loops.found(softmax_loops.VALUES, 0, x) is None
    assert softmax_loops.found(softmax_loops.VALUES, 1, x.T.copy().T) is None
    assert softmax_loops.found(softmax_loops.VALUES, 1, x.astype(np.float16)) is None
    assert softmax_loops.found(softmax_loops.SLOPES, 1, x, x.T) is None
    one_row = np.broadcast_to(x[:1], x.shape)
    assert softmax_loops.found(softmax_loops.SLOPES, 1, one_row, x) is None
