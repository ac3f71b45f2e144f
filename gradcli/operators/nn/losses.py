"""Loss functions of `torch.nn.functional`, with every reduction."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from math import log, pi, prod
from typing import Any

import numpy as np

from gradcli.engine.core.batched_arrays import anywhere
from gradcli.engine.core.declaration import Array, DType, Value, itself
from gradcli.engine.core.generated_calls import generated as compiled
from gradcli.engine.core.modes import no_grad, users_level
from gradcli.engine.core.promotion import BOOL_OPERAND, mismatch
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.engine.core.views import check_cast, check_size, uncastable
from gradcli.engine.registry.derivative_pairs import last
from gradcli.engine.registry.rule_helpers import (
    at_least,
    check_numbers,
    expect_alike,
    expect_long,
    implemented,
    minus,
    raise_on_grad,
    refuse_if,
    shared,
    total,
    where,
    zeros_like,
)
from gradcli.engine.registry.schema import Python
from gradcli.engine.registry.table import Primitive, function, operator, primitive, resolve
from gradcli.engine.system import dtypes
from gradcli.engine.system.dtypes import scalar_name
from gradcli.operators.movement.reshaping import (
    broadcast_shape,
    broadcast_shapes,
    broadcast_tensors,
)
from gradcli.operators.nn.activations import NUMBERS, log_sigmoid_p, logsigmoid
from gradcli.operators.primitives.arithmetic import (
    TWO_BOOLS,
    add_scalar,
    div_scalar,
    le,
    mul_scalar,
    sub,
    sub_scalar,
)
from gradcli.operators.primitives.elementwise import sigmoid
from gradcli.operators.primitives.elementwise_pairs import clamp_min, minimum, xlogy
from gradcli.operators.primitives.reductions import mean_all
from gradcli.operators.primitives.softmax import log_softmax_p

_REDUCTION = "Any size_average=None, Any reduce=None, Any reduction='mean'"
_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}
NONE, MEAN, SUM = 0, 1, 2


def reduction_number(
    reduction: str,
    size_average: bool | None = None,
    reduce: bool | None = None,
    refusal: str = "",
) -> int:
    """The number that PyTorch's kernels take for a reduction's name.

    refusal: what follows another name, where PyTorch adds it to that: to a name only.
    """
    if size_average is not None or reduce is not None:
        average = True if size_average is None else size_average
        wanted = True if reduce is None else reduce
        reduction = ("mean" if average else "sum") if wanted else "none"
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
            UserWarning,
            stacklevel=users_level(),
        )
    if not isinstance(reduction, str) or reduction not in _REDUCTIONS:
        if refusal:
            raise ValueError(reduction + refusal)
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _REDUCTIONS[reduction]


def loss(
    signature: str, *, python: Python = True, refusal: str = "", **facts: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a loss of `torch.nn.functional`; its body gets the `number` of the reduction asked for.

    `{reduction}` in the signature stands for that and for `size_average` and `reduce`, of former days.
    refusal: as for `reduction_number`. facts: as for `function`.
    """
    signature = signature.replace("{reduction}", _REDUCTION)

    def reducing(body: Callable[..., Any], names: list[str]) -> Callable[..., Any]:
        old = [n for n in ("size_average", "reduce") if n in names]
        given = [n for n in names if n not in old]
        named = ["reduction", *(f"{n}={n}" for n in old)]
        given[given.index("reduction")] = f"number({', '.join(named)}, refusal=refusal)"
        lines = [f"return body({', '.join(given)})"]
        space = {"body": body, "number": reduction_number, "refusal": refusal}
        return compiled("loss", ", ".join(names), lines, space)

    name = f"nn.functional.{signature.partition('(')[0]}"
    return function(signature, python=python, method=False, name=name, adapt=reducing, **facts)


def reduced(values: Value, reduction: int) -> Any:
    """All values, their mean or their sum; on arrays and tensors."""
    if reduction == NONE:
        return values
    if reduction == SUM:
        return total(values)
    return mean_all(values)


def _check_weights(weight: float, input: Tensor) -> None:
    if not hasattr(weight, "shape"):  # PyTorch's words
        raise AttributeError(f"'{type(weight).__name__}' object has no attribute 'size'")
    if tuple(weight.shape) != tuple(input.shape):
        raise ValueError("Weights and input must have the same size.")


def _reweighted(values: Tensor, weight: float, input: Tensor, reduction: int) -> Any:
    """Losses by weights of the elements: their mean is that of the weights."""
    _check_weights(weight, input)
    values = values * weight
    return total(values) / total(weight) if reduction == MEAN else reduced(values, reduction)


def _spread(g: Value, reduction: int, like: Value) -> Any:
    """A reduced loss's gradient as one for each element."""
    if reduction != MEAN:
        return g
    return shared(g, prod(like.shape))


def _number(value: float, like: Tensor) -> Tensor:
    """A number as a 0-d constant: the other operand of a recorded difference."""
    return wrap(like.array.dtype.type(value))


_BROADCAST = (
    "Using a target size ({}) that is different to the input size ({}). This will likely lead to "
    "incorrect results due to broadcasting. Please ensure they have the same size."
)


def _beside(input: Tensor, target: Tensor) -> tuple[Any, Any]:
    """Two tensors of one shape, the smaller one expanded, with a warning where they have two."""
    shape, other = input.shape, target.shape
    if shape == other:
        return input, target
    sizes = [f"torch.Size({list(s)})" for s in (other, shape)]
    warnings.warn(_BROADCAST.format(*sizes), UserWarning, stacklevel=users_level())
    refusal = mismatch([tuple(shape), tuple(other)])
    if refusal is not None:
        raise refusal
    found: tuple[Any, Any] = broadcast_tensors(input, target)
    return found


_PAIR = (
    "(randn(2,3), randn(2,3)); (randn(2,3), randn(2,3), reduction='sum'); "
    "(randn(2,3), randn(2,3), reduction='none')"
)


# -- losses of a difference -----------------------------------------------------------------------
def _elementwise(facts: str = "", **more: Any) -> Callable[[type], Primitive]:
    """A decorator: the primitive of a loss that has a value for each element, and reduces them."""
    return primitive(f"loss common {facts}", batching="loss", **more)


def _slope(facts: str = "", **more: Any) -> Callable[[type], Primitive]:
    """A decorator: the primitive of such a loss's gradient, an operator of its own in PyTorch."""
    return primitive(f"own {facts}", batching="loss_backward", **more)


