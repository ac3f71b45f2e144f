"""Maxima and minima, and their indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.engine.core.batched_arrays import BatchedArray
from gradcli.engine.core.declaration import Array, DType, Ints, Shape, Value
from gradcli.engine.core.switch import Ties
from gradcli.engine.core.tensor import Tensor, wrap, wrap_dim
from gradcli.engine.registry import batching_helpers
from gradcli.engine.registry.dimensions import axes, maximum_reduce, minimum_reduce
from gradcli.engine.registry.named_results import named_results, results
from gradcli.engine.registry.rule_helpers import (
    constant,
    gather,
    numbers,
    refuse_if,
    scale_by_count,
    scatter,
    unrecorded,
    unsqueeze,
    zeros_like,
)
from gradcli.engine.registry.sample_calls import DIMS, REDUCED, TUPLES
from gradcli.engine.registry.table import operator, overloads, primitive, resolve
from gradcli.engine.system import dtypes
from gradcli.engine.system.array_memory import afresh

FAMILY = "reductions"


# -- the largest and the smallest -----------------------------------------------------------------
def _check_order(name: str, self: Array, kernel: str) -> None:
    if self.dtype.kind == "c":
        raise dtypes.not_implemented(kernel, self)


def _check_some(name: str, self: Array, dims: Ints | None, error: Any) -> None:
    """Raise PyTorch's error if there are no elements to reduce."""
    if self.size:
        return
    if not dims:
        raise error(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0."
            + ("" if error is IndexError else " Specify the reduction dim with the 'dim' argument.")
        )
    for d in dims:
        if self.ndim and not self.shape[d]:
            raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")


def _extreme(ufunc: np.ufunc, name: str) -> Any:
    def kernel(self: Array, dim: Ints = (), keepdim: bool = False) -> Array:
        _check_order(name, self, f"{name[1:]}_values_cpu")
        axis = axes(dim, self.ndim)
        _check_some(name, self, dim, RuntimeError)
        return afresh(ufunc.reduce(self, axis=axis, keepdims=keepdim), self)

    return kernel


def _restore(value: Value, dim: Ints, keepdim: bool) -> Any:
    """`value` with the reduced dimensions put back, of size 1, recorded as one view."""
    if keepdim:
        return value
    total = value.ndim + len(dim)
    wanted = {d % total for d in dim} if total else set()
    sizes = iter(value.shape)
    return value.reshape(tuple([1 if d in wanted else next(sizes) for d in range(total)]))


def extreme_backward(g: Value, self: Value, result: Value, dim: Ints, keepdim: bool) -> Any:
    if not self.ndim:
        dim = ()
    mask = _restore(result, dim, keepdim) == self
    return scale_by_count(_restore(g, dim, keepdim), mask, dim)


def _ties(ufunc: np.ufunc) -> Ties:
    return Ties(True, "Q4") if ufunc is np.maximum else Ties(False, "Q17c")


def _taken_by_extremes(input: Tensor, other: Any = None, *_: Any) -> str:
    """The dtypes of `out` for all elements, for the larger of two tensors, and along a dim."""
    if other is None:
        return (
            "cast: Expected canCast( typeMetaToScalarType(self.dtype()), "
            "typeMetaToScalarType(out.dtype())) to be true, but got false.  (Could this error message be "
            "improved?  If so, please report an enhancement request to PyTorch.)"
        )
    return "" if isinstance(other, Tensor) else "exact"


def _of_extremes(ufunc: np.ufunc, name: str, numpy: tuple[Any, ...]) -> Any:
    """The decorator that defines `amax` or `amin` from its VJP rule."""
    return operator(
        kernel=_extreme(ufunc, name),
        node=f"{name.capitalize()}Backward0",
        numpy=numpy,
        switch=_ties(ufunc),
        samples=f"{REDUCED}; {DIMS}; {TUPLES}",
        signature=f"{name}(Tensor input, int[1] dim=[], bool keepdim=False, *, Tensor? out=None)",
        out=(
            "exact: Expected the dtype for input and out to match, but got {0} for input's dtype and "
            "{1} for out's dtype."
        ),
    )


