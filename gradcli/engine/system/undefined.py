"""What a program does whose result nobody defines: told to whoever runs it, if they ask.

A command asks, and then the last of several writes to one element has the gradient; otherwise all have it, as
in PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

told: ContextVar[Callable[[str], None] | None] = ContextVar("told", default=None)

__all__ = ["told"]