def _mse_double(g: Value, self: Value, reduction: int) -> Any:
    return _spread(2 * g, reduction, self)


@_slope(node="MseLossBackwardBackward0")
class mse_loss_backward:
    """`2 * (self - target) * grad_output / (self.numel() if reduction == 1 else 1)`."""

    def forward(grad_output: Array, self: Array, target: Array, reduction: int) -> Array:
        scale = 2.0 / max(self.size, 1) if reduction == MEAN else 2.0
        return scale * (self - target) * grad_output

    grad_output = itself
    self = lambda g, grad_output, self, reduction: _mse_double(g * grad_output, self, reduction)
    target = lambda g, grad_output, target, reduction: (
        -_mse_double(g * grad_output, target, reduction)
    )


@_elementwise(node="MseLossBackward0", refuses={NUMBERS: "mse_cpu"})
class mse_loss_p:
    def forward(self: Array, target: Array, reduction: int = 1) -> Array:
        difference = self - target
        return reduced(difference * difference, reduction)

    self = mse_loss_backward
    target = lambda g, self, target, reduction: mse_loss_backward(g, target, self, reduction)


@loss("mse_loss(Tensor input, Tensor target, {reduction}, Any weight=None)", samples=_PAIR)
def mse_loss(input: Tensor, target: Tensor, number: int, weight: Any) -> Any:
    """The squared differences."""
    a, b = _beside(input, target)
    if weight is None:
        return mse_loss_p(a, b, number)
    return _reweighted((a - b) ** 2, weight, input, number)


@loss("l1_loss(Tensor input, Tensor target, {reduction}, Any weight=None)", samples=_PAIR)
def l1_loss(input: Tensor, target: Tensor, number: int, weight: float | None) -> Any:
    """The absolute differences."""
    a, b = _beside(input, target)
    values = (a - b).abs()
    if weight is None:
        return reduced(values, number)
    return _reweighted(values, weight, input, number)


def _smooth_l1_double(g: Array, self: Array, target: Array, reduction: int, beta: float) -> Any:
    inside = np.abs(self - target) < beta
    return _spread(g / beta * inside, reduction, self)  # PyTorch's product: NaN stays NaN


@_slope(node="SmoothL1LossBackwardBackward0")
class smooth_l1_loss_backward:
    """`clamp((self - target) / beta, -1, 1) * grad_output
    / (self.numel() if reduction == 1 else 1)`.
    """

    def forward(
        grad_output: Array, self: Array, target: Array, reduction: int, beta: float
    ) -> Array:
        difference = self - target
        slope = np.clip(difference / beta, -1, 1)
        return _spread(grad_output, reduction, self) * slope

    grad_output = itself
    self = lambda g, grad_output, self, target, reduction, beta: _smooth_l1_double(
        g * grad_output, self, target, reduction, beta
    )
    target = lambda g, grad_output, self, target, reduction, beta: (
        -_smooth_l1_double(g * grad_output, self, target, reduction, beta)
    )


@_elementwise(node="SmoothL1LossBackward0", refuses={NUMBERS: "smooth_l1_cpu"})
class smooth_l1_loss_p:
    def forward(self: Array, target: Array, reduction: int = 1, beta: float = 1.0) -> Array:
        size = np.abs(self - target)
        values = where(size < beta, 0.5 * size * size / beta, size - 0.5 * beta)
        return reduced(values, reduction)

    self = smooth_l1_loss_backward
    target = lambda g, self, target, reduction, beta: smooth_l1_loss_backward(
        g, target, self, reduction, beta
    )


@loss(
    "smooth_l1_loss(Tensor input, Tensor target, {reduction}, float beta=1.0) -> "
    "smooth_l1_loss(input, target, reduction, beta)",
    samples=_PAIR + "; (randn(3), randn(3), beta=0.5)",
)
def smooth_l1_loss(input: Tensor, target: Tensor, number: int, beta: float) -> Any:
    """Squared differences where they are small, absolute ones elsewhere."""
    a, b = _beside(input, target)
    if beta == 0.0:
        return reduced((a - b).abs(), number)
    refuse_if(beta < 0, "smooth_l1_loss does not support negative values for beta.")
    return smooth_l1_loss_p(a, b, number, beta)


def _huber_double(g: Array, self: Array, target: Array, reduction: int, delta: float) -> Any:
    inside = np.abs(self - target) < delta
    return _spread(g * inside, reduction, self)


@_slope(node="HuberLossBackwardBackward0")
class huber_loss_backward:
    """`clamp(self - target, -delta, delta) * grad_output
    / (self.numel() if reduction == 1 else 1)`.
    """

    def forward(
        grad_output: Array, self: Array, target: Array, reduction: int, delta: float
    ) -> Array:
        slope = np.clip(self - target, -delta, delta)
        return _spread(grad_output, reduction, self) * slope

    grad_output = itself
    self = lambda g, grad_output, self, target, reduction, delta: _huber_double(
        g * grad_output, self, target, reduction, delta
    )
    target = lambda g, grad_output, self, target, reduction, delta: (
        -_huber_double(g * grad_output, self, target, reduction, delta)
    )


@_elementwise(node="HuberLossBackward0", refuses={NUMBERS: "huber_cpu"})
class huber_loss_p:
    def forward(self: Array, target: Array, reduction: int = 1, delta: float = 1.0) -> Array:
        refuse_if(delta <= 0, "huber_loss does not support non-positive values for delta.")
        size = np.abs(self - target)
        values = where(size < delta, 0.5 * size * size, delta * (size - 0.5 * delta))
        return reduced(values, reduction)

    self = huber_loss_backward
    target = lambda g, self, target, reduction, delta: huber_loss_backward(
        g, target, self, reduction, delta
    )


@loss(
    "huber_loss(Tensor input, Tensor target, Any reduction='mean', float delta=1.0, Any weight=None)",
    samples=_PAIR + "; (randn(3), randn(3), delta=0.4)",
)
def huber_loss(input: Tensor, target: Tensor, number: int, delta: float, weight: Any) -> Any:
    """Squared differences where they are small, scaled absolute ones elsewhere."""
    a, b = _beside(input, target)
    if weight is None:
        check_cast(b.array.dtype, input.array.dtype)
        out = huber_loss_p(a, b, number, delta)
        return out if out.dtype == input.dtype else out.to(input.dtype)
    _check_weights(weight, input)
    return reduced(huber_loss_p(a, b, NONE, delta) * weight, number)


