"""Images read at other places: `grid_sample`, and the grids of affine maps."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import inf, nan, prod
from typing import Any

import numpy as np

from gradcli.engine.core.declaration import Array, DType, Ints, Shape, Value
from gradcli.engine.core.tensor import Tensor
from gradcli.engine.registry.derivative_pairs import last, passing
from gradcli.engine.registry.rule_helpers import (
    constant,
    dtype_of,
    expect_alike,
    implemented,
    refuse_if,
    total,
    transposed,
)
from gradcli.engine.registry.table import Primitive, function, operator, primitive
from gradcli.operators.nn.resampling import cubic_weights
from gradcli.operators.primitives.matrix_products import bmm

FAMILY = "nn"

_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
_PADDING = {"zeros": 0, "border": 1, "reflection": 2}


# -- coordinates ----------------------------------------------------------------------------------
def _unnormalized(x: Array, size: int, align: bool) -> tuple[Any, float]:
    """Coordinates from [-1, 1] to pixels, and the slope of that."""
    if align:
        return (x + 1) / 2 * (size - 1), (size - 1) / 2
    return ((x + 1) * size - 1) / 2, size / 2


def _reflected(x: Any, size: int, align: bool) -> tuple[Any, Any]:
    """Coordinates reflected into the image, and the sign of their slope."""
    low, high = (0, 2 * (size - 1)) if align else (-1, 2 * size - 1)
    if low == high:
        return np.zeros_like(x), np.zeros_like(x)
    start, span = low / 2, (high - low) / 2
    offset = x - start
    sign = np.where(offset < 0, -1.0, 1.0)
    offset = np.abs(offset)
    extra = np.fmod(offset, span)
    even = np.floor(offset / span) % 2 == 0
    place = np.where(even, extra + start, span - extra + start)
    return place, np.where(even, sign, -sign)


def _clipped(x: Array, size: int, lost: float) -> tuple[Any, Any]:
    """Coordinates moved to the nearest pixel, and the slope of that; lost: what NaN is taken for."""
    inside = (x > 0) & (x < size - 1)
    placed = np.clip(np.where(np.isnan(x), lost, x), 0, size - 1)
    return placed.astype(x.dtype, copy=False), inside.astype(x.dtype)


def _placed(x: Array, size: int, padding: int, align: bool, lost: float) -> tuple[Any, Any]:
    """Pixel coordinates after padding, and their slope by the coordinates before."""
    if padding == 0:
        return x, np.ones_like(x)
    slope: Any = 1.0
    if padding == 2:
        x, slope = _reflected(x, size, align)
    x, inside = _clipped(x, size, lost)
    return x, slope * inside


Taps = list[tuple[Any, Any, Any, Any]]


def _cubic_slopes(t: Array, a: float = -0.75) -> list[Any]:
    """The derivatives of the four weights of `cubic_weights` by t."""

    def near(x: Array) -> Any:
        return (3 * (a + 2) * x - 2 * (a + 3)) * x

    def far(x: Array) -> Any:
        return (3 * a * x - 10 * a) * x + 8 * a

    return [far(t + 1), near(t), -near(1 - t), -far(2 - t)]


def _cubic_bends(t: Array, a: float = -0.75) -> list[Any]:
    """The second derivatives of the four weights of `cubic_weights` by t."""

    def near(x: Array) -> Any:
        return 6 * (a + 2) * x - 2 * (a + 3)

    def far(x: Array) -> Any:
        return 6 * a * x - 10 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def _taps(x: Array, size: int, mode: int, padding: int, align: bool, lost: float) -> Taps:
    """(index, weight, its first and second derivative by the grid) of one dimension's pixels."""
    x, scale = _unnormalized(x, size, align)
    if mode == 2:
        first = np.floor(x)
        taps: Taps = []
        t = x - first
        derivatives = zip(cubic_weights(t), _cubic_slopes(t), _cubic_bends(t), strict=True)
        for k, (weight, slope, bend) in enumerate(derivatives):
            place, _ = _placed(first + k - 1, size, padding, align, lost)
            taps.append((np.rint(place).astype(np.int64), weight, slope * scale, bend * scale**2))
        return taps
    x, slope = _placed(x, size, padding, align, lost)
    if mode == 1:
        flat = np.zeros_like(x)
        return [(np.rint(x).astype(np.int64), np.ones_like(x), flat, flat)]
    first = np.floor(x)
    t, slope = x - first, slope * scale
    low = first.astype(np.int64)
    straight = np.zeros_like(t)
    return [(low, 1 - t, -slope, straight), (low + 1, t, slope, straight)]


