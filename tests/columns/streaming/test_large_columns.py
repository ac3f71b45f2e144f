# ruff: noqa: E501 (tables of cases)
"""`--by-rows`: columns that need not fit into memory, from the command line."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest

from gradcli.tables import TableError
from gradcli.tables.parts import Parts
from tests.commands.running import outcome as run
from tests.sweep import some

pyarrow = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")
LOSS = "mean((a*x + b - y)**2)"
ROWS = 1000


def numbers(text: str) -> dict[str, Any]:
    """`name = value` lines."""
    lines = [line.partition(" = ") for line in text.splitlines()]
    return {name: json.loads(value) for name, _, value in lines}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same table in every format, as pandas and NumPy write it."""
    import pandas as pd

    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = rng.standard_normal(ROWS)
    frame = pd.DataFrame({"x": x, "y": 2 * x + 1, "n": np.arange(ROWS)})
    frame.to_parquet("t.parquet", row_group_size=300)
    frame.to_feather("t.feather")
    frame.to_csv("t.csv", index=False)
    frame.to_csv("t.csv.gz", index=False)
    frame.to_json("t.jsonl", orient="records", lines=True)
    np.save("t.npy", frame[["x", "y"]].to_records(index=False))
    os.mkdir("parts")
    frame[:400].to_parquet("parts/a.parquet")
    frame[400:].to_parquet("parts/b.parquet")
    return tmp_path


TABLES = [
    "t.parquet",
    "t.feather",
    "t.csv",
    "t.csv.gz",
    "t.jsonl",
    "t.npy",
    "parts",
    "parts/*.parquet",
]


@pytest.mark.parametrize("table", TABLES)
def test_every_format_gives_the_same(table: str) -> None:
    given = ["--x", f"@{table}:x", "--y", f"@{table}:y", "--a", "1", "--b", "0", "--value"]
    code, out, err = run("grad", LOSS, *given, "--by-rows", "--wrt", "a,b")
    assert (code, err) == (0, "")
    whole = numbers(run("grad", LOSS, *given, "--whole", "--wrt", "a,b")[1])
    found = numbers(out)
    assert list(found) == list(whole) == ["value", "a.grad", "b.grad"]
    assert all(np.allclose(found[n], whole[n], rtol=1e-12) for n in whole)


def test_the_index_of_pandas_is_no_column_unless_it_is_named(folder: Path) -> None:
    import pandas as pd

    frame = pd.read_parquet("t.parquet", columns=["x", "y"])
    frame[frame.x > 0][:5].to_parquet("i.parquet")
    index = "__index_level_0__"
    assert index in pyarrow.parquet.read_schema("i.parquet").names
    for given in ("@i.parquet", "@i.parquet:*"):
        for how in ("--by-rows", "--whole"):
            code, out, err = run("eval", "sum(X, 0)", "--X", given, how)
            assert (code, err, out.count(",")) == (0, "", 1)
    assert run("eval", "n.numel()", "--n", f"@i.parquet:{index}")[1] == "5\n"
    for keep, header in (("all", "x,y,value"), (f"x,{index}", f"x,{index},value")):
        given = ["map", "x*y", "i.parquet", "--no-grad", "all", "--keep-columns", keep]
        assert run(*given)[1].splitlines()[0] == header


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_without_names(order: str) -> None:
    np.save("m.npy", np.array(np.arange(3000.0).reshape(ROWS, 3), order=order))  # type: ignore[call-overload]
    given = ["--X", "@m.npy", "--w", "1,2,3"]
    by = run("grad", "sum((X@w)**2)", *given, "--wrt", "w", "--by-rows")
    assert by == run("grad", "sum((X@w)**2)", *given, "--wrt", "w", "--whole")


def test_columns_side_by_side_are_a_matrix() -> None:
    given = ["--X", "@t.parquet:x,y", "--w", "1,2"]
    found = numbers(run("grad", "mean((X@w)**2)", *given, "--by-rows", "--wrt", "w")[1])
    whole = numbers(run("grad", "mean((X@w)**2)", *given, "--whole", "--wrt", "w")[1])
    assert np.allclose(found["w.grad"], whole["w.grad"], rtol=1e-12)