# -- classes --------------------------------------------------------------------------------------
def _checked_targets(self: Array, target: Array, ignore_index: int) -> tuple[Any, Any]:
    """(targets made valid, where they count); the class dimension is 1, or 0 in a vector."""
    classes = self.shape[0 if self.ndim == 1 else 1]
    counts = target != ignore_index
    valid = np.where(counts, target, 0).astype(np.int64, copy=False)
    check_numbers(_expect_classes, valid, classes)
    return valid, counts


def _expect_classes(targets: Array, classes: int) -> None:
    wrong = (targets < 0) | (targets >= classes)
    if wrong.any():
        raise IndexError(f"Target {int(np.asarray(targets)[wrong].flat[0])} is out of bounds.")


def _check_nll(self: Array, target: Array, weight: Array | None) -> None:
    if self.ndim <= 2 and target.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if target.dtype not in (np.int64, np.uint8):
        from gradcli.engine.core.errors import IntegerOperandError

        raise IntegerOperandError(
            f"expected target dtype to be Long or Byte, but got {scalar_name(target)}"
        )
    if self.ndim == 1 and target.ndim > 0 and target.size != 1:
        raise ValueError(
            "For 1D input, 1D target must have size 1, but got target size: " + str(target.size)
        )
    if self.ndim > 2:
        expect_long(target)
    if weight is not None and weight.shape != (self.shape[0 if self.ndim == 1 else 1],):
        raise RuntimeError(
            f"weight tensor should be defined either for all {self.shape[-1]} classes or no classes "
            f"but got weight tensor of shape: {list(weight.shape)}"
        )


def _nll_weights(
    self: Array, target: Array, weight: Array | None, ignore_index: int
) -> tuple[Any, Any, Any]:
    """(valid targets, their weights, where they count)."""
    valid, counts = _checked_targets(self, target, ignore_index)
    weights = counts if weight is None else np.where(counts, weight[valid], 0)
    return valid, weights.astype(self.dtype), counts


def _picked(self: Array, valid: Array) -> Any:
    if self.ndim == 1:
        return self[valid.reshape(())].reshape(valid.shape)
    return np.take_along_axis(self, np.expand_dims(valid, 1), 1).squeeze(1)


def _all_count(self: Array, target: Array, ignore_index: int) -> bool:
    """Whether rows' targets are numbers in memory, all of them classes and none to be ignored."""
    plain = type(self) is type(target) is np.ndarray and self.ndim == 2 and target.size > 0
    if not plain or target.dtype != np.int64 or self.dtype.itemsize == 2:
        return False
    classes = self.shape[1]
    if 0 <= ignore_index < classes:
        return False
    target = target.reshape(-1).view(np.uint64)  # without sign negative numbers are large
    return bool(target[target.argmax()] < classes)


def _nll(
    self: Array, target: Array, weight: Array | None, reduction: int = 1, ignore_index: int = -100
) -> tuple[Array, Array]:
    _check_nll(self, target, weight)
    implemented("nll_loss_out_frame", self, "efd")
    expect_alike(self, weight)
    if weight is None and _all_count(self, target, ignore_index):
        rows, classes = self.shape
        losses = -self.reshape(-1).take(np.arange(0, rows * classes, classes) + target)
        if reduction == NONE:
            return losses, self.dtype.type(0)
        whole = self.dtype.type(target.size)
        return (_average(losses, target.size) if reduction == MEAN else total(losses)), whole
    valid, weights, counts = _nll_weights(self, target, weight, ignore_index)
    losses = where(counts, -weights * _picked(self, valid), self.dtype.type(0))
    if reduction == NONE:
        return losses, self.dtype.type(0)
    whole = total(weights)
    with np.errstate(all="ignore"):
        out = _average(losses, _whole(weights, whole)) if reduction == MEAN else total(losses)
    return out, whole


def _whole(weights: Array, known: Array | None = None) -> Any:
    """The sum of weights, in single for half precision, whose sum may be infinite."""
    if weights.dtype != np.float16:
        return total(weights) if known is None else known
    return total(weights.astype(np.float32))


def _average(losses: Array, whole: Array | int) -> Any:
    """The sum of losses by that of their weights; in half precision rounded once."""
    if losses.dtype != np.float16:
        return total(losses) / (losses.dtype.type(whole) if isinstance(whole, int) else whole)
    return (total(losses.astype(np.float32)) / np.float32(whole)).astype(np.float16)


def _nll_backward(
    grad_output: Array,
    self: Array,
    target: Array,
    weight: Array | None,
    reduction: int,
    ignore_index: int,
    total_weight: Array,
) -> Array:
    in_memory = isinstance(grad_output, (np.ndarray, np.generic))
    if in_memory and weight is None and _all_count(self, target, ignore_index):
        slopes = np.zeros_like(self)
        slopes[np.arange(len(target)), target] = -(
            shared(grad_output, target.size) if reduction == MEAN else grad_output
        )
        return slopes
    valid, weights, counts = _nll_weights(self, target, weight, ignore_index)
    with np.errstate(all="ignore"):
        g = shared(grad_output, _whole(weights, total_weight)) if reduction == MEAN else grad_output
        values = np.where(counts, -weights * g, 0).astype(self.dtype)
    out = np.zeros_like(self)
    if self.ndim == 1:
        out[int(valid.reshape(()))] = values.reshape(())
    else:
        np.put_along_axis(out, np.expand_dims(valid, 1), np.expand_dims(values, 1), 1)
    return out


def _nll_rows(node: str, name: str) -> tuple[Any, Any]:
    forward_p: Any

    class backward:
        """`-grad_output * one_hot(target) * (1 if weight is None else weight[target])
        / (total_weight if reduction == 1 else 1)`.
        """

        grad_output = lambda g, target, weight, reduction, ignore_index: forward_p(
            g, target, weight, reduction, ignore_index
        )[0]
        self = zeros_like

    backward.__name__ = f"{name}_backward"
    backward_p = operator(
        kernel=_nll_backward,
        node=f"{node}BackwardBackward0",
        public=False,
        types="own",
        batching="classes_backward",
        saves_by_need=False,
        symbolic="slope of nll_loss",
    )(backward)

    class forward:
        self = backward_p

    forward.__name__ = f"{name}_forward"
    forward_p = operator(
        kernel=_nll,
        node=f"{node}Backward0",
        outputs="output | total_weight",
        public=False,
        types="own",
        batching="classes",
        symbolic="nll_loss",
    )(forward)
    return forward_p, backward_p


