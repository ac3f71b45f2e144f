"""Text with separators: which one, whether the first line is a header, and the cells of every line.

A header is a line whose fields look like names, above lines that hold numbers. Comma, tab, semicolon, | and
blanks separate; quotes may stand around any field, `#` begins a remark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

import gradcli.engine.system.spread as spread
from gradcli.tables.table_errors import TableError, counted

SAMPLE = 20  # lines that are looked at to tell separators from each other
# A remark, unless it is what Excel writes for a formula without a value.
_REMARK = re.compile(r"(?:^|(?<=[ \t]))#(?!N/A|DIV/0!|VALUE!|REF!|NAME\?|NUM!|NULL!).*")
_NUMBER = re.compile(
    r"[-+]?(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][-+]?\d+)?|[-+]?(?:inf|infinity|nan)"
    r"|[-+\d.eEinfa]*(?:[\d.]|inf|nan)j",
    re.I,
)
_NAME = re.compile(r"[^\W\d].*|[#%°µ$][^\W\d].*", re.S)
_MISREAD = re.compile(r"(?=.*\.)[OoIl\d.]+")  # the number 1.0 with a letter in it
_GLUED = re.compile(r"[-+.\d]+\s*[,;\t ]\s*[-+.\d]+")
_CALL = re.compile(r"[^\W\d]\(")
_TRUTH = ("True", "False")
_MISSING = frozenset(("", "na", "n/a", "#n/a", "<na>", "nan", "null", "\\n"))


def is_missing(cell: str) -> bool:
    """Whether a cell says that there is no value: it is empty, NA, nan, null, or as tools write it."""
    return cell.strip().lstrip("+-").lower() in _MISSING


def is_number(cell: str) -> bool:
    """Whether a cell is written like a number, perhaps with its uncertainty."""
    bare = cell.strip()
    return _NUMBER.fullmatch(bare) is not None or spread.split(bare) is not None


def is_name(cell: str) -> bool:
    """Whether a cell looks like the name of a column."""
    bare = cell.strip()
    if is_number(bare) or is_missing(bare) or _MISREAD.fullmatch(bare) or bare in _TRUTH:
        return False
    return _NAME.fullmatch(bare) is not None


def is_row(line: str, name: str) -> bool:
    """Whether a line by itself is one of a table: numbers and names, without what only a value may have.

    What --plain prints has nan, brackets, a call, truth values, or a comma at its end.
    """
    separator = _separator([line], name)
    dialect = Dialect(separator, '"' in line, "#" in line)
    cells = [cell for _, fields in rows_of([line], dialect, name) for cell in fields]
    if (separator == "," and not cells[-1]) or _CALL.search(line):
        return False
    return all(
        (is_number(cell) or is_name(cell) or is_missing(cell))
        and cell.lstrip("+-").lower() != "nan"
        for cell in cells
    )


class Dialect:
    """separator: None for blanks. names: of the header, if there is one. width: the fields of a line."""

    __slots__ = ("names", "quoted", "remarks", "separator", "trailing", "width")

    def __init__(self, separator: str | None, quoted: bool, remarks: bool) -> None:
        self.separator, self.quoted, self.remarks = separator, quoted, remarks
        self.names: list[str] | None = None
        self.trailing = False  # whether all lines end with a separator
        self.width = 0


Row = tuple[int, list[str]]


def rows_of(lines: Iterable[str], dialect: Dialect, name: str, first: int = 1) -> Iterator[Row]:
    """Each line that holds something: its number, its fields without blanks and quotes around them."""
    if dialect.quoted:
        yield from _quoted_rows(lines, dialect, name, first)
        return
    separator, remarks = dialect.separator, dialect.remarks
    for number, line in enumerate(lines, first):
        if remarks and "#" in line:
            line = _REMARK.sub("", line)
        if separator is None:
            if fields := spread.together(line).split():
                yield number, fields
        elif line and not line.isspace():
            yield number, [field.strip() for field in line.split(separator)]


def _quoted_rows(lines: Iterable[str], dialect: Dialect, name: str, first: int) -> Iterator[Row]:
    import csv

    def without_remarks() -> Iterator[str]:
        for line in lines:
            yield ("" if dialect.remarks and _REMARK.match(line.lstrip()) else line) + "\n"

    reader = csv.reader(
        without_remarks(), delimiter=dialect.separator or " ", skipinitialspace=True, strict=True
    )
    number = first
    while True:
        try:
            fields = next(reader, None)
        except csv.Error as error:
            raise TableError(f"{name}, line {first + reader.line_num - 1}: {error}") from None
        if fields is None:
            return
        if dialect.separator is None:
            fields = [field for field in fields if field]
        fields = [field.strip() for field in fields]
        if any(fields) or (len(fields) > 1 and dialect.separator is not None):
            yield number, fields
        number = first + reader.line_num


def sniff(
    lines: list[str], name: str, kind: str, asked: Callable[[list[str]], bool] | None
) -> Dialect:
    """The dialect of a text, by its first lines.

    asked: columns are wanted by name; says whether a line holds one of those names. Then the first line
    need only look like names, whatever stands below it.
    """
    sample: list[str] = []
    for line in lines:
        if line.strip() and not _REMARK.match(line.lstrip()):
            sample.append(line)
            if len(sample) == SAMPLE:
                break
    if not sample:
        raise TableError(f"{name} holds no numbers")
    whole = len(sample)
    while whole > 1 and "".join(sample[:whole]).count('"') % 2:  # a quote is open at its end
        whole -= 1
    sample = sample[:whole]
    quoted = any('"' in line for line in lines)
    remarks = any("#" in line for line in lines)
    kept = [(_REMARK.sub("", line) if remarks and '"' not in line else line) for line in sample]
    separator = "\t" if kind == "tsv" else _separator(kept, name)
    dialect = Dialect(separator, quoted, remarks)
    rows = [fields for _, fields in rows_of(kept, dialect, name)]
    if not rows:
        raise TableError(f"{name} holds no numbers")
    head, below = rows[0], rows[1:]
    if any(map(is_name, head)) and all(not cell or is_name(cell) for cell in head):
        named = asked is not None or any(map(is_number, below[0] if below else [])) or not below
    else:
        named = asked is not None and (asked(head) or _may_be_header(head))
    longer = bool(below) and all(len(r) == len(head) + 1 for r in below)
    if named and longer and all(line.startswith('"') for line in kept[1:]):
        head = ["", *head]  # of the names of rows, in quotes, R writes no heading
    width = len(head)
    if width > 1 and separator is not None and all(len(r) > 1 and not r[-1] for r in rows):
        dialect.trailing = True
        width -= 1
    elif not named and below and all(len(r) == width - 1 for r in below) and not head[-1]:
        width -= 1
    dialect.width = width
    if named:
        dialect.names = head[:width]
        if not below and asked is None:
            raise TableError(f"{name} holds no numbers, only the names of columns")
    return dialect


def _may_be_header(cells: list[str]) -> bool:
    """Whether a line names columns, where some line must: `name,2x,T (K)`."""
    return any(map(is_name, cells)) and not any(
        is_number(cell) or is_missing(cell) or _MISREAD.fullmatch(cell) for cell in cells if cell
    )


def _separator(sample: list[str], name: str) -> str | None:
    """The separator whose fields hold the most numbers, and the fewest that are glued together."""
    marks = [mark for mark in "\t,;|" if mark in sample[0]]
    if len(marks) == 1 and '"' not in sample[0]:
        head = [cell.strip() for cell in sample[0].split(marks[0])]
        if _may_be_header(head) and marks[0] in "".join(sample[1:]):
            return marks[0]
    best, chosen = None, None
    for separator in ("\t", ",", ";", "|", None):
        if separator is not None and not any(separator in line for line in sample):
            continue
        dialect = Dialect(separator, any('"' in line for line in sample), False)
        try:
            rows = [fields for _, fields in rows_of(sample, dialect, name)]
        except TableError:
            continue
        cells = [cell for row in rows for cell in row]
        numbers = sum(map(is_number, cells))
        glued = sum(1 for cell in cells if _GLUED.fullmatch(cell))
        even = len({len(row) for row in rows}) == 1 and len(rows[0]) > 1
        score = (numbers - 3 * glued, even, separator is not None)
        if best is None or score > best:
            best, chosen = score, separator
    return chosen


def fitted(row: Row, dialect: Dialect, name: str, begins: int) -> list[str]:
    """The fields of a line, as many as the table has columns; TableError where that cannot be."""
    number, fields = row
    width = dialect.width
    if len(fields) == width:
        return fields
    if len(fields) == width + 1 and not fields[-1] and dialect.separator is not None:
        return fields[:-1]
    raise TableError(
        f"{name}, line {number}: {counted(len(fields))}, and line {begins} has {width}",
        hint="give every line of the table the same number of values",
    )


def place(line: str, dialect: Dialect, column: int, cell: str) -> tuple[int, int]:
    """Where a field stands in its line."""
    start = 0
    if dialect.separator is not None and not dialect.quoted:
        pieces = line.split(dialect.separator)
        start = sum(len(piece) + 1 for piece in pieces[:column])
        end = start + (len(pieces[column]) if column < len(pieces) else 0)
        bare = line[start:end]
        start += len(bare) - len(bare.lstrip())
        return start, start + max(len(bare.strip()), 1)
    for piece in re.finditer(r"\"(?:[^\"]|\"\")*\"|[^\s,;|\t\"]+|(?<=[,;|\t])(?=[,;|\t]|$)", line):
        if column == 0:
            return piece.start(), max(piece.end(), piece.start() + 1)
        column -= 1
    found = max(line.find(cell), 0)
    return found, found + max(len(cell), 1)
