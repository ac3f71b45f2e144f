"""Symbolic rules that are more than a call of the public function or a formula."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from typing import Any

import numpy as np

from gradcli.formulas.algebra import algebra as alg
from gradcli.formulas.algebra.algebra import full, function
from gradcli.formulas.algebra.array_algebra import (
    axes_of,
    in_full,
    inverse,
    matrix_product,
    of_dtype,
    permuted,
    reshaped,
    summed,
    total,
    transposed,
    unit,
    unwrapped,
    vector_of,
)
from gradcli.formulas.algebra.constants import as_exact
from gradcli.formulas.algebra.exact_numbers import MINUS_ONE, ONE, Number
from gradcli.formulas.algebra.expressions import (
    Expression,
    array,
    call,
    is_call,
    is_number,
    number,
    order,
)
from gradcli.formulas.algebra.spelling import NoExpression, chosen, no_expression, shape_of
from gradcli.formulas.lift import formulas
from gradcli.formulas.lift.elementwise_rules import ELEMENTWISE_RULES
from gradcli.formulas.lift.layer_rules import LAYER_RULES
from gradcli.formulas.lift.rule_interface import Handler, Lifter
from gradcli.transforms.tracing.calls import Call, Value


def _sum(lifter: Lifter, made: Call, args: list[Any]) -> Expression:
    shape = shape_of(made.args[0])
    dim, keepdim = (args[1], args[2]) if "dim" in made.primitive.names else (None, False)
    # sum(x[x > 0]) as sum(where(x > 0, x, 0)): the first has as many terms as the values decide.
    masked = _masked(lifter, made.args[0], axes_of(dim, len(shape)))
    if masked is not None:
        return reshaped(total(*masked, False), made.outputs[0].shape)
    return total(args[0], shape, dim, keepdim)


def _masked(
    lifter: Lifter, summed: Any, axes: tuple[int, ...]
) -> tuple[Expression, tuple[int, ...], tuple[int, ...]] | None:
    """(expression, its shape, axes) for a sum over masked elements, with zeros for those left out.

    The number of selected elements depends on the values, so it must not be used. None for other sums.
    """
    picked = getattr(summed, "call", None)
    if picked is None or 0 not in axes:
        return None
    if picked.primitive.symbolic == "masked_select:":
        shape = np.broadcast_shapes(*map(shape_of, picked.args))
        own, mask = (lifter.operand(a) for a in picked.args)
        return alg.where(mask, own, alg.zero), shape, tuple(range(len(shape)))
    if picked.primitive.symbolic != "index" or len(picked.args[1]) != 1:
        return None
    own, (mask,) = picked.args
    shape, marked = shape_of(own), shape_of(mask)
    if mask is None or mask.value.dtype.kind != "b":
        return None
    rest = tuple(i - 1 + len(marked) for i in axes if i)
    condition = reshaped(
        lifter.whole(lifter.operand(mask), mask), marked + (1,) * (len(shape) - len(marked))
    )
    chosen = alg.where(condition, lifter.operand(own), alg.zero)
    return chosen, shape, (*range(len(marked)), *rest)


def _mean(lifter: Lifter, made: Call, args: list[Any]) -> Expression:
    shape = shape_of(made.args[0])
    dim, keepdim = (args[1], args[2]) if "dim" in made.primitive.names else (None, False)
    outer, own = alg.scalars_out(args[0])
    axes = axes_of(dim, len(shape))
    if not own.shape and all(shape[i] for i in axes):  # the mean of nothing is nan
        return args[0]  # type: ignore[no-any-return]
    return alg.product([*outer, (summed(full(own, shape), axes, keepdim, "mean"), ONE)])


def _moment(word: str) -> Handler:
    def handle(lifter: Lifter, made: Call, args: list[Any]) -> Any:
        _, dim, correction, keepdim = args
        options: list[tuple[str, Any]] = []
        if dim is not None and shape_of(made.args[0]):
            options.append(("", dim))
        # 1 is what `var` takes by itself, and a text says no defaults.
        if correction not in (None, 1):
            options.append(("correction", correction))
        if keepdim:
            options.append(("keepdim", True))
        own = full(args[0], shape_of(made.args[0]))
        if len(made.outputs) == 1:
            return call(word, [own], made.outputs[0].shape, options)
        whole = call(word, [own], (), options)
        return [
            call("select", [whole], o.shape, [("", 0), ("", k)]) for k, o in enumerate(made.outputs)
        ]

    return handle


def _flip(lifter: Lifter, made: Call, args: list[Any]) -> Any:
    """`flip`; a scalar is unchanged, and so is what is flipped twice."""
    own, dims = args
    if is_call(own, "flip") and own.data[1][0][1] == dims:
        return own.args[0]
    return lifter.general("flip", made, args, "dims") if shape_of(made.args[0]) else args[0]


def _matmul(lifter: Lifter, made: Call, args: list[Any]) -> Expression:
    a, b = map(in_full, args, made.args)
    return matrix_product(a, b, made.outputs[0].shape)


def _dot(lifter: Lifter, made: Call, args: list[Any]) -> Expression:
    (a, b), shape = args, shape_of(made.args[0])
    # An operand may be a number that stands for equal elements, of which there is no dot product.
    if a.shape == b.shape == shape != (0,):
        return matrix_product(a, b, ())
    return total(alg.multiply(a, b), shape, None, False)


def _transpose(lifter: Lifter, made: Call, args: list[Any]) -> Expression:
    own, *dims = args
    shape = shape_of(made.args[0])
    ndim = len(shape)
    if ndim < 2 or not own.shape:
        return own  # type: ignore[no-any-return]
    order = list(range(ndim))
    if dims and isinstance(dims[0], (tuple, list)):
        order = [d % ndim for d in dims[0]]
    else:
        i, k = (d % ndim for d in dims) if dims else (0, 1)
        order[i], order[k] = order[k], order[i]
    return permuted(own, shape, order)


def _reshape(lifter: Lifter, made: Call, args: list[Any]) -> Expression:
    own, shape, after = args[0], shape_of(made.args[0]), tuple(made.outputs[0].shape)
    if not own.shape or math.prod(own.shape) == 1:
        return own if not own.shape else reshaped(own, (1,) * len(after))
    # A reshape that only adds or drops leading 1s is what broadcasting does without being asked.
    core = _core(shape)
    if core == _core(after):  # broadcasting adds leading dimensions
        return reshaped(own, own.shape[max(len(own.shape) - len(core), 0) :])
    return reshaped(in_full(own, made.args[0]), after)


def _core(shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape without leading dimensions of size 1."""
    return shape[next((i for i, n in enumerate(shape) if n != 1), len(shape)) :]


