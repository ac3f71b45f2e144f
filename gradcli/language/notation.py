"""The tokens of mathematics as people write it: one token for the many ways to write a sign."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Container, Mapping
from types import MappingProxyType
from typing import NamedTuple

from gradcli.language import names
from gradcli.language.foreign_names import CONSTANTS
from gradcli.language.math_source import formula
from gradcli.language.math_symbols import (
    BARE,
    BOLD,
    FONTS,
    INDEX_WORDS,
    SCRIPTS,
    SIGNS,
    SPACES,
    SYMBOLS,
    WORDS,
)
from gradcli.language.tokens import KEYWORDS

_MATRICES = frozenset(
    ("‖", "tr", "Tr", "trace", "det", "diag", "logdet")
)  # beside these capitals are matrices
# Words of letters that are no product of variables.
NO_PRODUCT = frozenset((*BARE, *CONSTANTS, *KEYWORDS))
_ENDS = frozenset("+ - ) = , } ;".split()) | {"\n"}  # of a product
# Small signs below a line, and letters above it; ᵀ is a transpose.
_BELOW = "₀-₉₊₋₌₍₎ₐₑₒₓₕₖₗₘₙₚₛₜᵢᵣᵤᵥⱼᵦᵧᵨᵩᵪ"
_RAISED = "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐᵒᵖʳˢᵗᵘᵛʷˣʸᶻᵝᵞᵟᵠᵡᴬᴮᴰᴱᴳᴵᴶᴷᴸᴹᴺᴼᴾᴿᵁᵂ⁼⁽⁾"
_LETTER = rf"[^\W\d_⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿᵀ½¼¾⅐-⅞{_BELOW}{_RAISED}]"
_LATIN = rf"(?:(?![α-ωΑ-Ω]){_LETTER})"
# In this order: blanks, LaTeX's spaces and sizes of brackets, which say nothing; a number (1{,}5 and
# 1\,000 are LaTeX's); a text in quotes; a name, of which Greek letters end before Latin ones (αx is α x),
# Latin ones before Greek ones (Xβ), and dots go on (np.exp); what is raised, and what is lowered; a
# command; a sign, the long ones first.
_TOKEN = (
    r"(?P<blank>(?:[^\S\n]|~|\\[,;!:> ]"
    rf"|\\(?:(?:left|right)\.|(?:left|right|[bB]igg?[lrm]?|middle|{SPACES})(?![A-Za-z])))*)"
    r"(?:(?P<number>0[xX][\da-fA-F]+|(?:(?:\d{1,3}(?:\\,\d{3})+(?!\d)|\d+(?:_\d{3})*(?!_?\d)|\d+)"
    r"(?:\{,\}\d+|\.(?![*^/])\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?:[jJ](?!\w))?)"
    r"|(?P<string>\"[^\"\n]*\"|(?<=[(,=\[ ])'[^'\n]*')"
    r"|(?P<name>∞|[α-ω](?:\d|_\w+)*(?![\w(])|[α-ω](?=[A-Za-z])"
    rf"|{_LETTER}(?:{_LATIN}|(?<=[α-ωΑ-Ω]){_LETTER}|\d|_(?=\w))*(?:\.[A-Za-z_]\w*)*)"
    rf"|(?P<power>[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ{_RAISED}]+)|(?P<below>[{_BELOW}]+)|\\(?P<command>[A-Za-z]+)"
    r"|(?P<sign>\\\\|\\[|{}%_#&$]|\*\*|//|<=|>=|==|!=|\|\||&&|\.[*^/]|.|\n))"
)


_SIZES = r"\\(?:(?:left|right)\.|left|right|[bB]igg?[lrm]?|middle)\s*"


class Token(NamedTuple):
    """kind: number, string, name, power (raised digits), command, transpose, sign, or end. font: the
    command that sets it, as `mathbf`."""

    kind: str
    text: str
    blank: bool  # before it
    start: int
    end: int
    font: str = ""


def tokens(source: str) -> list[Token]:
    """The tokens of a text, as they stand there."""
    text = formula(source)
    text = re.sub("⁽([ⁱⁿ⁰¹²³⁴⁵⁶⁷⁸⁹])⁾", lambda m: f"_{unicodedata.normalize('NFKC', m[1])} ", text)
    return unbraced(_on_the_line([_token(match) for match in re.finditer(_TOKEN, text)]))


def of_matrices(
    found: list[Token],
    own: Collection[str],
    letters: Letters | None = None,
    ranks: Mapping[str, int] = MappingProxyType({}),
    bound: Container[str] = (),
    speaks: bool = False,
) -> tuple[list[Token], set[str] | None, set[str]]:
    """The tokens where capitals are matrices, `Ax` as A x; the names of vectors: small Latin letters that
    are transposed, alone or in brackets, or that follow a matrix; those of matrices with an index, as
    Σ_k. (The tokens, None, none) elsewhere.

    letters: which letters are variables beside those of `own`. ranks: of names where these are known.
    bound: the indices of sums. speaks: whether a capital before a letter is one, as another text says.
    """
    if letters is not None:
        found = [part for i in range(len(found)) for part in letters.apart(found, i, own)]
    # Whether `Ax` is one name or the product of a matrix with a vector, the letters do not say; the rest
    # of the text does. A transpose, a determinant, a norm or bold letters mean that it is linear algebra;
    # then capitals are matrices and single letters their vectors.
    normal = _of_normal_densities(found)
    products = _is_norm_of_product(found) or _is_element_of_product(found)
    products |= speaks and any(map(_is_capital_before, found, found[1:]))
    if not (any(map(speaks_of_matrices, found)) or products or normal[1]):
        return [part for token in found for part in _letters(token, own, True)], None, set()
    written = [part for token in found for part in _letters(token, own)]
    counts = numbers(written) | {n for n, rank in ranks.items() if not rank}
    columns = {n for n, rank in ranks.items() if rank == 1}
    # What is a number by its place says nothing of its neighbours, as N of `\\sum_{i=1}^N (t_i - y_i)`.
    # A capital that is a vector stands among them as any small letter.
    parts = [
        t._replace(kind="number", text="1") if t.kind == "name" and t.text in counts
        else t._replace(text="v") if t.kind == "name" and t.text in columns
        else t
        for t in written
    ]  # fmt: skip
    bold = {
        t.text for t in parts if t.font == "vec" or (t.font in BOLD and not t.text[:1].isupper())
    }
    # \\mathbf{x}_n is a vector of many
    named = [indexed(parts, i) for i, t in enumerate(parts) if t.text in bold]
    bold |= {one.name for one in named if one is not None}
    matrices = _indexed_matrices(parts, bound) | normal[1]
    vectors = set(bold)
    certain = bold | columns | normal[0]
    ends = {one.end - 1: one.name for i in range(len(parts)) if (one := indexed(parts, i))}
    opened: list[int] = []
    inside: list[Token] = []  # what may be transposed by the next token
    for i, token in enumerate(parts):
        # Three signs of a vector: it stands behind a transpose or a matrix (A x), it is transposed itself
        # (x^T y), or it stands before a transposed one that ends a product, as u in `u v^T`.
        k = i - 1 - (i > 1 and parts[i - 1].text == "@")  # A x, and A@x
        before, after = parts[k] if i else token, parts[i + 1 : i + 3]
        if token.kind == "transpose" and not any(
            is_matrix(t.text) or t.text in matrices for t in inside
        ):
            names = {t.text for t in inside if t.kind == "name"}
            vectors |= names
            certain |= _greek_terms(inside)  # (\\mu_2 - \\mu_1)^T is of vectors
        if (greek := _greek_vector(parts, i)) is not None:
            certain.add(greek)
        vectors |= _terms_behind(parts, i)
        if token.text == "diag" and [t.text for t in parts[i + 1 : i + 4 : 2]] == ["(", ")"]:
            vectors |= {t.text for t in parts[i + 2 : i + 3] if not is_matrix(t.text)}
        if before.kind == "transpose" and token.text in _OF_ELEMENTS:
            vectors |= _only_letter(parts, i + 1)  # p of y^T log(p)
        if token.kind == "name" and (token.kind, token.text) != ("name", "percent"):
            base = _base(parts, k)
            # (A^T A + I)^{-1} b; the (x^T A x) of `(x^T A x) b` is a number, and ends in a vector.
            base -= base > 0 and parts[base].text == ")"
            base = _matrix_call(parts, base)  # eye of (A + l*eye(3)) x
            word = ends.get(k, "") if ends.get(k) in matrices else parts[base].text
            known = is_matrix(word) or word in matrices or word in _MATRIX_CALLS
            if before.kind == "transpose" or known:
                vectors.add(token.text)
                one = indexed(parts, i)  # h_t of W_{hh} h_t
                vectors |= {one.name} if one is not None and one.end > i + 1 else set()
            is_last = after[1].text in _ENDS if after[1:] else True
            if after and after[0].kind == "transpose" and is_last:
                vectors.add(parts[i - 1 - (before.text in ("*", "·"))].text)  # u of u v^T
        inside = [token]
        if token.text == "(":
            opened.append(i)
        elif token.text == ")" and opened:
            inside = parts[opened.pop() : i]
    return written, {
        n
        for n in vectors | certain
        if n in certain or (n.isascii() and n.islower() and n not in BARE and not is_greek(n))
    }, matrices  # fmt: skip


def numbers(found: list[Token]) -> set[str]:
    r"""The capitals that are numbers by their places: they limit a sum, as N of `\sum_{i=1}^N`, or stand
    nowhere but in denominators of letters and numbers, as N of `\frac{1}{2N}`: nobody divides by a matrix.
    """
    texts = ["", *(t.text for t in found)]
    limits = {k for start in _upper_limits(texts) for k in _operand(texts, start + 1)}
    below = {k for start in _denominators(texts) for k in _plain(found, _operand(texts, start))}
    names = {texts[k] for k in range(1, len(texts)) if found[k - 1].kind == "name"}
    places = {name: {k for k, text in enumerate(texts) if text == name} for name in names}
    return {n for n, at in places.items() if is_matrix(n) and (at & limits or at <= below)}


def _denominators(texts: list[str]) -> list[int]:
    """Where the denominators of fractions begin."""
    found = [k + 1 for k, text in enumerate(texts) if text == "/"]
    fractions = [k for k, text in enumerate(texts) if text in ("frac", "dfrac", "tfrac")]
    return found + [_operand(texts, k + 1).stop for k in fractions]


def _operand(texts: list[str], start: int) -> range:
    """The places of a bracket with what is in it; of one token, where none begins there."""
    depth = 0
    for k in range(start, len(texts)):
        depth += (texts[k] in ("{", "(", "[")) - (texts[k] in ("}", ")", "]"))
        if depth <= 0:
            return range(start, k + 1)
    return range(start, len(texts))


def _plain(found: list[Token], places: range) -> range:
    """The places of a denominator of letters, numbers and signs, which is no power's base; none of others."""
    after = found[places.stop - 1].text if places.stop <= len(found) else ""
    signs = {"{", "}", "(", ")", "+", "-", "*", "·", "×"}
    plain = all(
        found[k - 1].kind in ("name", "number") or found[k - 1].text in signs for k in places
    )
    transposed = places.stop <= len(found) and found[places.stop - 1].kind == "transpose"
    return places if plain and not transposed and after not in ("_",) else range(0)


