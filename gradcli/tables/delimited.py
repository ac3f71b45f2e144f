"""Text with separators: which one, whether the first line is a header, and the cells of every line.

A header is a line whose fields look like names, above lines that hold numbers. Comma, tab, semicolon, | and
blanks separate; quotes may stand around any field, `#` begins a remark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import gradcli.engine.system.spread as spread
from gradcli.tables.table_errors import TableError, counted

SAMPLE = 20  # lines that are looked at to tell separators from each other
CHECKED = 200  # lines of which each must be a row of the same table
# A remark, unless it is what Excel writes for a formula without a value, or the end of a cell (`Run #,V`).
_ERRORS = r"N/A|DIV/0!|VALUE!|REF!|NAME\?|NUM!|NULL!"
_REMARK = re.compile(rf"(?:^#(?!{_ERRORS})|(?<=[ \t])#(?!{_ERRORS}|[,;|\t])).*")
_CELL = re.compile(r"\t+#\t")  # the unit of a column that counts, and no remark
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


def is_misread(cell: str) -> bool:
    """Whether a cell is a number with a letter for a digit: 1.O."""
    return _MISREAD.fullmatch(cell) is not None


def is_row(line: str, name: str) -> bool:
    """Whether a line by itself is one of a table: numbers and names, without what only a value may have.

    What --plain prints has nan, brackets, a call, truth values, or a comma at its end.
    """
    separator = _separator([line], name)
    dialect = Dialect(separator, '"' in line, "#" if "#" in line else "")
    cells = [cell for _, fields in rows_of([line], dialect, name) for cell in fields]
    if (separator == "," and not cells[-1]) or _CALL.search(line):
        return False
    return all(
        (is_number(cell) or is_name(cell) or is_missing(cell))
        and cell.lstrip("+-").lower() != "nan"
        for cell in cells
    )


class Dialect:
    """How lines are cut into cells.

    separator: None for blanks. names: of the header, if there is one. width: the fields of a line. remarks:
    signs that begin them. hashed: whether a line that begins with # may be a row. header: the number of
    the line that has the names, or else of the first row, where the rows begin. joined: the place of a date
    whose time is the next field. cuts: where columns of characters begin. decimal, thousands: the signs in
    numbers. markers: cells that say that there is no number. clocks: by column, how times are numbers.
    numeric: the columns that begin with numbers or times.
    """

    __slots__ = (
        *("names", "quoted", "remarks", "separator", "trailing", "width", "hashed", "header"),
        *("first_row", "joined", "cuts", "decimal", "thousands", "markers", "clocks", "units"),
        "numeric",
    )

    def __init__(self, separator: str | None, quoted: bool, remarks: str) -> None:
        self.separator, self.quoted, self.remarks = separator, quoted, remarks
        self.names: list[str] | None = None
        self.trailing = False  # whether all lines end with a separator
        self.hashed = False
        self.width = self.header = self.first_row = 0
        self.joined: int | None = None
        self.cuts: list[int] = []
        self.decimal, self.thousands = ".", ""
        self.markers: frozenset[str] = frozenset()
        self.units: list[str] = []
        self.clocks: dict[int, Any] = {}
        self.numeric: frozenset[int] = frozenset()

    @property
    def is_python(self) -> bool:
        """Whether numbers are written as Python writes them."""
        return self.decimal == "." and not self.thousands and not self.markers


Row = tuple[int, list[str]]


def rows_of(lines: Sequence[str], dialect: Dialect, name: str, first: int = 1) -> Iterator[Row]:
    """Each line that is a row: its number, its fields without blanks and quotes around them."""
    if (before := dialect.first_row - first) > 0:
        lines, first = lines[before:], first + before
    found = (
        _quoted_rows(lines, dialect, name, first)
        if dialect.quoted
        else _rows(lines, dialect, first)
    )
    if dialect.joined is None:
        return found
    return _joined(found, dialect.joined, dialect.width)


def _joined(rows: Iterator[Row], at: int, width: int) -> Iterator[Row]:
    for number, fields in rows:
        if len(fields) > width:
            fields[at : at + 2] = [" ".join(fields[at : at + 2])]
        yield number, fields


def _rows(lines: Sequence[str], dialect: Dialect, first: int) -> Iterator[Row]:
    separator, cuts = dialect.separator, dialect.cuts
    others, hashes = dialect.remarks.replace("#", ""), "#" in dialect.remarks
    for number, line in enumerate(lines, first):
        if (hashes and "#" in line) or (others and line.lstrip()[:1] in others):
            line = without_remark(line, dialect)
        if cuts:
            if line and not line.isspace():
                ends = [*cuts[1:], None]
                yield number, [line[a:b].strip() for a, b in zip(cuts, ends, strict=True)]
        elif separator is None:
            if fields := spread.together(line).split():
                yield number, fields
        elif line and not line.isspace():
            if separator == "|":
                line = bars_off(line)
            yield number, [field.strip() for field in line.split(separator)]


def bars_off(line: str) -> str:
    """A line without the bars at its ends: `| 1 | 2 |`."""
    bare = line.strip()
    return bare[1:].removesuffix("|") if bare[:1] == "|" else line


def without_remark(line: str, dialect: Dialect) -> str:
    """The line as far as it is none; a line that begins with # and has a row's cells may be a row."""
    bare = line.lstrip()
    if bare and bare[0] in dialect.remarks:
        if bare[0] == "#":
            mark = dialect.separator
            if mark == "\t" and _CELL.match(line):
                return line
            if dialect.hashed and mark and line.count(mark) == dialect.width - 1 + dialect.trailing:
                return line
            return _REMARK.sub("", bare)
        return ""
    return _REMARK.sub("", line) if "#" in line and "#" in dialect.remarks else line


