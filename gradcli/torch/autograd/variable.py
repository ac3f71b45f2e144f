"""torch.autograd.variable: the old name of tensors."""

from __future__ import annotations

from typing import Any

from gradcli.engine.core.tensor import Tensor
from gradcli.engine.core.watched_pass import queue_callback


class _ExecutionEngine:
    """PyTorch's engine object, as far as callbacks go."""

    queue_callback = staticmethod(queue_callback)


class _Meta(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, Tensor)


class Variable(metaclass=_Meta):
    """Every tensor is a Variable; calling it gives a tensor over the same data."""

    _execution_engine = _ExecutionEngine()

    def __new__(cls, data: Tensor, requires_grad: bool = False) -> Any:
        return data.detach().requires_grad_(requires_grad)


__all__ = ["Variable"]
