"""Where a table begins in a text, and what its lines are: small texts as programs write them."""

from __future__ import annotations

import subprocess
import warnings
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import gradcli
from gradcli.cli import main
from gradcli.tables import TableError
from gradcli.tables.cell_kinds import as_python, is_unit, kind, shape
from gradcli.tables.column_reading import numpy_numbers
from gradcli.tables.delimited import Dialect
from gradcli.tables.reading_options import How, Reading
from gradcli.tables.record_batches import Stream
from gradcli.tables.sniffing import sniff
from gradcli.tables.times import clock_of, nanoseconds
from tests.commands.running import outcome


def read(text: str, told: str = "", how: How | None = None) -> tuple[Dialect, list[str]]:
    """The dialect of a text, and the notes."""
    said: list[str] = []
    reading = Reading(how, lambda words: said.append(words.removeprefix("f: ")))
    found = sniff(text.split("\n"), "f", told, lambda head: False, reading)
    assert found is not None
    return found, said


# text, separator ("" for blanks), names (None: none), the line of the first row, the note
LAYOUTS = [
    ("x,y\n0,1\n1,3\n", ",", "x y", 2, ""),
    ("x,y\ns,V\n0,1\n1,2\n", ",", "x y", 3, "names in line 1 (x, y), units in line 2 (s, V)"),
    ("My title\n\nt,V\n0,1\n1,2\n", ",", "t V", 4, "1 line of preamble, names in line 3 (t, V)"),
    (
        "Model,DPO2024\nFirmware,1.2\n\nTIME,CH1\n0,1\n1,2\n",
        *(",", "TIME CH1", 5, "2 lines of preamble, names in line 4 (TIME, CH1)"),
    ),
    ("# x y\n0 1\n1 2.1\n", "", "x y", 2, "names in line 1 (x, y)"),
    ("#x y\n0 1\n1 2.1\n", "", "x y", 2, "names in line 1 (x, y)"),
    ("% t U\n0 1\n1 2.1\n", "", "t U", 2, "names in line 1 (t, U)"),
    ("! f/GHz, s11\n1.0, 0.5\n1.1, 0.4\n", ",", "f/GHz s11", 2, "names in line 1 (f/GHz, s11)"),
    ("# Columns: t U\n0 1\n1 2\n", "", "t U", 2, "names in line 1 (t, U)"),
    ('"#x","y"\n0,1\n1,2\n', ",", "#x y", 2, ""),
    ("0 1\n1 2.1\n", "", None, 1, ""),
    ("Run #,V,I\n1,2.0,0.1\n2,3.0,0.2\n", ",", "Run # V I", 2, ""),
    ("#,Name,HP\n1,Alba,45\n2,Bea,60\n", ",", "# Name HP", 2, ""),
    ("colour,x\n#ff0000,1\n#00ff00,2\n", ",", "colour x", 2, ""),
    ("id,x,y\n1,2,3\n#2,3,4\n4,5,6\n", ",", "id x y", 2, "line 3 is a remark (#2,3,4)"),
    ("x\n1\n#5\n2\n", "", "x", 2, "line 3 is a remark (#5)"),
    ("x y\n1 2\n#5 3\n2 4\n", "", "x y", 2, "line 3 is a remark (#5 3)"),
    ("x,y\n1,2\n# of one cell\n3,4\n", ",", "x y", 2, ""),
    ('x,y\n"1",2\n#5,3\n2,4 # its end\n', ",", "x y", 2, "line 3 is a remark (#5,3)"),
    ("sep=;\nt;U\n0;1,5\n1;2,5\n", ";", "t U", 3, "names in line 2 (t, U), decimal commas"),
    ("t;U\n0;1,5\n1;2,5\n", ";", "t U", 2, "decimal commas"),
    ("t\n1,5\n2,25\n", "", "t", 2, "decimal commas"),
    ("t;U\n0;1.250,5\n1;2.500,25\n", ";", "t U", 2, "decimal commas, `.` between thousands"),
    ("t;U\n0;1'250.5\n1;2'500.25\n", ";", "t U", 2, "`'` between thousands"),
    ("Time (s)  U (mV)\n0.0  1.25\n0.1  1.5\n", "", "Time (s) U (mV)", 2, ""),
    ("Zeit [s]\tT [°C]\n1\t20,5\n2\t21,25\n", "\t", "Zeit [s] T [°C]", 2, "decimal commas"),
    ("| v | a |\n|---|---|\n| 1 | 2.5 |\n| 2 | 3 |\n", "|", "v a", 3, ""),
    ("t,U,\n0,1,\n1,2,\n", ",", "t U", 2, ""),
    (
        "run 1,,run 2,\nx,y,x,y\n0,1,0,2\n1,2,1,3\n",
        *(",", "run 1 x|run 1 y|run 2 x|run 2 y", 3, "names in line 2 (x, y, x, y)"),
    ),
    (
        "when level\n2024-01-01 00:00 1.5\n2024-01-01 01:00 2\n",
        "",
        "when level",
        2,
        "a date and its time",
    ),
    ('"a" "b"\n"1" 4 2\n"2" 5 3\n', "", " a b", 2, ""),
    ("NaN NaN\n1 2\n2 3\n", "", None, 1, ""),
    ("x;y\ninf;-inf\n1,5;2\n3;4,5\n", ";", "x y", 2, "decimal commas"),
    ("x;y\nnull;null\n1,5;2\n3;4,5\n", ";", "x y", 2, "decimal commas"),
    ("STEP 1\n  0.1D+01  -0.25D-02\n  0.2D+01  -0.5D-02\n", "", None, 2, "1 line of preamble"),
]


