"""Distances between vectors, and between the rows of matrices."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from gradcli.engine.core.declaration import Array, Ints, Value
from gradcli.engine.core.modes import current, no_grad
from gradcli.engine.core.tensor import Tensor, wrap_dim
from gradcli.engine.registry.dimensions import not_differentiable
from gradcli.engine.registry.factory_arguments import real
from gradcli.engine.registry.rule_helpers import (
    cast,
    conj,
    data,
    dtype_of,
    expect_alike,
    implemented,
    is_complex,
    over,
    refuse_if,
    total,
    turned,
    unsqueeze,
    where,
)
from gradcli.engine.registry.table import function, operator, primitive
from gradcli.engine.system import dtypes
from gradcli.engine.system.array_memory import afresh, donated, fresh
from gradcli.engine.system.cascaded_sums import add_reduce
from gradcli.engine.system.dtypes import c_type, scalar_name
from gradcli.operators.composites.vector_norms import (
    norm_backward,
    norm_of,
    vector_norm,
    vector_norm_p,
)
from gradcli.operators.movement.reshaping import broadcast_shape
from gradcli.operators.primitives.arithmetic import add_scalar, sub
from gradcli.operators.primitives.reductions import sum_

FAMILY = "statistics"


# -- distances ------------------------------------------------------------------------------------
@operator(
    node="DistBackward0",
    types="numbers",
    samples="(randn(3), randn(3)); (randn(2,3), randn(3), 1); (randn(3), randn(3), inf); "
    "(randn(3), randn(3), 3)",
    signature="dist(Tensor input, Tensor other, Scalar p=2)",
)
class dist:
    """The p-norm of input - other."""

    def forward(self: Array, other: Array, p: float = 2) -> Array:
        if self.dtype.kind == "b":
            raise RuntimeError(
                "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
                "`logical_xor()` operator instead."
            )
        if self.dtype.kind in "iu":
            raise RuntimeError(
                "norm(): input dtype should be either floating point or complex. Got "
                f"{scalar_name(self)} instead."
            )
        return norm_of(self - other, p, None, False)

    self = lambda g, self, other, p, result: norm_backward(g, self - other, p, result, (), True)
    other = lambda g, self, other, p, result: _minus(
        norm_backward(g, self - other, p, result, (), True)
    )


def _minus(value: Value) -> Any:
    return None if value is None else -value


def _others(ndim: int, dim: int) -> tuple[int, ...]:
    at = wrap_dim(dim, ndim)
    return tuple([d for d in range(ndim) if d != at])


@operator(
    "inplace",
    node="RenormBackward0",
    axes="",
    samples="(randn(2,3), 2, 0, 1.0); (randn(2,3), 1, 1, 0.5)",
    signature="renorm(Tensor input, Scalar p, int dim, Scalar maxnorm, *, Tensor out=None)",
    out="exact",
)
class renorm:
    """Each slice along a dimension, shrunk where its p-norm exceeds `maxnorm`."""

    def forward(self: Array, p: Any, dim: int, maxnorm: Any) -> Array:
        refuse_if(isinstance(p, complex), "renorm: p must be real-valued")
        refuse_if(not p > 0, "renorm: non-positive-norm not supported")
        refuse_if(isinstance(maxnorm, complex), "renorm: maxnorm must be real-valued")
        refuse_if(not maxnorm >= 0, "renorm: expected maxnorm to be >= 0 but got {:g}", maxnorm)
        if self.ndim < 2:
            raise RuntimeError(
                f"renorm: input needs at least 2 dimensions, got {self.ndim} dimensions"
            )
        if self.dtype.kind in "biu":
            raise RuntimeError(
                "linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
                f"{scalar_name(self)}"
            )
        norm = norm_of(self, p, _others(self.ndim, dim), True)
        factor = np.where(norm > maxnorm, maxnorm / (norm + 1e-7), 1).astype(norm.dtype)
        return afresh(self * factor, self)

    def self(g: Value, self: Value, p: float, dim: int, maxnorm: float) -> Any:
        """In the dtype that PyTorch accumulates in: double precision, single that of half."""
        over = _others(self.ndim, dim)
        own = dtype_of(self)
        wide = np.result_type(own, np.float32 if own == np.float16 else np.float64)
        part = np.zeros(0, wide).real.dtype
        into = None if wide == own else dtypes.of(wide)
        norm = vector_norm_p(self, float(p), over, True, dtype=into)
        product = conj(self) * g
        if is_complex(product):
            product = product.real
        summed = total(cast(product, part), over, True)
        slope = norm_backward(summed, self, p, norm, over, True)
        inverse = np.reciprocal(norm + 1e-7)
        shrunk = maxnorm * inverse * (g - inverse * slope)
        return where(norm > maxnorm, cast(shrunk, dtype_of(g)), g)


def _differences(x1: Array, x2: Array) -> Any:
    return x1[..., :, None, :] - x2[..., None, :, :]


def _distances(difference: Array, p: float, largest: Any = np.maximum) -> Any:
    """The p-norms of the differences, along the last axis; largest: what NaN is to the norm of infinity."""
    size = np.abs(difference)
    if p == 0:
        return add_reduce(np.minimum(np.ceil(size), 1), axis=-1)  # NaN is neither 0 nor 1
    if p == inf:
        return largest.reduce(size, axis=-1, initial=0)
    if p == 2:
        return np.sqrt(add_reduce(size * size, axis=-1))
    if p == 1:
        return add_reduce(size, axis=-1)
    return add_reduce(size**p, axis=-1) ** (1 / p)


def _distance_slopes(difference: Array, g: Array, p: float, distance: Array) -> Any:
    """The gradient of each distance with respect to its difference; zero at distance zero."""
    g, distance = g[..., None], distance[..., None]
    with np.errstate(all="ignore"):
        if p == 0:
            return np.zeros_like(difference)
        if p == 1:
            return np.sign(difference) * g
        if p == inf:
            away = np.ceil(np.abs(np.abs(difference) - distance))
            return np.sign(difference) * (1 - np.minimum(away, 1)) * g
        if p == 2:
            found = difference / distance * g
        elif p < 2:
            scaled = np.abs(difference) ** (p - 1) * g / distance ** (p - 1)
            found = np.sign(difference) * scaled
            if p < 1:
                found = np.where(difference == 0, 0, found)
        else:
            found = difference * np.abs(difference) ** (p - 2) * g / distance ** (p - 1)
    return np.where(distance == 0, 0, found)


@primitive(node="CdistBackwardBackward0", batching="last 2 2 2 2")
class cdist_backward:
    def forward(grad: Array, x1: Array, x2: Array, p: float, cdist: Array) -> Array:
        slopes = _distance_slopes(_differences(x1, x2), grad, p, cdist)
        return add_reduce(slopes, axis=-2)

    grad = x1 = x2 = cdist = lambda g: not_differentiable("_cdist_backward")


@primitive(node="CdistBackward0", batching="last 2 2")
class _cdist_forward:
    def forward(x1: Array, x2: Array, p: float = 2.0) -> Array:
        if x1.size and x2.size:
            implemented("cdist", x1, "fd")
            expect_alike(x1, x2)
        # PyTorch's compares one after the other here, and passes NaN over.
        found = _distances(_differences(x1, x2), p, np.fmax)
        return fresh(found.astype(x1.dtype, copy=False))

    x1 = lambda g, x1, x2, p, result: cdist_backward(g, x1, x2, p, result)
    x2 = lambda g, x1, x2, p, result: cdist_backward(turned(g), x2, x1, p, turned(result))


@primitive(node="EuclideanDistBackward0", batching="last 2 2")
class euclidean_dist:
    def forward(x1: Array, x2: Array) -> Array:
        columns = x1.shape[-1]
        if not 0 < columns <= _COLUMNS:
            return _distances(_differences(x1, x2), 2)
        squares: Any = None
        turned_x2 = fresh(x2.swapaxes(-1, -2))  # whose rows lie in one piece
        for c in range(columns):  # what all columns give at once would not stay in the cache
            apart = x1[..., :, None, c] - turned_x2[..., c, None, :]
            own = donated(np.multiply, apart, apart, apart)
            squares = own if squares is None else donated(np.add, squares, squares, own)
        return donated(np.sqrt, squares, squares)

    def x1__x2(g: Any, x1: Any, x2: Any, result: Any) -> tuple[Any, Any]:
        ratio = over(g, result, result)
        across, down = total(ratio, -1, True), unsqueeze(total(ratio, -2), -1)
        return x1 * across - ratio @ x2, x2 * down - ratio.mT @ x1


_COLUMNS = 128  # up to which squares are added one column after the other
_MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist")


@function(
    "cdist(Tensor x1, Tensor x2, float p=2.0, "
    "Any compute_mode='use_mm_for_euclid_dist_if_necessary')|python|function",
    primitives=[_cdist_forward, euclidean_dist],
    samples="(randn(2,3), randn(4,3)); (randn(2,3), randn(4,3), 1.0); "
    "(randn(2,3), randn(4,3), 3.0); (randn(2,2,3), randn(4,3), inf)",
)
def cdist(x1: Tensor, x2: Tensor, p: float, compute_mode: str) -> Any:
    """The p-norm distances between the rows of two matrices (or batches of them)."""
    if compute_mode not in (*_MODES, "donot_use_mm_for_euclid_dist"):
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    for name, x in (("X1", x1), ("X2", x2)):
        if x.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x.ndim}D")
        if data(x).dtype.kind != "f":
            raise RuntimeError(
                f"cdist only supports floating-point dtypes, {name} got: {scalar_name(data(x))}"
            )
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(
            f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}"
        )
    p = real("cdist", p, "p", 3)
    refuse_if(not p >= 0, "cdist only supports non-negative p values")
    broadcast_shape((x1.shape[:-2], x2.shape[:-2]))
    rows = (x1.shape[-2], x2.shape[-2])
    large = compute_mode == _MODES[1] or (compute_mode == _MODES[0] and max(rows) > 25)
    if p == 2 and large and x1.numel() and x2.numel():
        return _matrix_distances(x1, x2)
    return _cdist_forward(x1, x2, p)


def _matrix_distances(x1: Tensor, x2: Tensor) -> Any:
    first, second = (c_type(data(x)) for x in (x1, x2))
    if first != second:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {first} != {second}"
        )
    batch = broadcast_shape((x1.shape[:-2], x2.shape[:-2]))
    sides = [x1, x2]
    if batch:
        spread = [x.expand((*batch, *x.shape[-2:])).contiguous() for x in sides]
        sides = [x.view((-1, *x.shape[-2:])) for x in spread]
    return euclidean_dist(*sides).view((*batch, x1.shape[-2], x2.shape[-2]))


@primitive(node="PdistBackwardBackward0")
class pdist_backward:
    def forward(grad: Array, self: Array, p: float, pdist: Array) -> Array:
        i, j = np.triu_indices(len(self), 1)
        slopes = _distance_slopes(self[i] - self[j], grad, p, pdist)
        made = np.zeros_like(self)
        np.add.at(made, i, slopes)
        np.subtract.at(made, j, slopes)
        return made

    grad = self = pdist = lambda g: not_differentiable("_pdist_backward")


@primitive(node="PdistBackward0")
class _pdist_forward:
    def forward(self: Array, p: float = 2.0) -> Array:
        if len(self) > 1:
            implemented("pdist", self, "fd")
        i, j = np.triu_indices(len(self), 1)
        return _distances(self[i] - self[j], p)

    self = lambda g, self, p, result: pdist_backward(g, self, p, result)


@function(
    "pdist(Tensor input, float p=2)|function",
    aliases="nn.functional.pdist",
    samples="(randn(4,3)); (randn(4,3), 1.0); (randn(4,3), 3.0)",
)
def pdist(input: Tensor, p: float) -> Any:
    """The p-norm distances between all pairs of rows."""
    if input.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.ndim}D")
    refuse_if(data(input).dtype.kind != "f", "pdist only supports floating-point dtypes")
    refuse_if(not p >= 0, "pdist only supports non-negative p values")
    return _pdist_forward(input, float(p))


def _at_least(norm: Tensor, eps: float) -> Any:
    """`norm`, its value raised to `eps` where it is smaller, its gradient passed on as it is."""
    if isinstance(norm, Tensor) and current().recorder is None:
        with no_grad():
            norm.clamp_min_(eps)
        return norm
    small = norm < eps  # an expression has no writes, and inf - inf is none
    if isinstance(norm, Tensor) or data(small).any():
        return where(small, norm + (eps - norm).detach(), norm)
    return norm


@function(
    "cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08)|function",
    aliases="nn.functional.cosine_similarity",
    samples="(randn(2,3), randn(2,3)); (randn(3), randn(3), 0)",
)
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int, eps: float) -> Any:
    """The cosine of the angle between vectors along a dimension; a norm below `eps` is taken as `eps`."""
    kinds = [data(x).dtype for x in (x1, x2)]
    common = np.result_type(*[k for k in kinds if k.kind in "fc"] or kinds)
    if common.kind != "f":
        raise RuntimeError(
            f"expected common dtype to be floating point, yet common dtype is {scalar_name(common)}"
        )
    given = [x1, x2]
    shape = broadcast_shape((x1.shape, x2.shape))
    if x1.shape != x2.shape:
        given = [x.expand(shape) for x in given]
    eps = real("cosine_similarity", eps, "eps", 4)
    # Of floating dtypes each side is divided in its own.
    sides = [x if data(x).dtype.kind == "f" else cast(x, common) for x in given]
    units = [x / _at_least(vector_norm(x, 2, dim, True).clone(), eps) for x in sides]
    return sum_(units[0] * units[1], dim)


@primitive(node="NormBackward1", axes="dim*", symbolic="norm")
class norm_dim:
    def forward(self: Array, p: float, dim: Ints, keepdim: bool = False) -> Array:
        return afresh(norm_of(self, 2 if p is None else p, dim, keepdim), self)

    self = lambda g, self, p, dim, keepdim, result: norm_backward(g, self, p, result, dim, keepdim)


@function(
    "nn.functional.pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=False)",
    aliases="pairwise_distance",
    primitives=[norm_dim],
    samples="(randn(2,3), randn(2,3)); (randn(2,3), randn(2,3), 1.0, keepdim=True)",
)
def pairwise_distance(x1: Tensor, x2: Tensor, p: float, eps: float, keepdim: bool) -> Any:
    """The p-norms of x1 - x2 + eps along the last dimension."""
    inner = max(x1.ndim, x2.ndim) - 1
    return norm_dim(add_scalar(sub(x1, x2), eps), float(p), (inner,), bool(keepdim))
