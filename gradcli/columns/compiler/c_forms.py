"""Operations on elements as C: one table of forms, for loops over rows and for programs of small arrays.

It also has what both put around the forms: types, numbers, loops over calls of the mathematical library, and
functions of a few loops each. Those are small, and each is written once, since a compiler's time grows faster
than the length of a function, and it does not see that two loops are equal.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.engine.system.c_arithmetic import EXACT, LESS, MORE, REAL
from gradcli.engine.system.cascaded_sums import add_reduce
from gradcli.transforms.tracing.numpy_program import Operation, cast

TYPES = {"f8": "double", "f4": "float", "b1": "unsigned char", "i8": "long long", "i4": "int"}
# C of functions of the mathematical library, by NumPy's and SciPy's names; `@T` becomes the type.
_UNARY = "exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh cbrt erf erfc".split()
_ARCS = {f"arc{n}": f"a{n}" for n in ("sin", "cos", "tan", "sinh", "cosh", "tanh")}
_CALLS = {
    **{n: f"{c}@({{0}})" for n, c in [*zip(_UNARY, _UNARY, strict=True), *_ARCS.items()]},
    **{n: f"{c}@({{0}}, {{1}})" for n, c in [("arctan2", "atan2"), ("power", "pow")]},
    "tanh": "tanh_@T({0})",
    "hypot": "hypot@({0}, {1})",
    "expit": "1 / (1 + exp@(-{0}))",
    "logaddexp": "({0} == {1} ? {0} : {0} > {1} ? {0} : {1})"
    " + ({0} == {1} ? (@T)0.69314718055994530942 : log1p@(exp@(-fabs@({0} - {1}))))",
}
_POWERS = {2: "{0} * {0}", 0.5: "sqrt@({0})", -1: "1 / {0}"}  # as Python's ** does them
REDUCTIONS = {add_reduce: "sum", np.maximum.reduce: "max", np.minimum.reduce: "min"}
# What a reduction makes of what it has and of the next term.
COMBINED = {
    "sum": "{0} + {1}",
    "max": MORE.replace(" > ", " >= "),
    "min": LESS.replace(" < ", " <= "),
}
BYTES = {t: int(k[1:]) for k, t in TYPES.items()}
VECTOR = 64  # bytes of the widest vector


def c_type(dtype: Any) -> str | None:
    """The C type of a dtype; None if there is none."""
    return TYPES.get(f"{dtype.kind}{dtype.itemsize}") if dtype.isnative else None


class Form:
    """An elementwise operation in C: `text` of operands of the types `kinds`, its result of type `kind`."""

    __slots__ = ("is_call", "kind", "kinds", "text")

    def __init__(self, text: str, kinds: Sequence[Any], kind: Any, is_call: bool = False) -> None:
        self.text, self.kinds, self.kind, self.is_call = text, kinds, kind, is_call

    def has_types(self) -> bool:
        """Whether C has the types of its operands and of its result."""
        return None not in map(c_type, (*self.kinds, self.kind))

    def is_exponential(self) -> bool:
        """Whether it is exp, for arrays of which there is a function of our own."""
        return self.text == _CALLS["exp"] and self.kinds[0] == self.kind

    def of(self, given: Iterable[str], types: Iterable[str | None], alone: bool = False) -> str:
        """The C of its value, of operands by their texts and C types.

        alone: of a single number, for which the C library's own tanh is nearer than that of vectors.
        """
        pattern = self.text.replace("tanh_@T", "tanh@") if alone else self.text
        suffix = "f" if self.kinds[-1] == np.float32 else ""
        pattern = pattern.replace("@T", c_type(self.kind) or "").replace("@", suffix)
        wanted = [
            text if kind == (own := c_type(k)) else f"(({own}){text})"
            for text, kind, k in zip(given, types, self.kinds, strict=False)
        ]
        return pattern.format(*wanted)


def form(o: Operation) -> Form | None:
    """The C form of an operation on elements; None if it has none."""
    f, given = o.function, o.args
    name = getattr(f, "__name__", "")
    if f is cast or f is np.broadcast_to:
        kind = given[0].dtype
        if o.dtype.kind != "f" and kind != o.dtype:
            return Form("{0} != 0", [kind], o.dtype) if o.dtype.kind == "b" else None
        return Form("{0}", [kind], o.dtype)
    if f is np.where:
        first = given[0].dtype if type(given[0]) is Operation else np.dtype(bool)
        return Form("({0} != 0) ? {1} : {2}", [first, o.dtype, o.dtype], o.dtype)
    # The language's ** takes squares and roots by other functions than pow, and the last digit shall be the
    # same.
    if f is operator.pow:
        if o.dtype.kind != "f":
            return None
        text = _POWERS.get(given[1]) if type(given[1]) in (int, float) else None
        return Form(text or _CALLS["power"], [o.dtype] * 2, o.dtype, text is None)
    if f is np._core.umath.clip:  # type: ignore[attr-defined]
        lower = LESS.replace("{1}", "{2}").replace("{0}", f"({MORE})")
        return Form(lower, [o.dtype] * 3, o.dtype) if o.dtype.kind == "f" else None
    if not isinstance(f, np.ufunc) or f.nout != 1:
        return None
    try:
        *kinds, kind = f.resolve_dtypes((*map(_kind, given), None))
    except TypeError:
        return None
    # A sum of truths is one, not 2.
    text = "{0} | {1}" if name == "add" and kind.kind == "b" else None
    text = text or EXACT.get(name) or (REAL.get(name) if kinds[0].kind == "f" else None)
    if name == "invert" and kind.kind == "b":
        text = "!{0}"
    if name in _CALLS and kind.kind == "f":
        return Form(_CALLS[name], kinds, kind, True)
    return None if text is None else Form(text, kinds, kind)


def _kind(a: Any) -> Any:
    return a.dtype if type(a) in (Operation, np.ndarray) else type(a)


def literal(value: Any, dtype: Any) -> str:
    """A number in C."""
    if dtype.kind != "f":
        return f"(({TYPES[f'{dtype.kind}{dtype.itemsize}']}){int(value)}LL)"
    with np.errstate(all="ignore"):
        number = float(dtype.type(value))
    if not math.isfinite(number):
        if number != number:
            return "NAN"
        return "INFINITY" if number > 0 else "(-INFINITY)"
    # Hexadecimal: no digit is rounded on the way to the compiler.
    return f"({number.hex()}{'f' if dtype.itemsize == 4 else ''})"


class Functions:
    """The static functions of a library, each once; `texts` has them without their names."""

    def __init__(self) -> None:
        self.texts: dict[tuple[str, str], str] = {}

    def name(self, text: str, kind: str = "void") -> str:
        """The name of the function of this text (from its parameters on), that gives a `kind`."""
        return self.texts.setdefault((kind, text), f"f{len(self.texts)}")

    def source(self) -> str:
        """All of them as C."""
        # Of parameters alone does gcc believe that they are apart: they must stay functions.
        return "".join(
            f"static __attribute__((noinline)) {kind} {name}{text}"
            for (kind, text), name in self.texts.items()
        )

    def calls(self, made: Form, types: Sequence[str | None], single: Sequence[bool]) -> str:
        """The name of a function `(count, result, operands)`: a loop over calls of a form.

        single: which operands are the same number for all. The compiler takes longest over calls, and most
        programs have the same ones again and again.
        """
        if made.is_exponential() and list(types) == [c_type(made.kind)] and not single[0]:
            return f"exponentials_{c_type(made.kind)}"
        kind = c_type(made.kind)
        takes = [
            f"const {t} {'' if one else '*restrict '}a{k}"
            for k, (t, one) in enumerate(zip(types, single, strict=True))
        ]
        text = made.of((f"a{k}{'' if one else '[i]'}" for k, one in enumerate(single)), types)
        return self.name(
            f"(long n, {kind} *restrict o, {', '.join(takes)}) "
            f"{{ for (long i = 0; i < n; i++) o[i] = {text}; }}\n"
        )

    def outlined(self, text: str, types: Mapping[str, str]) -> str:
        """A call of a function that does what statements do.

        types: of the names that they read from outside, `T` or `T *`. A statement may `return 1`. Functions
        are one where the statements are, but for the names.
        """
        own: dict[str, str] = {}
        takes: list[str] = []
        given: list[str] = []

        def renamed(found: re.Match[str]) -> str:
            name = found[0]
            if name in own:
                return own[name]
            if name in types:
                own[name] = f"a{len(given)}"
                kind = types[name].replace("*", "*restrict")
                takes.append(f"{kind} {own[name]}")
                given.append(name)
            elif re.fullmatch(r"v\d+", name):
                own[name] = f"v{len(own)}"
            return own.get(name, name)

        # The digits of numbers are no names: 0x1p-1.
        body = re.sub(r"\b[A-Za-z_]\w*", renamed, text)
        fails = "return 1;" in body
        body = f"({', '.join(takes)}) {{\n  {body}\n{'  return 0;' if fails else ''}}}\n"
        call = f"{self.name(body, 'int' if fails else 'void')}({', '.join(given)})"
        return f"if ({call}) return 1;" if fails else f"{call};"


__all__ = ["BYTES", "COMBINED", "REDUCTIONS", "Form", "Functions", "c_type", "form", "literal"]
