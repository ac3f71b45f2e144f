"""What passes over the rows cost: in this process, on one and two threads, and on workers.

python -m tests.columns.streaming.measure [ROWS|FILE …]     a line a size, for docs/tables.md

The rows are made on the fly, so that the disk has no part in it: 10⁹ rows are 16 GB.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gradcli.columns.streaming.cluster import Cluster
from gradcli.columns.streaming.passes import Threads, passes
from gradcli.columns.streaming.running_sums import Column, Work, expression
from gradcli.engine.system import dtypes
from gradcli.tables.named_columns import ArrayTable
from gradcli.tables.parts import ROWS, Part, Parts

LOSS = "mean((a*x + b - y)**2)"
GROUP = 1 << 20  # rows in a part
ROUNDS = 3


class Made(Part):
    """A part whose rows cost next to nothing."""

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        x = np.linspace(self.number, self.number + 1, ROWS)
        y = 2 * x + 1
        assert self.rows is not None
        for start in range(0, self.rows, ROWS):
            m = min(ROWS, self.rows - start)
            yield ArrayTable("made", ["x", "y"], [x[:m] + start, y[:m] - start], start)


class Table:
    names = ("x", "y")


def work_of(rows: int) -> tuple[Work, list[Part]]:
    """The work, and its parts."""
    starts = range(0, rows, GROUP)
    parts: list[Part] = []
    for k, start in enumerate(starts):
        part = Made("made", "made", k, 0, min(GROUP, rows - start))
        part.start = start
        parts.append(part)
    columns = {"x": Column([0], False), "y": Column([1], False)}
    shared = {"a": np.float64(1), "b": np.float64(0)}
    table: Any = Table()
    return Work((expression, (LOSS, {})), table, columns, shared, rows, wrt=["a", "b"]), parts


def processors(runner: Any) -> tuple[float, float]:
    """The processor's seconds that this process and the workers have taken."""
    client = getattr(runner, "client", None)
    theirs = sum(client.run(time.process_time).values()) if client is not None else 0.0
    return time.process_time(), theirs


def timed(work: Work, parts: list[Part], runner: Any) -> tuple[list[float], Any]:
    """(seconds: by the clock, of this process, of the workers; the value and the gradients)."""
    before = (time.perf_counter(), *processors(runner))
    values, _ = passes(work, parts, runner, lambda rows: None)
    value, grads = work.results(values)
    after = (time.perf_counter(), *processors(runner))
    return [b - a for a, b in zip(before, after, strict=True)], [value, *grads.values()]


def work_on(path: str) -> tuple[Work, list[Part]]:
    """The same on a Parquet file or folder with columns x and y."""
    table = Parts(path)
    columns = {
        "x": Column([table.names.index("x")], False),
        "y": Column([table.names.index("y")], False),
    }
    shared = {"a": np.float64(1), "b": np.float64(0)}
    rows = table.count([0], "error")
    return Work((expression, (LOSS, {})), table, columns, shared, rows, wrt=["a", "b"]), table.parts


def main(sizes: list[str]) -> None:
    """Measure, in turns, and print the medians. sizes: numbers of rows that are made, or paths."""
    dtypes.set_default_dtype(dtypes.float64)
    os.environ["PYTHONPATH"] = os.getcwd()  # the workers import this module
    begun = time.perf_counter()
    with Cluster(2) as two:
        print(f"two workers started in {time.perf_counter() - begun:.1f} s")
        runners = {"1 thread": Threads(1), "2 threads": Threads(2), "2 workers": two}
        for size in sizes:
            work, parts = work_on(size) if os.path.exists(size) else work_of(int(float(size)))
            rows = work.rows
            found: dict[str, list[list[float]]] = {name: [] for name in runners}
            results = []
            for _ in range(ROUNDS):
                for name, runner in runners.items():
                    seconds, result = timed(work, parts, runner)
                    found[name].append(seconds)
                    results.append([float(t) for t in result])
            assert all(r == results[0] for r in results), "the bits differ"
            print(f"{rows:.0e} rows, {len(parts)} parts")
            for name, times in found.items():
                clock, own, theirs = (sorted(t)[ROUNDS // 2] for t in zip(*times, strict=True))
                print(
                    f"  {name}: {clock:.3g} s; processor {own:.3g} s + workers {theirs:.3g} s",
                    flush=True,
                )


if __name__ == "__main__":
    from tests.columns.streaming.measure import main  # under the name that the workers know

    main(sys.argv[1:] or ["1e6", "1e7", "1e8", "1e9"])
