"""What Parquet and Feather hold besides plain numbers: decimals, an index of pandas, other types."""

from __future__ import annotations

import pickle
import random
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from tests.commands.running import run

GOLDEN = Path(__file__).parent.parent / "golden"


def test_decimals_of_two_places_are_the_nearest_doubles(tmp_path: Path) -> None:
    """By pyarrow's own cast 13,929 of these are the next ones: 3.30 becomes 3.3000000000000003."""
    values = [Decimal(k) / 100 for k in range(100_000)]
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"x": pa.array(values, pa.decimal128(10, 2))}), path)
    assert run("eval", "x[330]", "--x", f"@{path}:x").stdout == "3.3\n"
    from gradcli.tables.arrow import from_decimals

    found = from_decimals(parquet.read_table(path).column("x"))
    np.testing.assert_array_equal(found, [float(v) for v in values])


@pytest.mark.parametrize(
    ("kind", "precision", "scale"),
    [
        ("decimal128", 38, 20),
        ("decimal128", 38, 0),
        ("decimal128", 5, -3),
        ("decimal128", 18, 17),
        ("decimal256", 76, 30),
        ("decimal32", 9, 4),
        ("decimal64", 18, 17),
    ],
)
def test_every_decimal_is_rounded_once(kind: str, precision: int, scale: int) -> None:
    from gradcli.tables.arrow import from_decimals

    if not hasattr(pa, kind):
        kind = "decimal128"  # pyarrow before 19 has these two alone
    numbers, values = random.Random(precision + scale), list[Any]()
    with localcontext(prec=80):
        for _ in range(500):
            most = 10 ** numbers.randint(1, precision)
            values.append(Decimal(numbers.randint(1 - most, most - 1)).scaleb(-scale))
    values[7] = None
    array = pa.array(values, getattr(pa, kind)(precision, scale))
    wanted = [np.nan if v is None else float(v) for v in values]
    np.testing.assert_array_equal(from_decimals(array), wanted)
    np.testing.assert_array_equal(from_decimals(array[3:]), wanted[3:])
    np.testing.assert_array_equal(from_decimals(pa.chunked_array([array, array])), wanted * 2)
    assert from_decimals(array[:0]).size == 0


def test_an_index_of_pandas_is_no_column_of_the_matrix(tmp_path: Path) -> None:
    path = str(tmp_path / "t.parquet")
    frame = pandas.DataFrame({"a": [1.0, 2], "b": [3.0, 4]}, index=pandas.Index([10, 20], name="t"))
    frame.to_parquet(path)
    done = run("eval", "x", "--x", f"@{path}")
    assert done.stdout == "[[1, 3], [2, 4]]\n"
    assert "t is the index of a data frame, and left out" in done.stderr
    assert run("eval", "x", "--x", f"@{path}:t").stdout == "[10, 20]\n"
    frame.reset_index(drop=True).to_parquet(path)
    done = run("eval", "x", "--x", f"@{path}")
    assert done.stdout == "[[1, 3], [2, 4]]\n" and not done.stderr


def test_a_column_that_pyarrow_lacks_does_not_hide_the_others() -> None:
    """Polars notes its Int128 in the file; pyarrow then refuses all of it."""
    path = GOLDEN / "int128.parquet"
    assert run("eval", "x", "--x", f"@{path}:x").stdout == "[1.5, 2.5]\n"
    assert run("eval", "n", "--n", f"@{path}:n").stdout == "[3, 4]\n"
    assert run("map", "x*n", str(path), "--no-grad", "all").stdout.splitlines()[1].endswith(",4.5")
    refused = run("eval", "x", "--x", f"@{path}:k")
    assert refused.exit_code == 2 and "column k: holds fixed_size_binary[16]" in refused.stderr
    refused = run("eval", "x", "--x", f"@{GOLDEN / 'int128.feather'}:x")
    assert "has a column that pyarrow cannot read" in refused.stderr
    assert "as Parquet, of which the other columns can be read" in refused.stderr


@pytest.mark.parametrize("form", ["parquet", "feather"])
def test_times_are_the_numbers_that_they_are_in_a_text(form, tmp_path, monkeypatch):
    import datetime as d

    import pyarrow as pa
    from pyarrow import feather, parquet

    from tests.commands.running import outcome

    monkeypatch.chdir(tmp_path)
    first = d.datetime(2026, 1, 31, 12)
    times = [first, first + d.timedelta(minutes=30), first + d.timedelta(days=2, milliseconds=250)]
    columns = {
        "s": pa.array(times, pa.timestamp("us")),
        "zone": pa.array(times, pa.timestamp("ns", tz="Europe/Berlin")),
        "day": pa.array([t.date() for t in times]),
        "clock": pa.array([t.time() for t in times[:2]] + [None]),
        "duration": pa.array([t - first for t in times]),
    }
    table = pa.table(columns)
    (parquet.write_table if form == "parquet" else feather.write_feather)(table, f"t.{form}")
    wanted = {
        "s": ([0, 1800, 172800.25], "s is seconds since 2026-01-31 12:00:00\n"),
        "zone": ([0, 1800, 172800.25], "zone is seconds since 2026-01-31 13:00:00+0100\n"),
        "day": (
            [0, 0, 2],
            "day is days since 2026-01-31; --time-origin DATE counts from another day\n",
        ),
        "clock": ([0, 1800], "1 row left out for a number that is missing\n"),
        "duration": ([0, 1800, 172800.25], ""),
    }
    for name, (numbers, words) in wanted.items():
        argv = ["eval", "x", "--x", f"@t.{form}:{name}", "--missing", "skip", "--plain"]
        code, out, err = outcome(*argv)
        assert code == 0 and err.endswith(words), err
        assert [float(x) for x in out.split("\t")[-1].split(",")] == numbers
    assert outcome("eval", "x[1]", "--x", f"@t.{form}:s", "--time-unit", "min")[1] == "30\n"
    argv = ["eval", "x[1]", "--x", f"@t.{form}:day", "--time-origin", "2026-01-01"]
    assert outcome(*argv)[1] == "30\n"
    code, out, err = outcome("eval", "sum(x)", "--x", f"@t.{form}:s", "--by-rows")
    assert (code, out) == (0, "174600.25\n") and err.endswith(wanted["s"][1])


