"""Constants in readable form: sqrt(3), log(7) and fractions recognised, arrays written out."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextvars import ContextVar
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from gradcli.symbolic import algebra as alg
from gradcli.symbolic.exact_numbers import Number, is_decimal
from gradcli.symbolic.expressions import Expression, array, call, is_call, name, number, value_of
from gradcli.system import dtypes


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
    square = array_.ndim == 2 and len(set(array_.shape)) == 1 and array_.dtype.kind == "f"
    if square and np.array_equal(array_, first * np.eye(len(array_))):
        return alg.multiply(known_number(first), call("eye", [], array_.shape))
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
    found = _named_numbers().get(abs(plain))
    if found is not None:
        made = found()
        return alg.negate(made) if plain < 0 else made
    if len(repr(plain)) > 13 and math.isfinite(plain):
        simple = Fraction(plain).limit_denominator(1000)
        if simple and abs(float(simple) - plain) <= math.ulp(plain):  # 2/3 - 1
            return number(Number(simple, not exact.get() and is_decimal(simple)))
        named = (
            _surd(abs(plain)) or _fourth_root(abs(plain)) or _power_of_e(plain) or _logarithm(plain)
        )
        if named is not None:
            return alg.negate(named) if plain < 0 and not is_call(named, "exp") else named
    if exact.get() and math.isfinite(plain):
        fraction = Number.of(value).value
        if max(abs(fraction.numerator), fraction.denominator) <= 1000:
            return number(fraction)
    return number(value)


exact: ContextVar[bool] = ContextVar("exact", default=False)
"""Whether 1.5 is 3/2: where the program writes no decimals itself."""


def _surd(value: float) -> Expression | None:
    """A closed form such as sqrt(3) or sqrt(2)/2, if it equals the number to the last digit."""
    square = Fraction(value * value).limit_denominator(1000)
    if not square or not 1e-3 <= value <= 1e3:
        return None
    over, under = square.numerator, square.denominator
    roots = math.sqrt(over), math.sqrt(under)
    written = (math.sqrt(square), roots[0] / under, roots[0] / roots[1])
    if value in (*written, math.sqrt(over * under) / under):
        return alg.root(number(square))
    return None


def _fourth_root(value: float) -> Expression | None:
    """n**(-1/4), the scale of attention, if it equals the number to the last digit."""
    n = round(value**-4) if 1e-3 <= value < 1 else 0
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
    if size >= 7:
        return None
    for own, n in ((size, Fraction(round(math.exp(size)))), (value, _near(math.exp(value)))):
        if n > 0 and n != 1 and own in (math.log(n), float(np.log(float(n)))):
            made = call("log", [number(Number(n, not exact.get() and is_decimal(n)))], ())
            return alg.negate(made) if own < 0 and own is not size else made
    return None


def _near(value: float) -> Fraction:
    return Fraction(value).limit_denominator(100)


def _pi() -> Expression:
    return name("pi", (), -1)


def _root_pi() -> Expression:
    return alg.root(_pi())


def _log(n: int) -> Callable[[], Expression]:
    return lambda: call("log", [number(n)], ())


@cache
def _named_numbers() -> dict[float, Callable[[], Expression]]:
    found: dict[float, Callable[[], Expression]] = {
        math.pi: _pi,
        2 * math.pi: lambda: alg.scale(Number.of(2), _pi()),
        math.pi / 2: lambda: alg.scale(alg.HALF, _pi()),
        1 / math.pi: lambda: alg.divide(alg.one, _pi()),
        math.pi / 180: lambda: alg.scale(Number(Fraction(1, 180)), _pi()),
        180 / math.pi: lambda: alg.divide(number(180), _pi()),
        math.sqrt(math.pi): _root_pi,
        2 / math.sqrt(math.pi): lambda: alg.divide(number(2), _root_pi()),
        math.sqrt(math.pi) / 2: lambda: alg.scale(alg.HALF, _root_pi()),
        math.sqrt(2): lambda: alg.root(number(2)),
        math.sqrt(0.5): lambda: alg.divide(alg.one, alg.root(number(2))),
    }
    for n in (2, 3, 5, 10):
        found[math.log(n)] = found[float(np.log(n))] = _log(n)
    found[2.3025850929940456] = _log(10)  # as PyTorch writes it
    for value in (1 / math.sqrt(2 * math.pi), math.sqrt(1 / (2 * math.pi)), 0.3989422804014327):
        found[value] = lambda: alg.divide(alg.one, alg.root(alg.scale(Number.of(2), _pi())))
    return found


def as_exact(value: Any) -> Expression:
    """An operand as an expression: a number is wrapped, an expression is returned."""
    return value if isinstance(value, Expression) else known_number(value)
