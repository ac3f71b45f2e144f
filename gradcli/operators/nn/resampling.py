"""Images in other sizes (`interpolate`) and at other places (`grid_sample`)."""

from __future__ import annotations

from math import floor
from typing import Any

import numpy as np

from gradcli.engine.core.declaration import Array, Ints, Shape
from gradcli.engine.core.generated_calls import generated as compiled
from gradcli.engine.core.tensor import Tensor
from gradcli.engine.registry.derivative_pairs import pair
from gradcli.engine.registry.rule_helpers import implemented
from gradcli.engine.registry.schema import checked
from gradcli.engine.registry.table import Primitive, function, resolve
from gradcli.operators.movement.strides import of_images
from gradcli.operators.nn.convolution import Sizes

FAMILY = "nn"


# -- one dimension as a matrix --------------------------------------------------------------------
def _step(size: int, wanted: int, align: bool, scale: float | None) -> float:
    """How far apart in the input neighbouring outputs are."""
    if align:
        return (size - 1) / (wanted - 1) if wanted > 1 else 0.0
    return 1.0 / scale if scale is not None and scale > 0 else size / wanted


def _nearest(size: int, wanted: int, scale: float | None, exact: bool) -> Any:
    step = np.float32(_step(size, wanted, False, scale))
    at = np.arange(wanted, dtype=np.float32)
    at = np.floor((at + np.float32(0.5)) * step if exact else at * step)
    return np.minimum(at.astype(np.int64), size - 1)


def _positions(size: int, wanted: int, align: bool, scale: float | None, cubic: bool) -> Any:
    step = _step(size, wanted, align, scale)
    at = np.arange(wanted, dtype=np.float64)
    if align:
        return at * step
    at = (at + 0.5) * step - 0.5
    return at if cubic else np.maximum(at, 0)


def cubic_weights(t: Array, a: float = -0.75) -> list[Any]:
    """The weights of the four neighbours of a place t between the middle two."""

    def near(x: Array) -> Any:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: Array) -> Any:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


Taps = tuple[Any, Any]  # by output and tap: places in the input, and their weights
_NOWHERE = (
    -1
)  # the place of a tap that an output does not have: nothing is read, an infinity neither


def _taps(mode: str, size: int, wanted: int, align: bool, scale: float | None) -> Taps:
    """What the outputs of one dimension are sums of: (places, weights), (wanted, number of taps)."""
    if mode in ("nearest", "nearest-exact"):
        at = _nearest(size, wanted, scale, mode == "nearest-exact")[:, None]
        return at, np.ones(at.shape)
    if mode == "linear":
        if size == wanted:  # one element each, as PyTorch
            at = np.arange(size)
            return np.stack([at, at], 1), np.stack([np.ones(size), np.zeros(size)], 1)
        at = _positions(size, wanted, align, scale, False)
        first = np.minimum(at.astype(np.int64), size - 1)
        weight = np.clip(at - first, 0, 1)
        places = [first, np.minimum(first + 1, size - 1)]
        return np.stack(places, 1), np.stack([1 - weight, weight], 1)
    if mode == "cubic":
        at = _positions(size, wanted, align, scale, True)
        floor_ = np.floor(at)
        places = [np.clip(floor_.astype(np.int64) + k, 0, size - 1) for k in (-1, 0, 1, 2)]
        return np.stack(places, 1), np.stack(cubic_weights(at - floor_), 1)
    return _smooth(mode, size, wanted, _step(size, wanted, align, scale))


def _smooth(mode: str, size: int, wanted: int, step: float) -> Taps:
    """Weights of a filter as wide as the distance of outputs: antialiasing."""
    reach = 1.0 if mode == "linear-aa" else 2.0
    support, shrink = (reach * step, 1 / step) if step >= 1 else (reach, 1.0)
    parts = []
    for i in range(wanted):
        center = step * (i + 0.5)
        start = min(max(int(center - support + 0.5), 0), size)
        stop = min(int(center + support + 0.5), size)
        x = np.abs((np.arange(start, stop) - center + 0.5) * shrink)
        if mode == "linear-aa":
            weights = np.maximum(1 - x, 0)
        else:
            a = -0.5
            near = ((a + 2) * x - (a + 3)) * x * x + 1
            far = (((x - 5) * x + 8) * x - 4) * a
            weights = np.where(x < 1, near, np.where(x < 2, far, 0))
        total = weights.sum()
        parts.append((start, weights / total if total else weights))  # none: beyond the input
    most = max(1, *(len(w) for _, w in parts))
    places = np.full((wanted, most), _NOWHERE)
    padded = np.zeros((wanted, most))
    for i, (start, weights) in enumerate(parts):
        places[i, : len(weights)] = start + np.arange(len(weights))
        padded[i, : len(weights)] = weights
    return places, padded


