"""Hooks on saved tensors: whatever they pack, gradients are what they were."""

from __future__ import annotations

from typing import Any

import pytest

import gradcli as torch
from tests.sweep import sweep

hooks = torch.autograd.graph.saved_tensors_hooks

EXPRESSIONS: dict[str, Any] = {
    "product": lambda x, w: x * w,
    "result": lambda x, w: (x.exp() + w).tanh(),
    "power": lambda x, w: x.abs() ** w,
    "matrix": lambda x, w: x.view(2, 2) @ w.view(2, 2),
    "several results": lambda x, w: x.sort()[0] * w,
    "list": lambda x, w: torch.cat([x, w]).cumprod(0),
    "index": lambda x, w: x[[0, 0, 3]] * w[:3],
    "variance": lambda x, w: x.var() * w,
    "custom": lambda x, w: Cube.apply(x) * w,
    "in place": lambda x, w: (x * 1).mul_(w).exp_(),
    "through a view": lambda x, w: written_view(x, w),
}
PACKED: dict[str, tuple[Any, Any]] = {
    "itself": (lambda t: t, lambda t: t),
    "a copy": (lambda t: t.clone(), lambda t: t),
    "a list": (lambda t: (t.tolist(), t.dtype), lambda p: torch.tensor(p[0], dtype=p[1])),
    "numpy": (lambda t: t.detach().numpy().copy(), torch.from_numpy),
    "its bits": (lambda t: t.dtype, None),
}


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x**2


def written_view(x: Any, w: Any) -> Any:
    base = x * 1
    base[:2].mul_(w[:2])
    return base


def leaves() -> tuple[Any, Any]:
    return (
        torch.tensor([0.5, 2.0, -1.5, 1.0], dtype=torch.float64, requires_grad=True),
        torch.tensor([1.5, -0.5, 2.0, 3.0], dtype=torch.float64, requires_grad=True),
    )


@pytest.mark.parametrize("form", [f for f in PACKED if PACKED[f][1]])
@sweep("name", EXPRESSIONS, parts=1)
def test_gradients_are_the_same(name, form):
    x, w = leaves()
    EXPRESSIONS[name](x, w).sum().backward()
    a, b = leaves()
    with hooks(*PACKED[form]):
        y = EXPRESSIONS[name](a, b).sum()
    y.backward()
    assert torch.allclose(a.grad, x.grad) and torch.allclose(b.grad, w.grad)


@sweep("name", EXPRESSIONS, parts=1)
def test_second_gradients_are_the_same(name):
    def second(x: Any, w: Any) -> list[Any]:
        first = torch.autograd.grad(EXPRESSIONS[name](x, w).sum(), (x, w), create_graph=True)
        total = sum((g * g).sum() for g in first)
        return list(torch.autograd.grad(total, (x, w), allow_unused=True, materialize_grads=True))

    plain = second(*leaves())
    with hooks(*PACKED["itself"]):
        packed = second(*leaves())
    assert all(torch.allclose(p, q) for p, q in zip(plain, packed, strict=True))


def test_packed_once_unpacked_once_a_pass():
    calls = []
    x, w = leaves()
    with hooks(lambda t: calls.append("pack") or t, lambda t: calls.append("unpack") or t):
        y = (x * w).sum()
    assert calls == ["pack", "pack"]
    y.backward(retain_graph=True)
    y.backward()
    assert calls == ["pack", "pack"] + ["unpack"] * 4


def test_the_innermost_pair_is_used():
    x, _ = leaves()
    used = []
    with hooks(lambda t: used.append("outer") or t, lambda t: t):
        with hooks(lambda t: used.append("inner") or t, lambda t: t):
            x.exp()
        x.sin()
    x.cos()
    assert used == ["inner", "outer"]


def test_nothing_is_packed_without_a_graph():
    x, w = leaves()
    used = []
    with hooks(used.append, lambda t: t), torch.no_grad():
        x * w
    with hooks(used.append, lambda t: t):
        x.detach() * w.detach()
        x + w
    assert used == []


def test_disabled_hooks_say_why():
    with (
        torch.autograd.graph.disable_saved_tensors_hooks("not here"),
        pytest.raises(RuntimeError, match="not here"),
        hooks(lambda t: t, lambda t: t),
    ):
        pass


def test_what_unpacks_to_no_tensor_is_refused():
    x, w = leaves()
    with hooks(lambda t: t, lambda t: 3):
        y = (x * w).sum()
    with pytest.raises(TypeError, match="expected to be a Tensor but got result of type int"):
        y.backward()
