"""The quick way of a call finds the plan that the long way finds, and gives what it gives."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradcli


def long_way(f: Any, gradients: bool) -> Callable[..., Any]:
    return f._all_gradients if gradients else f._called  # type: ignore[no-any-return]


def answer(call: Callable[..., Any], args: Any, named: Any) -> Any:
    """What a call gives, leaves with their classes and bits; or the error's words."""
    try:
        found = call(*args, **dict(named))
    except Exception as error:
        return type(error), str(error)
    return described(found)


def described(found: Any) -> Any:
    if isinstance(found, dict):
        return {k: described(v) for k, v in found.items()}
    if isinstance(found, (tuple, list)):
        return type(found), [described(v) for v in found]
    array = found.numpy() if isinstance(found, gradcli.Tensor) else found
    return type(found), None if array is None else (array.dtype, array.shape, array.tobytes())


X, W = np.array([1.0, 2.0, 3.0]), np.array([0.5, -1.0, 2.0])
T = gradcli.tensor([1.0, 2.0, 3.0], dtype=gradcli.float64)
CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((X, W), {}),
    ((), {"x": X, "w": W}),
    ((), {"w": W, "x": X}),
    ((X,), {"w": W}),
    ((T, W), {}),
    ((X, T), {}),
    ((X, 2.0), {}),
    ((2.0, X), {}),
    ((2.0, 3.0), {}),
    ((np.float64(2), X), {}),
    ((X.astype("f4"), 0.1), {}),
    ((X.astype("f4"), np.float64(0.1)), {}),
    ((np.array(2.0), X), {}),
    ((gradcli.tensor(2.0), T), {}),
    ((np.arange(6.0)[::2], W), {}),
    ((np.ones((3, 3)).T, W), {}),
    ((X.astype(int), W), {}),
    ((2, X), {}),
    (([1.0, 2.0, 3.0], W), {}),
    ((np.zeros((0,)), np.zeros((0,))), {}),
    ((X, np.ones(2)), {}),
    ((X,), {}),
    ((X, W, W), {}),
    ((X, W), {"x": X}),
    ((X,), {"z": W}),
    ((), {"x": X, "z": W}),
]


@pytest.mark.parametrize("gradients", [False, True], ids=["value", "gradients"])
def test_quick_calls_are_those_of_the_long_way(gradients: bool) -> None:
    f = gradcli.compile("sum(x*w + x)")
    for args, named in CALLS * 2:  # first without a plan
        call = f.value_and_grad if gradients else f
        assert answer(call, args, named) == answer(long_way(f, gradients), args, named)
    assert gradients in f._quick


def test_nested_results_and_another_default_dtype() -> None:
    f = gradcli.compile(lambda x, y: {"a": x + y, "b": (x * 2, [y])})
    for _ in range(3):
        for args in ((X, W), (T, W), (2.0, X)):
            assert answer(f, args, {}) == answer(f._called, args, {})
    before = f(2.0, 1.0)["a"].dtype
    gradcli.set_default_dtype(gradcli.float64)
    try:
        assert answer(f, (2.0, 1.0), {}) == answer(f._called, (2.0, 1.0), {})
    finally:
        gradcli.set_default_dtype(gradcli.float32)
    assert f(2.0, 1.0)["a"].dtype == before


def test_an_error_that_numbers_show_is_in_the_words_of_the_tape() -> None:
    f = gradcli.compile(lambda a: gradcli.linalg.inv(a).sum())
    f(np.eye(2)), f(np.eye(2))
    with pytest.raises(RuntimeError, match="singular"):
        f(np.zeros((2, 2)))


def test_infinite_rows_are_computed_without_a_warning_as_on_the_tape() -> None:
    x = np.array([[np.inf, 1.0], [np.inf, np.inf]])
    f = gradcli.compile(lambda x: gradcli.log_softmax(x, 1).sum())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"gradcli\.")
        assert np.isnan(f(x))
        assert np.isnan(f.value_and_grad(x)[1]["x"]).all()
    assert not [str(found.message) for found in caught]