@pytest.mark.parametrize("ending", ["parquet", "feather", "csv", "npy"])
def test_gradients_of_columns_go_to_a_file(ending: str) -> None:
    given = ["--x", "@t.parquet:x", "--y", "@t.parquet:y", "--a", "1", "--b", "0"]
    code, out, err = run("grad", LOSS, *given, "--by-rows", "-o", f"g.{ending}")
    assert (code, err) == (0, "") and list(numbers(out)) == ["a.grad", "b.grad"]
    assert run("grad", LOSS, *given, "--whole", "-o", "whole.npz")[0] == 0
    with np.load("whole.npz") as whole:
        for name in ("x.grad", "y.grad"):
            found = run("eval", "v", "--v", f"@g.{ending}:{name}", "--json")[1]
            assert np.allclose(json.loads(found)["value"], whole[name], rtol=1e-12)


def test_without_a_file_their_rows_are_not_printed() -> None:
    code, out, err = run("grad", "sum(a*x)", "--x", "@t.csv:x", "--a", "2", "--by-rows")
    assert code == 0 and list(numbers(out)) == ["a.grad"] and err == ""  # columns are data
    asked = ["--by-rows", "--wrt", "a,x"]
    code, out, err = run("grad", "sum(a*x)", "--x", "@t.csv:x", "--a", "2", *asked)
    assert code == 0 and list(numbers(out)) == ["a.grad"]
    assert err == "gradcli: note: x.grad has 1,000 rows: -o FILE.parquet writes them\n"


def test_eval_jvp_check_alike() -> None:
    x, y = ["--x", "@t.parquet:x"], ["--y", "@t.parquet:y"]
    for source in ("std(x)/mean(y)", "logsumexp(x, 0) + max(y)", "x.min()"):
        given = x + (y if "y" in source else [])
        by, whole = (run("eval", source, *given, how)[1] for how in ("--by-rows", "--whole"))
        assert np.isclose(float(by), float(whole), rtol=1e-12)
    vectors = ["--vector", "x=@t.parquet:n", "--vector", "y=ones"]
    code, out, _ = run("jvp", "mean(x*y)", *x, *y, *vectors, "--by-rows", "--value")
    assert code == 0
    n, d = np.arange(ROWS), numbers(out)
    table = np.load("t.npy")
    assert np.isclose(d["value"], np.mean(table["x"] * table["y"]), rtol=1e-12)
    assert np.isclose(d["jvp"], np.mean(n * table["y"] + table["x"]), rtol=1e-12)
    code, out, _ = run("check", LOSS, *x, *y, "--a", "1", "--b", "0", "--by-rows")
    assert code == 0 and [line.split()[1] for line in out.splitlines()] == ["x", "y", "a", "b"]
    code, out, _ = run("check", "mean(a*x**2) + a.detach()", *x, "--a", "2", "--by-rows")
    assert code == 1 and "wrong gradient: a" in out


@pytest.mark.parametrize(("missing", "count"), [("skip", 3), ("nan", 4), ("error", None)])
def test_missing_numbers(missing: str, count: int | None) -> None:
    Path("m.csv").write_text("x,y\n1,2\n,3\n4,5\n6,7\n")
    argv = ["eval", "0*nansum(x) + x.numel()", "--x", "@m.csv:x", "--by-rows", "--missing", missing]
    code, out, err = run(*argv)
    if count is None:
        assert code == 2 and "m.csv, line 3, column x: a number is missing here" in err
    else:
        assert (code, out) == (0, f"{count}\n")


