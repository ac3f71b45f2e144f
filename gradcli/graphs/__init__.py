"""The backward graph as data, and one renderer a format.

Names are loaded when first used: `from gradcli.graphs import inspect` costs what it needs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gradcli.graphs.anomaly import Anomaly, find_anomaly
    from gradcli.graphs.forward import watching
    from gradcli.graphs.graph import Graph, inspect
    from gradcli.graphs.trace import Trace, tracing

_HOME = {
    "Anomaly": "gradcli.graphs.anomaly",
    "find_anomaly": "gradcli.graphs.anomaly",
    "watching": "gradcli.graphs.forward",
    "Graph": "gradcli.graphs.graph",
    "inspect": "gradcli.graphs.graph",
    "Trace": "gradcli.graphs.trace",
    "tracing": "gradcli.graphs.trace",
}

__all__ = ["Anomaly", "Graph", "Trace", "find_anomaly", "inspect", "tracing", "watching"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
