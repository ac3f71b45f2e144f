"""Large results on the tape: their memory is used again, and only where nobody refers to it."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.engine import lending, threads
from tests.sweep import sweep

SIZE = threads.LARGE + 8


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Arrays of a few pages are large ones, and none is kept of another test."""
    monkeypatch.setattr(lending, "LARGE", 1 << 20)
    lending._lent.clear()
    yield
    lending._lent.clear()


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
    assert len(lending._lent) == 2


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
    elif change == "shape":
        found.shape = (2, -1)
    else:
        found.dtype = np.int64
    del found
    np.testing.assert_array_equal(result(1.0), np.arange(SIZE) + 1.0)


def test_little_memory_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lending, "_most", [1 << 20])
    result()
    assert not lending._lent
    monkeypatch.setattr(lending, "LARGE", 1 << 25)
    monkeypatch.setattr(lending, "_most", [1 << 40])
    result()
    assert not lending._lent
