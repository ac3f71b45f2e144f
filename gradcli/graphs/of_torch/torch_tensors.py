"""Tensors of a watched program, looked at such that nothing raises and nothing changes.

They are PyTorch's, which is the user's, or ours, where the program runs on gradcli in PyTorch's place.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from gradcli.engine.core.tensor import Tensor
from gradcli.engine.system.array_memory import address


def is_torch_tensor(value: Any) -> bool:
    """Tell whether it is a tensor, PyTorch's or ours, without asking it for any attribute."""
    torch = sys.modules.get("torch")
    return (torch is not None and isinstance(value, torch.Tensor)) or isinstance(value, Tensor)


def node_of(tensor: Any) -> Any:
    """The node that made a tensor.

    None too where PyTorch refuses to say: a view made under no_grad, whose base has been written since.
    """
    try:
        return tensor.grad_fn
    except RuntimeError:
        return None


def readable(tensor: Any) -> bool:
    """Tell whether a tensor has elements to look at: not inside vmap or grad, nor on no device at all."""
    if isinstance(tensor, Tensor):
        return isinstance(tensor.array, np.ndarray | np.generic)
    return not (is_wrapped(tensor) or tensor.is_meta or tensor.is_nested)


def is_wrapped(tensor: Any) -> bool:
    """Tell whether a tensor is inside a transform of torch.func's."""
    found: bool = sys.modules["torch"]._C._functorch.is_functorch_wrapped_tensor(tensor)
    return found


def dense_parts(tensor: Any) -> Iterator[Any]:
    """The tensors that have storage: itself, or the indices and values of a sparse one.

    Forward mode's zeros have none.
    """
    if isinstance(tensor, Tensor):
        yield from (tensor,) if readable(tensor) else ()
        return
    layout = str(tensor.layout).removeprefix("torch.")
    if not readable(tensor) or tensor._is_zerotensor():
        return
    if layout == "strided":
        yield tensor
    elif layout == "sparse_coo":
        yield from (tensor._indices(), tensor._values())
    elif layout.startswith("sparse_"):
        rows = layout in ("sparse_csr", "sparse_bsr")
        yield tensor.crow_indices() if rows else tensor.ccol_indices()
        yield tensor.col_indices() if rows else tensor.row_indices()
        yield tensor.values()


def has_bad(tensor: Any) -> bool:
    """Tell whether an element is NaN or infinite, in whatever layout; sums are quicker than tests."""
    if isinstance(tensor, Tensor):
        return _has(np.isfinite, False, tensor)
    return any(
        not math.isfinite(part.detach().sum().item()) and not bool(part.detach().isfinite().all())
        for part in dense_parts(tensor)
    )


def has_nan(tensor: Any) -> bool:
    """Tell whether an element is NaN, in whatever layout."""
    if isinstance(tensor, Tensor):
        return _has(np.isnan, True, tensor)
    return any(bool(part.detach().isnan().any()) for part in dense_parts(tensor))


def _has(asked: Any, answer: bool, tensor: Tensor) -> bool:
    """Tell whether an element of a tensor of ours has this answer; whole numbers are finite."""
    if not readable(tensor) or tensor.array.dtype.kind not in "fc":
        return False
    found = asked(tensor.array)
    return bool(found.any() if answer else not found.all())


def memory_of(tensor: Any) -> int:
    """The address of the memory that a tensor and its views share."""
    if isinstance(tensor, Tensor):
        return address((tensor if tensor.base is None else tensor.base).array)
    return int(tensor.untyped_storage().data_ptr())


def version_of(tensor: Any) -> int:
    """How often a tensor's memory has been written in place."""
    return int(tensor.version_number() if isinstance(tensor, Tensor) else tensor._version)


def is_dense(tensor: Any) -> bool:
    """Tell whether a tensor has memory of its own, element by element."""
    return isinstance(tensor, Tensor) or str(tensor.layout) == "torch.strided"


def is_workspace(name: str, tensor: Any) -> bool:
    """Tell whether a saved field is a kernel's own scratch memory, as an LSTM's: bytes that nobody has set.

    A function that has a gradient has no other result of bytes.
    """
    return name.startswith("result") and str(tensor.dtype) == "torch.uint8"
