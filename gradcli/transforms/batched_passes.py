"""Jacobians of traced tensors: one backward pass, whose gradient is a batch, for all rows or columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.engine.core import modes
from gradcli.engine.core.backward_pass import gradients as grad
from gradcli.engine.core.batch_levels import add_batch_dim, remove_batch_dim
from gradcli.engine.core.batched_arrays import (
    BatchedArray,
    BatchLevel,
    Diagonal,
    batch_of,
    full,
    opened,
)
from gradcli.engine.core.custom_function import BackwardCFunction
from gradcli.engine.core.plain_pass import discover
from gradcli.engine.core.primitive import NotImplementedNode
from gradcli.engine.core.sparse_batches import Scattered, merged, scattered
from gradcli.engine.core.tensor import Tensor, edge, wrap
from gradcli.engine.registry.table import resolve

ROWS = 256  # of a Jacobian whose product alone is wanted, at once


def reverse(
    output: Tensor,
    wrt: Sequence[Tensor],
    level: BatchLevel,
    create_graph: bool = False,
    chunk: int | None = None,
) -> list[Tensor]:
    """The Jacobians of a tensor, all rows in one backward pass: output.shape + input.shape.

    level: a batch of output.numel() entries. chunk: how many rows at once. The graph is kept. Zeros
    where there is no dependence.
    """
    found = rows(output, wrt, level, create_graph, chunk)
    return [zeros(output, w) if g is None else g for g, w in zip(found, wrt, strict=True)]


def rows(
    output: Tensor,
    wrt: Sequence[Tensor],
    level: BatchLevel,
    create_graph: bool = False,
    chunk: int | None = None,
) -> list[Any]:
    """As `reverse`, with None where there is no dependence."""
    shape, count = tuple(output.shape), output.numel()
    if count == 0 or not output.requires_grad:
        return [None] * len(wrt)
    if chunk is None or chunk >= count:
        found = pulled([output], wrt, [identity(output, level)], level, create_graph)
    else:
        eye = np.eye(count, dtype=output.array.dtype).reshape(count, *shape)
        parts = []
        for k in range(0, count, chunk):
            part = BatchLevel(min(chunk, count - k), linear=True)
            cotangent = wrap(eye[k : k + chunk])
            parts.append(pulled([output], wrt, [cotangent], part, create_graph))
            level.slow.update(part.slow)
        join = resolve("cat")
        found = [
            None if any(p is None for p in column) else join(list(column))
            for column in zip(*parts, strict=True)
        ]
    return [
        None if g is None else g.reshape((*shape, *w.shape))
        for g, w in zip(found, wrt, strict=True)
    ]


def product(output: Tensor, wrt: Sequence[Tensor], vectors: Sequence[Tensor]) -> Tensor:
    """The product of a tensor's Jacobian with vectors, by its rows."""
    flat = np.zeros(output.numel(), output.array.dtype)
    for k in range(0, flat.size if output.requires_grad else 0, ROWS):
        level = BatchLevel(min(ROWS, flat.size - k), linear=True)
        unit = np.zeros((level.size, flat.size), flat.dtype)
        unit[np.arange(level.size), np.arange(k, k + level.size)] = 1
        cotangent = wrap(unit.reshape(level.size, *output.shape))
        for g, v in zip(pulled([output], wrt, [cotangent], level), vectors, strict=True):
            if g is not None:
                # A row is a gradient: for complex numbers the conjugate of the derivative.
                flat[k : k + ROWS] += np.tensordot(np.conj(g.array), v.array, axes=v.ndim)
    return wrap(flat.reshape(output.shape))


_SHOWN = 8  # elements of a sparse matrix that it prints


