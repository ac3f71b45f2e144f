"""The spread of a program's value over the uncertainties of its variables, beyond what the gradient tells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gradcli.columns.streaming import uncertainty_law
from gradcli.columns.streaming.mapped_program import Rows
from gradcli.columns.streaming.nonlinear_spread import Inputs, Run, Spreads, spreads
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
) -> Spreads | None:
    """The spread by draws, or to the second order where that is needed; None where the first order will do.

    variables: the tensors with an uncertainty, and the others. errors, covariances: with a leading 1, as
    `uncertainty_law` has them. first: the uncertainty to the first order.
    """
    moved, fixed = variables
    x, spread, related = inputs_of(moved, errors, covariances)
    inside = spread > 0
    if not inside.any():
        return None
    shapes = {n: tuple(t.shape) for n, t in moved.items()}
    run = _runs(request, shapes, fixed, x, inside)
    return one_spread(run, (x, spread, related), value, first, draws)


Numbers = tuple[Any, Any, Any]  # x (k,), their uncertainties (k,), covariances (1, k, k) or None


def inputs_of(
    moved: Mapping[str, Any],
    errors: Mapping[str, Any],
    covariances: Mapping[tuple[str, str], Any],
) -> Numbers:
    """The numbers of tensors with an uncertainty, one after the other."""
    shapes = {n: tuple(t.shape) for n, t in moved.items()}
    x = np.concatenate([np.ravel(t.detach().array).astype(np.float64) for t in moved.values()])
    spread = np.concatenate(
        [np.broadcast_to(errors[n][0], shapes[n]).ravel().astype(np.float64) for n in moved]
    )
    return x, spread, uncertainty_law.matrices(shapes, covariances)


def one_spread(
    run: Run, numbers: Numbers, value: float, first: float, draws: int | None
) -> Spreads | None:
    """As `spread_of`, of anything that is a function of numbers: of those whose uncertainty is not 0.

    The squares of the result are those of all numbers.
    """
    x, spread, related = numbers
    inside = spread > 0
    if not inside.any():
        return None
    if related is not None:
        related = related[:, inside][:, :, inside]
    inputs = Inputs(x[inside, None], spread[inside, None], related)
    with dtypes.as_default(dtypes.float64), np.errstate(all="ignore"):
        try:
            found = spreads(run, inputs, np.array([first]), np.array([value]), draws)
        except (RuntimeError, ArithmeticError, ValueError, TypeError, LanguageError):
            if draws is not None:
                raise
            return None  # it cannot be run elsewhere: what is known is the first order
    if found.by(0) is None:
        return None
    squares = np.zeros((1, len(x)))
    squares[:, inside] = found.squares
    return found._replace(squares=squares)


def _runs(
    request: Request,
    shapes: Mapping[str, tuple[int, ...]],
    fixed: Mapping[str, Any],
    x: Any,
    inside: Any,
) -> Run:
    """The program's values at points of the numbers that move, as a function of their rows."""
    names: dict[str, Any] = {**request.loaded}
    for name, tensor in fixed.items():
        names[name] = tensor.detach().double() if tensor.is_floating_point() else tensor.detach()

    def one(**given: Any) -> Any:
        made = run(request.program, {**names, **given}, write=_silent).value
        return as_tensor(made).detach().reshape(())

    rows = Rows(one, {}, [])

    def at(points: Any, index: Any) -> Any:
        count = points.shape[1]
        whole = np.broadcast_to(x, (count, len(x))).copy()
        whole[:, inside] = points.T
        batch, start = {}, 0
        for name, shape in shapes.items():
            size = int(np.prod(shape))
            batch[name] = whole[:, start : start + size].reshape(-1, *shape)
            start += size
        if count <= _FEW:
            each = [{n: wrap(np.array(a[k])) for n, a in batch.items()} for k in range(count)]
            return np.array([float(one(**given).item()) for given in each])
        found = rows(batch, count)
        if found.refused:
            raise found.refused[min(found.refused)]
        return np.asarray(found.values[""], np.float64)

    return at


def _silent(text: str) -> None:
    """What a program prints is printed once, when it runs for its value."""


__all__ = ["Numbers", "inputs_of", "one_spread", "spread_of"]
