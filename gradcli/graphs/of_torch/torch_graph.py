"""PyTorch tensors for `inspect`: their names, their modules, and the probe for their nodes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from gradcli.engine.core.tensor import Tensor
from gradcli.engine.registry import torch_namespaces
from gradcli.graphs.of_torch.module_calls import Calls
from gradcli.graphs.of_torch.own_nodes import OwnProgramProbe
from gradcli.graphs.of_torch.torch_nodes import TorchProbe
from gradcli.graphs.of_torch.torch_notes import note_of
from gradcli.graphs.of_torch.torch_tensors import is_torch_tensor, node_of


def torch_parts(
    tensors: tuple[Any, ...],
    names: Mapping[str, Any] | None = None,
    model: Any = None,
    calls: Calls | None = None,
) -> tuple[TorchProbe | OwnProgramProbe, dict[str, Any], Calls | None]:
    """The probe, the named tensors, and the calls of modules (None where nobody watched).

    names: what the program calls tensors and modules. model: a module, or several, with parameters to
    name. calls: of the program's modules, if its forward pass was watched; found on the nodes otherwise.
    """
    named = dict(names or {})
    torch = torch_namespaces.torch if is_own(tensors) else sys.modules["torch"]
    module: Any = torch.nn.Module
    known = {k: v for k, v in named.items() if is_torch_tensor(v)}
    modules = {k: v for k, v in named.items() if isinstance(v, module)}
    calls = calls or _calls_of(tensors)
    if model is not None:
        models: Iterable[Any] = model if isinstance(model, tuple | list) else (model,)
        for one in models:
            if not any(one is root for root in calls.roots):
                calls.add_root(one, "" if one is model else None)
    calls.name_roots(modules)
    parts = {id(tensor) for _, tensor in calls.parameters()}  # a loop's variable is no name for one
    known = {k: v for k, v in known.items() if id(v) not in parts}
    probe = (OwnProgramProbe if is_own(tensors) else TorchProbe)(calls, known)
    return probe, known, calls if len(calls) else None


def is_own(tensors: tuple[Any, ...]) -> bool:
    """Tell whether they are ours; where there is none, whether gradcli stands in PyTorch's place."""
    if not tensors:
        return sys.modules.get("torch") is torch_namespaces.torch
    return isinstance(tensors[0], Tensor)


def _calls_of(tensors: tuple[Any, ...]) -> Calls:
    """The calls of the modules that were watched when the tensors were made."""
    for tensor in tensors:
        node = node_of(tensor)
        note = None if node is None else note_of(node)
        if note is not None and note.calls is not None:
            return note.calls
    return Calls()
