"""Numbers in expressions: exact rationals where possible, decimals kept as they were written."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

Exact = Fraction | float | complex

_LARGEST = 10**40  # a fraction with more digits becomes a float


class Number:
    """A constant: a Fraction if it is exact; a float or complex for inf, nan and complex numbers.

    decimal: whether it came from a number with a decimal point, so that it is printed with one.
    """

    __slots__ = ("decimal", "value")

    def __init__(self, value: Exact, decimal: bool = False) -> None:
        if isinstance(value, Fraction) and max(abs(value.numerator), value.denominator) > _LARGEST:
            number = _float(value)
            value, decimal = (_fraction(number), True) if math.isfinite(number) else (number, True)
        self.value: Any = value
        self.decimal = decimal

    @classmethod
    def of(cls, value: Any) -> Number:
        """The Number for a Python or NumPy number; 0.1 becomes exactly one tenth."""
        if isinstance(value, Number):
            return value
        if isinstance(value, Fraction):
            return cls(value)
        plain = value.item() if hasattr(value, "item") else value
        if isinstance(plain, complex):
            return cls.of(plain.real) if plain.imag == 0 else cls(plain)
        if isinstance(plain, (bool, int)):
            return cls(Fraction(int(plain)))
        if not math.isfinite(plain):
            return cls(plain)
        text = str(value) if getattr(value, "itemsize", 8) < 8 else repr(plain)
        fraction = Fraction(Decimal(text))
        return cls(fraction, fraction.denominator != 1)

    # -- what it is -------------------------------------------------------------------------------
    @property
    def exact(self) -> bool:
        """Whether it is a Fraction."""
        return isinstance(self.value, Fraction)

    @property
    def integer(self) -> int | None:
        """Its value if it is an integer, else None."""
        v = self.value
        return v.numerator if isinstance(v, Fraction) and v.denominator == 1 else None

    @property
    def negative(self) -> bool:
        """Whether it is printed with a minus sign."""
        if type(self.value) is Fraction:
            return self.value.numerator < 0
        if isinstance(self.value, complex):
            real, imaginary = self.value.real, self.value.imag
            return real < 0 or (real == 0 and imaginary < 0)
        return bool(self.value < 0)

    def python(self) -> Any:
        """The int, float or complex of this value."""
        if isinstance(self.value, Fraction):
            whole = self.integer is not None and abs(self.value.numerator) < 2**63
            return self.value.numerator if whole else _float(self.value)
        return self.value

    # -- arithmetic -------------------------------------------------------------------------------
    def __add__(self, other: Number) -> Number:
        a, b = _pair(self, other)
        return Number(a + b, self.decimal or other.decimal)

    def __mul__(self, other: Number) -> Number:
        if self is ONE or other is ONE:
            return other if self is ONE else self
        a, b = _pair(self, other)
        return Number(a * b, self.decimal or other.decimal)

    def __neg__(self) -> Number:
        return Number(-self.value, self.decimal)

    def __sub__(self, other: Number) -> Number:
        return self + -other

    def power(self, exponent: Number) -> Number | None:
        """The power if it is exact (integer exponents and exact roots), else None."""
        base, n = self.value, exponent.value
        if not isinstance(base, Fraction) or not isinstance(n, Fraction):
            return None
        if base == 0:
            return self if n > 0 else (ONE if n == 0 else None)
        decimal = self.decimal
        if n.denominator != 1:
            root = _root(base, n.denominator)
            if root is None:
                return None
            base, n = root, Fraction(n.numerator)
        if abs(n.numerator) * max(base.numerator.bit_length(), base.denominator.bit_length()) > 200:
            return _far(_float(base), n.numerator) if decimal else None
        return Number(base**n.numerator, decimal)

    def unrounded(self) -> Number:
        """The number with rounding noise removed, as after 1.2 - 1 or 7/6 - 1; else itself."""
        if not self.decimal or not self.exact or self.value.denominator < 10**13:
            return self
        short = Fraction(f"{float(self.value):.13g}")
        if short.denominator >= 10**9:
            short = self.value.limit_denominator(100)
        near = abs(short - self.value) <= 2 * math.ulp(1 + abs(float(self.value)))
        return Number(short, is_decimal(short)) if near else self

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Number):
            return NotImplemented
        a, b = self.value, other.value
        if type(a) is Fraction and type(b) is Fraction:  # == must also compare with other types
            return a.as_integer_ratio() == b.as_integer_ratio()
        return bool(a == b or (a != a and b != b))

    def __hash__(self) -> int:
        if type(self.value) is Fraction:  # whose own hash divides
            return hash(self.value.as_integer_ratio())
        return hash(self.value) if self.value == self.value else 0

    def __repr__(self) -> str:
        return f"Number({self.value})"


def _far(base: float, exponent: int) -> Number | None:
    """The power of a decimal, None for 1/0. Raises OverflowError if it over- or underflows."""
    try:
        found = base**exponent
        if base and not found:
            raise OverflowError
        return Number.of(found)
    except ZeroDivisionError:
        return None


def _pair(a: Number, b: Number) -> tuple[Any, Any]:
    x, y = a.value, b.value
    if isinstance(x, Fraction) == isinstance(y, Fraction):
        return x, y
    return (
        _float(x) if isinstance(x, Fraction) else x,
        _float(y) if isinstance(y, Fraction) else y,
    )


def _float(value: Fraction) -> float:
    try:
        return value.numerator / value.denominator
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _fraction(value: float) -> Fraction:
    return Fraction(Decimal(repr(value)))


def is_decimal(value: Fraction) -> bool:
    """Whether it is no integer and has finitely many decimals."""
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return rest == 1 and value.denominator != 1


def _root(value: Fraction, degree: int) -> Fraction | None:
    if value < 0 or degree > 6:
        return None
    parts = []
    for part in (value.numerator, value.denominator):
        found = round(part ** (1 / degree)) if part < 1 << 100 else 0
        if found**degree != part:
            return None
        parts.append(found)
    return Fraction(*parts)


ZERO, ONE, MINUS_ONE = Number(Fraction(0)), Number(Fraction(1)), Number(Fraction(-1))

__all__ = ["MINUS_ONE", "ONE", "ZERO", "Number", "is_decimal"]
