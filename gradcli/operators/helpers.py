"""What rules of several families need, on arrays and tensors alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.engine import dtypes
from gradcli.engine.batch import anywhere, zeros_of
from gradcli.engine.tensor import Tensor, wrap
from gradcli.operators.table import is_array


def dtype_of(value: Any) -> Any:
    """The NumPy dtype of an array or tensor."""
    return value.array.dtype if isinstance(value, Tensor) else value.dtype


def refuse_second(message: str, when: Any, value: Any) -> Any:
    """A recorded gradient that may not be differentiated again where `when` holds somewhere."""
    from gradcli.engine.function import delayed_error

    if isinstance(value, Tensor) and value.requires_grad and anywhere(when.array):
        return delayed_error(message, (value,))[0]
    return value


def is_complex(value: Any) -> bool:
    """True for complex arrays, tensors and numbers."""
    if isinstance(value, (int, float)):
        return False
    return type(value) is complex or value.dtype.kind == "c"


def conj(value: Any) -> Any:
    """The complex conjugate; a real value itself."""
    return (
        value.conjugate()
        if is_complex(value) and not isinstance(value, Tensor)
        else (value.conj() if is_complex(value) else value)
    )


def zeros_like(value: Any) -> Any:
    """Zeros of the shape and dtype of an array or tensor; never part of a graph."""
    if is_array(value):
        return np.zeros_like(value)[()]
    if isinstance(value, Tensor):
        return wrap(np.zeros_like(value.array))
    return value.zeros_like()


def new_zeros(value: Any, shape: tuple[int, ...]) -> Any:
    """Zeros of a shape, of the dtype of an array or tensor; never part of a graph."""
    if isinstance(value, Tensor):
        return wrap(zeros_of(value.array, shape))
    if hasattr(value, "new_zeros"):  # a recorded array (gradcli.plan), or a batch
        return value.new_zeros(shape)
    return np.zeros(shape, value.dtype)


def masked_fill(value: Any, mask: Any, number: Any) -> Any:
    """`number` where the mask is true, else `value`."""
    if is_array(value):
        return np.where(mask, value.dtype.type(number), value)[()]
    return value.masked_fill(mask, number)


def where(condition: Any, a: Any, b: Any) -> Any:
    """`a` where the condition is true, else `b`; 0-d results are NumPy scalars."""
    found = np.where(condition, a, b)
    return found[()] if type(found) is np.ndarray and not found.ndim else found


def logical_not(mask: Any) -> Any:
    """The opposite of a mask."""
    return ~mask


def implemented(name: str, array: Any, chars: str) -> None:
    """NotImplementedError, in PyTorch's words, for an array (or dtype) that a kernel does not take.

    chars: NumPy's characters of the dtypes that it takes, as "efd" for floats and "l" for int64.
    """
    given = array if isinstance(array, np.dtype) else array.dtype
    if given.char not in chars:
        kind = dtypes.SCALAR_NAMES[dtypes.of(given).name]
        raise NotImplementedError(f"\"{name}\" not implemented for '{kind}'")


def expect_alike(first: Any, *others: Any) -> None:
    """RuntimeError, in PyTorch's words, for an operand of another dtype than the first; None is none."""
    for other in others:
        if other is not None and dtype_of(other) != dtype_of(first):
            wanted, found = (
                dtypes.SCALAR_NAMES[dtypes.of(dtype_of(x)).name] for x in (first, other)
            )
            raise RuntimeError(f"expected scalar type {wanted} but found {found}")


def expect_long(targets: Any) -> None:
    """RuntimeError, in PyTorch's words, for classes that are not of dtype int64."""
    expect_alike(np.int64(0), targets)


def refuse_grad(name: str, **arguments: Any) -> None:
    """PyTorch's refusal of arguments that a function cannot be differentiated by."""
    for argument, value in arguments.items():
        if isinstance(value, Tensor) and value.requires_grad:
            raise RuntimeError(
                f"The function '{name}' is not differentiable with respect to argument "
                f"'{argument}'. This input cannot have requires_grad True."
            )
