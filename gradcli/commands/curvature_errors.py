"""Standard errors of a point that minimizes a negative log-likelihood, from the curvature there."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.commands import output
from gradcli.commands.command_errors import usage
from gradcli.commands.correlations import asked_alone, matrix_lines, of_covariance, to_json
from gradcli.commands.moved_uncertainty import labels
from gradcli.commands.question import Answer
from gradcli.commands.uncertainty import to_plain, with_uncertainty

if TYPE_CHECKING:
    from gradcli.columns.optimize.minima import Minimum
    from gradcli.columns.optimize.spaces import Space
    from gradcli.commands.declarations import Options
    from gradcli.commands.request import Request


def check(request: Request, options: Options) -> None:
    """Refuse uncertainties of inputs beside --errors: these are other errors."""
    related = [*options.uncertainty, *options.covariance, *options.correlation]
    given = len(related) - len(asked_alone(options))
    if request.uncertainties or given or options.budget or options.monte_carlo is not None:
        raise usage(
            "--errors cannot be used with uncertainties of values", hint="leave out one of them"
        )


def added(answer: Answer, space: Space, found: Minimum, options: Options) -> Answer:
    """An answer with the errors in place of the numbers of its point."""
    matrix = found.covariance
    if matrix is None:
        output.note(f"there are no errors: {found.kind}")
        return answer
    style, names = answer.request.style, labels(space)
    errors = np.sqrt(np.maximum(np.diagonal(matrix), 0.0))
    written = (
        to_plain if style.form == "plain" else partial(with_uncertainty, precision=style.precision)
    )
    lines: list[tuple[str | None, Any]] = []
    for name, value, error in zip(names, found.x.tolist(), errors.tolist(), strict=True):
        lines.append((name, written(value, error) if error else value))
        if not error:
            output.note(f"{name} is held by a bound or a constraint, and has no error")
    matrices = {"covariance": matrix, "correlation": of_covariance(matrix)}
    for kind in asked_alone(options):
        lines += matrix_lines(kind, names, matrices[kind], style)
    keys, before = answer.keys, len(space.start)
    made = {
        "errors": dict(zip(names, map(output.to_json, errors.tolist()), strict=True)),
        **{kind: to_json(names, one) for kind, one in matrices.items()},
    }
    results = [*lines, *answer.results[before:]]
    return Answer(answer.request, results, lambda precision: {**keys(precision), **made})


__all__ = ["added", "check"]
