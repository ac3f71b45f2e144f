"""From text to tree: a driver for the LALR tables that lark made of grammars/gradcli.lark.

findall cuts the text into tokens, blanks first, so that adding up their lengths gives every position. The
tables tell what to do with each token; reducing a rule appends a row to the tree. There is no recursion, and
all that grows with the text besides the tree is a stack as deep as the text is nested.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from gradcli.language import tokens as tk
from gradcli.language import tree
from gradcli.language.errors import CannotAssign, LanguageError
from gradcli.language.program import Program
from gradcli.language.tokens import (
    CLOSE,
    DEDENT,
    FIELD,
    FIELD_END,
    INDENT,
    NEWLINE,
    OPEN,
    SPEC,
    TEXT,
)

if TYPE_CHECKING:
    from gradcli.language.layout import Layout

_CHUNK = 1 << 16  # characters that are cut into tokens at a time


class _Rows(dict[int, Any]):
    """Rows of a table, each unpacked from its text when it is first asked for."""

    def __init__(self, unpack: Callable[[int], Any]) -> None:
        super().__init__()
        self._unpack = unpack

    def __missing__(self, key: int) -> Any:
        row = self[key] = self._unpack(key)
        return row


class Tables:
    """The automaton in the form the driver reads."""

    def __init__(self, data: Any) -> None:
        self.terminals: tuple[str, ...] = tuple(data["TERMINALS"])
        self.plain: str = data["PLAIN"]
        self.full: str = data["FULL"]
        self.start: int = data["START"]
        self.end: int = data["END"]
        self.prefix: int = data["PREFIX"]
        self.rules = tuple(reversed(data["RULES"]))  # rule 1 is rules[-1]: reductions are negative
        self._action, self._goto, self._goto_rows = (
            data["ACTION"],
            data["GOTO"],
            data["GOTO_ROWS"],
        )
        self._atom: int = data["ATOM"]
        self.action = _Rows(self._unpack_action)
        self.goto = _Rows(self._unpack_goto)
        self.goto_rows = _Rows(self._unpack_goto_row)
        self.after_atom = _Rows(lambda state: self.goto[state].get(self._atom))
        self.operand = _Rows(self._takes_operand)
        self.fixed: dict[str, int] = {
            text: i for i, text in enumerate(self.terminals) if i > 16 or text == "$END"
        }
        del self.fixed["$END"]
        self.number = {text: i for i, text in enumerate(self.terminals)}
        names = (
            (INDENT, "INDENT"), (DEDENT, "DEDENT"), (OPEN, "FORMAT_OPEN"), (FIELD, "FORMAT_FIELD"),
            (SPEC, "FORMAT_SPEC"), (FIELD_END, "FORMAT_END"), (CLOSE, "FORMAT_CLOSE"),
            (NEWLINE, "NEWLINE"), ("", "$END"),
        )  # fmt: skip
        self.fixed.update((text, self.number[name]) for text, name in names)

    def _unpack_row(self, text: str, common: int) -> list[int]:
        row = [common] * len(self.terminals)
        fields = text.split(" ") if text else []
        for value, tokens in zip(fields[::2], fields[1::2], strict=True):
            there = int(value)
            for character in tokens:
                row[ord(character) - 35] = there
        return row

    def _unpack_action(self, state: int) -> list[int]:
        return self._unpack_row(self._action[state], 0)

    def _unpack_goto_row(self, number: int) -> list[int]:
        common, _, rest = self._goto_rows[number].partition(" ")
        return self._unpack_row(rest, int(common))

    def _unpack_goto(self, state: int) -> dict[int, list[int]]:
        numbers = list(map(int, self._goto[state].split()))
        rows = self.goto_rows
        return {nt: rows[row] for nt, row in zip(numbers[::2], numbers[1::2], strict=True)}

    def _takes_operand(self, state: int) -> bool:
        """True where a name or number can only be an operand: both are shifted, then reduced to an atom."""
        for terminal in (tree.NAME, tree.CONSTANT):
            there = self.action[state][terminal]
            if there <= 0:
                return False
            actions = set(self.action[there]) - {0}
            if len(actions) != 1:
                return False
            what = actions.pop()
            if what >= 0 or self.rules[what][5] != self._atom:
                return False
        return True


_tables: Tables | None = None


def tables() -> Tables:
    """The tables stored with the package; where they are missing, lark builds them from the grammar."""
    global _tables
    if _tables is None:
        try:
            from gradcli.language import tables as stored
        except ImportError:
            from gradcli.language.compile_grammar import build

            _tables = Tables(build())
        else:
            _tables = Tables(vars(stored))
    return _tables


_patterns: dict[str, re.Pattern[str]] = {}


def compiled(pattern: str) -> re.Pattern[str]:
    """A token pattern, compiled once."""
    if pattern not in _patterns:
        _patterns[pattern] = re.compile(pattern)
    return _patterns[pattern]


def _pieces(source: str, pattern: re.Pattern[str]) -> Iterator[tuple[list[str], int, bool]]:
    """(tokens, where they begin, whether they are the last) for as much text as is cut at a time."""
    base, size, length = 0, _CHUNK, len(source)
    while base + size < length:
        found = pattern.findall(source, base, base + size)
        if len(found) < 3:
            size *= 2
            continue
        del found[-2:]  # they may go on behind the cut: 2.5e-3 cut after its sign is two tokens
        yield found, base, False
        base += sum(map(len, found))
        size = _CHUNK
    yield _last(pattern.findall(source, base)), base, True


def _last(found: list[str]) -> list[str]:
    """The tokens that end a text, without the blanks behind them; a backslash there is a token."""
    if found and not (text := found[-1]).strip(tk.BLANKS):
        if "\\" in text and not text.replace("\\\r\n", "").replace("\\\n", "").strip(" \t\f"):
            found[-1] = text[: text.rfind("\\") + 1]
        elif not ("\n" in text or "\r" in text):
            found.pop()
    return found


def parse(source: str, *, explain: bool = True) -> Program:
    """The tree of a program, or a LanguageError that says what is wrong with its text."""
    table = tables()
    full = "'" in source or '"' in source or "#" in source or "\\" in source
    pattern = compiled(table.full if full else table.plain)
    if not source or source.isspace():
        source_rows = array("i", (tree.KIND["block"], 0, 0, 0))
        return Program(source, source_rows, [""], [None], [])
    if full:
        pieces: Iterator[tuple[list[str], int, bool]] = iter(
            ((_last(pattern.findall(source)), 0, True),)
        )
    else:
        pieces = _pieces(source, pattern)
    layout = None
    if full or "\n" in source or "\r" in source:
        from gradcli.language.layout import Layout

        layout = Layout(source, pattern, comments=full)
    return _drive(source, pieces, layout, table, explain)


def parses(source: str) -> bool:
    """Whether a text can be parsed. Nothing is said of what is wrong with it."""
    try:
        parse(source, explain=False)
    except LanguageError:
        return False
    return True


def _drive(
    source: str,
    pieces: Iterator[tuple[list[str], int, bool]],
    layout: Layout | None,
    table: Tables,
    explain: bool,
) -> Program:
    action, goto, rules, after_atom = table.action, table.goto, table.rules, table.after_atom
    operand, prefix = table.operand, table.prefix
    target_kind = tree.KIND["target"]

    words: list[str] = [""]
    constants: list[Any] = [None]
    word_index: dict[str, int] = {}
    known: dict[str, int] = dict(table.fixed)
    token_number = table.number
    for text, constant in tk.WORDS.items():
        known[text] = len(constants) << 8 | tree.CONSTANT
        constants.append(constant)

    def word(text: str) -> int:
        index = word_index.get(text)
        if index is None:
            index = word_index[text] = len(words)
            words.append(text)
        return index << 8

    def classify(text: str) -> int:
        """A token seen for the first time: the number of its terminal, and above it that of its value."""
        bare = text.lstrip(" \t\f\\\r\n")
        if not bare:
            raise tk.TokenError("")  # a backslash that ends no line
        code = known.get(bare)
        if code is None:
            first = bare[0]
            if first.isidentifier() or first in "'\"":
                if "'" in bare or '"' in bare:
                    if not tk.is_closed(bare):
                        raise tk.TokenError("")
                    constants.append(tk.string(bare))
                    return (len(constants) - 1) << 8 | token_number["STRING"]
                if bare[-1] == "=":
                    kind = "NAME_WALRUS" if bare[-2] == ":" else "NAME_EQ"
                    code = word(tk.name(bare.rstrip("=: \t\f"))) | token_number[kind]
                else:
                    code = word(tk.name(bare)) | tree.NAME
            elif "0" <= first <= "9" or (first == "." and "0" <= bare[1:2] <= "9"):
                constants.append(tk.number(bare))
                code = (len(constants) - 1) << 8 | tree.CONSTANT
                if len(text) > 4:
                    return code
            elif first == "." and len(bare) > 1:
                code = word(_attribute_name(bare)) | token_number["ATTRIBUTE"]
            elif first == "\0" and len(bare) > 1:
                constants.append(bare[2:])
                kind = "FORMAT_TEXT" if bare[:2] == TEXT else "FORMAT_CONVERSION"
                return (len(constants) - 1) << 8 | token_number[kind]
            else:
                raise tk.TokenError("")
        known[text] = code
        return code

    rows: list[int] = []
    done = array("i")
    targets: list[int] = []
    states = [table.start]
    starts: list[int] = []
    counts: list[int] = []
    push_state, push_start, pop_start = states.append, starts.append, starts.pop
    lookup = known.get
    state = table.start
    after: list[int] | None = None  # set while an operand's own state waits for the token after it
    index = value = last = 0
    text = ""
    end = 0

    try:
        for found, base, final in pieces:
            if layout is None:
                ends: Any = accumulate(map(len, found), initial=base)
                next(ends)
                if final:
                    found += (NEWLINE, "")
            else:
                found, ends = layout.feed(found, base, last=final)
                if final:
                    found.append("")
                    ends.append(layout.end)
            for text, token, end in zip(found, map(lookup, found), ends, strict=False):
                if token is None:
                    token = classify(text)
                if token > 255:
                    value = token >> 8
                    token &= 255
                    if after is None and token <= 2 and operand[state]:
                        start = end - len(text.lstrip())
                        rows += (token, value, start, end)
                        push_start(start)
                        after = after_atom[state]
                        last = end
                        continue
                if after is not None:
                    state = after[token]
                    push_state(state)
                    after = None
                what = action[state][token]
                while what < 0:
                    do, kind, operand_value, length, values, nonterminal = rules[what]
                    if values == 2:
                        pop_start()
                    elif values > 2:
                        del starts[1 - values :]
                    elif not values:
                        push_start(last)
                    if do == 1:
                        rows += (kind, operand_value, starts[-1], last)
                    elif do == 2:
                        start = starts[-1]
                        if kind == target_kind:
                            rows += (kind, index, start, start + len(words[index]))
                        else:
                            rows += (kind, index, start, last)
                    elif do == 3:
                        rows += (kind, counts.pop() + operand_value, starts[-1], last)
                    elif do == 4:
                        counts.append(operand_value)
                    elif do == 5:
                        counts[-1] += 1
                    elif do == 6:
                        number = counts.pop()
                        counts[-1] += number
                    elif do == 7:
                        targets.append((len(done) + len(rows)) // 4 - 1)
                    elif do == 8:
                        rows += (kind, counts.pop() + operand_value, starts[-1], last)
                        targets.append((len(done) + len(rows)) // 4 - 1)
                    if length:
                        del states[-length:]
                    state = goto[states[-1]][nonterminal][token]
                    push_state(state)
                    what = action[state][token]
                if what < prefix:
                    if not what:
                        break
                else:
                    push_start(end - len(text.lstrip()))
                state = what
                push_state(what)
                index = value  # of the token shifted last, for the rule it ends
                last = end
            else:
                done.fromlist(rows)
                rows.clear()
                continue
            break
        if state == table.end and not token:
            done.fromlist(rows)
            done[-1] = min(done[-1], len(source))  # the newline after the text is not of the text
            return Program(source, done, words, constants, targets)
    except tk.TokenError as error:
        problem: tk.TokenError | None = error
    except CannotAssign as error:
        if explain:
            error.hint = _translation(source) or error.hint
        raise
    else:
        problem = None
    if not explain:
        raise LanguageError("the text cannot be parsed")
    from gradcli.language.complaints import syntax_error

    refusal = syntax_error(source, table, state, text, end, problem)
    if not refusal.incomplete:
        refusal.hint = _translation(source) or refusal.hint
    raise refusal


def _translation(source: str) -> str | None:
    """The hint that writes another language's text in this one."""
    from gradcli.language import translations

    return translations.hint(source, parses)


def _attribute_name(text: str) -> str:
    name = text[1:].lstrip(" \t\f")
    if name in ("real", "imag") or name not in tk.KEYWORDS:
        return tk.name(name)
    raise tk.TokenError(*tk.reserved(name))