# Functions of each element, whose argument behind a transposed vector is a vector.
_OF_ELEMENTS = frozenset("log ln exp sin cos tanh sqrt abs sigmoid relu log1p".split())


def _only_letter(parts: list[Token], i: int) -> set[str]:
    """The letter of which a function is: `log(p)`, `\\log p`, `log softmax(1 - p)`; none of more letters."""
    texts = [*(t.text for t in parts), ""]
    while i < len(parts) and (
        texts[i] in _OF_ELEMENTS or (texts[i + 1] == "(" and texts[i] != "(")
    ):
        i += 1
    if texts[i] != "(":
        return {texts[i]} if i < len(parts) and parts[i].kind == "name" else set()
    end = next((k for k in range(i, len(parts)) if texts[k] == ")"), i)
    named = [k for k in range(i, end) if parts[k].kind == "name" and texts[k + 1] != "("]
    letters = {texts[k] for k in named} - _OF_ELEMENTS
    return letters if len(letters) == 1 else set()


def _greek_terms(inside: list[Token]) -> set[str]:
    """The Greek letters that are whole terms of a sum in a bracket; none of a product's."""
    found: set[str] = set()
    i = 1
    while i < len(inside):
        one = indexed(inside, i)
        if one is None or inside[i - 1].text not in ("(", "+", "-"):
            return set()
        found.add(one.name)
        i = one.end + 1
        if one.end < len(inside) and inside[one.end].text not in ("+", "-", ")"):
            return set()
    return found


