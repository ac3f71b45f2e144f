"""What enters: files of every format, columns by name, cells that are empty, and what is refused in words."""

from __future__ import annotations

import gzip
import io
import json
import os
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.commands.running import outcome as run


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


# -- text: separators, headers, quotes (content, what follows the file's name, what is read) --------
PENDULUM = "L,T\n0.994,2.003\n1,2\n"
READ = [
    ("1\n2\n3\n", "", "[1, 2, 3]"),
    ("x\n1\n2\n", "", "[1, 2]"),
    ("x,y\n1,2\n3,4\n", "", "[[1, 2], [3, 4]]"),
    ('"1","2"\n"3","4"\n', "", "[[1, 2], [3, 4]]"),
    ("1;2\n3;4\n", "", "[[1, 2], [3, 4]]"),
    ("1\t2\n3\t4\n", "", "[[1, 2], [3, 4]]"),
    ("1 2\n3   4\n", "", "[[1, 2], [3, 4]]"),
    ("1, 2\n3, 4\n", "", "[[1, 2], [3, 4]]"),
    ("1,2,\n3,4,\n", "", "[[1, 2], [3, 4]]"),
    ("\ufeffx,y\r\n1,2\r\n3,4\r\n", ":y", "[2, 4]"),
    ("1\r2\r3\r", "", "[1, 2, 3]"),
    ("# note\n1,2 # here\n\n3,4\n", "", "[[1, 2], [3, 4]]"),
    ("x|y\n1|2\n3|4\n", ":y", "[2, 4]"),
    ('"x" "y"\n"1" 1 2\n"2" 3 4\n', ":y", "[2, 4]"),  # of R: no heading above the rows' names
    ("1,inf\n-inf,1e400\n", "", "[[1, inf], [-inf, inf]]"),
    ("1+2j,1j\n", "", "[1+2j, 0+1j]"),
    (PENDULUM, "", "[[0.994, 2.003], [1, 2]]"),
    (PENDULUM, ":L", "[0.994, 1]"),
    (PENDULUM, ":T,L", "[[2.003, 0.994], [2, 1]]"),
    (PENDULUM, ":*", "[[0.994, 2.003], [1, 2]]"),
    ('L (m),"T, s"\n1,2\n', ":L (m)", "[1]"),
    ('L (m),"T, s"\n1,2\n', ':"T, s"', "[2]"),
    ("name,x1,x2\nu,1,2\nv,3,4\n", ":x*", "[[1, 2], [3, 4]]"),
    ('name,x1,x2\n"u, v",1,2\n"a\nb",3,4\n', ":x2", "[2, 4]"),
    ("x,n,y\n" + '0,"a\nb",2\n' * 30, ":y", "[" + ", ".join(["2"] * 30) + "]"),
    (",x1,x2\n0,1,2\n1,3,4\n", ":x1", "[1, 3]"),  # as pandas writes an index
    ("2019,2020\n1,2\n", ":2020", "[2]"),  # named, so it is a name
    ("2x,x-1\n1,2\n", ":2x", "[1]"),  # names, if of no variable
    ("L T\n1 2\n3 4\n", ":T", "[2, 4]"),
    ("L;T\n1;2\n3;4\n", ":T", "[2, 4]"),
    ("I1,O2,l\n1,2,3\n", ":O2", "[2]"),  # names that look like digits
    ('{"x": 1, "y": 2}\n{"x": 3, "y": "4"}\n', ":y", "[2, 4]"),
    ('[{"x": 1, "y": 2}, {"y": 5, "x": 3}]', ":y", "[2, 5]"),
    ('{"x": [1, 2], "y": [3, 4]}', ":x", "[1, 2]"),
    ('{"x": [1, 2], "y": [3, 4]}', ":x,y", "[[1, 3], [2, 4]]"),
    ('{"grads": {"x": {"grad": [1, 2]}}}', ":grads.x.grad", "[1, 2]"),
    ("[1,\n2]", "", "[1, 2]"),
    ("[1, 2]\n[3, 4]\n", "", None),
]