def _weighed(x: Array, taps: list[Taps]) -> Array:
    """The last dimensions resized: sums of few elements each, so that an infinity stays local."""
    for i, (places, weights) in enumerate(taps):
        dim = x.ndim - len(taps) + i
        shape = [-1 if d == dim else 1 for d in range(x.ndim)]
        weights = weights.astype(x.dtype)
        parts = [
            _there(x.take(places[:, k], dim) * weights[:, k].reshape(shape), places[:, k], shape)
            for k in range(weights.shape[1])
        ]
        x = sum(parts[1:], parts[0])
    return np.ascontiguousarray(x)


def _there(terms: Array, places: Array, shape: list[int]) -> Array:
    return terms if places.min() >= 0 else np.where(places.reshape(shape) < 0, 0, terms)


def _bytes(x: Array, taps: list[Taps]) -> Array:
    """As `_weighed`, in whole numbers, rounded after each dimension, the last one first."""
    whole = x.astype(np.int64)
    for i in reversed(range(len(taps))):
        places, weights, bits = _fixed_point(*taps[i])
        moved = np.moveaxis(whole, x.ndim - len(taps) + i, -1)
        moved = (_weighed(moved, [(places, weights)]) + (1 << bits >> 1)) >> bits
        whole = np.moveaxis(np.clip(moved, 0, 255), -1, x.ndim - len(taps) + i)
    return np.ascontiguousarray(whole.astype(x.dtype))


def _fixed_point(places: Array, weights: Array) -> tuple[Any, Any, int]:
    """(places, weights in units of 2**-bits, bits): as PyTorch has them in 16 bits (as Pillow-SIMD).

    The weights of one place, beyond a border, are one weight.
    """
    whole = np.zeros_like(weights)
    for k in range(weights.shape[1]):
        first = np.argmax(places == places[:, k : k + 1], axis=1)
        whole[np.arange(len(whole)), first] += weights[:, k]
    largest, bits = max(float(whole.max()), 0.0), 0
    while bits < 22 and int(0.5 + largest * (1 << (bits + 1))) < 1 << 15:
        bits += 1
    units = whole * (1 << bits)
    return places, np.trunc(units + np.copysign(0.5, units)).astype(np.int64), bits


def _spread(g: Array, taps: list[Taps], sizes: Sizes) -> Array:
    """The transpose of `_weighed`."""
    for i, ((places, weights), size) in enumerate(zip(taps, sizes, strict=True)):
        dim = g.ndim - len(taps) + i
        moved = np.moveaxis(g, dim, 0)
        out = np.zeros((size, *moved.shape[1:]), g.dtype)
        weights = weights.astype(g.dtype)
        for k in range(weights.shape[1]):
            own = places[:, k] >= 0
            shape = (-1, *[1] * (moved.ndim - 1))
            np.add.at(out, places[own, k], moved[own] * weights[own, k].reshape(shape))
        g = np.moveaxis(out, 0, dim)
    return np.ascontiguousarray(g)


def _all_taps(mode: str, sizes: Sizes, wanted: Sizes, align: bool, scales: Any) -> list[Taps]:
    return [_taps(mode, m, n, align, s) for m, n, s in zip(sizes, wanted, scales, strict=True)]


# PyTorch's kernels by mode, and NumPy's characters of the dtypes that they take; complex ones, which
# PyTorch's do not, for the complex steps of `check`.
_KERNELS = {
    "nearest": ("compute_indices_weights_nearest", "efdBFD"),
    "nearest-exact": ("compute_indices_weights_nearest", "efdBFD"),
    "linear": ("compute_indices_weights_linear", "efdBFD"),
    "cubic": ("compute_indices_weights_cubic", "efdBFD"),
    "linear-aa": ("compute_index_ranges_weights", "fdBFD"),
    "cubic-aa": ("compute_index_ranges_weights", "fdBFD"),
}


# -- primitives -----------------------------------------------------------------------------------
def _resized(self: Array, mode: str, wanted: Sizes, align: bool, scales: Any) -> Any:
    if self.ndim != len(wanted) + 2:
        raise RuntimeError(
            f"It is expected input_size equals to {len(wanted) + 2}, but got size {self.ndim}"
        )
    sizes = self.shape[2:]
    if min(wanted) <= 0 or min(sizes) <= 0:
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input ({_times(sizes)}) "
            f"output ({_times(wanted)})"
        )
    name, chars = _KERNELS[mode]
    if self.ndim == 4 and self.shape[1] == 1 and mode in ("nearest", "linear"):
        name = (
            f"upsample_{mode.replace('l', 'bil', 1) if mode == 'linear' else mode}2d_channels_last"
        )
    implemented(name, self, chars if len(wanted) == 2 or mode[:7] == "nearest" else "efdFD")
    taps = _all_taps(mode, sizes, wanted, align, scales)
    if self.dtype.kind == "u" and mode[:7] != "nearest":
        return of_images(_bytes(self, taps), self)
    return of_images(_weighed(self, taps), self)


