"""Gradients against differences: `gradcli check`, and what `gradcli.torch.testing` asserts.

The numerical side knows its own error: central differences are extrapolated (Richardson) at steps that
shrink until the table converges, a complex step is taken where everything is analytic, and a kink is told
from a mistake by its two one-sided slopes. Cotangents are random, for a seed of ones hides mistakes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gradcli.engine.core import modes
from gradcli.engine.core.backward_pass import of_recorded
from gradcli.engine.core.tensor import Tensor, wrap
from gradcli.engine.registry import table
from gradcli.language.located_errors import OPERATION_ERRORS, LanguageError
from gradcli.language.program import Program
from gradcli.transforms.tolerances import NotFinite, allowed, worst
from gradcli.transforms.traced_run import traced_run
from gradcli.transforms.tracing.calls import calls

Function = Callable[..., Any]

RTOL = 1e-6
OF_LARGEST = 1e-14  # of the largest element of the gradient, where no absolute tolerance is given
ROUNDED = 1e-4  # of what differences lose: about what the rules lose
STEP = 1e-3  # of the first difference, relative to the element; halved for the extrapolation
ODD = 633 / 1024  # times a power of two: it moves exactly, and few periods are a part of it
SLOWLY = 0.95  # a gap that is smaller by this with every four halvings vanishes in the end
MANY = 1000  # elements that are looked at one by one; of more, all together and a sample
SOME = 50  # elements are in it
SHRINK = 16.0  # the first step is made smaller by this until the extrapolation converges
SHRINKS = 8
WIDER = (256.0, 16.0)  # times the first step: for a slope that is lost in noise
COARSE = 1e-4  # the relative doubt of an element from which on it is told
FARTHEST = 20.0  # times the noise of a difference: what is less certain is so for other reasons
CLOSE = 3  # steps that small numbers get besides, relative to them
CONVERGED = 1e-8  # relative to the slope
NEARER = 256.0
SMOOTH = 1e-3  # how much of an extrapolation's change is in doubt, where no kink is looked for
ROUNDING = 1e-15  # of a value of the function, relative
SEEN = 1e7  # times the rounding: a gap between slopes that is known to as many digits
FELT = 1e3  # times the rounding: a gap that is one
COMPLEX_STEP = 1e-40
FARTHER = 1e10  # another complex step, which says the same wherever a function is analytic
COMPLEX_PART = 2.0**-34  # of a number that is not far larger than the complex step
SMALLEST = 1e-322  # numbers end there
UNBOUNDED = 1e19  # a complex step off the domain gives a square root of its inverse, or more,
# where a function of that size changes by itself within an element


class Sides(NamedTuple):
    """The slopes to the left and to the right of a point; jump: the value has a gap there, too."""

    left: float
    right: float
    jump: bool


class Kink:
    """An element at which the slopes to both sides differ, or (jump) the values do."""

    __slots__ = ("analytical", "index", "jump", "left", "right")

    def __init__(self, index: tuple[int, ...], sides: Sides, analytical: Any) -> None:
        self.left, self.right, self.jump = sides
        self.index, self.analytical = index, analytical

    @property
    def ok(self) -> bool:
        """Whether the gradient is a subgradient: between the two slopes."""
        low, high = sorted((self.left, self.right))
        margin = 1e-6 * (1 + abs(low) + abs(high))
        return bool(low - margin <= np.real(self.analytical) <= high + margin)


class Checked:
    """One variable's gradient, both ways.

    error: the largest relative error; index: where. kinks: where the function has one. method: how the
    numerical side was found. triangular: whether the function reads one triangle of a symmetric matrix,
    and the gradient is, as PyTorch has it, that of symmetric changes. unbounded: from where on a
    numerical slope is none. seen: how many elements were looked at one by one. wrong: which are. unseen:
    which are lost in the noise of the differences, so that nothing is known of them. coarse: to what part
    of itself each element that agrees for that noise alone was compared, where that is coarse; else 0.
    """

    __slots__ = (
        "analytical",
        "by_series",
        "coarse",
        "error",
        "index",
        "kinks",
        "method",
        "numerical",
        "ok",
        "seen",
        "triangular",
        "unbounded",
        "unseen",
        "wrong",
    )

    def __init__(
        self,
        analytical: Any,
        numerical: Any,
        uncertain: Any,
        kinks: list[Kink],
        method: str,
        rtol: float,
        atol: float | None,
        unbounded: Any = UNBOUNDED,
    ) -> None:
        self.analytical, self.numerical = analytical, numerical
        self.kinks, self.method, self.seen = kinks, method, np.size(analytical)
        self.by_series = False  # right by power series, where the rules give no number
        self.unbounded = np.broadcast_to(unbounded, np.shape(analytical))
        difference = np.asarray(np.abs(analytical - numerical))
        size = np.maximum(np.abs(analytical), np.abs(numerical))
        # What a difference loses is told for each element, by its own noise: a small one beside a large
        # one, 2e-4 beside 2e6, is as well known as its own values are.
        doubt = 10 * uncertain
        most = allowed(analytical, numerical, rtol, atol, OF_LARGEST) + doubt
        finite = np.isfinite(analytical)  # what is not agrees with nothing but itself
        right = (finite & (difference <= most)) | (analytical == numerical)
        self.triangular = _reads_one_triangle(analytical, numerical, most)
        if self.triangular:
            difference = np.abs(_symmetric(analytical - numerical))
        wrong = np.zeros_like(right) if self.triangular else np.asarray(~right)
        for kink in kinks:
            wrong[kink.index] = not kink.ok
        with np.errstate(all="ignore"):
            relative = np.where(difference == 0, 0.0, difference / np.where(size == 0, 1.0, size))
        relative = np.where(np.isnan(relative), np.inf, relative)
        relative = np.where(size <= 10 * uncertain, 0.0, relative)  # zeros, as far as can be seen
        smooth = np.array(relative)
        for kink in kinks:
            smooth[kink.index] = 0
        self.wrong, self.ok = wrong, not wrong.any()
        self.unseen = _unseen(analytical, difference, most - doubt, doubt) & ~wrong
        self.coarse = _coarse(analytical, difference, most - doubt, doubt) * ~(wrong | self.unseen)
        self.index, self.error = worst(smooth if self.ok else np.where(wrong, relative, -1.0))

    @property
    def at_edge(self) -> bool:
        """Whether the worst element is undefined or unbounded here, whatever the gradient says."""
        slope = np.abs(self.numerical[self.index])
        finite = np.isfinite(self.analytical[self.index]) and slope < np.inf
        return not (finite and slope < self.unbounded[self.index])


def _unseen(analytical: Any, difference: Any, most: Any, doubt: Any) -> Any:
    """Which elements agree for their differences' doubt alone, and are as small as half of that.

    What is far smaller may be what rounding leaves of a zero, of a bias before a batch norm, say.
    """
    size = np.abs(analytical)
    small = (size < doubt / 2) & (size > ROUNDED * doubt)
    return np.asarray((difference > most) & small)


def _coarse(analytical: Any, difference: Any, most: Any, doubt: Any) -> Any:
    """The doubt of elements that agree for it alone, relative to them, where it is above COARSE."""
    size = np.abs(analytical)
    part = np.where(size > ROUNDED * doubt, doubt / np.where(size == 0, 1.0, size), 0.0)
    return np.where((difference > most) & (part > COARSE), part, 0.0)


def _symmetric(matrix: Any) -> Any:
    return (matrix + np.swapaxes(matrix, -1, -2)) / 2


def _reads_one_triangle(analytical: Any, numerical: Any, most: Any) -> bool:
    """Whether a symmetric gradient stands for one triangle's, the other of which is not read."""
    shape = np.shape(analytical)
    if len(shape) < 2 or shape[-1] != shape[-2] or shape[-1] == 1:
        return False
    upper, lower = np.triu(numerical, 1), np.tril(numerical, -1)
    if upper.any() == lower.any() or not np.isfinite(analytical).all():
        return False
    with np.errstate(invalid="ignore"):
        same = np.abs(np.real(analytical - _symmetric(numerical))) <= 2 * _symmetric(most)
    return bool(same.all() and np.allclose(analytical, np.swapaxes(np.conj(analytical), -1, -2)))