# A heading comes before what its text may mean besides; what is read into a name is said.
HEADINGS = 'L [m],T (s),"w, kg",v/c,x1,x*,"a,b",a,b,w.grad[0],w.grad[1],w.grad[2]\n'
NAMED = [
    ("L [m]", "1", ""),
    ("w, kg", "3", ""),
    ('"w, kg"', "3", ""),
    ('"w, kg",x1', "[3, 5]", ""),
    ("x*", "6", ""),
    ("x?", "[5, 6]", ""),
    ("w.grad[0]", "10", ""),
    ("w.grad[1],w.grad[2]", "[11, 12]", ""),
    ("w.grad[[]?]", "[10, 11, 12]", ""),
    ("L", "1", "note: L is the column 'L [m]' of f.csv"),
    ("T", "2", "note: T is the column 'T (s)' of f.csv"),
    ("w", "3", "note: w is the column 'w, kg' of f.csv"),
    ("v,L", "[4, 1]", "note: v is the column 'v/c' of f.csv"),
    ("w.grad", "", "there is no column 'w.grad'"),
    ('"x?"', "", "there is no column 'x?'"),
    ('"L"', "", "there is no column 'L'"),
    ("a,b", "", '"a,b" or "a","b"'),
    ('"a,b"', "7", ""),
    ('"a","b"', "[8, 9]", ""),
]


@pytest.mark.parametrize("columns, expected, words", NAMED)
def test_a_column_is_what_its_heading_says(columns, expected, words, folder):
    (folder / "f.csv").write_text(HEADINGS + "1,2,3,4,5,6,7,8,9,10,11,12\n" * 2)
    for more in ([], ["--by-rows"]):
        code, out, err = run("eval", "mean(x, 0)", "--x", f"@f.csv:{columns}", *more)
        assert (code, out.strip()) == (0 if expected else 2, expected)
        assert words in err and bool(words) == bool(err)


def test_columns_that_nobody_can_tell_apart(folder):
    for name, content, columns, words in [
        ("f.csv", "x,x,y\n1,2,3\n", "x", "2 columns are called 'x'"),
        ("f.csv", "x,x,y\n1,2,3\n", "x*", "2 columns are called 'x'"),
        ("f.csv", "L [m],L [mm]\n1,2\n", "L", "L may be any of the columns L [m], L [mm]"),
        ("f.csv", "L/m,m\n1,2\n", "L", "there is no column 'L'"),  # perhaps what it is by m
        ("f.jsonl", '{"x": 1, "x": 2}\n{"x": 3}\n', "x", "an object has the key 'x' twice"),
    ]:
        (folder / name).write_text(content)
        code, _, err = run("eval", "x", "--x", f"@{name}:{columns}")
        assert code == 2 and words in err, (columns, err)


def test_files_of_one_pattern_have_the_same_columns(folder):
    for first, second in [("x1,x2", "x1,x3"), ("L [m],T", "L [mm],T")]:
        (folder / "a.csv").write_text(f"{first}\n1,2\n")
        (folder / "b.csv").write_text(f"{second}\n1,2\n")
        code, _, err = run("eval", "x", "--x", f"@?.csv:{first[0]}*")
        assert code == 2 and "b.csv has other columns than the files before it" in err


CELLS = [
    ("12_34", "12_34", "`12_34` is not a number"),
    ("１２", "１２", "`１２` is not a number"),
    ("0.994±0.002", "0.994", "0.002"),
    ("0.994 +/- 0.1", "0.994", "0.1"),
    ("0.994+-0.1", "0.994", "0.1"),
    ("-2±5%", "-2", "0.1"),
    ("0.994(2)", "0.994", "0.002"),
    ("(1±0.5)e3", "1000", "500"),
    ("1±-1", "1±-1", "`1±-1` is not a number"),
    ("1±", "1±", "`1±` is not a number"),
]


@pytest.mark.parametrize("cell, value, uncertainty", CELLS)
def test_cells_are_numbers_and_carry_their_uncertainty(cell, value, uncertainty, folder):
    (folder / "f.csv").write_text(f"x,n\n{cell},1\n")
    (folder / "one.csv").write_text(f"x\n{cell}\n")
    (folder / "f.jsonl").write_text(json.dumps({"x": cell, "n": 1}))
    for name in ("f.csv", "one.csv", "f.jsonl"):
        code, out, err = run("map", "1*x", name, "--keep-columns", "none")
        if "not a number" in uncertainty:
            assert code == 1 and uncertainty in err
            continue
        assert (code, out) == (0, f"value,value.uncertainty,x.grad\n{value},{uncertainty},1\n"), err
        code, out, _ = run("grad", "sum(x)", "--x", f"@{name}:x", "--json")
        found = json.loads(out)
        assert (found["value"], found["uncertainty"]) == (float(value), float(uncertainty))
        found = json.loads(run("eval", "sum(x)", "--x", f"@{name}:x", "--json")[1])
        assert (found["value"], found["uncertainty"]) == (float(value), float(uncertainty))
        code, _, err = run("jvp", "x", "--x", f"@{name}:x", "--vector", "ones")
        assert code == 2 and "its numbers have uncertainties" in err


