"""Texts of instruments whose marks say what their tables are: SPEC, Sea-Bird's CNV, JCAMP-DX.

Their layouts: "SPEC standard data file format" (certif.com, the `scans` help file): `#S` begins a scan, `#N`
counts its columns, `#L` names them, two blanks apart. Sea-Bird, "SBE Data Processing" manual, chapter on
file formats: `# name 0 = prDM: Pressure [db]`, `# bad_flag = …`, `*END*`, then columns of 11 letters.
McDonald and Wilks, "JCAMP-DX: A Standard Form for Exchange of Infrared Spectra in Computer Readable Form",
Applied Spectroscopy 42, 1988: labelled records, and ordinates that are packed, squeezed, or differences.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from gradcli.tables.even_numbers import between
from gradcli.tables.table_errors import TableError

Cells = Sequence[str | None]


class Marked(NamedTuple):
    """A table: its names (None where none fit), its rows, what is worth saying, and its units."""

    names: list[str] | None
    rows: Callable[[], Iterator[Cells]]
    told: str = ""
    units: Sequence[str] = ()


# -- SPEC -----------------------------------------------------------------------------------------
def spec(text: str, name: str) -> dict[str, Marked]:
    """The scans of a file of SPEC by number; of those with one number by `3.1`, `3.2`."""
    pieces = re.split(r"(?m)^#S +", text)[1:]
    numbers = [piece.split(maxsplit=1)[0] if piece.strip() else "0" for piece in pieces]
    found: dict[str, Marked] = {}
    for k, (number, piece) in enumerate(zip(numbers, pieces, strict=True)):
        scan = _scan(piece.split("\n")[1:])
        if scan is not None:
            many = numbers.count(number) > 1
            found[f"{number}.{numbers[: k + 1].count(number)}" if many else number] = scan
    if not found:
        raise TableError(f"{name}: a file of SPEC without a scan that has rows")
    return found


def _scan(lines: Sequence[str]) -> Marked | None:
    rows = list(_rows_of_scan(lines))
    if not rows:
        return None
    width = len(rows[0])
    label = next((line[2:].strip() for line in lines if line[:2] == "#L"), "")
    splits = (re.split(r"\t| {2,}", label), label.split())
    names = next((words for words in splits if len(words) == width), None)
    return Marked(names, lambda: iter(rows))


def _rows_of_scan(lines: Sequence[str]) -> Iterator[list[str]]:
    """The rows: not the remarks, nor the counts of a multichannel analyser (`@A 0 1 2 \\`)."""
    inside = False
    for line in lines:
        if inside or line[:1] == "@":
            inside = line.rstrip().endswith("\\")
        elif line.strip() and line[0] != "#":
            yield line.split()


# -- Sea-Bird ---------------------------------------------------------------------------------------
_NAMED = re.compile(r"(?m)^#\s*name\s+\d+\s*=\s*([^:\n]+):(?:[^\[\n]*\[([^\]\n]*)\])?")
_BAD = re.compile(r"(?m)^#\s*bad_flag\s*=\s*(\S+)")
_LETTERS = 11  # of a column


def seabird(text: str, name: str) -> dict[str, Marked]:
    """The one table of a file of Sea-Bird's. A cell with the number of `bad_flag` is empty."""
    head, end, body = text.partition("*END*")
    if not end or re.search(r"(?m)^#\s*file_type\s*=\s*binary", head):
        raise TableError(
            f"{name}: a file of Sea-Bird without lines of numbers",
            hint="SBE Data Processing converts it: Data Conversion, ASCII output",
        )
    names = [f"{n.strip()} [{unit}]" if unit else n.strip() for n, unit in _NAMED.findall(head)]
    flag = _BAD.search(head)
    bad = None if flag is None else float(flag[1])

    def rows() -> Iterator[Cells]:
        for line in body.split("\n")[1:]:
            cells = line.split()
            if cells and len(cells) != len(names) and len(line.rstrip()) == _LETTERS * len(names):
                ends = range(
                    _LETTERS, len(line) + _LETTERS, _LETTERS
                )  # a minus in place of a blank
                cells = [line[end - _LETTERS : end].strip() for end in ends]
            if cells and _is_number(cells[0]):  # above them some have headings
                yield [None if _is(cell, bad) else cell for cell in cells]

    return {"": Marked(names or None, rows)}


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _is(cell: str, number: float | None) -> bool:
    try:
        return number is not None and float(cell) == number
    except ValueError:
        return False


