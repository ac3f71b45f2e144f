"""Where the table begins in a text, and what its lines are: told by the lines' looks before a number is read.

The rows are found first: the longest run of lines with the same number of cells of the same kinds. Everything
else is told by where it stands: names and units right above them, what is left above is preamble. What has
two readings is a question, whose answer is an option.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import NamedTuple

import gradcli.engine.system.spread as spread
from gradcli.tables.cell_kinds import is_process, is_unit, kind, shape
from gradcli.tables.delimited import bars_off, is_misread, is_missing
from gradcli.tables.reading_options import How, separator_of
from gradcli.tables.table_errors import TableError, counted

SIGNS = "#%!;*'/@"  # that begin remarks somewhere
SAMPLE = 1 << 16  # letters of a text that are looked at
_FIRST_LOOK = 150  # lines
_ENOUGH = 20  # rows
_JUDGED = 300  # rows whose cells are looked at
_LABEL = re.compile(
    r"(?i)(?:columns?|fields?|(?:column[ _]?)?(?:names?|labels?)|variables?|header|data|legend|definition)"
    r"\s*[:=]\s*"
)
_BANNER = re.compile(r"[>=*_~-]{4,}|[<]{4,}")  # >>>>>Begin Spectral Data<<<<<
# What says that the table stands below, and that it ends.
_BELOW = re.compile(r"(?i)\W*end[ _]?of[ _]?header\b")
_BEGIN = re.compile(r"(?i)[>*=]{3,} *begin\b")
_END = re.compile(r"(?im)^[>*=]{3,} *end\b")
# In a remark, what is no heading: `# Detector Voltage: 2000`, `* System UTC = Aug 12 2011 10:00:00`.
_KEY = re.compile(r"\w\s*(?::|=)\s+\S")
_WITH_UNIT = re.compile(r"[^\s(\[]\S*(?:\s+[(\[][^)\]]*[)\]])?")
_INLINE = re.compile(r"(?<=\S)[ \t]+#(?![,;|\t]|N/A|DIV/0!|VALUE!|REF!|NAME\?|NUM!|NULL!).*")
_LAST_UNIT = re.compile(r"\D*\t#\s*|[^\d#]*[ \t]#\s*")  # a column that counts has the unit #
_HEADER_LINES = 5  # names, units, and what Origin and loggers write below them

Block = list[
    tuple[int, list[str], str]
]  # lines of a header: where, its cells, the sign before them


class Run(NamedTuple):
    """Rows of one table. kinds: of their cells, a letter each (see `cell_kinds.kind`)."""

    score: float = 0
    rows: int = 0
    first: int = 0
    last: int = 0
    kinds: str = ""


class TextLayout:
    """What was found. Lines are counted from 1, and 0 is none.

    separator: " " for blanks, "fixed" for columns of characters. names: None where there are none. kinds:
    of the columns. joined: the place of a date whose time is the next cell. cuts: where columns of
    characters begin. remarks: signs. notes: what is worth saying. question: what has two readings, and
    the option that decides.
    """

    def __init__(self) -> None:
        self.separator, self.decimal, self.thousands = " ", ".", ""
        self.names: list[str] | None = None
        self.units: list[str] = []
        self.names_line = self.units_line = self.first_row = self.last_row = 0
        self.kinds, self.remarks = "", "#"
        self.joined: int | None = None
        self.cuts: list[int] = []
        self.trailing = self.row_names = False
        self.preamble = 0
        self.notes: list[str] = []
        self.question: tuple[str, str] | None = None

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self.kinds)


# -- rows -----------------------------------------------------------------------------------------
def split(line: str, separator: str) -> list[str]:
    """The cells of a line; a separator in quotes is none."""
    if '"' in line:
        import csv

        row = [line.strip().replace("\t", " ") if separator == " " else line]
        cells = next(csv.reader(row, delimiter=separator, skipinitialspace=True), [])
        return [cell.strip() for cell in cells if cell or separator != " "]
    if separator == " ":
        return spread.together(line).split()
    return [
        cell.strip() for cell in (bars_off(line) if separator == "|" else line).split(separator)
    ]


@functools.lru_cache(8192)
def kinds_of(line: str, separator: str, decimal: str) -> str:
    """One letter a cell; "" for blank lines, rulers (---+---) and lines of nothing but separators."""
    found = "".join([kind(cell, decimal) for cell in split(line, separator)])
    return found if found.strip("m") else ""


def _alike(found: str, columns: str) -> bool:
    """Whether a line is a row: as many cells, of the same kinds. A missing cell goes with every kind."""
    if len(found) < len(columns) or found[len(columns) :].strip("m"):
        return False
    return all(a == b or "m" in (a, b) for a, b in zip(found, columns, strict=False))


def _is_remark(line: str, found: str, separator: str, columns: str, signs: str) -> bool:
    """Whether a line that begins with a sign is a remark, and not a row whose first cell begins so."""
    sign = line.lstrip()[0]
    if sign not in signs or sign == separator:
        return False
    return separator == " " or "n" in columns[:1] or not re.fullmatch("w[nt]+", found)


def best_run(shapes: Sequence[str], separator: str, decimal: str, signs: str = SIGNS) -> Run:
    """The best run of rows. signs: that may begin remarks.

    Blank lines and remarks do not break it (gnuplot's blocks), nor do up to three odd lines, if rows go on
    after them. Cells of words cost: a wrong separator makes them.
    """
    best, at = Run(), 0
    while at < len(shapes):
        run, after = _run_from(shapes, at, separator, decimal, signs)
        if run.score > best.score and (separator == " " or len(run.kinds) > 1):
            best = run
        at = max(after, at + 1)
    return best


def _run_from(
    shapes: Sequence[str], start: int, separator: str, decimal: str, signs: str
) -> tuple[Run, int]:
    """The run that begins at a line or below it, and the line after it."""
    columns, rows, first, last = "", 0, start, start
    odd: list[int] = []  # lines that are none, and after which none has come yet
    known: set[str] = set()
    at = start
    while at < len(shapes):
        found = kinds_of(shapes[at], separator, decimal)
        if found and (found in known or (columns and _alike(found, columns))):
            if found not in known and "m" in columns:  # it began with missing cells
                columns = "".join(
                    b if a == "m" else a for a, b in zip(columns, found, strict=False)
                )
                known = set()
            known.add(found)
            rows, last, odd = rows + 1, at, []
        elif found and _is_remark(shapes[at], found, separator, columns, signs):
            pass
        elif found and not columns:
            columns, rows, first, last, known = found, 1, at, at, {found}
        elif found and (rows > 1 or "w" not in columns) and len(odd) < 3 and columns.strip("wm"):
            odd.append(at)
        elif found:
            break
        at += 1
    single = columns.replace("tt", "t") if separator == " " else columns  # a date and its time
    numbers = len(single) - columns.count("w") - columns.count("m")
    score = rows * max(numbers - 0.5 * columns.count("w"), 0.1 * numbers)
    return Run(score, rows, first, last, columns), odd[0] if odd else at


# -- what stands above them -----------------------------------------------------------------------
def as_names(text: str, separator: str, count: int, exactly: bool = False) -> list[str] | None:
    """The cells of a header, also where it is not parted as the rows are: `Time (s)  U (V)` over blanks.

    exactly: only where it is.
    """
    tries = [split(text, separator)]
    if text.count('"') == 2 and text[0] == text[-1] == '"':  # all names in one pair of quotes
        text = text[1:-1].strip()
        tries.append(split(text, separator))
    if separator == " " or not exactly:
        tries.append(_WITH_UNIT.findall(text))
    if count > 1 and not exactly:
        tries.append(re.split(r"\t+| {2,}", text))
        tries += [split(text, other) for other in "\t;|,"]
        tries += [text.split()] * (separator != " ")
    for cells in tries:
        if len(cells) == count + 1 and not cells[0]:  # `; t; U` over `1;2`
            cells = cells[1:]
        while len(cells) > count and not cells[-1]:
            cells = cells[:-1]
        if len(cells) == count:
            return [cell.strip().strip('"') for cell in cells]
    return None


def header(lines: Sequence[str], first: int, separator: str, columns: str, decimal: str) -> Block:
    """The lines right above the rows with as many cells as there are columns.

    Remarks of another length are skipped: the last one with as many words as columns has the names.
    Between names and rows there may be remarks of an instrument: a line of comments, of one cell (`Step
    Information: …`), a ruler.
    """
    exactly = _header(lines, first, separator, columns, decimal, True)
    return exactly or _header(lines, first, separator, columns, decimal, False)


def _header(
    lines: Sequence[str], first: int, separator: str, columns: str, decimal: str, exactly: bool
) -> Block:
    block: Block = []
    gap, count, passed = False, len(columns), 0
    for at in range(first - 1, -1, -1):
        line = lines[at]
        bare = line.strip(" \r") if separator == "\t" else line.strip()
        if not kinds_of(shape(bare), separator, decimal):  # blank, or a ruler
            if block and not bare.strip() and not _all_units(block[0][1]):
                break
            gap |= not bare.strip()
            continue
        sign = bare[0] if bare[0] in SIGNS and bare[0] != separator else ""
        cells = None if sign == "@" else _header_cells(bare, sign, separator, count, exactly)
        if cells and cells[0] and columns[0] == "m" and bare[0] == separator:
            cells = (
                None  # its first cell is empty, as those below, and there is one more than columns
            )
        if cells is not None and count > 1 and not cells[0] and sign and not block:
            cells[0] = sign  # a column that is called #
        good = cells is not None and _is_header(cells, columns, decimal, bool(block))
        labelled = bool(sign and _LABEL.match(bare.lstrip(sign + " \t")))
        good = good and (labelled or not (sign and _KEY.search(bare)))
        if block and (not good or bool(sign) != bool(block[0][2])):
            break
        if not good and not sign and not block and exactly and passed < 2 and count > 1:
            kinds = kinds_of(shape(bare), separator, decimal)
            others = len(kinds) > 1 and cells is None and _all_units(split(bare, separator))
            if len(kinds) == 1 or others or (cells is not None and not set(kinds) & {*"nt"}):
                passed += 1
                continue
        if len(block) == _HEADER_LINES or (not good and not sign):
            break
        if good and cells is not None:
            block.insert(0, (at, cells, sign))
            if labelled:  # these are the names, whatever stands above them
                break
    # `key, value`, a blank line, then rows of two cells: that is no header.
    lone = len(block) == 1 and gap and count <= 2 and not block[0][2]
    return [] if lone else block


def _header_cells(
    bare: str, sign: str, separator: str, count: int, exactly: bool
) -> list[str] | None:
    """The names in a line, without the sign and the word (`Columns:`) that may stand before them."""
    if _BANNER.search(bare):
        return None
    inside = bare.lstrip(sign + " \t") if sign else bare
    label = _LABEL.match(inside)
    cells = as_names(inside[label.end() :] if label else inside, separator, count, exactly)
    if cells is None and sign and label is None and separator != " ":
        found = split(bare, separator)  # a first column that is called #
        cells = found if len(found) == count else None
    return cells


def _all_units(cells: Sequence[str]) -> bool:
    return any(cells) and all(map(is_unit, cells))


def _is_header(cells: list[str], columns: str, decimal: str, names_below: bool) -> bool:
    """Whether cells are names, units or the like above columns of these kinds.

    names_below: there are names below them, which these may put into groups (`run 1,,run 2,`).
    """
    found = "".join([kind(shape(cell), decimal) for cell in cells])
    count = len(cells)
    if count == 1 and re.fullmatch(r"\w+\s*[:=]\s*\S.*", cells[0]):  # a key and its value
        return False
    if not any(a == "w" and b != "w" for a, b in zip(found, columns, strict=True)):
        return _all_units(cells) and "n" in columns
    words = found.count("w") + found.count("m") >= count / 2
    if not words and not (found[0] == "w" and len(set(cells)) == count > 2):
        return False
    if found in ("wn", "wt") or cells[0][-1:] in (":", "="):  # a key and its value
        return False
    if any(map(is_misread, cells)) or not any(re.search(r"[^\W\d_]", cell) for cell in cells):
        return False
    other = "," if decimal == "." else "."
    if any(kind(shape(c), other) == "n" != kind(shape(c), decimal) for c in cells):
        return False
    filled = sum(map(bool, cells[1:]))
    named = found.count("m") <= count / 2 and (
        count == 1 or names_below or filled > (count - 1) / 2
    )
    return named or all(map(is_process, cells)) or all(map(is_unit, cells))


# -- the whole ------------------------------------------------------------------------------------
def read_layout(text: str, kind_of_file: str, how: How) -> TextLayout | None:
    """The layout of a text by its first lines; None where no row of numbers is in it.

    text: with newlines as they should be. Raises TableError where an option cannot be used with it.
    """
    text = text.replace("\x0c", " ")
    lines = text.split("\n")
    if how.separator == "fixed":
        return _fixed(lines, how)
    blanked = _begin(how)
    if blanked >= len(lines):
        raise TableError(
            f"there is no line {blanked + 1}: the text has {counted(len(lines), 'line')}"
        )
    lines[: min(blanked, len(lines))] = [""] * min(blanked, len(lines))
    declared = re.fullmatch(r'"?sep=(.)"?', lines[0].strip("\r"), re.I)
    if declared:
        lines[0] = ""
    separators = _separators(how, declared, kind_of_file, text)
    decimals = [how.decimal] if how.decimal else [".", ","]
    lines = [
        _INLINE.sub("", line) if "#" in line and not _LAST_UNIT.fullmatch(line) else line
        for line in lines
    ]
    begin = _stated_begin(lines)
    looked = [*[""] * begin, *lines[begin:]]
    shapes: list[str] = []
    upto = _FIRST_LOOK
    while True:
        shapes += shape("\n".join(looked[len(shapes) : upto])).split("\n")
        found = [
            (best_run(shapes, s, d, SIGNS if how.comment is None else how.comment), s, d)
            for s in separators
            for d in decimals
            if s != d or '"' in text
        ]
        best = max(found, key=lambda one: one[0].score, default=(Run(), " ", "."))
        if upto >= len(lines) or best[0].rows >= _ENOUGH:
            break
        upto *= 8
    if not best[0].score:
        return None
    out = TextLayout()
    best = _one_or_two(lines, found, best, out, how)
    run, separator, decimal = best
    while run.first and _only_missing(lines[run.first - 1], separator, decimal):
        run = run._replace(first=run.first - 1)  # a first row of nothing but NaN, or inf
    if _is_broken_row(lines, run, separator, decimal):
        run = run._replace(first=run.first - 1)
    out.separator, out.decimal = separator, decimal
    _decimal_sign(lines[run.first : run.first + _JUDGED], out, how)
    out.kinds = run.kinds
    _describe(lines, run, out, how)
    return out


def _stated_begin(lines: Sequence[str]) -> int:
    """The line after the last that says that the header ends there; 0 where none does."""
    head = lines[:_JUDGED]
    stated = [k for k, line in enumerate(head, 1) if _BELOW.match(line)]
    stated = stated or [k for k, line in enumerate(head, 1) if _BEGIN.match(line)][:1]
    return stated[-1] if stated and any(map(str.strip, lines[stated[-1] :])) else 0


def stated_end(text: str, begin: int = 0) -> int | None:
    """Where a line stands that says that the table ends there: `>>>>>End Spectral Data<<<<<`.

    begin: the place of the first row.
    """
    for sign in ">*=":  # far faster than the pattern: first a letter, then the beginning of a line
        if sign in text and (f"\n{sign * 3}" in text or text.startswith(sign * 3)):
            break
    else:
        return None
    found = _END.search(text, begin)
    return None if found is None else found.start()


def table_below(lines: Sequence[str], kind_of_file: str) -> int | None:
    """The place of the first row of a table that begins in these lines; None where there is none."""
    text = "\n".join(lines)[:SAMPLE]
    try:
        found = read_layout(text, kind_of_file, How())
    except TableError:
        return None
    if found is None or found.last_row - found.first_row < 2 or found.width < 2:
        return None
    return found.first_row - 1


def _fixed(lines: list[str], how: How) -> TextLayout | None:
    """Columns of characters: they begin where no line has a letter right before them."""
    begin = _begin(how)
    remarks = how.comment if how.comment is not None else "#"
    there = [
        (k, x) for k, x in enumerate(lines) if k >= begin and x.strip() and x[0] not in remarks
    ]
    if not there:
        return None
    used = {p for _, line in there[:_JUDGED] for p, letter in enumerate(line) if letter != " "}
    out = TextLayout()
    out.separator, out.decimal = "fixed", how.decimal or "."
    out.cuts = sorted(p for p in used if p - 1 not in used)
    ends = [*out.cuts[1:], None]
    cells = [[line[a:b].strip() for a, b in zip(out.cuts, ends, strict=True)] for _, line in there]
    first = there[0][0] + 1
    head = [kind(shape(cell), out.decimal) for cell in cells[0]]
    named = how.header != "none" and "n" not in head and not how.names
    out.kinds = "".join(kind(shape(c), out.decimal) for c in cells[1 if len(cells) > 1 else 0])
    if how.names:
        _check_count(len(how.names), out.width, "--names")
    out.names = list(how.names) or (cells[0] if named else None)
    out.names_line = first if named else 0
    out.first_row = there[1][0] + 1 if named and len(there) > 1 else first
    return out


def _begin(how: How) -> int:
    """How many lines at the start are none of the table, as the user says."""
    named = how.header if isinstance(how.header, int) else 0
    return max(how.skip_lines, named - 1)


def _separators(
    how: How, declared: re.Match[str] | None, kind_of_file: str, text: str
) -> list[str]:
    if (given := separator_of(how)) is not None:
        return [given]
    if declared:
        return [declared[1]]
    if kind_of_file == "tsv" and "\t" in text:
        return ["\t"]
    taken = () if '"' in text else (how.decimal, how.thousands)
    return [s for s in "\t;|, " if s == " " or (s in text and s not in taken)]


def _one_or_two(
    lines: Sequence[str],
    found: list[tuple[Run, str, str]],
    best: tuple[Run, str, str],
    out: TextLayout,
    how: How,
) -> tuple[Run, str, str]:
    """`1,5` in every line: two columns, or one of decimal commas? The header tells, or it is asked."""
    by = {(run.kinds, s, d): (run, s, d) for run, s, d in found}
    one, two = by.get(("n", " ", ",")), by.get(("nn", ",", "."))
    if one is None or two is None or best not in (one, two):
        return best
    names = [header(lines, r.first, s, r.kinds, d) for r, s, d in (one, two)]
    if names[0] and not names[1] and not names[0][-1][2] and "," not in lines[names[0][-1][0]]:
        return one
    if names[1]:
        return two
    if one[0].rows > 2 * two[0].rows:
        return one
    if len(how.names) == 2 or how.header is not None:
        return two
    if len(how.names) == 1:
        return one
    body = [line.strip() for line in lines[two[0].first : two[0].last + 1] if line.strip()]
    if one[0].rows < two[0].rows or any(re.search(r",\s|\s,", line) for line in body):
        return two  # nobody writes a blank into a number
    if any(re.fullmatch(r"[-+]?0,\d*[1-9]\d*|[-+]?\d+,0\d+", line) for line in body):
        thousands = all(re.fullmatch(r"[-+]?[1-9]\d{0,2},\d{3}", line) for line in body)
        out.question = (
            f"`{body[0]}`: two columns, or one with decimal commas?",
            "--separator , reads two columns, --decimal , one"
            + ", --thousands , one of whole numbers" * thousands,
        )
    return two


def _only_missing(line: str, separator: str, decimal: str) -> bool:
    """Whether cells say that there is no number, or that it is infinite; a ruler of dashes is none."""
    cells = split(line, separator) if line.strip() else []
    words = [cell for cell in cells if cell.strip("-+")]
    said = any(is_missing(word) or "inf" in word.lower() for word in words)
    return said and {kind(shape(cell), decimal) for cell in cells} == {"m"}


_PLACES = re.compile(r"[-+]?(\d*)([,.])(\d+)(?:[eE][-+]?\d+)?")
_GROUPED = re.compile(r"[-+]?\d{1,3}(?:([,.'\xa0\u202f ])\d{3})(?:\1\d{3})*(?:([,.])\d*)?")


def _is_broken_row(lines: Sequence[str], run: Run, separator: str, decimal: str) -> bool:
    """Whether the line right above the rows is one of them, with a fault: `1.O` above `2`.

    It has as many cells, with digits in them, and is none of several keys with their values.
    """
    above = lines[run.first - 1].strip() if run.first else ""
    if not re.search(r"\d", above) or (above[0] in SIGNS and above[0] != separator):
        return False
    cells = split(above, separator)
    if len(cells) != len(run.kinds):
        return False
    is_key = kind(shape(cells[0]), decimal) == "w" and not is_misread(cells[0])
    if is_key and separator == " " and len(cells) > 1:  # prose with as many words
        return False
    if is_key and run.first > 2:
        before = [split(line, separator) for line in lines[: run.first - 1] if line.strip()]
        if sum(kind(shape(row[0]), decimal) == "w" for row in before[-2:]) == 2:
            return False
    return not header(lines, run.first, separator, run.kinds, decimal)


_PLACES = re.compile(r"[-+]?(\d*)([,.])(\d+)(?:[eE][-+]?\d+)?")
_GROUPED = re.compile(r"[-+]?\d{1,3}(?:([,.'\xa0\u202f ])\d{3})(?:\1\d{3})*(?:([,.])\d*)?")


def _decimal_sign(rows: Sequence[str], out: TextLayout, how: How) -> None:
    """What a comma, a point or another mark within a number means, by the rows' cells.

    `1.234,5` and `0,5` have decimal commas, `1,234.5` and `1,234,567` marks between thousands. `1,000`
    alone may be either; so may `1.000`, which beside `0,5` has a mark between thousands.
    """
    commas = points = unsure = dotted = ""
    marks: set[str] = set()
    for cell in dict.fromkeys(cell for row in rows for cell in split(row, out.separator)):
        grouped, places = _GROUPED.fullmatch(cell), _PLACES.fullmatch(cell)
        if grouped and (grouped[2] or cell.count(grouped[1]) > 1 or grouped[1] not in ",."):
            marks.add(grouped[1])
            if grouped[1] == "." or grouped[2] == ",":
                commas = cell
            elif grouped[1] == "," or grouped[2] == ".":
                points = cell
        elif places and places[2] == ",":
            if len(places[3]) == 3 and places[1].strip("0") and len(places[1]) < 4:
                unsure = unsure or cell
            else:
                commas = cell
        elif places and len(places[3]) == 3 and places[1].strip("0") and len(places[1]) < 4:
            dotted = cell
        elif places:
            points = cell
    if dotted and commas and not points and out.separator != "," and how.thousands in (None, "."):
        marks.add(".")
    elif dotted and (commas or not unsure):
        points = points or dotted
    if how.decimal is None:
        out.decimal = "," if commas and not points else "."
        if unsure and not (commas or points or how.thousands):
            out.question = (
                f"`{unsure}`: a decimal comma, or a mark between thousands?",
                "--decimal , or --thousands , says which",
            )
        elif unsure and points:
            marks.add(",")
    if how.thousands is not None:
        out.thousands = how.thousands
    else:
        out.thousands = next(iter(sorted(marks - {out.decimal})), "")


def _describe(lines: list[str], run: Run, out: TextLayout, how: How) -> None:
    """Names, units, preamble, remarks: into the layout."""
    grace = _grace_names(lines[: run.first], out.width)
    block = [] if grace else _block(lines, run, out, how)
    names_at = _names_place(block, out, isinstance(how.header, int))
    block = [(line, cells[: out.width], sign) for line, cells, sign in block]
    out.units = out.units[: out.width]
    if block:
        line, cells, _ = block[names_at]
        out.names, out.names_line = list(cells), line + 1
        if names_at > 0 and len(set(cells)) < len(cells):  # `run 1,,run 2,` over `x,y,x,y`
            groups = block[names_at - 1][1]
            filled = [next((g for g in groups[k::-1] if g), "") for k in range(len(cells))]
            out.names = [f"{g} {c}".strip() for g, c in zip(filled, cells, strict=True)]
            out.names_line = line + 1
    if grace:
        out.names = grace
        out.notes.append(f"names by the lines that begin with @ ({', '.join(grace)})")
    if how.names:
        _check_count(len(how.names), out.width, "--names")
        out.names = list(how.names)
    if out.names is not None:
        unnamed = [str(k) for k, name in enumerate(out.names, 1) if not name and k > 1]
        if unnamed and any(out.names):
            has = "columns {} have" if len(unnamed) > 1 else "column {} has"
            out.notes.append(f"{has.format(', '.join(unnamed[:6]))} no name")
        out.names = [re.sub(r"^\d+[:=]\s+", "", n) or str(k) for k, n in enumerate(out.names, 1)]
    out.first_row, out.last_row = run.first + 1, run.last + 1
    out.remarks = _remarks(lines, run, out, how)
    top = out.names_line or out.first_row
    if names_at > 0 and block and len(set(block[names_at][1])) < len(block[names_at][1]):
        top -= 1
    above = [line.strip() for line in lines[: top - 1] if line.strip()]
    signs = [line for line in above if line[0] in SIGNS]
    out.preamble = len(above)
    said = []
    if above and len(signs) == len(above):
        if block and block[names_at][2]:
            said.append(f"{counted(len(above), 'remark')} before the names")
    elif above:
        said.append(f"{counted(len(above), 'line')} of preamble")
    if block:
        shown = ", ".join(n for n in block[names_at][1])
        at_top = out.names_line == 1 and not block[names_at][2]
        if not at_top or len(block) > 1 or above:
            said.append(f"names in line {out.names_line}" + f" ({shown})" * (len(shown) < 60))
    if out.units_line:
        shown = ", ".join(u for u in out.units if u)
        said.append(f"units in line {out.units_line}" + f" ({shown})" * (0 < len(shown) < 60))
    passed = [
        line + 1
        for k, (line, _, _) in enumerate(block)
        if k > names_at and line + 1 != out.units_line
    ]
    if passed:
        listed = ", ".join(map(str, passed))
        said.append(f"line{'s' * (len(passed) > 1)} {listed} skipped")
    if out.decimal == "," and how.decimal is None:
        said.append("decimal commas")
    if out.thousands and how.thousands is None:
        mark = out.thousands if out.thousands.isprintable() and out.thousands != " " else "blank"
        said.append(f"`{mark}` between thousands")
    if said:
        out.notes.insert(0, ", ".join(said))


def _check_count(count: int, width: int, what: str) -> None:
    if count != width:
        raise TableError(
            f"{what} has {counted(count, 'name')}, and the table {counted(width, 'column')}"
        )


def _block(lines: list[str], run: Run, out: TextLayout, how: How) -> Block:
    """The header, with what is said of it by options; the columns that it shows are taken in."""
    separator, decimal = out.separator, out.decimal
    if how.header == "none":
        _drop_trailing(out, [])
        return []
    if isinstance(how.header, int):
        return _given_header(lines, run, out, how)
    block = header(lines, run.first, separator, out.kinds, decimal)
    if out.kinds[-1] == "m" and not (block and block[-1][1][-1]):
        out.kinds = out.kinds[:-1]
        out.trailing = True
        block = header(lines, run.first, separator, out.kinds, decimal)
    block = block or _uneven_header(lines, run, out)
    if isinstance(how.units, int):
        block = [one for one in block if one[0] + 1 != how.units]
        cells = (
            as_names(lines[how.units - 1], separator, out.width)
            if how.units <= len(lines)
            else None
        )
        if cells is None:
            raise TableError(f"--units {how.units}: that line has no {out.width} cells")
        out.units_line, out.units = how.units, cells
    return block


def _drop_trailing(out: TextLayout, names: Sequence[str]) -> None:
    if out.kinds[-1] == "m" and out.width > 1 and not (names and names[-1]):
        out.kinds, out.trailing = out.kinds[:-1], True


def _given_header(lines: list[str], run: Run, out: TextLayout, how: How) -> Block:
    at = int(how.header or 1) - 1
    line = lines[at].strip() if at < len(lines) else ""
    if not line:
        raise TableError(f"--header {how.header}: that line is empty")
    sign = line[0] if line[0] in SIGNS and line[0] != out.separator else ""
    if at >= run.first:
        raise TableError(
            f"--header {how.header}: the rows begin in line {run.first + 1}",
            hint="--header none where no line has names; --skip-lines N leaves out the first N",
        )
    cells = _header_cells(line, sign, out.separator, out.width, False)
    if cells is None:
        _drop_trailing(out, [])
        cells = _header_cells(line, sign, out.separator, out.width, False)
    if cells is None:
        found = len(split(line, out.separator))
        _check_count(found, out.width, f"--header {how.header}: line {how.header}")
        raise TableError(f"--header {how.header}: no names")
    below = header(lines[at + 1 :], run.first - at - 1, out.separator, out.kinds, out.decimal)
    return [(at, cells, sign), *((k + at + 1, c, s) for k, c, s in below)]


def _uneven_header(lines: list[str], run: Run, out: TextLayout) -> Block:
    """A count of names that is off by one has three usual reasons."""
    separator, decimal, columns = out.separator, out.decimal, out.kinds
    above = next((x for x in reversed(lines[: run.first]) if re.search("[^\\W\\d]", x)), "")
    plain = (
        separator != " " or '"' in above or above[:2] == "  "
    )  # no prose with a lucky count of words
    tries = (
        (columns.replace("tt", "t", 1), separator == " " and "tt" in columns, "joined"),
        (columns[1:], len(columns) > 2 and plain, "row_names"),
        *((columns + "n" * k, len(columns) > 1 and separator != " ", "short") for k in (1, 2, 3)),
    )
    for kinds, may, why in tries:
        if not may:
            continue
        block = _header(lines, run.first, separator, kinds, decimal, True)
        if not block and why != "short":
            block = _header(lines, run.first, separator, kinds, decimal, False)
        if not block or (why == "short" and not all(block[0][1][: len(columns)])):
            continue
        if why == "joined":
            out.joined = columns.index("tt")
            out.kinds = kinds
            out.notes.append("a date and its time are one column")
            return block
        if why == "row_names":
            out.row_names = True
            out.notes.append("the first column, which has no name, counts or names the rows")
            return [(at, ["", *cells], sign) for at, cells, sign in block]
        more = [name for name in block[0][1][len(columns) :] if name]
        if more:
            has = (
                "s ({}) have no cells below them"
                if len(more) > 1
                else " ({}) has no cells below it"
            )
            out.notes.append("the last name" + has.format(", ".join(more)))
        return block
    if "tt" in columns and separator == " ":
        out.joined = columns.index("tt")
        out.kinds = columns.replace("tt", "t", 1)
        out.notes.append("a date and its time are one column")
    half = len(columns) // 2
    if separator == "," and len(columns) == 2 * half > 2 and above:
        bare = above.strip()
        cells = as_names(bare.lstrip(SIGNS + " "), separator, half)
        if cells is not None and out.question is None:
            out.question = (
                f"`{bare}` has {half} names, and the rows {2 * half} cells: are the commas decimal ones?",
                "write the decimals with points; --header none reads the cells as they are",
            )
    return []


def _names_place(block: Block, out: TextLayout, is_first: bool) -> int:
    """Which line of the header has the names; the units are taken in. is_first: the first one has them."""
    below = [k for k in range(1, len(block)) if _are_units(block[k][1], block[k - 1][1])]
    units = below[-1] if below else 0
    if units and not out.units_line:
        line, cells, _ = block[units]
        out.units_line, out.units = line + 1, [cell.strip("[]()<> ") for cell in cells]
    if is_first:
        return 0
    at = units - 1 if units else len(block) - 1  # right above their units, or else lowest …
    while at > 0 and (
        all(map(is_process, block[at][1])) or _numbers(block[at][1]) > _numbers(block[at - 1][1])
    ):
        at -= 1  # … but above Avg, Min, Max, and above what has numbers in it
    return max(at, 0)


def _are_units(cells: Sequence[str], above: Sequence[str]) -> bool:
    """Whether cells are units of what is above: all of them, or most if they alone are repeated."""
    if _all_units(cells):
        return True
    filled, names = [c for c in cells if c], [c for c in above if c]
    alike = len(set(filled)) < len(filled) and len(set(names)) == len(names)
    return alike and sum(map(is_unit, filled)) >= 0.75 * len(filled)


def _numbers(cells: Sequence[str]) -> int:
    return sum(kind(shape(cell), ".") == "n" for cell in cells)


def _grace_names(lines: Sequence[str], count: int) -> list[str] | None:
    """The names that a file of Grace (xvg) says with @: the label of the axis, and a legend a column."""
    text = "\n".join(line for line in lines if line.lstrip()[:1] == "@")
    axis = re.search(r'xaxis\s+label\s+"(.*)"', text)
    names = re.findall(r'\bs\d+\s+legend\s+"(.*)"', text)
    return [axis[1], *names] if axis and len(names) == count - 1 else None


def _remarks(lines: list[str], run: Run, out: TextLayout, how: How) -> str:
    """The signs that begin remarks here."""
    if how.comment is not None:
        return how.comment
    found = {"#"}
    for k, line in enumerate(lines[: run.first + _JUDGED]):
        bare = line.lstrip()
        if bare and bare[0] in SIGNS and bare[0] != out.separator:
            inside = run.first <= k <= run.last
            if not (
                inside and _alike(kinds_of(shape(line), out.separator, out.decimal), run.kinds)
            ):
                found.add(bare[0])
    return "".join(sorted(found))


__all__ = ["SAMPLE", "SIGNS", "TextLayout", "read_layout", "stated_end", "table_below"]
