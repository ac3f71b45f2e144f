"""Layers without parameters, as one table: what each is made with, the functional that it calls, its repr.

A row is `Name(arguments) | functional arguments | repr`. The functional gets the inputs of `forward`, and the
module's arguments of these names; `training` is the module's; `name=value` is a constant. The repr lists
arguments as `name=value`: `*name` as its value alone, `name?` only if it is true, `name!` with quotes.
"""

from __future__ import annotations

import ast
import warnings
from inspect import Signature
from typing import Any

from gradcli.engine.core.modes import users_level
from gradcli.engine.core.tensor import Tensor
from gradcli.torch.nn import functional
from gradcli.torch.nn.modules.arguments import bound, signature
from gradcli.torch.nn.modules.module import Module

_OLD = "size_average=None, reduce=None, reduction='mean'"
_POOL = "kernel_size, stride=None, padding=0"
_MAX = f"{_POOL}, dilation=1, return_indices=False, ceil_mode=False"
_MAXES = "kernel_size stride padding dilation return_indices ceil_mode"

TABLE = f"""
ReLU(inplace=False)                           | relu inplace                                | inplace?
ReLU6(inplace=False)                          | relu6 inplace                               | inplace?
ELU(alpha=1.0, inplace=False)                 | elu alpha inplace                           | alpha inplace?
CELU(alpha=1.0, inplace=False)                | celu alpha inplace                          | alpha inplace?
SELU(inplace=False)                           | selu inplace                                | inplace?
SiLU(inplace=False)                           | silu inplace                                | inplace?
Mish(inplace=False)                           | mish inplace                                | inplace?
GELU(approximate='none')                      | gelu approximate                            | approximate!
GLU(dim=-1)                                   | glu dim                                     | dim
Hardshrink(lambd=0.5)                         | hardshrink lambd                            | *lambd
Hardsigmoid(inplace=False)                    | hardsigmoid inplace                         |
Hardswish(inplace=False)                      | hardswish inplace                           |
Hardtanh(min_val=-1.0, max_val=1.0, inplace=False) | hardtanh min_val max_val inplace       | min_val max_val inplace?
LeakyReLU(negative_slope=0.01, inplace=False) | leaky_relu negative_slope inplace           | negative_slope inplace?
RReLU(lower=1/8, upper=1/3, inplace=False)    | rrelu lower upper training inplace          | lower upper inplace?
LogSigmoid()                                  | logsigmoid                                  |
Sigmoid()                                     | sigmoid                                     |
Tanh()                                        | tanh                                        |
Tanhshrink()                                  | tanhshrink                                  |
Softsign()                                    | softsign                                    |
Softplus(beta=1.0, threshold=20.0)            | softplus beta threshold                     | beta threshold
Softshrink(lambd=0.5)                         | softshrink lambd                            | *lambd
Threshold(threshold, value, inplace=False)    | threshold threshold value inplace           | threshold value inplace?
Softmax(dim=None)                             | softmax dim                                 | dim
Softmin(dim=None)                             | softmin dim                                 | dim
LogSoftmax(dim=None)                          | log_softmax dim                             | dim
Softmax2d()                                   | softmax dim=-3                              |
Dropout(p=0.5, inplace=False)                 | dropout p training inplace                  | p inplace
Dropout1d(p=0.5, inplace=False)               | dropout1d p training inplace                | p inplace
Dropout2d(p=0.5, inplace=False)               | dropout2d p training inplace                | p inplace
Dropout3d(p=0.5, inplace=False)               | dropout3d p training inplace                | p inplace
AlphaDropout(p=0.5, inplace=False)            | alpha_dropout p training inplace            | p inplace
FeatureAlphaDropout(p=0.5, inplace=False)     | feature_alpha_dropout p training inplace    | p inplace
MaxPool1d({_MAX})                             | max_pool1d {_MAXES}                         | kernel_size stride padding dilation ceil_mode
MaxPool2d({_MAX})                             | max_pool2d {_MAXES}                         | kernel_size stride padding dilation ceil_mode
MaxPool3d({_MAX})                             | max_pool3d {_MAXES}                         | kernel_size stride padding dilation ceil_mode
MaxUnpool1d({_POOL})                          | max_unpool1d kernel_size stride padding     | kernel_size stride padding
MaxUnpool2d({_POOL})                          | max_unpool2d kernel_size stride padding     | kernel_size stride padding
MaxUnpool3d({_POOL})                          | max_unpool3d kernel_size stride padding     | kernel_size stride padding
AvgPool1d({_POOL}, ceil_mode=False, count_include_pad=True) | avg_pool1d kernel_size stride padding ceil_mode count_include_pad | kernel_size stride padding
AvgPool2d({_POOL}, ceil_mode=False, count_include_pad=True, divisor_override=None) | avg_pool2d kernel_size stride padding ceil_mode count_include_pad divisor_override | kernel_size stride padding
AvgPool3d({_POOL}, ceil_mode=False, count_include_pad=True, divisor_override=None) | avg_pool3d kernel_size stride padding ceil_mode count_include_pad divisor_override | kernel_size stride padding
LPPool1d(norm_type, kernel_size, stride=None, ceil_mode=False) | lp_pool1d norm_type kernel_size stride ceil_mode | norm_type kernel_size stride ceil_mode
LPPool2d(norm_type, kernel_size, stride=None, ceil_mode=False) | lp_pool2d norm_type kernel_size stride ceil_mode | norm_type kernel_size stride ceil_mode
LPPool3d(norm_type, kernel_size, stride=None, ceil_mode=False) | lp_pool3d norm_type kernel_size stride ceil_mode | norm_type kernel_size stride ceil_mode
AdaptiveAvgPool1d(output_size)                | adaptive_avg_pool1d output_size             | output_size
AdaptiveAvgPool2d(output_size)                | adaptive_avg_pool2d output_size             | output_size
AdaptiveAvgPool3d(output_size)                | adaptive_avg_pool3d output_size             | output_size
AdaptiveMaxPool1d(output_size, return_indices=False) | adaptive_max_pool1d output_size return_indices | output_size
AdaptiveMaxPool2d(output_size, return_indices=False) | adaptive_max_pool2d output_size return_indices | output_size
AdaptiveMaxPool3d(output_size, return_indices=False) | adaptive_max_pool3d output_size return_indices | output_size
LocalResponseNorm(size, alpha=0.0001, beta=0.75, k=1.0) | local_response_norm size alpha beta k | *size alpha beta k
Unfold(kernel_size, dilation=1, padding=0, stride=1) | unfold kernel_size dilation padding stride | kernel_size dilation padding stride
Fold(output_size, kernel_size, dilation=1, padding=0, stride=1) | fold output_size kernel_size dilation padding stride | output_size kernel_size dilation padding stride
PixelShuffle(upscale_factor)                  | pixel_shuffle upscale_factor                | upscale_factor
PixelUnshuffle(downscale_factor)              | pixel_unshuffle downscale_factor            | downscale_factor
ChannelShuffle(groups)                        | channel_shuffle groups                      | groups
Upsample(size=None, scale_factor=None, mode='nearest', align_corners=None, recompute_scale_factor=None) | interpolate size scale_factor mode align_corners recompute_scale_factor | size?? mode!
UpsamplingNearest2d(size=None, scale_factor=None) | interpolate size scale_factor mode='nearest' | size?? mode!
UpsamplingBilinear2d(size=None, scale_factor=None) | interpolate size scale_factor mode='bilinear' align_corners=True | size?? mode!
CosineSimilarity(dim=1, eps=1e-08)            | cosine_similarity dim eps                   |
PairwiseDistance(p=2.0, eps=1e-06, keepdim=False) | pairwise_distance p eps keepdim         |
L1Loss({_OLD})                                | l1_loss reduction                           |
MSELoss({_OLD})                               | mse_loss reduction                          |
SmoothL1Loss({_OLD}, beta=1.0)                | smooth_l1_loss reduction beta               |
HuberLoss(reduction='mean', delta=1.0)        | huber_loss reduction delta                  |
SoftMarginLoss({_OLD})                        | soft_margin_loss reduction                  |
KLDivLoss({_OLD}, log_target=False)           | kl_div reduction log_target                 |
BCELoss(weight=None, {_OLD})                  | binary_cross_entropy weight reduction       |
BCEWithLogitsLoss(weight=None, {_OLD}, pos_weight=None) | binary_cross_entropy_with_logits weight reduction pos_weight |
CrossEntropyLoss(weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean', label_smoothing=0.0) | cross_entropy weight ignore_index reduction label_smoothing |
NLLLoss(weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean') | nll_loss weight ignore_index reduction |
PoissonNLLLoss(log_input=True, full=False, size_average=None, eps=1e-08, reduce=None, reduction='mean') | poisson_nll_loss log_input full eps reduction |
GaussianNLLLoss(full=False, eps=1e-06, reduction='mean') | gaussian_nll_loss full eps reduction |
HingeEmbeddingLoss(margin=1.0, {_OLD})        | hinge_embedding_loss margin reduction       |
MarginRankingLoss(margin=0.0, {_OLD})         | margin_ranking_loss margin reduction        |
CosineEmbeddingLoss(margin=0.0, {_OLD})       | cosine_embedding_loss margin reduction      |
MultiLabelMarginLoss({_OLD})                  | multilabel_margin_loss reduction            |
MultiLabelSoftMarginLoss(weight=None, {_OLD}) | multilabel_soft_margin_loss weight reduction |
MultiMarginLoss(p=1, margin=1.0, weight=None, {_OLD}) | multi_margin_loss p margin weight reduction |
TripletMarginLoss(margin=1.0, p=2.0, eps=1e-06, swap=False, {_OLD}) | triplet_margin_loss margin p eps swap reduction |
TripletMarginWithDistanceLoss(distance_function=None, margin=1.0, swap=False, reduction='mean') | triplet_margin_with_distance_loss distance_function margin swap reduction |
CTCLoss(blank=0, reduction='mean', zero_infinity=False) | ctc_loss blank reduction zero_infinity |
"""  # noqa: E501
_BUFFERS = ("weight", "pos_weight")  # tensors of losses, which belong to the state


