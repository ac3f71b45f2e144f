"""What rules say on arrays and on tensors alike, so that a rule is written once.

The plain backward pass runs rules on arrays, a recorded one on tensors. Here alone they are told apart;
a rule that does so itself does another thing on arrays, and says why.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from operator import matmul as matmul
from typing import Any

import numpy as np

from gradcli.core.basic_primitives import conj as conj
from gradcli.core.basic_primitives import expand as expand
from gradcli.core.basic_primitives import is_complex as is_complex
from gradcli.core.basic_primitives import unsqueeze_dims as unsqueeze_dims
from gradcli.core.batched_arrays import BatchedArray, anywhere, zeros_of
from gradcli.core.tensor import Tensor, wrap
from gradcli.registry.table import resolve
from gradcli.system import dtypes
from gradcli.system.array_memory import ARRAYS, Numberless, in_order, laid_out
from gradcli.system.cascaded_sums import add_reduce
from gradcli.system.dtypes import scalar_name


def is_array(value: Any) -> bool:
    """True for what NumPy computes with, on which rules run without a graph."""
    return isinstance(value, ARRAYS)


def unrecorded(value: Any) -> bool:
    """Whether a rule that is given this keeps no graph, nor will a batch or a recording follow it.

    It may then use what a node saved in place of what PyTorch records, write to memory, or compute the same
    derivative with fewer roundings.
    """
    return isinstance(value, ARRAYS)


def is_python_number(value: Any) -> bool:
    """True for Python's numbers, which take the dtype of the operand beside them; not for NumPy's."""
    return isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic)


def dtype_of(value: Any) -> Any:
    """The NumPy dtype of an array or tensor."""
    return value.array.dtype if isinstance(value, Tensor) else value.dtype


def raise_on_second(message: str, when: Any, value: Any) -> Any:
    """A recorded gradient that may not be differentiated again where `when` holds somewhere."""
    from gradcli.core.custom_function import delayed_error

    if isinstance(value, Tensor) and value.requires_grad and anywhere(when.array):
        return delayed_error(message, (value,))[0]
    return value


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
    if hasattr(value, "new_zeros"):  # a recorded array (gradcli.compiler), or a batch
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


def implemented(name: str, array: Any, chars: str) -> None:
    """NotImplementedError, in PyTorch's words, for an array (or dtype) that a kernel does not take.

    chars: NumPy's characters of the dtypes that it takes, as "efd" for floats and "l" for int64.
    """
    given = array if isinstance(array, np.dtype) else array.dtype
    if given.char not in chars:
        kind = scalar_name(given)
        raise NotImplementedError(f"\"{name}\" not implemented for '{kind}'")


def expect_alike(first: Any, *others: Any) -> None:
    """RuntimeError, in PyTorch's words, for an operand of another dtype than the first; None is none."""
    for other in others:
        if other is not None and dtype_of(other) != dtype_of(first):
            wanted, found = (scalar_name(x) for x in (first, other))
            raise RuntimeError(f"expected scalar type {wanted} but found {found}")


def expect_long(targets: Any) -> None:
    """RuntimeError, in PyTorch's words, for classes that are not of dtype int64."""
    expect_alike(np.int64(0), targets)


def raise_on_grad(name: str, **arguments: Any) -> None:
    """PyTorch's refusal of arguments that a function cannot be differentiated by."""
    for argument, value in arguments.items():
        if isinstance(value, Tensor) and value.requires_grad:
            raise RuntimeError(
                f"The function '{name}' is not differentiable with respect to argument "
                f"'{argument}'. This input cannot have requires_grad True."
            )


MINUS_BOOL = (
    "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a "
    "mask, use the `~` or `logical_not()` operator instead."
)


def minus(value: Any) -> Any:
    """`-value`; RuntimeError, in PyTorch's words, for truth values, in arrays too."""
    if is_array(value) and value.dtype.kind == "b":
        raise RuntimeError(MINUS_BOOL)
    return -value