REFUSED = [
    (["grad", "sum(sort(x)[0])"], 1, ["sort(x) cannot be computed in passes", "        ^^^^^^^\n", "--whole reads"]),
    (["eval", "sum(stack([x, x]).max(1)[0])"], 1, ["it needs all rows at once"]),
    *(
        (["eval", f"sum({call}{item})"], 1, [f"{call} cannot be computed in passes over the rows", "--whole"])
        for call, item in (
            ("stack([x, x]).sort(1)", "[0]"), ("topk(x, 3)", "[0]"), ("x.median(0)", "[0]"), ("mode(x)", "[0]"),
            ("kthvalue(x, 2, 0)", "[0]"), ("cummax(x, 0)", "[0]"), ("quantile(x, 0.3)", ""),
            ("cumprod(x, 0)", ""), ("argsort(x)", ""),
        )
    ),
    (["eval", "sum(x*v)", "--v", "0:7"], 1, ["rows can be combined with columns of the same table"]),
    (["grad", "a*x", "--a", "2"], 1, ["grad can be implicitly created only for scalar outputs"]),
    (["grad", "sum(x)", "--trace"], 2, ["--trace cannot be used with --by-rows"]),
    (["grad", "sum(x*v)", "--v", "0:1000"], 1, ["by what is in memory", "--no-grad"]),
    (["eval", "sum(x + randn(3).sum())"], 1, ["the program draws random numbers"]),
    (["grad", "sum(x)", "-o", "g.npz"], 2, ["rows cannot be written one after the other into g.npz"]),
    (["check", "sum(x)", "--samples", "3"], 2, ["--samples cannot be used with --by-rows"]),
]  # fmt: skip


@pytest.mark.parametrize(("argv", "code", "words"), REFUSED)
def test_refusals(argv: list[str], code: int, words: list[str]) -> None:
    found, out, err = run(*argv, "--x", "@t.csv:x", "--by-rows")
    assert (found, out) == (code, "")
    for word in words:
        assert word in err


# What looks at a row's own numbers alone, whatever it decides by them.
WITHIN = [
    "sum(X.max(1)[0]**2)",
    "sum(X.min(dim=1, keepdim=True)[0]*X)",
    "sum(X.T.max(0)[0]**2)",
    "sum(X.argmax(1)*X[:, 0])",
    "sum(sort(X, 1)[0][:, 0]*X[:, 1])",
    "sum(X.sort(dim=1, descending=True)[0][:, 1]**2)",
    "sum(X.T.sort(0)[0][1]**2)",
    "sum(amax(X, 1)*logsumexp(X, 1))",
]


# The same by kernels as a whole: the table of operators says along which dimension they work.
KERNELS = [
    "sum(argsort(X, 1, descending=True)*X)",
    "sum(topk(X, 2, 1)[0]*X[:, :2])",
    "sum(X.median(1)[0]**2) + sum(X.T.median(0, keepdim=True)[0])",
    "sum(nanmedian(X, 1)[0]*kthvalue(X, 2, 1)[0])",
    "sum(mode(X, 1)[0]*quantile(X, 0.3, dim=1))",
    "sum(quantile(X, tensor([0.3, 0.5]), dim=1)*nanquantile(X, 0.5, dim=1))",
    "sum(prod(X, 1)*X[:, 0]) + sum(X.prod(1, keepdim=True))",
    "sum(cumprod(X, 1)*cummax(X, 1)[0]*cummin(X, 1)[0])",
    "sum(gather(X, 1, argsort(X, 1))*normalize(1 + X, dim=1))",
    "sum(linalg.eigvalsh(X[:, :, None]*X[:, None, :] + eye(3)))",
]


@pytest.mark.long
@pytest.mark.parametrize(
    ("source", "rows"),
    [(s, 7) for s in (*WITHIN, *KERNELS)]
    + some([(s, 20_000) for s in WITHIN] + [(s, 900) for s in KERNELS], 4),
)
def test_what_is_chosen_within_a_row(source: str, rows: int) -> None:
    rng = np.random.default_rng(0)
    np.save("w.npy", rng.integers(0, 9, (rows, 3)) / 8)  # with ties
    given = ["grad", source, "--X", "@w.npy"]
    values = [
        numbers(run(*given, "--value", *how)[1])["value"] for how in (["--by-rows"], ["--whole"])
    ]
    assert np.allclose(*values, rtol=1e-12)
    assert (
        run(*given, "--by-rows", "-o", "by.npy")[0]
        == run(*given, "--whole", "-o", "at.npy")[0]
        == 0
    )
    by = np.load("by.npy")
    by = np.stack([by[name] for name in by.dtype.names], axis=1)
    assert np.array_equal(by, np.load("at.npy"))


