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
_CONTINUED = re.compile(r"\\\r?\n(?:[ \t\f]|\\\r?\n)*+")


def _columns(blanks: str) -> tuple[int, int]:
    """The column behind blanks that begin a line, and the same with a tab counted as one.

    As CPython counts: where backslashes continue the line, the first that is not at the margin decides.
    """
    column = alternative = 0
    for blank in blanks:
        if blank == "\f":
            column = alternative = 0
        elif blank == "\t":
            column = (column // 8 + 1) * 8
            alternative += 1
        elif blank == " ":
            column += 1
            alternative += 1
        elif blank == "\\" and column:
            return column, column
    return column, alternative


class Layout:
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

    def feed(self, found: list[str], base: int, *, last: bool) -> tuple[list[str], list[int]]:
        """What findall returned for a piece of the text that begins at `base`."""
        ends = list(accumulate(map(len, found), initial=base))
        del ends[0]
        return self.arrange(found, ends, last=last)

    def arrange(
        self, found: list[str], ends: list[int], *, last: bool
    ) -> tuple[list[str], list[int]]:
        """The tokens and their ends, with newlines, indentation and f-strings made explicit."""
        out: list[str] = []
        out_ends: list[int] = []
        marks = _MARKS
        done = 0
        if self.comments:
            found = [text.lstrip(BLANKS) or text if "\\" in text else text for text in found]
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
                    self._pass(found, ends, done, i, out, out_ends)
                    self._format_string(stripped, ends[i], out, out_ends)
                    done = i + 1
                continue
            # A comment at the end of the text, or one or more newlines with what surrounds them.
            self._pass(found, ends, done, i, out, out_ends)
            done = i + 1
            final = last and i == len(found) - 1
            if self.depth == 0 and not final and ("\n" in text or "\r" in text):
                self._newline(text, ends[i], out, out_ends)
        self._pass(found, ends, done, len(found), out, out_ends)
        if last:
            if self.line_open:
                out.append(NEWLINE)
                out_ends.append(self.end)
            for _ in self.indents[1:]:
                out.append(DEDENT)
                out_ends.append(self.end)
        return out, out_ends

    def _pass(
        self,
        found: list[str],
        ends: list[int],
        start: int,
        stop: int,
        out: list[str],
        out_ends: list[int],
    ) -> None:
        if start < stop:
            if not self.begun:
                self._begin(found[start], ends[start])
            out += found[start:stop]
            out_ends += ends[start:stop]
            self.end = ends[stop - 1]
            self.line_open = True

    def _begin(self, text: str, end: int) -> None:
        """The first token: blanks before it are forgiven on a program of one line only."""
        self.begun = True
        start = end - len(text.lstrip(BLANKS))
        line = self.source[self.margin : start]
        rest = self.source[start:].rstrip()
        if _columns(line)[0] and ("\n" in rest or "\r" in rest or "\\" in line):
            raise LanguageError(
                "unexpected indentation",
                source=self.source,
                span=(start, start + 1),
                hint="the first statement begins at the margin",
            )

    def _newline(self, text: str, end: int, out: list[str], out_ends: list[int]) -> None:
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
        out.append(NEWLINE)
        out_ends.append(self.end)
        self.line_open = False
        indents, alternatives = self.indents, self.alternatives
        if column > indents[-1]:
            if alternative <= alternatives[-1]:
                self._mixed(end)
            indents.append(column)
            alternatives.append(alternative)
            out.append(INDENT)
            out_ends.append(end)
            return
        while column < indents[-1]:
            indents.pop()
            alternatives.pop()
            out.append(DEDENT)
            out_ends.append(self.end)
        if column != indents[-1]:
            raise LanguageError(
                "this line's indentation matches no line above it",
                source=self.source,
                span=(end, end + 1),
                hint="indent it as the block it belongs to",
            )
        if alternative != alternatives[-1]:
            self._mixed(end)

    def _mixed(self, end: int) -> None:
        raise LanguageError(
            "tabs and spaces are mixed in this line's indentation",
            source=self.source,
            span=(end, end + 1),
            hint="indent with spaces only",
        )

    def _format_string(
        self, literal: str, end: int, out: list[str], out_ends: list[int], nested: bool = False
    ) -> None:
        """Cut up an f-string. Nesting is at most four deep: an inner one needs other quotes."""
        start = end - len(literal)
        if not self.begun:
            self._begin(literal, end)
        try:
            prefix, quotes, inside = tk.split_literal(literal)
        except tk.TokenError as error:
            raise self._error(error, start, start + (error.length or len(literal))) from None
        first = start + len(literal) - len(quotes) - len(inside)
        out.append(OPEN)
        out_ends.append(start + len(OPEN))
        self._pieces(first, first + len(inside), "r" in prefix, False, out, out_ends)
        out.append(CLOSE)
        out_ends.append(end)
        self.end = end
        self.line_open = True

    def _error(self, error: tk.TokenError, start: int, end: int) -> LanguageError:
        return LanguageError(error.message, source=self.source, span=(start, end), hint=error.hint)

    def _text(self, start: int, end: int, raw: bool, out: list[str], out_ends: list[int]) -> None:
        if start == end:
            return
        text = self.source[start:end].replace("{{", "{").replace("}}", "}")
        if not raw:
            try:
                text = tk.unescape(text)
            except tk.TokenError as error:
                raise self._error(error, start, end) from None
        out.append(TEXT + text.replace("\r\n", "\n") if raw else TEXT + text)
        out_ends.append(end)

    def _pieces(
        self, start: int, stop: int, raw: bool, in_spec: bool, out: list[str], out_ends: list[int]
    ) -> int:
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
                    self._text(text_start, i, raw, out, out_ends)
                    self._text(i, close + 1, raw, out, out_ends)
                    i = text_start = close + 1
                else:
                    i += 1 if source[i + 1 : i + 2] in "{}" else 2
            elif character == "{" and (in_spec or source[i + 1 : i + 2] != "{"):
                self._text(text_start, i, raw, out, out_ends)
                i = text_start = self._field(i, stop, raw, in_spec, out, out_ends)
            elif character == "}" and in_spec:
                break
            elif character in "{}":
                if source[i + 1 : i + 2] != character or i + 1 >= stop:
                    raise LanguageError(
                        "a single `}` in an f-string",
                        source=source,
                        span=(i, i + 1),
                        hint="write `}}` for a brace",
                    )
                i += 2
            else:
                i += 1
        self._text(text_start, i, raw, out, out_ends)
        return i

    def _field(
        self, start: int, stop: int, raw: bool, in_spec: bool, out: list[str], out_ends: list[int]
    ) -> int:
        """One `{expression!conversion:specification}`: returns where it ends."""
        source, match = self.source, self.pattern.match
        out.append(FIELD)
        out_ends.append(start + 1)
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
                out.append(text[:-2].rstrip(" \t\f"))
                out_ends.append(found.start() + len(found[0].rstrip(":= \t\f")))
                text = ":"
                break
            if text[:1] == "#" or "\\" in found[0]:
                raise LanguageError(
                    "an f-string's expression may hold neither a backslash nor a comment",
                    source=source,
                    span=(found.start(), i),
                    hint="give the value a name in a line of its own",
                )
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
                self._format_string(text, i, out, out_ends)
            else:
                out.append(text)
                out_ends.append(i)
        else:
            text = ""
        if text == "!":
            letter = source[i : i + 1]
            if letter not in ("r", "s", "a") or source[i + 1 : i + 2] not in (":", "}"):
                raise LanguageError(
                    "after `!` an f-string wants r, s or a",
                    source=source,
                    span=(i - 1, min(i + 1, stop)),
                )
            out.append(CONVERSION + letter)
            out_ends.append(i + 1)
            text = source[i + 1]
            i += 2
        if text == ":":
            if in_spec:
                raise LanguageError(
                    "f-string fields are nested too deeply", source=source, span=(i - 1, i)
                )
            out.append(SPEC)
            out_ends.append(i)
            i = self._pieces(i, stop, raw, True, out, out_ends)
            text = source[i] if i < stop else ""
            i += 1
        if text != "}":
            raise LanguageError(
                "`{` is never closed in this f-string",
                source=source,
                span=(start, start + 1),
                hint="write `{{` for a brace",
            )
        out.append(FIELD_END)
        out_ends.append(i)
        return i
