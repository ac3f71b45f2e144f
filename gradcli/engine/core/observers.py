"""Observing a backward pass: every step is a tuple (kind, node, data)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from gradcli.engine.core import modes


@contextmanager
def observing(callback: Callable[[tuple[str, Any, Any]], None]) -> Iterator[None]:
    """A context in which `callback` is called with every step of this thread's backward passes.

    Kinds, with their data: "begin" (the cotangent), "start" (incoming gradients, one for each output),
    "hook" ((kind, before, after)), "finish" (outgoing gradients, one for each edge), "add" and
    "accumulate" (a leaf's `.grad` before, None for the first, and after), "retain" (the gradient
    kept), "free" and "end" (None).
    """
    with modes.changed(observer=callback):
        yield