def test_uncertainties_are_of_a_whole_column(folder, monkeypatch):
    monkeypatch.setattr("gradcli.tables.record_batches.BLOCK", 64)  # bytes of a batch
    for content, words in [
        ("x\n1±0.1\n2\n", "f.csv, line 3, column x: `2` has no uncertainty, and others"),
        ("x\n1±0.1\n" * 3, "f.csv, line 3, column x: `x` is not a number"),
        ("x,s\n1,0.1±0.1\n", "this number has an uncertainty, and its column has none"),
    ]:
        (folder / "f.csv").write_text(content)
        more = ["--uncertainty", "x=s"] if ",s" in content else []
        code, _, err = run("map", "1*x", "f.csv", *more)
        assert code == 1 and words in err
    for last, words in [("1", "has no uncertainty, and others of its column have"), ("1±0.25", "")]:
        (folder / "f.csv").write_text("x,n\n" + "1.00±0.25,1\n" * 30 + f"{last},1\n" * 9)
        code, _, err = run("map", "4*x", "f.csv", "-o", "o.npy", "--keep-columns", "none")
        assert code == int(bool(words)) and words in err
    assert set(np.load("o.npy")["value.uncertainty"].tolist()) == {1.0}
    (folder / "a.csv").write_text("x\n1±0.1\n")
    (folder / "b.csv").write_text("x\n1\n")
    code, _, err = run("grad", "sum(x)", "--x", "@[ab].csv:x", "--json")
    assert code == 2 and "b.csv: its numbers have no uncertainty, and those of other files" in err


def test_columns_with_uncertainties_stay_text_where_there_are_types(folder):
    (folder / "f.csv").write_text("x,y\n1±0.5,2(1)\n")
    assert run("map", "x*y", "f.csv", "-o", "o.jsonl")[0] == 0
    found = json.loads((folder / "o.jsonl").read_text())
    assert (found["x"], found["y"], found["value.uncertainty"]) == ("1±0.5", "2(1)", 2**0.5)
    assert run("map", "x*y", "f.csv", "--budget")[1].startswith(
        "x,y,value,value.uncertainty,x.share"
    )
    code, _, err = run("map", "x*y", "f.csv", "--uncertainty", "x=1")
    assert code == 2 and "x has one already" in err


@pytest.mark.parametrize("content", ['{"x": 1}\n{"x": NaN}\n', '[{"x": 1}, {"x": NaN}]',
                                     '{"x": [1, NaN], "n": [1, 2]}', '{"x": [1, null]}'])  # fmt: skip
def test_a_number_that_json_lacks_is_missing(content, folder):
    (folder / "f.json").write_text(content)
    for line in (["map", "x", "f.json"], ["eval", "x", "--x", "@f.json:x"]):
        code, _, err = run(*line)
        assert code and "a number is missing here" in err
    assert run("eval", "x", "--x", "@f.json:x", "--missing", "nan")[1] == "[1, nan]\n"


def test_fields_that_are_arrays_have_a_column_an_element(folder):
    array = np.zeros(2, [("a", "f8"), ("b", "f8", (2,))])
    array["b"] = [[1, 2], [3, 4]]
    np.save("f.npy", array)
    for columns, expected in [("a", "[0, 0]"), ("b[1]", "[2, 4]"), ("b*", "[[1, 2], [3, 4]]")]:
        assert run("eval", "x", "--x", f"@f.npy:{columns}") == (0, f"{expected}\n", "")
    assert run("eval", "x", "--x", "@f.npy")[1] == "[[0, 1, 2], [0, 3, 4]]\n"
    assert run("eval", "sum(x)", "--x", "@f.npy:b[0]", "--by-rows")[1] == "4\n"
    assert run("map", "a + 1", "f.npy")[1] == "a,b[0],b[1],value,a.grad\n0,1,2,1,1\n0,3,4,1,1\n"


@pytest.mark.parametrize("content, columns, expected", [row for row in READ if row[2]])
def test_text_is_read_the_same_whatever_way_it_comes(content, columns, expected, folder):
    for way in ("file", "no ending", "gz", "stdin", "at stdin"):
        reference, stdin = sent(content, columns, way, folder)
        found = run("eval", "x", "--x", reference, stdin=stdin)
        assert found == (0, f"{expected}\n", ""), way


