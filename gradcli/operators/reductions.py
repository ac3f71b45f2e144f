"""Sums, products, extrema, variances, norms, softmax and running sums.

Names that are Python's carry an underscore here (`sum_`); the table enters them without it.
"""

from __future__ import annotations

import warnings
from math import inf
from typing import Any

import numpy as np

from gradcli.engine.tensor import wrap_dim
from gradcli.operators.dimensions import (
    ABSENT,
    axes,
    cast,
    cat,
    combination,
    count,
    data,
    describe,
    expand,
    flip,
    given_dim,
    given_dims,
    integers,
    narrow,
    numpy_dtype,
    reshape,
    scalar_name,
    signed,
    unsqueeze,
    unsqueeze_dims,
)
from gradcli.operators.elementwise import maximum, minimum, sgn
from gradcli.operators.helpers import conj, is_complex, masked_fill, zeros_like
from gradcli.operators.return_types import return_type
from gradcli.operators.table import Array, Row, function, is_array, operator

_REDUCED = ("{0}(randn(2,3))", "{0}(randn(()))", "{0}(randn(1))")
_DIMS = (
    *("{0}(randn(2,3), 1)", "{0}(randn(2,3), dim=-1, keepdim=True)", "{0}(randn(()), 0)"),
    *("{0}(randn(2,3,2), 1)",),
)
_TUPLES = ("{0}(randn(2,3,2), (0, -1))", "{0}(randn(2,3), dim=(0, 1), keepdim=True)")


