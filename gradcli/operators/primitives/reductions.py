"""Sums, means, products; all and any.

Names that are Python's carry an underscore here (`sum_`); the table enters them without it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.engine.core import basic_primitives
from gradcli.engine.core.basic_primitives import sum_backward as sum_backward
from gradcli.engine.core.declaration import Array, DType, Ints, Shape, Value
from gradcli.engine.core.switch import Zeros
from gradcli.engine.core.tensor import Tensor
from gradcli.engine.registry import batching_helpers
from gradcli.engine.registry.dimensions import (
    as_dims,
    axes,
    count,
    integers,
    multiply_reduce,
    numpy_dtype,
)
from gradcli.engine.registry.rule_helpers import (
    by_zeros,
    cast,
    cat,
    conj,
    data,
    expand,
    flip,
    narrow,
    shared,
    unrecorded,
    unsqueeze,
    zeros_in,
    zeros_like,
)
from gradcli.engine.registry.sample_calls import DIMS, REDUCED, TUPLES
from gradcli.engine.registry.table import overloads, primitive
from gradcli.engine.system import dtypes
from gradcli.engine.system.array_memory import afresh
from gradcli.engine.system.cascaded_sums import add_reduce
from gradcli.engine.system.dtypes import scalar_name

# -- sums and means -------------------------------------------------------------------------------
sum_all = basic_primitives.sum_all
sum_dim = basic_primitives.sum_dim


sum_ = overloads(
    "sum(Tensor input, *, ScalarType? dtype=None) -> sum_all",
    "sum(Tensor input, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None, "
    "Tensor? out=None) -> sum_dim",
    targets=(sum_all, sum_dim),
    doc="The sum of all elements, or along dimensions.",
    numpy=np.sum,
    out="computed",
    samples=f"{REDUCED}; {DIMS}; {TUPLES}; (randn(0)); (randn(0,3), 0)",
)


def _average(
    self: Array, axis: Ints | None, dim: Ints | None, keepdim: bool, dtype: DType | None
) -> Any:
    if dtype is not None:
        if dtype.kind not in "fc":
            raise RuntimeError(
                "mean(): could not infer output dtype. Optional dtype must be either a floating "
                f"point or complex dtype. Got: {scalar_name(dtype)}"
            )
        self = self.astype(dtype, copy=False)
    elif self.dtype.kind not in "fc":
        raise RuntimeError(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or "
            f"complex dtype. Got: {scalar_name(self)}"
        )
    n = count(self.shape, dim)
    if self.dtype.itemsize == 2:
        total = add_reduce(self, axis, np.float32, keepdim)
        return divided(total, n).astype(self.dtype)
    return divided(add_reduce(self, axis, None, keepdim), n)


def divided(total: Array, n: float) -> Any:
    """A sum divided by n; for n = 0 by IEEE's rules."""
    if n:
        return total / n
    with np.errstate(all="ignore"):
        return np.true_divide(total, total.dtype.type(0))


def _mean(self: Array, *, dtype: Any = None) -> Array:
    return _average(self, None, None, False, numpy_dtype(dtype))


def mean_backward(
    g: Value, self_sym_sizes: Shape, dim: Ints, self_sym_numel: int, keepdim: bool
) -> Any:
    """The gradient of a mean along dimensions:
    `(g if keepdim else g.unsqueeze(dim)).expand(self_sym_sizes) * g.numel() / self_sym_numel`.
    """
    n = count(self_sym_sizes, dim) if dim else self_sym_numel
    return shared(sum_backward(g, self_sym_sizes, dim, keepdim), n)


@primitive(
    "linear",
    kernel=_mean,
    node="MeanBackward0",
    batching=batching_helpers.whole(lambda: mean_dim, (1,)),
    jet=lambda s, self: s.mean(self),
)
class mean_all:
    self = lambda g, self_sym_sizes, self_sym_numel: shared(
        expand(g, self_sym_sizes), self_sym_numel
    )


@primitive(
    "linear", node="MeanBackward1", jet=lambda s, self, dim, keepdim: s.mean(self, dim, keepdim)
)
class mean_dim:
    def forward(
        self: Array, dim: Ints, keepdim: bool = False, *, dtype: dtypes.dtype | None = None
    ) -> Array:
        found = _average(self, axes(dim, self.ndim), dim, keepdim, numpy_dtype(dtype))
        return afresh(found, self)

    self = mean_backward


# Of all elements; along dims the words are the usual ones.
_OF_MEAN = "cast: mean.dtype_out(): input types can't be cast to the desired output type {1}"


mean = overloads(
    "mean(Tensor input, *, ScalarType? dtype=None, Tensor? out=None) -> mean_all",
    "mean(Tensor input, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None, "
    "Tensor? out=None) -> mean_dim",
    targets=(mean_all, mean_dim),
    doc="The mean of all elements, or along dimensions.",
    numpy=np.mean,
    samples=f"{REDUCED}; {DIMS}; {TUPLES}",
    out=lambda input, *how: "" if len(how) > 1 else _OF_MEAN,
)


