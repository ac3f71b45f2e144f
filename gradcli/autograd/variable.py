"""torch.autograd.variable: what is left of it."""

from gradcli.engine.backward import queue_callback
from gradcli.engine.tensor import Tensor as Variable


class _ExecutionEngine:
    """PyTorch's engine object, as far as callbacks go."""

    queue_callback = staticmethod(queue_callback)


Variable._execution_engine = _ExecutionEngine()  # type: ignore[attr-defined]

__all__ = ["Variable"]