def sent(content: str, columns: str, way: str, folder: Path) -> tuple[str, bytes | None]:
    """What stands for `x` on the command line, and what goes to standard input."""
    data, stdin = content.encode(), None
    if way == "file":
        (folder / "t.txt").write_bytes(data)
        reference = f"@t.txt{columns}"
        if content.lstrip("\ufeff")[0] in "[{":
            (folder / "t.json").write_bytes(data)
            reference = f"@t.json{columns}"
            if content.startswith("{") and "}\n{" in content:
                (folder / "t.jsonl").write_bytes(data)
                reference = f"@t.jsonl{columns}"
    elif way == "no ending":
        (folder / "table").write_bytes(data)
        reference = f"@table{columns}"
    elif way == "gz":
        (folder / "t.gz").write_bytes(gzip.compress(data))
        reference = f"@t.gz{columns}"
    else:
        stdin = data
        reference = f"-{columns}" if way == "stdin" else f"@/dev/stdin{columns}"
    return reference, stdin


def test_jsonl_of_lists(folder):
    (folder / "t.jsonl").write_text("[1, 2]\n[3, 4]\n")
    assert run("eval", "x", "--x", "@t.jsonl")[1] == "[[1, 2], [3, 4]]\n"


REFUSED = [
    ("1.O\n2\n3\n", "", "line 1: `1.O` is not a number\n    1.O\n    ^^^\n"),
    ("O.5\n2\n", "", "line 1: `O.5` is not a number"),
    ("NA\n2\n3\n", "", "line 1: a number is missing here"),
    ("$1\n2\n", "", "line 1: `$1` is not a number"),
    ("x\ny\nz\n", "", "line 1: `x` is not a number"),
    ("1,2\n3,x\n", "", "line 2: `x` is not a number\n    3,x\n      ^\n"),
    ("1,2\n\n3\n", "", "line 3: 1 value, and line 1 has 2"),
    ("L,T\n1,2\n3,x\n", ":T", "line 3, column T: `x` is not a number"),
    ("L,T\n1,2\n", ":M", "there is no column 'M'"),
    ("L,T\n1,2\n", ":t", "did you mean `T`? (there are: L, T)"),
    ("L,L\n1,2\n", ":L", "2 columns are called 'L'"),
    ("1,2\n", ":L", "has no names of columns"),
    ("L,T\n", "", "holds no numbers, only the names of columns"),
    ("# only\n", "", "holds no numbers"),
    ("", "", "is empty"),
    ('"1\n', "", "line 1"),
    ("a\0b", "", "not a text"),
]


@pytest.mark.parametrize("content, columns, words", REFUSED)
def test_what_is_no_table_is_refused_with_the_place(content, columns, words, folder):
    (folder / "t.csv").write_text(content, encoding="utf-8")
    code, out, err = run("eval", "x", "--x", f"@t.csv{columns}")
    assert (code, out) == (2, "")
    assert words in err
    assert "t.csv" in err


# -- cells without a value ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    "cell", ["", "NA", "nan", "NaN", "null", "NULL", '""', "N/A", " ", "#N/A", "<NA>", "\\N"]
)
def test_missing_cells(cell, folder):
    (folder / "t.csv").write_text(f"a,b\n1,2\n{cell},4\n5,6\n")
    argv = ["eval", "a + 10*b", "--a", "@t.csv:a", "--b", "@t.csv:b"]
    code, out, err = run(*argv)
    assert (code, out) == (2, "")
    assert "t.csv, line 3, column a: a number is missing here" in err and "--missing nan" in err
    assert run(*argv, "--missing", "nan")[1] == "[21, nan, 65]\n"
    # The row is left out of every column that is read of the file.
    assert run(*argv, "--missing", "skip")[1] == "[21, 65]\n"
    assert run("eval", "b", "--b", "@t.csv:b")[1] == "[2, 4, 6]\n"


@pytest.mark.parametrize("name, content", [
    ("t.json", '[{"a": 1, "b": 2}, {"b": 4}, {"a": null, "b": 6}]'),
    ("t.jsonl", '{"a": 1, "b": 2}\n{"b": 4}\n\n{"a": null, "b": 6}\n'),
])  # fmt: skip
def test_missing_in_records(name, content, folder):
    (folder / name).write_text(content)
    code, _, err = run("eval", "a", "--a", f"@{name}:a")
    assert code == 2 and name in err and "a number is missing here" in err
    assert run("eval", "a", "--a", f"@{name}:a", "--missing", "skip")[1] == "[1]\n"


