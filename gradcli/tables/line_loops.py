"""The text of lines with numbers behind them by C, once NumPy has written many (see `assembled_lines`).

It has the characters that `digits` has, by the same arithmetic, a number at a time. What hangs on less than
that tells is the first of 1, 2 … 17 digits that reads back: printf and strtod round correctly, and so the
nearest decimal of so many digits does if any does. That does not hold of a power of two, whose neighbours are
not equally far: there all is left to NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gradcli.engine.system.background_code import BackgroundCode
from gradcli.tables.digits import LONGEST, scales

if TYPE_CHECKING:
    from gradcli.tables.assembled_lines import Lines

    Array = np.ndarray[Any, Any]

_PASSES = (
    60  # what a number takes by NumPy, in those of an operation (see `background_code.ENOUGH`)
)
_SOURCE = r"""
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef unsigned long long word;
#define SURE 0x1p-19
#define FRACTION 0xfffffffffffffULL
#define TENS 10000000000000000ULL
static double of_bits(word bits) { double x; memcpy(&x, &bits, 8); return x; }
static word by_trial(double x, long *place) {
  char said[32];
  int count = 0;
  do snprintf(said, sizeof said, "%.*e", count, x); while (strtod(said, 0) != x && ++count < 17);
  word digits = 0, n = 0;
  char *c = said;
  for (; *c != 'e'; c++) if (*c >= '0' && *c <= '9') { digits = 10 * digits + (*c - '0'); n++; }
  for (; n < 17; n++) digits *= 10;
  *place = atol(c + 1);
  return digits;
}
static word shortest(word bits, const double *a, const double *b, const long *k, long *place) {
  long field = bits >> 52;
  word fraction = bits & FRACTION;
  if (!field) return by_trial(of_bits(bits), place);
  double f = of_bits(fraction | 1023ULL << 52), half = a[field], high;
  high = of_bits((fraction | 1023ULL << 52) & ~((1ULL << 27) - 1));
  double rest = b[field] * f + (f - high) * half, part = rint(rest);
  long long nearest = (long long)(high * half) + (long long)part;
  rest -= part;
  half *= 0x1p-53;
  long long ten = (nearest + 5 - (rest < 0)) / 10 * 10;
  double apart = fabs((double)(nearest - ten) + rest);
  if (!fraction) half *= 0.5;
  int is_short = apart < half;
  if (!fraction && !is_short) return 0;
  if (fabs(rest) > 0.5 - SURE || fabs(apart - half) < SURE)
    return fraction ? by_trial(of_bits(bits), place) : 0;
  word digits = is_short ? ten : nearest;
  *place = 16 - k[field];
  if (digits < TENS) { digits *= 10; --*place; }
  return digits;
}
static void four(char *out, unsigned n) {
  out[0] = '0' + n / 1000; out[1] = '0' + n / 100 % 10; out[2] = '0' + n / 10 % 10; out[3] = '0' + n % 10;
}
static char *filled(char *out, char with, long count) {
  if (count > 0) { memset(out, with, count); out += count; }
  return out;
}
static char *copied(char *out, const char *from, long count) { memcpy(out, from, count); return out + count; }
static char *number(char *out, double x, const double *a, const double *b, const long *k) {
  word bits;
  char d[20];
  long place;
  memcpy(&bits, &x, 8);
  if (x != x) return copied(out, "nan", 3);
  if (bits >> 63) *out++ = '-';
  bits &= ~(1ULL << 63);
  if (!bits) { *out++ = '0'; return out; }
  if (bits >> 52 == 2047) return copied(out, "inf", 3);
  word digits = shortest(bits, a, b, k, &place);
  if (!digits) return 0;
  unsigned high = digits / 100000000 % 100000000, low = digits % 100000000;
  d[0] = '0' + digits / TENS;
  four(d + 1, high / 10000); four(d + 5, high % 10000); four(d + 9, low / 10000); four(d + 13, low % 10000);
  long count = 17;
  while (d[count - 1] == '0') count--;
  if (place < -4 || place > 15) {
    *out++ = d[0];
    if (count > 1) { *out++ = '.'; out = copied(out, d + 1, count - 1); }
    return out + sprintf(out, "e%+03ld", place);
  }
  if (place < 0) {
    *out++ = '0'; *out++ = '.';
    return copied(filled(out, '0', -1 - place), d, count);
  }
  if (count <= place + 1) return filled(copied(out, d, count), '0', place + 1 - count);
  out = copied(out, d, place + 1);
  *out++ = '.';
  return copied(out, d + place + 1, count - place - 1);
}
#define DATA(n) ((void *)FIELDS(py.item(arrays, n))->data)
long lines(object *arrays, object *numbers) {
  const double *x = DATA(0), *a = DATA(1), *b = DATA(2);
  const long *k = DATA(3), *begin = DATA(5), *size = DATA(6);
  const char *text = DATA(4);
  char *start = DATA(7), *out = start, separator = *(double *)NUMBER(py.item(numbers, 0));
  long rows = FIELDS(py.item(arrays, 0))->dims[0], columns = FIELDS(py.item(arrays, 0))->dims[1];
  int has_lines = FIELDS(py.item(arrays, 5))->dims[0] > 0;
  for (long r = 0; r < rows; r++) {
    if (has_lines) out = copied(out, text + begin[r], size[r]);
    for (long c = 0; c < columns; c++) {
      if (c || has_lines) *out++ = separator;
      if (!(out = number(out, *x++, a, b, k))) return 0;
    }
    *out++ = '\n';
  }
  return out - start;
}
"""
code = BackgroundCode(lambda: _SOURCE, "lines")
_NONE = np.zeros(0, np.int64)


def text_of(lines: Lines | None, numbers: Array, separator: int) -> Array | None:
    """The text of lines with numbers behind them, as bytes; None where NumPy has to make it.

    numbers: a row's beside each other, in order.
    """
    if numbers.dtype != np.float64 or _NONE.itemsize != np.dtype(np.long).itemsize:
        return None
    functions = code.functions(_PASSES * numbers.size)
    if functions is None:
        return None
    known = scales(53)
    known.reach(1, 2046)
    text, begin, size = (b" ", _NONE, _NONE) if lines is None else lines
    begin, size = np.ascontiguousarray(begin), np.ascontiguousarray(size)
    rows, columns = numbers.shape
    room = np.empty(int(size.sum()) + rows * (columns * (LONGEST + 1) + 1), np.uint8)
    own = np.frombuffer(text, np.uint8)
    count = functions[0](
        (numbers, known.a, known.b, known.k, own, begin, size, room), (float(separator),)
    )
    return room[:count] if count else None
