"""Functions of NumPy's arrays that are differentiated: values are NumPy's, gradients those of differences."""

from __future__ import annotations

import pickle
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


def unpickled(x: Any) -> Any:
    return pickle.loads(pickle.dumps(x))


def noted(x: Any) -> Any:
    return x.astype(np.dtype(x.dtype, metadata={"unit": "m"}))


def foreign(x: Any) -> Any:
    return x.astype(x.dtype.newbyteorder(">"))


X1, M1 = np.array([0.1, 1.1, 2.3]), np.arange(9.0).reshape(3, 3) + 0.3
# What is computed of arrays that were pickled, or are of another machine; `of` makes them so.
ENTRIES = """
gradcli.grad(lambda x: np.sum((x + 1.1)**2))(of(X))
gradcli.grad(lambda x: np.sum((x + 1.1)**2))(of(X.astype('f')))
gradcli.grad(lambda z: np.abs(z*1000.3).sum())(of(X + 1j))
gradcli.grad("sum((x + 1.1)**2)", x=of(X))
gradcli.grad("sum((x + 1.1)**2)", x=of(X.astype('f')))
gradcli.grad("x @ A @ x", x=X, A=of(A), wrt="x")
gradcli.value_and_grad(lambda x: np.sum((x*1000.3)**2))(of(X))[0]
gradcli.jacobian(lambda x: x*1000.3)(of(X))
gradcli.hessian(lambda x: np.sum(100*(x[1:] - x[:-1]**2)**2))(of(X))
gradcli.jvp(lambda x: np.sum(x*1000.3), (of(X),), (of(X),))[1]
gradcli.func.vjp(lambda x: x*1000.3, of(X))[1](of(X))[0]
gradcli.vmap(gradcli.grad(lambda x: (x**2).sum()))(of(A))
gradcli.grad(lambda x: np.sum(x*of(X)*1000.3))(X)
gradcli.grad(lambda x: np.sum(x*of(np.arange(3, dtype='i4'))*1000.3))(X)
gradcli.grad(lambda x: np.sum(x*of(np.arange(3, dtype='i2'))*1000.3))(X)
gradcli.grad(lambda x: x @ np.einsum('ij,j->i', of(A), x) + np.dot(of(A), x).sum())(X)
gradcli.grad(lambda x: np.where(of(X > 1), x*of(X), 1000.3).sum())(X)
gradcli.grad(lambda x: np.linalg.solve(of(A + 9*np.eye(3)), x).sum()*1000.3)(X)
gradcli.compile(lambda x: np.sum((x*of(X))**2)).grad(of(X))
gradcli.compile(lambda x: np.sum((x*of(X))**2)).hessian(of(X))
gradcli.compile(lambda x: x @ of(A) @ x + np.einsum('ij,j->i', of(A), x).sum()).grad(of(X))
gradcli.compile("sum((x + 1.1)**2)", native=True).grad(of(X))
gradcli.compile(lambda p, x: np.sum(p['w']*x*1000.3), wrt='p').grad({'w': of(X)}, of(X))['w']
gradcli.map("a*x**2*1000.3", {"x": of(X)}, a=3)["x.grad"]
gradcli.check("sum((x + 1.1)**2)", expected=of(2*X + 2.2), x=of(X)).ok
gradcli.minimize("sum((x - c)**2)", x=of(X), c=X[::-1].copy(), wrt="x").value
gradcli.tensor(X)*of(X)*1000.3
gradcli.tensor(1.0)*(of(X)*gradcli.tensor(X))
"""
TENSORS = """
gradcli.from_numpy(of(X))*1000.3 + gradcli.tensor(X)
gradcli.as_tensor(of(X.astype('f')))*1000.3
gradcli.tensor(of(X))*1000.3
gradcli.from_numpy(of(X.astype('e')))/gradcli.tensor(X.astype('e'))
gradcli.mm(gradcli.from_numpy(of(A)), gradcli.tensor(A))
gradcli.zeros(3, dtype=gradcli.float64).copy_(gradcli.from_numpy(of(X)))
of(gradcli.tensor(X)*1000.3) if of is pickled else gradcli.tensor(X)*1000.3
"""


