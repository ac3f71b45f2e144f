"""Sums without NaN, counts, covariances, histograms, searches."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradcli.engine.core import batched_arrays
from gradcli.engine.core.batched_arrays import DYNAMIC, BatchedArray, each, is_batched
from gradcli.engine.core.declaration import Array, Ints, Number, Shape, Value
from gradcli.engine.core.modes import users_level
from gradcli.engine.core.tensor import Tensor, wrap, wrap_dim
from gradcli.engine.registry.dimensions import as_dims, axes, not_differentiable, numpy_dtype
from gradcli.engine.registry.named_results import return_type
from gradcli.engine.registry.rule_helpers import (
    cast,
    data,
    implemented,
    is_complex,
    numbers,
    refuse_if,
    zeros_like,
)
from gradcli.engine.registry.schema import checked
from gradcli.engine.registry.table import function, operator, primitive, resolve
from gradcli.engine.system import dtypes
from gradcli.engine.system.array_memory import afresh
from gradcli.engine.system.cascaded_sums import add_reduce
from gradcli.engine.system.dtypes import scalar_name
from gradcli.operators.primitives.arithmetic import div_true, mul_scalar
from gradcli.operators.primitives.elementwise_pairs import clamp
from gradcli.operators.primitives.reductions import sum_, sum_backward

# -- without NaN ----------------------------------------------------------------------------------
_NAN = "(tensor([1., nan, 3.])); (randn(2,3), 1); (randn(2,3), (0, 1), True)"
_ALONG = "int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None, Tensor? out=None)"


def _nansum_out(input: Tensor, *others: Any) -> str:
    return "only efd: kernel nansum_cpu" if input.array.dtype.kind == "f" else "cast"


@operator(
    node="NansumBackward0",
    axes="dim*",
    symbolic="nansum: dim keepdim -",
    samples=_NAN,
    signature=f"nansum(Tensor input, {_ALONG}",
    out=_nansum_out,
)
class nansum:
    """The sum of the numbers, without NaN."""

    def forward(
        self: Array, dim: Ints | None = None, keepdim: bool = False, *, dtype: Any = None
    ) -> Array:
        refuse_if(self.dtype.kind == "c", "nansum on CPU does not support complex inputs")
        kind = numpy_dtype(dtype)
        if self.dtype.kind == "f":
            if kind is not None and kind.kind == "c":
                raise dtypes.not_implemented("nansum_cpu", kind)
            self = np.where(np.isnan(self), self.dtype.type(0), self)
        elif kind is None:
            kind = np.dtype(np.int64)
        wide = np.float32 if kind is None and self.dtype.itemsize == 2 else kind
        found = add_reduce(self, axis=axes(dim, self.ndim), dtype=wide, keepdims=keepdim)
        return afresh(found.astype(self.dtype if kind is None else kind, copy=False), self)

    def self(g: Value, self: Value, dim: Ints | None, keepdim: bool) -> Any:
        g = cast(g, data(self).dtype)
        return sum_backward(g, tuple(self.shape), dim, keepdim) * ~np.isnan(self)


@function(f"nanmean(Tensor input, {_ALONG}", samples=_NAN, out=_nansum_out)
def nanmean(input: Tensor, dim: Ints | None, keepdim: bool, dtype: Any) -> Any:
    """The mean of the numbers, without NaN."""
    given = data(input)
    if given.dtype.kind not in "fc":
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but got {scalar_name(given)}"
        )
    total = nansum(input, dim, keepdim, dtype=dtype)
    some = add_reduce(
        ~np.isnan(given), axis=axes(dim, given.ndim), dtype=np.int64, keepdims=keepdim
    )
    with np.errstate(all="ignore"):
        return div_true(total, wrap(some))


# -- counting -------------------------------------------------------------------------------------
def _count_nonzero(self: Array, dim: Ints | None = None) -> Array:
    return afresh(add_reduce(self != 0, axis=axes(dim, self.ndim), dtype=np.int64), self)


count_p = primitive(kernel=_count_nonzero, axes="dim*")(type("count_nonzero", (), {}))


@function(
    "count_nonzero(Tensor input, int? dim=None)|numpy",
    "count_nonzero(Tensor input, int[] dim)",
    samples="(tensor([0., 1., 2.])); (randn(2,3), dim=1)",
)
def count_nonzero(input: Tensor, dim: int | None) -> Any:
    """How many elements are not zero."""
    return count_p(input, as_dims(dim))


def _unique_2(self: Array, inverse: bool, counts: bool) -> tuple[Array, Array, Array]:
    return _uniques(self.reshape(-1), 0, self.shape, inverse, counts)


def _unique_dim(self: Array, dim: int, inverse: bool, counts: bool) -> tuple[Array, Array, Array]:
    return _uniques(self, wrap_dim(dim, self.ndim), None, inverse, counts)


def _uniques(
    self: Array, axis: int, shape: Shape | None, inverse: bool, counts: bool
) -> tuple[Any, Any, Any]:
    # With indices the sort is stable: the first of equal elements stays, of 0 and -0 too.
    found, _, places, times = np.unique(
        self,
        return_index=True,
        return_inverse=True,
        return_counts=True,
        axis=None if self.ndim == 1 else axis,
        equal_nan=False,
    )
    places = places.reshape(shape) if shape is not None else places.reshape(-1)
    none = np.zeros(0, np.int64)
    return found, places if inverse else none, times if counts else none


def _unique_consecutive(
    self: Array, inverse: bool, counts: bool, dim: int | None = None
) -> tuple[Array, Array, Array]:
    rows = self.reshape(-1, 1) if dim is None else _rows_of(self, wrap_dim(dim, self.ndim))
    new = np.ones(len(rows), bool)
    if len(rows):
        new[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    starts = np.flatnonzero(new)
    places = np.cumsum(new) - 1
    times = np.diff(np.append(starts, len(rows)))
    none = np.zeros(0, np.int64)
    if dim is None:
        found, places = rows[starts, 0], places.reshape(self.shape)
    else:
        found = np.take(self, starts, wrap_dim(dim, self.ndim))
    return found, places if inverse else none, times if counts else none


def _rows_of(self: Any, axis: int) -> Any:
    moved = np.moveaxis(self, axis, 0)
    return moved.reshape(len(moved), -1)


def _distinct(kernel: Callable[..., Any], node: str, refused: str) -> Any:
    """The primitive of a function that finds different elements."""
    facts = {"outputs": "output | inverse counts", "axes": "", "batching": "dynamic"}
    return primitive(kernel=kernel, node=node, refuses={"c": refused}, **facts)


@_distinct(_unique_2, "Unique2Backward0", "unique")
class unique_2:
    self = lambda g: not_differentiable("_unique2")


@_distinct(_unique_dim, "UniqueDimBackward0", "unique_dim")
class unique_dim:
    self = lambda g: not_differentiable("unique_dim")


@_distinct(_unique_consecutive, "UniqueConsecutiveBackward0", "unique")
class unique_consecutive_p:
    self = lambda g: not_differentiable("unique_consecutive")


def _asked(found: Sequence[Tensor], inverse: bool, counts: bool) -> Any:
    kept = [found[0]] + [f for f, want in zip(found[1:], (inverse, counts), strict=True) if want]
    return kept[0] if len(kept) == 1 else tuple(kept)


_FEW = 4096  # edges up to which it costs little to look whether they are in order
_REPETITIONS = "bool return_inverse=False, bool return_counts=False"
_UNIQUE = f"Tensor input, bool sorted=True, {_REPETITIONS}, Any dim=None)"
_CONSECUTIVE = f"Tensor input, {_REPETITIONS}, int? dim=None)"


@function(
    f"_return_output({_UNIQUE}|function -> _unique2(input)",
    f"unique({_UNIQUE}|method -> _unique2(input)",
    python=True,
    samples="(tensor([3., 1., 3.]))",
)
def unique(input: Tensor, sorted: bool, return_inverse: bool, return_counts: bool, dim: Any) -> Any:
    """The different elements, sorted; asked for: where each is, how often. Has no derivative."""
    if dim is None:
        found: Any = unique_2(input, bool(return_inverse), bool(return_counts))
    else:
        found = unique_dim(
            input,
            checked("unique_dim", "int dim", 2, dim),
            bool(return_inverse),
            bool(return_counts),
        )
    return _asked(found, return_inverse, return_counts)


@function(
    f"_consecutive_return_output({_CONSECUTIVE}|function -> unique_consecutive(input)",
    f"unique_consecutive({_CONSECUTIVE}|method -> unique_consecutive(input)",
    python=True,
    samples="(tensor([3., 3., 1., 3.]))",
)
def unique_consecutive(input: Tensor, return_inverse: bool, return_counts: bool, dim: Any) -> Any:
    """The elements without repetitions of the one before. Has no derivative."""
    found = unique_consecutive_p(input, bool(return_inverse), bool(return_counts), dim)
    return _asked(found, return_inverse, return_counts)


# -- covariances ----------------------------------------------------------------------------------
def _weights(name: str, given: Any, floating: bool, observations: int) -> None:
    if given.ndim > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with "
            f"{given.ndim} dimensions"
        )
    kind = data(given).dtype
    if (kind.kind == "f") != floating or kind.kind in "cb":
        wanted = "floating point" if floating else "integral"
        raise RuntimeError(
            f"cov(): expected {name} to have {wanted} dtype but got {name} with {scalar_name(kind)} dtype"
        )
    if given.numel() != observations:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input "
            f"but got {given.numel()} != {observations}"
        )
    refuse_if(given.numel() and data(given).min() < 0, "cov(): {} cannot be negative", name)


def _check_flat(name: str, input: Tensor) -> None:
    if input.ndim > 2:
        raise RuntimeError(
            f"{name}(): expected input to have two or fewer dimensions but got an input with "
            f"{input.ndim} dimensions"
        )


@function(
    "cov(Tensor input, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None)",
    samples="(randn(2,3)); (randn(4)); (randn(2,3), correction=0)",
    primitives=(),
)
def cov(input: Tensor, correction: int, fweights: Tensor | None, aweights: Tensor | None) -> Any:
    """The covariances of the rows; columns are observations."""
    _check_flat("cov", input)
    refuse_if(data(input).dtype.kind == "b", "cov(): bool dtype is not supported for input")
    inside = input.view((1, -1)) if input.ndim < 2 else input
    observations = inside.shape[1]
    weights = None
    if fweights is not None:
        _weights("fweights", fweights, False, observations)
        weights = fweights
    if aweights is not None:
        _weights("aweights", aweights, True, observations)
        weights = aweights if weights is None else weights * aweights
    total: Any = wrap(np.int64(observations)) if weights is None else sum_(weights)
    if weights is not None and not numbers(total).item():
        raise RuntimeError("cov(): weights sum to zero, can't be normalized")
    with np.errstate(all="ignore"):
        average = sum_(inside if weights is None else inside * weights, 1) / total
    if not correction:
        factor = total
    elif weights is not None and aweights is not None:
        factor = total - mul_scalar(sum_(weights * aweights), correction) / total
    else:
        factor = total - correction
    if numbers(factor).item() <= 0:
        warnings.warn(
            "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number "
            "of observations.",
            UserWarning,
            stacklevel=users_level(),
        )
        factor = zeros_like(factor)
    inside = inside - average.unsqueeze(1)
    other = (inside if weights is None else inside * weights).t()
    if is_complex(data(other)):
        other = other.conj()
    products = inside.mm(other)
    if is_complex(data(products)) and inside.shape[0] == 1:  # a variance is real
        products = resolve("complex")(
            products.real, wrap(np.zeros((1, 1), data(products).real.dtype))
        )
    with np.errstate(all="ignore"):
        return div_true(products, factor).squeeze()


@function("corrcoef(Tensor input)", samples="(randn(2,3)); (randn(3,5))")
def corrcoef(input: Tensor) -> Any:
    """Pearson's correlation coefficients of the rows; columns are observations."""
    _check_flat("corrcoef", input)
    c = cov(input)
    if not c.ndim:
        return c / c
    spread = c.diagonal()
    if is_complex(data(c)):
        spread = spread.real
    spread = spread.sqrt()
    c = c / spread.view((-1, 1))
    c = c / spread.view((1, -1))
    if is_complex(data(c)):
        return resolve("complex")(clamp(c.real, -1, 1), clamp(c.imag, -1, 1))
    return clamp(c, -1, 1)


