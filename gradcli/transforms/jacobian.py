"""Jacobians of functions: by rows of one pass back, or by columns of tangents."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from gradcli.engine.core import levels, modes, pytrees
from gradcli.engine.core.backward_pass import tell
from gradcli.engine.core.batch_levels import remove_batch_dim
from gradcli.engine.core.batched_arrays import BatchLevel, opened
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.transforms import batched_passes
from gradcli.transforms.arguments import (
    Argnums,
    _chosen,
    _closed,
    _outputs,
    _refuse_complex,
    _split_aux,
    _tensors,
    _unpacked,
)
from gradcli.transforms.array_arguments import chosen, takes_arrays, users


def jacrev(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function that returns the Jacobian of `func`: all rows in one backward pass.

    chunk_size: how many rows at once.
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")
    function = users(func)

    @functools.wraps(func)
    def wrapper(*args: Any) -> Any:
        _refuse_complex("jacrev", args)
        if not has_aux and (made := in_trace(function, args, argnums, rows=True)) is not None:
            return made
        with levels.Reverse() as level:
            given, chosen = _chosen(args, argnums, level.variable, level.passed)
            result, aux = _split_aux(function(*given), has_aux, "vjp(f, *primals)")
            outputs = _outputs(result, "vjp(f, *primals)")
            leaves, spec = pytrees.flatten(chosen)
            keep = level.needs([*outputs, *_tensors(aux)])
            rows = []
            for out in outputs:
                batch = BatchLevel(out.numel(), linear=True)
                found = batched_passes.reverse(out, leaves, batch, keep, chunk_size)
                tell(batch)
                rows.append(pytrees.unflatten(found, spec))
            made = pytrees.unflatten(rows, pytrees.flatten(result)[1])
            made, aux = _closed(level, made, aux)
        return (made, aux) if has_aux else made

    return takes_arrays(wrapper, chosen(argnums))


def jacfwd(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    *,
    chunk_size: int | None = None,
    randomness: str = "error",
) -> Callable[..., Any]:
    """A function that returns the Jacobian of `func`: all columns in one run of forward mode."""
    from gradcli.transforms import forward_mode

    function = users(func)

    @functools.wraps(func)
    def wrapper(*args: Any) -> Any:
        _refuse_complex("jacfwd", args)
        if not has_aux and (made := in_trace(function, args, argnums)) is not None:
            return made
        call = "jvp(f, primals, tangents)"
        with levels.Level() as level, forward_mode.nested_level():
            points, spec = pytrees.flatten(_chosen(args, argnums, lambda v: v)[1])
            batch = BatchLevel(sum(p.numel() for p in points), randomness, linear=True)
            with opened(batch):
                units = batched_passes.units(points, batch)
                duals = iter(list(map(forward_mode.make_dual, points, units)))
                given, _ = _chosen(args, argnums, lambda _: next(duals), level.passed)
                result, aux = _split_aux(function(*given), has_aux, call)
                result, tangents, aux = _unpacked(result, aux, call)
                columns = []
                for out, pushed in zip(_tensors(result), tangents, strict=True):
                    pushed = wrap(np.zeros_like(out.array)) if pushed is None else pushed
                    every = remove_batch_dim(pushed, out.ndim, batch)
                    columns.append(_blocks(every, out, points, spec))
            tell(batch)
            made = pytrees.unflatten(columns, pytrees.flatten(result)[1])
        return (made, aux) if has_aux else made

    return takes_arrays(wrapper, chosen(argnums))


def in_trace(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    argnums: Argnums,
    rows: bool = False,
    symmetric: bool = False,
) -> Any:
    """The Jacobian by one tensor inside of a trace, by coloured directions; else None.

    rows: only where these are fewer than the rows of the Jacobian. symmetric: it is that of a gradient.
    """
    if not modes.unusual or not isinstance(argnums, int):
        return None
    from gradcli.transforms import coloured

    point = args[argnums] if -len(args) <= argnums < len(args) else None
    if point is None or not coloured.is_traced([point]):
        return None

    def function(x: Any) -> Any:
        given = list(args)
        given[argnums] = x
        return func(*given)

    return coloured.matrix(function, point, symmetric=symmetric, rows=rows)


def _blocks(every: Tensor, out: Tensor, points: list[Any], spec: pytrees.Spec) -> Any:
    """The columns of each variable, in its shape."""
    if len(points) == 1:
        return pytrees.unflatten([every.reshape((*out.shape, *points[0].shape))], spec)
    parts = every.split([p.numel() for p in points], -1)
    shaped = [part.reshape((*out.shape, *p.shape)) for part, p in zip(parts, points, strict=True)]
    return pytrees.unflatten(shaped, spec)
