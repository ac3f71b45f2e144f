"""Gradients of a value, and gradients of these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gradcli.engine.core.backward_pass import grad
from gradcli.engine.registry.table import resolve


def gradients(
    value: Any, leaves: Mapping[str, Any], cotangent: Any = None, order: int = 1
) -> dict[str, Any]:
    """The gradients of a tensor by name; no `.grad` changes.

    leaves: the variables by name. cotangent: the gradient that the pass starts from; None for that of a
    scalar. order: how often to differentiate; see `nth`. Of the first order None says that nothing
    depends on a variable. Raises RuntimeError, in PyTorch's words.
    """
    if order > 1:
        return {n: nth(value, t, order, cotangent) for n, t in leaves.items()}
    return dict(
        zip(leaves, grad(value, list(leaves.values()), cotangent, allow_unused=True), strict=True)
    )


def nth(value: Any, variable: Any, order: int, cotangent: Any = None) -> Any:
    """The derivative of that order; zeros once nothing depends on the variable any more.

    From the second time on the gradient is summed up first, so elementwise functions give their
    elementwise derivatives.
    """
    ones, zeros = resolve("ones_like"), resolve("zeros_like")
    for k in range(order):
        if not value.requires_grad:
            return zeros(variable.detach())
        if k:
            cotangent = ones(value.detach())
        (found,) = grad(
            value,
            [variable],
            cotangent,
            create_graph=k < order - 1,
            retain_graph=True,
            allow_unused=True,
        )
        if found is None:
            return zeros(variable.detach())
        value = found
    return value
