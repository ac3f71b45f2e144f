"""`gradcli.grad(f)` and its like: of tensors as PyTorch has them, of arrays and numbers in doubles."""

from __future__ import annotations

import dataclasses
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import func
from gradcli.testing import assert_gradients
from tests.sweep import sweep

E3 = np.array([1.0, 2.0, 3.0])


def cube(x: Any) -> Any:
    return (x**3).sum()


def both(x: Any, y: Any) -> Any:
    return x * y**2


ANSWERS: list[tuple[str, Any]] = [
    ("gradcli.grad(cube)(E3)", [3, 12, 27]),
    ("func.grad(cube)(E3)", [3, 12, 27]),
    ("gradcli.grad(cube)(2.0)", 12),
    ("gradcli.grad(cube)(2)", 12),
    ("gradcli.grad(cube)(np.arange(3))", [0, 3, 12]),
    ("gradcli.grad(gradcli.grad(cube))(2.0)", 12),
    ("gradcli.grad(both, 1)(2.0, 3.0)", 12),
    ("gradcli.grad(both, (0, 1))(2.0, 3.0)", (9, 12)),
    ("gradcli.grad(both, wrt='y')(2.0, 3.0)", 12),
    ("gradcli.grad(both, x=2.0, y=3.0)", {"x": 9, "y": 12}),
    ("gradcli.grad(both, {'x': 2.0}, y=3.0, wrt='y')", 12),
    ("gradcli.grad(lambda x: (cube(x), x), has_aux=True)(2.0)", (12, 2)),
    ("gradcli.value_and_grad(cube)(E3)", (36, [3, 12, 27])),
    ("gradcli.value_and_grad(both, x=2.0, y=3.0, wrt='x')", (18, 9)),
    ("gradcli.hessian(cube)(E3)", [[6, 0, 0], [0, 12, 0], [0, 0, 18]]),
    ("gradcli.hessian(both, x=2.0, y=3.0)['x']['y']", 6),
    ("gradcli.jacobian(lambda x: np.stack([x[0]*x[1], x[2]]))(E3)", [[2, 1, 0], [0, 0, 1]]),
    ("gradcli.jacobian(lambda x: x*x, mode='forward')(E3)", [[2, 0, 0], [0, 4, 0], [0, 0, 6]]),
    ("gradcli.jvp(cube, (E3,), (np.ones(3),))", (36, 42)),
    ("func.vjp(cube, E3)[1](2.0)", ([6, 24, 54],)),
    ("func.linearize(cube, E3)[1](np.ones(3))", 42),
    ("gradcli.vmap(gradcli.grad(cube))(E3)", [3, 12, 27]),
    ("gradcli.grad(lambda p, x: (p['w'] @ x)**2)({'w': E3[:2]}, np.ones(2))", {"w": [6, 6]}),
    ("func.grad(lambda x: func.grad(lambda y: (y*x)**2)(3.0))(2.0)", 24),
    ("func.grad(lambda x: func.grad(lambda y: (y**2).sum())(E3).sum()*x)(2.0)", 12),
    ("gradcli.grad(gradcli.compile(cube))(E3)", [3, 12, 27]),
    ("gradcli.grad(lambda x, i: x[i].sum())(E3, np.array([0, 0]))", [2, 0, 0]),
]


def doubles(found: Any) -> Any:
    """The result as lists; every leaf a double of NumPy's."""
    if isinstance(found, dict):
        return {k: doubles(v) for k, v in found.items()}
    if isinstance(found, tuple):
        return tuple(map(doubles, found))
    assert isinstance(found, (np.ndarray, np.float64)) and found.dtype == np.float64, type(found)
    return found.tolist()


@sweep(("source", "answer"), ANSWERS, parts=1)
def test_arrays_and_numbers_are_doubles(source: str, answer: Any) -> None:
    assert doubles(eval(source, globals())) == answer


def test_dtypes_are_kept() -> None:
    assert func.grad(cube)(E3.astype("f4")).dtype == np.float32
    assert func.grad(both)(2.0, E3[:1].astype("f4")[0]).dtype == np.float32
    found = func.grad(cube)(gradcli.tensor([1.0]))
    assert isinstance(found, gradcli.Tensor) and found.dtype == gradcli.float32
    mixed = func.grad(both)(gradcli.tensor(1.0), np.float64(2))
    assert isinstance(mixed, gradcli.Tensor)


def test_nothing_is_written_into_what_is_given() -> None:
    x = E3.copy()

    def writes(a: Any) -> Any:
        a = a * 1
        a += 1
        return (a * a).sum()

    assert func.grad(writes)(x).tolist() == [4, 6, 8]
    assert x.tolist() == E3.tolist()


