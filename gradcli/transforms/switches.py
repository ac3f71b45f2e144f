"""Where programs do something else (comparisons, kinks, jumps), and on which sides of that points lie."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from gradcli.engine.core import modes
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.engine.registry.table import is_analytic
from gradcli.language.located_errors import LanguageError
from gradcli.language.program import Program

Interval = tuple[float, float]
Side = tuple[str, frozenset[Any]]

FAR = (10.0, 100.0)  # of points that no constant of a program speaks of
LIES = {1.0: "above", 0.0: "on", -1.0: "below"}  # a result beside its operand
LARGEST = 1e100  # number that is looked at
MOST = 8  # points that are added


def intervals(programs: Iterable[Program]) -> list[Interval]:
    """Where to look for what programs do: around the numbers in them, between these, and farther off.

    Of a few numbers around their products and quotients too: relu(x/100 - 3) begins at 300.
    """
    numbers = {abs(float(c)) for p in programs for c in p.constants if type(c) in (int, float)}
    own = sorted(c for c in numbers if 0 < c < LARGEST)
    more = (
        [n for a, b in combinations(own, 2) for n in (a * b, a / b, b / a)] if len(own) < 4 else []
    )
    finite = sorted({*own, *more})
    signed = sorted({0.0, *finite, *(-c for c in finite)})
    around = [(c - r, c + r) for c in (*finite, *(-c for c in finite)) for r in (1.0, 0.1)]
    return [*around, *pairwise(signed), *((-s, s) for s in FAR)]


class Sides:
    """The sides of switches on which points lie: which of them are new.

    functions: a program, and a formula for its gradient, that has switches of its own.
    """

    def __init__(self, functions: Sequence[Callable[..., Any]]) -> None:
        self.functions = functions
        self.seen: set[tuple[int, Side]] = set()
        self.together: set[tuple[Side, ...]] = set()

    def is_new(self, arrays: Mapping[str, Any], far: bool = False) -> bool:
        """Whether a point lies as none before it did; far: only if a comparison goes as it never went."""
        every = [sides(f, arrays) for f in self.functions]
        found = [side for own in every for side in own or ()]
        truths = {
            (k, side) for k, side in enumerate(found) if not side[1].isdisjoint({True, False})
        }
        if None in every or (far and self.seen.issuperset(truths)):
            return False
        new = tuple(found) not in self.together
        self.seen.update(enumerate(found))
        self.together.add(tuple(found))
        return new and bool(found)


def sides(function: Callable[..., Any], arrays: Mapping[str, Any]) -> list[Side] | None:
    """On which sides of its switches the elements of a program's values lie, in the order of its run.

    Of a comparison these are its truth values. Of what is not smooth (relu, clamp, abs, maximum) they are
    whether its result is its operand, or lies above or below it. None where the program does not run.
    """
    found: list[Side] = []

    def see(row: Any, values: Any, made: Any) -> None:
        if is_analytic(row):
            return
        own, first = made[0].array, values[0] if values else None
        if own.dtype.kind == "b":
            found.append((row.public_name, frozenset(np.unique(own).tolist())))
        elif isinstance(first, Tensor) and first.shape == own.shape and own.dtype.kind == "f":
            gaps = np.unique(np.sign(own - first.array))
            found.append(
                (row.public_name, frozenset(LIES.get(gap, "nowhere") for gap in gaps.tolist()))
            )

    before = modes.change(intercept=see)
    try:
        with np.errstate(all="ignore"):
            function(**{n: wrap(np.array(a)) for n, a in arrays.items()})
    except (LanguageError, RuntimeError):
        return None
    finally:
        modes.restore(before)
    return found
