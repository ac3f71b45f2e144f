"""Numbers of a text by NumPy, many at a time, each the double that `float` gives.

A piece of text that fits in the cache is looked at as bytes. What is no digit is found first: separators,
points and signs say where each number begins and ends. The digits before and behind the point are loaded
eight at a time and made one integer by three multiplications (D. Lemire, "Quickly parsing eight digits",
2018; after J. Muła's "SWAR" method). An integer below 2**53 divided by a power of ten up to 10**22 is rounded
once, and so is right (W. Clinger, "How to read floating point numbers accurately", 1990). Of larger integers
the remainder of that division is found as well; where it does not tell how to round, and for numbers with an
exponent, Python's `float` reads the cell.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

PIECE = 1 << 18  # bytes of text that are read at once: its arrays stay in the second-level cache
_AROUND = 32  # bytes in front of a piece, as digits are loaded from their last one backwards
_FEW = 8  # one in so many cells may be read by `float`; else it is not worth it
_CELL = re.compile(rb"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")

_U = np.uint64
# The last n of eight bytes, in memory's order of x86 and ARM.
_LAST = np.array([0x0F0F0F0F0F0F0F0F >> 8 * (8 - n) << 8 * (8 - n) for n in range(9)], _U)
_PAIRS = (
    (_U(10 * 2**8 + 1), _U(8), _U(0x00FF00FF00FF00FF)),
    (_U(100 * 2**16 + 1), _U(16), _U(0x0000FFFF0000FFFF)),
    (_U(10000 * 2**32 + 1), _U(32), None),
)
_MOST = 19  # digits before the point, and behind it: of so many, any fit into 64 bits
_SURE = 15  # digits in all, of which any fit into a double
_TENS = np.array([float(10**k) for k in range(_MOST + 1)])
_WHOLE_TENS = np.array([10**k for k in range(_MOST + 1)], _U)
_EXACT = 2.0**53
_LARGEST = 1.8e19  # below 2**64
_LESS, _MORE = 1 - 2.0**-49, 1 + 2.0**-49
_SPLIT = 2.0**27 + 1


def _halves(a: Any) -> tuple[Any, Any]:
    """A double as the sum of two of 26 bits (Veltkamp), whose products are exact."""
    c = a * _SPLIT
    high = c - (c - a)
    return high, a - high


_TENS_HIGH, _TENS_LOW = _halves(_TENS)


def columns(
    text: bytes, separator: str, width: int, wanted: Sequence[int] | None = None
) -> list[Array] | None:
    """The columns of lines of `width` fields, all or the wanted; None where a line has others, or a field
    is no number.

    text: whole lines, the last of which may lack its newline.
    """
    found = columns_and_ends(text, separator, width, wanted)
    return None if found is None else found[0]


def columns_and_ends(
    text: bytes, separator: str, width: int, wanted: Sequence[int] | None = None
) -> tuple[list[Array], Array] | None:
    """The same, and where in the text each line ends."""
    if not text:
        return None
    text = text if text.endswith(b"\n") else text + b"\n"
    wanted = range(width) if wanted is None else wanted
    if separator in "-.0123456789\n" or sys.byteorder != "little":
        return None
    found, line_ends, at = [], [], 0
    while at < len(text):
        end = text.rfind(b"\n", at, at + PIECE) + 1 or text.index(b"\n", at) + 1
        piece = _read(text, at, end, ord(separator), width, wanted)
        if piece is None:
            return None
        found.append(piece[0])
        line_ends.append(piece[1])
        at = end
    if len(found) == 1:
        return list(found[0]), line_ends[0]
    return list(np.concatenate(found, axis=1)), np.concatenate(line_ends)


def _read(
    text: bytes, at: int, end: int, separator: int, width: int, wanted: Sequence[int]
) -> tuple[Array, Array] | None:
    """The same of a piece of the text: a row for each column, and the ends of the lines."""
    size = end - at
    data = np.empty((_AROUND + size + 15) // 8 * 8, np.uint8)
    data[:_AROUND] = 10
    data[_AROUND : _AROUND + size] = np.frombuffer(text, np.uint8, size, at)
    data[_AROUND + size :] = 48
    places = np.flatnonzero(data - np.uint8(48) > 9)  # of all that is no digit
    signs = data.take(places)
    ends = (signs == 10) | (signs == separator)
    after = np.flatnonzero(ends)[_AROUND:]
    if len(after) % width:
        return None
    is_last = (signs.take(after) == 10).reshape(-1, width)
    if not is_last[:, -1].all() or is_last[:, :-1].any():
        return None
    chosen = after.reshape(-1, width).T[list(wanted)].ravel()
    line_ends = places.take(after[width - 1 :: width])
    line_ends += at - _AROUND
    with np.errstate(all="ignore"):  # of cells that are read otherwise
        made = _numbers(text, at - _AROUND, separator, data, places, signs, chosen)
    return None if made is None else (made.reshape(len(wanted), -1), line_ends)


def _numbers(
    text: bytes,
    start: int,
    separator: int,
    data: Array,
    places: Array,
    signs: Array,
    after: Array,
) -> Array | None:
    """The numbers of fields.

    start: where `data` is in the text. places, signs: of all that is no digit. after: which of these end the
    fields.
    """
    ends = places.take(after)
    after -= 1
    has_point = signs.take(after) == 46
    behind = np.where(has_point, places.take(after), ends)
    after -= has_point
    minus = signs.take(after) == 45
    first = places.take(after)
    # Beside digits, a number has one point, and one minus where its field begins: what stands before it, and
    # before a first digit, ends the field before.
    before = data.take(first - minus)
    odd = (before != separator) & (before != 10)
    first += 1
    whole = behind - first
    decimals = ends - behind
    decimals -= has_point
    most = int(whole.max()), int(decimals.max())
    odd |= whole + decimals <= 0
    high = _integers(data, behind, whole, most[0])
    tens = _TENS.take(decimals, mode="clip")
    if sum(most) <= _SURE:
        found = high.astype(np.float64)
        if most[1]:
            found *= tens
            found += _integers(data, ends, decimals, most[1]).view(np.int64)
            found /= tens
    else:
        high = high.astype(_U)
        low = _integers(data, ends, decimals, most[1]).astype(_U)
        about = high.astype(np.float64) * tens + low.astype(np.float64)
        odd |= (about >= _LARGEST) | (np.maximum(whole, decimals) > _MOST)
        high *= _WHOLE_TENS.take(decimals, mode="clip")
        high += low
        if about.max() < _EXACT:
            found = high.view(np.int64) / tens
        else:
            found, unsure = _divided(high, tens, decimals)
            odd |= unsure
    bits = found.view(_U)
    bits |= minus.astype(_U) << _U(63)
    if odd.any():
        return _by_float(text, start, found, np.flatnonzero(odd), separator, ends)
    return found


def _integers(data: Array, ends: Array, counts: Array, most: int) -> Array:
    """The integers of so many digits, of which the last stands before `ends`. most: the largest count."""
    if most <= 2:
        ones = (data.take(ends - 1) - np.uint8(48)) * (counts > 0)
        if most > 1:
            ones += (data.take(ends - 2) - np.uint8(48)) * (counts > 1) * np.uint8(10)
        return ones.astype(np.int64)
    found = _eight(data, ends - 8, counts)
    if most > 8:
        found += _eight(data, ends - 16, counts - 8) * _U(10**8)
    if most > 16:
        found += _eight(data, ends - 24, counts - 16) * _U(10**16)
    return found


def _eight(data: Array, at: Array, counts: Array) -> Array:
    """The integers of the last digits, up to eight, of the eight bytes that stand at some places."""
    words, shift = data.view(_U), ((at & 7) << 3).view(_U)
    place = at >> 3
    found: Array = words.take(place, mode="clip")
    place += 1
    more = words.take(place, mode="clip")
    found >>= shift
    np.subtract(_U(64), shift, out=shift)
    more <<= shift  # NumPy's shift by 64 gives 0
    found |= more
    found &= _LAST.take(counts, mode="clip")
    for factor, bits, kept in _PAIRS:
        found *= factor
        found >>= bits
        if kept is not None:
            found &= kept
    return found


def _divided(integers: Array, tens: Array, decimals: Array) -> tuple[Array, Array]:
    """Integers below 2**64 by powers of ten: the nearest doubles, and where that is not sure.

    The quotient q of the nearest double leaves a remainder that is found exactly (T. Dekker, 1971). With what
    the double lacks of the integer it gives q's correction to 50 bits; where the sum's rounding hangs on the
    last of them, as at a tie, it is not sure.
    """
    high = integers.astype(np.float64)
    low = (integers - high.astype(_U)).view(np.int64).astype(np.float64)
    first = high / tens
    a, b = _halves(first)
    c, d = _TENS_HIGH.take(decimals, mode="clip"), _TENS_LOW.take(decimals, mode="clip")
    product = first * tens
    rest = high - product
    rest -= a * c - product
    rest -= a * d
    rest -= b * c
    rest -= b * d
    rest += low
    rest /= tens
    found = first + rest
    unsure = first + rest * _LESS != found
    unsure |= first + rest * _MORE != found
    return found, unsure


def _by_float(
    text: bytes, start: int, found: Array, odd: Array, separator: int, ends: Array
) -> Array | None:
    """The numbers with those of some cells as `float` reads them; None where one is no number."""
    if len(odd) * _FEW > len(found):
        return None
    mark = bytes([separator])
    for row in odd.tolist():
        end = start + int(ends[row])
        begin = max(text.rfind(mark, 0, end), text.rfind(b"\n", 0, end)) + 1
        cell = text[begin:end]
        if not _CELL.fullmatch(cell):
            return None
        found[row] = float(cell)
    return found
