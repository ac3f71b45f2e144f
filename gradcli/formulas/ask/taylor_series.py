"""Taylor polynomials: an expression as a power series, by exact arithmetic on the coefficients.

On the line x = a + t*h every expression is a series in t, whose coefficients are polynomials of the steps h.
A series may begin with a negative power, so that x/(exp(x) - 1) is divided as it stands.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import takewhile
from math import factorial
from typing import Any, NamedTuple

import numpy as np

from gradcli.engine.core.tensor import wrap
from gradcli.formulas.algebra import algebra as alg
from gradcli.formulas.algebra.exact_check import evaluated
from gradcli.formulas.algebra.exact_numbers import ONE, Number
from gradcli.formulas.algebra.expression_evaluation import evaluate, value_at
from gradcli.formulas.algebra.expression_text import to_text
from gradcli.formulas.algebra.expressions import (
    Expression,
    call,
    is_number,
    name,
    number,
    order,
    value_of,
)
from gradcli.formulas.algebra.generic_points import Arrays, many_points, quiet
from gradcli.formulas.algebra.rewriting import recalled, rewrite
from gradcli.formulas.algebra.spelling import NoExpression
from gradcli.formulas.derive.differentiate import (
    PI,
    VALUE,
    Derivatives,
    Run,
    first_order,
    positions,
    reading,
    released,
    slope,
)
from gradcli.formulas.print.printed_text import spelled_out
from gradcli.formulas.simplify.scalar_forms import expanded
from gradcli.formulas.simplify.simplify import simplify
from gradcli.language import parse, run
from gradcli.language.program import Program

_POINT = "#c"  # where a function is expanded; no valid name of the language
_STEP = "#h"  # from the point to a variable
COMPARED: dict[str, Callable[[float, float], bool]] = {
    word: getattr(operator, word) for word in ("eq", "ne", "lt", "le", "gt", "ge")
}


def _bessel(odd: int, sign: int) -> Callable[[int], Fraction]:
    """The terms of J or I of order 0 or 1: sign**m*(x/2)**(2*m + odd)/(m!*(m + odd)!)."""

    def term(k: int) -> Fraction:
        m, rest = divmod(k - odd, 2)
        below = 2**k * factorial(max(m, 0)) * factorial(max(m, 0) + odd)
        return Fraction(0) if rest or m < 0 else Fraction(sign**m, below)

    return term


# Functions whose slopes divide by their argument: the terms of their series at 0.
AT_ZERO = {
    **dict.fromkeys(("i0", "special.modified_bessel_i0"), _bessel(0, 1)),
    **dict.fromkeys(("special.i1", "special.modified_bessel_i1"), _bessel(1, 1)),
    **{"special.bessel_j0": _bessel(0, -1), "special.bessel_j1": _bessel(1, -1)},
}
FIRST = 4  # the first step at which the value must be real is 1/16
EXACTLY, EXTRA = 80, 30  # digits of the decimals, and how many more of them count than of doubles
LOST = (0, 1, 2, 4, 8)  # powers of t that may cancel in divisions; in turn


class HasArrays(NoExpression):
    """A program's parts are arrays, which have no series here; whether its value has one is not told."""


class Series(NamedTuple):
    """terms[k]*t**(first + k); the first term is not zero, unless all are."""

    first: int
    terms: list[Expression]


class Polynomial(Derivatives):
    """A Taylor polynomial: `by` has it under VALUE. terms: those of it that are not zero, by degree."""

    kind = "value"

    __slots__ = ("terms",)

    terms: list[Expression]

    @property
    def whole(self) -> Expression:
        """The polynomial."""
        return self.by[VALUE]

    def text(self, form: str = "text") -> str:
        """The sum of the terms, in their order; one that is a sum itself is in brackets."""
        first, *rest = (str(spelled_out(t, form)) for t in self.terms)
        brackets = r"\left({}\right)" if form == "latex" else "({})"
        for term, text in zip(self.terms[1:], rest, strict=True):
            own = brackets.format(text) if term.op == "sum" else text
            first += f" - {own[1:]}" if own[0] == "-" else f" + {own}"
        return first


