"""Convolutions by runs of places: the same as by their definition, for all ways in which images are cut."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.engine.system import threads
from gradcli.operators.nn import convolution

# sizes, kernel, dilation, padding, images, bytes of a block
CASES = [
    ((7, 6), (3, 3), (1, 1), (1, 1), 5, 1 << 20),  # all images in one run
    ((7, 6), (3, 3), (1, 1), (1, 1), 5, 3000),  # a group of images for each turn
    ((40, 6), (3, 3), (1, 1), (1, 1), 2, 3000),  # an image in several runs
    ((40, 6), (3, 1), (4, 1), (8, 0), 2, 3000),  # windows reach over more than a run
    ((9, 9), (2, 3), (1, 2), (0, 4), 3, 1 << 12),
    ((9, 9), (1, 1), (1, 1), (0, 0), 3, 1 << 12),
    ((30,), (5,), (2,), (8,), 3, 1 << 9),
    ((5, 4, 6), (3, 2, 3), (1, 1, 1), (1, 1, 2), 3, 1 << 12),
]


def by_definition(x: Any, w: Any, how: convolution.Windows) -> Any:
    view = how.of(convolution.padded(x, how.padding))
    n = len(how.kernel)
    return np.moveaxis(
        np.tensordot(view, w, ([1, *range(2 + n, 2 + 2 * n)], range(1, 2 + n))), -1, 1
    )


@pytest.mark.parametrize("case", CASES, ids=str)
def test_runs_have_the_values_of_the_definition(case: Any, monkeypatch: Any) -> None:
    size, kernel, dilation, padding, batch, block = case
    monkeypatch.setattr(convolution, "_BLOCK", block)
    monkeypatch.setattr(convolution, "_SHARED", 1)  # on as many threads as there are
    g = np.random.default_rng(0)
    x, w = g.standard_normal((batch, 3, *size)), g.standard_normal((4, 3, *kernel))
    how = convolution.Windows(kernel, dilation, padding, (1,) * len(size))
    flat = convolution._Flat(how, size, batch)
    wanted = by_definition(x, w, how)
    np.testing.assert_allclose(flat.forward(x, w), wanted, rtol=1e-12, atol=1e-12)
    slope = g.standard_normal(wanted.shape)
    found = flat.slopes(slope, w, x)
    with threads.multiplying_alone():  # no others share the work
        assert all(map(np.array_equal, found, flat.slopes(slope, w, x)))
    # The convolution is linear in each: <slope, conv(dx, w)> = <g_input, dx>.
    dx, dw = g.standard_normal(x.shape), g.standard_normal(w.shape)
    np.testing.assert_allclose((found[0] * dx).sum(), (slope * by_definition(dx, w, how)).sum())
    np.testing.assert_allclose((found[1] * dw).sum(), (slope * by_definition(x, dw, how)).sum())


def test_borders_that_no_window_needs_are_left_to_the_plain_way() -> None:
    x = np.ones((1, 1, 4, 4))
    for k, p in product((1, 2, 3), (0, 1, 2, 3)):
        how = convolution.Windows((k, k), (1, 1), (p, p), (1, 1))
        flat = convolution._Flat.of(x, how, (4, 4), 1)
        assert flat is None or p < k


# -- elements that are not finite ----------------------------------------------------------------------
def elements_of_windows(outputs: Any, kernel: Any, how: Any) -> Any:
    """(offset in its window, window, place on the image) of each element of each window."""
    stride, padding, dilation = how
    for offset, output in product(np.ndindex(*kernel), np.ndindex(*outputs)):
        yield (
            offset,
            output,
            tuple(o * stride + i * dilation - padding for i, o in zip(offset, output, strict=True)),
        )


def sums_over_windows(x: Any, w: Any, g: Any, transposed: bool, groups: int, how: Any) -> Any:
    """(result, gradients of x and of w), each the sum of its products; what is padded is zero."""
    image, places = (g, x) if transposed else (x, g)  # windows lie on the image
    own, per = len(w) // groups, w.shape[1]
    y, g_x, g_w = np.zeros_like(g), np.zeros_like(x), np.zeros_like(w)
    for offset, output, place in elements_of_windows(places.shape[2:], w.shape[2:], how):
        inside = all(0 <= i < m for i, m in zip(place, image.shape[2:], strict=True))
        for k in range(groups):
            many, few = slice(k * own, (k + 1) * own), slice(k * per, (k + 1) * per)
            at, on = (slice(None), many, *output), (slice(None), few, *place)
            kernel = w[(many, slice(None), *offset)]
            seen = image[on] if inside else np.zeros((len(x), per))
            g_w[(many, slice(None), *offset)] += (places[at][:, :, None] * seen[:, None]).sum(0)
            inward = (seen[:, None] * kernel).sum(2)  # along the convolution
            if transposed:
                g_x[at] += inward
            else:
                y[at] += inward
            if inside:
                outward = (places[at][:, :, None] * kernel).sum(1)
                (y if transposed else g_x)[on] += outward
    return y, g_x, g_w


def convolved(x: Any, w: Any, g: Any, n: int, transposed: bool, how: Any) -> Any:
    stride, padding, dilation, groups = how
    call = getattr(gradcli.nn.functional, f"conv{'_transpose' if transposed else ''}{n}d")
    own, kernel = (gradcli.tensor(v, requires_grad=True) for v in (x, w))
    y = call(own, kernel, stride=stride, padding=padding, dilation=dilation, groups=groups)
    y.backward(gradcli.tensor(g))
    return y.detach(), own.grad, kernel.grad


# dimensions, whether transposed, (stride, padding, dilation, groups)
NOT_FINITE = [
    (n, transposed, how)
    for n in (1, 2, 3)
    for transposed in (False, True)
    for how in [(1, 0, 1, 1), (1, 1, 1, 1), (2, 1, 1, 1), (1, 2, 2, 2), (2, 0, 2, 1)]
]


@pytest.mark.long
@pytest.mark.parametrize("case", NOT_FINITE, ids=str)
def test_what_is_not_finite_goes_where_the_definition_takes_it(case: Any) -> None:
    every_place_of(case[0], case[1], case[2], (1, 3, 31)[case[0] - 1])


@pytest.mark.parametrize("case", [(1, False, (1, 1, 1, 1)), (1, True, (1, 1, 1, 1))], ids=str)
def test_an_infinite_weight_and_an_edge_that_is_nan_spoil_no_other_gradient(case: Any) -> None:
    every_place_of(case[0], case[1], case[2], 9)


def every_place_of(n: int, transposed: bool, how: Any, step: int) -> None:
    """Compare with the sums, one element at a time not finite: every `step`-th of each operand."""
    random = np.random.default_rng(n)
    stride, padding, dilation, groups = how
    size: Any = ((5,), (4, 5), (3, 4, 4))[n - 1]
    kernel: Any = ((3,), (2, 3), (1, 2, 2))[n - 1]
    windows = convolution.Windows(kernel, (dilation,) * n, (padding,) * n, (stride,) * n)
    outputs = windows.outputs(size)  # a transposed convolution goes from these to the image
    if transposed:
        size = tuple(
            (o - 1) * stride - 2 * padding + dilation * (k - 1) + 1
            for o, k in zip(outputs, kernel, strict=True)
        )
    wide, narrow = (2, 2 * groups, *size), (2, 2 * groups, *outputs)
    shapes = [narrow, wide] if transposed else [wide, narrow]
    given = [random.standard_normal(s) for s in (shapes[0], (2 * groups, 2, *kernel), shapes[1])]
    for which, plain in enumerate(given):
        for k in range(0, plain.size, step):
            x, w, g = operands = [v.copy() for v in given]
            operands[which].flat[k] = (np.inf, np.nan, -np.inf)[k % 3]
            with np.errstate(invalid="ignore"):
                wanted = sums_over_windows(x, w, g, transposed, groups, how[:3])
            for own, other in zip(convolved(x, w, g, n, transposed, how), wanted, strict=True):
                np.testing.assert_allclose(own, other, rtol=1e-10, atol=1e-12)


def test_a_compiled_program_has_the_tapes_bits_and_leaves_out_the_images_gradient() -> None:
    g = np.random.default_rng(0)
    x, w = g.standard_normal((2, 2, 5, 5)), g.standard_normal((3, 2, 3, 3))

    def loss(w: Any) -> Any:
        return gradcli.nn.functional.conv2d(gradcli.tensor(x), w, padding=1).tanh().sum()

    f = gradcli.compile(loss)
    _, grads = f.value_and_grad(w)
    kernel = gradcli.tensor(w, requires_grad=True)
    loss(kernel).backward()
    assert np.array_equal(grads["w"], kernel.grad.numpy())


@pytest.mark.parametrize(
    ("wanted", "computed"),
    [("w", (False, True)), ("x", (True, False)), ("xw", (True, True))],
)
@pytest.mark.parametrize("create", [False, True], ids=["plain", "recorded"])
def test_a_gradient_that_nobody_asks_for_is_not_computed(
    wanted: str, computed: Any, create: bool, monkeypatch: Any
) -> None:
    asked: list[Any] = []
    own = convolution._both_gradients
    monkeypatch.setattr(
        convolution, "_both_gradients", lambda *given: asked.append(given[-1]) or own(*given)
    )
    leaves = {
        "x": gradcli.ones(1, 1, 3, 3, requires_grad=True),
        "w": gradcli.ones(1, 1, 2, 2, requires_grad=True),
    }
    y = gradcli.nn.functional.conv2d(leaves["x"], leaves["w"]).sum()
    gradcli.autograd.grad(y, [leaves[name] for name in wanted], create_graph=create)
    assert asked == [computed]
