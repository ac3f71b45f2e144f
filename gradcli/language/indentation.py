"""Lines, indentation and f-strings: what a list of tokens needs before the grammar can read it.

Newlines inside brackets disappear, the others become NEWLINE with INDENT and DEDENT after it, and an
f-string literal is cut into FORMAT_... tokens around the tokens of its expressions. Invented tokens begin
with a NUL character, which no token of a text does.
"""

from __future__ import annotations

import re
from itertools import accumulate

from gradcli.language import tokens as tk
from gradcli.language.located_errors import LanguageError
from gradcli.language.tokens import (
    BLANKS,
    CLOSE,
    CONVERSION,
    DEDENT,
    FIELD,
    FIELD_END,
    INDENT,
    NEWLINE,
    OPEN,
    SPEC,
    TEXT,
)

# The last characters of the tokens that matter here; all others pass through untouched.
_MARKS = frozenset("()[]{} \t\f\r\n'\"")


# A backslash that continues a line whose indentation has only begun.
_CONTINUED = re.compile(r"(?:\\\r?\n[ \t\f]*+)+")


def _columns(blanks: str) -> tuple[int, int]:
    """The column behind blanks that begin a line, and the same with a tab counted as one.

    As CPython counts: where backslashes continue the line, the first that is not at the margin decides.
    """
    column = alternative = 0
    for blank in blanks:
        if blank == "\f":
            column = alternative = 0
        # Tabs go to the next multiple of eight, as CPython reads them.
        elif blank == "\t":
            column = (column // 8 + 1) * 8
            alternative += 1
        elif blank == " ":
            column += 1
            alternative += 1
        elif blank == "\\" and column:
            return column, column
    return column, alternative


# What is put in, on an example. Of the text
#
#     if x:
#         y = f'{x:.2f} m'
#     y
#
# the grammar reads: if x : NEWLINE INDENT y = OPEN FIELD x SPEC ".2f" FIELD_END " m" CLOSE NEWLINE DEDENT
# y NEWLINE. So the grammar has a rule for blocks and one for f-strings, and knows nothing of columns or
# quotes.
class Indenter:
    """Turns the tokens of a text, piece by piece, into those the grammar reads."""

    def __init__(self, source: str, pattern: re.Pattern[str], *, comments: bool = False) -> None:
        self.source = source
        self.pattern = pattern
        self.comments = comments
        self.depth = 0
        self.indents = [0]
        self.alternatives = [0]  # the same columns with a tab counted as one: they must agree
        self.margin = 0  # where the line of the first token begins
        self.end = 0  # of the last token that was passed on
        self.begun = False
        self.line_open = False
        self.out: list[str] = []  # the tokens, and their ends
        self.ends: list[int] = []

    def put(self, token: str, end: int) -> None:
        """Pass a token on."""
        self.out.append(token)
        self.ends.append(end)

    def refused(
        self, message: str, start: int, end: int | None = None, hint: str | None = None
    ) -> LanguageError:
        """The error of a piece of the text; of one character, where no end is given."""
        span = start, start + 1 if end is None else end
        return LanguageError(message, source=self.source, span=span, hint=hint)

    def feed(self, found: list[str], base: int, *, last: bool) -> tuple[list[str], list[int]]:
        """What findall returned for a piece of the text that begins at `base`."""
        ends = list(accumulate(map(len, found), initial=base))
        del ends[0]
        return self.arrange(found, ends, last=last)

    def arrange(
        self, found: list[str], ends: list[int], *, last: bool
    ) -> tuple[list[str], list[int]]:
        """The tokens and their ends, with newlines, indentation and f-strings made explicit."""
        self.out, self.ends = [], []
        marks = _MARKS
        done = 0
        if self.comments:
            found = [text.lstrip(BLANKS) or text if "\\" in text else text for text in found]
        # Only brackets, newlines and strings change the layout; what is between them passes in slices.
        special = [i for i, text in enumerate(found) if text[-1] in marks]
        if self.comments:
            special = [
                i
                for i, text in enumerate(found)
                if text[-1] in marks or text.lstrip(BLANKS)[:1] == "#"
            ]
        for i in special:
            text = found[i]
            mark = text[-1]
            stripped = text.lstrip(BLANKS)
            if stripped[:1] not in ("", "#"):
                if mark in "([{":
                    self.depth += 1
                    continue
                if mark in ")]}":
                    self.depth -= self.depth > 0
                    continue
                if mark in "'\"" and len(stripped) > 1 and "f" in stripped[:2].lower():
                    if stripped[0] in "'\"" or not tk.is_closed(stripped):
                        continue
                    self._pass(found, ends, done, i)
                    self._format_string(stripped, ends[i])
                    done = i + 1
                continue
            # A comment at the end of the text, or one or more newlines with what surrounds them.
            self._pass(found, ends, done, i)
            done = i + 1
            final = last and i == len(found) - 1
            # Inside of brackets a newline is a blank.
            if self.depth == 0 and not final and ("\n" in text or "\r" in text):
                self._newline(text, ends[i])
        self._pass(found, ends, done, len(found))
        if last:
            if self.line_open:
                self.put(NEWLINE, self.end)
            for _ in self.indents[1:]:
                self.put(DEDENT, self.end)
        return self.out, self.ends

    def _pass(
        self,
        found: list[str],
        ends: list[int],
        start: int,
        stop: int,
    ) -> None:
        if start < stop:
            if not self.begun:
                self._begin(found[start], ends[start])
            self.out += found[start:stop]
            self.ends += ends[start:stop]
            self.end = ends[stop - 1]
            self.line_open = True

    def _begin(self, text: str, end: int) -> None:
        """The first token: blanks before it are forgiven on a program of one line only."""
        self.begun = True
        start = end - len(text.lstrip(BLANKS))
        line = self.source[self.margin : start]
        rest = self.source[start:].rstrip()
        if _columns(line)[0] and ("\n" in rest or "\r" in rest or "\\" in line):
            raise self.refused(
                "unexpected indentation", start, hint="the first statement begins at the margin"
            )

    def _newline(self, text: str, end: int) -> None:
        blanks = text[max(text.rfind("\n"), text.rfind("\r")) + 1 :]
        if not self.begun:
            self.margin = end - len(blanks)
            return
        continued = _CONTINUED.match(self.source, end)
        if continued is not None:
            blanks += continued[0]
            if self.source[continued.end() : continued.end() + 1] in ("\n", "\r", "#"):
                return  # nothing but blanks and backslashes: the newline behind them is the one
        column, alternative = _columns(blanks)
        self.put(NEWLINE, self.end)
        self.line_open = False
        indents, alternatives = self.indents, self.alternatives
        if column > indents[-1]:
            # With tabs of another width this line would not be indented more: refused, as in Python.
            if alternative <= alternatives[-1]:
                self._mixed(end)
            indents.append(column)
            alternatives.append(alternative)
            self.put(INDENT, end)
            return
        while column < indents[-1]:
            indents.pop()
            alternatives.pop()
            self.put(DEDENT, self.end)
        if column != indents[-1]:
            raise self.refused(
                "this line's indentation matches no line above it",
                end,
                hint="indent it as the block it belongs to",
            )
        if alternative != alternatives[-1]:
            self._mixed(end)

    def _mixed(self, end: int) -> None:
        raise self.refused(
            "tabs and spaces are mixed in this line's indentation",
            end,
            hint="indent with spaces only",
        )

    def _format_string(self, literal: str, end: int, nested: bool = False) -> None:
        """Cut up an f-string. Nesting is at most four deep: an inner one needs other quotes."""
        start = end - len(literal)
        if not self.begun:
            self._begin(literal, end)
        try:
            prefix, quotes, inside = tk.split_literal(literal)
        except tk.TokenError as error:
            stop = start + (error.length or len(literal))
            raise self.refused(error.message, start, stop, error.hint) from None
        first = start + len(literal) - len(quotes) - len(inside)
        self.put(OPEN, start + len(OPEN))
        self._pieces(first, first + len(inside), "r" in prefix, False)
        self.put(CLOSE, end)
        self.end = end
        self.line_open = True

    def _text(self, start: int, end: int, raw: bool) -> None:
        if start == end:
            return
        text = self.source[start:end].replace("{{", "{").replace("}}", "}")
        if not raw:
            try:
                text = tk.unescape(text)
            except tk.TokenError as error:
                raise self.refused(error.message, start, end, error.hint) from None
        self.put(TEXT + text.replace("\r\n", "\n") if raw else TEXT + text, end)

    def _pieces(self, start: int, stop: int, raw: bool, in_spec: bool) -> int:
        """Text and fields from `start` on; a format specification stops at its closing brace."""
        source = self.source
        i = text_start = start
        last_brace = source.rfind("}", start, stop)
        while i < stop:
            character = source[i]
            if character == "\\" and not raw:
                if source.startswith("N{", i + 1) and i < last_brace:
                    close = source.find("}", i, stop)
                    # The name stays whole, so it may not be taken for doubled braces.
                    self._text(text_start, i, raw)
                    self._text(i, close + 1, raw)
                    i = text_start = close + 1
                else:
                    # A backslash escapes no brace: `\{` is a backslash and the beginning of a field.
                    i += 1 if source[i + 1 : i + 2] in "{}" else 2
            elif character == "{" and (in_spec or source[i + 1 : i + 2] != "{"):
                self._text(text_start, i, raw)
                i = text_start = self._field(i, stop, raw, in_spec)
            elif character == "}" and in_spec:
                break
            elif character in "{}":
                if source[i + 1 : i + 2] != character or i + 1 >= stop:
                    raise self.refused(
                        "a single `}` in an f-string", i, hint="write `}}` for a brace"
                    )
                i += 2
            else:
                i += 1
        self._text(text_start, i, raw)
        return i

    def _field(self, start: int, stop: int, raw: bool, in_spec: bool) -> int:
        """One `{expression!conversion:specification}`: returns where it ends."""
        source, match = self.source, self.pattern.match
        self.put(FIELD, start + 1)
        depth = 0
        i = start + 1
        while (found := match(source, i, stop)) is not None:
            text = found[0].lstrip(BLANKS)
            i = found.end()
            if text in ("}", ":", "!") and depth == 0:
                break
            if text[-2:] == ":=" and len(text) > 2 and depth == 0:
                # Not an assignment here, but a specification that begins with an equals sign.
                i -= 1
                self.put(text[:-2].rstrip(" \t\f"), found.start() + len(found[0].rstrip(":= \t\f")))
                text = ":"
                break
            if text[:1] == "#" or "\\" in found[0]:
                words = "an f-string's expression may hold neither a backslash nor a comment"
                hint = "give the value a name in a line of its own"
                raise self.refused(words, found.start(), i, hint)
            if not text:
                continue  # a newline inside triple quotes
            if text in ("(", "[", "{"):
                depth += 1
            elif text in (")", "]", "}"):
                depth -= 1
            if (
                text[-1] in "'\""
                and len(text) > 1
                and "f" in text[:2].lower()
                and text[0] not in "'\""
                and tk.is_closed(text)
            ):
                self._format_string(text, i)
            else:
                self.put(text, i)
        else:
            text = ""
        if text == "!":
            letter = source[i : i + 1]
            if letter not in ("r", "s", "a") or source[i + 1 : i + 2] not in (":", "}"):
                raise self.refused("after `!` an f-string wants r, s or a", i - 1, min(i + 1, stop))
            self.put(CONVERSION + letter, i + 1)
            text = source[i + 1]
            i += 2
        if text == ":":
            if in_spec:
                raise self.refused("f-string fields are nested too deeply", i - 1)
            self.put(SPEC, i)
            i = self._pieces(i, stop, raw, True)
            text = source[i] if i < stop else ""
            i += 1
        if text != "}":
            raise self.refused(
                "`{` is never closed in this f-string", start, hint="write `{{` for a brace"
            )
        self.put(FIELD_END, i)
        return i