# Where a coordinate that is NaN reads an image and a volume (its first pixel and its last, which infinity is
# moved to), and where its gradient goes (that of a volume nowhere), all as by PyTorch.
_LOST = {2: (0.0, 0.0), 3: (inf, nan)}


def _all_taps(
    input: Array, grid: Array, mode: int, padding: int, align: bool, backward: bool = False
) -> list[Taps]:
    sizes, lines = input.shape[2:], (grid.shape[0], prod(grid.shape[1:-1]))
    lost = _LOST[len(sizes)][backward]
    return [
        _taps(grid[..., len(sizes) - 1 - d].reshape(lines), n, mode, padding, align, lost)
        for d, n in enumerate(sizes)
    ]


def _corner(taps: list[Taps], choice: Ints, sizes: Shape) -> tuple[Any, Any]:
    """(flat index, where it lies in the image) of one pixel of every place."""
    index: Any = 0
    inside: Any = True
    for d, (k, n) in enumerate(zip(choice, sizes, strict=True)):
        place = taps[d][k][0]
        inside = inside & (place >= 0) & (place < n)
        index = index * n + np.clip(place, 0, n - 1)
    return index, inside


def _pixels(flat: Array, index: Array, inside: Array) -> Any:
    """The pixels at places of the image, 0 outside."""
    return np.where(inside[:, None], np.take_along_axis(flat, index[:, None], 2), 0)


def _masked(flat: Array, index: Array, inside: Array) -> Any:
    """The same by multiplication, as PyTorch's second derivative: a NaN next to outside stays."""
    return np.take_along_axis(flat, index[:, None], 2) * inside[:, None]


# -- primitives -----------------------------------------------------------------------------------
def _check_grid(input: Value, grid: Value, dims: str) -> None:
    """Refuses, in PyTorch's words, a grid that is not of the places of such an image."""
    wanted = input.ndim - 2
    if not input.ndim or not grid.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    if input.shape[0] != grid.shape[0]:
        raise RuntimeError(
            "grid_sampler(): expected grid and input to have same batch size, but got input with "
            f"sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"
        )
    if grid.shape[-1] != wanted:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {wanted} in last dimension, but got grid with "
            f"sizes {list(grid.shape)}"
        )
    empty = next((d for d in range(2, input.ndim) if not input.shape[d]), None)
    if empty is not None:
        raise RuntimeError(
            "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes "
            f"{list(input.shape)} with dimension {empty} being empty"
        )
    if wanted not in (2, 3) or grid.ndim != input.ndim:
        raise RuntimeError(
            f"grid_sampler(): expected {dims} input and grid with same number of dimensions, but got "
            f"input with sizes {list(input.shape)} and grid with sizes {list(grid.shape)}"
        )


