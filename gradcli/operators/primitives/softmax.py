"""logsumexp and softmax."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gradcli.engine.core.declaration import Array, Ints, Value, itself
from gradcli.engine.core.modes import users_level
from gradcli.engine.core.primitive import VjpRules
from gradcli.engine.core.tensor import Tensor, wrap_dim
from gradcli.engine.registry import batching_helpers
from gradcli.engine.registry.dimensions import (
    are_few,
    as_dims,
    axes,
    describe,
    maximum_reduce,
    numpy_dtype,
    sum_over_few,
)
from gradcli.engine.registry.rule_helpers import cast, conj, total, unsqueeze_dims
from gradcli.engine.registry.sample_calls import DIMS, TUPLES
from gradcli.engine.registry.table import function, primitive
from gradcli.engine.system import dtypes
from gradcli.engine.system.array_memory import afresh, donated
from gradcli.engine.system.cascaded_sums import add_reduce
from gradcli.engine.system.threads import in_runs
from gradcli.operators.primitives import softmax_loops

FAMILY = "reductions"


_TURNED = 8192  # rows that are transposed at once


# -- logsumexp and softmax ------------------------------------------------------------------------
def _logsumexp_of_few(rows: Array) -> Any:
    """The same for many short rows, transposed block by block; bit-identical."""
    found = np.empty(len(rows), rows.dtype)

    def work(start: int, stop: int) -> None:
        for k in range(start, stop, _TURNED):
            own = found[k : min(k + _TURNED, stop)]
            columns = rows[k : k + len(own)].T.copy()
            largest = np.maximum.reduce(columns, axis=0)
            largest[np.isinf(largest)] = 0
            np.subtract(columns, largest, out=columns)
            np.exp(columns, out=columns)
            sum_over_few.columns(columns, own)
            np.log(own, out=own)
            own += largest

    with np.errstate(all="ignore"):
        in_runs(work, len(rows), rows.size)
    return found


@primitive(
    "float",
    node="LogsumexpBackward0",
    symbolic="logsumexp: dim keepdim",
    jet=lambda s, self, dim, keepdim: s.logsumexp(self, dim, keepdim),
    critical=lambda self: np.ptp(self) > 12 if np.size(self) else False,
)
class logsumexp_p:
    def forward(self: Array, dim: Ints, keepdim: bool = False) -> Array:
        axis = axes(dim, self.ndim)
        if not self.size:
            with np.errstate(all="ignore"):
                return np.log(add_reduce(self, axis=axis, keepdims=keepdim))
        if are_few(self, axis) and self.flags.c_contiguous and self.dtype.char in "fd":
            found = _logsumexp_of_few(self.reshape(-1, self.shape[-1])).reshape(self.shape[:-1])
            return found[..., None] if keepdim else found
        largest = maximum_reduce(self.real, axis=axis, keepdims=True)
        largest = np.where(np.isinf(largest), largest.dtype.type(0), largest)
        with np.errstate(all="ignore"):
            shifted = self - largest
            powers = donated(np.exp, shifted, shifted)
            found = np.log(sum_over_few(powers, axis=axis, keepdims=True)) + largest
        if not keepdim:
            found = found.squeeze(axis) if axis is not None else found.reshape(())
        return found[()] if not found.ndim else afresh(found, self)

    def self(g: Value, self: Value, result: Value, dim: Ints, keepdim: bool) -> Any:
        """`(g if keepdim else g.unsqueeze(dim))
        * exp(self - (result if keepdim else result.unsqueeze(dim)))`.
        """
        if not keepdim and self.ndim:
            g, result = unsqueeze_dims(g, dim, self.ndim), unsqueeze_dims(result, dim, self.ndim)
        shifted: Any = self - result
        powers = conj(donated(np.exp, shifted, shifted))
        return donated(np.multiply, powers, g, powers)


@function(
    "logsumexp(Tensor input, int[1] dim, bool keepdim=False, *, Tensor out=None)",
    aliases="special.logsumexp",
    samples=f"{DIMS}; {TUPLES}",
    out=("only efdFD: logsumexp(): Expected floating point type for result tensor, but got: {1}"),
)
def logsumexp(input: Tensor, dim: Ints, keepdim: bool) -> Any:
    """log(sum(exp(input))) along dimensions, without overflow."""
    return logsumexp_p(input, as_dims(dim), keepdim)


def _check_softmax(name: str, self: Array, dim: int) -> int:
    at = wrap_dim(dim, self.ndim)
    if self.dtype.kind != "f" and self.size:
        last = at == self.ndim - 1 or not self.ndim
        kernel = f"{name}_lastdim_kernel_impl" if last else f"{name}_kernel_impl"
        raise dtypes.not_implemented(kernel, self)
    return at


@np.errstate(all="ignore")  # a decorator costs half of a `with` block
def _shifted(self: Array, at: int) -> tuple[Any, Any]:
    """(elements minus their maximum along a dimension, the exponentials' sum)."""
    if self.dtype.itemsize == 2:
        self = self.astype(np.float32)
    shifted = self - maximum_reduce(self, axis=at, keepdims=True)
    return shifted, np.exp(shifted)


def _softmax(self: Array, dim: int) -> Array:
    at = _check_softmax("softmax", self, dim)
    if not self.size:
        return self.copy()
    if (found := softmax_loops.found(softmax_loops.VALUES, at, self)) is not None:
        return found
    powers = _shifted(self, at)[1]
    found = powers / sum_over_few(powers, axis=at, keepdims=True)
    return afresh(found.astype(self.dtype, copy=False), self)


def _log_softmax(self: Array, dim: int) -> Array:
    at = _check_softmax("log_softmax", self, dim)
    if not self.size:
        return self.copy()
    if (found := softmax_loops.found(softmax_loops.LOG_VALUES, at, self)) is not None:
        return found
    shifted, powers = _shifted(self, at)
    found = shifted - np.log(sum_over_few(powers, axis=at, keepdims=True))
    return afresh(found.astype(self.dtype, copy=False), self)


@primitive(
    "saves_all",
    node="SoftmaxBackwardDataBackward0",
    batching=batching_helpers.slope_of_shares(lambda output: output, weighted=True),
    symbolic="slope of softmax",
)
class softmax_backward_data:
    """`output * (grad_output - (grad_output * output).sum(dim, True))`."""

    def forward(grad_output: Array, output: Array, dim: int) -> Array:
        found = softmax_loops.found(softmax_loops.SLOPES, dim, grad_output, output)
        if found is not None:
            return found
        product = grad_output * output
        return product - output * total(product, dim, True)

    grad_output = itself
    output = lambda g, output, grad_output, dim: (
        grad_output * g
        - total(output * grad_output, dim, True) * g
        - grad_output * total(output * g, dim, True)
    )


@primitive(
    "saves_all",
    node="LogSoftmaxBackwardDataBackward0",
    batching=batching_helpers.slope_of_shares(np.exp, weighted=False),
    symbolic="slope of log_softmax",
)
class log_softmax_backward_data:
    """`grad_output - exp(output) * grad_output.sum(dim, True)`."""

    def forward(grad_output: Array, output: Array, dim: int) -> Array:
        found = softmax_loops.found(softmax_loops.LOG_SLOPES, dim, grad_output, output)
        if found is not None:
            return found
        return grad_output - np.exp(output) * total(grad_output, dim, True)

    grad_output = lambda g, output, dim: g - total(g * np.exp(output), dim, True)
    output = lambda g, output, grad_output, dim: -total(grad_output, dim, True) * np.exp(output) * g


@primitive(
    kernel=_softmax,
    node="SoftmaxBackward0",
    refuses={"C": "_softmax"},
    symbolic="softmax: dim",
    jet=lambda s, self, dim: s.softmax(self, dim),
    critical=lambda result: result > 0.99999,
)
class softmax_p:
    self = lambda g, result, dim: softmax_backward_data(g, result, dim)


@primitive(
    kernel=_log_softmax,
    node="LogSoftmaxBackward0",
    refuses={"C": "_log_softmax"},
    symbolic="log_softmax: dim",
    jet=lambda s, self, dim: s.log_softmax(self, dim),
    critical=lambda result: result > -1e-5,
)
class log_softmax_p:
    self = lambda g, result, dim: log_softmax_backward_data(g, result, dim)


_SOFT = "(randn(2,3), 1); (randn(2,3), dim=0); (randn(()), 0); (randn(0), 0)"


def _implicit_dim(name: str, ndim: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include "
        "dim=X as an argument.",
        UserWarning,
        stacklevel=users_level(),
    )
    return 0 if ndim in (0, 1, 3) else 1


def _soft(name: str, primitive: VjpRules, doc: str) -> Any:
    def call(input: Tensor, dim: int, dtype: dtypes.dtype | None) -> Any:
        return primitive(input if dtype is None else cast(input, numpy_dtype(dtype)), dim)

    def functional(
        input: Tensor, dim: int | None, _stacklevel: int, dtype: dtypes.dtype | None
    ) -> Any:
        return call(input, _implicit_dim(name, input.ndim) if dim is None else dim, dtype)

    for one in (call, functional):
        describe(one, name, doc, __name__)
    signature = f"{name}(Tensor input, int dim, ScalarType? dtype=None, *, Tensor? out=None)"
    made = function(
        signature,
        name=name,
        aliases=f"special.{name}",
        primitives=[primitive],
        samples=_SOFT,
        out="exact",
    )(call)
    full = f"nn.functional.{name}"
    function(
        f"{name}(Tensor input, int? dim=None, Any _stacklevel=3, ScalarType? dtype=None) -> {name}(dim)",
        python=True,
        name=full,
        method=False,
        primitives=[primitive],
        samples=_SOFT,
    )(functional)
    return made


softmax = _soft("softmax", softmax_p, "exp(input), scaled to the sum 1 along a dimension.")
log_softmax = _soft("log_softmax", log_softmax_p, "The logarithm of `softmax`.")


@function(
    "nn.functional.softmin(Tensor input, int? dim=None, Any _stacklevel=3, ScalarType? dtype=None) "
    "-> softmax(dim)",
    python=True,
    primitives=[softmax_p],
    samples=_SOFT,
)
def softmin(input: Tensor, dim: int | None, _stacklevel: int, dtype: Any) -> Any:
    """The `softmax` of -input."""
    if dim is None:
        dim = _implicit_dim("softmin", input.ndim)
    return softmax(-input, dim, dtype)