def _unsqueeze(lifter: Lifter, made: Call, args: list[Any]) -> Expression:
    own, dim = args
    shape = shape_of(made.args[0])
    if not own.shape:
        return own  # type: ignore[no-any-return]
    at = dim % (len(shape) + 1)
    lead = len(shape) - len(own.shape)
    if at <= lead:  # a dimension in front is broadcasting's
        return own  # type: ignore[no-any-return]
    at -= lead
    return reshaped(own, (*own.shape[:at], 1, *own.shape[at:]))


def _getitem(word: str) -> Handler:
    return lambda lifter, made, args: _part(made, args[0], made.outputs[0], word, *args[1:])


def _part(made: Call, own: Expression, output: Value, word: str, *where_: Any) -> Expression:
    """`select` or `slice` of the first operand of a call."""
    size = shape_of(made.args[0])[where_[0]] if own.shape else 0
    # What is read where something was just written is what was written: a program that fills x[0] and reads
    # it.
    if is_call(own, f"{word}_scatter") and [v for _, v in own.data[1]] == [*where_]:
        return unwrapped(own.args[1])  # what was written there
    if not own.shape or (word == "slice" and range(size)[slice(*where_[1:])] == range(size)):
        return own
    options = [("", w) for w in where_]
    return call(word, [in_full(own, made.args[0])], output.shape, options)


