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
    """Let `import torch` import gradcli, and `import torch.nn` its `nn`; what ends that."""
    before = _taken_out()
    sys.modules["torch"] = torch_namespaces.torch

    def end() -> None:
        _taken_out()
        sys.modules.update(before)

    return end


def _taken_out() -> dict[str, Any]:
    """Take PyTorch's modules, or what stands for them, out of those that were imported."""
    names = [name for name in sys.modules if name.partition(".")[0] == "torch"]
    return {name: sys.modules.pop(name) for name in names}