def _grid_sampler(
    input: Array, grid: Array, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Array:
    _check_grid(input, grid, f"{input.ndim}D")
    if interpolation_mode == _MODES["bicubic"] and input.ndim != 4:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    kernel = "grid_sampler3d_cpu" if input.ndim == 5 else "grid_sampler_2d_cpu_kernel_impl"
    implemented(kernel, input, "efd")
    expect_alike(input, grid)
    taps = _all_taps(input, grid, interpolation_mode, padding_mode, align_corners)
    sizes = input.shape[2:]
    flat = input.reshape(*input.shape[:2], prod(sizes))
    out = np.zeros((*input.shape[:2], taps[0][0][0].shape[1]), input.dtype)
    for choice in product(*(range(len(t)) for t in taps)):
        index, inside = _corner(taps, choice, sizes)
        weight = prod(taps[d][k][1] for d, k in enumerate(choice))
        out += _counted(weight[:, None] * _pixels(flat, index, inside), inside[:, None], taps)
    return out.reshape(*input.shape[:2], *grid.shape[1:-1])


def _counted(terms: Array, inside: Array, taps: list[Taps]) -> Any:
    """Terms of a sum over pixels, as PyTorch adds them where coordinates are not finite.

    Of images, a pixel outside is 0 and its term is added, which is NaN if its weight is. Of volumes it is
    left out.
    """
    return terms if len(taps) == 2 else np.where(inside, terms, 0)


def _grid_sampler_backward(
    grad_output: Array,
    input: Array,
    grid: Array,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
) -> tuple[Array, Array]:
    taps = _all_taps(input, grid, interpolation_mode, padding_mode, align_corners, True)
    sizes, dims = input.shape[2:], len(taps)
    flat = input.reshape(*input.shape[:2], prod(sizes))
    g = grad_output.reshape(*input.shape[:2], prod(grid.shape[1:-1]))
    g_input = np.zeros_like(flat)
    g_grid = np.zeros((grid.shape[0], g.shape[2], dims), grid.dtype)
    rows = np.arange(flat.shape[0])[:, None, None]
    channels = np.arange(flat.shape[1])[:, None]
    pixels = {}
    for choice in product(*(range(len(t)) for t in taps)):
        index, inside = _corner(taps, choice, sizes)
        weight = prod(taps[d][k][1] for d, k in enumerate(choice))
        spread = np.where(inside[:, None], weight[:, None] * g, 0)
        np.add.at(g_input, (rows, channels, index[:, None]), spread)
        if interpolation_mode == 1:
            continue  # the nearest pixel stays the nearest
        pixels[choice] = _pixels(flat, index, inside)
        if interpolation_mode == 0 and dims == 2:
            continue
        pixel = total(g * pixels[choice], 1)
        for d in range(dims):
            slope = prod(taps[e][k][2 if e == d else 1] for e, k in enumerate(choice))
            g_grid[..., dims - 1 - d] += _counted(slope * pixel, inside, taps)
    if interpolation_mode == 0 and dims == 2:
        # Differences of pixels first, as PyTorch: an infinite gradient stays infinite.
        for d, (low, high) in enumerate(_SIDES):
            sides = (taps[1 - d][k][1][:, None] for k in (0, 1))
            apart = sum(
                w * (pixels[b] - pixels[a]) for w, a, b in zip(sides, low, high, strict=True)
            )
            g_grid[..., 1 - d] = total(apart * g, 1) * taps[d][1][2]
    return g_input.reshape(input.shape), g_grid.reshape(grid.shape)


# The corners of a square on the low and on the high side of each dimension, in the order of the other's.
_SIDES = ((((0, 0), (0, 1)), ((1, 0), (1, 1))), (((0, 0), (1, 0)), ((0, 1), (1, 1))))


def _grid_sampler_double(
    g_input: Array | None,
    g_grid: Array | None,
    grad_output: Array,
    input: Array,
    grid: Array,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
) -> tuple[Array, Array, Array]:
    """The gradients of `_grid_sampler_backward` by the gradient, the image and the grid."""
    taps = _all_taps(input, grid, interpolation_mode, padding_mode, align_corners, True)
    sizes, dims = input.shape[2:], len(taps)
    flat = input.reshape(*input.shape[:2], prod(sizes))
    g = grad_output.reshape(*input.shape[:2], prod(grid.shape[1:-1]))
    u = np.zeros((*g.shape[::2], dims), g.dtype)
    if g_grid is not None:
        u = g_grid.reshape(u.shape)[..., ::-1]  # in the order of the image's dimensions
    to_g, to_input, to_grid = np.zeros_like(g), np.zeros_like(flat), np.zeros_like(u)
    rows = np.arange(flat.shape[0])[:, None, None]
    channels = np.arange(flat.shape[1])[:, None]
    bent = interpolation_mode != 1  # the nearest pixel stays the nearest
    for choice in product(*(range(len(t)) for t in taps)):
        index, inside = _corner(taps, choice, sizes)

        def factor(orders: list[int], choice: Ints = choice, inside: Array = inside) -> Any:
            """The product of the weights, differentiated so often in each dimension."""
            weights = (taps[d][k][1 + orders[d]] for d, k in enumerate(choice))
            return np.where(inside, prod(weights), 0)

        once = [[int(e == d) for e in range(dims)] for d in range(dims)]
        slopes = [factor(orders) for orders in once]
        if g_input is not None:
            ahead = _masked(g_input.reshape(flat.shape), index, inside)
            to_g += factor([0] * dims)[:, None] * ahead
            for d in range(dims if bent else 0):
                to_grid[..., d] += slopes[d] * total(g * ahead, 1)
        if g_grid is not None and bent:
            pixel = _masked(flat, index, inside)
            along = sum(slope * u[..., d] for d, slope in enumerate(slopes))
            to_g += along[:, None] * pixel
            np.add.at(to_input, (rows, channels, index[:, None]), along[:, None] * g)
            for d in range(dims):
                twice = [
                    [a + b for a, b in zip(once[d], once[e], strict=True)] for e in range(dims)
                ]
                bend = sum(factor(orders) * u[..., e] for e, orders in enumerate(twice))
                to_grid[..., d] += bend * total(g * pixel, 1)
    shaped = np.ascontiguousarray(to_grid[..., ::-1]).reshape(grid.shape)
    return to_g.reshape(grad_output.shape), to_input.reshape(input.shape), shaped


grid_sampler_double = last(
    "grid_sampler_double",
    _grid_sampler_double,
    "g_input g_grid grad_output input grid",
    outputs="to_output to_input to_grid",
)


def _grid_sampler_twice(
    grads: Sequence[Value | None], grad_output: Array, input: Array, grid: Array, *how: Any
) -> Any:
    return grid_sampler_double(*grads, grad_output, input, grid, *how)


def _sampler_rows(n: int) -> Primitive:
    how = "interpolation_mode padding_mode align_corners"

    class backward:
        grad_output__input__grid = passing(_grid_sampler_twice, f"grad_output input grid {how}")

    backward.__name__ = f"grid_sampler_{n}d_backward"
    backward_p: Primitive = operator(
        kernel=_grid_sampler_backward,
        node=f"GridSampler{n}DBackwardBackward0",
        outputs="g_input g_grid",
        public=False,
        batching="folded",
    )(backward)

    class forward:
        input__grid = backward_p

    forward.__name__ = f"grid_sampler_{n}d"
    primitive: Primitive = operator(
        kernel=_grid_sampler,
        node=f"GridSampler{n}DBackward0",
        batching="folded",
        method=False,
        types="own",
        samples=(
            f"grid_sampler_{n}d(randn(1,2,{','.join(['4'] * n)}), "
            f"rand(1,{','.join(['3'] * n)},{n}) - 0.5, 0, 0, False)",
        ),
        signature=f"grid_sampler_{n}d(Tensor input, Tensor grid, int interpolation_mode, "
        "int padding_mode, bool align_corners)",
    )(forward)
    return primitive


_SAMPLERS = {n: _sampler_rows(n) for n in (2, 3)}


@function(
    "nn.functional.grid_sample(Tensor input, Tensor grid, Any mode='bilinear', Any padding_mode='zeros', "
    "bool? align_corners=None)|python -> grid_sampler(input, grid, mode, padding_mode, align_corners)",
    primitives=list(_SAMPLERS.values()),
    samples="(randn(1,2,4,4), rand(1,3,3,2) - 0.5, align_corners=False); "
    "(randn(1,2,4,4), rand(1,3,3,2), 'bicubic', 'border', True)",
)
def grid_sample(
    input: Tensor, grid: Tensor, mode: str, padding_mode: str, align_corners: bool | None
) -> Any:
    """The image at the places that a grid names, from -1 to 1 in each dimension."""
    if mode not in _MODES:
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but "
            f"got: '{mode}'"
        )
    if padding_mode not in _PADDING:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
            f"'reflection', but got: '{padding_mode}'"
        )
    _check_grid(input, grid, "4D or 5D")
    return _SAMPLERS[input.ndim - 2](
        input, grid, _MODES[mode], _PADDING[padding_mode], bool(align_corners)
    )


