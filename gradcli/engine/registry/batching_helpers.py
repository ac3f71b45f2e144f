"""Batching rules of primitives that need a special one (`batching` of a primitive).

A batching rule is a function of the primitive, its operands (some of them batched) and the level. It
returns the results as arrays with the batch in front, or None: then the primitive runs entry by entry
(see core.batching_rules).
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from gradcli.engine.core import batched_arrays
from gradcli.engine.core.basic_primitives import sum_dim
from gradcli.engine.core.batched_arrays import (
    BatchedArray,
    BatchLevel,
    common,
    full,
    is_batched,
    is_diagonal,
    moveaxis,
)
from gradcli.engine.core.declaration import Array, Ints
from gradcli.engine.core.primitive import Primitive, VjpRules
from gradcli.engine.core.tensor import wrap_dim
from gradcli.engine.core.views import as_strided_array
from gradcli.engine.system import dtypes
from gradcli.engine.system.blocked_products import rows_dot, suits

Rule = Callable[[Primitive, list[Any], BatchLevel], Any]


def _as(way: str, primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
    """Apply the batching rule of this name (as "along"); None if it does not suit."""
    from gradcli.engine.core.batching_rules import BATCHING_WAYS

    return BATCHING_WAYS[way](primitive, operands, level)


def _in_order(every: Array, level: BatchLevel) -> Any:
    """The results, copied if their entries are not contiguous, so that `view` works on them.

    Gradients and tangents (linear levels) are left as they are.
    """
    step = every.dtype.itemsize
    for n, own in zip(reversed(every.shape[1:]), reversed(every.strides[1:]), strict=True):
        if n > 1 and own != step and not level.linear:
            return every.copy()
        step *= n
    return every


def _in(value: Any, level: BatchLevel) -> bool:
    """Whether a value is batched in this level."""
    return level in batched_arrays.batch_of(value)


def flat(value: Any, level: BatchLevel) -> Any:
    """All entries, each flattened: shape (batch, elements)."""
    return full(value, level).reshape((level.size, value.size))


def of(rule: Callable[..., Any], *primitives: Callable[[], VjpRules]) -> Rule:
    """A batching rule that is passed other primitives too.

    primitives: functions that return them, since some are defined later in a module.
    """

    def call(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
        return rule(primitive, operands, level, *(given() for given in primitives))

    return call


def whole(one: Callable[[], VjpRules], dim: Ints | int = 1) -> Rule:
    """Batching rule of a reduction of all elements, by the primitive `one()` that reduces a dimension."""

    def rule(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
        along = one()
        if not operands[
            0
        ].size:  # reducing an empty dimension may raise where reducing all elements does not
            return None
        ready = [flat(operands[0], level), *operands[1:]]
        wanted = dict(zip(primitive.names, ready, strict=True))
        more = {"dim": dim, "keepdim": False}
        found = along.in_batch([{**wanted, **more}.get(n) for n in along.names])
        return found if along.returns_one or not primitive.returns_one else found[0]

    return rule


def last(*counts: int) -> Rule:
    """Batching rule of a primitive of the last `counts` dimensions of its tensors; the others broadcast."""

    def rule(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
        from gradcli.engine.core.batching_rules import filled

        ready = filled(primitive, operands, level)
        if ready is None:
            return None
        cores = {
            i: n for i, n in zip(primitive.tensors, counts, strict=True) if ready[i] is not None
        }
        most = max(ready[i].ndim - n for i, n in cores.items())
        for i, n in cores.items():
            if missing := most - (ready[i].ndim - n):
                own = ready[i].shape
                ready[i] = ready[i].reshape((own[0], *(1,) * missing, *own[1:]))
        return primitive.in_batch(ready)

    return rule


def concatenated(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
    """As `along` for `cat`, which skips tensors of shape (0,); so they are left out here."""
    tensors, dim = operands
    kept = [t for t in tensors if tuple(t.shape) != (0,)]
    if not kept or len(kept) == len(tensors):
        return _as("along", primitive, operands, level)
    return primitive.in_batch([[full(t, level) for t in kept], wrap_dim(dim, kept[0].ndim) + 1])


def first_elements(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
    """As `along`, for the first `count` elements; of a 0-d tensor, the first 0 elements are itself."""
    x, count, *options = operands
    return _as("along", primitive, [x, count if x.ndim or count else 1, *options], level)


def as_lines(like: str) -> Rule:
    """As `along`, with 0-d operands reshaped to one element, as PyTorch treats them beside 1-d ones.

    like: the operand whose shape the result has.
    """

    def rule(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
        ready = [
            v.reshape((1,)) if i in primitive.tensors and not v.ndim else v
            for i, v in enumerate(operands)
        ]
        made = _as("along", primitive, ready, level)
        return made.reshape((level.size, *operands[primitive.position[like]].shape))

    return rule


def apart(*names: str) -> Rule:
    """As `along`, if the operands of these names (as the index) are not batched."""

    def rule(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
        places = [primitive.position[n] for n in names]
        if any(is_batched(operands[i]) for i in places):
            return _beside(primitive, operands, level, names) if "index" in names else None
        others = [i for i in primitive.tensors if i not in places]
        ready = list(operands)
        ndim = operands[0].ndim
        if not ndim:
            return None
        for i in others:
            one = full(operands[i], level)  # a 0-d operand is one element
            ready[i] = one if operands[i].ndim else one.reshape((level.size, 1))
        for word in primitive.axes.split():
            ready[primitive.position[word]] = operands[primitive.position[word]] % ndim + 1
        return primitive.in_batch(ready)

    return rule


def _beside(
    primitive: Primitive, operands: list[Any], level: BatchLevel, kept: tuple[str, ...] = ("index",)
) -> Any:
    """A batched index along a dimension: the entries are put side by side, the index offset for each.

    kept: the index, and other operands that are passed unchanged.
    """
    x, index = operands[0], operands[primitive.position["index"]]
    if (
        not x.ndim
        or index.ndim != 1
        or any(is_batched(operands[primitive.position[n]]) for n in kept[1:])
    ):
        return None
    every, at = full(index, level), operands[primitive.position["dim"]] % x.ndim
    count = x.shape[at]
    if batched_arrays.anywhere((every < 0) | (every >= count)):  # the call by entry raises
        return None
    ready = list(operands)
    for i in primitive.tensors:
        if primitive.names[i] in kept:
            continue
        if operands[i].ndim != x.ndim:
            return None
        own = moveaxis(full(operands[i], level), at + 1, 1)
        ready[i] = own.reshape((level.size * own.shape[1], *own.shape[2:]))
    first = (np.arange(level.size) * count).reshape(level.size, 1)
    ready[primitive.position["index"]] = (every + first).reshape((every.size,))
    ready[primitive.position["dim"]] = 0
    made = primitive.in_batch(ready)
    made = made.reshape((level.size, count, *made.shape[1:]))
    return _in_order(moveaxis(made, 1, at + 1), level)


# -- shapes -------------------------------------------------------------------------------------------
def permuted(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
    """`permute`: the batch stays first."""
    n = max(operands[0].ndim, 1)
    dims = (0, *(d % n + 1 for d in operands[1]))
    return primitive.in_batch([full(operands[0], level), dims])


def transposed(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
    """`t`: the transpose of a matrix."""
    every = full(operands[0], level)
    if every.ndim != 3:
        return every[...]
    return moveaxis(every, 2, 1) if primitive.view else _in_order(moveaxis(every, 2, 1), level)


def squeezed(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
    """`squeeze` of all dimensions of size 1 except the batch."""
    every = full(operands[0], level)
    for d in reversed(range(1, every.ndim)):
        if every.shape[d] == 1:
            every = every[(*(slice(None),) * d, 0)]
    return every[...]


def strided(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
    """`as_strided` of the memory of every entry, or a copy of it."""
    x, *options = operands
    if isinstance(x, batched_arrays.Sparse):  # it has no dense memory
        x = BatchedArray(x.every, level)
    if primitive.view:
        return primitive.kernel(x, *options).every
    if any(s < 0 for s in operands[2]):  # refused, entry by entry
        return None
    return as_strided_array(x, *options).every.copy()


def repeated(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
    """`repeat`: once along the batch."""
    x, repeats = operands
    every = x.every.reshape((level.size, *(1,) * (len(repeats) - x.ndim), *x.shape))
    return primitive.in_batch([every, (1, *repeats)])


def rolled(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
    """`roll` along dimensions, or of all elements."""
    x, shifts, dims = operands
    if not len(dims):
        found = primitive.in_batch([flat(x, level), shifts, (1,)])
        return found.reshape((level.size, *x.shape))
    return primitive.in_batch([full(x, level), shifts, tuple(d % max(x.ndim, 1) + 1 for d in dims)])


def traced(
    primitive: Primitive, operands: list[Any], level: BatchLevel, diagonal: Primitive
) -> Any:
    """`trace`: the sum of the diagonal."""
    found = diagonal.in_batch([full(operands[0], level), 0, 1, 2])
    return sum_dim.in_batch([found, (1,), False, None])


def copied(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
    """`copy_`: the written operand must have all batches of the source."""
    to, source = operands
    if not _in(to, level):
        raise RuntimeError(batched_arrays.INPLACE)
    return primitive.in_batch(batched_arrays.aligned([to, source], level))


def _ranked(array: Any, rank: int, level: BatchLevel) -> Any:
    """All entries, with ones behind the batch so that each entry has `rank` dimensions."""
    every = full(array, level)
    return every.reshape((level.size, *(1,) * (rank - array.ndim), *array.shape))


def layer_normed(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
    """`layer_norm`; the weights may be batched or not."""
    x, shape, weight, bias, eps = operands
    own = [_ranked(w, x.ndim, level) if is_batched(w) else w for w in (weight, bias)]
    return primitive.in_batch([full(x, level), shape, *own, eps])


def slope_of_shares(shares: Callable[[Any], Any], weighted: bool) -> Rule:
    """The VJP of softmax or log_softmax for a diagonal batch: a diagonal minus an outer product.

    shares: the softmax as a function of the saved output. weighted: multiply the diagonal by it.
    """

    def rule(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
        g, output, _ = operands
        if not is_diagonal(g, level) or g.ndim != 1 or not isinstance(output, np.ndarray):
            return _as("along", primitive, operands, level)
        parts = shares(output)
        own = g.diagonal * output if weighted else g.diagonal
        if is_batched(own):
            return _as("along", primitive, operands, level)
        made = np.multiply.outer(own, -parts)
        if not np.abs(own).min(initial=1) * np.abs(parts).min(initial=1) > 0:
            made += 0.0  # no negative zeros
        made.reshape(-1)[:: level.size + 1] += own
        return made

    return rule


# -- products -----------------------------------------------------------------------------------------
def _of_rows(primitive: Primitive, rows: Array, other: Array) -> Any:
    """The product of the rows of all entries, stacked, with an operand that is not batched."""
    return rows_dot(rows, other) if suits(rows, other) else primitive.in_batch([rows, other])


def _swapped(every: Array) -> Any:
    return moveaxis(every, every.ndim - 1, every.ndim - 2) if every.ndim > 1 else every


def product(ranks: tuple[int, int], primitives: Callable[[], tuple[VjpRules, ...]]) -> Rule:
    """Batching rule of `dot`, `mv` and `mm`, whose operands have these ranks.

    If one operand is batched, it is one product of larger matrices, else a `bmm`.
    primitives: returns mm, mv and bmm.
    """

    def rule(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
        mm, mv, bmm = primitives()
        a, b = (common(v, level) for v in operands)
        if (a.ndim, b.ndim) != ranks:
            return None
        if not is_batched([a, b]):
            b = operands[1]
        if _in(a, level) and _in(b, level):
            (*outer, k), (_, *inner) = a.shape, b.shape
            a, b = full(a, level), full(b, level)
            if ranks == (2, 2):
                return bmm.in_batch([a, b])
            if ranks == (1, 1) and isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
                return np.einsum("bi,bi->b", a, b)
            shapes = (level.size, prod(outer), k), (level.size, k, prod(inner))
            found = bmm.in_batch([v.reshape(s) for v, s in zip((a, b), shapes, strict=True)])
            return found.reshape((level.size, *outer, *inner))
        turned = not _in(a, level)  # then the product's transpose
        own, other = (b, _swapped(a)) if turned else (a, b)
        if own.ndim == 1 and is_diagonal(own, level):
            return other * own.diagonal.reshape((level.size, *(1,) * (other.ndim - 1)))
        rows = full(own, level)
        rows = _swapped(rows) if turned and own.ndim == 2 else rows
        by = mm if other.ndim == 2 else mv
        if own.ndim == 1:
            return _of_rows(by, rows, other)
        merged = rows.reshape((level.size * rows.shape[1], rows.shape[2]))
        found = _of_rows(by, merged, other).reshape((*rows.shape[:2], *other.shape[1:]))
        return _in_order(_swapped(found), level) if turned and ranks == (2, 2) else found

    return rule


def bmm(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
    """`bmm`: the batch is merged with that of the matrices."""
    a, b = operands
    if a.ndim != 3 or b.ndim != 3:
        return None
    n = level.size * a.shape[0]
    merged = [full(x, level).reshape((n, *x.shape[1:])) for x in (a, b)]
    found = primitive.in_batch(merged)
    return found.reshape((level.size, a.shape[0], a.shape[1], b.shape[2]))


def conjugated(rule: Rule) -> Rule:
    """The rule of `vdot`: as another, with the first operand conjugated."""
    return lambda primitive, operands, level: rule(
        primitive, [np.conjugate(operands[0]), operands[1]], level
    )


def added_product(product: Callable[[list[Any]], Any], over: tuple[int, ...] = ()) -> Rule:
    """`addmm` and its like: `beta * self + alpha * product`, the product summed over some dimensions."""

    def rule(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
        own, a, b, beta, alpha = operands
        made = product([a, b])
        made = batched_arrays.total(made, over) if over else made
        if made.dtype.kind in "biu" and float in (type(alpha), type(beta)):  # as PyTorch under vmap
            made, own = (v.astype(dtypes.default.real) for v in (made, own))
        made = made * alpha if alpha != 1 else made
        if beta != 0:
            made = made + (own * beta if beta != 1 else own)
        return _in_order(full(made, level), level)

    return rule


def solved(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
    """`solve`: vectors are treated as matrices of one column."""
    a, b, *options = operands
    vector = b.ndim == a.ndim - 1 and b.shape == a.shape[:-1]
    right = full(b, level)
    if vector:
        right = right.reshape((*right.shape, 1))
    elif b.ndim != a.ndim:
        return None
    found = list(primitive.in_batch([full(a, level), right, *options]))
    if vector:
        found[0] = found[0][..., 0]
    return found


def pseudo_inverses(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
    """`pinv`: the tolerances are one for all matrices, or one for each."""
    a, *limits, hermitian = operands
    ndim = max(a.ndim - 2, *(v.ndim for v in limits if v is not None), 0)
    limits = [None if v is None else _ranked(v, ndim, level) for v in limits]
    return primitive.in_batch([_ranked(a, ndim + 2, level), *limits, hermitian])


def least_squares(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
    """`lstsq` by the default driver, which returns no residuals or singular values."""
    a, b, rcond, driver = operands
    if b.ndim == a.ndim - 1 and b.shape == a.shape[:-1]:  # a vector
        ready = [full(a, level), full(b, level)]
    else:
        ndim = max(a.ndim, b.ndim)
        ready = [_ranked(v, ndim, level) for v in (a, b)]
    if driver not in (None, "gelsy") or batched_arrays.anywhere(~np.isfinite(ready[1])):
        return None
    solution, residuals, rank, values = primitive.in_batch([*ready, rcond, driver])
    empty = [
        batched_arrays.zeros_of(ready[0], (level.size, 0), v.dtype) for v in (residuals, values)
    ]
    return [solution, empty[0], rank, empty[1]]


# -- indices ------------------------------------------------------------------------------------------
BOOLEAN_MASK = (
    "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch "
    "over indexing with a boolean mask."
)


def _places(indices: Any) -> tuple[list[int], bool]:
    """(positions of the indices that are not a full slice, whether they are adjacent)."""
    at = [i for i, k in enumerate(indices) if k is not None]
    return at, at == list(range(at[0], at[0] + len(at))) if at else True


def _width(indices: Any) -> int:
    """The number of dimensions of the broadcast indices."""
    return max(1 if k.dtype.kind == "b" else k.ndim for k in indices if k is not None)


def indexed(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
    """`x[a, b]`; indices may be batched or not."""
    x, indices = operands
    at, together = _places(indices)
    if not at:
        return None
    width = _width(indices)
    if not _in(indices, level):
        found = primitive.in_batch([full(x, level), [None, *indices]])
        return found if together else moveaxis(found, width, 0)
    if any(is_batched(k) and k.dtype.kind == "b" for k in indices):
        raise RuntimeError(BOOLEAN_MASK)
    if any(k is not None and k.dtype.kind == "b" for k in indices):
        return None
    ranked = [k if k is None else _ranked(k, width, level) for k in indices]
    before = at[0] if together else 0  # dimensions before those of the indices
    if not _in(x, level):
        return moveaxis(primitive.in_batch([x, ranked]), before, 0)
    entries = np.arange(level.size).reshape(level.size, *(1,) * width)
    found = primitive.in_batch([full(x, level), [entries, *ranked]])
    for k in range(before if at[0] else 0):  # NumPy put the dimensions of the indices first
        found = moveaxis(found, 1 + width + k, 1 + k)
    return found


def index_written(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
    """`index_put`: values written, or added, at indices."""
    x, indices, values, accumulate = operands
    at, together = _places(indices)
    if not at or not together:
        return None
    width = _width(indices)
    rest = x.ndim - sum(k.ndim if k is not None and k.dtype.kind == "b" else 1 for k in indices)
    rank = at[0] + width + rest
    every = _ranked(values, rank, level)
    if not _in(indices, level):
        return primitive.in_batch([full(x, level), [None, *indices], every, accumulate])
    if at[0] or any(k.dtype.kind == "b" for k in indices):
        return None
    ranked = [_ranked(k, width, level) for k in indices]
    entries = np.arange(level.size).reshape(level.size, *(1,) * width)
    return primitive.in_batch([full(x, level), [entries, *ranked], every, accumulate])


def selected(
    primitive: Primitive, operands: list[Any], level: BatchLevel, advanced: Primitive
) -> Any:
    """`index_select`; the index may be batched or not."""
    x, dim, index = operands
    if not x.ndim or index.ndim > 1:
        return None
    at = dim % x.ndim
    if not _in(index, level):
        found = primitive.in_batch([full(x, level), at + 1, index])
        return found.reshape((level.size,)) if not index.ndim and x.ndim == 1 else found
    if not index.ndim:
        return None
    keys: list[Any] = [None] * at + [index]
    return _in_order(indexed(advanced, [x, keys], level), level)


def taken(
    primitive: Primitive, operands: list[Any], level: BatchLevel, index_select: Primitive
) -> Any:
    """`take`: elements at flat indices of an entry."""
    x, index = operands
    if not x.size:
        return None
    if _in(index, level):
        every, n = full(index, level), x.size
        if batched_arrays.anywhere((every >= n) | (every < -n)):
            return None
        start = (np.arange(level.size) * n if _in(x, level) else np.zeros(1, np.int64)).reshape(
            (-1, *(1,) * index.ndim)
        )
        places = (every % n + start).reshape((every.size,))
        own = full(x, level) if _in(x, level) else x
        found = index_select.in_batch([own.reshape((own.size,)), 0, places])
        return found.reshape((level.size, *index.shape))
    found = index_select.in_batch([flat(x, level), 1, index.reshape(-1) % x.size])
    return found.reshape((level.size, *index.shape))


def masked(
    primitive: Primitive, operands: list[Any], level: BatchLevel, index_select: Primitive
) -> Any:
    """`masked_select` with a mask that is the same for all entries."""
    x, mask = operands
    if is_batched(mask):
        raise RuntimeError(
            "vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask) We cannot support "
            "this because for each batch this would return a differently shaped Tensor. Please file "
            "an issue at https://github.com/pytorch/pytorch/issues if you need this feature."
        )
    shape = np.broadcast_shapes(x.shape, mask.shape)
    spread = BatchedArray(full(x, level), level) if _in(x, level) else x
    places = np.flatnonzero(np.broadcast_to(mask, shape))
    return index_select.in_batch(
        [flat(batched_arrays.broadcast_to(spread, shape), level), 1, places]
    )


def embedded(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
    """`embedding` in one table, or in the stacked tables of all entries."""
    weight, index, *options = operands
    if not _in(weight, level):
        return primitive.in_batch([weight, full(index, level), *options])
    count = weight.shape[0]
    whole = full(weight, level).reshape((level.size * count, weight.shape[1]))
    return primitive.in_batch([whole, _below(index, count, level), *options])


def _below(index: Any, count: int, level: BatchLevel) -> Any:
    """Indices into tables of `count` rows, offset to index the stacked tables of all entries."""
    start = np.arange(level.size) * count
    return full(index, level) + start.reshape(level.size, *(1,) * index.ndim)


def embedded_back(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
    """The gradient of `embedding`'s table, computed for the stacked tables of all entries."""
    g, index, count, padding, by_count = operands
    every = full(g, level)
    whole = primitive.in_batch(
        [every, _below(index, count, level), level.size * count, -1, by_count]
    )
    made = whole.reshape((level.size, count, every.shape[-1]))
    if padding >= 0:
        made[:, padding] = 0
    return made