def _zeros(shape: Any) -> Expression:
    shape = tuple(int(n) for n in shape)
    return call("zeros", [], shape, [("", shape)])


def _scattered(word: str) -> Handler:
    """The rule of a gradient of a selection: zeros with the gradient written at the selected place."""

    def handle(lifter: Lifter, made: Call, args: list[Any]) -> Expression:
        g, sizes, *where_ = args
        if is_number(g, 0):
            return alg.zero
        outer, g = alg.scalars_out(g)
        kind = made.outputs[0].value.dtype
        # The gradient of x[2] is g times a unit vector: sums of such terms and products with them are
        # known.
        if word == "select_scatter" and kind.kind == "f":
            dim, place = where_
            units: list[Expression | None] = [None] * len(sizes)
            units[dim] = unit(place, sizes[dim])
            if (found := _at_units(g, units, tuple(sizes))) is not None:
                return alg.product([*outer, (found, ONE)])
        operand = full(g, shape_of(made.args[0]))
        if word == "slice_scatter" and (where_[2] is None or where_[2] >= sizes[where_[0]]):
            where_[2] = None
        given = zip(_SCATTER[word], where_, strict=True)
        options = [(n, w) for (n, defaults), w in given if w not in defaults]
        empty = of_dtype(_zeros(sizes), kind) if kind.kind == "c" else _zeros(sizes)
        made_ = call(word, [empty, operand], tuple(sizes), options)
        return alg.product([*outer, (made_, ONE)]) if outer else made_

    return handle


# The options with their defaults.
_SCATTER: dict[str, tuple[tuple[str, tuple[Any, ...]], ...]] = {
    "select_scatter": (("", ()), ("", ())),
    "slice_scatter": (("dim", ()), ("start", (0, None)), ("end", (None,)), ("step", (1,))),
    "diagonal_scatter": (("offset", (0,)), ("dim1", (0,)), ("dim2", (1,))),
}


def _at_units(
    value: Expression, units: Sequence[Expression | None], shape: tuple[int, ...]
) -> Expression | None:
    """A value at one place of zeros of at most two dimensions, as a product with unit vectors."""
    if len(shape) == 1 and units[0] is not None:
        return alg.multiply(value, units[0])
    if len(shape) != 2:
        return None
    given = [*units, None][:2]
    whole = None not in given
    outer = [full(value, (n,)) if u is None else u for u, n in zip(given, shape, strict=True)]
    made = call("outer", list(map(alg.floating, outer)), shape)
    return alg.multiply(value, made) if whole else made


def _index(lifter: Lifter, made: Call, args: list[Any]) -> Expression:
    own, indices = args
    parts = [
        call(":", [], ()) if i is None else lifter.whole(i, given)
        for i, given in zip(indices, made.args[1], strict=True)
    ]
    return call("index", [lifter.whole(own, made.args[0]), *parts], made.outputs[0].shape)


def _is_place(index: Any) -> bool:
    """Whether an index is an integer that counts from the front."""
    whole = not shape_of(index) and index.value.dtype.kind in "iu"
    return bool(whole and index.value >= 0)


def _index_put(lifter: Lifter, made: Call, args: list[Any]) -> Expression:
    own, indices, values, accumulate = args
    shape = shape_of(made.args[0])
    mask = made.args[1][0]
    # A write by a mask is `where`, whose derivatives and text are known.
    chosen_ = len(indices) == 1 and indices[0] is not None and mask.value.dtype.kind == "b"
    if chosen_ and shape_of(mask) == shape:
        before, value = as_exact(own), as_exact(values)
        if not shape:  # PyTorch has no index_put of a number
            if 0 in shape_of(made.args[2]):
                return before
            value = reshaped(value, ())
        if not value.shape:
            return alg.where(indices[0], alg.add(before, value) if accumulate else value, before)
    # The gradient of x[k] with a k that is a variable: a unit vector at k.
    if accumulate and is_number(own, 0) and all(i is None or _is_place(i) for i in made.args[1]):
        places = zip(made.args[1], shape, strict=False)
        units = [None if i is None else unit(lifter.operand(i), n) for i, n in places]
        if (found := _at_units(as_exact(values), units, shape)) is not None:
            return found
    if any(i is None for i in indices):
        raise NoExpression("the derivative of an index with `:` in it has no form as an expression")
    wholes = [lifter.whole(i, given) for i, given in zip(indices, made.args[1], strict=True)]
    tuple_ = call("()", wholes, ())
    given = lifter.whole(values, made.args[2])
    if made.outputs[0].value.dtype.kind in "fb":
        given = alg.floating(given)  # a whole number is taken, a tensor of integers is not
    operands = [full(own, shape), tuple_, given]
    options = [("", True)] if accumulate else []
    return call("index_put", operands, shape, options)


