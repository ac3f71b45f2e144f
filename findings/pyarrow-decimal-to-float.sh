#!/usr/bin/env bash
# pyarrow: the decimal 3.30 cast to float64 is 3.3000000000000003, and so is every seventh price.
#
# Guess: a decimal number of two places becomes the double nearest to it, the one that prints as 3.3. pandas, which reads
# through pyarrow, gives the same numbers as pyarrow.
# Seen with pyarrow 26.0.1: of the 100,000 numbers 0.00 to 999.99, 13,929 come out one step off; decimal64 and decimal256
# are alike. The cast multiplies by 0.01, which is no double; dividing by 100 would be right. polars 2.1.0, DuckDB 2.0.1 and
# pandas 3.1.1 on the same pyarrow column have none. So a column that was equal to 3.3 in the CSV file is not equal
# to it after Parquet, and a join or a group by such numbers finds nothing.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet "pyarrow==${PYARROW:-26.0.1}" pandas==3.1.1 polars==2.1.0 duckdb==2.0.1 numpy==2.4.6
cat > "$work/ask.py" <<'PY'
from decimal import Decimal

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

PRICES = [Decimal(cents).scaleb(-2) for cents in range(100_000)]
column = pa.array(PRICES, pa.decimal128(10, 2))
table = pa.table({"price": column})


def off(found):
    return sum(one != float(price) for one, price in zip(found, PRICES, strict=True))


print("3.30 is", pa.array([Decimal("3.30")]).cast("float64")[0].as_py())
print("equal to 3.3:", pc.equal(pa.array([Decimal("3.30")]).cast("float64"), 3.3)[0].as_py())
for kind in (pa.decimal64(10, 2), pa.decimal128(10, 2), pa.decimal256(10, 2)):
    print(f"pyarrow, {kind}:", off(pa.array(PRICES, kind).cast("float64").to_pylist()))
frame = pd.Series(PRICES, dtype=pd.ArrowDtype(pa.decimal128(10, 2)))
print("pandas:", off(frame.astype("float64").tolist()))
print("polars:", off(pl.from_arrow(column).cast(pl.Float64).to_list()))
rows = duckdb.from_arrow(table).project("price::double").fetchall()
print("DuckDB:", off([row[0] for row in rows]))
PY
"$work/venv/bin/python" "$work/ask.py" | tee "$work/seen.txt"
diff "$work/seen.txt" - <<'SEEN'
3.30 is 3.3000000000000003
equal to 3.3: False
pyarrow, decimal64(10, 2): 13929
pyarrow, decimal128(10, 2): 13929
pyarrow, decimal256(10, 2): 13929
pandas: 0
polars: 0
DuckDB: 0
SEEN
echo "as it was seen"
