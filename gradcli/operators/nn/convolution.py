"""Convolutions of one, two and three dimensions, transposed ones, and unfolding into columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from gradcli.engine.core.declaration import Array, DType, Ints, Shape, Value
from gradcli.engine.core.tensor import Tensor
from gradcli.engine.registry.binder import Parser
from gradcli.engine.registry.derivative_pairs import of_dimensions
from gradcli.engine.registry.rule_helpers import (
    dtype_of,
    expect_alike,
    implemented,
    refuse_if,
    total,
)
from gradcli.engine.registry.table import function, primitive
from gradcli.engine.system import threads
from gradcli.engine.system.dtypes import c_type, scalar_name
from gradcli.operators.movement.strides import of_images

FAMILY = "nn"

Sizes = tuple[int, ...]  # of the dimensions of an image, or steps along them


def several(value: Any, n: int) -> Sizes:
    """One number for every dimension, or the numbers given."""
    if isinstance(value, (tuple, list)):
        return tuple(int(v) for v in value) * (n if len(value) == 1 else 1)
    return (int(value),) * n


# -- on arrays ------------------------------------------------------------------------------------
class Windows(NamedTuple):
    """Windows over the last dimensions of an image: their sizes, and how they lie on it."""

    kernel: Sizes
    dilation: Sizes
    padding: Sizes
    stride: Sizes

    def outputs(self, size: Sizes) -> Sizes:
        """How many there are along each dimension of an image of this size."""
        return tuple(
            (n + 2 * p - d * (k - 1) - 1) // s + 1
            for n, k, d, p, s in zip(size, *self, strict=True)
        )

    def of(self, x: Array, outputs: Sizes | None = None) -> Array:
        """All windows of a padded image, or so many of the first, as a view: (..., outputs, kernel)."""
        n = len(self.kernel)
        if outputs is None:
            outputs = self._replace(padding=(0,) * n).outputs(x.shape[-n:])
        apart, inside = (
            tuple(a * b for a, b in zip(x.strides[-n:], by, strict=True))
            for by in (self.stride, self.dilation)
        )
        shape, strides = x.shape[:-n] + outputs + self.kernel, x.strides[:-n] + apart + inside
        return np.lib.stride_tricks.as_strided(x, shape, strides, writeable=False)

    def overlaid(self, parts: Any, size: Sizes, dtype: DType | None = None) -> Array:
        """The image of this size that windows add up to: (..., kernel, outputs) of their elements."""
        n = len(size)
        outputs = parts.shape[-n:]
        every = list(zip(size, outputs, *self, strict=True))
        whole = (max((o - 1) * s + d * (k - 1) + 1, m + 2 * p) for m, o, k, d, p, s in every)
        out: Any = np.zeros((*parts.shape[: -2 * n], *whole), dtype or parts.dtype)
        for offset in product(*map(range, self.kernel)):
            lies = (
                slice(i * d, i * d + s * (o - 1) + 1, s)
                for i, (_, o, _, d, _, s) in zip(offset, every, strict=True)
            )
            out[(..., *lies)] += parts[(..., *offset, *(slice(None),) * n)]
        inner = (slice(p, p + m) for p, m in zip(self.padding, size, strict=True))
        return np.ascontiguousarray(out[(..., *inner)])


def padded(x: Array, padding: Sizes, value: int = 0) -> Array:
    """The last dimensions with a border on both sides."""
    if not any(padding):
        return x
    widths = [(0, 0)] * (x.ndim - len(padding)) + [(p, p) for p in padding]
    return np.pad(x, widths, constant_values=value)


def _columns(view: Array, groups: int, n: int) -> Array:
    """(groups, places, elements of a window) of windows: (batch, channels, *places, *window)."""
    batch, channels, *rest = view.shape
    parts = view.reshape(batch, groups, channels // groups, *rest)
    order = (1, 0, *range(3, 3 + n), 2, *range(3 + n, 3 + 2 * n))
    places, inner = batch * prod(rest[:n]), channels // groups * prod(rest[n:])
    return parts.transpose(order).reshape(groups, places, inner)


def _rows(g: Array, groups: int) -> Array:
    """(groups, places, channels) of (batch, channels, *places)."""
    batch, channels, *places = g.shape
    parts = g.reshape(batch, groups, channels // groups, prod(places))
    return parts.transpose(1, 0, 3, 2).reshape(groups, batch * prod(places), channels // groups)


class _Flat:
    """Windows one step apart, of images that lie in one row: [channel, place].

    A window's elements lie at the same distances from its first one everywhere, so that windows are read and
    added up by long runs. Images are worked on in groups, so few that the elements of their windows stay in
    the cache. Between two rows lies one border, the end of one and the begin of the next; what begins on a
    border is no window, and left out in the end.

    whole: the sizes with a border. outputs: how many windows there are along each dimension. inside: the
    distances of a window's elements along each dimension. reach: the distance of the last. front: how much
    border is before the first image.
    """

    def __init__(self, how: Windows, size: Sizes, batch: int) -> None:
        self.how, self.size, self.batch = how, size, batch
        self.outputs = how.outputs(size)
        self.whole = tuple(n + p for n, p in zip(size, how.padding, strict=True))
        self.places = prod(self.whole)
        steps = [prod(self.whole[d + 1 :]) for d in range(len(size))]
        self.inside = [s * d for s, d in zip(steps, how.dilation, strict=True)]
        self.offsets = [
            sum(i * s for i, s in zip(every, self.inside, strict=True))
            for every in product(*map(range, how.kernel))
        ]
        self.reach = self.offsets[-1]
        self.front = sum(p * s for p, s in zip(how.padding, steps, strict=True))
        self._last = sum((n - 1) * s for n, s in zip(self.outputs, steps, strict=True)) + 1

    @classmethod
    def of(cls, x: Array, how: Windows, size: Sizes, groups: int) -> _Flat | None:
        """Where this is worth while: for one group, steps of one, and borders that are not most of it."""
        if groups != 1 or set(how.stride) != {1} or not isinstance(x, np.ndarray) or not x.size:
            return None
        every = zip(how.kernel, how.dilation, how.padding, strict=True)
        if x.dtype.char not in "fd" or any(p > (k - 1) * d for k, d, p in every):
            return None
        found = cls(how, size, len(x))
        some = prod(found.outputs)
        return found if some > 0 and found.places <= _BORDER * some else None

    def inner(self, flat: Array) -> Array:
        """Of images in a row, (channels, images, *sizes) inside of their borders."""
        images = (flat.shape[1] - self.front) // self.places
        stop = self.front + images * self.places
        index: Any = (..., *map(slice, self.size))
        return flat[:, self.front : stop].reshape(len(flat), images, *self.whole)[index]

    def windows(self, flat: Array) -> Array:
        """Of results for every place, those of windows."""
        index: Any = (..., *map(slice, self.outputs))
        return flat.reshape(len(flat), -1, *self.whole)[index]

    def groups(self, elements: int, itemsize: int) -> tuple[int, list[tuple[int, int]]]:
        """(images of a group, the runs of places in which its windows are worked out).

        elements: of a window.
        """
        most = max(_BLOCK // (elements * itemsize), 64)
        images = min(max(most // self.places, 1), self.batch)
        places = (images - 1) * self.places + self._last
        step = -(-places // -(-places // most))
        return images, [(s, min(s + step, places)) for s in range(0, places, step)]

    def row(self, channels: int, images: int, dtype: Any) -> Array:
        """(channels, places of so many images and what windows reach over), of zeros."""
        return np.zeros((channels, images * self.places + self.front + self.reach), dtype)

    def elements(self, flat: Array) -> Array:
        """The elements of the windows at all places, as a view: (channels, *kernel, places)."""
        step = flat.itemsize
        shape = (len(flat), *self.how.kernel, flat.shape[1] - self.reach)
        strides = (flat.strides[0], *[s * step for s in self.inside], step)
        return np.lib.stride_tricks.as_strided(flat, shape, strides, writeable=False)

    def forward(self, x: Array, w: Array) -> Array:
        """The convolution: (batch, channels, *outputs)."""
        kernels = w.reshape(len(w), -1)
        made = np.empty((self.batch, len(w), *self.outputs), x.dtype)
        images, runs = self.groups(kernels.shape[1], x.itemsize)

        def prepared() -> Callable[[int, int], None]:
            flat = self.row(x.shape[1], images, x.dtype)
            inner, elements = self.inner(flat), self.elements(flat)
            columns = _aligned((*elements.shape[:-1], runs[0][1]), 0, x.dtype)
            found = np.empty((len(w), images * self.places), x.dtype)
            windows = self.windows(found)
            steps = []
            for s, e in runs:
                some = columns[..., : e - s]
                products = _products(kernels, _matrix(some), found[:, s:e])
                steps.append((some, elements[..., s:e], products))

            def work(start: int, stop: int) -> None:
                for k in range(start, stop, images):
                    part = slice(k, min(k + images, stop))
                    inner[:, : part.stop - k] = x[part].swapaxes(0, 1)
                    for some, source, products in steps:
                        np.copyto(some, source)
                        _multiply(products)
                    made[part] = windows[:, : part.stop - k].swapaxes(0, 1)

            return work

        self._in_turns(prepared, images, kernels.size)
        return made

    def slopes(
        self, g: Array, w: Array, x: Array | None, of_input: bool = True
    ) -> tuple[Array | None, Array | None]:
        """What the input receives (`of_input`), and (where there is x) what the weights do.

        Places that begin no window count as windows whose gradient is zero. Zero times infinity is NaN, so
        weights that are not finite spoil the input's gradient, and such elements of x make NaN of the
        weights'. The callers look at both.
        """
        kernels, channels = w.reshape(len(w), -1).T, w.shape[1]
        made = np.empty((self.batch, channels, *self.size), g.dtype) if of_input else None
        images, runs = self.groups(len(kernels), g.itemsize)
        # Where runs are short, what windows reach over would be most of the work.
        margin = self.reach if self.reach <= runs[0][1] else 0
        turns: dict[int, Array] = {}

        def prepared() -> Callable[[int, int], None]:
            spread = np.zeros((len(w), images * self.places), g.dtype)
            flat, received = (self.row(channels, images, g.dtype) for _ in range(2))
            shape = (channels, *self.how.kernel, runs[0][1] + 2 * margin)
            memory = _aligned(shape, margin, g.dtype)
            windows, inner, outer = self.windows(spread), self.inner(flat), self.inner(received)
            steps = []
            for s, e in runs:
                run, some = _Run(self, memory, margin, flat, received, s, e), spread[:, s:e]
                steps.append((run, some.T, _products(kernels, some, run.matrix)))
            clears = len(steps) > 1 or not margin

            def work(start: int, stop: int) -> None:
                of_weights = turns[start] = np.zeros(kernels.shape, g.dtype)
                for k in range(start, stop, images):
                    part = slice(k, min(k + images, stop))
                    count = part.stop - k
                    windows[:, :count] = g[part].swapaxes(0, 1)
                    windows[:, count:] = 0
                    if x is not None:
                        inner[:, :count] = x[part].swapaxes(0, 1)
                    if clears:
                        received[...] = 0
                    for run, turned, products in steps:
                        if x is not None:
                            of_weights += run.read() @ turned
                        if made is not None:
                            _multiply(products)
                            run.add(not clears)
                    if made is not None:
                        made[part] = outer[:, :count].swapaxes(0, 1)

            return work

        self._in_turns(prepared, images, kernels.size)
        if x is None:
            return made, None
        total = np.add.reduce([turns[start] for start in sorted(turns)])
        return made, np.ascontiguousarray(total.T).reshape(w.shape)

    def _in_turns(
        self, prepared: Callable[[], Callable[[int, int], None]], images: int, multiplied: int
    ) -> None:
        """Call `prepared()(start, stop)` for all images, on threads if that pays.

        Each thread prepares memory once. Sums depend on the turns, and these not on the threads.
        multiplied: numbers for a window.
        """
        pays = multiplied * self.places * self.batch >= _SHARED
        count = min(_TURNS, -(-self.batch // images)) if pays else 1
        step = -(-self.batch // (count * images)) * images
        starts = range(0, self.batch, step)
        many = min(threads.products(), len(starts))
        if many == 1:
            work = prepared()
            for start in starts:
                work(start, min(start + step, self.batch))
            return

        def run(take: Callable[[], int]) -> None:
            work = prepared()
            while (k := take()) < len(starts):
                work(starts[k], min(starts[k] + step, self.batch))

        with threads.multiplying_alone():
            threads.share(run, len(starts), many)


class _Run:
    """A run of windows of images in a row: their elements, and what is added up to the images.

    Before and behind the elements lie zeros. So those of all windows that lie on one place are found by
    steps through memory, and added up by one call.
    """

    def __init__(
        self,
        flat: _Flat,
        memory: Array,
        margin: int,
        row: Array,
        received: Array,
        start: int,
        stop: int,
    ) -> None:
        """memory: (channels, *kernel, windows of the longest run, with margins). row: the images.

        received: what is added up to them.
        """
        self.flat, self.start, self.margin, self.received = flat, start, margin, received
        self.source, count = flat.elements(row)[..., start:stop], stop - start
        self.memory = memory
        self.elements = memory[..., self.margin : self.margin + count]
        self.matrix = _matrix(self.elements)
        n, step = len(flat.how.kernel), memory.itemsize
        steps = [a - b * step for a, b in zip(memory.strides[1:-1], flat.inside, strict=True)]
        self.axes = tuple(range(1, n + 1))
        self.added = np.lib.stride_tricks.as_strided(
            memory[..., self.margin :],
            (*memory.shape[:-1], count + self.margin),
            (memory.strides[0], *steps, step),
            writeable=False,
        )
        self.left = memory[..., margin + count :]
        self.into = received[:, start : stop + flat.reach]

    def read(self) -> Array:
        """The elements of the windows, as a matrix."""
        np.copyto(self.elements, self.source)
        return self.matrix

    def add(self, is_only: bool) -> None:
        """Add what the matrix has to images; is_only: as all that they receive."""
        if not self.margin:
            count = self.matrix.shape[1]
            parts = self.elements.reshape(len(self.received), -1, count)
            for k, offset in enumerate(self.flat.offsets):
                at = self.start + offset
                self.received[:, at : at + count] += parts[:, k]
        elif is_only:
            np.add.reduce(self.added, axis=self.axes, out=self.into)
        else:
            self.left[...] = 0  # what a longer run has left
            self.into += np.add.reduce(self.added, axis=self.axes)


def _aligned(shape: Sizes, first: int, dtype: Any) -> Array:
    """Zeros whose rows from element `first` on begin where vectors do."""
    size = np.dtype(dtype).itemsize
    lanes = _VECTOR // size
    wide = -(-shape[-1] // lanes) * lanes
    memory = np.zeros(prod(shape[:-1]) * wide + lanes, dtype)
    begin = (-memory.__array_interface__["data"][0] // size - first) % lanes
    rows = memory[begin : begin + prod(shape[:-1]) * wide].reshape(*shape[:-1], wide)
    return rows[..., : shape[-1]]


def _matrix(elements: Array) -> Array:
    """(channels times elements of a window, windows) of (channels, *kernel, windows), as a view."""
    rows = prod(elements.shape[:-1])
    shape, strides = (rows, elements.shape[-1]), (elements.strides[-2], elements.itemsize)
    return np.lib.stride_tricks.as_strided(elements, shape, strides)


Products = list[tuple[Array, Array, Array]]


def _products(a: Array, b: Array, out: Array) -> Products:
    """`a @ b` by so few columns at once that BLAS needs not put them in another order first."""
    step = _UNPACKED // a.size // 64 * 64 or b.shape[1]
    starts = range(0, b.shape[1], step)
    return [(a, b[:, s : s + step], out[:, s : s + step]) for s in starts]


def _multiply(products: Products) -> None:
    for a, b, out in products:
        np.matmul(a, b, out=out)


_BORDER = 1.6  # how many places there are for a window at most
_BLOCK = 640 << 10  # bytes of the elements of the windows that are worked out at once
_VECTOR = 64  # bytes of the widest vector
_TURNS = 4  # in which the images are cut
_SHARED = 1 << 24  # multiplications from which a second thread pays off
_UNPACKED = 1_000_000  # multiplications of a product that OpenBLAS does without packing


def _forward(x: Array, w: Array, how: Windows, groups: int) -> Array:
    if (flat := _Flat.of(x, how, x.shape[2:], groups)) is not None and x.dtype == w.dtype:
        return flat.forward(x, w)
    n = len(how.kernel)
    view = how.of(padded(x, how.padding))
    batch, outputs = x.shape[0], view.shape[2 : 2 + n]
    kernels = w.reshape(groups, w.shape[0] // groups, prod(w.shape[1:]))
    made = _columns(view, groups, n) @ kernels.swapaxes(1, 2)
    made = made.reshape(groups, batch, prod(outputs), w.shape[0] // groups)
    return made.transpose(1, 0, 3, 2).reshape(batch, w.shape[0], *outputs)


def _input_gradient(g: Array, w: Array, size: Sizes, how: Windows, groups: int) -> Array:
    """What the convolution's input receives: also the transposed convolution of g."""
    flat = _Flat.of(g, how, size, groups)
    if flat is not None and g.dtype == w.dtype and g.shape[2:] == flat.outputs and _finite(w):
        received, _ = flat.slopes(g, w, None)
        assert received is not None
        return received
    n, per_in = len(how.kernel), w.shape[1]
    batch, outputs = g.shape[0], g.shape[2:]
    columns = _rows(g, groups) @ w.reshape(groups, w.shape[0] // groups, prod(w.shape[1:]))
    columns = columns.reshape(groups, batch, *outputs, per_in, *how.kernel)
    parts = columns.transpose(1, 0, 2 + n, *range(3 + n, 3 + 2 * n), *range(2, 2 + n))
    return how.overlaid(parts, size).reshape(batch, groups * per_in, *size)


def _weight_gradient(g: Array, x: Array, how: Windows, groups: int) -> Array:
    view = how.of(padded(x, how.padding), g.shape[2:])
    made = _rows(g, groups).swapaxes(1, 2) @ _columns(view, groups, len(how.kernel))
    return made.reshape(g.shape[1], x.shape[1] // groups, *how.kernel)


def _finite(w: Array) -> bool:
    """Whether no weight is infinite or NaN, so that its product with zero is zero."""
    return bool(np.isfinite(w).all())


def _both_gradients(
    g: Array, x: Array, w: Array, how: Windows, groups: int, wanted: tuple[bool, bool]
) -> tuple[Array | None, Array | None]:
    """What the input and the weights of a convolution receive, where wanted."""
    g_input = g_weight = None
    of_input, of_weight = wanted
    flat = _Flat.of(g, how, x.shape[2:], groups)
    if flat is not None and g.dtype == w.dtype == x.dtype:
        by_runs = of_input and _finite(w)
        if by_runs or of_weight:
            g_input, g_weight = flat.slopes(g, w, x if of_weight else None, by_runs)
        if g_weight is not None and np.isnan(g_weight).any():
            g_weight = None  # perhaps of zero times an element of x that is not finite
    if of_input and g_input is None:
        g_input = _input_gradient(g, w, x.shape[2:], how, groups)
    if of_weight and g_weight is None:
        g_weight = _weight_gradient(g, x, how, groups)
    return g_input, g_weight


def _left_out(like: Array) -> Array:
    """What stands for a gradient that is not asked for: zeros that take no memory."""
    return np.broadcast_to(np.zeros((), like.dtype), like.shape)


# -- the primitive --------------------------------------------------------------------------------
def _gradients(
    grad_output: Array,
    input: Array,
    weight: Array,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
    output_mask: tuple[bool, bool],
) -> tuple[Array, Array]:
    if not all(isinstance(a, np.ndarray) for a in (grad_output, input, weight)):
        # A trace that went on would keep all windows of images that are constant.
        raise TypeError("the gradients of a convolution are one call of a trace")
    how = Windows(weight.shape[2:], dilation, padding, stride)
    g_input: Array | None = None
    g_weight: Array | None = None
    if not transposed:
        g_input, g_weight = _both_gradients(grad_output, input, weight, how, groups, output_mask)
    else:
        if output_mask[0]:
            made = _forward(grad_output, weight, how, groups)
            g_input = made[(slice(None), slice(None), *map(slice, input.shape[2:]))]
        if output_mask[1]:
            g_weight = _weight_gradient(input, grad_output, how, groups)
    return (
        _left_out(input) if g_input is None else g_input,
        _left_out(weight) if g_weight is None else g_weight,
    )


def _double(
    grads: Sequence[Value | None],
    grad_output: Value,
    input: Value,
    weight: Value,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
    mask: tuple[bool, ...],
) -> tuple[Any, Any, Any]:
    """The convolution is bilinear, so its gradients' gradients are convolutions again."""
    g_input, g_weight = grads
    how = (stride, padding, dilation, transposed, output_padding, groups)
    to_grad = to_input = to_weight = None
    if g_input is not None:
        if mask[0]:
            to_grad = convolution(g_input, weight, None, *how)
        if mask[2]:
            to_weight = convolution_gradients(grad_output, g_input, weight, *how, (False, True))[1]
    if g_weight is not None:
        if mask[0]:
            part = convolution(input, g_weight, None, *how)
            to_grad = part if to_grad is None else to_grad + part
        if mask[1]:
            to_input = convolution_gradients(grad_output, input, g_weight, *how, (True, False))[0]
    return to_grad, to_input, to_weight


@primitive(
    kernel=_gradients,
    node="ConvolutionBackwardBackward0",
    outputs="grad_input grad_weight",
    batching="convolution_slopes",
    symbolic="slopes of a convolution",
)
class convolution_gradients:
    grad_output__input__weight = _double


@primitive(node="ConvolutionBackward0", batching="convolved", symbolic="a convolution")
class convolution:
    def forward(
        input: Array,
        weight: Array,
        bias: Array | None,
        stride: Ints,
        padding: Ints,
        dilation: Ints,
        transposed: bool,
        output_padding: Ints,
        groups: int,
    ) -> Array:
        how = Windows(weight.shape[2:], dilation, padding, stride)
        if transposed:
            size = tuple(
                (n - 1) * s - 2 * p + d * (k - 1) + e + 1
                for n, e, k, d, p, s in zip(input.shape[2:], output_padding, *how, strict=True)
            )
            out = _input_gradient(input, weight, size, how, groups)
        else:
            out = _forward(input, weight, how, groups)
        if bias is not None:
            out += bias.reshape(-1, *[1] * len(stride))
        found = (
            out if transposed or out.flags.c_contiguous else out.copy()
        )  # in order, as PyTorch's
        if input.ndim == 4:
            return of_images(found, input, weight)
        if input.ndim == 3:
            return of_images(*[x[:, :, None] for x in (found, weight)])[:, :, 0]
        return found

    def input__weight__bias(
        g: Value,
        input: Value,
        weight: Value,
        bias_sym_sizes_opt: Shape,
        stride: Ints,
        padding: Ints,
        dilation: Ints,
        transposed: bool,
        output_padding: Ints,
        groups: int,
        mask: tuple[bool, ...],
    ) -> tuple[Any, Any, Any]:
        g_input = g_weight = g_bias = None
        if mask[0] or mask[1]:
            how = (stride, padding, dilation, transposed, output_padding, groups)
            g_input, g_weight = convolution_gradients(g, input, weight, *how, mask[:2])
        if mask[2]:
            g_bias = total(g, (0, *range(2, g.ndim)))
        return (g_input if mask[0] else None), (g_weight if mask[1] else None), g_bias


# -- functions ------------------------------------------------------------------------------------
def _checked(
    n: int,
    name: str,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    groups: int,
    transposed: bool,
    steps: dict[str, Any],
) -> tuple[bool, list[Sizes]]:
    """(whether there is a batch dimension, the steps by name with one number for each dimension).

    RuntimeError in PyTorch's words for operands and steps that do not fit.
    """
    if bias is not None and dtype_of(bias) != dtype_of(input):
        a, b = (c_type(x) for x in (input, bias))
        raise RuntimeError(f"Input type ({a}) and bias type ({b}) should be the same")
    if input.ndim not in (n + 1, n + 2):
        raise RuntimeError(
            f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {name}, but got input of "
            f"size: {list(input.shape)}"
        )
    refuse_if(weight.ndim < 3, "weight should have at least three dimensions")
    refuse_if(groups <= 0, "non-positive groups is not supported")
    expanded = [_expanded(word, v, n, weight.ndim - 2) for word, v in steps.items()]
    _check_steps(dict(zip(steps, expanded, strict=True)))
    _check_shapes(n, input, weight, bias, groups, transposed)
    _check_dtypes(n, input, weight, transposed)
    _check_kernel(n, weight, transposed)
    return bool(input.ndim == n + 2), expanded


def _expanded(name: str, value: Ints | int, n: int, dims: int) -> Sizes:
    """As `several`, for each dimension of the kernel; RuntimeError for another count."""
    given = list(value) if isinstance(value, (tuple, list)) else [value] * n
    if len(given) not in (1, dims):
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {dims} values to match the "
            f"convolution dimensions, but got {name}={given}"
        )
    return several(given, dims)


def _check_shapes(
    n: int, input: Tensor, weight: Tensor, bias: Tensor | None, groups: int, transposed: bool
) -> None:
    shape, kernels = list(_batched_shape(input, n)), list(weight.shape)
    if len(kernels) != n + 2:
        raise RuntimeError(
            f"Expected {len(kernels)}-dimensional input for {len(kernels)}-dimensional weight "
            f"{kernels}, but got {n + 2}-dimensional input of size {shape} instead"
        )
    given = f"Given groups={groups}, expected weight to be"
    if kernels[0] < groups:
        raise RuntimeError(
            f"{given} at least {groups} at dimension 0, but got weight of size {kernels} instead"
        )
    if kernels[0] % groups:
        raise RuntimeError(
            f"{given} divisible by {groups} at dimension 0, but got weight of size [{kernels}] instead"
        )
    word = "transposed=1" if transposed else f"groups={groups}"
    wanted = kernels[0] if transposed else kernels[1] * groups
    if wanted != shape[1]:
        raise RuntimeError(
            f"Given {word}, weight of size {kernels}, expected input{shape} to have {wanted} "
            f"channels, but got {shape[1]} channels instead"
        )
    outputs = kernels[1] * groups if transposed else kernels[0]
    if bias is not None and (bias.ndim != 1 or bias.shape[0] != outputs):
        raise RuntimeError(
            f"Given {'transposed=1, ' if transposed else ''}weight of size {kernels}, expected bias to be "
            f"1-dimensional with {outputs} elements, but got bias of size {list(bias.shape)} instead"
        )


def _check_kernel(n: int, weight: Tensor, transposed: bool) -> None:
    """RuntimeError for a kernel of no elements; that of one dimension is one of two to PyTorch."""
    if all(weight.shape[2:]) and (all(weight.shape) or not transposed):
        return
    if n < 3 and transposed and not weight.shape[1]:
        shape = [*weight.shape[:2], *(1, *weight.shape[2:])[-2:]]
        raise RuntimeError(f"non-empty 2D or 4D weight tensor expected, but got: {shape}")
    if n == 3 and transposed:
        raise RuntimeError(
            "non-empty 5D (n_output_plane x n_input_plane x kernel_depth x kernel_height x "
            f"kernel_width) tensor expected for weight, but got: {list(weight.shape)}"
        )
    height, width = (1, *weight.shape[2:])[-2:]
    sizes = f" kernel_height: {height} kernel_width: {width}"
    if n == 3:
        sizes = f": {' x '.join(map(str, weight.shape[2:]))} (TxHxW)"
    raise RuntimeError(f"kernel size should be greater than zero, but got{sizes}")


def _check_dtypes(n: int, input: Tensor, weight: Tensor, transposed: bool) -> None:
    own, other = dtype_of(input), dtype_of(weight)
    if own != other and own.kind == "c":
        kinds = f"({_type(input)}) and weight type ({_type(weight)})"
        raise RuntimeError(f"Input type {kinds} should be the same")
    if transposed:
        implemented(f"slow_conv_transpose{max(n, 2)}d_out_cpu", own, "efdlFD")
    else:
        implemented("slow_conv2d_cpu" if n < 3 else "compute_columns3d", own, "efdFDbBhHiIlL")
    expect_alike(input, weight)


def _type(x: Any) -> str:
    name = scalar_name(x)
    return f"CPU{name}Type" if dtype_of(x).kind in "bc" else f"torch.{name}Tensor"


def _batched_shape(input: Tensor, n: int) -> Sizes:
    shape = tuple(input.shape)
    return shape if input.ndim == n + 2 else (1, *shape)


def _check_same(
    n: int, weight: Tensor, groups: int, stride: Ints | int, dilation: Ints | int
) -> None:
    """What PyTorch asks of steps before it knows how much is padded."""
    refuse_if(weight.ndim < 3, "weight should have at least three dimensions")
    refuse_if(groups <= 0, "non-positive groups is not supported")
    dims = weight.ndim - 2
    for name, value in (("stride", stride), ("dilation", dilation)):
        if isinstance(value, (tuple, list)) and len(value) not in (1, dims):
            raise RuntimeError(f"{name} cannot broadcast to {dims} dimensions")
    if any(s != 1 for s in several(stride, n)):
        raise RuntimeError("padding='same' is not supported for strided convolutions")


def _same_padding(input: Any, weight: Any, dilation: Any) -> tuple[Any, Any]:
    """(input, symmetric padding) so that the output is as large as the input."""
    total = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:], strict=True)]
    left = tuple(t // 2 for t in total)
    if all(t % 2 == 0 for t in total):
        return input, left
    from gradcli.operators.movement.joining import constant_pad_nd

    extra: list[int] = []
    for t in reversed(total):
        extra += [0, t % 2]
    # PyTorch pads the longer side first, then convolves with symmetric padding.
    return constant_pad_nd(input, tuple(extra), 0), left


def _check_sizes(input: Tensor, weight: Tensor, padding: Ints, dilation: Ints, n: int) -> None:
    sizes = [s + 2 * p for s, p in zip(input.shape[-n:], padding, strict=True)]
    kernel = [d * (k - 1) + 1 for d, k in zip(dilation, weight.shape[2:], strict=True)]
    if any(k > s for k, s in zip(kernel, sizes, strict=True)):
        per = [" x ".join(map(str, x)) for x in (sizes, kernel)]
        raise RuntimeError(
            f"Calculated padded input size per channel: ({per[0]}). Kernel size: ({per[1]}). Kernel "
            "size can't be greater than actual input size"
        )


def _complex(call: Callable[..., Any], input: Tensor, weight: Tensor, bias: Tensor | None) -> Any:
    """Three real convolutions make a complex one, as PyTorch composes it."""
    from gradcli.operators.primitives.arithmetic import mul_scalar

    (x, y), (u, v) = (input.real, input.imag), (weight.real, weight.imag)
    b, c = (None, None) if bias is None else (bias.real, bias.imag)
    first = call(x, u, b)
    second = call(y, v, None)
    third = call(x + y, u + v, None if b is None else b + c)
    return (first - second) + mul_scalar(third - first - second, 1j)


def _check_steps(steps: dict[str, Sizes]) -> None:
    for name, sizes in steps.items():
        refuse_if(name == "stride" and min(sizes) <= 0, "non-positive stride is not supported")
        refuse_if("padding" in name and min(sizes) < 0, "negative {} is not supported", name)


def _check_filled(input: Tensor, n: int) -> None:
    """RuntimeError for an image without elements; that of one dimension is one of two to PyTorch."""
    batch, channels, *sizes = _batched_shape(input, n)
    if batch and channels and not all(sizes):
        shape = [batch, channels, *[1] * (n == 1), *sizes]
        raise RuntimeError(
            f"Only zero batch or zero channel inputs are supported, but got input shape: {shape}"
        )


def _convolved(batched: bool, x: Tensor, weight: Tensor, bias: Tensor | None, *how: Any) -> Any:
    """The result for a batch, which is of one image unless `batched`; how: the primitive's options."""
    if dtype_of(x).kind == "c":
        out = _complex(lambda a, w, b: convolution(a, w, b, *how), x, weight, bias)
    else:
        out = convolution(x, weight, bias, *how)
    return out if batched else out.squeeze(0)


def _conv(
    n: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Ints | int,
    padding: Any,
    dilation: Ints | int,
    groups: int,
) -> Any:
    if padding == "same":
        _check_same(n, weight, groups, stride, dilation)
    elif isinstance(padding, str) and padding != "valid":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    given = {
        "stride": stride,
        "padding": 0 if isinstance(padding, str) else padding,
        "dilation": dilation,
    }
    batched, (steps, around, spread) = _checked(
        n, f"conv{n}d", input, weight, bias, groups, False, given
    )
    x = input if batched else input.unsqueeze(0)
    if padding == "same":
        x, around = _same_padding(x, weight, spread)
    if any(d <= 0 for d in spread):
        # the sizes are said by what PyTorch computes with, that of one dimension as that of two
        said = f", but got {[1] * (n == 1) + list(spread)}" if min(spread) == 0 else ""
        raise RuntimeError("dilation should be greater than zero" + said)
    _check_sizes(x, weight, around, spread, n)
    _check_filled(input, n)
    if not x.shape[1]:  # PyTorch makes no channels of none
        weight, bias = weight[:0], None if bias is None else bias[:0]
    return _convolved(batched, x, weight, bias, steps, around, spread, False, (0,) * n, groups)


_NAMES = ("depth", "height", "width")  # of the dimensions of an image, as PyTorch says them


def _conv_transpose(
    n: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Ints | int,
    padding: Ints | int,
    output_padding: Ints | int,
    groups: int,
    dilation: Ints | int,
) -> Any:
    given = {
        "stride": stride,
        "padding": padding,
        "dilation": dilation,
        "output_padding": output_padding,
    }
    batched, (steps, around, spread, extra) = _checked(
        n, f"conv_transpose{n}d", input, weight, bias, groups, True, given
    )
    if any(d <= 0 for d in spread):
        sizes = spread if n > 1 else (1, *spread)
        words = (
            f"dilation_{name}: {d}" for name, d in zip(_NAMES[-len(sizes) :], sizes, strict=True)
        )
        said = "" if min(spread) < 0 else f", but got {', '.join(words)}"
        raise RuntimeError("dilation should be greater than zero" + said)
    for e, s, d in zip(extra, steps, spread, strict=True):
        if e >= s and e >= d:
            raise RuntimeError(
                "output padding must be smaller than either stride or dilation, but got "
                + _output_padding_words(extra, steps, spread)
            )
    _check_filled(input, n)
    x = input if batched else input.unsqueeze(0)
    return _convolved(batched, x, weight, bias, steps, around, spread, True, extra, groups)


def _output_padding_words(extra: Ints, steps: Ints, spread: Ints) -> str:
    names = _NAMES[-max(len(extra), 2) :]
    values = [(0, *extra), (1, *steps), (1, *spread)] if len(extra) == 1 else [extra, steps, spread]
    kinds = ("output_padding", "stride", "dilation")
    return " ".join(
        f"{kind}_{name}: {v}"
        for kind, group in zip(kinds, values, strict=True)
        for name, v in zip(names, group, strict=True)
    )


_OPERANDS = "Tensor input, Tensor weight, Tensor? bias=None, int[{n}] stride=1"
_KERNEL = {"size": ("5", "5,5", "5,5,5"), "kernel": ("2", "2,2", "2,2,2")}
of_dimensions(
    *(
        f"conv{{n}}d({_OPERANDS}, {padding}, int[{{n}}] dilation=1, int groups=1)"
        for padding in ("int[{n}] padding=0", "str padding='valid'")
    ),
    body=_conv,
    doc="Cross-correlation of images of {n} dimension{s} with a kernel.",
    aliases="conv{n}d",
    primitives={2: convolution},
    words=_KERNEL,
    samples=[
        "(randn(2,3,{size}), randn(4,3,{kernel}), randn(4))",
        "(randn(2,3,{size}), randn(4,3,{kernel}), randn(4), stride=2, padding=1)",
    ],
)
of_dimensions(
    f"conv_transpose{{n}}d({_OPERANDS}, int[{{n}}] padding=0, int[{{n}}] output_padding=0, "
    "int groups=1, int[{n}] dilation=1)",
    body=_conv_transpose,
    doc="The transpose of conv{n}d as a linear map.",
    aliases="conv_transpose{n}d",
    primitives={2: convolution},
    words=_KERNEL,
    samples=[
        "(randn(2,3,{size}), randn(3,4,{kernel}), randn(4))",
        "(randn(2,3,{size}), randn(3,4,{kernel}), randn(4), stride=2, padding=1)",
    ],
)


# -- columns --------------------------------------------------------------------------------------
def _columns_of(x: Array, how: Windows) -> Array:
    view = np.moveaxis(
        how.of(padded(x, how.padding)), (-2, -1), (-4, -3)
    )  # channels, kernel, outputs
    batch, channels = x.shape[:2]
    return view.reshape(batch, channels * prod(how.kernel), prod(view.shape[-2:]))


def _image_of(columns: Array, size: Sizes, how: Windows) -> Array:
    channels = columns.shape[1] // prod(how.kernel)
    parts = columns.reshape(columns.shape[0], channels, *how.kernel, *how.outputs(size))
    return how.overlaid(parts, size)


@primitive("linear", node="Im2ColBackward0", batching="images 4")
class im2col:
    def forward(
        self: Array, kernel_size: Shape, dilation: Ints, padding: Ints, stride: Ints
    ) -> Array:
        implemented("im2col_out_cpu", self, "efdFD?")
        images = self[None] if self.ndim == 3 else self
        columns = _columns_of(images, Windows(kernel_size, dilation, padding, stride))
        if prod(kernel_size) == 1:
            columns = columns.copy()  # which were a view of the images
        return columns[0] if self.ndim == 3 else columns

    self = (
        lambda g, self_sym_argsize_minus_2, self_sym_argsize_minus_1, kernel_size, dilation, padding, stride: (  # noqa: E501
            col2im(
                g,
                (self_sym_argsize_minus_2, self_sym_argsize_minus_1),
                kernel_size,
                dilation,
                padding,
                stride,
            )
        )
    )


@primitive("linear", node="Col2ImBackward0", batching="images 3")
class col2im:
    def forward(
        self: Array,
        output_size: Shape,
        kernel_size: Shape,
        dilation: Ints,
        padding: Ints,
        stride: Ints,
    ) -> Array:
        implemented("col2im_out_cpu", self, "efdFD?")
        how = Windows(kernel_size, dilation, padding, stride)
        if self.ndim == 2:
            return _image_of(self[None], output_size, how)[0]
        return _image_of(self, output_size, how)

    self = im2col


@function(
    "nn.functional.unfold(Tensor input, Any kernel_size, Any dilation=1, Any padding=0, "
    "Any stride=1)|python -> im2col",
    primitives=[im2col],
    samples="(randn(2,3,4,4), (2,2))",
)
def unfold(input: Tensor, *how: Any) -> Any:
    """The blocks of an image as columns."""
    return _as_columns(input, *map(_pair, how))


def _pair(value: Ints | int) -> Any:
    """As PyTorch's Python: a sequence, or one value twice."""
    return tuple(value) if isinstance(value, Iterable) else (value, value)


_HOW_NAMED = ("kernel_size", "dilation", "padding", "stride")


def _check_how(*how: Any) -> None:
    """Whether blocks of an image can be taken so: kernel size, dilation, padding and stride."""
    named = ("kernel size", "kernel"), ("dilation",) * 2, ("padding", "pad"), ("stride",) * 2
    for (what, short), (height, width) in zip(named, how, strict=True):
        least, words = (0, "non-negative") if short == "pad" else (1, "greater than zero")
        if min(height, width) < least:
            raise RuntimeError(
                f"{what} should be {words}, but got {short}_height: {height} {short}_width: {width}"
            )


def _check_pairs(**sizes: Any) -> None:
    """Whether each has two numbers: the binder makes a pair of one int, and takes sequences as they are."""
    for name, pair in sizes.items():
        if len(pair) != 2:
            raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(pair)}")


