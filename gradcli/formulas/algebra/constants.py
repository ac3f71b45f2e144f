"""Constants in readable form: sqrt(3), log(7) and fractions recognised, arrays written out."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from gradcli.engine.system import dtypes
from gradcli.formulas.algebra import algebra as alg
from gradcli.formulas.algebra.assuming import current
from gradcli.formulas.algebra.exact_numbers import Number, is_decimal
from gradcli.formulas.algebra.expressions import (
    Expression,
    array,
    call,
    is_call,
    name,
    number,
    value_of,
)


def constant(value: Any) -> Expression:
    """A constant array as an expression; a number if all its elements are equal."""
    array_ = np.asarray(value)
    if array_.size == 0:
        empty = call("zeros", [], array_.shape, [("", array_.shape)])
        # Numbers that are none may be of any type; what chooses is of truth values.
        masks = array_.dtype.kind == "b"
        return call("to", [empty], array_.shape, [("", dtypes.boolean)]) if masks else empty
    first = array_.flat[0]
    if array_.ndim == 0 or array_.size == 1 or bool((array_ == first).all()):
        return known_number(first)
    # A multiple of the identity holds for any size, and its elements would fix one.
    square = array_.ndim == 2 and len(set(array_.shape)) == 1 and array_.dtype.kind == "f"
    if square and np.array_equal(array_, first * np.eye(len(array_))):
        return alg.multiply(known_number(first), call("eye", [], array_.shape))
    # Constants that differ in dimensions of size 1 alone are then the same expression, and are collected.
    plain = array_.reshape([n for n in array_.shape if n != 1])
    if plain.ndim < array_.ndim:
        return call("reshape", [constant(plain)], array_.shape)
    return array(array_)


def stored(value: Any, kind: Any) -> Expression:
    """The value of a number after it is stored in a tensor of this dtype."""
    made = as_exact(value)
    exact = value_of(made)
    if exact is None and kind.kind in "iu" and not alg.is_integral(made):
        return call("to", [made], made.shape, [("", dtypes.of(kind))])
    if exact is None or kind.kind not in "biu":
        return made
    return number(np.asarray(exact.python()).astype(kind).item())


def known_number(value: Any) -> Expression:
    """A float in closed form, if one is known: 1.1283791670955126 is 2/sqrt(pi), 0.666… is 2/3."""
    if np.iscomplexobj(value) or isinstance(value, (bool, int)):
        return number(value)
    plain = float(value)
    # A number of few digits was typed so: 0.6667 stays. Of 0.6666666666666666 nobody typed all digits.
    if len(repr(plain)) > 13 and math.isfinite(plain):
        simple = Fraction(plain).limit_denominator(1000)
        # One unit in the last place, for the fraction was computed by one operation that rounds, or by two.
        if simple and abs(float(simple) - plain) <= math.ulp(plain):  # 2/3 - 1
            return number(Number(simple, not current.get().exact and is_decimal(simple)))
        named = (
            _root(abs(plain)) or _fourth_root(abs(plain)) or _power_of_e(plain) or _logarithm(plain)
        )
        if named is not None:
            return alg.negate(named) if plain < 0 and not is_call(named, "exp") else named
    if current.get().exact and math.isfinite(plain):
        fraction = Number.of(value).value
        # 1.5 is 3/2 in a program without decimals; 1234.5 stays, for 2469/2 is harder to read.
        if max(abs(fraction.numerator), fraction.denominator) <= 1000:
            return number(fraction)
    return number(value)


def _root(value: float) -> Expression | None:
    """A closed form such as sqrt(3)/2, 2*pi or 1/sqrt(2*pi), if it equals the number to the last digits."""
    if not 1e-3 <= value <= 1e3:
        return None
    # pi to these halves of powers is what the normal distribution, erf and Stirling's formula bring along.
    for k, degree in ((0, 2), *product((2, 1, -1, -2), (1, 2))):
        own = Fraction((value * math.pi ** (-k / 2)) ** degree).limit_denominator(1000)
        made = float(own) ** (1 / degree) * math.pi ** (k / 2)
        if 0 < own.numerator <= 1000 and abs(made - value) <= 2 * math.ulp(value):
            half, turns = Number(Fraction(1, degree)), Number(Fraction(k, 2))
            below = number(own.denominator), -half
            found = alg.product([(number(own.numerator), half), below, (name("pi", (), -1), turns)])
            return None if value_of(found) else found
    return None


def _fourth_root(value: float) -> Expression | None:
    """n**(-1/4), the scale of attention, if it equals the number to the last digit."""
    n = round(value**-4) if 1e-3 <= value < 1 else 0
    # The power itself would round otherwise than two roots, which is how attention computes its scale.
    if n < 2 or value != math.sqrt(1 / math.sqrt(n)):
        return None
    return alg.product([(number(n), Number(Fraction(-1, 4)))])


def _power_of_e(value: float) -> Expression | None:
    """exp(n), if it equals the number to the last digit."""
    n = round(math.log(value)) if value > 0 else 0
    return call("exp", [number(n)], ()) if n and abs(n) < 20 and math.exp(n) == value else None


def _logarithm(value: float) -> Expression | None:
    """log(n) or log(0.3), without its sign if that is -log(n), if it equals the number."""
    size = abs(value)
    # log(1097) is the first that is larger; above it too many numbers lie near the logarithm of an integer.
    if size >= 7:
        return None
    for own, n in ((size, Fraction(round(math.exp(size)))), (value, _near(math.exp(value)))):
        if n > 0 and n != 1 and abs(own - math.log(n)) <= 2 * math.ulp(own):
            made = call("log", [number(Number(n, not current.get().exact and is_decimal(n)))], ())
            return alg.negate(made) if own < 0 and own is not size else made
    return None


def _near(value: float) -> Fraction:
    return Fraction(value).limit_denominator(100)


def as_exact(value: Any) -> Expression:
    """An operand as an expression: a number is wrapped, an expression is returned."""
    return value if isinstance(value, Expression) else known_number(value)
