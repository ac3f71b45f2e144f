# ruff: noqa: E501 (tables of cases)
"""`gradcli map EXPR TABLE`: one answer a row."""

from __future__ import annotations

import io
import json
import math
import os
import resource
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from gradcli.commands.progress import Bar
from tests.commands.running import outcome as run
from tests.commands.terminal import GRADCLI, environment, in_terminal
from tests.sweep import sweep

PENDULUM = 'name,L,T,sT\n"a, b",0.994,2.003,0.005\nc,1,2,0.01\n'
BAD = PENDULUM + "d,x,2,1\ne,1,,1\nf,3\ng,4,2,1\n"
G = "4*pi**2*L/T**2"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.csv").write_text(PENDULUM)
    (tmp_path / "bad.csv").write_text(BAD)
    return tmp_path


# -- what is asked for of the table: (arguments, the lines, or what is refused) -----------------------
CHOSEN = [
    (["L**2*T", "p.csv", "--second", "L,T", "--second", "L,L", "--keep-columns", "none", "--where", "L == 1"],
     ["value,L.grad,T.grad,value.L.T,value.L.L", "2,4,1,2,4"]),
    (["L*T*g", "p.csv", "--g", "3", "--second", "L,g", "--no-grad", "all", "--keep-columns", "L", "--where", "L == 1"],
     ["L,value,value.L.g", "1,6,2"]),
    (["L*T", "p.csv", "--no-grad", "all", "--as", "area=value", "--as", "length=L", "--keep-columns", "L", "--head", "1"],
     ["length,area", "0.994,1.990982"]),
    (["2*L", "p.csv", "--no-grad", "all", "--keep-columns", "none", "--where", "sT > 0.007"], ["value", "2"]),
    (["log(L - 0.995)", "p.csv", "--no-grad", "all", "--keep-columns", "L", "--where", "L > 0.995", "--detect-anomaly",
      "--precision", "3"], ["L,value", "1,-5.3"]),
    (["2*L", "p.csv", "--no-grad", "all", "--keep-columns", "none", "--where", "L > 9"], ["value"]),
    (["2*L", "p.csv", "--no-grad", "all", "--keep-columns", "none", "--head", "0"], ["value"]),
    # A tuple has the gradients of each item: a name that the program assigns is the item's.
    (["g = L*T; g, L**2", "p.csv", "--wrt", "T,L", "--keep-columns", "none", "--where", "L == 1"],
     ["g,value_1,g.T.grad,g.L.grad,value_1.T.grad,value_1.L.grad", "2,1,1,2,0,2"]),
    (["g = L*T; g, 3", "p.csv", "--wrt", "T", "--keep-columns", "none", "--as", "dg=g.T.grad", "--where", "L == 1"],
     ["g,value_1,dg,value_1.T.grad", "2,3,1,0"]),
    (["L, T", "p.csv", "--order", "2"], "--order is of one number, and the value has 2"),
    (["L*T", "p.csv", "--as", "x=y"], "--as: there is no column 'y'"),
    (["L*T", "p.csv", "--as", "x"], "--as wants NAME=COLUMN, not 'x'"),
    (["L*T", "p.csv", "--as", "a=L", "--as", "b=L"], "--as: L is called 'a' already"),
    (["L*T", "p.csv", "--as", "value=L"], "two columns would be called 'value'"),
    (["L*T", "p.csv", "--second", "L"], "--second wants x,y, not 'L'"),
    (["L*T", "p.csv", "--second", "L,Q"], "--second: 'Q' is not a variable"),
    (["dot(w,x)", "p.csv", "--columns", "x=L,T", "--w", "1,2", "--second", "x,x"], "x is not a number but has shape (2,)"),
    (["L*T", "p.csv", "--where", "Q > 1"], "--where: Q is not a column of p.csv"),
    (["L*T", "p.csv", "--where", "stack([L, T]) > 1"], "the condition of a row is true or false"),
    (["L*T", "p.csv", "--where", "1 > 0"], "--where: the condition uses no column"),
    (["L*T", "p.csv", "--workers", "1", "-o", "w.parquet", "--head", "2"], "--head cannot be used with --workers"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("argv", "expected"), CHOSEN, ids=lambda v: " ".join(v)[:60] if isinstance(v, list) else ""
)
def test_rows_and_columns_are_chosen(argv, expected) -> None:
    code, out, err = run("map", *argv)
    if isinstance(expected, str):
        assert code == 2 and expected in err
    else:
        assert (code, out.splitlines()) == (0, expected), err


# -- columns out: (arguments, the header and the lines below) ----------------------------------------
OUT = [
    ([G, "p.csv", "--keep-columns", "L,T"],
     ["L,T,value,L.grad,T.grad", "0.994,2.003,9.781021702277158,9.84006207472551,-9.766372144061064",
      "1,2,9.869604401089358,9.869604401089358,-9.869604401089358"]),
    ([G, "p.csv", "--no-grad", "all"],
     ["name,L,T,sT,value", '"a, b",0.994,2.003,0.005,9.781021702277158', "c,1,2,0.01,9.869604401089358"]),
    ([G, "p.csv", "--keep-columns", "none", "--wrt", "T"],
     ["value,T.grad", "9.781021702277158,-9.766372144061064", "9.869604401089358,-9.869604401089358"]),
    (["T*L", "p.csv", "--keep-columns", "none"],  # in the order in which EXPR reads them
     ["value,T.grad,L.grad", "1.990982,0.994,2.003", "2,1,2"]),
    (["dot(w,x)**2", "p.csv", "--columns", "x=L,T", "--w", "1,2", "--keep-columns", "name"],
     ["name,value,x.grad[0],x.grad[1]", '"a, b",25,10,20', "c,25,10,20"]),
    (["dot(w,x)**2", "p.csv", "--columns", "x=[LT]", "--w", "1,2", "--keep-columns", "none", "--wrt", "w"],
     ["value,w.grad[0],w.grad[1]", "25,9.94,20.03", "25,10,20"]),
    (["2*x", "p.csv", "--columns", "x=L", "--keep-columns", "none"], ["value,x.grad", "1.988,2", "2,2"]),
    (["2*x", "p.csv", "--columns", "x=L,T", "--keep-columns", "none", "--no-grad", "all"],
     ["value[0],value[1]", "1.988,4.006", "2,4"]),
    (["(L, 2*x)", "p.csv", "--columns", "x=L,T", "--keep-columns", "none", "--no-grad", "all"],
     ["value_0,value_1[0],value_1[1]", "0.994,1.988,4.006", "1,2,4"]),
    (["L > 0.995", "p.csv", "--keep-columns", "none", "--no-grad", "all"], ["value", "False", "True"]),
    (["a*L", "p.csv", "--a", "3", "--keep-columns", "none", "--wrt", "a,L"],
     ["value,a.grad,L.grad", "2.982,0.994,3", "3,1,3"]),
    (["L if L < 1 else T*L", "p.csv", "--keep-columns", "none"],
     ["value,L.grad,T.grad", "0.994,1,0", "2,2,1"]),
    (["sum(outer(x, x))", "p.csv", "--columns", "x=L,T", "--keep-columns", "none", "--precision", "4"],
     ["value,x.grad[0],x.grad[1]", "8.982,5.994,5.994", "9,6,6"]),
    (["3", "p.csv", "--keep-columns", "L"], ["L,value", "0.994,3", "1,3"]),
    (["F*L", "p.csv", "--F", "2", "--keep-columns", "none"], ["value,L.grad", "1.988,2", "2,2"]),
    ([G, "p.csv", "--uncertainty", "L=0.002", "--uncertainty", "T=sT", "--keep-columns", "none", "--budget",
      "--no-grad", "all", "--precision", "3"],
     ["value,value.uncertainty,L.share,T.share", "9.78,0.0526,0.14,0.86", "9.87,0.101,0.0385,0.962"]),
    (["a*L", "p.csv", "--a", "3±0.1", "--keep-columns", "none"],
     ["value,value.uncertainty,L.grad", "2.982,0.0994,3", "3,0.1,3"]),
    (["L - T", "p.csv", "--uncertainty", "L=sT", "--uncertainty", "T=sT", "--covariance", "L,T=0.000025",
      "--keep-columns", "none", "--no-grad", "all", "--precision", "2"],
     ["value,value.uncertainty", "-1,0", "-1,0.012"]),
    (["L**3*T", "p.csv", "--order", "3", "--wrt", "L", "--keep-columns", "none", "--precision", "4"],
     ["value,L.grad,L.grad2,L.grad3", "1.967,5.937,11.95,12.02", "2,6,12,12"]),
    (["L**2*T", "p.csv", "--order", "2", "--keep-columns", "none", "--precision", "3"],
     ["value,L.grad,L.grad2,T.grad,T.grad2", "1.98,3.98,4.01,0.988,0", "2,4,4,1,0"]),
    (["a*L**2 if L < 1 else L", "p.csv", "--a", "2", "--order", "2", "--jvp", "L=sT", "--wrt", "L,a",
      "--keep-columns", "none", "--precision", "4"],
     ["value,value.jvp,L.grad,L.grad2,a.grad,a.grad2", "1.976,0.01988,3.976,4,0.988,0", "1,0.01,1,0,0,0"]),
    (["L*T", "p.csv", "--jvp", "L=2", "--jvp", "T=sT", "--keep-columns", "none", "--uncertainty", "L=1",
      "--no-grad", "all"],
     ["value,value.jvp,value.uncertainty", "1.990982,4.01097,2.003", "2,4.01,2"]),
    (["w*sum(x)", "p.csv", "--columns", "x=L,T", "--w", "1,10", "--jvp", "x=ones", "--jvp", "w=L,T",
      "--keep-columns", "none", "--no-grad", "all", "--precision", "4"],
     ["value[0],value[1],value.jvp[0],value.jvp[1]", "2.997,29.97,4.979,26", "3,30,5,26"]),
    (["(L, L*x)", "p.csv", "--columns", "x=L,T", "--jvp", "L=1", "--keep-columns", "none", "--no-grad", "all"],
     ["value_0,value_1[0],value_1[1],value.jvp_0,value.jvp_1[0],value.jvp_1[1]",
      "0.994,0.988036,1.990982,1,0.994,2.003", "1,1,2,1,1,2"]),
    # a vector's uncertainty has as many numbers as the table has rows: it is the vector's
    (["sum(x)", "p.csv", "--columns", "x=L,T", "--uncertainty", "x=3,4", "--keep-columns", "none", "--no-grad",
      "all", "--budget"], ["value,value.uncertainty,x.share", "2.997,5,1", "3,5,1"]),
    (["sum(x*y)", "p.csv", "--columns", "x=L,L", "--columns", "y=T,L", "--uncertainty", "x=sT", "--uncertainty",
      "y=sT", "--covariance", "x,y=0", "--keep-columns", "none", "--no-grad", "all", "--precision", "3"],
     ["value,value.uncertainty", "2.98,0.0132", "3,0.0265"]),
]  # fmt: skip


@pytest.mark.parametrize("argv, lines", OUT, ids=[" ".join(argv[:1] + argv[2:]) for argv, _ in OUT])
def test_columns(argv, lines):
    code, out, err = run("map", *argv)
    assert (code, out.splitlines()) == (0, lines)
    assert "error" not in err


def test_it_agrees_with_grad_row_by_row(folder):
    rng = np.random.default_rng(0)
    data = rng.uniform(0.5, 2, (7, 3))
    np.savetxt(folder / "r.csv", data, delimiter=",", header="a,b,c", comments="", fmt="%.17g")
    for source in (
        "sin(a)*b/c",
        "a**b + log(c)",
        "where(a > 1, b, c)*a",
        "sum(softmax(x, dim=0)*x)",
    ):
        bound = ["--columns", "x=a,b,c"] if "x" in source.replace("max", "") else []
        argv = ["map", source, "r.csv", *bound, "--keep-columns", "none", "--json"]
        rows = [json.loads(line) for line in run(*argv)[1].splitlines()]
        for row, values in zip(rows, data.tolist(), strict=True):
            text = dict(zip("abc", map(repr, values), strict=True))
            given = {"x": ",".join(text.values())} if bound else text
            options = [word for n, t in given.items() for word in (f"--{n}", t)]
            found = json.loads(run("grad", source, *options, "--json")[1])
            assert row["value"] == pytest.approx(found["value"], rel=1e-14)
            for name, grad in found["grads"].items():
                parts = grad["grad"] if bound else [grad["grad"]]
                for k, part in enumerate(parts):
                    key = f"{name}.grad[{k}]" if bound else f"{name}.grad"
                    assert row[key] == pytest.approx(part, rel=1e-12, abs=1e-15)


# -- formats -------------------------------------------------------------------------------------------
FORMATS = ["csv", "tsv", "jsonl", "parquet", "feather", "npy"]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("by", ["ending", "option"])
def test_what_comes_out_goes_back_in(form, by, folder):
    if form in ("parquet", "feather"):
        pytest.importorskip("pyarrow")
    path = f"o.{form}" if by == "ending" else "out"
    argv = ["map", G, "p.csv", "-o", path, *(["--format", form] if by == "option" else [])]
    assert run(*argv) == (0, "", "")
    assert sorted(os.listdir(folder)) == sorted(["p.csv", "bad.csv", path])
    assert (
        run("eval", "x", "--x", f"@{path}:value")[1] == "[9.781021702277158, 9.869604401089358]\n"
    )
    code, out, err = run("map", "L*T", path, "--keep-columns", "name,value", "--no-grad", "all")
    assert code == 2 and "two columns would be called 'value'" in err
    out = run("map", "L*T", path, "--keep-columns", "name", "--no-grad", "all")[1]
    assert out == 'name,value\n"a, b",1.990982\nc,2\n'


@pytest.mark.parametrize(
    "name", ["o.csv.gz", "o.TSV.gz", "o.jsonl.gz", "o.csv.zst", "o.ndjson.zst"]
)
def test_texts_are_packed_as_the_ending_says(name, folder):
    if name.endswith("zst"):
        pytest.importorskip("pyarrow")
    written = []
    for _ in range(2):
        assert run("map", G, "p.csv", "-o", name) == (0, "", "")
        written.append((folder / name).read_bytes())
    assert written[0] == written[1]
    assert written[0][:2] == (b"\x1f\x8b" if name.endswith("gz") else b"\x28\xb5")
    assert run("eval", "v", "--v", f"@{name}:value") == run(
        "eval", G, "--L", "@p.csv:L", "--T", "@p.csv:T"
    )


@pytest.mark.parametrize("name", ["o.gz", "o.parquet.gz", "o.npy.zst"])
def test_what_is_no_text_is_not_packed(name, folder):
    code, out, err = run("map", G, "p.csv", "-o", name)
    assert (code, out) == (2, "") and "names no format" in err
    assert sorted(os.listdir(folder)) == ["bad.csv", "p.csv"]


def test_json_lines_hold_numbers_and_text(folder):
    (folder / "t.csv").write_text("n,k,x\nu,1,0\n")
    row = json.loads(run("map", "1/x", "t.csv", "--format", "jsonl")[1])
    assert row.pop("wrt") == {"x": {"grad": "-inf"}}
    assert row == {"n": "u", "k": 1.0, "x": 0.0, "value": "inf", "x.grad": "-inf"}


def test_integers_that_are_passed_through_stay_integers(folder):
    (folder / "t.csv").write_text("run,x,id\n1,2,007\n123456789012345678901,0.5,8\n")
    out = run("map", "x*2", "t.csv", "--no-grad", "all", "--json", "--precision", "3")[1]
    assert out.splitlines() == [
        '{"run": 1, "x": 2.0, "id": "007", "value": 4.0}',
        '{"run": 123456789012345678901, "x": 0.5, "id": "8", "value": 1.0}',
    ]


CELLS = [  # (a column of a table of pyarrow's, its cells in CSV, its cells in JSON lines)
    ("[date(2020, 1, 2), None]", ["2020-01-02", ""], ['"2020-01-02"', "null"]),
    ("[time(1, 2, 3), None]", ["01:02:03", ""], ['"01:02:03"', "null"]),
    (
        "[datetime(2020, 1, 2, 3, 4), None]",
        ["2020-01-02 03:04:00", ""],
        ['"2020-01-02 03:04:00"', "null"],
    ),
    ("[timedelta(seconds=1), None]", ["0:00:01", ""], ['"0:00:01"', "null"]),
    ("[Decimal('1.10'), None]", ["1.10", ""], ["1.10", "null"]),
    ("[b'a', b'\\xff']", ["a", "\\xff"], ['"a"', '"\\\\xff"']),
    ("[[1.0, float('nan')], None]", ['"[1.0, ""nan""]"', ""], ['[1.0, "nan"]', "null"]),
    (
        "[{'a': 1, 'b': 'x'}, None]",
        ['"{""a"": 1, ""b"": ""x""}"', ""],
        ['{"a": 1, "b": "x"}', "null"],
    ),
    ("[2.0, None]", ["2", ""], ["2.0", "null"]),
    ("[2**53 + 1, None]", ["9007199254740993", ""], ["9007199254740993", "null"]),
    ("[True, None]", ["True", ""], ["true", "null"]),
    ("arrow.array(['u', None]).dictionary_encode()", ["u", ""], ['"u"', "null"]),
    ("['007', '8']", ["007", "8"], ['"007"', '"8"']),
]


@pytest.mark.parametrize("made, csv, jsonl", CELLS, ids=[c[0] for c in CELLS])
def test_columns_of_every_type_pass_through(made, csv, jsonl, folder):
    arrow = pytest.importorskip("pyarrow")
    from datetime import date, datetime, time, timedelta
    from decimal import Decimal

    import pyarrow.parquet as parquet

    known = {"date": date, "datetime": datetime, "time": time, "timedelta": timedelta,
             "Decimal": Decimal, "arrow": arrow}  # fmt: skip
    table = arrow.table({"c": eval(made, known), "x": [1.0, 2.0]})
    parquet.write_table(table, "t.parquet")
    argv = ["map", "x", "t.parquet", "--no-grad", "all", "--keep-columns", "c"]
    lines = run(*argv)[1].splitlines()[1:]
    assert lines == [f"{cell},{k}" for k, cell in enumerate(csv, 1)]
    rows = run(*argv, "--format", "jsonl")[1].splitlines()
    assert rows == [f'{{"c": {cell}, "value": {k}.0}}' for k, cell in enumerate(jsonl, 1)]
    assert run(*argv, "-o", "o.parquet") == (0, "", "")
    assert (
        parquet.read_table("o.parquet").column("c").to_pylist() == table.column("c").to_pylist()
        or "nan" in made
    )


# Text that separators cut, where the format has types: (the column, its type, its cells; None: refused)
TEXT = [
    (["1", "2"], "double", [1, 2]),
    (["1", "0.5"], "double", [1, 0.5]),
    (["1", ""], "double", [1, None]),
    (["9007199254740993", "1"], "int64", [9007199254740993, 1]),
    (["9007199254740993", ""], "int64", [9007199254740993, None]),
    (["9007199254740993", "0.5"], "string", ["9007199254740993", "0.5"]),
    (["12345678901234567890", "1"], "string", ["12345678901234567890", "1"]),
    (["007", "10"], "string", ["007", "10"]),
    (["", ""], "string", ["", ""]),
    (["u", "1"], "string", ["u", "1"]),
]


@pytest.mark.parametrize("cells, kind, found", TEXT, ids=[" ".join(c) for c, _, _ in TEXT])
@pytest.mark.parametrize("form", ["parquet", "feather"])
def test_text_becomes_numbers_where_that_loses_nothing(cells, kind, found, form, folder):
    pytest.importorskip("pyarrow")
    import pyarrow.feather as feather
    import pyarrow.parquet as parquet

    (folder / "t.csv").write_text("c,x\n" + "".join(f"{cell},1\n" for cell in cells))
    assert run("map", "x", "t.csv", "-o", f"o.{form}") == (0, "", "")
    column = (parquet if form == "parquet" else feather).read_table(f"o.{form}").column("c")
    assert (str(column.type), column.to_pylist()) == (kind, found)


@pytest.mark.long
def test_a_file_that_is_given_up_is_not_heard_of_again(folder):
    import gc

    pytest.importorskip("pyarrow")
    many = "1,1\n" * 3000
    (folder / "t.csv").write_text(f"c,x\n9007199254740993,1\n{many}0.5,1\n")
    heard: list[object] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.unraisablehook", heard.append)
        code, _, err = run("map", "x", "t.csv", "-o", "o.parquet")
        gc.collect()
    assert code and "line 3003, column c: `0.5` is not one" in err
    assert not heard and not (folder / "o.parquet").exists()


LATER = [  # cells of the first file, of the second, and what is said
    ("1", "007", "b.csv, line 2, column c: `007` begins with 0, and the rows before have numbers"),
    (
        "1",
        "9007199254740993",
        "this integer is too large for a float, and the rows before have numbers",
    ),
    ("9007199254740993", "0.5", "`0.5` is not one, and the rows before have integers"),
    ("1", "u", "b.csv, line 2, column c: `u` is not a number"),
]


@pytest.mark.parametrize("first, second, words", LATER)
def test_what_later_rows_have_is_not_bent(first, second, words, folder):
    pytest.importorskip("pyarrow")
    (folder / "a.csv").write_text(f"c,x\n{first},1\n")
    (folder / "b.csv").write_text(f"x,c\n1,{second}\n")
    code, _, err = run("map", "x", "[ab].csv", "-o", "o.parquet")
    assert code and words in err and not (folder / "o.parquet").exists()
    assert run("map", "x", "[ab].csv", "-o", "o.csv")[0] == 0


TABLES = [  # what is written into a file, its name, how it is named, the value for x
    ("x,y\r1,2\r3,4\r", "t.csv", "t.csv"),
    ("x,y\n1,2\n3,4\n", "t.csv", "@t.csv"),
    ('{"x": [1, 3], "y": [2, 4]}', "t.json", "t.json"),
    ("x,2y,a b\n1,2,u v\n3,4,w\n", "t.csv", "t.csv"),
    ("x;c\n1;2,5\n3;4,5\n", "t.csv", "t.csv"),
]


@pytest.mark.parametrize("content, name, table", TABLES)
def test_tables_as_others_write_them(content, name, table, folder):
    (folder / name).write_bytes(content.encode())
    code, out, err = run("map", "x", table, "--keep-columns", "none", "--no-grad", "all")
    assert (code, out) == (0, "value\n1\n3\n")
    assert err == ("gradcli: note: t.csv: decimal commas\n" if "2,5" in content else "")


def test_several_files_with_columns_in_another_order(folder):
    (folder / "a1.csv").write_text("x,y\n1,2\n")
    (folder / "a2.csv").write_text("y,x\n4,3\n")
    assert (
        run("map", "x - y", "a*.csv", "--no-grad", "all", "--keep-columns", "x")[1]
        == "x,value\n1,-1\n3,-1\n"
    )
    (folder / "a3.csv").write_text("y\n4\n")
    assert "other columns" in run("map", "x - y", "a*.csv")[2]


def test_an_empty_table_has_a_header(folder):
    (folder / "t.csv").write_text("x,y\n")
    assert run("map", "x*y", "t.csv") == (0, "x,y,value,x.grad,y.grad\n", "")


def test_a_missing_cell_of_a_column_that_is_not_used_does_not_matter(folder):
    (folder / "t.csv").write_text("x,y\n1,\n2,NA\n")
    assert run("map", "x*2", "t.csv") == (0, "x,y,value,x.grad\n1,,2,2\n2,NA,4,2\n", "")


# -- bad rows ------------------------------------------------------------------------------------------
BAD_ROWS = [
    ([], 1, [], "bad.csv, line 4, column L: `x` is not a number\n    d,x,2,1\n      ^\n"),
    (["--bad-rows", "skip"], 0, ["0.994,9.781", "1,9.87", "4,39.48"],
     "note: 3 bad rows left out; the first: bad.csv, line 4, column L: `x` is not a number\n"),
    (["--bad-rows", "nan"], 0, ["0.994,9.781", "1,9.87", "x,nan", "1,nan", "3,nan", "4,39.48"],
     "note: 3 bad rows nan; the first: bad.csv, line 4"),
    (["--bad-rows", "skip", "--missing", "skip"], 0, ["0.994,9.781", "1,9.87", "4,39.48"],
     "note: 1 row left out for a number that is missing\n"),
    (["--bad-rows", "skip", "--missing", "nan"], 0, ["0.994,9.781", "1,9.87", "1,nan", "4,39.48"],
     "note: 2 bad rows left out"),
]  # fmt: skip


@pytest.mark.parametrize("options, code, rows, words", BAD_ROWS)
def test_bad_rows(options, code, rows, words):
    argv = [
        "map",
        G,
        "bad.csv",
        "--keep-columns",
        "L",
        "--no-grad",
        "all",
        "--precision",
        "4",
        *options,
    ]
    found = run(*argv)
    assert found[0] == code
    assert found[1].splitlines() == (["L,value", *rows] if rows else [])
    assert words in found[2]


@pytest.mark.parametrize(
    "column, words",
    [("-1", "an uncertainty is not negative"), ("inf", "an uncertainty is a finite real number")],
)
def test_a_row_without_an_uncertainty_that_can_be_is_bad(column, words, folder):
    (folder / "t.csv").write_text(f"x,s\n1,1\n2,{column}\n")
    argv = ["map", "x*2", "t.csv", "--uncertainty", "x=s", "--no-grad", "all"]
    code, out, err = run(*argv)
    assert (code, out) == (1, "") and f"t.csv, line 3, column s: {words}" in err
    assert run(*argv, "--bad-rows", "skip")[1] == "x,s,value,value.uncertainty\n1,1,2,2\n"


def test_covariances_that_cannot_be_are_bad_rows(folder):
    (folder / "t.csv").write_text("x,y,c\n1,1,0.5\n2,2,-3\n")
    argv = [
        "map",
        "x*y",
        "t.csv",
        "--uncertainty",
        "x=1",
        "--uncertainty",
        "y=1",
        "--covariance",
        "x,y=c",
    ]
    code, out, err = run(*argv, "--keep-columns", "c", "--no-grad", "all", "--bad-rows", "nan")
    assert (code, out) == (0, "c,value,value.uncertainty\n0.5,1,1.7320508075688772\n-3,nan,nan\n")
    assert "1 bad row nan; the first: t.csv, line 3: --covariance: a covariance is" in err


def test_a_row_that_is_refused_says_pytorchs_words_and_where(folder):
    (folder / "t.csv").write_text("a,b\n1,1\n0,0\n2,1\n")
    argv = ["map", "linalg.inv(diag(x)).sum()", "t.csv", "--columns", "x=a,b"]
    code, out, err = run(*argv)
    assert (code, out) == (1, "")
    assert "linalg.inv: The diagonal element 1 is zero" in err
    assert "t.csv, line 3" in err and "--bad-rows" in err
    code, out, err = run(*argv, "--bad-rows", "skip", "--keep-columns", "none", "--no-grad", "all")
    assert (code, out) == (0, "value\n2\n1.5\n")
    assert "1 bad row left out; the first: t.csv, line 3: linalg.inv" in err
    out = run(*argv, "--bad-rows", "nan", "--keep-columns", "a")[1]
    assert out.splitlines()[2] == "0,nan,nan,nan"


@pytest.mark.parametrize(
    ("source", "words"),
    [("print(x) or x[x > 1]", "are not alike: they have shapes (0,) and (1,)"),
     ("print(x) or sum(unique(x))", "the derivative for '_unique2' is not implemented")],
)  # fmt: skip
def test_rows_behind_one_that_stops_are_not_computed(source, words, folder):
    (folder / "long.csv").write_text("x\n" + "\n".join(map(str, range(1000))))
    code, out, err = run(
        "map", source, "long.csv", *["--no-grad", "all"] * ("unique" not in source)
    )
    assert (code, out) == (1, "") and words in err
    assert len(err.splitlines()) < 20  # what the rows print goes there


def test_anomalies_are_bad_rows(folder):
    (folder / "t.csv").write_text("x\n1\n0\n")
    assert run("map", "log(x)", "t.csv")[1] == "x,value,x.grad\n1,0,1\n0,-inf,inf\n"
    code, _, err = run("map", "log(x)", "t.csv", "--detect-anomaly")
    assert code == 1 and "value is -inf" in err and "t.csv, line 3" in err
    out = run("map", "log(x)", "t.csv", "--detect-anomaly", "--bad-rows", "skip")[1]
    assert out == "x,value,x.grad\n1,0,1\n"


@pytest.mark.parametrize("path", ["o.csv", "o.npy"])
def test_nothing_half_written(path, folder):
    before = sorted(os.listdir(folder))
    assert run("map", G, "bad.csv", "-o", path)[0] == 1
    assert sorted(os.listdir(folder)) == before


@pytest.mark.parametrize(
    "form",
    [
        "npz",
        "csv",
        *(
            pytest.param(f, marks=pytest.mark.long)
            for f in ("npy", "csv.gz", "parquet", "feather", "jsonl")
        ),
    ],
)
def test_a_full_disk_is_said_with_the_file(form, folder):
    np.save("x.npy", np.array(list(zip(np.random.default_rng(0).random(1 << 16))), [("x", "f8")]))
    before, limits = sorted(os.listdir(folder)), resource.getrlimit(resource.RLIMIT_FSIZE)
    lines = [["map", "x*2", "x.npy"], ["eval", "x*2", "--x", "@x.npy:x"]]
    lines = lines[form == "npz" :] if form in ("npy", "npz", "csv") else lines[:1]
    for line in lines:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 17, limits[1]))
        try:
            code, _, err = run(*line, "-o", f"o.{form}")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert (code, err) == (1, f"gradcli: error: cannot write o.{form}: File too large\n")
        assert sorted(os.listdir(folder)) == before


