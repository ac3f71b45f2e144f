"""Words of an expression that mean something else in a table: headings with units, functions of all rows."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from gradcli.commands.command_errors import usage
from gradcli.commands.output import note
from gradcli.commands.request import variables
from gradcli.language.located_errors import LanguageError
from gradcli.language.scope_checks import assigned_names
from gradcli.tables.columns import quoted, unit_of

_WORD = re.compile(r"[^\W\d]\w*")
# Functions that somebody means over all rows of a column, and that `map` calls with one row's number.
_OF_ROWS = (
    *(
        "sum",
        "mean",
        "max",
        "min",
        "amax",
        "amin",
        "std",
        "var",
        "median",
        "prod",
        "norm",
        "argmax",
    ),
    *("argmin", "quantile", "cumsum", "cumprod", "sort", "argsort", "diff", "gradient", "trapz"),
    *("trapezoid", "nansum", "nanmean", "nanmedian", "cummax", "cummin", "average"),
)
_NEW_ARRAY = re.compile(
    r"\[|\b(?:arange|linspace|logspace|geomspace|range|tensor|array|ones|zeros|full|eye|stack|cat|concat\w*"
    r"|hstack|vstack|outer|rand\w*)\s*\("
)
_CALL = re.compile(rf"(?<![\w.])(?:(?:torch|np|numpy)\.)?({'|'.join(_OF_ROWS)})\s*\(")


def heading_error(
    source: str, table: str, names: Sequence[str], given: Collection[str] = ()
) -> LanguageError | None:
    """The error about a heading that stands in an expression, and what to write; None where none does.

    names: the headings of the table. given: the variables that have values: `a/b` is a quotient where b has.
    """
    for heading in names:
        bare, unit = unit_of(heading, names)
        if not bare.isidentifier() or bare in names:
            continue
        if any(word in given or word in names for word in _WORD.findall(unit)):
            continue
        forms = (heading, f"{bare}/{unit}", f"{bare} [{unit}]", f"{bare} ({unit})")
        spaced = [r"\s*".join(map(re.escape, re.findall(r"\w+|[^\w\s]", one))) for one in forms]
        found = re.search(rf"(?<!\w)(?:{'|'.join(spaced)})(?!\w)", source)
        if found is None:
            continue
        hint = f'write {bare}, as in "{source[: found.start()]}{bare}{source[found.end() :]}"'
        if sum(unit_of(other, names)[0] == bare for other in names) > 1:
            hint = f"--columns 'x={quoted(heading)}' calls it x"
        return usage(
            f"a column of {table} is called {heading!r}, and its numbers are {bare} here",
            hint=hint,
            source=source,
            span=found.span(),
            kind="name",
        )
    return None


def of_one_row(
    source: str, table: str, columns: Mapping[str, Sequence[str]], others: Collection[str]
) -> str | None:
    """The note that a function of all rows is called with a row's number; None where none is.

    columns: the variables that are numbers of a row, each with its heading. others: other variables. Nothing
    is said of an argument that may be an array: with a name that the program makes, or of a new array.
    """
    program = variables(source, lenient=True)[0]
    made = set() if program is None else set(assigned_names(program))
    for call in _CALL.finditer(source):
        inside = _argument(source, call.end())
        first, *more = _items(inside)
        words = set(_WORD.findall(first))
        if not words & columns.keys() or words & {*others, *made} or _NEW_ARRAY.search(first):
            continue
        # max(a, b) is of two numbers of a row.
        if call[1] in ("max", "min") and more and not _is_dimension(more[0]):
            continue
        whole = f"{call[1]}({inside})"
        of_two = ""
        if call[1] in ("max", "min") and len(more) == 1 and "=" not in more[0]:
            which, bound = ("larger", "min") if call[1] == "max" else ("smaller", "max")
            number = more[0].strip()
            of_two = f"; the {which} of two is clamp({first.strip()}, {bound}={number})"
        if call[1] == "gradient" and len(more) == 1 and more[0].strip() in columns:
            whole = f"gradient({first}, spacing=({more[0].strip()},))"
        read = [n for n in columns if n in _WORD.findall(whole)]
        options = " ".join(f"--{n} {_file(table, columns[n][0])}" for n in read)
        of_all = f"of all rows: gradcli eval {_shell(whole)} {options}"
        return f"{call[0]}…) is of the number of one row; {of_all}{of_two}"
    return None


def columns_by_word(names: Sequence[str]) -> dict[str, list[str]]:
    """The headings of a table by what an expression calls them: themselves, or without their units."""
    return {unit_of(n, names)[0]: [n] for n in names} | {n: [n] for n in names}


def note_functions(
    texts: Iterable[str], table: str, columns: Mapping[str, Sequence[str]], others: Collection[str]
) -> None:
    """Say so of the first of some texts of which it is to be said."""
    for text in texts:
        if (words := of_one_row(text, table, columns, others)) is not None:
            note(words)
            return


def _argument(source: str, start: int) -> str:
    """The text from behind a bracket to the one that closes it."""
    depth = 1
    for at in range(start, len(source)):
        depth += (source[at] in "([{") - (source[at] in ")]}")
        if not depth:
            return source[start:at]
    return source[start:]


def _items(text: str) -> list[str]:
    """The arguments of a call."""
    found, depth, begin = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            found.append(text[begin:at])
            begin = at + 1
    return [*found, text[begin:]]


def _is_dimension(text: str) -> bool:
    return re.fullmatch(r"\s*(?:dim\s*=\s*)?-?\d+\s*|\s*\w+\s*=.*", text) is not None


def _file(table: str, heading: str) -> str:
    whole = f"@{table}:{quoted(heading) if ',' in heading else heading}"
    return whole if re.fullmatch(r"[\w@./:-]+", whole) else _shell(whole)


def _shell(text: str) -> str:
    return f"'{text}'" if "'" not in text else f'"{text}"'


__all__ = ["columns_by_word", "heading_error", "note_functions", "of_one_row"]
