"""Padding: with a constant, by reflection, by replication, around the circle; and pixel shuffles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.engine.core.declaration import Array, Ints, Shape
from gradcli.engine.core.tensor import Tensor
from gradcli.engine.registry.derivative_pairs import NOTHING, pair
from gradcli.engine.registry.rule_helpers import implemented, refuse_if
from gradcli.engine.registry.table import Primitive, function, operator
from gradcli.operators.movement.joining import constant_pad_nd
from gradcli.operators.movement.reshaping import part
from gradcli.operators.movement.strides import of_images

FAMILY = "nn"


# -- what is there already ------------------------------------------------------------------------
def _reflected(size: int, before: int, after: int) -> Any:
    at = np.arange(-before, size + after)
    at = np.abs(at)
    return np.where(at >= size, 2 * (size - 1) - at, at)


def _replicated(size: int, before: int, after: int) -> Any:
    return np.clip(np.arange(-before, size + after), 0, size - 1)


def _gathered(x: Array, padding: Ints, positions: Callable[..., Any]) -> Any:
    for i in range(len(padding) // 2):
        dim = x.ndim - 1 - i
        x = x.take(positions(x.shape[dim], padding[2 * i], padding[2 * i + 1]), dim)
    return x


def _returned(g: Array, shape: Shape, padding: Ints, positions: Callable[..., Any]) -> Any:
    """The gradient summed where elements were taken more than once."""
    for i in range(len(padding) // 2):
        dim = g.ndim - 1 - i
        size = shape[dim]
        moved = np.moveaxis(g, dim, 0)
        out = np.zeros((size, *moved.shape[1:]), g.dtype)
        np.add.at(out, positions(size, padding[2 * i], padding[2 * i + 1]), moved)
        g = np.moveaxis(out, 0, dim)
    return np.ascontiguousarray(g)


def _border_rows(kind: str, positions: Callable[..., Any], n: int) -> Primitive:
    """The primitive of one kind of padding of n dimensions, and that of its derivative."""

    def kernel(self: Array, padding: Ints) -> Array:
        implemented(f"{kind.lower()}_pad{n}d", self, "efdFDbBhHiIlL")
        _check_border(kind, self, padding, n)
        _check_result(kind, self, padding, n)
        return np.ascontiguousarray(_gathered(self, padding, positions))

    def kernel_backward(grad_output: Array, self: Array, padding: Ints) -> Array:
        return _returned(grad_output, self.shape, padding, positions)

    node = f"{kind}Pad{n}D"
    return pair(node, node, kernel, kernel_backward, NOTHING, linearity="linear")


def _check_result(kind: str, x: Array, padding: Ints, n: int) -> None:
    """RuntimeError, in PyTorch's words, where nothing is left."""
    sizes = x.shape[x.ndim - n :]
    made = [k + a + b for k, a, b in zip(sizes[::-1], padding[::2], padding[1::2], strict=True)]
    if min(made) < 1:
        given = (f"{axis}: {k}" for axis, k in zip("DHW"[-n:], sizes, strict=True))
        left = " ".join(f"{axis}: {k}" for axis, k in zip("DHW"[-n:], made[::-1], strict=True))
        said = ", ".join(given)
        said += " " * (n == 2 and kind == "Replication")
        said = said if n == 2 else said.replace(",", "", n - 2)
        raise RuntimeError(f"input ({said}) is too small. Calculated output {left}")


def _check_border(kind: str, x: Array, padding: Ints, n: int) -> None:
    if not all(x.shape[x.ndim - n - 1 :]):
        raise RuntimeError(
            f"Expected {n + 1}D or {n + 2}D (batch mode) tensor with possibly 0 batch size and other "
            f"non-zero dimensions for input, but got: {list(x.shape)}"
        )
    if kind == "Reflection":
        for i in range(n):
            size = x.shape[x.ndim - 1 - i]
            if padding[2 * i] >= size or padding[2 * i + 1] >= size:
                raise RuntimeError(
                    "Argument #4: Padding size should be less than the corresponding input dimension, "
                    f"but got: padding ({padding[2 * i]}, {padding[2 * i + 1]}) at dimension "
                    f"{x.ndim - 1 - i} of input {list(x.shape)}"
                )


_REFLECT = {n: _border_rows("Reflection", _reflected, n) for n in (1, 2, 3)}
_REPLICATE = {n: _border_rows("Replication", _replicated, n) for n in (1, 2, 3)}


# -- around the circle ----------------------------------------------------------------------------
def _circular(input: Tensor, pad: Ints) -> Any:
    """Written piece by piece into an empty tensor, as PyTorch does."""
    n = len(pad) // 2
    shape = list(input.shape)
    for i in range(n):
        dim = len(shape) - 1 - i
        size, before, after = shape[dim], pad[2 * i], pad[2 * i + 1]
        if before > size or after > size:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if size + before + after < 0:
            raise RuntimeError("Negative padding value is resulting in an empty dimension")
        shape[dim] = size + before + after
    out = input.new_empty(shape)
    target, source = out, input
    for i in range(n):
        dim = len(shape) - 1 - i
        before, after = pad[2 * i], pad[2 * i + 1]
        target = part(target, dim, max(before, 0), shape[dim] - max(after, 0))
        source = part(source, dim, max(-before, 0), input.shape[dim] - max(-after, 0))
    target.copy_(source)
    for i in range(n):
        dim = len(shape) - 1 - i
        before, after = pad[2 * i], pad[2 * i + 1]
        size = shape[dim]
        if before > 0:
            end = size - max(after, 0)
            part(out, dim, 0, before).copy_(part(out, dim, end - before, end))
        if after > 0:
            start = max(before, 0)
            part(out, dim, size - after, size).copy_(part(out, dim, start, start + after))
    return out


