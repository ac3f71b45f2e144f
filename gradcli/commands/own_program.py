"""gradcli in PyTorch's place: a program in PyTorch's language runs where PyTorch is not installed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from gradcli.engine.registry import torch_namespaces


def has_torch() -> bool:
    """Whether PyTorch can be imported."""
    try:
        import_module("torch")
    except ImportError:
        return False
    return True


def stand_in() -> Callable[[], None]:
    """Let `import torch` import gradcli; what ends that."""
    missing = object()
    before: Any = sys.modules.get("torch", missing)
    sys.modules["torch"] = torch_namespaces.torch

    def end() -> None:
        del sys.modules["torch"]
        if before is not missing:
            sys.modules["torch"] = before

    return end
