"""Where a view lies in its base, as primitives that read it and write it back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.engine.core import modes
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.engine.system import dtypes
from gradcli.engine.system.array_memory import address
from gradcli.transforms.tracing.calls import Value
from gradcli.transforms.tracing.traced_arrays import MemoryCell, TracedArray

if TYPE_CHECKING:
    from gradcli.transforms.tracing.tracer import Tracer

Step = tuple[str, tuple[Any, ...]]


def steps(root: Any, part: Any) -> list[Step]:
    """The view functions that lead from an array to a part of its memory, as (name, arguments).

    First choice: select, slice, permute and unsqueeze; then the same on the flattened array; then an index
    of positions. Raises NotImplementedError if the elements are reinterpreted (the real part of a complex
    number).
    """
    if root.dtype != part.dtype:
        raise NotImplementedError(
            "what is written through a view of another dtype has no form as an expression"
        )
    if not part.size:
        return [("reshape", ((-1,),)), ("slice", (0, 0, 0, 1)), ("reshape", (part.shape,))]
    item = root.itemsize
    offset = (address(part) - address(root)) // item
    shape, strides = part.shape, tuple(s // item for s in part.strides)
    own = tuple(s // item for s in root.strides)
    found = _cut(root.shape, own, offset, shape, strides)
    if found is not None:
        return found
    if root.flags.c_contiguous:
        found = _cut((root.size,), (1,), offset, shape, strides)
        if found is None:
            found = _stretch(root.size, part, offset)
        if found is not None:
            return [("reshape", ((-1,),)), *found]
    where = {int(p): i for i, p in enumerate(_positions(root.shape, own, 0).reshape(-1))}
    wanted = _positions(shape, strides, offset)
    if not all(int(p) in where for p in wanted.reshape(-1)):
        raise NotImplementedError("a view of memory beyond its base has no form as an expression")
    at = np.array([where[int(p)] for p in wanted.reshape(-1)], np.int64).reshape(shape)
    return [("reshape", ((-1,),)), ("index", ([wrap(at)],))]


def within(part: Any, whole: Any) -> bool:
    """Whether all elements of an array are elements of another, as both lie in one memory."""
    lie = [_positions(a.shape, a.strides, address(a)) for a in (part, whole) if a.size]
    return len(lie) < 2 or bool(np.isin(*lie).all())


def _positions(shape: Any, strides: Any, offset: int) -> Any:
    found = np.full((), offset, np.int64)
    for n, s in zip(shape, strides, strict=True):
        found = np.add.outer(found, np.arange(n) * s)
    return found


def _cut(
    sizes: tuple[int, ...],
    own: tuple[int, ...],
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
) -> list[Step] | None:
    """The steps as selects, slices, a permutation and dimensions of size 1; None if that is not enough."""
    starts = [0] * len(sizes)
    for d in sorted(range(len(sizes)), key=lambda d: -own[d]):
        if sizes[d] > 1 and own[d] > 0:
            starts[d], offset = divmod(offset, own[d])
            if starts[d] >= sizes[d]:
                return None
    if offset:
        return None
    taken: dict[int, tuple[int, int, int]] = {}  # dimension of the array: (place, size, step)
    for place, (n, s) in enumerate(zip(shape, strides, strict=True)):
        if n == 1:
            continue
        fits = [
            d
            for d in range(len(sizes))
            if d not in taken
            and own[d] > 0
            and s > 0
            and s % own[d] == 0
            and starts[d] + (n - 1) * (s // own[d]) < sizes[d]
        ]
        if not fits:
            return None
        d = max(fits, key=lambda d: own[d])
        taken[d] = place, n, s // own[d]
    found: list[Step] = []
    at = 0
    for d, size in enumerate(sizes):
        if d not in taken:
            found.append(("select", (at, starts[d])))
            continue
        _, n, step = taken[d]
        if (starts[d], n, step) != (0, size, 1):
            found.append(("slice", (at, starts[d], starts[d] + (n - 1) * step + 1, step)))
        at += 1
    order = [taken[d][0] for d in sorted(taken)]
    if order != sorted(order):
        found.append(("permute", (tuple(int(i) for i in np.argsort(order)),)))
    found += [("unsqueeze", (i,)) for i, n in enumerate(shape) if n == 1]
    return found


def _stretch(size: int, part: Any, offset: int) -> list[Step] | None:
    """A part without gaps, of elements in a row: another shape of them, in another order of dimensions."""
    order = sorted(range(part.ndim), key=lambda d: -part.strides[d])
    ordered = part.transpose(order)
    if not ordered.flags.c_contiguous:
        return None
    found: list[Step] = []
    if part.size < size:
        found.append(("slice", (0, offset, offset + part.size, 1)))
    found.append(("reshape", (tuple(ordered.shape),)))
    if order != sorted(order):
        found.append(("permute", (tuple(int(i) for i in np.argsort(order)),)))
    return found


def _function(name: str) -> Any:
    from gradcli.engine.registry import table
    from gradcli.operators.movement import indexing, reshaping

    rows = {"slice": reshaping.slice_p, "index": indexing.index_p}
    return rows.get(name) or table.resolve(name)


def _taken(tensor: Tensor, step: Step) -> Tensor:
    name, args = step
    return _function(name)(tensor, *args)  # type: ignore[no-any-return]


def _put(before: Tensor, part: Tensor, step: Step) -> Tensor:
    """`before` with the part that a step reads replaced."""
    name, args = step
    if name == "select":
        out = _function("select_scatter")(before, part, *args)
    elif name == "slice":
        out = _function("slice_scatter")(before, part, *args)
    elif name == "permute":
        out = _function("permute")(part, tuple(int(i) for i in np.argsort(args[0])))
    elif name == "index":
        out = _function("index_put")(before, tuple(args[0]), part)
    else:
        out = _function("reshape")(part, tuple(before.shape))
    return out  # type: ignore[no-any-return]


def _alike(root: Any, part: Any) -> bool:
    """Whether two arrays have the same memory, shape and strides."""
    same = (part.shape, part.strides, part.dtype) == (root.shape, root.strides, root.dtype)
    return same and address(part) == address(root)


def read(trace: Tracer, cell: MemoryCell, part: Any) -> Value:
    """The traced value of a part of memory, as it is now."""
    if _alike(cell.layout, part):
        return cell.value
    if cell.value.constant:
        return Value(np.array(part), known=True)
    with modes.changed(recorder=trace, enabled=False, rules=False, inference=False):
        tensor = trace.tensor(cell.value)
        for step in steps(cell.layout, part):
            tensor = _taken(tensor, step)
        return trace.value_of(tensor)


def write(trace: Tracer, target: TracedArray, given: Any) -> None:
    """Write values of the target's shape over it."""
    cell, layout = target.cell, target.layout
    with modes.changed(recorder=trace, enabled=False, rules=False, inference=False):
        value = trace.value_of(given)
        if value.value.dtype != layout.dtype:
            tensor = trace.tensor(value).to(dtypes.of(layout.dtype))
            value = trace.value_of(tensor)
        whole = value
        if not _alike(cell.layout, layout) and not (cell.value.constant and value.constant):
            path = steps(cell.layout, layout)
            parts = [trace.tensor(cell.value)]
            for step in path[:-1]:
                parts.append(_taken(parts[-1], step))
            out = trace.tensor(value)
            for part, step in zip(reversed(parts), reversed(path), strict=True):
                out = _put(part, out, step)
            whole = trace.value_of(out)
    layout[...] = given.layout if type(given) is TracedArray else given
    constant = cell.value.constant and value.constant
    cell.value = Value(np.array(cell.layout), known=True) if constant else whole
    target.written(Value(np.array(layout), known=True) if constant else value)


__all__ = ["read", "steps", "write"]