class PlainLayer(Module):
    """A layer of the table."""

    _call: tuple[tuple[str, Any], ...]  # (the functional's argument, a constant or `_OWN`)
    _shown: tuple[str, ...]
    _function: str
    __signature__: Signature

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        given = bound(self, self.__signature__, args, kwargs)
        old = {k: given.pop(k) for k in ("size_average", "reduce") if k in given}
        if any(value is not None for value in old.values()):
            given["reduction"] = _reduction(**old)
        if "pool" in self._function and "stride" in given:
            if given["stride"] is None and not self._function.startswith("lp_"):
                given["stride"] = given["kernel_size"]
            if self._function == "avg_pool1d":  # shown as tuples
                pairs = {n: given[n] for n in ("kernel_size", "stride", "padding")}
                given |= {n: v if isinstance(v, tuple) else (v,) for n, v in pairs.items()}
        if type(self).__name__.endswith("Dropout") and not 0 <= given["p"] <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {given['p']}")
        for name, value in given.items():
            if name in _BUFFERS:
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)

    def forward(self, *inputs: Any, **named: Any) -> Any:
        given = {name: getattr(self, name) if v is _OWN else v for name, v in self._call}
        return getattr(functional, self._function)(*inputs, **given, **named)

    def extra_repr(self) -> str:
        parts = []
        for word in self._shown:
            name = word.strip("*?!")
            value = getattr(self, name, dict(self._call).get(name))
            if word.endswith("??"):  # of Upsample: whichever was given
                name = "scale_factor" if self.scale_factor is not None else "size"
                parts.append(f"{name}={_shown_factor(self, name)}")
            elif word.endswith("?"):
                parts += [f"{name}={value}"] if value else []
            else:
                parts.append(str(value) if word[0] == "*" else f"{name}={_text(value, word)}")
        return ", ".join(parts)