def is_analytic(
    program: Program, arrays: Mapping[str, Any], names: Mapping[str, Any] | None = None
) -> bool:
    """Whether a complex step says the truth: all that the program does here is analytic.

    names: what else the program may use.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error", np.exceptions.ComplexWarning)  # imaginary parts got lost
        try:  # on complex numbers, for some functions do something else with them
            value, trace = traced_run(program, _lifted(arrays), (), True, names or {})
        except (LanguageError, np.exceptions.ComplexWarning):
            return False
    made = calls([trace.value_of(value)])
    return not trace.followed and bool(made) and all(table.is_analytic(c.primitive) for c in made)


def _lifted(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """The floating arrays as complex ones."""
    return {n: a.astype(np.complex128) if a.dtype.kind == "f" else a for n, a in arrays.items()}


def outputs_of(value: Any) -> list[Tensor]:
    """The differentiable tensors of a value."""
    found = list(value) if isinstance(value, (tuple, list)) else [value]
    return [v for v in found if isinstance(v, Tensor) and (v.is_floating_point() or v.is_complex())]


def random_cotangents(outputs: Sequence[Tensor], number: int = 0) -> list[Any]:
    """Random cotangents of the outputs' shapes, the same every time."""
    rng = np.random.default_rng(2026 + number)
    if len(outputs) == 1 and outputs[0].numel() == 1 and not outputs[0].is_complex():
        return [np.ones(outputs[0].shape)]  # there is one direction, and it hides nothing
    found = []
    for o in outputs:
        cotangent = rng.uniform(0.5, 1.5, o.shape) * rng.choice([-1.0, 1.0], o.shape)
        if o.is_complex():
            cotangent = cotangent + 1j * rng.uniform(-1, 1, o.shape)
        found.append(np.asarray(cotangent))
    return found


