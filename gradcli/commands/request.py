"""What a command line asks for: the program, its variables and their values, the style of the results.

Nothing of click is needed to say it: see `argv`, which reads plain command lines by itself.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gradcli.commands.command_errors import usage

if TYPE_CHECKING:
    from gradcli.commands.output import Style
    from gradcli.language.located_errors import LanguageError
    from gradcli.language.program import Program
    from gradcli.language.rewritten_sources import FormulaReading
    from gradcli.tables import Reader
    from gradcli.tables.reading_options import Reading as Tables


def normal(name: str) -> str:
    """A name in the form in which Python keeps it."""
    if name.isascii():
        return name
    import unicodedata

    return unicodedata.normalize("NFKC", name)


class SessionNames:
    """The names of a session in which a command runs: its tensors are variables, the others are known."""

    __slots__ = ("others", "tensors")

    def __init__(self, names: Mapping[str, Any]) -> None:
        self.tensors = {n: v for n, v in names.items() if hasattr(v, "requires_grad")}
        self.others = {n: v for n, v in names.items() if n not in self.tensors}


class Request:
    """What the command line asks for, before anything is computed.

    names: the variables, in the order of the command line. texts: the text of every variable's value.
    uncertainties: of those that are given with one, `x±u`, its text; or an array, out of a table's cells.
    covariances: of those that a fit gave, by pairs of names.
    native: whether large arrays run as C.
    files: what reads the files that the values name, once there is one. tables: how tables are read.
    options: how it was given, `--x` or `--let x=`. loaded: the names that --load brought.
    tensors: the variables that are tensors of a session, which stay as they are.
    open_variables: those without a value. shapes: what --shape says of them. sizes: of those that are the
    size of another, which, as a text. reading: of a command that takes formulas, how it read this one.
    """

    options: dict[str, str]
    dtype = "float64"
    style: Style
    missing = "error"
    native = False
    math = False  # whether --math was given
    named = ""  # what a formula to be drawn calls itself: V of `V(x) = x**2`
    ln = False  # whether the natural logarithm is `ln` in LaTeX, as it is in the text
    wrt: list[str] | None = None
    manual_seed: int | None = None
    shapes: Sequence[str] = ()
    sizes: Mapping[str, str] = {}
    files: Reader | None = None
    reading: FormulaReading | None = None
    how_read: Mapping[str, Any] = {}  # the options of tables
    _tables: Tables | None = None

    def __init__(self, program: Program, texts: dict[str, str], **facts: Any) -> None:
        self.program, self.texts, self.names = program, texts, list(texts)
        self.no_grad: list[str] = []
        self.open_variables: list[str] = []
        self.loaded: dict[str, Any] = {}
        self.tensors: dict[str, Any] = {}
        self.uncertainties: dict[str, Any] = {}
        self.covariances: dict[tuple[str, str], Any] = {}
        vars(self).update(facts)

    @property
    def source(self) -> str:
        """The text of the expression."""
        return self.program.source

    @property
    def has_files(self) -> bool:
        """Whether a value may be that of a file."""
        return any("@" in text for text in self.texts.values())

    def error_for(self, error: Exception, hint: str | None = None) -> LanguageError:
        """An error of the engine's about the value."""
        from gradcli.language.located_errors import error_at

        return error_at(error, source=self.source, span=self.program.value_span, hint=hint)

    @property
    def tables(self) -> Tables:
        """How the tables of the command line are read, and what was found in them."""
        if self._tables is None:
            from gradcli.commands import output
            from gradcli.commands.table_reading import reading_of

            self._tables = reading_of(self.how_read, output.note)
            output.keep_tables(self._tables)
        return self._tables


def read_text(path: str) -> str:
    """The text of a UTF-8 file, or of standard input for `-`."""
    try:
        if path == "-":
            data = sys.stdin.buffer.read() if sys.stdin is not None else b""
        else:
            with open(os.path.expanduser(path), "rb") as stream:
                data = stream.read()
        return data.decode("utf-8-sig")
    except OSError as error:
        raise usage(f"cannot read {path}: {error.strerror}", kind="file") from None
    except ValueError as error:
        if not isinstance(error, UnicodeDecodeError):  # a name with a null in it
            raise usage(f"cannot read {path}: {error}", kind="file") from None
        raise usage(
            f"{'standard input' if path == '-' else path} is not UTF-8 text (byte {error.start})",
            kind="file",
            hint="save it as UTF-8",
        ) from None


def variables(text: str | None, lenient: bool = False) -> tuple[Program | None, list[str]]:
    """The program and every name that it reads before assigning it."""
    if text is None:
        return None, []
    from gradcli.language import parse
    from gradcli.language.located_errors import LanguageError
    from gradcli.language.scope_checks import free_names

    try:
        program = parse(text)
    except LanguageError:
        if lenient:
            return None, []
        raise
    return program, list(free_names(program))


def where_read(program: Program, name: str) -> tuple[int, int] | None:
    """The span where a variable is first read."""
    from gradcli.language.scope_checks import free_reads

    row = free_reads(program).get(name)
    return None if row is None else program.span(row)


def is_known(program: Program | None, name: str) -> bool:
    """Whether the language gives the name a meaning of its own, as the program uses it."""
    from gradcli.language.scope_checks import is_variable

    return program is None or not is_variable(program, name)


def is_called(program: Program | None, name: str) -> bool:
    """Whether the program calls the name."""
    return program is not None and program.uses.get(name, (0, 0, 0))[1] > 0


def name_list(
    texts: Iterable[str] | None,
    option: str,
    known: list[str] | None,
    *,
    every: bool = False,
    what: str = "a variable of the expression",
    assigned: Iterable[str] = (),
) -> list[str] | None:
    """The names in `a,b`, of an option that may be given several times; None if it is not given.

    known: those that it may name, None for any. assigned: those that the program makes. With `every`, `all`
    means all that are known.
    """
    given = [word for text in texts or () for word in re.split(r"[,\s]+", text) if word]
    if not texts:
        return None
    if not given:
        raise usage(f"{option} needs a name", hint=f"as in {option} {(known or ['x'])[0]}")
    if known is None:
        return given
    if every and "all" in given:
        return list(known)
    from gradcli.language.located_errors import did_you_mean, suggest
    from gradcli.language.squared_variables import SQUARED

    names = list(dict.fromkeys(map(normal, given)))
    for name in names:
        if name not in known:
            names_known = ", ".join(known) if known else "none"
            hint = did_you_mean(suggest(name, known))
            if (square := SQUARED.fullmatch(name)) is not None:
                hint = f"write v for {square[1]}**2 everywhere, and {option} v"
            elif name in assigned:
                hint = f"the program makes it: --retain {name} prints its gradient"
            raise usage(
                f"{option}: {name!r} is not {what} (there are: {names_known})",
                hint=hint,
                kind="name",
            )
    return names


def chosen_form(**asked: bool) -> str:
    """The form of the results: that whose option was given."""
    chosen = [form for form, given in asked.items() if given]
    if len(chosen) > 1:
        options = " and ".join(f"--{form}" for form in chosen[:2])
        raise usage(f"{options} cannot be used together", hint="leave out one of them")
    return chosen[0] if chosen else "text"
