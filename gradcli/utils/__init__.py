"""torch.utils: activation checkpointing."""

from gradcli.utils import checkpoint

__all__ = ["checkpoint"]
