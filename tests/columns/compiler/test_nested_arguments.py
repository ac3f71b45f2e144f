"""Compiled functions of dicts, tuples and objects of arrays; of constants; of arguments with defaults."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import gradcli
from gradcli.columns.compiler import compiled_function

X = np.arange(6.0).reshape(3, 2) / 7
P = {"w": np.array([1.0, 2.0]), "b": 0.5}


def loss(p: Any, x: Any, power: int = 2, mode: str = "mean") -> Any:
    found = (x @ p["w"] + p["b"]) ** power
    return found.mean() if mode == "mean" else found.sum()


@dataclass
class Layer:
    w: Any
    b: Any
    activation: str = "tanh"


class Pair(NamedTuple):
    a: Any
    b: Any


def tensors(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: tensors(v) for k, v in value.items()}
    return gradcli.tensor(value, dtype=gradcli.float64)


def test_gradients_are_nested_as_the_arguments() -> None:
    f = gradcli.compile(loss)
    wanted = gradcli.func.grad(loss, argnums=(0, 1))(tensors(P), tensors(X))
    for _ in range(3):  # the tape, the plan, the quick call
        value, grads = f.value_and_grad(P, X)
        assert value == pytest.approx(float(np.mean((X @ P["w"] + P["b"]) ** 2)))
        assert list(grads) == ["p", "x"]  # what has a default is a constant
        np.testing.assert_allclose(grads["p"]["w"], wanted[0]["w"].numpy())
        np.testing.assert_allclose(grads["p"]["b"], wanted[0]["b"].numpy())
        np.testing.assert_allclose(grads["x"], wanted[1].numpy())
    assert "p.w: float64[2]" in repr(f) and "no plan" not in repr(f)


def test_what_is_differentiated_by() -> None:
    assert set(gradcli.compile(loss, wrt="p").grad(P, X)) == {"w", "b"}
    assert gradcli.compile(loss, wrt="p.w").grad(P, X).shape == (2,)
    assert set(gradcli.compile(loss, wrt=["p.b", "x"]).grad(P, X)) == {"p.b", "x"}
    assert gradcli.compile(loss, wrt=["power"]).grad(P, X, power=2.0) > -np.inf
    with pytest.raises(ValueError, match=r"there is no 'p\.v' in the argument 'p'"):
        gradcli.compile(loss, wrt="p.v").grad(P, X)


def test_constants_have_a_program_each() -> None:
    f = gradcli.compile(loss)
    mean, total = f(P, X), f(P, X, mode="sum")
    assert total == pytest.approx(3 * mean)
    assert f(P, X, 2, "mean") == mean
    assert "mode='sum'" in repr(f)
    g = gradcli.compile(lambda x, up: (x * 2 if up else -x).sum())
    assert (g(X, True), g(X, False)) == (2 * X.sum(), -X.sum())
    h = gradcli.compile(lambda x, n: sum(x**k for k in range(n)).sum(), static="n")
    assert [h.grad(np.ones(2), n).tolist() for n in (2, 3)] == [[1, 1], [3, 3]]
    assert "no plan" not in repr(h)


def test_objects_tuples_and_what_is_gathered() -> None:
    @gradcli.compile
    def f(layer: Any, pair: Any, *xs: Any, k: float = 2.0, **more: Any) -> Any:
        found = layer.w @ pair.a + layer.b * pair.b + sum(x.sum() for x in xs)
        return found * k + sum(v for v in more.values())

    given = Layer(np.ones(2), 1.0), Pair(np.ones(2), 3.0), np.ones(2), np.ones(3)
    value, grads = f.value_and_grad(*given, z=2.0)
    assert value == 22
    assert isinstance(grads["layer"], Layer) and grads["layer"].activation == "tanh"
    assert grads["layer"].w.tolist() == [2, 2] and grads["layer"].b == 6
    assert grads["pair"] == Pair(grads["pair"].a, 2.0)
    assert [g.tolist() for g in grads["xs"]] == [[2, 2], [2, 2, 2]]
    assert grads["more"] == {"z": 1.0}


def test_results_keep_constants() -> None:
    f = gradcli.compile(lambda x: {"a": x.sum(), "n": 3, "layer": Layer(x * 2, None)})
    for _ in range(3):
        found = f(np.ones(2))
        assert (found["a"], found["n"]) == (2, 3)
        assert found["layer"].w.tolist() == [2, 2] and found["layer"].b is None
    assert "no plan" not in repr(f)


def test_scipy_s_methods_take_the_value_and_the_gradient() -> None:
    optimize = pytest.importorskip("scipy.optimize")
    f = gradcli.compile(lambda w, x, y: ((x @ w - y) ** 2).mean(), wrt="w")
    x = np.array([[1.0, 2], [3, 4], [5, 7]])
    found = optimize.minimize(f.value_and_grad, np.zeros(2), args=(x, x @ [1, -2]), jac=True)
    np.testing.assert_allclose(found.x, [1, -2], atol=1e-4)


def test_gradients_by_one_variable_are_its_gradient() -> None:
    _, grads = gradcli.compile("sum(x**2)").value_and_grad(x=np.ones(2))
    assert grads == {"x": grads["x"]}
    assert np.asarray(grads).tolist() == (1 * grads).tolist() == [2, 2]
    assert (np.ones(2) - 0.5 * grads).tolist() == [0, 0]
    _, grads = gradcli.compile("sum(x*y)").value_and_grad(x=np.ones(2), y=np.ones(2))
    with pytest.raises(TypeError, match=r"the gradients by x, y: choose one .* grads\['x'\]"):
        0.1 * grads


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((np.ones(2), object()), "cfg is a object, which is neither an array nor holds arrays"),
        ((np.ones(2), {"a": {1, 2}}), "cfg.a is a set"),
        ((np.ones(2),), "needs a value for cfg"),
    ],
)
def test_what_is_neither(args: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        gradcli.compile(lambda x, cfg: x.sum())(*args)


def test_static_names_are_parameters() -> None:
    with pytest.raises(ValueError, match=r"static: .* has no parameter 'm'"):
        gradcli.compile(loss, static="m")
    with pytest.raises(TypeError, match="n is a list, which can change"):
        gradcli.compile(lambda x, n: x, static="n")(1.0, [1])


def test_a_constant_that_is_new_each_time_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_function, "_FORMS", 2)
    f = gradcli.compile(lambda x, g: g(x).sum())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(4):
            assert f(np.ones(2), lambda x: x * 3) == 6
    assert [str(w.message) for w in caught if "g has another one at each call" in str(w.message)]
    assert len(f.forms) == 2


# -- what leaves the graph, and what means something else -------------------------------------------
def exponent(x: Any) -> Any:
    import math

    return math.exp(x) * x


def filled(x: Any) -> Any:
    found = np.zeros(2)
    found[0] = x[0] ** 2
    return found.sum() + x.sum()


@pytest.mark.parametrize(
    ("function", "point", "hint"),
    [
        (exponent, 1.0, "math.exp makes a number without a gradient: write np.exp"),
        (filled, np.ones(2), r"put the elements together by np.stack\(\[…\]\)"),
        (lambda x: x * float(x), 2.0, r"write float\(x.detach\(\)\)"),
    ],
)
def test_no_term_of_a_gradient_is_lost(function: Any, point: Any, hint: str) -> None:
    f = gradcli.compile(function)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="the gradient would lack") as error:
            f.value_and_grad(point)
    error.match(__file__)
    assert pytest.importorskip("re").search(hint, error.value.__notes__[0])


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("method", ["__call__", "value_and_grad"])
def test_a_function_means_the_same_of_tensors_as_of_arrays(native: bool, method: str) -> None:
    f = gradcli.compile(lambda x: x.sum() * (2 if type(x) is np.ndarray else 1), native=native)
    for _ in range(3):
        with pytest.raises(ValueError, match=r"gives 12 of NumPy's arrays and 6 of tensors"):
            getattr(f, method)(np.array([1.0, 2, 3]))


POINT = np.array([0.5, -1.0, 2.0, 0.3])


@pytest.mark.parametrize(
    ("function", "slope"),
    [
        (lambda x: x.var(), (POINT - POINT.mean()) / 2),
        (lambda x: x.max(0) * 3.0, [0, 0, 3, 0]),
        (lambda x: (x[::-1] * np.arange(4)).sum(), [3, 2, 1, 0]),
        (lambda x: (np.asarray(x) ** 2).sum(), 2 * POINT),
        (lambda x: (x.astype(float) ** 2).sum(), 2 * POINT),
        (lambda x: (x // 1 * x).sum(), POINT // 1),
        (lambda x: np.sum([x[0] ** 2, x[2]]), [1, 0, 1, 0]),
        (lambda x: np.vectorize(lambda v: v**2)(x).sum(), 2 * POINT),
        (lambda x: (x[np.nonzero(x > 0)[0]] ** 2).sum(), [1, 0, 4, 0.6]),
        (lambda x: np.tensordot(x, x, axes=1), 2 * POINT),
        (lambda x: np.dot(x.copy(), x.flatten()), 2 * POINT),
    ],
)
def test_what_arrays_can_do_is_compiled(function: Any, slope: Any) -> None:
    f = gradcli.compile(function)
    for _ in range(2):
        assert f.value_and_grad(POINT)[0] == pytest.approx(function(POINT), rel=1e-14)
        np.testing.assert_allclose(f.grad(POINT), slope, rtol=1e-14)
    np.testing.assert_allclose(f.grad(POINT), gradcli.grad(function)(POINT), rtol=1e-14)


def test_what_arrays_can_do_is_compiled_to_c() -> None:
    f = gradcli.compile(lambda x: (x[::-1] * np.arange(4)).sum() + x.var(), native=True)
    for _ in range(2):
        np.testing.assert_allclose(f.grad(POINT), [3, 2, 1, 0] + (POINT - POINT.mean()) / 2)
    assert "one C function" in repr(f)


def test_what_tensors_refuse_in_a_derivative_alone() -> None:
    def square(x: Any) -> Any:
        return np.tensordot(x, x, axes=1)

    f = gradcli.compile(square)
    assert f(POINT) == POINT @ POINT  # of numbers NumPy's own answers
    assert f.grad(POINT).tolist() == (2 * POINT).tolist()
    for ask in ("hvp", "hessian", "sparse_hessian"):
        found = getattr(gradcli.compile(square), ask)(POINT, *[POINT] * (ask == "hvp"))
        dense = found.dense() if ask == "sparse_hessian" else found
        assert dense.tolist() == (2 * POINT if ask == "hvp" else 2 * np.eye(4)).tolist()


def test_tensors_keep_their_meaning() -> None:
    f = gradcli.compile(lambda x: x.std() ** 2)
    x = np.array([1.0, 2, 3])
    for _ in range(2):
        assert f(x) == pytest.approx(2 / 3)
        assert f(gradcli.tensor(x)) == 1
        assert f.value_and_grad(gradcli.tensor(x))[0] == 1
        assert f.hessian(x)[0, 0] == pytest.approx(4 / 9)
        assert f.hessian(gradcli.tensor(x))[0, 0] == pytest.approx(2 / 3)
    torchs = gradcli.compile(lambda x: x.max(0).values)
    assert torchs(x) == 3
    assert gradcli.grad(lambda x: torchs(x) ** 2)(x).tolist() == [0, 0, 6]
    within = gradcli.grad(lambda x: f(x) * 3)  # f within a function of arrays
    np.testing.assert_allclose(within(x), [-2, 0, 2], atol=1e-15)
    np.testing.assert_allclose(gradcli.compile(lambda x: f(x) * 3).grad(x), [-2, 0, 2], atol=1e-15)


def test_random_numbers_are_no_constants() -> None:
    f = gradcli.compile(lambda x: (x * np.random.rand(3)).sum())
    with pytest.raises(ValueError, match="gives other values at each call"):
        f(np.ones(3))


def test_matrices_of_derivatives_for_scipy() -> None:
    optimize = pytest.importorskip("scipy.optimize")
    t = np.linspace(0, 3, 20)
    f = gradcli.compile(lambda p, t, d: p[0] * np.exp(-p[1] * t) - d, wrt="p")
    found = optimize.least_squares(f, [1.0, 1.0], jac=f.jacobian, args=(t, 2 * np.exp(-1.3 * t)))
    np.testing.assert_allclose(found.x, [2, 1.3], atol=1e-6)
    np.testing.assert_array_equal(
        f.jacobian([1, 1], t, t), f.sparse_jacobian([1.0, 1], t, t).dense()
    )
    g = gradcli.compile(lambda x, y: (x**3).sum() * y)
    assert g.hessian(np.ones(2), 2.0)["x"]["x"].tolist() == [[12, 0], [0, 12]]
    assert g.hessian(np.ones(2), 2.0)["x"]["y"].tolist() == [3, 3]
    assert type(gradcli.compile(lambda x: x**3).hessian(2.0)) is np.float64


def test_numpy_s_functions_are_compiled_where_no_gradient_is_asked_for() -> None:
    f = gradcli.compile(lambda x: np.sort(np.exp(x)).sum())
    assert f(np.zeros(2)) == 2 and "no plan" not in repr(f)


def test_a_branch_without_a_variable_has_the_gradient_0() -> None:
    f = gradcli.compile(lambda x: max(x, 0) * 2)
    assert (f.grad(3.0), f.grad(-3.0), f(-3.0)) == (2, 0, 0)


def test_whole_numbers_that_are_a_shape_or_a_count_are_told_to_be_constants() -> None:
    f = gradcli.compile(lambda x, n: sum(x**k for k in range(n)).sum(), wrt="x")
    assert f.grad(np.ones(2), 3).tolist() == [3, 3]
    assert "a number of steps is a constant: compile(…, static=['n'])" in repr(f)
    with pytest.raises(RuntimeError) as error:
        gradcli.compile(lambda x, s: np.reshape(x, s).sum()).grad(np.ones(4), (2, 2))
    assert "static=['s']" in error.value.__notes__[-1]


def test_lists_of_numbers_are_doubles() -> None:
    f = gradcli.compile(lambda p: p[0] ** 2 + p[1])
    assert f.grad((2.0, 3.0)).dtype == np.float64
    assert (
        gradcli.compile(lambda p, x: (p * x).sum()).grad([2.0], np.ones(1, "f4"))["p"].dtype == "f4"
    )


def test_a_method_is_refused_and_a_compiled_attribute_is_none() -> None:
    class Model:
        w = 2.0
        square = gradcli.compile(lambda x: x**2)

        @gradcli.compile
        def loss(self: Any, x: Any) -> Any:
            return self.w * x

    assert Model().square(3.0) == 9
    with pytest.raises(TypeError, match=r"loss is a method.*gradcli.compile\(self.loss\)"):
        Model().loss(1.0)


def squares(x: Any) -> Any:
    return np.sum(x**2)


@gradcli.compile
def decorated(x: Any) -> Any:
    return np.sum(x**2)


@pytest.mark.parametrize(
    "f",
    [
        gradcli.compile(squares, wrt="x", native=True),
        gradcli.compile("sum(x**2)", threads=2),
        decorated,
    ],
)
def test_compiled_functions_are_pickled_by_name(f: Any) -> None:
    there = pickle.loads(pickle.dumps(f))
    assert there.grad(np.ones(2)).tolist() == [2, 2]
    assert (there.native, there.threads, there.wrt) == (f.native, f.threads, f.wrt)


def test_a_caller_s_array_is_not_written_into() -> None:
    def writes(x: Any) -> Any:
        with gradcli.no_grad():
            if x[1] > 0:
                x[0] = 0.0
        return np.sum(x**2)

    x = np.array([1.0, 2.0])
    f = gradcli.compile(writes)
    assert (f(x), f.grad(x).tolist(), x.tolist()) == (4.0, [0.0, 4.0], [1.0, 2.0])