# Matrices that sums over the rows have made, which are small: what is done with them then is ordinary.
SMALL = [
    "linalg.solve(X.T@X, X.T@X[:, 0] + X.sum(0)).sum()",
    "linalg.inv(X.T@X).sum()",
    "det(X.T@X/100)",
    "logdet(X.T@X)",
    "linalg.slogdet(X.T@X)[1]",
    "linalg.cholesky(X.T@X).sum()",
]


@pytest.mark.parametrize("source", SMALL)
def test_small_matrices_of_all_rows(source: str) -> None:
    given = ["grad", source, "--X", "@t.csv:x,y", "--value"]
    code, out, err = run(*given, "--by-rows", "-o", "g.npy")
    assert (code, err) == (0, "")
    whole = numbers(run(*given, "--whole")[1])
    assert np.isclose(numbers(out)["value"], whole["value"], rtol=1e-10)
    found = np.load("g.npy")
    found = np.stack([found[name] for name in found.dtype.names], 1)
    np.testing.assert_allclose(found, whole["X.grad"], rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("1 + linalg.inv(0*X.T@X).sum()", "linalg.inv: The diagonal element 1 is zero"),
        ("1 + linalg.solve(0*X.T@X, X.sum(0)).sum()", "torch.linalg.solve: The solver failed"),
        ("1 + linalg.cholesky(-X.T@X).sum()", "linalg.cholesky: The factorization could not be"),
    ],
)
def test_a_matrix_that_fails_is_refused_where_it_is(source: str, words: str) -> None:
    place = " " * 8 + "^" * (source.index(".sum()", -6) - 4) + "\n"
    for command in ("eval", "grad"):
        code, out, err = run(command, source, "--X", "@t.csv:x,y", "--by-rows")
        assert (code, out) == (1, "") and words in err and place in err


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("1 + nn.functional.cross_entropy(X, k.long())", "Target 3 is out of bounds."),
        (
            "1 + (gather(X, 1, k.long()[:, None])**2).sum()",
            "index 3 is out of bounds for dimension 1",
        ),
        (
            "1 + (nn.functional.one_hot(k.long(), 2)*X**2).sum()",
            "Class values must be smaller than num_classes.",
        ),
        (
            "1 + nn.functional.binary_cross_entropy(sigmoid(X[:,0]), k)*X.sum()",
            "all elements of target should be between 0 and 1",
        ),
    ],
)
def test_a_row_that_fails_is_refused_where_it_is(source: str, words: str) -> None:
    """The classes are 0 and 1 but in one row, far down the table."""
    k = np.arange(50_000) % 2
    np.save("X.npy", np.random.default_rng(0).standard_normal((len(k), 2)))
    np.save("k.npy", k)
    given = ["grad", source, "--X", "@X.npy", "--k", "@k.npy", "--wrt", "X", "-o", "g.npy"]
    assert run(*given, "--by-rows")[0] == 0
    found = np.load("g.npy")
    found = np.stack([found[name] for name in found.dtype.names], 1)
    assert run(*given, "--whole")[0] == 0
    np.testing.assert_allclose(found, np.load("g.npy"), rtol=1e-10)
    k[40_000] = 3
    np.save("k.npy", k)
    for how in ("--by-rows", "--whole"):
        code, out, err = run(*given, how)
        assert (code, out) == (1, "") and words in err and "^^^^^" in err, err


@pytest.mark.parametrize("how", ["--by-rows", "--whole"])
def test_a_row_that_fails_in_a_program_has_its_words(how: str) -> None:
    """By rows a program computes where it reads: there is the place."""
    np.save("X.npy", np.ones((50_000, 2)))
    np.save("k.npy", np.where(np.arange(50_000) == 40_000, 3, 1))
    Path("p.py").write_text("s = (gather(X, 1, k.long()[:, None])**2).sum()\nprint(s)\n")
    code, out, err = run("run", "p.py", "--X", "@X.npy", "--k", "@k.npy", how)
    assert (code, out) == (1, "") and "index 3 is out of bounds for dimension 1" in err, err
    assert ("print(s)\n" if how == "--by-rows" else "gather(") in err


