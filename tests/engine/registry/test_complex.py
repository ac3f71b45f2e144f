"""Derivatives at complex points: PyTorch's convention, by differences of the two parts.

The gradient of a real number L by z = a + ib is dL/da + i dL/db.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import gradcli as torch
from gradcli import language
from tests.sweep import sweep

FUNCTIONS = """
    abs(z); acos(z); acosh(z); angle(z); asin(z); asinh(z); atan(z); atanh(z); conj(z); cos(z); cosh(z)
    exp(z); exp2(z); expm1(z); log(z); log10(z); log1p(z); log2(z); neg(z)
    reciprocal(z); rsqrt(z); sgn(z); sigmoid(z); sin(z); sinc(z); sinh(z); sqrt(z); square(z)
    tan(z); tanh(z); z.real; z.imag; view_as_real(z)
    z + w; z - 2*w; z*w; z/w; z**w; z**2; z**-1.5; 2**z; 1/z; rsub(z, w); float_power(z, w)
    lerp(z, w, 0.3); addcmul(z, w, w, value=2); addcdiv(z, z, w); where(z.real > 0, z, w)
    cumsum(z, 0); cumprod(z, 0); prod(z); logcumsumexp(z, 0); mean(z); var(z); norm(z); norm(z, 3)
    outer(z, w); dot(z, w); vdot(z, w); z.view(2, 2) @ w[:2]; linalg.det(z.view(2, 2))
    linalg.inv(z.view(2, 2)); fft.fft(z); fft.irfft(z)
"""
# In every quadrant, off the cuts of the branches.
POINTS = [0.5 + 0.8j, -1.2 + 0.3j, 0.7 - 1.1j, -0.4 - 0.6j]
OTHERS = [1.5 - 0.2j, 0.3 + 0.4j, -0.8 + 0.9j, -1.1 - 0.7j]


def value(text: str, z: Any) -> Any:
    return language.run(language.parse(text), {"z": z, "w": torch.tensor(OTHERS)}).value


def loss(y: Any) -> Any:
    """A real number that every part of a result enters."""
    count = max(y.numel(), 1)
    weights = torch.arange(1.0, count + 1).view(y.shape) / 4 - 0.7
    if not y.is_complex():
        return (y * weights).sum()
    return (y.real * weights).sum() + (y.imag * (weights * weights + 0.3)).sum()


def slope(text: str, z: Any) -> Any:
    (grad,) = torch.autograd.grad(loss(value(text, z)), z, create_graph=True)
    return grad


def differences(function: Any) -> Any:
    """dL/da + i dL/db of a function of the points."""
    step, found = 1e-6, np.zeros(len(POINTS), complex)
    for k in range(len(POINTS)):
        for part in (1, 1j):
            near = []
            for sign in (1, -1):
                moved = np.array(POINTS)
                moved[k] += sign * step * part
                near.append(function(torch.tensor(moved, requires_grad=True)).item())
            found[k] += part * (near[0] - near[1]) / (2 * step)
    return found


@sweep("text", re.findall(r"[^;\n]*[^;\s]", FUNCTIONS), often=2)
def test_gradients(text: str) -> None:
    torch.set_default_dtype(torch.float64)
    z = torch.tensor(POINTS, requires_grad=True)
    grad = slope(text, z)
    expected = differences(lambda z: loss(value(text, z)))
    np.testing.assert_allclose(grad.detach().numpy(), expected, rtol=1e-6, atol=1e-7)
    if not grad.requires_grad:
        return
    (second,) = torch.autograd.grad(loss(grad), z)
    expected = differences(lambda z: loss(slope(text, z)))
    np.testing.assert_allclose(second.numpy(), expected, rtol=1e-6, atol=1e-6)


def test_what_pytorch_refuses() -> None:
    z = torch.tensor(POINTS, requires_grad=True)
    with pytest.raises(
        NotImplementedError, match="\"logit_cpu\" not implemented for 'ComplexFloat'"
    ):
        torch.logit(z)
    for function in (torch.nn.functional.silu, torch.nan_to_num):
        with pytest.raises(RuntimeError, match="does not support automatic differentiation for"):
            function(z)
