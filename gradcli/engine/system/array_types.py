"""What signatures call the arguments of kernels and of what works on arrays. No module needs it to run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

# NumPy's, or what stands in its place: a scalar of NumPy's, a batch, an array that is recorded or that has a
# shape alone (`array_memory.ARRAYS`). A type checker takes all of them for NumPy's.
Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Arrays: TypeAlias = "Sequence[Array]"
DType: TypeAlias = "np.dtype[Any]"
Shape: TypeAlias = "tuple[int, ...]"
# A number of Python's; PyTorch's `Scalar`.
Number: TypeAlias = "bool | int | float | complex"