def taylor(
    program: Program,
    arrays: Arrays,
    texts: Mapping[str, str],
    degree: int,
    names: Arrays,
    held: Collection[str] = (),
) -> Polynomial:
    """The Taylor polynomial of a program's value, proved by how fast what is left of the value vanishes.

    arrays: the variables. texts: their values, exact; of those in `held` it is a constant, in the others the
    value is expanded. Raises NoExpression where there is no such polynomial, HasArrays where a variable or a
    part is an array, and LanguageError if a text is none of a number.
    """
    for name_of, array in arrays.items():
        if np.ndim(array) and name_of in held:
            raise HasArrays(
                f"{name_of} is an array: the coefficients are numbers then, and those of a real number in "
                "one variable, as text"
            )
        if np.ndim(array):
            raise NoExpression(f"taylor expands in numbers: {name_of} is an array")
    with reading(program, arrays, ()) as (values, _):
        first = first_order(Run(program, values, names=names))
        if first.shape:
            raise NoExpression(f"taylor expands a number: the value has shape {first.shape}")
        if not first.real:
            raise NoExpression("taylor expands a real number: this one is complex")
        if not _is_of_numbers(first.value):
            first.value = simplify(first.value)
        if (part := _first_array(first.value)) is not None:
            raise HasArrays(
                f"taylor expands what is made of numbers: a part of this program is an array of shape "
                f"{part.shape}; write its elements out, as in sqrt(x**2 + y**2) for norm(stack([x, y]))"
            )
        places = positions(program)
        at = {x: first_order(Run(parse(t), {})).value for x, t in texts.items()}
        symbols = {x: name(x, (), places.get(x, -1)) for x in at}
        steps = {x: name(f"{_STEP}{x}", (), places.get(x, -1)) for x in at if x not in held}
        moved = {step: alg.subtract(symbols[x], at[x]) for x, step in steps.items()}
        found = Polynomial(program, values, first.value, {}, (), False)
        # sin(x)/x**3 divides by a power, which takes terms away: as many more are computed until enough are
        # left.
        for lost in LOST:
            known = {
                symbols[x]: Series(0, [a, steps[x]] if x in steps else [a]) for x, a in at.items()
            }
            expansion = _Expansion(known, degree + 1 + lost)
            series = expansion.of(first.value)
            if series.first < 0 and not is_number(series.terms[0], 0):
                continue
            terms = [
                _put(simplify(t), moved) for t in series.terms[: max(degree + 1 - series.first, 0)]
            ]
            found.terms = [_with_factor(t) for t in terms if not is_number(t, 0)] or [alg.zero]
            found.by = {VALUE: alg.add(*found.terms)}
            # Series are exact, but functions may jump or have a corner there: only numbers on both sides
            # tell.
            if is_right(program, parse(found.text()), values, degree, texts, names, held):
                return found
            if is_exactly_right(first.value, found.whole, at, symbols, degree, held):
                return found
            if not expansion.has_lost:  # and no more terms would mend it
                break
    raise NoExpression("the value is not smooth there: no Taylor polynomial approximates it")


def series_of(value: Expression, variable: Expression, point: Expression, count: int) -> Series:
    """The series of a value in the distance of a variable from a point, of so many terms.

    Raises NoExpression where it has none.
    """
    return _Expansion({variable: Series(0, [point, alg.one])}, count).of(value)


def _is_of_numbers(expression: Expression) -> bool:
    return _first_array(expression) is None


def _first_array(expression: Expression) -> Expression | None:
    """The first part that is an array; None if all are numbers."""
    return next((n for n in order([expression]) if n.shape or n.op == "array"), None)


