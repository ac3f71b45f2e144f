"""The algebra of arrays: sums over dimensions, matrix products, transposes and shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.calculus import simplify as alg
from gradcli.calculus.expressions import Expression, array, call, is_call, number
from gradcli.calculus.numbers import ONE, Number
from gradcli.recording.graph import Value


def in_full(own: Expression, given: Any) -> Expression:
    """An operand in the shape of the value that it stands for, integers, truth values and complex
    numbers as they are.
    """
    value = np.asarray(given.value if isinstance(given, Value) else getattr(given, "array", given))
    kind = value.dtype.kind
    if own.op == "number" and kind in "biuc":
        return array(value)
    return alg.full(own, value.shape, kind in "biu")


def axes_of(dim: Any, ndim: int) -> tuple[int, ...]:
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(ndim))
    given = dim if isinstance(dim, (tuple, list)) else (dim,)
    return tuple(d % ndim for d in given) if ndim else ()


def total(own: Expression, shape: tuple[int, ...], dim: Any, keepdim: bool) -> Expression:
    """The sum over dimensions of a value of this shape: constant factors come out, and elements that
    are equal along a dimension (which the expression then lacks, or has with one element) are counted.
    """
    axes = axes_of(dim, len(shape))
    if any(shape[i] == 0 for i in axes):
        return alg.zero
    outer, own = alg.scalars_out(own)
    if outer:
        return alg.product([*outer, (total(own, shape, dim, keepdim), ONE)])
    if is_call(own, "one_hot") and own.shape == shape and axes == (len(shape) - 1,):
        return alg.one
    chosen_ = _selected(own) if len(shape) == 1 and axes and own.shape == shape else None
    if chosen_ is not None:
        return chosen_
    lead = len(shape) - len(own.shape)
    count = math.prod(shape[i] for i in axes if i < lead or own.shape[i - lead] == 1)
    within = [i - lead for i in axes if i >= lead]
    if all(own.shape[i] == 1 for i in within):
        kept = (
            own.shape if keepdim else tuple(n for i, n in enumerate(own.shape) if i not in within)
        )
        return alg.scale(Number.of(count), reshaped(own, kept))
    return alg.scale(Number.of(count), summed(own, within, keepdim))


def summed(own: Expression, axes: Sequence[int], keepdim: bool) -> Expression:
    """`sum(own, axes)`, which has its dimensions; one element that is left needs none."""
    if own.op == "array":
        sums = np.asarray(own.data).sum(tuple(axes), keepdims=keepdim)
        same = sums.size and (sums == sums.flat[0]).all()
        return number(sums.flat[0]) if same else array(sums)
    chosen = set(axes)
    left = [n for i, n in enumerate(own.shape) if i not in chosen]
    if all(n == 1 for n in left):
        inner = own.args[0] if is_call(own, "reshape", "T", "permute") else own
        found = call("sum", [inner], ())
        return found if keepdim else reshaped(found, tuple(left))
    if keepdim:
        shape = tuple(1 if i in chosen else n for i, n in enumerate(own.shape))
    else:
        shape = tuple(n for i, n in enumerate(own.shape) if i not in chosen)
    options: list[tuple[str, Any]] = [("", axes[0] if len(axes) == 1 else tuple(axes))]
    if keepdim:
        options.append(("", True))
    return call("sum", [own], shape, options)


def _selected(own: Expression) -> Expression | None:
    """sum(x * (zeros with one element g at i)) is x[i]*g."""
    pairs: list[Any] = [(own, ONE)]
    if own.op == "product":
        pairs = list(zip(own.args, own.data[1], strict=True))
    spots = [b for b, e in pairs if e == ONE and is_call(b, "select_scatter")]
    if len(spots) != 1 or not is_call(spots[0].args[0], "zeros"):
        return None
    index = spots[0].data[1][1][1]
    rest = [
        (call("select", [b], (), [("", 0), ("", index)]) if b.shape else b, e)
        for b, e in pairs
        if b is not spots[0]
    ]
    if any(isinstance(e, Expression) and e.shape for _, e in rest):
        return None
    return alg.product([(spots[0].args[1], ONE), *rest])


def _vector(own: Expression) -> Expression | None:
    """The vector that a matrix of one row or column was made from."""
    if is_call(own, "reshape", "expand") and own.args[0].shape == (max(own.shape),):
        return own.args[0]
    if is_call(own, "ones"):
        return call("ones", [], (max(own.shape),), [("", (max(own.shape),))])
    if is_call(own, "T") and is_call(own.args[0], "reshape"):
        return _vector(own.args[0])
    return None


def matrix_product(a: Expression, b: Expression, shape: tuple[int, ...]) -> Expression:
    """`a @ b`: plain factors come out, the identity vanishes."""
    if a.shape[-1] == 0:
        return alg.zero
    outer_a, a = alg.scalars_out(a)
    outer_b, b = alg.scalars_out(b)
    if outer_a or outer_b:
        return alg.product([*outer_a, *outer_b, (matrix_product(a, b, shape), ONE)])
    a, b = alg.floating(a), alg.floating(b)
    if len(a.shape) == 2 and a.shape[0] == 1 and _vector(a) is not None and len(b.shape) == 2:
        row = _vector(a)
        assert row is not None
        column = _vector(b) if b.shape[0] == 1 else None
        if column is None:
            return reshaped(matrix_product(row, b, (shape[1],)), shape)
    if len(b.shape) == 2 and b.shape[1] == 1 and _vector(b) is not None and len(a.shape) == 2:
        column = _vector(b)
        assert column is not None
        return reshaped(matrix_product(a, column, (shape[0],)), shape)
    if len(a.shape) == len(b.shape) == 2 and a.shape[1] == b.shape[0] == 1:
        left, right = _vector(a), _vector(b)
        if left is not None and right is not None:
            return call("outer", [left, right], shape)
    if len(a.shape) == 1 and is_call(b, "T"):
        return matrix_product(b.args[0], a, shape)
    if len(b.shape) == 1 and len(a.shape) == 1:
        return call("dot", [a, b], ())
    if len(shape) == 3 and shape[0] == 1:
        inner = matrix_product(reshaped(a, a.shape[1:]), reshaped(b, b.shape[1:]), shape[1:])
        return reshaped(inner, shape)
    if is_call(a, "ones") and len(a.shape) == 1 and len(b.shape) == 2:
        return total(b, b.shape, 0, False)
    if is_call(b, "ones") and len(b.shape) == 1 and len(a.shape) == 2:
        return (
            total(a, a.shape, 1, False)
            if not is_call(a, "T")
            else total(a.args[0], a.args[0].shape, 0, False)
        )
    if is_call(a, "eye"):
        return b
    if is_call(b, "eye"):
        return a
    return call("matmul", [a, b], shape)


def transposed(own: Expression) -> Expression:
    """`own.T` of a matrix: factors stay outside, twice is nothing."""
    outer, own = alg.scalars_out(own)
    if outer:
        return alg.product([*outer, (transposed(own), ONE)])
    if is_call(own, "T"):
        return own.args[0]
    if is_call(own, "ones", "zeros"):
        shape = own.shape[::-1]
        return call(own.data[0], [], shape, [("", shape)])
    if is_call(own, "eye"):
        return own
    if is_call(own, "outer"):
        return call("outer", own.args[::-1], own.shape[::-1])
    if _vector(own) is not None and 1 in own.shape:
        return reshaped(_vector(own) or own, own.shape[::-1])
    if is_call(own, "matmul") and all(len(a.shape) == 2 for a in own.args):
        a, b = own.args
        return matrix_product(transposed(b), transposed(a), own.shape[::-1])
    if (
        own.op == "sum"
        and all(t.shape == own.shape for t in own.args)
        and all(is_call(alg.split(t)[1], "T", "matmul") for t in own.args)
    ):
        coefficients, fixed = own.data
        terms = [(transposed(t), c) for t, c in zip(own.args, coefficients, strict=True)]
        return alg.combine([*terms, (alg.one, fixed)])
    return call("T", [own], own.shape[::-1])


def permuted(own: Expression, shape: tuple[int, ...], order: list[int]) -> Expression:
    """`own.permute(order)`; where only dimensions of one element move it is a reshape."""
    ndim = len(shape)
    if order == list(range(ndim)):
        return own
    outer, own = alg.scalars_out(own)
    if outer:
        return alg.product([*outer, (permuted(own, shape, order), ONE)])
    lead = ndim - len(own.shape)
    padded = (1,) * lead + own.shape
    after = tuple(padded[i] for i in order)
    moved = [i for i in order if padded[i] != 1]
    if moved == sorted(moved):
        return reshaped(own, after)
    if lead:
        own = reshaped(own, padded)
    if len(moved) == 2:
        flat = tuple(n for n in padded if n != 1)
        return reshaped(transposed(reshaped(own, flat)), after)
    if is_call(own, "permute"):
        first = own.data[1][0][1]
        return permuted(own.args[0], own.args[0].shape, [first[i] for i in order])
    if is_call(own, "ones", "zeros"):
        return call(own.data[0], [], after, [("", after)])
    return call("permute", [own], after, [("", tuple(order))])


def reshaped(own: Expression, shape: tuple[int, ...]) -> Expression:
    """The expression with another shape."""
    if own.shape == shape or not own.shape:
        return own
    outer, own = alg.scalars_out(own)
    if outer:
        return alg.product([*outer, (reshaped(own, shape), ONE)])
    if is_call(own, "reshape"):
        return reshaped(own.args[0], shape)
    if is_call(own, "ones", "zeros"):
        return call(own.data[0], [], shape, [("", shape)])
    if is_call(own, "sum"):
        # sum(x, 1).reshape(n, 1) is sum(x, 1, keepdim=True), and the other way round
        axes = axes_of(own.data[1][0][1] if own.data[1] else None, len(own.args[0].shape))
        for keepdim in (False, True):
            found = summed(own.args[0], axes, keepdim)
            if found.shape == shape:
                return found
    return call("reshape", [own], shape, [("", shape)])


def inverse(own: Expression) -> Expression:
    """`linalg.inv(own)`."""
    return own.args[0] if is_call(own, "linalg.inv") else call("linalg.inv", [own], own.shape)
