"""The C that a library of generated code begins with: sums, largest elements, and tanh."""

from __future__ import annotations

import functools
import re

# gcc would merge sin and cos into sincos, which has no vector form: they are no builtins (see
# `c_compiler`), and `const` says what gcc knew of them.
_DECLARED = """#include <math.h>
#include <stdlib.h>
#include <string.h>
extern double sin(double) __attribute__((const));
extern double cos(double) __attribute__((const));
extern float sinf(float) __attribute__((const));
extern float cosf(float) __attribute__((const));
#ifdef __FMA__
#define FMA_double __builtin_fma
#define FMA_float __builtin_fmaf
#else
#define FMA_double(a, b, c) ((a) * (b) + (c))
#define FMA_float(a, b, c) ((a) * (b) + (c))
#endif
static __attribute__((noinline)) void fetch(const char *a, long n, long k, long of) {
  for (long i = n * k / of; i < n * (k + 1) / of; i += 64) __builtin_prefetch(a + i);
}
"""
_SUM = """static T sum_T(const T *a, long n) {
  if (n < 8) { T s = -0.0; for (long i = 0; i < n; i++) s += a[i]; return s; }
  if (n > 128) { long h = n / 2; h -= h % 8; return sum_T(a, h) + sum_T(a + h, n - h); }
  T r[8]; long i = 8;
  for (int j = 0; j < 8; j++) r[j] = a[j];
  for (; i < n - n % 8; i += 8) for (int j = 0; j < 8; j++) r[j] += a[i + j];
  T s = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
  for (; i < n; i++) s += a[i];
  return s;
}
"""
# Of a long row, four vectors at once: each waits for its own comparisons only.
_EXTREME_VECTORS = """typedef T NAME_vector_T __attribute__((vector_size(64)));
typedef I NAME_bits_T __attribute__((vector_size(64)));
static inline NAME_vector_T NAME_load_T(const T *a) { NAME_vector_T v; memcpy(&v, a, 64); return v; }
static inline NAME_vector_T NAME_of_T(NAME_vector_T r, NAME_vector_T a) {
  NAME_bits_T m = (NAME_bits_T)(r OP a) | (NAME_bits_T)(r != r);
  return (NAME_vector_T)(((NAME_bits_T)r & m) | ((NAME_bits_T)a & ~m));
}
static T NAME_vectors_T(const T *a, long n) {
  const long w = 64 / sizeof(T); long i = 4 * w;
  NAME_vector_T r = NAME_load_T(a), q = NAME_load_T(a + w);
  NAME_vector_T u = NAME_load_T(a + 2 * w), v = NAME_load_T(a + 3 * w);
  for (; i + 4 * w <= n; i += 4 * w) {
    r = NAME_of_T(r, NAME_load_T(a + i)); q = NAME_of_T(q, NAME_load_T(a + i + w));
    u = NAME_of_T(u, NAME_load_T(a + i + 2 * w)); v = NAME_of_T(v, NAME_load_T(a + i + 3 * w));
  }
  for (; i + w <= n; i += w) r = NAME_of_T(r, NAME_load_T(a + i));
  r = NAME_of_T(NAME_of_T(r, q), NAME_of_T(u, v));
  T s = r[0];
  for (int j = 1; j < w; j++) s = (s OP r[j] | s != s) ? s : r[j];
  for (; i < n; i++) s = (s OP a[i] | s != s) ? s : a[i];
  return s;
}
"""
# Partial results lie side by side, as many as the widest vector has floats, or doubles; NaN wins.
_LANES = (16, 8)
_EXTREME_LANES = """static inline T NAME_LANES_T(const T *a, long n) {
  T r[LANES]; long i = LANES;
  for (int j = 0; j < LANES; j++) r[j] = a[j];
  for (; i + LANES <= n; i += LANES)
    for (int j = 0; j < LANES; j++) r[j] = (r[j] OP a[i + j] | r[j] != r[j]) ? r[j] : a[i + j];
  for (int h = LANES / 2; h; h /= 2)
    for (int j = 0; j < h; j++) r[j] = (r[j] OP r[j + h] | r[j] != r[j]) ? r[j] : r[j + h];
  T s = r[0];
  for (; i < n; i++) s = (s OP a[i] | s != s) ? s : a[i];
  return s;
}
"""
_EXTREME = """static T NAME_T(const T *a, long n) {
  CHOICE
  T s = a[0];
  for (long i = 1; i < n; i++) s = (s OP a[i] | s != s) ? s : a[i];
  return s;
}
"""
# glibc's vector tanh looks numbers up in a table, an element at a time. This is e/(e + 2), e = exp(2|x|) - 1
# = 2^k (exp(r) - 1) + 2^k - 1 with 2|x| = k log 2 + r, and exp(r) = 1 + r + r² q(r): q is a polynomial of
# least error on |r| <= log(2)/2. It is at most 3 units in the last place off.
_TANH = """static inline __attribute__((always_inline)) T tanh_T(T x) {
  T z = fabs(x) > FAR ? 2 * FAR : 2 * fabs(x);
  union { T value; I bits; } n, s;
  n.value = FMA_T(z, (T)0x1.71547652b82fep+0, ROUND);
  s.bits = (n.bits + BIAS) << BITS;
  T k = n.value - ROUND, r = FMA_T(k, HIGH, z);
  r = FMA_T(k, LOW, r);
  T q = 0;
  HORNER
  T e = FMA_T(s.value, FMA_T(r * r, q, r), s.value - 1);
  return copysign(e / (e + 2), x);
}
"""
# The words of a type in these texts, and the terms of q.
_TYPES = {
    "double": (
        {"FAR": "20.0", "I": "unsigned long long", "BIAS": "1023", "BITS": "52"}
        | {"ROUND": "0x1.8p52", "HIGH": "-0x1.62e42fefa39efp-1", "LOW": "-0x1.abc9e3b39803fp-56"},
        "0x1.af389ecfc4b9cp-26 0x1.28917c89a43a7p-22 0x1.71de0db2f6b19p-19 0x1.a019b9149a41cp-16"
        " 0x1.a01a01a7c2efep-13 0x1.6c16c17889ef1p-10 0x1.11111111109b5p-7 0x1.5555555553d68p-5"
        " 0x1.5555555555556p-3 0.5",
    ),
    "float": (
        {"FAR": "10.0f", "I": "unsigned int", "BIAS": "127", "BITS": "23", "ROUND": "0x1.8p23f"}
        | {"HIGH": "-0x1.63p-1f", "LOW": "0x1.bd0106p-13f", "fabs": "fabsf"}
        | {"copysign": "copysignf"},
        "0x1.6d10fcp-10f 0x1.120b62p-7f 0x1.55551ap-5f 0x1.5554dep-3f 0.5f",
    ),
}


