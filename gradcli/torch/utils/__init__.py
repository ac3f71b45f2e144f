"""torch.utils: activation checkpointing, and memory shared with other packages."""

from gradcli.torch.utils import checkpoint, dlpack

__all__ = ["checkpoint", "dlpack"]