def check_point(
    function: Function,
    arrays: Mapping[str, Any],
    wrt: Sequence[str],
    *,
    number: int = 0,
    rtol: float = RTOL,
    atol: float | None = None,
    analytic: bool = False,
) -> dict[str, Checked]:
    """Check the gradients of `function(**tensors)` at a point.

    arrays: name -> NumPy array. rtol, atol: see `compare.allowed`. analytic: whether a complex step may
    be taken. Of many elements of a variable a sample is looked at one by one, and all together along
    random directions. Raises NotFinite where the function has no finite value.
    """
    leaves = {n: wrap(np.array(arrays[n]), requires_grad=True) for n in wrt}
    rest = {n: wrap(np.array(a)) for n, a in arrays.items() if n not in wrt}
    with modes.enable_grad():
        outputs = outputs_of(function(**leaves, **rest))
        for o in outputs:
            if not np.isfinite(o.array).all():
                raise NotFinite(o.array)
        cotangents = random_cotangents(outputs, number)
        scale = sum(
            float(np.abs(s * o.array).sum()) for o, s in zip(outputs, cotangents, strict=True)
        )
        analytic = analytic and not any(o.is_complex() for o in outputs)  # their real parts count
        grads = of_recorded(outputs, [leaves[n] for n in wrt], _starts(outputs, cotangents))

    def along(name: str, array: Any) -> Any:
        """The scalar whose gradient is checked, with another value of one variable."""
        lifted = array.dtype.kind == "c" != arrays[name].dtype.kind  # a complex step
        rest = _lifted(arrays) if lifted else arrays
        given = {**{n: wrap(np.array(rest[n])) for n in arrays}, name: wrap(array)}
        try:
            with modes.no_grad():
                values = outputs_of(function(**given))
        except (*OPERATION_ERRORS, LanguageError):
            if lifted:
                raise
            # A program may ask for gradients on its way: it gets them, as at the point.
            given = {**{n: wrap(np.array(rest[n])) for n in arrays}, name: wrap(np.array(array))}
            with modes.enable_grad():
                own = {n: t.requires_grad_() if n in wrt else t for n, t in given.items()}
                values = outputs_of(function(**own))
        return _total(values, cotangents)

    def compared(name: str, mine: Any, scale: float) -> Checked:
        array = np.asarray(arrays[name])
        try:
            return _compare(name, array, mine, along, scale, rtol, atol, analytic)
        except (*OPERATION_ERRORS, LanguageError):
            if not analytic:
                raise
            return _compare(name, array, mine, along, scale, rtol, atol, False)

    mine = {
        n: np.zeros(np.shape(arrays[n]), np.asarray(arrays[n]).dtype) if g is None else g.numpy()
        for n, g in zip(wrt, grads, strict=True)
    }
    found = {n: compared(n, g, scale) for n, g in mine.items()}
    if doubtful := [
        n for n, c in found.items() if (c.kinks or not c.ok) and np.isfinite(c.analytical).all()
    ]:
        felt = _felt(function, {**leaves, **rest}, cotangents)
        if felt > 2 * scale:  # what cancels is not as exact as it is small
            found |= {n: compared(n, mine[n], felt) for n in doubtful}
    return found


