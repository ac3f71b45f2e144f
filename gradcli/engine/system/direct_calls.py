"""A C function called by Python without a list or an array being made on the way.

The C is compiled with no header of Python's or NumPy's, which many machines have not. It is given CPython's
functions by their addresses, and reads numbers where CPython and NumPy keep them; `readable` compares these
places with what Python says of a few objects, once a process, and where one differs there are no such calls.

A call that is not of the kinds of arguments which the function takes goes on to a function of Python.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradcli.engine.system import c_compiler, dtypes

if TYPE_CHECKING:
    from gradcli.engine.system.dtypes import Array

HEAD = (
    object.__basicsize__
)  # where the number of a float begins; the class is the last thing before it
_WORD = ctypes.sizeof(ctypes.c_void_p)
_IN_ORDER = 0x101  # NumPy's flags of an array that lies by row at an address which suits its dtype
# The classes of numbers that a function takes and gives, by the letters of their dtypes.
NUMBERS: dict[str, Any] = {"f8": np.float64, "f4": np.float32, "i8": np.int64}
_API = (
    "PyTuple_New PyTuple_SetItem PyTuple_GetItem PyTuple_Size PyDict_New PyDict_SetItem Py_DecRef "
    "PyObject_Vectorcall PyObject_CallObject PyObject_GetAttr PyType_GenericAlloc PyCFunction_NewEx "
    "PyObject_CallFunctionObjArgs"
).split()
# What C that reads objects begins with; `told` gives it the addresses.
TABLE = f"#define HEAD {HEAD}\n"
TABLE += """typedef struct object object;
typedef object *(*called)(object *, object *const *, long, object *);
static struct {
  object *(*new_tuple)(long);
  int (*put)(object *, long, object *);
  object *(*item)(object *, long);
  long (*length)(object *);
  object *(*new_dict)(void);
  int (*set)(object *, object *, object *);
  void (*drop)(object *);
  object *(*call)(object *, object *const *, unsigned long, object *);
  object *(*call_tuple)(object *, object *);
  object *(*attribute)(object *, object *);
  object *(*make)(object *, long);
  object *(*new_function)(void *, object *, object *);
  object *(*call_with)(object *, ...);
  object *plain, *number[3], *array, *kind[5], *none;
} py;
struct fields { char *data; int nd; long *dims, *strides; object *base, *kind; int flags; };
#define CLASS(o) (*(object **)((char *)(o) + HEAD - sizeof(void *)))
#define NUMBER(o) ((void *)((char *)(o) + HEAD))
#define FIELDS(o) ((struct fields *)((char *)(o) + HEAD))
void known(void **table) { __builtin_memcpy(&py, table, sizeof py); }
"""
ARRAYS = ("f8", "f4", "i8", "b1", "i4")  # the dtypes of arrays
# `self` of a function is a tuple: these places in it, then what the result is put together of.
_ELSE, _DEFAULT, _REAL, _IS, _NAMES, _EMPTY, _SHAPES, _KNOWN, _FIRST = range(9)
_CALL = """static object *failed(object **made) {
  for (long k = 0; k < OUTPUTS; k++) if (made[k]) py.drop(made[k]);
  return 0;
}
static int given(object *self, object *const *a, long n, object *names, const void **in) {
  if (names) {
    object *known = py.item(self, NAMES);
    long named = py.length(names);
    if (n + named != INPUTS || py.length(known) != INPUTS) return 0;
    for (long k = 0; k < named; k++) if (py.item(names, k) != py.item(known, n + k)) return 0;
  } else if (n != INPUTS) return 0;
  return accepted(a, in);
}
static int worked_out(object *self, const void **in, object **made) {
  void *out[OUTPUTS + 1];
  if (py.item(self, IS) != py.none) {
    object *real = py.attribute(py.item(self, DEFAULT), py.item(self, REAL));
    if (!real) return -1;
    py.drop(real);
    if (real != py.item(self, IS)) return 0;
  }
  for (long k = 0; k < OUTPUTS; k++) {
    if (numbers[k] >= 0) {
      if (!(made[k] = py.make(py.number[numbers[k]], 0))) return -1;
      out[k] = NUMBER(made[k]);
    } else {
      if (!(made[k] = py.call_tuple(py.item(self, EMPTY), py.item(py.item(self, SHAPES), k)))) return -1;
      out[k] = FIELDS(made[k])->data;
    }
  }
  program(in, out, (const void *const *)FIELDS(py.item(self, KNOWN))->data);
  return 1;
}
static object *answered(object *self, object *const *a, long n, object *names, int form) {
  const void *in[INPUTS + 1];
  object *made[OUTPUTS + 1] = {0}, *all = 0;
  int done = given(self, a, n, names, in) ? worked_out(self, in, made) : 0;
  if (done < 0) return failed(made);
  if (!done) return py.call(py.item(self, ELSE), a, n, names);
  if (form == 1) return made[0];
  if (form == 0) {
    if (!(all = py.new_tuple(OUTPUTS))) return failed(made);
    for (long k = 0; k < OUTPUTS; k++) py.put(all, k, made[k]);
    return all;
  }
  if (form == 2) {
    object *known = py.item(self, FIRST), *kind = py.item(self, FIRST + 1 + py.length(known));
    object *by = kind == py.none ? py.new_dict() : py.call_with(kind, 0);
    if (!by) return failed(made);
    for (long j = 0, k = 1; j < py.length(known); j++) {
      int there = py.item(self, FIRST + 1 + j) != py.none;
      if (py.set(by, py.item(known, j), there ? made[k] : py.none) < 0) {
        py.drop(by);
        return failed(made);
      }
      k += there;
    }
    for (long k = 1; k < OUTPUTS; k++) py.drop(made[k]);
    if (!(all = py.new_tuple(2))) { py.drop(by); py.drop(made[0]); return 0; }
    py.put(all, 0, made[0]);
    py.put(all, 1, by);
    return all;
  }
  all = py.call_with(py.item(self, FIRST), py.item(self, FIRST + 1), py.item(self, FIRST + 2), made[0], 0);
  py.drop(made[0]);
  return all;
}
#define FORM(k) static object *form##k(object *self, object *const *a, long n, object *names) { \\
  return answered(self, a, n, names, k); }