def _of_normal_densities(found: list[Token]) -> tuple[set[str], set[str]]:
    r"""The vectors and the matrices of `\mathcal{N}(x \mid \mu, \Sigma)`, whose Σ is one of covariances."""
    vectors: set[str] = set()
    matrices: set[str] = set()
    for i, token in enumerate(found):
        if token.font not in SCRIPTS or token.text.partition("_")[0] != "N":
            continue
        places = _operand([t.text for t in found], i + 1)
        if len(places) < 2:
            continue
        parts: list[list[int]] = [[]]
        for k in places[1:-1]:
            if found[k].text in (",", ";", "|"):
                parts.append([])
            else:
                parts[-1].append(k)
        if len(parts) != 3:
            continue
        names = [[one.name for k in part if (one := indexed(found, k))] for part in parts]
        capitals = {name for name in names[2] if is_matrix(name.partition("_")[0]) and name != "I"}
        matrices |= capitals
        if capitals:
            whole = [part for part in range(2) if len(names[part]) == 1]
            vectors |= {names[part][0] for part in whole}
    return vectors, matrices


def _indexed_matrices(parts: list[Token], bound: Container[str]) -> set[str]:
    """The capitals with a letter below that are matrices: they are transposed or inverted, stand behind a
    transpose, or before a small letter where nothing binds what is below: W_xh. N_k of `x^T y / N_k` is a
    number."""
    found = set()
    for i in range(len(parts)):
        one = indexed(parts, i)
        stem, _, index = one.name.partition("_") if one is not None else ("", "", "")
        if one is None or not is_matrix(stem) or re.fullmatch(r"[A-Za-z]\w{0,2}", index) is None:
            continue
        behind = indexed(parts, one.end)
        if not any(letter in bound for letter in index):
            letter = behind.name.partition("_")[0] if behind is not None else ""
            small = len(letter) == 1 and letter.islower() and letter.isascii()
            found |= {one.name} if small or stem in ("W", "U") else set()
        end = one.end
        if i and [parts[i - 1].text, *(t.text for t in parts[end : end + 1])] == ["(", ")"]:
            end += 1
        after = [t.text for t in parts[end : end + 4]]
        transposed = parts[end].kind == "transpose" if end < len(parts) else False
        inverted = after[:1] == ["⁻¹"] or after == ["**", "{", "-", "1"]
        if transposed or inverted or (i and parts[i - 1].kind == "transpose"):
            found.add(one.name)
    return found


