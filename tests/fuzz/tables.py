"""Tables at random, as programs write them: each number that is read is the one that was written.

A table is columns of cells with the numbers that they stand for. It is written as text in one of many ways,
or as JSON lines or Parquet. `read_table`, and the commands that read tables, must have NumPy's numbers of it,
or say in words why not; where nothing is odd they must have them.
"""

from __future__ import annotations

import json
import math
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

import gradcli
from gradcli.language.located_errors import LanguageError
from tests import fuzz
from tests.commands import running

SEPARATORS = (",", ",", ",", ";", ";", "\t", "|", " ")
ENDS = ("\n", "\n", "\n", "\r\n", "\r")
MISSING = ("", "NA", "nan", "null", "#N/A", "N/A")
NAMES = ("x", "y", "a b", "T [K]", "t_1", "Größe", "2x", "x.1", "")
LONG = (70_000, 131_100)  # rows of more than one batch


class Text(NamedTuple):
    """A table as text: what was written, its columns' numbers, NaN where one is missing, and what is odd."""

    content: bytes
    columns: dict[str, Any]
    separator: str
    odd: frozenset[str]


# -- cells -----------------------------------------------------------------------------------------
def number(random: Random, kind: str) -> str:
    """A number as Python reads it."""
    match kind:
        case "whole":
            return str(random.randint(-50, 5000))
        case "short":
            return f"{random.uniform(-90, 90):.{random.randint(1, 4)}f}"
        case "long":
            return repr(random.uniform(-5, 5))
        case "power":
            return f"{random.uniform(-9, 9):.{random.randint(0, 15)}e}"
        case "huge":
            return str(
                random.choice([2**53 + 1, -(2**63), 2**64 + 3, 10**25, 1e308, 5e-324, "0.1e-320"])
            )
        case "points":
            return random.choice([".5", "5.", "-.25", "+1.5", "+7", "007", "-0", "-0.0", "00.5"])
    return random.choice(["inf", "-inf", "1E5", "1e+05", "12345678901234567890.5", "0." + "1" * 30])


KINDS = ("whole", "whole", "short", "short", "short", "long", "power", "huge", "points", "odd")