nll_loss_p, nll_loss_backward = _nll_rows("NllLoss", "nll_loss")
nll_loss2d_p, nll_loss2d_backward = _nll_rows("NllLoss2D", "nll_loss2d")


def _nll_nd(
    input: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int
) -> Any:
    ndim = input.ndim
    refuse_if(ndim < 1, "Expected 1 or more dimensions (got {})", ndim, error=ValueError)
    items = target.shape[0] if target.ndim else 0
    if ndim != 1 and input.shape[0] != items:
        raise ValueError(
            f"Expected input batch_size ({input.shape[0]}) to match target batch_size ({items})."
        )
    raise_on_grad("nll_loss_forward", weight=weight)
    if ndim in (1, 2):
        return nll_loss_p(input, target, weight, reduction, ignore_index)[0]
    if ndim == 4:
        return nll_loss2d_p(input, target, weight, reduction, ignore_index)[0]
    n, c, *rest = input.shape
    if list(target.shape) != [n, *rest]:
        raise RuntimeError(f"Expected target size {[n, *rest]}, got {list(target.shape)}")
    flat = int(np.prod(rest))
    flat_input, flat_target = input.reshape(n, c, 1, flat), target.reshape(n, 1, flat)
    out = nll_loss2d_p(flat_input, flat_target, weight, reduction, ignore_index)[0]
    return out.view(n, *rest) if reduction == NONE else out


@loss(
    "nll_loss(Tensor input, Tensor target, Tensor? weight=None, Any size_average=None, int "
    "ignore_index=-100, Any reduce=None, Any reduction='mean') -> nll_loss_nd",
    primitives=[nll_loss_p, nll_loss2d_p],
    samples="(randn(4,3), tensor([0,2,1,2])); (randn(4,3), tensor([0,2,1,2]), weight=rand(3), "
    "reduction='sum'); (randn(4,3), tensor([0,2,1,2]), reduction='none', ignore_index=1)",
)
def nll_loss(
    input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, number: int
) -> Any:
    """Minus the log-probabilities of the targets' classes."""
    return _nll_nd(input, target, weight, number, ignore_index)


def _class_probabilities(
    input: Tensor, target: Tensor, weight: Any, reduction: int, smoothing: float
) -> Any:
    dim = 0 if input.ndim == 1 else 1
    classes = input.size(dim)
    if target.array.dtype.kind != "f":
        raise RuntimeError(
            f"Expected floating point type for target with class probabilities, got {scalar_name(target)}"
        )
    logs = log_softmax_p(input, dim)
    if smoothing > 0:
        target = add_scalar(mul_scalar(target, 1 - smoothing), smoothing / classes)
    product = logs * target
    if weight is not None:
        product = product * _along_classes(weight, input.ndim, dim)
    if reduction == NONE:
        return -product.sum(dim)
    total = -product.sum()
    if reduction == SUM:
        return total
    count = input.numel() // classes if classes else 0  # PyTorch's mean of no classes is nan
    return div_scalar(total, count)


def _along_classes(weight: Tensor, ndim: int, dim: int) -> Any:
    shape = [1] * ndim
    shape[dim] = weight.shape[0]
    return weight.view(*shape)


def _class_indices(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    smoothing: float,
) -> Any:
    dim = 0 if input.ndim == 1 else 1
    logs = log_softmax_p(input, dim)
    classes = input.shape[dim]
    loss = _nll_nd(logs, target, weight, reduction, ignore_index)
    if smoothing == 0:
        return loss
    weighted = logs if weight is None else logs * _along_classes(weight, input.ndim, dim)
    smooth = -weighted.sum(dim)
    ignored = target.detach() == ignore_index
    smooth = smooth.masked_fill(ignored, 0.0)
    if reduction == MEAN:
        count = ignored.logical_not()
        if weight is not None:
            chosen = weight.detach()[target.detach().masked_fill(ignored, 0)]
            count = chosen.masked_fill(ignored, 0.0)
        smooth = smooth.sum() / count.sum()
    elif reduction == SUM:
        smooth = smooth.sum()
    return mul_scalar(loss, 1 - smoothing) + mul_scalar(smooth, smoothing / classes)


@loss(
    "cross_entropy(Tensor input, Tensor target, Tensor? weight=None, Any size_average=None, int "
    "ignore_index=-100, Any reduce=None, Any reduction='mean', float label_smoothing=0.0) -> "
    "cross_entropy_loss(input, target, weight, reduction, ignore_index, label_smoothing)",
    primitives=[nll_loss_p, nll_loss2d_p],
    samples="(randn(4,3), tensor([0,2,1,2])); (randn(4,3), rand(4,3)); "
    "(randn(4,3), tensor([0,2,1,2]), label_smoothing=0.2)",
)
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    number: int,
    label_smoothing: float,
) -> Any:
    """Minus the log-softmax of the targets' classes (indices, or probabilities)."""
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    if input.shape == target.shape:
        refuse_if(ignore_index >= 0, "ignore_index is not supported for floating point target")
        return _class_probabilities(input, target, weight, number, label_smoothing)
    return _class_indices(input, target, weight, number, ignore_index, label_smoothing)


# -- binary classes -------------------------------------------------------------------------------
def _weighted(values: Value, weight: Value | None, reduction: int, like: Value) -> Any:
    if weight is not None:
        values = values * weight
    return _spread(values, reduction, like)


_EPSILON = 1e-12


