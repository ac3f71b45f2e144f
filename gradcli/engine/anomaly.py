"""Anomaly mode: nodes remember where they were made, and NaN gradients are errors."""

from __future__ import annotations

import sys
import traceback
import warnings
from typing import Any

import numpy as np

from gradcli.engine.node import Node
from gradcli.engine.tensor import Tensor


def remember(node: Node) -> None:
    """Keep the traceback of the forward call on its node."""
    frame = sys._getframe(1)
    while frame.f_back is not None and "gradcli" in frame.f_globals.get("__name__", ""):
        frame = frame.f_back
    node.metadata["traceback_"] = traceback.format_stack(frame)


def accuse(node: Node) -> None:
    """Warn which node failed, and where its forward call was made."""
    lines = node.metadata.get("traceback_")
    if lines:
        text = "Traceback of forward call that caused the error:\n" + "".join(lines)
    else:
        text = (
            "No forward pass information available. Enable detect anomaly during forward pass for "
            "more information."
        )
    warnings.warn(f"Error detected in {node.name()}. {text}", stacklevel=2)


def check(node: Node, grads: Any) -> None:
    """Raise RuntimeError, in PyTorch's words, where a gradient that a node returned has NaN."""
    for i, g in enumerate(grads):
        if g is None:
            continue
        array = g.array if isinstance(g, Tensor) else g
        if array.dtype.kind in "fc" and np.isnan(array).any():
            accuse(node)
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th output.")
