"""Functions for VJP rules that work on arrays and on tensors, so that a rule is written once.

The plain backward pass runs rules on arrays, create_graph runs them on tensors. The functions here hide the
difference. A rule that tests for it computes something else on arrays, and says why.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from operator import matmul as matmul
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.engine.core.basic_primitives import conj as conj
from gradcli.engine.core.basic_primitives import expand as expand
from gradcli.engine.core.basic_primitives import is_complex as is_complex
from gradcli.engine.core.basic_primitives import unsqueeze_dims as unsqueeze_dims
from gradcli.engine.core.batched_arrays import BatchedArray, anywhere, zeros_of
from gradcli.engine.core.declaration import Array, DType, Ints, Number, Shape, Value
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.engine.registry.table import resolve
from gradcli.engine.system import dtypes
from gradcli.engine.system.array_memory import ARRAYS, Numberless, in_order, laid_out
from gradcli.engine.system.cascaded_sums import add_reduce
from gradcli.engine.system.dtypes import scalar_name

if TYPE_CHECKING:
    from typing_extensions import TypeIs  # in typing from Python 3.13 on


def is_array(value: Value) -> TypeIs[Array]:
    """True for NumPy arrays and scalars, on which rules run without a graph."""
    return isinstance(value, ARRAYS)


def unrecorded(value: Value) -> TypeIs[Array]:
    """Whether a rule that gets this value runs on plain arrays: no graph, batch or trace.

    It may then use saved values where PyTorch would record an operation, write in place, or compute the
    same derivative with fewer roundings.
    """
    return isinstance(value, ARRAYS)


def is_python_number(value: object) -> bool:
    """True for Python numbers, which are weak in promotion; False for NumPy's."""
    return isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic)


def dtype_of(value: Any) -> Any:
    """The NumPy dtype of an array or tensor."""
    return value.array.dtype if isinstance(value, Tensor) else value.dtype


def raise_on_second(message: str, when: Any, value: Value) -> Any:
    """The gradient `value`; differentiating it again raises `message` if `when` holds anywhere."""
    from gradcli.engine.core.custom_function import delayed_error

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


def new_zeros(value: Value, shape: Shape) -> Any:
    """Zeros of a shape, of the dtype of an array or tensor; never part of a graph."""
    if isinstance(value, Tensor):
        return wrap(zeros_of(value.array, shape))
    if hasattr(value, "new_zeros"):  # an array of a trace, or a batch
        return value.new_zeros(shape)
    return np.zeros(shape, value.dtype)


def masked_fill(value: Any, mask: Value, number: Number) -> Any:
    """`number` where the mask is true, else `value`."""
    if is_array(value):
        return np.where(mask, value.dtype.type(number), value)[()]
    return value.masked_fill(mask, number)


_MANY = 4096  # elements from which bits are faster than NumPy's choice, which guesses each of them
_WORDS = {"f": np.int32, "d": np.int64}


def _is_zero(value: Any, beside: Any) -> bool:
    """Whether it is 0 (not -0) and changes no dtype."""
    kind = getattr(beside, "dtype", None)
    plain = type(value) in (int, float) or (kind is not None and type(value) is kind.type)
    return bool(plain and value == 0 and not np.signbit(value))


def _alike(condition: Any, value: Any) -> bool:
    if type(value) is not np.ndarray or value.dtype.char not in _WORDS:
        return False
    if condition.dtype.char != "?" or condition.shape != value.shape:
        return False
    return bool(condition.flags.c_contiguous and value.flags.c_contiguous)


def _by_bits(condition: Any, value: Any, there: bool) -> Any:
    """The value where the condition is `there`, else 0: all bits of an element, or none."""
    word, ones = _WORDS[value.dtype.char], condition.view(np.int8)
    mask = np.negative(ones, dtype=word) if there else np.subtract(ones, 1, dtype=word)
    return np.bitwise_and(mask, value.view(word), out=mask).view(value.dtype)


