"""PyTorch's errors for saved tensors that were written in place, or detached, since they were saved."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from gradcli.engine.core import modes, versions
from gradcli.engine.core.declaration import Declaration
from gradcli.engine.core.node import PART, Node, Port, short_name
from gradcli.engine.core.tensor import Tensor
from gradcli.engine.system.dtypes import scalar_name, tensor_name

if TYPE_CHECKING:
    from gradcli.engine.system.dtypes import DType


class _Reading(threading.local):
    """In a pass of a transform's level, the ids of the nodes that it reaches; None in other passes.

    A node saves what the gradients of all levels need. The pass of one level reads only some of it, and
    ignores writes to the rest.
    """

    ids: frozenset[int] | None = None


reading = _Reading()


def check_versions(node: Node, only: str | None = None) -> None:
    """Raise RuntimeError, in PyTorch's words, if a saved tensor was written in place since.

    only: the one saved field that is asked for; None for all.
    """
    if node._hooks is not None and node._hooks.packed:
        return
    for _, saved in _saved_tensors(node, only):
        raise_on_detached(saved, node._seq)
        if _written_since(saved, node):
            origin = None if saved.is_leaf else (saved.grad_fn, saved.output_nr)
            array = saved.array
            raise stale_error(array.shape, array.dtype, origin, saved.versions, node._seq)
    for nr, counter, after in _written_results(node, only):
        shape, dtype = node.output_meta()[nr]
        raise stale_error(shape, dtype, (node, nr), counter, after)


def stale_fields(node: Node) -> dict[str, int]:
    """The saved fields for which `check_versions` would raise, with the version that each was saved at."""
    if node._seq >= versions.last or (node._hooks is not None and node._hooks.packed):
        return {}
    found = {}
    for field, saved in _saved_tensors(node):
        if _detached_since(saved, node._seq) or _written_since(saved, node):
            found[field] = 0 if saved.versions is None else saved.versions.at(node._seq)
    if node._primitive is not None:
        results = _written_results(node)
        found |= {node._primitive.outputs[nr]: counter.at(tick) for nr, counter, tick in results}
    return found


def _saved_tensors(node: Node, only: str | None = None) -> Iterator[tuple[str, Tensor]]:
    """The operands that a node saved and that this pass needs, with their fields."""
    fields = node._primitive.saved_fields if node._primitive is not None else ()
    needed = _needed(node)
    for nr, saved in enumerate(node._saved or ()):
        field = fields[nr] if fields else ""
        if (needed is not None and field not in needed) or only not in (None, field):
            continue
        for part in saved if type(saved) is tuple else (saved,):
            if isinstance(part, Tensor):
                yield field, part


def _written_since(saved: Tensor, node: Node) -> bool:
    return saved.versions is not None and saved.versions.stale(node._seq)


def _written_results(node: Node, only: str | None = None) -> Iterator[tuple[int, Any, int]]:
    """(output number, version counter, tick when saved) of each saved result written in place since."""
    after = node._result_tick or node._seq
    needed, primitive = _needed(node), node._primitive
    for nr, counter in (node._written or {}).items():
        idle = needed is not None and primitive is not None and primitive.outputs[nr] not in needed
        asked = only is None or (primitive is not None and primitive.outputs[nr] == only)
        if counter.stale(after) and asked and not idle:
            yield nr, counter, after


def _needed(node: Node) -> set[str] | None:
    """The saved fields that this pass reads; None for all."""
    ids = reading.ids
    if node._primitive is None or ids is None:
        return None
    return _fields(node._primitive, node, lambda end: end is PART or id(end) in ids)


def _fields(primitive: Declaration, node: Node, wanted: Callable[[Node], bool]) -> set[str]:
    """The saved fields that the gradients which go to wanted nodes are made of."""
    by_position = primitive.edges_by_position(node)
    found: set[str] = set()
    for targets, needs in zip(primitive.targets, primitive.needs, strict=True):
        edges = [e for t in targets for e in by_position[t] if e is not None]
        if any(wanted(e.node if isinstance(e, Port) else e) for e in edges):
            found.update(needs)
    return found


def drop_unneeded(node: Node) -> None:
    """Let go of what a node, some of whose edges were cut off, has saved for these alone."""
    primitive = node._primitive
    if primitive is None or not node._saved:
        return
    kept = _fields(primitive, node, lambda end: True)
    pairs = zip(primitive.saved_fields, node._saved, strict=True)
    node._saved = tuple(value if field in kept else None for field, value in pairs)
    written = (node._written or {}).items()
    node._written = {nr: c for nr, c in written if primitive.outputs[nr] in kept}


def _detached_since(saved: Tensor, tick: int) -> bool:
    return saved.detached > tick and saved.is_leaf


def raise_on_detached(saved: Tensor, tick: int) -> None:
    """Raise RuntimeError if a tensor was detached in place since it was saved."""
    if _detached_since(saved, tick):
        raise RuntimeError(
            "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_()."
            "This is not supported, please use out-of-place `.detach()` instead"
        )


def stale_error(shape: Any, dtype: Any, origin: Any, counter: Any, tick: int) -> RuntimeError:
    from gradcli.engine.core.errors import StaleTensorError

    version, expected = len(counter), counter.at(tick)
    which = f", which is output {origin[1]} of {short_name(origin[0])}," if origin else ""
    hint = (
        "the backtrace further above shows the operation that failed to compute its gradient. The "
        "variable in question was changed in there or anywhere later. Good luck!"
        if modes.current().anomaly
        else "enable anomaly detection to find the operation that failed to compute its gradient, "
        "with torch.autograd.set_detect_anomaly(True, check_nan=False)."
    )
    message = (
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: [{_shown_type(dtype)} {list(shape)}]{which} is at "
        f"version {version}; expected version {expected} instead. Hint: {hint}"
    )
    return StaleTensorError(message, shape, version, expected)


def _shown_type(dtype: DType) -> str:
    """The name of a tensor's type in the error."""
    if dtype.kind == "c":
        return f"CPU{scalar_name(dtype)}Type"
    return f"torch.{tensor_name(dtype)}"