def unsqueeze(value: Any, dim: int) -> Any:
    """`value` with a dimension of size 1 at `dim`."""
    if is_array(value):
        shape = list(value.shape)
        shape.insert(dim % (value.ndim + 1), 1)
        return value.reshape(shape)
    return value.unsqueeze(dim)


def narrow(value: Any, dim: int, start: int, length: int) -> Any:
    """`length` positions of a dimension, from `start`."""
    if is_array(value):
        return value[(slice(None),) * (dim % value.ndim) + (slice(start, start + length),)]
    return value.narrow(dim, start, length)


def flip(value: Any, dim: int) -> Any:
    """`value` with one dimension reversed."""
    if not is_array(value):
        return value.flip(dim)
    if not value.ndim:
        return value
    return value[(slice(None),) * (dim % value.ndim) + (slice(None, None, -1),)]


def cat(values: list[Any], dim: int) -> Any:
    """The values, one after the other along a dimension."""
    if is_array(values[-1]):
        return np.concatenate(values, dim)
    return resolve("cat")(values, dim)


def cast(value: Any, dtype: Any) -> Any:
    """`value` in a NumPy dtype; itself where it has it."""
    if is_array(value):
        return value if value.dtype == dtype else value.astype(dtype)
    return value if data(value).dtype == dtype else value.to(dtypes.of(dtype))


def data(value: Any) -> Any:
    """The numbers of an array or tensor, for decisions that are not differentiated."""
    return getattr(value, "array", value)


def numbers(value: Any) -> Any:
    """The numbers of an array or tensor, for a rule's own decisions and checks.

    Of what is recorded, those of a run of its own: what follows from them is no part of a program.
    """
    array = data(value)
    return array if isinstance(array, BatchedArray) else laid_out(array)


def scale_by_count(g: Any, mask: Any, dim: tuple[int, ...]) -> Any:
    """The gradient shared evenly by the elements of the mask."""
    return (g / _count_true(mask, dim)) * mask


def _count_true(mask: Any, dim: tuple[int, ...]) -> Any:
    if is_array(mask):
        return add_reduce(mask, (dim or None) if mask.ndim else None, np.int64, True)
    return mask.sum(dim, True)


def zeros_in(value: Any) -> int:
    """How many elements are zero; batches count as having one at most."""
    if isinstance(data(value), BatchedArray):
        return int(anywhere(data(value) == 0))
    found = numbers(value)
    return int(found.size - np.count_nonzero(found)) if is_array(found) else 0


def over(g: Any, divisor: Any, by: Any) -> Any:
    """`g / divisor`, and zero where `by` is, as the divisor is there.

    Forward mode runs this backward, and divides what is masked: by ones then, where zeros are known.
    """
    zero = by == 0
    if not isinstance(data(by), Numberless) and zeros_in(by):
        divisor = masked_fill(divisor, zero, 1)
    return masked_fill(g / divisor, zero, 0)