# -- affine grids ---------------------------------------------------------------------------------
def _base_grid(size: Shape, align: bool, kind: DType) -> Any:
    """Homogeneous coordinates of all places, x first."""
    axes = []
    for n in size[2:]:
        steps = np.linspace(-1, 1, n) if n > 1 else np.zeros(n)
        axes.append(steps if align else steps * (n - 1) / max(n, 1))
    mesh = np.meshgrid(*axes, indexing="ij")
    places = [m.reshape(-1) for m in reversed(mesh)]
    return np.stack([*places, np.ones(prod(size[2:]))], -1).astype(kind)


@primitive("linear folded", node="AffineGridGeneratorBackward0", sizes="size")
class affine_grid_generator:
    def forward(theta: Array, size: Shape, align_corners: bool) -> Array:
        base = _base_grid(size, align_corners, theta.dtype)
        out = base @ theta.swapaxes(1, 2)
        return out.reshape(size[0], *size[2:], len(size) - 2)

    def theta(g: Value, size: Shape, align_corners: bool) -> Any:
        kind = dtype_of(g)
        base = _base_grid(size, align_corners, kind)
        n = len(size) - 2
        rows = g.reshape(size[0], base.shape[0], n)
        whole = np.broadcast_to(base.T, (size[0], *base.T.shape))
        return transposed(bmm(constant(whole, g), rows), 1, 2)


