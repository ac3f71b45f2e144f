#!/usr/bin/env bash
# Told that the decimal sign is a comma, pandas' Python engine and Polars' Float64 still read 1.234 as 1.234, silently.
#
# Guess: with decimal="," a point is no part of a number. 1.234, which is 1234 to who writes 0,5, is refused or leaves the
# column text, until thousands="." is said; every engine and every way of asking gives the same.
# Seen with pandas 3.1.1: the C engine and pyarrow's leave the column text, the Python engine makes numbers of it: 0,5 is 0.5 and
# 1.234 is 1.234, both signs in one column. The Python engine is also taken without being asked for where the separator has
# more than one character. Polars 2.1.0 infers text, but with schema_overrides Float64 it reads both signs, too. DuckDB
# 2.0.1 and pyarrow 26.0.1 refuse the column when it is to be numbers. So prices above 999 become a thousandth of themselves.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet pandas==3.1.1 polars==2.1.0 duckdb==2.0.1 pyarrow==26.0.1 numpy==2.4.6
printf 'x;y\n1;0,5\n2;1.234\n3;2,25\n' > "$work/f.csv"
cat > "$work/ask.py" <<'PY'
import sys
import warnings

import duckdb
import pandas as pd
import polars as pl
import pyarrow.csv as pc

warnings.simplefilter("ignore")
PATH = sys.argv[1]


def shown(read):
    try:
        return list(read())
    except Exception as error:
        return type(error).__name__


def pandas(**how):
    return pd.read_csv(PATH, decimal=",", **how)["y"]


for engine in ("c", "pyarrow", "python"):
    print(f"pandas, {engine}:", shown(lambda: pandas(sep=";", engine=engine)))
print("pandas, separator of two:", shown(lambda: pandas(sep=";+")))
print("pandas, thousands:", shown(lambda: pandas(sep=";", thousands=".")))
comma = {"separator": ";", "decimal_comma": True}
print("polars, inferred:", shown(lambda: pl.read_csv(PATH, **comma)["y"]))
double = {"schema_overrides": {"y": pl.Float64}}
print("polars, Float64:", shown(lambda: pl.read_csv(PATH, **comma, **double)["y"]))
query = f"select y from read_csv('{PATH}', delim=';', decimal_separator=',', types={{'y': 'DOUBLE'}})"
print("DuckDB, DOUBLE:", shown(lambda: duckdb.sql(query).fetchall()))
how = pc.ConvertOptions(decimal_point=",", column_types={"y": "float64"})
lines = pc.ParseOptions(delimiter=";")
print("pyarrow, float64:", shown(lambda: pc.read_csv(PATH, None, lines, how)["y"].to_pylist()))
PY
"$work/venv/bin/python" "$work/ask.py" "$work/f.csv" | tee "$work/seen.txt"
diff "$work/seen.txt" - <<'SEEN'
pandas, c: ['0,5', '1.234', '2,25']
pandas, pyarrow: ['0,5', '1.234', '2,25']
pandas, python: [0.5, 1.234, 2.25]
pandas, separator of two: [0.5, 1.234, 2.25]
pandas, thousands: [0.5, 1234.0, 2.25]
polars, inferred: ['0,5', '1.234', '2,25']
polars, Float64: [0.5, 1.234, 2.25]
DuckDB, DOUBLE: ConversionException
pyarrow, float64: ArrowInvalid
SEEN
echo "as it was seen"
