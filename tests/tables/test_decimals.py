"""Numbers that NumPy reads from a text are those that `float` reads, to the bit."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np
import pytest

from gradcli.tables import column_reading, decimals, record_batches
from tests.commands.running import run

PLAIN = [
    *(
        "0",
        "-0",
        "0.0",
        "-0.0",
        "7",
        "-7",
        "007",
        "5.",
        ".5",
        "-.5",
        "0.1",
        "-12.75",
        "1234567.875",
    ),
    *("12345678", "123456789", "1234567890123456", "9007199254740993", "9007199254740992.5"),
    *("0.30000000000000004", "-0.09165864667894422", "0.7251662765083499", "123456.78901234567"),
    *("1700000000.123", "0.0001234567890123456", "99999999999999999.5", "4.35", "2.675", "1.005"),
    # ties, and what is next to them
    *("4503599627370496.5", "4503599627370497.5", "4503599627370497.4999999999999999"),
    *("9007199254740991.49999", "0.500000000000000055511151231257827", "18446744073709551615"),
    # by `float` itself
    *(
        "1e5",
        "-2.5E-7",
        "+3",
        "1e400",
        "123456789012345678901234567890",
        "0.00000000000000000000001",
    ),
]
OTHERS = [
    "",
    "-",
    ".",
    "-.",
    "--1",
    "1-2",
    "1.2.3",
    "abc",
    "nan",
    "inf",
    " 1",
    "1 ",
    "1_0",
    "0x1",
    "1e",
    "٣",
]


def column(cells: list[str], separator: str = ",") -> np.ndarray | None:
    text = "".join(f"{k}{separator}{cell}{separator}w\n" for k, cell in enumerate(cells))
    found = decimals.columns(text.encode(), separator, 3, [1])
    return None if found is None else found[0]


def bits(numbers: object) -> list[int]:
    return np.array(numbers, np.float64).view(np.int64).tolist()


@pytest.mark.parametrize("cell", PLAIN)
def test_a_cell_is_read_as_float_reads_it(cell: str) -> None:
    cells = [cell, *["0.25"] * 20, cell, "-1"]
    for separator in ",;\t":
        found = column(cells, separator)
        assert found is not None and bits(found) == bits([*map(float, cells)])


@pytest.mark.parametrize("cell", OTHERS)
def test_a_cell_that_is_no_number_is_for_others(cell: str) -> None:
    assert column(["1.5"] * 20 + [cell]) is None


@pytest.mark.parametrize(
    "text", ["1,2\n3\n", "1,2,3\n4,5\n", "1,2\n\n3,4\n", '1,"2"\n', "1\n2,3,4\n", "1,2 # so\n"]
)
def test_lines_of_other_lengths_are_for_others(text: str) -> None:
    assert decimals.columns(text.encode(), ",", 2) is None


@pytest.mark.parametrize("kind", ["any", "like", pytest.param("many", marks=pytest.mark.long)])
def test_random_numbers(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of any count of digits before and behind the point; and as Python writes doubles."""
    rng = random.Random(5)
    monkeypatch.setattr(decimals, "PIECE", 1 << 12)
    monkeypatch.setattr(decimals, "_FEW", 1)
    rows = 200_000 if kind == "many" else 1000
    if kind == "like":
        made = np.random.default_rng(2)
        texts = [
            repr(x)
            for x in (made.standard_normal((rows, 2)) * 10.0 ** made.integers(-3, 9, (rows, 2)))
            .ravel()
            .tolist()
        ]
    else:
        digits = "0123456789" * 2
        texts = []
        for _ in range(2 * rows):
            whole, behind = (
                rng.choice((0, 1, 1, 2, 3, 8, 9, 15, 17)),
                rng.choice((0, 1, 2, 6, 8, 9, 15, 17)),
            )
            whole = whole or not behind
            text = "".join(rng.choices(digits, k=whole))
            point = "." + "".join(rng.choices(digits, k=behind)) if behind else ""
            texts.append(rng.choice(("", "-")) + text + point)
    lines = "".join(f"{a},{b}\n" for a, b in zip(texts[::2], texts[1::2], strict=True))
    found = decimals.columns(lines.encode(), ",", 2)
    assert found is not None
    assert bits(found[0]) == bits([*map(float, texts[::2])])
    assert bits(found[1]) == bits([*map(float, texts[1::2])])


@pytest.mark.parametrize("tail", ["", "\n", "sum,1\n", "1;2\n", "1e5,-0\n", "\n\n"])
def test_a_long_file_is_read_as_a_short_one(
    tail: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.csv"
    path.write_text('"x","y"\n' + "".join(f"{k / 8},{-k}\n" for k in range(300)) + tail)
    monkeypatch.setattr(column_reading, "_LONG", 1 << 30)
    short = run("eval", "sum(x*y)", "--x", f"@{path}:x", "--y", f"@{path}:y")
    monkeypatch.setattr(column_reading, "_LONG", 1 << 10)
    long = run("eval", "sum(x*y)", "--x", f"@{path}:x", "--y", f"@{path}:y")
    assert (long.exit_code, long.stdout, long.stderr) == (
        short.exit_code,
        short.stdout,
        short.stderr,
    )


@pytest.mark.parametrize("tail", ["", "9,w#,1\n", '9,"w",1\n', "9,v,x\n", "***\n", "9,, 1\n"])
def test_columns_of_text_are_left_where_they_are(
    tail: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers are read beside them; they are cut where somebody asks for them."""
    path = tmp_path / "t.csv"
    path.write_text("x,name,y\n" + "".join(f"{k / 8},w{k % 3} ,{-k}\n" for k in range(300)) + tail)
    lines = [
        ["eval", "sum(x*y)", "--x", f"@{path}:x", "--y", f"@{path}:y"],
        ["eval", "sum(x)", "--x", f"@{path}:x,name"],
        ["fit", "y == a*x", str(path), "--where", "name == 'w1'"],
    ]
    for line in lines:
        found = []
        for long in (1 << 30, 1 << 10):
            monkeypatch.setattr(column_reading, "_LONG", long)
            done = run(*line)
            found.append((done.exit_code, done.stdout, done.stderr))
        assert found[0] == found[1]


def test_passes_read_numbers_without_arrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same sums; a cell that is no number is refused with its line."""
    path = tmp_path / "t.csv"
    rows = "".join(f"{k / 8},w{k % 3},{-k}\n" for k in range(3000))
    line = ["eval", "sum(x*y)", "--x", f"@{path}:x", "--y", f"@{path}:y", "--by-rows"]
    found = []
    for tail in ("", "7,w,z\n"):
        path.write_text("x,name,y\n" + rows + tail)
        for missing in (False, True):
            with monkeypatch.context() as patch:
                patch.setattr(record_batches, "BLOCK", 1 << 10)
                if missing:
                    patch.setitem(sys.modules, "pyarrow.csv", None)
                done = run(*line)
                found.append((done.exit_code, done.stdout, done.stderr))
    assert found[0] == found[1] and found[0][0] == 0
    assert found[2] == found[3] and "line 3002, column y: `z` is not a number" in found[2][2]
