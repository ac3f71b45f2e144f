"""torch.autograd.forward_ad: forward mode with dual numbers."""

from __future__ import annotations

from typing import Any

from gradcli.transforms.forward_mode import (
    dual_level,
    enter_dual_level,
    exit_dual_level,
    make_dual,
    unpack_dual,
)
from gradcli.transforms.forward_mode import is_forward_enabled as _is_fwd_grad_enabled
from gradcli.transforms.forward_mode import set_forward_enabled as _set_fwd_grad_enabled
from gradcli.transforms.forward_state import UnpackedDualTensor, current_level


def __getattr__(name: str) -> Any:
    if name == "_current_level":
        return current_level()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "UnpackedDualTensor",
    "_is_fwd_grad_enabled",
    "_set_fwd_grad_enabled",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]
