"""The steps of an LSTM's layer one after the other: in NumPy, or in C that gives the same bits.

A small step is a dozen calls of NumPy, which take longer than what they compute. In C a layer is one call;
products and tanh are NumPy's own loops (`numpy_loops`), and all else is done element by element in the order
of NumPy's calls below.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradcli.engine.system import numpy_loops
from gradcli.engine.system.background_code import A_CALL, BARE, BackgroundCode
from gradcli.engine.system.direct_calls import ARRAYS

LARGE = 4_000_000  # multiplications of a step whose calls are not worth a thought

_SOURCE = """
#define T float
LOOPS
static int given(object *arrays, long count, T **a) {
  for (long k = 0; k < count; k++) {
    object *o = py.item(arrays, k);
    if (CLASS(o) != py.array) return 0;
    struct fields *f = FIELDS(o);
    if (f->kind != py.kind[KIND] || (f->flags & BARE) != BARE) return 0;
    a[k] = (T *)f->data;
  }
  return 1;
}
static long number(object *numbers, long k) { return (long)*(double *)NUMBER(py.item(numbers, k)); }

static __attribute__((noinline)) void sigmoids(long n, T *restrict a) {
  for (long j = 0; j < n; j++) a[j] = a[j] * (T)0.5 + (T)0.5;
}
static __attribute__((noinline)) void cell(
    long n, const T *restrict gates, const T *restrict c, T *restrict made) {
  const T *i = gates, *f = gates + n, *g = gates + 3 * n;
  for (long j = 0; j < n; j++) made[j] = f[j] * c[j] + i[j] * g[j];
}
static __attribute__((noinline)) void shown_of(
    long n, const T *restrict o, const T *restrict bent, T *restrict h) {
  for (long j = 0; j < n; j++) h[j] = o[j] * bent[j];
}
long forward(object *arrays, object *numbers) {
  T *a[6];
  if (!given(arrays, 6, a)) return 0;
  T *weight = a[0], *z = a[1], *gates = a[2], *cells = a[3], *shown = a[4], *c = a[5];
  long steps = number(numbers, 0), size = number(numbers, 1), batch = number(numbers, 2);
  long rows = number(numbers, 3), n = size * batch;
  for (long t = 0; t < steps; t++) {
    product(weight, z, gates, 4 * size, rows, batch);
    tanh_of(gates, gates, 4 * n);
    sigmoids(3 * n, gates);
    cell(n, gates, c, cells);
    tanh_of(cells, shown, n);
    z += rows * batch;
    shown_of(n, gates + 2 * n, shown, z);
    c = cells;
    gates += 4 * n; cells += n; shown += n;
  }
  return 1;
}
#define SLOPES(name, UP) \
static __attribute__((noinline)) void name( \
    long n, const T *restrict gates, const T *restrict before, const T *restrict bent, \
    const T *restrict up, T *restrict dh, T *restrict dc, T *restrict slopes) { \
  for (long j = 0; j < n; j++) { \
    T i = gates[j], f = gates[n + j], o = gates[2 * n + j], g = gates[3 * n + j], s = bent[j]; \
    T h = dh[j] UP; \
    T c = dc[j] + h * (o - o * s * s); \
    slopes[j] = (i - i * i) * g * c; \
    slopes[n + j] = (f - f * f) * before[j] * c; \
    slopes[2 * n + j] = (o - o * o) * s * h; \
    slopes[3 * n + j] = (i - g * g * i) * c; \
    dc[j] = c * f; \
  } \
}
SLOPES(slopes_of, + up[j])
SLOPES(slopes_without, )
long backward(object *arrays, object *numbers) {
  T *a[9];
  if (!given(arrays, 9, a)) return 0;
  T *back = a[0], *gates = a[1], *cells = a[2], *shown = a[3], *first = a[4];
  T *ups = a[5], *dh = a[6], *dc = a[7], *slopes = a[8];
  long steps = number(numbers, 0), size = number(numbers, 1), batch = number(numbers, 2);
  long given_up = number(numbers, 3), reverse = number(numbers, 4), n = size * batch;
  for (long t = steps - 1; t >= 0; t--) {
    T *own = ups + n * (reverse ? steps - 1 - t : t), *before = t ? cells + n * (t - 1) : first;
    (given_up ? slopes_of : slopes_without)(
        n, gates + 4 * n * t, before, shown + n * t, own, dh, dc, slopes + 4 * n * t);
    product(back, slopes + 4 * n * t, dh, size, 4 * size, batch);
  }
  return 1;
}
"""


def _source() -> str:
    words = {"LOOPS": numpy_loops.TABLE, "KIND": str(ARRAYS.index("f4")), "BARE": str(BARE)}
    text = _SOURCE
    for word, meant in words.items():
        text = text.replace(word, meant)
    return text


_SINGLE = np.dtype(np.float32)
_code = BackgroundCode(
    _source, "forward", "backward", ready=lambda library: numpy_loops.fill(library, _SINGLE)
)


def _functions(steps: int, size: int, batch: int, rows: int, dtype: Any) -> Any:
    """The two functions in C, where they are there and steps are small."""
    if dtype != _SINGLE or not 0 < 4 * size * batch * rows <= LARGE:
        return None
    return _code.functions(steps * A_CALL // 4)


def forward(weight: Any, stacked: Any, gates: Any, cells: Any, shown: Any, c: Any) -> None:
    """Fill gates, cells, shown, and the outputs in the first rows of stacked (from its second step on).

    weight: (4 size, rows). stacked: (steps + 1, rows, batch), gates: (steps, 4, size, batch), cells and
    shown: (steps, size, batch), c: the first cell, (size, batch); all lie by row.
    """
    steps, _, size, batch = gates.shape
    rows = weight.shape[1]
    functions = _functions(steps, size, batch, rows, weight.dtype)
    if functions is not None:
        counts = (float(steps), float(size), float(batch), float(rows))
        if functions[0]((weight, stacked, gates, cells, shown, c), counts):
            return
    sums, added = gates.reshape(steps, 4 * size, batch), np.empty_like(c)
    each = zip(stacked, sums, gates, cells, shown, stacked[1:, :size], strict=False)
    for z, four, (i, f, o, g), new, bent, h in each:
        np.matmul(weight, z, four)
        np.tanh(four, four)
        sigmoids = four[: 3 * size]
        sigmoids *= 0.5
        sigmoids += 0.5
        np.multiply(f, c, new)
        new += np.multiply(i, g, added)
        np.tanh(new, bent)
        np.multiply(o, bent, h)
        c = new


def backward(
    back: Any,
    gates: Any,
    cells: Any,
    shown: Any,
    cx: Any,
    ups: Any,
    dh: Any,
    dc: Any,
    reverse: bool,
) -> Any:
    """The gradients of the sums of all gates, (steps, 4, size, batch); dh and dc become the first step's.

    With the gradients dh and dc of a step's output and cell, the gates' sums have dc times
    (i' g, f' c_before, g' i) and dh times o' tanh(c), where i' is the slope of i by its sum.

    back: (size, 4 size). cx: the first cell. ups: the outputs' gradients (steps, size, batch), or None; those
    of the last step come first if reverse.
    """
    steps, _, size, batch = gates.shape
    slopes = np.empty_like(gates)
    functions = _functions(steps, size, batch, size, back.dtype)
    if functions is not None:
        own = cells if ups is None else ups
        counts = (*map(float, (steps, size, batch, ups is not None, reverse)),)
        if functions[1]((back, gates, cells, shown, cx, own, dh, dc, slopes), counts):
            return slopes
    np.subtract(gates, gates * gates, slopes)
    i, f, o, g = (gates[:, k] for k in range(4))
    slopes[:, 0] *= g
    slopes[0, 1] *= cx
    slopes[1:, 1] *= cells[:-1]
    slopes[:, 2] *= shown
    np.multiply(g, g, slopes[:, 3])
    np.subtract(i, np.multiply(slopes[:, 3], i, slopes[:, 3]), slopes[:, 3])
    to_cell = o - o * shown * shown
    each_up = [None] * steps if ups is None else ups if reverse else ups[::-1]
    sums, added = slopes.reshape(steps, 4 * size, batch), np.empty_like(dh)
    for own, through, forget, four, each in zip(
        each_up, to_cell[::-1], f[::-1], slopes[::-1], sums[::-1], strict=True
    ):
        if own is not None:
            dh += own
        dc += np.multiply(dh, through, added)
        four[:2] *= dc
        four[3] *= dc
        four[2] *= dh
        np.matmul(back, each, dh)
        dc *= forget
    return slopes


__all__ = ["backward", "forward"]
