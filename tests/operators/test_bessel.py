"""The Bessel functions that PyTorch holds constant have derivatives here, in every interpreter."""

from __future__ import annotations

import numpy as np
import pytest

import gradcli
from gradcli import language
from gradcli.calculus import matrices
from gradcli.calculus.derivative import differentiate
from gradcli.calculus.text import to_text
from gradcli.engine.tensor import wrap

mpmath = pytest.importorskip("mpmath")

FUNCTIONS = {
    "bessel_j0": lambda x: mpmath.besselj(0, x),
    "bessel_j1": lambda x: mpmath.besselj(1, x),
    "bessel_y0": lambda x: mpmath.bessely(0, x),
    "bessel_y1": lambda x: mpmath.bessely(1, x),
    "modified_bessel_i0": lambda x: mpmath.besseli(0, x),
    "modified_bessel_i1": lambda x: mpmath.besseli(1, x),
    "modified_bessel_k0": lambda x: mpmath.besselk(0, x),
    "modified_bessel_k1": lambda x: mpmath.besselk(1, x),
}
CASES = [
    (name, x)
    for name in FUNCTIONS
    for x in (1e-3, 0.7, 1.0, 5.5, 20.0)
    + (() if name.endswith(("y0", "y1", "k0", "k1")) else (0.0, -2.5))
]


@pytest.mark.parametrize(("name", "x"), CASES)
def test_the_derivative_is_that_of_the_function(name: str, x: float) -> None:
    true = float(mpmath.diff(FUNCTIONS[name], x))
    program = language.parse(f"special.{name}(x)")
    leaf = gradcli.tensor(x, dtype=gradcli.float64, requires_grad=True)
    language.run(program, {"x": leaf}).value.backward()
    assert leaf.grad is not None
    by = {
        "grad": leaf.grad.item(),
        "jacobian": float(matrices.jacobian(program, {"x": leaf}, ["x"]).by["x"]),
    }
    text = to_text(differentiate(program, {"x": np.float64(x)}).by["x"])
    by["diff"] = language.run(language.parse(text), {"x": wrap(np.float64(x))}).value.item()
    one = wrap(np.float64(1))
    by["jvp"] = matrices.jvp(program, {"x": leaf}, {"x": one})[1].item()
    for found in by.values():
        np.testing.assert_allclose(found, true, rtol=1e-9, atol=1e-12, err_msg=str(by))


@pytest.mark.parametrize(("name", "x"), [c for c in CASES if c[1] != 1e-3])
def test_the_second_derivative_too(name: str, x: float) -> None:
    true = float(mpmath.diff(FUNCTIONS[name], x, 2))
    leaf = {"x": gradcli.tensor(x, dtype=gradcli.float64)}
    found = matrices.hessian(language.parse(f"special.{name}(x)"), leaf, ["x"])["x"].by["x"]
    np.testing.assert_allclose(found, true, rtol=1e-6, atol=1e-9)


def test_half_precision_keeps_its_dtype() -> None:
    x = gradcli.tensor([0.0, 1.5], requires_grad=True, dtype=gradcli.float32)
    gradcli.special.bessel_j1(x).sum().backward()
    assert x.grad is not None
    assert x.grad.dtype == gradcli.float32