# -- the function ---------------------------------------------------------------------------------
@function(
    "nn.functional.pad(Tensor input, int[] pad, str mode='constant', float? value=None)|python",
    primitives=[constant_pad_nd, *_REFLECT.values(), *_REPLICATE.values()],
    samples="(randn(2,3), (1,2)); (randn(2,3,4), (1,2), mode='reflect'); "
    "(randn(2,3,4), (1,2), mode='replicate'); (randn(2,3,4), (1,2), mode='circular')",
)
def pad(input: Tensor, pad: Ints, mode: str, value: float | None) -> Any:
    """The last dimensions padded: pairs of sizes, from the last dimension on."""
    sizes = tuple(pad)
    refuse_if(len(sizes) % 2, "Padding length must be divisible by 2")
    if mode not in ("constant", "reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if mode == "constant":
        if len(sizes) > 2 * input.ndim and not len(sizes) % 2:
            raise RuntimeError(
                "Padding length should be less than or equal to two times the input dimension but got "
                f"padding length {len(sizes)} and input of dimension {input.ndim}"
            )
        return constant_pad_nd(input, sizes, 0 if value is None else value)
    if value not in (None, 0):
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    n = len(sizes) // 2
    if n not in (1, 2, 3) or input.ndim not in (n + 1, n + 2):
        raise NotImplementedError(
            f"Padding size {len(sizes)} is not supported for {input.ndim}D input tensor.\nSupported "
            "combinations for non-constant padding:\n  - 2D or 3D input: padding size = 2 (pads last "
            "dimension)\n  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n  - 4D or 5D input: "
            "padding size = 6 (pads last 3 dimensions)"
        )
    if mode == "reflect":
        return _REFLECT[n](input, sizes)
    if mode == "replicate":
        return _REPLICATE[n](input, sizes)
    return _circular(input, sizes)


# -- pixels ---------------------------------------------------------------------------------------
@operator(
    "linear leading",
    node="PixelShuffleBackward0",
    aliases="pixel_shuffle",
    samples="(randn(2,8,3,3), 2)",
    signature="nn.functional.pixel_shuffle(Tensor input, int upscale_factor)",
)
class pixel_shuffle:
    """Channels rearranged into a larger image."""

    def forward(self: Array, upscale_factor: int) -> Array:
        r = upscale_factor
        if self.ndim < 3:
            raise RuntimeError(
                "pixel_shuffle expects input to have at least 3 dimensions, but got input with "
                f"{self.ndim} dimension(s)"
            )
        refuse_if(r <= 0, "pixel_shuffle expects a positive upscale_factor, but got {}", r)
        *lead, c, h, w = self.shape
        if c % (r * r):
            raise RuntimeError(
                "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
                f"upscale_factor, but input.size(-3)={c} is not divisible by {r * r}"
            )
        k = len(lead)
        parts = self.reshape(*lead, c // (r * r), r, r, h, w)
        order = (*range(k), k, k + 3, k + 1, k + 4, k + 2)
        return of_images(
            parts.transpose(order).copy().reshape(*lead, c // (r * r), h * r, w * r), self
        )

    self = lambda g, upscale_factor: pixel_unshuffle(g, upscale_factor)


@operator(
    "linear leading",
    node="PixelUnshuffleBackward0",
    aliases="pixel_unshuffle",
    samples="(randn(2,2,4,4), 2)",
    signature="nn.functional.pixel_unshuffle(Tensor input, int downscale_factor)",
)
class pixel_unshuffle:
    """An image rearranged into more channels."""

    def forward(self: Array, downscale_factor: int) -> Array:
        r = downscale_factor
        if self.ndim < 3:
            raise RuntimeError(
                "pixel_unshuffle expects input to have at least 3 dimensions, but got input with "
                f"{self.ndim} dimension(s)"
            )
        refuse_if(r <= 0, "pixel_unshuffle expects a positive downscale_factor, but got {}", r)
        *lead, c, h, w = self.shape
        for name, size, at in (("height", h, -2), ("width", w, -1)):
            if size % r:
                raise RuntimeError(
                    f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but "
                    f"input.size({at})={size} is not divisible by {r}"
                )
        k = len(lead)
        parts = self.reshape(*lead, c, h // r, r, w // r, r)
        order = (*range(k), k, k + 2, k + 4, k + 1, k + 3)
        return of_images(
            parts.transpose(order).copy().reshape(*lead, c * r * r, h // r, w // r), self
        )

    self = lambda g, downscale_factor: pixel_shuffle(g, downscale_factor)


@operator(
    "linear folded",
    node="ChannelShuffleBackward0",
    aliases="channel_shuffle",
    samples="(randn(1,4,2,2), 2)",
    signature="nn.functional.channel_shuffle(Tensor input, int groups)",
)
class channel_shuffle:
    """Channels dealt out over groups."""

    def forward(self: Array, groups: int) -> Array:
        if self.ndim <= 2:
            raise RuntimeError(
                f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(self.shape)}"
            )
        c = self.shape[1]
        if groups <= 0 or c % groups:
            raise RuntimeError(
                f"Number of channels must be divisible by groups. Got {c} channels and {groups} groups."
            )
        parts = self.reshape(self.shape[0], groups, c // groups, *self.shape[2:])
        return of_images(parts.swapaxes(1, 2).copy().reshape(self.shape), self)

    self = lambda g, groups: channel_shuffle(g, g.shape[1] // groups)
