"""Jacobians and Hessians inside of a trace: by as many directions as their patterns have colours.

A program that is traced has no numbers, but its trace tells which element depends on which. The function runs
twice in it: once to be looked at, once with tangents along the coloured directions; calls that are equal are
one in a trace. What depends on everything is found by all unit vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from gradcli.engine.core import levels, modes
from gradcli.engine.core.batch_levels import remove_batch_dim
from gradcli.engine.core.batched_arrays import BatchedArray, BatchLevel, numbers, opened
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.engine.registry.table import resolve
from gradcli.transforms import forward_mode
from gradcli.transforms.sparsity import Dense, Plan, pattern, planned
from gradcli.transforms.tracing.numpy_program import scattered

Function = Callable[[Tensor], Any]
MOST = 50_000_000  # elements of a block of products
LARGE = 1 << 14  # of directions, from which on what is made of them alone is not kept


def is_traced(tensors: Sequence[Any]) -> bool:
    """Whether a trace of NumPy's calls is being made of one of these real tensors, all floating."""
    if not modes.unusual or modes.current().recorder is None or not tensors:
        return False
    from gradcli.transforms.tracing.abstract_arrays import AbstractArray

    return all(isinstance(t, Tensor) and t.array.dtype.kind == "f" for t in tensors) and any(
        type(numbers(t.array)) is AbstractArray for t in tensors
    )


def matrix(
    function: Function, point: Tensor, symmetric: bool = False, rows: bool = False
) -> Tensor | None:
    """The derivatives of a function's result by the point's elements: result.shape + point.shape.

    symmetric: the function is a gradient. rows: only where there are fewer directions than rows. None where
    the function gives no tensor, or a complex one.
    """
    found = _plan(function, point, symmetric)
    if found is None:
        return None
    plan, shape = found
    if rows and (plan is None or len(plan.seeds) >= prod(shape)):
        return None
    whole = (*shape, *point.shape)
    if plan is None:
        units = np.eye(point.numel(), dtype=point.array.dtype)
        products: Tensor = _pushed(function, point, units).movedim(0, -1).reshape(whole)
        return products
    if not len(plan.rows):
        return wrap(np.zeros(whole, point.array.dtype))
    every = _pushed(function, point, plan.seeds.astype(point.array.dtype))
    index = plan.rows * point.numel() + plan.columns
    if _is_plain(every):
        array = every.array
        graph = array._graph
        given = (array._op, graph.constant(plan.places), graph.constant(index), whole)
        made = graph.put("whole", scattered, given, None, whole, array.dtype)
        return wrap(type(array)(graph, made, fresh=True))
    flat = resolve("zeros")((prod(whole),), dtype=point.dtype)
    values = every.reshape(-1)[wrap(plan.places)]
    whole_matrix: Tensor = flat.scatter(0, wrap(index), values).reshape(whole)
    return whole_matrix


class Entries(NamedTuple):
    """A matrix without its zeros: the plan, which has the places, and the elements there.

    shape: the result's, then the point's. split: how many dimensions are the result's.
    """

    plan: Plan
    values: Tensor
    shape: tuple[int, ...]
    split: int


def entries(function: Function, point: Tensor, symmetric: bool = False) -> Entries:
    """As `matrix`, without the zeros. Raises RuntimeError where the result is no real tensor."""
    found = _plan(function, point, symmetric, sparse=True)
    if found is None:
        raise RuntimeError("the value is not a real tensor")
    plan, shape = found
    assert plan is not None
    return Entries(plan, _values(function, point, plan), (*shape, *point.shape), len(shape))


def _is_plain(tensor: Tensor) -> bool:
    """Whether it is of the trace alone: no derivative around wants to know how it was made."""
    from gradcli.transforms.tracing.abstract_arrays import AbstractArray

    return type(tensor.array) is AbstractArray and not (tensor.requires_grad or tensor.tangents)


def _values(function: Function, point: Tensor, plan: Plan) -> Tensor:
    every = _pushed(function, point, plan.seeds.astype(point.array.dtype))
    made: Tensor = every.reshape(-1)[wrap(plan.places)]
    return made


def _plan(
    function: Function, point: Tensor, symmetric: bool, sparse: bool = False
) -> tuple[Plan | None, tuple[int, ...]] | None:
    """(the plan, None for all unit vectors; the shape of the result); None where there is no tensor.

    sparse: there has to be a plan, of all elements where there is no pattern.
    """
    from gradcli.transforms.tracing.abstract_arrays import AbstractArray

    graph = numbers(point.array)._graph
    place = graph.place(tuple(point.shape), point.array.dtype)
    out = function(wrap(AbstractArray(graph, place)))
    if not isinstance(out, Tensor) or out.array.dtype.kind != "f":
        return None
    m, n, shape = out.numel(), point.numel(), tuple(out.shape)
    array = out.array
    try:
        if type(array) is not AbstractArray:  # a constant, or a batch of closed over values
            raise Dense
        pairs = pattern(array._op, place)
        plan = planned(pairs, m, n, symmetric)
    except Dense:
        plan = None
    if sparse and plan is None and m * n <= MOST:
        plan = planned((np.repeat(np.arange(m), n), np.tile(np.arange(n), m)), m, n, False)
    if plan is not None and 2 * len(plan.seeds) > n and m * n > 16 and not sparse:
        plan = None
    if (n if plan is None else len(plan.seeds)) * m > MOST:
        size = m * n * point.array.dtype.itemsize
        raise RuntimeError(
            f"the matrix is dense, and {m} by {n} numbers are {size / 2**30:.3g} GiB: take products with "
            "vectors (jvp of grad)"
        )
    return plan, shape


def _constant(like: Any, array: Any) -> Any:
    """An array as a constant of a trace, so that what is done with it is recorded."""
    return type(like)(like._graph, like._graph.constant(array))


def _pushed(function: Function, point: Tensor, seeds: Any) -> Tensor:
    """The products of the Jacobian with directions: [direction, *result.shape]."""
    shape = tuple(point.shape)
    with levels.Level(), forward_mode.nested_level():
        batch = BatchLevel(len(seeds), "error", linear=True)
        with opened(batch):
            directions = seeds.reshape(len(seeds), *shape)
            if seeds.size > LARGE:
                directions = _constant(numbers(point.array), directions)
            along = wrap(BatchedArray(directions, batch))
            out = function(forward_mode.make_dual(point, along))
            value, pushed = forward_mode.unpack_dual(out)
            if pushed is None:
                return wrap(np.zeros((len(seeds), *value.shape), value.array.dtype))
            found: Tensor = remove_batch_dim(pushed, 0, batch)
    if _is_plain(found):
        from gradcli.transforms.tracing.shorter_programs import shortened

        array = found.array
        return wrap(type(array)(array._graph, shortened(array._graph, array._op)))
    return found


__all__ = ["entries", "is_traced", "matrix"]
