"""Norms of vectors, and the rule that all of them share."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

import numpy as np

from gradcli.engine.core.declaration import Array, DType, Ints, Number, Value
from gradcli.engine.core.switch import Cone, WatchedCall, axis_of
from gradcli.engine.core.tensor import Tensor
from gradcli.engine.registry.dimensions import (
    axes,
    maximum_reduce,
    minimum_reduce,
    numpy_dtype,
    signed,
)
from gradcli.engine.registry.factory_arguments import number
from gradcli.engine.registry.rule_helpers import masked_fill, over, scale_by_count, unsqueeze_dims
from gradcli.engine.registry.table import function, primitive, resolve
from gradcli.engine.system import dtypes
from gradcli.engine.system.array_memory import afresh
from gradcli.engine.system.cascaded_sums import add_reduce
from gradcli.engine.system.dtypes import scalar_name

FAMILY = "reductions"


# -- norms ----------------------------------------------------------------------------------------
def _shown_order(order: float) -> str:
    return str(int(order)) if float(order).is_integer() else str(order)


def _check_norm(self: Array, order: float, dim: Ints | None, dtype: DType | None) -> None:
    if self.dtype.kind not in "fc":
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
            f"{scalar_name(self)}"
        )
    if dtype is not None:
        wanted = scalar_name(dtype)
        if dtype.kind not in "fc":
            raise RuntimeError(
                f"linalg.vector_norm: dtype should be floating point or complex, but got {wanted}"
            )
        if (dtype.kind == "c") != (self.dtype.kind == "c"):
            kind = "complex" if self.dtype.kind == "c" else "real"
            raise RuntimeError(
                f"linalg.vector_norm: dtype should be {kind} for {kind} inputs, but got {wanted}"
            )
        if np.promote_types(self.dtype, dtype) != dtype:
            raise RuntimeError(
                f"linalg.vector_norm: the dtype of the input ({scalar_name(self)}) should be "
                f"convertible without narrowing to the specified dtype ({wanted})"
            )
    if not self.size and (order < 0 or order == inf):
        if not dim:
            raise RuntimeError(
                f"linalg.vector_norm cannot compute the {_shown_order(order) if order != inf else 'inf'}"
                " norm on an empty tensor because the operation does not have an identity"
            )
        for d in dim:
            if not self.shape[d]:
                raise RuntimeError(
                    f"linalg.vector_norm cannot compute the {order} norm on the dimension {d}"
                    "because this dimension is empty and the operation does not have an identity"
                )


def norm_of(self: Array, ord: float, dim: Ints | None, keepdim: bool) -> Any:
    """The p-norm of an array, along dimensions."""
    kind = np.zeros((), self.dtype).real.dtype
    if self.dtype.itemsize == 2:
        self = self.astype(np.float32)
    axis = axes(dim, self.ndim)
    if ord == 2:
        with np.errstate(all="ignore"):
            squares = self * self if self.dtype.kind != "c" else (self * self.conj()).real
            found = np.sqrt(add_reduce(squares, axis=axis, keepdims=keepdim))
        return _in_range(self, 2, axis, keepdim, found).astype(kind, copy=False)
    if ord == 0:
        found = add_reduce(self != 0, axis=axis, dtype=kind, keepdims=keepdim)
        return found.astype(kind, copy=False)
    size = np.abs(self)
    over = range(self.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if np.isfinite(ord) and all(self.shape[d] == 1 for d in over):
        ord = 1  # of one number, without a power
    if ord == 1:
        found = add_reduce(size, axis=axis, keepdims=keepdim)
    elif abs(ord) == inf and not size.size and (axis is None or not size.ndim):
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {ord:g} norm on an empty tensor because the "
            "operation does not have an identity"
        )
    elif ord == inf:
        found = maximum_reduce(size, axis=axis, keepdims=keepdim)
    elif ord == -inf:
        found = minimum_reduce(size, axis=axis, keepdims=keepdim)
    else:
        with np.errstate(all="ignore"):
            powers = add_reduce(size**ord, axis=axis, keepdims=keepdim)
            found = powers ** (1.0 / ord)
        found = _in_range(size, ord, axis, keepdim, found)
    return found.astype(kind, copy=False)


def _least(found: Array, ord: float) -> float:
    """The norm below which powers of the elements lose digits."""
    return float(float(np.finfo(found.dtype).tiny) ** (1 / max(abs(ord), 1)) * 16)


def _refuse_out_of_range(found: Array, ord: float) -> None:
    """Raise RuntimeError where a norm's powers were too large or too small."""
    with np.errstate(invalid="ignore"):
        poor = np.isinf(found) | (np.less(found, _least(found, ord)) & np.greater(found, 0))
    if np.any(poor):
        raise RuntimeError("a norm is out of range")