FORM(0) FORM(1) FORM(2) FORM(3)
static struct { const char *name; called run; int how; const char *text; } methods[] = {
  {"call", form0, 0x82, 0}, {"call", form1, 0x82, 0}, {"call", form2, 0x82, 0}, {"call", form3, 0x82, 0}
};
object *function(int form, object *self) { return py.new_function(&methods[form], self, 0); }
"""
TUPLE, ALONE, WITH_GRADIENTS, MADE = range(4)  # the forms of a result


class Kind(NamedTuple):
    """What an argument or a result is: a number (no shape), or an array that lies in order, of a dtype."""

    word: str
    shape: tuple[int, ...] = ()


class DirectCalls:
    """The functions that a C program gives, one for each way to give its results."""

    def __init__(
        self,
        program: str,
        inputs: Sequence[Kind],
        outputs: Sequence[Kind],
        known: Sequence[Any] = (),
    ) -> None:
        """program: C of `static void program(const void *const *in, void *const *out, … *known)`.

        known: arrays whose addresses it is given in every call. Raises c_compiler.NoCompiler.
        """
        self.inputs, self.outputs, self._held = list(inputs), list(outputs), list(known)
        self._known = np.array([a.__array_interface__["data"][0] for a in known], np.uintp)
        library = told(program + _text(inputs, outputs))
        self._function = library.function
        self._function.restype, self._function.argtypes = (
            ctypes.py_object,
            [ctypes.c_int, ctypes.py_object],
        )

    def function(
        self,
        form: int,
        other: Callable[..., Any],
        names: Sequence[str] = (),
        more: Sequence[Any] = (),
    ) -> Any:
        """A function of the inputs, by position or (in this order) by name.

        form: TUPLE, ALONE (the first result), WITH_GRADIENTS (the first, and a dictionary of the others) or
        MADE (what a function makes of two objects and the first result). other: the function of Python that
        takes every other call, and those in another default dtype. more: the names of the dictionary, for
        each of them None or True (whether there is a result for it), and its class (None: dict); or the
        function and its two objects.
        """
        return self._made(form, other, dtypes.default.real, tuple(map(sys.intern, names)), more)

    def checked(self) -> Any:
        """A function of any arrays of these shapes and dtypes, as a tuple, in every default dtype."""

        def refused(*arrays: Array) -> Any:
            raise TypeError("these are not arrays of the program's shapes and dtypes")

        strict = self._made(TUPLE, refused, None, (), ())

        def brought(*arrays: Array) -> Any:
            pairs = zip(arrays, self.inputs, strict=True)
            return strict(*[_brought(a, kind) for a, kind in pairs])

        return self._made(TUPLE, brought, None, (), ())

    def _made(
        self, form: int, other: Any, real: Any, names: tuple[str, ...], more: Sequence[Any]
    ) -> Any:
        shapes = tuple((k.shape, np.dtype(k.word)) if k.shape else None for k in self.outputs)
        state = (other, dtypes.default, "real", real, names, np.empty, shapes, self._known, *more)
        # Last what nobody reads: the C knows addresses of these arrays, so they live as long as it does.
        return self._function(form, (*state, self._held))


def _brought(a: Any, kind: Kind) -> Any:
    """An array as the C takes it."""
    if not kind.shape:
        return NUMBERS[kind.word](a)
    return np.require(np.asarray(a, np.dtype(kind.word)), requirements=["C", "A"])


def _text(inputs: Sequence[Kind], outputs: Sequence[Kind]) -> str:
    """The C around a program of these kinds."""
    tests = []
    for k, kind in enumerate(inputs):
        if kind.shape:
            dims = [f"f->dims[{d}] == {n}" for d, n in enumerate(kind.shape)]
            whole = " && ".join([f"f->nd == {len(kind.shape)}", *dims])
            tests.append(
                f"  if (CLASS(a[{k}]) != py.array) return 0;\n"
                f"  f = FIELDS(a[{k}]);\n"
                f"  if (f->kind != py.kind[{ARRAYS.index(kind.word)}]) return 0;\n"
                f"  if ((f->flags & {_IN_ORDER}) != {_IN_ORDER} || !({whole})) return 0;\n"
                f"  in[{k}] = f->data;\n"
            )
        else:
            number = list(NUMBERS).index(kind.word)
            plain = f" && CLASS(a[{k}]) != py.plain" if kind.word == "f8" else ""
            tests.append(
                f"  if (CLASS(a[{k}]) != py.number[{number}]{plain}) return 0;\n"
                f"  in[{k}] = NUMBER(a[{k}]);\n"
            )
    numbers = ", ".join(str(-1 if k.shape else list(NUMBERS).index(k.word)) for k in outputs)
    places = {"ELSE": _ELSE, "DEFAULT": _DEFAULT, "REAL": _REAL, "IS": _IS, "NAMES": _NAMES}
    places |= {"EMPTY": _EMPTY, "SHAPES": _SHAPES, "KNOWN": _KNOWN, "FIRST": _FIRST}
    places |= {"INPUTS": len(inputs), "OUTPUTS": len(outputs)}
    defined = "".join(f"#define {word} {n}\n" for word, n in places.items())
    return (
        f"{defined}{TABLE}static const int numbers[] = {{{numbers}}};\n"
        "static int accepted(object *const *a, const void **in) {\n  struct fields *f; (void)f;\n"
        f"{''.join(tests)}  return 1;\n}}\n{_CALL}"
    )


def told(source: str) -> Any:
    """The library of a C source that has `TABLE`, told where objects are. Raises c_compiler.NoCompiler."""
    library = ctypes.PyDLL("direct", handle=c_compiler.load(source)._handle)
    library.known(_addresses())
    return library


@functools.cache
def _addresses() -> Any:
    """What the C is told: the addresses of CPython's functions, and of classes and dtypes."""
    found = [ctypes.cast(getattr(ctypes.pythonapi, n), ctypes.c_void_p).value for n in _API]
    objects = [float, *NUMBERS.values(), np.ndarray, *map(np.dtype, ARRAYS), None]
    return (ctypes.c_void_p * (len(_API) + len(objects)))(*found, *map(id, objects))