def _named(word: str, names: str | None = None) -> Handler:
    """The rule of a primitive that is a call of another function; names: its options."""
    return lambda lifter, made, args: lifter.general(word, made, args, names)


def _first(word: str, names: str = "") -> Handler:
    """The rule of a primitive with several outputs, of which the public function returns the first."""

    def handle(lifter: Lifter, made: Call, args: list[Any]) -> list[Expression]:
        operands = [
            in_full(v, g)
            for v, g, k in zip(args, made.args, made.primitive.kinds, strict=True)
            if k == "tensor"
        ]
        found = call(word, operands, made.outputs[0].shape, chosen(made.primitive, args, names))
        return [found, *(alg.zero for _ in made.outputs[1:])]

    return handle


def _one_hot(lifter: Lifter, made: Call, args: list[Any]) -> Expression:
    own = full(args[0], shape_of(made.args[0]), discrete=True)
    return call("one_hot", [own], made.outputs[0].shape, [("", args[1])])


def _dist(lifter: Lifter, made: Call, args: list[Any]) -> Any:
    """`dist`; the infinity norm is written out, since its gradient compares the same differences."""
    a, b, order = args
    if abs(order) != math.inf:
        return lifter.general("dist", made, args, "p")
    apart = full(alg.subtract(a, b), np.broadcast_shapes(a.shape, b.shape))
    return call("norm", [apart], (), [("", order)])


def _cholesky(lifter: Lifter, made: Call, args: list[Any]) -> Any:
    """`linalg.cholesky`, or `cholesky_ex` where the former would raise."""
    # The text must do what the program did, and linalg.cholesky raises where cholesky_ex only says so.
    if np.any(made.outputs[1].value):
        return lifter.general("linalg.cholesky_ex", made, args, "upper")
    return _first("linalg.cholesky", "upper -")(lifter, made, args)


def _softmax_backward(lifter: Lifter, made: Call, args: list[Any]) -> Expression:
    g, output, dim = args[:3]
    shape = made.outputs[0].shape
    weighted = alg.multiply(g, output)
    inner = total(weighted, shape, dim, True)
    return alg.multiply(output, alg.subtract(g, inner))


def _log_softmax_backward(lifter: Lifter, made: Call, args: list[Any]) -> Expression:
    g, output, dim = args[:3]
    inner = total(g, made.outputs[0].shape, dim, True)
    return alg.subtract(g, alg.multiply(function("exp", output), inner))


def _targets(lifter: Lifter, made: Call, own: Any, at: int) -> tuple[Expression, int]:
    """(the one-hot targets, with zeros for ignored ones; the number of targets that count)."""
    target, ignored = made.args[at], made.args[at + 3]
    if not isinstance(target, Value):
        raise no_expression(made)
    classes = np.asarray(target.value).astype(np.int64)
    counts = classes != ignored
    # Classes that are a variable have no table of ones that could be written out.
    if not target.constant:
        if len(shape_of(own)) not in (1, 2) or not counts.all():
            raise no_expression(made)
        size = shape_of(own)[-1]
        return call("one_hot", [lifter.operand(target)], shape_of(own), [("", size)]), counts.size
    chosen_ = np.zeros(shape_of(own))
    axis = 0 if chosen_.ndim == 1 else 1
    if classes.size:
        wide = classes.reshape(1) if chosen_.ndim == 1 else np.expand_dims(classes, axis)
        ones = counts.reshape(1) if chosen_.ndim == 1 else np.expand_dims(counts, axis)
        # An ignored class, as -100, is no place; its row of zeros leaves it out.
        np.put_along_axis(chosen_, np.where(ones, wide, 0), ones.astype(float), axis)
    return array(chosen_), int(counts.sum())


