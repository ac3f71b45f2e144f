"""What streams in and out: JSON lists, NumPy's arrays, row groups of Parquet."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradcli.tables import TableError
from gradcli.tables.json_records import json_list
from gradcli.tables.record_batches import Stream
from gradcli.tables.writing import sink
from tests.sweep import sweep


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
    with pytest.raises(TableError, match="x begins as int64, and goes on as float64"):
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