# -- JCAMP-DX -----------------------------------------------------------------------------------------
_RECORD = re.compile(r"(?m)^[ \t]*##([^=\n]*)=")
_COMMENT = re.compile(r"\$\$[^\n]*")
_IN_PAIRS = re.compile(r"\s*\(XY\.\.XY\)")
_PAIRS = ("XYPOINTS", "PEAKTABLE")
_SQUEEZED = {**{"@": "+0"}, **{c: f"+{k}" for k, c in enumerate("ABCDEFGHI", 1)}}
_SQUEEZED |= {c: f"-{k}" for k, c in enumerate("abcdefghi", 1)}
_DIFFERENCES = {**{"%": "+0"}, **{c: f"+{k}" for k, c in enumerate("JKLMNOPQR", 1)}}
_DIFFERENCES |= {c: f"-{k}" for k, c in enumerate("jklmnopqr", 1)}
_TIMES = {c: str(k) for k, c in enumerate("STUVWXYZs", 1)}
_TOKEN = re.compile(r"([@A-Ia-i%J-Rj-rS-Zs+-]?)(\d*\.?\d*)|(\?)")
_PLAIN = re.compile(
    r"([+-]?)(\d*\.?\d*(?:[eE][+-]?\d+)?)|(\?)"
)  # `1.5E+03`; a squeezed E is no exponent
_UNLIKE = 0.5  # of a step, what an abscissa in a line may be from the one that is counted


def jcamp(text: str, name: str) -> dict[str, Marked]:
    """The spectra of a JCAMP-DX file: one, or several blocks by number. Abscissa and ordinate are x and y."""
    found: dict[str, Marked] = {}
    for block in _blocks(text):
        table = _spectrum(block, name)
        if table is not None:
            found[str(len(found) + 1)] = table
    if not found:
        raise TableError(
            f"{name}: a JCAMP-DX file without XYDATA, XYPOINTS or a peak table",
            hint="export it as CSV or text where it was made",
        )
    return found


def _blocks(text: str) -> Iterator[dict[str, str]]:
    """The labelled records of each block, which ends with ##END."""
    text = _COMMENT.sub("", text.replace("\r", ""))
    marks = list(_RECORD.finditer(text))
    block: dict[str, str] = {}
    for mark, after in zip(marks, [*marks[1:], None], strict=True):
        label = re.sub(r"[\s/_-]", "", mark[1]).upper()
        value = text[mark.end() : None if after is None else after.start()]
        if label == "TITLE" and block:  # a block inside of a compound one
            yield block
            block = {}
        if label == "END":
            yield block
            block = {}
        else:
            block.setdefault(label, value)
    if block:
        yield block


def _spectrum(block: Mapping[str, str], name: str) -> Marked | None:
    names = [
        f"{letter} [{unit}]"
        if (unit := block.get(f"{letter.upper()}UNITS", "").strip())
        else letter
        for letter in "xy"
    ]
    data = block.get("XYDATA")
    if data is not None and not _IN_PAIRS.match(data):
        points = _evenly(block, data, name)
        return Marked(names, lambda: ([repr(x), repr(y)] for x, y in points))
    label = "XYDATA" if data is not None else next((n for n in _PAIRS if n in block), None)
    if label is None:
        return None
    form, _, body = block[label].partition("\n")
    if not _IN_PAIRS.match(form):
        raise TableError(f"{name}: ##{label}={form.strip()} is not read", hint="(XY..XY) is")
    numbers = re.findall(r"[^\s,;]+", body)
    pairs = [
        [repr(_decimal(float(cell) * _number(block, f"{letter}FACTOR", 1.0))) for cell, letter in zip(
            numbers[k : k + 2], "XY", strict=True)]
        for k in range(0, len(numbers) - 1, 2)
    ]  # fmt: skip
    return Marked(names, lambda: iter(pairs))