def _nll(lifter: Lifter, made: Call, args: list[Any]) -> list[Expression]:
    """`nll_loss`, and its second output: the total weight of the targets that count."""
    own, _, _, reduction, ignored = args
    _, count = _targets(lifter, made, made.args[0], 1)
    target, weight = made.args[1], made.args[2]
    classes = array(target.value) if target.constant else lifter.operand(target)
    total_: Expression = number(count if reduction else 0)
    if weight is not None:
        if count != np.size(target.value):
            raise no_expression(made)
        picked = _picked(lifter, weight, target)
        total_ = total(picked, picked.shape, None, False) if reduction else alg.zero
    options: list[tuple[str, Any]] = [] if ignored == -100 else [("ignore_index", ignored)]
    if reduction != 1:
        options.append(("reduction", "none" if reduction == 0 else "sum"))
    operands = [full(own, shape_of(made.args[0])), classes]
    if weight is not None:
        operands.append(full(lifter.operand(weight), shape_of(weight)))
    found = call("nn.functional.nll_loss", operands, made.outputs[0].shape, options)
    return [found, total_]


def _picked(lifter: Lifter, weight: Any, target: Any) -> Expression:
    """The weight of each target's class."""
    classes = array(target.value) if target.constant else lifter.operand(target)
    own = full(lifter.operand(weight), shape_of(weight))
    return call("index", [own, classes], shape_of(target))


def _nll_backward(lifter: Lifter, made: Call, args: list[Any]) -> Expression:
    g, shape = as_exact(args[0]), shape_of(made.args[1])
    ones, count = _targets(lifter, made, made.args[1], 2)
    weight, target = made.args[3], made.args[2]
    if weight is not None and (count != np.size(target.value) or len(shape) != 2):
        raise no_expression(made)
    if args[4] == 1:
        if not count:
            raise no_expression(made)
        g = alg.divide(g, number(count) if weight is None else args[6])
    if weight is not None:
        g = alg.multiply(g, _picked(lifter, weight, target))
    if g.shape and len(shape) > 1:
        g = reshaped(g, (shape[0], 1, *shape[2:]))
    return alg.negate(alg.multiply(g, ones))


def _norm(lifter: Lifter, made: Call, args: list[Any]) -> Expression:
    own, order, dim, keepdim = args[:4]
    if dim is not None and len(axes_of(dim, len(shape_of(made.args[0])))) == len(
        shape_of(made.args[0])
    ):
        dim, keepdim, shape = None, False, ()
    else:
        shape = made.outputs[0].shape
    word = "norm" if dim is None and not keepdim else "linalg.vector_norm"
    options: list[tuple[str, Any]] = [] if order == 2 else [("", order)]
    if dim is not None:
        options.append(("dim", dim[0] if isinstance(dim, (tuple, list)) and len(dim) == 1 else dim))
    if keepdim:
        options.append(("keepdim", True))
    own = full(own, shape_of(made.args[0]))
    return call(word, [own], shape, options)


def _inverse(lifter: Lifter, made: Call, args: list[Any]) -> list[Expression]:
    own = full(args[0], shape_of(made.args[0]))
    outer, own = alg.scalars_out_of_floats(own)
    found = inverse(own)
    inverted = [(b, MINUS_ONE if e == ONE else -e) for b, e in outer]  # type: ignore[operator]
    return [alg.product([*inverted, (found, ONE)]), alg.zero]


