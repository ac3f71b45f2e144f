"""Modes: what is recorded inside which, and what inference tensors may do outside."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

import gradcli as torch
from tests.sweep import sweep

MODES: dict[str, tuple[Any, bool]] = {
    "no_grad": (lambda: torch.no_grad(), False),
    "enable_grad": (lambda: torch.enable_grad(), True),
    "set off": (lambda: torch.set_grad_enabled(False), False),
    "set on": (lambda: torch.set_grad_enabled(True), True),
    "inference": (lambda: torch.inference_mode(), False),
    "inference off": (lambda: torch.inference_mode(False), True),
}


def records() -> bool:
    return bool((torch.ones(1, requires_grad=True) * 2).requires_grad)


@sweep(("outer", "inner"), list(product(MODES, MODES)), parts=1)
def test_the_inner_mode_holds_and_the_outer_returns(outer, inner):
    (enter_outer, outside), (enter_inner, inside) = MODES[outer], MODES[inner]
    with enter_outer():
        assert torch.is_grad_enabled() is outside
        with enter_inner():
            assert torch.is_grad_enabled() is inside
            if torch.is_inference_mode_enabled():
                inside = False  # enable_grad within records nothing that lasts
            else:
                assert records() is inside
        assert torch.is_grad_enabled() is outside
    assert torch.is_grad_enabled() and records()


@sweep("name", MODES, parts=1)
def test_an_error_restores_the_mode(name):
    enter, _ = MODES[name]
    with pytest.raises(ZeroDivisionError), enter():
        1 / 0  # noqa: B018
    assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled()


@pytest.mark.parametrize("name", ["no_grad", "enable_grad", "inference", "inference off"])
def test_a_decorated_function_may_recurse(name):
    enter, inside = MODES[name]

    @enter()
    def count(n: int) -> int:
        assert torch.is_grad_enabled() is inside
        return 0 if n == 0 else 1 + count(n - 1)

    assert count(5) == 5
    assert torch.is_grad_enabled()


def inference_tensor() -> Any:
    with torch.inference_mode():
        return torch.ones(2)


WRITES: dict[str, Any] = {
    "itself": lambda y: y.add_(1),
    "a view": lambda y: y.view(2).add_(1),
    "an element": lambda y: y.__setitem__(0, 3.0),
    "what is detached": lambda y: y.detach().add_(1),
    "out=": lambda y: torch.add(torch.ones(2), 1, out=y),
    "requires_grad": lambda y: y.requires_grad_(),
}


@sweep("write", WRITES, parts=1)
def test_inference_tensors_are_not_changed_outside(write):
    y = inference_tensor()
    with pytest.raises(RuntimeError, match="inference tensor outside InferenceMode is not allowed"):
        WRITES[write](y)
    assert y.tolist() == [1.0, 1.0]  # torch writes before it refuses
    with torch.inference_mode():
        y.add_(1)
    assert y.tolist() == [2.0, 2.0]


@sweep(
    ("make", "inference"),
    [
        (lambda y: y, True),
        (lambda y: y.view(2), True),
        (lambda y: y[0], True),
        (lambda y: y.detach(), True),
        (lambda y: y.clone(), False),
        (lambda y: y * 2, False),
        (lambda y: torch.zeros_like(y), False),
    ],
    parts=1,
)
def test_what_is_made_of_inference_tensors(make, inference):
    assert make(inference_tensor()).is_inference() is inference


def test_inference_tensors_cannot_be_saved():
    x, y = torch.ones(2, requires_grad=True), inference_tensor()
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        x * y
    (x + y).sum().backward()
    (x * y.clone()).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


SAVED = "RuntimeError: Inference tensors cannot be saved for backward"
# As torch: of leaves made in inference mode nothing is recorded, but beside others, and copies.
OF_LEAVES: dict[str, tuple[Any, str]] = {
    "alone": (lambda x, w: x.sin(), "none"),
    "with itself": (lambda x, w: x * x, "none"),
    "a sum": (lambda x, w: x.sum(), "none"),
    "a view": (lambda x, w: x.view(2, 1), "none"),
    "a list": (lambda x, w: torch.cat([x, x]), "none"),
    "several results": (lambda x, w: torch.max(x, 0)[0], "none"),
    "a copy": (lambda x, w: x.clone(), "recorded"),
    "beside a number": (lambda x, w: x * 2, "recorded"),
    "added": (lambda x, w: x + w, "recorded"),
    "saved": (lambda x, w: x * w, SAVED),
    "saved on the right": (lambda x, w: w * x, SAVED),
    "saved by three": (lambda x, w: torch.addcmul(w, x, x), SAVED),
    "saved after it was added": (lambda x, w: (x + w, x * w)[1], SAVED),
    "an index, saved beside it": (lambda x, w: torch.gather(x, 0, torch.tensor([0])), SAVED),
}


@sweep("name", OF_LEAVES, parts=1)
def test_leaves_made_in_inference_mode(name: str) -> None:
    call, wanted = OF_LEAVES[name]
    with torch.inference_mode():
        x = torch.ones(2, requires_grad=True)
    try:
        found = "none" if call(x, torch.ones(2, requires_grad=True)).grad_fn is None else "recorded"
    except RuntimeError as error:
        found = f"RuntimeError: {error}"
    assert found.startswith(wanted)


def test_out_is_written_only_where_nothing_is_recorded():
    x, out = torch.ones(2, requires_grad=True), torch.zeros(2)
    with pytest.raises(RuntimeError, match=r"add\(\): functions with out=\.\.\. arguments"):
        torch.add(x, 1, out=out)
    with torch.no_grad():
        assert torch.add(x, 1, out=out) is out
    assert out.tolist() == [2.0, 2.0] and out._version == 1
    with pytest.raises(RuntimeError, match="result type Float can't be cast"):
        torch.add(torch.ones(2), 1, out=torch.zeros(2, dtype=torch.int64))
    values, places = torch.max(
        torch.eye(2), 1, out=(torch.zeros(2), torch.zeros(2, dtype=torch.int64))
    )
    assert (values.tolist(), places.tolist()) == ([1.0, 1.0], [0, 1])
    with pytest.warns(UserWarning, match="An output with one or more elements was resized"):
        torch.exp(torch.zeros(3), out=out)
    assert out.tolist() == [1.0] * 3


@pytest.mark.parametrize(
    ("name", "node"),
    [("log2", "MulBackward1"), ("expm1", "AddBackward1"), ("atan", "AddBackward1")],
)
def test_a_number_in_a_rule_is_a_scalar_of_cpp(name: str, node: str) -> None:
    x = torch.tensor([0.5, 0.6], requires_grad=True)
    (gradient,) = torch.autograd.grad(getattr(torch, name)(x).sum(), x, create_graph=True)
    assert node in [n.name() for n, _ in gradient.grad_fn.next_functions if n is not None]
