"""Values that look like options, numbers among columns, results that have rows: what each is taken for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.commands.running import outcome as run


@pytest.mark.parametrize("vector", [["--vector", "-1,0"], ["--vector=-1,0"]])
@pytest.mark.parametrize("at", [["--x", "1,2"], ["--x=1,2"]])
def test_a_vector_may_begin_with_a_minus(vector: list[str], at: list[str]) -> None:
    assert run("jvp", "x**2", *at, *vector) == (0, "jvp = [-2, 0]\n", "")
    assert run("jvp", "x**2", *vector, *at) == (0, "jvp = [-2, 0]\n", "")


def test_a_number_in_an_archive_is_no_column(tmp_path: Path) -> None:
    path = str(tmp_path / "a.npz")
    np.savez(path, x=np.arange(3.0), y=2 * np.arange(3.0), g=np.float64(9.81))
    code, out, _ = run("fit", "y == a*x", path)
    assert code == 0 and out.startswith("a = 2\n")
    assert run("eval", "sum(x)*g", "--x", f"@{path}:x", "--g", f"@{path}:g")[1].startswith("29.43")


@pytest.mark.parametrize("form", [[], ["--plain"]])
def test_rows_that_nobody_writes_are_no_success(form: list[str], tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x\n1\n2\n")
    code, out, err = run("eval", "x*2", "--x", f"@{path}:x", "--by-rows", *form)
    assert (code, out) == (2, "") and "value has 2 rows" in err and "-o FILE.parquet" in err
    assert run("eval", "x*2", "--x", f"@{path}:x", "--whole", *form)[0] == 0