def _addmm(lifter: Lifter, made: Call, args: list[Any]) -> Expression:
    own, a, b, beta, alpha = args
    a, b = map(in_full, (a, b), made.args[1:3])
    product = matrix_product(a, b, made.outputs[0].shape)
    return alg.combine([(own, Number.of(beta)), (product, Number.of(alpha))])


def _unbind(lifter: Lifter, made: Call, args: list[Any]) -> list[Expression]:
    own, dim = args
    return [_part(made, own, o, "select", dim, k) for k, o in enumerate(made.outputs)]


def _split(lifter: Lifter, made: Call, args: list[Any]) -> list[Expression]:
    own, _, dim = args
    ends = [*accumulate(o.shape[dim] for o in made.outputs)]
    places = zip(made.outputs, [0, *ends], ends, strict=False)
    return [_part(made, own, o, "slice", dim, start, end, 1) for o, start, end in places]


def _cat(lifter: Lifter, made: Call, args: list[Any]) -> Any:
    """`cat`; what has no elements is no part, and of zeros alone there are zeros."""
    parts = [p for p in zip(args[0], made.args[0], strict=True) if 0 not in shape_of(p[1])]
    if all(is_number(own, 0) or is_call(own, "zeros") for own, _ in parts):
        return alg.zero
    return in_full(*parts[0]) if len(parts) == 1 else lifter.general("cat", made, args)


def _diag_embed(lifter: Lifter, made: Call, args: list[Any]) -> Any:
    own, *where_ = args
    shape = made.outputs[0].shape
    same = own.args[0] if is_call(own, "expand") else own
    if not same.shape and where_ == [0, -2, -1] and len(shape) == 2:
        return alg.multiply(same, call("eye", [], shape))
    return lifter.general("diag_embed", made, args)


def _solve(lifter: Lifter, made: Call, args: list[Any]) -> list[Any]:
    a, b = map(in_full, args[:2], made.args[:2])
    outer, b = alg.scalars_out_of_floats(b)
    # solve(A, eye) is inv(A), as which it cancels against A.
    if is_call(b, "eye"):
        found = transposed(inverse(a.args[0])) if is_call(a, "T") else inverse(a)
    else:
        options = [] if args[2] else [("left", False)]
        shape = made.outputs[0].shape
        column = vector_of(b) if args[2] and len(a.shape) == 2 and b.shape[1:] == (1,) else None
        if column is None:
            found = call("linalg.solve", [a, b], shape, options)
        else:
            found = reshaped(call("linalg.solve", [a, column], column.shape), shape)
    found = alg.product([*outer, (found, ONE)]) if outer else found
    return [found, *(alg.zero for _ in made.outputs[1:])]


def _pinv(lifter: Lifter, made: Call, args: list[Any]) -> Expression:
    own, *given = args
    options: list[tuple[str, Any]] = []
    for key, value in zip(("atol", "rtol"), given, strict=False):
        limit = as_exact(value) if value is not None else None
        if limit is not None:
            if limit.op != "number":
                raise no_expression(made)
            options.append((key, float(limit.data.python())))
    if given[2]:
        options.append(("hermitian", True))
    return call("linalg.pinv", [in_full(own, made.args[0])], made.outputs[0].shape, options)


def _diagonal(lifter: Lifter, made: Call, args: list[Any]) -> Any:
    """The diagonal; of a matrix, whose two dimensions are those that there are."""
    own, offset, dim1, dim2 = args
    if len(shape_of(made.args[0])) != 2 or offset or dim1 % 2 or not dim2 % 2:
        return lifter.general("diagonal", made, args)
    return call("diagonal", [in_full(own, made.args[0])], made.outputs[0].shape)


def _index_fill(lifter: Lifter, made: Call, args: list[Any]) -> Any:
    own, _, _, value = args
    shape = made.outputs[0].shape
    spots = made.args[2]
    n = math.isqrt(shape[0]) if len(shape) == 1 else 0
    square = n and n * n == shape[0] and is_number(own, 0)
    # Every (n + 1)-th element of a flattened n x n matrix is its diagonal, which the rule of trace fills.
    if square and np.array_equal(getattr(spots, "value", ()), np.arange(0, n * n, n + 1)):
        eye = call("reshape", [call("eye", [], (n, n))], shape, [("", shape)])
        return alg.multiply(as_exact(value), eye)  # the gradient of a trace
    if isinstance(value, float) and made.outputs[0].value.dtype.kind in "iu":
        args[3] = int(value)
    return lifter.general("index_fill", made, args)


