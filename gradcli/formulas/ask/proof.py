"""The proof of a printed derivative: its text is parsed, run, and compared with the tape.

That is done at a few points, in the shapes of the variables and in other sizes unless they are fixed. Every
higher order is compared with what the tape gives for the derivative of the order before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.formulas.algebra.assuming import supposing
from gradcli.formulas.algebra.exact_numbers import Number
from gradcli.formulas.algebra.expression_evaluation import evaluate, value_at
from gradcli.formulas.algebra.expressions import (
    Expression,
    is_call,
    is_number,
    is_size,
    name,
    order,
)
from gradcli.formulas.algebra.generic_points import (
    RANGES,
    Arrays,
    Generic,
    as_exact_as,
    labelled,
    labels,
    near,
    points,
    quiet,
    shaken,
)
from gradcli.formulas.algebra.spelling import NoExpression
from gradcli.formulas.algebra.unknown_functions import Unknown
from gradcli.formulas.derive.differentiate import VALUE, Derivatives, differentiate
from gradcli.formulas.derive.size_conditions import Conditions
from gradcli.formulas.derive.sound_sizes import is_sound
from gradcli.formulas.derive.symbolic_shapes import (
    FAR,
    GENERIC,
    REPEATED,
    WITHIN,
    Others,
    alike_sizes,
    all_of_one,
    at_other_shapes,
    fewer,
    is_alike,
    is_same,
    landmarks,
    nearby,
    resized,
    size_of,
    sized,
)
from gradcli.formulas.print.printed_text import Printed, printed
from gradcli.language import parse, run
from gradcli.language.located_errors import OPERATION_ERRORS, LanguageError
from gradcli.language.program import Program
from gradcli.transforms.higher_orders import gradients
from gradcli.transforms.switches import intervals
from gradcli.transforms.traced_run import CONSTANTS
from gradcli.transforms.tracing.rounding import overflows, rounding

Pairs = list[tuple[dict[str, Any], dict[str, Any]]]
_JUMP = 0.01  # noise above this share of the largest value is a jump
_ROUNDED = 1e-6
FEW = 1_000  # fewer numbers than this may be tried in prime sizes again
WORK, FEWEST = (
    10_000,
    24,
)  # operations in a search for points where a value is finite; points at least
MOST = 100_000  # numbers that are compared, except at the user's own point
_SEEDS = (1, 2, 3)  # by which a point and the rounding of its values are shaken
ENOUGH = 2  # points at which a derivative is shown
_SMALL = 1e-6  # values up to this may be rounding alone
_DIGITS = 0.01  # of a value is the most that rounding may be where a point shows something
# Where points lie: of a steep function some must be near 0. The last of them are for what shows nothing at
# the others, as exp(-1000*x**2).
_FARTHER = ((0.002, 0.02), (-12.0, 12.0), (-0.02, 0.02), (10.0, 60.0))
_WHERE = (RANGES[0], (-0.6, 0.6), *RANGES[1:], *_FARTHER)


class Difference(Exception):
    """A printed derivative differs from the tape: the variable, the printed value, the tape's.

    limits: all that power series say at the point, by variable, where it differs from them.
    """

    def __init__(
        self, variable: str, found: Any, expected: Any, limits: dict[str, Any] | None = None
    ) -> None:
        super().__init__(f"{variable}: {found} is not {expected}")
        self.variable, self.found, self.expected = variable, found, expected
        self.limits = limits or {}


class Unproved(Exception):
    """No text of the derivative agrees with the tape, or none of them runs."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error).splitlines()[0] if str(error) else type(error).__name__)