def _in_range(self: Array, ord: float, axis: Ints | None, keepdim: bool, found: Array) -> Any:
    """Norms, anew by a scale where powers of the elements are too large or too small for the dtype."""
    if hasattr(found, "guard"):  # a plan leaves it to the tape
        found.guard(_refuse_out_of_range, found, ord)
        return found
    if not isinstance(found, (np.ndarray, np.generic)) or not self.size or not np.isfinite(ord):
        return found
    poor = np.isinf(found) | np.less(found, _least(found, ord))
    if not poor.any():
        return found
    size = np.abs(self).max(axis=axis, keepdims=True)
    with np.errstate(all="ignore"):
        scale = np.where((size > 0) & np.isfinite(size), np.exp2(np.floor(np.log2(size))), 1)
        scale = scale.astype(found.dtype)
        powers = np.abs(self / scale) ** found.dtype.type(ord)
        again = add_reduce(powers, axis=axis, keepdims=True) ** (1.0 / ord) * scale
    better = poor.reshape(again.shape) & (size > 0) & np.isfinite(size)
    return np.where(better, again, found.reshape(again.shape)).reshape(found.shape)[()]


def norm_backward(g: Value, self: Value, p: float, norm: Value, dim: Ints, keepdim: bool) -> Any:
    """The gradient of a vector norm; None (no gradient) for p=0. Zero where the norm is."""
    if not keepdim and self.ndim:
        g, norm = unsqueeze_dims(g, dim, self.ndim), unsqueeze_dims(norm, dim, self.ndim)
    if p == 0:
        return None
    from gradcli.operators.primitives.elementwise import sgn

    if p == 1:
        return sgn(self) * g
    if p == 2:
        return g * masked_fill(self / norm, norm == 0, 0)
    if p in (inf, -inf):
        size = np.abs(self)
        mask = (size == norm) | np.isnan(size)
        return sgn(self) * scale_by_count(g, mask, dim)
    if p < 1:
        scaled = sgn(self) * masked_fill(np.abs(self) ** (p - 1), self == 0, 0)
        return scaled * g * norm ** (1 - p)
    scaled = sgn(self) * np.abs(self) ** (p - 1) if p < 2 else self * np.abs(self) ** (p - 2)
    return scaled * over(g, norm ** (p - 1), norm)


