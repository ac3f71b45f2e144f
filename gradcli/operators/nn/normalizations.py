"""Normalisations of `torch.nn.functional`: over layers, groups, batches, instances, neighbours, norms."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from gradcli.engine.core.declaration import Array, Ints, Shape, Value
from gradcli.engine.core.tensor import Tensor, wrap, wrap_dim
from gradcli.engine.registry.rule_helpers import (
    expect_alike,
    implemented,
    raise_on_grad,
    refuse_if,
    total,
    unrecorded,
)
from gradcli.engine.registry.rule_helpers import mean as mean_along
from gradcli.engine.registry.table import function, primitive, resolve
from gradcli.engine.system.array_memory import afresh
from gradcli.operators.movement.strides import of_images
from gradcli.operators.primitives.arithmetic import add_scalar

FAMILY = "nn"


def _sum(x: Value, dims: Ints) -> Any:
    if not dims:
        return x
    return total(x, dims)


def _statistics(x: Value, mean: Any, rstd: Any, dims: Ints) -> tuple[Any, Any]:
    """(x - mean) and 1 / std: as saved on arrays, worked out again (and recorded) on tensors."""
    if unrecorded(x):
        return x - mean, rstd
    centered = x - mean_along(x, dims)
    variance = mean_along(centered * centered, dims)
    eps = rstd.array**-2 - variance.array  # what was added to the variance
    return centered, (variance + wrap(eps)).rsqrt()


def _moments(x: Array, dims: Ints, eps: float) -> tuple[Any, Any]:
    if x.size == 0:
        nothing = np.full([1 if d in dims else n for d, n in enumerate(x.shape)], np.nan, x.dtype)
        return nothing, nothing.copy()
    mean = mean_along(x, dims)
    centered = x - mean
    variance = mean_along(centered * centered, dims)
    return mean, 1 / np.sqrt(variance + x.dtype.type(eps))


def _normal_backward(g: Value, centered: Value, rstd: Value, dims: Ints) -> Any:
    """The gradient of what was normalised, from that of the result."""
    normal = centered * rstd
    return rstd * (g - mean_along(g, dims) - normal * mean_along(g * normal, dims))


def _check_mixed(input: Array, *parameters: Any) -> None:
    """RuntimeError, in PyTorch's words, for parameters of other dtypes than the input.

    Half precision takes parameters in single precision; the first one says whether they are.
    """
    given = [p for p in parameters if p is not None]
    if not given or given[0].dtype == input.dtype:
        return
    if any(p.dtype != np.float32 for p in given):
        raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")
    refuse_if(input.dtype != np.float16, "mixed dtype (CPU): all inputs must share same datatype.")


def _check_alike(input: Array, *parameters: Any) -> None:
    given = [p for p in parameters if p is not None]
    if given and given[0].dtype == input.dtype:
        expect_alike(input, *given)


# -- layers ---------------------------------------------------------------------------------------
@primitive(
    node="NativeLayerNormBackward0", outputs="result0 | result1 result2", batching="layer_normed"
)
class native_layer_norm_p:
    def forward(
        input: Array,
        normalized_shape: Shape,
        weight: Array | None = None,
        bias: Array | None = None,
        eps: float = 1e-5,
    ) -> tuple[Array, Array, Array]:
        _check_mixed(input, weight, bias)
        implemented("LayerNormKernelImpl", input, "efd")
        _check_alike(input, weight, bias)
        dims = tuple(range(input.ndim - len(normalized_shape), input.ndim))
        mean, rstd = _moments(input, dims, eps)
        out = input * rstd - mean * rstd
        if weight is not None:
            out = out * weight
        if bias is not None:
            out = out + bias
        out = out.astype(input.dtype, copy=False)
        return afresh(out, input), afresh(mean, input), afresh(rstd, input)

    def input__weight__bias(
        g: Value,
        input: Value,
        normalized_shape: Shape,
        result1: Value,
        result2: Value,
        weight: Value | None,
        bias: Value | None,
        mask: tuple[bool, ...],
    ) -> tuple[Any, Any, Any]:
        outer = tuple(range(input.ndim - len(normalized_shape)))
        dims = tuple(range(len(outer), input.ndim))
        centered, rstd = _statistics(input, result1, result2, dims)
        g_input = g_weight = g_bias = None
        if mask[0]:
            inner = g if weight is None else g * weight
            g_input = _normal_backward(inner, centered, rstd, dims)
        if mask[1]:
            g_weight = _sum(g * (centered * rstd), outer)
        if mask[2]:
            g_bias = _sum(g, outer)
        return g_input, g_weight, g_bias


def _check_layer(
    input: Tensor, shape: list[int], weight: Tensor | None, bias: Tensor | None
) -> None:
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
            f"element, but got normalized_shape = {shape}"
        )
    for name, value in (("weight", weight), ("bias", bias)):
        if value is not None and list(value.shape) != shape:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                f"{list(value.shape)} and normalized_shape = {shape}"
            )
    if list(input.shape[-len(shape) :]) != shape or input.ndim < len(shape):
        wanted = ", ".join(map(str, shape))
        raise RuntimeError(
            f"Given normalized_shape={shape}, expected input with shape [*, {wanted}], but got input "
            f"of size{list(input.shape)}"
        )


def _layers(
    input: Tensor, normalized_shape: Shape, weight: Tensor | None, bias: Tensor | None, eps: float
) -> Any:
    shape = list(normalized_shape)
    _check_layer(input, shape, weight, bias)
    return native_layer_norm_p(input, tuple(shape), weight, bias, eps)


@function(
    "nn.functional.layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, "
    "float eps=1e-05)|python",
    short=False,
    primitives=[native_layer_norm_p],
    samples="(randn(2,3), (3,)); (randn(2,3), (3,), randn(3), randn(3))",
)
def layer_norm(input: Tensor, normalized_shape: Shape, *options: Any) -> Any:
    """The input with mean 0 and variance 1 over the last dimensions."""
    return _layers(input, normalized_shape, *options)[0]


@function(
    "layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, "
    "float eps=1e-05, bool cudnn_enable=True)|function",
    samples="(randn(2,3), (3,))",
)
def plain_layer_norm(input: Tensor, normalized_shape: Shape, *options: Any) -> Any:
    """See nn.functional.layer_norm."""
    return _layers(input, normalized_shape, *options[:-1])[0]


@function(
    "native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, "
    "float eps)|function",
    primitives=[native_layer_norm_p],
    samples="(randn(2,3), (3,), randn(3), randn(3), 1e-5)",
)
def native_layer_norm(input: Tensor, normalized_shape: Shape, *options: Any) -> Any:
    """(output, mean, 1 / std) of layer_norm."""
    return _layers(input, normalized_shape, *options)


@function(
    "nn.functional.rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None)",
    python=True,
    aliases="rms_norm",
    samples="(randn(2,3), (3,), randn(3))",
    primitives=(),
)
def rms_norm(
    input: Tensor, normalized_shape: Shape, weight: Tensor | None, eps: float | None
) -> Any:
    """The input over its root mean square in the last dimensions."""
    shape = list(normalized_shape)
    _check_layer(input, shape, weight, None)
    implemented("rms_norm", input.array, "efdFD")
    if eps is None:
        eps = float(np.finfo(input.array.dtype).eps)
    dims = tuple(range(input.ndim - len(shape), input.ndim))
    scale = add_scalar(input.pow(2).mean(dims, True), eps).rsqrt()
    out = input * scale
    return out if weight is None else (out * weight).to(input.dtype)


# -- groups ---------------------------------------------------------------------------------------
def _group_norm_backward(
    grads: Sequence[Value | None],
    input: Value,
    weight: Value | None,
    mean: Value,
    rstd: Value,
    sizes: Shape,
    mask: tuple[bool, ...],
) -> tuple[Any, Any, Any]:
    n, c, inner, group = sizes
    width = c * inner // group
    g, g_mean, g_rstd = grads
    x = input.reshape(n, group, width)
    centered, scale = _statistics(x, mean.reshape(n, group, 1), rstd.reshape(n, group, 1), (2,))
    g_input = g_weight = g_bias = None
    up = None if g is None else g.reshape(n, c, inner)
    if mask[0]:
        parts = []
        if up is not None:
            scaled = up if weight is None else up * weight.reshape(c, 1)
            parts.append(_normal_backward(scaled.reshape(n, group, width), centered, scale, (2,)))
        if g_mean is not None:
            parts.append(g_mean.reshape(n, group, 1) / width + centered * 0)
        if g_rstd is not None:
            parts.append(g_rstd.reshape(n, group, 1) * (-(scale**3)) * centered / width)
        if parts:
            total = parts[0]
            for part in parts[1:]:
                total = total + part
            g_input = total.reshape(tuple(input.shape))
    if mask[1] and up is not None:
        g_weight = _sum(up * (centered * scale).reshape(n, c, inner), (0, 2))
    if mask[2] and up is not None:
        g_bias = _sum(up, (0, 2))
    return g_input, g_weight, g_bias


@primitive(
    node="NativeGroupNormBackward0", outputs="result0 result1 result2", batching="group_normed"
)
class native_group_norm_p:
    def forward(
        input: Array,
        weight: Array | None,
        bias: Array | None,
        N: int,
        C: int,
        HxW: int,
        group: int,
        eps: float,
    ) -> tuple[Array, Array, Array]:
        _check_mixed(input, weight, bias)
        implemented("GroupNormKernelImpl", input, "efd")
        _check_alike(input, weight, bias)
        if input.size != N * C * HxW:
            raise RuntimeError(
                "Expected X.numel() == N * C * HxW to be true, but got false.  (Could this error message "
                "be improved?  If so, please report an enhancement request to PyTorch.)"
            )
        grouped = input.reshape(N, group, C * HxW // group)
        mean, rstd = _moments(grouped, (2,), eps)
        out = ((grouped - mean) * rstd).reshape(N, C, HxW)
        if weight is not None:
            out = out * weight[:, None]
        if bias is not None:
            out = out + bias[:, None]
        out = out.reshape(input.shape).astype(input.dtype, copy=False)
        return out, mean.reshape(N, group), rstd.reshape(N, group)

    input__weight__bias = (
        lambda grads, input, weight, result1, result2, N, C, HxW, group, eps, mask: (
            _group_norm_backward(grads, input, weight, result1, result2, (N, C, HxW, group), mask)
        )
    )


def _check_groups(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, c: int, num_groups: int
) -> None:
    """Whether c channels make so many groups, each channel with a weight and a bias."""
    refuse_if(num_groups <= 0, "Expected num groups to be greater than 0, got {}", num_groups)
    if c % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of "
            f"shape {list(input.shape)} and num_groups={num_groups}"
        )
    for name, value in (("weight", weight), ("bias", bias)):
        if value is not None and (value.ndim != 1 or value.shape[0] != c):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, "
                f"but got {name} of shape {list(value.shape)} and input of shape {list(input.shape)}"
            )


def _check_several(input: Tensor, num_groups: int, *others: Any) -> None:
    if isinstance(input, Tensor):
        if input.ndim < 2:
            raise RuntimeError(
                f"Expected at least 2 dimensions for input tensor but received {input.ndim}"
            )
        n, c = input.shape[:2]
        if num_groups != 0:
            _several_values([n * c // num_groups, num_groups, *input.shape[2:]])


@function(
    "nn.functional.group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, "
    "float eps=1e-05)",
    python=_check_several,
    short=False,
    primitives=[native_group_norm_p],
    samples="(randn(2,4,3), 2, randn(4), randn(4))",
)
def group_norm(input: Tensor, num_groups: int, *options: Any) -> Any:
    """The input with mean 0 and variance 1 over groups of channels."""
    return _groups(input, num_groups, *options)[0]


def _groups(
    input: Tensor, num_groups: int, weight: Tensor | None, bias: Tensor | None, eps: float
) -> Any:
    n, c = input.size(0), input.size(1)
    _check_groups(input, weight, bias, c, num_groups)
    inner = prod(input.shape[2:])
    return native_group_norm_p(input, weight, bias, n, c, inner, num_groups, eps)


@function(
    "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, "
    "float eps=1e-05, bool cudnn_enabled=True)|function",
    samples="(randn(2,4,3), 2)",
)
def plain_group_norm(input: Tensor, num_groups: int, *options: Any) -> Any:
    """See nn.functional.group_norm."""
    return _groups(input, num_groups, *options[:-1])[0]


@function(
    "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int N, int C, int HxW, "
    "int group, float eps)|function",
    samples="(randn(2,4,3), randn(4), randn(4), 2, 4, 3, 2, 1e-5)",
)
def native_group_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    eps: float,
) -> Any:
    """(output, mean, 1 / std) of group_norm."""
    _check_groups(input, weight, bias, C, group)
    return native_group_norm_p(input, weight, bias, N, C, HxW, group, eps)


# -- batches --------------------------------------------------------------------------------------
_NO_STATISTICS = "running_mean and running_var must be defined in evaluation mode"


def _channels(x: Value, ndim: int) -> Any:
    return x.reshape(1, -1, *[1] * (ndim - 2))


def _update(
    mean: Array | None, variance: Array | None, input: Array, dims: Ints, momentum: float
) -> None:
    """Move the running statistics towards the batch's, in place."""
    middle = mean_along(input, dims)
    if mean is not None:
        mean += momentum * (middle.reshape(-1) - mean)
    if variance is not None:
        off = input - middle
        found = total(off * off, dims) / (input.size // middle.size - 1)
        variance += momentum * (found - variance)


@primitive(
    node="NativeBatchNormBackward0", outputs="result0 | result1 result2", batching="batch_normed"
)
class native_batch_norm_p:
    def forward(
        input: Array,
        weight: Array | None,
        bias: Array | None,
        running_mean: Array | None,
        running_var: Array | None,
        training: bool,
        momentum: float,
        eps: float,
    ) -> tuple[Array, Array, Array]:
        implemented("batch_norm", input, "efd")
        _check_mixed(input, weight, bias, running_mean, running_var)
        _check_alike(input, weight, bias, running_mean, running_var)
        dims = (0, *range(2, input.ndim))
        if training:
            mean, rstd = _moments(input, dims, eps)
            out = (input - mean) * rstd
            saved = mean.reshape(-1), rstd.reshape(-1)
            _update(running_mean, running_var, input, dims, momentum)
        else:
            if running_mean is None or running_var is None:
                raise RuntimeError(_NO_STATISTICS)
            rstd = _channels(1 / np.sqrt(running_var + eps), input.ndim)
            out = (input - _channels(running_mean, input.ndim)) * rstd
            saved = np.zeros(0, input.dtype), np.zeros(0, input.dtype)
        if weight is not None:
            out = out * _channels(weight, input.ndim)
        if bias is not None:
            out = out + _channels(bias, input.ndim)
        return of_images(out.astype(input.dtype, copy=False), input), *saved

    def input__weight__bias(
        g: Value,
        input: Value,
        weight: Value | None,
        running_mean: Any,
        running_var: Any,
        training: bool,
        eps: float,
        result1: Value,
        result2: Value,
        mask: tuple[bool, ...],
    ) -> tuple[Any, Any, Any]:
        dims = (0, *range(2, input.ndim))
        if training:
            centered, scale = _statistics(
                input, _channels(result1, input.ndim), _channels(result2, input.ndim), dims
            )
        else:
            scale = _channels((running_var + eps) ** -0.5, input.ndim)
            centered = input - _channels(running_mean, input.ndim)
        g_input = g_weight = g_bias = None
        if mask[0]:
            g_input = _normal_backward(g, centered, scale, dims) if training else g * scale
            if (
                weight is not None
            ):  # last, as PyTorch does: means of infinities of two signs are NaN
                g_input = g_input * _channels(weight, input.ndim)
        if mask[1]:
            g_weight = _sum(g * (centered * scale), dims)
        if mask[2]:
            g_bias = _sum(g, dims)
        return g_input, g_weight, g_bias


def _several_values(size: Any) -> None:
    """Refuses a single value a channel, which has no variance."""
    if size[0] * prod(size[2:]) == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {size}"
        )


