"""Views: other shapes, orders and parts of the same memory.

Every kernel here returns a NumPy view of its operand, with the strides that PyTorch would give it, so
that a write through a view reaches its base. Dims are saved as they were given.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate
from math import prod
from operator import index as to_int
from typing import Any

import numpy as np

import gradcli.engine.system.budget as budget
from gradcli.engine.core import basic_primitives
from gradcli.engine.core.basic_primitives import view_of
from gradcli.engine.core.declaration import Array, Ints, Shape, Value, itself
from gradcli.engine.core.gradients import sum_to
from gradcli.engine.core.modes import users_level
from gradcli.engine.core.promotion import mismatch
from gradcli.engine.core.size import Size
from gradcli.engine.core.tensor import Tensor, sized_dim, wrap_dim
from gradcli.engine.core.views import as_strided_array
from gradcli.engine.registry.binder import Parser
from gradcli.engine.registry.dimensions import as_dims
from gradcli.engine.registry.rule_helpers import (
    cat,
    conj,
    constant,
    contiguous,
    dtype_of,
    is_complex,
    new_zeros,
    total,
    unrecorded,
)
from gradcli.engine.registry.table import (
    function,
    lift,
    operator,
    overloads,
    primitive,
    resolve,
    tensor_property,
)
from gradcli.engine.system import array_memory, dtypes
from gradcli.engine.system.array_memory import infer_shape, shares
from gradcli.engine.system.array_memory import strided_view as strided
from gradcli.engine.system.dtypes import scalar_name
from gradcli.operators.movement.strides import unique_dims

FAMILY = "shapes"  # as `ops` calls it

END = 2**63 - 1  # a slice's end where none is given


# -- another shape --------------------------------------------------------------------------------
view_size = basic_primitives.view_size


@primitive(
    "linear view", kernel=view_of, node="ReshapeAliasBackward0", sizes="size", symbolic="reshape"
)
class reshape_alias:
    self = lambda g, self_sym_sizes: g.reshape(self_sym_sizes)


@primitive("linear", node="UnsafeViewBackward0", sizes="size")
class reshape_copy:
    """Another shape of a fresh result that nobody else sees: not a view."""

    forward = lambda self, size: self.reshape(infer_shape(size, self.size))
    self = lambda g, self_sym_sizes: g.reshape(self_sym_sizes)


@primitive("leading", samples="view(randn(2,3), float32)")
class view_dtype:
    """The bytes read as another dtype: the same memory, but never part of a graph."""

    def forward(self: Array, dtype: Any) -> Array:
        dtype = dtypes.given(dtype)
        wanted, own = dtype.dtype.itemsize, self.dtype.itemsize
        if wanted == own:
            return self.view(dtype.dtype)
        if not self.ndim:
            raise RuntimeError(
                f"self.dim() cannot be 0 to view {scalar_name(self)} as {dtype} (different element sizes)"
            )
        if wanted > own and self.shape[-1] * own % wanted:
            raise RuntimeError(
                f"self.size(-1) must be divisible by {wanted // own} to view {scalar_name(self)} as "
                f"{dtype} (different element sizes), but got {self.shape[-1]}"
            )
        if self.strides[-1] != own and self.shape[-1] != 1:
            raise RuntimeError(
                f"self.stride(-1) must be 1 to view {scalar_name(self)} as {dtype} (different element "
                f"sizes), but got {self.strides[-1] // own}"
            )
        return self.view(dtype.dtype)


def dtype_view(input: Tensor, dtype: dtypes.dtype) -> Any:
    """The bytes read as another dtype."""
    out = view_dtype(input, dtype)
    if isinstance(input, Tensor):
        out.versions = input.shared_versions()
    return out


view = overloads(
    "view(Tensor input, ScalarType dtype)|method -> dtype_view",
    "view(Tensor input, int[] size)|method -> view_size",
    targets=[dtype_view, view_size],
    primitives=[view_dtype],
    samples="(randn(2,3), 3, 2); (randn(2,3), -1)",
    doc="The same memory in another shape (one size may be -1), or read as another dtype.",
)


@function(
    "reshape(Tensor input, int[] shape)|numpy",
    samples="(randn(2,3), (3, 2)); (randn(2,3), (-1,)); (randn(()), (1,1))",
)
def reshape(input: Tensor, shape: Shape) -> Any:
    """Another shape: a view where the memory allows it, else a copy."""
    if not isinstance(input, Tensor) or input.is_contiguous():
        return view_size(input, shape)
    array = array_memory.laid_out(input.array)
    shape = infer_shape(shape, array.size)
    if shares(array.reshape(shape), array):
        return reshape_alias(input, shape)
    return reshape_copy(input.contiguous(), shape)


@function("view_as(Tensor input, Tensor other)", samples="(randn(2,3), randn(3,2))")
def view_as(input: Tensor, other: Tensor) -> Any:
    """The same memory in the shape of `other`."""
    return view_size(input, tuple(other.shape))


@function(
    "reshape_as(Tensor input, Tensor other)",
    primitives=[view_size],
    samples="(randn(2,3), randn(3,2))",
)
def reshape_as(input: Tensor, other: Tensor) -> Any:
    """`input` in the shape of `other`."""
    return reshape(input, tuple(other.shape))


@function(
    "flatten(Tensor input, int start_dim=0, int end_dim=-1)",
    primitives=[view_size],
    samples="(randn(2,3,2)); (randn(2,3,2), 1); (randn(()))",
)
def flatten(input: Tensor, start_dim: int, end_dim: int) -> Any:
    """Dims `start_dim` to `end_dim` become one."""
    ndim = input.ndim
    start, end = wrap_dim(start_dim, ndim), wrap_dim(end_dim, ndim)
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not ndim:
        return reshape(input, (1,))
    if start == end:
        return input
    shape = tuple(input.shape)
    return reshape(input, (*shape[:start], prod(shape[start : end + 1]), *shape[end + 1 :]))


@function("ravel(Tensor input)|numpy", samples="(randn(2,3))")
def ravel(input: Tensor) -> Any:
    """One dimension."""
    return view_size(input.contiguous() if isinstance(input, Tensor) else input, (-1,))


@function(
    "unflatten(Tensor input, int dim, int[] sizes)|function",
    "unflatten(Tensor input, int dim, int[] sizes)|method|python -> unflatten(dim, sizes)",
    samples="(randn(2,6), 1, (2,3))",
)
def unflatten(input: Tensor, dim: int, sizes: Shape) -> Any:
    """One dim becomes several."""
    at = wrap_dim(dim, input.ndim)
    given = sizes
    shape = tuple(input.shape)
    if not given:
        raise RuntimeError("unflatten: sizes must be non-empty")
    if not shape:
        raise RuntimeError(
            "unflatten got an unexpected error:\nDimension specified as 0 but tensor has no dimensions"
        )
    open_, rest = list(given).count(-1), prod(k for k in given if k != -1)
    if open_ > 1:
        raise RuntimeError("unflatten got an unexpected error:\nonly one dimension can be inferred")
    if open_ and not rest and not shape[at]:
        raise RuntimeError(
            "unflatten got an unexpected error:\ncannot reshape tensor of 0 elements into shape "
            f"{list(given)} because the unspecified dimension size -1 can be any value and is ambiguous"
        )
    if (rest != shape[at]) if not open_ else (not rest or shape[at] % rest):
        raise RuntimeError(
            f"unflatten: Provided sizes {list(given)} don't multiply up to the size of dim {dim} "
            f"({shape[at]}) in the input tensor"
        )
    return view_size(input, (*shape[:at], *given, *shape[at + 1 :]))


# -- dims of size 1 -------------------------------------------------------------------------------
@operator(
    "linear view",
    node="UnsqueezeBackward0",
    numpy=np.expand_dims,
    samples="(randn(2,3), 0); (randn(2,3), -1); (randn(()), 0)",
    axes="+dim",
    symbolic="unsqueeze",
    signature="unsqueeze(Tensor input, int dim)",
)
class unsqueeze:
    """A dimension of size 1 more, at `dim`."""

    def forward(self: Array, dim: int) -> Array:
        at = wrap_dim(dim, self.ndim + 1)
        shape = self.shape
        if at == len(shape) and type(self) is np.ndarray and not self.flags.c_contiguous:
            return strided(self, (*shape, 1), (*self.strides, self.dtype.itemsize))
        return self.reshape((*shape[:at], 1, *shape[at:]))

    self = lambda g, dim: squeeze_dim(g, dim)


def _squeezed(array: Array, gone: Any) -> Any:
    shape = array.shape
    keep = [i for i, n in enumerate(shape) if n != 1 or i not in gone]
    if len(keep) == len(shape):
        return array[...]
    if array.flags.c_contiguous:
        return array.reshape([shape[i] for i in keep])
    return strided(array, [shape[i] for i in keep], [array.strides[i] for i in keep])


def _unsqueeze_to(g: Value, sizes: Shape, dims: Ints | None = None) -> Any:
    """The gradient of a squeeze: the dims of size 1 back where they were."""
    ndim = len(sizes)
    wanted = range(ndim) if dims is None else sorted(d % max(ndim, 1) for d in dims)
    for d in wanted:
        if ndim and sizes[d] == 1:
            g = unsqueeze(g, d)
    return g


@primitive("linear view", node="SqueezeBackward0", batching="squeezed", symbolic="reshape")
class squeeze_all:
    forward = lambda self: _squeezed(self, range(self.ndim))
    self = lambda g, self_sym_sizes: _unsqueeze_to(g, self_sym_sizes)


@primitive("linear view", node="SqueezeBackward1", symbolic="reshape")
class squeeze_dim:
    def forward(self: Array, dim: int) -> Array:
        return _squeezed(self, (wrap_dim(dim, self.ndim),))

    self = lambda g, self_sym_sizes, dim: _unsqueeze_to(g, self_sym_sizes, (dim,))


@primitive("linear view", node="SqueezeBackward2", symbolic="reshape")
class squeeze_dims:
    forward = lambda self, dim: _squeezed(self, unique_dims(dim, self.ndim))
    self = lambda g, self_sym_sizes, dim: _unsqueeze_to(g, self_sym_sizes, dim)


@function(
    "squeeze(Tensor input)|numpy",
    "squeeze(Tensor input, int dim)",
    "squeeze(Tensor input, int[] dim)",
    samples="(randn(1,3,1)); (randn(1,3,1), 0); (randn(1,3,1), (0,2))",
)
def squeeze(input: Tensor, dim: Ints | int | None = None) -> Any:
    """Without the dims of size 1: all of them, or those of `dim` that are."""
    if dim is None:
        return squeeze_all(input)
    if isinstance(dim, (tuple, list)):
        return squeeze_dims(input, dim)
    return squeeze_dim(input, dim)


# -- another order of the dims --------------------------------------------------------------------
@operator(
    "linear view",
    node="TransposeBackward0",
    aliases="swapdims",
    numpy=np.swapaxes,
    samples="(randn(2,3), 0, 1); (randn(2,3,4), -1, 0)",
    axes="dim0 dim1",
    symbolic="transpose",
    signature="transpose(Tensor input, int dim0, int dim1)",
)
class transpose:
    """Two dims exchanged."""

    def forward(self: Array, dim0: int, dim1: int) -> Array:
        a, b = wrap_dim(dim0, self.ndim), wrap_dim(dim1, self.ndim)
        return self.swapaxes(a, b) if self.ndim else self[...]

    self = itself


@function("swapaxes(Tensor input, int axis0, int axis1)", samples="(randn(2,3), 0, 1)")
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Any:
    """Two dims exchanged: `transpose` under NumPy's name."""
    return transpose(input, axis0, axis1)