@sweep(("source", "words"), [
    ("gradcli.grad(both, z=1.0)", "the function has no parameter 'z' (it has x, y)"),
    ("gradcli.grad(both, E3)", "gradcli.grad(f) is a function: grad(f)(x)"),
    ("gradcli.grad(both, wrt='z')", "no parameter 'z'"),
    ("gradcli.grad(both, 0, wrt='x')", "wrt and argnums are two names"),
    ("gradcli.grad(cube)('3')", "must be Tensor, got <class 'str'>"),
    ("gradcli.grad(lambda x: __import__('math').exp(x))(1.0)", "the gradient would lack"),
], parts=1)  # fmt: skip
def test_words(source: str, words: str) -> None:
    with pytest.raises((TypeError, ValueError, RuntimeError)) as error:
        eval(source, globals())
    assert words in str(error.value)


X3, X22 = np.array([1.0, 2.0, 4.0]), np.array([[1.0, 5.0], [3.0, 2.0]])


def sorts(x: Any) -> Any:
    y = x + 0
    y.sort()
    return y[0] * 3 + y[1]


def writes_flat(x: Any) -> Any:
    x = x + 0
    y = x.flatten()
    y[0] = 0
    return (x * x).sum()


UNLIKE: list[tuple[Any, Any]] = [
    (lambda x: x.std(), X3),
    (lambda x: x.var(), X3),
    (lambda x: (x.var(0) * np.array([1, 2])).sum(), X22),
    (lambda x: (x.std(axis=1) * np.array([1, 2])).sum(), X22),
    (lambda x: (x.repeat(2) * np.arange(6.0)).sum(), X3),
    (sorts, np.array([3.0, 1.0, 2.0])),
    (lambda x: (x.transpose(0, 1) @ np.ones(2))[0], X22),
    (lambda x: (x.max(0)[0] * x.min(0)[0]).sum(), X22),
    (lambda x: x.max(axis=1)[1] ** 2, X22),
    (writes_flat, X22),
    (lambda x: x.sum() if x.dtype == np.float64 else (x * x).sum(), X3),
    (lambda x: x.sum() if isinstance(x, np.ndarray) else (x * x).sum(), X3),
    (lambda x: x * 2 if isinstance(x, float) else x * x, 3.0),
]


@pytest.mark.parametrize(("function", "x"), UNLIKE)
def test_a_function_of_arrays_keeps_its_meaning(function: Any, x: Any) -> None:
    """The value is that of f(ndarray), or the difference is refused in words."""
    for value_of in (
        lambda: gradcli.value_and_grad(function)(x)[0],
        lambda: func.vjp(function, x)[0],
        lambda: gradcli.jvp(function, (x,), (x,))[0],
        lambda: assert_gradients(function, x=x) or function(x),
    ):
        try:
            found = value_of()
        except ValueError as error:
            assert "of NumPy's arrays and" in str(error)
        else:
            np.testing.assert_allclose(found, function(np.array(x)[()]), rtol=1e-9)


def test_a_function_that_draws_is_not_refused() -> None:
    rng = np.random.default_rng(3)
    noise = np.random.default_rng(3).normal(size=2)
    noisy = gradcli.value_and_grad(lambda x: x * rng.normal())
    assert [noisy(1.0)[0], noisy(1.0)[0]] == noise.tolist()  # what it draws is what it drew before
    np.random.seed(1)
    first = gradcli.grad(lambda x: x * np.random.normal())(1.0), np.random.normal()
    np.random.seed(1)
    assert first == (np.random.normal(), np.random.normal())


def test_a_function_runs_once_more_for_each_set_of_shapes_alone() -> None:
    calls: list[int] = []

    def counted(x: Any) -> Any:
        calls.append(1)
        return (x * x).sum()

    for _ in range(3):
        gradcli.grad(counted)(X3)
    assert len(calls) == 4
    gradcli.grad(counted)(X22)
    assert len(calls) == 6


LOST = [
    (np.ma.masked_array([1.0, 2.0], [0, 1]), "x.compressed()"),
    (np.array([1.0], np.longdouble), "x.astype(float)"),
    (np.array([1.0, None]), "x.astype(float)"),
    (np.array([[1.0]]).view(np.matrix), "np.asarray(x)"),
    (Decimal("0.1"), "float(x)"),
    (Fraction(1, 3), "float(x)"),
]


@pytest.mark.parametrize(("x", "remedy"), LOST)
def test_what_an_array_of_numbers_cannot_tell_is_refused(x: Any, remedy: str) -> None:
    for call in (
        lambda: gradcli.grad(cube)(x),
        lambda: gradcli.compile(cube)(x),
        lambda: gradcli.compile("sum(x**3)").grad(x),
        lambda: gradcli.grad("sum(x**3)", x=x),
        lambda: assert_gradients(cube, x=x),
    ):
        with pytest.raises((TypeError, gradcli.LanguageError)) as caught:
            call()
        assert remedy in str(caught.value)


