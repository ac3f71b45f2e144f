"""torch.nn, as far as functions go: see `functional`."""

from gradcli.nn import functional

__all__ = ["functional"]
