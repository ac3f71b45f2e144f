"""The labels of pictures as mathematics, as pgfplots and matplotlib read it: `x**2` is `$x^{2}$`."""

from __future__ import annotations

import re
from collections.abc import Callable

from gradcli.formulas.print.latex import GREEK, symbol

_SMALL_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_DERIVATIVE = re.compile(r"d([⁰¹²³⁴⁵⁶⁷⁸⁹]*)/d(\w+?)\1(?: (.*))?", re.S)
_OF_NAME = re.compile(r"d([⁰¹²³⁴⁵⁶⁷⁸⁹]*)(\w+?)/d(\w+?)\1")
_FUNCTION = re.compile(r"([^\W\d_](?:_?\d+)?)('*)(?:\((\w+(?:, \w+)*)\))?")
_TANGENT = re.compile(r"(tangent at .*), (\w+) = (.*)")
_NAMED = re.compile(r"([^\W\d_]\w*'*(?:\([\w, ]+\))?) = (.*)", re.S)
_WORDS = re.compile(r"([^\W\d_]{3,})(?: - ([^\W\d_]{3,}))?")
_LOW = re.compile(
    r"\\left\(((?:(?!\\left|\\right|\\frac).)*)\\right\)"
)  # brackets that need not grow
_CALLED = re.compile(r"((?:func\.grad\()+)(\w+)(\)+)(?=\()")


def with_primes(label: str) -> str:
    """`f''(x)` for `func.grad(func.grad(f))(x)`."""

    def primed(match: re.Match[str]) -> str:
        count = match[1].count("(")
        return match[2] + "'" * count if len(match[3]) == count else match[0]

    return _CALLED.sub(primed, label)


def typeset(label: str, words: Callable[[str], str]) -> str:
    """A label: an expression as mathematics, other words as they are. words: what makes text of them."""
    made = _formula(with_primes(label))
    if made is not None:
        return f"${made}$"
    if (tangent := _TANGENT.fullmatch(label)) and (line := _mathematics(tangent[3])) is not None:
        return f"{words(tangent[1])}, ${symbol(tangent[2])} = {line}$"
    return words(label)


def _formula(label: str) -> str | None:
    """A label as mathematics, None of other words."""
    if match := _DERIVATIVE.fullmatch(label):
        d = _quotient(match[1], "", match[2])
        inner = None if match[3] is None else _mathematics(match[3])
        if match[3] is None or inner is not None:
            return d if inner is None else rf"{d}\left({inner}\right)"
    if match := _OF_NAME.fullmatch(label):
        return _quotient(match[1], symbol(match[2]), match[3])
    if match := _FUNCTION.fullmatch(label):
        at = match[3]
        listed = ", ".join(map(symbol, at.split(", "))) if at else ""
        return f"{symbol(match[1])}{match[2]}" + (rf"\left({listed}\right)" if at else "")
    if (match := _NAMED.fullmatch(label)) and (body := _mathematics(match[2])) is not None:
        left = _formula(match[1])
        return None if left is None else f"{left} = {body}"
    sides = [_formula(side) for side in label.split(" == ")] if " == " in label else []
    if sides and all(sides):
        return " = ".join(map(str, sides))
    return _mathematics(label)


def _quotient(order: str, of: str, by: str) -> str:
    power = f"^{{{order.translate(_SMALL_DIGITS)}}}" if order else ""
    return rf"\frac{{\mathrm{{d}}{power}{of}}}{{\mathrm{{d}}{symbol(by)}{power}}}"


def _mathematics(text: str) -> str | None:
    """An expression of numbers in LaTeX; None of what is none, and of words, such as `left - right`."""
    if (words := _WORDS.fullmatch(text)) and GREEK.isdisjoint(words.groups()):
        return None
    from gradcli.formulas.ask.typeset_text import latex_of

    return latex_of(text)


def for_matplotlib(label: str) -> str:
    """A label as matplotlib reads mathematics; as it is where matplotlib lacks what it needs."""
    from matplotlib.mathtext import MathTextParser

    made = typeset(label, lambda text: text.replace("$", r"\$"))
    if "$" not in made:
        return label
    # It sets no space before the name of a function, too much behind it, and fractions very small.
    made = re.sub(r"(?<=[\w)}]) (?=\\(?:a?(?:rc)?(?:sin|cos|tan)h?|log|ln|exp)\b)", r"\\,", made)
    while (plain := _LOW.sub(r"(\1)", made)) != made:
        made = plain
    made = made.replace(r"\frac", r"\dfrac")
    try:
        MathTextParser("path").parse(made)
    except ValueError:
        return with_primes(label)
    return made


__all__ = ["for_matplotlib", "typeset", "with_primes"]
