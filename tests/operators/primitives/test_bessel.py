"""The Bessel functions that PyTorch holds constant have derivatives here, in every interpreter."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import gradcli
from gradcli import language
from gradcli.engine.core.tensor import wrap
from gradcli.formulas.algebra.expression_text import to_text
from gradcli.formulas.derive.differentiate import differentiate
from gradcli.transforms import traced_matrices
from tests.sweep import sweep

# (function, x, derivative, second derivative), of mpmath's functions: golden/record_bessel.py
ROWS = json.loads((Path(__file__).parents[2] / "golden" / "bessel.json").read_text())
TITLE = "special.{}({})".format


@sweep(("name", "x", "first", "second"), ROWS, name=lambda *row: TITLE(*row[:2]), parts=1)
def test_the_derivative_is_that_of_the_function(
    name: str, x: float, first: float, second: float
) -> None:
    program = language.parse(f"special.{name}(x)")
    leaf = gradcli.tensor(x, dtype=gradcli.float64, requires_grad=True)
    language.run(program, {"x": leaf}).value.backward()
    assert leaf.grad is not None
    by = {
        "grad": leaf.grad.item(),
        "jacobian": float(traced_matrices.jacobian(program, {"x": leaf}, ["x"]).by["x"]),
    }
    text = to_text(differentiate(program, {"x": np.float64(x)}).by["x"])
    by["diff"] = language.run(language.parse(text), {"x": wrap(np.float64(x))}).value.item()
    one = wrap(np.float64(1))
    by["jvp"] = traced_matrices.jvp(program, {"x": leaf}, {"x": one})[1].item()
    for found in by.values():
        np.testing.assert_allclose(found, first, rtol=1e-9, atol=1e-12, err_msg=str(by))
    if x != 1e-3:
        twice = traced_matrices.hessian(program, {"x": leaf.detach()}, ["x"])["x"].by["x"]
        np.testing.assert_allclose(twice, second, rtol=1e-6, atol=1e-9)


def test_half_precision_keeps_its_dtype() -> None:
    x = gradcli.tensor([0.0, 1.5], requires_grad=True, dtype=gradcli.float32)
    gradcli.special.bessel_j1(x).sum().backward()
    assert x.grad is not None
    assert x.grad.dtype == gradcli.float32