def _as_columns_of(input: Tensor, *how: Any) -> Any:
    _check_pairs(**dict(zip(_HOW_NAMED, how, strict=True)))
    _check_how(*how)
    if input.ndim not in (3, 4):
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {list(input.shape)}"
        )
    if min(Windows(*how).outputs(input.shape[-2:])) < 1:
        raise RuntimeError(
            f"Given input with spatial size ({input.shape[-2]}, {input.shape[-1]}), kernel_size="
            f"({how[0][0]}, {how[0][1]}), dilation=({how[1][0]}, {how[1][1]}), padding="
            f"({how[2][0]}, {how[2][1]}), calculated shape of the array of sliding blocks as "
            f"({', '.join(map(str, Windows(*how).outputs(input.shape[-2:])))}), but its components must be "
            "at least one."
        )
    return im2col(input, *how)


_HOW = "int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride)"
_as_columns = Parser((f"im2col(Tensor input, {_HOW}",), _as_columns_of).function()


@function(
    "nn.functional.fold(Tensor input, Any output_size, Any kernel_size, Any dilation=1, Any padding=0, "
    "Any stride=1)|python -> col2im",
    primitives=[col2im],
    samples="(randn(2,12,9), (4,4), (2,2))",
)
def fold(input: Tensor, *sizes: Any) -> Any:
    """Columns summed into the image whose blocks they are."""
    return _as_image(input, *map(_pair, sizes))


