"""Programs of small arrays as one C function: the tape's values, for every kind of call."""

from __future__ import annotations

import random
import re
import shutil
import warnings
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.columns.compiler import whole_programs
from gradcli.transforms.tracing.numpy_tracer import trace_numpy
from tests.fuzz import native
from tests.sweep import sweep

compiles = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


@pytest.fixture(autouse=True)
def in_double_precision() -> Any:
    before = gradcli.get_default_dtype()
    gradcli.set_default_dtype(gradcli.float64)
    yield
    gradcli.set_default_dtype(before)


def scalars(x: Any, y: Any, z: Any) -> Any:
    return gradcli.exp(-(x * y)) * gradcli.sin(z) + x**2 / (1 + y * y) - z


def chain(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


@compiles
def test_numbers_go_through_one_function_however_they_are_given() -> None:
    f, point = gradcli.compile(scalars, native=True), (0.3, 0.7, 1.1)
    wanted, slopes = gradcli.compile(scalars).value_and_grad(*point)

    def agree(found: Any) -> None:
        value, grads = found
        assert float(value) == pytest.approx(float(wanted), rel=1e-15)
        assert [*grads] == ["x", "y", "z"]
        for name, slope in slopes.items():
            assert float(grads[name]) == pytest.approx(float(slope), rel=1e-14)

    for _ in range(2):  # the first call compiles
        agree(f.value_and_grad(*point))
    agree(f.value_and_grad(x=0.3, y=0.7, z=1.1))
    agree(f.value_and_grad(z=1.1, x=0.3, y=0.7))
    agree(f.value_and_grad(0.3, y=0.7, z=1.1))
    agree(f.value_and_grad(*map(np.float64, point)))
    agree(f.value_and_grad(np.array(0.3), gradcli.tensor(0.7), 1.1))
    gradcli.set_default_dtype(gradcli.float32)
    agree(f.value_and_grad(*point))
    assert type(f.value_and_grad(*point)[0]) is np.float64
    assert repr(f).splitlines()[1] == "  one C function: 27 operations"
    with pytest.raises(TypeError, match="needs a value for z"):
        f.value_and_grad(0.3, 0.7)
    with pytest.raises(TypeError, match="no variable 'w'"):
        f.value_and_grad(0.3, 0.7, 1.1, w=2.0)


@compiles
def test_a_sparse_hessian_has_the_bits_that_it_has_without_c() -> None:
    x = np.random.default_rng(0).standard_normal(23)
    f, other = gradcli.compile(chain, native=True), gradcli.compile(chain)
    found = [f.sparse_hessian(given) for given in (x, x, np.repeat(x, 2)[::2], x.tolist())]
    wanted = other.sparse_hessian(x)
    for each in found:
        assert np.array_equal(each.values, wanted.values)
        assert np.array_equal(each.indices, wanted.indices)
        assert each.shape == wanted.shape
    kept = found[0].values.copy()
    f.sparse_hessian(x + 1)
    assert np.array_equal(found[0].values, kept)  # a result has memory of its own


def test_a_python_float_is_a_double_but_beside_single_precision() -> None:
    gradcli.set_default_dtype(gradcli.float32)
    f = gradcli.compile("x*y")
    assert f(x=0.1, y=3.0) == 0.1 * 3.0
    assert (f(x=0.1, y=np.ones(2)) == 0.1).all()
    single = f(x=0.1, y=gradcli.tensor(2.0))
    assert single.dtype is gradcli.float32


def test_what_has_no_c_form_is_named(monkeypatch: Any) -> None:
    monkeypatch.setattr(whole_programs, "DirectCalls", None)  # nothing is compiled
    f = gradcli.compile("sum(sort(x)[0]*x)", native=True)
    f(x=np.arange(3.0))
    assert "not as C: argsort" in repr(f)


def test_without_a_compiler_a_line_says_so(monkeypatch: Any) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.warns(UserWarning, match="no C compiler: 'no-such-compiler'"):
        assert gradcli.compile("x*x*1.21875", native=True)(x=2.0) == 4 * 1.21875


@compiles
@pytest.mark.long
@pytest.mark.parametrize("n", [0, 1, 511, 512, 513])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_every_length_has_the_tapes_values(n: int, dtype: str) -> None:
    def program(x: Any, s: Any) -> Any:
        return (x.exp() * s).sin().sum() + (x * x).amax() if n else (x * s).exp().sum() + s

    x = np.random.default_rng(n).standard_normal(n).astype(dtype)
    s = np.dtype(dtype).type(0.75)
    value, grads = gradcli.compile(program, native=True).value_and_grad(x=x, s=s)
    wanted, slopes = gradcli.compile(program).value_and_grad(x=x, s=s)
    near = {"rtol": 1e-12 if dtype == "f8" else 3e-5, "atol": 1e-12 if dtype == "f8" else 1e-5}
    np.testing.assert_allclose(value, wanted, **near)
    for name in slopes:
        assert grads[name].dtype == slopes[name].dtype
        np.testing.assert_allclose(grads[name], slopes[name], **near)


@compiles
@pytest.mark.long
@sweep("seed", range(16))
@pytest.mark.parametrize("make", [native.flat, native.few, native.moved])
def test_random_programs(make: Any, seed: int) -> None:
    assert native.attempt(random.Random(seed), make, whole=True) is None


@compiles
@pytest.mark.long
def test_no_more_than_eight_shapes_are_compiled_apart() -> None:
    f = gradcli.compile("sum(x*x*1.09375)", native=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = [f(x=np.arange(float(n))) for n in range(1, 12)]
    assert values == [1.09375 * sum(k * k for k in range(n)) for n in range(1, 12)]
    assert repr(f).count("one C function") == 8


def heat(x: Any, steps: int = 5) -> Any:
    for _ in range(steps):
        inner = x[1:-1] + 0.1 * (x[2:] - 2 * x[1:-1] + x[:-2])
        x = gradcli.cat([x[:1], inner, x[-1:]])
    return (x**2).sum()


def turned(x: Any) -> Any:
    for k in range(1, 5):
        x = x * x.roll(k) + x.flip(0) * gradcli.sin(x)
    return x.mean()


def folded(x: Any) -> Any:
    a, b = x[::2], x[1::2]
    for _ in range(3):
        a, b = gradcli.tanh(a + 0.5 * b), gradcli.cat([b[1:], a[:1]]) - a
    return (a * b).sum()


def chosen(x: Any) -> Any:
    for k in range(4):
        x = gradcli.where(x > 0.1 * k, x, x.roll(1)) + x.reshape(-1, 2).sum(1).repeat(2) / 9
    return (x**2).sum()


@pytest.mark.long
@compiles
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [8, 512, 514, 2000])
@pytest.mark.parametrize("program", [heat, turned, folded, chosen], ids=lambda f: f.__name__)
def test_arrays_between_loops_share_memory(program: Any, size: int, dtype: Any) -> None:
    f = gradcli.compile(lambda x: program(x), native=True)
    for seed in (0, 1, 2):  # nothing is left of the call before
        x = np.random.default_rng(seed).standard_normal(size).astype(dtype)
        value, grads = f.value_and_grad(x)
        tensor = gradcli.tensor(x, requires_grad=True)
        wanted = program(tensor)
        wanted.backward()
        close = {"rtol": 1e4 * np.finfo(dtype).eps, "atol": 1e4 * np.finfo(dtype).eps}
        np.testing.assert_allclose(value, wanted.item(), **close)
        np.testing.assert_allclose(grads["x"], tensor.grad.numpy(), **close)
    if program is not chosen:
        assert "one C function" in repr(f)


def test_memory_is_shared_where_lives_do_not_meet() -> None:
    """Twice as many steps of one kind need no more arrays between them."""
    sizes = []
    for steps in (4, 8):
        trace = trace_numpy(lambda x, n=steps: heat(x, n), {"x": np.ones(64)}, backward=False)
        text = whole_programs.WholeProgram(trace.outputs, list(trace.inputs.values())).text
        sizes.append(sum(map(int, re.findall(r"static double \w+\[(\d+)\]", text))))
    assert sizes[0] == sizes[1] > 0


@pytest.mark.long
@compiles
def test_small_arrays_whose_elements_move_are_not_many_calls_of_c() -> None:
    f = gradcli.compile(lambda x: heat(x), native=True)
    x = np.random.default_rng(0).standard_normal(25_000)
    value, grads = f.value_and_grad(x)
    lines = repr(f).splitlines()
    assert "straight line" in lines[1]
    assert lines[-1].strip() == "not as C: larger arrays"
    wanted, slopes = gradcli.compile(lambda x: heat(x)).value_and_grad(x)
    assert value == wanted
    assert np.array_equal(grads["x"], slopes["x"])
