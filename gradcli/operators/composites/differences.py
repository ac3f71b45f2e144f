"""Differences of neighbours, and integrals by the trapezoidal rule."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.engine.core.declaration import Ints, Number
from gradcli.engine.core.tensor import Tensor, wrap, wrap_dim
from gradcli.engine.registry.dimensions import as_dims, axes
from gradcli.engine.registry.rule_helpers import data, refuse_if
from gradcli.engine.registry.table import function, resolve
from gradcli.operators.movement.reshaping import part, slice_p
from gradcli.operators.primitives.arithmetic import div_scalar, logical_xor, mul_scalar, sub
from gradcli.operators.primitives.reductions import sum_
from gradcli.operators.primitives.scans import cumsum

FAMILY = "statistics"


# -- differences and integrals --------------------------------------------------------------------
@function(
    "diff(Tensor input, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None, *, Tensor? out=None)",
    numpy=np.diff,
    primitives=[sub],
    overlap="any any",  # the second differences are of new memory
    samples="(randn(4)); (randn(2,3), dim=0); (randn(5), 2)",
)
def diff(input: Tensor, n: int, dim: int, prepend: Tensor | None, append: Any) -> Any:
    """The differences of neighbours along a dimension, n times over."""
    refuse_if(not input.ndim, "diff expects input to be at least one-dimensional")
    refuse_if(n < 0, "order must be non-negative but got {}", n)
    at = wrap_dim(dim, input.ndim)
    parts = [_beside(p, input, at) if p is not None else None for p in (prepend, append)]
    if not n:
        return wrap(np.zeros(input.shape, data(input).dtype)).copy_(input)
    if parts != [None, None]:
        given = [p for p in (parts[0], input, parts[1]) if p is not None]
        input = resolve("cat")(given, dim)
    less = logical_xor if data(input).dtype.kind == "b" else sub
    for _ in range(min(n, input.shape[at])):
        size = input.shape[at] - 1
        before = input.narrow(dim, 0, size)
        input = less(input.narrow(dim, 1, size), before)
    return input


def _beside(part: Tensor, input: Tensor, at: int) -> Any:
    """What is joined to the input, of the same number of dimensions."""
    if part.ndim != input.ndim:
        raise RuntimeError("diff expects prepend or append to be the same dimension as input")
    for d in range(input.ndim):
        if d != at and part.shape[d] != input.shape[d]:
            raise RuntimeError(
                "diff expects the shape of tensor to prepend or append to match that of input except "
                f"along the differencing dimension; input.size({d}) = {input.shape[d]}, but got "
                f"tensor.size({d}) = {part.shape[d]}"
            )
    return part


def _pair_of(value: Tensor, dim: int) -> tuple[Any, Any]:
    """All but the last and all but the first along a dimension."""
    return slice_p(value, dim, 0, -1, 1), slice_p(value, dim, 1, None, 1)


def _beside_steps(name: str, y: Tensor, x: Tensor, dim: int) -> tuple[Any, int]:
    """The differences of the abscissas, shaped to multiply y's; and the dimension."""
    at = wrap_dim(dim, y.ndim)
    if x.ndim == 1:
        if x.shape[0] != y.shape[at]:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        shape = [1] * y.ndim
        shape[at] = x.shape[0]
        x = x.view(tuple(shape))
    elif x.ndim < y.ndim:
        x = x.view((1,) * (y.ndim - x.ndim) + tuple(x.shape))
    low, high = _pair_of(x, at)
    return high - low, at


def _integrated(name: str, y: Tensor, x: Tensor | None, dx: Number, dim: int) -> None:
    if not y.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if "b" in (data(y).dtype.kind, None if x is None else data(x).dtype.kind):
        which = "`y`" if x is None else "`x` or `y`"
        raise RuntimeError(f"{name}: received a bool input for {which}, but bool is not supported")
    if isinstance(dx, (bool, complex)):
        raise RuntimeError(f"{name}: Currently, we only support dx as a real number.")


