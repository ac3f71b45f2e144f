"""What to say about a text that the grammar refuses. Imported only when there is something to say."""

from __future__ import annotations

import re
from typing import Any

from gradcli.language import tokens as tk
from gradcli.language.located_errors import LanguageError, Span
from gradcli.language.tokens import BLANKS

_UNKNOWN: dict[str, tuple[str, str]] = {
    "^": ("`^` is not a power here", "for a power, write `**`"),
    "!": ("`!` is not an operator", "for negation, write `not` (numbers) or `~` (masks)"),
    "$": ("`$` is not part of the language", "in a shell, put the expression in single quotes"),
    "?": ("`?` is not part of the language", "write a choice as `a if condition else b`"),
    "\\": ("a backslash may only end a line", "remove it"),
    "`": (
        "a backquote is not part of the language",
        "in a shell, put the expression in single quotes",
    ),
    "±": ("`±` stands in values only", "give the uncertainty with the value: --x 3±0.1"),
    "×": ("`×` is not an operator here", "to multiply, write `*`"),
    "·": ("`·` is not an operator here", "to multiply, write `*`"),
    "÷": ("`÷` is not an operator here", "to divide, write `/`"),
    "−": ("this minus sign is not the one of the keyboard", "write `-`"),
    "–": ("this dash is not a minus sign", "write `-`"),
    "≤": ("`≤` is not an operator here", "write `<=`"),
    "≥": ("`≥` is not an operator here", "write `>=`"),
    "≠": ("`≠` is not an operator here", "write `!=`"),
    "√": ("`√` is not an operator here", "write `sqrt(x)`"),
    "²": ("`²` is not an operator here", "write `**2`"),
    "³": ("`³` is not an operator here", "write `**3`"),
    "\u00a0": ("this is not a plain space", "type the space anew"),
    "“": ("this is not a quotation mark of Python's", 'write `"`'),
    "”": ("this is not a quotation mark of Python's", 'write `"`'),
    "‘": ("this is not a quotation mark of Python's", "write `'`"),
    "’": ("this is not a quotation mark of Python's", "write `'`"),
}
_CLOSER = {"(": ")", "[": "]", "{": "}"}
_BLOCKS = frozenset(("def", "if", "elif", "else", "while", "for", "with", "try", "except"))
# Keywords that people take for names: `lambda*x`, `2*in`.
_NAMELIKE = frozenset(("lambda", "in", "is", "not", "if", "for", "as", "from", "with", "while"))
_AFTER_VALUE = frozenset(
    (
        *("*", "/", "//", "%", "@", "**", "<", "<=", ">", ">=", "==", "!=", "&", "|"),
        *(")", "]", "}", ","),
    )
)
_MORE_AFTER_LAMBDA = frozenset(("+", "-", "[", ";"))
_NESTED_STRINGS = 5  # f-strings in f-strings, each in other quotes than those around it
_SHIFTS = {"<": "bitwise_left_shift", ">": "bitwise_right_shift"}


