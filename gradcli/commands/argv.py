"""The words of a command line, sorted by spelling alone and without click, whose import costs as much as a
tenth of numpy's.

R1  `--name`, where name is an identifier and no declared option, binds and takes exactly one value, which
    may be a negative number or `-x`, but no `--word`: that is an option of its own.
R2  a token with a single dash that is not exactly a declared short option is a positional; short options
    take no attached value.
R3  `--…` that is not `--identifier` is a positional, and so is everything after `--`.

`options` hands the sorted words to click. A plain line, `gradcli grad EXPR --x VALUE` or `diff EXPR --wrt x`,
runs from here, without click: it has no other option, file or table, so that nothing is left to parse.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import gradcli.engine.system.process as process
from gradcli.commands import COMPLETION_VARIABLE, SHORT
from gradcli.commands.command_errors import show, usage
from gradcli.commands.declarations import Command, Option, declaration
from gradcli.commands.output import Style
from gradcli.commands.request import (
    Request,
    is_called,
    is_known,
    name_list,
    normal,
    variables,
)
from gradcli.language.located_errors import LanguageError

_WRT = re.compile(r"--wrt=[^\W\d]\w*(?:,[^\W\d]\w*)*")
_BINDING = re.compile(r"--([^\W\d]\w*)(?:=(.*))?", re.S)
_WORD = re.compile(r"--[^\W\d]")  # begins an option
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_NUMBERS = re.compile(rf"{_NUMBER}(?:,{_NUMBER})*|[-+]?(?:{_NUMBER}\*)?pi(?:/{_NUMBER})?")
# What may follow an option `[x,y=VALUE]`; any other word is the next of the line: `--correlation data.csv`.
_ITEM = re.compile(rf"[^\W\d]\w*(?:\s*,\s*[^\W\d]\w*)*\s*=(?!=)|{_NUMBER}$")
_NAMED = re.compile(rf"\s*[^\W\d]\w*\s*(?:=\s*{_NUMBER}\s*%?\s*)?")
# Settings that options read.
_SETTINGS = (COMPLETION_VARIABLE, "GRADCLI_DTYPE")
# What makes a value more than numbers: files and tables, uncertainties, the language's own calls.
_SPECIAL = "@±(+\\"
# A word for a shape, as `matrix` or `2x3`: `foreign_options` knows.
_MAYBE_SHAPE = re.compile(r"\s*(?:[A-Za-z]{3,}|\(?\s*\w+?\s*(?:x|×|by)\s*\w+\s*\)?)\s*")
_ENDINGS = ("tex", "py", "np", "pytorch")  # short names of formats

if TYPE_CHECKING:
    from gradcli.language.program import Program
    from gradcli.language.rewritten_sources import FormulaReading


class Split:
    """argv put in order.

    taken: (option, the next word that was taken for its value), to be looked at once the variables are
    known. given: the last value of each declared option. missing: the option that ended the line without
    its value. bare: (name, what follows) of what would bind and has no value. point: the number of `--at 2`.
    behind: the flag before a positional. twice: the option of the file to write, given with two files.
    ranks, letters: what --math found of names, their dimensions and indices, for the formula of --against;
    ones: the indices of one element; sizes: what limits of sums are; squares: what stands for the square of a
    name; rows: the matrices whose rows are vectors of the text; called: J of `J(w) = …`; said:
    its remarks.
    """

    def __init__(self) -> None:
        self.bare: list[tuple[str, str]] = []
        self.behind: dict[str, str] = {}
        self.point: str | None = None
        self.twice: tuple[str, str, str] | None = None
        self.options: list[str] = []
        self.bindings: list[tuple[str, str]] = []
        self.positionals: list[str] = []
        self.taken: list[tuple[str, str]] = []
        self.given: dict[str, str] = {}
        self.missing: str | None = None
        self.ranks: dict[str, int] = {}
        self.ones: set[str] = set()
        self.sizes: dict[str, str] = {}
        self.squares: dict[str, str] = {}
        self.rows: set[str] = set()
        self.called = ""
        self.said: set[str] = set()
        self.letters: dict[str, tuple[str, ...]] = {}

    def take(self, head: str, option: Option, value: str) -> None:
        """Note the value of a declared option."""
        key = option.name
        # A setting given twice has its last value, as in most programs. A second -o is an error instead: the
        # first file would not be written, and be missed.
        if "-o" in option.names and not option.many and self.given.get(key, value) != value:
            self.twice = self.twice or (head, self.given[key], value)
        self.given[key] = value

    def bound(self) -> set[str]:
        """The names that are given a value."""
        lets = [item.removeprefix("--let=") for item in self.options if item[:6] == "--let="]
        return {name for name, _ in self.bindings} | {item.partition("=")[0] for item in lets}

    def texts(self) -> tuple[dict[str, str], dict[str, str]]:
        """The text of each value that has an option of its own, and how that is written."""
        texts: dict[str, str] = {}
        for name, text in self.bindings:
            if name in texts:
                raise usage(f"variable {name} is bound twice", hint=f"leave out one --{name}")
            texts[name] = text
        return texts, {name: f"--{name}" for name in texts}


def split(args: Iterable[str], declared: Mapping[str, Option]) -> Split:
    """Sort argv into declared options, bindings and positionals, by spelling alone."""
    found = Split()
    words = list(args)
    rest = words[::-1]

    def take(option: str) -> str:
        if not rest:
            found.missing = found.missing or option
            return ""
        found.taken.append((option, rest[-1]))
        return rest.pop()

    while rest:
        word = rest.pop()
        if word == "--":
            found.positionals.extend(reversed(rest))
            break
        head, equals, attached = word.partition("=")
        option = declared.get(head)
        if option is not None and (head.startswith("--") or not equals):
            point = attached or (rest[-1] if rest else "")
            if option.binds and (
                values := _point(point)
            ):  # `--at x=2,y=3` gives the values as well
                found.bindings += values
                equals, word = "", head
                if not attached:
                    rest.pop()
            elif option.binds and _NUMBERS.fullmatch(point):  # of the one variable there is
                found.point, equals, word = point, "", head
                if not attached:
                    rest.pop()
            if option.is_flag or equals:
                found.options.extend(_said(head, attached) if equals and attached else [word])
                found.take(head, option, attached)
                if rest and not equals:
                    found.behind[rest[-1]] = head
            else:
                alone = not rest or (rest[-1][:1] == "-" and rest[-1] != "-")
                # `--uncertainty "L/T**2"` has no names, and `--correlation data.csv` no `x,y=`.
                alone = alone or (option.metavar == "[NAMES]" and not _is_names(rest[-1], words))
                if option.may_be_bare and "=" in (option.metavar or "") and not alone:
                    alone = not _ITEM.match(rest[-1])
                value = "-" if option.may_be_bare and alone else take(head)
                # Joined, so that click cannot take the value for an option; a short option's value
                # comes as a word of its own, which click takes whatever it is.
                found.options.extend(_said(head, value) if head[:2] == "--" else [head, value])
                found.take(head, option, value)
        elif len(word) > 2 and (ours := _as_ours(word, declared, words)) is not None:
            rest.append(ours)
        elif word == "--at" and rest and (values := _point(rest[-1])):
            found.bindings += values
            rest.pop()
        elif match := _BINDING.fullmatch(word):
            name = match[1] if match[1].isascii() else normal(match[1])
            if match[2] is None and rest and _WORD.match(rest[-1]):
                found.bare.append((name, rest[-1]))
                continue
            found.bindings.append((name, take(f"--{match[1]}") if match[2] is None else match[2]))
        else:
            found.positionals.append(word)
    return found


def _said(head: str, value: str) -> list[str]:
    """A long option with its value; of `--let a=1,b=2` there are two."""
    if head != "--let" or "," not in value:
        return [f"{head}={value}"]
    from gradcli.commands.item_lists import parts

    return [f"{head}={one}" for one in parts(value)]


def _is_names(word: str, words: list[str]) -> bool:
    """Whether a word is names with commas between, some with a number (`x=0.1`), and not the expression of
    a line without another."""
    others = [other for other in words if other[:1] != "-" and other != word]
    return bool(others) and all(map(_NAMED.fullmatch, word.split(",")))


def _as_ours(word: str, declared: Mapping[str, Option], words: list[str]) -> str | None:
    """The option of ours that a word of PyTorch's or of other tools means; None for most words."""
    form = declared.get("--format")
    vector = word.partition("=")[0] == "--v" and "--vector" in declared
    if word[:2] != "--" or not (
        "_" in word or vector or (form and word[2:] in (*_ENDINGS, *form.choices))
    ):
        return None
    from gradcli.commands.foreign_options import as_ours

    return as_ours(word, declared, words)


