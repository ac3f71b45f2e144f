"""The uncertainties of a root or a minimum, from those of the numbers that it depends on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.columns.optimize import evidence
from gradcli.columns.optimize.moved_points import MovedPoint, Point
from gradcli.columns.optimize.spaces import Compiled, Space
from gradcli.columns.streaming.mapped_program import Rows
from gradcli.commands import output
from gradcli.commands.command_errors import usage
from gradcli.commands.input_uncertainties import OBJECTIVE, InputUncertainties, Uncertain
from gradcli.commands.question import Answer
from gradcli.engine.registry.table import resolve
from gradcli.torch import func

if TYPE_CHECKING:
    from gradcli.commands.request import Request

Array = Any
_TINY = 1e-24  # so that a root of squares has a slope where both are 0
_ROUNDING = 1e-12  # of what the inputs change the value by, a change that is none


class MovedUncertainties(InputUncertainties):
    """The inputs that have an uncertainty, and what they do to points.

    Such inputs stay: they are no unknown numbers. Raises LanguageError for one that --wrt names.
    """

    def __init__(self, request: Request, options: Any) -> None:
        super().__init__(request, options)
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
        self.read({n: space.fixed[n] for n in self.texts.errors})
        fixed = {n: v for n, v in space.fixed.items() if n not in self.inputs}
        arrays = {n: t.detach().array for n, t in self.inputs.items()}
        return Space({**space.start, **arrays}, fixed)

    def of_root(self, space: Space, x: Array) -> dict[str, Uncertain]:
        """The uncertainties of a root, by the names of its numbers."""
        joint = self.joint(space)
        moved = MovedPoint(joint.differences(self.request.program), Point.free(x, self.numbers[0]))
        return self.of_elements(labels(space), x, moved.slopes(), moved)

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
        found = self.of_elements(labels(space), x, moved.slopes(), moved)
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

        return {**found, OBJECTIVE: self.one(OBJECTIVE, value, slope, values)}

    def added(self, answer: Answer, found: Mapping[str, Uncertain], last: str) -> Answer:
        """An answer with the uncertainties in place of the lines up to one of this name."""
        at = [name for name, _ in answer.results].index(last) + 1
        results = [*self.lines(found, answer.request.style), *answer.results[at:]]
        keys = answer.keys
        return Answer(
            answer.request, results, lambda precision: {**keys(precision), **self.to_json(found)}
        )


def labels(space: Space) -> list[str]:
    """What the unknown numbers are called: x, or v[0], v[1], …"""
    made = []
    for name, array in space.start.items():
        places = np.ndindex(array.shape)
        made += [f"{name}[{','.join(map(str, p))}]" if p else name for p in places]
    return made


__all__ = ["MovedUncertainties", "labels"]
