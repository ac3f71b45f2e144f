"""torch.autograd.function."""

from gradcli.engine.core.custom_function import (
    BackwardCFunction,
    Function,
    FunctionCtx,
    InplaceFunction,
    once_differentiable,
)

__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "InplaceFunction",
    "once_differentiable",
]
