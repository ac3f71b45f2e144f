"""Functions of NumPy's arrays that are differentiated: values are NumPy's, gradients those of differences."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import gradcli

GIVEN = {
    "x": np.array([0.5, 1.2, 2.3, 0.9]),
    "X": np.array([[0.5, 1.5, 2.0], [3.0, 1.0, 0.25]]),
    "S": np.array([[2.0, 0.3], [0.1, 1.5]]),
}
# Methods that mean something else of tensors.
UNLIKE = """
x.std() | x.var() | X.var(0).sum() | X.std(axis=1).sum() | X.var(axis=0, ddof=1).sum()
x.repeat(2) @ np.arange(8.) | X.transpose(0, 1)[0, 1] | X.transpose()[0, 1]*2 | X.T[2, 1]**2
x[x.nonzero()].sum() | X.max(0)[0] | X.min(0)[0] | X.max(axis=1)[1] | (X.max(axis=0)**2).sum()
x.sum()/x.size | X.cumsum()[3]**2 | X.flatten()[2] | X.ravel('F')[2] | X.reshape((3, 2), order='F')[0, 1]
x.sum() if x.dtype == np.float64 else 0*x.sum() | x.sum() if isinstance(x, np.ndarray) else 2*x.sum()
x[0]*2 if isinstance(x[0], float) else x[0] | x[::-1] @ np.arange(4.) | X[0, [0, 2]].sum()
X[0, :, None][[0, 2]].sum() | X[::-1, 0] @ np.arange(2.) | X[[0, 1], [1, 2]].sum()
gradcli.exp(x).std() | gradcli.softmax(x, 0)[1] | x.copy().sum()
"""
OTHERS = """
x.round(1).sum() + x.sum() | x.astype(float).sum() | sum(v**2 for v in x.flat) | x.clip(1, 2).sum()
np.prod(X, axis=(0, 1)) | X.mean(axis=(0, 1)) | X.dot(np.ones(3))[0] | S.trace()
x.compress([1, 0, 1, 0]).sum()
x[x.argmax()]**2 | (x > 1).mean()*x.sum() | (1 - (x > 1)) @ x | np.where(x > 1, x**2, x).sum()
divmod(x[0], 1)[1]
[1, 2, 3, 4]*x @ np.ones(4) | x @ [1., 2., 3., 4.] | np.arange(4) @ x | (x/np.arange(1, 5)).sum()
max(x) | sum(x)
np.array([x[0], x[1]]).sum()**2 | np.array([x[0], 1.0, x[1]]) @ np.array([1., 2., 3.])
np.asarray(x).sum()
np.stack([x[0], 1.0, x[1]]) @ np.arange(3.) | np.concatenate([x, [1., 2.]]) @ np.arange(6.)
np.hstack([x, 1.0, x]) @ np.arange(9.) | np.r_[x, 1.0] @ np.arange(5.)
np.block([[S, S], [S, S]])[3, 3]**2
np.pad(x, 1) @ np.arange(6.) | np.pad(x, (1, 2), mode='edge') @ np.arange(7.)
np.insert(x, 1, 5.) @ np.arange(5.)
np.delete(x, 1) @ np.arange(3.) | np.choose([0, 1, 0, 1], [x, x**2]).sum() | np.add.reduce(x)**2
np.rot90(X)[0, 1]
np.subtract.outer(x, x)[0, 1]**2 | np.deg2rad(x).sum() | np.positive(x).sum() | np.sum(x, where=x > 1)
np.mean(x, where=x > 1) | np.sum(x, initial=2.) | np.max(x, initial=0.1) | np.cov(X)[0, 1]
np.corrcoef(X)[0, 1]
np.correlate(x, [1., 2.]) @ np.arange(3.) | np.repeat(x, [1, 2, 1, 1]) @ np.arange(5.)
np.diag(x)[1, 1]**2
np.atleast_2d(x)[0, 1] | np.ravel(X)[2] | np.degrees(x).sum() | np.nan_to_num(x).sum()
round(x[0], 1) + x[0]
"""


def differences(function: Any, at: Any) -> Any:
    """The gradient by central differences."""
    found = np.zeros_like(at)
    for place in np.ndindex(at.shape):
        step = np.zeros_like(at)
        step[place] = 1e-6
        found[place] = (function(at + step) - function(at - step)) / 2e-6
    return found


def check(source: str) -> None:
    name = next(n for n in GIVEN if re.search(rf"\b{n}\b", source))
    function = eval(f"lambda {name}: {source}", {"np": np, "gradcli": gradcli})
    value, slope = gradcli.value_and_grad(function)(GIVEN[name])
    np.testing.assert_allclose(value, function(GIVEN[name].copy()), rtol=1e-10, err_msg=source)
    right = differences(function, GIVEN[name])
    np.testing.assert_allclose(slope, right, rtol=1e-4, atol=1e-6, err_msg=source)


@pytest.mark.parametrize("line", UNLIKE.strip().splitlines())
def test_methods_mean_what_they_mean_of_arrays(line: str) -> None:
    for source in line.split(" | "):
        check(source)


@pytest.mark.long
@pytest.mark.parametrize("line", OTHERS.strip().splitlines())
def test_what_arrays_can_do(line: str) -> None:
    for source in line.split(" | "):
        check(source)


def test_writes_are_those_of_arrays() -> None:
    def sorts(x: Any) -> Any:
        y = x + 0
        y.sort()
        y[1:] *= 2
        return y @ np.arange(4.0)

    def keeps(x: Any) -> Any:
        y = x + 0
        y.flatten()[0] = 7
        y.astype(float)[0] = 7
        z = np.zeros_like(x)
        z[0] = y[0] ** 2
        return y @ y + z.sum()

    for function in (sorts, keeps):
        value, slope = gradcli.value_and_grad(function)(GIVEN["x"])
        assert value == function(GIVEN["x"].copy())
        right = differences(lambda x: function(x.copy()), GIVEN["x"])  # noqa: B023
        np.testing.assert_allclose(slope, right, rtol=1e-6)


def test_an_argument_is_not_written_into() -> None:
    def writes(x: Any) -> Any:
        x[0] = 1
        return x.sum()

    with pytest.raises(RuntimeError) as caught:
        gradcli.grad(writes)(GIVEN["x"])
    assert caught.value.__notes__ == ["hint: write into a copy of the argument: `x = x.copy()`"]


def test_what_arrays_lack_means_what_it_means_of_tensors() -> None:
    for function in (lambda x: x.sum(dim=0) ** 2, lambda x: x.unsqueeze(0).sum() ** 2):
        assert gradcli.grad(function)(GIVEN["x"]).tolist() == [9.8] * 4


def test_all_transforms_have_it() -> None:
    x = GIVEN["x"]
    slope = (x - x.mean()) / (4 * x.std())
    np.testing.assert_allclose(gradcli.jacobian(lambda x: x.std()[None])(x), slope[None])
    np.testing.assert_allclose(gradcli.jvp(lambda x: x.std(), (x,), (x,))[1], slope @ x)
    np.testing.assert_allclose(gradcli.func.vjp(lambda x: x.std(), x)[1](1.0)[0], slope)
    np.testing.assert_allclose(gradcli.vmap(lambda x: x.std())(np.stack([x, x])), [x.std()] * 2)
    inner = gradcli.grad(lambda x: gradcli.grad(lambda y: (y**3).sum())(x).std())(x)
    np.testing.assert_allclose(inner, gradcli.grad(lambda x: (3 * x**2).std())(x))
    np.testing.assert_allclose(gradcli.hessian(lambda x: x.var())(x), (np.eye(4) - 1 / 4) / 2)
    assert gradcli.grad(lambda x: 3.0)(x).tolist() == [0.0] * 4
