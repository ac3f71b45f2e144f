"""Gradients in tests: `assert_gradients` compares them with differences, or with what is expected.

    from gradcli.torch.testing import assert_gradients

    def test_energy():
        assert_gradients("sum((X@w - y)**2)", X=[[1, 2], [3, 4]], w=[0.5, -1], y=[1, 0])
        assert_gradients("a*sin(w*t)", expected={"t": "a*w*cos(w*t)"}, a=2.0, w=3.0, t=0.1)
        assert_gradients(my_function, x=np.ones(3), expected=my_gradient(np.ones(3)))

    assert_no_vanishing(loss, model)  # and assert_no_exploding, assert_finite_gradients

`points(my_function, x=3)` is a strategy of hypothesis for points away from kinks.

`assert_close` is torch.testing's.

With pytest, the installed package offers the same function as the fixture `assert_gradients`.
"""

from __future__ import annotations

from typing import Any

from gradcli.transforms.assertions import (
    GradientMismatch,
    GradientTrouble,
    assert_finite_gradients,
    assert_gradients,
    assert_no_exploding,
    assert_no_vanishing,
)
from gradcli.transforms.point_strategies import points


def __getattr__(name: str) -> Any:
    if name != "assert_close":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gradcli.engine.registry import table

    return table.resolve("testing.assert_close").call


__all__ = [
    "GradientMismatch",
    "GradientTrouble",
    "assert_close",  # noqa: F822 (see __getattr__)
    "assert_finite_gradients",
    "assert_gradients",
    "assert_no_exploding",
    "assert_no_vanishing",
    "points",
]
