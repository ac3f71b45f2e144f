"""torch.utils: activation checkpointing, memory shared with other packages, data sets and batches."""

from importlib import import_module
from typing import Any

from gradcli.engine.registry.torch_namespaces import absent
from gradcli.torch.utils import checkpoint, dlpack


def __getattr__(name: str) -> Any:
    if name == "data":
        return import_module(f"{__name__}.data")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{absent(f'utils.{name}')}")


__all__ = ["checkpoint", "dlpack"]
