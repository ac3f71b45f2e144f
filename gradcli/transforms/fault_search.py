"""Which step of a program has a wrong derivative."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.engine.core import modes
from gradcli.engine.core.custom_function import Function
from gradcli.engine.core.node import Node, Port
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.transforms.finite_differences import Checked, check_point, outputs_of
from gradcli.transforms.finite_differences import Function as Program


class CheckedPart:
    """An operation of the program whose gradient is wrong: its name, where it stands, and by which element.

    at: the operand and the element, `x[1]`. weighted: whether its value is no number, so that what was
    differentiated is a sum of its elements with weights drawn at random.
    """

    __slots__ = ("analytical", "at", "error", "name", "numerical", "span", "weighted")

    def __init__(
        self, name: str, span: tuple[int, int] | None, at: str, weighted: bool, worst: Checked
    ):
        self.name, self.span, self.at, self.weighted = name, span, at, weighted
        self.error, k = worst.error, worst.index
        self.analytical, self.numerical = worst.analytical[k], worst.numerical[k]


def blame(
    function: Program, arrays: Mapping[str, Any], wrt: Sequence[str], analytic: bool = False
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
    wrong = {n: c for n, c in found.items() if not c.ok}
    if not wrong:
        return None
    operand, worst = max(wrong.items(), key=lambda item: item[1].error)
    name = custom.__name__ if custom is not None else primitive.public_name.removesuffix("_p")
    called = _operands(primitive, custom)
    place = int(operand[1:])
    at = called[place] if place < len(called) else f"operand {place + 1}"
    at += f"[{', '.join(map(str, worst.index))}]" if worst.index else ""
    is_number = all(np.size(one.array) == 1 for one in outputs_of(local(**_wrapped(arrays))))
    return CheckedPart(name, node.span, at, not is_number, worst)


def _wrapped(arrays: Mapping[str, Any]) -> dict[str, Tensor]:
    return {name: wrap(array) for name, array in arrays.items()}


def _operands(primitive: Any, custom: Any) -> list[str]:
    """The names of what an operation takes; of a custom one without its context."""
    try:
        names = list(inspect.signature(primitive if custom is None else custom.forward).parameters)
    except (TypeError, ValueError):
        return []
    takes_context = custom is not None and custom.setup_context is Function.setup_context
    return names[1:] if takes_context else names
