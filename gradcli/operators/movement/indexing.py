"""Elements picked and placed by index, by mask and by condition."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.engine.core.declaration import Array, Arrays, DType, Ints, Number, Shape, Value
from gradcli.engine.core.modes import told
from gradcli.engine.core.promotion import mismatch
from gradcli.engine.core.tensor import Tensor, wrap, wrap_dim
from gradcli.engine.core.views import as_strided_array
from gradcli.engine.registry import batching_helpers
from gradcli.engine.registry.rule_helpers import (
    cast,
    constant,
    contiguous,
    data,
    dtype_of,
    expand,
    implemented,
    is_traced,
    new_zeros,
    numbers,
    raise_on_second,
    refuse_if,
    where,
    zeros_like,
)
from gradcli.engine.registry.table import function, operator, primitive, resolve
from gradcli.engine.system import dtypes
from gradcli.engine.system.array_memory import IN_MEMORY, afresh, in_its_order
from gradcli.engine.system.dtypes import c_type, scalar_name
from gradcli.operators.movement.reshaping import (
    as_strided,
    broadcast_shape,
    diagonal,
    expand_size,
    reshape,
    select,
    slice_backward,
    slice_p,
    unbind,
    view_size,
)
from gradcli.operators.movement.strides import arranged, copied, dense_order, fresh


def _is_mask(array: Value) -> bool:
    return bool(array.dtype.kind == "b" or array.dtype == np.uint8)


# -- x[...] ---------------------------------------------------------------------------------------
def _key(self: Array, indices: Any) -> tuple[Any, ...]:
    """The indices as NumPy takes them; IndexError in PyTorch's words where they do not fit."""
    key: list[Any] = []
    dim = 0
    for _i, at in enumerate(indices):
        if at is None:
            key.append(slice(None))
            dim += 1
        elif _is_mask(at):
            if dim + at.ndim > self.ndim:
                raise IndexError(f"too many indices for tensor of dimension {self.ndim}")
            for d in range(at.ndim):
                if at.shape[d] != self.shape[dim + d]:
                    raise IndexError(
                        f"The shape of the mask {list(at.shape)} at index {d} does not match the "
                        f"shape of the indexed tensor {list(self.shape)} at index {dim + d}"
                    )
            key.append(at.astype(bool, copy=False))
            dim += at.ndim
        else:
            if at.dtype.kind not in "iu":
                from gradcli.engine.core.errors import IntegerIndexError

                raise IntegerIndexError(
                    "tensors used as indices must be long, int, byte or bool tensors"
                )
            key.append(at)
            dim += 1
    if dim > self.ndim:
        raise IndexError(f"too many indices for tensor of dimension {self.ndim} (got {dim})")
    return tuple(key)


def _refuse_index(error: IndexError, self: Array, key: tuple[Any, ...]) -> IndexError:
    """NumPy's refusal of an index in PyTorch's words."""
    text = str(error)
    if "out of bounds" in text:
        if text.endswith("with size 0"):
            return IndexError("index is out of bounds for dimension with size 0")
        return IndexError(text.replace("axis", "dimension"))
    if "broadcast" in text:
        found = [k for k in key if not isinstance(k, slice)]
        sizes = [
            [int(np.count_nonzero(k))] if k.dtype.kind == "b" else list(k.shape) for k in found
        ]
        return IndexError(
            "shape mismatch: indexing tensors could not be broadcast together with shapes "
            + ", ".join(map(str, sizes))
        )
    return error


def _index(self: Array, indices: Arrays) -> Array:
    key = _key(self, indices)
    try:
        found = self[key]
    except IndexError as error:
        raise _refuse_index(error, self, key) from None
    if self.flags.c_contiguous or found.ndim < 2:
        return fresh(found)
    order = dense_order(found.shape, _index_strides(self, key, found.ndim))
    if order == list(reversed(range(found.ndim))):
        return fresh(found)
    return arranged(found, order)


def _index_strides(self: Array, key: tuple[Any, ...], ndim: int) -> list[list[int]]:
    """The strides of the tensor and of its indices over the dims of the result."""
    key = (*key, *[slice(None)] * (self.ndim - sum(k.ndim if _masks(k) else 1 for k in key)))
    kept: list[int] = []
    places: list[int] = []
    dim = 0
    for n, k in enumerate(key):
        if isinstance(k, slice):
            kept.append(self.strides[dim])
            dim += 1
        else:
            places.append(n)
            dim += k.ndim if _masks(k) else 1
    own = [(8,) if _masks(key[n]) else key[n].strides for n in places]
    width = ndim - len(kept)
    together = places[-1] - places[0] + 1 == len(places)
    start = sum(isinstance(k, slice) for k in key[: places[0]]) if together else 0
    strides = [[*kept[:start], *[0] * width, *kept[start:]]]
    for s in own:
        padded = (0,) * (width - len(s)) + tuple(s)
        strides.append([0] * start + list(padded) + [0] * (len(kept) - start))
    return strides


def _masks(key: Any) -> bool:
    return not isinstance(key, slice) and key.dtype.kind == "b"


@primitive(
    "linear",
    kernel=_index,
    node="IndexBackward0",
    dynamic="masks",
    name="index",
    samples="randn(3)[[0,2]]",
    batching="indexed",
    symbolic="index",
)
class index_p:
    """The elements at the given positions of each dim: `x[a, b]`."""

    self = lambda g, self_sym_sizes, indices: index_put_impl(
        new_zeros(g, self_sym_sizes), indices, g, True
    )


REPEATED = (
    "{} writes an element more than once: which write stays is undefined; here it is the last, and the "
    "others have no gradient (in PyTorch all have it)"
)


def _staying(key: Sequence[Array], shape: Shape, name: str) -> Any:
    """Which writes to places of an array stay, in the form of the places; None where all do.

    Looked at only where somebody is told.
    """
    tell = told.get()
    if tell is None or not all(isinstance(k, (slice, np.ndarray)) for k in key):
        return None
    last = np.full(shape, -1)
    count = last[key].size
    if count < 2:
        return None
    numbers = np.arange(count).reshape(last[key].shape)
    last[key] = numbers
    stay = last[key] == numbers
    if stay.all():
        return None
    tell(REPEATED.format(name))
    return stay


def _of_last(found: Array, stay: Any) -> Any:
    """The gradient of writes, of those that stay."""
    return found if stay is None else masked_fill(found, constant(~stay, found), 0)