@pytest.mark.parametrize(
    "text, separator, names, first_row, note", LAYOUTS, ids=[r[0] for r in LAYOUTS]
)
def test_layouts(text: str, separator: str, names: str | None, first_row: int, note: str) -> None:
    found, said = read(text)
    assert (found.separator or "", found.first_row) == (separator, first_row)
    one_by_one = names is not None and (
        "|" in names or found.separator == "|" or "(" in names or "[" in names
    )
    shown = (
        None
        if found.names is None
        else ("|" if one_by_one and "|" in str(names) else " ").join(found.names)
    )
    assert shown == names
    assert note in "; ".join(said) and bool(note) == bool(said), said


ASKED = [
    (
        "0,5\n1,25\n2,0\n",
        "two columns, or one with decimal commas?",
        "--separator , reads two columns, --decimal , one",
    ),
    (
        "1,000\n2,500\n",
        "two columns, or one with decimal commas?",
        "--thousands , one of whole numbers",
    ),
    (
        "n;cost\n1;1,000\n2;2,500\n",
        "a decimal comma, or a mark between thousands?",
        "--decimal , or --thousands ,",
    ),
    ("x,y,z\n1,5,2,5,3,5\n1,5,2,5,3,5\n", "are the commas decimal ones?", "--header none"),
]


@pytest.mark.parametrize("text, words, hint", ASKED)
def test_two_readings_are_asked(text: str, words: str, hint: str) -> None:
    with pytest.raises(TableError) as refused:
        read(text)
    assert words in refused.value.message and hint in str(refused.value.hint)


