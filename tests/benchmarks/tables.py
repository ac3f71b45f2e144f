"""Tables from file to file and in passes: gradcli beside a loop over pyarrow and NumPy, DuckDB and Polars.

Whole processes in turns. What is compared is the processor's time: others on the machine have no part in it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.cold import entry
from tests.benchmarks.interleave import ROOT
from tests.benchmarks.records import Record, ratio

# Source, target, and the mark against the loop.
MAPS = {
    ("csv", "csv"): 1.0,
    ("quoted.csv", "csv"): 1.2,
    ("quoted.csv", "parquet"): 1.2,
    ("jsonl", "csv"): 1.5,
    ("jsonl", "parquet"): 1.5,
    ("parquet", "csv"): 1.2,
    ("parquet", "parquet"): 0.8,
}
STEPS = 10
_LOSS = "mean((a*x0 + b - x1)**2)"
_LOGISTIC = "-mean(nn.functional.logsigmoid(x1*(a*x0 + b)))"
_SOFTMAX = "nn.functional.cross_entropy(X@W, (k % 3).long())"
_DESCENT = f"""
for k in range({STEPS}):
    ga, gb = autograd.grad({_LOSS}, (a, b))
    with no_grad():
        a -= 0.1*ga
        b -= 0.1*gb
print(a, b)
"""
_LOOP = """
import sys, numpy as np, pyarrow as pa, pyarrow.csv as csv, pyarrow.json as json, pyarrow.parquet as pq
source, target = sys.argv[1:]
ending = source.rpartition(".")[2]
batches = (json.read_json(source).to_batches() if ending == "jsonl" else csv.open_csv(source)
           if ending == "csv" else pq.ParquetFile(source).iter_batches())
out = None
for batch in batches:
    x, y = batch["x0"].to_numpy(), batch["x1"].to_numpy()
    made = [np.sin(x)*y, np.cos(x)*y, np.sin(x)]
    table = pa.table([*batch.columns, *made], [*batch.schema.names, "value", "x0.grad", "x1.grad"])
    if out is None:
        out = (csv.CSVWriter if target.endswith("csv") else pq.ParquetWriter)(target, table.schema)
    out.write_table(table)
out.close()
"""
_DUCKDB = """
import sys, duckdb
source, target = sys.argv[1:]
read = {"jsonl": "read_json"}.get(source.rpartition(".")[2], "read_" + source.rpartition(".")[2])
duckdb.sql(f'''COPY (SELECT *, sin(x0)*x1 AS value, cos(x0)*x1 AS "x0.grad", sin(x0) AS "x1.grad"
           FROM {read}('{source}')) TO '{target}' ''')
"""
_POLARS = """
import sys, polars as pl
source, target = sys.argv[1:]
ending = source.rpartition(".")[2]
x, y = pl.col("x0"), pl.col("x1")
scan = {"jsonl": pl.scan_ndjson, "csv": pl.scan_csv, "parquet": pl.scan_parquet}[ending]
made = scan(source).with_columns(
    (x.sin()*y).alias("value"), (x.cos()*y).alias("x0.grad"), x.sin().alias("x1.grad"))
getattr(made, "sink_" + target.rpartition(".")[2])(target)
"""
_PASSES = """
import sys, numpy as np, pyarrow.parquet as pq
a, b = 1.0, 0.5
for k in range(int(sys.argv[2])):
    ga = gb = n = 0
    for batch in pq.ParquetFile(sys.argv[1]).iter_batches(columns=["x0", "x1"]):
        x, y = batch["x0"].to_numpy(), batch["x1"].to_numpy()
        r = SLOPES
        ga, gb, n = ga + (r*x).sum(), gb + r.sum(), n + len(x)
    a, b = a - 0.1*ga/n, b - 0.1*gb/n
