"""Which step of a program has a wrong derivative."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.engine.core import modes
from gradcli.engine.core.node import Node, Port
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.transforms.finite_differences import Function, check_point


class CheckedPart:
    """An operation of the program: its name, where it stands, and whether its gradient is right."""

    __slots__ = ("analytical", "error", "name", "numerical", "span")

    def __init__(
        self, name: str, span: tuple[int, int] | None, error: float, analytical: Any, numerical: Any
    ) -> None:
        self.name, self.span, self.error = name, span, error
        self.analytical, self.numerical = analytical, numerical


def blame(
    function: Function, arrays: Mapping[str, Any], wrt: Sequence[str], analytic: bool = False
) -> CheckedPart | None:
    """The first operation of the program whose own gradient is wrong; None if none is.

    analytic: see `check_point`.
    """
    recorded: list[tuple[Any, Any, Any]] = []
    leaves = {n: wrap(np.array(a), requires_grad=n in wrt) for n, a in arrays.items()}
    with modes.changed(
        intercept=lambda primitive, values, made: recorded.append((primitive, values, made))
    ):
        function(**leaves)
    for primitive, values, made in recorded:
        node = _node_of(made)
        if node is None:
            continue
        part = _checked_part(primitive, values, node, analytic)
        if part is not None:
            return part
    return None


def _node_of(made: Any) -> Node | None:
    for t in made if isinstance(made, (tuple, list)) else [made]:
        node = getattr(t, "node", None)
        if isinstance(node, Port):
            node = node.node
        if isinstance(node, Node):
            return node
    return None


def _checked_part(primitive: Any, values: Any, node: Node, analytic: bool) -> CheckedPart | None:
    places = [
        i
        for i, v in enumerate(values)
        if type(v) is Tensor and v.requires_grad and v.is_floating_point()
    ]
    if not places:
        return None
    given = [v.detach() if isinstance(v, Tensor) else v for v in values]
    custom = getattr(primitive, "_function", None)

    def local(**own: Tensor) -> Any:
        args = list(given)
        for i in places:
            args[i] = own[f"v{i}"]
        if custom is not None:
            return custom.apply(*args)
        return primitive.call_in_order(args)

    arrays = {f"v{i}": values[i].array for i in places}
    try:
        found = check_point(local, arrays, list(arrays), analytic=analytic)
    except Exception:  # a user's own operation may refuse in any way
        return None
    wrong = [c for c in found.values() if not c.ok]
    if not wrong:
        return None
    worst = max(wrong, key=lambda c: c.error)
    name = custom.__name__ if custom is not None else primitive.public_name.removesuffix("_p")
    return CheckedPart(
        name, node.span, worst.error, worst.analytical[worst.index], worst.numerical[worst.index]
    )
