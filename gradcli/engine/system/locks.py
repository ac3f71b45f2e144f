"""Locks that are free in a forked child, even if a thread of the parent held them."""

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
    """A new reentrant lock for the life of the process."""
    made = threading.RLock()
    _LOCKS.append(made)
    return made


def release(held: Any) -> None:
    """Reset a lock in place: in a forked child, the thread that held it does not exist."""
    held._at_fork_reinit()


def _in_child() -> None:
    for held in _LOCKS:
        release(held)


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_in_child)