# -- the formats of others ---------------------------------------------------------------------------
def frame():
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({"L": [0.5, 1.5, 2.5], "n": [1, 2, 3], "name": ["u", "v", "w"]})


WRITTEN_BY_OTHERS = {
    "t.csv": lambda f, p: f.to_csv(p, index=False),
    "index.csv": lambda f, p: f.to_csv(p),
    "quoted.csv": lambda f, p: f.to_csv(p, index=False, quoting=1),
    "semicolon.csv": lambda f, p: f.to_csv(p, index=False, sep=";"),
    "t.tsv": lambda f, p: f.to_csv(p, index=False, sep="\t"),
    "bom.csv": lambda f, p: f.to_csv(p, index=False, encoding="utf-8-sig", lineterminator="\r\n"),
    "wide.csv": lambda f, p: f.to_csv(p, index=False, encoding="utf-16"),
    "t.csv.gz": lambda f, p: f.to_csv(p, index=False),
    "t.csv.bz2": lambda f, p: f.to_csv(p, index=False),
    "t.csv.xz": lambda f, p: f.to_csv(p, index=False),
    "t.json": lambda f, p: f.to_json(p, orient="records"),
    "columns.json": lambda f, p: f.to_json(p),
    "t.jsonl": lambda f, p: f.to_json(p, orient="records", lines=True),
    "t.parquet": lambda f, p: f.to_parquet(p),
    "plain": lambda f, p: f.to_parquet(p),
    "t.feather": lambda f, p: f.to_feather(p),
    "t.npy": lambda f, p: np.save(p, f[["L", "n"]].to_records(index=False)),
    "t.npz": lambda f, p: np.savez(p, L=f["L"], n=f["n"]),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITTEN_BY_OTHERS)
def test_files_that_others_wrote(name, folder):
    pytest.importorskip("pyarrow")
    WRITTEN_BY_OTHERS[name](frame(), str(folder / name))
    assert run("eval", "x", "--x", f"@{name}:L") == (0, "[0.5, 1.5, 2.5]\n", "")
    assert run("eval", "x", "--x", f"@{name}:n,L") == (0, "[[1, 0.5], [2, 1.5], [3, 2.5]]\n", "")
    if not name.endswith(("npy", "npz")):
        code, _, err = run("eval", "x", "--x", f"@{name}:name")
        assert code == 2 and "number" in err
    code, _, err = run("eval", "x", "--x", f"@{name}:l")
    assert code == 2 and "L" in err


PARTITIONS = [  # (folders, what each column of theirs holds: None where it is not a number)
    (["k=1", "k=2"], {"k": "[1, 1, 2, 2]"}),
    (["k=1.5", "k=2"], {"k": "[1.5, 1.5, 2, 2]"}),
    (["k=a%20b", "k=2"], {"k": None}),
    (["k=007", "k=2"], {"k": "[7, 7, 2, 2]"}),
    (["k=1/m=2", "k=3/m=4"], {"k": "[1, 1, 3, 3]", "m": "[2, 2, 4, 4]"}),
    (["k=2", "k=__HIVE_DEFAULT_PARTITION__"], {"k": "[2, 2, nan, nan]"}),
    (["x=1", "x=2"], {"x": "[5, 6, 5, 6]"}),  # what is in the file is meant
]


@pytest.mark.parametrize("folders, columns", PARTITIONS, ids=[" ".join(f) for f, _ in PARTITIONS])
@pytest.mark.parametrize("pattern", ["d", "d/**/*.csv"])
@pytest.mark.parametrize("how", ["--whole", "--by-rows"])
def test_the_names_of_partitions_are_columns(folders, columns, pattern, how, folder):
    for name in folders:
        (folder / "d" / name).mkdir(parents=True)
        (folder / "d" / name / "p.csv").write_text("x\n5\n6\n")
    for name, numbers in columns.items():
        sums = ["eval", "sum(k)", "--k", f"@{pattern}:{name}", how, "--missing", "nan"]
        code, out, err = run(*sums)
        if numbers is None:
            assert code == 2 and f"column {name}: holds text ('2'), not numbers" in err.replace(
                "a b", "2"
            )
            continue
        values = [float(word) for word in numbers.strip("[]").split(", ")]
        assert (code, float(out)) == (0, pytest.approx(sum(values), nan_ok=True)), err
        found = run("map", "x", pattern, "--keep-columns", name, "--no-grad", "all")[1]
        cells = [line.split(",")[0] for line in found.splitlines()[1:]]
        assert [float(cell or "nan") for cell in cells] == pytest.approx(values, nan_ok=True)