READINGS = [
    (["L*T", "--L", "3"], "L is the value that is given, and not the column of that name"),
    (["pi*L"], "pi is the constant, and not the column of that name"),
    (
        ["L*T", "--uncertainty", "L=pi"],
        "pi of --uncertainty L is read as the column of that name, not as the value",
    ),
    (["L*T", "--uncertainty", "L=T"], ""),
    (
        ["L*T", "--jvp", "L=ones"],
        "ones of --jvp L is read as the column of that name, not as the value",
    ),
    (["L*T", "--keep-columns", "all"], "all is every column, and not the column of that name"),
    (["norm*L"], ""),
    (["w*L"], "w is the column 'w [kg]' of t.csv"),
    (["L*T", "--columns", "L=w"], "w is the column 'w [kg]' of t.csv"),
    (["L*T", "--uncertainty", "L=w"], "w is the column 'w [kg]' of t.csv"),
]


@pytest.mark.parametrize("line, words", READINGS)
def test_a_name_of_two_readings_is_said(line, words, folder):
    (folder / "t.csv").write_text("L,T,pi,ones,all,norm,w [kg]\n1,2,3,4,5,6,7\n")
    (source, *more) = line
    code, _, err = run("map", source, "t.csv", *more)
    assert (code, err) == (0, f"gradcli: note: {words}\n" if words else "")