class Indexed(NamedTuple):
    r"""The name of a letter with its index, `\theta_1` or `q_{1}`, and the place of the token behind it."""

    name: str
    end: int


def _terms_behind(parts: list[Token], i: int) -> set[str]:
    """The small letters that are terms of a sum in a bracket behind a matrix: y and p of `X^T (y - p)`.

    None where a number is a term: `A (1 - t)`.
    """
    before = parts[i - 1] if i else parts[i]
    matrix = i and (
        is_matrix(before.text)
        or (before.kind == "transpose" and i > 1 and is_matrix(parts[i - 2].text))
    )
    if parts[i].text != "(" or parts[i].kind != "sign" or not matrix:
        return set()
    depth, starts, letters = 0, True, set()
    for k in range(i, len(parts)):
        token = parts[k]
        sign = token.text if token.kind == "sign" else ""
        depth += (sign in ("(", "[", "{")) - (sign in (")", "]", "}"))
        if not depth:
            break
        if depth == 1 and starts and k > i:
            alone = parts[k + 1].text in ("+", "-", ")") if k + 1 < len(parts) else False
            if token.kind == "number" and alone:
                return set()
            if token.kind == "name" and alone:
                letters.add(token.text)
        starts = k == i or (depth == 1 and sign in ("+", "-"))
    return letters


def letter_name(token: Token) -> str:
    r"""What a letter is called here: `\vartheta` is theta; `\lambda`, a word of the language, is lam."""
    if token.kind != "command":
        return token.text
    return "lam" if token.text == "lambda" else token.text.removeprefix("var")


def indexed(found: list[Token], i: int) -> Indexed | None:
    """The letter that begins at a token, with its index, in braces or without; None where there is none.

    None too where its index is more than a name or a number, as that of `x_{i+1}`.
    """
    token = found[i] if i < len(found) else None
    if token is None or not is_letter(token):
        return None
    name = letter_name(token)
    texts = [t.text for t in found[i + 1 : i + 5]]
    if texts[:1] != ["_"]:
        return Indexed(name, i + 1)
    braced = texts[1:2] == ["{"]
    below = found[i + 2 + braced : i + 3 + braced]
    if not below or below[0].kind not in ("name", "number", "command"):
        return None
    if braced and texts[3:] != ["}"]:
        return None
    return Indexed(f"{name}_{below[0].text}", i + 3 + 2 * braced)


def is_letter(token: Token) -> bool:
    r"""Whether a token is a name, or the command of a letter: `x`, `\theta`, `\hbar`."""
    if token.kind == "command":
        return is_greek(token.text) or token.text in SYMBOLS
    return token.kind == "name"


def _greek_vector(parts: list[Token], i: int) -> str | None:
    r"""The name of a small Greek letter that is a vector: `\beta^T`, `X\beta`, `y^T\alpha`; None elsewhere.

    A Greek letter is a number where it multiplies what follows, as in `x^T \lambda x`, or stands in a bracket
    that is transposed, as in `(\lambda x)^T`: there a Latin one is a vector.
    """
    token, one = parts[i], indexed(parts, i)
    letter = token.text.removeprefix("var")
    if one is None or not ("α" <= letter <= "ω" or (is_greek(letter) and letter.islower())):
        return None
    after = parts[one.end] if one.end < len(parts) else None
    if after is not None and after.kind == "transpose":
        return one.name
    i -= i > 1 and parts[i - 1].text == "@"
    before = parts[i - 1] if i else token
    follows = before.kind == "transpose" or is_matrix(parts[_base(parts, i - 1)].text if i else "")
    ends = after is None or after.text in _ENDS or after.text in ("‖", "|", "]", "\n")
    return one.name if follows and ends else None


def speaks_of_matrices(token: Token) -> bool:
    """Whether a token says that a text is of vectors and matrices."""
    return (
        token.kind == "transpose"
        or token.text in _MATRICES
        or (token.font in BOLD and token.kind in ("name", "command"))
    )


def _is_norm_of_product(found: list[Token]) -> bool:
    """Whether a capital stands before a letter in a norm: `norm(A x - b)`, which is no norm of numbers."""
    starts = [i for i, t in enumerate(found) if t.text == "norm" and t.kind == "name"]
    for start in starts:
        depth = 0
        for token, after in zip(found[start + 1 :], found[start + 2 :], strict=False):
            depth += (token.text == "(") - (token.text == ")")
            if depth <= 0:
                break
            small = after.kind == "name" and len(after.text) == 1 and not is_matrix(after.text)
            if token.kind == "name" and is_matrix(token.text) and small:
                return True
    return False