@_slope(node="BinaryCrossEntropyBackwardBackward0", symbolic="slope of binary_cross_entropy")
class binary_cross_entropy_backward:
    """`(self - target) / (self * (1 - self)) * (1 if weight is None else weight) * grad_output
    / (self.numel() if reduction == 1 else 1)`.
    """

    def forward(
        grad_output: Array, self: Array, target: Array, weight: Array | None, reduction: int
    ) -> Array:
        least = self.dtype.type(np.float32(_EPSILON))  # PyTorch's constant is of single precision
        spread = np.maximum((1 - self) * self, least)
        with np.errstate(all="ignore"):
            slope = _weighted(grad_output * (self - target) / spread, weight, reduction, self)
        return slope.astype(self.dtype, copy=False)

    def grad_output(g: Value, self: Value, target: Value, weight: Any, reduction: int) -> Any:
        slope = (self - target) / ((self + _EPSILON) * (1 - self + _EPSILON)) * g
        slope = _weighted(slope, weight, reduction, self)
        return slope if reduction == NONE else total(slope)

    def self(
        g: Value, grad_output: Value, self: Value, target: Value, weight: Any, reduction: int
    ) -> Any:
        near, far = self + _EPSILON, 1 - self + _EPSILON
        bend = (self * self - 2 * self * target + target) / (near * near * (far * far))
        return _weighted(bend * (g * grad_output), weight, reduction, self)

    def target(g: Value, grad_output: Value, self: Value, weight: Any, reduction: int) -> Any:
        spread = (1 - self) * self
        return _weighted(-g * grad_output / at_least(spread, _EPSILON), weight, reduction, self)


def _expect_probabilities(array: Array, what: str, other: Any) -> None:
    """Refuse what is no probability; PyTorch names the array of two that has such first."""
    wrong = ~((array >= 0) & (array <= 1))  # nan is neither
    if not wrong.any():
        return
    if type(other) is np.ndarray and other.shape == array.shape:
        before = ~((other >= 0) & (other <= 1)).reshape(-1)[: wrong.reshape(-1).argmax()]
        what = {"input": "target", "target": "input"}[what] if before.any() else what
    raise RuntimeError(f"all elements of {what} should be between 0 and 1")


@_elementwise(
    "own",
    node="BinaryCrossEntropyBackward0",
    refuses={NUMBERS: "binary_cross_entropy"},
    symbolic="binary_cross_entropy",
)
class binary_cross_entropy_p:
    def forward(
        self: Array, target: Array, weight: Array | None = None, reduction: int = 1
    ) -> Array:
        for array, other, what in ((self, target, "input"), (target, self, "target")):
            check_numbers(_expect_probabilities, array, what, other)
        with np.errstate(divide="ignore"):
            one, other = np.maximum(np.log(self), -100), np.maximum(np.log1p(-self), -100)
        values = (target - 1) * other - target * one
        return reduced(values if weight is None else values * weight, reduction)

    self = binary_cross_entropy_backward

    def target(g: Value, self: Value, target: Value, weight: Any, reduction: int) -> Any:
        with np.errstate(divide="ignore"):
            return _weighted(g * (np.log1p(-self) - np.log(self)), weight, reduction, self)


@loss(
    "binary_cross_entropy(Tensor input, Tensor target, Tensor? weight=None, {reduction})",
    samples="(rand(2,3), rand(2,3)); (rand(2,3), rand(2,3), reduction='none')",
)
def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None, number: int) -> Any:
    """Minus the log-likelihood of two classes, from probabilities."""
    raise_on_grad("binary_cross_entropy", weight=weight)
    if input.dtype != target.dtype:
        raise RuntimeError(f"Found dtype {scalar_name(target)} but expected {scalar_name(input)}")
    if tuple(input.shape) != tuple(target.shape):
        raise ValueError(
            f"Using a target size (torch.Size({list(target.shape)})) that is different to the input size "
            f"(torch.Size({list(input.shape)})) is deprecated. Please ensure they have the same size."
        )
    if weight is not None:
        shape = broadcast_shapes(target.shape, weight.shape)
        check_size(input.shape, shape)
        weight = weight.expand(shape).to(input.dtype)
    return binary_cross_entropy_p(input, target, weight, number)


def _log_sigmoid(x: Any) -> Any:
    return log_sigmoid_p(x)[0]


@_elementwise(
    node="BinaryCrossEntropyWithLogitsBackward0",
    refuses={"C": "binary_cross_entropy_with_logits"},
    critical=lambda self: abs(self) > 12,
)
class binary_cross_entropy_with_logits_p:
    def forward(
        self: Array,
        target: Array,
        weight: Array | None = None,
        pos_weight: Array | None = None,
        reduction: int = 1,
    ) -> Array:
        log_sigmoid = np.minimum(self, 0) - np.log1p(np.exp(-np.abs(self)))
        scale = 1 if pos_weight is None else (pos_weight - 1) * target + 1
        values = (1 - target) * self - scale * log_sigmoid
        return reduced(values if weight is None else values * weight, reduction)

    def self(
        g: Value, self: Value, target: Value, weight: Any, pos_weight: Any, reduction: int
    ) -> Any:
        if pos_weight is None:
            slope = (sigmoid(self) - target) * g
        else:
            t = pos_weight * target
            slope = ((t + 1 - target) * sigmoid(self) - t) * g
        return _weighted(slope, weight, reduction, self)

    def target(
        g: Value, self: Value, target: Value, weight: Value | None, pos_weight: Any, reduction: int
    ) -> Any:
        if pos_weight is None:
            slope = -self * g
        else:
            slope = (_log_sigmoid(-self) - pos_weight * _log_sigmoid(self)) * g
        return _weighted(slope, weight, reduction, self)


@loss(
    "binary_cross_entropy_with_logits(Tensor input, Tensor target, Tensor? weight=None, {reduction}, Tensor? "
    "pos_weight=None) -> binary_cross_entropy_with_logits(input, target, weight, pos_weight)",
    aliases="binary_cross_entropy_with_logits",
    samples="(randn(2,3), rand(2,3)); (randn(2,3), rand(2,3), reduction='sum')",
)
def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None, number: int, pos_weight: Tensor | None
) -> Any:
    """Minus the log-likelihood of two classes, from what goes into a sigmoid."""
    if tuple(input.shape) != tuple(target.shape):
        raise ValueError(
            f"Target size (torch.Size({list(target.shape)})) must be the same as input size "
            f"(torch.Size({list(input.shape)}))"
        )
    raise_on_grad("binary_cross_entropy_with_logits", weight=weight, pos_weight=pos_weight)
    if not input.dtype.is_floating_point:  # whatever the target is
        raise dtypes.not_implemented("log_sigmoid_cpu", input)
    refuse_if(pos_weight is not None and pos_weight.array.dtype.kind == "b", BOOL_OPERAND)
    refuse_if(target.array.dtype.kind == "b", TWO_BOOLS)
    # PyTorch writes log_sigmoid(input) over with the weights, and 1 - target with the loss.
    if pos_weight is not None and (pos_weight.dtype.is_complex or target.dtype.is_complex):
        _refuse_narrow(input.array.dtype, input, target, pos_weight)
    _refuse_narrow(target.array.dtype, input, target, *([] if weight is None else [weight]))
    if target.dtype.is_complex and input.requires_grad:
        raise RuntimeError(
            "binary_cross_entropy_with_logits does not support automatic differentiation for "
            "outputs with complex dtype."
        )
    out = binary_cross_entropy_with_logits_p(input, target, weight, pos_weight, number)
    return out if out.dtype == target.dtype else out.to(target.dtype)


