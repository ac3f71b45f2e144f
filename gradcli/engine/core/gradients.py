"""Gradients: computed from a node, fitted to an input's shape and dtype, added to a leaf's `.grad`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradcli.engine.core import versions
from gradcli.engine.core.node import OWNED, AccumulateGrad, Edge, Node, Variable
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.engine.core.version_checks import check_versions
from gradcli.engine.system import dtypes, locks
from gradcli.engine.system.array_memory import IN_MEMORY, copied
from gradcli.engine.system.cascaded_sums import add_reduce

accumulating = locks.reentrant_lock()
_FEW = 2048  # up to this many elements, rows are not summed in blocks


def fit(grad: Any, e: Edge, node: Node, index: int = 0) -> Any:
    """A gradient, summed to the shape of its edge and cast to the edge's dtype.

    Raises RuntimeError, in PyTorch's words, if the gradient does not broadcast from that shape.
    """
    shape = tuple(grad.shape)
    if shape != e._meta.shape:
        if not _expandable(tuple(e._meta.shape), shape):
            raise RuntimeError(
                f"Function {node.name()} returned an invalid gradient at index {index} - got "
                f"{list(shape)} but expected shape compatible with {list(e._meta.shape)}"
            )
        grad = sum_to(grad, tuple(e._meta.shape))
    dtype = grad.array.dtype if isinstance(grad, Tensor) else grad.dtype
    wanted = e.wanted_dtype() if isinstance(e, AccumulateGrad) else e._meta.dtype
    if wanted is not None and dtype != wanted:
        if dtype.kind == "c" and wanted.kind != "c":
            grad = grad.real
        if isinstance(grad, Tensor):
            if grad.array.dtype != wanted:
                grad = grad.to(dtypes.of(wanted))
        else:
            grad = grad.astype(wanted)
    return grad


def of_inputs(
    node: Node, grad: Any, recorded: bool = False, history: Node | None = None
) -> Sequence[Any]:
    """The gradients of a node's inputs, one for each edge. Every pass calls this.

    recorded: compute on tensors and record that. history: the node that saved results get, if it is not
    `node`. Raises RuntimeError if a saved tensor was freed, or written in place since it was saved.
    """
    primitive, hooks = node._primitive, node._hooks
    if primitive is not None and node._seq < versions.last:
        check_versions(node)
    if recorded and primitive is not None and history is not None:
        return primitive.backward_recorded(node, grad, history)
    if recorded:
        return node.apply_recorded(grad)
    if primitive is not None and hooks is not None and hooks.packed:
        return primitive.backward_read(node, grad)
    return node.apply(grad)


def _expandable(small: tuple[int, ...], large: tuple[int, ...]) -> bool:
    if len(small) > len(large):
        return False
    tail = large[len(large) - len(small) :]
    return all(s in (1, n) for s, n in zip(small, tail, strict=True))


def sum_to(grad: Any, shape: tuple[int, ...]) -> Any:
    """Sum a gradient over the dimensions that broadcasting from `shape` added or expanded."""
    lead = grad.ndim - len(shape)
    axes = tuple(range(lead)) + tuple(
        lead + i for i, n in enumerate(shape) if n == 1 != grad.shape[lead + i]
    )
    if not axes:
        return grad.reshape(shape) if lead else grad
    if isinstance(grad, Tensor):
        if not shape:
            return grad.sum()
        grad = grad.sum(axes, True)
        return grad.view(shape) if lead else grad
    if not shape:
        return add_reduce(grad)
    if axes == (0,) and grad.size > _FEW:
        from gradcli.engine.system.blocked_products import (  # not imported for small arrays
            rows_sum,
            suits_sum,
        )

        if suits_sum(grad):
            return rows_sum(grad).reshape(shape)
    return add_reduce(grad, axes).reshape(shape)


def accumulate(node: AccumulateGrad, grad: Any, retain: bool) -> None:
    """AccumulateGrad in the plain pass: add to the leaf's `.grad`."""
    node._grad = None
    variable = node.variable
    with accumulating:
        if variable._grad is None and variable.node is not None:
            free = node._mark is OWNED or _is_free(grad)
            variable._grad = wrap(grad if free else owned(grad))
        else:
            add_to_grad(variable, grad)


def accumulate_recorded(node: AccumulateGrad, grad: Any, retain: bool) -> None:
    """As `accumulate`, of a tensor with a graph."""
    node._grad = None
    with accumulating:
        add_to_grad(node.variable, grad)


# References to a gradient that nothing but the plain pass, `accumulate` and `_is_free` holds, and to the
# memory that it is a view of. Python 3.14 counts those of local variables no more: there it is copied.
_HELD, _HELD_MEMORY = (4, 3) if sys.version_info < (3, 14) else (0, 0)


def _is_free(grad: Any) -> bool:
    """Whether a leaf may keep a gradient without a copy: nothing else refers to its memory.

    It is in the order in which a copy would be, and fills its memory (PyTorch asks the same of it).
    """
    if type(grad) is not np.ndarray or grad.size < _FEW or sys.getrefcount(grad) > _HELD:
        return False
    memory = grad.base
    if memory is not None and (
        type(memory) is not np.ndarray
        or memory.base is not None
        or memory.size != grad.size
        or sys.getrefcount(memory) > _HELD_MEMORY
    ):
        return False
    return grad.flags.c_contiguous and grad.flags.writeable


def first(leaf: AccumulateGrad, d: Any, saved: tuple[Any, ...]) -> None:
    """Give a leaf `d`, its first gradient in a plain pass, which a VJP rule computed from `saved`.

    The leaf may keep it without a copy, and add to it, if it is neither a view nor a saved array.
    """
    leaf._grad = d
    if type(d) is not np.ndarray or d.base is not None:
        return
    for held in saved:
        if (held.array if type(held) is Tensor else held) is d:
            return
    leaf._mark = OWNED


def add_to_grad(variable: Variable, grad: Any) -> None:
    """Add a gradient, an array or a tensor with a graph, to `.grad`."""
    if variable.node is None:  # requires_grad was switched off since the graph was recorded
        return
    had = variable._grad
    if isinstance(grad, Tensor):
        if had is None:
            variable._grad = _recorded_copy(grad)
        else:
            variable._grad = had + grad
        return
    if had is None:
        variable._grad = wrap(owned(grad))
    elif isinstance(had.array, IN_MEMORY):
        had.shared_versions().bump()
        had.array += grad
    else:
        had.array = had.array + grad


def _recorded_copy(grad: Tensor) -> Tensor:
    """The first `.grad` under create_graph: a copy, recorded as CopyBackwards."""
    return wrap(copied(grad.array)).copy_(grad)


def owned(grad: Any) -> Any:
    """A copy of a gradient, so that nothing else refers to it; NumPy scalars need none."""
    return grad.copy() if isinstance(grad, IN_MEMORY) else grad