def syntax_error(
    source: str, table: Any, state: int, text: str, end: int, problem: tk.TokenError | None
) -> LanguageError:
    """The error for the token `text`, which ends at `end` and cannot be read in this state of the table."""
    bare = text.lstrip(BLANKS) or text[-1:].strip()
    start = end - len(bare)
    if problem is not None:
        if problem.message:
            first = start + problem.offset
            last = first + problem.length if problem.length else end
            return _error(source, (first, last), problem.message, problem.hint)
        return _unknown(source, bare, start)
    # What can be said depends on three things: the token that does not fit, the token before it, and what
    # the grammar would take here (`takes`). The questions are asked from the special to the general:
    # brackets and blocks that do not match, signs of other languages, words as names, and at last a
    # missing value or operator. A text that begins with NUL is none of the user's: the reader of
    # indentation puts such tokens in.
    previous = _tokens_before(table, source, start if not text.startswith("\0") else end)
    accepts = table.action[state]
    number = table.number

    def takes(token: str) -> bool:
        return bool(accepts[number[token]])

    at_end = bare in ("", "\0<")
    bracket = _open_bracket(previous)
    if at_end:
        return _ended(source, previous, bracket, takes)
    if bare.startswith("\0"):
        return _invented(source, bare, end, takes)
    if bare in (")", "]", "}"):
        if bracket is None:
            return _error(source, (start, end), f"`{bare}` closes nothing", "remove it")
        which, where = bracket
        if _CLOSER[which] != bare:
            return _error(
                source,
                (start, end),
                f"`{bare}` cannot close the `{which}` of column {_column(source, where)}",
                f"write `{_CLOSER[which]}`",
            )
    if takes("INDENT"):
        return _error(source, (start, end), *_block_missing(source, previous))
    if bracket is not None and bracket[0] == "{" and bare in (",", "}", "for") and takes(":"):
        where = bracket[1]
        why = "their order differs from run to run: use a list, or a dict's keys"
        return _error(source, (where, where + 1), "sets are not part of this language", why)
    if bare.endswith(":=") and len(bare) > 2:
        return _error(
            source,
            (end - 2, end),
            "`:=` is not allowed here",
            "put the assignment in brackets, as in `(y := x + 1)`",
        )
    if bare.endswith("=") and len(bare) > 1 and (bare[0].isalpha() or bare[0] == "_"):
        return _error(
            source,
            (end - 1, end),
            "`=` is not allowed here",
            "to compare, write `==`; an assignment is a statement of its own",
        )
    if (
        bare in (")", ",")
        and takes(":")
        and takes("=") is False
        and _in_signature(previous, bracket)
    ):
        name, where = previous[-1]
        return _error(source, (where, where + len(name)), *_out_of_order(previous, bracket))
    if takes("NAME_EQ") and not takes("NAME"):
        return _error(source, (start, end), *_out_of_order(previous, bracket))
    if bare in tk.KEYWORDS and number.get(bare) is None and bare not in tk.WORDS:
        return _error(source, (start, end), *tk.reserved(bare))
    before = previous[-1][0] if previous else ""
    if takes("NAME") or before == "lambda":
        found = _keyword_as_name(table, source, bare, (start, end), previous)
        if found is not None:
            return found
    if takes("NAME"):
        return _value_missing(source, bare, start, end, before)
    return _operator_missing(source, bare, start, end, before, takes)


def _block_missing(source: str, previous: list[tuple[str, int]]) -> tuple[str, str]:
    """After the line that opens a block: which keyword it began with."""
    closed = 0
    for text, where in reversed(previous):
        closed += (text in (")", "]", "}")) - (text in _CLOSER)
        if not closed and text in _BLOCKS and _begins_line(source, where):
            return f"expected an indented block after `{text}`", "indent this line"
    return "an indented block is missing here", "indent this line"


def _begins_line(source: str, where: int) -> bool:
    while where and source[where - 1] in " \t\f":
        where -= 1
    return not where or source[where - 1] in "\r\n"


def _line_end(source: str, where: int) -> int:
    return min(i if i >= 0 else len(source) for i in (source.find(c, where) for c in "\r\n"))


def _keyword_as_name(
    table: Any, source: str, text: str, span: Span, previous: list[tuple[str, int]]
) -> LanguageError | None:
    """The error for a keyword that stands where a variable would, as in `lambda*x` or `2*in`."""
    if text in _NAMELIKE:
        follows = _token_after(table, source, span[1])
        # `lambda*x`: whoever types that has a variable called lambda, as in physics. `lambda x` without a
        # colon is more likely a function that was not finished.
        after_value = not follows or follows in _AFTER_VALUE or follows[0] in "\r\n;"
        if after_value or (text != "not" and follows in ("+", "-")):
            return _error(source, span, *tk.reserved(text))
        return None
    last, where = previous[-1] if previous else ("", 0)
    if last not in _NAMELIKE or not (text in _AFTER_VALUE or text in _MORE_AFTER_LAMBDA):
        return None
    if last == "not":
        operand = len(previous) < 2 or previous[-2][0] != "is"
        operand = operand and text not in (")", "]", "}", ",")
    else:
        operand = last == "lambda" or (
            last in ("if", "for", "while", "with") and _begins_line(source, where)
        )
    if last == "lambda" and ":" in source[where : _line_end(source, where)]:
        return None  # a function: `lambda *a: 0`
    if operand and (text in _AFTER_VALUE or last == "lambda"):
        return _error(source, (where, where + len(last)), *tk.reserved(last))
    return None


def _token_after(table: Any, source: str, position: int) -> str:
    """The token that begins at a position, or nothing at the end of a line or of the text."""
    found = re.compile(table.full).match(source, position)
    text = found[0].lstrip(" \t\f") if found is not None else ""
    return "" if text.startswith("#") else text


def _in_signature(previous: list[tuple[str, int]], bracket: tuple[str, int] | None) -> bool:
    """True among the parameters of a function."""
    before = [text for text, where in previous if bracket is None or where < bracket[1]]
    return bracket is None or before[-2:-1] == ["def"]