def _values_back(g: Value, indices: Sequence[Value], accumulate: bool) -> Any:
    found = index_p(g, indices)
    if accumulate or told.get() is None or any(is_traced(i) for i in indices if i is not None):
        return found
    empty = np.empty(tuple(g.shape), np.int8)
    key = _key(empty, [None if i is None else numbers(i) for i in indices])
    return _of_last(found, _staying(key, empty.shape, "an assignment by indices"))


def _index_put(self: Array, indices: Arrays, values: Array, accumulate: bool = False) -> Array:
    made = copied(self)
    put_into(made, indices, values, accumulate)
    return made


def put_into(made: Array, indices: Any, values: Array, accumulate: bool) -> None:
    """Write (or add) values at indices of an array; errors in PyTorch's words."""
    key = _key(made, indices)
    if values.size == 1 and not accumulate and sum(map(_masks, key)) == len(key):
        values = values.astype(made.dtype)  # one number for a mask is cast
    if values.dtype != made.dtype:
        raise RuntimeError(
            "Index put requires the source and destination dtypes match, got "
            f"{scalar_name(made)} for the destination and {scalar_name(values)} for the source."
        )
    try:
        if values.ndim and values.shape[0] == 1 and values.ndim > made[key].ndim:
            raise ValueError  # NumPy would leave out the ones in front
        if not accumulate:
            made[key] = values
        elif all(_masks(k) or isinstance(k, slice) for k in key):
            made[key] += values
        else:  # NumPy's own broadcasting leaves out what an index of two dimensions repeats
            np.add.at(made, key, np.broadcast_to(values, made[key].shape))
    except (IndexError, ValueError):
        try:
            shape = made[key].shape
        except IndexError as error:
            raise _refuse_index(error, made, key) from None
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to "
            f"indexing result of shape {list(shape)}"
        ) from None


def _index_put_back(g: Value, values_args: Ints, indices: Sequence[Value], accumulate: bool) -> Any:
    return g if accumulate else index_put(g, indices, new_zeros(g, values_args), False)


@operator(
    "inplace apart",
    kernel=_index_put,
    node="IndexPutBackward0",
    samples="(randn(3), (tensor([0, 2]),), randn(2)); (randn(3), (tensor([0, 0]),), randn(2), True)",
    batching="index_written",
    signature="index_put(Tensor input, Tensor[] indices, Tensor values, bool accumulate=False)",
)
class index_put:
    """`input` with `values` at the given positions; accumulate adds them."""

    self = _index_put_back
    values = _values_back


@primitive(
    kernel=_index_put, node="IndexPutImplBackward0", batching="index_written", symbolic="index_put"
)
class index_put_impl:
    self = _index_put_back
    values = _values_back


# -- by condition ---------------------------------------------------------------------------------
def _where(condition: Array, self: Array, other: Array, dtype: DType | None = None) -> Array:
    found: Array = np.where(condition, self, other)
    if dtype is not None and found.dtype != dtype:
        found = found.astype(dtype)
    return found if found.ndim else found[()]


@primitive(
    "linear pointwise",
    kernel=_where,
    node="WhereBackward0",
    jet=lambda s, condition, self, other: self.where(condition, other),
)
class where_of:
    self = lambda g, condition: where(condition, g, 0)
    other = lambda g, condition: where(condition, 0, g)


