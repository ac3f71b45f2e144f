"""The core: tensors, the backward graph that operations record, and the pass over it.

Its files import downwards only, lazy imports included. Where a lower file needs a higher one, as
`Tensor.backward` needs the backward pass, the function is attached here.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from gradcli.engine.core import generated_calls
from gradcli.engine.core.node import AccumulateGrad, Node
from gradcli.engine.core.tensor import Tensor


def _push(node: Node, grad: Any, retain: bool) -> None:
    from gradcli.engine.core import generated_rules

    type(node).push = made = generated_rules.push(node._primitive)
    made(node, grad, retain)


def _push_recorded(node: Any, grad: Any, retain: bool) -> None:
    from gradcli.engine.core import recorded_rules

    type(node).push_recorded = made = recorded_rules.push(node._primitive)
    made(node, grad, retain)


def _accumulate(node: Any, grad: Any, retain: bool) -> None:
    from gradcli.engine.core.gradients import accumulate

    type(node).push = accumulate
    accumulate(node, grad, retain)


def _accumulate_recorded(node: Any, grad: Any, retain: bool) -> None:
    from gradcli.engine.core.gradients import accumulate_recorded

    type(node).push_recorded = accumulate_recorded
    accumulate_recorded(node, grad, retain)


def _call_node(node: Node, *grads: Any) -> Any:
    from gradcli.engine.core.watched_pass import call_node

    return call_node(node, grads)


def _run_backward(tensor: Tensor, *args: Any, **options: Any) -> None:
    from gradcli.engine.core.backward_pass import backward

    Tensor.run_backward = made = backward
    made(tensor, *args, **options)


def _regenerate(tensor: Tensor) -> Any:
    from gradcli.engine.core import views

    return views.regenerate(tensor)


def _in_batches(tensor: Tensor, wanted: Any) -> Any:
    from gradcli.engine.core import batch_levels

    Tensor.in_batches = made = batch_levels.lift
    return made(tensor, wanted)


def _mapped(*args: Any) -> Any:
    from gradcli.engine.core import mapped_calls

    generated_calls.mapped = made = mapped_calls.lines
    return made(*args)


class OfEngine:
    """A method of Tensor for a basic primitive, until the operator table replaces it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, x: Any, kind: type[Tensor]) -> Any:
        from gradcli.engine.core import basic_primitives

        return partial(basic_primitives.METHODS[self.name], x)


for _name in ("__add__", "__radd__", "__mul__", "__rmul__", "sum", "view", "reshape", "expand"):
    setattr(Tensor, _name, OfEngine(_name))

Node.push, AccumulateGrad.push = _push, _accumulate
Node.push_recorded, AccumulateGrad.push_recorded = _push_recorded, _accumulate_recorded
Node.__call__ = _call_node  # type: ignore[method-assign]
Tensor.run_backward, Tensor.regenerate = _run_backward, _regenerate
Tensor.in_batches = _in_batches
generated_calls.mapped = _mapped
