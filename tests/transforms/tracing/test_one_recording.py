"""What a program means is one thing: the tape, the printed derivative, the plan, matrices and products agree.

`grad` is the judge, and is judged by torch's own answers (`tests/golden/record_recordings.py`).
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradcli import language
from gradcli.columns.compiler.compiled_function import compile as compiled
from gradcli.engine.core import random
from gradcli.engine.core.backward_pass import grad
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.formulas.algebra.expression_text import to_text
from gradcli.formulas.derive.differentiate import differentiate
from gradcli.transforms import traced_matrices
from tests.sweep import sweep
from tests.transforms.tracing import recording_programs

ANSWERS = json.loads((Path(__file__).parents[2] / "golden" / "recordings.json").read_text())
PROGRAMS = [(program, np.asarray(x)) for program, x in recording_programs.PROGRAMS]
# Functions whose derivative torch does not have: it holds them constant.
OURS_ALONE = ("special.bessel_j0(x).sum()",)


def tape(program: str, x: Any) -> Any:
    """The gradient by the tape; zeros where there is none."""
    leaf = wrap(np.array(x), requires_grad=True)
    value = language.run(language.parse(program), {"x": leaf}).value
    leaf._grad = None  # of passes inside the program
    if not value.requires_grad:
        return np.zeros(x.shape)
    value.sum().backward()
    return np.zeros(x.shape) if leaf._grad is None else np.asarray(leaf._grad.array)


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


@sweep(("program", "x"), PROGRAMS)
def test_the_tape_is_torchs(program: str, x: Any) -> None:
    same = np.allclose(tape(program, x), ANSWERS[program]["grad"], rtol=1e-12)
    assert same is (program not in OURS_ALONE)


@sweep(("program", "x"), PROGRAMS)
def test_the_printed_derivative(program: str, x: Any) -> None:
    found = differentiate(language.parse(program), {"x": x}, follow=True)
    text = to_text(found.by["x"])
    value = language.run(language.parse(text), {"x": wrap(np.array(x))}).value
    array = value.array if isinstance(value, Tensor) else value
    np.testing.assert_allclose(np.broadcast_to(array, x.shape), tape(program, x), err_msg=text)


def tape_twice(program: str, x: Any) -> Any:
    """The gradient of the gradient's sum, by the tape."""
    leaf = wrap(np.array(x), requires_grad=True)
    found = language.run(language.parse(program), {"x": leaf}).value
    for _ in range(2):
        if found.requires_grad:
            (found,) = grad([found.sum()], [leaf], create_graph=True, allow_unused=True)
        else:
            found = None
        if found is None:
            return np.zeros(x.shape)
    return np.asarray(found.array)


@sweep(("program", "x"), PROGRAMS, often=2)
def test_the_second_derivative(program: str, x: Any) -> None:
    """What the tape holds constant, the second derivative holds constant."""
    found = differentiate(language.parse(program), {"x": x}, order=2, follow=True)
    text = to_text(found.by["x"])
    value = language.run(language.parse(text), {"x": wrap(np.array(x))}).value
    array = value.array if isinstance(value, Tensor) else value
    expected = tape_twice(program, x)
    np.testing.assert_allclose(np.broadcast_to(array, x.shape), expected, err_msg=text)


@sweep(("program", "x"), PROGRAMS)
def test_the_printed_value(program: str, x: Any) -> None:
    whole = to_text(differentiate(language.parse(program), {"x": x}, follow=True).value)
    found = language.run(language.parse(whole), {"x": wrap(np.array(x))}).value
    leaf = wrap(np.array(x), requires_grad=True)
    value = language.run(language.parse(program), {"x": leaf}).value
    array = found.array if isinstance(found, Tensor) else found
    np.testing.assert_allclose(array, value.array, err_msg=whole)


@sweep(("program", "x"), PROGRAMS)
def test_the_plan(program: str, x: Any) -> None:
    f = compiled(f"{program}")
    try:
        _, grads = f.value_and_grad(x=x)
    except RuntimeError as error:
        assert "does not require grad" in str(error) or "only for scalar" in str(error)
        return
    found = grads["x"]
    np.testing.assert_allclose(np.zeros(x.shape) if found is None else found, tape(program, x))


@sweep(("program", "x"), PROGRAMS)
def test_the_jacobian(program: str, x: Any) -> None:
    leaf = wrap(np.array(x), requires_grad=True)
    found = traced_matrices.jacobian(language.parse(program), {"x": leaf}, ["x"])
    by = np.asarray(found.by["x"])
    while by.ndim > x.ndim:
        by = by.sum(0)
    np.testing.assert_allclose(by, tape(program, x))


@sweep(("program", "x"), PROGRAMS)
def test_the_product_with_a_vector(program: str, x: Any) -> None:
    """`jvp` is torch's of the same sum, and the tape's."""
    vector = np.linspace(1, 2, x.size).reshape(x.shape)
    _, pushed = traced_matrices.jvp(language.parse(program), {"x": wrap(x)}, {"x": wrap(vector)})
    np.testing.assert_allclose(pushed.sum().item(), (tape(program, x) * vector).sum())
    if program not in OURS_ALONE:
        np.testing.assert_allclose(pushed.sum().item(), ANSWERS[program]["jvp"])


REFUSED = [
    *("x.item()*x", "float(x)*x", "int(x)*x", "x.tolist()*x", "sum(x.detach().numpy()*x)"),
    *("sum(x.tolist()[0]*x)", "rand(1)[0]*x", "nn.functional.dropout(x).sum()", "bernoulli(x)*x"),
    *("randn_like(x)*x", "sum(x*normal(0., 1., (2,)))", "tensor([x, 2.])*x", "range(int(x))[0]*x"),
    *("float(f'{x}')*x", "nn.functional.rrelu(x, training=True)", "linspace(0, x, 3)*x"),
    *("x if x.item() > 0 else -x", "try:\n    c = x.item()\nexcept RuntimeError:\n    c = 1\nc*x"),
    "autograd.grad(x**2, x, x[None], is_grads_batched=True)[0].sum()",
    *("histc(x, 3)*x", "x*randperm(2)", "x.equal(x)*x", "math.sin(x)*x"),
]


THREE = np.array(recording_programs.THREE)


@pytest.mark.parametrize(
    "program", ["x[x > 1].sum()", "masked_select(x, x > 1).sum()", "unique(x)"]
)
def test_how_many_there_are_needs_values(program: str) -> None:
    with pytest.raises(language.LanguageError, match="how many elements there are"):
        differentiate(language.parse(program), {"x": THREE})


@pytest.mark.parametrize("program", REFUSED)
@pytest.mark.parametrize("follow", [False, True])
def test_hidden_numbers_are_refused(program: str, follow: bool) -> None:
    random.manual_seed(0)
    random.normal((), np.dtype(np.float64))  # half of a pair: the other half comes without a draw
    x = np.array([0.5, 0.25]) if "[0]" in program or "sum" in program else np.float64(0.5)
    with pytest.raises(language.LanguageError) as error:
        differentiate(language.parse(program), {"x": x}, follow=follow)
    words = str(error.value)
    for internal in ("Traced", "Recorded", "tuple index", "NoneType", "object has no"):
        assert internal not in words
