"""Errors that point at a span of the source."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from gradcli.engine.system import GradcliError
from gradcli.engine.system.visible import columns

Span = tuple[int, int]


def kind_of(value: Any) -> str:
    """The kind of a value with its article, `a list` or `an int`; or None."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"a{'n' * (name[0] in 'aeiouAEIO')} {name}"


_TAB = 4
_MAX_CALLS = 4


class CallSite:
    """One call that led to an error: the function's name, and where it was called."""

    __slots__ = ("name", "source", "span")

    def __init__(self, name: str, span: Span, source: str) -> None:
        self.name = name
        self.span = span
        self.source = source


# What running a program may raise, besides a LanguageError: the engine's errors, NumPy's and Python's own.
OPERATION_ERRORS = (RuntimeError, TypeError, ValueError, IndexError, ArithmeticError)


class LanguageError(GradcliError):
    """An error in a program: the message, its span, and a hint.

    `usage` is True where the text is at fault (exit code 2) and False where the computation was refused
    (exit code 1). `incomplete` says that more text could make the text right, as in a session's next
    line. The exception that the engine raised, if any, is `__cause__`.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: str = "syntax",
        source: str = "",
        span: Span | None = None,
        hint: str | None = None,
        usage: bool = True,
        notes: tuple[str, ...] = (),
        calls: tuple[CallSite, ...] = (),
        incomplete: bool = False,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind
        self.source = source
        self.span = span
        self.hint = hint
        self.usage = usage
        self.notes = notes
        self.calls = calls
        self.incomplete = incomplete

    def __str__(self) -> str:
        return self.render()

    # Errors cross from worker processes. Pickle would call the class with the message alone, and would
    # drop the cause.
    def __reduce__(self) -> tuple[Any, ...]:
        return (_restore, (self.message, self.__dict__.copy(), self.__cause__))

    def render(self, width: int = 100) -> str:
        """The message, the calls that led there, the line with a caret run under the span, the hint."""
        lines = [self.message]
        lines.extend(f"  {note}" for note in self.notes)
        shown = self.calls
        if len(shown) > _MAX_CALLS:
            lines.append(f"  ({len(shown) - _MAX_CALLS} more calls before these)")
            shown = shown[-_MAX_CALLS:]
        for call in shown:
            number, _, _ = locate(call.source, call.span[0])
            lines.append(f"  in {call.name}, called at line {number}:")
            lines.extend(underline(call.source, call.span, width))
        if self.span is not None:
            number, _, _ = locate(self.source, self.span[0])
            if self.calls or number > 1 or "\n" in self.source.strip():
                lines.append(f"  line {number}:")
            lines.extend(underline(self.source, self.span, width))
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


LanguageError.__module__ = "gradcli"  # a traceback names it as it is called


def error_at(
    error: Exception,
    *,
    source: str = "",
    span: tuple[int, int] | None = None,
    hint: str | None = None,
) -> LanguageError:
    """An engine error as a LanguageError: PyTorch's words first, then the span and the hint."""
    kinds = {TypeError: "type", IndexError: "index", ValueError: "value", NameError: "name"}
    kind = next((kinds[c] for c in type(error).__mro__ if c in kinds), "runtime")
    found = LanguageError(str(error), kind=kind, source=source, span=span, hint=hint, usage=False)
    found.__cause__ = error
    return found


def _restore(
    message: str, state: dict[str, Any], cause: BaseException | None = None
) -> LanguageError:
    error = LanguageError(message)
    error.__dict__.update(state)
    error.__cause__ = cause
    return error


def locate(source: str, position: int) -> tuple[int, int, int]:
    """(line number from 1, start of the line, end of the line) for a position in the source."""
    position = min(max(position, 0), len(source))
    before = source[:position]
    normal = before.replace("\r\n", "\n").replace("\r", "\n")
    start = max(before.rfind("\n"), before.rfind("\r")) + 1
    ends = [end for end in (source.find("\n", position), source.find("\r", position)) if end >= 0]
    return normal.count("\n") + 1, start, min(ends, default=len(source))