TWO = ["L+T", "p.csv", "--uncertainty", "L=0.01", "--uncertainty", "T=0.02", "--covariance"]
REFUSED = [
    ([G], "no table"),
    ([G, "nowhere.csv"], "cannot read nowhere.csv: No such file"),
    (["Q*L", "p.csv"], "Q is not a column of p.csv, and has no value"),
    (["t*L", "p.csv"], "did you mean `T`"),
    (["L*T", "p.csv", "--columns", "L"], "--columns wants NAME=COLUMNS"),
    (["L*T", "p.csv", "--columns", "x=Q"], "there is no column 'Q'"),
    (["L*T", "p.csv", "--columns", "x=L"], "'x' is not an open variable"),
    (["x*2", "p.csv", "--columns", "x=L,T"], "grad can be implicitly created only for scalar outputs"),
    (["(L, T*ones(2))", "p.csv"], "only for scalar outputs"),
    (["L > 1", "p.csv"], "does not require grad"),
    (["L*T", "p.csv", "--uncertainty", "L=Q"], "name 'Q' is not defined"),
    (["L*T", "p.csv", "--uncertainty", "L=-1"], "--uncertainty L: an uncertainty is not negative"),
    (["L*T", "p.csv", "--uncertainty", "L=inf"], "--uncertainty L: an uncertainty is a finite real number"),
    (["n*L", "p.csv", "--n", "True", "--uncertainty", "n=1"], "n has dtype bool"),
    (["L*T", "p.csv", "--uncertainty", "L=1,2"], "it has shape (2,), and its variable ()"),
    ([*TWO, "L,T=5"], "a covariance is larger than these uncertainties allow"),
    ([*TWO, "L,T=-5"], "a covariance is larger than these uncertainties allow"),
    ([*TWO, "L,T=sT"], "a covariance is larger than these uncertainties allow"),
    ([*TWO, "L,T=nan"], "--covariance L,T: a covariance is a finite real number"),
    ([*TWO, "L,T=1j"], "--covariance L,T: a covariance is a finite real number"),
    (["sum(x)*L", "p.csv", "--columns", "x=L,T", "--uncertainty", "L=1", "--uncertainty", "x=1",
      "--covariance", "L,x=0"], "--covariance L,x: L and x have shapes () and (2,)"),
    (["L*T", "p.csv", "--covariance", "L,T=1"], "L has no uncertainty"),
    (["L*T", "p.csv", "--budget"], "--budget: no variable has an uncertainty"),
    (["L*T", "p.csv", "--order", "0"], "0 is not in the range"),
    (["L*T", "p.csv", "--order", "2", "--no-grad", "all"], "--order: no variable requires grad"),
    (["L*sum(x)", "p.csv", "--columns", "x=L,T", "--order", "2"], "--order: x is not a number but has shape (2,)"),
    (["L*w", "p.csv", "--w", "1,2", "--order", "2"], "grad can be implicitly created only for scalar outputs"),
    (["L*T", "p.csv", "--jvp", "L"], "--jvp wants L=VALUE, not 'L'"),
    (["L*T", "p.csv", "--jvp", "Q=1"], "--jvp: 'Q' is not a variable (there are: L, T)"),
    (["L*T", "p.csv", "--jvp", "L=s"], "a value, or one of the columns: name, L, T, sT"),
    (["L*T", "p.csv", "--jvp", "L=1", "--jvp", "L=2"], "--jvp: L is given twice"),
    (["L*T", "p.csv", "--jvp", "L=1,2"], "--jvp L: L has shape (), and its direction (2,)"),
    (["L*T", "p.csv", "--jvp", "L=L,T"], "--jvp L: L has shape (), and its direction 2 columns"),
    (["L*T", "p.csv", "--jvp", "L=1j"], "--jvp L: L is real, and its direction complex"),
    (["n*L", "p.csv", "--n", "True", "--jvp", "n=1"], "n has dtype bool"),
    (["L*T", "p.csv", "--jvp", "L=name"], "`a, b` is not a number"),
    (["L*T", "p.csv", "-o", "o.xyz"], "the ending of o.xyz names no format"),
    (["L*T", "p.csv", "more"], "unexpected argument 'more'"),
    (["L*T", "p.csv", "bad.csv"], "several files are one table by a pattern in quotes"),
    (["if L > 0:\n  y = L*2", "p.csv"], "the program has no value\n  p.csv, line 2\nhint: end it with an expression"),
    (["x*L", "-", "--x", "-"], "only one of"),
    (["name*2", "p.csv"], "`a, b` is not a number"),
]  # fmt: skip


