"""How lines are cut into cells: as they stand where header and rows are plain, else by the text's layout."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gradcli.tables import delimited
from gradcli.tables.cell_kinds import kind, shape
from gradcli.tables.delimited import Dialect
from gradcli.tables.named_columns import Cells, CellTable, Table
from gradcli.tables.reading_options import How, Reading, separator_of
from gradcli.tables.table_errors import TableError, counted

Asked = Callable[[list[str]], bool] | None
LETTERS = 1 << 16  # of a text that are looked at
_SIGNS = frozenset("%!;*@'/")  # that begin remarks elsewhere
FOOTER = 20  # lines at the end that may be none of the table
SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\r?', re.I)  # how Excel says what separates
_PREAMBLE = 100  # lines among which the end of a preamble is looked for
_REMARKS = 1000  # lines among which data sets are looked for
# What spreadsheets and loggers put below a column of numbers.
_SUM = re.compile(
    r"(?:grand |sub)?total|sum|summe|gesamt|somme|mean|average|avg|mittel(?:wert)?|moyenne"
    r"|std(?:\.? ?dev\.?)?|min|max|count|median|\W+",
    re.I,
)
# What stands for a missing number: -999, 9999.9, LAS's -999.25, netCDF's and Fortran's largest numbers.
_FILL = re.compile(
    r"-?9{3,6}(?:\.(?:0+|9+|25))?|-99(?:\.(?:0+|9+))?|-?(?:1(?:\.0*)?|9\.96921\d*)[eE]\+?[23]\d"
)
_BROKEN = re.compile(r"[\W_]*\d[\W\d_]*")
_RULER = re.compile("[=*~]{2,}|[-_]{4,}")
_FEW_OTHERS = 3  # numbers of a column, which tell what is far from them
_LOST = 4  # times as many remarks that look like rows as there are rows: these are not all rows
_FAR = 4  # times the largest of them


def sniff(
    lines: Sequence[str], name: str, told: str, asked: Asked, reading: Reading, whole: bool = True
) -> Dialect | None:
    """The dialect of a text, by its first lines; None where more of them must be seen.

    told: the kind that the file's ending tells. asked: see `delimited.plain`. whole: whether these are all
    lines. Raises TableError for what is no table, and for what has two readings.
    """
    head = _head(lines)
    found: Dialect | None = None
    rows: list[list[str]] = []
    error: TableError | None = None
    if not reading.how.says_lines and not SEPARATOR_LINE.fullmatch(head[0] if head else ""):
        try:
            found, rows = delimited.plain(head, name, told, asked)
        except TableError as one:
            error = one
        else:
            plain = len(rows) > 1 and rows[0][0][:1] not in _SIGNS and _is_plain(found, rows)
            if plain and not _begins_below(head, found):
                return _settled(found, head, name, reading)
    enough = whole or len(head) < len(lines)
    if not enough:
        return None
    laid = _by_layout(head, name, told, reading)
    if laid is not None:
        try:
            return _settled(laid, head, name, reading)
        except TableError as other:  # a quote that does not end
            raise error or other from None
    if found is None and error is None:
        blank = [""] * max(reading.how.skip_lines, _line(reading.how.header) - 1)
        given = separator_of(reading.how)
        rest = [*blank, *head[len(blank) :]]
        found, rows = delimited.plain(rest, name, told, lambda _: True, given)
        if reading.how.names:
            found.names = list(reading.how.names)
    if found is None:
        assert error is not None
        raise error
    numbers = any(delimited.is_number(cell) for row in rows for cell in row)
    if not numbers and len({len(row) for row in rows}) > 1:
        raise TableError(
            f"{name}: no rows of numbers",
            line=next(line for line in head if line.strip()),
            hint="--separator says what separates them, --skip-lines N where they begin",
        )
    return _settled(found, head, name, reading)


def _line(number: int | str | None) -> int:
    return number if isinstance(number, int) else 0


def _head(lines: Sequence[str]) -> list[str]:
    """The first lines, as many as are looked at."""
    letters = 0
    made: list[str] = []
    for line in lines:
        letters += len(line) + bool(line)
        if letters > LETTERS and made:
            break
        made.append(line)
    return made


def _is_plain(dialect: Dialect, rows: Sequence[list[str]]) -> bool:
    """Whether the first line has the names and all others are rows, numbers as Python writes them."""
    names, width = dialect.names, dialect.width
    if names is None:
        return False
    below = rows[1:]
    if any(len(r) != width and (len(r) < width or any(r[width:])) for r in below):
        return False
    kinds = [[kind(shape(c), ".") for c in r[:width]] for r in below]
    for row, found in zip(below, kinds, strict=True):
        if "n" in found and any(
            k == "n" and not delimited.is_number(c) for c, k in zip(row, found, strict=False)
        ):
            return False
        commas = dialect.separator != "," or dialect.quoted
        if commas and any("," in c and kind(shape(c), ",") == "n" for c in row):
            return False
    # A line of words alone above rows of numbers: units, or the true header below a preamble.
    half = len(kinds) // 2
    numeric = [sum(k[c] == "n" for k in kinds[half:]) * 2 > len(kinds) - half for c in range(width)]
    for row, found in zip(below, kinds, strict=True):
        if "n" not in found and "t" not in found:
            if any(k == "w" and n for k, n in zip(found, numeric, strict=False)):
                return False
            if all(re.fullmatch(r"[-=:+]{2,}", cell) for cell in row):  # a ruler below the names
                return False
    return True


def _begins_below(lines: Sequence[str], dialect: Dialect) -> bool:
    """Whether names of as many columns stand below a blank line: what is above them is preamble."""
    for before, line in itertools.pairwise(lines[:_PREAMBLE]):
        if before.strip() or not line.strip() or line is lines[0]:
            continue
        fields = next((f for _, f in delimited.rows_of([line], dialect, "")), [])
        kinds = {kind(shape(cell), ".") for cell in fields}
        if len(fields) == dialect.width > 1 and kinds == {"w"}:
            return True
    return False


def _settled(dialect: Dialect, lines: Sequence[str], name: str, reading: Reading) -> Dialect:
    """The dialect, with where its rows begin and what their cells are."""
    how = reading.how
    if not dialect.first_row:
        rows = delimited.rows_of(lines, dialect, name)
        first = next(rows, (0, []))
        dialect.header = first[0]
        dialect.first_row = first[0]
        if dialect.names is not None:
            second = next(rows, None)
            dialect.first_row = second[0] if second is not None else len(lines) + 1
    markers = [marker.strip() for marker in how.missing_markers]
    dialect.markers = frozenset(marker for marker in markers if marker)
    _look(dialect, lines, name, reading)
    return dialect


def _by_layout(lines: list[str], name: str, told: str, reading: Reading) -> Dialect | None:
    from gradcli.tables.text_layout import read_layout

    try:
        found = read_layout("\n".join(lines), told, reading.how)
    except TableError as error:
        error.message = f"{name}: {error.message}"
        raise
    if found is None:
        return None
    if found.question is not None:
        words, hint = found.question
        raise TableError(f"{name}: {words}", hint=hint)
    quoted = any('"' in line for line in lines[found.first_row - 1 :])
    separator = None if found.separator in (" ", "fixed") else found.separator
    made = Dialect(separator, quoted, found.remarks)
    made.names, made.width, made.trailing = found.names, found.width, found.trailing
    made.header, made.first_row = found.names_line or found.first_row, found.first_row
    made.cuts = found.cuts
    made.joined, made.decimal, made.thousands = found.joined, found.decimal, found.thousands
    made.units = found.units
    made.hashed = delimited.hashed(lines)
    facts: dict[str, Any] = {
        "preamble_lines": found.preamble,
        "names_line": found.names_line or None,
        "units_line": found.units_line or None,
        "first_row_line": found.first_row,
        "separator": {" ": "blank", "\t": "tab"}.get(found.separator, found.separator),
        "decimal": found.decimal,
    }
    if found.units:
        names = found.names or [str(k) for k in range(1, found.width + 1)]
        facts["units"] = {n: u for n, u in zip(names, found.units, strict=False) if u}
    if found.notes:
        reading.keep(name, facts)
    for words in found.notes:
        reading.note(name, words)
    return made


def _look(dialect: Dialect, lines: Sequence[str], name: str, reading: Reading) -> None:
    """Look at the first rows: which columns have times, which lines are remarks that look like rows."""
    rows: list[list[str]] = []
    for _, fields in delimited.rows_of(lines, dialect, name):
        rows.append(fields)
        if len(rows) == delimited.CHECKED:
            break
    numeric = []
    fills: dict[str, list[str]] = {}
    for column in range(dialect.width):
        cells = [r[column] for r in rows if column < len(r)]
        kinds = {kind(shape(cell), dialect.decimal) for cell in cells[:50]} - {"m"}
        if "n" in kinds or "t" in kinds:
            numeric.append(column)
            _note_fill(dialect, column, cells, fills)
        if kinds != {"t"}:
            continue
        title = dialect.names[column] if dialect.names else str(column + 1)
        there = [c for c in cells if kind(shape(c), dialect.decimal) == "t"]
        if (clock := _clock(title, there, name, reading)) is not None:
            dialect.clocks[column] = clock
    dialect.numeric = frozenset(numeric)
    for cell, titles in fills.items():
        reading.note(
            name,
            f"{cell} in {', '.join(titles)} may stand for a missing number: --missing-markers {cell} "
            "reads it so",
        )
    _check_remarks(lines, len(rows), dialect, name, reading)
    tell_remark(lines, 1, dialect, name, reading)
    _tell_blocks(dialect, lines, name, reading)


def _note_fill(
    dialect: Dialect, column: int, cells: Sequence[str], fills: dict[str, list[str]]
) -> None:
    """Add a column to those in which a number may stand for none: -999 among 20.5 and 21."""
    found = {cell for cell in cells if _FILL.fullmatch(cell)} - dialect.markers
    if not found:
        return
    others = [
        float(c) for c in cells if c not in found and delimited.is_number(c) and c[-1] not in "jJ"
    ]
    if len(others) < _FEW_OTHERS:
        return
    largest, least = max(map(abs, others)), min(others)
    for cell in found:
        number = float(cell)
        if abs(number) >= _FAR * largest or number < 0 <= least:
            title = dialect.names[column] if dialect.names else str(column + 1)
            fills.setdefault(cell, []).append(title)


def _clock(title: str, cells: Sequence[str], name: str, reading: Reading) -> Any:
    """How the times of a column are numbers; None where they are none."""
    from gradcli.tables.times import clock_of

    made = clock_of(title, cells, reading.how.date_order, reading.how.time_unit)
    if made is not None:
        reading.clocks[title] = made
        made.tell = lambda words: reading.note(name, words)
        made.unit = reading.unit(title, made.unit == "d")
        if made.order:
            made.origin, made.shown = reading.origin(made, cells[0], made.order)
            made.first = made.unit == "d" and reading.how.time_origin is None
    return made


def read_texts(table: Table, column: int, cells: list[Any], reading: Reading) -> Cells | None:
    """A column of text as numbers, where its first cells are numbers or times; else None."""
    name = table.names[column]
    clock = reading.clocks.get(name)
    if clock is None:
        there = [c for c in cells[: delimited.CHECKED] if isinstance(c, str) and c]
        kinds = {kind(shape(cell), ".") for cell in there} - {"m"}
        if not kinds <= {"n", "t"}:
            return None
        there = [c for c in there if kind(shape(c), ".") == "t"]
        clock = _clock(name, there, table.name, reading) if kinds == {"t"} else None
    made = CellTable(table.name, [name], [cells])
    made.start = table.start
    made.clocks = {} if clock is None else {0: clock}
    return made.readable(0)


def clocks_of(table: Any, reading: Reading) -> dict[int, Any]:
    """How the times of a table of JSON are numbers, by column."""
    found = {}
    for column, cells in enumerate(table.columns):
        there = [c for c in cells[: delimited.CHECKED] if isinstance(c, str) and c]
        if there and {kind(shape(c), ".") for c in there} == {"t"}:
            clock = _clock(table.names[column], there, table.name, reading)
            if clock is not None:
                found[column] = clock
    return found


def _check_remarks(
    lines: Sequence[str], rows: int, dialect: Dialect, name: str, reading: Reading
) -> None:
    """Refuse a text whose rows would be taken for remarks; say it where more than half of them are."""
    signs = dialect.remarks
    lost = [
        k
        for k, line in enumerate(lines, 1)
        if line.lstrip()[:1] in signs and line.strip() and _is_lost_row(line.strip(), dialect)
    ]
    if not rows and not lost and dialect.first_row <= len(lines):
        raise TableError(f"{name}: no rows of numbers: each line below the names is a comment")
    if len(lost) <= rows or (rows and reading.how.comment is not None):
        return
    sign = lines[lost[0] - 1].lstrip()[0]
    words = (
        f"{counted(len(lost), 'line')} that look{'s' * (len(lost) == 1)} like rows, from line {lost[0]}, "
        f"{'begin' if len(lost) > 1 else 'begins'} with `{sign}` and would be comments"
    )
    if not rows or len(lost) > rows * (_LOST if sign == "#" else 1):
        raise TableError(
            f"{name}: {words}" + (f", and {rows} would not" if rows else ""),
            line=lines[lost[0] - 1],
            hint=f"--comment CHARS says what starts a comment, as in --comment {_other(sign)}",
        )
    reading.note(name, words.replace("would be", "are"))


def _other(sign: str) -> str:
    return "%" if sign != "%" else "!"


def _is_lost_row(bare: str, dialect: Dialect) -> bool:
    """Whether a remark would be a row without its sign."""
    if delimited.without_remark(bare, dialect).strip():
        return False
    inside = bare.strip(bare[0]).strip()
    cells = inside.split(dialect.separator)
    kinds = [kind(shape(cell.strip()), dialect.decimal) for cell in cells]
    numbers, words = kinds.count("n"), kinds.count("w")
    if len(cells) == dialect.width:
        return numbers > words
    return not words and numbers >= min(dialect.width, 2)  # `0 * 92.57 * 5.6`


def tell_remark(
    lines: Sequence[str], first: int, dialect: Dialect, name: str, reading: Reading
) -> None:
    """Say which line below the names is a remark that has as many cells as rows: the first of a file.

    first: the number of the first of the lines.
    """
    if "#" not in dialect.remarks or reading.remarked(name):
        return
    for number, line in enumerate(lines, first):
        if "#" not in line or number < dialect.first_row:
            continue
        bare = line.strip()
        if bare[0] != "#" or delimited.without_remark(line, dialect).strip():
            continue
        words = bare.count(dialect.separator) + 1 if dialect.separator else len(bare[1:].split())
        if words == dialect.width:
            shown = bare if len(bare) < 40 else bare[:37] + "…"
            reading.remarked(name, f"line {number} is a remark ({shown})")
            return


def _tell_blocks(dialect: Dialect, lines: Sequence[str], name: str, reading: Reading) -> None:
    """Say that data sets stand below each other."""
    blank, rows, twice = 0, 0, False
    begin = max(dialect.first_row, 1)
    for line in lines[begin - 1 : begin + _REMARKS]:
        bare = line.strip()
        if not bare:
            blank += 1
            continue
        if bare[0] in dialect.remarks and not delimited.without_remark(line, dialect).strip():
            continue
        twice = twice or (blank >= 2 and rows > 0 and re.search(r"\d", bare) is not None)
        blank, rows = 0, rows + 1
    if twice and reading.how.block is None:
        reading.note(
            name, "data sets with blank lines between them are one table (--block N takes one)"
        )


# -- below the table ------------------------------------------------------------------------------
def footer_begins(lines: Sequence[str], dialect: Dialect, how: How) -> int:
    """The place of the first line below the table, which is no row: `End of data`; else their count."""
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    if how.footer:
        return max(end - how.footer, 0)
    at = found = end
    while at and end - at < FOOTER:
        line = lines[at - 1]
        if line.count('"') % 2:
            break
        fields = next((f for _, f in delimited.rows_of([line], dialect, "", dialect.first_row)), [])
        if fields and not _is_below(fields, dialect):
            break
        at -= 1
        if fields:
            found = at
    return found if found < end and at else len(lines)


def _is_below(fields: list[str], dialect: Dialect) -> bool:
    """Whether a line of words cannot be a row, broken or not; nor can a ruler."""
    if all(map(_RULER.fullmatch, fields)):
        return True
    kinds = [kind(shape(cell), dialect.decimal) for cell in fields]
    if not dialect.numeric or "w" not in kinds:
        return False
    if kinds[0] == "w" and 0 in dialect.numeric and _SUM.fullmatch(fields[0]):
        return True
    if len(fields) != dialect.width:
        return not ("n" in kinds or "t" in kinds) or (0 in dialect.numeric and kinds[0] == "w")
    if "n" in kinds or "t" in kinds:
        return False
    # A cell of digits without letters in a column of numbers, `(1200)` or `12%`, is a broken number.
    there = [fields[c] for c in dialect.numeric if kinds[c] == "w"]
    return bool(there) and not any(map(_BROKEN.fullmatch, there))


def tell_footer(
    lines: Sequence[str], number: int, name: str, reading: Reading, more: int = 0
) -> None:
    """Say which lines at the end were left out. number: of the first. more: lines behind these."""
    there = [(k, line.strip()) for k, line in enumerate(lines, number) if line.strip()]
    if not there:
        return
    at, text = there[0]
    shown = text if len(text) < 40 else text[:37] + "…"
    reading.keep(name, {"footer_line": at})
    reading.note(
        name,
        f"{counted(len(there) + more, 'line')} below the table left out, from line {at} ({shown})",
    )


def tell_total(line: str, dialect: Dialect, name: str, reading: Reading) -> None:
    """Say that the last row may be a sum of the others: `Total,60` below `Mar,30`."""
    row = delimited.rows_of([line], dialect, "", dialect.first_row)
    fields = next((f for _, f in row), [""])
    kinds = [kind(shape(cell), dialect.decimal) for cell in fields]
    sums = re.search(r"\w", fields[0]) and _SUM.fullmatch(fields[0].rstrip(" :"))
    if sums and kinds[0] == "w" and "n" in kinds:
        shown = line.strip() if len(line.strip()) < 40 else line.strip()[:37] + "…"
        reading.note(
            name, f"the last row ({shown}) may sum up the others: --skip-footer 1 leaves it out"
        )


class Blocks:
    """Leaves the lines of one data set of several, which two blank lines part; the others become blank."""

    def __init__(self, wanted: int) -> None:
        self.wanted, self.current, self.blank = wanted, 1, 0
        self.begun = False

    def only(self, lines: Iterable[str]) -> list[str]:
        """Lines of which those of other data sets are empty."""
        made = []
        for line in lines:
            if line.strip():
                if self.begun and self.blank >= 2:
                    self.current += 1
                self.begun, self.blank = True, 0
            else:
                self.blank += 1
            made.append(line if self.current == self.wanted else "")
        return made


__all__ = [
    "FOOTER",
    "LETTERS",
    "Blocks",
    "clocks_of",
    "footer_begins",
    "sniff",
    "tell_footer",
    "tell_total",
]
