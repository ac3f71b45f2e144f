"""Pooling: maxima, averages and power averages of windows, also of a given number of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import inf, prod
from typing import Any, cast

import numpy as np

from gradcli.engine.core.declaration import Array, Ints, Shape, Value
from gradcli.engine.core.modes import is_grad_enabled
from gradcli.engine.core.tensor import Tensor
from gradcli.engine.registry.derivative_pairs import NOTHING, of_dimensions, pair
from gradcli.engine.registry.rule_helpers import gather, implemented, mean, refuse_if, shared
from gradcli.engine.registry.schema import checked
from gradcli.engine.registry.table import Primitive, operator
from gradcli.engine.system.array_memory import afresh
from gradcli.engine.system.cascaded_sums import add_reduce
from gradcli.operators.movement.strides import of_images
from gradcli.operators.nn.convolution import Sizes, Windows, several

FAMILY = "nn"


# -- sizes ----------------------------------------------------------------------------------------
def _output_size(n: int, k: int, s: int, p: int, d: int, ceil_mode: bool) -> int:
    span = n + 2 * p - d * (k - 1) - 1 + (s - 1 if ceil_mode else 0)
    out = span // s + 1
    if ceil_mode and (out - 1) * s >= n + p:
        out -= 1  # the last window would start outside
    return out


def _sizes(x: Array, how: Windows, ceil_mode: bool, average: bool = False) -> Sizes:
    n = len(how.kernel)
    shape = x.shape[-n:]
    out = tuple(
        _output_size(n, k, s, p, d, ceil_mode) for n, k, d, p, s in zip(shape, *how, strict=True)
    )
    if any(n < 1 for n in out):
        if average and n == 3:
            _refuse_small(shape, how.kernel)
        channels = x.shape[-n - 1]
        inner, outer = ("x".join(map(str, (channels, *sizes))) for sizes in (shape, out))
        raise RuntimeError(
            f"Given input size: ({inner}). Calculated output size: ({outer}). Output size is too small"
        )
    return out


def _refuse_small(image: Sizes, kernel: Sizes) -> None:
    """What average pooling says of an image that no window fits in, if each size is the smaller."""
    parts = [
        " ".join(f"{letter}{axis}: {k}" for axis, k in zip("THW", sizes, strict=True))
        for letter, sizes in (("", image), ("k", kernel))
    ]
    raise RuntimeError(f"input image ({parts[0]}) smaller than kernel size ({parts[1]})")


def _check_pool(name: str, n: int, x: Tensor, kernel: Sizes, stride: Sizes, padding: Sizes) -> None:
    if x.ndim not in (n + 1, n + 2):
        if n > 1:
            raise RuntimeError(
                f"non-empty {n + 1}D or {n + 2}D (batch mode) tensor expected for input"
            )
        if name == "avg_pool1d":
            raise RuntimeError(
                f"Expected 2 to 3 dimensions, but got {x.ndim}-dimensional tensor for argument #1 "
                "'self' (while checking arguments for avg_pool1d)"
            )
        raise RuntimeError(
            f"{name}: Expected {n + 1}D or {n + 2}D (batch mode) tensor with optional 0 dim batch "
            f"size for input, but got:{list(x.shape)}"
        )
    refuse_if(not all(stride), "stride should not be zero")
    if not prod(x.shape[x.ndim - n - 1 :]):
        _refuse_empty(name, n, x)
    if any(p < 0 for p in padding):
        least = min(padding)
        told = f"{name}() padding" if name == "max_pool1d" else "pad"
        told += " must be non-negative, but got "
        raise RuntimeError(told + f"{'' if name == 'max_pool1d' else 'pad: '}{least}")
    for sizes, letter, word in ((kernel, "k", "kernel size"), (stride, "d", "stride")):
        if min(sizes) <= 0:
            raise RuntimeError(
                f"{word} should be greater than zero, but got {_lettered(letter, sizes)}"
            )
    for p, k in zip(padding, kernel, strict=True):
        if p > k // 2 and name == "max_pool1d":
            raise RuntimeError(
                "max_pool1d() padding should be at most half of kernel size, but got "
                f"padding={p} and kernel_size={k}"
            )
        if p > k // 2:
            raise RuntimeError(
                "pad should be at most half of effective kernel size, but got pad="
                f"{p}, kernel_size={k} and dilation=1"
            )


def _lettered(letter: str, sizes: Sizes) -> str:
    """`kH: 2 kW: 3`: what PyTorch calls the sizes of a window; of one dimension it makes two."""
    return " ".join(
        f"{letter}{axis}: {k}"
        for axis, k in zip("THW"[-max(len(sizes), 2) :], _images(sizes), strict=True)
    )


def _images(sizes: Sizes) -> Sizes:
    return (1, *sizes) if len(sizes) == 1 else sizes


def _refuse_empty(name: str, n: int, x: Tensor) -> None:
    """Only a batch may be empty."""
    shape = list(x.shape)
    if n == 3:
        called = name if "avg" in name else "max_pool3d_with_indices_out_cpu_template"
        raise RuntimeError(
            f"{called}(): Expected input's non-batch dimensions to have positive length, but input "
            f"has a shape of {shape} and non-batch dimension 0 has length zero!"
        )
    if name == "avg_pool1d":
        n, shape = 2, [*shape[:-1], 1, shape[-1]]
    raise RuntimeError(
        f"{name + ': ' if n == 1 else ''}Expected {n + 1}D or {n + 2}D (batch mode) tensor with "
        f"optional 0 dim batch size for input, but got:{shape}"
    )


def _widened(x: Array, out: Sizes, how: Windows, value: float) -> Array:
    """The input with its padding, and with what windows over the edge need."""
    n = len(out)
    widths = [(0, 0)] * (x.ndim - n)
    for size, o, k, d, p, s in zip(x.shape[-n:], out, *how, strict=True):
        need = (o - 1) * s + d * (k - 1) + 1
        widths.append((p, max(need - size - p, 0)))
    if not any(map(any, widths)):
        return x
    return np.pad(x, widths, constant_values=value)


_ORDERED = "efdbBhHiIlL"  # NumPy's characters of the dtypes that have a largest element


# -- maxima ---------------------------------------------------------------------------------------
def _largest(flat: Array) -> Array:
    """Where the largest elements are: the first of them, but the last nan, as PyTorch looks."""
    best = flat.argmax(-1)
    if flat.dtype.kind == "f" and np.isnan(flat).any():
        undefined = np.isnan(flat)
        last = flat.shape[-1] - 1 - undefined[..., ::-1].argmax(-1)
        best = np.where(undefined.any(-1), last, best)
    return best


def _max_pool(
    self: Array,
    kernel_size: Shape,
    stride: Ints = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> tuple[Array, Array]:
    n = len(kernel_size)
    implemented(f"max_pool{n}d", self, _ORDERED)
    how = Windows(kernel_size, dilation, padding, stride or kernel_size)
    shape = self.shape[-n:]
    out = _sizes(self, how, ceil_mode)
    lowest = -np.inf if self.dtype.kind == "f" else np.iinfo(self.dtype).min
    x = _widened(self, out, how, lowest)
    view = how.of(x, out)
    flat = view.reshape(*view.shape[:-n], prod(kernel_size))
    best = _largest(flat)
    rows = flat.reshape(best.size, flat.shape[-1])
    values = rows[np.arange(best.size), best.reshape(-1)].reshape(best.shape)
    if x is not self and (values == lowest).any():  # no padding, but the first of the elements
        here = _widened(np.ones(shape, np.bool_), out, how, False)
        inside = how.of(here, out).reshape(*out, -1)
        best = np.where(values == lowest, inside.argmax(-1), best)
    starts: Any = 0  # of each window, and of each element in it: where it lies in the image
    within: Any = 0
    for o, size, k, d, p, step in zip(out, shape, *how, strict=True):
        starts = np.add.outer(starts * size, np.arange(o) * step - p)
        within = np.add.outer(within * size, np.arange(k) * d)
    index = starts + within.reshape(-1)[best]
    return of_images(values, self), of_images(index, self)


def _scattered(grad_output: Array, shape: Sizes, index: Array, n: int) -> Array:
    """Gradients added where the maxima came from."""
    lead = shape[:-n]
    out = np.zeros((prod(lead), prod(shape[-n:])), grad_output.dtype)
    rows = np.arange(out.shape[0])[:, None]
    lines = (out.shape[0], prod(index.shape[-n:]))
    np.add.at(out, (rows, index.reshape(lines)), grad_output.reshape(lines))
    return out.reshape(shape)


def _gathered(g: Value, index: Value, n: int) -> Any:
    """Elements picked where the maxima came from: the transpose of `_scattered`."""
    shape = tuple(index.shape)
    lead = shape[: len(shape) - n]
    lines = (*lead, prod(shape[len(lead) :]))
    inner = (*lead, prod(g.shape[len(lead) :]))
    return gather(g.reshape(inner), -1, index.reshape(lines)).reshape(shape)


def _picking(
    name: str,
    node: str,
    kernel: Callable[..., Any],
    kernel_backward: Callable[..., Any],
    n: int,
    saves: str,
) -> Primitive:
    """The primitives of a pooling of n dimensions that picks elements, and says where they lay."""
    backward = NOTHING | {"grad_output": lambda g, indices: _gathered(g, indices, n)}
    picked: dict[str, Any] = {"outputs": "result0 | result1"}
    return pair(name, node, kernel, kernel_backward, backward, saves=saves, **picked)


def _max_pool_backward(
    grad_output: Array,
    self: Array,
    kernel_size: Shape,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    ceil_mode: bool,
    indices: Array,
) -> Array:
    return _scattered(grad_output, self.shape, indices, len(kernel_size))


_MAX = {
    n: _picking(
        f"max_pool{n}d_with_indices",
        f"MaxPool{n}DWithIndices",
        _max_pool,
        _max_pool_backward,
        n,
        "self kernel_size stride padding dilation ceil_mode result1",
    )
    for n in (2, 3)
}


def _sized(function: str, what: str, value: Ints | int, n: int) -> Sizes:
    """The sizes along n dimensions that one number, or one for each, says; RuntimeError for others."""
    sizes = several(value, n)
    if len(sizes) == n:
        return sizes
    count = len(sizes)
    if n == 1 and function != "max_pool1d":
        words = f"{function}() argument '{what}' should contain one int (got {count})"
    elif n == 1:
        none = "None, " if what == "stride" else ""
        comma = "," if what in ("stride", "padding") else ""
        words = (
            f"{function}() {what} must be {none}an int, list of ints{comma} or tuple of ints of size 1 "
            f"but got size {count}"
        )
    else:
        either = {"dilation": " be either"}.get(what, " either be")
        must = "must" + (" be" if function == "avg_pool3d" else either)
        omitted = " omitted," if what == "stride" else ""
        number = {2: "two", 3: "three"}[n]
        words = f"{function}: {what} {must}{omitted} a single int, or a tuple of {number} ints"
    raise RuntimeError(words)


def _pool_arguments(
    function: str, n: int, kernel_size: Shape | int, stride: Ints | int | None, padding: Ints | int
) -> tuple[Sizes, Sizes, Sizes]:
    """The sizes of windows, the steps between them (none where they are not given), the borders."""
    kernel = _sized(function, "kernel_size", kernel_size, n)
    steps = () if stride in (None, [], ()) else _sized(function, "stride", stride, n)
    return kernel, steps, _sized(function, "padding", padding, n)


def _max(
    n: int,
    input: Tensor,
    kernel_size: Shape | int,
    stride: Ints | int | None,
    padding: Ints | int,
    dilation: Ints | int,
    ceil_mode: bool,
    return_indices: bool,
) -> Any:
    name = f"max_pool{n}d"
    kernel, steps, around = _pool_arguments(name, n, kernel_size, stride, padding)
    spread = _sized(name, "dilation", dilation, n)
    if n == 1:
        sizes = kernel, steps or kernel, around, spread
        out, index = _max_of_one(input, *sizes, bool(ceil_mode), bool(return_indices))
        return (out, index) if return_indices else out
    _check_pool(name, n, input, kernel, steps or kernel, around)
    if any(d <= 0 for d in spread):
        words = (f"dilation{name}: {d}" for name, d in zip("THW"[-n:], spread, strict=True))
        raise RuntimeError(f"dilation should be greater than zero, but got {' '.join(words)}")
    out, index = _MAX[n](input, kernel, steps, around, spread, bool(ceil_mode))
    return (out, index) if return_indices else out


def _max_of_one(
    input: Tensor,
    kernel: Sizes,
    steps: Sizes,
    around: Sizes,
    spread: Sizes,
    ceil_mode: bool,
    places: bool,
) -> tuple[Any, Any]:
    """(maxima, their places) of sequences, as images one element high; places: both are wanted."""
    for what, (size,) in (("kernel_size", kernel), ("stride", steps), ("dilation", spread)):
        refuse_if(size <= 0, "max_pool1d() {} must be greater than zero, but got {}", what, size)
    _check_pool("max_pool1d", 1, input, kernel, steps, around)
    if not places:
        sizes = (kernel[0], steps[0], around[0], spread[0])
        size = _output_size(input.shape[-1], *sizes, ceil_mode)
        refuse_if(size < 1, "max_pool1d() Invalid computed output size: {}", size)
        recorded = input.requires_grad and is_grad_enabled()  # by max_pool2d
        implemented("max_pool1d_impl", input.array, "efdFD" if recorded else "efd")
        input = input if recorded else input.contiguous()
    high = (1, *kernel), (1, *steps), (0, *around), (1, *spread)
    out, index = _MAX[2](input.unsqueeze(-2), *high, ceil_mode)
    return out.squeeze(-2), index.squeeze(-2)


def _max_and_places(n: int, *values: Any) -> Any:
    return _max(n, *(*values[:-1], True))


_MAXIMA = (
    "(Tensor input, int[{n}] kernel_size, int[{n}]? stride=None, int[{n}] padding=0, "
    "int[{n}] dilation=1, bool ceil_mode=False, Any return_indices=False)"
)
of_dimensions(
    f"_max_pool{{n}}d{_MAXIMA} -> max_pool{{n}}d",
    body=_max,
    doc="The largest element of each window of {n} dimension{s}.",
    python=True,
    aliases="max_pool{n}d",
    primitives=_MAX,
    samples=["(randn(2,3,{size}), 2)", "(randn(3,{size}), 2, stride=1, padding=1)"],
)
for _dims in ((1,), (2, 3)):
    of_dimensions(
        f"max_pool{{n}}d_with_indices{_MAXIMA}",
        body=_max_and_places,
        dims=_dims,
        doc="(maxima, their places) of each window: see nn.functional.max_pool{n}d.",
        python=True,
        short=_dims != (1,),
        primitives=_MAX,
        samples=["(randn(2,3,{size}), 2)"],
    )


# -- averages -------------------------------------------------------------------------------------
def _divisors(
    shape: Sizes, out: Sizes, how: Windows, count_include_pad: bool, divisor_override: Any
) -> Any:
    """How many elements each window counts."""
    if divisor_override:
        return divisor_override
    total: Any = 1
    for i, (size, o, k, _, p, s) in enumerate(zip(shape, out, *how, strict=True)):
        start = np.arange(o) * s - p
        end = np.minimum(start + k, size + p)
        inside = np.minimum(end, size) - np.maximum(start, 0)
        count = end - start if count_include_pad else inside
        total = total * count.reshape([-1 if j == i else 1 for j in range(len(out))])
    return total


def _avg_pool(
    self: Array,
    kernel_size: Shape,
    stride: Ints = (),
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: Any = None,
) -> Array:
    n = len(kernel_size)
    if n == 2:
        implemented("avg_pool2d", self, "efdlFD")  # complex for the complex steps of `check`
    else:
        implemented("avg_pool3d_out_frame", self, "fdlFD")
    how = Windows(kernel_size, (1,) * n, padding, stride or kernel_size)
    out = _sizes(self, how, ceil_mode, average=True)
    view = how.of(_widened(self, out, how, 0), out)
    wide = np.float32 if self.dtype.itemsize == 2 else None
    total = add_reduce(view, tuple(range(-n, 0)), wide)
    divisors = _divisors(self.shape[-n:], out, how, count_include_pad, divisor_override)
    found = (total / divisors).astype(self.dtype, copy=False)
    return of_images(found, self) if n == 2 else afresh(found, self)


def _avg_pool_backward(
    grad_output: Array,
    self: Array,
    kernel_size: Shape,
    stride: Ints,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: Any,
) -> Array:
    n = len(kernel_size)
    how = Windows(kernel_size, (1,) * n, padding, stride or kernel_size)
    shape, out = self.shape[-n:], grad_output.shape[-n:]
    share = shared(grad_output, _divisors(shape, out, how, count_include_pad, divisor_override))
    lead = self.shape[:-n]
    same = np.broadcast_to(share.reshape(*lead, *(1,) * n, *out), (*lead, *kernel_size, *out))
    return how.overlaid(same, shape, grad_output.dtype)


_AVG = {
    n: pair(
        f"avg_pool{n}d",
        f"AvgPool{n}D",
        _avg_pool,
        _avg_pool_backward,
        NOTHING,
        slope="slope of average pooling",
        linearity="linear",
        refuses={"c": "avg_pool2d" if n == 2 else "avg_pool3d_out_frame"},
        symbolic="average pooling",
    )
    for n in (2, 3)
}


def _avg(
    n: int,
    input: Tensor,
    kernel_size: Shape | int,
    stride: Ints | int | None,
    padding: Ints | int,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None = None,
) -> Any:
    name = f"avg_pool{n}d"
    kernel, steps, around = _pool_arguments(name, n, kernel_size, stride, padding)
    _check_pool(name, n, input, kernel, steps or kernel, around)
    refuse_if(divisor_override == 0, "divisor must be not zero")
    options = bool(ceil_mode), bool(count_include_pad), divisor_override
    if n > 1:
        return _AVG[n](input, kernel, steps, around, *options)
    high = (1, *kernel), (1, *(steps or kernel)), (0, *around)
    return _AVG[2](input.unsqueeze(-2), *high, *options).squeeze(-2)


_AVERAGES = (
    "(Tensor input, int[{n}] kernel_size, int[{n}] stride=None, int[{n}] padding=0, "
    "bool ceil_mode=False, bool count_include_pad=True"
)
of_dimensions(
    f"avg_pool{{n}}d{_AVERAGES})",
    body=_avg,
    dims=(1,),
    doc="The average of each window of one dimension.",
    aliases="avg_pool1d",
    primitives=_AVG,
    samples=["(randn(2,3,6), 2)"],
)
of_dimensions(
    f"avg_pool{{n}}d{_AVERAGES}, int? divisor_override=None)",
    body=_avg,
    dims=(2, 3),
    doc="The average of each window of {n} dimensions.",
    primitives=_AVG,
    samples=["(randn(2,3,{size}), 2)"],
)


def _power_mean(
    n: int,
    input: Tensor,
    norm_type: float,
    kernel_size: Shape | int,
    stride: Ints | None,
    ceil_mode: bool,
) -> Any:
    if isinstance(norm_type, (int, float)) and abs(norm_type) == inf:
        size = input.abs()
        least = norm_type < 0
        found = _max(n, -size if least else size, kernel_size, stride, 0, 1, ceil_mode, False)
        return -found if least else found
    out = _avg(n, input.pow(norm_type), kernel_size, stride, 0, ceil_mode, True)
    count = prod(several(kernel_size, n))
    return (out.sign() * out.abs().relu() * count) ** (1.0 / norm_type)


of_dimensions(
    "lp_pool{n}d(Tensor input, Any norm_type, int[{n}] kernel_size, int[{n}]? stride=None, "
    "bool ceil_mode=False) -> avg_pool{n}d(input, kernel_size, stride)",
    body=_power_mean,
    doc="The p-norm of each window of {n} dimension{s}; of p=inf its largest element, of -inf its least.",
    python=True,
    primitives=_AVG,
    samples=["(rand(2,3,{size}), 2, 2)"],
)


# -- a given number of windows --------------------------------------------------------------------
def _bounds(size: int, count: int) -> list[tuple[int, int]]:
    return [(i * size // count, -((i + 1) * size // -count)) for i in range(count)]


def _adaptive_avg(self: Array, output_size: Shape) -> Array:
    implemented(f"adaptive_avg_pool{len(output_size)}d", self, "efdFD")
    x = self
    for i, count in enumerate(output_size):
        dim = x.ndim - len(output_size) + i
        x = np.moveaxis(x, dim, 0)
        parts = [mean(x[start:end], 0)[0] for start, end in _bounds(len(x), count)]
        x = np.moveaxis(np.stack(parts), 0, dim) if parts else np.moveaxis(x[:0], 0, dim)
    found = np.ascontiguousarray(x)
    return of_images(found, self) if len(output_size) == 2 else found


def _adaptive_avg_back(grad_output: Array, self: Array, n: int) -> Array:
    g = grad_output
    for i in range(n):
        dim = g.ndim - n + i
        g = np.moveaxis(g, dim, 0)
        out = np.zeros((self.shape[dim - g.ndim], *g.shape[1:]), g.dtype)
        for part, (start, end) in zip(g, _bounds(len(out), len(g)), strict=True):
            out[start:end] += shared(part, end - start)
        g = np.moveaxis(out, 0, dim)
    return np.ascontiguousarray(g)


def _adaptive_avg_rows(n: int) -> Primitive:
    def kernel_backward(grad_output: Array, self: Array) -> Array:
        return _adaptive_avg_back(grad_output, self, n)

    primitive: Primitive
    again = lambda g, grad_output: primitive(g, tuple(grad_output.shape[-n:]))
    name, node = f"_adaptive_avg_pool{n}d", f"AdaptiveAvgPool{n}D"
    backward = NOTHING | {"grad_output": again}
    refuses = {"c": f"adaptive_avg_pool{n}d{'_cpu' if n == 3 else ''}"}
    facts: dict[str, Any] = {"linearity": "linear", "refuses": refuses}
    primitive = pair(name, node, _adaptive_avg, kernel_backward, backward, **facts)
    return primitive


_ADAPTIVE_AVG = {n: _adaptive_avg_rows(n) for n in (2, 3)}


def _wanted_sizes(name: str, output_size: Shape | int, input: Tensor, n: int) -> Sizes:
    if n == 1 or isinstance(output_size, int):
        return _sized(name, "output_size", output_size, n)
    count = len(output_size)
    if input.ndim <= count:
        raise ValueError(f"Input dimension should be at least {count + 1}")
    own = input.shape[input.ndim - count :]
    sizes = [size if v is None else v for size, v in zip(own, output_size, strict=True)]
    wanted = cast(Sizes, checked(name, "int[] output_size", 2, sizes))
    if count != n:
        internal = "(): internal error: output_size.size()" if "max" in name else ": output_size"
        raise RuntimeError(f"{name}{internal} must be {n}")
    return wanted


def _check_adaptive(name: str, n: int, x: Tensor) -> None:
    if x.ndim not in (n + 1, n + 2):
        colon = ":" if "max" in name else ""
        raise RuntimeError(
            f"{name}(): Expected {n + 1}D or {n + 2}D tensor, but got{colon} {list(x.shape)}"
        )


def _adaptive_mean(n: int, input: Tensor, output_size: Shape | int) -> Any:
    name = f"adaptive_avg_pool{n}d"
    sizes = _wanted_sizes(name, output_size, input, n)
    _check_adaptive(name, n, input)
    if n == 1:
        return _mean_of(input.unsqueeze(-2), (1, *sizes)).squeeze(-2)
    return _mean_of(input, sizes)


def _check_filled(name: str, input: Tensor, first: int) -> None:
    """RuntimeError where one of the dimensions from the first on is empty."""
    empty = next((d for d in range(first, input.ndim) if not input.shape[d]), None)
    if empty is not None:
        raise RuntimeError(
            f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has "
            f"sizes {list(input.shape)} with dimension {empty} being empty"
        )


def _mean_of(input: Tensor, sizes: Sizes) -> Any:
    n = len(sizes)
    if min(sizes) < 0:
        said = ", ".join(map(str, sizes[:2])) + "".join(f",{k}" for k in sizes[2:])
        raise RuntimeError(
            f"adaptive_avg_pool{n}d: elements of output_size must be greater than or equal to 0 but "
            f"received {{{said}}}"
        )
    if sizes == (1,) * n:
        return input.mean(tuple(range(-1, -n - 1, -1)), True)
    first = input.ndim - 2 if n == 2 else 1
    _check_filled(f"adaptive_avg_pool{n}d", input, first)
    return _ADAPTIVE_AVG[n](input, sizes)


def _places(start: Sizes, offsets: Sequence[Array], shape: Sizes) -> Any:
    index: Any = 0
    for a, offset, size in zip(start, offsets, shape, strict=True):
        index = index * size + a + offset
    return index


def _adaptive_max(self: Array, output_size: Shape) -> tuple[Array, Array]:
    n = len(output_size)
    implemented(f"adaptive_max_pool{n}d", self, "efd")
    shape = self.shape[-n:]
    lead = self.shape[:-n]
    if min(output_size) < 0:
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {min(output_size)}: {[*lead, *output_size]}"
        )
    values: Any = np.empty((*lead, *output_size), self.dtype)
    index: Any = np.empty(values.shape, np.int64)
    bounds = [_bounds(size, count) for size, count in zip(shape, output_size, strict=True)]
    for at in product(*map(range, output_size)):
        ranges = [bounds[i][k] for i, k in enumerate(at)]
        place: Any = (..., *(slice(a, b) for a, b in ranges))
        part = self[place]
        sizes = part.shape[-n:]
        flat = part.reshape(*lead, prod(sizes))
        best = _largest(flat)
        values[(..., *at)] = np.take_along_axis(flat, best[..., None], -1)[..., 0]
        offsets = np.unravel_index(best, sizes)
        index[(..., *at)] = _places(tuple(a for a, _ in ranges), offsets, shape)
    return (of_images(values, self), of_images(index, self)) if n == 2 else (values, index)


def _adaptive_max_rows(n: int) -> Primitive:
    def kernel_backward(grad_output: Array, self: Array, indices: Array) -> Array:
        return _scattered(grad_output, self.shape, indices, n)

    name, node = f"adaptive_max_pool{n}d", f"AdaptiveMaxPool{n}D"
    return _picking(name, node, _adaptive_max, kernel_backward, n, "self result1")


_ADAPTIVE_MAX = {n: _adaptive_max_rows(n) for n in (2, 3)}


def _adaptive_largest(n: int, input: Tensor, output_size: Shape | int, return_indices: bool) -> Any:
    name = f"adaptive_max_pool{n}d"
    _check_adaptive(name, n, input)
    _check_filled(name, input, 1)
    sizes = _wanted_sizes(name, output_size, input, n)
    if n > 1:
        out, index = _ADAPTIVE_MAX[n](input, sizes)
    else:
        out, index = _ADAPTIVE_MAX[2](input.unsqueeze(-2), (1, *sizes))
        out, index = out.squeeze(-2), index.squeeze(-2)
    return (out, index) if return_indices else out


_WANTED = {"size": ("5", "5,5", "5,5,5"), "wanted": ("2", "(3,2)", "(3,2,2)")}
for _dims, _size in (((1,), "int[1] output_size"), ((2, 3), "Any output_size")):
    _about: dict[str, Any] = {
        "dims": _dims,
        "words": _WANTED,
        "samples": ["(randn(2,3,{size}), {wanted})"],
    }
    of_dimensions(
        f"adaptive_avg_pool{{n}}d(Tensor input, {_size}) -> adaptive_avg_pool{{n}}d",
        body=_adaptive_mean,
        doc="The average of each of a given number of windows.",
        python=_dims != (1,),
        aliases="adaptive_avg_pool1d" if _dims == (1,) else "",
        primitives=_ADAPTIVE_AVG,
        **_about,
    )
    of_dimensions(
        f"_adaptive_max_pool{{n}}d(Tensor input, {_size}, Any return_indices=False) "
        "-> adaptive_max_pool{n}d",
        body=_adaptive_largest,
        doc="The largest element of each of a given number of windows.",
        python=True,
        aliases="adaptive_max_pool1d" if _dims == (1,) else "",
        primitives=_ADAPTIVE_MAX,
        **_about,
    )


# -- putting maxima back --------------------------------------------------------------------------
def _unpool(self: Array, indices: Array, output_size: Shape) -> Array:
    n = len(output_size)
    lead = self.shape[:-n]
    flat = np.zeros((prod(lead), prod(output_size)), self.dtype)
    windows = (flat.shape[0], prod(self.shape[-n:]))
    places = indices.reshape(windows)
    if places.size and (places.min() < 0 or places.max() >= flat.shape[1]):
        wrong = int(places[(places < 0) | (places >= flat.shape[1])].flat[0])
        raise RuntimeError(
            f"Found an invalid max index: {wrong} (output volumes are of size "
            f"{'x'.join(map(str, output_size))}"
        )
    flat[np.arange(flat.shape[0])[:, None], places] = self.reshape(windows)
    return flat.reshape(*lead, *output_size)


def _unpool_rows(n: int) -> Primitive:
    class forward:
        self = lambda g, indices: _gathered(g, indices, n)

    forward.__name__ = f"max_unpool{n}d"
    primitive: Primitive = operator(
        kernel=_unpool, node=f"MaxUnpool{n}DBackward0", public=False, batching="folded"
    )(forward)
    return primitive


_UNPOOL = {n: _unpool_rows(n) for n in (2, 3)}


def _first(name: str, value: Ints | int, n: int) -> Sizes:
    """A number for each dimension, the first of those given, as PyTorch's Python takes them."""
    given = several(value, n) if not isinstance(value, (tuple, list)) else tuple(value)
    if len(given) < n:
        raise IndexError("tuple index out of range")  # PyTorch's words
    if len(given) > n == 3:
        raise RuntimeError(
            f"There should be exactly three elements (depth, height, width) in {name}, but got: "
            f"{len(given)} elements."
        )
    return given[:n]