@_of_extremes(np.maximum, "amax", (np.max, np.amax))
class amax:
    """The largest element of all or along dimensions; equal ones share the gradient."""

    self = extreme_backward


@_of_extremes(np.minimum, "amin", (np.min, np.amin))
class amin:
    """The smallest element of all or along dimensions; equal ones share the gradient."""

    self = extreme_backward


def _equal_or_nan(self: Value, result: Value) -> Any:
    missing = np.isnan(numbers(result))
    if isinstance(missing, BatchedArray):  # perhaps in some entries only
        return (self == result) | (np.isnan(self) & wrap(missing))
    if type(missing) not in (np.bool_, np.ndarray):  # of a recorded array: not known yet
        return (self == result) | (np.isnan(self) & constant(missing, self))
    return np.isnan(self) if missing else self == result


def _count(mask: Array, dtype: DType) -> Any:
    """The count of true elements, as a divisor; of a traced mask, a traced number."""
    if type(mask) in (np.ndarray, np.bool_):
        return max(np.count_nonzero(mask), 1)
    return np.count_nonzero(mask).astype(dtype)


def shared_evenly(g: Any, self: Value, result: Value) -> Any:
    """The gradient of an extremum, divided evenly among the elements that equal it."""
    mask = _equal_or_nan(self, result)
    if unrecorded(self):
        return np.where(mask, g / _count(mask, g.dtype), g.dtype.type(0))[()]
    return zeros_like(self).masked_fill(mask, g / mask.sum())


def selected_backward(
    g: Value, self_sym_sizes: Shape, dim: int, indices: Value, keepdim: bool
) -> Any:
    """The gradient of selected values, scattered to their indices:
    `scatter(zeros(self_sym_sizes), dim, indices, g)`.
    """
    if not keepdim and self_sym_sizes:
        g, indices = unsqueeze(g, dim), unsqueeze(indices, dim)
    return scatter(g, self_sym_sizes, dim, indices)


def _selecting(ufunc: np.ufunc, name: str) -> Any:
    arg = f"arg{name}"

    def kernel(self: Array, dim: int, keepdim: bool = False) -> tuple[Array, Any]:
        refuse_if(self.dtype.kind == "c", "{}(): does not support complex input", name)
        axis = wrap_dim(dim, self.ndim)
        _check_some(name, self, (axis,), IndexError)
        if not self.ndim:
            return self.copy(), np.int64(0)
        at = getattr(self, arg)(axis, keepdims=True)
        values = gather(self, axis, at)
        if keepdim:
            return values, at
        return values.squeeze(axis)[()], at.squeeze(axis)[()]

    return kernel


def _whole(ufunc: np.ufunc, name: str) -> Any:
    def kernel(self: Array) -> Array:
        _check_order(name, self, f"{name}_all")
        _check_some(name, self, None, RuntimeError)
        return ufunc.reduce(self, axis=None)

    return kernel


