"""Saved tensors that have been written, or have lost their history, since: PyTorch's refusals."""

from __future__ import annotations

from typing import Any

from gradcli.engine import dtypes, modes, versions
from gradcli.engine.node import Node, short_name
from gradcli.engine.tensor import Scalar, Tensor


def check_versions(node: Node) -> None:
    """Raise RuntimeError, in PyTorch's words, where a saved tensor has been written since."""
    if node._hooks is not None and node._hooks.packed:
        return
    for s in node._saved or ():
        if type(s) is tuple:
            for part in s:
                _check_input(part, node)
        else:
            _check_input(s, node)
    if node._written is not None:
        after = node._result_tick or node._seq
        for nr, counter in node._written.items():
            if counter.stale(after):
                shape, dtype = node.output_meta()[nr]
                raise stale_error(shape, dtype, (node, nr), counter, after)


def is_stale(node: Node) -> bool:
    """Whether a backward pass through the node would be refused for what has been written since."""
    if node._seq >= versions.last:
        return False
    try:
        check_versions(node)
    except RuntimeError:
        return True
    return False


def _check_input(saved: Any, node: Node) -> None:
    if type(saved) is Scalar or not isinstance(saved, Tensor):
        return
    refuse_detached(saved, node._seq)
    counter = saved.versions
    if counter is not None and counter.stale(node._seq):
        origin = None if saved.is_leaf else (saved.grad_fn, saved.output_nr)
        raise stale_error(saved.array.shape, saved.array.dtype, origin, counter, node._seq)


def refuse_detached(saved: Tensor, tick: int) -> None:
    """Raise where a tensor has lost its history since it was saved."""
    if saved.detached > tick and saved.is_leaf:
        raise RuntimeError(
            "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_()."
            "This is not supported, please use out-of-place `.detach()` instead"
        )


def stale_error(shape: Any, dtype: Any, origin: Any, counter: Any, tick: int) -> RuntimeError:
    which = f", which is output {origin[1]} of {short_name(origin[0])}," if origin else ""
    hint = (
        "the backtrace further above shows the operation that failed to compute its gradient. The "
        "variable in question was changed in there or anywhere later. Good luck!"
        if modes.current().anomaly
        else "enable anomaly detection to find the operation that failed to compute its gradient, "
        "with torch.autograd.set_detect_anomaly(True, check_nan=False)."
    )
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: [{_shown_type(dtype)} {list(shape)}]{which} is at "
        f"version {len(counter)}; expected version {counter.at(tick)} instead. Hint: {hint}"
    )


def _shown_type(dtype: Any) -> str:
    """What the error calls the type of a tensor."""
    name = dtypes.of(dtype).name
    if dtype.kind == "c":
        return f"CPU{dtypes.SCALAR_NAMES[name]}Type"
    return f"torch.{dtypes.TYPE_NAMES[name]}"
