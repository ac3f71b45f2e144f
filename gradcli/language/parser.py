"""From text to tree: a driver for the LALR tables that lark made of grammars/gradcli.lark.

findall cuts the text into tokens, blanks first, so that adding up their lengths gives every position. The
tables tell what to do with each token; reducing a rule appends a row to the tree. What a token does to a
stack of states is worked out when they first meet, and then known: see `Stack`. There is no recursion, and
all that grows with the text besides the tree is a stack as deep as the text is nested.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from gradcli.language import tokens as tk
from gradcli.language import tree_kinds
from gradcli.language.located_errors import CannotAssign, LanguageError
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
    from gradcli.language.indentation import Indenter

_CHUNK = 1 << 16  # characters that are cut into tokens at a time
_KNOWN = 5000  # tokens; of long numbers no more are remembered, for no two may be alike
_DEEPEST = 32  # states that a stack has before what follows gets one of its own
_FIRST_WORD = 17  # among the terminals: those from here on are spelt one way, and have no value
_MOST = 20_000  # stacks that are remembered
_OPENING = ("(", "[", "{", "INDENT", "FORMAT_OPEN", "FORMAT_FIELD")

# (number of the terminal, index of its value, characters without the blanks before)
Token = tuple[int, int, int]


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
        fixed = {text: i for i, text in enumerate(self.terminals) if i >= _FIRST_WORD}
        self.number = {text: i for i, text in enumerate(self.terminals)}
        names = (
            (INDENT, "INDENT"), (DEDENT, "DEDENT"), (OPEN, "FORMAT_OPEN"), (FIELD, "FORMAT_FIELD"),
            (SPEC, "FORMAT_SPEC"), (FIELD_END, "FORMAT_END"), (CLOSE, "FORMAT_CLOSE"),
            (NEWLINE, "NEWLINE"), ("", "$END"),
        )  # fmt: skip
        fixed.update((text, self.number[name]) for text, name in names)
        self.fixed: dict[str, Token] = {
            text: (number, 0, len(text.lstrip())) for text, number in fixed.items()
        }
        self.opening = frozenset(self.number[name] for name in _OPENING)
        self.stacks: list[Stack | Operand] = []  # that know something
        self._roots: dict[int, Stack] = {}

    def root(self, state: int) -> Stack:
        """The stack of one state, with others out of sight below it."""
        found = self._roots.get(state)
        if found is None:
            found = self._roots[state] = Stack(self, None, state)
        return found

    def forget(self) -> None:
        """Let go of what the stacks know, where that has become much."""
        for stack in self.stacks:
            stack.forget()
        self.stacks.clear()
        self._roots.clear()

    def _unpack_row(self, text: str, common: int) -> list[int]:
        # Most entries of a row are alike; the text names the others alone, which keeps the module small to
        # load.
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
        for terminal in (tree_kinds.NAME, tree_kinds.CONSTANT):
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


# What a token does to a stack: (the steps of the stack behind it, how, the rules that it reduces before it
# is shifted, and a stack that this is about).
Step = tuple[dict[int, Any], int, tuple[Any, ...], Any]
OWNER = -1  # the stack itself, among its steps
Reduction = tuple[int, int, int, int]  # what is done, kind of the row, a number, values
PLAIN = 0  # only operations of two operands are reduced, of which the rules are just the kinds
OPERAND = 1  # the token is an operand, and a row of the tree
SHIFTED = 2  # the rules are whole
BEGINS = 32  # the token is the first of its rule: where it starts is remembered
APART = 4  # the stack so far is put aside, and what the token opens has one of its own
JOINED = 8  # nothing is shifted yet: a rule goes on in the stack that was put aside last
REFUSED = 16  # the token is an error in this state


# How the driver reads. An LR parser pushes a state for each token, and pops some when a rule ends. In long
# programs the same stacks come again and again: after `x = ` in every line. So a stack is an object with a
# table of what each token does to it: how many rules end, and which stack follows. It is worked out once,
# and from then on a token costs one look-up.
class Stack:
    """The states of a stack, down to a bracket that is open, and what each token does to it.

    Stacks of the same states are the same object, so that a long text is mostly a matter of looking up. What
    is below the bracket, or below `_DEEPEST` states, is put aside: how a level of a text can look is limited,
    how levels may follow each other is not.
    """

    __slots__ = ("below", "depth", "joined", "operand", "pushed", "state", "steps", "table")

    def __init__(self, table: Tables, below: Stack | None, state: int) -> None:
        self.table, self.below, self.state = table, below, state
        self.depth: int = 1 if below is None else below.depth + 1
        self.steps: dict[int, Any] = {OWNER: self}
        self.pushed: dict[int, Stack] = {}
        self.joined: dict[Stack, Stack] = {}
        self.operand: Operand | None = None
        table.stacks.append(self)

    def forget(self) -> None:
        """Forget the stacks that were seen before."""
        self.steps.clear()
        self.steps[OWNER] = self
        self.pushed.clear()
        self.joined.clear()
        self.operand = None

    def push(self, state: int) -> Stack:
        """The stack with one more state."""
        found = self.pushed.get(state)
        if found is None:
            found = self.pushed[state] = Stack(self.table, self, state)
        return found

    def join(self, above: Stack) -> Stack:
        """The stack with all the states of another on top."""
        found = self.joined.get(above)
        if found is None:
            states = []
            stack: Stack | None = above
            while stack is not None:
                states.append(stack.state)
                stack = stack.below
            found = self
            for state in reversed(states):
                found = found.push(state)
            self.joined[above] = found
        return found

    def step(self, token: int) -> Step:
        """What a token does, when it is first asked for."""
        step = self.steps[token] = self._step(token)
        return step

    def _step(self, token: int) -> Step:
        table, stack = self.table, self
        # A name in such a place becomes an atom whatever follows: both steps are done at once.
        if token in (tree_kinds.NAME, tree_kinds.CONSTANT) and table.operand[self.state]:
            self.operand = self.operand or Operand(self)
            return self.operand.steps, OPERAND, (), None
        found: list[Reduction] = []
        while (what := table.action[stack.state][token]) < 0:
            do, kind, number, length, values, nonterminal = table.rules[what]
            # The rule began below the bracket: it goes on in the stack that was put aside there.
            if length >= stack.depth:
                return stack.steps, JOINED, tuple(found), stack
            if do != tree_kinds.KEEP or values != 1:
                found.append((do, kind, number, values))
            for _ in range(length):
                assert stack.below is not None
                stack = stack.below
            stack = stack.push(table.goto[stack.state][nonterminal][token])
        if not what:
            return stack.steps, REFUSED, tuple(found), None
        how = BEGINS | SHIFTED if what >= table.prefix else SHIFTED
        # Without a limit, a text with n open brackets would have n stacks of its own, each remembered.
        if token in table.opening or stack.depth >= _DEEPEST:
            return table.root(what).steps, how | APART, tuple(found), stack
        after = stack.push(what).steps
        binary = all(one == (tree_kinds.EMIT, one[1], 0, 2) for one in found)
        # x + y*z ends only rules of two operands at the next +: this is the common case, and has a short
        # way.
        if how == SHIFTED and token >= _FIRST_WORD and binary:
            return after, PLAIN, tuple(kind for _, kind, _, _ in found), None
        return after, how, tuple(found), None


class Operand:
    """A stack with an operand on top, whose state depends on the next token."""

    __slots__ = ("below", "state", "steps")

    def __init__(self, below: Stack) -> None:
        self.below, self.state = below, below.state
        self.steps: dict[int, Any] = {OWNER: self}
        below.table.stacks.append(self)

    def forget(self) -> None:
        """As a stack."""
        self.steps.clear()
        self.steps[OWNER] = self

    def step(self, token: int) -> Step:
        """As a stack's."""
        below = self.below
        stack = below.push(below.table.after_atom[below.state][token])
        step = self.steps[token] = stack.steps.get(token) or stack.step(token)
        return step


