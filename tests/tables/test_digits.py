"""Numbers that NumPy writes are what `repr` writes, and lines of them what joined texts are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradcli.tables import line_loops
from gradcli.tables.assembled_lines import Lines, lines_with_numbers
from gradcli.tables.digits import spelt, texts
from tests.commands.running import run

SINGLES, DOUBLES = np.dtype(np.float32), np.dtype(np.float64)
SPECIAL = [
    *(0.0, -0.0, float("nan"), float("inf"), -float("inf"), 5e-324, 1.7976931348623157e308),
    *(1.0, -1.0, 0.1, 100.0, 1e15, 9999999999999998.0, 1e16, 1e-4, 1e-5, 1 / 3, 2 / 3e5),
    # the multiple of ten on the other side is nearer; ties; no shorter one
    *(4.585818187519591e152, 5e-196, 9007199254740993.0, 2.0**-44, 2.0**100, 1e23, 123456789.5),
]


def words(numbers: np.ndarray) -> list[str]:
    """What Python writes; of a narrow float, the double with the digits that NumPy writes."""
    doubles = numbers.astype(str).astype(float) if numbers.dtype == SINGLES else numbers
    return [repr(number).removesuffix(".0") for number in doubles.tolist()]


def _powers(dtype: np.dtype, of: float) -> np.ndarray:
    with np.errstate(all="ignore"):
        whole = np.array([of], dtype) ** np.arange(-1080 if of == 2 else -330, 1030).astype(dtype)
        whole = whole[np.isfinite(whole) & (whole > 0)]
        return np.concatenate(
            [np.nextafter(whole, dtype.type(to)) for to in (0, np.inf)] + [whole, -whole, 5 * whole]
        )


def of_bits(dtype: np.dtype, count: int, seed: int) -> np.ndarray:
    """Numbers of random bits."""
    whole = np.uint64 if dtype == DOUBLES else np.uint32
    rng = np.random.default_rng(seed)
    return rng.integers(0, np.iinfo(whole).max, count, whole, endpoint=True).view(dtype)


@pytest.mark.parametrize("dtype", [DOUBLES, SINGLES], ids=str)
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda dtype: np.array(SPECIAL, DOUBLES).astype(dtype), id="special"),
        pytest.param(lambda dtype: of_bits(dtype, 1000, 0), id="bits"),
        pytest.param(lambda dtype: np.arange(-300, 300, dtype=dtype), id="integers"),
        pytest.param(lambda dtype: (np.arange(-300, 300) / 64).astype(dtype), id="fractions"),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow")
def test_the_digits_are_those_of_repr(make, dtype):
    numbers = make(dtype)
    assert texts(numbers) == words(numbers)


@given(st.lists(st.floats(), min_size=1, max_size=20))
def test_any_doubles_are_written_as_repr_writes_them(numbers):
    assert texts(np.array(numbers)) == words(np.array(numbers))


@pytest.mark.long
@pytest.mark.parametrize("dtype", [DOUBLES, SINGLES], ids=str)
@pytest.mark.parametrize("kind", ["bits", "normal", "scales", "rounded", "two", "ten"])
@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
def test_a_million_numbers_are_written_as_repr_writes_them(kind, dtype):
    rng = np.random.default_rng(1)
    count = 1_000_000
    normal = rng.standard_normal(count)
    numbers = {
        "bits": lambda: of_bits(dtype, count, 1),
        "normal": lambda: normal.astype(dtype),
        "scales": lambda: (normal * 10.0 ** rng.integers(-12, 22, count)).astype(dtype),
        "rounded": lambda: (normal * 10.0 ** rng.integers(-3, 8, count)).round(3).astype(dtype),
        "two": lambda: _powers(dtype, 2),
        "ten": lambda: _powers(dtype, 10),
    }[kind]()
    found, wanted = texts(numbers), words(numbers)
    wrong = [pair for pair in zip(found, wanted, strict=True) if pair[0] != pair[1]]
    assert not wrong, wrong[:5]
    back = np.array(found, "S32").astype(dtype)
    assert np.array_equal(back, numbers, equal_nan=True)


def test_nothing_of_a_text_lies_outside_its_row():
    made = spelt(np.array(SPECIAL))
    assert (made.begin // 32 == np.arange(len(SPECIAL))).all()
    assert (made.begin % 32 + made.size <= 32).all()


# -- lines --------------------------------------------------------------------------------------------
def _joined(lines: list[str] | None, columns: list[np.ndarray], separator: str) -> str:
    cells = [words(column) for column in columns]
    rows = zip(*([] if lines is None else [lines]), *cells, strict=True)
    return "".join(separator.join(row) + "\n" for row in rows)


def _cases() -> list[tuple[int, int, int, np.dtype]]:
    of_one = [(9, longest, 2, DOUBLES) for longest in (0, 20, 31, 32, 33, 64, 200)]
    return [*of_one, (1, 5, 1, DOUBLES), (40, 70, 5, SINGLES)]


@pytest.mark.parametrize(("rows", "longest", "count", "dtype"), _cases(), ids=str)
def test_lines_with_numbers_behind_them(rows, longest, count, dtype):
    rng = np.random.default_rng(rows)
    lines = ["abcdefghi"[k % 9] * int(n) for k, n in enumerate(rng.integers(0, longest + 1, rows))]
    lines[0] = "x" * longest
    size = np.array(list(map(len, lines)))
    text = "".join(line + "\n" for line in lines).encode()
    given = Lines(text, np.cumsum(size + 1) - size - 1, size)
    scale = 10.0 ** rng.integers(-8, 18, rows)
    columns = [(rng.standard_normal(rows) * scale).astype(dtype) for _ in range(count)]
    for of, wanted in ((given, lines), (None, None)):
        found = b"".join(bytes(block) for block in lines_with_numbers(of, columns, ";"))
        assert found.decode() == _joined(wanted, columns, ";")
    few = given.some(np.arange(rows) % 2 == 0)
    found = b"".join(bytes(b) for b in lines_with_numbers(few, [c[::2] for c in columns], ","))
    assert found.decode() == _joined(lines[::2], [c[::2] for c in columns], ",")


# What a file may have besides numbers, by a line that is put into it.
LINES = {
    "plain": "3,a b,0.25",
    "codes": "007,x,1.50",
    "an exponent": "1e3,x,-2.5E-3",
    "blanks at the end of a cell": "3,x ,0.25",
    "blanks at the begin of a cell": "3, x,0.25",
    "quotes": '3,"x,y",0.25',
    "quotes that are not needed": '3,"x",0.25',
    "a blank line": "",
    "a line of blanks": "  ",
    "a remark": "# 3,x,0.25",
    "a letter that is not ASCII": "3,\xe4,0.25",
    "a control character": "3,\x1b[31m,0.25",
    "a missing number": "3,x,",
    "a text for a number": "3,x,n/a",
    "an empty text": "3,,0.25",
    "a very long text": "3," + "x" * 500 + ",0.25",
}
ROWS = 2000  # of more letters than are read cell by cell
SOME = 500  # which are read so
WAYS = [
    ("--missing", "skip"),
    ("--missing", "nan", "--format", "tsv"),
    ("--missing", "skip", "--where", "a > 2"),
    ("--missing", "skip", "--head", "1900"),
    ("--missing", "skip", "--keep-columns", "a,name"),
    ("--missing", "skip", "--keep-columns", "none"),
    ("--missing", "skip", "--bad-rows", "skip", "--order", "2", "--uncertainty", "a=b"),
]


def _row_by_row(path: Path, body: list[str], *options: str) -> list[str]:
    """The rows of files short enough to be read and written cell by cell."""
    found: list[str] = []
    for start in range(0, len(body), SOME):
        some = path.with_name("some.csv")
        some.write_text(
            "a,name,b\n" + "".join(f"{x}\n" for x in ["9,y,1", *body[start : start + SOME]])
        )
        lines = run("map", "sin(a)*b", str(some), *options).stdout.splitlines()
        found += lines[2:] if found else [lines[0], *lines[2:]]
    return found


@pytest.mark.long
@pytest.mark.parametrize("options", WAYS, ids=" ".join)
@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_long_tables_are_mapped_as_short_ones(tmp_path, line, options):
    path = tmp_path / "f.csv"
    body = [f"{k % 7},n{k % 5},{k / 8}" for k in range(ROWS)]
    body[700] = line
    path.write_text("a,name,b\n" + "".join(x + "\n" for x in body), "utf-8")
    wanted = _row_by_row(path, body, *[o for o in options if o not in ("--head", "1900")])
    if "--head" in options:
        wanted = wanted[:1901]
    assert run("map", "sin(a)*b", str(path), *options).stdout.splitlines() == wanted


def test_a_long_table_is_mapped_as_it_is_written(tmp_path):
    body = [f"{k % 7},n{k % 5},{k / 8:.3f}" for k in range(ROWS)]
    path = tmp_path / "f.csv"
    path.write_text("a,name,b\n" + "".join(x + "\n" for x in body))
    a, b = np.arange(ROWS) % 7, np.arange(ROWS) / 8
    wanted = _joined(body, [a * b, b, a.astype(float)], ",")
    found = run("map", "a*b", str(path)).stdout
    assert found == "a,name,b,value,a.grad,b.grad\n" + wanted


@pytest.fixture(scope="module")
def compiled() -> None:
    line_loops.code.make()
    assert line_loops.code.functions(0) is not None


def in_c(numbers: np.ndarray, columns: int, lines: Lines | None = None) -> list[str] | None:
    """The lines that C makes of numbers."""
    rows = numbers[: len(numbers) // columns * columns].reshape(-1, columns)
    made = line_loops.text_of(lines, np.ascontiguousarray(rows), ord(","))
    return None if made is None else made.tobytes().decode().splitlines()


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("kind", ["special", "bits", "small", "whole", "sine", "decimals"])
def test_lines_by_c_have_the_digits_of_repr(kind: str, columns: int, compiled: None) -> None:
    rng = np.random.default_rng(columns)
    numbers = {
        "special": lambda: np.array([x for x in SPECIAL if x not in (2.0**-44, 2.0**53, 2.0**100)]),
        "bits": lambda: of_bits(DOUBLES, 3000, columns),
        "small": lambda: rng.integers(0, 4000, 900).astype(np.uint64).view(float),
        "whole": lambda: np.arange(-300.0, 3000.0),
        "sine": lambda: np.sin(rng.standard_normal(3000)),
        "decimals": lambda: rng.integers(-(10**17), 10**17, 3000) / 10.0 ** rng.integers(0, 22),
    }[kind]()
    said = words(numbers)
    rows = [",".join(said[k : k + columns]) for k in range(0, len(said), columns)]
    assert in_c(numbers, columns) == rows[: len(numbers) // columns]


def test_c_puts_numbers_behind_lines_and_leaves_powers_of_two(compiled: None) -> None:
    lines = Lines(b"#a,b\nccc\n", np.array([1, 5]), np.array([3, 3]))
    assert in_c(np.array([0.5, -2e-7, 1e300, 4]), 2, lines) == ["a,b,0.5,-2e-07", "ccc,1e+300,4"]
    assert in_c(np.array([1.0, 2.0**-44]), 1) is None
    assert in_c(np.array([1.5], SINGLES), 1) is None


def test_many_lines_are_made_by_c(compiled: None, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = np.sin(np.arange(40_000.0))
    text = b"".join(map(bytes, lines_with_numbers(None, [numbers, 2 * numbers], ",")))
    monkeypatch.setattr(line_loops.code, "_functions", None)
    monkeypatch.setattr(line_loops.code, "_is_asked", True)
    assert text == b"".join(map(bytes, lines_with_numbers(None, [numbers, 2 * numbers], ",")))