def by_zeros(value: Any, without: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """One rule where no element is zero, another where some are; of recorded numbers whichever it is then."""
    array: Any = data(value)
    recorded = isinstance(array, Numberless)
    if recorded:
        some = np.logical_or.reduce(array == 0, axis=None)
        return where(some, otherwise(), without())
    return otherwise() if zeros_in(value) else without()


def constant(array: Any, beside: Any) -> Any:
    """An array that a rule has made, as an operand beside an array or a tensor."""
    return wrap(array) if isinstance(beside, Tensor) else array


def gather(value: Any, dim: int, index: Any) -> Any:
    """The elements that `index` names along a dimension."""
    if is_array(value):
        return np.take_along_axis(value, index, dim)
    return value.gather(dim, index)


def scatter(value: Any, shape: tuple[int, ...], dim: int, index: Any) -> Any:
    """Zeros of a shape with the elements of `value` where `index` names along a dimension."""
    if is_array(value):
        if not shape:
            return value
        made = new_zeros(value, shape)
        np.put_along_axis(made, index, value, dim)
        return made
    return wrap(np.zeros(shape, data(value).dtype)).scatter(dim, index, value)


def scatter_add(value: Any, shape: tuple[int, ...], dim: int, index: Any) -> Any:
    """As `scatter`; elements of one place are summed."""
    if is_array(value):
        if not value.ndim:
            return value
        if isinstance(value, Numberless):  # as one call
            return wrap(new_zeros(value, shape)).scatter_add(dim, wrap(index), wrap(value)).array
        made = np.zeros(shape, value.dtype)
        places = list(np.indices(index.shape, sparse=True))
        places[dim] = index
        np.add.at(made, tuple(places), value)
        return made
    return wrap(np.zeros(shape, data(value).dtype)).scatter_add(dim, index, value)


def total(value: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The sum along dimensions; of all elements: None."""
    if is_array(value):
        return add_reduce(value, dim, None, keepdim)
    return value.sum() if dim is None else value.sum(dim, keepdim)


def running_sum(value: Any, dim: int) -> Any:
    """The sums from the first element to each."""
    return np.add.accumulate(value, axis=dim) if is_array(value) else value.cumsum(dim)


def mean(value: Any, dim: Any) -> Any:
    """The mean along dimensions, which stay."""
    if not is_array(value):
        return value.mean(dim, True)
    wide = np.float32 if value.dtype.itemsize == 2 else None
    found = add_reduce(value, dim, wide, True)
    found = found / (value.size // max(found.size, 1))
    return found if wide is None else found.astype(value.dtype)


def transposed(value: Any, dim0: int, dim1: int) -> Any:
    """`value` with two dimensions exchanged."""
    return value.swapaxes(dim0, dim1) if is_array(value) else value.transpose(dim0, dim1)


def contiguous(value: Any) -> Any:
    """`value` with its elements in order in memory; itself where they are."""
    if not is_array(value):
        return value.contiguous()
    return in_order(value)


def turned(value: Any) -> Any:
    """`value` with its last two dimensions exchanged; a tensor's elements in order then, as PyTorch's."""
    return value.swapaxes(-1, -2) if is_array(value) else value.mT.contiguous()


def tril(value: Any, k: int = 0) -> Any:
    """The lower triangles."""
    return np.tril(value, k) if is_array(value) else value.tril(k)


def triu(value: Any, k: int = 0) -> Any:
    """The upper triangles."""
    return np.triu(value, k) if is_array(value) else value.triu(k)


def in_single(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel that takes float16 in single precision and rounds its result once, as PyTorch's do."""

    @wraps(kernel)
    def call(self: Any, *options: Any, **named: Any) -> Any:
        if self.dtype != np.float16:
            return kernel(self, *options, **named)
        return kernel(self.astype(np.float32), *options, **named).astype(np.float16)

    return call


def above(value: Any, low: Any) -> Any:
    """The elements, those below `low` as that; where they are equal the element, as zeros have signs.

    Of equal ones NumPy has the second, of float16 the first.
    """
    return np.maximum(value, low) if value.dtype == np.float16 else np.maximum(low, value)


def below(value: Any, high: Any) -> Any:
    """The elements, those above `high` as that; where they are equal the element."""
    return np.minimum(value, high) if value.dtype == np.float16 else np.minimum(high, value)


def at_least(value: Any, low: float) -> Any:
    """The elements, those below `low` as that."""
    return np.maximum(value, low) if is_array(value) else value.clamp_min(low)


def diag_embed(value: Any) -> Any:
    """The last dimension laid on the diagonal of matrices."""
    if not is_array(value):
        return value.diag_embed()
    diagonal = np.eye(value.shape[-1], dtype=bool)
    return np.where(diagonal, value[..., None], value.dtype.type(0))
