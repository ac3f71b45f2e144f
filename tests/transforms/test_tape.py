"""`jacobian`, `hessian` and `jvp` read the engine's own tape: what a program says means the same in each.

The answers are PyTorch's (`record_tape`); the products are checked against each other.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli import language
from gradcli.engine.core.batched_arrays import BatchLevel, is_diagonal, opened
from gradcli.transforms import traced_matrices
from gradcli.transforms.batched_passes import identity
from tests.sweep import sweep
from tests.transforms.tape_programs import PROGRAMS

ANSWERS = json.loads((Path(__file__).parent / "tape.json").read_text())


def close(found: Any, expected: Any) -> None:
    if isinstance(expected, dict):  # row by row it refuses to stack no rows
        assert expected["refused"] == "stack expects a non-empty TensorList"
        assert np.size(found) == 0
        return
    wanted = np.asarray(expected, dtype=float)
    assert np.shape(found) == wanted.shape or not wanted.size
    np.testing.assert_allclose(np.reshape(found, wanted.shape), wanted, rtol=1e-10, atol=1e-12)


def case(name: str) -> tuple[Any, dict[str, Any]]:
    source, value = PROGRAMS[name]
    return language.parse(source), {"x": gradcli.tensor(value)}


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@sweep("name", PROGRAMS)
def test_jacobian(name: str, mode: str) -> None:
    program, tensors = case(name)
    found = traced_matrices.jacobian(program, tensors, ["x"], mode=mode)
    close(found.by["x"], ANSWERS[name]["jacobian"])
    assert (found.method, found.slow) == (mode, [])


@sweep("name", PROGRAMS)
def test_hessian_of_the_sum(name: str) -> None:
    source, value = PROGRAMS[name]
    *body, last = source.split("\n")
    program = language.parse("\n".join([*body, f"({last}).sum()"]))
    found = traced_matrices.hessian(program, {"x": gradcli.tensor(value)}, ["x"])["x"]
    close(found.by["x"], ANSWERS[name]["hessian"])
    assert found.slow == []


@sweep("name", PROGRAMS)
def test_products(name: str) -> None:
    """The Jacobian's rows summed are the gradient; the Jacobian times a vector is the jvp."""
    program, tensors = case(name)
    x = tensors["x"]
    leaf = x.clone().requires_grad_()
    value = language.run(program, {"x": leaf}).value
    grad = np.zeros(x.shape)
    if value.requires_grad:
        found = gradcli.autograd.grad(value.sum(), leaf, allow_unused=True)[0]
        grad = grad if found is None else found.numpy()
    close(grad, ANSWERS[name]["grad"])
    if not x.numel():
        return
    jacobian = np.reshape(ANSWERS[name]["jacobian"], (value.numel(), x.numel()))
    vector = np.linspace(1, 2, x.numel())
    _, pushed = traced_matrices.jvp(
        program, tensors, {"x": gradcli.tensor(vector.reshape(x.shape))}
    )
    np.testing.assert_allclose(pushed.numpy().ravel(), jacobian @ vector, rtol=1e-10, atol=1e-12)


# (program, x, vector, the derivative along it): the backward pass is not smooth there, tangents are.
SINGULAR = [
    ("sinc(x)", [0.0, 1.0], [1.0, 1.0], [0.0, -1.0]),
    ("norm(x)", [0.0, 0.0], [1.0, 1.0], 0.0),
    ("prod(x)", [0.0, 0.0, 2.0], [1.0, 1.0, 1.0], 0.0),
    ("prod(x)", [0.0, 3.0, 2.0], [1.0, 1.0, 1.0], 6.0),
    ("cumprod(x, 0)", [0.0, 0.0, 2.0], [1.0, 1.0, 1.0], [1.0, 0.0, 0.0]),
    ("std(clamp(x, 0.9, 0.8), correction=0)", [1.38, -1.07], [1.0, 1.0], 0.0),
    ("std(x.view(2, 2), 1)", [1.0, 1.0, 2.0, 4.0], [1.0, 2.0, 3.0, 5.0], [0.0, 2**0.5]),
    ("cdist(x.view(2, 1), x.view(2, 1))", [1.0, 3.0], [1.0, 2.0], [[0.0, 1.0], [1.0, 0.0]]),
    # Once differentiable: by rows.
    ("pdist(x.view(3, 1))", [0.0, 3.0, 7.0], [1.0, 2.0, 4.0], [1.0, 3.0, 2.0]),
    ("h = x*2\nh.register_hook(lambda g: 3*g)\nh", [1.0, 2.0], [1.0, 2.0], [6.0, 12.0]),
    ("x.register_hook(lambda g: 3*g)\nx*2", [1.0, 2.0], [1.0, 2.0], [6.0, 12.0]),
]