def test_what_stands_in_the_way_of_a_gradient_has_its_place() -> None:
    code, out, err = run("grad", "2*prod(x) + 1", "--x", "@t.csv:x", "--by-rows")
    assert (code, out) == (1, "")
    assert "prod(x) cannot be computed in passes over the rows: it looks at the numbers" in err
    assert "    2*prod(x) + 1\n      ^^^^^^^\n" in err


def test_results_without_rows_go_where_they_always_go() -> None:
    given = ["grad", "sum(a*n)", "--n", "@t.csv:n", "--a", "2", "--wrt", "a"]
    for how in (["--lines"], ["--csv"], ["-o", "a.npy"]):
        assert run(*given, *how, "--by-rows") == run(*given, *how, "--whole")
    assert np.load("a.npy").shape == ()


def test_columns_that_are_not_real_are_refused() -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pyarrow.table({"x": [True, False]}), "c.parquet")
    Path("c.csv").write_text("x\n1+2j\n1\n")
    for file in ("c.parquet", "c.csv"):
        code, out, err = run("eval", "sum(x)", "--x", f"@{file}:x", "--by-rows")
        assert (code, out) == (2, "") and "column x: holds" in err and "--whole" in err


def test_what_is_no_file_is_refused() -> None:
    assert "can be read only once" in run("eval", "sum(x)", "--x", "@-:x", "--by-rows")[2]
    assert "no variable is a column of a file" in run("eval", "sum(x)", "--x", "1", "--by-rows")[2]
    assert "did you mean `x`" in run("eval", "sum(x)", "--x", "@t.csv:xx", "--by-rows")[2]


def test_a_large_table_is_read_by_rows_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    from gradcli.commands import large_columns
    from gradcli.engine.system import budget

    monkeypatch.setattr(large_columns, "_LARGE", 0)
    given = ["grad", "sum(a*x)", "--x", "@t.parquet:x", "--a", "2"]
    given += ["--wrt", "x"]
    assert "x.grad = " in run(*given)[1]
    monkeypatch.setattr(budget, "free_memory", lambda: 10_000)
    assert "x.grad = " not in run(*given)[1]
    assert "x.grad = " in run(*given, "--whole")[1]


