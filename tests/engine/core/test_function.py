"""Custom Functions: each of a table of them equals what the rows of the operator table compute."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import gradcli as torch
from tests.sweep import sweep

Function = torch.autograd.Function


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * g * x


class Exponential(Function):  # saves its result, and takes no context in forward
    @staticmethod
    def forward(x):
        return x.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y


class Scaled(Function):  # an argument that is not a tensor
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, g):
        return g * ctx.factor, None


class Parts(Function):  # several results
    @staticmethod
    def forward(x):
        return x.sin(), x.cos()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g_sin, g_cos):
        (x,) = ctx.saved_tensors
        return g_sin * x.cos() - g_cos * x.sin()


class Doubled(Function):  # in place
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, g):
        return g * 2


class Transposed(Function):  # a view
    @staticmethod
    def forward(ctx, x):
        return x.view(2, 2).t().reshape(4)

    @staticmethod
    def backward(ctx, g):
        return g.view(2, 2).t().reshape(4)


class Row(Function):  # a gradient that the engine sums to the input's shape
    @staticmethod
    def forward(ctx, x):
        return x.expand(3, 4) + 0

    @staticmethod
    def backward(ctx, g):
        return g


CASES: dict[str, tuple[Any, Any]] = {
    "square": (Square.apply, lambda x: x * x),
    "saves its result": (Exponential.apply, lambda x: x.exp()),
    "an option": (lambda x: Scaled.apply(x, 3.0), lambda x: x * 3.0),
    "several results": (lambda x: sum(Parts.apply(x)), lambda x: x.sin() + x.cos()),
    "one result used": (lambda x: Parts.apply(x)[1], lambda x: x.cos()),
    "in place": (lambda x: Doubled.apply(x + 0), lambda x: x * 2),
    "in place on a view": (lambda x: doubled_part(x), lambda x: x * torch.tensor([1, 2, 2, 1])),
    "a view": (Transposed.apply, lambda x: x[[0, 2, 1, 3]]),
    "an expanded gradient": (Row.apply, lambda x: x.expand(3, 4)),
    "composed": (
        lambda x: Square.apply(Exponential.apply(Scaled.apply(x, 0.5))),
        lambda x: x.exp(),
    ),
}


def doubled_part(x: Any) -> Any:
    base = x + 0
    Doubled.apply(base[1:3])
    return base


def leaf() -> Any:
    return torch.tensor([0.5, -1.0, 2.0, 1.5], dtype=torch.float64, requires_grad=True)


@sweep("name", CASES, parts=1)
def test_values_and_gradients(name):
    custom, plain = CASES[name]
    a, b = leaf(), leaf()
    y, z = custom(a), plain(b)
    assert torch.allclose(y, z)
    weights = torch.arange(1, y.numel() + 1, dtype=torch.float64).view(y.shape)
    y.backward(weights)
    z.backward(weights)
    assert torch.allclose(a.grad, b.grad)


@sweep("name", CASES, parts=1)
def test_second_gradients(name):
    found = []
    for make in CASES[name]:
        x = leaf()
        (first,) = torch.autograd.grad((make(x) ** 2).sum(), x, create_graph=True)
        found.append(torch.autograd.grad((first * first).sum(), x)[0])
    assert torch.allclose(*found)


@sweep("name", CASES, parts=1)
def test_nothing_is_recorded_without_a_graph(name):
    with torch.no_grad():
        assert not CASES[name][0](leaf()).requires_grad
    assert not CASES[name][0](leaf().detach()).requires_grad


@sweep("name", CASES, parts=1)
def test_the_context_goes_with_the_graph(name):
    gc.disable()
    try:
        y = CASES[name][0](leaf())
        context = weakref.ref(y.grad_fn)
        y.sum().backward()
        del y
        assert context() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ((None, None, 3), "returned an incorrect number of gradients (expected 2, got 3)"),
        ((None,), "returned an incorrect number of gradients (expected 2, got 1)"),
        ((1.0, None), "expected Variable or None (got float)"),
        ((torch.ones(3), None), "got [3] but expected shape compatible with [4]"),
        ((None, torch.ones(4)), "returned a gradient different than None at position 2"),
    ],
)
def test_bad_gradients_are_refused(returned, message):
    class Bad(Scaled):
        @staticmethod
        def backward(ctx, g):
            return returned

    with pytest.raises(RuntimeError) as caught:
        Bad.apply(leaf(), 2.0).sum().backward()
    assert message in str(caught.value)


def test_nodes_of_other_kinds_have_no_row():
    """Rows that record nothing leave the class of all nodes alone."""
    from gradcli.engine.core.node import Node
    from gradcli.engine.registry import table

    table.load()
    assert Node._primitive is None
    assert list(Scaled.apply(leaf(), 2.0).grad_fn.saved_items()) == []
