"""Layers with parameters: how these are made and filled, and the functional that each calls."""

from __future__ import annotations

import math
import warnings
from typing import Any, Self

from gradcli.engine.core.modes import no_grad
from gradcli.engine.core.tensor import Tensor
from gradcli.engine.registry.table import resolve
from gradcli.torch.nn import functional, init
from gradcli.torch.nn.modules.arguments import takes
from gradcli.torch.nn.modules.module import Module
from gradcli.torch.nn.parameter import Parameter, UninitializedParameter


def parameter(*shape: int, dtype: Any = None) -> Parameter:
    """A parameter whose numbers are still to be set."""
    return Parameter(resolve("empty")(shape, dtype=dtype))


def _bias(layer: Any, name: str, fan_in: int) -> None:
    """Fill a bias as PyTorch does: U(-b, b) with b = 1/sqrt(fan_in)."""
    bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
    init.uniform_(getattr(layer, name), -bound, bound)


@takes("in_features, out_features, bias=True, device=None, dtype=None")
class Linear(Module):
    """`input @ weight.T + bias`. weight: (out_features, in_features); bias: (out_features,)."""

    def build(self, bias: bool, dtype: Any) -> None:
        self.weight = parameter(self.out_features, self.in_features, dtype=dtype)
        self.register_parameter("bias", parameter(self.out_features, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            _bias(self, "bias", self.in_features)

    def forward(self, input: Tensor) -> Any:
        return functional.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return shown(self, "in_features out_features bias")


def shown(layer: Any, names: str) -> str:
    """`name=value` of arguments; of a bias whether there is one, and `*name` as its value alone."""
    values = {n: getattr(layer, n.strip("*")) for n in names.split()}
    values |= {"bias": layer.bias is not None} if "bias" in values else {}
    return ", ".join(f"{v}" if n[0] == "*" else f"{n}={v}" for n, v in values.items())


@takes("in1_features, in2_features, out_features, bias=True, device=None, dtype=None")
class Bilinear(Module):
    """`x1 A x2 + b`, with a matrix for each output. weight: (out, in1, in2)."""

    def build(self, bias: bool, dtype: Any) -> None:
        sizes = self.out_features, self.in1_features, self.in2_features
        self.weight = parameter(*sizes, dtype=dtype)
        self.register_parameter("bias", parameter(self.out_features, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        bound = 1 / math.sqrt(self.weight.shape[1])
        for value in self.parameters():
            init.uniform_(value, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Any:
        return functional.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return shown(self, "in1_features in2_features out_features bias")


@takes("num_parameters=1, init=0.25, device=None, dtype=None")
class PReLU(Module):
    """`max(0, x) + weight*min(0, x)`, with one weight or one a channel."""

    def build(self, dtype: Any) -> None:
        self.weight = Parameter(resolve("full")((self.num_parameters,), self.init, dtype=dtype))

    def forward(self, input: Tensor) -> Any:
        return functional.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return shown(self, "num_parameters")


# -- convolutions -----------------------------------------------------------------------------------
def _tuple(value: Any, dims: int) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,) * dims


def _refuse(layer: Any) -> None:
    """PyTorch's refusals of a convolution's arguments."""
    padding, mode = layer.padding, layer.padding_mode
    if layer.groups <= 0:
        raise ValueError("groups must be a positive integer")
    for name in ("in_channels", "out_channels"):
        if getattr(layer, name) % layer.groups:
            raise ValueError(f"{name} must be divisible by groups")
    if isinstance(padding, str) and padding not in ("same", "valid"):
        raise ValueError(
            f"Invalid padding string '{padding}', should be one of {{'same', 'valid'}}"
        )
    if mode not in ("zeros", "reflect", "replicate", "circular"):
        raise ValueError(
            "padding_mode must be one of {'zeros', 'reflect', 'replicate', 'circular'}, but got "
            f"padding_mode='{mode}'"
        )
    if layer._transposed and mode != "zeros":
        raise ValueError(f'Only "zeros" padding mode is supported for {type(layer).__name__}')


@takes(
    "in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, "
    "padding_mode='zeros', device=None, dtype=None"
)
class _Conv(Module):
    """A convolution over the last `_dims` dimensions. weight: (out, in/groups, *kernel)."""

    _dims, _transposed = 1, False
    output_padding: Any = 0

    def build(self, bias: bool, dtype: Any) -> None:
        _refuse(self)
        for name in ("kernel_size", "stride", "padding", "dilation", "output_padding"):
            value = getattr(self, name)
            setattr(self, name, value if isinstance(value, str) else _tuple(value, self._dims))
        first, second = self.out_channels, self.in_channels
        if self._transposed:
            first, second = second, first
        self.weight = parameter(first, second // self.groups, *self.kernel_size, dtype=dtype)
        self.register_parameter("bias", parameter(self.out_channels, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None and (fan_in := math.prod(self.weight.shape[1:])):
            _bias(self, "bias", fan_in)

    def forward(self, input: Tensor) -> Any:
        padding = self.padding
        if self.padding_mode != "zeros":
            sides = self._sides()
            input, padding = functional.pad(input, sides, self.padding_mode), (0,) * self._dims
        call = getattr(functional, f"conv{self._dims}d")
        return call(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def _sides(self) -> list[int]:
        """How much is added before and after each dimension, the last first."""
        if not isinstance(self.padding, str):
            return [p for p in reversed(self.padding) for _ in (0, 1)]
        found: list[int] = []
        for dilation, kernel in zip(self.dilation[::-1], self.kernel_size[::-1], strict=True):
            total = dilation * (kernel - 1) if self.padding == "same" else 0
            found += [total // 2, total - total // 2]
        return found

    def extra_repr(self) -> str:
        usual = {
            "padding": (0,) * self._dims, "dilation": (1,) * self._dims,
            "output_padding": (0,) * self._dims, "groups": 1,
        }  # fmt: skip
        text = shown(self, "*in_channels *out_channels kernel_size stride")
        text += "".join(
            f", {n}={getattr(self, n)}" for n, v in usual.items() if getattr(self, n) != v
        )
        text += ", bias=False" if self.bias is None else ""
        return text + (
            f", padding_mode={self.padding_mode}" if self.padding_mode != "zeros" else ""
        )


@takes(
    "in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, "
    "bias=True, dilation=1, padding_mode='zeros', device=None, dtype=None"
)
class _ConvTranspose(_Conv):
    """The transpose of a convolution. weight: (in, out/groups, *kernel)."""

    _transposed = True

    def forward(self, input: Tensor, output_size: Any = None) -> Any:
        extra = self.output_padding if output_size is None else self._extra(input, output_size)
        call = getattr(functional, f"conv_transpose{self._dims}d")
        options = self.stride, self.padding, extra, self.groups, self.dilation
        return call(input, self.weight, self.bias, *options)

    def _extra(self, input: Tensor, output_size: Any) -> list[int]:
        """The output padding that makes the result so large."""
        wanted, found = list(output_size)[-self._dims :], []
        for d in range(self._dims):
            inner = self.dilation[d] * (self.kernel_size[d] - 1) + 1
            least = (input.shape[d - self._dims] - 1) * self.stride[d] - 2 * self.padding[d] + inner
            if not least <= wanted[d] <= least + self.stride[d] - 1:
                raise ValueError(
                    f"requested an output size of {output_size}, but valid sizes begin at {least} in "
                    f"dimension {d}"
                )
            found.append(wanted[d] - least)
        return found


# -- normalisations -----------------------------------------------------------------------------------
def _scale(layer: Module, shape: tuple[int, ...], affine: bool, bias: bool, dtype: Any) -> None:
    """Weight 1 and bias 0 of a norm, or None."""
    ones, zeros = resolve("ones"), resolve("zeros")
    layer.register_parameter("weight", Parameter(ones(shape, dtype=dtype)) if affine else None)
    has_bias = affine and bias
    layer.register_parameter("bias", Parameter(zeros(shape, dtype=dtype)) if has_bias else None)


class _Norm(Module):
    """Batch and instance norms of one number of dimensions: weight and bias, and running statistics."""

    _ndims: tuple[int, ...] = (2, 3)

    def build(self, dtype: Any, bias: bool = True) -> None:
        shape, kept = (self.num_features,), self.track_running_stats
        _scale(self, shape, self.affine, bias, dtype)
        ones, zeros = resolve("ones"), resolve("zeros")
        self.register_buffer("running_mean", zeros(shape, dtype=dtype) if kept else None)
        self.register_buffer("running_var", ones(shape, dtype=dtype) if kept else None)
        batches = resolve("tensor")(0, dtype=resolve("int64")) if kept else None
        self.register_buffer("num_batches_tracked", batches)

    def reset_running_stats(self) -> None:
        """Mean 0 and variance 1 again."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Weight 1 and bias 0 again."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check(self, input: Tensor) -> None:
        if input.ndim not in self._ndims:
            wanted = " or ".join(f"{n}D" for n in self._ndims)
            raise ValueError(f"expected {wanted} input (got {input.ndim}D input)")

    def extra_repr(self) -> str:
        return shown(self, "*num_features eps momentum affine bias track_running_stats")


_NORM = "num_features, eps=1e-5, momentum=0.1, affine={0}, track_running_stats={0}"


@takes(_NORM.format(True) + ", device=None, dtype=None, bias=True")
class _BatchNorm(_Norm):
    def forward(self, input: Tensor) -> Any:
        self._check(input)
        share = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the plain average of all batches
                share = 1.0 / float(self.num_batches_tracked)
        given = not self.training or self.track_running_stats
        mean, var = (self.running_mean, self.running_var) if given else (None, None)
        batch = self.training or (self.running_mean is None and self.running_var is None)
        scale = self.weight, self.bias
        return functional.batch_norm(input, mean, var, *scale, batch, share, self.eps)


@takes(_NORM.format(False) + ", device=None, dtype=None, bias=True")
class _InstanceNorm(_Norm):
    def forward(self, input: Tensor) -> Any:
        self._check(input)
        alone = input.ndim == self._ndims[0]
        share = 0.0 if self.momentum is None else self.momentum
        own = self.training or not self.track_running_stats
        state = self.running_mean, self.running_var, self.weight, self.bias
        batch = input.unsqueeze(0) if alone else input
        found = functional.instance_norm(batch, *state, own, share, self.eps)
        return found.squeeze(0) if alone else found


@takes("num_groups, num_channels, eps=1e-5, affine=True, device=None, dtype=None, bias=True")
class GroupNorm(Module):
    """Normalises groups of channels of each sample."""

    def build(self, dtype: Any, bias: bool) -> None:
        if self.num_channels % self.num_groups:
            raise ValueError(
                f"num_channels ({self.num_channels}) must be divisible by num_groups "
                f"({self.num_groups})"
            )
        _scale(self, (self.num_channels,), self.affine, bias, dtype)

    def forward(self, input: Tensor) -> Any:
        return functional.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return shown(self, "*num_groups *num_channels eps affine bias")


@takes("normalized_shape, eps=1e-5, elementwise_affine=True, bias=True, device=None, dtype=None")
class LayerNorm(Module):
    """Normalises the last dimensions, which have this shape."""

    normalized_shape: Any

    def build(self, bias: bool, dtype: Any) -> None:
        self.normalized_shape = _tuple(self.normalized_shape, 1)
        _scale(self, self.normalized_shape, self.elementwise_affine, bias, dtype)

    def forward(self, input: Tensor) -> Any:
        shape = list(self.normalized_shape)
        return functional.layer_norm(input, shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return shown(self, "*normalized_shape eps elementwise_affine bias")


@takes("normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None")
class RMSNorm(Module):
    """Divides by the root of the mean square over the last dimensions."""

    normalized_shape: Any

    def build(self, dtype: Any) -> None:
        self.normalized_shape = _tuple(self.normalized_shape, 1)
        _scale(self, self.normalized_shape, self.elementwise_affine, False, dtype)
        del self._parameters["bias"]

    def forward(self, input: Tensor) -> Any:
        return functional.rms_norm(input, list(self.normalized_shape), self.weight, self.eps)

    def extra_repr(self) -> str:
        return shown(self, "*normalized_shape eps elementwise_affine")


# -- embeddings ---------------------------------------------------------------------------------------
@takes(
    "num_embeddings, embedding_dim, padding_idx=None, max_norm=None, norm_type=2.0, "
    "scale_grad_by_freq=False, sparse=False, _weight=None, _freeze=False, device=None, dtype=None"
)
class Embedding(Module):
    """A row of the weight for each index. weight: (num_embeddings, embedding_dim)."""

    padding_idx: Any

    def build(self, dtype: Any, _weight: Tensor | None, _freeze: bool = False) -> None:
        count, padding = self.num_embeddings, self.padding_idx
        if padding is not None and not -count <= padding < count:
            raise AssertionError("Padding_idx must be within num_embeddings")
        self.padding_idx = padding if padding is None else padding % count
        if _weight is None:
            self.weight = parameter(count, self.embedding_dim, dtype=dtype)
            self.weight.requires_grad_(not _freeze)
            self.reset_parameters()
        else:
            self.weight = Parameter(_weight, not _freeze)

    def reset_parameters(self) -> None:
        """Draw the weight anew; the row of the padding is 0."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, **options: Any) -> Self:
        """A layer with these rows, which by default are not learned."""
        made: Self = cls(*embeddings.shape, _weight=embeddings, **options)  # type: ignore[call-arg]
        made.requires_grad_(not freeze)
        return made

    def _options(self) -> tuple[Any, ...]:
        return self.max_norm, self.norm_type, self.scale_grad_by_freq

    def forward(self, input: Tensor) -> Any:
        options = *self._options(), self.sparse
        return functional.embedding(input, self.weight, self.padding_idx, *options)

    def extra_repr(self) -> str:
        usual = {"padding_idx": None, "max_norm": None, "norm_type": 2, "scale_grad_by_freq": False}
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        usual |= {"sparse": False}
        return text + "".join(
            f", {n}={getattr(self, n)}" for n, v in usual.items() if getattr(self, n) != v
        )


@takes(
    "num_embeddings, embedding_dim, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, "
    "mode='mean', sparse=False, _weight=None, include_last_offset=False, padding_idx=None, "
    "device=None, dtype=None"
)
class EmbeddingBag(Embedding):
    """Sums, means or maxima of the rows of bags of indices."""

    def forward(
        self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Any:
        options = *self._options(), self.mode, self.sparse, per_sample_weights
        last = self.include_last_offset, self.padding_idx
        return functional.embedding_bag(input, self.weight, offsets, *options, *last)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, mode={self.mode!r}"


# -- lazy layers ----------------------------------------------------------------------------------------
class _Lazy(Module):
    """What a lazy layer does until the first input tells its size: `_size` names the attribute."""

    _size, _plain = "in_features", Linear

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        Module.__init__(self)
        kwargs.pop("device", None)
        object.__setattr__(self, "_given", (args, kwargs))
        for name in ("weight", "bias"):
            value = (
                None if kwargs.get("bias") is False and name == "bias" else UninitializedParameter()
            )
            self.register_parameter(name, value)

    def __call__(self, *inputs: Any) -> Any:
        args, kwargs = self._given
        training = self.training
        size = inputs[0].shape[-1 if self._size == "in_features" else self._channels(inputs[0])]
        empty = dict(self._parameters)
        plain: Any = self._plain
        self.__class__ = plain
        made = plain(size, *args, **kwargs)
        for name, value in made._parameters.items():  # an optimizer may hold the old ones
            if value is not None and empty.get(name) is not None:
                empty[name].materialize(value.shape)
                empty[name].array = value.array
                made._parameters[name] = empty[name]
        hooks = self._forward_pre_hooks, self._forward_hooks
        self.__dict__.update(made.__dict__)
        self.__dict__.update(
            _forward_pre_hooks=hooks[0], _forward_hooks=hooks[1], training=training
        )
        return self(*inputs)

    def extra_repr(self) -> str:
        """As of the plain layer, with 0 for the size that is not known."""
        args, kwargs = self._given
        plain: Any = self._plain
        with resolve("random.fork_rng")(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that there is nothing to draw
            return plain(0, *args, **kwargs).extra_repr()  # type: ignore[no-any-return]

    def _channels(self, input: Tensor) -> int:
        """The dimension of the channels."""
        dims = getattr(self._plain, "_dims", None)
        return 1 if dims is None else -dims - 1


def _lazy(plain: type[Module], size: str) -> type[Module]:
    body = {"_size": size, "_plain": plain, "__module__": __name__}
    body["__doc__"] = f"{plain.__name__}, whose {size} the first input tells."
    return type(f"Lazy{plain.__name__}", (_Lazy,), body)


CLASSES: dict[str, type[Module]] = {
    c.__name__: c
    for c in (Linear, Bilinear, PReLU, GroupNorm, LayerNorm, RMSNorm, Embedding, EmbeddingBag)
}
for _dims, _norm_ndims in ((1, (2, 3)), (2, (4,)), (3, (5,))):
    for _base, _head in ((_Conv, "Conv"), (_ConvTranspose, "ConvTranspose")):
        _name = f"{_head}{_dims}d"
        CLASSES[_name] = type(_name, (_base,), {"_dims": _dims, "__module__": __name__})
    for _other, _head in ((_BatchNorm, "BatchNorm"), (_InstanceNorm, "InstanceNorm")):
        _name = f"{_head}{_dims}d"
        _ndims = (_dims + 1, _dims + 2) if _other is _InstanceNorm else _norm_ndims
        CLASSES[_name] = type(_name, (_other,), {"_ndims": _ndims, "__module__": __name__})
for _name in [n for n in CLASSES if n.startswith(("Conv", "BatchNorm", "InstanceNorm"))]:
    _size = "in_channels" if _name.startswith("Conv") else "num_features"
    CLASSES[f"Lazy{_name}"] = _lazy(CLASSES[_name], _size)
CLASSES["LazyLinear"] = _lazy(Linear, "in_features")
globals().update(CLASSES)