def _felt(function: Function, tensors: Mapping[str, Tensor], cotangents: Sequence[Any]) -> float:
    """The size of all that a function works out on its way, each by how much of it comes through.

    A running error analysis: 1 + erf(-7) is 0 to the accuracy of 1.
    """
    made: list[Tensor] = []

    def seen(primitive: Any, values: Any, result: Any) -> None:
        made.extend(t for t in outputs_of(result) if t.requires_grad)

    with modes.changed(intercept=seen), modes.enable_grad():
        outputs = outputs_of(function(**tensors))
    slopes = of_recorded(outputs, made, _starts(outputs, cotangents))
    total = 0.0
    for t, g in zip(made, slopes, strict=True):
        if g is not None and t.shape == g.shape:
            sizes = np.abs(t.array) * np.abs(g.array)
            total += float(sizes.sum(where=np.isfinite(sizes)))
    return total


def _starts(outputs: Sequence[Tensor], cotangents: Sequence[Any]) -> list[Tensor]:
    return [wrap(s.astype(o.array.dtype)[()]) for o, s in zip(outputs, cotangents, strict=True)]


def _total(values: Sequence[Tensor], cotangents: Sequence[Any]) -> Any:
    total = 0.0
    for v, s in zip(values, cotangents, strict=True):
        if np.iscomplexobj(s):
            total += float(np.real(np.conj(s) * v.array).sum())
        else:
            total += (s * v.array).sum()
    return total


class _Slopes(NamedTuple):
    """The numerical slopes of a function of one variable at a point, beside the gradient there.

    along: the function's value, by the variable's. scale: the size of what it is a sum of. exact: whether
    slopes are taken by a complex step.
    """

    along: Callable[[Any], Any]
    array: Any
    analytical: Any
    scale: float
    rtol: float
    exact: bool
    centre: float  # the value at the point, where differences are taken

    def line(self, where: Any, axis: complex = 1.0) -> Callable[[float], float]:
        """The value along an element, or a direction, by the step; nan outside of the domain."""

        def value(step: float) -> float:
            try:
                return float(np.real(self.along(_moved(self.array, where, step * axis))))
            except (*OPERATION_ERRORS, LanguageError):  # at the point it is inside
                return np.nan

        return value

    def imaginary(self, where: Any, step: float) -> float:
        """The slope along an element, or a direction, by a complex step."""
        return float(np.imag(self.along(_moved(self.array, where, 1j * step))) / step)

    def agree(self, direction: Any) -> bool:
        """Whether the slope along a direction, about as large as the array is, is the gradient's."""
        terms = np.real(np.conj(direction) * self.analytical)
        expected, size, sides = float(terms.sum()), float(np.linalg.norm(terms)), None
        if self.exact:
            slope, error = self.imaginary(direction, COMPLEX_STEP), ROUNDING * self.scale
        else:
            slope, error, sides = _slope(self.line(direction), self.centre, self.scale, 1.0)
        if sides is not None:
            return Kink((), sides, expected).ok
        return bool(abs(slope - expected) <= self.rtol * size + 10 * error)

    def by_complex_step(self, i: tuple[int, ...]) -> tuple[float, float] | None:
        """(slope, its uncertainty) by an element; None where the function is not analytic."""
        size, expected = float(np.abs(self.array[i])), self.analytical[i]
        step = min(COMPLEX_STEP, size * COMPLEX_PART) or COMPLEX_STEP
        slope = self.imaginary(i, step)
        # As far as the value itself is known, and what the step takes below the range.
        uncertain = ROUNDING * self.scale / max(size, 1) + SMALLEST / step
        if abs(slope - expected) > 10 * uncertain:
            apart = abs(self.imaginary(i, step * FARTHER) - slope)
            uncertain += apart / FARTHER**2  # what the step adds: of the third derivative
            if abs(slope - expected) > 10 * uncertain and apart > abs(slope):
                return None  # a root of the step
        return slope, uncertain

    def by_differences(self, i: tuple[int, ...]) -> tuple[complex, float, list[Kink]]:
        """(slope, its uncertainty, kinks) by an element; a complex one is moved along both axes."""
        size, kinks = float(np.abs(self.array[i])), []
        parts: list[tuple[float, float]] = []
        for axis in (1.0, 1j) if self.array.dtype.kind == "c" else (1.0,):
            value = self.line(i, axis)
            expected = float(np.real(np.conj(axis) * self.analytical[i]))
            slope, error, sides = _slope(value, self.centre, self.scale, size)
            if np.isnan(slope):
                slope, error = _inside(value, self.centre, self.scale, size)
            elif (
                sides is not None
                or not abs(slope - expected) <= self.rtol * abs(expected) + 10 * error
            ):
                slope, error, sides = _looked_again(
                    value, self.centre, self.scale, size, expected, (slope, error, sides)
                )
            if sides is not None:
                kinks.append(Kink(i, sides, self.analytical[i]))
            elif abs(slope - expected) > self.rtol * abs(expected):  # the noise alone excuses it
                slope, error = _from_afar(value, self.centre, self.scale, size, (slope, error))
            parts.append((slope, error))
        slope_of_both = parts[0][0] if len(parts) == 1 else complex(parts[0][0], parts[1][0])
        return slope_of_both, max(e for _, e in parts), kinks


