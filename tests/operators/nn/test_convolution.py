"""Convolutions by runs of places: the same as by their definition, for all ways in which images are cut."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from gradcli.engine.system import threads
from gradcli.operators.nn import convolution

# sizes, kernel, dilation, padding, images, bytes of a block
CASES = [
    ((7, 6), (3, 3), (1, 1), (1, 1), 5, 1 << 20),  # all images in one run
    ((7, 6), (3, 3), (1, 1), (1, 1), 5, 3000),  # a group of images for each turn
    ((40, 6), (3, 3), (1, 1), (1, 1), 2, 3000),  # an image in several runs
    ((40, 6), (3, 1), (4, 1), (8, 0), 2, 3000),  # windows reach over more than a run
    ((9, 9), (2, 3), (1, 2), (0, 4), 3, 1 << 12),
    ((9, 9), (1, 1), (1, 1), (0, 0), 3, 1 << 12),
    ((30,), (5,), (2,), (8,), 3, 1 << 9),
    ((5, 4, 6), (3, 2, 3), (1, 1, 1), (1, 1, 2), 3, 1 << 12),
]


def by_definition(x: Any, w: Any, how: convolution.Windows) -> Any:
    view = how.of(convolution.padded(x, how.padding))
    n = len(how.kernel)
    return np.moveaxis(
        np.tensordot(view, w, ([1, *range(2 + n, 2 + 2 * n)], range(1, 2 + n))), -1, 1
    )


@pytest.mark.parametrize("case", CASES, ids=str)
def test_runs_have_the_values_of_the_definition(case: Any, monkeypatch: Any) -> None:
    size, kernel, dilation, padding, batch, block = case
    monkeypatch.setattr(convolution, "_BLOCK", block)
    monkeypatch.setattr(convolution, "_SHARED", 1)  # on as many threads as there are
    g = np.random.default_rng(0)
    x, w = g.standard_normal((batch, 3, *size)), g.standard_normal((4, 3, *kernel))
    how = convolution.Windows(kernel, dilation, padding, (1,) * len(size))
    flat = convolution._Flat(how, size, batch)
    wanted = by_definition(x, w, how)
    np.testing.assert_allclose(flat.forward(x, w), wanted, rtol=1e-12, atol=1e-12)
    slope = g.standard_normal(wanted.shape)
    found = flat.slopes(slope, w, x)
    with threads.multiplying_alone():  # no others share the work
        assert all(map(np.array_equal, found, flat.slopes(slope, w, x)))
    # The convolution is linear in each: <slope, conv(dx, w)> = <g_input, dx>.
    dx, dw = g.standard_normal(x.shape), g.standard_normal(w.shape)
    np.testing.assert_allclose((found[0] * dx).sum(), (slope * by_definition(dx, w, how)).sum())
    np.testing.assert_allclose((found[1] * dw).sum(), (slope * by_definition(x, dw, how)).sum())


def test_borders_that_no_window_needs_are_left_to_the_plain_way() -> None:
    x = np.ones((1, 1, 4, 4))
    for k, p in product((1, 2, 3), (0, 1, 2, 3)):
        how = convolution.Windows((k, k), (1, 1), (p, p), (1, 1))
        flat = convolution._Flat.of(x, how, (4, 4), 1)
        assert flat is None or p < k
