"""Sorting, order statistics and quantiles.

Among equal elements, the same one as in PyTorch is selected and gets the gradient: see `system.selection`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isnan
from typing import Any

import numpy as np

from gradcli.engine.core.batched_arrays import anywhere, is_batched
from gradcli.engine.core.declaration import Array, Number, Shape, Value
from gradcli.engine.core.primitive import VjpRules
from gradcli.engine.core.switch import Order, Ranked
from gradcli.engine.core.tensor import Tensor, wrap, wrap_dim
from gradcli.engine.registry import batching_helpers
from gradcli.engine.registry.dimensions import ABSENT
from gradcli.engine.registry.named_results import named_results, results, return_type
from gradcli.engine.registry.rule_helpers import data, flip, gather, implemented, narrow, refuse_if
from gradcli.engine.registry.sample_calls import ALONG, DIMS
from gradcli.engine.registry.table import Primitive, function, overloads, primitive
from gradcli.engine.system import dtypes, selection
from gradcli.engine.system.array_memory import Numberless, afresh, in_its_order
from gradcli.engine.system.cascaded_sums import add_reduce
from gradcli.operators.movement.inplace_writes import squeeze_dim_p, transpose_p, unsqueeze_p
from gradcli.operators.primitives.arithmetic import mul_scalar
from gradcli.operators.primitives.elementwise_pairs import lerp
from gradcli.operators.primitives.extrema import selected_backward, shared_evenly

FAMILY = "statistics"

# -- sorting --------------------------------------------------------------------------------------
# A longer slice with ties is sorted stably, not as libstdc++ would.
_EMULATED = 1 << 16
_SORTED = 256  # elements that are sorted as fast as some of them are picked


def _ordered(self: Array, axis: int, descending: bool) -> Any:
    """A stable argsort along an axis; NaN is the largest."""
    if not descending:
        return np.argsort(self, axis=axis, kind="stable")
    order = flip(np.argsort(flip(self, axis), axis=axis, kind="stable"), axis)
    return self.shape[axis] - 1 - order


def _comparisons(values: list[Any]) -> tuple[selection.Less, selection.Less]:
    """The functions (less, greater) of two positions; NaN is the largest."""
    if any(v != v for v in values):

        def less(i: int, j: int) -> bool:
            return values[i] < values[j] or (isnan(values[j]) and not isnan(values[i]))

    else:

        def less(i: int, j: int) -> bool:
            return bool(values[i] < values[j])

    return less, lambda i, j: less(j, i)


def _rows(self: Array, axis: int) -> Any:
    """The slices along an axis as the rows of a matrix."""
    moved = np.moveaxis(self, axis, -1)
    return moved.reshape(-1, moved.shape[-1])


def _back(rows: Array, shape: Shape, axis: int) -> Any:
    """The inverse of `_rows`; the last dimension may have another size."""
    rest = shape[:axis] + shape[axis + 1 :]
    return np.moveaxis(rows.reshape(*rest, rows.shape[-1]), -1, axis).copy()


def _choose(
    self: Array, axis: int, order: Array, tied: Array, choose: Callable[[list[Any]], Any]
) -> Any:
    """`order`, the indices of each slice, with those of slices that have ties chosen by `choose`."""
    if not tied.any():
        return order
    rows, found = _rows(self, axis), _rows(order, axis).copy()
    for at in np.flatnonzero(np.moveaxis(tied, axis, -1)):
        found[at] = choose(rows[at].tolist())
    return _back(found, self.shape, axis)


def _repeats(values: Array, axis: int) -> Any:
    """A mask of the slices of sorted values that contain equal ones (NaN equals NaN); False for none."""
    size = values.shape[axis]
    before, after = narrow(values, axis, 0, max(size - 1, 0)), narrow(values, axis, 1, size)
    same = before == after
    plain = type(values) is np.ndarray
    if values.dtype.kind == "f" and not (
        plain and np.count_nonzero(values == values) == values.size
    ):
        same |= np.isnan(before) & np.isnan(after)
    if plain and not np.count_nonzero(same):
        return np.False_
    return np.logical_or.reduce(same, axis=axis, keepdims=True)


def _where(self: Array, values: Array) -> Any:
    """A mask of the elements that equal the values; NaN equals NaN."""
    same = self == values
    return same | (np.isnan(self) & np.isnan(values)) if self.dtype.kind == "f" else same


def _ranked(self: Array, axis: int, rank: int) -> Any:
    """The element of this rank in each slice."""
    return np.take(np.partition(self, rank, axis), [rank], axis)


def _sort(self: Array, dim: int = -1, descending: bool = False) -> tuple[Array, Array]:
    return _in_order(self, dim, descending, False)


def _sort_stable(
    self: Array, dim: int = -1, descending: bool = False, *, stable: bool | None = None
) -> tuple[Array, Array]:
    return _in_order(self, dim, descending, bool(stable))


def _in_order(self: Array, dim: int, descending: bool, stable: bool) -> tuple[Any, Any]:
    values, order = _sorted(self, dim, descending, stable)
    return in_its_order(values, self), in_its_order(order, self)


def _sorted(self: Array, dim: int, descending: bool, stable: bool) -> tuple[Any, Any]:
    axis = wrap_dim(dim, self.ndim)
    refuse_if(self.dtype.kind == "c", " Sort does not support complex dtypes on CPU")
    if not self.ndim:
        return self.copy(), np.int64(0)
    size = self.shape[axis]

    def choose(values: list[Any]) -> list[int]:
        positions = list(range(size))
        selection.sort(positions, size, _comparisons(values)[descending])
        return positions

    if type(self) is not np.ndarray and (stable or size <= 16):  # recorded: in order, ties or not
        order = _ordered(self, axis, descending)
        return gather(self, axis, order), order
    order = np.argsort(self, axis=axis)
    order = flip(order, axis).copy() if descending else order
    values = gather(self, axis, order)
    tied = _repeats(values, axis)
    if tied.any():
        order = _ordered(self, axis, descending)
        if not stable and 16 < size <= _EMULATED:
            order = _choose(self, axis, order, tied, choose)
        values = gather(self, axis, order)
    return values, order


def _placed_back(g: Value, self_sym_sizes: Shape, dim: int, indices: Value) -> Any:
    """As `selected_backward`, for results that keep the dimension."""
    return selected_backward(g, self_sym_sizes, dim, indices, True)


def _selecting_primitive(
    kernel: Callable[..., Any],
    name: str,
    node: str,
    symbolic: str = "",
    rule: Callable[..., Any] = selected_backward,
    switch: Any = None,
) -> Primitive:
    """A primitive (values, indices) = f(self, ..., dim, ...)."""
    facts = {"outputs": "values | indices", "axes": "dim", "symbolic": symbolic}
    return primitive(kernel=kernel, node=node, writes="apart", switch=switch, **facts)(
        type(name, (), {"__module__": __name__, "self": rule})
    )


_BY_SIZE = Order(lambda descending: descending, "Q17b")
sort_p = _selecting_primitive(_sort, "sort_p", "SortBackward0", "sort:", _placed_back, _BY_SIZE)
sort_stable_p = _selecting_primitive(
    _sort_stable,
    "sort_stable_p",
    "SortBackward1",
    "sort: dim descending stable",
    _placed_back,
    _BY_SIZE,
)
_sort_type = return_type("sort", "values indices")


@function(
    "sort(Tensor input, *, bool? stable, int dim=-1, bool descending=False, Tensor[]? out=None)",
    "sort(Tensor input, int dim=-1, bool descending=False, *, Tensor[]? out=None)",
    overlap="whole whole",
    samples=f"(randn(2,3)); {ALONG}; (randn(4), descending=True)",
    out="exact",
)
def sort(input: Tensor, dim: int, descending: bool, stable: Any = ABSENT) -> Any:
    """The elements in order along a dimension, and where they were; NaN counts as the largest."""
    if stable is ABSENT:
        return _sort_type(sort_p(input, dim, descending))
    return _sort_type(sort_stable_p(input, dim, descending, stable=stable))


@function(
    "argsort(Tensor input, *, bool stable, int dim=-1, bool descending=False, Tensor? out=None)",
    "argsort(Tensor input, int dim=-1, bool descending=False)",
    samples="(randn(2,3)); (randn(4), descending=True)",
    primitives=(),
)
def argsort(input: Tensor, dim: int, descending: bool, stable: bool = False) -> Any:
    """The indices that sort the elements along a dimension."""
    if is_batched(input) or isinstance(data(input), Numberless):
        given = (input, dim, descending)
        return (sort_stable_p(*given, stable=True) if stable else sort_p(*given))[1]
    return _indices_only(_in_order(data(input), dim, descending, stable)[1])


def _indices_only(found: Array) -> Tensor:
    return wrap(np.asarray(found, np.int64) if np.ndim(found) else np.int64(found))


@function(
    "msort(Tensor input, *, Tensor? out=None)",
    overlap="whole whole",
    samples="(randn(2,3)); (randn(4))",
    out="exact",
)
def msort(input: Tensor) -> Any:
    """The elements in order along the first dimension."""
    return sort_p(input, 0, False)[0]


# -- order statistics -----------------------------------------------------------------------------
def _check_reduced(name: str, self: Array, axis: int) -> None:
    if self.ndim and not self.shape[axis]:
        raise IndexError(f"{name}(): Expected reduction dim {axis} to have non-zero size.")


def _taken(self: Array, at: Array, axis: int, keepdim: bool) -> tuple[Any, Any]:
    """(values, indices) for indices with the reduced dimension."""
    values = gather(self, axis, at)
    if keepdim:
        return values, at
    return values.squeeze(axis)[()], at.squeeze(axis)[()]


def _middle(name: str, self: Array) -> None:
    if self.dtype.kind in "cb":
        raise dtypes.not_implemented(name, self)


def _median_of(self: Array, skip: bool) -> Any:
    """The lower median of all elements; of the numbers among them where `skip`."""
    _middle("median_cpu", self)
    flat = self.reshape(-1)
    if not flat.size:
        # Of integers what C++ makes of NaN.
        wide = self.dtype.kind == "i" and self.dtype.itemsize >= 4
        least = np.iinfo(self.dtype).min if wide else 0
        return self.dtype.type(np.nan if self.dtype.kind == "f" else least)
    nans = int(np.isnan(flat).sum()) if flat.dtype.kind == "f" else 0
    if nans and (not skip or nans == flat.size):
        return self.dtype.type(np.nan)
    at = (flat.size - nans - 1) // 2
    return np.partition(flat, at)[at]


def _occurrence(self: Array, axis: int, rank: int) -> Any:
    """The index of this rank in the stable order of each slice."""
    value = _ranked(self, axis, rank)
    nth = rank - add_reduce(self < value, axis=axis, dtype=np.int64, keepdims=True)
    seen = np.add.accumulate(self == value, axis=axis, dtype=np.int64)
    return np.argmax(seen == nth + 1, axis=axis, keepdims=True)


def _median_with_nan(self: Array, axis: int, skip: bool) -> Any:
    """The indices of medians where NaN occurs: the first NaN, or the median of the numbers."""
    order, nan = np.argsort(self, axis=axis, kind="stable"), np.isnan(self)
    size = self.shape[axis]
    nans = add_reduce(nan, axis=axis, keepdims=True)
    if skip:
        return gather(order, axis, np.maximum(size - nans - 1, 0) // 2)
    at = np.take(order, [(size - 1) // 2], axis)
    return np.where(nans > 0, np.argmax(nan, axis=axis, keepdims=True), at)


def _median_along(name: str, skip: bool) -> Any:
    def kernel(self: Array, dim: int, keepdim: bool = False) -> tuple[Array, Any]:
        axis = wrap_dim(dim, self.ndim)
        _middle("median_out", self)
        _check_reduced("median", self, axis)
        if not self.ndim:
            return self.copy(), np.int64(0)
        if self.dtype.kind == "f" and np.isnan(self).any():
            at = _median_with_nan(self, axis, skip)
        else:
            at = _occurrence(self, axis, (self.shape[axis] - 1) // 2)
        return _taken(self, at, axis, keepdim)

    return kernel


def _middle_rank() -> Any:
    return lambda size: (size - 1) // 2


@primitive(node="MedianBackward0", symbolic="median:", switch=Ranked(_middle_rank, "Q17"))
class median_all:
    forward = lambda self: _median_of(self, False)
    self = shared_evenly


@primitive(node="NanmedianBackward0")
class nanmedian_all:
    forward = lambda self: _median_of(self, True)
    self = shared_evenly


def _medians(name: str, whole: VjpRules, skip: bool, doc: str) -> Any:
    along = _selecting_primitive(
        _median_along(name, skip),
        f"{name}_dim",
        f"{name.capitalize()}Backward1",
        whole.symbolic,
        switch=None if skip else Ranked(_middle_rank),
    )
    whole.batching = batching_helpers.whole(lambda: along)
    return overloads(
        f"{name}(Tensor input) -> {whole.name}",
        f"{name}(Tensor input, int dim, bool keepdim=False, *, Tensor[]? out=None) -> selected",
        targets=(whole, named_results(name, along)),
        doc=doc,
        primitives=[along],
        samples=f"(randn(2,3)); (randn(())); {DIMS}",
        out=(
            "exact: Expected tensor for 'values' to have the same type as tensor for argument #2 "
            "'self'; but type {1.tensor} does not equal {0.tensor} (while checking arguments for median)"
            " | exact: Expected tensor for argument #1 'indices' to have scalar type Long; but got "
            "{1.tensor} instead (while checking arguments for median)"
        ),
    )


median = _medians(
    "median", median_all, False, "The lower median of all elements; with a dim also its index."
)
nanmedian = _medians("nanmedian", nanmedian_all, True, "The `median` of the numbers, without NaN.")


def _kthvalue(self: Array, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Array, Any]:
    axis = wrap_dim(dim, self.ndim)
    size = self.shape[axis] if self.ndim else 1
    if not size:
        raise IndexError(f"kthvalue(): Expected reduction dim {axis} to have non-zero size.")
    if not 1 <= k <= size:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {axis}")
    if not self.ndim:
        return self.copy(), np.int64(0)
    _middle("kthvalue_cpu", self)

    def choose(values: list[Any]) -> list[int]:
        positions = list(range(size))
        selection.quick_select(positions, k - 1, _comparisons(values)[1])
        return positions[k - 1 : k]

    if not self.size:
        empty = np.zeros([1 if d == axis else n for d, n in enumerate(self.shape)], np.int64)
        return _taken(self, empty, axis, keepdim)
    same = _where(self, _ranked(self, axis, k - 1))
    tied = add_reduce(same, axis=axis, dtype=np.int64, keepdims=True) > 1
    order = np.argmax(same, axis=axis, keepdims=True)
    return _taken(self, _choose(self, axis, order, tied, choose), axis, keepdim)


kthvalue_p = _selecting_primitive(
    _kthvalue, "kthvalue", "KthvalueBackward0", switch=Ranked(lambda k: lambda size: k - 1)
)
kthvalue = results(
    "kthvalue(Tensor input, int k, int dim=-1, bool keepdim=False, *, Tensor[]? out=None)",
    kthvalue_p,
    doc="The k-th smallest element along a dimension, and its index.",
    samples="(randn(2,3), 2); (randn(2,3), 1, 0); (randn(()), 1)",
    out=(
        "exact: output values must be of same type as input | exact: output indices "
        "must be of scalar type Long"
    ),
)


def _mode(self: Array, dim: int = -1, keepdim: bool = False) -> tuple[Array, Any]:
    axis = wrap_dim(dim, self.ndim)
    _check_reduced("mode", self, axis)
    implemented("mode_cpu", self, "efd?Bbhilq")
    if not self.ndim:
        return self.copy(), np.int64(0)

    def choose(values: list[Any]) -> list[int]:
        positions = list(range(len(values)))
        selection.sort(positions, len(positions), lambda i, j: values[i] < values[j])
        best, times, found = 0, 0, 0
        for n, at in enumerate(positions, 1):
            times += 1
            if n == len(positions) or values[at] != values[positions[n]]:
                if times > best:
                    best, found = times, at
                times = 0
        return [found]

    tied = _repeats(np.sort(self, axis=axis), axis)
    if self.dtype.kind == "f":
        tied |= np.isnan(self).any(axis=axis, keepdims=True)
    order = np.argmin(self, axis=axis, keepdims=True)
    return _taken(self, _choose(self, axis, order, tied, choose), axis, keepdim)


mode_p = _selecting_primitive(_mode, "mode", "ModeBackward0")
mode = results(
    "mode(Tensor input, int dim=-1, bool keepdim=False, *, Tensor[]? out=None)",
    mode_p,
    doc="The most frequent element along a dimension (the smallest such), and an index of it.",
    samples="(randn(2,3)); (tensor([3., 1., 3., 1.])); (randn(2,3), 0)",
    out=(
        "exact: expected scalar type '{0}' but got '{1}' for values output | exact: "
        "expected scalar type '{0}' but got '{1}' for indices output"
    ),
)


def _leading(self: Array, axis: int, k: int, largest: bool) -> tuple[Any, Any]:
    """(the indices of the first k elements in order, a mask of slices whose ties leave a choice)."""
    size = self.shape[axis]
    some = min(k + 1, size)  # one more: what equals it may take its place
    if size <= _SORTED:
        order = narrow(_ordered(self, axis, largest), axis, 0, some)
        values = gather(self, axis, order)
    else:
        rank = size - some if largest else some - 1
        near = narrow(np.argpartition(self, rank, axis), axis, rank if largest else 0, some)
        values = gather(self, axis, near)
        within = _ordered(values, axis, largest)
        order, values = gather(near, axis, within), gather(values, axis, within)
    return narrow(order, axis, 0, k).copy(), _repeats(values, axis)


def _topk(
    self: Array, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Array, Any]:
    axis = wrap_dim(dim, self.ndim)
    size = self.shape[axis] if self.ndim else 1
    refuse_if(not 0 <= k <= size, "selected index k out of range")
    if self.dtype.kind in "cb":
        words = (
            "topk does not support bool"
            if self.dtype.kind == "b"
            else " topk does not support complex"
        )
        raise RuntimeError(f"{words} dtypes on CPU")
    if not self.ndim:
        return self.copy(), np.int64(0)

    def choose(values: list[Any]) -> list[int]:
        positions = list(range(size))
        before = _comparisons(values)[largest]
        if k * 64 <= size:
            selection.partial_sort(positions, 0, k, size, before)
        else:
            selection.nth_element(positions, k - 1, before)
            if sorted:
                selection.sort(positions, k - 1, before)
        return positions[:k]

    if not k:
        order = np.zeros([0 if d == axis else n for d, n in enumerate(self.shape)], np.int64)
    elif sorted:
        order, tied = _leading(self, axis, k, largest)
        order = _choose(self, axis, order, tied, choose)
    else:
        rows = np.array([choose(each.tolist()) for each in _rows(self, axis)], np.int64)
        order = _back(rows.reshape(-1, k), self.shape, axis)
    return afresh(gather(self, axis, order), self), afresh(order, self)


topk_p = _selecting_primitive(
    _topk, "topk_p", "TopkBackward0", "topk:", _placed_back, Order(lambda largest: largest, "K17")
)
topk_p.batching = "first_elements"
topk = results(
    "topk(Tensor input, int k, int dim=-1, bool largest=True, bool sorted=True, *, Tensor[]? out=None)",
    topk_p,
    doc="The k largest (or smallest) elements along a dimension, and their indices.",
    samples="(randn(2,3), 2); (randn(2,3), 1, 0); (randn(5), 2, largest=False); (randn(()), 1)",
    out="exact",
)


# -- quantiles ------------------------------------------------------------------------------------
_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(
    name: str, input: Tensor, q: Any, dim: int | None, keepdim: bool, interpolation: str, skip: bool
) -> Any:
    if interpolation not in _INTERPOLATIONS:
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but "
            f"got {interpolation}"
        )
    kind = data(input).dtype
    q = _quantile_points(name, input, q)
    at = 0 if dim is None else wrap_dim(dim, input.ndim)
    shape = list(input.shape)
    if dim is None:
        ordered = sort_p(input.flatten(), -1, False)[0]
        shape = [1] * (input.ndim if keepdim else 0)
    elif at == input.ndim - 1:
        ordered = sort_p(input, -1, False)[0]
    else:
        ordered = sort_p(input.unsqueeze(-1).transpose(at, -1), -1, False)[0]
    if dim is not None and input.ndim:
        shape[at : at + 1] = [1] if keepdim else []
    ordered = ordered.view((*shape, ordered.shape[-1]))
    ranks = _ranks(q, ordered, skip)
    if interpolation in ("lower", "higher", "nearest"):
        ranks = {"lower": np.floor, "higher": np.ceil, "nearest": np.rint}[interpolation](ranks)
    below = _whole(np.trunc(data(ranks)))
    values = ordered.gather(-1, below)
    if interpolation in ("linear", "midpoint"):
        half = wrap(np.full(ranks.shape, 0.5, kind))
        weights = half if interpolation == "midpoint" else ranks - below
        above = _whole(np.ceil(data(ranks)))
        values = lerp(values, ordered.gather(-1, above), weights)
    if not q.ndim:
        return squeeze_dim_p(values, -1)
    return squeeze_dim_p(transpose_p(unsqueeze_p(values, 0), 0, -1), -1)


def _whole(ranks: Array) -> Tensor:
    return wrap(ranks.astype(np.int64))


def _quantile_points(name: str, input: Tensor, q: Any) -> Any:
    """`q` as a tensor of numbers between 0 and 1, of the input's dtype."""
    name = "quantile"  # also in PyTorch's errors of nanquantile
    numbers = data(input)
    if isinstance(q, (int, float)):
        refuse_if(not 0 <= q <= 1, "{}() q must be in the range [0, 1] but got {:g}", name, q)
        q = wrap(np.asarray(q, numbers.dtype if numbers.dtype.kind == "f" else np.float64)[()])
    refuse_if(not numbers.size, "{}() input tensor must be non-empty", name)
    refuse_if(q.ndim > 1, "{}() q must be a scalar or 1D tensor", name)
    if numbers.dtype not in (np.float32, np.float64):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    points = data(q)
    if points.dtype != numbers.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    if anywhere(~((points >= 0) & (points <= 1))):
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
    return q


