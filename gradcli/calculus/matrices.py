"""Jacobians and Hessians of programs, all rows or all columns at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.calculus import batched
from gradcli.calculus.derivative import traced_run
from gradcli.calculus.trace import Traced, pullback
from gradcli.engine.tensor import Tensor, wrap
from gradcli.language import run
from gradcli.language.program import Program


class Matrices:
    """Jacobians by name, and how they were found: "forward" or "reverse", batched or row by row."""

    __slots__ = ("by", "method", "reason", "shape")

    def __init__(
        self, by: dict[str, Any], method: str, shape: tuple[int, ...], reason: str = ""
    ) -> None:
        self.by, self.method, self.shape, self.reason = by, method, shape, reason


def jacobian(
    program: Program,
    tensors: Mapping[str, Tensor],
    wrt: Sequence[str],
    names: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Matrices:
    """The Jacobian of a program's value by each variable: value.shape + variable.shape.

    By columns or by rows, whichever are fewer, unless mode ("forward" or "reverse") says. A program that
    cannot be traced is differentiated row by row on tensors, and `reason` says why.
    """
    arrays = {n: t.array for n, t in tensors.items()}
    try:
        with np.errstate(all="ignore"):
            value, variables, _ = traced_run(program, arrays, True, names or {})
            chosen = [variables[n] for n in wrt]
            columns = sum(int(v.value.size) for v in chosen)
            real = all(v.value.dtype.kind == "f" for v in [value, *chosen])
            pushes = real and batched.can_push(value)
            forward = mode == "forward" or (mode is None and columns < value.value.size)
            if forward and pushes:
                found = batched.forward(value, chosen)
            else:
                found = batched.reverse(value, chosen)
        method = "forward" if forward and pushes else "reverse"
        return Matrices(dict(zip(wrt, found, strict=True)), method, tuple(value.value.shape))
    except Exception as error:
        return _row_by_row(program, tensors, wrt, names or {}, error)


def _function(
    program: Program, tensors: Mapping[str, Tensor], wrt: Sequence[str], names: Mapping[str, Any]
) -> Any:
    def function(*given: Tensor) -> Any:
        own = dict(zip(wrt, given, strict=True))
        return run(program, {**names, **tensors, **own}).value

    return function


def _row_by_row(
    program: Program,
    tensors: Mapping[str, Tensor],
    wrt: Sequence[str],
    names: Mapping[str, Any],
    error: Exception,
) -> Matrices:
    from gradcli.calculus import functional

    function = _function(program, tensors, wrt, names)
    found = functional.jacobian(function, tuple(tensors[n] for n in wrt))
    shape = found[0].shape[: found[0].ndim - tensors[wrt[0]].ndim]
    by = {n: f.array for n, f in zip(wrt, found, strict=True)}
    return Matrices(by, "reverse, row by row", tuple(shape), str(error).splitlines()[0])


def hessian(
    program: Program,
    tensors: Mapping[str, Tensor],
    wrt: Sequence[str],
    names: Mapping[str, Any] | None = None,
) -> dict[str, dict[str, Any]]:
    """The second derivatives of a program's scalar value: by[x][y] has shape x.shape + y.shape.

    The gradient is traced, and its Jacobian taken with all rows at once; on tensors, row by row, where
    that cannot be.
    """
    arrays = {n: t.array for n, t in tensors.items()}
    try:
        with np.errstate(all="ignore"):
            value, variables, _ = traced_run(program, arrays, True, names or {})
            chosen = [variables[n] for n in wrt]
            grads = pullback(value, Traced(np.ones_like(value.value)), chosen)
            rows = [
                [np.zeros((*w.value.shape, *v.value.shape)) for v in chosen]
                if g is None
                else batched.reverse(g, chosen)
                for w, g in zip(chosen, grads, strict=True)
            ]
    except Exception:
        from gradcli.calculus import functional

        function = _function(program, tensors, wrt, names or {})
        blocks = functional.hessian(function, tuple(tensors[n] for n in wrt))
        rows = [[b.array for b in row] for row in blocks]
    return {
        n: dict(zip(wrt, (np.asarray(b)[()] for b in row), strict=True))
        for n, row in zip(wrt, rows, strict=True)
    }


def jvp(
    program: Program,
    tensors: Mapping[str, Tensor],
    vectors: Mapping[str, Tensor],
    names: Mapping[str, Any] | None = None,
) -> tuple[Any, Any]:
    """(value, its derivative along the vectors), by forward mode."""
    from gradcli.calculus import forward_ad

    with forward_ad.dual_level():
        duals = {n: forward_ad.make_dual(tensors[n].detach(), v) for n, v in vectors.items()}
        value = run(program, {**(names or {}), **tensors, **duals}).value
        if not isinstance(value, Tensor):
            return value, None
        primal, tangent = forward_ad.unpack_dual(value)
    return primal, wrap(np.zeros_like(primal.array)) if tangent is None else tangent


def hvp(
    program: Program,
    tensors: Mapping[str, Tensor],
    vectors: Mapping[str, Tensor],
    names: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The Hessian of a program's scalar value times the vectors, without the matrix."""
    from gradcli.calculus import functional

    wrt = list(vectors)
    function = _function(program, tensors, wrt, names or {})
    _, found = functional.hvp(
        function, tuple(tensors[n] for n in wrt), tuple(vectors[n] for n in wrt)
    )
    return dict(zip(wrt, found, strict=True))


__all__ = ["Matrices", "hessian", "hvp", "jacobian", "jvp"]
