"""Writes int128.parquet and int128.feather: files of polars whose second column pyarrow cannot read.

Run with polars alone: `pip install polars==2.1.0 && python tests/golden/record_int128.py`.
"""

from __future__ import annotations

from pathlib import Path

import polars

HERE = Path(__file__).parent
frame = polars.DataFrame(
    {"x": [1.5, 2.5], "k": polars.Series([1, 2**100], dtype=polars.Int128), "n": [3, 4]}
)
frame.write_parquet(HERE / "int128.parquet", compression="uncompressed", statistics=False)
frame.write_ipc(HERE / "int128.feather")
