"""What signatures call the arguments of kernels, rules and functions; no program needs it to run.

    def forward(self: Array, dim: Ints | None = None) -> Array    # a kernel: arrays, and options
    def _placed(g: Value, shape: Shape) -> Any                    # a rule: on arrays, and on tensors
    def outer(input: Tensor, vec2: Tensor) -> Any                 # a function of the table

A kernel's operands are what it annotates as `Array`, `Array | None` or `Arrays`; all else are options
(`core.declaration`), and an option that is annotated as `int` takes no other number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gradcli.engine.core.tensor import Tensor

# NumPy's, or what stands in its place: a scalar of NumPy's, a batch, an array that is recorded or that has a
# shape alone (`system.array_memory.ARRAYS`). A type checker takes all of them for NumPy's.
Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Arrays: TypeAlias = "Sequence[Array]"
# An array in a plain backward pass, a tensor where the pass is recorded.
Value: TypeAlias = "Array | Tensor"
# A number of Python's; PyTorch's `Scalar`.
Number: TypeAlias = "bool | int | float | complex"
Shape: TypeAlias = "tuple[int, ...]"
# An int for each dimension (strides, paddings), or dimensions themselves.
Ints: TypeAlias = "tuple[int, ...]"
DType: TypeAlias = "np.dtype[Any]"