def _is_element_of_product(found: list[Token]) -> bool:
    """Whether a bracket with an index has a product of matrices in it: `(A x - b)_i`, `(X W)_{ik}`."""
    opened: list[int] = []
    for i, token in enumerate(found):
        if token.kind == "sign" and token.text in ("(", "["):
            opened.append(i)
        elif token.kind == "sign" and token.text in (")", "]") and opened:
            inside = found[opened.pop() + 1 : i]
            below = [t for t in found[i + 1 : i + 4] if t.text != "{"]
            indexed = [t.text for t in below[:1]] == ["_"] and [t.kind for t in below[1:2]] == [
                "name"
            ]
            if indexed and any(map(_is_capital_before, inside, [*inside[1:], token])):
                return True
            # (X W)_{ik} has rows and columns
            if indexed and len(below[1].text) == 2 and any(map(_are_capitals, inside, inside[1:])):
                return True
    return False


def _is_capital_before(token: Token, after: Token) -> bool:
    """Whether a capital stands before a letter: A of `A x` and of `Ax`."""
    if token.kind != "name":
        return False
    if re.fullmatch("[A-Z][a-z]", token.text) and not token.font:
        return True
    return is_matrix(token.text) and after.kind == "name" and after.text[:1].islower()


def _are_capitals(token: Token, after: Token) -> bool:
    """Whether a capital stands before another: `X W`."""
    return all(t.kind == "name" and is_matrix(t.text) for t in (token, after))


def _base(parts: list[Token], i: int) -> int:
    """Where that stands whose exponent ends in a token: A of `A^2`, `A^{-1}`, `A⁻¹`; i if it ends none."""
    start = i
    if parts[i].text == "}":
        while start > 0 and parts[start].text != "{":
            start -= 1
    if parts[i].kind == "power":
        return max(i - 1, 0)
    return start - 2 if start > 1 and parts[start - 1].text == "**" else i


_MATRIX_CALLS = frozenset("eye inv diag pinv outer".split())


def _matrix_call(parts: list[Token], i: int) -> int:
    """Where the function stands whose call ends in a token, if it gives a matrix; else i."""
    start, depth = i, 0
    while start > 0:
        depth += (parts[start].text == ")") - (parts[start].text == "(")
        if not depth:
            break
        start -= 1
    return start - 1 if start < i and parts[start - 1].text in _MATRIX_CALLS else i


def is_derivative(found: list[Token], i: int, functions: Container[str] = ()) -> bool:
    """Whether primes are of a function: `f'(x)`, not `x'(A + B)`; functions: those of which all are."""
    name = i - 1
    while name > 0 and found[name].text == "'":
        name -= 1
    while i < len(found) and found[i].text == "'":
        i += 1
    texts = [t.text for t in found[i : i + 3]]
    if name >= 0 and found[name].text in functions:
        return texts[:1] == ["("]
    return texts[:1] == ["("] and texts[2:] == [")"] and found[i + 1].kind in ("name", "number")


def is_differential(token: Token) -> bool:
    """Whether a token is the dx of an integral."""
    return token.kind == "name" and re.fullmatch(r"d[^\W\d_]?", token.text) is not None


def fraction(text: str) -> str | None:
    """`1/2` of `½`; None of other signs."""
    if len(text) != 1 or unicodedata.category(text) != "No":
        return None
    return unicodedata.normalize("NFKC", text).replace("⁄", "/")


def is_matrix(name: str) -> bool:
    """Whether a name is a capital, Latin or Greek."""
    letter = name.rstrip("0123456789_")
    return name[:1].isupper() and (len(letter) == 1 or is_greek(letter))


def is_greek(name: str) -> bool:
    """Whether a name is that of a Greek letter."""
    letter = name.removeprefix("var").upper().replace("LAMBDA", "LAMDA")  # as Unicode spells it
    return any(f"GREEK {size} LETTER {letter}" in _GREEK for size in ("SMALL", "CAPITAL"))


def greek_letter(name: str) -> str | None:
    """σ of `sigma`, Σ of `Sigma`; None of other names."""
    return next((letter for letter in _LETTERS if greek_name(letter) == name), None)


def greek_name(letter: str) -> str | None:
    """`sigma` of σ, `Sigma` of Σ; None of other letters."""
    if letter not in _LETTERS:
        return None
    _, size, _, name = unicodedata.name(letter).split(maxsplit=3)
    name = name.replace("LAMDA", "LAMBDA")  # as Unicode spells it
    return name.capitalize() if size == "CAPITAL" else name.lower()


_LETTERS = [c for c in map(chr, range(0x391, 0x3CA)) if unicodedata.name(c, "")]
_GREEK = frozenset(map(unicodedata.name, _LETTERS))