@function(
    "where(Tensor condition)|numpy",
    "where(Tensor condition, Tensor input, Tensor other, *, Tensor out=None)",
    "where(Tensor condition, Scalar self, Tensor other)",
    "where(Tensor condition, Tensor input, Scalar other)",
    "where(Tensor condition, Scalar self, Scalar other)|function",
    samples="(randn(3) > 0, randn(3), randn(3)); (randn(2,3) > 0, randn(3), 0.)",
    out="exact: Expected out type to be {0} but got {1}",
)
def choose(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    """`input` where the condition is true, else `other`; alone: the positions where it is true."""
    if input is None:
        return nonzero(condition, as_tuple=True)
    if dtype_of(condition).kind != "b" and dtype_of(condition) != np.uint8:
        raise RuntimeError(
            "where expected condition to be a boolean tensor, but got a tensor with dtype "
            f"{scalar_name(condition)}"
        )
    given = [_operand(v) for v in (input, other)]
    wanted = dtypes.result_type([_rank(v) for v in given])
    if any(_is_number(v) for v in (input, other)):
        given = [
            wrap(np.asarray(dtypes.checked(v, wanted)))
            if _is_number(v) and wanted.kind in "biu"
            else cast(g, wanted)
            for v, g in zip((input, other), given, strict=True)
        ]
    return where_of(condition, *given, wanted)


def _is_number(value: Value | Number) -> bool:
    return isinstance(value, (bool, int, float, complex))


def _operand(value: Value | Number) -> Any:
    if _is_number(value):
        made = wrap(np.asarray(dtypes.checked(value, dtypes.number_dtype(value))))
        made.wrapped = True
        return made
    return value


def _rank(value: Tensor) -> tuple[Any, int]:
    dtype = dtype_of(value)
    if isinstance(value, Tensor) and value.wrapped:
        return dtype, 0
    return dtype, 2 if value.ndim else 1


@primitive("dynamic", params="self")
class nonzero_of:
    """Positions of the elements that are not zero, one a row."""

    def forward(self: Array) -> Array:
        return (
            np.stack(np.nonzero(np.atleast_1d(self))).T
            if self.ndim
            else np.zeros((int(bool(self)), 0), np.int64)
        )


@function(
    "nonzero(Tensor input, *, Tensor out=None)",
    "nonzero(Tensor input, *, bool as_tuple)|unsaid|function",
    "nonzero(Tensor input, *, bool as_tuple)|method",
    primitives=[nonzero_of],
    samples="(tensor([0., 1., 2.]))",
    out=("exact: nonzero: Expected out tensor to have scalar type {0} but got scalar type{1}"),
)
def nonzero(input: Tensor, as_tuple: bool = False) -> Any:
    """The positions of the elements that are not zero, one a row; as_tuple: by dim."""
    if not as_tuple:
        return nonzero_of(input)
    return unbind(nonzero_of(input if input.ndim else input.unsqueeze(0)), 1)


@function("argwhere(Tensor input)", samples="(tensor([0., 1., 2.]))")
def argwhere(input: Tensor) -> Any:
    """The positions of the elements that are not zero, one a row."""
    return nonzero_of(input)


@function(
    "unravel_index(Tensor indices, Any shape)|python|function",
    primitives=(),  # of integers: it records nothing
    samples="(tensor([1, 5]), (2, 3))[0]",
)
def unravel_index(indices: Tensor, shape: Any) -> tuple[Any, ...]:
    """The index in each dim of elements counted row by row; shape: an int, or a sequence of ints."""
    if dtype_of(indices).kind not in "iu":
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if not isinstance(shape, (int, list, tuple)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if (odd := next((n for n in sizes if not isinstance(n, int)), None)) is not None:
        raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(odd)}")
    if any(n < 0 for n in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    steps = [math.prod(sizes[k + 1 :]) for k in range(len(sizes))]
    if not sizes:
        return ()
    places = resolve("floor_divide")(indices.unsqueeze(-1), resolve("tensor")(steps))
    return unbind(places % resolve("tensor")(list(sizes)), -1)


# -- by mask --------------------------------------------------------------------------------------
@primitive("own_order pointwise", node="MaskedFillBackward0", writes="shared read")
class masked_fill_number:
    def forward(self: Array, mask: Array, value: Value | Number) -> Array:
        if mask.dtype.kind != "b":
            raise RuntimeError(
                f"masked_fill_ only supports boolean masks, but got mask with dtype {c_type(mask)}"
            )
        if mask.shape != self.shape and (error := mismatch([mask.shape, self.shape])) is not None:
            raise error
        item = value.item() if hasattr(value, "item") else value
        found = np.where(mask, dtypes.checked(item, self.dtype), self)
        return afresh(found, self) if found.ndim else found[()]

    self = lambda g, mask: masked_fill(g, mask, 0)


@primitive(
    node="MaskedFillBackward1",
    batching=batching_helpers.of(batching_helpers.filled, lambda: where_of),
    writes="shared read",
)
class masked_fill_tensor:
    def forward(self: Array, mask: Array, value: Array) -> Array:
        if value.ndim:
            raise RuntimeError(
                "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                f"{value.ndim} dimension(s)."
            )
        return masked_fill_number.kernel(self, mask, value)

    self = lambda g, mask: masked_fill(g, mask, 0)
    value = lambda g, mask: masked_select(g, mask).sum()


@function(
    "masked_fill(Tensor input, Tensor mask, Tensor value)|inplace",
    "masked_fill(Tensor input, Tensor mask, Scalar value)|inplace",
    samples="(randn(3), tensor([True, False, True]), 0.)",
)
def masked_fill(input: Value, mask: Value, value: Tensor | Number) -> Any:
    """`value` where the mask is true, else `input`."""
    if isinstance(value, Tensor):
        return masked_fill_tensor(input, mask, value)
    return masked_fill_number(input, mask, value)


def _check_broadcast(self: Array, mask: Array) -> None:
    refusal = mismatch([mask.shape, self.shape])
    if refusal is not None:
        raise refusal


@operator(
    "linear apart",
    node="MaskedSelectBackward0",
    dynamic="masks",
    samples="(randn(3), tensor([True, False, True]))",
    batching=batching_helpers.of(batching_helpers.masked, lambda: index_select),
    symbolic="masked_select:",
    out="exact: same",
)
class masked_select:
    """The elements where the mask is true, as a vector."""

    def forward(self: Array, mask: Array) -> Array:
        refuse_if(mask.dtype.kind != "b", "masked_select: expected BoolTensor for mask")
        _check_broadcast(self, mask)
        if self.shape != mask.shape:
            self, mask = np.broadcast_arrays(self, mask)
        return np.atleast_1d(self)[np.atleast_1d(mask)]

    def self(g: Value, self: Value, mask: Value) -> Any:
        shape = tuple(np.broadcast_shapes(tuple(self.shape), tuple(mask.shape)))
        return masked_scatter(new_zeros(g, shape), mask, g)


@operator(
    "inplace",
    node="MaskedScatterBackward0",
    batching="masked_scattered",
    samples="(randn(3), tensor([True, False, True]), randn(2))",
    signature="masked_scatter(Tensor input, Tensor mask, Tensor source)",
)
class masked_scatter:
    """The elements where the mask is true replaced by those of `source`, in order."""

    def forward(self: Array, mask: Array, source: Array) -> Array:
        if mask.dtype.kind != "b":
            raise RuntimeError(
                f"masked_scatter_ only supports boolean masks, but got mask with dtype {scalar_name(mask)}"
            )
        if source.dtype != self.dtype:
            raise RuntimeError(
                "masked_scatter: expected self and source to have same dtypes but got"
                f"{scalar_name(self)} and {scalar_name(source)}"
            )
        _check_broadcast(self, mask)
        shape = np.broadcast_shapes(self.shape, mask.shape)
        made = np.asarray(
            copied(self)
            if self.shape == shape
            else np.array(np.broadcast_to(self, shape), order="C")
        )
        mask = np.broadcast_to(mask, shape)
        count = int(np.count_nonzero(mask))
        refuse_if(count > source.size, "Number of elements of source < number of ones in mask")
        made[mask] = source.reshape(-1)[:count]
        return made

    self = lambda g, mask: masked_fill(g, mask, 0)
    source = lambda g, mask, source_sym_sizes: masked_scatter_backward(g, mask, source_sym_sizes)


@primitive(node="MaskedScatterBackwardBackward0", batching="masked_scatter_slope")
class masked_scatter_backward:
    def forward(grad_output: Array, mask: Array, sizes: Shape) -> Array:
        found = masked_select.kernel(grad_output, mask)
        made = np.zeros(sizes, grad_output.dtype)
        made.reshape(-1)[: found.size] = found
        return made

    grad_output = lambda g, grad_output_args, mask: masked_scatter(
        new_zeros(g, grad_output_args), mask, g
    )


# -- along a dim, an index an element -------------------------------------------------------------
def _check_index(index: Array, name: str) -> None:
    if index.dtype not in (np.int64, np.int32):
        from gradcli.engine.core.errors import IntegerOperandError

        raise IntegerOperandError(f"{name}(): Expected dtype int32/int64 for index")


def _check_range(index: Array, dim: int, n: int) -> None:
    bad = _stray(index.reshape(-1), n)
    if bad is not None:
        raise RuntimeError(f"index {bad} is out of bounds for dimension {dim} with size {n}")


def _one(array: Array) -> Any:
    """A 0-d array as one of one element."""
    return array.reshape(1) if not array.ndim else array


def _places(index: Array, dim: int) -> tuple[Any, ...]:
    """The NumPy index of the elements that `index` names along `dim`."""
    ndim = index.ndim
    key: list[Any] = [
        np.arange(n).reshape((-1,) + (1,) * (ndim - d - 1)) for d, n in enumerate(index.shape)
    ]
    key[dim] = index
    return tuple(key)


@operator(
    "linear apart",
    node="GatherBackward0",
    samples="(randn(2,3), 1, tensor([[0, 2], [1, 1]])); (randn(3), 0, tensor([2, 0, 0]))",
    batching="as_lines index",
    signature="gather(Tensor input, int dim, Tensor index, *, bool sparse_grad=False, Tensor out=None)",
    out="exact",
)
class gather:
    """The elements that `index` names along a dim."""

    def forward(self: Array, dim: int, index: Array, sparse_grad: bool = False) -> Array:
        at = wrap_dim(dim, self.ndim)
        if not index.size:
            return np.empty(index.shape, self.dtype)
        _check_index(index, "gather")
        if max(self.ndim, 1) != max(index.ndim, 1):
            raise RuntimeError(
                "Index tensor must have the same number of dimensions as input tensor"
            )
        source, where = _one(self), _one(index)
        for d in range(where.ndim):
            if d != at and where.shape[d] > source.shape[d]:
                raise RuntimeError(
                    f"Size does not match at dimension {d} expected index {list(index.shape)} to be no "
                    f"larger than self {list(self.shape)} apart from dimension {at}"
                )
        _check_range(where, at, source.shape[at])
        return source[_places(where, at)].reshape(index.shape)[()]

    self = lambda g, self, dim, index, sparse_grad: scatter_add(
        new_zeros(g, tuple(self.shape)), dim, index, g
    )


def _scatter_check(
    name: str, self: Array, dim: int, index: Array, src: Array | None = None
) -> tuple[Any, ...]:
    at = wrap_dim(dim, self.ndim)
    if index.size:
        _check_index(index, name)
    made = self.copy() if isinstance(self, IN_MEMORY) else np.array(self)
    if src is not None and src.dtype != self.dtype:
        raise RuntimeError(f"{name}(): Expected self.dtype to be equal to src.dtype")
    if not index.size:
        return made, None, None
    if max(self.ndim, 1) != max(index.ndim, 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as self tensor")
    target, where = _one(made), _one(index)
    part = None if src is None else _one(src)
    if part is not None and part.ndim != where.ndim:
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    for d in range(where.ndim):
        large = d != at and where.shape[d] > target.shape[d]
        if large or (part is not None and where.shape[d] > part.shape[d]):
            over = "" if src is None else f" and to be no larger size than src {list(src.shape)}"
            raise RuntimeError(
                f"Expected index {list(index.shape)} to be no larger than self {list(self.shape)} "
                f"apart from dimension {at}{over}"
            )
    _check_range(where, at, target.shape[at])
    if part is not None:
        part = part[tuple(slice(n) for n in where.shape)]
    return made, _places(where, at), part


def _to_source(found: Value, sizes: Shape) -> Any:
    """A gradient by an index, of the source's shape: what no index reads of it has none."""
    for d, (have, want) in enumerate(zip(found.shape, sizes, strict=True)):
        if have != want:
            whole = (*found.shape[:d], want, *found.shape[d + 1 :])
            found = slice_backward(found, whole, d, 0, have, 1)
    return found


def _scattered_back(g: Value, dim: int, index: Value, sizes: Shape) -> Any:
    found = gather(g, dim, index, False)
    if told.get() is not None and index.ndim and not is_traced(index):
        where = numbers(index)
        if isinstance(where, np.ndarray) and where.size:
            at = wrap_dim(dim, where.ndim)
            stay = _staying(_places(where, at), tuple(g.shape), "scatter")
            found = _of_last(found, stay)
    return _to_source(found, sizes)


@primitive("apart", node="ScatterBackward0", batching="as_lines self", symbolic="scatter:")
class scatter_src:
    def forward(self: Array, dim: int, index: Array, src: Array) -> Array:
        made, key, part = _scatter_check("scatter", self, dim, index, src)
        if key is not None:
            _one(made)[key] = part
        return made

    self = lambda g, dim, index: scatter_value(g, dim, index, 0)
    src = lambda g, dim, index, src_args: _scattered_back(g, dim, index, src_args)


@primitive(
    "apart", node="ScatterBackward1", linearity=None, batching="as_lines self", symbolic="scatter:"
)
class scatter_value:
    def forward(self: Array, dim: int, index: Array, value: float) -> Array:
        made, key, _ = _scatter_check("scatter", self, dim, index)
        if key is not None:
            _one(made)[key] = value
        return made

    self = lambda g, dim, index: scatter_value(g, dim, index, 0)


@primitive("apart", node="NotImplemented", batching="as_lines self")
class scatter_:
    def forward(self: Array, dim: int, index: Array, src: Array, reduce: str) -> Array:
        if reduce not in ("add", "multiply"):
            raise RuntimeError("reduce argument must be either add or multiply.")
        part = np.broadcast_to(src, index.shape) if not src.ndim else src
        made, key, part = _scatter_check("scatter", self, dim, index, part.astype(self.dtype))
        if key is not None:
            (np.add if reduce == "add" else np.multiply).at(_one(made), key, part)
        return made

    self = lambda g: g
    src = lambda g: g


@function(
    "scatter(Tensor input, int dim, Tensor index, Tensor src, *, Tensor? out=None)|inplace",
    "scatter(Tensor input, int dim, Tensor index, Tensor src, *, str reduce, Tensor? out=None)|inplace",
    "scatter(Tensor input, int dim, Tensor index, Scalar value, *, Tensor? out=None)|inplace",
    "scatter(Tensor input, int dim, Tensor index, Scalar value, *, str reduce, Tensor? out=None)|inplace",
    samples="(randn(2,3), 1, tensor([[0], [2]]), randn(2,1)); (randn(2,3), 1, tensor([[0], [2]]), 9.)",
    out="exact",
)
def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Any = None,
    value: float | None = None,
    *,
    reduce: str | None = None,
) -> Any:
    """`src` (or one number) written to the places that `index` names along a dim."""
    if src is None:
        src = value
    number = isinstance(src, (bool, int, float, complex))
    if reduce is not None:
        given = wrap(np.asarray(src, input.dtype.dtype)) if number else src
        return scatter_(input, dim, index, given, reduce)
    return scatter_value(input, dim, index, src) if number else scatter_src(input, dim, index, src)


@operator(
    "linear inplace apart",
    node="ScatterAddBackward0",
    samples="(randn(2,3), 1, tensor([[0, 0], [2, 1]]), randn(2,2))",
    batching="as_lines self",
    signature="scatter_add(Tensor input, int dim, Tensor index, Tensor src, *, Tensor out=None)",
    out="exact",
)
class scatter_add:
    """`src` added to the places that `index` names along a dim."""

    def forward(self: Array, dim: int, index: Array, src: Array) -> Array:
        made, key, part = _scatter_check("scatter", self, dim, index, src)
        if key is not None:
            np.add.at(_one(made), key, part)
        return made

    self = lambda g: g
    src = lambda g, dim, index, src_args: _to_source(gather(g, dim, index, False), src_args)


# -- scatter and index with a reduction -----------------------------------------------------------
_REDUCERS: dict[str, Any] = {
    "sum": np.add,
    "mean": np.add,
    "prod": np.multiply,
    "amax": np.maximum,
    "amin": np.minimum,
}


def _start(name: str, dtype: DType) -> Any:
    """The neutral element of a reduction."""
    if name in ("sum", "mean"):
        return 0
    if name == "prod":
        return 1
    low = name == "amax"
    if dtype.kind == "f":
        return -np.inf if low else np.inf
    if dtype.kind == "b":
        return not low
    return np.iinfo(dtype).min if low else np.iinfo(dtype).max


def _reduced_at(
    target: Array, key: Sequence[Array], part: Array, reduce: str, include_self: bool
) -> None:
    """Reduce `part` into the places `key` of `target`, in place."""
    if not include_self:
        target[key] = _start(reduce, target.dtype)
    _REDUCERS[reduce].at(target, key, part)
    if reduce == "mean":
        count = np.zeros(target.shape, np.int64)
        if include_self:
            count += 1
        np.add.at(count, key, 1)
        count[count == 0] = 1
        if target.dtype.kind in "iu":
            np.floor_divide(target, count.astype(target.dtype), out=target)
        else:
            np.divide(target, count.astype(target.dtype), out=target)


_ZEROS = (
    "{0}(): Double backward is unsupported for {1} when >1 zeros in {1} are scattered to the same "
    "position in self"
)


def _reduce_back(
    g: Value,
    self: Value,
    src: Value,
    result: Value,
    reduce: str,
    include_self: bool,
    *,
    take: Callable[[Any], Any],
    add: Callable[[Any, Any], Any],
    again: Callable[[Any, Any], Any],
    words: str,
) -> tuple[Any, Any]:
    """The gradients of a tensor, and of what is reduced into places of it.

    take: reads the places. add: adds to them. again: the reduction itself. words: of a second derivative
    that there is none of.
    """
    if reduce == "prod":
        plain = masked_fill(self, self == 0, 1)
        grad_self = (g * again(plain, src)) / plain
        zero = src == 0
        zeros = add(zeros_like(self), cast(zero, dtype_of(self)))
        lone = zero & (take(zeros) == 1)
        others = again(self, masked_fill(src, lone, 1))
        grad_src = where(lone, take(g * others), take(g * result) / masked_fill(src, zero, 1))
        return grad_self, raise_on_second(words, zeros > 1, grad_src)
    if reduce == "mean":
        count: Any = zeros_like(g) + 1 if include_self else zeros_like(g)
        count = add(count, zeros_like(src) + 1)
        count = masked_fill(count, count == 0, 1)
        return g / count, take(g) / take(count)
    dtype = dtype_of(self)
    own, theirs = cast(self == result, dtype), cast(src == take(result), dtype)
    shared = g / add(own, theirs)
    return own * shared, theirs * take(shared)


@operator(
    "inplace apart",
    node="ScatterReduceBackward0",
    refuses={"C": "scatter_reduce"},
    samples=tuple(
        f"scatter_reduce(randn(3), 0, tensor([0, 0, 2]), randn(3), '{r}')" for r in _REDUCERS
    ),
    batching="as_lines self",
    signature="scatter_reduce(Tensor input, int dim, Tensor index, Tensor src, str "
    "reduce, *, bool include_self=True, Tensor out=None)",
    out="exact",
)
class scatter_reduce:
    """`src` reduced into the places that `index` names along a dim."""

    def forward(
        self: Array, dim: int, index: Array, src: Array, reduce: str, include_self: bool = True
    ) -> Array:
        if reduce not in _REDUCERS:
            raise RuntimeError(
                "reduce argument must be either sum, prod, mean, amax or amin, got " + reduce
            )
        made, key, part = _scatter_check("scatter", self, dim, index, src)
        least = {"amax": "c", "amin": "c", "mean": "b"}.get(reduce, "")
        if self.dtype.kind in least:
            implemented(f"scatter_gather_tensor_cpu_reduce_{reduce}", self, "")
        if key is not None:
            _reduced_at(_one(made), key, part, reduce, include_self)
        return made

    def self__src(
        g: Value,
        self: Value,
        dim: int,
        index: Value,
        src: Value,
        reduce: str,
        include_self: bool,
        result: Value,
    ) -> tuple[Any, Any]:
        sizes = tuple(src.shape)
        for d, n in enumerate(index.shape):
            if n != sizes[d]:
                src = slice_p(src, d, 0, n, 1)
        if reduce == "sum":
            grad_self, grad_src = g, gather(g, dim, index, False)
        else:
            grad_self, grad_src = _reduce_back(
                *(g, self, src, result, reduce, include_self),
                take=lambda value: gather(value, dim, index, False),
                add=lambda value, more: scatter_add(value, dim, index, more),
                again=lambda value, src: scatter_reduce(
                    value, dim, index, src, reduce, include_self
                ),
                words=_ZEROS.format("scatter_reduce", "src"),
            )
        if not include_self:
            grad_self = scatter_value(grad_self, dim, index, 0)
        return grad_self, _to_source(grad_src, sizes)


# -- along a dim, an index a slice ----------------------------------------------------------------
def _vector(name: str, index: Array, kinds: str = "int32/int64") -> Any:
    """The index as a vector; IndexError or RuntimeError where it is none."""
    if index.ndim > 1:
        raise IndexError(
            f"{name}(): Index is supposed to be a vector, but got dim: {index.ndim} with type: "
            f"{scalar_name(index)} and size: {list(index.shape)}"
        )
    if index.dtype not in (np.int64, np.int32):
        raise RuntimeError(
            f"{name}(): Expected dtype {kinds} for index but got: {scalar_name(index)}"
        )
    return index.reshape(-1)


def _stray(line: Array, n: int, low: int = 0) -> int | None:
    """The first index outside `low` to `n`; None where all are inside."""
    out = (line < low) | (line >= n)
    return int(line[np.argmax(out)]) if out.any() else None


@operator(
    "linear apart",
    node="IndexSelectBackward0",
    axes="",
    samples="(randn(2,3), 1, tensor([2, 0, 0]))",
    batching=batching_helpers.of(batching_helpers.selected, lambda: index_p),
    signature="index_select(Tensor input, int dim, Tensor index, *, Tensor out=None)",
    out="exact: same",
)
class index_select:
    """The positions of a dim that a vector of indices names."""

    def forward(self: Array, dim: int, index: Array) -> Array:
        at = wrap_dim(dim, self.ndim)
        if index.ndim > 1:
            raise IndexError("index_select(): Index is supposed to be a vector")
        line = _vector("index_select", index, "int32 or int64")
        bad = _stray(line, self.shape[at] if self.ndim else 1)
        if bad is not None:
            if at > 0 and bad >= 0:
                raise RuntimeError(
                    f"INDICES element is out of DATA bounds, id={bad} axis_dim={self.shape[at]}"
                )
            raise IndexError("index out of range in self")
        if not self.ndim:
            return np.asarray(self)
        return contiguous(np.take(self, line, at))

    self = lambda g, self_sym_sizes, dim, index: index_add(
        new_zeros(g, self_sym_sizes), dim, index, g, alpha=1
    )


def _source_check(
    name: str, self: Array, dim: int, index: Array, source: Array
) -> tuple[Any, Any, Any]:
    """A copy of `self`, where the index points in it, and the source; errors in PyTorch's words."""
    at = wrap_dim(dim, self.ndim)
    line = _vector(name, index)
    if source.dtype != self.dtype:
        raise RuntimeError(
            f"{name}(): self ({scalar_name(self)}) and source ({scalar_name(source)}) must have the "
            "same scalar type"
        )
    if at and at >= source.ndim:
        raise RuntimeError(
            f"{name}(): Indexing dim {at} is out of bounds of the source tensor with dim {source.ndim}"
        )
    n = source.shape[at] if source.ndim else 1
    if line.size != n:
        raise RuntimeError(
            f"{name}(): Number of indices ({line.size}) should be equal to source.size(dim): ({n}), "
            f"for dim: {at}"
        )
    rest = [a.shape[:at] + a.shape[at + 1 :] for a in (self, source)]
    if self.ndim != source.ndim or rest[0] != rest[1]:
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. "
            f"Got self.shape = {list(self.shape)} source.shape = {list(source.shape)}"
        )
    size = self.shape[at] if self.ndim else 1
    bad = _stray(line, size)
    if bad is not None:
        if self.ndim < 2 or name == "index_reduce_":
            raise IndexError("index out of range in self")
        raise RuntimeError(f"index {bad} is out of bounds for dimension {at} with size {size}")
    return *_target(self, at, line), _one(source)


def _target(self: Array, at: int, line: Array, keep: bool = False) -> tuple[Any, Any]:
    """(a copy to write to, laid out anew unless its order is to be kept; where a line of it is)."""
    made = np.array(self) if not self.ndim else copied(self) if keep else self.copy()
    return made, (*(slice(None),) * at, line)


def _source_back(g: Value, source: Value, source_dim: int, dim: int, index: Value) -> Any:
    if source_dim:
        return expand(index_select(g, dim, index), tuple(source.shape))
    return index_select(g, dim, index if not index.ndim else index.squeeze(0))


@operator(
    "inplace apart",
    node="IndexAddBackward0",
    samples="(randn(3,2), 0, tensor([0, 2]), randn(2,2), alpha=2)",
    batching="apart index",
    signature="index_add(Tensor input, int dim, Tensor index, Tensor source, *, Scalar alpha=1, "
    "Tensor out=None)",
    out="exact",
)
class index_add:
    """`alpha * source` added to the positions of a dim that a vector of indices names."""

    def forward(self: Array, dim: int, index: Array, source: Array, *, alpha: Any = 1) -> Array:
        made, key, part = _source_check("index_add_", self, dim, index, source)
        np.add.at(_one(made), key, part if alpha == 1 else part * alpha)
        return made

    self = lambda g: g

    def source(
        g: Value, source: Value, source_dim: int, dim: int, index: Value, alpha: float
    ) -> Any:
        found = _source_back(g, source, source_dim, dim, index)
        return found if alpha == 1 else found * alpha


@operator(
    "inplace apart",
    node="IndexCopyBackward0",
    samples="(randn(3,2), 0, tensor([0, 2]), randn(2,2))",
    batching="apart index",
    signature="index_copy(Tensor input, int dim, Tensor index, Tensor source, *, Tensor out=None)",
    out="exact",
)
class index_copy:
    """`source` written to the positions of a dim that a vector of indices names."""

    def forward(self: Array, dim: int, index: Array, source: Array) -> Array:
        at = wrap_dim(dim, self.ndim)
        line = _vector("index_copy_", index)
        if not source.ndim and line.size != 1:
            raise IndexError(
                f"index_copy_(): When source is scalar, index should have one element (got {line.size})"
            )
        if source.dtype != self.dtype:
            raise RuntimeError(
                "index_copy_(): self and source expected to have the same dtype, but got (self) "
                f"{scalar_name(self)} and (source) {scalar_name(source)}"
            )
        if self.ndim and source.ndim and self.ndim != source.ndim:
            raise IndexError(
                "index_copy_(): When source and destination are not scalars, their dimensionality must "
                f"match. Source dimensionality ({source.ndim}), destination dimensionality ({self.ndim})"
            )
        if source.ndim and line.size != source.shape[at]:
            raise IndexError(
                f"index_copy_(): Number of indices ({line.size}) should be equal to source.size(dim) "
                f"({source.shape[at]})"
            )
        rest = [a.shape[:at] + a.shape[at + 1 :] for a in (self, source)]
        if rest[0] != rest[1]:
            sizes = [" ".join(map(str, r)) for r in rest]
            raise RuntimeError(
                "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice "
                f"shape: {sizes[0]} at dimension {at} and source slice shape: {sizes[1]} at dimension 0."
            )
        size = self.shape[at] if self.ndim else 1
        bad = _stray(line, size)
        if bad is not None:
            raise IndexError(
                f"index_copy_(): index {bad} is out of bounds for dimension {at} with size {size}"
            )
        made, key = _target(self, at, line)
        _one(made)[key] = _one(source)
        return made

    self = lambda g, dim, index: index_fill_number(g, dim, index, 0)

    def source(g: Value, source: Value, source_dim: int, dim: int, index: Value) -> Any:
        found = _source_back(g, source, source_dim, dim, index)
        if told.get() is None or is_traced(index) or not found.ndim:
            return found
        line = numbers(index).reshape(-1)
        stay = _staying((line,), (g.shape[dim],), "index_copy")
        if stay is None:
            return found
        at = wrap_dim(dim, found.ndim)
        stay = stay.reshape([-1 if d == at else 1 for d in range(found.ndim)])
        return _of_last(found, np.broadcast_to(stay, found.shape))


@primitive(node="IndexFillBackward0", batching="apart index", writes="shared apart read")
class index_fill_number:
    def forward(self: Array, dim: int, index: Array, value: Value | Number) -> Array:
        at = wrap_dim(dim, self.ndim)
        if index.dtype not in (np.int64, np.int32):
            raise IndexError("index_fill_(): Expected dtype int64 for index.")
        refuse_if(index.ndim > 1, "Index has to be a vector/scalar")
        line = index.reshape(-1)
        n = self.shape[at] if self.ndim else 1
        bad = _stray(line, n, -n) if self.size else None
        if bad is not None:
            raise IndexError(f"index {bad} is out of bounds for dimension {at} with size {n}")
        if isinstance(value, complex) and self.dtype.kind != "c":
            raise RuntimeError(
                "index_fill_(): Converting complex Scalar to non-complex type is not supported"
            )
        if not self.size:
            return self.copy()
        made, key = _target(self, at, line, keep=True)
        _one(made)[key] = dtypes.checked(value, self.dtype)
        return made

    self = lambda g, dim, index: index_fill_number(g, dim, index, 0)


def _unique(index: Any) -> Any:
    return constant(np.unique(data(index)), index)


@primitive(node="IndexFillBackward1", batching="filled_at", writes="shared apart read")
class index_fill_tensor:
    def forward(self: Array, dim: int, index: Array, value: Array) -> Array:
        if value.ndim:
            raise RuntimeError(
                "index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                f"{value.ndim} dimension(s)."
            )
        return index_fill_number.kernel(self, dim, index, value.item())

    self = lambda g, dim, index: index_fill_number(g, dim, index, 0)
    value = lambda g, dim, index: index_select(g, dim, _unique(index)).sum()


@function(
    "index_fill(Tensor input, int dim, Tensor index, Tensor value)|inplace",
    "index_fill(Tensor input, int dim, Tensor index, Scalar value)|inplace",
    samples="(randn(3,2), 0, tensor([0, 2]), 1.)",
)
def index_fill(input: Value, dim: int, index: Value, value: Value | Number) -> Any:
    """One value at the positions of a dim that a vector of indices names."""
    if isinstance(value, Tensor):
        return index_fill_tensor(input, dim, index, value)
    return index_fill_number(input, dim, index, value)


@operator(
    "inplace apart",
    node="IndexReduceBackward0",
    refuses={"C": "index_reduce"},
    samples=tuple(
        f"index_reduce(randn(3,2), 0, tensor([0, 2, 0]), randn(3,2), '{r}')"
        for r in ("prod", "mean", "amax", "amin")
    ),
    batching="apart index",
    signature="index_reduce(Tensor input, int dim, Tensor index, Tensor source, str "
    "reduce, *, bool include_self=True, Tensor out=None)",
    out="exact",
)
class index_reduce:
    """`source` reduced into the positions of a dim that a vector of indices names."""

    def forward(
        self: Array,
        dim: int,
        index: Array,
        source: Array,
        reduce: str,
        *,
        include_self: bool = True,
    ) -> Array:
        if reduce not in ("prod", "mean", "amax", "amin"):
            raise RuntimeError(
                f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}."
            )
        kernels = {"amax": "maximum_cpu", "amin": "minimum_cpu", "mean": "div_floor_cpu"}
        flat = self.ndim < 2
        if self.dtype.kind == "c" and (flat or reduce in ("amax", "amin")):
            implemented("index_func_" if flat else kernels[reduce], self, "")
        if self.dtype.kind == "b" and reduce == "mean":
            implemented("index_func_" if flat else kernels[reduce], self, "")
        made, key, part = _source_check("index_reduce_", self, dim, index, source)
        _reduced_at(_one(made), key, part, reduce, include_self)
        return made

    def self__source(
        g: Value,
        self: Value,
        dim: int,
        index: Value,
        source: Value,
        reduce: str,
        include_self: bool,
        result: Value,
    ) -> tuple[Any, Any]:
        grad_self, grad_source = _reduce_back(
            *(g, self, source, result, reduce, include_self),
            take=lambda value: index_select(value, dim, index),
            add=lambda value, more: index_add(value, dim, index, more),
            again=lambda value, source: index_reduce(
                value, dim, index, source, reduce, include_self=include_self
            ),
            words=_ZEROS.format("index_reduce", "source"),
        )
        if not include_self:
            grad_self = index_fill_number(grad_self, dim, index, 0)
        return grad_self, grad_source


