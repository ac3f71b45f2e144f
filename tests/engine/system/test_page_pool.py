"""Large results on the tape: their memory is used again, and only where nobody refers to it."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.engine.core import watched_pass
from gradcli.engine.core.tensor import wrap
from gradcli.engine.system import page_pool, threads
from tests.sweep import sweep

SIZE = threads.LARGE + 8


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Arrays of a few pages are large ones, and none is kept of another test."""
    monkeypatch.setattr(page_pool, "LARGE", 1 << 20)
    page_pool._lent.clear()
    yield
    page_pool._lent.clear()


def place(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def result(shift: float = 0) -> Any:
    return threads.applied(np.add, np.arange(SIZE, dtype=float), shift)


def test_memory_that_was_let_go_is_used_again() -> None:
    places = set()
    for k in range(6):
        found = result(k)
        np.testing.assert_array_equal(found[:3], np.arange(3) + k)
        places.add(place(found))
    assert len(places) == 2  # a loop's name holds that of the last turn
    assert len(page_pool._lent) == 2


HOLDERS: dict[str, Callable[[Any], Any]] = {
    "the array": lambda a: a,
    "a view": lambda a: a[5:9],
    "a view of a view": lambda a: a.reshape(2, -1).T[3:],
    "a tensor": gradcli.from_numpy,
    "a tensor's slope": lambda a: gradcli.tensor([1.0], requires_grad=True) * gradcli.from_numpy(a),
    "a buffer": memoryview,
    "an export": lambda a: np.from_dlpack(a),
    "a closure": lambda a: lambda: a,
    "a weak reference": weakref.ref,
}


@sweep("name", HOLDERS, parts=1)
def test_what_somebody_holds_is_left_alone(name: str) -> None:
    found = result()
    before = place(found)
    held = HOLDERS[name](found)
    del found
    more = [result(k) for k in range(3)]
    assert before not in map(place, more) or (name == "a weak reference" and held() is None)
    del held


@sweep("change", ["writeable", "shape", "dtype"], parts=1)
def test_what_was_changed_is_not_taken(change: str) -> None:
    found = result()
    if change == "writeable":
        found.flags.writeable = False
    with warnings.catch_warnings():  # of NumPy 2.5, where this is deprecated, and still done
        warnings.simplefilter("ignore", DeprecationWarning)
        if change == "shape":
            found.shape = (2, -1)
        elif change == "dtype":
            found.dtype = np.int64
    del found
    np.testing.assert_array_equal(result(1.0), np.arange(SIZE) + 1.0)


def test_little_memory_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_pool, "_most", [1 << 20])
    result()
    assert not page_pool._lent
    monkeypatch.setattr(page_pool, "LARGE", 1 << 25)
    monkeypatch.setattr(page_pool, "_most", [1 << 40])
    result()
    assert not page_pool._lent


# What is made of tanh(row), whether somebody else has the gradient that comes to it then, and what more of
# it comes to the row.
KEEPERS: dict[str, tuple[Callable[[Any, Any, list[Any]], Any], bool, int]] = {
    "nobody": (lambda y, row, kept: y, False, 0),
    "a constant beside it": (lambda y, row, kept: y + y.detach(), False, 0),
    "the row beside it": (lambda y, row, kept: y + row, True, 1),
    "a hook": (lambda y, row, kept: [y.register_hook(lambda g: kept.append(g)), y][1], True, 0),
    "a hook of what is after it": (
        lambda y, row, kept: [z := y + 0, z.register_hook(lambda g: kept.append(g)), z][2],
        True,
        0,
    ),
}


@sweep("keeper", KEEPERS, parts=1)
def test_a_slope_is_written_over_its_gradient_where_nobody_else_has_it(
    keeper: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, held, more = KEEPERS[keeper]
    taken: list[bool] = []
    own = watched_pass.spent

    def asked(g: Any) -> Any:
        found = own(g)
        taken.append(found is not None)
        return found

    monkeypatch.setattr(watched_pass, "spent", asked)
    random = np.random.default_rng(0)
    x, v = random.standard_normal((300, 500)), random.standard_normal(500)
    kept: list[Any] = []
    rows, weights = wrap(x), wrap(v)
    slope = gradcli.func.grad(lambda row: gradcli.dot(weights, make(gradcli.tanh(row), row, kept)))
    found = gradcli.func.vmap(slope)(rows).numpy()
    y = np.tanh(x)
    np.testing.assert_array_equal(found, v * (1 - y * y) + more * v)
    np.testing.assert_array_equal(rows.numpy(), x)
    np.testing.assert_array_equal(weights.numpy(), v)
    assert len(kept) == ("hook" in keeper)
    for g in kept:
        np.testing.assert_array_equal(g.array.every, np.broadcast_to(v, x.shape))
    assert any(taken) is not held
    monkeypatch.setattr(watched_pass, "spent", own)


def test_a_slope_that_is_differentiated_again_keeps_its_gradient() -> None:
    x = np.random.default_rng(0).standard_normal((300, 500))
    twice = gradcli.func.grad(
        lambda row: gradcli.func.grad(lambda a: gradcli.tanh(a).sum())(row).sum()
    )
    y = np.tanh(x)
    found = gradcli.func.vmap(twice)(wrap(x)).numpy()
    np.testing.assert_allclose(found, -2 * y * (1 - y * y), rtol=1e-12, atol=1e-15)
