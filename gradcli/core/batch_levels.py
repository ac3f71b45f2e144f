"""The ways into a batch and out of it, as rows: each one's rule is the way back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.core import batched_arrays
from gradcli.core.batched_arrays import BatchLevel
from gradcli.core.primitive import Array, operator
from gradcli.core.tensor import Tensor


def _add(self: Array, dim: int, level: BatchLevel) -> Any:
    return batched_arrays.added(self, dim, level)


def _remove(self: Array, dim: int, level: BatchLevel) -> Any:
    return batched_arrays.removed(self, dim, level)


def _lift(self: Array, level: BatchLevel) -> Any:
    return batched_arrays.lifted(self, level)


def _sum(self: Array, level: BatchLevel) -> Any:
    return batched_arrays.summed(self, level)


def _primitive(name: str, kernel: Any, node: str, rule: Any) -> Any:
    """A primitive of one argument; typed as what it is called with: the classes of rules are not."""
    return operator(kernel, node, linearity="linear", batching="level")(
        type(name, (), {"self": rule})
    )


def remove_batch_dim(tensor: Any, dim: int, level: BatchLevel) -> Any:
    """A tensor whose batch of a level becomes a dimension: of one that is the same for all, equal entries."""
    return _out_of_batch(lift(tensor, frozenset([level])), dim, level)


# A dimension becomes the batch of a level, and back.
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
# The same for every entry of a batch, and the sum over the entries. While a batch is open, who differentiates
# is in it, and every entry has a gradient of its own.
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
    """A user's function of gradients on every entry of their outermost batch; the level remembers it."""
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
        None if column[0] is None else add_batch_dim(np.stack(list(column)), 0, level)
        for column in zip(*rows, strict=True)
    )


def lift(tensor: Any, wanted: frozenset[BatchLevel]) -> Any:
    """A tensor that is recorded, in all of some levels' batches; any other as it is."""
    if not isinstance(tensor, Tensor) or tensor.node is None:
        return tensor
    for level in sorted(wanted - batched_arrays.batch_of(tensor), key=lambda each: each.number):
        tensor = lift_to_batch(tensor, level)
    return tensor


__all__ = ["add_batch_dim", "lift", "lift_to_batch", "remove_batch_dim", "sum_over_batch"]