@sweep(("source", "x", "vector", "expected"), SINGULAR, parts=1)
def test_along_a_vector_where_a_rule_is_not_smooth(
    source: str, x: Any, vector: Any, expected: Any
) -> None:
    program, given = language.parse(source), {"x": gradcli.tensor(x)}
    _, found = traced_matrices.jvp(program, given, {"x": gradcli.tensor(vector)})
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-15)
    columns = traced_matrices.jacobian(program, given, ["x"], mode="forward").by["x"]
    np.testing.assert_allclose(columns @ np.asarray(vector), expected, atol=1e-15)


def test_a_custom_function_goes_by_rows() -> None:
    """Its derivative is not differentiated to go by columns."""

    class Twice(gradcli.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.repeat(3) * 2

        @staticmethod
        @gradcli.autograd.function.once_differentiable
        def backward(ctx: Any, g: Any) -> Any:
            return gradcli.tensor(g.numpy().reshape(3, -1).sum(0) * 2)

    program = language.parse("twice(x)")
    x = {"x": gradcli.tensor([1.0, 2.0])}
    found = traced_matrices.jacobian(program, x, ["x"], {"twice": Twice.apply})
    assert (found.method, found.slow) == ("reverse", ["TwiceBackward"])
    np.testing.assert_array_equal(found.by["x"], np.tile(2 * np.eye(2), (3, 1)))


@sweep(
    ("source", "diagonal"),
    [
        ("sin(x)*3 + x**2", True),
        ("(x*2).view(2, 2).view(4)", False),  # a view could be written through
        ("tanh(A@x)", False),
        ("sqrt(x - 1)", False),  # at 1 it is infinite, and 0 times that is not 0
        ("x.sum()*x", False),
        ("x[1:]", False),
    ],
    parts=1,
)
def test_what_is_elementwise_stays_a_diagonal(source: str, diagonal: bool) -> None:
    x = gradcli.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    a = gradcli.tensor(np.arange(16.0).reshape(4, 4))
    value = language.run(language.parse(source), {"x": x, "A": a}).value
    level = BatchLevel(value.numel(), linear=True)
    with opened(level):
        (found,) = gradcli.autograd.grad(value, x, identity(value, level), retain_graph=True)
    assert is_diagonal(found.array) is diagonal
    rows = [
        gradcli.autograd.grad(value, x, gradcli.eye(len(value))[k], retain_graph=True)[0].numpy()
        for k in range(len(value))
    ]
    np.testing.assert_allclose(found.array.every, rows, rtol=1e-12)


@pytest.mark.parametrize(
    "source, expected",
    [
        ("set_grad_enabled(False); c = X[0]; set_grad_enabled(True); c*x", "jvp = [1, 2]\n"),
        ("with no_grad():\n    d = X[0]\nd*x", "jvp = [1, 2]\n"),
    ],
)
def test_views_made_without_grad_carry_no_tangent(source: str, expected: str) -> None:
    from click.testing import CliRunner

    from gradcli.cli import main

    given = ["--X", "1,2;3,4", "--x", "5,6", "--vector", "X=1,1;1,1", "--vector", "x=1,1"]
    assert CliRunner().invoke(main, ["jvp", source, *given]).stdout == expected
