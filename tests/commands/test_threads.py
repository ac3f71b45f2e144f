"""The state of a verb belongs to its thread: the default dtype, and what random numbers come next."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import gradcli
from gradcli.engine.core import random
from gradcli.engine.system import dtypes

VERBS: dict[str, Callable[[], Any]] = {
    "diff": lambda: gradcli.diff("sin(x)*exp(x)", wrt="x"),
    "simplify": lambda: gradcli.simplify("sin(x)**2 + cos(x)**2"),
    "taylor": lambda: gradcli.taylor("exp(sin(x))"),
    "check": lambda: gradcli.check("x**3", x=2.0),
    "minimize": lambda: gradcli.minimize("(x - 1)**2", x=3.0),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_changes_nothing_in_another_thread(verb: str) -> None:
    gradcli.manual_seed(3)
    wanted = [float(gradcli.rand(1).array[0]) for _ in range(400)]
    gradcli.manual_seed(3)
    drawn: list[float] = []
    kinds: set[str] = set()
    done = threading.Event()

    def draw() -> None:
        while not done.is_set() or len(drawn) < 400:
            made = gradcli.rand(1)
            kinds.update((made.array.dtype.name, gradcli.tensor(1.0).array.dtype.name))
            drawn.append(float(made.array[0]))

    thread = threading.Thread(target=draw, daemon=True)
    thread.start()
    VERBS[verb]()
    done.set()
    thread.join(60)
    assert drawn[:400] == wanted
    assert kinds == {dtypes.get_default_dtype().name}


def test_verbs_side_by_side_leave_the_default_dtype() -> None:
    before = dtypes.get_default_dtype()
    threads = [threading.Thread(target=VERBS["diff"]) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert dtypes.get_default_dtype() is before


def test_the_default_dtype_is_that_of_the_process() -> None:
    seen: list[Any] = []
    before = dtypes.get_default_dtype()
    look = lambda: seen.append(dtypes.get_default_dtype())  # noqa: E731
    try:
        dtypes.set_default_dtype(dtypes.float64)
        with dtypes.as_default(dtypes.float32):
            dtypes.set_default_dtype(dtypes.float16)  # of this thread, until the context ends
            thread = threading.Thread(target=look)
            thread.start()
            thread.join()
            look()
        look()
    finally:
        dtypes.set_default_dtype(before)
    assert seen == [dtypes.float64, dtypes.float16, dtypes.float64]


def test_what_another_thread_draws_is_not_taken_back() -> None:
    state = random.snapshot()
    thread = threading.Thread(target=lambda: gradcli.rand(3))
    thread.start()
    thread.join()
    after = random.get_rng_state().array.tobytes()
    assert not random.rewind(state)
    assert random.get_rng_state().array.tobytes() == after
