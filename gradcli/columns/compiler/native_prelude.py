"""The C that a library of generated code begins with: sums, largest elements, tanh, and exponentials."""

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
#if defined(__GNUC__) && !defined(__clang__) && !defined(NO_BUILTINS)
#ifdef __AVX512F__
#define WIDE 64
#define ALL_double ((unsigned char)-1), 4
#define ALL_float ((unsigned short)-1), 4
#define MAX_double(a, b) __builtin_ia32_maxpd512_mask(a, b, a, ALL_double)
#define MAX_float(a, b) __builtin_ia32_maxps512_mask(a, b, a, ALL_float)
#define MIN_double(a, b) __builtin_ia32_minpd512_mask(a, b, a, ALL_double)
#define MIN_float(a, b) __builtin_ia32_minps512_mask(a, b, a, ALL_float)
#define NAN_double(a, b) __builtin_ia32_cmppd512_mask(a, b, 3, ALL_double)
#define NAN_float(a, b) __builtin_ia32_cmpps512_mask(a, b, 3, ALL_float)
#define FMAS_double(a, b, c) __builtin_ia32_vfmaddpd512_mask(a, b, c, ALL_double)
#define FMAS_float(a, b, c) __builtin_ia32_vfmaddps512_mask(a, b, c, ALL_float)
#define SCALED_double(a, b) __builtin_ia32_scalefpd512_mask(a, b, a, ALL_double)
#define SCALED_float(a, b) __builtin_ia32_scalefps512_mask(a, b, a, ALL_float)
#elif defined(__AVX2__) && defined(__FMA__)
#define WIDE 32
#define MAX_double __builtin_ia32_maxpd256
#define MAX_float __builtin_ia32_maxps256
#define MIN_double __builtin_ia32_minpd256
#define MIN_float __builtin_ia32_minps256
#define NAN_double(a, b) __builtin_ia32_movmskpd256(__builtin_ia32_cmppd256(a, b, 3))
#define NAN_float(a, b) __builtin_ia32_movmskps256(__builtin_ia32_cmpps256(a, b, 3))
#define FMAS_double __builtin_ia32_vfmaddpd256
#define FMAS_float __builtin_ia32_vfmaddps256
#define EVERY_double(m) (__builtin_ia32_movmskpd256((wide_double)(m)) == 15)
#define EVERY_float(m) (__builtin_ia32_movmskps256((wide_float)(m)) == 255)
#endif
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
_EXTREME_VECTORS = """#ifndef WIDE
#define VECTOR 64
#else
#define VECTOR WIDE
#endif
typedef T NAME_vector_T __attribute__((vector_size(VECTOR)));
typedef I NAME_bits_T __attribute__((vector_size(VECTOR)));
static inline NAME_vector_T NAME_load_T(const T *a) {
  NAME_vector_T v; memcpy(&v, a, sizeof v); return v;
}
static inline NAME_vector_T NAME_of_T(NAME_vector_T r, NAME_vector_T a) {
  NAME_bits_T m = (NAME_bits_T)(r OP a) | (NAME_bits_T)(r != r);
  return (NAME_vector_T)(((NAME_bits_T)r & m) | ((NAME_bits_T)a & ~m));
}
#ifdef WIDE
static T NAME_vectors_T(const T *a, long n) {
  const long w = WIDE / sizeof(T); long i = 4 * w;
  NAME_vector_T r = NAME_load_T(a), q = NAME_load_T(a + w);
  NAME_vector_T u = NAME_load_T(a + 2 * w), v = NAME_load_T(a + 3 * w);
  int nan = NAN_T(r, q) | NAN_T(u, v);
  for (; i + 4 * w <= n; i += 4 * w) {
    NAME_vector_T b = NAME_load_T(a + i), c = NAME_load_T(a + i + w);
    NAME_vector_T d = NAME_load_T(a + i + 2 * w), e = NAME_load_T(a + i + 3 * w);
    nan |= NAN_T(b, c) | NAN_T(d, e);
    r = BEST_T(b, r); q = BEST_T(c, q); u = BEST_T(d, u); v = BEST_T(e, v);
  }
  r = BEST_T(BEST_T(v, u), BEST_T(q, r));
  for (; i + w <= n; i += w) {
    NAME_vector_T b = NAME_load_T(a + i);
    nan |= NAN_T(b, b); r = BEST_T(b, r);
  }
  T s = r[0];
  for (int j = 1; j < w; j++) s = s OP r[j] ? s : r[j];
  for (; i < n; i++) { nan |= a[i] != a[i]; s = s OP a[i] ? s : a[i]; }
  return nan ? NAN : s;
}
#else
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
#endif
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
# exp of an array, its end by a whole vector too, so that an element has the same digits at every place.
# With AVX-512, or AVX2 and FMA, it is our own, in two thirds or three quarters of the C library's time:
# x = k log 2 + r as in tanh. 2^k is one instruction of AVX-512, which knows of subnormal numbers. AVX2 works
# on two vectors in turns, as each step waits for the one before, and adds k to the exponents; where these
# leave the normal numbers it multiplies by two powers, each of half of k, of which only the last rounds. It
# is at most 1.02 units in the last place off.
_EXPONENTIALS = """#ifdef WIDE
typedef T wide_T __attribute__((vector_size(WIDE)));
#define BEGUN_T(z, n, k, r, q, x) \\
  wide_T z = MAX_T(zero - REACH, (MIN_T(zero + REACH, x))); \\
  wide_T n = FMAS_T(z, zero + (T)0x1.71547652b82fep+0, zero + ROUND), k = n - ROUND; \\
  wide_T r = FMAS_T(k, zero + LOW, (FMAS_T(k, zero + HIGH, z))), q = zero + FIRST;
