"""`gradcli.compile(f).map(table)`: every kind of table, and what comes out."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradcli
from gradcli.language.located_errors import LanguageError
from tests.sweep import sweep

pa: Any = pytest.importorskip("pyarrow")
G = "4*pi**2*L/T**2"
COLUMNS = {"name": ["a", "b", "c"], "L": [0.994, 1.0, 2.0], "T": [2.003, 2.0, 3.0]}
OUT = ["name", "L", "T", "value", "L.grad", "T.grad"]


def expected() -> dict[str, Any]:
    length, period = np.array(COLUMNS["L"]), np.array(COLUMNS["T"])
    g = 4 * np.pi**2 * length / period**2
    return {"value": g, "L.grad": g / length, "T.grad": -2 * g / period}


def check(found: Any) -> None:
    assert found.schema.names == OUT
    for name, array in expected().items():
        assert np.allclose(found[name].to_numpy(), array, rtol=1e-14)
    assert found["name"].to_pylist() == COLUMNS["name"]


TABLES: dict[str, Callable[[], Any]] = {
    "pyarrow": lambda: pa.table(COLUMNS),
    "batch": lambda: pa.table(COLUMNS).to_batches()[0],
    "chunks": lambda: pa.concat_tables([pa.table(COLUMNS)[:1], pa.table(COLUMNS)[1:]]),
    "pandas": lambda: importlib.import_module("pandas").DataFrame(COLUMNS),
    "polars": lambda: importlib.import_module("polars").DataFrame(COLUMNS),
}


@pytest.mark.parametrize(
    "kind",
    [pytest.param(k, marks=[pytest.mark.needs(k)] * (k in ("pandas", "polars"))) for k in TABLES],
)
def test_tables_of_every_kind(kind: str) -> None:
    found = gradcli.compile(G).map(TABLES[kind]())
    assert isinstance(found, pa.Table)
    check(found)


def test_readers_and_datasets_are_read_as_the_result_is(tmp_path: Any) -> None:
    import pyarrow.dataset as dataset
    import pyarrow.parquet as parquet

    parquet.write_table(pa.table(COLUMNS), tmp_path / "t.parquet")
    sources = [pa.table(COLUMNS).to_reader(), dataset.dataset(tmp_path / "t.parquet")]
    for source in sources:
        found = gradcli.compile(G).map(source)
        assert isinstance(found, pa.RecordBatchReader)
        check(found.read_all())


@pytest.mark.long
@pytest.mark.needs("dask")
def test_frames_of_dask_stay_lazy() -> None:
    import dask.dataframe as frames
    import pandas as pd

    frame = pd.DataFrame(COLUMNS, index=[7, 8, 9])
    found = gradcli.compile(G).map(frames.from_pandas(frame, npartitions=2))
    assert hasattr(found, "compute") and list(found.columns) == OUT
    made = found.compute(scheduler="synchronous")
    assert list(made.index) == [7, 8, 9]
    check(pa.Table.from_pandas(made, preserve_index=False))


def test_a_function_and_what_is_the_same_for_all_rows() -> None:
    table = pa.table({"x1": [1.0, 2.0], "x2": [3.0, 4.0], "n": [1, 2]})

    def f(w: Any, x: Any) -> Any:
        return (w * x).sum() ** 2

    made = gradcli.compile(f)
    weights = np.array([1.0, 2.0])
    found = made.map(table, columns={"x": ["x1", "x2"]}, w=weights, keep=["n"])
    assert found.to_pydict() == {
        "n": [1, 2], "value": [49, 100], "x.grad[0]": [14, 20], "x.grad[1]": [28, 40],
    }  # fmt: skip
    found = made.map(table, columns={"x": ["x1", "x2"]}, w=weights, keep="none", wrt=["w"])
    assert found.to_pydict() == {"value": [49, 100], "w.grad[0]": [14, 40], "w.grad[1]": [42, 80]}
    assert (
        made.map(table, columns={"x": ["x1", "x2"]}, w=weights, keep="none", wrt=()).num_columns
        == 1
    )


def test_columns_keep_their_types() -> None:
    kinds = [
        pa.timestamp("ns"),
        pa.int16(),
        pa.dictionary(pa.int8(), pa.string()),
        pa.list_(pa.int8()),
    ]
    arrays = [pa.array(v, t) for v, t in zip([[1], [2], ["a"], [[1, 2]]], kinds, strict=True)]
    table = pa.table([*arrays, [1.5]], names=[*"tidl", "x"])
    found = gradcli.compile("x*x").map(table)
    assert found.schema.types[:4] == kinds
    single = gradcli.compile("x*x").map(pa.table({"x": pa.array([1.5], pa.float32())}))
    assert single.schema.types == [pa.float32()] * 3


def test_no_rows() -> None:
    found = gradcli.compile(G).map(pa.table(COLUMNS)[:0])
    assert found.schema.names == OUT and found.num_rows == 0


def test_missing_and_bad_rows() -> None:
    table = pa.table({"x": [1.0, None, 3.0]})
    f = gradcli.compile("x*x")
    with pytest.raises(LanguageError, match="row 2, column x: a number is missing here") as error:
        f.map(table)
    assert error.value.hint == "missing='nan' reads it as nan, missing='skip' leaves its row out"
    assert f.map(table, missing="skip")["value"].to_pylist() == [1, 9]
    assert np.isnan(f.map(table, missing="nan")["value"].to_numpy()[1])
    branch = gradcli.compile("x if x > 1 else linalg.inv(zeros(2, 2)).sum()*x")
    with pytest.raises(LanguageError, match="singular") as error:
        branch.map(pa.table({"x": [2.0, 0.5]}))
    assert "the table, row 2" in str(error.value) and "bad_rows='skip'" in str(error.value)
    assert branch.map(pa.table({"x": [2.0, 0.5]}), bad_rows="skip")["value"].to_pylist() == [2]


@sweep(("error", "words", "options"), [
        (ValueError, "'T' is not a column of the table", {"table": pa.table({"L": [1.0]})}),
        (TypeError, "a table of pyarrow, pandas, polars or Dask is wanted, not int", {"table": 3}),
        (TypeError, "a table of .* is wanted, not ChunkedArray", {"table": pa.table(COLUMNS)["L"]}),
        (TypeError, "has no variable 'z'", {"z": 1}),
        (ValueError, "missing is one of error, nan, skip, not 'no'", {"missing": "no"}),
        (ValueError, "bad_rows is one of stop, skip, nan, not 'no'", {"bad_rows": "no"}),
        (ValueError, "'nothing' is not a column", {"keep": "nothing"}),
        (ValueError, "wrt: .* has no variable 'LT'", {"wrt": "LT"}),
        (ValueError, "wrt: .* has no variable 'q'", {"wrt": ["q"]}),
        (ValueError, "'q' is not a column", {"keep": ["q"]}),
        (LanguageError, "column name: holds string, not numbers", {"columns": {"L": ["name"]}}),
    ], parts=1)  # fmt: skip
def test_refusals(error: type[Exception], words: str, options: dict[str, Any]) -> None:
    given = {"table": pa.table(COLUMNS), **options}
    with pytest.raises(error, match=words):
        gradcli.compile(G).map(given.pop("table"), **given)


def test_one_name_is_that_name() -> None:
    table = pa.table({"x1": [1.0, 2.0], "name": ["u", "v"]})
    found = gradcli.compile("x**2").map(table, columns={"x": "x1"}, keep="name", wrt="x")
    assert found.to_pydict() == {"name": ["u", "v"], "value": [1, 4], "x.grad": [2, 4]}


def test_the_job_of_a_program_can_be_sent() -> None:
    made = gradcli.compile(G)
    job = made._job({}, "all", None, "error", "stop", {}, ["L", "T"])
    assert pickle.loads(pickle.dumps(job)).source == G


@pytest.mark.long
def test_neither_pandas_nor_polars_is_imported() -> None:
    code = (
        "import sys, pyarrow as pa, gradcli\n"
        "table = pa.table({'x': [1.0]})\n"
        "before = {'pandas', 'polars', 'dask'} & set(sys.modules)  # pyarrow's own doing\n"
        "gradcli.compile('x*x').map(table)\n"
        "assert {'pandas', 'polars', 'dask'} & set(sys.modules) == before, 'imported'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