_INTEGRALS = (
    "(randn(2,3)); (randn(2,3), dx=0.5); (randn(2,3), tensor([0., 1., 3.])); "
    "(randn(2,3), randn(2,3)); (randn(2,3), dim=0)"
)


@function(
    "trapezoid(Tensor y, Tensor x, *, int dim=-1)|function",
    "trapezoid(Tensor y, *, Scalar dx=1, int dim=-1)|function",
    aliases="trapz",
    forms=(
        "trapz(Tensor y, *, float dx=1, int dim=-1)",
        "trapz(Tensor y, Tensor x, *, int dim=-1)",
    ),
    samples=_INTEGRALS,
    primitives=(),
)
def trapezoid(y: Tensor, x: Tensor | None = None, dx: float = 1, dim: int = -1) -> Any:
    """The integral by the trapezoidal rule, of samples at `x` or every `dx`."""
    _integrated("trapezoid", y, x, dx, dim)
    if not y.shape[wrap_dim(dim, y.ndim)]:
        return wrap(np.zeros(_without(y.shape, dim), data(y).dtype))
    if x is None:
        ends = mul_scalar(y.select(dim, 0) + y.select(dim, -1), 0.5)
        return mul_scalar(sum_(y, dim) - ends, float(dx))
    steps, at = _beside_steps("trapezoid", y, x, dim)
    low, high = _pair_of(y, at)
    return div_scalar(sum_((low + high) * steps, at), 2.0)


def _without(shape: Any, dim: int) -> tuple[int, ...]:
    sizes = list(shape)
    del sizes[dim]
    return tuple(sizes)


@function(
    "cumulative_trapezoid(Tensor y, Tensor x, *, int dim=-1)|function",
    "cumulative_trapezoid(Tensor y, *, Scalar dx=1, int dim=-1)|function",
    samples=_INTEGRALS,
    primitives=(),
)
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, dx: float = 1, dim: int = -1) -> Any:
    """The running integral by the trapezoidal rule."""
    _integrated("cumulative_trapezoid", y, x, dx, dim)
    if x is None:
        low, high = _pair_of(y, dim)
        return cumsum(mul_scalar(low + high, float(dx) / 2.0), dim)
    steps, at = _beside_steps("cumulative_trapezoid", y, x, dim)
    low, high = _pair_of(y, at)
    return div_scalar(cumsum((low + high) * steps, at), 2.0)


# -- gradients of samples -------------------------------------------------------------------------
def _step(value: Tensor, dim: int, to: tuple[int, Any], start: tuple[int, Any]) -> Any:
    """One part less another; the latter is taken first, as C++ does."""
    before = part(value, dim, *start)
    return part(value, dim, *to) - before


def _by_steps(y: Tensor, x: Tensor, dim: int, edge_order: int) -> Any:
    """The derivative of samples at uneven abscissas `x`."""
    if x.ndim != 1:
        raise RuntimeError(
            "torch.gradient expected each element of spacing to have one dimension, but got an "
            f"element with {x.ndim} dimensions!"
        )
    shape = [1] * y.ndim
    shape[dim] = -1
    steps = diff(x, 1, 0)
    d1, d2 = part(steps, 0, 0, -1), part(steps, 0, 1, None)
    a = (-d2 / (d1 * (d1 + d2))).reshape(tuple(shape))
    b = ((d2 - d1) / (d1 * d2)).reshape(tuple(shape))
    c = (d1 / (d2 * (d1 + d2))).reshape(tuple(shape))
    center = a * part(y, dim, 0, -2) + b * part(y, dim, 1, -1) + c * part(y, dim, 2, None)
    if edge_order == 1:
        first = _step(y, dim, (1, 2), (0, 1)) / steps.select(0, 0)
        last = _step(y, dim, (-1, None), (-2, -1)) / steps.select(0, -1)
        return first, center, last
    h, k = steps.select(0, 0), steps.select(0, 1)
    a = -(mul_scalar(h, 2.0) + k) / (h * (h + k))
    b = (h + k) / (h * k)
    c = -h / (k * (h + k))
    first = a * part(y, dim, 0, 1) + b * part(y, dim, 1, 2) + c * part(y, dim, 2, 3)
    h, k = steps.select(0, -1), steps.select(0, -2)
    a = h / (k * (h + k))
    b = -(h + k) / (h * k)
    c = (mul_scalar(h, 2.0) + k) / (h * (h + k))
    last = a * part(y, dim, -3, -2) + b * part(y, dim, -2, -1) + c * part(y, dim, -1, None)
    return first, center, last