# Functions whose result may not be contiguous.
_LAID = frozenset("expand expand_as T permute select slice diagonal".split())


def _view_as_complex(lifter: Lifter, made: Call, args: list[Any]) -> Expression:
    """`view_as_complex`, which needs pairs that are adjacent in memory: the operand is made contiguous."""
    own = _row_by_row(full(args[0], shape_of(made.args[0])))
    return call("view_as_complex", [own], made.outputs[0].shape)


def _row_by_row(own: Expression) -> Expression:
    """The expression, made contiguous if its text may have another memory layout."""
    # A text has other temporaries than the program, so that a view may appear where there was none.
    laid = any(is_call(node, *_LAID) for node in order([own]))
    return call("contiguous", [own], own.shape) if laid else own


def _as_strided_scatter(lifter: Lifter, made: Call, args: list[Any]) -> Any:
    """`as_strided_scatter` of a contiguous operand; PyTorch's gradient of others is another."""
    own = made.args[0]
    if isinstance(own, Value) and not own.value.flags.c_contiguous:
        raise NoExpression(
            "as_strided_scatter of what does not lie row by row has no formula: contiguous() lays it so"
        )
    return lifter.general("as_strided_scatter", made, [_row_by_row(args[0]), *args[1:]])


def _held(lifter: Lifter, made: Call, args: list[Any]) -> Any:
    """`stop_gradient`, printed as `detach` only if the result will be differentiated again."""
    own = as_exact(args[0])
    return call("detach", [own], own.shape) if lifter.again and not alg.is_bare(own) else own


RULES: dict[str, Handler] = {
    "one_hot": _one_hot,
    **ELEMENTWISE_RULES,
    **LAYER_RULES,
    "held": _held,
    "transpose": _transpose,
    "reshape": _reshape,
    "unsqueeze": _unsqueeze,
    "select": _getitem("select"),
    "slice": _getitem("slice"),
    "select_scatter": _scattered("select_scatter"),
    "slice_scatter": _scattered("slice_scatter"),
    "diagonal": _diagonal,
    "diagonal_scatter": _scattered("diagonal_scatter"),
    "index": _index,
    "index_put": _index_put,
    "index_fill": _index_fill,
    "unbind": _unbind,
    "split": _split,
    "cat": _cat,
    "diag_embed": _diag_embed,
    "sum": _sum,
    "mean": _mean,
    "var": _moment("var"),
    "std": _moment("std"),
    "var_mean": _moment("var_mean"),
    "std_mean": _moment("std_mean"),
    "norm": _norm,
    "slope of softmax": _softmax_backward,
    "slope of log_softmax": _log_softmax_backward,
    "nll_loss": _nll,
    "slope of nll_loss": _nll_backward,
    "dot": _dot,
    "matmul": _matmul,
    "addmm": _addmm,
    "linalg.inv": _inverse,
    "dist": _dist,
    "linalg.cholesky": _cholesky,
    "flip": _flip,
    "linalg.solve": _solve,
    "linalg.pinv": _pinv,
    "view_as_complex": _view_as_complex,
    "as_strided_scatter": _as_strided_scatter,
}


@cache
def rule_for(spelled: str) -> Handler:
    """The symbolic rule for `symbolic=` of a declaration: see `core.declaration.Facts`."""
    if spelled in RULES:
        return RULES[spelled]
    word, call_, names = spelled.partition(":")
    if not call_:
        return lambda lifter, made, args: formulas.read(spelled, made.primitive.names, args)
    if word.endswith("[0]"):
        return _first(word.removesuffix("[0]"), names)
    return _named(word, names or None)
