"""The engine's locks, which a forked child finds free whatever the threads of its parent were doing."""

from __future__ import annotations

import os
import threading
from typing import Any

_LOCKS: list[Any] = []


def lock() -> Any:
    """A new lock for the life of the process."""
    made = threading.Lock()
    _LOCKS.append(made)
    return made


def reentrant_lock() -> Any:
    """As `lock`, one that its holder may take again."""
    made = threading.RLock()
    _LOCKS.append(made)
    return made


def release(held: Any) -> None:
    """Make a lock anew in place: in a child, the thread that holds it does not exist."""
    held._at_fork_reinit()


def _in_child() -> None:
    for held in _LOCKS:
        release(held)


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_in_child)
