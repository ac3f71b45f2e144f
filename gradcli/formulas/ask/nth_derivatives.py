"""Derivatives of an order that is a letter: what has a closed form in n, by Leibniz' rule and a table.

The n-th derivative of exp(u) is a**n*exp(u) for u = a*x + b, and so on; see
https://en.wikipedia.org/wiki/General_Leibniz_rule. A formula is compared with the derivatives of orders
1 to 6 before it is printed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import islice
from math import factorial
from typing import Any

import numpy as np

from gradcli.formulas.algebra import algebra as alg
from gradcli.formulas.algebra.exact_numbers import ONE, Number
from gradcli.formulas.algebra.expression_evaluation import value_at
from gradcli.formulas.algebra.expression_text import to_text
from gradcli.formulas.algebra.expressions import Expression, call, is_number, name, number, order
from gradcli.formulas.algebra.generic_points import Arrays, many_points, quiet
from gradcli.formulas.algebra.spelling import NoExpression
from gradcli.formulas.derive.differentiate import (
    Derivatives,
    Run,
    differentiate,
    first_order,
    positions,
    reading,
    slope,
)
from gradcli.formulas.print.latex import symbol
from gradcli.formulas.simplify.simplify import simplify
from gradcli.language import parse
from gradcli.language.program import Program

HIGHEST = 6  # order that a formula is compared at
MOST_POINTS = 40
Pairs = list[tuple[Expression, Any]]
KNOWN = "exp, sin, cos, sinh, cosh, log and powers of a*x + b, polynomials times these, and sums"


class OfOrder(Derivatives):
    """Derivatives whose order is a letter, one of `variables`. left: what each is called in LaTeX."""

    kind = "derivative"

    __slots__ = ("left", "letter")

    left: dict[str, str]
    letter: str

    def with_factorials(self, latex: str) -> str:
        r"""LaTeX with `n!` for `\Gamma(n + 1)`: the order is a whole number."""
        gamma = rf"\\Gamma\\left\({re.escape(symbol(self.letter))}(?: ([+-] \d+))?\\right\)"

        def factorial_of(match: re.Match[str]) -> str:
            more = int((match[1] or "0").replace(" ", "")) - 1
            letter = symbol(self.letter)
            shown = f"{letter} {'+' if more > 0 else '-'} {abs(more)}"
            return rf"\left({shown}\right)!" if more else f"{letter}!"

        return re.sub(gamma, factorial_of, latex)


def find(
    letter: str,
    program: Program,
    variables: Arrays,
    wrt: Iterable[str],
    *,
    follow: bool = False,
    names: Arrays | None = None,
    nan_guards: bool = False,
) -> OfOrder:
    """The derivatives of order `letter`, of numbers. Raises NoExpression where no formula is known."""
    if letter in variables:
        raise NoExpression(f"{letter} is a variable of the expression: name the order otherwise")
    if shaped := [x for x, v in variables.items() if np.ndim(v)]:
        raise NoExpression(f"derivatives of order {letter} are by numbers: {shaped[0]} is an array")
    with reading(program, variables, wrt) as (arrays, wanted):
        first = first_order(Run(program, arrays, [], follow, names or {}, nan_guards))
        places = positions(program)
        n = name(letter, (), len(places))
        by = {x: _Leibniz(arrays, x, places, n).of(first.value) for x in wanted}
    found = OfOrder(program, {**arrays, letter: np.float64(1)}, first.value, by, (), False)
    found.letter, power = letter, f"^{{{symbol(letter)}}}"
    d, f = (r"\mathrm{d}", "f") if len(arrays) == 1 else (r"\partial ", " f")
    found.left = {x: rf"\frac{{{d.strip()}{power}{f}}}{{{d}{symbol(x)}{power}}}" for x in by}
    for x, formula in by.items():
        if not _holds(formula, letter, program, arrays, x, names or {}):
            raise NoExpression(f"no formula in {letter} was found that holds for 1 to {HIGHEST}")
    return found


class _Leibniz:
    """The n-th derivative by a variable."""

    def __init__(self, arrays: Arrays, x: str, places: dict[str, int], n: Expression) -> None:
        self.arrays, self.places, self.n = arrays, places, n
        self.x = name(x, (), places[x])

    def of(self, value: Expression) -> Expression:
        """The n-th derivative of a sum of products."""
        terms = [(t, c) for c, t in alg.terms_of(value) if self.depends(t)]
        return alg.combine((self.of_product(t), c) for t, c in terms)

    def depends(self, part: Expression) -> bool:
        return self.x in order([part])

    def slope(self, part: Expression) -> Expression:
        return simplify(slope(part, self.arrays, self.x.data, self.places, more=True)[0])

    def of_product(self, term: Expression) -> Expression:
        """Leibniz: the sum of comb(n, k)*p^(k)*f^(n - k) for a polynomial p and one function f."""
        constants: Pairs = []
        polynomials: Pairs = []
        others: Pairs = []
        for base, e in alg.powers_of(term):
            own = others
            if not self.depends(base) and not (isinstance(e, Expression) and self.depends(e)):
                own = constants
            elif isinstance(e, Number) and (e.integer or 0) > 0 and self.is_polynomial(base):
                own = polynomials
            own.append((base, e))
        if len(others) != 1:
            if others:
                raise _unknown(term)
            raise NoExpression(
                f"the derivatives of {to_text(term)} are 0 from some order on: say a number"
            )
        # The sum ends, since a polynomial's derivatives do: x**2*exp(x) has three terms, for any n.
        p, k, sum_ = alg.product(polynomials), 0, alg.zero
        choose = alg.one
        while not is_number(p, 0):
            sum_ = alg.add(sum_, alg.multiply(choose, p, self.of_function(*others[0], k)))
            # comb(n, k + 1) from comb(n, k), so that n stays a letter.
            choose = alg.divide(
                alg.multiply(choose, alg.subtract(self.n, number(k))), number(k + 1)
            )
            p, k = self.slope(p), k + 1
        return simplify(alg.product([*constants, (sum_, ONE)]))

    def is_polynomial(self, part: Expression) -> bool:
        """Whether it is one of x: made of x and of what x is not in, by sums, products and powers."""
        return not self.depends(part) or part is self.x or (
            part.op in ("sum", "product")
            and all(map(self.is_polynomial, part.args))
            and (part.op == "sum" or all(isinstance(e, Number) and e.integer and e.integer > 0
                                         for b, e in alg.powers_of(part) if self.depends(b)))
        )  # fmt: skip

    def of_function(self, base: Expression, e: Any, k: int) -> Expression:
        """The derivative of order n - k of base**e."""
        m = alg.subtract(self.n, number(k))
        if isinstance(e, Expression) and not self.depends(base):  # b**u is exp(u*log(b))
            word, u, outer = "exp", alg.multiply(e, alg.function("log", base)), alg.power(base, e)
        elif e == ONE and base.op == "call" and len(base.args) == 1:
            word, u, outer = base.data[0], base.args[0], base
        else:
            word, u, outer = "", base, base
        a = self.slope(u)
        rule = RULES.get(word)
        if word in ("", "log") and not isinstance(e, Expression) and not self.depends(a):
            return _power(u, m, a, None if word else e)
        # exp(x**2) has no closed form: its polynomials follow no law that a letter could say.
        if self.depends(a) or rule is None:
            raise _unknown(alg.product([(base, e)]))
        factor = alg.one if is_number(a, 1) else alg.power(a, m)
        return alg.multiply(factor, rule(u, m, outer))


def _unknown(part: Expression) -> NoExpression:
    return NoExpression(f"no closed form is known of {to_text(part)}: there is one of {KNOWN}")


def _turned(word: str) -> Callable[..., Expression]:
    def rule(u: Expression, m: Expression, outer: Expression) -> Expression:
        quarters = alg.multiply(alg.scale(alg.HALF, name("pi", (), -1)), m)
        return call(word, [alg.add(u, quarters)], ())

    return rule


def _hyperbolic(sign: int) -> Callable[..., Expression]:
    def rule(u: Expression, m: Expression, outer: Expression) -> Expression:
        down = alg.multiply(alg.power(alg.minus_one, m), alg.function("exp", alg.negate(u)))
        up = alg.function("exp", u)
        return alg.scale(alg.HALF, alg.combine([(up, ONE), (down, Number.of(sign))]))

    return rule


def _power(u: Expression, m: Expression, a: Expression, e: Number | None) -> Expression:
    """The derivative of order m of u**e, (-a)**m*gamma(m - e)/gamma(-e)*u**(e - m) for e < 1; of log(u)
    if e is None."""
    q = Fraction(0) if e is None else -e.value
    if q <= -1:
        raise NoExpression(f"no closed form is known of the power {-q}: it must be below 1")
    # (m + q - 1)!/(q - 1)! through lgamma, for the language has no factorial, and gamma overflows above 171.
    size = call("lgamma", [alg.add(m, number(q))], ())
    if q.denominator > 1:
        size = alg.subtract(size, call("lgamma", [call("float", [number(q)], ())], ()))
    below = factorial(int(q) - 1) if q.denominator == 1 and q else 1
    sign = alg.negate(a) if q > 0 else a
    factor = alg.one if is_number(sign, 1) else alg.power(sign, m)
    if q <= 0:  # gamma(-e) is negative
        turn = alg.subtract(m, alg.one)
        factor = alg.multiply(factor, alg.power(alg.minus_one, turn))
    last = alg.power(u, alg.subtract(number(-q), m))
    return alg.multiply(factor, alg.divide(call("exp", [size], ()), number(below)), last)


# The derivative of order m of a function of u by u, from u, m and the function's value.
RULES: dict[str, Callable[..., Expression]] = {
    "exp": lambda u, m, outer: outer,
    "sin": _turned("sin"),
    "cos": _turned("cos"),
    "sinh": _hyperbolic(-1),
    "cosh": _hyperbolic(1),
}


def _holds(
    formula: Expression, letter: str, program: Program, arrays: Arrays, x: str, names: Arrays
) -> bool:
    """Whether a formula gives the derivatives of orders 1 to HIGHEST, at points where they are real."""
    found = differentiate(program, arrays, [x], order=HIGHEST, names=names)
    texts = [parse(to_text(by[x])) for by in (*found.lower, found.by)]
    text, seen = parse(to_text(formula)), 0
    with quiet():
        for point in islice(many_points(arrays), MOST_POINTS):
            true = [float(value_at(t, names, point)) for t in texts]
            if not np.isfinite(true).all():
                continue
            own = [float(value_at(text, names, {**point, letter: k + 1.0})) for k in range(HIGHEST)]
            if not np.allclose(own, true, rtol=1e-8, atol=1e-10):
                return False
            seen += 1
    return seen > 2


__all__ = ["find"]
