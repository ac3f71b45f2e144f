"""Files for command lines to name: arrays and tables in every format, programs, and damaged ones."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import random
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

# Arrays that files hold, each in every format.
SHAPED = ((1,), (2,), (3,), (2, 3), (3, 3), (3, 2), (1, 3))
ENDINGS = (".csv", ".tsv", ".txt", ".json", ".npy", ".npz", ".csv.gz")
# What `map` reads: the numbers x and y, and more.
TABLES = (
    *("table.csv", "table.tsv", "gaps.csv", "table.jsonl", "table.npy", "table.csv.gz", "table.csv.bz2"),
    *("table.csv.xz", "table.parquet", "table.feather"),
)  # fmt: skip
PROGRAM, LOADED = "program.txt", ("good.py", "raising.py", "junk.py")


def stem(shape: tuple[int, ...]) -> str:
    """The name of the files with an array of this shape."""
    return "s" + "x".join(map(str, shape))


@cache
def contents() -> dict[str, bytes]:
    """The files by name."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        child = os.fork()
        if not child:  # pyarrow starts threads, which no process that forks should have
            try:
                _make(folder)
                os._exit(0)
            finally:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0, "the files cannot be made"
        return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def _make(folder: Path) -> None:
    import pyarrow
    import pyarrow.feather as feather
    import pyarrow.parquet as parquet

    (folder / "a.csv").write_text("x,y\n1,2\n3,4\n")
    (folder / "a.tsv").write_text("1\t2\n3\t4\n")
    (folder / "a.txt").write_text("1 2\n3 4\n")
    (folder / "a.json").write_text('{"k": [1, 2.5, "nan"], "value": [[1, 2]]}')
    np.save(folder / "a.npy", np.arange(3.0))
    np.savez(folder / "a.npz", a=np.ones(2), b=np.zeros((2, 2)))
    (folder / "junk.npy").write_bytes(b"\x93NUMPY\x01\x00junk\xff\x00")
    (folder / "junk.csv").write_bytes(b"1,2\n\xff\x1b,3\n")
    for shape in SHAPED:
        value = np.linspace(-1.2, 1.3, int(np.prod(shape))).round(2).reshape(shape)
        path = folder / stem(shape)
        np.savetxt(path.with_suffix(".csv"), value, "%.17g", ",")
        path.with_suffix(".csv.gz").write_bytes(
            gzip.compress(path.with_suffix(".csv").read_bytes(), mtime=0)
        )
        np.savetxt(path.with_suffix(".tsv"), value, "%.17g", "\t")
        np.savetxt(path.with_suffix(".txt"), value, "%.17g")
        path.with_suffix(".json").write_text(str(value.tolist()))
        np.save(path.with_suffix(".npy"), value)
        np.savez(path.with_suffix(".npz"), value=value)
    table = b"x,y,label\n1,2,a\n0.5,-4,b\n3,1e-3,c\n"
    (folder / "table.csv").write_bytes(table)
    (folder / "table.csv.gz").write_bytes(gzip.compress(table, mtime=0))
    (folder / "table.csv.bz2").write_bytes(bz2.compress(table))
    (folder / "table.csv.xz").write_bytes(lzma.compress(table))
    (folder / "table.tsv").write_text("x\ty\n1\t2\n0\t-4\n")
    (folder / "gaps.csv").write_text("x,y\n1,2\n,4\nabc,5\n6\n")
    (folder / "table.jsonl").write_text('{"x": 1, "y": 2.5}\n{"x": -1, "y": 0}\n')
    rows = np.array([(1.0, 2.0), (3.0, -0.5)], [("x", "f8"), ("y", "f8")])
    np.save(folder / "table.npy", rows)
    data = pyarrow.table({"x": [1.0, None, 3.0], "y": [2, 3, -1], "label": ["a", "b", None]})
    parquet.write_table(data, folder / "table.parquet")
    feather.write_feather(data, folder / "table.feather")
    (folder / PROGRAM).write_text("y = x*x\nsum(y)\n")
    (folder / "good.py").write_text("def twice(x):\n    return 2*x\n\nscale = 3.0\n")
    (folder / "raising.py").write_text("raise ValueError('no\\x1b[31m')\n")
    (folder / "junk.py").write_bytes(b"def f(:\n\xff\n")


def damaged(random: random.Random, name: str) -> tuple[str, bytes]:
    """A file with a few bytes changed, left out or doubled, or its end cut off, and its name."""
    data = bytearray(contents()[name])
    for _ in range(random.choice((1, 1, 2, 5))):
        at = random.randrange(len(data) + 1)
        what = random.randrange(5)
        if what == 0:
            data[at : at + 1] = bytes([random.randrange(256)])
        elif what == 1:
            del data[at : at + random.choice((1, 1, 2, 8))]
        elif what == 2:
            data[at:at] = data[at : at + random.choice((1, 4, 50))]
        elif what == 3:
            data[at:at] = random.choice(
                (b"\0", b"\x1b[31m", b"9" * 400, b"\n", b",", b'"', b"\xff", b"1e999")
            )
        else:
            del data[random.choice((at, len(data) - 1)) :]
    return f"bad{''.join(Path(name).suffixes)}", bytes(data)
