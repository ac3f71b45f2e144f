"""Derivatives at removable points: `where(x != 0, sin(x)/x, 1)` has the second derivative -1/3 at 0.

A single point has no slope of its own, so that what the branch of the point gives, 0, is no derivative. If
the program is smooth there, the derivative is the limit, which the Taylor series of the program says.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import factorial

import numpy as np

from gradcli.engine.core.tensor import wrap
from gradcli.formulas.algebra import algebra as alg
from gradcli.formulas.algebra.expression_evaluation import evaluate
from gradcli.formulas.algebra.expressions import Expression, is_call, number, order
from gradcli.formulas.algebra.generic_points import Arrays, quiet
from gradcli.formulas.algebra.rewriting import rewrite
from gradcli.formulas.algebra.spelling import NoExpression
from gradcli.formulas.ask.taylor_series import LOST, series_of
from gradcli.formulas.derive.differentiate import PI, Derivatives
from gradcli.formulas.simplify.simplify import simplify

NEAR = (0.02, 0.01)  # from the point: where a limit is compared with the derivative around it


def with_limits(found: Derivatives, arrays: Arrays) -> None:
    """Put the limits into the derivatives, in place, at the points that the program itself tells apart."""
    if any(map(np.ndim, arrays.values())) or not found.real:
        return
    for variable, point, condition in _points(found.value):
        own = found.by.get(variable.data)
        if own is not None and (made := _limit(found, variable, point, own, arrays)) is not None:
            found.by[variable.data] = alg.where(condition, _beside(own, condition), made)


def _points(value: Expression) -> Iterator[tuple[Expression, Expression, Expression]]:
    """(variable, point, condition) of each `where(variable != point, …)`."""
    for condition in dict.fromkeys(n.args[0] for n in order([value]) if is_call(n, "where")):
        if is_call(condition, "ne", "eq"):
            variable, point = condition.args
            if variable.op == "name" and variable not in PI and not _names(point):
                yield variable, point, alg.function("ne", variable, point)


def _names(expression: Expression) -> set[Expression]:
    return {n for n in order([expression]) if n.op == "name" and n not in PI}


def _limit(
    found: Derivatives, variable: Expression, point: Expression, own: Expression, arrays: Arrays
) -> Expression | None:
    """The limit of a derivative at a point where it has another value; None if there is none."""
    times = len(found.lower) + 1
    others = {n: wrap(np.asarray(arrays[n.data])) for n in _names(found.value) if n is not variable}
    with quiet():
        (at,) = evaluate([point], PI)
        place = float(at)

        def value(expression: Expression, x: float) -> float:
            known = {**PI, **others, variable: wrap(np.float64(x))}
            return float(evaluate([expression], known)[0])

        # Each division by x takes a term away, as in sin(x)/x, so that the series may be too short for
        # this coefficient. It is made longer until the derivatives beside the point tend to what it
        # gives.
        for lost in LOST:
            try:
                series = series_of(found.value, variable, point, times + 1 + lost)
            except NoExpression:
                return None
            terms = [alg.zero] * series.first + series.terms + [alg.zero] * (times + 1)
            if series.first < 0 or not np.isclose(
                value(terms[0], place), value(found.value, place)
            ):
                return None
            made = simplify(alg.multiply(number(factorial(times)), terms[times]))
            limit = value(made, place)
            apart = [abs((value(own, place + h) + value(own, place - h)) / 2 - limit) for h in NEAR]
            if apart[1] <= apart[0] / 2 + 1e-6 * max(1.0, abs(limit)):
                return None if np.isclose(limit, value(own, place), 1e-9, 1e-12) else made
    return None


def _beside(own: Expression, condition: Expression) -> Expression:
    """An expression where a condition is true."""
    opposite = alg.function("eq", *condition.args)

    def chosen(node: Expression) -> Expression:
        if is_call(node, "where") and node.args[0] in (condition, opposite):
            return node.args[1 if node.args[0] is condition else 2]
        return node

    return rewrite(own, chosen)


__all__ = ["with_limits"]
