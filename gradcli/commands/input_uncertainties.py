"""The uncertainties of several numbers that come of the same inputs, and how they are related."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.columns.streaming.uncertainty_law import (
    impossible,
    squares,
    too_strong,
    total,
    with_second_order,
)
from gradcli.commands import output
from gradcli.commands.command_errors import usage
from gradcli.commands.correlations import asked_alone, matrix_lines, of_covariance, to_json
from gradcli.commands.spread_of_programs import inputs_of, one_spread
from gradcli.commands.uncertainty import (
    Texts,
    budget_lines,
    budget_of,
    budget_to_json,
    spread_note,
    to_plain,
    with_uncertainty,
)
from gradcli.engine.system import dtypes

if TYPE_CHECKING:
    from gradcli.commands.output import Style
    from gradcli.commands.request import Request

Array = Any
OBJECTIVE = "value"  # beside the unknown numbers, that of a minimum


class Uncertain(NamedTuple):
    """A number with its uncertainty, what each input adds to its square, and its slope by each input."""

    value: float
    error: float
    parts: dict[str, float]
    slope: Array


class InputUncertainties:
    """The inputs of a command line that have an uncertainty, and what they do to the numbers of a result."""

    def __init__(self, request: Request, options: Any) -> None:
        self.request, self.budget = request, options.budget
        self.draws: int | None = options.monte_carlo
        self.texts = Texts(request, options)
        self.asked = asked_alone(options)

    def read(self, inputs: dict[str, Any]) -> None:
        """Read the uncertainties of these tensors. Raises LanguageError."""
        self.inputs = inputs
        for name, tensor in inputs.items():
            if tensor.is_complex():
                raise usage(f"{name} is complex: an uncertainty is one of a real number")
        self.shapes = {n: tuple(t.shape) for n, t in inputs.items()}
        self.errors, self.covariances = self.texts.read(inputs)
        self.numbers = inputs_of(inputs, self.errors, self.covariances)

    def of_elements(
        self,
        labels: Sequence[str],
        values: Array,
        slopes: Array,
        moved: Callable[[Array], Array],
    ) -> dict[str, Uncertain]:
        """The uncertainties of numbers, by what they are called.

        slopes: by the inputs, a row a number. moved: the numbers for inputs (n, inputs), as (n, numbers).
        """
        found = {}
        for k, label in enumerate(labels):

            def at(points: Array, k: int = k) -> Array:
                return moved(points)[:, k]

            found[label] = self.one(label, float(values[k]), slopes[k], at)
        return found

    def one(
        self, label: str, value: float, slope: Array, at: Callable[[Array], Array]
    ) -> Uncertain:
        """The uncertainty of one number with this gradient by the inputs."""
        gradients, start = {}, 0
        for name, shape in self.shapes.items():
            size = int(np.prod(shape))
            gradients[name] = slope[start : start + size].reshape(1, *shape)
            start += size
        with np.errstate(invalid="ignore"):
            parts = squares(gradients, self.errors, self.covariances)
        if impossible(self.errors, self.covariances, parts).any():
            raise too_strong()
        error = float(total(parts)[0])
        x, spread, _ = self.numbers
        inside = spread > 0

        def run(points: Array, index: Array) -> Array:
            whole = np.broadcast_to(x, (points.shape[1], len(x))).copy()
            whole[:, inside] = points.T
            return at(whole)

        with dtypes.as_default(dtypes.float64), np.errstate(all="ignore"):
            found = one_spread(run, self.numbers, value, error, self.draws)
        if found is not None:
            output.note(spread_note(found, error, label))
            parts, error = with_second_order(parts, self.shapes, found), float(found.errors[0])
        return Uncertain(value, error, {n: float(s[0]) for n, s in parts.items()}, slope)

    def lines(self, found: Mapping[str, Uncertain], style: Style) -> list[tuple[str | None, Any]]:
        """The lines of a point: each number with its uncertainty, and the shares of inputs if asked."""
        made: list[tuple[str | None, Any]] = []
        exact = partial(with_uncertainty, precision=style.precision)
        written = to_plain if style.form == "plain" else exact
        for label, one in found.items():
            made.append((label, written(one.value, one.error)))
            if self.budget:
                made += budget_lines(budget_of(one.parts, one.error), style, f"{label}.")
        if self.asked:
            names, matrices = self._matrices(found)
            for kind in self.asked:
                if style.typeset is not None:
                    digits = f"%.{style.precision or 4}g"
                    rows = [[float(digits % one) for one in row] for row in matrices[kind]]
                    made.append((kind, np.array(rows)))
                else:
                    made += matrix_lines(kind, names, matrices[kind], style)
        return made

    def _matrices(self, found: Mapping[str, Uncertain]) -> tuple[list[str], dict[str, Array]]:
        """The unknown numbers, and the matrices of their covariances and correlations.

        The correlations are those to the first order; times the uncertainties they are the covariances.
        """
        names = [name for name in found if name != OBJECTIVE]
        _, spread, related = self.numbers
        inputs = np.diag(spread**2) + (0.0 if related is None else related[0])
        slopes = np.stack([found[n].slope[-len(spread) :] for n in names])
        correlation = of_covariance(slopes @ inputs @ slopes.T)
        errors = np.array([found[n].error for n in names])
        covariance = correlation * np.outer(errors, errors)
        return names, {"covariance": covariance, "correlation": correlation}

    def to_json(self, found: Mapping[str, Uncertain]) -> dict[str, Any]:
        """By label: the uncertainty, and the budget if it is asked for."""
        made: dict[str, Any] = {
            "uncertainties": {n: output.to_json(u.error) for n, u in found.items()}
        }
        names, matrices = self._matrices(found)
        made |= {kind: to_json(names, matrix) for kind, matrix in matrices.items()}
        if self.budget:
            made["budgets"] = {
                n: budget_to_json(budget_of(u.parts, u.error)) for n, u in found.items()
            }
        return made


__all__ = ["OBJECTIVE", "InputUncertainties", "Uncertain"]