TWO_BLOCKS = "x y\n0 1\n1 2\n\n\n# second\n5 6\n7 8\n"
OPTIONS = [
    ("a\nb\n1,2\n3,4\n", How(skip_lines=2), None, 3),
    ("a b\nx y\n1 2\n3 4\n", How(header=2), "x y", 3),
    ("a b\nx y\n1 2\n3 4\n", How(header=1), "a b", 3),
    ("x,y\n1,2\n", How(header="none", names=("t", "U")), "t U", 2),
    ("1 2\n3 4\n", How(names=("t", "U")), "t U", 1),
    ("; old\n1 2\n; odd 7\n3 4\n", How(comment=";", names=("t", "U")), "t U", 2),
    ("t:U\n1:2\n3:4\n", How(separator=":"), "t U", 2),
    ("t U\nsec volt\n1 2\n3 4\n", How(units=2), "t U", 3),
    ("0,5\n1,25\n", How(decimal=",", names=("t",)), "t", 1),
    ("n;c\n1;1,000\n", How(thousands=","), "n c", 2),
    ("1,000\n2,500\n", How(thousands=",", names=("n",)), "n", 1),
    ("name  v1\nAnn B 1.0\nBo    3.0\n", How(separator="fixed"), "name v1", 2),
    ("Ann-B 1.0\nBo    3.0\n", How(separator="fixed", names=("n", "v")), "n v", 1),
]


@pytest.mark.parametrize("text, how, names, first_row", OPTIONS, ids=[repr(r[0]) for r in OPTIONS])
def test_options_decide(text: str, how: How, names: str | None, first_row: int) -> None:
    found, _ = read(text, how=how)
    assert (None if found.names is None else " ".join(found.names), found.first_row) == (
        names,
        first_row,
    )


BELOW = [
    ("x,y\n0,1\n1,2\nEnd of data\n", [1, 2]),
    ("x,y\n0,1\n1,2\nTotal,3\n", [1, 2]),
    ("x;y\n0;1\n1;2\nSource: lab 3;;\n", [1, 2]),
    ("x,y\n0,1\n1,2\n\n\nMeasured by hand,\nno warranty\n", [1, 2]),
    ("name,y\na,1\nb,2\nc,3\n", [1, 2, 3]),
]


