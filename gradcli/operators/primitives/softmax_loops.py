"""softmax, log_softmax and their slopes along short rows, in C that has NumPy's bits.

Rows of classes are short: NumPy's calls take longer than what they compute. exp and log are NumPy's own loops
(`numpy_loops`), sums are added in the order of its `add.reduce`.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from gradcli.engine.system import numpy_loops
from gradcli.engine.system.background_code import A_CALL, BARE, BackgroundCode
from gradcli.engine.system.direct_calls import ARRAYS

LONGEST = 128  # elements of a row that NumPy adds in one run
MOST = 1 << 20  # elements of a call, which nothing interrupts
_TYPES = {"f": ("float", "f4"), "d": ("double", "f8")}
VALUES, LOG_VALUES, SLOPES, LOG_SLOPES = range(
    4
)  # the functions: the last two take (slope, result)

_SOURCE = """
#define CHUNK 2048
static int given(object *arrays, T **a, long *count, long *n) {
  long last = py.length(arrays) - 1;
  for (long k = 0; k <= last; k++) {
    object *o = py.item(arrays, k);
    if (CLASS(o) != py.array) return 0;
    struct fields *f = FIELDS(o);
    int bare = BARE & ~(k < last ? 0x400 : 0);
    if (f->kind != py.kind[KIND] || (f->flags & bare) != bare || f->nd < 1) return 0;
    a[k] = (T *)f->data;
    *n = f->dims[f->nd - 1];
    *count = 1;
    for (int d = 0; d < f->nd - 1; d++) *count *= f->dims[d];
  }
  return 1;
}
static T sum(const T *a, long n) {
  T s = -0.0, r[8];
  long i = 0;
  if (n >= 8) {
    for (; i < 8; i++) r[i] = a[i];
    for (; i < n - n % 8; i += 8) for (long k = 0; k < 8; k++) r[k] += a[i + k];
    s = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
  }
  for (; i < n; i++) s += a[i];
  return START + s;
}
static void shifted(long n, const T *x, T *out) {
  T top = x[0];
  for (long j = 1; j < n; j++) top = (x[j] > top | x[j] != x[j]) ? x[j] : top;
  for (long j = 0; j < n; j++) out[j] = x[j] - top;
}
#define ROWS for (long r = 0; r < m; r++)
#define EACH for (long i = r * n; i < r * n + n; i++)
static void values_of(long m, long n, const T *x, const T *unused, T *out, T *spare, T *sums) {
  ROWS shifted(n, x + r * n, out + r * n);
  exp_of(out, out, m * n);
  ROWS { T s = sum(out + r * n, n); EACH out[i] = out[i] / s; }
}
static void log_values_of(long m, long n, const T *x, const T *unused, T *out, T *spare, T *sums) {
  ROWS shifted(n, x + r * n, out + r * n);
  exp_of(out, spare, m * n);
  ROWS sums[r] = sum(spare + r * n, n);
  log_of(sums, sums, m);
  ROWS EACH out[i] = out[i] - sums[r];
}
static void slopes_of(long m, long n, const T *g, const T *y, T *out, T *spare, T *sums) {
  for (long i = 0; i < m * n; i++) out[i] = g[i] * y[i];
  ROWS { T s = sum(out + r * n, n); EACH out[i] = out[i] - y[i] * s; }
}
static void log_slopes_of(long m, long n, const T *g, const T *y, T *out, T *spare, T *sums) {
  exp_of(y, spare, m * n);
  ROWS { T s = sum(g + r * n, n); EACH out[i] = g[i] - spare[i] * s; }
}
#define WORK(name, of, two) long name(object *arrays, object *numbers) { \\
  T *a[3], spare[CHUNK], sums[CHUNK]; \\
  long count, n; \\
  if (!given(arrays, a, &count, &n)) return 0; \\
  T *out = a[1 + two]; \\
  for (long r = 0; r < count; r += CHUNK / n) { \\
    long m = count - r < CHUNK / n ? count - r : CHUNK / n, k = r * n; \\
    of(m, n, a[0] + k, a[1] + k, out + k, spare, sums); \\
  } \\
  return 1; \\
}
WORK(values, values_of, 0)
WORK(log_values, log_values_of, 0)
WORK(slopes, slopes_of, 1)
WORK(log_slopes, log_slopes_of, 1)
"""


@functools.cache
def _code(char: str) -> BackgroundCode:
    name, kind = _TYPES[char]
    start = "-0.0" if np.signbit(np.add.reduce(np.array([-0.0]))) else "0"  # of NumPy's sums
    words = {"T": name, "KIND": ARRAYS.index(kind), "BARE": BARE, "START": start}
    defined = "".join(f"#define {word} {text}\n" for word, text in words.items())
    return BackgroundCode(
        lambda: defined + numpy_loops.TABLE + _SOURCE,
        *("values", "log_values", "slopes", "log_slopes"),
        ready=lambda library: numpy_loops.fill(library, np.dtype(kind)),
    )


def found(which: int, dim: int, *arrays: Any) -> Any:
    """What a function gives of arrays of one shape along their last dimension; None where there is no C."""
    first = arrays[0]
    if type(first) is not np.ndarray or first.dtype.char not in _TYPES or first.ndim < 1:
        return None
    shape = first.shape
    short = dim in (-1, len(shape) - 1) and 1 < shape[-1] <= LONGEST and 0 < first.size <= MOST
    if not short or any(a.shape != shape for a in arrays[1:]):
        return None
    functions = _code(first.dtype.char).functions(3 * first.size + A_CALL)
    if functions is None:
        return None
    out = np.empty(shape, first.dtype)
    return out if functions[which]((*arrays, out), ()) else None


__all__ = ["LOG_SLOPES", "LOG_VALUES", "SLOPES", "VALUES", "found"]
