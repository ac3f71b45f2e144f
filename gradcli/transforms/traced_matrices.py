"""Jacobians and Hessians of programs, all rows or all columns at once.

A program runs once, on the engine's own tensors under the engine's own modes, as for `grad`; so what it
says with `no_grad`, `detach` or a write in place means the same here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from gradcli.engine.core import modes, random
from gradcli.engine.core.backward_pass import of_recorded
from gradcli.engine.core.batch_levels import remove_batch_dim
from gradcli.engine.core.batched_arrays import BatchLevel, opened
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.engine.system import dtypes
from gradcli.language import run
from gradcli.language.program import Program
from gradcli.transforms import batched_passes, forward_mode, forward_state

Names = Mapping[str, Any] | None


class Matrices(NamedTuple):
    """Jacobians by name, and how they were found.

    method: "forward" (all columns in one pass) or "reverse" (all rows). slow: the operators that ran
    entry by entry in that pass. shape: the value's.
    """

    by: dict[str, Any]
    method: str
    shape: tuple[int, ...]
    slow: list[str]


class Start:
    """What a program starts from besides its variables, so that it can run again as it ran before."""

    __slots__ = ("drawn", "dtype")

    def __init__(self) -> None:
        self.drawn, self.dtype = random.snapshot(), dtypes.get_default_dtype()

    def again(self) -> None:
        """Go back: the same random numbers come, and plain numbers have the same dtype."""
        random.rewind(self.drawn)
        if dtypes.get_default_dtype() is not self.dtype:
            dtypes.set_default_dtype(self.dtype)


def recorded_run(
    program: Program,
    tensors: Mapping[str, Tensor],
    wrt: Sequence[str],
    names: Names,
    watch: Any = None,
) -> tuple[Any, list[Tensor]]:
    """(the program's value, the variables it was recorded for); watch: a context that the run is in."""
    leaves = leaves_of(tensors, wrt)
    with watch or nullcontext():
        value = run(program, {**(names or {}), **tensors, **leaves}, write=_said).value
    return value, list(leaves.values())


def value_of(program: Program, tensors: Mapping[str, Tensor], names: Names = None) -> Any:
    """The program's value once more, without a tape."""
    with modes.no_grad():
        return run(program, {**(names or {}), **tensors}, write=_said).value


def _said(text: str) -> None:
    """Nothing: what the program prints, it has printed when it was evaluated."""


def leaves_of(tensors: Mapping[str, Tensor], wrt: Sequence[str]) -> dict[str, Any]:
    """Copies of the variables of these names, which require grad."""
    return {n: tensors[n].detach().clone().requires_grad_() for n in wrt}


def _pushed(
    program: Program,
    tensors: Mapping[str, Tensor],
    vectors: Mapping[str, Any],
    names: Names,
    watch: Any = None,
) -> tuple[Any, list[Tensor], Any]:
    """(value, variables, the derivative along the vectors), by tangents beside the tape.

    The derivative is None where the tape alone knows it: operations that users wrote, and hooks.
    """
    leaves = leaves_of(tensors, list(vectors))
    with (level := forward_mode.taped_level()):
        for n, leaf in leaves.items():
            forward_state.carry(leaf, vectors[n])
        with watch or nullcontext():
            value = run(program, {**(names or {}), **tensors, **leaves}, write=_said).value
        found = forward_mode.unpack_dual(value).tangent if value.requires_grad else None
    if level.refused or batched_passes.watched(value):
        return value, list(leaves.values()), None
    zeros = wrap(np.zeros_like(value.array))
    return value, list(leaves.values()), zeros if found is None else found


def jacobian(
    program: Program,
    tensors: Mapping[str, Tensor],
    wrt: Sequence[str],
    names: Names = None,
    mode: str | None = None,
    watch: Any = None,
) -> Matrices:
    """The Jacobian of a program's value by each variable: value.shape + variable.shape.

    By columns or by rows, whichever are fewer, unless mode ("forward" or "reverse") says; by rows where
    an operation cannot be differentiated twice.
    """
    value: Any = None
    leaves: list[Tensor] = []
    found: list[Tensor] | None = None
    columns = sum(tensors[n].numel() for n in wrt)
    method, level = "forward", BatchLevel(columns, linear=True)
    start = Start()
    if mode != "forward":
        value, leaves = recorded_run(program, tensors, wrt, names, watch)
    if mode == "forward" or (mode is None and columns < value.numel()):
        start.again()
        value, leaves, found = _columns(program, tensors, wrt, names, level, watch)
    if found is None:
        method, level = "reverse", BatchLevel(value.numel(), linear=True)
        found = batched_passes.reverse(value, leaves, level)
    by = {n: f.array for n, f in zip(wrt, found, strict=True)}
    return Matrices(by, method, tuple(value.shape), list(level.slow))


def _columns(
    program: Program,
    tensors: Mapping[str, Tensor],
    wrt: Sequence[str],
    names: Names,
    level: BatchLevel,
    watch: Any = None,
) -> tuple[Any, list[Tensor], list[Tensor] | None]:
    """(value, variables, its Jacobians by all columns at once), the last None where rows are needed."""
    units = batched_passes.units([tensors[n] for n in wrt], level)
    with opened(level):
        value, leaves, every = _pushed(
            program, tensors, dict(zip(wrt, units, strict=True)), names, watch
        )
        if every is None:
            real = all(t.array.dtype.kind == "f" for t in [value, *leaves])
            return value, leaves, batched_passes.forward(value, leaves, level) if real else None
        every = remove_batch_dim(every, value.ndim, level)
    return value, leaves, batched_passes.blocks(every, leaves, tuple(value.shape))


def sparse_jacobian(
    program: Program, tensors: Mapping[str, Tensor], wrt: Sequence[str], names: Names = None
) -> Matrices:
    """As `jacobian`, by rows and without the zeros: each of `by` is a `batched.Sparse`."""
    value, leaves = recorded_run(program, tensors, wrt, names)
    level = BatchLevel(value.numel(), linear=True)
    by = dict(zip(wrt, batched_passes.sparse(value, leaves, level), strict=True))
    return Matrices(by, "reverse", tuple(value.shape), list(level.slow))


def hessian(
    program: Program,
    tensors: Mapping[str, Tensor],
    wrt: Sequence[str],
    names: Names = None,
    sparse: bool = False,
    watch: Any = None,
    recorded: tuple[Any, list[Tensor]] | None = None,
) -> dict[str, Matrices]:
    """The second derivatives of a program's scalar value: [x].by[y] has shape x.shape + y.shape.

    The backward pass is recorded, and the Jacobian of the gradient taken with all rows at once.
    sparse: without the zeros, each of `by` a `batched.Sparse`. recorded: the value of a run, and the
    variables that it was recorded for.
    """
    value, leaves = recorded or recorded_run(program, tensors, wrt, names, watch)
    slopes = of_recorded([value.sum()], leaves, [None], create_graph=True)
    found = {}
    for n, own, slope in zip(wrt, leaves, slopes, strict=True):
        level = BatchLevel(own.numel(), linear=True)
        if sparse:
            missing = wrap(np.zeros(own.shape, own.array.dtype))
            parts = batched_passes.sparse(missing if slope is None else slope, leaves, level)
            by: dict[str, Any] = dict(zip(wrt, parts, strict=True))
            found[n] = Matrices(by, "reverse", tuple(own.shape), list(level.slow))
            continue
        made = [wrap(np.zeros((*own.shape, *t.shape), t.array.dtype)) for t in leaves]
        if slope is not None:
            made = batched_passes.reverse(slope, leaves, level)
        by = {m: np.asarray(b.array)[()] for m, b in zip(wrt, made, strict=True)}
        found[n] = Matrices(by, "reverse", tuple(own.shape), list(level.slow))
    return found


def jvp(
    program: Program,
    tensors: Mapping[str, Tensor],
    vectors: Mapping[str, Tensor],
    names: Names = None,
    watch: Any = None,
) -> tuple[Any, Any]:
    """The value and its derivative along the vectors, in forward mode.

    Where the tape alone knows it, the Jacobian's rows are found and multiplied.
    """
    value, leaves, found = _pushed(program, tensors, vectors, names, watch)
    if found is None:
        found = batched_passes.product(value, leaves, list(vectors.values()))
    return value.detach(), found.detach()


def hvp(
    program: Program,
    tensors: Mapping[str, Tensor],
    vectors: Mapping[str, Tensor],
    names: Names = None,
    watch: Any = None,
) -> dict[str, Any]:
    """The Hessian of a program's scalar value times the vectors, without the matrix."""
    value, leaves = recorded_run(program, tensors, list(vectors), names, watch)
    slopes = of_recorded([value.sum()], leaves, [None], create_graph=True)
    found = of_recorded(slopes, leaves, vectors.values())
    return {
        n: wrap(np.zeros_like(t.array)) if g is None else g
        for n, g, t in zip(vectors, found, leaves, strict=True)
    }