# -- by position in the flattened tensor ----------------------------------------------------------
def _flat_positions(name: str, self: Array, index: Array) -> Any:
    if index.dtype != np.int64:
        raise RuntimeError(
            f"{name}(): Expected a long tensor for index, but got {scalar_name(index)}"
        )
    n = self.size
    if index.size:
        low, high = int(index.min()), int(index.max())
        if not n:
            tried = "take from" if name == "take" else "put elements into"
            raise IndexError(
                f"{name}(): {'t' if name == 'take' else 'T'}ried to {tried} an empty tensor"
            )
        if low < -n or high >= n:
            line = index.reshape(-1)
            bad = int(line[np.argmax((line < -n) | (line >= n))])
            raise IndexError(
                f"out of range: tried to access index {bad} on a tensor of {n} elements."
            )
    return index


@operator(
    "linear apart",
    node="TakeBackward0",
    samples="(randn(2,3), tensor([0, 5, 5]))",
    batching=batching_helpers.of(batching_helpers.taken, lambda: index_select),
    out=(
        "exact: take(): self and out expected to have the same dtype, but got "
        "self.dtype = {0} and out.dtype = {1}"
    ),
)
class take:
    """The elements at positions of the flattened tensor."""

    def forward(self: Array, index: Array) -> Array:
        return self.reshape(-1)[_flat_positions("take", self, index)]

    self = lambda g, self, index: put(new_zeros(g, tuple(self.shape)), index, g, True)


