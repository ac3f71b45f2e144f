"""Tensors of PyTorch's, looked at such that nothing raises and nothing changes: torch is the user's."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import Any


def is_torch_tensor(value: Any) -> bool:
    """Tell whether it is a tensor of PyTorch's, without asking it for any attribute."""
    return isinstance(value, sys.modules["torch"].Tensor)


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
    return not (is_wrapped(tensor) or tensor.is_meta or tensor.is_nested)


def is_wrapped(tensor: Any) -> bool:
    """Tell whether a tensor is inside a transform of torch.func's."""
    found: bool = sys.modules["torch"]._C._functorch.is_functorch_wrapped_tensor(tensor)
    return found


def dense_parts(tensor: Any) -> Iterator[Any]:
    """The tensors that have storage: itself, or the indices and values of a sparse one.

    Forward mode's zeros have none.
    """
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
    return any(
        not math.isfinite(part.detach().sum().item()) and not bool(part.detach().isfinite().all())
        for part in dense_parts(tensor)
    )


def has_nan(tensor: Any) -> bool:
    """Tell whether an element is NaN, in whatever layout."""
    return any(bool(part.detach().isnan().any()) for part in dense_parts(tensor))


def is_workspace(name: str, tensor: Any) -> bool:
    """Tell whether a saved field is a kernel's own scratch memory, as an LSTM's: bytes that nobody has set.

    A function that has a gradient has no other result of bytes.
    """
    return name.startswith("result") and str(tensor.dtype) == "torch.uint8"