def _as_image_of(input: Tensor, size: Shape, *how: Any) -> Any:
    _check_pairs(output_size=size, **dict(zip(_HOW_NAMED, how, strict=True)))
    _check_how(*how)
    if input.ndim not in (2, 3):
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero "
            f"dimensions for input, but got: {list(input.shape)}"
        )
    if input.shape[-2] % prod(how[0]):
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but "
            f"got input.size(1)={input.shape[-2]} and kernel_size=({how[0][0]}, {how[0][1]})."
        )
    blocks = Windows(*how).outputs(size)
    if input.shape[-1] != prod(blocks):
        raise RuntimeError(
            f"Given output_size=({size[0]}, {size[1]}), kernel_size=({how[0][0]}, {how[0][1]}), "
            f"dilation=({how[1][0]}, {how[1][1]}), padding=({how[2][0]}, {how[2][1]}), stride=({how[3][0]}, "
            f"{how[3][1]}), expected size of input's dimension 2 to match the calculated number of sliding "
            f"blocks {blocks[0]} * {blocks[1]} = {prod(blocks)}, but got input.size(2)={input.shape[-1]}."
        )
    return col2im(input, size, *how)


_as_image = Parser((f"col2im(Tensor input, int[2] output_size, {_HOW}",), _as_image_of).function()
