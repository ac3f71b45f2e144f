"""The recorded pass leaves what the watched pass does: values, nodes in their order, and what they save."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.engine.core import recorded_pass
from gradcli.engine.core.batched_arrays import numbers
from gradcli.engine.core.node import AccumulateGrad, Node, Port
from gradcli.engine.core.plain_pass import discover
from gradcli.engine.core.tensor import Tensor, edge
from tests.golden.record_samples import texts
from tests.sampling import take_apart
from tests.sweep import sweep

REFUSALS = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError)
ORDERS = 3


@contextmanager
def watched() -> Iterator[list[bool]]:
    """All recorded passes are watched ones."""
    before, recorded_pass.run = recorded_pass.run, lambda *args: False  # type: ignore[assignment]
    try:
        yield
    finally:
        recorded_pass.run = before


def whole(tensor: Tensor) -> list[Any]:
    """All nodes above a tensor in their order, to the bit, and where their edges go."""
    root = edge(tensor)
    if root is None:
        return [_bits(tensor)]
    nodes = sorted(discover([root])[0], key=lambda n: (n._seq, isinstance(n, AccumulateGrad)))
    place = {id(n): k for k, n in enumerate(n for n in nodes if not isinstance(n, AccumulateGrad))}

    def where(e: Any) -> Any:
        if isinstance(e, AccumulateGrad):
            return "leaf", e.variable.array.shape, str(e.variable.array.dtype)
        if isinstance(e, Port):
            return place.get(id(e.node)), e.nr
        return place.get(id(e)) if isinstance(e, Node) else e

    def kept(value: Any) -> Any:
        if isinstance(value, Tensor):
            return _bits(value), value.base is not None, where(edge(value))
        return [kept(v) for v in value] if isinstance(value, tuple) else repr(value)

    return [
        _bits(tensor),
        *(
            (
                n.name(),
                n._meta.shape,
                str(n._meta.dtype),
                [where(e) for e in n._edges],
                [(name, kept(value)) for name, value in n.saved_items()],
            )
            for n in nodes
            if not isinstance(n, AccumulateGrad)
        ),
    ]


def _bits(tensor: Tensor) -> Any:
    array = np.asarray(numbers(tensor.array))
    return array.dtype.str, tensor.array.shape, array.shape, array.strides, array.tobytes()


def answer(text: str, wanted: Callable[[int], bool]) -> list[Any]:
    """The derivatives of a sample, one of another, with their graphs; the words of an error."""
    sample = take_apart(text, gradcli)
    leaves = [x for x in sample.leaves if x.is_floating_point() or x.is_complex()]
    for leaf in leaves:
        leaf.requires_grad_()
    gradcli.manual_seed(3)
    found: list[Any] = []
    try:
        made = sample.function(*sample.leaves)
        roots = [y for y in (made if isinstance(made, (tuple, list)) else [made]) if _recorded(y)]
        for _ in range(ORDERS):
            grads = gradcli.autograd.grad(
                [y for y in roots if _recorded(y)],
                [x for i, x in enumerate(leaves) if wanted(i)] or leaves,
                [gradcli.ones_like(y) * 0.75 for y in roots],
                create_graph=True,
                allow_unused=True,
            )
            found.append([None if g is None else whole(g) for g in grads])
            roots = [g for g in grads if _recorded(g)]
            if not roots:
                break
    except REFUSALS as error:
        found.append((type(error), str(error)))
    return found


def _recorded(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


# The watched pass asks igamma for its first derivative, which has none, where nobody needs it.
LEFT_OUT = ("empty", "rrelu", "igamma")


def written() -> list[str]:
    """The samples that leave no memory as it was, and that both passes take."""
    return [t for t in texts() if not any(word in t for word in LEFT_OUT)]


@sweep("text", written, parts=32, often=0)
def test_what_is_recorded_is_the_same(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for wanted in (lambda i: True, lambda i: i == 1):
            ordinary = answer(text, wanted)
            with watched():
                assert answer(text, wanted) == ordinary


def _accumulated(x: Any, w: Any) -> list[Any]:
    y = ((x * w).tanh() @ w.T).sum()
    y.backward(create_graph=True)
    again = (x.grad * w.grad.sum()).sum()
    again.backward(create_graph=True)
    return [x.grad, w.grad]


def _to_some(x: Any, w: Any) -> list[Any]:
    y = (x * w).exp()
    (y * y).sum().backward(inputs=[w], create_graph=True)
    (w.grad * y).sum().backward(inputs=[x])
    return [w.grad, x.grad]


def _between(x: Any, w: Any) -> list[Any]:
    y = x * w
    z = y.sin() * x
    g, h, own = gradcli.autograd.grad(z.sum(), (y, x, z), create_graph=True, allow_unused=True)
    (second,) = gradcli.autograd.grad((g * h).sum(), y, retain_graph=True)
    return [g, h, own, second]


def _ports(x: Any, w: Any) -> list[Any]:
    first, *_, last = (x * w).unbind()
    values, _ = (x + first).max(0)
    y = (values * last).sum() + first.prod()
    (g,) = gradcli.autograd.grad(y, first, create_graph=True)
    (h,) = gradcli.autograd.grad(g.sin().sum() + y, x, create_graph=True)
    return [g, h, *gradcli.autograd.grad(h.sum(), (x, w))]


def _written(x: Any, w: Any) -> list[Any]:
    y = x * 1.0
    y[0] *= w[0]
    y[:, 1] = (w[:, 0] * 2).exp()
    (g,) = gradcli.autograd.grad((y**3).sum(), x, create_graph=True)
    return [g, *gradcli.autograd.grad((g * w).sum(), (x, w), create_graph=True)]


def _dtypes(x: Any, w: Any) -> list[Any]:
    y = (x * w.double()).sum() / 3 + (2 - x).prod() + (x.to(gradcli.complex64) * 1j).abs().sum()
    grads = gradcli.autograd.grad(y, (x, w), create_graph=True)
    return [*grads, *gradcli.autograd.grad(sum((g * g).sum() for g in grads), (x, w))]


def _inference(x: Any, w: Any) -> list[Any]:
    with gradcli.inference_mode():
        still = w * 2
    y = (x * x).sum() + (w + still.clone()).sum()
    with gradcli.no_grad():
        (g,) = gradcli.autograd.grad(y, x, create_graph=True)
        return [g, gradcli.autograd.grad(g, x, gradcli.ones_like(g))[0]]


def _own(x: Any, w: Any) -> list[Any]:
    class Cube(gradcli.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            ctx.save_for_backward(a)
            return a * a * a

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 3 * ctx.saved_tensors[0] ** 2

    (g,) = gradcli.autograd.grad((Cube.apply(x) * w).sum(), x, create_graph=True)
    return [g, *gradcli.autograd.grad(g.sum(), (x, w), create_graph=True)]


PROGRAMS = (
    *(_accumulated, _to_some, _between, _ports, _written, _dtypes),
    *(_inference, _own),
)


@pytest.mark.filterwarnings("ignore:Using backward")
def test_the_recorded_pass_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradcli.engine.core.watched_pass.run", None)
    x = gradcli.tensor([1.0, 2.0], requires_grad=True)
    (g,) = gradcli.autograd.grad((x.sin() * x).sum(), x, create_graph=True)
    g.sum().backward(create_graph=True)
    assert x.grad.grad_fn.name().endswith("CopyBackwards")


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.filterwarnings("ignore:Using backward")
def test_programs_leave_the_same(program: Any) -> None:
    found = []
    for mode in (nullcontext, watched):
        x = (gradcli.arange(6.0).reshape(2, 3) / 7 + 0.1).requires_grad_()
        w = (gradcli.arange(6.0).reshape(3, 2).T * 0.3 - 0.7).detach().requires_grad_()
        with mode():
            found.append([whole(t) for t in program(x, w)])
    assert found[0] == found[1]


@pytest.mark.parametrize("create", [True, False])
def test_a_graph_is_freed_and_written_tensors_are_noticed(create: bool) -> None:
    x = gradcli.ones(3, requires_grad=True)
    y = (x.exp() * x).sum()
    gradcli.autograd.grad(y, x, create_graph=create, retain_graph=False)
    with pytest.raises(RuntimeError, match="second time"):
        gradcli.autograd.grad(y, x, create_graph=create)
    z = x * 2
    y = (z * z).sum()
    z.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        gradcli.autograd.grad(y, x, create_graph=create)
    assert gradcli.autograd.grad((x * x).sum(), x, create_graph=create)[0].tolist() == [2, 2, 2]


@pytest.mark.parametrize("create", [True, False])
def test_what_nobody_needs_is_not_asked(create: bool) -> None:
    """As in PyTorch: igamma has no derivative by its first argument."""
    a, x = gradcli.ones(2, requires_grad=True), gradcli.ones(2, requires_grad=True)
    y = gradcli.igamma(a, x).sum()
    (g,) = gradcli.autograd.grad(y, x, retain_graph=True, create_graph=create)
    assert g.tolist() == pytest.approx([0.36787944] * 2)
    with pytest.raises(NotImplementedError, match="igamma: input"):
        gradcli.autograd.grad(y, (a, x), create_graph=create)