def _put(self: Array, index: Array, source: Array, accumulate: bool = False) -> Array:
    if source.dtype != self.dtype:
        raise RuntimeError(
            f"put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{scalar_name(self)} and source.dtype = {scalar_name(source)}"
        )
    if source.size != index.size:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got "
            f"source.numel() = {source.size}, index.numel() = {index.size}"
        )
    where = _flat_positions("put_", self, index).reshape(-1)
    made = np.array(self, order="C")
    flat = made.reshape(-1)
    if accumulate:
        np.add.at(flat, where, source.reshape(-1))
    else:
        flat[where] = source.reshape(-1)
    return in_its_order(made, self)


def _put_back(g: Value, source: Value, index: Value, accumulate: bool) -> Any:
    found = take(g, index)
    if told.get() is not None and not accumulate and not is_traced(index):
        size = math.prod(g.shape)
        where = numbers(index).reshape(-1) % max(size, 1)
        stay = _staying((where,), (size,), "put")
        found = _of_last(found, None if stay is None else stay.reshape(found.shape))
    return reshape(found, tuple(source.shape))


@operator(
    "inplace apart",
    kernel=_put,
    node="PutBackward0",
    batching="put",
    samples="(randn(2,3), tensor([0, 5]), randn(2)); (randn(3), tensor([0, 0]), randn(2), True)",
    signature="put(Tensor input, Tensor index, Tensor source, bool accumulate=False)",
)
class put:
    """`source` at positions of the flattened tensor; accumulate adds."""

    self = lambda g, source_args, index, accumulate: (
        g if accumulate else put(g, index, new_zeros(g, source_args), False)
    )
    source = lambda g, source, index, accumulate: _put_back(g, source, index, accumulate)