def _quoted_rows(lines: Sequence[str], dialect: Dialect, name: str, first: int) -> Iterator[Row]:
    import csv

    def without_remarks() -> Iterator[str]:
        inside = False  # of quotes, which may hold lines
        for line in lines:
            if not inside:  # what stands behind quotes may be one's own
                kept = without_remark(line, dialect)
                line = kept if '"' not in line or not kept.strip() else line
            inside = inside is not (line.count('"') % 2 == 1)
            yield line + "\n"

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
        # In a column of its own an empty cell stands in quotes; an empty line is no row.
        if lines[number - first].strip() == '""':
            fields = [""]
        elif not any(fields) and (len(fields) < 2 or dialect.separator is None):
            fields = []
        if fields:
            yield number, fields
        number = first + reader.line_num


def hashed(lines: Sequence[str]) -> bool:
    """Whether lines that begin with # are rows: they have as many cells as the header, and the first column
    holds no numbers (`colour,x` above `#ff0000,1`); or the first column is called # (`#,Name,HP`)."""
    if not any(line.lstrip()[:1] == "#" for line in lines):
        return False
    some = [line.strip() for line in lines if line.strip()][:CHECKED]
    head = some[0]
    marks = [mark for mark in ",;\t|" if mark in head]
    if not marks:
        return False
    mark = max(marks, key=head.count)
    count = head.count(mark)
    if head[0] == "#":
        return head.lstrip("#").lstrip()[:1] == mark and any(
            x.count(mark) == count for x in some[1:]
        )
    begun = [line for line in some[1:] if line[0] == "#" and line.count(mark) == count]
    others = [line for line in some[1:] if line[0] != "#" and line.count(mark) == count]
    firsts = [line.split(mark)[0].strip(' "') for line in others]
    return bool(begun) and not any(map(is_number, firsts))


def plain(
    lines: Sequence[str],
    name: str,
    kind: str,
    asked: Callable[[list[str]], bool] | None,
    given: str | None = None,
) -> tuple[Dialect, list[list[str]]]:
    """The dialect of a text that begins with its header, or else its rows, by its first lines; these cut.

    asked: columns are wanted by name; says whether a line holds one of those names. Then the first line
    need only look like names, whatever stands below it. given: the separator, " " for blanks.
    """
    sample: list[str] = []
    rows_begin = hashed(lines)
    for line in lines:
        if line.strip() and (rows_begin or not _REMARK.match(line.lstrip()) or _CELL.match(line)):
            sample.append(line)
            if len(sample) == CHECKED:
                break
    if not sample:
        raise TableError(f"{name} holds no numbers")
    whole = len(sample)
    while whole > 1 and "".join(sample[:whole]).count('"') % 2:  # a quote is open at its end
        whole -= 1
    sample = sample[:whole]
    quoted = any('"' in line for line in lines)
    remarks = "#" if any("#" in line for line in lines) else ""
    kept = [
        (_REMARK.sub("", line) if remarks and '"' not in line and not rows_begin else line)
        for line in sample
    ]
    separator = "\t" if kind == "tsv" else _separator(kept[:SAMPLE], name)
    if given is not None:
        separator = None if given == " " else given
    dialect = Dialect(separator, quoted, "" if rows_begin else remarks)
    dialect.hashed = rows_begin
    rows = [fields for _, fields in rows_of(kept, dialect, name)]
    if not rows:
        raise TableError(f"{name} holds no numbers")
    head, below = rows[0], rows[1:SAMPLE]
    if any(map(is_name, head)) and all(not cell or is_name(cell) or cell == "#" for cell in head):
        named = asked is not None or any(map(is_number, below[0] if below else [])) or not below
    else:
        named = asked is not None and (asked(head) or _may_be_header(head))
    longer = bool(below) and all(len(r) == len(head) + 1 for r in below)
    if named and longer and all(line.startswith('"') for line in kept[1:SAMPLE]):
        head = ["", *head]  # of the names of rows, in quotes, R writes no heading
    width = len(head)
    if width > 1 and separator is not None and all(len(r) > 1 and not r[-1] for r in rows):
        dialect.trailing = True
        width -= 1
    elif not named and below and all(len(r) == width - 1 for r in below) and not head[-1]:
        width -= 1
    dialect.width, dialect.remarks = width, "#"
    if named:
        dialect.names = head[:width]
        if not below and asked is None:
            raise TableError(f"{name} holds no numbers, only the names of columns")
    return dialect, rows


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
        dialect = Dialect(separator, any('"' in line for line in sample), "")
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


def fitted(row: Row, dialect: Dialect, name: str) -> list[str]:
    """The fields of a line, as many as the table has columns; TableError where that cannot be."""
    number, fields = row
    width = dialect.width
    if len(fields) == width:
        return fields
    if len(fields) > width and dialect.separator is not None and not any(fields[width:]):
        return fields[:width]
    what = f"line {dialect.header} has {width}" if dialect.header else f"others have {width}"
    hint = "give every line of the table the same number of values"
    if fields[0][:1].isalpha():
        hint += f"; --comment {fields[0][0]} leaves out lines that begin so"
    raise TableError(f"{name}, line {number}: {counted(len(fields))}, and {what}", hint=hint)


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
