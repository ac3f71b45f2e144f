"""Versions: a saved tensor that is written before the pass is refused, whichever alias wrote it."""

from __future__ import annotations

from typing import Any

import pytest

import gradcli as torch
from tests.sweep import sweep

# What records, and which of its tensors the node needs again: x and w are operands, y the result.
SAVED: dict[str, tuple[Any, str]] = {
    "x * w": (lambda x, w: x * w, "x w"),
    "x * constant": (lambda x, w: x * w.detach(), "w"),
    "x / w": (lambda x, w: x / w, "x w"),
    "x + w": (lambda x, w: x + w, ""),
    "x - w": (lambda x, w: x - w, ""),
    "exp": (lambda x, w: x.exp(), "y"),
    "sin": (lambda x, w: x.sin(), "x"),
    "tanh": (lambda x, w: x.tanh(), "y"),
    "sigmoid": (lambda x, w: x.sigmoid(), "y"),
    "x ** 2": (lambda x, w: x**2, "x"),
    "x ** w": (lambda x, w: x.abs() ** w, "x w y"),
    "sum": (lambda x, w: x.sum(), ""),
    "dot": (lambda x, w: torch.dot(x, w), "x w"),
    "maximum": (lambda x, w: torch.maximum(x, w), "x w"),
    "view": (lambda x, w: x.view(3, 1), ""),
    "softmax": (lambda x, w: x.softmax(0), "y"),
}
# How the tensor t is written.
WRITES: dict[str, Any] = {
    "itself": lambda t: t.mul_(1),
    "under no_grad": lambda t: torch.no_grad()(lambda: t.add_(1))(),
    "a view": lambda t: t[...].mul_(1),
    "a view of a view": lambda t: t.view(-1)[:1].zero_(),
    "an element": lambda t: t.view(-1).__setitem__(0, 5.0),
    "what is detached": lambda t: t.detach().mul_(2),
    "increment_version": lambda t: torch.autograd.graph.increment_version(t),
}
HARMLESS: dict[str, Any] = {
    "data": lambda t: t.data.mul_(2),
    "numpy": lambda t: t.detach().numpy().__imul__(2),
    "a copy": lambda t: t.clone().mul_(2),
    "reading": lambda t: (t.sum(), t.view(-1), t.detach(), t[...]),
}


def recorded(make: Any) -> dict[str, Any]:
    """x and w as results (so that they may be written) and y of them."""
    leaves = [torch.tensor(v, requires_grad=True) for v in ([0.5, 1.5, 2.5], [1.0, 2.0, 3.0])]
    x, w = (leaf * 1 for leaf in leaves)
    return {"x": x, "w": w, "y": make(x, w)}


@sweep(
    ("name", "write"), [(name, write) for name in SAVED for write in WRITES], name="{}, {}".format
)
def test_writing_what_was_saved_is_refused(name, write):
    make, saved = SAVED[name]
    for which in ("x", "w", "y"):
        tensors = recorded(make)
        kept = tensors["y"].sum()
        WRITES[write](tensors[which])
        if which in saved.split():
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                kept.backward()
        else:
            kept.backward()


@sweep(
    ("name", "access"),
    [(name, access) for name in SAVED for access in HARMLESS],
    name="{}, {}".format,
)
def test_what_is_no_write_is_not_refused(name, access):
    for which in ("x", "w", "y"):
        tensors = recorded(SAVED[name][0])
        HARMLESS[access](tensors[which])
        tensors["y"].sum().backward()


@sweep("write", WRITES, parts=1)
def test_a_write_is_counted_once_by_all_aliases(write):
    t = torch.zeros(4)
    aliases = [t, t[1:], t.view(2, 2).t(), t.detach(), t.detach()[2:]]
    WRITES[write](t)
    assert [a._version for a in aliases] == [1] * len(aliases)


def test_the_message_tells_the_versions():
    x = torch.ones(2, requires_grad=True)
    w = torch.ones(2)
    w.add_(1)
    y = (x * w).sum()
    w.add_(1)
    w.add_(1)
    with pytest.raises(RuntimeError, match=r"\[2\]\] is at version 3; expected version 1 instead"):
        y.backward()


def test_many_writes_are_remembered_in_little_memory():
    x = torch.ones(2, requires_grad=True)
    w = torch.ones(2)
    early = (x * w).sum()
    for _ in range(20_000):
        w.mul_(1)
    late = (x * w).sum()
    assert w._version == 20_000
    assert len(w.versions.stamps) < 10_000
    late.backward()
    with pytest.raises(RuntimeError, match="is at version 20000; expected version"):
        early.backward()


def test_detached_in_place_after_it_was_saved():
    x = torch.ones(2, requires_grad=True)
    d = x * 2
    y = (d * d).sum()
    d.detach_()
    with pytest.raises(RuntimeError, match="detached in-place"):
        y.backward()
    with pytest.raises(RuntimeError, match="detached in-place"):
        y.grad_fn.next_functions[0][0]._saved_self  # noqa: B018


def test_a_leaf_that_no_longer_requires_grad_gets_none():
    x, w = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    y = (x * w).sum()
    x.requires_grad_(False)
    y.backward()
    assert x.grad is None and w.grad.tolist() == [1.0, 1.0]


def test_views_follow_what_detached_aliases_write():
    x = torch.ones(3, requires_grad=True)
    view = x[1:]
    x.detach().mul_(2)
    assert view.grad_fn.name() == "AsStridedBackward0"
    (view * 3).sum().backward()
    assert x.grad.tolist() == [0.0, 3.0, 3.0]
