r"""What makes a letter another name, over it or raised beside it: `\hat{y}`, `\mathcal{L}`, `x^{(i)}`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container
from itertools import pairwise
from typing import NamedTuple

from gradcli.language.math_symbols import ACCENTS, FONTS, SCRIPTS
from gradcli.language.notation import Token, is_greek, is_letter, letter_name

LONGEST_MARK = 9  # tokens, those of `^{[l-1]T}`
_SERIES = frozenset(("sum", "prod"))
_ELEMENT = re.compile(r"[A-Za-zα-ωΑ-Ω]_(?:\d+|[A-Za-z])")
_PRODUCT = re.compile(rf"{_ELEMENT.pattern}(?:{_ELEMENT.pattern})+")
_COMBINING = {
    "\u0302": "hat",
    "\u0304": "bar",
    "\u0303": "tilde",
    "\u0307": "dot",
    "\u0308": "ddot",
}
_UPRIGHT = frozenset("mathrm text textrm operatorname".split())


def with_combined(found: list[Token]) -> list[Token]:
    """The tokens with the name x_dot for ẋ, of one character or of two, as θ̇ has; mẋ is m x_dot.

    The umlauts of a language (ä, ö, ü) are letters.
    """
    parts: list[Token] = []
    for token in found:
        before = parts[-1] if parts else None
        if token.text in _COMBINING and before is not None and before.kind == "name":
            parts[-1:] = _marked(before, len(before.text) - 1, token.text, token.end)
            continue
        parts.append(token)
        for place, letter in enumerate(token.text) if token.kind == "name" else ():
            apart = unicodedata.normalize("NFD", letter)
            if len(apart) == 2 and apart[1] in _COMBINING and ord(letter) > 0xFF:
                text = token.text[:place] + apart[0] + token.text[place + 1 :]
                parts[-1:] = _marked(token._replace(text=text), place, apart[1], token.end)
                break
    return parts


def _marked(token: Token, place: int, mark: str, end: int) -> list[Token]:
    """A name as what stands before one of its letters, and this letter with its mark and index."""
    before, letter, after = token.text[:place], token.text[place], token.text[place + 1 :]
    start = token.start + place
    name = token._replace(text=f"{letter}_{_COMBINING[mark]}{after}", start=start, end=end)
    marked = [name]
    if mark == "\u0304" and not after:  # a mean, or a name, as the parser finds
        marked = [
            name._replace(kind="command", text="bar"),
            name._replace(text=letter, blank=False),
        ]
    if not before:
        return marked
    return [token._replace(text=before, end=start), marked[0]._replace(blank=False), *marked[1:]]


def with_sums(found: list[Token], own: Container[str]) -> list[Token]:
    """The tokens with the sign of a sum for the letter Σ, where what follows has an index: `Σ_i x_i`.

    Σ is a variable where it has a value, behind a transpose, and where no value follows: Σ_k of a mixture.
    """
    if "Σ" in own:
        return found
    parts: list[Token] = []
    for i, token in enumerate(found):
        stem, _, index = token.text.partition("_")
        if token.kind != "name" or stem != "Σ" or token.text in own:
            parts.append(token)
            continue
        end = i + 1
        if not index and [t.text for t in found[end : end + 1]] == ["_"]:
            braced = [t.text for t in found[end + 1 : end + 2]] == ["{"]
            end += 2
            if braced:
                end = next((k for k in range(end, len(found)) if found[k].text == "}"), end) + 1
            index = "".join(t.text for t in found[i + 2 : end] if t.text not in ("{", "}"))
        rest = found[end : end + 1]
        while end < len(found) and found[end].kind == "power":
            end += 1
        before = [t.text for t in found[max(i - 2, 0) : i]]
        transposed = before[-1:] in (["ᵀ"], ["'"]) or before == ["**", "T"] or before[:1] == ["T"]
        letter = index.partition("=")[0]
        later = _indices_behind(found[end:])
        follows = rest and (rest[0].kind in ("name", "number", "command") or rest[0].text in "([|{")
        is_sum = "=" in index or (
            follows and not transposed and (letter in later if letter else bool(later))
        )
        if not is_sum:
            parts.append(token)
            continue
        middle = token.start + 1
        parts.append(token._replace(kind="command", text="sum", end=middle))
        if "_" in token.text:
            parts.append(Token("sign", "_", False, middle, token.end))
            parts.append(Token("name", letter, False, middle, token.end))
    return parts


def _indices_behind(found: list[Token]) -> set[str]:
    """The small letters that are indices among tokens: i of `x_i`, `x_{i}` and `x^(i)`."""
    texts = [t.text for t in found if t.text != "{"]
    below = {t.text.rpartition("_")[2] for t in found if t.kind == "name" and "_" in t.text}
    below |= {two for one, two in pairwise(texts) if one == "_"}
    return {letter for letter in below if re.fullmatch("[a-z]", letter)}


def with_products(found: list[Token], own: Container[str]) -> list[Token]:
    r"""The tokens with x_i y_i for `x_iy_i` and m_1 m_2 for `m_1m_2`: in LaTeX an index is one character."""
    parts: list[Token] = []
    for token in found:
        if token.kind == "name" and token.text not in own and _PRODUCT.fullmatch(token.text):
            starts = [match.start() for match in _ELEMENT.finditer(token.text)]
            for at, end in zip(starts, [*starts[1:], len(token.text)], strict=True):
                place, until = token.start + at, token.start + end
                part = token._replace(text=token.text[at:end], start=place, end=until)
                parts.append(part if at == 0 else part._replace(blank=False))
        else:
            parts.append(token)
    return parts


def with_accents(found: list[Token]) -> list[Token]:
    r"""The tokens with the name y_hat for `\hat{y}`, `\hat y` and `\hat{\mathbf{y}}`.

    The index stays one: `\hat{y}_i`, `\hat y_i` and `\hat{y_i}` are the i-th of y_hat. A `\bar{x}` may be a
    mean, which the parser asks; with an index it is part of a name.
    """
    means = _given_bars(found)
    parts: list[Token] = []
    i = 0
    while i < len(found):
        token = found[i]
        parts.append(token)
        i += 1
        if token.kind != "command" or not (token.text in ACCENTS or token.text == "bar"):
            continue
        k, closers = i, 0
        while k < len(found) and (found[k].text == "{" or found[k].text in FONTS):
            closers += found[k].text == "{"
            k += 1
        font = next((t for t in found[i:k] if t.text in FONTS), None)
        letter = found[k] if k < len(found) else token
        below = k + 1  # `_1` and `_{1}` of `\hat{\beta_1}` stand behind the name
        if closers and [t.text for t in found[k + 1 : k + 2]] == ["_"]:
            below = k + 3
            if found[k + 2 : k + 3] and found[k + 2].text == "{":
                below = next((j for j in range(k, len(found)) if found[j].text == "}"), k) + 1
        end = below + closers
        if not is_letter(letter) or [t.text for t in found[below:end]] != ["}"] * closers:
            continue
        indexed = (
            "_" in letter.text or below > k + 1 or [t.text for t in found[end : end + 1]] == ["_"]
        )
        if token.text == "bar" and not indexed and letter.text not in means:
            continue
        stem, line, index = letter_name(letter).partition("_")
        name = f"{stem}_{ACCENTS.get(token.text, 'bar')}{line}{index}"
        parts[-1] = token._replace(kind="name", text=name, end=found[end - 1].end, blank=True)
        if font is not None:
            parts[-1] = parts[-1]._replace(font=font.text)
        parts += found[k + 1 : below]
        i = end
    return parts


def _given_bars(found: list[Token]) -> set[str]:
    r"""The letters whose bar has a formula of its own that is used: x of `\bar{x} = …; … \bar{x}`."""
    places = [k for k, token in enumerate(found) if token.kind == "command" and token.text == "bar"]
    behind = [[t for t in found[k + 1 : k + 5] if t.text not in ("{", "}")] for k in places]
    barred = [after[0].text for after in behind if after]
    given = {after[0].text for after in behind if [t.text for t in after[1:2]] == ["="]}
    return {letter for letter in given if barred.count(letter) > 1}


def with_differentials(found: list[Token]) -> list[Token]:
    r"""The tokens with dx for `\mathrm{d}x`, whose upright d is no variable."""
    parts: list[Token] = []
    for token in found:
        before = parts[-1] if parts else None
        if (
            before is not None
            and before.text == "d"
            and before.font in _UPRIGHT
            and token.kind == "name"
            and len(token.text) == 1
        ):
            parts[-1] = before._replace(text=f"d{token.text}", end=token.end, font="")
        else:
            parts.append(token)
    return parts


def with_increments(found: list[Token], own: Container[str]) -> list[Token]:
    r"""The tokens with the name Delta_x for `\Delta x`, where Δ has no value and stands before letters."""
    deltas = [i for i, t in enumerate(found) if t.text in ("Delta", "Δ")]
    after = [found[i + 1] if i + 1 < len(found) else found[i] for i in deltas]
    if "Delta" in own or "Δ" in own or not all(_is_small_letter(token) for token in after):
        return found
    parts: list[Token] = []
    for i, token in enumerate(found):
        if i and i - 1 in deltas:
            text = f"Delta_{token.text}"
            parts[-1] = found[i - 1]._replace(kind="name", text=text, end=token.end)
        else:
            parts.append(token)
    return parts


def _is_small_letter(token: Token) -> bool:
    if token.kind == "command":
        return is_greek(token.text) and token.text.islower()
    return token.kind == "name" and len(token.text.partition("_")[0]) == 1


def scripts_apart(found: list[Token]) -> list[Token]:
    r"""The tokens with L_cal for `\mathcal{L}` where the text has another L."""
    plain = {t.text for t in found if t.kind == "name" and t.font not in SCRIPTS}
    return [
        t._replace(text=f"{t.text}_cal") if t.font in SCRIPTS and t.text in plain else t
        for t in found
    ]


def with_stars(found: list[Token]) -> list[Token]:
    r"""The tokens with the name x_star for `x^*`, `x^{\star}` and `x_*`."""
    texts = [t.text for t in found]
    parts: list[Token] = []
    i = 0
    while i < len(found):
        size = next((len(one) for one in _STARS if texts[i : i + len(one)] == one), 0)
        before = parts[-1] if parts else None
        if not size or before is None or not is_letter(before):
            parts.append(found[i])
            i += 1
            continue
        name, end = f"{letter_name(before)}_star", found[i + size - 1].end
        parts[-1] = before._replace(kind="name", text=name, end=end)
        i += size
    return parts


_STARS = [["**", "{", "*", "}"], ["_", "{", "*", "}"], ["**", "*"], ["_", "*"]]


def with_elements(
    found: list[Token], functions: Container[str], own: Container[str]
) -> list[Token]:
    r"""The tokens with `P_i` for the `P(i)` of `\sum_i P(i)`, where P is no function of the text."""
    bound = bound_letters([t.text for t in found])
    parts: list[Token] = []
    i = 0
    while i < len(found):
        token, behind = found[i], found[i + 1 : i + 4]
        texts = [t.text for t in behind]
        name = letter_name(token)
        is_variable = is_letter(token) and name not in functions and (
            name in own or (name not in _FUNCTIONS and (len(name) == 1 or is_greek(name)))
        )  # fmt: skip
        called = texts[:1] == ["("] and texts[2:] == [")"] and not behind[0].blank
        if is_variable and called and texts[1] in bound and name not in bound:
            end = behind[2].end
            parts += [token, behind[0]._replace(text="_"), behind[1]._replace(end=end)]
            i += 4
        else:
            parts.append(token)
            i += 1
    return parts


# Letters that are functions.
_FUNCTIONS = frozenset(
    ("sigma", "σ", "Phi", "Φ", "Gamma", "Γ", "psi", "ψ", "zeta", "ζ", "f", "g", "h")
)


class Mark(NamedTuple):
    r"""What stands raised in brackets: the i of `x^{(i)}` and of `x^(i)`, the l-1 of `a^{[l-1]}`.

    inside: its tokens. bracket: the one that opens. braced: whether braces are around it. size: the number
    of tokens from the `^` on. transposed: whether a T stands behind it, as in `W^{[2]T}`.
    """

    inside: list[Token]
    bracket: str
    braced: bool
    size: int
    transposed: bool = False

    @property
    def text(self) -> str:
        """As it was typed."""
        return "".join(token.text for token in self.inside)

    @property
    def name(self) -> str:
        """As a part of a name: lp1 of `l+1`."""
        return self.text.replace("+", "p").replace("-", "m")


def with_indices(
    found: list[Token],
    functions: Container[str],
    named: Container[str] = (),
    alone: bool = False,
) -> list[Token]:
    r"""The tokens with names for letters that are marked.

    `x^{(i)}` and `x^(i)` are x_i where a sum is over i; `a^{[2]}`, of a layer, is a_2, and so is `a^{(2)}`
    where marks in round brackets say which letter it is (`_tells_apart`); `f^{(2)}(x)` is f''(x). The parser
    asks what another `^{(i)}` is. named: names that are variables. alone: whether the text is one name.
    """
    texts = [t.text for t in found]
    bound = bound_letters(texts)
    named_so = alone or _tells_apart(found, bound, named)
    parts: list[Token] = []
    i = 0
    while i < len(found):
        mark = raised_mark(found[i : i + LONGEST_MARK])
        before = parts[-1] if parts else None
        if mark is None or before is None or before.kind not in ("name", "command"):
            parts.append(found[i])
            i += 1
            continue
        end = found[i + mark.size - 1].end
        first, single = mark.inside[0], len(mark.inside) == 1
        order = int(first.text) if single and first.kind == "number" else 0
        called = texts[i + mark.size : i + mark.size + 1] == ["("]
        is_free = "_" not in before.text and not _is_below(parts)
        if (
            called
            and 0 < order < 9
            and (before.text in functions or before.text in ("f", "g", "h"))
        ):
            parts += [Token("sign", "'", False, found[i].start, end)] * order
        elif is_free and (
            mark.bracket == "[" or (named_so and mark.text not in bound) or first.text in bound
        ) and (single or named_so):  # fmt: skip
            name = f"{letter_name(before)}_{mark.name}"
            parts[-1] = before._replace(kind="name", text=name, end=end)
            if mark.transposed:
                parts += [Token("sign", "**", False, end, end), Token("name", "T", False, end, end)]
        elif is_free and mark.braced and mark.bracket == "(" and first.text in bound:
            parts.append(found[i]._replace(kind="sign", text="_"))
            parts += [found[i + 1], *mark.inside, found[i + mark.size - 1]]
        elif single and first.text in bound and mark.braced and _ELEMENT.fullmatch(before.text):
            stem, _, index = before.text.partition("_")  # x_j^{(i)} is x_{i,j}
            opened, closed = found[i + 1], found[i + mark.size - 1]
            parts[-1] = before._replace(text=stem)
            parts += [found[i]._replace(kind="sign", text="_"), opened, first]
            parts += [first._replace(kind="sign", text=",")]
            parts += [before._replace(text=index, blank=False, font=""), closed]
        else:
            parts += found[i : i + mark.size]
        i += mark.size
    return parts


def _tells_apart(found: list[Token], bound: Container[str], named: Container[str]) -> bool:
    r"""Whether marks in round brackets say which letter one is, as those of `W^{(1)}` do.

    They do where `a^{(1)} =` stands, where one letter has two numbers, where two letters are marked, as
    `x^{(i)}` and `y^{(i)}`, and where such a name is a variable.
    """
    marks: dict[str, set[str]] = {}
    for i, token in enumerate(found):
        mark = raised_mark(found[i + 1 : i + 1 + LONGEST_MARK]) if is_letter(token) else None
        if mark is None or mark.bracket != "(" or letter_name(token) in ("f", "g"):
            continue
        begins = i == 0 or found[i - 1].text in (";", "\n", ",")
        after = [t.text for t in found[i + 1 + mark.size : i + 2 + mark.size]]
        if (begins and after == ["="]) or f"{letter_name(token)}_{mark.text}" in named:
            return True
        if mark.braced:
            marks.setdefault(letter_name(token), set()).add(mark.text)
    numbers = [len({text for text in texts if text.isdigit()}) for texts in marks.values()]
    several = [texts for texts in marks.values() if not all(text in bound for text in texts)]
    return max(numbers, default=0) > 1 or len(several) > 1


def raised_mark(found: list[Token]) -> Mark | None:
    r"""The mark that these tokens begin with: a letter or a whole number, and what is added to it.

    None where they begin with something else. `^{\left(n\right)}` is a power.
    """
    texts = [t.text for t in found[:3]]
    braced = texts[1:2] == ["{"]
    bracket = (texts[2:3] if braced else texts[1:2]) or [""]
    at = 1 + braced
    if texts[:1] != ["**"] or bracket[0] not in ("(", "["):
        return None
    if found[at].start != found[at - 1].end:
        return None
    closer = {"(": ")", "[": "]"}[bracket[0]]
    end = next((k for k, t in enumerate(found) if t.text == closer), 0)
    inside = found[at + 1 : end]
    transposed = braced and [t.text for t in found[end + 1 : end + 2]] == ["T"]
    close = end + 1 + transposed
    if len(inside) not in (1, 3):
        return None
    if braced and [t.text for t in found[close : close + 1]] != ["}"]:
        return None
    first, *more = inside
    letter = first.kind == "name" and len(first.text) == 1
    is_number = first.kind == "number" and first.text.isdigit()
    is_shifted = bool(more) and more[0].text in ("+", "-") and more[1].kind == "number"
    if not ((letter and (is_shifted or not more)) or (is_number and not more)):
        return None
    return Mark(inside, bracket[0], braced, close + braced, transposed)


def bound_letters(texts: list[str]) -> set[str]:
    r"""The letters that a sum or a product is over: i of `\sum_{i=1}^n` and of `\sum_i`."""
    found = set()
    for word, sign, *after in zip(texts, texts[1:], texts[2:], texts[3:], strict=False):
        if word in _SERIES and sign == "_":
            found.add(after[1] if after[0] == "{" else after[0])
    return found


def _is_below(parts: list[Token]) -> bool:
    """Whether the last token is an index."""
    return [t.text for t in parts[-2:-1]] == ["_"] or parts[-1].text == "}"