def _t(self: Array) -> Array:
    if self.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {self.ndim}D")
    return self.T[...]


@operator(
    "linear view",
    kernel=_t,
    node="TBackward0",
    samples="(randn(2,3)); (randn(3)); (randn(()))",
    batching="transposed",
    symbolic="transpose",
)
class t:
    """The transpose of a matrix; vectors and numbers as they are."""

    self = itself


@operator(
    "linear view",
    node="PermuteBackward0",
    batching="permuted",
    symbolic="transpose",
    numpy=np.transpose,
    samples="(randn(2,3,4), (2,0,1)); (randn(2,3,4), (-1,0,1))",
    signature="permute(Tensor input, int[] dims)",
)
class permute:
    """The dims in another order."""

    def forward(self: Array, dims: Ints) -> Array:
        if len(dims) != self.ndim:
            raise RuntimeError(
                "permute(sparse_coo): number of dimensions in the tensor input does not match the length "
                f"of the desired ordering of dimensions i.e. input.dim() = {self.ndim} is not equal to "
                f"len(dims) = {len(dims)}"
            )
        order = [wrap_dim(d, self.ndim) for d in dims]
        if len(set(order)) != len(order):
            raise RuntimeError("permute(): duplicate dims are not allowed.")
        return self.transpose(order) if order else self[...]

    def self(g: Value, dims: Ints) -> Any:
        ndim = len(dims)
        back = [0] * ndim
        for i, d in enumerate(dims):
            back[d % ndim] = i
        return permute(g, tuple(back))