def where(condition: Any, a: Value | Number, b: Value | Number) -> Any:
    """`a` where the condition is true, else `b`; 0-d results are NumPy scalars."""
    if type(condition) is np.ndarray and condition.size >= _MANY:
        for kept, other, above in ((a, b, True), (b, a, False)):
            if _is_zero(other, kept) and _alike(condition, kept):
                return _by_bits(condition, kept, above)
    found = np.where(condition, a, b)
    return found[()] if type(found) is np.ndarray and not found.ndim else found


def refuse_if(
    wrong: object, words: str, *values: Any, error: type[Exception] = RuntimeError
) -> None:
    """Raise an error in PyTorch's words if something is wrong; `{}` in them stand for the values."""
    if wrong:
        raise error(words.format(*values) if values else words)


def check_numbers(check: Callable[..., None], array: Any, *facts: Any) -> None:
    """Call `check(array, *facts)`, which may raise an error; of a plan's array, whenever the plan runs."""
    if hasattr(array, "guard"):
        array.guard(check, array, *facts)
    else:
        check(array, *facts)


def implemented(name: str, array: Array | DType, chars: str) -> None:
    """Raise PyTorch's NotImplementedError for an array (or dtype) that a kernel does not support.

    chars: NumPy's characters of the dtypes it supports, as "efd" for floats and "l" for int64.
    """
    given = array if isinstance(array, np.dtype) else array.dtype
    if given.char not in chars:
        raise dtypes.not_implemented(name, given)


def expect_alike(first: Any, *others: Any) -> None:
    """Raise PyTorch's RuntimeError for an operand of another dtype than the first; None is skipped."""
    for other in others:
        if other is not None and dtype_of(other) != dtype_of(first):
            wanted, found = (scalar_name(x) for x in (first, other))
            raise RuntimeError(f"expected scalar type {wanted} but found {found}")


def expect_long(targets: Array) -> None:
    """Raise PyTorch's RuntimeError unless class targets are int64."""
    expect_alike(np.int64(0), targets)


def raise_on_grad(name: str, **arguments: Any) -> None:
    """Raise PyTorch's error if an argument requires grad that has no derivative."""
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


def minus(value: Value) -> Any:
    """`-value`; RuntimeError, in PyTorch's words, for bools."""
    if is_array(value) and value.dtype.kind == "b":
        raise RuntimeError(MINUS_BOOL)
    return -value


def unsqueeze(value: Value, dim: int) -> Any:
    """`value` with a dimension of size 1 at `dim`."""
    if is_array(value):
        shape = list(value.shape)
        shape.insert(dim % (value.ndim + 1), 1)
        return value.reshape(shape)
    return value.unsqueeze(dim)


def narrow(value: Value, dim: int, start: int, length: int) -> Any:
    """`length` positions of a dimension, from `start`."""
    if is_array(value):
        return value[(slice(None),) * (dim % value.ndim) + (slice(start, start + length),)]
    return value.narrow(dim, start, length)


def flip(value: Value, dim: int) -> Any:
    """`value` with one dimension reversed."""
    if not is_array(value):
        return value.flip(dim)
    if not value.ndim:
        return value
    return value[(slice(None),) * (dim % value.ndim) + (slice(None, None, -1),)]


def cat(values: list[Any], dim: int) -> Any:
    """Concatenate values along a dimension."""
    if is_array(values[-1]):
        return np.concatenate(values, dim)
    return resolve("cat")(values, dim)


def cast(value: Value, dtype: DType) -> Any:
    """`value` cast to a NumPy dtype; itself if it has that dtype."""
    if is_array(value):
        return value if value.dtype == dtype else value.astype(dtype)
    return value if data(value).dtype == dtype else value.to(dtypes.of(dtype))


def is_traced(value: Value) -> bool:
    """Whether it is recorded in a trace, whose formula holds for other numbers as well."""
    return hasattr(data(value), "cell")


def data(value: Any) -> Any:
    """The array of an array or tensor, for decisions that are not differentiated."""
    return getattr(value, "array", value)


def numbers(value: Value) -> Any:
    """The values of an array or tensor, for checks in a rule that no trace records.

    For an array of a trace, these are the values in the run that is traced.
    """
    array = data(value)
    return array if isinstance(array, BatchedArray) else laid_out(array)