class Claim:
    """The claim that the text `made` is the derivatives `found`.

    names: other names that the program may read. beside: a difference at the user's point in elements
    where the tape is not finite; neither is wrong, but the user is told. lettered: whether letters say the
    shapes, so that what is square stays so. shown: at how many points each variable's derivative agreed in
    digits that are no rounding: exp(-1000*x**2) is 0 at 1, and so are wrong texts of its derivative.
    overflowed: the difference at a point where the text has too large numbers in between, which shows
    nothing.
    """

    __slots__ = (
        *("beside", "found", "lettered", "made", "names", "overflowed"),
        *("parsed", "shown", "wrt"),
    )

    def __init__(self, found: Derivatives, made: Printed, names: Arrays) -> None:
        self.found, self.made, self.names = found, made, names
        self.beside: Difference | None = None
        self.overflowed: Difference | None = None
        self.lettered = False
        self.shown: Counter[str] = Counter()
        self.wrt = list(found.by)
        shown = made if made.form in ("text", "json") else printed(found)
        self.parsed = {n: parse("\n".join([*shown.lines, t])) for n, t in shown.by.items()}

    @property
    def is_shown(self) -> bool:
        """Whether every derivative agreed at enough points, in digits that are no rounding."""
        return all(self.shown[n] >= ENOUGH or _is_zero(e) for n, e in self.found.by.items())

    def size(self, arrays: Arrays) -> int:
        """About how many numbers are compared at a point."""
        return sum(np.size(v) for v in arrays.values())

    def holds(self, arrays: Arrays, given: bool = False, nan: bool = False) -> bool:
        """Whether it holds at a point; False if nothing is finite there, so that nothing is shown.

        given: whether the point is the user's own; then it must hold even if the value is nan. nan: whether
        a value of nan is compared with nan. Raises Difference if it does not hold, and what the printed
        text raises, except for errors of Python's `math` where NumPy gives inf or nan.
        """
        arrays = self.allowed(arrays)
        with np.errstate(all="ignore"):
            expected = self.of_program(arrays, given or nan)
            says = expected is not None and any(map(_says_something, expected.values()))
            if expected is None or not (says or given):
                return False
            finite = all(np.isfinite(e).all() for e in expected.values())
            try:
                pairs = self.pairs(arrays, expected, given)
            except (ArithmeticError, ValueError, LanguageError, RuntimeError) as error:
                if (given and says) or (nan and finite):  # as for the inverse of a singular matrix
                    name, value = next(iter(expected.items()))
                    raise Difference(name, np.asarray(np.nan), value) from error
                if not finite:
                    return False
                if isinstance(error, (LanguageError, RuntimeError)):
                    raise
                if "math." not in self.made.code and says:
                    raise
                return False
            unlike = _nan_of_sign(pairs) if "np.sign(" in self.made.code else None
            if unlike is not None:
                if given or nan:
                    raise unlike
                return False
            if given:
                self.beside = self._beside(*pairs[-1])
            if nan and VALUE in expected:
                _same_nan(pairs[-1][0][VALUE], expected[VALUE])
            try:
                says, noise = _agree(pairs), None
            except Difference as error:
                if not given and self._overflows(arrays, expected, pairs):
                    self.overflowed = error
                    pairs = [(a, _where_finite(a, b, np.nan)) for a, b in pairs]
                noise = self._noise(arrays, pairs, given)
                says = _agree(pairs, noise)
                if given and _jumps(pairs, noise):
                    raise  # elements that are equal but for their last digits
            self._count(arrays, pairs, given, noise)
            return says

    def _count(
        self, arrays: Arrays, pairs: Pairs, given: bool, noise: list[dict[str, float]] | None
    ) -> None:
        """Count which derivatives are shown by a point at which all agree."""
        asked = {n: e for n, e in pairs[-1][1].items() if self.shown[n] < ENOUGH and _shows(e, 0.0)}
        moved = dict.fromkeys(asked, 0.0) if noise is None else noise[-1]
        # Both may be all rounding, and agree by chance: 1 - tanh(x)**2 at 18 is one last digit in each. A
        # text that agrees with digits of the tape's that mean something does not do so by chance.
        if noise is None and any(0 < _largest(e) < _SMALL for e in asked.values()):
            there = [m for k in _SEEDS if (m := self._shaken(arrays, k, given, self._of_last))]
            moved = {
                n: max((_distance(m[n], e) for m in there), default=0.0) for n, e in asked.items()
            }
        for n, e in asked.items():
            self.shown[n] += _shows(e, moved[n])

    @quiet()
    def may_show(self, arrays: Arrays) -> bool:
        """Whether a point may show a derivative that was not shown at enough others; no text is run."""
        arrays = self.allowed(arrays)
        expected = self.of_program(arrays)
        last = {} if expected is None else self._of_last(arrays, expected)
        return any(self.shown[n] < ENOUGH and _shows(e, 0.0) for n, e in last.items())

    def _of_last(self, arrays: Arrays, expected: dict[str, Any]) -> dict[str, Any]:
        """The tape's values of the last order; expected: the gradients of the program."""
        lower = self.found.lower
        return {**expected, **_stage(lower[-1], arrays)[1]} if lower else expected

    def _noise(self, arrays: Arrays, pairs: Pairs, given: bool) -> list[dict[str, float]]:
        """How far rounding moves the values at a point."""
        run = partial(self.pairs, given=given)
        return _noise(pairs, [m for k in _SEEDS if (m := self._shaken(arrays, k, given, run))])

    def _overflows(self, arrays: Arrays, expected: dict[str, Any], pairs: Pairs) -> bool:
        """Whether values are not finite as numbers in between are too large: exp(-x)/(1 + exp(-x)) at -1000.

        What has no value there, as the logarithm of what is negative, is a mistake.
        """
        if all(np.isfinite(v).all() for found, _ in pairs for v in found.values()):
            return False
        with overflows() as seen:
            self.pairs(arrays, expected)
        return seen.infinite and not seen.undefined

    def _shaken(
        self, arrays: Arrays, seed: int, given: bool, run: Callable[[Arrays, dict[str, Any]], Any]
    ) -> Any:
        """The values at a point whose last digits are others, with the last digits of all that is computed.

        run: takes the point and the gradients of the program there. None where there are none.

        A change in the last digit of x moves 1/(x - 1.0000001) at 1 in the ninth: there the text may differ
        by as much, and not by more. 1 - tanh(x)**2 at 20 is all rounding, whatever the last digit of x.
        """
        kept = {n: arrays[n] for n in labels(arrays, self.wrt)}
        there = self.allowed({**shaken(arrays, seed), **kept})
        with rounding(Generic(seed)):
            expected = self.of_program(there, given)
            return None if expected is None else run(there, expected)

    def _beside(self, found: dict[str, Any], expected: dict[str, Any]) -> Difference | None:
        """The difference in elements that are not finite in `expected`, if there is one."""
        for n in (n for n in expected if n != VALUE):
            a, b = np.asarray(found[n]), np.asarray(expected[n])
            apart = ~np.isfinite(b) & (a != b) & ~(np.isnan(a) & np.isnan(b))
            if a.shape == b.shape and apart.any():
                return Difference(n, a, b)
        return None

    def limits(self, arrays: Arrays) -> dict[str, Any] | None:
        """What the commands have at a point where rules fail, NaN where that is not known; else None."""
        from gradcli.transforms import removable

        tensors = {n: wrap(np.array(v)) for n, v in arrays.items()}
        order = len(self.found.lower) + 1
        return removable.limits_of_gradients(
            self.found.program, tensors, self.wrt, order, self.names
        )

    def apart_from(self, limits: dict[str, Any], arrays: Arrays) -> Difference | None:
        """The difference of the text's numbers from these, where they are known; a text need not run."""
        made: dict[str, Any] = {}
        with np.errstate(all="ignore"), suppress(LanguageError, *OPERATION_ERRORS):
            made = self.run(arrays)
        for n, known in limits.items():
            b = np.asarray(known)
            a = np.broadcast_to(np.asarray(made.get(n, np.nan)), b.shape)
            size = np.abs(b[np.isfinite(b)]).max(initial=0.0)
            with np.errstate(all="ignore"):
                apart = np.isfinite(b) & ~(
                    np.abs(a - b) <= 1e-6 * np.maximum(np.abs(b), 1e-3 * size)
                )
            if apart.any():
                return Difference(n, a, b, limits)
        return None

    def allowed(self, arrays: Arrays) -> Arrays:
        """A point near this one that satisfies the assumptions."""
        assumed = self.found.assumed
        return arrays if assumed is None else assumed.nearest(arrays)

    def pairs(self, arrays: Arrays, expected: dict[str, Any], given: bool = False) -> Pairs:
        """(claimed values, the tape's values) by variable, for each order.

        expected: the gradients of the program. given: whether higher orders are also compared with
        `grad --order`, which may differ at single points.
        """
        whole = {VALUE: expected[VALUE]} if VALUE in expected else {}
        expected = {n: e for n, e in expected.items() if n != VALUE}
        found = []
        for stage in self.found.lower:
            values, slopes = _stage(stage, arrays)
            # An order that is not printed may be infinite at single points.
            found.append((values, _where_finite(values, expected) if given else expected))
            expected = slopes
        made = self.run(arrays)
        found.append((made, {**expected, **whole}))
        if given and self.repeats:
            found.append((made, self.repeated(arrays)))
        return found

    @property
    def is_gradient(self) -> bool:
        """Whether it is of the first order, where `grad` keeps what the tape has, NaN too."""
        return not self.found.lower

    @property
    def repeats(self) -> bool:
        """Whether the order is one that `grad --order` has at little cost."""
        return 0 < len(self.found.lower) < 3

    def compare_repeated(self, arrays: Arrays) -> None:
        """Raise Difference if the text is not what `grad --order` gives, where that is finite."""
        if self.repeats:
            arrays = self.allowed(arrays)
            _agree([(self.run(arrays), self.repeated(arrays))])

    def of_program(self, arrays: Arrays, given: bool = False) -> dict[str, Any] | None:
        """The gradients of the program, and its value if that is printed too.

        None if the program does not run at this point, or its value is nan there.
        """
        leaves = _leaves(arrays, self.wrt)
        try:
            value = value_at(self.found.program, {**self.names, **leaves}, {})
            if not given and bool(np.any(np.isnan(_array(value)))):
                return None
            made = dict(self.of_value(value, leaves))
            return {**made, VALUE: _array(value)} if self.made.code else made
        except (LanguageError, RuntimeError):
            return None

    def runs(self, arrays: Arrays) -> bool:
        """Whether the program runs at a point whose shapes fit the assumptions."""
        if self.found.assumed is not None and not self.found.assumed.fit(arrays):
            return False
        if self.found.sized and not is_sound(self.found.program, arrays, self.names, self.lettered):
            return False
        try:
            with quiet():
                value_at(self.found.program, self.names, arrays)
        except (LanguageError, RuntimeError):
            return False
        return True

    def is_right(self, arrays: Arrays) -> bool:
        """Whether it holds at a point; False also if the text raises."""
        try:
            return self.holds(arrays)
        except Exception:  # what it says, or that it does not run, holds elsewhere alone
            return False

    def of_value(self, value: Any, leaves: Mapping[str, Tensor]) -> dict[str, Any]:
        """The tape's gradients; value: the program's value for these variables."""
        return tape_gradients(value, {n: leaves[n] for n in self.wrt})

    def repeated(self, arrays: Arrays) -> dict[str, Any]:
        """The derivatives of this order by repeated differentiation of the tape; {} if it refuses."""
        leaves = _leaves(arrays, self.wrt)
        try:
            value = value_at(self.found.program, {**self.names, **leaves}, {})
            by = {n: leaves[n] for n in self.wrt}
            return tape_gradients(value, by, order=len(self.found.lower) + 1)
        except (LanguageError, RuntimeError):
            return {}

    def run(self, arrays: Arrays) -> dict[str, Any]:
        """Run the printed derivatives at a point."""
        if self.made.code:
            return self._run_code(arrays)
        tensors = {n: wrap(np.asarray(v)) for n, v in arrays.items()}
        with as_exact_as(arrays):
            space = {n: f for n, f in self.names.items() if isinstance(f, Unknown)} | tensors
            return {n: _array(run(p, space).value) for n, p in self.parsed.items()}

    def _run_code(self, arrays: Arrays) -> dict[str, Any]:
        from gradcli.formulas.print import printed_programs

        made = printed_programs.run(self.made.code, self.made.form, arrays.values())
        if self.found.kind == "value":
            return {VALUE: _array(made)}
        value, grads = made
        listed = grads if len(self.wrt) > 1 else (grads,)
        by = {n: _array(g) for n, g in zip(self.wrt, listed, strict=True)}
        return {**by, VALUE: _array(value)}


