"""Transforms inside of compiled functions, and the patterns and colours of their matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradcli
from gradcli import func
from gradcli.columns.compiler.compiled_function import CompiledProgram
from gradcli.transforms.sparsity import column_colours, planned, star_colours
from tests.sweep import sweep


def rosenbrock(x: Any) -> Any:
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def arrow(x: Any) -> Any:
    """Its Hessian has a row and a column that are full."""
    return (gradcli.sin(x) * x[0]).sum() + (x**4).sum()


def stencil(x: Any) -> Any:
    y = gradcli.nn.functional.pad(x, (1, 1))
    return gradcli.tanh(y[2:] - 2 * y[1:-1] + y[:-2]) * x


def gathered(x: Any) -> Any:
    at = gradcli.tensor([3, 0, 0, 5])
    return gradcli.exp(x[at]) * x[at.flip(0)]


TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda x: func.grad(rosenbrock)(x),
    "grad of grad": lambda x: func.grad(lambda y: func.grad(rosenbrock)(y).square().sum())(x),
    "jvp": lambda x: func.jvp(rosenbrock, (x,), (x * 2,))[1],
    "vjp": lambda x: func.vjp(stencil, x)[1](x)[0],
    "jvp of grad": lambda x: func.jvp(func.grad(rosenbrock), (x,), (x * 2,))[1],
    "vmap of grad": lambda x: func.vmap(func.grad(lambda t: t**2 * gradcli.sin(t)))(x),
    "jacrev": lambda x: func.jacrev(stencil)(x),
    "jacfwd": lambda x: func.jacfwd(stencil)(x),
    "jacrev of few rows": lambda x: func.jacrev(gathered)(x),
    "jacfwd by an index": lambda x: func.jacfwd(gathered)(x),
    "jacobian of products": lambda x: func.jacfwd(lambda y: gradcli.outer(y, x) @ y)(x),
    "hessian": lambda x: func.hessian(rosenbrock)(x),
    "hessian of an arrow": lambda x: func.hessian(arrow)(x),
    "hessian that is dense": lambda x: func.hessian(lambda y: (y * x).sum() ** 2)(x),
    "hessian of a quadratic form": lambda x: func.hessian(lambda y: (y[1:] * y[:-1]).sum())(x) * x,
    "jacrev of jacrev": lambda x: func.jacrev(func.jacrev(rosenbrock))(x),
    "third derivatives": lambda x: func.jacfwd(func.hessian(rosenbrock))(x),
    "closed over": lambda x: func.hessian(lambda y: (y**2 * x).sum() + (x**3).sum())(x),
    "gradient around": lambda x: func.grad(lambda y: func.hessian(rosenbrock)(y).sum())(x),
    "batches": lambda x: func.vmap(func.hessian(rosenbrock))(gradcli.stack([x, x + 1])),
    "at what is computed": lambda x: func.hessian(rosenbrock)(x * 2 + 1),
    "maxima": lambda x: func.hessian(lambda y: gradcli.relu(y - 1).pow(3).sum())(x),
}


@sweep(("name", "transform"), list(TRANSFORMS.items()), parts=2, often=1)
def test_transforms_are_traced_once(name: str, transform: Callable[[Any], Any]) -> None:
    """Compiled they are what they are on the tape, and no call traces again."""
    compiled = gradcli.compile(transform)
    for shift in (0.0, 0.3):
        x = np.linspace(0.5, 1.5, 9) + shift
        wanted = transform(gradcli.tensor(x, dtype=gradcli.float64)).detach().numpy()
        assert compiled(x) == pytest.approx(wanted, rel=1e-12, abs=1e-12)
    (plan,) = compiled.plans.values()
    assert type(plan) is CompiledProgram, plan


def test_gradients_through_a_compiled_hessian() -> None:
    f = gradcli.compile(lambda x, w: (func.hessian(lambda y: (y**3 * w).sum())(x)).square().sum())
    x, w = np.array([1.0, 2.0, 3.0]), np.array([2.0, 1.0, -1.0])
    value, grads = f.value_and_grad(x, w)
    assert value == pytest.approx(36 * ((x * w) ** 2).sum())
    assert grads["x"] == pytest.approx(72 * x * w**2)
    assert grads["w"] == pytest.approx(72 * x**2 * w)


matrices = st.integers(1, 12).flatmap(
    lambda n: st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=3 * n).map(
        lambda pairs: (n, pairs)
    )
)


@given(matrices, st.booleans())
def test_colours_tell_every_element(
    case: tuple[int, list[tuple[int, int]]], symmetric: bool
) -> None:
    """A matrix is read out of its products with the coloured directions, whatever its numbers."""
    n, pairs = case
    matrix = np.zeros((n, n))
    for k, (i, j) in enumerate(pairs):
        matrix[i, j] = 1.5 + k
        if symmetric:
            matrix[j, i] = matrix[i, j]
    rows, columns = np.nonzero(matrix)
    plan = planned((rows, columns), n, n, symmetric)
    block = plan.seeds @ matrix.T
    assert block.reshape(-1)[plan.places].tolist() == matrix[plan.rows, plan.columns].tolist()
    assert len(plan.rows) == len(rows)


def test_few_colours_are_needed() -> None:
    n = 50
    i = np.arange(n)
    band = np.array(sorted({(a, b) for a in i for b in (a - 1, a, a + 1) if 0 <= b < n})).T
    assert column_colours(n, n, (band[0], band[1])).max() == 2
    assert star_colours(n, (band[0], band[1])).max() == 2
    hub = np.array(sorted({(a, a) for a in i} | {(0, a) for a in i} | {(a, 0) for a in i})).T
    assert star_colours(n, (hub[0], hub[1])).max() == 1
    assert column_colours(n, n, (hub[0], hub[1])).max() == n - 1


def test_matrices_without_their_zeros() -> None:
    f = gradcli.compile(rosenbrock)
    for shift in (0.0, 0.5):
        x = np.linspace(0.5, 1.5, 40) + shift
        found = f.sparse_hessian(x)
        dense = func.hessian(rosenbrock)(gradcli.tensor(x, dtype=gradcli.float64)).numpy()
        assert found.shape == (40, 40) and len(found.values) == 40 + 2 * 39
        assert found.dense() == pytest.approx(dense, rel=1e-13)
    (made,) = f.matrices.values()
    assert made.colours == 3
    g = gradcli.compile(lambda x, w: stencil(x) * w, wrt=["x"])
    found = g.sparse_jacobian(x, 2.0)
    dense = func.jacrev(stencil)(gradcli.tensor(x, dtype=gradcli.float64)).numpy()
    assert found.dense() == pytest.approx(2 * dense, rel=1e-12)
    assert len(found.values) == 40 + 2 * 39


@pytest.mark.long
def test_a_hundred_thousand_variables_take_three_directions() -> None:
    """No array of one call is larger than the block of products."""
    f = gradcli.compile(rosenbrock)
    x = np.linspace(0.5, 1.5, 20_000)
    found = f.sparse_hessian(x)
    i, j = found.indices.T
    exact = np.where(
        i == j,
        1200 * x[i] ** 2 + 2 - 400 * np.append(x, 0)[i + 1] + 200,
        -400 * x[np.minimum(i, j)],
    )
    exact[(i == 0) & (j == 0)] -= 200
    exact[(i == len(x) - 1) & (j == len(x) - 1)] = 200
    assert found.values == pytest.approx(exact, rel=1e-12)
    (made,) = f.matrices.values()
    assert made.colours == 3


@sweep(
    ("function", "words"),
    [
        (lambda x: x if x.sum() > 0 else -x, "cannot be traced"),
        (lambda x: x + gradcli.randn(3), "cannot be traced"),
    ],
    parts=1,
)
def test_what_cannot_be_traced_is_refused(function: Any, words: str) -> None:
    with pytest.raises(RuntimeError, match=words):
        gradcli.compile(lambda x: function(x).sum()).sparse_hessian(np.ones(3))
