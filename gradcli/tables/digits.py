"""The shortest digits of floats by NumPy, many at a time, laid out as Python does it.

A double is f * 2**e with 1 <= f < 2. All numbers within half the distance of its neighbours read back as it.
A power of ten 10**k, which depends on e alone, makes that half distance h lie in (1/2, 5]. Then v = x * 10**k
is below 2**57, the integer nearest to v is within h of it, and at most one multiple of ten is. If one is, it
has the shortest digits, with zeros behind them; if none is, the nearest integer has (R. Giulietti, "The
Schubfach way to render doubles", 2020).

Of the product the upper 26 bits of both factors make an integer, exactly, and the rest is known to 2**-20.
What hangs on less, as at a tie, is left to Python's `repr`; so are powers of two, whose neighbours are not
equally far.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

BLOCK = 1 << 14  # numbers that are written at once: their arrays stay in the second-level cache
ROW = 32  # bytes of a row, which holds a text
LONGEST = 24  # bytes of a text: -1.2345678901234567e-308
_U, _I = np.uint64, np.int64
_SURE = 2.0**-19
_LAST = (
    2046  # the largest exponent of a finite double, as its bits have it; the smallest normal has 1
)
_FRACTION, _ONE = _I((1 << 52) - 1), _I(1023 << 52)
_UPPER = _I(-(1 << 27))  # a double's upper 26 bits
_TENS = np.array([10**k for k in range(18)], _I)


class Scales:
    """For each exponent of a double 2**e * 10**k as the sum a + b, where a has 26 bits; and k.

    digits: of the binary fraction, with the one before the point. They are made as exponents are met.
    """

    def __init__(self, digits: int) -> None:
        self.digits = digits
        self.a, self.b = np.ones((2, 2048))
        self.k = np.zeros(2048, _I)
        self.first, self.end = 1023, 1023

    def reach(self, least: int, most: int) -> None:
        """Have those from one exponent to another."""
        first, end = min(max(least, 1), self.first), max(min(most, _LAST) + 1, self.end)
        for field in (*range(first, self.first), *range(self.end, end)):
            self._make(field - 1023)
        self.first, self.end = first, end

    def _make(self, e: int) -> None:
        k = -int((e - self.digits + 1) * 0.30103) - 2
        while not _is_above_one(e - self.digits + 1, k):  # half the distance is above 1/2
            k += 1
        over, under = 10 ** max(k, 0), 10 ** max(-k, 0)
        whole = (over << max(e + 64, 0)) // (under << max(-e - 64, 0))  # times 2**64
        shift = whole.bit_length() - 26
        a = whole >> shift << shift
        field = e + 1023
        self.k[field] = k
        self.a[field], self.b[field] = (float(part) * 2.0**-64 for part in (a, whole - a))


def _is_above_one(e: int, k: int) -> bool:
    """Whether 2**e * 10**k > 1."""
    over, under = int(10 ** max(k, 0)), int(10 ** max(-k, 0))
    return over << max(e, 0) > under << max(-e, 0)


@cache
def scales(digits: int) -> Scales:
    """Those of floats of so many binary digits, of 53 or 24."""
    return Scales(digits)


def _of_doubles(bits: Array, field: Array, scales: Scales) -> tuple[Array, Array, Array]:
    """Seventeen digits as an integer, the exponent of the first, and whether they are not sure.

    field: the exponents in the bits.
    """
    fraction = bits & _FRACTION
    uneven = fraction == 0
    fraction |= _ONE
    high = (fraction & _UPPER).view(np.float64)
    f = fraction.view(np.float64)
    low = f - high
    a, rest = scales.a.take(field, mode="wrap"), scales.b.take(field, mode="wrap")
    rest *= f
    low *= a
    rest += low
    high *= a  # an integer
    a *= 2.0**-53
    part = np.rint(rest)
    nearest = high.astype(_I)
    nearest += part.astype(_I)
    np.subtract(rest, part, out=rest)
    return _shorter(nearest, rest, a, uneven, 16, scales.k.take(field, mode="wrap"))


def _of_singles(bits: Array, field: Array, scales: Scales) -> tuple[Array, Array, Array]:
    """The same of floats of 32 bits, which are doubles here: of nine digits, and zeros."""
    fraction = bits & _FRACTION
    uneven = fraction == 0
    fraction |= _ONE
    a = scales.a.take(field, mode="wrap")
    rest = a + scales.b.take(field, mode="wrap")
    rest *= fraction.view(np.float64)
    part = np.rint(rest)
    rest -= part
    a *= 2.0**-24
    return _shorter(part.astype(_I), rest, a, uneven, 8, scales.k.take(field, mode="wrap"))


def _shorter(
    nearest: Array, rest: Array, half: Array, uneven: Array, most: int, k: Array
) -> tuple[Array, Array, Array]:
    """The shortest digits by the integers nearest to v, with what v has besides. half: the half distance.

    uneven: where the neighbours are not equally far. most: the exponent of ten of the largest integer.
    """
    ten = nearest + 5
    ten -= rest < 0  # of two that are about as near, the nearer
    ten = ten.view(_U)
    ten //= _U(10)
    ten *= _U(10)
    tens = ten.view(_I)
    apart = (nearest - tens).astype(np.float64)
    apart += rest
    np.abs(apart, out=apart)
    # Below a power of two the neighbour is at half the distance; what is not that near is not sure.
    np.abs(rest, out=rest)
    unsure = rest > 0.5 - _SURE
    if uneven.any():
        half -= uneven * (0.5 * half)
    is_short = apart < half
    unsure |= uneven > is_short
    apart -= half
    np.abs(apart, out=apart)
    unsure |= apart < _SURE
    digits = np.where(is_short, tens, nearest)
    np.subtract(_I(most), k, out=k)
    if most < 16:
        digits *= _TENS[16 - most]
        _fill(digits, k)  # there may be two digits fewer
    _fill(digits, k)
    return digits, k, unsure


def _fill(digits: Array, power: Array) -> None:
    """Add a zero to integers of less than 17 digits; power: of ten of the first digit."""
    smaller = digits < _TENS[16]
    digits *= np.where(smaller, _I(10), _I(1))
    power -= smaller


# -- how digits stand in a text -----------------------------------------------------------------------
# A row is four words. The first ends with what stands before most of the digits, the next two have eight
# digits each, and the last has room for an exponent: `    -0.1` `23456789` `01234567`.
# The point stands behind the first digit, at 0, up to the sixteenth, at 15, or before it, down to -4: the
# tables have an entry for each.
_LEAST, _MOST = -4, 15
_PLACES = range(_LEAST, _MOST + 1)


def _words(make: Callable[[int], bytes]) -> Array:
    """A word of eight bytes for each place of the point."""
    return np.array([int.from_bytes(make(e), "little") for e in _PLACES], _U)


def _lowest(count: int, inside: int, outside: int) -> bytes:
    """Eight bytes, the lowest of which are one thing, the others another."""
    count = min(max(count, 0), 8)
    return bytes([inside] * count + [outside] * (8 - count))


def _before(e: int) -> bytes:
    """What stands before the digits; behind the first, the point."""
    if e < 0:
        return (b"-0." + b"0" * (-1 - e)).rjust(7, b"\0") + b"\0"
    return b"\0\0\0\0\0-\0" + (b"." if e == 0 else b"\0")


def _moved(n: int, e: int) -> bytes:
    """What moves down of a word whose first digit has place n."""
    return _lowest(e - n, 255, 0)


def _kept(n: int, e: int) -> bytes:
    """What stays in it."""
    return _lowest(e - n + 1, 0, 255)


def _point(n: int, e: int) -> bytes:
    """The point, if it is in it."""
    return bytes(46 * (k == e - n) for k in range(8))


_BEFORE = _words(_before)
_FIRST = np.array([56 if e < 0 else 48 for e in _PLACES], _U)  # where the first digit is, in bits
_NEXT = _words(lambda e: _lowest(7, 0, 255 if e > 0 else 0))  # where the second one is there too
# The digits before the point move down by a byte, to make room for it. Of the second word, whose first digit
# has place 1, and of the third, with 9: the bytes that move, those that stay, and the point.
_MOVED = [_words(partial(_moved, n)) for n in (1, 9)]
_KEPT = [_words(partial(_kept, n)) for n in (1, 9)]
_POINT = [_words(partial(_point, n)) for n in (1, 9)]
_ZEROS = _U(0x3030303030303030)
# Eight digits in a word are two of four, these two of two, these two digits: the divisor, a factor and bits
# that divide by it, those of the quotients that are wanted, and how far the rests are from them.
_CUTS = (
    (_U(10**4), _U(109951163), _U(40), _U(0xFFFF), _U(32)),
    (_U(100), _U(10486), _U(20), _U(0x0000007F0000007F), _U(16)),
    (_U(10), _U(103), _U(10), _U(0x000F000F000F000F), _U(8)),
)


class Spelt(NamedTuple):
    """Texts of numbers: each begins at a place of `data`, and has so many bytes; others stand behind it."""

    data: Array
    begin: Array
    size: Array


def spelt(numbers: Array, room: int = 0) -> Spelt:
    """Floats of 64 or 32 bits as text: as `repr` writes the double of the same digits, but without `.0`.

    numbers: one dimension, at best `BLOCK` of them at a time. room: bytes that are left free in the data,
    behind a row for each number and one more.
    """
    with np.errstate(invalid="ignore"):  # of what is no number
        return _spelt(numbers, room)


def _spelt(numbers: Array, room: int) -> Spelt:
    wide = np.ascontiguousarray(numbers, np.float64)
    single = numbers.dtype == np.float32
    bits = wide.view(_I)
    field = bits >> 52
    field &= 2047
    least, most = int(field.min()), int(field.max())
    known = scales(24 if single else 53)
    known.reach(least, most)
    digits, place, unsure = (_of_singles if single else _of_doubles)(bits, field, known)
    normal = (897, 1150) if single else (1, _LAST)
    if least < normal[0] or most > normal[1]:
        unsure |= (field < normal[0]) | (field > normal[1])
        zero = wide == 0
        digits[zero] = place[zero] = 0
        unsure &= ~zero
    place -= _LEAST
    far = place.view(_U) > _MOST - _LEAST  # written with an exponent
    power = None
    if far.any():
        power = place + _LEAST
        place[far] = -_LEAST
    rows, size = _rows(digits.view(_U), place, 1 + -(-room // ROW))
    begin = np.minimum(place, -_LEAST)  # a text without sign begins at 6, or is longer at its begin
    begin += 6 + _LEAST
    minus = bits.view(_U) >> _U(63)
    minus = minus.view(_I)
    begin -= minus
    begin += np.arange(0, ROW * len(wide), ROW)
    size += minus
    made = Spelt(rows.view(np.uint8).reshape(-1), begin, size)
    if power is not None:
        _add_exponents(made, np.flatnonzero(far), power)
    if unsure.any():
        _put_by_repr(made, np.flatnonzero(unsure), numbers)
    return made


def _rows(digits: Array, place: Array, more: int) -> tuple[Array, Array]:
    """The rows, and `more`, and how many bytes of each are the text without sign and exponent."""
    count = len(digits)
    upper = digits // _U(10**8)
    first = upper // _U(10**8)
    halves = np.empty((2, count), _U)
    np.multiply(first, _U(10**8), out=halves[0])
    np.subtract(upper, halves[0], out=halves[0])
    upper *= _U(10**8)
    np.subtract(digits, upper, out=halves[1])
    _cut_to_digits(halves.reshape(-1))
    size = _significant(halves)
    halves |= _ZEROS
    first |= _U(48)
    rows = np.empty((count + more, ROW // 8), _U)
    most = int(place.max()) + _LEAST
    start = _BEFORE.take(place)
    first <<= _FIRST.take(place)
    start |= first
    if most > 0:
        moved = halves[0] << _U(56)
        moved &= _NEXT.take(place)
        start |= moved
        over = halves[1] << _U(56)
        for word in range(1 + (most > 8)):
            moved = halves[word] >> _U(8)
            if not word:
                moved |= over
            moved &= _MOVED[word].take(place)
            halves[word] &= _KEPT[word].take(place)
            halves[word] |= moved
            halves[word] |= _POINT[word].take(place)
    rows[:count, 0] = start
    rows[:count, 1], rows[:count, 2] = halves
    whole = place + (1 + _LEAST)  # digits before the point
    is_whole = size == whole
    size += 1 - _LEAST
    size -= np.minimum(place, -_LEAST)  # zeros before the digits, and the point
    size -= is_whole
    np.maximum(size, whole, out=size)
    return rows, size


def _cut_to_digits(words: Array) -> None:
    """Numbers below 10**8 to their digits, a byte each, the first of which is the lowest; in place."""
    for divisor, factor, bits, mask, far in _CUTS:
        quotient = words * factor
        quotient >>= bits
        quotient &= mask
        words -= quotient * divisor
        words <<= far
        words |= quotient


def _significant(halves: Array) -> Array:
    """How many of seventeen digits are left without zeros at the end: the last one that is none tells it."""
    # The exponent of a word as a double tells its highest byte that is not 0.
    found = halves.view(_I).astype(np.float64).view(_I)
    found >>= 52
    found += 1
    found >>= 3
    found -= 126  # 1 and the place of that byte, from 1; below 1 where the word is 0
    found[1] += 8
    last: Array = np.maximum(found[0], found[1])
    np.maximum(last, 1, out=last)
    return last


@cache
def _exponents() -> tuple[Array, Array]:
    """The texts of the exponents from -324 to 308, eight bytes each, and how long they are."""
    texts = [f"e{e:+03d}" for e in range(-324, 309)]
    return np.array(texts, "S8").view("V8"), np.array(list(map(len, texts)), _I)


def _add_exponents(made: Spelt, rows: Array, power: Array) -> None:
    """Write exponents of ten behind the texts of some rows."""
    texts, lengths = _exponents()
    which = np.clip(power.take(rows) + 324, 0, len(texts) - 1)  # of NaN, any
    ends = made.begin.take(rows) + made.size.take(rows)
    places = ends[:, None] + np.arange(8)
    made.data[places] = texts[which].view(np.uint8).reshape(-1, 8)
    made.size[rows] += lengths.take(which)


def _put_by_repr(made: Spelt, rows: Array, numbers: Array) -> None:
    """Write the texts of some rows as Python does."""
    some = numbers.take(rows)
    doubles = some.astype(str).astype(float) if some.dtype == np.float32 else some
    texts = [repr(number).removesuffix(".0").encode() for number in doubles.tolist()]
    places = ROW * rows
    made.data.reshape(-1, ROW)[rows, :LONGEST] = (
        np.array(texts, f"S{LONGEST}").view(np.uint8).reshape(-1, LONGEST)
    )
    made.begin[rows] = places
    made.size[rows] = list(map(len, texts))


def can_spell(array: Any) -> bool:
    """Whether data is an array that `spelt` takes."""
    return getattr(array, "dtype", None) in (np.float64, np.float32) and sys.byteorder == "little"


def texts(numbers: Array) -> list[str]:
    """The texts of `spelt` one by one."""
    found: list[str] = []
    for start in range(0, len(numbers), BLOCK):
        made = spelt(numbers[start : start + BLOCK])
        ends = (made.begin + made.size).tolist()
        whole = made.data.tobytes().decode("latin-1")
        found += [whole[a:b] for a, b in zip(made.begin.tolist(), ends, strict=True)]
    return found