# -- products -------------------------------------------------------------------------------------
def _multiplied(self: Array, axis: Ints | None, keepdim: bool, dtype: DType | None) -> Any:
    if dtype is not None:
        self = (self.real if dtype.kind != "c" else self).astype(dtype, copy=False)
    kind = dtype if dtype is not None else np.int64 if integers(self) else None
    return multiply_reduce(self, axis=axis, dtype=kind, keepdims=keepdim)


def _products_without(self: Value, dim: int) -> Any:
    """For each position along `dim`, the product of the elements at the others."""
    from gradcli.operators.primitives.scans import cumprod

    size = self.shape[dim]
    edge = zeros_like(narrow(self, dim, 0, 1)) + 1
    before = cumprod(cat([edge, narrow(self, dim, 0, size - 1)], dim), dim)
    after = cat([edge, flip(narrow(self, dim, 1, size - 1), dim)], dim)
    return before * flip(cumprod(after, dim), dim)


def _prod_safe_backward(g: Value, self: Value, dim: int) -> Any:
    if not data(self).size:
        return expand(g, tuple(self.shape))
    if self.shape[dim] == 1:
        return g
    return g * conj(_products_without(self, dim))


@primitive(
    node="ProdBackward0",
    batching=batching_helpers.whole(lambda: prod_dim),
    symbolic="prod: -",
    switch=Zeros("Q16[1]"),
    jet=lambda s, self: s.product(self),
    critical=lambda result: result == 0,
)
class prod_all:
    def forward(self: Array, *, dtype: dtypes.dtype | None = None) -> Array:
        return _multiplied(self, None, False, numpy_dtype(dtype))

    def self(g: Value, self: Value, result: Value) -> Any:
        self = cast(self, data(g).dtype)
        if not self.ndim:
            return g
        zeros = zeros_in(self)
        if not zeros:
            return g * conj(result / self)
        if zeros > 1 and unrecorded(self):
            return np.zeros_like(self)
        return _prod_safe_backward(g, self.reshape((-1,)), 0).reshape(tuple(self.shape))


@primitive(
    node="ProdBackward1",
    symbolic="prod: dim keepdim -",
    switch=Zeros("Q16[1]"),
    jet=lambda s, self, dim, keepdim: s.product(self, dim, keepdim),
    critical=lambda result: result == 0,
)
class prod_dim:
    def forward(self: Array, dim: int, keepdim: bool = False, *, dtype: Any = None) -> Array:
        found = _multiplied(self, axes((dim,), self.ndim), keepdim, numpy_dtype(dtype))
        return afresh(found, self)

    def self(g: Value, self: Value, result: Value, dim: int, keepdim: bool) -> Any:
        self = cast(self, data(g).dtype)
        if not self.ndim:
            return g
        dim = dim % self.ndim
        if not keepdim:
            g, result = unsqueeze(g, dim), unsqueeze(result, dim)
        return by_zeros(
            self, lambda: g * conj(result / self), lambda: _prod_safe_backward(g, self, dim)
        )


prod = overloads(
    "prod(Tensor input, *, ScalarType? dtype=None) -> prod_all",
    "prod(Tensor input, int dim, bool keepdim=False, *, ScalarType? dtype=None, "
    "Tensor? out=None) -> prod_dim",
    targets=(prod_all, prod_dim),
    doc="The product of all elements, or along a dimension.",
    numpy=np.prod,
    out="computed",
    samples=f"{REDUCED}; {DIMS}; (tensor([2., 0., 3.]))",
)


# -- logic ----------------------------------------------------------------------------------------
def _logic(name: str, ufunc: np.ufunc, doc: str) -> Any:
    def kernel(self: Array, dim: Ints | None = None, keepdim: bool = False) -> Array:
        truth = self if self.dtype.kind == "b" else self != 0
        if dim is not None and not dim:
            found = truth
        else:
            found = ufunc.reduce(truth, axis=axes(dim, self.ndim), keepdims=keepdim)
        return found.astype(np.uint8) if self.dtype == np.uint8 else found

    body = type(name, (), {"__doc__": doc, "__module__": __name__})
    made = primitive(kernel=kernel, axes="dim*")(body)

    def along(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
        return made(input, as_dims(dim), keepdim)

    numpy = np.all if name == "all" else np.any
    samples = (f"{name}(randn(2,3) > 0)", f"{name}(randn(2,3) > 0, dim=1)")
    return overloads(
        f"{name}(Tensor input, *, Tensor? out=None) -> along",
        f"{name}(Tensor input, int[]? dim=None, bool keepdim=False, *, Tensor? out=None) -> along",
        f"{name}(Tensor input, int dim, bool keepdim=False, *, Tensor? out=None) -> along",
        targets=[along],
        doc=doc,
        numpy=numpy,
        primitives=[made],
        samples=samples,
        out="only ?B: {name} only supports bool tensor for result, got: {1}",
    )


all_ = _logic("all", np.logical_and, "True where all elements are true.")
any_ = _logic("any", np.logical_or, "True where any element is true.")
