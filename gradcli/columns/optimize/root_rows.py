"""An equation solved in every row of a table: Newton's method on whole columns, kept inside of brackets."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.columns.optimize.spaces import tensor_of
from gradcli.columns.streaming.mapped_program import Results, Rows
from gradcli.engine.core import errors
from gradcli.language import run
from gradcli.language.equations import all_sides
from gradcli.language.located_errors import LanguageError
from gradcli.language.program import Program

Array = np.ndarray[Any, Any]

_NOT_ONE_NUMBER = LanguageError(
    "the equation of a row must be one of real numbers",
    kind="value",
    usage=False,
    hint="a table's row gives one number to each column",
)
_Evaluated = Callable[[Mapping[str, Any], int], Results]
_TURNS = 200
_EPS = float(np.finfo(float).eps)
_SHORT = 1e-7  # of a point, a step of Newton's that is smaller is none
_AGAIN = 1e-12  # how far from a root it may be found again
_SMALL = 1e-6  # of the difference at the start, that at a root
_STEEP = 1e-2  # the same, where rounding is all of the difference
_ROUNDED = 1e-10  # of the sides, what their difference may be at a root
# Two points on each side of a root, by which it is told from a plateau (a double root has values there), and
# what a difference of sides is there that is rounding alone.
BESIDE, ROUNDING = ((-1e-3, -6e-4), (6e-4, 1e-3)), 8 * _EPS
_FLAT = 1e3  # times the rounding, what a root's slope promises there where these points are asked
_VAGUE = 1e-6  # of a root: one that rounding moves by more is counted
_REACH = np.exp2(np.arange(-3, 11))  # of the start, how far away a change of sign is looked for


def reach_beside(x: Array) -> Array:
    """The scale of numbers; of one that is nearly 0, a small one."""
    reach: Array = np.fmax(np.abs(x), 1e-3)
    return reach


class RootRows:
    """The rows of a table, as `Rows`: the value of a row is where an equation holds.

    program: the equation, or what is to be 0. unknown: the variable that is looked for, whose start is a
    column of the batch. interval: where it is looked for, in place of a start. by: the variables by which
    the root is differentiated: with f = left - right, dx/da = -(∂f/∂a)/(∂f/∂x) (implicit function theorem).
    """

    alone: str | None = None
    kinked = 0
    kink: tuple[str, tuple[int, int] | None] | None = None

    def __init__(
        self,
        program: Program,
        loaded: Mapping[str, Any],
        shared: Mapping[str, Any],
        unknown: str,
        start: float | None,
        interval: tuple[float, float] | None = None,
        by: Sequence[str] = (),
    ) -> None:
        made, words = all_sides(program)
        if len(words) != 1:
            raise LanguageError(
                f"these are {len(words)} equations, and a row has one unknown number",
                kind="value",
                usage=True,
                hint="write one equation; without a table root solves several",
            )
        self.unknown, self.start, self.interval = unknown, start, interval
        self.program, self.loaded, self.by = program, loaded, list(by)
        self.starts_at_roots = False
        self.turned = 0  # rows whose root has another sign than the start
        self.vague = 0  # rows of whose root rounding leaves few digits

        def of(combined: Callable[[Any, Any], Any]) -> Callable[..., Any]:
            def function(**tensors: Any) -> Any:
                value = run(made, {**loaded, **tensors}, write=lambda text: None).value
                sides = [tensor_of(side) for side in value]
                return combined(sides[0], sides[1] if words[0] else tensor_of(0.0))

            return function

        self._difference = of(operator.sub)
        self._differences = Rows(self._difference, shared, [unknown])
        self._inputs: dict[tuple[str, ...], Rows] = {}  # the slopes by the data
        self._slopes = Rows(self._difference, shared, [unknown, *by])
        self._sizes = Rows(of(lambda one, other: one.abs() + other.abs()), shared, ())

    def __call__(self, batch: Mapping[str, Any], rows: int) -> Results:
        """The roots of the rows of a batch; a row without one is refused."""
        data = {name: array for name, array in batch.items() if name != self.unknown}
        start = np.array(batch.get(self.unknown, np.full(rows, self.start or 0.0)), np.float64)
        search = Search(self._differences, self.unknown, data, rows)
        with np.errstate(all="ignore"):
            if self.interval is not None:
                search.between(*self.interval)
            else:
                search.newton(start)
                search.look_around(start)
            found = search.polished()
            refused = self._judged(search, found, data)
        self.alone = self._differences.alone
        if self.interval is None:
            self.turned += int((search.good & (np.sign(found) * np.sign(start) < 0)).sum())
        roots = np.where(search.good, found, np.nan)
        if self.starts_at_roots:  # what is found again is the same number, also at a double root
            same = np.abs(roots - start) <= _AGAIN * (1 + np.abs(start))
            roots = np.where(same, start, roots)
        gradients = self._gradients(roots, data) if self.by else {}
        return Results({"": roots}, gradients, refused)

    def _gradients(self, roots: Array, data: Mapping[str, Any]) -> dict[str, Array]:
        """How the roots move with each of the variables `by`."""
        slopes = self._slopes({**data, self.unknown: roots}, len(roots)).gradients
        made = {}
        for name in self.by:
            if name in slopes:
                array = np.asarray(slopes[name], np.float64)
                along = np.asarray(slopes[self.unknown], np.float64)
                with np.errstate(all="ignore"):
                    made[name] = -array / along.reshape(-1, *[1] * (array.ndim - 1))
        return made

    def near(self, shared: Mapping[str, Any]) -> RootRows:
        """The same with other variables in the batch, where each row starts at a root."""
        made = RootRows(self.program, self.loaded, shared, self.unknown, None)
        made.starts_at_roots = True
        return made

    def _judged(self, search: Search, x: Array, data: Mapping[str, Any]) -> dict[int, Exception]:
        """What is wrong with the rows whose points are no roots."""
        f, rows = search.f, len(x)
        size = self._sizes({**data, self.unknown: x}, rows).values.get("", np.zeros(rows))
        good = search.roots(size)
        refused: dict[int, Exception] = dict(search.refused)
        if not self.starts_at_roots:
            rounding = ROUNDING * np.fmax(size, self._moved_by_inputs(x, data))
            flat = search.plateaus(rounding, self.interval)
            good[flat] = False
            vague = search.good & (rounding > _VAGUE * np.abs(search.slope) * reach_beside(x))
            self.vague += int(vague.sum())
            for row in flat.tolist():
                words = (
                    "the root is not the only one: up to rounding the sides are equal all around "
                    f"{x[row]:.6g}, where {self.unknown} moves neither"
                )
                refused.setdefault(
                    row, LanguageError(words, kind="value", usage=False, hint=_hint(self.unknown))
                )
        where = "" if self.interval is None else " in {:.6g} to {:.6g}".format(*self.interval)
        for row in np.flatnonzero(~good).tolist():
            words = f"no root was found{where}"
            if np.isfinite(f[row]):
                words += f": the sides differ by {abs(f[row]):.3g} at {self.unknown} = {x[row]:.6g}"
            refused.setdefault(
                row, LanguageError(words, kind="value", usage=False, hint=_hint(self.unknown))
            )
        return refused

    def _moved_by_inputs(self, x: Array, data: Mapping[str, Any]) -> Array:
        """What the difference of the sides changes by where each input does, by its own size.

        A side that cancels is small, and its rounding is not: `price(S, K) - quote` is no better known
        than S, K and the quote are.
        """
        given = {**self._differences.shared, **data}
        names = [n for n, a in given.items() if np.asarray(a).dtype.kind == "f"]
        moved = np.zeros(len(x))
        if names:
            key = tuple(names)
            if key not in self._inputs:
                self._inputs[key] = Rows(self._difference, self._differences.shared, names)
            for name, slope in self._inputs[key](
                {**data, self.unknown: x}, len(x)
            ).gradients.items():
                change = np.abs(np.asarray(slope, np.float64) * given[name])
                moved += np.nan_to_num(change.reshape(len(x), -1).sum(1))
        return moved


def _hint(unknown: str) -> str:
    return f"--{unknown} FROM:TO says in which interval to look; --bad-rows skip leaves the row out"


class Search:
    """Points of all rows, and the differences of the sides there with their slopes."""

    def __init__(
        self, differences: _Evaluated, unknown: str, data: Mapping[str, Any], rows: int
    ) -> None:
        self.differences, self.unknown, self.data = differences, unknown, data
        self.refused: dict[int, Exception] = {}
        self.x, self.f = np.full(rows, np.nan), np.full(rows, np.nan)
        self.slope, self.scale = np.full(rows, np.nan), np.full(rows, np.nan)
        self.good = np.zeros(rows, bool)
        # Two points between which the difference changes its sign; the first is where it is negative.
        self.below, self.above = np.full(rows, np.nan), np.full(rows, np.nan)

    def at(self, rows: Array, x: Array) -> tuple[Array, Array]:
        """(the differences, their slopes) of some rows."""
        batch = {name: array[rows] for name, array in self.data.items()} | {self.unknown: x}
        found = self.differences(batch, len(rows))
        for row, error in found.refused.items():
            if isinstance(errors.named(error), errors.NO_BACKWARD):
                raise _NOT_ONE_NUMBER
            self.refused.setdefault(int(rows[row]), error)
        if not found.values:
            return np.full(len(rows), np.nan), np.full(len(rows), np.nan)
        if list(found.values) != [""] or found.values[""].dtype.kind == "c":
            raise _NOT_ONE_NUMBER
        return np.asarray(found.values[""], np.float64), np.asarray(found.gradients[self.unknown])

    def _take(self, rows: Array, x: Array, f: Array, slope: Array) -> None:
        self.x[rows], self.f[rows], self.slope[rows] = x, f, slope
        self._enclose(rows, x, f)

    def _enclose(self, rows: Array, x: Array, f: Array) -> None:
        """Move the ends of the brackets to points inside of them."""
        self.below[rows] = np.where(f < 0, x, self.below[rows])
        self.above[rows] = np.where(f > 0, x, self.above[rows])

    def between(self, low: float, high: float) -> None:
        """Roots of the rows in an interval, at whose ends the difference has two signs."""
        every = np.arange(len(self.x))
        ends = [self.at(every, np.full(len(every), end)) for end in (low, high)]
        (f_low, slope_low), (f_high, slope_high) = ends
        nearer = (np.abs(f_low) <= np.abs(f_high)) | ~np.isfinite(f_high)
        self.scale = np.fmax(np.abs(f_low), np.abs(f_high))
        for end, (f, _) in zip((low, high), ends, strict=True):
            self._enclose(every, np.full(len(every), end), f)
        self.x, self.f = np.where(nearer, low, high), np.where(nearer, f_low, f_high)
        self.slope = np.where(nearer, slope_low, slope_high)
        # A bracket is all there is: rows whose ends have one sign stay at the nearer end.
        self._turns(np.flatnonzero((np.sign(f_low) * np.sign(f_high) < 0) & (self.f != 0)))

    def newton(self, start: Array) -> None:
        """From a start. A step that makes it worse is shortened; a change of sign is a bracket."""
        every = np.arange(len(start))
        f, slope = self.at(every, start)
        self.scale = np.abs(f)
        self._take(every, start, f, slope)
        self._turns(np.flatnonzero(np.isfinite(f) & (f != 0)))

    def look_around(self, start: Array) -> None:
        """For rows without a root: a change of sign around the start, first where x has the start's."""
        failed = np.flatnonzero(~self._settled())
        if not len(failed):
            return
        self.below[failed] = self.above[failed] = np.nan
        x = start[failed]
        near = [x * factor for reach in _REACH[3:] for factor in (1 + reach, 1 / (1 + reach))]
        far = [x + sign * reach * (1 + np.abs(x)) for reach in _REACH for sign in (1, -1)]
        for points in ([x], near, far):
            for point in points:
                left = failed[np.isnan(self.below[failed]) | np.isnan(self.above[failed])]
                if not len(left):
                    break
                there = point[np.isin(failed, left)]
                f, slope = self.at(left, there)
                better = np.isfinite(f) & ~(np.abs(self.f[left]) <= np.abs(f))
                self._enclose(left, there, f)
                at = left[better]
                self.x[at], self.f[at], self.slope[at] = there[better], f[better], slope[better]
        enclosed = ~(np.isnan(self.below[failed]) | np.isnan(self.above[failed]))
        rows = failed[enclosed]
        # from an end of the bracket, so that the point lies in it
        self.x[rows] = self.below[rows]
        self.f[rows], self.slope[rows] = self.at(rows, self.x[rows])
        self._turns(rows)

    def _settled(self) -> Array:
        step = np.abs(self.f / self.slope)
        short = step <= _SHORT * (1 + np.abs(self.x))
        settled: Array = (self.f == 0) | (short & (np.abs(self.f) <= _STEEP * self.scale))
        return settled

    def _turns(self, rows: Array) -> None:
        """Improve the points of some rows until nothing changes."""
        shrunk = np.ones(len(self.x))  # what is left of a step that made it worse
        width = np.full(len(self.x), np.inf)  # of the last steps, inside of a bracket
        for _ in range(_TURNS):
            if not len(rows):
                return
            x, f, slope = self.x[rows], self.f[rows], self.slope[rows]
            low, high = self.below[rows], self.above[rows]
            enclosed = ~(np.isnan(low) | np.isnan(high))
            step = -f / slope
            longest = 2 * (1 + np.abs(x))
            step = np.where(np.isfinite(step), np.clip(step, -longest, longest), np.nan)
            step *= np.where(enclosed, 1.0, shrunk[rows])
            there = x + step
            # Newton's point is taken where it lies in the bracket and steps become shorter; else halves.
            inside = (there > np.fmin(low, high)) & (there < np.fmax(low, high))
            halves = enclosed & ~(inside & (np.abs(step) <= 0.5 * width[rows]))
            there = np.where(halves, (low + high) / 2, there)
            step = there - x
            width[rows] = np.where(enclosed, np.abs(step), np.inf)
            moved = np.isfinite(there) & (np.abs(step) > 2 * _EPS * np.abs(x)) & (there != x)
            rows, there = rows[moved], there[moved]
            if not len(rows):
                return
            x, f, enclosed = x[moved], f[moved], enclosed[moved]
            f_there, slope_there = self.at(rows, there)
            changes = np.sign(f_there) * np.sign(f) < 0
            better = np.isfinite(f_there) & (enclosed | changes | (np.abs(f_there) < np.abs(f)))
            shrunk[rows] = np.where(better, 1.0, shrunk[rows] / 4)
            taken = rows[better]
            self._take(taken, there[better], f_there[better], slope_there[better])
            # where the sign has changed, the point before is the other end
            rows = rows[(self.f[rows] != 0) & (shrunk[rows] > 1e-12)]

    def roots(self, size: Any) -> Array:
        """Which points are roots. size: |left| + |right| there.

        A root is where another step would not move the point, and where the sides are equal: next to their
        difference at the start, to the sides themselves, or to the rounding of the numbers.
        """
        x, f, slope = self.x, self.f, self.slope
        size = np.nan_to_num(np.asarray(size, np.float64), nan=0.0)
        step = np.where(f == 0, 0.0, np.abs(f / slope))
        steep = (np.abs(f) <= 16 * _EPS * np.abs(slope * x)) & (np.abs(f) <= _STEEP * self.scale)
        equal = (np.abs(f) <= np.maximum(_SMALL * self.scale, _ROUNDED * size)) | steep
        still = step <= _SHORT * (1 + np.abs(x))
        self.good = np.isfinite(f) & ((f == 0) | (equal & still))
        return self.good

    def plateaus(self, rounding: Array, interval: tuple[float, float] | None = None) -> Array:
        """The rows whose root is one of many beside each other: a price that underflows is 0 for every
        small volatility. rounding: a difference of the sides that is none.
        """
        reach = reach_beside(self.x)
        steep = np.abs(self.slope) * reach * BESIDE[-1][-1] > _FLAT * rounding
        rows = np.flatnonzero(self.good & ~steep)
        flat = np.zeros(len(rows), bool)
        for shares in BESIDE if len(rows) else ():
            zero = np.ones(len(rows), bool)
            for share in shares:
                there = self.x[rows] + share * reach[rows]
                zero &= np.abs(self.at(rows, there)[0]) <= rounding[rows]
                if interval is not None:
                    zero &= (there >= interval[0]) & (there <= interval[1])
            flat |= zero
        return rows[flat]

    def polished(self) -> Array:
        """The points after a few steps of Newton's that make them better."""
        for _ in range(3):
            step = np.where(self.f == 0, 0.0, self.f / self.slope)
            there = self.x - step
            rows = np.flatnonzero(np.isfinite(there) & (there != self.x))
            if not len(rows):
                break
            f, slope = self.at(rows, there[rows])
            better = np.abs(f) < np.abs(self.f[rows])
            taken = rows[better]
            self.x[taken], self.f[taken] = there[taken], f[better]
            self.slope[taken] = slope[better]
        return self.x


__all__ = ["RootRows", "Search"]