def proved(
    program: Program,
    arrays: Arrays,
    wrt: Iterable[str],
    *,
    given: bool,
    lettered: bool = False,
    order: int = 1,
    form: str = "text",
    cse: bool | None = None,
    names: Arrays | None = None,
    find: Callable[..., Derivatives] | None = None,
    claim: type[Claim] = Claim,
    verify: bool = True,
) -> tuple[Derivatives, Printed, Difference | None]:
    """(the derivatives, their proved text, the difference from the tape at a singular point).

    given: whether the point is the user's own. lettered: whether letters say the shapes, so that equal
    sizes belong together and no others are asked for. find, claim: a function in place of `differentiate`,
    and the claim about its results. The text says whether it is `general`. If the short expression does not
    hold at the given point, it is found again with the NaN guards of the rules. Raises Unproved if
    neither holds. verify: whether there is a proof at all.
    """
    find, wrt = find or partial(differentiate, order=order), list(wrt)
    if not verify:
        found = find(program, arrays, wrt, follow=given, names=names)
        return found, printed(found, form, cse), None
    kept: tuple[Derivatives, Printed, Difference | None] | None = None
    said: Exception | None = None
    # Without the guards first: they make a text longer, and matter at single points alone.
    for nan_guards in (False, True):
        how = {"follow": given, "names": names, "nan_guards": nan_guards}
        found = _found(find, program, arrays, wrt, how)
        if _divides_by_zero(found):
            raise NoExpression(f"division by zero: the {found.what} has no formula")
        if type(found) is Derivatives and _tells_points_apart(found.value):
            from gradcli.formulas.ask.removable_points import with_limits

            with_limits(found, arrays)
        made = printed(found, form, cse)
        proof = claim(found, made, names or {})
        try:
            singular = prove(proof, arrays, given=given)
        except (
            Exception
        ) as error:  # whatever stops the text from being run is a reason not to print it
            said = said or error
            continue
        if kept is None or singular is None:
            again = partial(_at, find, program, wrt, how)
            claimed = partial(claim, names=names or {})
            elsewhere = Elsewhere(proof, arrays, given, lettered)
            elsewhere.singular = singular is not None
            found, made = _of_any_size(found, made, again, claimed, elsewhere, cse)
            kept = found, made, proof.beside if singular is None else singular
        if singular is None:
            break
    if kept is None:
        assert said is not None
        raise Unproved(said) from said
    return kept