class Sparse:
    """The elements of a matrix that are not zero: `values` at `indices`, one row for each.

    shape: the matrix's, of the value's dimensions and then the variable's. `numpy.asarray` makes an array
    of it, with the zeros.
    """

    __slots__ = ("indices", "shape", "values")

    def __init__(self, shape: tuple[int, ...], indices: Any, values: Any) -> None:
        self.shape, self.indices, self.values = shape, indices, values

    def dense(self) -> Any:
        """The array, with the zeros."""
        made = np.zeros(self.shape, self.values.dtype)
        made[tuple(self.indices.T)] = self.values
        return made

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.dense(), dtype)

    def to_scipy(self) -> Any:
        """The matrix as a `scipy.sparse.coo_array`; ValueError unless it has one or two dimensions."""
        if not 1 <= len(self.shape) <= 2:
            raise ValueError(
                f"SciPy holds matrices and vectors, and this has the shape {self.shape}: "
                "dense() is the array"
            )
        try:
            from scipy.sparse import coo_array
        except ImportError:
            raise ImportError("to_scipy() needs SciPy: pip install scipy") from None
        return coo_array((self.values, tuple(self.indices.T)), shape=self.shape)

    def __repr__(self) -> str:
        count = len(self.values)
        head = f"Sparse of shape {self.shape}, {count:,} element{'s' * (count != 1)}"
        shown = zip(self.indices[:_SHOWN].tolist(), self.values[:_SHOWN], strict=True)
        lines = [f"  {index}  {value:.6g}" for index, value in shown]
        return "\n".join([head, *lines, *(["  …"] if count > _SHOWN else [])])


def sparse(output: Tensor, wrt: Sequence[Tensor], level: BatchLevel) -> list[Sparse]:
    """As `reverse`, without the zeros: in as much memory as there are elements where all is elementwise.

    level: a batch of output.numel() entries.
    """
    shape = tuple(output.shape)
    found: Sequence[Any] = [None] * len(wrt)
    if level.size and output.requires_grad:
        with opened(level):
            found = grad(output, wrt, identity(output, level), retain_graph=True, allow_unused=True)
    made = []
    for g, w in zip(found, wrt, strict=True):
        whole = (*shape, *w.shape)
        if g is None:
            indices, values = np.zeros((0, len(whole)), np.int64), np.zeros(0, w.array.dtype)
        elif w.ndim and (kept := scattered(g.array, level)) is not None:
            indices, values = _elements(kept, shape)
        else:
            dense = full(g.array, level).reshape(whole)
            indices, values = np.argwhere(dense), dense[dense != 0]
        made.append(Sparse(whole, indices, values))
    return made


