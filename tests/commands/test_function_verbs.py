"""`gradcli.grad(f)` and its like: of tensors as PyTorch has them, of arrays and numbers in doubles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import func
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
