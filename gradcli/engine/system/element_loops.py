"""Operations on the elements of several arrays as one loop in C, in place of a call of NumPy for each.

The loop has NumPy's operations in NumPy's order (`c_arithmetic`), so it has the same bits.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any

from gradcli.engine.system import direct_calls
from gradcli.engine.system.background_code import A_CALL, BARE, BackgroundCode
from gradcli.engine.system.c_arithmetic import EXACT, REAL

_TYPES = {"f": ("float", "f", "f4"), "d": ("double", "", "f8")}

# Rows of arrays, one after the other; nothing is written unless all rows are what the loop takes.
_ROWS = """#include <math.h>
static int alike(const struct fields *f, const struct fields *first) {
  if (f->kind != py.kind[KIND] || (f->flags & BARE) != BARE || f->nd != first->nd) return 0;
  for (int d = 0; d < f->nd; d++) if (f->dims[d] != first->dims[d]) return 0;
  return 1;
}
static long size(const struct fields *f) {
  long n = 1;
  for (int d = 0; d < f->nd; d++) n *= f->dims[d];
  return n;
}
long work(object *arrays, object *numbers) {
  long count = py.length(arrays);
  T s[NUMBERS + 1];
  for (long r = 0; r < count; r += ARRAYS) {
    struct fields *first = FIELDS(py.item(arrays, r));
    for (long k = 0; k < ARRAYS; k++) {
      object *o = py.item(arrays, r + k);
      if (CLASS(o) != py.array || !alike(FIELDS(o), first)) return 0;
      long n = size(first) * sizeof(T);
      if (k && FIELDS(o)->data < first->data + n && first->data < FIELDS(o)->data + n) return 0;
    }
  }
  for (long k = 0; k < NUMBERS; k++) s[k] = (T)*(double *)NUMBER(py.item(numbers, k));
  for (long r = 0; r < count; r += ARRAYS)
    loop(size(FIELDS(py.item(arrays, r))), s, GIVEN);
  return 1;
}
"""


class Recorder:
    """Writes operations on elements down. A value is the name of a variable, or a number."""

    def __init__(self) -> None:
        self._said: list[Any] = []
        self._made = 0

    def like(self, array: str) -> str:
        """A new variable."""
        self._made += 1
        return f"v{self._made}"

    def call(self, *said: Any) -> None:
        """A ufunc, its operands, and the variable that takes the result."""
        self._said += (*said, None)

    def done(self) -> tuple[tuple[Any, ...], list[float]]:
        """What was called, with `float` in the place of numbers, and the numbers."""
        numbers = [float(x) for x in self._said if type(x) in _NUMBERS]
        return tuple([float if type(x) in _NUMBERS else x for x in self._said]), numbers


_NUMBERS = (float, int, bool)


class Loop:
    """What a recorder wrote, for rows of arrays of one dtype.

    The variables a0, a1 … are the elements of a row's arrays, which all have one shape.
    """

    def __init__(self, said: tuple[Any, ...], arrays: int, char: str) -> None:
        self.code = BackgroundCode(lambda: _source(said, arrays, char), "work")

    def run(self, arrays: Sequence[Any], numbers: Sequence[float], elements: int) -> bool:
        """Whether the loop has run over rows of arrays, whose first ones have so many elements.

        If not, nothing was written: the C is not there yet, or an array is not what it takes.
        """
        functions = self.code.functions(elements + A_CALL)
        return functions is not None and bool(functions[0](tuple(arrays), tuple(numbers)))


@functools.cache
def loop(said: tuple[Any, ...], arrays: int, char: str) -> Loop:
    """The loop of what a recorder wrote down: one for all who said the same."""
    return Loop(said, arrays, char)


def _statements(said: tuple[Any, ...]) -> tuple[str, int]:
    """C of what was called, and how many numbers it has."""
    forms = EXACT | REAL
    text, numbers, words = "", 0, list(said)
    while words:
        end = words.index(None)
        function, *operands, out = words[:end]
        words = words[end + 1 :]
        for k, x in enumerate(operands):
            if x is float:
                operands[k] = f"s[{numbers}]"
                numbers += 1
        text += f"{out} = {forms[function.__name__].format(*operands)}; "
    return text, numbers


def _source(said: tuple[Any, ...], arrays: int, char: str) -> str:
    """The C of a loop."""
    statements, numbers = _statements(said)
    name, suffix, kind = _TYPES[char]
    written = {int(k) for k in re.findall(r"\ba(\d+) =", statements)}
    own = sorted(set(re.findall(r"\bv\d+", statements)))
    every = range(arrays)
    body = "".join(f"    T a{k} = p{k}[i];\n" for k in every)
    body += f"    T {', '.join(own)};\n" if own else ""
    body += f"    {statements.replace('@', suffix)}\n"
    body += "".join(f"    p{k}[i] = a{k};\n" for k in sorted(written))
    takes = ", ".join(f"T *restrict p{k}" for k in every)
    given = ", ".join(f"(T *)FIELDS(py.item(arrays, r + {k}))->data" for k in every)
    words = {"T": name, "KIND": direct_calls.ARRAYS.index(kind), "BARE": BARE}
    words |= {"ARRAYS": arrays, "NUMBERS": numbers, "GIVEN": given}
    return (
        "".join(f"#define {word} {text}\n" for word, text in words.items())
        + f"static __attribute__((noinline)) void loop(long n, const T *restrict s, {takes}) {{\n"
        + f"  for (long i = 0; i < n; i++) {{\n{body}  }}\n}}\n{_ROWS}"
    )


__all__ = ["Loop", "Recorder", "loop"]
