"""The values of the forward pass, as far as a graph still knows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from gradcli.graphs import saved
from gradcli.graphs.records import Walk


def known_values(skeleton: Walk, watched: Mapping[Any, Any] | None = None) -> dict[int, Any]:
    """Return the value of each node's result by id: watched, a leaf's own, or a saved one.

    Nodes do not keep their results; what nobody watched and nobody saved is simply not known.
    """
    ids = skeleton.ids
    found: dict[int, Any] = {}
    for i, node in enumerate(skeleton.nodes):
        variable = getattr(node, "variable", None)
        if variable is not None:
            found[i] = variable
            continue
        for tensor in saved.tensors(node):
            maker = getattr(tensor, "grad_fn", None)
            if maker is not None and maker in ids and getattr(tensor, "output_nr", 0) == 0:
                found.setdefault(ids[maker], tensor)
    for node, tensor in (watched or {}).items():
        if node in ids:
            found[ids[node]] = tensor
    return found


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
    from gradcli.engine import modes

    kept: dict[Any, Any] = {}
    former = modes.current().intercept

    def keep(row: Any, operands: Any, outputs: Any) -> None:
        if former is not None:
            former(row, operands, outputs)
        for tensor in outputs:
            node = tensor.grad_fn
            if node is not None and tensor.output_nr == 0:
                kept[node] = tensor

    before = modes.change(intercept=keep)
    try:
        yield kept
    finally:
        modes.restore(before)