def _times(sizes: Any) -> str:
    names = ("D", "H", "W")[-len(sizes) :]
    return ", ".join(f"{name}: {n}" for name, n in zip(names, sizes, strict=True))


def _returned(g: Array, mode: str, shape: Sizes, wanted: Sizes, align: bool, scales: Any) -> Any:
    sizes = shape[-len(wanted) :]
    return _spread(g, _all_taps(mode, sizes, wanted, align, scales), sizes)


_SCALES = {1: "scales", 2: "scales_h, scales_w", 3: "scales_d, scales_h, scales_w"}


def _rows(mode: str, node: str, n: int, aligned: bool = False) -> Primitive:
    """The primitives of a mode over n dimensions, and of its transpose; aligned: with `align_corners`."""
    scales = _SCALES[n]
    options = f"align_corners, {scales}" if aligned else scales
    last = ", ".join(f"{s}=None" for s in scales.split(", "))
    given = f"{'align_corners' if aligned else False}, ({scales},)"
    space = {"resized": _resized, "returned": _returned, "mode": mode}

    def made(name: str, parameters: str, result: str) -> Any:
        return compiled(name, parameters, [f"return {result}"], space)

    kernel = made(
        "kernel",
        f"self, output_size, {'align_corners, ' * aligned}{last}",
        f"resized(self, mode, output_size, {given})",
    )
    back = made(
        "back",
        f"grad_output, output_size, self_sym_sizes, {options}",
        f"returned(grad_output, mode, self_sym_sizes, output_size, {given})",
    )
    kernel.__annotations__, back.__annotations__ = {"self": "Array"}, {"grad_output": "Array"}
    return pair(node, node, kernel, back, {}, linearity="linear")


_NEAREST = {n: _rows("nearest", f"UpsampleNearest{n}D", n) for n in (1, 2, 3)}
_EXACT = {n: _rows("nearest-exact", f"UpsampleNearestExact{n}D", n) for n in (1, 2, 3)}
_LINEAR = {
    ("linear", 1): _rows("linear", "UpsampleLinear1D", 1, True),
    ("bilinear", 2): _rows("linear", "UpsampleBilinear2D", 2, True),
    ("trilinear", 3): _rows("linear", "UpsampleTrilinear3D", 3, True),
    ("bicubic", 2): _rows("cubic", "UpsampleBicubic2D", 2, True),
}
_SMOOTH = {
    "bilinear": _rows("linear-aa", "UpsampleBilinear2DAa", 2, True),
    "bicubic": _rows("cubic-aa", "UpsampleBicubic2DAa", 2, True),
}
_NEEDED = {"linear": "3D", "bilinear": "4D", "trilinear": "5D"}


# -- interpolate ----------------------------------------------------------------------------------
def _one_each(input: Tensor, what: str, form: str, value: Ints | float) -> tuple[Any, ...]:
    """A number for each dimension of the image; ValueError for another number of them."""
    n: int = input.ndim - 2
    if not isinstance(value, (tuple, list)):
        return (value,) * n
    if len(value) != n:
        kind = what.partition(" ")[0]
        shape = "shape " if what == "scale_factor" else ""
        raise ValueError(
            f"Input and {kind} must have the same number of spatial dimensions, but got input with "
            f"spatial dimensions of {list(input.shape[2:])} and {what} of {shape}{value}. Please provide "
            f"input tensor in (N, C, d1, d2, ...,dK) format and {what} in {form} format."
        )
    return tuple(value)


def _wanted(
    input: Tensor, size: Shape | int | None, scale_factor: Any, recompute: Any
) -> tuple[Sizes, Any]:
    """(output size, scale factors as they are passed on)."""
    n = input.ndim - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if size is not None:
        sizes = _one_each(input, "output size", "(o1, o2, ...,oK)", size)
        return tuple(int(s) for s in sizes), (None,) * n
    scales = _one_each(input, "scale_factor", "(s1, s2, ...,sK)", scale_factor)
    scales = checked("interpolate", "float[] scale_factor", 3, scales)
    sizes = tuple(floor(float(m) * s) for m, s in zip(input.shape[2:], scales, strict=True))
    if recompute:
        return sizes, (None,) * n
    return sizes, tuple(float(s) for s in scales)


