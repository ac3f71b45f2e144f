"""C for numbers: doubles, <math.h>, and nothing else; `c_loops` writes the functions.

Without types, braces and semicolons the text is Python as well, which calls `functions`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gradcli.engine.system.greek import COMMANDS, LATIN
from gradcli.formulas.algebra.algebra import HALF, is_truth
from gradcli.formulas.algebra.exact_numbers import ONE, Number
from gradcli.formulas.algebra.expression_text import (
    ATOM,
    INFIX,
    PRODUCT,
    SUM,
    Piece,
    Printer,
    enclosed,
)
from gradcli.formulas.algebra.expressions import Expression
from gradcli.formulas.algebra.spelling import NoExpression
from gradcli.formulas.derive.differentiate import Derivatives
from gradcli.formulas.print.numpy_helpers import SCALAR, in_c
from gradcli.formulas.print.program_reader import of_arrays
from gradcli.formulas.print.sharing import unlike

# Functions of the language: their names in <math.h>, and the NumPy functions that compute the same.
_SAME = (
    *"sin cos tan sinh cosh tanh exp exp2 expm1 log log2 log10 log1p sqrt asin acos atan".split(),
    *"asinh acosh atanh atan2 floor ceil trunc fmod hypot copysign erf erfc lgamma".split(),
)
_NAMES = {
    **dict(zip(_SAME, _SAME, strict=True)),
    **{"abs": "fabs", "fmax": "fmax", "fmin": "fmin"},
    **{"isnan": "isnan", "isfinite": "isfinite", "round": "rint"},
    **{f"special.bessel_{w}": w for w in ("j0", "j1", "y0", "y1")},
}
_NUMPY = {
    **{"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh"},
    **{"acosh": "arccosh", "atanh": "arctanh", "atan2": "arctan2", "pow": "power", "fabs": "abs"},
}
# Functions that C lacks: their texts, printed before the derivative.
HELPERS = {
    **{word.rpartition(".")[2]: in_c(text) for word, text in SCALAR.items()},
    "where": "double where(int c, double a, double b) { return c ? a : b; }",
    "square": "double square(double x) { return x * x; }",
    "remainder_": "double remainder_(double x, double y) { return x - y * floor(x / y); }",
}
# What is no name of a variable: keywords of C and C++ up to C23 and C++20, what a printed function is made
# of, and macros that C's standard headers and compilers bring with them (POSIX, MSVC): who includes
# <complex.h> before a printed function has an I of his own.
TAKEN = frozenset(
    "auto break case char const continue default do double else enum extern float for goto if inline int "
    "long register restrict return short signed sizeof static struct switch typedef union unsigned void "
    "volatile while alignas alignof and and_eq asm bitand bitor bool catch char8_t char16_t char32_t class "
    "co_await co_return co_yield compl concept const_cast consteval constexpr constinit decltype delete "
    "dynamic_cast explicit export false friend mutable namespace new noexcept not not_eq nullptr operator or "
    "or_eq private protected public reinterpret_cast requires static_assert static_cast template this "
    "thread_local throw true try typeid typename typeof typeof_unqual using virtual wchar_t xor xor_eq "
    "gradient derivative jacobian hessian value_and_gradient value_and_derivative value_and_jacobian "
    "value_and_hessian value work size_t malloc free abs main "
    "INFINITY NAN NULL HUGE_VAL MAXFLOAT EXIT_SUCCESS EXIT_FAILURE RAND_MAX MB_CUR_MAX WNOHANG WUNTRACED "
    "DOMAIN SING OVERFLOW UNDERFLOW PLOSS TLOSS X_TLOSS HUGE math_errhandling MATH_ERRNO errno signgam "
    "linux unix i386 near far min max asm pow gamma lgamma_r j0 j1 jn y0 y1 yn drem scalb significand "
    "exp10 pow10 div ldiv random srand rand system exit abort atof atoi "
    "BYTE_ORDER BIG_ENDIAN LITTLE_ENDIAN PDP_ENDIAN FD_SETSIZE NFDBITS WEXITED WSTOPPED WCONTINUED "
    "WNOWAIT I complex imaginary noreturn stdin stdout stderr EOF WEOF BUFSIZ E2BIG "
    "L_tmpnam SEEK_CUR SEEK_END SEEK_SET CLOCKS_PER_SEC CHAR_BIT".split()
) | {*_NAMES.values(), *HELPERS}
_MACROS = re.compile(
    r"(M|FP|MATH|HUGE|LDBL|DBL|FLT|EXIT|W|P|FE|LC|TIME|DECIMAL)_\w+|SNAN\w*|_\w+"
    r"|\w+_(MAX|MIN|WIDTH)|(PRI|SCN)[a-zX]\w+|E[A-Z][A-Z0-9]+"
)


def c_names(names: Iterable[str]) -> dict[str, str]:
    """The names of variables in C: ASCII, and none that C, C++ or their headers have."""
    found: dict[str, str] = {}
    names = list(names)
    for name in names:
        plain = ascii_name(name)
        if plain in TAKEN or _MACROS.fullmatch(plain):
            plain = f"{plain.lstrip('_')}_"
        found[name] = unlike(plain, {*found.values(), *(n for n in names if n != name)})
    return found


def ascii_name(text: str) -> str:
    """A text as an identifier in ASCII: `x_0` of x[0], `alpha` of α."""
    return re.sub(r"\W+", "_", "".join(map(_ascii, text)))


def _ascii(letter: str) -> str:
    """A letter in ASCII: Greek ones by their names, others by their numbers."""
    if letter.isascii():
        return letter
    known = COMMANDS.get(letter) or LATIN.get(letter)
    return known.removeprefix("var") if known else f"u{ord(letter):04x}"


def no_form(function: str) -> NoExpression:
    """The refusal of a function, in words of the program: derivatives call some that it does not."""
    what = "the derivative of an index or a slice" if _OF_PARTS.search(function) else function
    return NoExpression(f"C has no form for {what}: --format numpy has")


_OF_PARTS = re.compile(r"scatter$|^index_(put|add)$")


class CPrinter(Printer):
    """Prints expressions of scalars as C; `helpers` collects the functions to print before it."""

    constants: Mapping[str, str] = {
        **{"pi": repr(math.pi), "inf": "INFINITY", "-inf": "-INFINITY", "nan": "NAN"}
    }

    def __init__(self, names: Any = None) -> None:
        super().__init__(names)
        self.helpers: dict[str, None] = {}

    def number(self, value: Number) -> Piece:
        text, precedence = super().number(value)
        # 1/2 is 0 in C
        return re.sub(r"(?<![\w.])(?<!\de[-+])(\d+)(?![\w.])", r"\1.0", text), precedence

    def power(self, base: Expression, exponent: Any) -> Piece:
        if isinstance(exponent, Number) and exponent != HALF and exponent != ONE:
            text = self.of(base)[0]
            if exponent.integer in (2, 3) and re.fullmatch(r"\w+(\[[^\[\]]*\])?", text):
                return "*".join([text] * exponent.integer), PRODUCT
            if exponent.integer == 2:
                return self.call("square", [self.of(base)])
            return f"pow({text}, {self.number(exponent)[0]})", ATOM
        if isinstance(exponent, Number):
            return super().power(base, exponent)
        return f"pow({self.of(base)[0]}, {self.of(exponent)[0]})", ATOM

    def call(
        self, function: str, args: list[Piece], options: Iterable[tuple[str, Any]] = ()
    ) -> Piece:
        word = function.rpartition(".")[2]
        if list(options) or not (function in _NAMES or word in HELPERS):
            raise NoExpression(f"C has no function for {function}")
        if function not in _NAMES:
            self.helpers[word] = None
        return f"{_NAMES.get(function, word)}({', '.join(a[0] for a in args)})", ATOM

    def make_call(self, node: Expression) -> Piece:
        function = node.data[0]
        args = [self.of(a) for a in node.args]
        if function == "remainder":
            return self.call("remainder_", args)
        if function == "floor_divide":
            a, b = enclosed(args[0], PRODUCT), enclosed(args[1], PRODUCT + 1)
            return f"floor({a}/{b})", ATOM
        if function.startswith("bitwise_") and not all(map(is_truth, node.args)):
            raise NoExpression(f"C has {function} of truth values alone")
        if function in INFIX:  # & and | bind differently in C
            a, b = (enclosed(piece, SUM) for piece in args)
            return f"({a}{INFIX[function][0]}{b})", ATOM
        return super().make_call(node)

    def call_bitwise_not(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        return f"({enclosed(args[0], SUM)} == 0)", ATOM

    call_logical_not = call_bitwise_not

    call_clamp = Printer.between

    def call_float(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        return args[0]

    def _refused(self, args: list[Piece], options: Any, node: Expression) -> Piece:
        raise no_form(node.data[0])

    call_matmul = call_T = call_select = call_slice = call_index = call_reshape = _refused
    call_ones = call_zeros = call_eye = call_expand = call_expand_as = _refused
    call_to = call_index_put = _refused
    special = {}  # noqa: RUF012


def assembled(
    found: Derivatives,
    parameters: Sequence[str],
    lines: Sequence[str],
    value: str,
    helpers: Iterable[str],
) -> str:
    """The text of a function behind those that it calls; lines: its statements."""
    source = found.heading.replace("*/", "* /").replace("\\", "\\\\")
    function = [
        f"/* {found.title(source)} */",
        f"double value_and_{found.kind.lower()}({', '.join(parameters)})",
        "{",
        *[f"    {line}" for line in lines],
        f"    return {value};",
        "}",
    ]
    texts = [f"static {HELPERS[word]}" for word in helpers]
    head = ["#include <math.h>"]
    if any("malloc(" in line for line in lines):
        head.append("#include <stdlib.h>")
    if re.search(r"\b[jy][01]\(", "".join([*lines, value])):  # POSIX has these, standard C has not
        head.insert(0, "#define _XOPEN_SOURCE 600")
    return "\n\n".join(["\n".join(head), *texts, "\n".join(function)])


def functions() -> dict[str, Any]:
    """The functions that a printed text may call, from NumPy and from the table of primitives."""
    known: dict[str, Any] = {
        name: getattr(np, _NUMPY.get(name, name), None) or of_arrays(language)
        for language, name in _NAMES.items()
    }
    known |= {"pow": np.power, "INFINITY": math.inf, "NAN": math.nan}
    known |= {"remainder_": np.remainder, "sech2": lambda x: 4 / (np.exp(x) + np.exp(-x)) ** 2}
    own = [w for w in HELPERS if w not in known and w not in ("logsigmoid", "softplus")]
    known |= {word: of_arrays(word) for word in own}
    known |= {w: of_arrays(f"nn.functional.{w}") for w in ("logsigmoid", "softplus")}
    return known


__all__ = ["TAKEN", "CPrinter", "ascii_name", "assembled", "c_names", "functions", "no_form"]
