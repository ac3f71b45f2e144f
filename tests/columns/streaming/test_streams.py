"""What streams in and out: JSON lists, NumPy's arrays, row groups of Parquet."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from gradcli.cli import main
from gradcli.tables import TableError
from gradcli.tables.json_records import json_list
from gradcli.tables.record_batches import Stream
from gradcli.tables.writing import sink
from tests.sweep import sweep


def run(*argv: str) -> tuple[int, str, str]:
    found = CliRunner().invoke(main, list(argv), prog_name="gradcli")
    assert "fault in gradcli" not in found.stderr, found.stderr
    return found.exit_code, found.stdout, found.stderr


def items(text: str, size: int) -> list[Any]:
    """The items of a list that is read in blocks of that size."""
    blocks = (text[i : i + size] for i in range(0, len(text), size))
    return [item for found in json_list(iter(blocks), "f") for item in found]


VALUES: list[Any] = [
    [],
    [1, 2.5, -3e-7, 12345678901234567890],
    [{"a": 1, "b": [1, {"c": "]},{["}]}, {"a": '\\" \u00e9 \n'}, {}],
    [True, None, "x", float("inf"), -0.0],
    [{"x": k, "name": "n" * (k % 7)} for k in range(300)],
]


@sweep("value", VALUES, parts=1)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 1 << 20])
@pytest.mark.parametrize("indent", [None, 2])
def test_a_list_is_what_json_says_however_it_is_cut(
    value: Any, size: int, indent: int | None
) -> None:
    assert items(json.dumps(value, indent=indent), size) == value


@sweep(("text", "words"), [
        ("{}", "line 1: Expecting a list"),
        ("[1, 2", "line 1: Expecting ',' delimiter"),
        ("[1 2]", "line 1: Expecting ',' delimiter"),
        ("[1,\n2]\n3", "line 3: Extra data"),
        ('[{"a": 1},\n{"a" 2}, {"a": 3}]' + " " * 50, "line 2: Expecting ':' delimiter"),
        ("[1,]", "Expecting value"),
        ('["abc]', "Unterminated string"),
    ], parts=1)  # fmt: skip
@pytest.mark.parametrize("size", [1, 5, 1 << 20])
def test_what_is_no_list_is_refused_where_that_shows(text: str, words: str, size: int) -> None:
    with pytest.raises(TableError, match=words):
        items(text, size)


def test_a_list_of_records_is_a_stream(tmp_path: Path) -> None:
    records = [{"x": k, "y": "z" * 20} for k in range(60_000)]  # more than a block of text
    (tmp_path / "r.json").write_text(json.dumps(records))
    tables = list(Stream(str(tmp_path / "r.json")))
    assert len(tables) > 1 and sum(t.rows for t in tables) == 60_000
    assert np.concatenate([t.numbers(0)[0] for t in tables]).tolist() == list(range(60_000))
    assert tables[1].where(0, 0)["at"].endswith(f"row {tables[0].rows + 1}, column x")
    (tmp_path / "n.json").write_text("[1, 2]")
    with pytest.raises(TableError, match="this is not a table of rows"):
        Stream(str(tmp_path / "n.json"))


def test_rows_of_numpy_are_written_as_they_come(tmp_path: Path) -> None:
    with open(tmp_path / "o.npy", "wb") as stream:
        out = sink("npy", stream, str, True)  # type: ignore[arg-type]
        for k in range(3):
            out.write([("x", np.full(1000, float(k))), ("n", np.arange(1000))])
            assert stream.tell() > 16_000 * (k + 1)
        out.close()
    found = np.load(tmp_path / "o.npy")
    assert found.dtype.names == ("x", "n") and len(found) == 3000
    assert found["x"][1500] == 1 and found["n"][2999] == 999
    held = io.BytesIO()
    out = sink("npy", held, str, True)  # type: ignore[arg-type]
    out.write([("s", ["a", "bc"]), ("x", np.ones(2))])
    out.write([("s", ["def"]), ("x", np.zeros(1))])
    out.close()
    held.seek(0)
    assert np.load(held)["s"].tolist() == ["a", "bc", "def"]
    out = sink("npy", io.BytesIO(), str, True)  # type: ignore[arg-type]
    out.write([("x", np.arange(2))])
    with pytest.raises(TableError, match="x begins as int64, but continues as float64"):
        out.write([("x", np.ones(2))])


def test_batches_of_parquet_make_row_groups(tmp_path: Path) -> None:
    parquet: Any = pytest.importorskip("pyarrow.parquet")
    with open(tmp_path / "o.parquet", "wb") as stream:
        out = sink("parquet", stream, str, True)  # type: ignore[arg-type]
        for k in range(20):
            out.write([("x", np.full(1 << 16, float(k)))])
        out.close()
    file = parquet.ParquetFile(tmp_path / "o.parquet")
    counts = [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)]
    assert counts == [1 << 20, 4 << 16]


@pytest.mark.parametrize("name", ["t.parquet", "t.feather", "t.npy", "t.csv"])
def test_a_stream_tells_how_far_it_is(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pandas as pd
    from pyarrow import feather

    from gradcli.tables import record_batches

    monkeypatch.setattr(record_batches, "ROWS", 100)
    monkeypatch.setattr(record_batches, "BLOCK", 1000)
    frame = pd.DataFrame({"x": np.arange(1000.0)})
    path = str(tmp_path / name)
    if name == "t.npy":
        np.save(path, frame.to_records(index=False))
    elif name == "t.feather":
        feather.write_feather(frame, path, chunksize=100)
    else:
        frame.to_csv(path, index=False) if name == "t.csv" else frame.to_parquet(path)
    found = Stream(path)
    seen = [found.done for _ in found]
    assert found.size and seen == sorted(seen) and seen[-1] == found.size
    assert found.size / 3 < seen[len(seen) // 2] < found.size


PLAIN = [json.dumps({"x": k / 3, "n": k, "s": f"r{k}", "t": "2020-01-01"}) for k in range(60)]


@pytest.mark.long
@pytest.mark.parametrize(
    "line",
    [
        "{}",
        '{"x": 1, "s": null}',
        '{"t": "", "x": "2.5", "n": " 7 ", "s": "12"}',
        '{"x": "NA", "n": NaN}',
        '{"x": 9007199254740993, "n": 9223372036854775807}',
        '{"x": 1e400, "n": 12345678901234567890123}',
        '{"x": -0, "n": -0}',
        '{"x": true, "n": false, "s": "\\"5\\" \\ud83d\\ude00, é"}',
        '{"x": 5e-324, "n": 1E5, "s": ""}',
        '{"x": 1, "x": 2}',
        '{"x": 1, "new": 2}',
        '{"x": [1, 2], "n": {"a": 1}}',
        '{"x": 1} {"x": 2}',
        '{"x":\n1}\n{"x": 2} {"x": 3}',
        '\n{"x": 1}\n \n',
        '{"x": 01}',
        '{"x": Infinity, "n": .5}',
        '{"s": "\\ud800", "x": 1}',
        '{"s": "a\tb", "x": 1}',
        '{"s": 7, "x": 1, "t": "2020-01-01T00:00:00"}',
        "[1]",
        "7",
    ],
)
@pytest.mark.parametrize(
    "how",
    [
        [],
        pytest.param(["--bad-rows", "nan"], marks=pytest.mark.long),
        pytest.param(["--bad-rows", "skip", "--keep-columns", "n,s"], marks=pytest.mark.long),
    ],
    ids=["stop", "nan", "skip"],
)
def test_arrow_reads_lines_of_json_as_python_does(
    line: str, how: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same bytes, or the same words; a quote within text does not hide the ends of lines."""
    parquet: Any = pytest.importorskip("pyarrow.parquet")
    from gradcli.tables import arrow, record_batches

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(record_batches, "BLOCK", 400)
    Path("t.jsonl").write_text("\n".join([*PLAIN, line, *PLAIN]))
    by_arrow = arrow.Records.batch
    used: list[bool] = []

    def watched(self: Any, *given: Any) -> Any:
        found = by_arrow(self, *given)
        used.append(found is not None)
        return found

    def answers() -> list[Any]:
        found: list[Any] = []
        for ending in ("csv", "jsonl", "parquet"):
            argv = ["map", "x*n", "t.jsonl", "--missing", "nan", "-o", f"o.{ending}", *how]
            code, _, err = run(*argv)
            found += [code, err]
            if not code:
                path = Path(f"o.{ending}")
                read = ending == "parquet"
                found.append(parquet.read_table(path) if read else path.read_bytes())
        return found

    monkeypatch.setattr(arrow.Records, "batch", watched)
    quick = answers()
    monkeypatch.setattr(arrow.Records, "batch", lambda self, text, slowly: None)
    assert str(quick) == str(answers())
    assert any(used)


@pytest.mark.long
@pytest.mark.needs("pyarrow")
def test_nothing_imports_pandas(tmp_path: Path) -> None:
    """Which pyarrow does for an array of what is not its own, and takes half of a command's start."""
    rows = "".join(f"r{k},{k / 7},{-k}\n" for k in range(150_000))
    (tmp_path / "t.csv").write_text("name,x,y\n" + rows)
    lines = [
        "map sin(x)*y t.csv -o t.parquet",
        "map sin(x)*y t.parquet -o o.csv --keep-columns name",
        "grad mean((a*x-y)**2) --x @t.parquet:x --y @t.parquet:y --a 1 --by-rows --wrt a",
    ]
    code = (
        "import sys\nfrom gradcli.cli import main\n"
        f"for line in {lines!r}: main.main(line.split(), standalone_mode=False)\n"
        "sys.exit('pandas' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=60)