@pytest.mark.parametrize("of", [unpickled, noted, foreign])
@pytest.mark.parametrize("source", (ENTRIES.strip() + TENSORS).strip().splitlines())
def test_a_dtype_is_what_it_says(source: str, of: Any) -> None:
    """Of a pickled array it is another object, and of one of another machine the bytes are turned."""
    names = {"np": np, "gradcli": gradcli, "X": X1, "A": M1, "pickled": unpickled}
    right = np.asarray(eval(source, names | {"of": lambda x: x}))
    if of is foreign and source in TENSORS:
        if not source.startswith("of("):
            with pytest.raises(ValueError, match="byte order different"):  # PyTorch's words
                eval(source, names | {"of": of})
        return
    found = np.asarray(eval(source, names | {"of": of}))
    assert found.dtype == right.dtype
    assert found.tolist() == right.tolist()


LEAVING = """
np.sum(x)*x[0].item() | .item()
np.sum(x)*x.item(0) | .item()
np.sum(x)*x.tolist()[0] | .tolist()
sum([v**2 for v in x.tolist()]) | .tolist()
np.sum(x)*float(x[0]) | float()
np.sum(x)*int(x[2]) | float()
"""
QUESTIONS = {
    "grad": lambda f, x: gradcli.grad(f)(x),
    "hessian": lambda f, x: gradcli.hessian(f)(x),
    "jvp": lambda f, x: gradcli.jvp(f, (x,), (x,)),
    "compile": lambda f, x: gradcli.compile(f).grad(x),
    "native": lambda f, x: gradcli.compile(f, native=True).value_and_grad(x),
    "compiled hessian": lambda f, x: gradcli.compile(f).hessian(x),
}


@pytest.mark.parametrize("ask", QUESTIONS)
@pytest.mark.parametrize("line", LEAVING.strip().splitlines())
def test_no_number_leaves(line: str, ask: str) -> None:
    source, left = line.split(" | ")
    function = eval(f"lambda x: {source}", {"np": np})
    with pytest.raises(RuntimeError, match="the gradient would lack") as caught:
        QUESTIONS[ask](function, GIVEN["x"])
    assert left in caught.value.__notes__[0]


def test_what_is_a_constant_on_purpose() -> None:
    def held(x: Any) -> Any:
        with gradcli.no_grad():
            largest = x.max().item()
        return np.sum(x) * (largest + x[0].detach().item())

    for slope in (gradcli.grad(held), gradcli.compile(held).grad):
        np.testing.assert_allclose(slope(GIVEN["x"]), [2.8] * 4)
    tensor = gradcli.tensor(GIVEN["x"])
    for slope in (gradcli.func.grad, lambda f: gradcli.compile(f).grad):
        found = slope(lambda x: x.sum() * x[0].item())(tensor)  # PyTorch's program
        np.testing.assert_allclose(found, [0.5] * 4)


# -- writes: (what is written, z after it from y) of y = [1.5, 2, 3] ----------------------------------
def _softmax(y: Any) -> Any:
    p = np.exp(y - y.max())
    p /= p.sum()
    return p


def _repeated(y: Any) -> Any:
    z = np.zeros_like(y)
    z[[0, 0, 1]] = y
    return z


def _added_to_repeated(y: Any) -> Any:
    z = y * 1.0
    z[[0, 0, 1]] += y**2
    return z


def _copy(y: Any) -> Any:
    z = np.outer(y, y)
    r = z.flatten()
    r *= y[0]
    return z.sum(0) + r[:3]


def _sorted(y: Any) -> Any:
    z = -y
    z.sort()
    return z**2


def _seen_twice(y: Any) -> Any:
    z = y * 2.0
    part = z[1:]
    z *= y
    return z + np.concatenate([part, y[:1]])


@pytest.mark.parametrize(
    "made", [_softmax, _repeated, _added_to_repeated, _copy, _sorted, _seen_twice]
)
def test_writes_within_a_function(made: Any) -> None:
    def loss(y: Any) -> Any:
        return (made(y) * np.array([1.0, -2.0, 0.5])).sum()

    compiled = gradcli.compile(loss)
    compiled.grad(np.ones(3))  # where some readings agree by chance
    y, h = np.array([1.5, 2.0, 3.0]), 1e-6
    slopes = [(loss(y + h * e) - loss(y - h * e)) / (2 * h) for e in np.eye(3)]
    for found in (gradcli.grad(loss)(y), compiled.grad(y)):
        np.testing.assert_allclose(found, slopes, rtol=1e-7, atol=1e-8)