_tables: Tables | None = None


def tables() -> Tables:
    """The tables stored with the package; where they are missing, lark builds them from the grammar."""
    global _tables
    if _tables is None:
        try:
            from gradcli.language import parser_tables as stored
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
        # A list of all tokens of a text of megabytes would take many times its size.
        found = pattern.findall(source, base, base + size)
        if len(found) < 3:
            size *= 2
            continue
        # The last two may go on behind the cut: 2.5e-3 cut after its sign is two tokens.
        following = base + size - len(found.pop()) - len(found.pop())
        yield found, base, False
        base, size = following, _CHUNK
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
    ascii = "(?a)" if source.isascii() else ""  # where it is the same, and faster
    pattern = compiled(ascii + (table.full if full else table.plain))
    if not source or source.isspace():
        source_rows = array("i", (tree_kinds.KIND["block"], 0, 0, 0))
        return Program(source, source_rows, [""], [None], [])
    if full:
        pieces: Iterator[tuple[list[str], int, bool]] = iter(
            ((_last(pattern.findall(source)), 0, True),)
        )
    else:
        pieces = _pieces(source, pattern)
    layout = None
    if full or "\n" in source or "\r" in source:
        from gradcli.language.indentation import Indenter

        layout = Indenter(source, pattern, comments=full)
    return _drive(source, pieces, layout, table, explain)