print(a, b)
"""
_LINEAR_LOOP = _PASSES.replace("SLOPES", "2*(a*x + b - y)")
_LOGISTIC_LOOP = _PASSES.replace("SLOPES", "-y/(1 + np.exp(y*(a*x + b)))")
_SOFTMAX_LOOP = """
import sys, numpy as np, pyarrow.parquet as pq
W, g, n = np.array([[1.0, 2, 3], [0.1, 0.2, 0.3]]), 0, 0
for batch in pq.ParquetFile(sys.argv[1]).iter_batches(columns=["k", "x0", "x1"]):
    X = np.stack([batch["x0"].to_numpy(), batch["x1"].to_numpy()], 1)
    z = X@W
    p = np.exp(z - z.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    p[np.arange(len(X)), batch["k"].to_numpy() % 3] -= 1
    g, n = g + X.T@p, n + len(X)
print(g/n)
"""
# Passes over the two columns of a long CSV file: the gradient of a mean by two numbers.
_PASS = """
import pyarrow.csv as csv
ga = gb = n = 0
for batch in csv.open_csv("long.csv", csv.ReadOptions(use_threads=False)):
    x, y = batch["x0"].to_numpy(), batch["x1"].to_numpy()
    r = 2*(1.0*x + 0.5 - y)
    ga, gb, n = ga + (r*x).sum(), gb + r.sum(), n + len(x)
print(ga/n, gb/n)
"""
# What of that is reading alone, in blocks as gradcli reads them.
_READ = """
import pyarrow, pyarrow.csv as csv
numbers = {"x0": pyarrow.float64(), "x1": pyarrow.float64()}
with open("long.csv", "rb", buffering=0) as file:
    rest = b""
    while block := file.read(1 << 20):
        block = rest + block
        end = block.rfind(b"\\n") + 1
        block, rest = block[:end], block[end:]
        csv.read_csv(
            pyarrow.BufferReader(block.removeprefix(b'"x0","x1"\\n')),
            csv.ReadOptions(column_names=["x0", "x1"], use_threads=False, block_size=4*len(block)),
            csv.ParseOptions(quote_char=False), csv.ConvertOptions(column_types=numbers))
"""
_PASS_DUCKDB = """
import duckdb
r = "2*(1.0::double*x0 + 0.5::double - x1)"
duckdb.sql("SET threads = 2")
print(duckdb.sql(f"SELECT avg({r}*x0), avg({r}) FROM read_csv('long.csv')").fetchall())
"""
_PASS_POLARS = """
import polars as pl
x, y = pl.col("x0"), pl.col("x1")
r = 2*(1.0*x + 0.5 - y)
both = pl.scan_csv("long.csv").select((r*x).mean().alias("a"), r.mean().alias("b"))
print(both.collect(engine="streaming"))
"""
LONG = 10_000_000
# Marks against each peer; of Arrow's own reading, none.
_LONG_PASS = {"duckdb": 1.2, "polars": 1.2, "loop": None, "reading alone": None}
_LONG_MAP = {"polars": 1.1, "duckdb": None}
PEERS = {"loop": _LOOP, "duckdb": _DUCKDB, "polars": _POLARS}


def files(folder: Path, rows: int) -> None:
    """The same table in each format: a count, a word, two numbers."""
    import pyarrow as pa
    import pyarrow.csv as csv
    import pyarrow.parquet as parquet

    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(rows).round(6) for _ in range(2))
    words = [f"r{k % 1000}" for k in range(rows)]
    table = pa.table({"k": np.arange(rows), "name": words, "x0": x, "x1": y})
    parquet.write_table(table, folder / "t.parquet", row_group_size=1 << 17)
    csv.write_csv(table, folder / "t.quoted.csv")
    (folder / "t.csv").write_text((folder / "t.quoted.csv").read_text().replace('"', ""))
    with open(folder / "t.jsonl", "w") as stream:
        for k, (word, a, b) in enumerate(zip(words, x.tolist(), y.tolist(), strict=True)):
            stream.write(f'{{"k": {k}, "name": "{word}", "x0": {a!r}, "x1": {b!r}}}\n')
    (folder / "descent.py").write_text(_DESCENT)


def long_file(folder: Path, rows: int) -> None:
    """Two columns of numbers, as text alone."""
    import pyarrow as pa
    import pyarrow.csv as csv

    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(rows).round(6) for _ in range(2))
    csv.write_csv(pa.table({"x0": x, "x1": y}), folder / "long.csv")


def processor(command: list[str], folder: Path) -> float:
    """The processor's seconds of a process and those that it starts."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # as it is installed: compiled once
    null = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    line = ["/usr/bin/env", "-C", str(folder), *command]
    _, status, used = os.wait4(os.posix_spawn(line[0], line, environment, file_actions=null), 0)
    if status:
        raise RuntimeError(f"{' '.join(command)} ended with {os.waitstatus_to_exitcode(status)}")
    return used.ru_utime + used.ru_stime


def long_works() -> Iterator[tuple[str, dict[str, float | None], dict[str, list[str]]]]:
    """The same of the long file: a name, the marks, and the programs of the peers."""
    line = ["--x0", "@long.csv:x0", "--x1", "@long.csv:x1", "--a", "1", "--b", "0.5"]
    own = [*entry(), "grad", _LOSS, *line, "--wrt", "a,b", "--by-rows"]
    codes = (_PASS_DUCKDB, _PASS_POLARS, _PASS, _READ)
    peers = {p: ["-c", code] for p, code in zip(_LONG_PASS, codes, strict=True)}
    yield "gradient of a mean over CSV", _LONG_PASS, {"gradcli": own, **peers}
    ends = ["long.csv", "o.csv"]
    peers = {p: ["-c", PEERS[p], *ends] for p in _LONG_MAP}
    own = [*entry(), "map", "sin(x0)*x1", ends[0], "-o", ends[1]]
    yield "map of CSV with two gradients", _LONG_MAP, {"gradcli": own, **peers}


def works(rows: int) -> Iterator[tuple[str, float, dict[str, list[str]]]]:
    """A name, the mark against the loop, and the command lines; of the peers without their Python."""
    for (source, target), mark in MAPS.items():
        ends = [f"t.{source}", f"o.{target}"]
        lines = {p: ["-c", code, *ends] for p, code in PEERS.items()}
        own = [*entry(), "map", "sin(x0)*x1", ends[0], "-o", ends[1]]
        yield f"{source} to {target}", mark, {"gradcli": own, **lines}
    line = ["--x0", "@t.parquet:x0", "--x1", "@t.parquet:x1", "--a", "1", "--b", "0.5"]
    line += ["--wrt", "a,b", "--by-rows"]
    classes = ["--X", "@t.parquet:x0,x1", "--k", "@t.parquet:k", "--W", "[[1,2,3],[0.1,0.2,0.3]]"]
    for name, steps, code, own in (
        ("grad by rows, linear", 1, _LINEAR_LOOP, ["grad", _LOSS, *line]),
        ("grad by rows, logistic", 1, _LOGISTIC_LOOP, ["grad", _LOGISTIC, *line]),
        (
            *("grad by rows, softmax", 1, _SOFTMAX_LOOP),
            ["grad", _SOFTMAX, *classes, "--wrt", "W", "--by-rows"],
        ),
        ("steps of descent", STEPS, _LINEAR_LOOP, ["run", "descent.py", *line]),
    ):
        loop = ["-c", code, "t.parquet", str(steps)]
        yield name, 1.1, {"gradcli": [*entry(), *own], "loop": loop}


def tables(wanted: Any, rows: int, pythons: Mapping[str, str]) -> Iterator[Record]:
    """The group's records; `wanted` says of which names, and in how many turns."""
    chosen = [work for work in works(rows) if wanted.has("tables", work[0], rows, "rows")]
    long = [work for work in long_works() if wanted.has("tables", work[0], LONG, "rows")]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        if chosen:
            files(folder, rows)
        for name, mark, lines in chosen:
            yield _measured(name, rows, {"loop": mark}, lines, wanted.rounds, folder, pythons)
        if long:
            long_file(folder, LONG)
        for name, marks, lines in long:
            yield _measured(name, LONG, marks, lines, wanted.rounds, folder, pythons)


def _measured(
    name: str,
    rows: int,
    marks: Mapping[str, float | None],
    lines: dict[str, list[str]],
    rounds: int,
    folder: Path,
    pythons: Mapping[str, str],
) -> Record:
    """A record: the processes in turns, the first of which is not counted."""
    skipped = {}
    for peer in lines.keys() - {"gradcli"}:
        python = pythons.get(peer, sys.executable)
        if peer in ("duckdb", "polars") and peer not in pythons:
            skipped[peer] = "not installed"
        lines[peer] = [python, *lines[peer]]
    seconds: dict[str, list[float]] = {p: [] for p in lines if p not in skipped}
    for turn in range(-1, rounds):
        for peer, found in seconds.items():
            taken = processor(lines[peer], folder)
            found += [taken] if turn >= 0 else []
    mine = seconds.pop("gradcli")
    measures = {p: ratio(mine, s, marks.get(p)) for p, s in seconds.items()}
    return Record("tables", name, rows, "rows", measures, skipped=skipped)