class _Expansion:
    """The series of the parts of one expression.

    has_lost: whether leading terms have cancelled, so that the last ones are not known.
    """

    def __init__(self, known: Mapping[Expression, Series], count: int) -> None:
        self.known, self.count, self.has_lost = known, count, False
        self.slopes: dict[tuple[Expression, str], Expression] = {}

    def of(self, root: Expression) -> Series:
        """The series of an expression."""
        made: dict[Expression, Series] = {}
        for node in order([root]):
            parts = [made[p] for p in node.parts]
            if node in self.known:
                made[node] = self.cut(self.known[node])
            elif all(map(_is_constant, parts)):
                made[node] = Series(0, [self.constant(node, parts)])
            elif node.op == "sum":
                made[node] = self.sum(node, parts)
            elif node.op == "product":
                made[node] = self.product(node, made)
            elif node.data[0] in COMPARED:
                made[node] = Series(0, [number(self.truth(node, *parts))])
            elif node.data[0] == "where":
                made[node] = self.chosen(*parts)
            elif node.data[0] in alg.TRUTHS:
                raise NoExpression(f"{node.data[0]} of what is expanded has no series here")
            else:
                made[node] = self.function(node.data, *parts)
        return made[root]

    def constant(self, node: Expression, parts: list[Series]) -> Expression:
        """A part that does not depend on t, with the point put in."""
        if not node.parts:
            return node
        put_in = {p: s.terms[0] for p, s in zip(node.parts, parts, strict=True)}
        if node.op in ("sum", "product"):
            return _folded(alg.mapped(node, put_in.__getitem__))
        return _folded(recalled(node, tuple(put_in[a] for a in node.args)))

    def truth(self, node: Expression, left: Series, right: Series) -> bool:
        """Whether a comparison holds on both sides of the point, close to it.

        Raises NoExpression where it holds on one side alone, or where that depends on a letter.
        """
        both = [(left, ONE), (right, -ONE)]
        apart = self.total([(self.full(p), c) for p, c in both])
        lead = _number_of(apart.terms[0])
        if lead is None and node.position >= 0 and "#" not in to_text(node):
            raise NoExpression(f"whether {to_text(node)} depends on what is no number")
        if lead is None:
            raise NoExpression("the value changes its formula there: there is no Taylor polynomial")
        # An odd power changes its sign at the point, and the comparison its answer.
        if lead and apart.first % 2 and node.data[0] not in ("eq", "ne"):
            what = f"{to_text(node)} is true on one side of the point alone"
            raise NoExpression(f"{what}: there is no Taylor polynomial")
        return COMPARED[node.data[0]](lead, 0.0)

    @staticmethod
    def chosen(condition: Series, yes: Series, no: Series) -> Series:
        """The branch that is taken around the point."""
        lead = _number_of(condition.terms[0])
        if lead is None:
            raise NoExpression("which branch is taken depends on what is no number")
        return yes if lead else no

    def cut(self, series: Series) -> Series:
        """The series without leading zeros and without terms beyond the count."""
        terms = series.terms
        zeros = next((k for k, c in enumerate(terms) if not is_number(c, 0)), len(terms) - 1)
        # What is exact needs no more terms: x**2 ends, and is multiplied without n**2 products of zeros.
        if len(terms) - zeros == 1:  # a constant, or one power
            return Series(series.first + zeros, terms[zeros:])
        self.has_lost |= zeros > 0
        return Series(series.first + zeros, terms[zeros : zeros + self.count])

    def full(self, series: Series) -> Series:
        """The same number of terms for each: what is exact ends in zeros."""
        more = self.count - len(series.terms)
        return Series(series.first, series.terms + [alg.zero] * more)

    def sum(self, node: Expression, parts: list[Series]) -> Series:
        coefficients, constant = node.data
        scaled = [(self.full(p), c) for p, c in zip(parts, coefficients, strict=True)]
        scaled.append((self.full(Series(0, [number(constant)])), ONE))
        return self.total(scaled)

    def total(self, scaled: list[tuple[Series, Number]]) -> Series:
        """The sum of series of one length, with coefficients."""
        first = min(p.first for p, _ in scaled)
        last = min(p.first + len(p.terms) for p, _ in scaled)
        return self.cut(Series(first, [
            alg.combine((p.terms[k - p.first], c) for p, c in scaled if k >= p.first)
            for k in range(first, last)
        ]))  # fmt: skip

    def product(self, node: Expression, made: Mapping[Expression, Series]) -> Series:
        coefficient, exponents = node.data
        found = Series(0, [number(coefficient)])
        for base, e in zip(node.args, exponents, strict=True):
            if isinstance(e, Expression) and not _is_constant(made[e]):  # exp(e*log(b))
                log = self.function(("log", ()), made[base])
                power = self.function(("exp", ()), self.times(made[e], log))
            else:
                power = self.power(made[base], made[e].terms[0] if isinstance(e, Expression) else e)
            found = self.times(found, power)
        return found

    def times(self, a: Series, b: Series) -> Series:
        if len(a.terms) == 1 or len(b.terms) == 1:
            (one,), many = (a.terms, b.terms) if len(a.terms) == 1 else (b.terms, a.terms)
            return self.cut(Series(a.first + b.first, [alg.multiply(one, c) for c in many]))
        x, y = self.full(a).terms, self.full(b).terms
        made = [
            expanded(alg.add(*(alg.multiply(x[i], y[k - i]) for i in range(k + 1))))
            for k in range(self.count)
        ]
        return self.cut(Series(a.first + b.first, made))

    def power(self, base: Series, exponent: Number | Expression) -> Series:
        """The binomial series: c**e*t**(v*e)*(1 + w)**e, by the recurrence of Euler and Miller.

        The terms of (1 + w)**e are n*a[n] = sum of (k*e - n + k)*w[k]*a[n - k] (Knuth, TAOCP 2, 4.7).
        """
        given = value_of(exponent) if isinstance(exponent, Expression) else exponent
        if given == ONE:
            return base
        first = Number.of(base.first) * (given or ONE)
        if first.integer is None or (base.first and given is None):
            raise NoExpression("a root of zero has no series: take another point")
        e = exponent if isinstance(exponent, Expression) else number(exponent)
        lead = base.terms[0]
        if is_number(lead, 0) and (given is None or given.negative):
            raise NoExpression("the value is infinite there")
        # The first term is taken out, as the recurrence is for series that begin with 1.
        rest = [alg.zero, *(alg.divide(c, lead) for c in base.terms[1:])]
        made = [alg.one]
        for n in range(1, self.count if len(rest) > 1 else 1):
            summands = [
                alg.multiply(alg.add(alg.multiply(number(k), e), number(k - n)), w, made[n - k])
                for k, w in enumerate(rest[: n + 1])
                if not is_number(w, 0) and not is_number(made[n - k], 0)
            ]
            made.append(expanded(alg.divide(alg.add(*summands), number(n))))
        scale = alg.one if is_number(lead, 1) else alg.power(lead, e)
        return self.cut(Series(int(first.value), [alg.multiply(scale, c) for c in made]))

    def function(self, which: tuple[str, Any], *parts: Series) -> Series:
        """A function, of this name and options, of series: the integral over t of its slopes times theirs."""
        word, options = which
        # exp(1/x) has no series in powers of x at all.
        if any(p.first < 0 for p in parts):
            raise NoExpression(f"{word} of what is infinite there has no series")
        given = [Series(0, [alg.zero] * p.first + p.terms) for p in parts]
        words = [f"{_POINT}{k}" for k in range(len(parts))]
        symbols, rates = ([name(w + end, (), 0) for w in words] for end in ("", "'"))
        own = call(word, symbols, (), options) if options else alg.function(word, *symbols)
        with np.errstate(all="ignore"):
            first = _put(own, {v: s.terms[0] for v, s in zip(symbols, given, strict=True)})
        if _is_infinite(first):
            raise NoExpression(f"{word} is not smooth there: there is no Taylor polynomial")
        if self.count == 1:
            return Series(0, [first])
        # At 0 the rule of such a function divides 0 by 0, and its own series is known.
        if word in AT_ZERO and is_number(given[0].terms[0], 0):
            return self.at_zero(AT_ZERO[word], given[0])
        # The slopes of a function come from its own VJP rule, so no function needs a series of its own:
        # f(u)' = f'(u)*u', integrated term by term. It ends, as the inner expansion has one term less.
        arrays = {w: np.float64(0.7 + 0.1 * k) for k, w in enumerate(words)}
        places, pairs = dict.fromkeys(words, 0), []
        for word_of, rate, series in zip(words, rates, given, strict=True):
            if _is_constant(series):  # zeta has no slope by its first argument
                continue
            key = (own, word_of)
            if key not in self.slopes:
                try:
                    by = slope(own, arrays, word_of, places, more=True)[0]
                except NotImplementedError as error:
                    raise NoExpression(str(error)) from error
                self.slopes[key] = rewrite(by, released)
            pairs.append((self.slopes[key], rate))
        known = dict(zip(symbols, given, strict=True))
        for rate, series in zip(rates, given, strict=True):
            grown = [alg.multiply(number(k), c) for k, c in enumerate(series.terms)]
            known[rate] = Series(0, grown[1:] or [alg.zero])
        inner = _Expansion(known, self.count - 1)
        inner.slopes = self.slopes
        found = inner.of(simplify(alg.add(*(alg.multiply(d, rate) for d, rate in pairs))))
        self.has_lost |= inner.has_lost
        if found.first < 0:
            raise NoExpression(f"{word} is not smooth there: there is no Taylor polynomial")
        terms = [alg.zero] * found.first + found.terms
        return self.cut(
            Series(0, [first, *(alg.divide(c, number(k)) for k, c in enumerate(terms, 1))])
        )

    def at_zero(self, terms: Callable[[int], Fraction], u: Series) -> Series:
        """A function of what is 0 at the point, from the terms of its own series at 0."""
        powers, made = Series(0, [alg.one]), []
        for k in range(self.count):
            made.append((self.full(powers), Number.of(terms(k))))
            powers = self.times(powers, self.cut(u))
        return self.total(made)