def with_bars(found: list[Token], double: str, source: str) -> list[Token]:
    """The tokens with `||` as one of `‖`, `|` twice, "or"."""
    if double == "‖":
        return found
    parts = []
    for token in found:
        if source[token.start : token.end] != "||":
            parts.append(token)
        elif double == "or":
            parts.append(token._replace(kind="name", text="or"))
        else:
            second = token._replace(text="|", blank=False, start=token.start + 1)
            parts += [token._replace(text="|"), second]
    return parts


def _token(match: re.Match[str]) -> Token:
    kind = str(match.lastgroup)
    text = SIGNS.get(match[kind], match[kind]) if kind != "name" else match[kind]
    if kind == "number":
        text = text.replace("\\,", "")
        if not re.search(r"\{,\}\d{3}$", text):  # 1{,}000 is asked by the parser
            text = text.replace("{,}", ".")
    elif text != match[kind]:  # another way to write it
        kind = "command" if text.isalpha() else "sign"
        kind = "name" if text in WORDS else kind
    blank = match["blank"]
    if "\\" in blank:  # of f\left(x\right) there is none
        blank = re.sub(_SIZES, "", blank)
    return Token(kind, text, bool(blank), match.end("blank"), match.end())


def _on_the_line(found: list[Token]) -> list[Token]:
    """The tokens with `x_i`, `_{i=1}` and `^{-z}` for the small signs of `xᵢ`, `ᵢ₌₁` and `⁻ᶻ`."""
    parts: list[Token] = []
    for token in found:
        small = token.kind == "below" or (token.kind == "power" and set(token.text) & {*_RAISED})
        if not small:
            parts.append(token)
            continue
        plain = unicodedata.normalize("NFKC", token.text).replace("−", "-")
        inside = [
            token._replace(kind="number" if one.isdigit() else "name" if one.isalpha() else "sign",
                           text=one, blank=False)
            for one in re.findall(r"\d+|[^\W\d]+|.", plain)
        ]  # fmt: skip
        before = parts[-1] if parts else None
        alone = token.kind == "below" and len(inside) == 1
        if alone and before is not None and before.kind == "name" and before.end == token.start:
            parts[-1] = before._replace(text=f"{before.text}_{plain}", end=token.end)
            continue
        script = token._replace(kind="sign", text="_" if token.kind == "below" else "**")
        opened, closed = (token._replace(kind="sign", text=brace) for brace in "{}")
        parts += [script, *inside] if alone else [script, opened, *inside, closed]
    return parts


def unbraced(found: list[Token]) -> list[Token]:
    """The tokens with x for the `{x}` of `{x}_{i}` and `{x}^2`."""
    parts: list[Token] = []
    i = 0
    while i < len(found):
        texts = [t.text for t in found[i : i + 4]]
        before = parts[-1] if parts else None
        follows = before is not None and (before.kind == "command" or before.text in ("**", "_"))
        if (
            texts[:1] == ["{"]
            and texts[2:] in (["}", "_"], ["}", "**"])
            and not follows
            and found[i + 1].kind == "name"
        ):
            parts.append(found[i + 1])
            i += 3
        else:
            parts.append(found[i])
            i += 1
    return parts


def in_one_font(found: list[Token]) -> list[Token]:
    r"""The tokens with names in place of `\mathbf{x}`, `\vec x` and `\operatorname{log\_softmax}`."""
    parts: list[Token] = []
    i = 0
    while i < len(found):
        token = found[i]
        i += 1
        if token.kind != "command" or token.text not in FONTS:
            parts.append(token)
            continue
        starred = i < len(found) and found[i].text == "*" and token.text == "operatorname"
        i += starred
        if i < len(found) and found[i].text == "{":
            end = next((k for k in range(i, len(found)) if found[k].text == "}"), len(found))
            inside = found[i + 1 : end]
            i = end + 1
            if inside and all(t.kind == "name" or t.text in ("_", "\\_") for t in inside):
                text = "".join(t.text.strip("\\") for t in inside)
                inside = [inside[0]._replace(text=text, end=inside[-1].end)]
        else:
            inside, i = found[i : i + 1], i + 1
        alone = inside[:1]
        if alone and not alone[0].blank:
            inside[0] = alone[0]._replace(blank=True)
        parts += [t._replace(font=token.text) if t.kind in ("name", "command", "number") else t
                  for t in inside]  # fmt: skip
    return parts


