"""How a primitive's kernel is applied to batched operands.

A primitive's `batching`, `axes` and `sizes` say how its kernel takes one more dimension in front. A
primitive without these runs entry by entry, and `level.slow` notes its name for PyTorch's warning.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.engine.core import modes, sparse_batches
from gradcli.engine.core.batched_arrays import (
    DYNAMIC,
    RANDOM,
    BatchedArray,
    BatchLevel,
    Diagonal,
    aligned,
    anywhere,
    common,
    entry,
    full,
    is_batched,
    is_diagonal,
    resolved,
    stacked,
    top,
    zero,
)
from gradcli.engine.core.tensor import Tensor, wrap, wrap_dim
from gradcli.engine.system import short_lines
from gradcli.engine.system.threads import LARGE, applied

if TYPE_CHECKING:
    from gradcli.engine.core.declaration import Declaration
    from gradcli.engine.system.dtypes import Array


def _sparse(primitive: Declaration, operands: list[Any], level: BatchLevel) -> Any:
    """Apply a primitive to sparse batches of a linear level; None if the result has no sparse form."""
    operands = [common(v, level) for v in operands]
    kept = _diagonal(primitive, operands, level)
    return sparse_batches.run(primitive, operands, level) if kept is None else kept


def _diagonal(primitive: Declaration, operands: list[Any], level: BatchLevel) -> Any:
    """Apply the primitive to Diagonals; None if the result is not a Diagonal."""
    inside: list[Any] = [v for v in operands if isinstance(v, BatchedArray) and v.level is level]
    if (
        not inside
        or not all(map(is_diagonal, inside))
        or not primitive.returns_one
        or primitive.view
    ):
        return None
    shape = inside[0].shape
    if (
        primitive.sizes
        and primitive.batching == "along"
        and not primitive.axes
        and primitive.tensors == (0,)
    ):
        place = primitive.position[primitive.sizes]
        own = [inside[0].diagonal, *operands[1:]]
        own[place] = resolved(operands[place], inside[0].size)
        return Diagonal(run(primitive, own), level)
    if primitive.batching != "elementwise" or is_batched(
        [o for o in operands if o.__class__ is list]
    ):
        return None
    sizes = [
        np.shape(v) for i, v in enumerate(operands) if v is not None and i in primitive.tensors
    ]
    if any(v.shape != shape for v in inside):
        return None
    # Mostly the others are of that shape, or numbers.
    if any(s and s != shape for s in sizes) and np.broadcast_shapes(*sizes) != shape:
        return None

    def at(pick: Callable[[Any], Any]) -> Any:
        own = [pick(v.diagonal) if is_diagonal(v, level) else v for v in operands]
        return run(primitive, own)

    # The zeros off the diagonal must stay zero; an infinite factor would make them NaN.
    if anywhere(at(np.zeros_like) != 0):
        return None
    return Diagonal(at(lambda d: d), level)


def _entry(value: object, k: int, level: BatchLevel) -> Any:
    """Entry `k` of an operand, of the same kind: array, tensor, or list of these."""
    if isinstance(value, (list, tuple)):
        return type(value)(_entry(v, k, level) for v in value)
    if not isinstance(value, Tensor):
        return entry(value, k, level)
    if not isinstance(value.array, BatchedArray):
        return value
    out = wrap(entry(value.array, k, level))
    out.wrapped = value.wrapped
    return out


def run(primitive: Declaration, operands: list[Any]) -> Any:
    """Apply a primitive's kernel to arrays and options, some of which may be batched."""
    if primitive.rare or not is_batched(
        operands
    ):  # the kernels of `core.batch_levels` know of batches
        return primitive.run(operands)
    level = top(operands)
    if level.linear and (kept := _sparse(primitive, operands, level)) is not None:
        return kept
    made = apply(primitive, operands, level)
    if primitive.returns_one:
        return BatchedArray(made, level)
    return tuple(BatchedArray(m, level) for m in made)


def apply(primitive: Declaration, operands: list[Any], level: BatchLevel) -> Any:
    """The results as plain arrays, the batch in front."""
    rule = BATCHING_WAYS.get(primitive.batching)
    if rule is None:
        rule = primitive.batching_rule
        if rule is not None and not level.size:  # an empty batch: a run on zeros gives the shapes
            return by_entry(primitive, operands, level)
    try:
        found = None if rule is None else rule(primitive, operands, level)
    except (IndexError, TypeError, ValueError, RuntimeError):
        if level.size:  # raise for one entry, so that the message has its shapes
            run(primitive, [_entry(v, 0, level) for v in operands])
        raise
    return by_entry(primitive, operands, level) if found is None else found