def _compare(
    name: str,
    array: Any,
    analytical: Any,
    along: Callable[[str, Any], Any],
    scale: float,
    rtol: float,
    atol: float | None,
    analytic: bool,
    many: int = MANY,
) -> Checked:
    """One variable's gradient, both ways; of more than `many` elements, all together and a sample."""
    exact = analytic and array.dtype.kind == "f"
    centre = 0.0 if exact else np.real(along(name, np.array(array)))
    slopes = _Slopes(partial(along, name), array, analytical, scale, rtol, exact, centre)
    places = list(np.ndindex(array.shape)) if array.size <= many else _sample(array, slopes.agree)
    numerical, uncertain = np.array(analytical), np.zeros(array.shape)
    kinks: list[Kink] = []
    for i in places:
        if not exact:
            numerical[i], uncertain[i], bends = slopes.by_differences(i)
            kinks += bends
        elif (pair := slopes.by_complex_step(i)) is not None:
            numerical[i], uncertain[i] = pair
        else:
            return _compare(name, array, analytical, along, scale, rtol, atol, False, many)
    bound = UNBOUNDED * np.maximum(scale / np.where(array == 0, 1.0, np.abs(array)), 1.0)
    method = "complex step" if exact else "differences"
    found = Checked(analytical, numerical, uncertain, kinks, method, rtol, atol, bound)
    found.seen = len(places)
    if not found.ok and found.seen < array.size and array.shape[-2:-1] == array.shape[-1:]:
        # It may be that of one triangle, which all elements tell.
        whole = _compare(name, array, analytical, along, scale, rtol, atol, analytic, array.size)
        return whole if whole.triangular else found
    return found


def _moved(array: Any, where: Any, by: complex) -> Any:
    """The array with one element moved, where that is an index, or all along a direction."""
    if not isinstance(where, tuple):
        return array + by * where
    kind = np.result_type(array, np.complex128) if isinstance(by, complex) else array.dtype
    moved = np.array(array, kind)
    moved[where] += by
    return moved


def _sample(array: Any, agrees: Callable[[Any], bool]) -> list[tuple[int, ...]]:
    """Some of many elements, and those that make the gradient along a direction wrong, if it is.

    Such an element is found in half of the direction, and half of that, and so on.
    """
    rng = np.random.default_rng(array.size)
    found = {0, array.size - 1, *rng.choice(array.size, SOME).tolist()}
    for axis in (1.0, 1j) if array.dtype.kind == "c" else (1.0, 1.0):
        direction = rng.choice([-1.0, 1.0], array.size) * np.maximum(np.abs(array).ravel(), 0.1)
        support = np.arange(array.size)

        def part(of: Any, whole: Any = direction * axis) -> Any:
            made = np.zeros_like(whole)
            made[of] = whole[of]
            return made.reshape(array.shape)

        if agrees(part(support)):
            continue
        while support.size > 1:
            first, second = np.array_split(support, 2)
            support = second if agrees(part(first)) else first
        found.add(int(support[0]))
    return [tuple(map(int, np.unravel_index(k, array.shape))) for k in sorted(found)]