def with_transposes(
    found: list[Token], own: Container[str], functions: Container[str]
) -> list[Token]:
    r"""The tokens with one for each of `'`, `ᵀ`, `^T`, `^{\top}`.

    own: names that mean what they are. functions: those that the text defines by f(x) = …, whose primes
    are derivatives.
    """
    texts = ["", *[t.text for t in found]]
    # T is a transpose only as an exponent, and only if the text has no other T: `x^T + T` has a number T.
    # The upper limit of `\sum_{t=1}^T` is no exponent. In `x^Ty` the tokenizer has read one name, Ty,
    # which is split.
    exponents = {i for i, t in enumerate(texts) if t == "**" or (t == "{" and texts[i - 1] == "**")}
    limits = _upper_limits(texts)
    named = "T" in own or any(t == "T" and i - 1 not in exponents for i, t in enumerate(texts))
    parts: list[Token] = []
    i = 0
    while i < len(found):
        token, following = found[i], texts[i + 2 : i + 5]
        i += 1
        if i in limits:
            pass
        elif i > 1 and (
            token.text == "ᵀ" or (token.text == "'" and not is_derivative(found, i - 1, functions))
        ):
            token = token._replace(kind="transpose")
        elif token.text == "**" and not named and following[:1] == ["T"]:
            token = token._replace(kind="transpose", text="ᵀ", end=found[i].end)
            i += 1
        elif token.text == "**" and not named and following in (["{", "T", "}"], ["(", "T", ")"]):
            token = token._replace(kind="transpose", text="ᵀ", end=found[i + 2].end)
            i += 3
        elif (
            token.text == "**"
            and not named
            and re.fullmatch("T([a-z]|[A-Z]\\w?)", "".join(following[:1]))
        ):
            rest = found[i]  # x^Ty
            found[i] = rest._replace(text=rest.text[1:], start=rest.start + 1)
            token = token._replace(kind="transpose", text="ᵀ", end=rest.start + 1)
        parts.append(token)
    return parts


def _upper_limits(texts: list[str]) -> set[int]:
    r"""Where a `^` begins the upper limit of a sum, and no power: that of `\sum_{t=1}^T`."""
    found = set()
    for i, text in enumerate(texts):
        if text not in ("sum", "prod", "int") or texts[i + 1 : i + 2] not in (["_"], ["**"]):
            continue
        end = i + 2
        if texts[i + 2 : i + 3] == ["{"]:
            end = next((k for k in range(i, len(texts)) if texts[k] == "}"), len(texts))
        found |= {k for k in (i + 1, end + 1) if texts[k : k + 1] == ["**"]}
    return found


# Functions that are written into one word with what is beside them. Of those that begin alike the longer
# one is meant: `sinhx`. `log2x` and `asinx` have two readings, and are asked for.
_GLUED_FUNCTIONS = (
    "arcsin arccos arctan sinh cosh tanh sin cos tan cot sec csc exp sqrt log ln".split()
)
_ONE = rf"(?:{'|'.join(_GLUED_FUNCTIONS)})"
_GLUED = re.compile(
    rf"(?!a(?:sin|cos|tan)|.*log(?:2|10))[A-Za-z]?(?:{_ONE}\d*[A-Za-z])*{_ONE}(?:\d*[A-Za-z])?"
)
_GLUED_PART = re.compile(rf"{_ONE}|\d+|[A-Za-z]")