def by_entry(primitive: Declaration, operands: list[Any], level: BatchLevel) -> Any:
    """Apply the primitive entry by entry; `level.slow` notes its name."""
    if level.size > 1:
        level.slow[primitive.public_name] = None
    count = max(level.size, 1)
    inputs = [operands] if not level.size else None
    rows = []
    for k in range(count):
        own = (
            [zero(v, level) for v in operands]
            if inputs
            else [_entry(v, k, level) for v in operands]
        )
        found = run(primitive, own)
        rows.append((found,) if primitive.returns_one else tuple(found))
    made = []
    for column in zip(*rows, strict=True):
        if any(np.shape(c) != np.shape(column[0]) for c in column):
            raise RuntimeError(DYNAMIC.format(primitive.public_name))
        whole = stacked(column)
        made.append(whole if level.size else whole[:0])
    return made[0] if primitive.returns_one else made


def elementwise(primitive: Declaration, operands: list[Any], level: BatchLevel) -> Any:
    """Batching rule of primitives whose operands broadcast."""
    at = [
        i
        for i, v in enumerate(operands)
        if v is not None and (i in primitive.tensors or isinstance(v, Tensor))
    ]
    arrays = aligned([getattr(operands[i], "array", operands[i]) for i in at], level)
    if len(arrays) == 2 and (found := _on_rows(primitive.numpy, *arrays)) is not None:
        return found
    ready = list(operands)
    for i, array in zip(at, arrays, strict=True):
        ready[i] = wrap(array) if isinstance(operands[i], Tensor) else array
    found = run(primitive, ready)
    return found if primitive.returns_one else list(found)


def _on_rows(ufunc: np.ufunc | None, a: Array, b: Array) -> Any:
    """A ufunc of arrays with many short rows; None if NumPy's own loop is as fast."""
    if ufunc is None or type(a) is not np.ndarray or type(b) is not np.ndarray:
        return None
    own = short_lines.way(ufunc, a.shape, b.shape)
    if own is None:
        return None
    if own is short_lines.multiples and a.dtype is b.dtype and a.dtype.char in "fd":
        out = np.empty((max(len(a), len(b)), max(a.shape[-1], b.shape[-1])), a.dtype)
        if out.size < LARGE and a.flags.c_contiguous and b.flags.c_contiguous:
            return own(ufunc, a, b, out)
    return applied(ufunc, a, b, least=1)


def filled(primitive: Declaration, operands: list[Any], level: BatchLevel) -> list[Any] | None:
    """The operands, each tensor with the batch in front; None if an option is batched."""
    ready = list(operands)
    for i, v in enumerate(operands):
        if v is None:
            continue
        if i not in primitive.tensors:
            if is_batched(v):
                return None
        elif primitive.kinds[i] == "list":
            ready[i] = [None if w is None else full(w, level) for w in v]
        else:
            ready[i] = full(v, level)
    return ready


def _leading(primitive: Declaration, operands: list[Any], level: BatchLevel) -> Any:
    """Batching rule of kernels that work on the last dimensions and take any number in front."""
    ready = filled(primitive, operands, level)
    return None if ready is None else run(primitive, ready)


