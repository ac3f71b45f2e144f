"""lark itself over the same grammar: what the driver is held to.

lark lexes and parses; its tree is walked in the order in which lark reduced it, and rows are written as the
grammar's aliases say. Only lines and f-strings are cut by the same code as the driver's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import lark
from lark import Token

from gradcli.language import tokens as tk
from gradcli.language import tree_kinds
from gradcli.language.compile_grammar import load_lark
from gradcli.language.indentation import Indenter
from gradcli.language.parser import compiled, tables
from gradcli.language.tokens import BLANKS

_INVENTED = {
    "\n": "NEWLINE", "\0>": "INDENT", "\0<": "DEDENT", "\0o": "FORMAT_OPEN", "\0t": "FORMAT_TEXT",
    "\0{": "FORMAT_FIELD", "\0!": "FORMAT_CONVERSION", "\0:": "FORMAT_SPEC", "\0}": "FORMAT_END",
    "\0c": "FORMAT_CLOSE",
}  # fmt: skip
Row = tuple[Any, ...]


class _Postlex:
    """Lines and f-strings: the same Layout that the driver uses, on lark's tokens."""

    always_accept = ()
    source = ""

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        given = list(stream)
        texts, ends, kinds = [], [], {}
        for token in given:
            texts.append(str(token))
            ends.append(token.end_pos)
            kinds[token.end_pos] = token.type
        layout = Indenter(self.source, compiled(tables().full), comments=True)
        out, out_ends = layout.arrange(texts, ends, last=True)
        for text, end in zip(out, out_ends, strict=True):
            kind = _INVENTED.get(text[:2]) if text[:1] == "\0" or text == "\n" else kinds.get(end)
            if kind is None or (
                kind == "STRING" and "f" in text.split("'")[0].split('"')[0].lower()
            ):
                kind = _kind(text)
            start = end if kind in ("NEWLINE", "INDENT", "DEDENT") else end - len(text)
            _check(kind, text)
            yield Token(kind, text, start, end_pos=end)


@cache
def _parser() -> lark.Lark:
    return load_lark(postlex=_Postlex(), propagate_positions=True)


@cache
def _fixed() -> dict[str, str]:
    return {
        t.pattern.value: t.name
        for t in _parser().terminals
        if isinstance(t.pattern, lark.lexer.PatternStr)
    }


def _kind(text: str) -> str:
    """The kind of a token from inside an f-string, which lark's own lexer has not seen."""
    bare = text.lstrip(BLANKS)
    if bare in _fixed():
        return _fixed()[bare]
    best = max(
        (t for t in _parser().terminals if re.fullmatch(t.pattern.to_regexp(), bare)),
        key=lambda t: t.priority,
        default=None,
    )
    if best is None:
        raise Refused(text)
    return best.name


def _check(kind: str, text: str) -> None:
    """What the grammar leaves to tokens.py."""
    try:
        if kind in ("NAME", "NAME_EQ", "NAME_WALRUS"):
            tk.name(text.rstrip("=: \t\f"))
        elif kind == "ATTRIBUTE":
            tk.name(text[1:].lstrip())
        elif kind == "NUMBER" and text not in tk.WORDS:
            tk.number(text)
        elif kind == "STRING":
            tk.string(text)
    except tk.TokenError as error:
        raise Refused(str(error)) from None


class Refused(Exception):
    """lark does not accept the text."""


def rows(source: str) -> list[Row]:
    """(kind, operand's meaning, start, end) of every row; Refused where lark refuses."""
    parser = _parser()
    parser.options.postlex.source = source
    try:
        parsed = parser.parse(source)
    except lark.exceptions.UnexpectedInput as error:
        raise Refused(type(error).__name__) from None
    return _rows_of(parsed)


def _rows_of(parsed: lark.Tree[Token]) -> list[Row]:
    written: list[Row] = []
    counts: list[int] = []
    waiting: list[tuple[Any, bool]] = [(parsed, False)]
    while waiting:
        node, ready = waiting.pop()
        if not isinstance(node, lark.Tree):
            continue
        if not ready:
            waiting.append((node, True))
            waiting.extend((child, False) for child in reversed(node.children))
            continue
        do, kind, extra = tree_kinds.aliases().get(str(node.data), (tree_kinds.KEEP, 0, 0))
        if do == tree_kinds.KEEP or do == tree_kinds.TARGET:
            continue
        if do == tree_kinds.ONE:
            counts.append(extra)
        elif do == tree_kinds.MORE:
            counts[-1] += 1
        elif do == tree_kinds.JOIN:
            number = counts.pop()
            counts[-1] += number
        else:
            operand: Any = extra
            if do in (tree_kinds.COUNT, tree_kinds.TARGET_TUPLE):
                operand = counts.pop() + extra
            elif do == tree_kinds.TOKEN:
                operand = _meaning(node.children[-1])
            written.append((tree_kinds.KINDS[kind], operand))
    return written


def _meaning(token: Token) -> Any:
    text = str(token)
    if token.type in ("NAME", "NAME_EQ", "NAME_WALRUS"):
        return tk.name(text.rstrip("=: \t\f"))
    if token.type == "ATTRIBUTE":
        return tk.name(text[1:].lstrip())
    if token.type == "NUMBER":
        return tk.WORDS[text] if text in tk.WORDS else tk.number(text)
    if token.type == "STRING":
        return tk.string(text)
    return text[2:]