def _maxmin(ufunc: np.ufunc, name: str, binary: str, doc: str) -> Any:
    node = f"{name.capitalize()}Backward"
    facts = {"__module__": __name__}
    all_rule = {"self": shared_evenly}
    dim_rule = {"self": selected_backward}
    whole = primitive(
        kernel=_whole(ufunc, name),
        node=f"{node}1",
        batching=batching_helpers.whole(lambda: along),
        symbolic=f"{name}:",
        switch=_ties(ufunc),
    )(type(f"{name}_all", (), facts | all_rule))
    along = primitive(
        kernel=_selecting(ufunc, name),
        node=f"{node}0",
        outputs="values | indices",
        symbolic=f"{name}:",
        switch=Ties(True, "Q4b") if ufunc is np.maximum else Ties(False),
    )(type(f"{name}_dim", (), facts | dim_rule))

    def pair(input: Tensor, other: Tensor) -> Any:
        return resolve(binary)(input, other)

    selected = named_results(name, along)
    more = "(randn(2,3), randn(3)); (tensor([1., 2., 2., 1.]))"
    return overloads(
        f"{name}(Tensor input, *, Tensor? out=None) -> {whole.name}",
        f"{name}(Tensor input, Tensor other, *, Tensor? out=None) -> pair",
        f"{name}(Tensor input, int dim, bool keepdim=False, *, Tensor[]? out=None) -> selected",
        targets=(whole, pair, selected),
        doc=doc,
        primitives=[along],
        samples=f"{REDUCED}; {DIMS}; {more}",
        out=_taken_by_extremes,
    )


max_ = _maxmin(
    np.maximum,
    "max",
    "maximum",
    "The largest element; with a dim also its index; with a second tensor `maximum`.",
)
min_ = _maxmin(
    np.minimum,
    "min",
    "minimum",
    "The smallest element; with a dim also its index; with a second tensor `minimum`.",
)


def _arg(name: str, doc: str) -> Any:
    def kernel(self: Array, dim: int | None = None, keepdim: bool = False) -> Any:
        if self.dtype.kind in "cb":
            kind = "complex" if self.dtype.kind == "c" else "bool"
            raise RuntimeError(f"{name}(): does not support {kind} input")
        axis = None if dim is None else wrap_dim(dim, self.ndim)
        _check_some(name, self, None if axis is None else (axis,), IndexError)
        if not self.ndim:
            return np.int64(0)
        found = getattr(self, name)(axis, keepdims=keepdim)
        return found[()]

    return operator(
        kernel=kernel,
        numpy=getattr(np, name),
        samples="(randn(2,3)); (randn(2,3), 1)",
        signature=f"{name}(Tensor input, int? dim=None, bool keepdim=False, *, Tensor? out=None)",
        out="exact",
    )(type(name, (), {"__doc__": doc, "__module__": __name__}))


argmax = _arg("argmax", "The index of the first largest element.")
argmin = _arg("argmin", "The index of the first smallest element.")


# -- extrema, both at once; counting --------------------------------------------------------------
@primitive("apart", node="AminmaxBackward0", outputs="min max")
class aminmax_p:
    def forward(
        self: Array, *, dim: int | None = None, keepdim: bool = False
    ) -> tuple[Array, Array]:
        if self.dtype.kind == "c":
            raise dtypes.not_implemented("aminmax_cpu", self)
        axis = None if dim is None else wrap_dim(dim, self.ndim)
        if not self.size:
            if axis is None:
                raise RuntimeError(
                    "aminmax(): cannot compute aminmax over an empty dimension as the operation has no "
                    "identity."
                )
            if not self.shape[axis]:
                raise IndexError(f"aminmax: Expected reduction dim {axis} to have non-zero size.")
        at = axis if self.ndim else None
        least, most = (
            reduce(self, axis=at, keepdims=keepdim) for reduce in (minimum_reduce, maximum_reduce)
        )
        return afresh(least, self), afresh(most, self)

    def self(
        g: Sequence[Value | None],
        self: Value,
        dim: int | None,
        keepdim: bool,
        min: Value,
        max: Value,
    ) -> Any:
        dims = () if dim is None else (dim,)
        parts = [
            extreme_backward(part, self, value, dims, keepdim)
            for part, value in zip(g, (min, max), strict=True)
            if part is not None
        ]
        return parts[0] if len(parts) == 1 else parts[0] + parts[1]


aminmax = results(
    "aminmax(Tensor input, *, int? dim=None, bool keepdim=False, Tensor[]? out=None)",
    aminmax_p,
    doc="The smallest and the largest element.",
    samples="(randn(2,3)); (randn(2,3), dim=1)",
    out="exact",
)