# -- counting into bins ---------------------------------------------------------------------------
@operator(
    samples="(randn(6), 4); (randn(6), bins=4, min=-1, max=1)",
    signature="histc(Tensor input, int bins=100, Scalar min=0, Scalar max=0, *, Tensor out=None)",
    out=(
        "exact: torch.histogram: input tensor and hist tensor should have the same "
        "dtype, but got input {0.c} and hist {1.c}"
    ),
)
class histc:
    """How many elements fall into each of equally wide bins."""

    def forward(self: Array, bins: int = 100, min: Any = 0, max: float = 0) -> Array:
        if bins <= 0:
            raise RuntimeError(
                f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0"
            )
        refused = {"b": "linspace_cpu", "c": "aminmax_cpu"}.get(self.dtype.kind, "histogram_cpu")
        implemented(refused, self, "efd")
        low, high = float(min), float(max)
        if low == high and self.size:
            low, high = float(self.min()), float(self.max())
        if low == high:
            low, high = low - 1, high + 1
        if not (np.isfinite(low) and np.isfinite(high)):
            raise RuntimeError(f"torch.histc: range of [{low:g}, {high:g}] is not finite")
        refuse_if(low > high, "torch.histc: max must be larger than min")
        flat = self.reshape(-1)
        flat = flat[(flat >= low) & (flat <= high)]
        if low == high:  # numbers so large that no step of 1 is seen: all in one bin, as in PyTorch
            return np.bincount([bins // 2] * flat.size, minlength=bins).astype(self.dtype)
        places = np.minimum(((flat - low) * bins / (high - low)).astype(np.int64), bins - 1)
        return np.bincount(places, minlength=bins).astype(self.dtype)


@function(
    "bincount(Tensor input, Tensor? weights=None, int minlength=0)",
    samples="(tensor([1, 0, 1])); (tensor([1, 0]), minlength=4)",
)
def bincount(input: Tensor, weights: Tensor | None, minlength: int) -> Any:
    """How often each non-negative integer occurs."""
    places = data(input)
    if places.dtype.kind not in "iu":
        raise dtypes.not_implemented("bincount_cpu", places)
    if places.ndim != 1 or (batched_arrays.numbers(places) < 0).any():
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is not None and weights.shape != input.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    refuse_if(minlength < 0, "minlength should be >= 0")
    if is_batched([input, weights]):
        most = int(batched_arrays.numbers(places).max(initial=-1)) + 1
        if minlength < most:  # so many may differ from entry to entry
            raise RuntimeError(DYNAMIC.format("bincount"))
    if weights is None:
        return wrap(np.bincount(places, minlength=minlength))
    kind = np.float32 if data(weights).dtype == np.float32 else np.float64
    return wrap(np.bincount(places, data(weights), minlength).astype(kind))


def _sides(side: str | None, right: bool) -> str:
    if side not in (None, "left", "right"):
        raise RuntimeError(
            f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}"
        )
    if side == "left" and right:
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while "
            "right was True"
        )
    return "right" if right or side == "right" else "left"