def parses(source: str) -> bool:
    """Whether a text can be parsed; no error is composed."""
    try:
        parse(source, explain=False)
    except LanguageError:
        return False
    return True


class _Lexicon:
    """The tokens of a text by how they are spelt, and the words and constants that they mean."""

    def __init__(self, table: Tables) -> None:
        self.words: list[str] = [""]
        self.constants: list[Any] = [None]
        self.known: dict[str, Token] = dict(table.fixed)
        self._index: dict[str, int] = {}
        self._number = table.number
        # Of strings and texts nearly all differ.
        # Remembering texts that never come again would keep all of them alive.
        self._unlike = {table.number[t] for t in ("STRING", "FORMAT_TEXT", "FORMAT_CONVERSION")}
        for text, constant in tk.WORDS.items():
            self.known[text] = tree_kinds.CONSTANT, self._constant(constant), len(text)

    def classify(self, text: str) -> Token:
        """A token seen for the first time; TokenError where it is none."""
        bare = text.lstrip(" \t\f\\\r\n")
        if not bare:
            raise tk.TokenError("")  # a backslash that ends no line
        known, constants, size = self.known, self.constants, len(text.lstrip())
        again = known.get(bare)
        if again is not None:
            kind, index = again[:2]
        elif "0" <= bare[0] <= "9" or (bare[0] == "." and "0" <= bare[1:2] <= "9"):
            constants.append(tk.number(bare))
            kind, index = tree_kinds.CONSTANT, len(constants) - 1
            # A program may hold a table of a million numbers, nearly all of them different.
            if len(text) > 4 and len(known) > _KNOWN:
                return kind, index, size
        else:
            kind, index = self._read(bare)
            if kind in self._unlike:
                return kind, index, size
        known[text] = kind, index, size
        return kind, index, size

    def _read(self, bare: str) -> tuple[int, int]:
        """(number of the terminal, index of its value) of a token that is not a number."""
        first = bare[0]
        if first.isidentifier() or first in "'\"":
            if "'" in bare or '"' in bare:
                return self._string(bare)
            if bare[-1] != "=":
                plain = bare.isascii() and bare not in tk.KEYWORDS
                return tree_kinds.NAME, self._word(bare if plain else tk.name(bare))
            index = self._word(tk.name(bare.rstrip("=: \t\f")))
            return self._number["NAME_WALRUS" if bare[-2] == ":" else "NAME_EQ"], index
        if first == "." and len(bare) > 1:
            return self._number["ATTRIBUTE"], self._word(_attribute_name(bare))
        if first == "\0" and len(bare) > 1:
            name = "FORMAT_TEXT" if bare[:2] == TEXT else "FORMAT_CONVERSION"
            return self._number[name], self._constant(bare[2:])
        raise tk.TokenError("")

    def _string(self, bare: str) -> tuple[int, int]:
        if not tk.is_closed(bare):
            raise tk.TokenError("")
        return self._number["STRING"], self._constant(tk.string(bare))

    def _constant(self, value: Any) -> int:
        self.constants.append(value)
        return len(self.constants) - 1

    def _word(self, text: str) -> int:
        index = self._index.get(text)
        if index is None:
            index = self._index[text] = len(self.words)
            self.words.append(text)
        return index