def test_text_of_partitions_is_passed_through(folder):
    for name in ("k=a%20b", "k=c"):
        (folder / "d" / name).mkdir(parents=True)
        (folder / "d" / name / "p.csv").write_text("x\n5\n")
    expected = ['{"k": "a b", "value": 5.0}', '{"k": "c", "value": 5.0}']
    out = run("map", "x", "d", "--keep-columns", "k", "--no-grad", "all", "--json")[1]
    assert out.splitlines() == expected


@pytest.mark.needs("duckdb")
def test_partitions_that_duckdb_wrote(folder):
    import duckdb

    rows = "select i % 3 as k, i / 2 as x from range(9) t(i)"
    duckdb.sql(f"copy ({rows}) to 'd' (format parquet, partition_by (k))")
    assert run("eval", "dot(k, x)", "--k", "@d:k", "--x", "@d:x")[1] == "21\n"
    lines = run("map", "k*x", "d", "--no-grad", "all")[1].splitlines()
    assert (lines[0], len(lines)) == ("x,k,value", 10)


def test_json_lines_by_any_name(folder):
    text = '{"x": 1}\n{"x": 2}\n'
    (folder / "duckdb.json").write_text(text)
    assert run("eval", "x", "--x", "@duckdb.json:x")[1] == "[1, 2]\n"
    assert run("map", "x", "duckdb.json", "--no-grad", "all")[1] == "x,value\n1,1\n2,2\n"


@pytest.mark.needs("polars", "pyarrow")
def test_streams_of_arrow(folder):
    import polars

    polars.DataFrame({"x": [1.0, 2.0], "n": ["u", None]}).write_ipc_stream("t.arrows")
    polars.DataFrame({"x": []}, schema={"x": polars.Float64}).write_ipc_stream("empty.arrows")
    data = (folder / "t.arrows").read_bytes()
    (folder / "cut.arrows").write_bytes(data[:100])
    (folder / "odd.arrows").write_text("x\n1\n")
    assert run("eval", "x", "--x", "@t.arrows:x")[1] == "[1, 2]\n"
    assert run("eval", "sum(x)", "--x", "@t.arrows:x", "--by-rows")[1] == "3\n"
    expected = "x,n,value\n1,u,1\n2,,2\n"
    assert run("map", "x", "t.arrows", "--no-grad", "all")[1] == expected
    assert run("map", "x", "-", "--no-grad", "all", stdin=data)[1] == expected
    assert run("map", "x", "empty.arrows", "--no-grad", "all")[1] == "x,value\n"
    assert "cut.arrows: not a stream of Arrow's" in run("map", "x", "cut.arrows")[2]
    assert "odd.arrows: not a stream of Arrow's" in run("map", "x", "odd.arrows")[2]


def test_zstd(folder):
    pyarrow = pytest.importorskip("pyarrow")
    with pyarrow.output_stream(str(folder / "t.csv.zst"), compression="zstd") as stream:
        stream.write(b"L,T\n1,2\n3,4\n")
    assert run("eval", "x", "--x", "@t.csv.zst:L")[1] == "[1, 3]\n"


def test_without_pyarrow_one_line_says_so(folder, monkeypatch):
    import sys

    (folder / "t.parquet").write_bytes(b"PAR1....PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    code, _, err = run("eval", "x", "--x", "@t.parquet:L")
    assert code == 2
    assert "t.parquet: this needs pyarrow" in err and "pip install pyarrow" in err


def test_several_files_by_a_pattern(folder):
    (folder / "b.csv").write_text("y,x\n3,4\n")
    (folder / "a.csv").write_text("x,y\n1,2\n")
    assert run("eval", "x", "--x", "@*.csv:x")[1] == "[1, 4]\n"
    assert run("eval", "x", "--x", "@*.csv:x,y")[1] == "[[1, 2], [4, 3]]\n"
    assert "there is no such file" in run("eval", "x", "--x", "@q*.csv:x")[2]
    (folder / "c.csv").write_text("x\n1\n")
    assert "c.csv: there is no column 'y'" in run("eval", "x", "--x", "@*.csv:y")[2]


def test_a_folder_is_its_files_and_its_partitions(folder):
    for name, x in (("d/b.csv", 2), ("d/a.csv", 1), ("d/year=1/a.csv", 3), ("d/other/a.csv", 4)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"x\n{x}\n")
    assert run("eval", "x", "--x", "@d:x")[1] == "[1, 2, 3]\n"
    assert run("eval", "x", "--x", "@d/**/*.csv:x")[1] == "[1, 2, 4, 3]\n"


def test_a_folder_without_a_table_is_refused_without_a_look_below_it(folder, monkeypatch):
    (folder / "e/f").mkdir(parents=True)
    (folder / "e/f/a.csv").write_text("x\n1\n")
    looked = []
    scan = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: looked.append(str(path)) or scan(path))
    code, out, err = run("eval", "x", "--x", "@e")
    assert (code, out) == (2, "") and "e: there is no table in this folder" in err
    assert "'@e/**/*.parquet'" in err
    assert set(looked) == {"e"}


