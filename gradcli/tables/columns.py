"""Which columns a text means: a name, several with commas between them, or a pattern."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from gradcli.tables.table_errors import TableError, listed

Tell = Callable[[str], object]
_INDEX = re.compile(r"__index_level_\d+__")
_WORD = re.compile(r'\s*(?:"((?:[^"]|"")*)"\s*(?=,|$)|([^,]*))(?:,|$)')
_UNIT = re.compile(r"(.*?\S)\s*(?:\[([^][]+)\]|\(([^()]+)\)|[/,]\s*([^/,]*[^/,\s]))", re.S)
_PLACE = re.compile(r"\$?([1-9]\d*)")  # as gnuplot and awk write it
_PLACES = re.compile(r"[\d,:\s]*")  # what stands in the brackets of `w.grad[0,1]`


class Selection(NamedTuple):
    """Columns, and whether they are asked for as a matrix: by several names, or by a pattern."""

    columns: list[int]
    is_matrix: bool


def select(
    name: str, names: Sequence[str], wanted: str, tell: Tell | None = None, width: int = 0
) -> Selection:
    """The columns of the table `name` that a text means: `L`, `x1,x2`, `x*`, `"w, kg"`.

    A heading comes before all else that its text may mean; in quotes a word is a heading. tell: see `column`.
    width: how many columns there are; where they have no names, they are called by their places.
    """
    if not names:
        names = places(width)
        if not all(_PLACE.fullmatch(word) or is_pattern(word) for word, _ in words(wanted)):
            raise _no_column(name, names, wanted)
        tell = tell or (lambda words: None)
    whole, asked = wanted.strip(), words(wanted)
    if whole in names:
        if len(asked) > 1 and {word for word, _ in asked} <= set(names):
            one, others = quoted(whole), ",".join(quoted(word) for word, _ in asked)
            raise TableError(
                f"{name}: {whole!r} is the name of a column, and names of several",
                hint=f"put the name in quotes: {one} or {others}",
            )
        asked = [(whole, True)]
    found: list[int] = []
    is_matrix = len(asked) > 1
    for word, is_quoted in asked:
        if is_quoted or word in names or not is_pattern(word):
            found.append(column(name, names, word, None if is_quoted else tell, width > 0))
            continue
        is_matrix = True
        matches = [i for i in own(names, len(names)) if fnmatchcase(names[i], word)]
        if not matches:
            raise _no_column(name, names, word)
        if len({names[i] for i in matches}) < len(matches):
            for i in matches:
                _check_single(name, names, names[i])
        found += matches
    return Selection(found, is_matrix)


def column(
    name: str, names: Sequence[str], word: str, tell: Tell | None = None, by_place: bool = False
) -> int:
    """The column of that heading; or the only one whose heading is the word and a unit: `L [m]`, `L/m`.

    tell: takes the remark that it is read so; without it no heading is. by_place: `2` and `$2` are
    the second.
    """
    if word in names:
        _check_single(name, names, word)
        return names.index(word)
    if by_place and tell is not None and (match := _PLACE.fullmatch(word)):
        place = int(match[1]) - 1
        if not 0 <= place < len(names):
            raise TableError(f"{name} has no column {word}", hint=f"it has {len(names)}")
        if names[place] != match[1]:
            tell(f"{word} is the column {names[place]!r} of {name}, by its place")
        return place
    close = [heading for heading in names if unit_of(heading, names)[0] == word]
    if tell is None or not close:
        raise _no_column(name, names, word, close)
    if len(close) > 1:
        raise TableError(
            f"{name}: {word} may be any of the columns {listed(close)}",
            hint=f"write its full name, as in {quoted(close[0])}",
        )
    tell(f"{word} is the column {close[0]!r} of {name}")
    return names.index(close[0])


def unit_of(heading: str, names: Sequence[str]) -> tuple[str, str]:
    """The name in front of a heading's unit, and the unit; "" for both where there is none.

    What is the name of a column, or an index, is no unit.
    """
    match = _UNIT.fullmatch(heading)
    unit = next(filter(None, match.groups()[1:])) if match else ""
    if match is None or unit in names or _PLACES.fullmatch(unit):
        return "", ""
    return match[1], unit


def _check_single(name: str, names: Sequence[str], word: str) -> None:
    if (count := names.count(word)) > 1:
        other = [
            n if n not in names[:k] else f"{n}_{names[:k].count(n) + 1}"
            for k, n in enumerate(names)
        ]
        given = ",".join(quoted(n) if "," in n else n for n in other)
        raise TableError(
            f"{name}: {count} columns are called {word!r}",
            hint=f"--names gives all columns names, as in --names {given}",
        )


def places(width: int) -> list[str]:
    """What columns without names are called."""
    return [str(k) for k in range(1, width + 1)]


def _no_column(name: str, names: Sequence[str], word: str, close: Sequence[str] = ()) -> TableError:
    if list(names) == places(len(names)):
        given = ",".join("tUIabcdefgh"[: len(names)]) if len(names) <= 9 else "NAME,NAME,…"
        return TableError(
            f"{name} has no names of columns",
            hint=f"--names {given} gives them; by their places they are 1 to {len(names)}",
            wrong=word,
        )
    return TableError(
        f"{name}: there is no column {word!r}",
        hint=f"there is {listed(close)}" if close else None,
        wrong=word,
        known=tuple(names),
    )


def own(names: Sequence[str], width: int, index: Sequence[str] = ()) -> list[int]:
    """The columns that are the user's: all but the index that pandas writes beside those of a frame.

    index: what the file says of it; one without a name is known by its own.
    """
    found = [i for i, n in enumerate(names) if n not in index and not _INDEX.fullmatch(n)]
    return found or list(range(width))


def words(wanted: str) -> list[tuple[str, bool]]:
    """The names in `a,b`, and which of them stand in quotes: there a comma or `*` is a name's own."""
    found = []
    for quotes, bare in _WORD.findall(wanted):
        if word := quotes.replace('""', '"') or bare.strip():
            found.append((word, bool(quotes)))
    if not found:
        raise TableError("the name of a column is missing after `:`")
    return found


def quoted(word: str) -> str:
    """A name as `words` reads it, whatever is in it."""
    return '"' + word.replace('"', '""') + '"'


def is_pattern(word: str) -> bool:
    """Whether a word may stand for several names."""
    return any(mark in word for mark in "*?[")