@pytest.mark.parametrize("argv, words", REFUSED, ids=[words for _, words in REFUSED])
def test_refused(argv, words):
    code, out, err = run("map", *argv)
    assert code in (1, 2) and out == ""
    assert words in err


def test_the_names_of_a_wide_table_are_not_all_listed(folder):
    (folder / "w.csv").write_text(
        ",".join(f"x{k}" for k in range(1000)) + "\n" + "1," * 999 + "1\n"
    )
    for argv in (
        ["zz", "w.csv"],
        ["x1", "w.csv", "--keep-columns", "zz"],
        ["x1", "w.csv", "--jvp", "x1=zz"],
    ):
        assert run("map", *argv)[2].rstrip(")\n").endswith("x28, x29, …")


def test_an_expression_from_a_file(folder):
    (folder / "e.txt").write_text("L*2")
    assert (
        run("map", "-f", "e.txt", "p.csv", "--keep-columns", "none")[1]
        == "value,L.grad\n1.988,2\n2,2\n"
    )


def test_further_derivatives_draw_the_same_numbers_and_print_nothing():
    argv = ["map", "print(L.item()); rand(1)[0]*L*T", "p.csv", "--manual-seed", "1"]
    code, out, err = run(*argv, "--jvp", "L=L", "--keep-columns", "none", "--no-grad", "all")
    assert code == 0 and err.count("0.994") == 1
    for line in out.splitlines()[1:]:
        value, jvp = map(float, line.split(","))
        assert value == pytest.approx(jvp)