def _found(
    find: Callable[..., Derivatives],
    program: Program,
    arrays: Arrays,
    wrt: Sequence[str],
    how: Mapping[str, Any],
) -> Derivatives:
    """What `find` finds at a point, or beside it, where a lower derivative does not run at the point itself.

    The gradient of det(A) has inv(A), which a singular matrix has none of.
    """
    try:
        return find(program, arrays, wrt, **how)
    except LanguageError:
        if not how["follow"]:
            raise
        try:
            found = find(program, next(near(arrays, 0)), wrt, **how)
        except LanguageError:
            found = None
        if found is None or found.branched:
            raise
    found.variables = dict(arrays)
    return found


def _divides_by_zero(found: Derivatives) -> bool:
    """Whether a denominator is the number 0, so that no text of it runs."""
    return any(
        is_number(base, 0) and isinstance(e, Number) and e.negative
        for node in order([*found.by.values(), found.value])
        if node.op == "product"
        for base, e in zip(node.args, node.data[1], strict=True)
    )


def _is_zero(expression: Expression) -> bool:
    """Whether it is the number 0, or zeros."""
    return is_number(expression, 0) or is_call(expression, "zeros_like")


def _tells_points_apart(value: Expression) -> bool:
    """Whether it has `where` of an equality."""
    return any(is_call(n, "where") and is_call(n.args[0], "eq", "ne") for n in order([value]))


