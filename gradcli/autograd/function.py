"""torch.autograd.function."""

from gradcli.engine.function import Function, FunctionCtx, once_differentiable

__all__ = ["Function", "FunctionCtx", "once_differentiable"]
