"""Watching a forward pass: the results of all operations are kept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any


def watching(*models: Any) -> AbstractContextManager[Any]:
    """Inside, the result of every recorded operation is kept, in order: a mapping node -> Tensor.

    Keeping them costs memory; `inspect(..., values=...)` and `find_anomaly` read them. With modules of
    PyTorch's it watches PyTorch: the user's line, the module and the counted up result of every node,
    which `inspect(loss)` then knows. Raises ImportError for them where PyTorch is not installed.
    """
    if models:
        from gradcli.graphs.torch_watch import Watch

        return Watch(*models)
    return _watching()


@contextmanager
def _watching() -> Iterator[dict[Any, Any]]:
    from gradcli.core import modes

    kept: dict[Any, Any] = {}
    former = modes.current().intercept

    def keep(primitive: Any, operands: Any, outputs: Any) -> None:
        if former is not None:
            former(primitive, operands, outputs)
        for tensor in outputs:
            node = tensor.grad_fn
            if node is not None and tensor.output_nr == 0:
                kept[node] = tensor

    keep.below = former  # type: ignore[attr-defined]
    with modes.changed(intercept=keep):
        yield kept