def column(random: Random, rows: int) -> list[str]:
    """Cells of one kind; perhaps those of another after some row, or here and there."""
    kind, other = random.choice(KINDS), random.choice(KINDS)
    some = [number(random, kind) for _ in range(min(rows, 997))]
    cells = [some[k % len(some)] for k in range(rows)]
    change = random.random()
    if change < 0.3:
        start = random.choice([rows - 1, rows // 2, max(rows - 3, 0), random.randrange(rows)])
        cells[start:] = [number(random, other) for _ in range(rows - start)]
    elif change < 0.5:
        for _ in range(3):
            cells[random.randrange(rows)] = number(random, other)
    return cells


def text(random: Random) -> Text:
    """A table as text."""
    rows = random.choice([1, 2, 3, 7, 25, 25, 250, 3000])
    if random.random() < 0.06:
        rows = random.choice(LONG)
    width = random.choice([1, 2, 2, 3, 5])
    separator = random.choice(SEPARATORS)
    odd = set()
    names = random.sample(["x", "y", "z", "h", "k"], width)
    if random.random() < 0.15 and separator != "|":
        names[random.randrange(width)] = random.choice(NAMES)
        odd.add("name")
    if len(set(names)) < width:
        odd.add("twice")
    cells = [column(random, rows) for _ in range(width)]
    values = [np.array([float(c) for c in own]) for own in cells]
    if random.random() < 0.2:
        odd.add("missing")
        for _ in range(random.choice([1, 1, 5])):
            k, row = random.randrange(width), random.randrange(rows)
            # In one column an empty cell is an empty line, which is no row; blanks have none between them.
            some = MISSING[width == 1 or separator == " " :]
            cells[k][row], values[k][row] = random.choice(some), math.nan
    if random.random() < 0.08 and rows > 2:
        odd.add("word")
        k, row = random.randrange(width), random.choice([rows - 1, random.randrange(1, rows)])
        words = ["abc", "1.2.3", "0x1F", "1_000", "--1", "1e", "12a", "True"]
        cells[k][row], values[k][row] = random.choice(words), math.nan
    if separator in ";\t" and width > 1 and random.random() < 0.3:  # decimal commas
        odd.add("comma")
        cells = [[c.replace(".", ",") for c in own] for own in cells]
        if random.random() < 0.3 and all("," in "".join(own) for own in cells):
            odd.add("thousands")
            cells = [[_grouped(c, ".") for c in own] for own in cells]
    elif random.random() < 0.05:
        odd.add("thousands")
        cells = [[_grouped(c, ",") for c in own] for own in cells]
    quotes = random.choice(["no", "no", "no", "all", "some", "header"])
    if "thousands" in odd and separator == ",":
        quotes = "all"

    def quoted(cell: str, header: bool = False) -> str:
        wants = quotes == "all" or (quotes == "header" and header) or random.random() < 0.1
        if quotes != "no" and wants and (quotes != "header" or header):
            return f'"{cell}"'
        return cell

    blank = random.choice([0, 0, 0, 0, 1]) and separator not in " \t"
    glue = f"{separator} " if blank else separator
    if separator == " " and random.random() < 0.5:
        glue = "   "
    trailing = separator if random.random() < 0.06 and separator in ",;" else ""
    lines = [
        glue.join(quoted(cells[k][row]) for k in range(width)) + trailing for row in range(rows)
    ]
    if random.random() < 0.85:
        lines.insert(0, glue.join(quoted(n, True) for n in names) + trailing)
    else:
        odd.add("headless")
        names = [str(k + 1) for k in range(width)]
    _disturb(random, lines, odd, width, separator)
    end = random.choice(ENDS)
    whole = end.join(lines) + (end if random.random() < 0.8 else "")
    begin, encoding = "", "utf-8"
    if random.random() < 0.15:
        begin = "\ufeff"
        if random.random() < 0.3:
            encoding = "utf-16-le"
            odd.add("utf-16")
    elif random.random() < 0.05:
        encoding = "latin-1"
    if trailing:
        odd.add("trailing")
    if separator == " ":
        odd.add("blanks")
    found = dict(zip(names, values, strict=True))
    return Text((begin + whole).encode(encoding), found, separator, frozenset(odd))


def _grouped(cell: str, mark: str) -> str:
    """The digits before the point in threes; of what is only digits, sign and point."""
    point = "," if mark == "." else "."
    whole, at, rest = cell.partition(point)
    if (
        not whole.lstrip("+-").isdigit()
        or len(whole.lstrip("+-")) < 4
        or whole.lstrip("+-")[0] == "0"
    ):
        return cell
    return f"{int(whole):,}".replace(",", mark) + at + rest


def _disturb(random: Random, lines: list[str], odd: set[str], width: int, separator: str) -> None:
    """Remarks, empty lines, rows that are too short or too long."""
    if random.random() < 0.12:
        odd.add("remark")
        where = random.choice([0, random.randrange(len(lines) + 1), len(lines)])
        lines.insert(where, random.choice(["# made by a program", "# 1,2", "#", "# x y"]))
    if random.random() < 0.08:
        odd.add("empty")
        where = random.choice([0, 0, random.randrange(len(lines) + 1), len(lines)])
        lines.insert(where, random.choice(["", "  "]))
    if random.random() < 0.04 and len(lines) > 7:
        odd.add("ragged")
        where = random.randrange(1, len(lines) + 1)
        lines.insert(
            where, separator.join(["1"] * (width + random.choice([1, -1 if width > 1 else 1])))
        )


# -- what is asked ---------------------------------------------------------------------------------
PLAIN = frozenset(("missing", "blanks", "remark"))  # in spite of which a table must be read


def differs(found: Any, expected: Any, slack: float = 0.0) -> bool:
    """Whether numbers are others: to the bit, or by more than a share of the largest."""
    a, b = np.asarray(found, float), np.asarray(expected, float)
    if a.shape != b.shape:
        return True
    if not slack:
        return not np.array_equal(a, b, equal_nan=True)
    size = float(np.max(np.abs(b), initial=0.0, where=np.isfinite(b)))
    with np.errstate(all="ignore"):
        fine = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= slack * size)
    return not fine.all()


def reading(path: Path, table: Text) -> str:
    """What is wrong with what `read_table` reads, if anything is."""
    try:
        with warnings.catch_warnings(record=True) as notes:
            warnings.simplefilter("always")
            found = gradcli.read_table(str(path), missing="nan")
    except LanguageError as error:
        return "" if table.odd - PLAIN or _is_lonely(table) else f"refused: {error}"
    said = " ".join(str(n.message) for n in notes)
    for name, own in found.items():
        other = table.columns.get(name)
        if other is None:
            if "twice" not in table.odd and "name" not in table.odd and not said:
                return f"a column {name} that nobody wrote"
            continue
        if differs(own, other) and not _told(own, other, said):
            return f"{name}: {_shown(own, other)}; said: {said}"
    return ""


def streaming(path: Path, table: Text) -> str:
    """What is wrong with what `map` reads, piece by piece, of a column x, if anything is."""
    line = [
        "map",
        "1*x",
        str(path),
        "--missing",
        "nan",
        "--no-grad",
        "all",
        "--keep-columns",
        "none",
    ]
    got = running.run(*line)
    if got.exit_code:
        said = _fault(line, got)
        return said if "refused" not in said or not (table.odd - PLAIN or _is_lonely(table)) else ""
    found, own = np.array([float(t) for t in got.stdout.split()[1:]]), table.columns["x"]
    if not differs(found, own) or _told(found, own, got.stderr):
        return ""
    return f"{' '.join(line)}: {_shown(found, own)}; said: {got.stderr}"


def _told(own: Any, other: Any, said: str) -> bool:
    """Whether rows that are not there were told."""
    return len(own) < len(other) and "left out" in said


def _is_lonely(table: Text) -> bool:
    """Whether there is so little that nothing can be told from it: one row, or one column of a text."""
    rows = max(map(len, table.columns.values()), default=0)
    return rows < 3 or len(table.columns) < 2


def _shown(own: Any, other: Any) -> str:
    if len(own) != len(other):
        return f"{len(own)} rows, not {len(other)}"
    row = next(k for k in range(len(own)) if differs(own[k], other[k]))
    return f"row {row} is {own[row]!r}, not {other[row]!r}"


def commands(random: Random, path: str, columns: dict[str, Any]) -> str:
    """What is wrong with a command's numbers of two finite columns, if anything is."""
    x, y = (columns[n] for n in "xy")
    where = ["--x", f"@{path}:x", "--y", f"@{path}:y"]
    passes = random.choice([["--by-rows"], ["--whole"], []])
    r = 2 * (x + 0.5 - y)
    size = float(np.abs(x).max()) + 1e-300
    match random.choice(
        ["grad", "grad", "eval", "eval", "map", "map", "fit", "minimize", "root", "rows"]
    ):
        case "grad":
            line = [
                "grad",
                "mean((a*x + b - y)**2)",
                *where,
                "--a",
                "1",
                "--b",
                "0.5",
                "--wrt",
                "a,b",
            ]
            terms = np.stack([r * x, r])
            return _unlike([*line, *passes], terms.mean(1), np.abs(terms).max(), "wrt", "grad")
        case "eval":
            line = ["eval", "sum(x*y)", *where, *passes]
            return _unlike(line, np.sum(x * y), np.abs(x * y).sum(), "value")
        case "map":
            return _mapped(["map", "x*y", path, "--no-grad", "all"], x * y)
        case "rows":
            return _mapped(["root", "3*u == x", path, "--u", "1", "--wrt", "u"], x / 3, 1e-12)
        case "fit":
            if len(x) < 4 or np.ptp(x) < 1e-2 * size:
                return ""
            expected = np.polyfit(x / size, y, 1)
            line = ["fit", f"y == p*(x/{size!r}) + q", path]
            return _unlike(line, expected, 1e3 * np.abs(expected).max(), "parameters", "value")
        case "minimize":
            line = [
                "minimize",
                f"mean((m - x/{size!r})**2)",
                *where[:2],
                "--m",
                "0.5",
                "--wrt",
                "m",
            ]
            return _unlike(line, [np.mean(x) / size], 1e3, "wrt", "value")
    line = ["root", "mean(x) == m", *where[:2], "--m", "0.5", "--wrt", "m"]
    return _unlike(line, [[np.mean(x)]], size, "wrt", "roots")


def _unlike(line: list[str], expected: Any, scale: Any, key: str, inner: str = "") -> str:
    """How the numbers that a command says at a place of its object differ from these."""
    got = running.run(*line, "--json")
    if got.exit_code:
        return _fault(line, got)
    found = json.loads(got.stdout)[key]
    if inner:
        found = [own[inner] for own in found.values()]
    if np.allclose(np.asarray(found, float), expected, rtol=0, atol=1e-11 * float(scale) + 1e-300):
        return ""
    return f"{' '.join(line)}: {found}, not {expected}"


def _mapped(line: list[str], expected: Any, slack: float = 0.0) -> str:
    """How the last column that a command writes differs from this."""
    got = running.run(*line)
    if got.exit_code:
        return _fault(line, got)
    found = np.array([float(row.rpartition(",")[2]) for row in got.stdout.splitlines()[1:]])
    return f"{' '.join(line)}: {_shown(found, expected)}" if differs(found, expected, slack) else ""


def _fault(line: list[str], got: Any) -> str:
    """What is wrong with a refusal: anything but an error in words."""
    if "Traceback" in got.output or "fault in gradcli" in got.output or got.exit_code not in (1, 2):
        return f"{' '.join(line)}: exit code {got.exit_code}: {got.output[-900:]}"
    return f"{' '.join(line)}: refused: {got.output[-400:]}"


# -- other formats ---------------------------------------------------------------------------------
def _lines(random: Random, columns: dict[str, Any]) -> bytes:
    """JSON lines: keys in any order, numbers as JSON has them."""
    made = []
    for row in range(len(columns["x"])):
        items = [(n, float(c[row])) for n, c in columns.items()]
        if random.random() < 0.1:
            items.reverse()
        pairs = ", ".join(f'"{n}": {_numeral(random, v)}' for n, v in items)
        made.append("{" + pairs + "}")
    return ("\n".join(made) + "\n").encode()


def _numeral(random: Random, value: float) -> str:
    if value.is_integer() and abs(value) < 2**53 and random.random() < 0.5:
        return str(int(value))
    return random.choice([repr(value), f"{value:.17e}", f"{value:.17E}"])


def _parquet(random: Random, path: Path, columns: dict[str, Any]) -> None:
    """Parquet, with columns of the narrowest types that have the numbers, in row groups."""
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    arrays = {}
    for name, own in columns.items():
        kinds = [arrow.float64(), arrow.float64()]
        if (own == np.rint(own)).all() and np.abs(own).max() < 2**31:
            kinds += [arrow.int32(), arrow.int64(), arrow.decimal128(12, 2)]
        if (own == own.astype(np.float32)).all():
            kinds.append(arrow.float32())
        kind = random.choice(kinds)
        made = arrow.array(own)
        if arrow.types.is_decimal(kind):
            made = made.cast(arrow.int32()).cast(arrow.decimal128(10, 0)).cast(kind)
        made = made.cast(kind)
        arrays[name] = made.dictionary_encode() if random.random() < 0.1 else made
    size = random.choice([1, 7, 1000, 10**6]) if len(own) < 1000 else 50_000
    parquet.write_table(arrow.table(arrays), path, row_group_size=size)


def failure(random: Random, folder: Path) -> str | None:
    """What is wrong with one table, if anything is."""
    if random.random() < 0.6:
        table = text(random)
        path = folder / random.choice(["t.csv", "t.csv", "t.txt", "t.dat"])
        if table.separator == "\t" and random.random() < 0.5:
            path = folder / "t.tsv"
        path.write_bytes(table.content)
        said = reading(path, table)
        if not said and "x" in table.columns and "twice" not in table.odd and random.random() < 0.5:
            said = streaming(path, table)
        shown = table.content[:300] + (b"..." if len(table.content) > 300 else b"")
        own = table.columns.values()
        tame = all(np.isfinite(c).all() and np.abs(c).max() < 1e9 for c in own)
        both = {"x", "y"} <= table.columns.keys() and not _is_lonely(table)
        if not said and not table.odd - PLAIN and tame and both:
            said = commands(random, str(path), table.columns)
        return f"{path.name} {sorted(table.odd)}: {said}\n{shown!r}" if said else None
    rows = random.choice([1, 2, 30, 30, 500, *LONG[: random.random() < 0.2]])
    kinds = [random.choice(["whole", "short", "long", "power"]) for _ in "xy"]
    columns = {
        n: np.array([float(number(random, k)) for _ in range(rows)])
        for n, k in zip("xy", kinds, strict=True)
    }
    path = folder / random.choice(["t.jsonl", "t.parquet"])
    if path.suffix == ".jsonl":
        path.write_bytes(_lines(random, columns))
    else:
        _parquet(random, path, columns)
    said = reading(path, Text(b"", columns, "", frozenset())) or commands(
        random, str(path), columns
    )
    return f"{path.name}, {rows} rows: {said}" if said else None


def run(seed: int, seconds: float) -> Iterator[str]:
    """The tables of which a number is read that was not written, or of which a command has others."""
    with tempfile.TemporaryDirectory() as place:
        for random in fuzz.cases(seed, seconds):
            try:
                with fuzz.limited(300, 4000):
                    said = failure(random, Path(place))
            except LanguageError as error:
                said = f"refused: {error}"
            except (MemoryError, fuzz.TooLong) as error:
                said = f"{error}"
            if said:
                yield said
