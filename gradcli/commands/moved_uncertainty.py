"""The uncertainties of a root or a minimum, from those of the numbers that it depends on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.columns.optimize import evidence
from gradcli.columns.optimize.moved_points import MovedPoint, Point
from gradcli.columns.optimize.spaces import Compiled, Space
from gradcli.columns.streaming.mapped_program import Rows
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
from gradcli.commands.question import Answer
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
from gradcli.engine.registry.table import resolve
from gradcli.engine.system import dtypes
from gradcli.torch import func

if TYPE_CHECKING:
    from gradcli.commands.output import Style
    from gradcli.commands.request import Request

Array = Any
_TINY = 1e-24  # so that a root of squares has a slope where both are 0
_OBJECTIVE = "value"  # beside the unknown numbers, that of a minimum
_ROUNDING = 1e-12  # of what the inputs change the value by, a change that is none


class Uncertain(NamedTuple):
    """A number with its uncertainty, what each input adds to its square, and its slope by each input."""

    value: float
    error: float
    parts: dict[str, float]
    slope: Array


class MovedUncertainties:
    """The inputs of a command line that have an uncertainty, and what they do to points.

    Such inputs stay: they are no unknown numbers. Raises LanguageError for one that --wrt names.
    """

    def __init__(self, request: Request, options: Any) -> None:
        self.request, self.budget = request, options.budget
        self.draws: int | None = options.monte_carlo
        self.texts = Texts(request, options)
        self.asked = asked_alone(options)
        for name in self.texts.errors:
            if name in (request.wrt or ()):
                raise usage(
                    f"--wrt: {name} is sought and has an uncertainty",
                    hint=f"leave out one of them: a start is a number, --{name} VALUE",
                )
        kept = [n for n in self.texts.errors if n not in request.no_grad]
        if kept and request.wrt is None:
            held = (
                "is held at its value: its uncertainty goes"
                if len(kept) == 1
                else "are held at their values: their uncertainties go"
            )
            output.note(f"{', '.join(kept)} {held} into the result")
        request.no_grad = [*request.no_grad, *kept]

    def joint(self, space: Space) -> Space:
        """The unknown numbers, then the inputs, as one space; reads the uncertainties."""
        self.inputs = {n: space.fixed[n] for n in self.texts.errors}
        for name, tensor in self.inputs.items():
            if tensor.is_complex():
                raise usage(f"{name} is complex: an uncertainty is one of a real number")
        self.shapes = {n: tuple(t.shape) for n, t in self.inputs.items()}
        self.errors, self.covariances = self.texts.read(self.inputs)
        self.numbers = inputs_of(self.inputs, self.errors, self.covariances)
        fixed = {n: v for n, v in space.fixed.items() if n not in self.inputs}
        arrays = {n: t.detach().array for n, t in self.inputs.items()}
        return Space({**space.start, **arrays}, fixed)

    def of_root(self, space: Space, x: Array) -> dict[str, Uncertain]:
        """The uncertainties of a root, by the names of its numbers."""
        joint = self.joint(space)
        moved = MovedPoint(joint.differences(self.request.program), Point.free(x, self.numbers[0]))
        return self._of_elements(space, moved, x)

    def of_minimum(
        self, space: Space, x: Array, value: float, bounds: Any, subject: Any
    ) -> dict[str, Uncertain]:
        """Those of a minimum, and under "value" of the value there."""
        joint = self.joint(space)
        scalar, size, cat = joint.scalar(self.request.program), space.size, resolve("cat")
        program = self.request.program
        own = evidence.Problem(space.objective(program), bounds, space.relations(subject, program))
        pieces = [one for text in subject for _, one in joint.differences_of(text, program)]
        held = evidence.multipliers(own, x) if pieces else []
        weights = np.concatenate([np.zeros(0), *held])
        count = len(weights)
        ends = np.cumsum([0, *map(len, held)]).tolist()

        def parts(z: Any) -> tuple[Any, Any, list[Any]]:
            """(multipliers, the variables with the inputs, each constraint's difference, positive inside)."""
            point = cat([z[:size], z[size + count :]])
            signs = [evidence.sign(relation) for relation, _ in own.constraints]
            made = [side * piece(point) for side, piece in zip(signs, pieces, strict=True)]
            return z[size : size + count], point, made

        def lagrangian(z: Any) -> Any:
            multipliers, point, differences = parts(z)
            value = scalar(point)
            return value - (multipliers * cat(differences)).sum() if differences else value

        gradient = func.grad(lagrangian)

        def residuals(z: Any) -> Any:
            """Of each inequality c >= 0 with multiplier m: m + c - √(m² + c²) is 0 where one of them is."""
            multipliers, _, differences = parts(z)
            made = [gradient(z)[:size]]
            for k, c in enumerate(differences):
                m = multipliers[ends[k] : ends[k + 1]]
                equal = own.constraints[k][0] == "eq"
                made.append(c if equal else m + c - (m * m + c * c + _TINY).sqrt())
            return cat(made)

        lower, upper = (
            np.concatenate([b, np.full(count, s * np.inf)])
            for b, s in zip(bounds, (-1, 1), strict=True)
        )
        near = 1e-7 * (1 + np.abs(x))
        x = np.where(x - bounds[0] <= near, bounds[0], x)
        x = np.where(bounds[1] - x <= near, bounds[1], x)
        y = np.concatenate([x, weights])
        point = Point(y, self.numbers[0], lower, upper)
        moved = MovedPoint(residuals, point, 0 if pieces else size)
        found = self._of_elements(space, moved, x)
        slope = Compiled(lagrangian, len(y) + len(self.numbers[0])).value_and_gradient(
            np.concatenate([y, self.numbers[0]])
        )[1][len(y) :]
        rows = Rows(lagrangian, {}, [])

        def values(points: Array) -> Array:
            made, still = (
                np.asarray(rows({"z": np.concatenate(z, axis=1)}, len(points)).values[""])
                for z in ((moved(points), points), (np.repeat(y[None], len(points), 0), points))
            )
            rounded = np.abs(made - value) <= _ROUNDING * np.abs(still - value)
            return np.where(rounded, value, made)

        return {**found, _OBJECTIVE: self._one(_OBJECTIVE, value, slope, values)}

    def _of_elements(self, space: Space, moved: MovedPoint, x: Array) -> dict[str, Uncertain]:
        slopes = moved.slopes()
        found = {}
        for k, label in enumerate(labels(space)):

            def at(points: Array, k: int = k) -> Array:
                return moved(points)[:, k]

            found[label] = self._one(label, float(x[k]), slopes[k], at)
        return found

    def _one(
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
                made += matrix_lines(kind, names, matrices[kind], style)
        return made

    def _matrices(self, found: Mapping[str, Uncertain]) -> tuple[list[str], dict[str, Array]]:
        """The unknown numbers, and the matrices of their covariances and correlations.

        The correlations are those to the first order; times the uncertainties they are the covariances.
        """
        names = [name for name in found if name != _OBJECTIVE]
        _, spread, related = self.numbers
        inputs = np.diag(spread**2) + (0.0 if related is None else related[0])
        slopes = np.stack([found[n].slope[-len(spread) :] for n in names])
        correlation = of_covariance(slopes @ inputs @ slopes.T)
        errors = np.array([found[n].error for n in names])
        covariance = correlation * np.outer(errors, errors)
        return names, {"covariance": covariance, "correlation": correlation}

    def added(self, answer: Answer, found: Mapping[str, Uncertain], last: str) -> Answer:
        """An answer with the uncertainties in place of the lines up to one of this name."""
        at = [name for name, _ in answer.results].index(last) + 1
        results = [*self.lines(found, answer.request.style), *answer.results[at:]]
        keys = answer.keys
        return Answer(
            answer.request, results, lambda precision: {**keys(precision), **self.to_json(found)}
        )

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


def labels(space: Space) -> list[str]:
    """What the unknown numbers are called: x, or v[0], v[1], …"""
    made = []
    for name, array in space.start.items():
        places = np.ndindex(array.shape)
        made += [f"{name}[{','.join(map(str, p))}]" if p else name for p in places]
    return made


__all__ = ["MovedUncertainties", "Uncertain", "labels"]
