"""What other languages write, and how it is written here: NumPy, mathematics, LaTeX, MATLAB, blackboards.

Imported only when an error is being worded. A text is read loosely, as a person would, and written anew;
what is right already stays as it is. It is shown, as a hint; what --math reads so is run, and said.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Container, Mapping
from types import MappingProxyType

from gradcli.language import names
from gradcli.language.tokens import KEYWORDS

LONGEST = 300  # characters of a text that is written anew

# What stands before the dot of a function's name elsewhere. Longest first where one begins another.
PREFIXES = (
    *("jax.numpy", "jax.nn", "jax.lax", "tf.math", "tf.nn", "scipy", "sympy", "numpy", "cmath"),
    *("math", "Math", "jnp", "jax", "np", "tf", "sp", "cp", "mx"),
)
PREFIXED = frozenset(prefix.partition(".")[0] for prefix in PREFIXES)
# Functions: {0} is the argument as it stands, {a} as an operand. What is no call is put in brackets.
FUNCTIONS = {
    "ln": "log({0})", "lg": "log10({0})", "ld": "log2({0})", "lb": "log2({0})",
    "tg": "tan({0})", "ctg": "1/tan({0})", "cot": "1/tan({0})", "cotan": "1/tan({0})",
    "sec": "1/cos({0})", "csc": "1/sin({0})", "cosec": "1/sin({0})",
    "arctg": "atan({0})", "arcctg": "pi/2 - atan({0})", "acot": "pi/2 - atan({0})",
    "asec": "acos(1/{a})", "arcsec": "acos(1/{a})", "acsc": "asin(1/{a})", "arccsc": "asin(1/{a})",
    "sh": "sinh({0})", "ch": "cosh({0})", "th": "tanh({0})", "coth": "1/tanh({0})",
    "cth": "1/tanh({0})", "sech": "1/cosh({0})", "csch": "1/sinh({0})",
    "arsinh": "asinh({0})", "arcosh": "acosh({0})", "artanh": "atanh({0})",
    "sqr": "{a}**2", "cbrt": "sign({0})*abs({0})**(1/3)", "fabs": "abs({0})",
    "factorial": "exp(lgamma({a}+1))", "fact": "exp(lgamma({a}+1))", "gamma": "exp(lgamma({0}))",
    "Gamma": "exp(lgamma({0}))", "lnGamma": "lgamma({0})", "gammaln": "lgamma({0})",
    "ceiling": "ceil({0})", "rint": "round({0})", "signum": "sign({0})",
    "logistic": "sigmoid({0})", "expit": "sigmoid({0})", "sigm": "sigmoid({0})", "swish": "silu({0})",
    "radians": "deg2rad({0})", "degrees": "rad2deg({0})", "conjugate": "conj({0})",
    "tr": "trace({0})", "Tr": "trace({0})", "array": "tensor({0})", "reduce_sum": "sum({*})",
    "reduce_mean": "mean({*})", "reduce_prod": "prod({*})", "average": "mean({*})",
    "avg": "mean({*})", "product": "prod({*})", "inv": "linalg.inv({0})",
    "power": "{a}**{b}", "mod": "remainder({*})", "nanmax": "amax({*})", "nanmin": "amin({*})",
    "trapezium": "trapezoid({*})", }  # fmt: skip
# Subjects that people look for, by the functions that have to do with them.
SUBJECTS = {
    "gauss": "randn normal erf nn.functional.gelu nn.functional.gaussian_nll_loss",
    "integral": "trapezoid cumulative_trapezoid cumsum", "derivative": "gradient diff",
    **dict.fromkeys(("cdf", "normal cdf", "norm.cdf", "phi"), "special.ndtr"),
    **dict.fromkeys(("ppf", "quantile function", "probit", "norm.ppf"), "special.ndtri"),
    "random": "rand randn randint randperm normal bernoulli",
    "interpolation": "lerp nn.functional.interpolate nn.functional.grid_sample",
}  # fmt: skip
CONSTANTS = {
    **dict.fromkeys(("π", "PI", "Pi"), "pi"),
    **dict.fromkeys(("∞", "infinity", "Infinity", "INFINITY", "INF", "Inf", "oo"), "inf"),
    **dict.fromkeys(("NaN", "NAN", "Nan"), "nan"),
}
OPERATORS = {
    "^": "**", ".^": "**", ".*": "*", "./": "/", "&&": "and", "||": "or",
    **dict.fromkeys("×·⋅∙•∗⨯", "*"), **dict.fromkeys("÷∕⁄", "/"), **dict.fromkeys("−–—", "-"),
    "≤": "<=", "≥": ">=", "≠": "!=", "∧": "&", "∨": "|", "¬": "~",
}  # fmt: skip
ROOTS = {"√": "sqrt({0})", "∛": "{a}**(1/3)", "∑": "sum({0})", "∏": "prod({0})"}
LATEX = {
    **dict.fromkeys(("cdot", "times", "ast"), "*"), "div": "/", "infty": "inf", "le": "<=", "leq": "<=",
    "ge": ">=", "geq": ">=", "ne": "!=", "neq": "!=", "sum": "∑", "prod": "∏", "lvert": "|",
    "rvert": "|", "vert": "|", "lVert": "‖", "rVert": "‖", "Vert": "‖", "|": "‖", "partial": "∂",
}  # fmt: skip
SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n", strict=True))
INVERSES = {"sin", "cos", "tan", "sinh", "cosh", "tanh"}  # sin^-1 is asin, not 1/sin

# Patterns as text: what is no error compiles none.
_TOKEN = (
    r"(?s)(?P<blank>[ \t\u00a0\u2009\u202f]*)(?P<text>"
    r"(?P<string>[A-Za-z]{0,2}(?:'[^'\n]*'|\"[^\"\n]*\"))"
    r"|(?P<number>0[xX][0-9a-fA-F_]+|0[bB][01_]+|(?:[0-9][0-9_]*(?:\.(?![*/^])[0-9_]*)?|\.[0-9][0-9_]*)"
    r"(?:[eE][+-]?[0-9]+)?(?:[jJ](?!\w))?)"
    r"|(?P<name>∞|(?:[^\W\d\u00b2\u00b3\u00b9\u2070-\u207f]|_)[^\W\u00b2\u00b3\u00b9\u2070-\u207f]*)"
    r"|(?P<power>[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ]+)"
    r"|\\[A-Za-z]+|\\.|\*\*=?|//=?|[-+*/%@&|<>=!]=|&&|\|\||->|\.\.\.|\.[*^/]|\n|.)"
)
_SEPARATORS = frozenset((",", ";", "\n", "=", ":", ":=", "+=", "-=", "*=", "/=", "->"))
_CLOSERS = {"(": ")", "[": "]", "{": "}"}
_ATOM = r"[\w.]+(?:\([^()]*(?:\([^()]*\)[^()]*)*\))?"
_DERIVATIVE = r"(?s)\s*[d∂]\s*/\s*[d∂]\s*([^\W\d]\w*)\s*(.+)"
_DERIVATIVE_OF = r"(?s)\s*[d∂]\s*(\(.+\)|\w+)\s*/\s*[d∂]\s*([^\W\d]\w*)\s*"
_DEFINITION = r"\s*[^\W\d]\w*\s*\(([\w\s,]+)\)\s*=(?!=)\s*([^;\n]+)"
_MATHEMATICA = r"(?s)\s*D\s*\[(.+),\s*([^\W\d]\w*)\s*\]\s*"
_CELLS = r"\s*=.*\b[A-Z]{1,3}\d+:[A-Z]{1,3}\d+.*"  # a formula of a spreadsheet
_CHOICE = r"([^?:;=\n]*[^?:;\n]*?)\?([^?:\n]+):([^?:;\n]+)"


class _Lost(Exception):
    """The text cannot be read, even loosely."""


def translate(
    source: str, bound: Mapping[str, bool] = MappingProxyType({}), *, elementwise: bool = False
) -> str | None:
    """The text as it is written here; None if it is that already, or if nobody can say.

    `bound` says of names that have a value whether it can be called: they mean what they are.
    `elementwise` says that the pairs that `max(x, 0)` gives, as PyTorch's does, are not what was meant.
    """
    if not source.strip() or len(source) > LONGEST:
        return None
    text = found[1] if (found := re.fullmatch(r"\s*\$+([^$]+)\$+\s*", source)) else source
    text = re.sub(
        r"\\(?:left|right|big|Big|displaystyle|mathrm|operatorname|,|;|!|:|quad)(?![a-z])", "", text
    )
    if found := re.fullmatch(_DEFINITION, text):
        parameters = found[1].replace(",", " ").split()
        if any(re.search(rf"\b{name}\b", found[2]) for name in parameters):
            text = found[2]
    if "?" in text and (found := re.fullmatch(_CHOICE, text)):
        text = f"{found[2].strip()} if {found[1].strip()} else {found[3].strip()}"
    try:
        written = _Reader(_rewritten(text), bound, elementwise).whole().strip()
    except (_Lost, RecursionError):
        return None
    return None if "".join(written.split()) == "".join(source.split()) else written


def _rewritten(text: str) -> str:
    """What is no matter of single tokens: percentages, `if(…, …, …)`, transposes, derivatives by primes."""
    text = re.sub(r"(\d+(?:\.\d+)?)\s*%\s*of\s+", r"\1/100*", text)
    if " else" not in text and text.count(",") > 1:
        text = re.sub(r"\b(?:if|IF)\s*\(", "where(", text)
    if not re.search(r"[^\W_]'|\)'", text) or re.search(r"(?:^|[^\w)'])'", text):
        return text  # no primes, or strings
    text = re.sub(r"\b([a-z])('+)\(", lambda m: _primed(m[1], len(m[2])), text)
    text = re.sub(_TRANSPOSED, _transposed, text)
    return re.sub(r"\)'\s*\*?\s*(?=[\w(])", ").T@", text).replace(")'", ").T")


def _primed(name: str, order: int) -> str:
    """`func.grad(func.grad(f))(` of `f''(`."""
    return "func.grad(" * order + name + ")" * order + "("


_TRANSPOSED = r"\b([A-Za-z]\w*)'(?:\s*\*?\s*([A-Za-z]{1,3}(?:\s*\*\s*[A-Za-z])*)(?![\w(]))?"


def _transposed(match: re.Match[str]) -> str:
    """`x@A@x` of `x'Ax`: a vector, which has a small letter, needs no transpose before a product."""
    name, rest = match[1], re.findall("[A-Za-z]", match[2] or "")
    own = name if rest and name[0].islower() else f"{name}.T"
    return "@".join([own, *rest])


def hint(
    source: str,
    parses: Callable[[str], bool],
    bound: Mapping[str, bool] = MappingProxyType({}),
    *,
    elementwise: bool = False,
) -> str | None:
    """`here it is written …`, where that is something else than the text and can be read."""
    if len(source) > LONGEST:
        return None
    if re.fullmatch(_CELLS, source):
        return 'cells are values of a variable: gradcli eval "sum(A)" --A 1,2,3, or --A @FILE.csv:COLUMN'
    if re.fullmatch(r"\s*[a-zA-Z]\([\w, ]*\)\s*", source) and parses(source):
        word = source.strip()[0]
        return f"write {word} = lambda …; EXPR, or --load FILE.py; gradcli diff takes unknown functions"
    for pattern, name, body in (
        *((_DERIVATIVE, 1, 2), (_DERIVATIVE_OF, 2, 1)),
        (_MATHEMATICA, 2, 1),
    ):
        if found := re.fullmatch(pattern, source):
            inner = found[body].strip()
            if pattern is _MATHEMATICA:
                inner = inner.replace("[", "(").replace("]", ")")
            inner = translate(inner) or inner
            if parses(inner):
                return (
                    f'a derivative is a command: gradcli diff "{bare(inner)}" --wrt {found[name]}'
                )
    written = translate(source, bound, elementwise=elementwise)
    if written is None or translate(written, bound, elementwise=elementwise) is not None:
        return None
    if not parses(written):
        return None
    pairs = zip(source.strip().splitlines(), written.splitlines(), strict=False)
    line = next(new for old, new in pairs if new != old) if "\n" in written else written
    return f"here it is written {line.strip().replace(chr(9), ' ')}"


def is_function(name: str) -> bool:
    """Whether a name is a function's, here or elsewhere."""
    from gradcli.registry import table

    if name in FUNCTIONS:
        return True
    return names.is_function(name) and name not in table.CONSTANTS