def _times(path: Path, start: str, gaps: int, kind: str) -> None:
    """Six times of which the first ones are missing, in row groups of two; and the numbers 0 to 5."""
    unit = kind[-2] if kind.startswith("timestamp") else "D"
    times = np.datetime64(start, unit) + np.arange(6) * np.timedelta64(1, unit)
    array = pa.array(times, mask=np.arange(6) < gaps).cast(_TIMES[kind])
    table = pa.table({"t": array, "k": np.arange(6.0)})
    if path.suffix == ".parquet":
        parquet.write_table(table, path, row_group_size=2)
    else:
        feather.write_feather(table, str(path), chunksize=2)


_TIMES = {"timestamp[s]": pa.timestamp("s"), "date32": pa.date32()}


@pytest.mark.parametrize("ending", ["parquet", "feather"])
@pytest.mark.parametrize("kind", ["timestamp[s]", "date32"])
def test_times_count_from_the_first_of_all_whoever_reads_a_part(
    tmp_path: Path, ending: str, kind: str
) -> None:
    from gradcli.tables.parts import Parts
    from gradcli.tables.reading_options import Reading

    _times(tmp_path / f"a.{ending}", "2024-03-05", 3, kind)
    _times(tmp_path / f"b.{ending}", "2024-03-11", 0, kind)
    expected = [0.0, 1, 2, *(np.arange(6) + (3 if kind == "date32" else 6 * 86400 - 3))]
    reference = f"@{tmp_path}/*.{ending}:t"
    whole = run("eval", "1*x", "--x", reference, "--missing", "skip")
    assert [float(c) for c in whole.stdout.strip("[]\n").split(", ")] == expected
    by_rows = run("eval", "sum(x)", "--x", reference, "--missing", "skip", "--by-rows")
    assert float(by_rows.stdout) == sum(expected), by_rows.stderr
    assert "t is " in by_rows.stderr and "since 2024-03-0" in by_rows.stderr
    parts = pickle.loads(pickle.dumps(Parts(f"{tmp_path}/*.{ending}", Reading()).parts))
    found: list[float] = []
    for part in reversed(parts):
        for cells in (batch.numbers(0) for batch in part.batches(["t"])):
            found += cells.numbers[~cells.gone if cells.gone is not None else slice(None)].tolist()
    assert sorted(found) == expected
    epoch = run("eval", "x", "--x", f"@{tmp_path}/b.{ending}:t", "--time-origin", "epoch")
    days = run(
        "eval", "sum(x)", "--by-rows", "--x", f"@{tmp_path}/b.{ending}:t", "--time-origin=epoch"
    )
    assert float(days.stdout) == sum(map(float, epoch.stdout.strip("[]\n").split(", ")))


CELLS = ["2.5", "-7", "1e5", "12345678901234567890", "0.1", "1e400"]
OTHERS = ["abc", "", "nan", "1.5D3", " 12 ", "+5", "1_000", "0x10", '"7"', "inf"]


def test_numbers_that_are_read_at_once_are_those_of_the_text() -> None:
    """Arrow's own numbers of the columns that are wanted, or none where a cell is not a number for it."""
    from gradcli.tables.arrow import text_batch
    from gradcli.tables.delimited import Dialect

    dialect = Dialect(",", False, "#")
    dialect.names, dialect.width = ["a", "x", "y"], 3

    def slowly() -> Any:
        raise AssertionError("cell by cell")

    for cells in (CELLS, *([*CELLS, other] for other in OTHERS)):
        text = "".join(f"w{k},{cell},{k}\n" for k, cell in enumerate(cells))
        found = text_batch(text, dialect, "t.csv", slowly, ["y", "x"])
        if found is None:
            assert cells[-1] in OTHERS
        elif cells[-1] == "nan":
            assert found._quickly(1) is None
        else:
            numbers = [float(cell.strip(' "')) for cell in cells]
            np.testing.assert_array_equal(found.readable(1).numbers, numbers)
            np.testing.assert_array_equal(found.readable(2).numbers, np.arange(len(cells)))


@pytest.mark.long
@pytest.mark.parametrize("cell", OTHERS)
def test_a_cell_far_below_is_read_as_where_the_table_is_read_at_once(
    cell: str, tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    lines = [f"w{k},{k * 0.5},{k % 7}\n" for k in range(300_000)]
    lines[-2] = f"w,{cell},3\n"
    path.write_text("a,x,y\n" + "".join(lines))
    by_rows = run("eval", "sum(x)", "--x", f"@{path}:x", "--by-rows")
    whole = run("eval", "sum(x)", "--x", f"@{path}:x", "--whole")
    assert by_rows.exit_code == whole.exit_code
    if by_rows.exit_code:
        assert by_rows.stderr == whole.stderr and "line 300000" in by_rows.stderr
    else:
        assert float(by_rows.stdout) == pytest.approx(float(whole.stdout), rel=1e-15)