def _number_of(term: Expression) -> float | None:
    """The value of a term without letters, for a step of 1; None of another."""
    letters = [n for n in order([term]) if n.op == "name" and n not in PI]
    if len(letters) > 1 or any(not n.data.startswith(_STEP) for n in letters):
        return None
    with quiet():
        return float(evaluate([term], {**PI, **dict.fromkeys(letters, wrap(np.float64(1)))})[0])


def _is_constant(series: Series) -> bool:
    return len(series.terms) == 1 and not series.first


def _put(expression: Expression, values: Mapping[Expression, Expression]) -> Expression:
    """The expression with values put in, and functions of numbers folded."""

    return rewrite(expression, lambda node: values.get(node) or _folded(node))


def _folded(node: Expression) -> Expression:
    """A function of numbers as its value, where that is exact; a comparison of numbers as its truth."""
    if node.op != "call" or node.data[1] or not node.args:
        return node
    word = node.data[0]
    if word in (*alg.ODD, "sinc") and is_number(node.args[0], 0):
        return alg.one if word == "sinc" else alg.zero
    if word in COMPARED and all(a.op == "number" for a in node.args):
        return number(COMPARED[word](*(float(a.data.value) for a in node.args)))
    return alg.FUNCTIONS[word](*node.args) or node if word in alg.FUNCTIONS else node