def _by_step(y: Tensor, step: float, dim: int, edge_order: int) -> Any:
    """The derivative of samples every `step`."""
    center = div_scalar(_step(y, dim, (2, None), (0, -2)), step)
    if edge_order == 1:
        first, last = _step(y, dim, (1, 2), (0, 1)), _step(y, dim, (-1, None), (-2, -1))
    else:
        first = mul_scalar(part(y, dim, 0, 1), -1.5) + mul_scalar(part(y, dim, 1, 2), 2)
        first = first - mul_scalar(part(y, dim, 2, 3), 0.5)
        last = mul_scalar(part(y, dim, -3, -2), 0.5) - mul_scalar(part(y, dim, -2, -1), 2)
        last = last + mul_scalar(part(y, dim, -1, None), 1.5)
    return div_scalar(first, step), div_scalar(center, 2), div_scalar(last, step)


def _spacings(input: Tensor, spacing: Any, dims: Ints, given: bool) -> list[Any]:
    """The spacing of each dimension: numbers, or tensors of abscissas."""
    if spacing is None:
        spacing = 1.0
    if isinstance(spacing, (int, float, complex)):
        return [spacing] * len(dims)
    found = list(spacing)
    if len(found) != len(dims):
        if given:
            raise RuntimeError(
                "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim "
                f"arguments to have the same length, but got a spacing argument of length "
                f"{len(found)} and a dim argument of length {len(dims)}."
            )
        raise RuntimeError(
            "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal "
            f"to 'self.dim() = {input.ndim}', since dim argument was not given, but got a list of "
            f"length {len(found)}"
        )
    return found


_EDGE = "int edge_order=1)"


@function(
    *(
        f"gradient(Tensor input, *, {given}, {_EDGE}"
        for given in (
            "int[] dim",
            "Scalar spacing, int[] dim",
            "Scalar? spacing=None, int? dim=None",
            "Scalar[] spacing, int? dim=None",
            "Scalar[] spacing, int[] dim",
            "Tensor[] spacing, int? dim=None",
            "Tensor[] spacing, int[] dim",
        )
    ),
    method=False,
    samples="(randn(5)); (randn(3,4), spacing=0.5, dim=1); (randn(5), edge_order=2); "
    "(randn(4), spacing=(tensor([0., 1., 3., 4.]),))",
)
def gradient(input: Tensor, edge_order: int, spacing: Any = None, dim: int | None = None) -> Any:
    """The derivatives of a sampled function, by central differences: a tuple, one a dimension."""
    refuse_if(data(input).dtype == np.uint8, "torch.gradient does not support uint8 input.")
    dims = tuple(range(input.ndim)) if dim is None else as_dims(dim)
    places = axes(dims, input.ndim) or ()
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    steps = _spacings(input, spacing, dims, dim is not None)
    for at in places:
        if input.shape[at] <= edge_order:
            raise RuntimeError(
                "torch.gradient expected each dimension size to be at least edge_order+1"
            )
    made = []
    for at, step in zip(places, steps, strict=True):
        by = _by_step if isinstance(step, (int, float, complex)) else _by_steps
        made.append(resolve("cat")(list(by(input, step, at, edge_order)), at))
    return tuple(made)
