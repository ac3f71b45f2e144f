"""torch.cuda: names of the operator table, and its older names of mixed precision."""

from importlib import import_module
from typing import Any

from gradcli.engine.registry.torch_namespaces import filled

_table, __dir__ = filled(__name__, "cuda")


def __getattr__(name: str) -> Any:
    return import_module(f"{__name__}.amp") if name == "amp" else _table(name)