class Theirs:
    """An array of another library's."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array([1.0, 2.0])


@pytest.mark.parametrize("x", [Theirs(), np.array([1.0, 2.0], ">f8")])
def test_arrays_of_others_are_taken_as_they_are(x: Any) -> None:
    exact = [3.0, 12.0]
    assert doubles(gradcli.grad(cube)(x)) == exact
    compiled = gradcli.compile(cube)
    for _ in range(3):
        assert doubles(compiled.grad(x)) == exact
        assert doubles(compiled.grad(np.array([1.0, 2.0]))) == exact
    assert gradcli.grad("sum(x**3)", x=x).tolist() == exact


def banana(x: Any) -> Any:
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def test_products_with_derivatives_of_second_order() -> None:
    x, v = np.array([0.5, -1.0, 2.0]), np.array([1.0, 2.0, -1.0])
    right = gradcli.hessian(banana)(x) @ v
    np.testing.assert_allclose(gradcli.hvp(banana)(x, v), right)
    np.testing.assert_allclose(gradcli.hvp(banana)(gradcli.tensor(x), gradcli.tensor(v)), right)
    scaled = gradcli.hvp(lambda x, a: a * banana(x))(x, v, 2.0)
    np.testing.assert_allclose(scaled, 2 * right)
    for f in (gradcli.compile(banana), gradcli.compile(lambda x: banana(x[::-1][::-1]))):
        np.testing.assert_allclose(f.hvp(x, v), right)
    of_tensors = gradcli.compile(banana).hvp(gradcli.tensor(x), gradcli.tensor(v))
    np.testing.assert_allclose(of_tensors, right)
    f = gradcli.compile(lambda x, a: banana(x) * a["a"], wrt="x")
    np.testing.assert_allclose(f.hvp(x, v, {"a": 2.0}), 2 * right)
    np.testing.assert_allclose(gradcli.compile("sum(x**3)").hvp(x, v), 6 * x * v)
    with pytest.raises(ValueError, match=r"x has shape \(3,\), the direction \(2,\)"):
        f.hvp(x, v[:2], {"a": 2.0})
    value, back = gradcli.vjp(lambda x: x**2, x)
    assert (value.tolist(), back(v)[0].tolist()) == ((x**2).tolist(), (2 * x * v).tolist())


def test_matrices_of_functions_without_their_zeros() -> None:
    x = np.array([0.5, -1.0, 2.0])
    whole = gradcli.hessian(banana)(x)
    for found in (
        gradcli.hessian(banana, sparse=True)(x),
        gradcli.hessian(banana, sparse=True, x=x),
    ):
        np.testing.assert_allclose(found.dense(), whole)
    found = gradcli.jacobian(lambda a, x: a * x[1:] * x[:-1], sparse=True, wrt="x")(2.0, x)
    assert found.dense().tolist() == [[-2, 1, 0], [0, 4, -2]]
    assert gradcli.hessian(banana, sparse=False)(x).tolist() == whole.tolist()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("custom_vjp", "a class of gradcli.autograd.Function has a backward of its own"),
        ("custom_jvp", "a class of gradcli.autograd.Function has a jvp of its own"),
    ],
)
def test_names_of_other_libraries(name: str, said: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(said)):
        getattr(gradcli, name)


@dataclasses.dataclass
class Model:
    w: Any
    kind: str = "sum"
    bias: bool = False


def test_a_text_beside_the_variables_is_a_constant() -> None:
    def loss(model: Model, x: Any) -> Any:
        return np.sum(model.w * x) if model.kind == "sum" else np.mean(model.w * x)

    x = np.array([1.0, 2.0])
    found = gradcli.grad(loss)(Model(np.ones(2)), x)
    assert (found.w.tolist(), found.kind, found.bias) == ([1, 2], "sum", False)
    by_name = gradcli.grad(lambda p: np.sum(p["w"] ** 2) if p["n"] is None else 0.0)
    assert by_name({"w": x, "n": None})["w"].tolist() == [2, 4]
    with pytest.raises(ValueError, match="must be Tensor"):
        gradcli.func.grad(loss)(Model(gradcli.ones(2)), gradcli.ones(2))  # PyTorch's words


class Square(gradcli.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return np.square(x.numpy())

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * x * g


def test_an_operator_of_arrays_has_a_slope_of_its_own() -> None:
    x = np.array([1.0, 2.0])
    for slope in (gradcli.grad, lambda f: gradcli.compile(f).grad):
        assert slope(lambda x: np.sum(Square.apply(x) * 3))(x).tolist() == [6, 12]