@functools.cache
def readable() -> bool:
    """Whether numbers, and the fields of arrays, lie where the C looks for them."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)():  # a program has its arrays for itself
        return False
    if sys.implementation.name != "cpython" or _WORD != 8 or ctypes.sizeof(ctypes.c_long) != 8:
        return False
    if not all(hasattr(ctypes.pythonapi, name) for name in _API):
        return False
    whole = {"f8": ctypes.c_double, "f4": ctypes.c_float, "i8": ctypes.c_longlong}
    samples: list[tuple[Any, Any]] = [
        (1.5, ctypes.c_double),
        *[(NUMBERS[c](3), whole[c]) for c in NUMBERS],
    ]
    for number, kind in samples:
        place = id(number) + HEAD
        if type(number).__basicsize__ != HEAD + 8 or kind.from_address(place).value != number:
            return False
        if ctypes.c_void_p.from_address(place - _WORD).value != id(type(number)):
            return False
    return all(map(_is_readable, [np.zeros((3, 2)), np.zeros(4, np.float32)[::2]]))


def _is_readable(a: Any) -> bool:
    """Whether an array's fields are where NumPy's own headers have them."""

    def word(k: int) -> int | None:
        return ctypes.c_void_p.from_address(id(a) + HEAD + k * _WORD).value

    if type(a).__basicsize__ < HEAD + 7 * _WORD or word(0) != a.__array_interface__["data"][0]:
        return False
    if ctypes.c_int.from_address(id(a) + HEAD + _WORD).value != a.ndim:
        return False
    for k, sizes in ((2, a.shape), (3, a.strides)):
        if word(k) is None or [*(ctypes.c_long * a.ndim).from_address(word(k))] != [*sizes]:
            return False
    flags = ctypes.c_int.from_address(id(a) + HEAD + 6 * _WORD).value
    return word(5) == id(a.dtype) == id(np.dtype(a.dtype.char)) and flags == a.flags.num


__all__ = ["ALONE", "ARRAYS", "MADE", "NUMBERS", "TABLE", "TUPLE", "WITH_GRADIENTS"]
__all__ += ["DirectCalls", "Kind", "readable", "told"]
