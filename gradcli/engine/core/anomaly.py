"""Anomaly mode: nodes remember where they were made, and NaN gradients are errors."""

from __future__ import annotations

import sys
import threading
import warnings
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.engine.core.modes import users_level
from gradcli.engine.core.node import Node
from gradcli.engine.core.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence


class _NodeOfThread(threading.local):
    node: Node | None = None  # the node that this thread is running


running = _NodeOfThread()


def remember(node: Node) -> None:
    """Keep the traceback of the forward call on its node."""
    import traceback

    frame = sys._getframe(1)
    while frame.f_back is not None and "gradcli" in frame.f_globals.get("__name__", ""):
        frame = frame.f_back
    node.metadata["traceback_"] = traceback.format_stack(frame, _depth(frame))
    parent = running.node
    if parent is not None:
        node.metadata["parent_"] = parent


def _depth(frame: FrameType) -> int:
    """How many frames there are up to the command of ours, if any, that runs the program."""
    depth, here = 0, frame
    while here is not None and not here.f_globals.get("__name__", "").startswith(
        "gradcli.commands"
    ):
        depth, here = depth + 1, here.f_back  # type: ignore[assignment]
    return depth


def accuse(node: Node) -> None:
    """Warn which node failed, and where its forward call and those of its parents were made."""
    start, caused = "Error detected in", "caused the error"
    accused: Node | None = node
    while accused is not None:
        lines = accused.metadata.get("traceback_")
        if lines:
            text = f"{start} {accused.name()}. Traceback of forward call that {caused}:\n"
            warnings.warn(text + "".join(lines), stacklevel=users_level())
        else:
            warnings.warn(
                f"Error detected in {accused.name()}. {_UNKNOWN}", stacklevel=users_level()
            )
        start, caused = (
            "\n\nPrevious calculation was induced by",
            "induced the previous calculation",
        )
        accused = accused.metadata.get("parent_")


_UNKNOWN = (
    "No forward pass information available. Enable detect anomaly during forward pass for more "
    "information."
)


def check(node: Node, grads: Sequence[Any]) -> None:
    """Raise RuntimeError, in PyTorch's words, where a gradient that a node returned has NaN."""
    for i, g in enumerate(grads):
        if g is None:
            continue
        array = g.array if isinstance(g, Tensor) else g
        if array.dtype.kind in "fc" and np.isnan(array).any():
            accuse(node)
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th output.")
