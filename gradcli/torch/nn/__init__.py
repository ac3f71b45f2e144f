"""torch.nn: modules, layers, containers, first values, and functions of tensors (`functional`)."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from gradcli.engine.registry.torch_namespaces import absent
from gradcli.torch.nn import functional, parameter
from gradcli.torch.nn.parameter import Buffer, Parameter, UninitializedParameter

# Where the classes are. Nothing of it is imported before it is asked for.
_HOMES = ("module", "containers", "plain_layers", "layers", "recurrent", "attention")


def __getattr__(name: str) -> Any:
    if name in ("init", "utils", "modules"):
        return import_module(f"{__name__}.{name}")
    if name[:1].isupper():
        for home in _HOMES:
            module = import_module(f"{__name__}.modules.{home}")
            found = getattr(module, "CLASSES", {}).get(name)
            found = getattr(module, name, None) if found is None and home in _HOMES[:2] else found
            if found is not None:
                globals()[name] = found
                return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{absent(f'nn.{name}')}")


def __dir__() -> list[str]:
    names = set(__all__) | {"init", "utils", "Module"}
    for home in _HOMES[1:]:
        module = import_module(f"{__name__}.modules.{home}")
        names |= {*getattr(module, "CLASSES", {}), *getattr(module, "__all__", ())}
    return sorted(names)


__all__ = ["Buffer", "Parameter", "UninitializedParameter", "functional", "parameter"]