@pytest.mark.parametrize("text, expected", BELOW, ids=[repr(row[0]) for row in BELOW])
def test_lines_below_the_table(text: str, expected: list[float], tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text(text)
    said: list[str] = []
    (batch,) = Stream(str(tmp_path / "f.csv"), reading=Reading(None, said.append))
    assert batch.numbers(1).numbers.tolist() == expected and not batch.bad
    assert bool(said) == (len(expected) == 2) and all("below the table" in words for words in said)


def test_lines_below_the_table_by_number(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("x,y\n0,1\n1,2\n2,3\n\n")
    (batch,) = Stream(str(tmp_path / "f.csv"), reading=Reading(How(footer=2)))
    assert batch.numbers(1).numbers.tolist() == [1]


def test_a_broken_last_row_is_no_footer(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("x,y\n0,1\n1,3\n7\n")
    (batch,) = Stream(str(tmp_path / "f.csv"))
    assert [error.message.partition(", ")[2] for error in batch.bad.values()] == [
        "line 4: 1 value, and line 1 has 2"
    ]


def test_prose_is_no_table() -> None:
    with pytest.raises(TableError, match="no rows of numbers"):
        read("a preamble\nwithout a table\nat all\n")


WRONG = [
    (How(names=("t",)), "--names has 1 name, and the table 2 columns"),
    (How(header=3), "--header 3: the rows begin in line 3"),
    (How(header=9), "there is no line 9"),
    (How(units=4), "--units 4: that line has no 2 cells"),
]


@pytest.mark.parametrize("how, words", WRONG)
def test_options_that_do_not_go_with_the_text(how: How, words: str) -> None:
    with pytest.raises(TableError, match=words):
        read("t U\n1 2\n3 4\n7\n5 6\n", how=how)


CELLS = [
    ("1.5D-03", 0.0015), ("1.5d3", 1500), ("+5", 5), ("5.", 5), (".5", 0.5), ("1e400", float("inf")),
    ("-0.1250-102", -0.125e-102), ("\u22125", -5), ("1.5q2", 150),
]  # fmt: skip


@pytest.mark.parametrize("cell, value", CELLS)
def test_numbers_as_programs_write_them(cell: str, value: float, tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text(f"x,n\n{cell},1\n2,2\n", encoding="utf-8")
    (batch,) = Stream(str(tmp_path / "f.csv"))
    assert batch.numbers(0).numbers.tolist() == [value, 2]


@pytest.mark.parametrize("cell", ["١٢", "１２", "12_34", "1.2.3", "1-2", "0x10"])
def test_what_no_program_means_as_a_number(cell: str, tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text(f'x,n\n"{cell}",1\n2,2\n"3,",3\n', encoding="utf-8")
    (batch,) = Stream(str(tmp_path / "f.csv"))
    with pytest.raises(TableError, match="is not a number"):
        batch.numbers(0)


@given(
    st.floats(allow_nan=False),
    st.sampled_from([".", ","]),
    st.sampled_from(["", "'", " ", ",", "."]),
)
def test_a_number_is_read_as_it_was_written(value: float, decimal: str, mark: str) -> None:
    if mark == decimal:
        mark = ""
    written = f"{value:,.3f}" if abs(value) < 1e15 else repr(value)
    expected = float(written.replace(",", ""))
    written = written.replace(",", "T").replace(".", decimal).replace("T", mark)
    assert float(as_python(written, decimal, mark)) == expected


KINDS = [
    ("1.5", "n"), ("-1e-3", "n"), ("1,000", "n"), ("0.994±0.002", "n"), ("1+2j", "n"), ("2024-01-31", "t"),
    ("01.02.2026", "t"), ("1-Mar-2024", "t"), ("12:30:01.5", "t"), ("2024-01-31T10:00Z", "t"), ("", "m"),
    ("NA", "m"), ("OL", "m"), ("---", "m"), ("1.#INF", "m"),
    ("V(out)", "w"), ("1.5 V", "w"), ("1.2.3.4", "w"),
]  # fmt: skip


@pytest.mark.parametrize("cell, letter", KINDS)
def test_kinds_of_cells(cell: str, letter: str) -> None:
    assert kind(shape(cell), ".") == letter


@pytest.mark.parametrize(
    "cell", ["s", "mV", "m/s", "[V]", "(°C)", "dBm", "1/cm", "m^2", "-", "%", "Deg C"]
)
def test_units(cell: str) -> None:
    assert is_unit(cell)


@pytest.mark.parametrize("cell", ["time", "CH1", "V(out)", "Temperature", "x"])
def test_names_are_no_units(cell: str) -> None:
    assert not is_unit(cell)


DATES = [
    ("2024-01-01", "2024-03-01", 60 * 86400),  # a leap year
    ("2024-01-01T00:00:00Z", "2024-01-01T02:00:00+01:00", 3600),
    ("01/31/2024", "02/01/2024", 86400),
    ("31.12.2023", "01.01.2024", 86400),
    ("1-Mar-2024", "02-Mar-24", 86400),
    ("2024/3/5 9:05", "2024/3/5 9:05:00.25", 0.25),
    ("12:59:59 AM", "01:00:00 AM", 1),
    ("11:59 AM", "12:00 PM", 60),
]


@pytest.mark.parametrize("first, second, seconds", DATES)
def test_times_are_seconds(first: str, second: str, seconds: float) -> None:
    clock = clock_of("t", [first, second], None, "s")
    assert clock is not None and clock.order
    clock.origin = nanoseconds(first, clock.order)
    assert clock.number(second) == seconds


@pytest.mark.parametrize(
    "cell", ["2024-13-01", "2024-02-30", "25:61", "1.5", "x", "", "2024-01-01 7"]
)
def test_what_is_no_time(cell: str) -> None:
    with pytest.raises(ValueError):
        nanoseconds(cell, "ymd")


def test_the_origin_is_that_of_the_first_file(tmp_path: Path) -> None:
    (tmp_path / "a1.csv").write_text("t,x\n2024-01-01T00:00:10,1\n")
    (tmp_path / "a2.csv").write_text("t,x\n2024-01-01T00:00:30,2\n")
    found = [b.numbers(0).numbers.tolist() for b in Stream(str(tmp_path / "a*.csv"))]
    assert found == [[0], [20]]


def test_blocks(tmp_path: Path) -> None:
    path = str(tmp_path / "f.dat")
    Path(path).write_text(TWO_BLOCKS)
    for block, expected in ((1, [0, 1]), (2, [5, 7]), (None, [0, 1, 5, 7])):
        (batch,) = Stream(path, reading=Reading(How(block=block)))
        assert batch.numbers(0).numbers.tolist() == expected


PIECES = [
    *("a,b", "Model,X1", "", "# x y", "1,2", "3,4", "s,V", "t;U", "0;1,5", "5 6", "End", '"q"'),
    *("2024-01-01,5", "x", "1.5", "%", "@ s0 legend", "sep=;", "NaN", "|1|2|", '"', "#", "1;;"),
]


@given(st.lists(st.sampled_from(PIECES), max_size=9), st.sampled_from(["", "csv", "tsv", "text"]))
def test_whatever_the_lines_are_no_fault_is_ours(pieces: list[str], told: str) -> None:
    """A text is read, or refused with words."""
    try:
        found, _ = read("\n".join(pieces), told)
    except TableError as error:
        assert error.message
    else:
        assert found.width >= 1


@pytest.mark.parametrize(
    "argv", [("eval", "sum(x)", "--x", "@{}:x", "--by-rows"), ("map", "2*x", "{}")]
)
def test_a_remark_far_below_is_said(argv, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "1,1\n" * 3000 + "#7,1\n1,1\n")
    found = CliRunner().invoke(main, [word.format(path) for word in argv])
    assert "line 3002 is a remark (#7,1)" in found.stderr and "7" not in found.stdout


def test_one_row_below_a_preamble_of_as_many_cells(tmp_path: Path) -> None:
    file = tmp_path / "f.csv"
    file.write_text("Model,DPO2024\nFirmware,1.2\n\nTIME,CH1\n0,1.5\n")
    assert gradcli.read_table(str(file))["CH1"].tolist() == [1.5]
    file.write_text("a,b\n1,2\n\n3,4\n")  # a blank line alone begins nothing
    assert gradcli.read_table(str(file))["b"].tolist() == [2, 4]


# (a text as spreadsheets and loggers write it, a column, its numbers, what is said of it)
WRITTEN = [
    ("x;y;z\n1;1.234;0,5\n2;2.345;0,7\n", "y", [1234, 2345], "decimal commas, `.` between thousands"),
    ("x;y;z\n1;1.234;0,5\n2;2.345;0,7\n", "z", [0.5, 0.7], "decimal commas"),
    ("x;y;z\n1;1.5;0,5\n2;2.345;0,7\n", "y", [1.5, 2.345], ""),
    ("x;y\n1;1.234\n2;2.345\n", "y", [1.234, 2.345], ""),
    ('x,y,z\n1,1.234,"0,5"\n2,2.345,"0,7"\n', "y", [1.234, 2.345], ""),
    ("an;v\n2001;1 234,5\n2002;13 456,7\n", "v", [1234.5, 13456.7], "`blank` between thousands"),
    ("t,T\n0,20\n1,-999\n2,21\n3,19\n", "T", [20, -999, 21, 19], "-999 in T may stand for a missing"),
    ("t,T\n0,20\n1,1e36\n2,21\n3,19\n", "T", [20, 1e36, 21, 19], "--missing-markers 1e36 reads"),
    ("t,T\n0,-800\n1,-999\n2,-700\n3,900\n", "T", [-800, -999, -700, 900], ""),
    ("t,T\n0,5000\n1,9999\n2,7000\n3,9000\n", "T", [5000, 9999, 7000, 9000], ""),
    ("m,v\nJan,1\nFeb,2\nTotal,3\n", "v", [1, 2, 3], "the last row (Total,3) may sum up the others"),
    ("m,v\nMin,1\nFeb,2\nMar,3\n", "v", [1, 2, 3], ""),
]  # fmt: skip


@pytest.mark.parametrize(("text", "column", "numbers", "said"), WRITTEN)
def test_what_is_easily_misread(
    text: str, column: str, numbers: list[float], said: str, tmp_path: Path
) -> None:
    (tmp_path / "f.csv").write_text(text, "utf-8")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = gradcli.read_table(str(tmp_path / "f.csv"), column)
    assert found[column].tolist() == numbers
    words = " ".join(str(one.message) for one in caught)
    assert said in words if said else not words, words


def test_an_empty_cell_in_quotes_is_a_row_of_one_column(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text('x\n1\n\n""\n3\n')
    found = gradcli.read_table(str(tmp_path / "f.csv"), missing="nan")["x"]
    assert [str(x) for x in found.tolist()] == ["1.0", "nan", "3.0"]
    code, _, err = outcome("eval", "sum(x)", "--x", f"@{tmp_path}/f.csv:x")
    assert code == 2 and "line 4, column x: a number is missing here" in err


@pytest.mark.parametrize("cell", [" ", "  ", "\t"])
def test_a_cell_of_blanks_is_missing(cell: str, tmp_path: Path) -> None:
    """NumPy's reader makes -1 of it."""
    rows = [f"{k}.5, {k}" for k in range(300)]
    (tmp_path / "f.csv").write_text("\n".join(["x, y", *rows, f"1.5,{cell}", f"{cell}, 2", *rows]))
    found = gradcli.read_table(str(tmp_path / "f.csv"), missing="nan")
    assert [str(found[n][300 + k]) for n in "xy" for k in (0, 1)] == ["1.5", "nan", "nan", "2.0"]
    for numbers in (f"1,{cell},2", f"{cell},1", f"1,{cell},", cell):
        assert numpy_numbers(numbers) is None
    assert numpy_numbers("1, 2,\n3").tolist() == [1, 2, 3]


def test_a_remark_among_quoted_numbers_is_no_row(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text('"x","y"\n"-7.8","2"\n# 1,2\n"53.8","3"\n')
    found = gradcli.read_table(str(tmp_path / "f.csv"))
    assert {n: a.tolist() for n, a in found.items()} == {"x": [-7.8, 53.8], "y": [2, 3]}
    (tmp_path / "f.csv").write_text('"colour","x"\n"#ff0000","1"\n"#00ff00","2"\n')
    assert gradcli.read_table(str(tmp_path / "f.csv"), "x")["x"].tolist() == [1, 2]


def test_a_row_of_broken_numbers_is_no_footer(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("item,v,share\na,(1.5),12%\nb,300,3%\nc,(20),85%\n")
    code, _, err = outcome("map", "v*2", str(tmp_path / "f.csv"), "--bad-rows", "skip")
    assert code == 0 and "2 bad rows left out; the first: " in err and "below the table" not in err


# (a cell, what the hint names); the commands of the hints are typed in the next test
REMEDIES = {
    "#DIV/0!": "--missing-markers '#DIV/0!'",
    "<0.05": "--missing-markers '<0.05'",
    "12%": "sed 's/%//g'",
    "$12.50": "sed 's/[$€£¥]//g'",
    "(12.5)": r"sed 's/(\([0-9.]*\))/-\1/g'",
    "12.5-": r"sed 's/\([0-9.]*\)-\([,;]\|$\)/-\1\2/g'",
    "2.5*": r"sed 's/\*//g'",
    "TRUE": "sed 's/true/1/gI; s/false/0/gI'",
    "1 234,5": "--decimal , --thousands \" \"",
}  # fmt: skip


@pytest.mark.parametrize("cell", REMEDIES)
def test_a_cell_that_is_no_number_has_a_remedy(cell: str, tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text(f"x;y\n1;2\n2;3\n3;{cell}\n", "utf-8")
    code, _, err = outcome("map", "y*2", str(path), "--separator", ";", "--decimal", ".")
    assert code == 1 and REMEDIES[cell] in err, err


@pytest.mark.long
@pytest.mark.parametrize("cell", [cell for cell, hint in REMEDIES.items() if "sed" in hint])
def test_the_remedy_is_a_command_that_reads_it(cell: str, tmp_path: Path) -> None:
    path = tmp_path / "f.csv"
    path.write_text(f"x,y\n1,{cell}\n2,3\n", "utf-8")
    err = outcome("map", "y*2", str(path))[2]
    script = err.partition("hint: ")[2].partition(" | gradcli")[0].replace("\n", " ")
    text = subprocess.run(script, shell=True, capture_output=True, text=True, check=True).stdout
    code, out, _ = outcome("map", "y*2", "-", "--no-grad", "all", stdin=text)
    number = {"12%": 12, "$12.50": 12.5, "(12.5)": -12.5, "12.5-": -12.5, "2.5*": 2.5, "TRUE": 1}
    assert code == 0 and float(out.splitlines()[1].split(",")[2]) == 2 * number[cell]


def test_of_two_columns_of_one_name_none_is_lost(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("x,y,y\n1,2,3\n2,3,4\n")
    path = str(tmp_path / "f.csv")
    with pytest.raises(gradcli.LanguageError, match="2 columns are called 'y'"):
        gradcli.read_table(path)
    assert gradcli.read_table(path, "x")["x"].tolist() == [1, 2]
    assert "--names x,y,y_2" in outcome("map", "2*y", path)[2]
    assert gradcli.read_table(path, names=("x", "y", "y_2"))["y_2"].tolist() == [3, 4]


# text, how it is read, what is said: an error (with the option that helps), or a note
REMARKS = [
    ("// t, U\n// 0, 1\n// 1, 2\n", How(), "error: 2 lines that look like rows, from line 2"),
    ("# t U\n" + "# 0 1\n" * 9 + "3 4\n", How(), "error: 9 lines that look like rows, from line 2"),
    ("# t U\n" + "# 0 1\n" * 3 + "3 4\n", How(), "note: 3 lines that look like rows, from line 2"),
    ("# t U\n" + "# 0 1\n" * 9 + "3 4\n", How(comment="#"), ""),
    ("# t U\n" + "# 0 1\n" * 2 + "3 4\n5 6\n", How(), ""),
    ("* 0 * 92 *\n* 1 * 87 *\n==> 2 selected entries\n", How(separator="blank"), "error: 2 lines"),
    ("t U\n# no data\n", How(comment="#"), ""),
]


@pytest.mark.parametrize("text, how, words", REMARKS)
def test_rows_are_not_lost_as_remarks(text: str, how: How, words: str) -> None:
    kind, _, words = words.partition(": ")
    if kind == "error":
        with pytest.raises(TableError, match=words) as caught:
            read(text, how=how)
        assert "--comment" in str(caught.value.hint)
        return
    _, said = read(text, how=how)
    lost = [one for one in said if "look like rows" in one]
    assert len(lost) == bool(words) and all(words in one for one in lost)


# names, units below them, what the units are; () where their number is another than that of the columns
UNITS = [
    ("\tPt\tT\tR", "\t#\ts\t#", ["", "#", "s", "#"]),
    ("\tPt\tT\tR", "\t#\ts", []),
    ("\tPt\tT\tR", "\t#\ts\tV\t#", []),
    ("N;T;U", "s;V", []),
    ("N  T  U", "-  s  #", ["-", "s", "#"]),
]


@pytest.mark.parametrize("names, units, expected", UNITS)
def test_units_stand_below_their_names(names: str, units: str, expected: list[str]) -> None:
    row = names.translate(str.maketrans("PTRNU", "12345")).replace("t", "")
    rows = "\n".join([row, row.replace("2", "7"), row])
    found, _ = read(f"{names}\n{units}\n{rows}\n")
    filled = [name for name in names.replace(";", " ").split() if name]
    assert found.names is not None and found.names[-len(filled) :] == filled
    assert found.units == expected
