"""Watching a forward pass: the results of all operations are kept, and the constants they were made of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any


class Watched(dict[Any, Any]):
    """The result of every recorded operation by its node, in order.

    operands: what stands behind each edge of a node, None where no tensor does.
    """

    def __init__(self) -> None:
        self.operands: dict[Any, list[Any]] = {}


def watching(*models: Any) -> AbstractContextManager[Any]:
    """Inside, the result of every recorded operation is kept, in order: a mapping node -> Tensor.

    Keeping them costs memory; `inspect(..., values=...)` and `find_anomaly` read them. With modules, of
    PyTorch's or of `gradcli.nn`, it watches these: the user's line, the module and the counted up result
    of every node, which `inspect(loss)` then knows.
    """
    if models:
        if all(map(_is_own, models)):
            from gradcli.graphs.of_torch.own_watch import OwnWatch

            return OwnWatch(*models)
        from gradcli.graphs.of_torch.torch_watch import Watch

        return Watch(*models)
    return _watching()


def _is_own(model: Any) -> bool:
    """Tell whether it is a module of `gradcli.nn`."""
    return any(kind.__module__.startswith("gradcli.torch.nn") for kind in type(model).__mro__)


@contextmanager
def _watching() -> Iterator[Watched]:
    from gradcli.engine.core import modes

    kept = Watched()
    former = modes.current().intercept

    def keep(primitive: Any, operands: Any, outputs: Any) -> None:
        if former is not None:
            former(primitive, operands, outputs)
        for tensor in outputs:
            node = tensor.grad_fn
            if node is not None and tensor.output_nr == 0:
                kept[node] = tensor
                if hasattr(primitive, "edge_operands"):  # a custom Function has none
                    kept.operands[node] = primitive.edge_operands(operands)

    keep.below = former  # type: ignore[attr-defined]
    with modes.changed(intercept=keep):
        yield kept
