"""The primitives that enter and leave a batch. The VJP rule of each is its inverse or transpose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.engine.core import batched_arrays
from gradcli.engine.core.batched_arrays import BatchLevel
from gradcli.engine.core.declaration import Array
from gradcli.engine.core.primitive import Primitive
from gradcli.engine.core.tensor import Tensor, wrap


def _add(self: Array, dim: int, level: BatchLevel) -> Any:
    return batched_arrays.added(self, dim, level)


def _remove(self: Array, dim: int, level: BatchLevel) -> Any:
    return batched_arrays.removed(self, dim, level)


def _lift(self: Array, level: BatchLevel) -> Any:
    return batched_arrays.lifted(self, level)


def _sum(self: Array, level: BatchLevel) -> Any:
    return batched_arrays.summed(self, level)


def _primitive(name: str, kernel: Callable[..., Any], node: str, rule: Callable[..., Any]) -> Any:
    """A linear primitive of one tensor, with its VJP rule."""
    return Primitive(name, kernel, node, {"self": rule}, linearity="linear", batching="level")


def remove_batch_dim(tensor: Tensor, dim: int, level: BatchLevel) -> Any:
    """The level's batch becomes dimension `dim`. A tensor without that batch is repeated along it."""
    return _out_of_batch(lift(tensor, frozenset([level])), dim, level)


# A dimension becomes a level's batch, and back.
add_batch_dim: Any = _primitive(
    "add_batch_dim",
    _add,
    "AddBatchDimBackward0",
    lambda g, dim, level: remove_batch_dim(g, dim, level),
)
_out_of_batch: Any = _primitive(
    "remove_batch_dim",
    _remove,
    "RemoveBatchDimBackward0",
    lambda g, dim, level: add_batch_dim(g, dim, level),
)
# Repeating for every entry of a batch, and its transpose, the sum over the entries. While the batch is
# open, differentiation happens inside it: each entry keeps a separate gradient.
lift_to_batch: Any = _primitive(
    "lift_to_batch",
    _lift,
    "LiftToBatchBackward0",
    lambda g, level: g if level in batched_arrays.levels() else sum_over_batch(g, level),
)
sum_over_batch: Any = _primitive(
    "sum_over_batch", _sum, "SumOverBatchBackward0", lambda g, level: lift_to_batch(g, level)
)


def by_entry(name: str, call: Callable[..., Any], grads: list[Any]) -> tuple[Any, ...]:
    """Call a user's function of gradients for each entry of their outermost batch; `level.slow` notes it."""
    level = batched_arrays.top(grads)
    if level.size > 1:
        level.slow[name] = None
    whole = [
        remove_batch_dim(g, 0, level)
        if g is not None and level in batched_arrays.batch_of(g)
        else g
        for g in grads
    ]
    rows = []
    for k in range(level.size):
        own = [w if w is g else w[k] for w, g in zip(whole, grads, strict=True)]
        rows.append(call(own))
    return tuple(
        None if column[0] is None else add_batch_dim(_stacked(column), 0, level)
        for column in zip(*rows, strict=True)
    )


def _stacked(column: tuple[Any, ...]) -> Tensor:
    """Tensors one above the other, as a tensor also where NumPy makes an array of constants."""
    found = np.stack(list(column))
    return found if isinstance(found, Tensor) else wrap(found)


def lift(tensor: Tensor, wanted: frozenset[BatchLevel]) -> Any:
    """A tensor that has a graph, repeated for each entry of the levels it lacks; others unchanged."""
    if not isinstance(tensor, Tensor) or tensor.node is None:
        return tensor
    for level in sorted(wanted - batched_arrays.batch_of(tensor), key=lambda each: each.number):
        tensor = lift_to_batch(tensor, level)
    return tensor