@function(
    "take_along_dim(Tensor input, Tensor indices, int? dim=None, *, Tensor? out=None)",
    numpy=np.take_along_axis,
    primitives=[gather],
    samples="(randn(2,3), tensor([[0], [2]]), 1); (randn(3), tensor([2, 0]))",
    out="exact",
)
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None) -> Any:
    """The elements that `indices` names along a dim, both broadcast; without dim: flattened."""
    if dim is None:
        return gather(view_size(input, (-1,)), 0, view_size(indices, (-1,)), False)
    if dtype_of(indices) != np.int64:
        raise RuntimeError(
            "torch.take_along_dim(): dtype of indices should be Long but got "
            + scalar_name(indices)
        )
    if input.ndim != indices.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but "
            f"got {input.ndim} dimensions for input, and {indices.ndim} dimensions for indices"
        )
    at = wrap_dim(dim, input.ndim)
    own, theirs = list(input.shape), list(indices.shape)
    if isinstance(indices, Tensor) and own[at]:  # indices out of bounds wrap around
        indices = wrap(np.remainder(indices.array, own[at]))
    common = list(broadcast_shape([_without(own, at), _without(theirs, at)]))
    own_shape = (*common[:at], own[at], *common[at + 1 :])
    index_shape = (*common[:at], theirs[at], *common[at + 1 :])
    return gather(expand_size(input, own_shape), at, expand_size(indices, index_shape), False)


