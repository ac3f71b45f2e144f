"""torch.nn, as far as functions and their parameters go: see `functional` and `parameter`."""

from gradcli.nn import functional, parameter
from gradcli.nn.parameter import Parameter

__all__ = ["Parameter", "functional", "parameter"]