def _unpooled(
    n: int,
    input: Tensor,
    indices: Tensor,
    kernel_size: int,
    stride: Ints | None,
    padding: Ints | int,
    output_size: Any,
) -> Any:
    kernel = _first("kernel_size", kernel_size, n)
    steps = kernel if stride is None else _first("stride", stride, n)
    around = _first("padding", padding, n)
    size = tuple(
        (m - 1) * s - 2 * p + k
        for m, s, p, k in zip(input.shape[-n:], steps, around, kernel, strict=True)
    )
    if output_size is not None:
        size = tuple(output_size)[-n:]
    for i, wanted in enumerate(size):
        if wanted < 0:
            raise ValueError(
                "max_unpooling: output_size must contain non-negative spatial dimensions, but got "
                f"output_size[{i}]={wanted}"
            )
    if n > 1:
        return _UNPOOL[n](input, indices, size)
    return _UNPOOL[2](input.unsqueeze(-1), indices.unsqueeze(-1), (*size, 1)).squeeze(-1)


of_dimensions(
    "max_unpool{n}d(Tensor input, Tensor indices, Any kernel_size, Any stride=None, Any padding=0, "
    "Any output_size=None)",
    body=_unpooled,
    doc="Maxima put back where max_pool found them, zeros elsewhere.",
    python=True,
    primitives=_UNPOOL,
    samples=["(*nn.functional.max_pool{n}d_with_indices(randn(2,3,{size}), 2), 2)"],
)
