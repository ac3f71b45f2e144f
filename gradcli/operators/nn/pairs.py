"""A map of images with its derivative, which PyTorch has as an operator of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcli.engine.operator import Row
from gradcli.operators.table import operator

FAMILY = "nn"


def pair(
    name: str,
    node: str,
    kernel: Any,
    kernel_backward: Any,
    backward: type,
    rule: Callable[[Row], Any] | None = None,
    **facts: Any,
) -> Row:
    """The row NAME of a map, behind that of its derivative, NAME_backward.

    backward: the rules of the derivative. rule: that of the map, made of the derivative's row, where the
    arguments of the latter are not called as what the map saves. facts: about the row of the map.
    """
    backward.__name__ = f"{name}_backward"
    kind = None if "self" in vars(backward) else "linear"
    back = operator(
        kernel_backward,
        f"{node}BackwardBackward0",
        kind=kind,
        public=False,
        batch="folded",
        guarded=False,
    )(backward)
    forward = {"self": rule(back) if rule else back, "__module__": backward.__module__}
    return operator(kernel, f"{node}Backward0", public=False, batch="folded", **facts)(
        type(name, (), forward)
    )
