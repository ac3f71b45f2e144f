"""Symbolic rules of neural layers: convolutions, average pooling, embeddings, windows, losses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradcli.formulas.algebra import algebra as alg
from gradcli.formulas.algebra.algebra import full
from gradcli.formulas.algebra.array_algebra import in_full, permuted, reshaped
from gradcli.formulas.algebra.exact_numbers import ONE, Number
from gradcli.formulas.algebra.expressions import Expression, array, call, is_number, number
from gradcli.formulas.algebra.spelling import no_expression, shape_of
from gradcli.formulas.lift.rule_interface import Handler, Lifter
from gradcli.transforms.tracing.calls import Call

Shape = tuple[int, ...]
Sizes = tuple[int, ...]


# -- convolutions ---------------------------------------------------------------------------------
def _options(**given: Any) -> list[tuple[str, Any]]:
    """The options that differ from their defaults; one number if it is the same in all dimensions."""
    found = []
    for key, value in given.items():
        if key == "groups":
            if value != 1:
                found.append((key, value))
            continue
        sizes = tuple(value)
        if any(v != (1 if key in ("stride", "dilation") else 0) for v in sizes):
            found.append((key, sizes[0] if len(set(sizes)) == 1 else sizes))
    return found


def _convolved(word: str, operands: list[Expression], shape: Shape, options: Any) -> Expression:
    outer: list[Any] = []
    plain = []
    for own in operands[:2]:
        scales, own = alg.scalars_out_of_floats(own)
        outer += scales
        plain.append(own)
    if len(operands) > 2:
        return call(word, operands, shape, options)
    made = call(word, plain, shape, options)
    return alg.product([*outer, (made, ONE)]) if outer else made


def _convolution(lifter: Lifter, made: Call, args: list[Any]) -> Expression:
    own, weight, bias, stride, padding, dilation, transposed, extra, groups = args
    n = len(stride)
    operands = [full(v, shape_of(g)) for v, g in zip((own, weight), made.args[:2], strict=True)]
    if isinstance(bias, Expression):
        operands.append(full(bias, shape_of(made.args[2])))
    how = {"stride": stride, "padding": padding}
    if transposed:
        how["output_padding"] = extra
    options = _options(**how, dilation=dilation, groups=groups)
    word = f"conv_transpose{n}d" if transposed else f"conv{n}d"
    return _convolved(word, operands, made.outputs[0].shape, options)


def _swapped(own: Expression) -> Expression:
    """The expression with batch and channels exchanged."""
    order = [1, 0, *range(2, len(own.shape))]
    return permuted(own, own.shape, order)


def _convolution_slopes(lifter: Lifter, made: Call, args: list[Any]) -> list[Expression]:
    """Gradients of a convolution: a transposed one for the input, one of input and `g` for the weight."""
    g, own, weight = (full(v, shape_of(x)) for v, x in zip(args[:3], made.args[:3], strict=True))
    if 0 in (*g.shape, *own.shape, *weight.shape):
        return [alg.zero, alg.zero]  # empty sums, for which torch's convolution has another shape
    # The gradient of y = conv(x, w) by x is the transposed convolution of g with w. Sizes are lost on the
    # way down: with stride 2, inputs of 7 and 8 give as many outputs. `left` says how many elements the
    # kernel did not reach, and `output_padding` puts them back.
    stride, padding, dilation, transposed, _, groups = args[3:9]
    n, kernel = len(stride), weight.shape[2:]
    wide, narrow = (g, own) if transposed else (own, g)
    left = tuple(
        (size + 2 * p - d * (k - 1) - 1) % s
        for size, p, d, k, s in zip(wide.shape[2:], padding, dilation, kernel, stride, strict=True)
    )
    how = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    if transposed:
        first = _convolved(f"conv{n}d", [g, weight], own.shape, _options(**how))
    else:
        how = {"stride": stride, "padding": padding, "output_padding": left, **how}
        first = _convolved(f"conv_transpose{n}d", [g, weight], own.shape, _options(**how))
    parts = [
        _kernel_slope(_group(wide, k, groups), _group(narrow, k, groups), kernel, left, args)
        for k in range(groups)
    ]
    second = parts[0]
    if groups > 1:
        second = call("cat", [call("[]", parts, ())], weight.shape)
    return [first, second]


def _group(own: Expression, k: int, groups: int) -> Expression:
    """The channels of one group."""
    size = own.shape[1] // groups
    return own if groups == 1 else _cut(own, 1, k * size, (k + 1) * size)


def _cut(own: Expression, dim: int, start: int, end: int) -> Expression:
    shape = (*own.shape[:dim], end - start, *own.shape[dim + 1 :])
    return call("slice", [own], shape, [("", dim), ("", start), ("", end), ("", 1)])


def _kernel_slope(
    wide: Expression, narrow: Expression, kernel: Sizes, left: Sizes, args: list[Any]
) -> Expression:
    stride, padding, dilation = args[3:6]
    # dL/dw[o, i, k] is the sum over the batch and the places p of g[n, o, p]*x[n, i, s*p + d*k]: a
    # convolution of x with g in which batch and channels, and stride and dilation, change places. It may
    # give a few elements more than the kernel has (as many as `left` elements fill), which are cut off.
    sizes = tuple(k + r // d for k, r, d in zip(kernel, left, dilation, strict=True))
    found = _convolved(
        f"conv{len(kernel)}d",
        [_swapped(wide), _swapped(narrow)],
        (wide.shape[1], narrow.shape[1], *sizes),
        _options(stride=dilation, padding=padding, dilation=stride),
    )
    for dim, (k, size) in enumerate(zip(kernel, sizes, strict=True), 2):
        found = found if k == size else _cut(found, dim, 0, k)
    return _swapped(found)


# -- averages over windows ------------------------------------------------------------------------
def _average(lifter: Lifter, made: Call, args: list[Any]) -> Expression:
    own, kernel, stride, padding, ceil_mode, count_include_pad, divisor = args
    n, shape = len(kernel), tuple(made.outputs[0].shape)
    whole = made.outputs[0].value.dtype.kind in "iu"
    scales, own = alg.scalars_out_of_floats(full(own, shape_of(made.args[0])))
    stride = tuple(stride) or tuple(kernel)
    flat = n == 2 and kernel[0] == stride[0] == shape[-2] == own.shape[-2] == 1 and not padding[0]
    if flat:
        own, n = reshaped(own, (*own.shape[:-2], own.shape[-1])), 1
        kernel, stride, padding = kernel[1:], stride[1:], padding[1:]
    size = kernel[0] if len(set(kernel)) == 1 else tuple(kernel)
    options: list[tuple[str, Any]] = [("", size)]
    if stride != tuple(kernel):
        options.append(("stride", stride[0] if len(set(stride)) == 1 else stride))
    options += _options(padding=padding)
    given = (("ceil_mode", ceil_mode, False), ("count_include_pad", count_include_pad, True))
    options += [(k, v) for k, v, default in given if v != default]
    options += [("divisor_override", divisor)] if divisor else []
    inner = (*shape[:-2], shape[-1]) if flat else shape
    found = reshaped(call(f"nn.functional.avg_pool{n}d", [own], inner, options), shape)
    if whole:  # integers have integer averages
        return alg.function("trunc", alg.product([*scales, (found, ONE)]))
    return alg.product([*scales, (found, ONE)])


def _average_slope(lifter: Lifter, made: Call, args: list[Any]) -> Expression:
    """The gradient of average pooling: kron(g, ones(2, 2))/4 if windows do not overlap."""
    g, _, kernel, stride, padding, ceil_mode, count_include_pad, divisor = args
    shape: Shape = tuple(made.outputs[0].shape)
    n = len(kernel)
    stride = tuple(stride) or tuple(kernel)
    if ceil_mode or (any(padding) and not count_include_pad):
        raise no_expression(made)
    if is_number(g, 0):
        return alg.zero
    scales, g = alg.scalars_out_of_floats(full(g, shape_of(made.args[0])))
    share = Number.of(1) if not divisor else Number.of(divisor)
    scales.append((number(share if divisor else math.prod(kernel)), Number.of(-1)))
    flat = n == 2 and kernel[0] == stride[0] == shape[-2] == 1 and not padding[0]
    if flat:  # one dimension, as avg_pool1d has it
        g, n = reshaped(g, (*g.shape[:-2], g.shape[-1])), 1
        kernel, stride, padding = kernel[1:], stride[1:], padding[1:]
    inner = (*shape[:-2], shape[-1]) if flat else shape
    apart = stride == tuple(kernel) and not any(padding)
    if apart and all(size % k == 0 for size, k in zip(inner[-n:], kernel, strict=True)):
        ones = call("ones", [], tuple(kernel), [("", tuple(kernel))])
        spread = call("kron", [g, ones], inner)
    else:
        spread = _spread(g, inner, n, kernel, stride, padding)
    return alg.product([*scales, (reshaped(spread, shape), ONE)])


def _spread(
    g: Expression, shape: Shape, n: int, kernel: Sizes, stride: Sizes, padding: Sizes
) -> Expression:
    left = [
        (size + 2 * p - k) % s
        for size, p, k, s in zip(shape[-n:], padding, kernel, stride, strict=True)
    ]
    channels = shape[-n - 1]
    ones = call("ones", [], (channels, 1, *kernel), [("", (channels, 1, *kernel))])
    options = _options(stride=stride, padding=padding, output_padding=left, groups=channels)
    return call(f"conv_transpose{n}d", [g, ones], shape, options)


# -- embeddings ----------------------------------------------------------------------
def _embedding(lifter: Lifter, made: Call, args: list[Any]) -> Expression:
    own = in_full(args[0], made.args[0])
    index = lifter.whole(args[1], made.args[1])
    return call("index", [own, index], made.outputs[0].shape)


def _embedding_slope(lifter: Lifter, made: Call, args: list[Any]) -> Expression:
    """index_add(zeros(n, d), 0, k, g): the gradient of the embedding table."""
    g, indices, _, padding, by_frequency = args
    places = made.args[1]
    known = np.asarray(getattr(places, "value", getattr(places, "array", places)))
    constant = getattr(places, "constant", True)
    if by_frequency or (padding >= 0 and not (constant and (known != padding).all())):
        raise no_expression(made)
    shape: Shape = tuple(made.outputs[0].shape)
    scales, g = alg.scalars_out_of_floats(full(g, shape_of(made.args[0])))
    index = reshaped(lifter.whole(indices, places), (known.size,))
    rows = reshaped(g, (known.size, shape[1]))
    zeros = call("zeros", [], shape, [("", shape)])
    placed = [("@", 0), ("", 0), ("@", 1), ("@", 2)]
    found = call("index_add", [zeros, index, rows], shape, placed)
    return alg.product([*scales, (found, ONE)])


# -- windows --------------------------------------------------------------------------------------
MOST_PLACES = 100  # numbers that are written out


def _windows_slope(lifter: Lifter, made: Call, args: list[Any]) -> Expression:
    """index_add(zeros(n), 0, k, g): each element sums the gradients of the windows it is in."""
    g, _, dim, size, step = args
    shape, given = tuple(made.outputs[0].shape), shape_of(made.args[0])
    if not shape:
        raise no_expression(made)
    dim %= len(shape)
    places = np.add.outer(np.arange(given[dim]) * step, np.arange(size)).reshape(-1)
    if places.size > MOST_PLACES:
        raise no_expression(made)
    if not places.size:
        return alg.zero
    scales, g = alg.scalars_out_of_floats(full(g, given))
    last = len(given) - 1
    rows = permuted(g, given, [*range(dim + 1), last, *range(dim + 1, last)])
    rows = reshaped(rows, (*shape[:dim], places.size, *shape[dim + 1 :]))
    zeros = call("zeros", [], shape, [("", shape)])
    placed = [("@", 0), ("", dim), ("@", 1), ("@", 2)]
    found = call("index_add", [zeros, array(places), rows], shape, placed)
    return alg.product([*scales, (found, ONE)])


# -- losses ---------------------------------------------------------------------------------------
def _binary(lifter: Lifter, made: Call, args: list[Any]) -> Expression:
    given = [(a, g) for a, g in zip(args[:3], made.args[:3], strict=True) if g is not None]
    options = [] if args[3] == 1 else [("reduction", ("none", "mean", "sum")[args[3]])]
    operands = [full(a, shape_of(g)) for a, g in given]
    return call("nn.functional.binary_cross_entropy", operands, made.outputs[0].shape, options)


def _binary_slope(lifter: Lifter, made: Call, args: list[Any]) -> Expression:
    """g*(p - t)/(p*(1 - p)), without the clamp that keeps the denominator from being 0."""
    g, own, target, weight, reduction = args
    found = alg.multiply(
        g,
        alg.subtract(own, target),
        alg.divide(alg.one, alg.multiply(own, alg.subtract(alg.one, own))),
    )
    if weight is not None:
        found = alg.multiply(found, weight)
    size = math.prod(shape_of(made.args[1]))
    return alg.divide(found, number(size)) if reduction == 1 and size else found


LAYER_RULES: dict[str, Handler] = {
    "a convolution": _convolution,
    "slopes of a convolution": _convolution_slopes,
    "average pooling": _average,
    "embedding of rows": _embedding,
    "binary_cross_entropy": _binary,
    "slope of binary_cross_entropy": _binary_slope,
    "slope of average pooling": _average_slope,
    "slope of embedding": _embedding_slope,
    "slope of windows": _windows_slope,
}
__all__ = ["LAYER_RULES"]