@function(
    "nn.functional.affine_grid(Tensor theta, Any size, bool? align_corners=None) "
    "-> affine_grid_generator(theta, size, align_corners)",
    python=True,
    primitives=[affine_grid_generator],
    samples="(randn(1,2,3), (1,1,3,4))",
)
def affine_grid(theta: Tensor, size: Shape, align_corners: bool | None) -> Any:
    """The grid that an affine map makes of the places of an image of a size."""
    if theta.array.dtype.kind != "f":
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    n = len(size) - 2
    sizes = tuple(size)
    if n not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
            f"respectively. Got size {sizes}."
        )
    if tuple(theta.shape[-2:]) != (n, n + 1) or theta.ndim != 3:
        raise ValueError(
            f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size {sizes}. Got "
            f"{tuple(theta.shape)}."
        )
    if min(sizes) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {sizes}")
    if theta.shape[0] != sizes[0]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{sizes[0]}, {n + 1}] but "
            f"got: [{theta.shape[0]}, {n + 1}]."
        )
    return _generated(theta, size, bool(align_corners))


@function(
    "affine_grid_generator(Tensor theta, int[] size, bool align_corners)|function",
    name="affine_grid_generator",
    primitives=[affine_grid_generator],
    samples="(randn(1,2,3), (1,1,3,4), False)",
)
def _generated(theta: Tensor, size: Shape, align_corners: bool) -> Any:
    """The grid that an affine map makes of the places of an image of a size, as `affine_grid` records it."""
    refuse_if(
        len(size) not in (4, 5),
        "AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.",
    )
    n = len(size) - 1
    if (m := max(theta.ndim, 1)) < 3:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-m}, {m - 1}], but got {m})"
        )
    if min(size[2:]) < 0:
        low = next(k for k in size[2:] if k < 0)
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {low}: {[size[0], *size[2:], n]}"
        )
    found = [theta.shape[0], theta.shape[2]]
    refuse_if(
        found != [size[0], n],
        "Expected size for first two dimensions of batch2 tensor to be: [{}, {}] but got: [{}, {}].",
        *(size[0], n, *found),
    )
    return affine_grid_generator(theta, size, align_corners)