class Length(Cone):
    """Where a norm has no derivative: at 0; the sum of sizes also where an element is 0."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(lambda ord: {1: "K13[0]", 2: "Q10[0]"}.get(ord, ""))

    def count(self, call: WatchedCall) -> Any:
        zeros = call["self"] if call["ord"] == 1 else call.results[0]
        return np.count_nonzero(zeros == 0) if call["ord"] >= 1 else 0

    def mask(self, call: WatchedCall) -> Any:
        if call["ord"] != 1:
            return super().mask(call)
        some = np.any(np.equal(call["self"], 0), axis_of(call))
        return np.reshape(some, np.shape(call.results[0]))

    def touched(self, call: WatchedCall) -> dict[str, Any]:
        if call["ord"] != 1:
            return super().touched(call)
        return {"self": np.equal(call["self"], 0)}

    def towards(self, call: WatchedCall, tangents: Mapping[str, Any]) -> Any:
        if call["ord"] != 1:
            return super().towards(call, tangents)
        own, t = call["self"], np.asarray(tangents["self"])
        moved = np.where(own == 0, np.abs(t), np.sign(own) * t)
        return np.reshape(moved.sum(axis_of(call)), np.shape(call.results[0]))


@primitive(
    node="LinalgVectorNormBackward0",
    axes="dim*",
    symbolic="norm",
    switch=Length(),
    jet=lambda s, self, ord, dim, keepdim: s.vector_norm(self, ord, dim, keepdim),
    critical=lambda result: result == 0,
)
class vector_norm_p:
    def forward(
        self: Array,
        ord: Any = 2,
        dim: Ints | None = None,
        keepdim: bool = False,
        *,
        dtype: Any = None,
    ) -> Array:
        dtype = numpy_dtype(dtype)
        _check_norm(self, ord, dim, dtype)
        wide = self if dtype is None else self.astype(dtype, copy=False)
        return afresh(norm_of(wide, ord, dim, keepdim), self)

    self = lambda g, self, ord, result, dim, keepdim: norm_backward(
        g, self, ord, result, () if dim is None else dim, keepdim
    )


def _order(ord: Number) -> Any:
    """The order of a norm as an option of its node."""
    if isinstance(ord, Tensor):
        ord = number("linalg_vector_norm", ord, "ord", 2)
    if isinstance(ord, complex):
        raise RuntimeError(
            "linalg.vector_norm: Expected a non-complex scalar as the order of norm."
        )
    return signed(ord)


_NORMS = "(randn(2,3)); (randn(2,3), 1); (randn(2,3), 3, 1); (randn(4), inf)"


@function(
    "linalg.vector_norm(Tensor input, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, "
    "ScalarType? dtype=None, Tensor? out=None)",
    samples=f"{_NORMS}; (randn(2,3), 0.5, keepdim=True)",
    out="exact",
)
def vector_norm(
    x: Tensor, ord: Number, dim: Ints | None, keepdim: bool, dtype: dtypes.dtype | None
) -> Any:
    """The p-norm of all elements, or along dimensions."""
    return vector_norm_p.call(x, _order(ord), dim, keepdim, dtype)


@function(
    "norm(Tensor input, Any p='fro', int[1]? dim=None, bool keepdim=False, Any out=None, "
    "ScalarType? dtype=None)|function -> linalg_vector_norm(input, p=ord, dim, keepdim)",
    "norm(Tensor input, Any p='fro', int[1]? dim=None, bool keepdim=False, ScalarType? dtype=None)"
    "|method -> linalg_vector_norm(input, p=ord, dim, keepdim)",
    python=True,
    samples=f"{_NORMS}; (randn(2,3), p='fro', dim=1); (randn(()))",
    out="exact",
)
def norm(input: Tensor, p: Number | str | None, dim: Ints | None, keepdim: bool, *rest: Any) -> Any:
    """The p-norm of all elements, or along dimensions; p="nuc" sums the singular values."""
    dtype, out = rest[-1], rest[0] if len(rest) > 1 else None
    if isinstance(p, str) and p not in ("fro", "nuc"):
        raise RuntimeError(f"linalg.matrix_norm: Order {p} not supported.")
    given = {k: v for k, v in (("out", out), ("dtype", dtype)) if v is not None}
    if isinstance(p, str) and p == "nuc":
        over = (-2, -1) if dim is None else dim
        return resolve("linalg.matrix_norm")(input, p, over, keepdim, **given)
    order = 2 if isinstance(p, str) else 2.0 if p is None else p
    if given or not isinstance(order, (int, float)):
        return vector_norm(input, order, dim, keepdim, **given)
    return vector_norm_p.call(input, signed(order), dim, keepdim)