def _steps(size: float) -> list[float]:
    """The first steps from an element of this size: smaller and smaller, and smaller than itself."""
    found = [_step(max(size, 0.1)) / SHRINK**k for k in range(SHRINKS)]
    if 0 < size < 0.1:
        found += [h for k in range(CLOSE) if SMALLEST < (h := _step(size) / SHRINK**k) < found[-1]]
    return found


def _step(size: float) -> float:
    return float(ODD * 2.0 ** round(np.log2(STEP * size))) if STEP * size > SMALLEST else 0.0


def _slope(
    value: Callable[[float], float], centre: float, scale: float, size: float
) -> tuple[float, float, Sides | None]:
    """(derivative, its uncertainty, the slopes to both sides if there is a kink or a jump).

    scale: the size of what the value is a sum of; size: that of the element. The first step shrinks
    until the extrapolation converges inside the function's domain: only what never does, however near,
    and has two different slopes at every step, is a kink.
    """
    best, error = np.nan, np.inf
    sides: tuple[float, float] | None = None
    shrinking = False
    steps = _steps(size)
    for h in steps:
        noise = (ROUNDING * scale + SMALLEST) / h
        slope, guess, wide, narrow = _extrapolated(value, centre, h)
        if sides is not None and abs(sides[1] - sides[0]) < FELT * noise:
            break  # a nearer look would see nothing
        if not np.isfinite(slope):
            continue
        # Of a smooth function the slopes to both sides come together with the step; at a kink not.
        gap = abs(narrow[1] - narrow[0])
        wider = abs(wide[1] - wide[0])
        apart = gap > 100 * noise + 1e-6 * abs(slope) and gap > 0.7 * wider
        doubt = guess + noise + apart * gap  # the point is on no line between those beside it
        if doubt < error:
            best, error = slope, doubt
        if apart:
            shrinking = gap < SLOWLY * wider
            sides = narrow if sides is None or gap > SEEN * noise else sides
        elif guess <= CONVERGED * abs(slope) + noise and _is_steady(value, slope, h, noise):
            return slope, guess + noise, None
        else:
            sides = None
    if _jumps(value, centre, scale, *steps[-2:]):
        beside = _beside(value, steps[SHRINKS // 2])
        return (beside.left + beside.right) / 2, 0.0, beside
    if sides is not None and shrinking:  # as of abs(x)**1.1, that has a slope at 0
        return (sides[0] + sides[1]) / 2, abs(sides[1] - sides[0]), None
    found = Sides(*sides, jump=False) if sides is not None else None
    return best, error if np.isfinite(best) else 0.0, found


def _from_afar(
    value: Callable[[float], float],
    centre: float,
    scale: float,
    size: float,
    near: tuple[float, float],
) -> tuple[float, float]:
    """(slope, its uncertainty) by wider steps, where it is noise that makes the slope by near ones uncertain.

    They are believed where the extrapolation converges, to what the near ones know already.
    """
    slope, error = near
    noise = max(ROUNDING * scale + SMALLEST, _noise(value, size))
    step = _step(max(size, 0.1))
    if error > FARTHEST * noise / step:
        return near
    for first in (step * wider for wider in WIDER):
        found, guess, *_ = _extrapolated(value, centre, first, halvings=3)
        doubt = 2 * guess + 8 * noise / first
        if doubt < error and abs(found - slope) <= 3 * error:
            return found, doubt
    return near


def slopes_beside(
    value: Callable[[float], float], centre: float, size: float
) -> tuple[float, Sides | None]:
    """(the slope of a value by how far a number moves, its slopes to both sides if they differ).

    size: that of the number. The slope is nan where neither side is inside of the domain.
    """
    scale = abs(centre) if np.isfinite(centre) else 0.0
    slope, _, sides = _slope(value, centre, scale, size)
    if np.isnan(slope):
        slope, _ = _inside(value, centre, scale, size)
    return slope, sides


def slopes_at_edge(value: Callable[[float], float], size: float) -> tuple[float, float]:
    """The slopes of a value to the left and right of a point at which rules give none; NaN, or infinite.

    Slopes at steps that are halved are extrapolated to 0 (Richardson). The steps are not small: near such
    a point values are not as exact as they are large.
    """
    centre, found = value(0.0), []
    for side in (-1.0, 1.0):
        steps = [ODD * 2.0**-k * max(size, 0.1) for k in range(4, 16)]
        slopes = np.array([side * (value(side * h) - centre) / h for h in steps])
        if not np.isfinite(slopes).all():
            found.append(np.nan)
            continue
        near = 2 * slopes[1:] - slopes[:-1]
        gaps = np.abs(np.diff(near))
        best = int(np.argmin(gaps))
        slope, error = float(near[best + 1]), float(gaps[best])
        if error > 1e-4 * (abs(slope) + abs(float(slopes[0]))):
            found.append(float(np.copysign(np.inf, slope)))
        else:
            found.append(slope if abs(slope) > 10 * error else 0.0)
    return found[0], found[1]


def _inside(
    value: Callable[[float], float], centre: float, scale: float, size: float
) -> tuple[float, float]:
    """(derivative, its uncertainty) at the edge of a domain, from the side that is inside.

    Of h, h/16, ... the slopes go to it as a geometric series does (Aitken). nan where neither side is
    inside, or both, or where the slopes do not come together.
    """
    steps = _steps(size)
    for side in (-1, 1):
        found = [side * (value(side * h) - centre) / h for h in steps]
        if not np.isfinite(found).all():
            continue
        gaps = np.abs(np.diff(found))
        noise = ROUNDING * scale / steps[-1]
        if np.isfinite(value(-side * steps[-1])) or np.any(gaps[1:] > SLOWLY * gaps[:-1] + noise):
            break
        ratio = gaps[-1] / gaps[-2] if gaps[-2] else 0.0
        rest = (found[-1] - found[-2]) * ratio / (1 - ratio)  # of a geometric series
        return found[-1] + rest, 0.1 * abs(rest) + noise
    return np.nan, 0.0


def _looked_again(
    value: Callable[[float], float],
    centre: float,
    scale: float,
    size: float,
    own: float,
    found: tuple[float, float, Sides | None],
) -> tuple[float, float, Sides | None]:
    """The slope, before a gradient `own` is called wrong: with the accuracy that the values have.

    Values of a nearly singular inverse are not as exact as they are large, and change within less than
    a step: the smallest steps that tell anything decide between the two slopes.
    """
    noise = _noise(value, size)
    if noise > ROUNDING * scale:
        again = _slope(value, centre, noise / ROUNDING, size)
        if again[2] is None or (found[2] is not None and found[2].jump and not again[2].jump):
            found = again
    slope, _, sides = found
    if sides is not None and sides.jump:
        return found
    first = (_step(size) or _step(0.1)) * SHRINK
    for h in (first / SHRINK**k for k in range(SHRINKS - 1, -1, -1)):
        doubt = max(noise, ROUNDING * scale / 8) / h
        if doubt > 0.2 * max(abs(own), abs(slope)):
            continue
        left, right = (centre - value(-h)) / h, (value(h) - centre) / h
        near, width = (left + right) / 2, 3 * doubt + 0.1 * abs(own)
        if abs(right - left) > 2 * width + 15 * doubt and min(left, right) <= own <= max(
            left, right
        ):
            gap = abs(value(h / 2) + value(-h / 2) - 2 * centre) / (h / 2)
            if gap < 0.7 * abs(right - left):  # the slopes come together: it bends within a step
                return near, abs(right - left) / 20, None
            return near, doubt, Sides(left, right, jump=False)
        if abs(near - own) > width:
            break
        straight = abs(right - left) <= 20 * doubt + 0.01 * abs(own)
        if abs(near - slope) > 3 * doubt + 0.1 * abs(slope) or (sides is not None and straight):
            return near, doubt, None
        break
    return found


def _noise(value: Callable[[float], float], size: float) -> float:
    """How exact the function's values are: what high differences between near points leave of them.

    Moré and Wild, Estimating computational noise (2011); on the calmer side of the point, for on the
    other there may be a gap.
    """
    found = []
    for side in (-1, 1):
        for k in range(20):
            h = side * (size or 1.0) * 2.0 ** (2 * k - 46)
            values = np.array([value(j * h) for j in range(1, 8)])
            if not np.isfinite(values).all():
                break
            steps = np.abs(np.diff(values))
            if steps.any():  # how far apart two values are is as exact as they get
                fourth = np.abs(np.diff(values, 4)).max() / 8.4  # (8!/(4!)**2)**0.5
                found.append(float(max(fourth, steps[steps > 0].min() / 2)))
                break
    least, most = min(found, default=0.0), max(found, default=0.0)
    return most if most < 100 * least else least


def _jumps(
    value: Callable[[float], float], centre: float, scale: float, near: float, nearer: float
) -> bool:
    """Whether the value goes on changing by as much as the step becomes ever smaller."""
    for side in (-1, 1):
        gap = abs(value(side * nearer) - centre)
        if gap > FELT * ROUNDING * scale and gap > 0.9 * abs(value(side * near) - centre):
            return True
    return False


def _beside(value: Callable[[float], float], h: float) -> Sides:
    """The slopes beside a jump: each between two points of its own side."""
    left, right = (side * (value(side * h) - value(side * h / 2)) / (h / 2) for side in (-1, 1))
    return Sides(left + 0.0, right + 0.0, jump=True)  # 0 for -0


def _is_steady(value: Callable[[float], float], slope: float, first: float, noise: float) -> bool:
    """Whether the slope is one from much nearer too: over periods, differences agree by chance."""
    h = first / NEARER
    near = (value(h) - value(-h)) / (2 * h)
    return bool(abs(near - slope) <= 1e-3 * abs(slope) + 100 * NEARER * noise)


def _extrapolated(
    value: Callable[[float], float], centre: float, first: float, halvings: int = 4
) -> tuple[float, float, tuple[float, float], tuple[float, float]]:
    """(slope, its uncertainty, the slopes to the left and right at the first step and at the last).

    Ridders' tableau of central differences, halved and extrapolated: Numerical Recipes, 5.7.
    """
    rows: list[list[float]] = []
    sides: list[tuple[float, float]] = []
    best, error = np.nan, np.inf
    for k in range(halvings + 1):
        h = first / 2.0**k
        up, down = value(h), value(-h)
        row = [(up - down) / (2 * h)]
        sides.append(((centre - down) / h, (up - centre) / h))
        for j, before in enumerate(rows[-1] if rows else ()):
            row.append(row[j] + (row[j] - before) / (4.0 ** (j + 1) - 1))
            guess = max(abs(row[j + 1] - row[j]), abs(row[j + 1] - before))
            if guess < error:
                best, error = row[j + 1], guess
        rows.append(row)
    return best, error, sides[0], sides[-1]


def costly_slopes(value: Callable[[Any], float], array: Any) -> tuple[Any, Any]:
    """(slopes by each element, their uncertainties) of a smooth function, of four values an element."""
    slopes, uncertain = np.zeros(array.shape), np.zeros(array.shape)
    for index in np.ndindex(array.shape):
        step = STEP * max(1.0, float(np.abs(array[index])))
        centre = 0.0

        def along(h: float, index: Any = index) -> float:
            nonlocal centre
            centre = value(_moved(array, index, h))
            return centre

        slopes[index], guess, *_ = _extrapolated(along, np.nan, step, halvings=1)
        uncertain[index] = guess * SMOOTH + ROUNDING * abs(centre) / (step / 2)
    return slopes, uncertain


# -- second derivatives ---------------------------------------------------------------------------
def gradient_function(function: Function, wrt: Sequence[str], number: int = 0) -> Function:
    """The function that gives the gradients of `function` with random cotangents, differentiable."""

    def gradients(**tensors: Tensor) -> Any:
        with modes.enable_grad():
            # A point of differences has no leaves: it gets them here.
            own = {
                n: t if t.requires_grad else t.detach().requires_grad_()
                for n, t in tensors.items()
                if n in wrt
            }
            outputs = outputs_of(function(**{**tensors, **own}))
            cotangents = [wrap(s[()]) for s in random_cotangents(outputs, number)]
            how = {"create_graph": True, "materialize_grads": True}
            found = of_recorded(outputs, [own[n] for n in wrt], cotangents, **how)
        return [g for g in found if g is not None]

    return gradients