def _without(shape: list[int], at: int) -> tuple[int, ...]:
    return (*shape[:at], 1, *shape[at + 1 :])


# -- a part replaced ------------------------------------------------------------------------------
def _placed(name: str, self: Array, part: Array, src: Array, made: Array) -> Any:
    if part.shape != src.shape:
        raise RuntimeError(
            f"expected src to have a size equal to the {name} of self. src size = {list(src.shape)}, "
            f"{name} size = {list(part.shape)}"
        )
    part[...] = src
    return made


@operator(
    "linear",
    node="SelectScatterBackward0",
    refuses={"C": "select_scatter"},
    symbolic="select_scatter:",
    samples="(randn(2,3), randn(3), 0, 1)",
    signature="select_scatter(Tensor input, Tensor src, int dim, int index)",
)
class select_scatter:
    """`input` with one position of a dim replaced by `src`."""

    def forward(self: Array, src: Array, dim: int, index: int) -> Array:
        made = copied(self)
        return _placed("slice", self, select(made, dim, index), src, made)

    self = lambda g, src_args, dim, index: select_scatter(g, new_zeros(g, src_args), dim, index)
    src = select


@operator(
    "linear",
    node="SliceScatterBackward0",
    refuses={"C": "slice_scatter"},
    symbolic="slice_scatter:",
    samples="(randn(4), randn(2), 0, 1, 3)",
    signature="slice_scatter(Tensor input, Tensor src, int dim=0, int? start=None, int? "
    "end=None, int step=1, *, Tensor out=None)",
    out="exact",
)
class slice_scatter:
    """`input` with a slice of a dim replaced by `src`."""

    def forward(
        self: Array, src: Array, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
    ) -> Array:
        made = copied(self)
        return _placed("slice", self, slice_p(made, dim, start, end, step), src, made)

    self = lambda g, src_args, dim, start, end, step: slice_scatter(
        g, new_zeros(g, src_args), dim, start, end, step
    )
    src = slice_p