_OWN = object()


def _text(value: Any, word: str) -> str:
    return repr(value) if word.endswith("!") else str(value)


def _shown_factor(layer: Any, name: str) -> str:
    value = getattr(layer, name)
    if name == "size":
        return str(value)
    return str(tuple(map(float, value)) if isinstance(value, tuple) else float(value))


def _reduction(size_average: Any, reduce: Any) -> str:
    """What two older arguments of losses mean."""
    averaged, reduced = size_average is not False, reduce is not False
    found = "none" if not reduced else "mean" if averaged else "sum"
    warnings.warn(
        f"size_average and reduce args will be deprecated, please use reduction='{found}' instead.",
        stacklevel=users_level(),
    )
    return found


def _class(row: str) -> type[PlainLayer]:
    head, call, shown = (part.strip() for part in row.split("|"))
    name, _, text = head.rstrip(")").partition("(")
    function, *words = call.split()
    pairs = tuple(
        (key, ast.literal_eval(value) if equals else _OWN)
        for key, equals, value in (word.partition("=") for word in words)
    )
    body = {
        "_function": function,
        "_call": pairs,
        "_shown": tuple(shown.split()),
        "__signature__": signature(text),
        "__module__": __name__,
        "__doc__": f"`nn.functional.{function}` as a module.",
    }
    return type(name, (PlainLayer,), body)


CLASSES: dict[str, Any] = {c.__name__: c for c in map(_class, TABLE.strip().splitlines())}
globals().update(CLASSES)


# -- padding ----------------------------------------------------------------------------------------
class _Padding(Module):
    """Pads the last dimensions. padding: a number for all sides, or one a side, the last dimension first."""

    _mode = "constant"
    _dims = 1

    def __init__(self, padding: Any, value: Any = 0.0) -> None:
        super().__init__()
        self.padding = (padding,) * (2 * self._dims) if isinstance(padding, int) else padding
        self.value = value

    def forward(self, input: Tensor) -> Any:
        extra = (self.value,) if self._mode == "constant" else ()
        return functional.pad(input, list(self.padding), self._mode, *extra)

    def extra_repr(self) -> str:
        text = str(self.padding)
        return f"padding={text}, value={self.value}" if "Constant" in self._get_name() else text


_MODES = {
    "Zero": "constant", "Constant": "constant", "Reflection": "reflect", "Replication": "replicate",
    "Circular": "circular",
}  # fmt: skip
for _kind, _mode in _MODES.items():
    for _dims in (1, 2, 3):
        _name = f"{_kind}Pad{_dims}d"
        CLASSES[_name] = type(
            _name, (_Padding,), {"_mode": _mode, "_dims": _dims, "__module__": __name__}
        )
globals().update(CLASSES)


# -- shapes -----------------------------------------------------------------------------------------
class Identity(Module):
    """The input; arguments are taken and not used."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        return input


class Flatten(Module):
    """Joins dimensions, by default all but the first."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Any) -> Any:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits a dimension into several."""

    def __init__(self, dim: Any, unflattened_size: Any) -> None:
        super().__init__()
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input: Any) -> Any:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


CLASSES |= {c.__name__: c for c in (Identity, Flatten, Unflatten)}