def _check_channels(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor | None,
    variance: Tensor | None,
) -> None:
    channels = input.shape[1] if input.ndim > 1 else 0
    named = {"running_mean": mean, "running_var": variance, "weight": weight, "bias": bias}
    for name, value in named.items():
        if value is not None and value.array.size != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {value.array.size}")


def _check_batch(input: Tensor, *others: Any) -> None:
    training, eps = others[4], others[6]
    if training:
        _several_values(input.shape)
        if eps <= 0.0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    elif eps < 0.0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")


def _normed(*values: Any) -> Any:
    """What the primitive makes of a batch whose channels have the statistics and parameters given."""
    _check_channels(*values[:5])
    wrap_dim(1, values[0].ndim)
    raise_on_grad("native_batch_norm", running_mean=values[3], running_var=values[4])
    return native_batch_norm_p(*values)


@function(
    "nn.functional.batch_norm(Tensor input, Tensor? running_mean, Tensor? running_var, "
    "Tensor? weight=None, Tensor? bias=None, bool training=False, float momentum=0.1, "
    "float eps=1e-05) -> batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)",
    python=_check_batch,
    short=False,
    primitives=[native_batch_norm_p],
    samples="(randn(4,3), None, None, randn(3), randn(3), training=True); "
    "(randn(4,3), zeros(3), ones(3), randn(3), randn(3))",
)
def batch_norm(
    input: Tensor,
    mean: Tensor | None,
    variance: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    training: bool,
    *options: float,
) -> Any:
    """The input with mean 0 and variance 1 over the batch, or by running statistics."""
    refuse_if(not training and (mean is None or variance is None), _NO_STATISTICS)
    if input.ndim and input.shape[0] == 0:
        out = input.clone()
        out = out if weight is None else out * weight[0]
        return out if bias is None else out + bias[0]
    for running in (mean, variance):
        if training and running is not None:
            running.memory()
    return _normed(input, weight, bias, mean, variance, training, *options)[0]