def _out_of_order(
    previous: list[tuple[str, int]], bracket: tuple[str, int] | None
) -> tuple[str, str]:
    """After the first `name=`: in a call or in a function's parameters."""
    if _in_signature(previous, bracket):
        return (
            "a parameter without a default cannot follow one with a default",
            "put it before the first `name=`",
        )
    return (
        "a positional argument cannot follow a keyword argument",
        "put it before the first `name=`",
    )


def _error(source: str, span: Span, message: str, hint: str | None = None) -> LanguageError:
    return LanguageError(message, source=source, span=span, hint=hint)


def _column(source: str, position: int) -> int:
    return position - max(source.rfind("\n", 0, position), source.rfind("\r", 0, position))


def _tokens_before(table: Any, source: str, position: int) -> list[tuple[str, int]]:
    """(token, where it begins) of all tokens before a position."""
    pattern = re.compile(table.full)
    found: list[tuple[str, int]] = []
    start = 0
    # The tokenizer takes an f-string as one token. If the error is in a field of one, the string is not
    # closed before that place: then reading begins again inside of it.
    for _ in range(_NESTED_STRINGS):
        inside = start
        for match in pattern.finditer(source, start, position):
            text = match[0].lstrip(BLANKS)
            if not text or text[0] == "#":
                continue
            where = match.end() - len(text)
            if ("'" in text or '"' in text) and not tk.is_closed(text):
                inside = where + tk.first_quote(text) + 1
                text = source[inside - 1]
            found.append((text, where))
        if inside == start:
            break
        start = inside  # the position is in a field of an f-string
    return found


def _open_bracket(tokens: list[tuple[str, int]]) -> tuple[str, int] | None:
    """The innermost bracket that is still open."""
    waiting = []
    for text, position in tokens:
        if text in _CLOSER:
            waiting.append((text, position))
        elif text in (")", "]", "}") and waiting:
            waiting.pop()
    return waiting[-1] if waiting else None


def _unknown(source: str, text: str, start: int) -> LanguageError:
    character = text[:1]
    if "'" in text or '"' in text:
        quote = tk.first_quote(text)
        character, start = text[quote], start + quote
        error = _error(
            source,
            (start, start + 1),
            "this string is never closed",
            f"add {character} at its end",
        )
        error.incomplete = source.startswith(character * 3, start)
        return error
    if character in _UNKNOWN:
        message, hint = _UNKNOWN[character]
        if character == "`" and ".grad`" in source[start:]:
            hint = (
                "what map writes is computed with by a second one: gradcli map EXPR FILE --as g=y.grad "
                "| gradcli map '-g/value' -"
            )
        return _error(source, (start, start + 1), message, hint)
    if character == ".":
        return _error(source, (start, start + 1), "a name is missing after `.`")
    if character.isprintable():
        return _error(source, (start, start + 1), f"`{character}` is not part of the language")
    return _error(
        source,
        (start, start + 1),
        f"the character U+{ord(character):04X} is not part of the language",
    )


def _ended(
    source: str,
    previous: list[tuple[str, int]],
    bracket: tuple[str, int] | None,
    takes: Any,
) -> LanguageError:
    if bracket is not None:
        which, where = bracket
        message = f"`{which}` is never closed"
        error = _error(source, (where, where + 1), message, f"add `{_CLOSER[which]}`")
    else:
        error = _at_end(source, previous, takes)
    error.incomplete = bracket is not None or bool(takes("INDENT")) or bool(takes("except"))
    return error


def _at_end(source: str, previous: list[tuple[str, int]], takes: Any) -> LanguageError:
    last, where = previous[-1] if previous else ("", 0)
    end = where + len(last)
    if last == "lambda":
        return _error(source, (where, end), *tk.reserved(last))
    if takes("INDENT"):
        return _error(source, (end - 1, end), f"nothing follows this `{last}`", "add a statement")
    if takes("NAME"):
        return _error(
            source, (end, end + 1), f"the text ends where a value is missing after `{last}`"
        )
    return _missing(source, end, takes) or _error(source, (end, end + 1), "the text ends too early")


# What has to follow, where none of the tokens behind it may: the message, and a hint.
_TO_FOLLOW = (
    (
        "else",
        "NEWLINE",
        "this conditional expression has no `else`",
        "write `a if condition else b`",
    ),
    (":", "NEWLINE", "`:` is missing here", None),
    ("in", "NEWLINE +", "`in` is missing here", "write `for x in values:`"),
    ("except", "", "`try` has no `except`", None),
    ("(", "NEWLINE", "`(` is missing here", None),
)


def _missing(source: str, end: int, takes: Any) -> LanguageError | None:
    """What would have to follow here, where it is one thing."""
    # `takes(":")` holds at many places. Only where no token of `others` could stand as well is its
    # absence the error.
    for token, others, message, hint in _TO_FOLLOW:
        if takes(token) and not any(map(takes, others.split())):
            return _error(source, (end, end + 1), message, hint)
    return None


