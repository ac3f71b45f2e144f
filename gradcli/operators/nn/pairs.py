"""A map of images with its derivative, which PyTorch has as an operator of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.engine.operator import Row
from gradcli.operators.helpers import zeros_like
from gradcli.operators.table import operator

FAMILY = "nn"


# The rules of a derivative for what the map is linear in: it looks at no more than its shape.
NOTHING = {"self": lambda g, self: zeros_like(self)}


def pair(
    name: str,
    node: str,
    kernel: Any,
    kernel_backward: Any,
    backward: dict[str, Any],
    rule: Callable[[Row], Any] | None = None,
    slope: str = "",
    **facts: Any,
) -> Row:
    """The row NAME of a map, behind that of its derivative, NAME_backward.

    backward: rules of the derivative; that for grad_output is the map itself, where none is here. rule:
    that of the map, made of the derivative's row, where the arguments of the latter are not called as
    what the map saves. slope: how the derivative is spelled. facts: about the row of the map.
    """
    back = operator(
        kernel_backward,
        f"{node}BackwardBackward0",
        kind=None if backward else "linear",
        public=False,
        batch="folded",
        guarded=False,
        spelled=slope,
    )(_rules(f"{name}_backward", **backward))
    row = operator(kernel, f"{node}Backward0", public=False, batch="folded", **facts)(
        _rules(name, self=rule(back) if rule else back)
    )
    back.rules = {"grad_output": row} | back.rules
    return row


def _rules(name: str, **rules: Any) -> type:
    return type(name, (), rules | {"__module__": __name__})
