"""Type promotion of a kernel's operands, and PyTorch's errors for shapes that do not broadcast."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.engine.core.tensor import Scalar, Tensor
from gradcli.engine.system import dtypes


def raw(value: object) -> Any:
    """The array of a tensor, or of each tensor in a tuple; any other value unchanged."""
    if isinstance(value, Tensor):
        return value.array
    if type(value) is tuple:
        return tuple(raw(v) for v in value)
    return value


BOOL_OPERAND = (
    "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert "
    "a mask, use the `~` or `logical_not()` operator instead."
)


HALF: np.dtype[Any] = np.dtype(np.float16)
SINGLE: np.dtype[Any] = np.dtype(np.float32)


def promote(types: str, *operands: Any, wide: bool = False) -> list[Any]:
    """The operands' arrays, cast to the dtype in which PyTorch computes.

    `types`: "common" (their common dtype), "float" (and integers become the default dtype) or "numbers"
    (common, but RuntimeError for a bool among others). wide: see `operator`.
    """
    if types == "common" and not wide:
        arrays = [o.array for o in operands]
        if all(a.dtype is arrays[0].dtype for a in arrays):
            return arrays
    ranks = [
        (o.array.dtype, 0 if type(o) is Scalar or o.wrapped else 2 if o.array.ndim else 1)
        for o in operands
    ]
    if types == "numbers":
        bools = [
            isinstance(o.value, bool) if type(o) is Scalar else o.array.dtype.kind == "b"
            for o in operands
        ]
        if any(bools) and not all(bools):
            raise RuntimeError(BOOL_OPERAND)
    wanted = dtypes.result_type(ranks)
    if types == "float" and wanted.kind in "biu":
        wanted = dtypes.default.real
    if wanted is HALF and wide:  # numbers and 0-d tensors are not rounded to float16 first
        return [o.array if o.array.dtype is HALF else o.array.astype(SINGLE) for o in operands]
    # A Python number is cast once, from its exact value: 300 / int8 does not divide 44 (300 as int8).
    return [
        o.array
        if o.array.dtype is wanted
        else dtypes.constant(o.value, wanted)
        if type(o) is Scalar
        else o.array.astype(wanted, copy=False)
        for o in operands
    ]


def shape_error(error: ValueError, operands: list[Any]) -> Exception:
    """PyTorch's error if NumPy's is about shapes that do not broadcast; else NumPy's."""
    shapes = [o.shape for o in operands if hasattr(o, "dtype")]
    if "broadcast" not in str(error) or len(shapes) < 2:
        return RuntimeError(*error.args)
    return mismatch(shapes) or RuntimeError(*error.args)


def mismatch(shapes: list[tuple[int, ...]]) -> RuntimeError | None:
    """PyTorch's error if shapes do not broadcast; None if they do."""
    total = shapes[0]
    for shape in shapes[1:]:
        ndim = max(len(total), len(shape))
        a = (1,) * (ndim - len(total)) + tuple(total)
        b = (1,) * (ndim - len(shape)) + tuple(shape)
        for i in reversed(range(ndim)):
            if a[i] != b[i] and 1 not in (a[i], b[i]):
                from gradcli.engine.core.errors import BroadcastError

                return BroadcastError((a[i], b[i]), i)
        total = tuple(y if x == 1 else x for x, y in zip(a, b, strict=True))
    return None