@functools.cache
def _written() -> list[tuple[str, str]]:
    """(name, text) of each function, those that it calls before it."""
    found = []
    for kind, (words, terms) in _TYPES.items():
        horner = " ".join(f"q = FMA_T(q, r, {term});" for term in terms.split())
        parts = [("sum_T", _SUM), ("tanh_T", _TANH.replace("HORNER", horner))]
        for name, order in (("max", ">="), ("min", "<=")):
            lanes = [_EXTREME_LANES.replace("LANES", str(n)) for n in _LANES]
            choice = "if (n >= 256 / (long)sizeof(T)) return NAME_vectors_T(a, n); "
            choice += " ".join(f"if (n >= {n}) return NAME_{n}_T(a, n);" for n in _LANES)
            text = "".join([_EXTREME_VECTORS, *lanes, _EXTREME.replace("CHOICE", choice)])
            parts.append((f"{name}_T", text.replace("NAME", name).replace("OP", order)))
        for name, text in parts:
            for word, meant in words.items():
                text = re.sub(rf"\b{word}\b", meant, text)
            found.append((name.replace("T", kind), re.sub(r"\bT\b|(?<=_)T\b", kind, text)))
    return found


def before(text: str) -> str:
    """What a program begins with: declarations, and those functions that it calls."""
    return _DECLARED + "".join(own for name, own in _written() if f"{name}(" in text)
