"""Watching a backward pass: every step as a plain tuple (kind, node, data)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from gradcli.core import modes


@contextmanager
def observing(callback: Callable[[tuple[str, Any, Any]], None]) -> Iterator[None]:
    """Inside, `callback` sees every step of the backward passes of this thread.

    Kinds, with their data: "begin" (the cotangent), "start" (gradients that came in, one per output), "hook"
    ((kind, before, after)), "finish" (gradients that go out, one per edge), "accumulate" ((what was
    added, `.grad` after it)), "retain" (the gradient kept), "free" and "end" (None).
    """
    before = modes.change(observer=callback)
    try:
        yield
    finally:
        modes.restore(before)
