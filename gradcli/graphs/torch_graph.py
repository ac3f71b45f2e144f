"""`inspect` for tensors of PyTorch's: names of parameters, lines and modules, values and gradients."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from gradcli.graphs.calls import Calls
from gradcli.graphs.graph import Graph
from gradcli.graphs.torch_nodes import TorchProbe
from gradcli.graphs.torch_watch import note_of


def torch_graph(
    tensors: tuple[Any, ...],
    *,
    names: Mapping[str, Any] | None = None,
    model: Any = None,
    calls: Calls | None = None,
) -> Graph:
    """The graph of tensors of PyTorch's.

    names: what the program calls tensors and modules. model: a module, or several, with parameters to
    name. calls: of the program's modules, if its forward pass was watched; found on the nodes otherwise.
    """
    named = dict(names or {})
    module: Any = sys.modules["torch"].nn.Module
    known = {k: v for k, v in named.items() if hasattr(v, "grad_fn")}
    modules = {id(v): k for k, v in named.items() if isinstance(v, module)}
    calls = calls or _calls_of(tensors)
    if model is not None:
        models: Iterable[Any] = model if isinstance(model, tuple | list) else (model,)
        for one in models:
            if not any(one is root for root in calls.roots):
                calls.add_root(one, "" if one is model else None)
    calls.name_roots(modules)
    probe = TorchProbe(calls, known)
    graph = Graph(tensors, names=known, probe=probe, calls=calls if len(calls) else None)
    for name, tensor in known.items():
        if tensor.grad_fn is not None and tensor.output_nr == 0:
            graph.names.setdefault(id(tensor.grad_fn), name)
    return graph


def _calls_of(tensors: tuple[Any, ...]) -> Calls:
    """The calls of the modules that were watched when the tensors were made."""
    for tensor in tensors:
        note = None if tensor.grad_fn is None else note_of(tensor.grad_fn)
        if note is not None and note.calls is not None:
            return note.calls
    return Calls()
