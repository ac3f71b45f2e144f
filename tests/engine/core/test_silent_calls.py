"""Where gradients are not recorded, calls and writes take short ways: with the results of the long ones."""

from __future__ import annotations

from typing import Any

import pytest

import gradcli
from gradcli.engine.core import modes

CALLS: dict[str, Any] = {
    "product": lambda m, p, q: p * q,
    "number": lambda m, p, q: 2 - p,
    "mixed dtypes": lambda m, p, q: p * m.tensor([1, 2, 3]),
    "alpha": lambda m, p, q: m.sub(p, q, alpha=2),
    "along": lambda m, p, q: p.reshape(3, 1).sum(1),
    "view": lambda m, p, q: p[1:],
    "in place": lambda m, p, q: p.sub_(q),
    "in place, a number": lambda m, p, q: p.mul_(0.5),
    "in place, broadcast": lambda m, p, q: p.add_(q.sum()),
    "in place, by itself": lambda m, p, q: p.mul_(p),
    "overlap": lambda m, p, q: p[1:].add_(p[:-1]),
    "shape": lambda m, p, q: p.add_(m.ones(2, 3)),
    "dtype": lambda m, p, q: m.tensor([1, 2, 3]).add_(q),
    "not to be added": lambda m, p, q: p + m.ones(2),
}


def outcome(m: Any, call: Any) -> Any:
    p, q = m.tensor([1.0, 2.0, 3.0], requires_grad=True), m.tensor([0.5, 0.25, 4.0])
    view = p.view(3, 1)
    with m.no_grad():
        try:
            out = call(m, p, q)
        except RuntimeError as error:
            return str(error)
    facts = out.requires_grad, p.requires_grad, p._version, view._version
    return facts, out.tolist(), p.tolist(), str(out.dtype)


@pytest.mark.needs("torch")
@pytest.mark.parametrize("name", CALLS)
def test_as_by_torch(name: str) -> None:
    import torch

    assert outcome(gradcli, CALLS[name]) == outcome(torch, CALLS[name])


@pytest.mark.parametrize("name", CALLS)
def test_as_by_the_long_way(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    short = outcome(gradcli, CALLS[name])
    settle = modes.State.settle

    def unsilenced(state: modes.State) -> None:
        settle(state)
        state.silent = False

    monkeypatch.setattr(modes.State, "settle", unsilenced)
    assert outcome(gradcli, CALLS[name]) == short
