"""--lines, --csv and -o FILE: results as arrays, and what does not fit refused."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradcli.commands import output
from tests.commands.running import run
from tests.sweep import sweep

A, X = ("--a", "1,2"), ("--x", "3,4")
PRINTED = [
    (["eval", "x*3", "--x", "1,2.5,-0.0", "--lines"], "3\n7.5\n-0\n"),
    (["eval", "x*3", "--x", "1,2.5,-0.0", "--csv"], "value\n3\n7.5\n-0\n"),
    (["eval", "x/3", *X, "--lines", "--precision", "3"], "1\n1.33\n"),
    (["eval", "x", "--x", "1,2;3,4", "--lines"], "1\n2\n3\n4\n"),
    (["eval", "x", "--x", "1,2;3,4", "--csv"], "value[0],value[1]\n1,2\n3,4\n"),
    (["eval", "x", "--x", "inf,nan", "--csv"], "value\ninf\nnan\n"),
    (["eval", "x", "--x", "1+2j,3", "--lines"], "1+2j\n3+0j\n"),
    (["eval", "zeros(0, 2)", "--csv"], "value[0],value[1]\n"),
    (["eval", "zeros(0)", "--lines"], ""),
    (["eval", "2**62", "--lines"], "4611686018427387904\n"),
    (["eval", "max(x, dim=0)", *X, "--csv"], "values,indices\n4,1\n"),
    (["grad", "sum(a*x)", *A, *X, "--csv"], "a.grad,x.grad\n3,1\n4,2\n"),
    (["grad", "sum(a*x)", *A, *X, "--wrt", "a", "--lines"], "3\n4\n"),
    (["grad", "sum(x**3)", *X, "--order", "2", "--lines"], "18\n24\n"),
    (["jacobian", "x*x", *X, "--csv"], "x.jacobian[0],x.jacobian[1]\n6,0\n0,8\n"),
    (["hessian", "sum(x**3)", *X, "--lines"], "18\n0\n0\n24\n"),
    (["jvp", "x*x", *X, "--vector", "ones", "--lines"], "6\n8\n"),
]


@sweep(("argv", "printed"), PRINTED, parts=1)
def test_printed(argv: list[str], printed: str) -> None:
    result = run(*argv)
    assert (result.exit_code, result.stdout) == (0, printed), result.output


REFUSED = [
    (
        ["grad", "sum(a*x)", *A, *X, "--lines"],
        "--lines writes one array, and there are 2: a.grad, x",
    ),
    (["grad", "sum(a*x)", *A, *X, "-o", "a.npy"], "a .npy file holds one array, and there are 2"),
    (
        ["grad", "sum(a*x)", "--a", "1", *X, "--csv"],
        "different numbers of rows: a.grad 1, x.grad 2",
    ),
    (["eval", "zeros(2, 2, 2)", "--csv"], "--csv is a table, and value has 3 dimensions"),
    (["eval", "x.shape", *X, "--lines"], "--lines: value is a Size, not an array of numbers"),
    (["eval", "2**64", "-o", "a.npy"], "value is an int, not an array of numbers"),
    (["grad", "x.detach() + a", "--x", "1", "--a", "1", "--wrt", "x,a", "--csv"], "x.grad is None"),
    (["eval", "x, y = 3, 4", "--lines"], "--lines: there is no value"),
    (["eval", "x", *X, "--json", "--lines"], "--json and --lines cannot be used together"),
    (["eval", "x", *X, "--plain", "-o", "a.csv"], "--plain cannot be used with -o a.csv"),
    (
        ["eval", "x", *X, "--precision", "3", "-o", "a.npz"],
        "--precision cannot be used with -o a.npz",
    ),
    (["eval", "x", *X, "-o", "a.txt"], "the ending of a.txt names no format"),
    (["eval", "x", *X, "-o", "nowhere/a.npy"], "cannot write nowhere/a.npy"),
    (["jacobian", "x", *X, "--sparse", "--lines"], "--sparse cannot be used with --lines"),
    (["hessian", "sum(x)", *X, "--sparse", "-o", "a.npy"], "--sparse cannot be used with -o a.npy"),
]


@pytest.mark.parametrize(("argv", "words"), REFUSED)
def test_refused(argv: list[str], words: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*argv)
    assert result.exit_code in (1, 2) and result.stdout == ""
    assert words in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_files_are_read_back(tmp_path: Path) -> None:
    npy, npz, csv = (str(tmp_path / f"a{ending}") for ending in (".npy", ".npz", ".csv"))
    given = ["sum(a*x)", "--a", "0.1,2", "--x", "3,1e-300", "--dtype", "float64"]
    for path in (npz, csv):
        result = run("grad", *given, "-o", path)
        assert (result.exit_code, result.stdout) == (0, ""), result.output
    assert run("grad", *given, "--wrt", "a", "-o", npy).exit_code == 0
    assert np.load(npy).tolist() == [3, 1e-300]
    loaded = np.load(npz)
    assert {name: loaded[name].tolist() for name in loaded} == {
        "a.grad": [3, 1e-300],
        "x.grad": [0.1, 2],
    }
    for value in (f"@{npy}", f"@{npz}:a.grad", f"@{csv}:a.grad"):
        assert run("eval", "v", "--v", value).stdout == "[3, 1e-300]\n"


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(b"before")
    monkeypatch.setattr(np, "save", lambda stream, *rest, **more: stream.write(b"half") / 0)
    assert run("eval", "ones(3)", "-o", str(path)).exit_code == 1
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int64", "bool"])
@sweep("shape", [(), (0,), (1,), (5,), (2, 3), (3, 1), (2, 2, 2)], parts=1)
def test_text_is_that_of_the_numbers_one_by_one(dtype: str, shape: tuple[int, ...]) -> None:
    values = [0.0, -0.0, 1.0, -10.0, 1e20, 0.1, 1e-10, 100.5]
    array = np.array(values).clip(-6e4, 6e4).astype(dtype)[: int(np.prod(shape))].reshape(shape)
    one_by_one = output.numerals(array)
    assert output.joined(array, ",").split(",") == (one_by_one or [""])
    text = output.to_text(array, output.Style())
    assert text.replace("[", "").replace("]", "").split(", ") == (one_by_one or [""])
    if array.size:
        again = run("eval", "v", "--v", output.to_plain(array), "--plain")
        assert again.stdout.rstrip("\n") == output.to_plain(array)


def test_the_text_of_a_large_array_is_one_pass() -> None:
    """As fast as Python's own repr, but for a factor."""
    array = np.random.default_rng(0).normal(size=50_000)
    times = []
    for _ in range(3):
        started = time.process_time()
        expected = repr(array.tolist())
        between = time.process_time()
        made = output.to_plain(array)
        times.append((time.process_time() - between) / (between - started))
    assert len(made) <= len(expected)
    assert min(times) < 4


def test_lines_come_in_blocks() -> None:
    from gradcli.commands.array_output import BLOCK, lines

    array = np.arange(BLOCK + 3)
    pieces = list(lines(array, None))
    assert len(pieces) == 2
    assert np.loadtxt(io.StringIO("".join(pieces))).tolist() == array.tolist()