def _named(name: str, *groups: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(s.format(name) for group in groups for s in group)


# -- sums and means -------------------------------------------------------------------------------
def _total(self: Any, axis: Any, keepdim: bool = False, dtype: Any = None) -> Any:
    """The sum in the dtype that PyTorch accumulates in."""
    if dtype is None:
        kind = self.dtype.kind
        if kind in "biu":
            dtype = np.int64
        elif self.dtype.itemsize == 2:
            total = np.add.reduce(self, axis=axis, dtype=np.float32, keepdims=keepdim)
            return total.astype(self.dtype)
    elif dtype.kind != "c" and self.dtype.kind == "c":
        self = self.real
    return np.add.reduce(self, axis=axis, dtype=dtype, keepdims=keepdim)


def _sum(self: Array, *, dtype: Any = None) -> Array:
    return _total(self, None, dtype=numpy_dtype(dtype))


def _sum_dim(self: Array, dim: Any, keepdim: bool = False, *, dtype: Any = None) -> Array:
    return _total(self, axes(dim, self.ndim), keepdim, numpy_dtype(dtype))


def _sum_backward(g: Any, sizes: tuple[int, ...], dim: Any, keepdim: bool) -> Any:
    if not keepdim and sizes and dim:
        g = unsqueeze_dims(g, dim, len(sizes))
    return expand(g, sizes)


@operator(_sum, "SumBackward0", kind="linear", public=False)
class sum_all:
    self = lambda g, self_sym_sizes: expand(g, self_sym_sizes)


@operator(_sum_dim, "SumBackward1", kind="linear", public=False)
class sum_dim:
    self = lambda g, self_sym_sizes, dim, keepdim: _sum_backward(g, self_sym_sizes, dim, keepdim)


_SUM = (
    "Tensor input, *, torch.dtype dtype = None",
    "Tensor input, tuple of ints dim, bool keepdim = False, *, torch.dtype dtype = None, "
    "Tensor out = None",
)


def _keep(name: str, keepdim: Any) -> bool:
    if isinstance(keepdim, (bool, np.bool_)):
        return bool(keepdim)
    raise TypeError(f"{name}(): argument 'keepdim' must be bool, not {type(keepdim).__name__}")


@function(
    numpy=np.sum,
    rows=[sum_all, sum_dim],
    samples=_named("sum", _REDUCED, _DIMS, _TUPLES, ("{0}(randn(0))", "{0}(randn(0,3), 0)")),
)
def sum_(input: Array, dim: Any = ABSENT, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The sum of all elements, or along dimensions."""
    if dim is ABSENT:
        if keepdim is not False:
            raise combination("sum", (input,), _SUM, keepdim=keepdim)
        return sum_all(input) if dtype is None else sum_all(input, dtype=dtype)
    dim, keepdim = given_dims("sum", dim), _keep("sum", keepdim)
    return sum_dim(input, dim, keepdim) if dtype is None else sum_dim(input, dim, keepdim, dtype=dtype)


def _average(self: Any, axis: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
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
            f"complex dtype. Got: {scalar_name(self.dtype)}"
        )
    n = count(self.shape, dim)
    if self.dtype.itemsize == 2:
        total = np.add.reduce(self, axis=axis, dtype=np.float32, keepdims=keepdim)
        return _divided(total, n).astype(self.dtype)
    return _divided(np.add.reduce(self, axis=axis, keepdims=keepdim), n)


def _divided(total: Any, n: float) -> Any:
    if n:
        return total / n
    with np.errstate(all="ignore"):
        return np.true_divide(total, total.dtype.type(0))


def _mean(self: Array, *, dtype: Any = None) -> Array:
    return _average(self, None, None, False, numpy_dtype(dtype))


def _mean_dim(self: Array, dim: Any, keepdim: bool = False, *, dtype: Any = None) -> Array:
    return _average(self, axes(dim, self.ndim), dim, keepdim, numpy_dtype(dtype))


def _mean_backward(g: Any, sizes: tuple[int, ...], dim: Any, numel: int, keepdim: bool) -> Any:
    n = count(sizes, dim) if dim else numel
    return _sum_backward(g, sizes, dim, keepdim) / n


@operator(_mean, "MeanBackward0", kind="linear", public=False)
class mean_all:
    self = lambda g, self_sym_sizes, self_sym_numel: expand(g, self_sym_sizes) / self_sym_numel


@operator(_mean_dim, "MeanBackward1", kind="linear", public=False)
class mean_dim:
    self = lambda g, self_sym_sizes, dim, self_sym_numel, keepdim: _mean_backward(
        g, self_sym_sizes, dim, self_sym_numel, keepdim
    )


_MEAN = ("Tensor input, *, torch.dtype dtype = None, Tensor out = None", _SUM[1])


@function(
    numpy=np.mean,
    rows=[mean_all, mean_dim],
    samples=_named("mean", _REDUCED, _DIMS, _TUPLES),
)
def mean(input: Array, dim: Any = ABSENT, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The mean of all elements, or along dimensions."""
    if dim is ABSENT:
        if keepdim is not False:
            raise combination("mean", (input,), _MEAN, keepdim=keepdim)
        return mean_all(input) if dtype is None else mean_all(input, dtype=dtype)
    dim, keepdim = given_dims("mean", dim), _keep("mean", keepdim)
    if dtype is None:
        return mean_dim(input, dim, keepdim)
    return mean_dim(input, dim, keepdim, dtype=dtype)


# -- products -------------------------------------------------------------------------------------
def _multiplied(self: Any, axis: Any, keepdim: bool, dtype: Any) -> Any:
    if dtype is not None:
        self = (self.real if dtype.kind != "c" else self).astype(dtype, copy=False)
    kind = np.int64 if integers(self) else None
    return np.multiply.reduce(self, axis=axis, dtype=kind, keepdims=keepdim)


def _prod(self: Array, *, dtype: Any = None) -> Array:
    return _multiplied(self, None, False, numpy_dtype(dtype))


def _prod_dim(self: Array, dim: int, keepdim: bool = False, *, dtype: Any = None) -> Array:
    return _multiplied(self, axes((dim,), self.ndim), keepdim, numpy_dtype(dtype))


def _zeros_in(value: Any) -> int:
    """How many elements are zero; traced values count as having none."""
    numbers = data(value)
    return int(numbers.size - np.count_nonzero(numbers)) if is_array(numbers) else 0


def _products_without(self: Any, dim: int) -> Any:
    """For each position along `dim`, the product of the elements at the others."""
    size = self.shape[dim]
    edge = zeros_like(narrow(self, dim, 0, 1)) + 1
    before = cumprod(cat([edge, narrow(self, dim, 0, size - 1)], dim), dim)
    after = cat([edge, flip(narrow(self, dim, 1, size - 1), dim)], dim)
    return before * flip(cumprod(after, dim), dim)


def _prod_safe_backward(g: Any, self: Any, dim: int) -> Any:
    if not data(self).size:
        return expand(g, tuple(self.shape))
    if self.shape[dim] == 1:
        return g
    return g * conj(_products_without(self, dim))


def _prod_backward(g: Any, self: Any, result: Any) -> Any:
    self = cast(self, data(g).dtype)
    if not self.ndim:
        return g
    zeros = _zeros_in(self)
    if not zeros:
        return g * conj(result / self)
    if zeros > 1 and is_array(self):
        return np.zeros_like(self)
    return reshape(_prod_safe_backward(g, reshape(self, (-1,)), 0), tuple(self.shape))


def _prod_dim_backward(g: Any, self: Any, result: Any, dim: int, keepdim: bool) -> Any:
    self = cast(self, data(g).dtype)
    if not self.ndim:
        return g
    dim = dim % self.ndim
    if not keepdim:
        g, result = unsqueeze(g, dim), unsqueeze(result, dim)
    if not _zeros_in(self):
        return g * conj(result / self)
    return _prod_safe_backward(g, self, dim)


@operator(_prod, "ProdBackward0", public=False)
class prod_all:
    self = lambda g, self, result: _prod_backward(g, self, result)


@operator(_prod_dim, "ProdBackward1", public=False)
class prod_dim:
    self = lambda g, self, result, dim, keepdim: _prod_dim_backward(g, self, result, dim, keepdim)


_PROD = (_SUM[0], "Tensor input, int dim, bool keepdim = False, *, torch.dtype dtype = None")


@function(
    numpy=np.prod,
    rows=[prod_all, prod_dim],
    samples=_named("prod", _REDUCED, _DIMS, ("{0}(tensor([2., 0., 3.]))",)),
)
def prod(input: Array, dim: Any = ABSENT, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The product of all elements, or along a dimension."""
    if dim is ABSENT:
        if keepdim is not False:
            raise combination("prod", (input,), _PROD, keepdim=keepdim)
        return prod_all(input, dtype=dtype)
    if dim is None or isinstance(dim, (tuple, list)):
        raise combination("prod", (input, dim), _PROD)
    return prod_dim(input, given_dim("prod", dim), _keep("prod", keepdim), dtype=dtype)


# -- the largest and the smallest -----------------------------------------------------------------
def _check_order(name: str, self: Any, kernel: str) -> None:
    if self.dtype.kind == "c":
        raise NotImplementedError(
            f'"{kernel}" not implemented for \'{scalar_name(self.dtype)}\''
        )


def _check_some(name: str, self: Any, dims: tuple[int, ...] | None, error: Any) -> None:
    """Raise where the elements that are to be reduced are none."""
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


def _extreme(ufunc: Any, name: str) -> Any:
    def kernel(self: Array, dim: Any = (), keepdim: bool = False) -> Array:
        _check_order(name, self, f"{name[1:]}_values_cpu")
        axis = axes(dim, self.ndim)
        _check_some(name, self, dim, RuntimeError)
        return ufunc.reduce(self, axis=axis, keepdims=keepdim)

    return kernel


def _restore(value: Any, dim: tuple[int, ...], keepdim: bool) -> Any:
    """`value` with reduced dimensions again, recorded as one view."""
    if keepdim:
        return value
    total = value.ndim + len(dim)
    wanted = {d % total for d in dim} if total else set()
    sizes = iter(value.shape)
    return reshape(value, tuple([1 if d in wanted else next(sizes) for d in range(total)]))


def _scale_by_count(g: Any, mask: Any, dim: tuple[int, ...]) -> Any:
    """The gradient shared evenly by the elements of the mask."""
    return (g / _count_true(mask, dim)) * mask


def _count_true(mask: Any, dim: tuple[int, ...]) -> Any:
    if is_array(mask):
        return np.add.reduce(mask, axis=axes(dim, mask.ndim), dtype=np.int64, keepdims=True)
    return mask.sum(dim, True)


def _extreme_backward(g: Any, self: Any, result: Any, dim: Any, keepdim: bool) -> Any:
    if not self.ndim:
        dim = ()
    mask = _restore(result, dim, keepdim) == self
    return _scale_by_count(_restore(g, dim, keepdim), mask, dim)


def _extreme_rule(g: Any, self: Any, result: Any, dim: Any, keepdim: bool) -> Any:
    return _extreme_backward(g, self, result, dim, keepdim)


def _amaxmin(ufunc: Any, name: str, node: str, doc: str, numpy: Any) -> Any:
    rules = {"self": lambda g, self, result, dim, keepdim: _extreme_rule(g, self, result, dim, keepdim)}
    body = type(name, (), {"__doc__": doc, "__module__": __name__, **rules})
    row = operator(_extreme(ufunc, name), node, public=False)(body)

    def call(input: Array, dim: Any = (), keepdim: bool = False) -> Any:
        return row(input, given_dims(name, dim) or (), _keep(name, keepdim))

    describe(call, name, doc, __name__)
    samples = _named(name, _REDUCED, _DIMS, _TUPLES)
    return function(name=name, rows=[row], numpy=numpy, samples=samples)(call)


amax = _amaxmin(
    np.maximum,
    "amax",
    "AmaxBackward0",
    "The largest element of all or along dimensions; equal ones share the gradient.",
    (np.max, np.amax),
)
amin = _amaxmin(
    np.minimum,
    "amin",
    "AminBackward0",
    "The smallest element of all or along dimensions; equal ones share the gradient.",
    (np.min, np.amin),
)


def _equal_or_nan(self: Any, result: Any) -> Any:
    return np.isnan(self) if np.isnan(data(result)) else self == result


def _evenly_distributed(g: Any, self: Any, result: Any) -> Any:
    """The gradient of one selected value, shared by the elements that equal it."""
    mask = _equal_or_nan(self, result)
    if is_array(self):
        return np.where(mask, g / max(np.count_nonzero(mask), 1), g.dtype.type(0))[()]
    return zeros_like(self).masked_fill(mask, g / mask.sum())


def _selected_backward(g: Any, sizes: Any, dim: int, indices: Any, keepdim: bool) -> Any:
    """The gradient of selected values, at the places that they were taken from."""
    if not keepdim and sizes:
        g, indices = unsqueeze(g, dim), unsqueeze(indices, dim)
    if is_array(g):
        if not sizes:
            return g
        made = np.zeros(sizes, g.dtype)
        np.put_along_axis(made, indices, g, dim)
        return made
    from gradcli.engine.tensor import wrap

    return wrap(np.zeros(sizes, data(g).dtype)).scatter(dim, indices, g)


def _pick(self: Any, at: Any, dim: int) -> Any:
    return np.take_along_axis(self, at, dim)


def _selecting(ufunc: Any, name: str) -> Any:
    arg = np.ndarray.argmax if name == "max" else np.ndarray.argmin

    def kernel(self: Array, dim: int, keepdim: bool = False) -> tuple[Array, Array]:
        if self.dtype.kind == "c":
            raise RuntimeError(f"{name}(): does not support complex input")
        axis = wrap_dim(dim, self.ndim)
        _check_some(name, self, (axis,), IndexError)
        if not self.ndim:
            return self, np.int64(0)
        at = arg(self, axis, keepdims=True)
        values = _pick(self, at, axis)
        if keepdim:
            return values, at
        return values.squeeze(axis)[()], at.squeeze(axis)[()]

    return kernel


def _whole(ufunc: Any, name: str) -> Any:
    def kernel(self: Array) -> Array:
        _check_order(name, self, f"{name}_all")
        _check_some(name, self, None, RuntimeError)
        return ufunc.reduce(self, axis=None)

    return kernel


def _maxmin(ufunc: Any, name: str, binary: Row, doc: str) -> Any:
    node = f"{name.capitalize()}Backward"
    facts = {"__module__": __name__}
    all_rule = {"self": lambda g, self, result: _evenly_distributed(g, self, result)}
    dim_rule = {
        "self": lambda g, self_sym_sizes, dim, indices, keepdim: _selected_backward(
            g, self_sym_sizes, dim, indices, keepdim
        )
    }
    whole = operator(_whole(ufunc, name), f"{node}1", public=False)(type(name, (), facts | all_rule))
    along = operator(
        _selecting(ufunc, name),
        f"{node}0",
        outputs="values indices",
        differentiable=1,
        public=False,
    )(type(name, (), facts | dim_rule))
    result = return_type(name, "values indices")
    signatures = (
        "Tensor input, *, Tensor out = None",
        "Tensor input, Tensor other, *, Tensor out = None",
        "Tensor input, int dim, bool keepdim = False, *, tuple of Tensors out = None",
    )

    def call(input: Array, dim: Any = ABSENT, keepdim: bool = False, *, other: Any = None) -> Any:
        if other is not None and dim is ABSENT:
            return binary(input, other)
        if dim is ABSENT:
            if keepdim is not False:
                raise combination(name, (input,), signatures, keepdim=keepdim)
            return whole(input)
        if isinstance(dim, (int, np.integer)) and not isinstance(dim, bool):
            return result(along(input, int(dim), _keep(name, keepdim)))
        if dim is None or isinstance(dim, (float, complex, bool, str, tuple, list)):
            raise combination(name, (input, dim), signatures)
        return binary(input, dim)

    describe(call, name, doc, __name__)
    more = (f"{name}(randn(2,3), randn(3))", f"{name}(tensor([1., 2., 2., 1.]))")
    samples = (*_named(name, _REDUCED, _DIMS), *more)
    return function(name=name, rows=[whole, along, binary], samples=samples)(call)


max_ = _maxmin(
    np.maximum,
    "max",
    maximum,
    "The largest element; with a dim also its index; with a second tensor `maximum`.",
)
min_ = _maxmin(
    np.minimum,
    "min",
    minimum,
    "The smallest element; with a dim also its index; with a second tensor `minimum`.",
)


def _arg(name: str, method: Any, doc: str) -> Any:
    def kernel(self: Array, dim: int | None = None, keepdim: bool = False) -> Array:
        if self.dtype.kind in "cb":
            kind = "complex" if self.dtype.kind == "c" else "bool"
            raise RuntimeError(f"{name}(): does not support {kind} input")
        axis = None if dim is None else wrap_dim(dim, self.ndim)
        _check_some(name, self, None if axis is None else (axis,), IndexError)
        if not self.ndim:
            return np.int64(0)
        found = method(self, axis, keepdims=keepdim)
        return found[()] if isinstance(found, np.ndarray) else np.int64(found)

    body = type(name, (), {"__doc__": doc, "__module__": __name__})
    row = operator(kernel, public=False)(body)

    def call(input: Array, dim: Any = None, keepdim: bool = False) -> Any:
        dim = None if dim is None else given_dim(name, dim)
        return row(input, dim, _keep(name, keepdim))

    describe(call, name, doc, __name__)
    numpy = np.argmax if name == "argmax" else np.argmin
    return function(
        name=name, rows=[row], numpy=numpy, samples=_named(name, _REDUCED[:1], _DIMS[:1])
    )(call)


argmax = _arg("argmax", np.ndarray.argmax, "The index of the first largest element.")
argmin = _arg("argmin", np.ndarray.argmin, "The index of the first smallest element.")


def _logic(name: str, ufunc: Any, doc: str) -> Any:
    def kernel(self: Array, dim: Any = None, keepdim: bool = False) -> Array:
        truth = self if self.dtype.kind == "b" else self != 0
        if dim is not None and not dim:
            found = truth
        else:
            found = ufunc.reduce(truth, axis=axes(dim, self.ndim), keepdims=keepdim)
        return found.astype(np.uint8) if self.dtype == np.uint8 else found

    body = type(name, (), {"__doc__": doc, "__module__": __name__})
    row = operator(kernel, public=False)(body)

    def call(input: Array, dim: Any = None, keepdim: bool = False) -> Any:
        return row(input, given_dims(name, dim), _keep(name, keepdim))

    describe(call, name, doc, __name__)
    numpy = np.all if name == "all" else np.any
    samples = (f"{name}(randn(2,3) > 0)", f"{name}(randn(2,3) > 0, dim=1)")
    return function(name=name, rows=[row], numpy=numpy, samples=samples)(call)


all_ = _logic("all", np.logical_and, "True where all elements are true.")
any_ = _logic("any", np.logical_or, "True where any element is true.")


# -- variances ------------------------------------------------------------------------------------
def _spread(name: str, self: Any, dim: Any, correction: Any, keepdim: bool) -> tuple[Any, Any]:
    """(variance, mean) of the elements; warns where nothing is left to divide by."""
    if self.dtype.kind not in "fc":
        shown = "std and var" if "_" not in name else name
        raise RuntimeError(f"{shown} only support floating point and complex dtypes")
    axis = axes(dim, self.ndim)
    n = count(self.shape, dim)
    degrees = n - (1 if correction is None else correction)
    wide = self.astype(np.float32) if self.dtype.itemsize == 2 else self
    middle = _divided(np.add.reduce(wide, axis=axis, keepdims=True), n)
    off = wide - middle
    squares = off.real * off.real + off.imag * off.imag if off.dtype.kind == "c" else off * off
    total = np.add.reduce(squares, axis=axis, keepdims=keepdim)
    if degrees <= 0 or not total.size:
        warnings.warn(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the "
            "reduction factor (input numel divided by output numel).",
            UserWarning,
            stacklevel=2,
        )
    variance = _divided(total, degrees if degrees > 0 else 0)
    kind = np.zeros((), self.dtype).real.dtype
    if not keepdim:
        middle = middle.reshape(total.shape)[()] if middle.size else middle.reshape(total.shape)
    return variance.astype(kind, copy=False), middle.astype(self.dtype, copy=False)


def _var(
    self: Array, dim: Any = None, *, correction: Any = None, keepdim: bool = False
) -> Array:
    return _spread("var", self, dim, correction, keepdim)[0]


def _std(
    self: Array, dim: Any = None, *, correction: Any = None, keepdim: bool = False
) -> Array:
    return np.sqrt(_spread("std", self, dim, correction, keepdim)[0])


def _var_mean(
    self: Array, dim: Any = None, *, correction: Any = None, keepdim: bool = False
) -> tuple[Array, Array]:
    return _spread("var_mean", self, dim, correction, keepdim)


def _std_mean(
    self: Array, dim: Any = None, *, correction: Any = None, keepdim: bool = False
) -> tuple[Array, Array]:
    variance, middle = _spread("std_mean", self, dim, correction, keepdim)
    return np.sqrt(variance), middle


def _var_backward(g: Any, self: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    correction = 1 if correction is None else correction
    if not self.ndim or dim is None:
        degrees = data(self).size - correction
        middle = _middle(self, None)
        if degrees <= 0:
            return g * _degenerate(self, middle)
        return (2.0 / degrees) * g * (self - middle)
    if not keepdim and self.ndim > 1:
        g = unsqueeze_dims(g, dim, self.ndim)
    degrees = count(self.shape, dim) - correction
    return (2.0 / degrees if degrees else inf) * g * (self - _middle(self, dim))


def _middle(self: Any, dim: Any) -> Any:
    """The mean of all, or along dimensions that stay."""
    if is_array(self):
        total = np.add.reduce(self, axis=axes(dim, self.ndim), keepdims=dim is not None)
        return _divided(total, count(self.shape, dim))
    return self.mean() if dim is None else self.mean(dim, True)


def _degenerate(self: Any, middle: Any) -> Any:
    """The slope of a variance without degrees of freedom: NaN at the mean, else infinite."""
    found = np.where(data(self) == data(middle), np.nan, inf).astype(data(self).dtype)[()]
    if is_array(self):
        return found
    from gradcli.engine.tensor import wrap

    return wrap(found)


def _std_backward(g: Any, self: Any, result: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    g = masked_fill(g / (result * 2), result == 0, 0)
    return _var_backward(g, self, dim, correction, keepdim)


def _with_mean(slope: Any, g: Any, self: Any, dim: Any, keepdim: bool) -> Any:
    """The gradient of a variance, if any, and that of the mean, if any."""
    if g is None:
        return slope
    sizes = tuple(self.shape)
    middle = _mean_backward(g, sizes, dim or (), data(self).size, keepdim)
    return middle if slope is None else slope + middle


def _var_mean_backward(g: Any, self: Any, dim: Any, correction: Any, keepdim: bool) -> Any:
    slope = None if g[0] is None else _var_backward(g[0], self, dim, correction, keepdim)
    return _with_mean(slope, g[1], self, dim, keepdim)


def _std_mean_backward(
    g: Any, self: Any, result0: Any, dim: Any, correction: Any, keepdim: bool
) -> Any:
    slope = None
    if g[0] is not None:
        slope = _std_backward(g[0], self, result0, dim, correction, keepdim)
    return _with_mean(slope, g[1], self, dim, keepdim)


@operator(_var, "VarBackward0", public=False)
class var_correction:
    self = lambda g, self, dim, correction, keepdim: _var_backward(g, self, dim, correction, keepdim)


@operator(_std, "StdBackward0", public=False)
class std_correction:
    self = lambda g, self, result, dim, correction, keepdim: _std_backward(
        g, self, result, dim, correction, keepdim
    )


@operator(_var_mean, "VarMeanBackward0", outputs="result0 result1", public=False)
class var_mean_correction:
    self = lambda g, self, dim, correction, keepdim: _var_mean_backward(
        g, self, dim, correction, keepdim
    )


@operator(_std_mean, "StdMeanBackward0", outputs="result0 result1", public=False)
class std_mean_correction:
    self = lambda g, self, result0, dim, correction, keepdim: _std_mean_backward(
        g, self, result0, dim, correction, keepdim
    )


def _variance(name: str, row: Row, doc: str, numpy: Any = None) -> Any:
    signatures = (
        "Tensor input, tuple of ints dim, bool unbiased = True, bool keepdim = False, *, "
        "Tensor out = None",
        "Tensor input, tuple of ints dim = None, *, Number correction = None, "
        "bool keepdim = False, Tensor out = None",
        "Tensor input, bool unbiased = True",
    )

    def call(
        input: Array,
        dim: Any = ABSENT,
        unbiased: Any = ABSENT,
        keepdim: bool = False,
        *,
        correction: Any = ABSENT,
    ) -> Any:
        if isinstance(dim, bool) and unbiased is ABSENT:
            dim, unbiased = ABSENT, dim
        if unbiased is not ABSENT:
            if not isinstance(unbiased, bool) or correction is not ABSENT:
                raise combination(name, (input,), signatures, unbiased=unbiased)
            correction = int(unbiased)
        elif correction is ABSENT:
            correction = None if dim is ABSENT else 1
        dims = None if dim is ABSENT else given_dims(name, dim)
        return row(input, dims, correction=signed(correction), keepdim=_keep(name, keepdim))

    describe(call, name, doc, __name__)
    more = ("{0}(randn(2,3), correction=0)", "{0}(randn(4), unbiased=False)", "{0}(randn(2,3))")
    method = "_" not in name
    samples = _named(name, more, _DIMS[:2], _TUPLES)
    return function(name=name, rows=[row], method=method, numpy=numpy, samples=samples)(call)


var = _variance("var", var_correction, "The variance; `correction` degrees of freedom are lost (1).")
std = _variance("std", std_correction, "The standard deviation: see `var`.")
var_mean = _variance("var_mean", var_mean_correction, "The variance and the mean.")
std_mean = _variance("std_mean", std_mean_correction, "The standard deviation and the mean.")


# -- norms ----------------------------------------------------------------------------------------
def _shown_order(order: float) -> str:
    return str(int(order)) if float(order).is_integer() else str(order)


def _check_norm(self: Any, order: float, dim: Any, dtype: Any) -> None:
    if self.dtype.kind not in "fc":
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
            f"{scalar_name(self.dtype)}"
        )
    if dtype is not None:
        wanted = scalar_name(dtype)
        if dtype.kind not in "fc":
            raise RuntimeError(
                f"linalg.vector_norm: dtype should be floating point or complex, but got {wanted}"
            )
        if (dtype.kind == "c") != (self.dtype.kind == "c"):
            own, other = ("complex", "complex") if self.dtype.kind == "c" else ("real", "real")
            raise RuntimeError(
                f"linalg.vector_norm: dtype should be {own} for {other} inputs, but got {wanted}"
            )
        if np.promote_types(self.dtype, dtype) != dtype:
            raise RuntimeError(
                f"linalg.vector_norm: the dtype of the input ({scalar_name(self.dtype)}) should be "
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


def _vector_norm(
    self: Array, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Array:
    dtype = numpy_dtype(dtype)
    _check_norm(self, ord, dim, dtype)
    own = self.dtype if dtype is None else dtype
    kind = np.zeros((), own).real.dtype
    if dtype is not None:
        self = self.astype(dtype, copy=False)
    if self.dtype.itemsize == 2:
        self = self.astype(np.float32)
    axis = axes(dim, self.ndim)
    if ord == 2:
        squares = self * self if self.dtype.kind != "c" else (self * self.conj()).real
        return np.sqrt(np.add.reduce(squares, axis=axis, keepdims=keepdim)).astype(kind, copy=False)
    if ord == 0:
        found = np.add.reduce(self != 0, axis=axis, dtype=kind, keepdims=keepdim)
        return found.astype(kind, copy=False)
    size = np.abs(self)
    if ord == 1:
        found = np.add.reduce(size, axis=axis, keepdims=keepdim)
    elif ord == inf:
        found = np.maximum.reduce(size, axis=axis, keepdims=keepdim)
    elif ord == -inf:
        found = np.minimum.reduce(size, axis=axis, keepdims=keepdim)
    else:
        with np.errstate(all="ignore"):
            powers = np.add.reduce(size**ord, axis=axis, keepdims=keepdim)
            found = powers ** (1.0 / ord)
    return found.astype(kind, copy=False)


def norm_backward(g: Any, self: Any, p: Any, norm: Any, dim: Any, keepdim: bool) -> Any:
    """The gradient of a vector norm; None (no gradient) for p=0. Zero where the norm is."""
    if not keepdim and self.ndim:
        g, norm = unsqueeze_dims(g, dim, self.ndim), unsqueeze_dims(norm, dim, self.ndim)
    if p == 0:
        return None
    if p == 1:
        return sgn(self) * g
    if p == 2:
        return g * masked_fill(self / norm, norm == 0, 0)
    if p in (inf, -inf):
        size = np.abs(self)
        mask = (size == norm) | np.isnan(size)
        return sgn(self) * _scale_by_count(g, mask, dim)
    if p < 1:
        scaled = sgn(self) * masked_fill(np.abs(self) ** (p - 1), self == 0, 0)
        return scaled * g * norm ** (1 - p)
    scaled = sgn(self) * np.abs(self) ** (p - 1) if p < 2 else self * np.abs(self) ** (p - 2)
    return scaled * masked_fill(g / norm ** (p - 1), norm == 0, 0)


@operator(_vector_norm, "LinalgVectorNormBackward0", public=False)
class vector_norm_row:
    self = lambda g, self, ord, result, dim, keepdim: norm_backward(
        g, self, ord, result, () if dim is None else dim, keepdim
    )


_NORMS = ("{0}(randn(2,3))", "{0}(randn(2,3), 1)", "{0}(randn(2,3), 3, 1)", "{0}(randn(4), inf)")


@function(
    name="linalg.vector_norm",
    method=False,
    rows=[vector_norm_row],
    samples=_named("linalg.vector_norm", _NORMS, ("{0}(randn(2,3), 0.5, keepdim=True)",)),
)
def vector_norm(
    x: Array, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """The p-norm of all elements, or along dimensions."""
    dims = given_dims("linalg.vector_norm", dim)
    return vector_norm_row(x, signed(ord), dims, _keep("linalg.vector_norm", keepdim), dtype=dtype)


@function(
    rows=[vector_norm_row],
    samples=_named("norm", _NORMS, ("{0}(randn(2,3), p='fro', dim=1)", "{0}(randn(()))")),
)
def norm(
    input: Array, p: Any = "fro", dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """The p-norm of all elements, or along dimensions; p="nuc" sums the singular values."""
    dims = given_dims("norm", dim)
    if isinstance(p, str) and p != "fro":
        from gradcli.operators.table import resolve

        over = (-2, -1) if dims is None else dims
        return resolve("linalg.matrix_norm")(input, p, over, keepdim, dtype=dtype)
    order = 2 if p == "fro" else 2.0 if p is None else p
    return vector_norm_row(input, signed(order), dims, _keep("norm", keepdim), dtype=dtype)


# -- logsumexp and softmax ------------------------------------------------------------------------
def _logsumexp(self: Array, dim: Any, keepdim: bool = False) -> Array:
    axis = axes(dim, self.ndim)
    if not self.size:
        with np.errstate(all="ignore"):
            return np.log(np.add.reduce(self, axis=axis, keepdims=keepdim))
    largest = np.maximum.reduce(self.real, axis=axis, keepdims=True)
    largest = np.where(np.isinf(largest), largest.dtype.type(0), largest)
    with np.errstate(all="ignore"):
        found = np.log(np.add.reduce(np.exp(self - largest), axis=axis, keepdims=True)) + largest
    if not keepdim:
        found = found.squeeze(axis) if axis is not None else found.reshape(())
    return found[()] if not found.ndim else found


def _logsumexp_backward(g: Any, self: Any, result: Any, dim: Any, keepdim: bool) -> Any:
    if not keepdim and self.ndim:
        g, result = unsqueeze_dims(g, dim, self.ndim), unsqueeze_dims(result, dim, self.ndim)
    return g * conj(np.exp(self - result))


@operator(_logsumexp, "LogsumexpBackward0", types="float", public=False)
class logsumexp_row:
    self = lambda g, self, result, dim, keepdim: _logsumexp_backward(g, self, result, dim, keepdim)


@function(
    aliases="special.logsumexp",
    rows=[logsumexp_row],
    samples=_named("logsumexp", _DIMS, _TUPLES),
)
def logsumexp(input: Array, dim: Any, keepdim: bool = False) -> Any:
    """log(sum(exp(input))) along dimensions, without overflow."""
    dims = given_dims("logsumexp", dim)
    if dims is None:
        raise TypeError("logsumexp(): argument 'dim' (position 2) must be tuple of ints, not NoneType")
    return logsumexp_row(input, dims, _keep("logsumexp", keepdim))


def _check_softmax(name: str, self: Any, dim: int) -> int:
    at = wrap_dim(dim, self.ndim)
    if self.dtype.kind != "f":
        kernel = f"{name}_lastdim_kernel_impl" if at == self.ndim - 1 else f"{name}_kernel_impl"
        raise NotImplementedError(f'"{kernel}" not implemented for \'{scalar_name(self.dtype)}\'')
    return at


def _shifted(self: Any, at: int) -> tuple[Any, Any]:
    """(elements less their largest along a dimension, the sum of their exponentials)."""
    if self.dtype.itemsize == 2:
        self = self.astype(np.float32)
    with np.errstate(all="ignore"):
        shifted = self - np.maximum.reduce(self, axis=at, keepdims=True)
        powers = np.exp(shifted)
        return shifted, powers


def _softmax(self: Array, dim: int) -> Array:
    at = _check_softmax("softmax", self, dim)
    if not self.size:
        return self.copy()
    powers = _shifted(self, at)[1]
    found = powers / np.add.reduce(powers, axis=at, keepdims=True)
    return found.astype(self.dtype, copy=False)


def _log_softmax(self: Array, dim: int) -> Array:
    at = _check_softmax("log_softmax", self, dim)
    if not self.size:
        return self.copy()
    shifted, powers = _shifted(self, at)
    found = shifted - np.log(np.add.reduce(powers, axis=at, keepdims=True))
    return found.astype(self.dtype, copy=False)


def _softmax_backward(grad_output: Array, output: Array, dim: int) -> Array:
    product = grad_output * output
    return product - output * product.sum(axis=dim, keepdims=True)


def _log_softmax_backward(grad_output: Array, output: Array, dim: int) -> Array:
    return grad_output - np.exp(output) * grad_output.sum(axis=dim, keepdims=True)


def _sum_keep(value: Any, dim: int) -> Any:
    return value.sum(axis=dim, keepdims=True) if is_array(value) else value.sum(dim, True)


@operator(_softmax_backward, "SoftmaxBackwardDataBackward0", public=False)
class softmax_backward_data:
    grad_output = lambda g, output, dim: softmax_backward_data(g, output, dim)
    output = lambda g, output, grad_output, dim: (
        grad_output * g
        - _sum_keep(output * grad_output, dim) * g
        - grad_output * _sum_keep(output * g, dim)
    )


@operator(_log_softmax_backward, "LogSoftmaxBackwardDataBackward0", public=False)
class log_softmax_backward_data:
    grad_output = lambda g, output, dim: g - _sum_keep(g * np.exp(output), dim)
    output = lambda g, output, grad_output, dim: (
        -_sum_keep(grad_output, dim) * np.exp(output) * g
    )


@operator(_softmax, "SoftmaxBackward0", public=False)
class softmax_row:
    self = lambda g, result, dim: softmax_backward_data(g, result, dim)


@operator(_log_softmax, "LogSoftmaxBackward0", public=False)
class log_softmax_row:
    self = lambda g, result, dim: log_softmax_backward_data(g, result, dim)


_SOFT = ("{0}(randn(2,3), 1)", "{0}(randn(2,3), dim=0)", "{0}(randn(()), 0)", "{0}(randn(0), 0)")


def _implicit_dim(name: str, ndim: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include "
        "dim=X as an argument.",
        UserWarning,
        stacklevel=3,
    )
    return 0 if ndim in (0, 1, 3) else 1


def _soft(name: str, row: Row, doc: str) -> Any:
    def call(input: Array, dim: Any, dtype: Any = None) -> Any:
        dim = given_dim(name, dim)
        return row(input if dtype is None else cast(input, numpy_dtype(dtype)), dim)

    def functional(
        input: Array, dim: Any = None, _stacklevel: int = 3, dtype: Any = None
    ) -> Any:
        if dim is None:
            dim = _implicit_dim(name, input.ndim)
        return call(input, dim, dtype)

    for one in (call, functional):
        describe(one, name, doc, __name__)
    samples = _named(name, _SOFT)
    made = function(name=name, aliases=f"special.{name}", rows=[row], samples=samples)(call)
    full = f"nn.functional.{name}"
    function(name=full, method=False, rows=[row], samples=_named(full, _SOFT))(functional)
    return made


softmax = _soft("softmax", softmax_row, "exp(input), scaled to the sum 1 along a dimension.")
log_softmax = _soft("log_softmax", log_softmax_row, "The logarithm of `softmax`.")


@function(
    name="nn.functional.softmin",
    method=False,
    rows=[softmax_row],
    samples=_named("nn.functional.softmin", _SOFT),
)
def softmin(input: Array, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    """The `softmax` of -input."""
    if dim is None:
        dim = _implicit_dim("softmin", input.ndim)
    return softmax(-input, dim, dtype)


# -- running sums and products --------------------------------------------------------------------
def _running(ufunc: Any) -> Any:
    def kernel(self: Array, dim: int, *, dtype: Any = None) -> Array:
        kind = numpy_dtype(dtype)
        at = wrap_dim(dim, self.ndim)
        if kind is not None:
            self = (self.real if kind.kind != "c" else self).astype(kind, copy=False)
        elif integers(self):
            kind = np.dtype(np.int64)
        if not self.ndim:
            return self.astype(kind) if kind is not None else self.copy()[()]
        if self.dtype.itemsize < 8 and self.dtype.kind == "f":
            return ufunc.accumulate(self, axis=at, dtype=np.float64).astype(self.dtype)
        return ufunc.accumulate(self, axis=at, dtype=kind)

    return kernel


def _reversed_cumsum(value: Any, dim: int) -> Any:
    """The sums from each element to the last."""
    if is_array(value):
        return flip(np.add.accumulate(flip(value, dim), axis=dim), dim)
    return value.flip(dim).cumsum(dim).flip(dim)


def _cumsum_backward(g: Any, dim: int, dtype: Any) -> Any:
    g = cast(g, dtype)
    if data(g).size <= 1 or g.shape[dim] == 1:
        return g
    return _reversed_cumsum(g, dim)


@operator(_running(np.add), "CumsumBackward0", kind="linear", public=False)
class cumsum_row:
    self = lambda g, dim, self_dtype: _cumsum_backward(g, dim, self_dtype)


def _cumprod_backward(g: Any, self: Any, dim: int, result: Any) -> Any:
    g = cast(g, data(self).dtype)
    if data(self).size <= 1 or self.shape[dim] == 1:
        return g
    dim = dim % self.ndim
    if not _zeros_in(self):
        return _reversed_cumsum(conj(result) * g, dim) / conj(self)
    if is_array(self):
        return _cumprod_backward_zeros(g, conj(self), dim, conj(result))
    return _cumprod_backward_slices(g, conj(self), dim)


def _cumprod_backward_zeros(g: Any, self: Any, dim: int, result: Any) -> Any:
    """Linear time in spite of zeros: before the first one, at it, and nothing after the second."""
    zeros = np.add.accumulate(self == 0, axis=dim)
    with np.errstate(all="ignore"):
        made = _reversed_cumsum(np.where(zeros == 0, result * g, 0), dim) / self
    made = np.where(zeros == 0, made, 0)
    first = (self == 0) & (zeros == 1)
    between = (zeros == 1) & ~first
    after = np.multiply.accumulate(np.where(between, self, 1), axis=dim)
    total = np.add.reduce(np.where(zeros == 1, after * g, 0), axis=dim, keepdims=True)
    before = np.multiply.reduce(np.where(zeros == 0, self, 1), axis=dim, keepdims=True)
    return np.where(first, total * before, made)


def _cumprod_backward_slices(g: Any, self: Any, dim: int) -> Any:
    """Position by position, differentiable again where elements are zero."""
    from gradcli.operators.table import resolve

    size = self.shape[dim]
    edge = zeros_like(narrow(self, dim, 0, 1)) + 1
    slices = []
    for k in range(size):
        before = edge if k == 0 else prod(narrow(self, dim, 0, k), dim, True)
        left = before
        if k + 1 < size:
            after = cumprod(narrow(self, dim, k + 1, size - k - 1), dim)
            left = cat([before, after if k == 0 else before * after], dim)
        slices.append(sum_(narrow(g, dim, k, size - k) * left, dim))
    return resolve("stack")(slices, dim)


@operator(_running(np.multiply), "CumprodBackward0", public=False)
class cumprod_row:
    self = lambda g, self, dim, result: _cumprod_backward(g, self, dim, result)


_SCANS = ("{0}(randn(2,3), 1)", "{0}(randn(2,3), dim=0)", "{0}(randn(()), 0)", "{0}(randn(0), 0)")


def _scan(name: str, row: Row, doc: str, numpy: Any, samples: tuple[str, ...]) -> Any:
    def call(input: Array, dim: Any, *, dtype: Any = None) -> Any:
        return row(input, given_dim(name, dim), dtype=dtype)

    describe(call, name, doc, __name__)
    return function(
        name=name, inplace=True, rows=[row], numpy=numpy, samples=_named(name, samples)
    )(call)


cumsum = _scan("cumsum", cumsum_row, "The running sum along a dimension.", np.cumsum, _SCANS)
cumprod = _scan(
    "cumprod",
    cumprod_row,
    "The running product along a dimension.",
    np.cumprod,
    (*_SCANS, "{0}(tensor([2., 0., 3., 0.]), 0)"),
)


