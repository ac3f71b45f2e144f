"""The spread of a program's value over the uncertainties of its variables, beyond what the gradient tells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gradcli.columns.streaming.mapped_program import Rows
from gradcli.columns.streaming.nonlinear_spread import SAME, At, Spread, beyond_first_order, sampled
from gradcli.commands.request import Request
from gradcli.engine.core.tensor import wrap
from gradcli.engine.system import dtypes
from gradcli.language import as_tensor, run
from gradcli.language.located_errors import LanguageError

_FEW = 64  # points that are run one by one: to compile takes longer


def spread_of(
    request: Request,
    value: float,
    variables: tuple[Mapping[str, Any], Mapping[str, Any]],
    errors: Mapping[str, Any],
    covariances: Mapping[tuple[str, str], Any],
    first: float,
    draws: int | None,
) -> Spread | None:
    """The spread by draws, or to the second order where that is needed; None where the first order will do.

    variables: the tensors with an uncertainty, and the others. errors, covariances: with a leading 1, as
    `uncertainty_law` has them. first: the uncertainty to the first order.
    """
    moved, fixed = variables
    shapes = {n: tuple(t.shape) for n, t in moved.items()}
    x = np.concatenate([np.ravel(t.detach().array).astype(np.float64) for t in moved.values()])
    spread = np.concatenate(
        [np.broadcast_to(errors[n][0], shapes[n]).ravel().astype(np.float64) for n in moved]
    )
    covariance = _covariance(shapes, spread, covariances)
    inside = spread > 0
    if not inside.any():
        return None
    at = _at(request, shapes, fixed, x, inside)
    kept = covariance[np.ix_(inside, inside)]
    with dtypes.as_default(dtypes.float64), np.errstate(all="ignore"):
        if draws is not None:
            return sampled(at, x[inside], kept, draws)
        try:
            here = float(at(x[None, inside])[0])
            if not abs(here - value) <= SAME * abs(value):  # a draw, a step of integers
                return None
            return beyond_first_order(at, x[inside], spread[inside], kept, first)
        except (RuntimeError, ArithmeticError, ValueError, TypeError, LanguageError):
            return None  # it cannot be run elsewhere: what is known is the first order


def _at(
    request: Request,
    shapes: Mapping[str, tuple[int, ...]],
    fixed: Mapping[str, Any],
    x: Any,
    inside: Any,
) -> At:
    """The program's values at points of the numbers that move, as a function of their rows."""
    names: dict[str, Any] = {**request.loaded}
    for name, tensor in fixed.items():
        names[name] = tensor.detach().double() if tensor.is_floating_point() else tensor.detach()

    def one(**given: Any) -> Any:
        made = run(request.program, {**names, **given}, write=_silent).value
        return as_tensor(made).detach().reshape(())

    rows = Rows(one, {}, [])

    def at(points: Any) -> Any:
        whole = np.broadcast_to(x, (len(points), len(x))).copy()
        whole[:, inside] = points
        batch, start = {}, 0
        for name, shape in shapes.items():
            size = int(np.prod(shape))
            batch[name] = whole[:, start : start + size].reshape(-1, *shape)
            start += size
        if len(points) <= _FEW:
            each = [{n: wrap(np.array(a[k])) for n, a in batch.items()} for k in range(len(points))]
            return np.array([float(one(**given).item()) for given in each])
        found = rows(batch, len(points))
        if found.refused:
            raise found.refused[min(found.refused)]
        return np.asarray(found.values[""], np.float64)

    return at


def _covariance(
    shapes: Mapping[str, tuple[int, ...]],
    spread: Any,
    covariances: Mapping[tuple[str, str], Any],
) -> Any:
    """The covariance matrix of all numbers, one after the other."""
    starts, start = {}, 0
    for name, shape in shapes.items():
        starts[name] = start
        start += int(np.prod(shape))
    made = np.diag(spread**2)
    for (one, other), covariance in covariances.items():
        rows = slice(starts[one], starts[one] + int(np.prod(shapes[one])))
        columns = slice(starts[other], starts[other] + int(np.prod(shapes[other])))
        shape = (rows.stop - rows.start, columns.stop - columns.start)
        block = covariance[0]
        if block.shape != shape:  # of elements at the same place
            block = np.diag(np.broadcast_to(block, shapes[one]).ravel())
        made[rows, columns] += block
        made[columns, rows] += block.T
    return made


def _silent(text: str) -> None:
    """What a program prints is printed once, when it runs for its value."""


__all__ = ["spread_of"]
