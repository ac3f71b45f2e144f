"""torch.nn.init: first values of parameters. Each function writes a tensor in place and returns it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from gradcli.engine.core.modes import no_grad, users_level
from gradcli.engine.core.tensor import Tensor
from gradcli.engine.registry.table import resolve


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """By how much weights are scaled so that a nonlinearity keeps the variance."""
    slope = 0.01 if param is None else param
    gains = {"tanh": 5 / 3, "relu": math.sqrt(2), "selu": 3 / 4}
    if nonlinearity == "leaky_relu":
        return math.sqrt(2 / (1 + slope**2))
    if nonlinearity in gains:
        return gains[nonlinearity]
    if nonlinearity == "sigmoid" or nonlinearity.startswith(("linear", "conv")):
        return 1
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def _written(name: str) -> Callable[..., Tensor]:
    """A function that writes by the tensor's own method of that name."""

    def write(tensor: Tensor, *args: Any, generator: Any = None, **kwargs: Any) -> Tensor:
        with no_grad():
            given = {} if generator is None else {"generator": generator}
            return getattr(tensor, name)(*args, **given, **kwargs)  # type: ignore[no-any-return]

    write.__name__ = name
    return write


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Numbers of U(a, b)."""
    return _written("uniform_")(tensor, a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Numbers of N(mean, std²)."""
    return _written("normal_")(tensor, mean, std, generator=generator)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """One number everywhere."""
    return _written("fill_")(tensor, val)


def ones_(tensor: Tensor) -> Tensor:
    """Ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Zeros."""
    return constant_(tensor, 0.0)


def eye_(tensor: Tensor) -> Tensor:
    """The unit matrix."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with no_grad():
        return tensor.copy_(resolve("eye")(*tensor.shape))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """A convolution that gives its input back, as far as there are channels."""
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.shape[0] % groups:
        raise ValueError("dim 0 must be divisible by groups")
    out = tensor.shape[0] // groups
    middle = tuple(size // 2 for size in tensor.shape[2:])
    with no_grad():
        tensor.zero_()
        for group in range(groups):
            for d in range(min(out, tensor.shape[1])):
                tensor[(group * out + d, d, *middle)] = 1
    return tensor


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Any = None,
) -> Tensor:
    """Numbers of N(mean, std²) between a and b, by the inverse of the distribution, as PyTorch draws them."""

    def below(x: float) -> float:
        return (1 + math.erf(x / math.sqrt(2))) / 2

    low, high = below((a - mean) / std), below((b - mean) / std)
    with no_grad():
        uniform_(tensor, 2 * low - 1, 2 * high - 1, generator)
        tensor.erfinv_()
        tensor.mul_(std * math.sqrt(2)).add_(mean)
        return tensor.clamp_(min=a, max=b)


def _fans(tensor: Tensor) -> tuple[int, int]:
    if tensor.ndim < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


_calculate_fan_in_and_fan_out = _fans


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Glorot and Bengio (2010): U(-a, a) with a = gain·sqrt(6/(fan_in + fan_out))."""
    bound = math.sqrt(3.0) * (gain * math.sqrt(2.0 / float(sum(_fans(tensor)))))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Glorot and Bengio (2010): N(0, gain²·2/(fan_in + fan_out))."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(sum(_fans(tensor)))), generator)


def _kaiming(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan = _fans(tensor)[mode == "fan_out"]
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def _is_empty(tensor: Tensor) -> bool:
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=users_level())
    return 0 in tensor.shape


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """He et al. (2015): U(-b, b) with b = gain·sqrt(3/fan)."""
    if _is_empty(tensor):
        return tensor
    bound = math.sqrt(3.0) * _kaiming(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Any = None,
) -> Tensor:
    """He et al. (2015): N(0, gain²/fan)."""
    if _is_empty(tensor):
        return tensor
    return normal_(tensor, 0, _kaiming(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Saxe et al. (2013): an orthogonal matrix, by the QR decomposition of normal numbers."""
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows, columns = tensor.shape[0], tensor.numel() // tensor.shape[0]
    with no_grad():
        flat = normal_(tensor.new_empty((rows, columns)), 0, 1, generator)
        q, r = resolve("linalg.qr")(flat.t() if rows < columns else flat)
        q *= r.diag().sign()
        q = q.t() if rows < columns else q
        tensor.view_as(q).copy_(q)
        return tensor.mul_(gain)


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Martens (2010): normal numbers, of which a share of each column is zero."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        normal_(tensor, 0, std, generator)
        for column in range(columns):
            tensor[resolve("randperm")(rows)[:zeros], column] = 0
    return tensor


# Names that PyTorch keeps from before.
_OLD = (
    "uniform normal constant eye dirac xavier_uniform xavier_normal kaiming_uniform kaiming_normal"
)
for _name in f"{_OLD} orthogonal sparse".split():
    globals()[_name] = globals()[f"{_name}_"]