def _elements(array: Scattered, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """(indices, values) of what is not zero, row by row; shape: what the rows are numbered by."""
    places, values = merged(array.places, array.values)
    rows, columns = np.nonzero(values)
    at = places[rows, columns]
    found = (*np.unravel_index(rows, shape), *np.unravel_index(at, array.shape))
    return np.stack(found, -1), values[rows, columns]


def identity(like: Tensor, level: BatchLevel) -> Tensor:
    """The unit vectors of a tensor's space: for each entry of the level's batch one of them.

    In a trace, which has no numbers to find the zeros by, they are written out.
    """
    if modes.unusual and modes.current().recorder is not None:
        unit = np.eye(like.numel(), dtype=like.array.dtype)
        return wrap(BatchedArray(unit.reshape((level.size, *like.shape)), level))
    return wrap(Diagonal(np.ones(like.shape, like.array.dtype), level))


def zeros(output: Tensor, variable: Tensor) -> Tensor:
    """The Jacobian of what does not depend on a variable."""
    return wrap(np.zeros((*output.shape, *variable.shape), variable.array.dtype))


def pulled(
    outputs: Sequence[Tensor],
    wrt: Sequence[Tensor],
    cotangents: Sequence[Tensor],
    level: BatchLevel,
    create_graph: bool = False,
) -> list[Any]:
    """Gradients for cotangents with a batch in front, which they get too; None where there is none."""
    with opened(level):
        inside = [s if level in batch_of(s) else add_batch_dim(s, 0, level) for s in cotangents]
        found = grad(
            outputs,
            wrt,
            inside,
            retain_graph=True,
            create_graph=create_graph,
            allow_unused=True,
        )
        return [None if g is None else remove_batch_dim(g, 0, level) for g in found]


class Transposed:
    """The product with a tensor's transposed Jacobian, as a recorded function of a cotangent.

    What a backward pass makes of its cotangent is linear in the cotangent, so that its derivative
    by the cotangent,
    pulled back, is the product with the Jacobian (J. Townsend, 2017).
    """

    def __init__(self, output: Tensor, wrt: Sequence[Tensor]) -> None:
        # The point does not matter; at ones the rules are smooth.
        self.cotangent = wrap(np.ones(output.shape, output.array.dtype), requires_grad=True)
        self.slopes = grad(output, wrt, self.cotangent, create_graph=True, allow_unused=True)

    def refused(self) -> bool:
        """Whether some operation has no second derivative."""
        edges = [edge(s) for s in self.slopes if s is not None and s.requires_grad]
        return any(isinstance(n, _ONCE) for n in discover(edges)[0])

    def used(self, others: Sequence[Tensor]) -> list[tuple[Tensor, Tensor]]:
        """The slopes that depend on the cotangent, each with its one of `others`."""
        pairs = zip(self.slopes, others, strict=True)
        return [(s, o) for s, o in pairs if s is not None and s.requires_grad]


_ONCE = (BackwardCFunction, NotImplementedNode)


def forward(output: Tensor, wrt: Sequence[Tensor], level: BatchLevel) -> list[Tensor] | None:
    """The Jacobians of a tensor, all columns in one pass over the recorded backward pass.

    level: a batch of as many entries as wrt has elements. None where an operation, or a function of the
    user's own, may not be differentiated twice.
    """
    shape = tuple(output.shape)
    if not output.requires_grad:
        return [zeros(output, w) for w in wrt]
    if any(isinstance(n, _ONCE) for n in discover([edge(output)])[0]):
        return None
    back = Transposed(output, wrt)
    if back.refused():
        return None
    used = back.used(units(wrt, level))
    every: Any = None
    if used and level.size:
        try:
            (every,) = pulled([g for g, _ in used], [back.cotangent], [u for _, u in used], level)
        except NotImplementedError:  # a rule that says so itself
            return None
    if every is None:
        return [zeros(output, w) for w in wrt]
    return blocks(wrap(np.moveaxis(every.array, 0, -1)), wrt, shape)


def blocks(every: Tensor, wrt: Sequence[Tensor], shape: tuple[int, ...]) -> list[Tensor]:
    """The Jacobian of each of wrt, from one with all columns as its last dimension."""
    found, at = [], 0
    for w in wrt:
        block = every.array[..., at : at + w.numel()]
        found.append(wrap(np.ascontiguousarray(block).reshape((*shape, *w.shape))))
        at += w.numel()
    return found


def watched(output: Tensor) -> bool:
    """Whether hooks have a say in the gradients of a tensor."""
    if not output.requires_grad:
        return False
    if output.grad_fn is None:  # a view made under no_grad requires grad, and nothing leads to it
        return False
    for node in discover([edge(output)])[0]:
        variable = getattr(node, "variable", None)
        if node._hooks is not None or (variable is not None and variable.hooks):
            return True
    return False


def units(wrt: Sequence[Tensor], level: BatchLevel) -> list[Tensor]:
    """The unit vectors of the space of all of wrt, cut into a part for each: a batch of the level."""
    if len(wrt) == 1:
        return [identity(wrt[0], level)]
    found, at = [], 0
    count = level.size
    for w in wrt:
        n = w.numel()
        unit = np.zeros((count, n), w.array.dtype)
        unit[at : at + n] = np.eye(n)
        found.append(wrap(BatchedArray(unit.reshape((count, *w.shape)), level)))
        at += n
    return found