def _common(*operands: Any) -> DType:
    """The dtype in which tensors are computed with."""
    found: DType = dtypes.result_type((x.array.dtype, min(x.ndim, 1) + 1) for x in operands)
    return found


def _refuse_narrow(kind: DType, *operands: Any) -> None:
    """Refuse to write what comes of operands over numbers of a dtype that has no room for it."""
    wide = _common(*operands)
    if "biufc".index(wide.kind) > max("biufc".index(kind.kind), 2):
        raise uncastable(wide, kind)


@_elementwise(node="SoftMarginLossBackward0", refuses={"C": "soft_margin_loss"})
class soft_margin_loss_p:
    def forward(self: Array, target: Array, reduction: int = 1) -> Array:
        with np.errstate(over="ignore"):
            return reduced(np.log(np.exp(-target * self) + 1), reduction)

    def self(g: Value, self: Value, target: Value, reduction: int) -> Any:
        power = np.exp(minus(target) * self)  # overflows where PyTorch's does
        return _spread(-(target * power * g / (1 + power)), reduction, self)


@loss(
    "soft_margin_loss(Tensor input, Tensor target, {reduction})",
    samples="(randn(2,3), sign(randn(2,3)))",
)
def soft_margin_loss(input: Tensor, target: Tensor, number: int) -> Any:
    """log(1 + exp(-target * input))."""
    raise_on_grad("soft_margin_loss", target=target)
    own = input.array.dtype
    if own.kind == "b":
        _ = -input  # refused: PyTorch negates first, and the next operations write over the result
    check_size(input.shape, broadcast_shape((input.shape, target.shape)))
    check_cast(_common(input, target), own)
    if own.kind in "iu":
        check_cast(dtypes.default.real, own)
    out = soft_margin_loss_p(input, target, number)
    return out if out.dtype == input.dtype else out.to(input.dtype)


# -- margins --------------------------------------------------------------------------------------
_NO_ROWS = "Expected non-empty vector or matrix with optional 0-dim batch size, but got: "


def _margin_parts(self: Array, target: Array, margin: float) -> tuple[Any, Any, Any]:
    """(rows of inputs, targets, margin - x[target] + x with 0 at the target)."""
    x = self.reshape(1, -1) if self.ndim <= 1 else self
    y = target.reshape(-1)
    refuse_if(((y < 0) | (y >= x.shape[1])).any(), "target out of range")
    rows = np.arange(x.shape[0])
    z = margin - x[rows, y][:, None] + x
    z[rows, y] = 0
    return x, y, np.where(z > 0, z, 0)  # nan is no violation


def _multi_margin_backward(
    grad_output: Array,
    self: Array,
    target: Array,
    p: Any,
    margin: float,
    weight: Array | None,
    reduction: int,
) -> Array:
    x, y, z = _margin_parts(self, target, margin)
    slope = (z > 0) * (1.0 if p == 1 else 2 * z)
    if weight is not None:
        slope = slope * weight[y][:, None]
    slope = shared(slope, x.shape[1])
    slope[np.arange(x.shape[0]), y] = -total(slope, 1)
    if reduction == MEAN:
        slope = shared(slope, x.shape[0])
    scale = grad_output.reshape(-1, 1) if reduction == NONE else grad_output
    return (slope * scale).reshape(self.shape).astype(self.dtype)


multi_margin_loss_backward = last(
    "multi_margin_loss_backward",
    _multi_margin_backward,
    "grad_output self",
    types="own",
    batching="items_backward",
)


@primitive("own", node="MultiMarginLossBackward0", batching="items")
class multi_margin_loss_p:
    def forward(
        self: Array,
        target: Array,
        p: Any = 1,
        margin: float = 1.0,
        weight: Array | None = None,
        reduction: int = 1,
    ) -> Array:
        refuse_if(p not in (1, 2), "only p == 1 and p == 2 supported")
        if self.ndim > 2 or not prod(self.shape[-1:]):
            raise RuntimeError(_NO_ROWS + str(list(self.shape)))
        count = self.shape[0] if self.ndim == 2 else 1
        if target.ndim > 1 or target.size != count:
            raise RuntimeError(
                "multi_margin_loss: target tensor should be 1-D with size equal to the number of input "
                f"samples (batch size). Expected target size [{count}], but got {list(target.shape)}. Input "
                f"has shape {list(self.shape)}."
            )
        implemented("multi_margin_loss_cpu_kernel", self, "fd")
        expect_long(target)
        expect_alike(self, weight)
        x, y, z = _margin_parts(self, target, margin)
        values = z**p
        if weight is not None:
            values = values * weight[y][:, None]
        losses = total(values, 1) / x.shape[1]
        if reduction == NONE:
            return losses.reshape(target.shape)
        return total(losses) / x.shape[0] if reduction == MEAN else total(losses)

    self = multi_margin_loss_backward


@loss(
    "multi_margin_loss(Tensor input, Tensor target, int p=1, Scalar margin=1.0, Tensor? "
    "weight=None, {reduction})",
    samples="(randn(4,3), tensor([0,2,1,2]))",
)
def multi_margin_loss(
    input: Tensor, target: Tensor, p: int, margin: float, weight: Tensor | None, number: int
) -> Any:
    """How far other classes come within a margin of the target's, summed."""
    refuse_if(p not in (1, 2), "only p == 1 and p == 2 supported", error=ValueError)
    if weight is not None and weight.ndim != 1:
        raise ValueError("weight must be one-dimensional")
    raise_on_grad("multi_margin_loss", weight=weight)
    return multi_margin_loss_p(input, target, p, margin, weight, number)


