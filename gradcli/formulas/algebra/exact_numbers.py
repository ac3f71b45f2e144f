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

    decimal: whether it came from a number with a decimal point, so that it is printed with one. exact:
    whether it is a Fraction. integer: its value if it is one, else None; plain: the same, of what came from
    no decimal. negative: whether it is printed with a minus sign. key: equal numbers have the same. (All are
    asked for much more often than numbers are made.)
    """

    __slots__ = ("decimal", "exact", "integer", "key", "negative", "plain", "value", "whole")

    def __init__(self, value: Exact, decimal: bool = False) -> None:
        fraction = value if isinstance(value, Fraction) else None
        ratio = None if fraction is None else fraction.as_integer_ratio()
        if fraction is not None and ratio is not None and max(abs(ratio[0]), ratio[1]) > _LARGEST:
            number, decimal = _float(fraction), True
            value, ratio = number, None
            if math.isfinite(number):
                value = _fraction(number)
                ratio = value.as_integer_ratio()
        self.value: Any = value
        self.decimal, self.exact = decimal, ratio is not None
        self.key: Any = _key(self.value) if ratio is None else ratio
        is_whole = type(self.key) is tuple and self.key[1] == 1
        # As `integer`, and of complex numbers without an imaginary part too.
        self.whole: int | None = self.key[0] if is_whole else None
        self.integer = self.whole if ratio is not None else None
        self.plain = None if decimal else self.integer
        self.negative = _is_negative(self.value) if ratio is None else ratio[0] < 0

    @classmethod
    def of(cls, value: Any) -> Number:
        """The Number for a Python or NumPy number; 0.1 becomes exactly one tenth."""
        if isinstance(value, Number):
            return value
        if isinstance(value, Fraction):
            return cls(value)
        if type(value) is int:
            return _of_int(value)
        plain = value.item() if hasattr(value, "item") else value
        if isinstance(plain, complex):
            return cls.of(plain.real) if plain.imag == 0 else cls(plain)
        if isinstance(plain, (bool, int)):
            return cls(Fraction(int(plain)))
        if not math.isfinite(plain):
            return cls(plain)
        # float32's 0.1 is 0.10000000149 as a double; its own shortest text is what the user meant.
        text = str(value) if getattr(value, "itemsize", 8) < 8 else repr(plain)
        fraction = Fraction(Decimal(text))
        return cls(fraction, fraction.denominator != 1)

    def python(self) -> Any:
        """The int, float or complex of this value."""
        if isinstance(self.value, Fraction):
            whole = self.integer is not None and abs(self.value.numerator) < 2**63
            return self.value.numerator if whole else _float(self.value)
        return self.value

    # -- arithmetic -------------------------------------------------------------------------------
    def __add__(self, other: Number) -> Number:
        # Most numbers are whole, and Fractions add slowly.
        if self.plain is not None and other.plain is not None:
            return _of_int(self.plain + other.plain)
        a, b = _pair(self, other)
        return Number(a + b, self.decimal or other.decimal)

    def __mul__(self, other: Number) -> Number:
        # Most coefficients are 1, and Fractions multiply slowly.
        if self is ONE or other is ONE:
            return other if self is ONE else self
        if self.plain is not None and other.plain is not None:
            return _of_int(self.plain * other.plain)
        a, b = _pair(self, other)
        return Number(a * b, self.decimal or other.decimal)

    def __neg__(self) -> Number:
        if self.plain is not None:
            return _of_int(-self.plain)
        return Number(-self.value, self.decimal)

    def __sub__(self, other: Number) -> Number:
        return self + -other

    def power(self, exponent: Number) -> Number | None:
        """The power if it is exact (integer exponents and exact roots), else None."""
        base, n = self.value, exponent.value
        if not isinstance(base, Fraction) or not isinstance(n, Fraction):
            return None
        if base == 0 and n <= 0:
            return ONE if n == 0 else None
        if base == 0:
            return self
        decimal = self.decimal
        if n.denominator != 1:
            root = _root(base, n.denominator)
            if root is None:
                return None
            base, n = root, Fraction(n.numerator)
        # 2**(10**9) as an exact number would take 125 MB.
        if abs(n.numerator) * max(base.numerator.bit_length(), base.denominator.bit_length()) > 200:
            return _far(_float(base), n.numerator) if decimal else None
        return Number(base**n.numerator, decimal)

    def unrounded(self) -> Number:
        """The number with rounding noise removed, as after 1.2 - 1 or 7/6 - 1; else itself."""
        # A short denominator has no rounding noise: 0.2 stays.
        if not self.decimal or not self.exact or self.value.denominator < 10**13:
            return self
        short = Fraction(f"{float(self.value):.13g}")
        if short.denominator >= 10**9:
            short = self.value.limit_denominator(100)
        near = abs(short - self.value) <= 2 * math.ulp(1 + abs(float(self.value)))
        return Number(short, is_decimal(short)) if near else self

    def __eq__(self, other: object) -> bool:
        return bool(self.key == other.key) if isinstance(other, Number) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"Number({self.value})"


def _of_int(n: int) -> Number:
    """The number of an integer; small ones are made once."""
    if not -_KEPT <= n <= _KEPT:
        return Number(Fraction(n))
    found = _whole.get(n)
    if found is None:
        found = _whole[n] = Number(Fraction(n))
    return found


def _key(value: Any) -> Any:
    """The key of a number that is no Fraction: that of the Fraction that equals it, if there is one."""
    if value != value:
        return "nan"
    if isinstance(value, complex) and value.imag:
        return value
    return value.real.as_integer_ratio() if math.isfinite(value.real) else value.real


def _is_negative(value: Any) -> bool:
    return bool(value.real < 0 or (value.real == 0 and value.imag < 0))


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
    # Decimals end if the denominator has no primes but 2 and 5.
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
        # The root of a double is right to 16 digits, and is checked by its power.
        found = round(part ** (1 / degree)) if part < 1 << 100 else 0
        if found**degree != part:
            return None
        parts.append(found)
    return Fraction(*parts)


_whole: dict[int, Number] = {}
_KEPT = 1000
ZERO, ONE, MINUS_ONE = map(_of_int, (0, 1, -1))

__all__ = ["MINUS_ONE", "ONE", "ZERO", "Number", "is_decimal"]