@pytest.mark.long
def test_the_bits_do_not_depend_on_how_many_threads_blas_has(folder: Path) -> None:
    """Products along the rows are made of pieces that no BLAS cuts; those of rows are each row's own."""
    rng = np.random.default_rng(0)
    np.save("m.npy", rng.standard_normal((150_000, 4)))
    source = "sum(softmax(tanh(X@W)@W.T, 1)[:, 0]*(X@w))/norm(X@w) + (X.T@X).sum()"
    given = ["--X", "@m.npy", "--W", "randn(4,6)", "--w", "1,2,3,4", "--manual-seed", "1"]
    found = set()
    for threads in ("1", "4"):
        environment = {**os.environ, "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
        argv = ["grad", source, *given, "--wrt", "W,w", "--by-rows", "--value"]
        done = subprocess.run(
            [sys.executable, "-m", "gradcli", *argv],
            env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        found.add(done.stdout)
    assert len(found) == 1, found


@pytest.mark.long
@pytest.mark.needs("duckdb")
def test_files_of_duckdb(folder: Path) -> None:
    import duckdb

    duckdb.sql(
        "COPY (SELECT i::INTEGER AS n, i/7.0::DOUBLE AS x, 'a' || i AS name, (i/4)::DECIMAL(9,2) AS d "
        "FROM range(300000) t(i)) TO 'd.parquet'"
    )
    argv = ["eval", "sum(x*7 - n) + max(d)", "--x", "@d.parquet:x", "--n", "@d.parquet:n"]
    code, out, err = run(*argv, "--d", "@d.parquet:d", "--by-rows")
    assert (code, err) == (0, "") and np.isclose(float(out), 299999 / 4, atol=0.01)
    code, _, err = run("map", "x*d", "d.parquet", "-o", "o.parquet", "--wrt", "x")
    assert (code, err) == (0, "")
    names = [*"nx", "name", "d", "value", "x.grad"]
    assert duckdb.sql("SELECT * FROM 'o.parquet'").columns == names
    found = duckdb.sql("SELECT count(*), max(abs(value - x*d)) FROM 'o.parquet'").fetchall()
    assert found == [(300000, 0.0)]


@contextlib.contextmanager
def meanwhile(write: Callable[[], object]) -> Iterator[None]:
    """Somebody writes, again and again."""
    done = threading.Event()

    def again() -> None:
        while not done.wait(0.001):
            write()

    thread = threading.Thread(target=again)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def append(stream: IO[str]) -> None:
    """Some lines more."""
    stream.write("2\n" * 100)
    stream.flush()


@pytest.mark.parametrize("how", [["--by-rows"], ["--whole"], ["map"]])
def test_a_file_that_is_appended_to_gives_no_number(how: list[str], folder: Path) -> None:
    Path("g.csv").write_text("L\n" + "1\n" * 100_000)
    line = ["eval", "mean(L*0+1)", "--L", "@g.csv:L", *how]
    if how == ["map"]:
        line = ["map", "L", "g.csv", "-o", "o.csv"]
    with open("g.csv", "a") as stream, meanwhile(lambda: append(stream)):
        code, out, err = run(*line)
    if how == ["--whole"] and not code:  # it was read between two lines
        assert out == "1\n"
        return
    assert code == 2 and not out and "g.csv changed while it was read" in err
    assert not Path("o.csv").exists()


def test_a_file_that_is_replaced_gives_no_number(folder: Path) -> None:
    import pandas as pd

    Path("d").mkdir()
    for name, rows in (("d/a.parquet", 1000), ("d/b.parquet", 1000), ("new", 2000)):
        pd.DataFrame({"x": np.ones(rows)}).to_parquet(name)

    def replace() -> None:
        shutil.copy("new", "next")
        os.replace("next", "d/b.parquet")

    parts = Parts("d")
    replace()
    batches = [list(part.batches(["x"])) for part in parts.parts[:1]]
    assert sum(table.rows for table in batches[0]) == 1000
    with pytest.raises(TableError, match=r"d/b.parquet changed while it was read"):
        list(parts.parts[1].batches(["x"]))
    for _ in range(20):  # it may be read between two replacements
        with meanwhile(replace):
            code, out, err = run("eval", "mean(x)", "--x", "@d:x", "--by-rows")
        if code:
            break
        assert out == "1\n"
    assert code == 2 and not out and "d/b.parquet changed while it was read" in err


@pytest.mark.long
def test_memory_does_not_grow_with_the_file(folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    rng = np.random.default_rng(0)
    schema = pa.schema([("x", pa.float64()), ("y", pa.float64())])
    with parquet.ParquetWriter("big.parquet", schema) as writer:
        for _ in range(20):  # 320 MB
            data = [rng.standard_normal(1_000_000) for _ in range(2)]
            writer.write_table(pa.table(data, schema=schema))
    given = ["--x", "@big.parquet:x", "--by-rows"]
    more = ["--y", "@big.parquet:y", "--a", "1", "--b", "0", "-o", "g.parquet"]
    for argv in (
        ["grad", LOSS, *given, *more],
        [
            "grad",
            "mean(a*((x - mean(x))/std(x))**4)",
            *given,
            "--a",
            "1",
            "--wrt",
            "a",
        ],  # two passes
    ):
        code = (
            f"import resource, subprocess; subprocess.run({[sys.executable, '-m', 'gradcli', *argv]!r}, check=True)\n"
            "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        )
        line = [sys.executable, "-c", code]
        found = subprocess.run(line, capture_output=True, text=True, check=True)
        assert int(found.stdout.splitlines()[-1]) < 500_000, argv  # kilobytes