@function(
    "movedim(Tensor input, int source, int destination)",
    "movedim(Tensor input, int[] source, int[] destination)",
    aliases="moveaxis",
    numpy=np.moveaxis,
    primitives=[permute],
    samples="(randn(2,3,4), 0, -1); (randn(2,3,4), (0,1), (1,0))",
)
def movedim(input: Tensor, source: Ints | int, destination: Ints | int) -> Any:
    """Dims moved to other places, the others in their order."""
    ndim = input.ndim
    sources, places = as_dims(source), as_dims(destination)
    if len(sources) != len(places):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(sources)} dims) should "
            f"contain the same number of dims as destination ({list(places)} dims)"
        )
    start, end = [wrap_dim(d, ndim) for d in sources], [wrap_dim(d, ndim) for d in places]
    for what, found, given in (("source", start, sources), ("destination", end, places)):
        if len(set(found)) != len(found):
            raise RuntimeError(f"movedim: repeated dim in `{what}` ({list(given)})")
    if not ndim:
        return alias(input)
    order = [-1] * ndim
    for s, d in zip(start, end, strict=True):
        order[d] = s
    rest = iter(d for d in range(ndim) if d not in start)
    return permute(input, tuple(next(rest) if d < 0 else d for d in order))


def numpy_t(input: Tensor) -> Any:
    """`x.T`: all dims reversed."""
    if input.ndim != 2:
        warnings.warn(
            _T_ON_0D if not input.ndim else _T_ON_ND, UserWarning, stacklevel=users_level()
        )
    return permute(input, tuple(reversed(range(input.ndim))))


_T_ON_0D = "Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases."
_T_ON_ND = (
    "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and "
    "it will throw an error in a future release. Consider `x.mT` to transpose batches of matrices or "
    "`x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor."
)


def matrix_t(input: Tensor) -> Any:
    """`x.mT`: the last two dims exchanged."""
    if input.ndim < 2:
        if not input.ndim:
            warnings.warn(_MT_ON_0D.format("mT"), UserWarning, stacklevel=users_level())
            return input
        raise RuntimeError(
            f"tensor.mT is only supported on matrices or batches of matrices. Got {input.ndim}-D tensor."
        )
    return transpose(input, -2, -1)


_MT_ON_0D = "Tensor.{} is deprecated on 0-D tensors. Consider using x.conj()."


@function("adjoint(Tensor input)", samples="(randn(2,3))")
def adjoint(input: Tensor) -> Any:
    """The conjugate transpose of the last two dims."""
    if input.ndim < 2:
        if not input.ndim:
            return conj(input)
        raise RuntimeError(
            "tensor.adjoint() is only supported on matrices or batches of matrices. Got "
            f"{input.ndim}-D tensor."
        )
    return conj(transpose(input, -2, -1))


def matrix_h(input: Tensor) -> Any:
    """`x.H`: the conjugate transpose of a matrix."""
    if input.ndim not in (0, 2):
        more = " For batches of matrices, consider using tensor.mH" if input.ndim > 2 else ""
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {input.ndim}-D tensor.{more}"
        )
    return adjoint(input)


# -- larger by repetition -------------------------------------------------------------------------
expand_size = basic_primitives.expand_size


@function(
    "expand(Tensor input, int[] size, *, bool implicit=False)|method",
    samples="(randn(3), (2,3)); (randn(2,1), (-1,3)); (randn(()), (2,))",
)
def expand(input: Tensor, size: Shape, implicit: bool = False) -> Any:
    """Dims of size 1 repeated, and new ones in front, without a copy; -1 keeps a size."""
    return expand_size(input, size)


@function("expand_as(Tensor input, Tensor other)", samples="(randn(3), randn(2,3))")
def expand_as(input: Tensor, other: Tensor) -> Any:
    """`input` expanded to the shape of `other`."""
    return expand_size(input, tuple(other.shape))


broadcast_to = overloads(
    "broadcast_to(Tensor input, int[] size) -> expand_size",
    targets=[expand_size],
    numpy=np.broadcast_to,
    samples="(randn(3), (2,3))",
    doc="`input` expanded to a shape.",
)


