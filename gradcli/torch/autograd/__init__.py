"""torch.autograd: differentiation, custom operations, modes and checks."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from gradcli.engine.core.backward_pass import backward, grad
from gradcli.engine.core.custom_function import Function
from gradcli.engine.core.modes import (
    detect_anomaly,
    enable_grad,
    inference_mode,
    is_multithreading_enabled,
    no_grad,
    set_detect_anomaly,
    set_grad_enabled,
    set_multithreading_enabled,
)
from gradcli.engine.core.saved_tensors import Saved as SavedTensor
from gradcli.torch.autograd import graph
from gradcli.torch.autograd.variable import Variable

_LATER = {
    "gradcheck": "gradcli.transforms.gradcheck",
    "gradgradcheck": "gradcli.transforms.gradcheck",
    "GradcheckError": "gradcli.transforms.gradcheck",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    if name in ("functional", "forward_ad", "function", "grad_mode", "variable"):
        return import_module(f"gradcli.torch.autograd.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Function",
    "SavedTensor",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "grad",
    "graph",
    "inference_mode",
    "is_multithreading_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]
