"""torch.nn, as far as functions and their parameters go: see `functional` and `parameter`."""

from gradcli.torch.nn import functional, parameter
from gradcli.torch.nn.parameter import Parameter

__all__ = ["Parameter", "functional", "parameter"]