def known_as(name: str) -> str | None:
    """The known function that a dotted name means whose spelling is another's; itself if it is known."""
    for spelling in (name, name.rpartition(".")[2], name.lower(), f"nn.functional.{name}"):
        bare = spelling.removeprefix("torch.")
        if names.is_known(bare) and bare not in names.LETTERS:
            return spelling if spelling == name else bare
    return None


def bare(text: str) -> str:
    """A text without the brackets around the whole of it."""
    text = text.strip()
    if text[:1] != "(" or text[-1:] != ")":
        return text
    depth = 0
    for i, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if not depth and i < len(text) - 1:
            return text
    return text[1:-1].strip() if "," not in text else text


def _operand(text: str) -> str:
    """A text as an operand: in brackets unless it is a name, a number, a call or in brackets."""
    text = text.strip()
    return (
        text
        if re.fullmatch(_ATOM, text) or text[-1:] in "'\"" or bare(text) != text
        else f"({text})"
    )


def filled(template: str, arguments: list[str]) -> str:
    plain = [bare(a) for a in arguments] or [""]
    first, second = plain[0], plain[min(1, len(plain) - 1)]
    out = template.replace("{*}", ", ".join(plain)).replace("{0}", first)
    return out.replace("{a}", _operand(first)).replace("{b}", _operand(second))