#endif
#if WIDE == 64
#define STEP_T(c) q = FMAS_T(q, r, zero + c);
static inline __attribute__((always_inline)) wide_T exponential_T(wide_T x) {
  const wide_T zero = {};
  BEGUN_T(z, n, k, r, q, x)
  STEPS
  return SCALED_T(q, k);
}
#define EXPONENTIALS_T(o, a, m) { \\
  wide_T v; memcpy(&v, a, 64); v = exponential_T(v - (m)); memcpy(o, &v, 64); }
#elif WIDE == 32
typedef I wide_bits_T __attribute__((vector_size(WIDE)));
#define STEP_T(c) q = FMAS_T(q, r, zero + c); u = FMAS_T(u, s, zero + c);
static inline __attribute__((always_inline)) wide_T scaled_T(wide_T q, wide_T k) {
  const wide_T zero = {};
  wide_T n = FMAS_T(k, zero + (T)0.5, zero + ROUND), m = (k - (n - ROUND)) + ROUND;
  q *= (wide_T)(((wide_bits_T)n + BIAS) << BITS);
  return q * (wide_T)(((wide_bits_T)m + BIAS) << BITS);
}
static inline __attribute__((always_inline)) void exponential_T(wide_T *x, wide_T *y) {
  const wide_T zero = {};
  BEGUN_T(z, n, k, r, q, *x)
  BEGUN_T(w, m, l, s, u, *y)
  STEPS
  const wide_bits_T size = (wide_bits_T)zero + ((I)-1 >> 1);
  wide_T a = (wide_T)((wide_bits_T)k & size), b = (wide_T)((wide_bits_T)l & size);
  if (__builtin_expect(EVERY_T((a <= NORMAL) & (b <= NORMAL)), 1)) {
    *x = (wide_T)((wide_bits_T)q + ((wide_bits_T)n << BITS));
    *y = (wide_T)((wide_bits_T)u + ((wide_bits_T)m << BITS));
  } else { *x = scaled_T(q, k); *y = scaled_T(u, l); }
}
#define EXPONENTIALS_T(o, a, m) { \\
  wide_T v[2]; memcpy(v, a, 32); memcpy(v + 1, (a) + 32 / sizeof(T), 32); \\
  v[0] -= (m); v[1] -= (m); exponential_T(v, v + 1); \\
  memcpy(o, v, 32); memcpy((o) + 32 / sizeof(T), v + 1, 32); }
#else
#define EXPONENTIALS_T(o, a, m) \\
  for (long j = 0; j < (long)(64 / sizeof(T)); j++) (o)[j] = exp((a)[j] - (m));
