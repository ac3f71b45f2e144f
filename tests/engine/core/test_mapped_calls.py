"""Calls in a batch have code of their own, which means what the call in full does: values, graphs, words."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest

import gradcli
from gradcli import func
from gradcli.engine.core import modes
from gradcli.engine.core.tensor import Tensor
from tests.engine.core.test_recorded_pass import REFUSALS, whole
from tests.golden.record_samples import texts
from tests.sampling import take_apart
from tests.sweep import sweep


@contextmanager
def in_full() -> Iterator[None]:
    """No state of a thread is one that the code for batches is for."""
    before = modes.State.settle

    def settle(state: modes.State) -> None:
        before(state)
        state.mapped = False

    modes.State.settle = settle  # type: ignore[method-assign]
    try:
        yield
    finally:
        modes.State.settle = before  # type: ignore[method-assign]


def _stacked(x: Any) -> Any:
    return gradcli.stack([x, x * 1.25, x * 0.75])


def answers(text: str, recorded: bool) -> list[Any]:
    """A sample mapped over three entries, and its gradients; recorded: all but the first operand is not."""
    sample = take_apart(text, gradcli)
    floats = [i for i, x in enumerate(sample.leaves) if x.is_floating_point()]
    batched = floats[:1] if recorded else floats
    given = [_stacked(x) if i in batched else x for i, x in enumerate(sample.leaves)]
    dims = tuple(0 if i in batched else None for i in range(len(given)))
    for i in floats if recorded else ():
        given[i] = given[i].detach().requires_grad_()

    def total(*leaves: Any) -> Any:
        made = sample.function(*leaves)
        made = made if isinstance(made, (tuple, list)) else [made]
        tensors = [y for y in made if isinstance(y, Tensor)]
        return sum((y * 0.5).sum() for y in tensors if y.is_floating_point())

    calls = (sample.function, func.grad(total, tuple(floats)))
    return [_answer(call, dims, given) for call in calls] if floats else []


def _answer(call: Any, dims: Any, given: list[Any]) -> Any:
    gradcli.manual_seed(3)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            made = func.vmap(call, dims, randomness="same")(*given)
        except REFUSALS as error:
            return type(error), str(error)
    results = made if isinstance(made, (tuple, list)) else [made]
    return [str(w.message) for w in told], [whole(y) for y in results if isinstance(y, Tensor)]


def written() -> list[str]:
    """The samples that leave no memory as it was; in full, half(x) * 0.5 is refused in a batch."""
    return [t for t in texts() if not any(word in t for word in ("empty", "rrelu", ".half()"))]


@sweep("text", written, parts=32, often=0)
def test_batches_are_called_as_in_full(text: str) -> None:
    for recorded in (False, True):
        ordinary = answers(text, recorded)
        with in_full():
            assert answers(text, recorded) == ordinary


FUNCTIONS = {
    "numbers": lambda x: ((2 - x) * 3 / 4 + 1 - x / 2) ** 3 + 2**x + (-x).abs() ** 0.5,
    "ranks": lambda x: x[0] * x + x.sum() * x[1:2] - x.reshape(3, 1),
    "dtypes": lambda x: x.double() * 2 + (x > 0.3) * x + x.long() + x.half(),
    "views": lambda x: x.view(3, 1).expand(3, 2).T.sum(0) * x[1:].unsqueeze(0).squeeze(0).mean(),
    "writes": lambda x: x.clone().mul_(x).add_(1, alpha=2)[1:].exp_(),
    "no grad": lambda x: x * gradcli.no_grad()(lambda: x.sin().view(3) + 1)(),
    "inner batch": lambda x: func.vmap(lambda y: y * x)(x),
    "numbers in inner batches": lambda x: func.vmap(lambda y: (y + 2) * x.sum() * 3 - 1)(x),
    "options in inner batches": lambda x: func.vmap(
        lambda y: x.gather(0, (y * 0).long().reshape(1)) + gradcli.nn.functional.gelu(x * y)
    )(x),
    "inner gradient": lambda x: func.grad(lambda y: (y * x).sin().sum())(x) * x,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_called_as_in_full(name: str) -> None:
    found = []
    for mode in (nullcontext, in_full):
        with mode():
            found.append(_of_function(FUNCTIONS[name]))
    assert found[0] == found[1]


def _of_function(f: Any) -> list[Any]:
    x = (gradcli.arange(6.0).reshape(2, 3) / 7 + 0.1).requires_grad_()
    w = gradcli.tensor([0.5, 1.5, 2.5], requires_grad=True)
    y = func.vmap(f)(x)
    z = func.vmap(lambda v: f(v * w).sum() * v)(x)
    g = func.vmap(func.grad(lambda v: f(v).double().sum()))(x)
    h = func.vmap(func.grad(lambda v, u: (f(v).double().sum() * u).sum(), 1), (0, None))(x, w)
    grads = gradcli.autograd.grad(
        (y.sum() + z.sum() + g.sum() + h.sum()), (x, w), create_graph=True
    )
    second = gradcli.autograd.grad(grads[0].sin().sum() + grads[1].sum(), (x, w))
    return [whole(t) for t in (y, z, g, h, *grads, *second)]


@pytest.mark.parametrize("enabled", [True, False])
def test_the_code_for_batches_runs(enabled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    x = gradcli.tensor([[1.0, 2.0]], requires_grad=enabled)

    def run(v: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr("gradcli.engine.core.primitive.Primitive.call_in_order", None)
            return (v * v + 1).sum()

    func.vmap(lambda v: (v * v + 1).sum())(x)  # the code is there from the second call on
    assert func.vmap(run)(x).tolist() == [7.0]