def _number(block: Mapping[str, str], label: str, otherwise: float | None = None) -> float:
    try:
        return float(block[label])
    except (KeyError, ValueError):
        if otherwise is None:
            raise TableError(f"a JCAMP-DX file without a number ##{label}=") from None
        return otherwise


def _evenly(block: Mapping[str, str], data: str, name: str) -> list[tuple[float, float]]:
    """The points of `(X++(Y..Y))`: abscissas that are evenly apart, and ordinates in one of four forms."""
    form, _, body = data.partition("\n")
    if not re.match(r"\s*\(X\+\+\(Y\.\.Y\)", form):
        raise TableError(f"{name}: ##XYDATA={form.strip()} is not read", hint="(X++(Y..Y)) is")
    factor, scale = _number(block, "XFACTOR", 1.0), _number(block, "YFACTOR", 1.0)
    first, last = _number(block, "FIRSTX"), _number(block, "LASTX")
    ordinates: list[float] = []
    starts: list[tuple[int, float]] = []  # where a line begins, and its abscissa
    differed = False
    for line in body.split("\n"):
        if not line.strip():
            continue
        abscissa, values, differs = _line(line, name)
        # A line of differences begins with the last ordinate of the line before, as a check.
        if differed and ordinates and values:
            if values[0] != ordinates[-1]:
                raise TableError(
                    f"{name}: a line of XYDATA begins with {values[0]:g}, and the one before ends with "
                    f"{ordinates[-1]:g}",
                    hint="the file is damaged",
                )
            del ordinates[-1]
        starts.append((len(ordinates), abscissa * factor))
        ordinates += values
        differed = differs
    count = len(ordinates)
    stated = int(_number(block, "NPOINTS", float(count)))
    if stated != count:
        raise TableError(f"{name}: XYDATA has {count} points, and NPOINTS says {stated}")
    step = (last - first) / (count - 1) if count > 1 else 0.0
    room = abs(step) * _UNLIKE + abs(factor)
    for place, abscissa in starts:
        if abs(first + place * step - abscissa) > room:
            raise TableError(
                f"{name}: point {place + 1} of XYDATA is at x = {abscissa:g} by its line, and at "
                f"{first + place * step:g} by FIRSTX and LASTX",
                hint="the file is damaged, or its points are not evenly apart",
            )
    # 118 times a factor of 0.001 is 0.118, which a product of doubles is not.
    at = between(first, last, count)
    return [(at(k), _decimal(y * scale)) for k, y in enumerate(ordinates)]


def _decimal(number: float) -> float:
    return float(f"{number:.15g}")


def _line(line: str, name: str) -> tuple[float, list[float], bool]:
    """(the abscissa, the ordinates, whether the last one is given as a difference) of a line of XYDATA."""
    plain = not re.search(r"[@%A-DF-Za-df-z]", line) and len(line.split()) > 1
    tokens = [m for m in (_PLAIN if plain else _TOKEN).finditer(line.strip()) if m[0]]
    if not tokens or sum(len(m[0]) for m in tokens) != len(re.sub(r"[\s,]", "", line)):
        raise TableError(f"{name}: a line of XYDATA that is not read: {line.strip()[:40]}")
    values: list[float] = []
    step, differs = 0.0, False
    abscissa = float(tokens[0][0])
    for token in tokens[1:]:
        sign, digits, unknown = token.groups()
        if unknown:
            values.append(float("nan"))
            differs = False
        elif sign in _TIMES:
            for _ in range(int(_TIMES[sign] + digits) - 1):
                values.append(values[-1] + step if differs else values[-1])
        elif sign in _DIFFERENCES:
            step, differs = float(_DIFFERENCES[sign] + digits), True
            values.append(values[-1] + step)
        else:
            values.append(float(_SQUEEZED.get(sign, sign) + digits))
            differs = False
    return abscissa, values, differs


__all__ = ["Marked", "jcamp", "seabird", "spec"]
