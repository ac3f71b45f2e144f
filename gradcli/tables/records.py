"""JSON: one value, records in a list, or a record a line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from gradcli.tables.errors import TableError
from gradcli.tables.table import CellTable

LONGEST_NUMBER = 4000  # digits


class _TooLong(Exception):
    """An integer that no float holds, and that takes long to read."""


def _whole(text: str) -> int:
    if len(text) > LONGEST_NUMBER:
        raise _TooLong(f"an integer of {len(text):,} digits is too large for a float")
    return int(text)


def _constant(word: str) -> float:
    return float(word.replace("Infinity", "inf"))


def parse_json(body: str, name: str, first: int = 1) -> Any:
    """The value of a JSON text. Raises TableError with the line and the place in it."""
    try:
        return json.loads(body, parse_int=_whole, parse_constant=_constant)
    except json.JSONDecodeError as error:
        lines = body.split("\n")
        line = lines[error.lineno - 1] if error.lineno <= len(lines) else ""
        raise TableError(
            f"{name}, line {error.lineno + first - 1}: {error.msg}",
            line=line,
            span=(error.colno - 1, error.colno),
        ) from None
    except _TooLong as error:
        raise TableError(f"{name}: {error}") from None
    except RecursionError:
        raise TableError(f"{name}: nested too deeply") from None


def is_records(value: Any) -> bool:
    """Whether a value of JSON is a table: a list of objects."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def from_records(
    records: Sequence[Any],
    name: str,
    numbered: Sequence[int] = (),
    known: Sequence[str] | None = None,
) -> CellTable:
    """A table of objects: the columns in the order in which their names first appear.

    known: the names of the objects before these, which are all that there are.
    """
    names: dict[str, None] = dict.fromkeys(known or ())
    for number, record in enumerate(records):
        if not isinstance(record, dict):
            at = f"line {numbered[number]}" if numbered else f"record {number + 1}"
            raise TableError(f"{name}, {at}: not an object, as the first one is")
        if known is not None and not record.keys() <= names.keys():
            new = next(key for key in record if key not in names)
            at = f"line {numbered[number]}" if numbered else f"record {number + 1}"
            raise TableError(f"{name}, {at}: {new!r} is in no object before this one")
        names.update(dict.fromkeys(record))
    columns: list[Sequence[Any]] = [[record.get(key) for record in records] for key in names]
    return CellTable(name, list(names), columns, numbered=numbered)


def json_lines(lines: list[str], name: str, first: int = 1) -> tuple[list[Any], list[int]]:
    """The values of the lines, and their numbers."""
    found, numbered = [], []
    for number, line in enumerate(lines, first):
        if line.strip():
            found.append(parse_json(line, name, number))
            numbered.append(number)
    return found, numbered


def looks_like_lines(body: str) -> bool:
    """Whether a text that begins as JSON is an object a line."""
    head, newline, rest = body.partition("\n")
    return bool(newline) and head.rstrip().endswith("}") and rest.lstrip()[:1] == "{"