@function(
    "nn.functional.interpolate(Tensor input, Any size=None, Any scale_factor=None, Any mode='nearest', "
    "Any align_corners=None, Any recompute_scale_factor=None, Any antialias=False)|python",
    primitives=[*_NEAREST.values(), *_EXACT.values(), *_LINEAR.values(), *_SMOOTH.values()],
    samples="(randn(2,3,4), scale_factor=2); (randn(2,3,4,4), size=(5,7), mode='bilinear'); "
    "(randn(2,3,4,4), size=(5,7), mode='bicubic')",
)
def interpolate(
    input: Tensor,
    size: Shape | int | None,
    scale_factor: Ints | float | None,
    mode: str,
    align_corners: bool | None,
    recompute_scale_factor: bool | None,
    antialias: bool,
) -> Any:
    """An image (sequence, volume) in another size."""
    n = input.ndim - 2
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the interpolating modes: linear | "
                "bilinear | bicubic | trilinear"
            )
    elif align_corners is None:
        align_corners = False
    sizes, scales = _wanted(input, size, scale_factor, recompute_scale_factor)
    if antialias and not (mode in _SMOOTH and n == 2):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a "
            "4-D tensor as input"
        )
    if n in (1, 2, 3):
        if mode == "nearest":
            return _NEAREST[n](input, sizes, *scales)
        if mode == "nearest-exact":
            return _EXACT[n](input, sizes, *scales)
        if mode == "area":
            return resolve(f"nn.functional.adaptive_avg_pool{n}d")(input, sizes)
        if antialias:
            return _SMOOTH[mode](input, sizes, align_corners, *scales)
        if (mode, n) in _LINEAR:
            return _LINEAR[mode, n](input, sizes, align_corners, *scales)
    needed = _NEEDED.get(mode)
    if n in (1, 2, 3) and needed is not None:
        raise NotImplementedError(f"Got {input.ndim}D input, but {mode} mode needs {needed} input")
    raise NotImplementedError(
        f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.ndim}D) for the modes: "
        f"nearest | linear | bilinear | bicubic | trilinear | area | nearest-exact (got {mode})"
    )


@function(
    "nn.functional.upsample(Tensor input, Any size=None, Any scale_factor=None, Any mode='nearest', "
    "Any align_corners=None)|python",
    samples="(randn(2,3,4), scale_factor=2)",
)
def upsample(
    input: Tensor, size: Any, scale_factor: int, mode: str, align_corners: bool | None
) -> Any:
    """See interpolate."""
    return interpolate(input, size, scale_factor, mode, align_corners)


@function(
    "nn.functional.upsample_nearest(Tensor input, Any size=None, Any scale_factor=None)|python",
    samples="(randn(2,3,4,4), scale_factor=2)",
)
def upsample_nearest(input: Tensor, size: Any, scale_factor: Any) -> Any:
    """See interpolate."""
    return interpolate(input, size, scale_factor, "nearest")


@function(
    "nn.functional.upsample_bilinear(Tensor input, Any size=None, Any scale_factor=None)|python",
    samples="(randn(2,3,4,4), scale_factor=2)",
)
def upsample_bilinear(input: Tensor, size: Any, scale_factor: Any) -> Any:
    """interpolate with mode 'bilinear' and aligned corners."""
    return interpolate(input, size, scale_factor, "bilinear", True)


@function(
    "_upsample_bilinear2d_aa(Tensor input, int[2]? output_size, bool align_corners, "
    "float[2]? scale_factors)|function",
    "_upsample_bilinear2d_aa(Tensor input, int[2] output_size, bool align_corners, "
    "float? scales_h=None, float? scales_w=None, *, Tensor? out=None)|function",
    primitives=[_SMOOTH["bilinear"]],
    samples="(randn(1,2,4,4), (2,2), False)",
    name="_upsample_bilinear2d_aa",
)
def upsample_bilinear2d_aa(
    input: Tensor,
    output_size: Shape,
    align_corners: bool,
    scale_factors: Any = None,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> Any:
    """Bilinear interpolation with antialiasing; factors as two numbers or as one pair."""
    if scale_factors is not None:
        scales_h, scales_w = scale_factors
    if output_size is None:
        output_size = [
            floor(n * s) for n, s in zip(input.shape[-2:], (scales_h, scales_w), strict=True)
        ]
    size = (output_size, output_size) if isinstance(output_size, int) else tuple(output_size)
    return _SMOOTH["bilinear"](input, size, align_corners, scales_h, scales_w)