def _array(value: Array | Number) -> Any:
    return value if is_batched(value) else np.asarray(value)


def _place(edges: Array, values: Array, side: Any) -> Any:
    """PyTorch's binary search: what it gives where edges are NaN or in disorder, too."""
    shape = np.shape(values)
    values = np.reshape(values, -1)
    few = type(edges) is np.ndarray and 1 < len(edges) <= _FEW and edges.dtype == values.dtype
    if few and np.count_nonzero(edges[1:] >= edges[:-1]) == len(edges) - 1:  # not so of NaN
        return edges.searchsorted(values, side).reshape(shape)[()]
    start = np.zeros(values.shape, np.int64)
    end = np.full(values.shape, len(edges), np.int64)
    while (open_ := start < end).any():
        middle = start + (end - start) // 2
        at = edges[np.where(open_, middle, 0)]
        below = ~(at > values if side == "right" else at >= values)
        start = np.where(open_ & below, middle + 1, start)
        end = np.where(open_ & ~below, middle, end)
    return start.reshape(shape)[()]


def _searched(edges: Array, values: Any, side: str, sorter: Any, out_int32: bool) -> Any:
    if is_batched([edges, values, sorter]):
        if not is_batched([edges, sorter]) and edges.ndim == 1:
            return BatchedArray(
                _searched(edges, values.every, side, sorter, out_int32), values.level
            )
        return each(_searched, [edges, values, side, sorter, out_int32], {})
    if not values.ndim and edges.ndim != 1:
        raise RuntimeError(
            "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is "
            f"1, but we got boundaries tensor dim({edges.ndim}) and input value's dim(0) numel(1)"
        )
    if not edges.ndim:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension"
        )
    meeting = np.result_type(edges, values)
    if meeting.kind in "cb" and values.size and edges.size:
        raise dtypes.not_implemented("searchsorted_out_cpu", meeting)
    if edges.ndim > 1 and edges.shape[:-1] != values.shape[:-1]:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 "
            "dimensions of boundaries tensor and input value tensor must match, but we got "
            f"boundaries tensor {list(edges.shape)} and input value tensor {list(values.shape)}"
        )
    if sorter is not None:
        edges = np.take_along_axis(edges, sorter, -1)
    kind = np.int32 if out_int32 else np.int64
    if edges.ndim == 1:
        found = _place(edges, values, side)
        return np.asarray(found, kind) if np.ndim(found) else kind(found)
    if not values.size:
        return np.zeros(values.shape, kind)
    lines = zip(
        edges.reshape(-1, edges.shape[-1]), values.reshape(-1, values.shape[-1]), strict=True
    )
    made = [_place(e, v, side) for e, v in lines]
    return np.array(made, kind).reshape(values.shape)


