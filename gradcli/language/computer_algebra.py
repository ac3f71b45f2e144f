r"""Texts of computer algebra systems as mathematics for `--math`: `Sin[x]^2`, `Piecewise((x, x > 0))`.

SymPy's text, Mathematica's input form, Maple's and Maxima's calls, and the functions of MATLAB, R, JavaScript
and Julia (`@(x) x.^2`, `function(x) x^2`, `x => x**2`). What a system writes as a call that mathematics
writes otherwise, a sum or a piecewise function, becomes LaTeX. The pieces keep where they were typed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from keyword import iskeyword
from typing import Any, NamedTuple

from gradcli.language import foreign_names, names
from gradcli.language.typed_text import joined

Build = Callable[[Sequence[str]], str | None]

_CLOSE = {"(": ")", "[": "]", "{": "}"}
_NAME = r"[^\W\d]\w*"
_LIST = re.compile(r"(?<![\w^}\]])\{(?=[^{}]*,|\{[^{}]*,)")  # and neither x_{1,2} nor e^{x}
_CALL = re.compile(rf"(?<![\w.\\]){_NAME}(?=[(\[])")
_LIMITS = re.compile(rf"\s*({_NAME})\s*=(?!=)(.+?)\.\.(.+)", re.S)
# What stands before the body of a function: `@(x)`, `function(x)`, `lambda x:`, `x ->`, `(x, y) =>`.
_ARGUMENTS = rf"\(?\s*{_NAME}(?:\s*,\s*{_NAME})*\s*\)?"
_FUNCTION = re.compile(
    rf"\s*(?:{_NAME}\s*(?::?=|<-)\s*)?"
    rf"(?:@\s*\([\w,\s]*\)|function\s*\([\w,\s]*\)|\\?{_ARGUMENTS}\s*(?:->|=>|\|->|↦)"
    rf"|lambda\s+[\w,\s]*:)\s*"
)
_DEFINED = re.compile(rf"\s*({_NAME})\s*[(\[]\s*((?:{_NAME}_?\s*,\s*)*{_NAME}_?)\s*[)\]]\s*:=\s*")
# What one system has, and no other nor mathematics has otherwise: (what it looks like, how it is read).
_WORDS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"%(e|pi|i)\b"), lambda f: {"i": "1j"}.get(f[1], f[1])),  # Maxima's constants
    (re.compile(r"(?<=[\d.])[dD](?=[-+]?\d+\b)"), lambda f: "e"),  # Fortran's 1.5d0
    (re.compile(r"(?<![\w.\\])lambda(?![\w(]|\s+[\w,\s]*:|:)"), lambda f: r"\lambda "),
    (re.compile(r"(?<![\w.])(?:builtins|Math)\.(?=\w)"), lambda f: ""),
)
_JULIA = re.compile(r"\.[*/^]|\?")  # beside one of these, 3 // 2 is a fraction


def as_mathematics(source: str, own: Container[str], *, lists: bool = True) -> str:
    """The text with what computer algebra systems write as mathematics writes it; others as they are.

    own: the names that have a value: they mean what they are. lists: whether `{x, y}` is a vector.
    """
    text, defined = _body(source)
    is_latex = "\\" in text
    for pattern, new in _WORDS:
        text = _replaced(text, pattern, new)
    if "//" in text and _JULIA.search(text):
        text = _replaced(text, re.compile(r"\s*//\s*"), lambda found: "/")
    if not is_latex:
        text = _of_matlab(text)
    lists = lists and not is_latex and _LIST.search(text) is not None
    if "[" not in text and "(" not in text and not lists:
        return text
    if lists or any(_is_bracket_call(text, found, own) for found in _CALL.finditer(text)):
        text = _input_form(text, own)
    if defined:
        text = _with_round_brackets(text, defined)
    if not is_latex and "(" in text:
        text = _without_not(text)
    text = _without_calls(text, own)
    return _without_brackets(_without_lists(text) if lists else text)


def bracket_calls(source: str) -> list[str]:
    """The names that a text calls as Mathematica does, `Sin[x]`, in their order."""
    return [f[0] for f in _CALL.finditer(source) if _is_bracket_call(source, f, ())]


def is_called_elsewhere(name: str) -> bool:
    """Whether a name is a function of a computer algebra system that is read."""
    return name in _ROUND


def _body(source: str) -> tuple[str, str]:
    """(what a function gives, of a text that is one; the name that a text defines as Mathematica does)."""
    found = _FUNCTION.match(source)
    if found and not any(map(iskeyword, re.findall(r"\w+(?=\s*[,:)])", found[0]))):
        body = source[found.end() :]
        return (body, "") if not re.search(r"[;\n]", body) else (source, "")
    if found := _DEFINED.match(source):  # Maxima's f(x) := x^2, and Mathematica's
        arguments = found[2].replace("_", "")
        return joined(f"{found[1]}({arguments}) = ", source[found.end() :]), found[1]
    return source, ""


def _with_round_brackets(text: str, name: str) -> str:
    """The calls of a function that the text defines, `f[2]`, as mathematics has them."""
    return _bracketed(text, rf"(?<![\w.]){name}(?=\[)", f"{name}(", ")")


def _of_matlab(text: str) -> str:
    """MATLAB's matrices `[1 2; 3 4]`, and its products of matrices where a transpose, `A'`, tells them.

    There `*` is the product that mathematics writes with nothing between, and `.*` that of elements.
    """
    for found in reversed(list(_ROWS.finditer(text))):
        rows = [
            [_stripped(c) for c in re.split(_CELLS, _stripped(row))] for row in found[1].split(";")
        ]
        text = joined(text[: found.start()], _matrix_of(rows), text[found.end() :])
    if re.search(r"[\w)\]]'", text):
        text = _replaced(text, _TIMES, _product)
    return text


_ROWS = re.compile(r"(?<![\w)\]])\[([^\[\];]+(?:;[^\[\];]+)+)\]")
_CELLS = (
    r"\s*,\s*|(?<![-+*/^(\s])\s+(?![*/^)\s]|[-+]\s)"  # `[a - b c]` has two cells, `[a -b c]` three
)
# A product of names and brackets; `a*(x + 1)` of a small letter stays, for a (x + 1) may be a call.
_TIMES = re.compile(rf"((?<!\w){_NAME}|[)\]'])\s*(?<!\.)\*(?!\*)\s*(?=[^\W\d]|(\())")


def _product(found: re.Match[str]) -> str:
    return found[0] if found[2] and found[1][0].islower() else f"{found[1]} "


def _without_not(text: str) -> str:
    """The text without signs of negation: `~(x > 1)` of MATLAB is 1 where x > 1 does not hold."""
    return _bracketed(text, r"(?<![\w)\]])[~!]\s*(?=\()", "where(", ", 0, 1)")


def _bracketed(text: str, pattern: str, before: str, after: str) -> str:
    """The text with `before` and `after` in the place of a pattern and of the brackets that follow it."""
    for found in reversed(list(re.finditer(pattern, text))):
        close = _closing(text, found.end())
        if close is not None:
            inner = text[found.end() + 1 : close]
            text = joined(text[: found.start()], before, inner, after, text[close + 1 :])
    return text


def _without_brackets(text: str) -> str:
    """A text without the brackets around all of it that a call has been given."""
    if text[:2] == "(\\" and _closing(text, 0) == len(text) - 1:
        return text[1:-1]
    return text


def _replaced(text: str, pattern: re.Pattern[str], new: Callable[[re.Match[str]], str]) -> str:
    parts, end = [], 0
    for found in pattern.finditer(text):
        parts += [text[end : found.start()], new(found)]
        end = found.end()
    return joined(*parts, text[end:]) if parts else text


# -- Mathematica ----------------------------------------------------------------------------------


def _is_bracket_call(text: str, found: re.Match[str], own: Container[str]) -> bool:
    """Whether `Name[` calls one of Mathematica's functions: all of these begin with a capital letter."""
    name = found[0]
    if text[found.end()] != "[" or name in own:
        return False
    if name in ("D", "N"):  # which may be a matrix whose row is read, D[0]
        return text[found.end() + 1 : found.end() + 2].isalpha()
    return name[0].isupper() and len(name) > 1 and (name in _SQUARE or _is_function(name.lower()))


def _input_form(text: str, own: Container[str]) -> str:
    """Mathematica's signs as mathematics: `E`, `I`, `1.*^-3`, `a . b`, `expr // Simplify`."""
    text = _replaced(text, re.compile(r"\s*//\s*[A-Z]\w*\s*$"), lambda found: "")
    text = _replaced(text, re.compile(r"(?<=[\d.])`?\*\^(?=[-+]?\d)"), lambda found: "e")
    text = _replaced(text, re.compile(r"\s+\.\s+|&&|\|\|"), lambda found: _SIGNS[found[0].strip()])
    constants = {word: new for word, new in _CONSTANTS.items() if word not in own}
    return _replaced(
        text,
        re.compile(rf"(?<![\w.])(?:{'|'.join(constants)})(?![\w\[(])"),
        lambda found: constants[found[0]],
    )


_SIGNS = {".": " @ ", "&&": " and ", "||": " or "}
_CONSTANTS = {"E": "e", "I": "1j", "Infinity": "inf", "Degree": "(pi/180)"}


# -- calls ----------------------------------------------------------------------------------------


class _Call(NamedTuple):
    name: str
    arguments: list[str]
    end: int


def _without_calls(text: str, own: Container[str]) -> str:
    """The text with the calls that mathematics writes otherwise, from the outermost inwards."""
    parts: list[str] = []
    end = 0
    for found in _CALL.finditer(text):
        if found.start() < end or found[0] in own:
            continue
        call = _call_at(text, found)
        if call is None:
            continue
        written = _written(text, found, call, own)
        if written is not None:
            parts += [text[end : found.start()], written]
            end = call.end
    return joined(*parts, text[end:]) if parts else text


def _call_at(text: str, found: re.Match[str]) -> _Call | None:
    close = _closing(text, found.end())
    if close is None:
        return None
    return _Call(found[0], _split(text[found.end() + 1 : close]), close + 1)


def _written(text: str, found: re.Match[str], call: _Call, own: Container[str]) -> str | None:
    bracket = _is_bracket_call(text, found, own)
    if text[found.end()] == "[" and not bracket:
        return None
    build = (_SQUARE if bracket else _ROUND).get(call.name)
    if build is not None and (bracket or call.name not in _LOWER or _is_foreign(call)):
        arguments = [_without_calls(a, own) for a in call.arguments]
        made = build(arguments)
        if made is not None:
            return made
    if not bracket:
        return None
    arguments = [_without_calls(a, own) for a in call.arguments]
    return joined(call.name.lower(), "(", *_between([_listed(a) for a in arguments], ", "), ")")


def _is_foreign(call: _Call) -> bool:
    """Whether a call of a word that means something else here, sum or diff, is another system's.

    `sum(x^i, i, 1, 3)`, `sum(x^i, i = 1..3)`, `diff(sin(x), x)`.
    """
    first = call.arguments[1:2]
    if not first:
        return False
    if _LIMITS.fullmatch(first[0]):
        return True
    if (
        re.fullmatch(rf"\s*{_NAME}\s*(?:\$\s*\d+\s*)?", first[0]) is None
        or "=" in call.arguments[-1]
    ):
        return False
    return call.name == "diff" or len(call.arguments) == 4


def _closing(text: str, start: int) -> int | None:
    """Where the bracket at `start` is closed."""
    open_ = []
    for place in range(start, len(text)):
        if text[place] in _CLOSE:
            open_.append(_CLOSE[text[place]])
        elif text[place] in ")]}":
            if not open_ or open_.pop() != text[place]:
                return None
            if not open_:
                return place
    return None


def _split(text: str) -> list[str]:
    """The parts of a text between its outermost commas; a semicolon parts a spreadsheet's arguments."""
    parts, start, depth = [], 0, 0
    for place, sign in enumerate(text):
        depth += (sign in _CLOSE) - (sign in ")]}")
        if sign in ",;" and not depth:
            parts.append(text[start:place])
            start = place + 1
    last = text[start:]
    parts = [*parts, last] if last.strip() else parts
    return [_stripped(p) for p in parts]


def _stripped(text: str) -> str:
    start = len(text) - len(text.lstrip())
    return text[start : len(text.rstrip())]


def _without_lists(text: str) -> str:
    """The text with its lists in braces as vectors and matrices."""
    while (found := _LIST.search(text)) and (close := _closing(text, found.start())) is not None:
        made = _listed(text[found.start() : close + 1])
        text = joined(text[: found.start()], made, text[close + 1 :])
    return text


def _items(text: str) -> list[str] | None:
    """The items of a list, a tuple or Mathematica's braces; None of other texts."""
    text = _stripped(text)
    if text[:1] not in ("(", "[", "{") or _closing(text, 0) != len(text) - 1:
        return None
    found = _split(text[1:-1])
    return found if len(found) > 1 or text[0] != "(" else None


def _listed(text: str) -> str:
    """A list as mathematics has it: a matrix of rows, or a vector."""
    rows = _items(text)
    if rows is None or text[0] == "(":
        return text
    cells = [_items(row) or [row] for row in rows]
    return _matrix_of(cells)


def _matrix_of(rows: Sequence[Sequence[str]]) -> str:
    lines = [part for row in rows for part in (r" \\ ", *_between(row, " & "))][1:]
    return joined(r"\begin{bmatrix} ", *lines, r" \end{bmatrix}")


def _between(texts: Sequence[str], sign: str) -> list[str]:
    return [part for text in texts for part in (sign, text)][1:]


# -- what each call is ----------------------------------------------------------------------------


def _operand(text: str) -> str:
    """A text that may stand beside others: in brackets, if it is more than a name, a number or a call."""
    plain = re.fullmatch(rf"{_NAME}|\d+\.?\d*|{_NAME}\((?:[^()]|\([^()]*\))*\)", text)
    return text if plain or text.startswith(r"\begin") else joined("(", text, ")")


def _limits(arguments: Sequence[str]) -> list[tuple[str, str, str]] | None:
    """(index, first, last) of each limit: `(i, 1, n)`, `{i, n}`, `i = 1..n`, or the arguments themselves."""
    if len(arguments) == 3 and re.fullmatch(_NAME, arguments[0]):
        return [(arguments[0], arguments[1], arguments[2])]
    found = []
    for text in arguments:
        if limit := _LIMITS.fullmatch(text):
            found.append((limit[1], limit[2].strip(), limit[3].strip()))
            continue
        items = _items(text) or []
        if len(items) == 2 and text[0] == "{":
            items = [items[0], "1", items[1]]
        if len(items) != 3 or re.fullmatch(_NAME, items[0]) is None:
            return None
        found.append((items[0], items[1], items[2]))
    return found or None


def _over(sign: str, suffix: Callable[[str], str] = lambda index: "") -> Build:
    r"""A sum, a product or an integral: `\sum_{i=1}^{n} (f)`."""

    def build(arguments: Sequence[str]) -> str | None:
        limits = _limits(arguments[1:])
        if limits is None:
            return None
        text = _operand(arguments[0])
        # SymPy's first limit is the innermost, Mathematica's the outermost; limits that depend on an
        # index can only be read in one of the two orders.
        braces = arguments[1].startswith("{")
        for index, first, last in limits[::-1] if braces else limits:
            start = first if sign == r"\int" else f"{index}={first}"
            text = joined(sign, "_{", start, "}^{", last, "} ", text, suffix(index))
        return joined("(", text, ")")

    return build


def _derivative(arguments: Sequence[str]) -> str | None:
    by: list[tuple[str, int]] = []
    for text in arguments[1:]:
        if text.isdigit() and by:  # Maxima's diff(f, x, 2)
            by[-1] = (by[-1][0], int(text))
            continue
        name, *order = _items(text) or re.split(r"\s*\$\s*", text)  # Maple's diff(f, x$2)
        if not re.fullmatch(_NAME, name) or (order and not order[0].isdigit()) or len(order) > 1:
            return None
        by.append((name, int(order[0]) if order else 1))
    if not by:
        return None
    text = arguments[0]
    for name, times in by:
        power = f"^{{{times}}}" if times > 1 else ""
        text = joined(rf"(\frac{{d{power}}}{{d{name}{power}}}(", text, "))")
    return text


def _piecewise(arguments: Sequence[str]) -> str | None:
    """The first value whose condition holds: `Piecewise((a, c), (b, True))`, `piecewise(c, a, b)`."""
    first = _items(arguments[0]) if arguments else None
    if first is not None and arguments[0][0] == "{":  # Mathematica's list of pairs, then the rest
        pairs = [_items(p) or [] for p in first]
        rest = arguments[1] if len(arguments) > 1 else "0"
    elif first is not None:
        pairs, rest = [_items(a) or [] for a in arguments], "nan"
    else:
        pairs = [[v, c] for c, v in zip(arguments[::2], arguments[1::2], strict=False)]
        rest = arguments[-1] if len(arguments) % 2 else "0"
    if not pairs or any(len(pair) != 2 for pair in pairs):
        return None
    text = rest
    for value, condition in reversed(pairs):
        if condition in ("True", "otherwise"):
            text = value
        else:
            text = joined("where(", _condition(condition), ", ", value, ", ", text, ")")
    return text


def _condition(text: str) -> str:
    text = _replaced(text, re.compile(r"(?<![=<>!])=(?!=)"), lambda f: "==")  # Maple's
    return _replaced(text, re.compile(r"\s*(?:&&?|\|\|?)\s*"), lambda f: _AND_OR[f[0].strip()[0]])


_AND_OR = {"&": " and ", "|": " or "}


def _choice(arguments: Sequence[str]) -> str | None:
    if len(arguments) != 3:
        return None
    return joined(
        "where(", _condition(arguments[0]), *(t for a in arguments[1:] for t in (", ", a)), ")"
    )


def _matrix(arguments: Sequence[str]) -> str | None:
    return _listed(arguments[0]) if len(arguments) == 1 and _items(arguments[0]) else None


def _bessel(kinds: dict[str, str]) -> Build:
    def build(arguments: Sequence[str]) -> str | None:
        known = kinds.get(arguments[0]) if len(arguments) == 2 else None
        return None if known is None else joined(f"special.{known}(", arguments[1], ")")

    return build


def _nested(function: str) -> Build:
    def build(arguments: Sequence[str]) -> str | None:
        flat = [x for a in arguments for x in (_items(a) or [a])]
        if len(flat) < 2:
            return None
        text = flat[-1]
        for part in reversed(flat[:-1]):
            text = joined(f"{function}(", part, ", ", text, ")")
        return text

    return build


def _form(template: str, *counts: int) -> Build:
    """A template's text: {0} is the first argument, {a}, {b} arguments as operands, {*} all of them."""

    def build(arguments: Sequence[str]) -> str | None:
        if len(arguments) not in (counts or (1,)):
            return None
        listed = [_listed(a) for a in arguments]
        parts: dict[str, Any] = {
            "0": listed[:1], "1": listed[1:2], "a": [_operand(listed[0])],
            "b": [_operand(t) for t in listed[1:2]], "*": _between(listed, ", "),
        }  # fmt: skip
        pieces = re.split(r"\{(.)\}", template)
        return joined(*(t for i, p in enumerate(pieces) for t in (parts[p] if i % 2 else [p])))

    return build


def _joined_by(sign: str) -> Build:
    return lambda arguments: joined(
        "(", *_between([_operand(_listed(a)) for a in arguments], sign), ")"
    )


def _log(arguments: Sequence[str]) -> str | None:
    """Mathematica's Log[b, x], whose base stands first."""
    if len(arguments) != 2:
        return _form("log({0})")(arguments)
    return joined("(log(", arguments[1], ")/log(", arguments[0], "))")


def _number(arguments: Sequence[str]) -> str | None:
    text = arguments[0].strip("'\"") if arguments else ""
    return text if re.fullmatch(r"-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?(?:/\d+)?", text) else None


_SUM, _PRODUCT = _over(r"\sum"), _over(r"\prod")
_INTEGRAL = _over(r"\int", lambda index: f" d{index}")
# Words that mean something else here unless their arguments are another system's.
_LOWER = {
    "sum": _SUM, "add": _SUM, "symsum": _SUM, "product": _PRODUCT, "mul": _PRODUCT,
    "diff": _derivative, "int": _INTEGRAL, "integrate": _INTEGRAL,
}  # fmt: skip
# SymPy's and others' calls, `Sum(…)`; and those that only Mathematica has, `Log[…]`.
_ROUND: dict[str, Build] = {
    **_LOWER,
    "Sum": _SUM, "Product": _PRODUCT, "Integral": _INTEGRAL,
    "Derivative": _derivative, "Diff": _derivative,
    "Piecewise": _piecewise, "piecewise": _piecewise,
    **dict.fromkeys(("If", "IF", "ITE", "ifelse", "iif", "IIf"), _choice),
    "merge": lambda a: _choice([a[2], *a[:2]]) if len(a) == 3 else None,  # Fortran's
    "Matrix": _matrix, "ImmutableMatrix": _matrix, "ImmutableDenseMatrix": _matrix,
    "Rational": _form("({a}/{b})", 2), "Integer": _number, "Float": _number, "S": _number,
    "Max": _nested("max"), "Min": _nested("min"),
    **dict.fromkeys(("Mod", "modulo"), _form("remainder({*})", 2)),
    **dict.fromkeys(
        ("Heaviside", "HeavisideTheta"), _form("where({0} > 0, 1, where({0} < 0, 0, 1/2))")
    ),
    **dict.fromkeys(("besselj", "BesselJ"), _bessel({"0": "bessel_j0", "1": "bessel_j1"})),
    **dict.fromkeys(("bessely", "BesselY"), _bessel({"0": "bessel_y0", "1": "bessel_y1"})),
    **dict.fromkeys(("besseli", "BesselI"), _bessel({"0": "i0", "1": "i1"})),
    **dict.fromkeys(
        ("besselk", "BesselK"), _bessel({"0": "modified_bessel_k0", "1": "modified_bessel_k1"})
    ),
    "Eq": _form("{a} == {b}", 2), "Ne": _form("{a} != {b}", 2), "Gt": _form("{a} > {b}", 2),
    "Ge": _form("{a} >= {b}", 2), "Lt": _form("{a} < {b}", 2), "Le": _form("{a} <= {b}", 2),
    "And": _joined_by(" and "), "Or": _joined_by(" or "), "Transpose": _form("{a}^T"),
    "Inverse": _form("inv({0})"), "Trace": _form("trace({0})"), "Determinant": _form("det({0})"),
}  # fmt: skip
_SQUARE: dict[str, Build] = {
    **_ROUND,
    "D": _derivative, "Integrate": _INTEGRAL, "Log": _log, "Sqrt": _form("sqrt({0})"),
    "ArcTan": lambda a: _form("atan({0})")(a) or _form("atan2({1}, {0})", 2)(a),
    **{f"Arc{name}": _form(f"arc{name.lower()}({{0}})") for name in
       ("Sin", "Cos", "Sinh", "Cosh", "Tanh", "Cot", "Sec", "Csc")},
    "Surd": _form("sign({0})*abs({0})^(1/{b})", 2), "CubeRoot": _form("cbrt({0})"),
    "Plus": _joined_by(" + "), "Subtract": _joined_by(" - "), "Minus": _form("-{a}"),
    "Times": _joined_by(" "), "Divide": _form("{a}/{b}", 2), "Power": _form("{a}^{b}", 2),
    "Dot": _joined_by(" @ "), "Tr": _form("trace({0})"), "Total": _form("sum({0})"),
    "UnitStep": _form("where({0} >= 0, 1, 0)"), "Boole": _form("where({0}, 1, 0)"),
    "LogGamma": _form("lgamma({0})"), "LogisticSigmoid": _form("sigmoid({0})"),
    "Ramp": _form("relu({0})"), "Binomial": _form("binom({*})", 2),
    "Ceiling": _form("ceil({0})"), "Sinc": _form("(sin({0})/{a})"), "Re": _form("real({0})"),
    "Im": _form("imag({0})"), "Arg": _form("angle({0})"), "Conjugate": _form("conj({0})"),
    **dict.fromkeys(
        "N Hold HoldForm Simplify FullSimplify Expand Factor Together".split(), _form("{a}")
    ),
}  # fmt: skip


def _is_function(name: str) -> bool:
    return name in foreign_names.FUNCTIONS or names.is_function(name)


__all__ = ["as_mathematics", "bracket_calls", "is_called_elsewhere"]