def _multilabel_parts(self: Array, target: Array) -> tuple[Any, Any, Any]:
    """(rows of inputs, listed targets with -1 behind the end, which classes are targets).

    RuntimeError for targets that are not shaped as the inputs, or that are no classes.
    """
    if self.ndim > 2 or (self.ndim and not self.shape[-1]):
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(self.shape)}"
        )
    if target.shape != self.shape and (
        self.ndim > 1 or target.ndim > 1 or target.size != self.size
    ):
        raise RuntimeError(
            f"inconsistent target size: {list(target.shape)} for input of size: {list(self.shape)}"
        )
    if target.size and not -1 <= target.min() <= target.max() < (self.shape or (1,))[-1]:
        raise RuntimeError("argument #2 'target' is out of range")
    expect_long(target)
    x = self.reshape(1, -1) if self.ndim <= 1 else self
    y = target.reshape(x.shape).copy()
    ended = np.cumsum(y < 0, 1) > 0
    y[ended] = -1
    is_target = np.zeros(x.shape, self.dtype)
    rows, columns = np.nonzero(y >= 0)
    is_target[rows, y[rows, columns]] = 1
    return x, y, is_target


def _multilabel_margins(x: Array, y: Array, is_target: Array) -> Any:
    """1 - x[target] + x[other], by row, listed target and other class; 0 where there is no pair."""
    chosen = np.take_along_axis(x, np.maximum(y, 0), 1)
    z = 1 - chosen[:, :, None] + x[:, None, :]
    return np.where((y >= 0)[:, :, None] & (is_target == 0)[:, None, :], z, 0)


def _multilabel_backward(
    grad_output: Array, self: Array, target: Array, reduction: int, is_target: Array
) -> Array:
    x, y, targets = _multilabel_parts(self, target)
    active = (_multilabel_margins(x, y, targets) > 0).astype(self.dtype)
    slope = total(active, 1)
    pull = total(active, 2)
    rows, columns = np.nonzero(y >= 0)
    np.subtract.at(slope, (rows, y[rows, columns]), pull[rows, columns])
    slope = shared(slope, x.shape[1])
    if reduction == MEAN:
        slope = shared(slope, x.shape[0])
    scale = grad_output.reshape(-1, 1) if reduction == NONE else grad_output
    return (slope * scale).reshape(self.shape)


multilabel_margin_loss_backward = last(
    "multilabel_margin_loss_backward",
    _multilabel_backward,
    "grad_output self",
    types="own",
    batching="items_backward",
)


@primitive(node="MultilabelMarginLossBackward0", outputs="output | is_target", batching="items")
class multilabel_margin_loss_p:
    def forward(self: Array, target: Array, reduction: int = 1) -> tuple[Array, Array]:
        if self.ndim > 2 or not prod(self.shape[-1:]):
            raise RuntimeError(_NO_ROWS + str(list(self.shape)))
        if target.shape != self.shape:
            raise RuntimeError(
                f"inconsistent target size: {list(target.shape)} for input of size: {list(self.shape)}"
            )
        implemented("min_all", target, "?bBhilqefd")
        implemented("multilabel_margin_loss_forward_out_frame", self, "fd")
        x, y, is_target = _multilabel_parts(self, target)
        z = _multilabel_margins(x, y, is_target)
        losses = total(np.where(z > 0, z, 0), (1, 2)) / x.shape[1]
        if reduction == NONE:
            out = losses.reshape(self.shape[:-1])
            out = out[()] if not out.ndim else out
        else:
            out = losses.mean() if reduction == MEAN else total(losses)
        return out.astype(self.dtype), is_target.reshape(target.shape)

    self = multilabel_margin_loss_backward


@loss(
    "multilabel_margin_loss(Tensor input, Tensor target, {reduction})",
    samples="(randn(2,4), tensor([[1,2,-1,0],[3,-1,0,0]]))",
)
def multilabel_margin_loss(input: Tensor, target: Tensor, number: int) -> Any:
    """How far other classes come within a margin of each listed target, summed."""
    return multilabel_margin_loss_p(input, target, number)[0]


@loss(
    "multilabel_soft_margin_loss(Tensor input, Any target, Any weight=None, {reduction}) -> "
    "log_sigmoid(input)",
    refusal=" is not valid",
    samples="(randn(2,4), round(rand(2,4)))",
)
def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None, number: int
) -> Any:
    """Binary cross entropy with logits, averaged over classes."""
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    loss = loss.sum(-1) / input.size(-1)
    return reduced(loss, number)


@loss(
    "hinge_embedding_loss(Tensor input, Tensor target, float margin=1.0, {reduction})",
    aliases="hinge_embedding_loss",
    samples="(randn(2,3), sign(randn(2,3)))",
    primitives=(),
)
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float, number: int) -> Any:
    """The input where the target is 1, what it lacks of the margin where it is -1."""
    zeros = _number(0, input)
    margin_clamp = sub(_number(margin, input), input).clamp_min_(0)
    select = resolve("where")
    first = select(wrap(target.array != 1), margin_clamp, zeros)
    second = select(wrap(target.array != -1), input, zeros)
    return reduced(first + second, number)


@loss(
    "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0, {reduction})",
    aliases="margin_ranking_loss",
    samples="(randn(3), randn(3), sign(randn(3)))",
    primitives=(),
)
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float, number: int
) -> Any:
    """What input1 lacks of ranking above input2 (or below it) by a margin."""
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: torch.Size({list(input1.shape)}), input2: torch.Size({list(input2.shape)}), "
            f"target: torch.Size({list(target.shape)}) "
        )
    difference = input1 - input2
    lacking = add_scalar(-target * difference, float(margin))
    return reduced(lacking.clamp_min_(0), number)


@loss(
    "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0, {reduction})",
    aliases="cosine_embedding_loss",
    samples="(randn(2,3), randn(2,3), sign(randn(2)))",
    primitives=(),
)
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float, number: int
) -> Any:
    """1 - cosine for pairs that belong together, the cosine above a margin for others."""
    if target.ndim not in (0, 1):
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if target.ndim == 0 and not input1.ndim == input2.ndim == 1:
        raise RuntimeError(
            f"0D target tensor expects 1D input tensors, but found inputs with sizes "
            f"{list(input1.shape)} and {list(input2.shape)}."
        )
    if target.ndim == 1 and not input1.ndim == input2.ndim == 2:
        raise RuntimeError(
            f"1D target tensor expects 2D input tensors, but found inputs with sizes "
            f"{list(input1.shape)} and {list(input2.shape)}."
        )
    dim = 1 if target.ndim else 0
    inner = (input1 * input2).sum(dim)
    sizes = [add_scalar((x * x).sum(dim), 1e-12) for x in (input1, input2)]
    cosine = inner / (sizes[0] * sizes[1]).sqrt()
    zeros = _number(0, cosine)
    select = resolve("where")
    together = sub(_number(1, cosine), cosine)
    apart = sub_scalar(cosine, margin).clamp_min_(0)
    first = select(wrap(target.array == 1), together, zeros)
    second = select(wrap(target.array == -1), apart, zeros)
    return reduced(first + second, number)


