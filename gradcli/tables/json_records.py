"""JSON: one value, records in a list, or a record a line."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from gradcli.tables.named_columns import CellTable
from gradcli.tables.table_errors import TableError

LONGEST_NUMBER = 4000  # digits


class _Unusable(Exception):
    """What JSON allows, and no table can hold."""


def _whole(text: str) -> int:
    if len(text) > LONGEST_NUMBER:
        raise _Unusable(f"an integer of {len(text):,} digits is too large for a float")
    return int(text)


def _constant(word: str) -> float:
    return float(word.replace("Infinity", "inf"))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _Unusable(f"an object has the key {twice!r} twice")
    return found


_HOOKS: dict[str, Any] = {
    "parse_int": _whole,
    "parse_constant": _constant,
    "object_pairs_hook": _object,
}


def parse_json(body: str, name: str, first: int = 1) -> Any:
    """The value of a JSON text. Raises TableError with the line and the place in it."""
    try:
        return json.loads(body, **_HOOKS)
    except json.JSONDecodeError as error:
        lines = body.split("\n")
        line = lines[error.lineno - 1] if error.lineno <= len(lines) else ""
        raise TableError(
            f"{name}, line {error.lineno + first - 1}: {error.msg}",
            line=line,
            span=(error.colno - 1, error.colno),
        ) from None
    except _Unusable as error:
        at = "" if "\n" in body else f", line {first}"
        raise TableError(f"{name}{at}: {error}") from None
    except RecursionError:
        raise TableError(f"{name}: nested too deeply") from None


def is_records(value: Any) -> bool:
    """Whether a value of JSON is a table: a list of objects."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def of_lists(value: Any, name: str) -> CellTable | None:
    """A table of a JSON object of lists of equal length, which are its columns; None of anything else.

    A list may be an object with the keys 0, 1, 2, …, as pandas writes a frame.
    """
    lists = list(value.values()) if isinstance(value, dict) else []
    if all(isinstance(v, dict) and v and list(v) == [str(k) for k in range(len(v))] for v in lists):
        lists = [list(v.values()) for v in lists]
    if not lists or not all(isinstance(v, list) and len(v) == len(lists[0]) for v in lists):
        return None
    if any(isinstance(cell, list | dict) for v in lists for cell in v):
        return None
    return CellTable(name, list(value), lists)


def from_records(
    records: Sequence[Any],
    name: str,
    numbered: Sequence[int] = (),
    known: Sequence[str] | None = None,
    start: int = 0,
) -> CellTable:
    """A table of objects: the columns in the order in which their names first appear.

    start: how many come before these. known: the names of the objects before these, which are all that
    there are.
    """
    names: dict[str, None] = dict.fromkeys(known or ())
    for number, record in enumerate(records):
        if not isinstance(record, dict):
            at = f"line {numbered[number]}" if numbered else f"record {start + number + 1}"
            raise TableError(f"{name}, {at}: not an object, as the first one is")
        if known is not None and not record.keys() <= names.keys():
            new = next(key for key in record if key not in names)
            at = f"line {numbered[number]}" if numbered else f"record {start + number + 1}"
            raise TableError(f"{name}, {at}: {new!r} is in no object before this one")
        names.update(dict.fromkeys(record))
    columns: list[Sequence[Any]] = [[record.get(key) for record in records] for key in names]
    made = CellTable(name, list(names), columns, numbered=numbered)
    made.start = start
    return made


def json_lines(lines: list[str], name: str, first: int = 1) -> tuple[list[Any], list[int]]:
    """The values of the lines, and their numbers."""
    found, numbered = [], []
    for number, line in enumerate(lines, first):
        if line.strip():
            found.append(parse_json(line, name, number))
            numbered.append(number)
    return found, numbered


def json_list(texts: Iterator[str], name: str) -> Iterator[list[Any]]:
    """The items of a JSON list, as they come: those that are whole in what was read so far.

    Raises TableError with the line and the place in it for what is no list of values.
    """
    decoder = json.JSONDecoder(**_HOOKS)
    rest, lines = "", 0
    expected = "["  # then an item or the end, then a comma or the end; at last nothing
    for text in itertools.chain(texts, [None]):
        rest += text or ""
        at, found = 0, []
        while True:
            at = _SPACE.match(rest, at).end()  # type: ignore[union-attr]
            if at == len(rest):
                break
            letter = rest[at]
            if expected == "[":
                if letter != "[":
                    raise _misplaced("Expecting a list", rest, at, name, lines)
                expected, at = "item or ]", at + 1
            elif expected == "":
                raise _misplaced("Extra data", rest, at, name, lines)
            elif letter == "]" and expected != "item":
                expected, at = "", at + 1
            elif expected == ",":
                if letter != ",":
                    raise _misplaced("Expecting ',' delimiter", rest, at, name, lines)
                expected, at = "item", at + 1
            else:
                try:
                    item, end = decoder.raw_decode(rest, at)
                except json.JSONDecodeError as error:
                    if text is not None and (
                        error.pos > len(rest) - _CUT or error.msg.startswith("Unterminated")
                    ):
                        break  # the rest of it is still to come
                    raise _misplaced(error.msg, rest, error.pos, name, lines) from None
                except _Unusable as error:
                    raise TableError(f"{name}: {error}") from None
                except RecursionError:
                    raise TableError(f"{name}: nested too deeply") from None
                whole = letter in '{["' or rest[end : end + 1] in _BEHIND
                if text is not None and not whole:
                    break  # a number may go on
                found.append(item)
                expected, at = ",", end
        lines += rest.count("\n", 0, at)
        rest = rest[at:]
        if found:
            yield found
        if len(rest) > _LONGEST:
            raise TableError(f"{name}, line {lines + 1}: this item does not end")
    if expected:
        raise _misplaced("Expecting ',' delimiter", rest, len(rest), name, lines)


_SPACE = re.compile(r"[ \t\n\r\ufeff]*")
_LONGEST = 1 << 26  # letters of an item
# Letters that a word, a number or an escape has at most, which the end of a block may cut.
_CUT = 16
_BEHIND = frozenset(" \t\n\r,]")  # what shows that a number has ended


def _misplaced(words: str, text: str, at: int, name: str, lines: int) -> TableError:
    start = text.rfind("\n", 0, at) + 1
    line = text[start:].partition("\n")[0]
    number = lines + text.count("\n", 0, at) + 1
    return TableError(
        f"{name}, line {number}: {words}", line=line, span=(at - start, at - start + 1)
    )


def looks_like_lines(body: str) -> bool:
    """Whether a text that begins as JSON is an object a line."""
    if not body.startswith("{"):
        return False
    head, newline, rest = body.partition("\n")
    return bool(newline) and head.rstrip().endswith("}") and rest.lstrip()[:1] == "{"