#endif
static inline __attribute__((always_inline)) void less_T(
    long n, T *restrict o, const T *restrict a, T m, const T *read, const T *written) {
  const long w = 64 / sizeof(T); long i = 0;
  for (; i + w <= n; i += w) {
    if (read) __builtin_prefetch(read + i);
    if (written) __builtin_prefetch(written + i, 1);
    EXPONENTIALS_T(o + i, a + i, m)
  }
  if (i < n && n > w) EXPONENTIALS_T(o + n - w, a + n - w, m)
  else if (i < n) {
    T given[64 / sizeof(T)] = {0}, found[64 / sizeof(T)];
    memcpy(given, a + i, (n - i) * sizeof(T));
    EXPONENTIALS_T(found, given, m)
    memcpy(o + i, found, (n - i) * sizeof(T));
  }
}
"""
_EXPONENTIALS_OF = """static __attribute__((noinline)) void exponentials_T(
    long n, T *restrict o, const T *restrict a) {
  less_T(n, o, a, 0, 0, 0);
}
"""
# The sum of exp(a - m) in the order of sums. Nothing is written; what is read and written next is fetched
# meanwhile.
_EXPONENTIAL_SUM = """static T exponential_sum_T(const T *a, long n, T m, const T *read, const T *written) {
  if (n > 128) {
    long h = n / 2; h -= h % 8;
    T s = exponential_sum_T(a, h, m, read, written);
    return s + exponential_sum_T(a + h, n - h, m, read + h, written ? written + h : 0);
  }
  T found[128];
  less_T(n, found, a, m, read, written);
  return sum_T(found, n);
}
"""
# The words of a type in these texts, and the terms of q.
_TYPES = {
    "double": (
        {"FAR": "20.0", "REACH": "750.0", "NORMAL": "1000.0"}
        | {"I": "unsigned long long", "BIAS": "1023", "BITS": "52"}
        | {"ROUND": "0x1.8p52", "HIGH": "-0x1.62e42fefa39efp-1", "LOW": "-0x1.abc9e3b39803fp-56"},
        "0x1.af389ecfc4b9cp-26 0x1.28917c89a43a7p-22 0x1.71de0db2f6b19p-19 0x1.a019b9149a41cp-16"
        " 0x1.a01a01a7c2efep-13 0x1.6c16c17889ef1p-10 0x1.11111111109b5p-7 0x1.5555555553d68p-5"
        " 0x1.5555555555556p-3 0.5",
    ),
    "float": (
        {
            "FAR": "10.0f",
            "REACH": "110.0f",
            "NORMAL": "120.0f",
            "exp": "expf",
            "I": "unsigned int",
            "BIAS": "127",
            "BITS": "23",
            "ROUND": "0x1.8p23f",
        }
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
        first, *others = terms.split()
        steps = " ".join(f"STEP_T({term})" for term in (*others, "1", "1"))
        parts = [
            *(("sum_T", _SUM), ("tanh_T", _TANH.replace("HORNER", horner))),
            ("less_T", _EXPONENTIALS.replace("STEPS", steps).replace("FIRST", first)),
            ("exponentials_T", _EXPONENTIALS_OF),
            ("exponential_sum_T", _EXPONENTIAL_SUM),
        ]
        for name, order in (("max", ">="), ("min", "<=")):
            lanes = [_EXTREME_LANES.replace("LANES", str(n)) for n in _LANES]
            choice = "if (n >= 256 / (long)sizeof(T)) return NAME_vectors_T(a, n); "
            choice += " ".join(f"if (n >= {n}) return NAME_{n}_T(a, n);" for n in _LANES)
            text = "".join([_EXTREME_VECTORS, *lanes, _EXTREME.replace("CHOICE", choice)])
            parts.append(
                (
                    f"{name}_T",
                    text.replace("NAME", name).replace("BEST", name.upper()).replace("OP", order),
                )
            )
        for name, text in parts:
            for word, meant in words.items():
                text = re.sub(rf"\b{word}\b", meant, text)
            found.append((name.replace("T", kind), re.sub(r"\bT\b|(?<=_)T\b", kind, text)))
    return found


def before(text: str) -> str:
    """What a program begins with: declarations, and the functions that it calls, and that these call."""
    needed = ""
    for name, own in reversed(_written()):
        if f"{name}(" in text or f"{name}(" in needed:
            needed = own + needed
    return _DECLARED + needed