def underline(source: str, span: Span, width: int = 100) -> list[str]:
    """Two lines: the piece of source around the span, and carets under it, cut to `width` columns."""
    _, line_start, line_end = locate(source, span[0])
    first = min(max(span[0], line_start), line_end)
    last = min(max(span[1], first + 1), max(line_end, first + 1))
    room = max(width - 4, 20)
    # Only characters near the span are measured, since a line may have millions of them.
    window_start = max(line_start, first - room)
    window_end = min(line_end, first + 2 * room)
    cells = [_cell(source[i]) for i in range(window_start, window_end)]
    left, right = first - window_start, min(last, window_end) - window_start
    right = max(right, left + 1)
    total = sum(cell_width for _, cell_width in cells)
    begin, end = 0, len(cells)
    cut_left = window_start > line_start
    cut_right = window_end < line_end
    if total > room or cut_left or cut_right:
        # Keep the caret's beginning in view, a third of the room before it.
        begin, used = left, 0
        while begin > 0 and used + cells[begin - 1][1] <= room // 3:
            begin -= 1
            used += cells[begin][1]
        cut_left = cut_left or begin > 0
        end = begin
        used = 0
        while end < len(cells) and used + cells[end][1] <= room - 2:
            used += cells[end][1]
            end += 1
        cut_right = cut_right or end < len(cells)
    text = "".join(cell for cell, _ in cells[begin:end])
    indent = sum(cell_width for _, cell_width in cells[begin:left])
    run = sum(cell_width for _, cell_width in cells[left : min(right, end)]) or 1
    prefix = "…" if cut_left else ""
    suffix = "…" if cut_right else ""
    return [
        f"    {prefix}{text.rstrip()}{suffix}",
        " " * (4 + len(prefix) + indent) + "^" * run,
    ]


def _cell(character: str) -> tuple[str, int]:
    """A character as it is printed, and the number of columns it takes."""
    if character < "\x7f":
        if character == "\t":
            return " " * _TAB, _TAB
        return (character, 1) if character >= " " else ("\ufffd", 1)
    return (character, columns(character)) if ord(character) > 0x9F else ("\ufffd", 1)


def suggest(word: str, known: Any, limit: int = 2) -> list[str]:
    """The known names closest to a misspelt one, nearest first."""
    best: list[tuple[int, str]] = []
    bare = word.lstrip("-")
    allowed = max((len(bare) + 1) // 3, word != bare)  # --y is offered for --z, y not for z
    for name in known:
        if abs(len(name) - len(word)) > allowed or name.startswith("_") or name == word:
            continue
        distance = edit_distance(word, name, allowed)
        if distance <= allowed:
            best.append((distance, name))
    once = _without_doubles(word)  # a key that was struck twice is the likeliest slip
    best.sort(
        key=lambda pair: (
            pair[0],
            _without_doubles(pair[1]) != once,
            pair[1][:1] != word[:1],
            abs(len(pair[1]) - len(word)),
            pair[1],
        )
    )
    if best and best[0][0] == 0:
        return [best[0][1]]
    return [name for _, name in best[:limit]]


def _without_doubles(word: str) -> str:
    return "".join(letter for letter, _ in groupby(word))


def edit_distance(a: str, b: str, limit: int) -> int:
    """Insertions, deletions, substitutions and swaps of neighbours between two words, case aside."""
    if a.lower() == b.lower():
        return 0
    # The restricted Damerau-Levenshtein distance, row by row: `before` is the row before the previous
    # one, which a swap of neighbours needs. Once all of a row is above the limit, so is the result.
    before: list[int] = []
    previous = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            cost = min(previous[j] + 1, row[-1] + 1, previous[j - 1] + (x.lower() != y.lower()))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
        before, previous = previous, row
    return previous[-1]


class UnknownName(NameError):
    """A name that is neither bound nor known."""

    def __init__(self, name: str, message: str | None = None) -> None:
        super().__init__(message or f"name {name!r} is not defined")
        self.word = name


class UnboundName(UnknownName, UnboundLocalError):
    """A function's own name that is read before it is assigned."""


# In messages, and to programs that catch them, they are Python's.
UnknownName.__name__, UnboundName.__name__ = "NameError", "UnboundLocalError"
UnknownName.__module__ = UnboundName.__module__ = "builtins"


class StepLimit(Exception):
    """More loop turns and calls than --max-steps allows. Programs cannot catch it."""


class CannotAssign(LanguageError):
    """Something that cannot be assigned to."""

    def __init__(self, source: str, kind: str, span: Span) -> None:
        what = {
            "call": "a call", "call_keywords": "a call", "constant": "a constant", "lambda": "a function",
            "joined": "a string", "concatenate": "a string", "conditional": "a conditional expression",
        }.get(kind, "an expression")  # fmt: skip
        hint = "write `==` for an equation or a comparison"
        super().__init__(f"cannot assign to {what}", source=source, span=span, hint=hint)


def did_you_mean(names: list[str]) -> str | None:
    """The hint that offers one or two names."""
    return f"did you mean {' or '.join(f'`{name}`' for name in names)}?" if names else None
