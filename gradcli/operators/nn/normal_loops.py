"""gelu and its derivative of float32 as loops in C, with the bits of `normal_distribution`.

NumPy passes over a block some thirty times; in C a polynomial's values stay in registers. tanh and exp are
NumPy's own loops, and all else is done in the order of the calls there.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from gradcli.engine.system import numpy_loops
from gradcli.engine.system.background_code import A_CALL, BARE, BackgroundCode
from gradcli.engine.system.direct_calls import ARRAYS

PASSES = 3  # what an element takes, in those of an optimizer (see `background_code.ENOUGH`)
_AT_ONCE = 1 << 20  # elements of a call, which nothing interrupts
_CHUNK = 2048  # elements that stay in the first-level cache with what is worked out of them

_SOURCE = """
#define T float
#include <math.h>
LOOPS
static int given(object *arrays, const T **x, T **out, long *n) {
  for (long k = 0; k < 2; k++) {
    object *o = py.item(arrays, k);
    if (CLASS(o) != py.array) return 0;
    struct fields *f = FIELDS(o);
    int bare = BARE & ~(k ? 0 : 0x400);
    if (f->kind != py.kind[KIND] || (f->flags & bare) != bare || f->nd != 1) return 0;
    if (k && f->dims[0] != *n) return 0;
    if (!k) { *x = (T *)f->data; *n = f->dims[0]; } else *out = (T *)f->data;
  }
  return 1;
}
static inline __attribute__((always_inline)) T less(T a, T b) { return (a < b | a != a) ? a : b; }
static inline __attribute__((always_inline)) T more(T a, T b) { return (a > b | a != a) ? a : b; }
static __attribute__((noinline)) void before_tanh(long n, const T *restrict x, T *restrict y) {
  for (long i = 0; i < n; i++) {
    T part = less(more(x[i] * (T)ROOT, (T)-LAST), (T)LAST), square = part * part;
    T above = ABOVE, below = BELOW;
    y[i] = above / below * part;
  }
}
static __attribute__((noinline)) void after_tanh(long n, const T *restrict x, T *restrict y) {
  for (long i = 0; i < n; i++) {
    T z = x[i] * (T)ROOT, sign = z > 0 ? (T)1 : (T)-1, near = y[i];
    T found = fabsf(z) > (T)LAST ? sign : near;
    y[i] = (x[i] * (T)0.5) * (found + 1);
  }
}
static __attribute__((noinline)) void before_exp(long n, const T *restrict x, T *restrict y) {
  for (long i = 0; i < n; i++) {
    T t = less(more(fabsf(x[i]), (T)0), (T)MILLS_LAST);
    y[i] = t * t * (T)-0.5;
  }
}
static __attribute__((noinline)) void after_exp(long n, const T *restrict x, T *restrict y) {
  for (long i = 0; i < n; i++) {
    T t = less(more(fabsf(x[i]), (T)0), (T)MILLS_LAST), density = y[i] * (T)SCALE;
    T above = MILLS_ABOVE, below = MILLS_BELOW;
    T found = above / below * density, one = x[i] > 0 ? (T)1 : (T)0;
    y[i] = fabsf(found - one) + density * x[i];
  }
}
#define WORK(name, before, of, after) long name(object *arrays, object *numbers) { \\
  const T *x; T *out; long n; \\
  if (!given(arrays, &x, &out, &n)) return 0; \\
  for (long k = 0; k < n; k += CHUNK) { \\
    long m = n - k < CHUNK ? n - k : CHUNK; \\
    before(m, x + k, out + k); \\
    of(out + k, out + k, m); \\
    after(m, x + k, out + k); \\
  } \\
  return 1; \\
}
WORK(values, before_tanh, tanh_of, after_tanh)
WORK(slopes, before_exp, exp_of, after_exp)
"""


def _literal(number: float) -> str:
    return f"{float(np.float32(number)).hex()}f"


def _polynomial(coefficients: tuple[float, ...], x: str) -> str:
    """C of a polynomial by Horner's rule."""
    text = _literal(coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        text = f"({text} * {x} + {_literal(coefficient)})"
    return text


def source(constants: dict[str, Any]) -> str:
    """The C, with the constants by their names: numbers, and pairs of a polynomial and its variable."""
    words = {"LOOPS": numpy_loops.TABLE, "KIND": str(ARRAYS.index("f4")), "BARE": str(BARE)}
    words |= {"CHUNK": str(_CHUNK)}
    for name, value in constants.items():
        words[name] = _polynomial(*value) if type(value) is tuple else _literal(value)
    return re.sub(r"\b[A-Z_]{4,}\b", lambda found: words.get(found[0], found[0]), _SOURCE)


class NormalLoops:
    """The two functions, `x -> array` of float32."""

    def __init__(self, constants: dict[str, Any]) -> None:
        single = np.dtype(np.float32)
        self._code = BackgroundCode(
            lambda: source(constants),
            *("values", "slopes"),
            ready=lambda library: numpy_loops.fill(library, single),
        )

    def found(self, which: int, x: Any) -> Any:
        """The values (0) or slopes (1) of an array of float32; None where there is no C."""
        if type(x) is not np.ndarray:
            return None
        functions = self._code.functions(PASSES * x.size + A_CALL)
        if functions is None:
            return None
        flat = np.ascontiguousarray(x).reshape(-1)
        out = np.empty_like(flat)
        for start in range(0, flat.size, _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            if not functions[which]((flat[part], out[part]), ()):
                return None
        return out.reshape(x.shape)


__all__ = ["NormalLoops"]