def _check_margin(at: int) -> Callable[..., None]:
    """Looks at the margin, the argument of that position, before anything else is looked at."""

    def check(*values: Any) -> None:
        if values[at] <= 0:
            raise ValueError(f"margin must be greater than 0, got {values[at]}")

    return check


def _check_triplet(anchor: Tensor, positive: Tensor, negative: Tensor) -> None:
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, "
            f"but got: anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs"
        )


@loss(
    "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float "
    "p=2, float eps=1e-06, bool swap=False, {reduction})",
    aliases="triplet_margin_loss",
    python=_check_margin(3),
    samples="(randn(2,3), randn(2,3), randn(2,3))",
    primitives=(),
)
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float,
    p: float,
    eps: float,
    swap: bool,
    number: int,
) -> Any:
    """How much nearer the positive should be to the anchor than the negative, by a margin."""
    _check_triplet(anchor, positive, negative)
    distance = resolve("nn.functional.pairwise_distance")
    near = distance(anchor, positive, p, eps)
    far = distance(anchor, negative, p, eps)
    if swap:
        far = minimum(far, distance(positive, negative, p, eps))
    return reduced(clamp_min(sub(add_scalar(near, margin), far), 0), number)


@loss(
    "triplet_margin_with_distance_loss(Tensor anchor, Tensor positive, Tensor negative, *, Any "
    "distance_function=None, float margin=1.0, Any swap=False, Any reduction='mean')",
    python=_check_margin(4),
    samples="(randn(2,3), randn(2,3), randn(2,3))",
    primitives=(),
)
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    distance_function: Any,
    margin: float,
    swap: bool,
    number: int,
) -> Any:
    """`triplet_margin_loss` with a distance of one's own."""
    _check_triplet(anchor, positive, negative)
    distance = distance_function or resolve("nn.functional.pairwise_distance")
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = minimum(far, distance(positive, negative))
    return reduced(clamp_min(margin + near - far, 0), number)


# -- likelihoods ----------------------------------------------------------------------------------
_KL_MEAN = (
    "reduction: 'mean' divides the total loss by both the batch size and the support size."
    "'batchmean' divides only by the batch size, and aligns with the KL div math definition."
    "'mean' will be changed to behave the same as 'batchmean' in the next major release."
)


@function(
    "nn.functional.kl_div(Tensor input, Tensor target, Any size_average=None, Any reduce=None, "
    "Any reduction='mean', bool log_target=False)|python -> kl_div(input, target)",
    short=False,
    samples="(randn(2,3), rand(2,3), reduction='batchmean'); "
    "(randn(2,3), randn(2,3), reduction='sum', log_target=True)",
)
def kl_div(
    input: Tensor, target: Tensor, size_average: Any, reduce: Any, reduction: str, log_target: bool
) -> Any:
    """The Kullback-Leibler divergence of log-probabilities from a target distribution."""
    if reduction == "mean" and size_average is None and reduce is None:
        warnings.warn(_KL_MEAN, UserWarning, stacklevel=users_level())
    for kinds, name in (("c", "Complex"), ("biu", "Integral")):
        if input.array.dtype.kind in kinds or target.array.dtype.kind in kinds:
            raise RuntimeError(f"kl_div: {name} inputs not supported.")
    batch = reduction == "batchmean"
    number = reduction_number("sum" if batch else reduction, size_average, reduce)
    if log_target:
        values = target.exp() * (target - input)
    else:
        values = xlogy(target, target) - target * input
    out = reduced(values, number)
    return out / input.shape[0] if batch and input.ndim else out


def _expect_no_negative(var: Array) -> None:
    if anywhere(var < 0):
        raise ValueError("var has negative entry/entries")


@function(
    "nn.functional.gaussian_nll_loss(Tensor input, Any target, Any var, Any full=False, Any eps=1e-06, "
    "Any reduction='mean')|python",
    samples="(randn(2,3), randn(2,3), rand(2,3))",
)
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor, full: bool, eps: float, reduction: str
) -> Any:
    """Minus the log-likelihood under a normal distribution of mean input and variance var."""
    if isinstance(var, float):
        refuse_if(var < 0, "var has negative entry/entries", error=ValueError)
        var = var * resolve("ones_like")(input)
    else:
        check_numbers(_expect_no_negative, getattr(var, "array", var))
    if var.shape != input.shape:
        if var.shape == input.shape[:-1]:
            var = var.unsqueeze(-1)
        elif input.ndim != var.ndim or (
            sum(y for x, y in zip(input.shape, var.shape, strict=True) if x != y) != 1
        ):
            raise ValueError("var is of incorrect size")
    number = reduction_number(reduction, refusal=" is not valid")
    var = var.clone()
    with no_grad():
        var.clamp_(min=eps)
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * log(2 * pi)
    return reduced(loss, number)


@loss(
    "poisson_nll_loss(Tensor input, Tensor target, bool log_input=True, bool full=False, Any "
    "size_average=None, float eps=1e-08, Any reduce=None, Any reduction='mean') -> "
    "poisson_nll_loss(input, target, log_input, full, eps)",
    aliases="poisson_nll_loss",
    refusal=" is not a valid value for reduction",
    samples="(randn(2,3), rand(2,3))",
    primitives=(),
)
def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, number: int
) -> Any:
    """Minus the log-likelihood under Poisson distributions."""
    if log_input:
        loss = input.exp() - target * input
    else:
        loss = input - target * add_scalar(input, eps).log()
    if full:
        half = mul_scalar(mul_scalar(target, 2 * pi).log(), 0.5)
        stirling = target * target.log() - target + half
        # PyTorch writes it over a tensor like the loss so far.
        stirling = stirling.to(loss.dtype)
        loss = loss + stirling.masked_fill(le(target, 1), 0)
    return reduced(loss, number)