def test_further_derivatives_of_bad_rows_are_nan(folder):
    (folder / "t.csv").write_text("x\nq\n")
    argv = ["map", "x**2", "t.csv", "--order", "2", "--jvp", "x=3", "--bad-rows", "nan"]
    assert run(*argv)[1] == "x,value,value.jvp,x.grad,x.grad2\nq,nan,nan,nan,nan\n"


def test_what_a_program_prints_goes_elsewhere():
    code, out, err = run(
        "map", "print(L.item()); L", "p.csv", "--keep-columns", "none", "--no-grad", "all"
    )
    assert (code, out) == (0, "value\n0.994\n1\n")
    assert "0.994\n" in err and "the rows ran one by one" in err


# -- streams -------------------------------------------------------------------------------------------
def test_the_first_lines_are_out_before_the_last_are_read():
    process = subprocess.Popen(
        [*GRADCLI, "map", "x*x", "-", "--no-grad", "all"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(), text=True, bufsize=0,
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("x\n1\n")
    process.stdin.flush()
    assert [process.stdout.readline() for _ in range(2)] == ["x,value\n", "1,1\n"]
    process.stdin.write("2\n3\n")
    process.stdin.flush()
    assert process.stdout.readline() == "2,4\n"
    process.stdin.close()
    assert process.stdout.read() == "3,9\n"
    assert process.wait(timeout=30) == 0


@pytest.mark.long
def test_many_batches_are_as_one(folder, monkeypatch):
    lines = "".join(f'{k},"a{k}\nb",{k % 7}\n' for k in range(600))
    (folder / "t.csv").write_text("x,n,y\n" + lines)
    whole = run("map", "x*y", "t.csv")[1]
    monkeypatch.setattr("gradcli.tables.record_batches.BLOCK", 97)
    assert run("map", "x*y", "t.csv")[1] == whole
    assert whole.count("\n") == 1201


ODD = "x,n,y\n" + "".join(
    f"{x},{n},{k}\n"
    for k, (x, n) in enumerate(
        [
            ("1", "a"),
            ("1e-5", "ü"),
            ("1e300", ""),
            (" 2 ", " b "),
            ("-0.0", "\x1b[31m"),
            ("123456789012", "1"),
            ("5e-324", "\u202e"),
        ]
        * 12
    )
)
WHAT_ARROW_LEAVES = [
    ODD,
    ODD + "3,c\n" + ODD[6:],  # a line that is too short
    ODD + "NA,c,1\nnan,d,2\n" + ODD[6:],
    ODD + "\n  \n4,e,1\n",
    ODD + '5,"q, r",1\n' + ODD[6:],
    ODD + "6,f,1 # remark\n" + ODD[6:],
    ODD.replace(",", ";"),
    ODD.replace("\n", "\r\n"),
    "".join(",".join(f'"{c}"' for c in line.split(",")) + "\n" for line in ODD.splitlines()),
    ODD + '7,"a ""b"" c",1\n8,"two\nlines",2\n9,"",3\n' * 9 + ODD[6:],
    ODD + '7, "blank",1\n' * 9 + ODD[6:],
    ODD + '7,a"b,1\n' * 9 + ODD[6:],
]


@pytest.mark.long
@pytest.mark.parametrize("content", WHAT_ARROW_LEAVES, ids=range(len(WHAT_ARROW_LEAVES)))
@pytest.mark.parametrize(
    "options", [[], ["--format", "tsv"], ["--format", "jsonl"], ["--precision", "3"]], ids=str
)
def test_arrow_only_makes_it_faster(content, options, folder, monkeypatch):
    """The same bytes with pyarrow and without, whatever is in the cells."""
    import sys

    pytest.importorskip("pyarrow")
    monkeypatch.setattr("gradcli.tables.record_batches.BLOCK", 200)
    (folder / "t.csv").write_bytes(content.encode())
    argv = ["map", "x*y", "t.csv", "--bad-rows", "nan", *options]
    found = run(*argv)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert run(*argv) == found
    assert found[0] == 0 and "\x1b" not in found[1] and "\u202e" not in found[1]


def test_a_closed_pipe_ends_it_quietly(folder):
    (folder / "t.csv").write_text("x\n" + "1\n" * 100_000)
    command = f"{' '.join(GRADCLI)} map 'x*x' t.csv | head -1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "x,value,x.grad\n", "")


@sweep("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], name=str, parts=3, often=1)
def test_a_signal_leaves_no_file(number, folder):
    process = subprocess.Popen(
        [*GRADCLI, "map", "x*x", "-", "-o", "o.csv"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(),
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # as outside of `nohup`
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write(b"x\n" + b"1\n" * 1000)
    process.stdin.flush()
    deadline = time.monotonic() + 20
    while (
        not any(n.startswith(".gradcli-") for n in os.listdir(folder))
        and time.monotonic() < deadline
    ):
        time.sleep(0.02)
    time.sleep(0.1)
    process.send_signal(number)
    assert process.wait(timeout=20) == 128 + number
    assert sorted(os.listdir(folder)) == ["bad.csv", "p.csv"]
    process.stdin.close()


def test_a_table_on_a_terminal(folder):
    code, screen = in_terminal(
        "map", "L*T", str(folder / "p.csv"), "--no-grad", "all", NO_COLOR="1"
    )
    assert code == 0
    assert screen.splitlines() == [
        "name        L        T       sT    value",
        "text  float64  float64  float64  float64",
        "a, b    0.994    2.003    0.005  1.99098",
        "c       1        2        0.01   2",
    ]
    (folder / "long.csv").write_text("x\n" + "".join(f"{k}\n" for k in range(1000)))
    screen = in_terminal("map", "x*x", str(folder / "long.csv"), "--no-grad", "all", NO_COLOR="1")[
        1
    ]
    lines = screen.splitlines()
    assert len(lines) == 44 and lines[22] == "… 960 rows …"
    assert lines[-1] == "1,000 rows (40 shown)"
    assert lines[-2].split() == ["999", "998001"]


def test_a_table_on_a_narrow_terminal(folder):
    """What is left out is said: columns that are the table's first, then the last that are computed."""
    argv = ("map", "4*pi**2*L/T**2", str(folder / "p.csv"))
    shown = [in_terminal(*argv, columns=n, NO_COLOR="1")[1].splitlines() for n in (80, 60, 40)]
    assert [lines[0] for lines in shown] == [
        "name        L        T       sT    value   L.grad    T.grad",
        "name        L        T       sT    value   L.grad    T.grad",
        "name  …    value   L.grad    T.grad",
    ]
    assert shown[2][1:] == [
        "text  …  float64  float64   float64",
        "a, b  …  9.78102  9.84006  -9.76637",
        "c     …  9.8696   9.8696   -9.8696",
        "7 columns (4 shown)",
    ]
    assert "9.78102170228" in in_terminal(*argv, "--precision", "12", columns=80)[1]


@pytest.mark.long
def test_memory_does_not_grow_with_the_table(folder):
    """The peak for ten times the rows is no more than a few batches above."""
    peaks = []
    for rows in (100_000, 500_000):
        code = (
            "import resource, sys; from gradcli.cli import main; sys.stdout = open('/dev/null', 'w')\n"
            "try: main(['map', 'x*x', '-'])\n"
            "except SystemExit: pass\n"
            "sys.stderr.write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))"
        )
        done = subprocess.run(
            [GRADCLI[0], "-c", code], input="x\n" + "1.5000000000\n" * rows, env=environment(), capture_output=True, text=True,
            check=True,
        )  # fmt: skip
        peaks.append(int(done.stderr))
    assert peaks[1] < peaks[0] * 1.5
    assert math.isfinite(peaks[0])


@pytest.mark.parametrize(
    ("total", "unit", "shown"), [(3, "points", "2 points"), (None, "", "0:00:0")]
)
def test_a_bar_says_what_is_counted(monkeypatch, total, unit, shown):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(Bar, "AFTER", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    with Bar(total, unit) as bar:
        time.sleep(0.1)
        bar.advance(2)
    assert shown in sys.stderr.getvalue()
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with Bar(total, unit) as bar:
        bar.advance(2)
    assert sys.stderr.getvalue() == ""


@pytest.mark.long
def test_a_bar_appears_on_a_terminal(folder):
    """After two seconds, here sooner. And Ctrl-C gives the cursor back."""
    import pty

    assert Bar.AFTER == 2
    soon = (
        "from gradcli.engine.system import interrupts; interrupts.at_once()\n"
        "from gradcli.commands.progress import Bar; Bar.AFTER = 0.1\n"
        "from gradcli.cli import main; main(['map', 'x*x', '-', '-o', 'o.csv'])"
    )
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [GRADCLI[0], "-c", soon], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=theirs,
        env=environment(),
    )  # fmt: skip
    os.close(theirs)
    assert process.stdin is not None
    process.stdin.write(b"x\n1\n2\n")
    process.stdin.flush()
    screen = b""
    deadline = time.monotonic() + 20
    while b"rows" not in screen and time.monotonic() < deadline:
        process.stdin.write(b"3\n")
        process.stdin.flush()
        time.sleep(0.1)
        if select.select([ours], [], [], 0)[0]:
            screen += os.read(ours, 65536)
    assert b"rows" in screen and b"/s" in screen
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 130
    while select.select([ours], [], [], 0.2)[0]:
        try:
            screen += os.read(ours, 65536)
        except OSError:  # the other side is closed
            break
    assert screen.rfind(b"\x1b[?25h") > screen.rfind(b"\x1b[?25l")
    process.stdin.close()
    os.close(ours)


def test_a_column_that_is_called_like_a_constant_is_not_read_in_silence(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("pi,x\n1,2\n")
    assert "pi is the constant, and not the column" in run("map", "pi*x", str(table))[2]
    assert run("map", "pi = 3*x; pi", str(table))[2] == ""
    assert "pi is the value that is given" in run("map", "pi*x", str(table), "--pi", "3")[2]


def test_a_column_may_be_an_index(tmp_path):
    path = tmp_path / "k.csv"
    path.write_text("k,x\n0,2\n2,3\n")
    found = run("map", "b[k]*x", str(path), "--b", "5,6,7", "--wrt", "b", "--keep-columns", "none")
    rows = "value,b.grad[0],b.grad[1],b.grad[2]\n10,2,0,0\n21,0,0,3\n"
    assert found[1] == rows, found[2]
    assert run("map", "b[k]*x", str(path), "--b", "5,6,7")[1].startswith("k,x,value,x.grad\n")


@pytest.mark.parametrize(
    "expression, options, note",
    [
        ("log(S/K)", [], "1 row with NaN or infinity; the first: s.csv, line 3: value is nan (S = -1, K = 2)"),
        ("sqrt(S - 1)", [], "2 rows with NaN or infinity; the first: s.csv, line 2: S.grad is inf (S = 1)"),
        ("log(S/K)", ["--detect-anomaly", "--bad-rows", "nan"], "1 bad row nan; the first: s.csv, line 3"),
        ("log(S/K)", ["--where", "S > 0"], None),
        ("K/(S + 2)", [], None),
    ],
)  # fmt: skip
def test_rows_that_are_not_finite_are_said(tmp_path, monkeypatch, expression, options, note):
    monkeypatch.chdir(tmp_path)
    Path("s.csv").write_text("S,K\n1,2\n-1,2\n3,1\n", encoding="utf-8")
    code, _, said = run("map", expression, "s.csv", *options)
    assert code == 0
    assert (note in said) if note else said == ""


def test_a_number_that_is_missing_is_no_anomaly(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("s.csv").write_text("x,y\n1,2\n,2\n3,1\n", encoding="utf-8")
    assert run("map", "1/x", "s.csv", "--missing", "nan")[2] == ""
