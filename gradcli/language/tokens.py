"""What single tokens mean: numbers, names, strings. Used by the driver and by lark alike."""

from __future__ import annotations

import re
from keyword import kwlist

KEYWORDS = frozenset(kwlist)
WORDS = {"True": True, "False": False, "None": None, "...": ...}
# Tokens that `indentation.py` invents, which begin with a character that no token of a text begins with.
NEWLINE = "\n"
INDENT = "\0>"
DEDENT = "\0<"
OPEN = "\0o"
TEXT = "\0t"
FIELD = "\0{"
CONVERSION = "\0!"
SPEC = "\0:"
FIELD_END = "\0}"
CLOSE = "\0c"
BLANKS = " \t\f\\\r\n"

_MAX_DIGITS = 4300  # Python's own limit for int(text)
_MAX_BASED = (
    1 << 18
)  # of hexadecimal digits and their like, which are read in a time linear in them
_LONGEST = 60  # characters of a token that a message quotes


class TokenError(Exception):
    """A token that looks like one and is not: what is wrong, what to do, and where inside it."""

    def __init__(
        self, message: str, hint: str | None = None, offset: int = 0, length: int = 0
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.offset = offset
        self.length = length


def shortened(text: str) -> str:
    """A token as a message quotes it."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]}…{text[-_LONGEST // 2 :]}"


def number(text: str) -> int | float | complex:
    """The value of a numeric literal, as Python reads it."""
    # By far the most numbers are plain integers or have a point, so these two are asked first. `isdigit`
    # is true for Arabic-Indic digits as well, which Python's own literals do not take.
    if text.isdigit() and text.isascii() and (text[0] != "0" or len(text) == 1):
        if len(text) > _MAX_DIGITS:
            raise TokenError(
                f"an integer of {len(text)} digits is too long (at most {_MAX_DIGITS})",
                "write it with an exponent, such as 1e300",
            )
        return int(text)
    if "." in text and text.isascii() and text[-1] not in "jJ":
        try:
            return float(text)
        except ValueError:
            raise _number_error(text) from None
    based = text[:1] == "0" and text[1:2] in "xXoObB"
    whole = text.isascii() and (based or not (set(text) - set("0123456789_")))
    digits = len(text) - text.count("_")
    if whole and digits > (_MAX_BASED if based else _MAX_DIGITS):
        raise TokenError(f"an integer of {digits} digits is too long")
    try:
        if not text.isascii():
            raise ValueError(text)
        if text[-1] in "jJ" and text[:2].lower() != "0x":
            return complex(0.0, float(text[:-1]))
        if text[:1] == "0" and text[1:2] in "xXoObB" and len(text) > 2:
            return int(text, 0)
        if "e" in text or "E" in text:
            return float(text)
        return int(text, 0)
    except ValueError:
        raise _number_error(text) from None


def _number_error(text: str) -> TokenError:
    what = f"`{shortened(text)}` is not a number"
    if not (text[0] == "0" and text[1] in "xXoObB") and (
        match := re.fullmatch(
            r"([0-9][0-9_]*+(?:\.[0-9_]*+)?(?:[eE][+-]?[0-9]++)?)([A-Za-z]\w*)", text
        )
    ):
        return TokenError(what, f"to multiply, write `{shortened(match[1])}*{shortened(match[2])}`")
    if re.fullmatch(r"0[0-9_]+", text):
        return TokenError(
            what, f"without the leading zero it is `{shortened(text.lstrip('0_')) or '0'}`"
        )
    if text.count(".") > 1:
        return TokenError(what, "a number has at most one decimal point")
    return TokenError(what)


def name(text: str) -> str:
    """A name in the form Python keeps it (NFKC), or an error for what only looks like one."""
    if not text.isascii():
        import unicodedata

        normal = unicodedata.normalize("NFKC", text)
        if not text.isidentifier() or not normal.isidentifier():
            raise TokenError(f"`{shortened(text)}` is not a name")
        text = normal
    if text in KEYWORDS:
        raise TokenError(*reserved(text))
    return text


def reserved(word: str) -> tuple[str, str | None]:
    """What to say of a keyword of Python where a name is wanted."""
    hints: dict[str, str | None] = {
        "class": "classes belong to Python: `gradcli FILE.py` runs a program of Python's, and --load "
        "FILE.py gives a program of this language its functions",
        "del": "assign another value instead",
        "raise": "use `assert`",
        "yield": "generators belong to Python",
        "async": "coroutines belong to Python",
        "await": "coroutines belong to Python",
        "global": "pass the value in and return it",
        "nonlocal": "pass the value in and return it",
        "finally": "write what is to be done after the `try`",
    }
    if word in hints:
        return f"`{word}` is not part of this language", hints.get(word)
    if word in WORDS:
        return f"cannot assign to `{word}`", None
    other = "lam" if word == "lambda" else f"{word}_"
    return f"`{word}` is a keyword, not a name", f"choose another name, as in `{other}`"


# A backslash and one character, and by that character what more belongs to it: two digits behind x, four
# behind u, braces behind N. Fewer digits match as well, so that the error can say how many are wanted.
_ESCAPE = (
    r"\\(\r\n|[\s\S])(?:(?<=[0-7])[0-7]{0,2}|(?<=x)[0-9a-fA-F]{0,2}|(?<=u)[0-9a-fA-F]{0,4}"
    r"|(?<=U)[0-9a-fA-F]{0,8}|(?<=N)(?:\{[^}]*\}?)?|)"
)
_SIMPLE = {
    "\n": "", "\r\n": "", "\r": "", "\\": "\\", "'": "'", '"': '"', "a": "\a", "b": "\b",
    "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
}  # fmt: skip
_DIGITS = {"x": 2, "u": 4, "U": 8}


def _escape(match: re.Match[str]) -> str:
    whole, letter = match[0], match[1]
    if letter in _SIMPLE:
        return _SIMPLE[letter]
    if letter in "01234567":
        return chr(int(whole[1:], 8))
    if letter in _DIGITS:
        digits = whole[2:]
        if len(digits) != _DIGITS[letter] or int(digits, 16) > 0x10FFFF:
            raise TokenError(
                f"`\\{letter}` wants {_DIGITS[letter]} hexadecimal digits",
                "write `\\\\` for a backslash",
            )
        return chr(int(digits, 16))
    if letter == "N":
        import unicodedata

        try:
            return unicodedata.lookup(whole[3:-1] if whole.endswith("}") else "")
        except KeyError:
            raise TokenError(
                f"`{whole}` names no character", "write `\\\\` for a backslash"
            ) from None
    return whole


def unescape(text: str) -> str:
    """A string's inside with its backslash escapes done, as Python does them."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return re.sub(_ESCAPE, _escape, text) if "\\" in text else text


def is_closed(text: str) -> bool:
    """Whether a string literal's last characters are its closing quotes."""
    rest = text[first_quote(text) :]
    # The tokenizer takes a string that is never closed with all that follows, as one token. It is closed
    # if it ends in its own quotes with an even number of backslashes before them: in `'a\\'` the
    # backslash is escaped, in `'a\'` the quote is.
    quotes = rest[:3] if rest[:3] in ("'''", '"""') else rest[:1]
    inside = rest[len(quotes) : -len(quotes)]
    escaped = (len(inside) - len(inside.rstrip("\\"))) % 2
    return len(rest) >= 2 * len(quotes) and rest.endswith(quotes) and not escaped


def first_quote(text: str) -> int:
    """Where the first quotation mark of a literal is."""
    return min(i for i in (text.find("'"), text.find('"')) if i >= 0)


def split_literal(text: str) -> tuple[str, str, str]:
    """(prefix in lower case, quotes, inside) of a string literal."""
    quote_at = first_quote(text)
    prefix = text[:quote_at].lower()
    rest = text[quote_at:]
    size = 3 if rest[:3] in ("'''", '"""') and len(rest) >= 6 else 1
    if prefix not in ("", "r", "u", "f", "rf", "fr"):
        if "b" in prefix:
            raise TokenError("bytes are not part of this language", "leave out the `b`")
        raise TokenError(f"`{text[:quote_at]}` before a string means nothing", length=quote_at)
    return prefix, rest[:size], rest[size:-size]


def string(text: str) -> str:
    """The value of a string literal that is not an f-string."""
    prefix, _, inside = split_literal(text)
    if "r" in prefix:
        return inside.replace("\r\n", "\n").replace("\r", "\n") if "\r" in inside else inside
    return unescape(inside)