@function(
    "sum_to_size(Tensor input, int[] size)|method",
    primitives=[expand_size],
    samples="(randn(2,3), (1,3))",
)
def sum_to_size(input: Tensor, size: Any) -> Any:
    """Summed over the dims that would have to be expanded from `size`."""
    given = size
    shape = tuple(input.shape)
    tail = shape[len(shape) - len(given) :]
    if len(given) > len(shape) or any(a not in (1, b) for a, b in zip(given, tail, strict=True)):
        raise RuntimeError(f"size {{{list(given)}}} is not expandable to size {{{list(shape)}}}.")
    return sum_to(input, given)


def broadcast_shape(shapes: Any) -> tuple[int, ...]:
    """The shape that shapes broadcast to; RuntimeError in PyTorch's words."""
    shapes = [tuple(s) for s in shapes]
    if shapes and (error := mismatch(shapes)) is not None:
        raise error
    return np.broadcast_shapes(*shapes)


@function("broadcast_shapes(Any shapes)|function", many=tuple, samples="((2,1), (3,))")
def broadcast_shapes(shapes: Any) -> Any:
    """The shape that tensors of these shapes broadcast to."""
    total: tuple[int, ...] = ()
    for at, given in enumerate(shapes):
        if isinstance(given, float):
            raise RuntimeError(
                f"Input shapes should be of type ints, a tuple of ints, or a list of ints, got {given}"
            )
        shape = (given,) if isinstance(given, int) else tuple(given or ())
        if any(n < 0 for n in shape):
            raise ValueError("Attempting to broadcast a dimension with negative length!")
        width = max(len(total), len(shape))
        known = list((1,) * (width - len(total)) + total)
        for i in range(-1, -len(shape) - 1, -1):
            if known[i] == 1:
                known[i] = shape[i]
            elif shape[i] not in (1, known[i]):
                shown = shape if isinstance(given, int) else given
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {shape[i]} at {i}! Mismatching argument "
                    f"at index {at} had {shown}; but expected shape should be broadcastable to {known}"
                )
        total = tuple(known)
    return Size(total)


@function(
    "broadcast_tensors(Tensor[] tensors)|function",
    many=tuple,
    primitives=[expand_size],
    samples="(randn(3), randn(2,1))",
)
def broadcast_tensors(tensors: Sequence[Tensor]) -> Any:
    """The tensors, each expanded to their common shape."""
    shape = broadcast_shape([t.shape for t in tensors])
    return tuple(t if tuple(t.shape) == shape else expand_size(t, shape) for t in tensors)


# -- parts ----------------------------------------------------------------------------------------
def _at(dim: int, key: Any) -> tuple[Any, ...]:
    """The NumPy index of `key` at a dim; the ellipsis keeps 0-d results arrays."""
    return (*((slice(None),) * dim), key, ...)


def _select(self: Array, dim: int, index: int) -> Array:
    if not self.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    at = wrap_dim(dim, self.ndim)
    n = self.shape[at]
    if not -n <= index < n:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(self.shape)} at dimension {at}"
        )
    return self[index, ...] if not at else self[_at(at, index)]


@operator(
    "linear view",
    kernel=_select,
    node="SelectBackward0",
    samples="(randn(2,3), 0, 1); (randn(2,3), -1, -2); (randn(3), 0, 0)",
    symbolic="select",
    signature="select(Tensor input, int dim, int index)",
)
class select:
    """One position of a dim, without that dim."""

    self = lambda g, self_sym_sizes, dim, index: select_backward(g, self_sym_sizes, dim, index)


@primitive("linear", node="SelectBackwardBackward0", sizes="input_sizes", symbolic="select_scatter")
class select_backward:
    """`select_scatter(zeros(input_sizes), grad_output, dim, index)`."""

    def forward(grad_output: Array, input_sizes: Shape, dim: int, index: int) -> Array:
        made = new_zeros(grad_output, input_sizes)
        made[_at(dim % len(input_sizes), index)] = grad_output
        return made

    grad_output = select


def bounds(size: int, start: int, end: int | None) -> tuple[int, int]:
    """A slice's bounds, as a slice of PyTorch's clamps them."""
    start, end = 0 if start is None else start, END if end is None else end
    start = min(max(start + size if start < 0 else start, 0), size)
    end = min(max(end + size if end < 0 else end, start), size)
    return start, end


@primitive("linear view", node="SliceBackward0", samples="randn(4)[1:3]", symbolic="slice")
class slice_p:
    def forward(
        self: Array, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
    ) -> Array:
        if not self.ndim:
            raise IndexError("slice() cannot be applied to a 0-dim tensor.")
        if step <= 0:
            raise RuntimeError("slice step must be positive")
        at = wrap_dim(dim, self.ndim)
        start, end = bounds(self.shape[at], start, end)
        return self[_at(at, slice(start, end, step))]

    self = lambda g, self_sym_sizes, dim, start, end, step: slice_backward(
        g, self_sym_sizes, dim, 0 if start is None else start, END if end is None else end, step
    )


def part(value: Tensor, dim: int, start: int, end: int | None) -> Any:
    """The positions of a dim from `start` to `end`."""
    return slice_p(value, dim, start, end, 1)


@primitive("linear", node="SliceBackwardBackward0", sizes="input_sizes", symbolic="slice_scatter")
class slice_backward:
    """`slice_scatter(zeros(input_sizes), grad_output, dim, start, end, step)`."""

    def forward(
        grad_output: Array, input_sizes: Shape, dim: int, start: int, end: int, step: int
    ) -> Array:
        made = new_zeros(grad_output, input_sizes)
        at = dim % len(input_sizes)
        start, end = bounds(input_sizes[at], start, end)
        made[_at(at, slice(start, end, step))] = grad_output
        return made

    grad_output = slice_p


