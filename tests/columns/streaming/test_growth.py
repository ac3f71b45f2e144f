"""Work grows with rows, groups and files in proportion: nothing is done twice for one of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gradcli.cli import main

pa: Any = pytest.importorskip("pyarrow")


def run(*argv: str) -> str:
    done = CliRunner().invoke(main, [*argv])
    assert done.exit_code == 0, done.output
    return done.stdout


def table(rows: int) -> Any:
    return pa.table({"x": [float(i) for i in range(rows)], "y": [1.0] * rows, "name": ["a"] * rows})


def test_a_footer_is_read_once_for_all_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow.parquet as parquet

    parquet.write_table(table(200), tmp_path / "t.parquet", row_group_size=10)
    read: list[str] = []
    before = parquet.read_metadata
    monkeypatch.setattr(parquet, "read_metadata", lambda path: read.append(path) or before(path))
    assert run("eval", "sum(x)", "--x", f"@{tmp_path}/t.parquet:x", "--by-rows") == "19900\n"
    assert len(read) <= 4  # of 20 groups: once, or where threads begin together, once each


def test_a_footer_is_read_anew_where_the_file_is_another(tmp_path: Path) -> None:
    import pyarrow.parquet as parquet

    path = tmp_path / "t.parquet"
    for rows in (20, 30):
        parquet.write_table(table(rows), path, row_group_size=10)
        total = run("eval", "sum(x)", "--x", f"@{path}:x", "--by-rows")
        assert float(total) == rows * (rows - 1) / 2


def test_columns_that_nobody_asks_for_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow.parquet as parquet

    parquet.write_table(table(10), tmp_path / "t.parquet")
    asked: list[Any] = []
    before = parquet.ParquetFile.iter_batches

    def iter_batches(self: Any, *args: Any, columns: Any = None, **more: Any) -> Any:
        asked.append(columns)
        return before(self, *args, columns=columns, **more)

    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", iter_batches)
    found = run("map", "x*2", f"{tmp_path}/t.parquet", "--keep-columns", "none", "--no-grad", "all")
    assert found.splitlines()[:3] == ["value", "0", "2"] and asked[-1] == ["x"]


def test_small_files_wait_for_a_group_of_their_own(tmp_path: Path) -> None:
    """Of many small files one row group is made; what waits is counted once (it was once a batch)."""
    import pyarrow.parquet as parquet

    (tmp_path / "many").mkdir()
    for i in range(40):
        parquet.write_table(table(3), tmp_path / "many" / f"{i:02d}.parquet")
    run("map", "x*y", f"{tmp_path}/many", "-o", f"{tmp_path}/out.parquet")
    made = parquet.ParquetFile(tmp_path / "out.parquet").metadata
    assert (made.num_rows, made.num_row_groups) == (120, 1)
