"""The options of tables as `tables.reading_options.Reading`, and `gradcli.read_table`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gradcli.commands.command_errors import usage
from gradcli.tables.reading_options import How, Reading, Tell, line_or_none
from gradcli.tables.table_errors import TableError

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


def reading_of(given: Mapping[str, Any], tell: Tell | None) -> Reading:
    """How tables are read, by the options that are given. Raises LanguageError for what no option takes."""
    try:
        return Reading(how_of(given), tell)
    except TableError as error:
        raise usage(error.message, hint=error.hint) from None


def how_of(given: Mapping[str, Any]) -> How:
    """The options as facts. Raises TableError for what they do not take."""
    there = {name: value for name, value in given.items() if value not in (None, (), False, "")}
    facts: dict[str, Any] = {}
    for name, value in there.items():
        if name in ("header", "units"):
            facts[name] = line_or_none(str(value), f"--{name}")
        elif name == "no_header":
            facts["header"] = "none"
        elif name in ("column_names", "names"):
            facts["names"] = _names(value)
        elif name == "missing_markers":
            words = [value] if isinstance(value, str) else value
            facts[name] = tuple(cell.strip() for word in words for cell in word.split(","))
        elif name == "skip_footer":
            facts["footer"] = int(value)
        elif name in ("skip_lines", "block"):
            facts[name] = int(value)
        else:
            facts[name] = value
    for name, said in (
        ("separator", "one character, tab, blank or fixed"),
        ("thousands", "one character"),
    ):
        text = facts.get(name)
        if text is not None and len(text) != 1 and text not in _SEPARATORS:
            raise TableError(f"--{name} wants {said}, not {text!r}")
    if facts.get("decimal", ".") == facts.get("separator", ""):
        raise TableError(f"--separator and --decimal are both {facts['decimal']!r}")
    return How(**facts)


_SEPARATORS = ("tab", "\\t", "blank", "blanks", "space", "fixed")


def _names(value: str | Sequence[str]) -> tuple[str, ...]:
    if not isinstance(value, str):
        return tuple(value)
    from gradcli.tables.columns import words

    return tuple(word for word, _ in words(value))


def read_table(
    path: str, columns: str | None = None, *, missing: str = "error", **options: Any
) -> dict[str, Array]:
    """The columns of numbers of a file, as arrays by name: `read_table("scope.csv", units=2)["CH1"]`.

    path: any file that the commands read, or a pattern. columns: "t,U", "x*"; None for all that hold
    numbers. missing: "error", "nan" or "skip". options: as on the command line (skip_lines, skip_footer,
    header, units, names, comment, separator, decimal, thousands, encoding, missing_markers, block,
    date_order, time_unit, time_origin). What was decided without being asked comes as a warning. Raises
    LanguageError.
    """
    import warnings

    from gradcli.language.option_values import table_error
    from gradcli.tables import Reader
    from gradcli.tables.columns import column, own, select

    known = {*How._fields, "skip_footer", "no_header"} - {"footer"}
    for name in options:
        if name not in known:
            raise TypeError(f"read_table() got an unexpected keyword argument {name!r}")
    try:
        reading = Reading(how_of(options), lambda words: warnings.warn(words, stacklevel=3))
        reader = Reader(missing=missing, reading=reading)
        tables = reader.tables(path, columns or "*")
        table = tables[0]
        names = [n or str(k) for k, n in enumerate(table.names or [""] * table.width, 1)]
        if columns is not None:
            wanted = select(path, table.names, columns, reader.tell, table.width).columns
        else:
            wanted = [k for k in own(names, table.width) if _is_numeric(table, k)]
            for k in wanted:  # of two of one name, one would be lost
                column(path, names, names[k])
        return reader.columns(tables, names, wanted)
    except TableError as error:
        raise table_error(error) from None


def every_column(path: str) -> dict[str, Any]:
    """The columns of a file by name: numbers as an array, others as a list of what is written in the cells.

    Notes come as warnings. Raises LanguageError.
    """
    import warnings

    from gradcli.language.option_values import table_error
    from gradcli.tables import Reader

    try:
        reading = Reading(How(), lambda words: warnings.warn(words, stacklevel=4))
        reader = Reader(missing="error", reading=reading)
        tables = reader.tables(path, "*")
        names = tables[0].names or [str(k) for k in range(1, tables[0].width + 1)]
        found: dict[str, Any] = {}
        for k, name in enumerate(names):
            if names.count(name) > 1:  # it tells none of them
                continue
            if _is_numeric(tables[0], k):
                found |= reader.columns(tables, names, [k])
            else:
                found[name] = [cell for table in tables for cell in table.cells(k)]
        return found
    except TableError as error:
        raise table_error(error) from None


def _is_numeric(table: Any, column: int) -> bool:
    try:
        found = table.numbers(column)
    except TableError:
        return False
    return found.gone is None or not found.gone.all()


__all__ = ["every_column", "how_of", "read_table", "reading_of"]