@function(
    "narrow(Tensor input, int dim, Tensor start, int length)",
    "narrow(Tensor input, int dim, int start, int length)",
    samples="(randn(2,4), 1, 1, 2)",
)
def narrow(input: Value, dim: int, start: int, length: int) -> Any:
    """`length` positions of a dim, from `start`."""
    if not input.ndim:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    size = input.shape[wrap_dim(dim, input.ndim)]
    start = to_int(start)
    if not -size <= start <= size:
        raise IndexError(
            f"start out of range (expected to be in range of [{-size}, {size}], but got {start})"
        )
    start = start + size if start < 0 else start
    if start + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return slice_p(input, dim, start, start + length, 1)


@operator(
    "linear view numpy",
    node="DiagonalBackward0",
    samples="(randn(3,3)); (randn(2,3), 1); (randn(2,3,3), 0, -2, -1)",
    axes="dim1 dim2",
    index="ii",
    symbolic="diagonal",
    signature="diagonal(Tensor input, int offset=0, int dim1=0, int dim2=1)",
)
class diagonal:
    """A diagonal of two dims, as the last dim."""

    def forward(self: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
        a, b = wrap_dim(dim1, self.ndim), wrap_dim(dim2, self.ndim)
        if a == b:
            raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
        rows, columns = self.shape[a], self.shape[b]
        count = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
        rest = [d for d in range(self.ndim) if d not in (a, b)]
        start = self
        if count:
            start = (
                self[_at(b, slice(offset, None))]
                if offset > 0
                else self[_at(a, slice(-offset, None))]
            )
        return strided(
            start,
            [*(self.shape[d] for d in rest), count],
            [*(self.strides[d] for d in rest), self.strides[a] + self.strides[b]],
        )

    self = lambda g, self_sym_sizes, offset, dim1, dim2: diagonal_backward(
        g, self_sym_sizes, offset, dim1, dim2
    )


@primitive(
    "linear",
    node="DiagonalBackwardBackward0",
    sizes="input_sizes",
    axes="dim1 dim2",
    symbolic="diagonal_scatter",
)
class diagonal_backward:
    """`diagonal_scatter(zeros(input_sizes), grad_output, offset, dim1, dim2)`."""

    def forward(grad_output: Array, input_sizes: Shape, offset: int, dim1: int, dim2: int) -> Array:
        made = new_zeros(grad_output, input_sizes)
        diagonal.kernel(made, offset, dim1, dim2)[...] = grad_output
        return made

    grad_output = diagonal


@function(
    "linalg.diagonal(Tensor A, *, int offset=0, int dim1=-2, int dim2=-1)", samples="(randn(3,3))"
)
def linalg_diagonal(A: Tensor, offset: int, dim1: int, dim2: int) -> Any:
    """A diagonal of the last two dims."""
    return diagonal(A, offset, dim1, dim2)


@operator(
    "linear view",
    node="UnfoldBackward0",
    samples="(randn(2,5), 1, 2, 1); (randn(6), 0, 3, 2)",
    axes="dimension",
    signature="unfold(Tensor input, int dimension, int size, int step)",
)
class unfold:
    """Windows of `size` positions, `step` apart, as a last dim."""

    def forward(self: Array, dimension: int, size: int, step: int) -> Array:
        at = wrap_dim(dimension, self.ndim)
        n, stride = (self.shape[at], self.strides[at]) if self.ndim else (1, self.dtype.itemsize)
        if size < 0:
            raise RuntimeError(f"size is {size} but must be >= 0")
        if size > n:
            raise RuntimeError(
                f"maximum size for tensor at dimension {at} is {n} but size is {size}"
            )
        if step <= 0:
            raise RuntimeError(f"step is {step} but must be > 0")
        shape, strides = [*self.shape, size], [*self.strides, stride]
        if self.ndim:
            shape[at], strides[at] = (n - size) // step + 1, stride * step
        budget.elements(shape)
        return strided(self, shape, strides)

    self = lambda g, self_sym_sizes, dimension, size, step: unfold_backward(
        g, self_sym_sizes, dimension, size, step
    )


@primitive(
    "linear", node="UnfoldBackwardBackward0", sizes="input_sizes", symbolic="slope of windows"
)
class unfold_backward:
    def forward(grad_in: Array, input_sizes: Shape, dim: int, size: int, step: int) -> Array:
        made = np.zeros(input_sizes, grad_in.dtype)
        windows = unfold.kernel(made, dim, size, step)
        if step >= size or windows.ndim == 1:
            windows[...] = grad_in
            return made
        for k in range(size):  # the k-th positions of all windows never overlap
            windows[..., k] += grad_in[..., k]
        return made

    grad_in = lambda g, dim, size, step: unfold(g, dim, size, step)


# -- several parts --------------------------------------------------------------------------------
def _split(self: Array, split_size: int, dim: int = 0) -> Any:
    at = wrap_dim(dim, self.ndim)
    if not self.ndim:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    n = self.shape[at]
    if split_size < 0:
        raise RuntimeError(
            f"split expects split_size be non-negative, but got split_size={split_size}"
        )
    if not split_size:
        if n:
            raise RuntimeError(
                f"split_size can only be 0 if dimension size is 0, but got dimension size of {n}"
            )
        return [self[...]]
    starts = range(0, max(n, 1), split_size)
    budget.items(len(starts), "a tuple of tensors", budget.MAX_TENSORS)
    return [self[_at(at, slice(s, s + split_size))] for s in starts]


def _split_sizes(split_size: int, n: int) -> list[int]:
    if not split_size:
        return [0]
    return [min(split_size, n - s) for s in range(0, max(n, 1), split_size)]


def _joined(
    grads: Sequence[Value | None], self_sym_sizes: Shape, split_sizes: Any, dim: int
) -> Any:
    """The gradients of parts, zeros for the missing ones, along a dim."""
    at = dim % len(self_sym_sizes)
    like = next(g for g in grads if g is not None)
    shape = list(self_sym_sizes)
    parts = []
    for g, shape[at] in zip(grads, split_sizes, strict=True):
        parts.append(new_zeros(like, tuple(shape)) if g is None else g)
    return cat(parts, at)


def _split_back(g: Sequence[Value | None], self_sym_sizes: Shape, split_size: int, dim: int) -> Any:
    return _joined(g, self_sym_sizes, _split_sizes(split_size, self_sym_sizes[dim]), dim)


@primitive("linear view list", kernel=_split, node="SplitBackward0", symbolic="split")
class split_size:
    self = _split_back


def _copies(parts: Sequence[Array]) -> Any:
    return [p.copy() for p in parts]


@operator(
    "linear list",
    node="UnsafeSplitBackward0",
    samples="(randn(4,2), 2)[0]",
    symbolic="split",
    signature="unsafe_split(Tensor input, int split_size, int dim=0)",
)
class unsafe_split:
    """As `split`, but the parts are no views."""

    def forward(self: Array, split_size: int, dim: int = 0) -> Any:
        return _copies(_split(self, split_size, dim))

    self = _split_back


@primitive("linear view list", node="SplitWithSizesBackward0", symbolic="split")
class split_by_sizes:
    def forward(self: Array, split_sizes: Shape, dim: int = 0) -> Any:
        at = wrap_dim(dim, self.ndim)
        if not self.ndim:
            raise RuntimeError("split expects at least a 1-dimensional tensor")
        n = self.shape[at]
        if any(s < 0 for s in split_sizes):
            raise RuntimeError(
                "split_with_sizes expects split_sizes have only non-negative entries, but got "
                f"split_sizes={list(split_sizes)}"
            )
        if sum(split_sizes) != n:
            raise RuntimeError(
                f"split_with_sizes expects split_sizes to sum exactly to {n} (input tensor's size at "
                f"dimension {dim}), but got split_sizes={list(split_sizes)}"
            )
        parts, start = [], 0
        for length in split_sizes:
            parts.append(self[_at(at, slice(start, start + length))])
            start += length
        return parts

    self = _joined


@operator(
    "linear list",
    node="UnsafeSplitWithSizesBackward0",
    samples="(randn(4,2), (1,3))[0]",
    signature="unsafe_split_with_sizes(Tensor input, int[] split_sizes, int dim=0)",
)
class unsafe_split_with_sizes:
    """As `split_with_sizes`, but the parts are no views."""

    def forward(self: Array, split_sizes: Shape, dim: int = 0) -> Any:
        return _copies(split_by_sizes.kernel(self, split_sizes, dim))

    self = _joined


@function(
    "split_with_sizes(Tensor input, int[] split_sizes, int dim=0)", samples="(randn(3,2), (1,2))"
)
def split_with_sizes(input: Tensor, split_sizes: Shape, dim: int) -> Any:
    """Parts of the given sizes along a dim."""
    return split_by_sizes(input, split_sizes, dim)


@function(
    "split(Tensor tensor, Any split_size_or_sections, Any dim=0)|function",
    "split(Any input, Any split_size, Any dim=0)|method",
    python=True,
    primitives=[split_size, split_by_sizes],
    samples="(randn(5,2), 2); (randn(2,3), (1,2), 1)",
)
def split(tensor: Tensor, split_size: Any, dim: int) -> Any:
    """Parts of a size (the last may be smaller), or of the given sizes, along a dim."""
    return (split_in if isinstance(split_size, int) else split_with_sizes)(tensor, split_size, dim)


_IN_PARTS = ("int split_size, int dim=0)", "int[] split_size, int dim=0)")
split_in = Parser(tuple(f"split(Tensor input, {t}" for t in _IN_PARTS), split_size).function()


@function(
    "chunk(Tensor input, int chunks, int dim=0)", samples="(randn(5,2), 3); (randn(2,3), 2, dim=1)"
)
def chunk(input: Tensor, chunks: int, dim: int) -> Any:
    """At most `chunks` parts of equal size along a dim."""
    if not input.ndim:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    n = input.shape[wrap_dim(dim, input.ndim)]
    length = -(-n // chunks)
    if not length:
        budget.items(chunks, "a tuple of tensors", budget.MAX_TENSORS)
        return split_by_sizes(input, (0,) * chunks, dim)
    return split_size(input, length, dim)


@function(
    "unsafe_chunk(Tensor input, int chunks, int dim=0)",
    primitives=[unsafe_split],
    samples="(randn(4,2), 2)[0]",
)
def unsafe_chunk(input: Tensor, chunks: int, dim: int) -> Any:
    """As `chunk`, but the parts are no views."""
    n = input.shape[wrap_dim(dim, input.ndim)]
    length = -(-n // chunks)
    if not length:
        return unsafe_split_with_sizes(input, (0,) * chunks, dim)
    return unsafe_split(input, length, dim)


def _tensor_split(input: Tensor, indices_or_sections: Ints | int, dim: int) -> Any:
    if not input.ndim:
        raise RuntimeError(
            "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims"
        )
    at = wrap_dim(dim, input.ndim)
    n = input.shape[at]
    if isinstance(indices_or_sections, Tensor):
        if indices_or_sections.ndim > 1:
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or "
                f"one-dimensional tensor, but got a tensor with {indices_or_sections.ndim} dims"
            )
        if indices_or_sections.array.dtype != np.int64:
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
                f"{scalar_name(indices_or_sections)}"
            )
        indices_or_sections = indices_or_sections.tolist()
    if isinstance(indices_or_sections, (tuple, list)):
        ends = [*indices_or_sections, n]
        starts = [0, *ends[:-1]]
    else:
        sections = to_int(indices_or_sections)
        if sections <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
        small, larger = divmod(n, sections)
        budget.items(sections, "a tuple of tensors", budget.MAX_TENSORS)
        ends = list(accumulate(small + (i < larger) for i in range(sections)))
        starts = [0, *ends[:-1]]
    return tuple(slice_p(input, at, s, e, 1) for s, e in zip(starts, ends, strict=True))


tensor_split = overloads(
    "tensor_split(Tensor input, int[] indices, int dim=0) -> _tensor_split",
    "tensor_split(Tensor input, Tensor tensor_indices_or_sections, int dim=0) -> _tensor_split",
    "tensor_split(Tensor input, int sections, int dim=0) -> _tensor_split",
    targets=[_tensor_split],
    doc="A number of parts as equal as can be, or parts that begin at the given indices.",
    primitives=[slice_p],
    samples="(randn(5), 2); (randn(5,2), (1,3))",
)


def _split_along(name: str, input: Tensor, given: Ints | int, at: int, least: int) -> Any:
    if input.ndim < least:
        raise RuntimeError(
            f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with "
            f"{input.ndim} dimensions!"
        )
    if not isinstance(given, tuple) and given <= 0:
        raise RuntimeError(f"number of sections must be larger than 0, got {given}")
    if not isinstance(given, tuple) and input.shape[at] % given:
        raise RuntimeError(
            f"torch.{name} attempted to split along dimension {at}, but the size of the "
            f"dimension {input.shape[at]} is not divisible by the split_size {given}!"
        )
    return _tensor_split(input, given, at)


def _splitting(name: str, at: int, least: int, doc: str, *samples: str) -> Any:
    def parts(input: Tensor, given: Ints | int) -> Any:
        dim = 0 if least == 1 and input.ndim == 1 else at
        return _split_along(name, input, given, dim, least)

    return overloads(
        f"{name}(Tensor input, int sections) -> parts",
        f"{name}(Tensor input, int[] indices) -> parts",
        targets=[parts],
        doc=doc,
        primitives=[slice_p],
        samples=samples,
    )


hsplit = _splitting(
    "hsplit",
    *(1, 1),
    "Parts along the second dim (of a vector: the first).",
    *("hsplit(randn(2,4), 2)", "hsplit(randn(4), (1,2))"),
)
vsplit = _splitting("vsplit", 0, 2, "Parts along the first dim.", "vsplit(randn(4,2), 2)")
dsplit = _splitting("dsplit", 2, 3, "Parts along the third dim.", "dsplit(randn(2,2,4), 2)")


@operator(
    "linear view list",
    node="UnbindBackward0",
    samples="(randn(2,3))[1]; (randn(2,3), 1)[0]",
    symbolic="unbind",
    signature="unbind(Tensor input, int dim=0)",
)
class unbind:
    """The positions of a dim, each without it."""

    def forward(self: Array, dim: int = 0) -> Any:
        at = sized_dim(wrap_dim(dim, self.ndim), self.ndim)
        budget.items(self.shape[at], "a tuple of tensors", budget.MAX_TENSORS)
        return [self[_at(at, i)] for i in range(self.shape[at])]

    def self(grads: Sequence[Value | None], dim: int) -> Any:
        like = next(g for g in grads if g is not None)
        return resolve("stack")(
            [new_zeros(like, tuple(like.shape)) if g is None else g for g in grads], dim
        )


# -- memory as it is ------------------------------------------------------------------------------
def _alias(self: Array) -> Array:
    return self[...]


@primitive(
    "linear view pointwise",
    kernel=_alias,
    node="AliasBackward0",
    samples="randn(3)[...]",
    symbolic="self",
)
class alias:
    self = lambda g: g


def memory_add(memory: Array, where: Array, values: Array) -> Any:
    """`values` added at positions of a vector."""
    return resolve("index_add")(memory, 0, where, values)


def _extent(shape: Shape, strides: Ints) -> int:
    return 1 + sum(int(n - 1) * int(s) for n, s in zip(shape, strides, strict=True))


def _overlapping(shape: Shape, strides: Ints) -> bool:
    """True where elements of a strided view may share a place in memory."""
    reach = 0
    for s, n in sorted((s, n) for n, s in zip(shape, strides, strict=True) if n != 1):
        if s <= reach:
            return True
        reach += s * (n - 1)
    return False


def positions(shape: Shape, strides: Ints) -> Any:
    """Where each element of a strided view lies, counted in elements from its first."""
    total = np.zeros(shape, np.int64)
    for axis, (n, stride) in enumerate(zip(shape, strides, strict=True)):
        total += (np.arange(n) * stride).reshape((-1,) + (1,) * (len(shape) - axis - 1))
    return total


@operator(
    "linear view",
    node="AsStridedBackward0",
    batching="strided",
    symbolic="as_strided:",
    samples="(randn(2,3), (2,2), (1,2)); (randn(4), (2,2), (1,1), 1)",
    signature="as_strided(Tensor input, int[] size, int[] stride, int? storage_offset=None)",
)
class as_strided:
    """The memory of `input` read with the given size and strides, counted in elements."""

    def forward(self: Array, size: Shape, stride: Ints, storage_offset: int | None = None) -> Array:
        return as_strided_array(self, size, stride, storage_offset)

    def self(
        g: Value, self_geometry: Any, size: Shape, stride: Ints, storage_offset: int | None
    ) -> Any:
        """The gradient of a strided view: put in memory as it lies, then read as the input lies there."""
        shape, strides, offset = self_geometry
        if 0 in shape or 0 in size:
            return new_zeros(g, shape)
        start = offset if storage_offset is None else storage_offset
        low = min(start, offset)
        start, offset = start - low, offset - low
        for d in reversed(range(len(size))):  # elements of one place are summed
            if size[d] == 1:
                g = squeeze_dim(g, d)
            elif not stride[d]:
                g = total(g, d)
        kept = [(n, s) for n, s in zip(size, stride, strict=True) if n != 1 and s]
        size, stride = tuple(n for n, _ in kept), tuple(s for _, s in kept)
        memory = new_zeros(
            g, (max(start + _extent(size, stride), offset + _extent(shape, strides)),)
        )
        if _overlapping(size, stride):
            where = (positions(size, stride) + start).reshape(-1)
            flat: Any = g.reshape(-1)
            memory = memory_add(memory, constant(where, g), flat)
        elif unrecorded(g):
            as_strided_array(memory, size, stride, start)[...] = g
        else:
            as_strided(memory, size, stride, start).copy_(g)
        if _overlapping(shape, strides):
            shared = np.bincount(
                (positions(shape, strides) + offset).reshape(-1), minlength=memory.shape[0]
            )
            shared = np.maximum(shared, 1).astype(dtype_of(g))
            memory = memory / constant(shared, g)
        return as_strided(memory, shape, strides, offset)


# -- complex numbers as pairs ---------------------------------------------------------------------
@operator(
    "view leading function", node="ViewAsRealBackward0", samples="(randn(2, dtype=complex128))"
)
class view_as_real:
    """Real and imaginary parts as a last dim of size 2."""

    def forward(self: Array) -> Array:
        if self.dtype.kind != "c":
            raise RuntimeError("view_as_real is only supported for complex tensors")
        if isinstance(self, np.generic):  # whose real part is a number of its own
            self = np.asarray(self)
        real = self.real
        return strided(real, (*self.shape, 2), (*self.strides, real.dtype.itemsize))

    self = lambda g: view_as_complex(contiguous(g))


@operator(
    "view leading function",
    node="ViewAsComplexBackward0",
    samples="(randn(3,2))",
    symbolic="view_as_complex",
)
class view_as_complex:
    """The last dim, of size 2, as real and imaginary parts."""

    def forward(self: Array) -> Array:
        if self.dtype.kind != "f":
            name = scalar_name(self)
            raise RuntimeError(
                "view_as_complex is only supported for half, float and double tensors, but got a tensor "
                f"of scalar type: {name}"
            )
        if self.dtype.itemsize == 2:
            raise RuntimeError(dtypes.NO_COMPLEX_HALF)
        if not self.ndim:
            raise RuntimeError("Input tensor must have one or more dimensions")
        if self.shape[-1] != 2:
            raise RuntimeError("Tensor must have a last dimension of size 2")
        if not self.size:  # without elements, strides say nothing
            return np.zeros(self.shape[:-1], np.result_type(self.dtype, np.complex64))
        item = self.dtype.itemsize
        if self.strides[-1] != item:
            raise RuntimeError("Tensor must have a last dimension with stride 1")
        if any(s % (2 * item) for s in self.strides[:-1]):
            raise RuntimeError(
                "Tensor must have a stride divisible by 2 for all but last dimension"
            )
        return self.view(np.result_type(self.dtype, np.complex64))[..., 0]

    self = lambda g: view_as_real(contiguous(g))


def _conj(self: Array) -> Array:
    return self.conj()


@primitive("linear pointwise", kernel=_conj, node="ConjBackward0", analytic=False)
class conj_of:
    self = conj


@primitive(
    "linear pointwise", kernel=_conj, node="ConjPhysicalBackward0", analytic=False, symbolic="conj"
)
class conj_physical_of:
    self = lambda g: conj_physical(g)


@function("conj(Tensor input)", numpy=np.conjugate, samples="(randn(2, dtype=complex128))")
def conj_(input: Tensor) -> Any:
    """The complex conjugates; a real tensor itself."""
    if not is_complex(input):
        return input
    out = conj_of(input)
    if isinstance(input, Tensor):
        out.conjugated = not is_conj(input)
    return out


@function(
    "conj_physical(Tensor input, *, Tensor? out=None)|inplace",
    samples="(randn(2, dtype=complex128))",
    out="exact: found",
)
def conj_physical(input: Value) -> Any:
    """The complex conjugates, never lazily; a real tensor itself."""
    return conj_physical_of(input) if is_complex(input) else input


@function("is_conj(Tensor input)", samples="(randn(2, dtype=complex128))")
def is_conj(input: Tensor) -> bool:
    """True for a result of `conj` that `resolve_conj` would copy."""
    return getattr(input, "conjugated", False)


@function("is_neg(Tensor input)|function", samples="(randn(2))")
def is_neg(input: Tensor) -> bool:
    """False: nothing is negated lazily."""
    return False


@function("resolve_conj(Tensor input)", samples="(randn(2, dtype=complex128))")
def resolve_conj(input: Tensor) -> Any:
    """Itself; a copy of a result of `conj`, which is lazy in PyTorch."""
    return input.clone() if is_conj(input) else input


@function("resolve_neg(Tensor input)", samples="(randn(2))")
def resolve_neg(input: Tensor) -> Any:
    """Itself: nothing is negated lazily."""
    return input


@function(
    "real(Tensor input)|numpy", primitives=[view_as_real], samples="(randn(2, dtype=complex128))"
)
def real(input: Tensor) -> Any:
    """The real parts; a real tensor itself."""
    if not is_complex(input):
        return input
    pairs = view_as_real(conj_(input) if is_conj(input) else input)
    return select(pairs, pairs.ndim - 1, 0)


@function(
    "imag(Tensor input)|numpy", primitives=[view_as_real], samples="(randn(2, dtype=complex128))"
)
def imag(input: Tensor) -> Any:
    """The imaginary parts of a complex tensor."""
    if not is_complex(input):
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    if is_conj(input):
        pairs = view_as_real(conj_(input))
        return -select(pairs, pairs.ndim - 1, 1)
    pairs = view_as_real(input)
    return select(pairs, pairs.ndim - 1, 1)


def _put(part: Callable[[Any], Any], x: Tensor, value: int) -> None:
    """`x.real = value`, which is copied."""
    if isinstance(value, (bool, int, float)):
        part(x).copy_(lift(value))
    else:
        part(x)[...] = value


def _install() -> None:
    """Give tensors the attributes that are functions of this family."""
    for name, get in {"T": numpy_t, "mT": matrix_t, "H": matrix_h, "mH": adjoint}.items():
        tensor_property(name, get)
    for part in (real, imag):
        tensor_property(part.__name__, part, partial(_put, part))


_install()