def test_columns_of_standard_input_are_read_once():
    argv = ["grad", "sum(L*T)", "--L", "-:L", "--T", "@-:T"]
    assert run(*argv, stdin=PENDULUM)[1] == "L.grad = [2.003, 2]\nT.grad = [0.994, 1]\n"
    code, _, err = run("eval", "L*T", "--L", "-:L", "--T", "-", stdin=PENDULUM)
    assert code == 2 and "only one of" in err


def test_names_with_colons(folder):
    (folder / "a:b.csv").write_text("x\n1\n2\n")
    assert run("eval", "x", "--x", "@a:b.csv")[1] == "[1, 2]\n"
    assert run("eval", "x", "--x", "@a:b.csv:x")[1] == "[1, 2]\n"


# -- lists of names ----------------------------------------------------------------------------------
def test_options_with_names_add_up():
    three = ["a*b*c", "--a", "1", "--b", "2", "--c", "3"]
    assert run("grad", *three, "--wrt", "a", "--wrt", "b")[1] == "a.grad = 6\nb.grad = 3\n"
    assert run("grad", *three, "--no-grad", "a", "--no-grad", "b")[1] == "c.grad = 2\n"
    assert run("grad", *three, "--wrt", "a,")[1] == "a.grad = 6\n"
    code, _, err = run("grad", *three, "--wrt", ",")
    assert code == 2 and "--wrt needs a name" in err
    product = ["y = a*b; z = 2*y; z", "--a", "1", "--b", "2", "--wrt", "a"]
    grads = "a.grad = 4\ny.grad = 2\nz.grad = 1\n"
    assert run("grad", *product, "--retain", "y", "--retain", "z,")[1] == grads


# -- NumPy's files that lie --------------------------------------------------------------------------
def npy(array=None) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.arange(3.0) if array is None else array)
    return stream.getvalue()