def _ranks(points: Tensor, ordered: Tensor, skip: bool) -> Any:
    """The (fractional) rank of each quantile in the sorted slices; NaN makes it NaN, unless skipped."""
    nan = np.isnan(data(ordered))
    last = nan.shape[-1] - 1
    if skip:
        ranks = points * wrap((~nan).sum(axis=-1, keepdims=True) - 1)
        return ranks.masked_fill(ranks < 0, 0)
    ranks = mul_scalar(points, last)
    spoiled = nan.any(axis=-1, keepdims=True)
    shape = np.broadcast_shapes(ranks.shape, spoiled.shape)
    if tuple(ranks.shape) != shape:
        ranks = ranks.expand(shape)
    return ranks.masked_fill(wrap(np.broadcast_to(spoiled, shape)), last)


_QUANTILES = (
    "(randn(2,3), 0.3); (randn(2,3), 0.5, dim=1); (randn(2,3), 0.7, 0, True); "
    "(randn(5), tensor([0.3, 0.6])); (randn(5), 0.3, interpolation='nearest')"
)


def _quantiles(name: str, skip: bool, doc: str) -> Any:
    """`NAME`; skip: NaN is left out."""

    def body(
        input: Tensor, q: Tensor | Number, dim: int | None, keepdim: bool, interpolation: str
    ) -> Any:
        return _quantile(name, input, q, dim, keepdim, interpolation, skip)

    body.__doc__, body.__module__ = doc, __name__
    options = "int? dim=None, bool keepdim=False, *, str interpolation='linear', Tensor? out=None)"
    kinds = [f"{name}(Tensor input, {kind} q, {options}" for kind in ("Tensor", "float")]
    facts: Any = {"primitives": [sort_p], "overlap": "any any", "samples": _QUANTILES}
    facts["out"] = "exact: quantile() out tensor must be same dtype as the input tensor"
    return function(*kinds, name=name, **facts)(body)


quantile = _quantiles(
    "quantile", False, "The q-th quantiles of all elements, or along a dimension; q from 0 to 1."
)
nanquantile = _quantiles("nanquantile", True, "The `quantile` of the numbers, without NaN.")