def _writable(x: Array, source: Any, level: BatchLevel) -> Any:
    """`x` broadcast to the batches of the source that is written into it."""
    for more in sorted(batched_arrays.batch_of(source) - {level}, key=lambda each: each.number):
        x = batched_arrays.lifted(x, more)
    return x


def filled_at(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
    """`index_fill` with an index that is the same for all entries."""
    x, dim, index, value = operands
    if not x.ndim or np.ndim(value):
        return None
    if is_batched(index):
        return _beside(primitive, operands, level, ("index", "value"))
    x = _writable(x, value, level)
    if not is_batched(value):
        return apart("index", "value")(primitive, operands, level)
    made = moveaxis(full(x, level), dim % x.ndim + 1, 1).copy()
    made[:, index] = full(value, level).reshape((level.size, *(1,) * x.ndim))
    return moveaxis(made, 1, dim % x.ndim + 1)


def put(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
    """`put`: flat indices, offset to index all entries laid one after the other."""
    x, index, source, accumulate = operands
    every, n = flat(index, level), x.size
    if not n or x.dtype != source.dtype or source.size != index.size:
        return None
    if batched_arrays.anywhere((every >= n) | (every < -n)):
        return None
    first = (np.arange(level.size) * n).reshape(level.size, 1)
    own = [flat(x, level).reshape(-1), (every % n + first).reshape(-1)]
    found = primitive.in_batch([*own, flat(source, level).reshape(-1), accumulate])
    return found.reshape((level.size, *x.shape))


def masked_scattered(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
    """`masked_scatter` with a mask that is the same for all entries."""
    x, mask, source = operands
    if is_batched(mask) or mask.dtype.kind != "b" or x.dtype != source.dtype:
        return None
    x = _writable(x, source, level)
    shape = np.broadcast_shapes(x.shape, mask.shape)
    places = np.flatnonzero(np.broadcast_to(mask, shape))
    if len(places) > source.size:
        return None
    spread = BatchedArray(full(x, level), level) if _in(x, level) else x
    made = flat(batched_arrays.broadcast_to(spread, shape), level).copy()
    made[:, places] = flat(source, level)[:, : len(places)]
    return made.reshape((level.size, *shape))


def masked_scatter_slope(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
    """The gradient of `masked_scatter`'s source."""
    g, mask, sizes = operands
    if is_batched(mask):
        return None
    places = np.flatnonzero(np.broadcast_to(mask, g.shape))
    every = flat(g, level)
    made = batched_arrays.zeros_of(every, (level.size, int(np.prod(sizes))))
    made[:, : len(places)] = every[:, places]
    return made.reshape((level.size, *sizes))


def filled(
    primitive: Primitive, operands: list[Any], level: BatchLevel, where_of: Primitive
) -> Any:
    """`masked_fill`; by `where` if the value is batched."""
    x, mask, value = operands
    return _as("elementwise", where_of, [mask, value.astype(x.dtype), x, None], level)


def _channels_merged(value: Any, level: BatchLevel) -> Any:
    """Entries of shape (items, channels, ...) as one array (items, batch * channels, ...)."""
    every = moveaxis(full(value, level), 1, 0)
    items, _, channels, *rest = every.shape
    return every.reshape((items, level.size * channels, *rest))


def _channels_apart(merged: Array, level: BatchLevel) -> Any:
    """The inverse of `_channels_merged`."""
    items, channels, *rest = merged.shape
    return moveaxis(merged.reshape((items, level.size, channels // level.size, *rest)), 1, 0)


def _first_merged(value: Array, level: BatchLevel) -> Any:
    """All entries, the batch merged with the first dimension."""
    return full(value, level).reshape((level.size * value.shape[0], *value.shape[1:]))


def _first_apart(merged: Array, level: BatchLevel) -> Any:
    return merged.reshape((level.size, merged.shape[0] // level.size, *merged.shape[1:]))


def convolved(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
    """A convolution: the batch is merged with the images or, if kernels are batched, with the groups."""
    x, weight, bias, *how, groups = operands
    if x.ndim != weight.ndim or not level.size:
        return None
    if is_batched(weight):
        merged = [_channels_merged(x, level), _first_merged(weight, level), None]
        found = _channels_apart(
            primitive.in_batch([*merged, *how, level.size * groups]), level
        ).copy()
    else:
        merged = [_first_merged(x, level), weight, None]
        found = _first_apart(primitive.in_batch([*merged, *how, groups]), level)
    if bias is None:
        return found
    every = full(bias, level)
    return found + every.reshape((level.size, 1, *bias.shape, *(1,) * (x.ndim - 2)))


def convolution_slopes(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
    """The gradients of a convolution by image and kernel: each entry is a group of channels."""
    g, x, weight, *how, groups, output_mask = operands
    if x.ndim != weight.ndim or not level.size:
        return None
    merged = [_channels_merged(g, level), _channels_merged(x, level), _first_merged(weight, level)]
    by_x, by_weight = primitive.in_batch([*merged, *how, level.size * groups, output_mask])
    return [_channels_apart(by_x, level), _first_apart(by_weight, level)]


def images(ndim: int) -> Rule:
    """Batching rule of kernels of images, which have `ndim` dimensions with a batch of their own."""

    def rule(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
        x, *how = operands
        if x.ndim < ndim:
            return primitive.in_batch([full(x, level), *how])
        return _first_apart(primitive.in_batch([_first_merged(x, level), *how]), level)

    return rule


RUNNING = (
    "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated "
    "in place, were not batched.\nIf you are using a module and do not need eval mode, please set "
    "`track_running_stats` to be False.If you are using a prebuilt module and do not need eval mode, please "
    "see the functorch website for resources on how to patch your module to work with vmap"
)


def batch_normed(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
    """`batch_norm`: the channels of all entries are put side by side."""
    x, weight, bias, *statistics, training, momentum, eps = operands
    if training and not all(v is None or _in(v, level) for v in statistics):
        raise RuntimeError(RUNNING)
    if x.ndim < 2 or not level.size:
        return None
    vectors: list[Any] = [
        None if v is None else _first_merged(v, level) for v in (weight, bias, *statistics)
    ]
    out, *saved = primitive.in_batch(
        [_channels_merged(x, level), *vectors, training, momentum, eps]
    )
    for own, new in zip(statistics, vectors[2:], strict=True):
        if training and own is not None:
            own[...] = BatchedArray(new.reshape((level.size, *own.shape)), level)
    count = x.shape[1] if training else 0
    return [
        _in_order(_channels_apart(out, level), level),
        *(s.reshape((level.size, count)) for s in saved),
    ]


def group_normed(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
    """`group_norm`; the weights may be batched or not."""
    x, weight, bias, items, channels, *how = operands  # the counts are those of one entry
    every = full(x, level).reshape(
        (level.size * items, channels, x.size // max(items * channels, 1))
    )
    found = primitive.in_batch([every, None, None, level.size * items, channels, *how])
    out, *saved = (_first_apart(m, level) for m in found)
    for given, apply in ((weight, np.multiply), (bias, np.add)):
        if given is not None:
            out = apply(out, full(given, level).reshape((level.size, 1, channels, 1)))
    return [out.reshape((level.size, *x.shape)), *saved]


def attended(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
    """`scaled_dot_product_attention` without a mask: the batch is merged with the first dimension."""
    if operands[primitive.position["attn_mask"]] is not None:
        return None
    return _as("folded", primitive, operands, level)


def trilinear(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
    """`_trilinear`: all dimensions that its options name move by one."""
    values, (*expanded, summed_) = operands[:3], operands[3:]
    moved = [tuple(d + 1 for d in dims) for dims in expanded]
    made = primitive.in_batch([*(full(v, level) for v in values), *moved, summed_ + 1])
    return _in_order(made, level)


# -- losses -------------------------------------------------------------------------------------------
def loss(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
    """An elementwise loss of two operands, reduced for each entry."""
    at = primitive.position["reduction"]
    reduction = operands[at]
    parts = list(operands)
    parts[at] = 0
    elements = _as("elementwise", primitive, parts, level)
    if reduction == 0 or elements is None:
        return elements
    count = int(np.prod(elements.shape[1:]))
    total = batched_arrays.total(elements, tuple(range(1, elements.ndim)))
    return total / elements.dtype.type(count) if reduction == 1 else total


def classes(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
    """`nll_loss` and its total weight: computed for the stacked items of all entries, reduced by entry."""
    x, target, weight, reduction, ignored = operands
    scores, targets = _items(x, target, level)
    own, weight = _own_weights(weight, target, ignored, level)
    parts = [weight, 0, ignored]
    losses = primitive.in_batch([scores, targets, *parts])[0]
    losses = losses.reshape((level.size, *target.shape)) * own
    if reduction == 0:
        return [losses, np.zeros(level.size, x.dtype)]
    ones = primitive.in_batch([-np.ones_like(scores), targets, *parts])[0]
    axes = tuple(range(1, losses.ndim))
    weights = batched_arrays.total(ones.reshape((level.size, *target.shape)) * own, axes)
    found = batched_arrays.total(losses, axes)
    return [found / weights if reduction == 1 else found, weights]


def _own_weights(weight: Any, target: Array, ignored: int, level: BatchLevel) -> tuple[Any, Any]:
    """(the targets' weights if class weights are batched, else None; weights to pass to the primitive)."""
    if not is_batched(weight):
        return 1, weight
    targets = flat(target, level)
    chosen = full(weight, level)[
        np.arange(level.size)[:, None], np.where(targets == ignored, 0, targets)
    ]
    return chosen.reshape((level.size, *target.shape)), None


def _items(x: Array, target: Array, level: BatchLevel) -> tuple[Any, Any]:
    """(scores, targets) of the items of all entries, stacked."""
    rest = x.shape if x.ndim == 1 else x.shape[1:]
    count = level.size if x.ndim == 1 else level.size * x.shape[0]
    more = target.shape[1:] if x.ndim > 1 else ()
    scores = full(x, level).reshape((count, *rest))
    return scores, full(target, level).reshape((count, *more))


def classes_backward(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
    """The gradient of `nll_loss`."""
    g, x, target, weight, reduction, ignored, total = operands
    scores, targets = _items(x, target, level)
    each = full(g, level)
    if reduction == 1:
        each = each / full(total, level)
    own, weight = _own_weights(weight, target, ignored, level)
    spread = _to_items(each, g, target.shape, level) * own
    parts = [spread.reshape(targets.shape), scores, targets, weight, 0, ignored, x.dtype.type(0)]
    return primitive.in_batch(parts).reshape((level.size, *x.shape))


def _to_items(each: Array, g: Array, shape: tuple[int, ...], level: BatchLevel) -> Any:
    """The gradient of each entry's loss, repeated for its items."""
    lead = (level.size, *(1,) * (len(shape) - g.ndim), *g.shape)
    return batched_arrays.broadcast_to(each.reshape(lead), (level.size, *shape))


def items(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
    """A loss over items (rows of scores with targets): computed on the stacked items, reduced by entry."""
    x, target, *options = operands
    if not 1 <= x.ndim <= 2 or is_batched(options) or 0 in x.shape:
        return None
    shape = x.shape[:-1]
    if target.shape not in (shape, x.shape):
        return None
    scores, targets = _below_each_other(x, target, level)
    found = primitive.in_batch([scores, targets, *options[:-1], 0])
    losses, *more = (found,) if primitive.returns_one else found
    losses = losses.reshape((level.size, *shape))
    if options[-1]:
        losses = batched_arrays.total(losses, tuple(range(1, losses.ndim)))
        losses = losses / losses.dtype.type(np.prod(shape)) if options[-1] == 1 else losses
    return (
        losses
        if primitive.returns_one
        else [losses, *(m.reshape((level.size, *target.shape)) for m in more)]
    )


def _below_each_other(x: Any, target: Any, level: BatchLevel) -> tuple[Any, Any]:
    """(scores, targets) of the items of all entries, stacked; a target is a number or a row."""
    scores = full(x, level).reshape((-1, x.shape[-1]))
    return scores, full(target, level).reshape((len(scores), *target.shape[x.ndim - 1 :]))


def items_backward(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
    """The gradient of a loss over items."""
    g, x, target, *options = operands
    at = primitive.position["reduction"] - 3
    marks = options[at + 1 :]
    if not 1 <= x.ndim <= 2 or is_batched(options[:at]) or 0 in x.shape:
        return None
    shape = x.shape[:-1]
    if target.shape not in (shape, x.shape):
        return None
    scores, targets = _below_each_other(x, target, level)
    each = full(g, level)
    each = each / each.dtype.type(np.prod(shape)) if options[at] == 1 else each
    spread = _to_items(each, g, shape, level).reshape((len(scores),))
    more = [full(m, level).reshape(targets.shape) for m in marks]
    found = primitive.in_batch([spread, scores, targets, *options[:at], 0, *more])
    return found.reshape((level.size, *x.shape))


def loss_backward(primitive: Primitive, operands: list[Any], level: BatchLevel) -> Any:
    """The gradient of an elementwise loss: a mean is over the elements of an entry, not of the batch."""
    at = primitive.position["reduction"]
    reduction = operands[at]
    parts = list(operands)
    parts[at] = 0 if reduction == 0 else 2
    found = _as("elementwise", primitive, parts, level)
    if found is None or reduction != 1:
        return found
    return found / found.dtype.type(max(operands[primitive.position["self"]].size, 1))
