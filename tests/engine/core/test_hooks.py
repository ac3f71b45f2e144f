"""Hooks: where each kind is called, what it may return, and that a removed one leaves no trace."""

from __future__ import annotations

from typing import Any

import pytest

import gradcli as torch
from tests.sweep import sweep


def graph() -> tuple[Any, Any, Any]:
    """x -> y = x * 3 -> z = sum(y * y)."""
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    y = x * 3
    return x, y, (y * y).sum()


# How a hook of each kind is registered; its function gets and returns one gradient.
KINDS: dict[str, Any] = {
    "leaf": lambda x, y, f: x.register_hook(f),
    "result": lambda x, y, f: y.register_hook(f),
    "node prehook": lambda x, y, f: y.grad_fn.register_prehook(lambda gs: tupled(f(gs[0]))),
    "node hook": lambda x, y, f: y.grad_fn.register_hook(
        lambda gi, go: None if (found := f(gi[0])) is None else (found, *gi[1:])
    ),
    "leaf's node prehook": lambda x, y, f: accumulator(y).register_prehook(
        lambda gs: tupled(f(gs[0]))
    ),
}


def tupled(grad: Any) -> Any:
    return grad if grad is None else (grad,)


def accumulator(y: Any) -> Any:
    return y.grad_fn.next_functions[0][0]


def hooked(kind: str, f: Any) -> tuple[Any, Any, Any]:
    x, y, z = graph()
    KINDS[kind](x, y, f)
    return x, y, z


@pytest.mark.parametrize("kind", KINDS)
def test_none_changes_nothing(kind):
    seen = []
    x, _, z = hooked(kind, seen.append)
    z.backward()
    assert x.grad.tolist() == [18.0, 36.0]
    assert len(seen) == 1 and isinstance(seen[0], torch.Tensor)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_returned_replaces_the_gradient(kind):
    x, _, z = hooked(kind, lambda g: g * 10)
    z.backward()
    assert x.grad.tolist() == [180.0, 360.0]


@sweep("kind", KINDS, parts=1)
@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (torch.ones(3, dtype=torch.float64), "has changed the size of value"),
        (torch.ones(2), "has changed the type of value"),
        (3, "expected Variable, but hook returned 'int'"),
    ],
    ids=["shape", "dtype", "number"],
)
def test_what_does_not_fit_is_refused(kind, returned, message):
    x, _, z = hooked(kind, lambda g: returned)
    with pytest.raises((RuntimeError, TypeError), match=message):
        z.backward()
    assert x.grad is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_hook_that_raises_stops_the_pass(kind):
    def refuse(grad: Any) -> None:
        raise LookupError("stop")

    x, _, z = hooked(kind, refuse)
    with pytest.raises(LookupError, match="stop"):
        z.backward()
    assert x.grad is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_removed_hook_is_not_called(kind):
    x, y, z = graph()
    seen: list[Any] = []
    with KINDS[kind](x, y, seen.append) as handle:
        z.backward(retain_graph=True)
    handle.remove()
    z.backward()
    assert len(seen) == 1
    assert x.grad.tolist() == [36.0, 72.0]


@pytest.mark.parametrize("kind", KINDS)
def test_hooks_under_create_graph_see_the_graph(kind):
    seen: list[Any] = []
    x, _, z = hooked(kind, lambda g: seen.append(g))
    with pytest.warns(UserWarning, match="reference cycle"):
        z.backward(create_graph=True)
    assert seen[0].requires_grad
    assert torch.autograd.grad(x.grad.sum(), x)[0].tolist() == [18.0, 18.0]
    x.grad = None


def test_every_kind_in_its_order():
    x, y, z = graph()
    order: list[str] = []
    node, end = y.grad_fn, accumulator(y)

    def note(text: str) -> Any:
        return lambda *grads: order.append(text)

    node.register_hook(note("node"))
    node.register_prehook(note("node pre"))
    y.register_hook(note("result 1"))
    y.register_hook(note("result 2"))
    y.retain_grad()
    x.register_post_accumulate_grad_hook(note("post accumulate"))
    end.register_hook(note("leaf's node"))
    end.register_prehook(note("leaf's node pre"))
    x.register_hook(note("leaf"))
    z.backward()
    assert order == [
        *("result 1", "result 2", "node pre", "node"),
        *("leaf", "leaf's node pre", "post accumulate", "leaf's node"),
    ]
    assert y.grad.tolist() == [6.0, 12.0]


def test_retain_grad_sees_what_tensor_hooks_made_and_prehooks_do_not():
    x, y, z = graph()
    y.retain_grad()
    y.register_hook(lambda g: g * 2)
    y.grad_fn.register_prehook(lambda gs: (gs[0] * 100,))
    z.backward()
    assert y.grad.tolist() == [12.0, 24.0]
    assert x.grad.tolist() == [3600.0, 7200.0]


def test_a_hook_may_remove_itself_and_add_another():
    x, _, z = graph()
    seen: list[str] = []

    def once(grad: Any) -> None:
        seen.append("once")
        handle.remove()
        x.register_hook(lambda g: seen.append("later"))

    handle = x.register_hook(once)
    z.backward(retain_graph=True)
    z.backward()
    assert seen == ["once", "later"]


def test_a_hook_may_run_a_pass_of_its_own():
    x, y, z = graph()
    inner = torch.tensor(2.0, requires_grad=True)

    def run(grad: Any) -> None:
        with torch.enable_grad():
            (inner**3).backward()

    y.register_hook(run)
    z.backward()
    assert inner.grad.item() == 12.0
    assert x.grad.tolist() == [18.0, 36.0]


@pytest.mark.parametrize("mode", ["all", "any"])
def test_a_hook_over_several_tensors(mode):
    x, y, z = graph()
    unused = x * 5
    seen: list[Any] = []
    torch.autograd.graph.register_multi_grad_hook([x, y, unused], seen.append, mode=mode)
    z.backward(retain_graph=True)
    z.backward()
    assert len(seen) == 2
    if mode == "all":
        assert [g if g is None else g.tolist() for g in seen[0]] == [
            [18.0, 36.0],
            [6.0, 12.0],
            None,
        ]
    else:
        assert seen[0].tolist() == [6.0, 12.0]
