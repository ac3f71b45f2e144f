"""The points at which `gradcli check` looks at gradients: the given one, or random ones of several sizes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gradcli.commands.command_errors import usage
from gradcli.commands.formula_question import located, squared
from gradcli.commands.free_points import note_guesses, point, sized, wanted_names
from gradcli.language import parse
from gradcli.language.located_errors import OPERATION_ERRORS, LanguageError
from gradcli.transforms.verdicts import function_of

if TYPE_CHECKING:
    from gradcli.commands.question import Question
    from gradcli.commands.request import Request
    from gradcli.language.program import Program

TRIES = 20  # random points until one has finite values
# Where values are made up: how far from 0 the points lie. One point hides what holds there alone.
SPREAD = (1.0, 1.0, 1.0, 4.0, 4.0, 0.1)
LIMITS = "-1,1"  # between which they lie, if --range does not say
SHAPES = ((5,), (2, 5))  # that scalars take at other points
OTHER_SIZE = (7,)
Shape: TypeAlias = tuple[int, ...]
Arrays: TypeAlias = dict[str, Any]


def chosen(question: Question) -> tuple[list[Arrays], list[str]]:
    """The points to check at, and the variables to differentiate by."""
    points = _Points(question)
    return points.all(), points.wanted


def add_wrt(names: Sequence[str]) -> str:
    """A hint that asks by which variable a formula is a derivative."""
    if not names:
        return "add --wrt NAME"
    *others, last = (f"--wrt {name}" for name in names)
    return f"add {', '.join(others)} or {last}" if others else f"add {last}"


def _refuse_unknown(formula: Program, request: Request) -> None:
    """Raise LanguageError where a formula has a name that is no variable and that nobody assigns."""
    from gradcli.language.scope_checks import assigned_names

    own = assigned_names(request.program)
    known = {*request.names, *request.open_variables, *own, *request.loaded}
    for name in formula.free_variables():
        if name in known:
            continue
        at = re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", formula.source)
        there = ", ".join(dict.fromkeys([*request.names, *request.open_variables, *own]))
        raise LanguageError(
            f"name {name!r} is not defined",
            kind="name",
            source=formula.source,
            span=at.span() if at else None,
            hint=f"--against may use {there}, and what it assigns itself, as in {name} = …; …",
        )


class _Points:
    """The points of a command line.

    where: the variables, as they are given or made up. random: those of which random values are taken.
    readings: the scalars that may be arrays at points of other sizes, in turn. around: further intervals,
    where the program or the formula takes other branches.
    """

    def __init__(self, question: Question) -> None:
        from gradcli.engine.system import dtypes
        from gradcli.formulas.algebra.generic_points import Generic
        from gradcli.transforms.switches import intervals

        request, against = question.request, question.against
        self.request, self.against, self.samples = request, against, question.samples
        self.formula = None if against is None else parse(against)
        if self.formula is not None:
            _refuse_unknown(self.formula, request)
        self.limits = _limits(question.range or LIMITS)
        suit: list[Callable[..., bool]] = []
        if self.formula is not None:
            suit = [partial(self.suits, exact=True), self.suits]
        self.how = question.order, question.jacobian
        self.assumed = question.assume
        self.where = where = squared(question.assume, request, point(question.ctx, request, *suit))
        dtypes.set_default_dtype(dtypes.float64)
        where.arrays = {n: double(a) for n, a in where.arrays.items()}
        self.wanted = wanted_names(request, where)
        note_guesses(where)
        if self.formula is not None and len(self.wanted) != 1:
            raise usage(
                "--against is a gradient by one variable, and there are several",
                hint=add_wrt(self.wanted),
            )
        programs = [request.program, *([self.formula] if self.formula else [])]
        self.functions = [function_of(program, request.loaded) for program in programs]
        self.shapes = {n: a.shape for n, a in where.arrays.items()}
        self.random = [
            n for n in where.arrays
            if n not in where.sizes
            and (n not in where.given or (self.samples and n in self.wanted))
        ]  # fmt: skip
        self.anywhere = question.range is None
        scalars = [] if request.shapes else [n for n in self.random if n not in where.given]
        by_size = self.formula and scalars and self.how == (1, False)
        self.readings = self._readings(scalars) if by_size else [scalars]
        self.rng = Generic(request.manual_seed or 0)
        self.around = list(intervals(iter(programs))) if self.anywhere else []

    def all(self) -> list[Arrays]:
        """The given point, or random ones where the value is finite, some of them of other sizes."""
        if not self.random:
            return [dict(self.where.arrays) for _ in range(self.samples or 1)]
        spread = (1.0,) * self.samples if self.samples else SPREAD
        points = [
            self._point(number, factor if self.anywhere else 1.0)
            for number, factor in enumerate(spread)
        ]
        if self.around and not self.samples:
            points += self._on_other_sides(points)
        if self.assumed:
            from gradcli.formulas.derive.assumptions import read

            with located(self.request):
                facts = read(self.assumed, self.where.arrays, self.where.given)
            points = list(map(facts.nearest, points))
        return points

    def suits(self, arrays: Mapping[str, Any], exact: bool = False) -> bool:
        """Whether the formula can be the gradient at a point: it has a value there, of a variable's shape.

        exact: a gradient of the same number everywhere, written as one number, does not count for an array.
        """
        request = self.request
        names = [n for n in request.wrt or arrays if n in arrays and n not in request.no_grad]
        shape = self._formula_shape(arrays)
        return shape is not None and (
            (not exact and set(shape) <= {1})
            or any(shape in self._derivative_shapes(arrays, n) for n in names)
        )

    def _derivative_shapes(self, arrays: Mapping[str, Any], name: str) -> list[Shape]:
        """The shapes that the formula may have; a matrix may be the transpose, which check tells."""
        from gradcli.formulas.ask.formula_check import derivative_shape

        shape = derivative_shape(self.request.program, arrays, name, self.request.loaded, *self.how)
        return [shape] if self.how == (1, False) else [shape, shape[::-1]]

    def _formula_shape(self, arrays: Mapping[str, Any]) -> Shape | None:
        """The shape of the formula's value at a point; None where it has no value."""
        from gradcli.engine.core.tensor import wrap
        from gradcli.formulas.algebra.generic_points import quiet
        from gradcli.formulas.ask.formula_check import formula_at
        from gradcli.language.located_errors import OPERATION_ERRORS

        assert self.formula is not None
        values = {**self.request.loaded, **{n: wrap(a) for n, a in arrays.items()}}
        try:
            with quiet():
                return tuple(formula_at(self.formula, values, self.request.program).shape)
        except (*OPERATION_ERRORS, LanguageError):
            return None

    def _readings(self, scalars: list[str]) -> list[list[str]]:
        """Which scalars are arrays at other points, where a formula is to be the gradient by a variable.

        It may be meant for a number among arrays (`-2*sum(x - m)` for `sum((x - m)**2)` by m), for an
        array among numbers, or for arrays of one size (`2*(x - y)/x.numel()` for a loss).
        """
        from gradcli.formulas.algebra.generic_points import quiet
        from gradcli.formulas.ask.formula_check import compare_formula

        (name,), request = self.wanted, self.request
        if name in self.where.given:
            return [[]]
        others = [n for n in scalars if n != name]
        same = others and self._sizes(scalars) == ((), SHAPES[0])
        if same:
            arrays = self._at(dict.fromkeys(scalars, SHAPES[0]))
            try:
                with quiet():
                    found = compare_formula(
                        request.program, str(self.against), arrays, name, request.loaded
                    )
                if found.ok:
                    return [scalars]
            except (*OPERATION_ERRORS, LanguageError):
                pass
        value, formula = self._sizes(others)
        if value == () and formula is not None and set(formula) <= {1}:
            sizes = {**dict.fromkeys(others, SHAPES[0]), name: OTHER_SIZE}
            if self._value_shape(self._at(sizes)) is None:
                # Its size is that of the others, or it is a number.
                return [others] if self._sizes(others, SHAPES[1])[0] == () else [[]]
        if same:
            return [scalars] if self._sizes([name])[1] == () else [[name], scalars]
        return [[name]]

    def _at(self, sizes: Mapping[str, Shape]) -> Arrays:
        """The point with some variables of other sizes."""
        from gradcli.formulas.algebra.generic_points import sample

        drawn = {n: sample(s, k) for k, (n, s) in enumerate(sizes.items())}
        return sized(self.request, self.where.arrays | drawn)

    def _sizes(self, names: list[str], size: Shape = SHAPES[0]) -> tuple[Any, Any]:
        """The shapes of the program's value, and of the formula's, where these variables have that size."""
        arrays = self._at(dict.fromkeys(names, size))
        value = self._value_shape(arrays)
        return value, None if value is None else self._formula_shape(arrays)

    def _point(self, number: int, factor: float) -> Arrays:
        """A random point, `factor` times as far from 0; two of three of other sizes, where that can be."""
        tries = [self.shapes]
        if number % 3:
            others = self._other_shapes(self.readings[number // 3 % len(self.readings)])
            larger = [s for s in others[: number % 3][::-1] if s not in ({}, self.shapes)]
            tries = [*larger, *tries]
        ends = (self.limits[0] * factor, self.limits[1] * factor)
        found = (
            arrays
            for shapes in tries
            for arrays in self._drawn(shapes, ends)
            if self._is_finite(arrays)
            and (shapes is self.shapes or self.formula is None or self.suits(arrays))
        )
        return next(found, dict(self.where.arrays))

    def _other_shapes(self, vectors: Sequence[str]) -> list[dict[str, Shape]]:
        from gradcli.formulas.derive.shape_inference import larger

        if self.where.guessed:
            return [larger(self.shapes, self.where.guessed)] * 2
        return [
            {n: size if n in vectors and not s else s for n, s in self.shapes.items()}
            for size in SHAPES
        ]

    def _on_other_sides(self, points: Sequence[Arrays]) -> Iterator[Arrays]:
        """Points at which the program, or the formula, takes other branches than at the given ones."""
        from gradcli.transforms.switches import FAR, MOST, Sides

        known = Sides(self.functions)
        for arrays in points:
            known.is_new(arrays)
        if not known.seen:
            return
        new = (
            arrays
            for ends in self.around
            for arrays in islice(self._drawn(self.shapes, ends), 3)
            if self._is_finite(arrays)
            and (self.formula is None or self.suits(arrays))
            and known.is_new(arrays, ends[1] in FAR)
        )
        yield from islice(new, MOST)

    def _drawn(self, shapes: Mapping[str, Shape], limits: tuple[float, float]) -> Iterator[Arrays]:
        """Random arrays: of both signs, then positive, with well-conditioned matrices, and farther off."""
        from gradcli.formulas.algebra.generic_points import sample

        rng = self.rng
        farther = [ends for ends in self.around for _ in range(2)]
        for tried, (low, high) in enumerate([*[limits] * TRIES, *farther]):
            arrays = dict(self.where.arrays)
            for k, n in enumerate(self.random):
                if arrays[n].dtype.kind not in "fc":
                    continue
                drawn = rng.uniform(low, high, shapes[n])
                if TRIES // 3 <= tried < TRIES:  # a domain like that of log or sqrt
                    drawn = np.abs(drawn) + 0.1
                if 2 * TRIES // 3 <= tried < TRIES:  # a domain like that of cholesky
                    drawn = sample(shapes[n], k + tried)
                if arrays[n].dtype.kind == "c":
                    drawn = drawn + 1j * rng.uniform(low, high, shapes[n])
                arrays[n] = np.asarray(drawn)
            yield sized(self.request, arrays)

    def _is_finite(self, arrays: Arrays) -> bool:
        """Whether the program runs there, and its value is finite."""
        values = self._outputs(arrays)
        return values is not None and all(np.isfinite(v.array).all() for v in values)

    def _value_shape(self, arrays: Arrays) -> Shape | None:
        """The shape of the program's value at a point; None if it does not run, or has several values."""
        values = self._outputs(arrays)
        return tuple(values[0].shape) if values and len(values) == 1 else None

    def _outputs(self, arrays: Arrays) -> list[Any] | None:
        """The program's values at a point; None if it does not run."""
        from gradcli.engine.core.tensor import wrap
        from gradcli.transforms.finite_differences import outputs_of

        with np.errstate(all="ignore"):
            try:
                return outputs_of(self.functions[0](**{n: wrap(a) for n, a in arrays.items()}))
            except (LanguageError, RuntimeError):
                return None


def _limits(text: str) -> tuple[float, float]:
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise usage(f"--range wants A,B, not {text!r}", hint="as in --range 0.5,2") from None
    if not low < high:
        raise usage(f"--range: {low:g} is not less than {high:g}")
    return low, high


def double(array: Any) -> Any:
    """An array of floating point or complex numbers in double precision; others as they are."""
    kind = array.dtype.kind
    if kind in "fc":
        return np.asarray(array, np.complex128 if kind == "c" else np.float64)
    return array