def _compound(text: str) -> bool:
    return _operand(text) != text


class _Reader:
    """One text, read from front to back."""

    def __init__(self, text: str, bound: Mapping[str, bool], elementwise: bool) -> None:
        self.tokens = [
            (
                m["blank"],
                m["text"],
                next((k for k in ("string", "number", "name", "power") if m[k]), "sign"),
            )
            for m in re.finditer(_TOKEN, text)
            if m["text"]
        ]
        assigned = re.findall(
            r"([^\W\d]\w*)\s*(?::?=(?!=))|\bdef\s+(\w+)|\blambda\s+([\w, ]+):", text
        )
        words = " ".join(" ".join(found) for found in assigned)
        self.own = set(re.findall(r"\w+", words)) | set(bound)
        self.bound, self.elementwise = bound, elementwise
        self.at = 0

    # -- tokens -----------------------------------------------------------------------------------
    def peek(self, ahead: int = 0) -> str:
        """The text of a token that is not read yet; nothing behind the last."""
        i = self.at + ahead
        return self.tokens[i][1] if i < len(self.tokens) else ""

    def kind(self) -> str:
        """What the next token is: string, number, name, power, sign; nothing behind the last."""
        return self.tokens[self.at][2] if self.at < len(self.tokens) else ""

    def blank(self) -> str:
        """The blank before the next token."""
        found = self.tokens[self.at][0] if self.at < len(self.tokens) else ""
        return re.sub(r"[^ \t]", " ", found)

    def take(self) -> str:
        """Read a token."""
        text = self.peek()
        self.at += 1
        return text

    def starts_operand(self) -> bool:
        """Whether the next token can begin a value."""
        text, kind = self.peek(), self.kind()
        if kind == "name":
            return text not in KEYWORDS or text in ("True", "False", "None")
        if kind in ("string", "number") or text in ("(", "[", "{", "...") or text in ROOTS:
            return True
        return text[:1] == "\\" and text[1:] not in LATEX and text[1:].isalpha()

    # -- sequences --------------------------------------------------------------------------------
    def whole(self) -> str:
        """All of the text."""
        parts = self.sequence("")
        if self.at < len(self.tokens):
            raise _Lost
        return "".join(separator + text for separator, text in parts)

    def sequence(self, closer: str) -> list[tuple[str, str]]:
        """(separator before it, text) of each part up to the closer, which is read."""
        parts: list[tuple[str, str]] = []
        section: list[tuple[str, str, bool]] = []  # blank, text, whether it is a whole operand
        separator = ""

        def flush(next_separator: str) -> None:
            nonlocal separator, section
            alone = sum(bool(text) for _, text, _ in section) == 1
            text = "".join(
                blank + (f"({text})" if whole and not alone and _compound(text) else text)
                for blank, text, whole in section
            )
            parts.append((separator, text))
            separator, section = next_separator, []

        while True:
            blank, text = self.blank(), self.peek()
            after_value = bool(section) and section[-1][2]
            if text[:1] == "\\" and text[1:] in LATEX:
                text = LATEX[text[1:]]
                self.tokens[self.at] = (blank, text, "sign" if text != "inf" else "name")
            if text == closer and (closer not in ("|", "||", "‖") or after_value):
                self.take()
                flush("")
                return parts
            if not text:
                raise _Lost
            if closer == "|" and text == "||" and after_value:
                self.tokens[self.at] = ("", "|", "sign")
                flush("")
                return parts
            if self.starts_operand() or (text in ("|", "||", "‖") and not after_value):
                if after_value and closer == "]" and blank:
                    flush(",")
                elif after_value:
                    self.check_product(section, blank)
                    section.append(("", "*", False))
                    blank = ""
                if (signed := self.power_of_e()) is None:
                    signed = self.operand()
                section.append((blank, signed, True))
                continue
            self.take()
            if text in _SEPARATORS:
                flush(blank + text)
            elif text == "for" and closer:
                raise _Lost  # a comprehension is Python's
            elif text in KEYWORDS:
                section.append(("", "", False))
                flush(f"{blank}{text}")
            elif text in _CLOSERS.values() or self.tokens[self.at - 1][2] == "power":
                raise _Lost
            else:
                written = OPERATORS.get(text, text)
                spaced = written.isalpha() and not blank
                section.append((" " if spaced else blank, written, False))
                if spaced:
                    section.append((" ", "", False))

    def check_product(self, section: list[tuple[str, str, bool]], blank: str) -> None:
        """Refuse neighbours that are no product: `2 3`, `x y`, `x.3`, `0x`, `print "a"`."""
        before, after = section[-1][1], self.peek()
        implied = len(section) > 1 and section[-2][1:] == ("*", False)
        names_both = before.isidentifier() and self.kind() == "name" and not is_function(after)
        if self.kind() == "string" or before[-1:] in "'\"" or (names_both and not implied):
            raise _Lost
        if self.kind() == "number" and (after[0] == "." or before[-1:].isdigit()):
            raise _Lost
        if before[:1] == "0" and before != "0." and not blank:
            raise _Lost

    def group(self) -> str:
        """What is in the brackets that the next token opens, without them."""
        closer = _CLOSERS[self.take()]
        return "".join(separator + text for separator, text in self.sequence(closer)).strip()

    def arguments(self) -> list[str]:
        """The arguments of a call, from its opening bracket to its closing one."""
        self.take()
        found: list[str] = []
        for separator, text in self.sequence(")"):
            if found and separator.strip() != ",":
                found[-1] += separator + text
            else:
                found.append(text.strip())
        return [] if found == [""] else found

    # -- operands ---------------------------------------------------------------------------------
    def operand(self) -> str:
        """One value with what follows it closely: calls, subscripts, attributes, raised digits, `!`."""
        text, callable_ = self.primary()
        while True:
            following, blank = self.peek(), self.blank()
            if self.kind() == "power":
                text = f"{_operand(text)}**{_raised(self.take())}"
            elif following == "(" and callable_ and not blank:
                text = f"{text}({', '.join(self.arguments())})"
                continue
            elif following == "[" and not blank:
                text = f"{_operand(text)}[{self.group()}]"
                continue
            elif following == "!" and not blank:
                self.take()
                text = f"exp(lgamma({_operand(text)}+1))"
            elif following == "." and self.tokens[self.at + 1 : self.at + 2]:
                self.take()
                text = self.attribute(text)
                continue
            else:
                return text
            callable_ = False

    def attribute(self, text: str) -> str:
        """`x.name` or `x.name(…)`; a function of that name that is no method is called on x."""
        name = self.take()
        if self.peek() != "(":
            return f"{_operand(text)}.{name}"
        arguments = self.arguments()
        from gradcli.registry import table

        known = name in names.TENSOR_ATTRIBUTES or name in table.methods()
        if not known and is_function(name):
            return self.call(name, [bare(text), *arguments])
        return f"{_operand(text)}.{name}({', '.join(arguments)})"

    def primary(self) -> tuple[str, bool]:
        """(text, whether a bracket behind it calls it)."""
        text, kind = self.peek(), self.kind()
        if kind == "name":
            return self.named()
        if kind in ("number", "string") or text == "...":
            return self.take(), False
        if text == "(":
            start = self.at
            inner = self.group()
            return f"({inner})", any(
                t[1] in ("lambda", "def") for t in self.tokens[start : self.at]
            )
        if text == "[":
            return self.square(), False
        if text == "{":
            inner = self.group()
            if not inner or {",", ":"} & set(inner):
                raise _Lost
            return _operand(inner), False
        if text in ("|", "||", "‖"):
            self.take()
            inner = "".join(s + t for s, t in self.sequence(text)).strip()
            return f"{'abs' if text == '|' else 'linalg.norm'}({bare(inner)})", False
        if text in ROOTS:
            self.take()
            return filled(ROOTS[text], [self.product()]), False
        return self.latex()

    def square(self) -> str:
        """A list; with `;` in it a matrix."""
        self.take()
        rows: list[list[str]] = [[]]
        for separator, text in self.sequence("]"):
            if ";" in separator or (separator == "\n" and rows != [[]]):
                rows.append([])
            elif rows[-1] and separator.strip() != ",":
                rows[-1][-1] += separator + text
                continue
            rows[-1].append(text)
        if len(rows) == 1:
            return f"[{','.join(rows[0]).strip()}]"
        numbers = [[cell.strip() for cell in row] for row in rows]
        if not all(
            re.fullmatch(r"-?[\d.]+(?:e[+-]?\d+)?", cell) for row in numbers for cell in row
        ):
            raise _Lost
        lines = [", ".join(c if {".", "e"} & set(c) else f"{c}." for c in row) for row in numbers]
        return f"tensor([{', '.join(f'[{line}]' for line in lines)}])"

    def latex(self) -> tuple[str, bool]:
        r"""`\frac{a}{b}`, `\sqrt{x}`, `\sin(x)`, `\alpha`."""
        name = self.take()[1:]
        if name in ("frac", "dfrac", "tfrac"):
            above, below = self.braced(), self.braced()
            return f"{_operand(above)}/{_operand(below)}", False
        if name == "sqrt":
            if self.peek() == "[":
                degree = self.group()
                return f"{_operand(self.braced())}**(1/{_operand(degree)})", False
            return f"sqrt({bare(self.braced())})", False
        if not is_function(name) and not _is_greek(name):
            raise _Lost
        self.at -= 1
        self.tokens[self.at] = (self.tokens[self.at][0], name, "name")
        return self.named()

    def braced(self) -> str:
        """What is in `{…}`, or the one value that stands there."""
        return self.group() if self.peek() == "{" else self.operand()

    def named(self) -> tuple[str, bool]:
        """A name with its dots; a function with its argument, however that is written."""
        name = self.take()
        plain = unicodedata.normalize("NFKC", name)
        if name not in self.own and plain.isidentifier() and name not in CONSTANTS:
            name = plain
        if self.peek() == "_" and self.peek(1) == "{":  # x_{1}
            self.take()
            name += self.group()
        elif name.endswith("_") and self.peek() == "{":
            name = name.rstrip("_") + self.group()
        root = name
        while self.peek() == "." and self.at + 1 < len(self.tokens) and not self.blank():
            if self.tokens[self.at + 1][2] != "name":
                break
            following = self.peek(1)
            dotted = f"{name}.{following}"
            if not (names.is_namespace(name) or name in PREFIXES or _in_namespace(dotted)):
                break
            self.at += 2
            name = dotted
        if root not in self.own or root in names.MODULES:
            for prefix in PREFIXES:
                if name.startswith(f"{prefix}."):
                    name = name[len(prefix) + 1 :]
                    break
            if name == "e" and "." in f"{root}." and root != "e":
                return "torch.e", False
        if name in self.own:
            return name, self.bound.get(name, True)
        if name in CONSTANTS and self.peek() != "(":
            return CONSTANTS[name], False
        return self.function(name)

    def function(self, name: str) -> tuple[str, bool]:
        """A name that may be a function's, and its argument."""
        name, base = _logarithm(name)
        short = re.sub(r"^F\.", "nn.functional.", name.removeprefix("torch."))
        if name != short and names.functional(short) is not None:
            name = short
        if not is_function(name) and not names.is_known(short):
            found = known_as(name) if self.peek() == "(" or "." in name else None
            name = found or name
            if short in FUNCTIONS or short.rpartition(".")[2] in FUNCTIONS:
                name = short.rpartition(".")[2]
        if self.peek() == "(" and not self.blank():
            return self.call(name, [*self.arguments(), *base]), not is_function(name)
        if not is_function(name) or name in names.LETTERS:
            return name, True
        start = self.at
        power = self.exponent()
        if not self.starts_operand() or (
            power is None and self.peek() in ("[", "{") and not self.blank()
        ):
            self.at = start
            return name, True
        called = self.peek() == "(" and not (power is None and self.blank())
        arguments = self.arguments() if called else [self.product()]
        if power in ("-1", "(-1)") and name in INVERSES:
            return self.call(f"a{name}", arguments), False
        text = self.call(name, [*arguments, *base])
        return (text if power is None else f"{_operand(text)}**{power}"), False

    def exponent(self) -> str | None:
        """The power between a function's name and its argument, as in `sin²(x)`."""
        if self.kind() == "power":
            return _raised(self.take())
        if self.peek() not in ("^", "**"):
            return None
        self.take()
        if self.peek() == "-" and self.peek(1).isdigit():
            self.take()
            return f"(-{self.take()})"
        if self.kind() == "number":
            return self.take()
        if self.peek() in ("{", "("):
            return _operand(self.group())
        raise _Lost

    def product(self) -> str:
        """The argument of a function without brackets: `sin 2x` is of all that stands close together."""
        factors = [self.powered()]
        while self.starts_operand() and not is_function(self.peek()):
            if self.peek() in ("(", "["):
                break
            factors.append(self.powered())
        return "*".join(factors)

    def powered(self) -> str:
        """A value and its power."""
        text = self.power_of_e() or self.operand()
        if self.peek() in ("^", "**"):
            self.take()
            sign = self.take() if self.peek() in ("-", "+") else ""
            text = f"{_operand(text)}**{sign}{self.powered()}"
        return text

    def power_of_e(self) -> str | None:
        """`e**x` as `exp(x)`, where e has no value of its own; None where there is none."""
        if self.peek() != "e" or "e" in self.own:
            return None
        if self.at + 1 < len(self.tokens) and self.tokens[self.at + 1][2] == "power":
            self.take()
            return f"exp({bare(_raised(self.take()))})"
        if self.peek(1) not in ("^", "**"):
            return None
        self.at += 2
        sign = self.take() if self.peek() in ("-", "+") else ""
        return f"exp({sign}{bare(self.powered()) if not sign else self.powered()})"

    def call(self, name: str, arguments: list[str]) -> str:
        """A call as it is written here."""
        return called(name, arguments, self.own, elementwise=self.elementwise)


