"""The steps of an LSTM have the same bits in C as in NumPy, whatever the sizes."""

from __future__ import annotations

import itertools
import shutil
from typing import Any

import numpy as np
import pytest

from gradcli.engine.system import background_code, numpy_loops
from gradcli.operators.nn import lstm_steps
from gradcli.operators.nn.recurrent_layers import _gradients, lstm_layer

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler"),
]


def answers(biased: bool, reverse: bool, steps: int, batch: int, size: int, ups: bool) -> list[Any]:
    """The outputs, the last states and all gradients of a layer with 3 inputs."""
    rng = np.random.default_rng(steps + 10 * batch + 100 * size)

    def made(*shape: int) -> Any:
        return rng.standard_normal(shape).astype(np.float32)

    biases = [made(4 * size), made(4 * size)] if biased else [None, None]
    states = [made(batch, size), made(batch, size)]
    given = [made(steps, batch, 3), made(4 * size, 3), made(4 * size, size), *biases, *states]
    outputs = lstm_layer.kernel(*given, reverse)
    up = made(steps, batch, size) if ups else None
    grads = [up, None if reverse else made(batch, size), made(batch, size)]
    return [*outputs[:3], *_gradients(grads, given, outputs[3], reverse, [True] * 7)]


@pytest.mark.parametrize("steps", [1, 2, 5])
@pytest.mark.parametrize("batch", [1, 2, 7, 16])
def test_c_has_the_bits_of_numpy(steps: int, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    code = lstm_steps._code
    code.make()
    assert code._functions is not None
    used = code._functions
    for size, *flags in itertools.product([1, 3, 8, 33], *[[False, True]] * 3):
        biased, reverse, ups = flags
        found = []
        for functions in (used, None):
            monkeypatch.setattr(code, "_functions", functions)
            found.append(answers(biased, reverse, steps, batch, size, ups))
        for a, b in zip(*found, strict=True):
            assert (a is None and b is None) or a.tobytes() == b.tobytes(), (size, flags)


def test_a_loop_that_is_not_where_it_is_looked_for_is_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(numpy_loops, "_loop", lambda ufunc, dtype: [])
    monkeypatch.setattr(background_code, "possible", True)
    code = background_code.BackgroundCode(
        lstm_steps._source,
        "forward",
        ready=lambda library: numpy_loops.fill(library, np.dtype(np.float32)),
    )
    code.make()
    assert code._functions is None
    assert code.functions(1) is None