def _invented(source: str, text: str, end: int, takes: Any) -> LanguageError:
    if text == "\0>":
        return _error(
            source,
            (end, end + 1),
            "unexpected indentation",
            "only the body of `def`, `if`, `while`, `for`, `with`, `try` is indented",
        )
    if takes("NAME"):
        return _error(
            source,
            (end - 1, end),
            "a value is missing in this f-string's field",
            "write `{{` and `}}` for braces",
        )
    return _error(
        source,
        (max(end - 1, 0), end),
        "this f-string's field is not a whole expression",
        "give the value a name in a line of its own",
    )


def _value_missing(source: str, text: str, start: int, end: int, last: str) -> LanguageError:
    if not text.strip() or "\n" in text or "\r" in text:
        where = start
        return _error(
            source, (where, where + 1), f"the line ends where a value is missing after `{last}`"
        )
    if last in _SHIFTS and text in (last, f"{last}=") and source[start - 1] == last:
        return _error(
            source,
            (start - 1, end),
            f"`{last}{text}` is not part of this language",
            f"write `{_SHIFTS[last]}(a, b)`",
        )
    whole = text not in tk.KEYWORDS and (last[-1:].isalnum() or last[-1:] in ")]}'\"")
    if not last or last[-1] in "\r\n;" or (whole and _begins_line(source, start)):
        lost = None
        if not last and text[0] in "*/%@.=<>":
            lost = "in double quotes a shell replaces $x: leave out the $"
        return _error(source, (start, end), f"a statement cannot begin with `{text}`", lost)
    if text in tk.KEYWORDS:
        return _error(source, (start, end), f"`{text}` cannot follow `{last}`")
    hint = None
    if last in ("def", "import", "from", "as"):
        return _error(source, (start, end), f"a name is missing between `{last}` and `{text}`")
    if text in ("*", "**") and last in ("(", ","):
        return _error(source, (start, end), f"`{text}` is not allowed here")
    if text == last and text in ("&", "|"):
        hint = f"write `{'and' if text == '&' else 'or'}` for conditions, `{text}` for masks"
    elif text == "*" and last == "*":
        hint = "a power is written `**`, without a blank"
    elif text == "=" and last in "=<>!":
        hint = f"write `{last}=` without a blank"
    return _error(source, (start, end), f"a value is missing between `{last}` and `{text}`", hint)


def _operator_missing(
    source: str, text: str, start: int, end: int, last: str, takes: Any
) -> LanguageError:
    line_ends = "\n" in text or "\r" in text
    if line_ends or text in (")", "]", "}", ",", ";", ":"):
        found = _missing(source, start, takes)
        if found is not None:
            return found
    if line_ends:
        return _error(source, (start, start + 1), "the line ends too early")
    if text == "=":
        return _error(
            source,
            (start, end),
            "`=` is not allowed here",
            "to compare, write `==`; an assignment is a statement of its own",
        )
    if text == ":":
        return _error(
            source,
            (start, end),
            "`:` is not allowed here",
            "a slice stands in square brackets: `x[1:3]`; type annotations are left out",
        )
    value = text[0].isalnum() or text[0] in "_'\"."
    if text in tk.KEYWORDS and text not in tk.WORDS:
        if text == "not":
            return _error(source, (start, end), "`not` cannot follow a value", "write `not in`")
        if last == "else" and text == "if":
            return _error(source, (start, end), "write `elif`")
        return _error(source, (start, end), f"`{text}` is not allowed here")
    if value:
        shown = text if len(text) <= 20 else "this"
        name = re.fullmatch(r"[^\W\d]\w*", last)
        ready = f"`{last}` and `{shown}`" if last and len(last) <= 20 else f"this and `{shown}`"
        message = f"an operator is missing between {ready}"
        if name and last in tk.KEYWORDS:
            return _error(source, (start, end), f"`{text}` cannot follow `{last}`")
        if name:
            hint = f"to call it, write `{last}({text})`; to multiply, `{last}*{text}`"
        elif last and (last[-1].isalnum() or last in (")", "]", "}")):
            multiply = f"`{last}*{text}`" if last[-1].isalnum() else "`*`"
            hint = f"to multiply, write {multiply}; between list items, a comma"
        else:
            hint = None
        return _error(source, (start, end), message, hint)
    if text == ",":
        return _error(source, (start, end), "`,` is not allowed here")
    hint = "an equation is written `left == right`" if text == "~" else None
    return _error(source, (start, end), f"`{text}` cannot follow `{last}`", hint)
