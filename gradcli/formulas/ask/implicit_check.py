"""A hand-derived derivative of the function that an equation gives, against the true one: `-x/y` of a circle.

Both are compared where the equation holds, for there alone is the function: `-x/sqrt(1 - x**2)` is right on
the upper half of the circle, and says nothing of a point beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from gradcli.engine.core.tensor import wrap
from gradcli.formulas.algebra.generic_points import Arrays, Generic, quiet
from gradcli.formulas.ask.composed_derivatives import AskedDerivative, Forward, implied
from gradcli.formulas.ask.formula_check import formula_at, spelled
from gradcli.formulas.ask.likely_mistakes import likely_mistake
from gradcli.language import parse, run
from gradcli.language.located_errors import OPERATION_ERRORS, LanguageError
from gradcli.language.program import Program
from gradcli.transforms.tolerances import Comparison

RTOL = 1e-8  # of two numbers at a point that Newton's method found
HOLDS = 1e-9  # how far both sides may be apart, of the size of the larger
STEPS = 60  # of Newton's method
DRAWS = 80  # points from which it starts
SPREADS = (1.0, 4.0, 0.3)  # how far from 0 these lie


class Curve(NamedTuple):
    """The equation `left - right = 0` of numbers, and which of its variables is a function of the others.

    sides: the program of the tuple of both sides. names: what else the programs may read.
    """

    difference: Program
    sides: Program
    of: str
    names: Mapping[str, Any]

    def apart(self, arrays: Arrays) -> float:
        """How far the sides are apart, of the size of the larger; infinite where they have no value."""
        with quiet():
            try:
                value = run(self.sides, {**self.names, **_tensors(arrays)}, write=_silent).value
                left, right = (float(np.asarray(getattr(v, "array", v))) for v in value)
            except (*OPERATION_ERRORS, LanguageError):
                return np.inf
        size = max(abs(left), abs(right))
        gap = abs(left - right)
        return gap / size if size and np.isfinite(gap) else (gap if np.isfinite(gap) else np.inf)

    def slope(self, name: str, order: int, arrays: Arrays) -> Any:
        """The derivative of the function by a variable at a point of the curve."""
        with quiet():
            forward = Forward(self.difference, _tensors(arrays), self.names)
            return np.asarray(implied(self.of, [name], order, forward)[name])

    def onto(self, arrays: Arrays) -> Arrays | None:
        """The point moved along the function's axis to where the equation holds; None where it ends nowhere.

        Newton's method: y - F/F_y.
        """
        y = float(arrays[self.of])
        for _ in range(STEPS):
            point = {**arrays, self.of: np.asarray(y)}
            with quiet():
                forward = Forward(self.difference, _tensors(point), self.names)
                try:
                    value = run(self.difference, {**self.names, **_tensors(point)}, write=_silent)
                    gap = float(np.asarray(value.value.array))
                    step = gap / float(forward.columns([self.of])[self.of])
                except (*OPERATION_ERRORS, LanguageError):
                    return None
            if not np.isfinite(step):
                return None
            y -= step
            if abs(step) <= 4e-16 * max(abs(y), 1e-3):
                break
        found = {**arrays, self.of: np.asarray(y)}
        return found if self.apart(found) < HOLDS else None

    def points(self, arrays: Arrays, free: list[str], seed: int) -> Iterator[Arrays]:
        """Points of the curve, made from the given ones by other numbers for what is free."""
        # Any numbers for what is free, then Newton's method for the rest: x**2 + y**2 == 25 has a point
        # for x = 1.3 and none for x = 7, so more are drawn than needed, from several ranges.
        rng = Generic(seed)
        for number in range(DRAWS):
            spread = SPREADS[number % len(SPREADS)]
            drawn = {n: np.asarray(rng.uniform(-spread, spread, ())) for n in free}
            found = self.onto({**arrays, **drawn})
            if found is not None:
                yield found


def compare_implicit(curve: Curve, text: str, name: str, order: int, arrays: Arrays) -> Comparison:
    """Compare the derivative of a curve's function with a formula, at a point of the curve."""
    formula = parse(text)

    def given(arrays: Arrays) -> Any:
        return formula_at(formula, {**curve.names, **_tensors(arrays)}, curve.difference)

    def true(program: Program, arrays: Arrays) -> Any:
        return curve._replace(difference=program).slope(name, order, arrays)

    found = Comparison(given(arrays), true(curve.difference, arrays), RTOL, None)
    if not found.ok:
        asked = AskedDerivative(order, of=curve.of)
        found.derivative = spelled(asked, curve.difference, arrays, name, curve.names)
        found.mistake = likely_mistake(curve.difference, arrays, name, given, true, None)
    return found


def _tensors(arrays: Arrays) -> dict[str, Any]:
    return {n: wrap(np.array(a)) for n, a in arrays.items()}


def _silent(text: str) -> None:
    """Nothing: what the program prints has no place here."""