@function(
    "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
    "Tensor? running_var, bool training, float momentum, float eps)|function",
    primitives=[native_batch_norm_p],
    samples="(randn(4,3), randn(3), randn(3), None, None, True, 0.1, 1e-5)",
)
def native_batch_norm(*values: Any) -> Any:
    """(output, mean, 1 / std) of batch_norm."""
    return _normed(*values)


@function(
    "nn.functional.instance_norm(Tensor input, Tensor? running_mean=None, Tensor? running_var=None, Tensor? "
    "weight=None, Tensor? bias=None, bool use_input_stats=True, float momentum=0.1, float eps=1e-05) -> "
    "instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps)",
    python=True,
    short=False,
    samples="(randn(2,3,4), weight=randn(3), bias=randn(3))",
)
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
) -> Any:
    """`batch_norm` of every instance by itself."""
    if use_input_stats and prod(input.shape[2:]) == 1:
        raise ValueError(
            f"Expected more than 1 spatial element when training, got input size {input.shape}"
        )
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError(
            "Expected running_mean and running_var to be defined when use_input_stats is false"
        )
    wrap_dim(1, input.ndim)
    b, c = input.shape[:2]
    scale, shift = (x if x is None else x.repeat(b) for x in (weight, bias))
    means, variances = (
        x if x is None else wrap(np.tile(x.array, b)) for x in (running_mean, running_var)
    )
    flat = input.contiguous().view(1, b * c, *input.shape[2:])
    _check_channels(flat, scale, shift, means, variances)
    raise_on_grad("native_batch_norm", running_mean=running_mean, running_var=running_var)
    out = native_batch_norm_p(flat, scale, shift, means, variances, use_input_stats, momentum, eps)[
        0
    ]
    if use_input_stats:
        for running, found in ((running_mean, means), (running_var, variances)):
            if running is not None and found is not None:
                running.memory()[...] = found.array.reshape(b, c).mean(0)
    return out.view(*input.shape)


