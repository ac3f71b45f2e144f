"""NumPy's own inner loops, for C that has to give NumPy's bits where these are not a matter of rounding once.

A ufunc holds a C function for each combination of dtypes, which works through one run of elements (NumPy's
documentation calls it `PyUFuncGenericFunction`). C of ours calls it without the way through Python.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

# What C begins with that calls them; `found` fills the table. A product is of matrices that lie by row.
TABLE = """typedef void (*inner)(char **, const long *, const long *, void *);
static struct { inner loop; void *data; } numpy[4];
void loops(void **table) { __builtin_memcpy(&numpy, table, sizeof numpy); }
static void function_of(long k, const T *a, T *out, long n) {
  char *data[] = {(char *)a, (char *)out};
  long steps[] = {sizeof(T), sizeof(T)};
  numpy[k].loop(data, &n, steps, numpy[k].data);
}
void tanh_of(const T *a, T *out, long n) { function_of(0, a, out, n); }
void exp_of(const T *a, T *out, long n) { function_of(1, a, out, n); }
void log_of(const T *a, T *out, long n) { function_of(2, a, out, n); }
void product(const T *a, const T *b, T *out, long rows, long inside, long columns) {
  char *data[] = {(char *)a, (char *)b, (char *)out};
  long s = sizeof(T), sizes[] = {1, rows, inside, columns};
  long steps[] = {0, 0, 0, inside * s, s, columns * s, s, columns * s, s};
  numpy[3].loop(data, sizes, steps, numpy[3].data);
}
"""


class _Ufunc(ctypes.Structure):
    """What follows the head of an object, in NumPy's `ufuncobject.h`."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("nin", "nout", "nargs", "identity")),
        *((name, ctypes.POINTER(ctypes.c_void_p)) for name in ("functions", "data")),
        *((name, ctypes.c_int) for name in ("ntypes", "reserved")),
        ("name", ctypes.c_char_p),
        ("types", ctypes.POINTER(ctypes.c_ubyte)),
    )


def _loop(ufunc: Any, dtype: Any) -> list[int | None]:
    """The addresses of a ufunc's loop where all is of one dtype, and its data's; [] if they are not found."""
    if type(ufunc).__basicsize__ < object.__basicsize__ + ctypes.sizeof(_Ufunc):
        return []
    fields = _Ufunc.from_address(id(ufunc) + object.__basicsize__)
    count = (ufunc.nin, ufunc.nout, ufunc.nargs, ufunc.ntypes)
    if (fields.nin, fields.nout, fields.nargs, fields.ntypes) != count:
        return []
    if fields.name != ufunc.__name__.encode():
        return []
    wanted = dtype.char * ufunc.nin + "->" + dtype.char * ufunc.nout
    at = ufunc.types.index(wanted)
    kinds = fields.types[at * ufunc.nargs : (at + 1) * ufunc.nargs]
    if kinds != [dtype.num] * ufunc.nargs or not fields.functions[at]:
        return []
    return [fields.functions[at], fields.data[at]]


def fill(library: Any, dtype: Any) -> bool:
    """Whether a library with `TABLE` was told NumPy's loops of its T's dtype, and has NumPy's bits."""
    found = [one for ufunc in (np.tanh, np.exp, np.log, np.matmul) for one in _loop(ufunc, dtype)]
    if len(found) != 8:
        return False
    library.loops((ctypes.c_void_p * 8)(*found))
    a, b = np.linspace(1e-3, 9, 77).astype(dtype), np.linspace(-1, 1, 55).astype(dtype)
    out, all_of = np.empty(77, dtype), np.empty(35, dtype)
    a_, b_, out_, all_ = (ctypes.c_void_p(x.ctypes.data) for x in (a, b, out, all_of))
    for function in (np.tanh, np.exp, np.log):
        getattr(library, f"{function.__name__}_of")(a_, out_, ctypes.c_long(77))
        if (out != function(a)).any():
            return False
    library.product(a_, b_, all_, *map(ctypes.c_long, (7, 11, 5)))
    product = a.reshape(7, 11) @ b.reshape(11, 5)
    return bool((all_of == product.reshape(-1)).all())


__all__ = ["TABLE", "fill"]