def _with_factor(term: Expression) -> Expression:
    """2*(x - 1) for 2*x - 2."""
    if term.op != "sum":
        return term
    factor, rest = alg.content_of(term)
    return alg.product([(rest, ONE)], factor)


def _is_infinite(expression: Expression) -> bool:
    parts = order([expression])
    zero = any(n.op == "product" and any(is_number(b, 0) for b in n.args) for n in parts)
    numbers = [n.data for n in parts if n.op == "number"]
    return zero or any(not np.isfinite(float(n.value)) for n in numbers)


# -- the proof --------------------------------------------------------------------------------------
def is_right(
    program: Program,
    polynomial: Program,
    arrays: Arrays,
    degree: int,
    texts: Mapping[str, str],
    names: Arrays,
    held: Collection[str],
) -> bool:
    """Whether what is left of a program beside a polynomial vanishes faster than t**degree.

    It is looked at on lines through the point, on both sides, at steps t that halve until they round.
    """
    others: dict[str, Any] = {}
    at = {n: np.asarray(run(parse(text)).value, np.float64) for n, text in texts.items()}

    def left(step: float) -> tuple[float, float]:
        """(the value there, what the polynomial leaves of it)."""
        moved = {
            n: a if n in held else a + step * (1 + k / 3) for k, (n, a) in enumerate(at.items())
        }
        value, shown = (
            float(value_at(p, names, {**others, **moved})) for p in (program, polynomial)
        )
        return abs(value), abs(value - shown)

    with quiet():
        for point in many_points(arrays):
            others.update(point)
            if all(np.isfinite(left(sign * 0.5**FIRST)[0]) for sign in (1, -1)):
                break
        else:
            raise NoExpression("the value is no real number on both sides of that point")
        return all(
            _vanishes([left(sign * 0.5**k) for k in range(1, 25)], degree) for sign in (1, -1)
        )