# -- neighbours and norms -------------------------------------------------------------------------
@function(
    "nn.functional.local_response_norm(Tensor input, Any size, Any alpha=0.0001, Any beta=0.75, "
    "Any k=1.0)|python",
    samples="(randn(2,3,4), 2)",
)
def local_response_norm(input: Tensor, size: int, alpha: float, beta: float, k: float) -> Any:
    """The input over a power of the squares of neighbouring channels."""
    if input.ndim < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality                          input (got {input.ndim} "
            "dimensions)"
        )
    if input.numel() == 0:
        return input
    pad = resolve("nn.functional.pad")
    squares = input * input
    around = (size // 2, (size - 1) // 2)
    if input.ndim == 3:
        padded = pad(squares.unsqueeze(1), (0, 0, *around))
        total = resolve("nn.functional.avg_pool2d")(padded, (size, 1), stride=1).squeeze(1)
    else:
        sizes = tuple(input.shape)
        padded = pad(squares.view(sizes[0], 1, sizes[1], sizes[2], -1), (0, 0, 0, 0, *around))
        total = resolve("nn.functional.avg_pool3d")(padded, (size, 1, 1), stride=1)
        total = total.squeeze(1).view(*sizes)
    return input / total.mul(alpha).add(k).pow(beta)


@function(
    "nn.functional.normalize(Tensor input, Any p=2.0, Any dim=1, Any eps=1e-12, Any out=None)|python",
    samples="(randn(2,3)); (randn(2,3), p=1, dim=0)",
)
def normalize(input: Tensor, p: float, dim: int, eps: float, out: Any) -> Any:
    """The input over its norm along a dimension."""
    norm = resolve("norm")(input, p, dim, keepdim=True)
    into = {} if out is None else {"out": out}
    return resolve("div")(input, norm.clamp_min(eps).expand_as(input), **into)