def _where_finite(
    values: dict[str, Any], expected: dict[str, Any], other: Any = None
) -> dict[str, Any]:
    """The expected values where these are finite, and these, or another, where they are not."""
    return {
        n: np.where(np.isfinite(values[n]), e, values[n] if other is None else other)
        if np.shape(values[n]) == np.shape(e)
        else e
        for n, e in expected.items()
    }


# -- the verdict ------------------------------------------------------------------------------------
@quiet()
# What counts as a proof. Two points at which text and tape agree to nearly all digits, which are no
# rounding: a wrong formula would have to be right at both by chance. At the user's own point the text must
# agree as well; if it fails there and holds around it, the point is singular (a hole such as sin(x)/x at 0),
# and the user is told. Where nothing is finite, farther points around the program's own numbers are tried:
# sqrt(x - 100) has values from 100 on.
def prove(claim: Claim, arrays: Arrays, *, given: bool, seed: int = 0) -> Difference | None:
    """Prove a claim; given: whether the point is the user's own.

    Returns the difference at the given point if the claim holds around it but not there: the point is
    singular. Raises Difference, or what the text raises, if the claim does not hold.
    """
    singular: Difference | None = None
    apart: Difference | None = None
    claim.shown, claim.overflowed = Counter(), None
    branched, large = claim.found.branched, claim.size(arrays) > MOST
    if given or branched or large:
        try:
            claim.holds(arrays, given)
        except Difference as error:
            if large or not given:
                raise
            singular = error
    # The tape itself may have lost digits or be NaN there; power series know what both should give.
    if given and not large and (limits := claim.limits(arrays)) is not None:
        apart = claim.apart_from(limits, arrays)
        if not claim.is_gradient:
            claim.beside = None
        if apart is None:  # what the tape has lost, the text has
            singular = None
    # Of more than MOST numbers the user's own point alone is compared, which costs as much as deriving
    # them.
    if large or (branched and singular is None):  # farther away the program may take another branch
        return apart
    if given:
        try:
            if _around(claim, near(arrays, seed)) and claim.is_shown:
                return apart or singular
        except Difference as error:  # out of range, as x**2 at 1e200
            singular = singular or error
    held = not branched and _around(claim, points(arrays, seed, _WHERE))
    if not (branched or held) and (not given or claim.overflowed is not None):
        far = intervals([claim.found.program]) * 3  # around the numbers in it: sqrt(x - 100)
        most = max(FEWEST, WORK // len(claim.found.program.kinds))
        held = _around(claim, points(arrays, seed, far[:: -(-len(far) // most)]))
    if not held and (apart_at := singular or claim.overflowed) is not None:
        raise apart_at
    if not (given or branched or held):  # finite nowhere
        # A program without any finite value is compared as it is, NaN with NaN.
        claim.compare_repeated(arrays)
        for point in points(arrays, seed) if claim.made.code else ():
            claim.holds(point, nan=True)
    return apart or singular


class Elsewhere:
    """Points in other sizes at which the program runs; a claim that is general holds there too.

    free: every size changed independently where possible; together with its equals, where letters say the
    shapes. alike: equal sizes stay equal, and larger ones larger. A program that branches on values gets its
    own values repeated, to take the same branches.
    """

    def __init__(self, claim: Claim, arrays: Arrays, given: bool, lettered: bool) -> None:
        self.claim, self.arrays, self.given, self.lettered = claim, arrays, given, lettered
        self.branched, claim.lettered = claim.found.branched, lettered
        self.values = (REPEATED,) if self.branched else (GENERIC, WITHIN)
        self.others = () if self.branched else (WITHIN, REPEATED)
        self.near = landmarks(claim.found.program, arrays)
        self.conditions = Conditions(claim.found.program, claim.names)
        self.moved: list[tuple[Arrays, Callable[[Arrays], Others | None]]] = []
        self.free: list[Arrays] = []
        self.alike: list[Arrays] = []
        self.tried, self.silent = True, False
        self.singular = (
            False  # whether the given point has other numbers than the text, which it may keep
        )
        if not any(map(np.ndim, arrays.values())):
            return
        base = arrays
        if claim.size(arrays) > MOST:
            small = fewer(arrays, claim.runs, self.values[0])
            if small is None:
                self.tried = False
                return
            base = self._labelled(small)
            self.free.append(base)
        self.conditions.is_new(base)
        self._add(base)
        # A dimension of size 1 may be one that broadcasts, or one that happens to be 1: both are looked at.
        if (several := all_of_one(base, claim.runs, self.values)) is not None:
            self.free.append(self._labelled(several))
            self._add(several)

    def _add(self, base: Arrays) -> None:
        """Add points in other sizes than those of `base`."""
        together = self._together(base)
        runs = self.claim.size(together.arrays) <= MOST and self.claim.runs(together.arrays)
        if self.lettered and runs:
            self.moved.append((self._around(self.free, base, together), self._together))
            return
        found = at_other_shapes(base, self.claim.runs, values=self.values)
        if found is None:
            return
        if self.claim.size(found.arrays) > MOST:
            self.tried = False
            return
        self.moved.append((self._around(self.free, base, found), self._further))
        if runs and not is_alike(base, found.arrays):
            self.moved.append((self._around(self.alike, base, together), self._together))

    def _together(self, other: Arrays) -> Others:
        found = alike_sizes(other, self.values[0], prime=self.claim.size(other) < FEW)
        if self.claim.size(found.arrays) <= MOST:
            return found
        return alike_sizes(other, self.values[0], prime=False, smallest=True)

    def _further(self, other: Arrays) -> Others | None:
        few = self.claim.size(other) < FEW
        return at_other_shapes(other, self.claim.runs, prime=few, values=self.values)

    def _around(self, where: list[Arrays], base: Arrays, found: Others) -> Arrays:
        """Add a point in these sizes, and points near sizes at which the program may change its path."""
        other = self._labelled(found.arrays)
        where.append(other)
        if not self.branched:
            where += islice(points(other, 0), 2)  # for branches that other values take
        where += self._in(base, found, self.near)
        for point in where:
            self.conditions.is_new(point)
        if self.conditions.open:
            new = filter(self.conditions.is_new, self._in(base, found, FAR))
            where += [p for p in new if all(map(np.size, p.values()))]  # not empty
        return other

    def _in(self, base: Arrays, found: Others, sizes: Iterable[int]) -> list[Arrays]:
        """Points with each of these sizes in the axes that can change, unless they are too large."""
        made = map(self._labelled, nearby(base, found.moves, sizes, self.values[0]))
        return [point for point in made if self.claim.size(point) <= MOST]

    def _labelled(self, other: Arrays) -> Arrays:
        return labelled(other, self.arrays, self.claim.wrt)

    def pairs(self) -> Iterator[tuple[Arrays, Arrays]]:
        """Pairs of points whose sizes differ from the given ones and from each other, in both orders.

        Expressions of different structure may look the same in one set of sizes. If the given point has
        zeros, its values are repeated at last: there the derivative may have another form.
        """
        zeros = self.given and any((np.asarray(v) == 0).any() for v in self.arrays.values())
        for other, further_sizes in self.moved:
            found = further_sizes(other)
            if found is not None and self.claim.size(found.arrays) <= MOST:
                further = self._labelled(found.arrays)
                yield other, further
                yield further, other
                if zeros and not self.branched:
                    yield self._repeated(other), self._repeated(further)

    def _repeated(self, other: Arrays, values: int = REPEATED) -> Arrays:
        return resized(self.arrays, {n: np.shape(v) for n, v in other.items()}, values)

    def tell(self, claim: Claim) -> bool:
        """Record in the claim's text (`general`, `wrong`, `alike`) where it holds; whether in all sizes.

        A text is general if the program runs in no other sizes, and not if a condition on sizes only went
        one way. In a program that branches on values a difference may belong to another branch.
        """
        made = claim.made
        held, wrong = self._tried(claim, self.free)
        # A condition on sizes that only went one way may hide a formula for the other.
        open_ = not self.tried or self.conditions.open or wrong is not None
        made.general = not open_ and (held or not self.free)
        self.silent = not open_ and not made.general
        made.wrong = None if self.branched else wrong
        made.alike = wrong is not None and self._tried(claim, self.alike) == (True, None)
        return made.general

    def _tried(self, claim: Claim, where: list[Arrays]) -> tuple[bool, Arrays | None]:
        """(whether it holds at any of these points, the first point at which it fails)."""
        held = False
        for point in where:
            try:
                held |= claim.holds(point) or (
                    not held and any(claim.holds(self._repeated(point, v)) for v in self.others)
                )
            except Exception:  # what it says, or that it does not run, holds elsewhere alone
                return held, point
        return held, None


def _at(
    find: Callable[..., Derivatives],
    program: Program,
    wrt: Sequence[str],
    how: Mapping[str, Any],
    arrays: Arrays,
) -> Derivatives:
    """What `find` finds for these values of the variables."""
    return find(program, arrays, wrt, **how)


@quiet()
def _of_any_size(
    found: Derivatives,
    made: Printed,
    find: Callable[..., Derivatives],
    claim: Callable[..., Claim],
    elsewhere: Elsewhere,
    cse: bool | None,
) -> tuple[Derivatives, Printed]:
    """The derivatives with numbers replaced by symbolic sizes where needed, proved in other sizes.

    They are returned unchanged if they hold there already, or if no symbolic size helps; the text then
    says that it is not general.
    """
    arrays, given = elsewhere.arrays, elsewhere.given
    if elsewhere.tell(claim(found, made)):
        return found, made
    known: dict[int, tuple[Arrays, Derivatives]] = {}

    def at(point: Arrays) -> Derivatives:
        """The derivatives at a point, not in their shortest form; each found once."""
        if id(point) not in known:
            with supposing(searching=False):
                known[id(point)] = point, find(point)
        return known[id(point)][1]

    for pair in elsewhere.pairs():
        try:
            if elsewhere.silent and is_same(at(arrays), at(pair[0])):  # nothing is finite there
                made.general = True
                break
            with supposing(real=found.real):
                better = sized(found, at(arrays), at, pair)
            if better is None:
                continue
            shown = printed(better, made.form, cse)
            proof = claim(better, shown)
            apart = prove(proof, arrays, given=given) is not None
            if apart > elsewhere.singular or not all(map(proof.holds, pair)):
                continue
            if elsewhere.tell(proof) or (shown.alike and not made.alike):
                found, made = better, shown
            if made.general:
                break
        except Exception:  # the numbers stay, which are proved
            continue
    if made.code and not made.general:
        found.alone = made.where(arrays)
        made.code = printed(found, made.form, cse).code
    return found, made


def _around(claim: Claim, where: Iterator[dict[str, Any]]) -> int:
    """The number of points at which the claim holds, up to as many as are enough."""
    proved = 0
    for point in where:
        if proved < ENOUGH or claim.may_show(point):
            proved += claim.holds(point)
        if proved >= ENOUGH and claim.is_shown:
            break
    return proved


# -- the tape ---------------------------------------------------------------------------------------
def _leaves(arrays: Arrays, wrt: Iterable[str]) -> dict[str, Tensor]:
    return {n: wrap(np.array(v), requires_grad=n in wrt) for n, v in arrays.items()}


def tape_gradients(
    value: Any, leaves: Mapping[str, Tensor], seed: Any = 1, order: int = 1
) -> dict[str, Any]:
    """The tape's gradients of a value, or the derivatives of a higher order: arrays, zeros for no slope.

    seed: the cotangent that the pass starts from.
    """
    found: Mapping[str, Any] = dict.fromkeys(leaves)
    if isinstance(value, Tensor) and value.requires_grad:
        found = gradients(value, leaves, wrap(np.full_like(value.array, seed)), order)
    return {
        n: np.zeros_like(leaf.array) if found[n] is None else np.asarray(found[n].array)
        for n, leaf in leaves.items()
    }


def is_elementwise(found: Derivatives) -> bool:
    """Whether each element of the value depends on the same element of every variable alone.

    Then the gradient of the sum is the derivative of each element.
    """
    leaves = _leaves(found.variables, found.by)
    wanted = {n: leaves[n] for n in found.by}
    if any(leaf.shape != found.shape for leaf in wanted.values()):
        return False
    # With another weight for each element: if the gradient is weighed alike, no element has met another.
    seed = Generic(0).uniform(1, 2, found.shape)
    plain, weighed = (
        tape_gradients(_evaluated([found.whole], leaves)[0], wanted, u) for u in (1, seed)
    )
    return all(np.allclose(seed * plain[n], weighed[n], equal_nan=True) for n in found.by)


def _stage(by: Mapping[str, Expression], arrays: Arrays) -> tuple[dict[str, Any], dict[str, Any]]:
    """(the value of each expression, the gradient of its sum by the variable it is filed under)."""
    values: dict[str, Any] = {}
    slopes: dict[str, Any] = {}
    for n, expression in by.items():
        leaves = _leaves(arrays, [n])
        (value,) = _evaluated([expression], leaves)
        values[n] = _array(value)
        slopes |= tape_gradients(value, {n: leaves[n]})
    return values, slopes


def _evaluated(roots: list[Expression], tensors: Mapping[str, Tensor]) -> list[Any]:
    known: dict[Expression, Any] = {}
    for root in roots:
        for node in variables_of(root):
            if node.data in tensors:
                known[node] = tensors[node.data]
            elif is_size(node):
                known[node] = size_of(node.data, tensors)
    known |= {name(n, (), -1): v for n, v in CONSTANTS.items()}
    return evaluate(roots, known)


def variables_of(root: Expression) -> list[Expression]:
    """The variables that an expression reads."""
    return [node for node in order([root]) if node.op == "name"]


# -- agreement --------------------------------------------------------------------------------------
def _agree(pairs: Pairs, noise: list[dict[str, float]] | None = None) -> bool:
    """Whether the last pair has anything to compare. Raises Difference if any pair disagrees."""
    proved = False
    for k, (found, expected) in enumerate(pairs):
        said = [
            agree(n, found[n], e, 0.0 if noise is None else noise[k][n])
            for n, e in expected.items()
        ]
        proved = any(said)
    return proved


def agree(variable: str, found: Any, expected: Any, noise: float = 0.0) -> bool:
    """Compare two values up to rounding wherever the tape's is finite; False if that is nowhere.

    Raises Difference if they disagree.
    """
    if np.shape(found) != np.shape(expected):
        raise Difference(variable, found, expected)
    fine = np.isfinite(expected)
    if not _says_something(expected):
        return False
    least = _rounding_of(expected)
    a, b = (np.asarray(v)[fine] * np.float32(1) for v in (found, expected))  # booleans too
    size = float(np.max(np.abs(b), initial=0))
    slack = (least / 16) ** 0.45 * np.maximum(np.abs(b), size * 1e-3) + least
    if not bool(np.all(np.abs(a - b) <= slack + 100 * noise)):
        raise Difference(variable, found, expected)
    return True


def _says_something(expected: Any) -> bool:
    """Whether an array can be compared with: it has a finite element, or is empty."""
    return np.size(expected) == 0 or bool(np.isfinite(expected).any())


def _shows(expected: Any, noise: float) -> bool:
    """Whether there is more to an array than rounding, of which `agree` overlooks so much."""
    if np.size(expected) == 0:
        return True
    return _rounding_of(expected) + 100 * noise <= _DIGITS * _largest(expected)


def _largest(array: Any) -> float:
    """The largest finite element, without its sign."""
    fine = np.asarray(array)[np.isfinite(array)]
    return float(np.max(np.abs(fine * np.float32(1)), initial=0))


def _rounding_of(expected: Any) -> float:
    """What two values may be apart, however small they are."""
    return 16 * float(np.finfo(np.result_type(np.asarray(expected).dtype, np.float32)).eps)


def _noise(pairs: Pairs, moved: list[Pairs]) -> list[dict[str, float]]:
    """How far the claimed or the expected values move when the last digits of a point change."""
    found = []
    for k, pair in enumerate(pairs):
        by = dict.fromkeys(pair[1], 0.0)
        for n in by:
            apart = [_distance(m[k][i][n], pair[i][n]) for m in moved for i in (0, 1)]
            by[n] = max(apart, default=0.0)
        found.append(by)
    return found


def _jumps(pairs: Pairs, noise: list[dict[str, float]]) -> bool:
    """Whether a change in the last digits of a point moves a value by more than rounding."""
    return any(
        noise[k][n] > _JUMP * float(np.max(np.abs(e), initial=_ROUNDED, where=np.isfinite(e)))
        for k, (_, expected) in enumerate(pairs)
        for n, e in expected.items()
    )


def _nan_of_sign(pairs: Pairs) -> Difference | None:
    """A difference where code gives nan and the tape does not: sign(nan) is nan in NumPy, 0 in PyTorch."""
    for found, expected in pairs:
        for n, e in expected.items():
            if np.shape(found[n]) == np.shape(e) and np.any(np.isnan(found[n]) & np.isfinite(e)):
                return Difference(n, found[n], e)
    return None


def _same_nan(found: Any, expected: Any) -> None:
    """Raises Difference unless two values are nan in the same elements."""
    if not np.array_equal(np.isnan(found), np.isnan(expected)):
        raise Difference(VALUE, found, expected)


def _distance(a: Any, b: Any) -> float:
    if np.shape(a) != np.shape(b):
        return 0.0
    apart = np.abs(np.asarray(a) - np.asarray(b))
    return float(np.max(apart, initial=0, where=np.isfinite(apart)))


def _array(value: Any) -> Any:
    return np.asarray(value.array if hasattr(value, "array") else value)


__all__ = ["Claim", "Difference", "Unproved", "prove", "proved"]
