"""The level of forward mode that is open in a thread, and the tangents of tensors."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

from gradcli.engine.core import modes
from gradcli.engine.core.tensor import Tensor
from gradcli.engine.core.views import set_own


class Forward:
    """One derivative along tangents at work.

    taped: its tangents travel along the tape, with what is recorded and with nothing else. nests: others
    may be open around it and inside of it. below: how many of `func`'s levels (core.levels) are around it.
    `refused` is filled where an operation of a taped level has no rule for tangents, or its derivative is
    what a user wrote: then the tape knows it, and tangents do not.
    """

    __slots__ = ("below", "nests", "refused", "taped")

    def __init__(self, taped: bool, nests: bool) -> None:
        self.taped, self.nests = taped, nests
        self.below = modes.depth() - (nests and not taped)
        self.refused: list[Exception] = []


class _Thread(threading.local):
    """What is open in a thread: another's levels, and its tangents, are not its own."""

    def __init__(self) -> None:
        self.level: Forward | None = None  # the one whose tangents are read, and pushed
        self.enabled = True  # whether tangents travel, once a level is open
        self.entered: list[Any] = []  # by `enter_dual_level`, innermost last


_here = _Thread()


class UnpackedDualTensor(NamedTuple):
    """A dual number taken apart."""

    primal: Tensor
    tangent: Tensor | None


def carry(tensor: Tensor, tangent: Tensor) -> None:
    """Give a leaf a tangent of its shape and dtype; only inside a level."""
    set_own(tensor, _here.level, tangent)


def current_level() -> int:
    """The number of the open level; -1 outside of any."""
    return -1 if _here.level is None else 0