def called(
    name: str, arguments: list[str], own: Container[str] = (), *, elementwise: bool = False
) -> str:
    """The call of a function, here or elsewhere, as it is written here. own: names that mean other things."""
    short = name.removeprefix("torch.")
    plain = [a for a in arguments if not re.match(r"\w+\s*=(?!=)", a)]
    if short == "log" and len(arguments) == 2 == len(plain):
        if arguments[1] in ("2", "10"):
            return f"log{arguments[1]}({arguments[0]})"
        return f"log({bare(arguments[0])})/log({bare(arguments[1])})"
    if short in _OF_MANY and len(plain) == len(arguments) and _is_list(arguments):
        return called(short, [_gathered(arguments)], own, elementwise=elementwise)
    if elementwise and short in ("max", "min") and len(plain) == len(arguments) == 2:
        for number, other in (arguments[::-1], arguments):
            if _number(number):
                return f"clamp({other}, {'min' if short == 'max' else 'max'}={number})"
        return f"{short}imum({', '.join(arguments)})"
    if short in FUNCTIONS and short not in own and not names.is_known(short) and arguments:
        return filled(FUNCTIONS[short], arguments)
    return f"{name}({', '.join(arguments)})"


_OF_MANY = frozenset("max min mean sum prod median std var norm average avg".split())