def _drive(
    source: str,
    pieces: Iterator[tuple[list[str], int, bool]],
    layout: Indenter | None,
    table: Tables,
    explain: bool,
) -> Program:
    """Read the tokens, and write the tree's rows as the rules end that they come from."""
    lexicon = _Lexicon(table)
    words, classify, lookup = lexicon.words, lexicon.classify, lexicon.known.get
    # As local names, which are read as fast as the numbers that they mean.
    emit, by_token, count, one, more = (
        tree_kinds.EMIT,
        tree_kinds.TOKEN,
        tree_kinds.COUNT,
        tree_kinds.ONE,
        tree_kinds.MORE,
    )
    join, target, target_tuple = tree_kinds.JOIN, tree_kinds.TARGET, tree_kinds.TARGET_TUPLE
    target_name = tree_kinds.KIND["target"]

    # What is kept while reading: `rows`, the tree so far (moved into the compact `done` piece by piece);
    # `starts`, where each value on the parser's stack begins, so that a rule's row knows its span;
    # `counts`, the lengths of lists that are open; `targets`, the rows of what is assigned to; `aside`,
    # the stacks below open brackets.
    rows: list[int] = []
    done = array("i")
    targets: list[int] = []
    starts: list[int] = []
    counts: list[int] = []
    aside: list[Stack] = []
    push_start, pop_start, push_aside = starts.append, starts.pop, aside.append
    if len(table.stacks) > _MOST:
        table.forget()
    steps = table.root(table.start).steps
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
            for text, code, end in zip(found, map(lookup, found), ends, strict=False):
                token, value, size = code or classify(text)
                try:
                    steps, how, reductions, other = steps[token]
                except KeyError:
                    steps, how, reductions, other = steps[OWNER].step(token)
                if how == OPERAND:
                    start = end - size
                    rows += (token, value, start, end)
                    push_start(start)
                    last = end
                    continue
                if how == PLAIN:
                    for kind in reductions:
                        pop_start()
                        rows += (kind, 0, starts[-1], last)
                    last = end
                    continue
                while True:
                    for do, kind, number, values in reductions:
                        if values == 2:
                            pop_start()
                        elif values > 2:
                            del starts[1 - values :]
                        elif not values:
                            push_start(last)
                        if do == emit:
                            rows += (kind, number, starts[-1], last)
                        elif do == by_token:
                            start = starts[-1]
                            if kind == target_name:
                                rows += (kind, index, start, start + len(words[index]))
                            else:
                                rows += (kind, index, start, last)
                        elif do == count:
                            rows += (kind, counts.pop() + number, starts[-1], last)
                        elif do == one:
                            counts.append(number)
                        elif do == more:
                            counts[-1] += 1
                        elif do == join:
                            length = counts.pop()
                            counts[-1] += length
                        elif do == target:
                            targets.append((len(done) + len(rows)) // 4 - 1)
                        elif do == target_tuple:
                            rows += (kind, counts.pop() + number, starts[-1], last)
                            targets.append((len(done) + len(rows)) // 4 - 1)
                    # A rule that began before the bracket ends now, as `f(x)` does at `)`: the states
                    # that were put aside at `(` come back under those since then, and the token is looked
                    # up in the whole stack.
                    if how != JOINED:
                        break
                    whole = aside.pop().join(other)
                    steps, how, reductions, other = whole.steps.get(token) or whole.step(token)
                    if how == PLAIN:
                        reductions = [(emit, kind, 0, 2) for kind in reductions]
                if how == REFUSED:
                    break
                if how & BEGINS:
                    push_start(end - size)
                if how & APART:
                    push_aside(other)
                if value:
                    index = value  # of the token shifted last, for the rule it ends
                last = end
            else:
                done.frombytes(array("I", rows).tobytes())  # twice as fast as extending it
                rows.clear()
                if len(table.stacks) > _MOST:
                    table.forget()
                continue
            break
        if steps[OWNER].state == table.end and not token:
            done.frombytes(array("I", rows).tobytes())
            done[-1] = min(done[-1], len(source))  # the newline after the text is not of the text
            return Program(source, done, words, lexicon.constants, targets)
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
    raise _refusal(source, table, steps[OWNER].state, text, end, problem)


def _refusal(source: str, table: Tables, *stopped: Any) -> LanguageError:
    """What is wrong with a text; stopped: state, token, where it ends, and what is wrong with it alone."""
    from gradcli.language.syntax_errors import syntax_error

    refusal = syntax_error(source, table, *stopped)
    # A text that is not finished is no other language's: the session waits for its next line.
    if not refusal.incomplete:
        refusal.hint = _translation(source) or refusal.hint
    return refusal


def _translation(source: str) -> str | None:
    """The hint that writes another language's text in this one."""
    from gradcli.language import translations

    return translations.hint(source, parses)


def _attribute_name(text: str) -> str:
    name = text[1:].lstrip(" \t\f")
    if name in ("real", "imag") or name not in tk.KEYWORDS:
        return tk.name(name)
    raise tk.TokenError(*tk.reserved(name))