def archive(compression: int = zipfile.ZIP_STORED, **members: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as file:
        for name, data in members.items():
            file.writestr(f"{name}.npy", data)
    return stream.getvalue()


def changed(data: bytes, old: bytes, new: bytes) -> bytes:
    assert old in data and len(old) == len(new)
    return data.replace(old, new)


LIARS = {
    "cut.npy": npy()[:-5],
    "header.npy": changed(npy(), b"'shape': (3,)", b"'shape': (((("),
    "huge.npy": changed(npy(), b"(3,), }        ", b"(3000000000,), "),
    "type.npy": changed(npy(), b"'<f8'", b"'<q9'"),
    "negative.npy": changed(npy(), b"(3,), }  ", b"(-3,), } "),
    "true.npy": changed(npy(), b"(3,), }    ", b"(True,), } "),
    "version.npy": b"\x93NUMPY\x09\x00" + npy()[8:],
    "nothing.npy": b"",
    "object.npy": npy(np.array(["a", "b"])),
    "text.npz": archive(a=b"no array"),
    "broken.npz": changed(archive(a=npy()), npy()[-8:], b"corrupt!"),
    "cut.npz": archive(a=npy())[:-30],
    "nothing.npz": b"PK\x05\x06" + bytes(18),
    "method.npz": archive(a=npy()).replace(b"\x14\x00\x00\x00\x00\x00", b"\x14\x00\x00\x00\x63\x00"),
    "locked.npz": archive(a=npy()).replace(b"\x14\x00\x00\x00\x00\x00", b"\x14\x00\x01\x00\x00\x00"),
    "deflated.npz": archive(zipfile.ZIP_DEFLATED, a=npy(np.arange(400.0)))[:300] + bytes(900)
    + archive(zipfile.ZIP_DEFLATED, a=npy(np.arange(400.0)))[1200:],
    "t.parquet": b"PAR1 this is none PAR1",
    "t.feather": b"ARROW1 this is none",
    "old.feather": b"FEA1 this is of version 1 FEA1",
    "t.gz": gzip.compress(b"1,2\n")[:-6],
    "digits.json": b"[" + b"9" * 400_000 + b"]",
    "deep.json": b"[" * 100_000,
    "bytes.csv": b"1,\xff\n",
}  # fmt: skip


@pytest.mark.parametrize("name", LIARS)
def test_files_that_are_not_what_they_say(name, folder):
    (folder / name).write_bytes(LIARS[name])
    code, out, err = run("eval", "x", "--x", f"@{name}")
    assert (code, out) == (2, "")
    assert name in err


def test_the_archive_of_one_that_is_fine(folder):
    (folder / "a.npz").write_bytes(archive(a=npy()))
    assert run("eval", "x", "--x", "@a.npz")[1] == "[0, 1, 2]\n"


def test_names_that_no_file_can_have(tmp_path):
    for name in ("~nosuchuser/x.csv", "nowhere.csv", str(tmp_path), "a\0b"):
        code, _, err = run("eval", "x", "--x", f"@{name}")
        assert code == 2 and err.startswith("gradcli: error: --x: ")


def test_endless_files_are_refused_early():
    for name in ("/dev/zero", "/dev/urandom"):
        if Path(name).exists():
            code, _, err = run("eval", "x", "--x", f"@{name}")
            # of random bytes the first few may be text in some encoding
            assert code == 2 and ("not a text" in err or "not text in UTF-8" in err), err


def test_an_endless_text_is_refused_at_the_room_that_there_is(monkeypatch):
    monkeypatch.setattr("gradcli.tables.source.room", lambda: 1 << 21)
    code, _, err = run("eval", "x", "--x", "-", stdin="1\n" * (1 << 21))
    assert code == 2 and "standard input is too long: it has more than 2 MB" in err


# -- files made of whatever ---------------------------------------------------------------------------
SEEDS = [
    *("s.csv", "s.tsv", "s.txt", "s.json", "s.jsonl", "s.npy", "s.npz", "s.csv.gz"),
    *(
        pytest.param(name, marks=pytest.mark.needs("pyarrow"))
        for name in ("s.parquet", "s.feather")
    ),
]


@cache
def seeds() -> dict[str, bytes]:
    found = {
        "s.csv": b'x,y,name\n1,2,"a, b"\n3,4,c\n',
        "s.tsv": b"x\ty\n1\t2\n3\t4\n",
        "s.txt": b"1 2\n3 4\n",
        "s.json": json.dumps([{"x": 1, "y": 2}, {"x": 3, "y": None}]).encode(),
        "s.jsonl": b'{"x": 1}\n{"x": 2}\n',
        "s.npy": npy(),
        "s.npz": archive(zipfile.ZIP_DEFLATED, x=npy(), y=npy(np.ones((2, 2)))),
        "s.csv.gz": gzip.compress(b"x,y\n1,2\n3,4\n"),
    }
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:  # then those formats are refused whatever is in the file
        return found
    table = pyarrow.table({"x": [1.0, 2.0, None], "y": [1, 2, 3], "n": ["a", "b", "c"]})
    stream = io.BytesIO()
    pyarrow.parquet.write_table(table, stream)
    found["s.parquet"] = stream.getvalue()
    stream = io.BytesIO()
    with pyarrow.ipc.new_file(stream, table.schema) as writer:
        writer.write_table(table)
    found["s.feather"] = stream.getvalue()
    return found


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    found = bytearray(data)
    kind = rng.integers(4)
    if kind == 0:
        return bytes(found[: rng.integers(len(found) + 1)])
    for _ in range(int(rng.integers(1, 6))):
        at = int(rng.integers(len(found)))
        if kind == 1:
            found[at] = int(rng.integers(256))
        elif kind == 2:
            found[at:at] = rng.bytes(int(rng.integers(1, 4)))
        else:
            del found[at]
            if not found:
                break
    return bytes(found)


@pytest.mark.long
@pytest.mark.parametrize("count", [20, 400])
@pytest.mark.parametrize("name", SEEDS)
def test_mutated_files_are_read_or_refused_in_words(name, count, folder):
    from gradcli.language import LanguageError, read_value

    rng = np.random.default_rng(7)
    seed = seeds()[name]
    for number in range(count):
        data = mutated(seed, rng) if number else seed
        (folder / name).write_bytes(data)
        for columns in ("", ":x", ":x,y"):
            try:
                read_value(f"@{name}{columns}")
            except LanguageError as error:
                assert error.message and str(error)