def _is_list(arguments: list[str]) -> bool:
    """Whether the arguments are the values themselves: `mean(1, 2, 3)`."""
    if len(arguments) < 2 or arguments[-1] in ("True", "False"):
        return False
    return all(map(_number, arguments)) or (
        len(arguments) > 2 and not any(a[:1] in "[('\"" or _number(a) for a in arguments[1:])
    )


def _in_namespace(dotted: str) -> bool:
    """Whether a dotted name begins as names of other libraries or of torch's namespaces do."""
    roots = (*PREFIXES, *names.SHORT, *names.NAMESPACES)
    return dotted in PREFIXES or any(dotted.startswith(f"{root}.") for root in roots)


def _is_greek(name: str) -> bool:
    try:
        return bool(unicodedata.lookup(f"GREEK SMALL LETTER {name.removeprefix('var')}"))
    except KeyError:
        return False


def _number(text: str) -> bool:
    return re.fullmatch(r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", text) is not None


def _gathered(arguments: list[str]) -> str:
    """Several values as one: a tensor of numbers, or a stack of tensors."""
    if all(map(_number, arguments)):
        return f"tensor([{', '.join(a if {'.', 'e'} & set(a) else f'{a}.' for a in arguments)}])"
    return f"stack([{', '.join(arguments)}])"


def _raised(text: str) -> str:
    """Raised digits as an exponent."""
    plain = "".join(SUPERSCRIPTS[character] for character in text)
    return plain if plain.isalnum() else f"({plain})"


def _logarithm(name: str) -> tuple[str, list[str]]:
    """`log_2` and `log₂` by their name here, with the base if that has none."""
    found = re.fullmatch(r"log_?(\d+)", unicodedata.normalize("NFKC", name))
    if found is None or names.is_known(name):
        return name, []
    return (f"log{found[1]}", []) if found[1] in ("2", "10") else ("log", [found[1]])
