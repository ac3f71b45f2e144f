"""The backward graph as data, and one renderer a format.

Names are loaded when first used: `from gradcli.graphs import inspect` costs what it needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradcli.graphs.first_nonfinite import Anomaly, find_anomaly
    from gradcli.graphs.forward_watch import watching
    from gradcli.graphs.inspection import Graph, inspect
    from gradcli.graphs.step_listing import Trace, tracing

_HOME = {
    "Anomaly": "gradcli.graphs.first_nonfinite",
    "find_anomaly": "gradcli.graphs.first_nonfinite",
    "watching": "gradcli.graphs.forward_watch",
    "Graph": "gradcli.graphs.inspection",
    "inspect": "gradcli.graphs.inspection",
    "Trace": "gradcli.graphs.step_listing",
    "tracing": "gradcli.graphs.step_listing",
}

__all__ = ["Anomaly", "Graph", "Trace", "find_anomaly", "inspect", "tracing", "watching"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
