r"""The descent over the tokens of mathematics: `2x^2`, `sin 2x cos x`, `\frac{x}{2}` as trees.

Where two readings are possible the one that is taken is said (`remarks`), or the text is refused.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Mapping

from gradcli.language import names
from gradcli.language.foreign_names import (
    CONSTANTS,
    FUNCTIONS,
    PREFIXES,
    SUPERSCRIPTS,
    is_function,
    known_as,
)
from gradcli.language.located_errors import LanguageError
from gradcli.language.math_clauses import Label, label
from gradcli.language.math_definitions import definition, end_of_statement, logarithm_of
from gradcli.language.math_indices import subscripts
from gradcli.language.math_marks import LONGEST_MARK, bound_letters, raised_mark
from gradcli.language.math_symbols import (
    ACCENTS,
    BARE,
    INDEX_WORDS,
    INVERSES,
    RELATIONS,
    SCRIPTS,
    SHY,
    SYMBOLS,
)
from gradcli.language.math_tree import Binder, Node, nodes
from gradcli.language.notation import (
    Token,
    fraction,
    indexed,
    is_derivative,
    is_differential,
    is_greek,
    is_matrix,
    letter_name,
)
from gradcli.language.tokens import KEYWORDS

# Letters that, called, are functions that nobody has to define.
_UNKNOWN = frozenset((*"fghFGHφ", "phi"))
# Letters for functions, as they are printed here.
_PRINTED = {"psi": "digamma", "ψ": "digamma", "sigma": "sigmoid", "σ": "sigmoid"}
_PRINTED |= dict.fromkeys(("Phi", "Φ"), "special.ndtr")
# What is behind the N of Black and Scholes: `N(d1)`, `N(-d_2)`, `N(d_{+})`. `N(d)` may be a count.
_OF_PRICES = re.compile(r"\s*\(\s*[-−]?\s*d\s*(?:_\s*)?\{?\s*[12+±−-]\s*\}?\s*\)")
# Functions along one dimension, whose index is printed below: `mean_i(A)` is along the first.
_ALONG = frozenset("mean var std logsumexp softmax log_softmax cumsum cumprod".split())
_DIMENSIONS = "ijklmnpqr"
_BESIDE = frozenset(("+", "-", "*", "·", "×", "/", "**", "⊙"))
_SERIES = {
    "argmax": "argmax",
    "argmin": "argmin",
    "sum": "sum",
    "prod": "prod",
    "max": "amax",
    "min": "amin",
    "sup": "amax",
    "inf": "amin",
}
_PRODUCTS = ("*", "·", "×", "⊙", "⊘", "⊗", "/", "@", "%", "//")
_NOT_READ = {
    "nabla": 'gradcli diff "EXPR" differentiates; of a field: --operator grad, div, curl or laplacian',
}


def _element(value: Node, letters: str, token: Token) -> Node:
    """An element of a value; of `[S]_0` and `(x)_i` that of the name, which may be a name itself."""
    inner = value.only if value.kind == "group" else value
    if inner.kind == "name" and inner.text and not inner.parts and inner.base != "called":
        index = Node("number" if letters.isdigit() else "name", token, letters)
        return Node("name", inner.token, f"{inner.text}_{letters}", (index,), inner.text)
    return Node("element", token, letters, (value,))


def _is_constant(node: Node) -> bool:
    """Whether a node is of numbers and π alone."""
    return all(
        n.kind in ("number", "product", "neg", "group", "fraction", "power")
        or (n.kind == "raw" and n.text == "pi")
        or (n.kind == "name" and n.text == "pi")
        for n in nodes(node)
    )


def _is_quotient(name: str, sign: str, below: str) -> bool:
    """Whether `dy`, `/` and `dx` follow each other."""
    return (
        sign == "/"
        and re.fullmatch(r"d[^\W\d_]", name) is not None
        and re.fullmatch(r"d[^\W\d_]", below) is not None
    )


# Recursive descent, a method for each level, the weakest first: `values` (a, b), `choice` (a if c else
# b), `logical` (and, or), `relation`, `sum`, `product`, `signed`, `power`, `postfix` (x!, x', x[i]) and
# `primary`. Each reads what binds stronger and then looks whether its own sign follows. Mathematics has
# products without a sign, so `product` goes on as long as the next token can begin a value
# (`begins_operand`).
class Parser:
    """One text, read from front to back.

    loose: as for --math, where any names may be factors. own: names that the text assigns, or that have a
    value; bound: those that have one, and whether it can be called. vectors: the names of vectors where
    the text is of matrices, else None. functions: the names that it defines by f(x) = …. labels: whether
    `R^2 = …` names a formula, and is no equation.
    """

    def __init__(
        self,
        source: str,
        found: list[Token],
        bound: Mapping[str, bool],
        own: set[str],
        vectors: set[str] | None,
        *,
        equation: bool = False,
        loose: bool = True,
        functions: Container[str] = (),
        labels: bool = True,
    ) -> None:
        self.functions, self.labels = functions, labels and loose and not equation
        self.arrays: Container[str] = ()  # names that are known to be arrays of numbers
        self._chain: set[int] = set()  # the places of `=` behind the first formula of `L = a = b`
        self.source, self.tokens, self.bound, self.own = source, found, bound, own
        self.vectors, self.equation, self.loose = vectors, equation, loose
        self.remarks: list[str] = []
        # w and J of the `J(w) =` that the text ends with
        self.header: tuple[str, ...] = ()
        self.called = ""
        self._implied: set[str] = set()  # names that are factors without a sign, as y of 2y z
        # A bar opens and closes with the same sign. In `|x| + |y|` the second one closes since one is
        # open. Brackets begin anew: in `|f(|x|)|` the inner pair is seen by its own. So the open bars are
        # kept here, and put aside while a bracket is read.
        self.bars = ""  # the bars that are open: `|`, `‖` or `⟨` each
        self.differentials: list[
            str
        ] = []  # the variables of the integrals around, "" until it is met
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
    def program(self) -> list[Node | Token]:
        """All of the text: statements, and the `;` and ends of lines between them."""
        parts: list[Node | Token] = []
        while self.next.kind != "end":
            if self.accept(";", "\n"):
                parts.append(self.tokens[self.at - 1])
                continue
            parts.append(self.statement())
            if self.next.kind != "end" and self.next.text not in (";", "\n"):
                raise self.stray()
        return parts

    def stray(self) -> LanguageError:
        token = self.next
        if token.text in ("±", "\\pm"):
            return self.two_values()
        if token.text in ("⇒", "→"):
            return self.error(
                "this is a step from one formula to another", token, "give one of them"
            )
        return self.error(f"`{token.text}` cannot follow here")

    def two_values(self) -> LanguageError:
        """The error of `±`, with both texts that it may stand for."""
        both = [
            re.sub(r"\\pm(?![A-Za-z])|±", one, re.sub(r"\\mp(?![A-Za-z])|∓", other, self.source))
            for one, other in ("+-", "-+")
        ]
        both = [re.sub(r"(^|[=(,])\s*\+\s*", r"\1 ", text) for text in both]
        hint = f"write each one out: '{both[0].strip()}', '{both[1].strip()}'"
        after = self.tokens[self.at + 1 : self.at + 2]
        if after and re.fullmatch(r"[\d.]+", after[0].text):
            hint += "; an uncertainty stands with a value: --x 3±0.1"
        return self.error("± stands for two values", hint=hint)

    def statement(self) -> Node:
        """A definition, an assignment, an equation, or a value."""
        token = self.next
        if not self.equation and (sign := logarithm_of(self.tokens, self.at, self.own)) is not None:
            return self.called_so(Label(sign))
        if self.peek(1).text in ("mapsto", "↦"):  # x ↦ x^2 is x^2
            self.at += 2
            return self.values()
        # f(x) = x^2 defines f only if x stands on the right: else it is an equation about a call.
        found = definition(self.tokens, self.at)
        end = end_of_statement(self.tokens, found.sign) if found else 0
        right = (
            {t.text.partition("_")[0] for t in self.tokens[found.sign : end]} if found else set()
        )
        if found and not right.isdisjoint(
            {t.text for t in self.tokens[self.at + 1 : found.sign]} - {"("}
        ):
            self.at = found.sign + 1
            body = self.values() if self.equation else self.named_value(found.sign, "")
            if self.equation:  # y(t) = … of a table with a column y
                return Node("relation", token, "==", (Node("name", token, found.name), body))
            if self.next.kind == "end":
                self.header, self.called = found.by, found.name
                return body  # what is asked for is the function's value
            self.own.add(found.name)
            return Node("define", token, found.name, (body,), ", ".join(found.parameters))
        one = indexed(self.tokens, self.at) if self.labels else None
        if one is not None and self.tokens[one.end : one.end + 1]:
            behind = self.tokens[one.end].text
            if behind == "=" or (behind == "≈" and one.name not in self.own):
                letters = one.name.rpartition("_")[2] if "_" in one.name else ""
                several = re.fullmatch("[a-z]{1,3}", letters) and letters not in INDEX_WORDS
                value = self.named_value(one.end, letters if several else "")
                return Node("assign", token, self.elements_named(one.name, value), (value,))
        if (said := label(self.tokens, self.at, self.own) if self.labels else None) is not None:
            return self.called_so(said)
        if self.next.kind == "name" and self.peek(1).text == "=" and not self.equation:
            name = self.take().text
            self.take()
            value = self.values()
            letters = name.rpartition("_")[2] if "_" in name else ""
            elements = Node("labelled", token, letters, (value,))
            if re.fullmatch("[a-z]{1,3}", letters) and letters not in INDEX_WORDS:
                array = self.elements_named(name, elements)
                name, value = array, elements if array != name else value
            return Node("assign", token, name, (value,))
        if self.next.text == "return":
            self.take()
            return Node("return", token, "", (self.values(),))
        return self.values()

    def elements_named(self, name: str, value: Node) -> str:
        """The array whose elements a statement gives: p of `p_i = e^{z_i}`; the name itself elsewhere."""
        array, _, letters = name.rpartition("_")
        if value.kind != "labelled" or array in self.own or self.next.kind == "end":
            return name
        found = {one.letter for n in nodes(value) if n.kind == "name" for one in subscripts(n)}
        found |= {letter for n in nodes(value) if n.kind == "element" for letter in n.text}
        if not found.issuperset(letters):
            return name
        self.own.discard(name)
        self.own.add(array)
        return array

    def called_so(self, said: Label) -> Node:
        """The formula behind a label."""
        start = self.tokens[self.at - 1].end if self.at else 0
        end = self.tokens[said.sign].start
        typed = " ".join(self.source[start:end].strip(" $&").split())
        self.remarks.append(f"the value is that of {'the new ' * said.updates}{typed}")
        return self.named_value(said.sign, "".join(said.letters))

    def named_value(self, sign: int, letters: str) -> Node:
        """The formula behind the `=` at a place; of several equal ones the first. letters: its indices."""
        end, depth = end_of_statement(self.tokens, sign), 0
        for k in range(sign + 1, end):
            text = self.tokens[k].text
            depth += (text in ("(", "[", "{", "begin")) - (text in (")", "]", "}", "end"))
            if not depth and text == ",":  # of several values
                break
            if not depth and text in ("=", "≈"):
                self._chain.add(k)
        self.at = sign + 1
        value = self.values()
        if self.at in self._chain:
            self.remarks.append("of several equal formulas the first is taken")
            self.at = end_of_statement(self.tokens, self.at)
        self._chain.clear()
        return Node("labelled", value.token, letters, (value,)) if letters else value

    def values(self) -> Node:
        """One value, or several between commas."""
        token = self.next
        found = [self.choice()]
        while self.next.text == "," and self.next.kind == "sign":
            comma = self.take()
            before, after = self.tokens[self.at - 2], self.next
            # 3,5 may be 3.5, as half of the world writes it, or two values: it is asked.
            if before.kind == after.kind == "number" and not after.blank and before.text.isdigit():
                hint = f"write {before.text}.{after.text}, or with a blank for two values; "
                hint += "--decimal , reads it so"
                raise self.asks("a comma between digits is not a decimal point", comma, hint)
            found.append(self.choice())
        return found[0] if len(found) == 1 else Node("values", token, "", tuple(found))

    def choice(self) -> Node:
        """`a if c else b`, `c ? a : b`, a function, or what has no choice in it."""
        token = self.next
        if self.next.kind == "name" and self.next.text == "lambda":
            start = self.take().start
            while self.next.kind == "name" or self.next.text == ",":
                self.take()
            head = self.source[start : self.next.start]
            self.expect(":")
            return Node("lambda", token, head, (self.choice(),))
        value = self.logical()
        if self.accept("?"):
            first = self.choice()
            self.expect(":")
            return Node("choice", token, "", (first, value, self.choice()))
        if self.next.text != "if":
            return value
        self.take()
        condition = self.logical()
        if self.take().text != "else":
            raise self.error("`else` is missing here")
        return Node("choice", token, "", (value, condition, self.choice()))

    def logical(self) -> Node:
        token, words, parts = self.next, [], []
        while True:
            words.append("")
            if self.next.text == "not":
                words[-1] = "not "
                self.take()
            parts.append(self.relation())
            if self.next.text not in ("and", "or"):
                break
            words[-1] += self.next.text
            self.take()
        if len(parts) == 1 and not words[0]:
            return parts[0]
        return Node("logical", token, "|".join(words), tuple(parts))

    def relation(self) -> Node:
        value = self.sum()
        while self.next.text in RELATIONS:
            if self.next.text == "=" and not self.loose:
                raise self.stray()
            if self.at in self._chain:
                break
            token = self.take()
            sign = "==" if token.text == "=" else token.text
            value = Node("relation", token, sign, (value, self.sum()))
        return value

    # -- values --------------------------------------------------------------------------------------
    def sum(self) -> Node:
        """Terms with signs between them."""
        token = self.next
        minus = self.sign()
        first = self.product()
        if minus:
            first = Node("neg", token, "", (first,))
        signs, terms = "+", [first]
        while self.next.text in ("+", "-") and self.next.kind == "sign":
            # In `∫ x dx + 1` the integral ends with its dx; `∫ (x + 1) dx` has the sum in brackets, and
            # before the dx `∫ x + 1 dx` is read as all of the sum.
            if self.differentials and self.differentials[-1]:
                break  # behind the dx of an integral
            signs += self.take().text
            terms.append(self.product())
        if self.next.text in ("±", "\\pm"):
            raise self.two_values()
        return first if len(terms) == 1 else Node("sum", token, signs, tuple(terms))

    def sign(self) -> bool:
        """Read the signs before a value. Whether they come to a minus."""
        minus = False
        while self.next.text in ("+", "-"):
            minus ^= self.take().text == "-"
        return minus

    def product(self) -> Node:
        """Factors, with or without a sign between them."""
        value, quotient = self.signed(), False
        last = value  # the factor before
        while True:
            token = self.next
            self.look_at_exponent(last, token)
            if token.text == "%" and value.kind == "number":
                value = self.percent(value)
            elif token.text in _PRODUCTS and token.kind == "sign":
                self.take()
                self.check_composition(token)
                last = factor = self.signed()
                if token.text == "/" and (whole := self.below_slash(value, factor)) is not None:
                    factor = whole
                # The dx of an integral is no factor: it says by what is integrated.
                if factor.base == "differential" and token.text in ("*", "·"):
                    continue
                value = Node("product", token, token.text, (value, factor))
                quotient = token.text == "/"
            elif token.kind in ("name", "command") and token.text in ("mod", "bmod"):
                self.take()
                value = Node("product", token, "%", (value, self.signed()))
            elif self.begins_operand():
                if value.text != "frac":
                    self.check_product(self.tokens[self.at - 1], token)
                below = self.source[last.token.start : self.tokens[self.at - 1].end]
                start = last
                last = factor = self.power()
                if quotient and start.kind != "group":
                    behind = self.source[token.start : self.tokens[self.at - 1].end]
                    self.remarks.append(
                        f"/{below} {behind} is read as (…/{below})*{behind}; write /({below} {behind}) "
                        "for both below the line"
                    )
                if factor.base == "differential":
                    continue
                value = Node("product", token, "", (value, factor))
            else:
                return value

    def below_slash(self, above: Node, first: Node) -> Node | None:
        r"""All letters that stand close behind a slash: k_B T of `E/k_B T`; None where the first is alone.

        Behind a number it is asked: `\pi/2 x` and `x^2/2\sigma^2` mean different things; `1/2 x` is a half.
        """
        if not self.loose or first.kind not in ("name", "number", "power"):
            return None
        if not self.is_letter_next():
            return None
        number = first.kind == "number"
        if number and _is_constant(above):
            return None
        start = self.tokens[self.at - 1].start if number else first.token.start
        begin, whole = self.at, first
        while self.is_letter_next():
            token = self.next
            whole = Node("product", token, "", (whole, self.power()))
        end = self.tokens[self.at - 1].end
        below = self.source[start:end]
        one = self.source[start : self.tokens[begin - 1].end]
        rest = self.source[self.tokens[begin].start : end]
        if number:
            raise self.asks(f"/{below} is /({below}), or (…/{one}) {rest}?", self.tokens[begin],
                            f"write /({below}), or put a * before {rest}")  # fmt: skip
        self.remarks.append(f"/{below} is read as /({below}); write (…/{one}) {rest} for the other")
        return Node("group", first.token, "", (whole,))

    def is_letter_next(self) -> bool:
        """Whether a variable follows, and no function, bracket or number."""
        token = self.next
        if token.kind == "name":
            return self.begins_operand() and (
                token.text in self.own
                or (
                    token.text not in BARE
                    and self.peek(1).text != "("
                    and not is_differential(token)
                )
            )
        return token.kind == "command" and (is_greek(token.text) or token.text in SYMBOLS)

    def look_at_exponent(self, factor: Node, following: Token) -> None:
        """Say what stands raised in `e^2x` and in `x^1/3`: the number alone."""
        before = self.tokens[self.at - 1]
        if factor.kind != "power" or before.kind != "number" or following.blank:
            return
        base, exponent = factor.parts[0], before.text
        if following.kind in ("name", "command") and self.begins_operand():
            if base.kind == "number" or base.text == "e":
                typed = f"{base.text}^{exponent}{following.text}"
                meant = f"{base.text}^({exponent}{following.text})"
                self.remarks.append(
                    f"{typed} is read as {base.text}^{exponent}*{following.text}; write {meant} for the other"
                )
        elif following.text == "/" and exponent == "1" and self.peek(1).kind == "number":
            below = self.peek(1).text
            name = base.text or "x"
            self.remarks.append(
                f"{name}^1/{below} is read as ({name}^1)/{below}; write {name}^(1/{below}) for the root"
            )

    def check_composition(self, sign: Token) -> None:
        """Ask what the ∘ of `(f ∘ g)(x)` is, which is a product of matrices elsewhere."""
        beside = {self.tokens[self.at - 2].text, self.next.text}
        if self.source[sign.start : sign.end] in ("\\circ", "∘") and beside <= _UNKNOWN:
            hint = "write f(g(x)) for the composition, \\odot for the product of elements"
            raise self.asks("∘ is a composition of functions, or a product?", sign, hint)

    def check_product(self, before: Token, after: Token) -> None:
        """Refuse neighbours that are no product: `2 3`, `2½`, `0x`; but for --math, `print x`."""
        numbers = before.kind == "number" and (after.kind == "number" or fraction(after.text))
        numbers = numbers and not (before.font or after.font)  # 2 \\mathbf{1}
        # `0x` is the beginning of a hexadecimal number, and `0 x` a product that nobody would write.
        zero = before.kind == "number" and before.text[0] == "0" and "." not in before.text
        words = before.kind == after.kind == "name" and not is_function(after.text)
        dotted = after.kind == "number" and after.text[0] == "."
        if numbers or dotted or (zero and not after.blank) or "string" in (before.kind, after.kind):
            raise self.error(f"an operator is missing between {before.text} and {after.text}")
        if words and not self.loose and before.text not in self._implied:
            raise self.error(f"an operator is missing between {before.text} and {after.text}")
        self._implied.add(after.text)

    def percent(self, value: Node) -> Node:
        """`5% of x`, `5%`; `7 % 2` is a remainder."""
        token = self.take()
        if self.next.text == "of":
            self.take()
        elif self.begins_operand():
            return Node("product", token, "%", (value, self.power()))
        else:
            return Node("percent", token, "", (value,))
        return Node("product", token, "*", (Node("percent", token, "", (value,)), self.signed()))

    def signed(self) -> Node:
        token = self.next
        if not self.sign():
            return self.power()
        return Node("neg", token, "", (self.power(),))

    def begins_operand(self) -> bool:
        """Whether the next token can begin a value."""
        token = self.next
        if token.kind == "name":
            return (
                token.text not in KEYWORDS
                and token.text not in ("of", "mod", "bmod", "percent")
                and not (self.differentials and self.differentials[-1] and is_differential(token))
            )
        if token.kind == "sign":
            # A bar that is open is closed by the next one; only where none is open does it begin a value.
            if token.text in ("|", "‖"):
                return self.bars[-1:] != token.text
            opens = token.text in ("(", "[", "{", "⟨", "⌊", "⌈")
            return opens or fraction(token.text) is not None
        ends = ("end", "mod", "bmod")
        return token.kind in ("number", "command", "string") and token.text not in ends

    def power(self) -> Node:
        """A value with its exponents."""
        token = self.next
        if (
            token.text == "e"
            and token.kind == "name"
            and "e" not in self.own
            and self.peek(1).text != "_"
        ):
            self.take()
            return self.raised(Node("name", token, "e"))
        return self.raised(self.postfix())

    def raised(self, base: Node) -> Node:
        """A value with what stands raised behind it."""
        token = self.next
        if token.kind == "power":
            return Node("power", token, "", (base, self.superscript()))
        if not self.accept("**", ".^"):
            return base
        how = "⊙" if token.text == ".^" else ""
        if self.next.text == "{" and self.peek(1).text == "⊙" and self.peek(2).text != "}":
            self.take()
            self.take()  # the Hadamard power
            exponent = self.sum()
            self.expect("}")
            return Node("power", token, "⊙", (base, exponent))
        # A raised circle is often typed in place of the degree sign.
        if self.next.text == "⊙" or (self.next.text == "{" and self.peek(1).text == "⊙"):
            if self.take().text == "{":
                self.take()
                self.expect("}")
            self.check_degrees(base, token)
            return Node("degrees", token, "", (base,))
        texts = [self.peek(k).text for k in range(3)]
        if texts[0] == "+" or texts == ["{", "+", "}"]:  # the pseudo-inverse
            self.at += 1 if texts[0] == "+" else 3
            return Node("power", token, how, (base, Node("raw", token, "+")))
        is_euler = base.text == "e" and "e" not in self.own
        mark = raised_mark(self.tokens[self.at - 1 : self.at - 1 + LONGEST_MARK])
        if base.kind == "name" and not is_euler and mark is not None and mark.braced:
            said, inside = base.text or "x", mark.text
            raised = inside if len(mark.inside) == 1 else f"{{{inside}}}"
            raise self.asks(
                f"the ({inside}) of {said} is a power, or says which {said} it is?", token,
                f"write {said}^{raised} for the power, "
                f"{said}_{inside if len(mark.inside) == 1 else 1} for one of many",
            )  # fmt: skip
        exponent = self.exponent()
        if base.kind == "norm" and len(base.parts) == 1:  # ‖x‖^2_1
            base = base._replace(parts=(*base.parts, *self.subscript()))
        if base.kind == "call" and base.text == "amax" and not base.parts:
            raise self.error("the argument is missing")
        power = Node("power", token, how, (base, exponent))
        below = self.next
        if (
            base.kind in ("name", "group") and exponent.kind == "neg" and below.text == "_"
        ):  # A^{-1}_{ij}
            return self.element(power, below)
        return power

    def check_degrees(self, value: Node, token: Token) -> None:
        """Ask what the circle of `E°` is, which chemists have at what is of the standard state."""
        name = value.text.removeprefix("Delta_").removeprefix("Δ")
        if value.kind == "name" and name[:1].isupper() and name[:1].isascii():
            said = value.text
            raise self.asks(f"{said}° is an angle in degrees, or {said} of the standard state?", token,
                            f"write {said}_0 for the latter, {said} \\pi/180 for the angle")  # fmt: skip

    def superscript(self) -> Node:
        """`²`, `⁻¹`."""
        token = self.take()
        plain = "".join(SUPERSCRIPTS[c] for c in token.text)
        if plain[:1] in ("-", "+"):
            inner = Node("number" if plain[1:].isdigit() else "name", token, plain[1:])
            return Node("neg", token, "", (inner,)) if plain[0] == "-" else inner
        return Node("number" if plain.isdigit() else "name", token, plain)

    def exponent(self) -> Node:
        """What stands behind `^`."""
        if self.next.text == "{":
            return self.group()
        return self.signed()

    def postfix(self) -> Node:
        """A value with what follows it closely: `!`, `°`, primes, an index."""
        value = self.primary()
        while True:
            token = self.next
            if token.text == "!" and not token.blank:
                self.take()
                value = Node("factorial", token, "", (value,))
            elif token.text == "°":
                self.check_degrees(value, token)
                self.take()
                value = Node("degrees", token, "", (value,))
            elif token.kind == "name" and token.text == "percent":
                self.take()
                value = Node("percent", token, "", (value,))
            elif token.kind == "transpose":
                self.check_transpose(value)
                self.take()
                value = Node("transpose", token, "", (value,))
            elif token.text == "." and self.peek(1).kind == "name" and not token.blank:
                self.take()
                value = self.attribute(value, self.take())
            elif (
                token.text == "["
                and not token.blank
                and self.tokens[self.at - 1].kind != "number"
                and value.kind != "series"
                and not self.is_sized(token)
            ):
                value = Node(
                    "subscript", token, self.source[token.start : self.closing()], (value,)
                )
            elif value.kind == "group" and self.loose and self.positive_part_follows():
                value = self.positive_part(value.only, token)
            elif (
                token.text == "_"
                and value.kind in ("group", "call", "prime", "transpose")
                and (self.peek(1).text == "{" or self.peek(1).kind in ("name", "number"))
            ):
                value = self.element(value, token)
            else:
                return value

    def positive_part_follows(self) -> bool:
        """Whether the + of `[x]_+` follows."""
        texts = [self.peek(k).text for k in range(4)]
        return texts[:2] == ["_", "+"] or texts == ["_", "{", "+", "}"]

    def positive_part(self, value: Node, token: Token) -> Node:
        """`[1 - x]_+`, which is max(0, 1 - x)."""
        self.at += 2 if self.peek(1).text == "+" else 4
        return Node("call", token, "max", (Node("number", token, "0"), value))

    def is_sized(self, token: Token) -> bool:
        r"""Whether a bracket has no index in it: `\left[` and that of `\alpha[x + 1]`, not of `\theta[0]`."""
        if self.source[: token.start].rstrip().endswith(("\\left", "\\big", "\\Big", "\\bigl")):
            return True
        if self.tokens[self.at - 1].text == "}":  # V_{\\max}[S]
            return True
        named = self.source[self.tokens[self.at - 1].start] == "\\"
        return named and self.peek(1).kind != "number" and self.peek(1).text not in (":", "-")

    def element(self, value: Node, token: Token) -> Node:
        """`(A x)_i`, behind whose value the sign of an index stands."""
        return _element(value, self.letters_below(token), token)

    def letters_below(self, token: Token) -> str:
        """The letters of the indices behind `_`, where something else than a name has them; or a number."""
        self.take()
        if self.next.kind == "name":  # f(z)_k
            index = self.take()
            if index.text[1:2] and "_" in index.text:  # (X w)_ix_i
                rest = index._replace(text=index.text[1:], start=index.start + 1, blank=False)
                self.tokens.insert(self.at, rest)
                index = index._replace(text=index.text[0], end=index.start + 1)
            parts: tuple[Node, ...] = (Node("name", index, index.text),)
        elif self.next.kind == "number":  # (A x)_1
            parts = (self.primary(),)
        else:
            self.take()
            parts = self.indices()
        found = subscripts(Node("name", token, "", parts))
        if len(found) == 1 and not found[0].letter:
            return str(found[0].offset)
        if not found or any(len(one.letter) != 1 or one.offset for one in found):
            raise self.error("the index of an expression is not supported: give it a name", token)
        return "".join(one.letter for one in found)

    def attribute(self, value: Node, token: Token) -> Node:
        """`x.name` or `x.name(…)`; what is called is called on all of it."""
        if self.next.text != "(":
            return Node("attribute", token, token.text, (value,))
        inner = Node("attribute", token, token.text, (value, *self.arguments()), "called")
        return self.called_on(inner)

    def called_on(self, value: Node) -> Node:
        """The calls behind a value, of what they return too: `f(2)(3)`."""
        while self.next.text == "(" and not self.next.blank:
            token = self.next
            value = Node("apply", token, "", (value, *self.arguments()))
        return value

    def check_transpose(self, value: Node) -> None:
        """Refuse the prime of `y' + y`, which is no product of matrices."""
        after, before = self.peek(1), self.tokens[self.at - 2].text if self.at > 1 else ""
        # A prime is a derivative for some and a transpose for others. `x'A x` and `(A x)'` are products
        # of matrices, and x x' an outer product, so there it is a transpose. `½ m v'²` and `y' + y` could
        # be either, and are asked.
        multiplied = after.kind in ("name", "number", "command") or after.text in (
            "(",
            "*",
            "@",
            "·",
        )
        matrix = any(is_matrix(t.text) for t in self.tokens[max(self.at - 1, 0) : self.at])
        if value.kind != "name" or self.next.text == "ᵀ" or matrix or multiplied:
            return
        if before in ("@", value.text) or value.text in self.bound:  # see Writer.transpose
            return
        name = value.text
        hint = (
            f"write {name}'(t) or \\dot {name} for a derivative, {name}^T for the transposed, "
            f"{name}_2 for another {name}"
        )
        raise self.error(f"{name}' is a derivative, or transposed?", hint=hint)

    def closing(self) -> int:
        """Read a bracket with all that is in it, as the language has it. Where it ends."""
        depth = 0
        while self.next.kind != "end":
            token = self.take()
            depth += (token.text in "([{") - (token.text in ")]}") if token.kind == "sign" else 0
            if not depth:
                return token.end
        raise self.error("a bracket is never closed")

    def primary(self) -> Node:
        """A number, a name, a call, or what is in brackets or bars."""
        token = self.next
        if (found := self.indicator(token)) is not None:
            return found
        if token.kind == "number" and token.font in ("mathbf", "boldsymbol", "bm"):
            ones = Node("ones", self.take(), token.text)
            self.subscript()  # the size of \\mathbf{1}_n, which follows from what is beside it
            return ones
        if token.kind == "number" and "{,}" in token.text:
            whole = token.text.replace("{,}", "")
            hint = f"write {whole}, or {token.text.replace('{,}', '.')} with a point"
            raise self.asks(f"{token.text} is {whole}, or has three decimals?", token, hint)
        if token.kind in ("number", "string") or token.text in ("True", "False", "None"):
            return Node("number" if token.kind == "number" else "raw", self.take(), token.text)
        if token.kind == "name" and token.text in KEYWORDS and token.text != "if":
            raise self.error(f"a value is missing before `{token.text}`")
        if token.kind == "name":
            if self.differentials and not self.differentials[-1] and is_differential(token):
                from gradcli.language import math_notations

                return math_notations.differential(self)
            return self.named()
        if token.kind == "command":
            return self.command()
        if fraction(token.text) is not None:
            return Node("fraction", self.take(), token.text)
        if token.text in ("(", "{"):
            return self.group()
        if token.text == "[":
            return self.square()
        if token.text in ("|", "‖"):
            return self.between_bars()
        if token.text == "⟨":
            return self.inner_product()
        if token.text in ("⌊", "⌈"):
            return self.rounded()
        if token.kind == "end":
            raise self.error("the text ends where a value is missing")
        if token.text in ("±", "\\pm"):  # in front of all
            raise self.two_values()
        raise self.error(f"a value is missing before `{token.text}`")

    def indicator(self, token: Token) -> Node | None:
        r"""`\mathbb{1}[x > 0]` and `\mathbf{1}_{x > 0}`, 1 where that holds, else 0; None of other things."""
        letter = token.kind == "name" and token.text == "I" and "I" not in self.own
        bold = token.kind == "number" and token.text == "1" and token.font
        if not ((letter and token.font in ("mathbb", "mathbf", "")) or bold):
            return None
        at, start = self.at + 1, self.at
        at += [t.text for t in self.tokens[at : at + 1]] == ["_"]
        opened = self.tokens[at].text if at < len(self.tokens) else ""
        if opened not in ("[", "(", "{"):
            return None
        closer = {"[": "]", "(": ")", "{": "}"}[opened]
        self.at = at + 1
        bars, self.bars = self.bars, ""
        condition = self.logical()
        self.bars = bars
        if condition.kind not in ("relation", "logical") or not self.accept(closer):
            self.at = start
            return None
        one, zero = Node("number", token, "1"), Node("number", token, "0")
        otherwise = Node("raw", token, "otherwise")
        return Node("cases", token, "", (one, condition, zero, otherwise))

    def group(self) -> Node:
        """What is in brackets; braces only hold together."""
        token = self.take()
        closer = {"(": ")", "{": "}"}[token.text]
        bars, self.bars = self.bars, ""
        value = self.values() if closer == ")" else self.sum()
        if not self.ends_unseen(token):
            self.expect(closer)
        self.bars = bars
        if value.kind == "lambda":
            return self.called_on(Node("group", token, "", (value,)))
        return value if closer == "}" else Node("group", token, "", (value,))

    def ends_unseen(self, opened: Token) -> bool:
        r"""Whether a `\left\{` ends in `\right.`, which is no sign."""
        if self.source[opened.start : opened.end] != "\\{":
            return False
        return (
            re.search(r"\\right\s*\.", self.source[self.tokens[self.at - 1].end : self.next.start])
            is not None
        )

    def square(self) -> Node:
        """A list; with `;` in it a matrix. `2[x + y]`, `[S]/K` are brackets."""
        # `[1, 2]` is a list, `2[x + y]` a bracket. A bracket of one value is read as such if something
        # that multiplies, adds or sizes it (`\left[`) stands beside it, or if it is all of the text;
        # `f([x])` has a list.
        before, token = self.tokens[self.at - 1].text if self.at else "", self.take()
        rows: list[list[Node]] = [[]]
        bars, self.bars = self.bars, ""
        while not self.accept("]"):
            if self.accept(";"):
                rows.append([])
            elif not self.accept(","):
                rows[-1].append(self.choice())
        self.bars = bars
        if len(rows) == 1 == len(rows[0]) and self.loose and self.positive_part_follows():
            return self.positive_part(rows[0][0], token)
        indexed = self.next.text == "_" and (
            self.peek(1).text == "{" or self.peek(1).kind in ("name", "number")
        )
        if self.loose and indexed and len(rows) == 1 == len(rows[0]):
            inner, below = rows[0][0], self.next
            letters = self.letters_below(below)
            own = {one.letter for n in nodes(inner) if n.kind == "name" for one in subscripts(n)}
            if own.isdisjoint(letters):  # the element of `[A x]_i`
                return _element(Node("group", token, "", (inner,)), letters, below)
            # the array of the elements of `[x_i A_ij]_ij`
            return Node("elements", token, letters, (inner,), "", Binder((*letters,)))
        end = self.tokens[self.at - 1].end
        sized = (
            "\\left" in self.source[max(0, token.start - 6) : token.start]
            and "\\right" in (self.source[end - 8 : end])
        )
        beside = before not in ("", "(", ",", "=", "[") or self.next.text in _BESIDE or sized
        beside |= self.begins_operand() and self.next.text != "["
        whole = not before and self.next.kind == "end" and rows[0] and rows[0][0].kind != "number"
        if self.loose and (beside or whole) and len(rows) == 1 and len(rows[0]) == 1:
            inner = rows[0][0]
            return inner if inner.kind == "name" else Node("group", token, "", (inner,))
        if len(rows) == 1:
            return Node("list", token, "1", tuple(rows[0]))
        if len({len(row) for row in rows}) > 1:
            raise self.error("the rows of this matrix have different lengths", token)
        return Node(
            "matrix", token, str(len(rows[0])), tuple(cell for row in rows for cell in row), "[;]"
        )

    def between_bars(self) -> Node:
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
            return Node("abs", opened, "", (inner,))
        texts = [self.peek(k).text for k in range(4)]
        if texts[:2] == ["_", "*"] or texts == ["_", "{", "*", "}"]:  # the nuclear norm
            self.at += 2 if texts[1] == "*" else 4
            return Node("norm", opened, "", (inner, Node("product", opened, "*")))
        return Node("norm", opened, "", (inner, *self.subscript()))

    def inner_product(self) -> Node:
        r"""`\langle x, y\rangle`."""
        opened = self.take()
        bars, self.bars = self.bars, self.bars + "|"
        left = self.sum()
        if not self.accept(",", "|"):
            raise self.error("⟨x⟩ is a mean, or a vector?", opened, "write mean(x), or ⟨x, y⟩")
        self.bars = bars
        right = self.sum()
        self.expect("⟩")
        return Node("inner", opened, "", (left, right))

    def rounded(self) -> Node:
        opened = self.take()
        kind, closer = {"⌊": ("floor", "⌋"), "⌈": ("ceil", "⌉")}[opened.text]
        inner = self.sum()
        self.expect(closer)
        return Node("call", opened, kind, (inner,))

    def subscript(self) -> tuple[Node, ...]:
        """What stands behind `_`, if anything does."""
        if not (self.next.text == "_" and self.next.kind == "sign"):
            return ()
        self.take()
        return (self.argument(),)

    def argument(self) -> Node:
        r"""`{…}`, or the one digit or letter that stands there, as in `\frac12`."""
        token = self.next
        if token.text == "{":
            return self.group()
        # LaTeX reads `\frac12` as 1/2: without braces an argument is one character. The number's token is
        # split, and the rest of it is the next argument.
        if token.kind == "number" and len(token.text) > 1:
            rest = token._replace(text=token.text[1:], start=token.start + 1, blank=False)
            self.tokens[self.at : self.at + 1] = [token._replace(text=token.text[0]), rest]
        return self.primary()

    def binds(self) -> bool:
        r"""Whether a subscript follows that binds indices: `\max_i`, `\max_{1 \le i \le n}`."""
        return self.next.text == "_" and self.next.kind == "sign"

    # -- names ---------------------------------------------------------------------------------------
    def command(self) -> Node:
        r"""`\frac{a}{b}`, `\sqrt[3]{x}`, `\sin x`, `\alpha`."""
        from gradcli.language import math_notations

        token = self.take()
        text = token.text
        # The order matters: `\frac{d}{dx}` looks like any fraction, so the derivative is tried first, and
        # what it has read is given back if there is none.
        if text == "frac":
            if (found := math_notations.derivative(self, token)) is not None:
                return found
            above, below = self.argument(), self.argument()
            return Node("product", token, "frac", (above, below))
        if text == "sqrt":
            return self.root()
        if text == "arg" and self.next.text in ("max", "min"):
            text = f"arg{self.take().text}"
            if not self.binds():
                return self.function(text, token)
        if text in _SERIES and (text in ("sum", "prod") or self.binds()):
            return math_notations.series(self, token, _SERIES[text])
        if text == "int":
            return math_notations.integral(self, token)
        if text == "lim":
            return math_notations.limit(self, token)
        if text == "partial" and (found := math_notations.partial(self, token)) is not None:
            return found
        if text == "nabla":
            return math_notations.nabla(self, token)
        if text == "begin":
            return math_notations.environment(self, token)
        if text == "binom":
            return Node("call", token, "binom", (self.argument(), self.argument()))
        if text == "overline":
            inner = self.argument()
            if inner.kind == "name" and (
                f"{inner.text}_bar" in self.own or self._has_index(inner.text)
            ):
                return self.barred(token, inner)
            return Node("bar", token, "", (inner,))
        if text == "bar":
            return self.barred(token, self.argument())
        if text in ACCENTS:
            raise self.error(f"`\\{text}` is of one letter", token)
        if text == "pmod":
            raise self.error("write x mod 3 for a remainder", token)
        name = letter_name(token)
        if name == "lam":
            self.remarks.append("lam is lambda, which is a word of the language")
        # Other commands are names of functions, of Greek letters and of symbols: the command turns into a
        # token of a name, and is read as if it had been typed without its backslash.
        hint = _NOT_READ.get(text)
        if text in ("dots", "ldots", "cdots", "dotsc", "dotsb", "vdots"):
            hint = "write it with its index: \\sum_{i=1}^n x_i for x_1 + … + x_n"
            raise self.error("dots are not read", token, hint)
        if text == "underset":
            hint = "write \\arg\\min_\\theta for what stands below another"
            raise self.error("`\\underset` is not read", token, hint)
        if hint is None and (
            is_function(name) or name in BARE or is_greek(name) or name in ("lam", *SYMBOLS)
        ):
            self.at -= 1
            self.tokens[self.at] = token._replace(kind="name", text=name)
            return self.named()
        raise self.error(f"`\\{text}` is not supported", token, hint)

    def barred(self, token: Token, inner: Node) -> Node:
        r"""`\bar{x}`: a name, if it has a value; the mean where the text has `x_i`; else it is asked."""
        if inner.kind != "name":
            return Node("call", token, "conj", (inner,))
        name = f"{inner.text}_bar"
        if name in self.own:
            return Node("name", token, name)
        if (self._has_index(inner.text) or inner.text in self.arrays) and self.next.text != "_":
            self.remarks.append(f"the bar of {inner.text} is its mean")
            return Node("call", token, "mean", (inner,), "bar")
        raise self.asks(
            f"the bar of {inner.text} is a mean, a conjugate, or part of a name?", token,
            f"write \\mathrm{{mean}}({inner.text}), \\overline{{{inner.text}}}, "
            f"or say the value of the name, --{name} VALUE",
        )  # fmt: skip

    def _has_index(self, name: str) -> bool:
        """Whether the text has the name with an index, a letter as in `x_i`."""
        texts = [t.text for t in self.tokens if t.text != "{"]
        letters = [f"{name}_{k}" for k in _DIMENSIONS]
        return any(t in letters for t in texts) or any(
            [*after[:2]] == [name, "_"] and after[2] in [*_DIMENSIONS]
            for after in zip(texts, texts[1:], texts[2:], strict=False)
        )

    def root(self) -> Node:
        r"""`\sqrt{x}`, `\sqrt[3]{x}`, `√x`."""
        token = self.tokens[self.at - 1]
        degree: tuple[Node, ...] = ()
        if self.accept("["):
            degree = (self.sum(),)
            self.expect("]")
        inner = self.group() if self.next.text == "{" else self.postfix()
        return Node("root", token, "", (inner, *degree))

    # -- names and functions -------------------------------------------------------------------------
    def named(self) -> Node:
        """A variable, a constant, or a function with its argument."""
        token = self.take()
        if token.font in SCRIPTS and token.text.partition("_")[0] == "N" and self.next.text == "(":
            return self.normal(token)
        self.check_expectation(token)
        if token.text == "grad" and "grad" not in self.own and self.next.text in self.functions:
            from gradcli.language import math_notations

            return math_notations.nabla(self, token)
        if token.text == "Σ" and self.vectors is None and not {"Σ", "Sigma"} & self.own:
            hint = "write ∑_i x_i for the sum of all x_i; Σ of a variable needs a value, --Σ VALUE"
            if self.loose and self.next.text != "_" and self.begins_operand():
                raise self.asks("Σ is a sum, or a variable?", token, hint)
        by_d = token.text in ("d", "∂") and "d" not in self.own
        if by_d:
            from gradcli.language import math_notations

            if (found := math_notations.linear_derivative(self, token)) is not None:
                return found
        # `sum_i x_i` is typed without backslash as well. The tokenizer gives one name, `sum_i`; here it
        # is split into the three tokens of `\sum_i`.
        series = re.fullmatch(r"(sum|prod|max|min|int)_([^\W_]+)", token.text)
        if series and token.text not in self.own and not self.takes_argument(token.text):
            self.at -= 1
            start = token.start + len(series[1])
            self.tokens[self.at : self.at + 1] = [
                token._replace(kind="command", text=series[1], end=start),
                Token("sign", "_", False, start, start + 1),
                Token("name", series[2], False, start + 1, token.end),
            ]
            return self.command()
        if (
            token.text in _SERIES
            and token.text not in ("sup", "inf")
            and token.text not in self.own
            and self.binds()
        ):
            from gradcli.language import math_notations

            return math_notations.series(self, token, _SERIES[token.text])
        if token.text in _ALONG and token.text not in self.own:
            below = [self.peek(k).text for k in range(5)]
            if (*below[:2], *below[3:]) == ("_", "{", "}", "(") and below[2] in _DIMENSIONS:
                self.at += 4
                at = f"along {_DIMENSIONS.index(below[2])}"
                return Node("call", token, token.text, tuple(self.arguments()), at)
        node = self.name_of(token)
        name = node.text
        based = re.fullmatch(r"log_(\w+)", name)
        if based and name not in self.own and not self.takes_argument(name):
            base = Node("name", token, based[1])
            if based[1].isdigit():
                base = Node("number", token, based[1])
            return self.function("log", token, (base,))
        ordered = re.fullmatch(r"polygamma_(\d+)", name)
        if ordered and name not in self.own and self.next.text == "(":
            order = Node("number", token, ordered[1])
            return Node("call", token, "polygamma", (order, *self.arguments()))
        if name not in self.own and name in CONSTANTS:
            return Node("raw", token, CONSTANTS[name])
        primes = 0
        while self.next.text == "'" and is_derivative(self.tokens, self.at, self.functions):
            self.take()
            primes += 1
        if name == "N" and (marks := self.primes_of_prices(primes)) >= 0:
            name, primes = "Φ", marks
            self.remarks.append("N is special.ndtr, the normal distribution's")
        if primes:
            name = name if name in self.own else _PRINTED.get(name, name)
            return Node("prime", token, name, tuple(self.arguments()), str(primes))
        if name == "B" and "B" not in self.own and self.next.text == "(" and self.listed_next():
            hint = "write \\frac{\\Gamma(a)\\Gamma(b)}{\\Gamma(a + b)} for the beta function"
            raise self.asks("B(…) is the beta function, or another one?", token, hint)
        self.check_probability(token)
        if name in ("if", "IF") and self.next.text == "(":
            return Node("call", token, "where", tuple(self.arguments()))
        if name not in self.own and self.dotted(name):
            return self.function(name, token, ())
        small = name == "gamma" and self.source[token.start] == "\\"  # \\gamma is no Γ
        if name and name not in self.own and not small and self.takes_argument(name):
            if name == "int" and self.loose:
                hint = "write ∫ x^2 dx, or floor(x^2)"
                raise self.asks("`int` is an integral, or the integer part?", token, hint)
            return self.function(name, token)
        variable, _, attribute = name.rpartition(".")
        if variable and not names.is_known(name):
            return self.attribute(Node("name", token, variable), token._replace(text=attribute))
        if (
            name
            and self.next.text == "("
            and not self.next.blank
            and not self.is_element(node)
            and self.is_called(name, token)
        ):
            return self.called_on(Node("name", token, name, base="called"))
        if self.loose and _is_quotient(name, self.next.text, self.peek(1).text):
            from gradcli.language import math_notations

            if (found := math_notations.of_differentials(self, name, token)) is not None:
                return found
            return node
        if self.loose and name:
            self.look_twice(name, token)
        return node

    def normal(self, token: Token) -> Node:
        r"""`\mathcal{N}(x; \mu, \sigma^2)`: the density at x, by mean and variance."""
        self.take()
        bars, self.bars = self.bars, "|"  # which ends the first one
        parts = [self.sum()]
        self.bars = ""
        while self.accept(",", ";", "|"):
            parts.append(self.sum())
        self.bars = bars
        self.expect(")")
        if len(parts) != 3:
            hint = r"its density at x is \mathcal{N}(x; \mu, \sigma^2), of the variance \sigma^2"
            raise self.error("a distribution is no number of a formula", token, hint)
        variance = parts[2]
        if variance.kind == "name" and variance.base.partition("_")[0] in ("sigma", "σ", "s"):
            said = variance.text or variance.base
            raise self.asks(
                f"{said} is the variance of this normal distribution, or its standard deviation?",
                variance.token, "write \\sigma^2, the variance, or another letter for it: v",
            )  # fmt: skip
        self.remarks.append("N(x; m, v) is the normal density at x, of mean m and variance v")
        return Node("normal", token, "", tuple(parts))

    def check_probability(self, token: Token) -> None:
        """Refuse `P(B|A)`, which nothing gives a formula."""
        texts = [self.peek(k).text for k in range(7)]
        inside = texts[1 : texts.index(")")] if ")" in texts else []
        if texts[0] == "(" and inside[1:2] == ["|"] and inside.count("|") == 1 and not self.bars:
            said = f"{token.text}({' '.join(inside)})".replace(" | ", "|")
            if token.text not in self.own:
                hint = f"give it a name of its own, as {token.text}_1"
                raise self.error(f"{said} has no formula here", token, hint)

    def check_expectation(self, token: Token) -> None:
        r"""Refuse `\mathbb{E}[X]`, which is of a distribution."""
        plain = token.text == "E" and self.next.text == "[" and not self.next.blank
        if "E" in self.own or token.text not in ("E", "Var", "Cov", "Pr", "P"):
            return
        if (token.font == "mathbb" and token.text in ("E", "P")) or (plain and self.loose) or (
            token.text in ("Var", "Cov", "Pr") and token.font and self.next.text in ("(", "[")
        ):  # fmt: skip
            what = {"E": "an expectation", "P": "a probability", "Pr": "a probability"}.get(
                token.text, "a variance"
            )
            hint = "of data x it is \\frac{1}{n}\\sum_{i=1}^n x_i, or mean(x), var(x)"
            raise self.error(
                f"{what} is over a distribution, and no formula of numbers", token, hint
            )

    def name_of(self, token: Token) -> Node:
        """A name with its index, as it is called here."""
        name = token.text if token.text in self.own else unicodedata.normalize("NFKC", token.text)
        subscripts: tuple[Node, ...] = ()
        # What stands behind `_` may be part of a name (`x_max`), one index (`x_i`) or several
        # (`A_{i,j+1}`). Both are kept: `text` is the whole name, if it could be one, `base` what the
        # indices are of. Which of both is meant is decided when the whole text is known (`math_indices`).
        base, text = name, name
        if name not in BARE and self.next.text == "_" and self.peek(1).text == "{":
            self.take()
            opened = self.take()
            subscripts = self.indices()
            plain = self.tokens[self.at - 2] if len(subscripts) == 1 else opened
            simple = len(subscripts) == 1 and subscripts[0].kind in ("name", "number")
            text = f"{name}_{subscripts[0].text}" if simple and plain.text else ""
        elif name not in BARE and self.next.text == "_" and self.peek(1).kind in (
            "name", "command", "number"
        ):  # fmt: skip
            self.take()
            found = self.take()
            if found.kind == "number" and not found.text.isdigit():
                raise self.error("an index is a letter or a whole number", found)
            kind = "number" if found.kind == "number" else "name"
            subscripts = (Node(kind, found, found.text),)
            text = f"{name}_{'inf' if found.text == '∞' else found.text}"
        elif "_" in name and name not in self.own and "." not in name:
            base, _, letters = name.rpartition("_")
            kind = "number" if letters.isdigit() else "name"
            subscripts = (Node(kind, token, letters),) if letters and base else ()
        if (
            text
            and (text.partition(".")[0] in self.own)
            and text.partition(".")[0] not in names.MODULES
        ):
            return Node("name", token, text, subscripts, base)
        if base not in self.own and text and f"{base}{text[len(base) + 1 :]}" in self.own:
            joined = f"{base}{text[len(base) + 1 :]}"  # y0 is printed as y_{0}
            self.remarks.append(f"{text} is {joined}")
            return Node("name", token, joined)
        for prefix in PREFIXES:
            if text.startswith(f"{prefix}."):
                text = text[len(prefix) + 1 :]
                return Node("name", token, "torch.e" if text == "e" else text)
        return Node("name", token, text, subscripts, base)

    def indices(self) -> tuple[Node, ...]:
        """What stands in the braces of a subscript, up to the brace."""
        found = []
        while not self.accept("}"):
            if self.next.kind == "end":
                raise self.error("`}` is missing here")
            if not self.accept(","):
                token = self.next
                following = self.peek(1)
                if token.kind in ("name", "command") and following.text in ("}", ","):
                    found.append(Node("name", self.take(), token.text))
                else:
                    found.append(self.sum())
        if not found:
            raise self.error("an index is missing here")
        return tuple(found)

    def dotted(self, name: str) -> bool:
        """Whether a function stands before `.(`, by which it takes each element."""
        if self.next.text == "." and self.peek(1).text == "(" and is_function(name):
            self.take()
            return True
        return False

    def primes_of_prices(self, taken: int) -> int:
        """The primes of the N before where it is the normal distribution function, of d1 or d2; else -1.

        taken: how many primes are behind. Others are taken now.
        """
        more = next(k for k in range(len(self.tokens)) if self.peek(k).text != "'")
        is_call = self.peek(more).text == "(" and self.loose and "N" not in self.own
        if not is_call or _OF_PRICES.match(self.source, self.peek(more).start) is None:
            return -1
        self.at += more
        return taken + more

    def takes_argument(self, name: str) -> bool:
        """Whether a name is a function's, with its argument in brackets; of a few also without."""
        root = name.partition(".")[0]
        if (
            name in names.LETTERS
            or name in CONSTANTS
            or name in CONSTANTS.values()  # \\pi(x + 1) is a product
            or (root != name and not names.is_namespace(root) and name not in FUNCTIONS)
        ):
            return False
        following = self.next
        if name in BARE:
            raised = following.kind == "power" or following.text in ("**", "_")
            if name not in SHY or following.text in ("(", "{") or raised:
                return name not in SHY or not raised or name in ("max", "min")
            return self.loose and self.begins_operand() and following.text != "["
        short = name.rpartition(".")[2]
        known = is_function(name) or short in FUNCTIONS or known_as(name)
        if name in _PRINTED and following.text == "(" and not following.blank:
            return self.loose
        return following.text in ("(", "{") and bool(known) and not names.is_namespace(name)

    def is_element(self, node: Node) -> bool:
        """Whether a name with an index is an element that multiplies a bracket: `y_i(w^T x_i + b)`.

        It is where a sum is over the index; else where it is one letter and the bracket has more in it than a
        name, as `S_0(1 + r)` has and `y_i(t)` has not.
        """
        found = subscripts(node)
        if node.text in self.own or node.base in _UNKNOWN or not found:
            return False
        if any(len(one.letter) > 1 for one in found):
            return False
        bound = bound_letters([t.text for t in self.tokens])
        if all(one.letter in bound for one in found):
            return True
        more = self.peek(2).text not in (")", ",") and not self.listed_next()
        if (len(node.base) == 1 or is_greek(node.base)) and node.base not in _PRINTED and more:
            self.remarks.append(f"{node.text}(…) is a product")
            return True
        return False

    def is_called(self, name: str, token: Token) -> bool:
        """Whether brackets behind a name that is no known function call it: `f(x + 1)`, `y(t)`, not
        `x(x + 1)`."""
        if name in self.own:
            return self.bound.get(name, True)
        if (
            name in _UNKNOWN
            or "." in name
            or not self.loose
            or (len(name) > 1 and not is_greek(name) and name != "lam")
        ):
            return True
        # `a(x)` is a call or a product. A letter that the same text has without brackets elsewhere is a
        # number: in `a(x) + a` a multiplies. Longer names are functions, and `f`, `g`, `h` always; the
        # reading of other letters is said.
        inner, after = self.peek(1), self.peek(2).text
        if self.listed_next():
            return True
        # What is differentiated elsewhere in the text is a function: `q'(t)^2 - q(t)^2`.
        places = [k for k, t in enumerate(self.tokens[:-1]) if t.text == token.text]
        if any(
            self.tokens[k + 1].text == "'" and is_derivative(self.tokens, k + 1, self.functions)
            for k in places
        ):
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
        """Say what several letters are; ask for `sinx`, `Wx` and `cumsum x`; refuse the dy of `dy/dx`."""
        if name in self.own or not (name.isascii() and name.isalpha()):
            return
        # `sinx` is a valid name, and hardly ever meant as one. Guessing would be wrong for somebody, so
        # both readings are shown.
        for function in ("sin", "cos", "tan", "exp", "log", "ln", "sqrt"):
            before, _, after = name.partition(function)
            if function in name and len(before + after) == 1:
                said = f"{before} {function} {after}".strip()
                hint = f"write {said}; for the name say its value, --{name} VALUE"
                raise self.asks(f"`{name}` is one name, or {said}?", token, hint)
        if len(name) > 2 and not is_greek(name) and names.is_function(name):
            follows = self.next.kind in ("name", "number", "command") and self.begins_operand()
            if follows and self.next.blank:
                hint = f"write {name}(…); for the name say its value, --{name} VALUE"
                raise self.asks(f"`{name}` is a function, or a name?", token, hint)
        if token.font or len(name) != 2 or is_greek(name):
            return
        if name[0].isupper() and name[1].islower() and self.vectors is None:
            hint = f"write {name[0]} {name[1]}; for the name say its value, --{name} VALUE"
            raise self.asks(
                f"`{name}` is one name, or the product {name[0]} {name[1]}?", token, hint
            )
        hint = f"write {name[0]} {name[1]}; for the name say its value, --{name} VALUE"
        raise self.asks(f"`{name}` is one name, or the product {name[0]} {name[1]}?", token, hint)

    def arguments(self) -> list[Node]:
        """What stands in the brackets of a call."""
        self.take()
        bars, self.bars = self.bars, ""
        found: list[Node] = []
        while not self.accept(")"):
            if found and not self.accept(";"):
                self.expect(",")
            if self.next.kind == "name" and self.peek(1).text == "=":
                keyword = self.take()
                self.take()
                found.append(Node("keyword", keyword, keyword.text, (self.choice(),)))
            else:
                found.append(self.choice())
        self.bars = bars
        return found

    def function(self, name: str, token: Token, base: tuple[Node, ...] = ()) -> Node:
        """A function with its power, its base, and its argument, in brackets or not: `sin^2 x`, `log_2 x`."""
        each = self.tokens[self.at - 1].text == "."
        base = base or (self.subscript() if name in BARE else ())
        power: Node | None = None
        raised = self.next
        if raised.kind == "power":
            power = self.superscript()
        elif self.accept("**"):
            if self.next.kind in ("name", "number"):
                simple = self.take()
                power = Node(simple.kind, simple, simple.text)
            else:
                power = self.exponent()
        if self.next.text == "(":
            arguments = self.arguments()
        elif self.is_braced_bracket():  # \\max{\left(x, y\right)}
            self.take()
            arguments = self.arguments()
            self.expect("}")
        else:
            if not (self.begins_operand() or self.next.text in ("-", "+")):
                raise self.error(f"the argument of `{name}` is missing", token, f"as in {name} x")
            arguments = [self.bare_argument()]
            if name in ("max", "min", "sum", "prod") and self.next.text == ",":
                raise self.error(f"the arguments of `{name}` stand in brackets", token)
        # `sin^2 x` is sin(x)**2, but `sin^-1 x` is the inverse function: that is how both are written.
        # For functions that have no inverse with a name of its own it could be either, and both readings
        # are shown.
        if power is not None and power.kind == "neg" and power.only.text == "1":
            if name not in INVERSES:
                raise self.error(f"{name}^-1 is 1/{name}, or the inverse function?", token)
            name, power = f"a{name}", None
        text = _PRINTED.get(name, name)
        if text == "sigmoid" != name:
            self.remarks.append(f"{name} is the sigmoid")
        if name == "sinc":
            self.remarks.append("sinc(x) is sin(pi x)/(pi x); of the other write sin(x)/x")
        if text == "special.ndtr" != name and token.text != "N":
            self.remarks.append(f"{name} is special.ndtr, the normal distribution's")
        call = Node("call", token, text + "." * each, (*arguments, *base), "base" * bool(base))
        return call if power is None else Node("power", raised, "⊙", (call, power))

    def is_braced_bracket(self) -> bool:
        """Whether a brace follows with nothing in it but brackets."""
        if self.next.text != "{" or self.peek(1).text != "(":
            return False
        depth = 0
        for k, token in enumerate(self.tokens[self.at + 1 :]):
            depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
            if depth == 0:
                return self.peek(k + 2).text == "}"
        return False

    def bare_argument(self) -> Node:
        """`2x` of `sin 2x cos x`: all that stands close together, up to a function, a bracket or a sign."""
        token = self.next
        if self.sign():
            return Node("neg", token, "", (self.bare_argument(),))
        if self.next.kind == "name" and self.next.text in BARE and self.next.text not in self.own:
            return self.power()
        value = self.power()
        # `sin 2x cos x` is sin(2x)*cos(x), and `sin x (1 + y)` is sin(x)*(1 + y). An argument without
        # brackets takes all factors up to the next function or bracket.
        while self.begins_operand() and self.next.text not in ("(", "[", "|", "‖", "⟨", "⌊", "⌈"):
            following = self.next
            if self.differentials and is_differential(following):
                break
            if (following.text in BARE and following.text not in self.own) or (
                following.kind == "command" and not is_greek(following.text)
            ):
                break
            value = Node("product", following, "", (value, self.power()))
        return value
