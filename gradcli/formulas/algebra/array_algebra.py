"""The algebra of arrays: sums over dimensions, matrix products, transposes and shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from gradcli.engine.system import dtypes
from gradcli.formulas.algebra import algebra as alg
from gradcli.formulas.algebra.algebra import powers_of, terms_of
from gradcli.formulas.algebra.assuming import current
from gradcli.formulas.algebra.exact_numbers import ONE, Number
from gradcli.formulas.algebra.expressions import (
    Expression,
    Shape,
    array,
    call,
    is_call,
    number,
    value_of,
)
from gradcli.formulas.algebra.rules import Rules
from gradcli.transforms.tracing.calls import Value

MOST_STACKED = 16  # elements of a vector that is written out one by one


def in_full(own: Expression, given: Any) -> Expression:
    """An operand in the full shape of its traced value `given`.

    Integers, booleans and complex numbers keep their dtype.
    """
    value = np.asarray(given.value if isinstance(given, Value) else getattr(given, "array", given))
    kind = value.dtype.kind
    if own.op == "number" and (kind in "biu" or (kind == "c" and not value.shape)):
        return array(value)
    made = alg.full(own, value.shape, kind in "biu")
    if (kind == "c" and own.op == "number") or (kind in "biu" and is_call(own, "zeros")):
        return of_dtype(made, value.dtype)  # `zeros` without a dtype are floating, empty ones too
    return made


def of_dtype(own: Expression, kind: Any) -> Expression:
    """The same numbers in another dtype."""
    return call("to", [own], own.shape, [("", dtypes.of(np.dtype(kind)))])


def axes_of(dim: Any, ndim: int) -> tuple[int, ...]:
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(ndim))
    given = dim if isinstance(dim, (tuple, list)) else (dim,)
    return tuple(d % ndim for d in given) if ndim else ()


# A reduction is written from the outside in: what does not depend on what is summed leaves first, then sums
# that are known (of probabilities, of deviations, against a unit vector) are named, and only what is left
# becomes `sum`. Of sum(3*u*softmax(x, 0)) with a number u the 3*u leave, and the rest is 1.
def total(own: Expression, shape: tuple[int, ...], dim: Any, keepdim: bool) -> Expression:
    """`sum(own, dim, keepdim)` of a value of the given shape.

    The expression may lack a dimension of that value, or have it with size 1: its elements are equal
    there, and the sum is a multiple. Constant factors move out.
    """
    axes = axes_of(dim, len(shape))
    if any(shape[i] == 0 for i in axes):
        return alg.zero
    outer, own = alg.scalars_out(own)
    if outer:
        return alg.product([*outer, (total(own, shape, dim, keepdim), ONE)])
    # Probabilities add up to 1: this is why gradients of log_softmax and cross_entropy become short.
    if is_call(own, "one_hot", "softmax") and (own.shape, axes) == (
        shape,
        axes_of(own.data[1][0][1] if is_call(own, "softmax") else -1, len(shape)),
    ):
        return alg.one
    # sum(x - mean(x)) is 0: the second half of the gradient of a variance vanishes by it.
    if _deviates(own, shape, axes):
        return alg.zero
    if len(shape) == 1 and axes and own.shape == shape and (found := at_unit(own)) is not None:
        return found[1]  # sum(x * e) is x[i], where e is the unit vector that is 1 at i
    # sum(u*v, 1, True) with a u that has one column is u*sum(v, 1, True): u is equal along what is summed.
    if keepdim and own.op == "product" and own.shape == shape:
        apart = [p for p in powers_of(own) if _same_along(p, shape, axes)]
        if apart and len(apart) < len(own.args):
            rest = alg.product([p for p in powers_of(own) if p not in apart], own.data[0])
            return alg.product([*apart, (total(rest, shape, dim, True), ONE)])
    # A sum of products of two vectors is their dot product, which reads as mathematics and needs no
    # temporary.
    if len(shape) == 1 and own.op == "product" and _are_vectors(own, shape):
        return call("dot", own.args, ())
    lead = len(shape) - len(own.shape)
    # Along dimensions that an expression lacks all elements are equal, so summing multiplies by their
    # number.
    count = math.prod(shape[i] for i in axes if i < lead or own.shape[i - lead] == 1)
    within = [i - lead for i in axes if i >= lead]
    if all(own.shape[i] == 1 for i in within):
        left = tuple(n for i, n in enumerate(own.shape) if keepdim or i not in within)
        return alg.scale(Number.of(count), reshaped(own, left))
    return alg.scale(Number.of(count), summed(own, within, keepdim))


def _same_along(
    factor: tuple[Expression, Any], shape: tuple[int, ...], axes: tuple[int, ...]
) -> bool:
    """Whether a factor is constant along these axes, that is, broadcast over them."""
    base, e = factor
    lead = len(shape) - len(base.shape)
    single = all(i < lead or base.shape[i - lead] == 1 for i in axes)
    return single and not isinstance(e, Expression)


def deviations(own: Expression) -> tuple[Expression, tuple[int, ...]] | None:
    """(u, axes) if the expression is `u - mean(u, axes)`, else None."""
    if own.op != "sum":
        return None
    terms = [(t, c) for c, t in terms_of(own)]
    for k, (mean, c) in enumerate(terms):
        if is_call(mean, "mean") and c == -ONE and mean.args[0].shape == own.shape:
            axes = axes_of(mean.data[1][0][1] if mean.data[1] else None, len(own.shape))
            kept = tuple(1 if i in axes else n for i, n in enumerate(own.shape))
            rest = alg.combine([*terms[:k], *terms[k + 1 :]])
            if rest is mean.args[0] and mean.shape == kept[len(kept) - len(mean.shape) :]:
                return rest, axes
    return None


def _are_vectors(own: Expression, shape: tuple[int, ...]) -> bool:
    """Whether a product is one of two vectors; `dot` wants operands of one floating dtype."""
    return (
        current.get().one_dtype
        and own.data == (ONE, (ONE, ONE))
        and all(f.shape == shape and not (alg.is_truth(f) or alg.is_integral(f)) for f in own.args)
    )


def _deviates(own: Expression, shape: tuple[int, ...], axes: tuple[int, ...]) -> bool:
    """Whether the sum over these axes is zero, with means as sums: it adds up deviations from a mean."""
    if own.op != "sum" or not any(is_call(f, "mean") for t in own.args for f, _ in powers_of(t)):
        return False
    sums = (alg.scale(c, total(t, shape, axes, False)) for c, t in terms_of(own))
    # mean(x) is sum(x)/n then, and the algebra sees that the terms cancel; nothing needs to know of
    # deviations.
    return alg.add(*map(_as_sums, sums)) is alg.zero


def _as_sums(term: Expression) -> Expression:
    """The term with its means as sums."""
    coefficient, rest = alg.split(term)
    return alg.product([(_as_sum(f), e) for f, e in powers_of(rest)], coefficient)


def _as_sum(own: Expression) -> Expression:
    if not is_call(own, "mean"):
        return own
    inner, (dim, *keepdim) = own.args[0], [v for _, v in own.data[1]] or [None]
    share = Number(Fraction(max(math.prod(own.shape), 1), math.prod(inner.shape)))
    return alg.scale(share, total(inner, inner.shape, dim, bool(keepdim)))


def summed(own: Expression, axes: Sequence[int], keepdim: bool, word: str = "sum") -> Expression:
    """`sum(own, axes)` of an expression in full shape; a result of one element drops its dimensions."""
    if own.op == "array" and word == "sum":
        sums = np.asarray(own.data).sum(tuple(axes), keepdims=keepdim)
        same = sums.size and (sums == sums.flat[0]).all()
        return number(sums.flat[0]) if same else array(sums)
    # The columns of a transpose are rows: sum(A.T, 0) is sum(A, 1).
    if is_call(own, "T") and len(axes) == 1 and not keepdim:
        return summed(own.args[0], [1 - axes[0]], False, word)
    left = [1 if i in axes else n for i, n in enumerate(own.shape)]
    shape = tuple(n for i, n in enumerate(left) if keepdim or i not in axes)
    if math.prod(left) == 1:
        if is_call(own, "diagonal") and not own.data[1] and not keepdim and word == "sum":
            return call("trace", own.args, ())
        # A sum of all elements does not ask where they stand.
        inner = own.args[0] if is_call(own, "reshape", "T", "permute", word) else own
        found = call(word, [inner], ())
        return found if keepdim else reshaped(found, shape)
    options: list[tuple[str, Any]] = [("", axes[0] if len(axes) == 1 else tuple(axes))]
    if keepdim:
        options.append(("", True))
    return call(word, [own], shape, options)


def eye(n: int) -> Expression:
    """The identity."""
    return call("eye", [], (n, n))


def unit(place: Expression | int, n: int) -> Expression:
    """The unit vector that is 1 at an index: a row of the identity, or `one_hot` of a tensor."""
    if isinstance(place, Expression) and place.op == "array":
        place = int(place.data)
    # The only unit vector of one element is ones(1), which multiplies away.
    if n == 1:
        return call("ones", [], (1,), [("", (1,))])
    if isinstance(place, int):
        return call("select", [eye(n)], (n,), [("", 0), ("", place)])
    return call("one_hot", [place], (n,), [("", n)])


def place_of(own: Expression) -> Expression | int | None:
    """Where a unit vector is 1; None for what is none."""
    if is_call(own, "select") and is_call(own.args[0], "eye"):
        return int(own.data[1][1][1])
    return own.args[0] if is_call(own, "one_hot") and len(own.shape) == 1 else None


def element(own: Expression, place: Expression | int) -> Expression:
    """One element of a vector; a number is that of all its places."""
    if not own.shape:
        return own
    if own.shape == (1,):
        place = 0
    if isinstance(place, int):
        return call("select", [own], (), [("", 0), ("", place)])
    return call("index", [own, place], ())


def at_unit(term: Expression) -> tuple[Expression, Expression] | None:
    """(a unit vector that is a factor of a term, the one element that counts of what it multiplies)."""
    coefficient, own = alg.split(term)
    for unit_, e in powers_of(own):
        if e == ONE and (place := place_of(unit_)) is not None:
            rest = [(element(b, place), x) for b, x in powers_of(own) if b is not unit_]
            # An exponent that is a vector has an element of its own at this place, which `element` would
            # not take.
            plain = not any(isinstance(x, Expression) and x.shape for _, x in rest)
            return (unit_, alg.product(rest, coefficient)) if plain else None
    return None


def vector_of(own: Expression) -> Expression | None:
    """The vector that a matrix of one row or column was made from."""
    flat = reshaped(own, (math.prod(own.shape),))
    return None if is_call(flat, "reshape") else flat


def outer(a: Expression, b: Expression) -> Expression:
    """`outer(a, b)`: scalar factors stay outside."""
    # outer(ones, ...) of integers would be integers once its scalar factors stand outside.
    (scales, a), (more, b) = alg.scalars_out_of_floats(a), alg.scalars_out_of_floats(b)
    return alg.product([*scales, *more, (call("outer", [a, b], a.shape + b.shape), ONE)])


def matrix_product(a: Expression, b: Expression, shape: tuple[int, ...]) -> Expression:
    """`a @ b`: scalar factors move out, identity matrices vanish."""
    if a.shape[-1] == 0 or is_call(a, "zeros") or is_call(b, "zeros"):
        return alg.zero
    outer_a, a = alg.scalars_out(a)
    outer_b, b = alg.scalars_out(b)
    if outer_a or outer_b:
        return alg.product([*outer_a, *outer_b, (matrix_product(a, b, shape), ONE)])
    a, b = alg.floating(a), alg.floating(b)
    known: Expression | None = PRODUCTS.find("matmul", (a, b), shape)
    if known is not None:
        return known
    made = call("matmul", [a, b], shape)
    return _cancelled(chain(made)) or made


def _of_a_column_or_row(shape: Shape, a: Expression, b: Expression) -> Expression | None:
    """u.reshape(n, 1) @ v.reshape(1, k) is outer(u, v), and u.reshape(1, n) @ b is u @ b."""
    left = vector_of(a)
    if left is None:
        return None
    if a.shape[1] == 1 and (right := vector_of(b)) is not None:
        return outer(left, right)
    if a.shape[0] == 1:
        return reshaped(matrix_product(left, b, (shape[1],)), shape)
    return None


def _chosen(rows: Expression, matrix: Expression, shape: Shape) -> Expression | None:
    """What multiplies rows of the identity gives rows of its own."""
    chosen = is_call(rows, "select", "slice") and rows.data[1][0][1] == 0
    if not (chosen or is_call(rows, "index")) or not is_call(rows.args[0], "eye"):
        return None
    return call(rows.data[0], [matrix, *rows.args[1:]], shape, rows.data[1])


# a @ b, where the shape of the product is known.
PRODUCTS = Rules(
    ("A @ B", _of_a_column_or_row),
    ("v @ B.T", lambda shape, v, b: matrix_product(b, v, shape)),
    ("(v := ones()) @ b", lambda shape, v, b: matrix_product(transposed(b), v, shape)),
    ("eye() @ b", lambda shape, b: b),
    ("a @ eye()", lambda shape, a: a),
    ("a @ (v := ones())", lambda shape, a, v: total(a, a.shape, -1, False)),
    ("u @ v", lambda shape, u, v: call("dot", [u, v], ())),
    ("A @ v", lambda shape, a, v: _chosen(v, transposed(a), shape)),
    ("a @ B", lambda shape, a, b: _chosen(a, b, shape)),
    ("A @ outer(u, v)", lambda shape, a, u, v: outer(product_of(a, u), v)),
    ("outer(u, v) @ B", lambda shape, u, v, b: outer(u, product_of(v, b))),
)


def product_of(a: Expression, b: Expression) -> Expression:
    """`a @ b` in full shape, also where the product is broadcast: v@ones(k, 1) is sum(v)."""
    shape = (*a.shape[:-1], *b.shape[1:])
    return alg.full(matrix_product(a, b, shape), shape)


def chain(product: Expression) -> list[Expression]:
    """The factors of a matrix product, a vector last: v@A is read as A.T@v, sum(A, 1) as A@ones(n)."""
    found: list[Expression] = []
    waiting = [product]
    while waiting:
        node = waiting.pop()
        if is_call(node, "matmul") and 1 <= len(node.shape) <= 2:
            a, b = node.args
            if len(a.shape) == 1:
                a, b = transposed(b), a
        # So that A@sum(B, 1) is associated, turned and cancelled as A@B@ones is; `ones` becomes a sum
        # again.
        elif is_call(node, "sum") and len(node.shape) == len(node.args[0].shape) - 1 == 1:
            a = node.args[0] if node.data[1][0][1] % 2 else transposed(node.args[0])
            b = call("ones", [], a.shape[1:], [("", a.shape[1:])])
        else:
            found.append(node)
            continue
        waiting += [b, a]
    return found


def multiplied(factors: Sequence[Expression]) -> Expression:
    """The product of a chain of factors: from the right if it ends in a vector, else from the left."""
    # From the right, a matrix times a vector is n**2 multiplications each; from the left, n**3.
    if len(factors[-1].shape) == 1:
        return reduce(lambda found, factor: product_of(factor, found), factors[::-1])
    return reduce(product_of, factors)


def _cancelled(factors: list[Expression]) -> Expression | None:
    """The product of a chain with an inverse cancelled: C@inv(A@B@C) is inv(A@B)."""
    for k, own in enumerate(factors):
        turned = is_call(own, "T")
        own = own.args[0] if turned else own
        if not is_call(own, "linalg.inv") or len(own.shape) != 2:
            continue
        inner = chain(transposed(own.args[0]) if turned else own.args[0])
        n = own.shape[0]
        # The longest piece first: of inv(A@B@C) all three may stand beside it.
        for m in range(len(inner), 0, -1):
            if n == inner[-m].shape[0] and inner[-m:] == factors[max(k - m, 0) : k]:
                start, end, rest = k - m, k + 1, inner[:-m]
            elif n == inner[m - 1].shape[1] and inner[:m] == factors[k + 1 : k + 1 + m]:
                start, end, rest = k, k + 1 + m, inner[m:]
            else:
                continue
            left = inverse(multiplied(rest)) if rest else eye(n)
            return multiplied([*factors[:start], left, *factors[end:]])
    return None


def transposed(own: Expression) -> Expression:
    """`own.T` of a matrix: scalar factors stay outside, and `A.T.T` is `A`."""
    outer, own = alg.scalars_out(own)
    if outer:
        return alg.product([*outer, (transposed(own), ONE)])
    if own.op == "call":
        known: Expression | None = TRANSPOSES.find(own.data[0], own.args, own)
        if known is not None:
            return known
    if own.op == "sum" and all(t.shape == own.shape for t in own.args):
        made = alg.mapped(own, transposed)
        if made is own or not any(is_call(t, "T") for t in made.args):
            return made
    return call("T", [own], own.shape[::-1])


def _other_triangle(own: Expression, ones: Expression) -> Expression | None:
    if own.data[1]:
        return None
    other = "triu" if own.data[0] == "tril" else "tril"
    return call(other, [transposed(ones)], own.shape[::-1])


def _rolled_back(own: Expression, identity: Expression) -> Expression:
    """The transpose of a permutation is its inverse."""
    (_, shifts), dims = own.data[1]
    return call("roll", [identity], own.shape, [("shifts", tuple(-n for n in shifts)), dims])


# own.T of a call.
TRANSPOSES = Rules(
    ("a.T", lambda own, a: a),
    ("eye()", lambda own: own),
    ("flip(eye())", lambda own: own),
    ("diag(v)", lambda own, v: None if own.data[1] else own),
    ("(ones|zeros)()", lambda own: _filled(own.data[0], own.shape[::-1])),
    ("(tril|triu)(a := ones())", _other_triangle),
    ("roll(a := eye())", _rolled_back),
    ("outer(u, v)", lambda own, u, v: call("outer", [v, u], own.shape[::-1])),
    ("(linalg.inv|matrix_exp)(a)", lambda own, a: own if transposed(a) is a else None),
    ("A @ B", lambda own, a, b: matrix_product(transposed(b), transposed(a), own.shape[::-1])),
)


def _filled(word: str, shape: Shape) -> Expression:
    """`ones` or `zeros`."""
    return call(word, [], shape, [("", shape)])


def permuted(own: Expression, shape: tuple[int, ...], order: list[int]) -> Expression:
    """`own.permute(order)`; a reshape if only dimensions of size 1 move."""
    ndim = len(shape)
    if order == list(range(ndim)):
        return own
    outer, own = alg.scalars_out(own)
    if outer:
        return alg.product([*outer, (permuted(own, shape, order), ONE)])
    lead = ndim - len(own.shape)
    padded = (1,) * lead + own.shape
    after = tuple(padded[i] for i in order)
    # Dimensions of size 1 hold no order among elements: if the others keep theirs, no element moves.
    moved = [i for i in order if padded[i] != 1]
    if moved == sorted(moved):
        return reshaped(own, after)
    if lead:
        own = reshaped(own, padded)
    # With two dimensions that count, a permutation is a transpose, which the rules of matrices know.
    if len(moved) == 2 and not is_call(own, "einsum"):
        flat = tuple(n for n in padded if n != 1)
        return reshaped(transposed(reshaped(own, flat)), after)
    # The equation says the order of the dimensions, so it can be written in the new order at once.
    if is_call(own, "einsum"):
        inner, _, word = own.data[1][0][1].partition("->")
        equation = f"{inner}->{''.join(word[i] for i in order)}"
        return call("einsum", own.args, after, [("", equation), *own.data[1][1:]])
    return call("permute", [own], after, [("", tuple(order))])


def reshaped(own: Expression, shape: tuple[int, ...]) -> Expression:
    """`own.reshape(shape)`."""
    if own.shape == shape or not own.shape:
        return own
    outer, own = alg.scalars_out(own)
    if outer:
        return alg.product([*outer, (reshaped(own, shape), ONE)])
    known: Expression | None = None
    if own.op == "call":
        known = RESHAPES.find(own.data[0], own.args, own, shape)
    if known is None:
        known = _squeezed(own, shape)
    return call("reshape", [own], shape, [("", shape)]) if known is None else known


# own.reshape(shape) of a call.
RESHAPES = Rules(
    ("reshape(a)", lambda own, shape, a: reshaped(a, shape)),
    ("expand(a)", lambda own, shape, a: reshaped(a, shape) if _is_reshape(own, shape) else None),
    ("zeros()", lambda own, shape: _filled("zeros", shape) if shape else alg.zero),
    ("ones()", lambda own, shape: _filled("ones", shape) if shape else alg.one),
)


def _is_reshape(own: Expression, shape: tuple[int, ...]) -> bool:
    """Whether an expansion adds no elements, and is reshaped to this shape; a number stays one."""
    before = own.args[0].shape
    return before == shape or (before != () and math.prod(before) == math.prod(shape))


def _squeezed(own: Expression, shape: tuple[int, ...]) -> Expression | None:
    """The expression with `keepdim` of its sums and means changed so that it has this shape."""
    if own.shape in ((), shape):
        return own
    if is_call(own, "sum", "mean"):
        inner = own.args[0]
        axes = axes_of(own.data[1][0][1], len(inner.shape))
        # sum(x, 1).reshape(n, 1) is what keepdim=True was made for.
        both = (summed(inner, axes, keepdim, own.data[0]) for keepdim in (False, True))
        return next((found for found in both if found.shape == shape), None)
    if own.op not in ("sum", "product") or any(a.shape not in ((), own.shape) for a in own.args):
        return None
    args = {a: _squeezed(a, shape) for a in own.args}
    if None in args.values() or len(own.parts) > len(own.args):
        return None
    return alg.mapped(own, lambda a: args.get(a) or a)


def inverse(own: Expression) -> Expression:
    """`linalg.inv(own)`."""
    known: Expression | None = None
    if own.op == "call":
        known = INVERSES.find(own.data[0], own.args)
    return call("linalg.inv", [own], own.shape) if known is None else known


INVERSES = Rules(
    ("linalg.inv(a)", lambda a: a),
    ("a.T", lambda a: transposed(inverse(a))),
)


# -- elements -------------------------------------------------------------------------------------
def unwrapped(own: Expression) -> Expression:
    """A number without the tensor of floats that holds it."""
    while is_call(own, "tensor", "float") and not own.shape:
        (own,) = own.args
    return own


def stacked(items: list[Expression], shape: tuple[int, ...]) -> Expression:
    """The stack of scalars or of rows as a floating tensor: `tensor([…])` if all are numbers."""
    items = list(map(unwrapped, items))
    numbers = {value_of(item) for item in items}
    # A stack of equal numbers has no order: it is that number in the shape of the stack, for any size.
    if len(numbers) == 1 and None not in numbers:
        return alg.full(items[0], shape)
    lists = [found for item in items if (found := _listed(item)) is not None]
    if len(lists) == len(items):
        return alg.floating(call("tensor", [call("[]", lists, ())], shape))
    # `stack` takes tensors, and a number between them has none around it yet.
    items = [alg.floating(call("tensor", [i], ())) if alg.is_bare(i) else i for i in items]
    return call("stack", [call("[]", items, ())], shape)


def _listed(item: Expression) -> Expression | None:
    """A number, or a constant vector as a list of numbers."""
    if alg.is_bare(item):
        return item
    if is_call(item, "tensor") and is_call(item.args[0], "[]"):
        bare = [i.args[0] if is_call(i, "float") else i for i in item.args[0].args]
        return call("[]", bare, ())
    coefficient, own = alg.split(item)
    if is_call(own, "ones", "zeros") and len(own.shape) == 1 and own.shape[0] <= MOST_STACKED:
        each = alg.scale(coefficient, alg.one if own.data[0] == "ones" else alg.zero)
        return call("[]", [each] * own.shape[0], ())
    return None