def along(primitive: Declaration, operands: list[Any], level: BatchLevel) -> Any:
    """Batching rule that shifts the options named in `axes` by one dimension and extends `sizes`.

    A name in `axes` that starts with "+" counts dimensions of a result with one more than the operand.
    A dim of None means all dimensions, each by itself if the name ends in "*", else flattened into one.
    """
    ready = filled(primitive, operands, level)
    if ready is None:
        return None
    source = operands[0][0] if primitive.kinds[0] == "list" else operands[0]
    ndim, flat = source.ndim, False
    if (
        ndim == 0
        and primitive.axes
        and primitive.kinds[0] == "list"
        and not primitive.axes.startswith("+")
    ):
        return None  # the call by entry raises the error
    if primitive.sizes:
        at = primitive.position[primitive.sizes]
        sizes = operands[at] if isinstance(operands[at], (tuple, list)) else (operands[at],)
        ready[at] = (level.size, *resolved(tuple(sizes), source.size))
        ndim = len(sizes)
    names = primitive.axes.split()
    keepdim = "keepdim" in primitive.position and bool(operands[primitive.position["keepdim"]])
    if ndim == 0 and primitive.view and names and not names[0].startswith("+"):
        return None if not level.size else _view_of_numbers(primitive, operands, level)
    if ndim == 0 and names and not names[0].startswith("+"):  # PyTorch treats 0-d as 1-d here
        for i in primitive.tensors:
            if ready[i] is not None and ready[i].ndim == 1:
                ready[i] = ready[i].reshape((level.size, 1))
        flat = True
    for word in names:
        name = word.strip("+*")
        at, n = primitive.position[name], max(ndim + word.startswith("+"), 1)
        dims = operands[at]
        if dims is None and word.endswith("*"):
            ready[at] = tuple(range(1, max(ndim, 1) + 1))
        elif dims is None:
            ready[0] = ready[0].reshape((level.size, source.size))
            ready[at], flat = 1, True
        elif isinstance(dims, (tuple, list)):
            every = tuple(range(n)) if not len(dims) else [wrap_dim(d, n) for d in dims]
            ready[at] = tuple(d + 1 for d in every)
        else:
            ready[at] = wrap_dim(dims, n) + 1
    found = run(primitive, ready)
    if not flat:
        return found
    results = [found] if primitive.returns_one else list(found)
    shape = (level.size, *((1,) * ndim if keepdim else ()))
    results = [r.reshape(shape) for r in results]
    return results[0] if primitive.returns_one else results


def _view_of_numbers(primitive: Declaration, operands: list[Any], level: BatchLevel) -> Any:
    """A view of 0-d entries along dim 0 or -1: the entries themselves; other dims raise for one entry."""
    run(primitive, [_entry(v, 0, level) for v in operands])
    every = full(operands[0], level)
    return every[...]


def _folded(primitive: Declaration, operands: list[Any], level: BatchLevel) -> Any:
    """Batching rule that merges the batch with the first dimension, whose items the kernel keeps apart."""
    ready = filled(primitive, operands, level)
    if ready is None:
        return None
    items: tuple[int, ...] = ()  # of an entry; a number is one without a dimension
    for i in primitive.tensors:
        if ready[i] is not None:
            items = ready[i].shape[1:2]
            ready[i] = ready[i].reshape((level.size * prod(items), *ready[i].shape[2:]))
    if primitive.sizes:
        at = primitive.position[primitive.sizes]
        ready[at] = (level.size * prod(items), *operands[at][1:])
    found = run(primitive, ready)
    results = [found] if primitive.returns_one else list(found)
    results = [r.reshape((level.size, *items, *r.shape[1:])) for r in results]
    return results[0] if primitive.returns_one else results


def _same(primitive: Declaration, operands: list[Any], level: BatchLevel) -> Any:
    """Batching rule of `expand`: the batch in front of the sizes, with ones for dimensions that are added."""
    source, at = operands[0], primitive.position[primitive.sizes]
    sizes = tuple(operands[at])
    every = source.every
    lead = (1,) * (len(sizes) - source.ndim)
    ready = list(operands)
    ready[0] = every.reshape((level.size, *lead, *source.shape))
    ready[at] = (level.size, *sizes)
    return run(primitive, ready)


def _dynamic(primitive: Declaration, operands: list[Any], level: BatchLevel) -> Any:
    """Raises RuntimeError: the result's shape depends on the values."""
    raise RuntimeError(DYNAMIC.format(primitive.public_name))


def _drawn(primitive: Declaration, operands: list[Any], level: BatchLevel) -> Any:
    """Batching rule of primitives that draw random numbers: as `vmap`'s randomness says."""
    if level.randomness == "error":
        raise RuntimeError(RANDOM)
    before, slow = modes.change(levels=()), dict(level.slow)
    try:
        return by_entry(primitive, operands, level)
    finally:
        modes.restore(before)
        level.slow = slow


BATCHING_WAYS: dict[str, Callable[[Declaration, list[Any], BatchLevel], Any]] = {
    "elementwise": elementwise,
    "leading": _leading,
    "along": along,
    "folded": _folded,
    "expanded": _same,
    "dynamic": _dynamic,
    "random": _drawn,
    "entries": lambda primitive, operands, level: None,
}
