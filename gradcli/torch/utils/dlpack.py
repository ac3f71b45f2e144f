"""torch.utils.dlpack: tensors handed over to other packages, and taken from them."""

from __future__ import annotations

from typing import Any

from gradcli.operators.movement.creation import from_dlpack as from_dlpack


def to_dlpack(tensor: Any) -> Any:
    """A capsule with the tensor's memory, which can be consumed once."""
    return tensor.__dlpack__()


__all__ = ["from_dlpack", "to_dlpack"]
