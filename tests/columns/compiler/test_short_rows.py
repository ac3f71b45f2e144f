"""Rows of few elements: blocks have the bits of the tape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradcli as g
from gradcli.engine.core.tensor import wrap

ROWS = 20_011
func: Any = g.func
PROGRAMS: dict[str, Any] = {
    "slopes of logsumexp": lambda x: func.vmap(func.grad(lambda a: g.logsumexp(a, 0)))(x),
    "softmax": lambda x: g.softmax(x * 2 - x.amax(1, True), 1),
    "log_softmax and its maximum": lambda x: (g.log_softmax(x, 1) + x, g.log_softmax(x, 1).amax(1)),
    "standardized": lambda x: (x - x.sum(1, True) / 3) / (x * x).sum(1, True).sqrt(),
    "columns and rows": lambda x: (
        x / x.sum(1, True),
        x.sum(1) * 2,
        (x - x.amin(1, True)).sum(1, True),
    ),
}


@pytest.mark.parametrize(
    "columns", [2, 5, 8, *(pytest.param(n, marks=pytest.mark.long) for n in (11, 16))]
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_bits_of_the_tape(name: str, columns: int) -> None:
    x = np.random.default_rng(columns).standard_normal((ROWS, columns)) * 30
    x[3, 1], x[4, 0], x[5] = np.inf, np.nan, -np.inf
    for given in (x, x.astype(np.float32), np.asfortranarray(x), x[::-1]):
        wanted = PROGRAMS[name](wrap(given))
        for threads in (1, 3):
            found = g.compile(PROGRAMS[name], threads=threads)(x=given)
            for f, w in zip(_tuple(found), _tuple(wanted), strict=True):
                np.testing.assert_array_equal(f, w.numpy())


def _tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)
