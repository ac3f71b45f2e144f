r"""Mathematics as people write it, in the language: `2x^2`, `sin 2x cos x`, `x'Ax`, `|x|`, `\frac{x}{2}`.

`--math` runs what is read so, hints show it; hints read NumPy's and other libraries' names, too. One descent
over the text. Where two readings are possible the one that is taken is said (`remarks`), or the text is
refused. A product in which something is transposed is one of matrices: a small Latin letter that is
transposed, or that follows a matrix, is a vector; a capital letter is a matrix; what else there is, a number.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from math import factorial
from typing import NamedTuple

from gradcli.language import names
from gradcli.language.foreign_names import (
    CONSTANTS,
    FUNCTIONS,
    PREFIXES,
    SUPERSCRIPTS,
    bare,
    called,
    is_function,
    known_as,
)
from gradcli.language.located_errors import LanguageError
from gradcli.language.notation import (
    BARE,
    Token,
    fraction,
    is_derivative,
    is_greek,
    is_matrix,
    of_matrices,
    tokens,
)
from gradcli.language.tokens import KEYWORDS

_INVERSES = frozenset("sin cos tan sinh cosh tanh".split())  # sin^-1 is asin, not 1/sin
_OWN_NAMES = {"sgn": "sign"}
# What is a number, whatever it is of; and letters that, called, are functions that nobody has to define.
_NUMBERS = frozenset("tr Tr trace det sum mean dot norm prod linalg.norm".split())
_UNKNOWN = frozenset((*"fghFGHφψσ", "phi", "psi", "sigma"))
_BESIDE = frozenset(("+", "-", "*", "/", "**"))
_SYMBOLS = frozenset(("hbar", "ell"))  # which LaTeX has beside the Greek letters
_RELATIONS = frozenset(("=", "==", "<", ">", "<=", ">=", "!="))
_NOT_READ = {
    "int": "gradcli has no integrals of formulas; trapezoid(y, x) adds up numbers",
    "partial": "gradcli diff EXPR --wrt x differentiates",
    "nabla": "gradcli diff EXPR differentiates; --grad, --div, --curl and --laplacian are of fields",
    "lim": "gradcli taylor EXPR --x 0 shows how a function goes on near a point",
    "begin": "write cases as A if CONDITION else B, a matrix as [[1, 2], [3, 4]]",
}
_DEFINITION = r"\s*([^\W\d]\w*(?:_\\\w+|_\{\w+\})?)\s*\(([\w\s,]+)\)\s*=(?!=)\s*([^;\n]+)"

_SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(5)


class _Value(NamedTuple):
    """A text of the language. level: how strongly its last operation binds. shape: "", or in a product of
    matrices "matrix", "column", "row"."""

    text: str
    level: int = _ATOM
    shape: str = ""

    def at(self, level: int) -> str:
        """The text as an operand of an operation of this level."""
        return self.text if self.level >= level else f"({self.text})"


def _text(text: str) -> _Value:
    """A text that binds weaker than a sum."""
    return _Value(text, _SUM)


class Mathematics(NamedTuple):
    """How a text was read. written: in the language. remarks: what could have been meant otherwise."""

    written: str
    remarks: tuple[str, ...]

    def __str__(self) -> str:
        return "; ".join((self.written, *self.remarks))


def read_mathematics(
    source: str,
    parses: Callable[[str], bool],
    bound: Mapping[str, bool],
    equation: bool = False,
) -> Mathematics | None:
    """A text of mathematics in the language; None if it stands there as the language has it.

    bound: the names that have a value, and whether it can be called. equation: whether `=` is none of an
    assignment. Raises LanguageError with the place of what cannot be read.
    """
    try:
        text, remarks = _read(source, bound, equation=equation)
    except LanguageError as error:
        if error.kind == "syntax" and parses(source):  # a program, as a line of a session may be
            return None
        raise
    except RecursionError:
        raise LanguageError("this nests too deeply for --math", source=source) from None
    if not parses(text):  # the language says best what is wrong
        return None
    if "".join(text.split()) == "".join(source.split()) and not remarks:
        return None
    return Mathematics(text, tuple(dict.fromkeys(remarks)))


def written(source: str, bound: Mapping[str, bool], elementwise: bool) -> str:
    """A line in the language, for a hint: only names that are known, or bound, are taken for factors.

    elementwise: whether `max(x, 0)` is the larger one, and no pair as PyTorch's. Raises LanguageError.
    """
    return _read(source, bound, loose=False, elementwise=elementwise)[0]


def _read(source: str, bound: Mapping[str, bool], **options: bool) -> tuple[str, list[str]]:
    """(the text in the language, remarks), with `||` as the ends of a norm, as two bars, or as "or"."""
    errors = []
    for double in ("‖", "|", "or") if "||" in source else ("‖",):
        reader = _Reader(source, bound, double, **options)
        try:
            return reader.program(), reader.remarks
        except LanguageError as error:
            errors.append(error)
    raise errors[0]


class _Reader:
    """One text, read from front to back.

    loose: as for --math, where any names may be factors. own: names that the text assigns, or that have a
    value. vectors: the names that are vectors in products of matrices, None where there are none.
    """

    def __init__(
        self,
        source: str,
        bound: Mapping[str, bool],
        double: str = "‖",
        *,
        equation: bool = False,
        loose: bool = True,
        elementwise: bool = True,
    ) -> None:
        self.source, self.bound, self.equation = source, bound, equation
        self.loose, self.elementwise = loose, elementwise
        self.own = set(bound) | set(
            re.findall(r"(?:^|[;\n])\s*(\w+)\s*=(?!=)", source) * (not equation)
        )
        self.tokens, self.vectors = of_matrices(tokens(source, self.own, double), self.own)
        self.remarks: list[str] = []
        self._implied: set[str] = set()  # names that are factors without a sign, as y of 2y z
        self.indices: list[str] = []  # of the sums around
        self.bars = ""  # the bars that are open: `|` or `‖` each
        self.at = 0

    # -- tokens --------------------------------------------------------------------------------------
    @property
    def next(self) -> Token:
        return self.peek(0)

    def peek(self, ahead: int) -> Token:
        """A token that is not read yet; an empty one behind the last."""
        i, end = self.at + ahead, len(self.source)
        return self.tokens[i] if i < len(self.tokens) else Token("end", "", False, end, end)

    def take(self) -> Token:
        token = self.next
        self.at += 1
        return token

    def accept(self, *texts: str) -> bool:
        """Read the next token if it is one of these signs."""
        if self.next.kind != "name" and self.next.text in texts and self.next.kind != "end":
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise self.error(f"`{text}` is missing here")

    def error(
        self,
        message: str,
        token: Token | None = None,
        hint: str | None = None,
        kind: str = "syntax",
    ) -> LanguageError:
        """What is wrong with a token; with the next one, if none is given."""
        token = token or self.next
        span = (token.start, max(token.end, token.start + 1))
        return LanguageError(message, kind=kind, source=self.source, span=span, hint=hint)

    def asks(self, message: str, token: Token, hint: str) -> LanguageError:
        """The error of a text with two readings, though the language has one."""
        return self.error(message, token, hint, "name")

    # -- statements ----------------------------------------------------------------------------------
    def program(self) -> str:
        """All of the text: statements between `;` and ends of lines."""
        parts = []
        while self.next.kind != "end":
            if self.accept(";", "\n"):
                parts.append(self.tokens[self.at - 1].text)
                continue
            parts.append(self.statement())
            if self.next.kind != "end" and self.next.text not in (";", "\n"):
                raise self.stray()
        return "".join(f"{p} " if p == ";" else p for p in parts).strip()

    def stray(self) -> LanguageError:
        token = self.next
        return self.error(f"mathematics does not go on with `{token.text}` here")

    def statement(self) -> str:
        """A definition, an assignment, an equation, or a value."""
        end = next(
            (t.start for t in self.tokens[self.at :] if t.text in (";", "\n")), len(self.source)
        )
        found = re.compile(_DEFINITION).fullmatch(self.source, self.next.start, end)
        if found and set(re.split(r"[\s,]+", found[2].strip())) & set(
            re.findall(r"\w+|.", found[3])
        ):
            while self.take().text != "=":
                pass
            body = self.values().text
            if end == len(self.source):
                return body  # what is asked for is the function's value
            self.own.add(found[1])
            return f"{found[1]} = lambda {found[2].strip()}: {body}"
        if self.next.kind == "name" and self.peek(1).text == "=" and not self.equation:
            name = self.take().text
            self.take()
            return f"{name} = {self.values().text}"
        if self.next.text == "return":
            return f"{self.take().text} {self.values().text}"
        return self.values().text

    def values(self) -> _Value:
        """One value, or several between commas."""
        found = [self.choice()]
        while self.next.text == "," and self.next.kind == "sign":
            comma = self.take()
            before, after = self.tokens[self.at - 2], self.next
            if before.kind == after.kind == "number" and not after.blank and before.text.isdigit():
                hint = f"write {before.text}.{after.text}, or with a blank for two values"
                raise self.asks("a comma between digits is no decimal point", comma, hint)
            found.append(self.choice())
        return found[0] if len(found) == 1 else _text(", ".join(v.text for v in found))

    def choice(self) -> _Value:
        """`a if c else b`, `c ? a : b`, a function, or what has no choice in it."""
        if self.next.kind == "name" and self.next.text == "lambda":
            start = self.take().start
            while self.next.kind == "name" or self.next.text == ",":
                self.take()
            head = self.source[start : self.next.start]
            self.expect(":")
            return _text(f"{head}: {self.choice().text}")
        value = self.logical()
        if self.accept("?"):
            first = self.choice()
            self.expect(":")
            return _text(f"{first.text} if {value.text} else {self.choice().text}")
        if self.next.text != "if":
            return value
        self.take()
        condition = self.logical()
        if self.take().text != "else":
            raise self.error("`else` is missing here")
        return _text(f"{value.text} if {condition.text} else {self.choice().text}")

    def logical(self) -> _Value:
        parts = []
        while True:
            if self.next.text == "not":
                parts.append(self.take().text)
            value = self.relation()
            parts.append(value.text)
            if self.next.text not in ("and", "or"):
                return value if len(parts) == 1 else _text(" ".join(parts))
            parts.append(self.take().text)

    def relation(self) -> _Value:
        value = self.sum()
        while self.next.text in _RELATIONS:
            if self.next.text == "=" and not self.loose:
                raise self.stray()
            sign = self.take().text
            value = _text(f"{value.text} {'==' if sign == '=' else sign} {self.sum().text}")
        return value

    # -- values --------------------------------------------------------------------------------------
    def sum(self) -> _Value:
        """Terms with signs between them."""
        sign = self.sign()
        first = self.product()
        if sign:
            first = _Value(
                f"-{first.at(_PRODUCT)}", _SIGN if first.level > _PRODUCT else _PRODUCT, first.shape
            )
        text, shape, several = first.text, first.shape, False
        while self.next.text in ("+", "-"):
            operation = self.take().text
            term = self.product()
            text += f" {operation} {term.at(_PRODUCT)}"
            shape, several = shape or term.shape, True
        if self.next.text in ("±", "\\pm"):
            raise self.error("± makes two values of one", hint="write each of them")
        return _Value(text, _SUM, shape) if several else first

    def sign(self) -> bool:
        """Read the signs before a value. Whether they come to a minus."""
        minus = False
        while self.next.text in ("+", "-"):
            minus ^= self.take().text == "-"
        return minus

    def product(self) -> _Value:
        """Factors, with or without a sign between them."""
        value, quotient = self.signed(), False
        while True:
            if self.next.text == "%" and value.text.replace(".", "").isdigit():
                value = self.percent(value)
            elif self.next.text in ("*", "/", "@", "%", "//") and self.next.kind != "name":
                operation = self.take().text
                value = self.multiplied(value, operation, self.signed())
                quotient = operation == "/"
            elif self.begins_operand():
                self.check_product(self.tokens[self.at - 1], self.next)
                if quotient:
                    self.remarks.append("a/b c is read as (a/b)*c; write a/(b*c) for the other")
                value = self.multiplied(value, "*", self.power())
            else:
                return value

    def check_product(self, before: Token, after: Token) -> None:
        """Refuse neighbours that are no product: `2 3`, `2½`, `0x`; but for --math, `print x`."""
        numbers = before.kind == "number" and (after.kind == "number" or fraction(after.text))
        zero = before.kind == "number" and before.text[0] == "0" and "." not in before.text
        words = before.kind == after.kind == "name" and not is_function(after.text)
        dotted = after.kind == "number" and after.text[0] == "."
        if numbers or dotted or (zero and not after.blank) or "string" in (before.kind, after.kind):
            raise self.error(f"an operator is missing between {before.text} and {after.text}")
        if words and not self.loose and before.text not in self._implied:
            raise self.error(f"an operator is missing between {before.text} and {after.text}")
        self._implied.add(after.text)

    def percent(self, value: _Value) -> _Value:
        """`5% of x`, `5%`; `7 % 2` is a remainder."""
        self.take()
        if self.next.text == "of":
            self.take()
        elif self.begins_operand():
            return _Value(f"{value.text} % {self.power().at(_POWER)}", _PRODUCT)
        else:
            return _Value(f"{value.text}/100", _PRODUCT)
        return _Value(f"{value.text}/100*{self.signed().at(_SIGN)}", _PRODUCT)

    def signed(self) -> _Value:
        if not self.sign():
            return self.power()
        value = self.power()
        return _Value(f"-{value.at(_POWER)}", _SIGN, value.shape)

    def multiplied(self, left: _Value, operation: str, right: _Value) -> _Value:
        """A product by the shapes of its factors."""
        pair = (left.shape, right.shape)
        if operation not in ("*", "@") or not all(pair):
            if operation == "/" and right.shape:
                raise self.error(
                    "a vector or a matrix cannot be a denominator", hint="as in A^{-1}b"
                )
            text = (
                f"{left.at(_PRODUCT)}{operation}{right.at(_SIGN if operation == '*' else _POWER)}"
            )
            return _Value(text, _PRODUCT, left.shape or right.shape)
        shape = _PRODUCTS.get(pair)
        if shape is None:
            raise self.error(f"a {pair[0]} times a {pair[1]} is not a product", self.tokens[self.at - 1],
                             "transpose one of them: x^T y, or x y^T")  # fmt: skip
        if pair == ("column", "row"):
            return _Value(f"outer({left.text}, {right.text})", _ATOM, shape)
        return _Value(
            f"{left.at(_PRODUCT)}@{right.at(_POWER)}", _PRODUCT, "" if shape == "number" else shape
        )

    def begins_operand(self) -> bool:
        """Whether the next token can begin a value."""
        token = self.next
        if token.kind == "name":
            return token.text not in KEYWORDS and token.text != "of"
        if token.kind == "sign":
            if token.text in ("|", "‖"):
                return self.bars[-1:] != token.text
            return token.text in ("(", "[", "{") or fraction(token.text) is not None
        return token.kind in ("number", "command", "string")

    def power(self) -> _Value:
        """A value with its exponents."""
        if self.next.text == "e" and "e" not in self.own:
            return self.euler()
        base = self.postfix()
        if self.next.kind == "power":
            return self.raised(base, self.superscript())
        if not self.accept("**"):
            return base
        return self.raised(base, self.exponent())

    def euler(self) -> _Value:
        """e, Euler's number, and its powers."""
        self.take()
        if self.next.kind == "power":
            return _Value(f"exp({self.superscript().text})")
        if self.accept("**"):
            return _Value(f"exp({bare(self.exponent().text)})")
        return _Value("torch.e" if self.loose else "e")

    def superscript(self) -> _Value:
        """`²`, `⁻¹`."""
        text = self.take().text
        plain = "".join(SUPERSCRIPTS[c] for c in text)
        return _Value(plain, _ATOM if plain.isalnum() else _SUM)

    def exponent(self) -> _Value:
        """What stands behind `^`."""
        if self.next.text == "{":
            return self.group()
        return self.signed()

    def raised(self, base: _Value, exponent: _Value) -> _Value:
        """A power, or the inverse of a matrix."""
        if base.shape == "matrix":
            if exponent.text == "-1":
                return _Value(f"linalg.inv({bare(base.text)})", _ATOM, "matrix")
            power = f"linalg.matrix_power({bare(base.text)}, {exponent.text})"
            return _Value(power, _ATOM, "matrix")
        if exponent.text == "-1" and is_matrix(base.text):
            self.remarks.append(
                f"{base.text} is a number; the inverse of a matrix is linalg.inv({base.text})"
            )
        return _Value(f"{base.at(_ATOM)}**{exponent.at(_SIGN)}", _POWER, base.shape)

    def transposed(self, base: _Value) -> _Value:
        if base.shape == "matrix":
            return _Value(f"{base.at(_ATOM)}.T", _ATOM, "matrix")
        return base._replace(shape="column" if base.shape == "row" else "row")

    def postfix(self) -> _Value:
        """A value with what follows it closely: `!`, `°`, primes, an index."""
        value = self.primary()
        while True:
            if self.next.text == "!" and not self.next.blank:
                self.take()
                exact = re.fullmatch(r"1?\d|20", value.text)  # an int64
                found = str(factorial(int(value.text))) if exact else ""
                value = _Value(found or f"exp(lgamma({bare(value.text)} + 1))")
            elif self.next.text == "°":
                self.take()
                value = _Value(f"deg2rad({bare(value.text)})")
            elif self.next.kind == "transpose":
                self.check_transpose(value)
                self.take()
                value = self.transposed(value)
            elif self.next.text == "." and self.peek(1).kind == "name" and not self.next.blank:
                self.take()
                value = _Value(self.attribute(value.at(_ATOM), self.take().text))
            elif (
                self.next.text == "["
                and not self.next.blank
                and self.tokens[self.at - 1].kind != "number"
            ):
                start = self.next.start
                value = _Value(f"{value.at(_ATOM)}{self.source[start : self.closing()]}")
            else:
                return value

    def attribute(self, text: str, name: str) -> str:
        """`x.name` or `x.name(…)`; a function of that name that is no method is called on x."""
        if self.next.text != "(":
            return f"{text}.{name}"
        from gradcli.engine.registry import table

        arguments = [value.text for value in self.arguments()]
        known = name in names.TENSOR_ATTRIBUTES or name in table.methods()
        if not known and is_function(name):
            return self.call(name, [bare(text), *arguments], "")
        return self.called_on(f"{text}.{name}({', '.join(arguments)})")

    def check_transpose(self, value: _Value) -> None:
        """Refuse the prime of `y' + y`, which is no product of matrices."""
        after, before = self.peek(1), self.tokens[self.at - 2] if self.at > 1 else None
        multiplied = after.kind in ("name", "number", "command") or after.text in ("(", "*", "@")
        alone = before is None or (
            before.kind == "sign" and before.text not in (")", "'", "*", "@")
        )
        if value.shape != "matrix" and not multiplied and alone:
            hint = (
                f"write {value.text}'(t) for a derivative, and transposed vectors only in products"
            )
            raise self.error(f"{value.text}' is a derivative, or transposed?", hint=hint)

    def closing(self) -> int:
        """Read a bracket with all that is in it, as the language has it. Where it ends."""
        depth = 0
        while self.next.kind != "end":
            token = self.take()
            depth += (token.text in "([{") - (token.text in ")]}") if token.kind == "sign" else 0
            if not depth:
                return token.end
        raise self.error("a bracket is never closed")

    def primary(self) -> _Value:
        """A number, a name, a call, or what is in brackets or bars."""
        token = self.next
        if token.kind in ("number", "string") or token.text in ("True", "False", "None"):
            return _Value(self.take().text)
        if token.kind == "name" and token.text in KEYWORDS and token.text != "if":
            raise self.error(f"a value is missing before `{token.text}`")
        if token.kind == "name":
            return self.named()
        if token.kind == "command":
            return self.command()
        if (share := fraction(token.text)) is not None:
            self.take()
            return _Value(share, _PRODUCT)
        if token.text in ("(", "{"):
            return self.group()
        if token.text == "[":
            return self.square()
        if token.text in ("|", "‖"):
            return self.between_bars()
        if token.kind == "end":
            raise self.error("the text ends where a value is missing")
        raise self.error(f"a value is missing before `{token.text}`")

    def group(self) -> _Value:
        """What is in brackets; braces only hold together."""
        closer = {"(": ")", "{": "}"}[self.take().text]
        bars, self.bars = self.bars, ""
        value = self.values() if closer == ")" else self.sum()
        self.expect(closer)
        self.bars = bars
        if value.text.startswith("lambda"):
            return _Value(self.called_on(f"({value.text})"))
        return value if closer == "}" else _Value(f"({value.text})", _ATOM, value.shape)

    def square(self) -> _Value:
        """A list; with `;` in it a matrix of numbers."""
        before, start = self.tokens[self.at - 1].text if self.at else "", self.take().start
        rows: list[list[str]] = [[]]
        while not self.accept("]"):
            if self.accept(";"):
                rows.append([])
            elif not self.accept(","):
                rows[-1].append(self.choice().text)
        beside = before not in ("", "(", ",", "=", "[") or self.next.text in _BESIDE
        if self.loose and beside and len(rows) == 1 and len(rows[0]) == 1:  # 2[x + y], [S]/K
            return _Value(f"({rows[0][0]})" if re.search(r"\W", rows[0][0]) else rows[0][0])
        if len(rows) == 1:
            return _Value(f"[{', '.join(rows[0])}]")
        cells = [cell for row in rows for cell in row]
        if not all(re.fullmatch(r"-?[\d.]+(?:e[+-]?\d+)?", cell) for cell in cells):
            raise self.error("a matrix is one of numbers here", self.tokens[start])
        lines = [", ".join(c if {".", "e"} & set(c) else f"{c}." for c in row) for row in rows]
        return _Value(f"tensor([{', '.join(f'[{line}]' for line in lines)}])")

    def between_bars(self) -> _Value:
        opened = self.take()
        bar = opened.text
        self.bars += bar
        inner = self.sum()
        self.bars = self.bars[:-1]
        if self.next.kind == "end":
            hint = "|x| is abs(x); for one of two conditions write or"
            raise self.error("this bar is never closed", opened, hint)
        self.expect(bar)
        if bar == "|":
            return _Value(f"abs({inner.text})", _ATOM, inner.shape)
        order = self.subscript()
        return _Value(f"linalg.norm({inner.text}{f', {order}' if order not in ('', '2') else ''})")

    def subscript(self) -> str:
        """What stands behind `_`, if anything does."""
        if not (self.next.text == "_" and self.next.kind == "sign"):
            return ""
        self.take()
        return self.argument().text

    def argument(self) -> _Value:
        r"""`{…}`, or the one digit or letter that stands there, as in `\frac12`."""
        token = self.next
        if token.text == "{":
            return self.group()
        if token.kind == "number" and len(token.text) > 1:
            rest = token._replace(text=token.text[1:], start=token.start + 1, blank=False)
            self.tokens[self.at : self.at + 1] = [token._replace(text=token.text[0]), rest]
        return self.primary()

    # -- names ---------------------------------------------------------------------------------------
    def command(self) -> _Value:
        r"""`\frac{a}{b}`, `\sqrt[3]{x}`, `\sin x`, `\alpha`."""
        token = self.take()
        if token.text == "frac":
            above, below = self.argument(), self.argument()
            if re.fullmatch(r"[d∂]|\(?partial\)?", above.text):
                raise self.derivative(token)
            return _Value(f"{above.at(_PRODUCT)}/{below.at(_POWER)}", _PRODUCT)
        if token.text == "sqrt":
            return self.root()
        if token.text in ("sum", "prod"):
            return self.series(token)
        hint = _NOT_READ.get(token.text)
        name = token.text.removeprefix("var")
        if name == "lambda":
            self.remarks.append("lam is lambda, which is a word of the language")
            name = "lam"
        if hint is None and (
            is_function(name) or name in BARE or is_greek(name) or name in ("lam", *_SYMBOLS)
        ):
            self.at -= 1
            self.tokens[self.at] = token._replace(kind="name", text=name)
            return self.named()
        raise self.error(f"`\\{token.text}` is no notation that is read here", token, hint)

    def derivative(self, token: Token) -> LanguageError:
        return self.error("a derivative is a command", token, 'gradcli diff "EXPR" --wrt x')

    def root(self) -> _Value:
        r"""`\sqrt{x}`, `\sqrt[3]{x}`, `√x`."""
        degree = ""
        if self.accept("["):
            degree = self.sum().at(_POWER)
            self.expect("]")
        inner = self.group() if self.next.text == "{" else self.postfix()
        if not degree:
            return _Value(f"sqrt({bare(inner.text)})", _ATOM, inner.shape)
        return _Value(f"{inner.at(_ATOM)}**(1/{degree})", _POWER, inner.shape)

    def series(self, token: Token) -> _Value:
        r"""`\sum_i x_i y_i`, `\sum_{k=1}^{10} k^2`: over the elements of vectors, or over whole numbers."""
        index = first = last = ""
        if self.next.text == "_" and self.next.kind == "sign":
            self.take()
            braced = self.accept("{")
            index = self.take().text
            if self.accept("="):
                first = self.sum().text
            if braced:
                self.expect("}")
            if not index.isidentifier():
                raise self.error("the index of a sum is one letter", token)
        if self.next.kind == "power":
            last = self.superscript().text
        elif self.accept("**"):
            last = self.exponent().text
        start = self.at
        self.indices.append(index)
        body = self.product()
        inside = [t.text for t in self.tokens[start : self.at] if t.kind == "name"]
        marked = [
            name[: -len(index) - 1] for name in inside if index and name.endswith(f"_{index}")
        ]
        self.indices.pop()
        text = body.text
        if marked and (first not in ("", "0", "1") or not (last.isidentifier() or not last)):
            raise self.error(f"this sum is not over all elements of {marked[0]}", token,
                             f"write sum({marked[0]}[…]), or leave the bounds out")  # fmt: skip
        if index in inside:  # the index itself is a number
            if first.isdigit() and last.isdigit():
                stop = str(int(last) + 1)
            elif marked and first in ("0", "1"):
                stop = f"len({marked[0]})" + " + 1" * (first == "1")
            else:
                raise self.error(f"the sum over {index} has no bounds that are numbers", token)
            text = re.sub(rf"\b{index}\b", f"arange({first}, {stop})", text)
        elif index and not marked:
            raise self.error(f"nothing of this sum depends on {index}", token)
        elif marked:
            self.remarks.append(
                f"the sum is over all elements of {', '.join(dict.fromkeys(marked))}"
            )
        return _Value(f"{token.text}({text})")

    def named(self) -> _Value:
        """A variable, a constant, or a function with its argument."""
        token = self.take()
        name = self.name_of(token)
        for index in self.indices:
            if index and name.endswith(f"_{index}"):
                if name in (self.vectors or ()):
                    row = name[: -len(index) - 1].upper()
                    hint = f"write the sum with the matrix of all of them: ‖{row}w - y‖^2"
                    raise self.error(f"{name} is a vector, a row of a matrix", token, hint)
                return _Value(name[: -len(index) - 1])
        based = re.fullmatch(r"log_(\w+)", name)
        if based and name not in self.own and not self.takes_argument(name):
            return self.function("log", token, based[1])
        if name not in self.own and name in CONSTANTS:
            return _Value(CONSTANTS[name])
        primes = 0
        while self.next.text == "'" and is_derivative(self.tokens, self.at):
            self.take()
            primes += 1
        if primes:
            return _Value("func.grad(" * primes + name + ")" * primes + f"({self.listed()})")
        if name in ("if", "IF") and self.next.text == "(":
            return _Value(f"where({self.listed()})")
        if name not in self.own and self.takes_argument(name):
            return self.function(name, token)
        variable, _, attribute = name.rpartition(".")
        if variable and not names.is_known(name):
            return _Value(self.attribute(variable, attribute))
        if self.next.text == "(" and not self.next.blank and self.is_called(name, token):
            return _Value(self.called_on(name))
        if self.loose:
            self.look_twice(name, token)
        return _Value(name, _ATOM, self.shape_of(name))

    def name_of(self, token: Token) -> str:
        """A name with its index, as it is called here."""
        name = token.text if token.text in self.own else unicodedata.normalize("NFKC", token.text)
        if name not in BARE and self.next.text == "_" and self.peek(1).text == "{":
            self.take()
            self.take()
            name += "_" + self.take().text
            self.expect("}")
        elif (
            name not in BARE and self.next.text == "_" and self.peek(1).kind in ("name", "command")
        ):
            self.take()
            name += "_" + self.take().text
        root = name.partition(".")[0]
        if root in self.own and root not in names.MODULES:
            return name
        for prefix in PREFIXES:
            if name.startswith(f"{prefix}."):
                name = name[len(prefix) + 1 :]
                return "torch.e" if name == "e" else name
        return name

    def called_on(self, text: str) -> str:
        """The calls behind a value, of what they return too: `f(2)(3)`."""
        while self.next.text == "(" and not self.next.blank:
            text += f"({self.listed()})"
        return text

    def listed(self) -> str:
        return ", ".join(value.text for value in self.arguments())

    def takes_argument(self, name: str) -> bool:
        """Whether a name is a function's, with its argument in brackets; of a few also without."""
        root = name.partition(".")[0]
        if (
            name in names.LETTERS
            or name in CONSTANTS
            or (root != name and not names.is_namespace(root))
        ):
            return False
        if name in BARE:
            return True
        short = name.rpartition(".")[2]
        known = is_function(name) or short in FUNCTIONS or known_as(name)
        return self.next.text in ("(", "{") and bool(known) and not names.is_namespace(name)

    def is_called(self, name: str, token: Token) -> bool:
        """Whether brackets behind a name that is no known function call it: `f(x + 1)`, `y(t)`, not
        `x(x + 1)`."""
        if name in self.own:
            return self.bound.get(name, True)
        if (
            name in _UNKNOWN
            or "." in name
            or not self.loose
            or (len(name) > 1 and not is_greek(name))
        ):
            return True
        inner, after = self.peek(1), self.peek(2).text
        if self.listed_next():
            return True
        others = [t for t in self.tokens if t.text == token.text and t is not token]
        alone = any(self.source[t.end : t.end + 1] != "(" for t in others)
        if inner.kind != "name" or after not in (")", ",") or alone:
            return False
        self.remarks.append(f"{name} is a function; a product is {name}*({inner.text})")
        return True

    def listed_next(self) -> bool:
        """Whether a comma stands in the bracket that follows: B(a, b) is no product."""
        depth = 0
        for token in self.tokens[self.at :]:
            depth += (token.text in "([{") - (token.text in ")]}") if token.kind == "sign" else 0
            if depth == 1 and token.text == ",":
                return True
            if depth == 0:
                break
        return False

    def look_twice(self, name: str, token: Token) -> None:
        """Say what several letters are; refuse `sinx`, and the dy of `dy/dx`."""
        if name[0] == "d" and self.next.text == "/" and re.fullmatch(r"d\w", self.peek(1).text):
            raise self.derivative(token)
        if name in self.own or not (name.isascii() and name.isalpha()):
            return
        for function in ("sin", "cos", "tan", "exp", "log", "ln", "sqrt"):
            before, _, after = name.partition(function)
            if function in name and len(before + after) == 1:
                said = f"{before} {function} {after}".strip()
                hint = f"write {said}; for the name say its value, --{name} VALUE"
                raise self.asks(f"`{name}` is one name, or {said}?", token, hint)
        if len(name) == 2 and not is_greek(name):
            self.remarks.append(f"{name} is one name; a product is {name[0]} {name[1]}")

    def shape_of(self, name: str) -> str:
        if self.vectors is None:
            return ""
        if is_matrix(name):
            return "matrix"
        return "column" if name in self.vectors else ""

    # -- functions -----------------------------------------------------------------------------------
    def arguments(self) -> list[_Value]:
        """What stands in the brackets of a call."""
        self.take()
        bars, self.bars = self.bars, ""
        found: list[_Value] = []
        while not self.accept(")"):
            if found:
                self.expect(",")
            if self.next.kind == "name" and self.peek(1).text == "=":
                keyword = self.take().text
                self.take()
                found.append(_text(f"{keyword}={self.choice().text}"))
            else:
                found.append(self.choice())
        self.bars = bars
        return found

    def function(self, name: str, token: Token, base: str = "") -> _Value:
        """A function with its power, its base, and its argument, in brackets or not: `sin^2 x`, `log_2 x`."""
        base = base or (self.subscript() if name in BARE else "")
        power: _Value | None = None
        if self.next.kind == "power":
            power = self.superscript()
        elif self.accept("**"):
            simple = self.next.kind in ("name", "number")
            power = _Value(self.take().text) if simple else self.exponent()
        if self.next.text == "(":
            values = self.arguments()
            shape = values[0].shape if len(values) == 1 else ""
            arguments = [value.text for value in values]
        else:
            if not (self.begins_operand() or self.next.text in ("-", "+")):
                raise self.error(f"the argument of `{name}` is missing", token, f"as in {name} x")
            inner = self.bare_argument()
            arguments, shape = [bare(inner.text)], inner.shape
        if power is not None and power.text == "-1":
            if name not in _INVERSES:
                raise self.error(f"{name}^-1 is 1/{name}, or the inverse function?", token)
            name, power = f"a{name}", None
        value = _Value(self.call(name, arguments, base), _ATOM, "" if name in _NUMBERS else shape)
        if not _is_call(value.text):
            value = value._replace(level=_PRODUCT)  # another function's formula
        return value if power is None else _Value(f"{value.at(_ATOM)}**{power.at(_SIGN)}", _POWER)

    def bare_argument(self) -> _Value:
        """`2x` of `sin 2x cos x`: all that stands close together, up to a function, a bracket or a sign."""
        if self.sign():
            inner = self.bare_argument()
            return _Value(f"-{inner.at(_PRODUCT)}", _SIGN, inner.shape)
        if self.next.kind == "name" and self.next.text in BARE:
            return self.power()
        value = self.power()
        while self.begins_operand() and self.next.text not in ("(", "[", "|", "‖"):
            if self.next.text in BARE or (
                self.next.kind == "command" and not is_greek(self.next.text)
            ):
                break
            value = self.multiplied(value, "*", self.power())
        return value

    def call(self, name: str, arguments: list[str], base: str) -> str:
        """A call as the language has it."""
        name = _OWN_NAMES.get(name, name)
        arguments = [*arguments, *([base] if base not in ("", "e") else [])]
        here = re.sub(r"^F\.", "nn.functional.", name.removeprefix("torch."))
        if name != here and names.functional(here) is not None:
            name = here
        if not is_function(name) and not names.is_known(here):
            short = name.rpartition(".")[2]
            name = short if short in FUNCTIONS else known_as(name) or name
        return called(name, arguments, self.own, elementwise=self.elementwise)


# The shape of a product of two shapes; what is not here is none.
_PRODUCTS = {
    ("row", "column"): "number", ("row", "matrix"): "row", ("matrix", "column"): "column",
    ("matrix", "matrix"): "matrix", ("column", "row"): "matrix",
}  # fmt: skip


def _is_call(text: str) -> bool:
    """Whether a text is a name and one bracket."""
    found = re.match(r"[\w.]+(?=\()", text)
    rest = text[found.end() :].replace(",", "") if found else ""
    return bool(rest) and bare(rest) != rest