def scale_by_count(g: Value, mask: Value, dim: Ints) -> Any:
    """The gradient, divided evenly among the elements of the mask."""
    return (g / _count_true(mask, dim)) * mask


def _count_true(mask: Value, dim: Ints) -> Any:
    if is_array(mask):
        return add_reduce(mask, (dim or None) if mask.ndim else None, np.int64, True)
    return mask.sum(dim, True)


def zeros_in(value: Value) -> int:
    """The number of zero elements; at most 1 is reported for a batch."""
    if isinstance(data(value), BatchedArray):
        return int(anywhere(data(value) == 0))
    found = numbers(value)
    return int(found.size - np.count_nonzero(found)) if is_array(found) else 0


def over(g: Value, divisor: Value, by: Value) -> Any:
    """`g / divisor`, and zero where `by` is zero, because the divisor is zero there.

    Forward mode transposes this and divides first, so known zeros in the divisor are replaced by ones.
    """
    zero = by == 0
    if not isinstance(data(by), Numberless) and zeros_in(by):
        divisor = masked_fill(divisor, zero, 1)
    return masked_fill(g / divisor, zero, 0)


def by_zeros(value: Value, without: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
    """`without()` if no element is zero, else `otherwise()`; in a trace, by the values of the traced run."""
    array: Any = data(value)
    recorded = isinstance(array, Numberless)
    if recorded:
        some = np.logical_or.reduce(array == 0, axis=None)
        return where(some, otherwise(), without())
    return otherwise() if zeros_in(value) else without()


def constant(array: Array | np.generic, beside: Value) -> Any:
    """An array that a rule computed, as an operand beside an array or a tensor."""
    return wrap(array) if isinstance(beside, Tensor) else array


def _places(value: Array, dim: int, index: Any) -> Any:
    """Where in memory the elements lie that `index` names along the last dim; None if that is not all."""
    last = (
        type(value) is type(index) is np.ndarray and dim in (-1, value.ndim - 1) and value.ndim > 0
    )
    *rest, size = value.shape if last else (0,)
    if not (last and value.flags.c_contiguous and list(index.shape[:-1]) == rest and value.size):
        return None
    return index + np.arange(0, value.size, size).reshape(*rest, 1) if rest else index


def gather(value: Value, dim: int, index: Any) -> Any:
    """The elements that `index` names along a dimension."""
    if is_array(value):
        # `take_along_axis` has NumPy make an index of each axis
        places = _places(value, dim, index)
        return np.take_along_axis(value, index, dim) if places is None else value.take(places)
    return value.gather(dim, index)


def scatter(value: Value, shape: Shape, dim: int, index: Any) -> Any:
    """Zeros of a shape, with the elements of `value` at the positions `index` along a dimension."""
    if is_array(value):
        if not shape:
            return value
        made = new_zeros(value, shape)
        places = _places(made, dim, index)
        if places is None or value.shape != index.shape:
            np.put_along_axis(made, index, value, dim)
        else:
            made.put(places, value)
        return made
    return wrap(np.zeros(shape, data(value).dtype)).scatter(dim, index, value)


def scatter_add(value: Value, shape: Shape, dim: int, index: Any) -> Any:
    """As `scatter`; elements at the same position are summed."""
    if is_array(value):
        if not value.ndim:
            return value
        if isinstance(value, Numberless):  # record it as one call
            return wrap(new_zeros(value, shape)).scatter_add(dim, wrap(index), wrap(value)).array
        made = np.zeros(shape, value.dtype)
        places = list(np.indices(index.shape, sparse=True))
        places[dim] = index
        np.add.at(made, tuple(places), value)
        return made
    return wrap(np.zeros(shape, data(value).dtype)).scatter_add(dim, index, value)


def total(value: Any, dim: Ints | int | None = None, keepdim: bool = False) -> Any:
    """The sum along dimensions; None: of all elements."""
    if is_array(value):
        return add_reduce(value, dim, None, keepdim)
    return value.sum() if dim is None else value.sum(dim, keepdim)


def running_sum(value: Value, dim: int) -> Any:
    """The cumulative sum along a dimension."""
    return np.add.accumulate(value, axis=dim) if is_array(value) else value.cumsum(dim)


def mean(value: Value, dim: Ints | int) -> Any:
    """The mean along dimensions, which are kept with size 1."""
    if not is_array(value):
        return value.mean(dim, True)
    wide = np.float32 if value.dtype.itemsize == 2 else None
    found = add_reduce(value, dim, wide, True)
    found = found / (value.size // max(found.size, 1))
    return found if wide is None else found.astype(value.dtype)


def transposed(value: Value, dim0: int, dim1: int) -> Any:
    """`value` with two dimensions exchanged."""
    return value.swapaxes(dim0, dim1) if is_array(value) else value.transpose(dim0, dim1)


def contiguous(value: Value) -> Any:
    """`value`, copied if it is not contiguous."""
    if not is_array(value):
        return value.contiguous()
    return in_order(value)


def turned(value: Value) -> Any:
    """`value` with its last two dimensions exchanged; a tensor becomes contiguous, as in PyTorch."""
    return value.swapaxes(-1, -2) if is_array(value) else value.mT.contiguous()


def tril(value: Any, k: int = 0) -> Any:
    """The lower triangles."""
    return np.tril(value, k) if is_array(value) else value.tril(k)


def triu(value: Any, k: int = 0) -> Any:
    """The upper triangles."""
    return np.triu(value, k) if is_array(value) else value.triu(k)


def in_single(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel that computes float16 in float32 and rounds the result once, as PyTorch's kernels do."""

    @wraps(kernel)
    def call(self: Value, *options: Any, **named: Any) -> Any:
        if self.dtype != np.float16:
            return kernel(self, *options, **named)
        return kernel(self.astype(np.float32), *options, **named).astype(np.float16)

    return call


def shared(value: Value, n: Any) -> Any:
    """value / n, n a count: half precision, which has no numbers above 65504, divides in single."""
    if getattr(value, "dtype", None) == np.float16 and is_array(value):
        return (value.astype(np.float32) / np.float32(n)).astype(np.float16)
    return value / n


def above(value: Value, low: Any) -> Any:
    """`maximum(value, low)`; of equal operands the element of `value`, since zeros have signs.

    NumPy returns the second of equal operands, but the first for float16.
    """
    if value.dtype == np.float16:
        return np.maximum(value, low)
    return _with_rows(np.maximum, low, value)


def below(value: Value, high: Any) -> Any:
    """`minimum(value, high)`; of equal operands the element of `value`."""
    if value.dtype == np.float16:
        return np.minimum(value, high)
    return _with_rows(np.minimum, high, value)


_ROW = 1024  # elements of a row that is made of one number
_LEAST = 2048  # elements from which such rows pay off


def _with_rows(extremum: np.ufunc, number: Any, value: Any) -> Any:
    """`extremum(number, value)`: with rows of the number, which NumPy compares four times faster than it."""
    plain = type(value) is np.ndarray and value.size >= _LEAST and value.dtype.char in "fd"
    if not plain or not (type(number) in (int, float) or type(number) is value.dtype.type):
        return extremum(number, value)
    width = value.shape[-1]
    row = np.empty(max(width, _ROW) if width <= 4 * _ROW else _ROW, value.dtype)
    row.fill(number)
    if 64 <= width <= len(row):
        return extremum(row[:width], value)
    if not value.flags.c_contiguous:
        return extremum(number, value)
    found, rest = np.empty_like(value), value.size % _ROW
    given, out = value.reshape(-1), found.reshape(-1)
    whole = value.size - rest
    extremum(row, given[:whole].reshape(-1, _ROW), out=out[:whole].reshape(-1, _ROW))
    extremum(row[:rest], given[whole:], out=out[whole:])
    return found


def at_least(value: Value, low: float) -> Any:
    """`maximum(value, low)`."""
    return np.maximum(value, low) if is_array(value) else value.clamp_min(low)


def diag_embed(value: Value) -> Any:
    """Matrices with the last dimension of `value` on their diagonals."""
    if not is_array(value):
        return value.diag_embed()
    diagonal = np.eye(value.shape[-1], dtype=bool)
    return np.where(diagonal, value[..., None], value.dtype.type(0))