def _point(word: str) -> list[tuple[str, str]]:
    """The values of `x=2,y=3,4`; none where it is something else."""
    parts = re.split(r",(?=[^\W\d]\w*=)", word)
    found = [re.fullmatch(r"([^\W\d]\w*)=(?!=)(.+)", part) for part in parts]
    return [(normal(m[1]), m[2]) for m in found if m] if all(found) else []


# -- plain lines ------------------------------------------------------------------------------------
def run(words: list[str]) -> int | None:
    """The exit code of a plain line's command, once it is done; None, with nothing done, of any other."""
    plain = plain_request(words)
    if plain is None:
        return None
    command, request = plain
    with process.Context() as context:
        if request.reading is not None:
            context.meta["gradcli.typed"] = request.reading.source  # as `options` has it for errors
        return process.shown(
            partial(command.run, context, request, command.defaults()),
            lambda error: show(error, words, context.meta),
        )


def plain_request(words: list[str]) -> tuple[Command, Request] | None:
    """The command of a plain line and what it asks for, as click would have it; None of any other line.

    A line with an error is none either: click reads it from its start, so that each error has one wording.
    """
    if not words or words[0] not in SHORT or any(name in os.environ for name in _SETTINGS):
        return None
    command = declaration(words[0])
    declared = command.declared()
    found = split(words[1:], declared)
    wrt = [option.removeprefix("--wrt=") for option in found.options]
    if found.missing or found.bare or found.point is not None or len(found.positionals) != 1:
        return None
    if not all(map(_WRT.fullmatch, found.options)):
        return None
    (text,) = found.positionals
    if text.strip()[:1] in ("", "-") or not all(_is_plain(value) for _, value in found.bindings):
        return None
    if os.path.isfile(text) or (wrt and command.puts_in is None):
        return None
    try:
        texts, options = found.texts()
        reading = None
        if command.puts_in is not None:
            reading = _plain_formula(text, texts if command.puts_in == "all" else {}, wrt)
            if reading is None:
                return None
            text = reading.source
        program, names = variables(text)
        if program is None or not program.ends_in_expression or not texts.keys() <= set(names):
            return None
        free = [n for n in names if n not in texts and not is_known(program, n)]
        if any(f"--{n}" in declared for n in names if n not in texts):
            return None
        if free and (reading is None or not command.open_variables):
            return None
        facts: dict[str, Any] = {}
        if reading is not None:
            if not _are_variables(program, names, free, texts):
                return None
            shown = [n for n in names if n in texts or n in free]
            facts = {
                "reading": reading,
                "open_variables": free,
                "wrt": name_list(reading.wrt, "--wrt", shown),
            }
    except LanguageError:
        return None
    if program.rows[-3] > 1:  # several statements
        from gradcli.commands.unused_notes import note_unused

        whole = program if reading is None else variables(reading.typed)[0]
        if whole is not None:
            note_unused(whole, command.name, False)
    style = Style.of("text", None, "auto")
    return command, Request(program, texts, options=options, style=style, **facts)


def _plain_formula(text: str, values: Mapping[str, str], wrt: list[str]) -> FormulaReading | None:
    """The text as a formula, where it is one of variables alone; None where more is to be said of it."""
    from gradcli.language.rewritten_sources import read

    reading = read(text, values, wrt)
    plain = not (reading.put_in or reading.elements or reading.functions)
    return reading if plain else None


def _are_variables(
    program: Program, names: list[str], free: list[str], texts: Mapping[str, str]
) -> bool:
    """Whether names without a value are variables to anybody, and all others the language's."""
    from gradcli.language import foreign_names
    from gradcli.language.scope_checks import may_be_variable

    if foreign_names.PREFIXED.intersection(free) or foreign_names.CONSTANTS.keys() & {*free}:
        return False
    if any(is_called(program, n) for n in free):
        return False
    return not any(may_be_variable(program, n) for n in names if n not in texts and n not in free)


def _is_plain(value: str) -> bool:
    """Whether a value is numbers alone: `-1`, but not `-` (standard input) or `-o`."""
    start = value.strip()[:2]
    if _MAYBE_SHAPE.fullmatch(value):
        return False
    return bool(start) and (start[0] != "-" or start[1:].isdigit()) and not {*_SPECIAL} & {*value}