@operator(
    "linear",
    node="DiagonalScatterBackward0",
    symbolic="diagonal_scatter:",
    samples="(randn(3,3), randn(3))",
    axes="dim1 dim2",
    signature="diagonal_scatter(Tensor input, Tensor src, int offset=0, int dim1=0, int dim2=1)",
)
class diagonal_scatter:
    """`input` with a diagonal replaced by `src`."""

    def forward(self: Array, src: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
        made = copied(self)
        return _placed("slice", self, diagonal(made, offset, dim1, dim2), src, made)

    self = lambda g, src_args, offset, dim1, dim2: diagonal_scatter(
        g, new_zeros(g, src_args), offset, dim1, dim2
    )
    src = diagonal


@operator(
    "linear",
    node="AsStridedScatterBackward0",
    samples="(randn(2,3), randn(2,2), (2,2), (1,2))",
    signature="as_strided_scatter(Tensor input, Tensor src, int[] size, int[] stride, "
    "int? storage_offset=None)",
)
class as_strided_scatter:
    """`input` with the elements of a strided view replaced by `src`."""

    def forward(
        self: Array, src: Array, size: Shape, stride: Ints, storage_offset: int | None = None
    ) -> Array:
        made = np.array(self, order="C") if self.flags.c_contiguous else copied(self)
        part = as_strided_array(made, size, stride, storage_offset)
        return _placed("slice", self, part, src, made)

    self = lambda g, src_args, size, stride, storage_offset: as_strided_scatter(
        contiguous(g), new_zeros(g, src_args), size, stride, storage_offset
    )
    src = lambda g, size, stride, storage_offset: as_strided(
        contiguous(g), size, stride, storage_offset
    )