def is_exactly_right(
    value: Expression,
    polynomial: Expression,
    at: Mapping[str, Expression],
    symbols: Mapping[str, Expression],
    degree: int,
    held: Collection[str],
) -> bool:
    """The same of expressions in decimals, where doubles have too few digits.

    False where a function is none of those that have decimals, or there are letters.
    """
    letters = {n for root in (value, polynomial) for n in order([root]) if n.op == "name"}
    if any(n.position != -1 and n not in symbols.values() for n in letters):
        return False

    def left(step: Decimal) -> tuple[float, float] | None:
        moved = {
            symbols[x]: own if x in held else own + step * (1 + Decimal(k) / 3)
            for k, (x, own) in enumerate(points)
        }
        pair = [evaluated(root, dict(moved)) for root in (value, polynomial)]
        if None in pair:
            return None
        own, shown = pair
        return float(abs(own)), float(abs(own - shown) * Decimal(10) ** EXTRA)  # type: ignore

    with localcontext(Context(prec=EXACTLY)):
        starts = {x: evaluated(own, {}) for x, own in at.items()}
        if None in starts.values():
            return False
        points = [(x, own) for x, own in starts.items() if own is not None]
        sides = [
            [left(sign * Decimal(2) ** -k) for k in range(1, 40)]
            for sign in (Decimal(1), Decimal(-1))
        ]
    return all(None not in side[FIRST - 1 :] for side in sides) and all(
        _vanishes([p for p in side if p is not None], degree) for side in sides
    )


def _vanishes(left: list[tuple[float, float]], degree: int) -> bool:
    """Whether rests at halved steps fall with a power above the degree, as far as they do not round."""
    rests = [rest for _, rest in takewhile(lambda pair: pair[1] > 1e-12 * max(1.0, pair[0]), left)]
    if not all(np.isfinite(rest) for _, rest in left[FIRST - 1 :]):
        return False
    return len(rests) < 2 or bool(np.log2(rests[-2] / rests[-1]) > degree + 0.4)


__all__ = ["LOST", "Polynomial", "Series", "series_of", "taylor"]