@function(
    "searchsorted(Tensor sorted_sequence, Tensor input, *, bool out_int32=False, bool "
    "right=False, str? side=None, Tensor? sorter=None, Tensor out=None)|function",
    "searchsorted(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool "
    "right=False, str? side=None, Tensor? sorter=None, Tensor out=None)|function",
    samples="(tensor([1., 3., 5.]), tensor([0., 3., 6.]))",
    out=(
        "exact: torch.searchsorted(): output tensor's dtype is wrong, it can only be "
        "Int(int32) or Long(int64) depending on whether out_int32 flag is True, but "
        "we got output tensor's dtype {1} and out_int32 flag is {0.is_int}"
    ),
)
def searchsorted(
    sorted_sequence: Tensor,
    input: Tensor | Number,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Any:
    """Where the values would be inserted into the sorted sequence."""
    order = None if sorter is None else data(sorter)
    edges, values = data(sorted_sequence), _array(data(input))
    return wrap(_searched(edges, values, _sides(side, right), order, out_int32))


@function(
    "bucketize(Tensor input, Tensor boundaries, *, bool out_int32=False, bool right=False, "
    "Tensor out=None)|function",
    "bucketize(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False)|function",
    samples="(tensor([0., 3., 6.]), tensor([1., 3., 5.]))",
    out=(
        "exact: torch.searchsorted(): output tensor's dtype is wrong, it can only be "
        "Int(int32) or Long(int64) depending on whether out_int32 flag is True, but "
        "we got output tensor's dtype {1} and out_int32 flag is {0.is_int}"
    ),
)
def bucketize(
    input: Tensor | Number, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Any:
    """Which interval between the boundaries each value falls into."""
    edges = data(boundaries)
    if edges.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({edges.ndim})")
    return wrap(_searched(edges, _array(data(input)), _sides(None, right), None, out_int32))


_histogram_type = return_type("histogram", "hist bin_edges")


@primitive("dynamic", node="NotImplemented", outputs="hist bin_edges")
class histogram_p:
    def forward(
        self: Array, weight: Array | None, bins: Value | int, range: Any, density: bool
    ) -> tuple[Array, Array]:
        implemented("histogramdd" if range is None else "histogram_cpu", self, "fd")
        limits = None if range is None else tuple(range)
        if isinstance(bins, int):
            if bins <= 0:
                raise RuntimeError(
                    f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0"
                )
            low, high = limits or ((self.min(), self.max()) if self.size else (0, 1))
            if not (np.isfinite(low) and np.isfinite(high)):
                raise RuntimeError(
                    f"torch.histogramdd: dimension 0's range [{low:g}, {high:g}] is not finite"
                )
            if low > high:
                raise RuntimeError(
                    "torch.histogramdd: min should not exceed max, but got "
                    f"min {low:g} max {high:g} for dimension 0"
                )
            if low == high:
                low, high = low - 0.5, high + 0.5
            # In the input's own dtype: a value on an edge belongs to the bin that this edge begins.
            span = resolve("linspace")(
                float(low), float(high), bins + 1, dtype=dtypes.of(self.dtype)
            )
            bins = span.array
        else:  # what lies below, above, or beside a NaN is in no bin
            inside = (self >= bins[0]) & (self <= bins[-1])
            self, weight = self[inside], None if weight is None else weight[inside]
        counts, edges = np.histogram(self, bins, weights=weight, density=density)
        return counts.astype(self.dtype), edges.astype(self.dtype)

    self = lambda g: g
    weight = lambda g: g


@function(
    "histogram(Tensor input, Tensor bins, *, Tensor? weight=None, bool density=False, Tensor[] out=None)",
    "histogram(Tensor input, int bins=100, *, float[]? range=None, Tensor? weight=None, "
    "bool density=False, Tensor[] out=None)",
    samples="(randn(6), 4); (randn(6), 4, range=(-1., 1.))",
    out=(
        "exact: torch.histogram: input tensor and hist tensor should have the same "
        "dtype, but got input {0.c} and hist {1.c} | exact: torch.histogram: input "
        "tensor and bin_edges tensor should have the same dtype, but got input {0.c} "
        "and bin_edges {1.c} for dimension 0"
    ),
)
def histogram(
    input: Tensor,
    bins: Tensor | int,
    *,
    range: Any = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Any:
    """How many elements fall into each bin, and the edges of the bins; has no derivative."""
    edges = bins if isinstance(bins, int) else data(bins)
    return _histogram_type(histogram_p(input, weight, edges, range, density))


_AMONG = "*, bool assume_unique=False, bool invert=False"


@function(
    f"isin(Tensor elements, Tensor test_elements, {_AMONG}, Tensor out=None)|function",
    f"isin(Scalar element, Tensor test_elements, {_AMONG}, Tensor out=None)|function",
    f"isin(Tensor elements, Scalar test_element, {_AMONG}, Tensor out=None)|function",
    samples="(tensor([1, 2, 3]), tensor([2, 3]))",
    out="exact",
)
def isin(*, assume_unique: bool, invert: bool, **operands: Any) -> Any:
    """True where an element is among the others."""
    elements, among = (data(o) for o in operands.values())
    for own in (elements, among):
        value = np.asarray(own) if isinstance(own, (bool, int, float, complex)) else own
        if value.dtype.kind in "bc":
            raise RuntimeError(
                f"Unsupported input type encountered for isin(): {scalar_name(value)}"
            )
    found = np.isin(elements, among, assume_unique, invert)
    return wrap(found if found.ndim else found[()])