class Letters:
    """The letters that are variables of a text, so that `xy` can only be their product.

    named: variables without a value, as those of `f(x, y) = …`. alone: those that stand alone somewhere in
    the text. is_matrix: whether a name has a matrix for its value. remarks: what was read so, though nobody
    said it.
    """

    def __init__(
        self, found: list[Token], named: Collection[str], is_matrix: Callable[[str], bool]
    ) -> None:
        self.named, self.is_matrix = frozenset(named), is_matrix
        self.latex = any(t.kind == "command" or t.font for t in found)
        texts = [*[t.text for t in found], "", ""]
        self.below = _subscripts(texts)
        self.alone = {
            t.text
            for i, t in enumerate(found)
            if t.kind == "name" and len(t.text) == 1 and i not in self.below
            if texts[i + 1] not in ("(", "_") or (i and texts[i - 1] == "**")
        }
        self.alone |= {t.text[1] for t in found if re.fullmatch("d[a-z]", t.text)}  # of dx
        self.alone |= {"I"}  # the identity, beside a number
        # The dx of an integral and of a derivative is one sign.
        self.differentials = any(t.text in ("int", "∫", "d", "partial", "∂") for t in found)
        self.remarks: list[str] = []

    def apart(self, found: list[Token], i: int, own: Collection[str]) -> list[Token]:
        """The letters of a name of two or three, a token each, where all of them are variables."""
        token = found[i]
        text, after = token.text, found[i + 1].text if i + 1 < len(found) else ""
        if (parts := self.functions_apart(token, own, after, i)) is not None:
            return parts
        if "_" in text and token.kind == "name" and text not in own and not token.font:
            return self.indexed_apart(token, own)
        if (
            token.kind != "name"
            or not 2 <= len(text) <= 3
            or not (text.isascii() and text.isalpha())
        ):
            return [token]
        if i in self.below:
            return [token]
        if text in own or text in NO_PRODUCT or token.font or after in ("(", "_", "="):
            return [token]
        if text[0] == "d" and (self.differentials or after == "/" or found[i - 1].text == "/"):
            return [token]
        said = {*own, *self.named}
        if text[0] in said and len(text) == 2 and text[1].islower() and self.is_matrix(text[0]):
            said.add(text[1])
        euler = {"e"} if text[-1] == "e" and after == "**" else set()  # of x e^x
        if not {*text} <= said | self.alone | euler or is_greek(text):
            return [token]
        if not {*text} <= said:
            product = " ".join(text)
            self.remarks.append(
                f"{text} is the product {product}; a name of its own needs a value, --{text} VALUE"
            )
        return _each(token)

    def functions_apart(
        self, token: Token, own: Collection[str], after: str, i: int
    ) -> list[Token] | None:
        """x and cos of `xcos(…)`, cos, 3 and x of `cos3x`, sin x cos x of `sinxcosx`; None of other names.

        A letter in it has to be a variable of the text, or x, y or z: `cost` may be a name.
        """
        text = token.text
        if (
            token.kind != "name"
            or token.font
            or i in self.below
            or text in own
            or text in NO_PRODUCT
            or after in ("_", "=", "'")
            or names.is_function(text)
            or is_greek(text)
        ):
            return None
        parts = _GLUED.fullmatch(text) and _GLUED_PART.findall(text)
        if not parts or (parts[-1] in _GLUED_FUNCTIONS and after != "("):
            return None
        letters = {part for part in parts if len(part) == 1 and part.isalpha()}
        if not letters <= {*own, *self.named, *self.alone, *"xyz"}:
            return None
        said = " ".join(parts)
        said = re.sub(r"(?<=\d) (?=[a-z])", "", said)
        self.remarks.append(f"{text} is {said}; a name of its own needs a value, --{text} VALUE")
        made, start = [], token.start
        for k, part in enumerate(parts):
            kind = "number" if part.isdigit() else "name"
            apart = token.blank if not k else not parts[k - 1].isdigit()
            made.append(Token(kind, part, apart, start, start + len(part)))
            start += len(part)
        return made

    def indexed_apart(self, token: Token, own: Collection[str]) -> list[Token]:
        """x and W_1 of `xW_1`, k_B and T of `k_BT`: in LaTeX an index is one character.

        Elsewhere, and where the index may be a word, both have to be variables.
        """
        parts = re.fullmatch(r"(?:[A-Za-zα-ωΑ-Ω](?:_(?:\d+|[A-Za-z]))?)+", token.text)
        found = [*re.finditer(r"[A-Za-zα-ωΑ-Ω](?:_(?:\d+|[A-Za-z]))?", token.text)]
        if parts is None or not 2 <= len(found) <= 4:
            return [token]
        names = [match[0] for match in found]
        said = {*own, *self.named, *self.alone}
        known = all({name, name.partition("_")[0]} & said for name in names)
        # v_0t, k_BT and m_ec of LaTeX; not v_in, nor a word before the index, as CF_t has.
        head, index, *rest = re.split(r"_(\d+|.)", token.text, maxsplit=1)
        simple = len(head) == 1 and len("".join(rest)) == 1
        typeset = self.latex and simple and f"{index}{''.join(rest)}" not in INDEX_WORDS
        if not (known or typeset or token.text.startswith("k_B") or (simple and index.isdigit())):
            return [token]
        if not known:
            product = " ".join(names)
            self.remarks.append(
                f"{token.text} is the product {product}; "
                f"a name of its own needs a value, --{token.text} VALUE"
            )
        return [
            token._replace(text=match[0], blank=token.blank and not k,
                           start=token.start + match.start(), end=token.start + match.end())
            for k, match in enumerate(found)
        ]  # fmt: skip


def _subscripts(texts: list[str]) -> set[int]:
    """The places of what stands below a name: of `i` in `x_i`, of all of `{i,j+1}` in `A_{i,j+1}`."""
    found: set[int] = set()
    for i, text in enumerate(texts):
        if text != "_":
            continue
        found.add(i + 1)
        if texts[i + 1] == "{":
            end = next((k for k in range(i, len(texts)) if texts[k] == "}"), len(texts))
            found |= set(range(i + 1, end))
    return found


def _each(token: Token) -> list[Token]:
    """A token for each letter of a name."""
    start = token.start
    return [
        Token("name", letter, token.blank and not i, start + i, start + i + 1)
        for i, letter in enumerate(token.text)
    ]


def _letters(token: Token, own: Container[str], known: bool = False) -> list[Token]:
    """The letters of `Ax`, and of `xy` where x and y have values, a token each; of another token itself.

    known: whether all letters need values.
    """
    text = token.text
    if token.kind != "name" or not 2 <= len(text) <= 3 or not text.isalpha():
        return [token]
    if text in own or text in BARE or token.font:
        return [token]
    # `xy` with values for x and y is their product: otherwise the name would be unknown. `Ax` in linear
    # algebra is split without that; a word in small letters, as `tr`, is not.
    if (known or text.islower()) and not all(letter in own for letter in text):
        return [token]
    return _each(token)
