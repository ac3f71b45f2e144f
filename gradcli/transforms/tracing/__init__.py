"""A program traced once: the engine's own tensors, over arrays that remember the primitives that
made them."""

from gradcli.transforms.tracing.calls import Call, Value, calls, operands_of

__all__ = ["Call", "Value", "calls", "operands_of"]
