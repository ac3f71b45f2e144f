"""Dropout, with PyTorch's seeded random numbers."""

from __future__ import annotations

from math import prod, sqrt
from typing import Any

import numpy as np

from gradcli.engine.core import random
from gradcli.engine.core.declaration import DType
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.engine.registry.derivative_pairs import of_dimensions
from gradcli.engine.registry.rule_helpers import refuse_if
from gradcli.engine.registry.table import function
from gradcli.engine.system.dtypes import scalar_name
from gradcli.operators.movement.strides import axes_of, from_memory

FAMILY = "nn"

_ALPHA = 1.7580993408473766  # what SELU saturates at, with the sign turned


def _check(input: Tensor, p: float, *others: Any) -> None:
    if p < 0.0 or not p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _kept(input: Tensor, kind: DType, p: float, feature: bool) -> Any:
    """Ones where the input, or a whole feature of it, stays; drawn in the order of the input's memory."""
    shape = tuple(input.shape)
    if not feature:
        drawn = random.bernoulli((prod(shape),), kind, 1 - p)
        return from_memory(drawn, axes_of(input.array), shape)
    refuse_if(len(shape) < 2, "Feature dropout requires at least 2 dimensions in the input")
    return random.bernoulli((*shape[:2], *[1] * (len(shape) - 2)), kind, 1 - p)


def _check_dtype(input: Tensor, alpha: bool) -> None:
    """Refuses, in PyTorch's words, numbers that cannot be scaled."""
    name, kind = scalar_name(input), input.array.dtype.kind
    if kind == "c":
        raise NotImplementedError(f"\"bernoulli_scalar_cpu_\" not implemented for '{name}'")
    if kind in "biu":
        wanted = "Long" if alpha and kind == "b" else name
        raise RuntimeError(f"result type Float can't be cast to the desired output type {wanted}")


def dropped(
    input: Tensor,
    p: float,
    train: bool,
    feature: bool = False,
    alpha: bool = False,
    inplace: bool = False,
) -> Any:
    """The input times random zeros and what keeps its mean (and variance, for `alpha`)."""
    if p == 0 or not train or not input.numel():
        return input
    kind = input.array.dtype
    times = input.mul_ if inplace else input.mul
    if p == 1:
        return times(wrap(np.zeros((), kind)[()]))
    _check_dtype(input, alpha)
    kept = _kept(input, kind, p, feature)
    if not alpha:
        return times(wrap(kept / kind.type(1 - p)))
    a = 1.0 / sqrt((_ALPHA * _ALPHA * p + 1) * (1 - p))
    shift = (kept - 1) * kind.type(_ALPHA * a) + kind.type(_ALPHA * a * p)
    scaled = times(wrap(kept * kind.type(a)))
    return scaled.add_(wrap(shift)) if inplace else scaled + wrap(shift)


@function(
    "nn.functional.dropout(Tensor input, float p=0.5, bool training=True, Any inplace=False) "
    "-> dropout(input, p, training=train)",
    python=_check,
    samples="(randn(2,3), 0.5); (randn(3), 0.5, False)",
)
def nn_dropout(input: Tensor, p: float, training: bool, inplace: bool) -> Any:
    """Elements set to zero with probability p, the others scaled to keep the mean."""
    return dropped(input, p, training, inplace=inplace)


@function("dropout(Tensor input, float p, bool train)|function", samples="(randn(2,3), 0.5, True)")
def plain_dropout(input: Tensor, p: float, train: bool) -> Any:
    """See nn.functional.dropout."""
    refuse_if(not 0.0 <= p <= 1.0, "dropout probability has to be between 0 and 1, but got {}", p)
    return dropped(input, p, train)


def _over_channels(n: int, input: Tensor, p: float, training: bool, inplace: bool) -> Any:
    if n == 1 and input.ndim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.ndim}D input. Note that "
            "dropout1d exists to provide channel-wise dropout on inputs with 1 spatial dimension, "
            "a channel dimension, and an optional batch dimension (i.e. 2D or 3D inputs)."
        )
    unbatched = (n == 1 and input.ndim == 2) or (n == 3 and input.ndim == 4)
    if not unbatched:
        return dropped(input, p, training, feature=True, inplace=inplace)
    return dropped(input.unsqueeze(0), p, training, feature=True, inplace=inplace).squeeze(0)


of_dimensions(
    "dropout{n}d(Tensor input, float p=0.5, bool training=True, Any inplace=False) "
    "-> feature_dropout(input, p, training=train)",
    body=_over_channels,
    doc="Whole channels of {n} dimension{s} set to zero.",
    python=_check,
    primitives={},
    samples=["(randn(2,3,{size}), 0.5)"],
)


@function(
    "nn.functional.alpha_dropout(Tensor input, float p=0.5, bool training=False, Any inplace=False) "
    "-> alpha_dropout(input, p, training=train)",
    python=_check,
    short=False,
    samples="(randn(2,3), 0.5, True)",
)
def alpha_dropout(input: Tensor, p: float, training: bool, inplace: bool) -> Any:
    """Dropout that keeps mean and variance under SELU."""
    return dropped(input, p, training, alpha=True, inplace=inplace)


@function(
    "nn.functional.feature_alpha_dropout(Tensor input, float p=0.5, bool training=False, Any inplace=False) "
    "-> feature_alpha_dropout(input, p, training=train)",
    python=_check,
    short=False,
    samples="(randn(2,3,4), 0.5, True)",
)
def feature_alpha_dropout(input: Tensor, p: float, training: bool, inplace: bool) -> Any:
    """alpha_dropout of whole channels."""
    return dropped(input, p, training, feature=True, alpha=True, inplace=inplace)
